//! Integers of variable length (LEB128): seven bits in each byte, the lowest bits first, and the high bit
//! set in all bytes but the last. Signed integers are folded to unsigned ones (zigzag): 0, -1, 1, -2, …
//! become 0, 1, 2, 3, …

use crate::Fault;

pub fn put(out: &mut Vec<u8>, mut value: u64) {
    while value >= 0x80 {
        out.push((value as u8) | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
}

/// Folds a signed number into an unsigned one, with the sign in the lowest bit (zigzag encoding).
pub fn fold(value: i64) -> u64 {
    ((value << 1) ^ (value >> 63)) as u64
}

/// Recovers a signed number from the unsigned number that [`fold`] has made of it.
pub fn unfold(value: u64) -> i64 {
    ((value >> 1) as i64) ^ -((value & 1) as i64)
}

/// Reads numbers of variable length and other values, one after the other, from the front of some bytes.
#[derive(Clone, Debug)]
pub struct Cursor<'a> {
    rest: &'a [u8],
}

impl<'a> Cursor<'a> {
    pub fn new(bytes: &'a [u8]) -> Cursor<'a> {
        Cursor { rest: bytes }
    }

    /// The bytes that the cursor has not yet read.
    pub fn rest(&self) -> &'a [u8] {
        self.rest
    }

    /// The number of bytes that the cursor has not yet read.
    pub fn left(&self) -> usize {
        self.rest.len()
    }

    pub fn byte(&mut self) -> Result<u8, Fault> {
        let (first, rest) = self.rest.split_first().ok_or(UNEXPECTED_END)?;
        self.rest = rest;
        Ok(*first)
    }

    /// Reads the next number, which has a variable length (LEB128). Every number has one valid form. A
    /// longer form, or a number of more than 64 bits, is an error.
    pub fn int(&mut self) -> Result<u64, Fault> {
        let mut value = 0u64;
        for shift in (0..64).step_by(7) {
            let byte = self.byte()?;
            let bits = u64::from(byte & 0x7f);
            if shift == 63 && bits > 1 {
                return Err(Fault::Content("an integer does not fit in 64 bits"));
            }
            value |= bits << shift;
            if byte & 0x80 == 0 {
                if shift > 0 && byte == 0 {
                    return Err(Fault::Content("overlong integer"));
                }
                return Ok(value);
            }
        }
        Err(Fault::Content("an integer does not fit in 64 bits"))
    }

    /// Reads the next number of variable length (LEB128), which must fit in 32 bits.
    pub fn int32(&mut self) -> Result<u32, Fault> {
        u32::try_from(self.int()?).map_err(|_| Fault::Content("an integer does not fit in 32 bits"))
    }

    /// Reads the next number of variable length (LEB128), which must fit in 16 bits.
    pub fn int16(&mut self) -> Result<u16, Fault> {
        u16::try_from(self.int()?).map_err(|_| Fault::Content("an integer does not fit in 16 bits"))
    }

    pub fn take(&mut self, len: u64) -> Result<&'a [u8], Fault> {
        let len = usize::try_from(len).map_err(|_| UNEXPECTED_END)?;
        let (taken, rest) = self.rest.split_at_checked(len).ok_or(UNEXPECTED_END)?;
        self.rest = rest;
        Ok(taken)
    }

    /// Reads the next four bytes as one little-endian number.
    pub fn word(&mut self) -> Result<u32, Fault> {
        let bytes = self.take(4)?;
        Ok(u32::from_le_bytes(
            bytes.try_into().map_err(|_| UNEXPECTED_END)?,
        ))
    }
}

const UNEXPECTED_END: Fault = Fault::Content("unexpected end of data");

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_value_comes_back() {
        for shift in 0..64 {
            for value in [1u64 << shift, (1u64 << shift) - 1, !(1u64 << shift)] {
                let mut out = Vec::new();
                put(&mut out, value);
                let mut cursor = Cursor::new(&out);
                assert_eq!((cursor.int().unwrap(), cursor.left()), (value, 0));
                assert_eq!(fold(unfold(value)), value);
            }
        }
        assert_eq!([0, -1, 1, -2, i64::MIN].map(fold), [0, 1, 2, 3, u64::MAX]);
    }

    #[test]
    fn other_forms_are_refused() {
        for bytes in [&[0x80, 0x00][..], &[0x80], &[], &[0xff; 10], &[0xff; 11]] {
            assert!(Cursor::new(bytes).int().is_err(), "{bytes:02x?}");
        }
        let mut largest = [0xff; 10];
        largest[9] = 1;
        assert_eq!(Cursor::new(&largest).int().unwrap(), u64::MAX);
    }
}
