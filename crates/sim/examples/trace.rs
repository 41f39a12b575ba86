//! Writes a simulated recording to a file, for benchmarks of whole programs.
//!
//! `cargo run --release -p tr-sim --example trace -- WORLD CPUS EVENTS FILE`,
//! WORLD being make (many short processes), build (each with about a thousand
//! events), hackbench, pipe, pool (20,000 threads) or short.

use std::io::Write;

use tr_sim::config::{Config, Follow};
use tr_sim::scenario;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let [world, cpus, events, file] = args.as_slice() else {
        return Err("usage: trace WORLD CPUS EVENTS FILE".into());
    };
    let cpus: u16 = cpus.parse()?;
    let jobs = u32::from(cpus) + u32::from(cpus) / 2;
    let world = match world.as_str() {
        "make" => scenario::make(jobs, u32::MAX),
        "build" => scenario::build(jobs, u32::MAX, 400),
        "hackbench" => scenario::hackbench(10, 20),
        "pipe" => scenario::pipe(),
        "pool" => scenario::pool(20_000),
        "short" => scenario::short_processes(jobs, u32::MAX),
        other => return Err(format!("no such world: {other}").into()),
    };
    let mut config = Config::new(world, cpus, u64::MAX >> 12);
    config.follow = Follow::All;
    config.max_events = events.parse()?;
    // Nobody waits for the processes of a simulated make before its end.
    config.kernel.pid_max = 1 << 22;
    // As often as the recorder.
    config.progress = 1_000_000_000;
    let out = std::io::BufWriter::new(std::fs::File::create(file)?);
    let (mut out, written, truth) = tr_sim::file::record_to(&config, out)?;
    out.flush()?;
    println!("{written:?}, {} tasks", truth.tasks.len());
    Ok(())
}
