//! Computes fractions of a number (`of * part / whole`), rounded but without overflow. A `whole` of 0 counts as 1.

/// Computes `of * part / whole`, rounded down and limited to `u64::MAX`.
pub fn share(of: u64, part: u64, whole: u64) -> u64 {
    let whole = whole.max(1);
    match product(of, part) {
        Ok(product) => product / whole,
        Err(product) => u64::try_from(product / u128::from(whole)).unwrap_or(u64::MAX),
    }
}

/// Computes `of * part / whole`, rounded up and limited to `u64::MAX`.
pub(crate) fn share_up(of: u64, part: u64, whole: u64) -> u64 {
    let whole = whole.max(1);
    match product(of, part) {
        Ok(product) => product.div_ceil(whole),
        Err(product) => u64::try_from(product.div_ceil(u128::from(whole))).unwrap_or(u64::MAX),
    }
}

/// The product of two numbers: `Ok` if it fits into 64 bits, otherwise `Err` with 128 bits. The two cases are kept
/// apart because a division of 128 bits is a slow function call, and the inner loop of the simulation divides.
fn product(a: u64, b: u64) -> Result<u64, u128> {
    a.checked_mul(b)
        .ok_or_else(|| u128::from(a) * u128::from(b))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_share_is_exact_and_has_a_limit() {
        assert_eq!(share(u64::MAX, u64::MAX - 1, u64::MAX), u64::MAX - 1);
        assert_eq!((share(7, 1, 2), share_up(7, 1, 2)), (3, 4));
        assert_eq!((share(7, 1, 0), share(u64::MAX, 2, 1)), (7, u64::MAX));
    }
}
