#!/usr/bin/env python3
"""Replaces a section of a Markdown page by the text on standard input, which begins with the section's heading. A page
without it gets it at its end; the other sections stay.

usage: benches/section.py PAGE < SECTION
"""

import re
import sys


def replace(page, text):
    heading = text.strip().split("\n", 1)[0]
    with open(page, "a+") as file:
        file.seek(0)
        sections = re.split(r"^(?=## )", file.read().rstrip() + "\n\n", flags=re.M)
    at = next((at for at, it in enumerate(sections) if it.split("\n", 1)[0] == heading), len(sections))
    sections[at : at + 1] = [text.strip() + "\n\n"]
    with open(page, "w") as file:
        file.write("".join(sections).rstrip() + "\n")


if __name__ == "__main__":
    replace(sys.argv[1], sys.stdin.read())
