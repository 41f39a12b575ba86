//! Reads parts of command lines: names of files, options, verbs.

use tr_text::escape;

/// The extensions of source files that compilers read.
const SOURCES: [&str; 36] = [
    ".c", ".cc", ".cp", ".cpp", ".CPP", ".cxx", ".c++", ".C", ".s", ".S", ".sx", ".m", ".mi",
    ".mm", ".M", ".mii", ".f", ".F", ".for", ".ftn", ".fpp", ".FPP", ".f90", ".F90", ".f95",
    ".F95", ".f03", ".F03", ".f08", ".F08", ".i", ".ii", ".cu", ".adb", ".hs", ".swift",
];

/// The Python text that a worker of pytest-xdist runs (execnet). It reads its program from a pipe.
pub const XDIST: &[u8] = b"import sys;exec(eval(sys.stdin.readline()))";

/// The last part of a path.
pub fn base(path: &str) -> &str {
    path.rsplit('/')
        .next()
        .filter(|name| !name.is_empty())
        .unwrap_or(path)
}

/// Whether this argument is one of the options, which spaces separate.
pub fn has(options: &str, arg: &[u8]) -> bool {
    let mut options = options.split_whitespace();
    options.any(|option| option.as_bytes() == arg)
}

/// Whether a text contains a part, which is not empty.
pub fn contains(text: &[u8], part: &[u8]) -> bool {
    text.windows(part.len()).any(|window| window == part)
}

/// Whether a word of a shell's script sets a variable: `CFLAGS=-O2`
pub fn is_assignment(word: &[u8]) -> bool {
    let name = word.split(|byte| *byte == b'=').next().unwrap_or_default();
    let is_part = |byte: &u8| byte.is_ascii_alphanumeric() || *byte == b'_';
    name.len() < word.len() && !name.is_empty() && name.iter().all(is_part)
}

/// The arguments as escaped texts.
pub(crate) fn texts<'a>(args: impl IntoIterator<Item = &'a &'a [u8]>) -> Vec<String> {
    args.into_iter().map(|arg| escape::raw(arg)).collect()
}

/// Whether a file's name has the extension of a compiler's source files.
pub fn is_source(name: &[u8]) -> bool {
    SOURCES.iter().any(|end| name.ends_with(end.as_bytes()))
}

/// The names of the source files among a compiler's arguments.
pub(crate) fn sources<'a>(args: &'a [&'a [u8]]) -> impl Iterator<Item = String> + 'a {
    let sources = args
        .iter()
        .filter(|arg| is_source(arg) && !arg.starts_with(b"-"));
    sources.map(|source| base(&escape::raw(source)).to_owned())
}

/// The first source file among a compiler's arguments.
pub fn source(args: &[&[u8]]) -> Option<String> {
    sources(args).next()
}

/// The name of a program in a package of Node.js: that of its file or, if many files have that name, that of
/// its package (`@playwright/test/cli.js`).
pub(crate) fn of_package(path: &str) -> Option<&str> {
    const COMMON: [&str; 4] = ["bin", "cli", "index", "main"];
    let (_, inside) = path.rsplit_once("node_modules/").or_else(|| {
        let (_, inside) = path.split_once("/npm/bin/")?;
        Some(("", inside))
    })?;
    let name = base(path);
    let ends = [".js", ".cjs", ".mjs"];
    let stem = ends
        .iter()
        .find_map(|end| name.strip_suffix(end))
        .unwrap_or(name);
    let mut parts = inside.split('/');
    let package = parts.next()?;
    if stem == name || !COMMON.contains(&stem) || package == name {
        return Some(stem.strip_suffix("-cli").unwrap_or(stem));
    }
    match (package.strip_prefix('@'), parts.next()) {
        (Some(scope), Some("cli" | "core" | "test")) => Some(scope),
        (Some(_), Some(second)) => Some(second),
        _ => Some(package),
    }
}

/// The name of a test whose program cargo has built: `target/debug/deps/NAME-HASH`.
pub fn test_of_cargo(path: &str) -> Option<&str> {
    let name = base(path);
    Some(unhashed(name)).filter(|plain| path.contains("/deps/") && *plain != name)
}

/// The package of a test whose program go has built: `/tmp/go-build1/b001/PACKAGE.test`.
pub fn test_of_go(path: &str) -> Option<&str> {
    let package = base(path).strip_suffix(".test");
    package.filter(|_| path.contains("/go-build"))
}

/// Whether a call of go's compiler compiles the program that runs the tests of a package, which `go test` writes. Its
/// package is called `main`, as that of every program.
pub fn is_test_main(args: &[&[u8]]) -> bool {
    args.iter().any(|arg| arg.ends_with(b"/_testmain.go"))
}

/// Whether `go test` gives an argument to every test binary by itself.
pub fn is_of_go_test(arg: &[u8]) -> bool {
    let all: [&[u8]; 3] = [
        b"-test.testlogfile=",
        b"-test.paniconexit0",
        b"-test.timeout=",
    ];
    all.iter().any(|option| arg.starts_with(option))
}

/// The name of the program that runs the tests of a package of go.
pub const TEST_MAIN: &str = "test main";

/// A name without the suffix of 16 hexadecimal digits that cargo appends.
pub fn unhashed(name: &str) -> &str {
    match name.rsplit_once('-') {
        Some((plain, hash)) if hash.len() == 16 && hash.bytes().all(|b| b.is_ascii_hexdigit()) => {
            plain
        }
        _ => name,
    }
}

/// Whether a file has a name of gcc's temporary files: `ccXXXXXX.o`.
pub fn is_temporary(file: &str) -> bool {
    let stem = file.split('.').next().unwrap_or_default();
    stem.len() == 8 && stem.starts_with("cc")
}

/// The verb among a tool's arguments, and the arguments after it.
pub(crate) fn verb<'a>(rest: &'a [&'a [u8]], valued: &str) -> Option<(String, &'a [&'a [u8]])> {
    let mut at = 0;
    while let Some(arg) = rest.get(at) {
        if arg.starts_with(b"-") || arg.starts_with(b"+") {
            at += 1 + usize::from(has(valued, arg));
            continue;
        }
        let word = |b: &u8| b.is_ascii_alphanumeric() || b"-_:".contains(b);
        let plain = arg.len() <= 24 && arg.iter().all(word);
        let after = rest.get(at + 1..).unwrap_or_default();
        return plain.then(|| (escape::raw(arg), after));
    }
    None
}

/// The name of a program with its first argument if that is a known command, and otherwise with the name
/// `other`, and the arguments after that; `None` if the call only prints something.
pub(crate) fn command<'a>(
    name: &str,
    rest: &'a [&'a [u8]],
    known: &str,
    other: &str,
) -> Option<(String, &'a [&'a [u8]])> {
    let (first, after) = rest.split_first()?;
    if has(known, first) {
        return Some((format!("{name} {}", escape::raw(first)), after));
    }
    let says = has("--internal --version --help -h", first);
    (!says).then(|| (format!("{name} {other}"), rest))
}

/// Whether an argument contains an absolute path or the name of a temporary file, which another build of the
/// same tree in another directory would not have.
pub fn is_of_machine(arg: &[u8]) -> bool {
    let name = arg.rsplit(|byte| *byte == b'/').next().unwrap_or(arg);
    let is_temporary_name = name.starts_with(b"tmp.") || is_temporary(&escape::raw(name));
    let before = |at: usize| at.checked_sub(1).and_then(|at| arg.get(at));
    let is_part = |byte: &u8| byte.is_ascii_alphanumeric() || b"._-+~@}/*?".contains(byte);
    let mut slashes = arg.iter().enumerate().filter(|(_, byte)| **byte == b'/');
    let is_absolute = slashes.any(|(at, _)| {
        let is_url =
            arg.get(at..at + 2) == Some(b"//") && before(at).is_none_or(|byte| *byte == b':');
        !is_url && !before(at).is_some_and(is_part)
    });
    let is_option = matches!(arg, [b'-', _, b'/', ..]); // -I/usr/include
    is_absolute || is_option || is_temporary_name
}

/// The end of an absolute path, which another build of the same tree has as well; any other argument as it
/// is. `//a:b` is a label of a build tool and no path.
pub(crate) fn relative(arg: &[u8]) -> &[u8] {
    if !arg.starts_with(b"/") || arg.starts_with(b"//") {
        return arg;
    }
    let mut parts = arg.rsplit(|byte| *byte == b'/');
    parts.find(|part| !part.is_empty()).unwrap_or(arg)
}
