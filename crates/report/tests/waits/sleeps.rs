//! Tests the advice about sleeps, and about the loops that they belong to.

use tr_format::event::{Argv, LifeKind, Reason, SchedKind, Switch, Tid, Timeout};

use super::super::kinds::hand::{Hand, BLOCKED, DEAD, RUNNING, SLEEPS};
use super::{
    advice, analyzed, command, ends, sleeps, sleeps_at, starts, wakes, wakes_at, MS, TERM,
};

const KILL: u32 = 9;
const NAP: (Reason, u16) = (Reason::Timer, SLEEPS);

/// Lets a process execute a program with this command line.
pub(super) fn becomes(hand: &mut Hand, at: i64, pid: u32, line: &str) {
    becomes_on(hand, 0, pid, at, line);
}

/// Lets a process execute a program with this command line, and run on a CPU.
pub(super) fn becomes_on(hand: &mut Hand, cpu: u16, pid: u32, at: i64, line: &str) {
    hand.exec(cpu, at * MS, pid, pid);
    if let Some(LifeKind::Exec(exec)) = hand.life.last_mut().map(|life| &mut life.kind) {
        exec.argv = Argv::from_args(line.split(' '));
        exec.filename = line.split(' ').next().unwrap().as_bytes().to_vec().into();
    }
}

/// Lets a task sleep until a timer ends, from the time `from` until the time `to`. The task then runs again on its CPU.
pub(super) fn naps(hand: &mut Hand, task: (u32, usize), from: i64, to: i64) {
    sleeps(hand, task, from, NAP);
    wakes(hand, 0, to, task);
}

/// Lets a child of COMMAND end, which wakes COMMAND.
pub(super) fn ends_for_command(hand: &mut Hand, pid: u32, cpu: usize, at: i64) {
    let own = u16::try_from(cpu).unwrap();
    hand.exit(own, at * MS, pid, pid, true)
        .waking(cpu, at * MS + 1, pid, 10)
        .switch(0, at * MS + 2, 0, RUNNING, 10)
        .switch(cpu, at * MS + 3, pid, DEAD, 0)
        .last(own, at * MS + 4, pid);
}

/// The main thread of a language's runtime naps ten times, waits for the end of its process's other thread, and exits.
/// The advice must name these naps. It ignores only the regular naps of a thread in the background.
#[test]
fn a_runtimes_end_makes_no_ticks_of_its_naps() {
    let mut hand = command(1_100);
    hand.fork(0, 2 * MS, 10, 11, 10)
        .first_waking(0, 2 * MS + 1, 10, 11, false)
        .switch(1, 2 * MS + 2, 0, RUNNING, 11);
    sleeps(&mut hand, (11, 1), 3, (Reason::Lock, SLEEPS));
    for nap in 0..10 {
        // Node and Tcl nap in the system call poll. The work between two naps takes 4.7 ms.
        let from = 10 * MS + 99_700_000 * nap;
        sleeps_at(&mut hand, (10, 0), from, (Reason::Poll, SLEEPS));
        wakes_at(&mut hand, 0, from + 95 * MS, (10, 0));
    }
    // The main thread tells the other thread to end, and then waits until this thread has ended.
    hand.waking(1, 1_010 * MS, 10, 11)
        .switch(1, 1_010 * MS + 1, 0, RUNNING, 11);
    sleeps(&mut hand, (10, 0), 1_011, (Reason::Lock, SLEEPS));
    wakes(&mut hand, 11, 1_012, (10, 0));
    hand.exit(1, 1_012 * MS + 10, 11, 10, false)
        .switch(1, 1_012 * MS + 11, 11, DEAD, 0)
        .last(1, 1_012 * MS + 12, 11);
    ends(&mut hand, (10, 0), 1_013, 0);
    let text = advice(&analyzed(&hand));
    assert!(
        text.contains("waits 950 ms for timers or time-outs, 10 × 95 ms"),
        "{text}"
    );
    assert!(
        text.contains("of its own, mostly sleep in") && !text.contains("of its own work"),
        "{text}"
    );
}

/// The main thread of an event loop naps five times. Then it waits for an answer of another thread of its process. Each
/// nap delayed the run. So the naps must not be taken for ticks: for the regular, harmless wake-ups of a loop that
/// waits for the answer.
#[test]
fn naps_on_the_critical_path_are_no_ticks() {
    let mut hand = command(1_100);
    hand.fork(0, 2 * MS, 10, 11, 10)
        .first_waking(0, 2 * MS + 1, 10, 11, false)
        .switch(1, 2 * MS + 2, 0, RUNNING, 11);
    sleeps(&mut hand, (11, 1), 3, (Reason::Lock, SLEEPS));
    for nap in 0..5 {
        sleeps(&mut hand, (10, 0), 10 + 200 * nap, (Reason::Poll, SLEEPS));
        wakes(&mut hand, 0, 208 + 200 * nap, (10, 0));
    }
    // The thread of the loop works for 15 ms.
    hand.waking(1, 1_010 * MS, 10, 11)
        .switch(1, 1_010 * MS + 1, 0, RUNNING, 11);
    sleeps(&mut hand, (10, 0), 1_011, (Reason::Poll, SLEEPS));
    wakes(&mut hand, 11, 1_026, (10, 0));
    hand.exit(1, 1_026 * MS + 10, 11, 10, false)
        .switch(1, 1_026 * MS + 11, 11, DEAD, 0)
        .last(1, 1_026 * MS + 12, 11);
    ends(&mut hand, (10, 0), 1_030, 0);
    let text = advice(&analyzed(&hand));
    assert!(
        text.contains("≤ 990 ms") && text.contains("990 ms for timers or time-outs, 5 × 198 ms"),
        "{text}"
    );
}

/// A driver sends four keys to a program in a terminal, with naps of 0.2 s between them. A worker of the kernel hands
/// each key on and wakes the program. So the recording does not show that the driver ends the program's waits.
#[test]
fn waits_without_a_proven_cause_do_not_bound_sleeps() {
    let mut hand = command(1_000);
    starts(&mut hand, 10, 2, 11, 1);
    becomes(&mut hand, 3, 11, "/w/menu");
    sleeps(&mut hand, (11, 1), 4, (Reason::Terminal, SLEEPS));
    for key in 0..4 {
        let from = 10 + 210 * key;
        naps(&mut hand, (10, 0), from, from + 200);
        // The worker of the kernel, which is not recorded, wakes the program.
        wakes(&mut hand, 999, from + 202, (11, 1));
        if key < 3 {
            sleeps(&mut hand, (11, 1), from + 203, (Reason::Terminal, SLEEPS));
        }
    }
    sleeps(&mut hand, (10, 0), 845, (Reason::Child, SLEEPS));
    ends_for_command(&mut hand, 11, 1, 850);
    ends(&mut hand, (10, 0), 855, 0);
    let text = advice(&analyzed(&hand));
    assert!(text.contains("≤ 800 ms"), "{text}");
}

/// COMMAND naps until each tenth of a second, twelve times. So COMMAND keeps a rate, and the rate may be intended.
#[test]
fn naps_that_keep_a_rate_are_not_judged() {
    let mut hand = command(1_300);
    for nap in 0..12 {
        let work = 20_000 + 3_000 * (nap * 5 % 7);
        sleeps_at(&mut hand, (10, 0), nap * 100 * MS + 10 * MS + work, NAP);
        wakes(&mut hand, 0, nap * 100 + 110, (10, 0));
    }
    ends(&mut hand, (10, 0), 1_215, 0);
    let text = advice(&analyzed(&hand));
    assert!(
        text.contains("mostly sleep in old (1.20 s), not judged"),
        "{text}"
    );
    assert!(!text.contains("save"), "{text}");
}

/// COMMAND starts a server, which first naps for a second, and a client, which tries every 0.2 s whether the server
/// listens. If only the client did not sleep, nothing would be saved.
#[test]
fn a_client_and_its_server_sleep_together() {
    let mut hand = command(1_300);
    starts(&mut hand, 10, 2, 11, 1);
    starts(&mut hand, 10, 3, 12, 2);
    becomes(&mut hand, 4, 11, "/w/server");
    becomes(&mut hand, 4, 12, "/w/client");
    sleeps(&mut hand, (10, 0), 5, (Reason::Child, SLEEPS));
    naps(&mut hand, (11, 1), 10, 1_010);
    for nap in 0..6 {
        naps(&mut hand, (12, 2), 10 + 201 * nap, 210 + 201 * nap);
    }
    // The server accepts, answers and ends; the client ends after it.
    sleeps(&mut hand, (11, 1), 1_011, (Reason::SocketRead, SLEEPS));
    wakes(&mut hand, 12, 1_216, (11, 1));
    sleeps(&mut hand, (12, 2), 1_217, (Reason::SocketRead, SLEEPS));
    wakes(&mut hand, 11, 1_218, (12, 2));
    ends(&mut hand, (11, 1), 1_219, 0);
    ends_for_command(&mut hand, 12, 2, 1_222);
    ends(&mut hand, (10, 0), 1_225, 0);
    let text = advice(&analyzed(&hand));
    assert!(
        text.contains(
            "client sleeps 1.20 s, 6 × 200 ms, while server sleeps 1.00 s: wait for events"
        ),
        "{text}"
    );
    assert!(!text.contains("not judged"), "{text}");
}

/// A server naps for 0.2 s in each of four requests, and after the last answer COMMAND ends it by a signal.
#[test]
fn a_server_that_is_ended_has_slept_for_its_last_answer() {
    let mut hand = command(1_100);
    starts(&mut hand, 10, 2, 11, 1);
    becomes(&mut hand, 3, 11, "/w/server");
    sleeps(&mut hand, (11, 1), 4, (Reason::SocketRead, SLEEPS));
    for request in 0..4 {
        let from = 10 + 210 * request;
        hand.waking(1, from * MS, 10, 11)
            .switch(1, from * MS + 1, 0, RUNNING, 11);
        sleeps(&mut hand, (10, 0), from + 1, (Reason::SocketRead, SLEEPS));
        naps(&mut hand, (11, 1), from + 2, from + 202);
        wakes(&mut hand, 11, from + 203, (10, 0));
        sleeps(&mut hand, (11, 1), from + 204, (Reason::SocketRead, SLEEPS));
    }
    wakes(&mut hand, 10, 860, (11, 1));
    ends(&mut hand, (11, 1), 861, TERM);
    ends(&mut hand, (10, 0), 870, 0);
    let text = advice(&analyzed(&hand));
    assert!(
        text.contains("≤ 800 ms server sleeps 800 ms, 4 × 200 ms"),
        "{text}"
    );
}

/// For each of two children in turn, a loop naps for 10 ms and then waits for a CPU for 50 ms, three times. Each child
/// ends while the loop waits for a CPU, so the loop's next check notices the end without another nap.
#[test]
fn a_check_comes_when_its_loop_has_a_cpu() {
    let mut hand = command(700);
    for child in 0..2 {
        let begin = 10 + 300 * i64::from(child);
        starts(&mut hand, 10, begin - 1, 11 + child, 1);
        for nap in 0..4 {
            let from = begin + 70 * nap;
            sleeps(&mut hand, (10, 0), from, NAP);
            hand.waking(0, (from + 10) * MS, 98, 10)
                .switch(0, (from + 60) * MS, 98, RUNNING, 10);
        }
        ends(&mut hand, (11 + child, 1), begin + 250, 0);
    }
    ends(&mut hand, (10, 0), 600, 0);
    let text = advice(&analyzed(&hand));
    assert!(!text.contains("wait for an event"), "{text}");
}

/// A server works for 0.9 s until it listens for requests, and is idle from then on. A script checks every 0.25 s
/// whether the server listens.
#[test]
fn a_script_that_waits_for_a_server_that_works_polls() {
    let mut hand = command(1_200);
    starts(&mut hand, 10, 2, 11, 1);
    becomes(&mut hand, 3, 11, "/w/server");
    for nap in 0..4 {
        naps(&mut hand, (10, 0), 10 + 251 * nap, 260 + 251 * nap);
    }
    // The server has listened since the middle of the script's last nap. It answers the script's request, and COMMAND
    // ends it.
    sleeps(&mut hand, (11, 1), 900, (Reason::Poll, SLEEPS));
    hand.waking(1, 1_016 * MS, 10, 11)
        .switch(1, 1_016 * MS + 1, 0, RUNNING, 11);
    sleeps(&mut hand, (10, 0), 1_017, (Reason::SocketRead, SLEEPS));
    wakes(&mut hand, 11, 1_018, (10, 0));
    sleeps(&mut hand, (11, 1), 1_019, (Reason::Poll, SLEEPS));
    hand.waking(1, 1_030 * MS, 10, 11)
        .switch(1, 1_030 * MS + 1, 0, RUNNING, 11);
    ends(&mut hand, (11, 1), 1_031, 15);
    ends(&mut hand, (10, 0), 1_040, 0);
    let text = advice(&analyzed(&hand));
    assert!(text.contains("checks every 250 ms, 4 times"), "{text}");
}

/// A script checks after naps of 20 and 28 ms whether its server answers, by a program that asks the server. The server
/// waits for a disk and works until it is ready, and the script needs it. So the script's naps cost no time.
#[test]
fn naps_until_a_server_has_started_cost_nothing() {
    let mut hand = command(500);
    starts(&mut hand, 10, 2, 11, 1);
    becomes_on(&mut hand, 1, 11, 3, "/w/server");
    for nap in 0..12 {
        let length = 20 + 8 * (nap % 2);
        naps(&mut hand, (10, 0), 10 + 31 * nap, 10 + 31 * nap + length);
    }
    sleeps(&mut hand, (11, 1), 100, (Reason::FileRead, BLOCKED));
    wakes(&mut hand, 0, 250, (11, 1));
    polls(&mut hand, (11, 1), 370, 500);
    starts(&mut hand, 10, 382, 12, 2);
    becomes_on(&mut hand, 2, 12, 383, "/usr/bin/curl");
    sleeps(&mut hand, (10, 0), 384, (Reason::Child, SLEEPS));
    wakes(&mut hand, 12, 386, (11, 1));
    ends_for_command(&mut hand, 12, 2, 388);
    ends(&mut hand, (11, 1), 390, TERM);
    ends(&mut hand, (10, 0), 395, 0);
    let text = advice(&analyzed(&hand));
    assert!(!text.contains("What to change"), "{text}");
}

/// A thread of a runtime looks after its other threads every 100 ms while these work. The advice names COMMAND's naps,
/// but not the sleeps of that thread, because nothing waits for them.
#[test]
fn ticks_beside_work_are_no_sleeps_that_something_waits_for() {
    let mut hand = command(1_300);
    starts(&mut hand, 10, 2, 11, 1);
    becomes(&mut hand, 3, 11, "/w/service");
    hand.fork(1, 4 * MS, 11, 12, 11)
        .first_waking(1, 4 * MS + 1, 11, 12, false)
        .switch(2, 4 * MS + 2, 0, RUNNING, 12);
    for tick in 0..11 {
        naps(&mut hand, (12, 2), 5 + 101 * tick, 105 + 101 * tick);
    }
    for nap in 0..20 {
        let from = 10 * MS + 51 * MS * nap + nap * 7 % 11 * 230_000;
        sleeps_at(&mut hand, (10, 0), from, NAP);
        wakes_at(&mut hand, 0, from + 45 * MS, (10, 0));
    }
    ends(&mut hand, (10, 0), 1_040, 0);
    let text = advice(&analyzed(&hand));
    assert!(text.contains("old sleeps 900 ms, 20 × 45 ms"), "{text}");
    assert!(!text.contains("while"), "{text}");
}

/// The advice about a script that runs three commands one after the other, each of which works for 0.3 s.
fn script(lines: [&str; 3]) -> String {
    let mut hand = command(1_100);
    becomes(&mut hand, 1, 10, "/bin/sh lint.sh");
    for (at, line) in (0u32..).zip(lines) {
        let (from, pid) = (5 + 310 * i64::from(at), 11 + at);
        starts(&mut hand, 10, from, pid, 1);
        becomes(&mut hand, from + 1, pid, line);
        sleeps(&mut hand, (10, 0), from + 2, (Reason::Child, SLEEPS));
        ends_for_command(&mut hand, pid, 1, from + 300);
    }
    ends(&mut hand, (10, 0), 940, 0);
    advice(&analyzed(&hand))
}

/// Linters write nothing that another program reads, so they can run at once. Other commands may write files.
#[test]
fn linters_of_a_script_can_run_at_once() {
    let text = script(["/bin/shellcheck a.sh", "/bin/php -l a.php", "/bin/mypy src"]);
    let words = "lint.sh runs 3 checks one after the other, 900 ms: run them at once";
    assert!(text.contains(words), "{text}");
    let text = script(["/bin/shellcheck a.sh", "/bin/php a.php", "/bin/mypy src"]);
    assert!(!text.contains("checks one after the other"), "{text}");
    assert!(
        text.contains("order of 3 commands of lint.sh: not judged"),
        "{text}"
    );
}

/// COMMAND waits for a second for an unknown reason, and other tasks have the CPU for 0.2 s. The verdict must not be
/// that the machine took the time.
#[test]
fn a_build_that_waits_is_not_the_machines() {
    let mut hand = command(1_400);
    starts(&mut hand, 10, 2, 11, 1);
    sleeps(&mut hand, (11, 1), 3, (Reason::PipeRead, SLEEPS));
    // The cause of this wait is unknown.
    sleeps(&mut hand, (10, 0), 10, (Reason::Unknown, BLOCKED));
    hand.waking(0, 1_010 * MS, 99, 10)
        .switch(0, 1_011 * MS, 0, RUNNING, 10)
        .preempt(0, 1_012 * MS, 10, RUNNING, 98)
        .switch(0, 1_212 * MS, 98, SLEEPS, 10);
    ends(&mut hand, (11, 1), 1_213, 9);
    ends(&mut hand, (10, 0), 1_215, 0);
    let text = advice(&analyzed(&hand));
    assert!(!text.contains("the machine"), "{text}");
}

/// Lets a task leave its CPU and wait in poll(2), with a time-out in milliseconds.
pub(super) fn polls(hand: &mut Hand, task: (u32, usize), from: i64, timeout: u64) {
    polls_until(hand, task, from, Timeout::after(timeout * 1_000_000));
}

/// Lets a task wait in poll(2) from a time on, with the given time-out.
pub(super) fn polls_until(hand: &mut Hand, task: (u32, usize), from: i64, timeout: Timeout) {
    let (tid, cpu) = task;
    let wait = SchedKind::Switch(Switch {
        prev: Tid(tid),
        next: Tid(0),
        prev_state: SLEEPS,
        preempt: false,
        iowait: false,
        reason: Reason::Poll,
        timeout,
    });
    hand.sched(cpu, from * MS, wait);
}

/// A client sleeps for a second before each request to a server. The server waits for requests with a time-out of half
/// a second, so two time-outs end during each sleep. COMMAND ends the server 1 ms after its last answer. The server's
/// time-outs do not delay the client, so they do not count as sleeps.
#[test]
fn a_servers_time_outs_do_not_delay_a_client_that_sleeps() {
    let mut hand = command(2_100);
    starts(&mut hand, 10, 2, 11, 1);
    becomes(&mut hand, 3, 11, "/w/server");
    starts(&mut hand, 10, 4, 12, 2);
    becomes(&mut hand, 5, 12, "/w/client");
    sleeps(&mut hand, (10, 0), 6, (Reason::Child, SLEEPS));
    for request in 0..2 {
        let from = 10 + 1_010 * request;
        naps(&mut hand, (12, 2), from, from + 1_003);
        for tick in 0..2 {
            polls(&mut hand, (11, 1), from + 501 * tick, 500);
            wakes(&mut hand, 0, from + 501 * tick + 500, (11, 1));
        }
        polls(&mut hand, (11, 1), from + 1_002, 500);
        wakes(&mut hand, 12, from + 1_004, (11, 1));
        sleeps(
            &mut hand,
            (12, 2),
            from + 1_005,
            (Reason::SocketRead, SLEEPS),
        );
        wakes(&mut hand, 11, from + 1_006, (12, 2));
    }
    polls(&mut hand, (11, 1), 2_028, 500);
    ends_for_command(&mut hand, 12, 2, 2_029);
    wakes(&mut hand, 10, 2_031, (11, 1));
    ends(&mut hand, (11, 1), 2_032, TERM);
    ends(&mut hand, (10, 0), 2_035, 0);
    let text = advice(&analyzed(&hand));
    assert!(
        text.contains("client sleeps 2.01 s, 2 × 1.00 s: "),
        "{text}"
    );
}

/// A server sleeps once, and then waits for requests with a time-out until it is ended. COMMAND works meanwhile. The
/// server's waits do not delay COMMAND, so half of its time can be saved on two CPUs.
#[test]
fn the_ticks_of_a_server_after_a_single_sleep_delay_nothing() {
    let mut hand = command(1_300);
    becomes(&mut hand, 1, 10, "/w/tool");
    starts(&mut hand, 10, 2, 11, 1);
    becomes_on(&mut hand, 1, 11, 3, "/w/server");
    naps(&mut hand, (11, 1), 4, 404);
    for tick in 0..7 {
        let from = 405 + 101 * tick;
        polls(&mut hand, (11, 1), from, 100);
        wakes(&mut hand, 0, from + 100, (11, 1));
    }
    polls(&mut hand, (11, 1), 1_112, 100);
    wakes(&mut hand, 10, 1_150, (11, 1));
    sleeps(&mut hand, (10, 0), 1_151, (Reason::Child, SLEEPS));
    ends_for_command(&mut hand, 11, 1, 1_152);
    ends(&mut hand, (10, 0), 1_154, 0);
    hand.meta.cpus.truncate(2);
    let text = advice(&analyzed(&hand));
    assert!(text.contains("≤ 570 ms tool runs alone"), "{text}");
}

/// COMMAND is an event loop that waits for its child. Meanwhile, a timer of its own ends a wait, for example that of a
/// runtime that collects its garbage when it is idle. If the child ends sooner, COMMAND does not wait for that timer.
#[test]
fn a_timer_of_an_event_loop_delays_no_wait_for_a_child() {
    let mut hand = command(1_300);
    starts(&mut hand, 10, 2, 11, 1);
    becomes_on(&mut hand, 1, 11, 3, "/w/tool");
    polls(&mut hand, (10, 0), 4, 800);
    wakes(&mut hand, 0, 804, (10, 0));
    polls_until(&mut hand, (10, 0), 806, Timeout::NONE);
    ends_for_command(&mut hand, 11, 1, 1_004);
    ends(&mut hand, (10, 0), 1_006, 0);
    hand.meta.cpus.truncate(2);
    let text = advice(&analyzed(&hand));
    assert!(text.contains("≤ 499 ms tool runs alone"), "{text}");
}

/// An event loop answers each request after a timer of 0.25 s, and then waits for the next request. The timers count as
/// sleeps before the answers.
#[test]
fn a_timer_before_an_answer_is_a_sleep() {
    let mut hand = command(1_300);
    starts(&mut hand, 10, 2, 11, 1);
    becomes(&mut hand, 3, 11, "/w/server");
    polls(&mut hand, (11, 1), 4, 60_000);
    for request in 0..4 {
        let from = 10 + 270 * request;
        wakes(&mut hand, 10, from, (11, 1));
        sleeps(&mut hand, (10, 0), from + 1, (Reason::SocketRead, SLEEPS));
        polls(&mut hand, (11, 1), from + 2, 250);
        wakes(&mut hand, 0, from + 252, (11, 1));
        wakes(&mut hand, 11, from + 253, (10, 0));
        polls(&mut hand, (11, 1), from + 254, 5_000);
    }
    wakes(&mut hand, 10, 1_100, (11, 1));
    ends(&mut hand, (11, 1), 1_101, TERM);
    ends(&mut hand, (10, 0), 1_110, 0);
    let text = advice(&analyzed(&hand));
    assert!(
        text.contains("≤ 1.00 s server waits 1.00 s for timers or time-outs, 4 × 250 ms"),
        "{text}"
    );
}

/// A supervisor waits for a timer of a second, sends a request to its server, gets an answer, and ends the server. A
/// request, and not a signal, woke the server first. So the second before the request belongs to the supervisor's
/// timer, and not to a time-out of the server.
#[test]
fn a_request_after_a_timer_is_no_time_out_of_the_server() {
    let mut hand = command(1_100);
    starts(&mut hand, 10, 2, 11, 1);
    becomes(&mut hand, 3, 11, "/w/server");
    sleeps(&mut hand, (11, 1), 5, (Reason::Poll, SLEEPS));
    sleeps(&mut hand, (10, 0), 6, (Reason::Poll, SLEEPS));
    wakes(&mut hand, 0, 1_006, (10, 0));
    wakes(&mut hand, 10, 1_007, (11, 1));
    sleeps(&mut hand, (10, 0), 1_008, (Reason::SocketRead, SLEEPS));
    wakes(&mut hand, 11, 1_010, (10, 0));
    sleeps(&mut hand, (11, 1), 1_011, (Reason::Poll, SLEEPS));
    wakes(&mut hand, 10, 1_012, (11, 1));
    ends(&mut hand, (11, 1), 1_013, TERM);
    ends(&mut hand, (10, 0), 1_015, 0);
    let text = advice(&analyzed(&hand));
    assert!(
        text.contains("waits 1.00 s for timers or time-outs: "),
        "{text}"
    );
    assert!(!text.contains("unknown"), "{text}");
}

/// The event loop of a supervisor sends a request to its server after an interval of a second. Then the loop waits for
/// the answer, at most until the next interval ends. The first interval counts as a sleep, because the end of the
/// interval led to the answer.
#[test]
fn an_interval_after_which_a_loop_asks_is_no_tick() {
    let mut hand = command(1_100);
    starts(&mut hand, 10, 2, 11, 1);
    becomes(&mut hand, 3, 11, "/w/server");
    polls(&mut hand, (11, 1), 5, 60_000);
    polls(&mut hand, (10, 0), 6, 1_000);
    wakes(&mut hand, 0, 1_006, (10, 0));
    wakes(&mut hand, 10, 1_007, (11, 1));
    polls(&mut hand, (10, 0), 1_008, 1_000);
    wakes(&mut hand, 11, 1_010, (10, 0));
    polls(&mut hand, (11, 1), 1_011, 60_000);
    wakes(&mut hand, 10, 1_012, (11, 1));
    ends(&mut hand, (11, 1), 1_013, TERM);
    ends(&mut hand, (10, 0), 1_015, 0);
    let text = advice(&analyzed(&hand));
    assert!(
        text.contains("waits 1.00 s for timers or time-outs: "),
        "{text}"
    );
    assert!(!text.contains("unknown"), "{text}");
}

/// COMMAND checks every 20 ms for something that a worker does after each of its sleeps of 0.5 s.
#[test]
fn a_loop_that_looks_for_a_worker_that_sleeps_names_it() {
    let mut hand = command(1_200);
    starts(&mut hand, 10, 2, 11, 1);
    becomes(&mut hand, 3, 11, "/w/worker");
    for nap in 0..2 {
        naps(&mut hand, (11, 1), 10 + 501 * nap, 510 + 501 * nap);
    }
    for nap in 0..48 {
        let from = 12 * MS + 20_930_000 * nap;
        sleeps_at(&mut hand, (10, 0), from, NAP);
        wakes_at(&mut hand, 0, from + 20 * MS, (10, 0));
    }
    sleeps(&mut hand, (11, 1), 1_012, (Reason::Poll, SLEEPS));
    wakes(&mut hand, 10, 1_030, (11, 1));
    ends(&mut hand, (11, 1), 1_031, TERM);
    ends(&mut hand, (10, 0), 1_040, 0);
    let text = advice(&analyzed(&hand));
    assert!(
        text.contains("48 × 20 ms, while worker sleeps 998 ms: wait for events"),
        "{text}"
    );
}

/// One child sleeps for a second. Another one works for 0.6 s, which takes 1.2 s while other tasks use the CPU. Without
/// the other tasks, the build's length would depend on the sleep.
#[test]
fn a_sleep_beside_work_that_others_delay_is_named() {
    let mut hand = command(1_400);
    starts(&mut hand, 10, 2, 11, 1);
    becomes(&mut hand, 3, 11, "/bin/sleep 1");
    starts(&mut hand, 10, 4, 12, 2);
    becomes(&mut hand, 5, 12, "/w/work");
    naps(&mut hand, (11, 1), 6, 1_006);
    sleeps(&mut hand, (10, 0), 7, (Reason::Child, SLEEPS));
    hand.preempt(2, 300 * MS, 12, RUNNING, 98)
        .switch(2, 900 * MS, 98, RUNNING, 12);
    ends_for_command(&mut hand, 11, 1, 1_007);
    sleeps(&mut hand, (10, 0), 1_009, (Reason::Child, SLEEPS));
    ends_for_command(&mut hand, 12, 2, 1_200);
    ends(&mut hand, (10, 0), 1_210, 0);
    let text = advice(&analyzed(&hand));
    assert!(text.contains("sleeps 1.00 s: wait for an event"), "{text}");
    assert!(!text.contains("Verdict the machine:"), "{text}");
}

/// A script starts a short program a hundred times. Each time the program waits 31 ms for a CPU that other tasks have.
#[test]
fn short_programs_are_short_beside_load() {
    let mut hand = command(4_200);
    for call in 0..100u32 {
        let (from, pid) = (5 + 40 * i64::from(call), 11 + call);
        hand.fork(0, from * MS, 10, pid, pid)
            .first_waking(0, from * MS + 1, 10, pid, false);
        sleeps(&mut hand, (10, 0), from + 1, (Reason::Child, SLEEPS));
        hand.switch(1, (from + 31) * MS, 98, RUNNING, pid);
        becomes(&mut hand, from + 32, pid, "/w/query");
        ends_for_command(&mut hand, pid, 1, from + 36);
    }
    ends(&mut hand, (10, 0), 4_010, 0);
    let text = advice(&analyzed(&hand));
    assert!(
        text.contains("starts query 100 times, 5.3 ms each"),
        "{text}"
    );
}

/// COMMAND naps for longer and longer between checks whether a child has ended, and finally kills the child. All naps
/// together are a time-out. The advice suggests a shorter time-out.
#[test]
fn naps_until_a_kill_are_a_time_out() {
    let mut hand = command(1_100);
    starts(&mut hand, 10, 2, 11, 1);
    becomes(&mut hand, 3, 11, "/w/hangs");
    sleeps(&mut hand, (11, 1), 4, (Reason::Path, SLEEPS));
    let mut at = 10;
    for length in [50, 100, 200, 400] {
        naps(&mut hand, (10, 0), at, at + length);
        at += length + 2;
    }
    wakes(&mut hand, 10, at + 1, (11, 1));
    ends(&mut hand, (11, 1), at + 3, KILL);
    ends(&mut hand, (10, 0), at + 10, 0);
    let text = advice(&analyzed(&hand));
    assert!(
        text.contains("sleeps 750 ms, 4 times, and then kills hangs: find out why it does not end"),
        "{text}"
    );
    assert!(!text.contains("not judged"), "{text}");
}

/// COMMAND waits with a time-out for the output of a child, and kills the child when the time is over.
#[test]
fn a_time_out_after_which_a_child_is_killed_is_named() {
    let mut hand = command(1_100);
    starts(&mut hand, 10, 2, 11, 1);
    becomes(&mut hand, 3, 11, "/w/hangs");
    sleeps(&mut hand, (11, 1), 4, (Reason::Poll, SLEEPS));
    polls(&mut hand, (10, 0), 10, 800);
    wakes(&mut hand, 0, 810, (10, 0));
    sleeps(&mut hand, (10, 0), 812, (Reason::Child, SLEEPS));
    wakes(&mut hand, 10, 812, (11, 1));
    hand.exit(1, 814 * MS, 11, 11, true);
    if let Some(LifeKind::Exit(exit)) = hand.life.last_mut().map(|life| &mut life.kind) {
        (exit.status, exit.group_status) = (KILL, KILL);
    }
    hand.waking(1, 814 * MS + 1, 11, 10)
        .switch(0, 814 * MS + 2, 0, RUNNING, 10)
        .switch(1, 814 * MS + 3, 11, DEAD, 0)
        .last(1, 814 * MS + 4, 11);
    ends(&mut hand, (10, 0), 820, 0);
    let text = advice(&analyzed(&hand));
    assert!(
        text.contains("waits 800 ms for hangs, until its time-out, and kills it"),
        "{text}"
    );
}

/// COMMAND signals a shell that waits for its child, and asks 20 times whether the shell has ended. The shell handles
/// the signal only after its child, so COMMAND kills it in the end. If COMMAND never signaled the shell, the naps have
/// another purpose.
#[test]
fn naps_between_a_signal_and_a_kill_are_a_grace() {
    for is_signaled in [true, false] {
        let mut hand = command(1_500);
        starts(&mut hand, 10, 2, 11, 1);
        becomes_on(&mut hand, 1, 11, 3, "/bin/bash launch.sh");
        hand.fork(1, 4 * MS, 11, 12, 12)
            .first_waking(1, 4 * MS + 1, 11, 12, false)
            .switch(2, 4 * MS + 2, 0, RUNNING, 12);
        sleeps(&mut hand, (12, 2), 6, (Reason::Poll, SLEEPS));
        sleeps(&mut hand, (11, 1), 7, (Reason::Child, SLEEPS));
        if is_signaled {
            wakes(&mut hand, 10, 20, (11, 1));
            sleeps(&mut hand, (11, 1), 21, (Reason::Child, SLEEPS));
        }
        for nap in 0..20 {
            naps(&mut hand, (10, 0), 25 + 51 * nap, 75 + 51 * nap);
        }
        wakes(&mut hand, 10, 1_046, (11, 1));
        ends(&mut hand, (11, 1), 1_047, KILL);
        hand.waking(0, 1_048 * MS, 11, 10);
        ends(&mut hand, (10, 0), 1_050, 0);
        let text = advice(&analyzed(&hand));
        assert_eq!(
            text.contains("for the end of launch.sh, and kills it: find out why the first"),
            is_signaled,
            "{text}"
        );
    }
}

/// COMMAND ends an idle server, whose timer expires just then, so that no waking shows the signal. The critical path
/// leads through the server's ticks (its regular wake-ups by the timer), but COMMAND decided when the server ended.
#[test]
fn ticks_of_a_server_before_it_is_killed_cost_nothing() {
    for status in [TERM, 0] {
        let mut hand = command(1_500);
        starts(&mut hand, 10, 2, 11, 1);
        becomes_on(&mut hand, 1, 11, 3, "/w/server");
        sleeps(&mut hand, (10, 0), 5, (Reason::Child, SLEEPS));
        for tick in 0..4 {
            let from = 10 + 260 * tick;
            polls(&mut hand, (11, 1), from, 250);
            wakes(&mut hand, 0, from + 250, (11, 1));
        }
        hand.exit(1, 1_042 * MS, 11, 11, true);
        super::has_status(&mut hand, status);
        hand.waking(0, 1_042 * MS + 1, 11, 10)
            .switch(0, 1_042 * MS + 2, 0, RUNNING, 10)
            .switch(1, 1_042 * MS + 3, 11, DEAD, 0)
            .last(1, 1_042 * MS + 4, 11);
        ends(&mut hand, (10, 0), 1_050, 0);
        let text = advice(&analyzed(&hand));
        assert_eq!(text.contains("server waits 1.00 s"), status == 0, "{text}");
    }
}

/// Two tasks of a build take turns on a CPU, because `taskset` allows the build only this one CPU.
#[test]
fn a_given_cpu_is_judged() {
    let mut hand = command(1_000);
    becomes(&mut hand, 1, 10, "/usr/bin/taskset -c 1 /w/build");
    starts(&mut hand, 10, 2, 11, 1);
    hand.fork(0, 3 * MS, 10, 12, 12)
        .first_waking(1, 3 * MS + 1, 10, 12, false);
    sleeps(&mut hand, (10, 0), 4, (Reason::Child, SLEEPS));
    for turn in 0..20 {
        let (from, to) = if turn % 2 == 0 { (11, 12) } else { (12, 11) };
        hand.preempt(1, (40 + 40 * turn) * MS, from, RUNNING, to);
    }
    ends_for_command(&mut hand, 11, 1, 830);
    hand.switch(1, 831 * MS, 0, RUNNING, 12);
    ends_for_command(&mut hand, 12, 1, 860);
    ends(&mut hand, (10, 0), 870, 0);
    let text = advice(&analyzed(&hand));
    assert!(text.contains("allows 1 of 4 CPUs: leave it out"), "{text}");
    assert!(!text.contains("not judged"), "{text}");
}
