//! Stores a number with random low bits as two parts: a class (the sign and the number of significant
//! bits), which compresses well, and the bits below the highest one, which are stored raw.

use super::super::bits::BitReader;
use crate::Fault;

/// The bit of a class that says that the number is negative. The other bits of the class are the number of significant
/// bits.
const NEGATIVE_BIT: u8 = 0x80;

/// Splits a number into its class (sign and number of significant bits) and its low bits. Returns the class,
/// the value of the low bits and the number of low bits.
pub fn split(number: i64) -> (u8, u64, u32) {
    let size = number.unsigned_abs();
    let significant = 64 - size.leading_zeros();
    let low = significant.saturating_sub(1);
    let bits = if low == 0 { 0 } else { size & ((1 << low) - 1) };
    let sign = if number < 0 { NEGATIVE_BIT } else { 0 };
    (significant as u8 | sign, bits, low)
}

/// Reads the low bits of a number whose class (sign and number of significant bits) is known, and returns the
/// number.
#[inline]
pub fn get(class: u8, low: &mut BitReader) -> Result<i64, Fault> {
    let significant = u32::from(class & !NEGATIVE_BIT);
    if significant > 64 {
        return Err(Fault::Content("unknown class of numbers"));
    }
    if significant == 0 {
        return Ok(0);
    }
    let size = (1u64 << (significant - 1)) | low.get(significant - 1);
    Ok(match class & NEGATIVE_BIT {
        0 => size as i64,
        _ => (size as i64).wrapping_neg(),
    })
}

#[cfg(test)]
mod tests {
    use super::super::super::bits::BitWriter;
    use super::*;

    #[test]
    fn numbers_come_back() {
        let mut numbers = vec![0, 1, -1, i64::MAX, i64::MIN, i64::MIN + 1];
        numbers.extend((0..63).flat_map(|b| [1i64 << b, -(1 << b), (1 << b) + 5, 5 - (1 << b)]));
        let (mut classes, mut low) = (Vec::<u8>::new(), BitWriter::default());
        for number in &numbers {
            let (class, bits, width) = split(*number);
            classes.push(class);
            low.put(bits, width);
        }
        let mut bytes = Vec::new();
        low.finish(&mut bytes);
        let mut low = BitReader::new(&bytes);
        for (class, number) in classes.iter().zip(&numbers) {
            assert_eq!(get(*class, &mut low).unwrap(), *number);
        }
        low.finish().unwrap();
        assert!(get(65, &mut BitReader::new(&[])).is_err());
    }
}
