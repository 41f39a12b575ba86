//! The subcommands, a file each.

pub mod analyze;
pub mod diff;
pub mod dump;
pub mod info;
pub mod manual;
pub mod record;
pub mod recover;
pub mod report;
pub mod verify;
