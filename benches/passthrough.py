#!/usr/bin/env python3
"""The cost of passing on to the system's tr: CPU and wall time of `PROGRAM a-z A-Z` with an
empty input, the medians of RUNS alternating runs, and their difference to the system's tr.

    passthrough.py [RUNS] [PROGRAM...]     PROGRAM defaults to target/release/tr
"""

import os
import statistics
import sys
import time

SYSTEM = "/usr/bin/tr"


def run(program, null):
    """Milliseconds of CPU time and of wall time."""
    begin = time.monotonic()
    streams = [(os.POSIX_SPAWN_DUP2, null, 0), (os.POSIX_SPAWN_DUP2, null, 1)]
    pid = os.posix_spawn(program, ["tr", "a-z", "A-Z"], os.environ, file_actions=streams)
    _, status, usage = os.wait4(pid, 0)
    if status != 0:
        sys.exit(f"{program}: wait status {status}")
    return (usage.ru_utime + usage.ru_stime) * 1e3, (time.monotonic() - begin) * 1e3


def main():
    runs = int(sys.argv[1]) if len(sys.argv) > 1 else 500
    programs = [SYSTEM, *(sys.argv[2:] or ["target/release/tr"])]
    null = os.open(os.devnull, os.O_RDWR)
    times = {program: [] for program in programs}
    for _ in range(runs):
        for program in programs:
            times[program].append(run(program, null))
    medians = {p: [statistics.median(column) for column in zip(*t)] for p, t in times.items()}
    for program, (cpu, wall) in medians.items():
        more = cpu - medians[SYSTEM][0]
        print(f"{program}: {cpu:.2f} ms of CPU time ({more:+.2f}), {wall:.2f} ms")


main()
