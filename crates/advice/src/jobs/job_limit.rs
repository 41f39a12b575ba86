//! Finds the limit on the number of jobs that a build tool runs at once.

use tr_programs::changes;

use tr_analyze::awaited::WaitReason;
use tr_analyze::model::ProcessIx;
use tr_analyze::programs::Group;
use tr_format::event::Reason;
use tr_programs::tools::Family;

use crate::facts::BuildFacts;

/// The limit on the number of jobs that a build tool runs at once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Limit {
    /// The arguments of the build tool set this limit on the number of jobs; `None` means that they allow any number.
    Given(Option<u64>),
    /// The build tool shares the job slots of a make that is its ancestor and allows this number of jobs (`None`: any
    /// number). The build tool runs only one job at a time if the recipe calls make without `$(MAKE)`, so that the
    /// slots are not passed on.
    Inherited(Option<u64>),
    /// The build tool starts jobs only while the machine's load is low.
    Load,
    /// The build tool was given no limit, and without a limit it runs one job at a time; or the program is no known
    /// build tool, such as a script.
    One,
    /// The build tool was given no limit, and without a limit it starts as many jobs as it can.
    Unknown,
}

impl Limit {
    /// Whether the limit kept the build tool from running more jobs at once. `at_once` is the number of jobs that ran
    /// at once. A limit of `cpus` or more jobs keeps the tool from nothing.
    pub fn holds(self, at_once: u64, cpus: u64) -> bool {
        match (at_once, self) {
            (1, Limit::One | Limit::Given(Some(1)) | Limit::Inherited(_)) => true,
            (n, Limit::Load) => n < cpus,
            (n, Limit::Given(Some(most)) | Limit::Inherited(Some(most))) => n == most && n < cpus,
            _ => false,
        }
    }
}

/// For each execution of a program, the number of jobs that the nearest make with such an argument allows, which is the
/// execution itself or an ancestor. The outer `None` means that there is no such make, the inner `None` that the make
/// allows any number of jobs.
pub(crate) fn limits_of_makes(facts: &BuildFacts<'_>) -> Vec<Option<Option<u64>>> {
    facts.down(|group, above: Option<&Option<Option<u64>>>| {
        let program = facts.execution(group).map(|execution| &execution.program);
        let make = program.and_then(changes::known);
        let make = make.filter(|tool| tool.family == Family::Make);
        let own = make.and_then(|tool| tool.jobs(&facts.args(group)));
        own.or_else(|| above.copied().flatten())
    })
}

/// The limit on the number of jobs that the tool `owner` runs at once. `limits` is the result of [`limits_of_makes`]:
/// for each execution of a program, the number of jobs that the nearest make allows.
pub(crate) fn limit(facts: &BuildFacts<'_>, owner: Group, limits: &[Option<Option<u64>>]) -> Limit {
    let known = |group: Group| changes::known(&facts.execution(group)?.program);
    let Some(own) = known(owner) else {
        return Limit::One;
    };
    let args = facts.args(owner);
    if own.load_limit(&args).is_some() {
        return Limit::Load;
    }
    if let Some(jobs) = own.jobs(&args) {
        return Limit::Given(jobs);
    }
    if own.family != Family::Make {
        return if own.runs_one() {
            Limit::One
        } else {
            Limit::Unknown
        };
    }
    let above = facts.owner(owner);
    let inherited = above.and_then(|above| *limits.get(above as usize)?);
    inherited.map_or(Limit::One, Limit::Inherited)
}

/// Whether a make waited for a job slot. A make that shares job slots waits in `pselect`, which also ends when a child
/// ends; a make without slots waits in `wait4`.
pub(crate) fn waits_for_slots(facts: &BuildFacts<'_>, process: ProcessIx) -> bool {
    let analysis = facts.analysis;
    let timeline = analysis.timeline.as_ref();
    timeline.is_some_and(|timeline| {
        let mut threads = analysis.process(process).threads.iter();
        threads.any(|thread| {
            let mut stretches = timeline.of(*thread);
            stretches.any(|stretch| {
                stretch.reason == Reason::Poll
                    || analysis.awaited(*thread, &stretch) == Some(WaitReason::Slot)
            })
        })
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_limit_holds_jobs_back() {
        for (at_once, limit, want) in [
            (1, Limit::One, true),
            (2, Limit::One, false),
            (1, Limit::Given(Some(1)), true),
            (1, Limit::Given(Some(8)), false),
            (1, Limit::Given(None), false),
            (2, Limit::Given(Some(2)), true),
            (4, Limit::Given(Some(4)), false),
            // The recipe does not call make as $(MAKE), so the inner make gets no job slots.
            (1, Limit::Inherited(Some(8)), true),
            (1, Limit::Inherited(None), true),
            (2, Limit::Inherited(Some(8)), false),
            // cargo and ninja start as many jobs as they can if no limit is given.
            (1, Limit::Unknown, false),
            // While other tasks load the machine, `make -j8 -l2` starts one job at a time.
            (1, Limit::Load, true),
            (4, Limit::Load, false),
        ] {
            assert_eq!(limit.holds(at_once, 4), want, "{at_once} by {limit:?}");
        }
    }
}
