//! Which process of one run is which of another: by its arguments and its place
//! in the tree.
//!
//! The runs are taken one after the other. A process is looked for among the
//! children of what its parent was found to be, by the surest of the ways that
//! [`Proc::keys`] has, then by the next; of several that are alike in the order
//! of their start. What has no place there is looked for anywhere: it may have
//! got another parent. What is not found at all is new.

use std::collections::{HashMap, VecDeque};

use super::run::{Figures, Proc, Run, WAYS};

/// The same process in several runs.
#[derive(Clone, Debug)]
pub struct Slot {
    /// Its parent.
    pub parent: Option<usize>,
    /// From the latest run that has it.
    pub program: String,
    /// From the latest run that has it.
    pub label: String,
    /// In each run its values, if it was there.
    pub runs: Vec<Option<Figures>>,
    keys: [u64; WAYS],
}

/// The processes of all runs. Parents stand in front of their children but
/// where a later run has another tree.
pub fn align(runs: &[&Run]) -> Vec<Slot> {
    let mut slots: Vec<Slot> = Vec::new();
    for (number, run) in runs.iter().enumerate() {
        let found = find(&slots, run);
        let mut places: Vec<Option<usize>> = Vec::with_capacity(found.len());
        for (process, found) in run.processes.iter().zip(found) {
            let parent = process
                .parent
                .and_then(|at| places.get(at).copied().flatten());
            let place = match found {
                Some(place) => place,
                None => {
                    slots.push(Slot {
                        parent,
                        program: String::new(),
                        label: String::new(),
                        runs: vec![None; runs.len()],
                        keys: process.keys,
                    });
                    slots.len() - 1
                }
            };
            if let Some(slot) = slots.get_mut(place) {
                slot.program.clone_from(&process.program);
                slot.label.clone_from(&process.label);
                if let Some(figures) = slot.runs.get_mut(number) {
                    *figures = Some(process.figures);
                }
            }
            places.push(Some(place));
        }
    }
    slots
}

/// Slots that are alike, in order; those that are taken are passed over.
type Queues<K> = HashMap<K, VecDeque<usize>>;

struct Search<'a> {
    processes: &'a [Proc],
    found: Vec<Option<usize>>,
    taken: Vec<bool>,
}

impl Search<'_> {
    fn take<K: std::hash::Hash + Eq>(&mut self, queues: &mut Queues<K>, key: &K, at: usize) {
        let Some(queue) = queues.get_mut(key) else {
            return;
        };
        while let Some(place) = queue.pop_front() {
            if let Some(taken) = self.taken.get_mut(place).filter(|taken| !**taken) {
                *taken = true;
                if let Some(found) = self.found.get_mut(at) {
                    *found = Some(place);
                }
                return;
            }
        }
    }

    /// The slot that a process's parent is; `None` inside for a root, outside
    /// for a parent that is in no slot.
    #[allow(clippy::option_option)] // no parent is not the same as a new one
    fn place_of_parent(&self, process: &Proc) -> Option<Option<usize>> {
        match process.parent {
            None => Some(None),
            Some(at) => self.found.get(at).copied().flatten().map(Some),
        }
    }

    /// They are the same, if neither is another's.
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

/// For each process of a run the slot that it is, if there is one.
fn find(slots: &[Slot], run: &Run) -> Vec<Option<usize>> {
    let mut search = Search {
        processes: &run.processes,
        found: vec![None; run.processes.len()],
        taken: vec![false; slots.len()],
    };
    let mut below: Queues<(Option<usize>, usize, u64)> = HashMap::new();
    let mut anywhere: Queues<(usize, u64)> = HashMap::new();
    for (place, slot) in slots.iter().enumerate() {
        for (way, key) in slot.keys.into_iter().enumerate() {
            let queue = below.entry((slot.parent, way, key)).or_default();
            queue.push_back(place);
            anywhere.entry((way, key)).or_default().push_back(place);
        }
    }
    let mut programs: HashMap<(Option<usize>, &str), Vec<usize>> = HashMap::new();
    for (place, slot) in slots.iter().enumerate() {
        let of = programs.entry((slot.parent, &slot.program)).or_default();
        of.push(place);
    }
    // Generation by generation, so that a parent is found before its children.
    let generations = generations(search.processes);
    for generation in &generations {
        for way in 0..WAYS {
            for at in generation {
                let Some(process) = search.processes.get(*at).filter(|_| search.missing(*at))
                else {
                    continue;
                };
                // Below a parent that is new there is nothing to find.
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
    for way in 0..WAYS {
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

/// A program that either side has once is the same, whatever its arguments and
/// its place: `make` under a wrapper.
fn only_one(search: &mut Search<'_>, slots: &[Slot]) {
    fn single<'a>(all: impl Iterator<Item = &'a str>) -> HashMap<&'a str, Option<usize>> {
        let mut single = HashMap::new();
        for (at, program) in all.enumerate() {
            let once = single.entry(program).or_insert(Some(at));
            *once = once.filter(|first| *first == at);
        }
        single
    }
    let here = single(search.processes.iter().map(|p| p.program.as_str()));
    let there = single(slots.iter().map(|slot| slot.program.as_str()));
    for (program, at) in here {
        if let (Some(at), Some(Some(place))) = (at, there.get(program)) {
            search.pair(at, *place);
        }
    }
}

/// Of one parent all children of a program, when none of them was found and there
/// are as many on either side: in the order of their start they are the same,
/// with other arguments (`sleep 1` for `sleep 2`; COMMAND itself).
fn all_of_program(
    search: &mut Search<'_>,
    there: &HashMap<(Option<usize>, &str), Vec<usize>>,
    generation: &[usize],
) {
    let processes = search.processes;
    let mut here: HashMap<(Option<usize>, &str), Vec<usize>> = HashMap::new();
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

/// The places of the processes by their distance from the root.
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
mod tests {
    use super::*;

    /// Each with its parent's place and its keys: exact, then label.
    fn run(processes: &[(Option<usize>, u64, u64)]) -> Run {
        let process = |(parent, exact, label): &(Option<usize>, u64, u64)| Proc {
            parent: *parent,
            keys: [*exact, *exact, *exact, *label],
            program: format!("{label}"),
            label: format!("{exact}"),
            figures: Figures::default(),
        };
        Run {
            file: String::new(),
            command: String::new(),
            status: None,
            cpus: 1,
            kernel: String::new(),
            cut: false,
            lost: false,
            figures: Figures::default(),
            processes: processes.iter().map(process).collect(),
        }
    }

    /// For each slot its label in either run.
    fn pairs(base: &Run, new: &Run) -> Vec<(bool, bool, String)> {
        let slots = align(&[base, new]);
        let row = |slot: &Slot| {
            let there = |at| {
                slot.runs
                    .get(at)
                    .is_some_and(|run: &Option<_>| run.is_some())
            };
            (there(0), there(1), slot.label.clone())
        };
        slots.iter().map(row).collect()
    }

    #[test]
    fn place_comes_before_looks() {
        // make ─ cc(a) ─ cc1 ; make ─ cc(b) ─ cc1, started in the other order.
        let base = run(&[
            (None, 1, 1),
            (Some(0), 10, 10),
            (Some(0), 20, 20),
            (Some(1), 5, 5),
            (Some(2), 5, 5),
        ]);
        let new = run(&[
            (None, 2, 1), // make with another option
            (Some(0), 20, 20),
            (Some(0), 10, 10),
            (Some(1), 5, 5),
            (Some(2), 5, 5),
        ]);
        let slots = align(&[&base, &new]);
        assert_eq!(slots.len(), 5, "every process has found itself");
        let parents: Vec<_> = find(&align(&[&base]), &new);
        assert_eq!(parents, [0, 2, 1, 4, 3].map(Some), "each below its own cc");
    }

    #[test]
    fn what_is_new_or_gone_is_told() {
        let base = run(&[(None, 1, 1), (Some(0), 10, 9), (Some(0), 30, 30)]);
        let new = run(&[
            (None, 1, 1),
            (Some(0), 11, 9), // the same label, other options
            (Some(0), 40, 40),
            (Some(2), 30, 30), // wrapped into another process
        ]);
        let is = |base, new, label: &str| (base, new, label.to_owned());
        assert_eq!(
            pairs(&base, &new),
            [
                is(true, true, "1"),
                is(true, true, "11"),
                is(true, true, "30"),
                is(false, true, "40")
            ]
        );
        let gone = run(&[(None, 1, 1)]);
        assert_eq!(
            pairs(&base, &gone),
            [
                is(true, true, "1"),
                is(true, false, "10"),
                is(true, false, "30")
            ]
        );
    }
}
