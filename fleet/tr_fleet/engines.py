"""DuckDB and Spark: both load the tables of a dataset and answer the same SQL."""

import os
import pathlib
import re
import sys
import tempfile
import zipfile

from . import changes


class Unreadable(Exception):
    """A file that an engine cannot read."""

    def __init__(self, path, reason):
        super().__init__(f"{path}: {reason}")
        self.path = path
        self.reason = reason


def _select(source, present, wanted, condition, file=None):
    """Reads the wanted columns; those that old files lack are null. With `file`, the name of a row's
    file in SQL, each run is read from one file: it may be in two, a copy or a half-done compaction."""
    names = {**wanted, "repo": "string", "date": "string"}
    parts = [f"CAST({name if name in present else 'NULL'} AS {kind}) AS {name}" for name, kind in names.items()]
    if file is None:
        return f"SELECT {', '.join(parts)} FROM {source} WHERE {condition}"
    inner = f"SELECT {', '.join(parts)}, {file} AS its_file FROM {source} WHERE {condition}"
    ranked = f"SELECT t.*, min(its_file) OVER (PARTITION BY run) AS first_file FROM ({inner}) t"
    return f"SELECT {', '.join(names)} FROM ({ranked}) r WHERE its_file = first_file"


def _named(error, table):
    """The file of a table that an error names."""
    text = str(error)
    for found in re.findall(r"[0-9A-Za-z_.-]+\.parquet", text):
        for path in table.files:
            if path.endswith("/" + found):
                return path
    return None


def _culprit(engine, error, table, wanted):
    """The file of a table that an engine cannot read, or whose columns are of other types."""
    path = _named(error, table)
    reason = str(error).splitlines()[0]
    if path is None:
        for candidate in table.files:
            try:
                engine._read(candidate, wanted)
            except engine.errors as own:
                path, reason = candidate, str(own).splitlines()[0]
                break
    return Unreadable(path, reason)


class DuckDb:
    """DuckDB, in this process."""

    def __init__(self, _master):
        import duckdb

        self.errors = duckdb.Error
        self.version = duckdb.__version__
        # What does not fit into memory goes there, not into the working directory.
        self.spill = tempfile.TemporaryDirectory(prefix="fleet-")
        settings = {
            "preserve_insertion_order": False,
            "temp_directory": self.spill.name,
            "memory_limit": "1200MB",
        }
        self.db = duckdb.connect(config=settings)
        # On a slow machine it would be among the bytes of the report.
        self.db.execute("SET enable_progress_bar = false")

    def about(self):
        return {"name": "duckdb", "version": self.version, "executors": 0}

    def load(self, table, wanted, condition, once=False):
        sources = list(table.files) or [f"{table.root}/repo=*/date=*/*.parquet"]
        try:
            query = self._query(sources, wanted, condition, "filename" if once else None)
            self.db.execute(f"CREATE OR REPLACE TEMP TABLE {table.name} AS {query}", [sources])
        except self.errors as error:
            raise _culprit(self, error, table, wanted) from error

    def _query(self, sources, wanted, condition, file=None):
        source = (
            "read_parquet(?, hive_partitioning = true, union_by_name = true,"
            " hive_types_autocast = false, filename = true)"
        )
        about = self.db.execute(f"DESCRIBE SELECT * FROM {source}", [sources]).fetchall()
        return _select(source, {row[0] for row in about}, wanted, condition, file)

    def _read(self, path, wanted):
        query = self._query([path], wanted, "true")
        self.db.execute(f"SELECT sum(hash(t)) FROM ({query}) t", [[path]]).fetchall()

    def empty(self, name, wanted):
        query = _select("(SELECT 1)", set(), wanted, "false")
        self.db.execute(f"CREATE OR REPLACE TEMP TABLE {name} AS {query}")

    def define(self, name, query):
        self.db.execute(f"CREATE OR REPLACE TEMP TABLE {name} AS {query}")

    def rows(self, name):
        result = self.db.execute(f"SELECT * FROM {name}")
        names = [column[0] for column in result.description]
        return [dict(zip(names, row)) for row in result.fetchall()]

    def change_points(self):
        """Searches every subject for changes, and makes the table of them."""
        self.db.execute(
            "SELECT subject, n, wall_ns, day_number, pool FROM subjects"
            f" QUALIFY count(*) OVER (PARTITION BY subject) >= {changes.FEWEST} ORDER BY subject, n"
        )
        found = changes.of_all(**self.db.fetchnumpy())
        columns = ", ".join(f"{name} {kind}" for name, kind in changes.COLUMNS)
        self.db.execute(f"CREATE OR REPLACE TEMP TABLE changed ({columns})")
        if found:
            marks = ", ".join("?" for _ in changes.COLUMNS)
            self.db.executemany(f"INSERT INTO changed VALUES ({marks})", found)
        self.define("change_points", changes.NAMED)


class Spark:
    """Spark, in a cluster or in this machine."""

    def __init__(self, master):
        from py4j.protocol import Py4JError
        from pyspark.errors import PySparkException
        from pyspark.sql import SparkSession

        self.errors = (PySparkException, Py4JError)
        if master.startswith("local"):
            # Executors in this machine take the first python3 on PATH, which may have no NumPy.
            os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
        settings = {
            "spark.ui.enabled": "false",
            "spark.ui.showConsoleProgress": "false",
            "spark.sql.ansi.enabled": "true",
            "spark.sql.session.timeZone": "UTC",
            # A dataset has many small files: a task reads many of them.
            "spark.sql.files.openCostInBytes": "65536",
            "spark.sql.shuffle.partitions": "8",
            "spark.sql.sources.partitionColumnTypeInference.enabled": "false",
            "spark.sql.adaptive.coalescePartitions.enabled": "true",
        }
        builder = SparkSession.builder.appName("tr fleet").master(master)
        for name, value in settings.items():
            builder = builder.config(name, value)
        self.session = builder.getOrCreate()
        self.session.sparkContext.setLogLevel("OFF")
        # The executors search for changes, too.
        # They fetch the archive when they start, so it stays as long as the session.
        self.modules = tempfile.TemporaryDirectory(prefix="fleet-")
        archive = pathlib.Path(self.modules.name, "tr_fleet.zip")
        with zipfile.ZipFile(archive, "w") as modules:
            for name in ("__init__.py", "changes.py"):
                modules.write(pathlib.Path(__file__).with_name(name), f"tr_fleet/{name}")
        self.session.sparkContext.addPyFile(str(archive))

    def about(self):
        # One of them is the driver.
        blocks = self.session.sparkContext._jsc.sc().getExecutorMemoryStatus().size()
        return {"name": "spark", "version": self.session.version, "executors": blocks - 1}

    def load(self, table, wanted, condition, once=False):
        reader = self.session.read.option("basePath", table.root).option("mergeSchema", "true")
        paths = list(table.files) or [table.root]
        try:
            frame = reader.parquet(*paths)
            frame.createOrReplaceTempView("loaded")
            query = _select("loaded", set(frame.columns), wanted, condition, "input_file_name()" if once else None)
            self.define(table.name, query)
            self.session.table(table.name).count()
        except self.errors as error:
            raise _culprit(self, error, table, wanted) from error

    def _read(self, path, wanted):
        frame = self.session.read.option("basePath", path.rsplit("/", 3)[0]).parquet(path)
        frame.createOrReplaceTempView("alone")
        self.session.sql(_select("alone", set(frame.columns), wanted, "true")).collect()

    def empty(self, name, wanted):
        self.define(name, _select("(SELECT 1)", set(), wanted, "false"))

    def define(self, name, query):
        frame = self.session.sql(query).cache()
        frame.createOrReplaceTempView(name)

    def rows(self, name):
        return [row.asDict() for row in self.session.table(name).collect()]

    def change_points(self):
        """Searches every subject for changes, and makes the table of them."""
        grouped = self.session.sql(
            "SELECT subject, array_sort(collect_list(struct(n, wall_ns, day_number, pool))) AS runs"
            f" FROM subjects GROUP BY subject HAVING count(*) >= {changes.FEWEST}"
        )
        found = grouped.rdd.flatMap(changes.of_row).collect()
        schema = ", ".join(f"{name} {kind}" for name, kind in changes.COLUMNS)
        self.session.createDataFrame(found, schema).createOrReplaceTempView("changed")
        self.define("change_points", changes.NAMED)


ENGINES = {"duckdb": DuckDb, "spark": Spark}
