"""Is it the code or the machine that needs another CPU time? Only what the runs' machines prove is told."""

# The runs on hosts of both sides from which on those hosts speak.
SHARED = 4
# A frequency that differs by less, as a part of it, is the same.
SAME_SPEED = 0.03
# The other repositories that have to move on one day to accuse the machines: so many, and this part.
TOGETHER, PART = 2, 0.2

# A change of the CPU time alone is at least this part of it: tasks beside it on the same core cost some.
CPU_SHARE = 0.05
# Changes of the wall time and of the CPU time are one change within this many runs.
NEAR = 15


def without_doubles(rows):
    """The changes without those of a command's CPU time that are small or that its wall time has, too."""

    def is_double(row):
        return any(
            it["kind"] == "command"
            and it["series"] == row["series"]
            and it["n"] - NEAR <= row["until_n"]
            and row["n"] - NEAR <= it["until_n"]
            for it in rows
        )

    def stays(row):
        return row["kind"] != "cpu" or (abs(row["change_ns"]) >= CPU_SHARE * row["before_ns"] and not is_double(row))

    return [row for row in rows if stays(row)]


def judge(rows, repositories):
    """Adds `who` ("code", "machine", "unknown"; null if CPU work did not change) and `why` to each change
    of a fleet of so many repositories."""
    many = max(TOGETHER, PART * repositories)
    moved = {}
    for row in rows:
        if row["kind"] in ("command", "cpu") and row["cause"] == "cpu":
            moved.setdefault(_alike(row, 0), set()).add(row["repo"])
    for row in rows:
        together = _together(row, moved)
        row["who"], row["why"] = (
            (None, []) if row["cause"] != "cpu" else _judged(row, together if together >= many else 0)
        )


def _alike(row, days):
    """What commands have in common that changed together: day, direction, kind of runner."""
    return row["day_number"] + days, row["change_ns"] > 0, row["cpu_after"], row["label_after"]


def _together(row, moved):
    """The other repositories whose commands changed on the same day, and alike."""
    return len(set().union(*(moved.get(_alike(row, days), set()) for days in (-1, 0, 1))) - {row["repo"]})


def _share(before, after):
    """By which part it grew; None if one is not known."""
    return after / before - 1 if before and after else None


def _slower(row, before, after):
    """The frequency explains at least half of the change."""
    change, speed = _share(row["before_ns"], row["after_ns"]), _share(row[after], row[before])
    if change is None or speed is None or abs(_share(row[before], row[after])) < SAME_SPEED:
        return False
    return speed * change > 0 and abs(speed) >= abs(change) / 2


def _frequency(row, before, after):
    return f"the CPUs' frequency is {row[after] / 1e6:.2f} GHz, before {row[before] / 1e6:.2f} GHz"


def _judged(row, together):
    change = _share(row["before_ns"], row["after_ns"]) or 0.0
    shared = min(row["shared_before"], row["shared_after"])
    if shared >= SHARED:
        same = _share(row["shared_before_ns"], row["shared_after_ns"]) or 0.0
        if _slower(row, "shared_khz_before", "shared_khz_after"):
            return "machine", ["on the same hosts " + _frequency(row, "shared_khz_before", "shared_khz_after")]
        if same * change > 0 and abs(same) >= abs(change) / 2:
            if _other_cpus(row) or _other_size(row):
                return "unknown", ["on the same hosts"] + _hosts(row)
            if together:
                return "unknown", [_moved(together)]
            why = f"{row['shared_after']} of {row['runs_after']} runs are on hosts that had earlier runs"
            return "code", [why] + _noted(row)
        return "machine", ["on the hosts that ran before, the time did not change"] + _hosts(row)
    why = _hosts(row)
    if _slower(row, "khz_before", "khz_after"):
        return "machine", [_frequency(row, "khz_before", "khz_after")] + why
    if _other_cpus(row):
        return "machine", why
    if together:
        return "machine", [_moved(together)] + why
    return "unknown", ["the hosts changed, too"] + why


def _moved(together):
    return f"{together} other repositories changed on that day on such runners, too"


def _other_cpus(row):
    """No CPU (model, stepping, microcode) ran both sides."""
    both = {row["cpu_before_least"], row["cpu_before"]} & {row["cpu_after_least"], row["cpu_after"]}
    return bool(row["cpu_before"] and row["cpu_after"]) and not both


def _other_size(row):
    """Another kind of runner was asked for, or it has another number of CPUs."""
    labels = row["label_before"], row["label_after"]
    return (all(labels) and labels[0] != labels[1]) or row.get("cpus") != row.get("cpus_before")


def _hosts(row):
    """What else differs between the machines of both sides."""
    out = []
    if row["cpu_before"] and row["cpu_after"] and row["cpu_before"] != row["cpu_after"]:
        out.append(f"the CPU is {row['cpu_after']}, before {row['cpu_before']}")
    if row["label_before"] != row["label_after"] and row["label_after"]:
        out.append(f"the runner is {row['label_after']}, before {row['label_before'] or 'not known'}")
    if row.get("cpus") != row.get("cpus_before"):
        out.append(f"it has {row['cpus']} CPUs, before {row['cpus_before']}")
    return out


def _noted(row):
    if row["image_before"] and row["image_after"] and row["image_before"] != row["image_after"]:
        return [f"the image is {row['image_after']}, before {row['image_before']}"]
    return []
