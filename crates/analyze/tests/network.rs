//! Connections and DNS queries are what they were, however late their events are written: none
//! is closed before its connect or accept, none is answered before it was sent.
#![allow(clippy::unwrap_used, clippy::indexing_slicing)] // of our own files, in a test

use std::sync::atomic::{AtomicU32, Ordering};

use proptest::prelude::*;
use proptest::test_runner::TestRunner;
use tr_analyze::model::{Analysis, ThreadIx};
use tr_analyze::{analyze, Options};
use tr_format::event::Tgid;
use tr_format::reader::Trace;
use tr_format::source::Source;
use tr_sim::network::{self, Question, Truth};
use tr_sim::recording::Recording;
use tr_sim::strategy::{self, Case};

/// The analysis of a recording with the case's late writes, which `late` counts.
fn analyzed(case: &Case, recording: &mut Recording, late: &AtomicU32) -> Analysis {
    case.plan.apply(recording);
    late.fetch_add(network::is_late(&recording.life).into(), Ordering::Relaxed);
    let file = recording.to_file(&case.cut).unwrap();
    let trace = Trace::open(Source::bytes(file)).unwrap();
    analyze(&trace, &Options::default())
}

/// A thread's process; 0: there is none.
fn process(analysis: &Analysis, thread: Option<ThreadIx>) -> Tgid {
    thread
        .map(|ix| analysis.process(analysis.thread(ix).process).pid)
        .unwrap_or_default()
}

#[test]
fn late_writes_change_no_connection() {
    let late = AtomicU32::new(0);
    let mut runner = TestRunner::new(strategy::cases(100));
    let cases = (strategy::lossless(200_000_000), any::<u64>());
    let ran = runner.run(&cases, |(case, seed)| {
        let (mut recording, _) = Recording::record(&case.config);
        let mut truth = network::connect(&mut recording, 200, seed);
        let analysis = analyzed(&case, &mut recording, &late);
        let found = analysis.connections.iter().map(|it| Truth {
            tgid: process(&analysis, it.thread),
            accepted: it.accepted,
            begun: it.begun,
            established: it.established,
            closed: it.closed,
            bytes: it.bytes,
            remote: it.remote,
        });
        let mut found: Vec<Truth> = found.collect();
        for it in &found {
            let after = [it.established, it.closed];
            prop_assert!(after.iter().flatten().all(|at| *at >= it.begun), "{:?}", it);
        }
        // Those that began after the span's end are no part of it.
        truth.retain(|it| it.begun < analysis.end);
        for it in &mut truth {
            it.established = it.established.filter(|at| *at <= analysis.end);
            let closed = it.closed.is_some_and(|at| at <= analysis.end);
            (it.closed, it.bytes) = (it.closed.filter(|_| closed), it.bytes.filter(|_| closed));
        }
        let key = |it: &Truth| (it.begun, it.tgid, it.bytes, it.closed);
        truth.sort_by_key(key);
        found.sort_by_key(key);
        prop_assert_eq!(found, truth);
        Ok(())
    });
    ran.unwrap();
    assert!(late.into_inner() > 10, "hardly any late write");
}

#[test]
fn late_writes_change_no_query() {
    let late = AtomicU32::new(0);
    let mut runner = TestRunner::new(strategy::cases(100));
    let cases = (strategy::lossless(200_000_000), any::<u64>());
    let ran = runner.run(&cases, |(case, seed)| {
        let (mut recording, _) = Recording::record(&case.config);
        let mut truth = network::ask(&mut recording, 200, seed);
        let analysis = analyzed(&case, &mut recording, &late);
        let found = analysis.lookups.iter().map(|it| Question {
            tgid: process(&analysis, it.thread),
            asked: it.asked,
            answered: it.answered,
            name: it.query.name.to_vec(),
            code: it.code,
        });
        let mut found: Vec<Question> = found.collect();
        for it in &found {
            prop_assert!(it.answered.is_none_or(|at| at >= it.asked), "{:?}", it);
        }
        truth.retain(|it| it.asked < analysis.end);
        for it in &mut truth {
            let inside = it.answered.is_some_and(|at| at <= analysis.end);
            (it.answered, it.code) = (it.answered.filter(|_| inside), it.code.filter(|_| inside));
        }
        let key = |it: &Question| (it.asked, it.tgid, it.name.clone(), it.answered);
        truth.sort_by_key(key);
        found.sort_by_key(key);
        prop_assert_eq!(found, truth);
        Ok(())
    });
    ran.unwrap();
    assert!(late.into_inner() > 10, "hardly any late write");
}
