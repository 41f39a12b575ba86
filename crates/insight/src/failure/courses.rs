//! What the scripts of shells say about the failures of their commands.

use std::cell::RefCell;
use std::collections::{BTreeMap, HashMap};
use std::rc::Rc;

use tr_analyze::model::{Analysis, Process, ProcessIx};
use tr_format::event::Argv;
use tr_format::scripts::path_of;
use tr_programs::command_line;
use tr_programs::outline::{Child, CommandIx, Course, Ending, Options, Outline, Part};
use tr_text::escape;

use super::finder::Finder;
use super::passes::{code, fails, program, DEEP};
use crate::exit;

/// The number of steps that the comparisons of all scripts of a recording with the children of their shells may take.
/// Less than a second of work, measured.
const STEPS: usize = 2_000_000;

/// The place of a command in a script.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ScriptLine {
    /// The file of the script as the command line of its shell names it; `None` for a script on the command line.
    pub script: Option<String>,
    /// The number of the line, from 1.
    pub line: u32,
}

impl std::fmt::Display for ScriptLine {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match &self.script {
            Some(script) => write!(f, "{script}:{}", self.line),
            None => write!(f, "line {}", self.line),
        }
    }
}

/// A statement of a script by which its shell failed although no program that it ran caused this.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Statement {
    pub place: ScriptLine,
    /// The statement as it is written in the script, on one line.
    pub text: String,
}

/// The texts of the scripts that shells ran.
pub(super) struct Texts<'a> {
    /// The texts of scripts in files, by path.
    files: HashMap<&'a [u8], &'a [u8]>,
    /// The courses of failed shells, and of their subshells, filled in when they are first needed.
    courses: RefCell<BTreeMap<ProcessIx, Option<Rc<ShellCourse>>>>,
    /// The outlines of scripts in files, by path, filled in when they are first needed.
    outlines: RefCell<HashMap<Vec<u8>, Rc<Outline>>>,
    /// The number of steps that are left of [`STEPS`].
    steps: RefCell<usize>,
}

/// The script of a shell.
struct Script {
    /// The name of the file, if the script is in one.
    name: Option<String>,
    outline: Rc<Outline>,
}

/// A script, or a part of one, and what it did.
#[derive(Clone, Debug)]
pub(super) struct ShellCourse {
    script: Option<String>,
    part: Part,
    course: Course,
    /// The children of the shell in the order of the course.
    children: Vec<ProcessIx>,
}

impl<'a> Texts<'a> {
    pub(super) fn new(analysis: &'a Analysis) -> Texts<'a> {
        let scripts = analysis.summary.iter().flat_map(|summary| &summary.scripts);
        let known = scripts.filter_map(|script| {
            let text = script.text.as_deref()?;
            Some((script.path.as_slice(), text))
        });
        Texts {
            files: known.collect(),
            courses: RefCell::default(),
            outlines: RefCell::default(),
            steps: RefCell::new(STEPS),
        }
    }

    /// The script that a shell runs, if its text is known.
    fn of(&self, shell: &Process) -> Option<Script> {
        let args: Vec<&[u8]> = shell.argv.args().collect();
        if let Some(text) = command_line::shell_text(&args).filter(|_| !shell.argv.truncated()) {
            let outline = Rc::new(self.read(text)?);
            let name = None;
            return Some(Script { name, outline });
        }
        let word = command_line::shell_script(&shell.argv)?;
        let path = path_of(&shell.execs.last()?.directory, word)?;
        let name = Some(escape::raw(word));
        let known = self.outlines.borrow().get(&path).cloned();
        if let Some(outline) = known {
            return Some(Script { name, outline });
        }
        let text = self.files.get(path.as_slice())?;
        let outline = Rc::new(self.read(text)?);
        self.outlines.borrow_mut().insert(path, outline.clone());
        Some(Script { name, outline })
    }

    /// Reads a script, if there are steps left for it.
    fn read(&self, text: &[u8]) -> Option<Outline> {
        let mut steps = self.steps.borrow_mut();
        *steps = steps.checked_sub(text.len())?;
        Some(Outline::read(text))
    }
}

impl Finder<'_> {
    /// The course of the script of a failed shell, or of the commands of a failed subshell; `None` if the text is not known or
    /// does not fit.
    pub(super) fn course(&self, ix: ProcessIx) -> Option<Rc<ShellCourse>> {
        if let Some(known) = self.texts.courses.borrow().get(&ix) {
            return known.clone();
        }
        let is_fork = |ix: &ProcessIx| self.analysis.process(*ix).execs.is_empty();
        let mut line: Vec<ProcessIx> = vec![ix];
        while let Some(last) = line.last().copied().filter(is_fork) {
            match self.analysis.process(last).parent {
                Some(parent) if line.len() < DEEP => line.push(parent),
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
            (Part::new(outline, options), name)
        };
        let own = shell.children.iter().copied();
        let own = own.filter(|child| self.analysis.process(*child).start >= program(shell));
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

    /// The place of the command for which a shell started a process.
    pub(super) fn script_line(&self, ix: ProcessIx) -> Option<ScriptLine> {
        let above = self.course(self.analysis.process(ix).parent?)?;
        let (line, _) = above.part.text(above.command(ix)?)?;
        let script = above.script.clone();
        Some(ScriptLine { script, line })
    }

    /// The program that a shell started a process for, which did not execute it.
    pub(super) fn unstarted_program(&self, ix: ProcessIx) -> Option<String> {
        let above = self.course(self.analysis.process(ix).parent?)?;
        let name = above.part.program(above.command(ix)?)?;
        Some(escape::raw(name))
    }

    /// The statement by which the script of a shell failed.
    pub(super) fn statement(&self, ix: ProcessIx) -> Option<Statement> {
        let course = self.course(ix)?;
        let Ending::Statement(command) = course.course.ending else {
            return None;
        };
        let (line, text) = course.part.text(command)?;
        Some(Statement {
            place: ScriptLine {
                script: course.script.clone(),
                line,
            },
            text: escape::raw(text),
        })
    }
}

impl ShellCourse {
    /// The command that a child was started for.
    fn command(&self, child: ProcessIx) -> Option<CommandIx> {
        *self.course.commands.get(self.place(child)?)?
    }

    fn place(&self, child: ProcessIx) -> Option<usize> {
        self.children.binary_search(&child).ok().or_else(|| {
            let mut children = self.children.iter();
            children.position(|other| *other == child)
        })
    }

    /// Whether the failure of a child ended the script, as far as the text decides it.
    pub(super) fn decides(&self, child: ProcessIx) -> Option<Decided> {
        let is_at = |place: &usize| self.children.get(*place) == Some(&child);
        match &self.course.ending {
            Ending::Child(place) if is_at(place) => Some(Decided::Yes),
            // Of equal reasons, the first one stands before the others.
            Ending::Each(places) if places.first().is_some_and(is_at) => Some(Decided::Yes),
            Ending::Each(places) if places.iter().any(is_at) => Some(Decided::Too),
            Ending::OneOf(places) if places.iter().any(is_at) => Some(Decided::Maybe),
            Ending::Statement(_) if self.course.linked.iter().any(is_at) => Some(Decided::Maybe),
            Ending::Unknown => None,
            _ => Some(Decided::No),
        }
    }
}

/// The decision of a script's text about a child's failure.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Decided {
    /// The failure is not the reason for the end of the script.
    No,
    /// The failure is one of several possible reasons.
    Maybe,
    /// The failure is one of several reasons, each of which is enough.
    Too,
    Yes,
}

fn child(process: &Process) -> Child<'_> {
    let first: Option<&Argv> = process.execs.first().map(|exec| &exec.argv);
    Child {
        args: first.map(|argv| argv.args().collect()),
        is_cut: first.is_some_and(Argv::truncated),
        status: code(process),
    }
}
