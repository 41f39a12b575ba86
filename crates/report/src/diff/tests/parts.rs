//! Unit tests of the parts of the wall time.

use tr_sim::config::Config;
use tr_sim::program::{ms, Op, Resident};
use tr_sim::recording::Recording;
use tr_sim::scenario;

use super::*;
use crate::diff::run::tests::analyzed;
use crate::diff::run::{Figure, Run};

/// A build of nine jobs on two CPUs, beside so many tasks that spin and are not recorded.
fn run(spinners: u16) -> Run {
    let mut world = scenario::make(2, 9);
    let spin = u16::try_from(world.programs.len()).unwrap();
    world.programs.push(vec![Op::Run(ms(4, 4)), Op::Goto(0)]);
    world.residents = (0..spinners)
        .map(|_| Resident {
            program: spin,
            arg: 0,
            kthread: false,
            pin: None,
        })
        .collect();
    let mut config = Config::new(world, 2, 4_000_000_000);
    config.linger = Some(100_000);
    let (recording, _) = Recording::record(&config);
    Run::new("x", &analyzed(&recording))
}

#[test]
fn the_parts_of_a_run_add_up_to_its_wall_time() {
    let (idle, busy) = (run(0), run(4));
    for run in [&idle, &busy] {
        let parts = run.parts.as_ref().unwrap();
        assert_eq!(Some(parts.sum(|_| true)), run.figures.get(Figure::Wall));
    }
    let wall = |run: &Run| run.figures.get(Figure::Wall).unwrap();
    let (own, parts) = (idle.parts.as_ref().unwrap(), busy.parts.as_ref().unwrap());
    assert!(
        wall(&busy) > 2 * wall(&idle),
        "{} {}",
        wall(&busy),
        wall(&idle)
    );
    // Nobody but the build had the CPUs, and the simulation knows.
    assert!(own.get(Part::Others) * 20 <= wall(&idle), "{own:?}");
    let (alone, others) = (parts.alone, parts.get(Part::Others));
    assert!(
        alone.abs_diff(wall(&idle)) * 10 <= wall(&idle),
        "{parts:?} {own:?}"
    );
    assert!(
        others.abs_diff(wall(&busy) - wall(&idle)) * 5 <= wall(&busy),
        "{parts:?}"
    );
}
