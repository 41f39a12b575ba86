//! Unit tests of the comparison of steps.

use super::*;
use tr_insight::verdicts::parts::PartTimes;

/// A run with these steps, each with its name, wall time and CPU time.
fn run(steps: &[(&str, u64, Option<u64>)]) -> Run {
    let step = |(name, wall, on_cpu): &(&str, u64, Option<u64>)| {
        let sum = StepSum {
            count: 1,
            wall: *wall,
            on_cpu: *on_cpu,
            starved: Some(0),
            path: Some(0),
            parts: on_cpu.map(|ns| {
                PartTimes::from_iter([(WallPart::Work, ns), (WallPart::Others, *wall - ns)])
            }),
            ..StepSum::default()
        };
        ((StepKind::Target, (*name).into()), sum)
    };
    Run {
        cpus: 1,
        method: "bpf".into(),
        steps: steps.iter().map(step).collect(),
        ..Run::default()
    }
}

fn found(base: &[Run], new: &[Run]) -> Vec<(String, i128, Option<i128>)> {
    let ask = Ask {
        top: 9,
        least: 100,
        gate: None,
        strict: false,
    };
    let changes = changes(Sides { base, new }, &ask).into_iter();
    let row = |change: StepChange| {
        let on_cpu = change.on_cpu.map(|judged| judged.difference());
        (
            change.name.short().to_owned(),
            change.wall.difference(),
            on_cpu,
        )
    };
    changes.map(row).collect()
}

#[test]
fn steps_that_differ_are_found_by_their_names() {
    let base = run(&[
        ("slower", 1000, Some(500)),
        ("same", 1000, Some(500)),
        ("gone", 300, Some(0)),
        ("cpu only", 1000, Some(500)),
        ("unknown", 1000, None),
    ]);
    let new = run(&[
        ("slower", 1800, Some(500)),
        ("same", 1099, Some(401)),
        ("new", 200, Some(150)),
        ("cpu only", 1000, Some(600)),
        ("unknown", 500, Some(100)),
    ]);
    let row = |name: &str, wall, on_cpu| (name.to_owned(), wall, on_cpu);
    let want = [
        row("slower", 800, Some(0)),
        row("unknown", -500, None),
        row("gone", -300, Some(0)),
        row("new", 200, Some(150)),
        row("cpu only", 0, Some(100)),
    ];
    assert_eq!(found(&[base], &[new]), want);
}

#[test]
fn a_difference_inside_the_spread_is_none() {
    let of = |wall| run(&[("a", wall, Some(0))]);
    assert_eq!(found(&[of(1000), of(2000)], &[of(1900), of(2100)]), []);
    let more = ("a".to_owned(), 8000, Some(0));
    assert_eq!(
        found(&[of(1000), of(2000)], &[of(9000), of(10_000)]),
        [more]
    );
}

/// A run with a step whose wall time has these parts. The step failed `failed` times.
fn with(parts: &[(WallPart, u64)], failed: u64) -> Run {
    let wall = parts.iter().map(|(_, ns)| ns).sum();
    let mut run = run(&[("x", wall, Some(0))]);
    for sum in run.steps.values_mut() {
        sum.parts = Some(parts.iter().copied().collect());
        sum.failed = failed;
        sum.held = (failed > 0).then(|| "held".to_owned());
    }
    run
}

#[test]
fn a_slower_step_has_the_part_that_grew() {
    let ask = Ask {
        top: 9,
        least: 100,
        gate: None,
        strict: false,
    };
    let base = with(&[(WallPart::Work, 1000), (WallPart::Others, 100)], 0);
    let of = |parts: &[(WallPart, u64)], failed| {
        let sides = Sides {
            base: std::slice::from_ref(&base),
            new: &[with(parts, failed)],
        };
        let it = changes(sides, &ask);
        let it = it.into_iter().next()?;
        let more = it.more.map(|(part, more)| (part, more.difference()));
        Some((more, (it.failed.base, it.failed.new), it.held.is_some()))
    };
    let work = [(WallPart::Work, 3100), (WallPart::Others, 120)];
    assert_eq!(
        of(&work, 0),
        Some((Some((WallPart::Work, 2100)), (0, 0), false))
    );
    let starved = [(WallPart::Work, 1100), (WallPart::Others, 2100)];
    let more = Some((WallPart::Others, 2000));
    assert_eq!(of(&starved, 1), Some((more, (0, 1), true)));
    // No part of the step's wall time has at least half of the growth of the step's wall time.
    let even = [
        (WallPart::Work, 1400),
        (WallPart::Others, 500),
        (WallPart::Disk, 400),
    ];
    assert_eq!(of(&even, 0), Some((None, (0, 0), false)));
    // A step that takes as long as before is shown only if it fails now. If a step became shorter, no part of its wall
    // time grew.
    let same = [(WallPart::Work, 1000), (WallPart::Others, 101)];
    assert_eq!(of(&same, 1), Some((None, (0, 1), true)));
    assert_eq!(of(&same, 0), None);
    assert_eq!(of(&[(WallPart::Work, 300)], 0), Some((None, (0, 0), false)));
}
