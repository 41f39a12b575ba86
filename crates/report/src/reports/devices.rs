//! Requests to disks, of the whole machine: a part of the report on disks.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use serde_json::{json, Map, Value};
use tr_analyze::model::Analysis;
use tr_format::device::{bucket_end, Block, Device, Requests, BUCKETS, GROUPS};
use tr_format::meta::Extra;

use super::not_known;
use tr_insight::view::View;
use tr_text::escape;
use tr_text::json::with;
use tr_text::page::Page;
use tr_text::style::Paint;
use tr_text::table::{Cell, Table};

/// The disks that had requests, those with the longest busy time first.
pub struct Devices<'a> {
    view: View<'a>,
    /// `None`: the recording lacks them.
    disks: Option<Vec<DiskRequests<'a>>>,
}

pub struct DiskRequests<'a> {
    device: Device,
    name: String,
    busy: u64,
    groups: [Requests; 4],
    all: Requests,
    /// The analysis's intervals of this disk.
    samples: Vec<(u64, &'a Block)>,
}

impl<'a> Devices<'a> {
    pub fn new(view: &View<'a>) -> Devices<'a> {
        let analysis = view.analysis;
        let known = analysis.meta.has(Extra::Block);
        Devices {
            view: *view,
            disks: known.then(|| disks(view, analysis)),
        }
    }

    pub fn add(&self, out: &mut Page) {
        let Some(disks) = &self.disks else {
            let why = not_known::why(&self.view.analysis.meta, Extra::Block);
            why.iter().for_each(|why| out.line(why));
            return;
        };
        if disks.is_empty() {
            return;
        }
        out.blank();
        out.painted(Paint::Bold, "Requests to disks, of the whole machine");
        let shown = disks.iter().take(self.view.ask.top);
        out.table(&self.table(), shown);
        out.more(disks.len(), self.view.ask.top, " disks");
    }

    /// The requests as JSON; null if the recording lacks them.
    pub fn json(&self) -> Value {
        let (table, most) = (self.table(), self.view.ask.most());
        let disks = self
            .asked()
            .map(|disk| with(table.json(&disk), disk.parts(most)));
        let disks: Vec<Value> = disks.collect();
        json!(self.disks.as_ref().map(|_| disks))
    }

    /// The requests that CSV and JSON show.
    pub fn asked(&self) -> impl Iterator<Item = &DiskRequests<'a>> {
        self.disks.iter().flatten().take(self.view.ask.most())
    }

    pub fn table<'t>(&self) -> Table<'t, &'t DiskRequests<'a>>
    where
        'a: 't,
    {
        let span = self.view.analysis.wall();
        let table = Table::new("disk", |disk: &&DiskRequests<'a>| disk.label())
            .data("name", |disk| disk.name.clone())
            .data("device", |disk| disk.device.to_string());
        let bytes = |at| move |disk: &&DiskRequests<'a>| Cell::Bytes(disk.bytes(at));
        let busy = |table: Table<'t, &'t DiskRequests<'a>>| table.data("busy_ns", |disk| disk.busy);
        requests(table, |disk| &disk.all, busy)
            .fact("read", "read_bytes", bytes(0))
            .csv_only()
            .fact("written", "written_bytes", bytes(1))
            .csv_only()
            .column("busy", move |disk| Cell::Share(disk.busy, span))
            .column("depth", |disk| Cell::Text(disk.depth()))
    }
}

fn disks<'a>(view: &View<'a>, analysis: &'a Analysis) -> Vec<DiskRequests<'a>> {
    let mut disks: BTreeMap<Device, DiskRequests<'a>> = BTreeMap::new();
    for (time, block) in &analysis.disks.blocks {
        let disk = disks.entry(block.device).or_insert_with(|| DiskRequests {
            device: block.device,
            name: escape::raw(&block.name),
            busy: 0,
            groups: Default::default(),
            all: Requests::default(),
            samples: Vec::new(),
        });
        disk.busy = disk.busy.saturating_add(block.busy);
        for (sum, group) in disk.groups.iter_mut().zip(&block.groups) {
            add(sum, group);
            add(&mut disk.all, group);
        }
        disk.samples.push((view.since(*time), block));
    }
    let mut disks: Vec<DiskRequests<'a>> = disks.into_values().collect();
    disks.sort_by_key(|disk| Reverse((disk.busy, disk.all.count)));
    disks
}

/// A disk's name, escaped, and its number.
pub fn label(name: &str, device: Device) -> String {
    match name {
        "" => device.to_string(),
        name => format!("{name} ({device})"),
    }
}

impl DiskRequests<'_> {
    fn label(&self) -> String {
        label(&self.name, self.device)
    }

    fn bytes(&self, group: usize) -> u64 {
        self.groups.get(group).map_or(0, |group| group.bytes)
    }

    /// The mean number of requests in flight while there was any.
    fn depth(&self) -> String {
        let depth = self.all.latency as f64 / self.busy.max(1) as f64;
        format!("{depth:.1}")
    }

    /// The groups of requests, and the samples.
    fn parts(&self, most: usize) -> Value {
        let table = requests(
            Table::unnamed(),
            |requests: &&Requests| *requests,
            |table| table,
        )
        .data("bytes", |requests| requests.bytes)
        .data("buckets", |requests| requests.buckets.to_vec());
        let groups = GROUPS.iter().zip(&self.groups);
        let groups = groups.map(|(name, group)| ((*name).to_owned(), table.json(&group)));
        let samples = self.samples.iter().take(most);
        let samples = samples.map(|(at, block)| sample(*at, block));
        json!({
            "groups": groups.collect::<Map<_, _>>(),
            "samples": samples.collect::<Value>(),
        })
    }
}

fn requests<'a, R: 'a>(
    table: Table<'a, R>,
    of: fn(&R) -> &Requests,
    busy: impl FnOnce(Table<'a, R>) -> Table<'a, R>,
) -> Table<'a, R> {
    let bound = |part| move |row: &R| Cell::known(percentile(of(row), part), Cell::Time);
    let table = table.fact("requests", "requests", move |row| {
        Cell::Count(of(row).count)
    });
    busy(table)
        .data("latency_ns", move |row| of(row).latency)
        .fact("p50 ≤", "p50_ns", bound(50))
        .place(0)
        .fact("p99 ≤", "p99_ns", bound(99))
        .place(1)
        .fact("longest", "longest_ns", move |row| {
            Cell::Time(of(row).longest)
        })
        .place(2)
}

fn sample(at: u64, block: &Block) -> Value {
    let mut all = Requests::default();
    block.groups.iter().for_each(|group| add(&mut all, group));
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

fn add(sum: &mut Requests, more: &Requests) {
    let sums = [
        (&mut sum.count, more.count),
        (&mut sum.bytes, more.bytes),
        (&mut sum.latency, more.latency),
    ];
    let buckets = sum.buckets.iter_mut().zip(more.buckets);
    for (sum, more) in sums.into_iter().chain(buckets) {
        *sum = sum.saturating_add(more);
    }
    sum.longest = sum.longest.max(more.longest);
}

/// A latency that at least so many percent of the requests do not exceed: the end of their bucket,
/// or the longest latency.
fn percentile(of: &Requests, part: u64) -> Option<u64> {
    let add = |sum: u128, count: &u64| sum + u128::from(*count);
    let all = of.buckets.iter().fold(0, add);
    let mut sum = 0;
    let bucket = (0..BUCKETS).zip(&of.buckets).find(|(_, count)| {
        sum = add(sum, count);
        all > 0 && sum * 100 >= all * u128::from(part)
    });
    bucket.map(|(bucket, _)| bucket_end(bucket).min(of.longest))
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
        assert_eq!(percentile(&sums, 50), None);
        sums.buckets[0] = 50;
        sums.buckets[2] = 49;
        sums.buckets[12] = 1;
        assert_eq!(percentile(&sums, 50), Some(2048));
        assert_eq!(percentile(&sums, 51), Some(8192));
        assert_eq!(percentile(&sums, 99), Some(8192));
        // Not 2^23.
        assert_eq!(percentile(&sums, 100), Some(5_000_000));
        sums.buckets = [u64::MAX; BUCKETS];
        assert_eq!(percentile(&sums, 100), Some(5_000_000));
    }
}
