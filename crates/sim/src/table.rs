//! Tables of the tasks and the processes of the simulated machine.

use std::ops::{Index, IndexMut};

/// A table of simulated tasks or processes. The index of an entry is its slot; when the entry is freed, a later entry
/// gets the slot.
#[derive(Debug)]
pub(crate) struct Table<T> {
    entries: Vec<T>,
    free: Vec<u32>,
}

impl<T> Default for Table<T> {
    fn default() -> Self {
        Table {
            entries: Vec::new(),
            free: Vec::new(),
        }
    }
}

impl<T> Table<T> {
    /// Puts a simulated task or process into a free slot of its table and returns the slot. `make`
    /// gets the previous entry of that slot.
    pub(crate) fn insert(&mut self, make: impl FnOnce(Option<&mut T>) -> T) -> u32 {
        let Some(slot) = self.free.pop() else {
            self.entries.push(make(None));
            return self.entries.len() as u32 - 1;
        };
        let entry = &mut self.entries[slot as usize];
        *entry = make(Some(entry));
        slot
    }

    /// Frees the slot of a simulated task or process. Its entry stays until the slot is used again.
    pub(crate) fn free(&mut self, slot: u32) {
        self.free.push(slot);
    }

    pub(crate) fn get(&self, slot: u32) -> Option<&T> {
        self.entries.get(slot as usize)
    }

    /// The number of slots of the table of simulated tasks or processes, including free ones.
    pub(crate) fn len(&self) -> u32 {
        self.entries.len() as u32
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = (u32, &T)> {
        (0..).zip(&self.entries)
    }

    pub(crate) fn iter_mut(&mut self) -> impl Iterator<Item = &mut T> {
        self.entries.iter_mut()
    }
}

impl<T> Index<u32> for Table<T> {
    type Output = T;
    #[inline]
    fn index(&self, slot: u32) -> &T {
        &self.entries[slot as usize]
    }
}

impl<T> IndexMut<u32> for Table<T> {
    #[inline]
    fn index_mut(&mut self, slot: u32) -> &mut T {
        &mut self.entries[slot as usize]
    }
}
