//! Defines the kinds of advice, and the changes of a build that the rules of advice propose (the candidates for a line
//! of advice).

use std::cmp::Reverse;

use tr_analyze::model::ProcessIx;
use tr_analyze::programs::Group;
use tr_analyze::schedule::{Change, Jobs, MOST_CHANGES};
use tr_analyze::what_if::Without;
use tr_format::event::Ktime;
use tr_text::named;
use tr_text::phrase::Phrase;
use tr_text::units;

use crate::sleeps::nap::Superfluous;

/// The largest number of lines of advice that a report about a build shows.
pub const MOST_LINES: usize = 7;

/// The least gain in ns for which a change is worth a line of advice. One of 52 recorded builds had a useless line for
/// a gain of 0.8 ms.
pub(super) const LEAST_GAIN: u64 = 20_000_000;

named! {
    /// The kind of an advice. If two changes gain the same, the one whose kind is listed earlier comes first.
    pub enum AdviceKind {
        Link = "link", "A linker decides";
        Configure = "configure", "A configuration decides";
        Install = "install", "An installation of packages decides";
        Compress = "compress", "A compression decides";
        /// Advice on sleeps of a fixed length.
        Sleep = "sleep", "Sleeps decide";
        Poll = "poll", "A loop that sleeps and checks decides";
        Network = "network", "The network decides";
        Disk = "disk", "The disk decides";
        /// Advice on waits for memory that was moved to a disk.
        Memory = "memory", "Missing memory decides";
        /// Advice on waits for the lock of a file.
        Lock = "lock", "A lock decides";
        Tests = "tests", "Tests run one after the other";
        /// Advice on one test that takes much longer than the others.
        SlowTest = "slow-test", "One test decides";
        /// Advice on jobs that ran one after the other, or on fewer jobs at once than there are CPUs.
        FewJobs = "few-jobs", "More jobs could run at once";
        Repeated = "repeated", "Work is repeated";
        /// Advice on programs that only start other programs, and that need much time of their own for it.
        Wrapper = "wrapper", "Programs that start others take time";
        /// Advice on a compiler's cache in which no compiler call found its result.
        ColdCache = "cold-cache", "The compiler's cache is empty";
        Short = "short", "Many short programs run";
        Throttled = "throttled", "The CPU quota throttles the build";
        Stolen = "stolen", "The hypervisor takes CPU time";
        Others = "others", "Other tasks have the CPUs";
        Last = "last", "The longest job starts last";
        Alone = "alone", "One task runs alone";
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Advice {
    pub kind: AdviceKind,
    /// The evidence for the advised change, in words: the tasks and their time.
    pub finding: Phrase,
    pub action: String,
    /// The least wall time in nanoseconds that the advised change saves; 0 if no least is known. The field `gain` has
    /// the most time that the change saves.
    pub at_least: u64,
    pub gain: u64,
    /// Whether the advised change saves nothing in the case that the build takes this time on purpose, as a test that
    /// sends requests at a set rate does.
    pub unless_meant: bool,
    /// The beginning (`from`) and the end (`to`) of the span of the recording in which the evidence for the advice
    /// lies.
    pub from: Ktime,
    pub to: Ktime,
    /// The processes whose time is the evidence for the advised change, in the order of their starts.
    pub processes: Vec<ProcessIx>,
}

impl Advice {
    /// The time that the advised change saves, in words. If no least time is known, the text `at_most` (such as `up
    /// to`) stands before the time.
    pub fn saves(&self, at_most: &str) -> String {
        match self.at_least {
            0 => format!("{at_most} {}", units::time(self.gain)),
            least => units::range(least, self.gain),
        }
    }
}

/// Whether the tasks of a build want more CPUs at once after a proposed change than in the recorded build. This decides
/// whether the change helps on CPUs that other tasks use as well, and under a CPU quota.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum CpuDemand {
    /// After the change, the build runs as many jobs at once as before, or fewer.
    Same,
    /// The change runs more jobs at once, but the jobs wait for most of their time. They need so little CPU time that
    /// the change also helps if other tasks use the CPUs.
    Little,
    /// The change runs more jobs at once, and each of them wants a CPU. The change gives no build tool another number
    /// of jobs.
    More,
    /// The change is to give a build tool another number of jobs (such as `-j8`), and each of these jobs wants a CPU.
    Number,
}

impl CpuDemand {
    /// The demand of jobs that a change runs at once. `mostly_wait` says whether the jobs wait for most of their time,
    /// and `number` whether the change is to give a build tool another number of jobs (such as `-j8`).
    pub(super) fn of_jobs(mostly_wait: bool, number: bool) -> CpuDemand {
        if mostly_wait {
            CpuDemand::Little
        } else if number {
            CpuDemand::Number
        } else {
            CpuDemand::More
        }
    }
}

/// Whether the build still does the work that a proposed change affects, once the change is made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum AffectedWork {
    /// The build does not do the work any more, or does it in less time.
    LeftOut,
    /// The build still has to do the work, at other times or by several tasks.
    Remains,
}

/// How certain it is that a proposed change saves time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Certainty {
    /// The change saves time if the simulation says so.
    Sure,
    /// The change may save nothing.
    Unsure,
    /// The change saves nothing if the build takes the affected time on purpose.
    UnlessMeant,
}

impl Certainty {
    /// The certainty of a change that may save nothing if `is_unsure` is true.
    pub(super) fn unsure_if(is_unsure: bool) -> Certainty {
        if is_unsure {
            Certainty::Unsure
        } else {
            Certainty::Sure
        }
    }

    /// The certainty of a change that removes some time. `may_be_meant` says whether the build may take this time on
    /// purpose.
    pub(super) fn unless_meant_if(may_be_meant: bool) -> Certainty {
        if may_be_meant {
            Certainty::UnlessMeant
        } else {
            Certainty::Sure
        }
    }
}

/// A change of a build that a rule of advice proposes. Its gain is not computed yet.
pub(crate) struct Candidate {
    pub(super) kind: AdviceKind,
    pub(super) finding: Phrase,
    pub(super) action: String,
    /// The part of the recorded time that a simulation leaves out to find how much the proposed change can save.
    pub(super) without: Without,
    /// The most time in nanoseconds that the proposed change can save, as the rule that proposes the change states it.
    pub(super) cap: u64,
    /// The part of the removed sleeps that would not occur if no other tasks used the build's CPUs: the program slept
    /// again and again until some work ended, and that work waited for a CPU. As far as this is proven
    /// (`Superfluous::proven`), the part does not count for the gain of the proposed change.
    pub(super) superfluous: Superfluous,
    /// The time in nanoseconds by which the removed sleeps may be longer on free CPUs, beyond what the simulation
    /// shows. The proposed change saves this time, too.
    pub(super) longer: u64,
    /// The jobs that the proposed change runs at once. The time that these jobs take remains in the simulation.
    pub(super) jobs: Vec<Jobs>,
    pub(super) demand: CpuDemand,
    pub(super) work: AffectedWork,
    pub(super) certainty: Certainty,
    /// Whether the proposed change also removes sleeps that are not on the critical path, while another proposed change
    /// removes the sleeps on the path alone. Such a change ranks a little lower, and the sums of sleeps that are longer
    /// than on free CPUs (`superfluous`) leave it out, because the other change has the same sleeps.
    pub(super) extends: bool,
    /// The executions of programs that are the evidence for the proposed change.
    pub(super) evidence: Vec<Group>,
}

impl Candidate {
    /// Creates a proposed change of the given kind of advice. The change saves nothing until the other fields are set.
    pub(super) fn of(kind: AdviceKind) -> Candidate {
        Candidate {
            kind,
            finding: Phrase::default(),
            action: String::new(),
            without: Without::own(|_, _| false, None),
            cap: 0,
            superfluous: Superfluous::default(),
            longer: 0,
            jobs: Vec::new(),
            demand: CpuDemand::Same,
            work: AffectedWork::LeftOut,
            certainty: Certainty::Sure,
            extends: false,
            evidence: Vec::new(),
        }
    }
}

impl Candidate {
    pub(super) fn change(&self) -> Change {
        let (time, remains) = if self.jobs.is_empty() {
            (self.without.clone(), self.kind.remains())
        } else {
            // Jobs that run at once share the caches of the CPUs, so their work may take a fifth longer.
            let of = self.without.of.clone().unwrap_or_default();
            (Without::work(of), (1000, 1200))
        };
        Change {
            time,
            remains,
            jobs: self.jobs.clone(),
        }
    }
}

impl AdviceKind {
    /// The divisor of the build's time (without other tasks on its CPUs) that gives the smallest gain for which a
    /// change of this kind is shown: 50 stands for a fiftieth of that time.
    pub(super) fn least(self) -> u64 {
        match self {
            AdviceKind::Sleep
            | AdviceKind::Poll
            | AdviceKind::Network
            | AdviceKind::Throttled
            | AdviceKind::Wrapper => 50,
            // Every machine loses some CPU time to other tasks, and every build has a longest task, so a small gain is
            // no finding.
            AdviceKind::Others | AdviceKind::Stolen | AdviceKind::Last => 10,
            // In every build, changes of all other kinds could gain a little. A gain below a twentieth of the build's
            // time is not worth a line of advice.
            _ => 20,
        }
    }

    /// The part of the affected time that remains after a change of this kind of advice, in thousandths: at best, and
    /// at worst as far as experience shows. A worst case of 1000 means that the change may save nothing.
    pub(super) fn remains(self) -> (u64, u64) {
        let worst = match self {
            // With a faster linker, at worst half of the time (500 thousandths) remains.
            AdviceKind::Link => 500,
            // With a cache of packages, the files still have to be copied out of the cache. At worst, copying takes
            // half of the time (500 thousandths).
            AdviceKind::Install => 500,
            AdviceKind::Configure | AdviceKind::Network | AdviceKind::Repeated => 200,
            AdviceKind::Short | AdviceKind::Wrapper => 300,
            _ => 1000,
        };
        // The fastest level of xz needs about a tenth of the time of its slowest one.
        let best = if self == AdviceKind::Compress { 100 } else { 0 };
        (best, worst)
    }

    /// Whether advice of this kind only repeats the forecast of the verdict and proposes no change.
    pub fn is_forecast(self) -> bool {
        matches!(self, AdviceKind::Others | AdviceKind::Throttled)
    }

    /// Whether advice of this kind addresses the administrator of the machine.
    pub fn is_machine(self) -> bool {
        self.is_forecast() || self == AdviceKind::Stolen
    }

    /// Whether more tasks run at once after a change of this kind.
    pub(super) fn uses_cpus(self) -> bool {
        matches!(
            self,
            AdviceKind::Lock | AdviceKind::Tests | AdviceKind::FewJobs
        )
    }

    /// Whether advice of this kind is about tasks by themselves, so that advice of any other kind explains more.
    pub(super) fn is_generic(self) -> bool {
        matches!(
            self,
            AdviceKind::Last | AdviceKind::Alone | AdviceKind::Compress
        )
    }

    /// The kind of wait on the critical path that the advice is about; `None` if the advice is about something else.
    /// Jobs that wait can also run at once, so advice on such a wait and advice on the number of jobs can both be
    /// right.
    pub(super) fn of_waits(self) -> Option<AdviceKind> {
        match self {
            AdviceKind::Sleep | AdviceKind::Poll => Some(AdviceKind::Sleep),
            // The three kinds of advice on waits for a CPU (throttled, stolen, others) are about parts of these waits
            // that do not overlap.
            AdviceKind::Network
            | AdviceKind::Disk
            | AdviceKind::Memory
            | AdviceKind::Lock
            | AdviceKind::Throttled
            | AdviceKind::Stolen
            | AdviceKind::Others
            // Even if tests run at once, a slow one can also be made faster.
            | AdviceKind::SlowTest => Some(self),
            _ => None,
        }
    }
}

/// The time in nanoseconds that an advised change saves, at least and at most.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Gain {
    pub at_least: u64,
    pub at_most: u64,
}

impl Gain {
    pub(super) fn of(advice: &Advice) -> Gain {
        Gain {
            at_least: advice.at_least,
            at_most: advice.gain,
        }
    }

    /// The number by which advised changes are ranked: twice the middle between the least and the largest gain, in
    /// nanoseconds. A change without a known least gain ranks lower than a change with one and an equal largest gain.
    pub(super) fn twice_the_middle(self) -> u64 {
        self.at_least.saturating_add(self.at_most)
    }
}

/// The items with the largest keys, in descending order, but no more than a simulation can compare. A proposed change
/// needs memory for each execution of a program, so a rule limits their number before it makes them: a forged file may
/// have thousands of programs for which it would propose one.
pub(crate) fn largest<T, K: Ord>(
    items: impl IntoIterator<Item = T>,
    key: impl FnMut(&T) -> K,
) -> Vec<T> {
    let mut all: Vec<T> = items.into_iter().collect();
    let mut key = key;
    all.sort_by_cached_key(|item| Reverse(key(item)));
    all.truncate(MOST_CHANGES);
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rule_proposes_no_more_changes_than_a_simulation_compares() {
        assert_eq!(largest([3, 9, 4], |item| *item), [9, 4, 3]);
        let all = largest(0..MOST_CHANGES * 3, |item| *item);
        assert_eq!(all.len(), MOST_CHANGES);
        assert_eq!(all.first(), Some(&(MOST_CHANGES * 3 - 1)));
    }
}
