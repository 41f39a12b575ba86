"""What goes on beside the suites of benches/validation/verdicts.py, outside of the recording: `beside.py PLACE WHAT`.

It writes `ready`, waits for the subject's `flag` where its fault has a moment, acts, and is killed with its group.
"""

import fcntl
import os
import signal
import socket
import subprocess
import sys
import time

PLACE, WHAT, *REST = sys.argv[1:]
LATE = 1.3
SPIN = [sys.executable, "-c", "while 1: pass"]


def at(name):
    return os.path.join(PLACE, name)


def write(name, text=""):
    with open(at(name + ".new"), "w") as out:
        out.write(text)
    os.rename(at(name + ".new"), at(name))


def flag():
    write("ready")
    while not os.path.exists(at("flag")):
        time.sleep(0.005)


def spin(commands, seconds=2.5):
    # They end, whatever becomes of this process.
    bounded = [["timeout", "-s", "KILL", str(seconds + 2), *it] for it in commands]
    all = [
        subprocess.Popen(it, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True)
        for it in bounded
    ]
    time.sleep(seconds)
    for it in all:
        os.killpg(it.pid, signal.SIGKILL)


def hogs(n=4):
    flag()
    spin([SPIN] * n * os.cpu_count())


def always():
    write("ready")
    spin([SPIN] * 2 * os.cpu_count(), 30)


def nice():
    flag()
    spin([["nice", "-n", "-10", *SPIN]] * 2 * os.cpu_count())


def forks():
    flag()
    spin([["sh", "-c", "while :; do /bin/true; done"]] * 8 * os.cpu_count())


def stress():
    flag()
    spin([["stress-ng", "--quiet", "--cpu", str(4 * os.cpu_count())]])


def threads():
    flag()
    spin([["openssl", "speed", "-multi", str(6 * os.cpu_count()), "-seconds", "9", "sha256"]])


def stress_memory():
    write("ready")
    spin([["stress-ng", "--quiet", "--vm", "1", "--vm-bytes", "70m", "--vm-keep"]], 30)


def listening(kind=socket.SOCK_STREAM):
    s = socket.socket(socket.AF_INET, kind)
    s.bind(("127.0.0.1", 0))
    if kind == socket.SOCK_STREAM:
        s.listen()
    write("port", str(s.getsockname()[1]))
    write("ready")
    return s


def server(answer=b"done", late=LATE):
    c = listening().accept()[0]
    c.recv(9)
    time.sleep(late)
    c.sendall(answer)


def trickle():
    c = listening().accept()[0]
    c.recv(9)
    for _ in range(10):
        time.sleep(LATE / 10)
        c.sendall(b".")


def datagram():
    s = listening(socket.SOCK_DGRAM)
    _, to = s.recvfrom(9)
    time.sleep(LATE)
    s.sendto(b"done", to)


def unix():
    s = socket.socket(socket.AF_UNIX)
    s.bind(at("socket"))
    s.listen()
    write("ready")
    c = s.accept()[0]
    c.recv(9)
    time.sleep(LATE)
    c.sendall(b"done")


def lock(how=fcntl.flock):
    with open(at("lock"), "w") as f:
        how(f, fcntl.LOCK_EX)
        flag()
        time.sleep(LATE)


def semaphore():
    sys.path.insert(0, PLACE)
    import op

    with open(at("sem"), "wb") as f:
        f.write(bytes(4096))
    op.ctypes_sem(at("sem"), "init")
    flag()
    time.sleep(LATE)
    op.ctypes_sem(at("sem"), "post")


def polled():
    write("held-by-others")
    flag()
    time.sleep(LATE)
    os.unlink(at("held-by-others"))


def stopped():
    write("ready")
    while not os.path.exists(at("pid")) or not open(at("pid")).read():
        time.sleep(0.005)
    pid = int(open(at("pid")).read())
    os.kill(pid, signal.SIGSTOP)
    time.sleep(LATE)
    write("go")
    os.kill(pid, signal.SIGCONT)


{
    "hogs": hogs,
    "always": always,
    "nice": nice,
    "forks": forks,
    "stress": stress,
    "threads": threads,
    "stress-memory": stress_memory,
    "server": server,
    "trickle": trickle,
    "datagram": datagram,
    "unix": unix,
    "wrong-answer": lambda: server(b"wrong", 0),
    "lock": lock,
    "lockf": lambda: lock(fcntl.lockf),
    "semaphore": semaphore,
    "polled": polled,
    "stopped": stopped,
}[WHAT](*map(int, REST))
time.sleep(30)
