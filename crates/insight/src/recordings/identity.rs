//! Identifies recordings, so that one recording is not compared with itself.

use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, BTreeSet};

use sha2::{Digest, Sha256};
use tr_format::event::Ktime;
use tr_format::meta::Metadata;

use tr_text::units::hex;

/// The identifier of a recording: a hash of three clocks at the start of the recording, COMMAND's pid and the kernel.
/// No two recordings begin at equal nanoseconds of all three clocks. A copy that `tr redact` or `tr recover` makes has
/// the identifier of its original.
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

/// The recordings that a comparison has been given so far. A recording that is given twice is refused: a run that
/// counts twice makes chance look like a difference, or hides a difference. A copy under another file name counts as
/// the same recording. An imported recording is identified by its file name, because an imported recording may lack the
/// time of the day.
#[derive(Debug, Default)]
pub struct Runs {
    names: BTreeSet<String>,
    /// The file name of each recording of the comparison, by the recording's identifier.
    ids: BTreeMap<String, String>,
}

impl Runs {
    /// Adds a recording to the comparison. The recording need not be analyzed yet.
    ///
    /// # Errors
    ///
    /// The comparison has the recording already. The text of the error names both files.
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
