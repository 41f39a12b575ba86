#!/usr/bin/env python3
"""Records builds with planted faults in how they wait, and judges the first screen: docs/validation.md.

usage: benches/validation/waits.py [--tr TR] [--around idle,load,quota] [--rows FILE] [--csv FILE] [--screens DIR [--again]]
                           [--out PAGE] [PLANT...]

The plants are those of plants/waits.py and plants/waits_*.py. Each is run with and without its fault: the difference
is its gain, in the time of the build with its CPUs for itself. It is recorded once in each surrounding (see validate.py); the runs of the surrounding "idle" have a
real-time priority, so that the machine's other tasks do not matter. "shared" is the machine as it is, beside what others run. Of a plant
with known times on a quiet machine nothing is measured. The first screen is

    wrong   if a line promises more than the gain (by a quarter and 0.3 s at the low end of its interval), if a line about something
            else promises half of the gain, if it says that there is nothing to change although 0.3 s are and does not name
            the work itself as not judged, or if it advises a change of a build of kind "none";
    silent  if neither a line, nor the cause of its failure, nor what the verdict names as not judged, with its gain, is about
            the fault;
    right   otherwise.

A gain is within its interval if the fault's line holds it, give or take a tenth and 0.1 s; a bound of more than twice the gain and 0.5 s
does not hold it. --rows keeps each row as a line of JSON: a second call with the same file goes on where the first one ended.
--screens keeps the recordings and what was printed, for a reader; --again judges the rows' recordings by the present program.
Needs root.
"""

import argparse
import importlib
import json
import os
import re
import statistics
import subprocess
import sys
import tempfile
import time

import results
import validate

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.dirname(HERE))
sys.path.insert(0, os.path.join(HERE, "plants"))
import section  # noqa: E402

NOTHING = re.compile(r"no change is known|nothing stands out|Verdict the machine:")
MACHINE = ("others", "throttled", "stolen")
ALONE = ("alone", "last")
# The kinds of plants whose fault is that too little runs at once.
SERIAL = ("jobs", "serial", "pool", "lock")
# The sets of plants, in the order in which they were made.
SETS = ["waits"] + [
    f"waits_{name}"
    for name in "blind later fourth fifth sixth seventh eighth ninth tenth eleventh twelfth thirteenth fourteenth fifteenth sixteenth seventeenth eighteenth nineteenth twentieth twentyfirst twentysecond twentyfourth twentysixth twentyseventh twentyeighth".split()
]
PLANTS = [plant for name in SETS for plant in importlib.import_module(name).PLANTS]
HEADER = [
    "plant",
    "kind",
    "axes",
    "around",
    "load",
    "wall_s",
    "fixed_s",
    "gain_s",
    "low_s",
    "high_s",
    "judged",
    "within",
    "line",
    "verdict",
]


def build(plant, place):
    """Writes the files of a plant and prepares them."""
    results.lay_out(plant.files, place)
    prepare = "sh setup.sh" if "setup.sh" in plant.files else plant.prepare
    subprocess.run(["sh", "-c", prepare], cwd=place, check=True, **validate.QUIET)


def run(place, enter, fixed=False, before=()):
    """The seconds of one run."""
    environment = {name: value for name, value in os.environ.items() if name not in ("FIX", "TMPDIR", "MAKEFLAGS")}
    if fixed:
        environment["FIX"] = "1"
    start = time.monotonic()
    subprocess.run(
        [*before, "bash", "run.sh"], cwd=place, env=environment, check=False, preexec_fn=enter,
        stdin=subprocess.DEVNULL, timeout=300, **validate.QUIET,
    )  # fmt: skip
    return time.monotonic() - start


def printed(tr, trace, *more):
    return subprocess.run([tr, "analyze", trace, *more], capture_output=True, text=True, check=False).stdout


def interval(line):
    """The seconds that a line of advice promises, from and to."""
    return line["gain_at_least_ns"] / 1e9, line["gain_at_most_ns"] / 1e9


def judge(plant, gain, found, screen):
    """What a first screen is, and the fault's line."""
    # What others take is the verdict's part.
    lines = [line for line in found["advice"] if line["kind"] not in MACHINE]
    if plant.kind == "none":
        # That one task runs alone is true of each of these.
        some = [line for line in lines if line["kind"] not in ALONE and interval(line)[1] > 2 * plant.spare]
        return ("wrong", some[0]) if some else ("right", None)
    named = next((line for line in lines if re.search(plant.line, f"{line['finding']}: {line['action']}")), None)
    for line in lines:
        low = interval(line)[0]
        if low > gain * 1.25 + 0.3 or line is not named and low > 0.5 * gain and low > 0.3:
            return "wrong", line
    if named:
        return "right", named
    failure = re.search(r"^Failed .*?(?=^Verdict )", screen, re.M | re.S)
    if failure and re.search(plant.line, failure[0]):
        return "right", None
    said = re.sub(r"\s+", " ", screen)
    # `the work itself: not judged (gzip 7.41 s of CPU)` names what may have to change, and says that nobody knows.
    work = re.search(r"the work itself: not judged \([^)]*\)", said)
    if gain > 0.3 and NOTHING.search(said) and not work:
        return "wrong", None
    if work and re.search(plant.line, work[0]):
        return "right", None
    # `number of jobs: not judged beside this load (up to 1.06 s less on free CPUs: give it -j2)`
    not_judged = " ".join(re.findall(r"(?:jobs|order of [^:;]*): not judged[^;]*? less[^;)]*", said))
    if plant.kind in SERIAL and re.search(r"\d m?s less", not_judged):
        return "right", None
    # `sleep of helper.sh beside the critical path: not judged (up to 5.11 s less on free CPUs)`
    sleeps = " ".join(re.findall(r"sleep of [^;]*?: not judged \([^)]* less[^)]*", said))
    # `mostly sleep in lease.test.js (2.50 s), not judged` names the sleeper with the most that it could be.
    sleeps += " ".join(re.findall(r"sleep in [^;]*?\([^)]*\)(?:,|:) not judged", said))
    return ("right" if re.search(plant.line, sleeps) else "silent"), None


def is_within(gain, low, high):
    slack = 0.1 * gain + 0.1
    return low - slack <= gain <= high + slack and high <= 2 * gain + 0.5


def measure(args, plant, around, place, walls):
    """Records a plant in a surrounding. `walls`: its seconds with and without the fault."""
    with validate.surrounding(around) as enter:
        trace = os.path.join(args.screens or place, f"{plant.name}-{around}.bin")
        load = os.getloadavg()[0]
        record = [args.tr, "record", "-q", "--force", "-o", trace, "--"]
        run(place, validate.at_once if around == "idle" else enter, before=record)
    return judged_row(args, plant, around, trace, (*walls, load))


def judged_row(args, plant, around, trace, measured):
    """The row of a recording. `measured`: its seconds with and without the fault, and the load of the machine."""
    wall, fixed, load = measured
    screen = printed(args.tr, trace)
    found = json.loads(printed(args.tr, trace, "--report", "advice", "--format", "json"))["advice"]
    gain = wall - fixed
    judged, line = judge(plant, gain, found, screen)
    low, high = interval(line) if line else (None, None)
    within = None
    if line and judged == "right":
        within = is_within(gain, low, high)
    if args.screens:
        with open(os.path.join(args.screens, f"{plant.name}-{around}.txt"), "w") as file:
            file.write(
                f"##### {plant.name} [{around}] load {load:.1f}: {judged}, {wall:.2f} - {fixed:.2f} = {gain:.2f}\n# {plant.kind}: {plant.answer}\n{screen}\n"
            )
    return {
        "plant": plant.name, "kind": plant.kind, "axes": plant.axes, "around": around, "load": round(load, 1),
        "wall_s": round(wall, 3), "fixed_s": round(fixed, 3), "gain_s": round(gain, 3), "low_s": low, "high_s": high,
        "judged": judged, "within": within, "line": line and line["finding"], "verdict": next(iter(re.findall(r"^Verdict +(.*)", screen, re.M)), ""),
    }  # fmt: skip


def forecasts(args):
    """Compares what the screens say of a build with the CPUs to itself, by its recording under a quota, with its idle recording."""
    errors, held = [], 0
    for plant in PLANTS:
        traces = [os.path.join(args.screens, f"{plant.name}-{around}.bin") for around in ("quota", "idle")]
        if not all(map(os.path.exists, traces)):
            continue
        found = (
            json.loads(printed(args.tr, trace, "--report", "advice", "--format", "json"))["advice"] for trace in traces
        )
        quota, idle = (part["verdict"] for part in found)
        if quota["blame"] == "code":
            continue
        errors.append(abs(quota["alone_ns"] - idle["wall_ns"]) / idle["wall_ns"])
        held += quota["alone_at_least_ns"] <= idle["wall_ns"] <= quota["alone_at_most_ns"]
    if errors:
        print(
            f"forecasts by recordings under the quota: {held} of {len(errors)} hold, median error {100 * statistics.median(errors):.1f} %"
        )


def again(args, row):
    """The row of a kept recording; None if the plant is gone."""
    plant = next((plant for plant in PLANTS if plant.name == row["plant"]), None)
    trace = os.path.join(args.screens, f"{row['plant']}-{row['around']}.bin")
    return plant and judged_row(args, plant, row["around"], trace, (row["wall_s"], row["fixed_s"], row["load"]))


def sums(rows):
    """The three numbers, each with what it counts."""
    faulty = [row for row in rows if row["kind"] != "none"]
    promised = [row for row in rows if row["within"] is not None]
    return {
        "wrong": (sum(row["judged"] == "wrong" for row in rows), len(rows)),
        "silent": (sum(row["judged"] == "silent" for row in faulty), len(faulty)),
        "within": (sum(row["within"] for row in promised), len(promised)),
    }


def page(rows):
    out = [
        "## First screens of builds that wait\n",
        "`benches/validation/waits.py` runs builds with and without a planted fault in how they wait, recorded "
        "idle, beside two loops (load) or other builds (shared), and under a quota of 30 % of a CPU. "
        f"{len({row['plant'] for row in rows})} plants; the load average was {min(row['load'] for row in rows)} to {max(row['load'] for row in rows)}.\n",
        "| surrounding | first screens wrong (goal ≤ 2 %) | silent where something could be changed (≤ 10 %) | gains within their interval (≥ 85 %) |",
        "| --- | ---: | ---: | ---: |",
    ]
    for around in ["idle", "load", "shared", "quota", "all"]:
        some = [row for row in rows if around in ("all", row["around"])]
        if some:
            cells = [f"{part} of {whole} ({100 * part / max(whole, 1):.0f} %)" for part, whole in sums(some).values()]
            out.append(f"| {around} | " + " | ".join(cells) + " |")
    out.append(
        "\n[First looks](../benches/validation/results/waits-first-look.csv) at 27 sets: 81 of 869 wrong, 61 of 627 silent, 417 of 513 within; at the last two, builds "
        "of all kinds, 4 of 52, 2 of 36, 25 of 31. The four: a command repeated on purpose, a test of a lease."
        "\n\nThe rows: [waits.csv](../benches/validation/results/waits.csv)."
    )
    return "\n".join(out) + "\n"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tr", default="target/release/tr")
    parser.add_argument("--around", default="idle,load,quota")
    parser.add_argument("--rows")
    parser.add_argument("--csv")
    parser.add_argument("--screens")
    parser.add_argument("--again", action="store_true")
    parser.add_argument("--out")
    parser.add_argument("plants", nargs="*", metavar="PLANT")
    args = parser.parse_args()
    args.tr = os.path.abspath(args.tr)
    if args.screens:
        args.screens = os.path.abspath(args.screens)
        os.makedirs(args.screens, exist_ok=True)
    rows = []
    if args.rows and os.path.exists(args.rows):
        with open(args.rows) as file:
            rows = [json.loads(line) for line in file]
    if args.again:
        rows = [row for row in (again(args, row) for row in rows) if row]
        with open(args.rows, "w") as file:
            file.writelines(json.dumps(row) + "\n" for row in rows)
    done = {(row["plant"], row["around"]) for row in rows}
    for plant in PLANTS:
        if args.plants and plant.name not in args.plants:
            continue
        if args.again:
            continue
        todo = [around for around in args.around.split(",") if (plant.name, around) not in done]
        if not todo:
            continue
        before = next((row for row in rows if row["plant"] == plant.name), None)
        with tempfile.TemporaryDirectory(prefix="waits-") as place:
            try:
                build(plant, place)
            except subprocess.CalledProcessError as error:
                print(f"left out: {plant.name} cannot be prepared here: {error}", flush=True)
                continue
            if before:
                walls = before["wall_s"], before["fixed_s"]
            elif plant.quiet:
                walls = plant.quiet
            else:
                walls = run(place, validate.at_once), run(place, validate.at_once, fixed=True)
            for around in todo:
                row = measure(args, plant, around, place, walls)
                rows.append(row)
                print(
                    f"{row['judged']:7} {row['gain_s']:5.2f} {plant.name} [{around}] {row['low_s']} {row['high_s']} {row['within']} {row['line']} | {row['verdict']}",
                    flush=True,
                )
                if args.rows:
                    with open(args.rows, "a") as file:
                        file.write(json.dumps(row) + "\n")
    print(page(rows))
    if args.screens:
        forecasts(args)
    if args.csv:
        results.write(args.csv, HEADER, rows)
    if args.out:
        section.replace(args.out, page(rows) + ("\n" + results.link(args.csv) + "\n" if args.csv else ""))


if __name__ == "__main__":
    main()
