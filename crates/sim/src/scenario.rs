//! Simulated worlds that resemble real workloads. Their programs are written as tables, in which each line has a few
//! operations that belong together.

use crate::program::{chan, ms, ns, own_chan, us, Arg, Image, Mix, Op, Resident, World};

/// A program file for simulated tasks with this path. Its arguments are separated by spaces.
fn image(path: &str, args: &str) -> Image {
    Image {
        path: path.to_owned(),
        args: args.split(' ').map(str::to_owned).collect(),
    }
}

/// The operation by which a simulated task repeats the operations from `to` on, `times` times in
/// all.
fn repeat(times: u32, to: u16) -> Op {
    Op::Repeat { slot: 0, times, to }
}

fn world(name: &str, programs: Vec<Vec<Op>>, images: Vec<Image>, channels: Vec<u32>) -> World {
    World {
        name: name.to_owned(),
        programs,
        images,
        channels,
        cgroups: 1,
        ..World::default()
    }
}

/// Adds the background tasks of any machine to a simulated world: two daemons, and a kernel thread
/// on each of the first two CPUs.
fn with_background(mut world: World) -> World {
    let daemon = world.programs.len() as u16;
    world.programs.extend([
        vec![Op::Run(us(5, 300)), Op::Sleep(ms(1, 40)), Op::Goto(0)],
        vec![Op::Run(us(1, 20)), Op::Lock(us(100, 9_000)), Op::Goto(0)],
    ]);
    let resident = |program, kthread, pin| Resident {
        program,
        arg: 0,
        kthread,
        pin,
    };
    world.residents.extend([
        resident(daemon, false, None),
        resident(daemon, false, None),
        resident(daemon + 1, true, Some(0)),
        resident(daemon + 1, true, Some(1)),
    ]);
    world
}

/// The simulated world of `make -jN`: make starts a shell for each of `units` compilation units as soon as one of
/// `jobs` job tokens is free. The shell runs the compiler driver by vfork and exec. The driver runs the compiler and
/// the assembler. At the end, the linker runs.
pub fn make(jobs: u32, units: u32) -> World {
    build(jobs, units, 3)
}

/// The simulated world of [`make`], but with compilers that alternate `rounds` times between input
/// and computation.
#[rustfmt::skip]
pub fn build(jobs: u32, units: u32, rounds: u32) -> World {
    let (cc, cc1, assembler, ld, job) = (1, 2, 3, 4, 5);
    let programs = vec![
        vec![
            Op::Exec(0), Op::Run(ms(1, 3)),
            Op::Take(chan(0)), Op::Run(us(50, 400)), Op::Fork(job, Arg::Same), Op::Run(us(20, 60)),
            repeat(units, 2),
            Op::WaitAll, Op::Vfork(ld, Arg::Same), Op::Wait, Op::ExitGroup(0),
        ],
        vec![
            Op::Exec(1), Op::Run(us(300, 900)),
            Op::Vfork(cc1, Arg::Same), Op::Wait, Op::Run(us(50, 90)),
            Op::Vfork(assembler, Arg::Same), Op::Wait, Op::Run(us(50, 200)), Op::ExitGroup(0),
        ],
        vec![
            Op::Exec(2), Op::Run(ms(1, 4)),
            Op::Io(us(50, 800)), Op::Run(ms(2, 40)), repeat(rounds, 2), Op::ExitGroup(0),
        ],
        vec![Op::Exec(3), Op::Run(ms(1, 5)), Op::Io(us(50, 300)), Op::ExitGroup(0)],
        vec![Op::Exec(4), Op::Run(ms(2, 9)), Op::Io(ms(1, 3)), repeat(20, 1), Op::ExitGroup(0)],
        // The shell runs the compiler driver and then returns its job token.
        vec![
            Op::Exec(5), Op::Run(us(200, 700)),
            Op::Vfork(cc, Arg::Same), Op::Wait, Op::Post(chan(0)), Op::ExitGroup(0),
        ],
    ];
    let mut images = vec![
        image("/usr/bin/make", "make -j"),
        image("/usr/bin/gcc", "gcc -c unit{}.c -o unit{}.o"),
        image("/usr/libexec/gcc/cc1", "cc1 -quiet -O2 unit{}.c -o /tmp/cc{}.s"),
        image("/usr/bin/as", "as --64 -o unit{}.o /tmp/cc{}.s"),
        image("/usr/bin/ld", "ld -o prog"),
        image("/bin/sh", "sh -c"),
    ];
    images[usize::from(job)].args.push("gcc -c unit{}.c".to_owned());
    with_background(world("make", programs, images, vec![jobs]))
}

/// A simulated world of groups of senders and receivers like hackbench, in which every message is a
/// wake-up.
#[rustfmt::skip]
pub fn hackbench(groups: u32, pairs: u32) -> World {
    let groups = groups.clamp(1, 1_000);
    let room = own_chan(groups as u16);
    let (group, sender, receiver) = (1, 2, 3);
    let programs = vec![
        vec![
            Op::Exec(0), Op::Fork(group, Arg::Loop(0)), repeat(groups, 1),
            Op::WaitAll, Op::ExitGroup(0),
        ],
        vec![
            Op::Fork(sender, Arg::Same), Op::Fork(receiver, Arg::Same), repeat(pairs, 0),
            Op::WaitAll, Op::ExitGroup(0),
        ],
        vec![Op::Take(room), Op::Run(us(1, 4)), Op::Post(own_chan(0)), Op::Goto(0)],
        vec![Op::Take(own_chan(0)), Op::Run(us(1, 3)), Op::Post(room), Op::Goto(0)],
    ];
    let images = vec![image("/usr/bin/hackbench", "hackbench -g {}")];
    // The first half of the channels holds the messages of each group (none at first). The second half counts the free
    // places in the pipes of each group (4 at first).
    let channels = [vec![0; groups as usize], vec![4; groups as usize]].concat();
    with_background(world("hackbench", programs, images, channels))
}

/// A simulated world of two processes that pass a byte to and fro on one CPU.
#[rustfmt::skip]
pub fn pipe() -> World {
    let programs = vec![
        vec![
            Op::Exec(0), Op::Fork(1, Arg::Same),
            Op::Post(chan(0)), Op::Take(chan(1)), Op::Run(ns(400, 900)), Op::Goto(2),
        ],
        vec![Op::Take(chan(0)), Op::Run(ns(400, 900)), Op::Post(chan(1)), Op::Goto(0)],
    ];
    let images = vec![image("/usr/bin/perf", "perf bench sched pipe")];
    World { command_pin: Some(0), ..world("pipe", programs, images, vec![0, 0]) }
}

/// A simulated world of threads that take turns with one lock (a convoy).
#[rustfmt::skip]
pub fn pool(threads: u32) -> World {
    let programs = vec![
        vec![
            Op::Exec(0), Op::Thread(1, Arg::Loop(0)), repeat(threads, 1),
            Op::Sleep(ms(20, 30)), Op::Run(us(10, 50)), Op::Goto(3),
        ],
        vec![
            Op::Rename, Op::Run(us(20, 300)),
            Op::Take(chan(0)), Op::Run(us(5, 40)), Op::Post(chan(0)), Op::Goto(1),
        ],
    ];
    let images = vec![image("/usr/bin/server", "server --threads")];
    with_background(world("pool", programs, images, vec![1]))
}

/// A simulated world of `shells` shells, each with a loop that runs `/bin/true` `count` times.
#[rustfmt::skip]
pub fn short_processes(shells: u32, count: u32) -> World {
    let programs = vec![
        vec![
            Op::Exec(0), Op::Fork(1, Arg::Same), repeat(shells, 1),
            Op::WaitAll, Op::ExitGroup(0),
        ],
        vec![
            Op::Fork(2, Arg::Same), Op::Wait, Op::Run(us(5, 30)), repeat(count, 0),
            Op::ExitGroup(0),
        ],
        vec![Op::Run(us(5, 40)), Op::Exec(1), Op::Run(us(50, 200)), Op::ExitGroup(0)],
    ];
    let images = vec![image("/bin/sh", "sh loop.sh"), image("/bin/true", "/bin/true {}")];
    with_background(world("short", programs, images, vec![0]))
}

/// A simulated world of independent tasks that only run and sleep, which gives the most events in a
/// given time.
#[rustfmt::skip]
pub fn sleepers(tasks: u32) -> World {
    let programs = vec![
        vec![
            Op::Exec(0), Op::Fork(1, Arg::Same), repeat(tasks, 1),
            Op::WaitAll, Op::ExitGroup(0),
        ],
        vec![Op::Run(us(1, 20)), Op::Sleep(us(10, 400)), Op::Goto(0)],
    ];
    world("sleepers", programs, vec![image("/usr/bin/sleepers", "sleepers")], vec![0])
}

/// How often each operation occurs in the random simulated world [`chaos`], as weights; 0 for
/// never.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Weights {
    /// The weight of running for some µs, among the random operations of a simulated task.
    pub run: u16,
    /// The weight of running for some ms, among the random operations of a simulated task.
    pub long_run: u16,
    /// The weight of sleeping, among the random operations of a simulated task.
    pub sleep: u16,
    /// The weight of waiting for the disk, among the random operations of a simulated task.
    pub io: u16,
    /// The weight of waiting for a kernel lock (state D, not in_iowait), among the random
    /// operations of a simulated task.
    pub lock: u16,
    /// The weight of yielding the CPU, among the random operations of a simulated task.
    pub yields: u16,
    /// The weight of posting to a channel (adding to its count), or waiting for a post of another task, among the
    /// random operations of a simulated task.
    pub pipe: u16,
    /// The weight of forking, among the random operations of a simulated task.
    pub fork: u16,
    /// The weight of forking by vfork, among the random operations of a simulated task.
    pub vfork: u16,
    /// The weight of making a thread, among the random operations of a simulated task.
    pub thread: u16,
    /// The weight of executing a program, among the random operations of a simulated task.
    pub exec: u16,
    /// The weight of waiting for a child, among the random operations of a simulated task.
    pub wait: u16,
    /// The weight of ending the thread or the process, among the random operations of a simulated
    /// task.
    pub exit: u16,
    /// The weight of killing another process, among the random operations of a simulated task.
    pub kill: u16,
    /// The weight of stopping or continuing another process, among the random operations of a
    /// simulated task.
    pub stop: u16,
    /// The weight of spuriously waking another task, among the random operations of a simulated
    /// task.
    pub poke: u16,
    /// The weight of renaming the task or moving it to another cgroup, among the random operations
    /// of a simulated task.
    pub rename: u16,
}

impl Default for Weights {
    fn default() -> Self {
        Weights {
            run: 30,
            long_run: 5,
            sleep: 15,
            io: 8,
            lock: 4,
            yields: 5,
            pipe: 25,
            fork: 4,
            vfork: 3,
            thread: 5,
            exec: 2,
            wait: 4,
            exit: 4,
            kill: 1,
            stop: 2,
            poke: 6,
            rename: 2,
        }
    }
}

/// A simulated world in which tasks do everything that the simulator can do, at random.
#[rustfmt::skip]
pub fn chaos(weights: &Weights, residents: u32) -> World {
    let w = weights;
    let (worker, vforked, command, harmless) = (0, 1, 2, 3);
    let peaceful = vec![
        (w.run, Op::Run(us(1, 100))),
        (w.long_run, Op::Run(ms(1, 5))),
        (w.sleep, Op::Sleep(us(5, 3_000))),
        (w.io, Op::Io(us(20, 2_000))),
        (w.lock, Op::Lock(us(5, 1_000))),
        (w.yields, Op::Yield),
        (w.pipe, Op::Post(chan(0))),
        (w.pipe, Op::TakeFor(chan(0), us(50, 2_000))),
        (w.pipe / 2, Op::Post(chan(1))),
        (w.pipe / 2, Op::TakeFor(chan(1), us(500, 5_000))),
        (w.poke, Op::Poke),
        (w.rename, Op::Rename),
        (w.rename, Op::MoveCgroup),
        (w.fork, Op::Fork(worker, Arg::Same)),
        (w.vfork, Op::Vfork(vforked, Arg::Same)),
        (w.wait, Op::Wait),
        (w.exit.div_ceil(2), Op::Exit(3)),
    ];
    let harmful = vec![
        (w.thread, Op::Thread(worker, Arg::Same)),
        (w.exec, Op::Exec(1)),
        (w.exit.div_ceil(2), Op::Exit(4)),
        (w.exit.div_ceil(3), Op::ExitGroup(1)),
        (w.kill, Op::Kill),
        (w.stop, Op::Stop),
        (w.stop * 3, Op::Continue),
    ];
    let all = [peaceful.clone(), harmful].concat();
    // The child of a vfork does at most some I/O before its exec or exit, as real ones do.
    let vfork_mix = vec![(3, Op::Exec(2)), (1, Op::ExitGroup(127)), (1, Op::Io(us(5, 90)))];
    let programs = vec![
        vec![Op::Run(ns(500, 20_000)), Op::Pick(0), Op::Goto(0)],
        vec![
            Op::Run(us(1, 50)), Op::Pick(1), Op::Run(us(1, 50)),
            Op::Exec(2), Op::Run(us(1, 9)), Op::Pick(0), Op::Goto(4),
        ],
        vec![
            Op::Exec(0), Op::Fork(worker, Arg::Same), Op::Run(us(5, 80)),
            Op::Thread(harmless, Arg::Same), Op::Sleep(us(100, 900)), Op::Goto(1),
        ],
        // The threads of COMMAND do only operations that neither end COMMAND's process nor replace its program.
        vec![Op::Run(ns(500, 20_000)), Op::Pick(2), Op::Goto(0)],
    ];
    let images = vec![
        image("/usr/bin/chaos", "chaos --all"),
        image("/usr/bin/tool", "tool {} "),
        image("/bin/helper", "helper --of {}"),
    ];
    let resident = |arg| Resident { program: worker, arg, kthread: false, pin: None };
    World {
        mixes: vec![Mix(all), Mix(vfork_mix), Mix(peaceful)],
        residents: (0..residents).map(resident).collect(),
        command,
        cgroups: 3,
        ..world("chaos", programs, images, vec![0, 1])
    }
}
