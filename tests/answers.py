"""What fleet/report.py answers about a generated dataset of 10,000 runs; run by tests/fleet.rs."""

import json
import pathlib
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).parent.parent
sys.path.insert(0, str(ROOT / "benches"))
import duckdb
import fleet

REPO = "team/repository-0"
LAST = "repo=team%2Frepository-0/date=2026-01-10"


def asked(place, *words, status=0):
    """Standard output; the exit status is the expected one."""
    command = [sys.executable, ROOT / "fleet/report.py", place / "runs", *words]
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
    known.write_text("{")
    asked(place, "--repo", REPO, "--alerts", known, status=1)
    asked(place, "--repo", REPO, "-o", place / "none/report.txt", status=1)


def add(place, run, branch, factor, model="AMD EPYC", starved=1):
    """A run of job-0 after all others; the last one of them is its pattern."""
    day = f"repo={REPO.replace('/', '%2F')}/date=2026-01-11"
    for table, changes in {
        "runs": f"'{branch}' AS branch, CAST(60000000000 * {factor} AS bigint) AS path_ns, CAST({starved * 10**9} AS bigint) AS path_run_queue_ns",
        "machine": f"'{model}' AS cpu_model, CAST({(starved - 1) * 10**9} AS bigint) AS others_ns",
    }.items():
        target = place / "runs" / table / day
        target.mkdir(parents=True, exist_ok=True)
        pattern = f"SELECT * FROM read_parquet('{place}/runs/runs/{LAST}/*.parquet') WHERE job = 'job-0' AND exit_code = 0"
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


def pages(place):
    """Every chart has its axes and its changes, and every page the way back."""
    asked(place, "--repo", REPO, "--html", place / "pages")
    (page,) = [it.read_text() for it in (place / "pages").iterdir() if it.name != "index.html"]
    assert page.count("<svg") == page.count("class=axis") > 3, page
    assert page.count("<title>") > 4 and 'href="index.html"' in page, page


with tempfile.TemporaryDirectory() as work:
    place = pathlib.Path(work)
    fleet.make(place / "runs", 10_000, 10)
    alerts(place)
    gate(place)
    pages(place)
print(json.dumps("ok"))
