//! Computes the time of functions from sampled stacks: the time of the function itself, and the time including the
//! functions it calls.

pub mod frames;

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

use tr_analyze::awaited::WaitReason;
use tr_analyze::model::Analysis;
use tr_analyze::stacks::{Stacks, Timed};
use tr_analyze::timeline::{Bucket, Stretch};
use tr_format::event::Ktime;
use tr_format::stack::Doing;

use crate::functions::frames::{Name, Names};

/// The largest number of entries in a thread's timeline that are examined for one sampled wait. A guess: three are
/// usual (on a CPU before the wait, the wait itself, and the wait for a CPU after it), but a forged file may have any
/// number.
const STRETCHES: usize = 8;

/// A number of stack samples, and the time that they stand for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct SampleSum {
    pub samples: u64,
    /// The time in nanoseconds that the counted stack samples stand for.
    pub ns: u64,
}

impl SampleSum {
    pub fn add(&mut self, other: SampleSum) {
        self.samples = self.samples.saturating_add(other.samples);
        self.ns = self.ns.saturating_add(other.ns);
    }
}

/// Samples of a recording with the same stack. They were all taken on a CPU, or all off CPU in waits for one reason.
#[derive(Clone, Copy, Debug)]
pub struct StackSamples {
    /// The number of the sampled stack in the recording's table of stacks.
    pub stack: u32,
    /// Whether the threads were on a CPU or off CPU when their stacks were sampled.
    pub doing: Doing,
    /// The reason for which the sampled threads waited; `None` if the threads were on a CPU, or if the reason was not
    /// determined.
    pub reason: Option<WaitReason>,
    pub sum: SampleSum,
}

impl StackSamples {
    /// Makes a sum that contains only the given sample of a stack. The sample stands for `ns` nanoseconds.
    pub fn of(analysis: &Analysis, sample: &Timed, ns: u64) -> StackSamples {
        let wait = Some(sample).filter(|sample| sample.doing == Doing::OffCpu);
        StackSamples {
            stack: sample.stack,
            doing: sample.doing,
            reason: wait.and_then(|wait| reason_of(analysis, wait)),
            sum: SampleSum { samples: 1, ns },
        }
    }
}

/// The figures of a function over all stack samples, or over the samples of one group.
#[derive(Debug)]
pub struct FunctionRow {
    /// The number of the group that the samples belong to, if samples are grouped.
    pub group: Option<usize>,
    pub name: Name,
    pub doing: Doing,
    /// The reason for which the sampled threads waited; `None` if the threads were on a CPU, or if the reason was not
    /// determined.
    pub reason: Option<WaitReason>,
    /// The stack samples in which the function was the innermost one. In a sample of a wait, this is the innermost
    /// function in user mode, if the stack has one.
    pub own: SampleSum,
    /// The stack samples in which the function was anywhere in the stack.
    pub total: SampleSum,
}

/// The key of a row in the table of functions, which all samples of the row have in common: the group, whether the task
/// was on a CPU, the reason for a wait, and the number of the function.
type Key = (Option<usize>, Doing, Option<WaitReason>, usize);

/// The table of functions with the number and the time of their stack samples.
#[derive(Debug, Default)]
pub struct Functions {
    all: BTreeMap<Doing, SampleSum>,
    reasons: BTreeMap<WaitReason, SampleSum>,
    rows: Vec<FunctionRow>,
}

impl Functions {
    /// Makes the table of functions from samples of stacks. Each sample comes with the number of the group in which it
    /// is counted, if samples are grouped.
    pub fn new(
        stacks: &Stacks,
        samples: impl Iterator<Item = (Option<usize>, StackSamples)>,
    ) -> Functions {
        let mut names = Names::new(stacks);
        let mut sums: BTreeMap<Key, (SampleSum, SampleSum)> = BTreeMap::new();
        let mut found = Functions::default();
        for (group, sample) in samples {
            found.all.entry(sample.doing).or_default().add(sample.sum);
            if let Some(reason) = sample.reason {
                found.reasons.entry(reason).or_default().add(sample.sum);
            }
            let key = |function| (group, sample.doing, sample.reason, function);
            let functions = names.of_stack(sample.stack);
            let innermost = match sample.doing {
                Doing::OnCpu => None,
                // The innermost function of every wait is the scheduler's, which says nothing, so the innermost one in
                // user mode is taken.
                Doing::OffCpu => names.in_user_mode(sample.stack),
            };
            if let Some(innermost) = innermost.or(functions.first().copied()) {
                sums.entry(key(innermost)).or_default().0.add(sample.sum);
            }
            // A recursive function counts once for each stack.
            for function in functions.into_iter().collect::<BTreeSet<_>>() {
                sums.entry(key(function)).or_default().1.add(sample.sum);
            }
        }
        let rows = sums.into_iter();
        let rows = rows.map(
            |((group, doing, reason, function), (own, total))| FunctionRow {
                group,
                name: names.name(function).cloned().unwrap_or_default(),
                doing,
                reason,
                own,
                total,
            },
        );
        found.rows = rows.collect();
        let key =
            |row: &FunctionRow| Reverse((row.own.ns, row.total.ns, Reverse(row.name.clone())));
        found.rows.sort_by_key(key);
        found
    }

    /// The number and the time of all stack samples that were taken on a CPU, or of all that were taken off CPU, as
    /// `doing` selects.
    pub fn sum(&self, doing: Doing) -> SampleSum {
        self.all.get(&doing).copied().unwrap_or_default()
    }

    pub fn is_empty(&self) -> bool {
        self.all.is_empty()
    }

    /// The rows of the table of functions. The function with the longest time of its own comes first.
    pub fn rows(&self) -> &[FunctionRow] {
        &self.rows
    }

    /// Whether the reason is known for at least one of the sampled waits.
    pub fn has_reasons(&self) -> bool {
        !self.reasons.is_empty()
    }

    /// The sums of the sampled waits by reason, the longest sum first.
    pub fn by_reason(&self) -> Vec<(WaitReason, SampleSum)> {
        let mut sums: Vec<(WaitReason, SampleSum)> =
            self.reasons.iter().map(|(a, b)| (*a, *b)).collect();
        sums.sort_unstable_by_key(|(reason, sum)| (Reverse(sum.ns), *reason));
        sums
    }
}

/// The wait during which a stack sample was taken off CPU. The recorder takes the timestamps of the sample and of the
/// wait at slightly different moments. So the result is that wait (or time of unknown state) in the thread's timeline
/// which overlaps most with the time for which the sample stands.
pub fn wait_of(analysis: &Analysis, sample: &Timed) -> Option<Stretch> {
    let timeline = analysis.timeline.as_ref()?;
    let thread = sample.thread;
    let from = Ktime(sample.time.0.saturating_sub(sample.ns));
    let stretches = timeline.since(thread, from).take(STRETCHES);
    let stretches = stretches.take_while(|stretch| stretch.from < sample.time);
    let waits =
        stretches.filter(|stretch| matches!(stretch.doing, Bucket::Wait(_) | Bucket::Unknown));
    waits.max_by_key(|stretch| stretch.to.min(sample.time).since(stretch.from.max(from)))
}

/// The reason for which a thread waited when a stack sample was taken; `None` if the reason was not determined.
fn reason_of(analysis: &Analysis, sample: &Timed) -> Option<WaitReason> {
    WaitReason::of(analysis, sample.thread, &wait_of(analysis, sample)?)
}
