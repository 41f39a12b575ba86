"""A dataset of generated runs, as after a compaction."""

import shutil

import duckdb
from noise import DAY

STEPS = 6


def make(work, runs, repositories):
    """A dataset with a file a table, repository and day, 100 runs a day in four series."""
    shutil.rmtree(work, ignore_errors=True)
    work.mkdir(parents=True)
    db = duckdb.connect(config={"threads": 2, "temp_directory": f"{work}.tmp", "memory_limit": "4GB"})
    each = -(-runs // repositories)
    # A run's noise and its place; hashes are the same in each run of this script.
    db.execute(
        f"""CREATE TABLE base AS SELECT
            r.repo AS number, 'team/repository-' || r.repo AS repo, k.k,
            printf('%016x', hash(r.repo * 1000003 + k.k)) || printf('%016x', hash(k.k * 7919 + r.repo)) AS run,
            1767225600000000000 + (k.k // 100) * {DAY} + (k.k % 100) * 800000000000 AS start_unix_ns,
            CAST(date '2026-01-01' + CAST(k.k // 100 AS integer) AS varchar) AS date,
            'job-' || k.k % 4 AS job,
            1 + 0.02 * (hash(k.k * 31 + r.repo) % 2001 / 1000.0 - 1)
              + CASE WHEN r.repo % 10 = 0 AND k.k > {each} / 2 THEN 0.1 ELSE 0 END AS factor,
            hash(k.k * 17 + r.repo) % 8 AS host,
            CASE WHEN hash(k.k * 13 + r.repo) % 20 = 0 THEN 1 ELSE 0 END AS failed
        FROM range({repositories}) r(repo), range({each}) k(k)"""
    )
    ns = "CAST(factor * {} AS bigint)".format
    wall = 60_000_000_000
    tables = {
        "runs": f"""SELECT run, '0.2.0' AS tool, 'bpf' AS method, repo AS project, CAST(k AS varchar) AS ci_run, job,
            printf('%016x', hash(k // 4)) AS commit, 'main' AS branch, 'make check' AS command, 'k' AS command_key,
            failed AS exit_code, start_unix_ns, 4 AS cpus, {ns(wall)} AS wall_ns, 1000 AS processes, 1200 AS threads,
            900 AS execs, 0 AS failed, {ns(wall * 3)} AS on_cpu_ns, {ns(wall * 3)} AS work_ns, 1000000000 AS run_queue_ns,
            0 AS sleep_ns, 0 AS blocked_ns, 0 AS unknown_ns, {ns(wall)} AS path_ns, {ns(wall - 3_000_000_000)} AS path_on_cpu_ns,
            1000000000 AS path_run_queue_ns, 1000000000 AS path_disk_ns, 500000000 AS path_network_ns,
            500000000 AS path_sleep_ns, 0 AS path_other_ns, 0 AS path_unknown_ns, false AS incomplete, 0 AS lost_events,
            CAST(1073741824 * factor AS bigint) AS resident_peak_bytes, 3 AS cpus_p90, 0 AS steps_left_out, 0 AS processes_left_out, 'large' AS label, repo, date FROM base""",
        "machine": """SELECT run, 'runner-' || host AS host, 'Linux 6.1' AS kernel, 'x86_64' AS arch, 4 AS cpus,
            200000000000 AS busy_ns, 0 AS others_ns, 0 AS stolen_ns, 0 AS throttled_ns, 3000000 AS frequency_khz,
            'AMD EPYC' AS cpu_model, '25 17 1' AS cpu_stepping, '0x1' AS microcode, repo, date FROM base""",
        "steps": f"""SELECT run, 'object' AS kind, 'part-' || s || '.o' AS name, 1 AS count, 0 AS failed,
            {ns("(s + 1) * 2000000000")} AS wall_ns, {ns("(s + 1) * 2000000000")} AS longest_ns,
            {ns("(s + 1) * 1900000000")} AS on_cpu_ns, 100000000 AS run_queue_ns, 0 AS path_ns,
            {ns("(s + 1) * 1900000000")} AS spent_on_cpu_ns, 50000000 AS spent_run_queue_ns, 50000000 AS spent_disk_ns,
            0 AS spent_network_ns, 0 AS spent_sleep_ns, 0 AS spent_other_ns, 0 AS spent_unknown_ns, repo, date
            FROM base, range({STEPS}) s(s)""",
        "programs": f"""SELECT run, ['cc1', 'ld', 'sh', 'make'][p + 1] AS program, 100 AS processes, 0 AS failed,
            {ns("(p + 1) * 9000000000")} AS wall_ns, {ns("(p + 1) * 9000000000")} AS on_cpu_ns, 0 AS run_queue_ns,
            0 AS sleep_ns, 0 AS blocked_ns, 0 AS unknown_ns, repo, date FROM base, range(4) p(p)""",
    }
    for table, query in tables.items():
        # Some repositories at a time: a writer for each of their files is open.
        for first in range(0, repositories, 10):
            db.execute(
                f"COPY (SELECT * FROM ({query} WHERE number BETWEEN {first} AND {first + 9}) ORDER BY repo, date)"
                f" TO '{work}/{table}' (FORMAT parquet, COMPRESSION zstd, PARTITION_BY (repo, date), APPEND)"
            )
        paths = list((work / table).rglob("*.parquet"))
        print(f"{table}: {len(paths):,} files, {sum(path.stat().st_size for path in paths) / 1e6:.0f} MB", flush=True)
