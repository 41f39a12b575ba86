//! Unit tests of the trees of stacks.

use super::*;

/// The time in ns between two samples of a stack.
pub const PERIOD: u64 = 10_000_000;

/// The profile of a run with these numbers of samples by stack, which is written as `program;outermost;...;innermost`.
pub fn profile(stacks: &[(&str, u64)]) -> Profile {
    let mut profile = Profile::default();
    for (stack, samples) in stacks {
        let mut node = None;
        for (depth, function) in stack.split(';').enumerate() {
            let name = if depth == 0 {
                NodeName::Program(ProgramName::new(function))
            } else {
                NodeName::Function(Name {
                    function: function.into(),
                    binary: "bin".into(),
                })
            };
            let name = profile.tree.number(&name);
            node = profile.tree.node(Node { caller: node, name }, NODES);
        }
        profile.all.samples += samples;
        profile.all.ns += samples * PERIOD;
        profile.add(node, samples * PERIOD);
    }
    profile
}

#[test]
fn a_function_that_calls_itself_counts_once() {
    let profile = profile(&[
        ("cc;main;walk;walk;leaf", 3),
        ("cc;main;walk;leaf;walk", 2),
        ("cc;main", 1),
        ("ld;main;leaf", 4),
    ]);
    let functions = profile.functions();
    let of = |program: &str, function: &str| {
        let name = Name {
            function: function.into(),
            binary: "bin".into(),
        };
        let times = functions[&(ProgramName::new(program), name)];
        (times.own / PERIOD, times.total / PERIOD)
    };
    assert_eq!(of("cc", "walk"), (2, 5));
    assert_eq!(of("cc", "leaf"), (3, 5));
    assert_eq!(of("cc", "main"), (1, 6));
    assert_eq!(of("ld", "main"), (0, 4));
    assert_eq!(of("ld", "leaf"), (4, 4));
    assert_eq!(functions.len(), 5);
}

#[test]
fn stacks_are_folded_with_the_means_of_both_sides() {
    let run = |stacks| {
        let mut run = crate::diff::machine::tests::run([1, 1, 1, 1]);
        run.profile = Some(profile(stacks));
        run
    };
    let base = [
        run(&[("cc;main;a;b", 1)]),
        run(&[("cc;main;a;b", 2), ("cc;main", 1)]),
    ];
    let new = [run(&[("cc;main;x", 7), ("cc;main;a;b", 1), ("as;m", 1)])];
    let both = ProfilePair::new([&base, &new]).unwrap();
    assert_eq!(
        both.folded(),
        "as;m 0 10000\ncc;main 5000 0\ncc;main;a;b 15000 10000\ncc;main;x 0 70000\n"
    );
    let mut lacking = run(&[]);
    lacking.profile = None;
    assert!(ProfilePair::new([&base, &[lacking]]).is_none());
}

/// A trace from a stranger can have any number of different stacks.
#[test]
fn stacks_beyond_the_limit_are_left_out() {
    let mut tree = Tree::default();
    let name = tree.number(&NodeName::Function(Name::default()));
    let mut node = |caller| tree.node(Node { caller, name }, 2);
    let program = node(None);
    let function = node(program);
    assert_eq!((program, function), (Some(0), Some(1)));
    assert_eq!(node(function), None);
    assert_eq!(node(program), function, "it is there");
}
