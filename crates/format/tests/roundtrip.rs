//! A trace written and read again, whole, cut and damaged.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing)] // a test fails by panicking

use tr_format::event::*;
use tr_format::meta::{Metadata, Summary};
use tr_format::reader::{End, Trace};
use tr_format::sched::SchedBlock;
use tr_format::source::Source;
use tr_format::writer::Writer;

/// Everything that can be read from a trace.
#[derive(Debug, Default, PartialEq)]
struct Events {
    sched: Vec<(Stream, SchedEvent)>,
    life: Vec<(Stream, LifeEvent)>,
    unreadable: usize,
}

fn read(trace: &Trace) -> Events {
    let mut events = Events::default();
    let mut block = SchedBlock::default();
    for frame in trace.frames() {
        let mut life = Vec::new();
        let result = match frame.stream {
            Stream::Cpu(_) => trace.read_sched(frame, &mut block),
            _ => trace.read_life(frame, &mut life),
        };
        if result.is_err() {
            events.unreadable += 1;
            continue;
        }
        if matches!(frame.stream, Stream::Cpu(_)) {
            events.sched.extend(block.iter().map(|e| (frame.stream, e)));
        }
        events
            .life
            .extend(life.into_iter().map(|e| (frame.stream, e)));
    }
    events
}

fn life_events() -> Vec<LifeEvent> {
    let argv = Argv::from_args(["cc", "-c", "a b.c"]);
    let at = |time: u64, kind| LifeEvent {
        time: Ktime(time),
        cpu: Some(CpuId(1)),
        kind,
    };
    vec![
        at(
            100,
            LifeKind::Fork(Fork {
                parent_tid: Tid(1),
                parent_tgid: Tgid(1),
                tid: Tid(7),
                tgid: Tgid(7),
                start_time: Ktime(99),
                ns_tid: Tid(3),
                cgroup: CgroupId(5),
                comm: Comm::new(b"make"),
            }),
        ),
        at(
            120,
            LifeKind::Exec(Exec {
                tid: Tid(7),
                tgid: Tgid(7),
                old_tid: Tid(7),
                comm: Comm::new(b"cc"),
                filename: b"/usr/bin/cc"[..].into(),
                argv: argv.clone(),
                cgroup: CgroupId(5),
            }),
        ),
        at(
            110,
            LifeKind::Rename(Rename {
                tid: Tid(7),
                tgid: Tgid(7),
                comm: Comm::new(b"x\xff"),
            }),
        ),
        at(
            130,
            LifeKind::CgroupPath(CgroupPath {
                id: CgroupId(5),
                path: b"/a"[..].into(),
            }),
        ),
        at(
            131,
            LifeKind::CgroupMove(CgroupMove {
                tid: Tid(7),
                tgid: Tgid(7),
                cgroup: CgroupId(6),
            }),
        ),
        at(
            150,
            LifeKind::Exit(Exit {
                tid: Tid(7),
                tgid: Tgid(7),
                status: 0x100,
                group_dead: true,
                group_status: 0x100,
                utime: 5,
                read_bytes: Some(0),
                write_bytes: None,
                ..Exit::default()
            }),
        ),
        at(
            160,
            LifeKind::Final(Final {
                tid: Tid(7),
                sum_exec_runtime: 40,
                nvcsw: 3,
                nivcsw: 1,
            }),
        ),
        LifeEvent {
            time: Ktime(90),
            cpu: None,
            kind: LifeKind::Snapshot(Snapshot {
                tid: Tid(1),
                tgid: Tgid(1),
                parent_tgid: Tgid(0),
                start_time: Ktime(1),
                ns_tid: Tid(1),
                cgroup: CgroupId(5),
                comm: Comm::new(b"init"),
                argv,
                state: 1,
                on_cpu: false,
                kthread: true,
                followed: true,
                sum_exec_runtime: 9,
            }),
        },
        LifeEvent {
            time: Ktime(140),
            cpu: None,
            kind: LifeKind::Lost(Lost {
                stream: Stream::Cpu(CpuId(0)),
                count: Some(4),
                until: Ktime(145),
                cause: LossCause::RingFull,
            }),
        },
        LifeEvent {
            time: Ktime(141),
            cpu: None,
            kind: LifeKind::Clock(Clock { boot: 5, real: 6 }),
        },
        LifeEvent {
            time: Ktime(170),
            cpu: None,
            kind: LifeKind::Progress,
        },
        LifeEvent {
            time: Ktime(171),
            cpu: None,
            kind: LifeKind::Mark(Mark {
                name: b"here"[..].into(),
            }),
        },
    ]
}

fn switch(time: u64, prev: u32, next: u32) -> SchedEvent {
    let kind = SchedKind::Switch {
        prev: Tid(prev),
        next: Tid(next),
        prev_state: 1,
        preempt: false,
        iowait: true,
    };
    SchedEvent {
        time: Ktime(time),
        kind,
    }
}

/// A trace of several frames of every stream.
fn sample() -> (Vec<u8>, Events) {
    let meta = Metadata {
        host: "here".into(),
        start: Ktime(80),
        ..Metadata::default()
    };
    let mut writer = Writer::new(Vec::new(), &meta).unwrap();
    let mut events = Events::default();
    for round in 0..4u64 {
        for cpu in 0..2u16 {
            for i in 0..20u64 {
                let event = switch(
                    100 + round * 1000 + i * 7,
                    (i % 3) as u32,
                    ((i + 1) % 3) as u32,
                );
                events.sched.push((Stream::Cpu(CpuId(cpu)), event));
                writer.sched(CpuId(cpu), event).unwrap();
            }
        }
        for mut event in life_events() {
            event.time.0 += round * 1000;
            let stream = if event.cpu.is_some() {
                Stream::Lifecycle
            } else {
                Stream::Recorder
            };
            events.life.push((stream, event.clone()));
            writer.life(stream, event).unwrap();
        }
        writer.flush().unwrap();
    }
    let summary = Summary {
        end: Ktime(5000),
        status: Some(3),
        ..Summary::default()
    };
    let (bytes, written) = writer.finish(&summary).unwrap();
    assert_eq!(written.bytes, bytes.len() as u64);
    assert_eq!(written.events(), 4 * (40 + life_events().len() as u64));
    (bytes, events)
}

fn open(bytes: &[u8]) -> Result<Trace, tr_format::Error> {
    Trace::open(Source::bytes(bytes.to_vec()))
}

fn sorted(mut events: Events) -> Events {
    events
        .life
        .sort_by_key(|(stream, event)| (*stream, event.time));
    events
}

#[test]
fn what_was_written_is_read() {
    let (bytes, events) = sample();
    let trace = open(&bytes).unwrap();
    assert_eq!(trace.meta().host, "here");
    assert_eq!(trace.summary().and_then(|s| s.status), Some(3));
    assert_eq!(*trace.end(), End::Complete);
    assert_eq!(sorted(read(&trace)), sorted(events));
    assert!(trace.gaps().is_empty() && trace.damage().is_empty());
}

#[test]
fn without_its_index_a_trace_reads_the_same() {
    let (mut bytes, events) = sample();
    let last = bytes.len() - 1;
    bytes[last] ^= 1;
    let trace = open(&bytes).unwrap();
    assert_eq!(sorted(read(&trace)), sorted(events));
    assert_eq!(trace.summary().and_then(|s| s.status), Some(3));
}

#[test]
fn a_trace_cut_anywhere_gives_its_complete_frames() {
    let (bytes, _) = sample();
    let whole = open(&bytes).unwrap();
    let first = whole.frames()[0].offset as usize;
    for cut in 0..bytes.len() {
        let trace = match open(&bytes[..cut]) {
            Ok(trace) => trace,
            Err(_) => {
                assert!(cut < first, "cut at {cut}");
                continue;
            }
        };
        let complete: Vec<_> = whole
            .frames()
            .iter()
            .filter(|f| f.offset + f.bytes <= cut as u64)
            .map(|f| f.offset)
            .collect();
        let found: Vec<_> = trace.frames().iter().map(|f| f.offset).collect();
        assert_eq!(found, complete, "cut at {cut}");
        assert_eq!(read(&trace).unreadable, 0);
        if trace.summary().is_none() {
            let End::Truncated { offset, .. } = trace.end() else {
                panic!("cut at {cut} is not noticed")
            };
            assert!(*offset <= cut as u64);
        }
    }
}

#[test]
fn no_flipped_byte_changes_an_event_unnoticed() {
    let (bytes, events) = sample();
    let events = sorted(events);
    for at in 0..bytes.len() {
        for flip in [0x01, 0x80, 0xff] {
            let mut bad = bytes.clone();
            bad[at] ^= flip;
            let Ok(trace) = open(&bad) else { continue };
            let found = sorted(read(&trace));
            let noticed = found.unreadable > 0
                || !trace.damage().is_empty()
                || !trace.gaps().is_empty()
                || *trace.end() != End::Complete;
            assert!(noticed || found == events, "byte {at} ^ {flip:#x}");
            // What is read is always part of what was written.
            assert!(
                found.sched.iter().all(|e| events.sched.contains(e)),
                "byte {at}"
            );
            assert!(
                found.life.iter().all(|e| events.life.contains(e)),
                "byte {at}"
            );
        }
    }
}

#[test]
fn a_damaged_frame_in_the_middle_costs_that_frame_and_says_when() {
    let (bytes, _) = sample();
    let whole = open(&bytes).unwrap();
    let victim = whole
        .frames()
        .iter()
        .filter(|f| f.stream == Stream::Cpu(CpuId(1)))
        .nth(1)
        .copied()
        .unwrap();
    // Its header, so that its length is lost too; and the trailer, so that the index is.
    let mut bad = bytes.clone();
    bad[victim.offset as usize + 13] ^= 0x40;
    let last = bad.len() - 1;
    bad[last] ^= 1;
    let trace = open(&bad).unwrap();
    assert_eq!(trace.frames().len(), whole.frames().len() - 1);
    assert_eq!(
        trace.damage().len(),
        2,
        "the frame and the index: {:?}",
        trace.damage()
    );
    let [gap] = trace.gaps() else {
        panic!("{:?}", trace.gaps())
    };
    let LifeKind::Lost(lost) = &gap.kind else {
        panic!()
    };
    assert_eq!(lost.stream, victim.stream);
    assert!(gap.time <= victim.min && victim.max <= lost.until);
}
