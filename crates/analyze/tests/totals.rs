//! Tests recordings without scheduling events. Such a recording has only running totals of each task's times. Times are
//! differences between two totals, and what the totals do not show stays unknown.
#![allow(clippy::indexing_slicing, clippy::unwrap_used, clippy::expect_used)] // tables of the test

mod hand;

use hand::{at, Hand};
use tr_analyze::critical_path::{by_kind, critical_path, Segment, Then, TimeKind};
use tr_analyze::model::{Analysis, Basis, Process, ProcessIx, ThreadIx, Times};
use tr_analyze::{analyze, Options};
use tr_format::event::{
    Account, Argv, CgroupId, Comm, Detached, Exec, Fork, Ktime, LifeEvent, LifeKind, TaskEnd, Tgid,
    Tid,
};
use tr_format::meta::{Known, Method, Origin, RecordingFacts, Scope};

/// Starts a recording by ptrace. COMMAND has the pid 10.
fn hand(run_queue: Known) -> Hand {
    let mut hand = Hand::new(Scope::Command, 1_000);
    hand.meta.origin = Some(Origin {
        method: Method::Ptrace,
        facts: RecordingFacts {
            switches: Known::Totals,
            wakings: Known::Absent,
            run_queue,
            blocked: Known::Absent,
            ..RecordingFacts::default()
        },
    });
    hand.meta.root = Some(Tgid(10));
    hand.snapshot(0, 10, 10, 1, Some(1));
    hand
}

fn lives(hand: &mut Hand, time: i64, kind: LifeKind) {
    hand.life.push(LifeEvent {
        time: at(time),
        cpu: None,
        kind,
    });
}

fn account(hand: &mut Hand, time: i64, tid: u32, run: u64, delay: Option<u64>) {
    let account = Account {
        tid: Tid(tid),
        tgid: Tgid(tid),
        sum_exec_runtime: run,
        run_delay: delay,
        slices: None,
    };
    lives(hand, time, LifeKind::Account(account));
}

fn fork(hand: &mut Hand, time: i64, parent: u32, tid: u32) {
    let fork = Fork {
        parent_tid: Tid(parent),
        parent_tgid: Tgid(parent),
        tid: Tid(tid),
        tgid: Tgid(tid),
        start_time: Ktime(1),
        ns_tid: Tid(tid),
        cgroup: CgroupId(0),
        comm: Comm::new(b"sh"),
    };
    lives(hand, time, LifeKind::Fork(fork));
}

fn exec(hand: &mut Hand, time: i64, tid: u32, name: &str) {
    let exec = Exec {
        tid: Tid(tid),
        tgid: Tgid(tid),
        old_tid: Tid(tid),
        comm: Comm::new(name.as_bytes()),
        filename: name.as_bytes().into(),
        argv: Argv::from_args([name]),
        ..Exec::default()
    };
    lives(hand, time, LifeKind::Exec(exec));
}

fn end(hand: &mut Hand, time: i64, tid: u32) {
    let end = TaskEnd {
        tid: Tid(tid),
        tgid: Tgid(tid),
        status: Some(0x300),
        group_dead: true,
        max_rss: None,
    };
    lives(hand, time, LifeKind::End(end));
}

fn analyzed(hand: &Hand) -> Analysis {
    let options = Options {
        timeline: true,
        ..Options::default()
    };
    let analysis = analyze(&hand.trace(), &options);
    assert_eq!(analysis.quality.anomalies, Vec::new());
    analysis
}

fn process(analysis: &Analysis, pid: u32) -> (ProcessIx, &Process) {
    let mut all = analysis.process_ids().map(|ix| (ix, analysis.process(ix)));
    all.find(|(_, process)| process.pid == Tgid(pid))
        .expect("the process")
}

fn totals(on_cpu: u64, run_queue: u64, asleep_or_blocked: u64, unknown: u64) -> Times {
    Times {
        on_cpu,
        run_queue,
        asleep_or_blocked,
        unknown,
        basis: Basis::Totals,
        ..Times::default()
    }
}

/// A build of one compiler by make.
///
/// ```text
/// 10  |--make----------------------------|
/// 11        |--sh--|--cc1-----------|
/// ```
fn build(run_queue: Known, delay: bool) -> Hand {
    let mut hand = hand(run_queue);
    let delay = |ns: u64| delay.then_some(ns);
    account(&mut hand, 0, 10, 5_000, delay(70));
    account(&mut hand, 100, 10, 5_010, delay(75));
    exec(&mut hand, 100, 10, "make");
    fork(&mut hand, 200, 10, 11);
    account(&mut hand, 300, 11, 40, delay(10));
    exec(&mut hand, 300, 11, "cc1");
    account(&mut hand, 800, 11, 440, delay(60));
    end(&mut hand, 800, 11);
    account(&mut hand, 900, 10, 5_110, delay(95));
    end(&mut hand, 900, 10);
    hand
}

#[test]
fn times_are_differences_of_totals() {
    let analysis = analyzed(&build(Known::Totals, true));
    let (_, make) = process(&analysis, 10);
    // The totals at the beginning of the recording (5000 and 70 ns) are subtracted.
    assert_eq!(make.times, totals(110, 25, 765, 0));
    assert_eq!(make.execs[0].times, totals(100, 20, 680, 0));
    let (_, cc1) = process(&analysis, 11);
    assert_eq!(cc1.times, totals(440, 60, 100, 0));
    assert_eq!(cc1.execs[0].times, totals(400, 50, 50, 0));
    assert_eq!((cc1.status, cc1.alive), (Some(0x300), false));
    assert_eq!(cc1.times.sleep_known(), None);
    assert_eq!(cc1.times.blocked_known(), None);
    assert_eq!(cc1.times.run_queue_known(), Some(60));
    assert_eq!(analysis.concurrency.unknown, 1_000);
    assert_eq!(analysis.totals.exits, 2);
}

#[test]
fn without_run_delays_only_run_times_are_known() {
    let analysis = analyzed(&build(Known::Absent, false));
    let (_, cc1) = process(&analysis, 11);
    assert_eq!((cc1.times.on_cpu, cc1.times.unknown), (440, 160));
    assert_eq!(cc1.times.run_queue_known(), None);
    assert_eq!(cc1.times.asleep_or_blocked_known(), None);
}

/// The recorder stamps a fork after the child has begun to run. So the child's first totals are larger than the time
/// since the fork. The excess is counted in the interval up to the next reading of totals.
#[test]
fn totals_beyond_the_time_count_in_the_next_part() {
    let mut hand = hand(Known::Totals);
    fork(&mut hand, 200, 10, 11);
    account(&mut hand, 210, 11, 30, Some(5));
    exec(&mut hand, 210, 11, "true");
    account(&mut hand, 300, 11, 60, Some(5));
    end(&mut hand, 300, 11);
    let analysis = analyzed(&hand);
    let (_, child) = process(&analysis, 11);
    assert_eq!(child.times, totals(60, 5, 35, 0));
}

/// Task 11 is forked at 200, and its totals are read at these times. The total at 230 lags by 5 ns.
///
/// ```text
/// time      200   210       230       250       270       310, end
/// ran         0    10        20        45        50        50
/// ```
#[test]
fn samples_tile_the_time_and_add_up() {
    let mut hand = hand(Known::Totals);
    fork(&mut hand, 200, 10, 11);
    account(&mut hand, 210, 11, 10, Some(0));
    exec(&mut hand, 210, 11, "cc1");
    account(&mut hand, 230, 11, 20, Some(0));
    account(&mut hand, 250, 11, 45, Some(0));
    account(&mut hand, 270, 11, 50, Some(3));
    account(&mut hand, 290, 11, 50, Some(3));
    account(&mut hand, 310, 11, 50, Some(3));
    end(&mut hand, 310, 11);
    let analysis = analyzed(&hand);
    let (ix, child) = process(&analysis, 11);
    assert_eq!(child.times, totals(50, 3, 57, 0));
    assert_eq!(child.execs[0].times, totals(40, 3, 57, 0));
    let thread = analysis
        .threads
        .iter()
        .position(|thread| thread.process == ix);
    let samples = analysis.samples_of(ThreadIx(thread.unwrap() as u32)).iter();
    let parts = samples.map(|sample| {
        (
            sample.from.0,
            sample.on_cpu,
            sample.run_queue,
            sample.off_cpu,
            sample.length(),
        )
    });
    let want = [
        (at(200).0, 10, 0, 0, 10),
        (at(210).0, 15, 0, 5, 20),
        (at(230).0, 20, 0, 0, 20),
        (at(250).0, 5, 3, 12, 20),
        (at(270).0, 0, 0, 40, 40),
    ];
    assert_eq!(parts.collect::<Vec<_>>(), want);
}

#[test]
fn a_task_without_an_account_is_unknown() {
    let mut hand = hand(Known::Totals);
    fork(&mut hand, 200, 10, 11);
    end(&mut hand, 700, 11);
    fork(&mut hand, 750, 10, 12);
    account(&mut hand, 800, 12, 20, Some(10));
    let detached = Detached {
        tid: Tid(12),
        tgid: Tgid(12),
    };
    lives(&mut hand, 800, LifeKind::Detached(detached));
    let analysis = analyzed(&hand);
    let (_, unseen) = process(&analysis, 11);
    assert_eq!(unseen.times, totals(0, 0, 0, 500));
    assert_eq!(unseen.times.on_cpu_known(), None);
    // The recorder stopped tracing task 12 at 800. The task's totals up to that time are known.
    let (_, gone) = process(&analysis, 12);
    assert_eq!(gone.times, totals(20, 10, 20, 200));
    assert!(gone.alive);
}

/// The analyzed span begins and ends between two readings of totals. Such an interval does not count, because the
/// totals do not show which part of the interval is in the span.
#[test]
fn a_window_keeps_whole_parts_only() {
    let trace = build(Known::Totals, true).trace();
    let options = Options {
        from: Some(250),
        to: Some(850),
        ..Options::default()
    };
    let analysis = analyze(&trace, &options);
    let (_, cc1) = process(&analysis, 11);
    assert_eq!(cc1.times, totals(400, 50, 50, 50));
    let (_, make) = process(&analysis, 10);
    assert_eq!(make.times, totals(0, 0, 0, 600));
}

#[test]
fn the_path_follows_forks_and_ends() {
    let analysis = analyzed(&build(Known::Totals, true));
    let (root, _) = process(&analysis, 10);
    let path = critical_path(&analysis, root).unwrap();
    let steps: Vec<_> = path
        .segments
        .iter()
        .map(|segment| {
            (
                analysis.thread(segment.thread).tid.0,
                segment.length(),
                segment.kind,
                segment.then,
            )
        })
        .collect();
    assert_eq!(
        steps,
        [
            (10, 50, TimeKind::OnCpu, Then::Same),
            (10, 10, TimeKind::RunQueue, Then::Same),
            (10, 40, TimeKind::SleepOrBlocked, Then::Forked),
            (11, 40, TimeKind::OnCpu, Then::Same),
            (11, 10, TimeKind::RunQueue, Then::Same),
            (11, 50, TimeKind::SleepOrBlocked, Then::Same),
            (11, 400, TimeKind::OnCpu, Then::Same),
            (11, 50, TimeKind::RunQueue, Then::Same),
            (11, 50, TimeKind::SleepOrBlocked, Then::Exited),
            (10, 50, TimeKind::OnCpu, Then::Same),
            (10, 10, TimeKind::RunQueue, Then::Same),
            (10, 40, TimeKind::SleepOrBlocked, Then::Same),
        ]
    );
    // While the path is in make's child, it is not in make. So only a part of make's time is on the path, and this part
    // is inferred. The child is on the path with all of its time.
    let inferred = |segment: &Segment| (analysis.thread(segment.thread).tid.0, segment.inferred);
    let mut known: Vec<_> = path.segments.iter().map(inferred).collect();
    known.dedup();
    assert_eq!(known, [(10, true), (11, false), (10, true)]);
}

/// If the totals have no run-queue times, the path does not invent any.
#[test]
fn without_run_delays_the_path_knows_times_on_a_cpu_alone() {
    let analysis = analyzed(&build(Known::Absent, false));
    let (root, _) = process(&analysis, 10);
    let path = critical_path(&analysis, root).unwrap();
    let spent = by_kind(&path.segments);
    assert_eq!(
        (spent.of(TimeKind::OnCpu), spent.of(TimeKind::Lived)),
        (540, 260)
    );
    assert_eq!(spent.sum(), 800);
}

/// The kernel reports the last totals of a task after its end.
///
/// ```text
/// 10 |-------------- account ----------------- account, end of the recording
/// 20   fork, exec -------------------- end        last totals
/// 30   there before, account --------- end        last totals
/// ```
#[test]
fn the_last_totals_come_after_the_end() {
    let mut hand = hand(Known::Totals);
    hand.snapshot(0, 30, 30, 1, Some(1));
    account(&mut hand, 1, 30, 5_000, Some(700));
    fork(&mut hand, 100, 10, 20);
    exec(&mut hand, 110, 20, "cc");
    end(&mut hand, 500, 20);
    end(&mut hand, 600, 30);
    // Task 20 has further totals: those at its exit (180), the kernel's last ones (200), and older ones (150) that
    // were read earlier but written later.
    for run in [180, 200, 150] {
        account(&mut hand, 700 + run as i64, 20, run, Some(60));
    }
    account(&mut hand, 950, 30, 5_100, Some(720));
    let analysis = analyzed(&hand);
    let (_, cc) = process(&analysis, 20);
    assert_eq!(cc.times, totals(200, 60, 140, 0));
    assert_eq!(cc.execs[0].times.on_cpu, 200);
    let (_, daemon) = process(&analysis, 30);
    assert_eq!(daemon.times, totals(100, 20, 479, 1));
}
