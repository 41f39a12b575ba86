#!/usr/bin/env python3
"""The cost of `tr record` by each method: pairs of a bare run and a recorded one. bpf needs the right to
trace, sudo a sudo without a password; root has both.

    benches/methods.py TR [PAIRS]

Prints the medians of the pairs' ratios and differences for a build of fixtures/demo (make -j2), 1,000 x true and 20,000
threads that begin and end one after the other, 8 at once."""

import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time

THREADS = """
import threading
def run():
    for _ in range(2500):
        thread = threading.Thread(target=lambda: None)
        thread.start()
        thread.join()
all = [threading.Thread(target=run) for _ in range(8)]
[thread.start() for thread in all]
[thread.join() for thread in all]
"""


def timed(command, before, directory):
    if before:
        subprocess.run(before, cwd=directory, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    start = time.monotonic()
    subprocess.run(command, cwd=directory, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    return time.monotonic() - start


def main():
    tr = os.path.abspath(sys.argv[1])
    pairs = int(sys.argv[2]) if len(sys.argv) > 2 else 7
    root = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
    with tempfile.TemporaryDirectory() as scratch:
        demo = os.path.join(scratch, "demo")
        shutil.copytree(os.path.join(root, "fixtures", "demo"), demo)
        trace = os.path.join(scratch, "x.bin")
        loads = [
            ("build", ["make", "-s", "-j2"], ["make", "clean"]),
            ("1,000 x true", ["sh", "-c", "i=0; while [ $i -lt 1000 ]; do /bin/true; i=$((i + 1)); done"], None),
            ("20,000 threads", ["/usr/bin/python3", "-c", THREADS], None),
        ]
        for name, load, before in loads:
            for method in "bpf", "sudo", "ptrace":
                record = [tr, "record", "--method", method, "-q", "-o", trace, "--", *load]
                ratios, more = [], []
                for pair in range(pairs):
                    order = [load, record] if pair % 2 == 0 else [record, load]
                    times = {id(command): timed(command, before, demo) for command in order}
                    ratios.append(times[id(record)] / times[id(load)])
                    more.append(1000 * (times[id(record)] - times[id(load)]))
                shown = " ".join(f"{ratio:.2f}" for ratio in sorted(ratios))
                print(
                    f"{name:15} {method:7} {statistics.median(ratios):.2f} {statistics.median(more):+6.0f} ms   ({shown})",
                    flush=True,
                )


if __name__ == "__main__":
    main()
