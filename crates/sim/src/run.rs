//! Makes the simulated machine and runs it, one action at a time.

use std::collections::VecDeque;

use tr_format::event::Tgid;

use crate::accounts::Accounts;
use crate::agenda::{Agenda, NEVER};
use crate::config::{Config, Follow};
use crate::cpu::Cpu;
use crate::draw::Draw;
use crate::machine::{Channel, Machine, Turn};
use crate::observer::Observer;
use crate::pids::Pids;
use crate::program::Mix;
use crate::sink::{Event, Sink};
use crate::table::Table;
use crate::task::OPEN_END;

/// The value of `CLOCK_MONOTONIC` in ns when the simulated run begins.
const BOOT_TIME: u64 = 1_000_000_000_000;

impl Machine {
    /// A simulated machine with these settings at the beginning of its run.
    pub fn new(config: &Config) -> Machine {
        let mut cfg = config.clone();
        cfg.cpus = cfg.cpus.clamp(1, 256);
        cfg.grain = cfg.grain.clamp(1, 1000);
        let grain = cfg.grain;
        let round = |time: u64| time - time % grain;
        let attach = round(BOOT_TIME + cfg.warm_up.max(grain));
        let start = round(attach + cfg.attach.max(50_000));
        let end = round(start.saturating_add(cfg.duration).min(OPEN_END / 2));
        let cpus = usize::from(cfg.cpus);
        let mut idle_cpus = [0; 4];
        for cpu in 0..cpus {
            idle_cpus[cpu / 64] |= 1 << (cpu % 64);
        }
        let channel = |&count: &u32| Channel {
            count,
            waiters: VecDeque::new(),
        };
        let mut machine = Machine {
            draw: Draw::new(cfg.seed),
            agenda: Agenda::new(cpus + 1),
            cpus: (0..cpus).map(|_| Cpu::new(BOOT_TIME)).collect(),
            acting: usize::MAX,
            idle_cpus,
            tasks: Table::default(),
            alive: 0,
            alive_followed: 0,
            processes: Table::default(),
            serials: 0,
            pids: Pids::new((cfg.kernel.pid_max / 4).clamp(2, 4_000), cfg.kernel.pid_max),
            channels: cfg.world.channels.iter().map(channel).collect(),
            mixes: cfg.world.mixes.iter().map(Mix::running_sums).collect(),
            observer: Observer::new(attach, start),
            attached: false,
            follow_all: cfg.follow == Follow::All,
            start,
            end,
            stop: end.saturating_add(cfg.tail),
            root_serial: u64::MAX,
            root_tgid: Tgid(0),
            root_status: None,
            events: Vec::new(),
            emitted: 0,
            exec_count: 0,
            rename_count: 0,
            accounts: Accounts::new(BOOT_TIME),
            cfg,
        };
        machine.populate(BOOT_TIME);
        machine.agenda.set(0, attach);
        machine
    }

    /// Does the next action of the simulated machine and passes its events, mostly one, to `sink`.
    /// Returns false at the end of the run.
    pub fn step<S: Sink>(&mut self, sink: &mut S) -> bool {
        let (now, actor) = self.agenda.first();
        if now >= self.stop {
            return false;
        }
        match actor.checked_sub(1) {
            None => self.observe(now),
            Some(cpu) => self.act_on(cpu, now),
        }
        for event in self.events.drain(..) {
            self.emitted += 1;
            match event {
                Event::Sched(cpu, event) => sink.sched(cpu, event),
                Event::Life(stream, event) => sink.life(stream, event),
            }
        }
        if actor > 0 && self.emitted >= self.cfg.max_events && self.attached && now >= self.start {
            self.end_at(self.stamp(now) + self.cfg.grain);
            self.stop = self.end;
        }
        true
    }

    /// Does the next action of the simulated CPU `c`.
    fn act_on(&mut self, c: usize, now: u64) {
        self.acting = c;
        let cpu = &mut self.cpus[c];
        cpu.last = now;
        let (timer, op_at) = (cpu.timer(), cpu.op_at);
        let resched = if cpu.hold { NEVER } else { cpu.resched_at };
        let turn = Turn {
            cpu: c,
            now,
            cur: cpu.cur,
            stamp: self.stamp(now),
        };
        if timer <= op_at.min(resched) {
            self.interrupt(turn);
        } else if resched <= op_at {
            self.reschedule(turn);
        } else {
            self.act(turn);
        }
        self.plan(c);
    }

    /// Runs the simulation to its end and passes all events to `sink`.
    pub fn run<S: Sink>(&mut self, sink: &mut S) {
        while self.step(sink) {}
    }
}
