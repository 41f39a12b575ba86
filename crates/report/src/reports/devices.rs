//! The part of the report on disks that shows the I/O requests of each disk, by all tasks of the
//! machine.

use serde_json::{json, Map, Value};
use tr_format::device::{Block, Device, Requests, GROUPS};
use tr_format::meta::Extra;

use super::not_known;
use tr_insight::resources::disk_requests::{add, disks, percentile, DiskRequests};
use tr_insight::views::view::View;
use tr_text::json::with;
use tr_text::page::Page;
use tr_text::style::Paint;
use tr_text::table::{Cell, Table};

/// The disks that had I/O requests during the recording, with the longest busy time first.
pub struct Devices<'a> {
    view: View<'a>,
    /// The disks with their I/O requests; `None` if requests were not recorded.
    disks: Option<Vec<DiskRequests<'a>>>,
}

impl<'a> Devices<'a> {
    pub fn new(view: &View<'a>) -> Devices<'a> {
        let analysis = view.analysis;
        let known = analysis.meta.has(Extra::Block);
        Devices {
            view: *view,
            disks: known.then(|| disks(view)),
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
        let shown = disks.iter().take(self.view.ask.rows());
        out.table(&self.table(), shown);
        out.more(disks.len(), self.view.ask.rows(), " disks");
    }

    /// The I/O requests of each disk as JSON; null if requests were not recorded.
    pub fn json(&self) -> Value {
        let (table, most) = (self.table(), self.view.ask.most());
        let disks = self
            .asked()
            .map(|disk| with(table.json(&disk), parts(disk, most)));
        let disks: Vec<Value> = disks.collect();
        json!(self.disks.as_ref().map(|_| disks))
    }

    /// The disks that CSV and JSON show: all, or as many as `--top` says.
    pub fn asked(&self) -> impl Iterator<Item = &DiskRequests<'a>> {
        self.disks.iter().flatten().take(self.view.ask.most())
    }

    pub fn table<'t>(&self) -> Table<'t, &'t DiskRequests<'a>>
    where
        'a: 't,
    {
        let span = self.view.analysis.wall();
        let table = Table::new("disk", |disk: &&DiskRequests<'a>| {
            label(&disk.name, disk.device)
        })
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
            .column("depth", |disk| Cell::Text(format!("{:.1}", disk.depth())))
    }
}

/// The text for a disk: its name, if it has one, and its device number.
pub fn label(name: &str, device: Device) -> String {
    match name {
        "" => device.to_string(),
        name => format!("{name} ({device})"),
    }
}

/// The JSON value of a disk: its I/O requests by group (such as reads and writes), and at most
/// `most` of their samples over time.
fn parts(disk: &DiskRequests<'_>, most: usize) -> Value {
    let table = requests(
        Table::unnamed(),
        |requests: &&Requests| *requests,
        |table| table,
    )
    .data("bytes", |requests| requests.bytes)
    .data("buckets", |requests| requests.buckets.to_vec());
    let groups = GROUPS.iter().zip(&disk.groups);
    let groups = groups.map(|(name, group)| ((*name).to_owned(), table.json(&group)));
    let samples = disk.samples.iter().take(most);
    let samples = samples.map(|(at, block)| sample(*at, block));
    json!({
        "groups": groups.collect::<Map<_, _>>(),
        "samples": samples.collect::<Value>(),
    })
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
