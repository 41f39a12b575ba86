#!/usr/bin/env python3
"""The cost of recording TCP connections: a storm of 20,000 connections on loopback.

Pairs of runs, bare and recorded, one after the other; prints the median of the ratios of
their CPU times, the bytes a connection takes in the trace, and what the kernel counts for
the program of inet_sock_set_state (kernel.bpf_stats_enabled).
Usage: network.py TR [PAIRS]
"""

import json
import os
import resource
import socket
import statistics
import subprocess
import sys
import tempfile
import time

CONNECTIONS = 20_000


def storm():
    """A child accepts, the parent connects; a byte each way."""
    listener = socket.socket()
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    listener.bind(("127.0.0.1", 0))
    listener.listen(128)
    if os.fork() == 0:
        for _ in range(CONNECTIONS):
            peer, _ = listener.accept()
            peer.recv(1)
            peer.send(b"a")
            peer.recv(1)
            peer.close()
        os._exit(0)
    for _ in range(CONNECTIONS):
        peer = socket.create_connection(listener.getsockname())
        peer.send(b"q")
        peer.recv(1)
        peer.close()
    os.wait()


def timed(command):
    """Wall time and CPU time of a command and its descendants, in seconds."""
    before, start = resource.getrusage(resource.RUSAGE_CHILDREN), time.monotonic()
    subprocess.run(command, check=True)
    after, wall = resource.getrusage(resource.RUSAGE_CHILDREN), time.monotonic() - start
    cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return wall, cpu


def main():
    tr, pairs = sys.argv[1], int(sys.argv[2]) if len(sys.argv) > 2 else 5
    load = [sys.executable, os.path.abspath(__file__), "storm"]
    walls, cpus = [], []
    with tempfile.TemporaryDirectory() as directory:
        trace = os.path.join(directory, "storm.bin")
        for _ in range(pairs):
            bare = timed(load)
            recorded = timed([tr, "record", "-q", "--method", "bpf", "-o", trace, "--", *load])
            walls.append(recorded[0] / bare[0])
            cpus.append(recorded[1] / bare[1])
        print(
            f"recorded / bare, median of {pairs} pairs: wall {statistics.median(walls):.3f},"
            f" CPU {statistics.median(cpus):.3f}"
        )
        info = json.loads(
            subprocess.run([tr, "info", "--format", "json", trace], check=True, capture_output=True).stdout
        )
        events = subprocess.run([tr, "dump", "--format", "ndjson", trace], check=True, capture_output=True).stdout
        kinds = {}
        for line in events.splitlines():
            kind = json.loads(line)["kind"]
            kinds[kind] = kinds.get(kind, 0) + 1
        mine = {kind: kinds.get(kind, 0) for kind in ("connect", "connected", "accepted", "closed")}
        assert mine["connect"] >= CONNECTIONS, mine
        print(f"events: {mine}; file {os.path.getsize(trace)} bytes, lost {info.get('lost_events')}")


if __name__ == "__main__":
    if sys.argv[1:] == ["storm"]:
        storm()
    else:
        main()
