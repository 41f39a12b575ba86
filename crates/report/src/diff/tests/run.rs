//! Unit tests of `diff::run`.

use tr_analyze::kinds::Kind;
use tr_analyze::Options;
use tr_format::reader::Trace;
use tr_format::source::Source;
use tr_sim::blocks::{Cut, Order};
use tr_sim::config::Config;
use tr_sim::inject::{Loss, Plan};
use tr_sim::program::{ms, Op, Resident};
use tr_sim::recording::Recording;
use tr_sim::scenario;

use super::*;

/// A simulated recording with its timeline, written to a file and read.
pub fn analyzed(recording: &Recording) -> Analysis {
    let cut = Cut {
        largest: 100,
        order: Order::Written,
        seed: 1,
    };
    let file = recording.to_file(&cut).unwrap();
    let trace = Trace::open(Source::bytes(file)).unwrap();
    let options = Options {
        timeline: true,
        ..Options::default()
    };
    tr_analyze::analyze(&trace, &options)
}

/// A build of nine jobs on two CPUs, beside so many tasks that spin and are not recorded.
pub fn beside(spinners: u16) -> Analysis {
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
    analyzed(&Recording::record(&config).0)
}

/// Unknown time on the path is no process's.
#[test]
fn the_path_of_a_process_has_no_unknown_time() {
    let mut config = Config::new(scenario::make(2, 8), 2, 400_000_000);
    config.linger = Some(100_000);
    let (mut recording, _) = Recording::record(&config);
    let loss = |cpu| Loss {
        stream: tr_format::event::Stream::Cpu(tr_format::event::CpuId(cpu)),
        from: 400,
        most: 60,
        cause: tr_format::event::LossCause::RingFull,
        counted: true,
    };
    let plan = Plan {
        loss: vec![loss(0), loss(1)],
        ..Plan::default()
    };
    plan.apply(&mut recording);
    let analysis = analyzed(&recording);
    let root = critical_path::root(&analysis).unwrap();
    let path = critical_path::critical_path(&analysis, root).unwrap();
    let unknown = path.segments.iter().filter(|it| it.kind == Kind::Unknown);
    let unknown: u64 = unknown.map(|it| it.length()).sum();
    assert!(unknown > 0, "the losses touch the path");
    let known: u64 = path.by_process(&analysis).iter().sum();
    assert_eq!(known + unknown, path.length());
}
