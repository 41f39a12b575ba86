//! Recognizes compilations of C, C++ and similar languages by their command lines, and finds the
//! sources, the output and the arguments for an entry of `compile_commands.json`.

use std::borrow::Cow;

use crate::command_line::without_interpreter;
use crate::table;
use crate::tools::Label;
use crate::words::{has, is_source};

/// The options of compiler drivers (gcc, clang, nvcc) whose value is the next argument, separated
/// by spaces. Such a value is not a source file, even if it is named like one.
const VALUED_OPTIONS: &str =
    "-A -B -D -F -G -I -J -L -MF -MJ -MQ -MT -T -U -Xarch_device -Xarch_host -Xassembler -Xclang \
     -Xcompiler -Xcuda-fatbinary -Xcuda-ptxas -Xlinker -Xpreprocessor -Xptxas -arch -aux-info \
     -bundle_loader -ccbin -cxx-isystem -dumpbase -dumpbase-ext -dumpdir -framework -gencode \
     -idirafter -iframework -imacros -imultilib -include -include-pch -iprefix -iquote -isysroot \
     -isystem -ivfsoverlay -iwithprefix -iwithprefixbefore -iwithsysroot -l -mllvm -o \
     -resource-dir -rpath -rpath-link -target -u -wrapper -x -z --assembler-options \
     --compiler-options --config --linker-options --options-file --output --param --sysroot \
     --serialize-diagnostics --target";

/// The options with which a compiler driver makes no object file from a source: it only preprocesses, checks the
/// syntax, lists dependencies or prints facts, or it runs one internal pass (`-cc1`). Separated by spaces.
const NO_COMPILATION: &str =
    "-E -M -MM -### -cc1 -cc1as -dumpversion -dumpmachine -dumpfullversion -dumpspecs \
                              -fsyntax-only -print-search-dirs -V --help --preprocess --version";

/// The file-name extensions of C and C++ headers. A compiler driver can also compile a header by
/// itself.
const HEADERS: [&[u8]; 7] = [b".h", b".hh", b".hp", b".hpp", b".hxx", b".h++", b".H"];

/// Whether a command line calls a compiler driver, so that it can be an entry of
/// `compile_commands.json`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Call<'a> {
    /// The command line calls a compiler driver. The value has the driver's arguments, the first of
    /// which is its name.
    Driver(&'a [&'a [u8]]),
    /// The command line starts the server of a compiler cache such as ccache, or queries that server. The server starts
    /// compilers for other command lines, so this command line is no compilation.
    Cache,
    Other,
}

/// The compiler driver that a command line calls: directly, through a script, or through a compiler
/// cache or a distributor of compilations.
pub fn call<'a>(args: &'a [&'a [u8]]) -> Call<'a> {
    let mut inner = without_interpreter(args);
    let mut found = Call::Other;
    loop {
        let Some((first, rest)) = inner.split_first() else {
            return found;
        };
        let Some(tool) = table::by_path(first) else {
            return found;
        };
        if tool.drives {
            return Call::Driver(inner);
        }
        if tool.label != Label::Wrapper {
            return found;
        }
        // ccache accepts settings before the compiler: `ccache compression=false gcc`.
        let settings = rest.iter().take_while(|arg| arg.contains(&b'=')).count();
        inner = rest.get(settings..).unwrap_or_default();
        if inner.first().is_none_or(|arg| arg.starts_with(b"-")) {
            found = Call::Cache;
        }
    }
}

/// The sources, the output and the options of one call of a compiler driver, which compiles one or
/// more source files.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Compilation<'a> {
    /// The indices of the source files among the driver's arguments.
    sources: Vec<usize>,
    /// The output file that the compiler driver's `-o` option names, if it has one.
    output: Option<&'a [u8]>,
    /// Without the option `-o`, this stage decides the name of the output file.
    stage: Stage,
    /// Whether the compiler driver reads one of its sources from standard input.
    pub reads_input: bool,
    /// Whether the compiler driver takes further arguments from a response file (`@FILE`).
    pub has_response_file: bool,
}

/// The last stage that a compiler driver runs. It ends with an assembler file (`-S`), an object
/// file (`-c`) or a linked program.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Stage {
    #[default]
    Link,
    Object,
    Assembly,
}

impl<'a> Compilation<'a> {
    /// Reads the arguments of a compiler driver, the first of which is its name. Returns `None` if the call compiles
    /// nothing. A call with a response file counts as a compilation, because the file may name sources.
    pub fn of(args: &[&'a [u8]]) -> Option<Compilation<'a>> {
        let mut found = Compilation::default();
        // After `-x LANGUAGE` each file is a source, whatever its name is.
        let mut any_file = false;
        let mut at = 1;
        while let Some(arg) = args.get(at).copied() {
            let value = args.get(at + 1).copied();
            let valued = has(VALUED_OPTIONS, arg);
            match arg {
                b"-c" | b"--compile" | b"-dc" | b"--device-c" => found.stage = Stage::Object,
                b"-S" | b"--assemble" => found.stage = Stage::Assembly,
                b"-o" | b"--output" => found.output = value.or(found.output),
                b"-x" => any_file = value.is_some_and(|language| language != b"none"),
                b"-" => found.reads_input = true,
                // `gcc -v` alone only prints the version, but `gcc -v x.c` compiles.
                b"-v" => {}
                [b'@', _, ..] => found.has_response_file = true,
                _ if has(NO_COMPILATION, arg) => return None,
                [b'-', b'o', output @ ..] if is_output(arg) => found.output = Some(output),
                [b'-', b'x', language @ ..] => any_file = language != b"none",
                [b'-', ..] => {
                    let output = arg.strip_prefix(b"--output=");
                    found.output = output.or(found.output);
                }
                _ if any_file || is_source(arg) || is_header(arg) => found.sources.push(at),
                _ => {}
            }
            at += 1 + usize::from(valued);
        }
        let compiles = !found.sources.is_empty() || found.reads_input || found.has_response_file;
        compiles.then_some(found)
    }

    /// Splits a compilation into one entry for each source file: the source, its output, and the
    /// arguments of the call without the other sources.
    pub fn entries<'b>(&'b self, args: &'b [&'a [u8]]) -> impl Iterator<Item = Entry<'a>> + 'b {
        self.sources.iter().filter_map(move |own| {
            let source = args.get(*own).copied()?;
            let is_other = |at: &usize| at != own && self.sources.contains(at);
            let kept = args.iter().enumerate().filter(|(at, _)| !is_other(at));
            Some(Entry {
                arguments: kept.map(|(_, arg)| *arg).collect(),
                source,
                output: self.output_of(source),
            })
        })
    }

    /// The output file that the compiler driver makes from this source; `None` for a linked program without `-o`, for
    /// a header, and for a source without an extension.
    fn output_of(&self, source: &'a [u8]) -> Option<Cow<'a, [u8]>> {
        if let Some(output) = self.output {
            return Some(output.into());
        }
        let end: &[u8] = match self.stage {
            Stage::Link => return None,
            Stage::Object => b".o",
            Stage::Assembly => b".s",
        };
        let name = source.rsplit(|byte| *byte == b'/').next()?;
        if is_header(name) {
            return None;
        }
        let stem = name.iter().rposition(|byte| *byte == b'.')?;
        Some([name.get(..stem)?, end].concat().into())
    }
}

/// One source file of a compilation, with its output and its arguments, as an entry of
/// `compile_commands.json` has them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry<'a> {
    pub arguments: Vec<&'a [u8]>,
    pub source: &'a [u8],
    pub output: Option<Cow<'a, [u8]>>,
}

/// Whether an argument of a compiler driver is `-oFILE`, and not another option that begins with
/// `-o`, such as `-objcmt-…`.
fn is_output(arg: &[u8]) -> bool {
    !arg.starts_with(b"-objcmt") && !arg.starts_with(b"-openmp") && arg.len() > 2
}

fn is_header(name: &[u8]) -> bool {
    HEADERS.iter().any(|end| name.ends_with(end))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(line: &str) -> Vec<&[u8]> {
        line.split(' ').map(str::as_bytes).collect()
    }

    fn text(bytes: &[u8]) -> String {
        String::from_utf8_lossy(bytes).into_owned()
    }

    /// Formats the entries of the compilation that a command line runs, for a comparison in tests. An entry looks like
    /// `a.o: gcc -c -o a.o x.c [x.c]`: the output, the arguments, and the source between brackets.
    fn entries(line: &str) -> Vec<String> {
        let args = words(line);
        let Call::Driver(args) = call(&args) else {
            return vec!["no driver".to_owned()];
        };
        let Some(found) = Compilation::of(args) else {
            return vec!["no compilation".to_owned()];
        };
        let all = found.entries(args).map(|entry| {
            let output = entry.output.map_or("?".to_owned(), |output| text(&output));
            let arguments = text(&entry.arguments.join(&b' '));
            format!("{output}: {arguments} [{}]", text(entry.source))
        });
        let mut all: Vec<String> = all.collect();
        all.extend(found.reads_input.then(|| "standard input".to_owned()));
        all.extend(found.has_response_file.then(|| "response file".to_owned()));
        all
    }

    #[test]
    fn an_entry_is_a_source_of_a_driver() {
        for (line, want) in [
            ("gcc -c -o a.o x.c", &["a.o: gcc -c -o a.o x.c [x.c]"][..]),
            (
                "cc -c ../src/x.y.cpp",
                &["x.y.o: cc -c ../src/x.y.cpp [../src/x.y.cpp]"],
            ),
            ("cc -S x.c", &["x.s: cc -S x.c [x.c]"]),
            ("cc -omain x.c", &["main: cc -omain x.c [x.c]"]),
            ("cc x.c -lm", &["?: cc x.c -lm [x.c]"]),
            (
                "clang++-15 -c a.cpp -DX b.cpp",
                &[
                    "a.o: clang++-15 -c a.cpp -DX [a.cpp]",
                    "b.o: clang++-15 -c -DX b.cpp [b.cpp]",
                ],
            ),
            (
                "aarch64-linux-gnu-gcc-12 -o p x.c y.o",
                &["p: aarch64-linux-gnu-gcc-12 -o p x.c y.o [x.c]"],
            ),
            ("gfortran -c m.F90", &["m.o: gfortran -c m.F90 [m.F90]"]),
            ("cc -c start.S", &["start.o: cc -c start.S [start.S]"]),
            (
                "nvcc -Xcompiler -fPIC -dc k.cu -o k.o",
                &["k.o: nvcc -Xcompiler -fPIC -dc k.cu -o k.o [k.cu]"],
            ),
            (
                "g++ -x c++-header -o all.gch all.hpp",
                &["all.gch: g++ -x c++-header -o all.gch all.hpp [all.hpp]"],
            ),
            ("cc -xc text", &["?: cc -xc text [text]"]),
        ] {
            assert_eq!(entries(line), want, "{line}");
        }
    }

    #[test]
    fn a_value_of_an_option_is_no_source() {
        let line = "gcc -MT a.c -MF b.c -include c.h -isystem d.c -o e.o -c f.c";
        let one = format!("e.o: {line} [f.c]");
        assert_eq!(entries(line), [one]);
        assert_eq!(entries("gcc -o lua lua.o -T x.S"), ["no compilation"]);
    }

    #[test]
    fn what_a_command_line_lacks_is_said() {
        assert_eq!(entries("gcc @args -c"), ["response file"]);
        let both = ["x.o: gcc @inc -c x.c [x.c]", "response file"];
        assert_eq!(entries("gcc @inc -c x.c"), both);
        assert_eq!(entries("gcc -xc - -o x"), ["standard input"]);
    }

    #[test]
    fn questions_and_passes_are_no_compilations() {
        for line in [
            "gcc -E x.c",
            "gcc -MM x.c",
            "gcc --version",
            "gcc -v",
            "clang -cc1 -emit-obj -o x.o x.c",
            "gcc -o lua lua.o liblua.a",
        ] {
            assert_eq!(entries(line), ["no compilation"], "{line}");
        }
        for line in [
            "/usr/lib/gcc/x/12/cc1 x.c",
            "as -o x.o x.s",
            "make x.c",
            "rustc x.rs",
            "ghc x.hs",
        ] {
            assert_eq!(entries(line), ["no driver"], "{line}");
        }
        assert_eq!(entries("gcc -v -c x.c"), ["x.o: gcc -v -c x.c [x.c]"]);
    }

    #[test]
    fn a_wrapper_is_taken_off() {
        let want = ["x.o: gcc -c x.c [x.c]"];
        for line in [
            "ccache gcc -c x.c",
            "/usr/bin/ccache compression=false gcc -c x.c",
            "ccache distcc gcc -c x.c",
            "icecc gcc -c x.c",
            "/bin/sh /opt/ccache gcc -c x.c",
        ] {
            assert_eq!(entries(line), want, "{line}");
        }
        let script = words("/bin/sh /opt/bin/musl-gcc -c x.c");
        assert_eq!(
            call(&script),
            Call::Driver(&words("/opt/bin/musl-gcc -c x.c"))
        );
        assert_eq!(call(&words("sccache")), Call::Cache);
        assert_eq!(call(&words("ccache -s")), Call::Cache);
        assert_eq!(call(&words("ccache make x")), Call::Other);
    }
}
