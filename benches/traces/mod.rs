//! The traces on which the benchmarks of the format work: recorded fixtures, simulated workloads, and traces that are
//! named as arguments.

use std::path::Path;

use tr_format::event::{LifeEvent, Stream};
use tr_format::meta::Metadata;
use tr_format::reader::Trace;
use tr_format::sched::SchedBlock;
use tr_format::source::Source;
use tr_sim::config::{Config, Follow};
use tr_sim::scenario;

/// The events of one frame.
pub enum Block {
    /// The events of a frame in the stream of a CPU.
    Sched(SchedBlock),
    /// The events of a frame in another stream.
    Life(Stream, Vec<LifeEvent>),
}

/// A trace and its decoded events.
pub struct Workload {
    pub name: String,
    pub file: Vec<u8>,
    pub meta: Metadata,
    pub blocks: Vec<Block>,
    pub events: u64,
}

/// The CPU time of this thread in ns. A busy machine changes this figure less than the wall time. The best estimate is
/// the least of many runs of each frame.
pub fn cpu_time() -> f64 {
    let clock = nix::time::ClockId::CLOCK_THREAD_CPUTIME_ID;
    let time = nix::time::clock_gettime(clock).expect("the clock");
    time.tv_sec() as f64 * 1e9 + time.tv_nsec() as f64
}

/// The time in ns that [`cpu_time`] itself takes: a system call that takes as long as ten events of a small frame.
pub fn clock_time() -> f64 {
    (0..1000).fold(f64::MAX, |least, _| {
        let start = cpu_time();
        least.min(cpu_time() - start)
    })
}

fn workload(name: &str, file: Vec<u8>) -> Workload {
    let trace = Trace::open(Source::bytes(file.clone())).expect(name);
    let (mut blocks, mut events) = (Vec::new(), 0);
    for frame in trace.frames() {
        events += frame.events;
        blocks.push(match frame.stream {
            Stream::Cpu(_) => {
                let mut block = SchedBlock::default();
                trace.read_sched(frame, &mut block).expect(name);
                Block::Sched(block)
            }
            stream => {
                let mut events = Vec::new();
                trace.read_life(frame, &mut events).expect(name);
                Block::Life(stream, events)
            }
        });
    }
    assert!(events > 1000, "{name} has only {events} events");
    Workload {
        name: name.to_owned(),
        meta: trace.meta().clone(),
        file,
        blocks,
        events,
    }
}

/// The traces that are named as arguments; without arguments, fixtures and simulations. The flag is true if the
/// benchmark shall only check that it works.
pub fn workloads() -> (Vec<Workload>, bool) {
    let real = std::env::args().any(|arg| arg == "--bench");
    let files: Vec<String> = std::env::args()
        .skip(1)
        .filter(|arg| !arg.starts_with('-'))
        .collect();
    if !files.is_empty() {
        let read = |path: &String| workload(path, std::fs::read(path).expect(path));
        return (files.iter().map(read).collect(), !real);
    }
    let mut all = Vec::new();
    for name in ["demo", "build"] {
        let fixtures = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures/traces");
        let path = fixtures.join(format!("{name}.bin"));
        all.push(workload(name, std::fs::read(&path).expect(name)));
    }
    let events = if real { 1_000_000 } else { 20_000 };
    for (name, world) in [
        ("sim: make -j8", scenario::make(8, 2000)),
        ("sim: hackbench, 400 tasks", scenario::hackbench(10, 20)),
        ("sim: pipe", scenario::pipe()),
    ] {
        let mut config = Config::new(world, 2, u64::MAX >> 12);
        config.follow = Follow::All;
        config.max_events = events;
        let (file, _, _) = tr_sim::file::record_to(&config, Vec::new()).expect(name);
        all.push(workload(name, file));
    }
    (all, !real)
}
