//! Repeats lifecycle events (fork, exec, exit) of a simulated recording, or leaves them out without
//! a loss record.

use tr_format::event::{LifeKind, Tid};

use super::injected::Injected;
use crate::draw::Draw;
use crate::recording::Recording;

/// The kind of lifecycle events that a fault injector repeats or leaves out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LifeSort {
    /// The fault injector changes only the events of forks.
    Fork,
    /// The fault injector changes only the events of execs.
    Exec,
    /// The fault injector changes only the events of tasks that begin to exit.
    Exit,
    /// The fault injector changes only the events with the kernel's final figures for dead tasks.
    Final,
    /// The fault injector changes only the snapshots of tasks that lived before tracing.
    Snapshot,
    /// The fault injector changes lifecycle events of all kinds: forks, execs, exits, the kernel's final figures for
    /// dead tasks, and snapshots of living tasks.
    Any,
}

impl LifeSort {
    /// The task of a lifecycle event, if the event is of the kind that the injector changes.
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

/// Records some lifecycle events of a simulated recording twice.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Duplicates {
    /// The share of lifecycle events of the given kind that the fault injector records twice, in
    /// 1/1000.
    pub per_mille: u16,
    /// The kind of lifecycle events that the fault injector records twice.
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

/// Leaves some lifecycle events out of a simulated recording, without a loss record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Missing {
    /// The share of lifecycle events of the given kind that the fault injector leaves out, in
    /// 1/1000.
    pub per_mille: u16,
    /// The kind of lifecycle events that the fault injector leaves out.
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
