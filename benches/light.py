#!/usr/bin/env python3
"""What `tr record --light -a` costs a machine on which test jobs run, as root.

Jobs start programs at each RATE a second: a shell of a test, which filters a file of its own name and
compares it, and every fifth time a compiler's front end. Recorded for SECONDS at each rate under
kernel.bpf_stats_enabled. Prints the execs a second that the recording has, the recorder's and the BPF programs' share of
one CPU, and the file's growth by the minute, less that of an empty recording (metadata and the living tasks). With --followed
the jobs alone are recorded, as COMMAND: on a machine that does other work, whose execs would count otherwise.
Usage: light.py TR [--rates 10,30,60] [--seconds 60] [--followed]
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time

STATS = "/proc/sys/kernel/bpf_stats_enabled"
SOURCE = "int f{0}(int a) {{ return a * {0}; }}\n"


def jobs(place, rate, seconds):
    """Starts `rate` programs a second, five a job, for so long."""
    begin, number, children = time.monotonic(), 0, []
    while time.monotonic() - begin < seconds:
        number += 1
        name = os.path.join(place, f"case-{number % 977:04}")
        if number % 5 == 0:
            with open(name + ".c", "w", encoding="ascii") as file:
                file.write(SOURCE.format(number))
            command = ["gcc", "-O1", "-Wall", "-I", place, "-fsyntax-only", name + ".c"]
        else:
            script = f"sed -e 's/^/{number} /' /etc/passwd | sort -k 2 >{name}.out; cmp {name}.out /etc/passwd"
            command = ["sh", "-c", script]
        children.append(subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL))
        children = [child for child in children if child.poll() is None]
        # A shell's job is four execs, a compiler's two.
        time.sleep(max(0.0, begin + number * 3.6 / rate - time.monotonic()))
    for child in children:
        child.wait()


def told(tr, trace):
    """The size of a recording, and what tr info tells of it."""
    info = subprocess.run([tr, "info", "--format", "json", trace], check=True, capture_output=True)
    return os.path.getsize(trace), json.loads(info.stdout)


def recorded(tr, trace, work):
    """Records the machine while `work` is done."""
    with subprocess.Popen([tr, "record", "-q", "--light", "-a", "-o", trace]) as recorder:
        while not os.path.exists(trace):
            if recorder.poll() is not None:
                sys.exit("tr record did not start")
            time.sleep(0.05)
        work()
        recorder.terminate()
        recorder.wait(60)
    return told(tr, trace)


def followed(tr, trace, work):
    """Records a process that does `work`, a list of arguments of this program."""
    command = [sys.executable, os.path.abspath(__file__), "jobs", *work]
    subprocess.run([tr, "record", "-q", "--light", "-o", trace, "--", *command], check=True)
    return told(tr, trace)


def measured(options, place, trace, rate):
    """A recording of jobs at this rate."""
    if options.followed:
        return followed(options.tr, trace, [place, rate, str(options.seconds)])
    return recorded(options.tr, trace, lambda: jobs(place, float(rate), options.seconds))


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("tr")
    parser.add_argument("--rates", default="10,30,60")
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--followed", action="store_true")
    options = parser.parse_args()
    with open(STATS, encoding="ascii") as file:
        before = file.read()
    try:
        with open(STATS, "w", encoding="ascii") as file:
            file.write("1")
        with tempfile.TemporaryDirectory() as place:
            trace = os.path.join(place, "light.bin")
            if options.followed:
                empty, _ = followed(options.tr, trace, [place, "1", "0"])
            else:
                empty, _ = recorded(options.tr, trace, lambda: time.sleep(1))
            for rate in options.rates.split(","):
                os.unlink(trace)
                size, info = measured(options, place, trace, rate)
                seconds, kinds = info["duration_ns"] / 1e9, info["events_by_kind"]
                # An empty recording would cost nothing.
                assert kinds["exec"] > 5 * seconds, info
                own, bpf = (info["cost"][which] / info["duration_ns"] for which in ("recorder_ns", "bpf_ns"))
                print(
                    f"{kinds['exec'] / seconds:5.1f} execs a second: {100 * (own + bpf):.3f} % of a CPU (recorder {100 * own:.3f},"
                    f" BPF programs {100 * bpf:.3f}), {(size - empty) * 0.06 / seconds:.1f} kB a minute"
                    f" (an empty recording has {empty / 1e3:.1f} kB), {info['events']} events",
                    flush=True,
                )
    finally:
        with open(STATS, "w", encoding="ascii") as file:
            file.write(before)


if __name__ == "__main__":
    if sys.argv[1:2] == ["jobs"]:
        jobs(sys.argv[2], float(sys.argv[3]), float(sys.argv[4]))
    else:
        main()
