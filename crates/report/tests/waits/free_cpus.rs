//! Tests what is forecast of sleeps on free CPUs, from recordings in which tasks of the build waited for a CPU.

use tr_format::event::Reason;

use super::super::kinds::hand::{Hand, DEAD, RUNNING, SLEEPS};
use super::sleeps::{becomes_on, ends_for_command, naps};
use super::{advice, analyzed, command, ends, sleeps, starts, wakes, MS};

/// Adds a thread to COMMAND, which runs on CPU 1.
fn adds_thread(hand: &mut Hand) {
    hand.fork(0, 2 * MS, 10, 11, 10)
        .first_waking(0, 2 * MS + 1, 10, 11, false)
        .switch(1, 2 * MS + 2, 0, RUNNING, 11);
}

/// Lets the thread of COMMAND that runs on CPU 1 end.
fn ends_thread(hand: &mut Hand, at: i64) {
    hand.exit(1, at * MS, 11, 10, false)
        .switch(1, at * MS + 1, 11, DEAD, 0)
        .last(1, at * MS + 2, 11);
}

/// COMMAND waits for a CPU for 400 ms and then sleeps three times. If the sleeps get longer each time, COMMAND may wait
/// until something is old enough, and on free CPUs it would then also sleep during the 400 ms.
#[test]
fn sleeps_that_get_longer_may_last_until_a_moment_of_the_clock() {
    for (lengths, words) in [
        ([50, 100, 200], "takes 364 ms (255 to 764)"),
        ([100, 100, 100], "takes 314 ms (220 to 377)"),
    ] {
        let mut hand = command(1_500);
        hand.preempt(0, 5 * MS, 10, RUNNING, 98)
            .switch(0, 405 * MS, 98, RUNNING, 10);
        let mut at = 406;
        for length in lengths {
            naps(&mut hand, (10, 0), at, at + length);
            at += length + 2;
        }
        ends(&mut hand, (10, 0), at + 2, 0);
        let text = advice(&analyzed(&hand));
        assert!(text.contains(words), "{lengths:?}: {text}");
    }
}

/// A program sleeps for 300 ms, twice, while another one works and waits for a CPU for 250 ms. If the first program
/// sleeps until the other one is done, one sleep is enough on free CPUs.
#[test]
fn a_loop_ends_only_with_one_of_its_sleeps() {
    let mut hand = command(1_500);
    starts(&mut hand, 10, 2, 11, 1);
    becomes_on(&mut hand, 1, 11, 3, "/w/work");
    starts(&mut hand, 10, 4, 12, 2);
    becomes_on(&mut hand, 2, 12, 5, "/w/sidecar");
    let child = (Reason::Child, SLEEPS);
    sleeps(&mut hand, (10, 0), 6, child);
    naps(&mut hand, (12, 2), 7, 307);
    hand.preempt(1, 50 * MS, 11, RUNNING, 98)
        .switch(1, 300 * MS, 98, RUNNING, 11);
    naps(&mut hand, (12, 2), 308, 608);
    ends_for_command(&mut hand, 11, 1, 400);
    sleeps(&mut hand, (10, 0), 401, child);
    ends_for_command(&mut hand, 12, 2, 610);
    ends(&mut hand, (10, 0), 612, 0);
    let text = advice(&analyzed(&hand));
    assert!(text.contains("takes 612 ms (312 to 612)"), "{text}");
}

/// A thread sleeps for 100 ms again and again, while another thread of its process works and waits for a CPU for half
/// of the time. The sleeping thread only looks after the other one, so on free CPUs it sleeps for half of the time.
#[test]
fn a_thread_that_looks_after_another_one_sleeps_as_long_as_that_one_works() {
    let mut hand = command(1_500);
    adds_thread(&mut hand);
    for nap in 0..12 {
        let at = 10 + 100 * nap;
        naps(&mut hand, (10, 0), at, at + 99);
        hand.preempt(1, (at + 20) * MS, 11, RUNNING, 98)
            .switch(1, (at + 70) * MS, 98, RUNNING, 11);
    }
    ends_thread(&mut hand, 1_211);
    ends(&mut hand, (10, 0), 1_215, 0);
    let text = advice(&analyzed(&hand));
    assert!(text.contains("takes 615 ms"), "{text}");
}

/// A thread waits with a time-out of 400 ms until the other thread of its process has done some work, which needs two
/// of these waits, because the other thread waits for a CPU for 450 ms. On free CPUs one wait is enough, but it takes
/// its whole time.
#[test]
fn a_time_out_beside_work_takes_its_whole_time_on_free_cpus() {
    let mut hand = command(2_500);
    adds_thread(&mut hand);
    let wait = (Reason::Lock, SLEEPS);
    for turn in 0..2 {
        let at = 10 + 810 * turn;
        sleeps(&mut hand, (10, 0), at, wait);
        hand.preempt(1, (at + 50) * MS, 11, RUNNING, 98).switch(
            1,
            (at + 500) * MS,
            98,
            RUNNING,
            11,
        );
        wakes(&mut hand, 0, at + 400, (10, 0));
        sleeps(&mut hand, (10, 0), at + 401, wait);
        sleeps(&mut hand, (11, 1), at + 600, wait);
        wakes(&mut hand, 0, at + 801, (10, 0));
        wakes(&mut hand, 10, at + 805, (11, 1));
    }
    ends_thread(&mut hand, 1_635);
    ends(&mut hand, (10, 0), 1_640, 0);
    let text = advice(&analyzed(&hand));
    assert!(
        text.contains("takes 540 ms to 1.64 s; the changes below save up to 800 ms of that"),
        "{text}"
    );
}
