//! Tests that frames beyond the first 4 GiB of a trace file are found and read.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing)]

mod common;

use std::os::unix::fs::FileExt as _;

use common::*;
use tr_format::event::*;
use tr_format::frame::Header;
use tr_format::reader::{End, Trace};
use tr_format::sched::SchedBlock;
use tr_format::source::Source;

#[test]
fn frames_behind_four_gibibytes_are_found_and_read() {
    let items = recording(2, 100);
    let small = write(&items);
    let trace = Trace::open(Source::bytes(small.clone())).unwrap();
    let (header, len) = Header::decode(&small[16..], 0).unwrap();
    let payload = &small[16 + len..16 + len + header.payload as usize];
    let id = crc32fast::hash(payload);
    let start = 16 + len as u64 + header.payload;

    // The first 4 GiB are filled with frames of an unknown type, whose payloads are zeros: these are holes in the file
    // and take no space on the disk.
    let file = tempfile::tempfile().unwrap();
    file.write_all_at(&small[..start as usize], 0).unwrap();
    let size = 16 << 20;
    let crc = crc32fast::hash(&vec![0; size]);
    let (mut at, mut number) = (start, 1);
    while at <= 1 << 32 {
        let mut bytes = Vec::new();
        Header {
            kind: 200,
            number,
            payload: size as u64,
            crc,
            ..Header::default()
        }
        .encode(id, &mut bytes);
        file.write_all_at(&bytes, at).unwrap();
        at += (bytes.len() + size) as u64;
        number += 1;
    }
    // After these frames comes a frame with events: a copy of the first frame of CPU 0 with another number.
    let first = trace.frames()[0];
    let (mut header, len) = Header::decode(&small[first.offset as usize..], id).unwrap();
    header.number = number;
    let mut bytes = Vec::new();
    header.encode(id, &mut bytes);
    let payload = first.offset as usize + len;
    bytes.extend_from_slice(&small[payload..payload + header.payload as usize]);
    file.write_all_at(&bytes, at).unwrap();

    let large = Trace::open(Source::file(file).unwrap()).unwrap();
    assert!(large.bytes() > 1 << 32);
    assert_eq!(large.unknown().frames, number - 1);
    assert!(matches!(large.end(), End::Truncated { offset, .. } if *offset == large.bytes()));
    let [frame] = large.frames() else {
        panic!("{:?}", large.frames())
    };
    assert_eq!((frame.offset, frame.number), (at, number));
    let (mut found, mut expected) = (SchedBlock::default(), SchedBlock::default());
    large.read_sched(frame, &mut found).unwrap();
    trace.read_sched(&first, &mut expected).unwrap();
    assert_eq!(found, expected);
    assert_eq!(frame.stream, Stream::Cpu(CpuId(0)));
}
