//! Tables with typed indices, so that an index of one table cannot be used with another one.

use std::marker::PhantomData;
use std::ops::{Index, IndexMut};

pub trait Ix: Copy + Eq {
    fn new(place: usize) -> Self;
    fn place(self) -> usize;
}

/// A table that only grows. An index is made for an item that is in the table, and no item is ever removed, so the
/// index of an item stays valid.
#[derive(Clone, Debug)]
pub struct Arena<I, T> {
    items: Vec<T>,
    index: PhantomData<I>,
}

impl<I, T> Default for Arena<I, T> {
    fn default() -> Arena<I, T> {
        Arena {
            items: Vec::new(),
            index: PhantomData,
        }
    }
}

/// Makes a table of the items in their order. The first item has the index 0.
impl<I, T> FromIterator<T> for Arena<I, T> {
    fn from_iter<A: IntoIterator<Item = T>>(items: A) -> Arena<I, T> {
        Arena {
            items: items.into_iter().collect(),
            index: PhantomData,
        }
    }
}

impl<I: Ix, T> Arena<I, T> {
    /// Adds an item to the table and returns its index.
    pub fn push(&mut self, item: T) -> I {
        self.items.push(item);
        I::new(self.items.len() - 1)
    }

    /// Reserves memory for `items` further items of the table. If there is not enough memory, nothing is reserved
    /// and no error is returned.
    pub fn reserve(&mut self, items: usize) {
        // A failure is ignored, because the table may never need the memory.
        let _ = self.items.try_reserve_exact(items);
    }

    pub(crate) fn len(&self) -> usize {
        self.items.len()
    }

    pub fn ids(&self) -> impl DoubleEndedIterator<Item = I> + use<I, T> {
        (0..self.items.len()).map(I::new)
    }

    /// The items of the table, in the order of their indices.
    pub fn iter(&self) -> std::slice::Iter<'_, T> {
        self.items.iter()
    }

    /// A table of the results of `map` for each item. It has the same indices as this table.
    pub fn map<U>(&self, map: impl FnMut(&T) -> U) -> Arena<I, U> {
        Arena {
            items: self.items.iter().map(map).collect(),
            index: PhantomData,
        }
    }

    /// Mutable references to two different items of the table; `None` if the indices are equal or invalid.
    #[inline]
    pub fn pair_mut(&mut self, one: I, other: I) -> Option<[&mut T; 2]> {
        let places = [one.place(), other.place()];
        self.items.get_disjoint_mut(places).ok()
    }
}

#[allow(clippy::indexing_slicing)] // only `push` makes indices
impl<I: Ix, T> Index<I> for Arena<I, T> {
    type Output = T;

    #[inline]
    fn index(&self, ix: I) -> &T {
        &self.items[ix.place()]
    }
}

#[allow(clippy::indexing_slicing)] // only `push` makes indices
impl<I: Ix, T> IndexMut<I> for Arena<I, T> {
    #[inline]
    fn index_mut(&mut self, ix: I) -> &mut T {
        &mut self.items[ix.place()]
    }
}
