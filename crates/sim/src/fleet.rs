//! Simulates many runs of many builds, with changes of a known cause between the runs, to test how
//! their recordings are compared.

use tr_format::counters::{Counter, Counters};
use tr_format::event::{Context, LifeEvent, LifeKind, Reason, SchedKind, Switch, Waking};
use tr_format::Error;

use crate::blocks::{Cut, Order};
use crate::config::Config;
use crate::draw::Draw;
use crate::program::{chan, ns, Arg, Image, Op, Resident, World};
use crate::recording::Recording;

/// The change that is planted between two runs of a simulated series of builds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Plant {
    /// Nothing changes in the simulated series of builds.
    Quiet,
    /// The change is in the code: one of the compilations needs three times the CPU time.
    Code,
    /// The change is in the load: other tasks use the CPUs of the simulated machine.
    Busy,
    /// The hypervisor takes a third of the CPU time from the simulated machine.
    Stolen,
    /// A test of the simulated build waits longer for the network.
    Network,
    /// The job server of the simulated build has one slot instead of two, so that the same work is
    /// done one after the other.
    Serial,
    /// A test of the simulated build fails in every fourth run of the series, before the run number `since` as well as
    /// after it.
    Flaky,
    /// From the run `since` on, the simulated build runs on other hosts, whose CPUs have a lower frequency.
    Slower,
    /// For ten runs from the run `since` on, COMMAND of the simulated build fails after its first steps.
    Broken,
}

impl Plant {
    /// All kinds of changes that can be planted in a simulated series of builds.
    pub const ALL: [Plant; 9] = [
        Plant::Quiet,
        Plant::Code,
        Plant::Busy,
        Plant::Stolen,
        Plant::Network,
        Plant::Serial,
        Plant::Flaky,
        Plant::Slower,
        Plant::Broken,
    ];
}

/// One run of a build in a simulated series.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FleetRun {
    /// The number of the simulated series. A series stands for a repository with one CI job.
    pub series: u32,
    /// The number of the run in its simulated series.
    pub number: u32,
    /// The change that is planted in the simulated series.
    pub plant: Plant,
    /// The number of the first run that has the planted change, counted within the simulated series.
    pub since: u32,
}

/// The steps of every simulated build: the name of each step as `tr` derives it, the path of the
/// program, and the arguments.
pub const STEPS: [(&str, &str, &str); 7] = [
    ("parse.o", "/usr/bin/gcc", "gcc -c -o parse.o parse.c"),
    ("code.o", "/usr/bin/gcc", "gcc -c -o code.o code.c"),
    ("table.o", "/usr/bin/gcc", "gcc -c -o table.o table.c"),
    ("main.o", "/usr/bin/gcc", "gcc -c -o main.o main.c"),
    (
        "prog",
        "/usr/bin/ld",
        "ld -o prog parse.o code.o table.o main.o",
    ),
    ("t/fetch.sh", "/bin/sh", "sh -e t/fetch.sh"),
    ("t/units.sh", "/bin/sh", "sh -e t/units.sh"),
];

/// The number of compilations (programs 1 to 4) in a simulated build, none of which depends on another.
const UNITS: u16 = 4;

/// The number of runs for which COMMAND of a simulated build fails until it is repaired.
pub const BROKEN_RUNS: u32 = 10;

const MS: u64 = 1_000_000;

/// The beginning of the first run of a simulated series in ns since 1970. A new run begins each `INTERVAL` ns.
const FIRST_RUN: u64 = 1_780_000_000_000_000_000;
const INTERVAL: u64 = 6 * 3_600_000_000_000;

/// The factors by which the durations of a simulated build differ from the usual ones.
struct Pace {
    /// The factor in thousandths by which all work takes longer or shorter on this simulated machine: 1000 is usual,
    /// and more is slower.
    speed: u64,
    /// The factor in tenths by which all work takes longer because the simulated repository is large: 10 is the
    /// smallest.
    size: u64,
    /// The factor in halves by which work on CPUs takes longer because the hypervisor takes a part of them: 2 is usual.
    stolen: u64,
    /// The frequency of the simulated machine's CPUs in kHz.
    frequency: u64,
}

/// The usual frequency of the simulated machine's CPUs in kHz. A machine with slower CPUs has the frequency
/// `SLOWER_FREQUENCY`.
const FREQUENCY: u64 = 3_000_000;
const SLOWER_FREQUENCY: u64 = 2_300_000;

impl Pace {
    fn scale(&self, ms: u64) -> u64 {
        ms * MS * self.speed / 1000 * self.size / 10
    }

    fn run(&self, ms: u64) -> Op {
        let length = self.scale(ms) * self.stolen / 2 * FREQUENCY / self.frequency;
        Op::Run(ns(length * 98 / 100, length * 102 / 100))
    }

    fn wait(&self, ms: u64) -> crate::program::Span {
        ns(self.scale(ms) * 9 / 10, self.scale(ms) * 11 / 10)
    }
}

impl FleetRun {
    fn changed(&self) -> bool {
        self.number >= self.since
    }

    fn is(&self, plant: Plant) -> bool {
        self.plant == plant && self.changed()
    }

    fn frequency(&self) -> u64 {
        if self.is(Plant::Slower) {
            SLOWER_FREQUENCY
        } else {
            FREQUENCY
        }
    }

    /// Whether COMMAND fails early in this run of a simulated build.
    pub fn breaks(&self) -> bool {
        self.is(Plant::Broken) && self.number < self.since + BROKEN_RUNS
    }

    /// Whether the flaky test fails in this run of a simulated build.
    pub fn fails(&self) -> bool {
        self.plant == Plant::Flaky && self.number % 4 == self.series % 4
    }

    fn draw(&self) -> Draw {
        Draw::new(u64::from(self.series) << 32 | u64::from(self.number))
    }

    /// The programs of this run of a simulated build: COMMAND, and one program for each step.
    fn world(&self, draw: &mut Draw) -> World {
        let pace = self.pace(draw);
        let mut programs = vec![self.make(&pace)];
        programs.extend(self.steps(&pace));
        // The program `other` stands for another build on the same machine. It runs only if the change in this series
        // is the load of the machine (`Busy`).
        let other = programs.len() as u16;
        programs.push(vec![
            Op::Run(ns(4 * MS, 9 * MS)),
            Op::Sleep(ns(MS, 2 * MS)),
            Op::Goto(0),
        ]);
        let image = |path: &str, line: &str| Image {
            path: path.to_owned(),
            args: line.split(' ').map(str::to_owned).collect(),
        };
        let mut images = vec![image("/usr/bin/make", "make -j2 check")];
        images.extend(STEPS.map(|(_, path, line)| image(path, line)));
        let resident = Resident {
            program: other,
            arg: 0,
            kthread: false,
            pin: None,
        };
        World {
            name: "fleet".to_owned(),
            programs,
            images,
            channels: vec![if self.is(Plant::Serial) { 1 } else { 2 }],
            residents: vec![resident; if self.is(Plant::Busy) { 3 } else { 0 }],
            cgroups: 1,
            ..World::default()
        }
    }

    fn pace(&self, draw: &mut Draw) -> Pace {
        // The speed varies by up to 4 % from run to run, as on machines of one kind. In 4 % of the runs, the work takes
        // 5 to 40 % longer.
        let mut speed = draw.length(ns(960, 1040));
        if draw.chance(40) {
            speed += draw.length(ns(50, 400));
        }
        Pace {
            speed,
            // Each series stands for a repository of another size.
            size: 10 + u64::from(self.series % 5),
            stolen: if self.is(Plant::Stolen) { 3 } else { 2 },
            frequency: self.frequency(),
        }
    }

    /// The operations of COMMAND in a simulated build. It runs as many compilations at a time as
    /// there are job slots, and then the other steps.
    fn make(&self, pace: &Pace) -> Vec<Op> {
        let mut make = vec![Op::Exec(0), pace.run(1)];
        for unit in 1..=UNITS {
            make.extend([Op::Take(chan(0)), Op::Fork(unit, Arg::Same)]);
        }
        make.push(Op::WaitAll);
        if self.breaks() {
            make.push(Op::ExitGroup(2));
            return make;
        }
        for step in UNITS + 1..=STEPS.len() as u16 {
            make.extend([Op::Fork(step, Arg::Same), Op::WaitAll]);
        }
        make.push(Op::ExitGroup(if self.fails() { 2 } else { 0 }));
        make
    }

    /// The operations of the programs that do the steps of a simulated build.
    fn steps(&self, pace: &Pace) -> Vec<Vec<Op>> {
        let (run, wait) = (|ms| pace.run(ms), |ms| pace.wait(ms));
        let unit = |unit: u16| {
            let is_slow = unit == 2 && self.is(Plant::Code);
            let slow = if is_slow { 3 } else { 1 };
            vec![
                Op::Exec(unit),
                Op::Io(wait(1)),
                run(slow * (12 + 2 * u64::from(unit))),
                Op::Post(chan(0)),
                Op::ExitGroup(0),
            ]
        };
        let mut steps: Vec<Vec<Op>> = (1..=UNITS).map(unit).collect();
        let last = UNITS + 1;
        let fetched = if self.is(Plant::Network) { 70 } else { 10 };
        steps.extend([
            vec![Op::Exec(last), run(8), Op::Io(wait(3)), Op::ExitGroup(0)],
            vec![
                Op::Exec(last + 1),
                run(2),
                Op::Sleep(wait(fetched)),
                run(2),
                Op::ExitGroup(0),
            ],
            vec![
                Op::Exec(last + 2),
                run(15),
                Op::ExitGroup(u8::from(self.fails())),
            ],
        ]);
        steps
    }

    /// The bytes of the trace file of this run of a simulated build.
    ///
    /// # Errors
    /// The writer refuses an event.
    pub fn trace(&self) -> Result<Vec<u8>, Error> {
        let mut draw = self.draw();
        let mut config = Config::new(self.world(&mut draw), 2, u64::MAX >> 12);
        config.seed = draw.length(ns(0, u64::MAX / 2));
        config.linger = Some(MS);
        let (mut recording, truth) = Recording::record(&config);
        let busy: u64 = truth.tasks.iter().map(|task| task.times.on_cpu).sum();
        self.identify(&mut recording, &mut draw);
        let stolen = if self.is(Plant::Stolen) { busy / 3 } else { 0 };
        let known = [
            (Counter::Busy, busy + truth.others - stolen),
            (Counter::Stolen, stolen),
        ];
        let frequency = self.frequency();
        let (start, end) = (recording.meta.start, recording.end());
        for (time, share) in [(start, 0), (end, 1)] {
            let mut counters = Counters::default();
            for (counter, value) in known {
                counters.set(counter, value * share);
            }
            counters.set(Counter::Frequency, frequency);
            let kind = LifeKind::Counters(counters);
            recording.insert(
                time.0,
                LifeEvent {
                    time,
                    cpu: None,
                    kind,
                },
            );
        }
        by_network(&mut recording);
        recording.to_file(&Cut {
            largest: u32::MAX,
            order: Order::Written,
            seed: 1,
        })
    }

    fn identify(&self, recording: &mut Recording, draw: &mut Draw) {
        let (series, number) = (u64::from(self.series), u64::from(self.number));
        let real = FIRST_RUN + number * INTERVAL + series * MS + draw.length(ns(0, MS / 2));
        let meta = &mut recording.meta;
        meta.start_clock.real = real;
        let host = draw.length(ns(1, 8)) + if self.is(Plant::Slower) { 8 } else { 0 };
        meta.host = format!("runner-{host}");
        meta.command = [b"make".to_vec(), b"-j2".to_vec(), b"check".to_vec()].into();
        meta.cwd = b"/w/build".to_vec();
        let ci = [
            ("GITHUB_REPOSITORY", format!("fleet/build-{series:03}")),
            ("GITHUB_JOB", "check".to_owned()),
            ("GITHUB_REF", "refs/heads/main".to_owned()),
            ("GITHUB_RUN_ID", (series * 100_000 + number).to_string()),
            (
                "GITHUB_SHA",
                format!("{:040x}", u128::from(real) << 96 | u128::from(real)),
            ),
        ];
        meta.ci = ci.map(|(name, value)| (name.to_owned(), value)).into();
        if let Some(summary) = &mut recording.summary {
            summary.end_clock.real = real + summary.end.since(recording.meta.start);
        }
    }
}

/// Changes all waits for a timer in a simulated recording into waits for the network: reads from a socket, each of
/// which a softirq ends.
fn by_network(recording: &mut Recording) {
    for written in recording.cpus.iter_mut().flatten() {
        match &mut written.event.kind {
            SchedKind::Switch(Switch { reason, .. }) if *reason == Reason::Timer => {
                *reason = Reason::SocketRead;
            }
            SchedKind::Waking(Waking { context, .. }) if *context == Context::HardIrq => {
                *context = Context::SoftIrq;
            }
            _ => {}
        }
    }
}
