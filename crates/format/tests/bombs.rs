//! Tests that small malicious trace files ("bombs") cannot make a reader use much memory or time. A separate process
//! reads each file; it may use no more memory than for the largest valid frames.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing)]

mod common;
#[path = "../../../fuzz/src/pieces.rs"]
mod pieces;

use pieces::{add, begin, columns, trailer, varint};
use tr_format::event::Stream;
use tr_format::frame::{kind, Header};
use tr_format::limits;
use tr_format::reader::Trace;
use tr_format::sched::SchedBlock;
use tr_format::source::Source;

/// The limit in MiB of the memory that reading a bomb may take. The longest body of a frame, its events and the list of
/// frames need less than this.
const MEMORY_MIB: u64 = 96;
/// The limit in seconds of the CPU time that reading a bomb may take.
const SECONDS: f64 = 20.0;

/// Compresses the body of a frame, but stores `claims` as its length before compression, whatever the real length is.
fn packed(body: &[u8], claims: usize) -> Vec<u8> {
    let stored = zstd::bulk::compress(body, 3).unwrap();
    let mut out = Vec::new();
    varint(&mut out, claims as u64);
    varint(&mut out, stored.len() as u64);
    out.extend_from_slice(&stored);
    out
}

fn life(number: u64, events: u64) -> Header {
    Header {
        kind: kind::LIFE,
        number,
        seq: number,
        events,
        ..Header::default()
    }
}

/// Pseudo-random bytes, which cannot be compressed.
fn noise(len: usize) -> Vec<u8> {
    let mut state = 1u64;
    let mut next = || {
        state = state.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(1);
        (state >> 56) as u8
    };
    (0..len).map(|_| next()).collect()
}

/// The malicious trace files: the name and the bytes of each.
fn bombs() -> Vec<(&'static str, Vec<u8>)> {
    let mut all = Vec::new();
    let mut bomb = |name, make: &dyn Fn(&mut Vec<u8>, u32)| {
        let (mut out, id) = begin();
        make(&mut out, id);
        assert!(out.len() < 4 << 20, "{name} is large itself");
        all.push((name, out));
    };
    let most = limits::BODY as usize;
    bomb("a body of 32 MiB of zeros, twenty times", &|out, id| {
        // Zeros alone would expand by more than the limit allows, so the body begins with as many incompressible bytes
        // as needed.
        let mut body = noise(most / limits::EXPANSION as usize);
        body.resize(most, 0);
        for number in 1..=20 {
            add(out, id, life(number, 1), &packed(&body, most));
        }
    });
    bomb("a body that claims 2^60 bytes", &|out, id| {
        let mut payload = Vec::new();
        varint(&mut payload, 1 << 60);
        varint(&mut payload, 1 << 59);
        add(out, id, life(1, 1), &payload);
    });
    bomb("a scheduling body longer than its event", &|out, id| {
        // The header announces one event. The body is far longer than one event, as long as the limit for the body's
        // expansion allows.
        let mut body = noise(most / limits::EXPANSION as usize);
        body.resize(most, 0);
        let header = Header {
            kind: kind::SCHED,
            number: 1,
            events: 1,
            ..Header::default()
        };
        add(out, id, header, &packed(&body, most));
    });
    bomb("2^60 events", &|out, id| {
        for kind in [kind::SCHED, kind::LIFE] {
            let header = Header {
                kind,
                number: 1,
                events: 1 << 60,
                ..Header::default()
            };
            add(out, id, header, &[0; 100]);
        }
    });
    bomb(
        "as many events as allowed, each of a long string",
        &|out, id| {
            // Each frame has 65,536 marks that all refer to one name of 64 KiB, so their names would take 4 GiB.
            let events = limits::LIFE_EVENTS as usize;
            let mut names = Vec::new();
            varint(&mut names, limits::NAME as u64);
            names.extend(noise(limits::NAME));
            let mut which = vec![1; events];
            which[0] = 0;
            let body = columns(&[
                (0, vec![12; events]),
                (1, vec![0; events]),
                (2, vec![0; events]),
                (10, which),
                (11, names),
            ]);
            for number in 1..=20 {
                add(
                    out,
                    id,
                    life(number, events as u64),
                    &packed(&body, body.len()),
                );
            }
        },
    );
    bomb("as many columns as allowed", &|out, id| {
        let mut body = Vec::new();
        varint(&mut body, limits::LIFE_COLUMNS);
        body.resize(body.len() + limits::LIFE_COLUMNS as usize, 0);
        add(out, id, life(1, 1), &packed(&body, body.len()));
        let mut body = Vec::new();
        varint(&mut body, 1 << 50);
        add(out, id, life(2, 1), &packed(&body, body.len()));
    });
    bomb("frames of nothing", &|out, id| {
        for number in 1..100_000 {
            add(
                out,
                id,
                Header {
                    kind: 99,
                    number,
                    ..Header::default()
                },
                &[],
            );
        }
    });
    bomb("an index of as many rows as fit", &|out, id| {
        let index = out.len() as u64;
        for seq in 0..30 {
            let rows = limits::INDEX_ENTRIES;
            let mut body = Vec::new();
            varint(&mut body, rows);
            varint(&mut body, 16);
            for byte in noise(rows as usize) {
                body.extend_from_slice(&[99, 0, 21, 21, 0, byte & 0x7f]);
            }
            let header = Header {
                kind: kind::INDEX,
                number: 1 + seq,
                seq,
                events: rows,
                ..Header::default()
            };
            add(out, id, header, &packed(&body, body.len()));
        }
        trailer(out, id, index);
    });
    bomb(
        "an index that tells of the same frames again and again",
        &|out, id| {
            let rows = limits::INDEX_ENTRIES;
            let header = |kind, number, seq, events| Header {
                kind,
                number,
                seq,
                events,
                ..Header::default()
            };
            add(out, id, header(99, 1, 0, 0), &noise(22 * rows as usize));
            let summary = out.len();
            // The body of the summary: the end of the recording, and a tally (numbers of events) of 15 numbers that are
            // 0.
            let body = [&[1, 1, 0, 8, 16, 15], &[0; 15][..]].concat();
            add(
                out,
                id,
                header(kind::SUMMARY, 2, 0, 0),
                &pieces::stored(&body),
            );
            let index = out.len();
            for seq in 0..25 {
                let mut body = Vec::new();
                varint(&mut body, rows);
                varint(&mut body, 16);
                for byte in noise(rows as usize) {
                    body.extend_from_slice(&[kind::LIFE, 0, 21, 21, 1, 0, byte & 0x7f, 0]);
                }
                let header = header(kind::INDEX, 3 + seq, seq, rows);
                add(out, id, header, &packed(&body, body.len()));
            }
            let mut body = Vec::new();
            let (head, len) = Header::decode(&out[summary..index], id).unwrap();
            varint(&mut body, 1);
            varint(&mut body, summary as u64);
            body.extend_from_slice(&[kind::SUMMARY, 0]);
            varint(&mut body, len as u64 + head.payload);
            varint(&mut body, len as u64);
            body.extend_from_slice(&[0, 0]);
            add(
                out,
                id,
                header(kind::INDEX, 28, 25, 1),
                &pieces::stored(&body),
            );
            trailer(out, id, index as u64);
        },
    );
    bomb("headers that claim what is not theirs", &|out, id| {
        for number in 1..60_000 {
            let payload = limits::PAYLOAD - number;
            let header = Header {
                kind: kind::SCHED,
                number,
                payload,
                events: 9,
                ..Header::default()
            };
            header.encode(id, out);
        }
    });
    // Malicious metadata: a list of CPUs with a stored length of 2^60, about a million fields, and a list of 8 million
    // CPUs.
    for (name, body) in [
        ("metadata of 2^60 CPUs", {
            let mut body = vec![5, 9, 253];
            body.extend_from_slice(&(1u64 << 60).to_le_bytes());
            body
        }),
        ("metadata of many fields", {
            let mut body = Vec::new();
            for tag in 100..1_000_000 {
                varint(&mut body, tag);
                body.push(0);
            }
            body
        }),
        ("metadata of many CPUs", {
            let mut body = vec![5];
            let count = 8_000_000u32;
            let len = count as u64 + 5;
            varint(&mut body, len);
            body.push(252);
            body.extend_from_slice(&count.to_le_bytes());
            body.resize(body.len() + count as usize, 0);
            body
        }),
    ] {
        let mut out = begin().0[..16].to_vec();
        let mut payload = packed(&body, body.len());
        if payload.len() * 200 < body.len() {
            payload = Vec::new();
            varint(&mut payload, body.len() as u64);
            varint(&mut payload, body.len() as u64);
            payload.extend_from_slice(&body);
        }
        add(
            &mut out,
            0,
            Header {
                kind: kind::METADATA,
                ..Header::default()
            },
            &payload,
        );
        all.push((name, out));
    }
    all
}

/// Opens a trace and reads the events of all of its frames, as a report does.
fn read(bytes: Vec<u8>) {
    let Ok(trace) = Trace::open(Source::bytes(bytes)) else {
        return;
    };
    let (mut block, mut events) = (SchedBlock::default(), Vec::new());
    for frame in trace.frames() {
        let _ = match frame.stream {
            Stream::Cpu(_) => trace.read_sched(frame, &mut block),
            _ => trace.read_life(frame, &mut events),
        };
    }
}

const BOMB: &str = "TR_FORMAT_BOMB";

/// The peak resident memory of this process, in KiB.
fn peak() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status
        .lines()
        .find(|line| line.starts_with("VmHWM:"))
        .unwrap();
    line.split_whitespace().nth(1).unwrap().parse().unwrap()
}

#[test]
fn bombs_are_defused() {
    if let Ok(path) = std::env::var(BOMB) {
        let (before, begin) = (peak(), common::cpu_time());
        let bytes = std::fs::read(path).unwrap();
        read(bytes);
        let spent = (common::cpu_time() - begin).as_secs_f64();
        println!("peak {} KiB, {spent:.3} s", peak() - before);
        return;
    }
    let bombs = bombs();
    let dir = tempfile::tempdir().unwrap();
    for (at, (name, bytes)) in bombs.iter().enumerate() {
        let path = dir.path().join(at.to_string());
        std::fs::write(&path, bytes).unwrap();
        let output = std::process::Command::new(std::env::current_exe().unwrap())
            .args(["bombs_are_defused", "--exact", "--nocapture"])
            .env(BOMB, &path)
            .output()
            .unwrap();
        let text = String::from_utf8_lossy(&output.stdout);
        assert!(output.status.success(), "{name}: {text}");
        let mut figures = text.split("peak ").nth(1).expect(name).split(' ');
        let peak: u64 = figures.next().unwrap().parse().unwrap();
        let spent: f64 = figures.nth(1).unwrap().parse().unwrap();
        println!(
            "{name}: {} bytes, peak {} MiB, {spent} s",
            bytes.len(),
            peak >> 10
        );
        assert!(peak >> 10 < MEMORY_MIB, "{name}: {peak} KiB");
        assert!(spent < SECONDS, "{name}: {spent} s");
    }
}
