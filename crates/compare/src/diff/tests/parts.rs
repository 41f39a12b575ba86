//! Unit tests of the parts of the wall time.

use super::*;
use crate::diff::run::tests::beside;
use crate::diff::run::{Figure, Run};

fn run(spinners: u16) -> Run {
    Run::new("x", &beside(spinners).into())
}

#[test]
fn the_parts_of_a_run_add_up_to_its_wall_time() {
    let (idle, busy) = (run(0), run(4));
    for run in [&idle, &busy] {
        let parts = run.parts.as_ref().unwrap();
        assert_eq!(
            Some(parts.times.sum(|_| true)),
            run.figures.get(Figure::Wall)
        );
    }
    let wall = |run: &Run| run.figures.get(Figure::Wall).unwrap();
    let (own, parts) = (idle.parts.as_ref().unwrap(), busy.parts.as_ref().unwrap());
    assert!(
        wall(&busy) > 2 * wall(&idle),
        "{} {}",
        wall(&busy),
        wall(&idle)
    );
    // In the idle recording, only the build had the CPUs. The simulation shows that, so hardly any time is attributed
    // to other tasks.
    assert!(
        own.times.get(WallPart::Others) * 20 <= wall(&idle),
        "{own:?}"
    );
    let (alone, others) = (parts.alone, parts.times.get(WallPart::Others));
    assert!(
        alone.abs_diff(wall(&idle)) * 10 <= wall(&idle),
        "{parts:?} {own:?}"
    );
    assert!(
        others.abs_diff(wall(&busy) - wall(&idle)) * 5 <= wall(&busy),
        "{parts:?}"
    );
}
