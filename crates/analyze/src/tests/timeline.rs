//! Unit tests of `timeline`.

use tr_format::event::{CpuId, Tid, Timeout};

use super::change::{DOING_STATES, REASON};
use super::*;

/// The time-out with the largest code. A change stores some bits of the code in `doing` and the others in `reason`,
/// and this code has bits in both.
const LIMIT: Timeout = Timeout::LONGEST;

#[test]
fn a_timeline_gives_back_what_was_put_in() {
    // The timeline that is added to `draft`, with its times in ns:
    // 10 ==cpu3== 20 __sleep__ 30 ..ready.. 35 ??cpu3?? 40 __disk__ 50
    let mut draft = Draft::default();
    let ready = Bucket::RunQueue { preempted: false };
    let on = Bucket::OnCpu(Some(CpuId(3)));
    let task = 2; // the tracker's third task is the model's first thread
    let mut add = |from, doing, cpu, actor| {
        // A change of state keeps the reason and the time-out only if the new state is a wait.
        let why = Why {
            actor,
            reason: Reason::Child as u8,
            timeout: LIMIT.number(),
        };
        draft.add(task, Ktime(from), doing, cpu, why);
    };
    let third = Some(CpuId(3));
    add(10, on, third, ActorRef::UNKNOWN);
    add(15, on, third, ActorRef::task(9)); // joined with the stretch from 10 on
    add(20, Bucket::Wait(Wait::Sleep), None, ActorRef::task(task));
    add(30, ready, None, ActorRef::task(7));
    add(35, Bucket::Unknown, third, ActorRef::UNKNOWN); // with --cpu, on another CPU
    add(40, Bucket::Wait(Wait::Io), None, ActorRef::INTERRUPT);
    let thread_of = |task| match task {
        2 => Ok(ThreadIx(0)),
        _ => Err(Tid(1007)),
    };
    let timeline = draft.finish([(task, Ktime(50))].into_iter(), thread_of, 10);
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
    for doing in DOING_STATES {
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

/// A change that is added to a task: the time, the state, the CPU, the cause.
type Added = (Ktime, Bucket, Option<CpuId>, Why);

/// Random changes of a task.
fn random(seed: u64, count: usize) -> Vec<Added> {
    let mut state = seed;
    let mut random = move |below: u64| {
        state = state
            .wrapping_mul(0x5851_f42d_4c95_7f2d)
            .wrapping_add(0x1405_7b7e_f767_814f);
        (state >> 33) % below
    };
    let mut now = 0;
    let mut change = || {
        now += 1 + [
            random(1 << 10),
            random(1 << 20),
            random(1 << 28),
            random(1 << 40),
        ][random(4) as usize];
        let doing = DOING_STATES[random(10) as usize];
        let cpu = (random(8) > 0).then(|| CpuId(random(300) as u16));
        let (doing, cpu) = match doing {
            Bucket::OnCpu(_) => (Bucket::OnCpu(cpu), cpu),
            Bucket::Unknown => (doing, cpu.filter(|_| random(2) > 0)),
            _ => (doing, None),
        };
        let actor = match random(5) {
            0 => ActorRef::UNKNOWN,
            1 => ActorRef::task(random(100_000) as usize),
            2 => ActorRef::task(random(4) as usize),
            3 => ActorRef::outside(Tid(random(1 << 22) as u32)),
            _ => ActorRef(u32::MAX - 1 - random(5) as u32),
        };
        let why = Why {
            actor,
            reason: random(12) as u8,
            timeout: Timeout::of(random(3) as u8 * 40).limit().number(),
        };
        (Ktime(now), doing, cpu, why)
    };
    (0..count).map(|_| change()).collect()
}

/// The timeline of tasks with these changes, and the stretches that the timeline must have.
fn timeline_of(tasks: &[Vec<Added>], mut draft: Draft) -> (Timeline, Vec<Vec<Stretch>>) {
    let mut changes: Vec<Vec<Change>> = vec![Vec::new(); tasks.len()];
    let mut all: Vec<_> = tasks
        .iter()
        .enumerate()
        .flat_map(|(task, list)| list.iter().map(move |change| (task, change)))
        .collect();
    all.sort_by_key(|(_, change)| change.0);
    for (task, (from, doing, cpu, why)) in all {
        draft.add(task, *from, *doing, *cpu, *why);
        let change = Change::new(*from, *doing, *cpu, *why);
        let list = &mut changes[task];
        if !list
            .last()
            .is_some_and(|last| last.is_continued_by(&change))
        {
            list.push(change);
        }
    }
    // The threads have the reverse order of the tasks. Tasks with higher numbers are not part of the model.
    let count = tasks.len();
    let thread_of = |task: usize| {
        if task < count {
            Ok(ThreadIx((count - 1 - task) as u32))
        } else {
            Err(Tid(task as u32))
        }
    };
    let end = Ktime(u64::MAX >> 1);
    let threads = (0..count).rev().map(|task| (task, end));
    let timeline = draft.finish(threads, thread_of, 100_000);
    let renumbered = |change: &Change| {
        let actor = match change.actor.place().map(thread_of) {
            Some(Ok(thread)) => ActorRef::task(thread.0 as usize),
            Some(Err(tid)) => ActorRef::outside(tid),
            None => change.actor,
        };
        Change { actor, ..*change }
    };
    let expected = changes.iter().rev().map(|list| {
        let ends = list.iter().skip(1).map(|next| next.from).chain([end]);
        list.iter()
            .zip(ends)
            .map(|(change, to)| renumbered(change).stretch(to))
            .collect()
    });
    (timeline, expected.collect())
}

fn same(timeline: &Timeline, expected: &[Vec<Stretch>]) {
    for (thread, list) in (0..).map(ThreadIx).zip(expected) {
        assert_eq!(timeline.count(thread), list.len());
        assert_eq!(&timeline.of(thread).collect::<Vec<_>>(), list);
        for (number, stretch) in list.iter().enumerate() {
            assert_eq!(timeline.get(thread, number), Some(*stretch));
            assert_eq!(timeline.at(thread, stretch.from), Some(number));
            assert_eq!(timeline.before(thread, stretch.to), Some(*stretch));
            if number % 50 == 3 {
                assert_eq!(
                    timeline.since(thread, stretch.from).collect::<Vec<_>>(),
                    list[number..]
                );
            }
        }
        let by_task = |stretch: &Stretch| {
            matches!(stretch.doing, Bucket::Wait(_))
                && matches!(stretch.actor, Actor::Thread(_) | Actor::Outside(_))
        };
        let around = timeline.around_tasks(thread).filter(by_task);
        assert_eq!(
            around.collect::<Vec<_>>(),
            list.iter().copied().filter(by_task).collect::<Vec<_>>()
        );
        for reason in Reason::ALL {
            let is = |stretch: &Stretch| {
                stretch.reason == reason && matches!(stretch.doing, Bucket::Wait(_))
            };
            assert!(timeline.may_wait(thread, reason) || !list.iter().any(is));
        }
    }
    let mut moments: Vec<(Ktime, ThreadIx, usize)> = Vec::new();
    for (thread, list) in (0..).map(ThreadIx).zip(expected) {
        let from = list.first().map(|first| first.from);
        let times = from
            .into_iter()
            .chain(list.iter().map(|stretch| stretch.to));
        moments.extend(times.enumerate().map(|(number, at)| (at, thread, number)));
    }
    moments.sort_unstable();
    let threads = (0..expected.len()).map(|thread| ThreadIx(thread as u32));
    let changes = timeline.changes(threads).map(|change| {
        let list = &expected[change.thread.0 as usize];
        let number = change.before.map_or(0, |before| {
            1 + list.iter().position(|stretch| *stretch == before).unwrap()
        });
        assert_eq!(change.after, list.get(number).copied());
        (change.at, change.thread, number)
    });
    assert_eq!(changes.collect::<Vec<_>>(), moments);
}

fn tasks() -> Vec<Vec<Added>> {
    let counts = [1, 63, 64, 65, 0, 1000, 128, 700];
    (1..)
        .zip(counts)
        .map(|(seed, count)| random(seed, count))
        .collect()
}

#[test]
fn packed_changes_are_what_they_were() {
    let (timeline, expected) = timeline_of(&tasks(), Draft::new(None));
    same(&timeline, &expected);
    let bytes: usize = timeline
        .lines
        .iter()
        .map(|line| line.packed.in_memory())
        .sum();
    let changes: usize = expected.iter().map(Vec::len).sum();
    assert!(bytes < 11 * changes, "{bytes} for {changes}");
}

/// Makes a scratch file of an open file. The scratch file lives as long as the process.
fn scratch(file: std::fs::File) -> &'static Scratch {
    Box::leak(Box::new(Scratch::new(file)))
}

fn temporary() -> std::fs::File {
    static NUMBER: std::sync::atomic::AtomicU32 = std::sync::atomic::AtomicU32::new(0);
    let number = NUMBER.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
    let name = format!("tr-scratch-{}-{number}", std::process::id());
    let path = std::env::temp_dir().join(name);
    let mut options = std::fs::OpenOptions::new();
    let file = options
        .read(true)
        .write(true)
        .create_new(true)
        .open(&path)
        .unwrap();
    std::fs::remove_file(path).unwrap();
    file
}

fn small(scratch: &'static Scratch) -> Draft {
    Draft {
        moves_at: 500,
        kept: 500,
        ..Draft::new(Some(scratch))
    }
}

#[test]
fn changes_in_a_file_are_what_they_were() {
    let file = temporary();
    let length = file.try_clone().unwrap();
    let scratch = scratch(file);
    let (timeline, expected) = timeline_of(&tasks(), small(scratch));
    assert!(length.metadata().unwrap().len() > 5000);
    let left: usize = timeline
        .lines
        .iter()
        .map(|line| line.packed.in_memory())
        .sum();
    assert!(left < 5000, "{left}");
    same(&timeline, &expected);
    assert!(!scratch.has_failed());
    // Most of the scratch file is cut off. Reading it must not panic, and the failure must be noticed.
    length.set_len(100).unwrap();
    for thread in timeline.lines.ids() {
        timeline.of(thread).for_each(drop);
        timeline.around(thread, Ktime(1 << 40));
    }
    assert!(scratch.has_failed());
}

#[test]
fn without_room_in_the_file_everything_stays_in_memory() {
    let full = std::fs::OpenOptions::new()
        .read(true)
        .write(true)
        .open("/dev/full")
        .unwrap();
    let scratch = scratch(full);
    let (timeline, expected) = timeline_of(&tasks(), small(scratch));
    same(&timeline, &expected);
    assert!(!scratch.has_failed());
}

#[test]
fn a_divided_stretch_is_two() {
    let scratch = scratch(temporary());
    let (mut timeline, expected) = timeline_of(&tasks(), small(scratch));
    let thread = ThreadIx(2); // the task with 1000 changes
    let stretch = expected[2][500];
    let at = Ktime(stretch.from.0 + 1);
    timeline.divide(thread, at, Actor::Thread(ThreadIx(1)));
    timeline.end_by(thread, 700, Actor::SoftIrq);
    let mut list = expected[2].clone();
    list[500] = Stretch {
        to: at,
        actor: Actor::Thread(ThreadIx(1)),
        ..stretch
    };
    list.insert(
        501,
        Stretch {
            from: at,
            ..stretch
        },
    );
    list[700].actor = Actor::SoftIrq;
    assert_eq!(timeline.of(thread).collect::<Vec<_>>(), list);
    assert_eq!(timeline.count(thread), list.len());
    assert_eq!(timeline.at(thread, at), Some(501));
    assert_eq!(timeline.get(thread, 640), Some(list[640]));
}
