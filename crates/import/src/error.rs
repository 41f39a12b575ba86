//! The errors of reading other tools' files.

/// An error of reading another tool's file.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The file cannot be opened or read.
    #[error(transparent)]
    Io(#[from] std::io::Error),
    /// The path is neither a regular file nor a directory.
    #[error("neither a file nor a directory")]
    NoFile,
    /// The file is too large.
    #[error("{} MiB, the limit is {} MiB", found >> 20, limit >> 20)]
    Size {
        /// The file's size in bytes.
        found: u64,
        /// The most bytes.
        limit: u64,
    },
    /// The file has too many records.
    #[error("{format}: more than {limit} {what}")]
    Count {
        format: &'static str,
        what: &'static str,
        /// The most of them.
        limit: usize,
    },
    /// The file is not of a known tool.
    #[error("neither JUnit XML, nor the Chrome Trace Event format, OTLP, a .ninja_log or cargo's --timings")]
    Unknown,
    #[error("{format}: {what}")]
    Damaged {
        format: &'static str,
        /// The damage, and its place.
        what: String,
    },
}

impl Error {
    /// Whether so many records are no more than the limit.
    pub(crate) fn at_most(
        limit: usize,
        count: usize,
        format: &'static str,
        what: &'static str,
    ) -> Result<(), Error> {
        if count <= limit {
            Ok(())
        } else {
            Err(Error::Count {
                format,
                what,
                limit,
            })
        }
    }
}
