//! Tests `tr symbolize`, which adds the names of functions to a recording that was made without them.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use libtest_mimic::Failed;
use serde_json::Value;

use crate::stacks::bound;
use crate::support::{
    compiled, ensure, int, list, record, recording, report, scratch, text, tr, Test, TR,
};

pub const TESTS: &[Test] = &[
    (LATER, later),
    (MOVED, moved),
    (DEBUG, debug_file),
    (STALE, stale_list),
    (RELATIVE, relative),
    (BYTES, bytes),
];

pub const LATER: &str = "symbolize_finds_the_functions_of_no_symbols";
pub const MOVED: &str = "symbolize_finds_a_moved_program_by_its_build_id";
pub const DEBUG: &str = "symbolize_reads_a_debug_file_that_is_the_programs";
pub const STALE: &str = "a_list_from_before_the_process_is_not_its_list";
pub const RELATIVE: &str = "short_programs_of_relative_paths_have_functions";
pub const BYTES: &str = "functions_are_found_beside_a_path_that_is_not_utf_8";

const FLAGS: &[&str] = &["-O0", "-g", "-Wl,--build-id"];

/// Compiles the test program into a directory of its own.
fn hot(name: &str) -> Result<PathBuf, Failed> {
    let directory = scratch(name);
    if directory.exists() {
        std::fs::remove_dir_all(&directory)?;
    }
    std::fs::create_dir_all(&directory)?;
    Ok(compiled("hot.c", &format!("{name}/hot"), FLAGS)?.into())
}

fn recorded(program: &Path, what: &str, options: &[&str]) -> Result<PathBuf, Failed> {
    let trace = program.with_extension("bin");
    let command = [&*program.to_string_lossy(), what];
    let out = record(&trace, &[&["--stacks=997"], options].concat(), &command)?;
    ensure(out.status.success(), || text(&out.stderr))?;
    Ok(trace)
}

/// Runs `tr symbolize`, and returns its messages.
fn symbolize(trace: &Path, options: &[&str]) -> Result<String, Failed> {
    let mut tr = Command::new(TR);
    let out = tr.arg("symbolize").arg(trace).args(options).output()?;
    let said = text(&out.stderr);
    ensure(out.status.success(), || said.clone())?;
    Ok(said)
}

/// The number of samples in which this function is the innermost one; `None` if it has no row.
fn own(trace: &Path, function: &str) -> Result<Option<u64>, Failed> {
    let flame = report(trace, "flame", &[])?;
    let rows = list(&flame, "rows");
    let mut mine = rows.iter().filter(|row| row["function"] == function);
    Ok(mine.next().map(|row| int(row, "self_samples")))
}

fn later() -> Result<(), Failed> {
    let trace = recorded(&hot("symbolize-later")?, "kernel", &["--no-symbols"])?;
    let flame = report(&trace, "flame", &[])?;
    // The files of the samples are known, but not their functions.
    let known = |row: &&Value| !row["function"].as_str().unwrap_or("[").starts_with('[');
    let rows = list(&flame, "rows");
    ensure(
        rows.iter().find(known).is_none() && rows.iter().any(|row| row["binary"] == "hot"),
        || flame.to_string(),
    )?;
    let before = tr(&["dump", "--format", "ndjson"], &trace)?;
    symbolize(&trace, &[])?;
    let after = report(&trace, "flame", &[])?;
    let rows = list(&after, "rows");
    let of = |name: &str| {
        let mut mine = rows.iter().filter(|row| row["function"] == name);
        mine.next().map_or(0, |row| int(row, "total_ns"))
    };
    let all = int(&after, "ns");
    ensure(
        int(&flame, "ns") == all && of("main") > all / 10 * 9,
        || after.to_string(),
    )?;
    // The machine was not restarted since the recording, so the kernel's functions can be named as well.
    let kernel = rows
        .iter()
        .filter(known)
        .filter(|row| row["binary"] == "kernel");
    ensure(kernel.count() > 0, || after.to_string())?;
    // Only names have been added, and a second `tr symbolize` adds nothing.
    let events = tr(&["dump", "--format", "ndjson"], &trace)?;
    let lines = |dump: &[u8]| {
        text(dump)
            .lines()
            .filter(|line| !line.contains("\"symbol\""))
            .count()
    };
    let (old, new) = (lines(&before), lines(&events));
    ensure(new >= old && new < old + 100, || format!("{old}, {new}"))?;
    let bytes = std::fs::read(&trace)?;
    let said = symbolize(&trace, &[])?;
    ensure(said.contains("named 0 of "), || said)?;
    ensure(std::fs::read(&trace)? == bytes, || "another file".into())?;
    tr(&["verify"], &trace).map(|_| ())
}

/// The processes end before the recorder can read their mappings, so only the events of their execs name the file.
fn relative() -> Result<(), Failed> {
    let program = hot("symbolize-relative")?;
    let directory = program.with_file_name("");
    let script = "for i in 1 2 3 4 5 6 7 8 9 10; do ./hot brief-three; done";
    let trace = program.with_extension("bin");
    finds_three(&trace, script, |tr| tr.current_dir(&directory))
}

/// Checks that a recording of the script has the name of the function `three`, both if names are looked up while
/// recording and if they are looked up later by `tr symbolize`.
fn finds_three(
    trace: &Path,
    script: &str,
    set: impl Fn(&mut Command) -> &mut Command,
) -> Result<(), Failed> {
    for options in [&["--stacks=997"][..], &["--stacks=997", "--no-symbols"]] {
        let mut tr = recording(trace, options, &["sh", "-c", script]);
        let out = set(&mut tr).output()?;
        ensure(out.status.success(), || text(&out.stderr))?;
        if options.contains(&"--no-symbols") {
            ensure(own(trace, "three")?.is_none(), || text(&out.stderr))?;
            symbolize(trace, &[])?;
        }
        ensure(own(trace, "three")?.is_some(), || text(&out.stderr))?;
    }
    Ok(())
}

/// A file whose path is not UTF-8 is searched for functions, too, and does not disturb the search in other files.
fn bytes() -> Result<(), Failed> {
    let program = hot("symbolize-bytes")?;
    let directory = program.with_file_name(OsStr::from_bytes(b"\xff\xfe"));
    std::fs::create_dir_all(&directory)?;
    let moved = directory.join("hot");
    std::fs::rename(&program, &moved)?;
    let trace = program.with_extension("bin");
    let script = "for i in 1 2 3 4 5 6 7 8 9 10; do \"$0\" brief-three; done";
    finds_three(&trace, script, |tr| tr.arg(&moved))
}

fn moved() -> Result<(), Failed> {
    let program = hot("symbolize-moved")?;
    let trace = recorded(&program, "user", &["--no-symbols"])?;
    let directory = program.with_file_name("a/b");
    std::fs::create_dir_all(&directory)?;
    std::fs::rename(&program, directory.join("renamed"))?;
    // Another program now has the old path. Its build id differs, so it must not be used.
    std::fs::copy("/bin/true", &program)?;
    let out = program.with_file_name("named.bin");
    let said = symbolize(&trace, &["-o", &out.to_string_lossy()])?;
    ensure(said.contains("tr: not found: build id "), || said.clone())?;
    ensure(own(&out, "three")?.is_none(), || said)?;
    let directory = program.with_file_name("");
    symbolize(&trace, &["--dir", &directory.to_string_lossy()])?;
    let (three, one) = (own(&trace, "three")?, own(&trace, "one")?);
    let both = (three.unwrap_or(0) + one.unwrap_or(1)) as f64;
    let share = three.unwrap_or(0) as f64 / both;
    ensure((share - 0.75).abs() < bound(0.75, both), || {
        format!("{three:?} {one:?}")
    })
}

fn objcopy(args: &[&str]) -> Result<(), Failed> {
    let out = Command::new("objcopy").args(args).output()?;
    ensure(out.status.success(), || text(&out.stderr))
}

/// The program's file has no symbols itself; the symbols are in a separate debug file.
fn debug_file() -> Result<(), Failed> {
    let program = hot("symbolize-debug")?;
    let debug = program.with_extension("debug");
    let (file, debug_file) = (program.to_string_lossy(), debug.to_string_lossy());
    objcopy(&["--only-keep-debug", &file, &debug_file])?;
    let link = format!("--add-gnu-debuglink={debug_file}");
    objcopy(&["--strip-all", &link, &file])?;
    let trace = recorded(&program, "user", &["--no-symbols"])?;
    // The program has a link to its debug file, with a checksum. A debug file with another checksum must not be used.
    let truth = std::fs::read(&debug)?;
    let lie = truth.iter().rev().copied().collect::<Vec<u8>>();
    std::fs::write(&debug, [&truth[..64], &lie[64..]].concat())?;
    let named = program.with_file_name("named.bin");
    let options = ["-o", &named.to_string_lossy()];
    symbolize(&trace, &options)?;
    let lied = own(&named, "three")?;
    ensure(lied.is_none(), || format!("{lied:?}"))?;
    std::fs::write(&debug, truth)?;
    symbolize(&trace, &[])?;
    let (three, one) = (own(&trace, "three")?, own(&trace, "one")?);
    ensure(three > one && one.is_some(), || {
        format!("{three:?} {one:?}")
    })?;
    // The source lines of the functions are known as well.
    let events = text(&tr(&["dump", "--format", "ndjson"], &trace)?);
    ensure(events.contains("hot.c\""), || "no source file".to_owned())
}

/// A file of functions (/tmp/perf-PID.map) that an earlier process with the same pid has written must not be used.
fn stale_list() -> Result<(), Failed> {
    // The script runs its own machine code, an endless loop in memory that belongs to no file.
    let script = "import ctypes, mmap, os, signal
code = mmap.mmap(-1, 4096, prot=mmap.PROT_READ | mmap.PROT_WRITE | mmap.PROT_EXEC)
code.write(b'\\xeb\\xfe')
at = ctypes.addressof(ctypes.c_char.from_buffer(code))
path = f'/tmp/perf-{os.getpid()}.map'
with open(path, 'w') as file: file.write(f'{at:x} 2 spins\\n')
if os.environ['STALE'] == '1': os.utime(path, (1e9, 1e9))
signal.setitimer(signal.ITIMER_REAL, 0.5)
ctypes.CFUNCTYPE(None)(at)()";
    for (stale, known) in [("1", false), ("0", true)] {
        let trace = scratch(&format!("stale-{stale}.bin"));
        let shell = format!("STALE={stale} python3 -c \"$0\" & wait $!; echo $!");
        let out = record(&trace, &["--stacks=997"], &["sh", "-c", &shell, script])?;
        let list = format!("/tmp/perf-{}.map", text(&out.stdout).trim());
        let _ = std::fs::remove_file(list);
        let spins = own(&trace, "spins")?;
        ensure(spins.is_some() == known, || {
            format!("{stale}: {spins:?}: {}", text(&out.stderr))
        })?;
    }
    Ok(())
}
