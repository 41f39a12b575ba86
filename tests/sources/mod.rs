//! Reads the items of a crate from its sources, line by line.
#![allow(clippy::unwrap_used, clippy::indexing_slicing)] // in a test

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

/// An item of a module. It may be public.
struct Item {
    kind: &'static str,
    name: String,
    public: bool,
    /// The item's public members: fields (`.name`), variants and functions (`::name`).
    members: Vec<String>,
}

/// A public `use` that exports one name.
struct Export {
    path: Vec<String>,
    name: String,
}

#[derive(Default)]
struct Module {
    items: Vec<Item>,
    exports: Vec<Export>,
}

/// The public members that an `impl` block adds to a type.
struct Added {
    module: String,
    name: String,
    members: Vec<String>,
}

/// The modules of a crate by their paths, which are joined by `::`. The path of the crate's root is empty.
#[derive(Default)]
pub struct Sources {
    modules: BTreeMap<String, Module>,
    added: Vec<Added>,
}

const KINDS: &[&str] = &[
    "struct", "enum", "union", "trait", "fn", "static", "type", "mod", "const",
];

impl Sources {
    pub fn read(directory: &Path) -> Sources {
        let mut sources = Sources::default();
        sources.read_below(directory, directory);
        sources
    }

    fn read_below(&mut self, root: &Path, directory: &Path) {
        for entry in std::fs::read_dir(directory).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                self.read_below(root, &path);
            } else if path.extension().is_some_and(|extension| extension == "rs") {
                let relative = path.strip_prefix(root).unwrap().with_extension("");
                let mut parts: Vec<&str> =
                    relative.iter().map(|part| part.to_str().unwrap()).collect();
                if matches!(parts.last(), Some(&("lib" | "mod"))) {
                    parts.pop();
                }
                self.add(&parts.join("::"), &std::fs::read_to_string(&path).unwrap());
            }
        }
    }

    /// Adds a module with this text.
    pub fn add(&mut self, module: &str, text: &str) {
        let lines: Vec<&str> = text.lines().collect();
        self.scan(module, &lines, 0);
    }

    /// Adds the items in these lines that begin at this indentation.
    fn scan(&mut self, module: &str, lines: &[&str], indent: usize) {
        self.modules.entry(module.to_owned()).or_default();
        let mut at = 0;
        let mut of_tests = false;
        while at < lines.len() {
            let begin = at;
            let header = take_header(lines, &mut at, indent);
            let Some(header) = header else { continue };
            if is_attribute(&header) {
                of_tests = of_tests || header.starts_with("#[cfg(test)]");
                continue;
            }
            let body = if header.ends_with('{') {
                let closing =
                    |line: &&&str| indent_of(line) == indent && line.trim_start().starts_with('}');
                let length = lines[at..].iter().take_while(|line| !closing(line)).count();
                at += length;
                &lines[at - length..at]
            } else {
                &lines[begin..begin]
            };
            if !std::mem::take(&mut of_tests) {
                self.add_item(module, &header, body, indent);
            }
        }
    }

    fn add_item(&mut self, module: &str, header: &str, body: &[&str], indent: usize) {
        let (public, declared) = visibility(header);
        if let Some(name) = inherent_impl(declared) {
            let members = members(body, indent + 4, "fn impl");
            self.added.push(Added {
                module: module.to_owned(),
                name,
                members,
            });
            return;
        }
        if declared
            .split_once("! {")
            .is_some_and(|(name, _)| is_name(name))
            && !declared.starts_with("macro_rules")
        {
            self.scan(module, body, indent + 4);
            return;
        }
        let here = self.modules.get_mut(module).unwrap();
        if let Some(tree) = declared.strip_prefix("use ") {
            if public {
                here.exports.extend(exports(tree.trim_end_matches(';')));
            }
            return;
        }
        let mut words = declared.split_whitespace().peekable();
        // `const fn` and `unsafe extern "C" fn` declare functions, although they begin with other keywords.
        let Some(mut kind) = words.find_map(|word| KINDS.iter().find(|kind| **kind == word)) else {
            return;
        };
        if *kind == "const" && matches!(words.peek(), Some(&("fn" | "unsafe" | "extern"))) {
            words.find(|word| *word == "fn");
            kind = &"fn";
        }
        let word = words.next().unwrap_or_default();
        let name: String = word
            .chars()
            .take_while(|c| c.is_alphanumeric() || *c == '_')
            .collect();
        let mut found = members(body, indent + 4, kind);
        if *kind == "struct" && !header.ends_with('{') {
            found = tuple_fields(declared);
        }
        here.items.push(Item {
            kind,
            name: name.clone(),
            public,
            members: found,
        });
        if *kind == "mod" && header.ends_with('{') {
            self.scan(&joined(module, &name), body, indent + 4);
        }
    }

    /// The items that other crates can name, with their public members, sorted.
    pub fn public_items(&self) -> Vec<String> {
        let mut found = BTreeSet::new();
        self.add_public("", "", &mut found);
        found.into_iter().collect()
    }

    /// Adds the public items of a module, whose path as seen from outside is `shown`.
    fn add_public(&self, module: &str, shown: &str, found: &mut BTreeSet<String>) {
        let Some(here) = self.modules.get(module) else {
            return;
        };
        for item in here.items.iter().filter(|item| item.public) {
            self.add_one(module, item, &joined(shown, &item.name), found);
        }
        for export in &here.exports {
            self.add_export(module, export, shown, found);
        }
    }

    fn add_one(&self, module: &str, item: &Item, shown: &str, found: &mut BTreeSet<String>) {
        found.insert(format!("{} {shown}", item.kind));
        found.extend(item.members.iter().map(|member| format!("{shown}{member}")));
        if item.kind == "mod" {
            self.add_public(&joined(module, &item.name), shown, found);
        } else {
            let of_type = |added: &&Added| {
                self.defines(&added.module, &added.name) == Some(module) && added.name == item.name
            };
            for added in self.added.iter().filter(of_type) {
                found.extend(
                    added
                        .members
                        .iter()
                        .map(|member| format!("{shown}{member}")),
                );
            }
        }
    }

    fn add_export(&self, module: &str, export: &Export, shown: &str, found: &mut BTreeSet<String>) {
        let (name, path) = export.path.split_last().unwrap();
        let Some(from) = self.resolve(module, path) else {
            found.insert(format!("use {}", export.path.join("::")));
            return;
        };
        if name == "*" {
            self.add_public(&from, shown, found);
            return;
        }
        let shown = joined(shown, &export.name);
        let source = &self.modules[&from];
        for item in source.items.iter().filter(|item| item.name == *name) {
            self.add_one(&from, item, &shown, found);
        }
        // The module `from` exports the name again from another module.
        for inner in source.exports.iter().filter(|inner| inner.name == *name) {
            let renamed = Export {
                path: inner.path.clone(),
                name: export.name.clone(),
            };
            let outside = shown.rsplit_once("::").map_or("", |(outside, _)| outside);
            self.add_export(&from, &renamed, outside, found);
        }
    }

    /// The module that `path` means inside of `module`. `None` if it belongs to another crate.
    fn resolve(&self, module: &str, path: &[String]) -> Option<String> {
        let mut at = module.to_owned();
        for (place, part) in path.iter().enumerate() {
            match part.as_str() {
                "crate" => at = String::new(),
                "self" => {}
                "super" => at = parent(&at).to_owned(),
                name if self.modules.contains_key(&joined(&at, name)) => at = joined(&at, name),
                name if place == 0 && self.modules.contains_key(name) => at = name.to_owned(),
                _ => return None,
            }
        }
        Some(at)
    }

    /// The module that defines the type with this `name` in the code of `module`: the module itself, the nearest module
    /// that contains it, or the only module with such a type.
    fn defines(&self, module: &str, name: &str) -> Option<&str> {
        let has = |module: &Module| {
            module
                .items
                .iter()
                .any(|item| item.name == name && item.kind != "fn" && item.kind != "mod")
        };
        let mut at = module;
        loop {
            if let Some((path, _)) = self
                .modules
                .get_key_value(at)
                .filter(|(_, module)| has(module))
            {
                return Some(path);
            }
            if at.is_empty() {
                break;
            }
            at = parent(at);
        }
        let mut all = self.modules.iter().filter(|(_, module)| has(module));
        let (path, _) = all.next()?;
        all.next().is_none().then_some(path)
    }
}

/// The header of the item that begins at this line and indentation: the item's lines up to `{` or `;`, joined. Moves
/// `at` after the header. `None` if no item begins here.
fn take_header(lines: &[&str], at: &mut usize, indent: usize) -> Option<String> {
    let line = lines[*at];
    *at += 1;
    let text = line.trim();
    if indent_of(line) != indent
        || text.is_empty()
        || text.starts_with("//")
        || text.starts_with(['}', ')', ']'])
    {
        return None;
    }
    let mut header = text.to_owned();
    if is_attribute(&header) {
        return Some(header);
    }
    while !header.ends_with(['{', ';', '}', ',']) || is_open(&header) {
        let Some(next) = lines.get(*at) else { break };
        *at += 1;
        header += " ";
        header += next.trim();
        if header.starts_with("macro_rules!") && header.ends_with('{') {
            break;
        }
    }
    Some(header)
}

/// Whether a header is an attribute, of an item or, as `#![forbid(unsafe_code)]`, of the whole file.
fn is_attribute(header: &str) -> bool {
    header.starts_with("#[") || header.starts_with("#![")
}

/// Whether a header continues in the next line, because a list of a `use`, of arguments or of a tuple's fields is open.
fn is_open(header: &str) -> bool {
    let count = |c: char| header.matches(c).count();
    let list = visibility(header).1.starts_with("use ") && count('{') > count('}');
    list || count('(') > count(')')
}

fn indent_of(line: &str) -> usize {
    line.len() - line.trim_start().len()
}

/// Whether an item is public, and its text without the visibility.
fn visibility(header: &str) -> (bool, &str) {
    if let Some(declared) = header.strip_prefix("pub ") {
        (true, declared)
    } else if header.starts_with("pub(") {
        (
            false,
            header
                .split_once(") ")
                .map_or(header, |(_, declared)| declared),
        )
    } else {
        (false, header)
    }
}

/// The name of the type, if an `impl` block adds functions to a type itself. `None` for the implementation of a trait.
fn inherent_impl(declared: &str) -> Option<String> {
    let declared = declared.strip_prefix("unsafe ").unwrap_or(declared);
    let header = declared.strip_prefix("impl")?;
    let mut depth = 0_i32;
    let mut before = ' ';
    let mut plain = String::new();
    for c in header.chars() {
        match c {
            '<' => depth += 1,
            '>' if before != '-' => depth -= 1,
            _ if depth == 0 => plain.push(c),
            _ => {}
        }
        before = c;
    }
    let mut words = plain.split_whitespace();
    let name = words.next()?.rsplit("::").next()?.to_owned();
    (!words.any(|word| word == "for") && is_name(&name)).then_some(name)
}

fn is_name(text: &str) -> bool {
    !text.is_empty() && text.chars().all(|c| c.is_alphanumeric() || c == '_')
}

/// The members that other crates can name, in the body of an item of this kind.
fn members(body: &[&str], indent: usize, kind: &str) -> Vec<String> {
    let mut found = Vec::new();
    for line in body.iter().filter(|line| indent_of(line) == indent) {
        let (public, text) = visibility(line.trim());
        let name: String = text
            .chars()
            .take_while(|c| c.is_alphanumeric() || *c == '_')
            .collect();
        let mut words = text
            .split_whitespace()
            .skip_while(|word| !matches!(*word, "fn" | "const" | "type"));
        let mut declared = words.nth(1);
        if declared == Some("fn") {
            declared = words.next();
        }
        let declared = declared.unwrap_or_default();
        let function: String = declared
            .chars()
            .take_while(|c| c.is_alphanumeric() || *c == '_')
            .collect();
        match kind {
            "struct" | "union" if public => found.push(format!(".{name}")),
            "enum" if name.starts_with(|c: char| c.is_uppercase()) => {
                found.push(format!("::{name}"))
            }
            "trait" if !function.is_empty() => found.push(format!("::{function}")),
            "fn impl" if public && !function.is_empty() => found.push(format!("::{function}")),
            _ => {}
        }
    }
    found
}

/// The public fields of a tuple struct, as in `struct Name(pub First, Second);`.
fn tuple_fields(declared: &str) -> Vec<String> {
    let Some((_, fields)) = declared.split_once('(') else {
        return Vec::new();
    };
    let mut depth = 0_i32;
    let is_between = |c: char| {
        depth += i32::from(matches!(c, '(' | '<' | '[')) - i32::from(matches!(c, ')' | '>' | ']'));
        c == ',' && depth == 0
    };
    let numbered = fields.split(is_between).enumerate();
    let public = numbered.filter(|(_, field)| field.trim_start().starts_with("pub "));
    public.map(|(place, _)| format!(".{place}")).collect()
}

/// The names that a `use` exports. `tree` is the text after the keyword `use`.
fn exports(tree: &str) -> Vec<Export> {
    let tree = tree.trim();
    if let Some((before, list)) = tree.split_once('{') {
        let list = list
            .strip_suffix('}')
            .unwrap_or(list)
            .trim()
            .trim_end_matches(',');
        let mut depth = 0_i32;
        let is_between = |c: char| {
            depth += i32::from(c == '{') - i32::from(c == '}');
            c == ',' && depth == 0
        };
        let branches = list.split(is_between);
        return branches
            .flat_map(|branch| exports(&format!("{before}{}", branch.trim())))
            .collect();
    }
    let (path, alias) = tree.split_once(" as ").unwrap_or((tree, ""));
    let mut path: Vec<String> = path.split("::").map(str::to_owned).collect();
    if path.last().is_some_and(|last| last == "self") {
        path.pop();
    }
    let name = if alias.is_empty() {
        path.last().unwrap().clone()
    } else {
        alias.to_owned()
    };
    vec![Export { path, name }]
}

fn joined(module: &str, name: &str) -> String {
    if module.is_empty() {
        name.to_owned()
    } else {
        format!("{module}::{name}")
    }
}

fn parent(module: &str) -> &str {
    module.rsplit_once("::").map_or("", |(parent, _)| parent)
}
