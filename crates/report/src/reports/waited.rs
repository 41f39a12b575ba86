//! The part of the report on disks that sums up the waits of tasks: for block I/O by disk, and in
//! fsync by file.

use tr_analyze::disks::Disk;

use super::devices;
use tr_insight::resources::disk::WaitSum;
use tr_insight::views::members::Members;
use tr_text::escape;
use tr_text::table::{Cell, Table};
use tr_text::units;
use tr_text::words::IO_WAIT;

/// A row of a table of waits for disks: a group of threads with its name and pid, and the sum of its
/// waits for one disk or file.
pub type WaitedRow<'r, T> = (&'r Members, &'r WaitSum<T>);

pub fn disks<'a, 'd: 'a>() -> Table<'a, WaitedRow<'a, &'d Disk>> {
    let device = |(_, wait): &WaitedRow<'_, &Disk>| wait.what.map(|disk| disk.device.to_string());
    let name = |(_, wait): &WaitedRow<'_, &Disk>| wait.what.map(|disk| escape::raw(&disk.name));
    let own = |table: Table<'a, _>| table.data("name", name).json_only().data("device", device);
    let label = |disk: &&Disk| devices::label(&escape::raw(&disk.name), disk.device);
    table("disk", label, own)
}

pub fn files<'a, 'd: 'a>() -> Table<'a, WaitedRow<'a, &'d [u8]>> {
    let file = |(_, wait): &WaitedRow<'_, &[u8]>| wait.what.map(escape::raw);
    table(
        "file",
        |name: &&[u8]| escape::raw(name),
        |table| table.data("file", file),
    )
}

fn table<'a, T: 'a>(
    what: &str,
    label: impl Fn(&T) -> String + 'a,
    own: impl FnOnce(Table<'a, WaitedRow<'a, T>>) -> Table<'a, WaitedRow<'a, T>>,
) -> Table<'a, WaitedRow<'a, T>> {
    let label = move |(_, wait): &WaitedRow<'_, T>| match &wait.what {
        Some(what) => label(what),
        None => "not known".to_owned(),
    };
    let table = Table::new("", |(group, _): &WaitedRow<'_, T>| {
        group.name.short().to_owned()
    })
    .named("name")
    .csv_only()
    .csv_data("pid", |(group, _)| group.pid);
    own(table)
        .fact("waits", "waits", |(_, wait)| Cell::Count(wait.count))
        .csv_key("io_waits")
        .place(1)
        .fact(IO_WAIT, "waited_ns", |(_, wait)| Cell::Time(wait.ns))
        .csv_key("io_waited_ns")
        .place(0)
        .column(what, move |row| Cell::Text(label(row)))
        .place(2)
}

/// A sentence about the waits of all chosen tasks for disks; `None` if there were none.
pub fn sentence(waited: &[WaitSum<&Disk>]) -> Option<String> {
    let part = |wait: &WaitSum<&Disk>| {
        let disk = match wait.what {
            None => "a disk that is not known".to_owned(),
            Some(disk) if disk.name.is_empty() => disk.device.to_string(),
            Some(disk) => escape::raw(&disk.name),
        };
        format!("{} for {disk}", units::time(wait.ns))
    };
    let parts: Vec<String> = waited.iter().map(part).collect();
    (!parts.is_empty()).then(|| format!("Waits for block I/O: {}", parts.join(", ")))
}
