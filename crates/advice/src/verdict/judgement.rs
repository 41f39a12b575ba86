//! Judges a build: makes the verdict from the facts, the time that the machine withheld, and the lines of advice.

use tr_analyze::critical_path::{NoPath, Segment, TimeKind};

use crate::candidate::{Advice, AdviceKind};
use crate::facts::BuildFacts;
use crate::fetches;
use crate::lines::{own_changes, AdviceLines};
use crate::machine::WithheldTime;
use crate::sleeps::known::Starved;
use crate::verdict::forecast::{is_much, Doubts, Forecast, Polls};
use crate::verdict::turns::in_turn;
use crate::verdict::{Blame, BuildVerdict, Condition, CpuOwners, Mostly, OpenKind, OpenPoint};
use tr_insight::path;
use tr_insight::processes::exit;

/// The facts from which the verdict on a build is made.
pub(crate) struct Findings<'f> {
    pub withheld: &'f WithheldTime,
    pub lines: &'f AdviceLines,
    /// The parts of the build that no rule has judged.
    pub points: Vec<OpenPoint>,
    pub had: CpuOwners,
    /// The least time in nanoseconds in which the CPUs can do the build's work. It is given only if no change is
    /// advised.
    pub bound: Option<u64>,
    /// The simulated time of the build in nanoseconds.
    pub simulated: u64,
    /// The time in nanoseconds of sleeps that may belong to the build's own time ([`KnownSleeps::unsure`]).
    ///
    /// [`KnownSleeps::unsure`]: crate::sleeps::known::KnownSleeps::unsure
    pub unsure: u64,
    /// The time in which tasks of the build got no CPU while a process slept again and again.
    pub starved: Starved,
}

/// The verdict on a build.
///
/// # Errors
///
/// [`NoPath`] if the recording does not show the build's work.
pub(crate) fn verdict(
    facts: &BuildFacts<'_>,
    findings: Findings<'_>,
) -> Result<BuildVerdict, NoPath> {
    let Findings {
        withheld, lines, ..
    } = findings;
    let (changes, saved) = (&lines.changes, lines.saved());
    let stolen = changes
        .iter()
        .find(|advice| advice.kind == AdviceKind::Stolen);
    let quota = withheld.throttled;
    let much = |kind: AdviceKind, ns: u64| ns > 0 && ns.saturating_mul(kind.least()) >= facts.wall;
    let machine = stolen.is_some()
        || much(AdviceKind::Others, withheld.others)
        || much(AdviceKind::Throttled, quota);
    let beside = findings.points.iter();
    let beside = beside.filter(|point| point.kind == OpenKind::SleepBeside);
    let likely = Forecast::likely(facts, withheld);
    let blame = Blame::by_advice(machine, lines);
    let blame = blame.with_open(&findings.points, facts.wall.saturating_sub(likely));
    let lost = withheld.lost();
    let doubts = Doubts {
        simulated: (quota > 0).then_some(findings.simulated),
        unsure: findings.unsure,
        beside: beside.map(|point| point.ns).fold(0, u64::saturating_add),
        // If only the build's code is to blame, the machine did not make the build's loops of sleeps longer.
        polls: if blame == Blame::Code {
            None
        } else {
            polls(facts, changes)?
        },
        starved: findings.starved,
        in_turn: if lost > 0 { in_turn(facts) } else { 0 },
    };
    let forecast = Forecast::of(facts, likely, lost, &doubts);
    let blame = if is_much(findings.starved.ns, facts.wall) {
        blame.with_starved(saved.is_some_and(|saved| saved > 0))
    } else {
        blame
    };
    let segments = facts.path.segments.iter();
    let segments = segments.filter(|segment| segment.kind.is_wait());
    let waited = segments.map(Segment::length).fold(0, u64::saturating_add);
    let had = findings.had;
    Ok(BuildVerdict {
        blame,
        wall: facts.wall,
        alone: likely,
        alone_at_least: forecast.at_least,
        alone_at_most: forecast.at_most,
        others: had.others,
        nobody: had.nobody,
        names: had.names,
        quota,
        quota_of: withheld.container.clone(),
        stolen: stolen.map_or(0, |advice| advice.gain),
        changes: saved.unwrap_or(0),
        condition: Condition::of(own_changes(changes).map(|line| (line.gain, line.unless_meant))),
        bound: findings.bound,
        // Waits that take longer than the build's own time are not shown, because other tasks cause a part of such
        // waits. An example is a loop that checks for the end of some work, while other tasks slow down that work.
        mostly: waits(facts, findings.bound.unwrap_or(0)).filter(|mostly| mostly.ns <= likely),
        waits: if waited <= likely && waited > likely / 2 {
            waited
        } else {
            0
        },
        open: findings.points,
        failed: exit::command_failed(facts.analysis),
        cpus: facts.cpus,
    })
}

/// The part of the forecast that is uncertain because of loops which sleep and check, as far as the advised changes are
/// about such loops; `None` if no advice is about such a loop.
fn polls(facts: &BuildFacts<'_>, changes: &[Advice]) -> Result<Option<Polls>, NoPath> {
    let polls = changes
        .iter()
        .filter(|advice| advice.kind == AdviceKind::Poll);
    let Some(late) = polls.map(|advice| advice.gain).max() else {
        return Ok(None);
    };
    let soonest = facts.limits()?.on(facts.cpus);
    Ok(Some(Polls { soonest, late }))
}

impl Blame {
    /// Decides from the lines of advice who is to blame for the build's time. `machine` says whether the machine
    /// withheld much time.
    fn by_advice(machine: bool, lines: &AdviceLines) -> Blame {
        let is_alone = |line: &Advice| line.kind == AdviceKind::Alone;
        match (machine, lines.saved()) {
            (false, _) => Blame::Code,
            (true, Some(_)) => Blame::Both,
            // Advice on work that runs alone is not certain to help, because the work can perhaps not be divided.
            (true, None) if lines.changes.iter().any(is_alone) => Blame::Perhaps,
            (true, None) => Blame::Machine,
        }
    }

    /// Takes the parts of the build into account that no rule has judged. `withheld` is the time in nanoseconds that
    /// the machine withheld. If there are such parts, other than the work itself, a verdict that blamed the machine
    /// alone changes: it blames the code if the build's own unjudged waits are longer than `withheld`, and otherwise
    /// the machine and perhaps also the code.
    fn with_open(self, points: &[OpenPoint], withheld: u64) -> Blame {
        let waits = points.iter().filter(|point| point.kind.is_wait());
        let waits = waits.map(|point| point.ns).fold(0, u64::saturating_add);
        let is_judged = points.iter().all(|point| point.kind == OpenKind::Work);
        match self {
            Blame::Machine if is_judged => Blame::Machine,
            Blame::Machine if waits > withheld => Blame::Code,
            Blame::Machine => Blame::Perhaps,
            blame => blame,
        }
    }

    /// Takes into account that tasks of the build got no CPU for much time while a process slept that perhaps waited
    /// for the work of these tasks. `saves` says whether the advised changes save time. A verdict that blames only the
    /// code is changed: if `saves` is true, the new verdict blames the code and the machine; otherwise it blames the
    /// machine and perhaps also the code.
    fn with_starved(self, saves: bool) -> Blame {
        match self {
            Blame::Code if saves => Blame::Both,
            Blame::Code => Blame::Perhaps,
            blame => blame,
        }
    }
}

/// The cause of most of a build's waiting. It is returned only if it takes more than half of the recorded time, and the
/// CPUs of this machine need less than half of that time for the work of the build. `bound` is the time in nanoseconds
/// that these CPUs need.
fn waits(facts: &BuildFacts<'_>, bound: u64) -> Option<Mostly> {
    let half = facts.wall / 2;
    if bound >= half {
        return None;
    }
    let groups = path::groups(facts.analysis);
    let shares = path::shares(facts.analysis, &groups, facts.path);
    let mut known = shares.into_iter();
    let longest = known.find(|wait| is_known_wait(wait.part.kind, wait.by.as_deref()))?;
    let is_network = longest.part.kind == TimeKind::Network;
    let ticking = is_network.then(|| fetches::ticking(facts)).flatten();
    let ticking = ticking.filter(|(_, ns)| ns.saturating_mul(2) > longest.time);
    if let Some((group, _)) = ticking.filter(|_| longest.time > half) {
        return Some(Mostly {
            outside: false,
            name: format!("timers of {}", facts.name(group).short()),
            ns: longest.time,
            open: OpenKind::of(TimeKind::Sleep),
        });
    }
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
