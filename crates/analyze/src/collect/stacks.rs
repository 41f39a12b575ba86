//! Collects the sampled call stacks of threads: sums of the samples by thread and stack, and the frames of each
//! numbered stack.

use std::collections::{BTreeMap, HashMap};

use tr_format::event::{Ktime, LifeKind};
use tr_format::stack::{Doing, Function, Module, Place, Sample, DEPTH};

use crate::ids::{TaskIx, ThreadIx};

/// The sum of all samples of one thread that have the same stack, [`Sampled::doing`] and [`Sampled::cut`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sampled {
    pub thread: ThreadIx,
    /// Whether the thread was on a CPU or off CPU when these samples of its stack were taken.
    pub doing: Doing,
    /// The number of the sampled stack; 0 if it is not known.
    pub stack: u32,
    /// Whether the outermost frames of the sampled stack are missing because the BPF programs do not copy so many
    /// frames.
    pub cut: bool,
    pub count: u64,
    /// The time of the thread that the summed samples stand for, in ns.
    pub ns: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Timed<T = ThreadIx> {
    pub thread: T,
    /// The time at which the stack was sampled. For a sample of a wait it is the end of the wait, which is the thread's
    /// switch-in or the end of the analyzed span.
    pub time: Ktime,
    /// Whether the thread was on a CPU or off CPU when the stack was sampled.
    pub doing: Doing,
    /// The number of the sampled stack; 0 if it is not known.
    pub stack: u32,
    /// The time that the stack sample stands for, in ns: the sampling period, or the time off CPU in the analyzed span.
    pub ns: u64,
}

/// The sampled stacks of a trace.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Stacks {
    /// The sums of the stack samples by thread and stack, in the order of the threads.
    pub samples: Vec<Sampled>,
    /// Each single stack sample, in the order of the threads and of time, with
    /// [`Options::samples`](crate::Options::samples); otherwise empty.
    pub timed: Vec<Timed>,
    /// The files that were mapped executable. The keys are the numbers by which the frames of stacks refer to the
    /// files.
    pub modules: BTreeMap<u32, Module>,
    frames: HashMap<u32, Place>,
    /// The sampled stacks by their numbers. Each is a linked list: the number of the stack without its innermost
    /// frame (the caller's stack, whose number is lower), and the innermost frame.
    stacks: HashMap<u32, (u32, u32)>,
    symbols: HashMap<u32, Box<[Function]>>,
}

impl Stacks {
    /// The numbers of the frames of a stack, the innermost frame first. A caller with an unknown number ends the
    /// list. No recorder writes a stack of more than [`DEPTH`] frames; further frames, in a forged file, are left
    /// out.
    pub fn frames(&self, stack: u32) -> impl Iterator<Item = u32> + '_ {
        let mut at = stack;
        let frames = std::iter::from_fn(move || {
            let (caller, frame) = self.stacks.get(&at)?;
            at = *caller;
            Some(*frame)
        });
        frames.take(DEPTH)
    }

    /// Splits a stack into the number of the stack without its innermost frame (the caller's stack) and the number
    /// of the innermost frame; `None` if the stack's number is not known.
    pub fn caller(&self, stack: u32) -> Option<(u32, u32)> {
        self.stacks.get(&stack).copied()
    }

    /// The place (file and offset, or address) of the instruction that a stack frame stands for; `None` if it is
    /// not known.
    pub fn place(&self, frame: u32) -> Option<Place> {
        self.frames.get(&frame).copied()
    }

    /// The functions at the place of a stack frame, the outermost one first (inlined functions follow their
    /// caller); empty if they are not known.
    pub fn functions(&self, frame: u32) -> &[Function] {
        self.symbols.get(&frame).map_or(&[], |all| all)
    }
}

/// The attributes that the samples of one sum have in common: the task, whether it was on a CPU, the number of the
/// stack, and whether outermost frames of the stack are missing.
type Key = (TaskIx, Doing, u32, bool);

#[derive(Debug, Default)]
pub(crate) struct Collected {
    sums: BTreeMap<Key, (u64, u64)>,
    /// Each single sample of a stack; `None` if the options of the analysis do not request single samples.
    pub timed: Option<Vec<Timed<TaskIx>>>,
    known: Stacks,
    /// How often a limit was reached, so that a sample, the stacks of a sample or a definition was left out.
    pub left_out: u64,
}

impl Collected {
    /// The largest number of stacks, of frames and their functions, of sums of samples and of single samples that are
    /// kept: the limit of each of these four tables. Each entry takes about 50 bytes.
    const MOST: usize = 1 << 22;

    /// The largest number of executable files, mapped by sampled processes, that an analysis keeps.
    const MODULES: usize = 1 << 16;

    /// Stores a definition that later stack samples refer to by its number: a mapped file, or the functions at a
    /// stack frame.
    pub fn define(&mut self, kind: &LifeKind) {
        let known = &mut self.known;
        let room = known.frames.len() + known.symbols.len() < Collected::MOST;
        match kind {
            LifeKind::Module(module) if known.modules.len() < Collected::MODULES => {
                known.modules.insert(module.number, (**module).clone());
            }
            LifeKind::Symbol(symbol) if room => {
                known.symbols.insert(symbol.frame, symbol.functions.clone());
            }
            _ => self.left_out += 1,
        }
    }

    /// Stores the stack frames and the stacks that a sample defines for later samples.
    pub fn stacks(&mut self, sample: &Sample) {
        let known = &mut self.known;
        let frames = known.frames.len() + known.symbols.len();
        if known.stacks.len().max(frames) >= Collected::MOST {
            self.left_out += 1;
            return;
        }
        known.frames.extend(sample.new_frames());
        let mut caller = sample.base;
        for (frame, number) in sample.frames.iter().zip(sample.first..) {
            known.stacks.insert(number, (caller, *frame));
            caller = number;
        }
    }

    /// Counts a sample of a task's stack. `ns` is the time that the sample stands for in the analyzed span.
    pub fn count(&mut self, task: TaskIx, time: Ktime, sample: &Sample, ns: u64) {
        let key = (task, sample.doing, sample.stack(), sample.cut);
        if self.sums.len() >= Collected::MOST && !self.sums.contains_key(&key) {
            self.left_out += 1;
            return;
        }
        let (count, sum) = self.sums.entry(key).or_default();
        *count += 1;
        *sum = sum.saturating_add(ns);
        match &mut self.timed {
            Some(timed) if timed.len() < Collected::MOST => timed.push(Timed {
                thread: task,
                time,
                doing: sample.doing,
                stack: sample.stack(),
                ns,
            }),
            Some(_) => self.left_out += 1,
            None => {}
        }
    }

    /// Returns the stacks and the sums of their samples, in the order of the threads. `thread` finds the thread of
    /// the model for a task.
    pub fn finish(self, thread: impl Fn(TaskIx) -> Option<ThreadIx>) -> Stacks {
        let sums = self.sums.into_iter();
        let mut samples: Vec<Sampled> = sums
            .filter_map(|((task, doing, stack, cut), (count, ns))| {
                Some(Sampled {
                    thread: thread(task)?,
                    doing,
                    stack,
                    cut,
                    count,
                    ns,
                })
            })
            .collect();
        samples.sort_by_key(|sample| (sample.thread, sample.doing, sample.stack, sample.cut));
        let timed = self.timed.into_iter().flatten();
        let mut timed: Vec<Timed> = timed
            .filter_map(|sample| {
                Some(Timed {
                    thread: thread(sample.thread)?,
                    time: sample.time,
                    doing: sample.doing,
                    stack: sample.stack,
                    ns: sample.ns,
                })
            })
            .collect();
        timed.sort_unstable();
        Stacks {
            samples,
            timed,
            ..self.known
        }
    }
}

/// Limits a stack sample to the span from `start` to `end`, including both. Returns the time of the sample and how
/// many ns of the span it stands for; `None` if it stands for no time in the span. A sample of a wait stands for
/// the whole wait, so it can be cut off at both ends.
///
/// ```text
///       |  span  |
///  wwwwwwwww     |           4 ns, at the end of the wait
///       |     wwwwwwwww      3 ns, at the end of the span
/// ```
pub(crate) fn part(
    time: Ktime,
    sample: &Sample,
    (start, end): (Ktime, Ktime),
) -> Option<(Ktime, u64)> {
    match sample.doing {
        Doing::OnCpu => (start..=end).contains(&time).then_some((time, sample.ns)),
        Doing::OffCpu => {
            let from = Ktime(time.0.saturating_sub(sample.ns)).max(start);
            let to = time.min(end);
            (from < to).then(|| (to, to.since(from)))
        }
    }
}

#[cfg(test)]
mod tests {
    use tr_format::event::{Tgid, Tid};

    use super::*;
    use crate::arena::Ix;

    fn sample(base: u32, first: u32, frames: &[u32]) -> Sample {
        Sample {
            tid: Tid(1),
            tgid: Tgid(1),
            base,
            first,
            frames: frames.into(),
            ..Sample::default()
        }
    }

    #[test]
    fn a_stack_is_its_caller_and_one_frame_more() {
        let mut all = Collected::default();
        all.stacks(&Sample {
            first_frame: 1,
            places: [Place::Kernel(7), Place::Module(2, 9)].into(),
            ..sample(0, 1, &[1, 2])
        });
        all.stacks(&sample(1, 3, &[2]));
        // The caller's stack (90) was defined in a damaged part of the trace that could not be read.
        all.stacks(&sample(90, 91, &[1]));
        let stacks = all.finish(|_| None);
        let frames = |stack| stacks.frames(stack).collect::<Vec<_>>();
        assert_eq!(frames(2), [2, 1]);
        assert_eq!(frames(3), [2, 1]);
        assert_eq!(frames(91), [1]);
        assert!(frames(92).is_empty());
        assert_eq!(stacks.place(2), Some(Place::Module(2, 9)));
        assert_eq!(stacks.place(3), None);
    }

    #[test]
    fn a_wait_has_a_part_in_each_span_that_it_reaches_into() {
        let wait = Sample {
            doing: Doing::OffCpu,
            ns: 60,
            ..sample(0, 1, &[])
        };
        let of = |from, to| part(Ktime(100), &wait, (Ktime(from), Ktime(to)));
        assert_eq!(of(0, 200), Some((Ktime(100), 60)));
        assert_eq!(of(70, 200), Some((Ktime(100), 30)));
        assert_eq!(of(0, 50), Some((Ktime(50), 10)));
        assert_eq!(of(60, 80), Some((Ktime(80), 20)));
        assert_eq!(of(100, 200), None);
        assert_eq!(of(0, 40), None);
        let on_cpu = Sample {
            ns: 60,
            ..sample(0, 1, &[])
        };
        let of = |from, to| part(Ktime(100), &on_cpu, (Ktime(from), Ktime(to)));
        assert_eq!(of(100, 200), Some((Ktime(100), 60)));
        assert_eq!(of(0, 100), Some((Ktime(100), 60)));
        assert_eq!(of(60, 99), None);
    }

    #[test]
    fn the_times_of_samples_are_kept_if_they_are_asked_for() {
        let task = TaskIx::new(3);
        for asked in [false, true] {
            let mut all = Collected {
                timed: asked.then(Vec::new),
                ..Collected::default()
            };
            for time in [30, 10] {
                all.count(task, Ktime(time), &sample(0, 1, &[]), 1);
            }
            let stacks = all.finish(|ix| (ix == task).then_some(ThreadIx(5)));
            let counts: Vec<u64> = stacks.samples.iter().map(|sampled| sampled.count).collect();
            assert_eq!(counts, [2]);
            let times: Vec<u64> = stacks.timed.iter().map(|sample| sample.time.0).collect();
            assert_eq!(times, if asked { vec![10, 30] } else { vec![] });
            assert!(stacks
                .timed
                .iter()
                .all(|sample| sample.thread == ThreadIx(5)));
        }
    }
}
