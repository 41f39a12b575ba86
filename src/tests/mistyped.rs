//! Unit tests of `mistyped`.

use super::*;

const OURS: [&str; 4] = ["record", "analyze", "diff", "man"];

#[test]
fn words_near_ours() {
    for (word, ours) in [
        ("recrod", "record"),
        ("recor", "record"),
        ("Record", "record"),
        ("anaylse", "analyze"),
        ("dif", "diff"),
        ("amn", "man"),
    ] {
        assert_eq!(near(word, &OURS), Some(ours), "{word}");
    }
    for word in [
        "a-z",
        "abc",
        "re",
        "",
        "hlep",
        "mine",
        "recorders of it all",
    ] {
        assert_eq!(near(word, &OURS), None, "{word}");
    }
}

#[test]
fn operands_are_counted_as_tr_counts_them() {
    let accepted = |line: &str| {
        let args: Vec<OsString> = line.split(' ').map(OsString::from).collect();
        accepted(&args)
    };
    for line in [
        "a b", "-d a", "-s a", "-s a b", "-ds a b", "-t a b", "-- -a -b", "- _",
    ] {
        assert_ne!(accepted(line), Accepted::No, "{line}");
    }
    for line in [
        "a",
        "a b c",
        "-d a b",
        "-x a b",
        "-ds a",
        "--del a b",
        "--x a b",
        "-c",
    ] {
        assert_eq!(accepted(line), Accepted::No, "{line}");
    }
    assert_eq!(accepted("a -d"), Accepted::AsSet);
    assert_eq!(accepted("--comp --del a"), Accepted::Yes);
}
