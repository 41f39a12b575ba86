//! Holds the texts of the scripts that shells ran, and which child process belongs to which command of a script.

use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, HashMap};
use std::rc::Rc;

use tr_analyze::model::{Analysis, ExecSpan, Process, ProcessIx};
use tr_format::scripts::path_of;
use tr_programs::command_line;
use tr_programs::outline::{CommandIx, Course, Ending, KnownFile, Outline, ScriptPart};
use tr_text::escape;

/// The budget for reading the scripts of a recording and comparing them with the children of their shells, in units of
/// work such as one byte of a script. Measured: the work takes less than a second.
const STEPS: usize = 2_000_000;

/// The place of a command in a script: the file and the line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ScriptLine {
    /// The path of the script's file, as the shell's command line has it, or the path of the sourced file (`. file`)
    /// that contains the command; `None` if the script itself is on the command line.
    pub script: Option<String>,
    /// The number of the script's line, counted from 1.
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

/// A statement at which a shell's script failed by itself, so that no program that the script ran is the cause.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Statement {
    pub place: ScriptLine,
    /// The failed statement as it is written in the script, perhaps on several lines.
    pub text: String,
}

/// The texts of the scripts that the shells of a recording ran, and which child process belongs to which command.
pub(super) struct Texts<'a> {
    /// The texts of script files, by the path of the file. `None` stands for a file whose text was not recorded.
    files: HashMap<&'a [u8], Option<&'a [u8]>>,
    /// For failed shells and their subshells, the course of the script: which child belongs to which command, and how
    /// the script ended. Filled in when it is first needed.
    pub(super) courses: RefCell<BTreeMap<ProcessIx, Option<Rc<ShellCourse>>>>,
    /// The parsed texts (outlines) of the shell scripts, filled in when they are first needed. `None` stands for a
    /// script that was not parsed because the budget of steps was used up.
    outlines: RefCell<HashMap<Source, Option<Rc<Outline>>>>,
    /// The remaining part of the budget of [`STEPS`] that may still be spent on reading scripts and comparing them with
    /// processes.
    pub(super) steps: RefCell<usize>,
}

/// A script, and the directory in which the shell that runs it began. The directory is part of the key of a parsed
/// script, because the script may read in other files by relative paths (`. ./file`).
#[derive(Debug, PartialEq, Eq, Hash)]
struct Source {
    origin: Origin,
    directory: Vec<u8>,
}

/// The place from which the text of a shell's script comes.
#[derive(Debug, PartialEq, Eq, Hash)]
enum Origin {
    /// The text of the script is an argument on the shell's command line.
    CommandLine(Vec<u8>),
    /// The text of the script is in the file with this path.
    File(Vec<u8>),
}

/// The parsed script of a shell.
pub(super) struct Script {
    /// The name of the script's file, if the script is in a file.
    pub(super) name: Option<String>,
    pub(super) outline: Rc<Outline>,
}

/// A shell's script, or a part of the script, with the child processes that the shell started for its commands.
#[derive(Clone, Debug)]
pub(super) struct ShellCourse {
    pub(super) script: Option<String>,
    pub(super) part: ScriptPart,
    pub(super) course: Course,
    /// The children of the shell in the order in which the script started them.
    pub(super) children: Vec<ProcessIx>,
}

impl<'a> Texts<'a> {
    pub(super) fn new(analysis: &'a Analysis) -> Texts<'a> {
        let scripts = analysis.summary.iter().flat_map(|summary| &summary.scripts);
        let known = scripts.map(|script| (script.path.as_slice(), script.text.as_deref()));
        Texts {
            files: known.collect(),
            courses: RefCell::default(),
            outlines: RefCell::default(),
            steps: RefCell::new(STEPS),
        }
    }

    /// The script that a shell process runs, if the text of the script is known.
    pub(super) fn of(&self, shell: &Process) -> Option<Script> {
        let directory = &shell.execs.last()?.directory;
        let (name, origin) = match command_line::script_text(&shell.argv) {
            Some(text) => (None, Origin::CommandLine(text.to_vec())),
            None => {
                let word = command_line::shell_script(&shell.argv)?;
                (
                    Some(escape::raw(word)),
                    Origin::File(path_of(directory, word)?),
                )
            }
        };
        let source = Source {
            origin,
            directory: directory.to_vec(),
        };
        let known = self.outlines.borrow().get(&source).cloned();
        if let Some(outline) = known {
            return Some(Script {
                name,
                outline: outline?,
            });
        }
        let (text, path) = match &source.origin {
            Origin::CommandLine(text) => (text.as_slice(), None),
            Origin::File(path) => ((*self.files.get(path.as_slice())?)?, Some(path.as_slice())),
        };
        let outline = self.read(text, path, directory).map(Rc::new);
        self.outlines.borrow_mut().insert(source, outline.clone());
        Some(Script {
            name,
            outline: outline?,
        })
    }

    /// The files into which the script of a shell redirects the output of a child process.
    pub(super) fn outputs(&self, shell: &Process, child: &Process) -> Vec<Vec<u8>> {
        let script = self.of(shell).zip(child.execs.first());
        let Some((Script { outline, .. }, ExecSpan { argv, .. })) = script else {
            return Vec::new();
        };
        let args: Vec<&[u8]> = argv.args().collect();
        if self.spend(outline.commands.len()).is_none() {
            return Vec::new();
        }
        outline.outputs_of(&args, argv.truncated())
    }

    /// Parses a script together with the files that it reads in (`. file`). `None` if the budget of work ([`STEPS`]) is
    /// used up. `path` is the file of the script, if it has one.
    fn read(&self, text: &[u8], path: Option<&[u8]>, directory: &[u8]) -> Option<Outline> {
        self.spend(text.len())?;
        let sourced = Cell::new(0);
        let known = |path: &[u8]| match self.files.get(path) {
            None => KnownFile::Absent,
            Some(None) => KnownFile::WithoutText,
            Some(Some(text)) => {
                sourced.set(sourced.get() + text.len());
                KnownFile::Text(text)
            }
        };
        let mut names = |directory: &[u8]| {
            let inside = self.files.keys().filter_map(|path| {
                let name = path.strip_prefix(directory)?.strip_prefix(b"/")?;
                (!name.contains(&b'/')).then(|| name.to_vec())
            });
            inside.collect()
        };
        let outline = Outline::with_sources(text, path, directory, known, &mut names);
        self.spend(sourced.get())?;
        Some(outline)
    }

    /// Takes `count` units of work from the budget for reading scripts; `None` if fewer are left.
    fn spend(&self, count: usize) -> Option<()> {
        let mut steps = self.steps.borrow_mut();
        *steps = steps.checked_sub(count)?;
        Some(())
    }
}

impl ShellCourse {
    /// The command in the script for which the shell started a child; `None` if it is not known.
    pub(super) fn command(&self, child: ProcessIx) -> Option<CommandIx> {
        *self.course.commands.get(self.place(child)?)?
    }

    pub(super) fn place(&self, child: ProcessIx) -> Option<usize> {
        self.children.binary_search(&child).ok().or_else(|| {
            let mut children = self.children.iter();
            children.position(|other| *other == child)
        })
    }

    /// The children whose failures certainly or possibly ended the script of their shell.
    pub(super) fn reasons(&self) -> impl Iterator<Item = ProcessIx> + '_ {
        let places = match &self.course.ending {
            Ending::Child(place) => std::slice::from_ref(place),
            Ending::OneOf(places) | Ending::Each(places) => places.as_slice(),
            Ending::Statement(_) | Ending::Statements(_) | Ending::Unknown => &[],
        };
        places
            .iter()
            .filter_map(|place| self.children.get(*place).copied())
    }

    /// Whether the failure of a child is the reason for the end of its shell's script; `None` if the text of the script
    /// does not show whether this is the reason.
    pub(super) fn decides(&self, child: ProcessIx) -> Option<Decided> {
        let is_at = |place: &usize| self.children.get(*place) == Some(&child);
        match &self.course.ending {
            Ending::Child(place) if is_at(place) => Some(Decided::Yes),
            // If each of several reasons is enough, the first one is reported as the reason.
            Ending::Each(places) if places.first().is_some_and(is_at) => Some(Decided::Yes),
            Ending::Each(places) if places.iter().any(is_at) => Some(Decided::Too),
            Ending::OneOf(places) if places.iter().any(is_at) => Some(Decided::Maybe),
            Ending::Statement(_) | Ending::Statements(_)
                if self.course.linked.iter().any(is_at) =>
            {
                Some(Decided::Maybe)
            }
            Ending::Unknown => None,
            _ => Some(Decided::No),
        }
    }
}

/// The conclusion from a script's text on whether a child's failure ended the script.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Decided {
    /// The child's failure is not the reason for the end of the script.
    No,
    /// The child's failure is one of several possible reasons for the end of the script.
    Maybe,
    /// The child's failure is one of several reasons, each of which is enough to end the script.
    Too,
    Yes,
}
