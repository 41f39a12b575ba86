"""The answers as text and as one HTML page."""

import base64
import hashlib
import html as markup

from . import changes, chart

CAUSES = {
    ("shape", 1): "The CPU work is the same, but more of it is on the critical path: less runs in parallel.",
    ("shape", -1): "The CPU work is the same, but less of it is on the critical path: more runs in parallel.",
    ("mixed", 1): "No single cause explains half of it.",
    ("mixed", -1): "No single cause explains half of it.",
}
STARVED = {
    "run-queue": "run-queue wait",
    "others": "run-queue wait behind other tasks of the machine",
    "stolen": "CPU time stolen by the hypervisor",
    "throttled": "time throttled by a CPU quota",
}
BLOCKED = {"network": "waits for the network", "disk": "waits for the disk", "sleep": "sleeps and timers"}
STYLE = """
:root{color-scheme:light dark}
body{font:14px/1.45 system-ui,sans-serif;max-width:76rem;margin:1.5rem auto;padding:0 1rem;color:#1b1f24;background:#fff}
h1{font-size:1.4rem}h2{font-size:1.1rem;margin-top:2rem}h3{font-size:1rem;margin:1.2rem 0 .2rem;overflow-wrap:anywhere}
.wide{overflow-x:auto}table{border-collapse:collapse;margin:.5rem 0}td,th{padding:.15rem .9rem .15rem 0;text-align:left;vertical-align:top}
td.n,th.n{text-align:right;font-variant-numeric:tabular-nums;white-space:nowrap}th{border-bottom:1px solid #8884;font-weight:600}
td:not(.n){overflow-wrap:anywhere;min-width:12rem}
p{margin:.2rem 0;overflow-wrap:anywhere}.dim{color:#59636e}.up{color:#b3261e;fill:#b3261e}.down{color:#1a7f37;fill:#1a7f37}
input{font:inherit;color:inherit;background:transparent;border:1px solid #8888;padding:.2rem .5rem;width:20rem;max-width:90%}a{color:#0969da}
svg{display:block;margin:.3rem 0;max-width:100%;height:auto}polyline{fill:none;stroke:#0969da;stroke-width:1.5}circle{fill:#0969da}
rect{opacity:.5}.axis{fill:none;stroke:#8886}text{font-size:11px;fill:#59636e}.end{text-anchor:end}
@media(min-width:70rem){.change{display:grid;grid-template-columns:1fr 34rem;gap:0 2rem;align-items:center}}
[hidden]{display:none!important}@media(max-width:40rem){svg text{font-size:17px}tr{display:flex;flex-wrap:wrap;padding:.15rem 0}
td,th{box-sizing:border-box;padding-right:.4rem}td:not(.n),th:not(.n){flex:1 0 100%}td.n,th.n{flex:1 1 0;min-width:4.2rem;white-space:normal}}
@media(prefers-color-scheme:dark){a{color:#4493f8}body{color:#e6edf3;background:#0d1117}.dim{color:#9198a1}.up{color:#ff7b72;fill:#ff7b72}
.down{color:#3fb950;fill:#3fb950}polyline{stroke:#4493f8}circle{fill:#4493f8}text{fill:#9198a1}}
"""


def plain(text):
    """A text without control characters and marks of direction."""

    def one(c):
        hidden = not c.isprintable() and c not in "\n "
        return f"\\u{{{ord(c):x}}}" if hidden else c

    return "".join(map(one, text))


def time(ns):
    """A length of time in three digits; from a minute on in minutes and seconds, from an hour on in hours and minutes."""
    if ns is None:
        return "–"
    size = abs(ns)
    sign = "−" if ns < 0 else ""
    seconds = round(size / 1e9)
    if seconds >= 3600:
        minutes = round(size / 60e9)
        return f"{sign}{minutes // 60}:{minutes % 60:02} h"
    if seconds >= 60:
        return f"{sign}{seconds // 60}:{seconds % 60:02} min"
    for unit, name in [(1e9, "s"), (1e6, "ms"), (1e3, "µs")]:
        if size >= unit:
            value = size / unit
            digits = 2 if value < 9.995 else 1 if value < 99.95 else 0
            return f"{sign}{value:.{digits}f} {name}"
    return "0"


def signed(ns):
    return time(ns) if ns is None or ns <= 0 else f"+{time(ns)}"


def percent(row):
    share = round(100 * row["change_ns"] / max(1, row["before_ns"]))
    return f"{'+' if share > 0 else '−'}{abs(share)} %"


WHO = {
    "code": "the code or its tools, not the runner",
    "machine": "the runner, not your change",
    "unknown": "unknown whether the code or the runner",
}


def sentence(row):
    """The cause of a change in plain words."""
    up = 1 if row["change_ns"] >= 0 else -1
    word = "up" if up > 0 else "down"
    if row["cause"] == "cpu":
        why = "; ".join(row["why"])
        said = f"CPU work {word}: {WHO[row['who']]}." + (f" {why[:1].upper()}{why[1:]}." if why else "")
        if row["kind"] == "cpu":
            walls = f"{time(row['wall_before_ns'])} → {time(row['wall_after_ns'])}"
            return said + f" No change of the wall time is found beside its noise (medians {walls})."
        return said + waits(row)
    work = (row["work_after_ns"] or 0) - (row["work_before_ns"] or 0)
    same = abs(work) * 20 < max(1, row["work_before_ns"] or 0)
    if row["cause"] == "starved":
        lead = "CPU unchanged" if same else f"CPU {signed(work)}"
        end = "the runner, not your change" if same else "mostly the runner"
        if row["starved_by"] == "run-queue" and row["machine_ns"] is not None:
            end = "not other work on the runner: more tasks of the build want a CPU at once"
        if row["cpus"] != row["cpus_before"]:
            end += f"; it has {row['cpus']} CPUs, before {row['cpus_before']}"
        return f"{lead}, {STARVED[row['starved_by']]} {word}: {end}."
    if row["cause"] == "blocked":
        what = BLOCKED[row["blocked_by"]]
        lead = "CPU unchanged" if same else f"CPU {signed(work)}"
        return f"{lead}, {what} {word}: neither the compiler nor the runner's CPUs."
    if row["cause"] == "mixed" and not row["sure"] and 2 * up * row["starved_ns"] >= up * row["change_ns"]:
        return f"CPU {signed(work)}, run-queue wait {word}: unknown whether by the work or by the runner.{waits(row)}"
    return CAUSES[row["cause"], up]


def waits_with_work(row):
    """Whether waits in proportion to the work are a twentieth of the change or more."""
    return 20 * abs(row["wait_ns"]) >= abs(row["change_ns"]) > 0


def waits(row):
    """How long the runs waited for each second of CPU time, where the waits changed with the work."""
    if not waits_with_work(row):
        return ""
    return f" Waits for a CPU per CPU second: {row['rate_before']:.2g} s before, {row['rate_after']:.2g} s after."


def parts(row):
    found = {"CPU work": row["cpu_ns"]}
    if waits_with_work(row):
        found |= {"waits in proportion": row["wait_ns"], "starved beyond": row["starved_ns"]}
    else:
        found["starved"] = row["wait_ns"] + row["starved_ns"]
    found |= {"blocked": row["blocked_ns"], "other work on the path": row["shape_ns"]}
    return " · ".join(f"{name} {signed(ns) if ns else '0'}" for name, ns in found.items())


NOTHING = "No change of a command's wall time or CPU time"
# Changes of a command and of its steps are one change within this many runs.
NEAR = 7
# What is judged of a command.
MEASURES = {"command": "", "cpu": "CPU time "}


def groups(report):
    """The changes of commands, each with those of its steps beside it; the other steps' changes."""
    commands = [row for row in report["causes"] if row["kind"] in MEASURES]
    rest = [row for row in report["causes"] if row["kind"] not in MEASURES]
    found = []
    for row in commands:

        def near(step):
            return step["series"] == row["series"] and abs(step["seq"] - row["seq"]) <= NEAR

        about = row["series"], row["kind"], row["run"]
        programs = [p for p in report["change_programs"] if (p["series"], p["kind"], p["run"]) == about]
        # A step of the command's own length says nothing more: make.
        inside = [step for step in rest if near(step) and step["before_ns"] * 10 < row["before_ns"] * 9]
        found.append((row, inside, programs))
        rest = [step for step in rest if not near(step)]
    return found, rest


def since(row):
    commit = f", commit {row['commit'][:12]}" if row["commit"] else ""
    before = f" (before {row['commit_before'][:12]})" if row["commit_before"] else ""
    if row["commit"] and row["commit"] == row["commit_before"]:
        before = ", which ran before, too"
    kernel = ", another kernel" if row["other_kernel"] else ""
    if row["shape"] == "gradual":
        return f"gradually from {row['start_day']} to {row['until_day']}{kernel}"
    earliest, latest = row["earliest_commit"], row["latest_commit"]
    between = f", between {earliest[:12]} and {latest[:12]}" if earliest and latest and earliest != latest else ""
    return f"since {row['day']}{commit}{before}{between}{kernel}"


def shift(row):
    least, most = (100 * row[key] / max(1, row["before_ns"]) for key in ("least_ns", "most_ns"))
    sure = f", {least:+.0f} to {most:+.0f} %".replace("-", "−") if f"{least:.0f}" != f"{most:.0f}" else ""
    return f"{MEASURES.get(row['kind'], '')}{time(row['before_ns'])} → {time(row['after_ns'])} ({percent(row)}{sure})"


def details(steps, programs):
    lines = []
    if steps:
        names = [f"{step['name']} {signed(step['change_ns'])}" for step in steps[:4]]
        lines.append("in " + ", ".join(names) + (f" and {len(steps) - 4} more" if len(steps) > 4 else ""))
    if programs:
        names = [f"{p['program']} {signed(p['after_ns'] - p['before_ns'])}" for p in programs]
        lines.append("CPU by program: " + ", ".join(names))
    return lines


def plural(number, one, more):
    return f"{number:,} {one if number == 1 else more}"


def coverage(report):
    runs = sum(row["runs"] for row in report["coverage"])
    repositories = plural(len(report["coverage"]), "repository", "repositories")
    out = f"{plural(runs, 'run', 'runs')} of {repositories}, "
    first = min(row["first_day"] for row in report["coverage"])
    out += f"{first} to {max(row['last_day'] for row in report['coverage'])}"
    for key, name in [("incomplete", "with lost events"), ("without_path", "without a critical path")]:
        count = sum(row[key] for row in report["coverage"])
        if count:
            out += f" · {count:,} {name} left out"
    if report["left_out"]:
        out += f" · {plural(len(report['left_out']), 'file', 'files')} left out"
    return out


def minutes(ns):
    return f"{ns / 60e9:,.{0 if ns >= 600e9 else 1}f}"


def plainly(value):
    return "–" if value is None else f"{value:,}" if isinstance(value, int) else f"{value:,.2f}"


def step(share):
    """The smallest step that a series could show."""
    return f"none below {100 * changes.TRIED[-1]:.0f} %" if share is None else f"{100 * share:.2g} %"


TABLES = [
    (
        "smallest",
        "Smallest step that would be found, by the noise of the newest runs",
        [
            ("smallest_share", "wall time", step),
            ("smallest_cpu_share", "CPU time", step),
            ("runs", "runs", str),
            ("name", "command", None),
        ],
    ),
    (
        "failures",
        "Failures",
        [
            ("failed", "failed", str),
            ("runs", "of runs", str),
            ("failed_of_last_20", "of the last 20", str),
            ("failing_since", "failing since", lambda it: it or "–"),
            ("failed_wall_ns", "failed after", time),
            ("name", "command", None),
        ],
    ),
    (
        "usage",
        "Use of runners",
        [
            ("runs", "runs", plainly),
            ("wall_ns", "minutes", minutes),
            ("machine_ns", "CPU minutes", minutes),
            ("cost", "cost", plainly),
            ("queued_median_ns", "median queue", time),
            ("queued_p90_ns", "90 % below", time),
            ("queued_week_ns", "median queue, last week", time),
            ("name", "job and runner", None),
        ],
    ),
    (
        "flaky_tests",
        "Flaky tests",
        [
            ("failed", "failed", str),
            ("runs", "of runs", str),
            ("flips", "changed result", str),
            ("last_failed", "last failed", str),
            ("name", "test", None),
        ],
    ),
    (
        "slowest_steps",
        "Slowest steps and tests",
        [
            ("total_ns", "total", time),
            ("median_ns", "median", time),
            ("p90_ns", "90 % below", time),
            ("starved_ns", "starved", time),
            ("name", "step", None),
        ],
    ),
    (
        "variable_steps",
        "Most variable steps and tests",
        [
            ("spread_ns", "80 % within", time),
            ("median_ns", "median", time),
            ("varies_by", "varies by", str),
            ("name", "step", None),
        ],
    ),
]
ROWS = 10


def filled(columns, rows):
    """The columns of a table in which a row has a value; the last one says what a row is about."""
    return [column for column in columns[:-1] if any(row[column[0]] is not None for row in rows)] + columns[-1:]


def named(row):
    """What a row is about."""
    if "series" not in row:
        return " · ".join(
            str(it) for it in (row["repo"], row["job"], row["runner"], plural(row["cpus"], "CPU", "CPUs")) if it
        )
    return f"{row['name']} · {row['series']}" if row.get("name") else row["series"]


def text(report):
    out = [coverage(report), ""]
    changes, steps = groups(report)
    out.append("Changes" if changes else NOTHING)
    for row, inside, programs in changes:
        out.append(f"  {row['series']}")
        out.append(f"    {shift(row)} {since(row)}")
        out.append(f"    {sentence(row)}")
        if row["kind"] == "command":
            out.append(f"    {parts(row)}")
        out.extend(f"    {line}" for line in details(inside, programs))
    if steps:
        out.extend(["", "Steps that changed, of commands that did not"])
    for row in steps[:ROWS]:
        out.append(f"  {row['name']} · {row['series']}")
        out.append(f"    {shift(row)} {since(row)}")
        out.append(f"    {sentence(row)}")
    for key, title, columns in TABLES:
        rows = report[key][:ROWS]
        if not rows:
            continue
        out.extend(["", title])
        columns = filled(columns, rows)
        cells = [[head for _, head, _ in columns]]
        for row in rows:
            line = [show(row[name]) if show else named(row) for name, _, show in columns]
            cells.append(line)
        widths = [max(len(line[i]) for line in cells) for i in range(len(columns) - 1)]
        for line in cells:
            out.append("  " + "  ".join([c.rjust(w) for c, w in zip(line, widths)] + [line[-1]]))
    out.extend(["", "Medians of the last days"])
    series = by_series(report)
    for name, days in series[: 2 * ROWS]:
        out.append(f"  {name}")
        for row in days[-3:]:
            line = f"wall {time(row['wall_ns'])} · CPU {time(row['work_ns'])} · run-queue {time(row['run_queue_ns'])}"
            path = f"path: CPU {time(row['path_on_cpu_ns'])}, run-queue {time(row['path_run_queue_ns'])}, blocked {time(row['path_blocked_ns'])}"
            out.append(f"    {row['day']}  {line} · {path}")
    if len(series) > 2 * ROWS:
        out.append(f"  and {len(series) - 2 * ROWS:,} more")
    return plain("\n".join(out)) + "\n"


def by_series(report):
    """The trend of each series: those with changes first, then those with the most runs."""
    found = {}
    for row in report["trend"]:
        found.setdefault(row["series"], []).append(row)
    order = [row["series"] for row in report["causes"] if row["kind"] == "command"]
    order += sorted(found, key=lambda name: (-sum(row["runs"] for row in found[name]), name))
    return [(name, found[name]) for name in dict.fromkeys(order) if name in found]


def trend(days, changes):
    """The chart of a series' wall time, with its changes."""
    if not days:
        return ""
    marks = [
        (
            row["start_day"],
            row["until_day"] if row["shape"] == "gradual" else row["start_day"],
            "up" if row["change_ns"] > 0 else "down",
            plain(f"{shift(row)} {since(row)}"),
        )
        for row in changes
    ]
    values = [row["wall_ns"] for row in days]
    title = "median wall time by day"
    label = f"{title}, {time(values[0])} to {time(values[-1])}"
    return chart.chart([row["day"] for row in days], values, time, marks, title, label)


def escaped(value):
    return markup.escape(plain(str(value)))


def is_link(page):
    """A link of a CI system, not a script."""
    return bool(page) and page.startswith(("https://", "http://"))


def page(title, content, script=""):
    """A document that loads nothing, and runs this script alone."""

    def digest(text):
        return base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()

    policy = f"default-src 'none'; style-src 'sha256-{digest(STYLE)}'"
    code = ""
    if script:
        policy += f"; script-src 'sha256-{digest(script)}'"
        code = f"<script>{script}</script>"
    return (
        "<!doctype html><html lang=en><meta charset=utf-8>"
        '<meta name=viewport content="width=device-width">'
        f'<meta http-equiv="Content-Security-Policy" content="{policy}">'
        f"<title>{escaped(title)}</title><style>{STYLE}</style><body>{content}{code}</body></html>\n"
    )


def more(rows, shown):
    """How many are not shown."""
    return f"<p class=dim>and {len(rows) - shown:,} more</p>" if len(rows) > shown else ""


def html(report, title="Runs of the fleet", script="", top="", rows=2 * ROWS, charts=2 * ROWS):
    """One page that loads nothing."""
    e = escaped

    def found(row):
        return f' data-find="{e(named(row).lower())}"' if script else ""

    changes, steps = groups(report)
    days = dict(by_series(report))
    body = [f"<h1>{e(title)}</h1><p class=dim>{e(coverage(report))}</p>{top}"]
    body.append(f"<h2>{'Changes' if changes else NOTHING}</h2>")
    for row, inside, programs in changes:
        tint = "up" if row["change_ns"] > 0 else "down"
        link = f' <a href="{e(row["page"])}">the run</a>' if is_link(row["page"]) else ""
        body.append(f"<section class=change{found(row)}><div><h3>{e(row['series'])}</h3>")
        body.append(f"<p><b class={tint}>{e(shift(row))}</b> {e(since(row))}{link}</p>")
        body.append(f"<p>{e(sentence(row))}</p>")
        if row["kind"] == "command":
            body.append(f"<p class=dim>{e(parts(row))}</p>")
        body.extend(f"<p class=dim>{e(line)}</p>" for line in details(inside, programs))
        # Several changes of a series have one chart.
        drawn = trend(days.pop(row["series"], []), [it for it, _, _ in changes if it["series"] == row["series"]])
        body.append(f"</div>{drawn}</section>")
    if steps:
        body.append("<h2>Steps that changed, of commands that did not</h2>")
    for row in steps[:rows]:
        body.append(f"<section{found(row)}><h3>{e(row['name'])} · {e(row['series'])}</h3>")
        body.append(f"<p><b>{e(shift(row))}</b> {e(since(row))}</p><p>{e(sentence(row))}</p></section>")
    body.append(more(steps, rows))
    for key, heading, columns in TABLES:
        if not report[key]:
            continue
        # What it is about is seen first, also on a narrow screen.
        columns = filled(columns, report[key][:rows])
        columns = columns[-1:] + columns[:-1]
        kind = ["" if show is None else " class=n" for _, _, show in columns]
        head = "".join(f"<th{k}>{e(name)}</th>" for (_, name, _), k in zip(columns, kind))
        body.append(f"<h2>{e(heading)}</h2><div class=wide><table><tr>{head}</tr>")
        for row in report[key][:rows]:
            cells = [show(row[name]) if show else named(row) for name, _, show in columns]
            cells = "".join(f"<td{k}>{e(c)}</td>" for c, k in zip(cells, kind))
            body.append(f"<tr{found(row)}>{cells}</tr>")
        body.append(f"</table></div>{more(report[key], rows)}")
    body.append(
        "<h2>Wall time of the other commands</h2>" if days and changes else "<h2>Wall time</h2>" if days else ""
    )
    for name, own in list(days.items())[:charts]:
        last = own[-1]
        figures = f"{last['day']}: wall {time(last['wall_ns'])}, CPU {time(last['work_ns'])}, run-queue {time(last['run_queue_ns'])}"
        body.append(f"<section{found(last)}><h3>{e(name)}</h3>{trend(own, [])}<p class=dim>{e(figures)}</p></section>")
    body.append(more(days, charts))
    if report["left_out"]:
        body.append("<h2>Files left out</h2><ul>")
        body.extend(f"<li>{e(f['file'])}: {e(f['reason'])}</li>" for f in report["left_out"])
        body.append("</ul>")
    return page(title, "".join(body), script)
