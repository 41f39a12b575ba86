//! Targets and units: make and its like, compilers, cargo and go.

use super::{file, found, in_directory, of, test_runner, Found, Line};
use crate::command_line;
use crate::command_line::has;
use crate::steps::StepKind;
use tr_text::escape;

pub(super) fn make(line: &Line) -> Option<Found> {
    const VALUED: &str = "-C -f -I -o -W --directory --file --makefile";
    if line.has(&["--version", "-v", "--help", "-h"]) {
        return None;
    }
    let number = |word: &[u8]| word.iter().all(|byte| byte.is_ascii_digit());
    let goals = line
        .words(VALUED)
        .filter(|word| !word.contains(&b'=') && !number(word));
    let directory = line.value("-C").or_else(|| line.value("--directory"));
    Some(Found {
        nests: true,
        ..Found::new(StepKind::Target, in_directory(line.tool, directory, goals))
    })
}

pub(super) fn ninja(line: &Line) -> Option<Found> {
    if line.has(&["--version", "-t", "-h", "--help"]) {
        return None;
    }
    let goals = line.words("-C -f -j -k -l -d -w");
    let name = in_directory(line.tool, line.value("-C"), goals);
    found(StepKind::Target, name)
}

pub(super) fn cmake(line: &Line) -> Option<Found> {
    if line.has(&["-E", "-P", "--version", "--help", "-L", "-N"]) {
        return None;
    }
    for verb in ["--build", "--install"] {
        if let Some(directory) = line.after(verb) {
            let directory = escape::text(directory);
            return found(StepKind::Target, format!("cmake {verb} {directory}"));
        }
    }
    found(StepKind::Target, "cmake")
}

pub(super) fn compiler(line: &Line) -> Option<Found> {
    if line.has(&["-E", "-M", "-MM", "-fsyntax-only", "-###"]) {
        return None;
    }
    if let Some(output) = line.value("-o") {
        return file(output);
    }
    let source = command_line::source(line.args)?;
    match (line.has(&["-c"]), source.rsplit_once('.')) {
        (true, Some((stem, _))) => file(format!("{stem}.o").as_bytes()),
        _ => file(b"a.out"),
    }
}

pub(super) fn output(line: &Line) -> Option<Found> {
    file(line.value("-o")?)
}

pub(super) fn archive(line: &Line) -> Option<Found> {
    let (operation, rest) = line.args.split_first()?;
    let makes = operation.iter().any(|letter| b"rq".contains(letter)) || operation.contains(&b'c');
    let made = makes && !operation.starts_with(b"--");
    file(rest.first().filter(|_| made)?)
}

pub(super) fn wrapped(line: &Line) -> Option<Found> {
    let program = line.args.first()?;
    (!program.starts_with(b"-")).then(|| of(line.args))?
}

pub(super) fn rustc(line: &Line) -> Option<Found> {
    let name = escape::text(line.value("--crate-name")?);
    if name == "___" {
        return None; // cargo asks for the target's properties
    }
    if name == "build_script_build" || name == "build_script_main" {
        let source = line.args.iter().find(|arg| arg.ends_with(b".rs"))?;
        let source = escape::text(source);
        let package = source.rsplit('/').nth(1).unwrap_or("build.rs");
        return found(StepKind::Unit, format!("{package} (build script)"));
    }
    let kind = match line.value("--crate-type") {
        _ if line.has(&["--test"]) => " (test)",
        Some(b"bin") => " (bin)",
        _ => "",
    };
    found(StepKind::Unit, name + kind)
}

pub(super) fn rustdoc(line: &Line) -> Option<Found> {
    let name = escape::text(line.value("--crate-name")?);
    if line.has(&["--test"]) {
        return test_runner(name + " (doctests)");
    }
    found(StepKind::Unit, name + " (doc)")
}

pub(super) fn build_script(line: &Line) -> Option<Found> {
    let package = command_line::unhashed(line.path.rsplit('/').nth(1)?);
    found(StepKind::Unit, format!("{package} (run build script)"))
}

pub(super) fn cargo(line: &Line) -> Option<Found> {
    const KNOWN: &str =
        "build b check c test t run r doc d bench clippy install fetch package publish";
    let mut words = line.words("");
    let verb = words.next()?;
    if verb == b"nextest" {
        let second = escape::text(words.next()?);
        return found(StepKind::Target, format!("cargo nextest {second}"));
    }
    let is = has(KNOWN, verb);
    is.then(|| found(StepKind::Target, format!("cargo {}", escape::text(verb))))?
}

/// `cargo-nextest nextest run`, as cargo executes it.
pub(super) fn cargo_tool(line: &Line) -> Option<Found> {
    let words: Vec<String> = line.words("").take(2).map(escape::text).collect();
    found(StepKind::Target, format!("cargo {}", words.join(" ")))
}

pub(super) fn go(line: &Line) -> Option<Found> {
    let mut words = line.words("-o -run -tags -count -p -timeout");
    let verb = words.next()?;
    let is = has("build test install vet generate run mod", verb);
    let packages = words.filter(|word| *word != b".");
    let name = in_directory("go", None, std::iter::once(verb).chain(packages));
    is.then(|| found(StepKind::Target, name))?
}

pub(super) fn verb(line: &Line) -> Option<Found> {
    let verb = line.words("-f -p -e -c -C").next();
    found(
        StepKind::Target,
        in_directory(line.name, None, verb.into_iter()),
    )
}

pub(super) fn configure(_: &Line) -> Option<Found> {
    found(StepKind::Target, "configure")
}
