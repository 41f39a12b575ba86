//! Names the files of a rotated recording as a user types them: by one pattern of the shell.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use tr_text::escape;

/// The largest number of files of a directory that are compared with a shell pattern, so that a huge directory costs no
/// more time.
const FILES: usize = 10_000;

/// A shell pattern that matches the given files and no other file in their directory, such as `day/host.2026*Z.bin`.
/// `count` is the number of the files; `first` and `last` are the first and the last one by name. `None` if no such
/// pattern is found. If this process may not read the directory (`confine.rs`), other files are not considered.
pub fn of(first: &Path, last: &Path, count: u64) -> Option<String> {
    let (one, other) = (first.file_name()?.as_bytes(), last.file_name()?.as_bytes());
    if count < 2 || first.parent() != last.parent() {
        return None;
    }
    let begin = one.iter().zip(other).take_while(|(a, b)| a == b).count();
    let rest = one.get(begin..)?.iter().rev();
    let rest = rest.zip(other.get(begin..)?.iter().rev());
    let end = rest.take_while(|(a, b)| a == b).count();
    let (begin, end) = (one.get(..begin)?, one.get(one.len() - end..)?);
    let directory = first.parent().filter(|at| !at.as_os_str().is_empty());
    let is_one = |name: &OsStr| {
        let rest = name.as_bytes().strip_prefix(begin);
        rest.is_some_and(|rest| rest.ends_with(end))
    };
    if let Ok(files) = std::fs::read_dir(directory.unwrap_or(Path::new("."))) {
        let mut files = files.flatten();
        let names = files.by_ref().take(FILES).map(|file| file.file_name());
        let is_all = names.filter(|name| is_one(name)).count() as u64 == count;
        // If the directory has more files than are examined, the pattern might also match a file that was not examined.
        if !is_all || files.next().is_some() {
            return None;
        }
    }
    let begin = first.with_file_name(OsStr::from_bytes(begin));
    let quoted = |bytes: &[u8]| {
        let word = if bytes.is_empty() {
            String::new()
        } else {
            escape::word(bytes)
        };
        escape::text(word.as_bytes())
    };
    Some(format!(
        "{}*{}",
        quoted(begin.as_os_str().as_bytes()),
        quoted(end)
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_have_a_pattern_that_matches_them_alone() {
        let directory = tempfile::tempdir().unwrap();
        let at = |name: &str| directory.path().join(name);
        for name in [
            "host.20261129T034557Z.bin",
            "host.20261129T034601Z.bin",
            "host.20261129T040000Z.bin",
        ] {
            std::fs::write(at(name), "").unwrap();
        }
        let of = |last: &str, count| {
            let pattern = of(&at("host.20261129T034557Z.bin"), &at(last), count)?;
            Some(pattern.rsplit('/').next().unwrap().to_owned())
        };
        assert_eq!(
            of("host.20261129T040000Z.bin", 3).as_deref(),
            Some("host.20261129T0*Z.bin")
        );
        assert_eq!(
            of("host.20261129T034601Z.bin", 2).as_deref(),
            Some("host.20261129T034*Z.bin")
        );
        // A pattern for these files would match another file, too.
        assert_eq!(of("host.20261129T040000Z.bin", 2), None);
        assert_eq!(of("host.20261129T034557Z.bin", 1), None);
    }

    #[test]
    fn a_pattern_is_quoted_but_for_its_star() {
        let directory = tempfile::tempdir().unwrap();
        let in_it = |name: &str| directory.path().join(name);
        for name in ["my 1.bin", "my 2.bin"] {
            std::fs::write(in_it(name), "").unwrap();
        }
        let pattern = of(&in_it("my 1.bin"), &in_it("my 2.bin"), 2).unwrap();
        assert!(pattern.ends_with("/my '*.bin"), "{pattern}");
    }
}
