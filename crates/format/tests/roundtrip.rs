//! The reader returns every event that the writer wrote.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic
)]

mod common;

use std::io::Write as _;

use common::*;
use tr_format::event::*;
use tr_format::mask::Masked;
use tr_format::reader::{End, Trace};
use tr_format::sched::SchedBlock;
use tr_format::source::Source;
use tr_format::stack::{Function, Symbol};
use tr_format::writer::Writer;

/// Reads all events of one stream of a trace, for example of one CPU.
fn read(trace: &Trace, stream: Stream) -> Vec<Event> {
    let mut all = Vec::new();
    let (mut block, mut events) = (SchedBlock::default(), Vec::new());
    for frame in trace.frames().iter().filter(|frame| frame.stream == stream) {
        if let Stream::Cpu(cpu) = stream {
            trace.read_sched(frame, &mut block).unwrap();
            assert_eq!(block.cpu, cpu);
            all.extend(block.iter().map(Event::Sched));
        } else {
            trace.read_life(frame, &mut events).unwrap();
            all.extend(events.iter().cloned().map(Event::Life));
        }
    }
    all
}

const STREAMS: [Stream; 4] = [
    Stream::Cpu(CpuId(0)),
    Stream::Cpu(CpuId(1)),
    Stream::Lifecycle,
    Stream::Recorder,
];

fn same(items: &[Option<Item>], trace: &Trace) {
    assert_eq!(trace.meta(), &meta());
    for stream in STREAMS {
        let (found, expected) = (read(trace, stream), of(items, stream));
        assert_eq!(found.len(), expected.len(), "{stream:?}");
        for (at, (found, expected)) in found.iter().zip(&expected).enumerate() {
            assert_eq!(found, expected, "event {at} of {stream:?}");
        }
    }
}

#[test]
fn a_recording_comes_back() {
    let items = recording(4, 500);
    let bytes = write(&items);
    let trace = Trace::open(Source::bytes(bytes.clone())).unwrap();
    assert_eq!(trace.end(), &End::Complete);
    assert_eq!((trace.damage(), trace.gaps()), (&[][..], &[][..]));
    let mut found = trace.summary().unwrap().clone();
    let tally = found.tally.take().unwrap();
    assert_eq!(found, summary());
    let there = items.iter().flatten().count() as u64;
    let switch = |item: &&Item| {
        let is = |e: &SchedEvent| matches!(e.kind, SchedKind::Switch(_));
        matches!(&item.1, Event::Sched(e) if is(e))
    };
    let switches = items.iter().flatten().filter(switch).count() as u64;
    assert_eq!(tally.events.total(), there);
    assert_eq!(tally.events.switches, switches);
    assert_eq!(tally.frames, trace.frames().len() as u64);
    same(&items, &trace);

    let mut file = tempfile::tempfile().unwrap();
    file.write_all(&bytes).unwrap();
    same(&items, &Trace::open(Source::file(file).unwrap()).unwrap());
    same(
        &items,
        &Trace::open(Source::read(&bytes[..]).unwrap()).unwrap(),
    );
}

#[test]
fn full_blocks_are_written_without_a_flush() {
    let mut dice = Dice(9);
    let events = sched(1 << 40, 100_000, 1000, &mut dice);
    let items: Vec<_> = events
        .into_iter()
        .map(|e| Some((Stream::Cpu(CpuId(1)), Event::Sched(e))))
        .collect();
    let trace = Trace::open(Source::bytes(write(&items))).unwrap();
    assert!(trace.frames().len() > 5);
    same(&items, &trace);
}

#[test]
fn extreme_values_come_back() {
    let times = [0, u64::MAX, 1, u64::MAX - 1, 1 << 63, 0, u64::MAX];
    let items: Vec<_> = times
        .iter()
        .flat_map(|time| {
            let time = Ktime(*time);
            let event = SchedEvent {
                time,
                kind: SchedKind::Switch(Switch {
                    prev: Tid(u32::MAX),
                    next: Tid(u32::MAX - 1),
                    prev_state: u16::MAX,
                    preempt: true,
                    iowait: true,
                    reason: Reason::Unknown,
                    timeout: Timeout::UNKNOWN,
                }),
            };
            let lost = Lost {
                stream: Stream::Cpu(CpuId(u16::MAX)),
                count: Some(u64::MAX - 1),
                until: Ktime(0),
                cause: LossCause::Output,
            };
            let lost = LifeEvent {
                time,
                cpu: Some(CpuId(u16::MAX)),
                kind: LifeKind::Lost(lost),
            };
            let exit = LifeEvent {
                time,
                cpu: None,
                kind: LifeKind::Exit(Exit {
                    tid: Tid(u32::MAX),
                    status: u32::MAX,
                    sum_exec_runtime: u64::MAX,
                    max_rss: u64::MAX,
                    read_bytes: Some(u64::MAX),
                    nvcsw: u64::MAX,
                    program_rss: Some(0),
                    delays: Delays {
                        run: Some(u64::MAX),
                        block: None,
                        swap: Some(0),
                    },
                    ..Exit::default()
                }),
            };
            [
                Some((Stream::Cpu(CpuId(0)), Event::Sched(event))),
                Some((Stream::Recorder, Event::Life(lost))),
                Some((Stream::Lifecycle, Event::Life(exit))),
            ]
        })
        .collect();
    same(&items, &Trace::open(Source::bytes(write(&items))).unwrap());
}

#[test]
fn a_long_argv_is_kept_and_an_endless_one_is_cut() {
    let exec = |len: usize| {
        let bytes: Vec<u8> = (0..len).map(|i| (i % 251) as u8).collect();
        let argv = Argv {
            full_len: Some(len as u32),
            bytes: bytes.into(),
        };
        let kind = LifeKind::Exec(Exec {
            tid: Tid(5),
            tgid: Tgid(5),
            old_tid: Tid(5),
            comm: Comm::new(b"x"),
            filename: (*b"/x").into(),
            argv,
            ..Exec::default()
        });
        LifeEvent {
            time: Ktime(7),
            cpu: None,
            kind,
        }
    };
    let mut writer = Writer::new(Vec::new(), &Masked::trusted(meta())).unwrap();
    for len in [2 << 20, 9 << 20, 2 << 20] {
        writer
            .life(Stream::Lifecycle, Masked::trusted(exec(len)))
            .unwrap();
    }
    let (bytes, _) = writer.finish(&Masked::trusted(summary())).unwrap();
    let trace = Trace::open(Source::bytes(bytes)).unwrap();
    let events = read(&trace, Stream::Lifecycle);
    assert_eq!(events[0], Event::Life(exec(2 << 20)));
    assert_eq!(events[2], Event::Life(exec(2 << 20)));
    let Event::Life(LifeEvent {
        kind: LifeKind::Exec(cut),
        ..
    }) = &events[1]
    else {
        panic!()
    };
    assert_eq!(
        (cut.argv.bytes.len(), cut.argv.full_len),
        (8 << 20, Some(9 << 20))
    );
}

/// The names of thousands of functions must fit into one block, because a block stores each different name once.
#[test]
fn functions_of_thousands_of_frames_are_one_block() {
    let event = |frame: u32| LifeEvent {
        time: Ktime(7),
        cpu: None,
        kind: LifeKind::Symbol(Symbol {
            frame,
            functions: [Function {
                name: format!("function {}", frame * frame % 997)
                    .into_bytes()
                    .into(),
                file: if frame.is_multiple_of(7) {
                    b"f.c".as_slice()
                } else {
                    b""
                }
                .into(),
                line: frame % 7,
            }]
            .into(),
        }),
    };
    let mut writer = Writer::new(Vec::new(), &Masked::trusted(meta())).unwrap();
    let frames = 1..6000;
    for frame in frames.clone() {
        writer
            .life(Stream::Lifecycle, Masked::trusted(event(frame)))
            .unwrap();
    }
    let (bytes, _) = writer.finish(&Masked::trusted(summary())).unwrap();
    let trace = Trace::open(Source::bytes(bytes)).unwrap();
    assert_eq!(trace.frames().len(), 1);
    let events: Vec<_> = frames.map(|frame| Event::Life(event(frame))).collect();
    assert!(read(&trace, Stream::Lifecycle) == events);
}

#[test]
fn without_events_there_is_still_a_trace() {
    let trace = Trace::open(Source::bytes(write(&[]))).unwrap();
    assert_eq!((trace.frames().len(), trace.end()), (0, &End::Complete));
}

/// Makes the fixture of a version of the format. This is done once, before the version is published.
#[test]
#[ignore = "OUT=fixtures/format/3.0.bin cargo test -p tr-trace-format fixture -- --ignored"]
fn fixture() {
    let mut config = tr_sim::config::Config::new(tr_sim::scenario::make(2, 12), 2, 30_000_000_000);
    config.follow = tr_sim::config::Follow::All;
    config.progress = 100_000_000;
    config.max_events = 3000;
    let (recording, _) = tr_sim::recording::Recording::record(&config);
    let cut = tr_sim::blocks::Cut {
        largest: 500,
        order: tr_sim::blocks::Order::Written,
        seed: 1,
    };
    let bytes = recording.to_file(&cut).unwrap();
    std::fs::write(std::env::var("OUT").unwrap(), bytes).unwrap();
}
