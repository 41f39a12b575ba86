//! The collectors: each takes the events of one subject, and has what the model keeps of them.

pub(crate) mod containers;
pub mod disks;
pub mod dns;
pub mod memory;
pub mod network;
pub mod outside;
pub(crate) mod servers;
pub mod stacks;
pub mod syscalls;
pub mod workers;

use std::collections::BTreeMap;

use tr_format::counters::Counters;
use tr_format::device::Block;
use tr_format::event::{CgroupId, Ktime, LifeKind, Mark, Tid};

use crate::ids::TaskIx;

/// The most marks that are kept. A recorder writes fewer.
const MARKS: usize = 1 << 20;

/// The most intervals of requests to disks that are kept, with a KiB for each.
const BLOCKS: usize = 1 << 16;

/// The most samples of counters that are kept, with some 300 bytes for each: those of three days.
const SAMPLES: usize = 1 << 18;

/// The collectors of a trace. None bears on a task's state.
#[derive(Default)]
pub(crate) struct Collectors {
    pub cgroups: BTreeMap<CgroupId, Box<[u8]>>,
    pub marks: Vec<(Ktime, Mark)>,
    pub counters: Vec<(Ktime, Counters)>,
    pub blocks: Vec<(Ktime, Box<Block>)>,
    /// Facts that the recording lacks from these times on.
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
}

impl Collectors {
    /// Takes a sample of the machine's counters.
    pub fn sample(&mut self, time: Ktime, counters: &Counters) {
        if self.counters.len() < SAMPLES {
            self.counters.push((time, counters.clone()));
        }
    }

    /// Takes a lifecycle event, or one of the recorder's; `task` finds a task by its tid.
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
