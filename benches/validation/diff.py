#!/usr/bin/env python3
"""Plants a difference in a small build and asks `tr diff` for it: a table of docs/validation.md.

usage: benches/validation/diff.py [--tr TR] [--runs N] [--around idle,load,quota] [--keep DIR] [--csv FILE] [PLANT...]

Each build is recorded N times without and N times with the difference, by turns, alone, beside two
tasks that spin, and in a cgroup with 30 % of a CPU (the surroundings of validate.py). What is named is
held to what was planted: right, silent (nothing is named), or wrong. `runner` plants nothing: two tasks
spin beside the new side alone, and `nothing` plants nothing at all. Needs root, cc and make. Recordings
that are in DIR already are compared again.
"""

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time

import results
from validate import HERE, QUIET, surrounding

WORK = """
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
int main(int argc, char **argv) {
	volatile double v = argc;
	for (long i = 0; i < atol(argv[1]) * 300000L; i++) v = v * 1.0000001 + i;
	for (long m = argc > 2 ? atol(argv[2]) : 0; m > 0; m--) memset(malloc(1 << 20), (int)m, 1 << 20);
	return v < 0;
}
"""
SYNC = """
#include <fcntl.h>
#include <unistd.h>
int main(int argc, char **argv) {
	int file = open(argv[1], O_CREAT | O_WRONLY | O_TRUNC, 0600);
	for (int i = 0; i < 3000; i++) { if (write(file, argv, 4096) < 0 || fsync(file)) return 1; }
	return 0;
}
"""
# Answers after as many ms as the first line of the file `delay` says.
SERVER = """
import socket, sys, time
s = socket.create_server(("127.0.0.1", 0))
open("port", "w").write(str(s.getsockname()[1]))
while True:
    c = s.accept()[0]
    time.sleep(int(c.recv(9)) / 1000)
    c.sendall(b"done")
    c.close()
"""
CLIENT = "exec 3<>/dev/tcp/127.0.0.1/$$(cat %s/port); printf %d >&3; read -r x <&3; true"

MAKEFILE = """
OBJECTS = u1.o u2.o u3.o u4.o u5.o u6.o
all: check
app: $(OBJECTS) main.o
	$(CC) -o $@ $^
%.o: %.c
	$(CC) $(CFLAGS) -c -o $@ $<
gen:
	./work 150
check: gen app
	./work 100
#MORE
"""


HEAD = """
## Two builds

`benches/validation/diff.py` plants a difference in a small build of C files, records it without and with the difference by turns, alone
(`idle`), beside two tasks that spin, and under a quota of 30 % of a CPU, and asks `tr diff`. `silent`: no cause is named.
`runner` plants no difference: two tasks spin beside the new side alone; `nothing` plants none at all.
"""


def unit(name):
    """A C file that keeps a compiler busy."""
    yield "static double v[64];"
    for i in range(30):
        yield (
            f"double {name}_{i}(int n) {{ double s = 0; for (int i = 0; i < n; i++) {{ v[i & 63] = v[(i * {i}) & 63] * 1.5 + s;"
            f" s += v[i & 7] * n; if (s > {i}) s -= v[3]; }} return s; }}"
        )


class Plant:
    """A difference: edits of the Makefile or of the command for the new side, and what is right: a cause, and whose it is."""

    def __init__(self, right, edit=("", ""), base=("", ""), command=("make -s -j2 CFLAGS=-O2",) * 2, whose=None):
        self.right, self.edits, self.commands, self.whose = right.split(), (base, edit), command, whose


MORE = "\ncheck: more\nmore: app gen\n\t"
LOCKED = "check: a b\na b: app gen\n\t%s./work 300\n"
PLANTS = {
    "O2-O0": Plant("work", command=("make -s -j2 CFLAGS=-O2", "make -s -j2 CFLAGS=-O0")),
    "O0-O3": Plant("work", command=("make -s -j2 CFLAGS=-O0", "make -s -j2 CFLAGS=-O3")),
    "sleep": Plant("sleep", edit=("#MORE", MORE + "sleep 0.7\n")),
    "test": Plant("work", edit=("#MORE", MORE + "./work 500\n")),
    # The same work, of which nothing else runs beside a part.
    "serial": Plant("order", edit=("#MORE", "$(OBJECTS) main.o: gen")),
    "jobs": Plant("order", command=("make -s -j2 CFLAGS=-O2", "make -s -j1 CFLAGS=-O2")),
    "fsync": Plant("disk", edit=("#MORE", MORE + "./sync $(DISK)/file\n")),
    # It was started before: nobody can tell whose it is.
    "server": Plant(
        "network outside",
        whose="unclear",
        base=("#MORE", MORE + "bash -c '" + CLIENT % ("$(DISK)", 50) + "'\n"),
        edit=("#MORE", MORE + "bash -c '" + CLIENT % ("$(DISK)", 800) + "'\n"),
    ),
    "gone": Plant("work", base=("#MORE", MORE + "./work 500\n")),
    "fails": Plant("failed", edit=("./work 100", "./work 100; false")),
    "processes": Plant("work", edit=("#MORE", MORE + "for i in $$(seq 250); do /bin/true $$(seq 2000); done\n")),
    "memory": Plant("work", edit=("./work 100", "./work 100 700")),
    "lock": Plant("order", base=("#MORE", LOCKED % ""), edit=("#MORE", LOCKED % "flock lock ")),
    "nothing": Plant(""),
    "runner": Plant("others"),
}


def prepare(place, edit):
    os.mkdir(place)
    files = {"Makefile": MAKEFILE.replace(*edit) if edit[0] else MAKEFILE}
    files["main.c"] = "int main(void) { return 0; }\n"
    files.update({f"u{n}.c": "\n".join(unit(f"u{n}")) + "\n" for n in range(1, 7)})
    for name, text in files.items():
        with open(os.path.join(place, name), "w") as out:
            out.write(text)


def build(args, source, command, trace, enter):
    """Records a build of a fresh copy in the same place."""
    place = os.path.join(args.work, "run")
    shutil.rmtree(place, ignore_errors=True)
    shutil.copytree(source, place)
    for program in ("work", "sync"):
        shutil.copy(os.path.join(args.work, program), place)
    record = [args.tr, "record", "-q", "--force", "-o", trace, "--"]
    subprocess.run(record + command.split() + [f"DISK={args.disk}"], cwd=place, check=False, preexec_fn=enter, **QUIET)


def named(args, sides):
    """The first line, the cause that it names, and whose it is."""
    done = subprocess.run(
        [args.tr, "diff", "--format", "json", "--base", *sides[0], "--new", *sides[1]], capture_output=True, check=False
    )
    out = json.loads(done.stdout)
    if out["failure"]:
        return out["conclusion"], "failed" if done.returncode == 2 else "failed with status 0", None
    causes = [it["cause"] for it in out["causes"]]
    if "but CPU time" in out["conclusion"]:
        causes.append("work")
    return out["conclusion"], (causes or [""])[0], out["whose"]


def result(plant, name, whose):
    if name in plant.right or (not plant.right and not name):
        return "right" if plant.whose in (None, whose) else "wrong"
    return "wrong" if name else "silent"


def recorded(args, name, around):
    """The recordings of both sides."""
    plant = PLANTS[name]
    kept = os.path.join(args.keep or args.work, f"{name}-{around}")
    sides = [[os.path.join(kept, f"{side}-{run}.bin") for run in range(args.runs)] for side in (0, 1)]
    if os.path.exists(kept):
        return sides
    os.makedirs(kept + ".part")
    sources = [os.path.join(args.work, side) for side in ("base", "new")]
    for source, edit in zip(sources, plant.edits):
        shutil.rmtree(source, ignore_errors=True)
        prepare(source, edit)
    with surrounding(around) as enter:
        for run in range(args.runs):
            for side in (0, 1):
                spin = "load" if name == "runner" and side else None
                with surrounding(spin):
                    trace = os.path.join(kept + ".part", os.path.basename(sides[side][run]))
                    build(args, sources[side], plant.commands[side], trace, enter)
    os.rename(kept + ".part", kept)
    return sides


def measure(args, name, around):
    first, cause, whose = named(args, recorded(args, name, around))
    row = {"plant": name, "around": around, "first": first, "cause": cause}
    return row | {"result": result(PLANTS[name], cause, whose)}


def main():
    parser = argparse.ArgumentParser(usage=__doc__.replace("%", "%%"))
    parser.add_argument("--tr", default=os.path.join(HERE, "target/release/tr"))
    parser.add_argument("--runs", type=int, default=4)
    parser.add_argument("--around", default="idle,load,quota")
    parser.add_argument("--keep", help="a directory for the recordings")
    parser.add_argument("--csv", help="write the rows there, and only their sum to standard output")
    parser.add_argument("plants", nargs="*")
    args = parser.parse_args()
    args.tr = os.path.abspath(args.tr)
    rows = []
    with (
        tempfile.TemporaryDirectory(dir="/dev/shm") as args.work,
        tempfile.TemporaryDirectory(dir="/var/tmp") as args.disk,
    ):
        for program, text in (("work", WORK), ("sync", SYNC)):
            compiler = ["cc", "-O1", "-x", "c", "-o", os.path.join(args.work, program), "-"]
            subprocess.run(compiler, input=text.encode(), check=True)
        server = subprocess.Popen([sys.executable, "-c", SERVER], cwd=args.disk)
        try:
            print(HEAD)
            if not args.csv:
                print("| planted | around | named | result | the first line |\n| --- | --- | --- | --- | --- |")
            for name in args.plants or PLANTS:
                for around in args.around.split(","):
                    row = measure(args, name, around)
                    rows.append(row)
                    to = sys.stderr if args.csv else sys.stdout
                    print("| {plant} | {around} | {cause} | {result} | {first} |".format(**row), file=to, flush=True)
        finally:
            server.kill()
            server.wait()
    found = [row["result"] for row in rows]
    counts = ", ".join(f"{found.count(it)} {it}" for it in ("right", "silent", "wrong"))
    date = time.strftime("%Y-%m-%d")
    print(f"\n{date}, {os.cpu_count()} CPUs, {args.runs} runs a side, load {os.getloadavg()[2]:.1f}: {counts}.")
    if args.csv:
        columns = {"planted": "plant", "around": "around", "named": "cause", "result": "result", "first_line": "first"}
        results.write(args.csv, list(columns), ({title: row[key] for title, key in columns.items()} for row in rows))
        print("\n" + results.link(args.csv))


main()
