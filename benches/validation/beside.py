#!/usr/bin/env python3
"""Compares forecasts from recordings beside two busy loops with real runs: a section of docs/validation.md.

usage: sudo benches/validation/beside.py [--tr TR] [--keep DIR] [--repeat N] [--csv FILE] [--out PAGE] [BUILD...]

Each build is recorded beside two loops that never sleep, which share a group of the scheduler with it (`together`) or
have one of their own (`apart`), as in another session or another cgroup. Forecasts with and without the loops, with
other jobs, with other work are compared with real runs in just that setting. Each real run is made N times; their
median counts.

Other work of the machine: build and loops are in a cgroup that has 256 times the share of any other, so that nobody
but the loops takes much; a real run without loops has real-time priority. What others took is measured (all CPU time
of the machine, without that of the loops, the build and the recorder; of a run without loops the part of its time in
which it did not get a CPU), and is in the rows. A run of which they had more than a twentieth, or the hypervisor a
fiftieth, is made again, twice at most. The published rows have one real run each. --keep keeps the recordings;
--from DIR forecasts anew from them and runs nothing.
"""

import argparse
import contextlib
import glob
import json
import os
import resource
import shutil
import statistics
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import predict  # noqa: E402
import real  # noqa: E402
import results  # noqa: E402
from predict import BUILDS_OF, Build, fixed  # noqa: E402
from validate import HERE, QUIET, at_once, section  # noqa: E402

TICK = os.sysconf("SC_CLK_TCK")
# A run is made again beside more than these parts of the CPUs, so many times.
OTHERS, STOLEN, AGAIN = 0.05, 0.02, 2
# A run beside loops counts if others had no more than this part of the CPUs.
DISTURBED = 0.1
LOOP = "while True: pass"
TOOLS = ("/usr/lib/gcc/*/*/cc1", "/usr/lib/gcc/*/*/collect2", "/usr/bin/*-linux-gnu-[agl]*", "/usr/bin/[mns][aeioh]*")
# Other programs of this folder may run meanwhile.
real.PLACE = "/dev/shm/tr-beside-build"
# More than any other cgroup or session has.
ROOTS = (("/sys/fs/cgroup/cpu", "cpu.shares", "262144", "1024"), ("/sys/fs/cgroup", "cpu.weight", "10000", "100"))

C_FILES = {
    "%s.c" % name: predict.C_FILE.replace("%s", name) + "int %s(void) { return %d; }\n" % (name, at)
    for at, name in enumerate(("one", "two", "three", "four", "five", "six", "seven", "eight"))
}
NINJA = "rule cc\n  command = cc -O2 -c -o $out $in\nrule ld\n  command = cc -shared -o $out $in\n" + "".join(
    "build %s.o: cc %s\n" % (name[:-2], name) for name in C_FILES
)
NINJA += "build lib.so: ld %s\n" % " ".join(name[:-1] + "o" for name in C_FILES)
NEW = {
    "ninja": Build(
        {"build.ninja": NINJA, **C_FILES}, command=lambda jobs: ["ninja", "--quiet", "-j%d" % jobs], fast="cc1"
    ),
    "cc-make": Build(
        {
            "Makefile": "all: %s\n%%.o: %%.c\n\tcc -O2 -c -o $@ $<\n" % " ".join(name[:-1] + "o" for name in C_FILES),
            **C_FILES,
        }
    ),
    "parallel": Build(
        {"x": "burn"},
        command=lambda jobs: ["sh", "-c", "seq 80 40 400 | parallel -j %d ./burn" % jobs],
    ),
    "sleeps": Build(
        {
            "run.sh": "for n in 1 2 3; do ./burn 200 & sleep 0.4; ./burn 150; wait; done\n./burn 300 & ./burn 300 & ./burn 300 & wait\nsleep 0.3\n./burn 100\n"
        },
        command=fixed("sh", "run.sh"),
    ),
    "pytest-sleeps": Build(
        {
            "test_x.py": "import hashlib, pytest, time\n@pytest.mark.parametrize('n', range(6))\ndef test_x(n):\n    h = b'x'\n    for i in range(250000 * (1 + n % 3)): h = hashlib.md5(h).digest()\n    time.sleep(0.1 * (n % 2))\n"
        },
        command=fixed("/usr/bin/pytest", "-q", "test_x.py"),
    ),
}
JOBS = [("-j%d" % jobs, ["--jobs", str(jobs)], {"jobs": jobs}) for jobs in (1, 4)]
TWICE = ("burn × 2", ["--faster", "burn=0.5"], {"env": {"BURN_SCALE": "2"}})
HALF = ("burn × 0.5", ["--faster", "burn=2"], {"env": {"BURN_SCALE": "0.5"}})
KEPT = "touch gen; for n in a c e g i; do echo > $n; done"
LEFT_OUT = "burn 200|^cp [acegi] |burn (60|140|220|300|380) > [acegi]$"
# Of each build: what is tried, the options of the forecast, and how the real run is made.
TRIED = {
    "make-chain": [*JOBS, TWICE, ("gen and 5 of 10 cached", ["--without", LEFT_OUT], {"before": KEPT})],
    "make-tests": [*JOBS, TWICE],
    "cc-make": [*JOBS, ("3 of 8 cached", ["--cached", "^cc =0.375"], {"before": "touch one.o four.o seven.o"})],
    "zlib": JOBS,
    "xargs": [*JOBS, HALF],
    "shell": [TWICE, ("without sleep", ["--without", "^sleep 0.7"], {"env": {"NO_SLEEP": "1"}})],
    "sleeps": [TWICE],
    "ninja": JOBS,
    "parallel": [*JOBS, TWICE],
    "bats": [HALF],
    # The model was not changed with these.
    "twice": [("cc1 × 2", ["--faster", "cc1=0.5"], {"env": {"FLAGS": "-B./twice/"}})],
    "prove": [TWICE],
    "pytest-sleeps": [],
    "node-test": [],
    "xz-pipe": [],
    "rustc-make": JOBS,
    "cargo": [],
    "javac-xargs": JOBS,
    "objects-so": JOBS,
    "compileall": [],
    "npm": [],
    "zlib-cmake": JOBS,
    "many-jobs": JOBS,
    "big-last": JOBS,
    "generator": JOBS,
    "rake": [],
}
FIRST = ("make-chain", "make-tests", "cc-make", "zlib", "xargs", "shell", "sleeps", "ninja", "parallel", "bats")
HEADER = ["build", "loops", "what", "recorded_s", "forecast_s", "low_s", "high_s", "real_s", "error_percent"]
HEADER += ["covered", "allowed", "others_percent"]


class Group:
    """A cgroup with by far the largest share of the CPUs, with one for the build and one for the loops."""

    def __init__(self):
        for root, file, most, one in ROOTS:
            self.top = os.path.join(root, "tr-beside-%d" % os.getpid())
            with contextlib.suppress(OSError):
                os.makedirs(self.top, exist_ok=True)
                put(self.top, file, most)
                with contextlib.suppress(OSError):
                    put(self.top, "cgroup.subtree_control", "+cpu")
                for name in ("build", "loops"):
                    os.makedirs(os.path.join(self.top, name), exist_ok=True)
                    put(os.path.join(self.top, name), file, one)
                return
        sys.exit("no cgroup for shares of the CPUs")

    def enter(self, name):
        """What a child does before its exec."""
        return lambda: put(os.path.join(self.top, name), "cgroup.procs", str(os.getpid()))

    def remove(self):
        time.sleep(0.2)
        for name in ("build", "loops", ""):
            with contextlib.suppress(OSError):
                os.rmdir(os.path.join(self.top, name))


def put(directory, file, value):
    with open(os.path.join(directory, file), "w") as out:
        out.write(value)


def machine_s():
    """The CPU seconds of all tasks, and those that the hypervisor took."""
    with open("/proc/stat") as stat:
        user, nice, system, _, _, irq, softirq, steal = map(int, stat.readline().split()[1:9])
    return (user + nice + system + irq + softirq) / TICK, steal / TICK


def cpu_s(pid):
    """The CPU seconds of a process."""
    with open("/proc/%d/stat" % pid) as stat:
        fields = stat.read().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / TICK


class Runs(predict.Runs):
    """The real runs of one build beside loops and alone, and their recordings."""

    def __init__(self, args, name, work, group):
        super().__init__(args, name, work)
        self.group, self.repeat = group, args.repeat

    def prepared(self):
        if self.there is None:
            self.there = self.build.make(self.source)
            if self.there:
                warm = real.run_in(self.source)
                with predict.server(0.1) as port:
                    environment = {**real.environment(warm), "PORT": str(port)}
                    command = ["timeout", "-k1", "60", *self.build.command(2)]
                    done = subprocess.run(command, cwd=warm, check=False, env=environment, **QUIET)
                self.there = done.returncode == 0
            if not self.there:
                print("%s: its sources or tools are not there" % self.name, file=sys.stderr)
        return self.there

    def made(self, key, loops, **how):
        """The recording of a run, or None, and the part of the CPUs that others had meanwhile."""
        trace = os.path.join(self.place, "%s-%s.bin" % (self.name, key))
        if not os.path.exists(trace):
            if self.again or not self.prepared():
                return None, None
            for _ in range(1 + AGAIN):
                others, stolen = self.run_once(trace, loops, **how)
                if others is None:
                    return None, None
                others = others if loops else self.held_up(trace)
                if others <= OTHERS and stolen <= STOLEN:
                    break
        if not loops:
            return trace, self.held_up(trace)
        with open(trace + ".others") as kept:
            return trace, float(kept.read())

    def held_up(self, trace):
        """The part of a run's time in which others had the CPUs that it wanted, as others with real-time priority may."""
        verdict = self.verdict(trace)
        return (verdict["others_ns"] + verdict["nobody_ns"]) / verdict["wall_ns"] if verdict else 1

    def read_tools(self):
        """Reads the compilers' files, which the kernel may have dropped from the page cache meanwhile."""
        for pattern in TOOLS:
            for path in glob.glob(pattern):
                with contextlib.suppress(OSError), open(path, "rb") as file:
                    while file.read(1 << 20):
                        pass

    def run_once(self, trace, loops, jobs=2, env=None, before=None, delay=0.1):
        """Records one run. The parts of the CPUs that others and the hypervisor had."""
        place = real.run_in(self.source)
        self.read_tools()
        if before:
            subprocess.run(before, cwd=place, shell=True, check=True, **QUIET)
        enter = self.group.enter("build") if loops else at_once
        beside = self.group.enter("build" if loops == "together" else "loops")
        spinners = []
        command = [self.tr, "record", "-q", "--force", "-o", trace + ".new", "--", *self.build.command(jobs)]
        environment = {**real.environment(place), **(env or {})}
        try:
            if loops:
                for _ in "12":
                    spinners.append(subprocess.Popen([sys.executable, "-c", LOOP], preexec_fn=beside))
                time.sleep(0.3)
            with predict.server(delay) as port:
                spun, (all_s, stolen) = sum(cpu_s(it.pid) for it in spinners), machine_s()
                used, start = resource.getrusage(resource.RUSAGE_CHILDREN), time.monotonic()
                done = subprocess.run(
                    command,
                    cwd=place,
                    check=False,
                    env={**environment, "PORT": str(port)},
                    preexec_fn=enter,
                    **QUIET,
                )
                wall, now = time.monotonic() - start, machine_s()
                spun = sum(cpu_s(it.pid) for it in spinners) - spun
                after = resource.getrusage(resource.RUSAGE_CHILDREN)
        finally:
            for spinner in spinners:
                spinner.kill()
                spinner.wait()
        if done.returncode:
            print("  %s: exit status %d" % (trace, done.returncode), file=sys.stderr)
            return None, None
        own = after.ru_utime + after.ru_stime - used.ru_utime - used.ru_stime
        whole = wall * os.cpu_count()
        others = max(0, now[0] - all_s - spun - own) / whole
        os.rename(trace + ".new", trace)
        with open(trace + ".others", "w") as out:
            out.write("%.4f" % others)
        return others, (now[1] - stolen) / whole

    def times(self, key, loops, **how):
        """The median time in ns of the real runs, and the largest part of the CPUs that others had beside them."""
        found = [self.made("%s-%d" % (key, at), loops, **how) for at in range(self.repeat)]
        walls = [(self.clock(trace)[0], others) for trace, others in found if trace]
        if not walls:
            return None
        return statistics.median(wall for wall, _ in walls), max(others for _, others in walls)

    def with_base(self, measured, base):
        """The median of real runs and of the recorded one, which a forecast from another recording has not seen."""
        if not base[0] or not measured:
            return measured
        return statistics.median([measured[0], self.clock(base[0])[0]]), max(measured[1], base[1])

    def verdict(self, trace):
        command = [self.tr, "analyze", trace, "--report", "advice", "--format", "json"]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        return (json.loads(done.stdout) if done.returncode == 0 else {}).get("advice", {}).get("verdict")

    def first_screen(self, trace):
        """The time that the first screen says the build takes on its CPUs alone: least, likely, most, in ns."""
        verdict = self.verdict(trace)
        return verdict and [verdict[key] for key in ("alone_at_least_ns", "alone_ns", "alone_at_most_ns")]


def rows(runs, name):
    """The rows of a build, one by one."""
    alone = {"alone": runs.times("alone", None)}
    for what, _, how in TRIED[name]:
        alone[what] = runs.times("alone " + what, None, **how)
    for loops in ("together", "apart"):
        base = runs.made(loops, loops)

        def row(what, found, measured, base=base, allowed=True, loops=loops):
            if not found or not measured or not base[0]:
                return None
            (low, likely, high), (wall, beside) = found, measured
            without = what.startswith(("alone", "first"))
            return {
                "build": name,
                "loops": loops,
                "what": what,
                "recorded": runs.clock(base[0])[0],
                "low": low,
                "likely": likely,
                "high": high,
                "real": wall,
                "error": likely / wall - 1,
                "covered": low <= wall <= high,
                "allowed": allowed,
                "others": beside if without else max(base[1], beside),
            }

        def forecast(what, options, measured, base=base, row=row):
            found = runs.predict(base[0], *options) if base[0] and measured else None
            if not found:
                return None
            allowed = not any("does not allow" in text for text in found.get("warnings") or [])
            bounds = [found["wall"][key] for key in ("low_ns", "likely_ns", "high_ns")]
            return row(what, bounds, measured, base, allowed)

        yield row("first screen", base[0] and runs.first_screen(base[0]), alone["alone"])
        yield forecast("alone", ["--alone"], alone["alone"])
        beside = {"again": runs.times(loops + " again", loops)}
        yield forecast("again", [], beside["again"])
        for what, options, how in TRIED[name]:
            yield forecast("alone, " + what, ["--alone", *options], alone[what])
            beside[what] = runs.times("%s %s" % (loops, what), loops, **how)
            yield forecast(what, options, beside[what])
        if "-j4" in beside:
            many = runs.made(loops + " -j4-0", loops, jobs=4)
            yield forecast("-j4 → -j2", ["--jobs", "2"], runs.with_base(beside["again"], base), many)
            yield forecast("-j4 → -j1", ["--jobs", "1"], beside["-j1"], many)


def kind(row):
    what = row["what"]
    if what.startswith(("alone", "first screen")):
        return "without the loops"
    if what == "again":
        return "beside them, unchanged"
    if "→" in what:
        return "beside them, other jobs than -j4"
    return "beside them, other jobs than -j2" if what.startswith("-j") else "beside them, other work"


def cells(row):
    keys = {"recorded_s": "recorded", "forecast_s": "likely", "low_s": "low", "high_s": "high", "real_s": "real"}
    return {
        **{key: row[key] for key in ("build", "loops", "what")},
        **{title: "%.2f" % (row[key] / 1e9) for title, key in keys.items()},
        "error_percent": round(100 * row["error"]),
        "covered": "yes" if row["covered"] else "no",
        "allowed": "yes" if row["allowed"] else "no",
        "others_percent": round(100 * row["others"]),
    }


def is_calm(row):
    """Whether others had little of the CPUs, or kept a run without loops from them for a short time."""
    return row["others"] <= DISTURBED


def line(title, part):
    given = [row for row in part if row["allowed"]]
    covered = sum(row["covered"] for row in given)
    median = predict.spread(row["error"] for row in given)[0] if given else 0
    return "| %s | %d | %.1f%% | %d |" % (title, len(given), median, covered)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tr", default=os.path.join(HERE, "target/release/tr"))
    parser.add_argument("--repeat", type=int, default=3, help="real runs of a setting, of which the median counts")
    parser.add_argument("--out", help="a page: its section gets the sums")
    parser.add_argument("--csv", help="the rows as CSV")
    parser.add_argument("--keep", help="a directory for the recordings: those that are there are not made again")
    parser.add_argument("--from", dest="kept", metavar="DIR", help="run nothing: use the recordings of --keep DIR")
    parser.add_argument("builds", nargs="*", help="names; default: all")
    args = parser.parse_args()
    args.tr, args.until, args.limit, args.clock = os.path.abspath(args.tr), 1 << 60, 60, True
    BUILDS_OF.update(NEW)
    found, group = [], None if args.kept else Group()
    try:
        for name in args.builds or TRIED:
            with tempfile.TemporaryDirectory(dir="/dev/shm") as work:
                for row in rows(Runs(args, name, work, group), name):
                    if row:
                        found.append(row)
                        print(" ".join("%s" % value for value in cells(row).values()), flush=True)
    finally:
        if group:
            group.remove()
        shutil.rmtree(real.PLACE, ignore_errors=True)
    disturbed = len(found)
    found = list(filter(is_calm, found))
    disturbed -= len(found)
    kinds = {}
    for row in found:
        kinds.setdefault(kind(row), []).append(row)
    others = [row for row in found if row["build"] not in FIRST]
    lines = [
        "`benches/validation/beside.py`, %s: recorded beside two loops, in the build's group of the scheduler or in their own."
        % time.strftime("%Y-%m-%d"),
        "The upper bound is %.1f times the lower one (median)."
        % statistics.median(row["high"] / row["low"] for row in found),
        "",
        "| what | forecasts | median error | covered |",
        "| --- | ---: | ---: | ---: |",
        *(line(name, kinds[name]) for name in sorted(kinds)),
        line("all of new builds", others),
    ]
    if args.csv:
        results.write(args.csv, HEADER, map(cells, found))
        lines += ["", results.link(args.csv)]
    refused = sum(not row["allowed"] for row in found)
    print("%d rows beside which others had too much are not counted; %d were not allowed" % (disturbed, refused))
    print("%d: %.1f %%, %.1f %% in the 90th percentile" % (len(found), *predict.spread(row["error"] for row in found)))
    if args.out:
        section.replace(args.out, "\n".join(["## Forecasts beside two loops", "", *lines]))
    else:
        print("\n".join(lines))


if __name__ == "__main__":
    main()
