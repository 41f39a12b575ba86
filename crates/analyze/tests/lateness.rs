//! Compares the reported `commit_delay` with the commit delays that the simulator made.
#![allow(clippy::unwrap_used, clippy::expect_used)] // of our own files, in a test

use proptest::prelude::*;
use tr_analyze::{analyze, Options};
use tr_format::event::{Ktime, LifeKind};
use tr_format::reader::Trace;
use tr_format::source::Source;
use tr_sim::blocks::Order;
use tr_sim::recording::{Recording, Written};
use tr_sim::strategy;

/// Two maxima over the events of a ring buffer: the longest commit delay (from an event's time stamp until it was
/// written), and the longest commit delay that the trace proves. A proof is a watermark, or an event with a later time
/// stamp that was written first. Each of `marks` has the time when a watermark was written, and the time before which
/// it declares all events written.
fn delays<E>(
    ring: &[Written<E>],
    time: impl Fn(&E) -> Ktime,
    marks: &[(u64, Ktime)],
) -> (u64, u64) {
    let (mut longest, mut shows, mut youngest) = (0, 0, Ktime(0));
    for written in ring {
        let stamp = time(&written.event);
        longest = longest.max(written.at.saturating_sub(stamp.0));
        for (_, mark) in marks.iter().filter(|(at, _)| *at <= written.at) {
            shows = shows.max(mark.since(stamp));
        }
        shows = shows.max(youngest.since(stamp));
        youngest = youngest.max(stamp);
    }
    (longest, shows)
}

proptest! {
    #![proptest_config(strategy::cases(60))]

    #[test]
    fn the_commit_delay_is_what_the_file_proves_and_no_more(mut case in strategy::lossless(2_000_000_000)) {
        // A watermark proves that an event was written late, after events with later time stamps, only if the event
        // comes after the watermark in the file. So the events stay in the order of writing.
        case.cut.order = Order::Written;
        let (mut recording, _) = Recording::record(&case.config);
        case.plan.apply(&mut recording);
        let marks: Vec<(u64, Ktime)> = recording
            .recorder
            .iter()
            .filter(|written| written.event.kind == LifeKind::Watermark)
            .map(|written| (written.at, written.event.time))
            .collect();
        let mut rings: Vec<(u64, u64)> = recording
            .cpus
            .iter()
            .map(|ring| delays(ring, |event| event.time, &marks))
            .collect();
        rings.push(delays(&recording.life, |event| event.time, &marks));
        let longest = rings.iter().map(|ring| ring.0).max().unwrap_or(0);
        let shows = rings.iter().map(|ring| ring.1).max().unwrap_or(0);

        let file = recording.to_file(&case.cut).expect("a file");
        let trace = Trace::open(Source::bytes(file)).expect("a trace");
        let quality = analyze(&trace, &Options::default()).quality;
        prop_assert_eq!(quality.commit_delay, shows);
        prop_assert!(quality.commit_delay <= longest);
        prop_assert!(quality.largest_inversion <= quality.commit_delay);
        if longest == 0 {
            prop_assert_eq!(quality.commit_delay, 0);
        }
    }
}
