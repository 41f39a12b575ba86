"""The files of a dataset: TABLE/repo=PROJECT/date=DAY/RUN.parquet."""

import json
import os
import pathlib
import re

COLUMNS = pathlib.Path(__file__).with_name("columns.json")
PLACE = re.compile(r"repo=[^/]+/date=\d{4}-\d\d-\d\d/[^/]+\.parquet")
MAGIC = b"PAR1"


def columns():
    """The columns of each table, with their types in SQL."""
    return json.loads(COLUMNS.read_text(encoding="utf-8"))


class Table:
    """A table's files."""

    def __init__(self, directory, name):
        self.name = name
        self.root = f"{directory.rstrip('/')}/{name}"
        self.files = []
        # All files below the root, by which an engine may find them itself.
        self.whole = True

    def sources(self):
        """What an engine reads: a pattern, or the files if others lie between them."""
        return [f"{self.root}/repo=*/date=*/*.parquet"] if self.whole else self.files


def find(directory, left_out):
    """The tables of a dataset. Files that belong to none go into `left_out` with the reason."""
    tables = {}
    for name in columns():
        table = tables[name] = Table(directory, name)
        if "://" in directory:
            continue
        seen = set()
        for place in sorted(_walk(table.root)):
            reason = _reason(table, place, seen)
            if reason:
                table.whole = False
                left_out.append({"file": f"{name}/{place}", "reason": reason})
            else:
                table.files.append(f"{table.root}/{place}")
    return tables


def _walk(root):
    for parent, _, names in os.walk(root):
        for name in names:
            # Hidden files: an export under way; marks of other tools.
            if not name.startswith((".", "_")):
                yield os.path.relpath(os.path.join(parent, name), root)


def _reason(table, place, seen):
    """Why a file is no part of a table."""
    if not PLACE.fullmatch(place):
        return "not a file of a dataset"
    run = os.path.basename(place)
    if run in seen:
        return "a second copy of this run"
    try:
        footer = _footer(f"{table.root}/{place}")
    except OSError as error:
        return f"cannot be read: {error.strerror}"
    if footer is None:
        return "damaged: no Parquet file, or cut short"
    if b"tr.table" not in footer or table.name.encode() not in footer:
        return "not written by tr export"
    seen.add(run)
    return None


def _footer(path):
    """The metadata at the end of a Parquet file."""
    with open(path, "rb", buffering=0) as file:
        size = file.seek(0, os.SEEK_END)
        file.seek(max(0, size - 16384))
        tail = file.read()
        if size < 12 or tail[-4:] != MAGIC:
            return None
        length = int.from_bytes(tail[-8:-4], "little")
        if length > size - 12:
            return None
        if length > len(tail) - 8:
            file.seek(size - 8 - length)
            tail = file.read()
        file.seek(0)
        return tail[-8 - length : -8] if file.read(4) == MAGIC else None
