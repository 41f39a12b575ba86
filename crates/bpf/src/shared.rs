//! The memory that the programs share with their reader, mapped: what they tell, and what they are
//! asked for.

use std::os::fd::{AsRawFd, BorrowedFd};
use std::ptr;
use std::sync::atomic::AtomicU64;

use memmap2::{MmapOptions, MmapRaw};

use crate::skel::types::{bss_input, bss_output, progress};
use crate::wire::MAX_CPUS;

/// The sizes of both parts in bytes. Two processes of one version have the same.
pub const MEMORY: [usize; 2] = [size_of::<bss_output>(), size_of::<bss_input>()];

/// Both are plain integers, for which every bit pattern is valid.
#[derive(Debug)]
pub(crate) struct Shared {
    output: MmapRaw,
    input: MmapRaw,
}

impl Shared {
    pub(crate) fn map(output: BorrowedFd<'_>, input: BorrowedFd<'_>) -> std::io::Result<Shared> {
        let [output_len, input_len] = MEMORY;
        let (mut one, mut other) = (MmapOptions::new(), MmapOptions::new());
        Ok(Shared {
            output: one.len(output_len).map_raw_read_only(output.as_raw_fd())?,
            input: other.len(input_len).map_raw(input.as_raw_fd())?,
        })
    }

    pub(crate) fn output(&self) -> &bss_output {
        // SAFETY: mapped as a whole, to a page's boundary; plain integers.
        unsafe { &*self.output.as_ptr().cast() }
    }

    pub(crate) fn input(&mut self) -> &mut bss_input {
        // SAFETY: as in `output`; mapped to read and write, and a borrow of `progress` has ended.
        unsafe { &mut *self.input.as_mut_ptr().cast() }
    }

    /// The read position in a CPU's slots, and its first slot, plus 1. Only the reader writes them.
    pub(crate) fn progress(&self, cpu: u16) -> [&AtomicU64; 2] {
        let input = self.input.as_mut_ptr().cast::<bss_input>();
        let place = usize::from(cpu) & (MAX_CPUS - 1);
        // SAFETY: one of the MAX_CPUS places of an array in the mapping, which lives as long as `self`;
        // aligned, as its page is. While they are borrowed, this process uses both as atomics alone.
        unsafe {
            let all: *mut [progress; MAX_CPUS] = &raw mut (*input).sched_progress;
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
