//! What tells a recording from all others.

use std::collections::{BTreeMap, BTreeSet};

use sha2::{Digest, Sha256};
use tr_format::event::Ktime;
use tr_format::meta::Metadata;

use crate::encode::hex;

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

/// Refuses a recording that is there twice, among some with their metadata and names: it is one run,
/// and counted as two it makes chance look like a difference, or a difference like none. A copy under
/// another name is the same one. An import is known by its name: it may not tell its time of the day.
///
/// # Errors
/// The two, in words.
pub fn once(all: &[(Metadata, String)]) -> Result<(), String> {
    let mut names = BTreeSet::new();
    let mut ids: BTreeMap<String, &str> = BTreeMap::new();
    for (meta, name) in all {
        if !names.insert(name) {
            return Err(format!("{name} is given twice: a run counts once"));
        }
        let is_own = meta.recorder.is_none() && meta.start_unix().is_some();
        let first = is_own.then(|| ids.insert(id(meta), name)).flatten();
        if let Some(first) = first {
            return Err(format!(
                "{first} and {name} are the same recording: a run counts once"
            ));
        }
    }
    Ok(())
}
