//! Finds the recordings that are running on this machine, by the kernel's list of BPF maps. The process that loaded
//! the maps of a recording cannot keep count of their memory: a map lives on as long as any process has a descriptor
//! or a mapping of it.

use std::ffi::CStr;
use std::os::fd::AsRawFd;

use libbpf_rs::libbpf_sys::{
    bpf_map_get_fd_by_id, bpf_map_get_info_by_fd, bpf_map_get_next_id, bpf_map_info,
    BPF_MAP_TYPE_HASH, BPF_MAP_TYPE_LRU_HASH, BPF_MAP_TYPE_RINGBUF, BPF_MAP_TYPE_TASK_STORAGE,
};

use crate::load::opened;

/// The name of the BPF map that each recording has exactly once, so that recordings can be counted by it.
const RECORDING_MAP: &str = "life_ring";

/// A map of the recorder's BPF programs: its name in the kernel, which cuts names after 15 bytes, and the sizes of a
/// key and a value in bytes. Other programs may have maps with the same name, but hardly with the same sizes.
struct Map {
    name: &'static str,
    key: u32,
    /// The size in bytes of a value of the BPF map; `None` if the size differs between recordings, because the settings
    /// or the number of variables determine it.
    value: Option<u32>,
}

const fn map(name: &'static str, key: u32, value: u32) -> Map {
    Map {
        name,
        key,
        value: Some(value),
    }
}

const fn variables(name: &'static str) -> Map {
    Map {
        name,
        key: 4,
        value: None,
    }
}

/// All maps of the recorder's BPF programs. A test compares this list with the compiled object of the programs.
const MAPS: [Map; 27] = [
    map(RECORDING_MAP, 0, 0),
    map("sample_ring", 0, 0),
    map("slots", 4, 16),
    map("call_sums", 4, 40),
    variables("followed"),
    variables("tracer_b.rodata"),
    variables(".rodata.cst16"),
    variables("tracer_b.bss"),
    variables(".bss.output"),
    variables(".bss.input"),
    map("asked", 20, 4),
    map("askers", 4, 72),
    map("begun", 4, 4),
    map("clients", 4, 4),
    map("connections", 8, 16),
    map("device_places", 4, 4),
    map("entered", 4, 16),
    map("listeners", 8, 16),
    map("names", 16, 4),
    map("reclaimers", 4, 32),
    map("requests", 8, 24),
    map("served", 4, 8),
    map("submitters", 4, 16),
    map("taken_places", 4, 4),
    map("targets", 4, 4),
    map("noted_ids", 16, 4),
    map("waiters", 4, 5096),
];

/// The number and the memory of all recordings that are running on this machine.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Living {
    /// The memory of the BPF maps of all recordings that are running on this machine, in bytes.
    pub memory: u64,
    /// The number of recordings that are running on this machine. A recording whose recorder has ended still counts
    /// if another process has kept a descriptor or a mapping of its maps.
    pub recordings: usize,
}

impl Living {
    /// Counts the recordings that are running on this machine. Without `CAP_SYS_ADMIN`, as in a container, the kernel
    /// lists none.
    pub fn find() -> Living {
        let mut all = Living::default();
        let mut id = 0;
        // SAFETY: the call only writes the next id to `id`.
        while unsafe { bpf_map_get_next_id(id, &raw mut id) } == 0 {
            let Some(info) = info(id) else { continue };
            // The C type of a character is signed on x86-64 and unsigned on aarch64, so the bytes are copied as they
            // are.
            let bytes = info.name.map(|c| u8::from_ne_bytes(c.to_ne_bytes()));
            let name = CStr::from_bytes_until_nul(&bytes).unwrap_or_default();
            let Some(known) = MAPS.iter().find(|map| map.is(name, &info)) else {
                continue;
            };
            all.recordings += usize::from(known.name == RECORDING_MAP);
            all.memory = all.memory.saturating_add(memory(&info));
        }
        all
    }
}

/// Asks the kernel for the description of a BPF map; `None` if the map no longer exists.
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

impl Map {
    fn is(&self, name: &CStr, info: &bpf_map_info) -> bool {
        self.name.as_bytes() == name.to_bytes()
            && self.key == info.key_size
            && self.value.is_none_or(|value| value == info.value_size)
    }
}

/// The approximate memory in bytes that the kernel allocates when it creates a BPF map (`map_mem_usage` of the map's
/// type).
fn memory(info: &bpf_map_info) -> u64 {
    /// The size in bytes of a hash table's entry without its key and value (`struct htab_elem`).
    const ENTRY: u64 = 48;
    /// The size in bytes of a bucket of a hash table (`struct bucket`).
    const BUCKET: u64 = 16;
    let entries = u64::from(info.max_entries);
    let [key, value] =
        [info.key_size, info.value_size].map(|size| u64::from(size).next_multiple_of(8));
    match info.type_ {
        BPF_MAP_TYPE_RINGBUF => entries,
        // A map of this type has no memory at first: the kernel allocates an entry when a program stores the first
        // value for a task.
        BPF_MAP_TYPE_TASK_STORAGE => 0,
        BPF_MAP_TYPE_HASH | BPF_MAP_TYPE_LRU_HASH => {
            // The product with `BUCKET` cannot overflow, because the number of entries has 32 bits.
            entries.next_power_of_two() * BUCKET + entries.saturating_mul(ENTRY + key + value)
        }
        _ => entries.saturating_mul(value),
    }
}

#[cfg(test)]
#[path = "tests/living.rs"]
mod tests;
