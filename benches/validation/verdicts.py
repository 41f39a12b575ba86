#!/usr/bin/env python3
"""Plants a fault beside one test of a suite and asks for the verdict on it: a table of docs/validation.md.

usage: benches/validation/verdicts.py [--tr TR] [--runs N] [--seconds N] [--suites a,b] [--keep DIR] [--modules DIR]
                              [--csv FILE] [PLANT...]

Each suite (plants/suites.py) has four small tests and one, `subject` (plants/op.py), that fails: because of a
fault beside it (plants/beside.py: tasks that spin, a throttled disk, a server that is late, ...; a quota and other limits of a
cgroup), by itself, or for a reason that no event tells. Its verdict in `tr analyze --report steps` is held to the plant: right,
silent, or wrong. A failure of its own is right if nothing is told. Suites and plants run in a cgroup with most of
the CPUs, so that other load of the machine does not count; where the kernel's own figure of the subject
(/proc/thread-self/schedstat) says that it did all the same, a failure of its own is left out, and where an unlimited subject
passed, the plant. Cells come in an order that is shuffled once, so that `--seconds` leaves a sample of all.
Needs root, cgroup v1, and the suites' tools (`--modules`: a node_modules with mocha, jest and vitest; Python needs
pytest); what is missing is skipped and said.
"""

import argparse
import collections
import contextlib
import json
import os
import random
import shutil
import subprocess
import sys
import tempfile
import time
import typing

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "plants"))
import groups  # noqa: E402
import results as tables  # noqa: E402
import suites  # noqa: E402


class Plant(typing.NamedTuple):
    subject: str
    told: set = frozenset()
    beside: str = ""
    limits: tuple = ()
    inside: str = ""
    file: int = 0
    loop: bool = False
    decided: bool = True


QUOTA = (("cpu", "cpu.cfs_quota_us", 20000),)
SHORT = (("cpu", "cpu.cfs_period_us", 20000), ("cpu", "cpu.cfs_quota_us", 4000))
MEMORY = (("memory", "memory.limit_in_bytes", 96),)
SHARED = (("memory", "memory.limit_in_bytes", 170),)
SLOW = (("blkio", "blkio.throttle.read_bps_device", 3000000),)
SLOW_WRITES = (("blkio", "blkio.throttle.write_bps_device", 3000000),)
FEW = (("blkio", "blkio.throttle.read_iops_device", 40),)
FEW_WRITES = (("blkio", "blkio.throttle.write_iops_device", 40),)
OTHERS, OWN = frozenset({"others"}), frozenset({"own_tasks"})
DISK, LATE, LOCK = frozenset({"disk"}), frozenset({"server"}), frozenset({"lock"})
# Of the build: it begins with the flag of the subject.
SPIN = f"{sys.executable} -c 'while 1: pass'"
TASKS = 4 * os.cpu_count()
SPINNERS = "\n".join([f'{SPIN} & p="$p $!"'] * TASKS) + "\nsleep 2.5; kill $p"
FORKS = (
    "\n".join(["{ i=0; while [ $i -lt 2000 ] && [ ! -e stop ]; do /bin/true; i=$((i+1)); done; } &"] * (2 * TASKS))
    + "\nsleep 2.5; : >stop; wait"
)
MAKE = f"make -s -j {TASKS} -f hogs.mk"
HOLDER = "flock lock sh -c 'while [ ! -e flag ]; do sleep 0.01; done; sleep 1.3'"
# What has to be told of each; of those with nothing, nothing.
PLANTS = {
    "hogs": Plant("work", OTHERS, "hogs"),
    "few-hogs": Plant("work", OTHERS, "hogs 2"),
    "always": Plant("work", OTHERS, "always"),
    "nice": Plant("work", OTHERS, "nice"),
    "forks": Plant("work", OTHERS, "forks"),
    "stress": Plant("work", OTHERS, "stress"),
    "openssl": Plant("work", OTHERS, "threads"),
    "weight": Plant("work", OTHERS, "hogs 1", (("beside", "cpu.shares", 8192),)),
    "timeout": Plant("timeout", OTHERS, "hogs"),
    "own": Plant("work", OWN, inside=SPINNERS),
    "own-forks": Plant("work", OWN, inside=FORKS),
    "own-make": Plant("work", OWN, inside=MAKE),
    "own-timeout": Plant("timeout", OWN, inside=SPINNERS),
    "quota": Plant("work", {"quota"}, limits=QUOTA),
    "short-quota": Plant("work", {"quota"}, limits=SHORT),
    "quota-above": Plant("work", {"quota"}, limits=(("above", "cpu.cfs_quota_us", 20000),)),
    "quota-threads": Plant("threads", {"quota"}, limits=QUOTA),
    "quota-timeout": Plant("timeout", {"quota"}, limits=QUOTA),
    "memory": Plant("squeezed", {"memory"}, limits=MEMORY, file=120),
    "memory-read": Plant("again", {"memory", "disk"}, limits=MEMORY, file=120),
    "memory-stress": Plant("squeezed", {"memory"}, "stress-memory", SHARED, file=120),
    "disk": Plant("direct", DISK, limits=SLOW, file=5),
    "disk-read": Plant("read", DISK, limits=SLOW, file=5),
    "disk-mapped": Plant("mapped", DISK, limits=SLOW, file=5),
    "disk-write": Plant("write", DISK, limits=SLOW_WRITES),
    "disk-iops": Plant("scattered", DISK, limits=FEW, file=5),
    "disk-commits": Plant("commits", DISK, limits=FEW_WRITES),
    "loop": Plant("direct", DISK, limits=SLOW, file=5, loop=True),
    "server": Plant("ask", LATE, "server"),
    "unix": Plant("unix", LATE, "unix"),
    "datagram": Plant("datagram", LATE, "datagram"),
    "trickle": Plant("trickle", LATE, "trickle"),
    "late-answer": Plant("late-answer", LATE, "server"),
    "client": Plant("client", LATE, "server"),
    "lock": Plant("flock", LOCK, "lock"),
    "lockf": Plant("lockf", LOCK, "lockf"),
    "semaphore": Plant("semaphore", LOCK, "semaphore"),
    "lock-child": Plant("locked-child", LOCK, "lock"),
    "lock-timeout": Plant("lock-in-time", LOCK, "lock"),
    "lock-build": Plant("flock", LOCK, inside=HOLDER),
    "stopped": Plant("stopped", {"outside"}, "stopped"),
}
# Of their own, or what no event tells; `none` fails at once for no reason.
SILENT = {
    it: Plant(it)
    for it in (
        "assert",
        "slow-assert",
        "status",
        "busy",
        "squares",
        "sleep",
        "exec",
        "abort",
        "segv",
        "own-server",
        "own-lock",
        "hang",
        "deadlock",
        "large",
        "pool",
        "silent-child",
        "retry",
        "pipe",
        "many",
        "full",
    )
}
SILENT |= {
    "polled": Plant("polled", beside="polled"),
    "wrong-answer": Plant("wrong-answer", beside="wrong-answer"),
    "assert-beside": Plant("assert", beside="always"),
    "status-beside": Plant("status", beside="always"),
    "sleep-beside": Plant("sleep", beside="always"),
    "hang-beside": Plant("hang", beside="always"),
    "own-lock-beside": Plant("own-lock", beside="always"),
    # It was starved, too: nobody can tell which of the two.
    "slow-beside": Plant("slow-assert", beside="always", decided=False),
}
ALL = {**PLANTS, **SILENT}
# A process that a report's tests are placed by has another name.
CLEAN = [
    "flag",
    "oracle",
    "port",
    "socket",
    "lock",
    "sem",
    "ready",
    "pid",
    "go",
    "held",
    "own-port",
    "own-lock",
    "held-by-others",
    "stop",
    "out",
    "file",
    "junit.xml",
]


def fill(path, size):
    with open(path, "wb") as out:
        out.write(os.urandom(1 << 20) * size)
        os.fsync(out.fileno())
        # Its pages would be this process's.
        os.posix_fadvise(out.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)


class Suite:
    """A suite in its directory, made when it is first asked for."""

    def __init__(self, name, args):
        self.name, self.place = name, os.path.join(args.work, name)
        os.makedirs(self.place)
        shutil.copy(os.path.join(HERE, "plants/op.py"), self.place)
        suites.put(
            self.place,
            {"hogs.mk": "all: " + " ".join(f"h{n}" for n in range(TASKS)) + f"\nh%:\n\t@timeout 2.5 {SPIN} || :\n"},
        )
        self.command, self.report = suites.SUITES[name](self.place, args.modules)
        if not shutil.which(self.command[0]) and not os.path.exists(os.path.join(self.place, self.command[0])):
            raise OSError(f"no {self.command[0]}")

    def at(self, name):
        return os.path.join(self.place, name)

    @contextlib.contextmanager
    def planted(self, plant):
        """The command and the groups, with the fault beside it."""
        for name in CLEAN:
            with contextlib.suppress(FileNotFoundError):
                os.unlink(self.at(name))
        suites.put(self.place, {"plan": plant.subject, "lock": ""})
        with contextlib.ExitStack() as stack:
            disk = self.place
            if plant.loop:
                loop = groups.Loop(self.place + "-loop")
                stack.callback(loop.leave)
                disk = loop.place
                os.symlink(f"{disk}/file", self.at("file"))
            if plant.file:
                # More than the memory that is left for its pages.
                more = suites.MEMORY.get(self.name, 0) if any(it[0] == "memory" for it in plant.limits) else 0
                fill(os.path.join(disk, "file"), plant.file + more)
            limited = stack.enter_context(
                contextlib.closing(groups.Groups(plant.limits, suites.MEMORY.get(self.name, 0), disk))
            )
            if plant.beside:
                self.begin(plant, limited, stack)
            command = self.command
            if plant.inside:
                script = f'{{ while [ ! -e flag ]; do sleep 0.01; done\n{plant.inside}\n}} &\n"$@"; s=$?; wait; exit $s'
                if plant.told == LOCK:
                    script = script.replace("while [ ! -e flag ]; do sleep 0.01; done", ":")
                command = ["sh", "-c", script, "sh", *command]
            # The recorder stays outside of the limits of memory and disk.
            into = "".join(f"open({it + '/cgroup.procs'!r}, 'w').write(str(os.getpid())); " for it in limited.entries)
            entry = f"import os, sys; {into}os.execvp(sys.argv[1], sys.argv[1:])"
            yield [sys.executable, "-c", entry, *command], limited

    def begin(self, plant, limited, stack):
        def into():
            limited.enter(beside="weight" in plant.beside or any(it[0] == "beside" for it in plant.limits))
            for it in limited.entries if plant.beside == "stress-memory" else []:
                groups.put_into(it)

        daemon = subprocess.Popen(
            [sys.executable, os.path.join(HERE, "plants/beside.py"), self.place, *plant.beside.split()],
            start_new_session=True,
            preexec_fn=into,
        )
        stack.callback(daemon.wait, 9)
        stack.callback(limited.kill)
        for _ in range(300):
            if os.path.exists(self.at("ready")) or os.path.exists(self.at("pid")):
                break
            time.sleep(0.01)


def record(args, suite, plant, trace):
    with suite.planted(plant) as (command, limited):
        run = subprocess.run(
            [args.tr, "record", "--force", "-o", trace, "--", *command],
            cwd=suite.place,
            capture_output=True,
            text=True,
            timeout=90,
            stdin=subprocess.DEVNULL,
            preexec_fn=limited.enter,
        )
    oracle = None
    with contextlib.suppress(OSError), open(suite.at("oracle")) as f:
        oracle = [round(float(it), 2) for it in f.read().split()]
    return run, oracle


def told(args, suite, trace):
    """Whether there are tests, and the verdict that is told of one: of the subject, if that is a step."""
    report = ["--with", suite.at(suite.report)] if suite.report and os.path.exists(suite.at(suite.report)) else []
    out = subprocess.run(
        [args.tr, "analyze", trace, *report, "--report", "steps", "--format", "json"],
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    steps = [it for it in json.loads(out)["steps"]["steps"] if it["kind"] == "test"]
    named = [it for it in steps if "subject" in it["name"]]
    verdicts = [it["verdict"]["is"] for it in named or steps if it["verdict"] and it["verdict"]["held_back"]]
    return bool(steps), verdicts[-1] if verdicts else ""


def measure(args, suite, name, n):
    plant = ALL[name]
    trace = os.path.join(args.keep or args.work, f"{suite.name}-{name}-{n}.bin")
    run, oracle = record(args, suite, plant, trace)
    if run.returncode == 0:
        return "passed", "", oracle  # the fault was not large enough
    any_step, verdict = told(args, suite, trace)
    if not any_step:
        return "no step", "", oracle
    if not plant.decided:
        return "undecided", verdict, oracle
    if not plant.told and not plant.beside and name not in ("pool", "many") and oracle and oracle[1] > 0.3 * oracle[0]:
        return "starved all the same", verdict, oracle
    if not plant.told:
        return "wrong" if verdict else "right", verdict, oracle
    return "right" if verdict in plant.told else "wrong" if verdict else "silent", verdict, oracle


def rates(counts):
    """Of results by (is planted, result): a line."""
    right, silent, wrong = (counts[(True, it)] for it in ("right", "silent", "wrong"))
    told_of_own, silent_of_own = counts[(False, "wrong")], counts[(False, "right")]
    out = {
        it: counts[(True, it)] + counts[(False, it)]
        for it in ("passed", "no step", "starved all the same", "undecided")
    }
    return (
        f"planted {right + silent + wrong}: right {right}, silent {silent}, wrong {wrong}; of their own or not to be seen "
        f"{told_of_own + silent_of_own}: told {told_of_own}; precision {right / max(right + wrong + told_of_own, 1):.3f}, "
        f"recall {right / max(right + silent + wrong, 1):.3f}; left out: "
        + ", ".join(f"{k} {v}" for k, v in out.items() if v)
    )


def print_tables(results):
    confusion = collections.defaultdict(collections.Counter)
    by_suite = collections.defaultdict(collections.Counter)
    for suite, name, result, verdict in results:
        by_suite[suite][(bool(ALL[name].told), result)] += 1
        if result in ("right", "wrong", "silent", "undecided"):
            confusion[name][verdict or "nothing"] += 1
    columns = sorted({it for row in confusion.values() for it in row})
    print("\n| planted | " + " | ".join(columns) + " |\n| --- |" + " --- |" * len(columns))
    for name in [it for it in ALL if it in confusion]:
        print(f"| {name} | " + " | ".join(str(confusion[name][it] or "") for it in columns) + " |")
    print()
    for suite, counts in by_suite.items():
        print(f"{suite}: {rates(counts)}")
    for title, names in (("made with", suites.MADE_WITH), ("not made with", suites.HELD), ("all", suites.SUITES)):
        print(f"{title}: {rates(sum((by_suite[it] for it in names), collections.Counter()))}")


def main():
    parser = argparse.ArgumentParser(usage=__doc__.replace("%", "%%"))
    parser.add_argument("--tr", default=os.path.join(HERE, "../../target/release/tr"))
    parser.add_argument("--runs", type=int, default=1)
    parser.add_argument("--seconds", type=float, default=float("inf"), help="begin no cell later")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--suites", default=",".join(suites.SUITES))
    parser.add_argument("--modules", default="/usr/share/nodejs")
    parser.add_argument("--keep", help="a directory for the recordings")
    parser.add_argument("--csv", help="the cells as CSV")
    parser.add_argument("plants", nargs="*")
    args = parser.parse_args()
    args.tr = os.path.abspath(args.tr)
    args.modules = os.path.abspath(args.modules)
    if args.keep:
        os.makedirs(args.keep, exist_ok=True)
    cells = [
        (suite, name, n) for n in range(args.runs) for suite in args.suites.split(",") for name in args.plants or ALL
    ]
    random.Random(args.seed).shuffle(cells)
    results, loads, made, start = [], [], {}, time.monotonic()
    # Not on a tmpfs: it has no disk.
    with groups.most_of_the_cpus(), tempfile.TemporaryDirectory(prefix="tr-verdicts-", dir="/var/tmp") as args.work:
        for suite, name, n in cells:
            if time.monotonic() - start > args.seconds:
                break
            try:
                if suite not in made:
                    made[suite] = None
                    made[suite] = Suite(suite, args)
                if not made[suite]:
                    continue
                begin = time.monotonic()
                result, verdict, oracle = measure(args, made[suite], name, n)
            except (OSError, subprocess.SubprocessError) as error:
                print(f"{suite} {name}: skipped: {error} {(getattr(error, 'stderr', None) or b'')[-300:]}", flush=True)
                continue
            loads.append(os.getloadavg()[0])
            print(f"{suite} {name} {n}: {result} {verdict} {oracle or ''} {time.monotonic() - begin:.0f} s", flush=True)
            results.append((suite, name, result, verdict))
    print_tables(results)
    if args.csv:
        header = ["suite", "planted", "result", "verdict"]
        tables.write(args.csv, header, (dict(zip(header, cell)) for cell in results))
    print(f"{len(results)} of {len(cells)} cells, load {min(loads, default=0):.0f} to {max(loads, default=0):.0f}")


if __name__ == "__main__":
    main()
