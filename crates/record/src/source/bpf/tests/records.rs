//! Unit tests of `records`.

use super::*;

#[test]
fn every_cpu_has_its_events_and_its_losses() {
    let mut batch = Records::default();
    let slot = wire::Slot { when: 5, what: 6 };
    let lost = wire::Lost {
        since: 1,
        until: 2,
        count: 3,
    };
    batch.push(Record::Sched(2, slot));
    batch.push(Record::Lost(1, lost));
    batch.push(Record::Sched(2, slot));
    assert_eq!(
        batch.sched.iter().map(Vec::len).collect::<Vec<_>>(),
        [0, 0, 2]
    );
    assert_eq!(batch.lost, [(CpuId(1), lost)]);
    assert_eq!(batch.bytes, 32);
}

#[test]
fn a_loss_that_is_reported_twice_counts_once() {
    let lost = |count: u64| wire::LifeLost {
        head: wire::Head {
            time: 1,
            kind: wire::Kind::LIFE_LOST.0,
            cpu: 1,
        },
        until: 2,
        count,
    };
    let mut sink = Sink::default();
    for total in [3, 3, 10] {
        sink.receive(Record::Life(lost(total).as_bytes()));
    }
    let batch = sink.take();
    let counts: Vec<_> = batch
        .life_records()
        .map(|record| wire::LifeLost::read_from_bytes(record).unwrap().count)
        .collect();
    assert_eq!(counts, [3, 7]);
    assert_eq!(sink.lost_life(1, 12), 2);
    assert_eq!(sink.lost_life(0, 0), 0);
}

#[test]
fn lifecycle_records_come_back_as_they_went_in() {
    let mut batch = Records::default();
    batch.push(Record::Life(b"first"));
    batch.push(Record::Life(b""));
    batch.push(Record::Life(b"third"));
    let records: Vec<_> = batch.life_records().collect();
    assert_eq!(records, [&b"first"[..], b"", b"third"]);
}

/// Tests two CPUs that execute programs at the same time: the record of each directory is put right before the
/// exec record of the same CPU.
#[test]
fn the_directories_of_two_cpus_stay_apart() {
    let head = |cpu: u32, kind: wire::Kind| wire::Head {
        time: 5,
        kind: kind.0,
        cpu,
    };
    let directory = |cpu: u32| wire::Directory {
        head: head(cpu, wire::Kind::LIFE_DIRECTORY),
        tid: 70 + cpu,
        length: 0,
        names: [0; wire::DIRECTORY_AREA + wire::NAME_AREA],
    };
    let mut sink = Sink::default();
    for cpu in [0, 1] {
        sink.receive(Record::Life(directory(cpu).as_bytes()));
    }
    for cpu in [1, 0] {
        let exec = head(cpu, wire::Kind::LIFE_EXEC);
        sink.receive(Record::Life(exec.as_bytes()));
    }
    let batch = sink.take();
    let tids = batch.life_records().map(|record| {
        let directory = convert::directory(record);
        directory.map(|(tid, _)| tid.0)
    });
    assert_eq!(tids.collect::<Vec<_>>(), [Some(71), None, Some(70), None]);
}
