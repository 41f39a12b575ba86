//! Lifecycle events that are repeated, or missing without a loss record.

use tr_format::event::{LifeKind, Tid};

use super::injected::Injected;
use crate::draw::Draw;
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
    /// Final accounts.
    Final,
    /// Snapshots.
    Snapshot,
    /// Any of them.
    Any,
}

impl LifeSort {
    /// The event's task, if the event is of this kind.
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

/// Records some lifecycle events twice.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Duplicates {
    /// The number of events of 1000 that are affected.
    pub per_mille: u16,
    /// The kind of these events.
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

/// Leaves out some lifecycle events.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Missing {
    /// The number of events of 1000 that are affected.
    pub per_mille: u16,
    /// The kind of these events.
    pub sort: LifeSort,
}

impl Missing {
    pub(crate) fn apply(&self, recording: &mut Recording, draw: &mut Draw) -> Vec<Injected> {
        let mut done = Vec::new();
        for ring in [&mut recording.life, &mut recording.recorder] {
            ring.retain(|written| {
                let task = self.sort.task(&written.event.kind);
                let gone = task.filter(|_| draw.chance(self.per_mille));
                done.extend(gone.map(Injected::Missing));
                gone.is_none()
            });
        }
        done
    }
}
