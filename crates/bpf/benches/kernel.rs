//! Measures the cost of a context switch and of a waking in the BPF programs, by the kernel's own count of their time.
//! Run as root: `cargo bench -p tr-bpf --bench kernel`. The environment variables ROUNDS (default 5) and TRIPS (default
//! 60000 bytes through a pipe and back in each round) set the length. Both costs include the kernel's counting itself,
//! which takes 35 to 50 ns, as a program that does nothing shows.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing)]

use std::io::Write;
use std::os::fd::{FromRawFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use libbpf_rs::libbpf_sys;
use tr_bpf::{Settings, Tracer};

/// The cost in ns of a context switch, and of a waking.
type Costs = [f64; 2];

fn number(name: &str, default: usize) -> usize {
    std::env::var(name).map_or(default, |n| n.parse().expect(name))
}

/// Makes the kernel count the time of BPF programs as long as the returned descriptor is open.
fn statistics() -> OwnedFd {
    // SAFETY: the call has no pointers, and a result that is not negative is a new descriptor.
    unsafe {
        let fd = libbpf_sys::bpf_enable_stats(libbpf_sys::BPF_STATS_RUN_TIME);
        assert!(
            fd >= 0,
            "the kernel counts no time of BPF programs (root? CAP_SYS_ADMIN?)"
        );
        OwnedFd::from_raw_fd(fd)
    }
}

fn storm(dir: &Path) -> PathBuf {
    let source = concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/../../fixtures/programs/storm.c"
    );
    let binary = dir.join("tr-bench-storm");
    let mut gcc = Command::new("gcc");
    gcc.args(["-O1", "-pthread", "-o"]).arg(&binary).arg(source);
    assert!(gcc.status().expect("gcc").success());
    binary
}

/// Starts a shell that waits for a line on its standard input and then executes `storm`, a program that makes many
/// context switches.
fn waiting(storm: &Path) -> Child {
    Command::new("sh")
        .args(["-c", "read go; exec \"$STORM\" pipe \"$TRIPS\""])
        .env("STORM", storm)
        .env("TRIPS", number("TRIPS", 60_000).to_string())
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .spawn()
        .expect("sh")
}

fn go(child: &mut Child) {
    child
        .stdin
        .take()
        .expect("piped")
        .write_all(b"\n")
        .expect("a shell that reads");
}

fn costs_of(storm: &Path) -> Costs {
    let mut child = waiting(storm);
    let cpus = std::thread::available_parallelism().map_or(1, usize::from);
    let settings = Settings {
        cpus: (0..cpus as u16).collect(),
        later_cpus: Some(0),
        possible_cpus: cpus,
        sched_slots: 4 << 20,
        life_ring: 4 << 20,
        argv_limit: 16_384,
        pid_max: 1 << 22,
        targets: vec![child.id()],
        servers: true,
        ..Settings::default()
    };
    let mut tracer = Tracer::start(&settings).expect("to attach");
    tracer.snapshot().expect("a snapshot");
    go(&mut child);
    while child.try_wait().expect("wait").is_none() {
        tracer.consume(|_| ());
        std::thread::sleep(Duration::from_millis(20));
    }
    let mut costs = Costs::default();
    for (name, time, runs) in tracer.run_times() {
        match name.as_str() {
            "switch_btf" | "switch_raw" => costs[0] = time as f64 / runs as f64,
            "waking_btf" | "waking_raw" => costs[1] = time as f64 / runs as f64,
            _ => {}
        }
    }
    costs
}

fn main() {
    let dir = std::env::temp_dir();
    let storm = storm(&dir);
    let _statistics = statistics();
    let rounds = number("ROUNDS", 5);
    let costs: Vec<Costs> = (0..rounds).map(|_| costs_of(&storm)).collect();
    let _ = std::fs::remove_file(&storm);
    let median = |at: usize| {
        let mut costs: Vec<f64> = costs.iter().map(|costs| costs[at]).collect();
        costs.sort_by(f64::total_cmp);
        costs[costs.len() / 2]
    };
    let (switch, waking) = (median(0), median(1));
    println!(
        "ns in the kernel, medians of {rounds} rounds: switch {switch:.1}, waking {waking:.1}"
    );
}
