//! Finds the stack samples that belong to the segments of a critical path: they are of the segment's thread
//! and in the segment's time.

use std::collections::HashMap;

use tr_format::event::Ktime;
use tr_format::stack::Doing;

use super::{CriticalPath, Segment, TimeKind};
use crate::collect::stacks::{Stacks, Timed};
use crate::model::ThreadIx;

/// The stack samples on a critical path, and how much of the path they cover.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct OnPath {
    /// The stack samples on the critical path. Each sample has its time on the path in ns: the sampling
    /// period, or the part of a wait that is on the path.
    pub samples: Vec<(Timed, u64)>,
    /// The critical path's time on a CPU in those legs that have at least one sample on a CPU, in ns.
    pub sampled: u64,
    /// The time on a CPU, in ns, in those legs (parts of the critical path in one thread) that have no sample on a CPU.
    pub not_sampled: u64,
    /// The time of the critical path's waits in ns. Waits for a CPU are not included.
    pub waited: u64,
}

/// A segment of the critical path, listed under its thread.
struct Own<'a> {
    segment: &'a Segment,
    /// The index of the leg (a part of the critical path in one thread) that the segment belongs to.
    leg: usize,
    /// How many ns the thread had waited on the critical path before this segment.
    waited: u64,
}

impl CriticalPath {
    /// The stack samples on this critical path. They exist only with [`Options::samples`](crate::Options::samples).
    pub fn sampled(&self, stacks: &Stacks) -> OnPath {
        let mut threads: HashMap<ThreadIx, Vec<Own<'_>>> = HashMap::new();
        let mut waits: HashMap<ThreadIx, u64> = HashMap::new();
        // For each leg (a part of the critical path in one thread), its time on a CPU in ns, and whether it has a
        // sample on a CPU.
        let mut legs: Vec<(u64, bool)> = Vec::new();
        let mut found = OnPath::default();
        for (leg, segments) in self.by_leg().enumerate() {
            let mut on_cpu = 0;
            for segment in segments {
                let waited = waits.entry(segment.thread).or_default();
                threads.entry(segment.thread).or_default().push(Own {
                    segment,
                    leg,
                    waited: *waited,
                });
                if segment.kind.is_wait() {
                    *waited += segment.length();
                    found.waited += segment.length();
                } else if segment.kind == TimeKind::OnCpu {
                    on_cpu += segment.length();
                }
            }
            legs.push((on_cpu, false));
        }
        for sample in &stacks.timed {
            let Some(own) = threads.get(&sample.thread) else {
                continue;
            };
            let ns = match sample.doing {
                Doing::OnCpu => match at(own, sample.time) {
                    Some(own) if own.segment.kind == TimeKind::OnCpu => {
                        if let Some((_, has)) = legs.get_mut(own.leg) {
                            *has = true;
                        }
                        sample.ns
                    }
                    _ => continue,
                },
                Doing::OffCpu => {
                    let from = Ktime(sample.time.0.saturating_sub(sample.ns));
                    waited_until(own, sample.time) - waited_until(own, from)
                }
            };
            if ns > 0 {
                found.samples.push((*sample, ns));
            }
        }
        for (on_cpu, has) in legs {
            let sum = if has {
                &mut found.sampled
            } else {
                &mut found.not_sampled
            };
            *sum += on_cpu;
        }
        found
    }
}

/// The last segment of a thread on the critical path that begins at or before a time.
fn before<'a, 'b>(own: &'b [Own<'a>], time: Ktime) -> Option<&'b Own<'a>> {
    let next = own.partition_point(|own| own.segment.from <= time);
    own.get(next.checked_sub(1)?)
}

/// The segment of a thread on the critical path that contains a time.
fn at<'a, 'b>(own: &'b [Own<'a>], time: Ktime) -> Option<&'b Own<'a>> {
    before(own, time).filter(|own| time < own.segment.to)
}

/// How many ns a thread had waited on the critical path up to a moment.
fn waited_until(own: &[Own<'_>], time: Ktime) -> u64 {
    before(own, time).map_or(0, |own| {
        let part = if own.segment.kind.is_wait() {
            time.min(own.segment.to).since(own.segment.from)
        } else {
            0
        };
        own.waited + part
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::ProcessIx;
    use crate::questions::critical_path::Then;

    const A: ThreadIx = ThreadIx(0);
    const B: ThreadIx = ThreadIx(1);

    fn segment(thread: ThreadIx, from: u64, to: u64, kind: TimeKind) -> Segment {
        Segment {
            from: Ktime(from),
            to: Ktime(to),
            thread,
            program: None,
            kind,
            then: Then::Same,
            then_inferred: false,
            inferred: false,
        }
    }

    fn sample(thread: ThreadIx, doing: Doing, time: u64, ns: u64) -> Timed {
        Timed {
            thread,
            time: Ktime(time),
            doing,
            stack: 0,
            ns,
        }
    }

    /// Counts only the samples of a segment's thread in the segment's time.
    ///
    /// ```text
    /// A  ====ssss    ....==     = on a CPU  s asleep  . runnable
    /// B      (run)===           another thread's samples at the same time
    /// ```
    #[test]
    fn only_samples_of_a_segments_thread_and_time_count() {
        let path = CriticalPath {
            process: ProcessIx(0),
            thread: A,
            from: Ktime(0),
            to: Ktime(180),
            segments: vec![
                segment(A, 0, 40, TimeKind::OnCpu),
                segment(A, 40, 80, TimeKind::Sleep),
                segment(B, 80, 120, TimeKind::OnCpu),
                segment(A, 120, 160, TimeKind::RunQueue),
                segment(A, 160, 180, TimeKind::OnCpu),
            ],
        };
        let mut stacks = Stacks::default();
        stacks.timed.extend([
            sample(A, Doing::OnCpu, 10, 20),
            sample(A, Doing::OnCpu, 30, 20),
            // Not counted: A ran while the path was in B, and B ran while the path was in A.
            sample(A, Doing::OnCpu, 100, 20),
            sample(B, Doing::OnCpu, 30, 20),
            sample(B, Doing::OnCpu, 119, 20),
            // The end of a segment belongs to the next segment, which is one of A, so this sample of B is not counted.
            sample(B, Doing::OnCpu, 120, 20),
            // The wait lasted from 30 to 160, but only its sleep from 40 to 80 is on the path, so 40 ns count.
            sample(A, Doing::OffCpu, 160, 130),
            // Not counted: a wait of B while the path was in A, and a wait that was only a wait for a CPU.
            sample(B, Doing::OffCpu, 70, 50),
            sample(A, Doing::OffCpu, 150, 20),
        ]);
        stacks.timed.sort_unstable();
        let found = path.sampled(&stacks);
        let counted = found.samples.iter();
        let counted = counted.map(|(sample, ns)| (sample.thread.0, sample.time.0, *ns));
        assert_eq!(
            counted.collect::<Vec<_>>(),
            [(0, 10, 20), (0, 30, 20), (0, 160, 40), (1, 119, 20)]
        );
        // The last leg (part in one thread) of the path, from 120 to 180, has no sample on a CPU, so its 20 ns on a CPU
        // are not sampled.
        assert_eq!(
            (found.sampled, found.not_sampled, found.waited),
            (80, 20, 40)
        );
    }
}
