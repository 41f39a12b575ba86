//! Matches the processes of several runs with each other, by their arguments and their places in the tree of processes.
//!
//! The runs are taken one after the other. The match of a process is looked for among the children of its parent's
//! match: first by the most specific of its [`Proc::keys`], then by the next one, and so on. Processes with equal keys
//! are matched in the order of their start. If no child matches, all processes of the earlier runs are searched,
//! because the process may have another parent now. A process without a match is new.

use std::collections::{HashMap, VecDeque};

use super::run::{Figures, Proc, Run, MATCH_KEYS};
use tr_programs::program_name::ProgramName;
use tr_text::phrase::Phrase;

/// A slot: one process of the build, to which the corresponding processes of several runs are matched.
#[derive(Clone, Debug)]
pub struct Slot {
    /// The index of the slot of this process's parent in the first run that has the process; `None` for a root.
    pub parent: Option<usize>,
    /// The name of the program of this slot's process (one process matched across all runs), from the last run that has
    /// the process.
    pub program: ProgramName,
    /// The label (a short form of the command line) of this slot's process, from the last run that has the process.
    pub label: Phrase,
    /// The figures (times and memory) in each run of this slot's process, which is one process matched across all runs;
    /// `None` for a run that does not have the process.
    pub runs: Vec<Option<Figures>>,
    /// The number of runs in which the process of this slot (one process matched across all runs) is COMMAND itself.
    commands: usize,
    keys: [u64; MATCH_KEYS],
}

impl Slot {
    /// The figures (times and memory) of this slot's process, which is matched across all runs, in the runs of the base
    /// (the first `base` runs), and in the new runs.
    pub fn sides(&self, base: usize) -> (&[Option<Figures>], &[Option<Figures>]) {
        self.runs.split_at(base.min(self.runs.len()))
    }

    /// Whether the process of this slot (one process matched across all runs) exists in at least one run of the base
    /// and in at least one new run.
    pub fn is_on_both(&self, base: usize) -> bool {
        let (base, new) = self.sides(base);
        base.iter().any(Option::is_some) && new.iter().any(Option::is_some)
    }

    /// Whether the process of this slot (one process matched across all runs) is COMMAND in every run that has the
    /// process.
    pub fn is_command(&self) -> bool {
        self.commands == self.runs.iter().flatten().count()
    }
}

/// Matches the processes of all runs with each other, and returns a slot for each process of the build. The slot of a
/// process comes after the slot of its parent ([`Slot::parent`]).
pub fn align(runs: &[&Run]) -> Vec<Slot> {
    let mut slots: Vec<Slot> = Vec::new();
    for (number, run) in runs.iter().enumerate() {
        let found = find(&slots, run);
        let mut places: Vec<Option<usize>> = Vec::with_capacity(found.len());
        for (at, (process, found)) in run.processes.iter().zip(found).enumerate() {
            let parent = process
                .parent
                .and_then(|at| places.get(at).copied().flatten());
            let place = match found {
                Some(place) => place,
                None => {
                    slots.push(Slot {
                        parent,
                        program: ProgramName::default(),
                        label: Phrase::default(),
                        runs: vec![None; runs.len()],
                        commands: 0,
                        keys: process.keys,
                    });
                    slots.len() - 1
                }
            };
            if let Some(slot) = slots.get_mut(place) {
                slot.program.clone_from(&process.program);
                slot.label.clone_from(&process.label);
                slot.commands += usize::from(run.root == Some(at));
                if let Some(figures) = slot.runs.get_mut(number) {
                    *figures = Some(process.figures);
                }
            }
            places.push(Some(place));
        }
    }
    slots
}

/// For each key of a process, such as a hash of its arguments, the indices of the slots (processes of earlier runs)
/// that have this key, in order.
type Queues<K> = HashMap<K, VecDeque<usize>>;

/// The state of the search that matches the processes of one run with slots, which stand for the processes of earlier
/// runs.
struct Search<'a> {
    processes: &'a [Proc],
    /// For each process of the run, the index of the slot (the process of earlier runs) with which the process is
    /// matched; `None` if the process has no match yet.
    found: Vec<Option<usize>>,
    /// For each slot (a process of earlier runs), whether a process of this run is already matched with the slot.
    taken: Vec<bool>,
}

impl Search<'_> {
    /// Matches the process of this run that has the index `at` with the first slot (process of earlier runs) that has
    /// the same key and no match yet.
    fn take<K: std::hash::Hash + Eq>(&mut self, queues: &mut Queues<K>, key: &K, at: usize) {
        let Some(queue) = queues.get_mut(key) else {
            return;
        };
        while let Some(place) = queue.pop_front() {
            if self.taken.get(place) == Some(&false) {
                return self.pair(at, place);
            }
        }
    }

    /// The slot that the parent of a process is matched with: `Some(None)` if the process has no parent, `None` if the
    /// parent has no match.
    #[allow(clippy::option_option)] // a root differs from a child of a new process
    fn place_of_parent(&self, process: &Proc) -> Option<Option<usize>> {
        match process.parent {
            None => Some(None),
            Some(at) => self.found.get(at).copied().flatten().map(Some),
        }
    }

    /// Matches the process of this run that has the index `at` with the slot (the process of earlier runs) that has the
    /// index `place`, unless the process or the slot already has a match.
    fn pair(&mut self, at: usize, place: usize) {
        let (Some(taken), Some(found)) = (self.taken.get_mut(place), self.found.get_mut(at)) else {
            return;
        };
        if !*taken && found.is_none() {
            (*taken, *found) = (true, Some(place));
        }
    }

    fn missing(&self, at: usize) -> bool {
        self.found.get(at).is_some_and(Option::is_none)
    }
}

/// For each process of a run, the index of the slot (the process of earlier runs) with which the process is matched;
/// `None` for a process that no earlier run has.
fn find(slots: &[Slot], run: &Run) -> Vec<Option<usize>> {
    let mut search = Search {
        processes: &run.processes,
        found: vec![None; run.processes.len()],
        taken: vec![false; slots.len()],
    };
    let mut below: Queues<(Option<usize>, usize, u64)> = HashMap::new();
    let mut anywhere: Queues<(usize, u64)> = HashMap::new();
    let mut programs: HashMap<(Option<usize>, &ProgramName), Vec<usize>> = HashMap::new();
    for (place, slot) in slots.iter().enumerate() {
        let of = programs.entry((slot.parent, &slot.program)).or_default();
        of.push(place);
        for (way, key) in slot.keys.into_iter().enumerate() {
            let queue = below.entry((slot.parent, way, key)).or_default();
            queue.push_back(place);
            anywhere.entry((way, key)).or_default().push_back(place);
        }
    }
    // Parents come first, because the match of a child is searched among the children of its parent's match.
    let generations = generations(search.processes);
    for generation in &generations {
        for way in 0..MATCH_KEYS {
            for at in generation {
                let Some(process) = search.processes.get(*at).filter(|_| search.missing(*at))
                else {
                    continue;
                };
                // If the parent of this process has no match so far, there is no match whose children could be
                // searched for this process.
                let Some(parent) = search.place_of_parent(process) else {
                    continue;
                };
                if let Some(key) = process.keys.get(way) {
                    search.take(&mut below, &(parent, way, *key), *at);
                }
            }
        }
        all_of_program(&mut search, &programs, generation);
    }
    for way in 0..MATCH_KEYS {
        for at in 0..search.processes.len() {
            let Some(process) = search.processes.get(at).filter(|_| search.missing(at)) else {
                continue;
            };
            if let Some(key) = process.keys.get(way) {
                search.take(&mut anywhere, &(way, *key), at);
            }
        }
    }
    only_one(&mut search, slots);
    search.found
}

/// Matches the only process of a program in this run with the only one in the earlier runs, if neither has a match.
/// Their arguments and parents may differ. For example, the only `make` now runs under a wrapper.
fn only_one(search: &mut Search<'_>, slots: &[Slot]) {
    fn single<'a>(
        all: impl Iterator<Item = &'a ProgramName>,
    ) -> HashMap<&'a ProgramName, Option<usize>> {
        let mut single = HashMap::new();
        for (at, program) in all.enumerate() {
            let once = single.entry(program).or_insert(Some(at));
            *once = once.filter(|first| *first == at);
        }
        single
    }
    let here = single(search.processes.iter().map(|process| &process.program));
    let there = single(slots.iter().map(|slot| &slot.program));
    for (program, at) in here {
        if let (Some(at), Some(Some(place))) = (at, there.get(program)) {
            search.pair(at, *place);
        }
    }
}

/// Matches the children of one parent that run the same program, in the order of their start. There must be as many of
/// them in this run as in the earlier runs, and none of them may have a match so far. The arguments of two matched
/// processes may differ (`sleep 1` and `sleep 2`; COMMAND itself).
fn all_of_program(
    search: &mut Search<'_>,
    there: &HashMap<(Option<usize>, &ProgramName), Vec<usize>>,
    generation: &[usize],
) {
    let processes = search.processes;
    let mut here: HashMap<(Option<usize>, &ProgramName), Vec<usize>> = HashMap::new();
    for at in generation {
        let Some(process) = processes.get(*at) else {
            continue;
        };
        let Some(parent) = search.place_of_parent(process) else {
            continue;
        };
        let of = here.entry((parent, &process.program)).or_default();
        of.push(*at);
    }
    for (key, here) in here {
        let there = there.get(&key).map_or(&[][..], Vec::as_slice);
        let free = |place: &usize| search.taken.get(*place) == Some(&false);
        let all = there.iter().all(free) && here.iter().all(|at| search.missing(*at));
        if all && here.len() == there.len() {
            for (at, place) in here.iter().zip(there) {
                search.pair(*at, *place);
            }
        }
    }
}

/// The indices of a run's processes, grouped by their depth in the tree of processes: the roots, their children, and so
/// on.
fn generations(processes: &[Proc]) -> Vec<Vec<usize>> {
    let mut depths: Vec<usize> = Vec::with_capacity(processes.len());
    let mut generations: Vec<Vec<usize>> = Vec::new();
    for (at, process) in processes.iter().enumerate() {
        let parent = process.parent.and_then(|parent| depths.get(parent));
        let depth = parent.map_or(0, |depth| depth + 1);
        depths.push(depth);
        if generations.len() <= depth {
            generations.resize_with(depth + 1, Vec::new);
        }
        if let Some(generation) = generations.get_mut(depth) {
            generation.push(at);
        }
    }
    generations
}

#[cfg(test)]
#[path = "tests/align.rs"]
mod tests;
