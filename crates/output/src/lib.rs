//! Opens the output of every subcommand, by one set of rules.
//!
//! A new file gets its name only when it is complete (a trace: when its header is complete), and then replaces a
//! regular file of that name. Standard output, pipes and devices are written directly. A link is followed, and a
//! device or pipe is opened, unless another user can have put it there (`place.rs`). Under sudo, the file belongs to
//! the user who called sudo.
//!
//! [`cgroups`] and [`status`] are here because the recorder and the command line both need them.

#![forbid(unsafe_code)]

pub mod cgroups;
mod place;
pub mod status;

use std::fs::{File, OpenOptions};
use std::io::{self, IsTerminal, Read, Write};
use std::os::fd::{AsFd, AsRawFd};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use nix::errno::Errno;
use nix::unistd::{Gid, Uid};
use rustix::fs::{flock, FlockOperation};

use place::{At, Identity, Place};

/// The place that the user chose for an output: a file or standard output.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Target {
    File(PathBuf),
    Stdout,
}

impl Target {
    /// The target that a path on the command line names: the file, or standard output for `-`.
    pub fn of(path: &Path) -> Target {
        if path.as_os_str() == "-" {
            Target::Stdout
        } else {
            Target::File(path.to_owned())
        }
    }
}

/// The properties of an output file that decide how it is opened.
#[derive(Clone, Copy, Debug)]
pub struct Settings {
    /// The mode with which a new output file is created, before the umask is applied.
    pub mode: u32,
    /// Whether the output is binary, so that it is never written to a terminal.
    pub binary: bool,
    /// The kind of existing file that the output may replace; `None` allows every kind.
    pub replaces: Option<FileKind>,
    /// Whether a file that the output replaces is kept as NAME.old. Only a file of the kind `replaces` is kept.
    pub keeps: bool,
    /// Whether standard input, output and error were closed when the program started. Rust's runtime has opened
    /// /dev/null in their place.
    pub closed_streams: [bool; 3],
}

/// The number of bytes at the start of a file from which its kind can be determined.
pub const BEGINNING: usize = 64 << 10;

/// A kind of files that an output may replace, with the function that recognizes it.
#[derive(Clone, Copy, Debug)]
pub struct FileKind {
    /// The name of the kind of file, with an article, for messages.
    pub name: &'static str,
    /// The function that returns whether a file that begins with these bytes, [`BEGINNING`] at most, is of this kind.
    pub is: fn(&[u8]) -> bool,
}

/// The error that an existing file is not of the kind that an output may replace.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Foreign {
    /// The name, with an article, of the kind of file that the output may replace.
    pub wanted: &'static str,
}

impl std::fmt::Display for Foreign {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(
            f,
            "the existing file is not {}, so it was not replaced; --force replaces it",
            self.wanted
        )
    }
}

impl std::error::Error for Foreign {}

/// The error that standard output is a terminal, which cannot take a binary output.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Terminal;

impl std::fmt::Display for Terminal {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("standard output is a terminal")
    }
}

impl std::error::Error for Terminal {}

/// Whether an error comes from a mistake in the command line, and not from missing rights: the command line names an
/// output to which this program never writes, such as an existing file of another kind.
pub fn is_mistake(error: &io::Error) -> bool {
    error
        .get_ref()
        .is_some_and(|inner| inner.is::<Foreign>() || inner.is::<Terminal>())
}

/// Verifies that an output may replace the regular file at `path`, if there is one. Every output may replace
/// an empty file.
///
/// # Errors
/// [`Foreign`] if the file is of another kind, or the error of reading it.
fn may_replace(path: &Path, kind: Option<FileKind>) -> io::Result<()> {
    let Some(kind) = kind else { return Ok(()) };
    let mut beginning = Vec::new();
    match File::open(path) {
        Ok(file) => file.take(BEGINNING as u64).read_to_end(&mut beginning)?,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        Err(error) => return Err(error),
    };
    if beginning.is_empty() || (kind.is)(&beginning) {
        Ok(())
    } else {
        Err(io::Error::other(Foreign { wanted: kind.name }))
    }
}

/// A new output file that has no name yet, or a hidden one where the file system lacks O_TMPFILE.
#[derive(Debug)]
struct Unnamed {
    file: File,
    hidden: Option<PathBuf>,
    at: At,
    /// The kind of replaced files that are kept as NAME.old; `None` if no replaced file is kept.
    keeps: Option<FileKind>,
}

/// A hidden name in the directory of an output, for a file that does not have its final name yet.
fn hidden(path: &Path, mark: &str) -> io::Result<PathBuf> {
    let mut name = std::ffi::OsString::from(".");
    name.push(path.file_name().ok_or(io::ErrorKind::IsADirectory)?);
    name.push(mark);
    name.push(".tmp");
    Ok(path.with_file_name(name))
}

/// A random part for the hidden name of an incomplete file, which nobody can predict.
fn mark() -> String {
    use std::hash::{BuildHasher, Hasher, RandomState};
    format!(".{:016x}", RandomState::new().build_hasher().finish())
}

impl Unnamed {
    fn link(&self, to: &Path) -> Result<(), Errno> {
        nix::unistd::linkat(
            nix::fcntl::AT_FDCWD,
            format!("/proc/self/fd/{}", self.file.as_raw_fd()).as_str(),
            nix::fcntl::AT_FDCWD,
            to,
            nix::fcntl::AtFlags::AT_SYMLINK_FOLLOW,
        )
    }

    /// Gives a finished output file its name. An existing file is replaced by two system calls, with a hidden name for
    /// 20 µs between them. If the program is killed in that time, the hidden name remains until the next replacement.
    fn publish(mut self) -> io::Result<()> {
        let path = self.at.path();
        let hidden = match self.hidden.take() {
            Some(hidden) => hidden,
            None => match self.link(&path) {
                Ok(()) => return Ok(()),
                Err(Errno::EEXIST) => {
                    let hidden = hidden(&path, "")?;
                    match self.link(&hidden) {
                        Err(Errno::EEXIST) => {
                            std::fs::remove_file(&hidden)?;
                            self.link(&hidden)?;
                        }
                        linked => linked?,
                    }
                    hidden
                }
                Err(errno) => return Err(errno.into()),
            },
        };
        if let Some(kind) = self.keeps {
            keep(&path, kind);
        }
        std::fs::rename(&hidden, &path).inspect_err(|_| {
            let _ = std::fs::remove_file(&hidden);
        })
    }
}

/// Renames a file to NAME.old, if the file is not empty and NAME.old is not a file of another kind.
/// If the renaming fails, the file is replaced without being kept.
fn keep(path: &Path, kind: FileKind) {
    let mut old = path.as_os_str().to_owned();
    old.push(".old");
    let old = PathBuf::from(old);
    let free = match std::fs::symlink_metadata(&old) {
        Ok(meta) => meta.is_file() && may_replace(&old, Some(kind)).is_ok(),
        Err(_) => true,
    };
    if free && std::fs::metadata(path).is_ok_and(|meta| meta.len() > 0) {
        let _ = std::fs::rename(path, old);
    }
}

impl Drop for Unnamed {
    fn drop(&mut self) {
        if let Some(hidden) = &self.hidden {
            let _ = std::fs::remove_file(hidden);
        }
    }
}

/// An output that is a fifo. The first write opens the fifo and waits for a reader.
#[derive(Debug)]
struct Fifo {
    at: At,
    place: Identity,
    file: Option<File>,
}

impl Fifo {
    fn file(&mut self) -> io::Result<&mut File> {
        if self.file.is_none() {
            self.file = Some(existing(&self.at, self.place)?);
        }
        self.file.as_mut().ok_or_else(|| Errno::EBADF.into())
    }
}

/// Opens an existing device, fifo or socket as an output. The opened file must be the same one that was checked before.
fn existing(at: &At, place: Identity) -> io::Result<File> {
    let flags = libc::O_NOFOLLOW | libc::O_NOCTTY;
    let file = OpenOptions::new()
        .write(true)
        .custom_flags(flags)
        .open(at.path())?;
    if Identity::of(&file.metadata()?) == place {
        Ok(file)
    } else {
        Err(io::Error::other(
            "another file took its place while it was being opened",
        ))
    }
}

#[derive(Debug)]
enum Out {
    File(File),
    Fifo(Fifo),
}

#[derive(Debug)]
pub struct Destination {
    out: Out,
    unnamed: Option<Unnamed>,
}

/// Whether the process that writes a file is still running. As long as that process runs, it holds the lock of
/// [`Destination::lock`].
pub fn is_written(file: File) -> bool {
    match flock(&file, FlockOperation::NonBlockingLockShared) {
        Ok(()) => {
            // The lock is released, because otherwise the reader's descriptor would keep the file locked.
            let _ = flock(&file, FlockOperation::Unlock);
            false
        }
        Err(errno) => errno == rustix::io::Errno::WOULDBLOCK,
    }
}

/// Locks an open file, or a directory (flock(2)), until all descriptors of this open file are closed.
///
/// # Errors
/// Another process holds the lock, or the file system has no locks.
pub fn lock(file: &File) -> io::Result<()> {
    Ok(flock(file, FlockOperation::NonBlockingLockExclusive)?)
}

/// An output file that is completely written, but still has to get its name.
#[derive(Debug)]
pub struct Publish(Option<Unnamed>);

impl Publish {
    /// Gives the finished output file its name, and replaces an existing regular file of that name. If this is never
    /// called, no file remains.
    ///
    /// # Errors
    ///
    /// The directory refuses the name.
    pub fn publish(self) -> io::Result<()> {
        self.0.map_or(Ok(()), Unnamed::publish)
    }

    /// Whether the output is a new file, so that writing never blocks until a reader has read.
    pub fn is_file(&self) -> bool {
        self.0.is_some()
    }
}

impl Destination {
    /// Opens the output that the user chose. A fifo is opened by the first write, which waits for a reader.
    ///
    /// # Errors
    ///
    /// The output cannot be created or written, or its path leads through a link, device or fifo that another user
    /// can have put there.
    pub fn open(target: &Target, settings: &Settings) -> io::Result<Destination> {
        match target {
            Target::Stdout => Ok(stream(1, settings)?.into()),
            Target::File(path) => match place::of(path)? {
                Place::File(at) => create(at, settings),
                Place::Special(at, place) if place.is_fifo => Ok(Destination {
                    out: Out::Fifo(Fifo {
                        at,
                        place,
                        file: None,
                    }),
                    unnamed: None,
                }),
                Place::Special(at, place) => Ok(existing(&at, place)?.into()),
                Place::Descriptor(_, Some(number @ 0..=2)) => Ok(stream(number, settings)?.into()),
                // The path names an open file of a process, for example the one of a shell's `7>file`.
                Place::Descriptor(path, _) => {
                    Ok(OpenOptions::new().append(true).open(path)?.into())
                }
            },
        }
    }

    /// Locks a new file (flock(2)) while it is open, so that [`is_written`] sees that its writer is
    /// running. On a file system without locks, only [`is_written`] stops working.
    pub fn lock(&self) {
        let Out::File(file) = &self.out else { return };
        if self.unnamed.is_some() {
            let _ = lock(file);
        }
    }

    /// Splits the output into the part that takes the bytes and the part that names the file at the end.
    pub fn split(mut self) -> (impl Write + Send + 'static, Publish) {
        let unnamed = Publish(self.unnamed.take());
        (self, unnamed)
    }
}

impl From<File> for Destination {
    fn from(file: File) -> Destination {
        Destination {
            out: Out::File(file),
            unnamed: None,
        }
    }
}

impl Write for Destination {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match &mut self.out {
            Out::File(file) => file.write(bytes),
            Out::Fifo(fifo) => fifo.file()?.write(bytes),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// A copy of the descriptor of a standard stream. The stream's own number stays free for COMMAND.
fn stream(number: i32, settings: &Settings) -> io::Result<File> {
    let index = usize::try_from(number).unwrap_or(0);
    if settings
        .closed_streams
        .get(index)
        .is_some_and(|closed| *closed)
    {
        return Err(Errno::EBADF.into());
    }
    let (copy, terminal) = match number {
        0 => (
            io::stdin().as_fd().try_clone_to_owned()?,
            io::stdin().is_terminal(),
        ),
        1 => (
            io::stdout().as_fd().try_clone_to_owned()?,
            io::stdout().is_terminal(),
        ),
        _ => (
            io::stderr().as_fd().try_clone_to_owned()?,
            io::stderr().is_terminal(),
        ),
    };
    if terminal && settings.binary {
        return Err(io::Error::other(Terminal));
    }
    Ok(copy.into())
}

/// Creates an output file. When it is complete, it replaces an existing file of that name.
fn create(at: At, settings: &Settings) -> io::Result<Destination> {
    may_replace(&at.path(), settings.replaces)?;
    let mut options = OpenOptions::new();
    options.write(true).mode(settings.mode);
    let hidden = hidden(&at.path(), &mark())?;
    let unnamed = options.custom_flags(libc::O_TMPFILE).open(at.directory());
    let (file, hidden) = match unnamed {
        Ok(file) => (file, None),
        // The file system lacks O_TMPFILE, so the file gets a hidden name. `create_new` does not follow a link with
        // that name.
        Err(_) => {
            let file = options.custom_flags(0).create_new(true).open(&hidden)?;
            (file, Some(hidden))
        }
    };
    if let Some((user, group)) = invoking_user() {
        // A file system without owners refuses to change the owner. The file is written all the same.
        let _ = nix::unistd::fchown(&file, Some(user), Some(group));
    }
    let unnamed = Unnamed {
        file: file.try_clone()?,
        hidden,
        at,
        keeps: settings.replaces.filter(|_| settings.keeps),
    };
    Ok(Destination {
        out: Out::File(file),
        unnamed: Some(unnamed),
    })
}

/// Writes a whole output before the file gets its name, so that `target` can be the file that `write` reads.
///
/// # Errors
///
/// The errors of `write`, and of opening or naming the output.
pub fn whole<T, E: From<io::Error>>(
    target: &Target,
    settings: &Settings,
    write: impl FnOnce(&mut Destination) -> Result<T, E>,
) -> Result<T, E> {
    let mut destination = Destination::open(target, settings)?;
    let result = write(&mut destination)?;
    Publish(destination.unnamed.take()).publish()?;
    Ok(result)
}

/// Creates a directory and its missing parents by the rules for outputs: a link that another user can have put there
/// is not followed.
///
/// # Errors
///
/// The directory cannot be created, or its path leads through a link that another user can have put there.
pub fn directories(path: &Path) -> io::Result<()> {
    place::walk(path, true).map(drop)
}

/// The user and the group that called sudo, to whom outputs belong; `None` without sudo, or if this process is not
/// root.
pub fn invoking_user() -> Option<(Uid, Gid)> {
    if !Uid::effective().is_root() {
        return None;
    }
    let number = |name: &str| std::env::var(name).ok()?.parse::<u32>().ok();
    Some((
        Uid::from_raw(number("SUDO_UID")?),
        Gid::from_raw(number("SUDO_GID")?),
    ))
}

/// The mode of an output file that is derived from the file `input`: all rights to read and write that `input` gives,
/// and those of the owner. Only the owner has rights if `input` is no regular file.
pub fn mode_like(input: &Path) -> u32 {
    match std::fs::metadata(input) {
        Ok(meta) if meta.is_file() => meta.mode() & 0o666 | 0o600,
        _ => 0o600,
    }
}

#[cfg(test)]
#[path = "tests.rs"]
mod tests;
