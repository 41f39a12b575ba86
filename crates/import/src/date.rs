//! Reads times of the day, as JUnit XML has them: ISO 8601 (`2026-11-23T05:54:00.123+01:00`,
//! `20261123T055400Z`, with a zone in brackets after it as RFC 9557 has it), RFC 1123 (`Mon, 23 Nov 2026
//! 05:54:00 GMT`), and seconds or milliseconds since 1970.

use tr_placing::junit::Date;
use tr_text::units;

/// A second in nanoseconds, the unit of all times here.
const SECOND: i64 = 1_000_000_000;

const MONTHS: [&str; 12] = [
    "Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec",
];

/// Reads a date with a time of day in any of the forms that the documentation of the module names.
pub fn read(text: &str) -> Option<Date> {
    let text = text.trim();
    since_1970(text)
        .or_else(|| rfc_1123(text))
        .or_else(|| iso_8601(text))
}

/// A date with a time of day as it was written, before its numbers are checked.
struct Fields<'t> {
    day: [i64; 3],
    time: [i64; 3],
    /// The digits after the decimal point of the seconds in a time of day, as text.
    fraction: &'t str,
    zone: &'t str,
}

impl Fields<'_> {
    fn date(&self) -> Option<Date> {
        let ([year, month, date], [hour, minute, second]) = (self.day, self.time);
        let valid = (1970..=2200).contains(&year)
            && (1..=12).contains(&month)
            && (1..=31).contains(&date)
            && (0..24).contains(&hour)
            && (0..60).contains(&minute)
            && (0..=60).contains(&second);
        if !valid {
            return None;
        }
        let seconds = ((units::days(year, month, date) * 24 + hour) * 60 + minute) * 60 + second;
        let (part, digit) = fraction(self.fraction)?;
        Some(Date {
            local: seconds * SECOND + part,
            ahead: ahead(self.zone)?,
            digit,
        })
    }
}

/// The nanoseconds that the digits after the decimal point of a time's seconds stand for, and the
/// value of one unit of the last digit in nanoseconds.
fn fraction(digits: &str) -> Option<(i64, i64)> {
    let (mut part, mut digit) = (0, SECOND);
    for letter in digits.chars().take(9) {
        digit /= 10;
        part += i64::from(letter.to_digit(10)?) * digit;
    }
    Some((part, digit))
}

fn iso_8601(text: &str) -> Option<Date> {
    // In `+01:00[Europe/Berlin]` the offset is exact, so the name of the zone is not needed.
    let text = text.split_once('[').map_or(text, |(before, _)| before);
    let is_basic = text.as_bytes().get(..8)?.iter().all(u8::is_ascii_digit);
    let (day, rest) = text.split_at_checked(if is_basic { 8 } else { 10 })?;
    let rest = rest.strip_prefix(['T', ' '])?;
    let zone = rest.find(['Z', '+', '-']).unwrap_or(rest.len());
    let (clock, zone) = rest.split_at_checked(zone)?;
    let (seconds, fraction) = clock.split_once(['.', ',']).unwrap_or((clock, ""));
    let [day, time] = if is_basic {
        [basic(day, 4)?, basic(seconds, 2)?]
    } else {
        [numbers(day, '-')?, numbers(seconds, ':')?]
    };
    let fields = Fields {
        day,
        time,
        fraction,
        zone: zone.trim(),
    };
    fields.date()
}

/// Three numbers of a date or a time that are written without separators, such as `20261123`. The
/// first one has `first` digits and the others have two.
fn basic(text: &str, first: usize) -> Option<[i64; 3]> {
    let (a, rest) = text.split_at_checked(first)?;
    let (b, c) = rest.split_at_checked(2)?;
    numbers(&format!("{a}-{b}-{c}"), '-').filter(|_| c.len() == 2)
}

fn rfc_1123(text: &str) -> Option<Date> {
    let text = text.split_once(", ").map_or(text, |(_, after)| after);
    let mut words = text.split_ascii_whitespace();
    let [date, month, year, clock, zone] = [
        words.next()?,
        words.next()?,
        words.next()?,
        words.next()?,
        words.next()?,
    ];
    let month = MONTHS.iter().position(|name| *name == month)? as i64 + 1;
    let [year, _, date] = numbers(&format!("{year}-1-{date}"), '-')?;
    let fields = Fields {
        day: [year, month, date],
        time: numbers(clock, ':')?,
        fraction: "",
        zone: match zone {
            "GMT" | "UTC" | "UT" => "Z",
            zone => zone,
        },
    };
    fields.date().filter(|_| words.next().is_none())
}

/// Reads a time that is written as seconds since 1970, with digits after a point, or as
/// milliseconds since 1970.
fn since_1970(text: &str) -> Option<Date> {
    let (whole, digits) = text.split_once('.').unwrap_or((text, ""));
    if !whole.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    let number: i64 = whole.parse().ok()?;
    let (part, digit) = fraction(digits)?;
    match whole.len() {
        // Numbers of seconds have ten digits from 2001 on.
        10 => Some(Date {
            local: number * SECOND + part,
            ahead: Some(0),
            digit,
        }),
        13 => Some(Date {
            local: number * 1_000_000 + part / 1000,
            ahead: Some(0),
            digit: (digit / 1000).max(1),
        }),
        _ => None,
    }
}

/// The offset of a time zone from UTC in ns, from `Z`, `+01`, `+01:00` or `-0700`; zones east of UTC are positive.
/// Returns `Some(None)` for an empty text, because the time then has no zone, and `None` for a text that is no
/// offset.
fn ahead(zone: &str) -> Option<Option<i64>> {
    let sign = match zone.chars().next() {
        None => return Some(None),
        Some('Z') => return (zone == "Z").then_some(Some(0)),
        Some('-') => -1,
        Some(_) => 1,
    };
    let mut rest = zone.chars();
    rest.next();
    let (hours, minutes) = rest.as_str().split_at_checked(2)?;
    let minutes = minutes.strip_prefix(':').unwrap_or(minutes);
    let number = |digits: &str| -> Option<i64> {
        let is_number = digits.len() == 2 && digits.bytes().all(|byte| byte.is_ascii_digit());
        digits.parse().ok().filter(|_| is_number)
    };
    let hours = number(hours)?;
    let minutes = if minutes.is_empty() {
        0
    } else {
        number(minutes)?
    };
    let valid = (0..=14).contains(&hours) && (0..60).contains(&minutes);
    valid.then_some(Some(sign * (hours * 60 + minutes) * 60 * SECOND))
}

fn numbers(text: &str, between: char) -> Option<[i64; 3]> {
    let mut numbers = text.split(between).map(|part| {
        let digits = part.bytes().all(|byte| byte.is_ascii_digit()) && part.len() <= 4;
        part.parse().ok().filter(|_| digits)
    });
    let three = [numbers.next()??, numbers.next()??, numbers.next()??];
    numbers.next().is_none().then_some(three)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_of_the_day() {
        let unix = |text| read(text).map(|date| date.local - date.ahead.unwrap_or(0));
        for (text, want) in [
            ("1970-01-01T00:00:00Z", Some(0)),
            ("2000-02-29T12:00:00+00:00", Some(951_825_600)),
            ("2026-11-23T05:54:06Z", Some(1_795_413_246)),
            ("2026-11-23 06:54:06+1:00", None),
            ("2026-11-23 06:54:06+0100", Some(1_795_413_246)),
            ("2026-11-22T23:54:06-06", Some(1_795_413_246)),
            ("2026-11-23T05:54:06", Some(1_795_413_246)),
            ("2026-13-01T00:00:00Z", None),
            ("2026-11-23T05:54", None),
            ("2026-11-23T05:54:06+x", None),
            ("20261123T055406Z", Some(1_795_413_246)),
            ("20261123T065406+0100", Some(1_795_413_246)),
            ("20261123T0554", None),
            ("2026-11-23T05:54:06Z[UTC]", Some(1_795_413_246)),
            (
                "2026-11-23T06:54:06+01:00[Europe/Berlin]",
                Some(1_795_413_246),
            ),
            ("Mon, 23 Nov 2026 05:54:06 GMT", Some(1_795_413_246)),
            ("23 Nov 2026 06:54:06 +0100", Some(1_795_413_246)),
            ("Mon, 23 Nov 2026 05:54 GMT", None),
            ("Mon, 23 Foo 2026 05:54:06 GMT", None),
            ("1795413246", Some(1_795_413_246)),
            ("1795413246000", Some(1_795_413_246)),
            ("179541324600", None),
            ("2026-1é-23T05:54:06", None),
            ("", None),
        ] {
            assert_eq!(unix(text), want.map(|s: i64| s * SECOND), "{text}");
        }
        let date = read("2026-11-23T05:54:06.25").expect("a date");
        assert_eq!((date.local % SECOND, date.digit), (250_000_000, 10_000_000));
        assert_eq!(date.ahead, None);
        let date = read("1795413246250.5").expect("a date");
        assert_eq!((date.local % SECOND, date.digit), (250_500_000, 100_000));
    }
}
