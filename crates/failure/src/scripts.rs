//! Reads scripts on the command lines of shells (`sh -c`) to find out which commands decide the shell's exit status.

use tr_analyze::model::Process;
use tr_programs::outline::{
    self, Command, Link, Options, Outline, Setting, Tree, Word, LONGEST_SCRIPT,
};
use tr_programs::{command_line, words};

/// Whether the script on a shell's command line consists only of programs, such as `sh -c 'node gen.js && node
/// pack.js'`. The shell then ends with the status of one of them.
pub(super) fn runs_programs_alone(shell: &Process) -> bool {
    // With the option -u, the shell itself can fail at each expansion of an unset variable. So with this option, a
    // script that contains a `$` does not count as a script of programs alone.
    let args: Vec<&[u8]> = shell.argv.args().collect();
    let options = Options::of(&args);
    let is_strict = options.is_some_and(|options| options.nounset != Setting::Off);
    let expands = |script: &[u8]| is_strict && script.contains(&b'$');
    script_of(shell).is_some_and(|script| !expands(script) && starts_programs_alone(script))
}

/// The script on a shell's command line; `None` if there is no such script or if it is too long.
fn script_of(shell: &Process) -> Option<&[u8]> {
    command_line::script_text(&shell.argv).filter(|script| script.len() <= LONGEST_SCRIPT)
}

/// The name of the program in the script on a shell's command line that comes after `others` other programs. `None` if
/// a command may run although the previous command has failed.
pub(super) fn program_after(shell: &Process, others: usize) -> Option<Vec<u8>> {
    program_at(script_of(shell)?, others)
}

fn program_at(script: &[u8], place: usize) -> Option<Vec<u8>> {
    let outline = Outline::read(script);
    let plain = Plain::of(&outline).filter(|plain| plain.stops_at_the_first)?;
    let firsts = plain.commands.iter().map(|command| command.words.first());
    let is_nothing = |word: &&Word| outline::starts_nothing(&word.text);
    let programs: Vec<&Word> = firsts.flatten().filter(|word| !is_nothing(word)).collect();
    if programs.iter().any(|word| outline::may_decide(&word.text)) {
        return None;
    }
    let is_plain = |word: &&&Word| word.text.len() > 1 && !word.is_quoted;
    let program = programs.get(place).filter(is_plain)?;
    program.literal().map(<[u8]>::to_vec)
}

fn starts_programs_alone(script: &[u8]) -> bool {
    let outline = Outline::read(script);
    let Some(plain) = Plain::of(&outline) else {
        return false;
    };
    // A redirection can fail although no program fails. If the script ends at the first failed command, a program that
    // failed is certainly the reason for the script's end. If the script goes on after a failed command, a redirection
    // that failed later may be the reason instead.
    let mut commands = plain.commands.iter();
    let is_known = plain.stops_at_the_first || !commands.clone().any(|command| command.opens);
    is_known
        && commands.all(|command| {
            let first = command.words.first();
            first.is_none_or(|first| !outline::may_decide(&first.text))
        })
}

/// The script of a shell, reduced to simple commands. The script has no part that can fail by itself, apart from
/// redirections.
struct Plain<'a> {
    commands: Vec<&'a Command>,
    /// Whether the script ends at the first failed command, because only `&&` connects its commands.
    stops_at_the_first: bool,
}

impl<'a> Plain<'a> {
    /// Reduces a script to its plain commands. Returns `None` if the script has any other part, for example an
    /// expansion such as `${x:?}`, a command substitution, a subshell, or a background job.
    fn of(outline: &'a Outline) -> Option<Plain<'a>> {
        let mut plain = Plain {
            commands: Vec::new(),
            stops_at_the_first: true,
        };
        let is_plain = outline.is_whole && plain.add(outline, &outline.body);
        is_plain.then_some(plain)
    }

    fn add(&mut self, outline: &'a Outline, tree: &Tree) -> bool {
        match tree {
            Tree::Simple(ix) => {
                let command = outline.commands.get(*ix);
                self.commands.extend(command);
                command.is_some_and(|command| {
                    let expands = |word: &Word| {
                        words::contains(&word.text, b"${") && word.literal().is_none()
                    };
                    command.substitutions.is_empty() && !command.words.iter().any(expands)
                })
            }
            Tree::List(all) => {
                self.stops_at_the_first &= all.len() <= 1;
                all.iter().all(|tree| self.add(outline, tree))
            }
            Tree::Chain(all) => all.iter().all(|(link, tree)| {
                self.stops_at_the_first &= *link == Link::And;
                self.add(outline, tree)
            }),
            Tree::Pipe {
                members,
                negated: false,
            } => {
                self.stops_at_the_first = false;
                members.iter().all(|tree| self.add(outline, tree))
            }
            _ => false,
        }
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
    fn a_script_names_the_program_that_comes_next() {
        let program = |script: &str, place| {
            let name = program_at(script.as_bytes(), place)?;
            String::from_utf8(name).ok()
        };
        for (script, place, name) in [
            ("esbuild src/a.js --bundle", 0, Some("esbuild")),
            (
                "node a.js && NODE_ENV=x esbuild b.js > c && node d.js",
                1,
                Some("esbuild"),
            ),
            ("cd sub && protoc_x --out . x.proto", 0, Some("protoc_x")),
            ("./gen 'a && b' && sign x", 1, Some("sign")),
            ("node a.js && tsc", 2, None),
            ("node a.js; esbuild b.js", 1, None),
            ("node a.js || esbuild b.js", 1, None),
            ("if node a.js; then esbuild b.js; fi", 1, None),
            ("exec esbuild b.js", 0, None),
            ("\"$TOOL\" b.js", 0, None),
            ("$TOOL b.js", 0, None),
        ] {
            assert_eq!(program(script, place).as_deref(), name, "{script}");
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
