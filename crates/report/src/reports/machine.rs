//! The machine: the CPU time of the build and of others, pressure, memory, frequency.

use serde_json::{json, Value};
use tr_analyze::arena::Arena;
use tr_analyze::machine::{samples_are_of_recorded_cpus, throttled_containers, Range, Samples};
use tr_analyze::model::ProcessIx;
use tr_format::counters::{Counter, Unit};
use tr_format::event::Ktime;

use super::cpus;
use super::not_known::NotKnown;
use super::series::{fit, shade};
use super::ReportKind;
use crate::output::Report;
use tr_insight::view::View;
use tr_insight::{cpu_time, label};
use tr_text::json::with;
use tr_text::page::Page;
use tr_text::style::{Paint, Style};
use tr_text::table::{Cell, Table};
use tr_text::units;
use tr_text::words::{STALLED_CPU, STALLED_IO, STALLED_MEMORY};

pub struct MachineReport<'a> {
    view: View<'a>,
    cpus: u64,
    /// The processes that "build" means.
    build: &'static str,
    /// The time between two samples, or between a sample and an end of the span; in order.
    intervals: Vec<Interval<'a>>,
    whole: Interval<'a>,
}

/// The figures of a part of the span. `None`: not known.
struct Interval<'a> {
    samples: Samples<'a>,
    span: (Ktime, Ktime),
    /// CPU time of the build, in ns.
    build: u64,
    others: Option<u64>,
    idle: Option<u64>,
}

impl<'a> Interval<'a> {
    fn new(samples: Samples<'a>, span: (Ktime, Ktime), build: u64, cpus: Option<u64>) -> Self {
        let mut interval = Interval {
            samples,
            span,
            build,
            others: None,
            idle: None,
        };
        let (Some(cpus), Some(used)) = (cpus, samples.used(span, build)) else {
            return interval;
        };
        let all = interval.length().saturating_mul(cpus);
        interval.others = Some(used.others.min(all.saturating_sub(build)));
        interval.idle = Some(all.saturating_sub(used.all));
        interval
    }

    fn length(&self) -> u64 {
        self.span.1.since(self.span.0)
    }

    fn total(&self, counter: Counter) -> Option<u64> {
        self.samples.increase(counter, self.span)
    }

    fn range(&self, counter: Counter) -> Option<Range> {
        self.samples.range(counter, self.span)
    }

    /// The value of a counter and its key: of times and totals the increase, of others the mean at
    /// the interval's end.
    fn value(&self, counter: Counter) -> Option<u64> {
        let end = (self.span.1, self.span.1);
        match counter.unit() {
            Unit::Time | Unit::Count => self.total(counter),
            Unit::Bytes | Unit::Frequency => {
                let range = self.samples.range(counter, end);
                range.map(|range| range.mean)
            }
        }
    }
}

fn key(counter: Counter) -> String {
    let unit = match counter.unit() {
        Unit::Time => "_ns",
        Unit::Count => "",
        Unit::Bytes => "_bytes",
        Unit::Frequency => "_khz",
    };
    format!("{}{unit}", counter.name())
}

/// The counters of CSV, between `idle_ns` and the end.
const IN_CSV: [Counter; 18] = {
    use Counter::*;
    [
        Iowait,
        Busy,
        Stolen,
        Throttled,
        ThrottledPeriods,
        CpuSome,
        MemorySome,
        MemoryFull,
        IoSome,
        IoFull,
        CgroupCpuSome,
        CgroupMemorySome,
        CgroupMemoryFull,
        CgroupIoSome,
        CgroupIoFull,
        AvailableMemory,
        CgroupMemory,
        Frequency,
    ]
};

/// The columns of intervals; those of the whole span have no current values.
fn table<'t>(view: &'t View<'t>, whole: bool) -> Table<'t, &'t Interval<'t>> {
    let mut table: Table<'t, &'t Interval<'t>> = Table::unnamed();
    if !whole {
        table = table.data("from_ns", |interval| view.since(interval.span.0));
    }
    let table = table
        .data("length_ns", |interval| interval.length())
        .data("build_ns", |interval| interval.build)
        .data("others_ns", |interval| interval.others)
        .data(key(Counter::Recorder), |interval| {
            interval.value(Counter::Recorder)
        })
        .data("idle_ns", |interval| interval.idle);
    let rest = Counter::ALL.into_iter();
    let rest = rest.filter(|counter| *counter != Counter::Recorder && !IN_CSV.contains(counter));
    let all = IN_CSV.into_iter().map(|listed| (listed, true));
    let all = all.chain(rest.map(|listed| (listed, false)));
    let current = |counter: Counter| matches!(counter.unit(), Unit::Bytes | Unit::Frequency);
    let all = all.filter(|(listed, _)| !(whole && current(*listed)));
    all.fold(table, |table, (counter, in_csv)| {
        let table = table.data(key(counter), move |interval| interval.value(counter));
        if in_csv {
            table
        } else {
            table.json_only()
        }
    })
}

struct Fact {
    name: String,
    value: Cell,
    share: Cell,
    strip: Vec<(u64, u64)>,
}

/// The report on the machine. An older trace, or one of a single moment, has no samples.
pub fn report<'a>(view: &View<'a>) -> Box<dyn Report + 'a> {
    match MachineReport::new(view) {
        Some(machine) => Box::new(machine),
        None => Box::new(NotKnown {
            kind: ReportKind::Machine,
            why: "not known: the trace has no samples of the machine's counters".into(),
        }),
    }
}

impl<'a> MachineReport<'a> {
    /// The samples of the analyzed span; `None` if there are none.
    fn new(view: &View<'a>) -> Option<MachineReport<'a>> {
        let analysis = view.analysis;
        let samples = Samples::of(analysis);
        let covered = samples.within((analysis.start, analysis.end))?;
        let inside = samples.0.iter().map(|(at, _)| *at);
        let inside = inside.filter(|at| *at > covered.0 && *at < covered.1);
        let mut edges: Vec<Ktime> = [covered.0].into_iter().chain(inside).collect();
        edges.push(covered.1);
        edges.dedup();
        let (own, build) = cpus::own(view);
        let ran = on_cpu(view, &own, &edges);
        let all = view.ask.cpu.is_none() && samples_are_of_recorded_cpus(analysis);
        let cpus = analysis.meta.cpus.len() as u64;
        let known = all.then_some(cpus);
        let spans = edges.iter().zip(edges.iter().skip(1));
        let intervals = spans
            .zip(&ran)
            .map(|((from, to), ran)| Interval::new(samples, (*from, *to), *ran, known));
        let sum = ran.iter().fold(0, |sum: u64, ns| sum.saturating_add(*ns));
        Some(MachineReport {
            view: *view,
            cpus,
            build,
            intervals: intervals.collect(),
            whole: Interval::new(samples, covered, sum, known),
        })
    }

    fn fact(
        &self,
        name: &str,
        cpus: u64,
        of: impl Fn(&Interval<'_>) -> Option<u64>,
    ) -> Option<Fact> {
        let sum = of(&self.whole)?;
        let part = |interval: &Interval<'_>| {
            (
                of(interval).unwrap_or(0),
                interval.length().saturating_mul(cpus),
            )
        };
        Some(Fact {
            name: name.to_owned(),
            value: Cell::Time(sum),
            share: Cell::Share(sum, self.whole.length().saturating_mul(cpus)),
            strip: self.intervals.iter().map(part).collect(),
        })
    }

    /// The row of a current value, of which one figure of the range is reported.
    fn current(
        &self,
        name: &str,
        counter: Counter,
        told: fn(Range) -> u64,
        cell: impl Fn(u64) -> Cell,
    ) -> Option<Fact> {
        let range = self.whole.range(counter)?;
        let part = |interval: &Interval<'_>| (interval.range(counter).map_or(0, told), range.most);
        Some(Fact {
            name: name.to_owned(),
            value: cell(told(range)),
            share: Cell::Empty,
            strip: self.intervals.iter().map(part).collect(),
        })
    }

    /// The rows: CPU time as shares of all CPUs, pressure as shares of the time.
    fn facts(&self) -> Vec<Fact> {
        use Counter::*;
        let cpus = self.cpus;
        let mut facts = vec![
            self.fact(&format!("CPU: {}", self.build), cpus, |interval| {
                Some(interval.build)
            }),
            self.fact("CPU: other tasks", cpus, |interval| interval.others),
            self.fact("CPU: tr itself", cpus, |interval| interval.total(Recorder)),
            self.fact("CPU: idle", cpus, |interval| interval.idle),
        ];
        for (name, counter) in [
            ("CPU: part of idle, iowait", Iowait),
            ("CPU: part of all, stolen by the hypervisor", Stolen),
            ("CPU: throttled by the quota of a cgroup", Throttled),
        ] {
            let fact = self.fact(name, cpus, |interval| interval.total(counter));
            facts.push(fact.filter(|fact| fact.value != Cell::Time(0)));
        }
        for (container, ns) in throttled_containers(self.view.analysis) {
            let name = format!("throttled in {}", label::container(&container.called));
            facts.push(self.fact(&name, cpus, |_| Some(ns)));
        }
        for (name, counter) in [
            (STALLED_CPU, CpuSome),
            (STALLED_MEMORY, MemorySome),
            ("all tasks stalled on memory", MemoryFull),
            (STALLED_IO, IoSome),
            ("all tasks stalled on I/O", IoFull),
            ("cgroup: some tasks stalled on CPU", CgroupCpuSome),
            ("cgroup: some tasks stalled on memory", CgroupMemorySome),
            ("cgroup: all tasks stalled on memory", CgroupMemoryFull),
            ("cgroup: some tasks stalled on I/O", CgroupIoSome),
            ("cgroup: all tasks stalled on I/O", CgroupIoFull),
        ] {
            facts.push(self.fact(name, 1, |interval| interval.total(counter)));
        }
        let least = |range: Range| range.least;
        facts.push(self.current(
            "least memory available",
            AvailableMemory,
            least,
            Cell::Bytes,
        ));
        let most = |range: Range| range.most;
        facts.push(self.current("most memory of the cgroup", CgroupMemory, most, Cell::Bytes));
        let hertz = |khz: u64| Cell::Text(format!("{:.2} GHz", khz as f64 / 1e6));
        let mean = |range: Range| range.mean;
        facts.push(self.current("mean frequency of the CPUs", Frequency, mean, hertz));
        facts.into_iter().flatten().collect()
    }

    /// A figure in time, in at most `room` columns.
    fn strip(&self, parts: &[(u64, u64)], room: u64, ascii: bool) -> String {
        let (columns, each) = fit(parts.len() as u64, room);
        let each = usize::try_from(each).unwrap_or(usize::MAX).max(1);
        let repeat = usize::try_from(columns).unwrap_or(1);
        let sum = |all: &[(u64, u64)], of: fn(&(u64, u64)) -> u64| {
            let parts = all.iter().map(of);
            parts.fold(0, u64::saturating_add)
        };
        let groups = parts.chunks(each);
        let shades =
            groups.map(|all| shade(sum(all, |pair| pair.0), sum(all, |pair| pair.1), ascii));
        shades
            .flat_map(|c| std::iter::repeat_n(c, repeat))
            .collect()
    }
}

/// CPU time of the processes of the build in each interval between two edges, in ns.
fn on_cpu(view: &View<'_>, own: &Arena<ProcessIx, bool>, edges: &[Ktime]) -> Vec<u64> {
    let edges: Vec<u64> = edges.iter().map(|edge| view.since(*edge)).collect();
    let mut sums = vec![0u64; edges.len().saturating_sub(1)];
    for ix in own.ids().filter(|ix| own[*ix]) {
        let process = view.analysis.process(ix);
        let by_events = cpu_time::on_cpu(view.analysis, process);
        for ran in by_events.chain(cpu_time::on_cpu_by_kernel(view.analysis, process)) {
            let first = edges.partition_point(|edge| *edge <= ran.from);
            let mut at = first.saturating_sub(1);
            while let (Some(from), Some(to), Some(sum)) =
                (edges.get(at), edges.get(at + 1), sums.get_mut(at))
            {
                if *from >= ran.to {
                    break;
                }
                let (from, to) = (ran.from.max(*from), ran.to.min(*to));
                if from < to {
                    *sum = sum.saturating_add(ran.until(to) - ran.until(from));
                }
                at += 1;
            }
        }
    }
    sums
}

impl Report for MachineReport<'_> {
    fn page(&self, style: &Style) -> Page {
        let mut out = Page::new();
        let head = format!(
            "{} for {}, sampled {} times",
            units::cpus(self.cpus),
            units::time(self.whole.length()),
            units::count(self.intervals.len() as u64 + 1),
        );
        out.painted(Paint::Bold, &head);
        let room = (style.width as u64).saturating_sub(68).clamp(8, 60);
        let table = Table::new("", |fact: &Fact| fact.name.clone())
            .column("", |fact| fact.value.clone())
            .column("share", |fact| fact.share.clone())
            .words("in time", |fact| {
                Cell::Text(self.strip(&fact.strip, room, style.ascii))
            });
        out.table(&table, self.facts());
        out
    }

    fn json(&self) -> Option<Value> {
        let range = |counter, of: fn(Range) -> u64| self.whole.range(counter).map(of);
        let own = json!({
            "cpus": self.cpus,
            "build": self.build,
            "available_memory_min_bytes": range(Counter::AvailableMemory, |range| range.least),
            "cgroup_memory_max_bytes": range(Counter::CgroupMemory, |range| range.most),
            "frequency_min_khz": range(Counter::Frequency, |range| range.least),
            "frequency_mean_khz": range(Counter::Frequency, |range| range.mean),
            "samples": table(&self.view, false).rows(&self.intervals),
        });
        Some(with(own, table(&self.view, true).json(&&self.whole)))
    }

    fn csv(&self) -> Result<Vec<u8>, csv::Error> {
        table(&self.view, false).csv(&self.intervals)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tr_format::counters::Counters;

    fn sample(busy: u64, stolen: u64, recorder: u64) -> Counters {
        let mut counters = Counters::default();
        counters.set(Counter::Busy, busy);
        counters.set(Counter::Stolen, stolen);
        counters.set(Counter::Recorder, recorder);
        counters
    }

    /// Two CPUs for 100 ns: 200 ns, of which 120 + 30 taken, 90 by the build, 10 by tr.
    #[test]
    fn the_rest_of_the_busy_time_is_that_of_others() {
        let samples = [
            (Ktime(1000), sample(0, 0, 0)),
            (Ktime(1100), sample(120, 30, 10)),
        ];
        let samples = Samples(&samples);
        let span = (Ktime(1000), Ktime(1100));
        let whole = Interval::new(samples, span, 90, Some(2));
        assert_eq!((whole.others, whole.idle), (Some(50), Some(50)));
        // Ticks and stamps differ: nothing below 0.
        let whole = Interval::new(samples, span, 199, Some(2));
        assert_eq!((whole.others, whole.idle), (Some(0), Some(0)));
        let whole = Interval::new(samples, span, 90, None);
        assert_eq!((whole.others, whole.idle), (None, None));
    }
}
