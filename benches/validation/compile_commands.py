#!/usr/bin/env python3
"""Compares the compile commands that `tr` exports of real builds with Bear's, and with CMake's own.

usage: benches/validation/compile_commands.py [--tr TR] [--csv FILE] [--keep DIR] [PROJECT...]

Each project is built three times in one directory: recorded by `tr`, under Bear, and, where CMake configures it, CMake writes its own
file. Entries are matched by their source and their output, both as absolute paths, and then their directories and arguments are
compared, one by one. Each difference has a name (DIFFERENCES below); one without a name fails. Needs root, bear, cmake, ninja, ccache, and
the sources of real.py.
"""

import argparse
import csv
import json
import os
import shlex
import shutil
import subprocess
import sys
import tempfile

import real

CMAKE = "cmake -S . -B b -DCMAKE_EXPORT_COMPILE_COMMANDS=ON -DCMAKE_BUILD_TYPE=Release "
# The source, what configures it, and the command.
PROJECTS = {
    "bzip2 (make)": ("bzip2", "", "make -s libbz2.a bzip2 bzip2recover"),
    "lz4 (make)": ("lz4", "", "make -s -j2 -C lib && make -s -j2 -C programs lz4"),
    "jansson (libtool)": ("jansson", "autoreconf -fi && ./configure -q", "make -s -j2"),
    "json-c (CMake, make)": ("json-c", CMAKE + "-G 'Unix Makefiles'", "cmake --build b -j2"),
    "cjson (CMake, ccache)": ("cjson", CMAKE + "-G Ninja -DCMAKE_C_COMPILER_LAUNCHER=ccache", "ninja -C b -j2"),
    "fmt (CMake, C++)": ("fmtlib", CMAKE + "-G Ninja -DFMT_TEST=OFF", "ninja -C b -j2"),
}
# How the entries of two files differ where both are right.
DIFFERENCES = {
    "compiler's path": "the compiler by another path to the same file",
    "order": "Bear writes -c, -o and the source last",
    "-c added": "Bear adds -c to a call that compiles and links",
    "-M left out": "Bear leaves the options for lists of dependencies out",
    "link left out": "Bear leaves the arguments of the linker out",
    "output left out": "a name that only the compiler's default decides is in one file alone",
    "launcher": "CMake's entry lacks the launcher (ccache), or has it",
    "not built": "CMake lists what the command did not build",
}


def entries(path):
    """The entries of a file by source and output."""
    with open(path) as file:
        found = json.load(file)
    return [
        {
            "directory": os.path.normpath(entry["directory"]),
            "file": inside(entry, entry["file"]),
            "output": output(entry),
            "arguments": arguments(entry),
        }
        for entry in found
    ]


def arguments(entry):
    return entry.get("arguments") or shlex.split(entry["command"])


def output(entry):
    """The output of an entry: CMake's entries have it in their command alone."""
    words = arguments(entry)
    name = entry.get("output") or (words[words.index("-o") + 1] if "-o" in words else None)
    return inside(entry, name) if name else None


def inside(entry, path):
    return os.path.normpath(os.path.join(entry["directory"], path))


def compiler(name):
    """The file that a compiler's name leads to."""
    return os.path.realpath(shutil.which(name) or name)


def flags(entry):
    """The arguments of an entry without the compiler, -c, the output and the source; the options for dependencies apart."""
    found, depends, words = [], [], iter(entry["arguments"][1:])
    for word in words:
        if word == "-o":
            next(words, None)
        elif word in ("-MF", "-MT", "-MQ"):
            depends.append(word + next(words, ""))
        elif word.startswith("-M"):
            depends.append(word)
        elif word != "-c" and inside(entry, word) != entry["file"]:
            found.append(word)
    return found, depends


def is_link(word):
    return (
        word.startswith(("-l", "-L", "-Wl,"))
        or word in ("-shared", "-static", "-rdynamic")
        or word.endswith((".o", ".a", ".so"))
    )


def difference(own, other):
    """The names of the differences between two entries of a source; "" if they are equal, None if one has no name."""
    if own["directory"] != other["directory"]:
        return None
    named = []
    for entry in [own, other]:
        if os.path.basename(entry["arguments"][0]) == "ccache":
            entry["arguments"] = entry["arguments"][1:]
            named.append("launcher")
    mine, their = own["arguments"], other["arguments"]
    if mine[0] != their[0]:
        if compiler(mine[0]) != compiler(their[0]):
            return None
        named.append("compiler's path")
    if "-c" in their and "-c" not in mine:
        named.append("-c added")
    (mine_flags, mine_depends), (their_flags, their_depends) = flags(own), flags(other)
    if mine_depends != their_depends:
        if their_depends:
            return None
        named.append("-M left out")
    if mine_flags != their_flags:
        if [word for word in mine_flags if not is_link(word) or word in their_flags] != their_flags:
            return None
        named.append("link left out")
    if (
        named[-1:] not in (["-M left out"], ["link left out"])
        and sorted(mine[1:]) == sorted(their[1:])
        and mine[1:] != their[1:]
    ):
        named.append("order")
    if own["output"] != other["output"]:
        if own["output"] and other["output"]:
            return None
        named.append("output left out")
    return " + ".join(named)


def compare(own, other, of_cmake):
    """The numbers of entries by the name of their difference, and the texts of differences without a name."""
    counts, unnamed = {}, []
    left = list(other)
    for entry in own:
        same = [it for it in left if it["file"] == entry["file"]]
        same = [it for it in same if it["output"] == entry["output"]] or [
            it for it in same if not (it["output"] and entry["output"])
        ]
        if not same:
            unnamed.append(f"only in tr's: {entry}")
            continue
        left.remove(same[0])
        name = difference(entry, same[0])
        if name is None:
            unnamed.append(f"tr: {entry}\n    other: {same[0]}")
        else:
            counts[name or "equal"] = counts.get(name or "equal", 0) + 1
    for entry in left:
        built = entry["output"] and os.path.exists(entry["output"])
        if of_cmake and not built:
            counts["not built"] = counts.get("not built", 0) + 1
        else:
            unnamed.append(f"only in the other's: {entry}")
    return counts, unnamed


def build(name, tr, work):
    """The three files of a project: tr's, Bear's, and CMake's, which not every project has."""
    package, prepare, command = PROJECTS[name]
    place = os.path.join(work, package)
    env = {**os.environ, "CCACHE_DIR": os.path.join(work, "ccache")}

    def run(words, quiet=True):
        out = subprocess.run(words, cwd=place, env=env, stdin=subprocess.DEVNULL, capture_output=quiet, text=True)
        if out.returncode:
            raise SystemExit(f"{name}: {words}: {out.returncode}\n{out.stdout}{out.stderr}")
        return out.stderr

    def fresh():
        shutil.rmtree(place, ignore_errors=True)
        shutil.rmtree(env["CCACHE_DIR"], ignore_errors=True)
        shutil.copytree(real.deb(package), place, symlinks=True)
        if prepare:
            run(["sh", "-c", prepare])

    trace, own, bear = (os.path.join(work, file) for file in ["trace.bin", "own.json", "bear.json"])
    for file in [trace, own, bear]:
        if os.path.exists(file):
            os.remove(file)
    fresh()
    run(["bear", "--output", bear, "--", "sh", "-c", command])
    fresh()
    run([tr, "record", "-q", "-o", trace, "--", "sh", "-c", command])
    said = run([tr, "export", trace, "--format", "compile-commands", "-o", own])
    cmake = os.path.join(place, "b", "compile_commands.json")
    return own, bear, cmake if os.path.exists(cmake) else None, said


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tr", default="target/release/tr")
    parser.add_argument("--csv")
    parser.add_argument("--keep", help="keep the files of each project here")
    parser.add_argument("projects", nargs="*", default=list(PROJECTS))
    args = parser.parse_args()
    tr = os.path.abspath(args.tr)
    rows, bad = [], 0
    with tempfile.TemporaryDirectory(prefix="tr-compile-commands-") as work:
        for name in args.projects or PROJECTS:
            own, bear, cmake, said = build(name, tr, work)
            print(f"{name}\n  {said.strip()}")
            for other, path in [("bear", bear), ("cmake", cmake)]:
                if not path:
                    continue
                counts, unnamed = compare(entries(own), entries(path), other == "cmake")
                bad += len(unnamed)
                for difference_, count in sorted(counts.items()):
                    print(f"  {other:5} {count:4} {difference_}")
                    rows.append([name, other, difference_, count])
                for text in unnamed:
                    print(f"  {other:5}    1 WITHOUT A NAME {text}")
                    rows.append([name, other, "without a name", 1])
            if args.keep:
                target = os.path.join(args.keep, PROJECTS[name][0])
                os.makedirs(target, exist_ok=True)
                for file in filter(None, [own, bear, cmake]):
                    shutil.copy(file, os.path.join(target, "cmake.json" if file == cmake else os.path.basename(file)))
    if args.csv:
        with open(args.csv, "w", newline="") as out:
            writer = csv.writer(out, lineterminator="\n")
            writer.writerow(["project", "against", "difference", "entries"])
            writer.writerows(rows)
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
