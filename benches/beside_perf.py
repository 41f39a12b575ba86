#!/usr/bin/env python3
"""Compares a recording of tr with one of perf of the same run, see perf.sh.

perf's figures are the sums of `perf sched timehist`; tr's those of `tr analyze`.
Both tools see the same tracepoints, so every slice of every task is in both, or is
not, for a reason that the events show. Each difference is the sum of its slices'
differences, and each of those has one of the causes in CAUSES, found by looking at
the events around it, never assumed. What remains is UNEXPLAINED and fails.
"""

import bisect
import collections
import csv
import json
import re
import sys

CAUSES = {
    "unreported": "the kernel reported no switch to the task (another task leaves the CPU than came to it): "
    "timehist counts from the CPU's last event, tr says unknown",
    "lost": "events that perf lost (PERF_RECORD_LOST) and tr has",
    "outside": "outside of the task's recorded life: before tr began, after it ended, or another task with the same pid",
    "early waking": "the waking was stamped before the switch-out: timehist forgets it then and counts the wait "
    "for a CPU as sleep",
    "unreported, wait": "the wait ends at a switch that the kernel did not report: tr knows it up to the CPU's last switch",
    "R+": "the task was preempted (prev_state R+, a bit that timehist takes for another state): timehist counts the wait "
    "for a CPU as sleep",
    "first wait": "a new task waits from its fork on (tr) or from its first waking on (perf)",
    "stamps": "the two tools' stamps of the same switch or waking lie apart",
    "rounding": "timehist prints whole µs",
}
APART = 200_000  # ns by which the two stamps of one switch may lie apart: an interrupt may come between
SLACK = 5_000_000  # ns by which stamps of one event may differ: a virtual CPU may be taken away between them
PERCENT = 0.01

Slice = collections.namedtuple("Slice", "cpu since until state preempt")


def perf_events(path):
    """Switches by CPU, wakings by task, spans with losses (CPU, from, to), the run time that the kernel
    charged to each task, with its time, from `perf script`."""
    line_of = re.compile(r"\s*(\d+) \[(\d+)\]\s+(\d+)\.(\d{9}):\s+(?:sched:)?(\w+):? ?(.*)")
    switch_of = re.compile(r"prev_pid=(\d+) prev_prio=-?\d+ prev_state=(\S+) ==> next_comm=.* next_pid=(\d+)")
    switches, wakings, lost = collections.defaultdict(list), collections.defaultdict(list), []
    latest, charged = {}, collections.defaultdict(list)
    with open(path, encoding="utf-8", errors="replace") as lines:
        for text in lines:
            line = line_of.match(text)
            if not line:
                continue
            cpu, time = int(line[2]), int(line[3]) * 10**9 + int(line[4])
            if line[5].startswith("PERF_RECORD_LOST"):
                lost.append((cpu, latest.get(cpu, 0), time))
                continue
            latest[cpu] = time
            if line[5] == "sched_switch":
                found = switch_of.findall(line[6])
                prev, state, next_ = found[-1]
                switches[cpu].append((time, int(prev), int(next_), state))
            elif line[5] == "sched_stat_runtime":
                ran = re.search(r" pid=(\d+) runtime=(\d+)", line[6])
                charged[int(ran[1])].append((time, int(ran[2])))
            elif line[5] in ("sched_waking", "sched_wakeup_new", "sched_wakeup"):
                wakings[int(re.findall(r" pid=(\d+)", line[6])[-1])].append((time, line[5]))
    return switches, wakings, lost, charged


def timehist(path):
    """Each task's slices from `perf sched timehist --state`: CPU, end, wait, delay, run, state."""
    line_of = re.compile(r"\s*(\d+)\.(\d{6}) \[(\d+)\]\s+.*\[(\d+)(?:/\d+)?\]\s+([\d.]+)\s+([\d.]+)\s+([\d.]+)\s+(\S*)")
    slices = collections.defaultdict(list)

    def ns(ms):
        return round(float(ms) * 10**6)

    with open(path, encoding="utf-8", errors="replace") as lines:
        for text in lines:
            line = line_of.match(text)
            if line:
                end = int(line[1]) * 10**9 + int(line[2]) * 1000
                slices[int(line[4])].append((int(line[3]), end, ns(line[5]), ns(line[6]), ns(line[7]), line[8]))
    return slices


def tr_events(path):
    """Switches by CPU, wakings by task, and the times at which each task woke another: it was running then."""
    switches, wakings, acts = (
        collections.defaultdict(list),
        collections.defaultdict(list),
        collections.defaultdict(list),
    )
    with open(path, encoding="utf-8") as lines:
        for text in lines:
            event = json.loads(text)
            kind, time = event["kind"], event["t"]
            if kind == "switch":
                state = (event["prev_state"], event["preempt"])
                switches[event["cpu"]].append((time, event["prev"], event["next"], state))
            elif kind in ("waking", "wakeup_new"):
                wakings[event["wakee"]].append((time, kind))
                acts[event["waker"]].append((time,))
    return switches, wakings, acts


def offset(ours, theirs):
    """tr's zero on perf's clock: the switches of each CPU, matched by their two tasks."""
    found = []
    for cpu, switches in ours.items():
        keys = collections.defaultdict(list)
        for time, prev, next_, _ in theirs[cpu]:
            keys[prev, next_].append(time)
        for time, prev, next_, _ in switches:
            # A pair that occurs once is unambiguous.
            times = keys[prev, next_]
            if len(times) == 1 and sum(1 for s in switches if s[1:3] == (prev, next_)) == 1:
                found.append(times[0] - time)
            if len(found) > 2000:
                break
    found.sort()
    return found[len(found) // 2]


def slices_of(switches):
    """Each task's slices, in order; `since` is None where its switch-in is missing."""
    slices = collections.defaultdict(list)
    for cpu, events in switches.items():
        came, since = None, None
        for time, prev, next_, state in events:
            slices[prev].append(Slice(cpu, since if came == prev else None, time, state, None))
            came, since = next_, time
    for some in slices.values():
        some.sort(key=lambda s: s.until)
    return slices


def last_between(times, after, until):
    """The first of the sorted times in (after, until]."""
    at = bisect.bisect_right(times, after)
    return times[at] if at < len(times) and times[at] <= until else None


def missing_in_perf(lost, piece):
    """Why perf lacks a switch of this slice of tr's (or a waking, by any CPU, when it has no state)."""
    since = piece.since if piece.since is not None else piece.until
    hit = any(
        (cpu == piece.cpu or piece.state is None) and a - APART <= piece.until and since <= b + APART
        for cpu, a, b in lost
    )
    return "lost" if hit else "UNEXPLAINED"


def waits_before(slices, wakes, times):
    """tr's wait for a CPU before each of a task's slices but the first, with its causes: the task was runnable at
    the switch-out, a waking since, or a waking while it was still on its CPU."""
    waits = [(0, False, None, None)]
    for before, mine in zip(slices, slices[1:]):
        off = before.until
        prev_state, preempt = before.state
        runnable = preempt or prev_state == 0
        woken = last_between(wakes, off, mine.until)
        on_way = last_between(wakes, before.since or off, off)
        # Without a switch-in, tr knows the wait up to the CPU's last switch.
        last = bisect.bisect_left(times[mine.cpu], mine.until) - 1
        ends = mine.since if mine.since is not None else max(times[mine.cpu][last] if last >= 0 else off, off)
        # Asleep without a waking since: if it ran again, that came while it was still on its CPU.
        ready = off if runnable or woken is None and mine.since is not None else woken
        waits.append((max(ends - ready, 0) if ready is not None else 0, runnable, woken, on_way))
    return waits


def share(is_, should):
    if is_ == should:
        return "±0"
    return f"{(is_ - should) / should * 100:+.2f} %" if should else "from 0"


def accounts(slices, charged, lost):
    """The kernel's own account of each slice (sched_stat_runtime) beside the slice in the events.

    The kernel closes a task's account with the time that it reads when it begins to switch, the event is
    stamped when it has chosen the next task; in between lie some µs, which the kernel charges to that next
    one. A slice's difference is that of its two ends, less what its run queue's clock leaves out:
    interrupts and steal.
    """
    differences = []
    for tid, some in slices.items():
        charges = charged.get(tid, [])
        times = [time for time, _ in charges]
        for piece in some:
            if piece.since is None or missing_in_perf(lost, piece) == "lost":
                continue
            sums = charges[bisect.bisect_right(times, piece.since) : bisect.bisect_right(times, piece.until)]
            if sums:
                differences.append(piece.until - piece.since - sum(ran for _, ran in sums))
    if not differences:
        return "no sched_stat_runtime here: the kernel's account of single slices is not known"
    size = sorted(map(abs, differences))

    def at(share):
        return f"{size[int((len(size) - 1) * share)] / 1000:,.1f} µs"

    left_out = [d for d in differences if d > APART]
    return (
        f"{len(size):,} slices beside the kernel's account of each: {at(0.5)} apart (half of them), {at(0.9)} (9 of 10), "
        f"{at(0.99)} (99 of 100), {at(1)} (all), in sum {sum(differences) / 1e6:+,.3f} ms;\n  {len(left_out)} longer by more "
        f"than {APART / 1e6} ms, {milli(sum(left_out))} in all: interrupts, or steal, which the kernel leaves out"
    )


def milli(ns):
    return f"{ns / 1e6:,.3f} ms"


def main():
    directory = sys.argv[1]
    p_switches, _, lost, charged = perf_events(f"{directory}/perf.events")
    t_switches, t_wakings, t_acts = tr_events(f"{directory}/tr.events")
    perf = timehist(f"{directory}/perf.slices")
    zero = offset(t_switches, p_switches)

    def move(events):
        return {key: [(e[0] + zero, *e[1:]) for e in some] for key, some in events.items()}

    t_switches, t_wakings, t_acts = move(t_switches), move(t_wakings), move(t_acts)
    t_times = {cpu: [switch[0] for switch in some] for cpu, some in t_switches.items()}
    t_slices, p_slices = slices_of(t_switches), slices_of(p_switches)
    with open(f"{directory}/tr.json", encoding="utf-8") as file:
        document = json.load(file)
    processes = {p["pid"]: p for p in document["processes"]}
    with open(f"{directory}/tr.threads", encoding="utf-8") as file:
        threads = list(csv.DictReader(file))

    bugs = sum(1 for s in p_switches.values() for a, b in zip(s, s[1:]) if a[2] != b[1])
    count = sum(map(len, p_switches.values()))
    print(
        f"perf: {count:,} switches of the machine, {len(lost)} records of loss, "
        f"{bugs} × switched out another task than was switched in"
    )

    total = collections.Counter()
    causes_of_all = collections.Counter()
    over, unexplained, equal_switches = [], [], 0
    for row in threads:
        tid = int(row["pid"])
        start = int(row["start_ns"]) + zero
        end = start + int(row["wall_ns"])
        ours = [s for s in t_slices[tid] if start - SLACK <= s.until <= end + SLACK]
        theirs = perf[tid]
        # timehist drops slices that seem out of order: match by the end, not by the number.
        raw = {s.until // 1000: s for s in p_slices[tid]}
        run, wait = collections.Counter(), collections.Counter()
        switches = collections.Counter()
        p_run = p_wait = 0
        t_run = t_wait = 0
        at = 0
        t_wakes = [time for time, _ in t_wakings.get(tid, [])]
        t_acts_of = sorted(time for (time,) in t_acts.get(tid, []))
        before = None  # the slice before, in tr's eyes
        p_before = None
        waits = waits_before(ours, t_wakes, t_times)
        exact = None
        for cpu, stop, between, delay, ran, state in theirs:
            p_run += ran
            # timehist's three kinds of time off a CPU, by the state at the switch-out before.
            waited = between if p_before is not None and p_before[5].startswith("R") else delay
            p_wait += waited
            exact_before, exact = exact, raw.get(stop // 1000) or raw.get(stop // 1000 + 1)
            if exact is None:
                run["UNEXPLAINED"] += ran  # timehist has another slice than its own events
                p_before = (cpu, stop, between, delay, ran, state)
                continue
            while at < len(ours) and ours[at].until < exact.until - SLACK:
                # tr has a slice that perf lacks.
                mine = ours[at]
                cause = missing_in_perf(lost, mine)
                if mine.since is not None:
                    run[cause] -= mine.until - mine.since
                    t_run += mine.until - mine.since
                t_wait += waits[at][0]
                wait[cause] -= waits[at][0]
                switches[cause] -= 1
                before, at = mine, at + 1
            if at == len(ours) or ours[at].cpu != cpu or abs(ours[at].until - exact.until) > SLACK:
                outside = exact.until < start or exact.until > end
                run["outside" if outside else "UNEXPLAINED"] += ran
                wait["outside" if outside else "UNEXPLAINED"] += waited
                switches["outside" if outside else "UNEXPLAINED"] += 1
                p_before = (cpu, stop, between, delay, ran, state)
                continue
            mine = ours[at]
            at += 1
            # Run time. Without a switch-in tr knows it from the task's first waking of another on.
            there = bisect.bisect_left(t_times[cpu], mine.until) - 1
            came = t_times[cpu][there] if there >= 0 else start
            if mine.since is None:
                did = last_between(t_acts_of, max(came, before.until) if before else came, mine.until)
                is_ = mine.until - did if did is not None else 0
                t_run += is_
                run["outside" if before is None and start == zero else "unreported"] += ran - is_
            else:
                is_ = mine.until - mine.since
                t_run += is_
                if exact.since is None:
                    # perf alone lacks the switch-in.
                    run[missing_in_perf(lost, mine)] += ran - is_
                else:
                    apart = max(abs(exact.until - mine.until), abs(exact.since - mine.since))
                    cause = "stamps" if apart <= APART else missing_in_perf(lost, mine)
                    run[cause] += exact.until - exact.since - is_
                    run["rounding"] += ran - (exact.until - exact.since)
            # The wait for a CPU before it.
            if before is None:
                # A new task. The first switch-in of an older task ends no known wait.
                if mine.since is not None and start > zero:
                    is_ = mine.since - start
                    t_wait += is_
                    wake = t_wakes[0] if t_wakes else start
                    wait["first wait"] -= wake - start
                    wait["stamps"] += waited - (mine.since - wake)
                else:
                    wait["outside"] += waited
            else:
                is_, runnable, woken, on_way = waits[at - 1]
                t_wait += is_
                if mine.since is None or exact.since is None:
                    cause = "unreported, wait"
                elif (
                    runnable and not p_before[5].startswith("R") and exact_before and exact_before.state.startswith("R")
                ):
                    cause = "R+"
                elif not runnable and woken is None:
                    cause = "early waking" if on_way is not None else "UNEXPLAINED"
                else:
                    off_cpu = Slice(mine.cpu, before.until, mine.until, None, None)
                    cause = "stamps" if abs(waited - is_) <= APART else missing_in_perf(lost, off_cpu)
                wait[cause] += waited - is_
            before = mine
            p_before = (cpu, stop, between, delay, ran, state)
        for mine, (is_, *_) in zip(ours[at:], waits[at:]):
            cause = missing_in_perf(lost, mine)
            t_wait += is_
            wait[cause] -= is_
            switches[cause] -= 1
            if mine.since is not None:
                t_run += mine.until - mine.since
                run[cause] -= mine.until - mine.since
        # tr's figures equal the sums of the slices.
        tr_run, tr_wait = int(row["on_cpu_ns"]), int(row["run_queue_ns"])
        run["UNEXPLAINED"] += t_run - tr_run
        wait["UNEXPLAINED"] += t_wait - tr_wait
        process = processes.get(tid)
        tr_switches = len(ours)
        if process and process["threads"] == 1:
            own = process["switches"]["voluntary"] + process["switches"]["involuntary"]
            switches["UNEXPLAINED"] += tr_switches - own
            tr_switches = own
        equal_switches += tr_switches == len(theirs)
        total.update(
            p_run=p_run,
            t_run=tr_run,
            p_wait=p_wait,
            t_wait=tr_wait,
            unknown=int(row["unknown_ns"]),
            p_switches=len(theirs),
            t_switches=tr_switches,
        )
        for what, is_, should, parts in (
            ("run", p_run, tr_run, run),
            ("wait", p_wait, tr_wait, wait),
            ("switches", len(theirs), tr_switches, switches),
        ):
            for cause, amount in parts.items():
                if what != "switches":
                    causes_of_all[what, cause] += amount
            if abs(is_ - should) <= PERCENT * should:
                continue
            parts = {cause: amount for cause, amount in parts.items() if amount}
            over.append((abs(is_ - should), row["name"], tid, what, is_, should, parts))
            if abs(parts.get("UNEXPLAINED", 0)) > PERCENT * should or sum(parts.values()) != is_ - should:
                unexplained.append((row["name"], tid, what))

    print(
        f"{len(threads)} tasks: switches equal for {equal_switches}; perf {total['p_switches']:,}, tr {total['t_switches']:,}"
    )
    print(
        f"  run    perf {milli(total['p_run'])}, tr {milli(total['t_run'])} and {milli(total['unknown'])} unknown: "
        f"{share(total['p_run'], total['t_run'])}"
    )
    print(
        f"  wait   perf {milli(total['p_wait'])}, tr {milli(total['t_wait'])}: {share(total['p_wait'], total['t_wait'])}"
    )
    ours = {int(row["pid"]): t_slices[int(row["pid"])] for row in threads}
    print(accounts(ours, charged, lost))
    print(f"{len(over)} figures differ by more than 1 %:")

    def show(what, amount):
        return f"{amount:+d}" if what == "switches" else f"{amount / 1e6:+,.3f} ms"

    for _, name, tid, what, is_, should, parts in sorted(over, key=lambda o: (-o[0], o[2], o[3])):
        text = ", ".join(f"{cause} {show(what, parts[cause])}" for cause in sorted(parts, key=lambda c: -abs(parts[c])))
        values = (is_, should) if what == "switches" else (milli(is_), milli(should))
        print(f"  {tid:>7} {name[:28]:28} {what:8} perf {values[0]}, tr {values[1]} ({share(is_, should)}): {text}")
    print("causes, over all tasks:")
    for (what, cause), amount in sorted(causes_of_all.items(), key=lambda c: (c[0][0], -abs(c[1]))):
        if amount:
            print(f"  {what:5} {amount / 1e6:+12,.3f} ms  {cause}: {CAUSES.get(cause, 'no cause was found')}")
    for name, tid, what in unexplained:
        print(f"UNEXPLAINED: {what} of {name} ({tid})")
    print(f"{len(over) - len(unexplained)} of {len(over)} explained")
    return 1 if unexplained else 0


if __name__ == "__main__":
    sys.exit(main())
