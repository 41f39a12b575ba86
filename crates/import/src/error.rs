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
        /// The size of the file in bytes.
        found: u64,
        /// The largest size in bytes that is read.
        limit: u64,
    },
    /// The file has too many records.
    #[error("{format}: more than {limit} {what}")]
    Count {
        format: &'static str,
        what: &'static str,
        /// The largest number of records that are read.
        limit: usize,
    },
    /// The file is not of a known tool.
    #[error("neither JUnit XML, nor the Chrome Trace Event format, OTLP, a .ninja_log or cargo's --timings")]
    Unknown,
    #[error("{format}: {what}")]
    Damaged {
        format: &'static str,
        /// The way in which the file is damaged, and the place of the damage, as text.
        what: String,
    },
}

impl Error {
    /// Returns an error if `count` records of a file are more than `limit`.
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
