#!/usr/bin/env -S python3 -B
"""Builds the tests, runs their executables, and prints the reasons for skipped tests and a line of counts.

  test.py                   as the calling user; tests that record run as root, through sudo if available
  test.py --without-record  the same for a tr without tr record
  test.py --unprivileged    as nobody, without capabilities and without a way to gain any: the executables
                            that record, write or query the kernel; rights change none of the others

TR_LONG: all rounds and cases. jobs.py bounds an executable's time, and ends everything on an interrupt.
"""

import collections
import json
import os
import re
import subprocess
import sys
import time
from subprocess import DEVNULL, PIPE

import jobs
import users

os.chdir(os.path.dirname(os.path.dirname(os.path.realpath(__file__))))
TARGET = os.path.realpath(os.environ.get("CARGO_TARGET_DIR") or "target")
# These executables need the right to trace.
RECORD = {"ci", "loss", "record", "recorder", "waits"}
# The executable that runs its two groups of tests apart (TR_TESTS).
GROUPS = {"recorder": ("alone", "beside")}
# Of those that measure, or load the machine, one runs at a time. They are first: sudo remembers the password for a while.
MEASURE = ["recorder.alone", "record", "loss", "waits"]
# The longest of the others run beside these; then come the rest.
LONGEST = ["html", "fleet", "export", "simulated", "hostile", "lies", "reports", "recorder.beside", "ci"]
UNPRIVILEGED = RECORD | {"command_line", "imports", "marks", "outputs", "passthrough", "untraced"}
UNPRIVILEGED |= {"tr", "tr_bpf", "tr_output", "tr_record", "tr_symbols"}
WITHOUT_RECORD = ["--no-default-features", "--features=reading"]
WITHOUT_RECORD += ["--exclude=tr-bpf", "--exclude=tr-record", "--exclude=tr-symbols"]


def build(packages):
    """The executables with tests: the name, the path and the package's directory of each."""
    command = ["scripts/cargo.sh", "test", "--locked", *packages, "--no-run"]
    built = subprocess.run([*command, "--message-format=json-render-diagnostics"], stdout=PIPE, text=True)
    if built.returncode != 0:
        sys.exit(built.returncode)
    for artifact in map(json.loads, filter(None, built.stdout.splitlines())):
        if artifact.get("executable") and artifact["profile"]["test"]:
            path = artifact["executable"]
            yield re.sub("-[0-9a-f]+$", "", os.path.basename(path)), path, os.path.dirname(artifact["manifest_path"])


def prepare(mode):
    """Builds the tests; returns their jobs in order, and the users as whom they run."""
    packages, unprivileged = ["--workspace"], mode == "--unprivileged"
    if unprivileged and os.geteuid() != 0:
        sys.exit("test: only root can become nobody")
    if mode == "--without-record":
        print("test: without tr record; its tests are left out: the packages above are missing")
        packages += WITHOUT_RECORD
    tests = list(build(packages))
    of_mode = users.nobody(TARGET) if unprivileged else users.ordinary()
    order, found = [*MEASURE, *LONGEST], []
    for name, executable, directory in tests:
        for group in GROUPS.get(name, [""]):
            part = group and f".{group}"
            environment = ["env", f"TR_TESTS={group}"] if group else []
            command = [*(of_mode.root if name in RECORD else of_mode.caller), *environment, executable]
            job = jobs.Job(os.path.basename(executable) + part, command, directory, name + part in MEASURE)
            place = order.index(name + part) if name + part in order else len(order)
            if not unprivileged or name in UNPRIVILEGED:
                found.append((place, job))
    found = [job for _, job in sorted(found, key=lambda place_and_job: place_and_job[0])]
    if not unprivileged:
        examples = ["scripts/cargo.sh", "test", "--locked", *packages, "--doc"]
        found.append(jobs.Job("the examples of the documentation", examples, os.getcwd()))
    return found, of_mode


def test(prepared):
    """Runs the tests; returns the exit status."""
    output, broken = "", 0
    for job in jobs.run(prepared):
        text = jobs.read(job.log)
        print(f"\n     Running {job.name}: {time.monotonic() - job.begun:.0f} s\n{text}", end="")
        output += text
        if job.code != 0 and not job.has_result():
            broken += 1
            print(f"{job.name}: FAILED: no result, exit status {job.code}: {job.overdue or 'it has ended early'}")
    failed = [job.passed_alone() for job in prepared if job.code != 0]
    again = [test_and_output for passed, _ in failed for test_and_output in passed]
    print()
    for reason, number in sorted(collections.Counter(re.findall(r"\(skipped: .*\)", output)).items()):
        print(f"{number:7} {reason}")
    for name, lines in again:
        print(f"{name}: failed once, passed three times alone. The failure's output:\n{lines}", end="")
    results = re.findall(r"^test result: .* (\d+) passed; (\d+) failed; (\d+) ignored;", output, re.M)
    passed, failures, ignored = (sum(int(result[column]) for result in results) for column in range(3))
    print(f"{passed + len(again)} passed, {failures + broken - len(again)} failed, {ignored} skipped")
    return 0 if all(all_passed for _, all_passed in failed) else 1


def give_back():
    """Gives the files of root's tests to the user who owns the checkout."""
    if as_whom and as_whom.owner:
        subprocess.run([*jobs.sudo, "chown", "-R", as_whom.owner, f"{TARGET}/tmp"], stdin=DEVNULL, timeout=60)


# A make that a test starts would take these from make: to print the directories, to keep going.
for variable in ("MAKEFLAGS", "MAKELEVEL", "MFLAGS"):
    os.environ.pop(variable, None)
sys.stdout.reconfigure(line_buffering=True)
os.makedirs(f"{TARGET}/tmp", exist_ok=True)
status, as_whom = 1, None
with jobs.leaving_nothing_behind(give_back):
    prepared, as_whom = prepare("".join(sys.argv[1:]))
    jobs.sudo += as_whom.sudo
    status = test(prepared)
sys.exit(status)
