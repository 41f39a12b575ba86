#![no_main]

#[path = "../src/importing.rs"]
mod importing;

libfuzzer_sys::fuzz_target!(|data: &[u8]| importing::imports(data));
