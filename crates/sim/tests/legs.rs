//! A trace that is read in legs, against the same trace read in one.
#![allow(clippy::indexing_slicing, clippy::unwrap_used, clippy::expect_used)] // of our own traces, in a test

mod hand;

use hand::{Hand, DEAD, RUNNING, SLEEPS};
use proptest::prelude::*;
use proptest::test_runner::TestRunner;
use tr_analyze::{analyze, Options};
use tr_format::event::{
    Argv, CgroupId, CgroupMove, Comm, Exec, Exit, Final, Fork, LifeEvent, LifeKind, Rename,
    SchedKind, Tgid, Tid,
};
use tr_format::meta::Scope;
use tr_format::reader::Trace;
use tr_format::source::Source;
use tr_format::writer::{Often, Writer};
use tr_sim::recording::{Recording, Written};
use tr_sim::strategy::{self, Case};

/// Checkpoints at every second mark of progress.
fn set(writer: &mut Writer<&mut Vec<u8>>) {
    writer.set_checkpoints(Often {
        events: 1,
        bytes: 0,
    });
}

/// Where the analyses in one and in legs of so many events differ, and around there.
fn difference(trace: &Trace, events: u64) -> Option<String> {
    let analyzed = |events| {
        let options = Options {
            leg_events: Some(events),
            ..Options::default()
        };
        format!("{:#?}", analyze(trace, &options))
    };
    let (whole, legs) = (analyzed(u64::MAX), analyzed(events));
    if whole == legs {
        return None;
    }
    let differ = |(a, b): (&str, &str)| a != b;
    let first = whole.lines().zip(legs.lines()).position(differ);
    let near = |text: &str| {
        let from = first.unwrap_or(0).saturating_sub(40);
        let lines: Vec<&str> = text.lines().skip(from).take(44).collect();
        lines.join("\n")
    };
    let moments: Vec<_> = trace.checkpoints().collect();
    Some(format!(
        "{moments:?}, in one\n{}\nin legs\n{}",
        near(&whole),
        near(&legs)
    ))
}

/// Draws runs, with something done to what was recorded of them.
fn compare(count: u32, spoil: impl Fn(&mut Recording, u64)) {
    let events = prop_oneof![1..20u64, 20..400u64];
    let cases = (strategy::lossless(3_000_000), events, any::<u64>());
    let mut runner = TestRunner::new(strategy::cases(count));
    let done = runner.run(&cases, |(case, events, seed): (Case, u64, u64)| {
        let (mut recording, _) = Recording::record(&case.config);
        spoil(&mut recording, seed);
        case.plan.apply(&mut recording);
        let bytes = recording.to_file_with(&case.cut, set).expect("a file");
        let trace = Trace::open(Source::bytes(bytes)).expect("a trace");
        match difference(&trace, events) {
            None => Ok(()),
            Some(found) => Err(TestCaseError::fail(format!(
                "legs of {events} events, {found}\n{}",
                case.draw(400)
            ))),
        }
    });
    done.unwrap_or_else(|error| panic!("{error}"));
}

#[test]
fn legs_make_no_difference() {
    compare(1500, |_, _| {});
}

/// Nor where a trace makes no sense.
#[test]
fn nor_do_they_to_a_trace_that_contradicts_itself() {
    compare(1500, spoil);
}

/// Changes some events: other tasks, other ends, events that are doubled or missing.
fn spoil(recording: &mut Recording, seed: u64) {
    let mut state = seed;
    let mut draw = |below: usize| {
        state = state
            .wrapping_mul(0x5851_f42d_4c95_7f2d)
            .wrapping_add(0x1405_7b7e_f767_814f);
        (state >> 33) as usize % below.max(1)
    };
    let all = recording.life.iter().chain(&recording.recorder);
    let tasks: Vec<(Tid, Tgid)> = all
        .filter_map(|written| match &written.event.kind {
            LifeKind::Fork(fork) => Some((fork.tid, fork.tgid)),
            LifeKind::Snapshot(one) if one.followed => Some((one.tid, one.tgid)),
            _ => None,
        })
        .collect();
    if tasks.is_empty() {
        return;
    }
    for _ in 0..draw(4) {
        let (cpu, other) = (draw(recording.cpus.len()), tasks[draw(tasks.len())].0);
        let (at, what) = (draw(recording.cpus[cpu].len()), draw(5));
        let Some(written) = recording.cpus[cpu].get_mut(at) else {
            continue;
        };
        match (&mut written.event.kind, what) {
            (SchedKind::Switch { prev, .. }, 0) => *prev = other,
            (SchedKind::Switch { next, .. }, 1) => *next = other,
            (SchedKind::Switch { prev_state, .. }, 2) => *prev_state = DEAD,
            (SchedKind::Switch { prev_state, .. }, 3) => *prev_state = SLEEPS,
            (SchedKind::Switch { prev, next, .. }, _) => *next = *prev,
            (SchedKind::Waking { waker, .. }, 0) => *waker = other,
            (SchedKind::Waking { wakee, .. }, 1) => *wakee = other,
            (SchedKind::Waking { new, .. }, 2) => *new ^= true,
            (SchedKind::Waking { vfork, .. }, 3) => *vfork ^= true,
            (SchedKind::Waking { waker, wakee, .. }, _) => *waker = *wakee,
        }
    }
    for _ in 0..draw(5) {
        let at = draw(recording.life.len());
        let Some(before) = recording.life.get(at).cloned() else {
            continue;
        };
        let [one, other, third] = [(); 3].map(|()| tasks[draw(tasks.len())]);
        let mixed = if draw(2) == 0 { one.1 } else { other.1 };
        let kind = match draw(10) {
            0 => LifeKind::Rename(Rename {
                tid: one.0,
                tgid: one.1,
                comm: Comm::new(b"other"),
            }),
            1 => exec(third.0, one.0, mixed),
            2 => exec(one.0, Tid(one.1 .0), one.1),
            3 => fork(one, (other.0, third.1), &before.event),
            4 => {
                let new = 500 + draw(10) as u32;
                let tgid = if draw(2) == 0 { third.1 } else { Tgid(new) };
                fork(one, (Tid(new), tgid), &before.event)
            }
            5 => LifeKind::Final(Final {
                tid: one.0,
                sum_exec_runtime: 1 << 60,
                nvcsw: 1,
                nivcsw: 2,
            }),
            6 => LifeKind::CgroupMove(CgroupMove {
                tid: one.0,
                tgid: one.1,
                cgroup: CgroupId(9),
            }),
            7 => LifeKind::Exit(Exit {
                tid: one.0,
                tgid: mixed,
                status: 77,
                group_dead: draw(2) == 0,
                group_status: 78,
                min_flt: 3,
                max_rss: draw(1 << 30) as u64,
                ..Exit::default()
            }),
            8 => {
                recording.life.remove(at);
                continue;
            }
            _ => before.event.kind.clone(),
        };
        let event = LifeEvent {
            kind,
            ..before.event
        };
        recording.life.insert(at, Written { event, ..before });
    }
}

fn exec(old_tid: Tid, tid: Tid, tgid: Tgid) -> LifeKind {
    LifeKind::Exec(Exec {
        tid,
        tgid,
        old_tid,
        comm: Comm::new(b"other"),
        filename: b"/bin/other".to_vec().into(),
        argv: Argv::from_args(["other"]),
        cgroup: CgroupId(3),
    })
}

fn fork(parent: (Tid, Tgid), (tid, tgid): (Tid, Tgid), at: &LifeEvent) -> LifeKind {
    LifeKind::Fork(Fork {
        parent_tid: parent.0,
        parent_tgid: parent.1,
        tid,
        tgid,
        start_time: at.time,
        ns_tid: tid,
        cgroup: CgroupId(4),
        comm: Comm::new(b"other"),
    })
}

/// Holds legs from 200 and 700 ns on to the whole.
fn check(hand: &Hand) {
    let trace = hand.trace(&[200, 700]);
    assert!(trace.checkpoints().count() > 0);
    let found = difference(&trace, 1);
    assert!(found.is_none(), "{}", found.unwrap_or_default());
}

/// The last figures of a leader that is gone come twice.
#[test]
fn final_of_a_dead_leader() {
    let mut hand = Hand::new(Scope::Command, 1_000);
    hand.listed(-20, 10, 10, 1, Some(SLEEPS))
        .listed(-19, 20, 10, 1, Some(SLEEPS))
        .comes_and_ends(10, 10, false)
        .comes(300, 320, 20);
    let last = Final {
        tid: Tid(10),
        sum_exec_runtime: 77,
        nvcsw: 5,
        nivcsw: 6,
    };
    hand.lives(0, 350, LifeKind::Final(last))
        .switch(0, 400, 20, SLEEPS, 0);
    check(&hand);
}

/// A task goes by three tids after each other, and later by the second one again.
#[test]
fn a_tid_between_two_execs() {
    let mut hand = Hand::new(Scope::Command, 1_000);
    hand.listed(-20, 10, 10, 1, Some(SLEEPS))
        .listed(-19, 20, 10, 1, Some(SLEEPS))
        .comes_and_ends(10, 10, false)
        .comes(300, 320, 10);
    hand.lives(0, 330, exec(Tid(20), Tid(50), Tgid(10)))
        .lives(0, 340, exec(Tid(10), Tid(60), Tgid(10)))
        .switch(0, 400, 60, SLEEPS, 0)
        .comes(750, 760, 50)
        .switch(0, 800, 50, SLEEPS, 0);
    check(&hand);
}

/// 20 is met before it is listed, behind 30; who takes over the process is the first.
#[test]
fn the_first_of_a_processs_threads() {
    let mut hand = Hand::new(Scope::Command, 1_000);
    hand.comes(-50, -48, 20)
        .switch(0, -45, 20, SLEEPS, 0)
        .listed(-20, 10, 10, 1, Some(SLEEPS))
        .listed(-19, 30, 10, 1, Some(SLEEPS))
        .listed(-18, 20, 10, 1, Some(SLEEPS))
        .comes_and_ends(10, 10, false)
        .comes(50, 51, 20)
        .switch(0, 52, 20, SLEEPS, 0)
        .comes(53, 54, 30)
        .switch(0, 56, 30, SLEEPS, 0)
        .comes(300, 320, 10)
        .switch(0, 400, 10, SLEEPS, 0);
    check(&hand);
}

/// A process that was listed is forked anew, while a thread of it lives.
#[test]
fn forked_is_joined() {
    let mut hand = Hand::new(Scope::Command, 1_000);
    hand.listed(-20, 10, 10, 1, Some(SLEEPS))
        .listed(-19, 20, 10, 1, Some(SLEEPS))
        .listed(-18, 5, 5, 1, Some(SLEEPS))
        .comes_and_ends(10, 10, false)
        .comes(50, 60, 5)
        .fork(0, 300, 5, 10, 10)
        .first_waking(0, 310, 5, 10, false)
        .switch(0, 400, 5, SLEEPS, 0)
        .listed(800, 70, 70, 10, Some(SLEEPS));
    check(&hand);
}

/// A thread that takes over its process goes by the dead leader's tid, and wakes somebody.
#[test]
fn woken_by_the_tid_of_a_dead_leader() {
    let mut hand = Hand::new(Scope::Command, 1_000);
    hand.listed(-20, 10, 10, 1, Some(SLEEPS))
        .listed(-19, 20, 10, 1, Some(SLEEPS))
        .listed(-18, 5, 5, 1, Some(SLEEPS))
        .comes(5, 6, 5)
        .switch(0, 8, 5, SLEEPS, 0)
        .comes_and_ends(10, 10, false)
        .comes(50, 51, 20)
        .waking(0, 300, 10, 5)
        .exec(0, 310, 20, 10)
        .switch(1, 320, 0, RUNNING, 5)
        .switch(0, 400, 10, SLEEPS, 0);
    check(&hand);
}

/// A thread of a process that is gone.
#[test]
fn a_thread_of_a_process_that_is_gone() {
    let mut hand = Hand::new(Scope::Command, 1_000);
    hand.listed(-20, 10, 10, 1, Some(SLEEPS))
        .listed(-18, 5, 5, 1, Some(SLEEPS))
        .comes_and_ends(10, 10, true)
        .comes(50, 60, 5)
        .fork(0, 300, 5, 11, 10)
        .first_waking(0, 310, 5, 11, false)
        .switch(0, 400, 5, SLEEPS, 11);
    check(&hand);
}

/// A leader that nobody has seen.
#[test]
fn the_first_waking_of_a_leader_that_was_never_there() {
    let mut hand = Hand::new(Scope::Command, 1_000);
    hand.listed(-20, 20, 10, 1, Some(SLEEPS))
        .listed(-18, 5, 5, 1, Some(SLEEPS))
        .comes(10, 20, 20)
        .switch(0, 40, 20, SLEEPS, 0)
        .comes(50, 60, 5)
        .waking(0, 300, 5, 10)
        .switch(0, 400, 5, SLEEPS, 0);
    check(&hand);
}

/// 10 leaves its CPU by the tid of a thread that is gone.
#[test]
fn an_alias_of_a_dead_thread() {
    let mut hand = Hand::new(Scope::Command, 1_000);
    hand.listed(-20, 10, 10, 1, Some(SLEEPS))
        .listed(-19, 20, 10, 1, Some(SLEEPS))
        .comes_and_ends(20, 10, false)
        .comes(50, 55, 10)
        .switch(0, 60, 20, SLEEPS, 0)
        .comes(65, 66, 10)
        .switch(0, 67, 10, SLEEPS, 0)
        .comes(290, 295, 10)
        .waking(0, 300, 10, 20)
        .switch(0, 340, 10, RUNNING, 0);
    check(&hand);
}
