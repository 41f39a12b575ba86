//! Unit tests of `clock_check`.

use super::*;

const A: CpuId = CpuId(0);
const B: CpuId = CpuId(1);

/// A task X is switched in on CPU 1 before CPU 0 switches it out.
///
/// cpu0 ==X====__
/// cpu1 ___X=====
#[test]
fn two_overlaps_prove_that_clocks_disagree() {
    let mut check = ClockCheck::default();
    let overlap = |check: &mut ClockCheck, at: u64| {
        let first = Ktime(at - 200);
        let last = |cpu, since| since == if cpu == A { first } else { Ktime(at) };
        check.overlap(Tid(5), (A, first), B, Ktime(at));
        check.switch_out(A, Tid(5), Ktime(at + 300), last);
    };
    overlap(&mut check, 1_000);
    assert_eq!(check.finish(), None, "one may be an unreported switch");
    overlap(&mut check, 5_000);
    let found = check.finish().unwrap();
    assert_eq!(found.cpus, (A, B));
    assert_eq!((found.by, found.impossible_orders), (300, 2));
}

/// The clocks show the run of X on CPU 1 within its run on CPU 0, but either run may really have been the first one. So
/// the clocks are only proven to differ by the length of the shorter run.
///
/// cpu0 ==X======__
/// cpu1 __X==______
#[test]
fn the_shorter_of_two_runs_bounds_the_difference() {
    let mut check = ClockCheck::default();
    for at in [1_000, 5_000] {
        let first = Ktime(at - 200);
        let last = |cpu, since| since == if cpu == A { first } else { Ktime(at) };
        check.overlap(Tid(5), (A, first), B, Ktime(at));
        check.switch_out(B, Tid(5), Ktime(at + 100), last);
        check.switch_out(A, Tid(5), Ktime(at + 300), last);
    }
    assert_eq!(check.finish().map(|found| found.by), Some(100));
}

/// The kernel of a guest does not report the switch by which X left a CPU. The next switch of that CPU is then away
/// from another task than X, so the overlap of X's runs proves nothing.
#[test]
fn an_unreported_switch_is_no_clock_error() {
    let mut check = ClockCheck::default();
    for at in [1_000, 5_000, 9_000] {
        let first = Ktime(at - 200);
        let last = |cpu, since| since == if cpu == A { first } else { Ktime(at) };
        check.overlap(Tid(5), (A, first), B, Ktime(at));
        check.switch_out(A, Tid(6), Ktime(at + 300), last);
    }
    assert_eq!(check.finish(), None);
}

/// A task X is forked on CPU 0 while it already runs on CPU 1.
///
/// cpu0 ____f____
/// cpu1 __XXXXX__
#[test]
fn a_child_runs_after_its_fork() {
    let mut check = ClockCheck::default();
    for tid in [7, 8] {
        let goes_on = |cpu, since| (cpu, since) == (B, Ktime(1_000));
        check.unborn(Tid(tid), B, Ktime(1_000));
        check.fork(Tid(tid), false, Some(A), Ktime(1_200), goes_on);
        check.switch_out(B, Tid(tid), Ktime(1_300), goes_on);
    }
    let found = check.finish().unwrap();
    assert_eq!((found.cpus, found.by), ((A, B), 200));
}

/// By the recorded times, a task with the tid of X ran on CPU 1 before X was forked. The recording has no name of
/// another task with this tid, so the task was X, and the clocks of the two CPUs disagree.
///
/// cpu0 _______f____
/// cpu1 __XX________
#[test]
fn a_child_whose_first_run_is_over_runs_after_its_fork() {
    let mut check = ClockCheck::default();
    for tid in [7, 8] {
        check.unborn(Tid(tid), B, Ktime(1_000));
        check.fork(Tid(tid), true, Some(A), Ktime(1_200), |_, _| false);
    }
    assert_eq!(check.finish().map(|found| found.by), Some(200));
}

/// A second task gets a tid that an earlier task had, which is no error of the clocks. The earlier task left CPU 1 for
/// another unrecorded task, so this switch is not recorded.
///
/// cpu0 _______f____
/// cpu1 __XX____XX__
#[test]
fn a_used_tid_is_no_clock_error() {
    let mut check = ClockCheck::default();
    for at in [1_000, 5_000, 9_000] {
        check.unborn(Tid(7), B, Ktime(at));
        let goes_on = |cpu, since| (cpu, since) == (B, Ktime(at));
        check.fork(Tid(7), false, Some(A), Ktime(at + 200), goes_on);
        // The CPU switches from an unrecorded task to the new task with the tid 7.
        check.switch_out(B, Tid(9), Ktime(at + 300), goes_on);
        let goes_on = |cpu, since| (cpu, since) == (B, Ktime(at + 300));
        check.switch_out(B, Tid(7), Ktime(at + 400), goes_on);
    }
    assert_eq!(check.finish(), None);
}
