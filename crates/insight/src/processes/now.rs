//! Finds the jobs of a command that run at a moment of a recording, and the job that has run longest.

use std::collections::HashMap;

use tr_analyze::awaited::WaitReason;
use tr_analyze::critical_path;
use tr_analyze::model::{Analysis, ProcessIx};

use crate::processes::label;
use tr_text::units;

#[derive(Clone, Debug)]
pub struct Living<T> {
    /// The pid of the process's parent; `None` for the recorded command.
    pub parent: Option<u32>,
    /// The time at which the living process started, in nanoseconds of a clock that the caller chooses.
    pub since: u64,
    /// The event that the living process waits for, as far as it is known.
    pub waits: Option<Waits>,
    /// The name of the living process. The caller chooses the type of the name.
    pub name: T,
}

/// The kind of event that a living process waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Waits {
    /// The process waits for the end of a child.
    Child,
    /// The process waits for data in a pipe, so another process does the work.
    Pipe,
}

/// The largest number of ancestors of a process that are examined. The pids in a damaged file may form a circle.
const MOST_ANCESTORS: usize = 1000;

/// The jobs of a recorded command that run at one moment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Jobs {
    /// The number of jobs. A process is a job if it has no living children, does not wait for a pipe, and all of its
    /// ancestors up to the command are alive.
    pub number: usize,
    /// The pid of the job that has lived longest; `None` if no job runs.
    pub longest: Option<u32>,
    /// The number of ancestors in a row, from the parent of the longest-lived job upwards, that wait for a child and
    /// have only one living child.
    pub waiting: usize,
}

impl Jobs {
    /// Finds the jobs among the living processes, which are given by pid.
    pub fn of<T>(living: &HashMap<u32, Living<T>>) -> Jobs {
        let mut children: HashMap<u32, usize> = HashMap::new();
        for parent in living.values().filter_map(|process| process.parent) {
            *children.entry(parent).or_default() += 1;
        }
        let jobs = living.iter().filter(|(pid, process)| {
            !children.contains_key(pid)
                && process.waits != Some(Waits::Pipe)
                && belongs(living, process)
        });
        let mut all = Jobs {
            number: 0,
            longest: None,
            waiting: 0,
        };
        let mut first = None;
        for (pid, job) in jobs {
            all.number += 1;
            let this = (job.since, *pid);
            first = Some(first.map_or(this, |first| this.min(first)));
        }
        all.longest = first.map(|(_, pid)| pid);
        let mut above = all.longest.and_then(|pid| living.get(&pid)?.parent);
        while let Some(pid) = above.filter(|_| all.waiting < MOST_ANCESTORS) {
            let waits = living
                .get(&pid)
                .filter(|process| process.waits == Some(Waits::Child));
            let Some(parent) = waits.filter(|_| children.get(&pid) == Some(&1)) else {
                break;
            };
            all.waiting += 1;
            above = parent.parent;
        }
        all
    }

    /// The running jobs in words: `3 jobs run, longest cc1 big.c 41 s · 2 wait for it`. `longest` has the name of the
    /// job that has run longest, and the time in nanoseconds for which this job has lived.
    pub fn text(&self, longest: Option<(String, u64)>) -> String {
        let Some((name, time)) = longest else {
            return "no job runs".into();
        };
        let time = match time {
            0..60_000_000_000 => format!("{} s", time / 1_000_000_000),
            _ => units::time(time),
        };
        let wait = match self.waiting {
            0 => String::new(),
            1 => " · 1 waits for it".into(),
            n => format!(" · {n} wait for it"),
        };
        match self.number {
            1 => format!("1 job runs, {name} {time}{wait}"),
            n => format!("{n} jobs run, longest {name} {time}{wait}"),
        }
    }
}

/// Whether all ancestors of a living process are alive, up to COMMAND.
fn belongs<T>(living: &HashMap<u32, Living<T>>, process: &Living<T>) -> bool {
    let mut above = process.parent;
    for _ in 0..MOST_ANCESTORS {
        let Some(pid) = above else { return true };
        let Some(parent) = living.get(&pid) else {
            return false;
        };
        above = parent.parent;
    }
    false
}

/// The jobs that run at the end of the written part of an unfinished recording, in words. Only a recording with a
/// timeline shows whether a process waits.
pub fn of(analysis: &Analysis) -> Option<String> {
    let root = critical_path::root(analysis).ok()?;
    let alive = analysis.process_ids().filter_map(|at| {
        let process = analysis.process(at);
        let above = process.parent.map(|parent| analysis.process(parent).pid.0);
        let living = Living {
            parent: above.filter(|_| at != root),
            since: process.start.0,
            waits: waits(analysis, at),
            name: at,
        };
        let known = process.parent.is_some() || at == root;
        (process.alive && known).then_some((process.pid.0, living))
    });
    let living: HashMap<u32, Living<_>> = alive.collect();
    let jobs = Jobs::of(&living);
    let longest = jobs.longest.and_then(|pid| living.get(&pid));
    Some(jobs.text(longest.map(|longest| {
        let label = label::label(analysis.process(longest.name));
        (label, analysis.end.0.saturating_sub(longest.since))
    })))
}

/// The event that a process waits for at the end of a recording; `None` if the process does not wait for a child or a
/// pipe.
fn waits(analysis: &Analysis, process: ProcessIx) -> Option<Waits> {
    if analysis.waits_for_pipe(process, analysis.end) {
        return Some(Waits::Pipe);
    }
    let leader = analysis.process(process).threads.first()?;
    let stretch = analysis.timeline.as_ref()?.before(*leader, analysis.end)?;
    let is_child = analysis.awaited(*leader, &stretch) == Some(WaitReason::Child);
    is_child.then_some(Waits::Child)
}

/// The text for a time in ns since the start of the recording, such as `1:12` or `1:01:12`.
pub fn clock(ns: u64) -> String {
    let seconds = ns / 1_000_000_000;
    let (hours, minutes, seconds) = (seconds / 3600, seconds / 60 % 60, seconds % 60);
    match hours {
        0 => format!("{minutes}:{seconds:02}"),
        _ => format!("{hours}:{minutes:02}:{seconds:02}"),
    }
}

#[cfg(test)]
#[path = "tests/now.rs"]
mod tests;
