//! The errors of reading other tools' files.

/// An error of reading another tool's file.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// It cannot be opened or read.
    #[error(transparent)]
    Io(#[from] std::io::Error),
    /// It is no regular file.
    #[error("neither a file nor a directory")]
    NoFile,
    /// It is too large.
    #[error("{} MiB, the limit is {} MiB", found >> 20, limit >> 20)]
    Size {
        /// Its bytes.
        found: u64,
        /// The most bytes.
        limit: u64,
    },
    /// It has too many records.
    #[error("{format}: more than {limit} {what}")]
    Count {
        format: &'static str,
        what: &'static str,
        /// The most of them.
        limit: usize,
    },
    /// It is no file of a known tool.
    #[error("neither clang's -ftime-trace, nor a .ninja_log, cargo's --timings or JUnit XML")]
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
        (format, what): (&'static str, &'static str),
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
