#![no_main]

#[path = "../src/commands.rs"]
mod commands;
#[path = "../src/limit.rs"]
mod limit;
#[path = "../src/lying.rs"]
mod lying;
use tr_fuzz as targets;

libfuzzer_sys::fuzz_target!(|data: &[u8]| limit::within(|| commands::commands(data)));
