//! `tr --version --verbose`: what this program is built with, and what it reads and writes.

use std::fmt::Write;
use std::process::ExitCode;

use tr_format::frame::{MAJOR, MINOR};
use tr_report::schemas;
use tr_text::called::TR;

use crate::{open, output};

/// Whether the command line asks for it.
pub fn is_asked() -> bool {
    let is = |arg: &std::ffi::OsString, names: [&str; 2]| names.iter().any(|name| arg == *name);
    let args: Vec<_> = std::env::args_os().skip(1).collect();
    let version = args.first().is_some_and(|arg| is(arg, ["--version", "-V"]));
    version && args.len() == 2 && args.iter().any(|arg| is(arg, ["--verbose", "-v"]))
}

/// Prints it: a fact a line, `name: values`.
pub fn run() -> ExitCode {
    let known = |present: bool, name: &'static str| present.then_some(name);
    let features = [
        known(cfg!(feature = "record"), "record"),
        known(cfg!(feature = "record-only"), "record-only"),
        known(cfg!(feature = "symbols"), "symbols"),
    ];
    // Without the recorder there is none.
    let methods = if cfg!(feature = "record") {
        "bpf sudo ptrace"
    } else {
        "none"
    };
    let (imports, exports, schemas) = if cfg!(feature = "record-only") {
        ["none"; 3].map(String::from).into()
    } else {
        (
            "clang -ftime-trace, .ninja_log, cargo --timings, JUnit XML".to_owned(),
            output::exports().join(" "),
            format!("{} {}", schemas::NAMES.join(" "), schemas::PROCESS),
        )
    };
    let facts = [
        ("target", format!("{}-{}", std::env::consts::ARCH, std::env::consts::OS)),
        ("features", features.into_iter().flatten().collect::<Vec<_>>().join(" ")),
        ("methods", methods.to_owned()),
        ("reads", format!("traces of format {MAJOR}.0 to {MAJOR}.{MINOR}, and the known parts of later {MAJOR}.x")),
        ("writes", format!("traces of format {MAJOR}.{MINOR}")),
        ("imports", imports),
        ("exports", exports),
        ("schemas", schemas),
    ];
    let mut text = format!("{TR} {}\n", env!("CARGO_PKG_VERSION"));
    for (name, values) in facts {
        // To a string: no error.
        let _ = writeln!(text, "{name}: {values}");
    }
    open::print_text(&text)
}
