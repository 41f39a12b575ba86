"""The cgroups of a plant of benches/validation/verdicts.py (v1), and a disk of its own."""

import contextlib
import os
import signal
import subprocess
import time

ROOT = "/sys/fs/cgroup"
BENCH = f"{ROOT}/cpu/tr-verdicts-{os.getpid()}"


def put_into(group):
    with open(os.path.join(group, "cgroup.procs"), "w") as procs:
        procs.write(str(os.getpid()))


def disk_of(path):
    """`MAJOR:MINOR` of the disk below a path: of a partition the disk has the limit."""
    number = os.stat(path).st_dev
    disk = os.path.realpath(f"/sys/dev/block/{os.major(number)}:{os.minor(number)}")
    if os.path.exists(f"{disk}/partition"):
        disk = os.path.dirname(disk)
    with open(f"{disk}/dev") as f:
        return f.read().strip()


@contextlib.contextmanager
def most_of_the_cpus():
    """All that runs is in a cgroup with 256 times the weight of another task."""
    own = f"{BENCH}/bench"
    os.makedirs(own)
    with open(f"{BENCH}/cpu.shares", "w") as out:
        out.write("262144")
    put_into(own)
    try:
        yield
    finally:
        put_into(f"{ROOT}/cpu")
        for group in (own, BENCH):
            with contextlib.suppress(OSError):
                os.rmdir(group)


class Groups:
    """The suite's cgroup, with the limits of its plant, and one for what is beside it."""

    def __init__(self, limits, memory=0, place="/"):
        self.top = f"{BENCH}/plant"
        self.suite, self.beside = f"{self.top}/suite", f"{self.top}/beside"
        self.all = []
        self.entries = []
        for group in (self.top, self.suite, self.beside):
            self.make(group)
        for controller, file, value in limits:
            if controller == "cpu":
                self.limit(self.suite, file, value)
            elif controller == "above":
                self.limit(self.top, file, value)
            elif controller == "beside":
                self.limit(self.beside, file, value)
            else:
                group = f"{ROOT}/{controller}/tr-verdicts-{os.getpid()}"
                if group not in self.all:
                    self.make(group)
                    self.entries.append(group)
                value = f"{disk_of(place)} {value}" if controller == "blkio" else (value + memory) << 20
                self.limit(group, file, value)

    def make(self, group):
        os.makedirs(group, exist_ok=True)
        self.all.insert(0, group)

    @staticmethod
    def limit(group, file, value):
        with open(os.path.join(group, file), "w") as out:
            out.write(str(value))

    def enter(self, beside=False):
        put_into(self.beside if beside else self.suite)

    def kill(self):
        """Ends all that runs in the groups, which is the bench's, whoever its parent is by now."""
        for group in self.all:
            for _ in range(100):
                with open(os.path.join(group, "cgroup.procs")) as procs:
                    left = [int(pid) for pid in procs]
                for pid in left:
                    with contextlib.suppress(ProcessLookupError):
                        os.kill(pid, signal.SIGKILL)
                if not left:
                    break
                time.sleep(0.02)

    def close(self):
        self.kill()
        for group in self.all:
            for _ in range(50):
                try:
                    os.rmdir(group)
                    break
                except OSError:
                    time.sleep(0.1)


class Loop:
    """A file system on a loop device."""

    def __init__(self, place):
        self.image, self.place = f"{place}.image", place
        os.makedirs(place)
        with open(self.image, "wb") as out:
            out.truncate(64 << 20)
        subprocess.run(["mkfs.ext4", "-q", self.image], check=True)
        subprocess.run(["mount", "-o", "loop", self.image, place], check=True)

    def leave(self):
        subprocess.run(["umount", self.place], check=False)
        os.rmdir(self.place)
        os.unlink(self.image)
