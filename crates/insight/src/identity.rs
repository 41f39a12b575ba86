//! What tells a recording from all others.

use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, BTreeSet};

use sha2::{Digest, Sha256};
use tr_format::event::Ktime;
use tr_format::meta::Metadata;

use tr_text::units::hex;

/// The id of a recording: no two begin at the same nanosecond of three clocks. Recordings that
/// `tr redact` or `tr recover` made of one have the same.
pub fn id(meta: &Metadata) -> String {
    let mut hash = Sha256::new();
    let Ktime(start) = meta.start;
    for number in [start, meta.start_clock.boot, meta.start_clock.real] {
        hash.update(number.to_le_bytes());
    }
    hash.update(meta.root.map_or(0, |root| root.0).to_le_bytes());
    hash.update(meta.kernel.as_bytes());
    hex(hash.finalize().iter().take(12))
}

/// The recordings of one comparison so far. One that is there twice is refused: it is one run, and counted as two
/// it makes chance look like a difference, or a difference like none. A copy under another name is the same
/// recording. An import is known by its name: it may not tell its time of the day.
#[derive(Debug, Default)]
pub struct Runs {
    names: BTreeSet<String>,
    /// The names of the recordings by their ids.
    ids: BTreeMap<String, String>,
}

impl Runs {
    /// Adds a recording, which need not have been analyzed yet.
    ///
    /// # Errors
    /// The recording is there already. The text names both.
    pub fn add(&mut self, meta: &Metadata, name: String) -> Result<(), String> {
        if !self.names.insert(name.clone()) {
            return Err(format!("{name} is given twice: a run counts once"));
        }
        if meta.recorder.is_some() || meta.start_unix().is_none() {
            return Ok(());
        }
        match self.ids.entry(id(meta)) {
            Entry::Vacant(free) => {
                free.insert(name);
                Ok(())
            }
            Entry::Occupied(first) => Err(format!(
                "{} and {name} are the same recording: a run counts once",
                first.get()
            )),
        }
    }
}
