//! Makes the verdict on a build: how much of its time is its own, and how much the machine withheld.

mod forecast;
pub(super) mod judgement;
pub(super) mod open;
pub(super) mod totals;
mod turns;
pub(super) mod unjudged;

use tr_analyze::contention::Contention;
use tr_analyze::critical_path::{CriticalPath, TimeKind};
use tr_analyze::model::Analysis;
use tr_analyze::share;

use tr_insight::processes::who;
use tr_insight::verdicts::{NAMED_PART, NAMED_TASKS};
use tr_text::named;
use tr_text::units;

named! {
    /// The side that can make the build shorter: the build's code, the machine, or both.
    pub enum Blame {
        Code = "code", "your code";
        /// The administrator of the machine can make the build shorter.
        Machine = "machine", "the machine";
        Both = "both", "your code and the machine";
        /// The machine can make the build shorter. It was not judged whether the code of the build can do so as well.
        Perhaps = "perhaps-both", "the machine, perhaps also your code";
    }
}

named! {
    /// The kind of an open point of the verdict, which is a part of the build that no rule has judged.
    pub enum OpenKind {
        Sleep = "sleep", "sleep";
        /// The sleep would be on the critical path if the build had free CPUs.
        SleepBeside = "sleep-beside", "sleep beside the critical path";
        /// A program that measures for a set time, such as a benchmark.
        Measurement = "measurement", "a measurement";
        Network = "network", "waits for the network";
        Outside = "outside", "waits for tasks that are not recorded";
        Unknown = "unknown", "waits of unknown cause";
        /// The recording does not show who wrote to the terminal: a worker of the kernel passes on what is written.
        Terminal = "terminal", "waits for the terminal";
        Jobs = "jobs", "the number of jobs";
        Order = "order", "the order of commands";
        /// The recorded command gave itself a lower priority or fewer CPUs, and this was not judged.
        Limit = "limit", "the command's own limit";
        /// The build's work on its CPUs, if nothing else is left to judge: the recording does not show whether a
        /// program needs all of its work.
        Work = "work", "the work itself";
    }
}

/// An open point of the verdict: a part of the build's time that no rule has judged.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OpenPoint {
    pub kind: OpenKind,
    /// The time in nanoseconds of the unjudged part, by its kind: the length of the waits or of the measurement on the
    /// critical path, the most that another number or order of jobs or leaving out sleeps may save, how long many jobs
    /// wanted CPUs, or the CPU time of all work.
    pub ns: u64,
    pub(super) text: String,
}

/// The verdict on a build: how its time is divided between the build itself and the machine. All times are in
/// nanoseconds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BuildVerdict {
    pub blame: Blame,
    /// The length of the build's critical path in nanoseconds.
    pub wall: u64,
    /// The time in nanoseconds that the build takes if no other tasks use its CPUs and no CPU quota holds it back: the
    /// likely time, and its lower and upper bound (`alone_at_least`, `alone_at_most`).
    pub alone: u64,
    pub alone_at_least: u64,
    pub alone_at_most: u64,
    /// The time in nanoseconds that the critical path lost because tasks outside of the build had the CPUs.
    pub others: u64,
    /// The time in nanoseconds of waits for a CPU while no known task had the CPU: an idle CPU began late, or the
    /// waiting task was moved to it late.
    pub nobody: u64,
    /// The programs outside of the build that used much of the CPU time while the critical path waited for a CPU, each
    /// with its time in nanoseconds.
    pub names: Vec<(String, u64)>,
    /// The time in nanoseconds that the critical path lost because of a CPU quota.
    pub quota: u64,
    /// The container that the CPU quota belongs to; `None` if the quota belongs to the cgroup of the recorded command.
    pub quota_of: Option<String>,
    /// The most time in nanoseconds that the build lost to the hypervisor, at most the stolen time per CPU; 0 if short.
    pub stolen: u64,
    /// The most time in nanoseconds that all advised changes save together.
    pub changes: u64,
    /// Which of the advised changes save nothing if the build takes the affected time on purpose.
    pub(super) condition: Condition,
    /// For a build for which no change is advised: the least time in nanoseconds that the machine's CPUs need for the
    /// build's work.
    pub bound: Option<u64>,
    /// The cause of most of the waiting, for a build that mostly waits; otherwise `None`.
    pub(super) mostly: Option<Mostly>,
    /// The time in nanoseconds of all waits on the critical path, if they are more than half of the build's own time;
    /// otherwise 0.
    pub(super) waits: u64,
    /// The parts of the build's time that no rule has judged (the open points).
    pub open: Vec<OpenPoint>,
    /// Whether the recorded command failed. The verdict says nothing about the failure.
    pub(super) failed: bool,
    pub(super) cpus: u64,
}

/// Which of the advised changes save nothing if the build takes the affected time on purpose.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Condition {
    NoChange,
    SomeChanges,
    AllChanges,
}

/// The verdict has no condition if the changes that may save nothing have less than this part, a tenth, of the gain of
/// all changes. A guess: a reader does not miss a condition of so small a part.
const CONDITIONAL_PART: u64 = 10;

impl Condition {
    /// The condition of changes of which each is given with its gain in nanoseconds, and with whether it saves nothing
    /// in the case that the build takes the time on purpose.
    fn of(changes: impl Iterator<Item = (u64, bool)>) -> Condition {
        let (mut all, mut conditional) = (0u64, 0u64);
        for (gain, unless_meant) in changes {
            all = all.saturating_add(gain);
            if unless_meant {
                conditional = conditional.saturating_add(gain);
            }
        }
        if conditional == 0 || conditional.saturating_mul(CONDITIONAL_PART) < all {
            Condition::NoChange
        } else if conditional == all {
            Condition::AllChanges
        } else {
            Condition::SomeChanges
        }
    }
}

/// The cause of most of a build's waiting, for example a disk or a task that is not recorded.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Mostly {
    /// The words for the cause of most of a build's waiting, or the name of the task that ended the waits if that task
    /// is not recorded.
    pub name: String,
    pub ns: u64,
    pub outside: bool,
    /// The kind of the open point (a part of the build that no rule has judged) that covers the waits for this cause;
    /// `None` if a rule of advice has judged these waits.
    pub open: Option<OpenKind>,
}

impl BuildVerdict {
    pub fn text(&self) -> String {
        let parts: Vec<String> = self.main().into_iter().chain(self.more()).collect();
        format!("{}: {}", self.blame.title(), parts.join("; "))
    }

    /// The sentence of the verdict about the build's own time, without the reasons for the lost time.
    pub fn sentence(&self) -> String {
        format!("{}: {}", self.blame.title(), self.main().join("; "))
    }

    /// The parts of the critical path's time in nanoseconds, with their names: the build's own time, and each cause
    /// that held the build back (other tasks, a CPU quota, and unknown causes).
    pub fn parts(&self) -> [(&'static str, u64); 4] {
        let held = self.others.saturating_add(self.nobody);
        let held = held.saturating_add(self.quota);
        [
            ("own", self.wall.saturating_sub(held)),
            ("others", self.others),
            ("CPU quota", self.quota),
            ("not known who", self.nobody),
        ]
    }

    /// The words of the verdict for the build's own time, and for the part of it that the advised changes save.
    fn main(&self) -> Vec<String> {
        if self.blame == Blame::Code {
            return vec![self.own()];
        }
        let range = units::interval(self.alone, self.alone_at_least, self.alone_at_most);
        let lost = self.others.saturating_add(self.nobody);
        let mut parts = vec![match lost.saturating_add(self.quota) {
            0 if self.alone_at_least == self.alone => {
                format!("it takes {}", units::time(self.wall))
            }
            _ if lost < self.quota => {
                format!("without {} it takes {range}", self.whose_quota("its quota"))
            }
            _ if self.quota > self.small() => {
                let quota = self.whose_quota("its quota");
                format!("with the CPUs to itself and without {quota} it takes {range}")
            }
            _ => format!("with the CPUs to itself it takes {range}"),
        }];
        if self.changes > 0 {
            let of_that = if self.changes <= self.alone {
                " of that"
            } else {
                ""
            };
            parts.push(format!("{}{of_that}{}", self.saved(), self.condition()));
        }
        parts
    }

    /// The sentences of the verdict about who held the build back, and about the parts that no rule has judged.
    pub fn more(&self) -> Vec<String> {
        let mut parts = Vec::new();
        let small = self.small();
        if self.others > small {
            parts.push(self.who_had_the_cpus());
        }
        if self.nobody > small {
            let nobody = units::time(self.nobody);
            parts.push(format!(
                "waited {nobody} for CPUs, and it is not known who had them"
            ));
        }
        if self.quota > small {
            parts.push(format!(
                "held back by {} for {}",
                self.whose_quota("the CPU quota"),
                units::time(self.quota)
            ));
        }
        if self.stolen > small {
            parts.push(format!(
                "the hypervisor took {} of CPU time",
                units::time(self.stolen)
            ));
        }
        let shown = self.mostly.as_ref().and_then(|mostly| mostly.open);
        let shown = shown.filter(|_| self.blame == Blame::Code && !self.has_changes());
        let open = self.open.iter().filter(|point| Some(point.kind) != shown);
        parts.extend(open.map(|point| point.text.clone()));
        if self.failed {
            parts.push("this is about the time, not about the failure".to_owned());
        }
        parts
    }

    /// The time in nanoseconds below which a cause of lost time is not named.
    fn small(&self) -> u64 {
        self.wall / 50
    }

    fn has_changes(&self) -> bool {
        self.changes > 0
    }

    fn saved(&self) -> String {
        format!("the changes below save up to {}", units::time(self.changes))
    }

    /// The condition under which the advised changes save something, as words that follow [`BuildVerdict::saved`].
    fn condition(&self) -> &'static str {
        match self.condition {
            Condition::NoChange => "",
            Condition::SomeChanges => ", some of it unless the time is meant",
            Condition::AllChanges => ", unless that time is meant",
        }
    }

    fn whose_quota(&self, own: &str) -> String {
        match &self.quota_of {
            Some(container) => format!("the CPU quota of {container}"),
            None => own.to_owned(),
        }
    }

    fn is_open(&self, kind: OpenKind) -> bool {
        self.open.iter().any(|point| point.kind == kind)
    }

    /// The words of the verdict for the build's own part of its time, if the verdict blames only the build's code.
    fn own(&self) -> String {
        let alone = units::time(self.alone);
        let nothing = |words| if self.open.is_empty() { words } else { "" };
        if let Some(mostly) = &self.mostly {
            let (name, ns) = (&mostly.name, units::time(mostly.ns));
            let end = if self.has_changes() {
                format!("; {}{}", self.saved(), self.condition())
            } else if mostly.open.is_some_and(|kind| self.is_open(kind)) {
                ", not judged".to_owned()
            } else {
                nothing("; no change is known").to_owned()
            };
            return if mostly.outside {
                format!("{ns} of its {alone} are waits for {name}, which is not recorded{end}")
            } else {
                format!("{alone} of its own, mostly {name} ({ns}){end}")
            };
        }
        let not_judged = self.open.iter().filter(|point| point.kind.is_wait());
        let not_judged = not_judged.map(|point| point.ns);
        if not_judged.fold(0, u64::saturating_add) > self.alone / 2 {
            return format!("{alone} of its own, mostly waits that are not judged");
        }
        // The bound holds only for the recorded number of jobs, only for their recorded order, and not for programs
        // that measure for a set time. So the bound is not shown if one of these three is an open point of the verdict
        // (a part of the build that no rule has judged).
        let as_recorded = [OpenKind::Jobs, OpenKind::Order, OpenKind::Measurement];
        let bound = self
            .bound
            .filter(|_| !as_recorded.iter().any(|kind| self.is_open(*kind)));
        if let Some(bound) = bound {
            let share = bound.saturating_mul(100) / self.alone.max(1);
            let allow = units::plural(self.cpus, "CPU allows", "CPUs allow");
            return format!(
                "its own {alone} are at {} % of what {allow} in this order{}",
                share.min(100),
                nothing("; nothing stands out"),
            );
        }
        let work = match self.waits {
            0 => format!("{alone} of its own work"),
            ns => format!("{alone} of its own, mostly waits ({})", units::time(ns)),
        };
        if self.has_changes() {
            format!("{work}; {}{}", self.saved(), self.condition())
        } else {
            work
        }
    }

    fn who_had_the_cpus(&self) -> String {
        let names = self.names.iter();
        let names = names.map(|(name, ns)| format!("{name} {}", units::time(*ns)));
        let names: Vec<String> = names.collect();
        let names = if names.is_empty() {
            String::new()
        } else {
            format!(" ({})", names.join(", "))
        };
        format!(
            "others had the CPUs for {}{names}",
            units::time(self.others)
        )
    }
}

/// The tasks that ran while the critical path waited for a CPU, with their CPU time in nanoseconds.
pub(super) struct CpuOwners {
    pub others: u64,
    /// The part of the waits for a CPU in nanoseconds during which no known task had the CPU.
    pub nobody: u64,
    /// The programs that had much of the CPU time while the critical path waited for a CPU, each with its time in
    /// nanoseconds.
    pub names: Vec<(String, u64)>,
}

impl CpuOwners {
    /// Divides `others`, the time in nanoseconds that a build's critical path lost to other tasks, among the programs
    /// that had the CPUs while the path waited, as far as these programs are known.
    pub fn of(analysis: &Analysis, path: &CriticalPath, others: u64) -> CpuOwners {
        let segments = path.segments.iter();
        let waits = segments.filter(|segment| segment.kind == TimeKind::RunQueue);
        let waits = waits.filter_map(|segment| {
            Contention::within(analysis, segment.thread, segment.from, segment.to)
        });
        let waits: Vec<_> = waits.collect();
        let Some(contention) = Contention::of_waits(analysis, &waits) else {
            return CpuOwners {
                others,
                nobody: 0,
                names: Vec::new(),
            };
        };
        let (sum, names) = contention.by_name(analysis, waits.into_iter());
        let of_others = match sum.others.saturating_add(sum.rest) {
            0 => others,
            all => share(sum.others, others, all),
        };
        let names = names
            .into_iter()
            .filter(|(_, ns)| ns.saturating_mul(NAMED_PART) >= sum.others)
            .filter_map(|(occupant, ns)| Some((who::occupant(occupant)?, ns)))
            .take(NAMED_TASKS);
        // The times of the named programs are scaled so that they are parts of the time of all other tasks.
        let names = names.map(|(name, ns)| (name, share(ns, of_others, sum.others)));
        CpuOwners {
            others: of_others,
            nobody: others.saturating_sub(of_others),
            names: names.filter(|(_, ns)| *ns > 0).collect(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_condition_names_how_many_changes_it_is_about() {
        for (changes, condition) in [
            (&[][..], Condition::NoChange),
            (&[(5, false)], Condition::NoChange),
            (&[(5, true), (7, true)], Condition::AllChanges),
            (&[(5, true), (7, false)], Condition::SomeChanges),
            (&[(1, true), (99, false)], Condition::NoChange),
        ] {
            let got = Condition::of(changes.iter().copied());
            assert_eq!(got, condition, "{changes:?}");
        }
    }
}
