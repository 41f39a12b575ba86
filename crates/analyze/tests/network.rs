//! Checks that connections and DNS queries are analyzed correctly, however late their events are written: no connection
//! is closed before its connect or accept, and no query is answered before it was sent.
#![allow(clippy::unwrap_used, clippy::indexing_slicing)] // of our own files, in a test

mod hand;

use std::ops::Range;
use std::sync::atomic::{AtomicU32, Ordering};

use hand::{at, Hand, RUNNING, SLEEPS};
use proptest::prelude::*;
use proptest::test_runner::TestRunner;
use tr_analyze::critical_path::TimeKind;
use tr_analyze::ending::WaitEnd;
use tr_analyze::model::{Analysis, ThreadIx};
use tr_analyze::network::waited;
use tr_analyze::timeline::Actor;
use tr_analyze::{analyze, Options};
use tr_format::dns::DnsQuery;
use tr_format::event::{Context, LifeKind, Reason, SchedKind, Switch, Tgid, Tid, Timeout, Waking};
use tr_format::meta::Scope;
use tr_format::network::{Address, Closed, Connect, ConnectionId, Ending, Endpoint};
use tr_format::reader::Trace;
use tr_format::source::Source;
use tr_sim::network::{self, Question, Truth};
use tr_sim::recording::Recording;
use tr_sim::strategy::{self, Case};

/// Applies the faults of a case to a recording and analyzes it. `late` counts the recordings with late writes: events
/// that were written after events with later time stamps.
fn analyzed(case: &Case, recording: &mut Recording, late: &AtomicU32) -> Analysis {
    case.plan.apply(recording);
    late.fetch_add(network::is_late(&recording.life).into(), Ordering::Relaxed);
    let file = recording.to_file(&case.cut).unwrap();
    let trace = Trace::open(Source::bytes(file)).unwrap();
    analyze(&trace, &Options::default())
}

/// The pid of a thread's process; 0 if there is no thread.
fn process(analysis: &Analysis, thread: Option<ThreadIx>) -> Tgid {
    thread
        .map(|ix| analysis.process(analysis.thread(ix).process).pid)
        .unwrap_or_default()
}

#[test]
fn late_writes_change_no_connection() {
    let late = AtomicU32::new(0);
    let mut runner = TestRunner::new(strategy::cases(100));
    let cases = (strategy::lossless(200_000_000), any::<u64>());
    let ran = runner.run(&cases, |(case, seed)| {
        let (mut recording, _) = Recording::record(&case.config);
        let mut truth = network::connect(&mut recording, 200, seed);
        let analysis = analyzed(&case, &mut recording, &late);
        let found = analysis.network.connections.iter().map(|connection| Truth {
            tgid: process(&analysis, connection.thread),
            accepted: connection.accepted,
            begun: connection.begun,
            established: connection.established,
            closed: connection.closed,
            bytes: connection.bytes,
            remote: connection.remote,
        });
        let mut found: Vec<Truth> = found.collect();
        for it in &found {
            let after = [it.established, it.closed];
            prop_assert!(after.iter().flatten().all(|at| *at >= it.begun), "{:?}", it);
        }
        // Connections that began after the end of the analyzed span are not part of the analysis.
        truth.retain(|known| known.begun < analysis.end);
        for it in &mut truth {
            it.established = it.established.filter(|at| *at <= analysis.end);
            let closed = it.closed.is_some_and(|at| at <= analysis.end);
            (it.closed, it.bytes) = (it.closed.filter(|_| closed), it.bytes.filter(|_| closed));
        }
        let key = |known: &Truth| (known.begun, known.tgid, known.bytes, known.closed);
        truth.sort_by_key(key);
        found.sort_by_key(key);
        prop_assert_eq!(found, truth);
        Ok(())
    });
    ran.unwrap();
    assert!(late.into_inner() > 10, "hardly any late write");
}

#[test]
fn late_writes_change_no_query() {
    let late = AtomicU32::new(0);
    let mut runner = TestRunner::new(strategy::cases(100));
    let cases = (strategy::lossless(200_000_000), any::<u64>());
    let ran = runner.run(&cases, |(case, seed)| {
        let (mut recording, _) = Recording::record(&case.config);
        let mut truth = network::ask(&mut recording, 200, seed);
        let analysis = analyzed(&case, &mut recording, &late);
        let found = analysis.network.lookups.iter().map(|lookup| Question {
            tgid: process(&analysis, lookup.thread),
            asked: lookup.asked,
            answered: lookup.answered,
            name: lookup.query.name.to_vec(),
            code: lookup.code,
        });
        let mut found: Vec<Question> = found.collect();
        for it in &found {
            prop_assert!(it.answered.is_none_or(|at| at >= it.asked), "{:?}", it);
        }
        truth.retain(|known| known.asked < analysis.end);
        for it in &mut truth {
            let inside = it.answered.is_some_and(|at| at <= analysis.end);
            (it.answered, it.code) = (it.answered.filter(|_| inside), it.code.filter(|_| inside));
        }
        let key = |question: &Question| {
            (
                question.asked,
                question.tgid,
                question.name.clone(),
                question.answered,
            )
        };
        truth.sort_by_key(key);
        found.sort_by_key(key);
        prop_assert_eq!(found, truth);
        Ok(())
    });
    ran.unwrap();
    assert!(late.into_inner() > 10, "hardly any late write");
}

const MS: i64 = 1_000_000;

/// Adds a poll(2) call of task 10 that lasts for `span`, in milliseconds. The task `waker` ends the call; if `waker` is
/// 0, the call's time-out does.
fn poll(hand: &mut Hand, span: Range<i64>, waker: u32) {
    let sleep = SchedKind::Switch(Switch {
        prev: Tid(10),
        next: Tid(0),
        prev_state: SLEEPS,
        preempt: false,
        iowait: false,
        reason: Reason::Poll,
        timeout: Timeout::UNKNOWN,
    });
    hand.sched(0, span.start * MS, sleep)
        .waking(0, span.end * MS, waker, 10)
        .switch(0, span.end * MS + 1, 0, RUNNING, 10);
}

/// Task 10 polls several times, while a connection or a DNS query is open or not.
///
/// ```text
///            connect          close       query
/// 10  =ssssss===|==ssssss=ooooo==|==sssss==|==ssssss=     s: poll(2), until its time-out
///                  network network       sleep network    o: until an unrecorded task wakes it
/// ```
#[test]
fn a_poll_waits_for_the_network_while_a_connection_or_a_query_is_open() {
    let address = Address::V4(std::net::Ipv4Addr::LOCALHOST);
    let id = ConnectionId(1);
    let remote = Endpoint { address, port: 80 };
    let (tid, tgid) = (Tid(10), Tgid(10));
    let connect = Connect {
        id,
        tid,
        tgid,
        remote,
    };
    let closed = Closed {
        id,
        by: Some((tid, tgid)),
        ending: Ending::Closed,
        sent: 1,
        received: 1,
    };
    let query = DnsQuery {
        tid,
        tgid,
        server: address,
        port: 4000,
        id: 1,
        kind: 1,
        name: b"silent.example".as_slice().into(),
    };
    let mut hand = Hand::new(Scope::Command, 20_000 * MS);
    hand.meta.root = Some(tgid);
    hand.snapshot(-10, 10, 10, 1, None);
    poll(&mut hand, 10..40, 0);
    hand.lives(0, 50 * MS, LifeKind::Connect(connect));
    poll(&mut hand, 60..160, 0);
    poll(&mut hand, 200..400, 99);
    hand.lives(0, 450 * MS, LifeKind::Closed(closed));
    poll(&mut hand, 500..900, 0);
    hand.lives(0, 950 * MS, LifeKind::DnsQuery(Box::new(query)));
    poll(&mut hand, 1_000..6_000, 0);
    // At this time the resolver has given up the DNS query, so the poll is a sleep.
    poll(&mut hand, 7_000..7_001, 0);
    let (analysis, path) = hand.path();
    let waits = path
        .segments
        .iter()
        .filter(|segment| segment.kind != TimeKind::OnCpu);
    let waits = waits.filter(|wait| wait.kind != TimeKind::RunQueue);
    let waits: Vec<_> = waits
        .map(|wait| (wait.from, wait.length() / 1_000_000, wait.kind))
        .collect();
    let expected = [
        (at(10 * MS), 30, TimeKind::Sleep),
        // The recording does not have the time-out of this call. So the call may be a sleep, or a part of the wait for
        // an answer.
        (at(60 * MS), 100, TimeKind::Unknown),
        (at(200 * MS), 200, TimeKind::Network),
        (at(500 * MS), 400, TimeKind::Sleep),
        (at(1_000 * MS), 5_000, TimeKind::Network),
        (at(7_000 * MS), 1, TimeKind::Sleep),
    ];
    assert_eq!(waits, expected);
    let waits = waited(&analysis, &path).into_iter();
    let waits: Vec<_> = waits
        .map(|wait| (wait.ns / 1_000_000, wait.connection))
        .collect();
    assert_eq!(waits, [(200, Some(0)), (5_000, None)]);
}

/// Task 10 has a connection and sleeps in a system call from 10 ms on. The task or interrupt `by` ends the wait at
/// `end`, in milliseconds. Returns the cause that ended the wait, and the kind of time as which the wait counts.
fn ended(sleep: (Reason, Timeout), end: i64, by: (u32, Context)) -> (WaitEnd, TimeKind) {
    let ((reason, timeout), (waker, context)) = (sleep, by);
    let remote = Endpoint {
        address: Address::V4(std::net::Ipv4Addr::LOCALHOST),
        port: 80,
    };
    let connect = Connect {
        id: ConnectionId(1),
        tid: Tid(10),
        tgid: Tgid(10),
        remote,
    };
    let mut hand = Hand::new(Scope::Command, 20_000 * MS);
    hand.meta.root = Some(Tgid(10));
    hand.snapshot(-10, 10, 10, 1, None);
    hand.lives(0, MS, LifeKind::Connect(connect));
    let sleep = SchedKind::Switch(Switch {
        prev: Tid(10),
        next: Tid(0),
        prev_state: SLEEPS,
        preempt: false,
        iowait: false,
        reason,
        timeout,
    });
    let waking = SchedKind::Waking(Waking {
        waker: Tid(waker),
        wakee: Tid(10),
        context,
        new: false,
        vfork: false,
    });
    hand.sched(0, 10 * MS, sleep)
        .sched(0, end * MS, waking)
        .switch(0, end * MS + 1, 0, RUNNING, 10);
    let (analysis, path) = hand.path();
    let timeline = analysis.timeline.as_ref().unwrap();
    let thread = path.segments.first().unwrap().thread;
    let wait = timeline.around(thread, at(10 * MS)).unwrap();
    let kind = path
        .segments
        .iter()
        .find(|segment| segment.from == at(10 * MS));
    (analysis.wait_end(thread, &wait), kind.unwrap().kind)
}

/// A process with an open connection waits. Each case has the system call with its time-out, the end of the wait and
/// the waker, and the kind of wait that follows from them.
#[test]
fn a_wait_has_the_cause_that_ended_it() {
    let limit = Timeout::after(300_000_000);
    let timer = |asked| WaitEnd::Timer { asked };
    let (hard, soft) = ((0, Context::HardIrq), (0, Context::SoftIrq));
    let outside = Actor::Outside(Tid(99));
    for (sleep, end, by, expected) in [
        // The time-out of 300 ms passed, and an interrupt came. The process has connections, but has sent no request,
        // so this was a sleep. In the case whose time-out is marked with `asked`, the process had sent a request, and
        // so waited for the network.
        (
            (Reason::Poll, limit),
            310,
            hard,
            (timer(Some(false)), TimeKind::Sleep),
        ),
        (
            (Reason::Poll, limit.asked()),
            310,
            hard,
            (timer(Some(true)), TimeKind::Network),
        ),
        // An interrupt before the time-out shows that something else ended the wait, for example a signal from a timer.
        (
            (Reason::Poll, limit),
            110,
            hard,
            (WaitEnd::Unknown, TimeKind::Unknown),
        ),
        (
            (Reason::Poll, Timeout::NONE),
            310,
            hard,
            (WaitEnd::Unknown, TimeKind::Unknown),
        ),
        (
            (Reason::Lock, limit),
            110,
            hard,
            (WaitEnd::Signal(Actor::Device), TimeKind::Sleep),
        ),
        (
            (Reason::Poll, limit),
            110,
            soft,
            (WaitEnd::Packet, TimeKind::Network),
        ),
        (
            (Reason::SocketRead, Timeout::NONE),
            310,
            soft,
            (WaitEnd::Packet, TimeKind::Network),
        ),
        // The time-out of a socket is counted in ticks, and a softirq ends the wait.
        (
            (Reason::SocketRead, Timeout::SOME),
            310,
            soft,
            (timer(None), TimeKind::Unknown),
        ),
        (
            (Reason::Poll, limit),
            110,
            (99, Context::Task),
            (WaitEnd::Task(outside), TimeKind::Network),
        ),
        (
            (Reason::Timer, limit),
            310,
            hard,
            (timer(Some(false)), TimeKind::Sleep),
        ),
        (
            (Reason::Timer, limit),
            110,
            (99, Context::Task),
            (WaitEnd::Signal(outside), TimeKind::Outside),
        ),
        // Recordings before format version 3.10 have no time-outs. An interrupt ended this wait. The interrupt may have
        // been the time-out, even if the process still waited for the answer to a request.
        (
            (Reason::Poll, Timeout::UNKNOWN),
            310,
            hard,
            (timer(None), TimeKind::Unknown),
        ),
        (
            (Reason::Timer, Timeout::UNKNOWN),
            310,
            hard,
            (timer(Some(false)), TimeKind::Sleep),
        ),
    ] {
        assert_eq!(
            ended(sleep, end, by),
            expected,
            "{sleep:?} until {end} ms by {by:?}"
        );
    }
}

/// Whether a wait of a process with connections to these addresses is known to be a wait for another machine.
fn elsewhere(addresses: &[Address]) -> bool {
    let (tid, tgid) = (Tid(10), Tgid(10));
    let mut hand = Hand::new(Scope::Command, 20_000 * MS);
    hand.meta.root = Some(tgid);
    hand.snapshot(-10, 10, 10, 1, None);
    for (n, address) in (1..).zip(addresses) {
        let remote = Endpoint {
            address: *address,
            port: 80,
        };
        let connect = Connect {
            id: ConnectionId(n),
            tid,
            tgid,
            remote,
        };
        let time = 10 * MS + i64::try_from(n).unwrap();
        hand.lives(0, time, LifeKind::Connect(connect));
    }
    poll(&mut hand, 60..160, 99);
    let (analysis, path) = hand.path();
    waited(&analysis, &path).first().unwrap().elsewhere
}

#[test]
fn public_addresses_alone_are_of_other_machines() {
    let of = |text: &str| match text.parse().unwrap() {
        std::net::IpAddr::V4(ip) => Address::V4(ip),
        std::net::IpAddr::V6(ip) => Address::V6(ip),
    };
    for text in ["93.184.215.14", "2606:2800:21f::1", "::ffff:93.184.215.14"] {
        assert!(elsewhere(&[of(text)]), "{text}");
    }
    // A container on this machine can also have one of these private or local addresses.
    for text in [
        "127.0.0.2",
        "10.0.0.7",
        "172.17.0.2",
        "192.168.1.1",
        "100.64.0.1",
        "169.254.1.1",
        "0.0.0.0",
        "::1",
        "fd00::1",
        "fe80::1",
        "::ffff:127.0.0.1",
    ] {
        assert!(!elsewhere(&[of(text)]), "{text}");
        assert!(!elsewhere(&[of("93.184.215.14"), of(text)]), "{text}");
    }
    assert!(elsewhere(&[of("93.184.215.14"), of("8.8.8.8")]));
    assert!(!elsewhere(&[Address::Masked(1)]));
}

/// A server's thread reads from a connection. A client that closes the other end is the cause of the end of this wait,
/// although a softirq on the client's CPU wakes the thread. A packet that comes later, or after the end of a connection
/// to another machine, has no such cause.
#[test]
fn a_client_that_closes_ends_the_wait_of_its_server() {
    let end = |remote: [u8; 4], after: i64| {
        let mut hand = Hand::new(Scope::Command, 1000 * MS);
        hand.meta.root = Some(Tgid(10));
        hand.snapshot(-10, 10, 10, 1, None);
        hand.fork(0, MS, 10, 20, 20);
        let connect = Connect {
            id: ConnectionId(1),
            tid: Tid(20),
            tgid: Tgid(20),
            remote: Endpoint {
                address: Address::V4(remote.into()),
                port: 80,
            },
        };
        let closed = Closed {
            id: ConnectionId(1),
            by: Some((Tid(20), Tgid(20))),
            ending: Ending::Closed,
            ..Closed::default()
        };
        let reads = SchedKind::Switch(Switch {
            prev: Tid(10),
            next: Tid(20),
            prev_state: SLEEPS,
            preempt: false,
            iowait: false,
            reason: Reason::SocketRead,
            timeout: Timeout::NONE,
        });
        let waking = SchedKind::Waking(Waking {
            waker: Tid(20),
            wakee: Tid(10),
            context: Context::SoftIrq,
            new: false,
            vfork: false,
        });
        hand.lives(0, 2 * MS, LifeKind::Connect(connect));
        hand.sched(0, 10 * MS, reads);
        hand.lives(0, 300 * MS, LifeKind::Closed(closed));
        hand.sched(0, 300 * MS + after, waking)
            .switch(0, 400 * MS, 20, SLEEPS, 10);
        let (analysis, _) = hand.path();
        let timeline = analysis.timeline.as_ref().unwrap();
        let thread = |tid| {
            analysis
                .thread_ids()
                .find(|ix| analysis.thread(*ix).tid == Tid(tid))
        };
        let (server, client) = (thread(10).unwrap(), thread(20).unwrap());
        let wait = timeline.around(server, at(10 * MS)).unwrap();
        analysis.wait_end(server, &wait) == WaitEnd::Task(Actor::Thread(client))
    };
    assert!(end([127, 0, 0, 1], 40_000));
    assert!(!end([127, 0, 0, 1], 10 * MS));
    assert!(!end([192, 0, 2, 1], 40_000));
}
