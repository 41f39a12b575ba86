//! Unit tests of `align`.

use super::*;

/// A run with these processes, each with three values: the index of its parent, the hash of its arguments, and the hash
/// of its label. Processes of two runs are matched by these hashes.
fn run(processes: &[(Option<usize>, u64, u64)]) -> Run {
    let process = |(parent, exact, label): &(Option<usize>, u64, u64)| Proc {
        parent: *parent,
        keys: [*exact, *exact, *exact, *label],
        program: ProgramName::new(label.to_string()),
        label: format!("{exact}").into(),
        figures: Figures::default(),
    };
    Run {
        cpus: 1,
        method: "bpf".into(),
        processes: processes.iter().map(process).collect(),
        ..Run::default()
    }
}

/// For each slot (one process matched across both runs), whether the base has the process, whether the new run has it,
/// and the slot's label.
fn pairs(base: &Run, new: &Run) -> Vec<(bool, bool, String)> {
    let slots = align(&[base, new]);
    let row = |slot: &Slot| {
        let there = |at| {
            slot.runs
                .get(at)
                .is_some_and(|run: &Option<_>| run.is_some())
        };
        (there(0), there(1), slot.label.short().to_owned())
    };
    slots.iter().map(row).collect()
}

#[test]
fn place_in_the_tree_comes_before_arguments() {
    // Both runs have make ─ cc(a) ─ cc1 and make ─ cc(b) ─ cc1, but start them in different orders.
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
    assert_eq!(slots.len(), 5, "every process has its match");
    let parents: Vec<_> = find(&align(&[&base]), &new);
    assert_eq!(parents, [0, 2, 1, 4, 3].map(Some), "each below its own cc");
}

#[test]
fn new_and_gone_processes_have_no_match() {
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
