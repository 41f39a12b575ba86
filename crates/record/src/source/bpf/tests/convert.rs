//! Unit tests of `convert`.

use zerocopy::IntoBytes;

use super::*;

const COMM: &[u8; 16] = b"sh\0\0\0\0\0\0\0\0\0\0\0\0\0\0";

/// Makes a record of this kind, at time 7 on CPU 3, from the words after its head and the bytes `tail`.
fn record(kind: wire::Kind, words: &[u32], tail: &[u8]) -> Vec<u8> {
    let head = [7, 0, kind.0, 3];
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

/// Converts a scheduling event from task 10 to task 20.
fn scheduling(kind: wire::SchedKind, flags: u32, state: u32) -> Option<SchedKind> {
    let (time, from, to, timeout) = (5, 10, 20, 1);
    let (flags, state, reason) = (flags as u8, state as u16, wire::Reason::REASON_PIPE_READ);
    #[rustfmt::skip]
    let stored = sched(&wire::Sched { time, from, to, state, reason, timeout, kind, flags })?;
    assert_eq!(stored.time, Ktime(5));
    Some(stored.kind)
}

#[test]
fn a_switch_keeps_state_and_flags() {
    for (flag, preempt, iowait) in [
        (wire::SchedFlag::SCHED_PREEMPT, true, false),
        (wire::SchedFlag::SCHED_IOWAIT, false, true),
    ] {
        let want = SchedKind::Switch(Switch {
            prev: Tid(10),
            next: Tid(20),
            prev_state: 2,
            preempt,
            iowait,
            reason: Reason::PipeRead,
            timeout: Timeout::NONE,
        });
        let switch = scheduling(wire::SchedKind::SCHED_SWITCH, flag.0, 2);
        assert_eq!(switch, Some(want));
    }
}

/// Tests that the reasons for waits have the same numbers in events.h as in the trace.
#[test]
fn the_programs_reasons_are_the_traces() {
    let header = include_str!("../../../../../bpf/src/bpf/events.h");
    for reason in Reason::ALL {
        let name = reason.name().to_uppercase();
        let line = format!("\tREASON_{name} = {},\n", reason as u8);
        assert!(header.contains(&line), "{line}");
    }
}

#[test]
fn wakings_differ_by_kind_and_flags() {
    let want = |context, new, vfork| {
        SchedKind::Waking(Waking {
            waker: Tid(10),
            wakee: Tid(20),
            context,
            new,
            vfork,
        })
    };
    for (state, context) in [
        (wire::WakingContext::CONTEXT_TASK, Context::Task),
        (wire::WakingContext::CONTEXT_HARDIRQ, Context::HardIrq),
        (wire::WakingContext::CONTEXT_SOFTIRQ, Context::SoftIrq),
        (wire::WakingContext::CONTEXT_SEND, Context::SendSoftIrq),
    ] {
        let waking = scheduling(wire::SchedKind::SCHED_WAKING, 0, state.0);
        assert_eq!(waking, Some(want(context, false, false)));
    }
    let vfork = wire::SchedFlag::SCHED_VFORK.0;
    let new = scheduling(wire::SchedKind::SCHED_WAKEUP_NEW, vfork, 0);
    assert_eq!(new, Some(want(Context::Task, true, true)));
    assert_eq!(scheduling(wire::SchedKind::SCHED_LOST, 0, 0), None);
}

#[test]
fn a_fork_keeps_parent_and_child() {
    let words = [1, 2, 3, 4, 50, 0, 60, 0, 7, 0];
    let record = record(wire::Kind::LIFE_FORK, &words, COMM);
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
    exec_in(12, argv_len, unknown)
}

/// Makes the record of an exec by a task whose root directory is the root of the mount with the id `root_mount`.
fn exec_in(root_mount: i32, argv_len: u32, unknown: u32) -> Vec<u8> {
    let runner = [10, 11, root_mount.cast_unsigned(), 0];
    let words = [9, 9, 8, 5, 8, argv_len, 6, 0, 60, 0, unknown, 0, 3, 0];
    let words = [&words[..], &runner].concat();
    let tail = [COMM, &b"/bin\0___cc\0-c\0___"[..]].concat();
    record(wire::Kind::LIFE_EXEC, &words, &tail)
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
    assert_eq!(whole.max_rss, Some(3 * 4096));
    assert!(exec(4, 0).argv.truncated());
    assert_eq!(exec(0, 1).argv.full_len, None);
    // The record claims to have more bytes of arguments than it has.
    assert!(life(&exec_record(100, 0), 4096).is_empty());
}

#[test]
fn an_exec_has_the_rights_and_the_root_of_its_task() {
    let want = |root_mount| Runner {
        fsuid: 10,
        fsgid: 11,
        root_mount,
    };
    assert_eq!(runner(&exec_in(12, 6, 0)), Some(want(Some(12))));
    assert_eq!(runner(&exec_in(-1, 6, 0)), Some(want(None)));
}

#[test]
fn an_exit_counts_memory_in_bytes() {
    let values = (1..=15).flat_map(|value| [value, 0]);
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
        // The kernel has not counted the bytes, which is not the same as 0 bytes.
        read_bytes: None,
        write_bytes: None,
        program_rss: Some(11 * 4096),
        // The record has the delays 12, 13 and 14, and then a word whose bits say which of the delays are known. In
        // this word, 15, all bits are set.
        delays: Delays {
            run: Some(12),
            block: Some(13),
            swap: Some(14),
        },
    };
    let exit = one(&record(wire::Kind::LIFE_EXIT, &words, b""));
    assert_eq!(exit, LifeKind::Exit(want));
}

#[test]
fn final_rename_and_loss() {
    let words = [9, 0, 1, 0, 2, 0, 3, 0, 4, 0, 5, 0, 6, 0, 1, 0];
    let last = one(&record(wire::Kind::LIFE_FINAL, &words, b""));
    let want = Final {
        tid: Tid(9),
        sum_exec_runtime: 1,
        nvcsw: 2,
        nivcsw: 3,
        delays: Delays {
            run: Some(4),
            ..Delays::default()
        },
    };
    assert_eq!(last, LifeKind::Final(want));
    let rename = one(&record(wire::Kind::LIFE_RENAME, &[9, 8], COMM));
    let want = Rename {
        tid: Tid(9),
        tgid: Tgid(8),
        comm: Comm::new(b"sh"),
    };
    assert_eq!(rename, LifeKind::Rename(want));
    let lost = life(&record(wire::Kind::LIFE_LOST, &[70, 0, 4, 0], b""), 4096);
    assert_eq!(lost, [buffer_full(Stream::Lifecycle, 7, 70, 4)]);
}

#[test]
fn a_move_has_the_path_first() {
    let mut path = [0u8; 1024];
    path[..3].copy_from_slice(b"/a\0");
    let events = life(
        &record(wire::Kind::LIFE_CGROUP_MOVE, &[9, 8, 77, 0, 3, 0], &path),
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

#[test]
fn a_directory_is_put_together_from_its_names() {
    let record = |length: i32, names: &[u8]| {
        let mut directory = wire::Directory {
            head: wire::Head {
                time: 5,
                kind: wire::Kind::LIFE_DIRECTORY.0,
                cpu: 0,
            },
            tid: 7,
            length,
            names: [b'?'; wire::DIRECTORY_AREA + wire::NAME_AREA],
        };
        directory.names[..names.len()].copy_from_slice(names);
        directory.as_bytes().to_vec()
    };
    let cases: [(i32, &[u8], &[u8]); 3] = [
        (14, b"src\0project\0u\0", b"/u/project/src"),
        (0, b"", b"/"),
        // The path of a directory that is too deep for the record is empty.
        (-1, b"a\0", b""),
    ];
    for (length, names, path) in cases {
        let whole = record(length, names);
        let used = used_part_of_directory(&whole).expect("a directory");
        assert_eq!(used.len(), 24 + usize::try_from(length).unwrap_or(0));
        for bytes in [used, &whole[..]] {
            let (tid, found) = directory(bytes).expect("a directory");
            assert_eq!((tid, &*found), (Tid(7), path));
        }
    }
}
