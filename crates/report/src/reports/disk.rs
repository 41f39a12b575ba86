//! Disks: the bytes that processes read and wrote, and their waits for them.

use std::cmp::Reverse;

use serde_json::{json, Value};
use tr_analyze::model::ThreadIx;

use super::devices::Devices;
use super::waited::{by_disk, by_file, sentence, Synced, Waited};
use crate::facts::disk::{path_waits, sum, DiskSum};
use crate::facts::path;
use crate::members::{members, Members};
use crate::query::By;
use crate::sort::Rows;
use crate::style::{Paint, Style};
use crate::table::{csv, Cell, Table};
use crate::units;
use crate::view::{Report, View};
use crate::words::IO_WAIT;

pub struct Disk<'a> {
    view: View<'a>,
    by: By,
    all: DiskSum,
    /// Those with the longest waits first.
    rows: Vec<(Members, DiskSum)>,
    devices: Devices<'a>,
    /// Waits for block I/O by disk: of all, and of each of `rows`; `None`: not recorded.
    waited: Option<Vec<Waited<'a>>>,
    waited_of: Vec<Vec<Waited<'a>>>,
    /// Waits in fsync by file, of each of `rows`.
    synced_of: Vec<Vec<Synced<'a>>>,
}

/// The figures in JSON and CSV.
impl DiskSum {
    fn json(&self) -> Value {
        json!({
            "read_bytes": self.io().map(|(read, _)| read),
            "written_bytes": self.io().map(|(_, written)| written),
            "major_faults": self.major_faults,
            "waited_ns": self.waited,
            "sync_ns": self.sync,
            "fault_ns": self.fault,
            "path_ns": self.path,
        })
    }
}

impl<'a> Disk<'a> {
    /// The chosen processes that used a disk.
    pub fn new(view: &View<'a>) -> Disk<'a> {
        let analysis = view.analysis;
        let path = path::path_of(view).ok();
        let on_path = path.as_ref().map(path_waits);
        // The kernel's figures are of whole processes.
        let by = view.ask.by.unwrap_or_default().of_processes();
        let rows = members(view, by).into_iter();
        let mut rows: Vec<(Members, DiskSum)> = rows
            .map(|group| {
                let sum = sum(analysis, &group.threads, on_path.as_ref());
                (group, sum)
            })
            .filter(|(_, sum)| !sum.is_empty())
            .collect();
        rows.order_by_key(|(_, sum)| {
            let (read, written) = sum.io.unwrap_or_default();
            Reverse((sum.waited, read.saturating_add(written)))
        });
        let processes = view.processes();
        let threads: Vec<ThreadIx> = processes
            .flat_map(|it| it.threads.iter().copied())
            .collect();
        let of = |(group, _): &(Members, DiskSum)| by_disk(analysis, &group.threads);
        let waited_of = rows.iter().map(|row| of(row).unwrap_or_default()).collect();
        let files = |(group, _): &(Members, DiskSum)| by_file(analysis, &group.threads);
        let synced_of = rows.iter().map(files).collect();
        Disk {
            view: *view,
            synced_of,
            waited: by_disk(analysis, &threads),
            waited_of,
            by,
            all: sum(analysis, &threads, on_path.as_ref()),
            rows,
            devices: Devices::new(view),
        }
    }
}

/// `Empty` for 0 and `?` for `None`.
fn few(number: Option<u64>, cell: impl Fn(u64) -> Cell) -> Cell {
    Cell::known(number, |number| Cell::few(number, &cell))
}

impl Report for Disk<'_> {
    fn text(&self, style: &Style) -> String {
        let all = &self.all;
        let mut out = String::new();
        let head = format!("I/O wait of threads {}", units::time(all.waited));
        style.painted(&mut out, Paint::Bold, &head);
        if let Some((read, written)) = all.io {
            let least = if all.part { "at least " } else { "" };
            let (read, written) = (units::bytes(read), units::bytes(written));
            let text = format!("{least}{read} read from disks, {written} written");
            style.line(&mut out, &text);
        }
        if let Some(path) = all.path.filter(|ns| *ns > 0) {
            let text = format!("{} of it on the critical path", units::time(path));
            style.line(&mut out, &text);
        }
        if let Some(text) = self.waited.as_deref().and_then(sentence) {
            style.line(&mut out, &text);
        }
        if self.rows.is_empty() {
            self.devices.text(&mut out, style);
            return out;
        }
        let any = |of: fn(&DiskSum) -> u64| self.rows.iter().any(|(_, sum)| of(sum) > 0);
        let shown = self.rows.iter().take(self.view.ask.top);
        let title = units::top(self.by.title(), shown.len(), self.rows.len());
        let table = Table::new(title, |(group, _): &&(Members, DiskSum)| group.name.clone())
            .column("waited", |(_, sum)| few(Some(sum.waited), Cell::Time))
            .column_if(any(|it| it.sync), "fsync", |(_, sum)| {
                few(Some(sum.sync), Cell::Time)
            })
            .column_if(any(|it| it.fault), "faults", |(_, sum)| {
                few(Some(sum.fault), Cell::Time)
            })
            .column_if(any(|it| it.path.unwrap_or(0)), "on path", |(_, sum)| {
                few(sum.path, Cell::Time)
            })
            .column("read", |(_, sum)| {
                Cell::known(sum.io, |(read, _)| Cell::bytes(read, !sum.part))
            })
            .column("written", |(_, sum)| {
                Cell::known(sum.io, |(_, written)| Cell::bytes(written, !sum.part))
            })
            .column_if(
                any(|it| it.major_faults.unwrap_or(0)),
                "major",
                |(_, sum)| few(sum.major_faults, Cell::Count),
            )
            .column_if(self.by == By::Process, "pid", |(group, _)| {
                Cell::known(group.pid, Cell::Id)
            });
        out.push('\n');
        out.push_str(&table.text(shown, style, 0));
        self.waits_text(&mut out, style);
        self.files_text(&mut out, style);
        self.devices.text(&mut out, style);
        out
    }

    fn json(&self) -> Option<Value> {
        let rows = self.rows().collect::<Vec<_>>();
        Some(crate::encode::with(
            self.all.json(),
            json!({
                "rows": rows,
                "disks": self.waited.as_deref().map(disks),
                "devices": self.devices.json(),
            }),
        ))
    }

    fn csv(&self) -> Result<Vec<u8>, csv::Error> {
        csv(
            self.csv_rows().chain(self.devices.rows()),
            "name pid waited_ns sync_ns fault_ns path_ns read_bytes written_bytes major_faults \
             device io_waits io_waited_ns requests busy_ns latency_ns p50_ns p99_ns longest_ns",
        )
    }
}

fn disks(waited: &[Waited<'_>]) -> Value {
    waited.iter().map(Waited::json).collect()
}

impl<'a> Disk<'a> {
    fn rows(&self) -> impl Iterator<Item = Value> + '_ {
        let parts = self.waited_of.iter().zip(&self.synced_of);
        let rows = self.rows.iter().zip(parts);
        rows.take(self.view.ask.most())
            .map(|((group, sum), (waited, synced))| {
                let name = json!({ "name": group.name, "pid": group.pid });
                let known = |of: Value| self.waited.as_ref().map(|_| of);
                let files = synced.iter().map(Synced::json).collect();
                let parts = json!({ "disks": known(disks(waited)), "synced": known(files) });
                crate::encode::with(crate::encode::with(name, sum.json()), parts)
            })
    }

    /// Each row, and its waits by disk.
    fn csv_rows(&self) -> impl Iterator<Item = Value> + '_ {
        let rows = self.rows.iter().zip(&self.waited_of);
        rows.take(self.view.ask.most())
            .flat_map(|((group, sum), waited)| {
                let name = || json!({ "name": group.name, "pid": group.pid });
                let waits = waited
                    .iter()
                    .map(move |it| crate::encode::with(name(), it.row()));
                let all = crate::encode::with(name(), sum.json());
                [all].into_iter().chain(waits)
            })
    }

    /// Who waited in fsync for which file, if that is known of any.
    fn files_text(&self, out: &mut String, style: &Style) {
        if self.synced_of.iter().flatten().any(Synced::is_known) {
            let waits = self.synced_of.iter().map(|all| {
                let waits = all.iter().map(|it| (it.ns, it.count, it.label()));
                waits.collect()
            });
            self.waits_table(out, style, ("waits in fsync", "file"), waits);
        }
    }

    /// Who waited for which disk, if there were several.
    fn waits_text(&self, out: &mut String, style: &Style) {
        let known = |all: &Vec<Waited<'_>>| all.iter().filter(|it| it.is_known()).count();
        if self.waited.as_ref().map_or(0, known) >= 2 {
            let waits = self.waited_of.iter().map(|all| {
                let waits = all.iter().map(|it| (it.ns, it.count, it.label()));
                waits.collect()
            });
            self.waits_table(out, style, ("waits for block I/O", "disk"), waits);
        }
    }

    /// The waits of each row, the longest ones first: their time in ns, their number, for what.
    fn waits_table(
        &self,
        out: &mut String,
        style: &Style,
        (title, what): (&str, &'static str),
        waits: impl Iterator<Item = Vec<(u64, u64, String)>>,
    ) {
        let rows = self.rows.iter().zip(waits);
        let mut waits: Vec<(&str, (u64, u64, String))> = rows
            .flat_map(|((group, _), waits)| waits.into_iter().map(|it| (&*group.name, it)))
            .collect();
        waits.order_by_key(|(_, (ns, count, _))| Reverse((*ns, *count)));
        let shown = waits.iter().take(self.view.ask.top);
        let title = units::top(title, shown.len(), waits.len());
        let table = Table::new(title, |(group, _): &&(&str, (u64, u64, String))| {
            (*group).to_owned()
        })
        .column(IO_WAIT, |(_, (ns, ..))| Cell::Time(*ns))
        .column("waits", |(_, (_, count, _))| Cell::Count(*count))
        .column(what, |(_, (.., label))| Cell::Text(label.clone()));
        out.push('\n');
        out.push_str(&table.text(shown, style, 0));
    }
}
