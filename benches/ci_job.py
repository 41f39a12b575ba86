#!/usr/bin/env python3
"""The cost of recording a whole CI job: a real project's build and tests, for about ten minutes.

A worker process runs the steps as GitHub's runner does, one script after the other, again and
again until a bare run takes SECONDS. Pairs of such jobs, bare and recorded (tr record --pid WORKER),
the order of a pair alternating. Prints the median ratio of the wall times and of the CPU times of
the steps, the recorder's own CPU time, and the recording's size by the minute. With --pairs 0: one recorded job
under kernel.bpf_stats_enabled, and the share of recorder and BPF programs in the CPU time of the steps, which other
load of the machine does not change.
Usage: ci_job.py TR DIRECTORY STEP... [--seconds 600] [--pairs 3]
Example: ci_job.py target/release/tr lua-5.4.6 'make clean' 'make -j2 linux' './tests.sh'
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
import uuid

STATS = "/proc/sys/kernel/bpf_stats_enabled"


def worker(directory, rounds, steps):
    """Runs all steps `rounds` times, from the first byte of standard input on; prints its times."""
    with tempfile.TemporaryDirectory() as place:
        temp = os.path.join(place, "_temp")
        os.mkdir(temp)
        scripts = []
        for step in steps:
            scripts.append(os.path.join(temp, f"{uuid.uuid4()}.sh"))
            with open(scripts[-1], "w", encoding="utf-8") as script:
                script.write(step)
        sys.stdin.read(1)
        begin = time.monotonic()
        for _ in range(rounds):
            for script in scripts:
                subprocess.run(
                    ["bash", "-e", script],
                    cwd=directory,
                    check=True,
                    stdin=subprocess.DEVNULL,
                    stdout=subprocess.DEVNULL,
                    stderr=subprocess.DEVNULL,
                )
        used = os.times()
        print(json.dumps({"wall": time.monotonic() - begin, "cpu": used.children_user + used.children_system}))


def job(options, rounds, trace=None):
    """Wall time and CPU time of a job in s; with `trace` it is recorded."""
    command = [sys.executable, os.path.abspath(__file__), "worker", options.directory, str(rounds), *options.steps]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as child:
        recorder = None
        if trace:
            record = [options.tr, "record", "-q", "-o", trace, "--pid", str(child.pid)]
            recorder = subprocess.Popen(record)
            while not os.path.exists(trace):
                if recorder.poll() is not None:
                    child.kill()
                    sys.exit("tr record did not start")
                time.sleep(0.05)
        out, _ = child.communicate(b"g")
        if child.returncode:
            sys.exit("a step failed")
        if recorder:
            # It ends with the worker. A signal would end the wait for its output.
            if recorder.wait(60):
                sys.exit("tr record failed")
    return json.loads(out)


def share(options, rounds, trace):
    """Records one job under bpf_stats_enabled; gives its CPU time in s."""
    with open(STATS, encoding="utf-8") as file:
        before = file.read()
    try:
        with open(STATS, "w", encoding="utf-8") as file:
            file.write("1")
        return job(options, rounds, trace)["cpu"]
    finally:
        with open(STATS, "w", encoding="utf-8") as file:
            file.write(before)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("tr")
    parser.add_argument("directory")
    parser.add_argument("steps", nargs="+")
    parser.add_argument("--seconds", type=float, default=600)
    parser.add_argument("--pairs", type=int, default=3)
    options = parser.parse_args()
    once = job(options, 1)["wall"]
    rounds = max(1, round(options.seconds / once))
    print(f"{rounds} rounds of {once:.1f} s", flush=True)
    walls, cpus = [], []
    with tempfile.TemporaryDirectory() as place:
        trace = os.path.join(place, "job.bin")
        for pair in range(options.pairs):
            if os.path.exists(trace):
                os.unlink(trace)
            if pair % 2:
                recorded, bare = job(options, rounds, trace), job(options, rounds)
            else:
                bare, recorded = job(options, rounds), job(options, rounds, trace)
            walls.append(recorded["wall"] / bare["wall"])
            cpus.append(recorded["cpu"] / bare["cpu"])
            print(f"bare {bare['wall']:.1f} s, recorded {recorded['wall']:.1f} s", flush=True)
        if options.pairs == 0:
            used = share(options, rounds, trace)
        info = subprocess.run([options.tr, "info", "--format", "json", trace], check=True, capture_output=True)
        info, size = json.loads(info.stdout), os.path.getsize(trace)
    # An empty recording would cost nothing.
    assert info["events"] > 100 * rounds and info["method"] == "bpf", info
    minutes = info["duration_ns"] / 60e9
    cost = info["cost"]
    if options.pairs == 0:
        own = cost["recorder_ns"] + cost["bpf_ns"]
        print(
            f"recorder and BPF programs {own / 1e9:.2f} s of CPU, {100 * own / 1e9 / used:.3f} % of the steps'"
            f" {used:.1f} s in {60 * minutes:.0f} s (BPF {cost['bpf_ns'] / 1e9:.2f} s)"
        )
    else:
        print(
            f"recorded / bare, median of {options.pairs} pairs: wall {statistics.median(walls):.4f}"
            f" ({min(walls):.3f} to {max(walls):.3f}), CPU of the steps {statistics.median(cpus):.4f}"
        )
    print(
        f"recorder {cost['recorder_ns'] / 1e9:.2f} s of CPU; {info['events']} events,"
        f" lost {info['lost_events'] or 0}; {size / 1e6:.2f} MB, {size / 1e6 / minutes:.3f} MB a minute"
    )


if __name__ == "__main__":
    if sys.argv[1:2] == ["worker"]:
        worker(sys.argv[2], int(sys.argv[3]), sys.argv[4:])
    else:
        main()
