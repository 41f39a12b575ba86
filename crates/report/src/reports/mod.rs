//! The reports of `tr analyze`, each in a file of its own, and what they have in common.

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
mod max_off_cpu;
pub mod memory;
pub mod network;
mod not_known;
pub mod off_cpu;
pub mod parallelism;
mod path_functions;
mod path_shares;
pub mod quality;
mod series;
pub mod steps;
pub mod syscalls;
pub mod top;
pub mod tree;
mod waited;
mod wanted;

use tr_analyze::model::Basis;
use tr_format::meta::Extra;

use self::not_known::NotKnown;
pub use crate::output::Report;
use tr_insight::cpus::cpu_series::CpuSeries;
pub use tr_insight::views::view::{Ask, View};
use tr_insight::waits::longest_off_cpu::LongestOffCpu;
use tr_text::named;

named! {
    /// A report of `tr analyze --report`. The order of the variants is that of `--report all`.
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

/// The kind of facts from which a report is made. This kind decides for which recordings the report exists, and whether
/// the report needs a timeline.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Source {
    /// The report is made from sums, such as the CPU time of processes, which every recording has.
    Sums,
    /// The report is made from sums, such as run-queue waits, that only recordings with scheduling events have.
    SumsOfEvents,
    /// The report is made from the timeline of the threads' states, which can be made for every recording.
    Timeline,
    /// Like [`Source::Timeline`], and the report also has the sums of the times of steps.
    StepTimes,
    /// Like [`Source::Timeline`], and the report also simulates runs of the build.
    Simulation,
    /// Like [`Source::Sums`], but the report's page for people also has advice, for which runs of the build are
    /// simulated if there is a timeline.
    Overview,
    /// The report is made from the timeline of the threads' states, and needs the scheduling events in it.
    Events,
}

/// The use that a report, an export or a page makes of the timeline of the threads' states, from the use that takes
/// the least memory to the one that takes the most.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum TimelineUse {
    /// The timeline is used for the critical path, for waits or for exports.
    Path,
    /// The timeline is used for the sums of the times of steps, or for the HTML page.
    StepTimes,
    /// The timeline is used for advice or forecasts, which simulate runs of the build.
    Simulation,
}

/// The definition of a report: its subject in the help, the facts that it needs, and the function that makes
/// it.
struct About {
    topic: Topic,
    source: Source,
    make: for<'a> fn(&View<'a>) -> Box<dyn Report + 'a>,
}

impl ReportKind {
    fn about(self) -> About {
        use Source::{Events, Overview, Simulation, StepTimes, Sums, SumsOfEvents, Timeline};
        use Topic::{Machine, Processes, Time, Trust, Waits};
        let of = |topic, source, make| About {
            topic,
            source,
            make,
        };
        match self {
            Self::Top => of(Time, Overview, |view| Box::new(top::Top::new(view))),
            Self::Advice => of(Time, Simulation, |view| {
                Box::new(advice::AdviceReport::new(view))
            }),
            Self::CriticalPath => of(Time, Timeline, |view| {
                Box::new(critical_path::PathReport::new(view))
            }),
            Self::Steps => of(Time, StepTimes, |view| {
                Box::new(steps::StepsReport::new(view))
            }),
            Self::Tree => of(Processes, Sums, |view| Box::new(tree::Tree::new(view))),
            Self::Execs => of(Processes, Sums, |view| Box::new(execs::Execs::new(view))),
            Self::OffCpu => of(Waits, Events, |view| Box::new(off_cpu::OffCpu::new(view))),
            Self::MaxOffCpu => of(Waits, Events, |view| Box::new(LongestOffCpu::new(view))),
            Self::RunQueue => of(Waits, Events, |view| {
                Box::new(lengths::Lengths::waits(view))
            }),
            Self::Parallelism => of(Time, Events, |view| {
                Box::new(parallelism::ParallelismReport::new(view))
            }),
            Self::Histogram => of(Processes, Events, |view| {
                Box::new(lengths::Lengths::slices(view))
            }),
            Self::Series => of(Time, Timeline, |view| Box::new(CpuSeries::new(view))),
            Self::Disk => of(Waits, Events, |view| Box::new(disk::Disk::new(view))),
            Self::Memory => of(Waits, Sums, |view| Box::new(memory::Memory::new(view))),
            Self::Network => of(Waits, Events, |view| Box::new(network::Network::new(view))),
            Self::Syscalls => of(Processes, Sums, |view| {
                Box::new(syscalls::SystemCalls::new(view))
            }),
            Self::Flame => of(Processes, Sums, |view| Box::new(flame::Flame::new(view))),
            Self::Machine => of(
                Machine,
                Timeline,
                |view| match machine::MachineReport::new(view) {
                    Ok(report) => Box::new(report),
                    Err(why) => Self::Machine.not_known(why),
                },
            ),
            Self::Cpus => of(Machine, Events, |view| Box::new(cpus::Cpus::new(view))),
            Self::Quality => of(Trust, SumsOfEvents, |view| {
                Box::new(quality::QualityReport::new(view))
            }),
            Self::Audit => of(Trust, SumsOfEvents, |view| {
                Box::new(tr_insight::recordings::audit::audit(view.analysis))
            }),
        }
    }

    pub fn topic(self) -> Topic {
        self.about().topic
    }

    pub fn by_topic() -> impl Iterator<Item = ReportKind> {
        let about = |topic| {
            ReportKind::ALL
                .into_iter()
                .filter(move |report| report.topic() == topic)
        };
        Topic::ALL.into_iter().flat_map(about)
    }

    /// The use that the report makes of the timeline of the threads' states, so that the analysis must keep it; `None`
    /// if the report uses no timeline. `for_people` means that the report is printed as text or Markdown.
    pub fn timeline_use(self, for_people: bool) -> Option<TimelineUse> {
        match self.about().source {
            Source::Sums | Source::SumsOfEvents => None,
            Source::Timeline | Source::Events => Some(TimelineUse::Path),
            Source::StepTimes => Some(TimelineUse::StepTimes),
            Source::Simulation => Some(TimelineUse::Simulation),
            Source::Overview => for_people.then_some(TimelineUse::Simulation),
        }
    }

    /// Whether the report can only be made for a recording with scheduling events.
    pub fn needs_events(self) -> bool {
        matches!(self.about().source, Source::SumsOfEvents | Source::Events)
    }

    /// The kind of facts that the report needs and that not every recording has, with the option of `tr record` that
    /// requests them; `None` if the report needs no such facts. For the report on functions, either kind of stack is
    /// enough (`has_stacks`).
    fn extra(self, has_stacks: bool) -> Option<(Extra, Option<&'static str>)> {
        match self {
            ReportKind::Syscalls => Some((Extra::SystemCalls, Some("--syscalls"))),
            ReportKind::Flame if !has_stacks => Some((Extra::Stacks, Some("--stacks"))),
            ReportKind::Network => Some((Extra::Network, None)),
            _ => None,
        }
    }

    /// The option of `tr record` without which a recording lacks the facts of this report; `None` if no option is
    /// needed.
    pub fn option(self) -> Option<&'static str> {
        self.extra(false).and_then(|(_, option)| option)
    }

    /// A text that explains to the reader why the recording lacks the facts of this report; `None` if the recording has
    /// these facts.
    fn unknown(self, view: &View<'_>) -> Option<String> {
        let analysis = view.analysis;
        let meta = &analysis.meta;
        if self.needs_events() && analysis.basis() != Basis::Events {
            return Some(not_known::without_events(meta));
        }
        let lacking = self.extra(meta.has_stacks());
        if let Some((fact, option)) = lacking.filter(|(fact, _)| !meta.has(*fact)) {
            return Some(not_known::without(meta, fact, option));
        }
        // Some reports use a timeline, but show useful facts without one, too.
        let more = [
            ReportKind::Top,
            ReportKind::Steps,
            ReportKind::Disk,
            ReportKind::Network,
            ReportKind::Machine,
        ];
        let needs = self.timeline_use(true).is_some() && !more.contains(&self);
        let left_out = view.recording.budget.left_out.clone();
        left_out.filter(|_| needs && analysis.timeline.is_none())
    }

    pub fn make<'a>(self, view: &View<'a>) -> Box<dyn Report + 'a> {
        match self.unknown(view) {
            Some(why) => self.not_known(why),
            None => (self.about().make)(view),
        }
    }

    fn not_known<'a>(self, why: String) -> Box<dyn Report + 'a> {
        Box::new(NotKnown {
            title: self.title(),
            why,
        })
    }
}
