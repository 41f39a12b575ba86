//! How much is imported at most.

/// The largest number of bytes that are imported from one file of another tool.
pub const FILE: u64 = 64 << 20;

/// The largest number of bytes that are imported from all files of other tools together.
pub const ALL: u64 = 512 << 20;

/// The largest number of records, such as spans or tests, that are imported from one file.
pub(crate) const RECORDS: usize = 1_000_000;
