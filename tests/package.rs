//! Tests that the crate that is meant to be published contains what its users need.
#![allow(clippy::unwrap_used)] // in a test

use std::path::Path;
use std::process::Command;

/// Runs `cargo package` without building, and checks the files and the manifest in the archive.
#[test]
fn the_format_crate_can_be_packaged() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let target = tempfile::tempdir().unwrap();
    let out = Command::new(env!("CARGO"))
        .current_dir(root)
        .args([
            "package",
            "-p",
            "tr-trace-format",
            "--allow-dirty",
            "--no-verify",
            "--offline",
        ])
        .arg("--target-dir")
        .arg(target.path())
        .output()
        .unwrap();
    assert!(
        out.status.success(),
        "{}",
        String::from_utf8_lossy(&out.stderr)
    );
    let name = format!("tr-trace-format-{}", env!("CARGO_PKG_VERSION"));
    let archive = target.path().join(format!("package/{name}.crate"));
    let tar = |args: &[&str], more: &str| {
        let out = Command::new("tar")
            .args(args)
            .arg(&archive)
            .arg(more)
            .output()
            .unwrap();
        assert!(
            out.status.success(),
            "{}",
            String::from_utf8_lossy(&out.stderr)
        );
        String::from_utf8(out.stdout).unwrap()
    };
    let files = tar(&["-tzf"], "--wildcards");
    for file in ["src/lib.rs", "FORMAT.md", "reader.py", "Cargo.toml"] {
        assert!(files.contains(&format!("{name}/{file}")), "{file}: {files}");
    }
    let manifest = tar(&["-xzOf"], &format!("{name}/Cargo.toml"));
    for field in [
        "description = ",
        "license = ",
        "readme = ",
        "keywords = ",
        "categories = ",
        "repository = ",
    ] {
        assert!(manifest.contains(field), "{field}: {manifest}");
    }
    // A crate that depends on another one only by its path cannot be published.
    assert!(!manifest.contains("path = \"../"), "{manifest}");
}
