//! Unit tests of `others`.

use tr_format::event::Tid;

use super::*;

fn record(cpu: u32, since: u64, until: u64, shares: &[(u32, &[u8], u64)]) -> wire::Others {
    let none = wire::Share {
        ns: 0,
        tgid: 0,
        pad: 0,
        comm: [0; 16],
    };
    let mut record = wire::Others {
        head: wire::Head {
            time: until,
            kind: wire::Kind::LIFE_OTHERS.0,
            cpu,
        },
        since,
        rest: 0,
        switches: 3,
        shares: [none; wire::OTHERS_SHARES],
    };
    for (share, (tgid, comm, ns)) in record.shares.iter_mut().zip(shares) {
        (share.tgid, share.ns) = (*tgid, *ns);
        share.comm[..comm.len()].copy_from_slice(comm);
    }
    record
}

/// An event in the form in which the tests compare it: the time, the CPU, the µs that lie between the waits that the
/// event sums up, the µs of tasks without names, and the name and the µs of each share of the CPU.
type Shown = (u64, Option<u16>, u64, u64, Vec<(String, u64)>);

fn joined(records: &[wire::Others]) -> Vec<Shown> {
    let mut joined = Joined::default();
    let mut events: Vec<_> = records
        .iter()
        .filter_map(|record| joined.take(record))
        .collect();
    events.extend(joined.finish());
    let shown = |event: LifeEvent| {
        let LifeKind::Others(others) = event.kind else {
            panic!("another kind")
        };
        let shares = others.shares.iter();
        let shares = shares
            .map(|share| {
                (
                    String::from_utf8_lossy(share.comm.bytes()).into_owned(),
                    share.us,
                )
            })
            .collect();
        let cpu = event.cpu.map(|cpu| cpu.0);
        (event.time.0, cpu, others.between_us, others.rest_us, shares)
    };
    events.into_iter().map(shown).collect()
}

#[test]
fn sums_with_nearly_the_same_shares_are_one_event() {
    let records = [
        record(
            0,
            0,
            4_000_000,
            &[(7, b"cc1", 2_000_000), (8, b"as", 2_000_000)],
        ),
        record(1, 0, 9_000_000, &[(7, b"cc1", 9_000_000)]),
        record(
            0,
            5_000_000,
            7_000_000,
            &[(8, b"as", 1_020_000), (7, b"cc1", 980_000)],
        ),
        // In this wait the unrecorded task ld ran, which did not run in the earlier waits. So this wait begins a new
        // event.
        record(
            0,
            8_000_000,
            9_000_000,
            &[(9, b"ld", 500_000), (7, b"cc1", 500_000)],
        ),
    ];
    let name = |name: &str, us| (name.to_owned(), us);
    let expected = [
        (
            7_000_000,
            Some(0),
            1000,
            0,
            vec![name("cc1", 2980), name("as", 3020)],
        ),
        (
            9_000_000,
            Some(0),
            0,
            0,
            vec![name("ld", 500), name("cc1", 500)],
        ),
        (9_000_000, Some(1), 0, 0, vec![name("cc1", 9000)]),
    ];
    assert_eq!(joined(&records), expected);
}

#[test]
fn the_smallest_shares_are_part_of_the_rest() {
    let shares: [(u32, &[u8], u64); 4] = [
        (1, b"rcu_preempt", 4_000),
        (2, b"cc1", 900_000),
        (3, b"ksoftirqd/0", 4_000),
        (4, b"as", 92_000),
    ];
    // One of the two small shares alone would be below the limit of a 128th of the whole, but both together are above
    // it. As they are equal, both are stored without names.
    let found = joined(&[record(0, 0, 1_000_000, &shares[..])]);
    let small = found[0].4.iter().map(|(_, us)| *us).filter(|us| *us == 4);
    assert_eq!((found[0].3, small.count()), (8, 0));
}

#[test]
fn threads_of_a_process_with_the_same_name_share_an_event() {
    let task = |tid, comm: &[u8], start| Outsider {
        tid: Tid(tid),
        tgid: Tgid(7),
        start_time: Ktime(start),
        comm: Comm::new(comm),
        ..Outsider::default()
    };
    let mut threads = NamedThreads::default();
    let takes = [
        (10, task(7, b"java", 1), false),
        (11, task(8, b"java", 2), true),
        (12, task(9, b"GC", 3), false),
        (13, task(6, b"java", 4), true),
        // This task began at the time 12, so at the time 10 of the first event the tid 5 belonged to another task. So
        // the task is not named by the event at that time.
        (14, task(5, b"java", 12), false),
    ];
    for (time, task, expected) in takes {
        assert_eq!(threads.take(Ktime(time), &task), expected, "{time}");
    }
    let event = LifeEvent {
        time: Ktime(10),
        cpu: None,
        kind: LifeKind::Threads(Box::new(Threads {
            tgid: Tgid(7),
            comm: Comm::new(b"java"),
            tids: vec![Tid(8), Tid(6)],
        })),
    };
    assert_eq!(threads.finish().collect::<Vec<_>>(), [event]);
}
