//! Compares the public items of the core crates with the committed lists (`crates/NAME/api.txt`), so that no item
//! becomes public by accident. `TR_UPDATE=1 cargo test --test api` rewrites the lists.
//!
//! The items are read from sources in rustfmt's layout: the block of an item ends at the next line that has the item's
//! indentation and begins with `}`. Items that are re-exported from other crates are listed as `use`. Items whose names
//! a macro makes up are not listed.
#![allow(clippy::unwrap_used, clippy::indexing_slicing)] // in a test

mod sources;

use std::path::Path;

/// The crates whose public items are listed in `api.txt`.
const CRATES: &[&str] = &[
    "analyze", "bpf", "format", "insight", "failure", "advice", "placing", "output", "programs",
    "record", "redact", "report", "symbols", "text",
];

#[test]
fn public_items_are_listed() {
    let mut differences = String::new();
    for name in CRATES {
        let directory = Path::new(env!("CARGO_MANIFEST_DIR"))
            .join("crates")
            .join(name);
        let items = sources::Sources::read(&directory.join("src")).public_items();
        let list = directory.join("api.txt");
        if std::env::var_os("TR_UPDATE").is_some() {
            std::fs::write(&list, items.join("\n") + "\n").unwrap();
            continue;
        }
        let text = std::fs::read_to_string(&list).unwrap_or_default();
        let listed: Vec<&str> = text.lines().collect();
        for item in items.iter().filter(|item| !listed.contains(&item.as_str())) {
            differences += &format!("{name}: not listed: {item}\n");
        }
        for item in listed
            .iter()
            .filter(|item| !items.iter().any(|found| found == *item))
        {
            differences += &format!("{name}: listed, but absent: {item}\n");
        }
    }
    assert!(
        differences.is_empty(),
        "crates/NAME/api.txt lists other public items; after a change on purpose, \
         `TR_UPDATE=1 cargo test --test api` rewrites it:\n{differences}"
    );
}

/// The sources contain each way in which an item can become public, and some ways in which it stays private.
#[test]
fn public_items_are_found() {
    let root = "
#![forbid(unsafe_code)]

pub mod open {
    pub fn helper() {}
    pub(crate) fn hidden() {}
}
mod inner;
pub use inner::{deep::Leaf, Kept as Renamed, LIMIT};
pub use std::path::Path;
#[cfg(test)]
mod tests {
    pub fn check() {}
}
pub enum Side {
    Left,
    Right { far: bool },
}
named! {
    /// A documented enum.
    pub enum Word {
        First = \"first\",
    }
}
";
    let inner = "
pub const LIMIT: u32 = 3;
pub struct Kept {
    pub size: u32,
    secret: u32,
}
pub struct Unused;
impl<F: for<'a> Fn(&'a str)> Kept {
    pub const fn new() -> Kept {
        pub fn nested() {}
    }
    fn private(&self) {}
}
impl Clone for Kept {
    fn clone(&self) -> Kept {}
}
pub mod deep {
    pub trait Leaf {
        const HEIGHT: u32;
        fn grow(&self);
    }
}
";
    let mut sources = sources::Sources::default();
    sources.add("", root);
    sources.add("inner", inner);
    let expected = [
        "Leaf::HEIGHT",
        "Leaf::grow",
        "Renamed.size",
        "Renamed::new",
        "Side::Left",
        "Side::Right",
        "Word::First",
        "const LIMIT",
        "enum Side",
        "enum Word",
        "fn open::helper",
        "mod open",
        "struct Renamed",
        "trait Leaf",
        "use std::path::Path",
    ];
    assert_eq!(sources.public_items(), expected);
}
