//! Unit tests of the commands of both sides.

use super::*;
use crate::diff::machine::tests;
use crate::diff::run::Proc;
use crate::diff::run::{Figure, Figures};
use crate::diff::Ask;
use crate::diff::{commands, conclusion, gate, json, warnings};
use tr_programs::program_name::ProgramName;
use tr_text::phrase::Phrase;

/// A run of COMMAND, which has a command line and a key, with processes below it that have the given keys.
fn run(command: (&str, u64), below: &[u64]) -> Run {
    let process = |parent, key| Proc {
        parent,
        keys: [key; 4],
        program: ProgramName::new(format!("program {key}")),
        label: format!("process {key}").into(),
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
    crate::diff::compare(vec![base], vec![new], ask)
}

#[test]
fn commands_with_nothing_in_common_are_not_judged() {
    let strange = diff(run(("make", 1), &[3, 4]), run(("npm test", 2), &[5]));
    let said = warnings::warnings(&strange);
    assert_eq!(said, ["not the same command: make; npm test"]);
    let why = gate::judge(&strange).unwrap().unwrap_err();
    assert!(why.contains("no other process is on both sides"), "{why}");
    // Two command lines can be different commands although they have the same program, such as a shell.
    let shell = |key| {
        let mut run = run((&format!("sh -c {key}"), key), &[key + 10]);
        run.processes[0].program = ProgramName::new("sh");
        run
    };
    assert!(gate::judge(&diff(shell(1), shell(2))).unwrap().is_err());
}

/// JSON is a machine format, so it has the whole label of a process, also in its sentences.
#[test]
fn json_has_whole_labels_and_text_has_short_ones() {
    let run = |wall| {
        let mut run = run(("make", 1), &[3]);
        let times = tr_analyze::model::Times::default();
        run.figures = Figures::new(wall, &times, None, None);
        run.processes[1].figures = run.figures;
        run.processes[1].label = Phrase::name("python3 gather --all --verbose", 20);
        run
    };
    let diff = diff(run(1_000_000_000), run(9_000_000_000));
    let json = json::render(&diff).unwrap();
    let value: serde_json::Value = serde_json::from_str(&json).unwrap();
    assert_eq!(
        value["changes"][0]["label"],
        "python3 gather --all --verbose"
    );
    let sentence = conclusion::sentence(&diff);
    assert_eq!(value["conclusion"], sentence.whole());
    assert!(sentence
        .whole()
        .contains("; most of all python3 gather --all --verbose "));
    assert!(
        !sentence.short().contains("gather --all --verbose"),
        "{}",
        sentence.short()
    );
}

#[test]
fn a_wrapper_is_named_and_judged() {
    let wrapped = diff(run(("make", 1), &[3, 4]), run(("strace make", 2), &[1, 3]));
    assert_eq!(
        commands::other_commands(&wrapped).unwrap(),
        "not the same command: make; strace make"
    );
    assert!(gate::judge(&wrapped).unwrap().is_ok());
    // If the wrapped command is a single process, the wrapper causes no error either.
    let wrapped = diff(run(("sleep 1", 1), &[]), run(("sh -c 'sleep 1'", 2), &[1]));
    assert!(commands::other_commands(&wrapped).is_some() && gate::judge(&wrapped).unwrap().is_ok());
}

#[test]
fn arguments_that_differ_between_runs_are_the_same_command() {
    let same = diff(
        run(("make O=/tmp/a", 1), &[3]),
        run(("make O=/tmp/b", 1), &[5]),
    );
    assert_eq!(commands::other_commands(&same), None);
    assert!(gate::judge(&same).unwrap().is_ok());
    // A recording by pid has no known command. So there must be no warning that the commands of the two sides differ.
    let mut other = run(("", 2), &[5]);
    other.root = None;
    assert_eq!(
        commands::other_commands(&diff(run(("make", 1), &[3]), other)),
        None
    );
}

#[test]
fn each_command_has_its_part_of_the_line() {
    let long = |letter: &str| letter.repeat(60);
    let title = commands::title(
        &diff(run((&long("a"), 1), &[]), run((&long("b"), 2), &[])),
        80,
    );
    let (base, new) = title.split_once(" → ").unwrap();
    assert!(base.starts_with("aaa") && new.starts_with("bbb"), "{title}");
    assert_eq!((units::width(base), units::width(new)), (38, 38));
    // The longer command gets the columns that the shorter one does not need.
    let title = commands::title(&diff(run(("make", 1), &[]), run((&long("b"), 2), &[])), 80);
    assert_eq!(title, format!("make → {}", long("b")));
    let title = commands::title(
        &diff(run((&long("a"), 1), &[]), run((&long("a"), 1), &[])),
        80,
    );
    assert_eq!(title, long("a"));
}
