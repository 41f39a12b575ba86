//! Decides which of several events with equal times comes first.

use tr_format::event::{
    Account, CpuId, Detached, Exec, Exit, Fork, Ktime, LifeKind, SchedEvent, SchedKind, Switch,
    TaskEnd, Tid, Waking,
};

use super::Tracker;
use crate::order::{Event, MISSING_EVENTS};
use crate::state::State;

/// The return value of [`Tracker::misfit`] for an event that fits the states of its tasks well, so that it comes
/// first among events with equal times. The number is part of the layout of a key for sorting.
const GOOD_FIT: u8 = 0;
/// The return value of [`Tracker::misfit`] for an event that is possible in the states of its tasks but unlikely.
/// The number is part of the layout of a key for sorting.
const UNLIKELY_FIT: u8 = 1;

impl Tracker {
    /// Returns how badly an event fits the states of its tasks: [`GOOD_FIT`], [`UNLIKELY_FIT`], or [`MISSING_EVENTS`]
    /// if the event contradicts them unless other events are missing.
    pub fn misfit(&self, event: &Event) -> u8 {
        match event {
            Event::Sched(cpu, event) => self.misfit_sched(*cpu, event),
            Event::Life(event) => self.misfit_life(event.time, &event.kind),
        }
    }

    fn misfit_sched(&self, cpu: CpuId, event: &SchedEvent) -> u8 {
        let time = event.time;
        match event.kind {
            SchedKind::Switch(Switch { prev, next, .. }) => {
                let leaves = match self.state_of(prev, time).filter(|_| prev != Tid::IDLE) {
                    Some(State::On(on)) if on.is_some_and(|on| on != cpu) => MISSING_EVENTS,
                    None | Some(State::On(_) | State::Unknown) => GOOD_FIT,
                    Some(_) => MISSING_EVENTS,
                };
                let enters = match self.state_of(next, time).filter(|_| next != Tid::IDLE) {
                    Some(State::On(_) | State::Dead) => MISSING_EVENTS,
                    Some(State::Waiting(_)) => UNLIKELY_FIT,
                    None if next != Tid::IDLE => self.unborn(self.system_wide, time),
                    None | Some(State::Runnable { .. } | State::Unknown) => GOOD_FIT,
                };
                leaves.max(enters)
            }
            SchedKind::Waking(Waking { wakee, new, .. }) => match self.state_of(wakee, time) {
                Some(State::Dead) => MISSING_EVENTS,
                None => self.unborn(self.system_wide || new, time),
                _ => GOOD_FIT,
            },
        }
    }

    fn misfit_life(&self, time: Ktime, kind: &LifeKind) -> u8 {
        match kind {
            LifeKind::Fork(Fork {
                tid, parent_tid, ..
            }) => match self.state_of(*tid, time) {
                // A parent forks while it is running, so the fork fits badly if the parent is off CPU.
                Some(State::Dead) | None => match self.state_of(*parent_tid, time) {
                    Some(State::Runnable { .. } | State::Waiting(_)) => UNLIKELY_FIT,
                    _ => GOOD_FIT,
                },
                Some(_) => MISSING_EVENTS,
            },
            LifeKind::Exec(Exec { old_tid: tid, .. }) | LifeKind::Exit(Exit { tid, .. }) => {
                match self.state_of(*tid, time) {
                    Some(State::On(_)) => GOOD_FIT,
                    Some(State::Dead) | None => MISSING_EVENTS,
                    Some(_) => UNLIKELY_FIT,
                }
            }
            LifeKind::Final(last) => match self.state_of(last.tid, time) {
                Some(State::Dead) | None => GOOD_FIT,
                Some(_) => MISSING_EVENTS,
            },
            LifeKind::Account(Account { tid, .. })
            | LifeKind::Detached(Detached { tid, .. })
            | LifeKind::End(TaskEnd { tid, .. }) => match self.state_of(*tid, time) {
                Some(State::Dead) | None => MISSING_EVENTS,
                Some(_) => GOOD_FIT,
            },
            _ => GOOD_FIT,
        }
    }

    /// How badly an event of an unknown task fits. If every task must have a recorded fork (`forked`) and no fork is
    /// lost, the fork of this task is still to come. The fork must come first, so the event does not fit yet.
    fn unborn(&self, forked: bool, time: Ktime) -> u8 {
        if forked && self.begun && self.gaps.lives_before(time).is_none() {
            MISSING_EVENTS
        } else {
            UNLIKELY_FIT
        }
    }

    fn state_of(&self, tid: Tid, time: Ktime) -> Option<State> {
        // If a task has left this tid by an exec before this time, the tid may belong to any other task now, so no
        // state is returned.
        let left = |(since, old, _): (Ktime, Tid, _)| old == tid && since != time;
        let ix = self.holder(tid, time)?;
        let stale = self.renamed.is_some_and(left) && self.by_tid.get(tid.0).is_none();
        (!stale).then(|| self.tasks[ix].state)
    }
}
