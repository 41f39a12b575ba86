#!/usr/bin/env python3
"""fleet/report.py on a dataset of 100,000 runs, in DuckDB with 2 threads.

    fleet.py DATASET WORK [RUNS]

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
report = pathlib.Path(__file__).parent.parent / "fleet/report.py"
before = time.monotonic()
subprocess.run(["taskset", "-c", "0,1", sys.executable, report, work, "-o", work / "report.txt"], check=True)
used = resource.getrusage(resource.RUSAGE_CHILDREN)
print(f"report: {time.monotonic() - before:.1f} s, CPU {used.ru_utime + used.ru_stime:.1f} s, {used.ru_maxrss / 1e6:.2f} GB")
