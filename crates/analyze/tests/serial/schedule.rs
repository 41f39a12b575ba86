//! The recorded run simulated on CPUs of its own, beside the simulator that made the recording.

use proptest::prelude::*;
use tr_analyze::kinds::Kind;
use tr_analyze::schedule::{Change, Effect, Jobs, Schedule};
use tr_analyze::timeline::Bucket;
use tr_analyze::what_if::Without;
use tr_format::event::Ktime;
use tr_sim::program::{chan, ms, Op, Resident, World};

use super::{fork, repeat, run, world, Answer, MS, SLACK};

/// A driver that runs `jobs`, so many at once; a link follows. A job in three reads from a disk,
/// one in three sleeps.
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

/// The same machine with tasks that are not recorded and never sleep.
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

fn nothing(_: Kind, _: tr_format::event::Reason) -> bool {
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

    /// No task has to wait for a CPU: the run takes the recorded time without such waits.
    #[test]
    fn with_enough_cpus_nothing_changes(jobs in lengths(), at_once in 1u16..4, wait in 1u64..30) {
        let answer = Answer::of(build(&jobs, at_once, wait), at_once + 2);
        let (is, was) = (answer.alone_on_its_cpus(), answer.path.length());
        // A task that is woken may be sent to a busy CPU, beside an idle one.
        let timeline = answer.analysis.timeline.as_ref().unwrap();
        let threads = answer.analysis.thread_ids();
        let stretches = threads.flat_map(|thread| timeline.of(thread));
        let mut waits = stretches.filter(|it| matches!(it.doing, Bucket::RunQueue { .. }));
        if waits.all(|it| it.length() <= 50_000) {
            prop_assert_eq!(is, was);
        }
        prop_assert!(is <= was && is >= was - was / 6, "{is} of {was}");
    }

    /// More tasks than CPUs: time slices and the choice of a CPU cost or gain a few slices.
    #[test]
    fn with_full_cpus_little_changes(jobs in lengths(), at_once in 2u16..9, wait in 1u64..30) {
        let answer = Answer::of(build(&jobs, at_once, wait), 2);
        let (is, was) = (answer.alone_on_its_cpus(), answer.path.length());
        prop_assert!(is.abs_diff(was) <= was / 6 + 12 * MS, "{is} of {was}");
    }

    /// What tasks outside the recording took is given back.
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

/// Jobs one after the other: at once they take the half on two CPUs, and no less.
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
            .map(|it| answer.analysis.process(*it).start)
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

/// Eight jobs on two CPUs wait for each other. They lose nothing by it.
#[test]
fn jobs_that_share_the_cpus_lose_nothing() {
    let jobs = [40; 8];
    let [few, many] = [3, 8].map(|at_once| Answer::of(build(&jobs, at_once, 1), 2));
    let [few, many] = [few, many].map(|answer| answer.alone_on_its_cpus());
    assert!(few.abs_diff(many) < few / 20, "{few} {many}");
}

/// A piece of time that is shorter shortens the run, as far as no other one decides.
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
    let group = answer.groups.find("cc1").unwrap();
    let of = (0..answer.groups.count()).map(|it| it == group as usize);
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

/// A waking that comes too late in the new order stops nothing.
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
