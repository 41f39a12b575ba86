//! Compiles the BPF programs and generates their skeleton.

use std::env;
use std::path::PathBuf;

use libbpf_cargo::SkeletonBuilder;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let out = PathBuf::from(env::var_os("OUT_DIR").ok_or("OUT_DIR is not set")?);
    SkeletonBuilder::new()
        .source("src/bpf/tracer.bpf.c")
        .obj(out.join("tracer.bpf.o"))
        // Every kernel with ring buffers has v3 (32-bit registers).
        .clang_args(["-Wall", "-Werror", "-mcpu=v3", "-Isrc/bpf"])
        .build_and_generate(out.join("tracer.skel.rs"))?;
    println!("cargo:rerun-if-changed=src/bpf");
    Ok(())
}
