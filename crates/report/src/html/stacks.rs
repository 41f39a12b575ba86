//! Reduces sampled stacks to as many as a page has room for.
//!
//! A stack is a number: its caller's stack, and one function more. Frames of one function at different
//! addresses are one, so that the stacks are those that a flame graph draws. Samples keep their time, by
//! which the page sums up any span of it.

use std::cmp::Reverse;
use std::collections::HashMap;

use tr_analyze::model::{Analysis, ThreadIx};
use tr_analyze::stacks::Timed;
use tr_analyze::timeline::Bucket;
use tr_format::event::Ktime;
use tr_format::stack::{Doing, Place};

use crate::html::blob::Columns;
use crate::html::segments::{kind, RUNNING, UNKNOWN_WAIT};
use tr_insight::frames::{Name, Names};
use tr_insight::functions::{wait_of, SampleSum};
use tr_text::object;
use tr_text::strings::Strings;

/// The largest amounts of stack data on a page. A sample has 2 to 6 bytes in the file.
#[derive(Clone, Copy, Debug)]
pub struct Room {
    /// The largest number of samples on a CPU. If there are more, several consecutive samples of a thread are
    /// merged into one.
    pub samples: usize,
    /// The largest number of waits. If there are more, the shortest are left out.
    pub waits: usize,
    /// The largest number of stacks. If there are more, the stacks with the least time are left out, and
    /// their samples have no stack.
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
    /// The names of the function and of its file.
    pub name: Name,
    /// Whether the function is the kernel's.
    pub kernel: bool,
}

/// A sample of a stack, or several consecutive samples of one thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sample {
    pub thread: ThreadIx,
    /// The activity of the task as the [`kind`] of a piece: on a CPU, or the reason of its wait.
    pub kind: u8,
    /// The time of the sample. For a sample of a wait, it is the end of the wait.
    pub at: Ktime,
    /// The number of the stack; 0 if there is none.
    pub stack: u32,
    /// The number of samples that were merged, and the time that they stand for.
    pub sum: SampleSum,
}

/// The samples of all threads, with the stacks and functions that their numbers mean.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Stacks {
    /// The unit of the samples' times, in ns.
    pub unit: u64,
    /// The number of consecutive samples on a CPU that are merged into one.
    pub together: usize,
    /// The functions of the stacks.
    pub functions: Vec<Function>,
    /// The caller and the function of each stack, from stack number 1 on. The caller is the number of another stack,
    /// which is lower; 0 if there is none.
    pub callers: Vec<(u32, u32)>,
    /// The samples in the order of the threads, then of time.
    pub samples: Vec<Sample>,
    /// The sum of the samples whose stack is left out.
    pub cut: SampleSum,
    /// The sum of the waits that are left out because they are short.
    pub short: SampleSum,
    /// The number of samples of each thread.
    counts: Vec<u64>,
    /// For each sample, the time in units since the previous sample of its thread.
    since: Vec<u64>,
}

object! {
    // The sizes of the columns about stacks. Functions have a column for each property.
    StackSizes(stacks: &Stacks, strings: &mut Strings) {
        functions: Vec<u32> = names(stacks, strings, |function| &function.name.function),
        binaries: Vec<u32> = names(stacks, strings, |function| &function.name.binary),
        kernel: Vec<u8> = stacks.functions.iter().map(|function| function.kernel.into()).collect(),
        stacks: usize = stacks.callers.len(),
        samples: usize = stacks.samples.len(),
        unit: u64 = stacks.unit,
        // So many samples on a CPU are shown as one.
        together: usize = stacks.together,
        // The samples whose stacks are left out, and their time; the shortest waits, which are.
        cut: [u64; 2] = [stacks.cut.samples, stacks.cut.ns],
        short: [u64; 2] = [stacks.short.samples, stacks.short.ns],
    }
}

/// The numbers of the texts of all functions. `of` returns one of a function's names.
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

    /// Fills the columns with the times of the samples. Times are rounded down to units.
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

/// The stacks of an analysis made with [`Options::samples`](tr_analyze::Options::samples); `None` if it has none.
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

/// The longest waits, and the sum of the others.
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

/// Merges consecutive samples of each thread into one. The merged sample has the stack of the sample in the middle, so
/// that a stack's share stays correct within the error of a sample.
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

/// The number of the kind of a sample's activity: on a CPU, or the reason of the wait.
fn doing(analysis: &Analysis, sample: &Timed) -> u8 {
    if sample.doing == Doing::OnCpu {
        return RUNNING;
    }
    let wait = wait_of(analysis, sample).filter(|wait| wait.doing != Bucket::Unknown);
    wait.map_or(UNKNOWN_WAIT, |wait| kind(analysis, sample.thread, &wait))
}

/// The numbers that stacks and functions have on the page.
struct Numbers<'a> {
    analysis: &'a Analysis,
    names: Names<'a>,
    room: usize,
    functions: Vec<Function>,
    callers: Vec<(u32, u32)>,
    /// The number of each function. The key is the number of its name, and whether it belongs to the kernel.
    of_function: HashMap<(usize, bool), u32>,
    /// The number of each stack. The key is the number of its caller and the number of its function.
    of_callers: HashMap<(u32, u32), u32>,
    /// The number of each stack of the trace on the page. Stacks that are left out are missing.
    known: HashMap<u32, u32>,
}

impl<'a> Numbers<'a> {
    /// The numbers of the samples' stacks. The stacks with the longest time come first, and are kept if there
    /// are too many.
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

    /// Gives a number to a stack of the trace. It goes outwards up to a caller that has a number, and then
    /// back. Each frame of the trace is visited once, however deep and many its stacks are.
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
                    // The reader has seen to it; a circle would have no end.
                    at = if caller < at { caller } else { 0 };
                }
                // Its definition is in a damaged part of the trace.
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

    /// The number of the stack in which a stack's function calls another function; `None` if there is no room for
    /// another stack.
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
