//! Keeps the texts of the shell scripts that recorded processes run from files, and of the files that these scripts
//! execute in their own shell (`. file`).
//!
//! An exec event has only the name of the script's file. The recorder reads the file when it handles the event, which
//! can be as late as two drains after the shell has opened the file. If the file was changed in between, its text is
//! not recorded.

mod file;

use std::collections::{HashMap, HashSet};
use std::hash::{BuildHasher, RandomState};

use nix::sys::time::TimeValLike;
use nix::time::{clock_getres, ClockId};
use tr_format::event::{Argv, Exec, Ktime};
use tr_format::limits;
use tr_format::scripts::{path_of, NamesInDirectory, RecordedScript};

use crate::host;
pub use file::{is_possible, Runner};
use file::{Reader, Version};

/// A function that returns the paths of the files that a script may execute in its own shell. Some of the files may not
/// exist. The arguments are the script's text, the path of its file (if it is in one), the shell's directory, and a
/// function that returns the names of the files in a directory.
pub type SourcedFiles =
    for<'n> fn(&[u8], Option<&[u8]>, &[u8], &mut NamesInDirectory<'n>) -> Vec<Vec<u8>>;

/// The functions that find the scripts of shells.
#[derive(Clone, Copy, Debug)]
pub struct ScriptFinder {
    /// Returns the path of the script that a shell runs from a file, from the shell's arguments; `None` if it runs
    /// none.
    pub file: for<'a> fn(&'a Argv) -> Option<&'a [u8]>,
    /// Returns the text of the script that is on the command line of a shell (`sh -c`); `None` if there is none.
    pub text: for<'a> fn(&'a Argv) -> Option<&'a [u8]>,
    /// Finds the files that a script executes in its own shell.
    pub sourced: SourcedFiles,
    /// Returns the text of a script without the values that it gives to variables; `None` if the text is no script.
    pub without_values: fn(&[u8]) -> Option<Vec<u8>>,
}

impl ScriptFinder {
    /// Whether a program with these arguments is a shell that may run a script from a file, or whose script may
    /// execute a file.
    pub fn is_wanted(&self, argv: &Argv) -> bool {
        (self.file)(argv).is_some() || (self.text)(argv).is_some()
    }
}

/// The largest number of script files that are looked for because of one exec. Scripts can execute each other in
/// circles.
const MOST_SOURCED: usize = 64;

/// The largest number of script files that are looked for again at the end of a recording, because they were not found
/// before.
const MOST_PENDING: usize = 256;

/// The largest number of scripts that are counted as left out, because the trace had no room for them.
const MOST_COUNTED: usize = 1 << 16;

/// The number of times that two clocks are read one after the other, to find the difference between them.
const CLOCK_READS: usize = 4;

/// The scripts of a recording, or of one part of a rotated recording.
#[derive(Debug)]
pub struct Scripts {
    /// The functions that find the scripts of shells; `None` if no scripts are recorded.
    finder: Option<ScriptFinder>,
    reader: Reader,
    known: HashMap<Vec<u8>, Script>,
    /// The scripts that were examined since the last [`Scripts::begin_batch`]. The key is a hash of the script's path
    /// and of the task's [`Runner`]. The value is true if the file was changed so close to the exec that it is unknown
    /// which came first.
    seen: HashMap<u64, bool>,
    /// The largest delay of the kernel's clock for times of files, in ns.
    tick: u64,
    /// The length of all recorded texts of scripts together, in bytes.
    bytes: u64,
    /// The hashes of the paths of scripts for which the trace had no room.
    left_out: HashSet<u64>,
    /// The files that recorded scripts may execute by `. FILE` and that were not found. They are looked for again at
    /// the end, because a shell may open them later.
    pending: Vec<(Ktime, Wanted)>,
    hasher: RandomState,
}

/// A file of a script that is to be examined.
#[derive(Clone, Debug)]
struct Wanted {
    path: Vec<u8>,
    runner: Runner,
    /// Whether another script may execute the file in its own shell.
    is_sourced: bool,
}

/// A file that a shell has run as a script, or that a script may execute, and its content.
#[derive(Debug)]
struct Script {
    version: Version,
    content: Content,
    /// Whether the values of variables are left out of the script's text, because the file was first seen as one that
    /// another script may execute.
    hides_values: bool,
}

/// The result of examining the file of a script.
#[derive(Debug, Default)]
struct Seen {
    /// Whether the file was changed so close to the exec that the kernel's times do not show which of them came first.
    is_doubtful: bool,
    /// The text of the file, if the file was not known before; otherwise `None`.
    new: Option<Vec<u8>>,
}

#[derive(Debug, PartialEq, Eq)]
enum Content {
    Text(Vec<u8>),
    /// The script's file had several contents, or was changed after a shell began to read it.
    Changed,
    /// The script's file is too long for a trace.
    Long,
    /// The file contains a NUL byte or is no script, so that its text is not stored.
    Binary,
}

impl Content {
    /// Classifies the content of a script's file. The argument is the file's bytes, or `None` if the file is too long.
    fn of(bytes: Option<Vec<u8>>) -> Content {
        match bytes {
            None => Content::Long,
            Some(bytes) if bytes.contains(&0) => Content::Binary,
            Some(bytes) => Content::Text(bytes),
        }
    }

    fn len(&self) -> u64 {
        match self {
            Content::Text(text) => text.len() as u64,
            _ => 0,
        }
    }
}

impl Scripts {
    /// Creates an empty collection of scripts. The functions of `finder` find the scripts in execs.
    pub fn new(finder: Option<ScriptFinder>) -> Scripts {
        Scripts {
            finder,
            reader: Reader::new(),
            known: HashMap::new(),
            seen: HashMap::new(),
            tick: tick(),
            bytes: 0,
            left_out: HashSet::new(),
            pending: Vec::new(),
            hasher: RandomState::new(),
        }
    }

    /// Begins a batch of exec events. A file is examined only for the first exec of a batch, so that a script that
    /// runs in a loop costs little.
    pub fn begin_batch(&mut self) {
        self.seen.clear();
    }

    /// Records the script of an exec, if the executed program is a shell with a script.
    pub fn executed(&mut self, time: Ktime, exec: &Exec, runner: Option<Runner>) {
        let Some((finder, runner)) = self.finder.zip(runner) else {
            return;
        };
        let directory: &[u8] = &exec.directory;
        let wanted = |path, is_sourced| Wanted {
            path,
            runner,
            is_sourced,
        };
        let mut queue: Vec<Wanted> = Vec::new();
        if let Some(word) = (finder.file)(&exec.argv) {
            let path = path_of(directory, word);
            queue.extend(path.map(|path| wanted(path, false)));
        } else if let Some(text) = (finder.text)(&exec.argv) {
            let mut names = |directory: &[u8]| self.reader.names(directory, runner);
            let paths = (finder.sourced)(text, None, directory, &mut names);
            queue.extend(paths.into_iter().map(|path| wanted(path, true)));
        }
        for at in 0..MOST_SOURCED {
            let Some(next) = queue.get(at).cloned() else {
                break;
            };
            if let Some(text) = self.examine(finder, time, &next) {
                let mut names = |directory: &[u8]| self.reader.names(directory, runner);
                let paths = (finder.sourced)(&text, Some(&next.path), directory, &mut names);
                for path in paths {
                    if queue.iter().all(|other| other.path != path) {
                        queue.push(wanted(path, true));
                    }
                }
            }
        }
    }

    /// Examines the file of a script, at most once in a batch. Returns the text of the script if it is new.
    fn examine(&mut self, finder: ScriptFinder, time: Ktime, wanted: &Wanted) -> Option<Vec<u8>> {
        let hash = self.hasher.hash_one((&wanted.path, wanted.runner));
        match self.seen.get(&hash) {
            None => {
                let seen = self.see(finder, time, wanted);
                self.seen.insert(hash, seen.is_doubtful);
                return seen.new;
            }
            // The script runs a second time in the batch. The file was changed so close to the first run that the
            // change may have come between the two runs. So it is uncertain which text each run had.
            Some(true) => {
                self.change(&wanted.path);
                self.seen.insert(hash, false);
            }
            Some(false) => {}
        }
        None
    }

    /// Examines the file of a script and stores its text, or notes that its text has changed.
    fn see(&mut self, finder: ScriptFinder, time: Ktime, wanted: &Wanted) -> Seen {
        let path = &wanted.path;
        let known = self.known.get(path);
        if known.is_some_and(|script| script.content == Content::Changed) {
            return Seen::default();
        }
        let is_full = self.known.len() as u64 >= limits::SCRIPTS;
        let hash = self.hasher.hash_one(path);
        if known.is_none() && (is_full || self.left_out.contains(&hash)) {
            // There is no room for this file, so it is not looked for. A file that a script may execute by `. FILE` is
            // not counted as left out then, because it may not exist.
            if !wanted.is_sourced {
                self.leave_out(hash);
            }
            return Seen::default();
        }
        // A file in a known version is not read again, because a build may run a script 10,000 times.
        let read = self.reader.read(path, wanted.runner, |version| {
            known.is_none_or(|script| script.version != *version)
        });
        let Some((version, bytes)) = read else {
            let mut others = self.pending.iter();
            let is_new =
                others.all(|(_, other)| other.path != *path || other.runner != wanted.runner);
            if wanted.is_sourced && known.is_none() && is_new && self.pending.len() < MOST_PENDING {
                self.pending.push((time, wanted.clone()));
            }
            return Seen::default();
        };
        // A script that was seen before is stored in the same way as before: with or without the values of its
        // variables. Otherwise its two texts would differ, although the script has not changed.
        let hides = known.map_or(wanted.is_sourced, |script| script.hides_values);
        let bytes = bytes.map(|bytes| {
            if hides {
                // If the text is no script, secrets may be anywhere in it. It is replaced by a NUL byte, which marks a
                // file that is not stored.
                (finder.without_values)(&bytes).unwrap_or_else(|| vec![0])
            } else {
                bytes
            }
        });
        let time = real_time(time);
        let content = if version.changed > time {
            Content::Changed
        } else {
            Content::of(bytes)
        };
        let is_doubtful = version.changed.saturating_add(self.tick) > time;
        let mut new = None;
        if let Some(script) = self.known.get_mut(path) {
            script.version = version;
            if script.content != content {
                self.change(path);
            }
        } else if self.bytes + content.len() > limits::SCRIPT_BYTES || path.len() > limits::NAME {
            self.leave_out(hash);
        } else {
            self.bytes += content.len();
            if let Content::Text(text) = &content {
                new = Some(text.clone());
            }
            let script = Script {
                version,
                content,
                hides_values: hides,
            };
            self.known.insert(path.clone(), script);
        }
        Seen { is_doubtful, new }
    }

    fn change(&mut self, path: &[u8]) {
        if let Some(script) = self.known.get_mut(path) {
            self.bytes -= script.content.len();
            script.content = Content::Changed;
        }
    }

    fn leave_out(&mut self, hash: u64) {
        if self.left_out.len() < MOST_COUNTED {
            self.left_out.insert(hash);
        }
    }

    /// The recorded scripts, in the order of their paths, and the number of scripts for which there was no room.
    pub fn take(&mut self) -> (Vec<RecordedScript>, u64) {
        // The files in `pending` were not in the kernel's cache of paths when they were looked for. They may be there
        // now, if a script has executed them since.
        if let Some(finder) = self.finder {
            for (time, wanted) in std::mem::take(&mut self.pending) {
                self.see(finder, time, &wanted);
            }
        }
        let mut left_out = self.left_out.len() as u64;
        let mut scripts = Vec::new();
        for (path, script) in self.known.drain() {
            let text = match script.content {
                Content::Text(text) => Some(text),
                Content::Changed => None,
                Content::Long => {
                    left_out += 1;
                    continue;
                }
                Content::Binary => continue,
            };
            scripts.push(RecordedScript { path, text });
        }
        scripts.sort_unstable_by(|one, other| one.path.cmp(&other.path));
        (scripts, left_out)
    }
}

/// The largest time in ns by which the recorded time of a file's change can be too early. Many file systems take the
/// time from a clock that advances with the timer's interrupt, which may come a tick late.
fn tick() -> u64 {
    let tick = clock_getres(ClockId::CLOCK_REALTIME_COARSE);
    let ns = tick.map_or(0, |tick| tick.num_nanoseconds());
    u64::try_from(ns).unwrap_or(0).saturating_mul(2)
}

/// Converts the time of an event to ns since 1970. For this, the real-time clock is read, and right after it the
/// kernel's clock. The result is too early by the time between the two reads, in which the thread can lose its CPU. So
/// several pairs are read, and the latest result is used.
fn real_time(time: Ktime) -> u64 {
    let read = |_| {
        let real = host::clock().real;
        real.saturating_sub(host::now().since(time))
    };
    (0..CLOCK_READS).map(read).max().unwrap_or(0)
}

#[cfg(test)]
#[path = "tests/scripts.rs"]
mod tests;
