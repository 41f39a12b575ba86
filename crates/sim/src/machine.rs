//! The simulated machine: its clock, its tables, and the order of its actions.

use std::collections::VecDeque;

use tr_format::event::{
    Clock, CpuId, Ktime, LifeEvent, LifeKind, SchedEvent, SchedKind, Stream, Tgid, Tid,
};
use tr_format::meta::{Cost, EndReason, Metadata, Options, Scope, StateName, Summary};

use crate::accounts::Accounts;
use crate::agenda::Agenda;
use crate::config::{Config, Follow};
use crate::cpu::Cpu;
use crate::draw::Draw;
use crate::observer::Observer;
use crate::pids::Pids;
use crate::process::Process;
use crate::sink::Event;
use crate::table::Table;
use crate::task::{Place, Ref, StateCause, Task, IDLE_TASK};

/// The difference between `CLOCK_BOOTTIME` and `CLOCK_MONOTONIC` of the simulated machine in ns.
const SUSPENDED_TIME: u64 = 7_000_000_000;
/// The value of `CLOCK_REALTIME` in ns at which `CLOCK_MONOTONIC` of the simulated machine is 0.
const EPOCH: u64 = 1_790_000_000_000_000_000;
const HOUR: u64 = 3_600_000_000_000;

/// A channel between simulated tasks, such as a pipe: the number of posts in it (units that tasks add and take, as with
/// a semaphore), and the tasks that wait for one.
#[derive(Debug, Default)]
pub(crate) struct Channel {
    pub(crate) count: u32,
    pub(crate) waiters: VecDeque<Ref>,
}

/// One action of a simulated CPU, with its time and the task that runs.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Turn {
    pub(crate) cpu: usize,
    /// The true simulated time in ns at which a CPU does this action.
    pub(crate) now: u64,
    /// The time stamp in ns that the events of this action of a simulated CPU carry.
    pub(crate) stamp: u64,
    /// The index in the table of tasks of the task that runs when the action begins, or [`IDLE_TASK`].
    pub(crate) cur: u32,
}

/// A simulated machine during its run: CPUs, tasks, processes and the recorder.
#[derive(Debug)]
pub struct Machine {
    pub(crate) cfg: Config,
    pub(crate) draw: Draw,
    pub(crate) agenda: Agenda,
    pub(crate) cpus: Vec<Cpu>,
    /// The number of the simulated CPU that does the present action.
    pub(crate) acting: usize,
    /// For each simulated CPU, a bit that says whether the CPU is idle and its run queue is empty.
    pub(crate) idle_cpus: [u64; 4],
    pub(crate) tasks: Table<Task>,
    pub(crate) alive: u32,
    pub(crate) alive_followed: u32,
    pub(crate) processes: Table<Process>,
    /// The number of simulated processes that were made so far.
    pub(crate) serials: u64,
    pub(crate) pids: Pids,
    pub(crate) channels: Vec<Channel>,
    /// The lists of weighted operations ([`Mix`](crate::program::Mix)) in the simulated world: for each list, its
    /// operations with the running sums of their weights.
    pub(crate) mixes: Vec<Vec<(u32, crate::program::Op)>>,
    pub(crate) observer: Observer,
    pub(crate) attached: bool,
    pub(crate) follow_all: bool,
    pub(crate) start: u64,
    pub(crate) end: u64,
    /// The true time at which the simulated run ends, in ns.
    pub(crate) stop: u64,
    pub(crate) root_serial: u64,
    pub(crate) root_tgid: Tgid,
    pub(crate) root_status: Option<u32>,
    /// The events of the present action of the simulation.
    pub(crate) events: Vec<Event>,
    pub(crate) emitted: u64,
    pub(crate) exec_count: u64,
    pub(crate) rename_count: u64,
    pub(crate) accounts: Accounts,
}

impl Machine {
    /// Lets the simulated recording end at the time `end`, if it was planned to end later.
    pub(crate) fn end_at(&mut self, end: u64) {
        if end < self.end {
            self.end = end;
            self.stop = end.saturating_add(self.cfg.tail);
        }
    }

    /// The time stamp in ns that the simulated recorder gives to an event. The event happens at the true simulated time
    /// `now`, and the time stamp is this time, rounded down to the resolution of the recorder's clock.
    #[inline]
    pub(crate) fn stamp(&self, now: u64) -> u64 {
        if self.cfg.grain == 1 {
            now
        } else {
            now - now % self.cfg.grain
        }
    }

    /// Puts the time of the next action of the simulated CPU `c` into the agenda. If `c` does the present action,
    /// nothing happens here, because the agenda is updated when that action ends.
    #[inline]
    pub(crate) fn replan(&mut self, c: usize) {
        if c != self.acting {
            self.plan(c);
        }
    }

    /// Puts the time of the simulated CPU `c`'s next action into the agenda.
    #[inline]
    pub(crate) fn plan(&mut self, c: usize) {
        self.agenda.set(c + 1, self.cpus[c].next());
    }

    /// The length in ns of the part of `from..to` that lies in the simulated recording's span.
    #[inline]
    pub(crate) fn clip(&self, from: u64, to: u64) -> u64 {
        to.min(self.end).saturating_sub(from.max(self.start))
    }

    /// Whether a time stamp lies in the simulated recording's span.
    #[inline]
    pub(crate) fn in_span(&self, stamp: u64) -> bool {
        stamp >= self.start && stamp < self.end
    }

    #[inline]
    pub(crate) fn emit(&mut self, turn: Turn, kind: SchedKind) {
        let event = SchedEvent {
            time: Ktime(turn.stamp),
            kind,
        };
        self.events
            .push(Event::Sched(CpuId(turn.cpu as u16), event));
    }

    pub(crate) fn emit_life(&mut self, turn: Turn, kind: LifeKind) {
        let event = LifeEvent {
            time: Ktime(turn.stamp),
            cpu: Some(CpuId(turn.cpu as u16)),
            kind,
        };
        self.events.push(Event::Life(Stream::Lifecycle, event));
    }

    /// Emits an event of the simulated recorder itself, such as a reading of the clocks.
    pub(crate) fn emit_own(&mut self, now: u64, kind: LifeKind) {
        let event = LifeEvent {
            time: Ktime(now),
            cpu: None,
            kind,
        };
        self.events.push(Event::Life(Stream::Recorder, event));
    }

    /// The index in the table of tasks of the simulated task with this reference, unless the task is dead.
    #[inline]
    pub(crate) fn find(&self, name: Ref) -> Option<u32> {
        let task = self.tasks.get(name.slot)?;
        (task.used == name.used && task.place != Place::Dead).then_some(name.slot)
    }

    pub(crate) fn name(&self, slot: u32) -> Ref {
        Ref {
            slot,
            used: self.tasks[slot].used,
        }
    }

    #[inline]
    pub(crate) fn tid(&self, slot: u32) -> Tid {
        match slot {
            IDLE_TASK => Tid::IDLE,
            slot => Tid(self.tasks[slot].tid),
        }
    }

    #[inline]
    pub(crate) fn is_followed(&self, slot: u32) -> bool {
        slot != IDLE_TASK && self.tasks[slot].followed
    }

    /// The simulated parent process that is told about the end of `process`; `None` if the parent is dead.
    pub(crate) fn living_parent(&self, process: u32) -> Option<u32> {
        let parent = self.processes[process].parent?;
        let at = &self.processes[parent.slot];
        (at.used == parent.used && !at.gone).then_some(parent.slot)
    }

    /// Attaches tracing to the simulated machine. Events before this moment are not recorded. So the machine forgets
    /// the facts about tasks that only those events show: the truth must contain only what a recording can show.
    pub(crate) fn attach(&mut self) {
        self.attached = true;
        for task in self.tasks.iter_mut() {
            if task.cause != StateCause::Stopped {
                task.cause = StateCause::Plain;
            }
            task.woken = false;
            task.seen_cpu = u16::MAX;
        }
    }

    /// The simulated machine's clocks at the time `now`. Runs with different seeds begin at different hours, because
    /// recordings that begin at the same moment would be taken for one and the same recording.
    pub(crate) fn clock(&self, now: u64) -> Clock {
        let hours = self.cfg.seed.saturating_sub(1) % 1000;
        Clock {
            boot: now + SUSPENDED_TIME,
            real: now + EPOCH + hours * HOUR,
        }
    }

    /// The metadata that stand at the start of the simulated run's trace.
    pub fn meta(&self) -> Metadata {
        Metadata {
            tool_version: env!("CARGO_PKG_VERSION").to_owned(),
            host: "simulated".to_owned(),
            kernel: "Linux 6.18.0 simulated".to_owned(),
            machine: "x86_64".to_owned(),
            cpus: (0..self.cfg.cpus).map(CpuId).collect(),
            page_size: 4096,
            start: Ktime(self.start),
            start_clock: self.clock(self.start),
            scope: match self.cfg.follow {
                Follow::All => Scope::All,
                Follow::Command => Scope::Command,
            },
            command: vec![self.cfg.world.name.clone().into_bytes()],
            root: Some(self.root_tgid),
            cwd: b"/".to_vec(),
            states: StateName::of_linux(),
            options: Options {
                argv_limit: 16 << 10,
                cpus: Vec::new(),
                buffer: 64 << 20,
                irq_known: true,
                allowed: None,
            },
            missing: Vec::new(),
            ci: Vec::new(),
            not_traced: None,
            origin: None,
            extras: None,
            recorder: None,
            hardware: None,
        }
    }

    /// The summary that stands at the end of the simulated run's trace. It is right only after the run.
    pub fn summary(&self) -> Summary {
        Summary {
            end: Ktime(self.end),
            end_clock: self.clock(self.end),
            status: self.root_status,
            reason: match self.root_status {
                Some(_) => EndReason::CommandEnded,
                None => EndReason::Duration,
            },
            cost: Cost::default(),
            tally: None,
            usage: None,
            machine: None,
            full: None,
            scripts: Vec::new(),
            scripts_left_out: 0,
            ended: None,
        }
    }

    /// The number of events that the simulation has recorded so far.
    pub fn emitted(&self) -> u64 {
        self.emitted
    }

    /// The number of living tasks on the simulated machine, recorded or not.
    pub fn tasks_alive(&self) -> u32 {
        self.alive
    }
}
