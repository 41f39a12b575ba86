//! Replays the fuzz corpus of the analysis: seeds and former failures.
#![allow(clippy::expect_used)] // of our own files

#[path = "../fuzz/src/lying.rs"]
mod lying;
#[allow(dead_code)] // tr-format's tests replay the others
#[path = "../fuzz/src/lib.rs"]
mod targets;

use std::path::Path;

#[test]
fn lying_contents_are_survived() {
    let corpus = Path::new(env!("CARGO_MANIFEST_DIR")).join("fuzz/corpus/analysis");
    let mut count = 0;
    for input in std::fs::read_dir(corpus).expect("the corpus") {
        let path = input.expect("an entry").path();
        println!("{}", path.display());
        lying::analysis(&std::fs::read(&path).expect("an input"));
        count += 1;
    }
    assert!(count > 4, "{count} inputs");
}
