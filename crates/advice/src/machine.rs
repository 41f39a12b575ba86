//! Gives the advice about the machine: the CPU time that the build wanted and did not get.

use tr_analyze::critical_path::TimeKind;
use tr_analyze::machine::{samples_are_of_recorded_cpus, throttled_containers, withheld, Samples};
use tr_analyze::memory::waits;
use tr_analyze::programs::Group;
use tr_analyze::share;
use tr_analyze::what_if::Without;
use tr_format::event::Ktime;

use crate::candidate::{Advice, AdviceKind, Candidate, CpuDemand, Gain};
use crate::facts::BuildFacts;
use tr_insight::processes::label;
use tr_text::units;

/// The shortest wait for a CPU in nanoseconds that counts as time withheld by the machine. A shorter wait may be the
/// time that an idle CPU needs to start a task. A guess: with a smaller limit, every build would seem to wait for CPUs
/// that other tasks have.
const WAKE_UP: u64 = 500_000;

/// The time in nanoseconds that the machine withheld from a build, by other tasks on its CPUs or by a CPU quota.
pub(super) struct WithheldTime {
    /// The time in nanoseconds that the critical path lost to a CPU quota.
    pub throttled: u64,
    pub others: u64,
    /// The error in nanoseconds that is assumed for the simulated time of the build: a tenth of it. The simulation does
    /// not model time slices.
    error: u64,
    waiting: Vec<Group>,
    /// Whether other tasks or a CPU quota take so much of the CPUs that another number of jobs gains little, or gains
    /// only at the expense of the other tasks.
    contended: bool,
    /// Whether other tasks, or a CPU quota, have some of the CPUs that the build could use.
    pub shared: bool,
    /// The name of the container to which the CPU quota belongs; `None` if the quota belongs to the cgroup of the
    /// recorded command.
    pub container: Option<String>,
    /// The words that name the CPU quota with its owner, and for a container's quota also how long it throttled the
    /// build.
    whose: String,
}

/// Two divisors that decide whether other tasks or a CPU quota keep `tr` from advising another number of jobs. They do
/// so if they cost the build a twentieth (`CONTENDED_PART`) of its wall time, or if the other tasks use half of the CPU
/// time that the build leaves and less than one CPU stays idle. If the other tasks use a tenth (`FOREIGN_PART`) of the
/// CPU time that the build leaves, the advice is given, but may gain nothing. Measured by `validate.py`: when a tenth
/// of a CPU was enough to give no advice, the builds of bzip2, less and tcc beside a little other work lost their best
/// advice,
/// `-j2`, which halves their time.
const CONTENDED_PART: u64 = 20;
const FOREIGN_PART: u64 = 10;

/// The time in nanoseconds in which tasks of the build wanted a CPU and no task of the build had one, during the sleeps
/// on the critical path that `naps` marks.
pub(super) fn starved_meanwhile(facts: &BuildFacts<'_>, naps: &[bool]) -> u64 {
    let segments = facts.path.segments.iter().zip(naps);
    let naps = segments.filter(|(segment, is_nap)| **is_nap && segment.kind == TimeKind::Sleep);
    let starved = naps.map(|(segment, _)| starved_within(facts, segment.from, segment.to));
    starved.fold(0, u64::saturating_add)
}

/// The time in nanoseconds between `from` and `to` in which tasks of the build wanted a CPU and no task of the build
/// had one.
pub(super) fn starved_within(facts: &BuildFacts<'_>, from: Ktime, to: Ktime) -> u64 {
    let load = facts.load(from, to);
    let starved = load.filter(|(_, running, demand)| *running == 0 && *demand > 0);
    starved.map(|(ns, ..)| ns).fold(0, u64::saturating_add)
}

impl WithheldTime {
    /// Computes the time that the machine withheld from the build. `own` is the time in nanoseconds that the build
    /// takes if no other tasks use its CPUs.
    pub fn new(facts: &BuildFacts<'_>, own: u64) -> WithheldTime {
        let (starved, wanted, waiting) = starved(facts);
        let machine = withheld(facts.analysis);
        let all = machine.throttled_ns.unwrap_or(0);
        // More CPU time saves at most the difference between the recorded and the simulated time.
        let lost = starved.min(facts.wall.saturating_sub(own));
        // The kernel sums up the throttled time of all CPUs, but the critical path waits for only one CPU at a time. So
        // the sum is multiplied by a share: the time for which the path waited for a CPU (`starved`), divided by the
        // CPU time that all tasks of the build wanted and did not get (`wanted`).
        let throttled = share(all, starved, wanted).min(lost);
        let taken = all.max(starved).saturating_mul(CONTENDED_PART) >= facts.wall;
        let container = container(facts, all);
        let foreign = foreign(facts);
        WithheldTime {
            throttled,
            others: lost - throttled,
            error: own / 10,
            waiting,
            // The machine's counters do not show whether other tasks ran on the CPUs that the build was limited to, so
            // the counters are used only for a build without such a limit.
            contended: taken
                || foreign.is_some_and(Foreign::has_most)
                    && facts.analysis.machine.limited_to.is_none(),
            shared: taken || foreign.is_some(),
            whose: match &container {
                Some((name, ns)) => {
                    format!("the CPU quota of {name} ({} throttled)", units::time(*ns))
                }
                None => "the cgroup's CPU quota".to_owned(),
            },
            container: container.map(|(name, _)| name),
        }
    }

    /// The time in nanoseconds that the critical path lost to other tasks and to a CPU quota.
    pub fn lost(&self) -> u64 {
        self.others.saturating_add(self.throttled)
    }

    /// The time in nanoseconds that the build takes without the time that the machine withheld.
    pub fn alone(&self, facts: &BuildFacts<'_>) -> u64 {
        facts.wall.saturating_sub(self.lost())
    }

    /// Counts more time as withheld by the machine: the sleeps of loops that checked for the end of some work, as far
    /// as that work itself waited for a CPU. The build could not shorten such sleeps. `naps` marks each segment of the
    /// critical path that is a sleep of such a loop. `superfluous` is the time in nanoseconds by which waiting work
    /// made other sleeps longer.
    pub fn add_polled(&mut self, facts: &BuildFacts<'_>, naps: &[bool], superfluous: u64) {
        let starved = starved_meanwhile(facts, naps).saturating_add(superfluous);
        let left = facts
            .wall
            .saturating_sub(self.others.saturating_add(self.throttled));
        let starved = starved.min(left);
        let all = withheld(facts.analysis).throttled_ns.unwrap_or(0);
        let by_quota = starved.min(all.saturating_sub(self.throttled));
        self.throttled = self.throttled.saturating_add(by_quota);
        self.others = self.others.saturating_add(starved - by_quota);
    }

    /// Reduces the time that the machine withheld from the build by `ns` nanoseconds, because the build would have
    /// waited for something else during these nanoseconds.
    pub fn keep(&mut self, ns: u64) {
        let lost = self.lost();
        let kept = ns.min(lost);
        let of_others = share(kept, self.others, lost.max(1));
        self.others = self.others.saturating_sub(of_others);
        self.throttled = self.throttled.saturating_sub(kept - of_others);
    }

    /// Whether a proposed change is hidden because the machine withheld so much CPU time that another number of jobs
    /// would change little. Advice on jobs that mostly wait is always shown. If the cause is other tasks and not a
    /// quota, advice that names no number of jobs is shown, too: few such jobs at a time compete with the other tasks.
    /// A quota applies to all tasks of the build together.
    pub fn silences(&self, candidate: &Candidate) -> bool {
        match candidate.demand {
            CpuDemand::Same | CpuDemand::Little => false,
            CpuDemand::More => self.contended && self.throttled > 0,
            CpuDemand::Number => self.contended,
        }
    }

    /// The line of advice about the time that other tasks or a CPU quota took from the build; `None` if this time is
    /// short. No other line of advice counts this time.
    pub fn advice(&self, facts: &BuildFacts<'_>, names: &[(String, u64)]) -> Option<Advice> {
        let without = |what: &str, gain: u64| {
            let time = units::time(facts.wall.saturating_sub(gain));
            format!("about {time} {what}")
        };
        let (quota, others) = (self.throttled, self.others);
        let lost = self.lost();
        let enough = |kind: AdviceKind, gain: u64| {
            gain > 0 && gain.saturating_mul(kind.least()) >= facts.wall
        };
        let quota_counts = enough(AdviceKind::Throttled, quota);
        let others_count = enough(AdviceKind::Others, others);
        let (kind, finding, action, gain) = match (quota_counts, others_count) {
            (false, false) => return None,
            (true, false) => (
                AdviceKind::Throttled,
                format!("{} stops the build", self.whose),
                without("without it", quota),
                quota,
            ),
            (false, true) => (
                AdviceKind::Others,
                "other tasks have the CPUs".to_owned(),
                without("on an idle machine", others),
                others,
            ),
            // If only one of the two causes (a CPU quota and other tasks) were removed, the other cause would take more
            // time from the build. So one line of advice covers both causes.
            (true, true) => (
                AdviceKind::Throttled,
                format!(
                    "{} and other tasks keep the build from the CPUs",
                    self.whose
                ),
                without("without both", lost),
                lost,
            ),
        };
        let finding = match (kind, names) {
            (AdviceKind::Others, [_, ..]) => {
                let names: Vec<&str> = names.iter().map(|(name, _)| name.as_str()).collect();
                format!("{finding}: {}", names.join(", "))
            }
            _ => finding,
        };
        let candidate = Candidate {
            finding: finding.into(),
            action,
            without: Without::own(|kind, _| kind == TimeKind::RunQueue, None),
            cap: gain,
            evidence: self.waiting.clone(),
            ..Candidate::of(kind)
        };
        let gain = Gain {
            at_least: gain.saturating_sub(self.error),
            at_most: gain,
        };
        Some(facts.advice(candidate, gain))
    }
}

/// The container whose quota throttled the build for more than half of the `all` nanoseconds of throttling, and the
/// time in nanoseconds for which this quota throttled the build.
fn container(facts: &BuildFacts<'_>, all: u64) -> Option<(String, u64)> {
    let containers = throttled_containers(facts.analysis);
    let (container, ns) = containers.max_by_key(|container| container.1)?;
    (ns > all / 2).then(|| (label::container(&container.called), ns))
}

/// The CPU time in nanoseconds that tasks outside of the build used (`others`), and that the build left for them.
#[derive(Clone, Copy, Debug)]
struct Foreign {
    others: u64,
    /// The CPU time in nanoseconds that the build did not use on the CPUs that it may use. It is not idle time: the
    /// tasks outside of the build may have used it. `one` is the CPU time that a single CPU has in the same span.
    left: u64,
    one: u64,
}

/// The use of the machine's CPUs in a span of the recording.
struct CpuUse {
    /// The CPU time in nanoseconds of tasks outside of the build, by the machine's counters.
    others: u64,
    /// The CPU time in nanoseconds that the build used in the span.
    own: u64,
    /// The number of CPUs that the build may use.
    cpus: u64,
    /// The number of CPUs that the machine's counters cover. Tasks outside of the build may also have run on CPUs that
    /// the build was not allowed to use.
    online: u64,
    /// The length in nanoseconds of the span in which the use of the CPUs was measured.
    length: u64,
}

impl CpuUse {
    /// The CPU time that tasks outside of the build used in the span; `None` if this is 0 within the error of the
    /// counters, or less than a tenth of the CPU time that the build left unused.
    fn foreign(self) -> Option<Foreign> {
        // The counters have steps of 10 ms for each CPU, so at both ends of the span each CPU may be counted 10 ms too
        // much.
        let steps = self.online.saturating_mul(20_000_000);
        let others = self.others.saturating_sub(steps);
        let left = self
            .length
            .saturating_mul(self.cpus)
            .saturating_sub(self.own);
        let much = others > 0 && others.saturating_mul(FOREIGN_PART) >= left;
        let one = self.length;
        much.then_some(Foreign { others, left, one })
    }
}

impl Foreign {
    fn has_most(self) -> bool {
        let idle = self.left.saturating_sub(self.others);
        self.others >= self.left / 2 && idle < self.one
    }
}

/// The CPU time of the tasks outside of the build, if they use much of the CPUs according to the machine's counters.
fn foreign(facts: &BuildFacts<'_>) -> Option<Foreign> {
    if !samples_are_of_recorded_cpus(facts.analysis) {
        return None;
    }
    let samples = Samples::of(facts.analysis);
    let (from, to) = samples.within((facts.path.from, facts.path.to))?;
    let own = facts.load(from, to);
    let own = own.map(|(ns, running, _)| ns.saturating_mul(running as u64));
    let own = own.fold(0, u64::saturating_add);
    let used = samples.used((from, to), own)?;
    let of_counters = facts.analysis.meta.cpus.len() as u64;
    let cpu_use = CpuUse {
        others: used.others,
        own,
        cpus: facts.cpus,
        online: of_counters,
        length: to.since(from),
    };
    cpu_use.foreign()
}

pub(super) fn candidates(facts: &BuildFacts<'_>) -> Vec<Candidate> {
    let machine = withheld(facts.analysis);
    // Stolen time is the sum over all CPUs, but the critical path runs on one CPU at a time. For a build that was
    // limited to some CPUs, the stolen time of its CPUs is not known.
    let stolen = match facts.analysis.machine.limited_to {
        Some(_) => 0,
        None => machine.stolen_ns.unwrap_or(0) / facts.cpus,
    };
    let stalled = machine.memory_stalled_ns.unwrap_or(0);
    // The kernel's counter of waits for memory also covers tasks outside of the build. So the gain is limited to the
    // time for which the build's own tasks waited for memory.
    let (mut waited, mut own_ns): (Vec<Group>, u64) = (Vec::new(), 0);
    for wait in waits(facts.analysis) {
        let process = facts.analysis.thread(wait.thread).process;
        if wait.ns > 0 && facts.own.has(process) {
            waited.extend(facts.groups.at(process, wait.until));
            own_ns = own_ns.saturating_add(wait.ns);
        }
    }
    let stalled = stalled.min(own_ns);
    waited.sort_unstable();
    waited.dedup();
    let all = |own| Without::own(own, None);
    vec![
        Candidate {
            finding: format!("the hypervisor takes {} of CPU time", units::time(stolen)).into(),
            action: "use a host with less load".into(),
            without: all(|kind, _| kind == TimeKind::OnCpu),
            cap: stolen,
            ..Candidate::of(AdviceKind::Stolen)
        },
        Candidate {
            finding: format!("tasks wait {} for memory", units::time(stalled)).into(),
            action: "give it more memory, or run fewer jobs".into(),
            without: all(|kind, _| {
                matches!(
                    kind,
                    TimeKind::Disk | TimeKind::Memory | TimeKind::Blocked | TimeKind::OnCpu
                )
            }),
            cap: stalled,
            evidence: waited,
            ..Candidate::of(AdviceKind::Memory)
        },
    ]
}

/// Finds the waits for a CPU on the critical path, of at least [`WAKE_UP`] ns, that other tasks or a quota caused: for
/// a part of the wait, fewer of the build's tasks ran than there are CPUs. Returns the sum in nanoseconds of these
/// parts, the CPU time in nanoseconds that the build's tasks wanted during the waits and did not get although no task
/// of the build used the CPUs in question, and the executions that waited.
fn starved(facts: &BuildFacts<'_>) -> (u64, u64, Vec<Group>) {
    let (mut starved, mut wanted) = (0u64, 0u64);
    let mut groups = Vec::new();
    for (segment, group, _) in facts.segments() {
        let waits = segment.kind == TimeKind::RunQueue;
        if !waits || segment.length() < WAKE_UP {
            continue;
        }
        let without = facts.idle(segment.from, segment.to);
        if without > 0 {
            starved = starved.saturating_add(without);
            wanted = wanted.saturating_add(facts.wanted(segment.from, segment.to));
            groups.extend(group);
        }
    }
    groups.sort_unstable();
    groups.dedup();
    (starved, wanted, groups)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Checks that on machines of any size, tasks outside of the build prevent advice on the number of jobs only if
    /// they leave less than one CPU idle.
    #[test]
    fn others_have_most_of_what_the_build_leaves() {
        const MS: u64 = 1_000_000;
        let of = |busy, own, cpus| {
            let cpu_use = CpuUse {
                others: (busy - own) * MS,
                own: own * MS,
                cpus,
                online: cpus,
                length: 1000 * MS,
            };
            cpu_use.foreign()
        };
        for (busy, own, cpus, much, most) in [
            (1050, 1000, 2, false, false),
            (1250, 1000, 2, true, false),
            (1600, 1000, 2, true, true),
            (2000, 700, 2, true, true),
            (2000, 1000, 16, false, false),
            (4000, 1000, 16, true, false),
            (15000, 1000, 16, true, false),
            (15900, 1000, 16, true, true),
            (5000, 1000, 64, false, false),
            (34500, 1000, 64, true, false),
        ] {
            let foreign = of(busy, own, cpus);
            assert_eq!(foreign.is_some(), much, "{busy} of {cpus}");
            assert_eq!(
                foreign.is_some_and(Foreign::has_most),
                most,
                "{busy} of {cpus}"
            );
        }
    }
}
