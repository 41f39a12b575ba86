#!/usr/bin/env python3
"""Prints a report about a dataset of runs; see README.md."""

import sys

from tr_fleet.cli import report

if __name__ == "__main__":
    sys.exit(report())
