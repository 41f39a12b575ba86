//! The errors of writing and reading a trace. An error names the frame and the byte at which it occurred.

/// An error of writing or reading a trace.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A system call failed while a trace was read or written.
    #[error(transparent)]
    Io(#[from] std::io::Error),
    /// The file does not begin with a trace's magic number.
    #[error("not a tr recording (it {})", looks(.found))]
    NotATrace {
        /// The first bytes of the file that is no trace, up to eight.
        found: Vec<u8>,
        /// The magic number with which every trace begins.
        expected: [u8; 8],
    },
    /// A trace that is read from a pipe is larger than the limit for the temporary file that holds it.
    #[error("a pipe of more than {} MiB: write it to a file, and name that", .most >> 20)]
    LongPipe {
        /// The largest number of bytes of a trace that can be read from a pipe.
        most: u64,
    },
    /// The trace was written in another major version of the format than this crate reads.
    #[error("this is a trace of format version {found}; this tr reads version {supported}")]
    Version {
        /// The major version of the format in which the file was written.
        found: u16,
        /// The major version of the format that this crate reads.
        supported: u16,
    },
    /// A frame of the trace is damaged or exceeds a limit.
    #[error("frame {frame} at byte {offset}: {fault}")]
    Frame {
        /// The number of the damaged frame, counted from 0 at the metadata.
        frame: u64,
        /// The offset of the damaged frame in the file, in bytes.
        offset: u64,
        /// The way in which the frame of the trace is damaged.
        fault: Fault,
    },
}

/// Describes a file that is no trace, for an error: the kind of file that probably begins with these
/// bytes.
fn looks(found: &[u8]) -> String {
    let text = |byte: &u8| byte.is_ascii_graphic() || byte.is_ascii_whitespace();
    if found.is_empty() {
        return "is empty".to_owned();
    }
    let known: [(&[u8], &str); 5] = [
        (b"\x7fELF", "a program"),
        (b"\x1f\x8b", "a gzip file"),
        (b"\x28\xb5\x2f\xfd", "a zstd file"),
        (b"PK\x03\x04", "a zip file"),
        (b"PERFILE2", "a recording of perf"),
    ];
    let kind = known.iter().find(|(magic, _)| found.starts_with(magic));
    match kind {
        Some((_, kind)) => format!("looks like {kind}"),
        None if found.iter().all(text) => "looks like text".to_owned(),
        None => format!("begins with {found:02x?}"),
    }
}

/// A way in which a frame of a trace is damaged.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Fault {
    /// The frame does not begin with the four bytes with which every frame begins.
    #[error("no frame begins here")]
    Sync,
    /// A checksum that is stored in the file differs from the checksum of the bytes that it protects.
    #[error("{part}: checksum {found:#010x}, expected {expected:#010x}")]
    Checksum {
        /// The part of the frame that the checksum protects, as text for the error.
        part: &'static str,
        /// The checksum that was computed from the bytes of the damaged part.
        found: u32,
        /// The checksum that is stored in the file for the damaged part.
        expected: u32,
    },
    /// The trace file ends inside the frame.
    #[error("{needed} bytes needed, {left} left")]
    Short {
        /// The length in bytes of the frame's header or payload, whichever is incomplete.
        needed: u64,
        /// The number of bytes from the beginning of this header or payload to the end of the file.
        left: u64,
    },
    /// A length or count in the frame is larger than the format allows.
    #[error("{what} is {found}, the limit is {limit}")]
    Limit {
        /// The name of the length or count in the frame that is too large.
        what: &'static str,
        /// The value of the length or count in the frame.
        found: u64,
        /// The largest value of the length or count that the format allows.
        limit: u64,
    },
    /// The content of the frame is invalid although its checksum is right. The text says what is wrong
    /// with it.
    #[error("{0}")]
    Content(&'static str),
    /// The compressed data of the frame cannot be decompressed. The text is the error of the zstd
    /// library.
    #[error("cannot be decompressed: {0}")]
    Decompress(String),
    /// The frame differs from what the index, or an earlier reading of the file, says about the frame at this offset.
    #[error("differs from its index entry")]
    Index,
    /// Frames are missing before this frame. The number is the number of missing frames.
    #[error("{0} frames are missing before it")]
    Missing(u64),
    /// The frame's number is not larger than the number of the frame before it: the frame is a copy, or
    /// belongs to another trace.
    #[error("frame number {found} comes after number {after}")]
    Order {
        /// The number of the frame, as its header has it.
        found: u64,
        /// The number of the frame before the damaged one in the file.
        after: u64,
    },
    /// A system call failed while the frame was read. The text is the system call's error.
    #[error("cannot be read: {0}")]
    Read(String),
}

impl Fault {
    /// Makes the error for a damaged frame from this fault, the frame's number and the frame's offset
    /// in bytes.
    pub(crate) fn at(self, frame: u64, offset: u64) -> Error {
        Error::Frame {
            frame,
            offset,
            fault: self,
        }
    }
}

/// Returns [`Fault::Limit`] if the number `found` exceeds the limit. `what` names the number in the
/// error.
pub(crate) fn within(what: &'static str, found: u64, limit: u64) -> Result<(), Fault> {
    if found > limit {
        return Err(Fault::Limit { what, found, limit });
    }
    Ok(())
}
