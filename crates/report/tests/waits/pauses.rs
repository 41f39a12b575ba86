//! Tests the advice about sleeps, and about work that is repeated until a program gives another answer.

use tr_format::event::{LifeKind, Reason};

use super::super::kinds::hand::{Hand, DEAD, RUNNING, SLEEPS};
use super::sleeps::{becomes, becomes_on, ends_for_command, naps, polls};
use super::{advice, analyzed, command, ends, sleeps, sleeps_at, starts, wakes, EXIT_1, MS, TERM};

/// COMMAND starts a program and then naps for half a second, three times. The program ends with the given status.
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
    let words = "sleeps 1.50 s, 3 × 500 ms, after tries that fail: find out why they fail";
    assert!(text.contains(words), "{text}");
    // A server that a test kills does not count as failed.
    for status in [0, TERM] {
        let text = advice(&analyzed(&tries(status)));
        assert!(!text.contains("tries"), "{text}");
        assert!(
            text.contains("find out why, or sleep for less, unless"),
            "{text}"
        );
    }
}

/// Three times, COMMAND starts a program and then naps for half a second. The program works during a part of this nap.
#[test]
fn naps_until_children_end_name_them() {
    let mut hand = command(2_000);
    for nap in 0..3 {
        let (pid, at) = (11 + nap, 10 + 510 * i64::from(nap));
        starts(&mut hand, 10, at, pid, 1);
        becomes(&mut hand, at + 1, pid, "/w/convert page");
        naps(&mut hand, (10, 0), at + 4, at + 504);
        ends(&mut hand, (pid, 1), at + 100 * (1 + i64::from(nap)), 0);
    }
    ends(&mut hand, (10, 0), 1_545, 0);
    let text = advice(&analyzed(&hand));
    let words = "sleeps 1.50 s, 3 × 500 ms, until children of it have ended: wait for their ends";
    assert!(text.contains(words), "{text}");
    assert!(!text.contains("is meant"), "{text}");
}

/// COMMAND naps for 0.8 s. A program that COMMAND has started before either sleeps or works for a while during this
/// nap.
#[test]
fn a_sleep_while_nothing_runs_has_nothing_to_wait_for() {
    for (work, words) in [
        (1, "sleeps 800 ms, and nothing else runs: find out why"),
        (100, "sleeps 800 ms: wait for an event, unless"),
    ] {
        let mut hand = command(1_300);
        starts(&mut hand, 10, 2, 11, 1);
        becomes(&mut hand, 3, 11, "/w/server");
        naps(&mut hand, (10, 0), 10, 810);
        sleeps(&mut hand, (11, 1), 10 + work, (Reason::SocketRead, SLEEPS));
        wakes(&mut hand, 10, 812, (11, 1));
        ends(&mut hand, (11, 1), 814, TERM);
        ends(&mut hand, (10, 0), 820, 0);
        let text = advice(&analyzed(&hand));
        assert!(text.contains(words), "{work}: {text}");
    }
}

/// An installer naps between two tries to reach a server, and does nothing else for long. The installer received no
/// packages, so a cache for packages would not help.
#[test]
fn an_installation_that_downloads_nothing_needs_no_cache() {
    let mut hand = command(2_000);
    starts(&mut hand, 10, 2, 11, 1);
    becomes(&mut hand, 3, 11, "/usr/bin/pip install kit");
    sleeps(&mut hand, (10, 0), 4, (Reason::Child, SLEEPS));
    for nap in 0..3 {
        naps(&mut hand, (11, 1), 10 + 510 * nap, 510 + 510 * nap);
    }
    ends_for_command(&mut hand, 11, 1, 1_540);
    ends(&mut hand, (10, 0), 1_545, 0);
    let text = advice(&analyzed(&hand));
    assert!(
        text.contains("pip install kit sleeps 1.50 s, 3 × 500 ms"),
        "{text}"
    );
    assert!(!text.contains("cache"), "{text}");
}

/// A thread naps (sleeps for a timer) for a second. Most of this time, another thread of its process either works or
/// naps, too.
#[test]
fn a_nap_beside_work_of_the_process_is_no_sleep_of_it() {
    for (work, is_judged) in [(100, true), (900, false)] {
        let mut hand = command(1_300);
        hand.fork(0, 2 * MS, 10, 11, 10)
            .first_waking(0, 2 * MS + 1, 10, 11, false)
            .switch(1, 2 * MS + 2, 0, RUNNING, 11);
        naps(&mut hand, (10, 0), 10, 1_010);
        sleeps(&mut hand, (11, 1), 10 + work, (Reason::Lock, SLEEPS));
        wakes(&mut hand, 10, 1_020, (11, 1));
        ends(&mut hand, (10, 0), 1_030, 0);
        let text = advice(&analyzed(&hand));
        assert_eq!(text.contains("sleeps 1.00 s"), is_judged, "{work}: {text}");
        let is_open = text.contains("sleep in old (1.00 s): not judged");
        assert!(!is_open, "{work}: {text}");
    }
}

/// A program starts a compiler for each of five files. Each call of the compiler works on three CPUs for 0.5 s.
#[test]
fn a_program_that_needs_long_to_start_takes_several_files() {
    for (program, is_reported) in [
        ("/usr/bin/javac", true),
        ("/usr/bin/gcc", false),
        ("/usr/bin/pytest", true),
    ] {
        let mut hand = command(2_700);
        becomes(&mut hand, 1, 10, "/bin/sh run.sh");
        for file in 0..5 {
            let (pid, at) = (11 + file, 10 + 520 * i64::from(file));
            starts(&mut hand, 10, at, pid, 1);
            becomes(&mut hand, at + 1, pid, &format!("{program} -d out F{file}"));
            sleeps(&mut hand, (10, 0), at + 2, (Reason::Child, SLEEPS));
            for cpu in 2..4u16 {
                let (tid, on) = (pid + 10 * u32::from(cpu), usize::from(cpu));
                hand.fork(1, (at + 3) * MS, pid, tid, pid)
                    .first_waking(1, (at + 3) * MS + 1, pid, tid, false)
                    .switch(on, (at + 3) * MS + 2, 0, RUNNING, tid);
                hand.exit(cpu, (at + 500) * MS, tid, pid, false)
                    .switch(on, (at + 500) * MS + 1, tid, DEAD, 0)
                    .last(cpu, (at + 500) * MS + 2, tid);
            }
            ends_for_command(&mut hand, pid, 1, at + 502);
        }
        ends(&mut hand, (10, 0), 2_630, 0);
        let text = advice(&analyzed(&hand));
        let (_, name) = program.rsplit_once('/').unwrap();
        let words = format!("starts {name} 5 times, 1.49 s of CPU time each whatever its arguments are: give all files");
        assert_eq!(text.contains(&words), is_reported, "{text}");
    }
}

#[test]
fn a_program_that_fails_after_its_last_nap_waited_in_vain() {
    for (pause, status, words) in [
        (
            5,
            EXIT_1,
            "sleeps 800 ms, and then fails: find out why what it waits for",
        ),
        (5, 0, "sleeps 800 ms, and nothing else runs"),
        // The program works after its nap, so it did not wait in vain.
        (300, EXIT_1, "sleeps 800 ms, and nothing else runs"),
    ] {
        let mut hand = command(1_300);
        naps(&mut hand, (10, 0), 10, 810);
        ends(&mut hand, (10, 0), 810 + pause, status);
        let text = advice(&analyzed(&hand));
        assert!(text.contains(words), "{pause} {status}: {text}");
    }
}

/// An event loop waits 0.8 s for a timer, and then either ends or goes on for a while.
#[test]
fn a_timer_at_the_end_of_an_event_loop_is_none_to_wait_for() {
    for (pause, words) in [
        (
            5,
            "waits 800 ms for timers or time-outs, and then ends: cancel the timers, if",
        ),
        (
            300,
            "waits 800 ms for timers or time-outs: find out what does not come, or wait for less",
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

/// Three times, COMMAND starts a driver and then a program that checks the driver's result. The driver starts a
/// typesetter. The check ends with 1 the first two times, and with the status `last` the third time.
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
        becomes_on(&mut hand, 2, pid + 1, at + 4, "/w/typeset doc");
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
    // If the check never succeeds, the work was not repeated until the check succeeded. So there is advice about the
    // repeated work.
    let text = advice(&analyzed(&passes(EXIT_1)));
    assert!(text.contains("typeset doc and 1 more repeat"), "{text}");
}

/// Three times, COMMAND starts a typesetter, which works for 149 ms. If `links`, it also starts a linker after each of
/// these executions.
fn rounds(links: bool) -> Hand {
    let mut hand = command(1_000);
    for round in 0..3 {
        let at = 10 + 200 * round;
        let pid = 11 + 2 * u32::try_from(round).unwrap();
        starts(&mut hand, 10, at, pid, 1);
        becomes_on(&mut hand, 1, pid, at + 1, "/w/typeset doc");
        // Equal commands in one directory are not advised to run at once.
        if let Some(LifeKind::Exec(exec)) = hand.life.last_mut().map(|life| &mut life.kind) {
            exec.directory = b"/w".as_slice().into();
        }
        sleeps(&mut hand, (10, 0), at + 2, (Reason::Child, SLEEPS));
        ends_for_command(&mut hand, pid, 1, at + 150);
        if links {
            starts(&mut hand, 10, at + 160, pid + 1, 3);
            becomes_on(&mut hand, 3, pid + 1, at + 161, "/w/link doc");
            ends(&mut hand, (pid + 1, 3), at + 165, 0);
        }
    }
    ends(&mut hand, (10, 0), 620, 0);
    hand
}

/// A test runner that is told to compile everything anew could keep what it compiled.
#[test]
fn a_cache_that_is_not_used_is_named() {
    for (line, is_named) in [("/w/jest --no-cache", true), ("/w/jest --ci", false)] {
        let mut hand = command(1_000);
        becomes(&mut hand, 1, 10, line);
        ends(&mut hand, (10, 0), 620, 0);
        let text = advice(&analyzed(&hand));
        let words =
            "uses no results of earlier runs (--no-cache), 619 ms: leave the option out, unless";
        assert_eq!(text.contains(words), is_named, "{line}: {text}");
    }
}

#[test]
fn a_loop_of_one_program_is_no_repeated_work() {
    let text = advice(&analyzed(&rounds(true)));
    assert!(text.contains("typeset doc and 1 more repeat"), "{text}");
    let text = advice(&analyzed(&rounds(false)));
    assert!(!text.contains("repeat"), "{text}");
}

/// A test program of cargo runs three tests, one after the other: it starts a thread for each, which naps for 0.3 s,
/// and waits for the thread's end.
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

/// COMMAND runs a program under `timeout`, which ends the program, and COMMAND goes on.
#[test]
fn a_limit_that_ends_a_program_is_named() {
    for (status, named) in [(0, true), (EXIT_1, false)] {
        let mut hand = command(1_300);
        starts(&mut hand, 10, 2, 11, 1);
        becomes(&mut hand, 3, 11, "/usr/bin/timeout 1 follow log");
        sleeps(&mut hand, (10, 0), 3, (Reason::Child, SLEEPS));
        hand.fork(1, 4 * MS, 11, 12, 12)
            .first_waking(1, 4 * MS + 1, 11, 12, false)
            .switch(2, 4 * MS + 2, 0, RUNNING, 12);
        becomes_on(&mut hand, 2, 12, 5, "/w/follow log");
        sleeps(&mut hand, (11, 1), 5, (Reason::Signal, SLEEPS));
        for nap in 0..4 {
            naps(&mut hand, (12, 2), 10 + 240 * nap, 240 + 240 * nap);
        }
        sleeps(&mut hand, (12, 2), 970, (Reason::Timer, SLEEPS));
        wakes(&mut hand, 0, 1_003, (11, 1));
        wakes(&mut hand, 11, 1_004, (12, 2));
        hand.exit(2, 1_005 * MS, 12, 12, true);
        super::has_status(&mut hand, TERM);
        sleeps(&mut hand, (11, 1), 1_004, (Reason::Child, SLEEPS));
        wakes(&mut hand, 12, 1_006, (11, 1));
        hand.switch(2, 1_006 * MS + 5, 12, DEAD, 0)
            .last(2, 1_006 * MS + 6, 12);
        hand.exit(1, 1_007 * MS, 11, 11, true);
        super::has_status(&mut hand, 124 << 8);
        hand.waking(1, 1_007 * MS + 1, 11, 10)
            .switch(0, 1_007 * MS + 2, 0, RUNNING, 10)
            .switch(1, 1_007 * MS + 3, 11, DEAD, 0)
            .last(1, 1_007 * MS + 4, 11);
        ends(&mut hand, (10, 0), 1_010, status);
        let text = advice(&analyzed(&hand));
        let line = "timeout ends follow log after 1.01 s: find out why it does not end";
        assert_eq!(text.contains(line), named, "{status}: {text}");
    }
}

/// A tool that could run two jobs at once runs three jobs one after the other. The jobs may share a lock or a pool of
/// one job, or need each other, so there is no advice.
#[test]
fn jobs_of_a_tool_that_could_run_several_are_not_judged_one_by_one() {
    for (tool, name, is_reported) in [
        ("/usr/bin/ctest -j2", "ctest -j2", true),
        ("/usr/bin/ninja", "ninja", true),
        ("/usr/bin/make -j4", "make -j4", true),
        ("/usr/bin/ninja -j1", "ninja -j1", false),
    ] {
        let mut hand = command(1_300);
        becomes(&mut hand, 1, 10, tool);
        for test in 0..3u32 {
            let (pid, at) = (11 + test, 10 + 310 * i64::from(test));
            starts(&mut hand, 10, at, pid, 1);
            becomes_on(&mut hand, 1, pid, at + 1, &format!("/w/solver {test}"));
            sleeps(&mut hand, (10, 0), at + 2, (Reason::Child, SLEEPS));
            ends_for_command(&mut hand, pid, 1, at + 302);
        }
        ends(&mut hand, (10, 0), 950, 0);
        let text = advice(&analyzed(&hand));
        let words = format!(
            "number of jobs: not judged ({name} runs 3 × solver one after the other, at once up to"
        );
        assert_eq!(text.contains(&words), is_reported, "{text}");
    }
}

/// COMMAND waits for the lock of a file, until either its time-out or another program ends the wait.
#[test]
fn a_lock_that_a_program_gave_up_is_held_by_others() {
    for (waker, words) in [
        (
            0,
            "for a lock, until its time-out: find out who holds it, or give up sooner, unless",
        ),
        (11, "for a lock of holder: hold it for less time"),
    ] {
        let mut hand = command(1_300);
        starts(&mut hand, 10, 2, 11, 1);
        becomes(&mut hand, 3, 11, "/w/holder");
        sleeps(&mut hand, (10, 0), 10, (Reason::FileLock, SLEEPS));
        wakes(&mut hand, waker, 810, (10, 0));
        ends(&mut hand, (11, 1), 815, 0);
        ends(&mut hand, (10, 0), 820, 0);
        let text = advice(&analyzed(&hand));
        assert!(text.contains(words), "{waker}: {text}");
    }
}

/// A loop in the background sleeps until COMMAND ends it by a signal, which the loop handles. COMMAND's work waits for
/// a CPU that other tasks use. If the CPU were free, the work would be shorter, and so would the loop, which lasts only
/// as long as the work.
#[test]
fn a_heartbeat_that_handles_its_end_has_no_length_of_its_own() {
    let mut hand = command(1_500);
    starts(&mut hand, 10, 2, 11, 1);
    becomes_on(&mut hand, 1, 11, 3, "/bin/sh dots.sh");
    starts(&mut hand, 10, 4, 30, 2);
    becomes_on(&mut hand, 2, 30, 5, "/w/work");
    sleeps(&mut hand, (10, 0), 6, (Reason::Child, SLEEPS));
    for beat in 0..5u32 {
        let (pid, at) = (12 + beat, 10 + 210 * i64::from(beat));
        hand.fork(1, at * MS, 11, pid, pid)
            .first_waking(1, at * MS + 1, 11, pid, false)
            .switch(3, at * MS + 2, 0, RUNNING, pid);
        becomes_on(&mut hand, 3, pid, at + 1, "/bin/sleep 0.2");
        sleeps(&mut hand, (11, 1), at + 2, (Reason::Child, SLEEPS));
        sleeps(&mut hand, (pid, 3), at + 3, (Reason::Timer, SLEEPS));
        if beat == 4 {
            break;
        }
        wakes(&mut hand, 0, at + 203, (pid, 3));
        hand.exit(3, (at + 204) * MS, pid, pid, true);
        wakes(&mut hand, pid, at + 205, (11, 1));
        hand.switch(3, (at + 205) * MS + 5, pid, DEAD, 0)
            .last(3, (at + 205) * MS + 6, pid);
    }
    hand.preempt(2, 100 * MS, 30, RUNNING, 98)
        .switch(2, 900 * MS, 98, RUNNING, 30);
    ends_for_command(&mut hand, 30, 2, 1_000);
    // The signal by which COMMAND ends the loop also ends the sleep of the loop.
    wakes(&mut hand, 10, 1_010, (11, 1));
    sleeps(&mut hand, (10, 0), 1_011, (Reason::Child, SLEEPS));
    wakes(&mut hand, 11, 1_012, (16, 3));
    hand.exit(3, 1_013 * MS, 16, 16, true);
    super::has_status(&mut hand, TERM);
    hand.switch(3, 1_013 * MS + 1, 16, DEAD, 0)
        .last(3, 1_013 * MS + 2, 16);
    ends_for_command(&mut hand, 11, 1, 1_015);
    ends(&mut hand, (10, 0), 1_020, 0);
    let text = advice(&analyzed(&hand));
    assert!(
        text.contains("the machine: with the CPUs to itself it takes 2"),
        "{text}"
    );
    assert!(!text.contains("sleeps"), "{text}");
}

/// COMMAND and another program take turns: each reads what the other one wrote. While other tasks have the CPUs, the
/// recording lacks most of the two programs' waits for each other, because the answer is already there when a program
/// reads. So the forecast must allow for the work of both programs, one after the other.
#[test]
fn programs_that_take_turns_are_not_forecast_to_run_at_once() {
    let mut hand = command(2_500);
    starts(&mut hand, 10, 2, 11, 1);
    becomes_on(&mut hand, 1, 11, 3, "/w/model");
    let read = (Reason::PipeRead, SLEEPS);
    sleeps(&mut hand, (11, 1), 4, read);
    // 120 turns, in which each of the two works for 1 ms.
    for turn in 0..120 {
        let at = 5 + 3 * turn;
        wakes(&mut hand, 10, at, (11, 1));
        sleeps_at(&mut hand, (10, 0), at * MS + 1_000, read);
        wakes(&mut hand, 11, at + 1, (10, 0));
        sleeps_at(&mut hand, (11, 1), (at + 1) * MS + 1_000, read);
    }
    // Then both programs wait for a CPU. When a program gets its CPU, the other one's answer is already there.
    wakes(&mut hand, 10, 400, (11, 1));
    hand.preempt(0, 410 * MS, 10, RUNNING, 98)
        .preempt(1, 410 * MS, 11, RUNNING, 99)
        .switch(1, 1_000 * MS, 99, RUNNING, 11)
        .preempt(1, 1_500 * MS, 11, RUNNING, 99)
        .switch(0, 1_500 * MS, 98, RUNNING, 10)
        .switch(1, 2_000 * MS, 99, RUNNING, 11);
    ends(&mut hand, (11, 1), 2_020, 0);
    ends(&mut hand, (10, 0), 2_030, 0);
    let text = advice(&analyzed(&hand));
    assert!(text.contains("(658 ms to 1.78 s)"), "{text}");
}

/// COMMAND naps longer and longer until its server has started up. For most of that time, the server waits for a CPU.
/// On free CPUs the naps would be shorter, unless the server works for a time that it measures itself. So the forecast
/// is an interval. In both cases COMMAND needs the server, so only the naps after its start can be saved.
#[test]
fn how_long_a_starting_server_takes_on_free_cpus_is_an_interval() {
    let mut hand = command(1_500);
    starts(&mut hand, 10, 2, 11, 1);
    becomes_on(&mut hand, 1, 11, 3, "/w/server");
    hand.preempt(1, 20 * MS, 11, RUNNING, 98)
        .switch(1, 500 * MS, 98, RUNNING, 11);
    for (from, to) in [(10, 110), (115, 315)] {
        naps(&mut hand, (10, 0), from, to);
    }
    sleeps(&mut hand, (10, 0), 320, (Reason::Timer, SLEEPS));
    sleeps(&mut hand, (11, 1), 550, (Reason::SocketRead, SLEEPS));
    wakes(&mut hand, 0, 720, (10, 0));
    wakes(&mut hand, 10, 730, (11, 1));
    ends(&mut hand, (11, 1), 735, 0);
    ends(&mut hand, (10, 0), 740, 0);
    let text = advice(&analyzed(&hand));
    let words =
        "with the CPUs to itself it takes 84 to 740 ms; the changes below save up to 170 ms, unless";
    assert!(text.contains(words), "{text}");
}

/// COMMAND starts three children and waits for all of them. One child works and waits for a CPU for 0.8 s, the others
/// sleep for a shorter time. On free CPUs the sleeps would decide how long the build takes.
#[test]
fn sleeps_that_free_cpus_would_leave_are_named_or_not_judged() {
    let both = "helper b and 1 more sleep 707 ms: wait for an event, unless";
    let neither = "beside the critical path: not judged (up to 5";
    for (second, words) in [("/w/helper b", both), ("/w/other", neither)] {
        let mut hand = command(1_500);
        starts(&mut hand, 10, 2, 11, 1);
        becomes_on(&mut hand, 1, 11, 3, "/w/work");
        starts(&mut hand, 10, 4, 12, 2);
        becomes_on(&mut hand, 2, 12, 5, "/w/helper a");
        sleeps(&mut hand, (12, 2), 6, (Reason::Timer, SLEEPS));
        starts(&mut hand, 10, 7, 13, 2);
        becomes_on(&mut hand, 2, 13, 8, second);
        sleeps(&mut hand, (13, 2), 9, (Reason::Timer, SLEEPS));
        sleeps(&mut hand, (10, 0), 10, (Reason::Child, SLEEPS));
        hand.preempt(1, 100 * MS, 11, RUNNING, 98);
        for pid in [12, 13] {
            let at = 706 + 10 * i64::from(pid - 12);
            wakes(&mut hand, 0, at, (pid, 2));
            ends_for_command(&mut hand, pid, 2, at + 3);
            sleeps(&mut hand, (10, 0), at + 4, (Reason::Child, SLEEPS));
        }
        hand.switch(1, 900 * MS, 98, RUNNING, 11);
        ends_for_command(&mut hand, 11, 1, 1_000);
        ends(&mut hand, (10, 0), 1_005, 0);
        let text = advice(&analyzed(&hand));
        assert!(text.contains(words), "{second}: {text}");
    }
}

/// An event loop sets a timer of a second and then waits for a child, which waits for a CPU for 0.8 s. After the
/// child's end, the event loop waits for the rest of the timer's time. On free CPUs, that rest is longer.
#[test]
fn a_timer_that_was_set_before_the_work_is_no_shorter_on_free_cpus() {
    let mut hand = command(1_500);
    starts(&mut hand, 10, 2, 11, 1);
    becomes_on(&mut hand, 1, 11, 3, "/w/work");
    polls(&mut hand, (10, 0), 10, 1_000);
    hand.preempt(1, 50 * MS, 11, RUNNING, 98)
        .switch(1, 850 * MS, 98, RUNNING, 11);
    ends_for_command(&mut hand, 11, 1, 900);
    polls(&mut hand, (10, 0), 905, 105);
    wakes(&mut hand, 0, 1_010, (10, 0));
    ends(&mut hand, (10, 0), 1_015, 0);
    let text = advice(&analyzed(&hand));
    assert!(!text.contains("the machine"), "{text}");
    // Without the timer, the build takes as long as the child's work, so nearly the whole second can be saved.
    assert!(text.contains("≤ 9"), "{text}");
}

/// COMMAND signals its child, which waits in poll(2), and then COMMAND waits for the child's end. The child handles the
/// signal, but then polls again until its time-out, and then ends.
#[test]
fn a_program_that_waits_on_after_a_signal_of_its_parent_can_end_at_once() {
    let mut hand = command(1_500);
    starts(&mut hand, 10, 2, 11, 1);
    becomes_on(&mut hand, 1, 11, 3, "/w/collector");
    polls(&mut hand, (11, 1), 5, 5_000);
    wakes(&mut hand, 10, 100, (11, 1));
    sleeps(&mut hand, (10, 0), 101, (Reason::Child, SLEEPS));
    polls(&mut hand, (11, 1), 102, 900);
    wakes(&mut hand, 0, 1_002, (11, 1));
    ends_for_command(&mut hand, 11, 1, 1_005);
    ends(&mut hand, (10, 0), 1_010, 0);
    let text = advice(&analyzed(&hand));
    let words =
        "after its parent woke it, and then ends: end at once, if that was the signal to end";
    assert!(text.contains(words), "{text}");
}

/// A program sleeps for most of COMMAND's time. The advice names these sleeps, unless the program is a benchmark whose
/// arguments set how long it measures.
#[test]
fn a_measurement_for_a_set_time_is_not_judged() {
    for (program, is_measurement) in [("/w/pgbench -T 1 db", true), ("/w/pgbench -t 9 db", false)] {
        let mut hand = command(1_500);
        starts(&mut hand, 10, 2, 11, 1);
        becomes_on(&mut hand, 1, 11, 3, program);
        sleeps(&mut hand, (10, 0), 5, (Reason::Child, SLEEPS));
        for nap in 0..3 {
            naps(&mut hand, (11, 1), 10 + 310 * nap, 310 + 310 * nap);
        }
        ends_for_command(&mut hand, 11, 1, 1_000);
        ends(&mut hand, (10, 0), 1_005, 0);
        let text = advice(&analyzed(&hand));
        let words = "measures for a set time";
        assert_eq!(text.contains(words), is_measurement, "{text}");
        assert_eq!(text.contains("What to change"), !is_measurement, "{text}");
    }
}

/// COMMAND starts three programs, one after the other. Each program mostly waits, and COMMAND checks every few
/// milliseconds whether the running program has ended.
#[test]
fn a_program_that_often_looks_at_its_jobs_can_run_them_at_once() {
    let mut hand = command(1_500);
    for job in 0..3 {
        let (pid, at) = (11 + job, 10 + 310 * i64::from(job));
        starts(&mut hand, 10, at, pid, 1);
        becomes_on(&mut hand, 1, pid, at + 1, &format!("/w/drain host{job}"));
        polls(&mut hand, (pid, 1), at + 2, 300);
        for nap in 0..30 {
            naps(&mut hand, (10, 0), at + 2 + 10 * nap, at + 10 + 10 * nap);
        }
        wakes(&mut hand, 0, at + 302, (pid, 1));
        ends(&mut hand, (pid, 1), at + 303, 0);
    }
    ends(&mut hand, (10, 0), 945, 0);
    let text = advice(&analyzed(&hand));
    assert!(
        text.contains("runs 3 × drain one after the other"),
        "{text}"
    );
    assert!(!text.contains("sleeps"), "{text}");
}

/// An event loop waits for two timers between its tries and then fails. The last wait is a pause like the first one.
#[test]
fn the_last_pause_of_a_program_that_gives_up_is_a_pause() {
    let mut hand = command(1_300);
    polls(&mut hand, (10, 0), 10, 300);
    wakes(&mut hand, 0, 310, (10, 0));
    polls(&mut hand, (10, 0), 320, 600);
    wakes(&mut hand, 0, 920, (10, 0));
    ends(&mut hand, (10, 0), 925, EXIT_1);
    let text = advice(&analyzed(&hand));
    assert!(
        text.contains("sleeps 900 ms, 2 times, and then fails"),
        "{text}"
    );
}
