//! The capabilities of this thread, by capget(2) and capset(2). Threads that it starts later have the same.
//!
//! An installed `tr` has its capabilities permitted, not effective: the kernel refuses to execute a file with
//! effective ones where the bounding set lacks them, as in most containers, and a `tr a-z A-Z` there would fail. So
//! the recorder makes them effective itself.

use rustix::io::Result;
use rustix::thread::{capabilities, set_capabilities, CapabilitySet, CapabilitySets};

/// The capabilities that load and attach BPF programs. Before Linux 5.11 CAP_SYS_RESOURCE raises the limit of
/// memory for maps.
pub const TRACE: CapabilitySet = CapabilitySet::PERFMON
    .union(CapabilitySet::BPF)
    .union(CapabilitySet::SYS_RESOURCE);

/// Makes the permitted ones of [`TRACE`] effective. What is not permitted stays missing: the kernel's refusal of
/// the programs says so.
pub fn raise() {
    let Ok(mut sets) = capabilities(None) else {
        return;
    };
    if !sets.effective.contains(sets.permitted & TRACE) {
        sets.effective |= sets.permitted & TRACE;
        let _ = set_capabilities(None, sets);
    }
}

/// Gives up all others than these, of which the permitted ones become effective.
pub fn keep(kept: CapabilitySet) -> Result<()> {
    let kept = kept & capabilities(None)?.permitted;
    let sets = CapabilitySets {
        effective: kept,
        permitted: kept,
        inheritable: CapabilitySet::empty(),
    };
    set_capabilities(None, sets)
}
