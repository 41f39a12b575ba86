//! Finds the longest time off CPU of each process in each interval.
//!
//! A time off CPU belongs to the CPU that the thread left. The whole time belongs to the interval in which it ended. If
//! the start is not known (the thread was off CPU when the recording started), the CPU is not known either, so the time
//! counts only without `--cpu`. If the end is not known, the time belongs to the last interval in which the thread is
//! seen off CPU, and the length is a lower bound.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use tr_analyze::model::Process;
use tr_analyze::waits::{self, Piece};

use crate::views::view::View;

/// The length in nanoseconds of an interval, unless `--interval` is given: a value is printed for each second.
const SECOND: u64 = 1_000_000_000;

/// The longest time off CPU of each chosen process in each interval.
pub struct LongestOffCpu<'a> {
    pub view: View<'a>,
    /// The length in nanoseconds of the intervals for each of which the longest time off CPU is found.
    pub interval: u64,
    /// The longest time off CPU of each process in each interval, ordered by interval and then by process.
    pub rows: Vec<Longest<'a>>,
}

/// The longest time off CPU of one process in one interval.
#[derive(Clone, Copy)]
pub struct Longest<'a> {
    /// The number of the interval; the recording's first interval has the number 0.
    pub number: u64,
    pub process: &'a Process,
    pub piece: Piece,
    /// The number of the process's waits off CPU that ended in this interval.
    pub count: u64,
}

impl<'a> LongestOffCpu<'a> {
    /// Finds the longest time off CPU of each chosen process in each interval.
    pub fn new(view: &View<'a>) -> LongestOffCpu<'a> {
        let interval = view.ask.interval.unwrap_or(SECOND).max(1);
        let mut rows = BTreeMap::<(u64, usize), Longest>::new();
        for (at, process) in view.processes().enumerate() {
            let threads = process.threads.iter();
            let pieces = threads.flat_map(|thread| waits::off_cpu(view.analysis, *thread));
            let only = view.ask.cpu;
            for piece in pieces.filter(|p| only.is_none() || p.before.cpu() == only) {
                // The last nanosecond of a wait decides to which interval the wait belongs.
                let number = view.since(piece.to).saturating_sub(1) / interval;
                let row = rows.entry((number, at)).or_insert(Longest {
                    number,
                    process,
                    piece,
                    count: 0,
                });
                row.count += 1;
                if piece.length() > row.piece.length() {
                    row.piece = piece;
                }
            }
        }
        LongestOffCpu {
            view: *view,
            interval,
            rows: rows.into_values().collect(),
        }
    }

    /// The rows that CSV and JSON show: all, or with `--top` those with the longest times off CPU.
    pub fn shown(&self) -> Vec<&Longest<'a>> {
        match self.view.ask.top {
            None => self.rows.iter().collect(),
            Some(most) => self.longest(most),
        }
    }

    /// The rows with the longest times off CPU, the longest first.
    pub fn longest(&self, most: usize) -> Vec<&Longest<'a>> {
        let mut rows: Vec<&Longest<'a>> = self.rows.iter().collect();
        rows.sort_by_key(|row| Reverse(row.piece.length()));
        rows.truncate(most);
        rows
    }
}
