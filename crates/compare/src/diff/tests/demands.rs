//! Unit tests of the comparison of disks, network and memory.

use std::slice::from_ref;

use super::*;
use crate::diff::machine::tests::{diff, run};
use crate::diff::{html, json, markdown, Run};

const MIB: u64 = 1 << 20;

/// A run with this wall time and CPU time in seconds, and with these demands: its use of disks, network and memory.
fn with(wall: u64, on_cpu: u64, demands: &[(Demand, u64)]) -> Run {
    let mut run = run([wall, on_cpu, 10, 5]);
    run.demands = demands.iter().copied().collect();
    run
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
        let sides = Sides {
            base: from_ref(&base),
            new: from_ref(&new),
        };
        let all = changes(sides, least);
        all.iter()
            .map(|(demand, _)| demand.name())
            .collect::<Vec<_>>()
    };
    assert_eq!(found(20_001), ["disk-written", "oom-kills"]);
    assert_eq!(found(20_000), ["disk-wait", "disk-written", "oom-kills"]);
    let all = diff(base.clone(), new.clone());
    for text in [markdown::render(&all), html::render(&all)] {
        assert!(text.contains("written to disks"), "{text}");
        assert!(text.contains("−100 MiB"), "{text}");
    }
    let json: serde_json::Value = serde_json::from_str(&json::render(&all).unwrap()).unwrap();
    assert_eq!(
        json["demands"]["disk_written"]["difference"],
        -100 * (1 << 20)
    );
}
