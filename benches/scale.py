#!/usr/bin/env python3
"""Runs every command that reads on simulated recordings of growing size.

usage: benches/scale.py [--tr TR] [--trace EXAMPLE] [--most EVENTS] [--only WORD]

It prints wall time, CPU time and private memory (measure.py) of each command, the size of its output, and which parts of the
first screen are there. TR is target/release/tr; EXAMPLE is tr-sim's example `trace`. `--most 100000000` adds the build of 10^8
events, which takes minutes and 600 MB in TMPDIR.
"""

import argparse
import os
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
TARGET = os.path.join(HERE, "../target/release")
# Events of a simulated build on 64 CPUs; and other shapes, as words for `trace`: a forest of 10^5 processes, two processes
# with all of the switches, a pool of 20,000 threads, and two processes with marks.
BUILDS = [100_000, 1_000_000, 10_000_000, 100_000_000]
SHAPES = {
    "forest of 100,000": ["short", "2", "1100000"],
    "two processes": ["pipe", "2", "10000000"],
    "20,000 threads": ["pool", "8", "1000000"],
    "1,000,000 marks": ["marks", "2", "1000000"],
}
PARTS = ["Verdict", "What to change", "Critical path:", "All processes", "CPUs", "Top", "Trace"]
COMMANDS = {
    "analyze": ["analyze", "FILE"],
    "summary": ["summary", "FILE"],
    "steps": ["analyze", "FILE", "--report", "steps"],
    "off-cpu": ["analyze", "FILE", "--report", "off-cpu"],
    "parallelism": ["analyze", "FILE", "--report", "parallelism"],
    "predict": ["predict", "FILE", "--cpus", "8"],
    "diff": ["diff", "FILE", "FILE2"],
    "page": ["report", "FILE", "-o", "OUT"],
    "perfetto": ["export", "--format", "perfetto", "FILE", "-o", "OUT"],
    "folded": ["export", "--format", "folded", "FILE", "-o", "OUT"],
    "info": ["info", "FILE"],
    "verify": ["verify", "FILE"],
}


def measured(command):
    """CPU seconds, wall seconds and KiB of a command; None with the reason if it fails."""
    done = subprocess.run(
        [sys.executable, os.path.join(HERE, "measure.py"), *command], capture_output=True, text=True, check=False
    )
    if done.returncode:
        return None, done.stderr.strip().splitlines()[-1]
    cpu, wall, kib = done.stdout.split()
    return (float(cpu), float(wall), int(kib)), ""


def parts(tr, file):
    """The parts of the first screen that are there."""
    out = subprocess.run([tr, "analyze", file], capture_output=True, text=True, check=True).stdout
    lines = out.splitlines()
    return [part for part in PARTS if any(line.startswith(part) for line in lines)]


def show(name, tr, file, second):
    """Prints the rows of a recording; `second` is one of the same shape with another seed."""
    place = os.path.dirname(file)
    print(f"\n{name}: {os.path.getsize(file) / 1e6:.1f} MB")
    print(f"first screen: {', '.join(parts(tr, file))}")
    for title, words in COMMANDS.items():
        out = os.path.join(place, "out")
        names = {"FILE": file, "FILE2": second, "OUT": out}
        figures, why = measured([tr, *(names.get(word, word) for word in words)])
        if figures:
            cpu, wall, kib = figures
            size = f"{os.path.getsize(out) / 1e6:9.2f} MB" if os.path.exists(out) else ""
            print(f"{title:12} {wall:8.2f} s {cpu:8.2f} s of CPU {kib / 1024:8.0f} MiB {size}", flush=True)
        else:
            print(f"{title:12} {why}", flush=True)
        if os.path.exists(out):
            os.remove(out)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--tr", default=os.path.join(TARGET, "tr"))
    parser.add_argument("--trace", default=os.path.join(TARGET, "examples/trace"))
    parser.add_argument("--most", type=int, default=10_000_000)
    parser.add_argument("--only", default="")
    args = parser.parse_args()
    runs = {f"build, {events:,} events": ["build", "64", str(events)] for events in BUILDS if events <= args.most}
    for name, words in {**runs, **SHAPES}.items():
        if args.only not in name:
            continue
        with tempfile.TemporaryDirectory() as place:
            first, second = (os.path.join(place, file) for file in ("first.bin", "second.bin"))
            for seed, file in enumerate([first, second], 1):
                subprocess.run([args.trace, *words, file, str(seed)], check=True, stdout=subprocess.DEVNULL)
            show(name, args.tr, first, second)


if __name__ == "__main__":
    main()
