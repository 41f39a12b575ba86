//! Sorting of rows, and collecting into trees. The standard library's stable sort is compiled anew for each type and
//! comparison, about 10 KB each, also where a map or a set is collected; together they were a twelfth of the program.
//! Here only the comparison is.

use std::cmp::Ordering;

/// Sorting of slices, as [`slice::sort_by`] and [`slice::sort_by_key`] do it.
pub trait Rows<T> {
    fn order_by(&mut self, compare: impl FnMut(&T, &T) -> Ordering);
    fn order_by_key<K: Ord>(&mut self, key: impl FnMut(&T) -> K);
}

impl<T> Rows<T> for [T] {
    fn order_by(&mut self, mut compare: impl FnMut(&T, &T) -> Ordering) {
        let order = permutation(self.len(), &mut |a, b| match (self.get(a), self.get(b)) {
            (Some(a), Some(b)) => compare(a, b),
            _ => Ordering::Equal,
        });
        permute(order, &mut |a, b| self.swap(a, b));
    }

    fn order_by_key<K: Ord>(&mut self, mut key: impl FnMut(&T) -> K) {
        self.order_by(|a, b| key(a).cmp(&key(b)));
    }
}

/// Collecting into a [`BTreeMap`](std::collections::BTreeMap) or a [`BTreeSet`](std::collections::BTreeSet).
pub trait Gather: Iterator + Sized {
    /// [`Iterator::collect`], item by item instead of by a sort.
    fn gather<C: Default + Extend<Self::Item>>(self) -> C {
        let mut all = C::default();
        all.extend(self);
        all
    }
}

impl<I: Iterator> Gather for I {}

/// The places of the elements in their order.
fn permutation(len: usize, compare: &mut dyn FnMut(usize, usize) -> Ordering) -> Vec<usize> {
    let mut order: Vec<usize> = (0..len).collect();
    order.sort_by(|a, b| compare(*a, *b));
    order
}
/// Brings element `order[i]` to place `i`, cycle by cycle.
fn permute(mut order: Vec<usize>, swap: &mut dyn FnMut(usize, usize)) {
    for start in 0..order.len() {
        let mut at = start;
        while let Some(place) = order.get_mut(at) {
            let from = std::mem::replace(place, at);
            if from == start {
                break;
            }
            swap(at, from);
            at = from;
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        /// As the standard library sorts, equal keys included.
        #[test]
        fn equals_the_standard_library(keys in prop::collection::vec(0..40u8, 0..200)) {
            let mut rows: Vec<_> = keys.iter().zip(0..).map(|(key, at)| (*key, at)).collect::<Vec<(u8, u32)>>();
            let mut expected = rows.clone();
            expected.sort_by_key(|(key, _)| *key);
            rows.order_by_key(|(key, _)| *key);
            prop_assert_eq!(&rows, &expected);
            expected.sort_by_key(|row| std::cmp::Reverse(row.0));
            rows.order_by(|a, b| b.0.cmp(&a.0));
            prop_assert_eq!(rows, expected);
        }
    }
}
