//! The disks that threads waited for.

use std::collections::HashMap;
use std::sync::Arc;

use tr_format::device::Device;
use tr_format::event::{Ktime, LifeKind, Stream, Tid};

use crate::model::ThreadIx;
use crate::tracker::TaskIx;

/// A disk that a thread waited for.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Disk {
    /// Its number.
    pub device: Device,
    /// Its name; empty if it is not known.
    pub name: Arc<[u8]>,
}

/// The disk of each thread's waits for block I/O: that to which the thread had sent a request
/// since its wait before.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct WaitedDisks {
    disks: Vec<Disk>,
    /// The times from which on a thread waits for another disk, in order; `None`: it is not known.
    changes: HashMap<ThreadIx, Vec<(Ktime, Option<usize>)>>,
    /// Times without facts: lost events, and what is beyond the analysis's limit.
    unknown: Vec<(Ktime, Ktime)>,
}

impl WaitedDisks {
    /// The disk of a thread's wait for block I/O that began at `start`, if it is known.
    pub fn of(&self, thread: ThreadIx, start: Ktime) -> Option<&Disk> {
        let lost = |(since, until): &(Ktime, Ktime)| (*since..=*until).contains(&start);
        if self.unknown.iter().any(lost) {
            return None;
        }
        let changes = self.changes.get(&thread)?;
        let after = changes.partition_point(|(time, _)| *time <= start);
        let (_, disk) = changes.get(after.checked_sub(1)?)?;
        self.disks.get((*disk)?)
    }
}

/// Collects the changes.
#[derive(Debug, Default)]
pub(crate) struct Disks {
    disks: HashMap<Disk, usize>,
    changes: Vec<(Ktime, TaskIx, Option<usize>)>,
    unknown: Vec<(Ktime, Ktime)>,
}

impl Disks {
    /// The most changes that an analysis keeps.
    const MOST: usize = 1 << 20;

    /// Takes an event.
    pub(crate) fn take(
        &mut self,
        time: Ktime,
        kind: &LifeKind,
        task: impl FnOnce(Tid) -> Option<TaskIx>,
    ) {
        let (tid, disk) = match kind {
            LifeKind::DiskWait(wait) => {
                let name = &wait.name;
                let disk = wait.device.map(|device| Disk {
                    device,
                    name: Arc::clone(name),
                });
                (wait.tid, disk)
            }
            // The programs begin anew with a thread that takes over the process's id.
            LifeKind::Exec(exec) if exec.old_tid != exec.tid => (exec.tid, None),
            LifeKind::Lost(lost) if lost.stream == Stream::Lifecycle => {
                return self.unknown.push((time, lost.until));
            }
            _ => return,
        };
        let Some(task) = task(tid) else {
            return;
        };
        if self.changes.len() >= Disks::MOST {
            if self.changes.len() == Disks::MOST {
                self.unknown.push((time, Ktime(u64::MAX)));
                self.changes.push((time, task, None));
            }
            return;
        }
        let next = self.disks.len();
        let disk = disk.map(|disk| *self.disks.entry(disk).or_insert(next));
        self.changes.push((time, task, disk));
    }

    /// Those of the model's threads.
    pub(crate) fn finish(self, thread: impl Fn(TaskIx) -> Option<ThreadIx>) -> WaitedDisks {
        let mut disks: Vec<_> = self.disks.into_iter().collect();
        disks.sort_unstable_by_key(|(_, at)| *at);
        let mut changes: HashMap<ThreadIx, Vec<_>> = HashMap::new();
        for (time, task, disk) in self.changes {
            if let Some(thread) = thread(task) {
                changes.entry(thread).or_default().push((time, disk));
            }
        }
        WaitedDisks {
            disks: disks.into_iter().map(|(disk, _)| disk).collect(),
            changes,
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
