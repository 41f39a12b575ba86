//! Reduces the number of operations of a long simulated run: neighboring pieces of a thread's own time are merged into
//! one.
//!
//! Between two dependencies on other threads, the operations of a thread take the same time in any order. Their order
//! only determines at which moments other tasks share the CPUs with the thread. So the merged run keeps all
//! dependencies and all sums. The pieces of time become as long as the limit on the number of operations requires.

use super::ops::Op;
use crate::arena::Arena;
use crate::model::ThreadIx;

/// If a simulated run has more operations than this, pieces of time are merged. The limit bounds the memory to 48
/// MB. Measured: with twice as many operations, the first screen of the report on a simulated build of 10^7 events
/// is the same.
pub(super) const MOST_OPS: usize = 2_000_000;

/// The length in ns up to which pieces of a thread's own time (work and waits that depend on no other thread) are
/// merged at first. The number is a guess; sums and dependencies are the same with any length.
const FIRST_LENGTH: u64 = 1_000_000;
/// The largest length in ns up to which pieces of a thread's own time (work and waits that depend on no other thread)
/// are merged.
const LAST_LENGTH: u64 = FIRST_LENGTH << 20;

/// Merges the operations of a simulated run's threads, so that their number stays limited.
pub(super) struct Merger {
    /// The total number of operations above which neighboring pieces of threads' own time are merged into longer ones.
    most: usize,
    /// The total number of operations of all threads so far.
    count: usize,
    /// The length in ns up to which neighboring pieces of a thread's own time (work and waits that depend on no other
    /// thread) are merged.
    length: u64,
}

impl Merger {
    pub fn new(most: usize) -> Merger {
        Merger {
            most,
            count: 0,
            length: 0,
        }
    }

    /// Returns the operations of a thread. Neighboring pieces of its own time (work and waits that depend on no other
    /// thread) are merged to the length that is used at present.
    pub fn merged(&mut self, ops: Vec<Op>) -> Vec<Op> {
        let mut ops = if self.length == 0 {
            ops
        } else {
            merged(&ops, self.length)
        };
        ops.shrink_to_fit();
        self.count += ops.len();
        ops
    }

    /// Merges neighboring pieces of the own time of all threads (work and waits that depend on no other thread) into
    /// longer ones if there are too many operations.
    pub fn limit(&mut self, all: &mut Arena<ThreadIx, Vec<Op>>) {
        if self.count <= self.most {
            return;
        }
        while self.count > self.most / 2 && self.length < LAST_LENGTH {
            self.length = (self.length * 2).max(FIRST_LENGTH);
            self.count = 0;
            for thread in all.ids() {
                all[thread] = merged(&all[thread], self.length);
                self.count += all[thread].len();
            }
        }
        // The remaining operations are mostly dependencies on other threads, which cannot be merged. If there are still
        // too many, the limit is raised, so that merging is not tried again at each thread.
        self.most = self.most.max(self.count.saturating_mul(2));
    }
}

/// Returns the operations of a thread with fewer pieces of time. Successive pieces are collected until they are
/// `length` ns long in total, and those of the same kind are merged into one. An operation that is not a piece of
/// time ends a collection.
fn merged(ops: &[Op], length: u64) -> Vec<Op> {
    let mut all = Vec::new();
    let mut pieces: Vec<Op> = Vec::new();
    let mut sum = 0u64;
    for op in ops {
        if !op.what.is_timed() {
            all.append(&mut pieces);
            all.push(*op);
            sum = 0;
            continue;
        }
        let same = |piece: &&mut Op| (piece.what, piece.mask) == (op.what, op.mask);
        match pieces.iter_mut().find(same) {
            Some(piece) => {
                piece.value = piece.value.saturating_add(op.value);
                piece.at = op.at;
            }
            None => pieces.push(*op),
        }
        sum = sum.saturating_add(op.value);
        if sum >= length {
            all.append(&mut pieces);
            sum = 0;
        }
    }
    all.append(&mut pieces);
    all.shrink_to_fit();
    all
}

#[cfg(test)]
mod tests {
    use tr_format::event::Ktime;

    use super::*;
    use crate::questions::schedule::ops::What;

    fn op(what: What, value: u64) -> Op {
        Op {
            what,
            mask: 0,
            value,
            at: Ktime(value),
        }
    }

    /// The kinds and values of operations, for comparisons.
    fn shown(ops: &[Op]) -> Vec<(What, u64)> {
        ops.iter().map(|op| (op.what, op.value)).collect()
    }

    #[test]
    fn only_neighboring_pieces_of_one_nature_are_merged() {
        use What::{Await, Delay, Work};
        let ops = [
            op(Work, 3),
            op(Delay, 1),
            op(Work, 4),
            op(Await, 7),
            op(Work, 5),
            op(Work, 9),
            op(Delay, 2),
        ];
        let all = merged(&ops, 100);
        let expected = [(Work, 7), (Delay, 1), (Await, 7), (Work, 14), (Delay, 2)];
        assert_eq!(shown(&all), expected);
        // Each piece is already as long as `length` (1 ns), so nothing is merged.
        assert_eq!(shown(&merged(&ops, 1)), shown(&ops));
    }

    #[test]
    fn a_run_keeps_its_dependencies_and_its_time() {
        let pieces = (0..1000).map(|n| op([What::Work, What::Delay][n % 2], 1000));
        let ops: Vec<Op> = pieces.chain([op(What::Wake, 3)]).collect();
        let mut merger = Merger::new(1500);
        let mut all: Arena<ThreadIx, Vec<Op>> = Arena::default();
        for _ in 0..4 {
            let merged = merger.merged(ops.clone());
            all.push(merged);
            merger.limit(&mut all);
        }
        for thread in all.ids() {
            let kept = &all[thread];
            assert_eq!(
                shown(kept),
                [
                    (What::Work, 500_000),
                    (What::Delay, 500_000),
                    (What::Wake, 3)
                ]
            );
        }
    }

    #[test]
    fn a_short_run_stays_as_it_is() {
        let ops = vec![op(What::Work, 1), op(What::Delay, 1), op(What::Work, 1)];
        let mut merger = Merger::new(3);
        let mut all: Arena<ThreadIx, Vec<Op>> = Arena::default();
        all.push(merger.merged(ops.clone()));
        merger.limit(&mut all);
        assert!(all.ids().all(|thread| shown(&all[thread]) == shown(&ops)));
    }
}
