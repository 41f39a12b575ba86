//! ARCHITECTURE.md names places that exist.
#![allow(clippy::unwrap_used)] // in a test

use std::path::Path;

const TEXT: &str = include_str!("../ARCHITECTURE.md");

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// The cells of the tables' rows, between back quotes.
fn quoted(line: &str) -> impl Iterator<Item = &str> {
    line.split('`').skip(1).step_by(2)
}

/// Each walk's function is in its file.
#[test]
fn the_walks_end_where_the_code_does() {
    let (_, walks) = TEXT.split_once("## Four walks").unwrap();
    let (walks, _) = walks.split_once("\n## ").unwrap();
    let rows: Vec<&str> = walks
        .lines()
        .filter(|line| line.starts_with("| where"))
        .collect();
    assert_eq!(rows.len(), 4);
    for row in rows {
        let cells: Vec<&str> = row.trim_matches('|').split('|').collect();
        let (file, function) = (cells[1].trim(), cells[2].trim());
        let file = std::fs::read_to_string(root().join(file.trim_matches('`'))).unwrap();
        let function = format!("fn {}(", function.trim_matches('`'));
        assert!(file.contains(&function), "{row}");
    }
}

/// Every file of the way of one event exists. A name without a path lies in the directory
/// of the file before it.
#[test]
fn the_files_of_the_way_exist() {
    let (_, way) = TEXT.split_once("## The way of one event").unwrap();
    let (way, _) = way.split_once("\n## ").unwrap();
    let mut found = 0;
    for row in way
        .lines()
        .filter(|line| line.contains(".rs`") || line.contains("/`"))
    {
        let mut before = Path::new("");
        for name in quoted(row).filter(|name| name.contains('.') || name.ends_with('/')) {
            let name = name.split(['{', '*']).next().unwrap();
            let beside = before.parent().unwrap_or(before).join(name);
            let direct = root().join(name).exists();
            assert!(direct || root().join(&beside).exists(), "{name} in {row}");
            before = if direct { Path::new(name) } else { before };
            found += 1;
        }
    }
    assert!(found > 25, "{found}");
}
