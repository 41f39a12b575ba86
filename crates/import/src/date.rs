//! Times of the day, as JUnit XML has them: `2026-11-23T05:54:00.123+01:00`.

use tr_insight::imports::junit::Date;
use tr_text::units;

const SECOND: i64 = 1_000_000_000;

/// Reads a time of the day.
pub fn read(text: &str) -> Option<Date> {
    let text = text.trim();
    let (day, rest) = text.split_at_checked(10)?;
    let rest = rest.strip_prefix(['T', ' '])?;
    let zone = rest.find(['Z', '+', '-']).unwrap_or(rest.len());
    let (clock, zone) = rest.split_at_checked(zone)?;
    let (seconds, fraction) = clock.split_once(['.', ',']).unwrap_or((clock, ""));
    let [year, month, date] = numbers(day, '-')?;
    let [hour, minute, second] = numbers(seconds, ':')?;
    let valid = (1970..=2200).contains(&year)
        && (1..=12).contains(&month)
        && (1..=31).contains(&date)
        && hour < 24
        && minute < 60
        && second <= 60;
    if !valid {
        return None;
    }
    let (mut part, mut digit) = (0, SECOND);
    for letter in fraction.chars().take(9) {
        digit /= 10;
        part += i64::from(letter.to_digit(10)?) * digit;
    }
    let seconds = ((units::days(year, month, date) * 24 + hour) * 60 + minute) * 60 + second;
    Some(Date {
        local: seconds * SECOND + part,
        ahead: ahead(zone)?,
        digit,
    })
}

/// The difference of a zone from UTC in ns: `Z`, `+01:00`, `-0700`; `Some(None)` for no zone.
fn ahead(zone: &str) -> Option<Option<i64>> {
    let sign = match zone.chars().next() {
        None => return Some(None),
        Some('Z') => return (zone == "Z").then_some(Some(0)),
        Some('-') => -1,
        Some(_) => 1,
    };
    let digits: String = zone
        .chars()
        .skip(1)
        .filter(|letter| *letter != ':')
        .collect();
    let (hours, minutes) = digits.split_at_checked(2)?;
    let hours: i64 = hours.parse().ok()?;
    let minutes: i64 = if minutes.is_empty() {
        0
    } else {
        minutes.parse().ok()?
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
            ("2026-11-23 06:54:06+0100", Some(1_795_413_246)),
            ("2026-11-22T23:54:06-06", Some(1_795_413_246)),
            ("2026-11-23T05:54:06", Some(1_795_413_246)),
            ("2026-13-01T00:00:00Z", None),
            ("2026-11-23T05:54", None),
            ("2026-11-23T05:54:06+x", None),
            ("2026-1é-23T05:54:06", None),
            ("", None),
        ] {
            assert_eq!(unix(text), want.map(|s: i64| s * SECOND), "{text}");
        }
        let date = read("2026-11-23T05:54:06.25").expect("a date");
        assert_eq!((date.local % SECOND, date.digit), (250_000_000, 10_000_000));
        assert_eq!(date.ahead, None);
    }
}
