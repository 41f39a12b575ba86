//! The collectors: each takes the events of one subject, and has what the model keeps of them.

pub mod disks;
pub mod dns;
pub mod memory;
pub mod network;
pub mod stacks;
pub mod syscalls;
