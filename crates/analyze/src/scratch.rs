//! A temporary file that takes what an analysis would otherwise keep in memory.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

/// A temporary file without a name. All analyses of a process may share it: each piece gets a place of its own, and no
/// piece changes.
#[derive(Debug)]
pub struct Scratch {
    file: File,
    /// The end of the last piece.
    end: AtomicU64,
    /// Whether a piece could not be read back.
    failed: AtomicBool,
}

impl Scratch {
    /// An empty file, opened for reading and writing. Nobody else may write to it.
    pub fn new(file: File) -> Scratch {
        Scratch {
            file,
            end: AtomicU64::new(0),
            failed: AtomicBool::new(false),
        }
    }

    /// Whether a piece could not be read back, so that results are not complete.
    pub fn has_failed(&self) -> bool {
        self.failed.load(Ordering::Relaxed)
    }

    /// Writes a piece, and returns its place.
    pub(crate) fn write(&self, piece: &[u8]) -> io::Result<u64> {
        let at = self.end.fetch_add(piece.len() as u64, Ordering::Relaxed);
        self.file.write_all_at(piece, at)?;
        Ok(at)
    }

    /// Reads from the inside of a piece. Returns `false` if that fails, which [`Scratch::has_failed`] reports from then on.
    pub(crate) fn read(&self, at: u64, to: &mut [u8]) -> bool {
        let read = self.file.read_exact_at(to, at);
        if read.is_err() {
            self.failed.store(true, Ordering::Relaxed);
        }
        read.is_ok()
    }
}
