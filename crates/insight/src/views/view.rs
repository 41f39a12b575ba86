//! Defines the options of a report, and the processes that the report covers.

use tr_analyze::arena::Arena;
use tr_analyze::model::{Analysis, Process, ProcessIx, ThreadIx};
use tr_format::event::{CpuId, Ktime, Tgid};

use crate::views::query::{By, Group, Sort};
use crate::Recording;

#[derive(Clone, Debug, Default)]
pub struct Ask {
    /// The number of rows that the user requests with `--top`. Each report has its own default.
    pub top: Option<usize>,
    /// The order of a report's rows that the user requests with `--sort`. Each report has its own default.
    pub sort: Option<Sort>,
    /// The grouping of a report's rows that the user requests with `--by`. Each report has its own default.
    pub by: Option<By>,
    pub functions: bool,
    /// The user-defined groups of processes, for the grouping [`By::Group`].
    pub groups: Vec<Group>,
    /// The length in nanoseconds of an interval in reports over time. Each report has its own default.
    pub interval: Option<u64>,
    pub cpu: Option<CpuId>,
    pub failed: bool,
    /// The least wall time in nanoseconds of a process that a report shows.
    pub min: u64,
    /// The pid of the process that a report shows with its descendants; `None` means all processes.
    pub pid: Option<Tgid>,
    /// If a name is given, a report shows only the steps with this name, the steps inside them and the steps around
    /// them.
    pub step: Option<String>,
}

impl Ask {
    /// The largest number of rows of most tables for people.
    pub fn rows(&self) -> usize {
        self.top.unwrap_or(10)
    }

    /// The largest number of rows of a report in CSV and JSON. Without `--top`, they have all rows.
    pub fn most(&self) -> usize {
        self.top.unwrap_or(usize::MAX)
    }
}

#[derive(Clone, Copy, Debug)]
pub struct View<'a> {
    pub recording: &'a Recording,
    /// The analysis of the recording that the report is about.
    pub analysis: &'a Analysis,
    /// The processes that match the user's filters and that the report therefore covers.
    pub chosen: &'a [ProcessIx],
    pub file: &'a str,
    pub ask: &'a Ask,
}

impl<'a> View<'a> {
    pub fn new(
        recording: &'a Recording,
        chosen: &'a [ProcessIx],
        file: &'a str,
        ask: &'a Ask,
    ) -> View<'a> {
        View {
            recording,
            analysis: &recording.analysis,
            chosen,
            file,
            ask,
        }
    }

    /// The processes that match the user's filters and that the report therefore covers.
    pub fn processes(&self) -> impl Iterator<Item = &'a Process> + 'a {
        let analysis = self.analysis;
        self.chosen.iter().map(|ix| analysis.process(*ix))
    }

    /// The threads of the processes that match the user's filters.
    pub fn threads(&self) -> impl Iterator<Item = ThreadIx> + 'a {
        self.processes()
            .flat_map(|process| process.threads.iter().copied())
    }

    /// The first rows of a report: as many as the user requests with `--top`, otherwise all.
    pub fn asked<'r, T>(&self, rows: &'r [T]) -> impl Iterator<Item = &'r T> + use<'r, T> {
        rows.iter().take(self.ask.most())
    }

    /// Whether every process of the recording matches the user's filters.
    pub fn has_all(&self) -> bool {
        self.chosen.len() == self.analysis.processes.len()
    }

    /// For each process, whether it matches the user's filters.
    pub fn is_chosen(&self) -> Arena<ProcessIx, bool> {
        let all = self.analysis.process_ids();
        let mut all: Arena<_, _> = all.map(|_| false).collect();
        self.chosen.iter().for_each(|ix| all[*ix] = true);
        all
    }

    /// Converts a time of the recording to nanoseconds since the start of the trace.
    pub fn since(&self, time: Ktime) -> u64 {
        time.since(self.analysis.meta.start)
    }
}
