//! The indices of tasks and processes in the tracker and in the model.

use std::num::NonZeroU32;

use crate::arena::Ix;

/// An index into the model's processes, [`Analysis::processes`](crate::Analysis::processes).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ProcessIx(pub u32);

/// An index into the model's threads, [`Analysis::threads`](crate::Analysis::threads).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ThreadIx(pub u32);

// An index that exceeds `u32` cannot occur, here and below, because 2^32 processes or threads do not fit into memory.
impl Ix for ProcessIx {
    fn new(place: usize) -> ProcessIx {
        ProcessIx(u32::try_from(place).unwrap_or(u32::MAX))
    }

    fn place(self) -> usize {
        self.0 as usize
    }
}

impl Ix for ThreadIx {
    fn new(place: usize) -> ThreadIx {
        ThreadIx(u32::try_from(place).unwrap_or(u32::MAX))
    }

    fn place(self) -> usize {
        self.0 as usize
    }
}

/// The index of a task in the tracker's table of tasks. An `Option` of this type also has four bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TaskIx(NonZeroU32);

impl Ix for TaskIx {
    #[inline]
    fn new(place: usize) -> TaskIx {
        let one_more = u32::try_from(place + 1).ok().and_then(NonZeroU32::new);
        TaskIx(one_more.unwrap_or(NonZeroU32::MAX))
    }

    #[inline]
    fn place(self) -> usize {
        self.0.get() as usize - 1
    }
}

/// The index of a process in the tracker's table of processes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ProcIx(NonZeroU32);

impl Ix for ProcIx {
    #[inline]
    fn new(place: usize) -> ProcIx {
        let one_more = u32::try_from(place + 1).ok().and_then(NonZeroU32::new);
        ProcIx(one_more.unwrap_or(NonZeroU32::MAX))
    }

    #[inline]
    fn place(self) -> usize {
        self.0.get() as usize - 1
    }
}
