//! Integers of variable length: LEB128, seven bits a byte, low bits first;
//! signed ones zigzag.

use crate::error::Corrupt;

pub(crate) fn put(out: &mut Vec<u8>, mut value: u64) {
    while value >= 0x80 {
        out.push(value as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
}

pub(crate) fn zigzag(value: i64) -> u64 {
    ((value << 1) ^ (value >> 63)).cast_unsigned()
}

pub(crate) fn unzigzag(value: u64) -> i64 {
    (value >> 1).cast_signed() ^ -(value & 1).cast_signed()
}

/// Bytes that are read from the front.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Input<'a>(pub &'a [u8]);

impl<'a> Input<'a> {
    pub fn u8(&mut self) -> Result<u8, Corrupt> {
        let (first, rest) = self.0.split_first().ok_or(Corrupt("a value is cut off"))?;
        self.0 = rest;
        Ok(*first)
    }

    pub fn bytes(&mut self, len: usize) -> Result<&'a [u8], Corrupt> {
        let (bytes, rest) = self
            .0
            .split_at_checked(len)
            .ok_or(Corrupt("a length goes beyond the block"))?;
        self.0 = rest;
        Ok(bytes)
    }

    pub fn u64(&mut self) -> Result<u64, Corrupt> {
        let mut value = 0u64;
        for shift in (0..64).step_by(7) {
            let byte = self.u8()?;
            if shift == 63 && byte > 1 {
                break;
            }
            value |= u64::from(byte & 0x7f) << shift;
            if byte < 0x80 {
                return Ok(value);
            }
        }
        Err(Corrupt("an integer is longer than 64 bits"))
    }

    pub fn u32(&mut self) -> Result<u32, Corrupt> {
        u32::try_from(self.u64()?).map_err(|_| Corrupt("an integer is larger than its field"))
    }

    pub fn u16(&mut self) -> Result<u16, Corrupt> {
        u16::try_from(self.u64()?).map_err(|_| Corrupt("an integer is larger than its field"))
    }

    /// A length, then that many bytes.
    pub fn counted(&mut self) -> Result<&'a [u8], Corrupt> {
        let len =
            usize::try_from(self.u64()?).map_err(|_| Corrupt("a length goes beyond the block"))?;
        self.bytes(len)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn integers_come_back() {
        for value in [
            0,
            1,
            127,
            128,
            300,
            u64::from(u32::MAX),
            u64::MAX - 1,
            u64::MAX,
        ] {
            let mut out = Vec::new();
            put(&mut out, value);
            let mut input = Input(&out);
            assert_eq!(input.u64(), Ok(value));
            assert!(input.0.is_empty());
        }
        for value in [0, -1, 1, i64::MIN, i64::MAX] {
            assert_eq!(unzigzag(zigzag(value)), value);
        }
    }

    #[test]
    fn an_integer_of_more_than_64_bits_is_refused() {
        assert!(Input(&[0xff; 11]).u64().is_err());
        assert!(
            Input(&[0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 2])
                .u64()
                .is_err()
        );
        assert!(Input(&[0x80]).u64().is_err());
    }
}
