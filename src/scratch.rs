//! Keeps the temporary file in which an analysis stores the timeline of a large recording instead of keeping it in
//! memory.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use nix::sys::resource::{getrlimit, Resource, RLIM_INFINITY};
use nix::sys::statfs::{fstatfs, FsType, TMPFS_MAGIC};
use tr_analyze::scratch::Scratch;

/// A recording in a regular file of at most this size in bytes needs no temporary file for its timeline.
const BYTES: u64 = 1 << 20;
/// The smallest number of events of a recording that gets a temporary file for its timeline.
const EVENTS: u64 = 2_000_000;

static SCRATCH: OnceLock<Option<Scratch>> = OnceLock::new();

/// Opens the temporary file for timelines, if any recording among `recordings` is large enough to need it. This must
/// happen before the process gives up access to other files.
pub fn open_for(recordings: &[&Path]) {
    let is_large = |path: &&Path| {
        let meta = std::fs::metadata(path);
        meta.is_ok_and(|meta| !meta.is_file() || meta.len() > BYTES)
    };
    if recordings.iter().any(is_large) {
        get();
    }
}

/// The temporary file for the timeline of a recording with this many events; `None` if the recording is small enough
/// for memory, or if no file could be opened.
pub fn of(events: u64) -> Option<&'static Scratch> {
    if events < EVENTS {
        return None;
    }
    get()
}

/// Whether reading facts back from the temporary file failed, so that the output is wrong.
pub fn has_failed() -> bool {
    let scratch = SCRATCH.get().and_then(Option::as_ref);
    scratch.is_some_and(Scratch::has_failed)
}

fn get() -> Option<&'static Scratch> {
    SCRATCH.get_or_init(|| open().map(Scratch::new)).as_ref()
}

/// Opens a temporary file without a name, in TMPDIR, /var/tmp or /tmp. A file in memory (tmpfs) is not used, because
/// it would save no memory.
fn open() -> Option<File> {
    // If the size of files is limited, a write beyond the limit would end the process by a signal, so no file is used.
    let (limit, _) = getrlimit(Resource::RLIMIT_FSIZE).ok()?;
    if limit != RLIM_INFINITY {
        return None;
    }
    let given = std::env::var_os("TMPDIR").filter(|dir| !dir.is_empty());
    let places = match given {
        Some(dir) => vec![PathBuf::from(dir)],
        None => vec!["/var/tmp".into(), "/tmp".into()],
    };
    let files = places
        .into_iter()
        .filter_map(|dir| tempfile::tempfile_in(dir).ok());
    let mut stored = files.filter(|file| !is_in_memory(file));
    stored.next()
}

fn is_in_memory(file: &File) -> bool {
    const RAMFS_MAGIC: FsType = FsType(0x8584_58f6);
    let kind = fstatfs(file).map(|found| found.filesystem_type());
    kind.is_ok_and(|kind| kind == TMPFS_MAGIC || kind == RAMFS_MAGIC)
}
