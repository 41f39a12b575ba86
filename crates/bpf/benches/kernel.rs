//! What a switch and a waking cost in the kernel, by its own count, beside plain
//! prototypes in the same run. As root: `cargo bench -p tr-bpf --features
//! prototypes`. ROUNDS (default 5) and TRIPS (default 60000, of the pipe storm a
//! round) change the length. The cost of counting is in every figure: that of
//! "nothing" is nothing else.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing)]

use std::collections::BTreeMap;
use std::io::Write;
use std::os::fd::{AsFd, AsRawFd, FromRawFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use libbpf_rs::libbpf_sys;
use libbpf_rs::ObjectBuilder;
use tr_bpf::{Kernel, Receive, Record, Settings, Storage, Tracer};

const PROTOTYPES: [(&str, &[u8]); 4] = [
    (
        "nothing",
        include_bytes!(concat!(env!("OUT_DIR"), "/prototype0.bpf.o")),
    ),
    (
        "the time alone",
        include_bytes!(concat!(env!("OUT_DIR"), "/prototype1.bpf.o")),
    ),
    (
        "plain, BPF ring buffers",
        include_bytes!(concat!(env!("OUT_DIR"), "/prototype2.bpf.o")),
    ),
    (
        "plain, mapped array",
        include_bytes!(concat!(env!("OUT_DIR"), "/prototype3.bpf.o")),
    ),
];
const OURS: &str = "tr, following the storm";

/// ns a switch, ns a waking.
type Costs = [f64; 2];

fn number(name: &str, default: usize) -> usize {
    std::env::var(name).map_or(default, |n| n.parse().expect(name))
}

/// The kernel counts as long as this is open.
fn statistics() -> OwnedFd {
    // SAFETY: a plain call; what is not negative is a new descriptor.
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

/// The storm, which begins with a line on its standard input.
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

fn prototype(object: &[u8], storm: &Path) -> Costs {
    let open = ObjectBuilder::default()
        .open_memory(object)
        .expect("a BPF object");
    let object = open.load().expect("to load a prototype");
    let mut links = Vec::new();
    for program in object.progs_mut() {
        links.push(program.attach().expect("to attach"));
    }
    let mut child = waiting(storm);
    go(&mut child);
    assert!(child.wait().expect("wait").success());
    let mut costs = Costs::default();
    for program in object.progs() {
        let mut info = libbpf_sys::bpf_prog_info::default();
        let mut len = size_of_val(&info) as u32;
        // SAFETY: `info` is a plain struct of `len` bytes that the call fills.
        let done = unsafe {
            libbpf_sys::bpf_prog_get_info_by_fd(program.as_fd().as_raw_fd(), &mut info, &mut len)
        };
        assert_eq!(done, 0);
        let at = usize::from(program.name().to_string_lossy().contains("waking"));
        costs[at] = info.run_time_ns as f64 / info.run_cnt as f64;
    }
    costs
}

#[derive(Clone)]
struct Nowhere;

impl Receive for Nowhere {
    fn receive(&self, _record: Record<'_>) {}
}

fn ours(storm: &Path) -> Costs {
    let mut child = waiting(storm);
    let cpus = std::thread::available_parallelism().map_or(1, usize::from);
    let settings = Settings {
        all: false,
        cpus: (0..cpus as u16).collect(),
        possible_cpus: cpus,
        sched_ring: 4 << 20,
        life_ring: 4 << 20,
        argv_limit: 16_384,
        pid_max: 1 << 22,
        targets: vec![child.id()],
        target_cgroup: None,
        count_emitted: false,
    };
    let kernel = Kernel::detect().expect("a kernel that can");
    let mut storage = Storage::new();
    let mut tracer = Tracer::load(&mut storage, &kernel, &settings).expect("to load");
    let mut rings = tracer.rings(Nowhere).expect("rings");
    tracer.attach().expect("to attach");
    tracer.snapshot().expect("a snapshot");
    go(&mut child);
    while child.try_wait().expect("wait").is_none() {
        rings.consume();
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
    let mut all = BTreeMap::<&str, Vec<Costs>>::new();
    let rounds = number("ROUNDS", 5);
    for _ in 0..rounds {
        for (name, object) in PROTOTYPES {
            all.entry(name).or_default().push(prototype(object, &storm));
        }
        all.entry(OURS).or_default().push(ours(&storm));
    }
    let _ = std::fs::remove_file(&storm);
    println!("ns in the kernel, medians of {rounds} rounds       switch  waking");
    for name in PROTOTYPES.map(|(name, _)| name).into_iter().chain([OURS]) {
        let median = |at: usize| {
            let mut costs: Vec<f64> = all[name].iter().map(|costs| costs[at]).collect();
            costs.sort_by(f64::total_cmp);
            costs[costs.len() / 2]
        };
        println!("{name:<45}{:>6.1}  {:>6.1}", median(0), median(1));
    }
}
