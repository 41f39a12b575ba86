//! Measures the phases of starting the BPF programs, and of ending them: medians of the wall time and the CPU time of
//! this process in ms. Then prints the number of instructions that the kernel's verifier followed in each program. Run
//! as root: `cargo bench -p tr-bpf --bench start`. The environment variable ROUNDS (default 30) sets the number of
//! starts.

#![allow(clippy::unwrap_used, clippy::expect_used)]

use std::time::{Duration, Instant};

use nix::time::{clock_gettime, ClockId};
use tr_bpf::{Programs, Settings, Tracer};

/// A phase of a start of the BPF programs: its wall time, and the CPU time that this process used in it (all threads,
/// in user mode and in the kernel).
#[derive(Clone, Copy)]
struct Phase {
    name: &'static str,
    wall: Duration,
    cpu: Duration,
}

/// The phases of one start of the BPF programs, in the order in which the phases ended.
#[derive(Default)]
struct Phases(Vec<Phase>);

impl Phases {
    fn time<T>(&mut self, name: &'static str, work: impl FnOnce() -> T) -> T {
        let (wall, cpu) = (Instant::now(), used());
        let done = work();
        self.0.push(Phase {
            name,
            wall: wall.elapsed(),
            cpu: used().saturating_sub(cpu),
        });
        done
    }
}

/// The CPU time that this process has used so far.
fn used() -> Duration {
    let now = clock_gettime(ClockId::CLOCK_PROCESS_CPUTIME_ID);
    now.map_or(Duration::ZERO, Duration::from)
}

fn settings() -> Settings {
    let cpus = std::thread::available_parallelism().map_or(1, usize::from);
    Settings {
        cpus: (0..cpus as u16).collect(),
        later_cpus: Some(cpus as u32),
        possible_cpus: cpus,
        sched_slots: 1 << 20,
        life_ring: 4 << 20,
        argv_limit: 16_384,
        pid_max: 1 << 22,
        targets: vec![1],
        servers: true,
        ..Settings::default()
    }
}

fn start(settings: &Settings) -> (Phases, Vec<(String, u32)>) {
    let mut phases = Phases::default();
    let started = phases.time("start", || Programs::start(settings));
    let programs = started.expect("a kernel that can");
    let tracer = phases.time("map the memory", || Tracer::new(programs, settings));
    let mut tracer = tracer.expect("maps");
    phases.time("list the tasks", || tracer.snapshot().expect("a list"));
    let verified = tracer.verified();
    phases.time("detach", || tracer.detach());
    phases.time("close", || drop(tracer));
    (phases, verified)
}

fn main() {
    let rounds = std::env::var("ROUNDS").map_or(30, |n| n.parse().expect("ROUNDS"));
    let settings = settings();
    let rounds: Vec<_> = (0..rounds).map(|_| start(&settings)).collect();
    let median = |of: &dyn Fn(&Phases) -> Duration| {
        let mut all: Vec<Duration> = rounds.iter().map(|(phases, _)| of(phases)).collect();
        all.sort();
        all.get(all.len() / 2).expect("rounds").as_secs_f64() * 1e3
    };
    let (first, verified) = rounds.first().expect("a round");
    println!("{:32} {:>8} {:>8}", "ms", "wall", "CPU");
    for (at, Phase { name, .. }) in first.0.iter().enumerate() {
        let part = |phases: &Phases| *phases.0.get(at).expect("the same phases");
        let (wall, cpu) = (
            median(&|start| part(start).wall),
            median(&|start| part(start).cpu),
        );
        println!("{name:32} {wall:8.2} {cpu:8.2}");
    }
    let mut verified = verified.clone();
    verified.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
    let sum: u32 = verified.iter().map(|(_, count)| count).sum();
    println!("\ninstructions followed by the verifier: {sum}");
    for (name, count) in verified {
        println!("{name:32} {count:8}");
    }
}
