"""Is a run slower than those before it? The dataset is the baseline: no older recording is needed."""

import statistics

from . import dataset, render, report

# The runs before it that are compared, the least of them, and among how many those on machines of its kind are sought.
BASELINE, LEAST, RECENT = 30, 8, 100

# Its own series, or the same job and command on another branch, where a pull request has no runs of its own.
QUESTION = """
    SELECT g.series, o.run, o.start_unix_ns, o.well, o.path_ns, o.host, o.pool, o.cpu,
        o.path_run_queue_ns + CAST(round(o.path_on_cpu_ns * o.stolen_share) AS bigint) AS starved_ns,
        o.others_ns, o.stolen_ns, o.throttled_ns
    FROM series o
    JOIN series g
        ON g.repo = o.repo AND coalesce(g.job, '') = coalesce(o.job, '') AND g.command = o.command
        AND (o.run = g.run OR (
            o.start_unix_ns <= g.start_unix_ns AND coalesce(o.branch, '') = {branch}
        ))
    WHERE g.run = '{run}'
"""
# Steps and programs are not asked for.
ASKED = ["machine", "runs"]


def main(engine, args):
    """Prints the verdict; returns the exit status."""
    left_out = []
    tables = dataset.find(args.directory, left_out, ASKED, args.repo, args.since)
    report.load(engine, tables, args, left_out)
    engine.define("series", report.question("series"))
    run = "".join(c for c in args.gate if c.isalnum() or c == "-")
    branch = "coalesce(g.branch, '')" if args.against is None else report.literal(args.against, args.engine)
    engine.define("gate", QUESTION.format(run=run, branch=branch))
    # The run itself is the last one.
    rows = sorted(engine.rows("gate"), key=lambda row: (row["run"] == args.gate, row["start_unix_ns"], row["run"]))
    if not rows or rows[-1]["run"] != args.gate:
        print(render.plain(f"gate: no run {args.gate} in {args.directory}"))
        return 2
    own = rows[-1]
    said, status = judged(own, [row for row in rows[:-1] if row["well"]], args.over, args.against)
    print(render.plain(f"gate: {own['series']}: {said}"))
    return status


def _more(own, before, *names):
    """By how much the sum of these times is above the median of the runs before; 0 if it is not known."""
    rows = [[row[name] for name in names] for row in [own, *before]]
    if any(None in row for row in rows):
        return 0
    mine, *others = map(sum, rows)
    return int(mine - statistics.median(others))


def _more_at_a_time(own, before, *names):
    """The same, as if all had taken the run's own time: a constant load of others takes more in a longer run."""
    longer = [{name: row[name] and row[name] * own["path_ns"] / row["path_ns"] for name in names} for row in before]
    return _more(own, longer, *names)


def judged(own, before, over, against=None):
    """The verdict in words, and the exit status."""
    if not own["well"]:
        return "the run failed, so its time is no measurement", 0
    where = f" on {against}" if against else ""
    if len(before) < LEAST:
        hint = "" if against else "; --against BRANCH takes those of another branch"
        return (
            f"{render.plural(len(before), 'run', 'runs')}{where} before it that ended well: {LEAST} are needed to judge{hint}",
            0,
        )
    # On machines of one kind, where recordings tell it.
    recent = before[-RECENT:]
    alike = [row for row in recent if row["cpu"] and row["pool"] == own["pool"]]
    comparable = len(alike) >= LEAST
    before = (alike if own["cpu"] and comparable else recent)[-BASELINE:]
    times = sorted(row["path_ns"] for row in before)
    middle = statistics.median(times)
    low, high = times[len(times) // 4], times[-1 - len(times) // 4]
    # As far as quiet runs go: three standard deviations, from the quartiles.
    limit = max(middle * (1 + over / 100), middle + 3 * (high - low) / 1.349)
    share = 100 * (own["path_ns"] / middle - 1)
    what = f"{render.time(own['path_ns'])}, {share:+.1f} % of the median of {len(before)} runs before{where}"
    if own["path_ns"] <= limit:
        return f"{what}: within the limit of {render.time(limit)}", 0
    what += f": slower than the limit of {render.time(limit)}"
    if own["cpu"] and not comparable:
        known = f"{len(alike)} of the last {len(recent)} are known to be on such a runner"
        return f"{what}, but {known}: unknown whether the code or the runner", 0
    starved = _more(own, before, "starved_ns")
    if (
        2 * starved >= own["path_ns"] - middle
        and 2 * _more_at_a_time(own, before, "others_ns", "stolen_ns", "throttled_ns") >= starved
    ):
        return (
            f"{what}, but it was starved for {render.time(starved)} more, by the machine: the runner, not your change",
            0,
        )
    hosts = {row["host"] for row in before}
    return what + ("" if own["host"] in hosts else ", on a host that is not among theirs"), 1
