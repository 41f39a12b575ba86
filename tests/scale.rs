//! Tests that the lines of the first screen do not depend on a recording's size.
#![allow(clippy::expect_used, clippy::unwrap_used)] // of our own files

use std::path::PathBuf;
use std::process::Command;

use tr_sim::config::{Config, Follow};
use tr_sim::scenario;

/// Records a simulated build on 64 CPUs that ends after this many events.
fn record(events: u64) -> PathBuf {
    let mut config = Config::new(scenario::build(96, u32::MAX, 400), 64, u64::MAX >> 12);
    config.follow = Follow::All;
    config.max_events = events;
    config.kernel.pid_max = 1 << 22;
    config.progress = 1_000_000_000;
    let path = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(format!("scale-{events}.bin"));
    let out = std::io::BufWriter::new(std::fs::File::create(&path).unwrap());
    tr_sim::file::record_to(&config, out).unwrap();
    path
}

/// The parts of the first screen, each given by the words with which its line begins.
const PARTS: [&str; 8] = [
    "make ",
    "Verdict ",
    "Critical path: ",
    "  cc1 ",
    "All processes ",
    "CPUs ",
    "Top ",
    "Trace ",
];

/// Parts that replace the critical path and the verdict if these cannot be computed.
const SUBSTITUTES: [&str; 2] = ["Where the CPU time went", "by program "];

#[test]
fn the_first_screen_has_the_same_lines_at_any_size() {
    for events in [100_000, 1_000_000, 3_000_000] {
        let file = record(events);
        let out = Command::new(env!("CARGO_BIN_EXE_tr"))
            .arg("analyze")
            .arg(&file)
            .output()
            .unwrap();
        std::fs::remove_file(&file).unwrap();
        let errors = String::from_utf8_lossy(&out.stderr);
        assert!(out.status.success() && errors.is_empty(), "{errors}");
        let text = String::from_utf8(out.stdout).unwrap();
        let has = |part: &str| text.lines().any(|line| line.starts_with(part));
        for part in PARTS {
            assert!(has(part), "{events} events, {part:?}:\n{text}");
        }
        for part in SUBSTITUTES {
            assert!(!has(part), "{events} events, {part:?}:\n{text}");
        }
    }
}
