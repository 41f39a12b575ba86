"""Makes one file a table, repository and day of a dataset's files of single runs."""

import argparse
import os
import pathlib
import shutil
import sys
import uuid

from . import dataset, render

# Files that are read at once.
FILES = 5000


def groups(table):
    """The days with more than one file, some at a time, each with its files."""
    days = {}
    for path in table.files:
        days.setdefault(os.path.dirname(path), []).append(path)
    batch, files = {}, 0
    for day, paths in sorted(days.items()):
        if len(paths) < 2:
            continue
        if batch and files + len(paths) > FILES:
            yield batch
            batch, files = {}, 0
        batch[day] = paths
        files += len(paths)
    if batch:
        yield batch


def merge(db, table, batch):
    """One file a day instead of these. A reader, or a kill between the two, finds runs twice, never
    none: reports take each run from one file."""
    paths = [path for paths in batch.values() for path in paths]
    place = pathlib.Path(table.root, f".compact-{uuid.uuid4().hex}")
    try:
        # A run that is there twice, by a copy or a killed compaction, stays once.
        db.execute(
            f"COPY (SELECT * EXCLUDE (filename), split_part(filename, '/', -3) AS part_repo, split_part(filename, '/', -2) AS part_date"
            " FROM read_parquet(?, hive_partitioning = false, union_by_name = true, filename = true)"
            " QUALIFY filename = min(filename) OVER (PARTITION BY run) ORDER BY part_repo, part_date, run)"
            f" TO '{_quoted(place)}' (FORMAT parquet, COMPRESSION zstd, PARTITION_BY (part_repo, part_date),"
            f" KV_METADATA {{'tr.table': '{table.name}'}})",
            [paths],
        )
        made = {}
        for file in sorted(place.rglob("*.parquet")):
            repo, date = (dataset.repository(it.split("=", 1)[1]) for it in file.parts[-3:-1])
            made.setdefault(os.path.join(table.root, repo, date), []).append(file)
        for day, old in batch.items():
            for file in made.get(day, []):
                os.replace(file, os.path.join(day, f"compact-{uuid.uuid4().hex}.parquet"))
            if day in made:
                for path in old:
                    os.unlink(path)
    finally:
        shutil.rmtree(place, ignore_errors=True)


def _quoted(path):
    return str(path).replace("'", "''")


def compact(directory, repo, before):
    """Returns the numbers of files before and after."""
    import duckdb

    left_out, counts = [], [0, 0]
    names = list(dataset.columns())
    tables = dataset.find(directory, left_out, names, repo)
    for file in left_out:
        print(render.plain(f"compact: {file['file']}: {file['reason']}; stays as it is"), file=sys.stderr)
    for name in names:
        table = tables[name]
        if before:
            table.files = {path: it for path, it in table.files.items() if dataset.PLACE.search(path)[2] < before}
        counts[0] += len(table.files)
        db = duckdb.connect(config={"memory_limit": "1200MB", "preserve_insertion_order": False})
        db.execute("SET enable_progress_bar = false")
        for batch in groups(table):
            try:
                merge(db, table, batch)
            except duckdb.Error as error:
                print(
                    render.plain(f"compact: {name}: {str(error).splitlines()[0]}; these files stay as they are"),
                    file=sys.stderr,
                )
        counts[1] += sum(1 for _ in dataset._walk(table.root, repo))
    return counts


def main():
    parser = argparse.ArgumentParser(
        prog="tr-fleet-compact", description=__doc__, epilog="Exit status: 0; 1 when a file cannot be written."
    )
    parser.add_argument("directory", metavar="DIR", help="the dataset of tr export --format parquet")
    parser.add_argument("--repo", help="only this repository")
    parser.add_argument("--before", metavar="DATE", help="only days before this one: today's files are still written")
    args = parser.parse_args()
    try:
        before, after = compact(args.directory, args.repo, args.before)
    except OSError as error:
        print(render.plain(f"compact: {error}"), file=sys.stderr)
        return 1
    print(f"compact: {before:,} files, now {after:,}")
    return 0
