#!/usr/bin/env python3
"""Builds the tests, runs their executables, and prints the reasons for skipped tests and a line of counts.

  test.py                   as the calling user; tests that record run as root, through sudo if available
  test.py --without-record  the same for a tr without tr record
  test.py --unprivileged    as nobody, without capabilities and without a way to gain any: the executables
                            that record, write or query the kernel; rights change none of the others

LIMIT is an executable's time, QUIET its longest time without output, in s. TR_LONG: all rounds and cases.
An interrupt ends everything: whatever is started here stays below this process, because it is a child subreaper.
"""

import collections
import contextlib
import ctypes
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from subprocess import DEVNULL, PIPE

os.chdir(os.path.dirname(os.path.dirname(os.path.realpath(__file__))))
TARGET = os.path.realpath(os.environ.get("CARGO_TARGET_DIR") or "target")
LONG = [f"TR_LONG={os.environ['TR_LONG']}"] if "TR_LONG" in os.environ else []
LIMIT = float(os.environ.get("LIMIT") or 1800)
# A test has 300 s, or 1,200 s if LONG (tests/common).
QUIET = float(os.environ.get("QUIET") or (1320 if LONG else 420))
# So many executables run at once: they wait for much of their time.
SLOTS = 3
# These executables need the right to trace.
RECORD = {"ci", "loss", "record", "recorder", "waits"}
# Of those that measure, or load the machine, one runs at a time; of `recorder` that is the part `alone` (TR_TESTS).
MEASURE = ["recorder", "record", "loss", "waits"]
# Executables that record nothing in the kernel run beside these; then the longest; then the rest.
FIRST = ["html", "fleet", "export", "simulated", "hostile", "lies", "reports", "recorder", "ci"]
UNPRIVILEGED = RECORD | {
    "command_line",
    "imports",
    "marks",
    "outputs",
    "passthrough",
    "untraced",
    "tr",
    "tr_bpf",
    "tr_output",
    "tr_record",
    "tr_symbols",
}
NOBODY = [
    "setpriv",
    "--reuid=65534",
    "--regid=65534",
    "--clear-groups",
    "--inh-caps=-all",
    "--bounding-set=-all",
    "--no-new-privs",
]
WITHOUT_SUDO = ["env", *(f"--unset=SUDO_{name}" for name in ("UID", "GID", "USER", "COMMAND"))]
SIGNALS = [signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT]
libc = ctypes.CDLL(None, use_errno=True)
# The command that makes a command root's, and the user who gets the files of root's tests.
sudo, owner = [], None
running = []


class Interrupted(BaseException):
    """One of SIGNALS has arrived."""


def interrupt(number, _frame):
    ignore_signals()  # everything ends now
    raise Interrupted(number)


def ignore_signals():
    for number in SIGNALS:
        signal.signal(number, signal.SIG_IGN)


def show(text):
    sys.stdout.write(text)
    sys.stdout.flush()


def read(path):
    with contextlib.suppress(OSError), open(path, errors="replace") as file:
        return file.read()
    return ""


def descendants(root):
    """The processes below `root`, each after its parent."""
    children, found = collections.defaultdict(list), [root]
    for pid in filter(str.isdigit, os.listdir("/proc")):
        if stat := read(f"/proc/{pid}/stat"):
            children[int(stat.rpartition(")")[2].split()[1])].append(int(pid))
    for pid in found:
        found += children[pid]
    return found[1:]


def kill(pids, number):
    refused = []
    for pid in pids:
        try:
            os.kill(pid, number)
        except ProcessLookupError:
            pass
        except PermissionError:
            refused.append(str(pid))
    if refused and sudo:
        command = [*sudo, "kill", "-s", str(int(number)), *refused]
        with contextlib.suppress(subprocess.TimeoutExpired):
            subprocess.run(command, stdin=DEVNULL, stderr=DEVNULL, timeout=10)


def reap():
    """Reaps every process that has ended, also those that lost their parents; returns the jobs that have ended."""
    with contextlib.suppress(ChildProcessError):
        while (ended := os.waitpid(-1, os.WNOHANG))[0]:
            for job in running:
                if job.process.pid == ended[0]:
                    job.code = job.process.returncode = os.waitstatus_to_exitcode(ended[1])
    return [job for job in running if job.code is not None]


def end_everything(grace):
    """Ends all descendants: by SIGTERM, after `grace` seconds by SIGKILL."""
    begun = time.monotonic()
    kill(descendants(os.getpid()), signal.SIGTERM)
    while reap() is not None and (left := descendants(os.getpid())):
        passed = time.monotonic() - begun
        if passed > grace + 10:
            print(f"test: cannot end the processes {left}", file=sys.stderr)
            break
        if passed > grace:
            kill(left, signal.SIGKILL)
        time.sleep(0.05)


class Job:
    """An executable with tests, and the command that runs it."""

    def __init__(self, name, command, directory, measures=False):
        self.name, self.command, self.directory, self.measures = name, command, directory, measures
        self.code = self.overdue = None

    def start(self, log):
        self.begun = self.grown = time.monotonic()
        self.log, self.size = log, 0
        with open(log, "wb") as file:
            self.process = subprocess.Popen(self.command, cwd=self.directory, stdin=DEVNULL, stdout=file, stderr=file)

    def has_result(self):
        return re.search("^test result: ", read(self.log), re.M)

    def bound(self):
        """Ends the job if it exceeds a bound."""
        now, size = time.monotonic(), os.path.getsize(self.log)
        if size != self.size:
            self.size, self.grown = size, now
        if not self.overdue and now - self.begun > LIMIT:
            self.overdue = f"it has not ended after {LIMIT:g} s\n{self.standing()}"
        if not self.overdue and now - self.grown > QUIET:
            self.overdue = f"it has printed nothing for {QUIET:g} s\n{self.standing()}"
        if self.overdue:
            kill([self.process.pid, *descendants(self.process.pid)], signal.SIGKILL)

    def standing(self):
        """The tests that have not ended, and the job's processes."""
        threads, processes, listed = set(), "", ""
        for pid in [self.process.pid, *descendants(self.process.pid)]:
            with contextlib.suppress(OSError):
                threads |= {read(f"{task.path}/comm").strip() for task in os.scandir(f"/proc/{pid}/task")}
            words = read(f"/proc/{pid}/cmdline").replace("\0", " ")[:200]
            processes += f"  process {pid} waits in {read(f'/proc/{pid}/wchan')}: {words}\n"
        with contextlib.suppress(subprocess.TimeoutExpired):
            command = [*self.command, "--list"]
            listed = subprocess.run(command, cwd=self.directory, stdin=DEVNULL, stdout=PIPE, timeout=60).stdout.decode()
        ended = re.findall(r"^test (.+?) +\.\.\. (?:ok|FAILED|ignored)", read(self.log), re.M)
        left = [test for test in re.findall("^(.+): test$", listed, re.M) if test not in ended]
        # The thread of a test has its name, of which the kernel keeps 15 bytes.
        begun = [test for test in left if test[:15] in threads]
        return f"  {len(left)} tests have not ended; of these run: {', '.join(begun) or '?'}\n{processes}"

    def passed_alone(self):
        """The failed tests that pass three times alone, with their output; and whether those are all.

        A fault of tr fails again; a test that the machine's other load has disturbed passes. At most five are tried:
        more have a cause.
        """
        failed = re.findall(r"^test (.*\S) *\.\.\. FAILED$", read(self.log), re.M) if self.has_result() else []
        passed = []
        for test in failed if len(failed) <= 5 else []:
            rounds = [Job(f"alone.{n}", [*self.command, "--exact", test], self.directory, True) for n in range(3)]
            if any(job.code != 0 for job in run(rounds)):
                break
            output = rf"^---- {re.escape(test)}(?: stdout)? ----$.*?(?=^---- |^failures:$|^test result: )"
            passed.append((test, "".join(re.findall(output, read(self.log), re.M | re.S))))
        return passed, bool(failed) and len(passed) == len(failed)


def run(jobs):
    """Runs these, up to SLOTS at once; yields each when it has ended."""
    waiting = list(jobs)
    while waiting or running:
        measuring = any(job.measures for job in running)
        ready = [job for job in waiting if not (job.measures and measuring)]
        if ready and len(running) < SLOTS:
            waiting.remove(ready[0])
            ready[0].start(os.path.join(logs, ready[0].name))
            running.append(ready[0])
            continue
        for job in reap():
            running.remove(job)
            yield job
        for job in running:
            job.bound()
        time.sleep(0.05)


def as_root():
    """The command that makes a command root's; empty if there is none."""
    script = '. scripts/rights.sh; as_root "$1" && echo "${root[@]}"'
    purpose = "to run the tests that record: they need CAP_BPF and CAP_PERFMON"
    return subprocess.run(["bash", "-c", script, "bash", purpose], stdout=PIPE, text=True).stdout.split()


def become_nobody():
    """Makes this directory and TARGET accessible to all users, in a mount namespace of its own.

    An ancestor that is closed to others keeps no other entry.
    """

    def mount(*args):
        subprocess.run(["mount", *args], check=True)

    if libc.unshare(0x20000) != 0:  # CLONE_NEWNS
        sys.exit(f"test: no mount namespace: {os.strerror(ctypes.get_errno())}")
    mount("--make-rprivate", "/")
    places = [os.getcwd(), TARGET]
    held = [tempfile.mkdtemp() for _ in places]
    for place, copy in zip(places, held):
        mount("--bind", place, copy)
    for place, copy in zip(places, held):
        path = ""
        for part in place.strip("/").split("/"):
            path += f"/{part}"
            if subprocess.run([*NOBODY, "test", "-x", path]).returncode != 0:
                mount("-t", "tmpfs", "-o", "mode=755", "none", path)
            os.makedirs(path, exist_ok=True)
        mount("--move", copy, place)
        with contextlib.suppress(OSError):  # a tmpfs hides it now
            os.rmdir(copy)
    os.chdir(places[0])
    mount("-t", "tmpfs", "-o", "mode=1777", "none", f"{TARGET}/tmp")
    os.environ["HOME"] = f"{TARGET}/absent"


def build(packages):
    """The executables with tests: the name, the path and the package's directory of each."""
    command = ["scripts/cargo.sh", "test", "--locked", *packages, "--no-run"]
    built = subprocess.run([*command, "--message-format=json-render-diagnostics"], stdout=PIPE, text=True)
    if built.returncode != 0:
        sys.exit(built.returncode)
    artifacts = map(json.loads, filter(None, built.stdout.splitlines()))
    for artifact in artifacts:
        if artifact.get("executable") and artifact["profile"]["test"]:
            path = artifact["executable"]
            yield re.sub("-[0-9a-f]+$", "", os.path.basename(path)), path, os.path.dirname(artifact["manifest_path"])


def prepare(mode):
    """Builds the tests; returns their jobs in order."""
    global sudo, owner
    packages = ["--workspace"]
    if mode == "--without-record":
        show("test: without tr record; its tests are left out: the packages above are missing\n")
        packages += [
            "--no-default-features",
            "--features=reading",
            *(f"--exclude=tr-{crate}" for crate in ("bpf", "record", "symbols")),
        ]
    uid, gid = (int(subprocess.check_output(["id", option])) for option in ("-u", "-g"))
    if mode == "--unprivileged" and uid != 0:
        sys.exit("test: only root can become nobody")
    tests = list(build(packages))
    user, root, path, sudoer = [], [], os.environ["PATH"], os.environ.get("SUDO_UID", "0")
    if mode == "--unprivileged":
        become_nobody()
        tests = [test for test in tests if test[0] in UNPRIVILEGED]
        user = root = NOBODY
    elif uid == 0:
        root = WITHOUT_SUDO
        if sudoer != "0" and int(sudoer) == os.stat(".").st_uid:
            user = ["sudo", "-u", f"#{sudoer}", "-H", "env", f"PATH={path}", *LONG]
            owner = f"{sudoer}:{os.environ['SUDO_GID']}"
    elif sudo := as_root():
        root = [*sudo, "env", f"PATH={path}:/usr/sbin:/sbin", *LONG, *WITHOUT_SUDO]  # setcap is there
        owner = f"{uid}:{gid}"

    def jobs(names, measures=False):
        chosen = [test for test in tests if test[0] in names]
        for name, executable, directory in sorted(chosen, key=lambda test: names.index(test[0])):
            part = ("alone" if measures else "beside") if name == "recorder" else ""
            command = [*user, executable]
            if name in RECORD:
                command = [*root, *(["env", f"TR_TESTS={part}"] if part else []), executable]
            yield Job(os.path.basename(executable) + (part and f".{part}"), command, directory, measures)

    rest = [test[0] for test in tests if test[0] not in {*MEASURE, *FIRST}]
    # Those come first that sudo starts, while it remembers the password.
    found = [*jobs(MEASURE, True), *jobs(FIRST), *jobs(rest)]
    if mode != "--unprivileged":
        examples = ["scripts/cargo.sh", "test", "--locked", *packages, "--doc"]
        found.append(Job("the examples of the documentation", examples, os.getcwd()))
    return found


def test(mode):
    """Builds and runs the tests; returns the exit status."""
    jobs, output, broken = prepare(mode), "", 0
    for job in run(jobs):
        show(f"\n     Running {job.name}: {time.monotonic() - job.begun:.0f} s\n{read(job.log)}")
        output += read(job.log)
        if job.code != 0 and not job.has_result():
            broken += 1
            show(f"{job.name}: FAILED: no result, exit status {job.code}: {job.overdue or 'it has ended early'}\n")
    failed = [job.passed_alone() for job in jobs if job.code != 0]
    again = [test_and_output for passed, _ in failed for test_and_output in passed]
    reasons = collections.Counter(re.findall(r"\(skipped: .*\)", output))
    show("\n" + "".join(f"{number:7} {reason}\n" for reason, number in sorted(reasons.items())))
    for name, lines in again:
        show(f"{name}: failed once, passed three times alone. The failure's output:\n{lines}")
    results = re.findall(r"^test result: .* (\d+) passed; (\d+) failed; (\d+) ignored;", output, re.M)
    passed, failures, ignored = (sum(int(result[column]) for result in results) for column in range(3))
    show(f"{passed + len(again)} passed, {failures + broken - len(again)} failed, {ignored} skipped\n")
    return 0 if all(all_passed for _, all_passed in failed) else 1


# A make that a test starts would take these from make: to print the directories, to keep going.
for variable in ("MAKEFLAGS", "MAKELEVEL", "MFLAGS"):
    os.environ.pop(variable, None)
os.makedirs(f"{TARGET}/tmp", exist_ok=True)
libc.prctl(36, 1, 0, 0, 0)  # PR_SET_CHILD_SUBREAPER
logs, interrupted, status = tempfile.mkdtemp(), None, 1
try:
    for number in SIGNALS:
        if signal.getsignal(number) != signal.SIG_IGN:
            signal.signal(number, interrupt)
        elif number != signal.SIGHUP:  # nohup's
            # A shell's background job ignores these; the tests, which send them to programs, must not inherit that.
            signal.signal(number, lambda *_: None)
    status = test("".join(sys.argv[1:]))
except Interrupted as signal_number:
    interrupted = signal_number.args[0]
    print("test: interrupted; everything ends", file=sys.stderr)
finally:
    ignore_signals()
    end_everything(3 if interrupted else 0)
    shutil.rmtree(logs, ignore_errors=True)
    if owner:
        subprocess.run([*sudo, "chown", "-R", owner, f"{TARGET}/tmp"], stdin=DEVNULL, timeout=60)
if interrupted:
    # The program that started this one, as make, ends as well if this one is ended by the signal.
    signal.signal(interrupted, signal.SIG_DFL)
    os.kill(os.getpid(), interrupted)
sys.exit(status)
