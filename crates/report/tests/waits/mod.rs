//! Tests how the first screen describes waits that did not end as COMMAND expected: a task that is not recorded ended
//! them, or a signal, or a time-out.

use serde_json::Value;
use tr_analyze::awaited::WaitReason;
use tr_analyze::model::Analysis;
use tr_analyze::{analyze, Options};
use tr_format::device::{Block, Device, Requests};
use tr_format::dns::DnsQuery;
use tr_format::event::{
    CgroupId, Comm, Ktime, LifeKind, Outsider, Reason, SchedKind, Switch, Tgid, Tid, Timeout,
};
use tr_format::meta::{Extra, Scope};
use tr_format::network::{Address, Closed, Connect, Connected, ConnectionId, Ending, Endpoint};
use tr_report::reports::{Ask, ReportKind};

use super::kinds::hand::{Hand, BLOCKED, DEAD, RUNNING, SLEEPS};
use super::{value, with, STYLE};

mod free_cpus;
mod loops;
mod pauses;
mod sleeps;

const MS: i64 = 1_000_000;
const STOPPED: u16 = 4;
/// The tid of a task that is not recorded.
const BASH: u32 = 99;
const ALARM: u32 = 14;
const TERM: u32 = 15;
const EXIT_1: u32 = 1 << 8;

/// A recording in which COMMAND is process 10 and runs on CPU 0. Times are in ms.
fn command(end: i64) -> Hand {
    let mut hand = Hand::new(Scope::Command, end * MS);
    hand.meta.root = Some(Tgid(10));
    hand.snapshot(-10, 10, 10, 1, None);
    hand
}

/// Lets a process start another one, which runs on a CPU of its own.
fn starts(hand: &mut Hand, parent: u32, at: i64, pid: u32, cpu: u16) {
    hand.fork(0, at * MS, parent, pid, pid)
        .first_waking(0, at * MS + 1, parent, pid, false)
        .switch(usize::from(cpu), at * MS + 2, 0, RUNNING, pid);
}

/// Lets a thread leave its CPU and wait from a time on.
fn sleeps(hand: &mut Hand, task: (u32, usize), from: i64, sleep: (Reason, u16)) {
    sleeps_at(hand, task, from * MS, sleep);
}

/// Like [`sleeps`], with the time in nanoseconds.
fn sleeps_at(hand: &mut Hand, (tid, cpu): (u32, usize), at: i64, (reason, state): (Reason, u16)) {
    let sleep = SchedKind::Switch(Switch {
        prev: Tid(tid),
        next: Tid(0),
        prev_state: state,
        preempt: false,
        iowait: false,
        reason,
        timeout: Timeout::UNKNOWN,
    });
    hand.sched(cpu, at, sleep);
}

/// Lets the task `waker` end a thread's wait; 0 stands for a timer.
fn wakes(hand: &mut Hand, waker: u32, at: i64, task: (u32, usize)) {
    wakes_at(hand, waker, at * MS, task);
}

/// Like [`wakes`], with the time in nanoseconds.
fn wakes_at(hand: &mut Hand, waker: u32, at: i64, (tid, cpu): (u32, usize)) {
    hand.waking(cpu, at, waker, tid)
        .switch(cpu, at + 1, 0, RUNNING, tid);
}

/// Sets the status of the process whose exit was recorded last.
fn has_status(hand: &mut Hand, status: u32) {
    if let Some(LifeKind::Exit(exit)) = hand.life.last_mut().map(|life| &mut life.kind) {
        (exit.status, exit.group_status) = (status, status);
    }
}

fn ends(hand: &mut Hand, (pid, cpu): (u32, usize), at: i64, status: u32) {
    let on = u16::try_from(cpu).unwrap();
    hand.exit(on, at * MS, pid, pid, true);
    has_status(hand, status);
    hand.switch(cpu, at * MS + 1, pid, DEAD, 0)
        .last(on, at * MS + 2, pid);
}

/// Records the name of a task that does not belong to the recording.
fn names(hand: &mut Hand, at: i64, tid: u32, comm: &str) {
    let outsider = Outsider {
        tid: Tid(tid),
        tgid: Tgid(tid),
        start_time: Ktime(1),
        cgroup: CgroupId(1),
        kthread: comm.starts_with('k'),
        comm: Comm::new(comm.as_bytes()),
    };
    hand.lives(0, at * MS, LifeKind::Outsider(Box::new(outsider)));
}

fn analyzed(hand: &Hand) -> Analysis {
    let options = Options {
        timeline: true,
        ..Options::default()
    };
    analyze(&hand.trace(), &options)
}

/// A recording in which COMMAND waits for 800 of its 1,000 ms.
fn waits(wait: (Reason, u16), waker: u32, status: u32) -> Hand {
    let mut hand = command(1_100);
    sleeps(&mut hand, (10, 0), 100, wait);
    wakes(&mut hand, waker, 900, (10, 0));
    ends(&mut hand, (10, 0), 910, status);
    hand
}

/// The kind of time that has most of the critical path, and its length in ms.
fn longest(analysis: &Analysis) -> (String, u64) {
    let path = value(analysis, &Ask::default(), ReportKind::CriticalPath);
    let share = &path["path"]["shares"][0];
    let ns = share["time_ns"].as_u64().unwrap();
    (share["what"].as_str().unwrap().to_owned(), ns / 1_000_000)
}

/// The text of the report on advice, as a single line.
fn advice(analysis: &Analysis) -> String {
    let text = with(analysis, &Ask::default(), |view| {
        ReportKind::Advice.make(view).text(&STYLE)
    });
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

fn kinds(analysis: &Analysis) -> Vec<String> {
    let advice = value(analysis, &Ask::default(), ReportKind::Advice);
    let lines = advice["advice"].as_array().unwrap().iter();
    let kind = |line: &Value| line["kind"].as_str().unwrap().to_owned();
    lines.map(kind).collect()
}

#[test]
fn a_wait_for_a_task_outside_is_the_verdict() {
    let mut hand = waits((Reason::PipeRead, SLEEPS), BASH, 0);
    let unnamed = advice(&analyzed(&hand));
    let open = "waits for tasks that are not recorded (800 ms): not judged";
    assert!(unnamed.contains(open), "{unnamed}");
    assert!(!unnamed.contains("nothing stands out"), "{unnamed}");
    names(&mut hand, 899, BASH, "bash");
    let text = advice(&analyzed(&hand));
    let words = "800 ms of its 910 ms are waits for bash, which is not recorded, not judged";
    assert!(text.contains(words), "{text}");
}

#[test]
fn a_fifos_other_end_and_a_stop_are_no_disks_and_no_tasks() {
    for (wait, waker, kind) in [
        ((Reason::Path, SLEEPS), BASH, "outside"),
        ((Reason::Path, BLOCKED), BASH, "disk"),
        ((Reason::Path, BLOCKED), 0, "disk"),
        ((Reason::FileRead, SLEEPS), BASH, "disk"),
        ((Reason::PipeRead, STOPPED), BASH, "stopped"),
        ((Reason::PipeRead, STOPPED), 0, "stopped"),
    ] {
        let analysis = analyzed(&waits(wait, waker, 0));
        let found = longest(&analysis);
        assert_eq!(found, (kind.to_owned(), 800), "{wait:?} {waker}");
    }
}

/// If a signal was sent to a process group, the signal also ended those processes of the group whose end is not in the
/// recording.
#[test]
fn the_sender_of_a_groups_signal_is_not_waited_for() {
    for (status, kind) in [(TERM, "sleep"), (0, "outside")] {
        let mut hand = command(1_100);
        for (parent, pid, cpu) in [(10, 11, 1), (11, 12, 2), (12, 13, 3)] {
            starts(&mut hand, parent, i64::from(pid), pid, cpu);
        }
        for (tid, cpu) in [(10, 0), (11, 1), (12, 2)] {
            sleeps(&mut hand, (tid, cpu), 50, (Reason::Child, SLEEPS));
        }
        sleeps(&mut hand, (13, 3), 50, (Reason::Timer, SLEEPS));
        for (tid, cpu) in [(10, 0), (11, 1), (12, 2), (13, 3)] {
            wakes(&mut hand, BASH, 900, (tid, cpu));
        }
        ends(&mut hand, (10, 0), 910, status);
        let analysis = analyzed(&hand);
        assert_eq!(longest(&analysis), (kind.to_owned(), 850), "{status}");
    }
}

/// The lines of the first screen that report failures.
fn failed(analysis: &Analysis) -> String {
    let text = with(analysis, &Ask::default(), |view| {
        ReportKind::Top.make(view).text(&STYLE)
    });
    let lines = text.lines().skip_while(|line| !line.starts_with("Failed"));
    let lines = lines.take_while(|line| line.starts_with("Failed") || line.starts_with("    "));
    let lines: Vec<&str> = lines.map(str::trim).collect();
    lines.join("\n")
}

/// COMMAND (10) waits. Then COMMAND or another task (`by`) wakes COMMAND's child (11), and a signal ends the child.
/// COMMAND ends with 1:
///
///     10  ==A====__wait__A==kill======exit 1
///     11      A==__________A==
fn stops(wait: Reason, child: Reason, by: u32) -> Hand {
    let mut hand = command(1_100);
    starts(&mut hand, 10, 100, 11, 1);
    sleeps(&mut hand, (11, 1), 110, (child, SLEEPS));
    sleeps(&mut hand, (10, 0), 120, (wait, SLEEPS));
    wakes(&mut hand, 0, 700, (10, 0));
    wakes(&mut hand, by, 701, (11, 1));
    ends(&mut hand, (11, 1), 702, TERM);
    ends(&mut hand, (10, 0), 750, EXIT_1);
    hand
}

/// A child that its parent stops because it is no longer needed has not failed. If a time-out came before the signal,
/// the child took too long.
#[test]
fn what_its_parent_stopped_failed_only_if_it_took_too_long() {
    let alone = "exit 1 after 750 ms (pid 10)";
    let stopped = "   stopped by its parent (SIGTERM) after 602 ms (pid 11)";
    let unproven = "   perhaps stopped by its parent (SIGTERM) after 602 ms (pid 11)";
    for (wait, child, by, first, second) in [
        (Reason::Timer, Reason::Timer, 10, alone, None),
        (Reason::SocketRead, Reason::Child, 10, alone, None),
        (
            Reason::Child,
            Reason::Timer,
            10,
            stopped,
            Some("→ the command exit 1"),
        ),
        (
            Reason::Signal,
            Reason::Timer,
            10,
            stopped,
            Some("→ the command exit 1"),
        ),
        (
            Reason::Poll,
            Reason::Timer,
            10,
            stopped,
            Some("→ perhaps the command exit 1"),
        ),
        // The child waited to read from a pipe. Perhaps data woke the child, and the signal came only later, in the
        // millisecond in which the child ran.
        (
            Reason::Child,
            Reason::PipeRead,
            10,
            unproven,
            Some("→ perhaps the command exit 1"),
        ),
        (
            Reason::Timer,
            Reason::Timer,
            BASH,
            "killed by SIGTERM after 602 ms (pid 11)",
            Some("→ perhaps the command exit 1"),
        ),
    ] {
        let text = failed(&analyzed(&stops(wait, child, by)));
        let mut lines = text.lines();
        let line = lines.next().unwrap_or_default();
        assert!(line.ends_with(first), "{wait:?} {child:?} {by}: {text}");
        assert_eq!(lines.next(), second, "{wait:?} {child:?} {by}: {text}");
    }
}

/// The owner of a pool stops the last worker, which does not end by itself after the other worker has ended. There was
/// no time-out for the stopped worker, unless the other worker ended long before or failed.
#[test]
fn a_pool_that_is_closed_had_no_time_out() {
    for (end, status, is_named) in [(652, 0, false), (300, 0, true), (652, EXIT_1, true)] {
        let mut hand = command(1_100);
        starts(&mut hand, 10, 100, 11, 1);
        starts(&mut hand, 10, 101, 12, 2);
        sleeps(&mut hand, (11, 1), 110, (Reason::Timer, SLEEPS));
        sleeps(&mut hand, (10, 0), 120, (Reason::Poll, SLEEPS));
        ends(&mut hand, (12, 2), end, status);
        wakes(&mut hand, 0, 700, (10, 0));
        wakes(&mut hand, 10, 701, (11, 1));
        ends(&mut hand, (11, 1), 702, TERM);
        ends(&mut hand, (10, 0), 750, EXIT_1);
        let text = failed(&analyzed(&hand));
        assert_eq!(
            text.contains("stopped by"),
            is_named,
            "{end} {status}: {text}"
        );
    }
}

/// If a parent checks again and again whether its child has ended, and finally stops the child, there was perhaps a
/// time-out.
#[test]
fn a_parent_that_looks_for_its_childs_end_may_have_a_time_out() {
    for (naps, is_named) in [(3, false), (9, true)] {
        let mut hand = command(1_100);
        starts(&mut hand, 10, 100, 11, 1);
        sleeps(&mut hand, (11, 1), 110, (Reason::Timer, SLEEPS));
        for nap in 0..naps {
            sleeps(&mut hand, (10, 0), 120 + 50 * nap, (Reason::Timer, SLEEPS));
            wakes(&mut hand, 0, 160 + 50 * nap, (10, 0));
        }
        wakes(&mut hand, 10, 701, (11, 1));
        ends(&mut hand, (11, 1), 702, TERM);
        ends(&mut hand, (10, 0), 750, EXIT_1);
        let text = failed(&analyzed(&hand));
        let named = text.contains("stopped by its parent") && text.contains("→ perhaps");
        assert_eq!(named, is_named, "{text}");
    }
}

/// If a parent sleeps after it stopped its child, the parent went on with other work after the stop. So it was no
/// time-out that made the parent fail.
#[test]
fn a_parent_that_sleeps_after_the_stop_had_no_time_out() {
    let mut hand = command(1_100);
    starts(&mut hand, 10, 100, 11, 1);
    sleeps(&mut hand, (11, 1), 110, (Reason::Timer, SLEEPS));
    sleeps(&mut hand, (10, 0), 120, (Reason::Poll, SLEEPS));
    wakes(&mut hand, 0, 700, (10, 0));
    wakes(&mut hand, 10, 701, (11, 1));
    ends(&mut hand, (11, 1), 702, TERM);
    sleeps(&mut hand, (10, 0), 710, (Reason::Poll, SLEEPS));
    wakes(&mut hand, 0, 740, (10, 0));
    ends(&mut hand, (10, 0), 750, EXIT_1);
    let text = failed(&analyzed(&hand));
    let line = text.lines().next().unwrap_or_default();
    assert!(line.ends_with("exit 1 after 750 ms (pid 10)"), "{text}");
    assert!(!text.contains('→'), "{text}");
}

/// A parent that slept when its child was stopped cannot have sent the signal that stopped the child.
#[test]
fn a_parent_that_slept_has_stopped_nobody() {
    for (wakes_before, chain) in [(true, "→ perhaps the command"), (false, "→ the command")] {
        let mut hand = command(1_100);
        starts(&mut hand, 10, 100, 11, 1);
        sleeps(&mut hand, (10, 0), 120, (Reason::Child, SLEEPS));
        sleeps(&mut hand, (11, 1), 130, (Reason::Timer, SLEEPS));
        wakes(&mut hand, 0, 500, (11, 1));
        let at = if wakes_before { 600 } else { 710 };
        wakes(&mut hand, 0, at, (10, 0));
        ends(&mut hand, (11, 1), 702, TERM);
        ends(&mut hand, (10, 0), 750, EXIT_1);
        let text = failed(&analyzed(&hand));
        let line = text.lines().nth(1).unwrap_or_default();
        assert!(line.starts_with(chain), "{wakes_before}: {text}");
    }
}

/// If an alarm (a timer that the process has set for itself) ends a wait, the recording does not show what the process
/// waited for. Without the alarm, the wait would have been longer.
#[test]
fn an_alarm_is_no_sleep() {
    let none: [&str; 0] = [];
    for (reason, status, lines) in [
        (Reason::PipeRead, ALARM, &none[..]),
        (Reason::PipeRead, EXIT_1, &none),
        (Reason::Child, EXIT_1, &none),
        (Reason::Timer, ALARM, &none),
        (Reason::SocketRead, EXIT_1, &none),
        (Reason::Lock, EXIT_1, &none),
        (Reason::FileLock, EXIT_1, &["lock"]),
        // The process went on after the wait.
        (Reason::PipeRead, 0, &none),
        (Reason::Lock, 0, &["sleep"]),
        (Reason::Timer, EXIT_1, &["sleep"]),
    ] {
        let analysis = analyzed(&waits((reason, SLEEPS), 0, status));
        assert_eq!(kinds(&analysis), lines, "{reason:?} {status}");
        assert_eq!(longest(&analysis), ("sleep".into(), 800), "{reason:?}");
    }
}

/// The pids of the processes on the critical path, in the order in which the path goes through them.
fn steps(analysis: &Analysis) -> Vec<u64> {
    let path = value(analysis, &Ask::default(), ReportKind::CriticalPath);
    let steps = path["path"]["steps"].as_array().unwrap().iter();
    steps.map(|step| step["pid"].as_u64().unwrap()).collect()
}

/// If an alarm (a timer that the process has set for itself) ended a process, the critical path goes on in the child
/// that was alive while the process waited.
#[test]
fn an_alarm_leads_to_the_living_child() {
    for (reason, status, child) in [
        (Reason::PipeRead, ALARM, true),
        (Reason::Child, EXIT_1, true),
        (Reason::Child, 0, false),
        (Reason::Poll, EXIT_1, false),
    ] {
        let mut hand = command(1_100);
        starts(&mut hand, 10, 20, 11, 1);
        sleeps(&mut hand, (11, 1), 30, (Reason::Timer, SLEEPS));
        sleeps(&mut hand, (10, 0), 50, (reason, SLEEPS));
        wakes(&mut hand, 0, 900, (10, 0));
        ends(&mut hand, (10, 0), 910, status);
        let analysis = analyzed(&hand);
        assert_eq!(steps(&analysis).contains(&11), child, "{reason:?} {status}");
        if child {
            assert_eq!(kinds(&analysis), Vec::<String>::new(), "{reason:?}");
        }
    }
}

/// If a child writes to a pseudo-terminal, a worker of the kernel carries the data to the reader.
#[test]
fn a_kernel_worker_leads_to_the_writer() {
    const WORKER: u32 = 77;
    for (name, late, reason, writer) in [
        ("kworker/u8:3", 0, Reason::Poll, true),
        ("kworker/u8:3", 0, Reason::Terminal, true),
        // The task was woken later, by something else than the data.
        ("kworker/u8:3", 20, Reason::Poll, false),
        ("kworker/u8:3", 0, Reason::FileLock, false),
        ("kworker/0:3", 0, Reason::Poll, false),
        ("bash", 0, Reason::Poll, false),
    ] {
        let mut hand = command(1_100);
        starts(&mut hand, 10, 20, 11, 1);
        sleeps(&mut hand, (11, 1), 30, (Reason::Timer, SLEEPS));
        sleeps(&mut hand, (10, 0), 50, (reason, SLEEPS));
        wakes(&mut hand, 0, 850, (11, 1));
        names(&mut hand, 851, WORKER, name);
        hand.waking(1, 852 * MS, 11, WORKER);
        wakes(&mut hand, WORKER, 853 + late, (10, 0));
        ends(&mut hand, (11, 1), 880, 0);
        ends(&mut hand, (10, 0), 890, 0);
        let analysis = analyzed(&hand);
        let found = (steps(&analysis).contains(&11), longest(&analysis).0);
        let kind = if writer { "sleep" } else { "outside" };
        assert_eq!(found, (writer, kind.to_owned()), "{name} {late} {reason:?}");
    }
}

/// If the child already sleeps again when the worker of the kernel carries its output, the path still leads to the
/// child.
#[test]
fn a_kernel_worker_leads_to_a_writer_that_waits_again() {
    const WORKER: u32 = 77;
    let mut hand = command(1_100);
    starts(&mut hand, 10, 20, 11, 1);
    sleeps(&mut hand, (11, 1), 30, (Reason::Timer, SLEEPS));
    sleeps(&mut hand, (10, 0), 50, (Reason::Terminal, SLEEPS));
    wakes(&mut hand, 0, 850, (11, 1));
    names(&mut hand, 851, WORKER, "kworker/u8:3");
    hand.waking(1, 852 * MS, 11, WORKER);
    sleeps(&mut hand, (11, 1), 853, (Reason::Timer, SLEEPS));
    wakes(&mut hand, WORKER, 854, (10, 0));
    ends(&mut hand, (10, 0), 890, 0);
    let analysis = analyzed(&hand);
    assert!(steps(&analysis).contains(&11));
    assert_eq!(longest(&analysis), ("sleep".to_owned(), 820));
}

const SERVER: Address = Address::V4(std::net::Ipv4Addr::new(10, 0, 0, 53));

fn asks(hand: &mut Hand, at: i64, id: u16) {
    let query = DnsQuery {
        tid: Tid(10),
        tgid: Tgid(10),
        server: SERVER,
        port: 40_000 + id,
        id,
        kind: 1,
        name: b"foo.example".to_vec().into(),
    };
    hand.lives(0, at * MS, LifeKind::DnsQuery(Box::new(query)));
}

/// Lets COMMAND connect to a server at the first time; the connection is established at the second one.
fn connects(hand: &mut Hand, at: i64, established: i64, own: Address) {
    let end = |address, port| Endpoint { address, port };
    let id = ConnectionId(1);
    let connect = Connect {
        id,
        tid: Tid(10),
        tgid: Tgid(10),
        remote: end(SERVER, 8080),
    };
    let local = end(own, 40_000);
    hand.lives(0, at * MS, LifeKind::Connect(connect)).lives(
        0,
        established * MS + 1,
        LifeKind::Connected(Connected { id, local }),
    );
}

#[test]
fn what_has_no_answer_is_not_to_be_kept_in_a_cache() {
    let silent = |host: &str| {
        format!("≤ 800 ms old waits 800 ms without an answer from {host}: find out why it does not answer")
    };
    let cache = "800 ms for the network: keep in a cache what it fetches";
    let server = silent("the name server 10.0.0.53");
    let host = silent("10.0.0.53:8080");
    // Each row has four values: whether a DNS name is queried; the address of the connection; the tasks that end the
    // parts of the wait, where 0 is a time-out; and the expected words. A wait for a server on this machine is
    // described by no words.
    let (other, same) = (Some(Address::V4([10, 0, 0, 9].into())), Some(SERVER));
    for (name, connected, wakers, words) in [
        (true, None, &[0, 0][..], server.as_str()),
        (false, other, &[0], &host),
        (false, other, &[0, 0, 0, BASH], cache),
        (false, other, &[BASH], cache),
        (false, same, &[BASH], ""),
    ] {
        let mut hand = command(1_100);
        hand.meta.extras = Some(vec![Extra::Network as u8, Extra::Dns as u8]);
        if let Some(own) = connected {
            connects(&mut hand, 50, 50, own);
        }
        let parts = i64::try_from(wakers.len()).unwrap();
        let part = 800 / parts;
        for (at, waker) in (0u16..).zip(wakers) {
            // The task runs for a moment before each part of the wait.
            let from = 100 + (part + 1) * i64::from(at);
            if name {
                asks(&mut hand, from - 1, at);
            }
            // A system call that no task ended has timed out, so the request was not answered.
            let timeout = match *waker {
                0 => Timeout::after(u64::try_from(part * MS).unwrap()).asked(),
                _ => Timeout::UNKNOWN,
            };
            sleeps::polls_until(&mut hand, (10, 0), from, timeout);
            wakes(&mut hand, *waker, from + part, (10, 0));
        }
        ends(&mut hand, (10, 0), 910, EXIT_1);
        let text = advice(&analyzed(&hand));
        assert!(text.contains(words), "{wakers:?}: {text}");
        assert_eq!(text.contains(cache), words == cache, "{wakers:?}: {text}");
    }
}

/// A proxy has connections to two servers, and its time-out ends a wait. The server whose connection the proxy then
/// closes is the one that did not answer, unless it had sent something.
#[test]
fn a_connection_that_is_given_up_names_its_server() {
    for (received, who) in [(0, "10.0.0.99:80"), (7, "the network")] {
        let mut hand = command(1_100);
        hand.meta.extras = Some(vec![Extra::Network as u8]);
        connects(&mut hand, 50, 50, Address::V4([10, 0, 0, 9].into()));
        let id = ConnectionId(2);
        let connect = Connect {
            id,
            tid: Tid(10),
            tgid: Tgid(10),
            remote: Endpoint {
                address: Address::V4([10, 0, 0, 99].into()),
                port: 80,
            },
        };
        hand.lives(0, 90 * MS, LifeKind::Connect(connect));
        let timeout = Timeout::after(800_000_000).asked();
        sleeps::polls_until(&mut hand, (10, 0), 100, timeout);
        wakes(&mut hand, 0, 900, (10, 0));
        let closed = Closed {
            id,
            by: Some((Tid(10), Tgid(10))),
            ending: Ending::Closed,
            sent: 90,
            received,
        };
        hand.lives(0, 902 * MS, LifeKind::Closed(closed));
        ends(&mut hand, (10, 0), 910, 0);
        let text = advice(&analyzed(&hand));
        let line = format!("≤ 800 ms old waits 800 ms without an answer from {who}: ");
        assert!(text.contains(&line), "{received}: {text}");
    }
}

/// A connection inside the machine is established at once, unless the first request was dropped: TCP repeats it after
/// 1 s. Other waits for the network inside the machine are not judged.
#[test]
fn a_connection_that_was_asked_for_again_is_named() {
    let line = "≤ 960 ms old waits 960 ms for 1 connection to this machine, until TCP asks for it again after 1 s: ";
    let open = "mostly wait for 10.0.0.53:8080 (960 ms), not judged";
    for (established, is_late) in [(1_060, true), (50, false)] {
        let mut hand = command(1_100);
        hand.meta.extras = Some(vec![Extra::Network as u8]);
        connects(&mut hand, 50, established, SERVER);
        sleeps::polls_until(&mut hand, (10, 0), 100, Timeout::UNKNOWN);
        wakes(&mut hand, BASH, 1_060, (10, 0));
        ends(&mut hand, (10, 0), 1_070, 0);
        let text = advice(&analyzed(&hand));
        assert_eq!(text.contains(line), is_late, "{text}");
        assert_eq!(text.contains(open), !is_late, "{text}");
    }
}

/// A load generator sends a request at each tick of its timer. The server's answers come between the ticks. So the
/// ticks are no time-outs of requests, although a request is open whenever the generator waits for a tick.
#[test]
fn ticks_between_answers_are_no_silence() {
    for (ticks, is_silent) in [(12, false), (2, true)] {
        let mut hand = command(1_500);
        hand.meta.extras = Some(vec![Extra::Network as u8]);
        starts(&mut hand, 10, 2, 20, 1);
        sleeps(&mut hand, (20, 1), 5, (Reason::SocketRead, SLEEPS));
        connects(&mut hand, 20, 20, Address::V4([10, 0, 0, 9].into()));
        let round = 1_200 / ticks;
        for tick in 0..ticks {
            let at = 30 + tick * round;
            let timer = round / 2;
            let timeout = Timeout::after(u64::try_from(timer * MS).unwrap()).asked();
            sleeps::polls_until(&mut hand, (10, 0), at, timeout);
            wakes(&mut hand, 0, at + timer, (10, 0));
            wakes(&mut hand, 10, at + timer + 1, (20, 1));
            sleeps(&mut hand, (10, 0), at + timer + 2, (Reason::Poll, SLEEPS));
            sleeps(&mut hand, (20, 1), at + timer + 3, (Reason::Timer, SLEEPS));
            wakes(&mut hand, 0, at + round - 4, (20, 1));
            wakes(&mut hand, 20, at + round - 3, (10, 0));
            sleeps(
                &mut hand,
                (20, 1),
                at + round - 2,
                (Reason::SocketRead, SLEEPS),
            );
        }
        ends(&mut hand, (20, 1), 1_240, TERM);
        ends(&mut hand, (10, 0), 1_245, 0);
        let text = advice(&analyzed(&hand));
        assert_eq!(
            text.contains("without an answer"),
            is_silent,
            "{ticks}: {text}"
        );
        assert!(
            !text.contains("mostly wait for 10.0.0.9") || is_silent,
            "{text}"
        );
    }
}

/// A program that only writes waits 0.3 s for a disk, until a worker of the kernel ends its wait. If the requests to
/// disks took much less time, the worker itself waited for something else, such as a CPU.
#[test]
fn a_late_worker_of_the_kernel_is_no_slow_disk() {
    for (took, is_disk) in [(250, true), (5, false)] {
        let mut hand = command(500);
        names(&mut hand, 1, 99, "kworker/u8:1");
        let wait = SchedKind::Switch(Switch {
            prev: Tid(10),
            next: Tid(0),
            prev_state: BLOCKED,
            preempt: false,
            iowait: true,
            reason: Reason::FileWrite,
            timeout: Timeout::UNKNOWN,
        });
        hand.sched(0, 100 * MS, wait);
        wakes(&mut hand, 99, 400, (10, 0));
        ends(&mut hand, (10, 0), 410, 0);
        let mut analysis = analyzed(&hand);
        for process in analysis.processes.iter_mut() {
            process.resources.io = Some((0, 1 << 20));
        }
        let block = Block {
            device: Device { major: 8, minor: 0 },
            name: (*b"sda").into(),
            interval: 500 * MS.unsigned_abs(),
            groups: [Requests {
                latency: took * MS.unsigned_abs(),
                ..Requests::default()
            }; 4],
            ..Block::default()
        };
        analysis
            .disks
            .blocks
            .push((Ktime(500 * MS.unsigned_abs()), Box::new(block)));
        let text = advice(&analysis);
        assert_eq!(
            text.contains("for disks and files: build"),
            is_disk,
            "{text}"
        );
    }
}

/// The reasons of a thread's waits with their lengths in ms; waits in the run queue are left out.
fn reasons(analysis: &Analysis, tid: u32) -> Vec<(&'static str, u64)> {
    let mut threads = analysis.thread_ids();
    let ix = threads
        .find(|ix| analysis.thread(*ix).tid == Tid(tid))
        .unwrap();
    let stretches = analysis.timeline.as_ref().unwrap().of(ix);
    let long = stretches.filter(|stretch| stretch.length() >= MS.unsigned_abs() * 2);
    let named = long.filter_map(|stretch| {
        let reason = WaitReason::of(analysis, ix, &stretch)?;
        Some((reason.name(), stretch.length() / MS.unsigned_abs()))
    });
    named.collect()
}

/// A worker thread is idle if it waits until another thread of its process gives it work. A thread that waits for a
/// thread which it started, or for a lock that is held for a short time, is not idle.
#[test]
fn workers_without_work_are_idle() {
    let mut hand = command(1_100);
    let worker = |hand: &mut Hand, parent: u32, at: i64, tid: u32, cpu: usize| {
        hand.fork(0, at * MS, parent, tid, 10)
            .first_waking(0, at * MS + 1, parent, tid, false)
            .switch(cpu, at * MS + 2, 0, RUNNING, tid);
    };
    worker(&mut hand, 10, 100, 11, 1);
    worker(&mut hand, 11, 110, 12, 2);
    starts(&mut hand, 10, 120, 20, 3);
    // The worker sleeps until the thread that started it has work.
    sleeps(&mut hand, (11, 1), 200, (Reason::Lock, SLEEPS));
    wakes(&mut hand, 10, 400, (11, 1));
    // The first thread waits for its worker (11), and the worker waits for its own worker.
    sleeps(&mut hand, (10, 0), 410, (Reason::Lock, SLEEPS));
    sleeps(&mut hand, (11, 1), 420, (Reason::Lock, SLEEPS));
    wakes(&mut hand, 12, 600, (11, 1));
    wakes(&mut hand, 11, 650, (10, 0));
    // The thread waits for a lock that is held for 5 ms.
    sleeps(&mut hand, (12, 2), 700, (Reason::Lock, SLEEPS));
    wakes(&mut hand, 11, 705, (12, 2));
    // This thread belongs to another process than the threads 10, 11 and 12.
    sleeps(&mut hand, (20, 3), 710, (Reason::Lock, SLEEPS));
    wakes(&mut hand, 10, 800, (20, 3));
    let analysis = analyzed(&hand);
    assert_eq!(reasons(&analysis, 10), [("thread", 240)]);
    assert_eq!(reasons(&analysis, 11), [("idle", 200), ("thread", 180)]);
    assert_eq!(reasons(&analysis, 12), [("thread", 5)]);
    assert_eq!(reasons(&analysis, 20), [("lock", 90)]);
}

/// A worker thread sleeps until a signal from another process kills the worker's process. Such a worker was idle and
/// did not wait for a lock. If the process instead exits by itself after the sleep, the worker waited for a lock that
/// its process shares with the other process.
#[test]
fn a_worker_that_is_killed_was_idle() {
    for (status, reason) in [(15, "idle"), (EXIT_1, "lock")] {
        let mut hand = command(1_100);
        starts(&mut hand, 10, 100, 20, 1);
        hand.fork(1, 110 * MS, 20, 21, 20)
            .first_waking(1, 110 * MS + 1, 20, 21, false)
            .switch(2, 110 * MS + 2, 0, RUNNING, 21);
        sleeps(&mut hand, (20, 1), 200, (Reason::Lock, SLEEPS));
        sleeps(&mut hand, (21, 2), 210, (Reason::Lock, SLEEPS));
        wakes(&mut hand, 10, 600, (21, 2));
        wakes(&mut hand, 10, 601, (20, 1));
        hand.exit(2, 605 * MS, 21, 20, false)
            .switch(2, 605 * MS + 1, 21, DEAD, 0)
            .last(2, 605 * MS + 2, 21);
        ends(&mut hand, (20, 1), 610, status);
        let analysis = analyzed(&hand);
        assert_eq!(reasons(&analysis, 21), [(reason, 390)], "{status}");
        assert_eq!(reasons(&analysis, 20), [("lock", 401)], "{status}");
    }
}
