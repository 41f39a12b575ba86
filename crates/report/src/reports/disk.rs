//! The report on disks: the bytes that processes read and wrote, and their waits for disks.

use std::cmp::Reverse;

use serde_json::{json, Value};
use tr_analyze::disks;
use tr_analyze::model::ThreadIx;

use super::devices::Devices;
use super::waited::{self, sentence};
use crate::members;
use crate::output::Report;
use tr_insight::path;
use tr_insight::resources::disk::{by_disk, by_file, path_waits, sum, DiskSum, WaitSum};
use tr_insight::views::members::{members, Members};
use tr_insight::views::query::By;
use tr_insight::views::view::View;
use tr_text::json::with;
use tr_text::page::Page;
use tr_text::style::{Paint, Style};
use tr_text::table::{Cell, Sheet, Table, Title};
use tr_text::units;
use tr_text::words::IO_WAIT;

pub struct Disk<'a> {
    view: View<'a>,
    by: By,
    all: DiskSum,
    /// The rows of the report on disks, one for each process or group that used a disk. Those with
    /// the longest waits come first.
    rows: Vec<DiskRow<'a>>,
    devices: Devices<'a>,
    /// The waits of all threads of the chosen processes for block I/O, summed up by disk; `None` if
    /// waits for block I/O were not recorded.
    waited: Option<Vec<WaitSum<&'a disks::Disk>>>,
}

struct DiskRow<'a> {
    group: Members,
    sum: DiskSum,
    /// The waits of this process or group for block I/O, summed up by disk.
    waited: Vec<WaitSum<&'a disks::Disk>>,
    /// The waits of this process or group in fsync, summed up by file.
    synced: Vec<WaitSum<&'a [u8]>>,
}

/// Adds the columns with bytes and waits to the table of the report on disks. A column in which
/// every row is 0 is hidden from people.
fn figures<'a, R: 'a>(
    table: Table<'a, R>,
    of: fn(&R) -> &DiskSum,
    any: impl Fn(fn(&DiskSum) -> u64) -> bool,
) -> Table<'a, R> {
    let time = |figure: fn(&DiskSum) -> u64| move |row: &R| Cell::Time(figure(of(row)));
    let bytes = |part: fn((u64, u64)) -> u64| {
        move |row: &R| {
            let sum = of(row);
            Cell::known(sum.io, |io| Cell::bytes(part(io), !sum.part))
        }
    };
    table
        .fact(IO_WAIT, "waited_ns", time(|sum| sum.waited))
        .few()
        .fact("fsync", "sync_ns", time(|sum| sum.sync))
        .few()
        .shown(any(|sum| sum.sync))
        .fact("faults", "fault_ns", time(|sum| sum.fault))
        .few()
        .shown(any(|sum| sum.fault))
        .fact("on path", "path_ns", move |row| {
            Cell::known(of(row).path, Cell::Time)
        })
        .few()
        .shown(any(|sum| sum.path.unwrap_or(0)))
        .fact("read", "read_bytes", bytes(|(read, _)| read))
        .few()
        .fact("written", "written_bytes", bytes(|(_, written)| written))
        .few()
        .fact("major", "major_faults", move |row| {
            Cell::known(of(row).major_faults, Cell::Count)
        })
        .few()
        .shown(any(|sum| sum.major_faults.unwrap_or(0)))
}

impl<'a> Disk<'a> {
    /// Makes the report on disks from those chosen processes that used a disk.
    pub fn new(view: &View<'a>) -> Disk<'a> {
        let analysis = view.analysis;
        let path = path::path_of(view).ok();
        let on_path = path.as_ref().map(path_waits);
        // The kernel counts disk I/O for whole processes, so threads have no rows of their own.
        let by = view.ask.by.unwrap_or_default().of_processes();
        let rows = members(view, by).into_iter().filter_map(|group| {
            let sum = sum(analysis, &group.threads, on_path.as_ref());
            (!sum.is_empty()).then(|| DiskRow {
                sum,
                waited: by_disk(analysis, &group.threads).unwrap_or_default(),
                synced: by_file(analysis, &group.threads),
                group,
            })
        });
        let mut rows: Vec<DiskRow<'a>> = rows.collect();
        rows.sort_by_key(|row| {
            let (read, written) = row.sum.io.unwrap_or_default();
            Reverse((row.sum.waited, read.saturating_add(written)))
        });
        let threads: Vec<ThreadIx> = view.threads().collect();
        Disk {
            view: *view,
            waited: by_disk(analysis, &threads),
            by,
            all: sum(analysis, &threads, on_path.as_ref()),
            rows,
            devices: Devices::new(view),
        }
    }
}

impl Report for Disk<'_> {
    fn page(&self, _style: &Style) -> Page {
        let all = &self.all;
        let mut out = Page::new();
        let head = format!("I/O wait of threads {}", units::time(all.waited));
        out.painted(Paint::Bold, &head);
        if let Some((read, written)) = all.io {
            let least = if all.part { "at least " } else { "" };
            let (read, written) = (units::bytes(read), units::bytes(written));
            let text = format!("{least}{read} read from disks, {written} written");
            out.line(&text);
        }
        if let Some(path) = all.path.filter(|ns| *ns > 0) {
            let text = format!("{} of it on the critical path", units::time(path));
            out.line(&text);
        }
        if let Some(text) = self.waited.as_deref().and_then(sentence) {
            out.line(&text);
        }
        if self.rows.is_empty() {
            self.devices.add(&mut out);
            return out;
        }
        let (title, most) = (self.by.title(), self.view.ask.rows());
        out.blank();
        out.first(self.table(), title, &self.rows, most);
        // With several disks, a table shows the waits for each disk; with known files, a table shows the waits in fsync
        // for each file.
        let disks = self.waited.iter().flatten();
        if disks.filter(|wait| wait.what.is_some()).count() >= 2 {
            let title = "waits for block I/O";
            self.waits(&mut out, title, waited::disks(), |row| &row.waited);
        }
        let mut synced = self.rows.iter().flat_map(|row| &row.synced);
        if synced.any(|wait| wait.what.is_some()) {
            let title = "waits in fsync";
            self.waits(&mut out, title, waited::files(), |row| &row.synced);
        }
        self.devices.add(&mut out);
        out
    }

    fn json(&self) -> Option<Value> {
        let all = figures(Table::unnamed(), |sum: &&DiskSum| *sum, |_| true);
        let none = Members::default();
        let disks = |waited: &[WaitSum<_>]| {
            let waited = waited.iter().map(|wait| (&none, wait));
            waited::disks().rows(waited)
        };
        let table = self.table();
        let rows = self.view.asked(&self.rows).map(|row| {
            let known = |of: Value| self.waited.as_ref().map(|_| of);
            let files = waited::files().rows(row.synced.iter().map(|wait| (&none, wait)));
            let parts = json!({ "disks": known(disks(&row.waited)), "synced": known(files) });
            with(table.json(&row), parts)
        });
        let parts = json!({
            "rows": rows.collect::<Vec<_>>(),
            "disks": self.waited.as_deref().map(disks),
            "devices": self.devices.json(),
        });
        Some(with(all.json(&&self.all), parts))
    }

    /// The report on disks as CSV: for each process or group its row and its waits by disk, and at
    /// the end the requests of each disk.
    fn sheet(&self) -> Sheet {
        let (table, disks, devices) = (self.table(), waited::disks(), self.devices.table());
        let mut sheet = Sheet::new([table.keys(), disks.keys(), devices.keys()]);
        for row in self.view.asked(&self.rows) {
            sheet.add(&table, &row);
            for wait in &row.waited {
                sheet.add(&disks, &(&row.group, wait));
            }
        }
        for device in self.devices.asked() {
            sheet.add(&devices, &device);
        }
        sheet
    }
}

impl<'a> Disk<'a> {
    fn table(&self) -> Table<'_, &DiskRow<'a>> {
        let any = |of: fn(&DiskSum) -> u64| self.rows.iter().any(|row| of(&row.sum) > 0);
        let table = members::table(self.by, |row: &&DiskRow<'a>| &row.group);
        figures(table, |row| &row.sum, any)
    }

    /// Prints a table of waits of all processes or groups, by disk or by file, with the longest
    /// waits first.
    fn waits<'r, T>(
        &'r self,
        out: &mut Page,
        title: &str,
        table: Table<'r, waited::WaitedRow<'r, T>>,
        of: fn(&'r DiskRow<'a>) -> &'r [WaitSum<T>],
    ) {
        let rows = self.rows.iter();
        let waits = rows.flat_map(|row| of(row).iter().map(|wait| (&row.group, wait)));
        let mut waits: Vec<waited::WaitedRow<'r, T>> = waits.collect();
        waits.sort_by_key(|(_, wait)| Reverse((wait.ns, wait.count)));
        let most = self.view.ask.rows();
        let title = Title::top(title, most, waits.len());
        out.blank();
        out.table(&table.titled(title), waits.into_iter().take(most));
    }
}
