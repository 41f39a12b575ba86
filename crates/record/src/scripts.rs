//! Keeps the texts of the shell scripts that recorded processes run from files.
//!
//! An exec has only the name of a script's file. The recorder reads the file when it handles the exec, which is up to
//! the interval of two drains after the shell has opened it. A file that was changed since the exec has no known text.

mod file;

use std::collections::{HashMap, HashSet};
use std::hash::{BuildHasher, RandomState};

use nix::sys::time::TimeValLike;
use nix::time::{clock_getres, ClockId};
use tr_format::event::{Argv, Exec, Ktime};
use tr_format::limits;
use tr_format::scripts::{path_of, RecordedScript};

use crate::host;
pub use file::{is_possible, Runner};
use file::{Reader, Version};

/// A function that finds the file of the script that a shell runs, as the shell's arguments name it.
pub type ScriptFile = for<'a> fn(&'a Argv) -> Option<&'a [u8]>;

/// The largest number of left out scripts that are counted.
const COUNTED: usize = 1 << 16;

/// How often the clocks are read to compare them.
const CLOCK_READS: usize = 4;

/// The scripts of a recording, or of one part of it.
#[derive(Debug)]
pub struct Scripts {
    /// `None` if no scripts are recorded.
    file_of: Option<ScriptFile>,
    reader: Reader,
    known: HashMap<Vec<u8>, Script>,
    /// The hash of each path, and of the facts about the task that ran it, since the last [`Scripts::begin_batch`], with
    /// whether the file may have been changed either right before or right after the exec.
    seen: HashMap<u64, bool>,
    /// The most by which the kernel's clock of files is late, in ns.
    tick: u64,
    /// The length of all known texts in bytes.
    bytes: u64,
    /// The hashes of the paths for which there was no room.
    left_out: HashSet<u64>,
    hasher: RandomState,
}

/// A file that a shell has run.
#[derive(Debug)]
struct Script {
    version: Version,
    content: Content,
}

#[derive(Debug, PartialEq, Eq)]
enum Content {
    Text(Vec<u8>),
    /// The file had several contents, or was changed after a shell began to read it.
    Changed,
    /// The file is too long for a trace.
    Long,
    /// The file has a NUL byte, so that it is no script.
    Binary,
}

impl Content {
    /// The content of a file with these bytes; `None` if the file is too long.
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
    /// A collection of scripts, whose files `file_of` finds.
    pub fn new(file_of: Option<ScriptFile>) -> Scripts {
        Scripts {
            file_of,
            reader: Reader::new(),
            known: HashMap::new(),
            seen: HashMap::new(),
            tick: tick(),
            bytes: 0,
            left_out: HashSet::new(),
            hasher: RandomState::new(),
        }
    }

    /// Begins a batch of execs, all of which have happened. A file is examined for the first exec of a batch alone, so
    /// that a script that runs in a loop costs little.
    pub fn begin_batch(&mut self) {
        self.seen.clear();
    }

    /// Notes the script of an exec, if the program is a shell with a script in a file.
    pub fn executed(&mut self, time: Ktime, exec: &Exec, runner: Option<Runner>) {
        let Some(file_of) = self.file_of else {
            return;
        };
        let path = file_of(&exec.argv).and_then(|word| path_of(&exec.directory, word));
        let Some((path, runner)) = path.zip(runner) else {
            return;
        };
        let hash = self.hasher.hash_one((&path, runner));
        match self.seen.get(&hash) {
            None => {
                let is_doubtful = self.see(time, path, runner);
                self.seen.insert(hash, is_doubtful);
            }
            // Written, run, written, run within a tick; or written, and run twice.
            Some(true) => {
                self.change(&path);
                self.seen.insert(hash, false);
            }
            Some(false) => {}
        }
    }

    /// Examines the file of a script. Returns whether the kernel's times do not tell if the file was changed before or
    /// after the exec.
    fn see(&mut self, time: Ktime, path: Vec<u8>, runner: Runner) -> bool {
        let known = self.known.get(&path);
        if known.is_some_and(|script| script.content == Content::Changed) {
            return false;
        }
        let is_full = self.known.len() as u64 >= limits::SCRIPTS;
        let hash = self.hasher.hash_one(&path);
        if known.is_none() && (is_full || self.left_out.contains(&hash)) {
            self.leave_out(hash);
            return false;
        }
        // The same version is not read again: a build may run a script 10,000 times.
        let read = self.reader.read(&path, runner, |version| {
            known.is_none_or(|script| script.version != *version)
        });
        let Some((version, bytes)) = read else {
            return false;
        };
        let time = real_time(time);
        let content = if version.changed > time {
            Content::Changed
        } else {
            Content::of(bytes)
        };
        let is_doubtful = version.changed.saturating_add(self.tick) > time;
        if let Some(script) = self.known.get_mut(&path) {
            script.version = version;
            if script.content != content {
                self.change(&path);
            }
        } else if self.bytes + content.len() > limits::SCRIPT_BYTES || path.len() > limits::NAME {
            self.leave_out(hash);
        } else {
            self.bytes += content.len();
            self.known.insert(path, Script { version, content });
        }
        is_doubtful
    }

    fn change(&mut self, path: &[u8]) {
        if let Some(script) = self.known.get_mut(path) {
            self.bytes -= script.content.len();
            script.content = Content::Changed;
        }
    }

    fn leave_out(&mut self, hash: u64) {
        if self.left_out.len() < COUNTED {
            self.left_out.insert(hash);
        }
    }

    /// The scripts, in the order of their paths, and the number of those for which there was no room.
    pub fn take(&mut self) -> (Vec<RecordedScript>, u64) {
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

/// The most by which the time of a change of a file is early, in ns. Many file systems take the time from a clock that
/// advances with the timer's interrupt, which may come a tick late.
fn tick() -> u64 {
    let tick = clock_getres(ClockId::CLOCK_REALTIME_COARSE);
    let ns = tick.map_or(0, |tick| tick.num_nanoseconds());
    u64::try_from(ns).unwrap_or(0).saturating_mul(2)
}

/// The time of an event in ns since 1970. The result is early by at most the time between two reads of clocks, of which
/// several are made, because the thread can lose its CPU in between.
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
