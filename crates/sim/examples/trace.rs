//! Writes a simulated recording to a file, for benchmarks of whole programs.
//!
//! `cargo run --release -p tr-sim --example trace -- WORLD CPUS EVENTS FILE [SEED]`, WORLD being make (many short
//! processes), build (each with about a thousand events), hackbench, pipe, pool (20,000 threads), short, or marks (two
//! processes, which set EVENTS marks, that is, name EVENTS moments).

use std::io::Write;

use tr_sim::blocks::{Cut, Order};
use tr_sim::config::{Config, Follow};
use tr_sim::recording::Recording;
use tr_sim::scenario;

/// The number of events besides the marks (named moments) in the simulated world whose processes set marks.
const EVENTS_BESIDE_MARKS: u64 = 20_000;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let [world, cpus, events, file, seed @ ..] = args.as_slice() else {
        return Err("usage: trace WORLD CPUS EVENTS FILE [SEED]".into());
    };
    let cpus: u16 = cpus.parse()?;
    let jobs = u32::from(cpus) + u32::from(cpus) / 2;
    let is_marks = world == "marks";
    let world = match world.as_str() {
        "make" => scenario::make(jobs, u32::MAX),
        "build" => scenario::build(jobs, u32::MAX, 400),
        "hackbench" => scenario::hackbench(10, 20),
        "pipe" | "marks" => scenario::pipe(),
        "pool" => scenario::pool(20_000),
        "short" => scenario::short_processes(jobs, u32::MAX),
        other => return Err(format!("no such world: {other}").into()),
    };
    let mut config = Config::new(world, cpus, u64::MAX >> 12);
    config.follow = Follow::All;
    config.max_events = events.parse()?;
    if let [seed] = seed {
        config = config.seed(seed.parse()?);
    }
    // A simulated make waits for its processes only at its end, so it needs very many pids.
    config.kernel.pid_max = 1 << 22;
    // The simulated recorder writes each second a watermark, which says that all earlier events are in the file.
    config.progress = 1_000_000_000;
    if is_marks {
        let marks = std::mem::replace(&mut config.max_events, EVENTS_BESIDE_MARKS);
        let (mut recording, truth) = Recording::record(&config);
        let pid = truth.tasks.first().map(|task| task.tid);
        recording.add_tests(pid, marks / 2);
        let cut = Cut {
            largest: 1 << 16,
            order: Order::Written,
            seed: 1,
        };
        std::fs::write(file, recording.to_file(&cut)?)?;
        return Ok(());
    }
    let out = std::io::BufWriter::new(std::fs::File::create(file)?);
    let (mut out, written, truth) = tr_sim::file::record_to(&config, out)?;
    out.flush()?;
    println!("{written:?}, {} tasks", truth.tasks.len());
    Ok(())
}
