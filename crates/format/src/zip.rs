//! Compresses the body of a frame as one standard zstd frame without content size and checksum, because the
//! frame of the trace already has them.
//!
//! A *packed* body is: its length (varint), the length of its compressed form (varint), the compressed form.
//! When the two lengths are equal the body is stored as it is.

use std::cell::RefCell;

use zstd::bulk::Decompressor;
use zstd::zstd_safe::{self, CCtx, CParameter, InBuffer, OutBuffer, ResetDirective};

use crate::error::within;
use crate::limits;
use crate::varint::{put, Cursor};
use crate::Fault;

/// The level of zstd compression for the bodies of frames. With level 12, the lifecycle events of three builds would be
/// 0.6 % smaller, but the compression would take 3 to 6 times the CPU time. This CPU time is spent on the machine that
/// is recorded.
pub const LEVEL: i32 = 6;

/// The header of an empty block in a zstd frame: a raw block with the length 0.
const EMPTY_BLOCK: [u8; 3] = [0, 0, 0];
/// The header of an empty block that is the last block of its zstd frame.
const LAST_BLOCK: [u8; 3] = [1, 0, 0];

/// Compresses the bodies of a trace's frames by zstd, and reuses its buffers.
pub struct Packer {
    zstd: CCtx<'static>,
    buffer: Vec<u8>,
}

impl std::fmt::Debug for Packer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Packer")
    }
}

fn failed(code: usize) -> std::io::Error {
    std::io::Error::other(zstd_safe::get_error_name(code))
}

impl Packer {
    pub fn new() -> std::io::Result<Packer> {
        let mut zstd = CCtx::create();
        for parameter in [
            CParameter::ContentSizeFlag(false),
            CParameter::ChecksumFlag(false),
            CParameter::DictIdFlag(false),
        ] {
            zstd.set_parameter(parameter).map_err(failed)?;
        }
        Ok(Packer {
            zstd,
            buffer: Vec::new(),
        })
    }

    /// Compresses the parts of a frame's body and appends the result to `out`. Each part ends a block of the zstd
    /// frame. So the next part, whose statistics differ, gets Huffman tables of its own.
    pub fn pack(&mut self, parts: &[&[u8]], level: i32, out: &mut Vec<u8>) -> std::io::Result<()> {
        let len = parts.iter().map(|part| part.len()).sum();
        self.compress(parts, len, level).map_err(failed)?;
        // Readers refuse a body that is longer than its compressed form by more than the factor EXPANSION, so a shorter
        // compressed form is padded.
        let limited = (len as u64).saturating_sub(limits::EXPANSION_FREE);
        let is_short = self.pad(limited.div_ceil(limits::EXPANSION) as usize);
        let stored = self.buffer.len();
        put(out, len as u64);
        if is_short || stored + stored / 16 >= len {
            put(out, len as u64);
            parts.iter().for_each(|part| out.extend_from_slice(part));
        } else {
            put(out, stored as u64);
            out.extend_from_slice(&self.buffer);
        }
        Ok(())
    }

    /// Pads the compressed form of a frame's body to `least` bytes with empty zstd blocks. Returns whether the padded
    /// form is still shorter than `least`.
    fn pad(&mut self, least: usize) -> bool {
        let missing = least.saturating_sub(self.buffer.len());
        // All data was flushed before the end, so the zstd frame ends with an empty block. More empty blocks are
        // inserted before that block.
        let end = self.buffer.len().saturating_sub(EMPTY_BLOCK.len());
        if missing > 0 && self.buffer.get(end..) == Some(&LAST_BLOCK[..]) {
            self.buffer.truncate(end);
            for _ in 0..missing.div_ceil(EMPTY_BLOCK.len()) {
                self.buffer.extend_from_slice(&EMPTY_BLOCK);
            }
            self.buffer.extend_from_slice(&LAST_BLOCK);
        }
        self.buffer.len() < least
    }

    fn compress(&mut self, parts: &[&[u8]], len: usize, level: i32) -> Result<(), usize> {
        self.buffer.clear();
        // Each part ends a zstd block, which `compress_bound` does not expect, so room is added for the headers of
        // these blocks (three bytes each).
        let bound = zstd_safe::compress_bound(len) + 16 * parts.len();
        self.buffer.reserve(bound);
        self.zstd.reset(ResetDirective::SessionOnly)?;
        self.zstd
            .set_parameter(CParameter::CompressionLevel(level))?;
        // zstd chooses the size of its tables by this length, so they are small for a short body.
        self.zstd.set_pledged_src_size(Some(len as u64))?;
        let mut out = OutBuffer::around(&mut self.buffer);
        for part in parts.iter().filter(|part| !part.is_empty()) {
            let mut part = InBuffer::around(part);
            while part.pos < part.src.len() {
                self.zstd.compress_stream(&mut out, &mut part)?;
            }
            self.zstd.flush_stream(&mut out)?;
        }
        match self.zstd.end_stream(&mut out)? {
            0 => Ok(()),
            // This case never happens, because the buffer has room for the largest possible result.
            left => Err(left),
        }
    }
}

/// Decompresses the bodies of a trace's frames, and reuses its buffers.
pub struct Unpacker {
    zstd: Decompressor<'static>,
    buffer: Vec<u8>,
}

impl Unpacker {
    pub fn new() -> std::io::Result<Unpacker> {
        Ok(Unpacker {
            zstd: Decompressor::new()?,
            buffer: Vec::new(),
        })
    }

    /// Decompresses the body of a frame, which begins at the cursor and may have at most `limit` bytes after
    /// decompression.
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
        if self.buffer.len() != body {
            return Err(Fault::Content(
                "the body's length differs from the header's",
            ));
        }
        Ok(&self.buffer)
    }
}

thread_local! {
    /// The decompressor that each thread keeps, because its buffers are costly to allocate.
    static UNPACKER: RefCell<Option<Unpacker>> = const { RefCell::new(None) };
}

/// Calls `with` with the decompressor that this thread keeps.
pub fn unpacking<T>(with: impl FnOnce(&mut Unpacker) -> Result<T, Fault>) -> Result<T, Fault> {
    UNPACKER.with_borrow_mut(|unpacker| match unpacker {
        Some(unpacker) => with(unpacker),
        None => {
            let new = Unpacker::new().map_err(|e| Fault::Decompress(e.to_string()))?;
            with(unpacker.insert(new))
        }
    })
}

#[cfg(test)]
#[path = "tests/zip.rs"]
mod tests;
