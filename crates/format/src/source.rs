//! Where a trace's bytes come from.

use std::fs::File;
use std::io::Read;
use std::os::unix::fs::FileExt;

use crate::Error;

/// Most bytes that are read from a pipe: what is not a file has to fit into
/// memory.
const MOST_PIPED: u64 = 16 << 30;

/// The bytes of a trace.
///
/// A file is read by position, not mapped: a file that shrinks while it is
/// read then gives an error, where a mapping would kill the process (SIGBUS).
pub struct Source(Inner);

enum Inner {
    File { file: File, len: u64 },
    Bytes(Box<dyn AsRef<[u8]> + Send + Sync>),
}

impl std::fmt::Debug for Source {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Source({} bytes)", self.len())
    }
}

impl Source {
    /// A regular file.
    ///
    /// # Errors
    /// When its length cannot be found out.
    pub fn file(file: File) -> Result<Source, Error> {
        let len = file.metadata()?.len();
        Ok(Source(Inner::File { file, len }))
    }

    /// Bytes in memory.
    pub fn bytes(bytes: impl AsRef<[u8]> + Send + Sync + 'static) -> Source {
        Source(Inner::Bytes(Box::new(bytes)))
    }

    /// Everything that a pipe gives, kept in memory; at most 16 GiB.
    ///
    /// # Errors
    /// When reading fails.
    pub fn read(from: impl Read) -> Result<Source, Error> {
        let mut bytes = Vec::new();
        from.take(MOST_PIPED).read_to_end(&mut bytes)?;
        Ok(Source::bytes(bytes))
    }

    /// How many bytes there are (were, when it was opened).
    pub fn len(&self) -> u64 {
        match &self.0 {
            Inner::File { len, .. } => *len,
            Inner::Bytes(bytes) => (**bytes).as_ref().len() as u64,
        }
    }

    /// There are none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Fills `into` with the bytes from `offset` on; returns how many there
    /// were.
    ///
    /// # Errors
    /// When reading fails.
    pub(crate) fn read_at(&self, offset: u64, into: &mut [u8]) -> Result<usize, Error> {
        match &self.0 {
            Inner::File { file, .. } => {
                let mut done = 0;
                while let Some(rest) = into.get_mut(done..).filter(|rest| !rest.is_empty()) {
                    match file.read_at(rest, offset.saturating_add(done as u64)) {
                        Ok(0) => break,
                        Ok(n) => done += n,
                        Err(e) if e.kind() == std::io::ErrorKind::Interrupted => {}
                        Err(e) => return Err(e.into()),
                    }
                }
                Ok(done)
            }
            Inner::Bytes(bytes) => {
                let start = usize::try_from(offset).unwrap_or(usize::MAX);
                let from = (**bytes).as_ref().get(start..).unwrap_or_default();
                let len = from.len().min(into.len());
                for (to, from) in into.iter_mut().zip(from) {
                    *to = *from;
                }
                Ok(len)
            }
        }
    }
}
