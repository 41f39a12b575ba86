//! Files whose checksums are right and whose contents lie.
#![allow(clippy::unwrap_used, clippy::indexing_slicing)] // in a test

use std::io::Write;
use std::path::Path;
use std::process::{Command, Output, Stdio};
use std::time::{Duration, Instant};

use tr_format::frame::{self, kind, Header};

const TR: &str = env!("CARGO_BIN_EXE_tr");

fn demo() -> Vec<u8> {
    let demo = Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures/traces/demo.bin");
    std::fs::read(demo).unwrap()
}

/// The frames of a file: header, payload; and the id in their checksums.
fn frames(file: &[u8]) -> (u32, Vec<(Header, Vec<u8>)>) {
    let (mut at, mut id, mut frames) =
        (usize::try_from(frame::FILE_HEADER).unwrap(), 0, Vec::new());
    let end = file.len() - usize::try_from(frame::TRAILER).unwrap();
    while at < end {
        let (header, length) = Header::decode(&file[at..], id).unwrap();
        let payload = at + length..at + length + usize::try_from(header.payload).unwrap();
        at = payload.end;
        if id == 0 {
            id = header.crc;
        }
        frames.push((header, file[payload].to_vec()));
    }
    (id, frames)
}

/// A file of frames, whose trailer names the index.
fn file(original: &[u8], id: u32, frames: &[(Header, Vec<u8>)]) -> Vec<u8> {
    let mut out = original[..usize::try_from(frame::FILE_HEADER).unwrap()].to_vec();
    let mut index = 0;
    for (at, (header, payload)) in frames.iter().enumerate() {
        if header.kind == kind::INDEX {
            index = out.len() as u64;
        }
        header.encode(if at == 0 { 0 } else { id }, &mut out);
        out.extend_from_slice(payload);
    }
    // The trailer: the index's offset, a checksum of it and of the id, a mark.
    let at = index.to_le_bytes();
    let mut sum = crc32fast::Hasher::new();
    sum.update(&id.to_le_bytes());
    sum.update(&at);
    out.extend_from_slice(&at);
    out.extend_from_slice(&sum.finalize().to_le_bytes());
    out.extend_from_slice(&frame::TRAILER_MAGIC);
    out
}

fn run(args: &[&str], input: &[u8]) -> Output {
    let mut tr = Command::new(TR)
        .args(args)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let _ = tr.stdin.take().unwrap().write_all(input);
    tr.wait_with_output().unwrap()
}

#[test]
fn verify_holds_summary_and_index_against_the_frames() {
    let original = demo();
    let (id, frames) = frames(&original);
    assert_eq!(file(&original, id, &frames), original);
    assert_eq!(run(&["verify", "-"], &original).status.code(), Some(0));
    // One frame removed, all later ones renumbered.
    let of_cpu = |(header, _): &(Header, Vec<u8>)| header.kind == kind::SCHED;
    let removed = frames.iter().position(of_cpu).unwrap();
    let mut fewer = frames.clone();
    let (gone, _) = fewer.remove(removed);
    for (header, _) in &mut fewer[removed..] {
        header.number -= 1;
        if (header.kind, header.stream) == (gone.kind, gone.stream) {
            header.seq -= 1;
        }
    }
    let out = run(&["verify", "-"], &file(&original, id, &fewer));
    let said = String::from_utf8(out.stdout).unwrap();
    assert_eq!(out.status.code(), Some(1), "{said}");
    assert!(said.contains("the summary counts "), "{said}");
    assert!(said.contains(", the frames hold "), "{said}");
    assert!(
        said.contains("the index disagrees with the frames from frame "),
        "{said}"
    );
}

#[test]
fn an_endless_pipe_that_is_no_trace_is_refused_at_once() {
    let begun = Instant::now();
    for command in ["info", "analyze", "verify", "dump"] {
        let zero = std::fs::File::open("/dev/zero").unwrap();
        let out = Command::new(TR)
            .args([command, "-"])
            .stdin(zero)
            .output()
            .unwrap();
        assert_eq!(out.status.code(), Some(2), "{command}");
        let said = String::from_utf8(out.stderr).unwrap();
        assert!(said.contains("not a trace"), "{command}: {said}");
    }
    assert!(begun.elapsed() < Duration::from_secs(20));
}
