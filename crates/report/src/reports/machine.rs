//! The report on the machine: the CPU time of the build and of others, pressure, memory, frequency.

use serde_json::{json, Value};
use tr_analyze::machine::{throttled_containers, Range};
use tr_format::counters::{Counter, Unit};

use crate::output::Report;
use tr_insight::processes::label;
use tr_insight::resources::machine::{Interval, MachineFigures};
use tr_insight::views::view::View;
use tr_text::json::with;
use tr_text::page::Page;
use tr_text::strips::{fit, shade};
use tr_text::style::{Paint, Style};
use tr_text::table::{Cell, Sheet, Table};
use tr_text::units;
use tr_text::words::{STALLED_CPU, STALLED_IO, STALLED_MEMORY};

pub struct MachineReport<'a> {
    view: View<'a>,
    figures: MachineFigures<'a>,
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

/// The machine's counters that are columns of the report's CSV, in the order of these columns. Newer counters are only
/// in the JSON.
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

/// The table of the machine's CPU times and counters, with a row for each interval. If `whole` is set, the table has
/// only one row, about the whole recording, and no columns of momentary values such as available memory.
fn table<'t>(view: &'t View<'t>, whole: bool) -> Table<'t, &'t Interval<'t>> {
    let mut table: Table<'t, &'t Interval<'t>> = Table::unnamed();
    if !whole {
        table = table.data("from_ns", |interval| view.since(interval.from()));
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

impl<'a> MachineReport<'a> {
    /// The report on the load of the machine.
    ///
    /// # Errors
    /// An old trace, or one that covers only a moment, has no samples of the load. The error is the text that the
    /// report shows then.
    pub fn new(view: &View<'a>) -> Result<MachineReport<'a>, String> {
        let figures = MachineFigures::new(view)
            .ok_or("not known: the trace has no samples of the machine's counters")?;
        Ok(MachineReport {
            view: *view,
            figures,
        })
    }
}

impl MachineReport<'_> {
    fn fact(
        &self,
        name: &str,
        cpus: u64,
        of: impl Fn(&Interval<'_>) -> Option<u64>,
    ) -> Option<Fact> {
        let sum = of(&self.figures.whole)?;
        let part = |interval: &Interval<'_>| {
            (
                of(interval).unwrap_or(0),
                interval.length().saturating_mul(cpus),
            )
        };
        Some(Fact {
            name: name.to_owned(),
            value: Cell::Time(sum),
            share: Cell::Share(sum, self.figures.whole.length().saturating_mul(cpus)),
            strip: self.figures.intervals.iter().map(part).collect(),
        })
    }

    /// The line of the report on the machine for a counter with momentary values, such as available memory.
    /// `figure` chooses the figure of the counter's range (such as the maximum) that is shown. `None` if the
    /// counter was not recorded.
    fn current(
        &self,
        name: &str,
        counter: Counter,
        figure: fn(Range) -> u64,
        cell: impl Fn(u64) -> Cell,
    ) -> Option<Fact> {
        let range = self.figures.whole.range(counter)?;
        let part =
            |interval: &Interval<'_>| (interval.range(counter).map_or(0, figure), range.most);
        Some(Fact {
            name: name.to_owned(),
            value: cell(figure(range)),
            share: Cell::Empty,
            strip: self.figures.intervals.iter().map(part).collect(),
        })
    }

    /// The lines of the report on the machine: CPU time as shares of all CPUs, pressure (PSI) as shares of
    /// the time, memory, frequency.
    fn facts(&self) -> Vec<Fact> {
        use Counter::*;
        let cpus = self.figures.cpus;
        let mut facts = vec![
            self.fact(&format!("CPU: {}", self.figures.build), cpus, |interval| {
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

    /// A strip of at most `room` characters, whose shades show how a figure of the machine changed over
    /// time. `parts` has the figure and its maximum in each interval.
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

impl Report for MachineReport<'_> {
    fn page(&self, style: &Style) -> Page {
        let mut out = Page::new();
        let head = format!(
            "{} for {}, sampled {} times",
            units::cpus(self.figures.cpus),
            units::time(self.figures.whole.length()),
            units::count(self.figures.intervals.len() as u64 + 1),
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
        let range = |counter, of: fn(Range) -> u64| self.figures.whole.range(counter).map(of);
        let own = json!({
            "cpus": self.figures.cpus,
            "build": self.figures.build,
            "available_memory_min_bytes": range(Counter::AvailableMemory, |range| range.least),
            "cgroup_memory_max_bytes": range(Counter::CgroupMemory, |range| range.most),
            "frequency_min_khz": range(Counter::Frequency, |range| range.least),
            "frequency_mean_khz": range(Counter::Frequency, |range| range.mean),
            "samples": table(&self.view, false).rows(&self.figures.intervals),
        });
        Some(with(
            own,
            table(&self.view, true).json(&&self.figures.whole),
        ))
    }

    fn sheet(&self) -> Sheet {
        table(&self.view, false).sheet(&self.figures.intervals)
    }
}
