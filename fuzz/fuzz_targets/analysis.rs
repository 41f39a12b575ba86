#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| tr_fuzz::analysis(data));
