"""Is a run slower than those before it? The dataset is the baseline: no older recording is needed."""

import statistics

import dataset
import render
import report

# The runs before it that are compared, and the least of them.
BASELINE, LEAST = 30, 8

QUESTION = """
    SELECT o.series, o.run, o.well, o.path_ns, o.work_ns, o.host, o.cpu, o.page
    FROM series o
    JOIN series g ON g.series = o.series AND g.command = o.command
    WHERE g.run = '{run}' AND o.seq <= g.seq AND o.seq > g.seq - 200
    ORDER BY o.seq
"""


def main(engine, args):
    """Prints the verdict; returns the exit status."""
    left_out = []
    tables = dataset.find(args.directory, left_out, report.TABLES, args.repo, args.since)
    report.load(engine, tables, args, left_out)
    engine.define("series", report.question("series"))
    run = "".join(c for c in args.gate if c.isalnum() or c == "-")
    engine.define("gate", QUESTION.format(run=run))
    rows = engine.rows("gate")
    if not rows or rows[-1]["run"] != args.gate:
        print(render.plain(f"gate: no run {args.gate} in {args.directory}"))
        return 2
    own = rows[-1]
    before = [row for row in rows[:-1] if row["well"]][-BASELINE:]
    said, status = judged(own, before, args.over)
    print(render.plain(f"gate: {own['series']}: {said}"))
    return status


def judged(own, before, over):
    """The verdict in words, and the exit status."""
    if not own["well"]:
        return "the run failed, so its time is no measurement", 0
    if len(before) < LEAST:
        return f"{len(before)} runs before it: {LEAST} are needed to judge", 0
    times = sorted(row["path_ns"] for row in before)
    middle = statistics.median(times)
    low, high = times[len(times) // 4], times[-1 - len(times) // 4]
    # As far as quiet runs go: three standard deviations, from the quartiles.
    limit = max(middle * (1 + over / 100), middle + 3 * (high - low) / 1.349)
    share = 100 * (own["path_ns"] / middle - 1)
    what = f"{render.time(own['path_ns'])}, {share:+.1f} % of the median of {len(before)} runs before"
    if own["path_ns"] <= limit:
        return f"{what}: within the limit of {render.time(limit)}", 0
    hosts = {row["host"] for row in before}
    where = "" if own["host"] in hosts else ", on a host that is not among theirs"
    return f"{what}: slower than the limit of {render.time(limit)}{where}", 1
