//! The reports, one file each.

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

use crate::names::named;
pub use crate::view::{Ask, Report, View};

named! {
    /// A report, in the order of `--report all`. Its title describes it.
    #[derive(Hash)]
    #[allow(missing_docs)]
    pub enum Kind {
        Top = "top", "Where the time went";
        CriticalPath = "critical-path", "What the end had to wait for, step by step";
        Tree = "tree", "What ran: the tree of processes";
        Execs = "execs", "What ran: every execution, a line each";
        OffCpu = "off-cpu", "Who waited, for what, and who ended the wait";
        MaxOffCpu = "max-off-cpu", "Each process's longest time off CPU, per interval";
        RunQueue = "run-queue", "How long tasks waited for a CPU, and how many wanted one";
        Parallelism = "parallelism", "How much ran at once, and what ran alone";
        Histogram = "histogram", "How long the slices on a CPU were";
        Series = "series", "When each process was on a CPU";
        Cpus = "cpus", "What the machine did, CPU by CPU";
        Audit = "audit", "Our figures beside the kernel's own";
    }
}

impl Kind {
    /// The name in JSON.
    pub fn key(self) -> String {
        self.name().replace('-', "_")
    }

    /// Whether the report needs the analysis's timeline.
    pub fn needs_timeline(self) -> bool {
        !matches!(self, Kind::Top | Kind::Audit | Kind::Tree | Kind::Execs)
    }

    /// Makes the report.
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
            Kind::CriticalPath => Box::new(critical_path::PathReport::new(view)),
            Kind::Parallelism => Box::new(parallelism::ParallelismReport::new(view)),
        }
    }
}
