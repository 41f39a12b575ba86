//! Compares recordings of `fixtures/programs/load.c` in several kernels with the kernel's own figures of that load and,
//! if ftrace ran, with its switches. The recordings are those in fixtures/traces, or those of a running `make
//! test-kernels` (TR_KERNELS names their directories).
#![allow(clippy::expect_used, clippy::unwrap_used, clippy::indexing_slicing)] // of our own files

mod account;
mod facts;
mod ftrace;

use std::collections::{BTreeMap, HashMap};
use std::path::{Path, PathBuf};

use tr_analyze::model::{Analysis, Thread};
use tr_analyze::order::{self, Event};
use tr_analyze::{analyze, Options};
use tr_format::counters::{Counter, Counters};
use tr_format::event::{CpuId, Ktime, LifeKind, SchedKind};
use tr_format::meta::{Method, Scope};
use tr_format::reader::Trace;
use tr_format::source::Source;

use account::Account;
use ftrace::Switches;

/// A switch of a CPU from the task `prev` to the task `next`. A CPU's switches are in order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Switch {
    time: u64,
    prev: u32,
    next: u32,
}

/// The largest allowed differences between the recorded CPU time of tasks and the kernel's figures. `tasks` has the
/// limits in ns for half of the tasks, for nine of ten, and for all. `together` is the limit for the sum of all tasks,
/// in thousandths.
///
/// The kernel updates a task's run time when it reads the run queue's clock, some µs before the event's timestamp.
/// Recorded events charge this interval to the previous task, the kernel charges it to the next one. A hypervisor can
/// deschedule a virtual CPU within the interval, for any time, so virtual machines have larger limits.
///
/// The clock of an emulated CPU continues while the host runs other tasks, so tasks seem to run for longer. If their
/// average run time exceeds `usual` (in ns), the limits grow in proportion.
struct Bound {
    tasks: [u64; 3],
    together: u64,
    usual: u64,
}

const NATIVE: Bound = Bound {
    tasks: [20_000, 1_000_000, 20_000_000],
    together: 10,
    usual: u64::MAX,
};
const EMULATED: Bound = Bound {
    tasks: [2_000_000, 50_000_000, 500_000_000],
    together: 60,
    usual: 30_000_000,
};

/// At most one part in 50 of an emulated machine's CPU time may be unknown. In ten measured recordings it was up to
/// 0.4 %.
const LATE_SWITCHES: u64 = 50;

/// A recording with the independent figures that it is compared with.
struct Recording {
    name: String,
    trace: Trace,
    analysis: Analysis,
    cpus: BTreeMap<CpuId, Vec<Switch>>,
    /// The times at which tasks were forked.
    forks: Vec<u64>,
    account: Account,
    seen: Option<Switches>,
}

impl Recording {
    /// Reads the recording NAME.bin with the load's account NAME.load, and with ftrace's switches NAME.switches if the
    /// file exists.
    fn read(path: &Path) -> Recording {
        let trace = Trace::open(Source::file(std::fs::File::open(path).expect("a file")).unwrap())
            .expect("a trace");
        let text = |extension| std::fs::read_to_string(path.with_extension(extension));
        let account = Account::parse(&text("load").expect("an account"));
        let seen = text("switches").ok().map(|text| Switches::parse(&text));
        let analysis = analyze(&trace, &Options::default());
        let (mut cpus, mut forks) = (BTreeMap::<_, Vec<_>>::new(), Vec::new());
        let mut merge = order::merge(&trace);
        while let Some(event) = merge.next_event() {
            match event {
                Event::Sched(cpu, event) => {
                    if let SchedKind::Switch(switch) = event.kind {
                        cpus.entry(cpu).or_default().push(Switch {
                            time: event.time.0,
                            prev: switch.prev.0,
                            next: switch.next.0,
                        });
                    }
                }
                Event::Life(event) => {
                    if matches!(event.kind, LifeKind::Fork(_)) {
                        forks.push(event.time.0);
                    }
                }
            }
        }
        let kernel = trace.meta().kernel.split(' ').take(2);
        let kernel: Vec<&str> = kernel.collect();
        let all = match trace.meta().scope {
            Scope::All => "the whole machine",
            _ => "the load",
        };
        Recording {
            name: format!("{}, {all}", kernel.join(" ")),
            trace,
            analysis,
            cpus,
            forks,
            account,
            seen,
        }
    }

    fn all(&self) -> bool {
        self.trace.meta().scope == Scope::All
    }

    /// Makes all comparisons, and returns a line of figures for the test's output.
    fn check(&self) -> String {
        let name = &self.name;
        let quality = &self.analysis.quality;
        assert!(quality.lost.is_empty(), "{name}: {:?}", quality.lost);
        assert_eq!(quality.truncated, None, "{name}");
        let method = self.trace.meta().method();
        assert_eq!(method, Method::Bpf, "{name}: refused programs?");
        self.no_anomalies();
        self.counts_are_equal();
        if self.all() {
            self.every_switch_of_the_machine_is_there();
        }
        let tasks = self.every_task_is_as_the_kernel_says();
        let seen = self.seen.as_ref().map_or(String::new(), |seen| {
            format!("; {}", seen.agree(name, &self.analysis, &self.cpus))
        });
        format!(
            "{name}: {tasks}; commit delay at least {}{seen}",
            us(quality.commit_delay)
        )
    }

    /// Checks that the analysis found no anomalies, except where the kernel did not report a switch, which ftrace lacks
    /// as well.
    fn no_anomalies(&self) {
        let quality = &self.analysis.quality;
        let anomalies: u64 = quality.anomalies.iter().map(|(_, count)| count).sum();
        let unreported = self
            .seen
            .as_ref()
            .map_or(0, |seen| seen.unreported(&self.analysis));
        assert!(
            anomalies <= unreported,
            "{}: {:?}, {unreported} switches that ftrace lacks too",
            self.name,
            quality.anomalies
        );
        let times = &self.analysis.totals.times;
        if self.seen.is_none() {
            // The host can deschedule an emulated CPU while a task goes to sleep. The task's switch then has a later
            // timestamp than the waking that ends the sleep. So no waking follows the switch in the recording, and the
            // sleep counts as unknown time.
            let most = times.on_cpu_known().unwrap_or(0) / LATE_SWITCHES;
            assert!(times.unknown <= most, "{}: {}", self.name, times.unknown);
        } else if unreported == 0 {
            assert_eq!(times.unknown, 0, "{}", self.name);
        }
    }

    /// Checks that the numbers of forks, execs and exits equal the counts of the load itself.
    fn counts_are_equal(&self) {
        let own = &self.account;
        if self.all() {
            // Other processes fork, too, so only the kernel's count of all forks of the machine can be compared.
            own.between(&self.forks, |machine| machine.processes, 0, &self.name);
            return;
        }
        let totals = &self.analysis.totals;
        assert_eq!(
            (totals.forks, totals.execs, totals.exits),
            // COMMAND's own exec is added, which the load does not count.
            (own.forks, own.execs + 1, own.exits),
            "{}: forks, execs, exits",
            self.name
        );
    }

    /// Checks that the task that switches out of a CPU is always the one that was switched in before on this CPU, and
    /// that the number of all switches equals the kernel's count.
    fn every_switch_of_the_machine_is_there(&self) {
        for (cpu, switches) in &self.cpus {
            for pair in switches.windows(2) {
                assert_eq!(
                    pair[0].next, pair[1].prev,
                    "{}: CPU {} between {:?}",
                    self.name, cpu.0, pair
                );
            }
        }
        let mut times: Vec<u64> = self.cpus.values().flatten().map(|s| s.time).collect();
        times.sort_unstable();
        // The kernel counts a switch before it takes the timestamp, so each CPU may have one counted switch without an
        // event.
        let cpus = self.trace.meta().cpus.len() as u64;
        self.account
            .between(&times, |machine| machine.switches, cpus, &self.name);
    }

    fn every_task_is_as_the_kernel_says(&self) -> String {
        let name = &self.name;
        let mut threads: HashMap<u32, Vec<&Thread>> = HashMap::new();
        for thread in &self.analysis.threads {
            threads.entry(thread.tid.0).or_default().push(thread);
        }
        let (mut differences, mut events, mut unknown, mut kernel) = (Vec::new(), 0, 0, 0);
        assert!(self.account.tasks.len() > 50, "{name}: a load");
        for task in &self.account.tasks {
            let found = threads.get(&task.pid).map_or(&[][..], Vec::as_slice);
            let [thread] = found else {
                panic!("{name}: {task:?} is there {} times", found.len());
            };
            assert_eq!(thread.status, Some(task.status), "{name}: {task:?}");
            assert_eq!(
                (thread.switches.voluntary, thread.switches.involuntary),
                (task.voluntary, task.involuntary),
                "{name}: switches of {task:?}"
            );
            let figures = thread.kernel.expect("the kernel's figures");
            assert_eq!(
                (figures.sum_exec_runtime, figures.nvcsw, figures.nivcsw),
                (task.run, task.voluntary, task.involuntary),
                "{name}: {task:?} as it was recorded at its end"
            );
            let times = &thread.times;
            let most = times.on_cpu + times.unknown;
            // The kernel's figure may lie anywhere between the recorded CPU time and the sum of this time and the
            // unknown time. Only what lies outside of this range is a difference.
            differences.push(times.on_cpu.saturating_sub(task.run) + task.run.saturating_sub(most));
            events += times.on_cpu;
            unknown += times.unknown;
            kernel += task.run;
        }
        differences.sort_unstable();
        let bound = match self.trace.meta().host.as_str() {
            "guest" => EMULATED,
            _ => NATIVE,
        };
        let last = differences.len() - 1;
        let is = [
            differences[last / 2],
            differences[last * 9 / 10],
            differences[last],
        ];
        let text = format!(
            "{} tasks with the kernel's own switch counts; on CPU {} by the events, {} unknown, \
             {} by the kernel; a task differs by {} (half of them), {} (9 of 10), {} (all)",
            differences.len(),
            us(events),
            us(unknown),
            us(kernel),
            us(is[0]),
            us(is[1]),
            us(is[2]),
        );
        let off = events.saturating_sub(kernel) + kernel.saturating_sub(events + unknown);
        // A task's run time does not contain the time that the hypervisor took meanwhile (`update_rq_clock_task`), but
        // the events do.
        let stolen = |at: Option<&(Ktime, Counters)>| at.and_then(|at| at.1.get(Counter::Stolen));
        let samples = &self.analysis.machine.counters;
        let stolen = stolen(samples.last()).unwrap_or(0) - stolen(samples.first()).unwrap_or(0);
        let longer = (kernel / differences.len() as u64 / bound.usual).max(1);
        let mut most = bound.tasks.map(|ns| ns * longer);
        most[2] += stolen;
        assert!(
            is.iter().zip(most).all(|(is, most)| *is <= most)
                // A single task may differ by its limit (`most[2]`). If only one task differs, the sum differs by as
                // much, so the sum may exceed its own limit by `most[2]`.
                && off * 1000 <= kernel * bound.together + most[2] * 1000,
            "{name}: {text}; {} stolen by the hypervisor",
            us(stolen)
        );
        text
    }
}

/// Compares a light recording of the load (NAME.bin) with its account (NAME.account): the execs and ends of all
/// processes, and their CPU time. Returns a line of figures.
fn check_light(path: &Path) -> String {
    let file = std::fs::File::open(path).expect("a file");
    let trace = Trace::open(Source::file(file).unwrap()).expect("a trace");
    let text = std::fs::read_to_string(path.with_extension("account")).expect("an account");
    let own = Account::parse(&text);
    let analysis = analyze(&trace, &Options::default());
    let totals = &analysis.totals;
    assert_eq!(
        (totals.forks, totals.execs, totals.exits),
        (own.forks, own.execs + 1, own.exits),
        "light: forks, execs, exits"
    );
    let threads: HashMap<u32, &Thread> = analysis
        .threads
        .iter()
        .map(|thread| (thread.tid.0, thread))
        .collect();
    let (mut ours, mut kernel, mut equal) = (0, 0, 0);
    for task in &own.tasks {
        let thread = threads.get(&task.pid).expect("the task");
        assert_eq!(thread.status, Some(task.status), "light: {task:?}");
        let on_cpu = thread.times.on_cpu;
        // The recorded time is never more than the kernel's last figure. It may be less by a tick if the kernel did not
        // report a final figure.
        assert!(on_cpu <= task.run, "light: {task:?}: {on_cpu} ns");
        (ours, kernel) = (ours + on_cpu, kernel + task.run);
        equal += usize::from(on_cpu == task.run);
    }
    let all = own.tasks.len();
    let text = format!(
        "light: {all} tasks, {equal} with the kernel's totals to the nanosecond; {} of {}",
        us(ours),
        us(kernel)
    );
    // The kernel drops a dead task only after a grace period of RCU. The last tasks are dropped after the end of the
    // recording, so the recording lacks the final totals of these tasks. Therefore half of the tasks must have equal
    // totals, and the sum must be at least 95 % of the kernel's.
    assert!(equal * 2 >= all && ours * 100 >= kernel * 95, "{text}");
    text
}

/// A time in ns as text in µs or ms.
fn us(ns: u64) -> String {
    match ns {
        0..10_000_000 => format!("{} µs", ns / 1000),
        _ => format!("{} ms", ns / 1_000_000),
    }
}

/// The recordings in a directory that have an account of the load.
fn recordings(directory: &Path) -> Vec<PathBuf> {
    let files = std::fs::read_dir(directory).expect("a directory");
    let mut files: Vec<PathBuf> = files
        .map(|entry| entry.expect("an entry").path())
        .filter(|path| path.extension().is_some_and(|ext| ext == "load"))
        .map(|path| path.with_extension("bin"))
        .collect();
    files.sort();
    files
}

#[test]
fn recordings_are_as_the_kernel_says() {
    let given = std::env::var("TR_KERNELS").ok();
    let fixtures = Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures/traces");
    let directories: Vec<PathBuf> = match &given {
        Some(given) => given.split_whitespace().map(PathBuf::from).collect(),
        None => vec![fixtures],
    };
    let mut latest = 0;
    for directory in directories {
        let found = recordings(&directory);
        assert!(!found.is_empty(), "{}", directory.display());
        for path in found {
            let recording = Recording::read(&path);
            println!("{}", recording.check());
            latest = latest.max(recording.analysis.quality.commit_delay);
        }
        let light = directory.join("light.bin");
        if light.exists() {
            println!("{}", check_light(&light));
        }
        let facts = directory.join("facts.bin");
        if facts.exists() {
            println!("{}", facts::check(&facts));
        }
    }
    println!("the longest commit delay: at least {}", us(latest));
}
