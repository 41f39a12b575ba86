//! Makes simulated recordings that the tests of several crates analyze.

use tr_format::reader::Trace;
use tr_format::source::Source;

use crate::blocks::{Cut, Order};
use crate::config::Config;
use crate::program::{ms, Op, Resident};
use crate::recording::Recording;
use crate::scenario;

/// Writes a simulated recording to a trace file and opens it.
///
/// # Panics
/// If the written trace cannot be read.
#[allow(clippy::expect_used)] // Only tests call this function.
pub fn trace(recording: &Recording) -> Trace {
    let cut = Cut {
        largest: 100,
        order: Order::Written,
        seed: 1,
    };
    let file = recording.to_file(&cut).expect("a file");
    Trace::open(Source::bytes(file)).expect("a trace")
}

/// The recording of a simulated build of nine jobs on two CPUs, beside `spinners` tasks that use
/// CPUs all the time and are not recorded.
///
/// # Panics
/// If there are 65,536 programs.
#[allow(clippy::expect_used)] // Only tests call this function.
pub fn build_beside(spinners: u16) -> Recording {
    let mut world = scenario::make(2, 9);
    let spin = u16::try_from(world.programs.len()).expect("few programs");
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
    Recording::record(&config).0
}
