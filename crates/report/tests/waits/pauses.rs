//! What the recording shows about sleeps, and repeated work that a question decides on.

use tr_format::event::Reason;

use super::super::kinds::hand::{Hand, DEAD, RUNNING, SLEEPS};
use super::sleeps::{becomes, becomes_on, ends_for_command, naps, polls};
use super::{advice, analyzed, command, ends, sleeps, starts, wakes, EXIT_1, MS};

/// COMMAND naps three times for half a second, and a program that it starts before each nap ends with the given status.
fn tries(status: u32) -> Hand {
    let mut hand = command(2_000);
    for nap in 0..3 {
        let (pid, at) = (11 + nap, 10 + 510 * i64::from(nap));
        starts(&mut hand, 10, at, pid, 1);
        becomes(&mut hand, at + 1, pid, "/w/ping server");
        ends(&mut hand, (pid, 1), at + 4, status);
        naps(&mut hand, (10, 0), at + 8, at + 508);
    }
    ends(&mut hand, (10, 0), 1_545, 0);
    hand
}

#[test]
fn sleeps_after_failed_tries_name_them() {
    let text = advice(&analyzed(&tries(EXIT_1)));
    let words = "sleeps 1.50 s, 3 times, after tries that fail: find out why they fail";
    assert!(text.contains(words), "{text}");
    let text = advice(&analyzed(&tries(0)));
    assert!(!text.contains("tries"), "{text}");
    assert!(text.contains("unless the time is meant"), "{text}");
}

#[test]
fn a_program_that_fails_after_its_last_nap_waited_in_vain() {
    for (pause, status, words) in [
        (
            5,
            EXIT_1,
            "sleeps 800 ms, and then fails: find out why what it waits for",
        ),
        (5, 0, "sleeps 800 ms: wait for an event, unless"),
        // It works after its nap.
        (300, EXIT_1, "sleeps 800 ms: wait for an event, unless"),
    ] {
        let mut hand = command(1_300);
        naps(&mut hand, (10, 0), 10, 810);
        ends(&mut hand, (10, 0), 810 + pause, status);
        let text = advice(&analyzed(&hand));
        assert!(text.contains(words), "{pause} {status}: {text}");
    }
}

/// An event loop waits 0.8 s for a timer. It ends then, or goes on for a while.
#[test]
fn a_timer_at_the_end_of_an_event_loop_is_none_to_wait_for() {
    for (pause, words) in [
        (
            5,
            "waits 800 ms for timers or time-outs, and then ends: cancel the timers",
        ),
        (
            300,
            "waits 800 ms for timers or time-outs: find out why what it waits for",
        ),
    ] {
        let mut hand = command(1_300);
        polls(&mut hand, (10, 0), 10, 800);
        wakes(&mut hand, 0, 810, (10, 0));
        ends(&mut hand, (10, 0), 810 + pause, 0);
        let text = advice(&analyzed(&hand));
        assert!(text.contains(words), "{pause}: {text}");
    }
}

/// COMMAND starts a driver, which starts a typesetter, and then asks another program, three times. `last` is how that
/// program ends the last time; the other times it fails.
fn passes(last: u32) -> Hand {
    let mut hand = command(1_000);
    for pass in 0..3 {
        let at = 10 + 200 * pass;
        let pid = 11 + 3 * u32::try_from(pass).unwrap();
        starts(&mut hand, 10, at, pid, 1);
        becomes(&mut hand, at + 1, pid, "/w/driver doc");
        sleeps(&mut hand, (10, 0), at + 2, (Reason::Child, SLEEPS));
        hand.fork(1, (at + 3) * MS, pid, pid + 1, pid + 1)
            .first_waking(1, (at + 3) * MS + 1, pid, pid + 1, false)
            .switch(2, (at + 3) * MS + 2, 0, RUNNING, pid + 1);
        becomes_on(&mut hand, (pid + 1, 2), at + 4, "/w/typeset doc");
        sleeps(&mut hand, (pid, 1), at + 5, (Reason::Child, SLEEPS));
        hand.exit(2, (at + 150) * MS, pid + 1, pid + 1, true);
        wakes(&mut hand, pid + 1, at + 151, (pid, 1));
        hand.switch(2, (at + 151) * MS + 5, pid + 1, DEAD, 0)
            .last(2, (at + 151) * MS + 6, pid + 1);
        ends_for_command(&mut hand, pid, 1, at + 155);
        starts(&mut hand, 10, at + 160, pid + 2, 3);
        becomes(&mut hand, at + 161, pid + 2, "/w/is-stable doc");
        let status = if pass == 2 { last } else { EXIT_1 };
        ends(&mut hand, (pid + 2, 3), at + 165, status);
    }
    ends(&mut hand, (10, 0), 620, 0);
    hand
}

#[test]
fn work_that_is_repeated_until_a_program_is_content_is_not_advised_about() {
    let text = advice(&analyzed(&passes(0)));
    assert!(!text.contains("repeat"), "{text}");
    // Nothing depends on a program that always ends alike.
    let text = advice(&analyzed(&passes(EXIT_1)));
    assert!(text.contains("typeset doc and 1 more repeat"), "{text}");
}

/// A test program of cargo starts a thread for each of three tests, which naps for 0.3 s, and waits for its end.
#[test]
fn tests_of_libtest_that_run_one_by_one_can_run_at_once() {
    let mut hand = command(1_300);
    becomes(
        &mut hand,
        1,
        10,
        "/w/target/debug/deps/device-0123456789abcdef",
    );
    for test in 0..3u16 {
        let (tid, cpu) = (11 + u32::from(test), 1 + test);
        let (at, on) = (10 + 310 * i64::from(test), usize::from(cpu));
        hand.fork(0, at * MS, 10, tid, 10)
            .first_waking(0, at * MS + 1, 10, tid, false)
            .switch(on, at * MS + 2, 0, RUNNING, tid);
        sleeps(&mut hand, (10, 0), at + 1, (Reason::Lock, SLEEPS));
        naps(&mut hand, (tid, on), at + 2, at + 302);
        wakes(&mut hand, tid, at + 303, (10, 0));
        hand.exit(cpu, (at + 303) * MS + 5, tid, 10, false)
            .switch(on, (at + 303) * MS + 6, tid, DEAD, 0)
            .last(cpu, (at + 303) * MS + 7, tid);
    }
    ends(&mut hand, (10, 0), 940, 0);
    let text = advice(&analyzed(&hand));
    let words = "runs its 3 tests one after the other, 909 ms: run them at once, if independent";
    assert!(text.contains(words), "{text}");
}
