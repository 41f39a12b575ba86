//! Verifies before a recording that the limits of memory are high enough. A process that exceeds a limit is killed,
//! or ends at its next allocation, so a recorder that has too little memory does not start.

use tr_output::cgroups;

use crate::error::Error;

/// Returns an error if this process cannot map `needed` more bytes, or if a limit of its cgroup is lower than that.
pub fn check(needed: u64) -> Result<(), Error> {
    let short = |limit| Error::Memory { needed, limit };
    if !can_map(needed) {
        return Err(short("the process's (ulimit -v, ulimit -d)"));
    }
    match cgroups::memory_limit() {
        Some(limit) if limit < needed => Err(short("the cgroup's")),
        _ => Ok(()),
    }
}

/// Whether the kernel grants this process `bytes` more bytes of address space.
fn can_map(bytes: u64) -> bool {
    let Ok(length) = usize::try_from(bytes) else {
        return false;
    };
    let (access, kind) = (
        libc::PROT_READ | libc::PROT_WRITE,
        libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE,
    );
    // SAFETY: a new mapping at a place of the kernel's choice, which nothing uses.
    unsafe {
        let place = libc::mmap(std::ptr::null_mut(), length, access, kind, -1, 0);
        place != libc::MAP_FAILED && libc::munmap(place, length) == 0
    }
}
