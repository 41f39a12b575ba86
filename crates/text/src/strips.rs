//! Draws strips of characters that show a value over time. The height of a character shows the value as a part of the
//! whole: `▄` stands for a half.

/// A character that shows how large `part` is compared with `whole`: a space for nothing, `▄` for a half, `█` for the
/// whole.
pub fn shade(part: u64, whole: u64, ascii: bool) -> char {
    const FINE: [char; 9] = [' ', '▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];
    const PLAIN: [char; 9] = [' ', '.', ':', '-', '=', '+', '*', '#', '@'];
    let steps = if ascii { PLAIN } else { FINE };
    if part == 0 || whole == 0 {
        return ' ';
    }
    let at = (u128::from(part) * 8).div_ceil(u128::from(whole)).min(8);
    let at = usize::try_from(at).unwrap_or(8);
    steps.get(at).copied().unwrap_or(' ')
}

/// Fits intervals to the columns of a strip (a line of characters that shows a value over time). Two columns for each
/// interval are the result `(2, 1)`, and three intervals for each column are `(1, 3)`. An interval gets at most 4
/// columns.
pub fn fit(intervals: u64, room: u64) -> (u64, u64) {
    let intervals = intervals.max(1);
    match room / intervals {
        0 => (1, intervals.div_ceil(room.max(1))),
        columns => (columns.min(4), 1),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_little_shows_and_more_than_all_is_full() {
        let fine = |part| shade(part, 100, false);
        assert_eq!(
            [fine(0), fine(1), fine(13), fine(100), fine(900)],
            [' ', '▁', '▂', '█', '█']
        );
        assert_eq!(shade(50, 100, true), '=');
    }

    #[test]
    fn strips_fit() {
        assert_eq!(fit(17, 40), (2, 1));
        assert_eq!(fit(5, 40), (4, 1));
        assert_eq!(fit(41, 40), (1, 2));
        assert_eq!(fit(1_000_000, 40), (1, 25_000));
        assert_eq!(fit(0, 0), (1, 1));
    }
}
