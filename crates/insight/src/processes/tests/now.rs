use std::collections::HashMap;

use super::{clock, Jobs, Living, Waits};

type Row = (u32, Option<u32>, u64, Option<Waits>);

fn jobs(rows: &[Row]) -> Jobs {
    let living = rows.iter().map(|(pid, parent, since, waits)| {
        let living = Living {
            parent: *parent,
            since: *since,
            waits: *waits,
            name: (),
        };
        (*pid, living)
    });
    Jobs::of(&living.collect::<HashMap<_, _>>())
}

#[test]
fn jobs_are_leaves_that_do_not_wait_for_a_pipe() {
    let child = Some(Waits::Child);
    // make ── sh ── gcc ── cc1, a second compiler (5) and a tee (6) that waits for output
    let all = jobs(&[
        (1, None, 0, child),
        (2, Some(1), 10, child),
        (3, Some(2), 11, child),
        (4, Some(3), 12, None),
        (5, Some(1), 20, None),
        (6, Some(1), 1, Some(Waits::Pipe)),
        // The parent of this process has ended, so it is a daemon and no job.
        (7, Some(99), 2, None),
    ]);
    let expected = Jobs {
        number: 2,
        longest: Some(4),
        waiting: 2,
    };
    assert_eq!(all, expected);
    assert_eq!(
        all.text(Some(("cc1 big.c".into(), 41_900_000_000))),
        "2 jobs run, longest cc1 big.c 41 s · 2 wait for it"
    );
}

#[test]
fn a_parent_that_does_not_wait_is_not_said_to() {
    let all = jobs(&[(1, None, 0, None), (2, Some(1), 1, None)]);
    assert_eq!((all.number, all.longest, all.waiting), (1, Some(2), 0));
    let text = all.text(Some(("cc1 a.c".into(), 78_000_000_000)));
    assert_eq!(text, "1 job runs, cc1 a.c 1:18 min");
}

#[test]
fn circles_and_nothing_end() {
    let child = Some(Waits::Child);
    let circle = jobs(&[(1, Some(2), 0, child), (2, Some(1), 0, child)]);
    assert_eq!(
        (circle.number, circle.text(None)),
        (0, "no job runs".into())
    );
    assert_eq!(jobs(&[]).longest, None);
}

#[test]
fn a_clock_has_hours_when_there_are_any() {
    assert_eq!(clock(72_900_000_000), "1:12");
    assert_eq!(clock(3_672_000_000_000), "1:01:12");
}
