//! Lifecycle events that stand twice or are missing without a word.

use tr_format::event::{LifeKind, Tid};

use crate::draw::Draw;
use crate::inject::Injected;
use crate::recording::Recording;

/// A kind of lifecycle event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LifeSort {
    /// Forks.
    Fork,
    /// Execs.
    Exec,
    /// Exits.
    Exit,
    /// Last switch-outs' figures.
    Final,
    /// What was alive at the start.
    Snapshot,
    /// Any of them.
    Any,
}

impl LifeSort {
    /// The task, when the event is of this kind.
    fn task(self, kind: &LifeKind) -> Option<Tid> {
        let (sort, tid) = match kind {
            LifeKind::Fork(fork) => (LifeSort::Fork, fork.tid),
            LifeKind::Exec(exec) => (LifeSort::Exec, exec.tid),
            LifeKind::Exit(exit) => (LifeSort::Exit, exit.tid),
            LifeKind::Final(last) => (LifeSort::Final, last.tid),
            LifeKind::Snapshot(snapshot) => (LifeSort::Snapshot, snapshot.tid),
            _ => return None,
        };
        (self == sort || self == LifeSort::Any).then_some(tid)
    }
}

/// Some lifecycle events are recorded twice.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Duplicates {
    /// How many of 1000 events.
    pub per_mille: u16,
    /// Of which kind.
    pub sort: LifeSort,
}

impl Duplicates {
    pub(crate) fn apply(&self, recording: &mut Recording, draw: &mut Draw) -> Vec<Injected> {
        let mut done = Vec::new();
        for ring in [&mut recording.life, &mut recording.recorder] {
            let mut with = Vec::with_capacity(ring.len());
            for written in ring.drain(..) {
                let task = self.sort.task(&written.event.kind);
                if let Some(tid) = task.filter(|_| draw.chance(self.per_mille)) {
                    with.push(written.clone());
                    done.push(Injected::Duplicated(tid));
                }
                with.push(written);
            }
            *ring = with;
        }
        done
    }
}

/// Some lifecycle events are not recorded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Missing {
    /// How many of 1000 events.
    pub per_mille: u16,
    /// Of which kind.
    pub sort: LifeSort,
}

impl Missing {
    pub(crate) fn apply(&self, recording: &mut Recording, draw: &mut Draw) -> Vec<Injected> {
        let mut done = Vec::new();
        for ring in [&mut recording.life, &mut recording.recorder] {
            ring.retain(|written| {
                let task = self.sort.task(&written.event.kind);
                match task.filter(|_| draw.chance(self.per_mille)) {
                    Some(tid) => {
                        done.push(Injected::Missing(tid));
                        false
                    }
                    None => true,
                }
            });
        }
        done
    }
}
