"""Answers the questions of the folder sql on a dataset of runs (tr export --format parquet)."""

import argparse
import hashlib
import json
import math
import os
import pathlib
import re
import sys

from . import alerts, changes, dashboard, dataset, engines, gate, limits, render, sizing, verdict

HERE = pathlib.Path(__file__).parent
SQL = HERE / "sql"

# The tables that the questions read.
TABLES = ["steps", "programs", "machine", "runs"]
# In the order of their use of each other; the changes are found after the first ones.
BEFORE, AFTER = ["series", "subjects"], ["evidence"]
# Each answer with the order of its rows and how many there are at most.
ANSWERS = {
    "coverage": (lambda row: row["repo"], None),
    "causes": (lambda row: (-abs(row["change_ns"]), row["series"], row["kind"], row["name"], row["seq"]), None),
    "change_programs": (lambda row: (row["series"], row["kind"], row["run"], row["place"]), None),
    "failures": (lambda row: (-row["failing_runs"], -row["failed"], row["series"]), 50),
    "flaky_tests": (lambda row: (-row["failed"], row["series"], row["name"]), 50),
    "slowest_steps": (lambda row: (-row["total_ns"], row["series"], row["kind"], row["name"]), 50),
    "variable_steps": (lambda row: (-row["spread_ns"], row["series"], row["kind"], row["name"]), 50),
    "usage": (lambda row: (-row["machine_ns"], row["repo"], row["job"] or "", row["runner"] or ""), None),
    "trend": (lambda row: (row["series"], row["day"]), None),
    "limits": (lambda row: (row["series"], row["back"]), None),
    "sizing": (lambda row: (row["repo"], row["job"] or ""), None),
}
# The largest figures of a run, in ns, bytes or counts: a trace with a larger one lies (2.3 years, 13 days of CPU time).
# Many such runs can still have sums that no engine holds: then the next limit counts.
LIMITS = [1 << 56, 1 << 50]
# The latest beginning of a run, in ns since 1970: the year 2096.
LATEST = 4 * 10**18
# Bytes of files of runs and steps that are asked at once: some 200,000 runs, below 2 GB of memory.
BATCH = 40_000_000


def question(name):
    """The SQL of a question."""
    return (SQL / f"{name}.sql").read_text(encoding="utf-8")


def arguments(words=None):
    parser = argparse.ArgumentParser(
        prog="tr-fleet",
        description="What changed in many runs, since when, and is it the code or the runner?",
        epilog="Exit status: 0; 1 when the report cannot be made, or --gate finds a slower run; 2 when DIR holds no run.",
    )
    parser.add_argument("directory", metavar="DIR", help="the dataset of tr export --format parquet")
    parser.add_argument("--engine", choices=sorted(engines.ENGINES), default="duckdb")
    parser.add_argument("--master", default="local[*]", help="Spark's master (default local[*])")
    parser.add_argument("--format", choices=["text", "json", "html"], default="text")
    parser.add_argument("--repo", help="only runs of this repository")
    parser.add_argument("--since", metavar="DATE", help="only runs from this day on: 2026-11-23")
    parser.add_argument("-o", "--output", metavar="FILE", help="the report (default standard output)")
    parser.add_argument("--html", metavar="DIR", help="write pages there: an index, and one for each repository")
    parser.add_argument(
        "--cache", metavar="DIR", help="keep the answers there; repositories without new files are not read again"
    )
    parser.add_argument("--price", type=float, metavar="SUM", help="what a CPU costs for a minute: usage has the cost")
    parser.add_argument(
        "--alerts",
        metavar="FILE",
        help="print only the changes and failures that FILE does not know yet, as Markdown, and add them",
    )
    parser.add_argument(
        "--webhook", metavar="URL", help="with --alerts: also post them there, as JSON with a field `text`"
    )
    parser.add_argument(
        "--sizing", action="store_true", help="print only what each job's runner needs, as YAML for Kubernetes"
    )
    parser.add_argument(
        "--limit",
        metavar="TIME",
        type=limits.duration,
        help="print only how near each series is to this limit of a job's time (45m), and when it meets it",
    )
    parser.add_argument("--gate", metavar="RUN", help="compare this run with those before it in its series")
    parser.add_argument(
        "--against",
        metavar="BRANCH",
        help="with --gate: its runs are those of this branch, such as a pull request's target",
    )
    parser.add_argument(
        "--over", type=float, default=10, metavar="PERCENT", help="with --gate: what a run may take more (default 10)"
    )
    args = parser.parse_args(words)
    if args.since and not re.fullmatch(r"\d{4}-\d\d-\d\d", args.since):
        parser.error("--since is a day such as 2026-11-23")
    if args.webhook and not args.alerts:
        parser.error("--webhook is for --alerts")
    one = args.sizing or args.limit
    if one and (args.alerts or args.html or args.format != "text") or args.sizing and args.limit:
        parser.error("--sizing and --limit are formats of their own")
    if args.against and not args.gate:
        parser.error("--against is for --gate")
    return args


def literal(text, engine):
    """A text in SQL: a quote is doubled in both dialects; a backslash escapes in Spark's."""
    text = text.replace("'", "''")
    if engine == "spark":
        text = text.replace("\\", "\\\\")
    return f"'{text}'"


def condition(args):
    """The chosen runs in SQL. They are partitions: no file of others is read."""
    parts = ["run IS NOT NULL"]
    if args.repo:
        parts.append(f"repo = {literal(args.repo, args.engine)}")
    if args.since:
        parts.append(f"date >= '{args.since}'")
    return " AND ".join(parts)


def used(columns):
    """The columns of each table that a question about it names: of the others nothing is read."""
    questions = [set(re.findall(r"\w+", question(name))) for name in [*BEFORE, *AFTER, *ANSWERS]]
    words = {table: set().union(*(it for it in questions if table in it)) for table in columns}
    return {table: {name: kind for name, kind in own.items() if name in words[table]} for table, own in columns.items()}


def load(engine, tables, args, left_out):
    """Loads the tables; a file that the engine cannot read is left out, and named."""
    once = False
    wanted = used(dataset.columns())
    # The runs are the first: they tell whether one is there twice.
    for name in reversed([it for it in TABLES if it in tables]):
        table = tables[name]
        while table.files or "://" in args.directory:
            try:
                engine.load(table, wanted[name], condition(args), once)
            except engines.Unreadable as error:
                if error.path is None:
                    # Behind a URL no file is listed: a table may have none.
                    if "PATH_NOT_FOUND" not in error.reason or name == "runs":
                        raise
                    engine.empty(name, wanted[name])
                    break
                place = os.path.relpath(error.path, args.directory)
                left_out.append({"file": place, "reason": f"damaged: {error.reason}"})
                del table.files[error.path]
                continue
            if name == "runs" and not once and _twice(engine):
                once = True
                continue
            break
        else:
            engine.empty(name, wanted[name])
    leave_out(engine, [name for name in TABLES if name in tables], LIMITS[0], left_out)


def leave_out(engine, names, limit, left_out):
    """Leaves out the runs with figures that no run has, and names them: their sums would stop the questions about
    all others."""
    columns = used(dataset.columns())
    found = []
    for name in names:
        wrong = [
            f"{column} NOT BETWEEN {-limit} AND {LATEST if column == 'start_unix_ns' else limit}"
            for column, kind in columns[name].items()
            if kind == "bigint"
        ]
        found.append(f"SELECT run FROM {name} WHERE {' OR '.join(wrong)}")
    engine.define("forged", " UNION ".join(found))
    runs = sorted({row["run"] for row in engine.rows("forged")} - {None})
    for run in runs:
        left_out.append({"file": f"run {run}", "reason": "has figures that no run has"})
    for name in names if runs else []:
        engine.define(name, f"SELECT * FROM {name} WHERE run NOT IN (SELECT run FROM forged)")


def _twice(engine):
    engine.define("twice", "SELECT count(*) - count(DISTINCT run) AS more FROM runs")
    return engine.rows("twice")[0]["more"] > 0


def ask(engine, tables, args, left_out):
    """The rows of all answers about the repositories of these files, each with its repository."""
    load(engine, tables, args, left_out)
    for limit in LIMITS[1:]:
        try:
            return _answers(engine)
        except engine.errors:
            leave_out(engine, TABLES, limit, left_out)
    try:
        return _answers(engine)
    except engine.errors as error:
        raise engines.Unreadable(args.directory, str(error).splitlines()[0]) from error


def _answers(engine):
    for name in BEFORE:
        engine.define(name, question(name))
    engine.change_points()
    for name in AFTER:
        engine.define(name, question(name))
    engine.define("owners", "SELECT DISTINCT series, repo FROM series")
    owners = {row["series"]: row["repo"] for row in engine.rows("owners")}
    out = {}
    for name in ANSWERS:
        engine.define(name, question(name))
        out[name] = engine.rows(name)
        for row in out[name]:
            row.setdefault("repo", owners.get(row.get("series")))
    out["causes"] = verdict.without_doubles(out["causes"])
    engine.define("newest", question("newest"))
    out["smallest"] = smallest(engine.rows("newest"), owners)
    return out


def smallest(runs, owners):
    """For each command the smallest steps of its wall time and of its CPU time that their noise lets be found."""
    columns = {}
    for row in runs:
        columns.setdefault((row["series"], row["runs"]), []).append(
            (row["n"], row["wall_ns"], row["work_ns"], row["day_number"], row["pool"])
        )
    out = []
    for (series, count), own in columns.items():
        _, wall, work, days, members = zip(*sorted(own))
        out.append(
            {
                "repo": owners.get(series),
                "series": series,
                "runs": count,
                "smallest_share": changes.smallest(wall, days, members),
                "smallest_cpu_share": changes.smallest(work, days, members),
            }
        )
    return out


def batches(tables):
    """The repositories' directories, some at a time."""
    sizes = {}
    for name in ("runs", "steps"):
        for path, (size, _) in tables[name].files.items():
            key = dataset.directory(path)
            sizes[key] = sizes.get(key, 0) + size
    batch, total = set(), 0
    for key in sorted(sizes):
        if batch and total + sizes[key] > BATCH:
            yield batch
            batch, total = set(), 0
        batch.add(key)
        total += sizes[key]
    if batch:
        yield batch


class Cache:
    """The answers of each repository, as long as its files and the questions are the same."""

    def __init__(self, place, args):
        self.place = pathlib.Path(place) if place else None
        if self.place:
            self.place.mkdir(mode=0o700, parents=True, exist_ok=True)
        asked = hashlib.sha256(repr((args.since, args.engine)).encode())
        for path in sorted([*SQL.iterdir(), *HERE.glob("*.py"), dataset.COLUMNS]):
            asked.update(path.read_bytes() if path.is_file() else b"")
        self.asked = asked.hexdigest()
        self.keys = {}

    def key(self, repo, tables):
        """What the answers depend on."""
        text = hashlib.sha256(self.asked.encode())
        for name in TABLES:
            for path, stat in sorted(tables[name].files.items()):
                text.update(repr((path, stat)).encode())
        self.keys[repo] = text.hexdigest()
        return self.keys[repo]

    def _file(self, repo):
        return self.place / (hashlib.sha256(repo.encode()).hexdigest()[:32] + ".json")

    def get(self, repo, tables):
        if not self.place:
            return None
        key = self.key(repo, tables)
        try:
            kept = json.loads(self._file(repo).read_text(encoding="utf-8"))
        except (OSError, ValueError):
            return None
        return kept["rows"] if isinstance(kept, dict) and kept.get("key") == key else None

    def put(self, repo, rows):
        if self.place:
            with open(f"{self._file(repo)}.new", "w", encoding="utf-8", opener=private) as file:
                json.dump({"key": self.keys[repo], "rows": rows}, file)
            os.replace(f"{self._file(repo)}.new", self._file(repo))


def answer(engine, args):
    """The rows of all answers."""
    left_out = []
    tables = dataset.find(args.directory, left_out, TABLES, args.repo, args.since)
    parts = []
    if "://" in args.directory:
        parts.append(ask(engine(), tables, args, left_out))
    else:
        parts.extend(_of_repositories(engine, tables, args, left_out))
    report = {"schema": "tr.fleet/1", "left_out": left_out}
    for name, (order, _) in ANSWERS.items():
        report[name] = sorted((row for part in parts for row in part[name]), key=order)
    report["smallest"] = sorted((row for part in parts for row in part["smallest"]), key=_noisiest)
    verdict.judge(report["causes"], len(report["coverage"]))
    for row in report["usage"]:
        row["cost"] = None if args.price is None else round(row["machine_ns"] / 60e9 * args.price, 4)
    report["engine"] = engine().about()
    return report


def _noisiest(row):
    return (-(row["smallest_share"] or math.inf), row["series"])


def _of_repositories(engine, tables, args, left_out):
    """The answers of the repositories, of those without new files from the cache."""
    cache = Cache(args.cache, args)
    by_repository = {name: {} for name in TABLES}
    if args.cache:
        for name in TABLES:
            for path, stat in tables[name].files.items():
                by_repository[name].setdefault(dataset.directory(path), {})[path] = stat
    for batch in batches(tables):
        fresh = set()
        for repo in sorted(batch):
            own = {}
            for name in TABLES if args.cache else []:
                own[name] = dataset.Table(args.directory, name)
                own[name].files = by_repository[name].get(repo, {})
            kept = cache.get(repo, own)
            if kept is None:
                fresh.add(repo)
            else:
                yield kept
        if not fresh:
            continue
        part = ask(engine(), {name: table.of(fresh) for name, table in tables.items()}, args, left_out)
        for repo in fresh if args.cache else []:
            name = dataset.repository(repo)
            cache.put(repo, {key: [row for row in rows if row["repo"] == name] for key, rows in part.items()})
        yield part


def private(path, flags):
    """Opens a new file for its owner alone: like a page of tr it holds command lines."""
    return os.open(path, flags, 0o600)


def short(report):
    """The report without the rows that are too many for one document."""
    return {name: rows[: ANSWERS[name][1]] if name in ANSWERS else rows for name, rows in report.items()}


def written(report, args):
    """The report in the chosen format."""
    if args.format == "json":
        return json.dumps(short(report), indent=1, ensure_ascii=False) + "\n"
    return render.html(short(report)) if args.format == "html" else render.text(short(report))


def main():
    args = arguments()
    made = []

    def engine():
        if not made:
            made.append(engines.ENGINES[args.engine](args.master))
        return made[0]

    try:
        if args.gate:
            return gate.main(engine(), args)
        report = answer(engine, args)
    except ImportError as error:
        sys.exit(f"fleet: {error}: pip install {'pyspark' if args.engine == 'spark' else 'duckdb'} numpy")
    except engines.Unreadable as error:
        print(f"fleet: {render.plain(str(error))}", file=sys.stderr)
        return 1
    for file in report["left_out"]:
        line = f"fleet: {file['file']}: {file['reason']}; left out"
        print(render.plain(line), file=sys.stderr)
    if not report["coverage"]:
        print(f"fleet: {render.plain(args.directory)}: no run", file=sys.stderr)
        return 2
    try:
        publish(report, args)
    except (OSError, ValueError) as error:
        print(f"fleet: {render.plain(str(error))}", file=sys.stderr)
        return 1
    return 0


def publish(report, args):
    """Writes the report to where it was asked for."""
    if args.html:
        dashboard.write(report, args.html)
        return
    if args.sizing:
        text = sizing.text(report["sizing"])
    elif args.limit:
        text = limits.text(report["limits"], args.limit)
    else:
        text = alerts.fresh(report, args) if args.alerts else written(report, args)
    if args.output is None:
        sys.stdout.write(text)
        return
    with open(args.output, "w", encoding="utf-8", opener=private) as file:
        file.write(text)
