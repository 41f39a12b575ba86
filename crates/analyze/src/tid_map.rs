//! Tables by tid, pid and CPU. Every event looks into them, so they are arrays, not hash
//! maps.

use std::collections::HashMap;
use std::marker::PhantomData;

use tr_format::event::CpuId;

use crate::arena::Ix;

/// Linux gives no larger ids (`PID_MAX_LIMIT`, include/linux/threads.h). Those of a hostile
/// trace go into a hash map.
const IDS: u32 = 1 << 22;
/// Ids of a page, which lie together.
const PAGE: u32 = 1 << 12;
const PAGES: usize = (IDS / PAGE) as usize;

/// The holder of each tid or pid: an index of a table.
#[derive(Debug)]
pub struct IdMap<I> {
    /// Where in `holders` each page begins. All empty pages share the first one.
    pages: Box<[u32; PAGES]>,
    /// One more than the place of each id's holder; 0: none.
    holders: Vec<u32>,
    others: HashMap<u32, usize>,
    index: PhantomData<I>,
}

impl<I> Default for IdMap<I> {
    fn default() -> IdMap<I> {
        IdMap {
            pages: Box::new([0; PAGES]),
            holders: vec![0; PAGE as usize],
            others: HashMap::new(),
            index: PhantomData,
        }
    }
}

impl<I: Ix> IdMap<I> {
    /// The holder of an id.
    #[inline]
    pub fn get(&self, id: u32) -> Option<I> {
        let Some(page) = self.pages.get((id / PAGE) as usize) else {
            return self.others.get(&id).copied().map(I::new);
        };
        let holder = self.holders.get((page + id % PAGE) as usize)?;
        (*holder as usize).checked_sub(1).map(I::new)
    }

    /// Gives an id to a holder.
    pub fn insert(&mut self, id: u32, holder: I) {
        let Some(page) = self.pages.get_mut((id / PAGE) as usize) else {
            self.others.insert(id, holder.place());
            return;
        };
        if *page == 0 {
            *page = self.holders.len() as u32;
            self.holders.resize(self.holders.len() + PAGE as usize, 0);
        }
        if let Some(slot) = self.holders.get_mut((*page + id % PAGE) as usize) {
            // 2^32 holders do not fit into memory.
            *slot = u32::try_from(holder.place() + 1).unwrap_or(0);
        }
    }

    /// Takes an id from its holder.
    pub fn remove(&mut self, id: u32) {
        match self.pages.get((id / PAGE) as usize) {
            None => {
                self.others.remove(&id);
            }
            // The first page is the empty one.
            Some(0) => {}
            Some(page) => {
                if let Some(slot) = self.holders.get_mut((*page + id % PAGE) as usize) {
                    *slot = 0;
                }
            }
        }
    }

    /// Takes all ids from the holders that are not to be kept.
    pub fn retain(&mut self, keep: impl Fn(I) -> bool) {
        for slot in &mut self.holders {
            if (*slot as usize)
                .checked_sub(1)
                .is_some_and(|place| !keep(I::new(place)))
            {
                *slot = 0;
            }
        }
        self.others.retain(|_, place| keep(I::new(*place)));
    }
}

/// An entry for each CPU.
#[derive(Clone, Debug)]
pub struct CpuMap<T>(Vec<Option<T>>);

impl<T: Copy> Default for CpuMap<T> {
    fn default() -> CpuMap<T> {
        CpuMap(Vec::new())
    }
}

impl<T: Copy> CpuMap<T> {
    /// The entry of a CPU.
    #[inline]
    pub fn get(&self, cpu: CpuId) -> Option<T> {
        self.0.get(usize::from(cpu.0)).copied().flatten()
    }

    /// The entry of a CPU, to be changed.
    #[inline]
    pub fn get_mut(&mut self, cpu: CpuId) -> Option<&mut T> {
        self.0.get_mut(usize::from(cpu.0))?.as_mut()
    }

    /// Sets the entry of a CPU.
    #[inline]
    pub fn insert(&mut self, cpu: CpuId, value: T) {
        let at = usize::from(cpu.0);
        if self.0.len() <= at {
            self.0.resize(at + 1, None);
        }
        if let Some(slot) = self.0.get_mut(at) {
            *slot = Some(value);
        }
    }

    /// All entries, by CPU.
    pub fn iter(&self) -> impl Iterator<Item = (CpuId, T)> + '_ {
        let all = (0..=u16::MAX).map(CpuId).zip(&self.0);
        all.filter_map(|(cpu, value)| Some((cpu, (*value)?)))
    }

    /// All entries, to be changed.
    pub fn iter_mut(&mut self) -> impl Iterator<Item = &mut T> {
        self.0.iter_mut().flatten()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
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

    #[test]
    fn cpus_come_in_order() {
        let mut table = CpuMap::default();
        table.insert(CpuId(u16::MAX), 'b');
        table.insert(CpuId(3), 'a');
        assert_eq!(table.get(CpuId(4)), None);
        let all: Vec<_> = table.iter().collect();
        assert_eq!(all, [(CpuId(3), 'a'), (CpuId(u16::MAX), 'b')]);
        table.iter_mut().for_each(|value| *value = 'c');
        assert_eq!(
            (table.get(CpuId(3)), table.get(CpuId(u16::MAX))),
            (Some('c'), Some('c'))
        );
    }
}
