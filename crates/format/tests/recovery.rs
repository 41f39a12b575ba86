//! Truncated and damaged traces: the reader returns the intact frames and reports the losses.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic
)]

mod common;
#[path = "../../../fuzz/src/pieces.rs"]
mod pieces;

use std::collections::BTreeMap;

use common::*;
use pieces::id;
use tr_format::event::*;
use tr_format::frame::{kind, Header, FILE_HEADER, SYNC, TRAILER};
use tr_format::reader::{End, FrameInfo, Trace, Unknown};
use tr_format::sched::SchedBlock;
use tr_format::source::Source;
use tr_format::{Error, Fault};

/// Reads the events of one frame of a trace.
fn frame_events(trace: &Trace, frame: &FrameInfo) -> Result<Vec<Event>, Error> {
    let (mut block, mut events) = (SchedBlock::default(), Vec::new());
    match frame.stream {
        Stream::Cpu(_) => {
            let read = trace.read_sched(frame, &mut block);
            assert!(read.is_ok() || block.is_empty(), "half a frame");
            read.map(|()| block.iter().map(Event::Sched).collect())
        }
        _ => {
            let read = trace.read_life(frame, &mut events);
            assert!(read.is_ok() || events.is_empty(), "half a frame");
            read.map(|()| events.into_iter().map(Event::Life).collect())
        }
    }
}

/// The events that were read from a trace, by the number of their frame, and the losses that the reader reports
/// (stream, first and last time).
#[derive(Debug, Default, PartialEq)]
struct TraceContents {
    frames: BTreeMap<u64, (Stream, Vec<Event>)>,
    gaps: Vec<(Stream, u64, u64)>,
}

fn found(trace: &Trace) -> TraceContents {
    let mut found = TraceContents::default();
    let mut gaps = trace.gaps().to_vec();
    for frame in trace.frames() {
        match frame_events(trace, frame) {
            Ok(events) => {
                found.frames.insert(frame.number, (frame.stream, events));
            }
            Err(error) => {
                let Error::Frame {
                    frame: number,
                    offset,
                    ..
                } = error
                else {
                    panic!("{error}")
                };
                assert_eq!((number, offset), (frame.number, frame.offset));
                gaps.push(trace.gap_of(frame));
            }
        }
    }
    for gap in gaps {
        let LifeKind::Lost(lost) = gap.kind else {
            panic!("{gap:?} is no gap")
        };
        assert_eq!(lost.cause, LossCause::Damage);
        found.gaps.push((lost.stream, gap.time.0, lost.until.0));
    }
    found
}

fn open(bytes: &[u8]) -> Result<Trace, Error> {
    Trace::open(Source::bytes(bytes.to_vec()))
}

fn small() -> Vec<u8> {
    write(&recording(3, 40))
}

#[test]
fn cut_at_every_byte() {
    let whole = small();
    let all = open(&whole).unwrap();
    let ends: Vec<(u64, u64)> = all
        .frames()
        .iter()
        .map(|frame| (frame.number, frame.offset + frame.bytes))
        .collect();
    let events = found(&all).frames;
    let meta_end = Header::decode(&whole[16..], 0)
        .map(|(header, len)| FILE_HEADER + len as u64 + header.payload)
        .unwrap();
    for cut in 0..whole.len() as u64 {
        let trace = match open(&whole[..cut as usize]) {
            Ok(trace) => trace,
            Err(error) => {
                assert!(cut < meta_end, "{cut}: {error}");
                match error {
                    Error::NotATrace { .. } => assert_eq!(cut, 0),
                    Error::Frame { offset, .. } => assert!(offset <= cut),
                    error => panic!("{cut}: {error}"),
                }
                continue;
            }
        };
        let End::Truncated { offset, why, frame } = trace.end() else {
            panic!("{cut}: {:?}", trace.end())
        };
        assert!(*offset <= cut && !why.is_empty());
        let before = |(number, end): &(u64, u64)| (*end <= cut).then_some(*number);
        let expected: Vec<u64> = ends.iter().filter_map(before).collect();
        let found = found(&trace);
        assert!(found.frames.keys().copied().eq(expected), "{cut}");
        assert!(found
            .frames
            .iter()
            .all(|(number, events_now)| events[number] == *events_now));
        // A truncated trace has no losses and no damage, because all frames before its end are there.
        assert_eq!((found.gaps, trace.damage()), (vec![], &[][..]), "{cut}");
        let last = found.frames.keys().next_back().copied().unwrap_or(0);
        assert!(*frame > last, "{cut}: ends at {frame} behind {last}");
    }
}

/// For each byte of a trace, whether it belongs to a header or the trailer. The test flips every bit of such bytes, but
/// only one bit of every other byte.
fn headers(whole: &[u8], trace: &Trace) -> Vec<bool> {
    let mut is = vec![false; whole.len()];
    is[..FILE_HEADER as usize].fill(true);
    let len = is.len();
    is[len - TRAILER as usize..].fill(true);
    let id = crc32fast::hash(&{
        let (header, len) = Header::decode(&whole[16..], 0).unwrap();
        whole[16 + len..16 + len + header.payload as usize].to_vec()
    });
    let mut at = FILE_HEADER as usize;
    while at < whole.len() - TRAILER as usize {
        let salt = Header::decode(&whole[at..], id).or(Header::decode(&whole[at..], 0));
        let (header, len) = salt.unwrap();
        is[at..at + len].fill(true);
        at += len + header.payload as usize;
    }
    assert!(trace.frames().iter().all(|frame| is[frame.offset as usize]));
    is
}

#[test]
fn flip_every_byte() {
    let whole = small();
    let good = open(&whole).unwrap();
    let events = found(&good).frames;
    let header = headers(&whole, &good);
    let end = good.frames().iter().map(|frame| frame.max.0).max().unwrap();
    for at in 0..whole.len() {
        for bit in 0..8 {
            if !header[at] && bit != at % 8 {
                continue;
            }
            let mut bytes = whole.clone();
            bytes[at] ^= 1 << bit;
            let what = format!("byte {at} bit {bit}");
            // A trace with one wrong bit can still be opened.
            let trace = open(&bytes).unwrap_or_else(|error| panic!("{what}: {error}"));
            assert_eq!(trace.meta(), good.meta(), "{what}");
            let now = found(&trace);
            let missing: Vec<_> = events
                .iter()
                .filter(|(number, _)| !now.frames.contains_key(number))
                .collect();
            assert!(missing.len() <= 1, "{what}: costs {missing:?}");
            for (number, frame) in &now.frames {
                assert_eq!(&events[number], frame, "{what}: frame {number} has changed");
            }
            let (damage, file_end) = (trace.damage(), trace.file_end());
            assert!(
                !damage.is_empty() || *file_end != End::Complete,
                "{what} is not noticed"
            );
            let near = |offset: u64| offset <= at as u64;
            match file_end {
                End::Complete => assert!(damage.iter().any(|damage| near(damage.offset)), "{what}"),
                End::Truncated { offset, .. } => assert!(near(*offset), "{what}"),
            }
            // Every missing event must lie within the times of a loss that is reported for its stream.
            for (_, (stream, lost)) in missing {
                let time = |event: &Event| match event {
                    Event::Sched(event) => event.time.0,
                    Event::Life(event) => event.time.0,
                };
                for event in lost {
                    let inside = now.gaps.iter().any(|(gap, since, until)| {
                        gap == stream && (*since..=*until).contains(&time(event))
                    });
                    assert!(inside, "{what}: {event:?} is not in {:?}", now.gaps);
                }
            }
            // A loss ends at the latest with the last event or with the end of the recording (which the summary has),
            // whichever is later.
            let latest = end.max(summary().end.0);
            assert!(now
                .gaps
                .iter()
                .all(|(_, since, until)| since <= until && *until <= latest));
        }
    }
}

/// A frame of CPU 0 from the middle of an undamaged trace.
fn middle(trace: &Trace) -> FrameInfo {
    let of = |frame: &&FrameInfo| frame.stream == Stream::Cpu(CpuId(0));
    let frames: Vec<_> = trace.frames().iter().filter(of).collect();
    *frames[frames.len() / 2]
}

#[test]
fn a_damaged_frame_costs_that_frame_also_without_an_index() {
    let whole = small();
    let good = open(&whole).unwrap();
    let events = found(&good).frames;
    let frame = middle(&good);
    let (from, to) = (frame.offset as usize, (frame.offset + frame.bytes) as usize);
    // A trace that ends here has neither summary nor index nor trailer, as if the recorder had been killed.
    let cut = good
        .frames()
        .last()
        .map(|last| (last.offset + last.bytes) as usize)
        .unwrap();
    let mut damaged: Vec<(String, Vec<u8>)> = Vec::new();
    for (name, end) in [("whole", whole.len()), ("cut", cut)] {
        let mut zeros = whole[..end].to_vec();
        zeros[from..to].fill(0);
        damaged.push((format!("{name}: zeros"), zeros));
        let mut length = whole[..end].to_vec();
        length[from + 4] ^= 0x55;
        damaged.push((format!("{name}: length of the header"), length));
        let mut gone = whole[..end].to_vec();
        gone.drain(from..to);
        damaged.push((format!("{name}: gone"), gone));
        let mut torn = whole[..end].to_vec();
        torn.drain(to - 20..to);
        damaged.push((format!("{name}: its last bytes gone"), torn));
        let mut noise = whole[..end].to_vec();
        noise.splice(from..from, b"noise".iter().chain(&SYNC).copied());
        damaged.push((format!("{name}: noise in front"), noise));
    }
    for (name, bytes) in damaged {
        let trace = open(&bytes).unwrap();
        let now = found(&trace);
        let lost: Vec<u64> = events
            .keys()
            .copied()
            .filter(|number| !now.frames.contains_key(number))
            .collect();
        if name.ends_with("noise in front") {
            assert_eq!((lost, now.gaps.len()), (vec![], 0), "{name}");
        } else {
            assert_eq!(lost, [frame.number], "{name}");
            let [(stream, since, until)] = now.gaps[..] else {
                panic!("{name}: {:?}", now.gaps)
            };
            assert_eq!(stream, frame.stream);
            assert!(since <= frame.min.0 && until >= frame.max.0, "{name}");
        }
        assert!(
            !trace.damage().is_empty() || trace.end() != &End::Complete || !now.gaps.is_empty(),
            "{name}"
        );
        assert!(
            now.frames
                .iter()
                .all(|(number, frame)| events[number] == *frame),
            "{name}"
        );
    }
}

#[test]
fn the_last_frame_of_a_stream_leaves_a_gap_to_the_end() {
    let whole = small();
    let good = open(&whole).unwrap();
    for stream in [
        Stream::Cpu(CpuId(0)),
        Stream::Cpu(CpuId(1)),
        Stream::Lifecycle,
        Stream::Recorder,
    ] {
        let of = |frame: &&FrameInfo| frame.stream == stream;
        let last = good.frames().iter().rfind(of).unwrap();
        let before: Vec<_> = good.frames().iter().filter(of).collect();
        let before = before[before.len() - 2];
        let index = good
            .frames()
            .last()
            .map(|last| last.offset + last.bytes)
            .unwrap();
        let mut bytes = whole.clone();
        let (from, to) = (last.offset as usize, (last.offset + last.bytes) as usize);
        bytes[from..to].fill(0xee);
        // The trace is also cut off after its summary, so it has no index, which would show the damaged frame's stream.
        let (summary, len) = Header::decode(&whole[index as usize..], id(&whole)).unwrap();
        let tail = index as usize + len + summary.payload as usize + 5;
        bytes.truncate(tail);
        let trace = open(&bytes).unwrap();
        let now = found(&trace);
        let (_, since, until) = now.gaps.iter().find(|gap| gap.0 == stream).unwrap();
        // The reported loss begins at the end of the stream's previous frame. The lost frame may begin with events that
        // are earlier than the last event of that previous frame, but no header shows the times of these events.
        assert!(*since <= last.min.max(before.max).0, "{stream:?}");
        let end = good.frames().iter().map(|frame| frame.max.0).max().unwrap();
        assert!(
            *until >= end.max(last.max.0) || stream == Stream::Recorder,
            "{stream:?} {until} {end}"
        );
    }
}

#[test]
fn what_a_later_version_adds_is_skipped_and_counted() {
    let whole = small();
    let good = open(&whole).unwrap();
    let id = id(&whole);
    let first = good.frames()[0];
    // A frame of an unknown type takes the place of the first frame with events. The number of the unknown frame does
    // not matter, and an index is not needed, because the trace has no trailer.
    let mut bytes = whole[..first.offset as usize].to_vec();
    let payload = b"from the future";
    let header = Header {
        kind: 77,
        number: first.number,
        payload: payload.len() as u64,
        crc: crc32fast::hash(payload),
        ..Header::default()
    };
    header.encode(id, &mut bytes);
    bytes.extend_from_slice(payload);
    let trace = open(&bytes).unwrap();
    assert_eq!((trace.unknown().frames, trace.damage()), (1, &[][..]));
    // The reader accepts other minor versions (byte 10) and refuses other major versions (byte 8), older and newer
    // ones.
    for (at, value, ok) in [(10, 9, true), (8, 2, false), (8, 4, false)] {
        let mut bytes = whole.clone();
        bytes[at] = value;
        let sum = crc32fast::hash(&bytes[..12]);
        bytes[12..16].copy_from_slice(&sum.to_le_bytes());
        match open(&bytes) {
            Ok(trace) => assert!(ok && trace.minor_version() == 9),
            Err(Error::Version { found, supported }) => {
                assert!(!ok && (found, supported) == (value.into(), 3))
            }
            Err(error) => panic!("{error}"),
        }
    }
    assert_eq!(kind::CUT, 6, "types are never renumbered");
}

#[test]
fn what_a_later_minor_version_adds_anywhere_is_passed_over() {
    let trace = open(&pieces::later()).unwrap();
    assert_eq!(trace.minor_version(), 9);
    assert_eq!(trace.damage(), &[]);
    assert_eq!(trace.summary().unwrap().end, Ktime(1000));
    let of = |frames, events, fields| Unknown {
        frames,
        events,
        fields,
    };
    assert_eq!(trace.unknown(), of(1, 0, 2));
    let mut events = Vec::new();
    // The frame is read twice, but its parts that this version does not know must count only once.
    for _ in 0..2 {
        trace.read_life(&trace.frames()[0], &mut events).unwrap();
        let known = LifeEvent {
            time: Ktime(500),
            cpu: None,
            kind: LifeKind::Watermark,
        };
        assert_eq!(events, [known]);
        assert_eq!(trace.unknown(), of(1, 1, 3));
    }
}

#[test]
fn a_file_of_headers_only_is_refused_fast() {
    // Each header announces a large payload, which has a wrong checksum or extends beyond the end of the file.
    let whole = small();
    let id = id(&whole);
    let first = open(&whole).unwrap().frames()[0].offset as usize;
    for payload in [1 << 20, 16 << 20] {
        let mut bytes = whole[..first].to_vec();
        for number in 1..70_000 {
            let header = Header {
                kind: kind::SCHED,
                number,
                seq: number,
                payload,
                events: 5,
                ..Header::default()
            };
            header.encode(id, &mut bytes);
        }
        bytes.resize(bytes.len() + (17 << 20), 0);
        let begin = cpu_time();
        match open(&bytes) {
            Ok(trace) => assert!(trace.frames().is_empty()),
            Err(error) => assert!(matches!(
                error,
                Error::Frame {
                    fault: Fault::Limit { .. },
                    ..
                }
            )),
        }
        let spent = (cpu_time() - begin).as_secs_f64();
        assert!(spent < 5.0, "{spent} s for {} bytes", bytes.len());
    }
}

#[test]
fn a_file_that_shrinks_while_open_gives_errors() {
    use std::io::Write as _;
    let whole = small();
    let mut file = tempfile::tempfile().unwrap();
    file.write_all(&whole).unwrap();
    let trace = Trace::open(Source::file(file.try_clone().unwrap()).unwrap()).unwrap();
    let half = trace.frames()[trace.frames().len() / 2].offset;
    file.set_len(half + 3).unwrap();
    for frame in trace.frames() {
        assert_eq!(frame_events(&trace, frame).is_ok(), frame.offset < half);
    }
}

#[test]
fn damage_costs_one_frame_of_a_large_trace() {
    let whole = write(&recording(300, 2000));
    let trace = open(&whole).unwrap();
    let frames = trace.frames().to_vec();
    for at in [0, 1, frames.len() / 2, frames.len() - 1] {
        let frame = &frames[at];
        let mut damaged = whole.clone();
        damaged[(frame.offset + frame.bytes - 1) as usize] ^= 4;
        let trace = open(&damaged).unwrap();
        let numbers: Vec<u64> = trace.damage().iter().map(|d| d.frame).collect();
        assert_eq!(numbers, [frame.number]);
        assert_eq!(trace.frames().len(), frames.len() - 1);
        assert_eq!(trace.gaps().len(), 1);
    }
}
