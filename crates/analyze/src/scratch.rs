//! A temporary file that takes what an analysis would otherwise keep in memory.

use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};

/// A temporary file without a name. All analyses of a process may share it: each piece gets a place of its own, and no
/// piece changes.
#[derive(Debug)]
pub struct Scratch {
    file: Mutex<File>,
    /// Whether a piece could not be read back from the file.
    failed: AtomicBool,
}

impl Scratch {
    /// An empty file, opened for reading and writing. Nobody else may write to it.
    pub fn new(file: File) -> Scratch {
        Scratch {
            file: Mutex::new(file),
            failed: AtomicBool::new(false),
        }
    }

    /// Whether a piece could not be read back, so that results are not complete.
    pub fn has_failed(&self) -> bool {
        self.failed.load(Ordering::Relaxed)
    }

    /// Writes a piece to the end of the file. Returns its place.
    pub(crate) fn write(&self, piece: &[u8]) -> io::Result<u64> {
        let mut file = self.file.lock().unwrap_or_else(PoisonError::into_inner);
        let at = file.seek(SeekFrom::End(0))?;
        file.write_all(piece)?;
        Ok(at)
    }

    /// Reads a part of a piece, which begins at the place `at`. Returns `false` if that fails, which
    /// [`Scratch::has_failed`] reports from then on.
    pub(crate) fn read(&self, at: u64, to: &mut [u8]) -> bool {
        let mut file = self.file.lock().unwrap_or_else(PoisonError::into_inner);
        let read = file
            .seek(SeekFrom::Start(at))
            .and_then(|_| file.read_exact(to));
        if read.is_err() {
            self.failed.store(true, Ordering::Relaxed);
        }
        read.is_ok()
    }
}
