//! The capabilities of this thread, by capget(2) and capset(2). Threads that it starts later have the same.
//!
//! An installed `tr` has its capabilities permitted, not effective: the kernel refuses to execute a file with
//! effective ones where the bounding set lacks them, as in most containers, and a `tr a-z A-Z` there would fail. So
//! the recorder makes them effective itself.

use nix::errno::Errno;

pub const SYS_RESOURCE: u64 = 1 << 24;
const PERFMON: u64 = 1 << 38;
const BPF: u64 = 1 << 39;
/// The capabilities that load and attach BPF programs.
pub const TRACE: u64 = PERFMON | BPF;
/// `_LINUX_CAPABILITY_VERSION_3`: two words a set.
const VERSION: u32 = 0x2008_0522;

/// The sets of a thread, a bit each capability.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Sets {
    effective: u64,
    permitted: u64,
    inheritable: u64,
}

impl Sets {
    fn get() -> Result<Sets, Errno> {
        let (mut header, mut words) = (header(), [0u32; 6]);
        // SAFETY: a plain system call, which writes the version and the six words.
        let done = unsafe {
            let (header, words) = (header.as_mut_ptr(), words.as_mut_ptr());
            libc::syscall(libc::SYS_capget, header, words)
        };
        Errno::result(done)?;
        // Of each word the effective, the permitted and the inheritable set.
        let [e, p, i, e_high, p_high, i_high] = words.map(u64::from);
        Ok(Sets {
            effective: e | e_high << 32,
            permitted: p | p_high << 32,
            inheritable: i | i_high << 32,
        })
    }

    fn set(self) -> Result<(), Errno> {
        let sets = [self.effective, self.permitted, self.inheritable];
        let word = |shift: u32| sets.map(|set| (set >> shift) as u32);
        let (header, words) = (header(), [word(0), word(32)]);
        // SAFETY: a plain system call, which reads the header and the six words.
        let done = unsafe { libc::syscall(libc::SYS_capset, header.as_ptr(), words.as_ptr()) };
        Errno::result(done).map(drop)
    }
}

/// The version, and this thread.
fn header() -> [u32; 2] {
    [VERSION, 0]
}

/// Makes the permitted ones of [`TRACE`] effective. What is not permitted stays missing: the kernel's refusal of
/// the programs says so.
pub fn raise() {
    let Ok(sets) = Sets::get() else { return };
    let effective = sets.effective | sets.permitted & TRACE;
    if effective != sets.effective {
        let _ = Sets { effective, ..sets }.set();
    }
}

/// Gives up all others than these, of which the permitted ones become effective.
///
/// # Errors
/// capget(2) or capset(2) fails.
pub fn keep(kept: u64) -> Result<(), Errno> {
    let kept = kept & Sets::get()?.permitted;
    let sets = Sets {
        effective: kept,
        permitted: kept,
        inheritable: 0,
    };
    sets.set()
}
