//! Reads and sets the capabilities of this thread, by capget(2) and capset(2). Threads that this one starts
//! later inherit them.
//!
//! The capabilities of an installed `tr` are permitted, not effective. The kernel refuses to execute a file
//! with effective capabilities if the bounding set lacks them, as in most containers, so that even `tr a-z
//! A-Z` would fail there. So the recorder makes its capabilities effective itself.

use rustix::io::Result;
use rustix::thread::{capabilities, set_capabilities, CapabilitySet, CapabilitySets};

/// The capabilities with which the recorder loads and attaches BPF programs. Before Linux 5.11 it also needs
/// CAP_SYS_RESOURCE, to raise the limit of memory for BPF maps.
pub const TRACE: CapabilitySet = CapabilitySet::PERFMON
    .union(CapabilitySet::BPF)
    .union(CapabilitySet::SYS_RESOURCE);

/// Makes the capabilities in [`TRACE`] effective, as far as this thread is permitted to have them. If one is missing,
/// the kernel refuses the BPF programs later, and the error message then names the missing capability.
pub fn raise() {
    let Ok(mut sets) = capabilities(None) else {
        return;
    };
    if !sets.effective.contains(sets.permitted & TRACE) {
        sets.effective |= sets.permitted & TRACE;
        let _ = set_capabilities(None, sets);
    }
}

/// Gives up all capabilities of this thread except those in `kept`. The capabilities in `kept` become effective, as far
/// as the thread is permitted to have them.
pub fn keep(kept: CapabilitySet) -> Result<()> {
    let kept = kept & capabilities(None)?.permitted;
    let sets = CapabilitySets {
        effective: kept,
        permitted: kept,
        inheritable: CapabilitySet::empty(),
    };
    set_capabilities(None, sets)
}
