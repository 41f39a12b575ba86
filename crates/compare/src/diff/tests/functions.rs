//! Unit tests of the functions that differ.

use super::*;
use crate::diff::machine::tests::{diff, run};
use crate::diff::profile::tests::{profile, PERIOD};
use crate::diff::programs::ProgramChange;
use crate::diff::spread::PerSide;
use crate::diff::{explain, flame, html, Diff};

fn with(stacks: &[(&str, u64)]) -> Run {
    let mut run = run([10, 10, 1, 1]);
    run.profile = Some(profile(stacks));
    run
}

fn names(diff: &Diff) -> Vec<(&str, i128)> {
    let all = diff.functions.iter().flatten();
    let all = all.filter(|it| it.own.differs(1));
    all.map(|it| {
        let samples = it.own.time.difference() / i128::from(PERIOD);
        (it.name.function.as_str(), samples)
    })
    .collect()
}

#[test]
fn differences_beyond_the_noise_are_named() {
    // A difference is named if it is larger than three standard deviations: 3 √n for 0 and n samples, and 3 √250 = 47
    // for 100 and 150 samples.
    for (before, now, differs) in [
        (0, 9, false),
        (0, 10, true),
        (100, 147, false),
        (100, 150, true),
        (150, 100, true),
        (1000, 1100, false),
        (1000, 1140, true),
    ] {
        let stacks = [("cc;main;f", before), ("cc;main;g", 500)];
        let base = with(&stacks);
        let new = with(&[("cc;main;f", now), ("cc;main;g", 500)]);
        let diff = diff(base, new);
        let expected = [("f", i128::from(now) - i128::from(before))];
        let expected: &[_] = if differs { &expected } else { &[] };
        assert_eq!(names(&diff), expected, "{before} {now}");
    }
}

/// Equal programs, sampled twice: of 2,000 functions with 100 samples each on average about five
/// differ by more than three standard deviations.
#[test]
fn noise_is_not_named() {
    let mut state = 42u64;
    let mut random = || {
        state = state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1);
        (state >> 33) as f64 / (1u64 << 31) as f64
    };
    // Random numbers of a Poisson distribution by Knuth's method: random factors are counted until their product is
    // below e^-100.
    let mut samples = || {
        let (mut count, mut sum) = (0, 0.0);
        while sum < 100.0 {
            sum -= random().max(1e-12).ln();
            count += 1;
        }
        count - 1
    };
    let names_of: Vec<String> = (0..2000).map(|at| format!("cc;f{at}")).collect();
    let mut side = || {
        let stacks = names_of.iter().map(|name| (name.as_str(), samples()));
        with(&stacks.collect::<Vec<_>>())
    };
    let diff = diff(side(), side());
    let found = names(&diff).len();
    assert!((1..=15).contains(&found), "{found}");
}

#[test]
fn a_slower_program_has_its_function() {
    let base = with(&[
        ("cc;main;parse", 100),
        ("cc;main;emit", 300),
        ("ld;main", 50),
    ]);
    let new = with(&[
        ("cc;main;parse", 400),
        ("cc;main;emit", 310),
        ("ld;main", 50),
    ]);
    let diff = diff(base, new);
    let program = |name: &str, base, new| ProgramChange {
        name: ProgramName::new(name),
        count: PerSide { base: 1, new: 1 },
        on_cpu: Difference::new(&[base], &[new]).unwrap(),
        path: None,
    };
    let grown = |program: &ProgramChange| {
        explain::grown(&diff, program).map(|it| it.name.function.as_str())
    };
    assert_eq!(grown(&program("cc", 4, 7)), Some("parse"));
    assert_eq!(grown(&program("cc", 7, 4)), None, "it is faster");
    assert_eq!(grown(&program("ld", 4, 7)), None);
    // `main` itself has not grown, but the functions that it calls have.
    let all: Vec<_> = diff.functions.iter().flatten().collect();
    let main = all.iter().find(|it| it.name.function == "main");
    assert!(main.is_some_and(|it| !it.own.differs(1) && it.total.differs(1)));
}

#[test]
fn without_stacks_nothing_is_compared() {
    let neither = diff(run([10, 10, 1, 1]), run([10, 10, 1, 1]));
    assert!(neither.functions.is_none() && explain::stack_warnings(&neither).is_empty());
    let mut lacking = run([10, 10, 1, 1]);
    lacking.file = "a.bin".into();
    let one = diff(lacking, with(&[("cc;main", 100)]));
    assert!(one.functions.is_none());
    assert_eq!(
        explain::stack_warnings(&one),
        ["a.bin has no stacks: functions are not compared"]
    );
    assert!(explain::folded(&one).is_err_and(|why| why.starts_with("a.bin: no stacks")));
    let mut page = String::new();
    flame::flame_card(&one, &mut page);
    assert!(page.is_empty());
}

#[test]
fn names_are_no_markup() {
    let base = with(&[("cc;<script>alert(1)</script>", 100)]);
    let new = with(&[("cc;<script>alert(1)</script>", 300)]);
    let page = html::render(&diff(base, new));
    assert!(!page.contains("<script") && page.contains("&lt;script&gt;"));
}
