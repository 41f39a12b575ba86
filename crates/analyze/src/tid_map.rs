//! Tables by tid, pid and CPU: looked into for every event, so arrays, not maps.

use std::collections::HashMap;

use tr_format::event::{CpuId, Tgid, Tid};

use crate::tracker::TaskIx;

/// Ids up to here have a place in an array: Linux gives no others
/// (`PID_MAX_LIMIT`). A hostile trace's go into a map.
const TIDS: u32 = 1 << 22;
/// So many that follow each other have their places together.
const PAGE: u32 = 1 << 12;
const PAGES: usize = (TIDS / PAGE) as usize;

/// A place for every id.
#[derive(Debug)]
struct ById {
    /// Where in `places` each page begins. All that have nothing yet share the first one.
    pages: Box<[u32; PAGES]>,
    /// One more than each id's place; 0: none.
    places: Vec<u32>,
    others: HashMap<u32, usize>,
}

impl Default for ById {
    fn default() -> ById {
        ById {
            pages: Box::new([0; PAGES]),
            places: vec![0; PAGE as usize],
            others: HashMap::new(),
        }
    }
}

impl ById {
    #[inline]
    fn get(&self, id: u32) -> Option<usize> {
        let Some(page) = self.pages.get((id / PAGE) as usize) else {
            return self.others.get(&id).copied();
        };
        let place = self.places.get((page + id % PAGE) as usize)?;
        (*place as usize).checked_sub(1)
    }

    fn set(&mut self, id: u32, value: Option<usize>) {
        let Some(page) = self.pages.get_mut((id / PAGE) as usize) else {
            match value {
                Some(value) => self.others.insert(id, value),
                None => self.others.remove(&id),
            };
            return;
        };
        // So many places do not fit into memory that a number would not.
        let value = value.and_then(|place| u32::try_from(place + 1).ok());
        if *page == 0 && value.is_some() {
            *page = self.places.len() as u32;
            self.places.resize(self.places.len() + PAGE as usize, 0);
        }
        if let (1.., Some(slot)) = (*page, self.places.get_mut((*page + id % PAGE) as usize)) {
            *slot = value.unwrap_or(0);
        }
    }

    fn retain(&mut self, keep: impl Fn(usize) -> bool) {
        for slot in &mut self.places {
            if (*slot as usize)
                .checked_sub(1)
                .is_some_and(|place| !keep(place))
            {
                *slot = 0;
            }
        }
        self.others.retain(|_, value| keep(*value));
    }
}

/// The task that has each tid.
#[derive(Debug, Default)]
pub struct TidMap(ById);

impl TidMap {
    /// Actor has it.
    #[inline]
    pub fn get(&self, tid: Tid) -> Option<TaskIx> {
        self.0.get(tid.0).map(TaskIx)
    }

    /// Gives it to a task.
    pub fn insert(&mut self, tid: Tid, value: TaskIx) {
        self.0.set(tid.0, Some(value.0));
    }

    /// Nobody has it any more.
    pub fn remove(&mut self, tid: Tid) {
        self.0.set(tid.0, None);
    }

    /// Only some keep theirs.
    pub fn retain(&mut self, keep: impl Fn(TaskIx) -> bool) {
        self.0.retain(|place| keep(TaskIx(place)));
    }
}

/// The process that has each pid, by its place.
#[derive(Debug, Default)]
pub struct TgidMap(ById);

impl TgidMap {
    /// Actor has it.
    pub fn get(&self, tgid: Tgid) -> Option<usize> {
        self.0.get(tgid.0)
    }

    /// Gives it to a process.
    pub fn insert(&mut self, tgid: Tgid, place: usize) {
        self.0.set(tgid.0, Some(place));
    }

    /// Nobody has it any more.
    pub fn remove(&mut self, tgid: Tgid) {
        self.0.set(tgid.0, None);
    }
}

/// Something for every CPU.
#[derive(Clone, Debug)]
pub struct CpuMap<T>(Vec<Option<T>>);

impl<T: Copy> Default for CpuMap<T> {
    fn default() -> CpuMap<T> {
        CpuMap(Vec::new())
    }
}

impl<T: Copy> CpuMap<T> {
    /// What is there.
    #[inline]
    pub fn get(&self, cpu: CpuId) -> Option<T> {
        self.0.get(usize::from(cpu.0)).copied().flatten()
    }

    /// What is there, to be changed.
    #[inline]
    pub fn get_mut(&mut self, cpu: CpuId) -> Option<&mut T> {
        self.0.get_mut(usize::from(cpu.0))?.as_mut()
    }

    /// Puts something there.
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

    /// All that are there, by CPU.
    pub fn iter(&self) -> impl Iterator<Item = (CpuId, T)> + '_ {
        let all = (0..=u16::MAX).map(CpuId).zip(&self.0);
        all.filter_map(|(cpu, value)| Some((cpu, (*value)?)))
    }

    /// All that are there, to be changed.
    pub fn iter_mut(&mut self) -> impl Iterator<Item = &mut T> {
        self.0.iter_mut().flatten()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn any_tid_has_a_place() {
        let mut table = TidMap::default();
        let tids = [0, 1, 4095, 4096, TIDS - 1, TIDS, u32::MAX];
        for (at, tid) in tids.into_iter().enumerate() {
            assert_eq!(table.get(Tid(tid)), None);
            table.insert(Tid(tid), TaskIx(at));
        }
        let all = |table: &TidMap| tids.map(|tid| table.get(Tid(tid)).map(|ix| ix.0));
        assert_eq!(all(&table), [0, 1, 2, 3, 4, 5, 6].map(Some));
        table.retain(|ix| ix.0 != 3);
        table.remove(Tid(u32::MAX));
        let left = [Some(0), Some(1), Some(2), None, Some(4), Some(5), None];
        assert_eq!(all(&table), left);
        let in_use = table.0.places.len() / PAGE as usize;
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
