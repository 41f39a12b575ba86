//! Unit tests of `living`.

use std::mem::MaybeUninit;
use std::os::fd::{AsFd, AsRawFd};

use libbpf_rs::libbpf_sys::bpf_map_create_opts;
use libbpf_rs::skel::{OpenSkel, SkelBuilder};
use libbpf_rs::{MapHandle, MapType};

use super::*;
use crate::skel::TracerSkelBuilder;

/// Tests that `MAPS` lists all maps of the compiled object with their names and the sizes of their keys and values.
#[test]
fn the_maps_are_those_of_the_programs() {
    let mut storage = MaybeUninit::uninit();
    let skel = TracerSkelBuilder::default().open(&mut storage).unwrap();
    let mut found: Vec<_> = skel
        .open_object()
        .maps()
        .map(|map| {
            let name = map.name().to_string_lossy().into_owned();
            let variables = name.contains('.');
            // `Large::create` creates this map without libbpf's skeleton, under a name of its own.
            let name = name.replace(".data.followed", "followed");
            let value = (!variables).then_some(map.value_size());
            (name, map.key_size(), value)
        })
        .collect();
    let listed = MAPS
        .iter()
        .map(|map| (map.name.to_owned(), map.key, map.value));
    let mut listed: Vec<_> = listed.collect();
    found.sort_unstable();
    listed.sort_unstable();
    assert_eq!(found, listed);
}

/// Tests that the computed memory of a map equals the kernel's figure in `/proc/self/fdinfo`, which is exact since
/// Linux 6.4.
#[test]
fn the_memory_of_a_map_is_the_kernels() {
    let options = bpf_map_create_opts {
        sz: size_of::<bpf_map_create_opts>() as _,
        ..Default::default()
    };
    for (kind, key, value, entries) in [
        (MapType::Hash, 4, 20, 5000),
        (MapType::LruHash, 20, 4, 3000),
        (MapType::Array, 4, 12, 6000),
        (MapType::RingBuf, 0, 0, 1 << 20),
    ] {
        let made = MapHandle::create(kind, Some("tr_test"), key, value, entries, &options);
        let Ok(made) = made else {
            return; // no right to make maps
        };
        let fd = made.as_fd().as_raw_fd();
        let facts = std::fs::read_to_string(format!("/proc/self/fdinfo/{fd}")).unwrap();
        let fact = |name: &str| {
            let line = facts.lines().find_map(|line| line.strip_prefix(name));
            line.unwrap()
                .trim_start_matches(':')
                .trim()
                .parse::<u64>()
                .unwrap()
        };
        let info = info(fact("map_id") as u32).unwrap();
        let (computed, kernels) = (memory(&info), fact("memlock"));
        assert!(
            computed.abs_diff(kernels) <= kernels / 10 + 8192,
            "{kind:?}: {computed}, of the kernel {kernels}"
        );
    }
}
