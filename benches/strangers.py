#!/usr/bin/env python3
"""How much larger a recording is because of what strangers do, as root.

    benches/strangers.py TR [--rounds 3] [--keep DIRECTORY] [--build DIRECTORY]

Each round builds the 24 translation units of fixtures/demo, or a copy of another directory with a Makefile, with `make -j2` under `tr record`: alone, beside a pipe storm, beside four
busy loops and beside 2,000 runnable threads. The build and the strangers are in two cgroups of equal weight. Prints medians: bytes of the
file, its ratio to the build alone, and the events by kind. The events of sums are the account of the strangers' time.
"""

import argparse
import contextlib
import json
import os
import shutil
import signal
import statistics
import subprocess
import tempfile
import time

from quick import ROOT, info, run, storm

THREADS = r"""
#include <pthread.h>
static void *work(void *nothing) { for (;;) __asm__ volatile(""); return nothing; }
int main(void)
{
    pthread_attr_t attr; pthread_t thread;
    pthread_attr_init(&attr); pthread_attr_setstacksize(&attr, 65536);
    for (int i = 0; i < 2000; i++) pthread_create(&thread, &attr, work, 0);
    pthread_join(thread, 0);
}
"""
LOOP = ["sh", "-c", "while :; do :; done"]


def cgroup(name):
    """A new cgroup of the cpu controller: its directory."""
    root = "/sys/fs/cgroup/cpu" if os.path.isdir("/sys/fs/cgroup/cpu") else "/sys/fs/cgroup"
    place = os.path.join(root, f"strangers-{os.getpid()}-{name}")
    os.mkdir(place)
    return place


def enter(place):
    """What a child calls before its exec."""

    def move():
        with open(os.path.join(place, "cgroup.procs"), "w", encoding="ascii") as file:
            file.write(str(os.getpid()))
        os.setsid()

    return move


@contextlib.contextmanager
def strangers(commands, place):
    """Runs these commands while the block lasts."""
    children = [subprocess.Popen(command, stdout=subprocess.DEVNULL, preexec_fn=enter(place)) for command in commands]
    try:
        time.sleep(1 if children else 0)
        yield
    finally:
        for child in children:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(child.pid, signal.SIGKILL)
            child.wait()


def kinds(tr, trace):
    """How many events of each kind a recording has."""
    counts = {}
    for line in run([tr, "dump", "--format", "ndjson", trace]).splitlines():
        kind = json.loads(line).get("kind")
        counts[kind] = counts.get(kind, 0) + 1
    return counts


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("tr")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--keep", help="a directory for the recordings of the last round")
    parser.add_argument("--build", default=os.path.join(ROOT, "fixtures", "demo"), help="what is built")
    options = parser.parse_args()
    tr = os.path.abspath(options.tr)
    ours, theirs = cgroup("build"), cgroup("others")
    rows = {}
    with tempfile.TemporaryDirectory() as place:
        demo, threads = (os.path.join(place, name) for name in ("demo", "threads"))
        shutil.copytree(options.build, demo)
        run(["gcc", "-O1", "-pthread", "-x", "c", "-o", threads, "-"], input=THREADS.encode())
        loads = {
            "nothing": [],
            "a pipe storm": [[storm(place), "pipe", "1000000000"]],
            "four busy loops": [LOOP] * 4,
            "2,000 runnable threads": [[threads]],
        }
        for number in range(options.rounds):
            for name, commands in loads.items():
                trace = os.path.join(options.keep or place, f"{name.replace(' ', '-')}.bin")
                run(["make", "-s", "-C", demo, "clean"])
                with strangers(commands, theirs):
                    record = [tr, "record", "-q", "-o", trace, "--", "make", "-s", "-j2", "-C", demo, "KERNELS=0"]
                    run(record, preexec_fn=enter(ours))
                rows.setdefault(name, []).append((os.path.getsize(trace), info(tr, trace)["events"], kinds(tr, trace)))
                print(f"round {number + 1}, beside {name}: {rows[name][-1]}", flush=True)
    for directory in (ours, theirs):
        os.rmdir(directory)
    alone = statistics.median(size for size, _, _ in rows["nothing"])
    print("\n| beside | bytes | of those alone | events |\n| --- | --- | --- | --- |")
    for name, runs in rows.items():
        size = statistics.median(size for size, _, _ in runs)
        events = statistics.median(events for _, events, _ in runs)
        print(f"| {name} | {size:,.0f} | {size / alone:.2f} | {events:,.0f} |")


if __name__ == "__main__":
    main()
