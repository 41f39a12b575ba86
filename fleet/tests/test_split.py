"""The split of a change on datasets of one command beside a load, or alone."""

import json
import pathlib
import subprocess
import sys
import tempfile
import unittest

import duckdb
import numpy as np

HERE = pathlib.Path(__file__).parent
DAY = 86_400 * 10**9
MS = 1_000_000


def write(place, sides, spread=0.05):
    """Runs of one command on one host. A side has its number of runs, the CPU time in ms, the wait for a CPU per CPU time,
    and the part of the machine's CPU that other tasks use."""
    rng = np.random.default_rng(7)
    rows = []
    for count, cpu, rate, load in sides:
        for _ in range(count):
            work = cpu * MS * (1 + rng.normal(0, 0.01))
            wait = rate * work * np.exp(rng.normal(0, spread))
            wall = work + wait + 5 * MS
            rows.append((len(rows), int(work), int(wait), int(wall), int(load * 2 * wall)))
    values = ", ".join(map(str, rows))
    db = duckdb.connect()
    db.execute(
        f"""CREATE TABLE base AS SELECT *, 'run-' || n AS run, 'team/a' AS repo, '2026-01-02' AS date
            FROM (VALUES {values}) v(n, work_ns, wait_ns, wall_ns, others_ns)"""
    )
    tables = {
        "runs": f"""SELECT run, 'j' AS job, 'main' AS branch, printf('%016x', n) AS commit, 'make' AS command, 'k' AS command_key,
            0 AS exit_code, {20_455 * DAY} + n * 60000000000 AS start_unix_ns, 2 AS cpus, wall_ns, work_ns AS on_cpu_ns, work_ns,
            wall_ns AS path_ns, work_ns AS path_on_cpu_ns, wait_ns AS path_run_queue_ns, 0 AS path_disk_ns, 0 AS path_network_ns,
            {5 * MS} AS path_sleep_ns, 0 AS path_other_ns, 0 AS path_unknown_ns, wait_ns AS run_queue_ns, false AS incomplete,
            0 AS steps_left_out, repo, date FROM base""",
        "machine": """SELECT run, 'host' AS host, 'Linux' AS kernel, 2 AS cpus, others_ns, 'AMD' AS cpu_model, repo, date FROM base""",
    }
    for table, query in tables.items():
        db.execute(f"COPY ({query}) TO '{place}/{table}' (FORMAT parquet, PARTITION_BY (repo, date))")


def report(sides, words=("--format", "json"), **more):
    with tempfile.TemporaryDirectory() as place:
        write(place, sides, **more)
        command = [sys.executable, HERE.parent / "report.py", place, *words]
        said = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    return json.loads(said) if "json" in words else said


class Split(unittest.TestCase):
    def change(self, sides, **more):
        rows = [row for row in report(sides, **more)["causes"] if row["kind"] == "command"]
        self.assertEqual(len(rows), 1, rows)
        return rows[0]

    def test_waits_that_grow_with_the_work_are_the_work(self):
        row = self.change([(15, 100, 3.4, 0.9), (15, 240, 3.2, 0.9)])
        self.assertEqual((row["cause"], row["who"]), ("cpu", "code"), row)
        self.assertAlmostEqual(row["wait_ns"] / MS, 428, delta=40)
        self.assertAlmostEqual(row["starved_ns"] / MS, 0, delta=5)
        said = report([(15, 100, 3.4, 0.9), (15, 240, 3.2, 0.9)], words=())
        self.assertIn("CPU work up: the code or its tools, not the runner.", said)
        self.assertRegex(said, "waits in proportion .4\\d\\d ms · starved beyond 0 ")
        self.assertIn("Waits for a CPU per CPU second: 3.4 s before, 3.2 s after.", said)

    def test_less_work_that_waits_less_is_the_gain_of_the_code(self):
        row = self.change([(15, 240, 3.2, 0.9), (15, 100, 3.4, 0.9)])
        self.assertEqual((row["cause"], row["who"]), ("cpu", "code"), row)
        self.assertLess(row["wait_ns"], -400 * MS)

    def test_waits_beyond_the_work_are_the_runner(self):
        for before, after in [(0.0, 3.0), (1.0, 4.0)]:
            row = self.change([(15, 100, before, 0.1), (15, 115, after, 0.9)])
            self.assertEqual((row["cause"], row["starved_by"]), ("starved", "others"), row)
            self.assertAlmostEqual(row["wait_ns"] / MS, 15 * before, delta=5)

    def test_on_an_idle_machine_the_work_alone_counts(self):
        row = self.change([(15, 100, 0.0, 0.0), (15, 240, 0.0, 0.0)])
        self.assertEqual((row["cause"], row["wait_ns"], row["starved_ns"]), ("cpu", 0, 0), row)

    def test_a_load_that_ends_is_the_runner_though_the_work_shrinks(self):
        row = self.change([(15, 110, 3.0, 0.9), (15, 100, 0.1, 0.1)])
        self.assertEqual(row["cause"], "starved", row)

    def test_waits_that_differ_by_less_than_their_noise_accuse_nobody(self):
        row = self.change([(80, 100, 2.0, 0.9), (80, 112, 2.3, 0.9)], spread=0.35)
        self.assertEqual((row["cause"], row["sure"]), ("mixed", 0), row)

    def test_the_cpu_time_alone_shows_a_change_that_the_wall_time_hides(self):
        sides = [(11, 100, 3.4, 0.9), (11, 244, 1.5, 0.9)]
        rows = report(sides, spread=0.6)["causes"]
        self.assertEqual(
            [(row["kind"], row["cause"], row["who"], row["n"]) for row in rows], [("cpu", "cpu", "code", 12)]
        )
        said = report(sides, words=(), spread=0.6)
        self.assertRegex(said, r"CPU time 99.\d ms → 24\d ms \(\+14\d %[^\n]*\n +CPU work up: the code")
        self.assertIn("No change of the wall time is found beside its noise (medians ", said)

    def test_a_change_of_both_is_told_once(self):
        rows = report([(15, 100, 0.1, 0.1), (15, 130, 0.1, 0.1)])["causes"]
        self.assertEqual([row["kind"] for row in rows], ["command"])

    def test_a_small_change_of_the_cpu_time_alone_is_none(self):
        rows = report([(15, 1000, 3.0, 0.9), (15, 1040, 3.0, 0.9)], spread=0.6)["causes"]
        self.assertEqual(rows, [])

    def test_waits_of_more_tasks_of_the_build_are_not_the_load_of_longer_runs(self):
        """The load beside it is steady, so a run that takes longer has more of it."""
        row = self.change([(15, 100, 0.5, 0.5), (15, 100, 2.0, 0.5)])
        self.assertEqual((row["cause"], row["starved_by"]), ("starved", "run-queue"), row)


if __name__ == "__main__":
    unittest.main()
