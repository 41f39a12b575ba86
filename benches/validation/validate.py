#!/usr/bin/env python3
"""Applies the first line of `--report advice` and measures what it gains: docs/validation.md.

usage: benches/validation/validate.py [--tr TR] [--pairs N] [--around idle,load,quota] [--out PAGE] [--csv FILE] [--rows FILE]
                              [--limit SECONDS] [BUILD...]

The builds are those of fixtures/advice/builds.sh and those of real.py. Each is recorded once in each surrounding:
alone, beside two tasks that spin, and in a cgroup with 30 % of a CPU. If the first line is one
that a script can apply, the build with and without it is measured in alternating pairs in the same
surrounding. Of planted faults (expected.txt) it counts those that the first line names, beside load and under a quota without
those that are a number of jobs. --limit leaves out builds that take longer without added load, in all surroundings; with `--limit inf`
each is tried in each. A gain is predicted if the pairs' median, give or take their spread (the median distance from it), reaches
the interval; of an interval from 0, which is a bound, if it does not exceed that. --rows keeps each row as a line of JSON: a second call
with the same file goes on where the first one ended. --csv writes the rows as a table, --out a section of
a page with their sums. Needs root; as root alone a cgroup has a quota. The wall that the
verdict of the other surroundings tells for an idle machine is held against the build's on it. The machine's other load is told
before the table: rows of a busy machine say little about gains, and enough about harm.
"""

import argparse
import contextlib
import json
import os
import re
import shutil
import statistics
import subprocess
import sys
import tempfile
import time

import real
import results

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
import section  # noqa: E402

HERE = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
BUILDS = os.path.join(HERE, "fixtures/advice/builds.sh")
EXPECTED = os.path.join(HERE, "fixtures/advice/expected.txt")
# Where others or a quota have the CPUs no number of jobs is advised.
NUMBERS = ("few-jobs", "tests")
QUIET = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
PYTHON_TESTS = "import hashlib, sys\nh = b'x'\nfor i in range(400000): h = hashlib.md5(h).digest()\n"

# Builds beside those of builds.sh: files, and a command.
MORE = {
    "make-j8": ({}, "clean-make", ["make", "-s", "-j8"]),
    "make-j8-chain": ({}, "many-jobs", ["make", "-s", "-j8"]),
    "six-tests-j6": (
        {
            "test.py": PYTHON_TESTS,
            "Makefile": "check: 1 2 3 4 5 6\n1 2 3 4 5 6:\n\tpython3 test.py $@\n.PHONY: check 1 2 3 4 5 6\n",
        },
        None,
        ["make", "-s", "-j6", "check"],
    ),
    "poll-server": (
        {
            "server.py": "import time\ntime.sleep(1.3)\nopen('ready', 'w').close()\ntime.sleep(9)\n",
            "wait.sh": "python3 server.py & until test -f ready; do sleep 0.5; done; kill $!; rm -f ready\n",
        },
        None,
        ["sh", "wait.sh"],
    ),
}


def sed(file, *edits):
    with open(file) as old:
        text = old.read()
    for pattern, new in edits:
        text = re.sub(pattern, new, text, flags=re.M)
    with open(file, "w") as new_file:
        new_file.write(text)


def with_jobs(command, jobs):
    """The command with so many jobs, of a tool that has such an option; else None."""
    tool = os.path.basename(command[0])
    if tool == "pytest":
        return command + ["-n", jobs]
    if (
        tool == "cmake"
        and "--build" not in command
        or tool not in ("make", "ninja", "ctest", "prove", "cargo", "cmake")
    ):
        return None
    rest = [it for at, it in enumerate(command) if not re.match("-j[0-9]*$", it) and command[at - 1] != "-j"]
    at = 2 if tool == "cargo" else len(rest) if tool in ("ctest", "cmake") else 1
    return rest[:at] + ["-j" + jobs] + rest[at:]


def faster_linker(place):
    """A directory in which compilers find another linker first, and the environment that says so."""
    linker = shutil.which("mold") or shutil.which("ld.lld") or shutil.which("ld.gold")
    if not linker:
        return None
    os.makedirs(os.path.join(place, ".linker"), exist_ok=True)
    os.symlink(linker, os.path.join(place, ".linker/ld"))
    return {"COMPILER_PATH": os.path.join(real.PLACE, ".linker")}


def keep_results(place, command):
    """Keeps what a first configuration found: a cache file, or the build directory; None where there is neither."""
    cached = command + ["-C"] if "./configure" in command else command
    at = real.run_in(place)
    subprocess.run(cached, cwd=at, env=real.environment(at), check=False, **QUIET)
    some = False
    for kept in ("config.cache", "b"):
        found = os.path.join(at, kept)
        some = some or os.path.exists(found)
        if os.path.isdir(found):
            shutil.copytree(found, os.path.join(place, kept), symlinks=True)
        elif os.path.exists(found):
            shutil.copy(found, place)
    return (cached, {}) if some else None


def once(place, program):
    """A directory in which a program keeps what it printed for equal arguments, and the environment that says so."""
    found = shutil.which(program)
    if not found:
        return None
    os.makedirs(os.path.join(place, ".once"), exist_ok=True)
    there = os.path.join(real.PLACE, ".once")
    with open(os.path.join(place, ".once", program), "w") as script:
        script.write(
            f"#!/bin/sh\nkept={there}/$(printf '%s ' \"$@\" | cksum | tr -d ' ')\n"
            f'[ -e $kept ] || {{ {found} "$@" >$kept.$$ || exit; mv $kept.$$ $kept; }}\ncat $kept\n'
        )
    os.chmod(os.path.join(place, ".once", program), 0o755)
    return {"PATH": there + ":" + os.environ["PATH"]}


# What the first line says, done: by its kind, in the directory of a build.
def apply(line, name, command):
    """The changed command and environment, or None where only a person can apply the line."""
    kind, program = line["kind"], line["finding"].split(" ")[0]
    jobs = re.search(r"-j ?(\d+)", line["action"])
    by_person = r"run them at once| if they take| if it is|\$\(MAKE\)|limit of the load"
    if kind in ("few-jobs", "tests") and not re.search(by_person, line["action"]):
        # Names of the option without a number: one job a CPU.
        changed = with_jobs(command, jobs.group(1) if jobs else str(os.cpu_count()))
        return changed and (changed, {})
    if name in real.BUILDS:
        if kind == "link" and (found := faster_linker(os.getcwd())):
            return command, found
        if kind == "repeated" and (found := once(os.getcwd(), program)):
            return command, found
        if kind == "configure":
            return keep_results(os.getcwd(), command)
        return None
    if kind == "wrapper":
        sed("all.sh", (r"^(\./npx|\.pyenv/shims/python3) ", "python3 "))
        return command, {}
    if kind == "few-jobs" and name == "busy-load":
        return [it for it in command if not it.startswith("-l")], {}
    edits = {
        "link": ("Makefile", "-no-pie", "-no-pie -fuse-ld=gold"),
        "sleep": ("test.sh", r"^sleep 1\n", ""),
        "poll": ("wait.sh", r"sleep 0\.\d+", "sleep 0.02"),
        "lock": ("Makefile", "flock db.lock ", ""),
        "few-jobs": ("run-tests", "; done", " & done; wait"),
    }
    if kind == "last" and name == "big-last":
        edits["last"] = ("Makefile", r"^app: (.*) zbig\.o", r"app: zbig.o \1")
    if kind == "repeated" and name == "repeated-compiler":
        edits["repeated"] = ("Makefile", r"(?s)^release:\n.*?^release: debug", "release:\npackage:\nrelease: debug")
    if kind in edits and os.path.exists(edits[kind][0]):
        file, *edit = edits[kind]
        sed(file, edit)
        return command, {}
    if kind == "configure" and os.path.exists("configure"):
        subprocess.run(["./configure"], cwd="sub" if os.path.exists("sub") else ".", check=False, **QUIET)
        return command, {}
    if kind == "short" and name == "short":
        with open("count.sh", "w") as script:
            script.write("seq 900 | tail -1 >/dev/null\n")
        return command, {}
    return None


def command_of(name):
    """The command of a build."""
    if name in real.BUILDS:
        return real.command(name)
    if name in MORE:
        return MORE[name][2]
    with open(BUILDS) as script:
        run = script.read().split("\nrun() {")[1]
    # Several names have one line.
    lines = re.findall(r"^\t([a-z][a-z0-9 |-]*)\) exec (.*)", run, re.M)
    special = [command for names, command in lines if name in names.split(" | ")]
    plain = [re.fullmatch(r"((?:make|prove)[^;']*?) ;;", command) for command in special]
    if any(plain):
        return plain[0].group(1).split()
    return [BUILDS, "run", name] if special else ["make", "-s", "-j2"]


def prepare(name, place):
    """Whether a new directory has what the build needs."""
    if name in real.BUILDS:
        return real.prepare(name, place)
    os.mkdir(place)
    files, base, _ = MORE.get(name, ({}, name, None))
    real.write(files, place)
    if base:
        subprocess.run([BUILDS, "prepare", base], cwd=place, check=True, **QUIET)
    return True


@contextlib.contextmanager
def quota(percent):
    """Yields the directory of a cgroup with a quota."""
    for root, file, value in (
        ("/sys/fs/cgroup/cpu", "cpu.cfs_quota_us", "%d" % (percent * 1000)),
        ("/sys/fs/cgroup", "cpu.max", "%d 100000" % (percent * 1000)),
    ):
        group = os.path.join(root, "tr-validate-%d" % os.getpid())
        with contextlib.suppress(OSError):
            os.makedirs(group, exist_ok=True)
            with open(os.path.join(group, file), "w") as out:
                out.write(value)
            break
    else:
        sys.exit("no cgroup for a quota")

    try:
        yield group
    finally:
        time.sleep(0.2)
        with contextlib.suppress(OSError):
            os.rmdir(group)


@contextlib.contextmanager
def surrounding(around):
    """Yields what a child has to do before its exec."""
    if around == "quota":
        with quota(30) as group:

            def enter():
                with open(os.path.join(group, "cgroup.procs"), "w") as procs:
                    procs.write(str(os.getpid()))

            yield enter
        return
    spinners = []
    if around == "load":
        spinners = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in "12"]
    try:
        yield lambda: None
    finally:
        for spinner in spinners:
            spinner.kill()
            spinner.wait()


def at_once():
    """Lets a child run before the machine's other tasks."""
    os.sched_setscheduler(0, os.SCHED_RR, os.sched_param(1))


def timed(source, command, more, enter):
    """Seconds of a run in a copy of a directory."""
    place = real.run_in(source)
    environment = {**real.environment(place), **more}
    start = time.monotonic()
    subprocess.run(command, cwd=place, check=False, preexec_fn=enter, env=environment, **QUIET)
    return time.monotonic() - start


def advice(tr, source, command, work, enter):
    """The first line, or None, and the verdict."""
    place = real.run_in(source)
    trace = os.path.join(work, "trace.bin")
    record = [tr, "record", "-q", "--force", "-o", trace, "--"] + command
    subprocess.run(record, cwd=place, check=False, preexec_fn=enter, env=real.environment(place), **QUIET)
    out = subprocess.run(
        [tr, "analyze", trace, "--report", "advice", "--format", "json"], capture_output=True, check=True
    )
    found = json.loads(out.stdout)["advice"]
    return next(iter(found["advice"]), None), found["verdict"]


def verdict(before, after):
    """By the median of the pairs' differences, and their spread."""
    gains = [b - a for b, a in zip(before, after)]
    gain, least = statistics.median(gains), 0.03 * statistics.median(before)
    if gain > least and sum(g > 0 for g in gains) > 0.7 * len(gains):
        return gain, "helped"
    if gain < -least and sum(g < 0 for g in gains) > 0.7 * len(gains):
        return gain, "harmed"
    return gain, "nothing"


def is_predicted(predicted, gains):
    """Whether the pairs' gains agree with an interval of seconds."""
    gain = statistics.median(gains)
    spread = statistics.median(abs(it - gain) for it in gains)
    low, high = predicted
    return low - spread <= gain <= high + spread


def takes_too_long(args, name):
    """Whether a build without added load takes longer than it may; also one that cannot be prepared."""
    if args.limit == float("inf"):
        return False
    with tempfile.TemporaryDirectory(dir="/dev/shm") as work:
        place = os.path.join(work, "alone")
        return not prepare(name, place) or timed(place, command_of(name), {}, None) > args.limit


def planted():
    """The kinds of the faults of builds.sh by build: but for those of its surrounding."""
    with open(EXPECTED) as expected:
        lines = [line.partition(":") for line in expected if not line.startswith("#")]
    kinds = {name: kind.partition("+")[0].strip() for name, _, kind in lines}
    return {name: kind for name, kind in kinds.items() if kind not in ("", "others", "throttled")}


def measure(args, name, around):
    """A row; None where the build cannot be prepared."""
    row = recorded(args, name, around)
    if row and row.get("alone"):
        with tempfile.TemporaryDirectory(dir="/dev/shm") as work:
            place = os.path.join(work, "alone")
            prepare(name, place)
            row["walls"] = [timed(place, command_of(name), {}, None) for _ in range(args.pairs)]
    return row


def recorded(args, name, around):
    """The row without what the build takes alone; None where it cannot be prepared."""
    with tempfile.TemporaryDirectory(dir="/dev/shm") as work, surrounding(around) as enter:
        before, after = os.path.join(work, "before"), os.path.join(work, "after")
        if not prepare(name, before):
            return None
        command = command_of(name)
        line, told = advice(args.tr, before, command, work, enter)
        row = {"build": name, "around": around, "line": "", "result": "silent"}
        if told and around != "idle":
            row["alone"] = [told[it] / 1e9 for it in ("wall_ns", "alone_at_least_ns", "alone_ns", "alone_at_most_ns")]
        if line is None:
            return row
        row["line"] = f"{line['kind']}: {line['action']}"
        row["predicted"] = (line.get("gain_at_least_ns", 0) / 1e9, line["gain_at_most_ns"] / 1e9)
        shutil.copytree(before, after, symlinks=True)
        os.chdir(after)
        changed = apply(line, name, command)
        os.chdir(HERE)
        row["result"] = "not applied"
        if changed is None:
            return row
        pairs = [(timed(before, command, {}, enter), timed(after, *changed, enter)) for _ in range(args.pairs)]
        times = list(zip(*pairs))
        row["gains"] = [one - other for one, other in pairs]
        row["times"] = [statistics.median(side) for side in times]
        row["gain"], row["result"] = verdict(*times)
        return row


def table(rows):
    yield "| build | around | the first line | predicted | before → after | gain | result |"
    yield "| --- | --- | --- | --- | --- | --- | --- |"
    for row in rows:
        predicted = "{:.2f} to {:.2f} s".format(*row["predicted"]) if "predicted" in row else ""
        times = "{:.2f} → {:.2f} s".format(*row["times"]) if "times" in row else ""
        gain = "{:.2f} s".format(row["gain"]) if "gain" in row else ""
        if "walls" in row and "gain" not in row:
            predicted = "idle: {1:.2f} to {3:.2f} s".format(*row["alone"])
            times = "{:.2f} → {:.2f} s".format(row["alone"][0], statistics.median(row["walls"]))
        yield f"| {row['build']} | {row['around']} | {row['line']} | {predicted} | {times} | {gain} | {row['result']} |"


HEADER = [
    "build",
    "around",
    "first_line",
    "predicted_low_s",
    "predicted_high_s",
    "before_s",
    "after_s",
    "gain_s",
    "result",
]
# For recordings beside load or under a quota: the wall time that the verdict predicts for an idle machine, and the measured one.
HEADER += ["told_low_s", "told_s", "told_high_s", "measured_s"]


def cells(row):
    """The row of the table as CSV."""
    seconds = "{:.2f}".format
    out = {"build": row["build"], "around": row["around"], "first_line": row["line"], "result": row["result"]}
    for key, ends in (("predicted", ("predicted_low_s", "predicted_high_s")), ("times", ("before_s", "after_s"))):
        out.update(zip(ends, map(seconds, row.get(key, ()))))
    if "gain" in row:
        out["gain_s"] = seconds(row["gain"])
    if "walls" in row:
        out.update(zip(("told_low_s", "told_s", "told_high_s"), map(seconds, row["alone"][1:])))
        out["measured_s"] = seconds(statistics.median(row["walls"]))
    return out


def summary(rows):
    results = [row["result"] for row in rows]
    applied = [row for row in rows if "gain" in row]
    counts = ", ".join(f"{results.count(it)} {it}" for it in ("helped", "nothing", "harmed", "silent", "not applied"))
    builds = len({row["build"] for row in rows})
    yield f"{len(rows)} recordings of {builds} builds, {len(applied)} first lines applied: {counts}."
    idle = [row for row in applied if row["around"] == "idle"]
    inside = [row for row in idle if is_predicted(row["predicted"], row.get("gains", [row["gain"]]))]
    yield f"Of {len(idle)} gains measured without added load, {len(inside)} are as predicted, within the spread of their pairs."
    yield "Planted faults named first: " + "; ".join(named_first(rows)) + "."
    for around in dict.fromkeys(row["around"] for row in rows):
        here = [row for row in rows if row["around"] == around and "walls" in row]
        if here:
            yield forecasts(around, here)


def forecasts(around, rows):
    """How near the told times on an idle machine are to those measured on it."""
    walls = [statistics.median(row["walls"]) for row in rows]
    errors = sorted(abs(row["alone"][2] / wall - 1) for row, wall in zip(rows, walls))
    inside = [row for row, wall in zip(rows, walls) if row["alone"][1] <= wall <= row["alone"][3]]
    middle, most = (100 * errors[int(part * (len(errors) - 1))] for part in (0.5, 0.9))
    return (
        f"Of {len(rows)} walls on an idle machine, told of recordings in {around}, {len(inside)} are in their interval;"
        f" the error has a median of {middle:.0f} %, a 90th percentile of {most:.0f} %."
    )


def named_first(rows):
    """The share of planted faults that the first line names, by surrounding."""
    faults = planted()
    for around in dict.fromkeys(row["around"] for row in rows):
        here = [row for row in rows if row["around"] == around and row["build"] in faults]
        here = [row for row in here if around == "idle" or faults[row["build"]] not in NUMBERS]
        named = [row for row in here if row["line"].split(":")[0] == faults[row["build"]]]
        yield f"{around} {len(named)} of {len(here)}"


def main():
    parser = argparse.ArgumentParser(usage=__doc__.replace("%", "%%"))
    parser.add_argument("--tr", default=os.path.join(HERE, "target/release/tr"))
    parser.add_argument("--pairs", type=int, default=5)
    parser.add_argument("--around", default="idle,load,quota")
    parser.add_argument("--out", help="a page: its section gets the sums")
    parser.add_argument("--csv", help="the rows as CSV")
    parser.add_argument("--rows")
    parser.add_argument("--limit", type=float, default=60)
    parser.add_argument("builds", nargs="*")
    args = parser.parse_args()
    args.tr = os.path.abspath(args.tr)
    names = subprocess.run([BUILDS, "names"], capture_output=True, text=True, check=True).stdout.split()
    # These need a network, a disk or packages that are not there everywhere.
    names = [
        it
        for it in names
        if not re.match("network|install|cold|fsync|memory|tests-pytest|quota|others|.*(xdist|cargo|java)", it)
    ]
    rows = []
    if args.rows and os.path.exists(args.rows):
        with open(args.rows) as kept:
            rows = [json.loads(line) for line in kept]
    done = {(row["build"], row["around"]) for row in rows}
    for name in args.builds or names + list(MORE) + list(real.BUILDS):
        arounds = [it for it in args.around.split(",") if (name, it) not in done]
        if not arounds or takes_too_long(args, name):
            continue
        for around in arounds:
            row = measure(args, name, around)
            if row is None:
                break
            rows.append(row)
            print(list(table([row]))[-1], flush=True)
            if args.rows:
                with open(args.rows, "a") as kept:
                    kept.write(json.dumps(row) + "\n")
    load = os.getloadavg()[2]
    head = [
        "## Advice",
        "",
        f"By `benches/validation/validate.py` on {time.strftime('%Y-%m-%d')}, {os.cpu_count()} CPUs, {args.pairs} alternating pairs a row;",
        f"the mean load of the last 15 minutes, our own included, was {load:.1f}.",
        "",
        *summary(rows),
        "",
        *([results.link(args.csv), ""] if args.csv else table(rows)),
    ]
    if args.csv:
        results.write(args.csv, HEADER, map(cells, rows))
    if args.out:
        section.replace(args.out, "\n".join(head))
    else:
        print("\n".join(head))


if __name__ == "__main__":
    main()
