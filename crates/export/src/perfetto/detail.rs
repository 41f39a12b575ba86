//! Merges short pieces of time, because Perfetto in a browser opens files up to some 200 MB. An exact export has this
//! size for some 2.5 million events.
//!
//! Consecutive stays on a CPU and segments of the critical path that are shorter than the level of detail are merged
//! until the merged piece is that long, or until a longer piece or a longer gap follows. A merged piece is shown as
//! the state that has most of its time; it is left out if the gaps in it take more time than this state. Longer stays
//! and segments are not changed.

use std::collections::BTreeMap;

use tr_analyze::model::{Analysis, Process};
use tr_analyze::share;
use tr_format::event::Ktime;

/// The size in bytes that a Perfetto export should not exceed, unless the user gives a level of detail (`--detail`).
pub const MOST_BYTES: u64 = 200_000_000;
/// The greatest number of bytes for each event of the recording in a Perfetto export with every detail.
/// `EVENT_AND_PATH` is for recordings with a timeline, because most wake-ups then also cause a slice of the critical
/// path.
const EVENT: u64 = 12;
const EVENT_AND_PATH: u64 = 80;
/// The approximate number of bytes in a Perfetto export for one stay on a CPU. `SLICE` is for a slice of the critical
/// path, and `PROCESS` for a process with its program. All three are rather too large than too small.
const STAY: u64 = 30;
const SLICE: u64 = 150;
const PROCESS: u64 = 1_000;

/// The level of detail for a Perfetto export: the length in ns below which pieces of time are merged. With this level
/// the export takes at most about [`MOST_BYTES`] bytes. The level is 0 for a recording with few events, so that nothing
/// is merged.
pub fn of(analysis: &Analysis, events: u64) -> u64 {
    if whole(analysis, events) <= MOST_BYTES {
        return 0;
    }
    let length = analysis.wall();
    let cpus = analysis.meta.cpus.len().max(1) as u64;
    // In the worst case, pieces that were merged from short stays alternate on each CPU with longer stays.
    let moment = 2 * (cpus.saturating_mul(STAY) + SLICE);
    let pieces = share(length, moment, MOST_BYTES / 2);
    let mut lengths: Vec<u64> = analysis.processes.iter().map(Process::wall).collect();
    lengths.sort_unstable_by(|a, b| b.cmp(a));
    let shortest = lengths.get((MOST_BYTES / 2 / PROCESS) as usize);
    let shortest = shortest.map_or(0, |ns| ns.saturating_add(1));
    pieces.max(shortest).max(1)
}

/// An upper estimate of the size in bytes of a Perfetto export in which nothing is merged, for a recording with
/// `events` events.
pub fn whole(analysis: &Analysis, events: u64) -> u64 {
    events.saturating_mul(match analysis.timeline {
        Some(_) => EVENT_AND_PATH,
        None => EVENT,
    })
}

/// Merges consecutive short pieces of time, such as stays on a CPU, for a Perfetto export. The pieces must be ordered
/// and must not overlap.
pub struct Merger<T> {
    /// The length in ns from which on a piece of time is exported as it is. Shorter pieces are merged.
    detail: u64,
    from: Ktime,
    to: Ktime,
    /// For each state that the short pieces of time since `from` have, the sum of their lengths in ns.
    sums: BTreeMap<T, u64>,
}

/// A piece of time that is exported as one slice: its beginning, its end, and the state that it has, or that most of
/// its time had.
pub type Piece<T> = (Ktime, Ktime, T);

impl<T: Ord + Clone> Merger<T> {
    pub fn new(detail: u64) -> Merger<T> {
        Merger {
            detail,
            from: Ktime(0),
            to: Ktime(0),
            sums: BTreeMap::new(),
        }
    }

    /// Adds the next piece of time. Returns the pieces that are complete now: the merged piece before the new one, if
    /// it ends there, and the new piece itself, if it is long enough not to be merged.
    pub fn add(&mut self, (from, to, thing): Piece<T>) -> [Option<Piece<T>>; 2] {
        let long = to.since(from) >= self.detail;
        let apart = from.since(self.to) >= self.detail;
        let whole = self.to.since(self.from) >= self.detail;
        let before = (long || apart || whole).then(|| self.take()).flatten();
        if long {
            return [before, Some((from, to, thing))];
        }
        if self.sums.is_empty() {
            self.from = from;
        }
        self.to = to;
        let sum = self.sums.entry(thing).or_default();
        *sum = sum.saturating_add(to.since(from));
        [before, None]
    }

    pub fn take(&mut self) -> Option<Piece<T>> {
        let sums = std::mem::take(&mut self.sums);
        let busy = sums
            .values()
            .fold(0, |all: u64, ns| all.saturating_add(*ns));
        let gaps = self.to.since(self.from).saturating_sub(busy);
        // If several states have the longest time within the merged piece, the smallest of them by `Ord` is taken.
        let most = sums.into_iter().rev().max_by_key(|(_, ns)| *ns);
        let most = most.filter(|(_, ns)| *ns >= gaps);
        most.map(|(thing, _)| (self.from, self.to, thing))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn merged(detail: u64, things: &[(u64, u64, char)]) -> Vec<(u64, u64, char)> {
        let mut merger = Merger::new(detail);
        let mut pieces = Vec::new();
        for (from, to, thing) in things {
            pieces.extend(
                merger
                    .add((Ktime(*from), Ktime(*to), *thing))
                    .into_iter()
                    .flatten(),
            );
        }
        pieces.extend(merger.take());
        let pieces = pieces.into_iter();
        pieces
            .map(|(from, to, thing)| (from.0, to.0, thing))
            .collect()
    }

    #[test]
    fn what_is_long_stays_and_what_is_short_is_what_most_of_it_was() {
        let things = [
            (0, 10, 'a'),
            (10, 12, 'b'),
            (12, 15, 'c'),
            (15, 21, 'b'),
            (21, 40, 'a'),
            (41, 42, 'b'),
            (60, 61, 'c'),
            (68, 69, 'b'),
        ];
        let whole = merged(0, &things);
        assert_eq!(whole, things);
        let pieces = merged(10, &things);
        // The piece from 61 to 68 ns, which is merged from short pieces, consists mostly of gaps. So it has no state
        // and is left out.
        assert_eq!(
            pieces,
            [(0, 10, 'a'), (10, 21, 'b'), (21, 40, 'a'), (41, 42, 'b')]
        );
    }
}
