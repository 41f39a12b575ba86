//! Compares the forecast with the simulator that makes the recordings. The forecast replays a recorded run as if the
//! run had the CPUs for itself.

use proptest::prelude::*;
use tr_analyze::jobs::{Job, Tools};
use tr_analyze::kinds::TimeKind;
use tr_analyze::model::ProcessIx;
use tr_analyze::parallelism::parallelism;
use tr_analyze::schedule::{
    Change, Effect, Jobs, Machine, Plan as Schedules, Planned, Schedule, PERIOD,
};
use tr_analyze::timeline::Bucket;
use tr_analyze::what_if::Without;
use tr_format::event::{Ktime, Reason, SchedKind, Switch};
use tr_sim::program::{chan, ms, Arg, Op, Resident, World};
use tr_sim::recording::Recording;

use super::{fork, repeat, run, world, Answer, MS, SLACK};

/// Makes a build of these jobs, whose driver runs `at_once` of them at once, and then a link. The numbers are work in
/// ms. One job in three also reads from a disk, and one in three sleeps, for `wait` ms.
fn build(jobs: &[u64], at_once: u16, wait: u64) -> World {
    let mut driver = vec![run(2)];
    let mut programs = Vec::new();
    for (job, at) in jobs.iter().zip(1u16..) {
        driver.extend((at > at_once).then_some(Op::Wait));
        driver.extend([fork(at), run(1)]);
        let own = match at % 3 {
            0 => Op::Io(ms(wait, wait)),
            1 => Op::Sleep(ms(wait, wait)),
            _ => run(1),
        };
        let job = vec![run(*job), own, run(*job), Op::ExitGroup(0)];
        programs.push(job);
    }
    let link = programs.len() as u16 + 1;
    driver.extend([Op::WaitAll, fork(link), Op::Wait, Op::ExitGroup(0)]);
    programs.push(vec![run(20), Op::ExitGroup(0)]);
    let names: Vec<String> = (0..programs.len()).map(|n| format!("job{n}")).collect();
    let jobs = names.iter().map(String::as_str).zip(programs);
    let all: Vec<(&str, Vec<Op>)> = [("make", driver)].into_iter().chain(jobs).collect();
    world(&all, &[])
}

/// Adds `tasks` tasks to the machine of `world`. They are not recorded and never sleep.
fn beside(mut world: World, tasks: u16) -> World {
    let program = world.programs.len() as u16;
    world.programs.push(vec![run(5), Op::Goto(0)]);
    for arg in 0..u32::from(tasks) {
        world.residents.push(Resident {
            program,
            arg,
            kthread: false,
            pin: None,
        });
    }
    world
}

fn nothing(_: TimeKind, _: tr_format::event::Reason) -> bool {
    false
}

fn no_time() -> Without {
    Without {
        own: nothing,
        waits: |_, _| false,
        of: None,
    }
}

impl Answer {
    fn schedule(&self, changes: &[Change]) -> Schedule {
        Schedule::new(&self.analysis, &self.path, &self.groups, changes).unwrap()
    }

    fn alone_on_its_cpus(&self) -> u64 {
        self.schedule(&[]).wall(0, Effect::Best)
    }
}

fn lengths() -> impl Strategy<Value = Vec<u64>> {
    prop::collection::vec(1u64..40, 1..14)
}

proptest! {
    #![proptest_config(tr_sim::strategy::cases(40))]

    /// If no task has to wait for a CPU, the simulated run takes the recorded time.
    #[test]
    fn with_enough_cpus_nothing_changes(jobs in lengths(), at_once in 1u16..4, wait in 1u64..30) {
        let answer = Answer::of(build(&jobs, at_once, wait), at_once + 2);
        let (is, was) = (answer.alone_on_its_cpus(), answer.path.length());
        // A woken task may have been sent to a busy CPU although another CPU was idle. The simulation is exact only if
        // the recording has no such waits.
        let timeline = answer.analysis.timeline.as_ref().unwrap();
        let threads = answer.analysis.thread_ids();
        let stretches = threads.flat_map(|thread| timeline.of(thread));
        let mut waits = stretches.filter(|stretch| matches!(stretch.doing, Bucket::RunQueue { .. }));
        if waits.all(|wait| wait.length() <= 50_000) {
            prop_assert_eq!(is, was);
        }
        prop_assert!(is <= was && is >= was - was / 6, "{is} of {was}");
    }

    /// With more tasks than CPUs, the simulated time differs by a few time slices, because slices and the choice of a
    /// CPU are not simulated.
    #[test]
    fn with_full_cpus_little_changes(jobs in lengths(), at_once in 2u16..9, wait in 1u64..30) {
        let answer = Answer::of(build(&jobs, at_once, wait), 2);
        let (is, was) = (answer.alone_on_its_cpus(), answer.path.length());
        prop_assert!(is.abs_diff(was) <= was / 6 + 12 * MS, "{is} of {was}");
    }

    /// The simulated run does not include the CPU time that tasks outside the recording took.
    #[test]
    fn others_are_removed(jobs in lengths(), at_once in 1u16..6, others in 1u16..5) {
        let alone = Answer::of(build(&jobs, at_once, 10), 2);
        let busy = Answer::of(beside(build(&jobs, at_once, 10), others), 2);
        let (is, would) = (busy.alone_on_its_cpus(), alone.path.length());
        prop_assert!(busy.path.length() + SLACK >= would);
        prop_assert!(is.abs_diff(would) <= would / 6 + 12 * MS,
            "{is}, not {would}; recorded {}", busy.path.length());
    }
}

/// In the recording, eight jobs ran one after the other. If two jobs run at the same time on two CPUs, the jobs need
/// half of the time, and no less.
#[test]
fn two_jobs_save_at_most_the_half() {
    let steps = [fork(1), Op::Wait];
    let mut driver = repeat(0, 8, &steps);
    driver.extend([fork(2), Op::Wait, Op::ExitGroup(0)]);
    let programs = [
        ("make", driver),
        ("cc1", vec![run(30), Op::ExitGroup(0)]),
        ("ld", vec![run(20), Op::ExitGroup(0)]),
    ];
    for others in [0, 3] {
        let answer = Answer::of(beside(world(&programs, &[]), others), 2);
        let owner = answer.path.process;
        let starts = answer.analysis.process(owner).children.iter();
        let starts: Vec<Ktime> = starts
            .map(|start| answer.analysis.process(*start).start)
            .collect();
        let jobs = |at_once| Change {
            time: no_time(),
            remains: (1000, 1000),
            jobs: vec![Jobs {
                owner,
                from: starts[0],
                to: starts[7],
                at_once,
            }],
        };
        let schedule = answer.schedule(&[jobs(1), jobs(2), jobs(8)]);
        let near = |is: u64, want: u64| assert!(is.abs_diff(want * MS) < 3 * MS, "{is} {want}");
        near(schedule.wall(0, Effect::Best), 260);
        near(schedule.wall(0b001, Effect::Best), 260);
        near(schedule.wall(0b010, Effect::Best), 140);
        near(schedule.wall(0b100, Effect::Best), 140);
        near(schedule.on(1), 260);
    }
}

/// Eight jobs that run at once on two CPUs have to share them. The simulation of this run takes as long as the
/// simulation of a run of the same jobs with only three at once.
#[test]
fn jobs_that_share_the_cpus_lose_nothing() {
    let jobs = [40; 8];
    let [few, many] = [3, 8].map(|at_once| Answer::of(build(&jobs, at_once, 1), 2));
    let [few, many] = [few, many].map(|answer| answer.alone_on_its_cpus());
    assert!(few.abs_diff(many) < few / 20, "{few} {many}");
}

/// A guest's kernel hides switches, so some time becomes unknown. The kernel's totals show how much of the unknown time
/// was work. The simulation treats this work like any other work: with fewer CPUs a thread waits for a CPU before it,
/// and in a faster program the work is shorter.
#[test]
fn work_in_unknown_time_is_work() {
    let jobs = 6;
    let mut driver: Vec<Op> = (1..=jobs).map(fork).collect();
    driver.extend([Op::WaitAll, Op::ExitGroup(0)]);
    let job = ("cc1", vec![run(100), Op::ExitGroup(0)]);
    let programs: Vec<_> = std::iter::once(("make", driver))
        .chain(std::iter::repeat_n(job, jobs.into()))
        .collect();
    let config = Answer::config(world(&programs, &[]), 2);
    let (mut work, mut left) = (0, 0);
    for seed in 0..10 {
        let per_mille = 100;
        let plan = tr_sim::inject::Plan {
            hidden: Some(tr_sim::inject::Hidden { per_mille }),
            seed,
            ..Default::default()
        };
        let answer = Answer::inexact(&config, &plan);
        let make = answer.path.process;
        let threads = || answer.analysis.threads.iter();
        let jobs = || threads().filter(|thread| thread.process != make);
        work += jobs().map(|job| job.by_kernel.on_cpu).sum::<u64>();
        // The rest of the unknown time, which the kernel's totals do not explain, keeps its length in the
        // simulation.
        let rest: u64 = jobs().map(|job| job.times.unknown).sum();
        let all: u64 = threads().map(|thread| thread.times.unknown).sum();
        left += rest;
        let group = answer.group("cc1");
        let of = (0..answer.groups.count()).map(|number| number == group as usize);
        let change = Change {
            time: Without::work(of.collect()),
            remains: (500, 500),
            jobs: Vec::new(),
        };
        let schedule = answer.schedule(&[change]);
        let near = |is: u64, want: u64| {
            let (low, high) = ((want - 12) * MS, (want + 12) * MS);
            let fits = is + rest >= low && is <= high + all;
            assert!(fits, "{is} {want}, {all} unknown");
        };
        near(schedule.on(1), 600);
        near(schedule.on(2), 300);
        near(schedule.wall(1, Effect::Best), 150);
    }
    assert!(work > 500 * MS && work > 2 * left, "{work} {left}");
}

/// An assumed change leaves only a part of a program's time. The run becomes shorter by what the program saves, until
/// another program determines the run's length.
#[test]
fn a_part_of_the_time_remains() {
    let programs = [
        (
            "make",
            vec![fork(1), fork(2), Op::WaitAll, Op::ExitGroup(0)],
        ),
        ("cc1", vec![run(100), Op::ExitGroup(0)]),
        (
            "test",
            vec![Op::Sleep(ms(60, 60)), run(10), Op::ExitGroup(0)],
        ),
    ];
    let answer = Answer::of(world(&programs, &[]), 2);
    let group = answer.group("cc1");
    let of = (0..answer.groups.count()).map(|number| number == group as usize);
    let change = Change {
        time: Without::work(of.collect()),
        remains: (0, 900),
        jobs: Vec::new(),
    };
    let schedule = answer.schedule(&[change]);
    let near = |is: u64, want: u64| assert!(is.abs_diff(want * MS) < 2 * MS, "{is} {want}");
    near(schedule.wall(0, Effect::Best), 100);
    near(schedule.wall(1, Effect::Best), 70);
    near(schedule.wall(1, Effect::Worst), 90);
}

/// A thread in the background sleeps and checks something in a loop, and ends with its process. The thread's last sleep
/// ends because the process ends, so the thread's sleeps do not keep the process alive in a shorter run.
#[test]
fn a_loop_of_timeouts_keeps_no_time() {
    let programs = [
        ("make", vec![fork(1), Op::Wait, run(10), Op::ExitGroup(0)]),
        (
            "go",
            vec![Op::Thread(2, Arg::Same), run(100), Op::ExitGroup(0)],
        ),
    ];
    let mut world = world(&programs, &[]);
    // The thread's program has no exec of its own.
    world
        .programs
        .push(vec![Op::Sleep(ms(15, 15)), Op::Goto(0)]);
    let answer = Answer::of(world, 2);
    let change = Change {
        time: Without::work((0..answer.groups.count()).map(|_| true).collect()),
        remains: (200, 200),
        jobs: Vec::new(),
    };
    let schedule = answer.schedule(&[change]);
    let near = |is: u64, want: u64| assert!(is.abs_diff(want * MS) < 2 * MS, "{is} {want}");
    near(schedule.wall(0, Effect::Best), 110);
    near(schedule.wall(1, Effect::Best), 22);
}

/// A crashed job keeps its waits in the simulation, like any other job. A process that SIGTERM ended counts as a
/// server, and only its last wait is kept.
#[test]
fn a_crash_is_the_end_of_a_job() {
    let pause = |length| Op::Sleep(ms(length, length));
    let make = vec![fork(1), fork(2), Op::WaitAll, Op::ExitGroup(0)];
    let programs = [
        ("make", make),
        ("long", vec![run(100), Op::ExitGroup(0)]),
        (
            "short",
            vec![pause(40), run(1), pause(20), Op::ExitGroup(1)],
        ),
    ];
    let mut answer = Answer::of(world(&programs, &[]), 2);
    let failed = |ix: &ProcessIx| answer.analysis.process(*ix).status == Some(1 << 8);
    let short = answer.analysis.process_ids().find(failed).unwrap();
    let change = Change {
        time: Without::work((0..answer.groups.count()).map(|_| true).collect()),
        remains: (200, 200),
        jobs: Vec::new(),
    };
    for (signal, want) in [(11, 60), (15, 20)] {
        let process = &mut answer.analysis.processes[short.0 as usize];
        process.status = Some(signal);
        let wall = answer
            .schedule(std::slice::from_ref(&change))
            .wall(1, Effect::Best);
        assert!(wall.abs_diff(want * MS) < 2 * MS, "{signal}: {wall}");
    }
}

/// Two jobs wait for each other. A waking that comes too late in the simulated order must not stop the simulation.
#[test]
fn a_circle_of_waits_is_left() {
    let take = |n| Op::Take(chan(n));
    let programs = [
        (
            "make",
            vec![fork(1), fork(2), Op::WaitAll, Op::ExitGroup(0)],
        ),
        (
            "one",
            vec![run(5), Op::Post(chan(0)), take(1), run(5), Op::ExitGroup(0)],
        ),
        (
            "two",
            vec![take(0), run(5), Op::Post(chan(1)), Op::ExitGroup(0)],
        ),
    ];
    let answer = Answer::of(world(&programs, &[0, 0]), 2);
    assert_eq!(answer.alone_on_its_cpus(), answer.path.length());
}

/// Replaces make, the driver of `world`, by another program that has no job server.
fn by(driver: &str, mut world: World) -> World {
    for image in &mut world.images {
        if image.path == "/bin/make" {
            image.path = driver.into();
        }
    }
    world
}

impl Answer {
    /// Prepares a simulation that plans the driver's jobs anew. In the recording, the driver ran `limit` jobs at once;
    /// `None` means that no argument sets the number.
    fn planned(&self, limit: Option<u64>) -> Schedule {
        let tools = Tools::new(&self.analysis, |_| limit.map(Some));
        let planned = |job: Job| {
            let needs: Vec<_> = job.needs.into_iter().collect();
            let worst = needs.iter().copied().chain(job.released).collect();
            Planned {
                after: [needs.clone(), needs, worst],
                length: job.end.since(job.start),
                job,
            }
        };
        let jobs = tools.jobs.into_iter().map(planned).collect();
        let changes: (&[Change], _) = (&[], Schedules::new(jobs, tools.limits));
        Schedule::planned(&self.analysis, &self.path, &self.groups, changes).unwrap()
    }
}

/// Whether a forecast is near the real time. The allowed error is that of runs whose tasks share CPUs, because time
/// slices are not simulated.
fn near(is: u64, was: u64) -> bool {
    is.abs_diff(was) <= was / 6 + 12 * MS
}

proptest! {
    #![proptest_config(tr_sim::strategy::cases(40))]

    /// A run is recorded on `from` CPUs and forecast for `to` CPUs. The forecast is compared with a real run on `to`
    /// CPUs.
    #[test]
    fn other_cpus_are_forecast(
        jobs in lengths(), at_once in 1u16..6, from in 1u16..5, to in 1u16..8, wait in 1u64..30,
    ) {
        let [recorded, real] = [from, to].map(|cpus| Answer::of(build(&jobs, at_once, wait), cpus));
        let (is, was) = (recorded.schedule(&[]).on(to.into()), real.path.length());
        prop_assert!(near(is, was), "{is} of {was}");
        // In neither run does a task wait for a CPU, so the forecast is nearly exact.
        if from > at_once + 1 && to > at_once + 1 {
            prop_assert!(is.abs_diff(was) <= was / 100 + MS, "{is} of {was}");
        }
    }

    /// A forecast for another number of jobs at once is near the time of a real run with that number.
    #[test]
    fn other_jobs_are_forecast(
        jobs in lengths(), from in 2u16..5, to in 1u16..8, cpus in 1u16..5, wait in 1u64..30,
    ) {
        let real = |at_once| Answer::of(by("/bin/ninja", build(&jobs, at_once, wait)), cpus);
        let (recorded, real) = (real(from), real(to).path.length());
        let schedule = recorded.planned(Some(from.into()));
        let machine = Machine { jobs: Some(to.into()), ..Machine::of(cpus.into()) };
        let wall = |effect| schedule.simulate(machine, 0, effect).wall;
        let [best, likely, worst] = [Effect::Best, Effect::Likely, Effect::Worst].map(wall);
        prop_assert!(near(likely, real), "{likely} of {real}");
        // The jobs are independent and need only slots, so the real time is between the best and the worst case.
        prop_assert!(best <= real + real / 6 + 12 * MS && worst + real / 6 + 12 * MS >= real,
            "{real} not in {best} to {worst}");
    }
}

proptest! {
    #![proptest_config(tr_sim::strategy::cases(40))]

    /// A tool that runs as many jobs as there are CPUs is forecast for another number of CPUs.
    #[test]
    fn jobs_that_follow_the_cpus_are_forecast(
        jobs in lengths(), from in 2u16..5, to in 1u16..8, wait in 1u64..30,
    ) {
        let real = |cpus| Answer::of(by("/bin/go", build(&jobs, cpus, wait)), cpus);
        let (recorded, real) = (real(from), real(to).path.length());
        let schedule = recorded.planned(None);
        let machine = Machine { planned: true, ..Machine::of(to.into()) };
        let wall = |effect| schedule.simulate(machine, 0, effect).wall;
        let [best, likely, worst] = [Effect::Best, Effect::Likely, Effect::Worst].map(wall);
        prop_assert!(best <= real + real / 6 + 12 * MS && worst + real / 6 + 12 * MS >= real,
            "{real} not in {best} to {worst}");
        // With fewer jobs than job slots, the recording does not show the number of slots, so the forecast of the
        // likely case ([`Effect::Likely`]) may be wrong.
        if jobs.len() > usize::from(from) {
            prop_assert!(near(likely, real), "{likely} of {real}");
        }
    }
}

/// A thread waits for another thread again and again, each time with a time-out, while unrecorded tasks have the CPUs.
/// In the simulated run without these unrecorded tasks, fewer time-outs pass.
#[test]
fn timeouts_of_a_wait_for_another_thread_are_no_time() {
    let wait = |length| Op::TakeFor(chan(0), ms(length, length));
    let begin = vec![fork(1)];
    let waits = [
        vec![wait(20); 10],
        vec![wait(2_000), Op::Wait, Op::ExitGroup(0)],
    ]
    .concat();
    let worker = vec![run(100), Op::Post(chan(0)), Op::ExitGroup(0)];
    let programs = [("pytest", [begin, waits].concat()), ("worker", worker)];
    let answer = Answer::of(beside(world(&programs, &[0]), 4), 1);
    let was = answer.path.length();
    assert!(was > 300 * MS, "{was}");
    let is = answer.alone_on_its_cpus();
    assert!(is.abs_diff(100 * MS) < 5 * MS, "{is} of {was}");
}

proptest! {
    #![proptest_config(tr_sim::strategy::cases(40))]

    /// The simulation forecasts the run for a change: the work of one program takes half of its time. The forecast is
    /// compared with a real run in which the program has only half of the work.
    #[test]
    fn other_work_is_forecast(
        jobs in lengths(), pick in any::<prop::sample::Index>(), at_once in 1u16..6,
        cpus in 1u16..8, wait in 1u64..30,
    ) {
        let twice: Vec<u64> = jobs.iter().map(|job| job * 2).collect();
        let at = pick.index(jobs.len());
        let mut less = twice.clone();
        less[at] = jobs[at];
        let [recorded, real] = [twice, less].map(|lengths| Answer::of(build(&lengths, at_once, wait), cpus));
        let group = recorded.group(&format!("job{at}"));
        let of = (0..recorded.groups.count()).map(|number| number == group as usize);
        let change = Change {
            time: Without::work(of.collect()),
            remains: (500, 500),
            jobs: Vec::new(),
        };
        let (is, was) = (recorded.schedule(&[change]).wall(1, Effect::Likely), real.path.length());
        prop_assert!(near(is, was), "{is} of {was}");
        // In neither run does a task wait for a CPU, so the forecast is nearly exact.
        if cpus > at_once + 1 {
            prop_assert!(is.abs_diff(was) <= was / 100 + 2 * MS, "{is} of {was}");
        }
    }
}

/// In the simulation, a tool waits for all of its jobs. This includes a last job that had already ended in the
/// recording when the tool began to wait.
#[test]
fn a_tool_waits_for_all_of_its_jobs() {
    let programs = [
        (
            "make",
            vec![
                fork(1),
                Op::Wait,
                fork(2),
                run(50),
                Op::Wait,
                Op::ExitGroup(0),
            ],
        ),
        ("cc1", vec![run(100), Op::ExitGroup(0)]),
        ("cat", vec![run(1), Op::ExitGroup(0)]),
    ];
    let answer = Answer::of(by("/bin/ninja", world(&programs, &[])), 2);
    let schedule = answer.planned(Some(1));
    for (jobs, want) in [(1, 101), (2, 100)] {
        let machine = Machine {
            jobs: Some(jobs),
            ..Machine::of(4)
        };
        let is = schedule.simulate(machine, 0, Effect::Best).wall;
        assert!(is.abs_diff(want * MS) < 3 * MS, "{is} {want}");
    }
}

/// A thread of a compiler waits until another thread of the same process wakes it. In a simulation with more jobs at
/// once, that waking must not wake a thread of another job instead.
#[test]
fn a_job_stops_its_own_threads() {
    let (post, take) = (|n| Op::Post(chan(n)), |n| Op::Take(chan(n)));
    let thread = |n| Op::Thread(n, Arg::Same);
    let end = Op::ExitGroup(0);
    let driver = [1, 2, 3].map(|n| [fork(n), Op::Wait]).concat();
    let programs = [
        ("make", [&driver[..], &[end]].concat()),
        (
            "rustc",
            vec![run(20), thread(4), run(30), post(0), take(1), end],
        ),
        ("rustc", vec![thread(5), run(150), post(2), take(3), end]),
        ("ld", vec![run(100), end]),
    ];
    let mut world = by("/bin/ninja", world(&programs, &[0; 4]));
    for (stopped, tells) in [(0, 1), (2, 3)] {
        let helper = vec![take(stopped), post(tells), Op::Exit(0)];
        world.programs.push(helper);
    }
    let answer = Answer::of(world, 2);
    let machine = Machine {
        jobs: Some(2),
        ..Machine::of(2)
    };
    let done = answer.planned(Some(1)).simulate(machine, 0, Effect::Best);
    assert!(done.wall.abs_diff(150 * MS) < 3 * MS, "{}", done.wall);
}

/// One of two parallel jobs waits for a page that the other job happens to read. If the jobs ran one after the other,
/// the first job would not wait for the other one.
#[test]
fn a_page_that_another_job_reads_is_no_dependency() {
    let job = |wait: &[Op]| [wait, &[run(100), Op::ExitGroup(0)]].concat();
    let programs = [
        (
            "make",
            vec![fork(1), fork(2), Op::Wait, Op::Wait, Op::ExitGroup(0)],
        ),
        ("one", job(&[run(50), Op::Take(chan(0))])),
        ("two", job(&[run(60), Op::Post(chan(0))])),
    ];
    let world = by("/bin/ninja", world(&programs, &[0]));
    let (mut recording, _) = Recording::record(&Answer::config(world, 2));
    let alone = |recording: &Recording| {
        let schedule = Answer::to(recording).planned(Some(2));
        let machine = Machine {
            jobs: Some(1),
            ..Machine::of(2)
        };
        schedule.trace(machine, 0, Effect::Likely)
    };
    // With a wait for a pipe, the first job needs the second one, so the simulation must run both at once.
    assert!(alone(&recording).wall < 300 * MS);
    for written in recording.cpus.iter_mut().flatten() {
        if let SchedKind::Switch(Switch {
            prev_state, reason, ..
        }) = &mut written.event.kind
        {
            if *reason == Reason::PipeRead {
                (*prev_state, *reason) = (2, Reason::PageFault);
            }
        }
    }
    let wall = alone(&recording).wall;
    assert!(wall.abs_diff(320 * MS) < 3 * MS, "{wall}");
}

/// Tasks outside of the run that never sleep get even parts of the simulated CPUs.
#[test]
fn others_are_kept() {
    let programs = [
        ("make", vec![fork(1), Op::Wait, Op::ExitGroup(0)]),
        (
            "cc1",
            vec![run(100), Op::Sleep(ms(50, 50)), Op::ExitGroup(0)],
        ),
    ];
    let answer = Answer::of(world(&programs, &[]), 2);
    let schedule = answer.schedule(&[]);
    for (cpus, others, want) in [
        (1, 0, 150),
        (1, 1, 250),
        (1, 3, 450),
        (2, 1, 150),
        (2, 3, 250),
    ] {
        let others = others * 1000;
        let machine = Machine {
            others,
            ..Machine::of(cpus)
        };
        let is = schedule.simulate(machine, 0, Effect::Likely).wall;
        assert!(is.abs_diff(want * MS) < 3 * MS, "{is} {want}");
    }
}

/// A group of tasks gets one share of the CPUs beside another group, however many tasks the group has.
#[test]
fn a_group_has_one_share() {
    let driver = |jobs: u16| {
        let mut driver: Vec<Op> = (0..jobs).map(|_| fork(1)).collect();
        driver.extend([Op::WaitAll, Op::ExitGroup(0)]);
        driver
    };
    for (jobs, others, grouped, want) in [
        // With two CPUs and one other group of tasks that has the same share of the CPUs, the run has one CPU: enough
        // for one task, while four tasks share it.
        (1, 1, true, 100),
        (4, 1, true, 400),
        (4, 3, true, 800),
        (1, 2, false, 150),
        (4, 2, false, 300),
    ] {
        let programs = [
            ("make", driver(jobs)),
            ("cc1", vec![run(100), Op::ExitGroup(0)]),
        ];
        let answer = Answer::of(world(&programs, &[]), 2);
        let machine = Machine {
            others: others * 1000,
            grouped,
            ..Machine::of(2)
        };
        let is = answer
            .schedule(&[])
            .simulate(machine, 0, Effect::Likely)
            .wall;
        assert!(
            is.abs_diff(want * MS) < 5 * MS,
            "{jobs} {others}: {is} {want}"
        );
    }
}

/// Other tasks keep the CPUs busy. So a driver that works for a moment beside its job waits for a CPU as long as the
/// job does. In a simulation without the other tasks, the build must need as few CPUs at once as in a run on idle CPUs.
#[test]
fn other_tasks_change_no_demand() {
    let world = || build(&[30, 20, 25], 1, 5);
    let quiet = Answer::of(world(), 2).schedule(&[]).alone();
    let loaded = Answer::of(beside(world(), 6), 2);
    let recorded = parallelism(&loaded.analysis, &loaded.groups, None, 0, None).unwrap();
    let loaded = loaded.schedule(&[]).alone();
    for run in [&quiet, &loaded] {
        assert_eq!(run.demand.iter().sum::<u64>(), run.wall);
    }
    let at_once = |demand: &[u64]| demand.iter().skip(2).sum::<u64>();
    let (quiet, loaded) = (at_once(&quiet.demand), at_once(&loaded.demand));
    assert!(loaded.abs_diff(quiet) < MS, "{loaded} {quiet}");
    assert!(
        at_once(&recorded.demand) > 2 * quiet,
        "{recorded:?} {quiet}"
    );
}

/// Large processes that take turns on a CPU become slower, because they displace each other's data from its caches. A
/// recording in which they shared a CPU contains this cost, and a simulation with more CPUs removes it. A simulation
/// with fewer CPUs adds it.
#[test]
fn sharing_the_caches_costs_time() {
    let run = |answer: &Answer, cpus, cold| {
        let machine = Machine {
            cold,
            ..Machine::of(cpus)
        };
        let schedule = answer.schedule(&[]);
        assert!(schedule.has_large());
        schedule.simulate(machine, 0, Effect::Likely).wall
    };
    let part = |is: u64, of: u64, percent: std::ops::Range<u64>| {
        let is = is * 100 / of;
        assert!(percent.contains(&is), "{is} % not in {percent:?}");
    };
    let [two, one] = [2, 1].map(|cpus| Answer::of(build(&[200, 200], 2, 1), cpus));
    part(run(&two, 2, 100), run(&two, 2, 0), 99..101);
    part(run(&two, 1, 100), run(&two, 1, 0), 106..111);
    part(run(&one, 1, 100), run(&one, 1, 0), 97..103);
    part(run(&one, 2, 100), run(&one, 2, 0), 90..95);
}

/// A quota stops all tasks until its period ends. Tasks that do not use up the quota are not stopped.
#[test]
fn a_quota_stops_its_tasks() {
    let programs = [
        ("make", vec![fork(1), Op::Wait, Op::ExitGroup(0)]),
        (
            "cc1",
            vec![run(120), Op::Sleep(ms(200, 200)), run(40), Op::ExitGroup(0)],
        ),
    ];
    let answer = Answer::of(world(&programs, &[]), 2);
    let schedule = answer.schedule(&[]);
    let wall = |percent: u64| {
        let quota = Some(percent * PERIOD / 100);
        let machine = Machine {
            quota,
            ..Machine::of(2)
        };
        schedule.simulate(machine, 0, Effect::Likely).wall
    };
    let near = |is: u64, want: u64| assert!(is.abs_diff(want * MS) < 3 * MS, "{is} {want}");
    near(wall(200), 360);
    near(wall(100), 360);
    // A quota of 50 % allows 50 ms of work in each period of 100 ms. So the first 120 ms of work end at 220 ms, and the
    // sleep of 200 ms ends at 420 ms. The period then still allows the remaining 40 ms of work.
    near(wall(50), 460);
}

/// Several tasks that use up a quota together come to their end, however small the rest of the quota is.
#[test]
fn a_quota_is_used_up_by_several_tasks() {
    let driver = [1, 2, 3].map(fork);
    let mut programs = vec![(
        "make",
        [&driver[..], &[Op::WaitAll, Op::ExitGroup(0)]].concat(),
    )];
    programs.extend(["a", "b", "c"].map(|name| (name, vec![run(70), Op::ExitGroup(0)])));
    let answer = Answer::of(world(&programs, &[]), 3);
    let schedule = answer.schedule(&[]);
    for others in [0, 700, 7_333] {
        let machine = Machine {
            quota: Some(PERIOD * 60 / 100),
            others,
            ..Machine::of(3)
        };
        // A period of 100 ms allows 60 ms of the 210 ms of work. So 30 ms are left after three periods, and the three
        // tasks need at least 10 ms for them.
        let is = schedule.simulate(machine, 0, Effect::Likely).wall;
        assert!((305 * MS..800 * MS).contains(&is), "{is}");
    }
}

/// The lengths of the parts of the chain of threads that determines the simulated run add up to its time.
#[test]
fn the_path_adds_up() {
    let answer = Answer::of(by("/bin/ninja", build(&[30, 10, 20, 40, 5], 2, 10)), 2);
    let schedule = answer.planned(Some(2));
    for jobs in 1..5 {
        let machine = Machine {
            jobs: Some(jobs),
            ..Machine::of(4)
        };
        let done = schedule.trace(machine, 0, Effect::Likely);
        for done in [done.clone(), done.fitted((13, 11))] {
            let sum: u64 = done.legs.iter().map(|leg| leg.ns).sum();
            assert_eq!((sum, done.legs.first().unwrap().from), (done.wall, 0));
        }
    }
}

/// A thread checks every 10 ms whether it has to end, and the last thread of its process waits for this end. In a
/// shorter run, the first thread checks less often.
#[test]
fn a_joined_thread_has_as_many_ticks_as_the_run_takes() {
    let (stop, joined) = (chan(0), chan(1));
    let main = vec![
        Op::Thread(1, Arg::Same),
        run(100),
        Op::Post(stop),
        Op::Take(joined),
        run(5),
        Op::ExitGroup(0),
    ];
    let ticker = vec![
        Op::Sleep(ms(10, 10)),
        Op::Poll(stop, 0),
        Op::Post(joined),
        Op::Exit(0),
    ];
    let mut alone = world(&[("ghc", main), ("ticker", Vec::new())], &[0, 0]);
    // The program `ticker` is really a thread of the process of ghc, so it does not begin with an exec.
    alone.programs[1] = ticker;
    let answer = Answer::of(beside(alone, 3), 2);
    let recorded = answer.path.length();
    let forecast = answer.alone_on_its_cpus();
    assert!(recorded > 200 * MS, "{recorded}");
    assert!(
        forecast.abs_diff(105 * MS) < 20 * MS,
        "{forecast} of {recorded}"
    );
}
