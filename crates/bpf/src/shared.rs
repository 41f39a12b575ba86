//! The memory that the BPF programs share with their reader: the variables that the programs write (output),
//! and those that the reader writes (input).

use std::os::fd::{AsRawFd, BorrowedFd};
use std::ptr;
use std::sync::atomic::AtomicU64;

use memmap2::{MmapOptions, MmapRaw};

use crate::skel::types::{bss_input, bss_output, progress};
use crate::wire::MAX_CPUS;

/// The sizes in bytes of the variables that the BPF programs write (output) and of those that user space
/// writes (input). The sizes are equal in all processes of one version.
pub const MEMORY: [usize; 2] = [size_of::<bss_output>(), size_of::<bss_input>()];

/// The mapped output and input variables of the BPF programs. Both consist of plain integers, for which every
/// bit pattern is valid.
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
        // SAFETY: the whole struct is mapped, aligned to a page, and has plain integers only.
        unsafe { &*self.output.as_ptr().cast() }
    }

    pub(crate) fn input(&mut self) -> &mut bss_input {
        // SAFETY: the whole struct is mapped, aligned to a page, and has plain integers only. The mapping is writable,
        // and every borrow by `progress` has ended.
        unsafe { &mut *self.input.as_mut_ptr().cast() }
    }

    /// Two numbers about a CPU that only user space writes: the read position in the CPU's slots, and the number of
    /// the CPU's first slot, plus 1 (0 if the CPU has no slots).
    pub(crate) fn progress(&self, cpu: u16) -> [&AtomicU64; 2] {
        let input = self.input.as_mut_ptr().cast::<bss_input>();
        let place = usize::from(cpu) & (MAX_CPUS - 1);
        // SAFETY: `place` is below MAX_CPUS, the length of the array. The mapping lives as long as `self` and is
        // aligned to a page. While the two words are borrowed, this process uses them as atomics only.
        unsafe {
            let all: *mut [progress; MAX_CPUS] = &raw mut (*input).sched_progress;
            let one = all.cast::<progress>().add(place);
            [&raw mut (*one).tail, &raw mut (*one).first].map(|word| AtomicU64::from_ptr(word))
        }
    }
}

/// Reads the present value of a variable that the BPF programs share and may write at any time.
pub(crate) fn now<T: Copy>(field: &T) -> T {
    // SAFETY: a reference is valid to read.
    unsafe { ptr::read_volatile(field) }
}
