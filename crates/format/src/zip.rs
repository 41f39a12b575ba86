//! Compression of a frame's body: zstd without its magic number, its content
//! size and its checksum, all of which the frame has already.
//!
//! A *packed* body is: its length (varint), the length of its compressed form
//! (varint), the compressed form. When the two lengths are equal the body is
//! stored as it is.

use zstd::bulk::{Compressor, Decompressor};
use zstd::zstd_safe::{CParameter, DParameter, FrameFormat};

use crate::error::within;
use crate::limits;
use crate::varint::{put, Cursor};
use crate::Fault;

/// Compresses bodies, keeping its memory from one to the next.
pub struct Packer {
    zstd: Compressor<'static>,
    buffer: Vec<u8>,
}

impl std::fmt::Debug for Packer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Packer")
    }
}

impl Packer {
    /// A packer of the given zstd level.
    pub fn new(level: i32) -> std::io::Result<Packer> {
        let mut zstd = Compressor::new(level)?;
        zstd.set_parameter(CParameter::Format(FrameFormat::Magicless))?;
        zstd.set_parameter(CParameter::ContentSizeFlag(false))?;
        zstd.set_parameter(CParameter::ChecksumFlag(false))?;
        zstd.set_parameter(CParameter::DictIdFlag(false))?;
        Ok(Packer {
            zstd,
            buffer: Vec::new(),
        })
    }

    /// Appends `body`, packed.
    pub fn pack(&mut self, body: &[u8], out: &mut Vec<u8>) -> std::io::Result<()> {
        self.buffer.clear();
        self.buffer
            .reserve(zstd::zstd_safe::compress_bound(body.len()));
        self.zstd.compress_to_buffer(body, &mut self.buffer)?;
        // What a reader would take for a bomb is stored as it is.
        let free = (body.len() as u64).saturating_sub(limits::EXPANSION_FREE);
        // So is what would hardly become shorter.
        let small = self.buffer.len() + self.buffer.len() / 16 < body.len()
            && free <= (self.buffer.len() as u64).saturating_mul(limits::EXPANSION);
        let stored = match small {
            true => self.buffer.as_slice(),
            false => body,
        };
        put(out, body.len() as u64);
        put(out, stored.len() as u64);
        out.extend_from_slice(stored);
        Ok(())
    }
}

/// Decompresses bodies, keeping its memory from one to the next.
pub struct Unpacker {
    zstd: Decompressor<'static>,
    buffer: Vec<u8>,
}

impl std::fmt::Debug for Unpacker {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Unpacker")
    }
}

impl Unpacker {
    /// A new one.
    pub fn new() -> std::io::Result<Unpacker> {
        let mut zstd = Decompressor::new()?;
        zstd.set_parameter(DParameter::Format(FrameFormat::Magicless))?;
        Ok(Unpacker {
            zstd,
            buffer: Vec::new(),
        })
    }

    /// Unpacks the body at the cursor, of at most `limit` bytes.
    pub fn unpack<'a>(
        &'a mut self,
        cursor: &mut Cursor<'a>,
        limit: u64,
    ) -> Result<&'a [u8], Fault> {
        let (body, stored) = (cursor.int()?, cursor.int()?);
        within("the body's length", body, limit)?;
        within("the compressed length", stored, body)?;
        within(
            "the expansion by decompression",
            body.saturating_sub(limits::EXPANSION_FREE),
            stored.saturating_mul(limits::EXPANSION),
        )?;
        let bytes = cursor.take(stored)?;
        if stored == body {
            return Ok(bytes);
        }
        let body = usize::try_from(body).map_err(|e| Fault::Decompress(e.to_string()))?;
        self.buffer.clear();
        self.buffer.reserve(body);
        self.zstd
            .decompress_to_buffer(bytes, &mut self.buffer)
            .map_err(|e| Fault::Decompress(e.to_string()))?;
        match self.buffer.len() == body {
            true => Ok(&self.buffer),
            false => Err(Fault::Content("the body has not the length it claims")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn packed(body: &[u8]) -> Vec<u8> {
        let mut out = Vec::new();
        Packer::new(3).unwrap().pack(body, &mut out).unwrap();
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
}
