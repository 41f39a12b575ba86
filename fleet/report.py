#!/usr/bin/env python3
"""Prints a report about a dataset of runs; see README.md."""

import sys

from tr_fleet.report import main

if __name__ == "__main__":
    sys.exit(main())
