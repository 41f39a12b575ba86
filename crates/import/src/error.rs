//! The errors of importing files of other tools.

/// An error while a file of another tool (JUnit XML, a trace, a log) is imported.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The file to import cannot be opened or read.
    #[error(transparent)]
    Io(#[from] std::io::Error),
    /// The path of the file to import leads neither to a regular file nor to a directory.
    #[error("neither a file nor a directory")]
    NoFile,
    /// The file to import is too large.
    #[error("{} MiB, the limit is {} MiB", found >> 20, limit >> 20)]
    Size {
        /// The size of the file to import, in bytes.
        found: u64,
        /// The largest size in bytes that was allowed.
        limit: u64,
    },
    /// The file to import has too many records, such as spans or tests.
    #[error("{format}: more than {limit} {what}")]
    Count {
        format: &'static str,
        what: &'static str,
        /// The largest number of records that are imported from one file.
        limit: usize,
    },
    /// The file to import is in no known format.
    #[error("neither JUnit XML, nor the Chrome Trace Event format, OTLP, a .ninja_log, cargo's --timings or BitBake's buildstats")]
    Unknown,
    #[error("{format}: {what}")]
    Damaged {
        format: &'static str,
        /// The text that says how the file to import is damaged, and where.
        what: String,
    },
}

impl Error {
    /// Returns an error if a file to import has more than `limit` records.
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
