//! Measures the simulator for each simulated world: events for each second, with one thread.
//!
//! `cargo bench -p tr-sim --bench sim [-- NAME]`

use std::time::Instant;

use tr_sim::config::{Config, Follow};
use tr_sim::machine::Machine;
use tr_sim::scenario::{self, Weights};
use tr_sim::sink::Count;

/// The number of events: enough to make the time of the start negligible, and few enough to run quickly.
const EVENTS: u64 = 5_000_000;

fn main() {
    // `cargo test --benches` passes no `--bench`, and only checks that the benchmark works.
    let events = if std::env::args().any(|arg| arg == "--bench") {
        EVENTS
    } else {
        50_000
    };
    let filter = std::env::args().skip(1).find(|arg| !arg.starts_with('-'));
    let all = |mut config: Config| {
        config.follow = Follow::All;
        config
    };
    let forever = u64::MAX >> 12;
    println!(
        "{:<28} {:>12} {:>10} {:>10}",
        "world", "events", "M/s", "tasks"
    );
    for (name, config) in [
        ("pipe, 2 CPUs", Config::new(scenario::pipe(), 2, forever)),
        (
            "sleepers × 100, 4 CPUs",
            Config::new(scenario::sleepers(100), 4, forever),
        ),
        (
            "sleepers × 2000, 256 CPUs",
            Config::new(scenario::sleepers(2_000), 256, forever),
        ),
        (
            "hackbench, 8 CPUs",
            Config::new(scenario::hackbench(10, 20), 8, forever),
        ),
        (
            "pool × 32, 16 CPUs",
            Config::new(scenario::pool(32), 16, forever),
        ),
        (
            "make -j8, 8 CPUs",
            all(Config::new(scenario::make(8, 1_000_000), 8, forever)),
        ),
        (
            "short processes, 4 CPUs",
            Config::new(scenario::short_processes(4, 1_000_000), 4, forever),
        ),
        (
            "chaos, 8 CPUs",
            Config::new(scenario::chaos(&Weights::default(), 8), 8, forever),
        ),
    ] {
        if filter
            .as_ref()
            .is_some_and(|filter| !name.contains(filter.as_str()))
        {
            continue;
        }
        let mut best = f64::MAX;
        let mut counted = 0;
        let mut tasks = 0;
        for seed in 1..=3 {
            let mut config = config.clone().seed(seed);
            config.max_events = events;
            let mut machine = Machine::new(&config);
            let mut count = Count::default();
            let begun = Instant::now();
            machine.run(&mut count);
            best = best.min(begun.elapsed().as_secs_f64());
            counted = count.sched + count.life;
            tasks = machine.into_truth().tasks.len();
            assert!(counted >= events, "{name} ended after {counted} events");
        }
        println!(
            "{name:<28} {counted:>12} {:>10.1} {tasks:>10}",
            counted as f64 / best / 1e6
        );
    }
}
