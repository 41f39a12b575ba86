//! Computes the waits of tasks off CPU by reason, and finds the longest waits.

use std::cmp::Reverse;

use tr_analyze::awaited::WaitReason;
use tr_analyze::model::{Analysis, ThreadIx, Times};
use tr_analyze::timeline::{Bucket, Stretch};

use crate::views::members::{Collect, Grouped};
use crate::views::query::{By, Sort};
use crate::views::view::View;

/// A stretch of time in which a thread was off CPU, with the reason for the wait.
#[derive(Clone, Copy, Debug)]
pub struct ThreadWait {
    pub thread: ThreadIx,
    pub stretch: Stretch,
    pub reason: WaitReason,
    /// Whether the start and the end of the wait are known.
    pub whole: bool,
}

/// The number and the time of all waits of some tasks for one reason.
#[derive(Clone, Copy, Debug, Default)]
pub struct ReasonSum {
    /// The sum in nanoseconds of the lengths of the waits for one reason.
    pub total: u64,
    pub count: u64,
    pub longest: Option<ThreadWait>,
}

/// The sums of the waits of some tasks by reason, together with the tasks' times by state (such as run queue or sleep).
#[derive(Clone, Copy, Debug, Default)]
pub struct ReasonSums([ReasonSum; WaitReason::ALL.len()], Times);

impl Collect<ThreadWait> for ReasonSums {
    fn add(&mut self, waited: &ThreadWait) {
        let Some(sum) = self.0.get_mut(waited.reason as usize) else {
            return; // every reason has its sum
        };
        let length = waited.stretch.length();
        let state = waited.stretch.doing.sum_in(&mut self.1);
        *state = state.saturating_add(length);
        sum.total = sum.total.saturating_add(length);
        sum.count += 1;
        if length > sum.longest.map_or(0, |longest| longest.stretch.length()) {
            sum.longest = Some(*waited);
        }
    }
}

impl ReasonSums {
    /// The sums of waits for every reason, including reasons for which no task waited.
    pub fn all(&self) -> impl Iterator<Item = (WaitReason, &ReasonSum)> {
        WaitReason::ALL.into_iter().zip(&self.0)
    }

    /// The sums of waits for each reason for which at least one task waited.
    pub fn used(&self) -> impl Iterator<Item = (WaitReason, &ReasonSum)> {
        self.all().filter(|(_, sum)| sum.count > 0)
    }

    /// The sum in nanoseconds of the time off CPU for the given reasons.
    pub fn of(&self, reasons: &[WaitReason]) -> u64 {
        let used = self.used().filter(|(reason, _)| reasons.contains(reason));
        used.map(|(_, sum)| sum.total).fold(0, u64::saturating_add)
    }

    /// The sum in nanoseconds of the time off CPU whose reason is known.
    pub fn total(&self) -> u64 {
        let known = self
            .used()
            .filter(|(reason, _)| *reason != WaitReason::Unknown);
        known.map(|(_, sum)| sum.total).fold(0, u64::saturating_add)
    }
}

/// The time off CPU of the chosen processes, by the reason for the wait. The sums equal the off-CPU times of the
/// processes.
pub struct OffCpuWaits {
    pub by: By,
    /// The sums of waits by reason for each row of the table. The row with the longest time off CPU for a known reason
    /// comes first, unless `--sort` sets another order.
    pub sums: Grouped<ReasonSums>,
    /// The longest ones of the chosen processes' waits with a known reason, the longest first.
    pub longest: Vec<ThreadWait>,
}

impl OffCpuWaits {
    /// Sums up the waits of the chosen processes. `keep` is the number of longest waits that are kept.
    pub fn new(view: &View<'_>, keep: usize) -> OffCpuWaits {
        let by = view.ask.by.unwrap_or_default();
        let figure = |sums: &ReasonSums| {
            sums.used().next()?;
            Some(match view.ask.sort {
                Some(Sort::RunQueue) => sums.of(&[WaitReason::Woken, WaitReason::Preempted]),
                Some(Sort::Sleep) => sums.1.sleep,
                Some(Sort::Blocked) => sums.1.blocked,
                Some(Sort::Unknown) => sums.of(&[WaitReason::Unknown]),
                _ => sums.total(),
            })
        };
        let mut longest = Vec::new();
        let waits = |thread| waits(view.analysis, thread);
        let sums = Grouped::new(view, by, waits, figure, |waited: ThreadWait| {
            if waited.reason != WaitReason::Unknown {
                longest.push(waited);
            }
            // The list is shortened whenever it has become much longer than `keep`, because all waits of a long
            // recording would need too much memory.
            if longest.len() > keep.saturating_mul(64) {
                shorten(&mut longest, keep);
            }
        });
        shorten(&mut longest, keep);
        OffCpuWaits { by, sums, longest }
    }
}

/// The waits of a thread off CPU, including the stretches in which its state is unknown.
fn waits(analysis: &Analysis, ix: ThreadIx) -> impl Iterator<Item = ThreadWait> + '_ {
    let started = !analysis.thread(ix).started_before;
    let known = |stretch: Option<Stretch>, edge: bool| match stretch {
        Some(stretch) => stretch.doing != Bucket::Unknown || stretch.cpu.is_some(),
        None => edge,
    };
    let timeline = analysis.timeline.iter();
    timeline.flat_map(move |timeline| {
        timeline
            .of(ix)
            .enumerate()
            .filter_map(move |(at, stretch)| {
                let before = at.checked_sub(1).and_then(|at| timeline.get(ix, at));
                Some(ThreadWait {
                    thread: ix,
                    stretch,
                    reason: WaitReason::of(analysis, ix, &stretch)?,
                    whole: known(before, started) && known(timeline.get(ix, at + 1), false),
                })
            })
    })
}

/// Shortens a list of waits to the `keep` longest ones. Among equally long waits, the first are kept.
fn shorten(waits: &mut Vec<ThreadWait>, keep: usize) {
    waits.sort_by_key(|w| (Reverse(w.stretch.length()), w.stretch.from, w.thread));
    waits.truncate(keep);
}
