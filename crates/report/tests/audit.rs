//! The kernel's totals contradict an analysis of which a CPU's events are missing.
#![allow(clippy::unwrap_used, clippy::indexing_slicing)] // of simulated recordings

use tr_analyze::{analyze, Options};
use tr_format::reader::Trace;
use tr_format::source::Source;
use tr_report::facts::audit::{doubts, Doubt};
use tr_sim::blocks::{Cut, Order};
use tr_sim::config::Config;
use tr_sim::recording::Recording;
use tr_sim::scenario;

fn doubted(recording: &Recording) -> Vec<Doubt> {
    let cut = Cut {
        largest: 100,
        order: Order::Written,
        seed: 1,
    };
    let file = recording.to_file(&cut).unwrap();
    let trace = Trace::open(Source::bytes(file)).unwrap();
    doubts(&analyze(&trace, &Options::default()))
}

/// Unless most of the time is unknown anyway.
#[test]
fn a_cpu_without_events_is_noticed() {
    let mut noticed = 0;
    for seed in 0..8 {
        let world = scenario::build(4, 12, 3);
        let mut config = Config::new(world, 2, 3_000_000_000);
        config.seed = seed;
        let (mut recording, _) = Recording::record(&config);
        assert_eq!(doubted(&recording), Vec::new(), "seed {seed}");
        // As if it had come online during the recording.
        recording.cpus[1].clear();
        let doubts = doubted(&recording);
        let waiting = doubts.iter().find(|doubt| doubt.figure == "run_queue");
        let Some(waiting) = waiting else { continue };
        noticed += 1;
        assert!(waiting.events_ns > waiting.kernel_ns);
        let text = waiting.text();
        assert!(
            text.contains("of run-queue wait, the events show"),
            "{text}"
        );
    }
    assert!(noticed >= 6, "{noticed} of 8");
}
