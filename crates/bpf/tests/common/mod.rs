//! Common parts of the tests that load the BPF programs. If this machine does not let the tests trace, they are
//! reported as ignored, with the reason.

use libtest_mimic::{Arguments, Failed, Trial};
use tr_bpf::{Settings, Tracer};

pub type Test = fn() -> Result<(), Failed>;

/// Runs tests one after the other.
pub fn run(tests: Vec<(&'static str, Test)>) {
    let mut args = Arguments::from_args();
    args.test_threads = Some(1);
    let reason = why_not();
    let trial = |(name, test): (&'static str, Test)| {
        let name = match &reason {
            Some(reason) => format!("{name} (skipped: {reason})"),
            None => name.to_owned(),
        };
        Trial::test(name, test).with_ignored_flag(reason.is_some())
    };
    libtest_mimic::run(&args, tests.into_iter().map(trial).collect()).exit();
}

pub fn cpus() -> usize {
    std::thread::available_parallelism().map_or(1, usize::from)
}

/// Restricts the calling thread to the first of the CPUs that it may use.
#[allow(dead_code)] // not in every executable
pub fn pin() {
    // SAFETY: `set` is a local variable, and the calls get its size.
    unsafe {
        let mut set: libc::cpu_set_t = std::mem::zeroed();
        libc::sched_getaffinity(0, size_of_val(&set), &mut set);
        let first = (0..1024).find(|cpu| libc::CPU_ISSET(*cpu, &set));
        libc::CPU_ZERO(&mut set);
        libc::CPU_SET(first.unwrap_or(0), &mut set);
        libc::sched_setaffinity(0, size_of_val(&set), &set);
    }
}

pub fn settings(ring: u32) -> Settings {
    Settings {
        all: true,
        cpus: (0..cpus())
            .filter_map(|cpu| u16::try_from(cpu).ok())
            .collect(),
        later_cpus: Some(0),
        possible_cpus: cpus().max(64),
        sched_slots: ring,
        life_ring: ring,
        argv_limit: 1024,
        pid_max: 1 << 22,
        servers: true,
        count_emitted: true,
        ..Settings::default()
    }
}

fn why_not() -> Option<String> {
    let tried = Tracer::start(&settings(4096)).map(|_| ());
    // The tests are skipped only if rights or kernel features are missing. If the kernel refuses a BPF program for
    // another reason, the tests run and fail.
    match tried {
        Err(tr_bpf::Error::Bpf { .. }) | Ok(()) => None,
        Err(error) => Some(error.to_string()),
    }
}

pub fn ensure(good: bool, what: impl FnOnce() -> String) -> Result<(), Failed> {
    if good {
        Ok(())
    } else {
        Err(what().into())
    }
}
