//! Unit tests of `queue`.

use super::*;
use std::io::Read;

#[test]
fn a_stalled_output_neither_blocks_nor_loses_bytes() {
    let (mut reader, writer) = std::io::pipe().unwrap();
    let mut queue = Queue::new(writer).unwrap();
    let bytes: Vec<u8> = (0..1_000_000u32).map(|n| (n % 251) as u8).collect();
    // The queue takes far more bytes than a pipe has room for, while nobody reads from the pipe.
    for part in bytes.chunks(1000) {
        queue.write_all(part).unwrap();
    }
    queue.flush().unwrap();
    let end = std::thread::spawn(move || {
        queue.drain().unwrap();
    });
    let mut read = Vec::new();
    reader.read_to_end(&mut read).unwrap();
    end.join().unwrap();
    assert!(read == bytes);
}

#[test]
fn after_an_error_every_write_fails() {
    let (reader, writer) = std::io::pipe().unwrap();
    let mut queue = Queue::new(writer).unwrap();
    drop(reader);
    queue.write_all(b"lost").unwrap();
    let error = queue.drain().unwrap_err();
    assert_eq!(error.kind(), io::ErrorKind::BrokenPipe);
    assert!(queue.flush().is_err());
}

#[test]
fn a_full_queue_waits() {
    let (mut reader, writer) = std::io::pipe().unwrap();
    let mut queue = Queue::new(writer).unwrap();
    let slow = std::thread::spawn(move || {
        let mut count = 0;
        let mut some = vec![0; 1 << 20];
        while let Ok(n @ 1..) = reader.read(&mut some) {
            count += n;
        }
        count
    });
    for _ in 0..40 {
        queue.write_all(&[7; 1 << 20]).unwrap();
    }
    drop(queue);
    assert_eq!(slow.join().unwrap(), 40 << 20);
}

#[test]
fn a_watch_that_writes_keeps_the_order() {
    let path = tempfile::NamedTempFile::new().unwrap();
    let mut queue = Queue::new(path.reopen().unwrap()).unwrap();
    let watch = queue.watch();
    let mut all = Vec::new();
    for n in 0..2000u32 {
        let bytes = n.to_le_bytes();
        queue.write_all(&bytes).unwrap();
        queue.flush().unwrap();
        watch.write();
        all.extend_from_slice(&bytes);
        if n % 100 == 0 {
            watch.drained(None).unwrap();
            assert!(std::fs::read(path.path()).unwrap() == all, "{n}");
        }
    }
    drop(queue);
    assert!(std::fs::read(path.path()).unwrap() == all);
}
