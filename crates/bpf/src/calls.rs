//! Reads the sums of system calls from two tables in mapped memory: the BPF programs fill one of the tables while `tr`
//! empties the other (`syscalls.bpf.h`).

use std::os::fd::{AsRawFd, BorrowedFd};
use std::sync::atomic::{AtomicU64, Ordering};

use memmap2::{MmapOptions, MmapRaw};

use crate::wire::{CallSum, CALL_SUMS};

/// The number of 64-bit words in a [`CallSum`], an entry of the tables of system calls.
const WORDS: usize = size_of::<CallSum>() / size_of::<u64>();

/// The two tables in mapped memory in which the BPF programs sum up system calls.
#[derive(Debug)]
pub struct Calls(MmapRaw);

impl Calls {
    pub(crate) fn map(map: BorrowedFd<'_>) -> std::io::Result<Calls> {
        let bytes = 2 * CALL_SUMS * size_of::<CallSum>();
        MmapOptions::new()
            .len(bytes)
            .map_raw(map.as_raw_fd())
            .map(Calls)
    }

    /// Empties the table of system calls that the BPF programs do not fill now, and returns the sums in that table.
    /// `active` is the number of the table that the programs fill.
    pub(crate) fn take(&self, active: u32) -> Vec<CallSum> {
        let words = self.0.len() / size_of::<u64>();
        let begin = self.0.as_ptr().cast::<AtomicU64>();
        // SAFETY: the function `map` made the mapping. It is writable, aligned to a page, and lives as long as `self`,
        // which the slice borrows. Every bit pattern is a valid word. The BPF programs write only whole words, and this
        // process accesses them only as atomics.
        let words = unsafe { std::slice::from_raw_parts(begin, words) };
        let first = if active & 1 == 0 { CALL_SUMS } else { 0 };
        let table = words.chunks_exact(WORDS).skip(first).take(CALL_SUMS);
        let used = table.filter(|sum| {
            sum.first()
                .is_some_and(|key| key.load(Ordering::Relaxed) != 0)
        });
        used.filter_map(|sum| {
            let mut values = sum.iter().map(|word| word.swap(0, Ordering::Relaxed));
            Some(CallSum {
                key: values.next()?,
                count: values.next()?,
                errors: values.next()?,
                ns: values.next()?,
                longest: values.next()?,
            })
        })
        .collect()
    }
}
