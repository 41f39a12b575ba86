//! The skeleton of the programs, generated from their object.
#![allow(unused_imports, clippy::all, clippy::pedantic, clippy::restriction)]

include!(concat!(env!("OUT_DIR"), "/tracer.skel.rs"));

/// The object of the programs, which is unpacked at the first call.
#[allow(clippy::expect_used)] // a constant
fn object() -> &'static [u8] {
    static OBJECT: std::sync::LazyLock<Vec<u8>> = std::sync::LazyLock::new(|| {
        let packed = include_bytes!(concat!(env!("OUT_DIR"), "/tracer.bpf.o.zst"));
        zstd::stream::decode_all(&packed[..]).expect("the build packed it")
    });
    &OBJECT
}
