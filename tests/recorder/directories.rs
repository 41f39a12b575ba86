//! The working directory of each program.

use std::fs;

use libtest_mimic::Failed;

use crate::support::{dump, ensure, record, scratch, Test};

pub const TESTS: &[Test] = &[("each_program_has_its_working_directory", directories)];

/// Programs below each other's directories, in one that is too deep, and at the root.
fn directories() -> Result<(), Failed> {
    let trace = scratch("directories.bin");
    let base = scratch("directories").canonicalize().or_else(|_| {
        let base = scratch("directories");
        fs::create_dir_all(&base).and_then(|()| base.canonicalize())
    })?;
    let base = base.to_str().ok_or("a path in UTF-8")?.to_owned();
    let near = format!("{base}/near");
    let deep = format!("{base}/{}", ["d"; 30].join("/"));
    for path in [&near, &deep] {
        fs::create_dir_all(path)?;
    }
    let script = format!("cd '{near}' && env -i /bin/true near; cd '{deep}' && /bin/true deep; cd / && /bin/true root; true");
    record(&trace, &["--method", "bpf"], &["sh", "-c", &script])?;
    let events = dump(&trace)?;
    let of = |word: &str| {
        let exec = events.iter().find(|event| event["argv"][1] == word);
        exec.map(|exec| exec["directory"].as_str().unwrap_or("?").to_owned())
    };
    let found = ["near", "deep", "root"].map(of);
    let expected = [near.as_str(), "?", "/"].map(|path| Some(path.to_owned()));
    ensure(found == expected, || format!("{found:?}, not {expected:?}"))
}
