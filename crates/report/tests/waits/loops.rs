//! Tests the advice about the loops of a script: loops that run at the same time, and work that a loop does twice.

use tr_format::event::Reason;

use super::super::kinds::hand::{Hand, DEAD, RUNNING, SLEEPS};
use super::sleeps::{becomes_on, ends_for_command};
use super::{advice, analyzed, command, ends, sleeps, sleeps_at, starts, wakes, MS};

const CHILD: (Reason, u16) = (Reason::Child, SLEEPS);

/// Lets a process wait for a child that runs a program on the same CPU from the time `from` until the time `to`.
fn runs(hand: &mut Hand, shell: (u32, u16), pid: u32, times: (i64, i64), line: &str) {
    let ((parent, cpu), (from, to)) = (shell, times);
    let on = usize::from(cpu);
    hand.fork(cpu, from * MS, parent, pid, pid)
        .first_waking(on, from * MS + 1, parent, pid, false);
    sleeps_at(hand, (parent, on), from * MS + 2, CHILD);
    hand.switch(on, from * MS + 3, 0, RUNNING, pid);
    becomes_on(hand, cpu, pid, from + 1, line);
    hand.exit(cpu, to * MS, pid, pid, true)
        .waking(on, to * MS + 1, pid, parent)
        .switch(on, to * MS + 2, pid, DEAD, parent)
        .last(cpu, to * MS + 2, pid);
}

/// The advice about a script that runs two loops at the same time on two CPUs, of three commands each. The commands of
/// the first loop take 200 ms, those of the second one `short` ms.
fn two_loops(short: i64) -> String {
    let mut hand = command(1_100);
    hand.meta.cpus.truncate(2);
    becomes_on(&mut hand, 0, 10, 1, "/bin/sh pack.sh");
    hand.fork(0, 5 * MS, 10, 11, 11)
        .first_waking(0, 5 * MS + 1, 10, 11, false);
    starts(&mut hand, 10, 6, 12, 1);
    sleeps_at(&mut hand, (10, 0), 7 * MS, CHILD);
    hand.switch(0, 7 * MS + 1, 0, RUNNING, 11);
    for (shell, cpu, length) in [(11, 0, 200), (12, 1, short)] {
        for n in 0..3u32 {
            let from = 10 + i64::from(n) * (length + 5);
            let pid = shell * 10 + n;
            let line = format!("/bin/xz {pid}.tar");
            runs(&mut hand, (shell, cpu), pid, (from, from + length), &line);
        }
    }
    ends(&mut hand, (12, 1), 10 + 3 * (short + 5), 0);
    ends_for_command(&mut hand, 11, 0, 10 + 3 * 205);
    ends(&mut hand, (10, 0), 10 + 3 * 205 + 5, 0);
    advice(&analyzed(&hand))
}

/// One of two loops that a script runs at the same time may have most of the work.
#[test]
fn a_loop_that_goes_on_alone_could_be_divided() {
    let text = two_loops(20);
    let words = "pack.sh runs 3 × xz one after the other";
    assert!(text.contains(words), "{text}");
    let text = two_loops(195);
    assert!(!text.contains("one after the other"), "{text}");
}

/// The advice about a script that compresses two directories, one after the other: tar writes into a pipe from which
/// gzip reads.
fn packs(first: &str, second: &str) -> String {
    let mut hand = command(1_100);
    becomes_on(&mut hand, 0, 10, 1, "/bin/sh pack.sh");
    for (at, tar, directory) in [(10, 11, first), (420, 13, second)] {
        starts(&mut hand, 10, at, tar, 1);
        starts(&mut hand, 10, at + 1, tar + 1, 2);
        becomes_on(
            &mut hand,
            1,
            tar,
            at + 2,
            &format!("/bin/tar -c {directory}"),
        );
        becomes_on(&mut hand, 2, tar + 1, at + 2, "/bin/gzip -9");
        sleeps_at(&mut hand, (10, 0), (at + 3) * MS, CHILD);
        sleeps_at(
            &mut hand,
            (tar + 1, 2),
            (at + 3) * MS,
            (Reason::PipeRead, SLEEPS),
        );
        wakes(&mut hand, tar, at + 10, (tar + 1, 2));
        ends(&mut hand, (tar, 1), at + 20, 0);
        ends_for_command(&mut hand, tar + 1, 2, at + 400);
    }
    ends(&mut hand, (10, 0), 840, 0);
    advice(&analyzed(&hand))
}

/// A program that reads from a pipe repeats its work if the program that writes into the pipe has an equal command
/// line.
#[test]
fn a_pipe_with_the_same_source_is_repeated_work() {
    let text = packs("usr", "usr");
    assert!(text.contains("gzip -9 repeats 391 ms of work"), "{text}");
    let text = packs("usr", "etc");
    assert!(!text.contains("repeat"), "{text}");
}

/// COMMAND has two threads on two CPUs, each of which works for 100 ms and then lets the other one work, for a
/// number of rounds. Then the first thread works until 1.3 s. Returns the advice.
fn hands_over(rounds: i64) -> String {
    let mut hand = command(1_400);
    becomes_on(&mut hand, 0, 10, 1, "/w/pack");
    hand.fork(0, 2 * MS, 10, 11, 10)
        .first_waking(0, 2 * MS + 1, 10, 11, false)
        .switch(1, 2 * MS + 2, 0, RUNNING, 11);
    sleeps(&mut hand, (11, 1), 3, (Reason::Lock, SLEEPS));
    let mut from = 3;
    for _ in 0..rounds {
        wakes(&mut hand, 10, from + 100, (11, 1));
        sleeps(&mut hand, (10, 0), from + 101, (Reason::Lock, SLEEPS));
        wakes(&mut hand, 11, from + 200, (10, 0));
        sleeps(&mut hand, (11, 1), from + 201, (Reason::Lock, SLEEPS));
        from += 201;
    }
    let end = 1_300 * MS;
    hand.waking(1, end - MS, 10, 11)
        .switch(1, end - MS + 1, 0, RUNNING, 11)
        .exit(1, end - MS + 2, 11, 10, false)
        .switch(1, end - MS + 3, 11, DEAD, 0)
        .last(1, end - MS + 4, 11);
    ends(&mut hand, (10, 0), 1_300, 0);
    hand.meta.cpus.truncate(2);
    advice(&analyzed(&hand))
}

/// Two threads of a program that wait for each other run one at a time. If one of them does most of the work, the
/// program is not said to have several.
#[test]
fn threads_that_wait_for_each_other_run_one_at_a_time() {
    let text = hands_over(6);
    assert!(
        text.contains("pack runs alone for 1.29 s, one of 2 threads at a time: "),
        "{text}"
    );
    let text = hands_over(1);
    assert!(
        text.contains("pack runs alone for 1.30 s: divide"),
        "{text}"
    );
}
