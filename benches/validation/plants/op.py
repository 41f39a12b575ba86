"""What the tests of benches/validation/verdicts.py do: `op.py small`, or `op.py subject` for what the file `plan` names.

The status is that of the test. Others of its words are children of the subject's.
"""

import fcntl
import mmap
import os
import signal
import socket
import subprocess
import sys
import threading
import time

DIR = os.path.dirname(os.path.abspath(__file__))


def at(name):
    return os.path.join(DIR, name)


def work(seconds=0.4):
    end = time.thread_time() + seconds
    while time.thread_time() < end:
        sum(range(500))


def until(name):
    while not os.path.exists(at(name)):
        time.sleep(0.005)


def child(*what):
    return subprocess.Popen([sys.executable, at("op.py"), *map(str, what)])


def wait_for(p, seconds=1):
    """A time-out of a child."""
    try:
        return p.wait(timeout=seconds)
    except subprocess.TimeoutExpired:
        p.kill()
        p.wait()
        return 1


# What others do to it.


def threads():
    all = [
        threading.Thread(target=subprocess.call, args=([sys.executable, at("op.py"), "work", "0.2"],)) for _ in range(2)
    ]
    for it in all:
        it.start()
    for it in all:
        it.join()


def direct():
    f = os.open(at("file"), os.O_RDONLY | os.O_DIRECT)
    m = mmap.mmap(-1, 1 << 20)
    for _ in range(4):
        os.readv(f, [m])


def read(times=1):
    m = mmap.mmap(-1, 1 << 20)
    for _ in range(times):
        with open(at("file"), "rb", buffering=0) as f:
            while f.readinto(m):
                pass


def mapped(times=1):
    for _ in range(times):
        with open(at("file"), "rb") as f:
            m = mmap.mmap(f.fileno(), 0, access=mmap.ACCESS_READ)
            for i in range(0, len(m), 4096):
                m[i]
            m.close()


def scattered():
    f = os.open(at("file"), os.O_RDONLY | os.O_DIRECT)
    m = mmap.mmap(-1, 4096)
    for i in range(60):
        os.preadv(f, [m], (i * 37 % 1200) * 4096)


def write():
    with open(at("out"), "wb") as f:
        f.write(os.urandom(4 << 20))
        f.flush()
        os.fsync(f.fileno())


def commits():
    with open(at("out"), "wb") as f:
        for _ in range(30):
            f.write(os.urandom(4096))
            f.flush()
            os.fdatasync(f.fileno())


def squeezed(use=lambda: mapped(9)):
    held = bytearray(48 << 20)
    for i in range(0, len(held), 4096):
        held[i] = 1
    use()


def again():
    squeezed(lambda: read(12))


def port():
    return int(open(at("port")).read())


def ask(to=None, timeout=10):
    with socket.create_connection(("127.0.0.1", to or port()), timeout=timeout) as c:
        c.settimeout(timeout)
        c.sendall(b"x")
        c.recv(9)


def unix():
    with socket.socket(socket.AF_UNIX) as c:
        c.connect(at("socket"))
        c.sendall(b"x")
        c.recv(9)


def datagram():
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as c:
        c.sendto(b"x", ("127.0.0.1", port()))
        c.recv(9)


def trickle():
    with socket.create_connection(("127.0.0.1", port())) as c:
        c.sendall(b"x")
        while c.recv(1):
            pass


def late_answer():
    try:
        ask(timeout=1)
    except TimeoutError:
        return 1


def flock(name="lock"):
    with open(at(name), "w") as f:
        fcntl.flock(f, fcntl.LOCK_EX)


def lockf():
    with open(at("lock"), "r+") as f:
        fcntl.lockf(f, fcntl.LOCK_EX)


def semaphore():
    ctypes_sem(at("sem"), "wait")


def ctypes_sem(path, what):
    """A POSIX semaphore in a file that several processes map."""
    import ctypes

    libc = ctypes.CDLL("libc.so.6")
    with open(path, "r+b") as f:
        m = mmap.mmap(f.fileno(), 4096)
    address = ctypes.addressof(ctypes.c_char.from_buffer(m))
    if what == "init":
        libc.sem_init(ctypes.c_void_p(address), 1, 0)
    elif what == "post":
        libc.sem_post(ctypes.c_void_p(address))
    else:
        libc.sem_wait(ctypes.c_void_p(address))


def lock_in_time():
    t = threading.Thread(target=flock, daemon=True)
    t.start()
    t.join(1)
    return int(t.is_alive())


def stopped():
    with open(at("pid"), "w") as f:
        f.write(str(os.getpid()))
    until("go")
    work(0.1)


# Failures of its own.


def failed(seconds=0.02):
    work(seconds)
    return 1


def squares():
    seen = []
    for i in range(16000):
        if i not in seen:
            seen.append(i)


def own_server():
    p = child("serve", 1.2)
    until("own-port")
    ask(int(open(at("own-port")).read()))
    p.wait()


def own_lock():
    p = child("hold", 1.2)
    until("held")
    flock("own-lock")
    p.wait()


def hang():
    lock = threading.Lock()
    lock.acquire()
    return int(not lock.acquire(timeout=1))


def deadlock():
    a, b = threading.Lock(), threading.Lock()

    def one(x, y):
        with x:
            time.sleep(0.1)
            y.acquire(timeout=1.2)

    all = [threading.Thread(target=one, args=it) for it in ((a, b), (b, a))]
    for it in all:
        it.start()
    for it in all:
        it.join()


def large():
    kept = [bytearray(os.urandom(64)) * (1 << 18) for _ in range(40)]
    work(0.6)
    return 1 if kept else 0


def pool():
    all = [child("work", 0.4) for _ in range(8)]
    for it in all:
        it.wait()


def silent_child():
    return wait_for(child("sleep", 5))


def retry():
    s = socket.socket()
    s.bind(("127.0.0.1", 0))
    to = s.getsockname()[1]
    s.close()
    for _ in range(12):
        try:
            ask(to)
        except OSError:
            time.sleep(0.1)


def pipe():
    r, w = os.pipe()
    threading.Timer(1.2, lambda: os.write(w, b"x")).start()
    os.read(r, 1)


def many():
    for _ in range(400):
        subprocess.call(["/bin/true"])


def crash(how):
    work(0.1)
    os.kill(os.getpid(), how)
    time.sleep(9)


# Of others, and in no event of the kernel's: nobody can tell.


def polled():
    while os.path.exists(at("held-by-others")):
        time.sleep(0.02)


def wrong_answer():
    with socket.create_connection(("127.0.0.1", port())) as c:
        c.sendall(b"x")
        work(0.3)
        return int(c.recv(9) != b"right")


def full():
    try:
        with open("/dev/full", "wb") as f:
            work(0.3)
            f.write(bytes(9999))
    except OSError:
        return 1


SUBJECT = {
    "work": work,
    "threads": threads,
    "timeout": lambda: wait_for(child("work", 0.4)),
    "direct": direct,
    "read": read,
    "mapped": mapped,
    "scattered": scattered,
    "write": write,
    "commits": commits,
    "squeezed": squeezed,
    "again": again,
    "ask": ask,
    "unix": unix,
    "datagram": datagram,
    "trickle": trickle,
    "late-answer": late_answer,
    "flock": flock,
    "lockf": lockf,
    "semaphore": semaphore,
    "lock-in-time": lock_in_time,
    "client": lambda: child("ask").wait(),
    "locked-child": lambda: child("flock").wait(),
    "assert": failed,
    "status": lambda: subprocess.call(["sh", "-c", "exit 3"]),
    "busy": lambda: work(1.2),
    "squares": squares,
    "slow-assert": lambda: failed(0.6),
    "sleep": lambda: time.sleep(1.2),
    "abort": lambda: crash(signal.SIGABRT),
    "segv": lambda: crash(signal.SIGSEGV),
    "own-server": own_server,
    "own-lock": own_lock,
    "hang": hang,
    "deadlock": deadlock,
    "large": large,
    "pool": pool,
    "silent-child": silent_child,
    "retry": retry,
    "pipe": pipe,
    "many": many,
    "exec": lambda: subprocess.call(["sleep", "1.2"]),
    "polled": polled,
    "stopped": stopped,
    "wrong-answer": wrong_answer,
    "full": full,
}


def hold(seconds):
    with open(at("own-lock"), "w") as f:
        fcntl.flock(f, fcntl.LOCK_EX)
        open(at("held"), "w").close()
        time.sleep(seconds)


def serve(seconds):
    s = socket.create_server(("127.0.0.1", 0))
    with open(at("own-port.new"), "w") as f:
        f.write(str(s.getsockname()[1]))
    os.rename(at("own-port.new"), at("own-port"))
    c = s.accept()[0]
    c.recv(9)
    time.sleep(seconds)
    c.sendall(b"done")


def delay():
    return int(open("/proc/thread-self/schedstat").read().split()[1])


def run(args):
    if args[0] == "small":
        work(0.05)
        return 0
    if args[0] != "subject":
        words = {"work": work, "hold": hold, "serve": serve, "sleep": time.sleep, "ask": ask, "flock": flock}
        words[args[0]](*map(float, args[1:]))
        return 0
    with open(at("plan")) as f:
        plan = f.read()
    start, before = time.monotonic(), delay()
    open(at("flag"), "w").close()
    status = SUBJECT[plan]()
    wall = time.monotonic() - start
    with open(at("oracle"), "w") as f:
        f.write(f"{wall} {(delay() - before) / 1e9}")
    return status or int(wall > 0.8)


if __name__ == "__main__":
    sys.exit(run(sys.argv[1:]))
