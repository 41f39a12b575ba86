"""How near the runs of each series are to the limit of their job's time, and when they meet it."""

import itertools
import re
import statistics

from .render import plain, time

UNITS = {"s": 1, "m": 60, "min": 60, "h": 3600}
DAY = 86_400 * 10**9
# The runs from which on growth is told, and the pairs of them that have to grow more often than shrink, of 45: by chance a
# series without growth reaches that in 1 of 40 cases (Mann and Kendall's test).
LEAST = 10
PAIRS = 23
# Growth that meets the limit later than in a year is none.
FAR = 365


def duration(text):
    """A length of time such as 45m, in ns."""
    found = re.fullmatch(r"(\d+(?:\.\d+)?)(s|m|min|h)", text)
    if not found or float(found[1]) == 0:
        raise ValueError("a time with a unit is needed, such as 45m")
    return round(float(found[1]) * UNITS[found[2]] * 10**9)


def growth(runs):
    """The growth in ns a day: the median of the slopes between every two runs (Theil and Sen); None if it may be chance."""
    pairs = [
        (b["start_unix_ns"] - a["start_unix_ns"], b["wall_ns"] - a["wall_ns"])
        for a, b in itertools.combinations(runs, 2)
    ]
    more = sum((change > 0) - (change < 0) for _, change in pairs)
    slopes = [change / passed * DAY for passed, change in pairs if passed > 0]
    return statistics.median(slopes) if len(runs) >= LEAST and more >= PAIRS and slopes else None


def line(series, runs, limit):
    """What is said of a series."""
    last = runs[-1]["wall_ns"]
    words = f"{plain(series)}: {time(last)} of {time(limit)} ({100 * last / limit:.0f} %)"
    if last >= limit:
        return words + ": the limit is met"
    rate = growth(runs)
    days = (limit - last) / rate if rate else FAR
    if days >= FAR:
        return words
    return words + f": at the growth of its last {len(runs)} runs it meets the limit in {max(1, round(days))} days"


def text(rows, limit):
    """A line for each series, the nearest to the limit first."""
    series = {}
    for row in rows:
        series.setdefault(row["series"], []).append(row)
    told = []
    for name, runs in series.items():
        runs.sort(key=lambda row: (row["start_unix_ns"], -row["back"]))
        told.append((-runs[-1]["wall_ns"], line(name, runs, limit)))
    return "".join(f"{words}\n" for _, words in sorted(told))
