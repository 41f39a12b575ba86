//! Repeats lifecycle events, or leaves them out without a loss record.

use tr_format::event::{LifeKind, Tid};

use super::injected::Injected;
use crate::draw::Draw;
use crate::recording::Recording;

/// The kind of lifecycle events that an injector changes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LifeSort {
    /// The events of forks.
    Fork,
    /// The events of execs.
    Exec,
    /// The events of tasks that begin to exit.
    Exit,
    /// The events with the final accounts of tasks.
    Final,
    /// The snapshots of tasks.
    Snapshot,
    /// The events of all these kinds.
    Any,
}

impl LifeSort {
    /// The task that an event is about, if the event is of this kind.
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
    /// How many of 1000 events of the kind are recorded twice.
    pub per_mille: u16,
    /// The kind of events that are recorded twice.
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
    /// How many of 1000 events of the kind are left out.
    pub per_mille: u16,
    /// The kind of events that are left out.
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
