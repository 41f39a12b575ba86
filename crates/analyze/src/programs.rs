//! Which program a process was when, and the groups that a reader sorts these
//! programs into ("cc1", "ld", "make").

use std::collections::HashMap;

use tr_format::event::Ktime;

use crate::model::{Analysis, ExecSpan, Process, ProcessIx};

/// A group, by its number; [`Groups::name`] tells its name.
pub type Group = u32;

/// The group that every process belonged to at every time.
#[derive(Clone, Debug, Default)]
pub struct Groups {
    names: Vec<String>,
    /// For each process from when on it belonged to which; the first entry
    /// holds from its beginning.
    spans: Vec<Vec<(Ktime, Group)>>,
}

impl Groups {
    /// Groups named by `name`: it is given a process, and which of that
    /// process's programs. A child that has not called exec yet still is what
    /// its parent was when it forked, so it is asked for with the parent's
    /// process and program. `None`: no program is known of it.
    pub fn new(
        analysis: &Analysis,
        mut name: impl FnMut(&Process, Option<&ExecSpan>) -> String,
    ) -> Groups {
        let mut groups = Groups::default();
        let programs = Programs::new(analysis);
        let mut known: HashMap<String, Group> = HashMap::new();
        // One name for each program that any process was.
        let mut group_of = |groups: &mut Groups, process: &Process, exec: Option<&ExecSpan>| {
            let name = name(process, exec);
            let next = u32::try_from(groups.names.len()).unwrap_or(u32::MAX);
            *known.entry(name).or_insert_with_key(|name| {
                groups.names.push(name.clone());
                next
            })
        };
        let own: Vec<Vec<Group>> = analysis
            .processes
            .iter()
            .map(|process| {
                let execs = process.execs.iter();
                execs
                    .map(|exec| group_of(&mut groups, process, Some(exec)))
                    .collect()
            })
            .collect();
        for (process, at) in analysis.processes.iter().zip(0..) {
            let execs = own.get(at as usize).map_or(&[][..], Vec::as_slice);
            let starts = process.execs.iter().map(|exec| exec.start);
            let mut spans: Vec<(Ktime, Group)> = starts.zip(execs.iter().copied()).collect();
            if spans
                .first()
                .is_none_or(|(first, _)| *first > process.start)
            {
                let group = match programs.at(analysis, ProcessIx(at), process.start) {
                    Some((ProcessIx(origin), exec)) => own
                        .get(origin as usize)
                        .and_then(|own| own.get(exec as usize)),
                    None => None,
                };
                let group = match group {
                    Some(group) => *group,
                    None => group_of(&mut groups, process, None),
                };
                spans.insert(0, (process.start, group));
            }
            groups.spans.push(spans);
        }
        groups
    }

    /// How many groups there are.
    pub fn count(&self) -> usize {
        self.names.len()
    }

    /// A group's name.
    pub fn name(&self, group: Group) -> &str {
        self.names.get(group as usize).map_or("", String::as_str)
    }

    /// The group with this name.
    pub fn find(&self, name: &str) -> Option<Group> {
        let at = self.names.iter().position(|known| known == name)?;
        Group::try_from(at).ok()
    }

    /// What a process was right after `time`.
    pub fn at(&self, process: ProcessIx, time: Ktime) -> Option<Group> {
        let spans = self.spans.get(process.0 as usize)?;
        let at = spans.partition_point(|(from, _)| *from <= time);
        let (_, group) = spans.get(at.saturating_sub(1))?;
        Some(*group)
    }

    /// Gives each part of `from..to` with the group that the process then was.
    pub fn split(
        &self,
        process: ProcessIx,
        from: Ktime,
        to: Ktime,
        mut each: impl FnMut(Group, Ktime, Ktime),
    ) {
        let Some(spans) = self.spans.get(process.0 as usize) else {
            return;
        };
        let first = spans
            .partition_point(|(begin, _)| *begin <= from)
            .saturating_sub(1);
        let mut now = from;
        for at in first..spans.len() {
            let Some((_, group)) = spans.get(at) else {
                break;
            };
            let end = spans.get(at + 1).map_or(to, |(next, _)| (*next).min(to));
            if end > now {
                each(*group, now, end);
                now = end;
            }
            if now >= to {
                break;
            }
        }
    }
}

/// A program: the process that executed it, and its place among that one's execs.
pub type Program = (ProcessIx, u32);

/// What every process was before its first exec: what its parent was when it
/// was forked.
#[derive(Clone, Debug, Default)]
pub struct Programs(Vec<Option<Program>>);

impl Programs {
    /// Of all processes of an analysis.
    pub fn new(analysis: &Analysis) -> Programs {
        let count = analysis.processes.len();
        let mut inherited: Vec<Option<Program>> = vec![None; count];
        let mut known = vec![false; count];
        for first in 0..count {
            // Up to an ancestor of which it is known: each process is gone
            // through once, however long the chain. A circle, which only a
            // damaged trace has, ends where it began.
            let mut way = Vec::new();
            let mut at = first;
            let program = loop {
                match known.get_mut(at) {
                    Some(known) if !*known => *known = true,
                    _ => break inherited.get(at).copied().flatten(),
                }
                way.push(at);
                let process = analysis.processes.get(at);
                let start = process.map_or(Ktime(0), |process| process.start);
                let Some(parent) = process.and_then(|process| process.parent) else {
                    break None;
                };
                if let Some(own) = own_program(analysis, parent, start) {
                    break Some(own);
                }
                at = parent.0 as usize;
            };
            for at in way {
                if let Some(slot) = inherited.get_mut(at) {
                    *slot = program;
                }
            }
        }
        Programs(inherited)
    }

    /// The program that a process was right after `time`.
    pub fn at(&self, analysis: &Analysis, process: ProcessIx, time: Ktime) -> Option<Program> {
        let inherited = || self.0.get(process.0 as usize).copied().flatten();
        own_program(analysis, process, time).or_else(inherited)
    }
}

/// The last exec of a process's own by then.
fn own_program(analysis: &Analysis, process: ProcessIx, time: Ktime) -> Option<Program> {
    let of = analysis.processes.get(process.0 as usize)?;
    let at = of.execs.partition_point(|exec| exec.start <= time);
    Some((process, u32::try_from(at.checked_sub(1)?).ok()?))
}

/// Whose decision a sleep was, and when it was made: sleep(1) does what its parent
/// has told it.
pub fn sleeper(analysis: &Analysis, process: ProcessIx, time: Ktime) -> (ProcessIx, Ktime) {
    let told = || {
        let of = analysis.processes.get(process.0 as usize)?;
        let (_, at) = own_program(analysis, process, time)?;
        let exec = of.execs.get(at as usize)?;
        let name = exec.filename.rsplit(|byte| *byte == b'/').next()?;
        Some((of.parent.filter(|_| name == b"sleep")?, of.start))
    };
    told().unwrap_or((process, time))
}
