//! Replays the fuzz corpora (seeds and inputs that once failed) of the analysis and of the importers of other tools'
//! files.
#![allow(clippy::expect_used)] // of our own files

#[path = "../fuzz/src/commands.rs"]
mod commands;
#[path = "../fuzz/src/importing.rs"]
mod importing;
#[path = "../fuzz/src/lying.rs"]
mod lying;
#[allow(dead_code)] // tr-format's tests replay the others
#[path = "../fuzz/src/lib.rs"]
mod targets;

use std::path::Path;

fn replay(name: &str, target: fn(&[u8]), least: usize) {
    let corpus = Path::new(env!("CARGO_MANIFEST_DIR")).join("fuzz/corpus");
    let inputs = std::fs::read_dir(corpus.join(name)).expect("the corpus");
    let mut count = 0;
    for input in inputs {
        let path = input.expect("an entry").path();
        println!("{}", path.display());
        target(&std::fs::read(&path).expect("an input"));
        count += 1;
    }
    assert!(count >= least, "{count} inputs");
}

#[test]
fn lying_contents_are_survived() {
    replay("analysis", lying::analysis, 5);
}

#[test]
fn lying_contents_are_survived_by_every_subcommand() {
    replay("commands", commands::commands, 2);
}

#[test]
fn other_tools_files_are_survived() {
    replay("imports", importing::imports, 4);
}
