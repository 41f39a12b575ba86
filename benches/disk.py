#!/usr/bin/env python3
"""The cost of recording requests to disks: a storm of 100,000 requests to a loop device.

Pairs of runs, bare and recorded, one after the other; prints the median of the ratios of
their wall and CPU times, the size of the trace, and the requests in it. Run as root.
Usage: disk.py TR [PAIRS]
"""

import json
import os
import resource
import statistics
import subprocess
import sys
import tempfile
import time

REQUESTS = 100_000


def timed(command):
    """Wall time, and CPU time of the whole machine, in seconds: a kernel thread does the loop
    device's work."""

    def busy():
        with open("/proc/stat", encoding="ascii") as file:
            fields = [int(field) for field in file.readline().split()[1:]]
        user, nice, system, _, _, irq, softirq = fields[:7]
        return (user + nice + system + irq + softirq) / os.sysconf("SC_CLK_TCK")

    before, usage, start = busy(), resource.getrusage(resource.RUSAGE_CHILDREN), time.monotonic()
    subprocess.run(command, check=True)
    wall, after = time.monotonic() - start, resource.getrusage(resource.RUSAGE_CHILDREN)
    own = after.ru_utime + after.ru_stime - usage.ru_utime - usage.ru_stime
    return wall, own, busy() - before


def main():
    tr, pairs = sys.argv[1], int(sys.argv[2]) if len(sys.argv) > 2 else 5
    with tempfile.TemporaryDirectory() as directory:
        image, trace = os.path.join(directory, "image"), os.path.join(directory, "storm.bin")
        with open(image, "wb") as file:
            file.truncate(64 << 20)
        made = subprocess.run(["losetup", "--find", "--show", image], check=True, capture_output=True, text=True)
        device = made.stdout.strip()
        try:
            load = ["dd", f"if={device}", "of=/dev/null", "iflag=direct", "bs=512", f"count={REQUESTS}", "status=none"]
            ratios = []
            timed(load)
            for _ in range(pairs):
                bare = timed(load)
                recorded = timed([tr, "record", "-q", "--method", "bpf", "-o", trace, "--", *load])
                ratios.append([one / other for one, other in zip(recorded, bare)])
            wall, own, machine = (statistics.median(column) for column in zip(*ratios))
            print(
                f"recorded / bare, median of {pairs} pairs: wall {wall:.3f}, CPU of the command and the recorder "
                f"{own:.3f}, of the machine {machine:.3f}"
            )
            report = subprocess.run(
                [tr, "analyze", "--report", "disk", "--format", "json", trace], check=True, capture_output=True
            ).stdout
            disks = {disk["name"]: disk for disk in json.loads(report)["disk"]["devices"]}
            mine = disks[os.path.basename(device)]
            assert mine["requests"] == REQUESTS, mine["requests"]
            print(f"{mine['requests']} requests, p50 ≤ {mine['p50_ns']} ns; file {os.path.getsize(trace)} bytes")
        finally:
            subprocess.run(["losetup", "-d", device], check=True)


if __name__ == "__main__":
    main()
