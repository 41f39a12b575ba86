//! Compiles the BPF programs and generates their skeleton.

use std::env;
use std::path::PathBuf;
use std::process::Command;

use libbpf_cargo::SkeletonBuilder;

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
        .rustfmt("/nonexistent")
        // Every kernel with ring buffers has v3 (32-bit registers).
        .clang_args(["-Wall", "-Werror", "-mcpu=v3", "-Isrc/bpf", &sources])
        .build_and_generate(out.join("tracer.skel.rs"))?;
    println!("cargo:rerun-if-changed=src/bpf");
    Ok(())
}
