//! Strategies of property tests that draw random simulated runs and injected faults. A failing case
//! shrinks to few CPUs, few tasks, few operations, a short span.

use std::hash::{BuildHasher, Hasher, RandomState};

use proptest::collection::vec;
use proptest::option;
use proptest::prelude::*;
use tr_format::event::{CpuId, LossCause, Stream};

use crate::blocks::{Cut, Order};
use crate::config::{Config, Follow, Kernel};
use crate::inject::{
    ClockError, CutOff, Duplicates, Hidden, Inversions, Late, LifeSort, Loss, Missing, Plan, Skew,
};
use crate::recording::Recording;
use crate::scenario::{self, Weights};
use crate::timeline;

/// The settings of a property test with `count` random cases, which are the same in each run. If the environment
/// variable `PROPTEST_CASES` is set, it gives the number of cases, and each run has other cases: the seed of the cases
/// is printed, and `PROPTEST_RNG_SEED` repeats them. A failing case is printed in the message and not stored in a file.
pub fn cases(count: u32) -> ProptestConfig {
    let number = |name| std::env::var(name).ok().and_then(|n| n.parse::<u64>().ok());
    let asked = number("PROPTEST_CASES").and_then(|n| u32::try_from(n).ok());
    let seed = match (asked, number("PROPTEST_RNG_SEED")) {
        (_, Some(seed)) => seed,
        (None, None) => 0x7472,
        (Some(_), None) => RandomState::new().build_hasher().finish(),
    };
    println!("PROPTEST_RNG_SEED={seed}");
    ProptestConfig {
        cases: asked.unwrap_or(count),
        failure_persistence: None,
        rng_seed: proptest::test_runner::RngSeed::Fixed(seed),
        // Shrinking ends after 60 s (the value is in ms), before a test runner stops the test.
        max_shrink_time: 60_000,
        max_shrink_iters: 20_000,
        ..ProptestConfig::default()
    }
}

/// One case of a property test: a simulated run, the faults injected into the run's recording, and the way in which the
/// recording is cut into blocks.
#[derive(Clone, Debug)]
pub struct Case {
    /// The settings of the simulated run of this test case.
    pub config: Config,
    /// The injectors of faults for the recording of this test case's simulated run.
    pub plan: Plan,
    /// The way in which the simulated recording is cut into blocks of a trace file.
    pub cut: Cut,
}

impl Case {
    /// Makes a picture of the first `most` events of the simulated recording, after the faults were
    /// injected.
    pub fn draw(&self, most: usize) -> String {
        let (mut recording, _) = Recording::record(&self.config);
        let before = recording.len();
        let done = self.plan.apply(&mut recording);
        let Config {
            cpus,
            seed,
            follow,
            grain,
            ..
        } = &self.config;
        let drawn = timeline::draw(&recording, 0, most);
        format!("{cpus} CPUs, seed {seed}, {follow:?}, grain {grain}, {before} events\ninjected: {done:#?}\n{drawn}")
    }
}

/// Draws random weights of all operations of simulated tasks. If a case fails, proptest shrinks each weight to 0,
/// except those of running and sleeping.
fn weights() -> impl Strategy<Value = Weights> {
    let some = |most: u16| 0..=most;
    (
        (some(5), some(20), some(10), some(10), some(10), some(30)),
        (some(8), some(6), some(8), some(6), some(6), some(6)),
        (some(2), some(3), some(10), some(3)),
    )
        .prop_map(|(a, b, c)| Weights {
            run: 20,
            long_run: a.0,
            sleep: a.1.max(2),
            io: a.2,
            lock: a.3,
            yields: a.4,
            pipe: a.5,
            fork: b.0,
            vfork: b.1,
            thread: b.2,
            exec: b.3,
            wait: b.4,
            exit: b.5,
            kill: c.0,
            stop: c.1,
            poke: c.2,
            rename: c.3,
        })
}

/// Draws random settings of a simulated run of [`scenario::chaos`] of up to `longest` ns.
pub fn run(longest: u64) -> impl Strategy<Value = Config> {
    let kernel = (
        any::<bool>(),
        0..=300u16,
        0..=300u16,
        0..=1000u16,
        20_000..=3_000_000u64,
        prop_oneof![2 => 40..=400u32, 1 => 16..=40u32],
        4..=40u32,
    );
    let kernel = kernel.prop_map(
        |(exit_first, window, late_stamp, preempt, slice, pid_max, max_tasks)| Kernel {
            exit_first,
            window,
            late_stamp,
            preempt,
            slice,
            pid_max,
            max_tasks,
        },
    );
    let times = (
        0..=2_000_000u64,
        20_000..=longest,
        prop_oneof![3 => Just(0u64), 1 => 0..=300_000u64],
    );
    let grain = prop_oneof![3 => Just(1u64), 1 => Just(7), 1 => Just(100), 1 => Just(1_000)];
    let machine = prop_oneof![
        15 => (0..=8u32).prop_flat_map(|most| (1..=1u16 << most.min(5), 0..=most)),
        1 => (33..=256u16, 0..=8u32),
    ];
    (
        weights(),
        machine,
        any::<bool>(),
        kernel,
        times,
        grain,
        any::<u64>(),
    )
        .prop_map(
            |(weights, (cpus, residents), all, kernel, (warm_up, duration, tail), grain, seed)| {
                let mut config = Config::new(scenario::chaos(&weights, residents), cpus, duration);
                config.seed = seed;
                config.follow = if all { Follow::All } else { Follow::Command };
                config.kernel = kernel;
                config.warm_up = warm_up;
                config.attach = 50_000 + seed % 200_000;
                config.tail = tail;
                config.grain = grain;
                config.progress = (duration / 7).max(5_000);
                config
            },
        )
}

/// Draws a random way to cut a simulated recording into blocks, in the order in which a recorder
/// writes them.
fn written() -> impl Strategy<Value = Cut> {
    (1..=200u32, any::<u64>()).prop_map(|(largest, seed)| Cut {
        largest,
        order: Order::Written,
        seed,
    })
}

/// Draws a random way to cut a simulated recording into blocks, in any order.
fn any_order() -> impl Strategy<Value = Cut> {
    let order = prop_oneof![
        Just(Order::Written),
        Just(Order::ByStream),
        Just(Order::Any)
    ];
    (1..=200u32, order, any::<u64>()).prop_map(|(largest, order, seed)| Cut {
        largest,
        order,
        seed,
    })
}

/// The injected faults that change the order in which events are written: events that are written late into their ring,
/// and swapped neighbours.
#[derive(Clone, Debug)]
struct Disorder {
    late: Option<Late>,
    inversions: Option<Inversions>,
}

/// Draws random injections of events that are written into their ring up to 10 s after their time stamp, and of swapped
/// neighbouring events.
fn disorder() -> impl Strategy<Value = Disorder> {
    let late = (0..=500u16, 1..=10_000_000_000u64, any::<bool>()).prop_map(
        |(per_mille, longest, life_only)| Late {
            per_mille,
            longest,
            life_only,
        },
    );
    let inversions = (0..=300u16).prop_map(|per_mille| Inversions { per_mille });
    (option::of(late), option::of(inversions))
        .prop_map(|(late, inversions)| Disorder { late, inversions })
}

/// Draws random injections of losses in the CPUs' rings and in the lifecycle ring.
fn losses() -> impl Strategy<Value = Vec<Loss>> {
    let stream = prop_oneof![4 => (0..32u16).prop_map(|cpu| Stream::Cpu(CpuId(cpu))), 1 => Just(Stream::Lifecycle)];
    let cause = prop_oneof![3 => Just(LossCause::BufferFull), 1 => Just(LossCause::Recursion)];
    let loss = (stream, 0..1000u16, 1..=60u32, cause, any::<bool>()).prop_map(
        |(stream, from, most, cause, counted)| Loss {
            stream,
            from,
            most,
            cause,
            counted,
        },
    );
    vec(loss, 1..5)
}

/// Draws random errors for the clocks of some CPUs below `cpus`: an offset of ±`size` ns, and a
/// drift of up to 50 µs a second.
fn clocks(
    cpus: u16,
    size: impl Strategy<Value = i64>,
    count: std::ops::Range<usize>,
) -> impl Strategy<Value = Skew> {
    let clock = (0..cpus, size, any::<bool>(), -50_000..=50_000i64);
    let clock = clock.prop_map(|(cpu, size, back, drift)| {
        let offset = if back { -size } else { size };
        (CpuId(cpu), ClockError { offset, drift })
    });
    vec(clock, count).prop_map(|mut clocks| {
        clocks.sort_by_key(|(cpu, _)| *cpu);
        clocks.dedup_by_key(|(cpu, _)| *cpu);
        Skew { clocks }
    })
}

/// Draws random clock errors of ±50 µs to ±100 ms for some CPUs.
fn skews() -> impl Strategy<Value = Skew> {
    clocks(32, 50_000..=100_000_000i64, 1..4)
}

/// Draws random clock errors of ±50 µs to ±100 ms for some of this many CPUs. At least one clock
/// stays right.
fn clocks_of(cpus: u16) -> impl Strategy<Value = Skew> {
    let size = prop_oneof![1 => 50_000..=100_000_000i64, 1 => 50_000..=1_000_000i64];
    clocks(cpus, size, 1..usize::from(cpus.clamp(2, 8)))
}

/// Draws random injections that repeat lifecycle events (fork, exec, exit), or leave them out
/// without a loss record.
fn faults() -> impl Strategy<Value = (Option<Duplicates>, Option<Missing>)> {
    let sort = || {
        prop_oneof![
            Just(LifeSort::Fork),
            Just(LifeSort::Exec),
            Just(LifeSort::Exit),
            Just(LifeSort::Final),
            Just(LifeSort::Snapshot),
            Just(LifeSort::Any)
        ]
    };
    let duplicates =
        (1..=300u16, sort()).prop_map(|(per_mille, sort)| Duplicates { per_mille, sort });
    let missing = (1..=300u16, sort()).prop_map(|(per_mille, sort)| Missing { per_mille, sort });
    (option::of(duplicates), option::of(missing))
}

/// A plan of injected faults with only this disorder: events that are written late into their ring, and swapped
/// neighbours.
fn disordered(disorder: Disorder, seed: u64) -> Plan {
    Plan {
        late: disorder.late,
        inversions: disorder.inversions,
        seed,
        ..Plan::default()
    }
}

/// Draws a random test case without lost events: any events that are written late into their ring, any swapped events,
/// any order of the blocks.
pub fn lossless(longest: u64) -> impl Strategy<Value = Case> {
    let parts = (run(longest), disorder(), any_order(), any::<u64>());
    parts.prop_map(|(config, disorder, cut, seed)| {
        let plan = disordered(disorder, seed);
        Case { config, plan, cut }
    })
}

/// Draws a random test case with lost events and with events that are written in disorder.
pub fn lossy(longest: u64) -> impl Strategy<Value = Case> {
    let parts = (
        run(longest),
        disorder(),
        losses(),
        any_order(),
        any::<u64>(),
    );
    parts.prop_map(|(config, disorder, loss, cut, seed)| {
        let plan = Plan {
            loss,
            ..disordered(disorder, seed)
        };
        Case { config, plan, cut }
    })
}

/// Draws a random test case in which the trace file ends early.
pub fn cut_off(longest: u64) -> impl Strategy<Value = Case> {
    let parts = (run(longest), 0..=1000u16, written(), any::<u64>());
    parts.prop_map(|(config, at, cut, seed)| {
        let plan = Plan {
            cut: Some(CutOff { at }),
            seed,
            ..Plan::default()
        };
        Case { config, plan, cut }
    })
}

/// Draws a random test case with any combination of the kinds of injected faults.
pub fn anything(longest: u64) -> impl Strategy<Value = Case> {
    let cut_off = option::of((0..=1000u16).prop_map(|at| CutOff { at }));
    let loss = prop_oneof![Just(Vec::new()), losses()];
    let hidden = option::of((1..=300u16).prop_map(|per_mille| Hidden { per_mille }));
    let (clocks, seed) = (option::of(skews()), any::<u64>());
    let parts = (
        run(longest),
        disorder(),
        loss,
        clocks,
        faults(),
        (cut_off, hidden),
        written(),
        seed,
    );
    parts.prop_map(
        |(config, disorder, loss, skew, faults, (cut_off, hidden), cut, seed)| {
            let plan = Plan {
                skew,
                loss,
                hidden,
                missing: faults.1,
                duplicates: faults.0,
                cut: cut_off,
                ..disordered(disorder, seed)
            };
            Case { config, plan, cut }
        },
    )
}

/// Draws random settings of a simulated run of `least` to `longest` ns on 2 to 64 CPUs, with realistic reuse of task
/// ids. The world is chaos, a build, hackbench or short processes.
fn long_run(least: u64, longest: u64) -> impl Strategy<Value = Config> {
    let cpus = prop_oneof![4 => 2..=4u16, 2 => 5..=16u16, 1 => 17..=64u16];
    let world =
        (weights(), 0..=8u32, 0..=5u8, 1..=8u32).prop_map(|(weights, residents, which, n)| {
            match which {
                0 => scenario::make(n, 1 + n * 3),
                1 => scenario::short_processes(n, 1 + 40 / n),
                2 => scenario::hackbench(1 + n / 4, n),
                _ => scenario::chaos(&weights, residents),
            }
        });
    (run(longest), world, cpus, least..=longest).prop_map(
        move |(mut config, world, cpus, duration)| {
            config.world = world;
            config.cpus = cpus;
            config.duration = duration;
            config.kernel.pid_max = 32_768;
            config.max_events = 12_000;
            config.progress = (duration / 7).max(5_000);
            config
        },
    )
}

/// Draws a random test case with wrong clocks and late writes and, if `worse` is set, losses as
/// well.
pub fn skewed(least: u64, longest: u64, worse: bool) -> impl Strategy<Value = Case> {
    let case = long_run(least, longest).prop_flat_map(|config| {
        let cpus = config.cpus;
        (Just(config), clocks_of(cpus))
    });
    let parts = (case, disorder(), losses(), any_order(), any::<u64>());
    parts.prop_map(move |((config, skew), disorder, loss, cut, seed)| {
        let plan = Plan {
            skew: Some(skew),
            loss: if worse { loss } else { Vec::new() },
            ..disordered(disorder, seed)
        };
        Case { config, plan, cut }
    })
}
