//! Finds the compilations of a build, as the entries of a `compile_commands.json`, and the calls of compilers that are
//! not entries.

use std::collections::{BTreeMap, HashMap};

use tr_analyze::model::{Analysis, ExecSpan, Process, ProcessIx};
use tr_format::event::Ktime;
use tr_programs::compilation::{self, Call, Compilation, Entry};
use tr_text::named;

use crate::processes::ancestors::down;
use crate::processes::roles::is_probe;

/// The text with which the recorder replaces a secret in a command line.
const MASK: &str = "***";

/// The compilation of one source, which is an entry of a compilation database (`compile_commands.json`).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CompileCommand {
    /// The working directory of the compiler in this compilation.
    pub directory: String,
    /// The compiler and the arguments of this compilation. If the call compiled several sources, the other sources are
    /// left out.
    pub arguments: Vec<String>,
    /// The absolute path of the compiled source.
    pub file: String,
    /// The output file of the compilation as the compiler's arguments name it; without `-o`, the name that the compiler
    /// chooses. `None` if only the compiler knows the name.
    pub output: Option<String>,
}

impl CompileCommand {
    /// Whether the recorder has masked a part of the command line or of the paths, because it could be a secret.
    pub fn is_masked(&self) -> bool {
        let texts = self.arguments.iter().chain([&self.directory, &self.file]);
        texts.into_iter().any(|text| text.contains(MASK))
    }
}

named! {
    /// The reason why a call of a compiler is left out of the compilation database.
    #[derive(Hash)]
    pub enum LeftOut {
        Failed = "failed", "failed";
        Unfinished = "unfinished", "did not end in the recording";
        Probe = "probe", "were checks of a configuration";
        NoDirectory = "no-directory", "have no recorded working directory";
        Cut = "cut", "have a command line that was cut (record --argv-limit)";
        Input = "input", "read their source from standard input";
        ResponseFile = "response-file", "name their sources in a response file alone";
        NotText = "not-text", "have a path or an argument that is not UTF-8";
        Repeated = "repeated", "were made again later";
    }
}

/// The compilations of a recording as a compilation database, and the calls of compilers that this database leaves out.
#[derive(Clone, Debug, Default)]
pub struct CompileCommands {
    /// The entries of the compilation database, in the order in which the compilers were started.
    pub entries: Vec<CompileCommand>,
    /// The number of compiled sources that have no entry in the compilation database, by the reason. A call of a
    /// compiler whose sources are not known counts as one.
    pub left_out: BTreeMap<LeftOut, u64>,
}

impl CompileCommands {
    /// Finds the compilations that the chosen processes did.
    pub fn of(analysis: &Analysis, chosen: &[ProcessIx]) -> CompileCommands {
        let origins = down(analysis, |ix, parent| Origin::of(analysis, ix, parent));
        let mut found = CompileCommands::default();
        for ix in chosen {
            let process = analysis.process(*ix);
            let origin = &origins[*ix];
            if origin.is_part {
                continue;
            }
            // A process may execute a wrapper of a compiler and then the compiler itself. Only the first of these
            // programs becomes an entry.
            let whole = process.execs.iter().find(|exec| is_compilation(exec));
            if let Some(exec) = whole {
                found.add(process, exec, origin);
            }
        }
        found.without_repeated();
        found
    }

    fn add(&mut self, process: &Process, exec: &ExecSpan, origin: &Origin) {
        let args: Vec<&[u8]> = exec.argv.args().collect();
        let Call::Driver(args) = compilation::call(&args) else {
            return;
        };
        let Some(compilation) = Compilation::of(args) else {
            return;
        };
        let entries: Vec<Entry<'_>> = compilation.entries(args).collect();
        let without_sources = || {
            let why = if compilation.reads_input {
                LeftOut::Input
            } else {
                LeftOut::ResponseFile
            };
            entries.is_empty().then_some(why)
        };
        if let Some(why) = left_out(process, exec, origin).or_else(without_sources) {
            self.leave_out(why, entries.len().max(1));
            return;
        }
        for entry in entries {
            match command(exec, &entry) {
                Some(command) => self.entries.push(command),
                None => self.leave_out(LeftOut::NotText, 1),
            }
        }
    }

    fn leave_out(&mut self, why: LeftOut, sources: usize) {
        let count = self.left_out.entry(why).or_default();
        *count = count.saturating_add(sources as u64);
    }

    /// Removes repeated entries of the compilation database: if a source was compiled several times to the same output
    /// in the same directory, only the last compilation is kept.
    fn without_repeated(&mut self) {
        let mut last: HashMap<(&str, &str, Option<&str>), usize> = HashMap::new();
        for (at, entry) in self.entries.iter().enumerate() {
            let key = (
                entry.directory.as_str(),
                entry.file.as_str(),
                entry.output.as_deref(),
            );
            last.insert(key, at);
        }
        let mut kept: Vec<usize> = last.into_values().collect();
        kept.sort_unstable();
        let repeated = self.entries.len() - kept.len();
        let mut at = 0..;
        self.entries
            .retain(|_| at.next().is_some_and(|at| kept.binary_search(&at).is_ok()));
        if repeated > 0 {
            self.leave_out(LeftOut::Repeated, repeated);
        }
    }
}

/// The facts about a compiler's call that follow from the ancestors of its process: whether it is a part of another
/// compiler's call, and whether it is a check of a configuration.
#[derive(Clone, Copy, Debug, Default)]
struct Origin {
    /// Whether a call of a compiler or of a compiler's cache started the process or one of its ancestors, so that the
    /// process is a part of that call.
    is_part: bool,
    /// Whether the process is a check of a configuration (such as a compilation by configure), or a part of such a
    /// check.
    is_probe: bool,
}

impl Origin {
    fn of(analysis: &Analysis, ix: ProcessIx, above: Option<&Origin>) -> Origin {
        let process = analysis.process(ix);
        let above = above.copied().unwrap_or_default();
        let Some(parent) = process.parent.map(|parent| analysis.process(parent)) else {
            return above;
        };
        let starter = program_at(parent, process.start);
        Origin {
            is_part: above.is_part || starter.is_some_and(is_compilation),
            is_probe: above.is_probe || is_probe(process, parent),
        }
    }
}

/// The reason to leave a compiler's call out of the compilation database: for example, the call was only a probe,
/// failed, or was recorded incompletely. `None` if there is no such reason.
fn left_out(process: &Process, exec: &ExecSpan, origin: &Origin) -> Option<LeftOut> {
    if origin.is_probe || has_scratch(exec.argv.args()) {
        return Some(LeftOut::Probe);
    }
    match process.status {
        None => return Some(LeftOut::Unfinished),
        Some(0) => {}
        Some(_) => return Some(LeftOut::Failed),
    }
    if exec.argv.truncated() {
        return Some(LeftOut::Cut);
    }
    exec.directory.is_empty().then_some(LeftOut::NoDirectory)
}

/// Whether a compiler's arguments name a file that only checks of a configuration use: autoconf's test files, or
/// `/dev/null` as the source or the product. A build may write the dependencies of a source (`-MF`) to `/dev/null`.
fn has_scratch<'a>(args: impl Iterator<Item = &'a [u8]>) -> bool {
    let mut before: &[u8] = b"";
    for arg in args {
        let name = arg.rsplit(|byte| *byte == b'/').next().unwrap_or(arg);
        if name.starts_with(b"conftest.") || arg == b"/dev/null" && before != b"-MF" {
            return true;
        }
        before = arg;
    }
    false
}

/// The last program that a process executed at or before a time; `None` if it had executed none.
fn program_at(process: &Process, time: Ktime) -> Option<&ExecSpan> {
    let mut before = process.execs.iter().rev();
    before.find(|exec| exec.start <= time)
}

/// Whether a program is a compiler's driver that compiles, or a compiler's cache. The compilers that such a program
/// starts are parts of its work.
fn is_compilation(exec: &ExecSpan) -> bool {
    let args: Vec<&[u8]> = exec.argv.args().collect();
    match compilation::call(&args) {
        Call::Driver(args) => Compilation::of(args).is_some(),
        Call::Cache => true,
        Call::Other => false,
    }
}

/// The entry of the compilation database for one source of a compiler's call; `None` if one of its texts is not UTF-8.
fn command(exec: &ExecSpan, entry: &Entry<'_>) -> Option<CompileCommand> {
    let text = |bytes: &[u8]| std::str::from_utf8(bytes).ok().map(str::to_owned);
    let mut arguments = Vec::with_capacity(entry.arguments.len());
    for argument in &entry.arguments {
        arguments.push(text(argument)?);
    }
    // The name of the compiler is replaced by its path, because tools that read the compilation database may have
    // another PATH.
    let path = text(&exec.filename)?;
    if let Some(first) = arguments.first_mut() {
        let is_found = path.starts_with('/') && path.rsplit('/').next() == Some(first);
        if is_found {
            *first = path;
        }
    }
    let directory = text(&exec.directory)?;
    let file = text(entry.source)?;
    let output = match &entry.output {
        Some(output) => Some(text(output)?),
        None => None,
    };
    Some(CompileCommand {
        file: absolute(&directory, &file),
        directory,
        arguments,
        output,
    })
}

/// Joins a path to a directory. `./` at its beginning is left out; `..` is kept, because the directory before it may be
/// a symbolic link.
fn absolute(directory: &str, path: &str) -> String {
    if path.starts_with('/') {
        return path.to_owned();
    }
    let mut path = path;
    while let Some(rest) = path.strip_prefix("./") {
        path = rest.trim_start_matches('/');
    }
    format!("{}/{path}", directory.trim_end_matches('/'))
}

#[cfg(test)]
#[path = "tests/compile_commands.rs"]
mod tests;
