//! Single moments that runs of the simulator have shown to be hard, each drawn
//! and written by hand: mostly events of several CPUs with one stamp, so that
//! only the sense of them tells their order.
#![allow(clippy::indexing_slicing, clippy::unwrap_used, clippy::expect_used)] // of our own tables, in a test

mod hand;

use hand::{at, Hand, BLOCKED, DEAD, RUNNING, SLEEPS};
use tr_analyze::model::{Analysis, Causes, Thread, Times};
use tr_analyze::{analyze, Options};
use tr_format::event::{LifeKind, Tgid, Tid};
use tr_format::meta::Scope;

/// The analysis of a trace that does not contradict itself.
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

/// How long all tasks that were ever known by these tids ran.
fn on_cpu_of(analysis: &Analysis, tids: &[u32]) -> u64 {
    let all = analysis.threads.iter();
    let named = all.filter(|thread| tids.contains(&thread.tid.0));
    named.map(|thread| thread.times.on_cpu).sum()
}

/// How long so many were running.
fn at_once(analysis: &Analysis, running: usize) -> u64 {
    analysis.concurrency.get(running).copied().unwrap_or(0)
}

/// ```text
/// cpu0 =10=f11+11____     waits for the vfork child
/// cpu1           11==x11  which exits with the stamp of that
/// ```
#[test]
fn a_vfork_childs_exit_comes_no_earlier_than_the_wait_with_its_stamp() {
    let mut hand = Hand::new(Scope::Command, 1_000);
    hand.listed(-10, 10, 10, 1, None)
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

/// The same for a child that was forked before the recording, and woken in it.
#[test]
fn who_wakes_a_child_for_the_first_time_waits_for_it() {
    let mut hand = Hand::new(Scope::Command, 1_000);
    hand.listed(-20, 10, 10, 1, None)
        .listed(-10, 11, 11, 10, Some(RUNNING))
        .first_waking(0, 110, 10, 11, true)
        .switch(1, 120, 0, RUNNING, 11)
        .switch(0, 200, 10, BLOCKED, 0);
    assert_eq!(thread(&analyzed(&hand), 10).causes.vfork, 800);
}

/// ```text
/// cpu0 =10=>11
/// cpu1 =11======____      was on its CPU when it was woken, in vain
/// ```
#[test]
fn the_first_waking_of_a_task_does_not_prove_that_it_slept() {
    // The listing tells that it did not.
    let mut hand = Hand::new(Scope::All, 1_000);
    hand.waking(0, -50, 10, 11)
        .listed(-20, 10, 10, 1, None)
        .listed(-10, 11, 11, 1, None)
        .switch(1, 300, 11, SLEEPS, 0);
    let slept = Times {
        sleep: 700,
        ..on_cpu(300)
    };
    // Woken since it was switched in: its sleep may have ended as it began.
    let unclear = Times {
        unknown: 700,
        ..on_cpu(300)
    };
    let times = thread(&analyzed(&hand), 11).times;
    assert!(times == slept || times == unclear, "{times:?}");

    // Its switch-out does, before it is listed.
    let mut hand = Hand::new(Scope::All, 1_000);
    hand.waking(0, -50, 10, 11)
        .switch(1, -40, 11, SLEEPS, 0)
        .listed(-20, 10, 10, 1, None)
        .listed(-10, 11, 11, 1, Some(SLEEPS))
        .waking(0, 400, 10, 11)
        .switch(1, 500, 0, RUNNING, 11);
    let times = Times {
        sleep: 400,
        run_queue: 100,
        ..on_cpu(500)
    };
    assert_eq!(thread(&analyzed(&hand), 11).times, times);
}

/// All that were known of a process have ended, and the last exit was told:
/// another of its threads, in its own exit, is listed all the same.
#[test]
fn threads_listed_late_belong_to_their_process() {
    let mut hand = Hand::new(Scope::All, 1_000);
    hand.exit(0, -60, 10, 10, true)
        .switch(0, -50, 10, DEAD, 0)
        .last(0, -50, 10)
        .listed(-30, 11, 10, 1, None)
        .exit(1, -20, 11, 10, false)
        .switch(1, 100, 11, DEAD, 0)
        .last(1, 100, 11);
    let analysis = analyzed(&hand);
    assert_eq!(analysis.processes.len(), 1);
    assert_eq!(analysis.processes[0].faults, (2, 0));
    assert_eq!(analysis.processes[0].status, Some(0));
}

/// ```text
/// cpu0 =10=f11+11=        fork, first waking and the child's switch-in: one stamp
/// cpu1         11==____
/// ```
#[test]
fn a_first_waking_comes_before_the_switch_in_with_its_stamp() {
    let mut hand = Hand::new(Scope::Command, 1_000);
    hand.listed(-10, 10, 10, 1, Some(SLEEPS))
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

/// 11 is recorded and ends; somebody who is not recorded gets its tid, and goes
/// for 10.
#[test]
fn a_tid_may_pass_to_a_task_that_is_not_recorded() {
    let mut hand = Hand::new(Scope::Command, 1_000);
    hand.listed(-20, 10, 10, 1, Some(SLEEPS))
        .listed(-10, 11, 11, 1, None)
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

/// 11 is recorded and ends; somebody who is not recorded gets its tid, and wakes 10: the
/// dead wake nobody.
#[test]
fn who_has_a_dead_tasks_tid_is_not_that_task() {
    let mut hand = Hand::new(Scope::Command, 1_000);
    hand.listed(-20, 10, 10, 1, Some(SLEEPS))
        .listed(-10, 11, 11, 1, None)
        .exit(0, 100, 11, 11, true)
        .switch(0, 110, 11, DEAD, 0)
        .last(0, 110, 11)
        .waking(1, 500, 11, 10)
        .switch(2, 600, 0, RUNNING, 10);
    let analysis = analyzed(&hand);
    let longest = thread(&analysis, 10).max_off_cpu.unwrap();
    assert_eq!((longest.length, longest.waker), (600, None));
}

/// The exec stands behind another task's last figures, which wait for that one's
/// switch-out; its own task's switch-out, with the same stamp, is met first.
#[test]
fn an_exec_may_be_met_behind_the_switch_out_with_its_stamp() {
    let mut hand = Hand::new(Scope::Command, 1_000);
    hand.listed(-30, 10, 10, 1, None)
        .listed(-20, 11, 11, 1, None)
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

/// ```text
/// cpu0 ==10......10=__    woken as it comes back, and then not preempted but
/// cpu1           >10      kept from a sleep
/// ```
#[test]
fn a_waking_with_the_stamp_of_the_switch_in_may_come_after_it() {
    let mut hand = Hand::new(Scope::Command, 1_000);
    hand.listed(-30, 10, 10, 1, None)
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

/// 12 was 10's child; 10 is gone, and its pid was given again while the tasks
/// were being listed.
#[test]
fn a_listed_task_is_not_the_child_of_one_forked_later() {
    let mut hand = Hand::new(Scope::All, 1_000);
    hand.listed(-90, 11, 11, 1, None)
        .fork(0, -50, 11, 10, 10)
        .first_waking(0, -40, 11, 10, false)
        .listed(-30, 12, 12, 10, Some(SLEEPS));
    let analysis = analyzed(&hand);
    let child = analysis.processes.iter().find(|p| p.pid == Tgid(12));
    assert_eq!(child.unwrap().parent, None);
}

/// ```text
/// cpu0 =11=!12 e10        named 11 by the waking and 10 by the exec: one stamp
/// ```
#[test]
fn a_tid_that_an_exec_has_left_is_still_known_with_its_stamp() {
    let mut hand = Hand::new(Scope::All, 1_000);
    hand.listed(-30, 11, 10, 1, None)
        .listed(-20, 12, 12, 1, Some(SLEEPS))
        .waking(0, 100, 11, 12)
        .exec(0, 100, 11, 10)
        .switch(0, 300, 10, SLEEPS, 0);
    let analysis = analyzed(&hand);
    assert_eq!(analysis.threads.len(), 2);
    assert_eq!(thread(&analysis, 10).times.on_cpu, 300);
}

/// The file ends; its last mark tells of what was stamped before it. A waking
/// with the mark's own stamp is not there, the switch-in behind it is.
#[test]
fn a_cut_off_file_ends_before_its_last_mark() {
    let mut hand = Hand::new(Scope::Command, 0);
    hand.end = None;
    hand.listed(-30, 10, 10, 1, None)
        .switch(0, 100, 10, SLEEPS, 0)
        .switch(0, 500, 0, RUNNING, 10)
        .word(500, LifeKind::Progress);
    let times = Times {
        sleep: 400,
        ..on_cpu(100)
    };
    assert_eq!(thread(&analyzed(&hand), 10).times, times);
}

/// ```text
/// cpu0 =10=====LOST       moves to the other CPU, whose events are lost as well
/// cpu1 LOST==e10==LOST    and is seen there by an exec only
/// ```
#[test]
fn an_exec_tells_the_cpu_that_its_task_is_on() {
    let mut hand = Hand::new(Scope::Command, 1_000);
    hand.listed(-30, 10, 10, 1, Some(RUNNING))
        .switch(0, 50, 11, RUNNING, 10)
        .lost(0, 200, 300)
        .lost(1, 250, 800)
        .exec(1, 400, 10, 10);
    let analysis = analyzed(&hand);
    // It may have left that CPU right after.
    assert!(thread(&analysis, 10).times.on_cpu <= 200);
}

/// ```text
/// cpu0 =11........10=     10 comes last to where it stays
/// cpu1 =12=10=12=====     though that CPU's switch is looked at first
/// ```
#[test]
fn of_switches_with_one_stamp_the_one_that_stays_is_last() {
    let mut hand = Hand::new(Scope::Command, 1_000);
    hand.listed(-30, 10, 10, 1, Some(RUNNING))
        .listed(-20, 11, 11, 1, None)
        .listed(-10, 12, 12, 1, Some(RUNNING))
        .switch(1, 50, 0, RUNNING, 12)
        .preempt(1, 500, 12, RUNNING, 10)
        .preempt(1, 500, 10, RUNNING, 12)
        .switch(0, 500, 11, SLEEPS, 10);
    let analysis = analyzed(&hand);
    assert_eq!(thread(&analysis, 10).times.on_cpu, 500);
    assert_eq!(thread(&analysis, 12).times.on_cpu, 950);
}

/// ```text
/// cpu0 =10=======>13==        13 comes last to where it stays, though it comes
/// cpu1 =11=======>12=13===    to another CPU from 14, which seems to sleep: its
/// cpu2 =12=>14===14=13=12=    waking and its switch-out have one stamp
/// cpu3 =14=_______________
/// ```
#[test]
fn who_comes_by_several_switches_of_one_stamp_comes_last_to_where_it_stays() {
    let mut hand = Hand::new(Scope::All, 1_000);
    for (cpu, tid) in [(0, 10), (1, 11), (2, 12), (3, 14)] {
        hand.listed(-30, tid, tid, 1, Some(RUNNING))
            .switch(cpu, 50, 0, RUNNING, tid);
    }
    hand.listed(-20, 13, 13, 1, Some(SLEEPS))
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

/// ```text
/// cpu0 ______________11>10=10____    the child lets its parent go, which sleeps
/// cpu1 =10=__10=f11+11____________   waits for the vfork child
/// ```
#[test]
fn who_forks_has_come_to_its_cpu_before() {
    let mut hand = Hand::new(Scope::Command, 1_000);
    hand.listed(-30, 10, 10, 1, Some(RUNNING))
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

/// ```text
/// cpu0 =11===============     goes by 10 since an exec that is lost
/// cpu1 =10x=12=+11=======
/// cpu2          __11==___     a new task has the tid that is free
/// ```
#[test]
fn a_tid_that_a_lost_exec_has_left_may_come_again() {
    let mut hand = Hand::new(Scope::All, 1_000);
    hand.listed(-30, 10, 10, 1, None)
        .listed(-20, 11, 10, 1, Some(RUNNING))
        .listed(-10, 12, 12, 1, Some(RUNNING))
        .switch(0, 50, 0, RUNNING, 11)
        .lives_lost(100, 900)
        .switch(1, 200, 10, DEAD, 12)
        .first_waking(1, 400, 12, 11, false)
        .switch(2, 410, 0, RUNNING, 11)
        .switch(2, 600, 11, SLEEPS, 0);
    let analysis = analyzed(&hand);
    assert_eq!(on_cpu_of(&analysis, &[10]), 200);
    assert_eq!(on_cpu_of(&analysis, &[11]), 950 + 190);
    // Two of them until it comes, and after it.
    assert!(at_once(&analysis, 2) <= 150 + 210 + 400);
}

/// The same, but the new task's fork is seen.
#[test]
fn a_fork_does_not_end_who_has_left_its_tid() {
    let mut hand = Hand::new(Scope::All, 1_000);
    hand.listed(-30, 10, 10, 1, None)
        .listed(-20, 11, 10, 1, Some(RUNNING))
        .listed(-10, 12, 12, 1, Some(RUNNING))
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

/// The same, but 11 is new as well, and its fork is lost: that it is a thread is
/// not known.
#[test]
fn who_may_be_a_thread_may_leave_its_tid() {
    let mut hand = Hand::new(Scope::All, 1_000);
    hand.listed(-30, 10, 10, 1, None)
        .listed(-10, 12, 12, 1, Some(RUNNING))
        .lives_lost(50, 900)
        .first_waking(1, 110, 10, 11, false)
        .switch(0, 120, 0, RUNNING, 11)
        .switch(1, 200, 10, DEAD, 12)
        .first_waking(1, 400, 12, 11, false)
        .switch(2, 410, 0, RUNNING, 11)
        .switch(2, 600, 11, SLEEPS, 0);
    let analysis = analyzed(&hand);
    assert_eq!(on_cpu_of(&analysis, &[10, 11]), 200 + 880 + 190);
    // 10 alone, until 11 comes.
    assert!(at_once(&analysis, 1) <= 120);
}

/// ```text
/// cpu0 =11=====____     listed as running, and goes by 10 since an exec that is
/// ```                   lost: is seen under that name only
#[test]
fn who_was_listed_on_a_cpu_may_leave_it_by_another_tid() {
    for switched in [false, true] {
        let mut hand = Hand::new(Scope::All, 1_000);
        hand.listed(-30, 11, 10, 1, None).lives_lost(-20, 900);
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

/// ```text
/// cpu0 ..LOST18x.LOST..f18     its last figures come with its last switch-out,
/// ```                          which is lost: before its tid was given again
#[test]
fn a_tasks_last_figures_tell_of_its_end() {
    let mut hand = Hand::new(Scope::All, 1_000);
    hand.listed(-100, 10, 10, 1, None)
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

/// ```text
/// cpu0 =4====10____         4 goes by 10 since an exec that is lost
/// cpu1 =10x                 a new 4 comes and goes;
/// cpu3 =12..........4==12=  then somebody has the tid who is not recorded
/// ```
#[test]
fn nobody_inherits_a_tid_that_was_left_by_a_lost_exec() {
    let mut hand = Hand::new(Scope::Command, 1_000);
    hand.listed(-30, 10, 10, 1, None)
        .listed(-20, 12, 12, 1, None)
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

/// ```text
/// cpu0 =12==>17==           woken in vain: it has come to the other CPU in the
/// cpu1 LOST=17======e17=    gap, and is seen there by an exec at most
/// ```
#[test]
fn who_is_woken_after_a_gap_may_be_on_a_cpu() {
    for seen in [false, true] {
        for waits in [RUNNING, SLEEPS] {
            let mut hand = Hand::new(Scope::Command, 1_000);
            hand.listed(-30, 17, 17, 1, Some(waits))
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

/// Somebody who is not recorded was seen before the recording began, and a
/// recorded task gets that pid.
#[test]
fn a_recorded_task_may_have_the_pid_of_one_that_is_not() {
    let mut hand = Hand::new(Scope::Command, 1_000);
    hand.waking(0, -50, 4, 10)
        .listed(-30, 10, 10, 1, None)
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

/// ```text
/// cpu0 =11===e10==f11+11    fork and first waking: one stamp
/// cpu1                 11=
/// ```
#[test]
fn a_tid_that_an_exec_has_left_is_free_after_that_stamp() {
    let mut hand = Hand::new(Scope::All, 1_000);
    hand.listed(-30, 11, 10, 1, None)
        .exec(0, 100, 11, 10)
        .fork(0, 300, 10, 11, 11)
        .first_waking(0, 300, 10, 11, false)
        .switch(1, 320, 0, RUNNING, 11);
    let analysis = analyzed(&hand);
    assert_eq!(thread(&analysis, 11).start, at(300));
    assert_eq!(thread(&analysis, 11).times.run_queue, 20);
}

/// ```text
/// cpu0 =10LOST              was listed there, and has ended in the gap
/// cpu1 =15===____15==10__   goes by that tid since an exec that is lost
/// ```
#[test]
fn who_was_listed_on_a_cpu_is_not_on_one_that_has_switched_since() {
    let mut hand = Hand::new(Scope::All, 1_000);
    hand.listed(-30, 10, 10, 1, None)
        .listed(-10, 15, 10, 1, None)
        .lost(0, 1, 990)
        .lives_lost(7, 990)
        .switch(1, 85, 15, BLOCKED, 0)
        .switch(1, 905, 0, RUNNING, 15)
        .switch(1, 927, 10, BLOCKED, 0);
    let on_cpu = on_cpu_of(&analyzed(&hand), &[10, 15]);
    assert!(on_cpu <= 1 + 85 + 22, "{on_cpu}");
}

/// ```text
/// cpu0 __11===w==           the waking is by 10: 11 takes over its process, whose
///                           leader had ended before it could be listed
/// ```
#[test]
fn who_takes_over_a_process_may_be_the_only_one_known_of_it() {
    let mut hand = Hand::new(Scope::All, 1_000);
    hand.listed(-30, 11, 10, 1, Some(1))
        .listed(-10, 20, 20, 1, Some(1))
        .waking(1, 90, 0, 11)
        .switch(0, 100, 0, RUNNING, 11)
        .waking(0, 400, 10, 20);
    let analysis = analyzed(&hand);
    assert!(analysis.quality.anomalies.is_empty());
    assert_eq!(on_cpu_of(&analysis, &[11]), 900);
    let process = analysis.processes.iter().find(|p| p.pid == Tgid(10));
    assert_eq!(process.unwrap().threads.len(), 1);
}

/// ```text
/// cpu0 =11=LOST==w==10_     it may be 10 that woke and left: 11 may have gone before
/// cpu2                 11=
/// cpu3                    10=
/// ```
#[test]
fn nobody_takes_over_a_process_where_events_are_lost() {
    for (of_cpu, of_lives) in [(true, false), (false, true), (true, true)] {
        let mut hand = Hand::new(Scope::All, 1_000);
        hand.listed(-30, 11, 10, 1, Some(1))
            .listed(-10, 20, 20, 1, Some(1))
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
