//! A part of a number, exact however large the numbers are.

/// As much of `of` as `part` is of `whole`, rounded down. It stops at the largest number.
pub fn share(of: u64, part: u64, whole: u64) -> u64 {
    let share = u128::from(of) * u128::from(part) / u128::from(whole.max(1));
    u64::try_from(share).unwrap_or(u64::MAX)
}

/// The same, rounded up.
pub(crate) fn share_up(of: u64, part: u64, whole: u64) -> u64 {
    let share = (u128::from(of) * u128::from(part)).div_ceil(u128::from(whole.max(1)));
    u64::try_from(share).unwrap_or(u64::MAX)
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
