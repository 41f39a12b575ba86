#!/usr/bin/env python3
"""The cost of tr record --syscalls.

A storm of 4,000,000 system calls (dd bs=1), and with BUILD a build: runs bare, recorded, and recorded
with --syscalls, one after the other. Prints the medians of the ratios of the load's own CPU times, the
CPU time that --syscalls adds to a call, the recorder's CPU times, and the bytes of the traces.
Usage: syscalls.py TR [ROUNDS [BUILD...]]
"""

import json
import os
import resource
import statistics
import subprocess
import sys
import tempfile

STORM = ["dd", "if=/dev/zero", "of=/dev/null", "bs=1", "count=2000000", "status=none"]


def bare(load):
    """CPU time of a command and its descendants, in seconds."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run(load, check=True, stdout=subprocess.DEVNULL)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def asked(tr, *args):
    return json.loads(subprocess.run([tr, *args, "--format", "json"], check=True, capture_output=True).stdout)


def recorded(tr, options, load, trace):
    """CPU times of the load and of the recorder, in seconds, and the bytes of the trace."""
    command = [tr, "record", "-q", "--method", "bpf", *options, "-o", trace, "--", *load]
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    cpu = asked(tr, "analyze", trace)["totals"]["on_cpu_ns"] / 1e9
    own = asked(tr, "info", trace)["cost"]["recorder_ns"] / 1e9
    return cpu, own, os.path.getsize(trace)


def measure(tr, rounds, load, trace):
    median = statistics.median
    plain, sums, base = [], [], []
    for _ in range(rounds):
        base.append(bare(load))
        plain.append(recorded(tr, [], load, trace))
        sums.append(recorded(tr, ["--syscalls"], load, trace))
    calls = asked(tr, "analyze", trace, "--report", "syscalls")["syscalls"]["calls"]

    def ratio(one, other):
        return median(a / b for a, b in zip(one, other))

    cpu, more = [run[0] for run in plain], [run[0] for run in sums]
    print(
        f"  CPU: recorded / bare {ratio(cpu, base):.3f}, --syscalls / bare {ratio(more, base):.3f},"
        f" --syscalls / recorded {ratio(more, cpu):.3f}"
    )
    added = median(a - b for a, b in zip(more, cpu)) / calls * 1e9
    print(f"  {calls} calls, {added:.0f} ns more for each; bare {median(base):.2f} s")
    for name, runs in ("recorded", plain), ("--syscalls", sums):
        print(
            f"  {name}: recorder {median(run[1] for run in runs) * 1e3:.0f} ms, {median(run[2] for run in runs):.0f} bytes"
        )


def main():
    tr, rounds = os.path.abspath(sys.argv[1]), int(sys.argv[2]) if len(sys.argv) > 2 else 5
    with tempfile.TemporaryDirectory() as directory:
        trace = os.path.join(directory, "trace.bin")
        for load in [STORM] + ([sys.argv[3:]] if sys.argv[3:] else []):
            print(" ".join(load), f"({rounds} rounds)")
            measure(tr, rounds, load, trace)


if __name__ == "__main__":
    main()
