//! The programs' own measurement of their time beside the kernel's.

mod common;

use std::io::{Read, Write};
use std::os::fd::{FromRawFd, OwnedFd};
use std::process::Command;

use common::{ensure, pin, settings};
use libbpf_rs::libbpf_sys::{bpf_enable_stats, BPF_STATS_RUN_TIME};
use libtest_mimic::Failed;
use tr_bpf::{Settings, Tracer};

fn main() {
    common::run(vec![(
        "the_sample_of_the_time_in_the_programs_is_what_the_kernel_counts",
        sampled,
    )]);
}

/// While this descriptor is open, the kernel counts the time of programs.
fn statistics() -> Option<OwnedFd> {
    // SAFETY: a plain call; a result that is not negative is a new descriptor.
    unsafe {
        let fd = bpf_enable_stats(BPF_STATS_RUN_TIME);
        (fd >= 0).then(|| OwnedFd::from_raw_fd(fd))
    }
}

/// Two threads that answer each other, which is many short runs, and processes, which are few long ones.
fn work() -> Result<(), Failed> {
    let (mut from_first, mut to_second) = std::io::pipe()?;
    let (mut from_second, mut to_first) = std::io::pipe()?;
    let second = std::thread::spawn(move || -> std::io::Result<()> {
        let mut byte = [0];
        while from_first.read(&mut byte)? > 0 {
            to_first.write_all(&byte)?;
        }
        Ok(())
    });
    let mut byte = [0];
    for _ in 0..100_000 {
        to_second.write_all(&byte)?;
        from_second.read_exact(&mut byte)?;
    }
    drop(to_second);
    second.join().map_err(|_| "a thread has failed")??;
    for _ in 0..1000 {
        Command::new("true").status()?;
    }
    Ok(())
}

/// The sample's part of the time that the kernel counts. The kernel also counts what a CPU that was idle needs to
/// begin a program; so all threads are on one CPU.
fn ratio(all: bool) -> Result<f64, Failed> {
    let settings = Settings {
        all,
        targets: vec![std::process::id()],
        count_emitted: false,
        ..settings(4 << 20)
    };
    let mut tracer = Tracer::start(&settings)?;
    tracer.snapshot()?;
    work()?;
    tracer.detach();
    let usage = tracer.usage();
    let counted = usage.run_time_ns.ok_or("not counted")?;
    let ratio = usage.sampled_ns as f64 / counted as f64;
    println!("all: {all}; counted {counted} ns, sampled {ratio:.3} of it");
    Ok(ratio)
}

/// A hypervisor that takes a CPU from a program adds to few of its runs, of which the sample has some or none.
fn sampled() -> Result<(), Failed> {
    let Some(_statistics) = statistics() else {
        return Ok(());
    };
    pin();
    for all in [true, false] {
        let mut ratios = Vec::new();
        while !ratios
            .last()
            .is_some_and(|last| (0.85..1.15).contains(last))
        {
            ensure(ratios.len() < 5, || format!("all: {all}; {ratios:?}"))?;
            ratios.push(ratio(all)?);
        }
    }
    Ok(())
}
