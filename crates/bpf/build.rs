//! Compiles the BPF programs, and generates their skeleton and the list of their types.

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
             builds without: cargo build --no-default-features",
            clang.display()
        )
        .into());
    }
    // BTF has the names of the sources: the same ones in any directory.
    let here = env::var("CARGO_MANIFEST_DIR")?;
    let sources = format!("-fdebug-prefix-map={here}=crates/bpf");
    SkeletonBuilder::new()
        .source("src/bpf/tracer.bpf.c")
        .clang(&clang)
        .obj(out.join("tracer.bpf.o"))
        // Rust's minimal profile has no rustfmt, and rustup's stand-in for it fails. Without
        // a program of that name the code stays as it is generated.
        .rustfmt(out.join("absent/rustfmt"))
        // Every kernel with ring buffers has v3 (32-bit registers).
        .clang_args(["-Wall", "-Werror", "-mcpu=v3", "-Isrc/bpf", &sources])
        .build_and_generate(out.join("tracer.skel.rs"))?;
    compress(&out)?;
    let names = type_names(&out.join("tracer.bpf.o"))?;
    fs::write(out.join("type_names.rs"), format!("{names:?}"))?;
    println!("cargo:rerun-if-changed=src/bpf");
    Ok(())
}

/// The skeleton's object becomes that of `object()`, in which most of its bytes, names and lines of the sources, take
/// an eighth.
fn compress(out: &Path) -> Result<(), Box<dyn std::error::Error>> {
    let object = fs::read(out.join("tracer.bpf.o"))?;
    fs::write(
        out.join("tracer.bpf.o.zst"),
        zstd::bulk::compress(&object, 19)?,
    )?;
    let path = out.join("tracer.skel.rs");
    let skeleton = fs::read_to_string(&path)?;
    let data = "#[unsafe(link_section = \".bpf.objs\")]";
    let (code, _) = skeleton
        .split_once(data)
        .ok_or("the skeleton has no object")?;
    fs::write(path, code.replacen("&DATA", "super::object()", 1) + "}")?;
    Ok(())
}

/// The names of the programs' structs, unions and enums, without the suffix ___x of another kernel
/// version's form: only these can be types of the kernel's that the programs read.
fn type_names(object: &Path) -> Result<Vec<String>, Box<dyn std::error::Error>> {
    let btf = Btf::from_path(object)?;
    let mut names = BTreeSet::new();
    for id in 1..u32::try_from(btf.len())? {
        let id = id.into();
        let name = (btf.type_by_id::<Struct<'_>>(id).map(|found| found.name()))
            .or_else(|| btf.type_by_id::<Union<'_>>(id).map(|found| found.name()))
            .or_else(|| btf.type_by_id::<Enum<'_>>(id).map(|found| found.name()));
        if let Some(name) = name.flatten() {
            let name = name.to_string_lossy();
            names.insert(name.split("___").next().unwrap_or_default().to_owned());
        }
    }
    Ok(names.into_iter().collect())
}
