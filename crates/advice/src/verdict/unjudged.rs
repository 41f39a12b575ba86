//! Decides which parts of a build no rule of advice has judged, so that the verdict names them as open points.

use crate::candidate::{Advice, AdviceKind};
use crate::clocks::Measurement;
use crate::facts::BuildFacts;
use crate::jobs::BuildJobs;
use crate::machine::WithheldTime;
use crate::rating::Silenced;
use crate::simulation::Simulation;
use crate::sleeps::known::KnownSleeps;
use crate::verdict::open;
use crate::verdict::{OpenKind, OpenPoint};

/// The results of the steps in which the advice is made, from the proposed changes to the lines of advice. The parts of
/// a build about which none of these results says anything are the open points.
pub(crate) struct Unjudged<'j> {
    pub simulation: &'j Simulation,
    pub withheld: &'j WithheldTime,
    pub jobs: &'j BuildJobs<'j>,
    pub sleeps: &'j KnownSleeps,
    /// For each segment of the critical path, whether some advice covers it.
    pub covered: &'j [bool],
    pub measurement: Option<&'j Measurement>,
    pub silenced: Option<&'j Silenced>,
    pub changes: &'j [Advice],
}

impl Unjudged<'_> {
    /// The open points of the verdict: the parts of a build that no rule has judged.
    pub fn open_points(&self, facts: &BuildFacts<'_>) -> Vec<OpenPoint> {
        let mut points = open::waits(facts, self.covered, &self.sleeps.polled);
        points.extend(self.measurement.map(|own| open::measurement(facts, own)));
        points.extend(open::limit(facts).filter(|_| self.simulation.affinity.is_none()));
        points.extend(self.number_of_jobs(facts));
        points.extend(self.sleeps_beside(facts));
        if !has(&points, OpenKind::Jobs) {
            points.extend(self.order(facts));
        }
        let is_advised = self.changes.iter().any(|line| !line.kind.is_machine());
        if points.is_empty() && !is_advised {
            points.extend(open::work(facts, self.simulation.own));
        }
        points
    }

    /// The open point (a part of the build that no rule has judged) about the number of jobs, if another number is not
    /// advised because other tasks or a quota take the CPUs, or if very many jobs ran at once.
    fn number_of_jobs(&self, facts: &BuildFacts<'_>) -> Option<OpenPoint> {
        match self.silenced {
            Some(silenced) => Some(open::jobs(silenced, self.withheld)),
            None => open::crowd(facts),
        }
    }

    /// The open point (a part of the build that no rule has judged) about sleeps that are not on the critical path, if
    /// no advice is about sleeps and the machine withheld time.
    fn sleeps_beside(&self, facts: &BuildFacts<'_>) -> Option<OpenPoint> {
        let is_sleep = |kind| matches!(kind, AdviceKind::Sleep | AdviceKind::Poll);
        let has_sleep = self.changes.iter().any(|advice| is_sleep(advice.kind));
        if has_sleep || self.withheld.lost() == 0 {
            return None;
        }
        let most = self.simulation.saved_without_sleeps();
        open::sleeps_beside(facts, most, self.simulation.own)
    }

    /// The open points of the verdict (parts of the build that no rule has judged) for the order of commands and for
    /// jobs that ran one after the other. The list is empty if some advice says how all tasks of the build could run.
    fn order(&self, facts: &BuildFacts<'_>) -> Vec<OpenPoint> {
        if self.changes.iter().any(is_about_all) {
            return Vec::new();
        }
        let own = self.simulation.own;
        let most = self.simulation.saved_by_order();
        let order = open::order(facts, &self.jobs.orders, most, own);
        let one_by_one = self.jobs.one_by_one(facts);
        let one_by_one = one_by_one.and_then(|jobs| open::one_by_one(facts, &jobs, own));
        order.into_iter().chain(one_by_one).collect()
    }
}

fn has(points: &[OpenPoint], kind: OpenKind) -> bool {
    points.iter().any(|point| point.kind == kind)
}

/// Whether an advice says how all tasks of the build could run. Advice about one task alone, about waits or about
/// repeated work does not say this, so the number and the order of the other tasks stay open points.
fn is_about_all(advice: &Advice) -> bool {
    let kind = advice.kind;
    let is_wait = kind.of_waits().is_some() && kind != AdviceKind::Lock;
    let is_other = kind.is_machine() || kind.is_generic() || kind == AdviceKind::Repeated;
    !is_other && !is_wait
}
