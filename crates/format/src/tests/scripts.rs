//! Unit tests of `scripts`.

use super::*;
use crate::event::Ktime;
use crate::mask::Masked;
use crate::meta::Summary;
use crate::section::{put_section, take_section};

fn script(path: &str, text: impl Into<Vec<u8>>) -> RecordedScript {
    RecordedScript {
        path: path.into(),
        text: Some(text.into()),
    }
}

fn with(scripts: Vec<RecordedScript>) -> Summary {
    Summary {
        end: Ktime(1),
        scripts,
        ..Summary::default()
    }
}

/// Writes a summary with these scripts, and returns the summary that a reader gets from the written bytes.
fn back(scripts: Vec<RecordedScript>) -> Summary {
    let body = put_section(Masked::trusted(with(scripts))).unwrap();
    take_section(&body).unwrap().0
}

#[test]
fn a_path_is_that_of_the_word_in_the_directory() {
    for (directory, word, path) in [
        ("/w", "x.sh", Some("/w/x.sh")),
        ("/w/", "./a//./x.sh", Some("/w/a/x.sh")),
        ("/w", "../x.sh", Some("/w/../x.sh")),
        ("/w", "/o/./x.sh", Some("/o/x.sh")),
        ("", "/o/x.sh", Some("/o/x.sh")),
        ("/", ".", Some("/")),
        ("", "x.sh", None),
        ("w", "x.sh", None),
        ("/w", "", None),
    ] {
        let made = path_of(directory.as_bytes(), word.as_bytes());
        assert_eq!(
            made.as_deref(),
            path.map(str::as_bytes),
            "{directory} {word}"
        );
    }
}

#[test]
fn a_script_is_found_by_directory_and_word() {
    let summary = back(vec![
        script("/w/x.sh", "exit 3"),
        RecordedScript {
            path: b"/w/y.sh".to_vec(),
            text: None,
        },
    ]);
    let text = |word: &str| {
        let script = summary.script(b"/w", word.as_bytes())?;
        Some(script.text.as_deref())
    };
    assert_eq!(text("./x.sh"), Some(Some(&b"exit 3"[..])));
    assert_eq!(text("/w/y.sh"), Some(None));
    assert_eq!(text("z.sh"), None);
}

#[test]
fn what_is_beyond_a_limit_is_left_out_as_a_whole() {
    let most = vec![b'x'; limits::SCRIPT as usize];
    let more = vec![b'x'; limits::SCRIPT as usize + 1];
    let summary = back(vec![script("/a", more), script("/b", most.clone())]);
    assert_eq!(summary.scripts, [script("/b", most.clone())]);
    assert_eq!(summary.scripts_left_out, 1);

    // These 20 scripts have the largest allowed length. Only 16 of them fit into the largest length that all scripts
    // may have together.
    let all = (0..20).map(|at| script(&format!("/{at}"), most.clone()));
    let summary = back(all.collect());
    assert_eq!((summary.scripts.len(), summary.scripts_left_out), (16, 4));

    let all = (0..300).map(|at| script(&format!("/{at}"), "x"));
    let summary = back(all.collect());
    assert_eq!((summary.scripts.len(), summary.scripts_left_out), (256, 44));

    let long = "/".repeat(limits::NAME + 1);
    assert_eq!(back(vec![script(&long, "x")]).scripts_left_out, 1);
}

/// The bytes of a summary that has one field, with this tag and this value.
fn field(tag: u8, value: &impl Serialize) -> Vec<u8> {
    let value = bincode::serde::encode_to_vec(value, bincode::config::standard()).unwrap();
    let mut body = vec![tag];
    crate::varint::put(&mut body, value.len() as u64);
    body.extend(value);
    body
}

#[test]
fn a_summary_beyond_a_limit_is_refused() {
    let read = |scripts: Vec<RecordedScript>| take_section::<Summary>(&field(17, &Some(scripts)));
    let most = vec![b'x'; limits::SCRIPT as usize];
    assert!(read(vec![script("/a", most.clone())]).is_ok());
    let refused = |scripts: Vec<RecordedScript>, what: &str| {
        let fault = read(scripts).unwrap_err();
        assert!(fault.to_string().contains(what), "{fault}");
    };
    let more = vec![b'x'; limits::SCRIPT as usize + 1];
    refused(vec![script("/a", more)], "the length of a script");
    refused(vec![script("/a", most); 17], "the length of all scripts");
    refused(vec![script("/a", ""); 257], "the number of scripts");
    let long = "/".repeat(limits::NAME + 1);
    refused(vec![script(&long, "")], "the length of a script's path");

    // The stored length of a script's text is 2^60 bytes, but the text is missing.
    let mut bomb = vec![17, 13, 1, 1, 0, 1, 253];
    bomb.extend_from_slice(&(1u64 << 60).to_le_bytes());
    assert!(take_section::<Summary>(&bomb).is_err());
    // The stored length of the list is 2^60 scripts, but the scripts are missing.
    let mut bomb = vec![17, 10, 1, 253];
    bomb.extend_from_slice(&(1u64 << 60).to_le_bytes());
    assert!(take_section::<Summary>(&bomb).is_err());
}

#[test]
fn a_file_with_another_text_in_a_later_part_has_changed() {
    let before = vec![script("/a", "1"), script("/b", "2")];
    let after = vec![script("/b", "3"), script("/c", "4"), script("/a", "1")];
    let changed = RecordedScript {
        path: b"/b".to_vec(),
        text: None,
    };
    assert_eq!(
        joined(before, after),
        [script("/a", "1"), changed, script("/c", "4")]
    );
}
