//! The report on the functions of sampled stacks, the hottest ones first.

use serde_json::{json, Value};
use tr_analyze::model::{Analysis, ThreadIx};
use tr_format::stack::{Doing, Place};

use crate::functions::{self, FunctionGroups};
use crate::output::Report;
use tr_insight::functions::{Functions, SampleSum, StackSamples};
use tr_insight::views::members::{members, places, Members};
use tr_insight::views::query::By;
use tr_insight::views::view::View;
use tr_text::json::with;
use tr_text::page::Page;
use tr_text::style::Style;
use tr_text::table::Sheet;
use tr_text::units;

/// The least number of a program's stack samples for which the report warns that its stacks are incomplete.
const LEAST_SAMPLES: u64 = 20;
/// The report warns of incomplete stacks if at least this percentage of a program's stack samples have only one frame.
const FLAT_PERCENT: u64 = 10;
/// The report warns of incomplete stacks if at least this percentage of a program's stack samples lack their outermost
/// frames.
const CUT_PERCENT: u64 = 1;
/// The largest number of programs with incomplete stacks that the report names.
const PROGRAMS: usize = 3;

pub struct Flame<'a> {
    view: View<'a>,
    by: Option<By>,
    groups: Vec<Members>,
    functions: Functions,
    programs: Vec<SampledProgram>,
    /// The CPU time of the chosen processes in nanoseconds, with which the sampled time is compared; `None` if it is
    /// not known.
    cpu: Option<u64>,
}

#[derive(Clone, Debug, Default)]
struct SampledProgram {
    name: String,
    /// The number of a program's stack samples that have frames in user mode.
    samples: u64,
    /// The number of a program's stack samples with only one frame in user mode, so that the callers are unknown.
    flat: u64,
    /// The number of a program's stack samples that lack their outermost frames, because the stacks were deeper than
    /// the recorder copies.
    cut: u64,
}

impl<'a> Flame<'a> {
    /// Makes the report on functions from the stack samples of the chosen processes.
    pub fn new(view: &View<'a>) -> Flame<'a> {
        let by = view.ask.by;
        let groups = members(view, by.unwrap_or(By::Program));
        let programs = match by {
            None | Some(By::Program) => programs(view, &groups),
            Some(_) => programs(view, &members(view, By::Program)),
        };
        let place = places(&groups);
        let samples = samples(view.analysis).filter_map(|(thread, sampled)| {
            let at = place.get(&thread)?;
            Some((by.map(|_| *at), sampled))
        });
        Flame {
            view: *view,
            by,
            functions: Functions::new(&view.analysis.stacks, samples),
            groups,
            programs,
            cpu: view
                .processes()
                .map(|process| process.times.on_cpu_known())
                .sum(),
        }
    }

    /// The CPU time in nanoseconds for which there are no stack samples, if it is more than chance explains; otherwise
    /// `None`. The kernel does not report how many samples it dropped.
    fn unsampled(&self) -> Option<u64> {
        let (on, cpu) = (self.functions.sum(Doing::OnCpu), self.cpu?);
        let period = on.ns.checked_div(on.samples)?;
        let missing = cpu.saturating_sub(on.ns);
        // A period is the mean time that one sample stands for. By chance, the sampled time of n samples varies by √n
        // periods. A difference of less than three times this variation is taken for chance.
        let chance = 3.0 * (cpu as f64 * period as f64).sqrt();
        (missing as f64 > chance).then_some(missing)
    }

    fn groups(&self) -> FunctionGroups<'_> {
        FunctionGroups {
            by: self.by,
            members: &self.groups,
        }
    }
}

/// The stack samples of the recording, each with its thread. Samples on a CPU are sums over equal stacks. If the
/// recording has the times of samples, each sampled wait is returned by itself, with its reason. Otherwise the waits
/// are sums, too.
fn samples(analysis: &Analysis) -> impl Iterator<Item = (ThreadIx, StackSamples)> + '_ {
    let stacks = &analysis.stacks;
    let sums = stacks.samples.iter();
    let sums =
        sums.filter(move |sample_sum| stacks.timed.is_empty() || sample_sum.doing == Doing::OnCpu);
    let sums = sums.map(|sample_sum| {
        let sampled = StackSamples {
            stack: sample_sum.stack,
            doing: sample_sum.doing,
            reason: None,
            sum: SampleSum {
                samples: sample_sum.count,
                ns: sample_sum.ns,
            },
        };
        (sample_sum.thread, sampled)
    });
    let waits = stacks
        .timed
        .iter()
        .filter(|wait| wait.doing == Doing::OffCpu);
    sums.chain(waits.map(move |wait| (wait.thread, StackSamples::of(analysis, wait, wait.ns))))
}

/// For each program, how many of its stack samples are incomplete. The programs with the most incomplete samples come
/// first.
fn programs(view: &View<'_>, groups: &[Members]) -> Vec<SampledProgram> {
    let stacks = &view.analysis.stacks;
    let place = places(groups);
    let named = groups.iter().map(|group| SampledProgram {
        name: group.name.short().to_owned(),
        ..SampledProgram::default()
    });
    let mut programs: Vec<SampledProgram> = named.collect();
    for sample in &stacks.samples {
        let program = place
            .get(&sample.thread)
            .and_then(|at| programs.get_mut(*at));
        let places = stacks.frames(sample.stack).map(|frame| stacks.place(frame));
        let user = places.filter(|place| !matches!(place, Some(Place::Kernel(_))));
        if let (Some(program), depth @ 1..) = (program, user.take(2).count()) {
            program.samples = program.samples.saturating_add(sample.count);
            let flat = if depth == 1 { sample.count } else { 0 };
            program.flat = program.flat.saturating_add(flat);
            let cut = if sample.cut { sample.count } else { 0 };
            program.cut = program.cut.saturating_add(cut);
        }
    }
    programs.retain(|program| program.samples > 0);
    let bad = |program: &SampledProgram| program.flat.saturating_add(program.cut);
    programs.sort_by(|a, b| (bad(b), &a.name).cmp(&(bad(a), &b.name)));
    programs
}

impl Report for Flame<'_> {
    fn page(&self, style: &Style) -> Page {
        let (groups, limit) = (self.groups(), self.view.ask.top);
        let mut out = functions::page(&self.functions, style, groups, limit);
        if self.functions.is_empty() {
            out.line("No stack was sampled.");
        }
        if let Some(missing) = self.unsampled() {
            let cpu = units::time(self.cpu.unwrap_or(0));
            let missing = units::time(missing);
            let line =
                format!("{missing} of {cpu} of CPU time have no sample: the kernel took none");
            out.line(&line);
        }
        type SampleCount = fn(&SampledProgram) -> u64;
        let parts: [(SampleCount, u64, &str); 2] = [
            (
                |program| program.flat,
                FLAT_PERCENT,
                "have one frame: code without frame pointers",
            ),
            (
                |program| program.cut,
                CUT_PERCENT,
                "are cut: deeper than 127 frames",
            ),
        ];
        for (of, least, what) in parts {
            let many = |program: &&SampledProgram| {
                program.samples >= LEAST_SAMPLES
                    && of(program).saturating_mul(100) >= program.samples.saturating_mul(least)
            };
            for program in self.programs.iter().filter(many).take(PROGRAMS) {
                let share = of(program).saturating_mul(100) / program.samples.max(1);
                let line = format!("{share} % of {}'s samples {what}", program.name);
                out.line(&line);
            }
        }
        out
    }

    fn json(&self) -> Option<Value> {
        let programs = self.programs.iter().map(|program| {
            json!({
                "name": program.name,
                "samples": program.samples,
                "one_frame": program.flat,
                "cut": program.cut,
            })
        });
        let own = json!({
            "unsampled_ns": self.unsampled(),
            "by": self.by.map(By::name),
            "programs": programs.collect::<Vec<_>>(),
        });
        let most = self.view.ask.most();
        Some(with(
            own,
            functions::json(&self.functions, self.groups(), most),
        ))
    }

    fn sheet(&self) -> Sheet {
        functions::sheet(&self.functions, self.groups(), self.view.ask.most())
    }
}
