//! Finds the program of every process at every time, and the groups ("cc1", "ld", "make") into which reports
//! sort programs.

use std::collections::HashMap;

use tr_format::event::Ktime;
use tr_programs::program_name::ProgramName;

use crate::arena::Arena;
use crate::model::{Analysis, ExecSpan, Process, ProcessIx};

/// The number of a group of programs. [`Groups::name`] has its name.
pub type Group = u32;

/// The group of programs that every process belongs to at every time.
#[derive(Clone, Debug, Default)]
pub struct Groups {
    names: Vec<ProgramName>,
    numbers: HashMap<ProgramName, Group>,
    /// For each process, its groups of programs in the order of time: when the process began to belong to the
    /// group, and the group. The first group is valid from the beginning of the process. No list is empty.
    spans: Arena<ProcessIx, Vec<(Ktime, Group)>>,
}

impl Groups {
    /// Sorts the programs of all processes into groups. `name` returns the name of the group for a process and one of
    /// its programs (`None` if the program is not known). A child runs the program of its parent until the child's
    /// first exec. So until then, the child belongs to the group that the parent had at the fork.
    pub fn new(
        analysis: &Analysis,
        mut name: impl FnMut(&Process, Option<&ExecSpan>) -> ProgramName,
    ) -> Groups {
        let programs = Programs::new(analysis);
        let mut groups = Groups::default();
        // Groups get their numbers from the programs that processes executed themselves, in the order of the processes.
        for process in &analysis.processes {
            let execs = process.execs.iter();
            let spans = execs.map(|exec| (exec.start, groups.number(name(process, Some(exec)))));
            let spans = spans.collect();
            groups.spans.push(spans);
        }
        // A process that has not executed a program yet belongs to the group of its parent's program. The loop adds
        // these inherited groups to `spans`. `own` is a copy of `spans` from before the loop, with only the groups of
        // executed programs.
        let own = groups.spans.clone();
        for ix in analysis.process_ids() {
            let process = analysis.process(ix);
            if own[ix]
                .first()
                .is_some_and(|(first, _)| *first <= process.start)
            {
                continue;
            }
            let program = programs.at(analysis, ix, process.start);
            let inherited = program.and_then(|(of, exec)| own[of].get(exec as usize));
            let group = match inherited {
                Some((_, group)) => *group,
                None => groups.number(name(process, None)),
            };
            groups.spans[ix].insert(0, (process.start, group));
        }
        groups
    }

    /// The number of the group of programs with this name. A name gets its number at its first use.
    fn number(&mut self, name: ProgramName) -> Group {
        let next = u32::try_from(self.names.len()).unwrap_or(u32::MAX);
        *self.numbers.entry(name).or_insert_with_key(|name| {
            self.names.push(name.clone());
            next
        })
    }

    /// The number of groups of programs.
    pub fn count(&self) -> usize {
        self.names.len()
    }

    /// The name that the programs of a group have.
    pub fn program(&self, group: Group) -> Option<&ProgramName> {
        self.names.get(group as usize)
    }

    /// The name of a group of programs as reports print it.
    pub fn name(&self, group: Group) -> String {
        let program = self.program(group);
        program.map_or_else(String::new, ProgramName::to_string)
    }

    /// The group of programs with this name; `None` if there is none.
    pub fn find(&self, name: &ProgramName) -> Option<Group> {
        self.numbers.get(name).copied()
    }

    /// The group of programs that the program of a process belonged to right after `time`.
    pub fn at(&self, process: ProcessIx, time: Ktime) -> Option<Group> {
        let (_, group) = self.since(process, time).first()?;
        Some(*group)
    }

    /// The groups of programs that a process belonged to from `time` on, each with the time at which the process began
    /// to belong to the group.
    fn since(&self, process: ProcessIx, time: Ktime) -> &[(Ktime, Group)] {
        let spans = &self.spans[process];
        let after = spans.partition_point(|(from, _)| *from <= time);
        spans.get(after.saturating_sub(1)..).unwrap_or_default()
    }

    /// Splits the time `from..to` of a process where the process changed to another group of programs. Calls `each`
    /// with the group, the beginning and the end of each part.
    pub fn split(
        &self,
        process: ProcessIx,
        from: Ktime,
        to: Ktime,
        mut each: impl FnMut(Group, Ktime, Ktime),
    ) {
        let spans = self.since(process, from);
        let ends = spans.iter().skip(1).map(|(next, _)| (*next).min(to));
        let mut now = from;
        for ((_, group), end) in spans.iter().zip(ends.chain([to])) {
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

/// A program, given as the process that executed it and the index of its exec among the execs of that process.
pub type Program = (ProcessIx, u32);

/// For every process, the program that it ran before its first exec, which is the parent's program at the fork.
#[derive(Clone, Debug, Default)]
pub struct Programs(Arena<ProcessIx, Option<Program>>);

impl Programs {
    /// For every process of an analysis, finds the program that the process ran before the process's first exec.
    pub fn new(analysis: &Analysis) -> Programs {
        let mut inherited: Arena<_, _> = analysis.process_ids().map(|_| None).collect();
        let mut visited: Arena<_, _> = analysis.process_ids().map(|_| false).collect();
        for first in analysis.process_ids() {
            // The walk ends at the first ancestor whose program is known, and at processes that were visited earlier.
            // So each process is visited once, however long the chains of parents are.
            let (mut chain, mut at) = (Vec::new(), first);
            let program = loop {
                if std::mem::replace(&mut visited[at], true) {
                    break inherited[at];
                }
                chain.push(at);
                let process = analysis.process(at);
                let Some(parent) = process.parent else {
                    break None;
                };
                let own = own_program(analysis, parent, process.start);
                if own.is_some() {
                    break own;
                }
                at = parent;
            };
            for at in chain {
                inherited[at] = program;
            }
        }
        Programs(inherited)
    }

    /// The program that a process ran right after `time`.
    pub fn at(&self, analysis: &Analysis, process: ProcessIx, time: Ktime) -> Option<Program> {
        own_program(analysis, process, time).or(self.0[process])
    }
}

/// The program that the process executed by its last exec at or before `time`; `None` if there was no such exec.
fn own_program(analysis: &Analysis, process: ProcessIx, time: Ktime) -> Option<Program> {
    let execs = &analysis.process(process).execs;
    let at = execs.partition_point(|exec| exec.start <= time);
    Some((process, u32::try_from(at.checked_sub(1)?).ok()?))
}

pub(crate) fn exec_of(analysis: &Analysis, (process, at): Program) -> Option<&ExecSpan> {
    analysis.process(process).execs.get(at as usize)
}

/// The process that decided to sleep, and the time of the decision. If the given process runs sleep(1), its parent
/// made the decision, unless sleep(1) is COMMAND itself.
pub fn sleeper(analysis: &Analysis, process: ProcessIx, time: Ktime) -> (ProcessIx, Ktime) {
    let parent = || {
        let exec = exec_of(analysis, own_program(analysis, process, time)?)?;
        let name = exec.filename.rsplit(|byte| *byte == b'/').next()?;
        let process = analysis.process(process);
        let for_parent = name == b"sleep" && analysis.meta.root != Some(process.pid);
        Some((process.parent.filter(|_| for_parent)?, process.start))
    };
    parent().unwrap_or((process, time))
}
