//! Finds the place of an output: the file that a name refers to, and whether another user can have put it
//! there. Directories are opened one by one, and their files are named by the directories' descriptors, so
//! nobody can replace a name between its check and its use.

use std::collections::VecDeque;
use std::ffi::{OsStr, OsString};
use std::fs::{File, Metadata};
use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::{Component, Path, PathBuf};

use nix::errno::Errno;
use nix::fcntl::{open, openat, OFlag};
use nix::sys::stat::{mkdirat, Mode};
use nix::sys::statfs::{fstatfs, PROC_SUPER_MAGIC};
use nix::unistd::Uid;

/// The kernel's limit of links that one path may lead through (path_resolution(7)).
const LINKS: usize = 40;

/// An open directory, and the name of a file in it, which need not exist yet.
#[derive(Debug)]
pub struct At {
    directory: OwnedFd,
    /// The directory's path as it was named. It is used where /proc is not mounted.
    shown: PathBuf,
    name: OsString,
}

impl At {
    /// A path to the file of this name that stays valid when the directory is renamed.
    pub fn path(&self) -> PathBuf {
        self.directory().join(&self.name)
    }

    /// A path to the directory that stays valid when the directory is renamed. Where /proc is not mounted, the path is
    /// only the directory's name.
    pub fn directory(&self) -> PathBuf {
        let open = PathBuf::from(format!("/proc/self/fd/{}", self.directory.as_raw_fd()));
        if open.is_dir() {
            open
        } else {
            self.shown.clone()
        }
    }
}

/// The file that an output's name refers to.
#[derive(Debug)]
pub enum Place {
    /// The output's name is free, or is the name of a regular file.
    File(At),
    /// The output's name is the name of a device, fifo or socket.
    Special(At, Identity),
    /// The output's name is a path in /proc to an open file of a process. If that process is this one, the number is
    /// the file's descriptor.
    Descriptor(PathBuf, Option<i32>),
}

/// The identity of a file (device and inode), which does not depend on the file's name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Identity {
    device: u64,
    inode: u64,
    /// Whether the identified file is a fifo.
    pub is_fifo: bool,
}

impl Identity {
    /// The identity of the file to which this metadata (from stat) belongs.
    pub fn of(meta: &Metadata) -> Identity {
        Identity {
            device: meta.dev(),
            inode: meta.ino(),
            is_fifo: meta.file_type().is_fifo(),
        }
    }
}

/// The directory that a file's path is in.
pub fn directory(path: &Path) -> &Path {
    match path.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent,
        _ => Path::new("."),
    }
}

/// Follows the links of a name to the file that it refers to.
///
/// # Errors
/// A link, device or fifo that another user can have put there; a directory; a loop.
pub fn of(path: &Path) -> io::Result<Place> {
    let mut path = path.to_owned();
    for _ in 0..LINKS {
        let name = path.file_name().ok_or(io::ErrorKind::IsADirectory)?;
        let at = At {
            directory: walk(directory(&path), false)?,
            shown: directory(&path).to_owned(),
            name: name.to_owned(),
        };
        let meta = match std::fs::symlink_metadata(at.path()) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Place::File(at)),
            meta => meta?,
        };
        if meta.is_dir() {
            return Err(io::ErrorKind::IsADirectory.into());
        }
        if meta.is_file() {
            return Ok(Place::File(at));
        }
        let is_link = meta.is_symlink();
        if is_link && is_of_proc(&at.directory) {
            let number = own_descriptor(&path);
            return Ok(Place::Descriptor(path, number));
        }
        check(&at.directory, &meta, &path)?;
        if !is_link {
            return Ok(Place::Special(at, Identity::of(&meta)));
        }
        path = directory(&path).join(std::fs::read_link(at.path())?);
    }
    Err(Errno::ELOOP.into())
}

/// Refuses a link, device or fifo that belongs to a user who is not [`trusted`], if its directory can be written by
/// others or belongs to such a user.
fn check(directory: &OwnedFd, meta: &Metadata, shown: &Path) -> io::Result<()> {
    if trusted(meta.uid()) || !writable_by_others(directory)? {
        return Ok(());
    }
    let what = if meta.is_symlink() {
        "link"
    } else {
        "device or fifo"
    };
    Err(io::Error::other(format!(
        "{} is a {what} of user {} in a directory that others can write",
        shown.display(),
        meta.uid()
    )))
}

/// Opens a directory step by step: each directory of its path is opened, and its links are followed by the
/// rules for outputs. With `create`, missing directories are created.
///
/// # Errors
///
/// A link that another user can have put there, a loop of links, or an error of the kernel.
pub fn walk(path: &Path, create: bool) -> io::Result<OwnedFd> {
    let parts = |path: &Path| -> VecDeque<OsString> {
        let parts = path.components().map(|part| part.as_os_str().to_owned());
        parts.collect()
    };
    let (mut left, mut links) = (parts(path), 0);
    let mut shown = PathBuf::new();
    let flags = OFlag::O_PATH | OFlag::O_DIRECTORY | OFlag::O_CLOEXEC;
    let mut now = open(".", flags, Mode::empty())?;
    while let Some(part) = left.pop_front() {
        if Component::RootDir.as_os_str() == part {
            (now, shown) = (open("/", flags, Mode::empty())?, "/".into());
            continue;
        }
        shown.push(&part);
        let name: &OsStr = &part;
        let deeper = match openat(&now, name, flags | OFlag::O_NOFOLLOW, Mode::empty()) {
            Err(Errno::ENOENT) if create => {
                match mkdirat(&now, name, Mode::from_bits_truncate(0o777)) {
                    Ok(()) | Err(Errno::EEXIST) => {}
                    Err(errno) => return Err(errno.into()),
                }
                openat(&now, name, flags | OFlag::O_NOFOLLOW, Mode::empty())
            }
            opened => opened,
        };
        now = match deeper {
            Ok(deeper) => deeper,
            // The name is a link in /proc to an open directory, such as /dev/fd/7. Such a link is always followed.
            Err(Errno::ENOTDIR | Errno::ELOOP) if is_of_proc(&now) => {
                openat(&now, name, flags, Mode::empty())?
            }
            Err(errno @ (Errno::ENOTDIR | Errno::ELOOP)) => {
                let link = openat(
                    &now,
                    name,
                    OFlag::O_PATH | OFlag::O_NOFOLLOW | OFlag::O_CLOEXEC,
                    Mode::empty(),
                )?;
                let link = File::from(link);
                let meta = link.metadata()?;
                links += 1;
                if !meta.is_symlink() || links > LINKS {
                    return Err(errno.into());
                }
                check(&now, &meta, &shown)?;
                let target = nix::fcntl::readlinkat(&link, "")?;
                shown.pop();
                let mut target = parts(Path::new(&target));
                target.append(&mut left);
                left = target;
                continue;
            }
            Err(errno) => return Err(errno.into()),
        };
    }
    Ok(now)
}

fn is_of_proc(directory: &OwnedFd) -> bool {
    fstatfs(directory).is_ok_and(|fs| fs.filesystem_type() == PROC_SUPER_MAGIC)
}

/// Whether links and files of a user are trusted: the user is root, this process's user, or the user that called sudo.
fn trusted(user: u32) -> bool {
    let own = Uid::effective().as_raw();
    let invoking = crate::invoking_user().map(|(user, _)| user.as_raw());
    user == 0 || user == own || Some(user) == invoking
}

fn writable_by_others(directory: &OwnedFd) -> io::Result<bool> {
    let meta = File::from(directory.try_clone()?).metadata()?;
    Ok(!trusted(meta.uid()) || meta.mode() & 0o022 != 0)
}

/// The number of the descriptor of this process that a link in /proc refers to; `None` for other paths.
fn own_descriptor(path: &Path) -> Option<i32> {
    let directory = std::fs::canonicalize(directory(path)).ok()?;
    let own = Path::new("/proc").join(std::process::id().to_string());
    let number = path.file_name()?.to_str()?.parse().ok()?;
    (directory == own.join("fd")).then_some(number)
}
