//! The names of the programs that command lines start.
//!
//! The *program* is common to many processes (`cc1`, `git clone`, `foo.py`). The *label* distinguishes a process from
//! its siblings (`cc1 lparser.c`). The table `TOOLS` has the arguments that the labels of the families of
//! [`crate::tools`] show.

use crate::tools::{self, Family, Role};
use tr_format::event::{Argv, Comm};

use tr_text::{escape, units};

/// The arguments of a tool that its label shows. Lists of options are separated
/// by spaces.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Tool {
    /// The source file, or else the output; first the option that asks for less than to
    /// compile (`-E`, `-MM`).
    Compiler,
    /// The output, unless it is a temporary file.
    Assembler,
    /// The value of the option.
    Named(&'static str),
    /// The program has the first argument that is no option (`git clone`). These
    /// options have their value in the next argument.
    Verbs(&'static str),
    /// The program has the first argument if it is one of these, and otherwise the other name.
    Commands(&'static str, &'static str),
    /// The program is a script, a module, or a text among the arguments.
    Interpreter(Script),
    /// The first argument is another tool.
    Wrapper,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Script {
    /// Options with the program's text in the next argument.
    text: &'static str,
    /// Options with the name of a module or a jar in the next argument.
    named: &'static str,
    /// Other options with a value in the next argument.
    valued: &'static str,
    /// Options that belong to the program's name.
    mode: &'static str,
    /// One-letter options may stand together: `sh -ec TEXT`.
    clustered: bool,
    /// The program is a class, not a file.
    class: bool,
}

const SCRIPT: Script = Script {
    text: "",
    named: "",
    valued: "",
    mode: "",
    clustered: false,
    class: false,
};
const SHELL: Tool = Tool::Interpreter(Script {
    text: "-c",
    valued: "-o +o -O +O --rcfile --init-file",
    clustered: true,
    ..SCRIPT
});
const PYTHON: Tool = Tool::Interpreter(Script {
    text: "-c",
    named: "-m",
    valued: "-W -X -Q --check-hash-based-pycs",
    ..SCRIPT
});
const PERL: Tool = Tool::Interpreter(Script {
    text: "-e -E",
    valued: "-I",
    clustered: true,
    ..SCRIPT
});
const RUBY: Tool = Tool::Interpreter(Script {
    text: "-e",
    valued: "-I -r -C -E",
    ..SCRIPT
});
const NODE: Tool = Tool::Interpreter(Script {
    text: "-e --eval -p --print",
    valued: "-r --require --import --loader --experimental-loader -C --conditions \
             --test-name-pattern --test-reporter --test-concurrency",
    mode: "--test",
    ..SCRIPT
});
const PLAIN: Tool = Tool::Interpreter(Script {
    text: "-e -r",
    valued: "-l",
    ..SCRIPT
});
const JAVA: Tool = Tool::Interpreter(Script {
    named: "-jar -m --module",
    valued: "-cp -classpath --class-path -p --module-path --add-opens --add-exports \
             --add-modules --add-reads",
    class: true,
    ..SCRIPT
});

/// Families of tools; their arguments; command lines with the program and the rest of the label,
/// which a test checks (`~`: a space in an argument).
const TOOLS: &[(&[Family], Tool, &str)] = &[
    (
        &[Family::CompilerDriver, Family::CompilerPass],
        Tool::Compiler,
        "/usr/lib/gcc/x/12/cc1 -quiet -I. src/lparser.c -o /tmp/ccAbCdEf.s => cc1 | lparser.c
         gcc -c -o a.o x.c => gcc | x.c
         x86_64-linux-gnu-gcc-12 -c x.cpp => x86_64-linux-gnu-gcc-12 | x.cpp
         clang-15 -o lua a.o b.o => clang-15 | lua
         gcc --version => gcc | --version
         cc -I. -MM -o x.d src/x.c => cc | -MM x.c
         gcc -E -dM - => gcc | -E -dM -
         gcc -E conftest.c => gcc | -E conftest.c
         gcc -o conftest -g conftest.c => gcc | conftest.c",
    ),
    (
        &[Family::Assembler],
        Tool::Assembler,
        "as -o build/lvm.o /tmp/ccAbCdEf.s => as | lvm.o
         as -o /tmp/ccAbCdEf.o /tmp/ccXbCdEf.s => as | ccXbCdEf.s",
    ),
    (
        &[Family::Linker, Family::FastLinker],
        Tool::Named("-o"),
        "/usr/bin/ld -plugin p.so -o lua a.o => ld | lua
         wild -o lua a.o => wild | lua",
    ),
    (
        &[Family::Rustc, Family::Rustdoc],
        Tool::Named("--crate-name"),
        "rustc --crate-name serde --edition=2021 => rustc | serde
         rustc --crate-name memchr src/lib.rs --test => rustc | memchr --test",
    ),
    (
        &[Family::CompilerCache],
        Tool::Wrapper,
        "ccache gcc -c x.c => ccache | gcc x.c",
    ),
    (
        &[Family::Git],
        Tool::Verbs("-C -c --git-dir --work-tree --namespace"),
        "git -C /src clone https://x.org/y => git clone | https://x.org/y
         git --version => git | --version
         /usr/lib/git-core/git index-pack --stdin => git index-pack | --stdin",
    ),
    (
        &[Family::Cargo],
        Tool::Verbs("-C -Z --color --config --manifest-path"),
        "cargo test --workspace => cargo test | --workspace
         cargo +nightly -Z unstable test => cargo test |",
    ),
    (
        &[Family::Npm, Family::Npx],
        Tool::Verbs("--prefix -C --dir --cwd -w --workspace"),
        "node /usr/bin/npm ci => npm ci |
         node /usr/lib/node_modules/npm/bin/npm-cli.js run build => npm run | build",
    ),
    (
        &[Family::SystemPackages],
        Tool::Verbs("-o -c -t -a --root"),
        "apt-get -o Dpkg=1 -y install gcc => apt-get install | gcc",
    ),
    (
        &[Family::Go],
        Tool::Verbs("-C"),
        "go test ./... => go test | ./...",
    ),
    (
        &[Family::Container],
        Tool::Verbs("-H --host --context -c --config -l --log-level"),
        "docker --context ci run x => docker run | x",
    ),
    (
        &[Family::Pip, Family::Operator],
        Tool::Verbs(""),
        "/usr/bin/python3 /usr/bin/pip install x => pip install | x",
    ),
    (
        &[Family::Meson],
        Tool::Commands(
            "setup configure dist install introspect init test wrap subprojects rewrite compile \
             devenv env2mfile format fmt help",
            "setup",
        ),
        "python3 /usr/bin/meson setup b => meson setup | b
         meson test -C b => meson test | -C b
         meson b => meson setup | b
         meson --buildtype=release b => meson setup | --buildtype=release b
         meson --internal exe x => meson | --internal exe x
         meson --version => meson | --version",
    ),
    (
        &[Family::Shell],
        SHELL,
        "sh -c gcc~-c~~~x.c => sh | -c 'gcc -c x.c'
         /bin/bash -o pipefail -euxc make => bash | -euxc 'make'
         -bash => bash |
         /bin/sh ./configure --prefix=/usr => configure | --prefix=/usr
         bash -x tools/t.sh a => t.sh | a
         sh - => sh | -",
    ),
    (
        &[Family::Python],
        PYTHON,
        "python3 foo.py => foo.py |
         python3 -u -X dev tools/foo.py --x => foo.py | --x
         python3 -c import~this => python3 | -c 'import this'
         python3 -m pytest -q tests => pytest | -q tests
         python3 -m pip install x => pip install | x
         python3 -u -c import~sys;exec(eval(sys.stdin.readline())) => pytest worker |
         /usr/bin/python3.11 -W ignore /usr/bin/pytest -x => pytest | -x",
    ),
    (
        &[Family::Perl],
        PERL,
        "perl -w -I lib t/x.t => x.t |
         perl -MTest::Harness -e test_harness(0,~'lib') t/a.t t/b.t => perl Test::Harness | t/a.t t/b.t
         perl -MExtUtils::Command::MM -e test_harness(0) t/a.t => perl Test::Harness | t/a.t
         perl -e use~Test::Harness;test_harness(0) a.t => perl Test::Harness | a.t
         perl -e test_harness(0) a.t => perl | -e 'test_harness(0)'
         perl -ne print x => perl | -ne 'print'",
    ),
    (
        &[Family::Ruby],
        RUBY,
        "ruby -Ilib -r set a.rb b => a.rb | b",
    ),
    (
        &[Family::Node],
        NODE,
        "node --require ./hook.js server.js 80 => server.js | 80
         node /a/node_modules/jest/bin/jest.js --ci => jest | --ci
         node --test test/a.test.js => node --test | test/a.test.js
         node --test => node --test |
         node /a/node_modules/typescript/lib/tsc.js -p . => tsc | -p .",
    ),
    (&[Family::Script], PLAIN, "lua -l set x.lua 1 => x.lua | 1"),
    (
        &[Family::JavaMachine],
        JAVA,
        "java -Xmx1g -cp a.jar:b.jar org.x.Main in => Main | in
         java -jar /opt/x.jar -v => x.jar | -v",
    ),
];

/// The extensions of compilers' source files.
const SOURCES: [&str; 18] = [
    ".c", ".cc", ".cpp", ".cxx", ".c++", ".C", ".s", ".S", ".sx", ".m", ".mm", ".f", ".f90",
    ".F90", ".i", ".ii", ".cu", ".adb",
];

/// The text of a worker of pytest-xdist (execnet), which reads its program from a pipe.
pub const XDIST: &[u8] = b"import sys;exec(eval(sys.stdin.readline()))";

/// The call by which a text in Perl runs a module's tests, and the modules that have it.
const HARNESS: &str = "test_harness(";
const HARNESSES: [&str; 2] = ["Test::Harness", "ExtUtils::Command::MM"];

/// The longest script text in a label.
const TEXT: usize = 60;

pub fn base(path: &str) -> &str {
    path.rsplit('/')
        .next()
        .filter(|name| !name.is_empty())
        .unwrap_or(path)
}

/// The arguments of the tools of a family.
fn of_family(family: Family) -> Option<Tool> {
    let mut rows = TOOLS.iter();
    let row = rows.find(|(families, ..)| families.contains(&family))?;
    Some(row.1)
}

/// The arguments of the tool with this name.
fn tool(name: &str) -> Option<Tool> {
    of_family(tools::by_name(name)?.family)
}

/// The options before a verb of this family's programs that have their value in the next argument,
/// separated by spaces.
pub fn valued(family: Family) -> &'static str {
    match of_family(family) {
        Some(Tool::Verbs(valued)) => valued,
        _ => "",
    }
}

/// A command line's program and the rest of its label.
struct Said {
    program: String,
    /// Empty if only the program was asked for.
    what: Vec<String>,
}

/// The part of [`Said`] that is needed. The program alone costs much less.
#[derive(Clone, Copy, Debug)]
enum Ask {
    Program,
    Label,
}

impl Ask {
    fn what(self, what: impl FnOnce() -> Vec<String>) -> Vec<String> {
        match self {
            Ask::Program => Vec::new(),
            Ask::Label => what(),
        }
    }
}

/// Whether one of the options, separated by spaces, is this argument.
pub fn has(options: &str, arg: &[u8]) -> bool {
    let mut options = options.split_whitespace();
    options.any(|option| option.as_bytes() == arg)
}

/// Texts of arguments, escaped.
fn texts<'a>(args: impl IntoIterator<Item = &'a &'a [u8]>) -> Vec<String> {
    args.into_iter().map(|arg| escape::text(arg)).collect()
}

/// A program with its first argument if that is a known command, and otherwise with the other name; `None`: it only
/// says something.
fn command(name: &str, rest: &[&[u8]], (known, other): (&str, &str), ask: Ask) -> Option<Said> {
    let (first, after) = rest.split_first()?;
    if has(known, first) {
        return Some(Said {
            program: format!("{name} {}", escape::text(first)),
            what: ask.what(|| texts(after)),
        });
    }
    (!has("--internal --version --help -h", first)).then(|| Said {
        program: format!("{name} {other}"),
        what: ask.what(|| texts(rest)),
    })
}

/// Reads a command line; `nested` is the number of interpreters before it.
fn read(args: &[&[u8]], nested: u8, ask: Ask) -> Said {
    let (first, rest) = match args.split_first() {
        Some((first, rest)) => (*first, rest),
        None => (&b""[..], &[][..]),
    };
    let first = escape::text(first);
    // A login shell's name starts with a dash.
    let path = first.strip_prefix('-').unwrap_or(&first);
    let name = program_name(path);
    let said = |what: Vec<String>| Said {
        program: name.clone(),
        what,
    };
    let all = || said(ask.what(|| texts(rest)));
    let one = |what: &dyn Fn() -> Option<String>| {
        said(ask.what(|| what().map_or_else(|| texts(rest), |what| vec![what])))
    };
    let value_of = |option: &str| {
        let at = rest.iter().position(|arg| *arg == option.as_bytes())?;
        rest.get(at + 1)
            .map(|value| base(&escape::text(value)).to_owned())
    };
    let source = || source(rest);
    // Go's compiler and linker: their names are common words.
    if path.contains('/') && path.contains("/pkg/tool/") {
        let what = ask.what(|| {
            let what = value_of("-p").or_else(|| value_of("-o"));
            what.map_or_else(|| texts(rest), |what| vec![what])
        });
        let program = format!("go {name}");
        return Said { program, what };
    }
    // cargo's build scripts: their directory has the crate's name.
    if tools::by_name(&name).is_some_and(|tool| tool.family == Family::BuildScript) {
        let crates = path.rsplit('/').nth(1).map(unhashed);
        return one(&|| crates.map(str::to_owned));
    }
    let tool = if nested < 4 { tool(&name) } else { None };
    match tool {
        Some(Tool::Compiler) => said(ask.what(|| {
            let mode = rest.iter().find(|arg| has("-E -M -MM", arg));
            match source().or_else(|| value_of("-o").filter(|_| mode.is_none())) {
                Some(file) => texts(mode).into_iter().chain([file]).collect(),
                None => texts(rest),
            }
        })),
        Some(Tool::Assembler) => one(&|| {
            let made = value_of("-o").filter(|file| !is_temporary(file));
            made.or_else(source).or_else(|| value_of("-o"))
        }),
        Some(Tool::Named(option)) => said(ask.what(|| {
            let test = rest.iter().find(|arg| has("--test", arg));
            match value_of(option) {
                Some(name) => std::iter::once(name).chain(texts(test)).collect(),
                None => texts(rest),
            }
        })),
        Some(Tool::Wrapper) => match rest.first() {
            Some(inner) if !inner.starts_with(b"-") => said(ask.what(|| {
                let Said { program, mut what } = read(rest, nested + 1, ask);
                what.insert(0, program);
                what
            })),
            _ => all(),
        },
        Some(Tool::Verbs(valued)) => match verb(rest, valued) {
            Some((verb, after)) => Said {
                program: format!("{name} {verb}"),
                what: ask.what(|| texts(after)),
            },
            None => all(),
        },
        Some(Tool::Commands(known, other)) => {
            command(&name, rest, (known, other), ask).unwrap_or_else(all)
        }
        Some(Tool::Interpreter(script)) => interpreted(&name, rest, &script, nested, ask),
        None => all(),
    }
}

/// The first file of a compiler's sources.
pub fn source(args: &[&[u8]]) -> Option<String> {
    let is = |arg: &&&[u8]| SOURCES.iter().any(|end| arg.ends_with(end.as_bytes()));
    let source = args.iter().find(|arg| is(arg) && !arg.starts_with(b"-"))?;
    Some(base(&escape::text(source)).to_owned())
}

/// The name of the program in this file.
fn program_name(path: &str) -> String {
    let name = base(path);
    if path.contains("node_modules/") || path.contains("/npm/bin/") {
        let name = [".js", ".cjs", ".mjs"]
            .iter()
            .find_map(|end| name.strip_suffix(end))
            .unwrap_or(name);
        return name.strip_suffix("-cli").unwrap_or(name).to_owned();
    }
    match test_of_cargo(path).or_else(|| test_of_go(path)) {
        Some(test) => format!("test {test}"),
        None => name.to_owned(),
    }
}

/// The name of a test binary of cargo: `target/debug/deps/NAME-HASH`.
pub fn test_of_cargo(path: &str) -> Option<&str> {
    let name = base(path);
    Some(unhashed(name)).filter(|plain| path.contains("/deps/") && *plain != name)
}

/// The package of a test binary of go: `/tmp/go-build1/b001/PACKAGE.test`.
pub fn test_of_go(path: &str) -> Option<&str> {
    let package = base(path).strip_suffix(".test");
    package.filter(|_| path.contains("/go-build"))
}

/// A name without cargo's suffix of 16 hexadecimal digits.
pub fn unhashed(name: &str) -> &str {
    match name.rsplit_once('-') {
        Some((plain, hash)) if hash.len() == 16 && hash.bytes().all(|b| b.is_ascii_hexdigit()) => {
            plain
        }
        _ => name,
    }
}

/// One of gcc's temporary files: `ccXXXXXX.o`.
pub fn is_temporary(file: &str) -> bool {
    let stem = file.split('.').next().unwrap_or_default();
    stem.len() == 8 && stem.starts_with("cc")
}

/// A tool's verb, and the arguments after it.
fn verb<'a>(rest: &'a [&'a [u8]], valued: &str) -> Option<(String, &'a [&'a [u8]])> {
    let mut at = 0;
    while let Some(arg) = rest.get(at) {
        if arg.starts_with(b"-") || arg.starts_with(b"+") {
            at += 1 + usize::from(has(valued, arg));
            continue;
        }
        let word = |b: &u8| b.is_ascii_alphanumeric() || b"-_:".contains(b);
        let plain = arg.len() <= 24 && arg.iter().all(word);
        let after = rest.get(at + 1..).unwrap_or_default();
        return plain.then(|| (escape::text(arg), after));
    }
    None
}

/// The argument from which on an interpreter's arguments say what it runs.
#[derive(Clone, Copy, Debug)]
enum Runs {
    /// An option of [`Script::mode`].
    Mode(usize),
    /// An option with a text; the text follows.
    Text(usize),
    /// A script, or the name of a module or a jar.
    Script(usize),
    Nothing,
}

fn runs(rest: &[&[u8]], script: &Script) -> Runs {
    // `-ec`: the last letter may be an option with a value.
    let last = |arg: &[u8]| match arg {
        [b'-', letters @ .., last] if script.clustered && !letters.starts_with(b"-") => {
            Some([b'-', *last])
        }
        _ => None,
    };
    let mut at = 0;
    while let Some(arg) = rest.get(at).copied() {
        let has_value = rest.get(at + 1).is_some();
        if has(script.mode, arg) {
            return Runs::Mode(at);
        }
        let text = has(script.text, arg) || last(arg).is_some_and(|last| has(script.text, &last));
        if text && has_value {
            return Runs::Text(at);
        }
        if has(script.named, arg) && has_value {
            return Runs::Script(at + 1);
        }
        if arg.len() > 1 && (arg.starts_with(b"-") || arg.starts_with(b"+")) {
            let valued = |option: &[u8]| has(script.valued, option);
            let valued = valued(arg) || last(arg).is_some_and(|last| valued(&last));
            at += 1 + usize::from(valued);
            continue;
        }
        if arg == b"-" {
            break; // standard input
        }
        return Runs::Script(at);
    }
    Runs::Nothing
}

/// The program that an interpreter runs.
fn interpreted(name: &str, rest: &[&[u8]], script: &Script, nested: u8, ask: Ask) -> Said {
    let from = |at: usize| rest.get(at..).unwrap_or_default();
    let said = |program: &str, what: Vec<String>| Said {
        program: program.to_owned(),
        what,
    };
    match runs(rest, script) {
        Runs::Mode(at) => {
            let mode = from(at)
                .first()
                .map_or(String::new(), |arg| escape::text(arg));
            said(&format!("{name} {mode}"), ask.what(|| texts(from(at + 1))))
        }
        Runs::Text(at) => match from(at) {
            [_, text, ..] if text.starts_with(XDIST) => said("pytest worker", Vec::new()),
            // The tests of `make test` in Perl.
            [_, text, files @ ..]
                if calls_harness(name, rest.get(..at).unwrap_or_default(), text) =>
            {
                said("perl Test::Harness", ask.what(|| texts(files)))
            }
            [option, text, ..] => said(name, ask.what(|| vec![escape::text(option), short(text)])),
            _ => said(name, Vec::new()),
        },
        Runs::Script(at) => run(from(at), script, nested, ask),
        Runs::Nothing => said(name, ask.what(|| texts(rest))),
    }
}

/// Whether this text of an interpreter, after these options, runs the tests of a Perl module.
fn calls_harness(name: &str, options: &[&[u8]], text: &[u8]) -> bool {
    let has =
        |text: &[u8], what: &str| text.windows(what.len()).any(|part| part == what.as_bytes());
    let is_perl = || tools::by_name(name).is_some_and(|tool| tool.family == Family::Perl);
    let loads =
        |arg: &[u8]| arg.starts_with(b"-M") && HARNESSES.iter().any(|harness| has(arg, harness));
    let uses = || HARNESSES.iter().any(|harness| has(text, harness));
    has(text, HARNESS) && is_perl() && (options.iter().any(|arg| loads(arg)) || uses())
}

/// The arguments from the script, module or class on that an interpreter runs; all
/// arguments of another program.
pub fn without_interpreter<'a>(args: &'a [&'a [u8]]) -> &'a [&'a [u8]] {
    let Some((first, rest)) = args.split_first() else {
        return args;
    };
    let name = escape::text(first);
    match tool(base(name.strip_prefix('-').unwrap_or(&name))) {
        Some(Tool::Interpreter(script)) => match runs(rest, &script) {
            Runs::Script(at) => rest.get(at..).unwrap_or(args),
            _ => args,
        },
        _ => args,
    }
}

/// A script, module or class with its arguments.
fn run(args: &[&[u8]], script: &Script, nested: u8, ask: Ask) -> Said {
    let (first, rest) = match args.split_first() {
        Some((first, rest)) => (*first, rest),
        None => (&b""[..], &[][..]),
    };
    if script.class && !first.ends_with(b".jar") && !first.contains(&b'/') {
        let class = first.rsplit(|b| *b == b'.').next().unwrap_or(first);
        return Said {
            program: escape::text(class),
            what: ask.what(|| texts(rest)),
        };
    }
    read(args, nested + 1, ask)
}

/// A script among the arguments: one line, shortened, in quotes.
fn short(script: &[u8]) -> String {
    let script = script.get(..4 * TEXT * 4).unwrap_or(script);
    let words: Vec<&[u8]> = script
        .split(|b| b.is_ascii_whitespace())
        .filter(|word| !word.is_empty())
        .collect();
    format!(
        "'{}'",
        units::shorten(&escape::text(&words.join(&b' ')), TEXT)
    )
}

/// The program of a command line.
pub fn program_of_args(args: &[&[u8]]) -> String {
    read(args, 0, Ask::Program).program
}

/// The program of an execution.
pub fn program_of(argv: &Argv, comm: &Comm) -> String {
    let args: Vec<&[u8]> = argv.args().collect();
    Some(program_of_args(&args))
        .filter(|program| !program.is_empty())
        .unwrap_or_else(|| escape::text(comm.bytes()))
}

/// The tool that such a program is, and its verb.
pub fn tool_of(program: &str) -> Option<(&'static tools::Tool, Option<&str>)> {
    let (name, verb) = match program.split_once(' ') {
        Some((name, verb)) => (name, Some(verb)),
        None => (program, None),
    };
    Some((tools::by_name(name)?, verb))
}

/// The role of such a program.
pub fn role_of(program: &str) -> Option<Role> {
    let (tool, verb) = tool_of(program)?;
    tool.role(verb)
}

/// The role of its execution with these arguments. cmake configures, unless an option says what else it does.
pub fn role(program: &str, argv: &Argv) -> Option<Role> {
    const OTHERS: &str = "--build --install --open -E -P --version";
    let (tool, verb) = tool_of(program)?;
    let configures = || tool.family == Family::Cmake && !argv.args().any(|arg| has(OTHERS, arg));
    tool.role(verb)
        .or_else(|| configures().then_some(Role::Configure))
}

/// The label of an execution; `forked`: of a child without an exec of its own.
pub fn label_of(argv: &Argv, comm: &Comm, forked: bool) -> String {
    let args: Vec<&[u8]> = argv.args().collect();
    let Said { program, what } = read(&args, 0, Ask::Label);
    if program.is_empty() {
        return escape::text(comm.bytes());
    }
    let mut out = program;
    for what in what {
        out.push(' ');
        out.push_str(&what);
    }
    if forked {
        out.push_str(" (forked)");
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Command lines that no row of the table stands for.
    const OTHERS: &str = "
        /usr/lib/go/pkg/tool/linux_amd64/compile -o x.a -p net/http => go compile | http
        /tmp/go-build12/b001/http.test -test.v => test http | -test.v
        /w/target/debug/deps/laws-0123456789abcdef --nocapture => test laws | --nocapture
        /w/target/debug/build/serde-0123456789abcdef/build-script-build => build-script-build | serde
        ctest -j4 => ctest | -j4
        bash -eo pipefail /w/run.sh x => run.sh | x
        sh -c test_harness(~0 => sh | -c 'test_harness( 0'
        python3 -c from~x~import~*;test_harness() => python3 | -c 'from x import *;test_harness()'
        /w/tests/test_harness -v => test_harness | -v
        make -C src all => make | -C src all";

    #[test]
    fn common_tools_have_short_names() {
        let examples = TOOLS.iter().map(|(.., examples)| *examples);
        for line in examples.chain([OTHERS]).flat_map(str::lines) {
            if line.trim().is_empty() {
                continue;
            }
            let (args, names) = line.trim().split_once(" => ").expect(line);
            let (program, rest) = names.split_once(" |").expect(line);
            let args = args.split(' ').map(|arg| arg.replace('~', " "));
            let (argv, comm) = (Argv::from_args(args), Comm::new(b"comm"));
            assert_eq!(program_of(&argv, &comm), program, "{line}");
            let label = label_of(&argv, &comm, false);
            assert_eq!(label, format!("{program}{rest}"), "{line}");
        }
    }
}
