#!/usr/bin/env python3
"""Holds forecasts of tr predict against real runs: a section of docs/validation.md.

usage: benches/validation/predict.py [--tr TR] [--seconds N] [--keep DIR] [--clock] [--out PAGE] [--csv FILE] [BUILD...]

Each build is recorded once at one setting (two CPUs, or one by taskset; a number of jobs), and
then really run, and recorded, at others. The recordings of before forecast those. The machine may
have other work: so a forecast without other tasks (--alone) is held against the real run without
other tasks, which is its recording simulated with nothing changed. That takes away what others
took and keeps what the build did. Rows with a quota, beside load of our own and with --clock all are held
against the clock: --clock is for a machine without other work, and forecasts without --alone, but for recordings on one CPU of two.
A run beside which others had more than a twentieth of the CPUs is made again, and held without other tasks if that does not help.
--keep keeps each recording: a second call with the same directory goes on where the first one
ended. --from DIR forecasts anew from such a directory and runs nothing. Needs root for recording and for a cgroup with a quota.
"""

import argparse
import contextlib
import glob
import json
import os
import shutil
import socket
import statistics
import subprocess
import sys
import tempfile
import threading
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import real  # noqa: E402
import results  # noqa: E402
from validate import HERE, QUIET, prepare, quota, section, surrounding, with_jobs  # noqa: E402

# Spins for CPU time: with BURN_SCALE a compiler that is so many times as slow.
BURN = r"""
#include <stdlib.h>
#include <time.h>
int main(int n, char **arg) {
    char *by = getenv("BURN_SCALE");
    double ms = atof(arg[1]) * (by ? atof(by) : 1);
    struct timespec now;
    volatile unsigned long sum = 0;
    do {
        for (int i = 0; i < 20000; i++) sum += i * sum;
        clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
    } while (now.tv_sec * 1e3 + now.tv_nsec / 1e6 < ms);
    return 0;
}
"""
REGISTRY = os.path.expanduser("~/.cargo/registry/src/*/")
ZLIB = REGISTRY + "libbpf-sys-*/zlib"
ZSTD = REGISTRY + "zstd-sys-*/zstd/lib"
MAKE_BURN = "".join(
    ["all: app\n\t./burn 60\n", "app: %s\n\t./burn 300 > app\n" % " ".join("abcdefghij")]
    + ["%s: gen\n\t./burn %d > $@\n\tcp $@ $@.2\n" % (name, 60 + 40 * at) for at, name in enumerate("abcdefghij")]
    + ["gen:\n\t./burn 200 > gen\n"]
)
MAKE_TESTS = "check: %s\n" % " ".join("t%d" % n for n in range(12)) + "".join(
    "t%d:\n\t./burn %d\n\tsleep 0.%d\n" % (n, 50 + 30 * (n % 5), 1 + n % 3) for n in range(12)
)
MAKE_ZSTD = """
SOURCES = $(wildcard common/*.c compress/zstd_comp*.c compress/zstd_[dflo]*.c compress/[fh]*.c decompress/*.c)
libzstd.a: $(SOURCES:.c=.o)
\trm -f $@
\tar rc $@ $^
%.o: %.c
\tcc -O1 -DZSTD_DISABLE_ASM -I. -Icommon -c -o $@ $<
"""
PYTESTS = """
import hashlib, pytest, time
@pytest.mark.parametrize("n", range(8))
def test_hash(n):
    h = b"x"
    for i in range(60000 * (1 + n % 3)): h = hashlib.md5(h).digest()
def test_sleep(): time.sleep(0.3)
"""
NODE = "let s=0; for (let i=0;i<%d;i++) s+=Math.sqrt(i)*Math.sin(i); console.log(s)\n"
SHELL = """
if test -z "$NO_SLEEP"; then sleep 0.7; fi
./burn 150 &
./burn 250 &
wait
./burn 100 | cat
for n in 1 2 3 4 5 6; do ./burn 30; done
"""
# cc1 that does its work twice: as slow as half the speed.
TWICE = """all: %s
%%.o: %%.c
\tcc $(FLAGS) -O2 -c -o $@ $<
""" % " ".join(
    "%s.o" % name
    for name in "adler32 compress crc32 deflate infback inffast inflate inftrees trees uncompr zutil".split()
)
TWICE_CC1 = """#!/bin/sh
real=$(cc -print-prog-name=cc1)
$real "$@" && exec $real "$@"
"""
LONGEST = """ORDER ?= recorded
recorded = a b c d e f g h
longest = h g f e d c b a
all: $($(ORDER))
""" + "".join("%s:\n\t./burn %d\n" % (name, 60 + 70 * at) for at, name in enumerate("abcdefgh"))
RUSTC = (
    "all: %s\nmain: main.rs %s\n\trustc -O --crate-name main -L . -o $@ main.rs\n%%.rlib: %%.rs\n\trustc -O --crate-type rlib --crate-name $(patsubst lib%%,%%,$*) -o $@ $<\n"
    % ("main", " ".join("lib%s.rlib" % name for name in "abcdef"))
)
NODE_TEST = "const test = require('node:test');\ntest('it', () => { let s = 0; for (let i = 0; i < %d; i++) s += Math.sqrt(i); });\n"
XDIST = PYTESTS.replace("range(8)", "range(16)")
GET = """
import hashlib, os, socket
for _ in range(6):
    with socket.create_connection(("127.0.0.1", int(os.environ["PORT"]))) as server:
        server.sendall(b"?")
        server.recv(1)
    hashlib.sha256(b"x" * 20_000_000).digest()
"""
PROVE = "system('./burn', %d); print \"1..1\\nok 1\\n\";\n"

# Others have no more than this part of the CPUs, or the run is made again, so many times.
OTHERS, AGAIN = 0.05, 2

MAKE = lambda jobs: ["make", "-s", "-j%d" % jobs]  # noqa: E731
FEW = [("-j1", 1), ("-j4", 4), ("-j8", 8)]


class Build:
    """Its files, its command for a number of jobs, and what is tried with it."""

    def __init__(
        self, files=None, base=None, copy=None, setup=None, command=MAKE, tries=("jobs", "cpus"), fast="burn", parts=()
    ):
        self.parts = parts
        self.files, self.base, self.copy, self.setup = files or {}, base, copy, setup
        self.command, self.tries, self.fast = command, tries, fast

    def make(self, place):
        if self.copy:
            found = sorted(glob.glob(self.copy))
            if not found:
                return False
            shutil.copytree(found[-1], place, symlinks=True)
        elif self.base:
            if not prepare(self.base, place):
                return False
        else:
            os.mkdir(place)
        real.write(self.files, place)
        if any("burn" in text for text in self.files.values()):
            with open(os.path.join(place, "burn.c"), "w") as out:
                out.write(BURN)
            subprocess.run(["cc", "-O2", "-o", "burn", "burn.c"], cwd=place, check=True)
        for command in self.setup or []:
            if subprocess.run(command, cwd=place, shell=True, check=False, **QUIET).returncode:
                return False
        return True


def fixed(*command):
    return lambda jobs: list(command)


PACKAGE = json.dumps({"name": "x", "version": "1.0.0", "scripts": {"test": "node a.js && node b.js & node c.js; wait"}})
CARGO = '[package]\nname = "x"\nversion = "0.1.0"\nedition = "2021"\n[workspace]\nmembers = ["a", "b", "c"]\n[dependencies]\na = { path = "a" }\nb = { path = "b" }\nc = { path = "c" }\n'
RUST = "".join(
    'pub fn f%d(v: &mut Vec<String>) { v.sort(); v.dedup(); v.push(format!("{v:?}{}", %d)); }\n' % (n, n)
    for n in range(150)
)

BUILDS_OF = {
    "make-chain": Build({"Makefile": MAKE_BURN}, tries=("jobs", "one", "cpus", "quota", "faster", "cached")),
    "make-tests": Build(
        {"Makefile": MAKE_TESTS},
        command=lambda jobs: ["make", "-s", "-j%d" % jobs, "check"],
        tries=("jobs", "cpus", "faster"),
    ),
    "longest": Build({"Makefile": LONGEST}, tries=("jobs", "longest")),
    "twice": Build(
        {"twice.mk": TWICE, "twice/cc1": TWICE_CC1},
        copy=ZLIB,
        setup=["./configure", "chmod +x twice/cc1"],
        command=lambda jobs: ["make", "-s", "-f", "twice.mk", "-j%d" % jobs],
        tries=("cpus", "twice"),
    ),
    "beside": Build({"Makefile": MAKE_BURN}, tries=("beside",)),
    "network": Build({"get.py": GET}, command=fixed("python3", "get.py"), tries=("cpus", "network")),
    "rustc-make": Build(
        {"Makefile": RUSTC, "main.rs": "fn main() {}", **{"lib%s.rs" % name: RUST for name in "abcdef"}},
        tries=("jobs", "cpus"),
    ),
    "node-test": Build(
        {"%d.test.js" % n: NODE_TEST % (2e7 * (1 + n % 3)) for n in range(6)},
        command=fixed("node", "--test"),
        tries=("cpus",),
    ),
    "xdist": Build(
        {"test_x.py": XDIST},
        command=lambda jobs: ["/usr/bin/pytest", "-q", "-n", str(jobs), "test_x.py"],
        tries=("cpus",),
    ),
    "xdist-auto": Build(
        {"test_x.py": XDIST}, command=fixed("/usr/bin/pytest", "-q", "-n", "auto", "test_x.py"), tries=("cpus",)
    ),
    "compileall": Build(
        setup=["cp -r $(python3 -c 'import os; print(os.path.dirname(os.__file__))')/[a-g]*.py ."],
        command=lambda jobs: ["python3", "-m", "compileall", "-q", "-f", "-j", str(jobs), "."],
        tries=("cpus",),
    ),
    "javac-xargs": Build(
        {
            "%s.java" % name: "class %s { %s }\n"
            % (name, " ".join("int f%d(int x) { return x * %d; }" % (n, n) for n in range(400)))
            for name in "ABCD"
        },
        command=lambda jobs: ["sh", "-c", "ls *.java | xargs -P %d -n 1 javac" % jobs],
    ),
    "xz-pipe": Build(
        {
            "data.py": "import random\nr = random.Random(1)\nprint(' '.join(str(r.randrange(9999)) for _ in range(1500000)))\n"
        },
        command=fixed(
            "sh", "-c", "python3 data.py | tee data | xz -1 | xz -d | sort | md5sum; gzip -k data; bzip2 -k data"
        ),
        tries=("cpus", "quota"),
    ),
    "zlib": Build(copy=ZLIB, setup=["./configure"], tries=("jobs", "one", "cpus", "quota")),
    "zlib-cmake": Build(
        copy=ZLIB, setup=["cmake -B out ."], command=lambda jobs: ["make", "-s", "-C", "out", "-j%d" % jobs]
    ),
    "zlib-configure": Build(copy=ZLIB, command=fixed("./configure"), tries=("cpus", "quota")),
    "zstd": Build({"Makefile": MAKE_ZSTD}, copy=ZSTD, tries=("jobs", "one", "cpus")),
    "many-jobs": Build(base="many-jobs"),
    "recursive": Build(base="clean-recursive"),
    "generator": Build(base="generator"),
    "big-last": Build(base="big-last"),
    "xargs": Build(
        {"x": "burn"},
        command=lambda jobs: ["sh", "-c", "seq 60 20 260 | xargs -P %d -n 1 ./burn" % jobs],
        tries=("jobs", "one", "cpus", "faster"),
    ),
    "shell": Build({"run.sh": SHELL}, command=fixed("sh", "run.sh"), tries=("cpus", "sleep", "faster", "quota")),
    # Lengths that are split in one way alone.
    "prove": Build(
        {"%d.t" % n: PROVE % ms for n, ms in enumerate((60, 90, 130, 170, 220, 290))},
        command=fixed("prove", "-j2", "."),
        tries=("cpus", "faster", "shards"),
        parts=[["prove", "-j2", *("%d.t" % n for n in part)] for part in ((0, 3, 5), (1, 2, 4))],
    ),
    "bats": Build(
        {"a.bats": "".join('@test "%d" { ./burn %d; }\n' % (n, 40 * n + 40) for n in range(5))},
        command=fixed("bats", "a.bats"),
        tries=("cpus", "faster"),
    ),
    "pytest": Build(
        {"test_x.py": PYTESTS}, command=fixed("python3", "-m", "pytest", "-q", "test_x.py"), tries=("cpus",)
    ),
    "npm": Build(
        {"package.json": PACKAGE, **{f: NODE % n for f, n in (("a.js", 9e6), ("b.js", 5e6), ("c.js", 12e6))}},
        command=fixed("npm", "test"),
        tries=("cpus",),
    ),
    "cargo": Build(
        {"Cargo.toml": CARGO, "src.rs": RUST},
        setup=[
            "mkdir -p src && cp src.rs src/lib.rs",
            'for n in a b c; do mkdir -p $n/src; cp src.rs $n/src/lib.rs; printf \'[package]\\nname = "%s"\\nversion = "0.1.0"\\n\' $n > $n/Cargo.toml; done',
        ],
        command=fixed("cargo", "build", "--offline", "-q"),
        tries=("cpus",),
    ),
}

FORTRAN = {
    "%s.f90"
    % name: "subroutine work_%s(a, b, c, n)\n  integer :: n, i, j, k\n  real :: a(n, n), b(n, n), c(n, n)\n%s end subroutine\n"
    % (
        name,
        (
            "  do i = 1, n\n    do j = 1, n\n      do k = 1, n\n        a(i, j) = a(i, j) + b(i, k) * c(k, j) * %s\n      end do\n    end do\n  end do\n"
            % "2.5"
        )
        * count,
    )
    for name, count in zip("abcdefgh", (6, 10, 16, 8, 24, 12, 6, 14))
}
HASKELL = "module %s where\n" + "".join(
    "data T%d = A%d Int | B%d String deriving (Show, Read, Eq, Ord)\n" % (n, n, n) for n in range(5)
)
OCAML = "".join(
    "let f%d x = List.map (fun y -> Printf.sprintf \"%%d %%s\" (y + %d) (String.make %d 'x')) x\n" % (n, n, n)
    for n in range(700)
)
SCONS = "env = Environment(CCFLAGS='-O2')\nenv.Program('app', Glob('*.c'), LIBS=['m'])\n"
C_FILE = "#include <stdio.h>\n#include <math.h>\n" + "".join(
    "double %%s_%d(double *v, int n) { double s = 0; for (int i = 0; i < n; i++) { s += v[i] * %d; if (s > v[n - i]) s -= sin(s); } return s; }\n"
    % (n, n)
    for n in range(60)
)
RUBY = "multitask default: %w[a b c d e]\n%w[a b c d e].each { |n| task(n) { sh \"ruby -e '(1..#{n.ord * 40_000 - 3_600_000}).sum { |i| i * i % 7 }'\" } }\n"
PHP = (
    "<?php\nuse PHPUnit\\Framework\\TestCase;\nclass XTest extends TestCase {\n"
    + "".join(
        "function test%d() { $h = 'x'; for ($i = 0; $i < %d; $i++) $h = md5($h); $this->assertNotEmpty($h); }\n"
        % (n, 300000 * (1 + n % 3))
        for n in range(8)
    )
    + "}\n"
)
R = "library(parallel)\nx <- mclapply(1:6, function(i) { s <- 0; for (k in 1:(i * 1e6)) s <- s + k %% 7; s }, mc.cores = 2)\n"
# Builds of other tools than those that the model was made with.
BUILDS_OF |= {
    "fortran": Build(
        {
            **FORTRAN,
            "Makefile": "all: %s\n%%.o: %%.f90\n\tgfortran -O3 -funroll-loops -c -o $@ $<\n"
            % " ".join("%s.o" % n for n in "abcdefgh"),
        },
        tries=("jobs", "one", "cpus"),
    ),
    "ghc": Build(
        {
            "Main.hs": "module Main where\n%smain = print 1\n" % "".join("import M%d\n" % n for n in range(6)),
            **{"M%d.hs" % n: HASKELL % ("M%d" % n) for n in range(6)},
        },
        command=fixed("ghc", "--make", "-v0", "-j2", "Main.hs"),
        tries=("cpus",),
    ),
    "ocaml": Build(
        {
            **{"%s.ml" % n: OCAML for n in "abcdef"},
            "Makefile": "all: %s\n%%.cmx: %%.ml\n\tocamlopt -c $<\n" % " ".join("%s.cmx" % n for n in "abcdef"),
        },
        tries=("jobs", "one", "cpus"),
    ),
    "scons": Build(
        {
            "SConstruct": SCONS,
            "main.c": "int main(void) { return 0; }\n",
            **{"%s.c" % n: C_FILE.replace("%s", n) for n in "abcdefg"},
        },
        command=lambda jobs: ["scons", "-Q", "-j%d" % jobs],
        tries=("cpus",),
    ),
    "rake": Build({"Rakefile": RUBY}, command=fixed("rake", "-j2"), tries=("cpus",)),
    "phpunit": Build({"XTest.php": PHP}, command=fixed("phpunit", "XTest.php"), tries=("cpus",)),
    "mclapply": Build({"x.R": R}, command=fixed("Rscript", "x.R"), tries=("cpus",)),
    "xz-threads": Build(
        {"x": ""},
        setup=["seq 1 1500000 > data"],
        command=fixed("xz", "-k", "-3", "-T2", "--block-size=1MiB", "data"),
        tries=("cpus",),
    ),
    "sort-make": Build(
        {
            "Makefile": ".SECONDARY:\nall: 1.o 2.o 3.o 4.o 5.o\n%.o: %.txt\n\tsort -R --parallel=1 $< | gzip -6 | gzip -d | sort -n > $@\n1.txt 2.txt 3.txt 4.txt 5.txt:\n\tseq 1 $(basename $@)0000 > $@\n"
        },
        tries=("jobs", "one", "cpus"),
    ),
    "objects-so": Build(
        {
            "Makefile": "all: x.so\n\t./use\nx.so: %s\n\tcc -shared -o $@ $^ && cc -o use use.c\n%%.o: %%.c\n\tcc -O2 -fPIC -c -o $@ $<\n"
            % " ".join("%s.o" % n for n in "abcdefg"),
            "use.c": "int main(void) { return 0; }\n",
            **{"%s.c" % n: C_FILE.replace("%s", n) for n in "abcdefg"},
        },
        tries=("jobs", "one", "cpus"),
    ),
}


def of_sources(name):
    """A build of real.py."""
    command = real.command(name)
    if command[0] not in ("make", "ninja", "ctest", "prove", "cmake") or with_jobs(command, "2") is None:
        return Build(base=name, command=fixed(*command), tries=("cpus",))
    return Build(base=name, command=lambda jobs: with_jobs(command, str(jobs)), tries=("jobs", "one", "cpus"))


BUILDS_OF |= {name: of_sources(name) for name in real.BUILDS if name != "lua-j8"}


@contextlib.contextmanager
def server(delay):
    """Yields the port of a server that answers after a delay in s. It is no part of a recording."""

    def answer():
        with contextlib.suppress(OSError):
            while True:
                other, _ = here.accept()
                with other:
                    other.recv(1)
                    time.sleep(delay)
                    other.sendall(b"!")

    with socket.create_server(("127.0.0.1", 0)) as here:
        threading.Thread(target=answer, daemon=True).start()
        yield here.getsockname()[1]
        # accept() goes on waiting after a close.
        here.shutdown(socket.SHUT_RDWR)


class NoTime(Exception):
    """No time is left for another run."""


class Runs:
    """The real runs of one build, and their recordings."""

    def __init__(self, args, name, work):
        self.tr, self.build, self.name = args.tr, BUILDS_OF[name], name
        self.again, self.until, self.limit, self.by_clock = args.kept is not None, args.until, args.limit, args.clock
        self.place = args.kept or args.keep or work
        self.source = os.path.join(work, "source")
        self.there = None
        self.calm = {}
        os.makedirs(self.place, exist_ok=True)

    def run(self, key, jobs=2, cpus=2, group=None, env=None, before=None, command=None, delay=0.1, again=0):
        """The recording of a run, which is made unless it was kept. None where there is none."""
        trace = os.path.join(self.place, "%s-%s.bin" % (self.name, key))
        if self.again or os.path.exists(trace):
            return trace if os.path.exists(trace) else None
        if time.monotonic() > self.until:
            raise NoTime()
        if self.there is None:
            self.there = self.build.make(self.source)
            if not self.there:
                print("%s: its sources or tools are not there" % self.name, file=sys.stderr)
            else:
                # What the first run reads from disks, the others have in memory.
                warm = real.run_in(self.source)
                with server(0.1) as port:
                    before_run = {**real.environment(warm), "PORT": str(port)}
                    done = subprocess.run(
                        ["timeout", "-k1", "%g" % (2 * self.limit), *self.build.command(2)],
                        cwd=warm,
                        check=False,
                        env=before_run,
                        **QUIET,
                    )
                if done.returncode in (124, 126, 127, 137):
                    why = "its tools are not there" if done.returncode in (126, 127) else "takes too long"
                    print("%s: %s" % (self.name, why), file=sys.stderr)
                    self.there = False
        if not self.there:
            return None
        # The same place each time: command lines are the same.
        place = real.run_in(self.source)
        if before:
            subprocess.run(before, cwd=place, shell=True, check=True, **QUIET)
        record = [self.tr, "record", "-q", "--force", "-o", trace + ".new", "--"]
        if cpus == 1:
            record += ["taskset", "-c", "0"]
        if group:
            # The recorder is not held by the quota.
            record += ["sh", "-c", 'echo $$ >%s/cgroup.procs; exec "$@"' % group, "sh"]
        used = {**real.environment(place), **(env or {})}
        with server(delay) as port:
            done = subprocess.run(
                record + (command or self.build.command(jobs)),
                cwd=place,
                check=False,
                env={**used, "PORT": str(port)},
                **QUIET,
            )
        if done.returncode:
            # What it measures then is its failure.
            print("  %s, %s: exit status %d" % (self.name, key, done.returncode), file=sys.stderr)
            return None
        os.rename(trace + ".new", trace)
        loaded = group or key.startswith("beside")
        if self.by_clock and again < AGAIN and not loaded and not self.quiet(trace):
            os.remove(trace)
            del self.calm[trace]
            return self.run(key, jobs, cpus, group, env, before, command, delay, again + 1)
        return trace

    def quiet(self, trace):
        """Whether other tasks had little of the CPUs."""
        if trace not in self.calm:
            asked = [self.tr, "analyze", trace, "--report", "machine", "--format", "json"]
            done = subprocess.run(asked, capture_output=True, text=True, check=False)
            told = json.loads(done.stdout) if done.returncode == 0 else {}
            others = (told.get("machine") or {}).get("others_ns") or 0
            self.calm[trace] = (
                others <= OTHERS * told["trace"]["duration_ns"] * told["trace"]["cpus"] if told else False
            )
        return self.calm[trace]

    def predict(self, trace, *options):
        command = [self.tr, "predict", trace, "--format", "json", *options]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode:
            print("  %s: %s" % (" ".join(options), done.stderr.strip()), file=sys.stderr)
            return None
        return json.loads(done.stdout)

    def clock(self, trace):
        """The time of a real run by the clock, and its CPU time."""
        found = trace and self.predict(trace)
        return found and (found["recorded"]["wall_ns"], found["on_cpu_ns"])

    def own(self, trace, cpus=2):
        """The same without other tasks."""
        if self.by_clock and trace and self.quiet(trace):
            return self.clock(trace)
        found = trace and self.predict(trace, "--alone", "--cpus", str(cpus))
        return found and (found["wall"]["likely_ns"], found["on_cpu_ns"])


def rows(runs, name):
    """The rows of a build, one by one. The order is that in which runs are made: what was recorded is
    held against as many others as there are."""
    build = runs.build
    base = runs.run("j2")
    recorded = runs.clock(base)
    if recorded is None or recorded[0] > runs.limit * 1e9:
        return

    def row(what, options, real, recorded=base, clock=False):
        if runs.by_clock and recorded == base and not clock and runs.quiet(base):
            options = [it for it in options if it != "--alone"]
        clock = clock or runs.by_clock
        forecast = runs.predict(recorded, *options) if recorded and real else None
        if forecast is None:
            return None
        wall = forecast["wall"]
        real, _ = real
        error = wall["likely_ns"] / real - 1
        return {
            "build": name,
            "what": what,
            "clock": clock,
            "recorded": forecast["recorded"]["wall_ns"],
            "low": wall["low_ns"],
            "likely": wall["likely_ns"],
            "high": wall["high_ns"],
            "real": real,
            "error": error,
            "covered": wall["low_ns"] <= real <= wall["high_ns"],
        }

    again = runs.run("again")
    yield row("-j2, again", ["--alone"], runs.own(again))
    if "cpus" in build.tries:
        single = runs.run("cpu1", cpus=1)
        yield row("2 CPUs → 1", ["--alone", "--cpus", "1"], runs.own(single, 1))
        yield row("1 CPU → 2", ["--alone", "--cpus", "2"], runs.own(again), single)
    if "jobs" in build.tries:
        for word, jobs in FEW:
            yield row("-j2 → " + word, ["--alone", "--jobs", str(jobs)], runs.own(runs.run(word[1:], jobs)))
    if "one" in build.tries:
        one = runs.run("j1", 1)
        yield row("-j1 → -j2", ["--alone", "--jobs", "2"], runs.own(again), one)
        yield row("-j1 → -j4", ["--alone", "--jobs", "4"], runs.own(runs.run("j4", 4)), one)
    if "quota" in build.tries:
        for percent in (25, 60):
            with quota(percent) as group:
                held = runs.run("quota%d" % percent, group=group)
            yield row("quota of %d %%" % percent, ["--quota", str(percent)], runs.clock(held), clock=True)
    if "faster" in build.tries:
        for scale in (2, 0.5):
            slow = runs.run("scale%g" % scale, env={"BURN_SCALE": str(scale)})
            yield row(
                "%s × %g" % (build.fast, scale),
                ["--alone", "--faster", "%s=%g" % (build.fast, 1 / scale)],
                runs.own(slow),
            )
    if "shards" in build.tries:
        parts = [runs.run("shard%d" % at, command=command) for at, command in enumerate(build.parts)]
        slowest = max(filter(None, map(runs.own, parts)), default=None)
        yield row("--shards %d" % len(parts), ["--alone", "--shards", str(len(parts))], slowest)
    if "longest" in build.tries:
        first = runs.run("longest", env={"ORDER": "longest"})
        yield row("longest first", ["--alone", "--jobs", "2", "--longest-first"], runs.own(first))
    if "twice" in build.tries:
        twice = runs.run("twice", env={"FLAGS": "-B./twice/"})
        yield row("cc1 × 2", ["--alone", "--faster", "cc1=0.5"], runs.own(twice))
    if "beside" in build.tries:
        beside = beside4 = None
        with surrounding("load"):
            beside, beside4 = runs.run("beside"), runs.run("beside-j4", jobs=4)
        yield row("load removed", ["--alone"], runs.own(base), beside)
        yield row("load kept, -j2 → -j4", ["--jobs", "4"], runs.clock(beside4), beside, clock=True)
    if "network" in build.tries:
        for scale in (3, 0.5):
            slow = runs.run("network%g" % scale, delay=0.1 * scale)
            yield row("network × %g" % scale, ["--alone", "--network", "%g" % (1 / scale)], runs.own(slow))
    if "sleep" in build.tries:
        less = runs.run("no-sleep", env={"NO_SLEEP": "1"})
        yield row("without sleep", ["--alone", "--without", "^sleep 0.7"], runs.own(less))
    if "cached" in build.tries:
        # Every other one is there already.
        less = runs.run("cached", before="touch gen; for n in a c e g i; do echo > $n; done")
        yield row(
            "gen and 5 of 10 cached",
            ["--alone", "--without", "burn 200|^cp [acegi] |burn (60|140|220|300|380) > [acegi]$"],
            runs.own(less),
        )


def table(all_rows):
    yield "| build | what | recorded | forecast | real | error | covered |"
    yield "| --- | --- | --- | --- | --- | --- | --- |"
    for row in all_rows:
        seconds = {key: row[key] / 1e9 for key in ("recorded", "low", "likely", "high", "real")}
        yield "| {build} | {what} | {recorded:.2f} s | {likely:.2f} s ({low:.2f} to {high:.2f}) | {real:.2f} s | {error:+.0%} | {covered} |".format(
            **{**row, **seconds, "covered": "yes" if row["covered"] else "no"}
        )


HEADER = ["build", "what", "recorded_s", "forecast_s", "low_s", "high_s", "real_s", "error_percent", "covered"]


def cells(row):
    """The row of the table as CSV."""
    keys = {"recorded_s": "recorded", "forecast_s": "likely", "low_s": "low", "high_s": "high", "real_s": "real"}
    out = {title: "%.2f" % (row[key] / 1e9) for title, key in keys.items()}
    error = round(100 * row["error"])
    return {
        "build": row["build"],
        "what": row["what"],
        "error_percent": error,
        "covered": "yes" if row["covered"] else "no",
        **out,
    }


def spread(values):
    """The median and the 90th percentile of some errors, in percent."""
    values = sorted(map(abs, values))
    return 100 * statistics.median(values), 100 * values[int(0.9 * (len(values) - 1))]


def summary(all_rows):
    covered = sum(row["covered"] for row in all_rows)
    worst = sorted(all_rows, key=lambda row: -abs(row["error"]))[:2]
    low, high = (100 * statistics.median(row[end] / row["likely"] - 1 for row in all_rows) for end in ("low", "high"))
    yield (
        "%d forecasts of %d builds: median error %.1f %%, 90th percentile %.1f %%; %d of %d real times (%.0f %%) are in the interval, whose median is %+.0f to %+.0f %%."
        % (
            len(all_rows),
            len({row["build"] for row in all_rows}),
            *spread(row["error"] for row in all_rows),
            covered,
            len(all_rows),
            100 * covered / len(all_rows),
            low,
            high,
        )
    )
    yield (
        "The worst: "
        + "; ".join("%s, %s (%+.0f %%)" % (row["build"], row["what"], 100 * row["error"]) for row in worst)
        + "."
    )


def kind(row):
    """What a row changes."""
    what = row["what"]
    for word, name in (
        ("again", "nothing"),
        ("CPU", "CPUs"),
        ("quota", "a quota"),
        ("load", "load"),
        ("-j", "jobs"),
        ("×", "work or waits by a factor"),
    ):
        if word in what:
            return name
    return "less work, shards, another order"


def of_kind(name, part):
    covered = sum(row["covered"] for row in part)
    return "| %s | %d | %.1f %% | %.1f %% | %d |" % (name, len(part), *spread(row["error"] for row in part), covered)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tr", default=os.path.join(HERE, "target/release/tr"))
    parser.add_argument("--seconds", type=int, default=1 << 30, help="start no further run after so many")
    parser.add_argument("--limit", type=float, default=60, help="leave out builds that take more seconds")
    parser.add_argument("--out", help="a page: its section gets the sums")
    parser.add_argument("--csv", help="the rows as CSV")
    parser.add_argument("--keep", help="a directory for the recordings: those that are there are not made again")
    parser.add_argument(
        "--from", dest="kept", metavar="DIR", help="run nothing: forecast with the recordings of an earlier --keep DIR"
    )
    parser.add_argument("--clock", action="store_true", help="hold against the clock, of a machine without other work")
    parser.add_argument("builds", nargs="*")
    args = parser.parse_args()
    args.tr = os.path.abspath(args.tr)
    args.until = time.monotonic() + args.seconds
    found = []
    for name in args.builds or BUILDS_OF:
        with tempfile.TemporaryDirectory(dir="/dev/shm") as work:
            try:
                for row in rows(Runs(args, name, work), name):
                    if row:
                        found.append(row)
                        print(list(table([row]))[-1], flush=True)
            except NoTime:
                print("%s: no time is left" % name, file=sys.stderr)
    shutil.rmtree(real.PLACE, ignore_errors=True)
    lines = ["## Forecasts", ""]
    for clock, title in ((False, "Without other tasks"), (True, "By the clock")):
        part = [row for row in found if row["clock"] == clock]
        if part:
            lines += [title + ": " + "\n".join(list(summary(part))[:-1]), ""]
    kinds = {}
    for row in found:
        kinds.setdefault(kind(row), []).append(row)
    lines += ["| kind | forecasts | median error | 90th percentile | covered |", "| --- | --- | --- | --- | --- |"]
    lines += [of_kind(name, part) for name, part in kinds.items()] + [""]
    lines += [list(summary([row for row in found if row["clock"] == args.clock] or found))[-1], ""]
    lines += [results.link(args.csv), ""] if args.csv else [*table(found), ""]
    if args.csv:
        results.write(args.csv, HEADER, map(cells, found))
    made = "By `benches/validation/predict.py`%s on %s, %d CPUs" % (
        " --clock" if args.clock else "",
        time.strftime("%Y-%m-%d"),
        os.cpu_count(),
    )
    load = ", load of the last 15 minutes %.1f" % os.getloadavg()[2]
    lines.insert(2, made + (", with recordings that were there." if args.kept else load + "."))
    if args.out:
        section.replace(args.out, "\n".join(lines))
    else:
        print("\n".join(lines))


if __name__ == "__main__":
    main()
