//! The skeleton of the BPF programs: the Rust code to open and load them, generated from their compiled object.
#![allow(unused_imports, clippy::all, clippy::pedantic, clippy::restriction)]

include!(concat!(env!("OUT_DIR"), "/tracer.skel.rs"));

thread_local! {
    static USUAL: std::cell::Cell<bool> = const { std::cell::Cell::new(false) };
}

/// Runs `open`, in which this thread opens the compiled object of the BPF programs, and returns the result of `open`.
/// If `usual` is true, the thread gets the object that is compiled for the most common settings of a recording,
/// otherwise the object for all settings.
pub(crate) fn with_object<T>(usual: bool, open: impl FnOnce() -> T) -> T {
    USUAL.set(usual);
    let opened = open();
    USUAL.set(false);
    opened
}

/// The compiled object of the BPF programs that [`with_object`] has chosen for this thread. Each of the two is
/// unpacked once.
fn object() -> &'static [u8] {
    static ALL: std::sync::OnceLock<Vec<u8>> = std::sync::OnceLock::new();
    static OF_USUAL: std::sync::OnceLock<Vec<u8>> = std::sync::OnceLock::new();
    if USUAL.get() {
        let packed = include_bytes!(concat!(env!("OUT_DIR"), "/usual.bpf.o.zst"));
        OF_USUAL.get_or_init(|| unpacked(packed))
    } else {
        let packed = include_bytes!(concat!(env!("OUT_DIR"), "/tracer.bpf.o.zst"));
        ALL.get_or_init(|| unpacked(packed))
    }
}

#[allow(clippy::expect_used)] // a constant
fn unpacked(packed: &[u8]) -> Vec<u8> {
    zstd::stream::decode_all(packed).expect("the build packed it")
}
