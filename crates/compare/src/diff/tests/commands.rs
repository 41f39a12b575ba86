//! Unit tests of the commands of both sides.

use super::*;
use crate::diff::machine::tests;
use crate::diff::run::Proc;
use crate::diff::run::{Figure, Figures};
use crate::diff::Ask;

/// A run of COMMAND, with a key, and of processes below it.
fn run(command: (&str, u64), below: &[u64]) -> Run {
    let process = |parent, key| Proc {
        parent,
        keys: [key; 4],
        program: format!("program {key}"),
        label: format!("process {key}"),
        figures: Figures::default(),
    };
    let (command, key) = command;
    let below = below.iter().map(|key| process(Some(0), *key));
    Run {
        command: command.to_owned(),
        processes: std::iter::once(process(None, key)).chain(below).collect(),
        root: Some(0),
        ..tests::run([10, 5, 0, 0])
    }
}

fn diff(base: Run, new: Run) -> Diff {
    let ask = Ask {
        top: 9,
        least: 1,
        gate: Some((Figure::Wall, 10.0)),
        strict: false,
    };
    Diff::new(vec![base], vec![new], ask)
}

#[test]
fn commands_with_nothing_in_common_are_not_judged() {
    let strange = diff(run(("make", 1), &[3, 4]), run(("npm test", 2), &[5]));
    let said = strange.warnings();
    assert_eq!(said, ["not the same command: make; npm test"]);
    let why = strange.gate().unwrap().unwrap_err();
    assert!(why.contains("no other process is on both sides"), "{why}");
    // A program in common does not make them one.
    let shell = |key| {
        let mut run = run((&format!("sh -c {key}"), key), &[key + 10]);
        run.processes[0].program = "sh".into();
        run
    };
    assert!(diff(shell(1), shell(2)).gate().unwrap().is_err());
}

#[test]
fn a_wrapper_is_told_and_judged() {
    let wrapped = diff(run(("make", 1), &[3, 4]), run(("strace make", 2), &[1, 3]));
    assert_eq!(
        wrapped.other_commands().unwrap(),
        "not the same command: make; strace make"
    );
    assert!(wrapped.gate().unwrap().is_ok());
    // Of a command that is one process, too.
    let wrapped = diff(run(("sleep 1", 1), &[]), run(("sh -c 'sleep 1'", 2), &[1]));
    assert!(wrapped.other_commands().is_some() && wrapped.gate().unwrap().is_ok());
}

#[test]
fn arguments_that_differ_between_runs_are_the_same_command() {
    let same = diff(
        run(("make O=/tmp/a", 1), &[3]),
        run(("make O=/tmp/b", 1), &[5]),
    );
    assert_eq!(same.other_commands(), None);
    assert!(same.gate().unwrap().is_ok());
    // Of a recording by pid no command is known.
    let mut other = run(("", 2), &[5]);
    other.root = None;
    assert_eq!(diff(run(("make", 1), &[3]), other).other_commands(), None);
}

#[test]
fn each_command_has_its_part_of_the_line() {
    let long = |letter: &str| letter.repeat(60);
    let title = diff(run((&long("a"), 1), &[]), run((&long("b"), 2), &[])).title(80);
    let (base, new) = title.split_once(" → ").unwrap();
    assert!(base.starts_with("aaa") && new.starts_with("bbb"), "{title}");
    assert_eq!((units::width(base), units::width(new)), (38, 38));
    // What one does not need, the other has.
    let title = diff(run(("make", 1), &[]), run((&long("b"), 2), &[])).title(80);
    assert_eq!(title, format!("make → {}", long("b")));
    let title = diff(run((&long("a"), 1), &[]), run((&long("a"), 1), &[])).title(80);
    assert_eq!(title, long("a"));
}
