//! Unit tests of `convert`.

use super::*;

const COMM: &[u8; 16] = b"sh\0\0\0\0\0\0\0\0\0\0\0\0\0\0";

/// A record of this kind at time 7 on CPU 3: the words after its head, then `tail`.
fn record(kind: u32, words: &[u32], tail: &[u8]) -> Vec<u8> {
    let head = [7, 0, kind, 3];
    let words = head.iter().chain(words).flat_map(|w| w.to_ne_bytes());
    words.chain(tail.iter().copied()).collect()
}

fn one(record: &[u8]) -> LifeKind {
    let mut events = life(record, 4096);
    assert_eq!(events.len(), 1);
    let event = events.pop().unwrap();
    assert_eq!((event.time, event.cpu), (Ktime(7), Some(CpuId(3))));
    event.kind
}

/// A scheduling event from task 10 to task 20 in state 2.
fn scheduling(kind: u8, flags: u8) -> Option<SchedKind> {
    let (time, from, to, state) = (5, 10, 20, 2);
    #[rustfmt::skip]
    let stored = sched(&wire::Slot::from(wire::Sched { time, from, to, state, kind, flags }))?;
    assert_eq!(stored.time, Ktime(5));
    Some(stored.kind)
}

#[test]
fn a_switch_keeps_state_and_flags() {
    for (flag, preempt, iowait) in [
        (wire::SCHED_PREEMPT, true, false),
        (wire::SCHED_IOWAIT, false, true),
    ] {
        let want = SchedKind::Switch {
            prev: Tid(10),
            next: Tid(20),
            prev_state: 2,
            preempt,
            iowait,
            reason: Reason::Unknown,
        };
        assert_eq!(scheduling(wire::SCHED_SWITCH, flag), Some(want));
    }
}

#[test]
fn wakings_differ_by_kind_and_flags() {
    let want = |context, new, vfork| SchedKind::Waking {
        waker: Tid(10),
        wakee: Tid(20),
        context,
        new,
        vfork,
    };
    let waking = scheduling(wire::SCHED_WAKING, wire::SCHED_IRQ);
    assert_eq!(waking, Some(want(Context::HardIrq, false, false)));
    let new = scheduling(wire::SCHED_WAKEUP_NEW, wire::SCHED_VFORK);
    assert_eq!(new, Some(want(Context::Task, true, true)));
    assert_eq!(scheduling(wire::SCHED_LOST, 0), None);
}

#[test]
fn a_fork_keeps_parent_and_child() {
    let words = [1, 2, 3, 4, 50, 0, 60, 0, 7, 0];
    let record = record(wire::LIFE_FORK, &words, COMM);
    let want = Fork {
        parent_tid: Tid(1),
        parent_tgid: Tgid(2),
        tid: Tid(3),
        tgid: Tgid(4),
        start_time: Ktime(50),
        ns_tid: Tid(7),
        cgroup: CgroupId(60),
        comm: Comm::new(b"sh"),
    };
    assert_eq!(one(&record), LifeKind::Fork(want));
    let short = &record[..record.len() - 1];
    assert!(life(short, 4096).is_empty(), "a short record is no event");
}

fn exec_record(argv_len: u32, unknown: u32) -> Vec<u8> {
    let words = [9, 9, 8, 5, 8, argv_len, 6, 0, 60, 0, unknown, 0];
    let tail = [COMM, &b"/bin\0___cc\0-c\0___"[..]].concat();
    record(wire::LIFE_EXEC, &words, &tail)
}

#[test]
fn an_exec_keeps_file_name_and_arguments() {
    let exec = |argv_len, unknown| match one(&exec_record(argv_len, unknown)) {
        LifeKind::Exec(exec) => exec,
        other => panic!("{other:?}"),
    };
    let whole = exec(6, 0);
    assert_eq!(&*whole.filename, b"/bin");
    assert_eq!(whole.argv.args().collect::<Vec<_>>(), [&b"cc"[..], b"-c"]);
    assert!(!whole.argv.truncated());
    assert_eq!((whole.tid, whole.old_tid), (Tid(9), Tid(8)));
    assert!(exec(4, 0).argv.truncated());
    assert_eq!(exec(0, 1).argv.full_len, None);
    // It claims more than it holds.
    assert!(life(&exec_record(100, 0), 4096).is_empty());
}

#[test]
fn an_exit_counts_memory_in_bytes() {
    let values = (1..=10).flat_map(|value| [value, 0]);
    let words: Vec<u32> = [9, 9, 0x100, 0x200].into_iter().chain(values).collect();
    let words = [&words[..], &[1, 0]].concat();
    let want = Exit {
        tid: Tid(9),
        tgid: Tgid(9),
        status: 0x100,
        group_dead: true,
        group_status: 0x200,
        utime: 1,
        stime: 2,
        sum_exec_runtime: 3,
        nvcsw: 4,
        nivcsw: 5,
        min_flt: 6,
        maj_flt: 7,
        max_rss: 8 * 4096,
        // Not counted, which is not 0.
        read_bytes: None,
        write_bytes: None,
        program_rss: None,
        delays: Delays::default(),
    };
    let exit = one(&record(wire::LIFE_EXIT, &words, b""));
    assert_eq!(exit, LifeKind::Exit(want));
}

#[test]
fn final_rename_and_loss() {
    let last = one(&record(wire::LIFE_FINAL, &[9, 0, 1, 0, 2, 0, 3, 0], b""));
    let want = Final {
        tid: Tid(9),
        sum_exec_runtime: 1,
        nvcsw: 2,
        nivcsw: 3,
        delays: Delays::default(),
    };
    assert_eq!(last, LifeKind::Final(want));
    let rename = one(&record(wire::LIFE_RENAME, &[9, 8], COMM));
    let want = Rename {
        tid: Tid(9),
        tgid: Tgid(8),
        comm: Comm::new(b"sh"),
    };
    assert_eq!(rename, LifeKind::Rename(want));
    let lost = life(&record(wire::LIFE_LOST, &[70, 0, 4, 0], b""), 4096);
    assert_eq!(lost, [ring_full(Stream::Lifecycle, 7, 70, 4)]);
}

#[test]
fn a_move_has_the_path_first() {
    let mut path = [0u8; 1024];
    path[..3].copy_from_slice(b"/a\0");
    let events = life(
        &record(wire::LIFE_CGROUP_MOVE, &[9, 8, 77, 0, 3, 0], &path),
        4096,
    );
    let kinds: Vec<_> = events.into_iter().map(|event| event.kind).collect();
    let path = LifeKind::CgroupPath(CgroupPath {
        id: CgroupId(77),
        path: (*b"/a").into(),
    });
    let moved = LifeKind::CgroupMove(CgroupMove {
        tid: Tid(9),
        tgid: Tgid(8),
        cgroup: CgroupId(77),
    });
    assert_eq!(kinds, [path, moved]);
}
