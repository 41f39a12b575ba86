#!/usr/bin/env python3
"""The cost of tr record --syscalls.

A storm of 600,000 system calls (dd bs=1), and with BUILD a build: runs bare, recorded, and recorded
with --syscalls, one after the other; prints the medians of the ratios of their CPU times and wall
times, the CPU time that --syscalls adds to a call, and the bytes that it adds to the trace.
Usage: syscalls.py TR [ROUNDS [BUILD...]]
"""
import json
import os
import resource
import statistics
import subprocess
import sys
import tempfile
import time

STORM = ["dd", "if=/dev/zero", "of=/dev/null", "bs=1", "count=300000", "status=none"]


def timed(command):
    """Wall time and CPU time of a command and its descendants, in seconds."""
    before, start = resource.getrusage(resource.RUSAGE_CHILDREN), time.monotonic()
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    after, wall = resource.getrusage(resource.RUSAGE_CHILDREN), time.monotonic() - start
    return wall, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def measure(tr, rounds, load, trace):
    ways = {
        "bare": load,
        "recorded": [tr, "record", "-q", "--method", "bpf", "-o", trace, "--", *load],
        "--syscalls": [tr, "record", "-q", "--method", "bpf", "--syscalls", "-o", trace, "--", *load],
    }
    walls, cpus, sizes = ({way: [] for way in ways} for _ in range(3))
    for _ in range(rounds):
        for way, command in ways.items():
            wall, cpu = timed(command)
            walls[way].append(wall)
            cpus[way].append(cpu)
            sizes[way].append(0 if way == "bare" else os.path.getsize(trace))
    for one, other in ("recorded", "bare"), ("--syscalls", "bare"), ("--syscalls", "recorded"):
        wall, cpu = (statistics.median(a / b for a, b in zip(of[one], of[other])) for of in (walls, cpus))
        print(f"  {one} / {other}: wall {wall:.3f}, CPU {cpu:.3f}")
    report = subprocess.run([tr, "analyze", trace, "--report", "syscalls", "--format", "json"], check=True,
                            capture_output=True).stdout
    calls = json.loads(report)["syscalls"]["calls"]
    added = statistics.median(a - b for a, b in zip(cpus["--syscalls"], cpus["recorded"]))
    plain, more = (statistics.median(sizes[way]) for way in ("recorded", "--syscalls"))
    print(f"  {calls} calls, {added / calls * 1e9:.0f} ns of CPU more for each; {more:.0f} bytes, {plain:.0f} without")


def main():
    tr, rounds = os.path.abspath(sys.argv[1]), int(sys.argv[2]) if len(sys.argv) > 2 else 5
    with tempfile.TemporaryDirectory() as directory:
        trace = os.path.join(directory, "trace.bin")
        for load in [STORM] + ([sys.argv[3:]] if sys.argv[3:] else []):
            print(" ".join(load), f"({rounds} rounds)")
            measure(tr, rounds, load, trace)


if __name__ == "__main__":
    main()
