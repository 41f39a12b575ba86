//! Determines which tasks had the CPUs while recorded tasks waited for one.
//!
//! A wait in a run queue belongs to the CPU on which the task runs after the wait. The wait is split by the tasks
//! that had this CPU meanwhile: recorded tasks, other tasks, or no task that the recording knows. In the last case
//! the CPU was idle, a hypervisor or a quota had it, or the task was moved from another CPU.

use std::collections::{BTreeMap, HashMap};
use std::iter::Peekable;

use tr_format::event::{Comm, CpuId, Ktime, Stream, Tid};
use tr_format::meta::Scope;

use crate::collect::outside::{Outside, Slice as OutsideSlice, Sum};
use crate::ids::ThreadIx;
use crate::model::Analysis;
use crate::questions::own::Own;
use crate::share::share;
use crate::timeline::{Bucket, StateChange, Stretch, Timeline};

/// How long tasks waited for a CPU, in ns, split by the kind of tasks that had the CPU meanwhile.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Division {
    /// The part of the waits for a CPU in which recorded tasks had the CPU, in nanoseconds. In a recording of the whole
    /// machine only the tasks of COMMAND count.
    pub own: u64,
    /// The part of the waits for a CPU in which tasks outside of the build had the CPU, in nanoseconds.
    pub others: u64,
    /// The part of the waits for a CPU in which no task that the recording knows had the CPU, in nanoseconds.
    pub rest: u64,
}

impl Division {
    fn add(&mut self, other: Division) {
        self.own = self.own.saturating_add(other.own);
        self.others = self.others.saturating_add(other.others);
        self.rest = self.rest.saturating_add(other.rest);
    }
}

/// A span of time in which one task, or one class of tasks, had a CPU.
#[derive(Clone, Copy, Debug)]
struct Slice {
    from: Ktime,
    to: Ktime,
    /// The task or tasks that had the CPU, if these tasks are not recorded or do not belong to COMMAND; otherwise
    /// `None`.
    other: Option<Other>,
    /// How long the build's tasks and other tasks had this CPU before the slice, summed over all earlier slices.
    before: Sums,
}

/// The tasks outside of the build that a time on a CPU is attributed to.
#[derive(Clone, Copy, Debug)]
enum Other {
    Outside(Tid),
    /// A recorded task that does not belong to COMMAND, in a recording of the whole machine.
    Stranger(ThreadIx),
    /// Several unrecorded tasks had the CPU in an unknown order. The recording has the sum of their times ([`Sum`]).
    /// The value is the index of this sum among the sums of the CPU.
    Several(usize),
    /// One unrecorded task had the CPU until a recorded sum of CPU times ([`Sum`]) begins. This task is the first one
    /// in the sum. The value is the index of the sum among the sums of the CPU.
    First(usize),
    /// Unrecorded tasks had the CPU, and the recorded sums of their times are missing.
    Unknown,
}

/// The tasks to which a part of a wait for a CPU is attributed, because they had the CPU.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Occupant {
    /// The tasks with this name had the CPU. The name is empty if it is not known.
    Named(Comm),
    /// The CPU belonged to tasks without a known name, for example because the recording names only the tasks that had
    /// the CPUs longest.
    Rest,
}

/// The times in ns for which a CPU ran the build's tasks, and for which it ran other tasks, from the beginning of
/// the recording up to a moment.
#[derive(Clone, Copy, Debug, Default)]
struct Sums {
    own: u64,
    others: u64,
}

impl Slice {
    /// How long the CPU had run the build's tasks, and other tasks, when `ns` of this slice had passed.
    fn sums(&self, ns: u64) -> Sums {
        let mut sums = self.before;
        let sum = match self.other {
            None => &mut sums.own,
            Some(_) => &mut sums.others,
        };
        *sum = sum.saturating_add(ns);
        sums
    }
}

/// For each CPU, which tasks had it at which time.
#[derive(Clone, Debug)]
pub struct Contention {
    cpus: BTreeMap<CpuId, Vec<Slice>>,
    own: Own,
}

/// The times in which events of the lifecycle stream or of the recorder are lost, so that sums of unrecorded tasks' CPU
/// times may be missing. The times are in order and do not overlap. The list is empty if the recording has no sums.
fn unsummed(analysis: &Analysis) -> Vec<(Ktime, Ktime)> {
    if analysis.others.outside.sums.is_empty() {
        return Vec::new();
    }
    let lost = analysis.quality.lost.iter();
    let lost = lost.filter(|lost| matches!(lost.stream, Stream::Lifecycle | Stream::Recorder));
    let mut all: Vec<(Ktime, Ktime)> = lost.map(|lost| (lost.since, lost.until)).collect();
    join(&mut all);
    all
}

/// Sorts spans of time, each with its beginning and its end, and joins those that overlap or touch.
pub fn join(times: &mut Vec<(Ktime, Ktime)>) {
    times.sort_unstable();
    times.dedup_by(|next, last| {
        let overlaps = next.0 <= last.1;
        if overlaps {
            last.1 = last.1.max(next.1);
        }
        overlaps
    });
}

/// Splits a slice, which is a time in which a CPU ran unrecorded tasks. It is split where the recorded sums of such
/// times begin and end. Calls `put` with each part and the tasks that had the CPU in this part. `lost` has the times in
/// which sums may be missing ([`unsummed`]).
fn divide_by_sums(
    outside: &Outside,
    slice: &OutsideSlice,
    sums: &[Sum],
    lost: &[(Ktime, Ktime)],
    mut put: impl FnMut(Ktime, Ktime, Other),
) {
    let mut from = slice.from;
    let first = sums.partition_point(|sum| sum.to <= from);
    let within = sums.iter().enumerate().skip(first);
    for (place, sum) in within.take_while(|(_, sum)| sum.from < slice.to) {
        if from < sum.from {
            put(from, sum.from, Other::First(place));
            from = sum.from;
        }
        let to = slice.to.min(sum.to);
        // A recorded sum of unrecorded tasks' CPU times can cover several waits of recorded tasks. The sum does not
        // contain the times between these waits, and the slice may lie in such a time. So a sum of several waits is
        // used only if the sum contains time of the slice's own task.
        let has_share = sum.others.between_us == 0 || outside.has_share(sum, slice.tid, slice.to);
        let other = if has_share {
            Other::Several(place)
        } else {
            Other::Outside(slice.tid)
        };
        put(from, to, other);
        from = to;
    }
    if from >= slice.to {
        return;
    }
    let next = lost.partition_point(|(_, until)| *until <= from);
    let is_lost = lost.get(next).is_some_and(|(since, _)| *since < slice.to);
    // No recorded sum of CPU times covers the rest of the slice. If events are lost here, a sum may be missing. If the
    // recording ends in the slice, the sum for the end of the slice is missing, and another task may have replaced the
    // slice's first task on the CPU.
    let other = if is_lost || slice.is_open {
        Other::Unknown
    } else {
        Other::Outside(slice.tid)
    };
    put(from, slice.to, other);
}

/// Distributes `ns` of waiting for a CPU over the unrecorded tasks whose times on the CPU a sum contains, in
/// proportion to these times, and adds the parts to `names`.
fn add_shares(names: &mut HashMap<Occupant, u64>, sum: &Sum, ns: u64) {
    let whole = sum.others.sum_us();
    let mut rest = ns;
    for of in &sum.others.shares {
        let part = share(of.us, ns, whole).min(rest);
        rest -= part;
        let sum = names.entry(Occupant::Named(of.comm)).or_default();
        *sum = sum.saturating_add(part);
    }
    if sum.others.rest_us > 0 {
        let sum = names.entry(Occupant::Rest).or_default();
        *sum = sum.saturating_add(rest);
    }
}

/// A wait of a task in a run queue: the CPU on which the task runs after the wait, and the beginning and the end of the
/// wait. For a wait that has not ended, the CPU is the one on which the task ran before the wait.
pub type Wait = (CpuId, Ktime, Ktime);

/// If a thread still waits in a run queue, the wait counts for the CPU on which the thread ran last. To find this CPU,
/// at most this many stretches (times in one state) before the wait are searched. A task that was woken needs two; the
/// larger number is a guess that bounds the work.
const MOST_STRETCHES: usize = 8;

/// Returns a stretch as a wait for a CPU, with this CPU. For a wait that has ended, the CPU is the one on which the
/// thread runs in the next stretch. For a wait that has not ended, the CPU is that of the last run among the
/// [`MOST_STRETCHES`] stretches before. `None` if the stretch is not in a run queue, or if the CPU is not known.
fn wait(
    timeline: &Timeline,
    thread: ThreadIx,
    number: usize,
    stretch: &Stretch,
    next: Option<&Stretch>,
) -> Option<Wait> {
    if !matches!(stretch.doing, Bucket::RunQueue { .. }) {
        return None;
    }
    let on = match next {
        Some(next) => cpu(next),
        None => {
            let before = (0..number).rev().take(MOST_STRETCHES);
            let mut before = before.filter_map(|number| timeline.get(thread, number));
            before.find_map(|stretch| cpu(&stretch))
        }
    };
    Some((on?, stretch.from, stretch.to))
}

/// The CPU on which a thread ran in a stretch of its timeline; `None` if it did not run, or if the CPU is not known.
fn cpu(stretch: &Stretch) -> Option<CpuId> {
    match stretch.doing {
        Bucket::OnCpu(cpu) => cpu,
        _ => None,
    }
}

/// For each CPU, the times in which recorded tasks waited for it.
struct Times(HashMap<CpuId, Vec<(Ktime, Ktime)>>);

impl Times {
    fn of(waits: &[Wait]) -> Times {
        let mut all: HashMap<CpuId, Vec<(Ktime, Ktime)>> = HashMap::new();
        for (cpu, from, to) in waits {
            all.entry(*cpu).or_default().push((*from, *to));
        }
        all.values_mut().for_each(join);
        Times(all)
    }

    /// Whether the time from `from` to `to` overlaps with one of the times of the CPU.
    fn overlap(&self, cpu: CpuId, from: Ktime, to: Ktime) -> bool {
        self.0.get(&cpu).is_some_and(|times| {
            let next = times.partition_point(|(_, end)| *end <= from);
            times.get(next).is_some_and(|(begin, _)| *begin < to)
        })
    }
}

/// For each CPU, which tasks had it at which time. The times are still being collected and are not in order yet.
pub struct Slices {
    cpus: BTreeMap<CpuId, Vec<Slice>>,
    own: Own,
    /// The times in which recorded tasks wait for a CPU, outside of which nothing has to be collected; `None` to
    /// collect for all times.
    times: Option<Times>,
}

impl Slices {
    /// Makes an empty collection of the times in which tasks had the CPUs, for the whole recording. Returns `None` if
    /// the recording does not show which tasks had the CPUs.
    pub fn of_all_times(analysis: &Analysis) -> Option<Slices> {
        Slices::new(analysis, None)
    }

    /// Makes an empty collection of the times in which tasks had the CPUs. It is limited to `times`, or covers the
    /// whole recording if `times` is `None`. Returns `None` if the recording does not show which tasks had the CPUs.
    fn new(analysis: &Analysis, times: Option<Times>) -> Option<Slices> {
        let is_shown = analysis.others.outside.has_names() || analysis.meta.scope == Scope::All;
        is_shown.then(|| Slices {
            cpus: BTreeMap::new(),
            own: Own::of(analysis),
            times,
        })
    }

    fn put(&mut self, cpu: CpuId, from: Ktime, to: Ktime, other: Option<Other>) {
        let is_needed = |times: &Times| times.overlap(cpu, from, to);
        if !self.times.as_ref().is_none_or(is_needed) {
            return;
        }
        let slices = self.cpus.entry(cpu).or_default();
        match slices.last_mut() {
            // Runs of the build's tasks that directly follow each other are joined to one slice, so that a busy CPU has
            // few slices.
            Some(last) if last.other.is_none() && other.is_none() && last.to == from => {
                last.to = to;
            }
            _ => slices.push(Slice {
                from,
                to,
                other,
                before: Sums::default(),
            }),
        }
    }

    fn put_stretch(&mut self, analysis: &Analysis, thread: ThreadIx, stretch: &Stretch) {
        if let Bucket::OnCpu(Some(cpu)) = stretch.doing {
            let stranger = !self.own.has_thread(analysis, thread);
            let other = stranger.then_some(Other::Stranger(thread));
            self.put(cpu, stretch.from, stretch.to, other);
        }
    }

    /// Adds the stretch that ends with a change of a thread's state. Callers must pass the changes of all threads in
    /// the order of time, because a new slice is only compared with the last slice of its CPU when slices are joined.
    pub(crate) fn take(&mut self, analysis: &Analysis, change: &StateChange) {
        if let Some(ended) = &change.before {
            self.put_stretch(analysis, change.thread, ended);
        }
    }

    /// Adds the times that unrecorded tasks had the CPUs, and sorts the times of each CPU.
    pub fn finish(mut self, analysis: &Analysis) -> Contention {
        let lost = unsummed(analysis);
        let outside = &analysis.others.outside;
        for (cpu, slices) in &outside.slices {
            let sums = outside.sums.get(cpu).map_or(&[][..], Vec::as_slice);
            for slice in slices {
                divide_by_sums(outside, slice, sums, &lost, |from, to, other| {
                    self.put(*cpu, from, to, Some(other));
                });
            }
        }
        for slices in self.cpus.values_mut() {
            slices.sort_unstable_by_key(|slice| (slice.to, slice.from));
            let (mut until, mut sums) = (Ktime(0), Sums::default());
            for slice in slices {
                // In a damaged recording two tasks may be on a CPU at once. The overlap is cut off, so that no time
                // counts twice.
                slice.from = slice.from.max(until).min(slice.to);
                until = slice.to;
                slice.before = sums;
                sums = slice.sums(slice.to.since(slice.from));
            }
        }
        Contention {
            cpus: self.cpus,
            own: self.own,
        }
    }
}

impl Contention {
    /// Finds out which tasks had each CPU at which time in a recording; `None` if the recording does not show it.
    pub fn new(analysis: &Analysis) -> Option<Contention> {
        let mut slices = Slices::of_all_times(analysis)?;
        let timeline = analysis.timeline.as_ref()?;
        for change in timeline.changes(analysis.thread_ids()) {
            slices.take(analysis, &change);
        }
        Some(slices.finish(analysis))
    }

    /// Like [`Contention::new`], but limited to the times of the given waits for a CPU.
    pub fn of_waits(analysis: &Analysis, waits: &[Wait]) -> Option<Contention> {
        let mut slices = Slices::new(analysis, Some(Times::of(waits)))?;
        let timeline = analysis.timeline.as_ref()?;
        let from = waits.iter().map(|(_, from, _)| *from).min();
        let to = waits.iter().map(|(_, _, to)| *to).max();
        if let (Some(from), Some(to)) = (from, to) {
            for thread in analysis.thread_ids() {
                let of = analysis.thread(thread);
                if of.end <= from || of.start >= to {
                    continue;
                }
                let stretches = timeline.since(thread, from);
                for stretch in stretches.take_while(|stretch| stretch.from < to) {
                    slices.put_stretch(analysis, thread, &stretch);
                }
            }
        }
        Some(slices.finish(analysis))
    }

    /// How many ns the CPU had run the build's tasks, and other tasks, up to a moment.
    fn before(slices: &[Slice], time: Ktime) -> Sums {
        let at = slices.partition_point(|slice| slice.to <= time);
        match (slices.get(at), slices.last()) {
            (Some(slice), _) => slice.sums(time.since(slice.from.min(time))),
            (None, Some(last)) => last.sums(last.to.since(last.from)),
            (None, None) => Sums::default(),
        }
    }

    /// Like [`by_name`](Contention::by_name), for all waits of the build's tasks for a CPU. Returns `None` if the
    /// recording does not show which tasks had the CPUs.
    pub fn of_all(analysis: &Analysis) -> Option<(Division, Vec<(Occupant, u64)>)> {
        let contention = Contention::new(analysis)?;
        let threads = analysis.thread_ids();
        let threads = threads.filter(|ix| contention.own.has_thread(analysis, *ix));
        let waits = threads.flat_map(|thread| Contention::waits(analysis, thread));
        Some(contention.by_name(analysis, waits))
    }

    pub fn divide(&self, (cpu, from, to): Wait) -> Division {
        let slices = self.cpus.get(&cpu).map_or(&[][..], Vec::as_slice);
        let (first, last) = (Self::before(slices, from), Self::before(slices, to));
        let own = last.own.saturating_sub(first.own);
        let others = last.others.saturating_sub(first.others);
        let known = own.saturating_add(others);
        let rest = to.since(from).saturating_sub(known);
        Division { own, others, rest }
    }

    /// The waits of a thread in run queues. Waits for a CPU that is not known are left out, because nothing shows
    /// which tasks had it.
    pub fn waits(analysis: &Analysis, thread: ThreadIx) -> impl Iterator<Item = Wait> + '_ {
        let timeline = analysis.timeline.iter();
        timeline.flat_map(move |timeline| {
            let mut stretches = timeline.of(thread).zip(0..).peekable();
            std::iter::from_fn(move || {
                let (stretch, number) = stretches.next()?;
                let next = stretches.peek().map(|(next, _)| next);
                Some(wait(timeline, thread, number, &stretch, next))
            })
            .flatten()
        })
    }

    /// The part of a thread's wait in a run queue that lies between `from` and `to`; `None` if the thread does not wait
    /// in a run queue then, or if the CPU of the wait is not known.
    pub fn within(analysis: &Analysis, thread: ThreadIx, from: Ktime, to: Ktime) -> Option<Wait> {
        let timeline = analysis.timeline.as_ref()?;
        let number = timeline.at(thread, from)?;
        let stretch = timeline.get(thread, number)?;
        let next = timeline.get(thread, number + 1);
        let (cpu, _, end) = wait(timeline, thread, number, &stretch, next.as_ref())?;
        Some((cpu, from, to.min(end)))
    }

    /// Splits waits for a CPU by the kind of tasks that had the CPU meanwhile. Also lists those of these tasks that are
    /// outside of the build, by name, with their times in nanoseconds, the longest time first. If two tasks wait for
    /// one CPU at the same time, both waits are counted.
    pub fn by_name(
        &self,
        analysis: &Analysis,
        waits: impl Iterator<Item = Wait>,
    ) -> (Division, Vec<(Occupant, u64)>) {
        let mut sum = Division::default();
        // For each CPU, the times at which a wait for it begins (`true`) or ends (`false`), to count the tasks that
        // wait at once.
        let mut changes: HashMap<CpuId, Vec<(Ktime, bool)>> = HashMap::new();
        for wait in waits {
            sum.add(self.divide(wait));
            let (cpu, from, to) = wait;
            let of = changes.entry(cpu).or_default();
            of.extend([(from, true), (to, false)]);
        }
        let outside = &analysis.others.outside;
        let mut names: HashMap<Occupant, u64> = HashMap::new();
        for (cpu, mut changes) in changes {
            changes.sort_unstable();
            let sums = outside.sums.get(&cpu).map_or(&[][..], Vec::as_slice);
            let slices = self.cpus.get(&cpu).map_or(&[][..], Vec::as_slice);
            let mut waited = Waited {
                changes: changes.iter().peekable(),
                now: Ktime(0),
                waiting: 0,
                sum: 0,
            };
            for slice in slices {
                let since = waited.until(slice.from);
                let ns = waited.until(slice.to).saturating_sub(since);
                let Some(other) = slice.other.filter(|_| ns > 0) else {
                    continue;
                };
                let occupant = match other {
                    Other::Outside(tid) => {
                        let task = outside.at(tid, slice.to);
                        Occupant::Named(task.map_or_else(Comm::default, |outsider| outsider.comm))
                    }
                    Other::Stranger(thread) => Occupant::Named(analysis.thread(thread).comm),
                    Other::Several(place) => {
                        if let Some(sum) = sums.get(place) {
                            add_shares(&mut names, sum, ns);
                        }
                        continue;
                    }
                    Other::First(place) => {
                        let sum = sums.get(place);
                        let first = sum.and_then(|sum| sum.others.shares.first());
                        first.map_or(Occupant::Rest, |share| Occupant::Named(share.comm))
                    }
                    Other::Unknown => Occupant::Rest,
                };
                let sum = names.entry(occupant).or_default();
                *sum = sum.saturating_add(ns);
            }
        }
        let mut names: Vec<_> = names.into_iter().collect();
        names.sort_unstable_by(|a, b| (b.1, a.0).cmp(&(a.1, b.0)));
        (sum, names)
    }
}

/// Adds up how many ns recorded tasks have waited for a CPU up to a moment. If two tasks wait at once, both are
/// counted. Each call must give a moment that is not before the previous one.
struct Waited<'a> {
    changes: Peekable<std::slice::Iter<'a, (Ktime, bool)>>,
    now: Ktime,
    waiting: u64,
    sum: u64,
}

impl Waited<'_> {
    fn pass(&mut self, time: Ktime) {
        let ns = time.since(self.now.min(time));
        self.sum = self.sum.saturating_add(ns.saturating_mul(self.waiting));
        self.now = self.now.max(time);
    }

    fn until(&mut self, time: Ktime) -> u64 {
        while let Some((at, begins)) = self.changes.next_if(|(at, _)| *at <= time) {
            self.pass(*at);
            self.waiting = if *begins {
                self.waiting + 1
            } else {
                self.waiting.saturating_sub(1)
            };
        }
        self.pass(time);
        self.sum
    }
}
