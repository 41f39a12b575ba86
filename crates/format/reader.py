#!/usr/bin/env python3
"""Prints what a trace holds. It follows FORMAT.md, and shows how short a reader can begin: reader.py FILE"""

import json
import struct
import sys
import zlib

import zstandard


def varint(data, at):
    value = shift = 0
    while True:
        value |= (data[at] & 0x7F) << shift
        shift, at = shift + 7, at + 1
        if data[at - 1] < 0x80:
            return value, at


def frames(data):
    """Type, number of events and payload of each intact frame; the metadata's checksum is the trace's id."""
    at, trace = 16, 0
    while (at := data.find(b"\xf7\x74\x72\xb1", at)) >= 0 and at + 5 < len(data):
        end, kind, values, place = at + 5 + data[at + 4], data[at + 5], [], at + 6
        while len(values) < 7 and place < end - 8:
            value, place = varint(data, place)
            values.append(value)
        checksum, header = struct.unpack("<II", data[place : place + 4] + data[end - 4 : end])
        payload = data[end : end + values[3]]
        mine = struct.pack("<I", 0 if kind == 1 else trace)
        if header != zlib.crc32(mine + data[at : end - 4]) or checksum != zlib.crc32(payload):
            at += 4  # Damage costs this frame alone: search for the next one.
            continue
        trace = checksum if kind == 1 else trace
        yield kind, values[4], payload
        at = end + values[3]


def fields(payload):
    """The values of metadata by their tags."""
    size, at = varint(payload, 0)
    stored, at = varint(payload, at)
    body, at, found = payload[at : at + stored], 0, {}
    if stored < size:
        body = zstandard.ZstdDecompressor().stream_reader(body).read(min(size, 8 << 20))
    while at < len(body):
        tag, at = varint(body, at)
        length, at = varint(body, at)
        found[tag], at = body[at : at + length], at + length
    return found


data = open(sys.argv[1], "rb").read()
assert data[:9] == b"\x89tr\xb5\r\n\x1a\n\x03", "no trace of version 3"
all_frames = list(frames(data))
meta = next(fields(payload) for kind, _, payload in all_frames if kind == 1)
sched, life = (sum(events for kind, events, _ in all_frames if kind == type_) for type_ in (2, 3))
host, kernel = (meta[tag][1:].decode() for tag in (2, 3))  # Texts of up to 250 bytes: the length is one.
print(json.dumps({"format_version": f"3.{data[10]}", "host": host, "kernel": kernel, "sched": sched, "life": life}))
