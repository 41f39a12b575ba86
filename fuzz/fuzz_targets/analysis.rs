#![no_main]

#[path = "../src/limit.rs"]
mod limit;
#[path = "../src/lying.rs"]
mod lying;
use tr_fuzz as targets;

libfuzzer_sys::fuzz_target!(|data: &[u8]| limit::within(|| lying::analysis(data)));
