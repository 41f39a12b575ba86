//! What can be wrong with a trace, and where.

/// Why a trace, or one frame of it, could not be written or read.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// Reading or writing failed in the system.
    #[error(transparent)]
    Io(#[from] std::io::Error),
    /// The file does not begin like a trace.
    #[error("not a trace: it begins with {found:02x?}, expected {expected:02x?}")]
    NotATrace {
        /// The first bytes, up to eight.
        found: Vec<u8>,
        /// What every trace begins with.
        expected: [u8; 8],
    },
    /// A trace of another major version.
    #[error("this is a trace of format version {found}; this tr reads version {supported}")]
    Version {
        /// The file's major version.
        found: u16,
        /// The version that this crate reads.
        supported: u16,
    },
    /// One frame is damaged, or claims what no frame may.
    #[error("frame {frame} at byte {offset}: {fault}")]
    Frame {
        /// The frame's number, counted from 0 at the metadata.
        frame: u64,
        /// Where the frame begins, in bytes from the start of the file.
        offset: u64,
        /// What is wrong with it.
        fault: Fault,
    },
}

/// What is wrong with a frame.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Fault {
    /// The bytes that begin every frame are not there.
    #[error("no frame begins here")]
    Sync,
    /// A checksum does not fit.
    #[error("{part}: checksum {found:#010x}, expected {expected:#010x}")]
    Checksum {
        /// What was summed up.
        part: &'static str,
        /// The sum of the bytes that are there.
        found: u32,
        /// The sum that was stored.
        expected: u32,
    },
    /// The file ends first.
    #[error("{needed} bytes needed, {left} left")]
    Short {
        /// Bytes needed.
        needed: u64,
        /// Bytes that are there.
        left: u64,
    },
    /// A length or count is larger than the format allows.
    #[error("{what} is {found}, the limit is {limit}")]
    Limit {
        /// Of what.
        what: &'static str,
        /// The value found.
        found: u64,
        /// The largest value allowed.
        limit: u64,
    },
    /// The content contradicts itself although its checksum fits.
    #[error("{0}")]
    Content(&'static str),
    /// The compressed data cannot be unpacked.
    #[error("cannot be decompressed: {0}")]
    Decompress(String),
    /// The frame at this place is not the one that the index names.
    #[error("differs from its index entry")]
    Index,
    /// Frames are missing before this one.
    #[error("{0} frames are missing before it")]
    Missing(u64),
    /// It is of another trace, or stands here twice.
    #[error("frame number {found} comes after number {after}")]
    Order {
        /// The number found.
        found: u64,
        /// The number before.
        after: u64,
    },
    /// The system could not read it.
    #[error("cannot be read: {0}")]
    Read(String),
}

impl Fault {
    /// With the place at which it was found.
    pub(crate) fn at(self, frame: u64, offset: u64) -> Error {
        Error::Frame {
            frame,
            offset,
            fault: self,
        }
    }
}

/// Refuses a value above a limit.
pub(crate) fn within(what: &'static str, found: u64, limit: u64) -> Result<(), Fault> {
    match found <= limit {
        true => Ok(()),
        false => Err(Fault::Limit { what, found, limit }),
    }
}
