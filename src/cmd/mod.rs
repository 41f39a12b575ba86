//! The subcommands, a file each.

pub mod analyze;
pub mod dump;
pub mod info;
pub mod record;
pub mod recover;
pub mod report;
pub mod verify;
