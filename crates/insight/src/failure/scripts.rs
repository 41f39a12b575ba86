//! Scripts on the command lines of shells, as far as their words show what decides a shell's status.

use tr_analyze::model::Process;
use tr_programs::{command_line, words};

/// The longest script that is read.
const LONGEST: usize = 65_536;

/// The words that begin a command which starts no program and can fail, or which contains other commands, separated by
/// spaces. A shell has the status of such a command whatever its children ended with.
const DECIDE: &str = "! . [ [[ alias bg break builtin case cd command continue coproc declare do done elif else esac eval \
                      exec exit export false fc fg fi for function getopts hash if jobs kill let local mapfile popd pushd read \
                      readarray readonly return select set shift shopt source test then time trap type typeset ulimit \
                      unalias unset until wait while { }";

/// Whether the script of a shell's command line consists of programs alone: the shell has the status of one of them.
/// `sh -c 'node gen.js && node pack.js'`
pub(super) fn runs_programs_alone(shell: &Process) -> bool {
    let args: Vec<&[u8]> = shell.argv.args().collect();
    let script = command_line::shell_text(&args);
    // With -u each expansion can fail.
    let expands = |script: &[u8]| has_letter(shell, b'u') && script.contains(&b'$');
    script.is_some_and(|script| {
        script.len() <= LONGEST && !expands(script) && starts_programs_alone(script)
    })
}

/// Whether a letter is among the short options of a shell, which stand before its script.
fn has_letter(shell: &Process, letter: u8) -> bool {
    let mut args = shell.argv.args().skip(1);
    args.any(|arg| matches!(arg, [b'-', letters @ ..] if letters.contains(&letter)))
}

fn starts_programs_alone(script: &[u8]) -> bool {
    let Some(script) = Script::read(script) else {
        return false;
    };
    // A redirection can fail by itself, but no command before it has failed then.
    let is_known = !script.redirects || script.stops_at_the_first;
    is_known
        && script.commands.iter().all(|command| {
            let mut words = command.split(u8::is_ascii_whitespace);
            let first = words.find(|word| !word.is_empty() && !words::is_assignment(word));
            first.is_none_or(|first| !words::has(DECIDE, first))
        })
}

/// A script that has no part which can fail by itself, apart from redirections.
#[derive(Debug)]
struct Script {
    /// The commands without their quoted parts.
    commands: Vec<Vec<u8>>,
    /// A command's input or output is a file.
    redirects: bool,
    /// Nothing runs after a command that fails: `&&` alone connects the commands.
    stops_at_the_first: bool,
}

impl Script {
    /// Divides a script into its commands. `None` if it has an expansion with a condition, a subshell, a text as an input,
    /// or a job in the background.
    fn read(script: &[u8]) -> Option<Script> {
        let mut read = Script {
            commands: vec![Vec::new()],
            redirects: false,
            stops_at_the_first: true,
        };
        let mut quote = None;
        let mut bytes = script.iter().copied().peekable();
        while let Some(byte) = bytes.next() {
            let command = read.commands.last_mut()?;
            match (byte, quote) {
                (_, Some(b'\'')) if byte != b'\'' => {}
                (b'$', _) if bytes.peek().is_some_and(|next| b"({[".contains(next)) => return None,
                (b'`', _) => return None,
                (b'\\', _) => {
                    bytes.next();
                    command.push(b'_');
                }
                (b'\'' | b'"', None) => {
                    quote = Some(byte);
                    command.push(b'_');
                }
                (_, Some(end)) => quote = Some(end).filter(|end| *end != byte),
                (b'<', None) if bytes.peek() == Some(&b'<') => return None,
                // `2>&1` and `>>`
                (b'<' | b'>', None) => {
                    bytes.next_if(|next| b">&|".contains(next));
                    command.push(b' ');
                    read.redirects = true;
                }
                (b'(' | b')' | b'#', None) => return None,
                (b'&', None) => {
                    bytes.next_if_eq(&b'&')?;
                    read.commands.push(Vec::new());
                }
                (b'|' | b';' | b'\n', None) => {
                    read.stops_at_the_first = false;
                    read.commands.push(Vec::new());
                }
                (_, None) => command.push(byte),
            }
        }
        Some(read)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_script_of_programs_has_the_status_of_one_of_them() {
        for script in [
            "node test.js",
            "node gen.js && node pack.js",
            "CFLAGS=-O2 gcc -c 'a;b.c'",
            "gcc -c a.c; gcc -c b.c || gcc -c c.c",
            "make -C \"sub (1)\" all",
            "sh gen.sh > out.txt",
            "cc -E a.c >a.i 2>>log && sort <a.i",
            "make 2>&1",
        ] {
            assert!(starts_programs_alone(script.as_bytes()), "{script}");
        }
    }

    #[test]
    fn a_builtin_or_an_expansion_can_fail_as_well() {
        for script in [
            "ls /missing || true; cd /nowhere",
            "grep x /missing || true; make \"${NOPE:?}\"",
            "sh gen.sh || cat > out.txt",
            "ls /missing; sort < in.txt",
            "sort << end",
            "make >(tee log)",
            "x=`false`; make",
            "make & wait",
            "if make; then true; fi",
            "(cd a; make)",
            "make || exit 1",
            "[ -s out ]",
            "ls x || true\n. ./y.sh",
        ] {
            assert!(!starts_programs_alone(script.as_bytes()), "{script}");
        }
    }
}
