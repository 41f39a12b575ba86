//! Unit tests of `timeline`.

use super::*;

/// A time-out with bits in both of its parts.
const LIMIT: Timeout = Timeout::LONGEST;

#[test]
fn a_timeline_gives_back_what_was_put_in() {
    // 10 ==cpu3== 20 __sleep__ 30 ..ready.. 35 ??cpu3?? 40 __disk__ 50
    let mut draft = Draft::default();
    let ready = Bucket::RunQueue { preempted: false };
    let on = Bucket::OnCpu(Some(CpuId(3)));
    let task = 2; // the tracker's third task is the model's first thread
    let mut add = |from, doing, cpu, actor| {
        // The reason of a sleep is kept of waits only.
        let why = Why {
            actor,
            reason: Reason::Child as u8,
            timeout: LIMIT.number(),
        };
        draft.add(task, Ktime(from), doing, cpu, why);
    };
    let third = Some(CpuId(3));
    add(10, on, third, ActorRef::UNKNOWN);
    add(15, on, third, ActorRef::task(9)); // the same stretch
    add(20, Bucket::Wait(Wait::Sleep), None, ActorRef::task(task));
    add(30, ready, None, ActorRef::task(7));
    add(35, Bucket::Unknown, third, ActorRef::UNKNOWN); // with --cpu of another
    add(40, Bucket::Wait(Wait::Io), None, ActorRef::INTERRUPT);
    let thread_of = |task| match task {
        2 => Ok(ThreadIx(0)),
        _ => Err(Tid(1007)),
    };
    let timeline = draft.finish([(task, Ktime(50))].into_iter(), thread_of);
    let stretch = |from, to, doing, actor| Stretch {
        from: Ktime(from),
        to: Ktime(to),
        doing,
        reason: match doing {
            Bucket::Wait(_) => Reason::Child,
            _ => Reason::Unknown,
        },
        timeout: match doing {
            Bucket::Wait(_) => LIMIT,
            _ => Timeout::UNKNOWN,
        },
        actor,
        cpu: [10, 35].contains(&from).then_some(CpuId(3)),
    };
    let own = Actor::Thread(ThreadIx(0));
    let all: Vec<Stretch> = timeline.of(ThreadIx(0)).collect();
    assert_eq!(
        all,
        [
            stretch(10, 20, on, Actor::Unknown),
            stretch(20, 30, Bucket::Wait(Wait::Sleep), own),
            stretch(30, 35, ready, Actor::Outside(Tid(1007))),
            stretch(35, 40, Bucket::Unknown, Actor::Unknown),
            stretch(40, 50, Bucket::Wait(Wait::Io), Actor::Interrupt),
        ]
    );
    let at = |time| timeline.at(ThreadIx(0), Ktime(time));
    assert_eq!(
        [at(9), at(10), at(19), at(20), at(99)],
        [None, Some(0), Some(0), Some(1), Some(4)]
    );
    assert_eq!(timeline.count(ThreadIx(0)), 5);
}

#[test]
fn a_preempted_thread_has_no_waker() {
    let other = Actor::Thread(ThreadIx(1));
    let stretch = |doing| Stretch {
        from: Ktime(1),
        to: Ktime(2),
        doing,
        reason: Reason::Unknown,
        timeout: Timeout::UNKNOWN,
        actor: other,
        cpu: None,
    };
    let actors = |s: Stretch| (s.waker(), s.preempted_by());
    let preempted = stretch(Bucket::RunQueue { preempted: true });
    assert_eq!(actors(preempted), (Actor::Unknown, other));
    for doing in [
        Bucket::RunQueue { preempted: false },
        Bucket::Wait(Wait::Io),
    ] {
        assert_eq!(actors(stretch(doing)), (other, Actor::Unknown));
    }
}

#[test]
fn every_state_survives() {
    for doing in DOING {
        let why = Why {
            actor: ActorRef::UNKNOWN,
            reason: 200,
            timeout: LIMIT.number(),
        };
        let change = Change::new(Ktime(1), doing, None, why);
        assert_eq!(change.doing(), doing);
        if matches!(doing, Bucket::Wait(_)) {
            assert_eq!(
                (change.timeout(), change.reason & REASON),
                (LIMIT, Reason::Other as u8)
            );
        }
    }
    assert_eq!(std::mem::size_of::<Change>(), 16);
}
