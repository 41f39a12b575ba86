//! Parses the values of command line options: sizes, durations, shares, numbers of CPUs.

// A program that was built without some features has fewer options, so some parsers are unused.
#![cfg_attr(not(all(feature = "record", feature = "export")), allow(dead_code))]

use std::time::Duration;

use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};

/// Parses a number of bytes, which can have a unit: `64M`, `16384`, `16K`.
pub fn size(text: &str) -> Result<u64, String> {
    let digits = text.trim_end_matches(|c: char| c.is_ascii_alphabetic());
    let unit = text.get(digits.len()..).unwrap_or_default();
    let shift = match unit.to_ascii_uppercase().as_str() {
        "" | "B" => 0,
        "K" | "KB" | "KIB" => 10,
        "M" | "MB" | "MIB" => 20,
        "G" | "GB" | "GIB" => 30,
        _ => return Err(format!("unknown unit {unit:?} (K, M and G are known)")),
    };
    let number: u64 = digits
        .parse()
        .map_err(|_| "not a number of bytes such as 64M".to_owned())?;
    number
        .checked_mul(1 << shift)
        .ok_or_else(|| "too large".to_owned())
}

/// Converts a duration to nanoseconds; a duration that does not fit into 64 bits becomes `u64::MAX`.
pub fn nanoseconds(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}

/// Parses a duration: `10s`, `500ms`, `2m`, `1.5`. Without a unit it is in seconds.
pub fn duration(text: &str) -> Result<Duration, String> {
    let digits = text.trim_end_matches(|c: char| c.is_ascii_alphabetic());
    let unit = text.get(digits.len()..).unwrap_or_default();
    let scale = match unit {
        "ns" => 1e-9,
        "us" => 1e-6,
        "ms" => 1e-3,
        "" | "s" => 1.0,
        "m" | "min" => 60.0,
        "h" => 3600.0,
        _ => {
            return Err(format!(
                "unknown unit {unit:?} (ns, us, ms, s, m and h are known)"
            ))
        }
    };
    let number: f64 = digits
        .parse()
        .map_err(|_| "not a time such as 10s or 500ms".to_owned())?;
    Duration::try_from_secs_f64(number * scale).map_err(|e| e.to_string())
}

/// Parses a [`duration`] that must have a unit, because most values are in ms: a plain 10 would mean 10 s.
pub fn duration_with_unit(text: &str) -> Result<Duration, String> {
    let duration = duration(text)?;
    if duration.is_zero() || text.ends_with(|c: char| c.is_ascii_alphabetic()) {
        Ok(duration)
    } else {
        Err(format!("a time needs a unit here: {text}ms or {text}s"))
    }
}

/// Parses the number of rows that a table of a report shows: `10`, or `all` for no limit.
pub fn rows(text: &str) -> Result<usize, String> {
    match text {
        "all" => Ok(usize::MAX),
        text => text
            .parse()
            .map_err(|_| "not a number of rows such as 20, or all".to_owned()),
    }
}

/// Parses a whole number of any type that is not negative. The error is text for the user.
pub fn number<N: std::str::FromStr>(text: &str) -> Result<N, String> {
    text.parse()
        .map_err(|_| "not a number such as 4, or too large".to_owned())
}

/// Parses the value of an option that must be a [`duration`] longer than 0.
pub fn length(text: &str) -> Result<Duration, String> {
    match duration(text)? {
        Duration::ZERO => Err("must be longer than 0".to_owned()),
        length => Ok(length),
    }
}

/// Parses a share in percent: `10%`, `2.5`.
pub fn percent(text: &str) -> Result<f64, String> {
    let number: f64 = text
        .strip_suffix('%')
        .unwrap_or(text)
        .trim()
        .parse()
        .map_err(|_| "not a share such as 10%".to_owned())?;
    if number.is_finite() && number >= 0.0 {
        Ok(number)
    } else {
        Err("not a share of 0% or more".to_owned())
    }
}

/// Parses numbers of CPUs: `0-3,8`.
pub fn cpus(text: &str) -> Result<Cpus, String> {
    let number = |n: &str| {
        n.trim()
            .parse::<u16>()
            .map_err(|_| format!("{n:?} is no CPU's number"))
    };
    let mut cpus = Vec::new();
    for part in text.split(',') {
        let (first, last) = match part.split_once('-') {
            Some((first, last)) => (number(first)?, number(last)?),
            None => (number(part)?, number(part)?),
        };
        if last < first {
            return Err(format!("{part}: the second is smaller than the first"));
        }
        cpus.extend(first..=last);
    }
    cpus.sort_unstable();
    cpus.dedup();
    Ok(Cpus(cpus))
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cpus(pub Vec<u16>);

/// A clap parser for an option whose values are words. Each word stands for a value of type `T` and may have a line of
/// help.
pub fn words<T: Copy + Send + Sync + 'static, W: Into<PossibleValue>>(
    known: impl IntoIterator<Item = (T, W)>,
) -> impl TypedValueParser<Value = T> {
    let known = known.into_iter().map(|(value, word)| (value, word.into()));
    let known: Vec<(T, PossibleValue)> = known.collect();
    let words = known.iter().map(|(_, word)| word.clone());
    PossibleValuesParser::new(words.collect::<Vec<_>>()).try_map(move |given| {
        let meant = known.iter().find(|(_, word)| word.matches(&given, false));
        meant.map(|(value, _)| *value).ok_or("no such word")
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes() {
        assert_eq!(size("16384"), Ok(16384));
        assert_eq!(size("64M"), Ok(64 << 20));
        assert_eq!(size("1KiB"), Ok(1024));
        assert!(
            size("12X").is_err()
                && size("M").is_err()
                && size("99999999999G").is_err()
                && size("-1").is_err()
        );
    }

    #[test]
    fn durations() {
        assert_eq!(duration("10s"), Ok(Duration::from_secs(10)));
        assert_eq!(duration("500ms"), Ok(Duration::from_millis(500)));
        assert_eq!(duration("1.5"), Ok(Duration::from_millis(1500)));
        assert!(
            duration("10 parsecs").is_err() && duration("-1s").is_err() && duration("inf").is_err()
        );
        assert!(length("0").is_err() && length("0ms").is_err() && length("1ns").is_ok());
    }

    #[test]
    fn times_with_units() {
        for text in ["10ms", "1.5s", "0", "0ns"] {
            assert_eq!(duration_with_unit(text), duration(text), "{text}");
        }
        let refused = duration_with_unit("10").unwrap_err();
        assert_eq!(refused, "a time needs a unit here: 10ms or 10s");
    }

    #[test]
    fn numbers() {
        assert_eq!((rows("20"), rows("all")), (Ok(20), Ok(usize::MAX)));
        assert!(rows("every").unwrap_err().contains("20, or all"));
        assert_eq!(number::<u32>("7"), Ok(7));
        assert!(number::<u32>("-7").is_err() && number::<u16>("70000").is_err());
    }

    #[test]
    fn shares() {
        assert_eq!((percent("10%"), percent("2.5")), (Ok(10.0), Ok(2.5)));
        assert!(percent("-1%").is_err() && percent("nan").is_err() && percent("%").is_err());
    }

    #[test]
    fn cpu_lists() {
        assert_eq!(cpus("0-2,5,1"), Ok(Cpus(vec![0, 1, 2, 5])));
        assert!(cpus("3-1").is_err() && cpus("a").is_err() && cpus("").is_err());
    }
}
