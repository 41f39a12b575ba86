//! Reads a BPF ring buffer: that of the lifecycle events, or that of the stack samples. libbpf has a reader as well,
//! but it gets the size of the map by bpf(2), which kernels before 5.19 refuse to a process without `CAP_BPF`.

use std::os::fd::{AsRawFd, BorrowedFd};
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use libbpf_rs::libbpf_sys::{BPF_RINGBUF_BUSY_BIT, BPF_RINGBUF_DISCARD_BIT, BPF_RINGBUF_HDR_SZ};
use memmap2::{MmapOptions, MmapRaw};
use nix::unistd::{sysconf, SysconfVar};

/// A BPF ring buffer in mapped memory. The memory outlives the BPF programs.
#[derive(Debug)]
pub struct LifeRing {
    /// The mapped page of the ring buffer that the reader writes. The page begins with the position up to which the
    /// reader has read.
    consumer: MmapRaw,
    /// The mapped pages of the ring buffer that the BPF programs write. The first page begins with the programs'
    /// position. The data pages follow, mapped twice in a row, so that a record that wraps around the end of the ring
    /// is contiguous here.
    producer: MmapRaw,
    /// The size of the data pages of the ring buffer in bytes, a power of two.
    size: usize,
    page: usize,
}

impl LifeRing {
    /// Maps the ring buffer `fd`, whose records have `size` bytes of room, into memory.
    pub(crate) fn map(fd: BorrowedFd<'_>, size: u32) -> std::io::Result<LifeRing> {
        let (size, page) = (size as usize, page_size());
        Ok(LifeRing {
            consumer: MmapOptions::new().len(page).map_raw(fd.as_raw_fd())?,
            producer: MmapOptions::new()
                .offset(page as u64)
                .len(page + 2 * size)
                .map_raw_read_only(fd.as_raw_fd())?,
            size,
            page,
        })
    }

    /// Passes the records in the ring buffer to `sink`, in order, up to the first one that a program is still
    /// writing. Discarded records are skipped.
    pub fn consume(&mut self, mut sink: impl FnMut(&[u8])) {
        let header = BPF_RINGBUF_HDR_SZ as usize;
        // Records that are added during this call are left for the next one. Otherwise this loop might never end on a
        // busy machine.
        let end = self.produced().load(Ordering::Acquire);
        let mut at = self.consumed().load(Ordering::Relaxed);
        while at < end {
            let offset = at as usize & (self.size - 1);
            let len = self.length(offset).load(Ordering::Acquire);
            if len & BPF_RINGBUF_BUSY_BIT != 0 {
                return;
            }
            let used = (len & !(BPF_RINGBUF_BUSY_BIT | BPF_RINGBUF_DISCARD_BIT)) as usize;
            if header + used > self.size {
                return;
            }
            if len & BPF_RINGBUF_DISCARD_BIT == 0 {
                // SAFETY: the record is inside the mapping, which has `size` bytes beyond every offset. The programs
                // do not overwrite a committed record before the reader publishes a position beyond it.
                let record = unsafe {
                    let first = self.producer.as_ptr().add(self.page + offset + header);
                    std::slice::from_raw_parts(first, used)
                };
                sink(record);
            }
            at += (header + used).next_multiple_of(header) as u64;
            self.consumed().store(at, Ordering::Release);
        }
    }

    fn consumed(&self) -> &AtomicU64 {
        // SAFETY: the word is the beginning of a page that is mapped to read and write.
        unsafe { AtomicU64::from_ptr(self.consumer.as_mut_ptr().cast()) }
    }

    fn produced(&self) -> &AtomicU64 {
        // SAFETY: the word is the beginning of a mapped page, and is only loaded.
        unsafe { AtomicU64::from_ptr(self.producer.as_mut_ptr().cast()) }
    }

    /// The first word of the header of the ring buffer's record at this offset: the record's length and
    /// flags.
    fn length(&self, offset: usize) -> &AtomicU32 {
        // SAFETY: the word is inside the mapping, because `offset` is less than `size`. It is aligned, because records
        // begin at multiples of 8. It is only loaded.
        unsafe { AtomicU32::from_ptr(self.producer.as_mut_ptr().add(self.page + offset).cast()) }
    }
}

fn page_size() -> usize {
    let size = sysconf(SysconfVar::PAGE_SIZE).ok().flatten();
    size.and_then(|size| usize::try_from(size).ok())
        .unwrap_or(4096)
}
