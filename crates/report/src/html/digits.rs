//! Rounds the times of single processes for the HTML report of a large recording, so that the file is smaller.

use tr_analyze::model::Analysis;

/// The largest number of processes whose times the HTML report stores exactly. If there are more processes, the times
/// are rounded to the digits that the report prints. This halves the file's size for a recording of 10^8 events. Sums
/// over the whole recording are always exact.
const EXACT_PROCESSES: usize = 20_000;

/// The number of digits with which the HTML report prints a time below 10 s.
const PRINTED_DIGITS: u32 = 3;

/// The unit in ns of the last digit that is printed for a time of 10 s or more: such a time is printed as `24.65 s`.
const HUNDREDTH: u64 = 10_000_000;

/// The least number of units into which the recording's time is divided when the HTML report rounds points in time:
/// some fifty units for each pixel of the page's width.
const PLACES: u64 = 100_000;

/// The precision with which the HTML report stores the times of single processes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Digits {
    /// The unit in nanoseconds to which the HTML report rounds points in time; `None` if all times are exact.
    unit: Option<u64>,
}

impl Digits {
    pub fn of(analysis: &Analysis) -> Digits {
        let is_exact = analysis.processes.len() <= EXACT_PROCESSES;
        let unit = power_of_ten(analysis.wall() / PLACES);
        Digits {
            unit: (!is_exact).then_some(unit),
        }
    }

    /// Whether the HTML report rounds the times of single processes.
    pub fn rounds(self) -> bool {
        self.unit.is_some()
    }

    /// Rounds a process's sum of times in ns, or of bytes, to the digits that the HTML report prints, unless all values
    /// are exact.
    pub fn amount(self, amount: u64) -> u64 {
        match self.unit {
            Some(_) => rounded(amount, last_digit(amount)),
            None => amount,
        }
    }

    /// Rounds a point in time, in ns since the start of the recording, to the unit in which the HTML report stores such
    /// points.
    pub fn place(self, ns: u64) -> u64 {
        self.unit.map_or(ns, |unit| rounded(ns, unit))
    }

    /// Rounds a duration in ns that the HTML report draws: to the unit of points in time, or to the last printed digit
    /// if that is smaller.
    pub fn length(self, ns: u64) -> u64 {
        self.unit
            .map_or(ns, |unit| rounded(ns, unit.min(last_digit(ns))))
    }
}

/// The value of the last printed digit of a time in ns: 1, 10, 100 and so on, at most a hundredth of a second.
fn last_digit(number: u64) -> u64 {
    power_of_ten(number / 10_u64.pow(PRINTED_DIGITS - 1)).min(HUNDREDTH)
}

/// The largest power of ten (1, 10, 100, …) that is not above `most`; at least 1.
fn power_of_ten(most: u64) -> u64 {
    10_u64.pow(most.checked_ilog10().unwrap_or(0))
}

fn rounded(number: u64, unit: u64) -> u64 {
    number.saturating_add(unit / 2) / unit * unit
}

#[cfg(test)]
mod tests {
    use tr_analyze::model::Process;
    use tr_format::event::Ktime;

    use super::*;

    fn digits(processes: usize) -> Digits {
        Digits::of(&Analysis {
            end: Ktime(60_000_000_000),
            processes: vec![Process::default(); processes],
            ..Analysis::default()
        })
    }

    #[test]
    fn few_processes_have_exact_times() {
        let exact = digits(EXACT_PROCESSES);
        assert!(!exact.rounds());
        let number = 123_456_789;
        assert_eq!(exact.amount(number), number);
        assert_eq!(exact.place(number), number);
        assert_eq!(exact.length(number), number);
    }

    #[test]
    fn many_processes_have_the_printed_digits() {
        let printed = digits(EXACT_PROCESSES + 1);
        assert!(printed.rounds());
        for (is, should) in [
            (0, 0),
            (7, 7),
            (999, 999),
            (1_004, 1_000),
            (9_996, 10_000),
            (123_456_789, 123_000_000),
            (24_654_321_000, 24_650_000_000),
        ] {
            assert_eq!(printed.amount(is), should);
        }
        assert_eq!(printed.amount(u64::MAX), u64::MAX / HUNDREDTH * HUNDREDTH);
        // Points in time are rounded to 100 µs in a recording of one minute.
        assert_eq!(printed.place(123_456_789), 123_500_000);
        assert_eq!(printed.length(123_456_789), 123_500_000);
        assert_eq!(printed.length(45_678), 45_700, "the third digit is smaller");
    }
}
