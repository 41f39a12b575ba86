//! Tests that the kernel's totals contradict an analysis in which the events of a CPU are missing.
#![allow(clippy::unwrap_used, clippy::indexing_slicing)] // of simulated recordings

use tr_analyze::model::Analysis;
use tr_analyze::{analyze, Options};
use tr_format::reader::Trace;
use tr_format::source::Source;
use tr_insight::recordings::audit::{doubts, impossible, Doubt};
use tr_sim::blocks::{Cut, Order};
use tr_sim::config::Config;
use tr_sim::recording::Recording;
use tr_sim::scenario;

fn analyzed(recording: &Recording) -> Analysis {
    let cut = Cut {
        largest: 100,
        order: Order::Written,
        seed: 1,
    };
    let file = recording.to_file(&cut).unwrap();
    let trace = Trace::open(Source::bytes(file)).unwrap();
    analyze(&trace, &Options::default())
}

fn doubted(recording: &Recording) -> Vec<Doubt> {
    doubts(&analyzed(recording))
}

/// If the events of a CPU are missing, the comparison of the events with the kernel's own sums (the audit) shows this.
/// An exception are waits in this CPU's run queue that count as unknown time because the events do not show the waking.
#[test]
fn a_cpu_without_events_is_noticed() {
    let mut noticed = 0;
    let mut unknown = 0;
    for seed in 0..8 {
        let world = scenario::build(4, 12, 3);
        let mut config = Config::new(world, 2, 3_000_000_000);
        config.seed = seed;
        let (mut recording, _) = Recording::record(&config);
        assert_eq!(doubted(&recording), Vec::new(), "seed {seed}");
        // The recording looks as if the CPU had come online only during the recording.
        recording.cpus[1].clear();
        let analysis = analyzed(&recording);
        let times = analysis.totals.times;
        if times.unknown.saturating_mul(10) >= times.sum() {
            unknown += 1;
            continue;
        }
        let doubts = doubts(&analysis);
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
    assert!(noticed + unknown >= 7, "{noticed} and {unknown} of 8");
}

/// If the kernel counted sleeps as waits for a CPU, the kernel's figure is wrong. So the audit, which compares the
/// events with the kernel's sums, does not doubt the events.
#[test]
fn an_impossible_run_delay_accuses_nobody() {
    let config = Config::new(scenario::build(4, 12, 3), 2, 3_000_000_000);
    let (recording, _) = Recording::record(&config);
    let mut analysis = analyzed(&recording);
    assert_eq!(impossible(&analysis), None);
    let mut wrong = 0;
    for thread in &mut analysis.threads {
        let times = thread.times;
        let kernel = thread.kernel.as_mut();
        let kernel = kernel.filter(|kernel| kernel.is_final && times.sleep > 100_000_000);
        let kernel = kernel.filter(|_| !thread.started_before && !thread.alive);
        if let Some(delay) = kernel.and_then(|kernel| kernel.run_delay.as_mut()) {
            *delay += times.sleep;
            wrong += 1;
        }
    }
    assert!(wrong > 0);
    let found = impossible(&analysis).unwrap();
    assert_eq!((doubts(&analysis), found.tasks), (Vec::new(), wrong));
    assert!(found.kernel_ns > found.at_most_ns);
    // If the numbers of switches differ from the kernel's, the events are in doubt.
    for thread in &mut analysis.threads {
        thread.switches.voluntary += 1;
    }
    assert_eq!(doubts(&analysis).len(), 1);
    assert_eq!(impossible(&analysis), None);
}
