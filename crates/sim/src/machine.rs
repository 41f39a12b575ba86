//! The machine: its clock, its tables, and what it does next.

use std::collections::VecDeque;

use tr_format::event::{
    CgroupId, Clock, CpuId, Ktime, LifeEvent, LifeKind, SchedEvent, SchedKind, Stream, Tgid, Tid,
};
use tr_format::meta::{Cost, EndReason, Metadata, Options, Scope, StateName, Summary};

use crate::agenda::{Agenda, NEVER};
use crate::config::{Config, Follow};
use crate::cpu::Cpu;
use crate::draw::Draw;
use crate::observer::Observer;
use crate::pids::Pids;
use crate::process::Process;
use crate::sink::Sink;
use crate::task::{Cause, Ref, Task, IDLE, OPEN};
use crate::truth::{ProcessTruth, TaskTruth};

/// The monotonic clock when the machine's run begins.
const BOOTED: u64 = 1_000_000_000_000;
/// What `CLOCK_BOOTTIME` is ahead.
const SUSPENDED: u64 = 7_000_000_000;
/// `CLOCK_REALTIME` at monotonic zero.
const EPOCH: u64 = 1_790_000_000_000_000_000;

/// A channel: what is in it and who waits for it.
#[derive(Debug, Default)]
pub(crate) struct Channel {
    pub(crate) count: u32,
    pub(crate) waiters: VecDeque<Ref>,
}

/// A running simulation.
#[derive(Debug)]
pub struct Machine {
    pub(crate) cfg: Config,
    pub(crate) draw: Draw,
    pub(crate) agenda: Agenda,
    pub(crate) cpus: Vec<Cpu>,
    /// The CPU whose turn it is.
    pub(crate) acting: usize,
    /// Bit c: CPU c is idle and nobody was put into its queue.
    pub(crate) idle_cpus: [u64; 4],
    pub(crate) tasks: Vec<Task>,
    pub(crate) free_tasks: Vec<u32>,
    pub(crate) alive: u32,
    pub(crate) alive_followed: u32,
    pub(crate) processes: Vec<Process>,
    pub(crate) free_processes: Vec<u32>,
    pub(crate) serials: u64,
    pub(crate) pids: Pids,
    pub(crate) channels: Vec<Channel>,
    /// Running sums of the mixes' weights.
    pub(crate) mixes: Vec<Vec<(u32, crate::program::Op)>>,
    pub(crate) observer: Observer,
    pub(crate) attached: bool,
    pub(crate) follow_all: bool,
    pub(crate) start: u64,
    pub(crate) end: u64,
    /// Nothing happens from here on.
    pub(crate) stop: u64,
    pub(crate) root_serial: u64,
    pub(crate) root_tgid: Tgid,
    pub(crate) root_status: Option<u32>,
    pub(crate) emitted: u64,
    pub(crate) exec_count: u64,
    pub(crate) rename_count: u64,
    // What becomes the truth.
    pub(crate) dead_tasks: Vec<(u64, TaskTruth)>,
    pub(crate) dead_processes: Vec<(u64, Option<u64>, ProcessTruth)>,
    pub(crate) running: usize,
    pub(crate) running_since: u64,
    pub(crate) concurrency: Vec<u64>,
    pub(crate) idle_time: u64,
    pub(crate) others_time: u64,
    pub(crate) execs: u64,
    pub(crate) forks: u64,
    pub(crate) exits: u64,
}

impl Machine {
    /// A machine at the beginning of its run.
    pub fn new(config: &Config) -> Machine {
        let mut cfg = config.clone();
        cfg.cpus = cfg.cpus.clamp(1, 256);
        cfg.grain = cfg.grain.clamp(1, 1000);
        let grain = cfg.grain;
        let round = |time: u64| time - time % grain;
        let attach = round(BOOTED + cfg.warm_up.max(grain));
        let start = round(attach + cfg.attach.max(50_000));
        let end = round(start.saturating_add(cfg.duration).min(OPEN / 2));
        let cpus = usize::from(cfg.cpus);
        let mut idle_cpus = [0; 4];
        for cpu in 0..cpus {
            idle_cpus[cpu / 64] |= 1 << (cpu % 64);
        }
        let mixes = cfg
            .world
            .mixes
            .iter()
            .map(|mix| {
                let mut sum = 0;
                let weighed = mix.0.iter().filter(|(weight, _)| *weight > 0);
                weighed
                    .map(|&(weight, op)| {
                        sum += u32::from(weight);
                        (sum, op)
                    })
                    .collect()
            })
            .collect();
        let mut machine = Machine {
            draw: Draw::new(cfg.seed),
            agenda: Agenda::new(cpus + 1),
            cpus: (0..cpus).map(|_| Cpu::new()).collect(),
            acting: usize::MAX,
            idle_cpus,
            tasks: Vec::new(),
            free_tasks: Vec::new(),
            alive: 0,
            alive_followed: 0,
            processes: Vec::new(),
            free_processes: Vec::new(),
            serials: 0,
            pids: Pids::new((cfg.kernel.pid_max / 4).clamp(2, 4_000), cfg.kernel.pid_max),
            channels: cfg
                .world
                .channels
                .iter()
                .map(|&count| Channel {
                    count,
                    waiters: VecDeque::new(),
                })
                .collect(),
            mixes,
            observer: Observer::new(attach, start),
            attached: false,
            follow_all: cfg.follow == Follow::All,
            start,
            end,
            stop: end.saturating_add(cfg.tail),
            root_serial: u64::MAX,
            root_tgid: Tgid(0),
            root_status: None,
            emitted: 0,
            exec_count: 0,
            rename_count: 0,
            dead_tasks: Vec::new(),
            dead_processes: Vec::new(),
            running: 0,
            running_since: BOOTED,
            concurrency: Vec::new(),
            idle_time: 0,
            others_time: 0,
            execs: 0,
            forks: 0,
            exits: 0,
            cfg,
        };
        for cpu in &mut machine.cpus {
            cpu.last = BOOTED - 1;
            cpu.since = BOOTED;
        }
        machine.populate(BOOTED);
        machine.agenda.set(0, attach);
        machine
    }

    /// Does the next thing that happens; its events, mostly one, go to `sink`.
    /// False when the run is over.
    pub fn step<S: Sink>(&mut self, sink: &mut S) -> bool {
        let (now, who) = self.agenda.first();
        if now >= self.stop {
            return false;
        }
        let Some(c) = who.checked_sub(1) else {
            self.observe(sink, now);
            return true;
        };
        self.acting = c;
        let cpu = &mut self.cpus[c];
        cpu.last = now;
        let timer = cpu.timer();
        let resched = if cpu.hold { NEVER } else { cpu.resched_at };
        if timer <= cpu.op_at.min(resched) {
            self.interrupt(sink, c, now);
        } else if resched <= cpu.op_at {
            self.reschedule(sink, c, now);
        } else {
            self.act(sink, c, now);
        }
        self.plan(c);
        if self.emitted >= self.cfg.max_events && self.attached && now >= self.start {
            self.end_at(self.stamp(now) + self.cfg.grain);
            self.stop = self.end;
        }
        true
    }

    /// Runs to the end.
    pub fn run<S: Sink>(&mut self, sink: &mut S) {
        while self.step(sink) {}
    }

    /// The span ends at `end`, if that is earlier than planned.
    pub(crate) fn end_at(&mut self, end: u64) {
        if end < self.end {
            self.end = end;
            self.stop = end.saturating_add(self.cfg.tail);
        }
    }

    /// The time that an event at `now` carries.
    #[inline]
    pub(crate) fn stamp(&self, now: u64) -> u64 {
        if self.cfg.grain == 1 {
            now
        } else {
            now - now % self.cfg.grain
        }
    }

    /// Puts CPU `c`'s next time into the agenda; not for the one that acts now,
    /// whose turn comes at the end of the step.
    #[inline]
    pub(crate) fn replan(&mut self, c: usize) {
        if c != self.acting {
            self.plan(c);
        }
    }

    /// The same for any CPU.
    #[inline]
    pub(crate) fn plan(&mut self, c: usize) {
        self.agenda.set(c + 1, self.cpus[c].next());
    }

    /// The part of `from..to` that lies in the span.
    #[inline]
    pub(crate) fn clip(&self, from: u64, to: u64) -> u64 {
        to.min(self.end).saturating_sub(from.max(self.start))
    }

    /// Whether `stamp` lies in the span.
    #[inline]
    pub(crate) fn in_span(&self, stamp: u64) -> bool {
        stamp >= self.start && stamp < self.end
    }

    #[inline]
    pub(crate) fn emit<S: Sink>(&mut self, sink: &mut S, c: usize, stamp: u64, kind: SchedKind) {
        self.emitted += 1;
        sink.sched(
            CpuId(c as u16),
            SchedEvent {
                time: Ktime(stamp),
                kind,
            },
        );
    }

    pub(crate) fn emit_life<S: Sink>(
        &mut self,
        sink: &mut S,
        c: usize,
        stamp: u64,
        kind: LifeKind,
    ) {
        self.emitted += 1;
        let event = LifeEvent {
            time: Ktime(stamp),
            cpu: Some(CpuId(c as u16)),
            kind,
        };
        sink.life(Stream::Lifecycle, event);
    }

    /// The task that `name` stands for, if it is still there.
    #[inline]
    pub(crate) fn find(&self, name: Ref) -> Option<u32> {
        let task = self.tasks.get(name.slot as usize)?;
        (task.used == name.used && task.place != crate::task::Place::Dead).then_some(name.slot)
    }

    pub(crate) fn name(&self, slot: u32) -> Ref {
        Ref {
            slot,
            used: self.tasks[slot as usize].used,
        }
    }

    /// The tid of who runs on the CPU.
    #[inline]
    pub(crate) fn current_tid(&self, c: usize) -> Tid {
        match self.cpus[c].cur {
            IDLE => Tid::IDLE,
            slot => Tid(self.tasks[slot as usize].tid),
        }
    }

    /// What only events before now could have told is forgotten.
    pub(crate) fn attach(&mut self) {
        self.attached = true;
        for task in &mut self.tasks {
            if task.cause != Cause::Stopped {
                task.cause = Cause::Plain;
            }
            task.woken = false;
            task.seen_cpu = u16::MAX;
        }
    }

    /// The clocks at `now`.
    pub(crate) fn clock(now: u64) -> Clock {
        Clock {
            boot: now + SUSPENDED,
            real: now + EPOCH,
        }
    }

    /// What the recorder would say about the trace at its start.
    pub fn meta(&self) -> Metadata {
        Metadata {
            tool_version: env!("CARGO_PKG_VERSION").to_owned(),
            host: "simulated".to_owned(),
            kernel: "Linux 6.18.0 simulated".to_owned(),
            machine: "x86_64".to_owned(),
            cpus: (0..self.cfg.cpus).map(CpuId).collect(),
            page_size: 4096,
            start: Ktime(self.start),
            start_clock: Machine::clock(self.start),
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
            },
            missing: Vec::new(),
            ci: Vec::new(),
        }
    }

    /// What the recorder would say at the end; to be asked after the run.
    pub fn summary(&self) -> Summary {
        Summary {
            end: Ktime(self.end),
            end_clock: Machine::clock(self.end),
            status: self.root_status,
            reason: match self.root_status {
                Some(_) => EndReason::CommandEnded,
                None => EndReason::Duration,
            },
            cost: Cost::default(),
            tally: None,
        }
    }

    /// How many events were recorded so far.
    pub fn emitted(&self) -> u64 {
        self.emitted
    }

    /// How many tasks there are now, recorded or not.
    pub fn tasks_alive(&self) -> u32 {
        self.alive
    }

    /// The cgroup with number `n`.
    pub(crate) fn cgroup(n: u32) -> CgroupId {
        CgroupId(4_000 + u64::from(n) * 73)
    }
}
