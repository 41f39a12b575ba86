//! The subcommands, a file each.

pub mod analyze;
pub mod record;
