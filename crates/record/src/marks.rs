//! Reads the file of marks (`$TR_MARKS`), to which programs append marks: moments and spans that they name, each as a
//! line of JSON. The recorder reads the file during the recording, and removes it.
//!
//! The programs that write the file are not trusted: the recorder reads a bounded amount, and counts lines that are no
//! marks. It reads only the file that it has created, by the descriptor.

use std::borrow::Cow;
use std::collections::HashMap;
use std::ffi::OsString;
use std::fs::{File, Permissions};
use std::os::unix::fs::{FileExt, MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};

use nix::fcntl::{open, openat, OFlag};
use nix::sys::stat::{mkdirat, Mode};
use nix::unistd::{unlinkat, Gid, Uid, UnlinkatFlags};
use serde::Deserialize;
use tr_format::event::{Ktime, LifeEvent, LifeKind, Mark, Point, Tgid, Tid};

use crate::host;
use crate::source::{recorder, ProgramClock};

/// The environment variable with the path of the file to which programs write marks (named moments).
pub const VARIABLE: &str = "TR_MARKS";

/// The largest number of bytes of the file of marks that are read in one step.
const AT_ONCE: usize = 1 << 20;
/// The largest number of bytes of the file of marks that are read during a recording.
const BYTES: u64 = 32 << 20;
/// The largest number of marks (named moments) that a recording, or a part of a rotated recording, stores.
const MARKS: u64 = 1 << 18;
/// The length in bytes of the longest line of the file that can be a mark (a moment that a program names).
const LINE: usize = 16 << 10;

#[derive(Debug)]
pub struct Marks {
    file: File,
    /// The directory of the file of marks. It is removed when this value is dropped.
    _directory: Directory,
    /// The value that the environment variable `TR_MARKS` had before the recording.
    before: Option<OsString>,
    /// The number of bytes of the file of marks that were read so far.
    read: u64,
    /// The beginning of a line whose end has not been read yet.
    rest: Vec<u8>,
}

/// The user who gets the file of marks (named moments), and so may write it although root records.
#[derive(Clone, Copy, Debug)]
pub enum Owner {
    Nobody,
    /// COMMAND's user, by uid and gid, gets the file of marks.
    Command((Uid, Gid)),
    /// The user who called sudo, by uid and gid, gets the file of marks. If it cannot be given to this user, the
    /// recording continues, because COMMAND runs as the recorder's user.
    Invoking((Uid, Gid)),
}

impl Marks {
    /// Creates the file of marks, in the first of the directories `places` that allows it, and sets the environment
    /// variable with the file's path, which COMMAND inherits.
    ///
    /// # Errors
    /// The error that the first directory gave.
    pub fn create(places: &[PathBuf], owner: Owner) -> std::io::Result<Marks> {
        let mut refused = None;
        for place in places {
            // The path is made absolute, because COMMAND may change its working directory.
            let created =
                std::path::absolute(place).and_then(|place| Marks::create_in(&place, owner));
            match created {
                Ok(marks) => return Ok(marks),
                Err(error) => refused = refused.or(Some(error)),
            }
        }
        Err(refused.unwrap_or_else(|| std::io::ErrorKind::NotFound.into()))
    }

    /// Creates the file of marks in a new directory, which is made in the directory `place`.
    fn create_in(place: &Path, owner: Owner) -> std::io::Result<Marks> {
        let directory = Directory::create(place)?;
        let (file, shared) = directory.new_file(owner)?;
        // With the mode 0711 other users can reach a file whose path they know. The mode of the file lets only its
        // owner write it.
        let mode = Permissions::from_mode(if shared { 0o711 } else { 0o700 });
        directory.own.set_permissions(mode)?;
        let path = directory.path.join(FILE);
        let mut marks = Marks {
            file,
            _directory: directory,
            before: None,
            read: 0,
            rest: Vec::new(),
        };
        marks.before = std::env::var_os(VARIABLE);
        std::env::set_var(VARIABLE, &path);
        Ok(marks)
    }

    /// Reads the complete lines that programs have appended to the file of marks since the last call, from at most
    /// [`AT_ONCE`] new bytes.
    pub fn take(&mut self) -> Vec<u8> {
        let left = usize::try_from(BYTES - self.read).unwrap_or(AT_ONCE);
        let mut bytes = std::mem::take(&mut self.rest);
        let begin = bytes.len();
        bytes.resize(begin + AT_ONCE.min(left), 0);
        let room = bytes.get_mut(begin..).unwrap_or_default();
        let read = self.file.read_at(room, self.read).unwrap_or(0);
        self.read += read as u64;
        bytes.truncate(begin + read);
        let end = bytes.iter().rposition(|byte| *byte == b'\n');
        // A line that is longer than `LINE` cannot be a mark, so its bytes are taken before its end was read.
        let whole = end.map_or(if bytes.len() > LINE { bytes.len() } else { 0 }, |end| {
            end + 1
        });
        self.rest = bytes.split_off(whole);
        bytes
    }

    /// Reads all remaining lines of the file of marks. Also returns the number of bytes beyond the limit, which are
    /// not read.
    pub fn finish(&mut self) -> (Vec<u8>, u64) {
        let mut lines = Vec::new();
        loop {
            let before = self.read;
            lines.append(&mut self.take());
            if self.read == before {
                break;
            }
        }
        lines.append(&mut self.rest);
        let length = self.file.metadata().map_or(0, |meta| meta.len());
        (lines, length.saturating_sub(self.read))
    }
}

impl Drop for Marks {
    fn drop(&mut self) {
        match &self.before {
            Some(before) => std::env::set_var(VARIABLE, before),
            None => std::env::remove_var(VARIABLE),
        }
    }
}

/// The beginning of the names of the directories that recorders make for files of marks.
const PREFIX: &str = "tr-marks-";
/// The name of the file of marks in its directory.
const FILE: &str = "marks";
/// The largest number of names in a directory among which a recorder searches for directories that killed recorders
/// have left.
const MOST_NAMES: usize = 10_000;

/// The directory of the file of marks. The recorder keeps the directory locked. It is created, used and removed by
/// descriptors, because the owner of the parent directory can replace its name by a link.
#[derive(Debug)]
struct Directory {
    parent: File,
    own: File,
    name: String,
    path: PathBuf,
}

impl Directory {
    fn create(parent: &Path) -> std::io::Result<Directory> {
        let flags = OFlag::O_DIRECTORY | OFlag::O_CLOEXEC;
        let around = File::from(open(parent, flags, Mode::empty())?);
        remove_old(parent, &around);
        for attempt in 0..16 {
            let now = host::now().0 + attempt;
            let name = format!("{PREFIX}{}-{now:x}", std::process::id());
            match mkdirat(&around, name.as_str(), Mode::S_IRWXU) {
                Err(nix::errno::Errno::EEXIST) => continue,
                made => made?,
            }
            let own = match locked(&around, &name)? {
                Locked::Yes(own) => own,
                Locked::Removed => continue,
            };
            return Ok(Directory {
                parent: around,
                own,
                path: parent.join(&name),
                name,
            });
        }
        Err(std::io::ErrorKind::AlreadyExists.into())
    }

    /// Creates the file of marks in this directory. Returns the file, and whether it belongs to another user.
    fn new_file(&self, owner: Owner) -> std::io::Result<(File, bool)> {
        let flags = OFlag::O_RDWR | OFlag::O_CREAT | OFlag::O_EXCL | OFlag::O_CLOEXEC;
        let mode = Mode::S_IRUSR | Mode::S_IWUSR;
        let file = File::from(openat(&self.own, FILE, flags, mode)?);
        // The umask may have removed rights that the owner needs.
        file.set_permissions(Permissions::from_mode(0o600))?;
        let give = |(uid, gid)| nix::unistd::fchown(&file, Some(uid), Some(gid));
        let shared = match owner {
            Owner::Nobody => false,
            Owner::Command(user) => give(user).map(|()| true)?,
            Owner::Invoking(user) => give(user).is_ok(),
        };
        Ok((file, shared))
    }
}

impl Drop for Directory {
    fn drop(&mut self) {
        remove(&self.parent, &self.own, &self.name);
    }
}

/// Opens the directory `name` in the directory `parent`. Symbolic links are refused.
fn opened(parent: &File, name: &str) -> nix::Result<File> {
    let flags = OFlag::O_DIRECTORY | OFlag::O_NOFOLLOW | OFlag::O_CLOEXEC;
    openat(parent, name, flags, Mode::empty()).map(File::from)
}

/// Removes the file of marks from its directory, and then the directory.
fn remove(parent: &File, directory: &File, name: &str) {
    let _ = unlinkat(directory, FILE, UnlinkatFlags::NoRemoveDir);
    let _ = unlinkat(parent, name, UnlinkatFlags::RemoveDir);
}

/// The result of locking a new directory for the file of marks.
enum Locked {
    Yes(File),
    /// Another recorder has removed the new directory: because it was not locked yet, it looked like the directory of
    /// a killed recorder.
    Removed,
}

/// Locks the directory `name`, which was just made for the file of marks.
fn locked(around: &File, name: &str) -> std::io::Result<Locked> {
    let own = match opened(around, name) {
        Err(nix::errno::Errno::ENOENT) => return Ok(Locked::Removed),
        own => own?,
    };
    if own.metadata()?.uid() != Uid::effective().as_raw() {
        return Err(std::io::Error::other("its directory was exchanged"));
    }
    match tr_output::lock(&own) {
        // A recorder removes a directory only while it holds the lock of that directory, so nobody else can remove the
        // locked directory. But another recorder may have removed the directory before the lock was taken. So the name
        // is opened again, to check that the directory still has this name.
        Ok(()) => match opened(around, name) {
            Ok(named) if named.metadata()?.ino() == own.metadata()?.ino() => Ok(Locked::Yes(own)),
            _ => Ok(Locked::Removed),
        },
        Err(error) if error.kind() == std::io::ErrorKind::WouldBlock => Ok(Locked::Removed),
        Err(error) => Err(error),
    }
}

/// Removes the directories that killed recorders of this user have left, each with a file of marks. Such directories
/// are recognized by not being locked.
fn remove_old(parent: &Path, around: &File) {
    let Ok(entries) = std::fs::read_dir(parent) else {
        return;
    };
    for entry in entries.flatten().take(MOST_NAMES) {
        let name = entry.file_name();
        let Some(name) = name.to_str().filter(|name| name.starts_with(PREFIX)) else {
            continue;
        };
        let Ok(directory) = opened(around, name) else {
            continue;
        };
        let is_own = |meta: std::fs::Metadata| meta.uid() == Uid::effective().as_raw();
        if directory.metadata().is_ok_and(is_own) && tr_output::lock(&directory).is_ok() {
            remove(around, &directory, name);
        }
    }
}

/// A line of the file of marks, in which a program names a moment or a span; parsed from JSON.
#[derive(Deserialize)]
struct Line<'a> {
    /// The time of the mark (the moment that a program names) by the clock `CLOCK_MONOTONIC`, in ns.
    t: Option<u64>,
    /// The time of the mark (named moment) by the clock `CLOCK_REALTIME`, in ns. Used only if `t` is missing.
    real: Option<u64>,
    #[serde(borrow)]
    name: Cow<'a, str>,
    #[serde(borrow)]
    ev: Option<Cow<'a, str>>,
    #[serde(borrow)]
    kind: Option<Cow<'a, str>>,
    #[serde(borrow)]
    result: Option<Cow<'a, str>>,
    #[serde(borrow)]
    id: Option<Id<'a>>,
    pid: Option<u32>,
    tid: Option<u32>,
}

#[derive(Deserialize)]
#[serde(untagged)]
enum Id<'a> {
    Number(u64),
    #[serde(borrow)]
    Text(Cow<'a, str>),
}

/// The reason why a line of the file of marks is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Refused {
    /// The line is not a valid mark (JSON that names a moment).
    NoMark,
    /// The mark (named moment) is before the recording or in the future, or it is not known by which clock it was read.
    Time,
    /// The recording has already stored [`MARKS`] marks (named moments).
    TooMany,
}

/// How many marks (named moments) are stored, and how many lines or bytes of their file gave no mark, for each reason.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Count {
    pub stored: u64,
    /// The number of lines in the file of marks that are no valid marks.
    pub no_marks: u64,
    /// The number of marks (named moments) whose time is before the recording or in the future, or was read by an
    /// unknown clock.
    pub wrong_times: u64,
    /// The number of marks (named moments) that were not stored, because the recording had the largest number of
    /// marks already.
    pub too_many: u64,
    /// The number of bytes of the file of marks that were not read, because they are beyond the limit.
    pub unread: u64,
}

impl Count {
    /// Adds the counts of another part of a rotated recording.
    pub fn add(&mut self, other: Count) {
        self.stored += other.stored;
        self.no_marks += other.no_marks;
        self.wrong_times += other.wrong_times;
        self.too_many += other.too_many;
        self.unread += other.unread;
    }

    /// A sentence about the marks (named moments) that are missing in the trace; `None` if none are missing.
    pub fn missing(&self) -> Option<String> {
        let parts = [
            (self.no_marks, "× no mark"),
            (self.wrong_times, "× a time outside of the recording"),
            (self.too_many, "× beyond the limit of 262,144 marks"),
            (self.unread, "bytes beyond the limit of 32 MiB"),
        ];
        let parts = parts.into_iter().filter(|(count, _)| *count > 0);
        let parts: Vec<String> = parts
            .map(|(count, what)| format!("{count} {what}"))
            .collect();
        (!parts.is_empty()).then(|| format!("left out of $TR_MARKS: {}", parts.join(", ")))
    }
}

/// The largest number of process ids whose time offsets are remembered. A process can have two: in the first pid
/// namespace and in its own.
const CLOCKS: usize = 1 << 16;
/// The largest number of different offsets of other time namespaces that are remembered.
const OFFSETS: usize = 64;

/// The nanoseconds that the time namespaces of recorded programs add to the kernel's `CLOCK_MONOTONIC`.
#[derive(Debug)]
pub struct Clocks {
    own: i128,
    /// The clocks of processes in other time namespaces than the recorder's, by both ids of each process. Ended
    /// processes are removed by [`Clocks::forget_ended`].
    processes: HashMap<u32, ProgramClock>,
    /// The ids in the first pid namespace of ended processes that were in other time namespaces. The last marks
    /// (named moments) of such a process may be read only after its end.
    ended: Vec<u32>,
    /// The different offsets in ns of the time namespaces of other processes.
    others: Vec<i128>,
}

impl Clocks {
    fn new(own: i128) -> Clocks {
        Clocks {
            own,
            processes: HashMap::new(),
            ended: Vec::new(),
            others: Vec::new(),
        }
    }

    /// Remembers the clock of a process that is in another time namespace than the recorder.
    pub fn take(&mut self, clock: ProgramClock) {
        let [process, _] = clock.pids;
        // The id may have belonged to an earlier process that has ended. Now it belongs to a new process with this
        // clock, which the end of the earlier process must not remove.
        self.ended.retain(|pid| *pid != process);
        if self.processes.len() < CLOCKS || self.processes.contains_key(&process) {
            self.processes.extend(clock.pids.map(|pid| (pid, clock)));
        }
        if self.others.len() < OFFSETS && !self.others.contains(&clock.offset) {
            self.others.push(clock.offset);
        }
    }

    /// Notes that a process has ended. Its clock is kept until the last marks (named moments) that it has set have
    /// been read.
    pub fn end(&mut self, process: Tgid) {
        if self.processes.contains_key(&process.0) {
            self.ended.push(process.0);
        }
    }

    /// Forgets the clocks of ended processes, because new processes can get their ids from now on.
    pub fn forget_ended(&mut self) {
        for process in std::mem::take(&mut self.ended) {
            let Some(clock) = self.processes.remove(&process) else {
                continue;
            };
            for pid in clock.pids {
                if self.processes.get(&pid) == Some(&clock) {
                    self.processes.remove(&pid);
                }
            }
        }
    }

    /// Converts the time of a program's mark (named moment) to the kernel's clock. Returns `None` if the result is
    /// not between `start` and `end`. If the clock of the process `pid` is known, this clock is used. Otherwise, the
    /// recorder's clock is tried first, and then the clocks of all other time namespaces. If several of these other
    /// clocks give a time inside the recording, the result is `None`.
    fn of_program(&self, pid: Option<u32>, time: u64, start: Ktime, end: Ktime) -> Option<u64> {
        let by = |offset: i128| {
            let time = u64::try_from(i128::from(time) - offset).ok()?;
            (start.0..=end.0).contains(&time).then_some(time)
        };
        if let Some(clock) = pid.and_then(|pid| self.processes.get(&pid)) {
            return by(clock.offset);
        }
        if let Some(time) = by(self.own) {
            return Some(time);
        }
        let mut times = self.others.iter().filter_map(|offset| by(*offset));
        times.next().filter(|_| times.next().is_none())
    }
}

/// Parses the lines of the file of marks.
#[derive(Debug)]
pub struct Reader {
    start: Ktime,
    /// The clocks of programs in other time namespaces, by which the times of their marks (named moments) are
    /// converted.
    pub clocks: Clocks,
    pub count: Count,
}

/// The present time by the two clocks by which a program may give the time of a mark (a moment that it names).
#[derive(Clone, Copy)]
struct Present {
    now: Ktime,
    /// The present time by the clock `CLOCK_REALTIME`, in ns since 1970.
    real: u64,
}

impl Reader {
    /// Creates a reader of the marks (named moments) of a recording that began at `start`.
    pub fn new(start: Ktime) -> Reader {
        Reader {
            start,
            clocks: Clocks::new(host::monotonic_offset()),
            count: Count::default(),
        }
    }

    /// The events for the marks (named moments) in these lines of the file of marks, which were read at `time`.
    pub fn events<'a>(
        &'a mut self,
        time: Ktime,
        lines: &'a [u8],
    ) -> impl Iterator<Item = LifeEvent> + 'a {
        let present = Present {
            now: host::now(),
            real: host::clock().real,
        };
        let lines =
            (lines.split(|byte| *byte == b'\n')).filter(|line| !line.trim_ascii().is_empty());
        lines.filter_map(move |line| match self.event(time, present, line) {
            Ok(event) => {
                self.count.stored += u64::from(event.is_some());
                event
            }
            Err(refused) => {
                let count = match refused {
                    Refused::NoMark => &mut self.count.no_marks,
                    Refused::Time => &mut self.count.wrong_times,
                    Refused::TooMany => &mut self.count.too_many,
                };
                *count += 1;
                None
            }
        })
    }

    /// The event for the mark (named moment) in a line of the file of marks. `None` if the time of the mark is after
    /// `time`, for example after the end of the recording; an error if the line is refused.
    fn event(
        &self,
        time: Ktime,
        present: Present,
        line: &[u8],
    ) -> Result<Option<LifeEvent>, Refused> {
        if self.count.stored >= MARKS {
            return Err(Refused::TooMany);
        }
        let parsed = (line.len() <= LINE).then(|| serde_json::from_slice::<Line>(line).ok());
        let line = parsed.flatten().ok_or(Refused::NoMark)?;
        let point = match line.ev.as_deref() {
            Some("begin") => Point::Begin,
            Some("end") => Point::End,
            Some("moment") | None => Point::Moment,
            Some(_) => return Err(Refused::NoMark),
        };
        if line.name.is_empty() || (line.t.is_none() && line.real.is_none()) {
            return Err(Refused::NoMark);
        }
        let Present { now, real } = present;
        // If the real-time clock was set after the program read it for the mark, the converted time is wrong by that
        // change.
        let of_real = |ns: u64| (now.0).checked_sub(real.checked_sub(ns)?);
        let named = match line.t {
            Some(t) => self.clocks.of_program(line.pid, t, self.start, now),
            None => line.real.and_then(of_real),
        };
        let at = named
            .filter(|at| (self.start.0..=now.0).contains(at))
            .ok_or(Refused::Time)?;
        let Some(ago) = time.0.checked_sub(at) else {
            return Ok(None);
        };
        let text = |text: Option<Cow<str>>| text.map_or(Box::default(), |text| bytes(&text));
        let id = line.id.map(|id| match id {
            Id::Number(number) => number.to_string().into(),
            Id::Text(text) => text,
        });
        let mark = Mark {
            name: bytes(&line.name),
            point,
            ago,
            kind: text(line.kind),
            result: text(line.result),
            id: text(id),
            pid: line.pid.map(Tid),
            tid: line.tid.map(Tid),
        };
        Ok(Some(recorder(time, LifeKind::Mark(mark))))
    }
}

fn bytes(text: &str) -> Box<[u8]> {
    text.as_bytes().into()
}

#[cfg(test)]
#[path = "tests/marks.rs"]
mod tests;
