"""Pages that a web server or a bucket shows as they are: an index, and one for each repository."""

import hashlib
import os
import pathlib
import re

from . import render

SCRIPT = """
const box=document.getElementById("search"),rows=[...document.querySelectorAll("[data-find]")];
box.addEventListener("input",()=>{const words=box.value.toLowerCase().split(/\\s+/);
for(const row of rows)row.hidden=!words.every(it=>row.dataset.find.includes(it))});
"""
# The rows of a table, and the charts, that a repository's page has: the search finds no others.
ROWS = 200
BACK = '<p><a href="index.html">all repositories</a></p>'
# A command that fails in its last run, longer ago, is one of a branch that nobody builds any more.
WEEK = 7 * 86_400_000_000_000
SEARCH = '<p><input id=search type=search placeholder="search" aria-label=search></p>'


def name(repo):
    """A repository's file."""
    plain = re.sub(r"[^A-Za-z0-9._-]+", "-", repo)[:80].strip(".-")
    return f"{plain}-{hashlib.sha256(repo.encode()).hexdigest()[:8]}.html"


def write(report, place):
    """Writes all pages below a directory; each gets its name when it is complete."""
    place = pathlib.Path(place)
    place.mkdir(parents=True, exist_ok=True)
    by_repository = {}
    for key, rows in report.items():
        if isinstance(rows, list):
            for row in rows:
                repo = row.get("repo")
                if repo is not None:
                    by_repository.setdefault(repo, {}).setdefault(key, []).append(row)
    empty = {key: [] for key, rows in report.items() if isinstance(rows, list)}
    lines = []
    for row in report["coverage"]:
        own = {**empty, **by_repository[row["repo"]]}
        _put(place / name(row["repo"]), render.html(own, row["repo"], SCRIPT, BACK + SEARCH, ROWS, ROWS))
        lines.append((row, own))
    _put(place / "index.html", _index(report, lines))


def _put(path, text):
    fresh = f"{path}.new"
    with open(fresh, "w", encoding="utf-8") as file:
        file.write(text)
    os.replace(fresh, path)


def _index(report, lines):
    """All repositories: those that changed last come first."""
    e = render.escaped
    head = "".join(
        f"<th{kind}>{title}</th>"
        for title, kind in [
            ("repository", ""),
            ("last change", ""),
            *((it, " class=n") for it in ("runs", "failed", "failing now", "CPU minutes", "cost")),
        ]
    )
    body = []

    def newest(line):
        return max((it["day"] for it in line[1]["causes"] if it["kind"] == "command"), default="")

    for row, own in sorted(sorted(lines, key=lambda it: it[0]["repo"]), key=newest, reverse=True):
        changes = [it for it in own["causes"] if it["kind"] == "command"]
        last = max(changes, key=lambda it: it["day"], default=None)
        said = f"{last['day']}: {render.shift(last)} {render.sentence(last)}" if last else ""
        costs = [it["cost"] for it in own["usage"] if it["cost"] is not None]
        failed = sum(it["failed"] for it in own["usage"])
        failing = sum(
            it["failing_runs"] > 0 and it["last_unix_ns"] > row["last_unix_ns"] - WEEK for it in own["failures"]
        )
        cells = [
            f'<td><a href="{e(name(row["repo"]))}">{e(row["repo"])}</a></td>',
            f"<td>{e(said or '–')}</td>",
            *(
                f"<td class=n>{e(it)}</td>"
                for it in [
                    f"{row['runs']:,}",
                    f"{failed:,}",
                    render.plural(failing, "command", "commands") if failing else "–",
                    render.minutes(sum(it["machine_ns"] for it in own["usage"])),
                    f"{sum(costs):,.2f}" if costs else "–",
                ]
            ),
        ]
        body.append(f'<tr data-find="{e(row["repo"].lower())}">{"".join(cells)}</tr>')
    content = (
        f"<h1>Runs of the fleet</h1><p class=dim>{e(render.coverage(report))}</p>{SEARCH}"
        f"<div class=wide><table><tr>{head}</tr>{''.join(body)}</table></div>"
    )
    return render.page("Runs of the fleet", content, SCRIPT)
