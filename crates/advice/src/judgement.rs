//! Judges a build: makes the verdict from the facts, the time that the machine withheld, and the lines of advice.

use tr_analyze::critical_path::{by_kind, NoPath, Segment, TimeKind};

use super::candidate::{Advice, AdviceKind};
use super::facts::BuildFacts;
use super::lines::{own_changes, AdviceLines};
use super::machine::WithheldTime;
use super::verdict::{errors, Blame, BuildVerdict, CpuOwners, Mostly, OpenKind};
use tr_insight::{exit, path};

/// The verdict on a build before its open points are known. `bound`, given only if no change is advised, is the least
/// time in nanoseconds in which the CPUs can do the build's work. `had` has the tasks that used the CPUs during the
/// build.
pub(super) fn verdict(
    facts: &BuildFacts<'_>,
    withheld: &WithheldTime,
    lines: &AdviceLines,
    bound: Option<u64>,
    had: CpuOwners,
) -> BuildVerdict {
    let (changes, saved) = (&lines.changes, lines.saved());
    let stolen = changes
        .iter()
        .find(|advice| advice.kind == AdviceKind::Stolen);
    let (others, quota) = (withheld.others, withheld.throttled);
    let much = |kind: AdviceKind, ns: u64| ns > 0 && ns.saturating_mul(kind.least()) >= facts.wall;
    let machine =
        stolen.is_some() || much(AdviceKind::Others, others) || much(AdviceKind::Throttled, quota);
    let lost = withheld.lost();
    let segments = facts.path.segments.iter();
    let segments = segments.filter(|segment| segment.kind.is_wait());
    let waited = segments.map(Segment::length).fold(0, u64::saturating_add);
    let alone = withheld.alone(facts);
    // During some of the lost time, the CPUs ran tasks of the build that are not on the critical path. The build cannot
    // take less time than its CPUs need for all of its work, so that time is the lower limit.
    let alone = if lost > alone {
        let soonest = facts.limits().map_or(0, |limits| limits.on(facts.cpus));
        alone.max(soonest.min(facts.wall))
    } else {
        alone
    };
    let error = errors(
        lost,
        alone,
        by_kind(&facts.path.segments).of(TimeKind::Disk),
    );
    BuildVerdict {
        blame: match (machine, saved) {
            (true, Some(_)) => Blame::Both,
            // Advice on work that runs alone is not certain to help, because the work can perhaps not be divided.
            (true, None) if changes.iter().any(|line| line.kind == AdviceKind::Alone) => {
                Blame::Perhaps
            }
            (true, None) => Blame::Machine,
            (false, _) => Blame::Code,
        },
        wall: facts.wall,
        alone,
        alone_at_least: alone.saturating_sub(error.below),
        alone_at_most: alone.saturating_add(error.above).min(facts.wall),
        others: had.others,
        nobody: had.nobody,
        names: had.names,
        quota,
        quota_of: withheld.container.clone(),
        stolen: stolen.map_or(0, |advice| advice.gain),
        changes: saved.unwrap_or(0),
        unless_meant: own_changes(changes).all(|line| line.unless_meant),
        bound,
        // A wait longer than the build's own time is not shown: other tasks cause a part of such a wait, for example if
        // a loop checks for the end of work that they slow down.
        mostly: waits(facts, bound.unwrap_or(0)).filter(|mostly| mostly.ns <= alone),
        waits: if waited <= alone && waited > alone / 2 {
            waited
        } else {
            0
        },
        open: Vec::new(),
        failed: exit::command_failed(facts.analysis),
        cpus: facts.cpus,
    }
}

impl BuildVerdict {
    /// Lowers the least time of the forecast for a build under a CPU quota, because the simulated time without a quota
    /// is less than the recorded time minus the throttled time. `own` is the simulated time of the build in
    /// nanoseconds.
    pub(super) fn have_quota(&mut self, own: u64) {
        if self.quota > 0 {
            self.alone_at_least = self.alone_at_least.min(own - own / 10);
        }
    }

    /// Raises the largest time of the forecast by `guessed`, the time in nanoseconds of sleeps for which it is not
    /// proven that they are shorter on free CPUs.
    pub(super) fn have_guessed(&mut self, guessed: u64) {
        let longest = self.alone_at_most.saturating_add(guessed);
        self.alone_at_most = longest.min(self.wall);
    }

    /// Widens the forecast for a build with loops that sleep and check. If the build's own work ends sooner, such a
    /// loop sleeps less often, and notices the end at most one sleep late.
    pub(super) fn have_polls(
        &mut self,
        facts: &BuildFacts<'_>,
        changes: &[Advice],
    ) -> Result<(), NoPath> {
        let polls = changes
            .iter()
            .filter(|advice| advice.kind == AdviceKind::Poll);
        let late = polls.map(|advice| advice.gain).max();
        if let Some(late) = late.filter(|_| self.blame != Blame::Code) {
            let soonest = facts.limits()?.on(facts.cpus);
            self.alone_at_least = self.alone_at_least.min(soonest);
            let latest = self.alone_at_most.saturating_add(late);
            self.alone_at_most = latest.min(self.wall);
        }
        Ok(())
    }
}

/// The cause of most of a build's waiting. It is returned only if the CPUs of this machine need less than half of the
/// recorded time for the work of the build. `bound` is the time in nanoseconds that these CPUs need.
fn waits(facts: &BuildFacts<'_>, bound: u64) -> Option<Mostly> {
    let half = facts.wall / 2;
    if bound >= half {
        return None;
    }
    let groups = path::groups(facts.analysis);
    let shares = path::shares(facts.analysis, &groups, facts.path);
    let mut known = shares.into_iter();
    let longest = known.find(|wait| is_known_wait(wait.part.kind, wait.by.as_deref()))?;
    let outside = longest
        .by
        .filter(|_| longest.part.kind == TimeKind::Outside);
    let mostly = Mostly {
        outside: outside.is_some(),
        name: outside.unwrap_or(longest.name),
        ns: longest.time,
        open: OpenKind::of(longest.part.kind),
    };
    (mostly.ns > half).then_some(mostly)
}

/// Whether the recording shows what a wait of the given kind waits for. `by` is the name of the task that ended the
/// wait, if this task is not recorded itself.
fn is_known_wait(kind: TimeKind, by: Option<&str>) -> bool {
    match kind {
        TimeKind::Outside => by.is_some(),
        kind => kind.is_wait() && kind != TimeKind::SleepOrBlocked,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Checks that waits of unknown cause are never named as the cause of most of a build's waiting, because that would
    /// explain nothing.
    #[test]
    fn what_a_build_mostly_waits_for_is_known() {
        let known = |by| -> Vec<&str> {
            let all = TimeKind::ALL.into_iter();
            let known = all.filter(|kind| is_known_wait(*kind, by));
            known.map(TimeKind::name).collect()
        };
        let waits = "disk memory network terminal sleep stopped blocked";
        assert_eq!(known(None).join(" "), waits);
        let mut named = known(Some("bash"));
        named.retain(|kind| *kind != "outside");
        assert_eq!(named, known(None));
        assert_eq!(known(Some("bash")).len(), named.len() + 1);
    }
}
