//! What tells a recording from all others.

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
