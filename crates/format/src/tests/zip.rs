//! Unit tests of `zip`.

use super::*;

fn packed(body: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    Packer::new().unwrap().pack(&[body], 3, &mut out).unwrap();
    out
}

#[test]
fn bodies_come_back() {
    for body in [&b""[..], b"x", &[7; 100_000], b"abcabcabcabc"] {
        let out = packed(body);
        let mut unpacker = Unpacker::new().unwrap();
        let mut cursor = Cursor::new(&out);
        assert_eq!(unpacker.unpack(&mut cursor, 1 << 20).unwrap(), body);
    }
}

#[test]
fn a_bomb_is_refused_before_memory_is_taken() {
    let zeros = vec![0; 30 << 20];
    let honest = packed(&zeros);
    assert!(
        honest.len() > zeros.len() / 256 - 256,
        "no writer makes a bomb"
    );
    let mut bomb = Vec::new();
    put(&mut bomb, zeros.len() as u64);
    put(&mut bomb, 1000);
    bomb.extend_from_slice(&[0; 1000]);
    let mut unpacker = Unpacker::new().unwrap();
    let refused = unpacker.unpack(&mut Cursor::new(&bomb), 32 << 20).err();
    assert!(matches!(refused, Some(Fault::Limit { .. })), "{refused:?}");
    assert_eq!(unpacker.buffer.capacity(), 0);
}

#[test]
fn a_body_of_another_length_is_refused() {
    let body = [9u8; 1000];
    for claimed in [999u64, 1001] {
        let out = packed(&body);
        let mut cursor = Cursor::new(&out);
        cursor.int().unwrap();
        let mut forged = Vec::new();
        put(&mut forged, claimed);
        forged.extend_from_slice(cursor.rest());
        let mut unpacker = Unpacker::new().unwrap();
        assert!(unpacker.unpack(&mut Cursor::new(&forged), 1 << 20).is_err());
    }
}

/// Tests bodies that consist of many equal command lines, each of 14 kB. The longer bodies would expand by more than a
/// reader allows, so the packer pads them.
#[test]
fn a_body_that_packs_too_well_is_padded() {
    let line: Vec<u8> = (0..14_000u32).map(|at| (at * at / 97) as u8).collect();
    for lines in [20, 300, 2000] {
        let body = line.repeat(lines);
        let mut packed = Vec::new();
        let mut packer = Packer::new().unwrap();
        packer.pack(&[&body], LEVEL, &mut packed).unwrap();
        assert!(
            packed.len() < 14_100 + lines * 60,
            "{lines}: {}",
            packed.len()
        );
        let mut unpacker = Unpacker::new().unwrap();
        let mut cursor = Cursor::new(&packed);
        let unpacked = unpacker.unpack(&mut cursor, u64::MAX).unwrap();
        assert!(unpacked == body, "{lines}");
    }
}
