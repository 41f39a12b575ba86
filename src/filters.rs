//! The processes that a command shows.

use std::time::Duration;

use regex::bytes::Regex;
use tr_analyze::model::ProcessIx;
use tr_format::event::Tgid;
use tr_insight::query::Filter;
use tr_insight::Recording;

use crate::args;

/// The options that choose processes.
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

    /// `--min` in ns.
    pub fn min(&self) -> u64 {
        self.min.map_or(0, args::nanoseconds)
    }

    /// The processes that a filter chooses. Standard error has a line if there are none.
    pub fn chosen(filter: &Filter, recording: &Recording) -> Vec<ProcessIx> {
        let chosen = filter.apply(recording);
        let all = recording.analysis.processes.len();
        if chosen.is_empty() && all > 0 {
            eprintln!("tr: none of the {all} processes matches");
        }
        chosen
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
