#!/usr/bin/env python3
"""Makes one file a table, repository and day of a dataset's files of single runs; see README.md."""

import sys

from tr_fleet.cli import compact

if __name__ == "__main__":
    sys.exit(compact())
