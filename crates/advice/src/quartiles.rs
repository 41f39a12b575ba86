//! The quartiles of times, by which the advice decides whether executions of one program are alike.

/// The middle half of some times: at most a quarter of the times is shorter than `lower`, and at most a quarter is
/// longer than `upper`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Quartiles {
    pub lower: u64,
    pub upper: u64,
}

impl Quartiles {
    /// The quartiles of times in ascending order; `None` if there are no times.
    pub fn of_sorted(times: &[u64]) -> Option<Quartiles> {
        let quarter = times.len() / 4;
        Some(Quartiles {
            lower: *times.get(quarter)?,
            upper: *times.get(times.len().checked_sub(1 + quarter)?)?,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn as_many_times_are_below_the_lower_as_above_the_upper_one() {
        let of = |times: &[u64]| {
            Quartiles::of_sorted(times).map(|quartiles| (quartiles.lower, quartiles.upper))
        };
        assert_eq!(of(&[]), None);
        assert_eq!(of(&[7]), Some((7, 7)));
        assert_eq!(of(&[1, 2, 3]), Some((1, 3)));
        assert_eq!(of(&[1, 2, 3, 90]), Some((2, 3)));
        assert_eq!(of(&[1, 2, 3, 4, 5]), Some((2, 4)));
        assert_eq!(of(&[1, 2, 3, 4, 5, 6, 7, 8]), Some((3, 6)));
    }
}
