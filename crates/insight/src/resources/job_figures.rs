//! The figures of a whole job that monitoring services follow over time. The exports to OpenMetrics and OTLP write the
//! same figures.

use tr_analyze::contention::Contention;
use tr_analyze::model::Analysis;

use crate::resources::demands::{self, Demand};
use crate::resources::size::RunnerSize;

/// The unit of the value of a job's figure.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FigureUnit {
    /// The value of the figure is in ns; it is shown in seconds.
    Seconds,
    Bytes,
    Cpus,
}

/// The name of a figure of a job, without its unit. Each export joins the name of the group and the name of the figure
/// in its own way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FigureName {
    /// The subject that several figures have in common, such as `memory`; `None` for a figure whose name alone says
    /// what it is.
    pub group: Option<&'static str>,
    /// The name of the figure in its group, in words with underscores.
    pub name: &'static str,
}

impl FigureName {
    /// Makes the name of a figure that is in no group.
    pub const fn single(name: &'static str) -> FigureName {
        FigureName { group: None, name }
    }

    const fn of(group: &'static str, name: &'static str) -> FigureName {
        FigureName {
            group: Some(group),
            name,
        }
    }

    /// The name of the figure after the name of its group, joined by the text `between`. A figure in no group has only
    /// its own name.
    pub fn joined(self, between: &str) -> String {
        match self.group {
            Some(group) => format!("{group}{between}{}", self.name),
            None => self.name.to_owned(),
        }
    }
}

/// A figure of a whole recorded job, such as its CPU time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct JobFigure {
    pub name: FigureName,
    pub unit: FigureUnit,
    pub value: u64,
    pub about: &'static str,
}

/// The name of the figure for a job's CPU time. The export to OTLP uses OpenTelemetry's own name for CPU time in its
/// place.
pub const CPU: FigureName = FigureName::single("cpu");
pub const DISK_READ: FigureName = FigureName::of("disk", "read");
pub const DISK_WRITTEN: FigureName = FigureName::of("disk", "written");

/// The known figures of a whole recorded job. `size` is the proposed size of the job's runner.
pub fn job_figures(analysis: &Analysis, size: Option<&RunnerSize>) -> Vec<JobFigure> {
    use FigureUnit::{Bytes, Cpus, Seconds};
    let times = &analysis.totals.times;
    let queued = times.run_queue_known();
    let others = queued.and_then(|_| Contention::of_all(analysis));
    let memory = size.and_then(|size| size.memory);
    let cpus = size.and_then(|size| size.cpus);
    let disk = size.and_then(|size| size.disk);
    let demands = demands::of(analysis, None);
    let demand = |demand| demands.get(&demand).copied();
    let figure = |name, unit, value: Option<u64>, about| {
        Some(JobFigure {
            name,
            unit,
            value: value?,
            about,
        })
    };
    let all = [
        figure(
            FigureName::single("wall"),
            Seconds,
            Some(analysis.wall()),
            "Wall time of the job",
        ),
        figure(
            CPU,
            Seconds,
            times.on_cpu_known(),
            "CPU time of all processes",
        ),
        figure(
            FigureName::single("run_queue"),
            Seconds,
            queued,
            "Waits of all threads for a CPU",
        ),
        figure(
            FigureName::of("run_queue", "others"),
            Seconds,
            others.map(|(division, _)| division.others),
            "Waits of all threads for a CPU that tasks of others had",
        ),
        figure(
            FigureName::of("memory", "at_least"),
            Bytes,
            memory.map(|memory| memory.at_least),
            "Lower bound of the peak of all processes' memory",
        ),
        figure(
            FigureName::of("memory", "at_most"),
            Bytes,
            memory.and_then(|memory| memory.at_most),
            "Upper bound of the peak of all processes' memory",
        ),
        figure(
            FigureName::of("memory", "available"),
            Bytes,
            memory.and_then(|memory| memory.available),
            "Memory that the job could use",
        ),
        figure(
            FigureName::of("memory", "enough"),
            Bytes,
            memory.and_then(|memory| memory.enough),
            "Smallest size of memory that would do",
        ),
        figure(
            FigureName::of("cpus", "wanted_p90"),
            Cpus,
            cpus.map(|cpus| cpus.wanted),
            "CPUs that the job could use at most for 90 % of the time",
        ),
        figure(
            FigureName::of("cpus", "enough"),
            Cpus,
            cpus.map(|cpus| cpus.enough),
            "Smallest number of CPUs that would do",
        ),
        figure(
            FigureName::of("disk", "free_at_least"),
            Bytes,
            disk.map(|disk| disk.free_at_least),
            "Least free space of the file system that the job began in",
        ),
        figure(
            FigureName::of("disk", "used_peak"),
            Bytes,
            disk.map(|disk| disk.used_peak),
            "Free space at the start less the least free space",
        ),
        figure(
            DISK_READ,
            Bytes,
            demand(Demand::Read),
            "Bytes that the processes read from disks",
        ),
        figure(
            DISK_WRITTEN,
            Bytes,
            demand(Demand::Written),
            "Bytes that the processes wrote to disks",
        ),
    ];
    all.into_iter().flatten().collect()
}
