//! The data in the page of `tr report` is declared once, in `crates/report/src/html`. This test generates the
//! TypeScript interface `crates/report/web/src/doc.ts` from these declarations and compares the result with the file.
//! `TR_UPDATE=1` rewrites the file.
#![allow(clippy::unwrap_used)] // in a test

use std::collections::BTreeMap;
use std::fmt::Write;
use std::path::Path;

const HEAD: &str =
    "// The data in the page, as the file has it. Made from crates/report/src/html by\n\
                    // `TR_UPDATE=1 cargo test --test page_data`: do not edit.\n";

/// A Rust type whose values are in the page.
#[derive(Default)]
struct Declaration {
    /// Whether the values form a table, so that each field becomes an array.
    is_table: bool,
    /// The comment, the name and the type of each field.
    fields: Vec<(String, String, String)>,
    /// The types whose fields are included in this type.
    parts: Vec<String>,
}

/// The declarations in a source file in rustfmt's layout, by the names of the types.
fn declarations(text: &str) -> BTreeMap<String, Declaration> {
    let mut all: BTreeMap<String, Declaration> = BTreeMap::new();
    let mut open: Option<(String, String)> = None;
    let (mut comments, mut attribute) = (Vec::new(), "");
    for line in text.lines() {
        let inner = line.trim_start();
        let indent = &line[..line.len() - inner.len()];
        let Some((name, inside)) = &open else {
            let start = inner
                .strip_prefix("columns!(")
                .or_else(|| inner.strip_prefix("pub struct "))
                .or_else(|| inner.strip_prefix("struct "))
                .or_else(|| Some(inner).filter(|_| indent == "    "));
            let end = |c: char| !c.is_alphanumeric();
            let name = start.filter(|_| line.ends_with('{')).and_then(|start| {
                let (name, rest) = start.split_at(start.find(end)?);
                let is = name.starts_with(char::is_uppercase);
                let follows = if inner.contains("struct ") { ' ' } else { '(' };
                (is && rest.starts_with(follows)).then(|| name.to_owned())
            });
            if let Some(name) = name {
                let declaration = Declaration {
                    is_table: inner.starts_with("columns!("),
                    ..Declaration::default()
                };
                all.insert(name.clone(), declaration);
                open = Some((name, format!("{indent}    ")));
            }
            continue;
        };
        if inside.strip_suffix("    ") == Some(indent) && inner.starts_with('}') {
            open = None;
            continue;
        }
        if indent != inside {
            continue;
        }
        if let Some(comment) = inner.strip_prefix("//") {
            comments.push(comment.trim_start_matches('/').trim());
            continue;
        }
        if inner.starts_with("#[") {
            attribute = inner;
            continue;
        }
        let comment = std::mem::take(&mut comments).join(" ");
        let attribute = std::mem::take(&mut attribute);
        let Some((field, rest)) = inner.split_once(": ") else {
            continue;
        };
        let of = rest
            .split_once(" = ")
            .map_or(rest.trim_end_matches(','), |(of, _)| of);
        let declaration = all.get_mut(name).unwrap();
        if attribute.contains("flatten") {
            declaration.parts.push(of.to_owned());
        } else if attribute.contains("skip_serializing_if") {
            let of = of.strip_prefix("Option<").unwrap().strip_suffix('>');
            let field = format!("{field}?");
            declaration
                .fields
                .push((comment, field, of.unwrap().to_owned()));
        } else {
            declaration
                .fields
                .push((comment, field.to_owned(), of.to_owned()));
        }
    }
    all
}

/// The TypeScript name of a Rust type.
fn typescript(of: &str, aliases: &BTreeMap<&str, &str>) -> String {
    let generic = |name: &str| of.strip_prefix(name)?.strip_suffix('>');
    let array = |of: &str| match typescript(of, aliases) {
        of if of.ends_with("| null") => format!("({of})[]"),
        of => format!("{of}[]"),
    };
    if let Some(of) = aliases.get(of) {
        return typescript(of, aliases);
    }
    if let Some(of) = generic("Option<") {
        return format!("{} | null", typescript(of, aliases));
    }
    if let Some(of) = generic("Vec<") {
        return array(of);
    }
    if let Some(of) = of
        .strip_prefix("&'static [")
        .and_then(|of| of.strip_suffix(']'))
    {
        return array(of);
    }
    let inner = of.strip_prefix('[').and_then(|of| of.strip_suffix(']'));
    if let Some((of, count)) = inner.and_then(|of| of.split_once("; ")) {
        let each = vec![typescript(of, aliases); count.parse().unwrap()];
        return format!("[{}]", each.join(", "));
    }
    if let Some(of) = of.strip_prefix('(').and_then(|of| of.strip_suffix(')')) {
        let each: Vec<String> = of.split(", ").map(|of| typescript(of, aliases)).collect();
        return format!("[{}]", each.join(", "));
    }
    match of {
        "bool" => "boolean".into(),
        "String" | "&'static str" => "string".into(),
        "u8" | "u32" | "u64" | "i64" | "usize" => "number".into(),
        name => name.to_owned(),
    }
}

#[test]
fn the_page_reads_what_is_written() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("crates/report");
    let files = std::fs::read_dir(root.join("src/html")).unwrap().flatten();
    let files = files.filter(|file| file.path().extension().is_some_and(|end| end == "rs"));
    let sources: Vec<String> = files
        .map(|file| std::fs::read_to_string(file.path()).unwrap())
        .collect();
    let aliases = sources.iter().flat_map(|text| text.lines());
    let aliases = aliases.filter_map(|line| line.strip_prefix("pub type "));
    let aliases = aliases.filter_map(|line| line.trim_end_matches(';').split_once(" = "));
    let aliases: BTreeMap<&str, &str> = aliases.collect();
    let known: BTreeMap<String, Declaration> =
        sources.iter().flat_map(|text| declarations(text)).collect();
    // The types that the document uses, directly or through other types; each type comes before those of its fields.
    let mut order = vec!["Document".to_owned()];
    let mut at = 0;
    while let Some(declaration) = order.get(at).map(|name| &known[name]) {
        let types = declaration.fields.iter().map(|(.., of)| of);
        let words = types
            .chain(&declaration.parts)
            .flat_map(|of| of.split(|c: char| !c.is_alphanumeric()));
        let found: Vec<String> = words
            .filter(|word| known.contains_key(*word))
            .map(str::to_owned)
            .collect();
        for name in found {
            if !order.contains(&name) {
                order.push(name);
            }
        }
        at += 1;
    }
    assert!(order.len() > 12, "{order:?}");
    let mut out = HEAD.to_owned();
    for name in &order {
        let declaration = &known[name];
        let extends = match declaration.parts.as_slice() {
            [] => String::new(),
            parts => format!(" extends {}", parts.join(", ")),
        };
        writeln!(out, "\nexport interface {name}{extends} {{").unwrap();
        for (comment, field, of) in &declaration.fields {
            if !comment.is_empty() {
                writeln!(out, "  /** {comment} */").unwrap();
            }
            let of = if declaration.is_table {
                typescript(&format!("Vec<{of}>"), &aliases)
            } else {
                typescript(of, &aliases)
            };
            writeln!(out, "  {field}: {of};").unwrap();
        }
        out.push_str("}\n");
    }
    let file = root.join("web/src/doc.ts");
    if std::env::var_os("TR_UPDATE").is_some() {
        std::fs::write(&file, out).unwrap();
        return;
    }
    let written = std::fs::read_to_string(&file).unwrap_or_default();
    assert!(
        written == out,
        "crates/report/web/src/doc.ts differs from crates/report/src/html: \
         `TR_UPDATE=1 cargo test --test page_data` rewrites it, `make web` bundles it"
    );
}
