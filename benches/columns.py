#!/usr/bin/env python3
"""Where the bytes of recordings go: columns.py TRACE...

By column of lifecycle blocks, by part of scheduling blocks, and the rest: bytes in the file, and bytes a recorded process. A
column's share of a packed body is what the body would lose without it, all shares scaled to the body's size. A wide number
has its low bits with its column.
"""

import os
import sys

import zstandard

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "fixtures"))
import read  # noqa: E402  pylint: disable=wrong-import-position

ZSTD = zstandard.ZstdCompressor(level=6, write_content_size=False)
STREAMS = {0: "lifecycle", 1: "recorder"}


def shares(parts, size):
    """What each part takes of a packed body of that many bytes."""
    whole = len(ZSTD.compress(b"".join(parts)))
    without = [
        whole - len(ZSTD.compress(b"".join(parts[:at] + parts[at + 1 :]))) if part else 0
        for at, part in enumerate(parts)
    ]
    found = [max(0, part) for part in without]
    return [part * size / (sum(found) or 1) for part in found]


def life(payload, events, smallest, names):
    """Bytes by column."""
    source = read.Bytes(payload)
    body = read.Bytes(read.packed(source, 32 << 20))
    stored, low = source.at, len(payload) - source.at
    columns = [body.take(length) for length in [body.varint() for _ in range(body.varint())]]
    block = read.Life(payload, {})
    bits, plain = {}, block.wide

    def wide(column):
        before = block.low.used
        value = plain(column)
        bits[column] = bits.get(column, 0) + block.low.used - before
        return value

    block.wide = wide
    kinds = {}
    for event in block.events(events, smallest):
        kinds[event[2]] = kinds.get(event[2], 0) + 1
    found = {name: size for name, size in zip(names, shares(columns, stored)) if size}
    for column, used in bits.items():
        found[names[column] + " bits"] = low * used / max(1, sum(bits.values()))
    return found, kinds


def sched(payload, events, smallest, common):
    """Bytes by part; `tasks` is all between time-outs and steps."""
    source = read.Bytes(payload)
    body = read.packed(source, 64 + 32 * events)
    stored, low = source.at, len(payload) - source.at
    sleeps = sum(
        1 for _, _, _, state, flags, *_ in read.sched(payload, events, smallest, common) if state and not flags & 17
    )
    front = read.Bytes(body)
    for _ in range(3):
        front.varint()
    timeouts = sleeps if front.byte() & read.TIMEOUTS else 0
    begin = front.at + events
    steps = len(body) - events
    tasks = begin + sleeps + timeouts
    parts = [body[:begin], body[begin : begin + sleeps], body[begin + sleeps : tasks], body[tasks:steps], body[steps:]]
    names = ("classes", "reasons", "time-outs", "tasks", "steps")
    return dict(zip(names, shares(parts, stored))) | {"low bits": low}


def main():
    with open(read.SPEC, encoding="utf-8") as file:
        spec = file.read()
    names = read.fenced(spec, "columns")
    common = [tuple(int(half, 16) for half in flags.split("/")) for flags in read.fenced(spec, "classes")]
    for path in sys.argv[1:]:
        with open(path, "rb") as file:
            data = file.read()
        sums, counts, payloads = {}, {"sched": 0}, 0
        for kind, stream, events, smallest, _, payload in read.frames(data):
            payloads += len(payload)
            if kind == 2:
                where, found = "sched", sched(payload, events, smallest, common)
                counts["sched"] += events
            elif kind == 3:
                where = STREAMS[stream]
                found, kinds = life(payload, events, smallest, names)
                for name, count in kinds.items():
                    counts[name] = counts.get(name, 0) + count
            else:
                where, found = "", {"metadata, summary, index": len(payload)}
            for name, size in found.items():
                sums[where, name] = sums.get((where, name), 0) + size
        sums["", "frame headers"] = len(data) - payloads
        processes = max(1, counts.get("exit", 0))
        print(
            f"{path}: {len(data)} bytes, {sum(counts.values())} events: "
            + ", ".join(f"{n} {c}" for n, c in counts.items())
        )
        groups = {}
        for (where, _), size in sums.items():
            groups[where] = groups.get(where, 0) + size
        for where, total in sorted(groups.items(), key=lambda group: -group[1]):
            print(
                f"  {where or 'others'}: {total:.0f} bytes, {100 * total / len(data):.1f} %, {total / processes:.2f} an exit"
            )
            for (group, name), size in sorted(sums.items(), key=lambda row: -row[1]):
                if group == where and size > len(data) / 500:
                    print(f"    {name:<26} {size:9.0f} {100 * size / len(data):5.1f} %  {size / processes:6.2f}")


if __name__ == "__main__":
    main()
