//! The collectors of an analysis. Each one takes the events about one subject, such as disks or TCP connections,
//! and keeps from them what becomes a part of the model.

pub(crate) mod containers;
pub mod disks;
pub mod dns;
pub mod memory;
pub mod network;
pub mod outside;
pub(crate) mod servers;
pub mod stacks;
pub mod syscalls;
pub(crate) mod totals;
pub mod workers;

use std::collections::BTreeMap;

use tr_format::counters::Counters;
use tr_format::device::Block;
use tr_format::event::{CgroupId, Ktime, LifeKind, Mark, Tid};

use crate::ids::TaskIx;

/// The largest number of marks, which programs write to the recorder, that an analysis keeps. A recorder
/// writes fewer.
const MARKS: usize = 1 << 20;

/// The largest number of events about requests to disks that are kept. Each takes a KiB.
const BLOCKS: usize = 1 << 16;

/// The largest number of samples of counters that are kept. Each takes about 300 bytes; a recording of
/// three days has this many.
const SAMPLES: usize = 1 << 18;

/// The collectors of a trace. They only gather facts for the model, and never change the states of tasks.
#[derive(Default)]
pub(crate) struct Collectors {
    pub cgroups: BTreeMap<CgroupId, Box<[u8]>>,
    pub marks: Vec<(Ktime, Mark)>,
    pub counters: Vec<(Ktime, Counters)>,
    pub blocks: Vec<(Ktime, Box<Block>)>,
    /// Notes of the recorder which say that certain facts are missing from a time on: the time, and the missing
    /// facts as text.
    pub degraded: Vec<(Ktime, Box<[u8]>)>,
    pub calls: syscalls::Calls,
    pub stacks: stacks::Collected,
    pub connections: network::Connections,
    pub lookups: dns::Lookups,
    pub memory: memory::Memory,
    pub disks: disks::Disks,
    pub containers: containers::Containers,
    pub servers: servers::Servers,
    pub outside: outside::Outside,
    pub workers: workers::Workers<TaskIx>,
    pub parts: totals::Parts,
}

impl Collectors {
    /// Stores a sample of the machine's counters, with the totals of the earlier parts of a rotated recording added.
    pub fn sample(&mut self, time: Ktime, counters: &Counters) {
        if self.counters.len() < SAMPLES {
            let counters = self.parts.continued(time, counters);
            self.counters.push((time, counters));
        }
    }

    /// Gives a lifecycle event or an event of the recorder to the collectors that it concerns. `task` finds a
    /// task by its tid.
    pub fn take(&mut self, time: Ktime, kind: &LifeKind, task: impl Fn(Tid) -> Option<TaskIx>) {
        self.memory.take(time, kind, &task);
        self.disks.take(time, kind, &task);
        self.connections.take(time, kind, &task);
        self.lookups.take(time, kind, &task);
        match kind {
            LifeKind::CgroupPath(path) => {
                self.cgroups.insert(path.id, path.path.clone());
            }
            LifeKind::Outsider(task) => self.outside.name(time, task),
            LifeKind::Threads(threads) => self.outside.threads(time, threads),
            LifeKind::Degraded(degraded) => self.degraded.push((time, degraded.what.clone())),
            LifeKind::Mark(mark) if self.marks.len() < MARKS => {
                let time = Ktime(time.0.saturating_sub(mark.ago));
                self.marks.push((time, mark.clone()));
            }
            LifeKind::Block(block) if self.blocks.len() < BLOCKS => {
                self.blocks.push((time, block.clone()));
            }
            _ => {}
        }
    }
}
