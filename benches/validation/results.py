"""What the programs of this folder share: the files of what they run, and the rows that they measured, as a file of CSV in `results/`.
docs/validation.md has the sums of the rows."""

import csv
import os

HERE = os.path.dirname(os.path.abspath(__file__))
LINK = "The rows: [{0}](../benches/validation/results/{0})."


def path(name):
    """The file of the rows with this name."""
    return os.path.join(HERE, "results", name + ".csv")


def link(file):
    """The sentence of the page that leads to the rows."""
    return LINK.format(os.path.basename(file))


def write(file, header, rows):
    """Replaces the file by these rows, in the order of the header; a key that a row lacks is empty."""
    with open(file, "w", newline="") as out:
        writer = csv.writer(out, lineterminator="\n")
        writer.writerow(header)
        writer.writerows([row.get(key, "") for key in header] for row in rows)


def lay_out(files, place):
    """Writes the texts of these files below the directory `place`."""
    for name, text in files.items():
        file = os.path.join(place, name)
        os.makedirs(os.path.dirname(file), exist_ok=True)
        with open(file, "w") as out:
            out.write(text)
