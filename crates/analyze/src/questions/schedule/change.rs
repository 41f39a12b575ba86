//! Which changes a simulation has, and what it assumes of them.

/// A set of changes, by their numbers.
pub type Changes = u32;

/// Whether changes have their best effect or their worst, and jobs need few others or many.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Effect {
    /// [`Change::remains`](super::Change::remains) at best; jobs need what they surely need.
    Best,
    /// The same; jobs need what they probably need.
    Likely,
    /// [`Change::remains`](super::Change::remains) at worst; jobs need all that they may need.
    Worst,
}
