//! Fields of a few bits, packed without gaps: the first field in the lowest
//! bits of the first byte.

use crate::Fault;

/// Packs fields.
#[derive(Debug, Default)]
pub struct BitWriter {
    bytes: Vec<u8>,
    /// Bits not yet in `bytes`, the first the lowest.
    open: u64,
    /// How many; below 32 between calls.
    used: u32,
}

impl BitWriter {
    /// Appends the lowest `width` bits of `value`, at most 32.
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

    /// Appends the lowest `width` bits of `value`; the others must be 0.
    #[inline(always)]
    pub fn put(&mut self, value: u64, width: u32) {
        if width > 32 {
            self.part(value & 0xffff_ffff, 32);
            self.part(value >> 32, width - 32);
        } else {
            self.part(value, width);
        }
    }

    /// Removes all fields; keeps the memory.
    pub fn clear(&mut self) {
        self.bytes.clear();
        (self.open, self.used) = (0, 0);
    }

    /// Appends all fields of another.
    pub fn append(&mut self, other: &BitWriter) {
        // `bytes` has whole words only.
        for word in other.bytes.chunks_exact(4) {
            let word = u32::from_le_bytes(word.try_into().unwrap_or_default());
            self.part(u64::from(word), 32);
        }
        self.part(other.open, other.used);
    }

    /// How many bits there are.
    pub fn bits(&self) -> usize {
        8 * self.bytes.len() + self.used as usize
    }

    /// All bytes; the last one filled up with zeros.
    pub fn finish(mut self) -> Vec<u8> {
        let bytes = self.open.to_le_bytes();
        let used = self.used.div_ceil(8) as usize;
        self.bytes
            .extend_from_slice(bytes.get(..used).unwrap_or_default());
        self.bytes
    }
}

/// Reads fields.
#[derive(Clone, Debug)]
pub struct BitReader<'a> {
    bytes: &'a [u8],
    /// The next bit's place.
    at: usize,
}

impl<'a> BitReader<'a> {
    /// At the first bit of `bytes`.
    pub fn new(bytes: &'a [u8]) -> BitReader<'a> {
        BitReader { bytes, at: 0 }
    }

    /// Bytes behind the fields that a reader may touch.
    pub const PADDING: usize = 8;

    /// At bit `at` of `bytes`, which has [`BitReader::PADDING`] zeros at its end
    /// that are no fields.
    pub fn padded(bytes: &'a [u8], at: usize) -> BitReader<'a> {
        BitReader { bytes, at }
    }

    /// How many bits were used.
    pub fn used(&self) -> usize {
        self.at
    }

    /// The next `width` bits, at most 56, which `mask` has; of a padded reader.
    #[inline(always)]
    pub fn masked(&mut self, mask: u64, width: u64) -> u64 {
        let first = self.at / 8;
        // Behind the end `finish` notices.
        let word = match self.bytes.get(first..first + 8) {
            Some(eight) => u64::from_le_bytes(eight.try_into().unwrap_or_default()),
            None => 0,
        };
        let value = (word >> (self.at % 8)) & mask;
        self.at += width as usize;
        value
    }

    /// The next `width` bits, at most 56; zeros behind the end.
    #[inline(always)]
    pub fn part(&mut self, width: u32) -> u64 {
        let first = self.at / 8;
        let word = match self.bytes.get(first..first + 8) {
            Some(eight) => u64::from_le_bytes(eight.try_into().unwrap_or_default()),
            None => last_word(self.bytes, first),
        };
        let value = (word >> (self.at % 8)) & ((1 << width) - 1);
        self.at += width as usize;
        value
    }

    /// The next `width` bits, at most 64; zeros behind the end.
    #[inline]
    pub fn get(&mut self, width: u32) -> u64 {
        if width > 56 {
            let low = self.part(32);
            low | (self.part(width - 32) << 32)
        } else {
            self.part(width)
        }
    }

    /// Refuses when not all bytes were used, or more than there are.
    pub fn finish(self) -> Result<(), Fault> {
        let bytes = self.bytes.len();
        self.finish_within(bytes, 0)
    }

    /// Refuses when not all of the first `bytes` bytes were used, or more than
    /// these and `spare` bits behind them, or a bit is set that was not used.
    pub fn finish_within(mut self, bytes: usize, spare: usize) -> Result<(), Fault> {
        let used = self.at;
        let mut left = (8 * self.bytes.len()).saturating_sub(used);
        let mut zero = true;
        while left > 0 {
            let width = left.min(56) as u32;
            zero &= self.part(width) == 0;
            left -= width as usize;
        }
        if used.div_ceil(8) < bytes || used > 8 * bytes + spare || !zero {
            return Err(Fault::Content("the bit fields do not fill their bytes"));
        }
        Ok(())
    }
}

/// The word at `first`, filled up with zeros behind the end. Not a method, so
/// that a reader can stay in registers.
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
        let bytes = writer.finish();
        let mut reader = BitReader::new(&bytes);
        for (value, width) in &fields {
            assert_eq!(reader.get(*width), *value);
        }
        reader.finish().unwrap();
    }

    #[test]
    fn fields_are_appended() {
        let (mut first, mut second) = (BitWriter::default(), BitWriter::default());
        first.put(5, 3);
        (0..20).for_each(|i| second.put(i, 7));
        first.append(&second);
        let bytes = first.finish();
        let mut reader = BitReader::new(&bytes);
        assert_eq!(reader.get(3), 5);
        assert!((0..20).all(|i| reader.get(7) == i));
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
