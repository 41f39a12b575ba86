//! Computes the time on a CPU of every process in every interval. The values of a process add up to its on-CPU time, to
//! the nanosecond. Without scheduling events, the recording has only a thread's total CPU time at some moments, and the
//! time between two totals is divided evenly.

use tr_analyze::model::Process;

use crate::cpus::cpu_time::{on_cpu, on_cpu_in_intervals};
use crate::views::view::View;

/// The length in nanoseconds of a series' intervals, unless `--interval` is given: a value is printed for each second.
const INTERVAL: u64 = 1_000_000_000;
/// The largest number of values in a series. `VALUES` values take some 200 MB of JSON. A small forged file must not
/// cause such an amount of output, so the limit is also `FEW_VALUES.0` values plus `FEW_VALUES.1` for each event of the
/// recording. The interval is doubled until the values fit.
const VALUES: u64 = 1 << 20;
const FEW_VALUES: (u64, u64) = (1 << 14, 64);

/// The CPU time of each chosen process in intervals of equal length.
pub struct CpuSeries<'a> {
    pub view: View<'a>,
    /// The length in nanoseconds of the intervals of the series.
    pub interval: u64,
    /// The length in nanoseconds of the intervals that the user requested. If the series then has too many values,
    /// `interval` is longer.
    pub asked: u64,
    /// The largest number of values that the series may have for this recording. A value is a pair of a process and an
    /// interval in which the process has CPU time.
    pub most: u64,
    /// For each chosen process, its CPU time in the intervals. The processes are in the order of their starts.
    pub lines: Vec<ProcessSeries<'a>>,
}

pub struct ProcessSeries<'a> {
    pub process: &'a Process,
    /// The process's CPU time: pairs of an interval's number and the nanoseconds on a CPU in that interval. Intervals
    /// without CPU time are left out. Interval 0 begins at the start of the recording.
    pub values: Vec<(u64, u64)>,
}

impl<'a> CpuSeries<'a> {
    pub fn new(view: &View<'a>) -> CpuSeries<'a> {
        let asked = view.ask.interval.unwrap_or(INTERVAL).max(1);
        let processes: Vec<&Process> = view.processes().collect();
        let mut interval = asked;
        let stretches = |interval: u64| {
            let all = processes.iter();
            let all = all.flat_map(|process| on_cpu(view.analysis, process));
            all.fold(0u64, |sum, ran| {
                sum.saturating_add(((ran.to - ran.from) / interval).saturating_add(2))
            })
        };
        let (few, each) = FEW_VALUES;
        let most = view.analysis.events.total().saturating_mul(each);
        let most = most.saturating_add(few).min(VALUES);
        while stretches(interval) > most && interval < u64::MAX / 2 {
            interval *= 2;
        }
        let lines = processes.into_iter().map(|process| ProcessSeries {
            process,
            values: on_cpu_in_intervals(view.analysis, process, interval),
        });
        CpuSeries {
            view: *view,
            interval,
            asked,
            most,
            lines: lines.collect(),
        }
    }

    /// The number of intervals from the start of the recording to the end of the analyzed span.
    pub fn intervals(&self) -> u64 {
        let length = self.view.since(self.view.analysis.end);
        length.div_ceil(self.interval)
    }

    /// The number of the interval in which the analyzed span begins.
    pub fn first(&self) -> u64 {
        self.view.since(self.view.analysis.start) / self.interval
    }

    /// The chosen processes that have CPU time in the analyzed span, the one with the most CPU time first.
    pub fn ranked(&self) -> Vec<&ProcessSeries<'a>> {
        let mut lines: Vec<&ProcessSeries<'a>> = self.lines.iter().collect();
        lines.retain(|line| !line.values.is_empty());
        lines.sort_by_key(|line| {
            let p = line.process;
            (u64::MAX - p.times.on_cpu, p.start, p.pid)
        });
        lines
    }

    /// The processes that CSV and JSON show with their CPU time per interval: all chosen processes, or with `--top`
    /// those with the most CPU time.
    pub fn shown(&self) -> Vec<&ProcessSeries<'a>> {
        match self.view.ask.top {
            None => self.lines.iter().collect(),
            Some(most) => self.ranked().into_iter().take(most).collect(),
        }
    }
}
