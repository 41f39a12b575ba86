//! Tests the headers of the BPF programs: each one compiles alone, and no two of them include each
//! other.

#![allow(clippy::unwrap_used)]

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::{env, fs};

use libbpf_rs::libbpf_sys::API_HEADERS;

const SOURCES: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/src/bpf");

/// The names of the BPF programs' headers, and the names of the headers that each of them includes.
fn includes() -> BTreeMap<String, BTreeSet<String>> {
    let mut headers = BTreeMap::new();
    for entry in fs::read_dir(SOURCES).unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_some_and(|extension| extension == "h") {
            let text = fs::read_to_string(&path).unwrap();
            let included = text
                .lines()
                .filter_map(|line| line.strip_prefix("#include \"")?.strip_suffix('"'))
                .map(String::from)
                .collect();
            let name = path.file_name().unwrap().to_str().unwrap().to_owned();
            headers.insert(name, included);
        }
    }
    assert!(headers.len() > 20, "{headers:?}");
    headers
}

/// Writes libbpf's headers into a directory, in the place from which the BPF programs include them.
fn write_libbpf_headers(directory: &Path) {
    fs::create_dir_all(directory.join("bpf")).unwrap();
    for (name, text) in API_HEADERS {
        fs::write(directory.join("bpf").join(name), text).unwrap();
    }
}

#[test]
fn each_header_compiles_alone() {
    let directory = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("headers");
    write_libbpf_headers(&directory);
    let source = directory.join("alone.c");
    for header in includes().keys() {
        fs::write(&source, format!("#include \"{header}\"\n")).unwrap();
        let compiled = Command::new(env::var_os("CLANG").unwrap_or_else(|| "clang".into()))
            .args(["-fsyntax-only", "-Wall", "-Werror", "-target", "bpf"])
            .args(["-mcpu=v3", "-O2", "-I", SOURCES, "-I"])
            .args([&directory, &source])
            .output()
            .unwrap();
        let errors = String::from_utf8_lossy(&compiled.stderr);
        assert!(compiled.status.success(), "{header}: {errors}");
    }
}

#[test]
fn no_headers_include_each_other() {
    let mut rest = includes();
    loop {
        let names: BTreeSet<String> = rest.keys().cloned().collect();
        let before = rest.len();
        rest.retain(|_, included| !included.is_disjoint(&names));
        if rest.len() == before {
            break;
        }
    }
    assert!(rest.is_empty(), "a circle of headers among {rest:?}");
}
