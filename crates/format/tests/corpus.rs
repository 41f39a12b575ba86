//! Runs the fuzz targets on all inputs of the corpus: the seeds, and the inputs that once made a target fail.

#![allow(clippy::expect_used, clippy::indexing_slicing)]

#[path = "../../../fuzz/src/lib.rs"]
mod targets;

use std::path::Path;

#[test]
fn the_corpus_is_survived() {
    let corpus = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/corpus");
    type Target = fn(&[u8]);
    let targets: [(&str, Target); 7] = [
        ("header", targets::header),
        ("sched", targets::sched),
        ("life", targets::life),
        ("metadata", targets::metadata),
        ("file", targets::file),
        ("frames", targets::frames),
        ("identity", targets::identity),
    ];
    for (name, target) in targets {
        let inputs = std::fs::read_dir(corpus.join(name)).expect(name);
        let mut count = 0;
        for input in inputs {
            let path = input.expect(name).path();
            println!("{}", path.display());
            target(&std::fs::read(&path).expect(name));
            count += 1;
        }
        assert!(count > 2, "{name} has {count} inputs");
    }
}

/// Appends a number in the form in which the fuzz targets read numbers from their input.
fn number(out: &mut Vec<u8>, value: u64) {
    if value <= 0xdf {
        out.push(value as u8);
    } else {
        out.push(0xf8 | 7);
        out.extend_from_slice(&value.to_be_bytes());
    }
}

fn varint(from: &mut &[u8]) -> usize {
    let (mut value, mut shift) = (0, 0);
    while let Some((byte, rest)) = from.split_first() {
        *from = rest;
        value |= usize::from(byte & 0x7f) << shift;
        shift += 7;
        if *byte < 0x80 {
            break;
        }
    }
    value
}

/// Splits the payload of a frame into its body, which is decompressed, and the bytes after the body.
fn unpack(mut payload: &[u8]) -> (Vec<u8>, &[u8]) {
    let (size, stored) = (varint(&mut payload), varint(&mut payload));
    let (body, rest) = payload.split_at(stored);
    if size == stored {
        return (body.to_vec(), rest);
    }
    let body = zstd::bulk::decompress(body, size).expect("a body");
    (body, rest)
}

/// Makes the seeds of the fuzz corpus from the fixtures (recorded traces).
#[test]
#[ignore = "cargo test -p tr-trace-format --test corpus seeds -- --ignored"]
fn seeds() {
    use tr_format::frame::{kind, Header};
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let put = |target: &str, name: &str, bytes: &[u8]| {
        let dir = root.join("fuzz/corpus").join(target);
        std::fs::create_dir_all(&dir).expect("a directory");
        std::fs::write(dir.join(name), bytes).expect("a seed");
    };
    for name in [
        "format/3.0",
        "traces/vfork_exec",
        "traces/leader_first",
        "traces/build",
    ] {
        let path = root.join("fixtures").join(format!("{name}.bin"));
        let file = std::fs::read(path).expect(name);
        let short = name.rsplit('/').next().expect("a name");
        // Only one frame, with many scheduling events, is used from the large fixture.
        let large = file.len() > 100_000;
        if !large {
            put("file", short, &file);
            put("file", &format!("{short}-cut"), &file[..file.len() / 2]);
        }
        let mut busy = 0;
        let (mut at, mut id) = (16, 0);
        while let Ok((header, len)) =
            Header::decode(&file[at..], id).or(Header::decode(&file[at..], 0))
        {
            let payload = &file[at + len..at + len + header.payload as usize];
            at += len + payload.len();
            let name = format!("{short}-{}", header.number);
            let mut seed = Vec::new();
            header.encode(7, &mut seed);
            if header.number < 9 && !large {
                put("header", &name, &seed);
            }
            seed.clear();
            number(&mut seed, header.events);
            number(&mut seed, 0);
            number(&mut seed, header.max - header.min);
            match header.kind {
                kind::METADATA | kind::SUMMARY => {
                    if header.kind == kind::METADATA {
                        id = crc32fast::hash(payload);
                    }
                    if !large {
                        put("metadata", &name, &unpack(payload).0);
                    }
                }
                kind::SCHED if large && (busy > 0 || header.events < 4096) => {}
                kind::LIFE if large => {}
                kind::SCHED | kind::LIFE if large || header.number < 12 => {
                    busy += usize::from(large);
                    let (body, low) = unpack(payload);
                    number(&mut seed, low.len() as u64);
                    seed.extend_from_slice(low);
                    seed.extend_from_slice(&body);
                    let target = if header.kind == kind::SCHED {
                        "sched"
                    } else {
                        "life"
                    };
                    put(target, &name, &seed);
                }
                _ => {}
            }
        }
    }
    let mut state = 1u64;
    for at in 0..6 {
        let bytes: Vec<u8> = (0..300 << at)
            .map(|_| {
                state = state.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(1);
                // Three quarters of the bytes are below 32, so that most numbers that the targets read from them are
                // small.
                let byte = (state >> 56) as u8;
                if state >> 33 & 3 == 0 {
                    byte
                } else {
                    byte & 0x1f
                }
            })
            .collect();
        put("identity", &at.to_string(), &bytes);
        put("frames", &at.to_string(), &bytes[..200.min(bytes.len())]);
    }
}
