//! Collects the system calls of processes: the recorder's sums in the analyzed span.

use std::collections::BTreeMap;

use tr_format::counters::{CallSum, SystemCalls};
use tr_format::event::Ktime;

use crate::ids::{ProcIx, ProcessIx};

/// The sums over all calls of one system call that one process made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Call {
    /// The process that made the system calls, if it is recorded.
    pub process: Option<ProcessIx>,
    /// The number of the process's calls of this system call, and their times in the analyzed span.
    pub sum: CallSum,
}

#[derive(Debug, Default)]
pub(crate) struct Calls {
    /// The sums of system calls. The key is the process, whether the call is in the table of 32-bit programs, and
    /// the number of the call.
    sums: BTreeMap<(Option<ProcIx>, bool, u32), CallSum>,
    /// The number of system calls that are in no sum, because the limit left out their sums.
    pub left_out: u64,
}

impl Calls {
    /// The largest number of sums of system calls that are kept. Each takes about 100 bytes.
    const MOST: usize = 1 << 20;

    /// Adds the system calls of a process that lived from `life.0` to `life.1`. The recorder sums the calls over
    /// intervals. If only a part of an interval is in the analyzed span, the calls of the interval count if this part
    /// has at least half of the time that the process lived in the interval.
    pub fn take(
        &mut self,
        time: Ktime,
        calls: &SystemCalls,
        process: Option<ProcIx>,
        (life, span): ((Ktime, Ktime), (Ktime, Ktime)),
    ) {
        let clipped = (calls.since.max(life.0), time.min(life.1));
        let (from, to) = if clipped.0 <= clipped.1 {
            clipped
        } else {
            (calls.since, time)
        };
        let inside = to.min(span.1).since(from.max(span.0));
        let within = from >= span.0 && to <= span.1;
        if !within && (inside == 0 || inside.saturating_mul(2) < to.since(from)) {
            return;
        }
        for call in &calls.calls {
            let key = (process, call.compat, call.number);
            if self.sums.len() >= Calls::MOST && !self.sums.contains_key(&key) {
                self.left_out = self.left_out.saturating_add(call.count);
                continue;
            }
            let sum = self.sums.entry(key).or_insert(CallSum {
                number: call.number,
                compat: call.compat,
                ..CallSum::default()
            });
            sum.count = sum.count.saturating_add(call.count);
            sum.errors = sum.errors.saturating_add(call.errors);
            sum.ns = sum.ns.saturating_add(call.ns);
            sum.longest = sum.longest.max(call.longest);
        }
    }

    /// The sums of the processes' system calls, in the order of the processes. `process` finds the process of the
    /// model.
    pub fn finish(self, process: impl Fn(ProcIx) -> Option<ProcessIx>) -> Vec<Call> {
        let all = self.sums.into_iter();
        let mut all: Vec<Call> = all
            .map(|((of, ..), sum)| Call {
                process: of.and_then(&process),
                sum,
            })
            .collect();
        all.sort_by_key(|call| (call.process, call.sum.compat, call.sum.number));
        all
    }
}

#[cfg(test)]
mod tests {
    use tr_format::event::Tgid;

    use super::*;

    #[test]
    fn an_interval_belongs_to_the_window_with_most_of_it() {
        let calls = SystemCalls {
            tgid: Tgid(1),
            since: Ktime(1000),
            calls: vec![CallSum {
                count: 7,
                ..CallSum::default()
            }],
        };
        let counted = |life: (u64, u64), span: (u64, u64)| {
            let mut all = Calls::default();
            let times = |(a, b)| (Ktime(a), Ktime(b));
            all.take(Ktime(2000), &calls, None, (times(life), times(span)));
            all.finish(|_| None)
                .iter()
                .map(|call| call.sum.count)
                .sum::<u64>()
        };
        assert_eq!(counted((0, 9000), (0, 9000)), 7);
        assert_eq!(counted((0, 9000), (1400, 9000)), 7);
        assert_eq!(counted((0, 9000), (1600, 9000)), 0);
        // The task lived only from 1800 on, so it spent all of its time in this interval inside the span, and its
        // calls count.
        assert_eq!(counted((1800, 9000), (1600, 9000)), 7);
        assert_eq!(counted((0, 1200), (1600, 9000)), 0);
        assert_eq!(counted((0, 9000), (2000, 9000)), 0);
    }
}
