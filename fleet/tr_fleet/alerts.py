"""What is new since the last report: as Markdown for an issue or a mail, or for a webhook."""

import json
import os
import urllib.parse
import urllib.request

from . import render


def _known(row, known):
    """By the time: a run has another number if --since leaves out those before it."""
    return any(
        it.get("kind") == "change"
        and it.get("subject") == _subject(row)
        and it.get("up") == (row["change_ns"] > 0)
        # An older version wrote none.
        and row["near_from_ns"] <= it.get("start_unix_ns", -1) <= row["near_to_ns"]
        for it in known
    )


def _fails_still(row, known):
    """It was told. Of a command that has failed in all runs since --since, the first failure is not known."""
    told = [it.get("since") for it in known if it.get("kind") == "failing" and it.get("series") == row["series"]]
    return row["failing_since"] in told or (row["failing_runs"] == row["runs"] and bool(told))


def _subject(row):
    return [row["series"], row["kind"], row["name"]]


def _read(path):
    """What was told."""
    try:
        with open(path, encoding="utf-8") as file:
            known = json.load(file)
        if not isinstance(known, list) or not all(isinstance(it, dict) for it in known):
            raise ValueError("no list of objects")
        if not all(isinstance(it.get("start_unix_ns", -1), int) for it in known):
            raise ValueError("a start_unix_ns is no integer")
    except FileNotFoundError:
        return []
    except ValueError as error:
        raise ValueError(f"{path}: not what --alerts wrote: {error}") from error
    return known


def fresh(report, args):
    """The text of what FILE does not know; adds it to FILE. Nothing new is no text."""
    known = _read(args.alerts)
    # What ended well is told again if it fails again. A series without a run in this report is as it was.
    failing = {row["series"] for row in report["failures"] if row["failing_runs"] > 0}
    well = {row["series"] for row in report["trend"]} - failing
    known = [it for it in known if it.get("kind") != "failing" or it.get("series") not in well]
    changes = [row for row in report["causes"] if row["kind"] == "command" and not _known(row, known)]
    failing = [row for row in report["failures"] if row["failing_runs"] >= 3]
    failing = [row for row in failing if not _fails_still(row, known)]
    text = "".join(_change(row) for row in changes) + "".join(_failing(row) for row in failing)
    if text and args.webhook:
        post(args.webhook, text)
    # What was told is known only after it was told.
    known += [
        {"kind": "change", "subject": _subject(row), "start_unix_ns": row["start_unix_ns"], "up": row["change_ns"] > 0}
        for row in changes
    ]
    known += [{"kind": "failing", "series": row["series"], "since": row["failing_since"]} for row in failing]
    with open(f"{args.alerts}.new", "w", encoding="utf-8", opener=_private) as file:
        json.dump(known, file, indent=1)
    os.replace(f"{args.alerts}.new", args.alerts)
    return text


def _private(path, flags):
    return os.open(path, flags, 0o600)


def markdown(text):
    """A text that is no markup and mentions nobody."""
    plain = render.plain(str(text)).replace("\n", " ")
    return "".join(f"\\{c}" if c in "\\`*_{}[]<>#!|@~" else c for c in plain)


def address(page):
    """A link's address, which ends no link."""
    return urllib.parse.quote(page, safe=":/?&=#%~+@,;")


def _change(row):
    page = f"  \n[the first run]({address(row['page'])})" if render.is_link(row["page"]) else ""
    return (
        f"### {markdown(row['series'])}\n\n**{markdown(render.shift(row))}** {markdown(render.since(row))}  \n"
        f"{markdown(render.sentence(row))}{page}\n\n"
    )


def _failing(row):
    page = f" [its first failed run]({address(row['failing_page'])})" if render.is_link(row["failing_page"]) else ""
    commit = f", commit {row['failing_commit'][:12]}" if row["failing_commit"] else ""
    said = f"fails since {row['failing_since']}{commit}: {row['failing_runs']} runs."
    return f"### {markdown(row['series'])}\n\n{markdown(said)}{page}\n\n"


def post(url, text):
    """To a webhook that takes {"text": ...}: Slack, Mattermost, Rocket.Chat, or one of your own."""
    body = json.dumps({"text": text}).encode()
    request = urllib.request.Request(url, body, {"Content-Type": "application/json"})
    with urllib.request.urlopen(request, timeout=30) as answer:
        answer.read()
