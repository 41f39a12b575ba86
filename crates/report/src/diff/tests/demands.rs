//! Unit tests of the comparison of disks, network and memory.

use std::slice::from_ref;

use super::*;
use crate::diff::machine::tests::{diff, run};

const SECOND: u64 = 1_000_000_000;
const MIB: u64 = 1 << 20;

/// A run of so many seconds: wall time, CPU time; with these demands.
fn with(wall: u64, on_cpu: u64, demands: &[(Demand, u64)]) -> Run {
    let mut run = run([wall, on_cpu, 10, 5]);
    run.demands = demands.iter().copied().collect();
    run
}

#[test]
fn a_slow_disk_explains_a_slower_build_of_equal_work() {
    let disk = |wait: u64, read: u64| {
        [
            (Demand::DiskPath, wait * SECOND),
            (Demand::Read, read * MIB),
            (Demand::Written, 50 * MIB),
        ]
    };
    let base = || with(100, 150, &disk(5, 500));
    let said = |new| diff(base(), new).explanation();
    let text = said(with(130, 151, &disk(30, 501))).unwrap();
    assert!(
        text.starts_with("The runner's disk, not your change"),
        "{text}"
    );
    assert!(
        text.ends_with("waits for disks on the critical path: +25.00 s"),
        "{text}"
    );
    // It read more: a cold page cache, or more input.
    let text = said(with(130, 150, &disk(30, 900))).unwrap();
    assert!(text.contains("not the CPU work"), "{text}");
    assert!(text.ends_with("+400 MiB read from disks"), "{text}");
    // More work of its own; too short a wait; the other direction; equally fast.
    assert_eq!(said(with(130, 180, &disk(30, 500))), None);
    assert_eq!(said(with(130, 150, &disk(15, 500))), None);
    assert_eq!(said(with(70, 150, &disk(30, 500))), None);
    assert_eq!(said(with(101, 150, &disk(30, 500))), None);
}

#[test]
fn a_slow_network_explains_a_slower_build_of_equal_work() {
    let network = |wait: u64, received: u64| {
        [
            (Demand::DiskPath, SECOND),
            (Demand::NetworkPath, wait * SECOND),
            (Demand::Received, received * MIB),
            (Demand::Sent, 1000),
        ]
    };
    let text = diff(
        with(100, 50, &network(10, 20)),
        with(150, 50, &network(55, 20)),
    );
    let text = text.explanation().unwrap();
    assert!(text.starts_with("The network, not your change"), "{text}");
    assert!(text.ends_with("on the critical path: +45.00 s"), "{text}");
}

#[test]
fn demands_that_differ_are_found() {
    let base = with(
        100,
        150,
        &[
            (Demand::Read, 500 * MIB),
            (Demand::Written, 500 * MIB),
            (Demand::Connections, 100),
            (Demand::OomKills, 0),
            (Demand::DiskWait, 20_000),
            (Demand::Sent, 100),
        ],
    );
    let new = with(
        100,
        150,
        &[
            (Demand::Read, 510 * MIB),
            (Demand::Written, 400 * MIB),
            (Demand::Connections, 109),
            (Demand::OomKills, 1),
            (Demand::DiskWait, 40_000),
            (Demand::Resident, MIB),
        ],
    );
    let found = |least| {
        let all = changes(from_ref(&base), from_ref(&new), least);
        all.iter()
            .map(|(demand, _)| demand.name())
            .collect::<Vec<_>>()
    };
    assert_eq!(found(20_001), ["disk-written", "oom-kills"]);
    assert_eq!(found(20_000), ["disk-wait", "disk-written", "oom-kills"]);
    let all = diff(base.clone(), new.clone());
    for text in [all.markdown(), all.html()] {
        assert!(text.contains("written to disks"), "{text}");
        assert!(text.contains("−100 MiB"), "{text}");
    }
    let json: serde_json::Value = serde_json::from_str(&all.json().unwrap()).unwrap();
    assert_eq!(
        json["demands"]["disk_written"]["difference"],
        -100 * (1 << 20)
    );
}
