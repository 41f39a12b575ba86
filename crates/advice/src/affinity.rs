//! Advice for the case that the recorded command has restricted itself to fewer CPUs than the machine has, for example
//! by `taskset`.

use std::collections::BTreeMap;

use tr_analyze::programs::Group;
use tr_analyze::schedule::Schedule;
use tr_format::event::CpuId;

use crate::candidate::{Advice, AdviceKind, Candidate, Gain, LEAST_GAIN};
use crate::facts::{BuildFacts, STRAY_PART};
use tr_text::phrase::Phrase;

/// A program (such as `taskset`) that restricts the whole build to some of the machine's CPUs.
pub(super) struct Affinity {
    group: Group,
    /// The number of CPUs that the restricted part of the build ran on. CPUs with very little of its CPU time
    /// ([`STRAY_PART`]) do not count.
    cpus: u64,
    /// The simulated time in nanoseconds that the build takes on the CPUs that it restricted itself to, if no other
    /// tasks use these CPUs.
    pub own: u64,
    /// The largest time in nanoseconds that the build saves if the limit is removed, so that the build may use all CPUs
    /// of the machine.
    gain: u64,
}

impl Affinity {
    /// Finds the program (such as `taskset`) that restricts the build to some CPUs, if this program leaves the build
    /// fewer CPUs than the machine has, and nearly all of the build's work is below it. `own` is the time in
    /// nanoseconds that the build takes if it has all CPUs of the machine for itself.
    pub fn of(facts: &BuildFacts<'_>, schedule: &Schedule, own: u64) -> Option<Affinity> {
        let mut all = facts.all();
        let (group, execution) = all.find(|(_, execution)| execution.program.pins())?;
        let limiter = execution.process;
        let by_cpu = facts.on_cpus(|process| {
            let mut lineage = facts.analysis.lineage(process);
            lineage.any(|above| above == limiter)
        });
        let sum =
            |times: &BTreeMap<CpuId, u64>| times.values().copied().fold(0, u64::saturating_add);
        let below = sum(&by_cpu);
        let all = sum(&facts.on_cpus(|_| true));
        let is_used = |ns: &&u64| ns.saturating_mul(STRAY_PART) >= below;
        let cpus = by_cpu.values().filter(is_used).count() as u64;
        // The simulation runs all work on the CPUs that the restricted part of the build may use. Work outside of that
        // part may use other CPUs, so a build with much of such work gets no advice.
        let beside = all.saturating_sub(below);
        if cpus == 0 || cpus >= facts.cpus || beside.saturating_mul(STRAY_PART) > all {
            return None;
        }
        // The simulation may lack the wait of a program that polls its children. Without that wait, the children's work
        // would seem not to count, but the CPUs have to do it.
        let with_all_work = |own: u64, cpus: u64| own.max(below / cpus.max(1)).min(facts.wall);
        let limited = with_all_work(schedule.on(cpus).max(own), cpus);
        Some(Affinity {
            group,
            cpus,
            own: limited,
            gain: limited.saturating_sub(with_all_work(own, facts.cpus)),
        })
    }

    /// The advice to remove the limit on the CPUs, if that limit costs the build enough time.
    pub fn advice(&self, facts: &BuildFacts<'_>) -> Option<Advice> {
        let kind = AdviceKind::Wrapper;
        let enough = self.gain >= LEAST_GAIN && self.gain.saturating_mul(kind.least()) >= self.own;
        let (name, cpus) = (facts.name(self.group), self.cpus);
        let candidate = Candidate {
            finding: Phrase::with([&name], |[name]| {
                format!("{name} allows {cpus} of {} CPUs", facts.cpus)
            }),
            action: "leave it out, or allow more CPUs".into(),
            evidence: vec![self.group],
            ..Candidate::of(kind)
        };
        let gain = Gain {
            at_least: 0,
            at_most: self.gain,
        };
        enough.then(|| facts.advice(candidate, gain))
    }
}
