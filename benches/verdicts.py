#!/usr/bin/env python3
"""Plants a fault beside one test of a suite and asks for the verdict on it: a table of docs/validation.md.

usage: benches/verdicts.py [--tr TR] [--runs N] [--suites a,b] [--keep DIR] [--pytest PYTHON] [PLANT...]

Each suite has four small tests and one, `subject`, that fails: because of a fault planted beside it
(tasks that spin, a quota, a throttled disk, a server that is late, ...), or by itself. Its verdict in
`tr analyze --report steps` is held to the plant: right, silent, or wrong. A failure of its own is right
if nothing is told. Suites and plants run in a cgroup with most of the CPUs, so that other load of the
machine does not count; where the kernel's own figure of the subject (/proc/self/schedstat) says that it
did all the same, a failure of its own is left out.
Needs root, cgroup v1, and the suites' tools; what is missing is skipped and said.
"""
import argparse
import collections
import contextlib
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))

# The tests' contents: `op.py small` or `op.py subject PLANT`. The status is that of the test.
OP = r"""
import fcntl, mmap, os, random, socket, subprocess, sys, threading, time
DIR = os.path.dirname(os.path.abspath(__file__))
def at(name): return os.path.join(DIR, name)
def work(seconds):
    end = time.thread_time() + seconds
    while time.thread_time() < end: sum(range(500))
def ask(port):
    with socket.create_connection(("127.0.0.1", port), timeout=10) as c:
        c.sendall(b"x"); c.recv(9)
def hold(seconds):
    with open(at("own-lock"), "w") as f:
        fcntl.flock(f, fcntl.LOCK_EX); open(at("held"), "w").close(); time.sleep(seconds)
def serve(seconds):
    s = socket.create_server(("127.0.0.1", 0))
    with open(at("own-port.new"), "w") as f: f.write(str(s.getsockname()[1]))
    os.rename(at("own-port.new"), at("own-port"))
    c = s.accept()[0]; c.recv(9); time.sleep(seconds); c.sendall(b"done")
def until(name):
    while not os.path.exists(at(name)): time.sleep(0.005)
def child(what, seconds):
    return subprocess.Popen([sys.executable, at("op.py"), what, str(seconds)])
def subject(plant):
    open(at("flag"), "w").close()
    if plant in ("hogs", "own", "quota", "none"): work(0.4)
    elif plant == "timeout":  # of a child that starves
        p = child("work", 0.4)
        try: return p.wait(timeout=1)
        except subprocess.TimeoutExpired: p.kill(); p.wait(); return 1
    elif plant == "disk":
        f = os.open(at("file"), os.O_RDONLY | os.O_DIRECT); m = mmap.mmap(-1, 1 << 20)
        for _ in range(4): os.readv(f, [m])
    elif plant == "memory":
        held = bytearray(48 << 20)
        for i in range(0, len(held), 4096): held[i] = 1
        for _ in range(9):
            with open(at("file"), "rb") as f:
                m = mmap.mmap(f.fileno(), 0, access=mmap.ACCESS_READ)
                for i in range(0, len(m), 4096): m[i]
                m.close()
    elif plant == "server": ask(int(open(at("port")).read()))
    elif plant == "lock":
        with open(at("lock"), "w") as f: fcntl.flock(f, fcntl.LOCK_EX)
    elif plant == "assert": work(0.02); return 1
    elif plant == "busy": work(1.2)
    elif plant == "sleep": time.sleep(1.2)
    elif plant == "crash": work(0.1); os.abort()
    elif plant == "own-server":
        p = child("serve", 1.2); until("own-port"); ask(int(open(at("own-port")).read())); p.wait()
    elif plant == "own-lock":
        p = child("hold", 1.2); until("held")
        with open(at("own-lock"), "w") as f: fcntl.flock(f, fcntl.LOCK_EX)
        p.wait()
    elif plant == "hang":
        lock = threading.Lock(); lock.acquire(); return int(not lock.acquire(timeout=1))
    return 0
def delay(): return int(open("/proc/thread-self/schedstat").read().split()[1])
def run(args):
    if args[0] == "small": work(0.05); return 0
    if args[0] in ("work", "hold", "serve"): {"work": work, "hold": hold, "serve": serve}[args[0]](float(args[1])); return 0
    start, before = time.monotonic(), delay()
    status = subject(args[1])
    wall = time.monotonic() - start
    with open(at("oracle"), "w") as f: f.write(f"{wall} {(delay() - before) / 1e9}")
    return status or int(wall > 0.8)
if __name__ == "__main__": sys.exit(run(sys.argv[1:]))
"""
SMALL = ["one", "two", "three", "four"]


def put(place, files):
    for name, text in files.items():
        path = os.path.join(place, name)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "w") as out:
            out.write(text)


def calls(plant):
    return [(name, ["small"]) for name in SMALL] + [("subject", ["subject", plant])]


def shell(place, words):
    return f"{sys.executable} {place}/op.py {' '.join(words)}"


def pytest(place, plant, python):
    tests = "".join(f"def test_{n}(): assert run({w!r}) == 0\n" for n, w in calls(plant))
    put(place, {"test_x.py": "from op import run\n" + tests})
    return ["env", f"PYTHONPATH={HERE}/integrations", python, "-m", "pytest", "-q", "-p", "pytest_tr_marks", "-p", "no:cacheprovider", "test_x.py"]


def prove(place, plant, _):
    for name, words in calls(plant):
        put(place, {f"t/{name}.t": f"#!/bin/sh\necho 1..1\n{shell(place, words)} && echo ok 1 || {{ echo not ok 1; exit 1; }}\n"})
    return ["prove", "-e", "sh", "t"]


def bats(place, plant, _):
    put(place, {"x.bats": "".join(f'@test "{n}" {{\n {shell(place, w)}\n}}\n' for n, w in calls(plant))})
    return ["bats", "x.bats"]


def ctest(place, plant, _):
    tests = "".join(f"add_test({n} {' '.join(shell(place, w).split())})\n" for n, w in calls(plant))
    put(place, {"CTestTestfile.cmake": tests})
    return ["ctest"]


def node(place, plant, _):
    one = "test('%s', () => { const r = spawnSync(%s, %s, { stdio: 'inherit' }); if (r.status !== 0) throw new Error('failed'); });\n"
    tests = "".join(one % (n, json.dumps(sys.executable), json.dumps([f"{place}/op.py", *w])) for n, w in calls(plant))
    put(place, {"x.test.mjs": "import test from 'node:test';\nimport { spawnSync } from 'node:child_process';\n" + tests})
    return ["node", "--import", f"{HERE}/integrations/node-marks.mjs", "--test", "x.test.mjs"]


def cargo(place, plant, _):
    one = "#[test]\nfn %s() { assert!(std::process::Command::new(%s).args(%s).status().unwrap().success()); }\n"
    tests = "".join(one % (n, json.dumps(sys.executable), "[" + ", ".join(map(json.dumps, [f"{place}/op.py", *w])) + "]") for n, w in calls(plant))
    put(place, {"Cargo.toml": '[package]\nname = "x"\nversion = "0.1.0"\nedition = "2021"\n[workspace]\n', "src/lib.rs": tests})
    subprocess.run(["cargo", "test", "--offline", "--no-run", "-q"], cwd=place, check=True)
    return ["cargo", "test", "--offline", "-q", "--", "--test-threads=1"]


SUITES = {"pytest": pytest, "prove": prove, "bats": bats, "ctest": ctest, "node": node, "cargo": cargo}
# What is told of each plant.
PLANTS = {
    "hogs": {"others"}, "timeout": {"others"}, "own": {"own_tasks"}, "quota": {"quota"}, "memory": {"memory"},
    "disk": {"disk"}, "server": {"server"}, "lock": {"lock"},
}
OWN = ["assert", "busy", "sleep", "crash", "own-server", "own-lock", "hang", "none"]

# Outside of the recording: waits for the flag, then acts.
DAEMON = r"""
import fcntl, os, socket, subprocess, sys, time
place, what = sys.argv[1:]
def flag():
    while not os.path.exists(place + "/flag"): time.sleep(0.005)
if what == "server":
    s = socket.create_server(("127.0.0.1", 0))
    open(place + "/port", "w").write(str(s.getsockname()[1]))
    c = s.accept()[0]; c.recv(9); time.sleep(1.3); c.sendall(b"done")
elif what == "lock":
    f = open(place + "/lock", "w"); fcntl.flock(f, fcntl.LOCK_EX)
    open(place + "/ready", "w").close(); flag(); time.sleep(1.3)
else:
    flag()
    all = [subprocess.Popen([sys.executable, "-c", "while 1: pass"]) for _ in range(4 * os.cpu_count())]
    time.sleep(2.5)
    for it in all: it.kill()
"""


def put_into(group):
    with open(os.path.join(group, "cgroup.procs"), "w") as procs:
        procs.write(str(os.getpid()))


class Groups:
    """Cgroups of a plant (v1)."""

    def __init__(self, place, plant):
        # All that runs here has most of the CPUs.
        self.all, self.suite = [], None
        group = f"/sys/fs/cgroup/cpu/tr-verdicts-{os.getpid()}"
        self.suite = group + "/suite"
        for it in (group, self.suite):
            os.makedirs(it, exist_ok=True)
            self.all.insert(0, it)
        self.limit(group, "cpu.shares", 262144)
        if plant == "quota":
            self.limit(self.suite, "cpu.cfs_quota_us", 20000)
        major, minor = os.major(os.stat(place).st_dev), os.minor(os.stat(place).st_dev)
        # Of a partition the disk has the limit.
        disk = os.path.realpath(f"/sys/dev/block/{major}:{minor}")
        if os.path.exists(f"{disk}/partition"):
            disk = os.path.dirname(disk)
        with open(f"{disk}/dev") as f:
            device = f.read().strip()
        limits = {
            "memory": ("memory", "memory.limit_in_bytes", 96 << 20),
            "disk": ("blkio", "blkio.throttle.read_bps_device", f"{device} 3000000"),
        }
        self.group = None
        if plant in limits:
            controller, file, value = limits[plant]
            self.group = f"/sys/fs/cgroup/{controller}/tr-verdicts-{os.getpid()}"
            os.makedirs(self.group, exist_ok=True)
            self.limit(self.group, file, value)

    @staticmethod
    def limit(group, file, value):
        with open(os.path.join(group, file), "w") as out:
            out.write(str(value))

    def leave(self):
        for group in [it for it in (self.group, *self.all) if it]:
            for _ in range(50):
                try:
                    os.rmdir(group)
                    break
                except OSError:
                    time.sleep(0.1)


def record(args, suite, plant, trace):
    place = tempfile.mkdtemp(prefix="tr-verdicts-", dir=args.work)
    put(place, {"op.py": OP})
    if plant in ("disk", "memory"):
        with open(os.path.join(place, "file"), "wb") as out:
            out.write(os.urandom(1 << 20) * (5 if plant == "disk" else 120))
            os.fsync(out.fileno())
            # Its pages would be this process's.
            os.posix_fadvise(out.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
    command = SUITES[suite](place, plant, args.pytest)
    if plant == "own":
        hogs = "\n".join([f'{sys.executable} -c "while 1: pass" & p="$p $!"'] * (4 * os.cpu_count()))
        script = f'{{ while [ ! -e flag ]; do sleep 0.01; done\n{hogs}\nsleep 2.5; kill $p; }} &\n"$@"; s=$?; wait; exit $s'
        command = ["sh", "-c", script, "sh", *command]
    groups, daemon = Groups(place, plant), None
    try:
        if plant in ("hogs", "timeout", "server", "lock"):
            what = "hogs" if plant == "timeout" else plant
            daemon = subprocess.Popen([sys.executable, "-c", DAEMON, place, what], start_new_session=True, preexec_fn=lambda: put_into(groups.suite))
            wanted = {"server": "port", "lock": "ready"}.get(what)
            while wanted and not os.path.exists(os.path.join(place, wanted)):
                time.sleep(0.01)
            time.sleep(0.05)
        # The recorder stays outside of the limits.
        entry = "import os, sys; " + (f"open({groups.group + '/cgroup.procs'!r}, 'w').write(str(os.getpid())); " if groups.group else "") + "os.execvp(sys.argv[1], sys.argv[1:])"
        run = subprocess.run([args.tr, "record", "--force", "-o", trace, "--", sys.executable, "-c", entry, *command], cwd=place, capture_output=True, text=True, timeout=60, stdin=subprocess.DEVNULL, preexec_fn=lambda: put_into(groups.suite))
        oracle = None
        with contextlib.suppress(OSError), open(os.path.join(place, "oracle")) as f:
            oracle = [float(it) for it in f.read().split()]
        return run, oracle
    finally:
        if daemon:
            os.killpg(daemon.pid, signal.SIGKILL)
            daemon.wait()
        groups.leave()
        shutil.rmtree(place, ignore_errors=True)


def told(args, trace):
    """The step of the subject, and the verdict if it was held back."""
    out = subprocess.run([args.tr, "analyze", trace, "--report", "steps", "--format", "json"], capture_output=True, text=True, check=True).stdout
    steps = [it for it in json.loads(out)["steps"]["steps"] if "subject" in it["name"] and it["kind"] == "test"]
    verdicts = [it["verdict"] for it in steps if it["verdict"] and it["verdict"]["held_back"]]
    failed = [it for it in steps if it["result"] not in (None, "passed") or (it["exit"] or {}).get("code") or (it["exit"] or {}).get("signal")]
    return steps, verdicts[-1]["is"] if verdicts else "", bool(failed)


def measure(args, suite, plant, n):
    trace = os.path.join(args.keep or args.work, f"{suite}-{plant}-{n}.bin")
    oracle = None
    if not os.path.exists(trace) or not args.keep:
        run, oracle = record(args, suite, plant, trace)
        if plant != "none" and run.returncode == 0:
            return "passed", "", oracle  # the fault was not large enough
    steps, verdict, failed = told(args, trace)
    if not steps:
        return "no step", "", oracle
    wanted = PLANTS.get(plant)
    if wanted is None and oracle and oracle[1] > 0.3 * oracle[0]:
        return "starved all the same", verdict, oracle
    if wanted is None:
        result = "wrong" if verdict else "right"
    else:
        result = "right" if verdict in wanted else "wrong" if verdict else "silent"
    return result, verdict, oracle


def main():
    parser = argparse.ArgumentParser(usage=__doc__)
    parser.add_argument("--tr", default=os.path.join(HERE, "target/release/tr"))
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--suites", default=",".join(SUITES))
    parser.add_argument("--pytest", default=sys.executable, help="a Python that has pytest")
    parser.add_argument("--keep")
    parser.add_argument("plants", nargs="*")
    args = parser.parse_args()
    args.tr = os.path.abspath(args.tr)
    if args.keep:
        os.makedirs(args.keep, exist_ok=True)
    counts = collections.Counter()
    confusion = collections.defaultdict(collections.Counter)
    loads = []
    # Not on a tmpfs: it has no disk.
    with tempfile.TemporaryDirectory(prefix="tr-verdicts-", dir="/var/tmp") as args.work:
        for suite in args.suites.split(","):
            for plant in args.plants or [*PLANTS, *OWN]:
                for n in range(args.runs):
                    try:
                        result, verdict, oracle = measure(args, suite, plant, n)
                    except (OSError, subprocess.SubprocessError) as error:
                        print(f"{suite} {plant}: skipped: {error}", flush=True)
                        break
                    loads.append(os.getloadavg()[0])
                    print(f"{suite} {plant} {n}: {result} {verdict} {oracle or ''}", flush=True)
                    counts[(plant in PLANTS, result)] += 1
                    if result in ("right", "wrong", "silent"):
                        confusion[plant][verdict or "nothing"] += 1
    columns = sorted({it for row in confusion.values() for it in row})
    print("\n| planted | " + " | ".join(columns) + " |\n| --- |" + " --- |" * len(columns))
    for plant, row in confusion.items():
        print(f"| {plant} | " + " | ".join(str(row[it] or "") for it in columns) + " |")
    right, silent, wrong = (counts[(True, it)] for it in ("right", "silent", "wrong"))
    false = wrong + counts[(False, "wrong")]
    starved = counts[(False, "starved all the same")]
    planted = right + silent + wrong
    print(f"\nplanted {planted}: right {right}, silent {silent}, wrong {wrong}; of their own {sum(v for (p, _), v in counts.items() if not p)}: told {counts[(False, 'wrong')]}, starved all the same {starved}; left out {counts[(True, 'passed')] + counts[(True, 'no step')]}")
    print(f"precision {right / max(right + false, 1):.3f}, recall {right / max(planted, 1):.3f}; load {min(loads, default=0):.0f} to {max(loads, default=0):.0f}")


if __name__ == "__main__":
    main()
