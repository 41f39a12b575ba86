//! Tests the critical path, the what-if limits and the parallelism in three ways: with simulated programs whose results
//! are known, by comparison with the recorded events, and by rules that are true for any trace.
#![allow(clippy::indexing_slicing, clippy::unwrap_used, clippy::expect_used)] // tables of the simulator

use std::collections::HashSet;

use proptest::prelude::*;
use tr_analyze::awaited::WaitReason;
use tr_analyze::contention::{Contention, Slices};
use tr_analyze::critical_path::{
    self, critical_path, CriticalPath, NoPath, Segment, Then, TimeKind,
};
use tr_analyze::model::{Analysis, ProcessIx};
use tr_analyze::own::Own;
use tr_analyze::parallelism::{parallelism, Idle, Parallelism};
use tr_analyze::programs::{Group, Groups};
use tr_analyze::timeline::{Actor, Bucket, Wait};
use tr_analyze::what_if::{limits, Limits};
use tr_analyze::{analyze, Options};
use tr_format::event::{Context, Ktime, LifeKind, Reason, SchedKind, Tid, Waking};
use tr_format::reader::Trace;
use tr_format::source::Source;
use tr_programs::program_name::ProgramName;
use tr_sim::blocks::{Cut, Order};
use tr_sim::config::{Config, Follow, Kernel};
use tr_sim::inject::{Late, Plan};
use tr_sim::program::{chan, ms, Arg, Image, Op, World};
use tr_sim::recording::Recording;
use tr_sim::sink::Event;
use tr_sim::strategy::{self, Case};
use tr_sim::timeline;

#[path = "serial/schedule.rs"]
mod schedule;

const MS: u64 = 1_000_000;
/// How far a figure may be from its expected value, in ns. The expected values leave out the time of forks, execs,
/// exits and wake-ups, which is shorter than this in a short run.
const SLACK: u64 = MS;
const CUT: Cut = Cut {
    largest: 100,
    order: Order::Written,
    seed: 1,
};

fn analyzed(recording: &Recording, cut: &Cut) -> Analysis {
    let file = recording.to_file(cut).expect("a file");
    let trace = Trace::open(Source::bytes(file)).expect("a trace");
    let options = Options {
        timeline: true,
        ..Options::default()
    };
    analyze(&trace, &options)
}

/// Sorts the programs into groups by the names of their files. A child before its exec is in its parent's group.
fn by_program(analysis: &Analysis) -> Groups {
    Groups::new(analysis, |_, exec| {
        let path = exec.map(|exec| String::from_utf8_lossy(&exec.filename).into_owned());
        let name = path.as_deref().and_then(|path| path.rsplit('/').next());
        ProgramName::new(name.unwrap_or("?"))
    })
}

// ---- Rules that are true for any trace ----

/// Checks each sleep that an interrupt ended: the analysis says that a time-out ended it if and only if the time-out
/// had passed. The simulator records all time-outs.
fn check_timeouts(analysis: &Analysis) -> Result<(), TestCaseError> {
    let timeline = analysis.timeline.as_ref().unwrap();
    for thread in analysis.thread_ids() {
        let waits = timeline.of(thread);
        let waits = waits.filter(|wait| matches!(wait.reason, Reason::Timer | Reason::Poll));
        // A wait at the beginning of the analyzed span may have begun earlier, so its length is not known.
        let waits = waits.filter(|wait| wait.from > analysis.start);
        for wait in waits.filter(|wait| wait.doing == Bucket::Wait(Wait::Sleep)) {
            // The time-out may be longer than the wait by one sixteenth, because the system call begins before the
            // switch-out.
            let least = wait.timeout.least();
            let passed = least.is_some_and(|least| least <= wait.length() + wait.length() / 16);
            prop_assert!(least.is_some(), "{:?}", wait);
            match wait.waker() {
                Actor::Timeout { asked } => prop_assert!(passed && !asked, "{:?}", wait),
                Actor::Device => prop_assert!(!passed, "{:?}", wait),
                by => prop_assert!(by != Actor::Interrupt, "{:?}", wait),
            }
        }
    }
    Ok(())
}

/// Checks the segments of a path: they follow each other, and each agrees with its thread's timeline. In an `exact`
/// trace no event is missing, so that a wait with a known waker must not be unknown on the path.
fn check_path(analysis: &Analysis, path: &CriticalPath, exact: bool) -> Result<(), TestCaseError> {
    let timeline = analysis.timeline.as_ref().unwrap();
    let mut now = path.from;
    for segment in &path.segments {
        prop_assert_eq!(segment.from, now, "{:?}", segment);
        prop_assert!(segment.to > segment.from, "{:?}", segment);
        now = segment.to;
        // Each segment is compared with the timeline at its two ends and in its middle.
        let middle = segment.from.0 + (segment.to.0 - segment.from.0) / 2;
        for at in [segment.from.0, middle, segment.to.0 - 1] {
            let number = timeline.at(segment.thread, Ktime(at));
            let stretch = number.and_then(|number| timeline.get(segment.thread, number));
            let Some(stretch) = stretch else {
                prop_assert_eq!(segment.kind, TimeKind::Unknown);
                prop_assert!(!exact, "{:?} before its beginning", segment);
                continue;
            };
            if segment.kind == TimeKind::Unknown {
                // Only the path's last segment may end in the middle of a wait.
                let cut = segment.to == path.to;
                let known =
                    matches!(stretch.doing, Bucket::Wait(_)) && stretch.waker() != Actor::Unknown;
                // A wait for descriptors (poll) can also end by a signal. So even a wait with a known waker may have an
                // unknown cause.
                let unproven = stretch.reason == Reason::Poll;
                prop_assert!(
                    !exact || cut || unproven || !known,
                    "{:?} in {:?}",
                    segment,
                    stretch
                );
                continue;
            }
            let fits = match (segment.kind, stretch.doing) {
                (TimeKind::OnCpu, Bucket::OnCpu(_)) => true,
                (TimeKind::OnCpu, Bucket::Unknown) => segment.inferred && !exact,
                (TimeKind::RunQueue, Bucket::RunQueue { .. }) => true,
                (TimeKind::OnCpu | TimeKind::RunQueue, _) => false,
                (TimeKind::Outside, Bucket::Wait(_)) => !stretch.waker().is_timer(),
                (_, Bucket::Wait(_)) => true,
                (_, _) => false,
            };
            prop_assert!(fits, "{:?} in {:?}", segment, stretch);
        }
    }
    prop_assert_eq!(now, path.to);
    let sum: u64 = path.segments.iter().map(Segment::length).sum();
    prop_assert_eq!(sum, path.length());
    for pair in path.segments.windows(2) {
        let same = |s: &Segment| (s.thread, s.program, s.kind, s.inferred);
        prop_assert!(same(&pair[0]) != same(&pair[1]), "not merged: {:?}", pair);
        prop_assert_eq!(
            pair[0].then == Then::Same,
            pair[0].thread == pair[1].thread,
            "{:?}",
            pair
        );
        // A thread that wakes or forks another thread must be running.
        let (by, at) = (pair[0].thread, pair[0].to);
        let other = matches!(pair[0].then, Then::Same | Then::Waited | Then::Awaited);
        prop_assert!(!exact || !pair[0].then_inferred || pair[0].then == Then::Awaited);
        let number = timeline.at(by, Ktime(at.0 - 1)).filter(|_| exact && !other);
        if let Some(stretch) = number.and_then(|number| timeline.get(by, number)) {
            let on = matches!(stretch.doing, Bucket::OnCpu(_));
            prop_assert!(on || stretch.to <= at, "{:?} in {:?}", pair, stretch);
        }
    }
    Ok(())
}

/// Checks the what-if limits: if no work is free, the virtual clock (replayed time) at the path's end shows the
/// recorded time.
fn check_limits(
    analysis: &Analysis,
    path: &CriticalPath,
    groups: &Groups,
) -> Result<(), TestCaseError> {
    let free: Vec<u32> = (0..groups.count() as u32).take(4).collect();
    let limits = limits(analysis, path, groups, &free).expect("a timeline");
    prop_assert_eq!(limits.recorded, path.length(), "the clock of the end");
    prop_assert!(limits.span <= limits.recorded, "{:?}", limits);
    for free in &limits.free {
        prop_assert!(free.at_least <= free.same_waits, "{:?}", limits);
        prop_assert!(free.at_least <= limits.on(limits.cpus), "{:?}", limits);
    }
    Ok(())
}

fn check_parallelism(
    analysis: &Analysis,
    path: Option<&CriticalPath>,
    groups: &Groups,
) -> Result<(), TestCaseError> {
    let is = parallelism(analysis, groups, path, 5, None).expect("a timeline");
    let mut slices = Slices::of_all_times(analysis);
    let same = parallelism(analysis, groups, path, 5, slices.as_mut()).expect("a timeline");
    let contention = slices.map(|slices| slices.finish(analysis));
    prop_assert_eq!(format!("{same:?}"), format!("{is:?}"));
    let alone = Contention::new(analysis);
    prop_assert_eq!(contention.is_some(), alone.is_some());
    if let Some((contention, alone)) = contention.zip(alone) {
        let threads = analysis.thread_ids();
        for wait in threads.flat_map(|thread| Contention::waits(analysis, thread)) {
            prop_assert_eq!(contention.divide(wait), alone.divide(wait));
        }
    }
    let span = analysis.end.since(analysis.start);
    prop_assert_eq!(is.running.iter().sum::<u64>() + is.unknown, span);
    prop_assert_eq!(is.demand.iter().sum::<u64>() + is.unknown, span);
    // `analysis.concurrency` counts the running tasks while the events are read. Both counts must agree.
    let running = |n: usize| is.running.get(n).copied().unwrap_or(0);
    let all = !Own::of(analysis).is_part();
    for (n, time) in analysis
        .concurrency
        .times
        .iter()
        .enumerate()
        .filter(|_| all)
    {
        prop_assert!(
            running(n) <= time + analysis.concurrency.unknown,
            "{} at once",
            n
        );
        prop_assert!(*time <= running(n) + is.unknown, "{} at once", n);
    }
    let ran: u64 = is.alone_by_group.values().map(|sum| sum.ran).sum();
    prop_assert_eq!(ran, running(1));
    let idle: u64 = is.idle.values().sum();
    prop_assert_eq!(idle, running(0));
    prop_assert!(is
        .alone
        .windows(2)
        .all(|pair| pair[0].length() >= pair[1].length()));
    let alone: u64 = is.alone.iter().map(|alone| alone.length()).sum();
    prop_assert!(alone <= is.demand.get(1).copied().unwrap_or(0));
    Ok(())
}

/// Checks the rules that are true for any trace, for every process of the recording.
fn check_all(analysis: &Analysis, exact: bool) -> Result<(), TestCaseError> {
    let groups = by_program(analysis);
    check_parallelism(analysis, None, &groups)?;
    for ix in analysis.process_ids() {
        let path = critical_path(analysis, ix).expect("a path");
        check_path(analysis, &path, exact)?;
        if ix < ProcessIx(12) {
            check_limits(analysis, &path, &groups)?;
            check_parallelism(analysis, Some(&path), &groups)?;
        }
    }
    Ok(())
}

/// Checks each step of the path from one thread to another: the recording must have an event by which the one thread
/// woke or forked the other at that moment.
fn check_links(
    analysis: &Analysis,
    recording: &Recording,
    path: &CriticalPath,
) -> Result<(), TestCaseError> {
    let mut wakings = HashSet::new();
    let mut forks = HashSet::new();
    for event in timeline::in_order(recording) {
        match event {
            Event::Sched(_, event) => {
                if let SchedKind::Waking(Waking {
                    waker,
                    wakee,
                    context: Context::Task | Context::SendSoftIrq,
                    ..
                }) = event.kind
                {
                    wakings.insert((event.time, waker, wakee));
                }
            }
            Event::Life(_, event) => {
                if let LifeKind::Fork(fork) = event.kind {
                    forks.insert((event.time, fork.parent_tid, fork.tid));
                }
            }
        }
    }
    // If a process has several threads, an exec may have given a thread another tid after the event that proves a step
    // of the path. So steps from or to a thread of such a process are not checked.
    let tid = |segment: &Segment| -> Option<Tid> {
        let thread = analysis.thread(segment.thread);
        let process = analysis.process(thread.process);
        (process.threads.len() == 1).then_some(thread.tid)
    };
    for pair in path.segments.windows(2) {
        let (Some(by), Some(of)) = (tid(&pair[0]), tid(&pair[1])) else {
            continue;
        };
        let link = (pair[1].from, by, of);
        let known = match pair[0].then {
            Then::Same | Then::Waited | Then::Awaited => true,
            Then::Forked => forks.contains(&link),
            _ => wakings.contains(&link),
        };
        prop_assert!(known, "{:?}", pair);
    }
    Ok(())
}

fn explain(case: &Case, error: TestCaseError) -> TestCaseError {
    TestCaseError::fail(format!("{error}\n{}", case.draw(400)))
}

proptest! {
    #![proptest_config(strategy::cases(200))]

    /// If no events are lost, the path consists of recorded events, however long after their time stamps, and in
    /// whatever order, events and blocks were written.
    #[test]
    fn without_loss_the_path_is_made_of_what_happened(case in strategy::lossless(3_000_000)) {
        let (mut recording, _) = Recording::record(&case.config);
        let before = recording.clone();
        case.plan.apply(&mut recording);
        let analysis = analyzed(&recording, &case.cut);
        // If many events have equal times, threads can wake each other in a chain at one instant, so only the weaker
        // rules are checked.
        let exact = case.config.grain == 1;
        let timeouts = if exact { check_timeouts(&analysis) } else { Ok(()) };
        let checked = check_all(&analysis, exact).and(timeouts).and_then(|()| {
            analysis.process_ids().filter(|_| exact).try_for_each(|ix| {
                let path = critical_path(&analysis, ix).expect("a path");
                check_links(&analysis, &before, &path)
            })
        });
        checked.map_err(|error| explain(&case, error))?;
    }

    /// If events are lost in some spans, the time of the path in these spans is unknown, and the sums add up.
    #[test]
    fn with_loss_the_path_adds_up(case in strategy::lossy(3_000_000)) {
        let (mut recording, _) = Recording::record(&case.config);
        case.plan.apply(&mut recording);
        check_all(&analyzed(&recording, &case.cut), false).map_err(|error| explain(&case, error))?;
    }

    /// With all kinds of injected faults together, nothing panics, and the sums add up.
    #[test]
    fn whatever_happens_the_path_adds_up(case in strategy::anything(3_000_000)) {
        let (mut recording, _) = Recording::record(&case.config);
        case.plan.apply(&mut recording);
        check_all(&analyzed(&recording, &case.cut), false).map_err(|error| explain(&case, error))?;
    }
}

// ---- Simulated programs whose results are known ----

/// Makes a world of these programs. The first program is COMMAND's. Each program begins with its own exec.
fn world(programs: &[(&str, Vec<Op>)], channels: &[u32]) -> World {
    World {
        name: "serial".to_owned(),
        images: programs
            .iter()
            .map(|(name, _)| Image {
                path: format!("/bin/{name}"),
                args: vec![(*name).to_owned()],
            })
            .collect(),
        programs: programs
            .iter()
            .zip(0..)
            .map(|((_, ops), at)| [vec![Op::Exec(at)], ops.clone()].concat())
            .collect(),
        channels: channels.to_vec(),
        cgroups: 1,
        ..World::default()
    }
}

/// Makes operations that perform `ops` as often as `times` says. In the program, `ops` must come directly after the
/// exec, because the loop goes back to the operation with the number 1.
fn repeat(slot: u8, times: u32, ops: &[Op]) -> Vec<Op> {
    let to = 1;
    [ops.to_vec(), vec![Op::Repeat { slot, times, to }]].concat()
}

const fn run(length: u64) -> Op {
    Op::Run(ms(length, length))
}

const fn fork(program: u16) -> Op {
    Op::Fork(program, Arg::Same)
}

/// The figures that reports show about a run.
struct Answer {
    analysis: Analysis,
    groups: Groups,
    path: CriticalPath,
    limits: Limits,
    parallelism: Parallelism,
}

impl Answer {
    fn of(world: World, cpus: u16) -> Answer {
        Answer::with(&Answer::config(world, cpus), &Plan::default())
    }

    fn config(world: World, cpus: u16) -> Config {
        let mut config = Config::new(world, cpus, 2_000 * MS);
        config.linger = Some(100_000);
        config.kernel = Kernel {
            window: 0,
            late_stamp: 0,
            preempt: 0,
            ..Kernel::default()
        };
        config
    }

    fn with(config: &Config, plan: &Plan) -> Answer {
        let answer = Answer::inexact(config, plan);
        check_path(&answer.analysis, &answer.path, true).unwrap();
        answer
    }

    /// The figures of a recording in which events may be missing.
    fn inexact(config: &Config, plan: &Plan) -> Answer {
        let (mut recording, _) = Recording::record(config);
        plan.apply(&mut recording);
        Answer::to(&recording)
    }

    fn to(recording: &Recording) -> Answer {
        let analysis = analyzed(recording, &CUT);
        let groups = by_program(&analysis);
        let root = critical_path::root(&analysis).expect("COMMAND");
        let path = critical_path(&analysis, root).expect("a path");
        check_limits(&analysis, &path, &groups).unwrap();
        check_parallelism(&analysis, Some(&path), &groups).unwrap();
        let free: Vec<u32> = (0..groups.count() as u32).collect();
        let limits = limits(&analysis, &path, &groups, &free).unwrap();
        let parallelism = parallelism(&analysis, &groups, Some(&path), 10, None).unwrap();
        Answer {
            analysis,
            groups,
            path,
            limits,
            parallelism,
        }
    }

    fn name(&self, segment: &Segment) -> String {
        let process = self.analysis.thread(segment.thread).process;
        let group = self.groups.at(process, segment.from).unwrap();
        self.groups.name(group)
    }

    /// The time that a program is on the path, in those kinds of time that `fits` accepts.
    fn time(&self, program: &str, fits: impl Fn(TimeKind) -> bool) -> u64 {
        let segments = self.path.segments.iter();
        segments
            .filter(|segment| self.name(segment) == program && fits(segment.kind))
            .map(Segment::length)
            .sum()
    }

    fn on_cpu(&self, program: &str) -> u64 {
        self.time(program, |kind| kind == TimeKind::OnCpu)
    }

    /// How many segments of a program are on the path from which the path continues in the way `then`.
    fn links(&self, program: &str, then: Then) -> usize {
        let segments = self.path.segments.iter();
        segments
            .filter(|segment| segment.then == then && self.name(segment) == program)
            .count()
    }

    fn group(&self, program: &str) -> Group {
        let group = self.groups.find(&ProgramName::new(program));
        group.expect("a group")
    }

    fn free(&self, program: &str) -> u64 {
        let group = self.group(program);
        let free = self.limits.free.iter().find(|free| free.group == group);
        free.unwrap().at_least
    }

    fn with_same_waits(&self, program: &str) -> u64 {
        let group = self.group(program);
        let free = self.limits.free.iter().find(|free| free.group == group);
        free.unwrap().same_waits
    }

    /// The program in which the chain of work and waits stays longest, if the work of `program` is assumed to cost
    /// nothing.
    fn decides(&self, program: &str) -> String {
        let group = self.group(program);
        let free = self.limits.free.iter().find(|free| free.group == group);
        let stay = free.unwrap().decides.expect("a stay");
        let process = self.analysis.thread(stay.thread).process;
        let group = self.groups.at(process, stay.at);
        self.groups.name(group.expect("a group"))
    }

    fn alone(&self, program: &str) -> u64 {
        let group = self.group(program);
        let sum = self.parallelism.alone_by_group.get(&group);
        sum.map_or(0, |sum| sum.serial)
    }
}

#[track_caller]
fn about(is: u64, expected: u64) {
    assert!(
        is.abs_diff(expected) <= SLACK,
        "{is} ns, and not about {expected}"
    );
}

/// make runs three steps, one after the other, so all of them are the critical path.
///
/// ```text
/// make _>..___________>..___________>..______
/// step   ====10 ms====  ====10 ms====  ...
/// ```
#[test]
fn a_serial_chain_is_the_path() {
    let make = repeat(0, 3, &[fork(1), Op::Wait]);
    let is = Answer::of(world(&[("make", make), ("step", vec![run(10)])], &[]), 2);
    about(is.path.length(), 30 * MS);
    about(is.on_cpu("step"), 30 * MS);
    assert_eq!(is.links("step", Then::Exited), 3);
    assert_eq!(is.links("make", Then::Forked), 3);
    about(is.free("step"), 0);
    about(is.free("make"), 30 * MS);
    // More CPUs do not help, so the least time on any number of CPUs is the recorded time.
    about(is.limits.span, 30 * MS);
    about(is.alone("step"), 30 * MS);
    assert_eq!(is.parallelism.alone[0].group, is.group("step"));
    about(is.parallelism.alone[0].length(), 10 * MS);
    about(is.parallelism.starved(1), 0);
}

/// Four jobs run on four CPUs. One of them is a little longer, so it is the critical path. If its work took no time,
/// the other jobs would determine the time.
#[test]
fn of_a_fan_out_the_longest_is_the_path() {
    let make = vec![fork(1), fork(1), fork(2), fork(1), Op::WaitAll];
    let programs = [
        ("make", make),
        ("short", vec![run(10)]),
        ("long", vec![run(14)]),
    ];
    let is = Answer::of(world(&programs, &[]), 4);
    about(is.path.length(), 14 * MS);
    about(is.on_cpu("long"), 14 * MS);
    assert_eq!(is.on_cpu("short"), 0);
    about(is.free("long"), 10 * MS);
    about(is.free("short"), 14 * MS);
    assert_eq!(is.decides("long"), "short");
    assert_eq!(is.decides("short"), "long");
    about(is.limits.work, 44 * MS);
    // On two CPUs the sum of the work determines the least time; with many CPUs the longest job does.
    about(is.limits.on(2), 22 * MS);
    about(is.limits.on(100), 14 * MS);
    about(is.parallelism.running[4], 10 * MS);
    about(is.alone("long"), 4 * MS);
}

/// Four jobs share one CPU, so while one of them runs, the others wait for the CPU.
#[test]
fn one_cpu_for_all_is_waited_for() {
    let make = vec![fork(1), fork(1), fork(2), fork(1), Op::WaitAll];
    let programs = [
        ("make", make),
        ("short", vec![run(10)]),
        ("long", vec![run(14)]),
    ];
    let is = Answer::of(world(&programs, &[]), 1);
    about(is.path.length(), 44 * MS);
    // make also had to wait for the CPU before it could fork the long job. So the waits of both programs are added.
    let waits = |kind| kind == TimeKind::RunQueue;
    let waited = is.time("long", waits) + is.time("make", waits);
    about(is.on_cpu("long"), 14 * MS);
    about(waited, 30 * MS);
    about(is.limits.span, 14 * MS);
    about(is.free("short"), 14 * MS);
    // A child may have ended before make waited for it. Then no event shows that make needed the child. So the computed
    // least time on one CPU can be shorter than the recorded time, but never longer.
    assert!(
        (13 * MS..45 * MS).contains(&is.limits.on(1)),
        "{:?}",
        is.limits
    );
    assert!(is.parallelism.starved(1) > 40 * MS);
    about(is.parallelism.running[1], 44 * MS);
}

/// A job server has two tokens, for six jobs on four CPUs. The driver waits for tokens, which the jobs write back
/// before they exit.
#[test]
fn a_jobserver_without_tokens_holds_up_the_driver() {
    let token = chan(0);
    let make = [repeat(0, 6, &[Op::Take(token), fork(1)]), vec![Op::WaitAll]].concat();
    let job = vec![run(10), Op::Post(token)];
    let is = Answer::of(world(&[("make", make), ("job", job)], &[2]), 4);
    about(is.path.length(), 30 * MS);
    about(is.on_cpu("job"), 30 * MS);
    assert_eq!(is.links("job", Then::Woke), 2, "tokens");
    assert_eq!(is.links("job", Then::Exited), 1, "the last one");
    assert_eq!(is.links("make", Then::Forked), 3);
    about(is.limits.span, 30 * MS);
    about(is.limits.work, 60 * MS);
    about(is.parallelism.running[2], 30 * MS);
    about(is.parallelism.starved(2), 0);
}

/// Three builds on four CPUs take turns with one token in a pipe. Builds that are called ninja are clients of a job
/// server, so their waits for the token count as waits for a job slot. Builds that are called server only wait for a
/// pipe.
#[test]
fn job_slots_are_distinguished_from_pipes() {
    let token = chan(0);
    let make = vec![fork(1), fork(1), fork(1), Op::WaitAll];
    let build = vec![Op::Take(token), run(10), Op::Post(token), run(1)];
    for (name, slots) in [("ninja", 2), ("server", 0)] {
        let is = Answer::of(
            world(&[("make", make.clone()), (name, build.clone())], &[1]),
            4,
        );
        about(is.path.length(), 31 * MS);
        assert_eq!(is.links(name, Then::Slot), slots, "{name}");
        assert_eq!(is.links(name, Then::Woke), 2 - slots, "{name}");
        let more = is.limits.more_slots.unwrap_or(is.path.length());
        about(more, if slots > 0 { 11 * MS } else { 31 * MS });
    }
}

/// A thread of cargo starts a rustc and waits for rustc's output (the metadata of a compilation unit). rustc is a
/// client of the job server, too, and goes on after writing the output. But rustc gives no slot back, so the wait is
/// not one for a slot.
#[test]
fn output_of_a_job_is_no_job_slot() {
    let (metadata, done) = (chan(0), chan(1));
    let wait = vec![Op::Thread(2, Arg::Same), Op::Take(done)];
    let rustc = vec![run(10), Op::Post(metadata), run(20)];
    let mut world = world(&[("cargo", wait), ("rustc", rustc)], &[0, 0]);
    let job = vec![
        fork(1),
        Op::Take(metadata),
        run(5),
        Op::WaitAll,
        Op::Post(done),
        Op::Exit(0),
    ];
    world.programs.push(job);
    let is = Answer::of(world, 4);
    about(is.path.length(), 30 * MS);
    assert_eq!(is.links("rustc", Then::Slot), 0);
    let timeline = is.analysis.timeline.as_ref().unwrap();
    let is_first = |thread: &_| {
        let process = is.analysis.thread(*thread).process;
        is.analysis.process(process).threads.first() == Some(thread)
    };
    for thread in is.analysis.thread_ids().filter(|thread| !is_first(thread)) {
        let mut waits = timeline
            .of(thread)
            .filter_map(|wait| is.analysis.awaited(thread, &wait));
        assert!(waits.all(|reason| reason != WaitReason::Slot));
    }
}

/// When the main thread begins to wait for another thread of its process, the other thread is already asleep. The other
/// thread's earlier work does not explain the wait, so the path goes back to the main thread.
#[test]
fn an_idle_thread_does_not_take_the_path() {
    let done = chan(0);
    let main = vec![Op::Thread(1, Arg::Same), run(10), Op::Take(done), run(1)];
    let mut world = world(&[("tool", main)], &[0]);
    let service = vec![Op::Sleep(ms(40, 40)), Op::Post(done), Op::Exit(0)];
    world.programs.push(service);
    let is = Answer::of(world, 2);
    about(is.path.length(), 41 * MS);
    about(is.on_cpu("tool"), 11 * MS);
    about(is.time("tool", |kind| kind == TimeKind::Sleep), 30 * MS);
    assert_eq!(is.links("tool", Then::Waited), 1);
}

/// A client sleeps and then sends a request to a service. During the client's sleep, the service was idle and began to
/// wait for requests. So the path must stay in the client during that sleep.
///
/// ```text
/// main    =10=zzzzzzzz50zzzzzzzz=>..=      asks the service to stop, and waits for that
/// service zzzzz30zzzzz...........==>       path: main's time
/// ```
#[test]
fn a_service_does_not_take_its_clients_sleep() {
    let (ask, done) = (chan(0), chan(1));
    let sleep = |length| Op::Sleep(ms(length, length));
    let main = vec![
        Op::Thread(1, Arg::Same),
        run(10),
        sleep(50),
        Op::Post(ask),
        Op::Take(done),
        run(1),
    ];
    let mut world = world(&[("java", main)], &[0, 0]);
    let service = vec![sleep(30), Op::Take(ask), Op::Post(done), Op::Exit(0)];
    world.programs.push(service);
    let is = Answer::of(world, 2);
    about(is.on_cpu("java"), 11 * MS);
    about(is.time("java", |kind| kind == TimeKind::Sleep), 50 * MS);
}

/// A service sleeps by a timer, again and again, and main waits for it. The service's sleep explains main's wait only
/// if the wait began before the timer fired.
///
/// ```text
/// main    =======|....wait....|===       the service polls, and finds that main has stopped
/// service zz|=|zz|=|zzz|======|          path: the service while main waited, then main
/// ```
#[test]
fn a_periodic_sleeper_takes_the_path_for_the_waits_alone() {
    let sleep = |length| Op::Sleep(ms(length, length));
    let (one, two) = (chan(0), chan(1));
    // Main starts the thread once, so the repetitions begin after that.
    let main = |ops: &[Op]| {
        let (slot, times, to) = (0, 3, 2);
        let again = Op::Repeat { slot, times, to };
        [&[Op::Thread(1, Arg::Same)], ops, &[again]].concat()
    };
    let poll = vec![
        sleep(10),
        Op::Poll(one, 0),
        run(2),
        Op::Post(two),
        Op::Goto(0),
    ];
    let locks = vec![sleep(9), Op::Take(one), run(5), Op::Post(one), Op::Goto(0)];
    let produces = vec![sleep(100), run(5), Op::Post(one), Op::Goto(0)];
    let job = vec![sleep(30), run(20), Op::Post(one), Op::Exit(0)];
    for (what, cpus, posts, main, service, slept) in [
        // The VM thread of a Java VM polls until all threads have stopped. On one CPU the VM thread's timer has fired
        // long before main stops, so the sleep of the VM thread does not explain main's wait.
        (
            "vm thread",
            1,
            0,
            main(&[run(60), Op::Post(one), Op::Take(two)]),
            poll.clone(),
            0..=30,
        ),
        // On two CPUs, main waits three times until the service polls, each time for at most 10 ms.
        (
            "poll",
            2,
            0,
            main(&[run(26), Op::Post(one), Op::Take(two)]),
            poll,
            9..=15,
        ),
        // A watchdog has the lock when main wants it. The watchdog's earlier sleep does not explain main's wait.
        (
            "watchdog",
            2,
            1,
            main(&[Op::Take(one), run(1), Op::Post(one), run(10)]),
            locks,
            0..=1,
        ),
        (
            "producer",
            2,
            0,
            main(&[Op::Take(one), run(2)]),
            produces,
            294..=300,
        ),
        // Main starts this thread as a job and waits for the job's end, so all of the job's time is on the path,
        // including its sleep.
        (
            "job",
            2,
            0,
            vec![Op::Thread(1, Arg::Same), run(40), Op::Take(one), run(1)],
            job,
            30..=31,
        ),
    ] {
        let main = [main, vec![run(4), Op::ExitGroup(0)]].concat();
        let mut world = world(&[("tool", main)], &[posts, 0]);
        world.programs.push(service);
        let is = Answer::of(world, cpus);
        let sum = is.time("tool", |kind| kind == TimeKind::Sleep);
        assert!(
            slept.contains(&(sum / MS)),
            "{what}: {sum} ns, not {slept:?} ms"
        );
    }
}

/// A thread is killed by `exit_group` in the middle of its work. Nothing waited for that work, so it is not on the
/// path.
///
/// ```text
/// main  ==25==zzzz20zzzz==5==x      path: the time of main, in COMMAND or in a child
/// jit   ======================x
/// ```
#[test]
fn a_killed_thread_does_not_take_the_path() {
    let main = vec![
        Op::Thread(2, Arg::Same),
        run(25),
        Op::Sleep(ms(20, 20)),
        run(5),
    ];
    let make = vec![fork(1), Op::Wait, run(1)];
    for (command, child) in [(main.clone(), None), (make, Some(main))] {
        let both = [("tool", command), ("java", child.unwrap_or_default())];
        let mut world = world(&both, &[]);
        world.programs.push(vec![run(3), Op::Goto(0)]);
        let is = Answer::of(world, 3);
        let is_killed = |segment: &Segment| {
            let thread = is.analysis.thread(segment.thread);
            is.analysis.process(thread.process).pid.0 != thread.tid.0
        };
        let killed = is.path.segments.iter().filter(|segment| is_killed(segment));
        let killed: u64 = killed.map(Segment::length).sum();
        assert!(killed < MS, "{killed} ns of {:#?}", is.path);
        let slept = |name| is.time(name, |kind| kind == TimeKind::Sleep);
        about(slept("tool") + slept("java"), 20 * MS);
    }
}

/// Three workers on four CPUs use a byte in a pipe as their lock, so only one of them works at a time.
#[test]
fn a_convoy_through_a_pipe_is_serial() {
    let lock = chan(0);
    let make = vec![fork(1), fork(1), fork(1), Op::WaitAll];
    let worker = repeat(0, 5, &[Op::Take(lock), run(2), Op::Post(lock)]);
    let is = Answer::of(world(&[("make", make), ("worker", worker)], &[1]), 4);
    about(is.path.length(), 30 * MS);
    about(is.on_cpu("worker"), 30 * MS);
    assert!(
        is.links("worker", Then::Woke) >= 12,
        "{:?}",
        is.path.segments
    );
    about(is.alone("worker"), 30 * MS);
    about(is.limits.span, 30 * MS);
    about(is.free("worker"), 0);
}

/// A test sleeps for longer than a parallel job works. So the path leads through the test, and the result names the
/// test.
#[test]
fn a_sleeping_test_is_named() {
    let make = vec![fork(1), fork(2), Op::WaitAll];
    let test = repeat(0, 3, &[run(1), Op::Sleep(ms(40, 40))]);
    let is = Answer::of(
        world(
            &[("make", make), ("job", vec![run(50)]), ("test", test)],
            &[],
        ),
        2,
    );
    about(is.path.length(), 123 * MS);
    about(is.time("test", |kind| kind == TimeKind::Sleep), 120 * MS);
    about(is.on_cpu("test"), 3 * MS);
    assert_eq!(is.on_cpu("job"), 0);
    // The limit without the work of `test` is the job's 50 ms of CPU time, which are not on the path. Limits do not
    // count sleeps, because another run may sleep less. `with_same_waits` does count sleeps.
    about(is.free("test"), 50 * MS);
    about(is.free("job"), 3 * MS);
    about(is.with_same_waits("test"), 120 * MS);
    about(is.with_same_waits("job"), 123 * MS);
    let test = is.groups.find(&ProgramName::new("test"));
    let slept = is.parallelism.idle[&(Idle::Waits(TimeKind::Sleep), test)];
    about(slept, 120 * MS - 48 * MS);
    assert_eq!(is.parallelism.alone[0].group, is.group("job"));
}

/// A driver asks every 3 ms whether its jobs are done. Each build is run three times: with few CPUs, with enough CPUs
/// for all jobs, and without the work of some jobs. The run with few CPUs shows limits: the least times for the other
/// two runs. Neither of the two may be faster than its limit.
#[test]
fn no_run_is_faster_than_a_limit() {
    let done = chan(0);
    for (seed, jobs) in (0..40u64).zip((1..=8u16).cycle()) {
        let length = |n: u64| 1 + (seed * 7 + n * 13) % 29;
        let world = |slow: bool| {
            let polls = [Op::Sleep(ms(3, 3)), Op::Poll(done, jobs + 1)];
            let all = [
                polls.to_vec(),
                vec![Op::Repeat {
                    slot: 1,
                    times: jobs.into(),
                    to: jobs + 1,
                }],
            ];
            let forks = (0..jobs).map(|n| fork(1 + n % 2));
            let make = forks.chain(all.concat()).collect();
            let job = |ns: u64| vec![Op::Run(ms(ns, ns)), Op::Io(ms(1, 1)), Op::Post(done)];
            let other = if slow {
                job(length(2))
            } else {
                vec![Op::Post(done)]
            };
            world(
                &[("make", make), ("job", job(length(1))), ("other", other)],
                &[0],
            )
        };
        let few = Answer::of(world(true), 1 + (seed % 3) as u16);
        let many = Answer::of(world(true), 16);
        let without = Answer::of(world(false), 16);
        // The times of forks and exits count as work of the driver, so the measured time is increased by `SLACK`.
        let measured = |is: &Answer| is.path.length() + SLACK;
        assert!(
            few.limits.span <= measured(&many),
            "{seed}: {:?}",
            few.limits
        );
        if jobs > 1 {
            assert!(
                few.free("other") <= measured(&without),
                "{seed}: {:?}",
                few.limits
            );
        }
    }
}

/// A wait that no task ended is the waiting thread's own time, and has the kind of its cause.
#[test]
fn timers_disks_and_locks_are_kinds_of_their_own() {
    let make = vec![
        run(2),
        Op::Sleep(ms(7, 7)),
        Op::Io(ms(11, 11)),
        Op::Lock(ms(13, 13)),
    ];
    let is = Answer::of(world(&[("make", make)], &[]), 2);
    for (kind, expected) in [
        (TimeKind::OnCpu, 2),
        (TimeKind::Sleep, 7),
        (TimeKind::Disk, 11),
        (TimeKind::Blocked, 13),
    ] {
        about(is.time("make", |is| is == kind), expected * MS);
    }
    assert_eq!(is.time("make", |kind| kind == TimeKind::Unknown), 0);
    about(is.limits.span, 26 * MS);
    about(is.limits.work, 2 * MS);
}

/// A compiler driver starts its compiler with vfork and exec. The path goes through the child, and the child's time
/// before its exec counts as the driver's.
#[test]
fn vfork_leads_to_the_child() {
    let cc = vec![run(1), Op::Vfork(1, Arg::Same), Op::Wait, run(1)];
    let is = Answer::of(world(&[("cc", cc), ("cc1", vec![run(20)])], &[]), 2);
    about(is.path.length(), 22 * MS);
    about(is.on_cpu("cc1"), 20 * MS);
    about(is.on_cpu("cc"), 2 * MS);
    assert_eq!(is.links("cc1", Then::Exited), 1);
    assert_eq!(is.links("cc", Then::Forked), 1);
    // The parent's short wait for the exec of the vfork child is not on the path.
    assert_eq!(is.links("cc", Then::Returned), 0);
}

/// A vfork child lives on after its exec, and no task waits for its end: the parent waited only for the exec.
#[test]
fn a_vfork_parent_waits_for_the_exec() {
    let cc = vec![run(1), Op::Vfork(1, Arg::Same), run(3)];
    // Unlike the programs that `world` makes, the child works before its exec.
    let mut world = world(&[("cc", cc), ("daemon", vec![run(50)])], &[]);
    world.programs[1] = vec![run(5), Op::Exec(1), run(50)];
    let is = Answer::of(world, 2);
    about(is.path.length(), 9 * MS);
    assert_eq!(is.links("cc", Then::Returned), 1);
    about(is.on_cpu("cc"), 9 * MS);
    assert_eq!(is.on_cpu("daemon"), 0);
    // The end of the run did not depend on the daemon's work.
    about(is.limits.work, 9 * MS);
}

/// The path goes from the beginning of a thread to the thread that created it.
#[test]
fn threads_lead_to_their_creators() {
    let done = chan(0);
    let main = vec![run(5), Op::Thread(1, Arg::Same), Op::Take(done), run(1)];
    let mut world = world(&[("tool", main)], &[0]);
    world
        .programs
        .push(vec![run(10), Op::Post(done), Op::Exit(0)]);
    let is = Answer::of(world, 2);
    about(is.path.length(), 16 * MS);
    about(is.on_cpu("tool"), 16 * MS);
    let threads: HashSet<_> = is.path.segments.iter().map(|s| s.thread).collect();
    assert_eq!(threads.len(), 2);
    assert_eq!(is.links("tool", Then::Forked), 1);
}

/// Events that are written long after their time stamps, and in another order, change no figure.
#[test]
fn late_writes_change_nothing() {
    let token = chan(0);
    let make = [repeat(0, 6, &[Op::Take(token), fork(1)]), vec![Op::WaitAll]].concat();
    let job = vec![run(3), Op::Io(ms(1, 2)), Op::Post(token)];
    let config = Answer::config(world(&[("make", make), ("job", job)], &[2]), 4);
    let plain = Answer::with(&config, &Plan::default());
    let late = Plan {
        late: Some(Late {
            per_mille: 300,
            longest: 2_000 * MS,
            life_only: false,
        }),
        ..Plan::default()
    };
    let late = Answer::with(&config, &late);
    assert_eq!(plain.path, late.path);
    assert_eq!(plain.limits, late.limits);
    assert_eq!(plain.parallelism, late.parallelism);
}

/// In a system-wide recording without COMMAND there is no process whose path is that of the recording, and the error
/// says so.
#[test]
fn without_a_command_there_is_a_reason() {
    let make = vec![run(5)];
    let mut config = Answer::config(world(&[("make", make)], &[]), 1);
    config.follow = Follow::All;
    let (recording, _) = Recording::record(&config);
    let mut analysis = analyzed(&recording, &CUT);
    analysis.meta.root = None;
    assert_eq!(critical_path::root(&analysis), Err(NoPath::NoCommand));
    let timeline = analysis.timeline.take();
    assert!(timeline.is_some());
    assert_eq!(
        critical_path(&analysis, ProcessIx(0)),
        Err(NoPath::NoTimeline)
    );
}
