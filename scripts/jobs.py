"""Runs commands with tests side by side, bounds their time, and leaves no process behind.

Whatever a command starts stays below this process, because it is a child subreaper.
"""

import collections
import contextlib
import ctypes
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from subprocess import DEVNULL, PIPE

# The longest time of a command in s, and its longest time without output: a test has 300 s, or 1,200 s if TR_LONG
# (tests/common).
LIMIT = float(os.environ.get("LIMIT") or 1800)
QUIET = float(os.environ.get("QUIET") or (1320 if "TR_LONG" in os.environ else 420))
# So many commands run at once: they wait for much of their time.
SLOTS = 3
SIGNALS = [signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT]
running = []
logs = tempfile.mkdtemp()
# The command that makes a command root's, if there is one.
sudo = []


class Interrupted(BaseException):
    """One of SIGNALS has arrived."""


def interrupt(number, _frame):
    ignore_signals()  # everything ends now
    raise Interrupted(number)


def ignore_signals():
    for number in SIGNALS:
        signal.signal(number, signal.SIG_IGN)


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


@contextlib.contextmanager
def leaving_nothing_behind(afterwards):
    """Ends everything that was started inside, also if a signal interrupts it, and then calls `afterwards`.

    The signal ends this process, too.
    """
    ctypes.CDLL(None).prctl(36, 1, 0, 0, 0)  # PR_SET_CHILD_SUBREAPER
    interrupted = None
    try:
        for number in SIGNALS:
            if signal.getsignal(number) != signal.SIG_IGN:
                signal.signal(number, interrupt)
            elif number != signal.SIGHUP:  # nohup's
                # A shell's background job ignores these; the tests, which send them to programs, must not inherit that.
                signal.signal(number, lambda *_: None)
        yield
    except Interrupted as signal_number:
        interrupted = signal_number.args[0]
        print("test: interrupted; everything ends", file=sys.stderr)
    finally:
        ignore_signals()
        end_everything(3 if interrupted else 0)
        shutil.rmtree(logs, ignore_errors=True)
        afterwards()
    if interrupted:
        # The program that started this one, as make, ends as well if this one is ended by the signal.
        signal.signal(interrupted, signal.SIG_DFL)
        os.kill(os.getpid(), interrupted)
