//! The place of an output: what the name stands for, and whether another user can have put
//! it there.

use std::fs::Metadata;
use std::io;
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::{Path, PathBuf};

use nix::sys::statfs::{statfs, PROC_SUPER_MAGIC};
use nix::unistd::Uid;

/// The kernel's own bound of links in a row (path_resolution(7)).
const LINKS: usize = 40;

/// What an output's name stands for.
#[derive(Debug)]
pub enum Place {
    /// Nothing yet, or a regular file.
    File(PathBuf),
    /// A device, fifo or socket.
    Special(PathBuf, Identity),
    /// An open file of a process, through /proc; its number, if the process is this one.
    Descriptor(PathBuf, Option<i32>),
}

/// A file, whatever its name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Identity {
    device: u64,
    inode: u64,
    /// It is a fifo.
    pub is_fifo: bool,
}

impl Identity {
    /// Of a file's metadata.
    pub fn of(meta: &Metadata) -> Identity {
        Identity {
            device: meta.dev(),
            inode: meta.ino(),
            is_fifo: meta.file_type().is_fifo(),
        }
    }
}

/// The directory of a file.
pub fn directory(path: &Path) -> &Path {
    match path.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent,
        _ => Path::new("."),
    }
}

/// Follows the links of a name.
///
/// # Errors
/// A link, device or fifo that another user can have put there; a directory; a loop.
pub fn of(path: &Path) -> io::Result<Place> {
    let mut path = path.to_owned();
    for _ in 0..LINKS {
        let meta = match std::fs::symlink_metadata(&path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Place::File(path)),
            meta => meta?,
        };
        if meta.is_dir() {
            return Err(io::ErrorKind::IsADirectory.into());
        }
        if meta.is_file() {
            return Ok(Place::File(path));
        }
        let is_link = meta.is_symlink();
        if is_link
            && statfs(directory(&path)).is_ok_and(|fs| fs.filesystem_type() == PROC_SUPER_MAGIC)
        {
            let number = own_descriptor(&path);
            return Ok(Place::Descriptor(path, number));
        }
        let trusted = trusted(meta.uid());
        if !trusted && writable_by_others(directory(&path))? {
            let what = if is_link { "link" } else { "device or fifo" };
            return Err(io::Error::other(format!(
                "{} is a {what} of user {} in a directory that others can write",
                path.display(),
                meta.uid()
            )));
        }
        if !is_link {
            return Ok(Place::Special(path, Identity::of(&meta)));
        }
        path = directory(&path).join(std::fs::read_link(&path)?);
    }
    Err(nix::errno::Errno::ELOOP.into())
}

/// Root, this user, or the user that called sudo.
fn trusted(user: u32) -> bool {
    let own = Uid::effective().as_raw();
    let invoking = crate::invoking_user().map(|(user, _)| user.as_raw());
    user == 0 || user == own || Some(user) == invoking
}

fn writable_by_others(directory: &Path) -> io::Result<bool> {
    let meta = std::fs::metadata(directory)?;
    Ok(!trusted(meta.uid()) || meta.mode() & 0o022 != 0)
}

/// The number of this process's descriptor that a link in /proc stands for.
fn own_descriptor(path: &Path) -> Option<i32> {
    let directory = std::fs::canonicalize(directory(path)).ok()?;
    let own = Path::new("/proc").join(std::process::id().to_string());
    let number = path.file_name()?.to_str()?.parse().ok()?;
    (directory == own.join("fd")).then_some(number)
}
