//! The reports, one file each.

pub mod advice;
pub mod audit;
pub mod ci_tracer;
pub mod cpus;
pub mod critical_path;
mod devices;
pub mod disk;
pub mod execs;
mod failed;
pub mod flame;
pub mod lengths;
mod lookups;
pub mod machine;
pub mod max_off_cpu;
pub mod memory;
pub mod network;
mod not_known;
pub mod off_cpu;
pub mod parallelism;
mod path_functions;
pub mod quality;
pub mod series;
pub mod steps;
pub mod syscalls;
pub mod top;
pub mod tree;
mod waited;
mod wanted;

use tr_analyze::model::Basis;
use tr_analyze::parallelism::Parallelism;
use tr_format::meta::Extra;

use self::not_known::NotKnown;
pub use crate::output::Report;
pub use tr_insight::view::{Ask, View};
use tr_text::named;

/// The numbers of CPUs for which a report makes a forecast: the recording's, and larger ones.
fn machines(cpus: u64) -> impl Iterator<Item = u64> {
    let larger = (1..=16).map(|power| 1 << power);
    std::iter::once(cpus).chain(larger.filter(move |count| *count > cpus))
}

/// The larger machines that the tasks wanting a CPU at once could have used.
fn machines_of_use(found: &Parallelism, cpus: u64) -> impl Iterator<Item = u64> + '_ {
    let used = |cpus| found.could_use(cpus);
    machines(cpus).filter(move |n| *n == cpus || used(cpus.max(n / 2)) < used(*n))
}

named! {
    /// A report, in the order of `--report all`. Its title describes it.
    #[derive(Hash)]
    pub enum ReportKind {
        Top = "top", "Where the time went";
        Advice = "advice", "The changes that would save time";
        CriticalPath = "critical-path", "The critical path, step by step";
        Steps = "steps", "Steps, targets, tests and marks, each with its times";
        Tree = "tree", "The tree of processes";
        Execs = "execs", "Every execution, a line each";
        OffCpu = "off-cpu", "Waits of tasks, with their reasons and wakers";
        MaxOffCpu = "max-off-cpu", "Each process's longest time off CPU, per interval";
        RunQueue = "run-queue", "Run-queue waits, and the number of runnable tasks";
        Parallelism = "parallelism", "The number of tasks at once, and the tasks that ran alone";
        Histogram = "histogram", "The lengths of the slices on a CPU";
        Series = "series", "The time on a CPU of each process, per interval";
        Disk = "disk", "Waits for disks and files, and the bytes read and written";
        Memory = "memory", "The largest resident sets, waits for memory, kills for lack of it";
        Network = "network", "TCP connections, by remote host and by process";
        Syscalls = "syscalls", "System calls, as strace -c counts them";
        Flame = "flame", "The functions of sampled stacks, the hottest ones first";
        Machine = "machine", "The machine: CPU time of others, pressure, memory, frequency";
        Cpus = "cpus", "The time of each CPU: this build, others, idle";
        Quality = "quality", "How far the numbers can be trusted";
        Audit = "audit", "The figures beside the kernel's own";
    }
}

named! {
    pub enum Topic {
        Time = "time", "time";
        Processes = "processes", "processes";
        Waits = "waits", "waits";
        Machine = "machine", "the machine";
        Trust = "trust", "how far the numbers can be trusted";
    }
}

/// The facts that a report is made of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Source {
    /// Sums, which every recording has.
    Sums,
    /// The report needs sums that only scheduling events provide.
    SumsOfEvents,
    /// The timeline, which every recording has.
    Timeline,
    /// The timeline of scheduling events.
    Events,
}

impl ReportKind {
    fn about(self) -> (Topic, Source) {
        match self {
            ReportKind::Top => (Topic::Time, Source::Sums),
            ReportKind::Advice => (Topic::Time, Source::Timeline),
            ReportKind::CriticalPath => (Topic::Time, Source::Timeline),
            ReportKind::Steps => (Topic::Time, Source::Timeline),
            ReportKind::Tree => (Topic::Processes, Source::Sums),
            ReportKind::Execs => (Topic::Processes, Source::Sums),
            ReportKind::OffCpu => (Topic::Waits, Source::Events),
            ReportKind::MaxOffCpu => (Topic::Waits, Source::Events),
            ReportKind::RunQueue => (Topic::Waits, Source::Events),
            ReportKind::Parallelism => (Topic::Time, Source::Events),
            ReportKind::Histogram => (Topic::Processes, Source::Events),
            ReportKind::Series => (Topic::Time, Source::Timeline),
            ReportKind::Disk => (Topic::Waits, Source::Events),
            ReportKind::Memory => (Topic::Waits, Source::Sums),
            ReportKind::Network => (Topic::Waits, Source::Events),
            ReportKind::Syscalls => (Topic::Processes, Source::Sums),
            ReportKind::Flame => (Topic::Processes, Source::Sums),
            ReportKind::Machine => (Topic::Machine, Source::Timeline),
            ReportKind::Cpus => (Topic::Machine, Source::Events),
            ReportKind::Quality => (Topic::Trust, Source::SumsOfEvents),
            ReportKind::Audit => (Topic::Trust, Source::SumsOfEvents),
        }
    }

    pub fn topic(self) -> Topic {
        self.about().0
    }

    pub fn by_topic() -> impl Iterator<Item = ReportKind> {
        let about = |topic| {
            ReportKind::ALL
                .into_iter()
                .filter(move |report| report.topic() == topic)
        };
        Topic::ALL.into_iter().flat_map(about)
    }

    /// Whether the report needs the analysis's timeline.
    pub fn needs_timeline(self) -> bool {
        matches!(self.about().1, Source::Timeline | Source::Events)
    }

    /// Whether only scheduling events provide what the report shows.
    fn needs_events(self) -> bool {
        matches!(self.about().1, Source::SumsOfEvents | Source::Events)
    }

    /// The reason why the recording does not have what the report shows.
    fn unknown(self, view: &View<'_>) -> Option<String> {
        let analysis = view.analysis;
        let meta = &analysis.meta;
        if self.needs_events() && analysis.basis() != Basis::Events {
            return Some(not_known::without_events(meta));
        }
        let lacking = match self {
            ReportKind::Syscalls => Some((Extra::SystemCalls, Some("--syscalls"))),
            ReportKind::Flame if !meta.has_stacks() => Some((Extra::Stacks, Some("--stacks"))),
            ReportKind::Network => Some((Extra::Network, None)),
            _ => None,
        };
        if let Some((fact, option)) = lacking.filter(|(fact, _)| !meta.has(*fact)) {
            return Some(not_known::without(meta, fact, option));
        }
        // What these have beside a timeline is of use.
        let more = [
            ReportKind::Steps,
            ReportKind::Disk,
            ReportKind::Network,
            ReportKind::Machine,
        ];
        let needs = self.needs_timeline() && !more.contains(&self);
        let left_out = view.recording.budget.left_out.clone();
        left_out.filter(|_| needs && analysis.timeline.is_none())
    }

    pub fn make<'a>(self, view: &View<'a>) -> Box<dyn Report + 'a> {
        let not_known = |why| Box::new(NotKnown { kind: self, why });
        if let Some(why) = self.unknown(view) {
            return not_known(why);
        }
        match self {
            ReportKind::Top => Box::new(top::Top::new(view)),
            ReportKind::Advice => Box::new(advice::AdviceReport::new(view)),
            ReportKind::Histogram => Box::new(lengths::Lengths::slices(view)),
            ReportKind::OffCpu => Box::new(off_cpu::OffCpu::new(view)),
            ReportKind::MaxOffCpu => Box::new(max_off_cpu::MaxOffCpu::new(view)),
            ReportKind::RunQueue => Box::new(lengths::Lengths::waits(view)),
            ReportKind::Quality => Box::new(quality::QualityReport::new(view)),
            ReportKind::Audit => Box::new(tr_insight::audit::audit(view.analysis)),
            ReportKind::Tree => Box::new(tree::Tree::new(view)),
            ReportKind::Execs => Box::new(execs::Execs::new(view)),
            ReportKind::Steps => Box::new(steps::StepsReport::new(view)),
            ReportKind::Series => Box::new(series::Series::new(view)),
            ReportKind::Disk => Box::new(disk::Disk::new(view)),
            ReportKind::Memory => Box::new(memory::Memory::new(view)),
            ReportKind::Network => Box::new(network::Network::new(view)),
            ReportKind::Syscalls => Box::new(syscalls::SystemCalls::new(view)),
            ReportKind::Flame => Box::new(flame::Flame::new(view)),
            ReportKind::Machine => match machine::MachineReport::new(view) {
                Some(machine) => Box::new(machine),
                // An older trace, or one of a single moment.
                None => not_known(
                    "not known: the trace has no samples of the machine's counters".into(),
                ),
            },
            ReportKind::Cpus => Box::new(cpus::Cpus::new(view)),
            ReportKind::CriticalPath => Box::new(critical_path::PathReport::new(view)),
            ReportKind::Parallelism => Box::new(parallelism::ParallelismReport::new(view)),
        }
    }
}
