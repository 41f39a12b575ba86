//! Finds the names of the programs that command lines start.
//!
//! The *program* is common to many processes (`cc1`, `git clone`, `foo.py`). The *label* distinguishes a process from
//! its siblings (`cc1 lparser.c`). The row of a program in [`crate::table`] says which of its arguments a label shows.

use crate::program_name::{ProgramName, WORKER};
use crate::steps::StepName;
use crate::table;
use crate::tools::{Children, Label, Script};
use crate::words::{
    base, brief, command, contains, has, is_of_go_test, is_of_machine, is_temporary, is_test_main,
    of_package, source, test_of_cargo, test_of_go, texts, unhashed, verb, TEST_MAIN, XDIST,
};
use tr_format::event::{Argv, Comm};

use tr_text::phrase::Phrase;
use tr_text::{escape, phrase, units};

/// The call in a Perl program's text by which it runs the tests of a module (`test_harness(`).
const HARNESS: &str = "test_harness(";
/// The Perl modules with a function that runs the tests of a module.
const HARNESSES: [&str; 2] = ["Test::Harness", "ExtUtils::Command::MM"];

/// The largest number of interpreters that are followed inside each other in one command line, as in `env bash
/// script.py`. The limit bounds the recursion for hostile command lines.
const MOST_NESTED: u8 = 4;

/// The largest width, in columns, of a script's text in the label of a process (`sh -c 'TEXT'`).
const TEXT: usize = 60;

/// The name of the program that a command line runs, and the further words of the process's label.
struct Description {
    program: ProgramName,
    /// The words that follow the program's name in the label of a process, such as the URL in `git clone URL`. A verb
    /// such as `clone` belongs to the name. Empty if only the program's name was requested.
    what: Vec<String>,
}

/// The part of a process's description that a caller needs: the name of its program alone, or the whole label. Finding
/// only the name takes much less time.
#[derive(Clone, Copy, Debug)]
enum Ask {
    Program,
    /// The label for people. If the label contains the text of a script, this text is shortened.
    Label,
    /// The label for JSON, CSV and other machine formats, with the whole text of a script.
    WholeLabel,
    /// The program's name and the words of the label, to compare processes of different recordings. The text of a
    /// script is whole and has no quotes around it.
    Words,
}

impl Ask {
    fn what(self, what: impl FnOnce() -> Vec<String>) -> Vec<String> {
        match self {
            Ask::Program => Vec::new(),
            Ask::Label | Ask::WholeLabel | Ask::Words => what(),
        }
    }
}

/// Finds the program and the label of a command line. `nested` is the number of interpreters and wrappers (ccache)
/// that were already followed to get to these arguments.
fn read(args: &[&[u8]], nested: u8, ask: Ask) -> Description {
    let (first, rest) = match args.split_first() {
        Some((first, rest)) => (*first, rest),
        None => (&b""[..], &[][..]),
    };
    let first = escape::raw(first);
    // A login shell's name starts with a dash.
    let path = first.strip_prefix('-').unwrap_or(&first);
    let file = program_of_file(path);
    let name = file.name();
    let said = |what: Vec<String>| Description {
        program: file.clone(),
        what,
    };
    let all = || said(ask.what(|| texts(rest)));
    let one = |what: &dyn Fn() -> Option<String>| {
        said(ask.what(|| what().map_or_else(|| texts(rest), |what| vec![what])))
    };
    let value_of = |option: &str| {
        let at = rest.iter().position(|arg| *arg == option.as_bytes())?;
        rest.get(at + 1)
            .map(|value| base(&escape::raw(value)).to_owned())
    };
    let source = || source(rest);
    // Go's compiler and linker have common words as names (`compile`, `link`), so their directory identifies them.
    if path.contains('/') && path.contains("/pkg/tool/") {
        let what = ask.what(|| {
            let test_main = is_test_main(rest).then(|| TEST_MAIN.to_owned());
            let what = test_main.or_else(|| value_of("-p"));
            let what = what.or_else(|| value_of("-o"));
            what.map_or_else(|| texts(rest), |what| vec![what])
        });
        let program = ProgramName::with_verb("go", name);
        return Description { program, what };
    }
    if test_of_go(path).is_some() {
        let own = rest.iter().filter(|arg| !is_of_go_test(arg));
        return said(ask.what(|| texts(own)));
    }
    let tool = file
        .tool()
        .filter(|tool| nested < MOST_NESTED || tool.label == Label::Crate);
    match tool.map_or(Label::All, |tool| tool.label) {
        Label::Crate => {
            let crates = path.rsplit('/').nth(1).map(unhashed);
            one(&|| crates.map(str::to_owned))
        }
        Label::Compiler => said(ask.what(|| {
            let mode = rest.iter().find(|arg| has("-E -M -MM", arg));
            match source().or_else(|| value_of("-o").filter(|_| mode.is_none())) {
                Some(file) => texts(mode).into_iter().chain([file]).collect(),
                None => texts(rest),
            }
        })),
        Label::Assembler => one(&|| {
            let made = value_of("-o").filter(|file| !is_temporary(file));
            made.or_else(source).or_else(|| value_of("-o"))
        }),
        Label::Named(option) => said(ask.what(|| {
            let test = rest.iter().find(|arg| has("--test", arg));
            match value_of(option) {
                Some(name) => std::iter::once(name).chain(texts(test)).collect(),
                None => texts(rest),
            }
        })),
        Label::Wrapper => match rest.first() {
            Some(inner) if !inner.starts_with(b"-") => said(ask.what(|| {
                let Description { program, mut what } = read(rest, nested + 1, ask);
                what.insert(0, program.to_string());
                what
            })),
            _ => all(),
        },
        Label::Verbs(valued) => match verb(rest, valued) {
            Some((verb, after)) => Description {
                program: ProgramName::with_verb(name, verb),
                what: ask.what(|| texts(after)),
            },
            None => all(),
        },
        Label::Commands(known, other) => match command(rest, known, other) {
            Some((verb, after)) => Description {
                program: ProgramName::with_verb(name, verb),
                what: ask.what(|| texts(after)),
            },
            None => all(),
        },
        Label::Interpreter(script) => interpreted(name, rest, &script, nested, ask),
        Label::All => all(),
    }
}

/// The name by which reports call the program whose file has this path.
fn program_of_file(path: &str) -> ProgramName {
    if let Some(name) = of_package(path) {
        let runner = table::by_name(name).and_then(|tool| tool.runner_of_worker(path));
        return match runner {
            Some(runner) => ProgramName::with_verb(runner, WORKER),
            None => ProgramName::new(name),
        };
    }
    match test_of_cargo(path).or_else(|| test_of_go(path)) {
        Some(test) => ProgramName::with_verb("test", test),
        None => ProgramName::new(base(path)),
    }
}

/// The kind and the index of the argument that shows what an interpreter (a shell, Python, …) runs: an option, a text
/// or a script. The index 0 is that of the argument after the interpreter's name.
#[derive(Clone, Copy, Debug)]
enum Runs {
    /// The interpreter has an option that selects what it does ([`Script::mode`]). The value is the index of this
    /// option.
    Mode(usize),
    /// The interpreter gets its program as a text, as in `sh -c TEXT`. The value is the index of
    /// the option; the text is the next argument.
    Text(usize),
    /// The interpreter runs a script, a module or a jar. The value is the index of the argument
    /// that names it.
    Script(usize),
    Nothing,
}

fn runs(rest: &[&[u8]], script: &Script) -> Runs {
    // In `-ec`, the last letter may be an option that has its value in the next argument.
    let last = |arg: &[u8]| match arg {
        [b'-', letters @ .., last] if script.clustered && !letters.starts_with(b"-") => {
            Some([b'-', *last])
        }
        _ => None,
    };
    let is_valued = |arg: &[u8]| {
        has(script.valued, arg) || last(arg).is_some_and(|last| has(script.valued, &last))
    };
    // In `sh -ce TEXT`, the letter `c` of the option `-c` stands before the letter of another option.
    let is_early = |arg: &[u8]| match arg {
        [b'-', letters @ ..] if script.text_anywhere && !letters.starts_with(b"-") => {
            let mut letters = letters.iter();
            letters.any(|letter| has(script.text, &[b'-', *letter])) && !is_valued(arg)
        }
        _ => false,
    };
    let mut at = 0;
    while let Some(arg) = rest.get(at).copied() {
        let has_value = rest.get(at + 1).is_some();
        if has(script.mode, arg) {
            return Runs::Mode(at);
        }
        let text = has(script.text, arg) || last(arg).is_some_and(|last| has(script.text, &last));
        if (text || is_early(arg)) && has_value {
            return Runs::Text(at);
        }
        if has(script.named, arg) && has_value {
            return Runs::Script(at + 1);
        }
        if arg.len() > 1 && (arg.starts_with(b"-") || arg.starts_with(b"+")) {
            at += 1 + usize::from(is_valued(arg));
            continue;
        }
        if arg == b"-" {
            break; // standard input
        }
        return Runs::Script(at);
    }
    Runs::Nothing
}

/// Finds the name and the label of the program that an interpreter such as a shell or Python runs.
/// `rest` has the interpreter's arguments.
fn interpreted(name: &str, rest: &[&[u8]], script: &Script, nested: u8, ask: Ask) -> Description {
    let from = |at: usize| rest.get(at..).unwrap_or_default();
    let said = |what: Vec<String>| Description {
        program: ProgramName::new(name),
        what,
    };
    match runs(rest, script) {
        Runs::Mode(at) => {
            let mode = from(at)
                .first()
                .map_or(String::new(), |arg| escape::raw(arg));
            Description {
                program: ProgramName::with_verb(name, mode),
                what: ask.what(|| texts(from(at + 1))),
            }
        }
        Runs::Text(at) => match from(at) {
            [_, text, ..] if text.starts_with(XDIST) => Description {
                program: ProgramName::with_verb("pytest", WORKER),
                what: Vec::new(),
            },
            // `make test` of a Perl module runs the module's tests by a call of a function such as `test_harness`.
            [_, text, files @ ..]
                if script.harness && calls_harness(rest.get(..at).unwrap_or_default(), text) =>
            {
                Description {
                    program: ProgramName::with_verb("perl", "Test::Harness"),
                    what: ask.what(|| texts(files)),
                }
            }
            [option, text, ..] => {
                let text = || match ask {
                    Ask::Words => escape::raw(text),
                    Ask::Program | Ask::Label | Ask::WholeLabel => script_word(text, ask),
                };
                said(ask.what(|| vec![escape::raw(option), text()]))
            }
            _ => said(Vec::new()),
        },
        Runs::Script(at) => run(from(at), script, nested, ask),
        Runs::Nothing => said(ask.what(|| texts(rest))),
    }
}

/// Whether a Perl program given as text (`perl OPTIONS -e TEXT`) runs the tests of a module through
/// the function `test_harness`.
fn calls_harness(options: &[&[u8]], text: &[u8]) -> bool {
    let names = |text: &[u8]| {
        let mut harnesses = HARNESSES.iter();
        harnesses.any(|harness| contains(text, harness.as_bytes()))
    };
    let loads = |arg: &&[u8]| arg.starts_with(b"-M") && names(arg);
    contains(text, HARNESS.as_bytes()) && (options.iter().any(loads) || names(text))
}

/// Removes interpreters and their options from a command line: `bash -e x.sh a` becomes `x.sh a`. Interpreters inside
/// each other are removed as well, but an interpreter that runs no file is kept, as in `sh -c TEXT`. A command line
/// without an interpreter is returned unchanged.
pub fn without_interpreter<'a>(args: &'a [&'a [u8]]) -> &'a [&'a [u8]] {
    let mut inner = args;
    for _ in 0..MOST_NESTED {
        let Some((first, rest)) = inner.split_first() else {
            break;
        };
        let name = escape::raw(first);
        let tool = table::by_name(base(name.strip_prefix('-').unwrap_or(&name)));
        let Some(Label::Interpreter(script)) = tool.map(|tool| tool.label) else {
            break;
        };
        match runs(rest, &script) {
            Runs::Script(at) => inner = rest.get(at..).unwrap_or(inner),
            _ => break,
        }
    }
    inner
}

/// Finds the program and the label of a process in which an interpreter runs a script, a module or a class. `args`
/// begins with the name of the script, module or class. The arguments for it follow.
fn run(args: &[&[u8]], script: &Script, nested: u8, ask: Ask) -> Description {
    let (first, rest) = match args.split_first() {
        Some((first, rest)) => (*first, rest),
        None => (&b""[..], &[][..]),
    };
    if script.class && !first.ends_with(b".jar") && !first.contains(&b'/') {
        let class = first.rsplit(|b| *b == b'.').next().unwrap_or(first);
        return Description {
            program: ProgramName::new(escape::raw(class)),
            what: ask.what(|| texts(rest)),
        };
    }
    read(args, nested + 1, ask)
}

/// The text of a script as the label of a process shows it: on one line, in quotes. The label for people has at most
/// [`TEXT`] columns of it. Machine formats have the whole text, but at most [`phrase::LONGEST_NAME`] bytes, because
/// many processes can have the same script.
fn script_word(script: &[u8], ask: Ask) -> String {
    let is_whole = matches!(ask, Ask::WholeLabel);
    // More of the text is read than the label keeps, so that the label shows by an ellipsis that the text continues.
    let most = if is_whole {
        2 * phrase::LONGEST_NAME
    } else {
        4 * TEXT * 4
    };
    let script = script.get(..most).unwrap_or(script);
    let words: Vec<&[u8]> = script
        .split(|b| b.is_ascii_whitespace())
        .filter(|word| !word.is_empty())
        .collect();
    let text = escape::raw(&words.join(&b' '));
    escape::in_quotes(&if is_whole {
        phrase::bounded(&text)
    } else {
        units::shorten(&text, TEXT)
    })
}

/// The name by which reports call the program that a command line runs: `foo.py` for
/// `python3 foo.py`.
pub fn program_of_args(args: &[&[u8]]) -> ProgramName {
    read(args, 0, Ask::Program).program
}

/// The name of the program that a process executed, from its argv. If the argv gives no name, the result is the name of
/// the task (`comm`).
pub fn program_of(argv: &Argv, comm: &Comm) -> ProgramName {
    let args: Vec<&[u8]> = argv.args().collect();
    Some(program_of_args(&args))
        .filter(|program| !program.name().is_empty())
        .unwrap_or_else(|| ProgramName::new(escape::raw(comm.bytes())))
}

/// The label of a command line, without arguments that differ between machines: absolute paths and
/// names of temporary files.
pub fn portable_label(args: &[&[u8]]) -> Phrase {
    let label = |ask| portable(read(args, 0, ask));
    Phrase::new(label(Ask::WholeLabel), label(Ask::Label))
}

/// The name of a build step that is named after its program: the label ([`portable_label`]). Its brief form is the last
/// argument in the label, or the program's verb.
pub fn portable_name(args: &[&[u8]]) -> StepName {
    let phrase = portable_label(args);
    let Description { program, what } = read(args, 0, Ask::WholeLabel);
    let mut what = what.iter().rev().map(String::as_str);
    let part = what.find(|word| !is_of_machine(word.as_bytes()));
    match part.or(program.verb()) {
        Some(part) => StepName::with_part(phrase, part),
        None => StepName::whole(phrase),
    }
}

/// The label of a program without the arguments that differ between machines.
fn portable(description: Description) -> String {
    let Description { program, what } = description;
    let what = what
        .into_iter()
        .filter(|word| !is_of_machine(word.as_bytes()));
    std::iter::once(program.to_string())
        .chain(what)
        .collect::<Vec<_>>()
        .join(" ")
}

/// The text of the shell script on a command line: TEXT of `sh -c TEXT` or
/// `bash -euo pipefail -c TEXT`.
pub fn shell_text<'a>(args: &[&'a [u8]]) -> Option<&'a [u8]> {
    let (script, rest) = shell(args)?;
    match runs(rest, &script) {
        Runs::Text(at) => rest.get(at + 1).copied(),
        _ => None,
    }
}

/// Like [`shell_text`], but `None` if the recording has only the beginning of the command line, because it was too
/// long.
pub fn script_text(argv: &Argv) -> Option<&[u8]> {
    let args: Vec<&[u8]> = argv.args().collect();
    shell_text(&args).filter(|_| !argv.truncated())
}

/// The file of the script that a shell runs, as its command line names it: `x.sh` in `bash -eo pipefail x.sh`. `None`
/// for other programs, for a shell that only checks the script (`-n`), for standard input (`-s`), for files of `/dev`
/// and `/proc`, whose contents may be read only once (`bash <(…)`), and if the recording cut off the name.
pub fn shell_script(argv: &Argv) -> Option<&[u8]> {
    let mut args: Vec<&[u8]> = argv.args().collect();
    if argv.truncated() {
        args.pop();
    }
    let args = match args.split_first() {
        Some((first, rest)) if base_of(first) == b"busybox" => rest,
        _ => args.as_slice(),
    };
    let (script, rest) = shell(args)?;
    let Runs::Script(at) = runs(rest, &script) else {
        return None;
    };
    let is_stdin = |arg: &&[u8]| {
        arg.strip_prefix(b"-")
            .is_some_and(|letters| !letters.starts_with(b"-") && letters.contains(&b's'))
    };
    if rest.get(..at)?.iter().any(is_stdin) {
        return None;
    }
    let of_system = |word: &&[u8]| word.starts_with(b"/dev/") || word.starts_with(b"/proc/");
    rest.get(at).copied().filter(|word| !of_system(word))
}

/// The description of the options that a shell knows, and the arguments after the shell's name; `None` for programs
/// that are no shell.
fn shell<'a, 'b>(args: &'b [&'a [u8]]) -> Option<(Script, &'b [&'a [u8]])> {
    let (first, rest) = args.split_first()?;
    let first = first.strip_prefix(b"-").unwrap_or(first);
    let shell = table::by_path(first).filter(|tool| tool.children == Children::Script)?;
    match shell.label {
        Label::Interpreter(script) => Some((script, rest)),
        _ => None,
    }
}

fn base_of(path: &[u8]) -> &[u8] {
    path.rsplit(|byte| *byte == b'/').next().unwrap_or(path)
}

/// The version manager, such as `pyenv`, if a process runs one of its shims (`env bash /root/.pyenv/shims/python3`) or
/// the version manager itself (`pyenv-exec`). A shim finds the right version of a program and replaces itself by that
/// program.
pub fn shim(filename: &[u8], args: &[&[u8]]) -> Option<&'static str> {
    // The path of a shim, the version manager's stand-in for a program, is that of the executed file or, if an
    // interpreter runs the shim, one of the first arguments.
    const FIRST: usize = 4;
    let paths = std::iter::once(filename).chain(args.iter().take(FIRST).copied());
    paths.into_iter().find_map(|path| {
        let mut parts = path.split(|byte| *byte == b'/').rev();
        let (name, directory) = (parts.next()?, parts.next()?);
        let manager = SHIMS.iter().find(|manager| {
            let own = |part: &[u8]| part.strip_prefix(b".").unwrap_or(part) == manager.as_bytes();
            let is_part = name == manager.as_bytes()
                || name
                    .strip_prefix(manager.as_bytes())
                    .is_some_and(|rest| rest.starts_with(b"-"));
            match directory {
                b"shims" => parts.clone().any(own),
                b"libexec" | b"bin" => is_part,
                _ => false,
            }
        });
        manager.copied()
    })
}

/// The names of version managers that put shims into PATH.
const SHIMS: [&str; 7] = ["pyenv", "rbenv", "nodenv", "goenv", "jenv", "plenv", "asdf"];

/// The label of a process for people: its program and the arguments that matter. The text of a script is shortened.
/// `forked` says that the process was only forked and shows its parent's command line; the label then ends with
/// `(forked)`.
pub fn label_of(argv: &Argv, comm: &Comm, forked: bool) -> String {
    label(argv, comm, forked, Ask::Label)
}

/// Like [`label_of`], but for JSON, CSV and other machine formats: the text of a script is not shortened.
pub fn whole_label_of(argv: &Argv, comm: &Comm, forked: bool) -> String {
    label(argv, comm, forked, Ask::WholeLabel)
}

/// The parts of the label for people ([`label_of`]): the program, each of the arguments that the label shows, and
/// `(forked)` for a process that has executed nothing. The label has a space between two parts. A part may contain
/// spaces itself.
pub fn label_parts_of(argv: &Argv, comm: &Comm, forked: bool) -> Vec<String> {
    parts(argv, comm, forked, Ask::Label)
}

fn label(argv: &Argv, comm: &Comm, forked: bool, ask: Ask) -> String {
    parts(argv, comm, forked, ask).join(" ")
}

fn parts(argv: &Argv, comm: &Comm, forked: bool, ask: Ask) -> Vec<String> {
    let args: Vec<&[u8]> = argv.args().collect();
    let Description { program, mut what } = read(&args, 0, ask);
    if program.name().is_empty() {
        return vec![escape::raw(comm.bytes())];
    }
    what.insert(0, program.to_string());
    if forked {
        what.push("(forked)".to_owned());
    }
    what
}

/// The brief name of a process, for places where its label has no room: the last word of the label without the
/// directories before it. It distinguishes `cc1 mod10.c` from `cc1 mod11.c`. If the label has no words after the
/// program, the brief name is the program's verb (`git clone`). `None` if the program has no verb either, or if the
/// label ends with the text of a script.
pub fn brief_of(argv: &Argv) -> Option<String> {
    let args: Vec<&[u8]> = argv.args().collect();
    let Description { program, what } = read(&args, 0, Ask::Label);
    let word = what.last().map(String::as_str).or(program.verb())?;
    brief(word).map(str::to_owned)
}

/// The facts by which a process is recognized in other recordings of the same build: the name of its program, and the
/// arguments that its label shows. The text of a script among them is whole.
pub fn identity_of(argv: &Argv, comm: &Comm) -> (ProgramName, Vec<String>) {
    let args: Vec<&[u8]> = argv.args().collect();
    let Description { program, what } = read(&args, 0, Ask::Words);
    if program.name().is_empty() {
        return (ProgramName::new(escape::raw(comm.bytes())), Vec::new());
    }
    (program, what)
}

/// The name of a server's program. Some servers, such as PostgreSQL's, change their command line to `NAME: STATE`; only
/// the name is kept.
pub fn server_of(argv: &Argv, comm: &Comm) -> ProgramName {
    let name = |text: &[u8]| {
        let end = text.windows(2).position(|pair| pair == b": ")?;
        text.get(..end).map(<[u8]>::to_vec)
    };
    let program = argv.args().next().and_then(name);
    let program = program.map(|program| program_of_args(&[&program]));
    let program = program.filter(|program| !program.name().is_empty());
    program.unwrap_or_else(|| program_of(argv, comm))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Examples of command lines of programs that have no row in the table of known programs, each
    /// with the program and the label expected for it.
    const OTHERS: &str = "
        /usr/lib/go/pkg/tool/linux_amd64/compile -o x.a -p net/http => go compile | http
        /tmp/go-build12/b001/http.test -test.v => test http | -test.v
        /tmp/go-build12/b001/http.test -test.testlogfile=/tmp/x -test.paniconexit0 -test.timeout=10m0s -test.run=A => test http | -test.run=A
        /usr/lib/go/pkg/tool/linux_amd64/compile -o x.a -p main /tmp/go-build12/b001/_testmain.go => go compile | test main
        /w/target/debug/deps/laws-0123456789abcdef --nocapture => test laws | --nocapture
        /w/target/debug/build/serde-0123456789abcdef/build-script-build => build-script-build | serde
        ctest -j4 => ctest | -j4
        bash -eo pipefail /w/run.sh x => run.sh | x
        sh -c test_harness(~0 => sh | -c 'test_harness( 0'
        python3 -c from~x~import~*;test_harness() => python3 | -c 'from x import *;test_harness()'
        /w/tests/test_harness -v => test_harness | -v
        sh -c 'jest'~-w~2 => sh | -c \"'jest' -w 2\"
        sh -c echo~'$x' => sh | -c 'echo '\\''$x'\\'''
        make -C src all => make | -C src all";

    /// Checks that the label for people shortens the text of a script, and that the label for machine formats does not,
    /// unless the text is so long as only a hostile one is.
    #[test]
    fn the_text_of_a_script_is_whole_in_machine_formats() {
        let comm = Comm::new(b"bash");
        for count in [2, 30, 5000] {
            let script = vec!["it's"; count].join("  ");
            let argv = Argv::from_args(["bash", "-c", &script]);
            let text = vec!["it's"; count].join(" ");
            let quoted = |text: &str| format!("bash -c {}", escape::in_quotes(text));
            let short = label_of(&argv, &comm, false);
            assert_eq!(short, quoted(&units::shorten(&text, TEXT)));
            let whole = whole_label_of(&argv, &comm, true);
            assert_eq!(whole, quoted(&phrase::bounded(&text)) + " (forked)");
            assert!(whole.len() < 2 * phrase::LONGEST_NAME);
            let args: Vec<&[u8]> = argv.args().collect();
            let portable = portable_label(&args);
            assert_eq!(portable.short(), short);
            assert_eq!(portable.whole(), whole.trim_end_matches(" (forked)"));
        }
    }

    #[test]
    fn the_brief_name_is_what_differs_between_neighbours() {
        for (line, want) in [
            (
                "/usr/lib/gcc/cc1 -quiet src/mod10.c -o /tmp/a.s",
                Some("mod10.c"),
            ),
            ("make -C src/lua/", Some("lua")),
            ("git clone", Some("clone")),
            ("/tmp/go-build12/b001/http.test", Some("http")),
            ("make", None),
            ("sh -c cc~-c~x.c", None),
            ("frob ...", None),
        ] {
            let args = line.split(' ').map(|arg| arg.replace('~', " "));
            let brief = brief_of(&Argv::from_args(args));
            assert_eq!(brief.as_deref(), want, "{line}");
        }
    }

    #[test]
    fn a_server_is_named_without_its_state() {
        for (title, want) in [
            ("postgres: walwriter ", "postgres"),
            (
                "/usr/lib/postgresql/16/bin/postgres: checkpointer",
                "postgres",
            ),
            (
                "nginx: master process /usr/sbin/nginx -g daemon off;",
                "nginx",
            ),
            (
                "sshd: /usr/sbin/sshd -D [listener] 0 of 10-100 startups",
                "sshd",
            ),
            ("sccache", "sccache"),
            (": x", ": x"),
        ] {
            let argv = Argv::from_args([title]);
            let name = server_of(&argv, &Comm::new(b"name"));
            assert_eq!(name, ProgramName::new(want), "{title}");
        }
    }

    #[test]
    fn a_shim_is_known_by_its_place() {
        for (line, want) in [
            ("/root/.pyenv/shims/python3 x.py", Some("pyenv")),
            (
                "/usr/bin/env bash /home/u/.rbenv/shims/ruby x.rb",
                Some("rbenv"),
            ),
            ("bash /opt/pyenv/libexec/pyenv-exec python3", Some("pyenv")),
            ("/root/.pyenv/versions/3.11.7/bin/python3 x.py", None),
            ("python3 /w/shims/x.py", None),
            ("make -C pyenv", None),
        ] {
            let args: Vec<&[u8]> = line.split(' ').map(str::as_bytes).collect();
            assert_eq!(shim(args[0], &args[1..]), want, "{line}");
        }
    }

    #[test]
    fn a_shell_names_the_file_of_its_script() {
        for (line, want) in [
            ("sh ./x", Some("./x")),
            ("/bin/sh -x ./x a b", Some("./x")),
            ("bash --norc x", Some("x")),
            ("bash -eo pipefail x.sh a", Some("x.sh")),
            (
                "/usr/bin/bash --noprofile --norc -e -o pipefail /_temp/x.sh",
                Some("/_temp/x.sh"),
            ),
            ("bash +e -O extglob -- /w/x", Some("/w/x")),
            ("-bash /w/x", Some("/w/x")),
            ("dash x", Some("x")),
            ("ash x", Some("x")),
            ("zsh -f x", Some("x")),
            ("ksh x", Some("x")),
            ("busybox sh -e x", Some("x")),
            ("/bin/busybox ash x", Some("x")),
            ("sh", None),
            ("sh -", None),
            ("sh -c x", None),
            ("sh -ec x y", None),
            ("bash -o pipefail -euxc x y", None),
            ("sh -s x", None),
            ("bash -es x", None),
            ("bash -n x", None),
            ("bash /dev/fd/63", None),
            ("bash /proc/self/fd/3", None),
            ("busybox cat x", None),
            ("python3 x.py", None),
            ("make x", None),
            ("", None),
        ] {
            let argv = Argv::from_args(line.split(' ').filter(|arg| !arg.is_empty()));
            let file = shell_script(&argv);
            assert_eq!(file, want.map(str::as_bytes), "{line}");
        }
        let mut cut = Argv::from_args(["sh", "-e", "./x"]);
        cut.full_len = Some(100);
        assert_eq!(shell_script(&cut), None);
    }

    #[test]
    fn common_tools_have_short_names() {
        let examples = table::rows().map(|tool| tool.labels);
        for line in examples.chain([OTHERS]).flat_map(str::lines) {
            if line.trim().is_empty() {
                continue;
            }
            let (args, names) = line.trim().split_once(" => ").expect(line);
            let (program, rest) = names.split_once(" |").expect(line);
            let args = args.split(' ').map(|arg| arg.replace('~', " "));
            let (argv, comm) = (Argv::from_args(args), Comm::new(b"comm"));
            assert_eq!(program_of(&argv, &comm).to_string(), program, "{line}");
            let label = label_of(&argv, &comm, false);
            assert_eq!(label, format!("{program}{rest}"), "{line}");
        }
    }

    #[test]
    fn the_identity_of_a_process_has_its_whole_script() {
        let comm = Comm::new(b"comm");
        let check = |argv: &Argv, program: ProgramName, arguments: &[&str]| {
            let arguments: Vec<String> = arguments.iter().map(|word| (*word).to_owned()).collect();
            assert_eq!(identity_of(argv, &comm), (program, arguments));
        };
        let script = format!("cd '{}'", "a/".repeat(100));
        let argv = Argv::from_args(["bash", "-e", "-c", &script]);
        check(&argv, ProgramName::new("bash"), &["-c", &script]);
        let argv = Argv::from_args(["/usr/lib/gcc/cc1", "-quiet", "src/x.c", "-o", "/tmp/a.s"]);
        check(&argv, ProgramName::new("cc1"), &["x.c"]);
        check(&Argv::default(), ProgramName::new("comm"), &[]);
        // A file whose name has a space is another program than a tool with a verb.
        let clone = ProgramName::with_verb("git", "clone");
        check(&Argv::from_args(["git", "clone"]), clone, &[]);
        check(
            &Argv::from_args(["/w/git clone"]),
            ProgramName::new("git clone"),
            &[],
        );
    }
}
