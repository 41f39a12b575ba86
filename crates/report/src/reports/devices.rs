//! Requests to disks, of the whole machine: a part of the report on disks.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use serde_json::{json, Map, Value};
use tr_analyze::model::Analysis;
use tr_format::device::{bucket_end, Block, Device, Requests, BUCKETS, GROUPS};
use tr_format::meta::Extra;

use super::not_known;
use crate::escape;
use crate::sort::Rows;
use crate::style::{Paint, Style};
use crate::table::{Cell, Table};
use crate::view::View;

/// The disks that had requests, those with the longest busy time first.
pub struct Devices<'a> {
    view: View<'a>,
    /// `None`: the recording lacks them.
    disks: Option<Vec<Disk<'a>>>,
}

/// The requests to a disk.
struct Disk<'a> {
    device: Device,
    name: String,
    busy: u64,
    groups: [Requests; 4],
    all: Requests,
    /// The analysis's intervals of this disk.
    samples: Vec<(u64, &'a Block)>,
}

impl<'a> Devices<'a> {
    /// Those of the analysis's span.
    pub fn new(view: &View<'a>) -> Devices<'a> {
        let analysis = view.analysis;
        let known = analysis.meta.has(Extra::Block);
        Devices {
            view: *view,
            disks: known.then(|| disks(view, analysis)),
        }
    }

    pub fn text(&self, out: &mut String, style: &Style) {
        let Some(disks) = &self.disks else {
            let why = not_known::why(&self.view.analysis.meta, Extra::Block);
            why.iter().for_each(|why| style.line(out, why));
            return;
        };
        if disks.is_empty() {
            return;
        }
        let span = self.view.analysis.end.since(self.view.analysis.start);
        out.push('\n');
        style.painted(out, Paint::Bold, "Requests to disks, of the whole machine");
        let bound = |disk: &&Disk<'_>, part| Cell::known(disk.all.percentile(part), Cell::Time);
        let table = Table::new("disk", |disk: &&Disk<'_>| disk.label())
            .column("requests", |disk| Cell::Count(disk.all.count))
            .column("read", |disk| Cell::Bytes(disk.bytes(0)))
            .column("written", |disk| Cell::Bytes(disk.bytes(1)))
            .column("busy", |disk| Cell::Share(disk.busy, span))
            .column("depth", |disk| Cell::Text(disk.depth()))
            .column("p50 ≤", move |disk| bound(disk, 50))
            .column("p99 ≤", move |disk| bound(disk, 99))
            .column("longest", |disk| Cell::Time(disk.all.longest));
        let shown = disks.iter().take(self.view.ask.top);
        out.push_str(&table.text(shown, style, 0));
        style.more(out, disks.len(), self.view.ask.top, " disks");
    }

    /// Their JSON; null if the recording lacks them.
    pub fn json(&self) -> Value {
        let disks = self.disks.as_ref().map(|disks| {
            let disks = disks.iter().take(self.view.ask.most());
            disks.map(|disk| disk.json(&self.view)).collect::<Vec<_>>()
        });
        json!(disks)
    }

    /// Their rows in CSV.
    pub fn rows(&self) -> impl Iterator<Item = Value> + '_ {
        let disks = self.disks.iter().flatten().take(self.view.ask.most());
        disks.map(|disk| {
            let mut row = disk.figures();
            row.insert("name".into(), json!(disk.name));
            row.insert("read_bytes".into(), json!(disk.bytes(0)));
            row.insert("written_bytes".into(), json!(disk.bytes(1)));
            Value::Object(row)
        })
    }
}

fn disks<'a>(view: &View<'a>, analysis: &'a Analysis) -> Vec<Disk<'a>> {
    let mut disks: BTreeMap<Device, Disk<'a>> = BTreeMap::new();
    for (time, block) in &analysis.blocks {
        let disk = disks.entry(block.device).or_insert_with(|| Disk {
            device: block.device,
            name: escape::text(&block.name),
            busy: 0,
            groups: Default::default(),
            all: Requests::default(),
            samples: Vec::new(),
        });
        disk.busy = disk.busy.saturating_add(block.busy);
        for (sum, group) in disk.groups.iter_mut().zip(&block.groups) {
            sum.add(group);
            disk.all.add(group);
        }
        disk.samples.push((view.since(*time), block));
    }
    let mut disks: Vec<Disk<'a>> = disks.into_values().collect();
    disks.order_by_key(|disk| Reverse((disk.busy, disk.all.count)));
    disks
}

impl Disk<'_> {
    fn label(&self) -> String {
        if self.name.is_empty() {
            return self.device.to_string();
        }
        format!("{} ({})", self.name, self.device)
    }

    fn bytes(&self, group: usize) -> u64 {
        self.groups.get(group).map_or(0, |group| group.bytes)
    }

    /// The mean number of requests in flight while there was any.
    fn depth(&self) -> String {
        let depth = self.all.latency as f64 / self.busy.max(1) as f64;
        format!("{depth:.1}")
    }

    fn figures(&self) -> Map<String, Value> {
        let mut figures = requests(&self.all);
        figures.insert("device".into(), json!(self.device.to_string()));
        figures.insert("busy_ns".into(), json!(self.busy));
        figures
    }

    fn json(&self, view: &View<'_>) -> Value {
        let mut disk = self.figures();
        disk.insert("name".into(), json!(self.name));
        let groups = GROUPS.iter().zip(&self.groups).map(|(name, group)| {
            let mut figures = requests(group);
            figures.insert("bytes".into(), json!(group.bytes));
            figures.insert("buckets".into(), json!(group.buckets));
            ((*name).to_owned(), Value::Object(figures))
        });
        disk.insert("groups".into(), Value::Object(groups.collect()));
        let samples = self.samples.iter().take(view.ask.most());
        let samples = samples.map(|(at, block)| sample(*at, block));
        disk.insert("samples".into(), samples.collect());
        Value::Object(disk)
    }
}

fn requests(sums: &Requests) -> Map<String, Value> {
    let fields = [
        ("requests", json!(sums.count)),
        ("latency_ns", json!(sums.latency)),
        ("p50_ns", json!(sums.percentile(50))),
        ("p99_ns", json!(sums.percentile(99))),
        ("longest_ns", json!(sums.longest)),
    ];
    let fields = fields.into_iter();
    fields
        .map(|(name, value)| (name.to_owned(), value))
        .collect()
}

fn sample(at: u64, block: &Block) -> Value {
    let mut all = Requests::default();
    block.groups.iter().for_each(|group| all.add(group));
    let bytes = |at: usize| block.groups.get(at).map_or(0, |group| group.bytes);
    json!({
        "at_ns": at,
        "interval_ns": block.interval,
        "requests": all.count,
        "read_bytes": bytes(0),
        "written_bytes": bytes(1),
        "busy_ns": block.busy,
        "latency_ns": all.latency,
    })
}

/// Sums and bounds over requests.
trait Figures {
    fn add(&mut self, other: &Requests);
    fn percentile(&self, part: u64) -> Option<u64>;
}

impl Figures for Requests {
    fn add(&mut self, other: &Requests) {
        let sums = [
            (&mut self.count, other.count),
            (&mut self.bytes, other.bytes),
            (&mut self.latency, other.latency),
        ];
        let buckets = self.buckets.iter_mut().zip(other.buckets);
        for (sum, more) in sums.into_iter().chain(buckets) {
            *sum = sum.saturating_add(more);
        }
        self.longest = self.longest.max(other.longest);
    }

    /// A latency that at least so many percent of the requests do not exceed: the end of their
    /// bucket, or the longest latency.
    fn percentile(&self, part: u64) -> Option<u64> {
        let add = |sum: u128, count: &u64| sum + u128::from(*count);
        let all = self.buckets.iter().fold(0, add);
        let mut sum = 0;
        let bucket = (0..BUCKETS).zip(&self.buckets).find(|(_, count)| {
            sum = add(sum, count);
            all > 0 && sum * 100 >= all * u128::from(part)
        });
        bucket.map(|(bucket, _)| bucket_end(bucket).min(self.longest))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_percentile_is_the_end_of_its_bucket() {
        let mut sums = Requests {
            longest: 5_000_000,
            ..Requests::default()
        };
        assert_eq!(sums.percentile(50), None);
        sums.buckets[0] = 50;
        sums.buckets[2] = 49;
        sums.buckets[12] = 1;
        assert_eq!(sums.percentile(50), Some(2048));
        assert_eq!(sums.percentile(51), Some(8192));
        assert_eq!(sums.percentile(99), Some(8192));
        // Not 2^23.
        assert_eq!(sums.percentile(100), Some(5_000_000));
        sums.buckets = [u64::MAX; BUCKETS];
        assert_eq!(sums.percentile(100), Some(5_000_000));
    }
}
