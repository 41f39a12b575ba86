//! The gate of `--fail-over`, which decides whether a build has become too slow. In place of the wall time, the gate
//! judges the build's own time, if it can: the time that the build takes on CPUs that it has for itself. Other tasks
//! lengthen and scatter the wall time, so that the growth of a slower build can be hidden in the spread of the wall
//! times. The gate then only reports the growth of the wall time.

use super::causes::{DifferenceCause, Doubt, Share, Whose};
use super::run::{Figure, Run};
use super::spread::{Difference, SpreadVerdict};
use super::Diff;
use super::{commands, conclusion, ends, methods};
use tr_text::units;

/// The decision of the gate (`tr diff --fail-over`) about the growth of one figure of the build.
#[derive(Clone, Copy, Debug)]
pub struct Gate {
    pub(super) figure: Figure,
    /// The largest growth in percent of a build's figure that the gate (`--fail-over`) allows.
    most: f64,
    /// The growth in percent, from the base to the new runs, of the figure that the gate (`--fail-over`) judges.
    pub(super) percent: f64,
    /// Whether the growth of the figure that the gate judges is no larger than differences between runs of the same
    /// build.
    inside: bool,
    /// The growth in percent of the figure that the gate judges, without the part that is attributed to the runner
    /// (the CI machine); `None` unless the growth is attributed both to the build and to the runner.
    pub(super) own: Option<f64>,
    /// Whether the whole growth of the figure that the gate judges is attributed to the runner (the CI machine), so
    /// that the build passes.
    runner: bool,
    /// The growth of the wall time, if the gate (`--fail-over`) judges the time that the build
    /// takes with CPUs for itself instead. The growth of the wall time is then only reported.
    pub(super) wall: Option<WallGrowth>,
}

/// The growth of the builds' wall time, which is printed beside the growth of the build's own time.
#[derive(Clone, Copy, Debug)]
pub(super) struct WallGrowth {
    pub percent: f64,
    inside: bool,
}

/// The words for the figure that the gate (`--fail-over`) judges instead of the wall time: the time that the build
/// takes with CPUs for itself.
const OWN_TIME: &str = "the build's own time";

impl Gate {
    /// Whether the build has become too slow by the gate's rules, so that `tr diff` ends with exit status 1.
    pub fn failed(&self) -> bool {
        self.exceeded() && !self.inside && !self.excused()
    }

    fn exceeded(&self) -> bool {
        self.percent > self.most
    }

    /// Whether the growth stays within the limit of `--fail-over` without the part that is attributed to the runner
    /// (the CI machine), so that the build passes.
    pub(super) fn excused(&self) -> bool {
        self.runner || self.own.is_some_and(|own| own <= self.most)
    }

    /// Whether a cause can contribute to the figure that the gate (`--fail-over`) judges. Time that other tasks, a
    /// quota or a hypervisor took is not part of the build's own time.
    fn has(&self, cause: DifferenceCause) -> bool {
        self.wall.is_none()
            || !matches!(
                cause,
                DifferenceCause::Others | DifferenceCause::Quota | DifferenceCause::Hypervisor
            )
    }

    /// The words for the figure that the gate (`--fail-over`) judges, such as `wall time`.
    fn title(&self) -> &'static str {
        self.wall.map_or(self.figure.title(), |_| OWN_TIME)
    }

    /// The decision of the gate (`--fail-over`) in a sentence, such as `passed: wall time +3.0 %, …`.
    pub(super) fn text(&self) -> String {
        let (name, percent, most) = (self.title(), self.percent, self.most);
        let more = format!("{name} {percent:+.1} %");
        let judged = match (self.exceeded(), self.inside) {
            (true, false) if self.runner => {
                format!("passed: {more} is more than {most} %, but the runner's, not your change's")
            }
            (true, false) if self.excused() => format!(
                "passed: {more} is more than {most} %, but {:+.1} % without the runner's part",
                self.own.unwrap_or(percent)
            ),
            (true, false) => format!("failed: {more}, more than {most} %"),
            (true, true) => format!("passed: {more} is more than {most} %, but inside the spread"),
            (false, _) => format!("passed: {more}, not more than {most} %"),
        };
        let Some(wall) = self.wall else {
            return judged;
        };
        let inside = if wall.inside {
            ", inside the spread"
        } else {
            ""
        };
        format!("{judged}; wall time {:+.1} %{inside}", wall.percent)
    }
}

/// The result of the gate; `None` if the user set no limit.
///
/// The gate compares the medians of the figure. In place of the wall time it compares the build's own time, if that is
/// known and the gate is not strict. A difference inside a known spread passes. A difference that only the runner
/// caused passes, too.
///
/// # Errors
/// The reason why there is no verdict:
/// - A build failed.
/// - The recordings cannot be compared: one is truncated or ended before COMMAND did, the methods of recording differ,
///   or the commands have nothing in common.
/// - The figure is unknown, or more time of a recording is unknown than the limit allows the figure to grow.
/// - It is not clear whether the build or something else caused the growth.
pub fn judge(diff: &Diff) -> Option<Result<Gate, String>> {
    let (figure, most) = diff.ask.gate?;
    let judged = judge_gate(diff, figure, most);
    Some(judged.map_err(|why| format!("{why}: --fail-over cannot judge it")))
}

/// The gate's decision in a sentence, and whether the build fails; `None` if the user set no limit. The build also
/// fails if the gate cannot judge the figure.
pub(super) fn gate_words(diff: &Diff) -> Option<(String, bool)> {
    Some(match judge(diff)? {
        Ok(gate) => (gate.text(), gate.failed()),
        Err(why) => (why, true),
    })
}

/// The difference in a figure of whole builds between the base and the new runs, if the gate can judge it.
///
/// # Errors
/// The reason why it cannot be judged, as text.
fn judgeable(diff: &Diff, figure: Figure, most: f64) -> Result<Difference, String> {
    if let Some(failure) = ends::failure(diff) {
        return Err(failure.to_string());
    }
    let runs = || diff.runs();
    if let Some(partial) = runs().find_map(Run::partial) {
        return Err(partial.to_string());
    }
    if let Some(methods) = methods::mixed(diff).or_else(|| commands::strangers(diff)) {
        return Err(methods);
    }
    let whole = diff.whole(figure).filter(|judged| judged.base > 0);
    let whole = *whole.ok_or_else(|| format!("{} of the base is unknown or 0", figure.title()))?;
    let unknown = runs().filter_map(|run| run.figures.get(Figure::Unknown));
    let unknown = unknown.max().unwrap_or(0);
    let hides = matches!(figure, Figure::OnCpu | Figure::RunQueue);
    if hides && unknown > 0 && unknown as f64 > whole.base as f64 * most / 100.0 {
        let (time, title) = (units::time(unknown), figure.title());
        return Err(format!("{title}: {time} of a recording's time is unknown"));
    }
    Ok(whole)
}

fn judge_gate(diff: &Diff, figure: Figure, most: f64) -> Result<Gate, String> {
    let whole = judgeable(diff, figure, most)?;
    // Unknown time may belong to other tasks, so the build's own time is only judged if the CPU time is known.
    let by_own_time = figure == Figure::Wall && !diff.ask.strict && diff.causes.work.is_some();
    let alone = diff.causes.alone;
    let alone = alone.filter(|alone| by_own_time && alone.base > 0);
    let judged = alone.unwrap_or(whole);
    let percent = |judged: &Difference| share_of(judged, judged.difference());
    let inside = |judged: &Difference| judged.verdict == SpreadVerdict::Inside;
    let mut gate = Gate {
        figure,
        most,
        percent: percent(&judged),
        inside: inside(&judged),
        own: None,
        runner: false,
        wall: alone.map(|_| WallGrowth {
            percent: percent(&whole),
            inside: inside(&whole),
        }),
    };
    if diff.ask.strict {
        return Ok(gate);
    }
    let causes = diff.causes.of_growth();
    let whose = diff.causes.whose_of(&causes);
    let sum = |whose| {
        let of = causes
            .iter()
            .filter(|share| share.whose == whose && gate.has(share.cause));
        of.map(|share| share.ns).sum::<i128>()
    };
    let own = judged.difference() - sum(Whose::Machine);
    // The growth in percent that is certainly due to the build.
    let least = share_of(&judged, own - sum(Whose::Unclear));
    // Time that other tasks took lengthens the wall time only. If the build's own time grew together with its CPU time,
    // the build became slower.
    let has_more_work = diff
        .causes
        .work
        .is_some_and(|work| work.difference() > 0 && work.is_noticeable());
    let is_own_growth = alone.is_some() && has_more_work;
    gate.runner = figure.is_wait() && whose == Some(Whose::Machine) && !is_own_growth;
    gate.own =
        (figure == Figure::Wall && whose == Some(Whose::Both)).then(|| share_of(&judged, own));
    let doubtful_cpus = diff.causes.cpus.is_some();
    let unclear = match (figure, whose) {
        (Figure::Wall, Some(Whose::Build | Whose::Both)) => least <= most,
        (Figure::Wall, None) if alone.is_some() => {
            // Less CPU time does not explain a growth. So a doubt about the CPU time only counts if the CPU time grew.
            let has_more_work = diff.causes.work.is_some_and(|work| work.difference() > 0);
            doubtful_cpus || (has_more_work && diff.causes.doubt.is_some())
        }
        (Figure::Wall, None) => doubtful_cpus,
        (Figure::Wall, Some(Whose::Machine)) => is_own_growth && diff.causes.doubt.is_some(),
        (Figure::RunQueue, _) if doubtful_cpus => true,
        (Figure::Wall | Figure::RunQueue, whose) => whose == Some(Whose::Unclear),
        (Figure::OnCpu, _) => diff.causes.doubt.is_some(),
        _ => false,
    };
    if unclear && gate.failed() {
        let (name, percent) = (gate.title(), gate.percent);
        return Err(format!("{name} {percent:+.1} %{}", doubtful(diff, figure)));
    }
    Ok(gate)
}

/// Converts a part of the difference between two builds, in ns, to percent of the base.
fn share_of(judged: &Difference, ns: i128) -> f64 {
    ns as f64 * 100.0 / judged.base as f64
}

/// The sentence that says why the gate cannot tell whether a growth is due to the build or, for example, to other
/// tasks.
fn doubtful(diff: &Diff, figure: Figure) -> String {
    let waits = |share: &&Share| {
        share.whose == Whose::Unclear
            && matches!(
                share.cause,
                DifferenceCause::Network | DifferenceCause::Outside
            )
    };
    let causes = diff.causes.of_growth();
    let mut unclear = causes.into_iter().filter(waits);
    match (figure, unclear.next()) {
        (Figure::Wall | Figure::RunQueue, None) if diff.causes.work.is_none() => {
            ", but too much of the build's CPU time is unknown".into()
        }
        (Figure::OnCpu, _) => diff.causes.doubt.map_or(String::new(), Doubt::words),
        (_, None) => {
            let doubt = diff.causes.cpus.or(diff.causes.doubt);
            doubt.map_or(String::new(), Doubt::words)
        }
        (_, Some(share)) => format!(" ({})", conclusion::unclear(diff, share)),
    }
}

impl Figure {
    /// Whether this figure includes waits for a CPU, so that other tasks on the machine's CPUs make it larger.
    fn is_wait(self) -> bool {
        matches!(self, Figure::Wall | Figure::RunQueue)
    }
}
