"""The files of a dataset: TABLE/repo=PROJECT/date=DAY/NAME.parquet, a file a run or many runs."""

import json
import os
import pathlib
import re
import urllib.parse

COLUMNS = pathlib.Path(__file__).with_name("columns.json")
PLACE = re.compile(r"repo=([^/]+)/date=(\d{4}-\d\d-\d\d)/[^/]+\.parquet")
RUN = re.compile(r"[0-9a-f-]{16,}\.parquet")
MAGIC = b"PAR1"
# The columns without which a file is none of a table's, whoever has written it.
KEYS = {
    "runs": ["run", "command_key", "start_unix_ns", "wall_ns"],
    "machine": ["run", "host", "kernel"],
    "steps": ["run", "kind", "name", "wall_ns"],
    "programs": ["run", "program", "on_cpu_ns"],
    "processes": ["run", "argv_key", "start_ns"],
    "path": ["run", "program", "segments"],
}


def columns():
    """The columns of each table, with their types in SQL."""
    return json.loads(COLUMNS.read_text(encoding="utf-8"))


class Table:
    """A table's files."""

    def __init__(self, directory, name):
        self.name = name
        self.root = f"{directory.rstrip('/')}/{name}"
        # Path, and the size and time of change, which tell whether it is the file of last time.
        self.files = {}

    def of(self, repositories):
        """The same with the files of these directories alone."""
        part = Table(os.path.dirname(self.root), self.name)
        part.files = {path: stat for path, stat in self.files.items() if directory(path) in repositories}
        return part


def directory(path):
    """The repository's directory of a file."""
    return path.rsplit("/", 3)[1]


def repository(directory_name):
    """The repository of a directory `repo=NAME`, as engines read it."""
    return urllib.parse.unquote(directory_name.removeprefix("repo="))


def find(place, left_out, names, repo=None, since=None):
    """The tables of a dataset. Files that belong to none go into `left_out` with the reason."""
    tables = {}
    for name in names:
        table = tables[name] = Table(place, name)
        if "://" in place:
            continue
        seen = set()
        for path, stat in sorted(_walk(table.root, repo)):
            reason = _reason(table, path, stat.st_size, seen, since)
            if reason:
                left_out.append({"file": f"{name}/{path}", "reason": reason})
            elif reason is None:
                table.files[f"{table.root}/{path}"] = (stat.st_size, stat.st_mtime_ns)
    return tables


def _walk(root, repo, below=""):
    """The files below a directory with what stat(2) tells."""
    try:
        entries = list(os.scandir(f"{root}/{below}"))
    except OSError:
        return
    for entry in entries:
        # Hidden files: an export under way; marks of other tools.
        if entry.name.startswith((".", "_")):
            continue
        path = f"{below}{entry.name}"
        if entry.is_dir():
            if below or repo is None or repository(entry.name) == repo:
                yield from _walk(root, repo, f"{path}/")
        else:
            yield path, entry.stat()


def _reason(table, path, size, seen, since):
    """Why a file is no part of a table; "" if it was not asked for."""
    place = PLACE.fullmatch(path)
    if not place:
        return "not a file of a dataset"
    if since and place[2] < since:
        return ""
    name = os.path.basename(path)
    # One run; names of many runs' files are their writers'.
    if name in seen and RUN.fullmatch(name):
        return "a second copy of this run"
    try:
        footer = _footer(f"{table.root}/{path}", size)
    except OSError as error:
        return f"cannot be read: {error.strerror}"
    if footer is None:
        return "damaged: no Parquet file, or cut short"
    missing = [name for name in KEYS[table.name] if name.encode() not in footer]
    if missing:
        return f"not of table {table.name}: no column {missing[0]}"
    seen.add(name)
    return None


def _footer(path, size):
    """The metadata at the end of a Parquet file."""
    if size < 12:
        return None
    with open(path, "rb", buffering=0) as file:
        at = max(0, size - 16384)
        file.seek(at)
        tail = file.read()
        if tail[-4:] != MAGIC:
            return None
        length = int.from_bytes(tail[-8:-4], "little")
        if length > size - 12:
            return None
        if length > len(tail) - 8:
            file.seek(size - 8 - length)
            tail = file.read()
        if at:
            file.seek(0)
        return tail[-8 - length : -8] if (file.read(4) if at else tail[:4]) == MAGIC else None
