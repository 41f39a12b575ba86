#!/usr/bin/env python3
"""Runs real jobs on runners of the size that `tr` proposes: in a cgroup with so much memory and so many CPUs.

usage: benches/validation/size.py [--tr TR] [--csv FILE] [--pairs N] [JOB...]

Each job is recorded once on the whole machine. Then it runs in turn without limits and in the cgroup: it must end with 0 there,
and the ratio of the medians stands beside the forecast one. At last it runs with 60 % of the memory that it used at least, which
shows that the limit counts. The jobs and their sources are those of real.py. Needs root and cgroups of version 1 or 2; a
machine with swap has to switch it off.
"""

import argparse
import csv
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time

import real

JOBS = ["zstd-j2", "bzip2", "javac", "tsc", "cargo-build", "pytest-click", "go-build", "fmt-ninja"]
COLUMNS = [
    "job",
    "at_least_mib",
    "at_most_mib",
    "enough_mib",
    "cpus",
    "enough_cpus",
    "forecast_ratio",
    "measured_ratio",
    "exit",
    "exit_with_60_percent",
    "load",
]


class Cgroup:
    """A cgroup with a limit of memory, in bytes, and a number of CPUs."""

    def __init__(self, memory, cpus):
        root = "/sys/fs/cgroup"
        self.is_v2 = os.path.exists(f"{root}/cgroup.controllers")
        if self.is_v2:
            put(f"{root}/cgroup.subtree_control", "+memory +cpuset")
        parents = [root] if self.is_v2 else [f"{root}/memory", f"{root}/cpuset"]
        self.places = [f"{parent}/tr-size" for parent in parents]
        for place in self.places:
            os.makedirs(place, exist_ok=True)
        some = f"0-{cpus - 1}"
        if self.is_v2:
            put(f"{self.places[0]}/memory.max", memory)
            put(f"{self.places[0]}/cpuset.cpus", some)
        else:
            put(f"{self.places[0]}/memory.limit_in_bytes", memory)
            put(f"{self.places[1]}/cpuset.cpus", some)
            put(f"{self.places[1]}/cpuset.mems", 0)

    def enter(self):
        for place in self.places:
            put(f"{place}/cgroup.procs", os.getpid())

    def remove(self):
        for place in self.places:
            for _ in range(100):
                try:
                    os.rmdir(place)
                    break
                except OSError:
                    time.sleep(0.05)


def put(path, value):
    with open(path, "w") as file:
        file.write(str(value))


def run(name, source, enter=None, before=()):
    """The seconds and the exit status of a job in a fresh copy of its source."""
    at = real.run_in(source)
    start = time.monotonic()
    done = subprocess.run(
        [*before, *real.command(name)], cwd=at, env=real.environment(at), preexec_fn=enter, timeout=600, **real.QUIET
    )
    return time.monotonic() - start, done.returncode


def limited(name, source, memory, cpus):
    group = Cgroup(memory, cpus)
    try:
        return run(name, source, group.enter)
    except subprocess.TimeoutExpired:
        return 600.0, "time-out"
    finally:
        group.remove()


def measure(name, source, args, work):
    trace = os.path.join(work, "trace.bin")
    run(name, source, before=[args.tr, "record", "-o", trace, "--"])
    report = [args.tr, "analyze", trace, "--report", "advice", "--format", "json"]
    advice = json.loads(subprocess.run(report, capture_output=True, check=True).stdout)
    size = (advice.get("advice") or advice)["size"]
    memory, cpus = size["memory"], size["cpus"]
    if not memory or not memory["enough_bytes"] or not cpus:
        print(f"size: {name}: nothing is proposed: {size}", file=sys.stderr)
        return None
    enough = memory["enough_bytes"]
    pairs = [(run(name, source), limited(name, source, enough, cpus["enough"])) for _ in range(args.pairs)]
    plain = statistics.median(seconds for (seconds, _), _ in pairs)
    small = statistics.median(seconds for _, (seconds, _) in pairs)
    statuses = {status for _, (_, status) in pairs}
    _, starved = limited(name, source, memory["at_least_bytes"] * 6 // 10, cpus["enough"])
    mib = 1 << 20
    return {
        "job": name,
        "at_least_mib": memory["at_least_bytes"] // mib,
        "at_most_mib": memory["at_most_bytes"] // mib,
        "enough_mib": enough // mib,
        "cpus": cpus["available"],
        "enough_cpus": cpus["enough"],
        "forecast_ratio": round(cpus["on_enough_ns"] / cpus["on_available_ns"], 3),
        "measured_ratio": round(small / plain, 3),
        "exit": "/".join(map(str, sorted(map(str, statuses)))),
        "exit_with_60_percent": starved,
        "load": round(os.getloadavg()[0], 1),
    }


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tr", default="target/release/tr")
    parser.add_argument("--csv", default="benches/validation/results/size.csv")
    parser.add_argument("--pairs", type=int, default=3)
    parser.add_argument("jobs", nargs="*")
    args = parser.parse_args()
    args.tr = os.path.abspath(args.tr)
    rows = []
    with tempfile.TemporaryDirectory() as work:
        for name in args.jobs or JOBS:
            source = os.path.join(work, name)
            if real.prepare(name, source) and (row := measure(name, source, args, work)):
                print(row, flush=True)
                rows.append(row)
    with open(args.csv, "w", newline="") as file:
        table = csv.DictWriter(file, COLUMNS, lineterminator="\n")
        table.writeheader()
        table.writerows(rows)


if __name__ == "__main__":
    main()
