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
    assert_eq!(honest.len(), zeros.len() + 8, "no writer makes a bomb");
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
