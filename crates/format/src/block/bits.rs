//! Reads and writes the fields of a trace's blocks that are a few bits wide. They are packed without gaps:
//! the first field is in the lowest bits of the first byte.

use crate::Fault;

#[derive(Debug, Default)]
pub struct BitWriter {
    bytes: Vec<u8>,
    /// The bits that were put into the writer and are not yet in `bytes`. The lowest bit is the one that was put first.
    open: u64,
    /// The number of bits in the word `open` of the bit writer. It is below 32 between calls.
    used: u32,
}

impl BitWriter {
    /// Appends the lowest `width` bits of `value` as a field; `width` is at most 64. The higher bits of
    /// `value` must be 0.
    #[inline(always)]
    pub fn put(&mut self, value: u64, width: u32) {
        if width > 32 {
            self.part(value & 0xffff_ffff, 32);
            self.part(value >> 32, width - 32);
        } else {
            self.part(value, width);
        }
    }

    #[inline(always)]
    fn part(&mut self, value: u64, width: u32) {
        debug_assert!(width <= 32 && value >> width == 0);
        self.open |= value << self.used;
        self.used += width;
        if self.used >= 32 {
            let word = self.open as u32;
            self.bytes.extend_from_slice(&word.to_le_bytes());
            self.open >>= 32;
            self.used -= 32;
        }
    }

    /// Appends the bytes of all written bit fields to `out`, and fills the last byte with zero bits.
    pub fn finish(&mut self, out: &mut Vec<u8>) {
        let bytes = self.open.to_le_bytes();
        out.append(&mut self.bytes);
        let used = self.used.div_ceil(8) as usize;
        out.extend_from_slice(bytes.get(..used).unwrap_or_default());
        (self.open, self.used) = (0, 0);
    }
}

#[derive(Clone, Debug)]
pub struct BitReader<'a> {
    bytes: &'a [u8],
    /// The position of the next bit to read, counted from the first bit of the bytes.
    at: usize,
}

impl<'a> BitReader<'a> {
    pub fn new(bytes: &'a [u8]) -> BitReader<'a> {
        BitReader { bytes, at: 0 }
    }

    /// Reads a field of `width` bits, at most 64. After the end of the bytes, zeros are read.
    #[inline(always)]
    pub fn get(&mut self, width: u32) -> u64 {
        if width > 56 {
            let low = self.part(32);
            low | (self.part(width - 32) << 32)
        } else {
            self.part(width)
        }
    }

    #[inline(always)]
    fn part(&mut self, width: u32) -> u64 {
        let first = self.at / 8;
        let word = match self.bytes.get(first..first + 8) {
            Some(eight) => u64::from_le_bytes(eight.try_into().unwrap_or_default()),
            None => last_word(self.bytes, first),
        };
        let value = (word >> (self.at % 8)) & ((1 << width) - 1);
        self.at += width as usize;
        value
    }

    /// Ends the reading of bit fields. Returns an error in three cases: bytes at the end were not read, more bits were
    /// read than there are, or the unused bits of the last byte are not 0.
    pub fn finish(self) -> Result<(), Fault> {
        let rest = last_word(self.bytes, self.at / 8) >> (self.at % 8);
        if self.at.div_ceil(8) == self.bytes.len() && rest == 0 {
            Ok(())
        } else {
            Err(Fault::Content("the bit fields do not fill their bytes"))
        }
    }
}

/// The eight bytes from the index `first` on as one little-endian word, with zeros after the end of `bytes`.
/// This is a function without `self`, so that the compiler keeps the bit reader in registers.
#[cold]
#[inline(never)]
fn last_word(bytes: &[u8], first: usize) -> u64 {
    let left = bytes.get(first..).unwrap_or_default();
    let bytes = left.iter().take(8).rev();
    bytes.fold(0, |word, byte| word << 8 | u64::from(*byte))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn finished(mut writer: BitWriter) -> Vec<u8> {
        let mut out = Vec::new();
        writer.finish(&mut out);
        out
    }

    #[test]
    fn fields_of_every_width_come_back() {
        let mut writer = BitWriter::default();
        let fields: Vec<(u64, u32)> = (0..1000u64)
            .map(|i| {
                let width = (i * 7 % 65) as u32;
                let value = i.wrapping_mul(0x9e37_79b9_7f4a_7c15);
                (if width == 0 { 0 } else { value >> (64 - width) }, width)
            })
            .collect();
        for (value, width) in &fields {
            writer.put(*value, *width);
        }
        let bytes = finished(writer);
        let mut reader = BitReader::new(&bytes);
        for (value, width) in &fields {
            assert_eq!(reader.get(*width), *value);
        }
        reader.finish().unwrap();
    }

    #[test]
    fn too_few_and_too_many_bytes_are_refused() {
        let mut reader = BitReader::new(&[1, 2]);
        reader.get(7);
        assert!(reader.finish().is_err());
        let mut reader = BitReader::new(&[1]);
        assert_eq!(reader.get(9), 1);
        assert!(reader.finish().is_err());
        let mut reader = BitReader::new(&[0x81]);
        reader.get(7);
        assert!(reader.finish().is_err(), "the rest of the last byte is 0");
    }
}
