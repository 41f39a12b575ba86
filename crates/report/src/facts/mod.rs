//! What reports, the comparison, advice, datasets and exports say of a recording: facts that several
//! of them share. It knows none of them.

pub mod audit;
pub(crate) mod calls;
pub(crate) mod demands;
pub(crate) mod disk;
pub(crate) mod failure;
pub(crate) mod loads;
pub(crate) mod memory;
pub(crate) mod network;
pub(crate) mod normal;
pub mod parts;
pub mod path;
pub(crate) mod reason;
pub(crate) mod servers;
pub(crate) mod shares;
pub(crate) mod step_sums;
pub(crate) mod timeout;
pub mod verdicts;
pub(crate) mod versions;
