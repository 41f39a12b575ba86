//! Finds and opens the files of other tools that a user wants to import.

use std::io::Read;
use std::path::{Path, PathBuf};
use std::time::UNIX_EPOCH;

use tr_placing::spans::Spans;
use tr_placing::{File, ToolFile};

use crate::error::Error;
use crate::limits::FILE;
use crate::read;

/// The largest number of entries that are examined in a directory that the user names and in all its subdirectories.
const ENTRIES: usize = 100_000;

/// The largest number of levels of directories that are searched below a directory that the user names.
const DEPTH: usize = 16;

/// A file of another tool that was found and is to be imported.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ImportFile {
    pub path: PathBuf,
    /// Whether the user named the file itself, and not a directory that contains it.
    pub named: bool,
}

/// The files to import that were found for a path that the user named.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Files {
    /// The files to import, ordered by their paths.
    pub found: Vec<ImportFile>,
    /// The parts of the directory that were not searched for files to import.
    pub skipped: Skipped,
}

/// The numbers of places in a directory that were not searched for files to import, by reason.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Skipped {
    /// The number of symbolic links in the directory that were not followed although they have the name of a known
    /// tool's file or lead to a directory.
    pub links: u64,
    /// The number of directories that were not searched because they are too deep below the one that the user named.
    pub deep: u64,
    /// The number of directories that were not searched because they cannot be read.
    pub closed: u64,
    /// Whether the search for files in the directory ended early, because the directory has too many entries.
    pub more: bool,
}

impl Skipped {
    /// A sentence that says which parts of the directory were not searched; `None` if all parts were searched.
    pub fn words(&self) -> Option<String> {
        let mut parts = Vec::new();
        for (count, what) in [
            (self.links, "symbolic links"),
            (self.deep, "directories more than 16 deep"),
            (self.closed, "directories that cannot be read"),
        ] {
            if count > 0 {
                parts.push(format!("{count} {what}"));
            }
        }
        if self.more {
            parts.push(format!("all after the first {ENTRIES} entries"));
        }
        (!parts.is_empty()).then(|| format!("skipped: {}", parts.join(", ")))
    }
}

/// Finds the files to import for a path: the file itself, or those files in a directory that are
/// named like files of known tools. Hidden directories (`.git`) are left out.
///
/// # Errors
/// The path cannot be read, or is neither a file nor a directory.
pub fn find(path: &Path) -> Result<Files, Error> {
    let meta = std::fs::metadata(path)?;
    let mut files = Files::default();
    if meta.is_file() {
        let path = path.to_owned();
        files.found.push(ImportFile { path, named: true });
        return Ok(files);
    }
    if !meta.is_dir() {
        return Err(Error::NoFile);
    }
    std::fs::read_dir(path)?;
    // The directory is searched level by level, so that a directory with too many entries lacks its deepest files.
    let (mut level, mut room) = (vec![path.to_owned()], ENTRIES);
    for depth in 0.. {
        let mut below = Vec::new();
        for directory in std::mem::take(&mut level) {
            look(&directory, &mut room, &mut files, &mut below);
        }
        below.sort_unstable();
        if depth == DEPTH {
            files.skipped.deep = below.len() as u64;
        }
        if depth == DEPTH || below.is_empty() {
            break;
        }
        level = below;
    }
    files.found.sort_unstable_by(|a, b| a.path.cmp(&b.path));
    Ok(files)
}

/// Adds the files of a directory that are named like files of known tools to `files`, and the
/// directory's subdirectories to `below`.
fn look(directory: &Path, room: &mut usize, files: &mut Files, below: &mut Vec<PathBuf>) {
    let Ok(entries) = std::fs::read_dir(directory) else {
        files.skipped.closed += 1;
        return;
    };
    for entry in entries.flatten() {
        let Some(left) = room.checked_sub(1) else {
            files.skipped.more = true;
            return;
        };
        *room = left;
        let (path, Ok(kind)) = (entry.path(), entry.file_type()) else {
            continue;
        };
        let hidden = entry.file_name().as_encoded_bytes().starts_with(b".");
        if kind.is_symlink() {
            files.skipped.links += u64::from(is_known(&path) || path.is_dir());
        } else if kind.is_dir() && !hidden {
            below.push(path);
        } else if kind.is_file() && is_known(&path) {
            files.found.push(ImportFile { path, named: false });
        }
    }
}

/// Whether a file is named like a file of a known tool. Only `cargo-timing.html` counts of cargo's timing pages: it
/// has the content of the latest page, whose own name contains the time of the build.
fn is_known(path: &Path) -> bool {
    let name = path.file_name().unwrap_or_default().as_encoded_bytes();
    // BitBake names the files after its tasks, such as `do_compile`.
    let is_task = name.starts_with(b"do_") && !name.contains(&b'.');
    let ends = [
        ".json",
        ".jsonl",
        ".json.gz",
        ".xml",
        ".time-trace",
        ".profile.gz",
    ];
    is_task
        || name == b".ninja_log"
        || name == b"cargo-timing.html"
        || ends.iter().any(|end| name.ends_with(end.as_bytes()))
}

/// Opens and reads a file to import. `room` is the number of bytes that may still be read for all files together; the
/// size of the file is subtracted from it. For a file in an unknown format that was found in a directory, the function
/// returns `Ok(None)` and subtracts nothing.
///
/// # Errors
/// The file cannot be read, is larger than a limit, is damaged, or was named by the user and is of no known tool.
pub fn open(found: &ImportFile, room: &mut u64) -> Result<Option<ToolFile>, Error> {
    let bytes = bytes(found, *room)?;
    let Some(file) = read(&bytes)? else {
        return if found.named {
            Err(Error::Unknown)
        } else {
            Ok(None)
        };
    };
    *room -= bytes.len() as u64;
    let written = std::fs::metadata(&found.path).and_then(|meta| meta.modified());
    let written = written
        .ok()
        .and_then(|time| time.duration_since(UNIX_EPOCH).ok());
    Ok(Some(ToolFile {
        path: found.path.as_os_str().as_encoded_bytes().to_vec(),
        written: written.and_then(|since| i64::try_from(since.as_nanos()).ok()),
        file,
    }))
}

/// Adds an imported file to the files that were read. If it is one of many small files of one tool, each with a span
/// or two, it is merged with those that were added just before it, if their directories lie in the same directory. The
/// merged file is named after that common directory, two levels above the small files.
pub fn add(files: &mut Vec<ToolFile>, file: ToolFile) {
    let directory = |path: &[u8]| {
        let mut parts = path.rsplitn(3, |byte| *byte == b'/');
        parts.nth(2).unwrap_or_default().to_vec()
    };
    let File::Spans(Spans { is_part: true, .. }) = &file.file else {
        files.push(file);
        return;
    };
    let path = directory(&file.path);
    if let Some(last) = files.last_mut().filter(|last| last.path == path) {
        if let (File::Spans(all), File::Spans(part)) = (&mut last.file, file.file) {
            all.spans.extend(part.spans);
            all.note = all.note.take().or(part.note);
        }
        return;
    }
    files.push(ToolFile { path, ..file });
}

/// The bytes of a file to import, of which at most `room` may be read.
///
/// # Errors
/// The file cannot be read, or is larger than a limit.
pub fn bytes(found: &ImportFile, room: u64) -> Result<Vec<u8>, Error> {
    let file = std::fs::File::open(&found.path)?;
    let meta = file.metadata()?;
    if !meta.is_file() {
        return Err(Error::NoFile);
    }
    let limit = FILE.min(room);
    let too_large = |found| Error::Size { found, limit };
    if meta.len() > limit {
        return Err(too_large(meta.len()));
    }
    let mut bytes = Vec::new();
    file.take(limit + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > limit {
        return Err(too_large(bytes.len() as u64));
    }
    Ok(bytes)
}
