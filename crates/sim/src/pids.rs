//! Allocates the ids of simulated tasks as the kernel does.

use std::collections::VecDeque;

/// The smallest task id that the simulated kernel gives out after all ids were used once, as in the
/// kernel (`RESERVED_PIDS`, kernel/pid.c). It is scaled down for small machines.
const RESERVED_PIDS: u32 = 300;

/// An allocator of ids for simulated tasks like the kernel's (`idr_alloc_cyclic` in `alloc_pid`):
/// it gives out the next free id after the last one, and begins again when the limit is reached.
#[derive(Debug)]
pub(crate) struct Pids {
    used: Vec<u64>,
    next: u32,
    max: u32,
    low: u32,
    /// The freed task ids that must not be given out yet, each with the time until which it is held
    /// back.
    held: VecDeque<(u64, u32)>,
}

impl Pids {
    /// An allocator whose first task id is `first`. All ids that it gives out are below `max`.
    pub(crate) fn new(first: u32, max: u32) -> Pids {
        let max = max.max(first + 2);
        let low = RESERVED_PIDS.min(max / 8).max(1);
        Pids {
            used: vec![0; max as usize / 64 + 1],
            next: first,
            max,
            low,
            held: VecDeque::new(),
        }
    }

    /// Allocates an id for a simulated task; `None` if no id is free at the time `now`.
    pub(crate) fn take(&mut self, now: u64) -> Option<u32> {
        while let Some(&(until, pid)) = self.held.front() {
            if until > now {
                break;
            }
            self.held.pop_front();
            self.used[pid as usize / 64] &= !(1 << (pid % 64));
        }
        for _ in 0..2 {
            while self.next < self.max {
                let pid = self.next;
                let word = self.used[pid as usize / 64];
                if word == u64::MAX {
                    self.next = (pid / 64 + 1) * 64;
                    continue;
                }
                self.next += 1;
                if word & (1 << (pid % 64)) == 0 {
                    self.used[pid as usize / 64] |= 1 << (pid % 64);
                    return Some(pid);
                }
            }
            self.next = self.low;
        }
        None
    }

    /// Frees a task id, which the simulated kernel can give out again from the time `until` on.
    pub(crate) fn free(&mut self, pid: u32, until: u64) {
        self.held.push_back((until, pid));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_go_round_and_are_not_given_out_twice() {
        let mut pids = Pids::new(100, 164);
        let all: Vec<_> = std::iter::from_fn(|| pids.take(0)).collect();
        assert_eq!(all.len(), 64 + 100 - 20, "from 100 up, then from max / 8");
        assert_eq!(all[..2], [100, 101]);
        let mut sorted = all.clone();
        sorted.sort_unstable();
        sorted.dedup();
        assert_eq!(sorted.len(), all.len());
        pids.free(105, 10);
        assert_eq!(pids.take(9), None);
        assert_eq!(pids.take(10), Some(105));
    }
}
