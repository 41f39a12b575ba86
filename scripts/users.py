"""The users as whom tests run: the caller, root and nobody."""

import contextlib
import ctypes
import os
import subprocess
import sys
import tempfile
from dataclasses import dataclass, field
from subprocess import PIPE

IDS = ["--reuid=65534", "--regid=65534", "--clear-groups"]
COMMAND = ["setpriv", *IDS, "--inh-caps=-all", "--bounding-set=-all", "--no-new-privs"]
CLONE_NEWNS = 0x20000
LONG = [f"TR_LONG={os.environ['TR_LONG']}"] if "TR_LONG" in os.environ else []
WITHOUT_SUDO = ["env", *(f"--unset=SUDO_{name}" for name in ("UID", "GID", "USER", "COMMAND"))]


@dataclass
class Users:
    """What stands before the command of a test, and before that of a test that records."""

    caller: list[str] = field(default_factory=list)
    root: list[str] = field(default_factory=list)
    # The command that makes a command root's, if the caller is not root.
    sudo: list[str] = field(default_factory=list)
    # The user and the group that get the files of root's tests.
    owner: str | None = None


def ordinary():
    """Root's tests run as root, if that is possible; the others as the user who owns the checkout."""
    uid, gid = (int(subprocess.check_output(["id", option])) for option in ("-u", "-g"))
    path, sudoer = os.environ["PATH"], os.environ.get("SUDO_UID", "0")
    if uid == 0 and sudoer != "0" and int(sudoer) == os.stat(".").st_uid:
        caller = ["sudo", "-u", f"#{sudoer}", "-H", "env", f"PATH={path}", *LONG]
        return Users(caller, WITHOUT_SUDO, owner=f"{sudoer}:{os.environ['SUDO_GID']}")
    if uid == 0:
        return Users(root=WITHOUT_SUDO)
    script = '. scripts/rights.sh; as_root "$1" && echo "${root[@]}"'
    purpose = "to run the tests that record: they need CAP_BPF and CAP_PERFMON"
    sudo = subprocess.run(["bash", "-c", script, "bash", purpose], stdout=PIPE, text=True).stdout.split()
    if not sudo:
        return Users()
    root = [*sudo, "env", f"PATH={path}:/usr/sbin:/sbin", *LONG, *WITHOUT_SUDO]  # setcap is there
    return Users([], root, sudo, f"{uid}:{gid}")


def nobody(target):
    """All tests run as nobody, without capabilities and without a way to gain any."""
    make_accessible(os.getcwd(), target)
    return Users(COMMAND, COMMAND)


def make_accessible(checkout, target):
    """Makes the checkout and its target directory accessible to all users, in a mount namespace of its own.

    An ancestor that is closed to others keeps no other entry.
    """

    def mount(*args):
        subprocess.run(["mount", *args], check=True)

    if ctypes.CDLL(None, use_errno=True).unshare(CLONE_NEWNS) != 0:
        sys.exit(f"test: no mount namespace: {os.strerror(ctypes.get_errno())}")
    mount("--make-rprivate", "/")
    places = [checkout, target]
    held = [tempfile.mkdtemp() for _ in places]
    for place, copy in zip(places, held):
        mount("--bind", place, copy)
    for place, copy in zip(places, held):
        path = ""
        for part in place.strip("/").split("/"):
            path += f"/{part}"
            if subprocess.run([*COMMAND, "test", "-x", path]).returncode != 0:
                mount("-t", "tmpfs", "-o", "mode=755", "none", path)
            os.makedirs(path, exist_ok=True)
        mount("--move", copy, place)
        with contextlib.suppress(OSError):  # a tmpfs hides it now
            os.rmdir(copy)
    os.chdir(checkout)
    mount("-t", "tmpfs", "-o", "mode=1777", "none", f"{target}/tmp")
    os.environ["HOME"] = f"{target}/absent"
