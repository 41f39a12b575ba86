//! The destination of the trace: a file that appears with a complete header, a fifo or
//! device, or standard output.

use std::fs::{File, Metadata, OpenOptions};
use std::io::{self, Write};
use std::os::fd::{AsFd, AsRawFd};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use crate::identity;

/// The output that the user chose.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Target {
    /// A file.
    File(PathBuf),
    /// Standard output.
    Stdout,
}

/// A file without a name, or with a hidden one where the file system has no O_TMPFILE.
/// It gets its name with a complete header, so that no reader meets half a header and two
/// recordings never mix.
#[derive(Debug)]
pub struct Unnamed {
    file: File,
    hidden: Option<PathBuf>,
    path: PathBuf,
}

/// An unpredictable name in the directory of `path`.
fn hidden(path: &Path) -> io::Result<PathBuf> {
    use std::hash::{BuildHasher, Hasher, RandomState};
    let mut name = std::ffi::OsString::from(".");
    name.push(path.file_name().ok_or(io::ErrorKind::IsADirectory)?);
    name.push(format!(
        ".{:016x}.tmp",
        RandomState::new().build_hasher().finish()
    ));
    Ok(path.with_file_name(name))
}

impl Unnamed {
    /// Gives the file its name.
    ///
    /// # Errors
    /// The directory refuses the name.
    pub fn publish(mut self) -> io::Result<()> {
        let hidden = match self.hidden.take() {
            Some(hidden) => hidden,
            None => {
                let hidden = hidden(&self.path)?;
                nix::unistd::linkat(
                    nix::fcntl::AT_FDCWD,
                    format!("/proc/self/fd/{}", self.file.as_raw_fd()).as_str(),
                    nix::fcntl::AT_FDCWD,
                    &hidden,
                    nix::fcntl::AtFlags::AT_SYMLINK_FOLLOW,
                )?;
                hidden
            }
        };
        std::fs::rename(&hidden, &self.path).inspect_err(|_| {
            let _ = std::fs::remove_file(&hidden);
        })
    }
}

impl Drop for Unnamed {
    fn drop(&mut self) {
        if let Some(hidden) = &self.hidden {
            let _ = std::fs::remove_file(hidden);
        }
    }
}

/// Opens a fifo or a device as it is. A regular file is replaced, and so is a link of
/// another user: it is not followed.
fn create(path: &Path) -> io::Result<(File, Option<Unnamed>)> {
    let mut options = OpenOptions::new();
    options.write(true).mode(0o600);
    let is_special = |meta: &Metadata| !meta.is_file();
    match std::fs::symlink_metadata(path) {
        Ok(link) if link.is_symlink() => {
            // /dev/stdout, /dev/fd/3 and the user's own links.
            let trusted = [0, nix::unistd::Uid::effective().as_raw()].contains(&link.uid());
            if trusted && std::fs::metadata(path).is_ok_and(|meta| is_special(&meta)) {
                return Ok((options.open(path)?, None));
            }
        }
        Ok(meta) if is_special(&meta) => {
            let file = options.custom_flags(libc::O_NOFOLLOW).open(path)?;
            return Ok((file, None));
        }
        _ => {}
    }
    let hidden = hidden(path)?;
    let directory = match path.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent,
        _ => Path::new("."),
    };
    let (file, hidden) = match options.custom_flags(libc::O_TMPFILE).open(directory) {
        Ok(file) => (file, None),
        // create_new does not follow a link either.
        Err(_) => {
            let file = options.custom_flags(0).create_new(true).open(&hidden)?;
            (file, Some(hidden))
        }
    };
    if let Some((user, group)) = identity::invoking_user() {
        // A file system without owners refuses; the file is written all the same.
        let _ = nix::unistd::fchown(&file, Some(user), Some(group));
    }
    let unnamed = Unnamed {
        file: file.try_clone()?,
        hidden,
        path: path.to_owned(),
    };
    Ok((file, Some(unnamed)))
}

/// An open output, before the header is written.
pub struct Destination {
    /// The open file, device or pipe.
    pub out: Box<dyn Write + Send>,
    /// A regular file, which still has to get its name.
    pub unnamed: Option<Unnamed>,
}

impl Destination {
    /// Opens the output, before COMMAND runs.
    ///
    /// # Errors
    /// The output cannot be created or written.
    pub fn open(target: &Target) -> io::Result<Destination> {
        let (file, unnamed) = match target {
            Target::File(path) => create(path)?,
            // A copy of the descriptor: number 1 is COMMAND's.
            Target::Stdout => (io::stdout().as_fd().try_clone_to_owned()?.into(), None),
        };
        Ok(Destination {
            out: Box::new(file),
            unnamed,
        })
    }
}
