//! Compares the analysis of simulated recordings with the true figures, which the simulator knows.
#![allow(clippy::indexing_slicing, clippy::unwrap_used, clippy::expect_used)] // tables of the simulator

use std::collections::HashMap;

use proptest::prelude::*;
use tr_analyze::model::{self, Analysis};
use tr_analyze::timeline::{Bucket, Wait};
use tr_analyze::{analyze, Options};
use tr_format::event::Stream;
use tr_format::reader::Trace;
use tr_format::source::Source;
use tr_sim::inject::{provable, Injected, Provable};
use tr_sim::recording::Recording;
use tr_sim::strategy::{self, Case};
use tr_sim::truth::{Causes, ProcessTruth, Times, Truth};

/// Records a case with its injected faults into a file and analyzes the file.
fn run(case: &Case) -> (Analysis, Truth, Vec<Injected>) {
    let (mut recording, truth) = Recording::record(&case.config);
    let done = case.plan.apply(&mut recording);
    let file = recording.to_file(&case.cut).expect("a file");
    let trace = Trace::open(Source::bytes(file)).expect("a trace");
    let options = Options {
        timeline: true,
        ..Options::default()
    };
    let analysis = analyze(&trace, &options);
    (analysis, truth, done)
}

fn times(times: &model::Times) -> (Times, u64) {
    let known = Times {
        on_cpu: times.on_cpu,
        run_queue: times.run_queue,
        sleep: times.sleep,
        blocked: times.blocked,
    };
    (known, times.unknown)
}

fn causes(causes: &model::Causes) -> Causes {
    Causes {
        preempted: causes.preempted,
        io: causes.io,
        vfork: causes.vfork,
        stopped: causes.stopped,
    }
}

/// Checks sums that must be right in the analysis of any trace, even a damaged one.
fn check_sums(analysis: &Analysis) -> Result<(), TestCaseError> {
    let span = analysis.end.since(analysis.start);
    let mut totals = model::Times::default();
    let mut on_cpu = 0;
    for thread in &analysis.threads {
        prop_assert_eq!(
            thread.times.sum(),
            thread.end.since(thread.start),
            "{:?}",
            thread
        );
        prop_assert!(
            thread.start >= analysis.start && thread.end <= analysis.end,
            "{:?}",
            thread
        );
        prop_assert!(thread.causes.preempted <= thread.times.run_queue);
        prop_assert!(thread.causes.io + thread.causes.vfork <= thread.times.blocked);
        prop_assert!(thread.causes.stopped <= thread.times.sleep);
        on_cpu += thread.times.on_cpu;
    }
    check_timeline(analysis)?;
    check_cpus(analysis)?;
    for process in &analysis.processes {
        let mut sum = model::Times::default();
        for thread in &process.threads {
            sum.add(&analysis.thread(*thread).times);
        }
        prop_assert_eq!(sum, process.times);
        totals.add(&sum);
        for exec in &process.execs {
            prop_assert!(exec.start <= exec.end, "{:?}", exec);
        }
    }
    prop_assert_eq!(totals, analysis.totals.times);
    let concurrency: u64 = analysis.concurrency.times.iter().sum();
    prop_assert_eq!(
        concurrency + analysis.concurrency.unknown,
        span,
        "{:?}",
        analysis.concurrency.times
    );
    // The CPU time that follows from the counts of running tasks is not compared if a switch-out is missing, because
    // the analysis notices that too late to correct these counts.
    if analysis.concurrency.unknown == 0 && analysis.quality.anomalies.is_empty() {
        let weighed: u64 = analysis
            .concurrency
            .times
            .iter()
            .zip(0..)
            .map(|(time, n)| time * n)
            .sum();
        prop_assert_eq!(weighed, on_cpu);
    }
    Ok(())
}

/// Checks that the CPUs' figures agree with those of the threads. No CPU is idle and busy at once. In a complete
/// system-wide recording, every CPU is idle or busy at any time.
fn check_cpus(analysis: &Analysis) -> Result<(), TestCaseError> {
    let timeline = analysis.timeline.as_ref().expect("was asked for");
    let mut busy: HashMap<_, u64> = HashMap::new();
    let mut switches = model::Switches::default();
    let mut migrations = 0;
    for ix in analysis.thread_ids() {
        let thread = analysis.thread(ix);
        switches.add(&thread.switches);
        migrations += thread.migrations;
        for stretch in timeline.of(ix) {
            if let Bucket::OnCpu(cpu) = stretch.doing {
                *busy.entry(cpu).or_default() += stretch.length();
            }
        }
    }
    let all_known = all_known(analysis);
    let mut sum = model::CpuFigures::default();
    let quality = &analysis.quality;
    let span = analysis.end.since(analysis.start);
    for (cpu, figures) in &analysis.machine.cpus {
        sum.switches.add(&figures.switches);
        sum.migrations += figures.migrations;
        let busy = busy.get(&Some(*cpu)).copied().unwrap_or(0);
        if quality.anomalies.is_empty() {
            prop_assert!(busy + figures.idle <= span, "{:?}: {:?}", cpu, figures);
        }
        let whole = quality.anomalies.is_empty()
            && quality.lost.is_empty()
            && quality.truncated.is_none()
            && figures.switches != model::Switches::default()
            && all_known;
        if whole && figures.idle_known {
            prop_assert_eq!(busy + figures.idle, span, "{:?}: {:?}", cpu, figures);
        }
    }
    prop_assert_eq!((sum.switches, sum.migrations), (switches, migrations));
    Ok(())
}

/// Whether every thread's state and CPU are known all the time.
fn all_known(analysis: &Analysis) -> bool {
    let timeline = analysis.timeline.as_ref().expect("was asked for");
    let mut all = analysis.thread_ids().flat_map(|ix| timeline.of(ix));
    all.all(|stretch| !matches!(stretch.doing, Bucket::OnCpu(None) | Bucket::Unknown))
}

/// Checks that each thread's timeline has no holes and has the same times as the thread's sums.
fn check_timeline(analysis: &Analysis) -> Result<(), TestCaseError> {
    let timeline = analysis.timeline.as_ref().expect("was asked for");
    for ix in analysis.thread_ids() {
        let thread = analysis.thread(ix);
        let (mut times, mut causes) = (model::Times::default(), model::Causes::default());
        let mut now = thread.start;
        for stretch in timeline.of(ix) {
            prop_assert_eq!(stretch.from, now, "{:?}", stretch);
            prop_assert!(stretch.to > stretch.from, "{:?}", stretch);
            now = stretch.to;
            let ns = stretch.length();
            match stretch.doing {
                Bucket::OnCpu(_) => times.on_cpu += ns,
                Bucket::RunQueue { preempted } => {
                    times.run_queue += ns;
                    causes.preempted += if preempted { ns } else { 0 };
                }
                Bucket::Wait(Wait::Sleep) => times.sleep += ns,
                Bucket::Wait(Wait::Stopped) => {
                    times.sleep += ns;
                    causes.stopped += ns;
                }
                Bucket::Wait(Wait::Unknown) | Bucket::Unknown => times.unknown += ns,
                Bucket::Wait(wait) => {
                    times.blocked += ns;
                    causes.io += if wait == Wait::Io { ns } else { 0 };
                    causes.vfork += if wait == Wait::Vfork { ns } else { 0 };
                }
            }
        }
        prop_assert_eq!(now, thread.end, "{:?}", thread);
        // Time that only the kernel's totals show is unknown in the timeline.
        prop_assert_eq!((times, causes), (thread.times_by_events(), thread.causes));
    }
    Ok(())
}

/// Checks that every figure of every process equals the simulator's truth.
fn check_exact(analysis: &Analysis, truth: &Truth) -> Result<(), TestCaseError> {
    prop_assert_eq!(analysis.start, truth.start);
    prop_assert_eq!(analysis.end, truth.end);
    prop_assert_eq!(&analysis.quality.anomalies, &Vec::new());
    prop_assert!(analysis.quality.lost.is_empty() && analysis.quality.truncated.is_none());
    let name = |process: &ProcessTruth| format!("{} from {}", process.pid.0, process.start.0);
    let is: Vec<String> = analysis
        .processes
        .iter()
        .map(|p| format!("{} from {}", p.pid.0, p.start.0))
        .collect();
    let was: Vec<String> = truth.processes.iter().map(name).collect();
    prop_assert_eq!(is, was);
    for (is, was) in analysis.processes.iter().zip(&truth.processes) {
        let at = name(was);
        let undecided: u64 = was
            .threads
            .iter()
            .map(|thread| truth.tasks[*thread].undecided)
            .sum();
        let (known, unknown) = times(&is.times);
        prop_assert_eq!(is.end, was.end, "end of {}", at);
        prop_assert_eq!(is.started_before, was.started_before, "{}", at);
        // The last switch-out of a process may come after the end of the analyzed span.
        let alive = was.alive && was.status.is_none();
        prop_assert_eq!(is.alive, alive, "whether {} lives", at);
        // If the last thread's exit is missing, the analysis has the status of the leader's exit instead, so the
        // statuses are not compared.
        if !was.alive && was.status.is_some() {
            prop_assert_eq!(is.status, was.status, "status of {}", at);
        }
        // If the parent ended before the recorder took the snapshot of its child, the analysis does not know the
        // parent.
        if is.ppid.is_some() {
            prop_assert_eq!(
                is.parent.map(|parent| parent.0 as usize),
                was.parent,
                "parent of {}",
                at
            );
        }
        if was.ppid.is_some() && is.ppid.is_some() {
            prop_assert_eq!(is.ppid, was.ppid, "ppid of {}", at);
        }
        prop_assert_eq!(is.cgroup, was.cgroup, "cgroup of {}", at);
        prop_assert_eq!(is.role.kthread, was.kthread, "kthread of {}", at);
        prop_assert_eq!(
            is.resources.faults.unwrap_or_default(),
            was.faults,
            "faults of {}",
            at
        );
        prop_assert_eq!(
            is.resources.max_rss.unwrap_or(0),
            was.max_rss.unwrap_or(0),
            "rss of {}",
            at
        );
        prop_assert_eq!(
            (
                is.resources.switches.voluntary,
                is.resources.switches.involuntary
            ),
            (was.voluntary, was.involuntary),
            "switches of {}",
            at
        );
        prop_assert_eq!(is.threads.len(), was.threads.len(), "threads of {}", at);
        let mut left: Vec<_> = was
            .threads
            .iter()
            .map(|thread| &truth.tasks[*thread])
            .collect();
        for thread in &is.threads {
            let is = analysis.thread(*thread);
            // The simulator has the last tid of each thread. If a thread got that tid by an exec after the span's end,
            // the analysis has the thread's first tid.
            let same = left.iter().position(|was| {
                was.start == is.start
                    && was.end == is.end
                    && (was.tid == is.tid || was.first_tid == is.tid && was.alive)
            });
            prop_assert!(
                same.is_some(),
                "a thread too many: {:?}\nof {:#?}",
                is,
                left
            );
            let was = left.remove(same.unwrap());
            let at = format!("thread {} of {at}", was.tid.0);
            if was.undecided == 0 {
                prop_assert_eq!(times(&is.times), (was.times, 0), "times of {}", at);
                prop_assert_eq!(causes(&is.causes), was.causes, "causes of {}", at);
            }
            prop_assert_eq!(is.comm, was.comm, "comm of {}", at);
            prop_assert_eq!(is.ns_tid, was.ns_tid, "ns_tid of {}", at);
            prop_assert_eq!(is.migrations, was.migrations, "migrations of {}", at);
            prop_assert_eq!(
                is.max_off_cpu.unwrap_or(0),
                was.max_off_cpu,
                "longest off-CPU of {}",
                at
            );
            if !was.alive {
                prop_assert_eq!(is.status, was.status, "status of {}", at);
            }
            if let (Some(kernel), false) = (is.kernel.filter(|kernel| kernel.is_final), was.alive) {
                prop_assert_eq!(
                    (kernel.sum_exec_runtime, kernel.nvcsw, kernel.nivcsw),
                    was.kernel,
                    "{}",
                    at
                );
            }
        }
        if undecided == 0 {
            prop_assert_eq!((known, unknown), (was.times, 0), "times of {}", at);
            prop_assert_eq!(causes(&is.causes), was.causes, "causes of {}", at);
        } else {
            prop_assert_eq!(is.times.on_cpu, was.times.on_cpu, "{}", at);
            prop_assert_eq!(is.times.sum(), was.times.sum(), "{}", at);
        }
        check_execs(is, was)?;
    }
    prop_assert_eq!(analysis.concurrency.unknown, 0);
    let mut concurrency = truth.concurrency.clone();
    while concurrency.len() > 1 && concurrency.last() == Some(&0) {
        concurrency.pop();
    }
    prop_assert_eq!(&analysis.concurrency.times, &concurrency, "concurrency");
    prop_assert_eq!(analysis.totals.forks, truth.forks, "forks");
    prop_assert_eq!(analysis.totals.execs, truth.execs, "execs");
    prop_assert_eq!(analysis.totals.exits, truth.exits, "exits");
    Ok(())
}

/// Checks the programs of a process whose exec is in the trace.
fn check_execs(is: &model::Process, was: &ProcessTruth) -> Result<(), TestCaseError> {
    let at = format!("{} from {}", was.pid.0, was.start.0);
    let is: Vec<_> = is
        .execs
        .iter()
        .filter(|exec| !exec.argv.bytes.is_empty() && !exec.filename.is_empty())
        .collect();
    let was: Vec<_> = was
        .execs
        .iter()
        .filter(|exec| !exec.argv.bytes.is_empty())
        .collect();
    let short = |argv: &tr_format::event::Argv| String::from_utf8_lossy(&argv.bytes).into_owned();
    prop_assert_eq!(
        is.len(),
        was.len(),
        "execs of {}: {:#?} and {:#?}",
        at,
        is,
        was
    );
    for (is, was) in is.iter().zip(was) {
        prop_assert_eq!(short(&is.argv), short(&was.argv), "of {}", at);
        prop_assert_eq!(
            (is.start, is.end),
            (was.start, was.end),
            "program of {}",
            at
        );
        if is.times.unknown == 0 {
            prop_assert_eq!(
                times(&is.times).0,
                was.times,
                "times of a program of {}",
                at
            );
        }
    }
    Ok(())
}

/// Checks for every sum that known ≤ truth ≤ known + unknown.
fn check_bounds(analysis: &Analysis, truth: &Truth) -> Result<(), TestCaseError> {
    let bounds = |is: &model::Times, was: &Times, undecided: u64, what: &str| {
        for (name, is, was, slack) in [
            ("on_cpu", is.on_cpu, was.on_cpu, 0),
            ("run_queue", is.run_queue, was.run_queue, undecided),
            ("sleep", is.sleep, was.sleep, undecided),
            ("blocked", is.blocked, was.blocked, undecided),
        ] {
            let unknown = analysis.totals.times.unknown;
            prop_assert!(
                is <= was + slack,
                "{} of {}: {} known, but it was {} ({} unknown)",
                name,
                what,
                is,
                was,
                unknown
            );
        }
        Ok(())
    };
    // Only processes whose pid is unique can be found in the truth.
    let mut count: HashMap<_, u32> = HashMap::new();
    for process in &truth.processes {
        *count.entry(process.pid).or_default() += 1;
    }
    let mut sums = (model::Times::default(), Times::default());
    analysis
        .processes
        .iter()
        .for_each(|is| sums.0.add(&is.times));
    truth
        .processes
        .iter()
        .for_each(|was| sums.1.add(&was.times));
    let undecided: u64 = truth.tasks.iter().map(|task| task.undecided).sum();
    bounds(&sums.0, &sums.1, undecided, "all")?;
    // If forks may be lost, it is not known which process a task belongs to, so processes are not compared.
    let lives = analysis
        .quality
        .lost
        .iter()
        .any(|lost| lost.stream == Stream::Lifecycle);
    for is in analysis.processes.iter().filter(|_| !lives) {
        let Some(was) = truth
            .processes
            .iter()
            .find(|was| was.pid == is.pid && count[&was.pid] == 1)
        else {
            continue;
        };
        // If the last switch-out of a process is lost, the analysis may assume that the process lived until another
        // process got its pid. If the process really ended before the span, the simulator's figures for this pid belong
        // to that other process.
        let begins_later = |other: &model::Process| other.pid == is.pid && other.end > was.start;
        if is.end <= was.start && analysis.processes.iter().any(begins_later) {
            prop_assert_eq!(
                is.times.sum(),
                is.times.unknown,
                "before its pid was used again"
            );
            continue;
        }
        let undecided: u64 = was
            .threads
            .iter()
            .map(|thread| truth.tasks[*thread].undecided)
            .sum();
        let what = format!("process {} from {}", was.pid.0, was.start.0);
        bounds(&is.times, &was.times, undecided, &what)?;
        for (name, is_known, was) in [
            ("on_cpu", is.times.on_cpu, was.times.on_cpu),
            ("run_queue", is.times.run_queue, was.times.run_queue),
            ("sleep", is.times.sleep, was.times.sleep),
            ("blocked", is.times.blocked, was.times.blocked),
        ] {
            prop_assert!(
                was <= is_known + is.times.unknown + undecided,
                "{} of {}: {} known and {} unknown, but it was {}",
                name,
                what,
                is_known,
                is.times.unknown,
                was
            );
        }
        prop_assert!(
            is.resources.switches.voluntary <= truth_switches(truth, is),
            "voluntary switches of {}",
            what
        );
    }
    for (n, time) in analysis.concurrency.times.iter().enumerate() {
        let was = truth.concurrency.get(n).copied().unwrap_or(0);
        prop_assert!(
            *time <= was,
            "{} tasks at once for {}, but it was {}",
            n,
            time,
            was
        );
        prop_assert!(
            was <= time + analysis.concurrency.unknown,
            "{} tasks at once",
            n
        );
    }
    Ok(())
}

/// The number of switches of all processes with the pid of this process.
fn truth_switches(truth: &Truth, is: &model::Process) -> u64 {
    truth
        .processes
        .iter()
        .filter(|was| was.pid == is.pid)
        .map(|was| was.voluntary + was.involuntary)
        .sum()
}

fn explain(case: &Case, error: TestCaseError) -> TestCaseError {
    TestCaseError::fail(format!("{error}\n{}", case.draw(400)))
}

proptest! {
    #![proptest_config(strategy::cases(1000))]

    /// If no events are lost, every figure of every process is exact, however long after their time stamps, and in
    /// whatever order, events and blocks were written.
    #[test]
    fn without_loss_every_number_is_the_truth(case in strategy::lossless(3_000_000)) {
        let (analysis, truth, done) = run(&case);
        prop_assert_eq!(provable(&done), Provable::Exact);
        check_exact(&analysis, &truth).and_then(|()| check_sums(&analysis)).map_err(|error| explain(&case, error))?;
    }

    /// If events are lost in some spans, known ≤ truth ≤ known + unknown.
    #[test]
    fn with_loss_the_truth_is_within_the_bounds(case in strategy::lossy(3_000_000)) {
        let (analysis, truth, _) = run(&case);
        check_sums(&analysis).and_then(|()| check_bounds(&analysis, &truth)).map_err(|error| explain(&case, error))?;
    }

    /// If a file ends early, the analysis is right up to the file's end.
    #[test]
    fn a_cut_off_file_is_right_up_to_its_end(case in strategy::cut_off(3_000_000)) {
        let (analysis, _, done) = run(&case);
        let Some(Injected::CutOff { end, .. }) = done.first() else { return Ok(()) };
        prop_assert_eq!(analysis.end, *end);
        // The cut-off file is compared with the truth of a run that really ended at the time `end`.
        let mut config = case.config.clone();
        config.duration = end.0 - analysis.start.0;
        config.tail = case.config.duration + case.config.tail - config.duration;
        let (_, truth) = Recording::record(&config);
        check_sums(&analysis).and_then(|()| check_bounds(&analysis, &truth)).map_err(|error| explain(&case, error))?;
    }

    /// With all kinds of injected faults together, nothing panics, and the sums add up.
    #[test]
    fn the_sums_are_right_whatever_happens(case in strategy::anything(3_000_000)) {
        let (analysis, _, _) = run(&case);
        check_sums(&analysis).map_err(|error| explain(&case, error))?;
    }
}
