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
import nobody

os.chdir(os.path.dirname(os.path.dirname(os.path.realpath(__file__))))
TARGET = os.path.realpath(os.environ.get("CARGO_TARGET_DIR") or "target")
LONG = [f"TR_LONG={os.environ['TR_LONG']}"] if "TR_LONG" in os.environ else []
# These executables need the right to trace.
RECORD = {"ci", "loss", "record", "recorder", "waits"}
# Of those that measure, or load the machine, one runs at a time; of `recorder` that is the part `alone` (TR_TESTS).
MEASURE = ["recorder", "record", "loss", "waits"]
# Executables that record nothing in the kernel run beside these; then the longest; then the rest.
FIRST = ["html", "fleet", "export", "simulated", "hostile", "lies", "reports", "recorder", "ci"]
UNPRIVILEGED = RECORD | {"command_line", "imports", "marks", "outputs", "passthrough", "untraced"}
UNPRIVILEGED |= {"tr", "tr_bpf", "tr_output", "tr_record", "tr_symbols"}
WITHOUT_SUDO = ["env", *(f"--unset=SUDO_{name}" for name in ("UID", "GID", "USER", "COMMAND"))]
# The user who gets the files of root's tests.
owner = None


def show(text):
    sys.stdout.write(text)
    sys.stdout.flush()


def root_command():
    """The command that makes a command root's; empty if there is none."""
    script = '. scripts/rights.sh; as_root "$1" && echo "${root[@]}"'
    purpose = "to run the tests that record: they need CAP_BPF and CAP_PERFMON"
    return subprocess.run(["bash", "-c", script, "bash", purpose], stdout=PIPE, text=True).stdout.split()


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
    global owner
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
        nobody.make_accessible(os.getcwd(), TARGET)
        tests = [test for test in tests if test[0] in UNPRIVILEGED]
        user = root = nobody.COMMAND
    elif uid == 0:
        root = WITHOUT_SUDO
        if sudoer != "0" and int(sudoer) == os.stat(".").st_uid:
            user = ["sudo", "-u", f"#{sudoer}", "-H", "env", f"PATH={path}", *LONG]
            owner = f"{sudoer}:{os.environ['SUDO_GID']}"
    elif as_root := root_command():
        jobs.sudo += as_root
        root = [*as_root, "env", f"PATH={path}:/usr/sbin:/sbin", *LONG, *WITHOUT_SUDO]  # setcap is there
        owner = f"{uid}:{gid}"

    def chosen(names, measures=False):
        of_names = [test for test in tests if test[0] in names]
        for name, executable, directory in sorted(of_names, key=lambda test: names.index(test[0])):
            part = ("alone" if measures else "beside") if name == "recorder" else ""
            command = [*user, executable]
            if name in RECORD:
                command = [*root, *(["env", f"TR_TESTS={part}"] if part else []), executable]
            yield jobs.Job(os.path.basename(executable) + (part and f".{part}"), command, directory, measures)

    rest = [test[0] for test in tests if test[0] not in {*MEASURE, *FIRST}]
    # Those come first that sudo starts, while it remembers the password.
    found = [*chosen(MEASURE, True), *chosen(FIRST), *chosen(rest)]
    if mode != "--unprivileged":
        examples = ["scripts/cargo.sh", "test", "--locked", *packages, "--doc"]
        found.append(jobs.Job("the examples of the documentation", examples, os.getcwd()))
    return found


def test(mode):
    """Builds and runs the tests; returns the exit status."""
    prepared, output, broken = prepare(mode), "", 0
    for job in jobs.run(prepared):
        text = jobs.read(job.log)
        show(f"\n     Running {job.name}: {time.monotonic() - job.begun:.0f} s\n{text}")
        output += text
        if job.code != 0 and not job.has_result():
            broken += 1
            show(f"{job.name}: FAILED: no result, exit status {job.code}: {job.overdue or 'it has ended early'}\n")
    failed = [job.passed_alone() for job in prepared if job.code != 0]
    again = [test_and_output for passed, _ in failed for test_and_output in passed]
    reasons = collections.Counter(re.findall(r"\(skipped: .*\)", output))
    show("\n" + "".join(f"{number:7} {reason}\n" for reason, number in sorted(reasons.items())))
    for name, lines in again:
        show(f"{name}: failed once, passed three times alone. The failure's output:\n{lines}")
    results = re.findall(r"^test result: .* (\d+) passed; (\d+) failed; (\d+) ignored;", output, re.M)
    passed, failures, ignored = (sum(int(result[column]) for result in results) for column in range(3))
    show(f"{passed + len(again)} passed, {failures + broken - len(again)} failed, {ignored} skipped\n")
    return 0 if all(all_passed for _, all_passed in failed) else 1


def give_back():
    """Gives the files of root's tests to the user who owns the checkout."""
    if owner:
        subprocess.run([*jobs.sudo, "chown", "-R", owner, f"{TARGET}/tmp"], stdin=DEVNULL, timeout=60)


# A make that a test starts would take these from make: to print the directories, to keep going.
for variable in ("MAKEFLAGS", "MAKELEVEL", "MFLAGS"):
    os.environ.pop(variable, None)
os.makedirs(f"{TARGET}/tmp", exist_ok=True)
status = 1
with jobs.leaving_nothing_behind(give_back):
    status = test("".join(sys.argv[1:]))
sys.exit(status)
