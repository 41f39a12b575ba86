//! The bytes of a trace, which come from a file, a mapping or memory.

use std::borrow::Cow;
use std::fs::File;
use std::io::{Read, Seek, Write};

use crate::{frame, limits, Error};

/// The bytes of a trace, from a file, a mapping or memory.
///
/// The number of bytes is determined once. If a file shrinks afterwards, reading the missing bytes is an error.
/// [`Source::bytes`] describes this case for mappings.
pub struct Source {
    kind: SourceKind,
    len: u64,
}

enum SourceKind {
    File(File),
    Bytes(Box<dyn AsRef<[u8]> + Send + Sync>),
}

impl std::fmt::Debug for Source {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Source({} bytes)", self.len)
    }
}

impl Source {
    /// Uses the bytes of a regular file as a trace, and reads them by `pread`. This function is for files that cannot
    /// be mapped, and for programs that do not catch SIGBUS and read files that may shrink. A mapping is faster: calls
    /// of `pread` take half of the system time for a trace of 10^7 events on 64 CPUs.
    ///
    /// # Errors
    /// If `fstat` fails, or the file is not a regular file (use [`Source::read`]).
    pub fn file(file: File) -> Result<Source, Error> {
        let meta = file.metadata()?;
        if !meta.is_file() {
            let kind = std::io::ErrorKind::InvalidInput;
            return Err(std::io::Error::new(kind, "not a regular file").into());
        }
        Ok(Source {
            kind: SourceKind::File(file),
            len: meta.len(),
        })
    }

    /// Uses bytes in memory or in a mapping as a trace. If a mapped file shrinks, the kernel sends SIGBUS to a process
    /// that touches the missing pages. The owner of the mapping has to catch the signal, as `tr` does.
    pub fn bytes(bytes: impl AsRef<[u8]> + Send + Sync + 'static) -> Source {
        let len = bytes.as_ref().len() as u64;
        Source {
            kind: SourceKind::Bytes(Box::new(bytes)),
            len,
        }
    }

    /// Reads all bytes of a pipe: up to [`limits::PIPE_MEMORY`] bytes into memory, and more, up to
    /// [`limits::PIPE_BYTES`], into an unnamed temporary file. If the pipe does not begin like a trace, only its first
    /// bytes are read, because it may never end.
    ///
    /// # Errors
    /// [`Error::NotATrace`]; [`Error::LongPipe`]; if reading or writing the temporary file fails.
    pub fn read(from: impl Read) -> Result<Source, Error> {
        Source::read_at_most(from, limits::PIPE_BYTES)
    }

    fn read_at_most(mut from: impl Read, most: u64) -> Result<Source, Error> {
        let mut bytes = Vec::new();
        from.by_ref()
            .take(frame::MAGIC.len() as u64)
            .read_to_end(&mut bytes)?;
        if bytes != frame::MAGIC {
            return Err(Error::NotATrace {
                found: bytes,
                expected: frame::MAGIC,
            });
        }
        from.by_ref()
            .take((limits::PIPE_MEMORY - bytes.len()) as u64)
            .read_to_end(&mut bytes)?;
        if bytes.len() < limits::PIPE_MEMORY {
            return Ok(Source::bytes(bytes));
        }
        let mut file = tempfile::tempfile()?;
        file.write_all(&bytes)?;
        drop(bytes);
        let rest = most.saturating_sub(limits::PIPE_MEMORY as u64);
        if std::io::copy(&mut from.take(rest.saturating_add(1)), &mut file)? > rest {
            return Err(Error::LongPipe { most });
        }
        file.rewind()?;
        Source::file(file)
    }

    /// The length of the trace in bytes.
    pub fn len(&self) -> u64 {
        self.len
    }

    /// Whether the trace has no bytes.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Reads `len` bytes of the trace at `offset`, or fewer at the end of the trace.
    ///
    /// # Errors
    /// If reading fails, or the file has shrunk.
    pub(crate) fn at(&self, offset: u64, len: u64) -> std::io::Result<Cow<'_, [u8]>> {
        let len = len.min(self.len.saturating_sub(offset));
        match &self.kind {
            SourceKind::Bytes(bytes) => {
                let rest = usize::try_from(offset)
                    .ok()
                    .and_then(|offset| (**bytes).as_ref().get(offset..))
                    .unwrap_or_default();
                let part = usize::try_from(len).ok().and_then(|len| rest.get(..len));
                part.map(Cow::Borrowed).ok_or_else(shrunk)
            }
            SourceKind::File(file) => {
                let mut buffer = vec![0; usize::try_from(len).map_err(|_| shrunk())?];
                match read_exact_at(file, &mut buffer, offset) {
                    Ok(()) => Ok(Cow::Owned(buffer)),
                    Err(e) if e.kind() == std::io::ErrorKind::UnexpectedEof => Err(shrunk()),
                    Err(e) => Err(e),
                }
            }
        }
    }
}

fn shrunk() -> std::io::Error {
    std::io::Error::new(
        std::io::ErrorKind::UnexpectedEof,
        "truncated while it was read",
    )
}

/// Fills `buffer` with the bytes of a file from `offset` on. The position of the file is neither used nor changed.
#[cfg(unix)]
fn read_exact_at(file: &File, buffer: &mut [u8], offset: u64) -> std::io::Result<()> {
    std::os::unix::fs::FileExt::read_exact_at(file, buffer, offset)
}

/// Fills `buffer` with the bytes of a file from `offset` on. The position of the file is not used, but it changes.
#[cfg(windows)]
fn read_exact_at(file: &File, mut buffer: &mut [u8], mut offset: u64) -> std::io::Result<()> {
    while !buffer.is_empty() {
        match std::os::windows::fs::FileExt::seek_read(file, buffer, offset)? {
            0 => return Err(std::io::ErrorKind::UnexpectedEof.into()),
            read => {
                buffer = buffer.get_mut(read..).unwrap_or_default();
                offset = offset.saturating_add(read as u64);
            }
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_that_shrinks_gives_an_error() {
        let mut file = tempfile::tempfile().unwrap();
        file.write_all(&[7; 100]).unwrap();
        let source = Source::file(file.try_clone().unwrap()).unwrap();
        assert_eq!(&*source.at(90, 20).unwrap(), &[7; 10]);
        file.set_len(50).unwrap();
        assert_eq!(&*source.at(0, 50).unwrap(), &[7; 50]);
        assert!(source.at(45, 10).is_err());
    }

    #[test]
    fn a_long_pipe_goes_to_a_file() {
        let len = limits::PIPE_MEMORY as u64 + 5;
        let magic = frame::MAGIC.as_slice();
        let source = Source::read(magic.chain(std::io::repeat(3)).take(len)).unwrap();
        assert!(matches!(source.kind, SourceKind::File(_)));
        assert_eq!(source.len(), len);
        assert_eq!(&*source.at(len - 2, 9).unwrap(), &[3, 3]);
        let short = Source::read(magic).unwrap();
        assert_eq!(&*short.at(1, 9).unwrap(), &magic[1..]);
    }

    #[test]
    fn a_pipe_that_does_not_end_is_given_up() {
        let endless = frame::MAGIC.as_slice().chain(std::io::repeat(3));
        let most = limits::PIPE_MEMORY as u64 + 5;
        let read = Source::read_at_most(endless, most);
        assert!(matches!(read, Err(Error::LongPipe { .. })));
        let whole = frame::MAGIC.as_slice().chain(std::io::repeat(3)).take(most);
        assert_eq!(Source::read_at_most(whole, most).unwrap().len(), most);
    }

    #[test]
    fn a_pipe_that_is_no_trace_is_not_read_to_its_end() {
        let endless = Source::read(std::io::repeat(3));
        assert!(matches!(endless, Err(Error::NotATrace { .. })));
        assert!(Source::read(&b"\x89tr"[..]).is_err());
    }
}
