//! Tables by tid and by CPU: looked into for every event, so arrays, not maps.

use std::collections::HashMap;

use tr_format::event::{CpuId, Tid};

/// Tids up to here have a place in an array: Linux gives no others
/// (`PID_MAX_LIMIT`). A hostile trace's go into a map.
const TIDS: u32 = 1 << 22;
const PAGE: usize = 1 << 12;

/// Something for every tid that is in use.
#[derive(Debug)]
pub struct ByTid<T> {
    /// Made when first used.
    pages: Vec<Option<Box<[Option<T>]>>>,
    others: HashMap<Tid, T>,
}

impl<T: Copy> Default for ByTid<T> {
    fn default() -> ByTid<T> {
        ByTid {
            pages: Vec::new(),
            others: HashMap::new(),
        }
    }
}

impl<T: Copy> ByTid<T> {
    /// What is there.
    #[inline]
    pub fn get(&self, tid: Tid) -> Option<T> {
        if tid.0 >= TIDS {
            return self.others.get(&tid).copied();
        }
        let at = tid.0 as usize;
        let page = self.pages.get(at / PAGE)?.as_ref()?;
        page.get(at % PAGE).copied().flatten()
    }

    fn set(&mut self, tid: Tid, value: Option<T>) {
        if tid.0 >= TIDS {
            match value {
                Some(value) => self.others.insert(tid, value),
                None => self.others.remove(&tid),
            };
            return;
        }
        let at = tid.0 as usize;
        if self.pages.len() <= at / PAGE {
            self.pages.resize_with(at / PAGE + 1, || None);
        }
        let page = self.pages.get_mut(at / PAGE);
        let page = page.map(|page| page.get_or_insert_with(|| vec![None; PAGE].into()));
        if let Some(slot) = page.and_then(|page| page.get_mut(at % PAGE)) {
            *slot = value;
        }
    }

    /// Puts something there.
    pub fn insert(&mut self, tid: Tid, value: T) {
        self.set(tid, Some(value));
    }

    /// Takes it away.
    pub fn remove(&mut self, tid: Tid) {
        self.set(tid, None);
    }

    /// Keeps only some.
    pub fn retain(&mut self, keep: impl Fn(T) -> bool) {
        for slot in self
            .pages
            .iter_mut()
            .flatten()
            .flat_map(|page| page.iter_mut())
        {
            *slot = slot.filter(|value| keep(*value));
        }
        self.others.retain(|_, value| keep(*value));
    }
}

/// Something for every CPU.
#[derive(Debug)]
pub struct ByCpu<T>(Vec<Option<T>>);

impl<T: Copy> Default for ByCpu<T> {
    fn default() -> ByCpu<T> {
        ByCpu(Vec::new())
    }
}

impl<T: Copy> ByCpu<T> {
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

    /// Takes it away.
    #[inline]
    pub fn remove(&mut self, cpu: CpuId) -> Option<T> {
        self.0.get_mut(usize::from(cpu.0))?.take()
    }

    /// All that are there, by CPU.
    pub fn iter(&self) -> impl Iterator<Item = (CpuId, T)> + '_ {
        let all = (0..=u16::MAX).map(CpuId).zip(&self.0);
        all.filter_map(|(cpu, value)| Some((cpu, (*value)?)))
    }

    /// Keeps only some.
    pub fn retain(&mut self, keep: impl Fn(T) -> bool) {
        for slot in &mut self.0 {
            *slot = slot.filter(|value| keep(*value));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn any_tid_has_a_place() {
        let mut table = ByTid::default();
        let tids = [0, 1, 4095, 4096, TIDS - 1, TIDS, u32::MAX];
        for tid in tids {
            assert_eq!(table.get(Tid(tid)), None);
            table.insert(Tid(tid), tid);
        }
        assert!(tids.iter().all(|tid| table.get(Tid(*tid)) == Some(*tid)));
        table.retain(|tid| tid != 4096);
        table.remove(Tid(u32::MAX));
        assert_eq!(
            (table.get(Tid(4096)), table.get(Tid(u32::MAX))),
            (None, None)
        );
        assert_eq!(table.get(Tid(TIDS)), Some(TIDS));
        assert_eq!(table.pages.iter().flatten().count(), 3, "pages in use");
    }

    #[test]
    fn cpus_come_in_order() {
        let mut table = ByCpu::default();
        table.insert(CpuId(u16::MAX), 'b');
        table.insert(CpuId(3), 'a');
        assert_eq!(table.get(CpuId(4)), None);
        let all: Vec<_> = table.iter().collect();
        assert_eq!(all, [(CpuId(3), 'a'), (CpuId(u16::MAX), 'b')]);
        table.retain(|value| value == 'b');
        assert_eq!(
            (table.remove(CpuId(3)), table.remove(CpuId(u16::MAX))),
            (None, Some('b'))
        );
    }
}
