//! Holds FORMAT.md to the code: its numbers, and its worked example.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing)]

use tr_format::event::{Ktime, SchedEvent, SchedKind, Tid};
use tr_format::frame;
use tr_format::reader::{End, Trace};
use tr_format::sched::SchedBlock;
use tr_format::source::Source;

const SPEC: &str = include_str!("../FORMAT.md");

fn example() -> Vec<u8> {
    let (_, rest) = SPEC.split_once("```hex\n").expect("the example");
    let (hex, _) = rest.split_once("```").expect("the example's end");
    hex.split_whitespace()
        .map(|byte| u8::from_str_radix(byte, 16).expect("two hex digits"))
        .collect()
}

#[test]
fn the_example_decodes_to_the_events_that_it_names() {
    let trace = Trace::open(Source::bytes(example())).unwrap();
    assert_eq!(trace.meta().start, Ktime(1000));
    assert!(trace.damage().is_empty());
    assert!(matches!(trace.end(), End::Truncated { frame: 2, .. }));
    let frames = trace.frames();
    assert_eq!(frames.len(), 1);
    assert_eq!((frames[0].min, frames[0].max), (Ktime(1000), Ktime(1250)));
    let mut block = SchedBlock::default();
    trace.read_sched(&frames[0], &mut block).unwrap();
    let (switch, waking) = (
        SchedKind::Switch {
            prev: Tid(0),
            next: Tid(7),
            prev_state: 0,
            preempt: false,
            iowait: false,
        },
        SchedKind::Waking {
            waker: Tid(7),
            wakee: Tid(8),
            irq: false,
            new: false,
            vfork: false,
        },
    );
    let expected = [(1000, switch), (1250, waking)].map(|(time, kind)| SchedEvent {
        time: Ktime(time),
        kind,
    });
    assert_eq!(block.iter().collect::<Vec<_>>(), expected);
}

#[test]
fn the_limits_and_sizes_are_those_of_the_code() {
    for (name, value) in [
        ("MAJOR", u64::from(frame::MAJOR)),
        ("MINOR", u64::from(frame::MINOR)),
        ("FILE_HEADER", frame::FILE_HEADER as u64),
        ("FRAME_HEADER", frame::FRAME_HEADER as u64),
        ("TRAILER", frame::TRAILER as u64),
        ("MOST_PAYLOAD", u64::from(frame::MOST_PAYLOAD)),
        ("MOST_RAW", u64::from(frame::MOST_RAW)),
        ("MOST_EVENTS", u64::from(frame::MOST_EVENTS)),
    ] {
        let row = format!("| {name} | {value} |");
        assert!(SPEC.contains(&row), "FORMAT.md has no row {row}");
    }
}
