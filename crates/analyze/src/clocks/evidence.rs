//! Which event came before which, whatever the clocks say.
//!
//! The order of one CPU's own events is certain, as are these:
//! - a task's fork and first waking come before anything else of it, and its
//!   last switch-out after: on whatever CPU, however often it moved;
//! - a task runs on one CPU at a time. Where the clocks are already known well
//!   enough to exclude that one of two runs came before the other, the other
//!   order is certain and says more about the clocks;
//! - the only waking that can have ended a wait lies between the switch-in
//!   before the wait and the one after it.
//!
//! As long as nothing is corrected no order needs to be certain to see that the clocks
//! can be equal: every order that could speak against that is noted down
//! ([`Doubts`]), so when none does, none of the certain ones will.
//!
//! None of them is spoilt by a loss: what is lost is not used, and what is left
//! is still in that order. Where forks or exits are missing a tid may name
//! another task than before, so that the first rule is not used around there.

use std::collections::{BTreeMap, HashMap};

use tr_format::event::{CpuId, Ktime, LifeEvent, LifeKind, SchedEvent, SchedKind, Tid};

use super::bounds::{difference, Bounds, Leads, Stamp, FREE};
use super::Clocks;
use crate::gaps::Gaps;
use crate::order::Event;
use crate::places::{ByCpu, OfTids};
use crate::tasks::States;

/// No clock is believed to be off by half of this, ns: what a tid names does not
/// change within it, as ids are given in turn.
const HORIZON: u64 = 1_000_000_000;

/// How many wakings of a task are kept to be looked at.
const MOST_WAKINGS: usize = 64;

/// How many waits whose waking is not in its place are kept to be looked at.
const MOST_DOUBTS: usize = 1 << 16;

/// As many lives are no burden.
const FEW: usize = 4_096;

/// What is known of a tid's present holder.
#[derive(Default)]
struct Life {
    /// Its fork and its first waking, the later one of each CPU.
    births: Vec<Stamp>,
    /// With each CPU the first and the last event that it took part in.
    seen: Vec<(Stamp, Stamp)>,
    end: Option<Stamp>,
    /// It is not certain that all of this is of one task.
    mixed: bool,
    /// The latest stamp.
    latest: u64,
}

impl Life {
    fn see(&mut self, stamp: Stamp) {
        let seen = &mut self.seen;
        match seen.iter_mut().find(|(on, _)| on.clock == stamp.clock) {
            Some((first, _)) if stamp.shown < first.shown => *first = stamp,
            Some((_, last)) if stamp.shown > last.shown => *last = stamp,
            Some(_) => {}
            None => seen.push((stamp, stamp)),
        }
        self.latest = self.latest.max(stamp.at);
    }

    fn born(&mut self, stamp: Stamp) {
        let births = &mut self.births;
        match births.iter_mut().find(|on| on.clock == stamp.clock) {
            Some(last) if stamp.shown > last.shown => *last = stamp,
            Some(_) => {}
            None => births.push(stamp),
        }
        self.latest = self.latest.max(stamp.at);
    }
}

/// From a switch-in to the switch-out on the same CPU.
#[derive(Clone, Copy)]
struct Run {
    from: Stamp,
    to: Stamp,
    /// Its switch-out began a wait.
    waits: bool,
}

/// A task's latest runs, in an order that is certain, and who woke it.
#[derive(Default)]
struct Runs {
    before: Option<Run>,
    last: Option<Run>,
    wakings: Vec<Stamp>,
    /// The last waking by each CPU that there was no room for.
    dropped: Vec<Stamp>,
}

impl Runs {
    fn woken(&mut self, stamp: Stamp) {
        if self.wakings.len() == MOST_WAKINGS {
            self.drop(MOST_WAKINGS / 2);
        }
        self.wakings.push(stamp);
    }

    /// Drops the first wakings.
    fn drop(&mut self, count: usize) {
        for old in self.wakings.drain(..count) {
            let same = |last: &&mut Stamp| last.clock == old.clock;
            match self.dropped.iter_mut().find(same) {
                Some(last) => *last = old,
                None => self.dropped.push(old),
            }
        }
    }

    /// Drops the wakings up to the first that has not come before a stamp.
    fn drop_before(&mut self, stamp: Stamp) {
        let before = |waking: &Stamp| waking.shown < stamp.shown;
        let count = self.wakings.iter().take_while(|w| before(w)).count();
        self.drop(count);
    }
}

/// What could turn out to speak against clocks that are all equal.
#[derive(Default)]
pub struct Doubts {
    /// Two runs overlap, if not one of them came before the other.
    certain: bool,
    /// From the switch-in before a wait to the one after it, and a waking outside of
    /// that, which may have ended it.
    waits: Vec<(Stamp, Stamp, Stamp)>,
}

impl Doubts {
    /// None of it does, whatever the leads will be once they are known better.
    pub fn are_groundless(&self, leads: &Leads) -> bool {
        let outside = |(left, waking, began): &(Stamp, Stamp, Stamp)| {
            leads.is_after(*left, *waking) || leads.is_after(*waking, *began)
        };
        !self.certain && self.waits.iter().all(outside)
    }
}

/// Collects the evidence of a trace, event by event.
pub struct Evidence<'a> {
    /// The CPUs' clocks, by place; and which one a CPU has.
    places: &'a BTreeMap<CpuId, usize>,
    clock_of: ByCpu<usize>,
    /// By which the events' times were corrected.
    clocks: &'a Clocks,
    gaps: &'a Gaps,
    states: States,
    leads: Option<&'a Leads>,
    bounds: Bounds,
    lives: OfTids<Life>,
    swept: u64,
    /// How many lives there are to be before it is worth to look through them.
    many: usize,
    /// A tid was given again too soon: no tid is sure to name one task.
    reused: bool,
    /// Tasks all of whose switches are recorded.
    recorded: OfTids<()>,
    everybody: bool,
    current: ByCpu<(Tid, Stamp)>,
    runs: OfTids<Runs>,
    /// Of each clock and part of the time, once it was asked for: see `reach`.
    reaches: HashMap<(usize, usize), i64>,
    doubts: Doubts,
}

impl<'a> Evidence<'a> {
    /// Of clocks whose leads are known so far, if they are. `places` numbers the
    /// CPUs; the events to come are corrected by `clocks`, and so are the gaps;
    /// `everybody`: every task is recorded.
    pub fn new(
        places: &'a BTreeMap<CpuId, usize>,
        clocks: &'a Clocks,
        gaps: &'a Gaps,
        states: States,
        everybody: bool,
        leads: Option<&'a Leads>,
        bounds: Bounds,
    ) -> Evidence<'a> {
        let mut clock_of = ByCpu::default();
        for (cpu, place) in places {
            clock_of.insert(*cpu, *place);
        }
        Evidence {
            places,
            clock_of,
            clocks,
            gaps,
            states,
            leads,
            bounds,
            lives: OfTids::default(),
            swept: 0,
            many: FEW,
            reused: false,
            recorded: OfTids::default(),
            everybody,
            current: ByCpu::default(),
            runs: OfTids::default(),
            reaches: HashMap::new(),
            doubts: Doubts::default(),
        }
    }

    /// What could speak against equal clocks.
    pub fn doubts(&mut self) -> Doubts {
        std::mem::take(&mut self.doubts)
    }

    /// Takes the next event.
    pub fn add(&mut self, event: &Event) {
        let now = event.time().0;
        if self.lives.len() >= self.many && now > self.swept.saturating_add(HORIZON) {
            self.swept = now;
            self.sweep(now);
            // Twice as many as now live: so that all this looking costs no more than
            // the events did, whatever their times are.
            self.many = FEW.max(self.lives.len() * 2);
        }
        match event {
            Event::Sched(cpu, event) => {
                if let Some(stamp) = self.stamp(*cpu, event.time) {
                    self.sched(*cpu, stamp, event);
                }
            }
            Event::Life(event) => self.life(event),
        }
    }

    /// What that CPU's clock showed at a time.
    fn stamp(&self, cpu: CpuId, at: Ktime) -> Option<Stamp> {
        Some(Stamp {
            clock: self.clock_of.get(cpu)?,
            shown: self.clocks.shown(cpu, at).0,
            at: at.0,
        })
    }

    /// What it comes to; `None` when a tid names another task too soon for
    /// anything to be certain.
    pub fn finish(mut self) -> Option<Bounds> {
        self.sweep(u64::MAX);
        (!self.reused).then_some(self.bounds)
    }

    // ---- From birth to death ----

    /// Draws the conclusions from tasks of which nothing more can come.
    fn sweep(&mut self, now: u64) {
        let (bounds, gaps) = (&mut self.bounds, self.gaps);
        self.lives.retain(|_, life| {
            // A task that lives will be met again.
            if now < u64::MAX && (life.end.is_none() || life.latest.saturating_add(HORIZON) >= now)
            {
                return true;
            }
            conclude(life, gaps, bounds);
            false
        });
        if now < u64::MAX {
            let lives = &self.lives;
            let recorded = &self.recorded;
            self.runs
                .retain(|tid, _| recorded.contains(tid) || lives.contains(tid));
        }
    }

    fn see(&mut self, tid: Tid, stamp: Stamp) {
        if tid != Tid::IDLE {
            self.lives.or_default(tid).see(stamp);
        }
    }

    fn end(&mut self, tid: Tid, stamp: Stamp) {
        let life = self.lives.or_default(tid);
        life.see(stamp);
        life.mixed |= life.end.is_some_and(|end| end != stamp);
        life.end = Some(stamp);
    }

    fn fork(&mut self, tid: Tid, stamp: Stamp) {
        self.recorded.or_default(tid);
        if let Some(old) = self.lives.get_mut(tid) {
            // Someone else's, or its own events under a clock that is behind.
            let long_ago = old.latest.saturating_add(HORIZON) < stamp.at;
            if long_ago {
                if let Some(old) = self.lives.remove(tid) {
                    conclude(&old, self.gaps, &mut self.bounds);
                }
            } else if !old.births.is_empty() {
                self.reused = true;
            }
        }
        self.lives.or_default(tid).born(stamp);
    }

    fn life(&mut self, event: &LifeEvent) {
        if let LifeKind::Snapshot(snapshot) = &event.kind {
            if snapshot.followed {
                self.recorded.or_default(snapshot.tid);
            }
        }
        let Some(stamp) = event.cpu.and_then(|cpu| self.stamp(cpu, event.time)) else {
            return;
        };
        match &event.kind {
            LifeKind::Fork(fork) => {
                self.see(fork.parent_tid, stamp);
                self.fork(fork.tid, stamp);
            }
            LifeKind::Exec(exec) if exec.old_tid != exec.tid => {
                // Two tasks have changed names.
                for tid in [exec.old_tid, exec.tid] {
                    let life = self.lives.or_default(tid);
                    life.mixed = true;
                    life.see(stamp);
                }
            }
            LifeKind::Exec(exec) => self.see(exec.tid, stamp),
            LifeKind::Exit(exit) => self.see(exit.tid, stamp),
            LifeKind::Final(last) => self.end(last.tid, stamp),
            _ => {}
        }
    }

    // ---- From run to run ----

    fn sched(&mut self, cpu: CpuId, stamp: Stamp, event: &SchedEvent) {
        match event.kind {
            SchedKind::Waking {
                waker, wakee, new, ..
            } => {
                self.see(waker, stamp);
                if new {
                    // Of a task that is not recorded nothing else may be known.
                    if let Some(life) = self.lives.get_mut(wakee) {
                        life.born(stamp);
                    } else if self.everybody {
                        self.lives.or_default(wakee).born(stamp);
                    }
                    return;
                }
                self.see(wakee, stamp);
                self.runs.or_default(wakee).woken(stamp);
            }
            SchedKind::Switch {
                prev,
                next,
                prev_state,
                preempt,
                ..
            } => {
                self.see(prev, stamp);
                self.see(next, stamp);
                // Of others the end alone may be seen, and who has the name next.
                let recorded = self.everybody || self.recorded.contains(prev);
                let dead = self.states.is_dead(prev_state);
                if dead && recorded && prev != Tid::IDLE {
                    self.end(prev, stamp);
                }
                let began = self.current.get(cpu);
                self.current.insert(cpu, (next, stamp));
                if prev == Tid::IDLE {
                    return;
                }
                if let Some((tid, from)) = began.filter(|(tid, _)| *tid == prev && recorded) {
                    let (since, until) = (Ktime(from.at), event.time);
                    let lost = |spans: &crate::gaps::Spans| spans.first_in(since, until).is_some();
                    if !self.gaps.of(cpu).is_some_and(lost) {
                        let run = Run {
                            from,
                            to: stamp,
                            waits: prev_state != 0 && !preempt && !dead,
                        };
                        self.run(tid, run);
                    }
                }
            }
        }
    }

    fn run(&mut self, tid: Tid, run: Run) {
        let Some(leads) = self.leads else {
            return self.run_by_stamps(tid, run);
        };
        let runs = self.runs.or_default(tid);
        let Some(last) = runs.last.replace(run) else {
            return;
        };
        // The other order, this run all before the last one, cannot be.
        if !leads.is_after(run.to, last.from) {
            runs.before = None;
            return;
        }
        self.bounds.add(last.to, run.from);
        let Some(before) = runs.before.replace(last) else {
            return;
        };
        let (left, began) = (before.from, last.from);
        // Who may have ended the wait before the last run.
        runs.wakings.retain(|waking| !leads.is_after(left, *waking));
        runs.dropped.retain(|waking| !leads.is_after(left, *waking));
        let may = runs.wakings.iter().copied();
        let mut may = may.filter(|waking| !leads.is_after(*waking, began));
        let only = may.next().filter(|_| may.next().is_none());
        let lost = self
            .gaps
            .any()
            .first_in(Ktime(before.from.at), Ktime(run.to.at))
            .is_some();
        let whole = !lost && runs.dropped.is_empty();
        let Some(waking) = only.filter(|_| before.waits && whole) else {
            return;
        };
        // The next wait has a waking of its own: this one is not that.
        let next = |waking: &Stamp| leads.is_after(*waking, began);
        if last.waits && !runs.wakings.iter().any(next) {
            return;
        }
        // One that has not been met yet would stand behind this.
        if difference(run.to.at, last.from.at) <= self.reach(leads, began) {
            return;
        }
        self.bounds.add(left, waking);
        self.bounds.add(waking, began);
    }

    /// [`Evidence::run`] by equal clocks: whether the stamps contradict what it could
    /// conclude, whatever the leads will be. They allow each clock to be level with
    /// each other one, so they exclude no order that the stamps are in.
    fn run_by_stamps(&mut self, tid: Tid, run: Run) {
        if self.doubts.certain {
            return;
        }
        let runs = self.runs.or_default(tid);
        let Some(last) = runs.last.replace(run) else {
            return;
        };
        self.doubts.certain |= Bounds::contradicts(last.to, run.from);
        let Some(before) = runs.before.replace(last) else {
            return;
        };
        let (left, began) = (before.from, last.from);
        // A waking in its place is always one that may have ended the wait: then
        // it is the only one, or there is none. Without one it may be any other.
        runs.drop_before(left);
        let mut wakings = runs.wakings.iter();
        if !before.waits || wakings.any(|waking| waking.shown <= began.shown) {
            return;
        }
        let (since, until) = (Ktime(left.at), Ktime(run.to.at));
        if self.gaps.any().first_in(since, until).is_none() {
            let others = runs.wakings.iter().chain(&runs.dropped);
            let others = others.map(|waking| (left, *waking, began));
            self.doubts.waits.extend(others);
            self.doubts.certain |= self.doubts.waits.len() > MOST_DOUBTS;
        }
    }

    /// How far behind in the merged order an event of another CPU can stand that
    /// came before this one, ns; of the clocks that are bounded, at the most within
    /// the part of the time that this one is in.
    fn reach(&mut self, leads: &Leads, stamp: Stamp) -> i64 {
        let part = leads.part(stamp.at);
        if let Some(reach) = self.reaches.get(&(stamp.clock, part)) {
            return *reach;
        }
        // Between these the clocks' errors are straight lines.
        let corners = leads.corners(part);
        let errors = |cpu: &CpuId| corners.map(|at| self.clocks.ahead(*cpu, Ktime(at)));
        let here = self.places.iter().find(|(_, at)| **at == stamp.clock);
        let here = here.map_or([0; 3], |(cpu, _)| errors(cpu));
        let reach = |(cpu, place): (&CpuId, &usize)| {
            let most = leads.lead(*place, stamp);
            let apart = errors(cpu).into_iter().zip(here);
            let least = apart.map(|(there, here)| there.saturating_sub(here)).min();
            (most < FREE).then(|| most.saturating_sub(least.unwrap_or(0)))
        };
        let reach = self.places.iter().filter_map(reach).max().unwrap_or(0);
        self.reaches.insert((stamp.clock, part), reach);
        reach
    }
}

fn conclude(life: &Life, gaps: &Gaps, bounds: &mut Bounds) {
    let stamps = || life.seen.iter().map(|(first, _)| first).chain(&life.births);
    let begin = stamps().map(|stamp| stamp.at).min().unwrap_or(0);
    let unsure = gaps.lives_within(
        Ktime(begin.saturating_sub(HORIZON)),
        Ktime(life.latest.saturating_add(HORIZON)),
    );
    if life.mixed || unsure {
        return;
    }
    for (first, last) in &life.seen {
        for birth in &life.births {
            bounds.add(*birth, *first);
        }
        if let Some(end) = life.end {
            bounds.add(*last, end);
        }
    }
}
