"""What tests need to run as nobody, without capabilities and without a way to gain any."""

import contextlib
import ctypes
import os
import subprocess
import sys
import tempfile

IDS = ["--reuid=65534", "--regid=65534", "--clear-groups"]
COMMAND = ["setpriv", *IDS, "--inh-caps=-all", "--bounding-set=-all", "--no-new-privs"]
CLONE_NEWNS = 0x20000


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
