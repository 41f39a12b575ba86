//! Implements `tr --version --verbose`, which prints what this program was built with, and which formats it
//! reads and writes.

use std::fmt::Write;
use std::process::ExitCode;

use tr_format::frame::{MAJOR, MINOR};
#[cfg(feature = "report")]
use tr_report::schemas;
use tr_text::called::TR;

use crate::{cmd, open};

/// Whether the command line is `tr --version --verbose`.
pub fn is_asked() -> bool {
    let is = |arg: &std::ffi::OsString, names: [&str; 2]| names.iter().any(|name| arg == *name);
    let args: Vec<_> = std::env::args_os().skip(1).collect();
    let version = args.first().is_some_and(|arg| is(arg, ["--version", "-V"]));
    version && args.len() == 2 && args.iter().any(|arg| is(arg, ["--verbose", "-v"]))
}

/// Prints the features, methods and formats of this program for `tr --version --verbose`, one in each line,
/// as `name: values`.
pub fn print() -> ExitCode {
    // A program that was built without the recorder has no recording methods.
    let methods = if cfg!(feature = "record") {
        "bpf sudo ptrace"
    } else {
        "none"
    };
    let imports = if cfg!(feature = "import") {
        "Chrome Trace Event format, OTLP, .ninja_log, cargo --timings, JUnit XML"
    } else {
        "none"
    };
    #[cfg(feature = "export")]
    let exports = cmd::export::names().join(" ");
    #[cfg(not(feature = "export"))]
    let exports = "none".to_owned();
    #[cfg(feature = "report")]
    let schemas = format!("{} {}", schemas::COMMAND_NAMES.join(" "), schemas::PROCESS);
    #[cfg(not(feature = "report"))]
    let schemas = "none".to_owned();
    let facts = [
        ("target", format!("{}-{}", std::env::consts::ARCH, std::env::consts::OS)),
        ("features", cmd::features().collect::<Vec<_>>().join(" ")),
        ("methods", methods.to_owned()),
        ("reads", format!("traces of format {MAJOR}.0 to {MAJOR}.{MINOR}, and the known parts of later {MAJOR}.x")),
        ("writes", format!("traces of format {MAJOR}.{MINOR}")),
        ("imports", imports.to_owned()),
        ("exports", exports),
        ("schemas", schemas),
    ];
    let mut text = format!("{TR} {}\n", env!("CARGO_PKG_VERSION"));
    for (name, values) in facts {
        // Writing to a string cannot fail.
        let _ = writeln!(text, "{name}: {values}");
    }
    open::print_text(&text)
}
