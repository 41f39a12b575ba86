//! Waits for block I/O by disk, and in fsync by file: a part of the report on disks.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use serde_json::{json, Value};
use tr_analyze::awaited::Awaited;
use tr_analyze::disks::Disk;
use tr_analyze::model::{Analysis, ThreadIx};
use tr_format::event::Reason;
use tr_format::meta::Extra;

use crate::escape;
use crate::sort::Rows;
use crate::units;

/// The waits of some threads for a disk.
pub struct Waited<'a> {
    /// `None`: it is not known which.
    disk: Option<&'a Disk>,
    pub count: u64,
    /// Their time in ns.
    pub ns: u64,
}

/// The waits of these threads, those for the longest time first; `None` if the recording does not
/// tell the disks.
pub fn by_disk<'a>(analysis: &'a Analysis, threads: &[ThreadIx]) -> Option<Vec<Waited<'a>>> {
    let timeline = analysis.timeline.as_ref();
    let timeline = timeline.filter(|_| analysis.meta.has(Extra::DiskWaits))?;
    let mut disks: BTreeMap<Option<&Disk>, (u64, u64)> = BTreeMap::new();
    for thread in threads {
        for stretch in timeline.of(*thread) {
            if analysis.awaited(*thread, &stretch) == Some(Awaited::Disk) {
                let disk = analysis.waited_disks.of(*thread, stretch.from);
                let (count, ns) = disks.entry(disk).or_default();
                *count = count.saturating_add(1);
                *ns = ns.saturating_add(stretch.length());
            }
        }
    }
    let waited = |(disk, (count, ns))| Waited { disk, count, ns };
    let mut waited: Vec<_> = disks.into_iter().map(waited).collect();
    waited.order_by_key(|it| Reverse((it.ns, it.count)));
    Some(waited)
}

impl Waited<'_> {
    /// The disk's name and number.
    pub fn label(&self) -> String {
        match self.disk {
            None => "not known".to_owned(),
            Some(disk) if disk.name.is_empty() => disk.device.to_string(),
            Some(disk) => format!("{} ({})", escape::text(&disk.name), disk.device),
        }
    }

    /// The disk is known.
    pub fn is_known(&self) -> bool {
        self.disk.is_some()
    }

    pub fn json(&self) -> Value {
        json!({
            "device": self.disk.map(|disk| disk.device.to_string()),
            "name": self.disk.map(|disk| escape::text(&disk.name)),
            "waits": self.count,
            "waited_ns": self.ns,
        })
    }

    /// The columns of a row in CSV.
    pub fn row(&self) -> Value {
        json!({
            "device": self.disk.map(|disk| disk.device.to_string()),
            "io_waits": self.count,
            "io_waited_ns": self.ns,
        })
    }
}

/// The waits of some threads in fsync and its relatives for a file.
pub struct Synced<'a> {
    /// The last component of its path; `None`: it is not known.
    file: Option<&'a [u8]>,
    pub count: u64,
    /// Their time in ns.
    pub ns: u64,
}

/// The waits of these threads by file, those for the longest time first.
pub fn by_file<'a>(analysis: &'a Analysis, threads: &[ThreadIx]) -> Vec<Synced<'a>> {
    let timeline = analysis.timeline.as_ref();
    let timeline = timeline.filter(|_| analysis.meta.has(Extra::DiskWaits));
    let mut files: BTreeMap<Option<&[u8]>, (u64, u64)> = BTreeMap::new();
    for (timeline, thread) in timeline
        .into_iter()
        .flat_map(|it| threads.iter().map(move |ix| (it, *ix)))
    {
        for stretch in timeline.of(thread).filter(|it| it.reason == Reason::Sync) {
            let awaited = analysis.awaited(thread, &stretch);
            if matches!(awaited, Some(Awaited::Disk | Awaited::File)) {
                let file = analysis.waited_disks.file(thread, stretch.from);
                let (count, ns) = files.entry(file).or_default();
                *count = count.saturating_add(1);
                *ns = ns.saturating_add(stretch.length());
            }
        }
    }
    let synced = |(file, (count, ns))| Synced { file, count, ns };
    let mut synced: Vec<_> = files.into_iter().map(synced).collect();
    synced.order_by_key(|it| Reverse((it.ns, it.count)));
    synced
}

impl Synced<'_> {
    pub fn label(&self) -> String {
        self.file
            .map_or_else(|| "not known".to_owned(), escape::text)
    }

    /// The file is known.
    pub fn is_known(&self) -> bool {
        self.file.is_some()
    }

    /// In JSON, and the columns of a row in CSV.
    pub fn json(&self) -> Value {
        json!({
            "file": self.file.map(escape::text),
            "waits": self.count,
            "waited_ns": self.ns,
        })
    }
}

/// All of them in a sentence; `None` without waits.
pub fn sentence(waited: &[Waited<'_>]) -> Option<String> {
    let part = |it: &Waited<'_>| {
        let disk = match it.disk {
            None => "a disk that is not known".to_owned(),
            Some(disk) if disk.name.is_empty() => disk.device.to_string(),
            Some(disk) => escape::text(&disk.name),
        };
        format!("{} for {disk}", units::time(it.ns))
    };
    let parts: Vec<String> = waited.iter().map(part).collect();
    (!parts.is_empty()).then(|| format!("Waits for block I/O: {}", parts.join(", ")))
}
