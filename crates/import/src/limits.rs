//! How much is imported at most.

/// The largest size in bytes of a file of another tool that is imported, both as it is stored and after
/// decompression.
pub const FILE: u64 = 64 << 20;

/// The largest sum of the sizes in bytes of all files of other tools that are imported together, as they are stored.
pub const ALL_FILES: u64 = 512 << 20;

/// The largest number of records, such as spans or tests, that are imported from one file.
pub(crate) const RECORDS: usize = 1_000_000;
