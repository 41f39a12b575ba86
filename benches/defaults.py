#!/usr/bin/env python3
"""The cost of what tr records by default beside the tasks' own events: connections, requests to disks,
reclaim, the machine's counters.

Rounds of a build without network: bare, recorded by OTHER, recorded by TR, each time another one first.
OTHER is a tr without these facts: the same commit, where `extras` in crates/bpf/src/kernel.rs returns no
facts and `Sampler` in crates/record/src/machine.rs reads no counters.
Prints medians of the ratios within the rounds. With kernel.bpf_stats_enabled the time in the programs is
the kernel's count; without it the wall times have no cost of counting.
Usage: defaults.py TR OTHER [ROUNDS] -- BUILD...
"""

import json
import os
import resource
import statistics
import subprocess
import sys
import tempfile
import time


def timed(command):
    """Wall time, CPU time of the command and its descendants, in seconds."""
    before, start = resource.getrusage(resource.RUSAGE_CHILDREN), time.monotonic()
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    wall, after = time.monotonic() - start, resource.getrusage(resource.RUSAGE_CHILDREN)
    return wall, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def recorded(tr, build, trace):
    wall, cpu = timed([tr, "record", "-q", "--method", "bpf", "-o", trace, "--", *build])
    info = json.loads(subprocess.run([tr, "info", "--format", "json", trace], check=True, capture_output=True).stdout)
    cost = info["cost"]
    return {
        "wall": wall,
        "cpu": cpu,
        "recorder": cost["recorder_ns"] / 1e9,
        "programs": (cost["bpf_ns"] or 0) / 1e9,
        "bytes": os.path.getsize(trace),
    }


def main():
    at = sys.argv.index("--")
    tr, other = sys.argv[1:3]
    rounds, build = int(sys.argv[3]) if at > 3 else 9, sys.argv[at + 1 :]
    runs = {"bare": [], "without": [], "with": []}
    with tempfile.TemporaryDirectory() as directory:
        trace = os.path.join(directory, "trace.bin")
        kinds = {
            "bare": lambda: dict(zip(("wall", "cpu"), timed(build))),
            "without": lambda: recorded(other, build, trace),
            "with": lambda: recorded(tr, build, trace),
        }
        names = list(kinds)
        for number in range(rounds):
            for step in range(len(names)):
                name = names[(number + step) % len(names)]
                runs[name].append(kinds[name]())

    def ratio(one, base, figure):
        pairs = zip(runs[one], runs[base])
        ratios = sorted(a[figure] / b[figure] for a, b in pairs)
        quarter = len(ratios) // 4
        return f"{statistics.median(ratios):.4f} ({ratios[quarter]:.3f} to {ratios[-1 - quarter]:.3f})"

    def median(name, figure):
        return statistics.median(run[figure] for run in runs[name])

    print(
        f"{' '.join(build)}: {rounds} rounds, bare {median('bare', 'wall'):.2f} s, "
        f"CPU {median('bare', 'cpu'):.2f} s; medians and quartiles"
    )
    for figure in "wall", "cpu":
        print(
            f"  {figure}: without / bare {ratio('without', 'bare', figure)}, "
            f"with / bare {ratio('with', 'bare', figure)}, with / without {ratio('with', 'without', figure)}"
        )
    for figure in "recorder", "programs":
        one, two = median("without", figure), median("with", figure)
        share = (two - one) / median("bare", "cpu") * 100
        print(f"  {figure}: {one * 1e3:.1f} ms without, {two * 1e3:.1f} ms with: {share:+.2f} % of the bare CPU time")
    print(
        f"  bytes: {median('without', 'bytes'):.0f} without, {median('with', 'bytes'):.0f} with: "
        f"{ratio('with', 'without', 'bytes')}"
    )


if __name__ == "__main__":
    main()
