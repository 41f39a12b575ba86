//! Checks that the memory of an analysis does not grow with the number of events.
#![allow(clippy::expect_used)] // in a test

use std::alloc::System;

use stats_alloc::{Region, Stats, StatsAlloc, INSTRUMENTED_SYSTEM};
use tr_analyze::{analyze, Options};
use tr_format::reader::Trace;
use tr_format::source::Source;
use tr_sim::config::{Config, Follow};
use tr_sim::scenario;

#[global_allocator]
static ALLOCATOR: &StatsAlloc<System> = &INSTRUMENTED_SYSTEM;

/// The allocations of the analysis of a trace with at least `events` events.
fn allocated(events: u64) -> Stats {
    let mut config = Config::new(scenario::hackbench(2, 5), 4, u64::MAX >> 12);
    config.follow = Follow::All;
    config.max_events = events;
    let (file, _, _) = tr_sim::file::record_to(&config, Vec::new()).expect("a recording");
    let trace = Trace::open(Source::bytes(file)).expect("a trace");
    let pool = rayon::ThreadPoolBuilder::new().num_threads(1).build();
    pool.expect("a thread").install(|| {
        // The first analysis fills buffers that later analyses use again, so only the second one is measured.
        analyze(&trace, &Options::default());
        let region = Region::new(ALLOCATOR);
        let analysis = analyze(&trace, &Options::default());
        let change = region.change();
        assert!(analysis.events.total() >= events);
        change
    })
}

/// The analysis of twice as many events of the same tasks needs a few more allocations for each batch of events, and no
/// more memory.
#[test]
fn memory_does_not_grow_with_events() {
    let (some, twice) = (allocated(600_000), allocated(1_200_000));
    let more = twice.allocations.saturating_sub(some.allocations);
    assert!(
        more < 600_000 / 500,
        "{more} allocations, {some:?} {twice:?}"
    );
    let bytes = |stats: &Stats| stats.bytes_allocated;
    assert!(
        bytes(&twice) < bytes(&some) + (4 << 20),
        "{some:?} {twice:?}"
    );
}
