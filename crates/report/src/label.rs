//! A short name for what a process did, from its arguments.

use tr_analyze::model::Process;
use tr_format::event::{Argv, Comm};

use crate::escape;

/// Interpreters whose first argument that is no option is the program.
const INTERPRETERS: [&str; 8] = [
    "python", "python3", "perl", "ruby", "node", "bash", "sh", "dash",
];
/// Compilers and their parts: what matters is the source file.
const COMPILERS: [&str; 13] = [
    "cc1", "cc1plus", "cc", "gcc", "c++", "g++", "clang", "clang++", "as", "c99", "lto1", "cpp",
    "f951",
];
/// Programs that are told by what they make.
const LINKERS: [&str; 7] = [
    "ld", "collect2", "ld.bfd", "ld.gold", "ld.lld", "lld", "mold",
];

fn base(path: &str) -> &str {
    path.rsplit('/')
        .next()
        .filter(|name| !name.is_empty())
        .unwrap_or(path)
}

/// The program: its file's name, an interpreted script's for a script; the
/// comm for what has no arguments.
pub fn program(process: &Process) -> String {
    program_of(&process.argv, &process.comm)
}

/// The same of one of a process's programs.
pub fn program_of(argv: &Argv, comm: &Comm) -> String {
    match parts(argv) {
        Parts {
            script: Some(script),
            ..
        } => script,
        Parts { program, .. } if !program.is_empty() => program,
        _ => escape::text(comm.bytes()),
    }
}

struct Parts {
    program: String,
    script: Option<String>,
    rest: Vec<String>,
}

fn parts(argv: &Argv) -> Parts {
    let mut args = argv.args().map(escape::text);
    let first = args.next().unwrap_or_default();
    // A login shell's name starts with a dash.
    let program = base(first.strip_prefix('-').unwrap_or(&first)).to_owned();
    let rest: Vec<String> = args.collect();
    let script = match rest.iter().find(|arg| !arg.starts_with('-')) {
        Some(script)
            if INTERPRETERS.contains(&program.as_str())
                && !rest.iter().any(|a| a == "-c" || a == "-m" || a == "-e") =>
        {
            Some(base(script).to_owned())
        }
        _ => None,
    };
    Parts {
        program,
        script,
        rest,
    }
}

/// One line that tells a process from its siblings: `cc1 lparser.c`, `ld lua`,
/// `make -C src`, `foo.py x`.
pub fn label(process: &Process) -> String {
    if process.kthread {
        return format!("[{}]", escape::text(process.comm.bytes()));
    }
    label_of(&process.argv, &process.comm, process.execs.is_empty())
}

/// The same of one of a process's programs; `forked`: of a child that still is
/// what its parent was.
pub fn label_of(argv: &Argv, comm: &Comm, forked: bool) -> String {
    let Parts {
        program,
        script,
        rest,
    } = parts(argv);
    if program.is_empty() {
        return escape::text(comm.bytes());
    }
    let forked = if forked { " (forked)" } else { "" };
    let value_of = |option: &str| {
        rest.iter()
            .position(|arg| arg == option)
            .and_then(|at| rest.get(at + 1))
            .map(|value| base(value).to_owned())
    };
    let source = || {
        const SOURCES: [&str; 9] = [".c", ".cc", ".cpp", ".cxx", ".C", ".s", ".S", ".m", ".f90"];
        rest.iter()
            .find(|arg| SOURCES.iter().any(|ending| arg.ends_with(ending)))
            .map(|arg| base(arg).to_owned())
    };
    let named = match program.as_str() {
        name if COMPILERS.contains(&name) => source().or_else(|| value_of("-o")),
        name if LINKERS.contains(&name) => value_of("-o"),
        "rustc" => value_of("--crate-name"),
        _ => None,
    };
    match (named, script) {
        (Some(named), _) => format!("{program} {named}{forked}"),
        (None, Some(script)) => {
            let after = rest.iter().skip_while(|arg| base(arg) != script).skip(1);
            [script.clone()]
                .into_iter()
                .chain(after.cloned())
                .collect::<Vec<_>>()
                .join(" ")
                + forked
        }
        (None, None) => {
            [program]
                .into_iter()
                .chain(rest)
                .collect::<Vec<_>>()
                .join(" ")
                + forked
        }
    }
}
