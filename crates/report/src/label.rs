//! A short name for what a process did, from its arguments.
//!
//! The *program* is what many processes have in common (`cc1`, `git clone`,
//! `foo.py`); the *label* tells one from its siblings (`cc1 lparser.c`). What is
//! known of common tools stands in the table `TOOLS`.

use std::collections::HashMap;
use std::sync::LazyLock;

use tr_analyze::model::Process;
use tr_format::event::{Argv, Comm};

use crate::{escape, units};

/// How a tool's arguments are to be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Tool {
    /// Told by its source file, or what it makes.
    Compiler,
    /// Told by what it makes: its input is a temporary file.
    Assembler,
    /// Told by what it makes.
    Linker,
    /// Told by the value of one of these options.
    Named(&'static [&'static str]),
    /// The first argument that is no option says what it does (`git clone`).
    /// These options have their value in the next argument.
    Verbs(&'static [&'static str]),
    /// Runs a script, a module of its own (`-m`), or a text among the arguments.
    Interpreter(Script),
    /// Runs another tool, named by its first argument.
    Wrapper,
}

/// How an interpreter is told what to run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Script {
    /// Options whose value, in the next argument, is the program's text.
    text: &'static [&'static str],
    /// Options whose value names what is run: a module, a jar.
    named: &'static [&'static str],
    /// Other options with a value in the next argument.
    valued: &'static [&'static str],
    /// One-letter options may stand together: `sh -ec TEXT`.
    clustered: bool,
    /// What is run is a class, not a file.
    class: bool,
}

const NO_SCRIPT: Script = Script {
    text: &[],
    named: &[],
    valued: &[],
    clustered: false,
    class: false,
};
const SHELL: Tool = Tool::Interpreter(Script {
    text: &["-c"],
    valued: &["-o", "+o", "-O", "+O", "--rcfile", "--init-file"],
    clustered: true,
    ..NO_SCRIPT
});
const PYTHON: Tool = Tool::Interpreter(Script {
    text: &["-c"],
    named: &["-m"],
    valued: &["-W", "-X", "-Q", "--check-hash-based-pycs"],
    ..NO_SCRIPT
});
const PERL: Tool = Tool::Interpreter(Script {
    text: &["-e", "-E"],
    valued: &["-I"],
    clustered: true,
    ..NO_SCRIPT
});
const RUBY: Tool = Tool::Interpreter(Script {
    text: &["-e"],
    valued: &["-I", "-r", "-C", "-E"],
    ..NO_SCRIPT
});
const NODE: Tool = Tool::Interpreter(Script {
    text: &["-e", "--eval", "-p", "--print"],
    valued: &[
        "-r",
        "--require",
        "--import",
        "--loader",
        "--experimental-loader",
        "-C",
        "--conditions",
    ],
    ..NO_SCRIPT
});
const PLAIN: Tool = Tool::Interpreter(Script {
    text: &["-e", "-r"],
    valued: &["-l"],
    ..NO_SCRIPT
});
const JAVA: Tool = Tool::Interpreter(Script {
    named: &["-jar", "-m", "--module"],
    valued: &[
        "-cp",
        "-classpath",
        "--class-path",
        "-p",
        "--module-path",
        "--add-opens",
        "--add-exports",
        "--add-modules",
        "--add-reads",
    ],
    class: true,
    ..NO_SCRIPT
});
const GIT: Tool = Tool::Verbs(&["-C", "-c", "--git-dir", "--work-tree", "--namespace"]);
const CARGO: Tool = Tool::Verbs(&["-C", "-Z", "--color", "--config", "--manifest-path"]);
const NPM: Tool = Tool::Verbs(&["--prefix", "-C", "--dir", "--cwd", "-w", "--workspace"]);
const APT: Tool = Tool::Verbs(&["-o", "-c", "-t", "-a"]);
const VERBS: Tool = Tool::Verbs(&[]);

/// What is known, by the name without version and target (`gcc` for
/// `x86_64-linux-gnu-gcc-12`).
const TOOLS: &[(&[&str], Tool)] = &[
    (
        &[
            "cc1", "cc1plus", "cc1obj", "cc", "gcc", "c++", "g++", "clang", "clang++", "c99",
            "c89", "lto1", "cpp", "f951", "gfortran", "gnat1", "nvcc", "icc", "tcc",
        ],
        Tool::Compiler,
    ),
    (&["as", "gas"], Tool::Assembler),
    (
        &[
            "ld", "collect2", "ld.bfd", "ld.gold", "ld.lld", "lld", "mold", "ld.mold", "gold",
            "ld64",
        ],
        Tool::Linker,
    ),
    (
        &["rustc", "rustdoc", "clippy-driver"],
        Tool::Named(&["--crate-name"]),
    ),
    (&["ccache", "sccache", "distcc", "icecc"], Tool::Wrapper),
    (&["git"], GIT),
    (&["cargo"], CARGO),
    (&["npm", "npx", "pnpm", "yarn", "bun", "corepack"], NPM),
    (
        &["apt", "apt-get", "aptitude", "dnf", "yum", "zypper", "apk"],
        APT,
    ),
    (&["go"], Tool::Verbs(&["-C"])),
    (
        &["docker", "podman"],
        Tool::Verbs(&["-H", "--host", "--context", "-c", "--config"]),
    ),
    (
        &[
            "pip", "uv", "poetry", "conda", "gem", "bundle", "composer", "brew", "snap",
        ],
        VERBS,
    ),
    (
        &[
            "rustup",
            "systemctl",
            "kubectl",
            "terraform",
            "helm",
            "dotnet",
            "nix",
        ],
        VERBS,
    ),
    (&["sh", "bash", "dash", "zsh", "ksh", "mksh", "ash"], SHELL),
    (&["python", "pypy"], PYTHON),
    (&["perl"], PERL),
    (&["ruby", "jruby"], RUBY),
    (&["node", "nodejs"], NODE),
    (&["lua", "php", "Rscript", "tclsh", "guile", "gjs"], PLAIN),
    (&["java"], JAVA),
];

/// Endings of source files, as compilers take them.
const SOURCES: [&str; 18] = [
    ".c", ".cc", ".cpp", ".cxx", ".c++", ".C", ".s", ".S", ".sx", ".m", ".mm", ".f", ".f90",
    ".F90", ".i", ".ii", ".cu", ".adb",
];

/// How long a script among the arguments may be in a label.
const TEXT: usize = 60;

fn base(path: &str) -> &str {
    path.rsplit('/')
        .next()
        .filter(|name| !name.is_empty())
        .unwrap_or(path)
}

/// What is known of a tool by this name.
fn tool(name: &str) -> Option<Tool> {
    // Looked up for every process, of which there may be a million.
    static KNOWN: LazyLock<HashMap<&str, Tool>> = LazyLock::new(|| {
        let named = |(names, tool): &(&'static [&'static str], Tool)| {
            let tool = *tool;
            names.iter().map(move |name| (*name, tool))
        };
        TOOLS.iter().flat_map(named).collect()
    });
    let known = |name: &str| KNOWN.get(name).copied();
    if let Some(tool) = known(name) {
        return Some(tool);
    }
    let plain = name
        .trim_end_matches(|c: char| c.is_ascii_digit() || c == '.')
        .trim_end_matches('-');
    // A cross compiler: the target's parts come first.
    let short = || {
        let parts = plain.bytes().filter(|byte| *byte == b'-').count();
        plain.rsplit('-').next().filter(|_| parts >= 2)
    };
    let versioned = (plain.len() < name.len()).then_some(plain);
    versioned.and_then(known).or_else(|| known(short()?))
}

/// What a command line says.
struct Said {
    /// The program.
    program: String,
    /// What tells this one from others of it; empty when that was not asked for.
    what: Vec<String>,
}

/// What is asked of a command line. The program alone is had for much less.
#[derive(Clone, Copy, Debug)]
enum Ask {
    Program,
    Label,
}

impl Ask {
    /// What tells it from others of its program, if that is asked for.
    fn what(self, what: impl FnOnce() -> Vec<String>) -> Vec<String> {
        match self {
            Ask::Program => Vec::new(),
            Ask::Label => what(),
        }
    }
}

/// Texts of arguments, escaped.
fn texts<'a>(args: impl IntoIterator<Item = &'a &'a [u8]>) -> Vec<String> {
    args.into_iter().map(|arg| escape::text(arg)).collect()
}

/// Reads a command line; `nested` counts the interpreters before it.
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
    let source = || {
        let is = |arg: &&&[u8]| SOURCES.iter().any(|end| arg.ends_with(end.as_bytes()));
        let source = rest.iter().find(|arg| is(arg) && !arg.starts_with(b"-"))?;
        Some(base(&escape::text(source)).to_owned())
    };
    // Go's own compiler and linker have common names.
    if path.contains('/') && path.contains("/pkg/tool/") {
        return one(&|| value_of("-p").or_else(|| value_of("-o")));
    }
    // cargo's build scripts all have one name; their directory tells them.
    if name == "build-script-build" || name == "build-script-main" {
        let crates = path.rsplit('/').nth(1).map(unhashed);
        return one(&|| crates.map(str::to_owned));
    }
    let tool = if nested < 4 { tool(&name) } else { None };
    match tool {
        Some(Tool::Compiler) => one(&|| source().or_else(|| value_of("-o"))),
        Some(Tool::Assembler) => one(&|| {
            let made = value_of("-o").filter(|file| !is_temporary(file));
            made.or_else(source).or_else(|| value_of("-o"))
        }),
        Some(Tool::Linker) => one(&|| value_of("-o")),
        Some(Tool::Named(options)) => one(&|| options.iter().find_map(|option| value_of(option))),
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
        Some(Tool::Interpreter(script)) => interpreted(&name, rest, &script, nested, ask),
        None => all(),
    }
}

/// The name of the program in this file.
fn program_name(path: &str) -> String {
    let name = base(path);
    if !path.contains('/') {
        return name.to_owned(); // where it lies is not said
    }
    if path.contains("node_modules/") || path.contains("/npm/bin/") {
        let name = [".js", ".cjs", ".mjs"]
            .iter()
            .find_map(|end| name.strip_suffix(end))
            .unwrap_or(name);
        return name.strip_suffix("-cli").unwrap_or(name).to_owned();
    }
    // cargo's test binaries: target/debug/deps/NAME-HASH.
    if path.contains("/deps/") {
        return unhashed(name).to_owned();
    }
    name.to_owned()
}

/// Without the 16 hexadecimal digits that cargo puts behind names.
fn unhashed(name: &str) -> &str {
    match name.rsplit_once('-') {
        Some((plain, hash)) if hash.len() == 16 && hash.bytes().all(|b| b.is_ascii_hexdigit()) => {
            plain
        }
        _ => name,
    }
}

/// One of gcc's temporary files: `ccXXXXXX.o`.
fn is_temporary(file: &str) -> bool {
    let stem = file.split('.').next().unwrap_or_default();
    stem.len() == 8 && stem.starts_with("cc")
}

/// What a tool is told to do, and the arguments behind that.
fn verb<'a>(rest: &'a [&'a [u8]], valued: &[&str]) -> Option<(String, &'a [&'a [u8]])> {
    let mut at = 0;
    while let Some(arg) = rest.get(at) {
        if arg.starts_with(b"-") || arg.starts_with(b"+") {
            at += 1 + usize::from(valued.iter().any(|option| *arg == option.as_bytes()));
            continue;
        }
        let word = |b: &u8| b.is_ascii_alphanumeric() || b"-_:".contains(b);
        let plain = arg.len() <= 24 && arg.iter().all(word);
        let after = rest.get(at + 1..).unwrap_or_default();
        return plain.then(|| (escape::text(arg), after));
    }
    None
}

/// What an interpreter runs.
fn interpreted(name: &str, rest: &[&[u8]], script: &Script, nested: u8, ask: Ask) -> Said {
    let is = |options: &[&str], arg: &[u8]| options.iter().any(|o| o.as_bytes() == arg);
    // `-ec`: the last letter may be an option with a value.
    let last = |arg: &[u8]| match arg {
        [b'-', letters @ .., last] if script.clustered && !letters.starts_with(b"-") => {
            Some([b'-', *last])
        }
        _ => None,
    };
    let mut at = 0;
    while let Some(arg) = rest.get(at).copied() {
        let value = rest.get(at + 1);
        let text = is(script.text, arg) || last(arg).is_some_and(|last| is(script.text, &last));
        if text && value.is_some() {
            return Said {
                program: name.to_owned(),
                what: ask
                    .what(|| vec![escape::text(arg), value.map_or(String::new(), |t| short(t))]),
            };
        }
        if is(script.named, arg) && value.is_some() {
            return run(rest.get(at + 1..).unwrap_or_default(), script, nested, ask);
        }
        if arg.len() > 1 && (arg.starts_with(b"-") || arg.starts_with(b"+")) {
            at += 1 + usize::from(is(script.valued, arg));
            continue;
        }
        if arg == b"-" {
            break; // its standard input
        }
        return run(rest.get(at..).unwrap_or_default(), script, nested, ask);
    }
    Said {
        program: name.to_owned(),
        what: ask.what(|| texts(rest)),
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
    // A script is not read to its end for a label.
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

/// The program: its file's name, an interpreted script's for a script, tool and
/// verb for tools that are many (`git clone`); the comm for what has no
/// arguments.
pub fn program(process: &Process) -> String {
    program_of(&process.argv, &process.comm)
}

/// The same of one of a process's programs.
pub fn program_of(argv: &Argv, comm: &Comm) -> String {
    let args: Vec<&[u8]> = argv.args().collect();
    Some(read(&args, 0, Ask::Program).program)
        .filter(|program| !program.is_empty())
        .unwrap_or_else(|| escape::text(comm.bytes()))
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

    /// Program and label of a command line; arguments are split at spaces,
    /// `~` stands for a space within one.
    fn of(line: &str) -> (String, String) {
        let args: Vec<String> = line.split(' ').map(|arg| arg.replace('~', " ")).collect();
        let argv = Argv::from_args(args);
        let comm = Comm::new(b"comm");
        (program_of(&argv, &comm), label_of(&argv, &comm, false))
    }

    #[test]
    fn common_tools_have_short_names() {
        let cases = [
            // Compilers, assemblers, linkers.
            (
                "/usr/lib/gcc/x86_64-linux-gnu/12/cc1 -quiet -I. src/lparser.c -o /tmp/ccAbCdEf.s",
                "cc1",
                "cc1 lparser.c",
            ),
            ("gcc -c -o a.o x.c", "gcc", "gcc x.c"),
            (
                "x86_64-linux-gnu-gcc-12 -c x.cpp",
                "x86_64-linux-gnu-gcc-12",
                "x86_64-linux-gnu-gcc-12 x.cpp",
            ),
            ("clang-15 -o lua a.o b.o", "clang-15", "clang-15 lua"),
            ("gcc --version", "gcc", "gcc --version"),
            ("as -o build/lvm.o /tmp/ccAbCdEf.s", "as", "as lvm.o"),
            (
                "as -o /tmp/ccAbCdEf.o /tmp/ccXbCdEf.s",
                "as",
                "as ccXbCdEf.s",
            ),
            ("/usr/bin/ld -plugin p.so -o lua a.o", "ld", "ld lua"),
            (
                "rustc --crate-name serde --edition=2021",
                "rustc",
                "rustc serde",
            ),
            (
                "/usr/lib/go/pkg/tool/linux_amd64/compile -o x.a -p net/http",
                "compile",
                "compile http",
            ),
            ("ccache gcc -c x.c", "ccache", "ccache gcc x.c"),
            // Test runners.
            (
                "cargo test --workspace",
                "cargo test",
                "cargo test --workspace",
            ),
            (
                "cargo +nightly -Z unstable test",
                "cargo test",
                "cargo test",
            ),
            ("go test ./...", "go test", "go test ./..."),
            ("python3 -m pytest -q tests", "pytest", "pytest -q tests"),
            (
                "/usr/bin/python3.11 -W ignore /usr/bin/pytest -x",
                "pytest",
                "pytest -x",
            ),
            (
                "node /a/node_modules/jest/bin/jest.js --ci",
                "jest",
                "jest --ci",
            ),
            ("ctest -j4", "ctest", "ctest -j4"),
            (
                "/w/target/debug/deps/laws-0123456789abcdef --nocapture",
                "laws",
                "laws --nocapture",
            ),
            (
                "/w/target/debug/build/serde-0123456789abcdef/build-script-build",
                "build-script-build",
                "build-script-build serde",
            ),
            // Package managers.
            (
                "apt-get -o Dpkg=1 -y install gcc",
                "apt-get install",
                "apt-get install gcc",
            ),
            (
                "/usr/bin/python3 /usr/bin/pip install x",
                "pip install",
                "pip install x",
            ),
            ("node /usr/bin/npm ci", "npm ci", "npm ci"),
            (
                "node /usr/lib/node_modules/npm/bin/npm-cli.js run build",
                "npm run",
                "npm run build",
            ),
            // git.
            (
                "git -C /src clone https://x.org/y",
                "git clone",
                "git clone https://x.org/y",
            ),
            ("git --version", "git", "git --version"),
            (
                "/usr/lib/git-core/git index-pack --stdin",
                "git index-pack",
                "git index-pack --stdin",
            ),
            // Shells.
            ("sh -c gcc~-c~~~x.c", "sh", "sh -c 'gcc -c x.c'"),
            (
                "/bin/bash -o pipefail -euxc make",
                "bash",
                "bash -euxc 'make'",
            ),
            ("-bash", "bash", "bash"),
            (
                "/bin/sh ./configure --prefix=/usr",
                "configure",
                "configure --prefix=/usr",
            ),
            ("bash -x tools/t.sh a", "t.sh", "t.sh a"),
            ("sh -", "sh", "sh -"),
            // Interpreters.
            ("python3 foo.py", "foo.py", "foo.py"),
            ("python3 -u -X dev tools/foo.py --x", "foo.py", "foo.py --x"),
            (
                "python3 -c import~this",
                "python3",
                "python3 -c 'import this'",
            ),
            ("perl -w -I lib t/x.t", "x.t", "x.t"),
            ("perl -ne print x", "perl", "perl -ne 'print'"),
            ("ruby -Ilib -r set a.rb b", "a.rb", "a.rb b"),
            (
                "node --require ./hook.js server.js 80",
                "server.js",
                "server.js 80",
            ),
            (
                "java -Xmx1g -cp a.jar:b.jar org.x.Main in",
                "Main",
                "Main in",
            ),
            ("java -jar /opt/x.jar -v", "x.jar", "x.jar -v"),
            ("make -C src all", "make", "make -C src all"),
        ];
        for (line, program, label) in cases {
            assert_eq!(of(line), (program.into(), label.into()), "{line}");
        }
    }

    #[test]
    fn scripts_are_one_short_line() {
        let script = format!("set -e\n\techo {}\nlast", "x ".repeat(3000));
        let argv = Argv::from_args(["sh", "-c", &script]);
        let label = label_of(&argv, &Comm::default(), true);
        assert!(label.starts_with("sh -c 'set -e echo x x "), "{label}");
        assert!(
            label.ends_with("' (forked)") && label.len() < 120,
            "{label}"
        );
    }

    #[test]
    fn hostile_command_lines_are_escaped_and_end() {
        let sh: Vec<&[u8]> = std::iter::repeat_n(&b"sh"[..], 5000).collect();
        let label = label_of(&Argv::from_args(sh), &Comm::default(), false);
        assert!(
            label.starts_with("sh sh"),
            "interpreters are not followed for ever"
        );
        for args in [
            vec![&b"/bin/\x1b[2Jx"[..], b"\x9b"],
            vec![b"sh", b"-c", b"a\x1b]0;x\x07b \xe2\x80\xae"],
            vec![b"git", b"cl\x1bone", b"\xff"],
            vec![b"python3", b"-m", b"\x1bm", b"\n"],
            vec![b"gcc", b"-o", b"\x1b[1mx"],
            vec![b"java", b"a.\x1bb"],
            vec![b""],
            vec![b"sh", b"-c"],
        ] {
            let argv = Argv::from_args(args);
            let comm = Comm::new(b"\x1b");
            for text in [program_of(&argv, &comm), label_of(&argv, &comm, false)] {
                let bad = |c: char| c.is_control() || c == '\u{202e}';
                assert!(!text.is_empty() && !text.contains(bad), "{text:?}");
            }
        }
    }
}
