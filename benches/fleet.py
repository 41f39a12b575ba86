#!/usr/bin/env python3
"""Holds fleet/report.py to generated runs: false alarms, planted changes, time and memory.

fleet.py noise [SEEDS [RUNS [KIND...]]]  false alarms and found changes of 5 %, by kind of noise (default 500, 200,
                                  all); SEEDS is a number, or FIRST-LAST
fleet.py bound                    what the best test finds that knows the noise, at 1 % of false alarms
fleet.py fleet WORK [SEEDS [RUNS]] a dataset of such series, half of them with a change, and what the report says of it
fleet.py size WORK [RUNS]         time and memory for RUNS runs (default 1,000,000) on two CPUs
fleet.py make WORK [RUNS [REPOSITORIES]]  that dataset alone, as after fleet/compact.py"""

import concurrent.futures
import os
import pathlib
import shutil
import subprocess
import sys
import time

HERE = pathlib.Path(__file__).parent
sys.path[:0] = [str(HERE.parent / "fleet"), str(HERE.parent / "fleet/tests")]
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import bound
import generated
import noise
from tr_fleet import changes


def tried(job):
    """Changes without a plant; changes with one, and those within three runs of it."""
    kind, seed, runs = job
    quiet = changes.changes(*noise.series(kind, seed, runs)[:3])
    *columns, at = noise.series(kind, seed, runs, 0.05)
    found = changes.changes(*columns)
    near = [fit for offset, fit in found if fit.kind == "step" and abs(offset + fit.first - at) <= 3]
    return sum(fit.kind == "step" for _, fit in quiet), len(quiet), len(found), len(near)


def by_noise(seeds=500, runs=200, *kinds):
    first, _, last = str(seeds).rpartition("-")
    begin = int(first or 1000)
    seeds, runs = (int(last) - begin + 1 if first else int(last)), int(runs)
    print(f"{seeds} series a kind, {runs} runs each")
    print(f"{'noise':<24}{'false: sudden':>14}{'all':>8}{'5 % found':>11}{'within 3 runs':>15}")
    with concurrent.futures.ProcessPoolExecutor() as workers:
        for kind in kinds or noise.KINDS:
            jobs = [(kind, seed, runs) for seed in range(begin, begin + seeds)]
            rows = list(workers.map(tried, jobs, chunksize=10))
            shares = [sum(row[i] > 0 for row in rows) / seeds for i in range(4)]
            print(f"{kind:<24}{shares[0]:>14.1%}{shares[1]:>8.1%}{shares[2]:>11.1%}{shares[3]:>15.1%}", flush=True)


def fleet(work, seeds, runs):
    """The same series as runs of a dataset, through files and SQL; also runs that fail."""
    import json

    import duckdb
    import numpy as np

    shutil.rmtree(work, ignore_errors=True)
    work.mkdir(parents=True)
    columns = {name: [] for name in ("repo", "seq", "start_unix_ns", "wall_ns", "host", "failed")}
    planted = {}
    for kind in noise.KINDS:
        for seed in range(seeds):
            repo = f"{kind}/{seed}"
            wall, days, members, at = noise.series(kind, 5000 + seed, runs, 0.05 if seed % 2 else 0.0)
            planted[repo] = at if seed % 2 else None
            rng = np.random.default_rng(seed)
            # They stop early.
            failed = rng.random(runs) < 0.1
            _, first = np.unique(days, return_index=True)
            columns["repo"] += [repo] * runs
            columns["seq"] += range(runs)
            columns["start_unix_ns"] += (
                days * noise.DAY + (np.arange(runs) - np.repeat(first, np.diff(np.append(first, runs)))) * 10**12
            ).tolist()
            columns["wall_ns"] += (wall * np.where(failed, rng.random(runs), 1)).astype(int).tolist()
            columns["host"] += [
                f"pool-{it}" if it >= 0 else f"runner-{k}" for it, k in zip(members, rng.integers(0, 8, runs))
            ]
            columns["failed"] += failed.astype(int).tolist()
    rows = {name: np.array(values) for name, values in columns.items()}  # noqa: F841 (DuckDB reads it by its name)
    db = duckdb.connect()
    db.execute(
        "CREATE TABLE base AS SELECT *, repo || '-' || seq AS run, strftime(make_timestamp_ns(start_unix_ns), '%Y-%m-%d') AS date FROM rows"
    )
    for table, query in {
        "runs": """SELECT run, 'j' AS job, 'main' AS branch, CAST(hash(run) AS varchar) AS commit, 'make' AS command, 'k' AS command_key,
            failed AS exit_code, start_unix_ns, 4 AS cpus, wall_ns, wall_ns AS on_cpu_ns, wall_ns AS work_ns, wall_ns AS path_ns,
            wall_ns AS path_on_cpu_ns, 0 AS path_run_queue_ns, 0 AS path_disk_ns, 0 AS path_network_ns, 0 AS path_sleep_ns,
            0 AS path_other_ns, 0 AS path_unknown_ns, 0 AS run_queue_ns, false AS incomplete, 0 AS steps_left_out, repo, date FROM base""",
        "machine": "SELECT run, host, 'Linux' AS kernel, 4 AS cpus, repo, date FROM base",
    }.items():
        db.execute(f"COPY ({query}) TO '{work}/{table}' (FORMAT parquet, PARTITION_BY (repo, date))")
    said = subprocess.run(
        [sys.executable, HERE.parent / "fleet/report.py", work, "--format", "json"], stdout=subprocess.PIPE, check=True
    )
    found = {}
    for row in json.loads(said.stdout)["causes"]:
        found.setdefault(row["repo"], []).append(row)
    print(f"{seeds} series a kind, half with a change, {runs} runs each of which a tenth fails")
    print(f"{'noise':<24}{'false':>8}{'5 % found':>11}{'within 3 runs':>15}{'the code':>10}")
    for kind in noise.KINDS:
        mine = [(at, found.get(repo, [])) for repo, at in planted.items() if repo.startswith(kind + "/")]
        quiet = [rows for at, rows in mine if at is None]
        changed = [(at, rows) for at, rows in mine if at is not None]
        near = [
            [row for row in rows if row["shape"] == "sudden" and abs(row["seq"] - at - 1) <= 3] for at, rows in changed
        ]
        shares = [
            sum(map(bool, quiet)) / len(quiet),
            sum(bool(rows) for _, rows in changed) / len(changed),
            sum(map(bool, near)) / len(changed),
            sum(any(row["who"] == "code" for row in rows) for rows in near) / len(changed),
        ]
        print(f"{kind:<24}{shares[0]:>8.1%}{shares[1]:>11.1%}{shares[2]:>15.1%}{shares[3]:>10.1%}")


def measured(what, words):
    """Prints the time and memory of a command on two CPUs."""
    before = time.monotonic()
    command = ["taskset", "-c", "0,1", sys.executable, HERE.parent / "fleet/report.py", *words]
    child = subprocess.run(["/usr/bin/env", "python3", "-c", WATCH, *map(str, command)], capture_output=True, text=True)
    print(f"{what:<36}{time.monotonic() - before:8.1f} s  {child.stderr.strip().splitlines()[-1]}", flush=True)


# The peak of the command and of its workers together, sampled: what a container's limit would see.
WATCH = """
import os, subprocess, sys, threading, time
child = subprocess.Popen(sys.argv[1:], stdout=subprocess.DEVNULL)
peak = 0
def tree(pid):
    out = [pid]
    try:
        for task in os.listdir(f"/proc/{pid}/task"):
            for below in open(f"/proc/{pid}/task/{task}/children").read().split():
                out += tree(int(below))
    except OSError:
        pass
    return out
def rss(pid):
    try:
        lines = open(f"/proc/{pid}/smaps_rollup").read().splitlines()
        return next(int(line.split()[1]) for line in lines if line.startswith("Pss:"))
    except (OSError, StopIteration):
        return 0
while child.poll() is None:
    peak = max(peak, sum(map(rss, tree(child.pid))))
    time.sleep(1)
used = os.times()
print(f"CPU {used.children_user + used.children_system:.1f} s, status {child.returncode}, at most {peak / 1e6:.2f} GB", file=sys.stderr)
"""


def size(work, runs):
    generated.make(work, runs, max(1, runs // 5000))
    cache = f"{work}.cache"
    shutil.rmtree(cache, ignore_errors=True)
    measured("one repository", [work, "--repo", "team/repository-0"])
    measured("all", [work, "--format", "json", "--cache", cache])
    for table in ("runs", "machine", "steps", "programs"):
        last = sorted((work / table / "repo=team%2Frepository-3").iterdir())[-1]
        for path in last.iterdir():
            os.utime(path)
    measured("all again, one repository is new", [work, "--format", "json", "--cache", cache])
    measured("pages", [work, "--html", f"{work}.html", "--cache", cache])


if __name__ == "__main__":
    what, words = (sys.argv + [""])[1], sys.argv[2:]
    if what == "noise":
        by_noise(*words)
    elif what == "bound":
        bound.show()
    elif what == "fleet" and words:
        fleet(pathlib.Path(words[0]), *map(int, (words[1:] + ["40", "200"][len(words) - 1 :])[:2]))
    elif what == "size" and words:
        size(pathlib.Path(words[0]), int((words + ["1000000"])[1]))
    elif what == "make" and words:
        generated.make(pathlib.Path(words[0]), *map(int, (words[1:] + ["1000000", "200"][len(words) - 1 :])[:2]))
    else:
        sys.exit(__doc__)
