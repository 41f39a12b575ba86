//! The times in which events of a recording are missing.

use std::collections::BTreeMap;

use tr_format::event::{CpuId, Ktime, Stream};

/// Spans of time in their order, which neither overlap nor touch.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Spans(Vec<(Ktime, Ktime)>);

impl Spans {
    /// Adds the span of time from `since` to `until`, and joins it with the spans that overlap or touch this new span.
    pub fn insert(&mut self, since: Ktime, until: Ktime) {
        let first = self.0.partition_point(|(_, end)| *end < since);
        let last = self.0.partition_point(|(start, _)| *start <= until);
        let mut span = (since, until);
        for (start, end) in self.0.drain(first..last.max(first)) {
            span = (span.0.min(start), span.1.max(end));
        }
        self.0.insert(first, span);
    }

    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The first moment from `from` on and before `to` that one of the spans contains; `None` if there is none.
    pub fn first_in(&self, from: Ktime, to: Ktime) -> Option<Ktime> {
        let at = self.0.partition_point(|(_, end)| *end <= from);
        self.0
            .get(at)
            .filter(|(start, _)| *start < to)
            .map(|(start, _)| (*start).max(from))
    }

    /// The last one of the spans that begins at or before `time`.
    fn last_begun(&self, time: Ktime) -> Option<(Ktime, Ktime)> {
        let begun = self.0.partition_point(|(since, _)| *since <= time);
        self.0.get(begun.checked_sub(1)?).copied()
    }

    /// Whether one of the spans contains `time`, so that this span begins at or before `time` and ends after `time`.
    pub fn covers(&self, time: Ktime) -> bool {
        let at = self.0.partition_point(|(_, end)| *end <= time);
        self.0.get(at).is_some_and(|(start, _)| *start <= time)
    }
}

#[derive(Clone, Debug, Default)]
pub struct Gaps {
    any: Spans,
    cpus: BTreeMap<CpuId, Spans>,
    lives: Spans,
}

impl Gaps {
    /// Adds a gap, which is a span of time in which events of a stream are missing. Gaps of the lifecycle stream
    /// are kept apart from gaps in the scheduling events of a CPU. Gaps of the recorder's stream are ignored.
    pub fn insert(&mut self, stream: Stream, since: Ktime, until: Ktime) {
        if stream == Stream::Lifecycle {
            self.lives.insert(since, until);
        }
        if let Stream::Cpu(cpu) = stream {
            // An event of another stream can have the same time as the last lost event (`until`), and can really have
            // come before the lost event. So the moment `until` has to be inside the gap, which therefore ends 1 ns
            // later.
            let until = Ktime(until.0.saturating_add(1));
            self.any.insert(since, until);
            self.cpus.entry(cpu).or_default().insert(since, until);
        }
    }

    pub fn is_empty(&self) -> bool {
        self.any.is_empty() && self.lives.is_empty()
    }

    /// The beginning of the first gap of the lifecycle stream: the first time from which events of this stream are
    /// missing.
    pub fn first_of_lives(&self) -> Option<Ktime> {
        self.lives.0.first().map(|(since, _)| *since)
    }

    /// The beginning of a gap of the lifecycle stream: the last gap that began at or before `time`.
    pub fn lives_before(&self, time: Ktime) -> Option<Ktime> {
        self.lives.last_begun(time).map(|(since, _)| since)
    }

    /// The beginnings of all gaps in the scheduling events of all CPUs.
    pub fn starts(&self) -> Vec<(Ktime, CpuId)> {
        let spans = self.cpus.iter();
        spans
            .flat_map(|(cpu, spans)| spans.0.iter().map(|(since, _)| (*since, *cpu)))
            .collect()
    }

    /// For each CPU, the end of the last gap in its scheduling events that began at or before `time`.
    pub fn last_of_each(&self, time: Ktime) -> impl Iterator<Item = (CpuId, Ktime)> + '_ {
        self.cpus.iter().filter_map(move |(cpu, spans)| {
            let (_, until) = spans.last_begun(time)?;
            Some((*cpu, until))
        })
    }

    /// The spans in which events of at least one CPU are missing. A task that is off CPU may have been woken
    /// or may have run in such a span.
    pub fn any(&self) -> &Spans {
        &self.any
    }

    /// The spans of time in which scheduling events of this CPU are missing.
    pub fn of(&self, cpu: CpuId) -> Option<&Spans> {
        self.cpus.get(&cpu)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn spans(list: &[(u64, u64)]) -> Spans {
        let mut spans = Spans::default();
        list.iter()
            .for_each(|(a, b)| spans.insert(Ktime(*a), Ktime(*b)));
        spans
    }

    #[test]
    fn overlapping_spans_become_one() {
        assert_eq!(spans(&[(10, 20), (30, 40), (15, 35)]), spans(&[(10, 40)]));
        assert_eq!(spans(&[(30, 40), (10, 20)]).0.len(), 2);
        assert_eq!(spans(&[(10, 20), (20, 25)]), spans(&[(10, 25)]));
    }

    #[test]
    fn looking_up() {
        let spans = spans(&[(10, 20), (30, 40)]);
        assert_eq!(spans.first_in(Ktime(0), Ktime(10)), None);
        assert_eq!(spans.first_in(Ktime(0), Ktime(11)), Some(Ktime(10)));
        assert_eq!(spans.first_in(Ktime(15), Ktime(16)), Some(Ktime(15)));
        assert_eq!(spans.first_in(Ktime(20), Ktime(100)), Some(Ktime(30)));
        assert!(spans.covers(Ktime(10)) && spans.covers(Ktime(15)));
        assert!(!spans.covers(Ktime(9)) && !spans.covers(Ktime(20)));
        assert!(!spans.covers(Ktime(25)) && !spans.covers(Ktime(40)));
    }
}
