#!/usr/bin/env python3
"""The figures of a recording in five minutes, beside the last ones and beside rivals: start, storm, bytes, reading, ptrace,
light. As root, after `make build`.

    benches/quick.py TR [--old OTHER_TR] [--out DIRECTORY] [--scale F]

Ratios are medians of pairs whose order alternates, so that load beside them changes both sides. With --old, another binary is
measured in the same rounds; without it, the table has the last figures of benches/runs. Writes the table to
DIRECTORY/DATE.md (benches/runs), in place of the one that is there. Nothing is judged: figures of busy or other machines are
their own, and their load stands above the table.
"""

import argparse
import datetime
import json
import os
import re
import resource
import shutil
import statistics
import subprocess
import sys
import tempfile
import time

import light
import section

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
STATS = "/proc/sys/kernel/bpf_stats_enabled"
TITLE = "## In five minutes"
TRUE = ["sh", "-c", "i=0; while [ $i -lt 300 ]; do /bin/true; i=$((i + 1)); done"]


def run(command, **options):
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, check=False, **options)
    if done.returncode:
        sys.exit(f"{command}: {done.stderr.decode(errors='replace')}")
    return done.stdout


def wall(command):
    start = time.monotonic()
    run(command)
    return time.monotonic() - start


def cpu(command):
    """CPU time in s."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    run(command)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def pairs(count, load, record):
    """Wall times of both, in s."""
    times = []
    for number in range(count):
        order = [load, record] if number % 2 else [record, load]
        took = {id(command): wall(command) for command in order}
        times.append((took[id(load)], took[id(record)]))
    return times


def info(tr, trace):
    return json.loads(run([tr, "info", "--format", "json", trace]))


def storm(place):
    """Compiles the program of storms into a directory. Returns its path."""
    path = os.path.join(place, "storm")
    run(["gcc", "-O1", "-pthread", "-o", path, os.path.join(ROOT, "fixtures", "programs", "storm.c")])
    return path


class Stats:
    """kernel.bpf_stats_enabled while it lasts."""

    def __enter__(self):
        with open(STATS, encoding="ascii") as file:
            self.before = file.read()
        self.write("1")

    def __exit__(self, *_):
        self.write(self.before)

    @staticmethod
    def write(value):
        with open(STATS, "w", encoding="ascii") as file:
            file.write(value)


class Bench:
    """The figures of one binary: a function each gives its rows of name, value, unit."""

    def __init__(self, tr, place, scale):
        self.tr, self.place = os.path.abspath(tr), place
        self.storm = os.path.join(place, "storm")
        self.trace = os.path.join(place, "trace.bin")
        self.count = lambda count: max(3, round(count * scale))
        self.seconds = 25 * scale

    def record(self, *options):
        return [self.tr, "record", "-q", "-o", self.trace, *options]

    def start(self):
        times = pairs(self.count(15), ["true"], self.record("--", "true"))
        yield "start: more than true", statistics.median(b - a for a, b in times) * 1000, "ms"

    def pipe(self):
        load = [self.storm, "pipe", "40000"]
        times = pairs(self.count(9), load, self.record("--", *load))
        yield "storm of pipes: wall", statistics.median(b / a for a, b in times), "×"
        with Stats():
            run(self.record("--", *load))
        told = info(self.tr, self.trace)
        yield "storm: kernel's part an event", told["cost"]["bpf_ns"] / told["events"], "ns"
        yield "storm: bytes an event", told["bytes_per_event"], "B"

    def build(self):
        demo = os.path.join(self.place, "demo")
        shutil.copytree(os.path.join(ROOT, "fixtures", "demo"), demo, dirs_exist_ok=True)
        make = ["make", "-s", "-j2", "-C", demo, "KERNELS=0"]
        for name, options in (("followed", []), ("-a", ["-a"])):
            run(["make", "-s", "-C", demo, "clean"])
            run(self.record(*options, "--", *make))
            yield f"build, {name}: bytes an event", info(self.tr, self.trace)["bytes_per_event"], "B"

    def reading(self):
        run(self.record("--", self.storm, "pipe", "300000"))
        events = info(self.tr, self.trace)["events"]
        analyze = [self.tr, "analyze", "--report", "tree", "--threads", "1", self.trace]
        best = min(cpu(analyze) for _ in range(self.count(5)))
        yield "reading", events / best / 1e6, "M events a CPU second"

    def ptrace(self):
        times = pairs(self.count(5), TRUE, self.record("--method", "ptrace", "--", *TRUE))
        yield "ptrace: 300 × true", statistics.median(b / a for a, b in times), "×"

    def light(self):
        with Stats():
            os.unlink(self.trace)
            empty, _ = light.recorded(self.tr, self.trace, lambda: time.sleep(1))
            os.unlink(self.trace)
            size, told = light.recorded(self.tr, self.trace, lambda: light.jobs(self.place, 30, self.seconds))
        execs, took, cost = told["events_by_kind"]["exec"], told["duration_ns"], told["cost"]
        # Others start programs, too.
        yield "light: execs a second", execs / took * 1e9, "/s"
        yield "light: CPU time an exec", (cost["recorder_ns"] + cost["bpf_ns"]) / execs / 1000, "µs"
        yield "light: growth an exec", (size - empty) / execs, "B"


def rivals(place, tr_rows):
    """perf's figures of the same loads, where it is installed."""
    if not shutil.which("perf"):
        return {}
    data, storm = os.path.join(place, "perf.data"), [os.path.join(place, "storm"), "pipe", "40000"]
    record = ["perf", "sched", "record", "-q", "-m", "8192", "-o", data, "--", *storm]
    found = {}
    try:
        times = pairs(3, storm, record)
        events = run(["perf", "script", "-i", data, "-F", "event"]).count(b"\n")
        found["storm of pipes: wall"] = statistics.median(b / a for a, b in times)
        found["storm: bytes an event"] = os.path.getsize(data) / events
        found["reading"] = events / cpu(["perf", "sched", "timehist", "-s", "-i", data]) / 1e6
    except SystemExit as error:
        print(f"perf: {error}", file=sys.stderr)
    return {name: value for name, value in found.items() if name in tr_rows}


def last(directory):
    """The newest table: its date, and the values by name."""
    days = sorted(name for name in os.listdir(directory) if re.fullmatch(r"\d{4}-\d\d-\d\d\.md", name))
    for day in reversed(days):
        with open(os.path.join(directory, day), encoding="utf-8") as file:
            _, found, table = file.read().partition(TITLE)
        rows = re.findall(r"^\| ([^|]+?) \| ([\d.]+) ", table.split("\n## ")[0], re.MULTILINE)
        if found and rows:
            return day.removesuffix(".md"), {name: float(value) for name, value in rows}
    return None, {}


def measured(benches):
    """The rows of each binary; a figure of all of them before the next one."""
    rows = [{} for _ in benches]
    for part in ("start", "pipe", "build", "reading", "ptrace", "light"):
        for bench, into in zip(benches, rows):
            if part == "light" and b"--light" not in run([bench.tr, "record", "--help"]):
                continue
            for name, value, unit in getattr(bench, part)():
                into[name] = (value, unit)
                print(f"{os.path.basename(bench.tr)}: {name}: {value:.3f} {unit}", flush=True)
    return rows


def shown(value):
    return f"{value:.0f}" if value >= 1000 else f"{value:.3g}"


def write(path, text):
    """Replaces the section of that name, or adds it."""
    if not os.path.exists(path):
        with open(path, "w", encoding="utf-8") as file:
            file.write(f"# {os.path.basename(path).removesuffix('.md')}\n")
    section.replace(path, text)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("tr")
    parser.add_argument("--old")
    parser.add_argument("--out", default=os.path.join(ROOT, "benches", "runs"))
    parser.add_argument("--scale", type=float, default=1)
    options = parser.parse_args()
    begin, load = time.monotonic(), os.getloadavg()[1]
    with tempfile.TemporaryDirectory() as place:
        storm(place)
        binaries = [options.tr] + ([options.old] if options.old else [])
        now, *old = measured([Bench(tr, place, options.scale) for tr in binaries])
        beside = rivals(place, now)
    day, before = last(options.out)
    if old:
        day, before = "the old binary", {name: value for name, (value, _) in old[0].items()}
    with open("/proc/cpuinfo", encoding="utf-8") as file:
        model = re.search(r"model name\s*: (.*)", file.read())
    version = run([options.tr, "--version"]).decode().strip()
    lines = [
        TITLE,
        "",
        f"`benches/quick.py`, {time.monotonic() - begin:.0f} s, {version}; {os.cpu_count()} CPUs"
        f" ({model[1] if model else os.uname().machine}), Linux {os.uname().release}, load {load:.1f} at the start. Before:"
        f" {day or 'no table'}.",
        "",
        "| figure | now | before | now / before | perf | perf / now |",
        "| --- | --- | --- | --- | --- | --- |",
    ]
    for name, (value, unit) in now.items():
        old_value, rival = before.get(name), beside.get(name)
        cells = [f"{shown(value)} {unit}"]
        cells += [shown(old_value), f"{value / old_value:.2f}"] if old_value else ["–", "–"]
        cells += [shown(rival), f"{rival / value:.2f}"] if rival else ["–", "–"]
        lines.append(f"| {name} | " + " | ".join(cells) + " |")
    table = "\n".join(lines) + "\n"
    print("\n" + table)
    write(os.path.join(options.out, f"{datetime.date.today().isoformat()}.md"), table)


if __name__ == "__main__":
    main()
