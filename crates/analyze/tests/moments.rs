//! Single moments of simulated runs that the analysis once got wrong. Each is drawn, and is built from its events. In
//! most of them, events of several CPUs have one time stamp, and only the states of the tasks show their order.
//!
//! In the drawings, `10` is the task with the tid 10, `=` means that it is on a CPU, `_` is an idle CPU, `f11` is a
//! fork of the task 11, `+11` its first waking, `>11` a waking of it, `e10` an exec by which the task gets the tid 10,
//! `s` the beginning of a sleep, `w` a waking by another task, and `x` an exit. Events of a CPU are missing at `LOST`.
#![allow(clippy::indexing_slicing, clippy::unwrap_used, clippy::expect_used)] // tables of the test

mod hand;

use hand::{at, Hand, BLOCKED, DEAD, RUNNING, SLEEPS};
use tr_analyze::contention::{Contention, Division, Occupant};
use tr_analyze::critical_path::{by_kind, critical_path, TimeKind};
use tr_analyze::jobs::Tools;
use tr_analyze::model::{Analysis, Causes, Thread, ThreadIx, Times};
use tr_analyze::parallelism::parallelism;
use tr_analyze::programs::Groups;
use tr_analyze::timeline::{Actor, Bucket, Wait};
use tr_analyze::{analyze, Options};
use tr_format::event::{
    Comm, CpuId, LifeKind, Others, Outsider, Reason, Reclaim, SchedKind, Share, Switch, Tgid, Tid,
    Timeout,
};
use tr_format::meta::Scope;
use tr_programs::program_name::ProgramName;

/// Analyzes a trace, and checks that it contains no contradictions.
fn analyzed(hand: &Hand) -> Analysis {
    let analysis = analyze(&hand.trace(), &Options::default());
    assert_eq!(analysis.quality.anomalies, Vec::new());
    analysis
}

fn thread(analysis: &Analysis, tid: u32) -> &Thread {
    let mut all = analysis.threads.iter().filter(|t| t.tid == Tid(tid));
    let found = all.next().expect("the thread");
    assert!(all.next().is_none(), "two of {tid}");
    found
}

fn on_cpu(on_cpu: u64) -> Times {
    Times {
        on_cpu,
        ..Times::default()
    }
}

/// The time on a CPU of all threads with one of these tids.
fn on_cpu_of(analysis: &Analysis, tids: &[u32]) -> u64 {
    let all = analysis.threads.iter();
    let named = all.filter(|thread| tids.contains(&thread.tid.0));
    named.map(|thread| thread.times.on_cpu).sum()
}

/// The time in ns in which exactly `running` tasks were on a CPU.
fn at_once(analysis: &Analysis, running: usize) -> u64 {
    analysis
        .concurrency
        .times
        .get(running)
        .copied()
        .unwrap_or(0)
}

/// A parent begins to wait for its vfork child, and the child exits at the same time.
///
/// ```text
/// cpu0 =10=f11+11____     waits for the vfork child
/// cpu1           11==x11  the child's exit has the time stamp of the wait
/// ```
#[test]
fn a_vfork_childs_exit_comes_after_the_wait_with_its_stamp() {
    let mut hand = Hand::new(Scope::Command, 1_000);
    hand.snapshot(-10, 10, 10, 1, None)
        .fork(0, 100, 10, 11, 11)
        .first_waking(0, 110, 10, 11, true)
        .switch(1, 120, 0, RUNNING, 11)
        .switch(0, 200, 10, BLOCKED, 0)
        .exit(1, 200, 11, 11, true);
    let analysis = analyzed(&hand);
    let vfork = Causes {
        vfork: 800,
        ..Causes::default()
    };
    assert_eq!(thread(&analysis, 10).causes, vfork);
}

/// A vfork child was forked before the recording, and its first waking is in the recording. The task that wakes the
/// child must then be the child's parent, which waits for the child.
#[test]
fn the_first_waker_of_a_vfork_child_waits_for_it() {
    let mut hand = Hand::new(Scope::Command, 1_000);
    hand.snapshot(-20, 10, 10, 1, None)
        .snapshot(-10, 11, 11, 10, Some(RUNNING))
        .first_waking(0, 110, 10, 11, true)
        .switch(1, 120, 0, RUNNING, 11)
        .switch(0, 200, 10, BLOCKED, 0);
    assert_eq!(thread(&analyzed(&hand), 10).causes.vfork, 800);
}

/// A task may have been on its CPU when it was woken.
///
/// ```text
/// cpu0 =10=>11
/// cpu1 =11======____      11 was on its CPU when 10 woke it
/// ```
#[test]
fn the_first_waking_of_a_task_does_not_prove_that_it_slept() {
    // The recorder's snapshot of task 11 shows that the task was on a CPU, so the waking before the snapshot did not
    // end a sleep.
    let mut hand = Hand::new(Scope::All, 1_000);
    hand.waking(0, -50, 10, 11)
        .snapshot(-20, 10, 10, 1, None)
        .snapshot(-10, 11, 11, 1, None)
        .switch(1, 300, 11, SLEEPS, 0);
    let slept = Times {
        sleep: 700,
        ..on_cpu(300)
    };
    // The analysis may also leave open whether the waking ended the sleep that began with the switch-out.
    let unclear = Times {
        unknown: 700,
        ..on_cpu(300)
    };
    let times = thread(&analyzed(&hand), 11).times;
    assert!(times == slept || times == unclear, "{times:?}");

    // If task 11 was switched out before the recorder took its snapshot, it slept.
    let mut hand = Hand::new(Scope::All, 1_000);
    hand.waking(0, -50, 10, 11)
        .switch(1, -40, 11, SLEEPS, 0)
        .snapshot(-20, 10, 10, 1, None)
        .snapshot(-10, 11, 11, 1, Some(SLEEPS))
        .waking(0, 400, 10, 11)
        .switch(1, 500, 0, RUNNING, 11);
    let times = Times {
        sleep: 400,
        run_queue: 100,
        ..on_cpu(500)
    };
    assert_eq!(thread(&analyzed(&hand), 11).times, times);
}

/// All known threads of a process have ended, and the last exit says that the process has ended (`group_dead`). But
/// another thread of the process, which had begun to exit earlier, gets its snapshot only after that last exit.
#[test]
fn threads_with_late_snapshots_belong_to_their_process() {
    let mut hand = Hand::new(Scope::All, 1_000);
    hand.exit(0, -60, 10, 10, true)
        .switch(0, -50, 10, DEAD, 0)
        .last(0, -50, 10)
        .snapshot(-30, 11, 10, 1, None)
        .exit(1, -20, 11, 10, false)
        .switch(1, 100, 11, DEAD, 0)
        .last(1, 100, 11);
    let analysis = analyzed(&hand);
    assert_eq!(analysis.processes.len(), 1);
    assert_eq!(analysis.processes[0].resources.faults, Some((2, 0)));
    assert_eq!(analysis.processes[0].status, Some(0));
}

/// The fork, the first waking and the child's switch-in have one time stamp.
///
/// ```text
/// cpu0 =10=f11+11=        forks and wakes 11
/// cpu1         11==____
/// ```
#[test]
fn a_first_waking_comes_before_the_switch_in_with_its_stamp() {
    let mut hand = Hand::new(Scope::Command, 1_000);
    hand.snapshot(-10, 10, 10, 1, Some(SLEEPS))
        .waking(1, 90, 0, 10)
        .switch(1, 100, 0, RUNNING, 10)
        .fork(1, 100, 10, 11, 11)
        .first_waking(1, 100, 10, 11, false)
        .switch(0, 100, 0, RUNNING, 11)
        .switch(0, 300, 11, SLEEPS, 0);
    let times = Times {
        sleep: 700,
        ..on_cpu(200)
    };
    assert_eq!(thread(&analyzed(&hand), 11).times, times);
}

/// Task 11 is recorded and ends. An unrecorded task gets its tid, and is switched out when task 10 comes to the CPU.
#[test]
fn a_tid_may_pass_to_a_task_that_is_not_recorded() {
    let mut hand = Hand::new(Scope::Command, 1_000);
    hand.snapshot(-20, 10, 10, 1, Some(SLEEPS))
        .snapshot(-10, 11, 11, 1, None)
        .exit(0, 100, 11, 11, true)
        .switch(0, 110, 11, DEAD, 0)
        .last(0, 110, 11)
        .waking(1, 500, 12, 10)
        .switch(2, 600, 11, SLEEPS, 10);
    let times = Times {
        sleep: 500,
        run_queue: 100,
        ..on_cpu(400)
    };
    assert_eq!(thread(&analyzed(&hand), 10).times, times);
}

/// Task 11 is recorded and ends. An unrecorded task gets its tid and wakes task 10. The waker must not be taken for the
/// dead task.
#[test]
fn a_dead_task_wakes_no_task() {
    let mut hand = Hand::new(Scope::Command, 1_000);
    hand.snapshot(-20, 10, 10, 1, Some(SLEEPS))
        .snapshot(-10, 11, 11, 1, None)
        .exit(0, 100, 11, 11, true)
        .switch(0, 110, 11, DEAD, 0)
        .last(0, 110, 11)
        .waking(1, 500, 11, 10)
        .switch(2, 600, 0, RUNNING, 10);
    let options = Options {
        timeline: true,
        ..Options::default()
    };
    let analysis = analyze(&hand.trace(), &options);
    assert_eq!(analysis.quality.anomalies, Vec::new());
    assert_eq!(thread(&analysis, 10).max_off_cpu, Some(600));
    let timeline = analysis.timeline.as_ref().unwrap();
    let slept = timeline.get(ThreadIx(0), 0).unwrap();
    assert_eq!(
        (slept.to, slept.waker()),
        (at(500), Actor::Outside(Tid(11)))
    );
}

/// Task 11 executes a program and is switched out, with one time stamp. The exec is read after the switch-out, because
/// it is in the stream of lifecycle events, after the final figures of task 10.
#[test]
fn an_exec_may_be_read_after_the_switch_out_with_its_stamp() {
    let mut hand = Hand::new(Scope::Command, 1_000);
    hand.snapshot(-30, 10, 10, 1, None)
        .snapshot(-20, 11, 11, 1, None)
        .exit(0, 100, 10, 10, true)
        .switch(0, 500, 10, DEAD, 0)
        .last(0, 500, 10)
        .exec(1, 500, 11, 11)
        .switch(1, 500, 11, RUNNING, 0);
    let times = Times {
        run_queue: 500,
        ..on_cpu(500)
    };
    assert_eq!(thread(&analyzed(&hand), 11).times, times);
}

/// Task 10 is woken at the time of its switch-in. So its later switch-out is not a preemption: the waking came while
/// task 10 was about to sleep.
///
/// ```text
/// cpu0 ==10......10=__
/// cpu1           >10
/// ```
#[test]
fn a_waking_with_the_stamp_of_the_switch_in_may_come_after_it() {
    let mut hand = Hand::new(Scope::Command, 1_000);
    hand.snapshot(-30, 10, 10, 1, None)
        .preempt(0, 100, 10, SLEEPS, 0)
        .switch(0, 300, 0, RUNNING, 10)
        .waking(1, 300, 12, 10)
        .switch(0, 400, 10, RUNNING, 0);
    let analysis = analyzed(&hand);
    let times = Times {
        run_queue: 800,
        ..on_cpu(200)
    };
    assert_eq!(thread(&analysis, 10).times, times);
    assert_eq!(thread(&analysis, 10).causes.preempted, 200);
}

/// Task 12 was a child of an earlier task 10, whose pid was used again while the recorder took the snapshots. So the
/// new task 10 is not the parent of task 12.
#[test]
fn a_snapshots_parent_is_not_a_task_forked_later() {
    let mut hand = Hand::new(Scope::All, 1_000);
    hand.snapshot(-90, 11, 11, 1, None)
        .fork(0, -50, 11, 10, 10)
        .first_waking(0, -40, 11, 10, false)
        .snapshot(-30, 12, 12, 10, Some(SLEEPS));
    let analysis = analyzed(&hand);
    let child = analysis.processes.iter().find(|p| p.pid == Tgid(12));
    assert_eq!(child.unwrap().parent, None);
}

/// A waking by tid 11 and an exec by which this task gets the tid 10 have one time stamp.
///
/// ```text
/// cpu0 =11=>12 e10        11 wakes 12, and then has the tid 10
/// ```
#[test]
fn a_tid_that_an_exec_has_left_is_still_known_with_its_stamp() {
    let mut hand = Hand::new(Scope::All, 1_000);
    hand.snapshot(-30, 11, 10, 1, None)
        .snapshot(-20, 12, 12, 1, Some(SLEEPS))
        .waking(0, 100, 11, 12)
        .exec(0, 100, 11, 10)
        .switch(0, 300, 10, SLEEPS, 0);
    let analysis = analyzed(&hand);
    assert_eq!(analysis.threads.len(), 2);
    assert_eq!(thread(&analysis, 10).times.on_cpu, 300);
}

/// A file is cut off after a watermark at 500. A watermark only promises that all events before its time are in the
/// file. Of the two events at 500 itself, the waking is missing and the later switch-in is there.
#[test]
fn a_cut_off_file_ends_before_its_last_watermark() {
    let mut hand = Hand::new(Scope::Command, 0);
    hand.end = None;
    hand.snapshot(-30, 10, 10, 1, None)
        .switch(0, 100, 10, SLEEPS, 0)
        .switch(0, 500, 0, RUNNING, 10)
        .recorder_event(500, LifeKind::Watermark);
    let times = Times {
        sleep: 400,
        ..on_cpu(100)
    };
    assert_eq!(thread(&analyzed(&hand), 10).times, times);
}

/// Only an exec shows that a task has moved to another CPU, because both CPUs have lost events.
///
/// ```text
/// cpu0 =10=====LOST
/// cpu1 LOST==e10==LOST
/// ```
#[test]
fn an_exec_shows_the_cpu_of_its_task() {
    let mut hand = Hand::new(Scope::Command, 1_000);
    hand.snapshot(-30, 10, 10, 1, Some(RUNNING))
        .switch(0, 50, 11, RUNNING, 10)
        .lost(0, 200, 300)
        .lost(1, 250, 800)
        .exec(1, 400, 10, 10);
    let analysis = analyzed(&hand);
    // The task may have left cpu1 right after the exec, so its time there stays unknown.
    assert!(thread(&analysis, 10).times.on_cpu <= 200);
}

/// Two CPUs switch to task 10 at the same time. The last switch-in is the one on the CPU where the task stays (cpu0),
/// although the switches of cpu1 are read first.
///
/// ```text
/// cpu0 =11........10=
/// cpu1 =12=10=12=====
/// ```
#[test]
fn of_two_switch_ins_with_one_stamp_the_one_that_stays_is_last() {
    let mut hand = Hand::new(Scope::Command, 1_000);
    hand.snapshot(-30, 10, 10, 1, Some(RUNNING))
        .snapshot(-20, 11, 11, 1, None)
        .snapshot(-10, 12, 12, 1, Some(RUNNING))
        .switch(1, 50, 0, RUNNING, 12)
        .preempt(1, 500, 12, RUNNING, 10)
        .preempt(1, 500, 10, RUNNING, 12)
        .switch(0, 500, 11, SLEEPS, 10);
    let analysis = analyzed(&hand);
    assert_eq!(thread(&analysis, 10).times.on_cpu, 500);
    assert_eq!(thread(&analysis, 12).times.on_cpu, 950);
}

/// Several CPUs switch to the same tasks at 200. The last one that switches to task 13 is cpu1, where it stays,
/// although task 13 also takes cpu2 from task 14. Task 14 seems to sleep, because its waking and its switch-out on
/// cpu3 have one time stamp.
///
/// ```text
/// cpu0 =10=======>13==
/// cpu1 =11=======>12=13===
/// cpu2 =12=>14===14=13=12=
/// cpu3 =14=_______________
/// ```
#[test]
fn of_several_switch_ins_with_one_stamp_the_one_that_stays_is_last() {
    let mut hand = Hand::new(Scope::All, 1_000);
    for (cpu, tid) in [(0, 10), (1, 11), (2, 12), (3, 14)] {
        hand.snapshot(-30, tid, tid, 1, Some(RUNNING))
            .switch(cpu, 50, 0, RUNNING, tid);
    }
    hand.snapshot(-20, 13, 13, 1, Some(SLEEPS))
        .waking(2, 150, 12, 14)
        .switch(3, 150, 14, SLEEPS, 0)
        .switch(2, 200, 12, SLEEPS, 14)
        .waking(0, 200, 10, 13)
        .preempt(2, 200, 14, RUNNING, 13)
        .waking(1, 200, 11, 12)
        .preempt(2, 200, 13, RUNNING, 12)
        .switch(1, 200, 11, SLEEPS, 13);
    let analysis = analyzed(&hand);
    assert_eq!(thread(&analysis, 13).times.on_cpu, 800);
    assert_eq!(thread(&analysis, 12).times.on_cpu, 950);
    assert_eq!(thread(&analysis, 14).times.on_cpu, 100);
}

/// A parent's switch-in, its fork of a vfork child, and the end of its wait for the child have one time stamp.
///
/// ```text
/// cpu0 ______________11>10=10____    the child wakes its parent, which then sleeps
/// cpu1 =10=__10=f11+11____________   the parent waits for its vfork child
/// ```
#[test]
fn a_fork_comes_after_its_parents_switch_in() {
    let mut hand = Hand::new(Scope::Command, 1_000);
    hand.snapshot(-30, 10, 10, 1, Some(RUNNING))
        .switch(1, 50, 0, RUNNING, 10)
        .switch(1, 100, 10, RUNNING, 0)
        .switch(1, 200, 0, RUNNING, 10)
        .fork(1, 200, 10, 11, 11)
        .first_waking(1, 200, 10, 11, true)
        .switch(1, 200, 10, BLOCKED, 0)
        .switch(0, 200, 0, RUNNING, 11)
        .waking(0, 200, 11, 10)
        .switch(0, 200, 11, DEAD, 10)
        .switch(0, 200, 10, SLEEPS, 0);
    assert_eq!(thread(&analyzed(&hand), 10).times.sleep, 800);
}

/// A lost exec gives task 11 the tid 10, and a new task gets the tid 11.
///
/// ```text
/// cpu0 =11===============     has the tid 10 after the lost exec
/// cpu1 =10x=12=+11=======
/// cpu2          __11==___     the new task 11
/// ```
#[test]
fn a_tid_that_a_lost_exec_has_left_may_be_used_again() {
    let mut hand = Hand::new(Scope::All, 1_000);
    hand.snapshot(-30, 10, 10, 1, None)
        .snapshot(-20, 11, 10, 1, Some(RUNNING))
        .snapshot(-10, 12, 12, 1, Some(RUNNING))
        .switch(0, 50, 0, RUNNING, 11)
        .lives_lost(100, 900)
        .switch(1, 200, 10, DEAD, 12)
        .first_waking(1, 400, 12, 11, false)
        .switch(2, 410, 0, RUNNING, 11)
        .switch(2, 600, 11, SLEEPS, 0);
    let analysis = analyzed(&hand);
    assert_eq!(on_cpu_of(&analysis, &[10]), 200);
    assert_eq!(on_cpu_of(&analysis, &[11]), 950 + 190);
    // Exactly two tasks can be running from 50 to 200, from 200 to 410 and from 600 to 1000, and at no other time.
    assert!(at_once(&analysis, 2) <= 150 + 210 + 400);
}

/// A lost exec gives task 11 another tid. A fork gives the old tid of task 11 to a new task. This fork must not end
/// task 11 in the analysis.
#[test]
fn a_fork_does_not_end_the_task_that_has_left_its_tid() {
    let mut hand = Hand::new(Scope::All, 1_000);
    hand.snapshot(-30, 10, 10, 1, None)
        .snapshot(-20, 11, 10, 1, Some(RUNNING))
        .snapshot(-10, 12, 12, 1, Some(RUNNING))
        .switch(0, 50, 0, RUNNING, 11)
        .lives_lost(100, 300)
        .switch(1, 200, 10, DEAD, 12)
        .fork(1, 400, 12, 11, 11)
        .first_waking(1, 405, 12, 11, false)
        .switch(2, 410, 0, RUNNING, 11)
        .switch(2, 600, 11, SLEEPS, 0);
    let analysis = analyzed(&hand);
    assert_eq!(on_cpu_of(&analysis, &[10, 11]), 200 + 950 + 190);
    assert!(at_once(&analysis, 2) <= 150 + 210 + 400);
}

/// Task 11 is new, and its fork is lost. So task 11 may be a thread that gets another tid by a lost exec, and a new
/// task may get the tid 11.
#[test]
fn a_task_that_may_be_a_thread_may_leave_its_tid() {
    let mut hand = Hand::new(Scope::All, 1_000);
    hand.snapshot(-30, 10, 10, 1, None)
        .snapshot(-10, 12, 12, 1, Some(RUNNING))
        .lives_lost(50, 900)
        .first_waking(1, 110, 10, 11, false)
        .switch(0, 120, 0, RUNNING, 11)
        .switch(1, 200, 10, DEAD, 12)
        .first_waking(1, 400, 12, 11, false)
        .switch(2, 410, 0, RUNNING, 11)
        .switch(2, 600, 11, SLEEPS, 0);
    let analysis = analyzed(&hand);
    assert_eq!(on_cpu_of(&analysis, &[10, 11]), 200 + 880 + 190);
    // Task 10 runs alone until task 11 is switched in at 120.
    assert!(at_once(&analysis, 1) <= 120);
}

/// The snapshot of task 11 shows it on a CPU. Then task 11 gets the tid 10 by an exec that is lost, and later events
/// name the task by this tid only.
///
/// ```text
/// cpu0 =11=====____
/// ```
#[test]
fn a_task_with_a_running_snapshot_may_leave_its_cpu_by_another_tid() {
    for switched in [false, true] {
        let mut hand = Hand::new(Scope::All, 1_000);
        hand.snapshot(-30, 11, 10, 1, None).lives_lost(-20, 900);
        if switched {
            hand.switch(0, 500, 10, SLEEPS, 0);
        } else {
            hand.waking(0, 500, 10, 12);
            hand.switch(0, 600, 10, SLEEPS, 0);
        }
        let analysis = analyzed(&hand);
        let on_cpu = on_cpu_of(&analysis, &[10, 11]);
        assert!(on_cpu <= if switched { 500 } else { 600 }, "{on_cpu}");
        assert!(at_once(&analysis, 1) <= if switched { 500 } else { 600 });
        assert_eq!(at_once(&analysis, 2), 0);
    }
}

/// The final figures of task 18 prove that it has ended, because they are written at its last switch-out, although that
/// switch-out itself is lost. So task 18 ended before a new task got its tid.
///
/// ```text
/// cpu0 ..LOST18x.LOST..f18
/// ```
#[test]
fn a_tasks_final_figures_prove_its_end() {
    let mut hand = Hand::new(Scope::All, 1_000);
    hand.snapshot(-100, 10, 10, 1, None)
        .waking(1, -90, 0, 18)
        .lost(0, -80, 50)
        .exit(0, -60, 18, 18, true)
        .last(0, -30, 18)
        .fork(1, 400, 10, 18, 18);
    let analysis = analyzed(&hand);
    let of_18: Vec<_> = analysis
        .processes
        .iter()
        .filter(|p| p.pid == Tgid(18))
        .collect();
    assert_eq!(of_18.len(), 1);
    assert_eq!(of_18[0].start, at(400));
}

/// A lost exec gives task 4 the tid 10. A new task 4 is forked and ends. Then an unrecorded task has the tid 4, which
/// must not count as time of a recorded one.
///
/// ```text
/// cpu0 =4====10____
/// cpu1 =10x
/// cpu3 =12..........4==12=
/// ```
#[test]
fn no_task_inherits_a_tid_that_a_lost_exec_has_left() {
    let mut hand = Hand::new(Scope::Command, 1_000);
    hand.snapshot(-30, 10, 10, 1, None)
        .snapshot(-20, 12, 12, 1, None)
        .lives_lost(50, 300)
        .first_waking(1, 110, 10, 4, false)
        .switch(0, 120, 0, RUNNING, 4)
        .switch(1, 200, 10, DEAD, 0)
        .switch(0, 400, 10, SLEEPS, 0)
        .fork(3, 500, 12, 4, 4)
        .first_waking(3, 505, 12, 4, false)
        .switch(2, 510, 0, RUNNING, 4)
        .exit(2, 590, 4, 4, true)
        .switch(2, 600, 4, DEAD, 0)
        .last(2, 600, 4)
        .switch(3, 700, 12, RUNNING, 4)
        .switch(3, 800, 4, SLEEPS, 12);
    let analysis = analyzed(&hand);
    assert_eq!(on_cpu_of(&analysis, &[10, 4]), 200 + 280 + 90);
    assert_eq!(thread(&analysis, 12).times.on_cpu, 900);
}

/// A task that is woken after a gap may have been running on cpu1 then, because its switch-in may be among the lost
/// events. In some of the cases an exec shows later that it is on cpu1.
///
/// ```text
/// cpu0 =12==>17==
/// cpu1 LOST=17======e17=
/// ```
#[test]
fn a_task_woken_after_a_gap_may_be_on_a_cpu() {
    for seen in [false, true] {
        for waits in [RUNNING, SLEEPS] {
            let mut hand = Hand::new(Scope::Command, 1_000);
            hand.snapshot(-30, 17, 17, 1, Some(waits))
                .lost(1, 100, 300)
                .waking(0, 400, 12, 17);
            if seen {
                hand.exec(1, 700, 17, 17);
            }
            let analysis = analyzed(&hand);
            let times = thread(&analysis, 17).times;
            assert!(times.run_queue + times.sleep <= 100, "{times:?}");
            assert!(at_once(&analysis, 0) <= 200);
        }
    }
}

/// With `--cpu 0`, the tasks 10 and 11 may run on other CPUs while they are not on cpu0.
///
/// ```text
/// cpu0 =10=s______>10_=10=f11=    12 wakes 10
/// ```
#[test]
fn on_cpus_that_are_left_out_a_task_may_run() {
    let mut hand = Hand::new(Scope::Command, 1_000);
    hand.meta.options.cpus = vec![hand.meta.cpus[0]];
    hand.snapshot(-10, 10, 10, 1, None)
        .switch(0, 50, 0, RUNNING, 10)
        .switch(0, 100, 10, SLEEPS, 0)
        .waking(0, 400, 12, 10)
        .switch(0, 500, 0, RUNNING, 10)
        .fork(0, 600, 10, 11, 11)
        .first_waking(0, 600, 10, 11, false)
        .exit(1, 900, 11, 11, true);
    let analysis = analyzed(&hand);
    let times = |on_cpu, unknown| Times {
        on_cpu,
        unknown,
        ..Times::default()
    };
    assert_eq!(thread(&analysis, 10).times, times(550, 450));
    let child = thread(&analysis, 11).times;
    assert_eq!((child.on_cpu, child.run_queue), (0, 0), "{child:?}");
}

/// An unrecorded task 4 has an event from before the recording began. Later a recorded task gets the pid 4.
#[test]
fn a_recorded_task_may_get_the_pid_of_one_that_is_not() {
    let mut hand = Hand::new(Scope::Command, 1_000);
    hand.waking(0, -50, 4, 10)
        .snapshot(-30, 10, 10, 1, None)
        .fork(0, 100, 10, 4, 4)
        .first_waking(0, 105, 10, 4, false)
        .switch(1, 110, 0, RUNNING, 4)
        .exec(1, 200, 4, 4)
        .exit(1, 450, 4, 4, true)
        .switch(1, 500, 4, DEAD, 0)
        .last(1, 500, 4);
    let analysis = analyzed(&hand);
    let process = analysis.processes.iter().find(|p| p.pid == Tgid(4));
    let exec = process.unwrap().execs.last().unwrap();
    assert_eq!((exec.start, exec.end), (at(200), at(500)));
}

/// Task 11 has left its tid by an exec, and a fork gives the tid to a new task. The fork and the first waking of the
/// new task have one time stamp.
///
/// ```text
/// cpu0 =11===e10==f11+11
/// cpu1                 11=
/// ```
#[test]
fn a_tid_that_an_exec_has_left_is_free_after_that_stamp() {
    let mut hand = Hand::new(Scope::All, 1_000);
    hand.snapshot(-30, 11, 10, 1, None)
        .exec(0, 100, 11, 10)
        .fork(0, 300, 10, 11, 11)
        .first_waking(0, 300, 10, 11, false)
        .switch(1, 320, 0, RUNNING, 11);
    let analysis = analyzed(&hand);
    assert_eq!(thread(&analysis, 11).start, at(300));
    assert_eq!(thread(&analysis, 11).times.run_queue, 20);
}

/// The snapshot of task 10 shows it on some CPU. Task 10 ends in a gap of cpu0, and task 15 gets the tid 10 by a lost
/// exec. When cpu1 switches away from tid 10, the old task 10 cannot have been on cpu1 since the snapshot, because cpu1
/// has switched in between.
///
/// ```text
/// cpu0 =10LOST
/// cpu1 =15===____15==10__
/// ```
#[test]
fn a_task_with_a_running_snapshot_is_not_on_a_cpu_that_has_switched_since() {
    let mut hand = Hand::new(Scope::All, 1_000);
    hand.snapshot(-30, 10, 10, 1, None)
        .snapshot(-10, 15, 10, 1, None)
        .lost(0, 1, 990)
        .lives_lost(7, 990)
        .switch(1, 85, 15, BLOCKED, 0)
        .switch(1, 905, 0, RUNNING, 15)
        .switch(1, 927, 10, BLOCKED, 0);
    let on_cpu = on_cpu_of(&analyzed(&hand), &[10, 15]);
    assert!(on_cpu <= 1 + 85 + 22, "{on_cpu}");
}

/// A waking by the tid 10 comes from the CPU on which thread 11 of the same process runs. The leader of the process had
/// ended before its snapshot. So thread 11 has taken over the process by an exec, and with the process the leader's tid
/// 10.
///
/// ```text
/// cpu0 __11===w==
/// ```
#[test]
fn the_only_known_thread_may_take_over_a_process() {
    let mut hand = Hand::new(Scope::All, 1_000);
    hand.snapshot(-30, 11, 10, 1, Some(1))
        .snapshot(-10, 20, 20, 1, Some(1))
        .waking(1, 90, 0, 11)
        .switch(0, 100, 0, RUNNING, 11)
        .waking(0, 400, 10, 20);
    let analysis = analyzed(&hand);
    assert!(analysis.quality.anomalies.is_empty());
    assert_eq!(on_cpu_of(&analysis, &[11]), 900);
    let process = analysis.processes.iter().find(|p| p.pid == Tgid(10));
    assert_eq!(process.unwrap().threads.len(), 1);
}

/// If events are lost, a waking by task 10 does not show that thread 11 has taken over the process: thread 11 may have
/// left the CPU before, and the waker may be task 10 itself.
///
/// ```text
/// cpu0 =11=LOST==w==10_
/// cpu2                 11=
/// cpu3                    10=
/// ```
#[test]
fn no_thread_takes_over_a_process_where_events_are_lost() {
    for (of_cpu, of_lives) in [(true, false), (false, true), (true, true)] {
        let mut hand = Hand::new(Scope::All, 1_000);
        hand.snapshot(-30, 11, 10, 1, Some(1))
            .snapshot(-10, 20, 20, 1, Some(1))
            .waking(1, 90, 0, 11)
            .switch(0, 100, 0, RUNNING, 11);
        if of_cpu {
            hand.lost(0, 200, 400);
        }
        if of_lives {
            hand.lives_lost(200, 400);
        }
        hand.waking(0, 500, 10, 20)
            .switch(0, 600, 10, RUNNING, 0)
            .switch(2, 700, 0, RUNNING, 11)
            .switch(3, 800, 0, RUNNING, 10);
        let anomalies = analyzed(&hand).quality.anomalies;
        assert!(anomalies.is_empty(), "{of_cpu} {of_lives} {anomalies:?}");
    }
}

/// The kernel's `maxrss` of a process is kept over an exec, and includes memory that a vfork child shared with its
/// parent. So `maxrss` is the memory of the program after the exec only if the figure has grown since the exec.
#[test]
fn a_program_has_its_own_memory() {
    // Each case has four parts: the `maxrss` after each exec; the `maxrss` at the exit, with the program's own memory
    // if the kernel reports it; the expected memory of each program; the expected memory of the process.
    for (execs, exit, programs, process) in [
        // The parent has a `maxrss` of 300 bytes. The child's program needs less in the first two cases, and more in
        // the third one.
        (&[300][..], (300, None), &[None][..], None),
        (&[300], (300, Some(2)), &[Some(2)], Some(2)),
        (&[300], (400, None), &[Some(400)], Some(400)),
        // A process executes two programs, as a shell becomes a compiler. In the first case, the first program needs a
        // `maxrss` of 5 and the second one of 90. In the last case, the first program needs 90 and the second one less.
        (&[3, 5], (90, None), &[Some(5), Some(90)], Some(90)),
        (&[3, 90], (90, None), &[Some(90), None], Some(90)),
    ] {
        let mut hand = Hand::new(Scope::Command, 1_000);
        hand.snapshot(-10, 10, 10, 1, None)
            .fork(0, 100, 10, 11, 11)
            .first_waking(0, 110, 10, 11, false)
            .switch(0, 120, 10, SLEEPS, 11);
        for (time, rss) in (200..).zip(execs) {
            hand.exec_with(time, 11, *rss);
        }
        hand.exit_with(300, 11, exit.0, exit.1)
            .switch(0, 400, 11, DEAD, 0);
        let analysis = analyzed(&hand);
        let found = analysis.processes.iter().find(|p| p.pid == Tgid(11));
        let found = found.expect("the process");
        let of_programs: Vec<_> = found.execs.iter().map(|exec| exec.max_rss).collect();
        assert_eq!(
            (of_programs.as_slice(), found.resources.max_rss),
            (programs, process)
        );
    }
}

fn outsider(tid: u32, comm: &[u8]) -> LifeKind {
    LifeKind::Outsider(Box::new(Outsider {
        tid: Tid(tid),
        tgid: Tgid(tid),
        comm: Comm::new(comm),
        ..Outsider::default()
    }))
}

/// A switch between two unrecorded tasks is in the trace, because task 10 waits for the CPU. It is a contradiction only
/// if the recording does not have the names of both tasks.
#[test]
fn a_switch_of_unknown_tasks_is_an_anomaly() {
    for (next, anomalies) in [(91, 0), (92, 1)] {
        let mut hand = Hand::new(Scope::Command, 1_000);
        hand.snapshot(-10, 10, 10, 1, Some(0))
            .lives(0, 90, outsider(90, b"rustc"))
            .lives(0, 190, outsider(91, b"python3"))
            .preempt(0, 100, 10, RUNNING, 90)
            .preempt(0, 200, 90, RUNNING, next)
            .preempt(0, 300, next, RUNNING, 10);
        let found = analyze(&hand.trace(), &Options::default())
            .quality
            .anomalies;
        let found: u64 = found.iter().map(|(_, count)| count).sum();
        assert_eq!(found, anomalies, "to {next}");
    }
}

/// Task 10 waits while the unrecorded tasks 90 and 91 have its CPU, and later while the recorded task 11 has it. Task
/// 11 waits too, at first for cpu0 and then for cpu1, where task 90 runs.
///
/// ```text
/// cpu0  =10=|-90-|-91-|-90-|=10=|==11==|=10=|____
/// cpu1                       -90-|===11...
/// ```
#[test]
fn waits_are_divided_by_who_had_the_cpu() {
    let mut hand = Hand::new(Scope::Command, 1_000);
    hand.snapshot(-10, 10, 10, 1, Some(0))
        .lives(0, 90, outsider(90, b"rustc"))
        .lives(0, 190, outsider(91, b"python3"))
        .preempt(0, 100, 10, RUNNING, 90)
        .preempt(0, 200, 90, RUNNING, 91)
        .preempt(0, 250, 91, RUNNING, 90)
        .preempt(0, 300, 90, RUNNING, 10)
        .fork(0, 310, 10, 11, 11)
        .first_waking(0, 320, 10, 11, false)
        .preempt(0, 400, 10, RUNNING, 11)
        .preempt(0, 500, 11, RUNNING, 10)
        .switch(1, 600, 90, RUNNING, 11)
        .switch(0, 900, 10, SLEEPS, 0);
    let options = Options {
        timeline: true,
        ..Options::default()
    };
    let analysis = analyze(&hand.trace(), &options);
    assert_eq!(analysis.quality.anomalies, Vec::new());
    let contention = Contention::new(&analysis).expect("names are recorded");
    let of = |tid| {
        let mut ids = analysis.thread_ids();
        let ix = ids.find(|ix| analysis.thread(*ix).tid == Tid(tid)).unwrap();
        contention.by_name(&analysis, Contention::waits(&analysis, ix))
    };
    let (sum, names) = of(10);
    assert_eq!((sum.own, sum.others, sum.rest), (100, 200, 0));
    assert_eq!(names, [(named(b"rustc"), 150), (named(b"python3"), 50)]);
    // Task 11 waits for cpu0 for 90 ns, while task 10 runs there, and then for cpu1 for 100 ns, while task 90 runs
    // there. The trace does not show when task 90 came to cpu1.
    let (sum, names) = of(11);
    assert_eq!((sum.own, sum.others, sum.rest), (90, 100, 0));
    assert_eq!(names, [(named(b"rustc"), 100)]);
    assert_eq!(analysis.others.outside.at(Tid(91), at(189)), None);
    assert_eq!(
        analysis
            .others
            .outside
            .only(Tid(91))
            .map(|outsider| outsider.comm),
        Some(Comm::new(b"python3"))
    );
}

/// The recording ends while task 10 waits for the CPU on which it ran before. The recording does not show how long task
/// 90 has had this CPU.
///
/// ```text
/// cpu0  =10=|-90-|=10=|-90- ... (the recording ends)
/// ```
#[test]
fn an_open_wait_counts() {
    for (next, others) in [(90, 700), (0, 0)] {
        let mut hand = Hand::new(Scope::Command, 1_000);
        hand.snapshot(-10, 10, 10, 1, Some(0))
            .lives(0, 90, outsider(90, b"rustc"))
            .preempt(0, 100, 10, SLEEPS, 90)
            .waking(0, 150, 90, 10)
            .preempt(0, 200, 90, RUNNING, 10)
            .preempt(0, 300, 10, RUNNING, next);
        let options = Options {
            timeline: true,
            ..Options::default()
        };
        let analysis = analyze(&hand.trace(), &options);
        let contention = Contention::new(&analysis).expect("names are recorded");
        let mut ids = analysis.thread_ids();
        let of_ten = ids.find(|ix| analysis.thread(*ix).tid == Tid(10));
        let thread = of_ten.unwrap();
        let mut waits: Vec<_> = Contention::waits(&analysis, thread).collect();
        let waits = waits.split_off(1);
        assert_eq!(waits, [(CpuId(0), at(300), at(1_000))]);
        let within = Contention::within(&analysis, thread, at(300), at(1_000));
        assert_eq!(within, Some(waits[0]));
        let (sum, names) = contention.by_name(&analysis, waits.into_iter());
        assert_eq!(
            (sum.own, sum.others, sum.rest),
            (0, others, 700 - others),
            "{next}"
        );
        let names: Vec<_> = names.into_iter().map(|(of, _)| of).collect();
        assert_eq!(names, vec![Occupant::Rest; usize::from(others > 0)]);
    }
}

fn named(comm: &[u8]) -> Occupant {
    Occupant::Named(Comm::new(comm))
}

fn others(between_us: u64, rest_us: u64, shares: &[(&[u8], u64)]) -> LifeKind {
    let share = |(comm, us): &(&[u8], u64)| Share {
        tgid: Tgid(0),
        comm: Comm::new(comm),
        us: *us,
    };
    LifeKind::Others(Box::new(Others {
        between_us,
        switches: 7,
        rest_us,
        shares: shares.iter().map(share).collect(),
    }))
}

/// While a task waits for a CPU, unrecorded tasks use this CPU. The recording has only the sum of each such task's CPU
/// time, and the wait is divided among these tasks by the sums. Times are in µs. Task 10 waits from 100 to 300. Task 11
/// waits from 410 to 600, and the kernel moves task 11 to this CPU at 560.
///
/// ```text
/// cpu0  =10=|..90, 91, others...|-91-|=10=|-90-.....-91-|=11=|
/// ```
#[test]
fn waits_are_divided_by_sums() {
    const US: i64 = 1000;
    let shares: [(&[u8], u64); 2] = [(b"rustc", 90), (b"python3", 60)];
    let moved: [(&[u8], u64); 2] = [(b"python3", 10), (b"rustc", 30)];
    let mut hand = Hand::new(Scope::Command, 1_000 * US);
    hand.snapshot(-10, 10, 10, 1, Some(0))
        .lives(0, 90 * US, outsider(90, b"rustc"))
        .lives(0, 290 * US, outsider(91, b"python3"))
        .preempt(0, 100 * US, 10, RUNNING, 90)
        .records(0, 300 * US, others(0, 50, &shares))
        .preempt(0, 300 * US, 91, RUNNING, 10)
        .fork(0, 410 * US, 10, 11, 11)
        .first_waking(0, 420 * US, 10, 11, false)
        .switch(0, 500 * US, 10, SLEEPS, 90)
        .records(0, 600 * US, others(0, 0, &moved))
        .preempt(0, 600 * US, 91, RUNNING, 11);
    let (sum, names) = contention_of(&hand, 10);
    assert_eq!((sum.own, sum.others, sum.rest), (0, 200_000, 0));
    let expected = [
        (named(b"rustc"), 90_000),
        (named(b"python3"), 60_000),
        (Occupant::Rest, 50_000),
    ];
    assert_eq!(names, expected);
    // The sums begin when task 11 was moved to this CPU. The part of the wait before the move is attributed to the
    // first task in the sums, python3.
    let (sum, names) = contention_of(&hand, 11);
    assert_eq!((sum.own, sum.others, sum.rest), (90_000, 100_000, 0));
    let expected = [(named(b"python3"), 70_000), (named(b"rustc"), 30_000)];
    assert_eq!(names, expected);
    // The event with the sum of the unrecorded tasks' CPU times is lost, so the analysis does not know the names of the
    // tasks that had the CPU.
    hand.recorder.retain(|event| event.time != at(600 * US));
    hand.lives_lost(590 * US, 600 * US);
    let (sum, names) = contention_of(&hand, 11);
    assert_eq!((sum.own, sum.others, sum.rest), (90_000, 100_000, 0));
    assert_eq!(names, [(Occupant::Rest, 100_000)]);
}

/// Task 10 waits three times for the CPU: from 100 to 200, from 300 to 340 and from 400 to 500 µs. One event has the
/// sum of the first and the last wait. The second wait is not in the sum, because the CPU does not switch during that
/// wait.
///
/// ```text
/// cpu0  =10=|90, 91, 90, 91|=10=|-92-|=10=|90, 91|=10=|
/// ```
#[test]
fn a_wait_without_a_switch_is_in_no_sums() {
    const US: i64 = 1000;
    let shares: [(&[u8], u64); 2] = [(b"rustc", 150), (b"python3", 50)];
    let mut hand = Hand::new(Scope::Command, 1_000 * US);
    hand.snapshot(-10, 10, 10, 1, Some(0));
    for (tid, name) in [(90, &b"rustc"[..]), (91, b"python3"), (92, b"java")] {
        hand.lives(0, i64::from(tid), outsider(tid, name));
    }
    for (from, to, first, last) in [(100, 200, 90, 91), (300, 340, 92, 92), (400, 500, 90, 91)] {
        hand.preempt(0, from * US, 10, RUNNING, first)
            .preempt(0, to * US, last, RUNNING, 10);
    }
    hand.records(0, 500 * US, others(200, 0, &shares));
    let (sum, names) = contention_of(&hand, 10);
    assert_eq!((sum.own, sum.others, sum.rest), (0, 240_000, 0));
    let expected = [
        (named(b"rustc"), 150_000),
        (named(b"python3"), 50_000),
        (named(b"java"), 40_000),
    ];
    assert_eq!(names, expected);
}

/// How long a task waited for CPUs, split by the tasks that had the CPUs.
fn contention_of(hand: &Hand, tid: u32) -> (Division, Vec<(Occupant, u64)>) {
    let options = Options {
        timeline: true,
        ..Options::default()
    };
    let analysis = analyze(&hand.trace(), &options);
    assert_eq!(analysis.quality.anomalies, Vec::new());
    let contention = Contention::new(&analysis).expect("names are recorded");
    let mut ids = analysis.thread_ids();
    let ix = ids.find(|ix| analysis.thread(*ix).tid == Tid(tid)).unwrap();
    contention.by_name(&analysis, Contention::waits(&analysis, ix))
}

/// A page fault waits for memory, and not for a disk, if the thread reclaims memory and its process has read nothing
/// from a disk.
#[test]
fn reclaim_is_no_wait_for_a_disk() {
    for (read, kind) in [
        (Some(0), TimeKind::Memory),
        (Some(4096), TimeKind::Disk),
        (None, TimeKind::Disk),
    ] {
        let mut hand = Hand::new(Scope::Command, 1_000);
        hand.meta.root = Some(Tgid(10));
        hand.snapshot(0, 10, 10, 1, None);
        let fault = SchedKind::Switch(Switch {
            prev: Tid(10),
            next: Tid(0),
            prev_state: BLOCKED,
            preempt: false,
            iowait: true,
            reason: Reason::PageFault,
            timeout: Timeout::UNKNOWN,
        });
        hand.waking(0, 5, 0, 10)
            .switch(0, 10, 0, RUNNING, 10)
            .sched(0, 100, fault)
            .waking(0, 400, 0, 10)
            .switch(0, 410, 0, RUNNING, 10);
        let reclaim = Reclaim {
            tid: Tid(10),
            tgid: Tgid(10),
            count: 1,
            ns: 320,
        };
        hand.lives(0, 420, LifeKind::Reclaim(reclaim))
            .exit(0, 500, 10, 10, true);
        if let Some(LifeKind::Exit(exit)) = hand.life.last_mut().map(|life| &mut life.kind) {
            (exit.read_bytes, exit.write_bytes) = (read, read);
        }
        hand.switch(0, 510, 10, DEAD, 0);
        let (_, path) = hand.path();
        let spent = by_kind(&path.segments);
        assert_eq!(spent.of(kind), 300, "{path:?}");
    }
}

/// A make that runs below another make has a lower pid than the outer make. In a part of the recording that begins
/// after both starts, the inner make comes first. The inner make's jobs must still belong to the job slots of the outer
/// make.
#[test]
fn a_make_below_another_has_its_slots_in_every_part() {
    let mut hand = Hand::new(Scope::Command, 1_000);
    hand.snapshot(-10, 20, 20, 1, None)
        .exec(0, 10, 20, 20)
        .fork(0, 50, 20, 10, 10)
        .exec(1, 60, 10, 10)
        .fork(1, 300, 10, 11, 11);
    for event in &mut hand.life {
        if let LifeKind::Exec(exec) = &mut event.kind {
            exec.filename = b"/bin/make".to_vec().into();
        }
    }
    for from in [0, 200] {
        let options = Options {
            from: Some(from),
            timeline: true,
            ..Options::default()
        };
        let tools = Tools::new(&analyze(&hand.trace(), &options), |_| Some(Some(2)));
        let [one, other] = tools.jobs[..] else {
            panic!("{tools:?}")
        };
        assert_eq!(one.pool, other.pool, "from {from}");
    }
}

/// A command waits for a CPU for 500 ms before its exec, and then works for 1 ms.
///
/// ```text
/// cpu0  ---500 ms run queue---|==exec==1 ms==|exit
/// ```
#[test]
fn the_wait_before_the_exec_is_on_the_path() {
    const MS: i64 = 1_000_000;
    for (before, length) in [(500, 501), (5, 1)] {
        let mut hand = Hand::new(Scope::All, 600 * MS);
        hand.snapshot(-10, 9, 9, 1, Some(SLEEPS))
            .fork(1, 0, 9, 10, 10)
            .first_waking(1, 1, 9, 10, false)
            .switch(0, before * MS, 0, RUNNING, 10)
            .exec(0, before * MS + 1, 10, 10)
            .exit(0, (before + 1) * MS, 10, 10, true)
            .switch(0, (before + 1) * MS, 10, DEAD, 0);
        let (analysis, _) = hand.path();
        let command = analysis
            .process_ids()
            .find(|ix| analysis.process(*ix).pid.0 == 10);
        let path = critical_path(&analysis, command.unwrap()).unwrap();
        let rounded = (path.length() as i64 + MS / 2) / MS;
        assert_eq!(rounded, length, "{before} ms before the exec");
        let queue = by_kind(&path.segments).of(TimeKind::RunQueue) as i64;
        assert_eq!((queue + MS / 2) / MS, if length > 1 { before } else { 0 });
    }
}

/// A guest's kernel does not report a waking. The kernel's own figure of the run-queue time shows how much of the time
/// off CPU was a wait for a CPU, and how much was sleep.
///
/// ```text
/// cpu0 =10=s..............=10==x     asleep from 1 ms on, on a CPU again at 101 ms
/// ```
#[test]
fn a_wait_without_a_waking_is_in_the_run_queue_as_far_as_the_kernel_counted() {
    const MS: i64 = 1_000_000;
    for (counted, run_queue) in [
        (Some(8 * MS as u64), 8 * MS),
        (Some(0), 0),
        (Some(100 * MS as u64), 100 * MS),
        // Here the kernel's figure is 20 µs less than the time in the events. Such a difference is normal, so nothing
        // becomes unknown.
        (Some(100 * MS as u64 - 20_000), 100 * MS),
        (None, 100 * MS),
    ] {
        let mut hand = Hand::new(Scope::All, 200 * MS);
        hand.fork(0, 0, 1, 10, 10);
        hand.switch(0, 0, 0, RUNNING, 10);
        hand.switch(0, MS, 10, SLEEPS, 0);
        hand.switch(0, 101 * MS, 0, RUNNING, 10);
        hand.exit(0, 102 * MS, 10, 10, true);
        hand.switch(0, 102 * MS, 10, DEAD, 0).last(0, 102 * MS, 10);
        if let Some(LifeKind::Final(last)) = hand.life.last_mut().map(|life| &mut life.kind) {
            last.delays.run = counted;
        }
        let options = Options {
            timeline: true,
            ..Options::default()
        };
        let analysis = analyze(&hand.trace(), &options);
        let times = thread(&analysis, 10).times;
        let want = Times {
            on_cpu: 2 * MS as u64,
            run_queue: run_queue as u64,
            unknown: (100 * MS - run_queue) as u64,
            ..Times::default()
        };
        assert_eq!(times, want, "{counted:?}");
        // The known wait for a CPU is the last part of the time off CPU.
        let ix = analysis
            .threads
            .iter()
            .position(|t| t.tid == Tid(10))
            .unwrap();
        let timeline = analysis.timeline.as_ref().unwrap();
        let stretches = timeline
            .of(ThreadIx(ix as u32))
            .map(|s| (s.doing, s.length()));
        let mut expected = vec![
            (Bucket::OnCpu(Some(CpuId(0))), MS),
            (Bucket::Wait(Wait::Unknown), 100 * MS - run_queue),
            (Bucket::RunQueue { preempted: false }, run_queue),
            (Bucket::OnCpu(Some(CpuId(0))), MS),
        ];
        expected.retain(|(_, ns)| *ns > 0);
        let expected: Vec<(Bucket, u64)> = expected
            .into_iter()
            .map(|(doing, ns)| (doing, ns as u64))
            .collect();
        assert_eq!(stretches.collect::<Vec<_>>(), expected, "{counted:?}");
    }
}

/// Nothing is known of the state of task 12. But all switches are recorded, so it is on no CPU.
///
/// ```text
/// cpu0 =10=====================
/// cpu1 =11=__=11=__=11=__=11=__
/// 12   ????????????????????????
/// ```
#[test]
fn a_task_of_unknown_state_leaves_a_recording_of_all_switches_known() {
    let mut hand = Hand::new(Scope::All, 1_000);
    hand.snapshot(-30, 10, 10, 1, Some(RUNNING))
        .snapshot(-20, 11, 11, 1, Some(SLEEPS))
        .snapshot(-10, 12, 12, 1, None)
        .switch(0, 10, 0, RUNNING, 10);
    for cpu in [2, 3] {
        hand.switch(cpu, 10, 0, RUNNING, 0);
    }
    for time in [20, 300, 600, 900] {
        hand.switch(1, time, 0, RUNNING, 11)
            .switch(1, time + 50, 11, SLEEPS, 0);
    }
    let options = Options {
        timeline: true,
        ..Options::default()
    };
    let analysis = analyze(&hand.trace(), &options);
    let groups = Groups::new(&analysis, |_, _| ProgramName::new("all"));
    let found = parallelism(&analysis, &groups, None, 0, None).expect("a timeline");
    let counted: u64 = analysis.concurrency.times.iter().sum();
    assert!(
        found.unknown <= 20 && counted >= 980,
        "{} {counted}",
        found.unknown
    );
}
