#!/usr/bin/env python3
"""What the programs of a recording cost beside empty ones on the same tracepoints, as root.

    benches/floor.py TR [--rounds 5] [--strangers]

Each round records a storm of pipes under kernel.bpf_stats_enabled while two raw_tp programs are attached to sched_switch and to
sched_waking: an empty one, and one that reads the clock. Prints the medians: ns a run of these, which is the kernel's counting and
the call, and the same with a stamp, and ns a run of each program of `tr`. Load beside them changes all; differences stay.

With --strangers the storm is not recorded, but runs beside a COMMAND that sleeps, and beside one that wants the storm's CPU all the
time: what the switches of others cost while no recorded task waits for the CPU, and while one does.
"""

import argparse
import ctypes
import os
import re
import statistics
import struct
import subprocess
import tempfile
import time

from quick import Stats, storm

# Of bpf(2).
CALL, PROG_LOAD, PROG_GET_NEXT_ID, PROG_GET_FD_BY_ID, RAW_TRACEPOINT_OPEN, INFO_BY_FD = 321, 5, 11, 13, 17, 15
RAW_TRACEPOINT = 17
LIBC = ctypes.CDLL(None, use_errno=True)
# Instructions: opcode, registers, offset, constant. r0 = 0; exit, and bpf_ktime_get_ns(); r0 = 0; exit.
END = struct.pack("<BBhiBBhi", 0xB7, 0, 0, 0, 0x95, 0, 0, 0)
FLOORS = {"empty": END, "clock": struct.pack("<BBhi", 0x85, 0, 0, 5) + END}
POINTS = ("sched_switch", "sched_waking")


def bpf(command, attr):
    attr = ctypes.create_string_buffer(attr.ljust(128, b"\0"), 128)
    done = LIBC.syscall(CALL, command, attr, 128)
    if done < 0:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
    return done, attr.raw


def attached(code, tracepoint):
    """A program of these instructions."""
    length = len(code) // 8
    code, terms = ctypes.create_string_buffer(code), ctypes.create_string_buffer(b"GPL")
    program, _ = bpf(
        PROG_LOAD, struct.pack("<IIQQ", RAW_TRACEPOINT, length, ctypes.addressof(code), ctypes.addressof(terms))
    )
    name = ctypes.create_string_buffer(tracepoint.encode())
    link, _ = bpf(RAW_TRACEPOINT_OPEN, struct.pack("<QI", ctypes.addressof(name), program))
    return program, link


def runs(program):
    """Runs so far, and their ns."""
    with open(f"/proc/self/fdinfo/{program}", encoding="ascii") as file:
        text = file.read()
    return [int(re.search(rf"^{name}:\s*(\d+)", text, re.MULTILINE)[1]) for name in ("run_cnt", "run_time_ns")]


def programs():
    """Descriptors of all loaded programs by their ids."""
    found, last = {}, 0
    while True:
        try:
            _, attr = bpf(PROG_GET_NEXT_ID, struct.pack("<I", last))
            (last,) = struct.unpack_from("<I", attr, 4)
            found[last], _ = bpf(PROG_GET_FD_BY_ID, struct.pack("<I", last))
        except OSError:
            return found


def name_of(program):
    info = ctypes.create_string_buffer(256)
    bpf(INFO_BY_FD, struct.pack("<IIQ", program, 256, ctypes.addressof(info)))
    # struct bpf_prog_info: the name stands behind type, id, tag, four lengths and addresses, load time, user, maps.
    return info.raw[64:80].split(b"\0")[0].decode()


def measured(tr, command, place, beside=None):
    """ns a run by program, in one recording; `beside` is a command that runs meanwhile."""
    empty = {f"{name}, {point}": attached(code, point) for name, code in FLOORS.items() for point in POINTS}
    others = set(programs())
    other = subprocess.Popen(beside, stdout=subprocess.DEVNULL) if beside else None
    record = [tr, "record", "-q", "-o", os.path.join(place, "trace.bin"), "--", *command]
    with subprocess.Popen(record) as recorder:
        time.sleep(0.7)
        own = {name_of(fd): fd for number, fd in programs().items() if number not in others}
        counted = {name: fd for name, (fd, _) in empty.items()} | own
        before = {name: runs(fd) for name, fd in counted.items()}
        recorder.wait()
    if other:
        other.kill()
        other.wait()
    found = {}
    for name, fd in counted.items():
        count, took = (now - then for now, then in zip(runs(fd), before[name]))
        if count > 1000:
            found[name] = took / count
    for fd in [*own.values(), *(fd for pair in empty.values() for fd in pair)]:
        os.close(fd)
    return found


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("tr")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--strangers", action="store_true")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as place, Stats():
        program = storm(place)
        storms = [program, "pipe", "1000000000"]
        loop = ["timeout", "4", "taskset", "-c", "0", "sh", "-c", "while :; do :; done"]
        loads = {"a storm": ([program, "pipe", "100000"], None)}
        if options.strangers:
            loads = {
                "a storm beside a task that sleeps": (["sleep", "4"], storms),
                "a storm beside a task that wants its CPU": (loop, storms),
            }
        rounds = {name: [] for name in loads}
        for _ in range(options.rounds):
            for name, (command, beside) in loads.items():
                rounds[name].append(measured(os.path.abspath(options.tr), command, place, beside))
    for load, measures in rounds.items():
        print(f"{load}:")
        for name in sorted({name for one in measures for name in one}):
            values = [one[name] for one in measures if name in one]
            span = f"{min(values):.0f} to {max(values):.0f}, {len(values)} rounds"
            print(f"{name:<24} {statistics.median(values):6.0f} ns a run ({span})")


if __name__ == "__main__":
    main()
