//! Tests the check of the CPUs' clocks with clocks whose errors are known.
#![allow(clippy::unwrap_used, clippy::expect_used)] // in a test

use std::cell::Cell;
use std::collections::{HashMap, HashSet};

use proptest::prelude::*;
use proptest::test_runner::TestRunner;
use tr_analyze::model::Analysis;
use tr_analyze::{analyze, Options};
use tr_format::event::{CpuId, LifeKind, SchedKind, Switch, Tid};
use tr_format::reader::Trace;
use tr_format::source::Source;
use tr_sim::blocks::{Cut, Order};
use tr_sim::config::Config;
use tr_sim::inject::Skew;
use tr_sim::program::{us, Arg, Op, Resident, World};
use tr_sim::recording::Recording;
use tr_sim::scenario;
use tr_sim::strategy::{self, Case};

/// Records a case with its injected faults into a file and analyzes the file.
fn run(case: &Case) -> Analysis {
    let (mut recording, _) = Recording::record(&case.config);
    case.plan.apply(&mut recording);
    let file = recording.to_file(&case.cut).expect("a file");
    let trace = Trace::open(Source::bytes(file)).expect("a trace");
    analyze(&trace, &Options::default())
}

/// The largest difference of two CPUs' clocks during the run.
fn difference(skew: &Skew, one: CpuId, other: CpuId, duration: u64) -> u64 {
    const START: u64 = 1 << 40;
    let error = |cpu: CpuId, time: u64| {
        let clock = skew.clocks.iter().find(|(of, _)| *of == cpu);
        let shown = clock.map_or(time, |(_, clock)| clock.shown(time, START));
        shown as i64 - time as i64
    };
    let at = |time: u64| (error(one, time) - error(other, time)).unsigned_abs();
    at(START).max(at(START + duration))
}

/// If a disagreement of clocks is reported, the clocks of the two CPUs really differ by at least the reported time. In
/// most traces with many contradictions, a disagreement is reported.
#[test]
fn a_disagreement_is_reported_and_true() {
    let (noticed, reported) = (Cell::new(0u64), Cell::new(0u64));
    let result = TestRunner::new(strategy::cases(600)).run(
        &strategy::skewed(2_000_000, 100_000_000, false),
        |case| {
            let analysis = run(&case);
            let quality = &analysis.quality;
            let impossible: u64 = quality.anomalies.iter().map(|(_, count)| count).sum();
            noticed.set(noticed.get() + u64::from(impossible > 20));
            let Some(found) = quality.clocks else {
                return Ok(());
            };
            reported.set(reported.get() + u64::from(impossible > 20));
            let skew = case.plan.skew.clone().unwrap_or_default();
            let truth = difference(&skew, found.cpus.0, found.cpus.1, case.config.duration);
            prop_assert!(
                found.by <= truth + 2,
                "{found:?}, but the clocks differ by {truth}: {skew:?}"
            );
            Ok(())
        },
    );
    if let Err(error) = result {
        panic!("{error}");
    }
    let (noticed, reported) = (noticed.get(), reported.get());
    println!("{noticed} noticed, {reported} reported");
    assert!(noticed > 100, "too few were noticed");
    assert!(reported * 10 > noticed * 8, "too few were reported");
}

proptest! {
    #![proptest_config(strategy::cases(300))]

    /// A thread's times add up to the length of its life, whatever the CPUs' clocks show.
    #[test]
    fn every_threads_times_add_up(case in strategy::skewed(2_000_000, 30_000_000, true)) {
        for thread in &run(&case).threads {
            prop_assert_eq!(thread.times.sum(), thread.end.since(thread.start));
        }
    }

    /// No disagreement is reported if the clocks agree, whatever events are lost.
    #[test]
    fn clocks_that_agree_are_not_doubted(case in strategy::skewed(2_000_000, 30_000_000, true)) {
        let mut case = case;
        case.plan.skew = None;
        let analysis = run(&case);
        prop_assert_eq!(analysis.quality.clocks, None);
        case.plan.loss.clear();
        prop_assert_eq!(&run(&case).quality.anomalies, &Vec::new());
    }
}

/// A world in which a recorded and an unrecorded process start short processes all the time, and task ids
/// are used again within milliseconds.
fn reusing(seed: u64) -> Config {
    let mut world: World = scenario::short_processes(2, 100_000);
    let (starter, child) = (world.programs.len() as u16, world.programs.len() as u16 + 1);
    world.programs.extend([
        vec![
            Op::Fork(child, Arg::Same),
            Op::Wait,
            Op::Run(us(1, 9)),
            Op::Goto(0),
        ],
        vec![Op::Run(us(5, 60)), Op::ExitGroup(0)],
    ]);
    let resident = Resident {
        program: starter,
        arg: 0,
        kthread: false,
        pin: None,
    };
    world.residents.extend([resident; 3]);
    let mut config = Config::new(world, 4, 400_000_000).seed(seed);
    config.kernel.pid_max = 80;
    config
}

enum Moment {
    Fork(Tid, Option<CpuId>),
    Enter(Tid, CpuId),
    End(Tid),
}

/// Counts the forks whose tid belonged to an unrecorded task before, if that task was last seen on another CPU than
/// that of the fork.
fn reuses(recording: &Recording) -> u64 {
    let mut moments: Vec<(u64, Moment)> = Vec::new();
    for (cpu, ring) in (0..).map(CpuId).zip(&recording.cpus) {
        for written in ring {
            if let SchedKind::Switch(Switch { next, .. }) = written.event.kind {
                moments.push((written.at, Moment::Enter(next, cpu)));
            }
        }
    }
    for written in &recording.life {
        let cpu = written.event.cpu;
        match &written.event.kind {
            LifeKind::Fork(fork) => moments.push((written.at, Moment::Fork(fork.tid, cpu))),
            LifeKind::Final(last) => moments.push((written.at, Moment::End(last.tid))),
            _ => {}
        }
    }
    moments.sort_by_key(|(at, _)| *at);
    let (mut recorded, mut seen, mut count) = (HashSet::new(), HashMap::new(), 0);
    for (_, moment) in moments {
        match moment {
            Moment::Enter(tid, cpu) => {
                if !recorded.contains(&tid) {
                    seen.insert(tid, cpu);
                }
            }
            Moment::Fork(tid, cpu) => {
                let before = seen.remove(&tid);
                count += u64::from(before.is_some() && before != cpu);
                recorded.insert(tid);
            }
            Moment::End(tid) => {
                recorded.remove(&tid);
            }
        }
    }
    count
}

/// The ids of unrecorded processes are used again at once for recorded ones, which must not look like an error of the
/// clocks.
#[test]
fn a_used_id_does_not_make_clocks_doubtful() {
    let least = if std::env::var_os("TR_LONG").is_some() {
        1_000_000
    } else {
        2_000
    };
    let cut = Cut {
        largest: 2_000,
        order: Order::ByStream,
        seed: 1,
    };
    let (mut count, mut seed) = (0, 0);
    while count < least {
        seed += 1;
        let (recording, _) = Recording::record(&reusing(seed));
        let found = reuses(&recording);
        assert!(found > 0, "no id was used again");
        count += found;
        let file = recording.to_file(&cut).expect("a file");
        let trace = Trace::open(Source::bytes(file)).expect("a trace");
        let analysis = analyze(&trace, &Options::default());
        assert_eq!(analysis.quality.clocks, None, "seed {seed}");
    }
    println!("{count} uses in {seed} recordings");
}
