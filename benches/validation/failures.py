#!/usr/bin/env python3
"""Records builds and test runs that fail for a known reason, and compares what `tr summary` names with it.

usage: benches/validation/failures.py [--tr TR] [--part 1..20] [--path DIR]... [--keep DIR] [--csv FILE] [PLANT...]

plants/failing.py has the plants. A plant is *right* if its cause is the first failure that is named (for a command that fails for a
reason of its own: if nothing that it ran is named), *perhaps* if the report says "perhaps" beside it, *silent* if only what
the cause made fail is named, *wrong* if something else is named, and *wrong, perhaps* if that is said with "perhaps". Needs
root; a plant whose tool is not on PATH (or in `--path`) is skipped and reported.
"""

import argparse
import json
import os
import re
import shlex
import shutil
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "plants"))
import failing  # noqa: E402
import results  # noqa: E402

MOST = 120


def record(args, name, plant, place):
    results.lay_out(plant.files, place)
    trace = os.path.join(args.keep or place, f"{name}.bin")
    if not os.path.exists(trace):
        # `make -O` locks its output, and others may hold a lock on /dev/null.
        with tempfile.TemporaryFile() as output:
            quiet = {"cwd": place, "stdin": subprocess.DEVNULL, "stdout": output, "stderr": output, "timeout": MOST}
            if plant.before:
                subprocess.run(shlex.split(plant.before), check=True, **quiet)
            done = subprocess.run([args.tr, "record", "-q", "-o", trace, "--", *shlex.split(plant.command)], **quiet)
        if done.returncode == 0:
            sys.exit(f"{name}: its command does not fail")
    out = subprocess.run([args.tr, "summary", "--format", "json", trace], check=True, capture_output=True, text=True)
    return json.loads(out.stdout)["failures"]


def judge(plant, failures):
    """What the first failure is, by the plant."""
    if not failures:
        return "silent", ""
    first = failures[0]
    chain = " → ".join([f"{first['name']} ({first['end']})", *first["above"]])
    if first["perhaps"]:
        chain += ", perhaps"
    names = [first["name"], *first["above"]]
    itself = not first["above"]
    if plant.cause == "itself":
        return ("right" if itself else "wrong, perhaps" if first["perhaps"] else "wrong"), chain
    # A program that is not there is in the words of its end, or in the statement of the script that could not start it.
    texts = [names[0], first["end"], (first.get("statement") or {}).get("text", "")]
    if any(re.search(plant.cause, text) for text in texts) or itself and "itself" in plant.cause:
        return ("perhaps" if first["perhaps"] else "right"), chain
    if itself or plant.also and re.search(plant.also, names[0]):
        return "silent", chain
    return ("wrong, perhaps" if first["perhaps"] else "wrong"), chain


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--tr", default=os.path.join(HERE, "../../target/debug/tr"))
    parser.add_argument("--part", type=int, choices=range(1, len(failing.PARTS) + 1))
    parser.add_argument("--path", action="append", default=[])
    parser.add_argument("--keep")
    parser.add_argument("--csv", help="the rows as CSV")
    parser.add_argument("plants", nargs="*")
    args = parser.parse_args()
    args.tr = os.path.abspath(args.tr)
    os.environ["PATH"] = ":".join([*args.path, os.environ["PATH"]])
    if args.keep:
        args.keep = os.path.abspath(args.keep)
        os.makedirs(args.keep, exist_ok=True)
    plants = failing.PARTS[args.part - 1] if args.part else failing.ALL
    counts, rows = {}, []
    for name in args.plants or plants:
        plant = failing.ALL[name]
        if not shutil.which(plant.needs or shlex.split(plant.command)[0]):
            print(f"{name}: skipped, its tool is missing", file=sys.stderr)
            continue
        with tempfile.TemporaryDirectory() as place:
            verdict, chain = judge(plant, record(args, name, plant, place))
        counts[verdict] = counts.get(verdict, 0) + 1
        # The directory of a run says nothing.
        first = re.sub(r"/tmp/\S*/", "/tmp/…/", chain.split(" → ")[0])
        rows.append({"plant": name, "command": plant.command, "named_first": first, "result": verdict})
        print(f"{verdict:15} {name:18} {chain}", flush=True)
    if args.csv:
        results.write(args.csv, ["plant", "command", "named_first", "result"], rows)
    print(", ".join(f"{count} {verdict}" for verdict, count in sorted(counts.items())), file=sys.stderr)


if __name__ == "__main__":
    main()
