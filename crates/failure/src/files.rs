//! Connects two failures by a file: one failed process should have written a file that the other process needs.
//!
//! No event shows which files a process opens. Command lines name many of them: a writer's command line names outputs
//! by options and redirections, and a reader's command line names inputs among its arguments.

use tr_format::event::Argv;
use tr_programs::program_name::ProgramName;
use tr_programs::script_words::{is_script_option, redirection_targets};
use tr_programs::table::utilities::{uses, written, UtilityUse, Written};
use tr_programs::tools::Role;
use tr_programs::words;

/// A file that a command writes, as far as the command line shows the file's name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Output {
    name: Vec<u8>,
    /// Whether the file's name is guessed: the command writes to its standard output, and the name comes from an
    /// address (URL) on the command line. An extension may follow the name.
    is_guess: bool,
}

/// The extensions of files that a source file includes. The command line of a compiler does not name such files.
const INCLUDED_EXTENSIONS: [&[u8]; 6] = [b".h", b".hh", b".hpp", b".hxx", b".inc", b".def"];

impl Output {
    /// Whether the file that a command writes contains rules for make. The file's name shows this if `mk` is among its
    /// extensions (`rules.mk`, `rules.mk.new`). A make that includes such a file goes on if the file cannot be made.
    pub(super) fn has_rules(&self) -> bool {
        let mut parts = base(&self.name).split(|byte| *byte == b'.').skip(1);
        parts.any(|extension| extension == b"mk")
    }

    /// Whether the file that a command writes can be included by a source file, as a header is.
    pub(super) fn is_included(&self) -> bool {
        is_header(&self.name)
    }
}

fn is_header(name: &[u8]) -> bool {
    INCLUDED_EXTENSIONS.iter().any(|end| name.ends_with(end))
}

/// The options of compilers and other tools whose value is the name of the output file, separated by spaces.
const OPTIONS: &str = "-o -out --out --outfile --output --output-file";

/// Two limits that bound the work. A script on a command line is searched for redirections only if it has at most
/// `SCRIPT` bytes. At most `MOST_FILES` files are taken as written by one command.
const SCRIPT: usize = 4096;
const MOST_FILES: usize = 20;

/// The files that a command with these arguments writes; `program` is the name of its program.
pub(super) fn outputs(argv: &Argv, program: &ProgramName) -> Vec<Output> {
    let args: Vec<&[u8]> = argv.args().skip(1).collect();
    // For shells, `-o` sets an option (`bash -o pipefail`) and names no file.
    let mut names = if role(program) == Some(Role::Shell) {
        Vec::new()
    } else {
        by_options(&args)
    };
    let mut guesses = Vec::new();
    if written(program.name()) == Some(Written::FetchedByOption) && names.is_empty() {
        let by_address = has_letter(&args, b'O') || args.contains(&&b"--remote-name"[..]);
        let found = if by_address { &mut names } else { &mut guesses };
        found.extend(operands(&args).filter_map(of_address));
    } else {
        names.extend(by_program(&args, program));
    }
    let names = names.into_iter().map(|name| (name, false));
    let guesses = guesses.into_iter().map(|name| (name, true));
    let all = names
        .chain(guesses)
        .filter(|(name, _)| is_name(name))
        .take(MOST_FILES);
    all.map(|(name, is_guess)| Output {
        name: plain(name).to_vec(),
        is_guess,
    })
    .collect()
}

/// The file that a redirection to this name in a shell's script writes; `None` if the name is not that of a regular
/// file, such as `/dev/null`.
pub(super) fn by_redirection(name: &[u8]) -> Option<Output> {
    let is_file = is_name(name) && !name.starts_with(b"/dev/");
    is_file.then(|| Output {
        name: plain(name).to_vec(),
        is_guess: false,
    })
}

/// The file that the last of several arguments of a script names. This file is guessed to be the script's output,
/// because programs mostly read the first files and write the last one. Only a name with an extension is taken for a
/// file.
pub(super) fn last_file(argv: &Argv) -> Option<Output> {
    let args: Vec<&[u8]> = argv.args().skip(2).collect();
    let last = operands(&args).skip(1).last()?;
    if !is_name(last) || !has_extension(last) {
        return None;
    }
    Some(Output {
        name: plain(last).to_vec(),
        is_guess: false,
    })
}

/// The role that a program has in a build, regardless of its subcommand, such as `build` in `cargo build`.
fn role(program: &ProgramName) -> Option<Role> {
    program.tool()?.role(None)
}

/// The names of the files that a command writes, as far as options such as `-o` name them.
fn by_options<'a>(args: &[&'a [u8]]) -> Vec<&'a [u8]> {
    let pairs = args.windows(2).filter_map(|pair| match pair {
        [option, value] if words::has(OPTIONS, option) => Some(*value),
        _ => None,
    });
    let values = args.iter().filter_map(|arg| {
        let (option, value) = split(arg, b'=')?;
        let is_output = words::has(OPTIONS, option) || option == b"--output-document";
        (is_output || option == b"of").then_some(value)
    });
    pairs.chain(values).collect()
}

/// The names of the files that a command writes, for programs that do not name their outputs by the usual options such
/// as `-o`. For the script of a shell, these files are the targets of the script's redirections.
fn by_program<'a>(args: &[&'a [u8]], program: &ProgramName) -> Vec<&'a [u8]> {
    let after = |is_option: fn(&[u8]) -> bool| {
        let mut pairs = args.windows(2);
        pairs.find_map(|pair| match pair {
            [option, value] if is_option(option) => Some(*value),
            _ => None,
        })
    };
    match written(program.name()) {
        Some(Written::Fetched) => {
            let name = after(|option| option.starts_with(b"-") && option.ends_with(b"O"));
            let by_address = operands(args).filter_map(of_address);
            name.map_or_else(|| by_address.collect(), |name| vec![name])
        }
        Some(Written::Packed) => {
            let packed = after(|letters| letters.contains(&b'c') && letters.ends_with(b"f"));
            packed.into_iter().collect()
        }
        Some(Written::Cloned) if args.contains(&&b"clone"[..]) => {
            // Arguments before the address (URL) are values of options, so they are skipped.
            let mut operands = operands(args).skip_while(|arg| of_address(arg).is_none());
            let (address, directory) = (operands.next(), operands.next());
            let by_address = address.and_then(of_address);
            let by_address = by_address.map(|name| name.strip_suffix(b".git").unwrap_or(name));
            directory.or(by_address).into_iter().collect()
        }
        Some(Written::LastOperand) => operands(args).skip(1).last().into_iter().collect(),
        Some(Written::EachOperand) => operands(args).collect(),
        Some(Written::SecondOperand) => operands(args).nth(1).into_iter().collect(),
        Some(Written::FirstOperand) => operands(args).next().into_iter().collect(),
        _ => {
            let script = after(is_script_option).filter(|script| script.len() <= SCRIPT);
            let redirected = script.into_iter().flat_map(redirection_targets);
            // If the last argument of a program is a header, the program probably writes this header. Two kinds of
            // programs do not count: compilers, and programs whose arguments also name other source files, because such
            // programs may be style checkers.
            let mut uses = uses(program.name()).iter();
            let is_known =
                uses.any(|known| !matches!(known, UtilityUse::Optional | UtilityUse::Maker));
            let writes = role(program) != Some(Role::Compiler) && !is_known;
            let last = operands(args).last();
            let last = last.filter(|name| writes && is_header(name));
            let mut others =
                operands(args).filter(|name| is_header(name) || words::is_source(name));
            let is_alone = others.next() == last && others.next().is_none();
            redirected.chain(last.filter(|_| is_alone)).collect()
        }
    }
}

/// The arguments of a command that do not begin with `-`, including the values of options that are separate arguments.
fn operands<'a, 'b>(args: &'b [&'a [u8]]) -> impl Iterator<Item = &'a [u8]> + use<'a, 'b> {
    args.iter().copied().filter(|arg| !arg.starts_with(b"-"))
}

/// Whether the arguments of a command contain a short option with the given letter, alone or in a group of options.
fn has_letter(args: &[&[u8]], letter: u8) -> bool {
    let mut short = args
        .iter()
        .filter(|arg| arg.starts_with(b"-") && !arg.starts_with(b"--"));
    short.any(|arg| arg.contains(&letter))
}

/// Whether a command needs a file that another command writes: a word of the command line, or the part of a word after
/// `=`, names this file or a file in a directory of this name. After a guessed name, an extension may follow.
pub(super) fn needs(argv: &Argv, output: &Output) -> bool {
    let words = argv.args().flat_map(|arg| {
        let value = split(arg, b'=').map(|(_, value)| value);
        std::iter::once(arg).chain(value)
    });
    let mut names = words.filter(|word| is_name(word)).map(plain);
    names.any(|name| {
        if output.is_guess {
            let rest = base(name).strip_prefix(base(&output.name));
            return rest.is_some_and(|rest| rest.is_empty() || rest.starts_with(b"."));
        }
        let inside = name.strip_prefix(&*output.name);
        inside.is_some_and(|rest| rest.is_empty() || rest.starts_with(b"/"))
            || ends_with(name, &output.name)
            || ends_with(&output.name, name)
    })
}

/// Whether an argument of a command names a file with the same base name as another command's output. The directories
/// are not compared, because a command may change its directory.
pub(super) fn has_name_of(argv: &Argv, output: &Output) -> bool {
    let mut names = argv.args().skip(1).filter(|word| is_name(word));
    names.any(|name| base(plain(name)) == base(&output.name))
}

/// Whether the command `other` names a file that `script` also reads. A script is assumed to write the last file on its
/// command line and to read the files before that one.
pub(super) fn reads_the_same(script: &Argv, other: &Argv) -> bool {
    let args: Vec<&[u8]> = script.args().skip(2).collect();
    let files: Vec<&[u8]> = operands(&args).collect();
    let inputs = files.split_last().map_or(&[][..], |(_, inputs)| inputs);
    let named = |input: &&[u8]| other.args().skip(1).any(|word| plain(word) == plain(input));
    inputs.iter().any(named)
}

/// Whether the arguments of two commands name the same file. The program or script file that the commands run does not
/// count as such a file. A name counts as a file only if it has an extension or a directory.
pub(super) fn share_a_file(one: &Argv, other: &Argv, program: &ProgramName) -> bool {
    let is_file = |name: &&[u8]| {
        let is_program = std::str::from_utf8(base(name)).is_ok_and(|name| program.is(name));
        is_name(name) && !is_program && (has_extension(name) || name.contains(&b'/'))
    };
    let named: Vec<&[u8]> = one.args().skip(1).filter(is_file).map(plain).collect();
    let mut names = other.args().skip(1).filter(is_file).map(plain);
    names.any(|name| named.contains(&name))
}

/// Whether two commands write the same file: the two names are equal, or one name is an absolute path that ends with
/// the other name, which is a relative path.
pub(super) fn is_same(one: &Output, other: &Output) -> bool {
    one.name == other.name || ends_with(&one.name, &other.name) || ends_with(&other.name, &one.name)
}

/// The last part of the path in an address (URL).
fn of_address(arg: &[u8]) -> Option<&[u8]> {
    let scheme = arg.windows(3).position(|part| part == b"://")?;
    let rest = arg.get(scheme + 3..)?;
    let end = rest.iter().position(|byte| b"?#".contains(byte));
    let rest = rest.get(..end.unwrap_or(rest.len()))?;
    let host = rest.iter().position(|byte| *byte == b'/')?;
    let name = base(rest.get(host..)?);
    (!name.is_empty()).then_some(name)
}

/// Whether a word can be the name of a file that two commands share.
fn is_name(word: &[u8]) -> bool {
    word.len() > 1 && !word.starts_with(b"-") && !word.starts_with(b"/dev/") && word != b".."
}

/// A file's name without a leading `./` and without a trailing `/`.
fn plain(name: &[u8]) -> &[u8] {
    let name = name.strip_prefix(b"./").unwrap_or(name);
    name.strip_suffix(b"/").unwrap_or(name)
}

/// Whether `end` is the end of the absolute path `name`, divided at a slash (`b/c` of `/a/b/c`), or is equal to
/// `name`.
fn ends_with(name: &[u8], end: &[u8]) -> bool {
    let before = name.strip_suffix(end);
    before.is_some_and(|before| {
        before.is_empty() || before.ends_with(b"/") && before.starts_with(b"/")
    })
}

fn base(name: &[u8]) -> &[u8] {
    name.rsplit(|byte| *byte == b'/').next().unwrap_or(name)
}

/// Whether the name of a file has an extension: a dot inside the name, followed by letters and digits. The last number
/// of a version (`1.2`) does not count as an extension.
fn has_extension(name: &[u8]) -> bool {
    let name = base(name);
    let Some(dot) = name.iter().rposition(|byte| *byte == b'.') else {
        return false;
    };
    let extension = name.get(dot + 1..).unwrap_or_default();
    dot > 0
        && extension.iter().all(u8::is_ascii_alphanumeric)
        && extension.iter().any(u8::is_ascii_alphabetic)
}

fn split(arg: &[u8], at: u8) -> Option<(&[u8], &[u8])> {
    let place = arg.iter().position(|byte| *byte == at)?;
    Some((arg.get(..place)?, arg.get(place + 1..)?))
}

#[cfg(test)]
mod tests {
    use tr_format::event::Comm;

    use super::*;

    fn links(writer: &str, reader: &str) -> bool {
        let argv = |line: &str| Argv::from_args(line.split(' ').map(|arg| arg.replace('~', " ")));
        let (writer, reader) = (argv(writer), argv(reader));
        let outputs = outputs(
            &writer,
            &tr_programs::command_line::program_of(&writer, &Comm::new(b"x")),
        );
        outputs.iter().any(|output| needs(&reader, output))
    }

    #[test]
    fn a_file_that_one_writes_and_the_other_one_names_links_them() {
        for (writer, reader) in [
            ("curl -fsSL -o a.tgz http://h/x", "tar xzf a.tgz"),
            (
                "curl -fsSLO http://h/v1/tool-1.2.zip?k=1",
                "unzip -q tool-1.2.zip",
            ),
            ("curl -sf http://h:9/pkg", "tar xzf pkg.tgz"),
            ("wget -q http://h/data.csv", "python3 load.py ./data.csv"),
            ("wget -qO /w/d/data.csv http://h/x", "sort d/data.csv"),
            ("gcc -o prog main.c", "./prog --all"),
            ("cc -c -o a.o a.c", "ar rcs lib.a a.o"),
            ("git clone -q https://h/x/tool.git", "make -C tool"),
            (
                "git clone --depth 1 https://h/x/tool.git vendor/tool",
                "cmake -S vendor/tool/src",
            ),
            ("sh -c gen~>out.txt~&&~true", "cat out.txt"),
            ("tar czf dist.tgz dist", "scp dist.tgz h:"),
            ("protoc --out=gen x.proto", "cc -c gen/x.c"),
            ("dd if=/dev/zero of=disk.img", "mkfs.ext4 disk.img"),
        ] {
            assert!(links(writer, reader), "{writer} | {reader}");
        }
    }

    #[test]
    fn two_runs_of_a_program_share_a_file() {
        let share = |one: &str, other: &str| {
            let argv = |line: &str| Argv::from_args(line.split(' '));
            share_a_file(&argv(one), &argv(other), &ProgramName::new("tool.py"))
        };
        assert!(share("tool.py a.db init", "tool.py --list a.db"));
        assert!(share("python3 tool.py ./x/y init", "python3 tool.py x/y"));
        assert!(!share("python3 tool.py init", "python3 tool.py list"));
        assert!(!share("tool.py a.db init", "tool.py b.db init"));
    }

    #[test]
    fn a_name_with_an_extension_is_that_of_a_file() {
        for (name, want) in [
            ("out/data.csv", true),
            ("a.tar.gz", true),
            ("archive.7z", true),
            ("v1.2", false),
            ("1.5", false),
            (".git", false),
            ("a.b/c", false),
            ("dir.", false),
        ] {
            assert_eq!(has_extension(name.as_bytes()), want, "{name}");
        }
        let has_rules = |name: &str| {
            let name = name.as_bytes().to_vec();
            Output {
                name,
                is_guess: false,
            }
            .has_rules()
        };
        assert!(has_rules("a/rules.mk") && has_rules("rules.mk.new"));
        assert!(!has_rules("film.mkv") && !has_rules("a.mk/x.o") && !has_rules("mk"));
    }

    #[test]
    fn other_commands_have_nothing_in_common() {
        for (writer, reader) in [
            ("curl -sf http://h/pkg", "tar xzf package.tgz"),
            ("curl -sf http://h/", "tar xzf pkg.tgz"),
            ("curl -o /dev/null http://h/pkg.tgz", "tar xzf pkg.tgz"),
            ("gcc -c -o a.o a.c", "gcc -c -o b.o b.c"),
            ("gcc -o a/x.o x.c", "gcc -c b/x.o"),
            ("grep -q x a.txt", "sort a.txt"),
            ("bash -o pipefail -c a", "bash -o pipefail -c b"),
            ("sh -c exit~1", "sort a.txt"),
            ("cp a", "cat b"),
            ("awk script src/a.cpp src/a.hpp", "g++ -Isrc src/a.hpp"),
            ("lint src/a.h src/b.h", "cpp src/b.h"),
            ("lint src/a.h --strict fast", "cpp src/a.h"),
            ("", ""),
        ] {
            assert!(!links(writer, reader), "{writer} | {reader}");
        }
    }
}
