//! Parses the values of `--rotate`, which divides a recording into several files, and makes the names of
//! these files.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::time::Duration;

use tr_record::Rotation;

use crate::args;

/// A value of `--rotate`: the length in time or the size in bytes at which one file of the recording ends and
/// the next one begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Limit {
    Length(Duration),
    Size(u64),
}

/// The smallest size in bytes for `--rotate`: every file repeats the metadata and the living tasks, which
/// take some 20 KB on a busy machine.
const SMALLEST_PART: u64 = 100 << 10;
/// The smallest value in bytes of `--max-size`. The recorder reads new events at intervals. In one interval, a very
/// busy machine makes up to 1 MB of events, and these must fit into the file.
const LEAST_FILE: u64 = 1 << 20;
const SHORTEST_PART: Duration = Duration::from_secs(2);

/// Parses a value of `--rotate`, whose unit shows whether it is a time or a size: `1h`, `100M`.
pub fn limit(text: &str) -> Result<Limit, String> {
    let unit = text.trim_start_matches(|letter: char| letter.is_ascii_digit() || letter == '.');
    match unit {
        "" => Err("give a unit: 1h is a length, 100M a size".to_owned()),
        "s" | "m" | "min" | "h" => match args::length(text)? {
            length if length < SHORTEST_PART => Err("a part must last at least 2s".to_owned()),
            length => Ok(Limit::Length(length)),
        },
        _ => match args::size(text)? {
            size if size < SMALLEST_PART => Err("a part must be at least 100K".to_owned()),
            size => Ok(Limit::Size(size)),
        },
    }
}

/// Parses the size at which a recording ends (`--max-size`): `100M`.
pub fn file_size(text: &str) -> Result<u64, String> {
    match args::size(text)? {
        size if size < LEAST_FILE => Err("a file must be at least 1M".to_owned()),
        size => Ok(size),
    }
}

/// The rules by which `--rotate` divides a recording into files, from its values; `None` without values. If
/// several values are times, or several are sizes, the last one counts.
pub fn rotation(limits: &[Limit]) -> Option<Rotation> {
    let length = |limit: &Limit| match limit {
        Limit::Length(length) => Some(*length),
        Limit::Size(_) => None,
    };
    let size = |limit: &Limit| match limit {
        Limit::Size(size) => Some(*size),
        Limit::Length(_) => None,
    };
    (!limits.is_empty()).then_some(Rotation {
        every: limits.iter().rev().find_map(length),
        size: limits.iter().rev().find_map(size),
        name,
    })
}

/// The name of one file of a rotated recording: `trace.bin` → `trace.20261125T163437Z.bin`, with the UTC time
/// at which the file begins. A second file of the same second has a number, `…Z_2.bin`, and sorts after it.
fn name(output: &Path, real: u64, number: Option<u32>) -> PathBuf {
    let mut file = output.file_stem().unwrap_or_default().to_owned();
    file.push(format!(".{}", tr_text::units::iso8601(real)));
    if let Some(number) = number {
        file.push(format!("_{number}"));
    }
    if let Some(extension) = output.extension() {
        file.push(".");
        file.push(extension);
    }
    output.with_file_name::<OsString>(file)
}

#[cfg(test)]
mod tests {
    use tr_output::Target;

    use super::*;

    #[test]
    fn a_unit_tells_a_length_from_a_size() {
        assert_eq!(limit("1h"), Ok(Limit::Length(Duration::from_secs(3600))));
        assert_eq!(limit("100m"), Ok(Limit::Length(Duration::from_secs(6000))));
        assert_eq!(limit("100M"), Ok(Limit::Size(100 << 20)));
        for refused in ["100", "1s", "1K", "5d", "h"] {
            assert!(limit(refused).is_err(), "{refused}");
        }
        let both = rotation(&[Limit::Size(7), Limit::Length(SHORTEST_PART)]).unwrap();
        assert_eq!((both.size, both.every), (Some(7), Some(SHORTEST_PART)));
        assert!(rotation(&[]).is_none());
    }

    #[test]
    fn names_have_the_moment_of_the_begin() {
        let real = 1_795_625_175_495_022_292;
        let named = |path: &str| name(Path::new(path), real, None).display().to_string();
        assert_eq!(named("trace.bin"), "trace.20261125T164615Z.bin");
        assert_eq!(named("/var/log/host"), "/var/log/host.20261125T164615Z");
    }

    #[test]
    fn a_part_replaces_no_file() {
        let dir = tempfile::tempdir().unwrap();
        let output = Target::File(dir.path().join("host.bin"));
        let rotation = rotation(&[Limit::Length(SHORTEST_PART)]).unwrap();
        let names: Vec<_> = std::iter::repeat_with(|| match rotation.target(&output, 0) {
            Target::File(path) => {
                std::fs::write(&path, "").unwrap();
                path.file_name().unwrap().display().to_string()
            }
            Target::Stdout => panic!("standard output"),
        })
        .take(3)
        .collect();
        let expected =
            ["Z.bin", "Z_2.bin", "Z_3.bin"].map(|suffix| format!("host.19700101T000000{suffix}"));
        assert_eq!(names, expected);
        assert!(names.is_sorted());
    }
}
