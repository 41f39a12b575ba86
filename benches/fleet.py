#!/usr/bin/env python3
"""The questions of fleet/report.py to a dataset of 100,000 runs, in DuckDB with 2 threads, each with its time.

    fleet.py DATASET WORK [RUNS]
    fleet.py --ask WORK

DATASET has some simulated runs (tr-sim's example `fleet`, then tr export). Their rows are copied until
there are RUNS (default 100,000), in 10 periods one after the other, and rows of processes ten times
each: simulated runs have few. A repository has a file a period, as after a compaction."""

import pathlib
import resource
import shutil
import subprocess
import sys
import time

import duckdb

sys.path.insert(0, str(pathlib.Path(__file__).parent.parent / "fleet"))


def ask(directory):
    """Prints the time of each question as fleet/report.py asks it, and the memory."""
    import engines
    import report

    def timed(what, run):
        before, cpu = time.monotonic(), time.process_time()
        result = run()
        print(f"{what:<18} {time.monotonic() - before:7.1f} s, CPU {time.process_time() - cpu:7.1f} s", flush=True)
        return result

    args = report.arguments([directory])
    engine = timed("start", lambda: engines.ENGINES["duckdb"](None))
    timed("find the files", lambda: report.dataset.find(directory, []))
    timed("find and load", lambda: report.load(engine, args, []))
    for name in report.STEPS:
        timed(name, lambda: engine.define(name, report.question(name)))
    for name in report.ANSWERS:
        timed(name, lambda: (engine.define(name, report.question(name)), engine.rows(name)))
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    print(f"all                CPU {time.process_time():.1f} s, at most {peak / 1e6:.2f} GB")


if sys.argv[1] == "--ask":
    ask(sys.argv[2])
    sys.exit()
source, work, wanted = sys.argv[1], pathlib.Path(sys.argv[2]), int((sys.argv + ["100000"])[3])
TABLES = ["runs", "steps", "programs", "processes", "path", "machine"]
db = duckdb.connect(config={"threads": 2, "temp_directory": str(work) + ".tmp"})
for table in TABLES:
    db.execute(
        f"create table {table} as select * from read_parquet('{source}/{table}/*/*/*.parquet',"
        " hive_partitioning = true, hive_types_autocast = false)"
    )
count = db.execute("select count(*) from runs").fetchone()[0]
copies = -(-wanted // count)
shutil.rmtree(work, ignore_errors=True)
work.mkdir(parents=True)
# The span of all runs is the distance of two periods.
span = db.execute("select max(start_unix_ns) - min(start_unix_ns) + 21600000000000 from runs").fetchone()[0]
days = -(-span // 86_400_000_000_000)
for table in TABLES:
    more = ", range(10) e(again)" if table == "processes" else ""
    start = ", start_unix_ns + k % 10 * {} as start_unix_ns".format(days * 86_400_000_000_000) if table == "runs" else ""
    fields = "* exclude (run, repo, date, k" + (", again" if more else "") + (", start_unix_ns)" if start else ")")
    db.execute(
        f"copy (select {fields}, run || '-' || k as run{start}, repo || '-' || k // 10 as repo,"
        f" cast(date '2026-01-01' + cast(k % 10 * {days} as integer) as string) as date"
        f" from {table}, range({copies}) c(k){more})"
        f" to '{work}/{table}' (format parquet, compression zstd, partition_by (repo, date), filename_pattern '{{uuid}}',"
        f" kv_metadata {{'tr.table': '{table}'}})"
    )
    rows = db.execute(f"select count(*) from {table}").fetchone()[0] * copies * (10 if more else 1)
    files = sum(1 for _ in (work / table).rglob("*.parquet"))
    size = sum(path.stat().st_size for path in (work / table).rglob("*.parquet"))
    print(f"{table}: {rows:,} rows, {files:,} files, {size / 1e6:.1f} MB", flush=True)
subprocess.run(["taskset", "-c", "0,1", sys.executable, __file__, "--ask", work], check=True)
