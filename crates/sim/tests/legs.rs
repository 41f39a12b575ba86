//! A trace that is read in legs, against the same trace read in one.
#![allow(clippy::unwrap_used, clippy::expect_used)] // of our own traces, in a test

use proptest::prelude::*;
use tr_analyze::{analyze, Options};
use tr_format::reader::Trace;
use tr_format::source::Source;
use tr_format::writer::{Often, Writer};
use tr_sim::recording::Recording;
use tr_sim::strategy;

/// Checkpoints at every second mark of progress.
fn set(writer: &mut Writer<&mut Vec<u8>>) {
    writer.set_checkpoints(Often {
        events: 1,
        bytes: 0,
    });
}

#[test]
fn legs_make_no_difference() {
    let cases = (
        strategy::lossless(3_000_000),
        prop_oneof![1..20u64, 20..400u64],
    );
    let mut runner = proptest::test_runner::TestRunner::new(strategy::cases(1500));
    let done = runner.run(&cases, |(case, events)| {
        let (mut recording, _) = Recording::record(&case.config);
        case.plan.apply(&mut recording);
        let bytes = recording.to_file_with(&case.cut, set).expect("a file");
        let trace = Trace::open(Source::bytes(bytes)).expect("a trace");
        let legs_of = |events| Options {
            leg_events: Some(events),
            ..Options::default()
        };
        let whole = format!("{:#?}", analyze(&trace, &legs_of(u64::MAX)));
        let legs = format!("{:#?}", analyze(&trace, &legs_of(events)));
        if whole != legs {
            let differ = |(a, b): &(&str, &str)| a != b;
            let first = whole
                .lines()
                .zip(legs.lines())
                .position(|pair| differ(&pair));
            let near = |text: &str| {
                let from = first.unwrap_or(0).saturating_sub(40);
                text.lines()
                    .skip(from)
                    .take(44)
                    .collect::<Vec<_>>()
                    .join("\n")
            };
            let moments: Vec<_> = trace.checkpoints().collect();
            return Err(TestCaseError::fail(format!(
                "legs of {events} events, {moments:?}: whole\n{}\nlegs\n{}\n{}",
                near(&whole),
                near(&legs),
                case.draw(400)
            )));
        }
        Ok(())
    });
    done.unwrap_or_else(|error| panic!("{error}"));
}
