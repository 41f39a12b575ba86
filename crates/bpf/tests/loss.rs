//! Tests that no event disappears: the recorded and the lost events are exactly as many as the BPF programs say they
//! emitted, even with rings of a single page.

#![allow(clippy::expect_used, clippy::indexing_slicing)]

mod common;

use std::collections::BTreeMap;
use std::io::{Read, Write};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use common::{ensure, settings};
use libtest_mimic::Failed;
use tr_bpf::{wire, Containers, CpuAccount, Record, Sampling, Settings, Tracer};
use zerocopy::FromBytes;

fn main() {
    common::run(vec![
        ("every_loss_of_a_tiny_ring_is_counted", tiny),
        ("large_rings_lose_nothing", large),
        ("tasks_that_cannot_be_followed_are_counted", overflow),
        ("a_task_without_storage_is_counted", no_storage),
        ("a_cpu_that_comes_later_gets_slots", later),
        ("a_cpu_that_comes_later_is_sampled_when_asked", sampled),
        (
            "a_cpu_for_which_there_are_no_slots_loses_its_events",
            too_late,
        ),
        ("a_cpu_that_is_left_out_has_no_events", left_out),
        ("the_verifier_is_quick", quick),
        ("every_kind_of_recording_loads", kinds),
    ]);
}

/// Starts a load with many events: two threads that wake each other, and one that starts processes.
fn storm(stop: &Arc<AtomicBool>) -> Vec<JoinHandle<()>> {
    let mut threads = Vec::new();
    let (there, back) = (
        std::io::pipe().expect("pipe"),
        std::io::pipe().expect("pipe"),
    );
    for ((mut from, mut to), first) in [((there.0, back.1), true), ((back.0, there.1), false)] {
        let stop = stop.clone();
        threads.push(std::thread::spawn(move || {
            let mut byte = [0];
            if first {
                let _ = to.write_all(&byte);
            }
            // A thread that stops closes its ends of the pipes, and so stops the other thread.
            while !stop.load(Ordering::Relaxed)
                && from.read_exact(&mut byte).is_ok()
                && to.write_all(&byte).is_ok()
            {}
        }));
    }
    let stop = stop.clone();
    threads.push(std::thread::spawn(move || {
        while !stop.load(Ordering::Relaxed) {
            let _ = std::process::Command::new("true")
                .arg("x".repeat(300))
                .status();
        }
    }));
    threads
}

/// The events of one CPU, either scheduling or lifecycle events, that the test has received.
#[derive(Debug, Default)]
struct Seen {
    recorded: u64,
    /// The reported losses: the times of the first and the last lost event, and the number of lost events.
    lost: Vec<(u64, u64, u64)>,
    /// The time of the last received event. A loss that is reported after this event may not begin before this time.
    last: u64,
    disorder: u64,
}

/// Records a workload with many events in rings of `ring` bytes, which are emptied after each `pause`, and compares the
/// received events with the counts of the BPF programs. Returns the number of lost events.
fn run(ring: u32, pause: Duration) -> Result<u64, Failed> {
    let mut tracer = Tracer::start(&settings(ring))?;
    let mut all = All::default();
    let stop = Arc::new(AtomicBool::new(false));
    let threads = storm(&stop);
    let end = Instant::now() + Duration::from_millis(1500);
    while Instant::now() < end {
        std::thread::sleep(pause);
        tracer.consume(|record| all.receive(record));
    }
    stop.store(true, Ordering::Relaxed);
    for thread in threads {
        let _ = thread.join();
    }
    tracer.detach();
    // A BPF program that was running when it was detached may still be running.
    std::thread::sleep(Duration::from_millis(50));
    tracer.consume(|record| all.receive(record));

    let accounts = tracer.accounts();
    let mut lost = 0;
    for (kind, (accounts, seen)) in accounts.iter().zip(&all.0).enumerate() {
        ensure(accounts.len() >= seen.len() && !seen.is_empty(), || {
            "a CPU without account".into()
        })?;
        for (cpu, account) in accounts {
            let nothing = Seen::default();
            let of = seen.get(cpu).unwrap_or(&nothing);
            // A report of lost scheduling events has the number of events lost since the previous report. A report of
            // lost lifecycle events has the total so far.
            let reported = match kind {
                0 => of.lost.iter().map(|(_, _, count)| count).sum(),
                _ => of
                    .lost
                    .iter()
                    .map(|(_, _, count)| *count)
                    .max()
                    .unwrap_or(0),
            };
            let pending = account.pending.map_or(0, |(count, _, _)| count);
            ensure(reported + pending == account.lost, || {
                format!(
                    "CPU {cpu}: {reported} reported, {pending} not, {} lost",
                    account.lost
                )
            })?;
            ensure(of.recorded + account.lost == account.emitted, || {
                format!(
                    "CPU {cpu}, kind {kind}: {} recorded + {} lost, {} emitted",
                    of.recorded, account.lost, account.emitted
                )
            })?;
            ensure(of.disorder == 0, || {
                format!("CPU {cpu}: {} losses out of place", of.disorder)
            })?;
            ensure(
                of.lost.iter().all(|(since, until, _)| since <= until),
                || format!("{of:?}"),
            )?;
            lost += account.lost;
        }
    }
    Ok(lost)
}

/// The received events of each CPU: first a map of the scheduling events, then one of the lifecycle events.
#[derive(Default)]
struct All([BTreeMap<u16, Seen>; 2]);

impl All {
    fn receive(&mut self, record: Record<'_>) {
        let [sched, life] = &mut self.0;
        match record {
            Record::Sched(cpu, slot) => see_sched(sched.entry(cpu).or_default(), &slot.event(0)),
            Record::Lost(cpu, lost) => {
                let seen = sched.entry(cpu).or_default();
                seen.disorder += u64::from(lost.since < seen.last);
                seen.lost.push((lost.since, lost.until, lost.count));
            }
            Record::Life(record) => see_life(life, record),
        }
    }
}

fn see_sched(seen: &mut Seen, event: &wire::Sched) {
    // An event after a loss must not be earlier than the last lost event.
    let after = seen
        .lost
        .last()
        .is_none_or(|(_, until, _)| *until <= event.time);
    seen.disorder += u64::from(!after || event.time < seen.last);
    seen.recorded += 1;
    seen.last = event.time;
}

fn see_life(life: &mut BTreeMap<u16, Seen>, record: &[u8]) {
    let Ok((head, _)) = wire::Head::read_from_prefix(record) else {
        return;
    };
    let seen = life
        .entry(u16::try_from(head.cpu).unwrap_or(u16::MAX))
        .or_default();
    match wire::LifeLost::read_from_bytes(record) {
        Ok(lost) if head.kind() == wire::Kind::LIFE_LOST => {
            seen.lost.push((head.time, lost.until, lost.count));
        }
        _ => seen.recorded += 1,
    }
}

/// Records all CPUs except the last one from the start, and runs short processes on the last one. Returns the last
/// CPU's events, its reported losses, and the counts of the BPF programs.
fn latecomer(later_cpus: Option<u32>) -> Result<(Seen, CpuAccount), Failed> {
    let last = u16::try_from(common::cpus() - 1)?;
    let settings = Settings {
        cpus: (0..last).collect(),
        later_cpus,
        ..settings(1 << 16)
    };
    let mut tracer = Tracer::start(&settings)?;
    let mut all = All::default();
    for _ in 0..20 {
        let mut load = std::process::Command::new("taskset");
        load.args(["-c", &last.to_string(), "sleep", "0.01"])
            .status()?;
        tracer.consume(|record| all.receive(record));
    }
    tracer.detach();
    std::thread::sleep(Duration::from_millis(50));
    tracer.consume(|record| all.receive(record));
    let [accounts, _] = tracer.accounts();
    let account = accounts.iter().find(|(cpu, _)| *cpu == last);
    let account = account.map(|(_, account)| *account).unwrap_or_default();
    let seen = all.0[0].remove(&last).unwrap_or_default();
    Ok((seen, account))
}

fn later() -> Result<(), Failed> {
    if common::cpus() < 2 {
        return Ok(());
    }
    let (seen, account) = latecomer(Some(1))?;
    let all = || format!("{seen:?}\n{account:?}");
    // This CPU loses only the events before the first time that the rings are read, because that reading gives the CPU
    // its slots.
    let lost: u64 = seen.lost.iter().map(|(_, _, count)| count).sum();
    ensure(seen.recorded > 50 && lost > 0, all)?;
    ensure(lost == account.lost && account.pending.is_none(), all)?;
    ensure(seen.recorded + lost == account.emitted, all)?;
    ensure(seen.disorder == 0 && seen.lost.len() == 1, all)
}

/// Tests that stacks on a CPU that comes online later are sampled, but only after the recorder has requested the
/// sampling on that CPU.
fn sampled() -> Result<(), Failed> {
    if common::cpus() < 2 {
        return Ok(());
    }
    let last = u16::try_from(common::cpus() - 1)?;
    let settings = Settings {
        cpus: vec![0],
        later_cpus: Some(u32::from(last)),
        stacks: Some(Sampling {
            hz: 997,
            wait_least: 0,
            ring: 1 << 20,
        }),
        ..settings(1 << 16)
    };
    let mut tracer = Tracer::start(&settings)?;
    // Runs a program on the last CPU, and returns the number of stack samples from that CPU.
    let load = |tracer: &mut Tracer| -> Result<u64, Failed> {
        let mut load = std::process::Command::new("taskset");
        load.args([
            "-c",
            &last.to_string(),
            "sh",
            "-c",
            "i=0; while [ $i -lt 100000 ]; do i=$((i+1)); done",
        ]);
        load.status()?;
        let mut samples = 0;
        tracer.consume(|record| {
            let Record::Life(record) = record else {
                return;
            };
            let head = wire::Head::read_from_prefix(record).map(|(head, _)| head);
            let is = |head: wire::Head| {
                head.kind() == wire::Kind::LIFE_SAMPLE && head.cpu == u32::from(last)
            };
            samples += u64::from(head.is_ok_and(is));
        });
        Ok(samples)
    };
    let before = load(&mut tracer)?;
    ensure(before == 0, || format!("{before}"))?;
    let newcomers = tracer.newcomers();
    ensure(newcomers.contains(&last), || format!("{newcomers:?}"))?;
    tracer.sample_on(last)?;
    let after = load(&mut tracer)?;
    ensure(after > 10, || format!("{after}"))?;
    ensure(tracer.newcomers().is_empty(), || "twice".to_owned())
}

fn too_late() -> Result<(), Failed> {
    if common::cpus() < 2 {
        return Ok(());
    }
    let (seen, account) = latecomer(Some(0))?;
    let pending = account.pending.map_or(0, |(count, _, _)| count);
    ensure(
        seen.recorded == 0 && pending > 50 && pending == account.emitted,
        || format!("{seen:?}\n{account:?}"),
    )
}

fn left_out() -> Result<(), Failed> {
    if common::cpus() < 2 {
        return Ok(());
    }
    let (seen, account) = latecomer(None)?;
    ensure(
        seen.recorded == 0 && account == CpuAccount::default(),
        || format!("{seen:?}\n{account:?}"),
    )
}

fn tiny() -> Result<(), Failed> {
    let lost = run(4096, Duration::from_millis(7))?;
    ensure(lost > 1000, || format!("only {lost} lost: no test"))
}

fn large() -> Result<(), Failed> {
    let lost = run(4 << 20, Duration::from_millis(20))?;
    ensure(lost == 0, || format!("{lost} lost"))
}

/// Tests the count of processes that cannot be followed because their ids do not fit into the set of followed tasks.
fn overflow() -> Result<(), Failed> {
    let mut target = std::process::Command::new("sh")
        .args(["-c", "read go; for i in 1 2 3 4 5; do /bin/true; done"])
        .stdin(std::process::Stdio::piped())
        .spawn()?;
    let (id, mut stdin) = (target.id(), target.stdin.take());
    let load = |pid_max: u32, then: &mut dyn FnMut(&mut Tracer) -> Result<(), Failed>| {
        let settings = Settings {
            all: false,
            pid_max,
            targets: vec![id],
            ..settings(4096)
        };
        let mut tracer = Tracer::start(&settings)?;
        then(&mut tracer)
    };
    // The set of recorded tasks has a place for each tid below `pid_max`, and the target's tid in the first pid
    // namespace is larger. The target is not recorded, but listing the tasks must end nevertheless.
    let mut tid = 0;
    load(2, &mut |tracer| {
        let tasks = tracer.snapshot()?;
        let found = tasks.iter().find(|task| task.seen_tid == id);
        let found = found.ok_or("the target is not among the living")?;
        tid = found.tid;
        ensure(found.followed == 0 && tracer.follow_overflow() == 1, || {
            format!("{found:?}, {} too many", tracer.follow_overflow())
        })
    })?;
    // The set of recorded tasks now has a place for each tid up to the target's. The target's five children have higher
    // tids, for which the set has no place.
    load(tid + 1, &mut |tracer| {
        let tasks = tracer.snapshot()?;
        let followed = tasks.iter().filter(|task| task.followed != 0);
        let followed: Vec<u32> = followed.map(|task| task.seen_tid).collect();
        ensure(followed == [id], || format!("{followed:?}, not {id}"))?;
        stdin.take().map(|mut pipe| pipe.write_all(b"\n"));
        std::thread::sleep(Duration::from_millis(500));
        let over = tracer.follow_overflow();
        ensure(over == 5, || format!("{over} too many, not 5"))
    })?;
    ensure(target.wait()?.success(), || "the target failed".into())
}

/// Tests that losses are counted if the BPF programs cannot allocate the storage that belongs to a task. For one task,
/// the test makes the programs act as if the allocation had failed.
fn no_storage() -> Result<(), Failed> {
    const ROUNDS: u64 = 50;
    let (start, go) = std::sync::mpsc::channel::<()>();
    let (send, tids) = std::sync::mpsc::channel();
    let thread = std::thread::spawn(move || {
        // SAFETY: a plain system call.
        let tid = unsafe { libc::syscall(libc::SYS_gettid) };
        let _ = send.send(tid);
        let _ = go.recv();
        for _ in 0..ROUNDS {
            std::thread::sleep(Duration::from_millis(1));
        }
    });
    let settings = Settings {
        hidden_tid: u32::try_from(tids.recv()?)?,
        syscalls: true,
        stacks: Some(Sampling {
            hz: 0,
            wait_least: 1,
            ring: 1 << 20,
        }),
        ..settings(1 << 20)
    };
    let mut tracer = Tracer::start(&settings)?;
    tracer.snapshot()?;
    let counts = |tracer: &Tracer| [tracer.call_overflow(), tracer.wait_overflow()];
    let before = counts(&tracer);
    start.send(())?;
    thread.join().map_err(|_| "the thread")?;
    let after = counts(&tracer);
    for (before, after) in before.into_iter().zip(after) {
        let lost = after - before;
        // Each round of the thread loses a call and a wait. A few more are lost at the start and the end of the thread.
        ensure((ROUNDS..ROUNDS + 40).contains(&lost), || {
            format!("{before} to {after}")
        })?;
    }
    Ok(())
}

/// Tests that the verifier follows few instructions, because 100,000 of them take 50 ms of each recording's start.
fn quick() -> Result<(), Failed> {
    // The settings do not request a count of all events, so the object that is compiled for the most common settings is
    // loaded.
    let settings = Settings {
        all: false,
        count_emitted: false,
        ..settings(4096)
    };
    let tracer = Tracer::start(&settings)?;
    let verified = tracer.verified();
    let sum: u32 = verified.iter().map(|program| program.1).sum();
    ensure(sum <= 48_000, || format!("{verified:?}"))
}

/// Tests that every kind of recording can be loaded. The verifier leaves out the code that a kind does not use, and
/// examines the rest.
fn kinds() -> Result<(), Failed> {
    let followed = || Settings {
        all: false,
        ..settings(4096)
    };
    for settings in [
        Settings {
            count_emitted: false,
            ..followed()
        },
        Settings {
            containers: Containers::Mine,
            ..followed()
        },
        Settings {
            containers: Containers::All,
            target_cgroup: Some(1),
            ..followed()
        },
        Settings {
            light: true,
            ..followed()
        },
        Settings {
            light: true,
            ..settings(4096)
        },
    ] {
        let mut tracer = Tracer::start(&settings)?;
        let verified: u32 = tracer.verified().iter().map(|program| program.1).sum();
        println!("{verified} instructions");
        ensure(verified <= 60_000, || format!("{settings:?}: {verified}"))?;
        tracer.snapshot()?;
    }
    Ok(())
}
