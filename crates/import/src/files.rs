//! Finds and opens the files that a user names.

use std::io::Read;
use std::path::{Path, PathBuf};

use crate::{read, Error, File, FILE};

/// The most entries of a directory that are looked at.
const ENTRIES: usize = 100_000;

/// A file to read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Found {
    /// Its path.
    pub path: PathBuf,
    /// The user named the file itself, not its directory.
    pub named: bool,
}

/// The files that a path stands for: the file, or the files of a directory with the names of
/// known tools' files, in the order of their names.
///
/// # Errors
/// The path cannot be read, or is neither a file nor a directory.
pub fn find(path: &Path) -> Result<Vec<Found>, Error> {
    let meta = std::fs::metadata(path)?;
    if meta.is_file() {
        let path = path.to_owned();
        return Ok(vec![Found { path, named: true }]);
    }
    if !meta.is_dir() {
        return Err(Error::NoFile);
    }
    let mut found = Vec::new();
    for entry in std::fs::read_dir(path)?.take(ENTRIES) {
        let path = entry?.path();
        if is_known(&path) && path.is_file() {
            found.push(Found { path, named: false });
        }
    }
    found.sort_by(|a, b| a.path.cmp(&b.path));
    Ok(found)
}

/// Its name is that of a known tool's file. cargo links its last page to `cargo-timing.html`.
fn is_known(path: &Path) -> bool {
    let name = path.file_name().unwrap_or_default().as_encoded_bytes();
    let ends = [".json", ".xml", ".time-trace"];
    name == b".ninja_log"
        || name == b"cargo-timing.html"
        || ends.iter().any(|end| name.ends_with(end.as_bytes()))
}

/// Opens and reads a file of at most `room` bytes, which is less afterwards. `Ok(None)`: a directory has it, and it is of no known tool.
///
/// # Errors
/// It cannot be read, is larger than a limit, damaged, or named and of no known tool.
pub fn open(found: &Found, room: &mut u64) -> Result<Option<File>, Error> {
    let file = std::fs::File::open(&found.path)?;
    let meta = file.metadata()?;
    if !meta.is_file() {
        return Err(Error::NoFile);
    }
    let limit = FILE.min(*room);
    let too_large = |found| Error::Size { found, limit };
    if meta.len() > limit {
        return Err(too_large(meta.len()));
    }
    let mut bytes = Vec::new();
    file.take(limit + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > limit {
        return Err(too_large(bytes.len() as u64));
    }
    *room -= bytes.len() as u64;
    match read(&bytes)? {
        None if found.named => Err(Error::Unknown),
        file => Ok(file),
    }
}
