//! Tables from tids or pids to tasks or processes. Every event looks up ids in them, so they are arrays and not hash
//! maps.

use std::collections::HashMap;

/// The number of ids that Linux uses (`PID_MAX_LIMIT`, include/linux/threads.h). Larger ids, in a forged
/// trace, go into a hash map.
const IDS: u32 = 1 << 22;
/// The number of ids in a page of the table. The entries of a page are stored together.
const PAGE: u32 = 1 << 12;
const PAGES: usize = (IDS / PAGE) as usize;

/// A table that finds the task with a tid, or the process with a pid. The result is an index of a table of tasks or
/// processes.
#[derive(Debug)]
pub struct IdMap<I> {
    /// The index in `holders` at which each page of ids begins. All empty pages share the first page.
    pages: Box<[u32; PAGES]>,
    holders: Vec<Option<I>>,
    others: HashMap<u32, I>,
}

impl<I: Copy> Default for IdMap<I> {
    fn default() -> IdMap<I> {
        IdMap {
            pages: Box::new([0; PAGES]),
            holders: vec![None; PAGE as usize],
            others: HashMap::new(),
        }
    }
}

impl<I: Copy> IdMap<I> {
    #[inline]
    pub fn get(&self, id: u32) -> Option<I> {
        let Some(page) = self.pages.get((id / PAGE) as usize) else {
            return self.others.get(&id).copied();
        };
        *self.holders.get((page + id % PAGE) as usize)?
    }

    pub fn insert(&mut self, id: u32, holder: I) {
        let Some(page) = self.pages.get_mut((id / PAGE) as usize) else {
            self.others.insert(id, holder);
            return;
        };
        if *page == 0 {
            *page = self.holders.len() as u32;
            self.holders
                .resize(self.holders.len() + PAGE as usize, None);
        }
        if let Some(slot) = self.holders.get_mut((*page + id % PAGE) as usize) {
            *slot = Some(holder);
        }
    }

    pub fn remove(&mut self, id: u32) {
        match self.pages.get((id / PAGE) as usize) {
            None => {
                self.others.remove(&id);
            }
            Some(page) => {
                if let Some(slot) = self.holders.get_mut((*page + id % PAGE) as usize) {
                    *slot = None;
                }
            }
        }
    }

    /// Removes all holders of tids or pids for which `keep` is false.
    pub fn retain(&mut self, keep: impl Fn(I) -> bool) {
        for slot in &mut self.holders {
            *slot = slot.filter(|holder| keep(*holder));
        }
        self.others.retain(|_, holder| keep(*holder));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::arena::Ix;
    use crate::ids::TaskIx;

    #[test]
    fn any_id_has_a_holder() {
        let mut table = IdMap::<TaskIx>::default();
        let ids = [0, 1, 4095, 4096, IDS - 1, IDS, u32::MAX];
        for (place, id) in ids.into_iter().enumerate() {
            assert_eq!(table.get(id), None);
            table.insert(id, TaskIx::new(place));
        }
        let all = |table: &IdMap<TaskIx>| ids.map(|id| table.get(id).map(TaskIx::place));
        assert_eq!(all(&table), [0, 1, 2, 3, 4, 5, 6].map(Some));
        table.retain(|ix| ix.place() != 3);
        table.remove(u32::MAX);
        let left = [Some(0), Some(1), Some(2), None, Some(4), Some(5), None];
        assert_eq!(all(&table), left);
        let in_use = table.holders.len() / PAGE as usize;
        assert_eq!(in_use, 4, "pages in use, and the empty one");
    }
}
