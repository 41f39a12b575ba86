#!/usr/bin/env python3
"""Answers the questions of fleet/sql on a dataset of runs (tr export --format parquet)."""

import argparse
import json
import os
import pathlib
import re
import sys

import dataset
import engines
import render

SQL = pathlib.Path(__file__).with_name("sql")

# In the order of their use of each other.
STEPS = ["series", "subjects", "change_points"]
ANSWERS = [
    "coverage",
    "causes",
    "change_programs",
    "flaky_tests",
    "slowest_steps",
    "variable_steps",
    "trend",
]


def question(name):
    """The SQL of a question."""
    return (SQL / f"{name}.sql").read_text(encoding="utf-8")


def arguments(words=None):
    parser = argparse.ArgumentParser(
        prog="fleet/report.py",
        description="What changed in many runs, since when, and is it the code or the runner?",
        epilog="Exit status: 0; 1 when the report cannot be made; 2 when DIR holds no run.",
    )
    parser.add_argument("directory", metavar="DIR", help="the dataset of tr export --format parquet")
    parser.add_argument("--engine", choices=sorted(engines.ENGINES), default="duckdb")
    parser.add_argument("--master", default="local[*]", help="Spark's master (default local[*])")
    parser.add_argument("--format", choices=["text", "json", "html"], default="text")
    parser.add_argument("--repo", help="only runs of this repository")
    parser.add_argument("--since", metavar="DATE", help="only runs from this day on: 2026-11-23")
    parser.add_argument("-o", "--output", metavar="FILE", help="the report (default standard output)")
    args = parser.parse_args(words)
    if args.since and not re.fullmatch(r"\d{4}-\d\d-\d\d", args.since):
        parser.error("--since is a day such as 2026-11-23")
    return args


def condition(args):
    """The chosen runs in SQL. They are partitions: no file of others is read."""
    parts = ["run IS NOT NULL"]
    if args.repo:
        # A quote is doubled in both dialects' standard literals; a backslash escapes in Spark's.
        text = args.repo.replace("'", "''")
        if args.engine == "spark":
            text = text.replace("\\", "\\\\")
        parts.append(f"repo = '{text}'")
    if args.since:
        parts.append(f"date >= '{args.since}'")
    return " AND ".join(parts)


def load(engine, args, left_out):
    """Loads all tables; a file that the engine cannot read is left out, and named."""
    tables = dataset.find(args.directory, left_out)
    chosen = condition(args)
    for name, wanted in dataset.columns().items():
        table = tables[name]
        while table.files or "://" in args.directory:
            try:
                engine.load(table, wanted, chosen)
                break
            except engines.Unreadable as error:
                if error.path is None:
                    raise
                place = os.path.relpath(error.path, args.directory)
                left_out.append({"file": place, "reason": f"damaged: {error.reason}"})
                table.files.remove(error.path)
                table.whole = False
        else:
            engine.empty(name, wanted)


def answer(engine, args):
    """The rows of all answers."""
    left_out = []
    load(engine, args, left_out)
    for name in STEPS:
        engine.define(name, question(name))
    report = {"schema": "tr.fleet/1", "left_out": left_out}
    for name in ANSWERS:
        engine.define(name, question(name))
        report[name] = engine.rows(name)
    report["engine"] = engine.about()
    return report


def private(path, flags):
    """Opens a new file for its owner alone: like a page of tr it holds command lines."""
    return os.open(path, flags, 0o600)


def main():
    args = arguments()
    try:
        engine = engines.ENGINES[args.engine](args.master)
    except ImportError as error:
        sys.exit(f"fleet: {error}: pip install {'pyspark' if args.engine == 'spark' else 'duckdb'}")
    try:
        report = answer(engine, args)
    except engines.Unreadable as error:
        print(f"fleet: {render.plain(str(error))}", file=sys.stderr)
        return 1
    for file in report["left_out"]:
        line = f"fleet: {file['file']}: {file['reason']}; left out"
        print(render.plain(line), file=sys.stderr)
    if not report["coverage"]:
        print(f"fleet: {render.plain(args.directory)}: no run", file=sys.stderr)
        return 2
    if args.format == "json":
        text = json.dumps(report, indent=1, ensure_ascii=False) + "\n"
    else:
        text = render.html(report) if args.format == "html" else render.text(report)
    if args.output is None:
        sys.stdout.write(text)
        return 0
    with open(args.output, "w", encoding="utf-8", opener=private) as file:
        file.write(text)
    return 0


if __name__ == "__main__":
    sys.exit(main())
