//! Containers: what events tell of their runtimes' processes.

use std::collections::HashMap;
use std::sync::Arc;

use tr_format::container::Container;
use tr_format::event::Tgid;

use crate::ids::ProcIx;

/// The most processes of runtimes that an analysis keeps.
const MOST: usize = 1 << 16;

#[derive(Clone, Debug)]
pub(crate) struct Runtime {
    pub process: ProcIx,
    pub container: Container,
}

#[derive(Debug, Default)]
pub(crate) struct Containers {
    /// Those that are recorded though they are no descendants, before their snapshot.
    adopted: HashMap<Tgid, Box<Container>>,
    /// In order of time.
    pub runtimes: Vec<Runtime>,
    /// The number of processes of runtimes that are not recorded, because it is not known for whom they are.
    pub not_recorded: u64,
}

impl Containers {
    /// A process is recorded from now on; its snapshot comes next.
    pub fn adopt(&mut self, container: &Container) {
        if self.adopted.len() < MOST {
            self.adopted
                .insert(container.tgid, Box::new(container.clone()));
        }
    }

    /// The snapshot of a process; whether it is such a one.
    pub fn begin(&mut self, pid: Tgid, process: ProcIx) -> bool {
        let adopted = self.adopted.remove(&pid);
        if let Some(container) = &adopted {
            self.take(process, container);
        }
        adopted.is_some()
    }

    /// How long a quota has throttled a container so far.
    pub fn throttle(&mut self, id: &[u8], ns: u64) {
        let mut all = self.runtimes.iter_mut().map(|it| &mut it.container);
        if let Some(first) = all.find(|it| *it.id == *id) {
            first.throttled = first.throttled.max(Some(ns));
        }
    }

    /// What is known of a process of a runtime.
    pub fn take(&mut self, process: ProcIx, container: &Container) {
        let known = |text: &mut Arc<[u8]>, new: &Arc<[u8]>| {
            if !new.is_empty() {
                *text = Arc::clone(new);
            }
        };
        if let Some(last) = self.runtimes.iter_mut().rfind(|it| it.process == process) {
            known(&mut last.container.id, &container.id);
            known(&mut last.container.name, &container.name);
            known(&mut last.container.image, &container.image);
        } else if self.runtimes.len() < MOST {
            self.runtimes.push(Runtime {
                process,
                container: container.clone(),
            });
        }
    }
}
