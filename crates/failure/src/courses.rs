//! Finds out from the text of a shell's script which command's failure made the shell fail.

use std::rc::Rc;

use tr_analyze::model::{Process, ProcessIx};
use tr_analyze::status::INTERRUPT;
use tr_format::event::Argv;
use tr_programs::outline::{Child, CommandText, Ending, Options, ScriptPart};
use tr_text::escape;

use super::finder::Finder;
use super::passes::{code, fails, program_start, LONGEST_CHAIN};
use super::texts::{Script, ScriptLine, ShellCourse, Statement};
use tr_insight::processes::exit;

/// The signals by which programs are usually stopped: SIGHUP, SIGINT, SIGTERM.
const STOP_SIGNALS: [u32; 3] = [1, INTERRUPT, 15];

impl Finder<'_> {
    /// The course of a failed shell's script, or of a failed subshell's commands: which command started which child,
    /// and how the script ended. `None` if the script's text is not known, or if the children cannot have come from
    /// this text.
    pub(super) fn course(&self, ix: ProcessIx) -> Option<Rc<ShellCourse>> {
        if let Some(known) = self.texts.courses.borrow().get(&ix) {
            return known.clone();
        }
        let is_fork = |ix: &ProcessIx| self.analysis.process(*ix).execs.is_empty();
        let mut line: Vec<ProcessIx> = vec![ix];
        while let Some(last) = line.last().copied().filter(is_fork) {
            match self.analysis.process(last).parent {
                Some(parent) if line.len() < LONGEST_CHAIN => line.push(parent),
                _ => break,
            }
        }
        let mut above: Option<Rc<ShellCourse>> = None;
        for ix in line.into_iter().rev() {
            let known = self.texts.courses.borrow().get(&ix).cloned();
            above = match known {
                Some(known) => known,
                None => {
                    let new = self.new_course(ix, above.as_deref()).map(Rc::new);
                    let mut courses = self.texts.courses.borrow_mut();
                    courses.insert(ix, new.clone());
                    new
                }
            };
        }
        above
    }

    fn new_course(&self, ix: ProcessIx, above: Option<&ShellCourse>) -> Option<ShellCourse> {
        let shell = self.analysis.process(ix);
        let by_itself = fails(shell) && exit::killed_by(shell.status).is_none();
        let code = code(shell).filter(|_| by_itself)?;
        let (part, script) = if shell.execs.is_empty() {
            let above = above?;
            let place = above.place(ix)?;
            let part = above.course.parts.get(place)?.clone()?;
            (part, above.script.clone())
        } else {
            let args: Vec<&[u8]> = shell.argv.args().collect();
            let options = Options::of(&args)?;
            let Script { name, outline } = self.texts.of(shell)?;
            // If the script handles signals, a handler (trap) may have ended the shell and its children. Then the text
            // does not show which command started which child and how the script ended.
            if outline.handles_signals() && self.has_stopped_child(shell) {
                return None;
            }
            (ScriptPart::new(outline, options), name)
        };
        let own = shell.children.iter().copied();
        let own = own.filter(|child| self.analysis.process(*child).start >= program_start(shell));
        let children: Vec<ProcessIx> = own.collect();
        let started: Vec<Child<'_>> = children
            .iter()
            .map(|ix| child(self.analysis.process(*ix)))
            .collect();
        let mut steps = self.texts.steps.borrow_mut();
        let course = part.course(&started, code, &mut steps)?;
        Some(ShellCourse {
            script,
            part,
            course,
            children,
        })
    }

    /// Whether a child of a process was killed by one of the signals that usually stop programs.
    fn has_stopped_child(&self, of: &Process) -> bool {
        let mut children = of.children.iter().map(|ix| self.analysis.process(*ix));
        children.any(|child| {
            let signal = exit::killed_by(child.status);
            signal.is_some_and(|signal| STOP_SIGNALS.contains(&signal))
        })
    }

    /// The script file and the line of the command for which a shell started the given process.
    pub(super) fn script_line(&self, ix: ProcessIx) -> Option<ScriptLine> {
        let above = self.course(self.analysis.process(ix).parent?)?;
        let text = above.part.text(above.command(ix)?)?;
        Some(self.place_of(&above, &text))
    }

    /// The name of the program that a forked child of a shell should have executed, but did not execute.
    pub(super) fn unstarted_program(&self, ix: ProcessIx) -> Option<String> {
        let above = self.course(self.analysis.process(ix).parent?)?;
        let name = above.part.program(above.command(ix)?)?;
        Some(escape::raw(name))
    }

    /// The statement of a shell's script that made the shell fail; `None` if it is not certain which one, or if a
    /// child did.
    pub(super) fn statement(&self, ix: ProcessIx) -> Option<Statement> {
        let course = self.course(ix)?;
        let Ending::Statement(command) = course.course.ending else {
            return None;
        };
        let text = course.part.text(command)?;
        Some(Statement {
            place: self.place_of(&course, &text),
            text: escape::raw(text.text),
        })
    }

    /// The file and the line of a command in a script. The path of the file is relative if the file is in the directory
    /// in which COMMAND started, or in a subdirectory of that directory.
    fn place_of(&self, course: &ShellCourse, text: &CommandText<'_>) -> ScriptLine {
        let command = self.analysis.processes.first();
        let first = command.and_then(|command| command.execs.first());
        let directory = first.map_or(&b""[..], |exec| &exec.directory);
        let script = text.file.map(|path| {
            let inside = path
                .strip_prefix(directory)
                .and_then(|path| path.strip_prefix(b"/"));
            escape::raw(inside.unwrap_or(path))
        });
        ScriptLine {
            script: script.or_else(|| course.script.clone()),
            line: text.line,
        }
    }
}

fn child(process: &Process) -> Child<'_> {
    let first: Option<&Argv> = process.execs.first().map(|exec| &exec.argv);
    Child {
        args: first.map(|argv| argv.args().collect()),
        is_cut: first.is_some_and(Argv::truncated),
        status: code(process),
    }
}
