//! Reduces the sampled stacks to the number for which a page has room.
//!
//! A stack is stored as two numbers: that of the caller's stack and that of the innermost function. Frames of one
//! function at different addresses count as one frame, as in a flame graph. Each sample keeps its time, so that the
//! page can sum up the samples of any span of time.

use std::cmp::Reverse;
use std::collections::HashMap;

use tr_analyze::model::{Analysis, ThreadIx};
use tr_analyze::stacks::Timed;
use tr_analyze::timeline::Bucket;
use tr_format::event::Ktime;
use tr_format::stack::{Doing, Place};

use crate::html::blob::Columns;
use crate::html::segments::{kind, RUNNING_KIND, UNKNOWN_WAIT};
use tr_insight::functions::frames::{Name, Names};
use tr_insight::functions::{wait_of, SampleSum};
use tr_text::object;
use tr_text::strings::Strings;

/// The limits for the data about sampled stacks in an HTML report. A sample takes 2 to 6 bytes in the file.
#[derive(Clone, Copy, Debug)]
pub struct Room {
    /// The largest number of stack samples on a CPU in the HTML report, apart from one more for each thread. If a
    /// recording has more, several consecutive samples of a thread are merged into one.
    pub samples: usize,
    /// The largest number of sampled waits in the HTML report. If a recording has more, the shortest are left out.
    pub waits: usize,
    /// The largest number of different stacks in the HTML report. If a recording has more, those with the least
    /// sampled time are left out, and their samples have no stack.
    pub stacks: usize,
}

impl Default for Room {
    fn default() -> Room {
        Room {
            samples: 200_000,
            waits: 100_000,
            stacks: 200_000,
        }
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Function {
    /// The name of the function in a stack, and of the program or library that contains it.
    pub name: Name,
    /// Whether the function in the stack belongs to the kernel.
    pub kernel: bool,
}

/// A stack sample in the HTML report, or several merged consecutive samples of one thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sample {
    pub thread: ThreadIx,
    /// The thread's activity when the sample was taken, as the number of a [`kind`] of timeline pieces: on a CPU, or
    /// the reason of the wait.
    pub kind: u8,
    /// The time at which the stack was sampled. If the sample is a wait, this is the end of the wait.
    pub at: Ktime,
    /// The number of the sampled stack, from 1; 0 if the stack is not known or left out.
    pub stack: u32,
    /// The number of samples that were merged into this one, and the sum of their times.
    pub sum: SampleSum,
}

/// The sampled stacks in an HTML report: the samples of all threads, and the numbered stacks and functions that they
/// refer to.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Stacks {
    /// The unit in ns in which the times of stack samples are stored.
    pub unit: u64,
    /// The number of consecutive stack samples on a CPU that are merged into one in this HTML report.
    pub together: usize,
    /// The functions that occur in the sampled stacks. Their indices are used as numbers.
    pub functions: Vec<Function>,
    /// For each sampled stack, from the stack with the number 1 on, two numbers. The first is the number of the stack
    /// without its innermost function; it is lower than the stack's own number, and 0 if nothing remains. The second is
    /// the number of the innermost function.
    pub callers: Vec<(u32, u32)>,
    /// The stack samples, ordered by thread and then by time.
    pub samples: Vec<Sample>,
    /// The number and time of the samples whose stack is left out of the HTML report, because there are too many
    /// stacks.
    pub cut: SampleSum,
    /// The number and time of the sampled waits that are left out of the HTML report, because they are short.
    pub short: SampleSum,
    /// For each thread, the number of its stack samples.
    counts: Vec<u64>,
    /// For each stack sample, the time since the previous sample of the same thread, or for its first sample since the
    /// start of the recording, in multiples of `unit` nanoseconds.
    since: Vec<u64>,
}

object! {
    // The sizes of the columns about stacks. Each property of a function has a column.
    StackSizes(stacks: &Stacks, strings: &mut Strings) {
        functions: Vec<u32> = names(stacks, strings, |function| &function.name.function),
        binaries: Vec<u32> = names(stacks, strings, |function| &function.name.binary),
        kernel: Vec<u8> = stacks.functions.iter().map(|function| function.kernel.into()).collect(),
        stacks: usize = stacks.callers.len(),
        samples: usize = stacks.samples.len(),
        unit: u64 = stacks.unit,
        // The number of samples on a CPU that are merged into one.
        together: usize = stacks.together,
        // The number and time of samples whose stacks are left out (`cut`), and of short waits that are left out
        // (`short`).
        cut: [u64; 2] = [stacks.cut.samples, stacks.cut.ns],
        short: [u64; 2] = [stacks.short.samples, stacks.short.ns],
    }
}

/// For each function of the sampled stacks, the number of a text about it in the page's list of texts. `of` chooses
/// the text: the function's name or its file.
fn names(stacks: &Stacks, strings: &mut Strings, of: impl Fn(&Function) -> &String) -> Vec<u32> {
    let texts = stacks.functions.iter().map(of);
    texts.map(|text| strings.add(text.clone())).collect()
}

impl Stacks {
    pub fn write(&self, columns: &mut Columns) {
        let samples = self.samples.iter();
        let stacks = (1..).zip(&self.callers);
        let up = |(own, (caller, _)): (u64, &(u32, u32))| own.saturating_sub(u64::from(*caller));
        columns.varints(stacks.map(up));
        columns.varints(
            self.callers
                .iter()
                .map(|(_, function)| u64::from(*function)),
        );
        columns.varints(self.counts.iter().copied());
        columns.bytes(
            &samples
                .clone()
                .map(|sample| sample.kind)
                .collect::<Vec<_>>(),
        );
        columns.varints(self.since.iter().copied());
        columns.varints(samples.clone().map(|sample| u64::from(sample.stack)));
        columns.varints(samples.clone().map(|sample| sample.sum.samples));
        columns.varints(samples.map(|sample| sample.sum.ns));
    }

    /// Computes `unit`, `counts` and `since`. Times are rounded down to multiples of `unit`.
    fn place(&mut self, analysis: &Analysis) {
        self.unit = (analysis.wall() >> 16).clamp(1, 100_000);
        self.counts = vec![0; analysis.threads.len()];
        let mut before = (None, 0);
        for sample in &self.samples {
            if let Some(count) = self.counts.get_mut(sample.thread.0 as usize) {
                *count += 1;
            }
            let at = sample.at.since(analysis.meta.start) / self.unit;
            let last = if before.0 == Some(sample.thread) {
                before.1
            } else {
                0
            };
            self.since.push(at.saturating_sub(last));
            before = (Some(sample.thread), at);
        }
    }
}

/// The sampled stacks of a recording for the HTML report; `None` if the analysis has no stack samples
/// ([`Options::samples`](tr_analyze::Options::samples)).
pub fn stacks(analysis: &Analysis, room: &Room) -> Option<Stacks> {
    let all = &analysis.stacks.timed;
    if all.is_empty() {
        return None;
    }
    let mut out = Stacks::default();
    let all = all.iter().copied();
    let (on, waits): (Vec<Timed>, Vec<Timed>) =
        all.partition(|sample| sample.doing == Doing::OnCpu);
    out.together = on.len().div_ceil(room.samples.max(1)).max(1);
    let (waits, short) = longest(waits, room.waits);
    out.short = short;
    let mut chosen = together(&on, out.together);
    chosen.extend(waits.into_iter().map(|wait| (wait, one(&wait))));
    chosen.sort_by_key(|(sample, _)| *sample);
    let numbers = Numbers::new(analysis, &chosen, room.stacks);
    for (sample, sum) in &chosen {
        let number = numbers.known.get(&sample.stack);
        if number.is_none() {
            out.cut.add(*sum);
        }
        out.samples.push(Sample {
            thread: sample.thread,
            kind: doing(analysis, sample),
            at: sample.time,
            stack: number.copied().unwrap_or_default(),
            sum: *sum,
        });
    }
    out.functions = numbers.functions;
    out.callers = numbers.callers;
    out.place(analysis);
    Some(out)
}

fn one(sample: &Timed) -> SampleSum {
    SampleSum {
        samples: 1,
        ns: sample.ns,
    }
}

/// The longest sampled waits, at most `room` of them, and the number and the time of the shorter waits that are left
/// out.
fn longest(mut waits: Vec<Timed>, room: usize) -> (Vec<Timed>, SampleSum) {
    let mut short = SampleSum::default();
    if waits.len() > room {
        waits.sort_by_key(|wait| (Reverse(wait.ns), *wait));
        for wait in waits.split_off(room) {
            short.add(one(&wait));
        }
    }
    (waits, short)
}

/// Merges every `count` consecutive stack samples of a thread into one, which takes the stack of the middle sample. A
/// stack's share of the time stays correct, apart from the error that sampling has anyway.
fn together(samples: &[Timed], count: usize) -> Vec<(Timed, SampleSum)> {
    let threads = samples.chunk_by(|a, b| a.thread == b.thread);
    let groups = threads.flat_map(|thread| thread.chunks(count.max(1)));
    let groups = groups.filter_map(|group| {
        let mut sum = SampleSum::default();
        group.iter().for_each(|sample| sum.add(one(sample)));
        Some((*group.get(group.len() / 2)?, sum))
    });
    groups.collect()
}

/// The thread's activity in a stack sample as the number of a kind of timeline pieces: on a CPU, or the reason of the
/// wait.
fn doing(analysis: &Analysis, sample: &Timed) -> u8 {
    if sample.doing == Doing::OnCpu {
        return RUNNING_KIND;
    }
    let wait = wait_of(analysis, sample).filter(|wait| wait.doing != Bucket::Unknown);
    wait.map_or(UNKNOWN_WAIT, |wait| kind(analysis, sample.thread, &wait))
}

/// Assigns numbers to the functions and stacks of a recording, by which the HTML report refers to them.
struct Numbers<'a> {
    analysis: &'a Analysis,
    names: Names<'a>,
    room: usize,
    functions: Vec<Function>,
    callers: Vec<(u32, u32)>,
    /// The number of each function. The key is the index of its name, and whether the function belongs to the kernel.
    of_function: HashMap<(usize, bool), u32>,
    /// The number that a stack has on the page. The key is the number of the stack without its innermost function, and
    /// the number of that function.
    of_callers: HashMap<(u32, u32), u32>,
    /// For each stack's number in the trace, its number on the page. Stacks that are left out are missing.
    known: HashMap<u32, u32>,
}

impl<'a> Numbers<'a> {
    /// Numbers the stacks of the samples, those with the most sampled time first. If there are more stacks than `room`,
    /// the rest gets no number.
    fn new(analysis: &'a Analysis, samples: &[(Timed, SampleSum)], room: usize) -> Numbers<'a> {
        let mut sums: HashMap<u32, u64> = HashMap::new();
        for (sample, sum) in samples {
            let ns = sums.entry(sample.stack).or_default();
            *ns = ns.saturating_add(sum.ns);
        }
        let mut order: Vec<(u32, u64)> = sums.into_iter().collect();
        order.sort_by_key(|(stack, ns)| (Reverse(*ns), *stack));
        let mut numbers = Numbers {
            analysis,
            names: Names::new(&analysis.stacks),
            room,
            functions: Vec::new(),
            callers: Vec::new(),
            of_function: HashMap::new(),
            of_callers: HashMap::new(),
            known: HashMap::from([(0, 0)]),
        };
        for (stack, _) in order {
            numbers.add(stack);
        }
        numbers
    }

    /// Gives a number on the page to a stack of the trace. The function follows the callers outwards until it finds one
    /// that already has a number, and then numbers the stacks between that caller and the given stack. So it visits
    /// each frame of the trace only once. Returns `None` if there are too many stacks.
    fn add(&mut self, stack: u32) -> Option<()> {
        let mut frames = Vec::new();
        let mut at = stack;
        let mut number = loop {
            if let Some(number) = self.known.get(&at) {
                break *number;
            }
            match self.analysis.stacks.caller(at) {
                Some((caller, frame)) => {
                    frames.push((at, frame));
                    // The number of a caller is lower than that of the stack that it calls, as the reader of the trace
                    // has checked. With a higher number, callers could form a circle, so the loop ends here with 0.
                    at = if caller < at { caller } else { 0 };
                }
                // The definition of the stack is in a damaged part of the trace, so its callers are not known.
                None => {
                    self.known.insert(at, 0);
                    break 0;
                }
            }
        };
        for (stack, frame) in frames.into_iter().rev() {
            let place = self.analysis.stacks.place(frame);
            let kernel = matches!(place, Some(Place::Kernel(_)));
            let names = self.names.of_frame(frame).to_vec();
            for name in names.into_iter().rev() {
                let function = self.function(name, kernel);
                number = self.inside(number, function)?;
            }
            self.known.insert(stack, number);
        }
        Some(())
    }

    /// The number of the stack in which the innermost function of the stack `caller` calls `function`. A stack that is
    /// new is added. `None` if there are too many stacks.
    fn inside(&mut self, caller: u32, function: u32) -> Option<u32> {
        if let Some(number) = self.of_callers.get(&(caller, function)) {
            return Some(*number);
        }
        if self.callers.len() >= self.room {
            return None;
        }
        self.callers.push((caller, function));
        let number = u32::try_from(self.callers.len()).ok()?;
        self.of_callers.insert((caller, function), number);
        Some(number)
    }

    fn function(&mut self, name: usize, kernel: bool) -> u32 {
        let functions = &mut self.functions;
        let names = &self.names;
        *self.of_function.entry((name, kernel)).or_insert_with(|| {
            functions.push(Function {
                name: names.name(name).cloned().unwrap_or_default(),
                kernel,
            });
            u32::try_from(functions.len() - 1).unwrap_or(u32::MAX)
        })
    }
}

#[cfg(test)]
#[path = "tests/stacks.rs"]
mod tests;
