//! Compiles the BPF programs, and generates their skeleton (the Rust code to load them) and the list of the types that
//! they use.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::{env, fs};

use libbpf_cargo::SkeletonBuilder;
use libbpf_rs::btf::types::{Enum, Struct, Union};
use libbpf_rs::btf::Btf;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let out = PathBuf::from(env::var_os("OUT_DIR").ok_or("OUT_DIR is not set")?);
    println!("cargo:rerun-if-env-changed=CLANG");
    let clang = env::var_os("CLANG").unwrap_or_else(|| "clang".into());
    if let Err(error) = Command::new(&clang).arg("--version").output() {
        return Err(format!(
            "{}: {error}: tr record needs clang to compile its BPF programs (Debian: apt install \
             clang libelf-dev zlib1g-dev pkg-config gcc libc6-dev make); everything but tr record \
             builds without it: cargo build --no-default-features",
            clang.display()
        )
        .into());
    }
    // BTF contains the paths of the sources. They are made relative, so that the object does not depend on the
    // directory of the build.
    let here = env::var("CARGO_MANIFEST_DIR")?;
    let sources = format!("-fdebug-prefix-map={here}=crates/bpf");
    // The instruction set v3 (with 32-bit registers) is used, because every kernel that has ring buffers supports it.
    let flags = ["-Wall", "-Werror", "-mcpu=v3", "-Isrc/bpf", &sources];
    SkeletonBuilder::new()
        .source("src/bpf/tracer.bpf.c")
        .clang(&clang)
        .obj(out.join("usual.bpf.o"))
        .clang_args(flags.into_iter().chain(["-DUSUAL"]))
        .build()?;
    SkeletonBuilder::new()
        .source("src/bpf/tracer.bpf.c")
        .clang(&clang)
        .obj(out.join("tracer.bpf.o"))
        // The skeleton is not formatted: Rust's minimal profile has no rustfmt, and rustup's stand-in for it fails.
        // With a path that does not exist, libbpf-cargo leaves the code as it is generated.
        .rustfmt(out.join("absent/rustfmt"))
        .clang_args(flags)
        .build_and_generate(out.join("tracer.skel.rs"))?;
    same_variables(&out)?;
    compress(&out)?;
    let names = type_names(&out.join("tracer.bpf.o"))?;
    fs::write(out.join("type_names.rs"), format!("{names:?}"))?;
    println!("cargo:rerun-if-changed=src/bpf");
    Ok(())
}

/// Verifies that the two compiled objects of the BPF programs have their variables at the same places, because one
/// skeleton writes to both.
fn same_variables(out: &Path) -> Result<(), Box<dyn std::error::Error>> {
    let read = |name: &str| -> Result<_, Box<dyn std::error::Error>> {
        variables(&fs::read(out.join(name))?).ok_or_else(|| format!("{name} has no symbols").into())
    };
    let (all, usual) = (read("tracer.bpf.o")?, read("usual.bpf.o")?);
    if all != usual || all.is_empty() {
        return Err("the two objects have different variables".into());
    }
    Ok(())
}

/// The variables of an ELF file: for each, the name of its section, its own name, its place in the section and its
/// size, both in bytes. `None` if the file has no symbols.
fn variables(file: &[u8]) -> Option<BTreeSet<(String, String, u64, u64)>> {
    const SYMBOLS: u64 = 2;
    const VARIABLE: u8 = 1;
    let number = |at: usize, len: usize| -> Option<u64> {
        let bytes = file.get(at..at.checked_add(len)?)?;
        Some(
            bytes
                .iter()
                .rev()
                .fold(0, |sum, byte| sum << 8 | u64::from(*byte)),
        )
    };
    let name = |at: u64| -> Option<String> {
        let bytes = file.get(usize::try_from(at).ok()?..)?;
        let bytes = bytes.split(|byte| *byte == 0).next()?;
        Some(String::from_utf8_lossy(bytes).into_owned())
    };
    let headers = usize::try_from(number(0x28, 8)?).ok()?;
    let section = |index: u64, field: usize, len: usize| {
        number(headers + usize::try_from(index).ok()? * 64 + field, len)
    };
    let count = number(0x3c, 2)?;
    let names = section(number(0x3e, 2)?, 0x18, 8)?;
    let symbols = (0..count).find(|index| section(*index, 4, 4) == Some(SYMBOLS))?;
    let texts = section(section(symbols, 0x28, 4)?, 0x18, 8)?;
    let first = section(symbols, 0x18, 8)?;
    let mut all = BTreeSet::new();
    for offset in (0..section(symbols, 0x20, 8)?).step_by(24) {
        let at = usize::try_from(first + offset).ok()?;
        if file.get(at + 4)? & 15 == VARIABLE {
            let of = name(names + section(number(at + 6, 2)?, 0, 4)?)?;
            let variable = name(texts + number(at, 4)?)?;
            all.insert((of, variable, number(at + 8, 8)?, number(at + 16, 8)?));
        }
    }
    Some(all)
}

/// Compresses the compiled objects of the BPF programs, and makes the skeleton take its object from `object()`. Most of
/// an object is names and source lines, which shrink to an eighth.
fn compress(out: &Path) -> Result<(), Box<dyn std::error::Error>> {
    for name in ["tracer.bpf.o", "usual.bpf.o"] {
        let object = fs::read(out.join(name))?;
        let packed = zstd::bulk::compress(&object, 19)?;
        fs::write(out.join(format!("{name}.zst")), packed)?;
    }
    let path = out.join("tracer.skel.rs");
    let skeleton = fs::read_to_string(&path)?;
    let data = "#[unsafe(link_section = \".bpf.objs\")]";
    let (code, _) = skeleton
        .split_once(data)
        .ok_or("the skeleton has no object")?;
    fs::write(path, code.replacen("&DATA", "super::object()", 1) + "}")?;
    Ok(())
}

/// The names of the structs, unions and enums in the compiled BPF programs, without the suffix ___x that marks another
/// kernel version's form of a type. Only these can be kernel types that the programs read.
fn type_names(object: &Path) -> Result<Vec<String>, Box<dyn std::error::Error>> {
    let btf = Btf::from_path(object)?;
    let mut names = BTreeSet::new();
    for id in 1..u32::try_from(btf.len())? {
        let id = id.into();
        let found = (btf.type_by_id::<Struct<'_>>(id).map(|found| found.name()))
            .or_else(|| btf.type_by_id::<Union<'_>>(id).map(|found| found.name()))
            .or_else(|| btf.type_by_id::<Enum<'_>>(id).map(|found| found.name()));
        if let Some(name) = found.flatten() {
            let name = name.to_string_lossy();
            names.insert(name.split("___").next().unwrap_or_default().to_owned());
        }
    }
    Ok(names.into_iter().collect())
}
