//! Checks the summary of a trace against the analysis of its events.
#![allow(clippy::unwrap_used, clippy::expect_used)] // of our own files, in a test

use std::collections::BTreeMap;

use proptest::prelude::*;
use tr_analyze::{analyze, Options};
use tr_format::outline::Outline;
use tr_format::reader::Trace;
use tr_format::source::Source;
use tr_sim::recording::Recording;
use tr_sim::strategy;

proptest! {
    #![proptest_config(strategy::cases(100))]

    #[test]
    fn the_summary_says_what_an_analysis_finds(
        case in strategy::anything(1_000_000_000)
    ) {
        let (mut recording, _) = Recording::record(&case.config);
        case.plan.apply(&mut recording);
        let file = recording.to_file(&case.cut).expect("a file");
        let outline = Outline::read(&Source::bytes(file.clone())).unwrap();
        let trace = Trace::open(Source::bytes(file)).expect("a trace");
        prop_assert_eq!(outline.is_some(), trace.summary().is_some());
        if let Some(outline) = outline {
            prop_assert_eq!(Some(&outline.summary), trace.summary());
            prop_assert_eq!(&outline.meta, trace.meta());
            prop_assert_eq!(outline.bytes, trace.bytes());
            let tally = outline.tally;
            let analysis = analyze(&trace, &Options::default());
            prop_assert_eq!(tally.events, analysis.events);
            prop_assert_eq!(tally.frames, trace.frames().len() as u64);
            let quality = &analysis.quality;
            prop_assert_eq!(tally.largest_inversion, quality.largest_inversion);
            let latest = tally.commit_delay.max(tally.largest_inversion);
            prop_assert_eq!(latest, quality.commit_delay);
            let mut lost = BTreeMap::new();
            for span in &quality.lost {
                *lost.entry(span.stream).or_insert(0) += span.count.unwrap_or(0);
            }
            prop_assert_eq!(tally.lost, lost);
        }
    }
}
