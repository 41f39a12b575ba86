"""A pytest plugin: every test becomes a step of a recording by `tr-trace record`.

    PYTHONPATH=integrations tr-trace record -- pytest -p pytest_tr_marks

Setup and teardown are steps of their own if they take 5 ms or more. Outside of a recording the
plugin does nothing.
"""

import json
import os
import time

import pytest

NOTEWORTHY = 5_000_000  # ns


class Marks:
    def __init__(self, path):
        # Each line is one write, so that the workers of pytest-xdist do not mix theirs.
        self.file = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CLOEXEC)

    def write(self, *lines):
        text = "".join(json.dumps({"pid": os.getpid(), **line}) + "\n" for line in lines)
        try:
            os.write(self.file, text.encode())
        except OSError:
            pass  # a full disk must not fail a test

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_runtest_protocol(self, item):
        self.result, self.phases = "passed", []
        self.write({"t": time.monotonic_ns(), "name": item.nodeid, "ev": "begin", "kind": "test"})
        try:
            return (yield)
        finally:
            now = time.monotonic_ns()
            phases = [line for begin, end in self.phases for line in (begin, end)]
            end = {"t": now, "name": item.nodeid, "ev": "end", "kind": "test", "result": self.result}
            self.write(*phases, end)

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_runtest_setup(self):
        return (yield from self.phase("setup"))

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_runtest_teardown(self):
        return (yield from self.phase("teardown"))

    def phase(self, name):
        begin = time.monotonic_ns()
        try:
            return (yield)
        finally:
            end = time.monotonic_ns()
            if end - begin >= NOTEWORTHY:
                self.phases.append([{"t": begin, "name": name, "ev": "begin"}, {"t": end, "name": name, "ev": "end"}])

    def pytest_runtest_logreport(self, report):
        if report.failed:
            self.result = "failed" if report.when == "call" else "error"
        elif report.skipped and self.result == "passed":
            self.result = "skipped"


def pytest_configure(config):
    try:
        marks = Marks(os.environ["TR_MARKS"])
    except (KeyError, OSError):
        return
    config.pluginmanager.register(marks, "tr_marks")
