"""The commands, each with a sentence in place of a traceback where a package that it needs is not installed."""

import importlib
import sys


def report():
    """Runs `tr-fleet`."""
    return run("report")


def compact():
    """Runs `tr-fleet-compact`."""
    return run("compact")


def run(name):
    """Runs the main function of a module of this package."""
    try:
        return importlib.import_module(f"tr_fleet.{name}").main()
    except ModuleNotFoundError as error:
        # The first name: a package that is not installed is missed by one of its modules.
        module = (error.name or "").split(".")[0]
        if module in ("", "tr_fleet"):
            raise
        sys.exit(f"fleet: the Python package {module} is not installed: pip install duckdb numpy")
