//! What explains a difference of the wall time: the machine, waits, functions.

use super::functions::FunctionChange;
use super::machine::{is_noticeable, judge};
use super::profile::Both;
use super::run::{Figure, Run};
use super::spread::{signed, Judged, Verdict};
use super::{Diff, ProgramChange};
use crate::called::TR;
use crate::facts::demands::Demand;
use crate::units;

impl Diff {
    /// The wall time differs although the build's CPU work is equal, because the machine withheld
    /// more or less CPU time: in words.
    pub(super) fn runner(&self) -> Option<String> {
        let wall = self.whole(Figure::Wall)?;
        if wall.verdict == Verdict::Inside || !is_noticeable(wall, wall.base.max(wall.new)) {
            return None;
        }
        let work = judge((&self.base, &self.new), |run| run.machine.work)?;
        if is_noticeable(&work, work.base.max(work.new)) {
            return None;
        }
        // Its tasks were runnable, or had a CPU that the hypervisor did not run.
        let waited = judge((&self.base, &self.new), |run| {
            let taken = run
                .figures
                .get(Figure::OnCpu)?
                .saturating_sub(run.machine.work?);
            Some(run.figures.get(Figure::RunQueue)?.saturating_add(taken))
        })?;
        let same_sign =
            |judged: &Judged| judged.difference().signum() == wall.difference().signum();
        let explains =
            same_sign(&waited) && waited.difference().abs() * 2 >= wall.difference().abs();
        let withheld = self.loads.iter();
        let withheld = withheld.filter(|(load, judged)| load.is_withheld() && same_sign(judged));
        let most = withheld.max_by_key(|(_, judged)| judged.difference().abs())?;
        explains.then(|| {
            format!(
                "The runner, not your change: the build's CPU work is equal ({} and {}); {}: {}",
                units::time(work.base),
                units::time(work.new),
                most.0.title(),
                signed(most.1.difference(), units::time)
            )
        })
    }

    /// The wall time differs although the build's CPU work hardly does, because the critical path
    /// waited more or less for disks or for the network: in words.
    pub(super) fn waited(&self) -> Option<String> {
        let wall = self.whole(Figure::Wall)?;
        if wall.verdict == Verdict::Inside || !is_noticeable(wall, wall.base.max(wall.new)) {
            return None;
        }
        let work = judge((&self.base, &self.new), |run| {
            run.machine.work.or(run.figures.get(Figure::OnCpu))
        })?;
        let small = work.difference().abs() * 10 <= wall.difference().abs();
        if !small && is_noticeable(&work, work.base.max(work.new)) {
            return None;
        }
        let of = |demand| {
            let of = |run: &Run| run.demands.get(&demand).copied();
            judge((&self.base, &self.new), of)
        };
        let explains = |judged: &Judged| {
            let (part, whole) = (judged.difference(), wall.difference());
            judged.verdict != Verdict::Inside
                && part.signum() == whole.signum()
                && part.abs() * 2 >= whole.abs()
        };
        let causes = CAUSES.iter();
        let causes = causes.filter_map(|cause| Some((cause, of(cause.wait).filter(explains)?)));
        let (cause, wait) = causes.max_by_key(|(_, wait)| wait.difference().abs())?;
        let bytes = cause.bytes.into_iter();
        let bytes = bytes.filter_map(|demand| Some((demand, of(demand)?)));
        let more = bytes.filter(|(demand, it)| demand.differs(it, 0));
        let more = more.map(|(demand, it)| format!("{} {}", demand.change(&it), demand.title()));
        let more: Vec<String> = more.collect();
        let wait = format!("{}: {}", cause.wait.title(), cause.wait.change(&wait));
        let (before, now) = (units::time(work.base), units::time(work.new));
        let (name, equal) = (cause.name, cause.equal);
        Some(if more.is_empty() {
            format!(
                "{name}, not your change: as much CPU work ({before} and {now}), as many bytes \
                 {equal}; {wait}"
            )
        } else {
            let more = more.join(", ");
            format!("{name}, not the CPU work ({before} and {now}); {wait}; {more}")
        })
    }

    /// Runs without stacks, beside others with them; samples that are left out: in words.
    pub(super) fn stack_warnings(&self) -> Vec<String> {
        let runs = || self.base.iter().chain(&self.new);
        let mut said = Vec::new();
        if runs().any(|run| run.profile.is_some()) {
            let lacking = runs().filter(|run| run.profile.is_none());
            said.extend(
                lacking
                    .map(|run| format!("{} has no stacks: functions are not compared", run.file)),
            );
        }
        for run in runs() {
            let left_out = run.profile.as_ref().map_or(0, |it| it.left_out);
            if left_out > 0 {
                let left_out = units::time(left_out);
                let file = &run.file;
                said.push(format!(
                    "{file}: too many stacks: {left_out} of samples are left out"
                ));
            }
        }
        said
    }

    /// The function of a slower program that grew most.
    pub(super) fn grown(&self, program: &ProgramChange) -> Option<&FunctionChange> {
        let mut all = self.functions.iter().flatten();
        all.find(|it| {
            it.program == program.name
                && program.on_cpu.difference() > 0
                && it.own.time.difference() > 0
                && it.own.differs(self.ask.least)
        })
    }

    /// The stacks of both sides; `None` if a run has none.
    pub(super) fn stacks(&self) -> Option<Both> {
        Both::new([&self.base, &self.new])
    }

    /// Folded stacks with the µs of both sides, as difffolded.pl writes them: for flamegraph.pl and
    /// inferno.
    ///
    /// # Errors
    /// The file of a run without stacks.
    pub fn folded(&self) -> Result<String, String> {
        let mut runs = self.base.iter().chain(&self.new);
        match (runs.find(|run| run.profile.is_none()), self.stacks()) {
            (None, Some(stacks)) => Ok(stacks.folded()),
            (lacking, _) => Err(format!(
                "{}: no stacks were recorded: {TR} record --stacks records them",
                lacking.map_or("", |run| run.file.as_str())
            )),
        }
    }
}

/// A resource that can explain a difference of the wall time.
struct Cause {
    name: &'static str,
    wait: Demand,
    bytes: [Demand; 2],
    equal: &'static str,
}

const CAUSES: [Cause; 2] = [
    Cause {
        name: "The runner's disk",
        wait: Demand::DiskPath,
        bytes: [Demand::Read, Demand::Written],
        equal: "read and written",
    },
    Cause {
        name: "The network",
        wait: Demand::NetworkPath,
        bytes: [Demand::Received, Demand::Sent],
        equal: "received and sent",
    },
];
