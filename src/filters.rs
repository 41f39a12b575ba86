//! Declares the options by which the user chooses the processes that a command shows.

use std::process::ExitCode;
use std::time::Duration;

use regex::bytes::Regex;
use tr_analyze::model::ProcessIx;
use tr_format::event::{Ktime, Tgid};
use tr_insight::processes::label;
use tr_insight::steps::Steps;
use tr_insight::views::query::Filter;
use tr_insight::Recording;
use tr_text::escape;

use crate::{args, errors};

/// The largest number of similar step names that are suggested if no step has the name that the user
/// gave.
const MOST_SIMILAR: usize = 5;

/// The options of a subcommand that choose processes, such as `--comm` and `--failed`.
#[derive(clap::Args, Clone, Debug)]
pub struct Filters {
    /// Only processes that failed: exit status other than 0, or killed by a signal
    #[arg(long)]
    pub failed: bool,
    /// Only processes (in execs: executions) that took at least this long
    #[arg(long, value_name = "T", value_parser = args::duration_with_unit)]
    pub min: Option<Duration>,
    /// Only processes whose comm matches
    #[arg(long, value_name = "RE")]
    comm: Option<Regex>,
    /// Only processes whose command line matches
    #[arg(long, value_name = "RE")]
    argv: Option<Regex>,
    /// Only processes whose cgroup's path matches
    #[arg(long, value_name = "RE")]
    cgroup: Option<Regex>,
    /// Only processes in a container whose name, image or id matches
    #[arg(long, value_name = "RE")]
    container: Option<Regex>,
    /// Only this process and its descendants
    #[arg(long, value_name = "N", value_parser = args::number::<u32>)]
    pid: Option<u32>,
    /// Only processes in a step of this name (see tr analyze --report steps)
    #[arg(long, value_name = "NAME")]
    pub step: Option<String>,
}

impl Filters {
    pub fn pid(&self) -> Option<Tgid> {
        self.pid.map(Tgid)
    }

    /// The value of the option `--min`, the least wall time of a chosen process, in ns.
    pub fn min(&self) -> u64 {
        self.min.map_or(0, args::nanoseconds)
    }

    /// The processes of a recording that a filter chooses. If there are none, a line on standard error
    /// says so.
    pub fn chosen(filter: &Filter, recording: &Recording) -> Vec<ProcessIx> {
        let chosen = filter.apply(recording);
        let all = recording.analysis.processes.len();
        if chosen.is_empty() && all > 0 {
            message!("none of the {all} processes matches");
        }
        chosen
    }

    /// The filter of processes that the command line's options describe. A shortened name of a step is completed. If
    /// the step is only a part of a process, the figures are nevertheless those of the whole process, and a line on
    /// standard error says so.
    ///
    /// # Errors
    /// If no step has the name, similar names are printed. The error is the exit status.
    pub fn filter_in(&self, recording: &Recording) -> Result<Filter, ExitCode> {
        let mut filter = self.filter();
        let Some(name) = &self.step else {
            return Ok(filter);
        };
        let analysis = &recording.analysis;
        let steps = Steps::new(analysis, &recording.imports.spans);
        let Some(whole) = steps.whole_name(name) else {
            let similar = steps.similar_names(name, MOST_SIMILAR);
            return Err(errors::refused(unknown_step(name, &similar)));
        };
        filter.step = Some(whole.to_owned());
        let part = steps.part_of_process(analysis, whole);
        let part = part.and_then(|step| Some((step, step.process?)));
        if let Some((step, process)) = part {
            let seconds = |time: Ktime| time.since(analysis.meta.start) as f64 / 1e9;
            let name = escape::raw(whole.as_bytes());
            let process = analysis.process(process);
            let (program, pid) = (label::program(process), process.pid.0);
            let (from, to) = (seconds(step.from), seconds(step.to));
            let whole = "the figures are those of the whole process";
            if step.is_moment() {
                message!("{name} is a moment of {program} (pid {pid}) at {from:.6} s, and {whole}");
            } else {
                message!(
                    "{name} is a part of {program} (pid {pid}), and {whole}; its time alone: \
                     --from {from:.6}s --to {to:.6}s"
                );
            }
        }
        Ok(filter)
    }

    pub fn filter(&self) -> Filter {
        Filter {
            comm: self.comm.clone(),
            argv: self.argv.clone(),
            cgroup: self.cgroup.clone(),
            container: self.container.clone(),
            pid: self.pid(),
            failed: self.failed,
            min: self.min(),
            step: self.step.clone(),
        }
    }
}

/// The error text for `--step` with a name that no step of the recording has, with similar names.
fn unknown_step(name: &str, similar: &[&str]) -> String {
    let name = escape::raw(name.as_bytes());
    let names: Vec<String> = similar
        .iter()
        .map(|name| escape::raw(name.as_bytes()))
        .collect();
    if names.is_empty() {
        format!("no step is named {name}; --report steps has the names")
    } else {
        format!("no step is named {name}; similar: {}", names.join(", "))
    }
}
