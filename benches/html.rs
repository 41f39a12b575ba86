//! Measures the time for writing the page of a large simulated recording, and its size: 10,000 processes during an
//! hour, 10^7 events.
//!
//! `cargo bench -p tr-report --bench html [-- OUT.html]`; `benches/html.sh` then measures the page in a browser.

#![allow(clippy::expect_used, clippy::indexing_slicing)]

use std::time::Instant;

use tr_analyze::Options;
use tr_format::reader::Trace;
use tr_format::source::Source;
use tr_sim::config::Config;
use tr_sim::program::{ms, us, Op, World};
use tr_sim::scenario;

/// A simulated build whose compilers run for seconds and also wait for the disk.
fn world(units: u32, rounds: u32) -> World {
    let mut world = scenario::build(8, units, rounds);
    world.name = "an hour of make -j8".into();
    // cc1 reads and computes by turns; `scenario::build` has the order of the operations.
    let [.., read, compute, _, _] = world.programs[2].as_mut_slice() else {
        return world;
    };
    (*read, *compute) = (Op::Io(us(500, 3_000)), Op::Run(ms(3, 9)));
    world
}

fn main() {
    // `cargo test --benches` passes no `--bench`, and only checks that the benchmark works.
    let real = std::env::args().any(|arg| arg == "--bench");
    let out = std::env::args().skip(1).find(|arg| !arg.starts_with('-'));
    let (units, rounds) = if real { (2_500, 1_400) } else { (10, 5) };
    let mut config = Config::new(world(units, rounds), 8, 4 * 3_600_000_000_000);
    config.linger = Some(1_000_000);
    let (file, _, _) = tr_sim::file::record_to(&config, Vec::new()).expect("the simulation");
    let size = file.len();
    let trace = Trace::open(Source::bytes(file)).expect("a trace");
    let options = Options {
        timeline: true,
        ..Options::default()
    };
    let begun = Instant::now();
    let analysis = tr_analyze::analyze(&trace, &options);
    let analyzed = begun.elapsed();
    let events = analysis.events.total();
    println!(
        "trace      {} processes, {:.0} s, {events} events, {:.1} MB",
        analysis.totals.processes,
        analysis.end.since(analysis.start) as f64 / 1e9,
        size as f64 / 1e6
    );
    assert!(
        !real || (analysis.totals.processes >= 10_000 && events >= 10_000_000),
        "too small to tell"
    );
    println!("analysis   {:.2} s", analyzed.as_secs_f64());
    let begun = Instant::now();
    let page = tr_report::html::render(&analysis.into(), "large.bin").expect("the page");
    let rendered = begun.elapsed();
    if let Some(out) = &out {
        std::fs::write(out, &page).expect("the page's file");
    }
    println!(
        "page       {:.2} MB, {:.2} s after the analysis (target: 6 MB, 2 s)",
        page.len() as f64 / 1e6,
        rendered.as_secs_f64()
    );
}
