//! Reads a long trace in legs, several at once: each has a book of its own, that begins with
//! what a checkpoint tells, and is joined to the book of all before it when that is there.
//!
//! A leg that does not fit ([`Book::join`](crate::book::Book::join)) is read again, with the
//! book before it. So the result is the same as without legs, for any legs.

use std::collections::HashMap;

use rayon::prelude::*;
use tr_format::checkpoint::Checkpoint;
use tr_format::event::{Ktime, Stream};
use tr_format::reader::{FrameInfo, Trace};

use crate::order::blocks::Part;
use crate::order::waves::Rings;
use crate::order::{self, waves};
use crate::reading::{Input, Kept, Reading, Watch};
use crate::Options;

/// About how many events a leg has: so many that what is read twice of the blocks at its
/// ends does not count, and the tasks that it brings take little memory.
const EVENTS: u64 = 1 << 20;
/// And at least, so that each thread has some legs to read.
const LEAST: u64 = 1 << 18;
/// So many, about.
const LEGS: u64 = 4;
/// After so many legs that did not fit no more are read apart: they would hardly fit better.
const MISFITS: usize = 3;

/// A leg of the reading.
struct Leg {
    part: Part,
    /// The places of the frames that have events of it.
    frames: Vec<u32>,
    events: u64,
}

/// The place of the leg that a time is in, when each but the first begins at one of these.
fn place(moments: &[Ktime], time: Ktime) -> usize {
    moments.partition_point(|moment| *moment <= time)
}

/// Moments of checkpoints with about so many events between them, or more.
fn moments(trace: &Trace, events: u64) -> Option<Vec<Ktime>> {
    let end = trace.summary()?.end;
    let mut moments: Vec<Ktime> = Vec::new();
    for moment in trace.checkpoints() {
        let later = moment > moments.last().copied().unwrap_or(trace.meta().start);
        // A leg's span begins before it, and what was before that begins before that.
        if later && moment.0 > 2 && moment < end {
            moments.push(moment);
        }
    }
    let mut counts = vec![0u64; moments.len() + 1];
    for frame in trace.frames() {
        if let Some(count) = counts.get_mut(place(&moments, frame.min)) {
            *count = count.saturating_add(frame.events);
        }
    }
    let mut since_last = 0u64;
    let mut counts = counts.into_iter();
    moments.retain(|_| {
        since_last = since_last.saturating_add(counts.next().unwrap_or(0));
        let enough = since_last >= events.max(1);
        since_last = if enough { 0 } else { since_last };
        enough
    });
    Some(moments).filter(|moments| !moments.is_empty())
}

/// The legs of a trace, at least two of about so many events or more.
fn plan(trace: &Trace, events: u64) -> Option<Vec<Leg>> {
    let moments = moments(trace, events)?;
    let ends = moments.iter().copied().map(Some).chain([None]);
    let mut legs: Vec<Leg> = std::iter::once(Ktime(0))
        .chain(moments.iter().copied())
        .zip(ends)
        .map(|(since, until)| Leg {
            part: Part { since, until },
            frames: Vec::new(),
            events: 0,
        })
        .collect();
    let weight = |frame: &FrameInfo| frame.events.saturating_add(frame.bytes);
    let all = trace.frames().iter().map(weight);
    let (all, mut twice) = (all.fold(0, u64::saturating_add), 0u64);
    for (nth, frame) in (0..).zip(trace.frames()) {
        let (first, last) = (place(&moments, frame.min), place(&moments, frame.max));
        let of = legs.get_mut(first..=last).unwrap_or_default();
        twice =
            twice.saturating_add(weight(frame).saturating_mul((of.len() as u64).saturating_sub(1)));
        // A file can be made so that each frame belongs to every leg.
        if twice > all {
            return None;
        }
        for leg in of {
            leg.frames.push(nth);
            leg.events = leg.events.saturating_add(frame.events);
        }
    }
    Some(legs)
}

/// A reading of the whole trace in legs; `None` when it has to be read in one, or is not
/// worth reading otherwise.
pub fn read(
    input: &Input,
    options: &Options,
    span: (Ktime, Ktime),
    watch: Watch<'_>,
) -> Option<Reading> {
    let whole = (options.from, options.to, options.cpu) == (None, None, None);
    let everywhere = input.trace.meta().options.cpus.is_empty();
    let plain = whole && everywhere && !options.timeline && !options.careful;
    if !plain || input.checkpoint.is_some() || !input.is_whole() {
        return None;
    }
    let threads = rayon::current_num_threads();
    let events = match options.leg_events {
        Some(events) => events,
        None if threads > 1 => worth(input.trace, threads),
        None => return None,
    };
    let legs = plan(input.trace, events)?;
    let begin = |leg: &Leg| input.trace.read_checkpoint(leg.part.since).ok();
    let relay = Relay {
        input,
        options,
        span,
    };
    relay.run(&legs, begin, watch).map(|(reading, _)| reading)
}

/// How many events a leg is to have, so that there is work for all threads to the end.
fn worth(trace: &Trace, threads: usize) -> u64 {
    let share = events(trace) / (LEGS * threads as u64);
    share.clamp(LEAST, EVENTS)
}

fn events(trace: &Trace) -> u64 {
    let frames = trace.frames().iter();
    frames.fold(0, |all, frame| all.saturating_add(frame.events))
}

/// A reading in legs.
struct Relay<'a> {
    input: &'a Input<'a>,
    options: &'a Options,
    span: (Ktime, Ktime),
}

impl Relay<'_> {
    /// The reading, and how many legs were read apart from what is before them; `begin`
    /// gives what one begins with. `None` when a frame could not be read.
    fn run(
        &self,
        legs: &[Leg],
        begin: impl Fn(&Leg) -> Option<Checkpoint> + Sync,
        watch: Watch<'_>,
    ) -> Option<(Reading, usize)> {
        let trace = self.input.trace;
        let all = legs.iter().map(|leg| leg.events);
        let all = all.fold(0, u64::saturating_add);
        let (first, mut legs) = legs.split_first()?;
        let mut kept = Kept::new(self.input, self.options, self.span, None);
        // The legs that come next, and the books of them; the first one needs none.
        let mut ready: Vec<(&Leg, Option<Kept>)> = vec![(first, None)];
        let (mut done, mut joined, mut misfits) = (0u64, 0, 0);
        while !ready.is_empty() {
            let now;
            (now, legs) = legs.split_at(rayon::current_num_threads().min(legs.len()));
            let apart = misfits < MISFITS;
            let read = |leg| {
                let checkpoint = begin(leg).filter(|_| apart);
                (
                    leg,
                    checkpoint.map(|checkpoint| self.keep(leg, &checkpoint)),
                )
            };
            (ready, ()) = rayon::join(
                || now.par_iter().with_max_len(1).map(read).collect(),
                || {
                    for (leg, apart) in ready {
                        let tried = apart.is_some();
                        if apart.is_some_and(|apart| kept.join(apart)) {
                            joined += 1;
                        } else {
                            misfits += usize::from(tried);
                            kept.go(leg.waves(trace), &mut |_, _| {});
                        }
                        done = done.saturating_add(leg.events);
                        watch(done, all);
                    }
                },
            );
        }
        let found = between_frames(trace, kept.rings());
        // Of a frame that could not be read nothing was measured.
        (!kept.has_losses()).then(|| (kept.finish(found), joined))
    }

    /// Reads a leg with a book of its own.
    fn keep(&self, leg: &Leg, checkpoint: &Checkpoint) -> Kept {
        let before = Ktime(leg.part.since.0.saturating_sub(1));
        let mut kept = Kept::new(self.input, self.options, (before, self.span.1), None);
        kept.open_leg(checkpoint);
        kept.go(leg.waves(self.input.trace), &mut |_, _| {});
        kept
    }
}

impl Leg {
    fn waves<'a>(&self, trace: &'a Trace) -> order::TraceWaves<'a> {
        let frames = trace.frames();
        let frames = self.frames.iter().filter_map(|at| frames.get(*at as usize));
        order::waves(trace, frames, self.part, None, waves::EVENTS)
    }
}

/// The largest step back in time inside one ring from one frame to another. Of the
/// lifecycle's frames `rings` has what they have of a ring.
fn between_frames(trace: &Trace, rings: &Rings) -> u64 {
    let mut latest: HashMap<Stream, u64> = HashMap::new();
    let mut largest = 0;
    for frame in trace.frames() {
        let span = match frame.stream {
            Stream::Cpu(_) => Some((frame.min.0, frame.max.0)),
            _ => rings.get(&frame.number).copied(),
        };
        if let Some((least, most)) = span {
            let latest = latest.entry(frame.stream).or_default();
            largest = largest.max(latest.saturating_sub(least));
            *latest = (*latest).max(most);
        }
    }
    largest
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)] // of our own traces

    use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

    use proptest::prelude::*;
    use proptest::test_runner::TestRunner;
    use tr_format::checkpoint::Who;
    use tr_format::event::{Argv, CgroupId, Comm, Exit, Tid};
    use tr_format::source::Source;
    use tr_format::writer::{Often, Writer};
    use tr_sim::recording::Recording;
    use tr_sim::strategy;

    use super::*;
    use crate::model::Quality;
    use crate::reading::{self, Known};

    /// Checkpoints at every second mark of progress.
    fn set(writer: &mut Writer<&mut Vec<u8>>) {
        writer.set_checkpoints(Often {
            events: 1,
            bytes: 0,
        });
    }

    /// A run's trace, and the lengths of legs.
    fn cases() -> impl Strategy<Value = (Trace, u64)> {
        let events = prop_oneof![1..20u64, 20..400u64];
        (strategy::lossless(3_000_000), events).prop_map(|(case, events)| {
            let (mut recording, _) = Recording::record(&case.config);
            case.plan.apply(&mut recording);
            let bytes = recording.to_file_with(&case.cut, set).unwrap();
            (Trace::open(Source::bytes(bytes)).unwrap(), events)
        })
    }

    /// The analysis in one and in legs that begin with what `lie` makes of their
    /// checkpoints; how many legs there are, and were read apart.
    fn both(
        trace: &Trace,
        events: u64,
        lie: impl Fn(&mut Checkpoint) + Sync,
    ) -> ([String; 2], [usize; 2]) {
        let mut known = Known::default();
        trace.gaps().iter().for_each(|event| known.add(event));
        let input = Input {
            trace,
            known: &known,
            checkpoint: None,
        };
        let options = Options {
            leg_events: Some(u64::MAX),
            ..Options::default()
        };
        let span = input.span(&options);
        let told = |reading| {
            format!(
                "{:#?}",
                input.analysis(&options, reading, Quality::default())
            )
        };
        let whole = told(reading::read(&input, &options, span, None, &mut |_, _| {}));
        let Some(legs) = plan(trace, events) else {
            return ([whole.clone(), whole], [0, 0]);
        };
        let begin = |leg: &Leg| {
            let mut checkpoint = trace.read_checkpoint(leg.part.since).unwrap();
            lie(&mut checkpoint);
            Some(checkpoint)
        };
        let relay = Relay {
            input: &input,
            options: &options,
            span,
        };
        let (reading, joined) = relay.run(&legs, begin, &mut |_, _| {}).unwrap();
        ([whole, told(reading)], [legs.len() - 1, joined])
    }

    /// Changes one thing; places stay within the lists.
    fn lie(checkpoint: &mut Checkpoint, seed: u64) {
        let mut state = seed ^ checkpoint.at.0;
        let mut draw = |below: usize| {
            state = state
                .wrapping_mul(0x5851_f42d_4c95_7f2d)
                .wrapping_add(0x1405_7b7e_f767_814f);
            (state >> 33) as usize % below.max(1)
        };
        let (tasks, processes) = (checkpoint.tasks.len(), checkpoint.processes.len());
        let (task, process, cpu) = (draw(tasks), draw(processes), draw(checkpoint.cpus.len()));
        let (other, place) = (draw(tasks), draw(processes) as u32);
        let steps = checkpoint
            .tasks
            .get(other)
            .map(|task| task.steps.clone())
            .unwrap_or_default();
        let what = draw(28);
        let (Some(task), Some(process)) = (
            checkpoint.tasks.get_mut(task),
            checkpoint.processes.get_mut(process),
        ) else {
            return;
        };
        match what {
            0 => task.tid.0 += 1,
            1 => task.ns_tid.0 += 1,
            2 => task.process = place,
            3 => task.parent = None,
            4 => task.parent = Some(other as u32),
            5 => task.forked ^= true,
            6 => task.comm = Comm::new(b"lie"),
            7 => task.exit = None,
            8 => task.exit = Some((Ktime(draw(1 << 40) as u64), Exit::default())),
            9 => task.vfork_child = None,
            10 => task.vfork_child = Some(other as u32),
            11 => task.steps = steps,
            12 => drop(task.steps.pop()),
            13 => task.steps.extend(steps),
            14 => process.pid.0 += 1,
            15 => process.ppid = None,
            16 => process.parent = None,
            17 => process.parent = Some(place),
            18 => process.forked ^= true,
            19 => process.cgroup.0 += 1,
            20 => process.argv = Argv::from_args(["lie"]),
            21 => process.program = None,
            22 => process.status = Some(1),
            23 => process.max_rss = Some(1),
            24 => {
                process.gone = Some(Exit {
                    min_flt: 77,
                    ..Exit::default()
                })
            }
            25 => checkpoint
                .cgroups
                .push((CgroupId(1), b"/lie".to_vec().into())),
            _ => {
                if let Some(cpu) = checkpoint.cpus.get_mut(cpu) {
                    let idle = draw(2) == 0;
                    cpu.current = if idle {
                        Who::Other(Tid::IDLE)
                    } else {
                        Who::Task(other as u32)
                    };
                }
            }
        }
    }

    fn first_difference([whole, legs]: &[String; 2]) -> Option<(String, String)> {
        let mut lines = whole.lines().zip(legs.lines());
        let differ = lines.find(|(one, other)| one != other);
        differ.map(|(one, other)| (one.into(), other.into()))
    }

    /// Draws cases; how many legs there were, and were read apart.
    fn compare(count: u32, lie: impl Fn(&mut Checkpoint, u64) + Sync) -> [usize; 2] {
        let sums = [const { AtomicUsize::new(0) }; 2];
        let mut runner = TestRunner::new(strategy::cases(count));
        let done = runner.run(&(cases(), any::<u64>()), |((trace, events), seed)| {
            let lie = |checkpoint: &mut Checkpoint| lie(checkpoint, seed);
            let (told, counts) = both(&trace, events, lie);
            prop_assert_eq!(first_difference(&told), None);
            for (sum, count) in sums.iter().zip(counts) {
                sum.fetch_add(count, Relaxed);
            }
            Ok(())
        });
        done.unwrap_or_else(|error| panic!("{error}"));
        sums.map(AtomicUsize::into_inner)
    }

    #[test]
    fn most_legs_are_read_apart() {
        let [legs, apart] = compare(1000, |_, _| {});
        println!("{apart} of {legs}");
        assert!(legs > 250 && apart * 10 > legs * 7, "{apart} of {legs}");
    }

    /// A checkpoint may come from a stranger.
    #[test]
    fn what_a_checkpoint_says_makes_no_difference() {
        let [legs, apart] = compare(1000, lie);
        println!("{apart} of {legs}");
        assert!(legs > 250 && apart * 10 < legs * 7, "{apart} of {legs}");
    }
}
