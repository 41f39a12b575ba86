//! The search for functions reads files of strangers. The search must end soon, with or without results, and no text in
//! a file may act as a command.
#![cfg(feature = "symbols")]
#![allow(clippy::unwrap_used, clippy::expect_used)]

#[path = "common/bound.rs"]
mod bound;

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use serde_json::{json, Value};

const BUILD_ID: &str = "0102030405060708090a0b0c0d0e0f1011121314";

fn scratch(name: &str) -> PathBuf {
    let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join("symbols");
    std::fs::create_dir_all(&path).unwrap();
    path.join(name)
}

/// Assembles a program with the build id [`BUILD_ID`]; `None` if there is no compiler.
fn program(name: &str, assembly: &str) -> Option<Vec<u8>> {
    let (source, path) = (scratch(&format!("{name}.s")), scratch(name));
    std::fs::write(&source, assembly).unwrap();
    let mut gcc = Command::new("gcc");
    gcc.args(["-nostdlib", "-static", "-o"]).arg(&path);
    gcc.arg(format!("-Wl,--build-id=0x{BUILD_ID}")).arg(&source);
    let built = gcc.output().ok()?;
    assert!(built.status.success(), "{built:?}");
    Some(std::fs::read(path).unwrap())
}

/// The assembly of a function of 4,096 bytes that begins where the text section begins.
fn function(name: &str) -> String {
    format!(
        ".text\n.globl _start\n_start:\n.type \"{name}\", %function\n\"{name}\":\n\
         .fill 4096, 1, 0x90\n.size \"{name}\", 4096\n"
    )
}

/// Searches the functions at each 64th byte in these files. Returns the exit status of the search process, and its
/// answers.
fn search(paths: &[&Path]) -> (ExitStatus, Vec<Value>) {
    let build_id: Vec<u8> = (1..=0x14).collect();
    let frames: Vec<(u32, u64)> = (0..256)
        .map(|number| (number, u64::from(number) * 64))
        .collect();
    // serde writes an OsStr as its bytes.
    let paths: Vec<_> = paths.iter().map(|path| path.as_os_str()).collect();
    let request = json!({
        "paths": paths,
        "modules": [{ "number": 7, "build_id": build_id, "frames": frames }],
        "kernel": [],
        "processes": [],
        "lifetime": { "begin": 0, "end": u64::MAX },
        "paths_only": false,
    });
    let begun = Instant::now();
    let mut server = Command::new(env!("CARGO_BIN_EXE_tr"))
        .arg("symbol-server")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let _bound = bound::bound(&server);
    let mut stdin = server.stdin.take().unwrap();
    stdin.write_all(request.to_string().as_bytes()).unwrap();
    drop(stdin);
    let out = server.wait_with_output().unwrap();
    let time = begun.elapsed();
    assert!(time < Duration::from_secs(30), "{paths:?}: {time:?}");
    let lines = out.stdout.split(|byte| *byte == b'\n');
    let lines = lines.filter(|line| !line.is_empty());
    // If the search process has ended early, its last line may be incomplete.
    let answers = lines.map_while(|line| serde_json::from_slice(line).ok());
    (out.status, answers.collect())
}

/// The names of functions in the answers.
fn names(answers: &[Value]) -> Vec<&str> {
    let frames = answers.iter().filter_map(|answer| answer.get("Frame"));
    let functions = frames.filter_map(|frame| frame.get(1)?.as_array());
    let names = functions
        .flatten()
        .filter_map(|function| function.get("name")?.as_str());
    names.collect()
}

#[test]
fn names_of_functions_are_cut_and_otherwise_kept() {
    let long = "x".repeat(100_000);
    for (name, kept) in [
        ("plain", "plain"),
        ("<script>alert(1)</script>", "<script>alert(1)</script>"),
        (&*long, &long[..1024]),
    ] {
        let Some(_) = program("named", &function(name)) else {
            return;
        };
        let (status, answers) = search(&[&scratch("named")]);
        let names = names(&answers);
        assert!(status.success() && !names.is_empty(), "{name}");
        assert!(names.iter().all(|name| *name == kept), "{name}: {names:?}");
    }
}

#[test]
fn no_file_stops_the_search() {
    let Some(bytes) = program("good", &function("good")) else {
        return;
    };
    let huge = scratch("huge");
    std::fs::write(&huge, &bytes).unwrap();
    let file = std::fs::File::options().write(true).open(&huge).unwrap();
    // The file is sparse. If the file system refuses such a size, no file of this size can exist here, so the test is
    // skipped.
    if file.set_len(1 << 40).is_err() {
        return;
    }
    let fifo = scratch("fifo");
    let _ = std::fs::remove_file(&fifo);
    nix::unistd::mkfifo(&fifo, nix::sys::stat::Mode::S_IRWXU).unwrap();
    let loop_ = scratch("loop");
    let _ = std::fs::remove_file(&loop_);
    std::os::unix::fs::symlink(&loop_, &loop_).unwrap();
    let empty = scratch("empty");
    std::fs::write(&empty, "").unwrap();
    let others = [
        Path::new("/dev/zero"),
        Path::new("/proc/self/mem"),
        Path::new("/"),
    ];
    let others = [&others[..], &[&fifo, &loop_, &empty]].concat();
    let (status, answers) = search(&[&others[..], &[&scratch("good")]].concat());
    assert!(status.success() && names(&answers).contains(&"good"));
    // The file is larger than the memory that the search may map, so this file is left out. Other files are still
    // searched.
    let (status, answers) = search(&[&huge]);
    assert!(status.success() && names(&answers).is_empty());
    let (status, answers) = search(&[&huge, &scratch("good")]);
    assert!(status.success() && names(&answers).contains(&"good"));
}

/// Files with sections and symbols that lie outside of the file or refer to each other in circles, and files that are
/// cut, must not give a wrong name.
#[test]
fn damaged_files_end_the_search_soon() {
    let Some(bytes) = program("whole", &function("whole")) else {
        return;
    };
    let path = scratch("damaged");
    // The shifts are those of the generator xorshift64 (Marsaglia 2003).
    let mut seed = 0x9e37_79b9_7f4a_7c15u64;
    let mut random = |below: usize| {
        seed ^= seed << 13;
        seed ^= seed >> 7;
        seed ^= seed << 17;
        (seed % below.max(1) as u64) as usize
    };
    for round in 0..150 {
        let mut damaged = bytes.clone();
        match round % 3 {
            // Damages the ELF header and the program headers.
            0 => {
                for _ in 0..2 {
                    damaged[16 + random(200)] = random(256) as u8;
                }
            }
            // Damages the section headers, which are at the end of the file.
            1 => {
                for _ in 0..4 {
                    let at = damaged.len() - 1 - random(600);
                    damaged[at] = random(256) as u8;
                }
            }
            _ => damaged.truncate(random(bytes.len())),
        }
        std::fs::write(&path, &damaged).unwrap();
        let (_, answers) = search(&[&path]);
        for name in names(&answers) {
            assert!(name.len() <= 1024, "round {round}");
        }
    }
}
