//! Writes numbers with their units as text.

use unicode_width::{UnicodeWidthChar, UnicodeWidthStr};

/// A duration as a number and a unit, such as `1.23` and `s`, or `4:09` and `min`.
#[derive(PartialEq, Eq)]
struct Duration {
    figure: String,
    /// The unit of the duration; empty for 0.
    unit: &'static str,
}

impl Duration {
    fn of(ns: u64) -> Duration {
        const UNITS: [(u64, &str); 4] = [
            (1_000_000_000, "s"),
            (1_000_000, "ms"),
            (1_000, "µs"),
            (1, "ns"),
        ];
        let (figure, unit) = match ns {
            0 => ("–".into(), ""),
            // From 59.995 s on, a duration in seconds with two digits would round to 60.00 s, so it is shown in
            // minutes.
            59_995_000_000..3_599_500_000_000 => {
                let seconds = (ns + 500_000_000) / 1_000_000_000;
                (format!("{}:{:02}", seconds / 60, seconds % 60), "min")
            }
            3_599_500_000_000.. => {
                let minutes = ns.saturating_add(30_000_000_000) / 60_000_000_000;
                (format!("{}:{:02}", minutes / 60, minutes % 60), "h")
            }
            _ => {
                // A unit is used if the rounded duration is at least one unit. For example, 999.5 ms would be rounded
                // to 1000 ms, so it is shown as 1 s.
                let (unit, name) = UNITS
                    .into_iter()
                    .find(|(unit, _)| ns + unit / 2000 >= *unit)
                    .unwrap_or((1, "ns"));
                let value = ns as f64 / unit as f64;
                let digits = match name {
                    "s" => 2,
                    _ if value < 10.0 && name != "ns" => 1,
                    _ => 0,
                };
                (format!("{value:.digits$}"), name)
            }
        };
        Duration { figure, unit }
    }
}

impl std::fmt::Display for Duration {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let space = if self.unit.is_empty() { "" } else { " " };
        write!(f, "{}{space}{}", self.figure, self.unit)
    }
}

/// A duration in ns as text with a unit that fits: `999 ns`, `9.9 ms`, `1.23 s`, `4:09 min`, `1:59 h`; `–` for 0.
pub fn time(ns: u64) -> String {
    Duration::of(ns).to_string()
}

/// Two durations in ns as text, the second at least as long as the first: `1.10 to 1.30 s`, `900 ms to 1.10 s`.
pub fn range(least: u64, most: u64) -> String {
    let (low, high) = (Duration::of(least), Duration::of(most));
    match low {
        _ if low == high => high.to_string(),
        _ if low.unit == high.unit => format!("{} to {high}", low.figure),
        _ => format!("{low} to {high}"),
    }
}

/// The upper bound of a duration divided by its lower bound, from which on the bounds alone are printed. A guess: a
/// reader takes a figure before wide bounds for more than it is.
const WIDE_FACTOR: u64 = 3;

/// A duration in ns and its bounds as text: `7.10 s (6.80 to 7.50)`. If the upper bound is at least `WIDE_FACTOR` times
/// the lower one, only the bounds: `1.00 to 3.00 s`.
pub fn interval(ns: u64, least: u64, most: u64) -> String {
    if most / WIDE_FACTOR >= least && most > least {
        return range(least, most);
    }
    let [value, low, high] = [ns, least, most].map(Duration::of);
    if low == high {
        return value.to_string();
    }
    if value.unit == low.unit && low.unit == high.unit {
        return format!("{value} ({} to {})", low.figure, high.figure);
    }
    format!("{value} ({})", range(least, most))
}

/// A time in ns since the start of the trace, as text in seconds with three decimals. Further digits are cut off.
pub fn at(ns: u64) -> String {
    format!("{}.{:03}", ns / 1_000_000_000, ns / 1_000_000 % 1000)
}

/// The text for a number of bytes, with a unit that is a power of 1024. The number is rounded to a whole number of the
/// unit, or to a tenth if it is below ten units.
pub fn bytes(count: u64) -> String {
    let (figure, unit) = figure_and_unit(count);
    format!("{figure} {unit}")
}

/// A number of bytes as [`bytes`] prints it, divided into its figure and its unit.
fn figure_and_unit(count: u64) -> (String, &'static str) {
    const UNITS: [(u32, &str); 5] = [(0, "B"), (10, "KiB"), (20, "MiB"), (30, "GiB"), (40, "TiB")];
    let rounded = |shift: u32, parts: u128| {
        let unit = 1_u128 << shift;
        (u128::from(count) * parts + unit / 2) / unit
    };
    // The smallest unit is used in which the rounded number is below 1,024.
    let fits = |(shift, _): &(u32, &str)| rounded(*shift, 1) < 1024;
    let (shift, name) = UNITS.into_iter().find(fits).unwrap_or((40, "TiB"));
    let tenths = rounded(shift, 10);
    if shift > 0 && tenths < 100 && tenths % 10 > 0 {
        return (format!("{}.{}", tenths / 10, tenths % 10), name);
    }
    let whole = u64::try_from(rounded(shift, 1)).unwrap_or(u64::MAX);
    (self::count(whole), name)
}

/// Two numbers of bytes as text, the second at least as large as the first: `171 to 213 MiB`, `900 KiB to 1.1 MiB`.
pub fn bytes_range(least: u64, most: u64) -> String {
    let ((low, low_unit), (high, unit)) = (figure_and_unit(least), figure_and_unit(most));
    if (&low, low_unit) == (&high, unit) {
        format!("{high} {unit}")
    } else if low_unit == unit {
        format!("{low} to {high} {unit}")
    } else {
        format!("{low} {low_unit} to {high} {unit}")
    }
}

/// A number and the noun for what it counts, as text: `1 process`, `2 processes`.
pub fn plural(number: u64, one: &str, more: &str) -> String {
    match number {
        1 => format!("1 {one}"),
        n => format!("{} {more}", count(n)),
    }
}

/// A number of CPUs as text: `1 CPU`, `2 CPUs`.
pub fn cpus(number: u64) -> String {
    plural(number, "CPU", "CPUs")
}

/// The given text with a capital first letter.
pub fn sentence(text: &str) -> String {
    let mut letters = text.chars();
    let first = letters.next().into_iter().flat_map(char::to_uppercase);
    first.chain(letters).collect()
}

/// A number as text with commas between thousands: 28253 is 28,253.
pub fn count(number: u64) -> String {
    let digits = number.to_string();
    let mut out = String::new();
    for (place, digit) in digits.chars().enumerate() {
        if place > 0 && (digits.len() - place).is_multiple_of(3) {
            out.push(',');
        }
        out.push(digit);
    }
    out
}

pub fn share(part: u64, whole: u64) -> String {
    if whole == 0 {
        return "–".into();
    }
    let percent = part as f64 * 100.0 / whole as f64;
    match percent {
        p if p > 0.0 && p < 1.0 => "<1 %".into(),
        p => format!("{p:.0} %"),
    }
}

/// The date and time in UTC of a time in ns since 1970, as text; `time of day unknown` for `None`.
pub fn date(unix_ns: Option<u64>) -> String {
    unix_ns.map_or_else(
        || "time of day unknown".into(),
        |unix_ns| {
            let (date, [hour, minute, _]) = moment(unix_ns / 1_000_000_000);
            format!("{date} {hour:02}:{minute:02} UTC")
        },
    )
}

/// The day in UTC of a time in ns since 1970, as text: `2026-11-23`.
pub fn day(unix_ns: u64) -> String {
    moment(unix_ns / 1_000_000_000).0
}

/// A time in ns since 1970 as text in the form of RFC 3339, in UTC.
pub fn rfc3339(unix_ns: u64) -> String {
    let (date, [hour, minute, second]) = moment(unix_ns / 1_000_000_000);
    let part = unix_ns % 1_000_000_000;
    format!("{date}T{hour:02}:{minute:02}:{second:02}.{part:09}Z")
}

/// A time in ns since 1970 as text in the basic form of ISO 8601, in UTC and whole seconds: `20261123T163437Z`.
pub fn iso8601(unix_ns: u64) -> String {
    let seconds = unix_ns / 1_000_000_000;
    let ([year, month, day], [hour, minute, second]) = (calendar_date(seconds), clock(seconds));
    format!("{year}{month:02}{day:02}T{hour:02}{minute:02}{second:02}Z")
}

/// Converts a number of seconds since 1970 to the date (as text), and to the hour, minute and second.
fn moment(seconds: u64) -> (String, [u64; 3]) {
    let [year, month, day] = calendar_date(seconds);
    (format!("{year}-{month:02}-{day:02}"), clock(seconds))
}

/// The hour, minute and second of a number of seconds since 1970.
fn clock(seconds: u64) -> [u64; 3] {
    [seconds / 3600 % 24, seconds / 60 % 60, seconds % 60]
}

/// The year, month and day of a number of seconds since 1970.
fn calendar_date(seconds: u64) -> [u64; 3] {
    // The conversion of days to a date is from Howard Hinnant, "chrono-compatible low-level date algorithms".
    let z = seconds / 86_400 + 719_468;
    let era = z / 146_097;
    let of_era = z % 146_097;
    let year_of_era = (of_era - of_era / 1_460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let shifted = (5 * of_year + 2) / 153;
    let day = of_year - (153 * shifted + 2) / 5 + 1;
    let month = if shifted < 10 {
        shifted + 3
    } else {
        shifted - 9
    };
    let year = year_of_era + era * 400 + u64::from(month <= 2);
    [year, month, day]
}

/// The number of days from 1970-01-01 to a date of a year from 1 on. A year begins in March here, so that a
/// leap day is its last day.
pub fn days(year: i64, month: i64, date: i64) -> i64 {
    let year = if month <= 2 { year - 1 } else { year };
    let month = (month + 9) % 12;
    let of_year = (153 * month + 2) / 5 + date - 1;
    year * 365 + year / 4 - year / 100 + year / 400 + of_year - 719_468
}

/// Bytes as hexadecimal digits, two for each byte.
pub fn hex<'a>(bytes: impl IntoIterator<Item = &'a u8>) -> String {
    let bytes = bytes.into_iter();
    bytes.map(|byte| format!("{byte:02x}")).collect()
}

/// The width of a text on a terminal, in columns.
pub fn width(text: &str) -> usize {
    UnicodeWidthStr::width(text)
}

/// A text padded with spaces to `columns`. With `right` it is aligned on the right.
pub fn pad(text: &str, columns: usize, right: bool) -> String {
    let space = " ".repeat(columns.saturating_sub(width(text)));
    if right {
        space + text
    } else {
        text.to_owned() + &space
    }
}

/// The lines of a text, each at most `columns` wide. A longer word is divided.
pub fn wrap(text: &str, columns: usize) -> Vec<String> {
    let mut lines = Vec::new();
    let mut line = String::new();
    for word in text.split(' ') {
        let space = usize::from(!line.is_empty());
        if width(&line) + space + width(word) <= columns {
            line.push_str(if space > 0 { " " } else { "" });
            line.push_str(word);
            continue;
        }
        if !line.is_empty() {
            lines.push(std::mem::take(&mut line));
        }
        for c in word.chars() {
            if width(&line) + c.width().unwrap_or(0) > columns && !line.is_empty() {
                lines.push(std::mem::take(&mut line));
            }
            line.push(c);
        }
    }
    if !line.is_empty() || lines.is_empty() {
        lines.push(line);
    }
    lines
}

/// Shortens a text in the middle to at most `columns` columns. If the text ends with a path, the last part of the path
/// is kept if it fits, because it distinguishes the files of one directory.
pub fn shorten(text: &str, columns: usize) -> String {
    if width(text) <= columns {
        return text.to_owned();
    }
    let room = columns.saturating_sub(1);
    let last = text.rfind('/').and_then(|at| text.get(at..));
    let last = last.filter(|part| !part.contains(' ')).map_or(0, width);
    let end = if last > room / 2 && last < room {
        last
    } else {
        room / 2
    };
    let take = |chars: &mut dyn Iterator<Item = char>, room: usize| {
        let mut used = 0;
        let mut out = String::new();
        for c in chars {
            used += c.width().unwrap_or(0);
            if used > room {
                break;
            }
            out.push(c);
        }
        out
    };
    let head = take(&mut text.chars(), room - end);
    let tail: String = take(&mut text.chars().rev(), end).chars().rev().collect();
    format!("{head}…{tail}")
}

/// The first words of a text that fit into `columns`, with an ellipsis for the others. If not even one word fits, the
/// text is shortened as by [`shorten`].
pub fn clip(text: &str, columns: usize) -> String {
    if width(text) <= columns {
        return text.to_owned();
    }
    let ends = text.match_indices(' ').map(|(at, _)| at);
    let fits = ends.filter_map(|at| text.get(..at));
    let fits = fits.map(|head| format!("{}…", head.trim_end_matches([':', ',', ';'])));
    let longest = fits.take_while(|head| width(head) <= columns).last();
    longest.unwrap_or_else(|| shorten(text, columns))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_of_ours_stay_whole() {
        let title = "longest alone: no other task was runnable";
        assert_eq!(clip(title, 41), title);
        assert_eq!(clip(title, 40), "longest alone: no other task was…");
        assert_eq!(clip(title, 16), "longest alone…");
        assert_eq!(clip(title, 5), "lo…le");
    }

    #[test]
    fn times_have_an_extended_and_a_basic_form() {
        let time = 1_795_625_175_495_022_292;
        assert_eq!(rfc3339(time), "2026-11-25T16:46:15.495022292Z");
        assert_eq!(iso8601(time), "20261125T164615Z");
    }

    #[test]
    fn a_path_keeps_its_last_part() {
        let path = "CMakeFiles/core.dir/src/Texture.cpp.o";
        assert_eq!(shorten(path, 37), path);
        assert_eq!(shorten(path, 20), "CMake…/Texture.cpp.o");
        assert_eq!(shorten(path, 16), "C…/Texture.cpp.o");
        // In 15 columns, the last part of the path would leave no room for its beginning, so both are cut.
        assert_eq!(shorten(path, 15), "CMakeFi…e.cpp.o");
        assert_eq!(shorten("python3 /opt/tool.py --all x", 13), "python…-all x");
    }

    #[test]
    fn an_interval_has_one_unit() {
        let seconds = |s: f64| (s * 1e9) as u64;
        let shown = interval(seconds(7.1), seconds(6.8), seconds(7.5));
        assert_eq!(shown, "7.10 s (6.80 to 7.50)");
        let shown = interval(seconds(0.98), seconds(0.9), seconds(1.1));
        assert_eq!(shown, "980 ms (900 ms to 1.10 s)");
        assert_eq!(interval(5, 5, 5), "5 ns");
        assert_eq!(
            interval(seconds(2.0), seconds(1.0), seconds(3.0)),
            "1.00 to 3.00 s"
        );
        assert_eq!(range(seconds(1.1), seconds(1.3)), "1.10 to 1.30 s");
        assert_eq!(range(seconds(0.1), seconds(1.3)), "100 ms to 1.30 s");
    }

    #[test]
    fn bytes_have_one_scale() {
        let shown = [
            (0, "0 B"),
            (1023, "1,023 B"),
            (1024, "1 KiB"),
            (1536, "1.5 KiB"),
            (10_240, "10 KiB"),
            (1128 << 10, "1.1 MiB"),
            (94_225_039, "90 MiB"),
            (10_433_331, "9.9 MiB"),
            (10_433_332, "10 MiB"),
            (1_048_063, "1,023 KiB"),
            (1_048_064, "1 MiB"),
            (1023 << 20, "1,023 MiB"),
            (1 << 30, "1 GiB"),
            (u64::MAX, "16,777,216 TiB"),
        ];
        for (count, expected) in shown {
            assert_eq!(bytes(count), expected);
        }
    }

    #[test]
    fn a_time_has_three_digits_and_the_unit_that_fits() {
        let shown = [
            (0, "–"),
            (999, "999 ns"),
            (1_000, "1.0 µs"),
            (999_499, "999 µs"),
            (999_500, "1.0 ms"),
            (9_940_000, "9.9 ms"),
            (999_499_999, "999 ms"),
            (999_500_000, "1.00 s"),
            (59_994_999_999, "59.99 s"),
            (59_995_000_000, "1:00 min"),
            (249_490_000_000, "4:09 min"),
            (249_990_000_000, "4:10 min"),
            (3_599_499_999_999, "59:59 min"),
            (3_599_500_000_000, "1:00 h"),
            (7_169_999_999_999, "1:59 h"),
            (7_170_000_000_000, "2:00 h"),
            (u64::MAX, "5124095:34 h"),
        ];
        for (ns, expected) in shown {
            assert_eq!(time(ns), expected);
        }
    }
}
