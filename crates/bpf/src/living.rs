//! The recordings that live on this machine, by the kernel's list of BPF maps. Memory of a map lives
//! as long as a descriptor or a mapping of it, so its loader cannot count it.

use std::ffi::CStr;
use std::os::fd::AsRawFd;

use libbpf_rs::libbpf_sys::{
    bpf_map_get_fd_by_id, bpf_map_get_info_by_fd, bpf_map_get_next_id, bpf_map_info,
    BPF_MAP_TYPE_RINGBUF,
};

use crate::load::opened;

/// The maps that have a size of the recorder's choice, by the names in `src/bpf`. Each recording has
/// the first one.
const MAPS: [&[u8]; 5] = [
    b"life_ring",
    b"slots",
    b"sample_ring",
    b"call_sums",
    b".data.followed",
];

/// What all recordings of this machine have together.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Living {
    /// Bytes of their maps.
    pub memory: u64,
    /// Their number, with those whose recorder has ended and left a descriptor to another process.
    pub recordings: usize,
}

impl Living {
    /// Counts them. Without `CAP_SYS_ADMIN`, as in a container, the kernel tells none.
    pub fn find() -> Living {
        let mut all = Living::default();
        let mut id = 0;
        // SAFETY: the call writes the next id to a place that is ours.
        while unsafe { bpf_map_get_next_id(id, &raw mut id) } == 0 {
            let Some(info) = info(id) else { continue };
            // C's characters are signed on x86-64, unsigned on aarch64.
            let name = info.name.map(|c| u8::from_ne_bytes(c.to_ne_bytes()));
            let name = CStr::from_bytes_until_nul(&name).unwrap_or_default();
            match MAPS.iter().position(|known| *known == name.to_bytes()) {
                Some(0) => all.recordings += 1,
                Some(_) => {}
                None => continue,
            }
            all.memory = all.memory.saturating_add(memory(&info));
        }
        all
    }
}

/// `None`: the map has gone.
fn info(id: u32) -> Option<bpf_map_info> {
    let mut info = bpf_map_info::default();
    let mut len = size_of_val(&info) as u32;
    // SAFETY: the call takes a number and opens the map's descriptor, or fails.
    let map = unsafe { opened(bpf_map_get_fd_by_id(id)) }.ok()?;
    // SAFETY: `map` is open. The call writes at most `len` bytes to `info`, which is ours and has that
    // size; the pointers in it are null, so it writes nowhere else.
    let done = unsafe { bpf_map_get_info_by_fd(map.as_raw_fd(), &raw mut info, &raw mut len) };
    (done == 0).then_some(info)
}

/// Bytes of a ring or an array.
fn memory(info: &bpf_map_info) -> u64 {
    let entry = match info.type_ {
        BPF_MAP_TYPE_RINGBUF => 1,
        _ => u64::from(info.value_size).next_multiple_of(8),
    };
    entry.saturating_mul(info.max_entries.into())
}
