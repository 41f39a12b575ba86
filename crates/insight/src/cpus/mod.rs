//! Computes how each CPU spent its time: on this build's tasks, on other tasks, and idle.

pub mod cpu_demand;
pub mod cpu_need;
pub mod cpu_series;
pub mod cpu_time;
pub mod shares;

use std::collections::{BTreeMap, HashMap};

use tr_analyze::arena::Arena;
use tr_analyze::model::{Analysis, ProcessIx, ThreadIx};
use tr_analyze::own::Own;
use tr_analyze::timeline::{Actor, Bucket};
use tr_format::event::CpuId;
use tr_format::meta::Scope;
use tr_programs::program_name::ProgramName;

use crate::processes::label;
use crate::views::view::View;

/// The figures of one CPU, or the sums over several CPUs: time for the build, time for other tasks, idle time, and
/// switches.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Cpu {
    /// The number of the CPU. `None` in a sum over CPUs, and for tasks whose CPU is not known, because they ran from
    /// before the analyzed time until after it without a switch.
    pub cpu: Option<u16>,
    /// The time in nanoseconds that the CPU ran tasks of this build.
    pub build_ns: u64,
    /// The time in nanoseconds that the CPU ran tasks outside of this build, including kernel threads; `None` unless
    /// all tasks were recorded on all CPUs.
    pub others_ns: Option<u64>,
    pub idle_ns: Option<u64>,
    /// The rest of the analyzed span in nanoseconds: it is not known what the CPU ran then, or whether it was idle.
    pub unknown_ns: u64,
    /// The number of context switches on this CPU away from recorded threads.
    pub switches: u64,
    /// The number of involuntary context switches on this CPU away from recorded threads (preemptions).
    pub involuntary: u64,
    /// The number of times that a recorded thread moved to this CPU from another one.
    pub migrations: u64,
    /// The number of times that tasks outside of this build preempted a thread of this build on this CPU.
    pub preempted: u64,
    /// The time in nanoseconds that threads of this build waited in run queues after tasks outside of this build had
    /// preempted these threads.
    pub preempted_wait_ns: u64,
}

/// The figures of all CPUs of a recording: what they ran, and their switches.
pub struct CpuTimes {
    pub cpus: Vec<Cpu>,
    /// The CPU time in nanoseconds of tasks that do not belong to this build, by program, the longest first. All CPUs
    /// count, even if the user chose one CPU.
    pub others: Vec<(ProgramName, u64)>,
    /// The words that say which processes the report means by "this build".
    pub build: &'static str,
    /// Whether all tasks of the machine were recorded on all CPUs.
    pub all: bool,
}

impl CpuTimes {
    /// Computes the figures of the CPUs from the timeline of the recorded threads.
    pub fn new(view: &View) -> CpuTimes {
        let analysis = view.analysis;
        let all = analysis.meta.scope == Scope::All && analysis.meta.options.cpus.is_empty();
        let (own, build) = own(view);
        let mut sums = CpuSums {
            analysis,
            own,
            cpus: BTreeMap::new(),
            others: HashMap::new(),
            only: view.ask.cpu,
        };
        analysis.thread_ids().for_each(|ix| sums.add(ix));
        let CpuSums {
            mut cpus, others, ..
        } = sums;
        let mut figures: BTreeMap<Option<CpuId>, _> = BTreeMap::new();
        let known = analysis.machine.cpus.iter();
        figures.extend(known.map(|(cpu, figures)| (Some(*cpu), *figures)));
        if let Some(only) = view.ask.cpu {
            figures.retain(|cpu, _| *cpu == Some(only));
        }
        for cpu in figures.keys() {
            cpus.entry(*cpu).or_default();
        }
        let span = analysis.wall();
        let rows = cpus.into_iter().map(|(cpu, mut row)| {
            let figures = figures.get(&cpu).copied().unwrap_or_default();
            row.cpu = cpu.map(|cpu| cpu.0);
            row.idle_ns = (all && figures.idle_known).then_some(figures.idle);
            row.others_ns = all.then_some(row.others_ns.unwrap_or(0));
            row.switches = figures.switches.voluntary + figures.switches.involuntary;
            row.involuntary = figures.switches.involuntary;
            row.migrations = figures.migrations;
            let known = row
                .build_ns
                .saturating_add(row.others_ns.unwrap_or(0))
                .saturating_add(row.idle_ns.unwrap_or(0));
            row.unknown_ns = cpu.map_or(0, |_| span.saturating_sub(known));
            row
        });
        CpuTimes {
            cpus: rows.collect(),
            others: by_program(analysis, others),
            build,
            all,
        }
    }

    /// The sums of the figures of all CPUs. A sum is `None` if it is not known for one of the CPUs.
    pub fn sum(&self) -> Cpu {
        let sum = |of: fn(&Cpu) -> u64| self.cpus.iter().map(of).fold(0, u64::saturating_add);
        let known = |sum: u64, ns: Option<u64>| Some(sum.saturating_add(ns?));
        let mut others = self.cpus.iter().map(|cpu| cpu.others_ns);
        let numbered = self.cpus.iter().filter(|cpu| cpu.cpu.is_some());
        let mut idle = numbered.map(|cpu| cpu.idle_ns);
        Cpu {
            cpu: None,
            build_ns: sum(|cpu| cpu.build_ns),
            others_ns: others.try_fold(0, known),
            idle_ns: idle.try_fold(0, known),
            unknown_ns: sum(|cpu| cpu.unknown_ns),
            switches: sum(|cpu| cpu.switches),
            involuntary: sum(|cpu| cpu.involuntary),
            migrations: sum(|cpu| cpu.migrations),
            preempted: sum(|cpu| cpu.preempted),
            preempted_wait_ns: sum(|cpu| cpu.preempted_wait_ns),
        }
    }
}

/// The sums for each CPU, while the timelines of the recorded threads are added to them one by one.
struct CpuSums<'a> {
    analysis: &'a Analysis,
    /// For each process, whether it belongs to this build.
    own: Arena<ProcessIx, bool>,
    cpus: BTreeMap<Option<CpuId>, Cpu>,
    /// The CPU time in nanoseconds of each process that does not belong to this build.
    others: HashMap<ProcessIx, u64>,
    /// The only CPU that the user asked for; `None` for all CPUs.
    only: Option<CpuId>,
}

impl CpuSums<'_> {
    fn is_asked(&self, cpu: Option<CpuId>) -> bool {
        self.only.is_none() || cpu == self.only
    }

    fn process(&self, thread: ThreadIx) -> (ProcessIx, bool) {
        let process = self.analysis.thread(thread).process;
        (process, self.own[process])
    }

    fn add(&mut self, thread: ThreadIx) {
        let (process, own) = self.process(thread);
        let mut last = None;
        let timeline = self.analysis.timeline.iter();
        for stretch in timeline.flat_map(|timeline| timeline.of(thread)) {
            match stretch.doing {
                Bucket::OnCpu(cpu) => {
                    last = cpu;
                    if !self.is_asked(cpu) {
                        continue;
                    }
                    let entry = self.cpus.entry(cpu).or_default();
                    if own {
                        entry.build_ns = entry.build_ns.saturating_add(stretch.length());
                    } else {
                        let sum: &mut u64 = entry.others_ns.get_or_insert(0);
                        *sum = sum.saturating_add(stretch.length());
                        let sum: &mut u64 = self.others.entry(process).or_default();
                        *sum = sum.saturating_add(stretch.length());
                    }
                }
                Bucket::RunQueue { preempted: true } if own => {
                    let by_others = match stretch.preempted_by() {
                        Actor::Outside(_) => true,
                        Actor::Thread(thread) => !self.process(thread).1,
                        _ => false,
                    };
                    if by_others && last.is_some() && self.is_asked(last) {
                        let entry = self.cpus.entry(last).or_default();
                        entry.preempted += 1;
                        entry.preempted_wait_ns =
                            entry.preempted_wait_ns.saturating_add(stretch.length());
                    }
                }
                _ => {}
            }
        }
    }
}

/// For each process, whether it belongs to "this build", and the words that describe this build. If the user chose
/// processes, the chosen processes are the build. Otherwise, in a recording of the whole machine with a COMMAND, the
/// build is COMMAND with its descendants; in any other recording, it is all processes.
pub fn own(view: &View) -> (Arena<ProcessIx, bool>, &'static str) {
    if !view.has_all() {
        return (view.is_chosen(), "the chosen processes");
    }
    let own = Own::of(view.analysis);
    let build = if own.is_part() {
        "COMMAND and its descendants"
    } else {
        "the recorded tasks"
    };
    (own.into_table(), build)
}

/// The sum of the given times of processes in nanoseconds for each program, the longest sum first.
fn by_program(analysis: &Analysis, times: HashMap<ProcessIx, u64>) -> Vec<(ProgramName, u64)> {
    let mut programs: BTreeMap<ProgramName, u64> = BTreeMap::new();
    for (ix, ns) in times {
        let name = label::program(analysis.process(ix));
        let sum: &mut u64 = programs.entry(name).or_default();
        *sum = sum.saturating_add(ns);
    }
    let mut programs: Vec<(ProgramName, u64)> = programs.into_iter().collect();
    programs.sort_unstable_by(|a, b| b.1.cmp(&a.1).then_with(|| a.0.cmp(&b.0)));
    programs
}
