//! Writes metrics of OpenTelemetry (OTLP 1.x): the figures of a whole job, each with one data point. A metric has the
//! name of the semantic conventions where there is one for it; the names of other metrics begin with `tr.`.
//!
//! The data points only have attributes that are equal in later runs of the job, so that a backend continues the series
//! of earlier runs. The number of the run is an attribute of the resource, which many backends do not count as a part
//! of the series.

use std::io::{self, Write};

use tr_advice::advise;
use tr_analyze::model::Analysis;
use tr_import::otlp::messages::KeyValue;
use tr_insight::path;
use tr_insight::processes::{exit, label};
use tr_insight::recordings::ci::Ci;
use tr_insight::resources::job_figures::{self, job_figures, FigureUnit, JobFigure};
use tr_insight::resources::memory;
use tr_insight::resources::size::RunnerSize;
use tr_insight::views::view::View;

use super::attributes::{resource, text, TASK_NAME};
use super::metric_messages::{
    Data, Gauge, Metric, Number, Point, ResourceMetrics, ScopeMetrics, Sum,
};
use super::{request, scope, unix, Encoding, Given, SCHEMA};

/// OTLP's number for metrics whose values are sums since the start of the job (cumulative temporality).
const CUMULATIVE: i32 = 2;

/// Writes the figures of a recorded job as an OTLP request of metrics. The attributes in `given` are added to the
/// attributes of the resource, and replace attributes of the recording that have the same name.
pub fn write(
    view: &View<'_>,
    encoding: Encoding,
    given: &[Given],
    out: &mut dyn Write,
) -> io::Result<()> {
    let metrics = ResourceMetrics {
        resource: Some(resource(view.analysis, given)),
        scope_metrics: vec![ScopeMetrics {
            scope: Some(scope()),
            metrics: metrics(view),
            schema_url: SCHEMA.to_owned(),
        }],
        schema_url: SCHEMA.to_owned(),
    };
    request("resourceMetrics", std::iter::once(metrics), encoding, out)
}

fn metrics(view: &View<'_>) -> Vec<Metric> {
    let analysis = view.analysis;
    let path = path::path_of(view).ok();
    let advised = path
        .map(|path| advise(view, &path, None))
        .unwrap_or_default();
    let size = RunnerSize::new(view, advised.cpus);
    let job = Job::new(analysis);
    let figures = job_figures(analysis, size.as_ref());
    let mut all: Vec<Metric> = figures
        .iter()
        .filter_map(|figure| job.figure(figure))
        .collect();
    all.extend(job.disk_io(&figures));
    all.extend(job.failed(analysis));
    let cpus = analysis.meta.cpus.len() as u64;
    all.push(job.limit(
        "system.cpu.logical.count",
        "{cpu}",
        "Logical CPUs of the machine",
        cpus,
    ));
    all.extend(
        memory::of_machine(&analysis.meta)
            .map(|bytes| job.limit("system.memory.limit", "By", "Memory of the machine", bytes)),
    );
    all
}

/// The facts that all exported metrics of a CI job have in common.
struct Job {
    attributes: Vec<KeyValue>,
    /// The start of the recorded job in ns since 1970.
    start: u64,
    /// The end of the recorded job in ns since 1970.
    end: u64,
}

impl Job {
    fn new(analysis: &Analysis) -> Job {
        let ci = Ci::new(&analysis.meta);
        let names = [
            ("project", "vcs.repository.name"),
            ("branch", "vcs.ref.head.name"),
            ("job", TASK_NAME),
        ];
        let known = names
            .iter()
            .filter_map(|(own, name)| Some(text(name, ci.get(own)?)));
        let root = analysis.process_ids().find(|ix| {
            let process = analysis.process(*ix);
            process.parent.is_none() && Some(process.pid) == analysis.meta.root
        });
        let program = root.map(|ix| label::program(analysis.process(ix)));
        let program = program.map(|name| text("process.executable.name", &name.to_string()));
        Job {
            attributes: known.chain(program).collect(),
            start: unix(analysis, analysis.start),
            end: unix(analysis, analysis.end),
        }
    }

    fn point(&self, value: Number, more: Option<KeyValue>) -> Point {
        Point {
            attributes: self.attributes.iter().cloned().chain(more).collect(),
            start_time_unix_nano: self.start,
            time_unix_nano: self.end,
            value: Some(value),
        }
    }

    /// The OTLP metric for a figure of the job, such as its CPU time; `None` for a figure that is one of several points
    /// of another metric.
    fn figure(&self, figure: &JobFigure) -> Option<Metric> {
        let (unit, value) = match figure.unit {
            FigureUnit::Seconds => ("s", Number::Double(figure.value as f64 / 1e9)),
            FigureUnit::Bytes => ("By", int(figure.value)),
            FigureUnit::Cpus => ("{cpu}", int(figure.value)),
        };
        let point = self.point(value, None);
        let metric = match figure.name {
            job_figures::DISK_READ | job_figures::DISK_WRITTEN => return None,
            job_figures::CPU => {
                metric("process.cpu.time", unit, figure.about, counter(vec![point]))
            }
            // By OpenTelemetry's naming rules, a dot separates the name of a group from the rest: `memory.at_least`.
            name => {
                let name = format!("tr.{}", name.joined("."));
                metric(&name, unit, figure.about, gauge(point))
            }
        };
        Some(metric)
    }

    fn disk_io(&self, figures: &[JobFigure]) -> Option<Metric> {
        let directions = [
            (job_figures::DISK_READ, "read"),
            (job_figures::DISK_WRITTEN, "write"),
        ];
        let points: Vec<Point> = directions
            .into_iter()
            .filter_map(|(name, direction)| {
                let figure = figures.iter().find(|figure| figure.name == name)?;
                let direction = text("disk.io.direction", direction);
                Some(self.point(int(figure.value), Some(direction)))
            })
            .collect();
        let about = "Bytes that the processes read from disks and wrote to them";
        (!points.is_empty()).then(|| metric("process.disk.io", "By", about, counter(points)))
    }

    fn failed(&self, analysis: &Analysis) -> Option<Metric> {
        let status = analysis.summary.as_ref()?.status?;
        let failed = u64::from(exit::failed(Some(status)));
        let about = "1 if the command failed, else 0";
        Some(metric(
            "tr.failed",
            "{job}",
            about,
            gauge(self.point(int(failed), None)),
        ))
    }

    /// The OTLP metric for a size of the machine, such as its number of CPUs. The semantic conventions define it as a
    /// sum that can also fall.
    fn limit(&self, name: &str, unit: &str, about: &str, value: u64) -> Metric {
        let sum = Data::Sum(Sum {
            data_points: vec![self.point(int(value), None)],
            aggregation_temporality: CUMULATIVE,
            is_monotonic: false,
        });
        metric(name, unit, about, sum)
    }
}

fn metric(name: &str, unit: &str, about: &str, data: Data) -> Metric {
    Metric {
        name: name.to_owned(),
        description: about.to_owned(),
        unit: unit.to_owned(),
        data: Some(data),
    }
}

fn gauge(point: Point) -> Data {
    Data::Gauge(Gauge {
        data_points: vec![point],
    })
}

fn counter(points: Vec<Point>) -> Data {
    Data::Sum(Sum {
        data_points: points,
        aggregation_temporality: CUMULATIVE,
        is_monotonic: true,
    })
}

fn int(value: u64) -> Number {
    Number::Int(i64::try_from(value).unwrap_or(i64::MAX))
}
