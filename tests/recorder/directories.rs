//! Tests the recorded working directory of each program.

use std::fs;
use std::path::Path;
use std::process::Command;

use libtest_mimic::Failed;
use serde_json::Value;

use crate::support::{dump, ensure, record, scratch, Test, TR};

pub const TESTS: &[Test] = &[
    ("each_program_has_its_working_directory", directories),
    (
        "compile_commands_are_those_that_built_the_objects",
        compile_commands,
    ),
];

/// Records programs in a directory near the recorder's, in one that is too deep to be recorded, and at the root.
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

/// Exports compile commands of a build with a wrapper, two directories, two sources in one call, and a call that fails.
/// Each exported command, run again in its directory, makes its output.
fn compile_commands() -> Result<(), Failed> {
    let place = scratch("compile-commands");
    fs::create_dir_all(place.join("sub"))?;
    let place = place.canonicalize()?;
    for name in ["one.c", "two.c", "sub/three.c"] {
        fs::write(place.join(name), "int value;\n")?;
    }
    fs::write(place.join("bad.c"), "no C\n")?;
    let wrapper = place.join("wrapper");
    fs::write(&wrapper, "#!/bin/sh\nexec \"$@\"\n")?;
    let trace = scratch("compile-commands.bin");
    let script = format!(
        "cd '{}' && cc -c one.c two.c && cd sub && env -i PATH=\"$PATH\" sh ../wrapper cc -O1 -c -o ../three.o three.c; \
         cc -c ../bad.c 2>&1; true",
        place.display()
    );
    record(&trace, &["--method", "bpf"], &["sh", "-c", &script])?;
    let out = place.join("compile_commands.json");
    let mut export = Command::new(TR);
    export.arg("export").arg(&trace).arg("-o").arg(&out);
    let done = export.output()?;
    let said = String::from_utf8_lossy(&done.stderr).into_owned();
    ensure(said.contains("3 entries; 1 source is left out"), || said)?;
    let entries: Vec<Value> = serde_json::from_slice(&fs::read(&out)?)?;
    let base = place.to_str().ok_or("a path in UTF-8")?;
    let text = |entry: &Value, key: &str| entry[key].as_str().unwrap_or("?").replace(base, "");
    let found: Vec<[String; 3]> = entries
        .iter()
        .map(|entry| ["directory", "file", "output"].map(|key| text(entry, key)))
        .collect();
    let expected = [
        ["", "/one.c", "one.o"],
        ["", "/two.c", "two.o"],
        ["/sub", "/sub/three.c", "../three.o"],
    ];
    ensure(found == expected, || format!("{found:?}"))?;
    for entry in &entries {
        let directory = Path::new(entry["directory"].as_str().unwrap_or_default());
        let object = directory.join(entry["output"].as_str().unwrap_or_default());
        fs::remove_file(&object)?;
        let words = entry["arguments"].as_array().into_iter().flatten();
        let words: Vec<&str> = words.filter_map(Value::as_str).collect();
        let (compiler, arguments) = words.split_first().ok_or("no arguments")?;
        let mut again = Command::new(compiler);
        let done = again.args(arguments).current_dir(directory).status()?;
        ensure(done.success() && object.exists(), || format!("{entry}"))?;
    }
    Ok(())
}
