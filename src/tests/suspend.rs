//! Unit tests of `suspend`.

use super::*;
use tr_format::event::{Clock, Ktime, LifeEvent};
use tr_format::mask::Masked;
use tr_format::meta::{EndReason, Metadata, Options, Scope, Summary};
use tr_format::source::Source;
use tr_format::writer::Writer;

const S: u64 = 1_000_000_000;

fn clock(boot: u64) -> Clock {
    Clock { boot, real: boot }
}

/// A trace with these readings of the clocks, each as (monotonic, boot). The first reading is at its start, the last
/// one at its end.
fn trace(readings: &[(u64, u64)]) -> Trace {
    let ((first, first_boot), (last, last_boot)) = (readings[0], *readings.last().unwrap());
    let meta = Metadata {
        tool_version: "test".into(),
        host: "host".into(),
        kernel: "Linux".into(),
        machine: "x86_64".into(),
        cpus: Vec::new(),
        page_size: 4096,
        start: Ktime(first),
        start_clock: clock(first_boot),
        scope: Scope::All,
        command: Vec::new(),
        root: None,
        cwd: Vec::new(),
        states: Vec::new(),
        options: Options {
            argv_limit: 0,
            cpus: Vec::new(),
            buffer: 0,
            irq_known: true,
            allowed: None,
        },
        missing: Vec::new(),
        ci: Vec::new(),
        not_traced: None,
        origin: None,
        extras: None,
        recorder: None,
        hardware: None,
    };
    let mut writer = Writer::new(Vec::new(), &Masked::trusted(meta.clone())).unwrap();
    for (time, boot) in readings {
        let event = LifeEvent {
            time: Ktime(*time),
            cpu: None,
            kind: LifeKind::Clock(clock(*boot)),
        };
        writer
            .life(Stream::Recorder, Masked::trusted(event))
            .unwrap();
    }
    let summary = Summary {
        end: Ktime(last),
        end_clock: clock(last_boot),
        reason: EndReason::Duration,
        ..Summary::default()
    };
    let (bytes, _) = writer.finish(&Masked::trusted(summary)).unwrap();
    Trace::open(Source::read(bytes.as_slice()).unwrap()).unwrap()
}

#[test]
fn a_jump_between_the_clocks_is_a_suspend() {
    // The machine was suspended for an hour between the second and the third reading.
    let trace = trace(&[
        (5 * S, 7 * S),
        (15 * S, 17 * S),
        (25 * S, 3627 * S),
        (30 * S, 3632 * S),
    ]);
    let suspend = Suspend {
        since: Ktime(15 * S),
        until: Ktime(25 * S),
        asleep: 3600 * S,
    };
    assert_eq!(suspends(&trace), [suspend]);
}

#[test]
fn clocks_that_go_together_show_none() {
    // The recorder lost its CPU while it read the two clocks, so one pair of readings is off by 5 ms. A difference that
    // is so small does not count as a suspend.
    let trace = trace(&[
        (5 * S, 7 * S),
        (15 * S, 17 * S + 5_000_000),
        (25 * S, 27 * S),
    ]);
    assert_eq!(suspends(&trace), []);
}
