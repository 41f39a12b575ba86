//! Clocks that disagree between CPUs: what the trace proves about them, and the
//! times that follow.
//!
//! [`evidence`] finds events whose order is certain, [`bounds`] what that says
//! about the differences of the clocks. [`estimate`] reads the trace as often as
//! it takes: each time the clocks are known better, so that more of the order is
//! certain. Then the largest group of CPUs whose clocks may be equal is taken
//! for right, and each other clock is put into the middle of what is possible.
//! When the first reading meets nothing that equal clocks could not have shown,
//! whatever order turned out to be certain, they are equal, and it is the last; or the
//! second one, when some of that is certain only then.
//!
//! Nothing is corrected that may be right: only a clock of which the trace
//! proves that it cannot agree with the others.

mod bounds;
mod evidence;
mod solution;

use std::collections::{BTreeMap, BTreeSet};

use tr_format::event::{CpuId, Ktime, LifeEvent, LifeKind, Stream};
use tr_format::meta::Scope;
use tr_format::reader::Trace;

use self::bounds::{Bounds, Grid, Leads, Stamp, FREE};
use self::evidence::{Doubts, Evidence};
use self::solution::Solution;
use crate::model::Clocks as Report;
use crate::order::{self, Event};
use crate::tasks::States;
use crate::Known;

/// With more CPUs than this nothing is estimated: the time grows with the third
/// power.
const MOST_CPUS: usize = 512;

/// How often the trace is read at most.
const ROUNDS: usize = 6;

/// The errors of the CPUs' clocks, and what becomes of a stamp.
#[derive(Clone, Debug)]
pub struct Clocks {
    grid: Grid,
    /// At each part's middle, ns; a CPU that is not listed is right.
    errors: BTreeMap<CpuId, Vec<i64>>,
    /// How far the corrected times of two events can be wrong against each other.
    uncertainty: u64,
}

impl Clocks {
    fn right(grid: Grid) -> Clocks {
        Clocks {
            grid,
            errors: BTreeMap::new(),
            uncertainty: 0,
        }
    }

    /// How far a CPU's clock is ahead at a time: between the middles of two parts
    /// in proportion.
    fn ahead(&self, cpu: CpuId, time: Ktime) -> i64 {
        let Some(errors) = self.errors.get(&cpu) else {
            return 0;
        };
        let part = self.grid.part(time.0);
        let left = match time.0 >= self.grid.middle(part) {
            true => part,
            false => part.saturating_sub(1),
        };
        let at = |part: usize| errors.get(part).or(errors.last()).copied().unwrap_or(0);
        let along = time.0.saturating_sub(self.grid.middle(left));
        let (from, to) = (i128::from(at(left)), i128::from(at(left + 1)));
        let (along, step) = (
            i128::from(along.min(self.grid.step)),
            i128::from(self.grid.step),
        );
        let error = from + ((to - from) * along).div_euclid(step);
        error.clamp(-i128::from(FREE), i128::from(FREE)) as i64
    }

    /// The time that a stamp of a CPU's clock stands for.
    pub fn correct(&self, cpu: CpuId, stamp: Ktime) -> Ktime {
        if !self.errors.contains_key(&cpu) {
            return stamp;
        }
        // The error is known by the true time. Each step makes what is left of the
        // way smaller by the drift, more than a thousand times.
        let step = |near: Ktime| less(stamp, self.ahead(cpu, near));
        step(step(step(stamp)))
    }

    /// What a CPU's clock shows at a time; to 1 ns what was corrected to that.
    fn shown(&self, cpu: CpuId, time: Ktime) -> Ktime {
        less(time, -self.ahead(cpu, time))
    }

    /// The smallest and the largest error of any clock at any time, or 0.
    fn extremes(&self) -> (i64, i64) {
        let all = || self.errors.values().flatten().copied();
        let (least, most) = (all().min(), all().max());
        (least.unwrap_or(0).min(0), most.unwrap_or(0).max(0))
    }

    /// Nothing in a block of a stream is earlier than this, when its stamps begin
    /// at `min`.
    pub fn earliest(&self, stream: Stream, min: Ktime) -> Ktime {
        match stream {
            Stream::Cpu(cpu) => self.correct(cpu, min),
            // Of all CPUs, and the spans told are widened.
            Stream::Lifecycle | Stream::Recorder => {
                let least = less(min, self.extremes().1);
                Ktime(least.0.saturating_sub(self.uncertainty))
            }
        }
    }

    /// Corrects a lifecycle event's times.
    pub fn correct_life(&self, event: &mut LifeEvent) {
        if let LifeKind::Lost(lost) = &mut event.kind {
            (event.time, lost.until) = self.correct_span(lost.stream, event.time, lost.until);
        } else if let Some(cpu) = event.cpu {
            event.time = self.correct(cpu, event.time);
            if let LifeKind::Fork(fork) = &mut event.kind {
                fork.start_time = self.correct(cpu, fork.start_time);
            }
        }
    }

    /// Where events of a stream are missing, at the most.
    pub fn correct_span(&self, stream: Stream, since: Ktime, until: Ktime) -> (Ktime, Ktime) {
        let (since, until) = match stream {
            Stream::Cpu(cpu) => (self.correct(cpu, since), self.correct(cpu, until)),
            // Of whatever CPU.
            Stream::Lifecycle => {
                let (least, most) = self.extremes();
                (less(since, most), less(until, least))
            }
            Stream::Recorder => return (since, until),
        };
        (
            Ktime(since.0.saturating_sub(self.uncertainty)),
            Ktime(until.0.saturating_add(self.uncertainty)),
        )
    }

    /// How far the times of two events can be wrong against each other, once they
    /// are corrected and in a possible order, ns.
    pub fn uncertainty(&self) -> u64 {
        self.uncertainty
    }

    /// Events whose corrected times are no further apart than this may have come
    /// the other way round, ns.
    pub fn tolerance(&self) -> u64 {
        self.uncertainty / 2
    }
}

/// `time - error`, within what can be written.
fn less(time: Ktime, error: i64) -> Ktime {
    Ktime(match error >= 0 {
        true => time.0.saturating_sub(error.unsigned_abs()),
        false => time.0.saturating_add(error.unsigned_abs()),
    })
}

/// What a look at the clocks has brought.
pub enum Verdict {
    /// They may be equal for all that the trace tells.
    Equal,
    /// They cannot be equal, and it is not clear what they are.
    Unclear,
    /// They are off by this.
    Off(Clocks, Report),
}

/// Looks for the clocks' errors, in a trace that contradicts itself.
pub(crate) fn estimate(trace: &Trace, known: &Known) -> Verdict {
    let meta = trace.meta();
    let mut cpus: BTreeSet<CpuId> = meta.cpus.iter().copied().collect();
    let (mut first, mut last) = (meta.start, meta.start);
    for frame in trace.frames() {
        if let Stream::Cpu(cpu) = frame.stream {
            cpus.insert(cpu);
        }
        (first, last) = (first.min(frame.min), last.max(frame.max));
    }
    if cpus.len() < 2 || cpus.len() > MOST_CPUS {
        return Verdict::Equal;
    }
    let places: BTreeMap<CpuId, usize> = cpus.into_iter().zip(0..).collect();
    let recorder = places.len();
    let states = States::new(&meta.states);
    let everybody = meta.scope == Scope::All && meta.options.cpus.is_empty();

    let mut grid = Grid::new(first.0, last.0, recorder + 1);
    let mut clocks = Clocks::right(grid);
    let mut leads: Option<Leads> = None;
    let mut best: Option<Solution> = None;
    // What could speak against equal clocks, as long as nothing else does.
    let mut doubts: Option<Doubts> = None;
    for round in 0..ROUNDS {
        let gaps = known.gaps(Some(&clocks));
        let bounds = Bounds::new(recorder + 1, grid);
        let mut evidence = Evidence::new(
            &places,
            &clocks,
            &gaps,
            states,
            everybody,
            leads.as_ref(),
            bounds,
        );
        let mut margins = Margins::default();
        // Right clocks have nothing to correct, and no order to be doubted.
        let wrong = Some(&clocks).filter(|clocks| !clocks.errors.is_empty());
        let mut merge = order::merge(trace, wrong);
        while let Some(event) = merge.next_event() {
            margins.see(&event, trace);
            evidence.add(&event);
        }
        if round == 0 {
            doubts = Some(evidence.doubts());
        }
        let Some(mut bounds) = evidence.finish() else {
            return Verdict::Equal;
        };
        margins.bound(&mut bounds, trace, &clocks, &places);
        // Before the clocks are known roughly, the time of a bound isn't either.
        let slacks: &[i64] = match round {
            0 => &[0, 1_000, 10_000, 100_000, 1_000_000],
            _ => &[0, 100],
        };
        let solved = slacks.iter().find_map(|slack| bounds.solve(*slack));
        let Some(now) = solved else {
            return Verdict::Unclear;
        };
        // Then the further rounds would end there as well.
        doubts = doubts.filter(|_| bounds.allow_equal());
        if doubts
            .as_ref()
            .is_some_and(|doubts| doubts.are_groundless(&now))
        {
            return Verdict::Equal;
        }
        let solution = Solution::new(&now, &bounds, grid, &places, &margins.cpus);
        clocks = solution.clocks.clone();
        let before = best.replace(solution);
        // Nothing is certain by the first ones, if the times were not.
        leads = Some(now).filter(|_| round > 0 || clocks.errors.is_empty());
        // Once more is known of the order, and then as long as it pays.
        let (now, before) = (best.as_ref(), before.as_ref());
        if let (3.., Some(now), Some(before)) = (round, now, before) {
            if now.spread() >= before.spread() - before.spread() / 8 {
                break;
            }
        }
        if let Some((first, last)) = margins.span {
            grid = Grid::new(first.0, last.0, recorder + 1);
        }
    }
    match best {
        Some(solution) if !solution.clocks.errors.is_empty() => {
            Verdict::Off(solution.clocks, solution.report)
        }
        Some(_) => Verdict::Equal,
        None => Verdict::Unclear,
    }
}

/// Where the span of the recording touches the CPUs' events.
#[derive(Default)]
struct Margins {
    /// CPUs that have scheduling events, and from when to when.
    cpus: BTreeSet<CpuId>,
    span: Option<(Ktime, Ktime)>,
    /// COMMAND's first exec, and its exit.
    exec: Option<(CpuId, Ktime)>,
    exit: Option<(CpuId, Ktime)>,
}

impl Margins {
    fn see(&mut self, event: &Event, trace: &Trace) {
        match event {
            Event::Sched(cpu, event) => {
                self.cpus.insert(*cpu);
                let (first, last) = self.span.unwrap_or((event.time, event.time));
                self.span = Some((first.min(event.time), last.max(event.time)));
            }
            Event::Life(event) => {
                let root = trace.meta().root;
                let here = event.cpu.map(|cpu| (cpu, event.time));
                match &event.kind {
                    LifeKind::Exec(exec) if root == Some(exec.tgid) && self.exec.is_none() => {
                        self.exec = here;
                    }
                    LifeKind::Exit(exit) if root == Some(exit.tgid) && exit.group_dead => {
                        self.exit = here;
                    }
                    _ => {}
                }
            }
        }
    }

    /// The recorder let COMMAND go after the start, and saw it end before the end.
    fn bound(
        &self,
        bounds: &mut Bounds,
        trace: &Trace,
        clocks: &Clocks,
        places: &BTreeMap<CpuId, usize>,
    ) {
        let recorder = |time: Ktime| Stamp {
            clock: places.len(),
            shown: time.0,
            at: time.0,
        };
        let stamp = |(cpu, at): (CpuId, Ktime)| {
            Some(Stamp {
                clock: *places.get(&cpu)?,
                shown: clocks.shown(cpu, at).0,
                at: at.0,
            })
        };
        if let Some(exec) = self.exec.and_then(stamp) {
            bounds.add(recorder(trace.meta().start), exec);
        }
        let ended = trace.summary().filter(|summary| summary.status.is_some());
        if let Some((exit, summary)) = self.exit.and_then(stamp).zip(ended) {
            bounds.add(exit, recorder(summary.end));
        }
    }
}
