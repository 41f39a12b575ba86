//! Compares the time that the BPF programs estimate for themselves with the time that the kernel counts for them.

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

/// Makes the kernel count the time of BPF programs as long as the returned descriptor is open.
fn statistics() -> Option<OwnedFd> {
    // SAFETY: the call has no pointers, and a result that is not negative is a new descriptor.
    unsafe {
        let fd = bpf_enable_stats(BPF_STATS_RUN_TIME);
        (fd >= 0).then(|| OwnedFd::from_raw_fd(fd))
    }
}

/// Runs two threads that answer each other, which causes many short runs of the BPF programs, and starts processes,
/// which causes a few long ones.
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

/// Compares two figures for the run time of the BPF programs: their own estimate from a sample of their runs, and the
/// kernel's count. Returns estimate / count. The kernel also counts the time that an idle CPU needs to begin a program,
/// so all threads run on one CPU.
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

/// Tests that the estimated run time of the BPF programs is nearly the counted one, in up to five attempts. An attempt
/// can fail by chance, because a hypervisor can take the CPU away during a few runs of a program, which the sample may
/// miss or include.
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
