//! Helpers that read parts of recorded command lines: names of files, options, verbs.

use tr_text::escape;

/// The file-name extensions of source files that compilers read.
const SOURCES: [&str; 36] = [
    ".c", ".cc", ".cp", ".cpp", ".CPP", ".cxx", ".c++", ".C", ".s", ".S", ".sx", ".m", ".mi",
    ".mm", ".M", ".mii", ".f", ".F", ".for", ".ftn", ".fpp", ".FPP", ".f90", ".F90", ".f95",
    ".F95", ".f03", ".F03", ".f08", ".F08", ".i", ".ii", ".cu", ".adb", ".hs", ".swift",
];

/// The Python text that a worker process of pytest-xdist executes (`python -c TEXT`, by the library
/// execnet). The worker reads its actual program from a pipe.
pub const XDIST: &[u8] = b"import sys;exec(eval(sys.stdin.readline()))";

/// The path of the file with which the name of a test begins, as other programs and users write such names:
/// `tests/test_a.py::test_b`, `t/a.t`. `None` if the name begins with no file.
pub fn file_of_test(name: &str) -> Option<&str> {
    let path = name.split("::").next()?.split(' ').next()?;
    let (_, suffix) = path.rsplit_once('.')?;
    (!suffix.is_empty() && !suffix.contains('/')).then_some(path)
}

/// The last part of a word that may be a path, if this part can be a name: it has a letter or a digit, and no space
/// (as the text of a script has).
pub fn brief(word: &str) -> Option<&str> {
    let last = base(word.trim_end_matches('/'));
    let is_name = !last.contains(char::is_whitespace) && last.contains(char::is_alphanumeric);
    is_name.then_some(last)
}

/// The brief form of a text that a user or another tool wrote as one name: the last word of the text without the
/// directories before it. `None` if this is the whole text.
pub fn brief_of_text(text: &str) -> Option<&str> {
    let last = text.split_whitespace().next_back()?;
    brief(last).filter(|brief| *brief != text)
}

/// The last part of a path, which is the name of the file; the whole path if it ends with a slash.
pub fn base(path: &str) -> &str {
    path.rsplit('/')
        .next()
        .filter(|name| !name.is_empty())
        .unwrap_or(path)
}

/// Whether an argument of a command line is one of these options, which are separated by spaces.
pub fn has(options: &str, arg: &[u8]) -> bool {
    let mut options = options.split_whitespace();
    options.any(|option| option.as_bytes() == arg)
}

/// Whether the bytes of a text contain a certain part, which must not be empty.
pub fn contains(text: &[u8], part: &[u8]) -> bool {
    text.windows(part.len()).any(|window| window == part)
}

/// Whether a byte can be part of the name of a shell's variable.
pub(crate) fn is_name_byte(byte: &u8) -> bool {
    byte.is_ascii_alphanumeric() || *byte == b'_'
}

/// Divides a text after the bytes at its beginning that can be the name of a shell's variable.
pub(crate) fn split_name(text: &[u8]) -> (&[u8], &[u8]) {
    let end = text.iter().position(|byte| !is_name_byte(byte));
    text.split_at(end.unwrap_or(text.len()))
}

/// Whether a word of a shell script assigns a variable: `CFLAGS=-O2`.
pub fn is_assignment(word: &[u8]) -> bool {
    let name = word.split(|byte| *byte == b'=').next().unwrap_or_default();
    name.len() < word.len() && !name.is_empty() && name.iter().all(is_name_byte)
}

/// The arguments of a command line as texts, in which bytes that are not UTF-8 are `\xNN`.
pub(crate) fn texts<'a>(args: impl IntoIterator<Item = &'a &'a [u8]>) -> Vec<String> {
    args.into_iter().map(|arg| escape::raw(arg)).collect()
}

/// Whether a file name has the extension of a source file that compilers read.
pub fn is_source(name: &[u8]) -> bool {
    SOURCES.iter().any(|end| name.ends_with(end.as_bytes()))
}

/// The names of the source files among the arguments of a compiler.
pub(crate) fn sources<'a>(args: &'a [&'a [u8]]) -> impl Iterator<Item = String> + 'a {
    let sources = args
        .iter()
        .filter(|arg| is_source(arg) && !arg.starts_with(b"-"));
    sources.map(|source| base(&escape::raw(source)).to_owned())
}

/// The name of the first source file among the arguments of a compiler.
pub fn source(args: &[&[u8]]) -> Option<String> {
    sources(args).next()
}

/// The name of a program in a Node.js package, from the path of its file; `None` if the file is in no such package. If
/// many programs have the same file name, such as `cli.js`, the result is the name of the package: `playwright` for
/// `@playwright/test/cli.js`.
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

/// The name of a test program that cargo has built, from its path `target/debug/deps/NAME-HASH`;
/// `None` for another path.
pub fn test_of_cargo(path: &str) -> Option<&str> {
    let name = base(path);
    Some(unhashed(name)).filter(|plain| path.contains("/deps/") && *plain != name)
}

/// Whether a call of one of Go's tools (compile, vet) with these arguments, in this directory, is for a package of Go's
/// standard library: it has the option `-std`, or its directory lies in the sources of a Go installation.
pub fn is_of_go_library(args: &[&[u8]], directory: &[u8]) -> bool {
    let mut parts = directory.split(|byte| *byte == b'/').peekable();
    let is_installed = [&b"/usr/"[..], b"/opt/", b"/snap/"]
        .iter()
        .any(|root| directory.starts_with(root));
    let mut is_library = false;
    while let Some(part) = parts.next() {
        let is_version = |prefix: &[u8]| {
            let rest = part.strip_prefix(prefix);
            rest.is_some_and(|rest| rest.first().is_some_and(u8::is_ascii_digit))
        };
        let is_go = part == b"go" && is_installed || is_version(b"go-") || is_version(b"go");
        let is_toolchain = part.starts_with(b"toolchain@");
        is_library |= (is_go || is_toolchain) && parts.peek() == Some(&&b"src"[..]);
    }
    is_library || args.contains(&&b"-std"[..])
}

/// The package whose tests a program built by `go test` runs, from its path
/// `/tmp/go-build1/b001/PACKAGE.test`; `None` for another path.
pub fn test_of_go(path: &str) -> Option<&str> {
    let package = base(path).strip_suffix(".test");
    package.filter(|_| path.contains("/go-build"))
}

/// Whether a call of the Go compiler compiles the main program of a package's tests, which
/// `go test` generates. Its package is called `main`, like that of any program.
pub fn is_test_main(args: &[&[u8]]) -> bool {
    args.iter().any(|arg| arg.ends_with(b"/_testmain.go"))
}

/// Whether an argument of a Go test program is one that `go test` itself passes to every test
/// program.
pub fn is_of_go_test(arg: &[u8]) -> bool {
    let all: [&[u8]; 3] = [
        b"-test.testlogfile=",
        b"-test.paniconexit0",
        b"-test.timeout=",
    ];
    all.iter().any(|option| arg.starts_with(option))
}

/// The label under which reports show the compilation of the main program that `go test` generates
/// for a package's tests.
pub const TEST_MAIN: &str = "test main";

/// Removes the suffix of 16 hexadecimal digits that cargo appends to file names.
pub fn unhashed(name: &str) -> &str {
    match name.rsplit_once('-') {
        Some((plain, hash)) if hash.len() == 16 && hash.bytes().all(|b| b.is_ascii_hexdigit()) => {
            plain
        }
        _ => name,
    }
}

/// Whether a file name looks like one of gcc's temporary files: `ccXXXXXX.o`.
pub fn is_temporary(file: &str) -> bool {
    let stem = file.split('.').next().unwrap_or_default();
    stem.len() == 8 && stem.starts_with("cc")
}

/// The verb on a tool's command line (`clone` of `git clone`), and the arguments after it. The options in `valued`
/// have their value in the next argument. `None` if the first other argument cannot be a verb.
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

/// The command of a program, and the remaining arguments. The command is the first argument if that
/// is one of the `known` commands; otherwise, it is `other`. Returns `None` if there is no argument,
/// or if the call only prints the program's version or help.
pub(crate) fn command<'a>(
    rest: &'a [&'a [u8]],
    known: &str,
    other: &str,
) -> Option<(String, &'a [&'a [u8]])> {
    let (first, after) = rest.split_first()?;
    if has(known, first) {
        return Some((escape::raw(first), after));
    }
    let says = has("--internal --version --help -h", first);
    (!says).then(|| (other.to_owned(), rest))
}

/// Whether an argument contains an absolute path or the name of a temporary file, so that a build
/// of the same tree in another directory would have a different argument.
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

/// The last part of an absolute path, which does not depend on the directory of the build; any
/// other argument unchanged. `//a:b` is a label of Bazel and no path.
pub(crate) fn relative(arg: &[u8]) -> &[u8] {
    if !arg.starts_with(b"/") || arg.starts_with(b"//") {
        return arg;
    }
    let mut parts = arg.rsplit(|byte| *byte == b'/');
    parts.find(|part| !part.is_empty()).unwrap_or(arg)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn packages_of_gos_library_are_in_its_installation() {
        let compile: &[&[u8]] = &[b"compile"];
        for (directory, want) in [
            ("/usr/share/go-1.19/src/net/http", true),
            ("/usr/local/go/src/fmt", true),
            ("/root/sdk/go1.22.1/src/fmt", true),
            (
                "/root/go/pkg/mod/golang.org/toolchain@v0.0.1-go1.22.1.linux-amd64/src/fmt",
                true,
            ),
            ("/root/go/src/example.com/x", false),
            ("/usr/share/gocode/src/github.com/x", false),
            ("/w/go", false),
            ("", false),
        ] {
            assert_eq!(
                is_of_go_library(compile, directory.as_bytes()),
                want,
                "{directory}"
            );
        }
        assert!(is_of_go_library(&[b"compile", b"-std"], b"/w"));
    }
}
