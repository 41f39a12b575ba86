//! Measures how many events a second (wall time) the analysis of traces takes in, with one thread and with two. The
//! reading and ordering of the events is also measured alone.
//!
//! `cargo bench -p tr-analyze --bench analyze [-- [EVENTS] [TRACE...]]`; by default 10^7 simulated events of each of
//! builds on 64 CPUs, pipes and hackbench.
#![allow(clippy::expect_used)]

use std::time::Instant;

use nix::sys::resource::{getrusage, UsageWho};
use nix::sys::time::{TimeVal, TimeValLike};
use tr_analyze::{order, Options};
use tr_format::event::Stream;
use tr_format::reader::Trace;
use tr_format::sched::SchedBlock;
use tr_format::source::Source;
use tr_sim::config::{Config, Follow};
use tr_sim::scenario;

/// The number of runs of each measurement; their median is printed.
const RUNS: usize = 3;

fn main() {
    // `cargo test --benches` passes no `--bench`, and only checks that the benchmark works.
    let real = std::env::args().any(|arg| arg == "--bench");
    let (numbers, files): (Vec<String>, Vec<String>) = std::env::args()
        .skip(1)
        .filter(|arg| !arg.starts_with('-'))
        .partition(|arg| arg.parse::<u64>().is_ok());
    let events = numbers.first().and_then(|n| n.parse().ok());
    let events = events.unwrap_or(if real { 10_000_000 } else { 50_000 });
    println!(
        "{:<28} {:>10} {:>7} {:>7} | {:>8} {:>8} {:>8} {:>8} | {:>8} {:>6}",
        "M events/s",
        "events",
        "tasks",
        "MB",
        "open",
        "decode",
        "order",
        "analyze",
        "2 thr.",
        "ratio"
    );
    if !files.is_empty() {
        for path in &files {
            measure(path, std::fs::read(path).expect(path), 0);
        }
        return;
    }
    let forever = u64::MAX >> 12;
    for (name, world, cpus) in [
        ("build, 64 CPUs", scenario::build(96, u32::MAX, 400), 64),
        ("build, 8 CPUs", scenario::build(12, u32::MAX, 400), 8),
        ("short processes, 8 CPUs", scenario::make(12, u32::MAX), 8),
        ("hackbench, 8 CPUs", scenario::hackbench(10, 20), 8),
        ("pipe, 2 CPUs", scenario::pipe(), 2),
    ] {
        let mut config = Config::new(world, cpus, forever);
        config.follow = Follow::All;
        config.max_events = events;
        // The simulated make reaps its processes only at its end, so it needs very many pids.
        config.kernel.pid_max = 1 << 22;
        // A progress event is written each second, as the recorder does.
        config.progress = 1_000_000_000;
        let (file, _, _) = tr_sim::file::record_to(&config, Vec::new()).expect(name);
        measure(name, file, events);
    }
}

fn measure(name: &str, file: Vec<u8>, least: u64) {
    let size = file.len();
    let begun = Instant::now();
    let trace = Trace::open(Source::bytes(file)).expect(name);
    let open = begun.elapsed().as_secs_f64();
    let all: u64 = trace.frames().iter().map(|frame| frame.events).sum();
    assert!(all >= least, "{name} has only {all} events");
    let pool = |threads| {
        let builder = rayon::ThreadPoolBuilder::new().num_threads(threads);
        builder.build().expect("threads")
    };
    let (one, two) = (pool(1), pool(2));
    let decode = || {
        let (mut block, mut events) = (SchedBlock::default(), Vec::new());
        for frame in trace.frames() {
            match frame.stream {
                Stream::Cpu(_) => trace.read_sched(frame, &mut block).expect(name),
                _ => trace.read_life(frame, &mut events).expect(name),
            }
        }
    };
    let ordered = || {
        let mut merge = order::merge(&trace);
        let mut count = 0;
        while merge.next_event().is_some() {
            count += 1;
        }
        assert_eq!(count, all, "{name}");
    };
    let mut tasks = 0;
    let mut analyzed = || {
        let analysis = tr_analyze::analyze(&trace, &Options::default());
        assert_eq!(analysis.events.total(), all, "{name}");
        tasks = analysis.threads.len();
    };
    let mut times = [const { Vec::new() }; 4];
    let mut used = [const { Vec::new() }; 4];
    for _ in 0..RUNS {
        let mut time = |at: usize, what: &mut (dyn FnMut() + Send)| {
            let (begun, before) = (Instant::now(), cpu_time());
            what();
            if let (Some(times), Some(used)) = (times.get_mut(at), used.get_mut(at)) {
                times.push(begun.elapsed().as_secs_f64());
                used.push(cpu_time() - before);
            }
        };
        time(0, &mut || one.install(decode));
        time(1, &mut || one.install(ordered));
        time(2, &mut || one.install(&mut analyzed));
        time(3, &mut || two.install(&mut analyzed));
    }
    let median = |mut times: Vec<f64>| {
        times.sort_by(f64::total_cmp);
        times.get(RUNS / 2).copied().unwrap_or(f64::NAN)
    };
    let [decode, order, analyze, with_two] = times.map(median);
    let used = used.map(|used| median(used) / all as f64 * 1e9);
    let rate = |seconds: f64| all as f64 / seconds / 1e6;
    println!(
        "{name:<28} {all:>10} {tasks:>7} {:>7.1} | {:>8.0} {:>8.1} {:>8.1} {:>8.1} | {:>8.1} {:>6.2}",
        size as f64 / 1e6,
        rate(open),
        rate(decode),
        rate(order),
        rate(analyze),
        rate(with_two),
        analyze / with_two
    );
    let [decode, order, analyze, with_two] = used;
    println!(
        "{:<28} {:>10} {:>7} {:>7} | {:>8} {decode:>8.1} {order:>8.1} {analyze:>8.1} | {with_two:>8.1}",
        "  ns of CPU an event", "", "", "", "",
    );
}

/// The CPU time of this process in seconds. Other work on the machine changes this figure less than the wall time.
fn cpu_time() -> f64 {
    let usage = getrusage(UsageWho::RUSAGE_SELF).expect("getrusage");
    let seconds = |time: TimeVal| time.num_microseconds() as f64 / 1e6;
    seconds(usage.user_time()) + seconds(usage.system_time())
}
