"""The lines of docs/fleets.md for one's own questions read files of two versions of the schema."""

import os
import pathlib
import re
import shlex
import subprocess
import sys
import tempfile
import unittest

import duckdb

BOOK = pathlib.Path(__file__).parents[2] / "docs" / "fleets.md"
# The libraries of the lines in Python; `make test-long` installs them.
LIBRARIES = ("polars", "pyarrow", "pandas")


def blocks():
    """The indented blocks of the section."""
    section = BOOK.read_text().split("### Your own questions\n")[1]
    found = re.findall(r"(?:^    .*\n)+", section, re.M)
    return [re.sub("^    ", "", block, flags=re.M) for block in found]


def write(place):
    """Two runs: the file of the first lacks the column that the second has."""
    # As in an export a column of a later version can be null.
    later = ", CASE WHEN random() < 2 THEN 5000 END AS max_rss_bytes"
    for day, columns in [("01", ""), ("02", later)]:
        directory = place / "runs" / "programs" / "repo=a%2Fb" / f"date=2026-11-{day}"
        directory.mkdir(parents=True)
        row = f"SELECT 'r{day}' AS run, 'cc1' AS program, CAST({day} AS bigint) AS on_cpu_ns{columns}"
        duckdb.sql(f"COPY ({row}) TO '{directory}/r{day}.parquet' (FORMAT parquet)")


class Readers(unittest.TestCase):
    def test_duckdb(self):
        [shell] = [block for block in blocks() if block.startswith("duckdb")]
        question = shlex.split(shell)[2]
        with tempfile.TemporaryDirectory() as place:
            write(pathlib.Path(place))
            for column, want in [("on_cpu_ns", 1.5), ("max_rss_bytes", 5000)]:
                asked = question.replace("'runs/", f"'{place}/runs/").replace("on_cpu_ns", column)
                self.assertEqual(duckdb.sql(asked).fetchall(), [("cc1", want)])

    def test_python(self):
        scripts = [block for block in blocks() if block.startswith("import")]
        self.assertEqual(len(scripts), 2)
        have = subprocess.run([sys.executable, "-c", f"import {', '.join(LIBRARIES)}"], capture_output=True)
        if have.returncode:
            self.skipTest(f"not all of {', '.join(LIBRARIES)} are installed")
        with tempfile.TemporaryDirectory() as place:
            write(pathlib.Path(place))
            for script in scripts:
                run = [sys.executable, "-c", script]
                out = subprocess.run(run, cwd=place, env=os.environ, capture_output=True, text=True, timeout=120)
                self.assertEqual(out.returncode, 0, out.stderr)
                self.assertIn("5000", out.stdout, script)


if __name__ == "__main__":
    unittest.main()
