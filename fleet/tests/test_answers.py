"""What report.py answers about a generated dataset of 10,000 runs."""

import argparse
import json
import pathlib
import subprocess
import sys
import tempfile
import unittest

import duckdb

HERE = pathlib.Path(__file__).parent
sys.path[:0] = [str(HERE), str(HERE.parent)]
import generated  # noqa: E402
from tr_fleet import limits, render  # noqa: E402
from tr_fleet.alerts import fresh  # noqa: E402
from tr_fleet.gate import judged  # noqa: E402
from tr_fleet.sizing import text  # noqa: E402

REPO = "team/repository-0"
LAST = "repo=team%2Frepository-0/date=2026-01-10"


def asked(place, *words, status=0):
    """Standard output; the exit status is the expected one."""
    command = [sys.executable, HERE.parent / "report.py", place / "runs", *words]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == status and "Traceback" not in done.stderr, (words, done)
    return done.stdout


def alerts(place):
    """A window of days that moves on tells nothing again."""
    known = place / "known.json"
    first = asked(place, "--repo", REPO, "--alerts", known)
    assert first.count("###") == 4, first
    again = asked(place, "--repo", REPO, "--alerts", known, "--since", "2026-01-03")
    assert again == "", again
    asked(place, "--repo", REPO, "--alerts", known, "--webhook", "http://127.0.0.1:9/")
    for bad in ["{", "{}", "[1]", '[{"kind": "change", "start_unix_ns": null}]']:
        known.write_text(bad)
        asked(place, "--repo", REPO, "--alerts", known, status=1)
    # As the version before wrote it.
    known.write_text(json.dumps([{"kind": "change", "subject": [], "seq": 7, "up": True}, {}]))
    assert asked(place, "--repo", REPO, "--alerts", known) == first
    asked(place, "--repo", REPO, "-o", place / "none/report.txt", status=1)


def fails_again(place):
    """A command that failed, ended well and fails again is told twice; one without runs is as it was."""
    args = argparse.Namespace(alerts=str(place / "failing.json"), webhook=None)

    def told(failing, runs, since, series="make"):
        row = {
            "series": series,
            "failing_runs": failing,
            "runs": runs,
            "failing_since": since,
            "failing_commit": None,
            "failing_page": None,
        }
        report = {"causes": [], "failures": [row] if failing is not None else [], "trend": [{"series": series}]}
        return "fails since" in fresh(report, args)

    assert told(3, 9, "2026-03-01") and not told(4, 10, "2026-03-01")
    assert not told(0, 11, None) and told(5, 5, "2026-05-01")
    assert not told(None, 5, None) and told(3, 3, "2026-06-01")
    assert told(3, 9, "2026-06-02", "other") and not told(None, 5, None, "other")
    assert not told(4, 4, "2026-06-02")


def verdicts():
    """Of runs with the machine's counters: the verdict's end, and the exit status."""

    def run(path=60, starved=1, others=30, cpu="AMD", pool=1):
        times = {"path_ns": path, "starved_ns": starved, "others_ns": others, "stolen_ns": 0, "throttled_ns": 0}
        return {
            "well": 1,
            "cpu": cpu,
            "pool": pool,
            "host": "a",
            **{name: time * 10**9 for name, time in times.items()},
        }

    runs = [run() for _ in range(30)]
    said, status = judged(run(path=90, starved=31, others=45), runs, 10)
    assert status == 1, ("tasks of its own beside the same load", said)
    said, status = judged(run(path=90, starved=31, others=75), runs, 10)
    assert status == 0 and "not your change" in said, said
    # One run without a model, between runs of two kinds.
    kinds = [run(path=60 + 40 * (n % 2), cpu=["AMD", "Intel"][n % 2], pool=n % 2) for n in range(60)]
    kinds[50] = run(path=60, cpu="", pool=7)
    said, status = judged(run(path=80, pool=0), kinds, 10)
    assert status == 1 and "median of 29 runs" in said, said
    # A kind of long ago, before all took longer.
    old = [run(pool=0, cpu="Intel") for _ in range(30)] + [run(path=90) for _ in range(100)]
    said, status = judged(run(path=120, pool=0, cpu="Intel"), old, 10)
    assert status == 0 and "0 of the last 100 are known to be on such a runner" in said, said
    said, status = judged(run(path=120), [run(cpu="") for _ in range(30)], 10)
    assert status == 0 and "unknown" in said, said


def add(place, run, branch, factor, model="AMD EPYC", starved=1):
    """A run of job-0 after all others; the last one of them is its pattern."""
    day = f"repo={REPO.replace('/', '%2F')}/date=2026-01-11"
    for table, changes in {
        "runs": f"'{branch}' AS branch, CAST(60000000000 * {factor} AS bigint) AS path_ns, CAST({starved * 10**9} AS bigint) AS path_run_queue_ns",
        "machine": f"'{model}' AS cpu_model, CAST({(starved - 1) * 10**9} AS bigint) AS others_ns",
    }.items():
        target = place / "runs" / table / day
        target.mkdir(parents=True, exist_ok=True)
        pattern = (
            f"SELECT * FROM read_parquet('{place}/runs/runs/{LAST}/*.parquet') WHERE job = 'job-0' AND exit_code = 0"
        )
        one = duckdb.sql(f"SELECT run FROM ({pattern}) ORDER BY start_unix_ns DESC LIMIT 1").fetchall()[0][0]
        extra = ", start_unix_ns + 86400000000000 AS start_unix_ns" if table == "runs" else ""
        duckdb.sql(
            f"COPY (SELECT * REPLACE ('{run}' AS run, {changes}{extra}) FROM read_parquet('{place}/runs/{table}/{LAST}/*.parquet')"
            f" WHERE run = '{one}') TO '{target}/{run}.parquet' (FORMAT parquet)"
        )


def gate(place):
    """A pull request has no runs before it, its target has."""
    for run, factor, model in [("a" * 16, 1.1, "AMD EPYC"), ("b" * 16, 1.5, "AMD EPYC"), ("c" * 16, 1.5, "Intel")]:
        add(place, run, f"topic-{run[0]}", factor, model)
        said = asked(place, "--repo", REPO, "--gate", run)
        assert "0 runs before it" in said and "--against" in said, said
    asked(place, "--repo", REPO, "--gate", "a" * 16, "--against", "main")
    slow = asked(place, "--repo", REPO, "--gate", "b" * 16, "--against", "main", status=1)
    assert "before on main: slower" in slow, slow
    other = asked(place, "--repo", REPO, "--gate", "c" * 16, "--against", "main")
    assert "unknown whether the code or the runner" in other, other
    add(place, "d" * 16, "main", 1.5, starved=25)
    starved = asked(place, "--repo", REPO, "--gate", "d" * 16)
    assert "24.0 s more, by the machine: the runner, not your change" in starved, starved
    asked(place, "--repo", REPO, "--gate", "e" * 16, "--against", "it's", status=2)


def sizes(place):
    """The request covers nearly all runs and the limit every one, each with a quarter beside it."""
    jobs = list(asked(place, "--repo", REPO, "--sizing").split("---\n"))
    assert len(jobs) == 4, jobs
    one = jobs[0]
    assert one.startswith(f"# {REPO} job-0\n# 230 runs: memory at most 1146 MiB, 3 of 4 CPUs\n"), one
    assert "# GitHub: a runner with 4 CPUs and 16 GB\n" in one, one
    assert 'requests: {"cpu": "3", "memory": "1536Mi"}\n  limits: {"memory": "1536Mi"}' in one, one
    few = {"repo": "a\nb", "job": None, "runs": 9, "most_bytes": 5 << 20, "most_cpus": 1, "cpus": 2}
    assert text([few]).splitlines() == [
        "# a b (no job)",
        "# 9 runs: memory at most 5 MiB, 1 of 2 CPUs",
        "# no size is proposed of fewer than 10 runs",
    ]
    assert text([]).startswith("# no run")


def near():
    """Growth is told where it is none by chance, and never in noise."""

    def told(walls, limit=45):
        runs = [
            {"series": "a\x1b", "back": len(walls) - n, "start_unix_ns": n * 86400 * 10**9, "wall_ns": int(wall * 60e9)}
            for n, wall in enumerate(walls)
        ]
        return limits.text(list(reversed(runs)), limit * 60 * 10**9)

    grown = [30 + n + 0.3 * (n % 2) for n in range(10)]
    assert (
        told(grown)
        == "a\\u{1b}: 39:18 min of 45:00 min (87 %): at the growth of its last 10 runs it meets the limit in 6 days\n"
    ), told(grown)
    lengths = [59.4e9, 59.6e9, 61e9, 3599.6e9, 2 * 3600e9 - 10e9, 4 * 3600e9 + 65e9]
    assert [render.time(it) for it in lengths] == ["59.4 s", "1:00 min", "1:01 min", "1:00 h", "2:00 h", "4:01 h"]
    assert render.signed(-61e9) == "−1:01 min" and render.signed(61e9) == "+1:01 min"
    noise = [30, 38, 31, 37, 30, 38, 31, 37, 30, 38]
    assert told(noise).endswith("(84 %)\n") and told(grown[1:]).endswith("(87 %)\n"), told(noise)
    assert told([46]).endswith("the limit is met\n")
    assert [limits.duration(it) for it in ["45m", "1.5h", "90s"]] == [2700 * 10**9, 5400 * 10**9, 90 * 10**9]


def pages(place):
    """Every chart has its axes and its changes, and every page the way back."""
    asked(place, "--repo", REPO, "--html", place / "pages")
    (page,) = [it.read_text() for it in (place / "pages").iterdir() if it.name != "index.html"]
    assert page.count("<svg") == page.count("class=axis") > 3, page
    assert page.count("<title>") > 4 and 'href="index.html"' in page, page


class Answers(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        work = tempfile.TemporaryDirectory()
        cls.addClassCleanup(work.cleanup)
        cls.place = pathlib.Path(work.name)
        generated.make(cls.place / "runs", 10_000, 10)

    def test_alerts(self):
        alerts(self.place)

    def test_a_command_that_fails_again_is_reported_twice(self):
        fails_again(self.place)

    def test_sizes(self):
        sizes(self.place)

    def test_limits(self):
        near()
        lines = asked(self.place, "--repo", REPO, "--limit", "2m").splitlines()
        assert len(lines) == 4 and all(" of 2:00 min (5" in it for it in lines), lines
        asked(self.place, "--limit", "2", status=2)

    def test_pages(self):
        pages(self.place)

    def test_the_gate_and_its_verdicts(self):
        verdicts()
        # It adds runs to the dataset. By its name it is the last test.
        gate(self.place)


if __name__ == "__main__":
    unittest.main()
