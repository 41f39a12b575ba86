//! Unit tests of `diff::run`.

use tr_analyze::kinds::TimeKind;
use tr_analyze::Options;
use tr_sim::config::Config;
use tr_sim::examples;
use tr_sim::inject::{Loss, Plan};
use tr_sim::recording::Recording;
use tr_sim::scenario;

use super::*;

/// The analysis of a simulated recording, with its timeline.
pub fn analyzed(recording: &Recording) -> Analysis {
    let options = Options {
        timeline: true,
        ..Options::default()
    };
    tr_analyze::analyze(&examples::trace(recording), &options)
}

/// The analysis of a build of nine jobs beside tasks that spin.
pub fn beside(spinners: u16) -> Analysis {
    analyzed(&examples::build_beside(spinners))
}

/// Unknown time on the critical path belongs to no process.
#[test]
fn the_path_of_a_process_has_no_unknown_time() {
    let mut config = Config::new(scenario::make(2, 8), 2, 400_000_000);
    config.linger = Some(100_000);
    let (mut recording, _) = Recording::record(&config);
    let loss = |cpu| Loss {
        stream: tr_format::event::Stream::Cpu(tr_format::event::CpuId(cpu)),
        from: 400,
        most: 60,
        cause: tr_format::event::LossCause::BufferFull,
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
    let unknown = path
        .segments
        .iter()
        .filter(|it| it.kind == TimeKind::Unknown);
    let unknown: u64 = unknown.map(|it| it.length()).sum();
    assert!(unknown > 0, "the losses touch the path");
    let known: u64 = path.by_process(&analysis).iter().sum();
    assert_eq!(known + unknown, path.length());
}
