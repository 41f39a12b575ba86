//! A temporary file that takes what an analysis would otherwise keep in memory.

use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};

/// A temporary file without a name for parts of timelines that do not stay in memory. All analyses of a process may
/// share it: each written piece has its own place in the file, and no piece changes.
#[derive(Debug)]
pub struct Scratch {
    file: Mutex<File>,
    /// Whether reading a piece back from the temporary file has failed.
    failed: AtomicBool,
}

impl Scratch {
    /// Takes an empty file, opened for reading and writing, as the temporary file. Nobody else may write to it.
    pub fn new(file: File) -> Scratch {
        Scratch {
            file: Mutex::new(file),
            failed: AtomicBool::new(false),
        }
    }

    /// Whether a piece could not be read back from the temporary file, so that results are not complete.
    pub fn has_failed(&self) -> bool {
        self.failed.load(Ordering::Relaxed)
    }

    /// Writes a piece to the end of the temporary file. Returns the offset of the piece in the file.
    pub(crate) fn write(&self, piece: &[u8]) -> io::Result<u64> {
        let mut file = self.file.lock().unwrap_or_else(PoisonError::into_inner);
        let at = file.seek(SeekFrom::End(0))?;
        file.write_all(piece)?;
        Ok(at)
    }

    /// Reads bytes from the offset `at` of the temporary file into `to`. Returns `false` if that fails, which
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
