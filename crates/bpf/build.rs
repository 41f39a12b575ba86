//! Compiles the BPF programs and generates their skeleton.

use std::env;
use std::path::PathBuf;

use libbpf_cargo::SkeletonBuilder;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let out = PathBuf::from(env::var_os("OUT_DIR").ok_or("OUT_DIR is not set")?);
    SkeletonBuilder::new()
        .source("src/bpf/tracer.bpf.c")
        .obj(out.join("tracer.bpf.o"))
        // v3 (32-bit registers) is known to every kernel with ring buffers.
        .clang_args(["-Wall", "-Werror", "-mcpu=v3", "-Isrc/bpf"])
        .build_and_generate(out.join("tracer.skel.rs"))?;
    println!("cargo:rerun-if-changed=src/bpf");
    if env::var_os("CARGO_FEATURE_PROTOTYPES").is_some() {
        for variant in 0..4 {
            let variant_is = format!("-DVARIANT={variant}");
            SkeletonBuilder::new()
                .source("benches/prototypes.bpf.c")
                .obj(out.join(format!("prototype{variant}.bpf.o")))
                .clang_args(["-Wall", "-mcpu=v3", "-Isrc/bpf", &variant_is])
                .build()?;
        }
        println!("cargo:rerun-if-changed=benches/prototypes.bpf.c");
    }
    Ok(())
}
