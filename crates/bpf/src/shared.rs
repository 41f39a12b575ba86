//! The memory that the programs share with their reader, mapped: what they tell, and what they are
//! asked for.

use std::os::fd::{AsRawFd, BorrowedFd};
use std::ptr;
use std::sync::atomic::AtomicU64;

use memmap2::{MmapOptions, MmapRaw};

use crate::skel::types::{bss_asked, bss_told, progress};
use crate::wire::MAX_CPUS;

/// The sizes of both parts in bytes. Two processes of one version have the same.
pub const MEMORY: [usize; 2] = [size_of::<bss_told>(), size_of::<bss_asked>()];

/// Both are plain integers, for which every bit pattern is valid.
#[derive(Debug)]
pub(crate) struct Shared {
    told: MmapRaw,
    asked: MmapRaw,
}

impl Shared {
    pub(crate) fn map(told: BorrowedFd<'_>, asked: BorrowedFd<'_>) -> std::io::Result<Shared> {
        let [told_len, asked_len] = MEMORY;
        let (mut one, mut other) = (MmapOptions::new(), MmapOptions::new());
        Ok(Shared {
            told: one.len(told_len).map_raw_read_only(told.as_raw_fd())?,
            asked: other.len(asked_len).map_raw(asked.as_raw_fd())?,
        })
    }

    pub(crate) fn told(&self) -> &bss_told {
        // SAFETY: mapped as a whole, to a page's boundary; plain integers.
        unsafe { &*self.told.as_ptr().cast() }
    }

    pub(crate) fn asked(&mut self) -> &mut bss_asked {
        // SAFETY: as in `told`; mapped to read and write, and a borrow of `progress` has ended.
        unsafe { &mut *self.asked.as_mut_ptr().cast() }
    }

    /// The read position in a CPU's slots, and its first slot, plus 1. Only the reader writes them.
    pub(crate) fn progress(&self, cpu: u16) -> [&AtomicU64; 2] {
        let asked = self.asked.as_mut_ptr().cast::<bss_asked>();
        let place = usize::from(cpu) & (MAX_CPUS - 1);
        // SAFETY: one of the MAX_CPUS places of an array in the mapping, which lives as long as `self`;
        // aligned, as its page is. While they are borrowed, this process uses both as atomics alone.
        unsafe {
            let all: *mut [progress; MAX_CPUS] = &raw mut (*asked).sched_progress;
            let one = all.cast::<progress>().add(place);
            [&raw mut (*one).tail, &raw mut (*one).first].map(|it| AtomicU64::from_ptr(it))
        }
    }
}

/// A field as it is now: the programs may write it at any time.
pub(crate) fn now<T: Copy>(field: &T) -> T {
    // SAFETY: a reference is valid to read.
    unsafe { ptr::read_volatile(field) }
}
