//! The reports: each one file, which computes nothing but what it shows.

pub mod audit;
pub mod ci_tracer;
pub mod cpus;
pub mod critical_path;
pub mod execs;
pub mod histogram;
pub mod max_off_cpu;
pub mod off_cpu;
pub mod parallelism;
pub mod run_queue;
pub mod series;
pub mod top;
pub mod tree;

use serde_json::Value;
use tr_analyze::model::Analysis;
use tr_format::event::{CpuId, Tgid};

use crate::query::{By, Group, Sort};
use crate::style::Style;

/// What is asked for.
#[derive(Clone, Debug, Default)]
pub struct Ask {
    /// Rows to show as text.
    pub top: usize,
    /// The same, when it was asked for: CSV, JSON and some reports have all
    /// otherwise.
    pub limit: Option<usize>,
    /// What to sort by; otherwise what suits the report.
    pub sort: Option<Sort>,
    /// What a row stands for; otherwise what suits the report.
    pub by: Option<By>,
    /// The user's own groups, for [`By::Group`].
    pub groups: Vec<Group>,
    /// Length of an interval in ns; otherwise what suits the report.
    pub interval: Option<u64>,
    /// Only this CPU.
    pub cpu: Option<CpuId>,
    /// Only what failed.
    pub failed: bool,
    /// Only what took so long, in ns.
    pub min: u64,
    /// The process that was asked for with its descendants.
    pub pid: Option<Tgid>,
}

impl Ask {
    /// How many rows CSV and JSON have of a list whose parts stand for themselves.
    pub fn most(&self) -> usize {
        self.limit.unwrap_or(usize::MAX)
    }
}

/// What a report is made of.
#[derive(Clone, Copy, Debug)]
pub struct View<'a> {
    /// Everything that was found out.
    pub analysis: &'a Analysis,
    /// The processes that were asked for, by place.
    pub chosen: &'a [usize],
    /// The trace's name.
    pub file: &'a str,
    /// What is asked for.
    pub ask: &'a Ask,
}

/// A report, ready to be written in any format.
pub trait Report {
    /// For people.
    fn text(&self, style: &Style) -> String;

    /// Its value in the JSON document, under its [`Kind::key`]; nothing for
    /// one that is in every document.
    ///
    /// # Errors
    /// None in practice: it writes to memory.
    fn json(&self) -> serde_json::Result<Option<Value>>;

    /// As one table.
    ///
    /// # Errors
    /// None in practice: it writes to memory.
    fn csv(&self) -> Result<Vec<u8>, csv::Error>;
}

/// Which report.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[allow(missing_docs)] // `about` says it
pub enum Kind {
    Top,
    Histogram,
    OffCpu,
    MaxOffCpu,
    RunQueue,
    Audit,
    Tree,
    Execs,
    Series,
    Cpus,
    CriticalPath,
    Parallelism,
}

impl Kind {
    /// All of them, in the order of `--report all`.
    pub const ALL: [Kind; 12] = [
        Kind::Top,
        Kind::CriticalPath,
        Kind::Tree,
        Kind::Execs,
        Kind::OffCpu,
        Kind::MaxOffCpu,
        Kind::RunQueue,
        Kind::Parallelism,
        Kind::Histogram,
        Kind::Series,
        Kind::Cpus,
        Kind::Audit,
    ];

    /// Its name on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Kind::Top => "top",
            Kind::Histogram => "histogram",
            Kind::OffCpu => "off-cpu",
            Kind::MaxOffCpu => "max-off-cpu",
            Kind::RunQueue => "run-queue",
            Kind::Audit => "audit",
            Kind::Tree => "tree",
            Kind::Execs => "execs",
            Kind::Series => "series",
            Kind::Cpus => "cpus",
            Kind::CriticalPath => "critical-path",
            Kind::Parallelism => "parallelism",
        }
    }

    /// Its name in JSON.
    pub fn key(self) -> String {
        self.name().replace('-', "_")
    }

    /// What it shows.
    pub fn about(self) -> &'static str {
        match self {
            Kind::Top => "Where the time went",
            Kind::Histogram => "How long the slices on a CPU were",
            Kind::OffCpu => "Who waited, for what, and who ended the wait",
            Kind::MaxOffCpu => "Each process's longest time off CPU, per interval",
            Kind::RunQueue => "How long tasks waited for a CPU, and how many wanted one",
            Kind::Audit => "Our figures beside the kernel's own",
            Kind::Tree => "What ran: the tree of processes",
            Kind::Execs => "What ran: every execution, a line each",
            Kind::Series => "When each process was on a CPU",
            Kind::Cpus => "What the machine did, CPU by CPU",
            Kind::CriticalPath => "What the end had to wait for, step by step",
            Kind::Parallelism => "How much ran at once, and what ran alone",
        }
    }

    /// Whether it needs [`Analysis::timeline`].
    pub fn needs_timeline(self) -> bool {
        match self {
            Kind::Top | Kind::Audit | Kind::Tree | Kind::Execs => false,
            Kind::Histogram | Kind::OffCpu | Kind::MaxOffCpu | Kind::RunQueue => true,
            Kind::CriticalPath | Kind::Series | Kind::Parallelism | Kind::Cpus => true,
        }
    }

    /// Makes it.
    pub fn make<'a>(self, view: &View<'a>) -> Box<dyn Report + 'a> {
        match self {
            Kind::Top => Box::new(top::Top::new(view)),
            Kind::Histogram => Box::new(histogram::Histogram::new(view)),
            Kind::OffCpu => Box::new(off_cpu::OffCpu::new(view)),
            Kind::MaxOffCpu => Box::new(max_off_cpu::MaxOffCpu::new(view)),
            Kind::RunQueue => Box::new(run_queue::RunQueue::new(view)),
            Kind::Audit => Box::new(audit::audit(view.analysis)),
            Kind::Tree => Box::new(tree::Tree::new(view)),
            Kind::Execs => Box::new(execs::Execs::new(view)),
            Kind::Series => Box::new(series::Series::new(view)),
            Kind::Cpus => Box::new(cpus::Cpus::new(view)),
            Kind::CriticalPath => Box::new(critical_path::Report::new(view)),
            Kind::Parallelism => Box::new(parallelism::Report::new(view)),
        }
    }
}
