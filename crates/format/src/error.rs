//! What can be wrong with a trace.

/// Why a trace, or a part of it, cannot be read or written.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// Reading or writing failed.
    #[error(transparent)]
    Io(#[from] std::io::Error),
    /// The first bytes are not those of a trace.
    #[error("this is not a trace (it does not start with the bytes of one)")]
    NotATrace,
    /// Written by a later program, in a way that this one cannot know.
    #[error("the trace has format version {major}; this program reads version {known}: use a newer tr", known = crate::frame::MAJOR)]
    Version {
        /// The file's major version.
        major: u16,
    },
    /// A frame is damaged.
    #[error("frame {frame} at byte {offset}: {what}")]
    Frame {
        /// Its number in the file, from 0.
        frame: u64,
        /// Where it begins.
        offset: u64,
        /// What is wrong: expected and found.
        what: String,
    },
}

/// A value inside a block is not what it must be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Corrupt(pub &'static str);
