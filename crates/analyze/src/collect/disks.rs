//! Collects the disks that threads waited for, and the files that they waited for in fsync.

use std::collections::BTreeMap;
use std::sync::Arc;

use tr_format::device::Device;
use tr_format::event::{Ktime, LifeKind, Stream, Tid};

use crate::ids::{TaskIx, ThreadIx};

/// A disk that a thread waited for.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Disk {
    pub device: Device,
    /// The name of the disk; empty if it is not known.
    pub name: Arc<[u8]>,
}

/// For each thread, the disk that it waited for in its waits for block I/O, and the file that it waited for in fsync
/// and related calls. The disk or file of a wait is the last one that was named for the thread when the wait began.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct WaitedDisks {
    disks: Changes<Disk>,
    files: Changes<Arc<[u8]>>,
    /// The times in which it is not known what threads waited for, because events are lost or a limit of the
    /// analysis was exceeded.
    unknown: Vec<(Ktime, Ktime)>,
}

/// For each thread, a list of changes in the order of time: the time of each change, and the disk or file that the
/// thread waits for from then on (`None` if it is not known).
type Changes<T> = BTreeMap<ThreadIx, Vec<(Ktime, Option<T>)>>;

fn at<T>(changes: &Changes<T>, thread: ThreadIx, start: Ktime) -> Option<&T> {
    let changes = changes.get(&thread)?;
    let after = changes.partition_point(|(time, _)| *time <= start);
    let (_, of) = changes.get(after.checked_sub(1)?)?;
    of.as_ref()
}

impl WaitedDisks {
    /// The disk that a thread waited for in its wait for block I/O that began at `start`, if it is known.
    pub fn of(&self, thread: ThreadIx, start: Ktime) -> Option<&Disk> {
        at(&self.disks, thread, start).filter(|_| self.is_known(start))
    }

    /// The file that a thread waited for in its wait in fsync or a related call that began at `start`, if it
    /// is known: the last component of its path.
    pub fn file(&self, thread: ThreadIx, start: Ktime) -> Option<&[u8]> {
        let file = at(&self.files, thread, start)?;
        Some(&**file).filter(|_| self.is_known(start))
    }

    fn is_known(&self, start: Ktime) -> bool {
        let lost = |(since, until): &(Ktime, Ktime)| (*since..=*until).contains(&start);
        !self.unknown.iter().any(lost)
    }
}

#[derive(Debug, Default)]
pub(crate) struct Disks {
    disks: TaskChanges<Disk>,
    files: TaskChanges<Arc<[u8]>>,
    unknown: Vec<(Ktime, Ktime)>,
}

/// For all tasks, in the order of time: the time of an event, its task, and the disk or file that the task waits
/// for from then on.
type TaskChanges<T> = Vec<(Ktime, TaskIx, Option<T>)>;

fn by_thread<T>(all: TaskChanges<T>, thread: impl Fn(TaskIx) -> Option<ThreadIx>) -> Changes<T> {
    let mut changes = Changes::new();
    for (time, task, of) in all {
        if let Some(thread) = thread(task) {
            changes.entry(thread).or_default().push((time, of));
        }
    }
    changes
}

impl Disks {
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
            // When a thread takes over the id of its process in an exec, the BPF programs forget which disk and file
            // the thread last waited for. So both are unknown from here on.
            LifeKind::Exec(exec) if exec.old_tid != exec.tid => exec.tid,
            LifeKind::Lost(lost) if lost.stream == Stream::Lifecycle => {
                return self.unknown.push((time, lost.until));
            }
            _ => return,
        };
        let Some(task) = task(tid) else {
            return;
        };
        if self.disks.len() + self.files.len() >= Disks::MOST {
            if self
                .unknown
                .last()
                .is_none_or(|span| span.1 != Ktime(u64::MAX))
            {
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
                self.disks.push((time, task, disk));
            }
            LifeKind::SyncFile(file) => {
                let name = Some(&file.name).filter(|name| !name.is_empty());
                self.files.push((time, task, name.cloned()));
            }
            _ => {
                self.disks.push((time, task, None));
                self.files.push((time, task, None));
            }
        }
    }

    /// The disks and files that the threads of the model waited for.
    pub(crate) fn finish(self, thread: impl Fn(TaskIx) -> Option<ThreadIx>) -> WaitedDisks {
        WaitedDisks {
            disks: by_thread(self.disks, &thread),
            files: by_thread(self.files, &thread),
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
    fn a_wait_is_for_the_disk_that_was_named_before() {
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
            cause: LossCause::BufferFull,
        });
        disks.take(Ktime(400), &lost, |_| None);
        let thread = ThreadIx(1);
        let all = disks.finish(|_| Some(thread));
        let minor = |time| all.of(thread, Ktime(time)).map(|disk| disk.device.minor);
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
