//! The disks that threads waited for, and the files that they waited for in fsync.

use std::collections::{BTreeMap, HashMap};
use std::hash::Hash;
use std::sync::Arc;

use tr_format::device::Device;
use tr_format::event::{Ktime, LifeKind, Stream, Tid};

use crate::ids::{TaskIx, ThreadIx};

/// A disk that a thread waited for.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Disk {
    pub device: Device,
    /// Its name; empty if it is not known.
    pub name: Arc<[u8]>,
}

/// The disk of each thread's waits for block I/O: that to which the thread had sent a request
/// since its wait before. And the file of its waits in fsync and its relatives.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct WaitedDisks {
    disks: Changes<Disk>,
    files: Changes<Arc<[u8]>>,
    /// Times without facts: lost events, and what is beyond the analysis's limit.
    unknown: Vec<(Ktime, Ktime)>,
}

/// What threads wait for, by time.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Changes<T> {
    all: Vec<T>,
    /// The times from which on a thread waits for another one, in order; `None`: not known.
    of: BTreeMap<ThreadIx, Vec<(Ktime, Option<usize>)>>,
}

impl<T> Default for Changes<T> {
    fn default() -> Changes<T> {
        Changes {
            all: Vec::new(),
            of: BTreeMap::new(),
        }
    }
}

impl<T> Changes<T> {
    fn at(&self, thread: ThreadIx, start: Ktime) -> Option<&T> {
        let changes = self.of.get(&thread)?;
        let after = changes.partition_point(|(time, _)| *time <= start);
        let (_, of) = changes.get(after.checked_sub(1)?)?;
        self.all.get((*of)?)
    }
}

impl WaitedDisks {
    /// The disk of a thread's wait for block I/O that began at `start`, if it is known.
    pub fn of(&self, thread: ThreadIx, start: Ktime) -> Option<&Disk> {
        self.disks
            .at(thread, start)
            .filter(|_| self.is_known(start))
    }

    /// The last component of the path of the file of a thread's wait in fsync or one of its
    /// relatives that began at `start`, if it is known.
    pub fn file(&self, thread: ThreadIx, start: Ktime) -> Option<&[u8]> {
        let file = self.files.at(thread, start)?;
        Some(&**file).filter(|_| self.is_known(start))
    }

    fn is_known(&self, start: Ktime) -> bool {
        let lost = |(since, until): &(Ktime, Ktime)| (*since..=*until).contains(&start);
        !self.unknown.iter().any(lost)
    }
}

#[derive(Debug, Default)]
pub(crate) struct Disks {
    disks: Collected<Disk>,
    files: Collected<Arc<[u8]>>,
    unknown: Vec<(Ktime, Ktime)>,
}

#[derive(Debug)]
struct Collected<T> {
    all: HashMap<T, usize>,
    changes: Vec<(Ktime, TaskIx, Option<usize>)>,
}

impl<T> Default for Collected<T> {
    fn default() -> Collected<T> {
        Collected {
            all: HashMap::new(),
            changes: Vec::new(),
        }
    }
}

impl<T: Hash + Eq> Collected<T> {
    fn push(&mut self, time: Ktime, task: TaskIx, of: Option<T>) {
        let next = self.all.len();
        let of = of.map(|of| *self.all.entry(of).or_insert(next));
        self.changes.push((time, task, of));
    }

    fn finish(self, thread: impl Fn(TaskIx) -> Option<ThreadIx>) -> Changes<T> {
        let mut all: Vec<_> = self.all.into_iter().collect();
        all.sort_unstable_by_key(|(_, at)| *at);
        let mut of: BTreeMap<ThreadIx, Vec<_>> = BTreeMap::new();
        for (time, task, what) in self.changes {
            if let Some(thread) = thread(task) {
                of.entry(thread).or_default().push((time, what));
            }
        }
        Changes {
            all: all.into_iter().map(|(what, _)| what).collect(),
            of,
        }
    }
}

impl Disks {
    /// The most changes that an analysis keeps.
    const MOST: usize = 1 << 20;

    pub(crate) fn take(
        &mut self,
        time: Ktime,
        kind: &LifeKind,
        task: impl FnOnce(Tid) -> Option<TaskIx>,
    ) {
        let tid = match kind {
            LifeKind::DiskWait(wait) => wait.tid,
            LifeKind::SyncFile(file) => file.tid,
            // The programs begin anew with a thread that takes over the process's id.
            LifeKind::Exec(exec) if exec.old_tid != exec.tid => exec.tid,
            LifeKind::Lost(lost) if lost.stream == Stream::Lifecycle => {
                return self.unknown.push((time, lost.until));
            }
            _ => return,
        };
        let Some(task) = task(tid) else {
            return;
        };
        if self.disks.changes.len() + self.files.changes.len() >= Disks::MOST {
            if self.unknown.last().is_none_or(|it| it.1 != Ktime(u64::MAX)) {
                self.unknown.push((time, Ktime(u64::MAX)));
            }
            return;
        }
        match kind {
            LifeKind::DiskWait(wait) => {
                let disk = wait.device.map(|device| Disk {
                    device,
                    name: Arc::clone(&wait.name),
                });
                self.disks.push(time, task, disk);
            }
            LifeKind::SyncFile(file) => {
                let name = Some(&file.name).filter(|name| !name.is_empty());
                self.files.push(time, task, name.cloned());
            }
            _ => {
                self.disks.push(time, task, None);
                self.files.push(time, task, None);
            }
        }
    }

    /// Those of the model's threads.
    pub(crate) fn finish(self, thread: impl Fn(TaskIx) -> Option<ThreadIx>) -> WaitedDisks {
        WaitedDisks {
            disks: self.disks.finish(&thread),
            files: self.files.finish(&thread),
            unknown: self.unknown,
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::arena::Ix;
    use tr_format::device::DiskWait;
    use tr_format::event::{LossCause, Lost, Tgid};

    use super::*;

    #[test]
    fn a_wait_is_for_the_disk_that_was_told_before() {
        let mut disks = Disks::default();
        let device = |minor| Device { major: 7, minor };
        let mut wait = |time, device: Option<Device>| {
            let kind = LifeKind::DiskWait(Box::new(DiskWait {
                tid: Tid(5),
                tgid: Tgid(5),
                device,
                name: (*b"loop").into(),
            }));
            disks.take(Ktime(time), &kind, |_| Some(TaskIx::new(3)));
        };
        wait(100, Some(device(1)));
        wait(200, None);
        wait(300, Some(device(2)));
        let lost = LifeKind::Lost(Lost {
            stream: Stream::Lifecycle,
            count: Some(1),
            until: Ktime(420),
            cause: LossCause::RingFull,
        });
        disks.take(Ktime(400), &lost, |_| None);
        let thread = ThreadIx(1);
        let all = disks.finish(|_| Some(thread));
        let minor = |time| all.of(thread, Ktime(time)).map(|it| it.device.minor);
        assert_eq!(minor(99), None);
        assert_eq!((minor(100), minor(199)), (Some(1), Some(1)));
        assert_eq!(minor(250), None);
        assert_eq!(
            (minor(300), minor(410), minor(421)),
            (Some(2), None, Some(2))
        );
        assert_eq!(all.of(ThreadIx(2), Ktime(150)), None);
    }
}
