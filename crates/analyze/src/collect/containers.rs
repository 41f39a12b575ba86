//! Collects from the events which processes belong to container runtimes, and the ids, names and images of their
//! containers.

use std::collections::HashMap;
use std::sync::Arc;

use tr_format::container::Container;
use tr_format::event::Tgid;

use crate::ids::ProcIx;

/// The largest number of processes of container runtimes that an analysis keeps.
const MOST_PROCESSES: usize = 1 << 16;

#[derive(Clone, Debug)]
pub(crate) struct Runtime {
    pub process: ProcIx,
    pub container: Container,
}

#[derive(Debug, Default)]
pub(crate) struct Containers {
    /// The processes of container runtimes that are recorded though they are not descendants of recorded
    /// processes. They are kept here until their snapshots come.
    adopted: HashMap<Tgid, Box<Container>>,
    /// The recorded processes of container runtimes, in the order in which they became known.
    pub runtimes: Vec<Runtime>,
    /// The number of processes of container runtimes that are not recorded, because it is not known whether a recorded
    /// process or another client started their containers.
    pub not_recorded: u64,
}

impl Containers {
    /// Notes that a process of a container runtime is recorded from now on. The snapshot of this process comes next.
    pub fn adopt(&mut self, container: &Container) {
        if self.adopted.len() < MOST_PROCESSES {
            self.adopted
                .insert(container.tgid, Box::new(container.clone()));
        }
    }

    /// Notes that the recorder's snapshot of a process that already existed has come. Returns whether
    /// [`Containers::adopt`] has announced the process.
    pub fn begin(&mut self, pid: Tgid, process: ProcIx) -> bool {
        let adopted = self.adopted.remove(&pid);
        if let Some(container) = &adopted {
            self.take(process, container);
        }
        adopted.is_some()
    }

    /// Stores for how many ns a quota has throttled the container with this id so far.
    pub fn throttle(&mut self, id: &[u8], ns: u64) {
        let mut all = self
            .runtimes
            .iter_mut()
            .map(|runtime| &mut runtime.container);
        if let Some(first) = all.find(|container| *container.id == *id) {
            first.throttled = first.throttled.max(Some(ns));
        }
    }

    /// Stores what an event reports about the container of `process`, a process of a container runtime: the id, the
    /// name and the image. Values that are empty in the event do not replace known ones.
    pub fn take(&mut self, process: ProcIx, container: &Container) {
        let known = |text: &mut Arc<[u8]>, new: &Arc<[u8]>| {
            if !new.is_empty() {
                *text = Arc::clone(new);
            }
        };
        if let Some(last) = self
            .runtimes
            .iter_mut()
            .rfind(|runtime| runtime.process == process)
        {
            known(&mut last.container.id, &container.id);
            known(&mut last.container.name, &container.name);
            known(&mut last.container.image, &container.image);
        } else if self.runtimes.len() < MOST_PROCESSES {
            self.runtimes.push(Runtime {
                process,
                container: container.clone(),
            });
        }
    }
}
