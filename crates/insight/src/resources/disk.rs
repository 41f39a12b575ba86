//! Computes what threads read from disks and wrote to them, and how long they waited for disks.

use std::cmp::Reverse;
use std::collections::{BTreeMap, HashMap};

use tr_analyze::awaited::WaitReason;
use tr_analyze::critical_path::CriticalPath;
use tr_analyze::disks::Disk;
use tr_analyze::kinds::TimeKind;
use tr_analyze::model::{Analysis, ThreadIx};
use tr_analyze::timeline::Stretch;
use tr_format::event::Reason;
use tr_format::meta::Extra;

use crate::recordings::known::{major_faults, processes_of};

/// The bytes that some threads and their processes read from disks and wrote to them, and their waits for disks.
#[derive(Clone, Copy, Debug, Default)]
pub struct DiskSum {
    /// The bytes that the exited threads read from storage and wrote to it; `None` if these figures are known for no
    /// thread.
    pub io: Option<(u64, u64)>,
    /// Whether the bytes read and written are incomplete, because a process had not exited, or its figures are unknown.
    pub part: bool,
    pub major_faults: Option<u64>,
    /// The time in nanoseconds for which the threads waited for block I/O or for files. A wait for a file counts even
    /// if the thread itself did no block I/O.
    pub waited: u64,
    /// The part of the waits for disks and files (`waited`) that was in fsync and related calls, in nanoseconds.
    pub sync: u64,
    /// The part of the waits for disks and files (`waited`) that was in page faults, in nanoseconds.
    pub fault: u64,
    /// The part of the threads' waits for disks in nanoseconds that is on the critical path; `None` if no critical path
    /// is known.
    pub path: Option<u64>,
}

impl DiskSum {
    pub fn is_empty(&self) -> bool {
        let (read, written) = self.io.unwrap_or_default();
        read | written | self.major_faults.unwrap_or(0) | self.waited == 0
    }

    /// The bytes that the processes read from storage and wrote to it; `None` if these figures are unknown or
    /// incomplete for at least one process.
    pub fn io(&self) -> Option<(u64, u64)> {
        self.io.filter(|_| !self.part)
    }

    /// Adds the waits of a thread for disks and files to these sums.
    fn wait(&mut self, analysis: &Analysis, thread: ThreadIx) {
        let Some(timeline) = &analysis.timeline else {
            return;
        };
        for stretch in timeline.of(thread) {
            let awaited = analysis.awaited(thread, &stretch);
            if !matches!(awaited, Some(WaitReason::Disk | WaitReason::File)) {
                continue;
            }
            let ns = stretch.length();
            self.waited = self.waited.saturating_add(ns);
            match stretch.reason {
                Reason::Sync => self.sync = self.sync.saturating_add(ns),
                Reason::PageFault => self.fault = self.fault.saturating_add(ns),
                _ => {}
            }
        }
    }
}

/// For each thread, the time in nanoseconds of the thread's waits for disks, as far as these waits are parts of the
/// critical path.
pub fn path_waits(path: &CriticalPath) -> HashMap<ThreadIx, u64> {
    let mut waits: HashMap<ThreadIx, u64> = HashMap::new();
    for segment in path
        .segments
        .iter()
        .filter(|segment| segment.kind == TimeKind::Disk)
    {
        let sum = waits.entry(segment.thread).or_default();
        *sum = sum.saturating_add(segment.length());
    }
    waits
}

/// Computes the bytes read and written and the waits for disks, as `sum` does, with the waits on the critical path.
pub(crate) fn totals(
    analysis: &Analysis,
    threads: &[ThreadIx],
    path: Option<&CriticalPath>,
) -> DiskSum {
    sum(analysis, threads, path.map(path_waits).as_ref())
}

/// Computes the bytes read and written and the waits for disks of the given threads and their processes.
pub fn sum(
    analysis: &Analysis,
    threads: &[ThreadIx],
    on_path: Option<&HashMap<ThreadIx, u64>>,
) -> DiskSum {
    let mut sum = DiskSum::default();
    let processes = processes_of(analysis, threads);
    let add = |a: (u64, u64), b: (u64, u64)| (a.0.saturating_add(b.0), a.1.saturating_add(b.1));
    // The figures of a process that has not exited do not include the threads that still run. So the sum is incomplete
    // if one of the processes has not exited.
    sum.io = processes
        .iter()
        .filter_map(|process| process.resources.io)
        .reduce(add);
    sum.part = processes
        .iter()
        .any(|process| process.alive || process.resources.io.is_none());
    sum.major_faults = major_faults(&processes);
    for ix in threads {
        sum.wait(analysis, *ix);
    }
    let waits = |path: &HashMap<ThreadIx, u64>| {
        let waits = threads.iter().filter_map(|ix| path.get(ix));
        waits.fold(0, |sum: u64, ns| sum.saturating_add(*ns))
    };
    sum.path = on_path.map(waits);
    sum
}

/// The sum of the waits of some threads for one disk or for one file.
pub struct WaitSum<T> {
    /// The disk or file that the threads waited for; `None` if it is not known.
    pub what: Option<T>,
    pub count: u64,
    /// The sum of the waits for this disk or file, in nanoseconds.
    pub ns: u64,
}

/// Sums up those waits of the given threads for which the closure `what` returns a disk or a file (`Some(None)` if it
/// is unknown), by that disk or file, the longest sum first. `None` if the recording does not show which disks threads
/// waited for.
fn wait_sums<T: Ord>(
    analysis: &Analysis,
    threads: &[ThreadIx],
    what: impl Fn(ThreadIx, &Stretch) -> Option<Option<T>>,
) -> Option<Vec<WaitSum<T>>> {
    let timeline = analysis.timeline.as_ref();
    let timeline = timeline.filter(|_| analysis.meta.has(Extra::DiskWaits))?;
    let mut sums: BTreeMap<Option<T>, (u64, u64)> = BTreeMap::new();
    for thread in threads {
        for stretch in timeline.of(*thread) {
            if let Some(what) = what(*thread, &stretch) {
                let (count, ns) = sums.entry(what).or_default();
                *count = count.saturating_add(1);
                *ns = ns.saturating_add(stretch.length());
            }
        }
    }
    let waited = |(what, (count, ns))| WaitSum { what, count, ns };
    let mut waited: Vec<_> = sums.into_iter().map(waited).collect();
    waited.sort_by_key(|wait| Reverse((wait.ns, wait.count)));
    Some(waited)
}

/// The waits of the given threads for block I/O, summed up by disk, the longest sum first. `None` if the recording does
/// not show which disks threads waited for.
pub fn by_disk<'a>(analysis: &'a Analysis, threads: &[ThreadIx]) -> Option<Vec<WaitSum<&'a Disk>>> {
    wait_sums(analysis, threads, |thread, stretch| {
        let awaited = analysis.awaited(thread, stretch);
        let disk = || analysis.disks.waited.of(thread, stretch.from);
        (awaited == Some(WaitReason::Disk)).then(disk)
    })
}

/// The waits of the given threads in fsync and related calls, summed up by the last component of the file's path, the
/// longest sum first. The list is empty if the recording does not show which disks threads waited for.
pub fn by_file<'a>(analysis: &'a Analysis, threads: &[ThreadIx]) -> Vec<WaitSum<&'a [u8]>> {
    let all = wait_sums(analysis, threads, |thread, stretch| {
        let sync = || {
            matches!(
                analysis.awaited(thread, stretch),
                Some(WaitReason::Disk | WaitReason::File)
            )
        };
        let file = || analysis.disks.waited.file(thread, stretch.from);
        (stretch.reason == Reason::Sync && sync()).then(file)
    });
    all.unwrap_or_default()
}
