//! Keeps account, while a trace is written, of who lives and what was last seen of
//! each, for the [`Checkpoint`]s in it.
//!
//! Events do not come in the order of their times, not even between one drain of the
//! rings and the next. But a mark of progress says that all before it have come. So a
//! moment is chosen that is later than everything so far, from then on what is before
//! it and what is not are kept apart, and when the mark before the last one is behind
//! it, the moment is over. One mark would do but for events that come late; those that
//! are later still show by the times of their frames ([`crate::window`]).

mod facts;
mod living;

use std::collections::HashMap;

use crate::block::life;
use crate::checkpoint::{Checkpoint, Cpu, Process, Step, Task, Who};
use crate::event::{CpuId, Ktime, LifeEvent, LifeKind, Tid};
use crate::limits;
use crate::meta::Metadata;
use crate::sched::{flag, Open};

use facts::{Facts, Seen, Stamp};
use living::{Alive, Living, Parent};

/// Bytes of arguments of those who live, and of cgroups' paths: beyond that a trace has no
/// more checkpoints. They would not fit into one.
const BYTES: usize = limits::SECTION_BODY as usize / 2;
/// Bytes of lifecycle events that wait for two marks of progress: some 100,000 events, or
/// 70,000 a second. Beyond that a trace has no more checkpoints either.
const WAITING: usize = 16 << 20;

/// How often a trace gets a checkpoint.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Often {
    /// After so many events.
    pub events: u64,
    /// When the trace has grown by so many times the bytes of the last one.
    pub bytes: u64,
}

impl Often {
    /// A part that is read in some ten milliseconds, and at most a thirtieth of the file.
    pub const USUAL: Often = Often {
        events: 1 << 18,
        bytes: 32,
    };
}

/// Keeps account.
#[derive(Debug)]
pub struct Census {
    often: Often,
    living: Living,
    /// Lifecycle events that wait for a mark.
    waiting: Vec<LifeEvent>,
    waiting_bytes: usize,
    /// Those before this time have been taken.
    taken: u64,
    /// What was seen before the moment, and from it on.
    before: Seen,
    since: Seen,
    moment: Option<u64>,
    /// The largest time so far.
    latest: u64,
    /// The last mark of progress, and a newer one that is not in the file yet.
    mark: u64,
    new_mark: Option<u64>,
    /// Scheduling events so far.
    number: u64,
    /// Since the last checkpoint: events, and where it ended in the file.
    events: u64,
    bytes: u64,
    /// How large a checkpoint is, as far as is known.
    size: u64,
    /// It cannot know any more who lives.
    lost: bool,
}

impl Census {
    /// Of that trace.
    pub fn new(meta: &Metadata) -> Census {
        Census {
            often: Often::USUAL,
            living: Living::new(meta),
            waiting: Vec::new(),
            waiting_bytes: 0,
            taken: 0,
            before: Seen::default(),
            since: Seen::default(),
            moment: None,
            latest: 0,
            mark: 0,
            new_mark: None,
            number: 0,
            events: 0,
            bytes: 0,
            size: 0,
            lost: false,
        }
    }

    /// How often there is a checkpoint from now on.
    pub fn set(&mut self, often: Often) {
        self.often = often;
    }

    /// Takes a block of a CPU's stream.
    pub fn sched(&mut self, cpu: CpuId, block: &Open) {
        if self.lost {
            return;
        }
        let (before, since) = (&mut self.before, &mut self.since);
        let latest = facts::take(cpu, block, self.number, self.moment, before, since);
        self.latest = self.latest.max(latest);
        self.number += block.len() as u64;
        self.events += block.len() as u64;
    }

    /// Takes an event of another stream.
    pub fn life(&mut self, event: &LifeEvent) {
        match &event.kind {
            _ if self.lost => return,
            LifeKind::Progress => self.new_mark = self.new_mark.max(Some(event.time.0)),
            LifeKind::Clock(_) | LifeKind::Mark(_) => {}
            LifeKind::Lost(_) => self.lose(),
            // It has the time of when the recorder looked it up.
            LifeKind::CgroupPath(path) => self.living.name_cgroup(path),
            // Who is only named.
            LifeKind::Snapshot(snapshot) if !snapshot.followed => {}
            _ if event.time.0 < self.taken => self.lose(),
            _ => {
                self.latest = self.latest.max(event.time.0);
                self.waiting_bytes += life::weight(event);
                self.waiting.push(event.clone());
            }
        }
        if self.waiting_bytes > WAITING || self.living.bytes > BYTES {
            self.lose();
        }
        self.events += 1;
    }

    /// Gives up.
    fn lose(&mut self) {
        *self = Census {
            lost: true,
            ..Census::new(&Metadata::default())
        };
    }

    /// All blocks are in the file now, which has so many bytes. The checkpoint that
    /// belongs there, if one does.
    pub fn flushed(&mut self, bytes: u64) -> Option<Checkpoint> {
        let mark = self.new_mark.take()?;
        let sure = std::mem::replace(&mut self.mark, mark);
        let moment = self.moment.filter(|moment| *moment <= sure);
        let mut made = None;
        if let Some(moment) = moment {
            self.advance(moment);
            made = self.checkpoint(Ktime(moment));
            if made.is_none() {
                // It would hardly be another thing at the next mark.
                self.events = 0;
            }
            self.moment = None;
            let since = std::mem::take(&mut self.since);
            self.before.add(since);
        }
        self.advance(sure);
        if self.before.len() > 2 * (self.living.tasks.len() + 512) {
            let tasks = &self.living.tasks;
            self.before
                .forget(self.taken, |tid| tasks.contains_key(&Tid(tid)));
        }
        let grown = bytes.saturating_sub(self.bytes);
        let due = self.events >= self.often.events && grown / self.often.bytes.max(1) >= self.size;
        if self.moment.is_none() && made.is_none() && due && !self.lost {
            self.moment = Some(self.latest.saturating_add(1));
        }
        made
    }

    /// The checkpoint was too large to be written.
    pub fn was_too_large(&mut self) {
        self.size = limits::SECTION_BODY;
    }

    /// The checkpoint has become so many bytes of a file of so many: whether it is
    /// worth them.
    pub fn is_worth(&mut self, size: u64, bytes: u64) -> bool {
        self.size = size;
        let worth = bytes.saturating_sub(self.bytes) / self.often.bytes.max(1) >= size;
        if worth {
            (self.bytes, self.events) = (bytes, 0);
        }
        worth
    }

    /// Takes the lifecycle events before a time, by time; of equal times listings first,
    /// and the others as they stand in their ring.
    fn advance(&mut self, time: u64) {
        let listing = |event: &LifeEvent| matches!(event.kind, LifeKind::Snapshot(_));
        self.waiting
            .sort_by_key(|event| (event.time.0, !listing(event)));
        let count = self.waiting.partition_point(|event| event.time.0 < time);
        for event in self.waiting.drain(..count) {
            self.living.take(event);
        }
        self.waiting_bytes = self.waiting.iter().map(life::weight).sum();
        self.taken = self.taken.max(time);
    }

    /// Who lives at the moment, all before which has been taken. `None` when it is not
    /// certain of somebody what came last.
    fn checkpoint(&self, at: Ktime) -> Option<Checkpoint> {
        let living = &self.living;
        if at.0 <= living.start || living.tasks.len() as u64 > limits::CHECKPOINT_TASKS {
            return None;
        }
        // A thread may go by its leader's tid before its exec is told (`de_thread`).
        let passed_on = |household: &living::Household| {
            let seen = self.before.of(household.process.pid.0);
            let later = |time: u64| household.led_until.is_some_and(|until| time > until);
            seen.came.is_some_and(|came| later(came.time))
                || seen.left.is_some_and(|left| later(left.at.time))
        };
        if living.processes.values().any(passed_on) {
            return None;
        }
        let mut tasks: Vec<&Alive> = living.tasks.values().collect();
        tasks.sort_unstable_by_key(|alive| alive.serial);
        let mut processes: Vec<_> = living.processes.values().collect();
        processes.sort_unstable_by_key(|household| household.serial);
        let numbers = |serials: &mut dyn Iterator<Item = u64>| -> HashMap<u64, u32> {
            serials.zip(0..).collect()
        };
        let places = Places {
            living,
            tasks: numbers(&mut tasks.iter().map(|alive| alive.serial)),
            processes: numbers(&mut processes.iter().map(|household| household.serial)),
            renamed: tasks
                .iter()
                .filter_map(|alive| Some((alive.renamed?.0, *alive)))
                .collect(),
        };
        let task = |alive: &&Alive| {
            let seen = self.before.of(alive.task.tid.0);
            let household = living.processes.get(&alive.tgid)?;
            // Its fork came before the recording, its first waking did not: when it was not
            // known before that, or was to run in its parent's memory, that tells the parent.
            let waker = || {
                let (time, parent, vfork) = seen.born.filter(|_| !alive.task.forked)?;
                alive.listed.filter(|(at, ..)| vfork || time < *at)?;
                match places.who(parent, time) {
                    Who::Task(parent) => Some(parent),
                    Who::Other(_) | Who::Interrupt => None,
                }
            };
            Some(Task {
                process: *places.processes.get(&household.serial)?,
                parent: alive
                    .parent
                    .and_then(|parent| places.task(parent))
                    .or_else(waker),
                vfork_child: places
                    .vfork_child(alive, &seen, at.0 - 1)
                    .and_then(|child| places.task(child.serial)),
                steps: places.steps(alive, &seen)?,
                ..alive.task.clone()
            })
        };
        let process = |household: &&living::Household| {
            let parent = match household.parent {
                Parent::Unknown => None,
                Parent::Serial(serial) => Some(serial),
                Parent::Listed(pid) => living
                    .processes
                    .get(&pid)
                    .filter(|parent| !parent.process.forked && parent.serial != household.serial)
                    .map(|parent| parent.serial),
            };
            Process {
                parent: parent.and_then(|parent| places.processes.get(&parent).copied()),
                ..household.process.clone()
            }
        };
        let mut cpus: Vec<Cpu> = self
            .before
            .cpus()
            .map(|(cpu, time, next)| Cpu {
                cpu,
                current: places.who(next, time),
            })
            .collect();
        cpus.sort_unstable_by_key(|cpu| cpu.cpu);
        let cgroups = living.cgroups.iter();
        Some(Checkpoint {
            at,
            processes: processes.iter().map(process).collect(),
            tasks: tasks.iter().map(task).collect::<Option<_>>()?,
            cpus,
            cgroups: cgroups.map(|(id, path)| (*id, path.clone())).collect(),
        })
    }
}

/// Who has which place in a checkpoint.
struct Places<'a> {
    living: &'a Living,
    /// By number.
    tasks: HashMap<u64, u32>,
    processes: HashMap<u64, u32>,
    /// Those who have left a tid by an exec.
    renamed: HashMap<Tid, &'a Alive>,
}

impl Places<'_> {
    fn task(&self, serial: u64) -> Option<u32> {
        self.tasks.get(&serial).copied()
    }

    /// Who had a tid at a time.
    fn who(&self, tid: u32, time: u64) -> Who {
        let now = self.living.tasks.get(&Tid(tid));
        let now = now.filter(|alive| alive.born <= time);
        let then = || {
            let renamed = self.renamed.get(&Tid(tid)).copied();
            renamed.filter(|alive| time < alive.born)
        };
        let place = now.or_else(then).and_then(|alive| self.task(alive.serial));
        place.map_or(Who::Other(Tid(tid)), Who::Task)
    }

    /// The child that runs in a task's memory after what has the time `at`: it has not
    /// executed anything, and the task has not been woken since the child was.
    fn vfork_child(&self, alive: &Alive, seen: &Facts, at: u64) -> Option<&Alive> {
        let (since, child) = seen.vfork.filter(|(time, _)| *time >= alive.born)?;
        let child = self.living.tasks.get(&Tid(child))?;
        let [woken, _] = seen.woken;
        let over = child.executed.is_some_and(|time| time <= at)
            || woken.is_some_and(|woken| (since..=at).contains(&woken.at.time));
        (since <= at && child.born <= since && !over).then_some(child)
    }

    /// A task's last events, from its last switch-in on if there is one. `None` when it
    /// came to one CPU and left another by one stamp.
    fn steps(&self, alive: &Alive, seen: &Facts) -> Option<Vec<Step>> {
        let mine = |at: &Stamp| at.time >= alive.born;
        let nowhere = |time: u64| Stamp {
            time,
            cpu: CpuId(u16::MAX),
            number: 0,
        };
        // By time; of equal times as they stand in a ring, or by rank as events of
        // several streams are put in order.
        let mut steps: Vec<(Stamp, u8, Step)> = Vec::new();
        if let Some((time, state, on_cpu)) = alive.listed {
            steps.push((nowhere(time), 0, Step::Listed { state, on_cpu }));
        }
        for woken in seen.woken.into_iter().flatten() {
            if mine(&woken.at) {
                let by = woken.waker.map(|waker| self.who(waker, woken.at.time));
                let by = by.unwrap_or(Who::Interrupt);
                steps.push((woken.at, 1, Step::Woken { by }));
            }
        }
        if let Some(at) = seen.ran.filter(mine) {
            steps.push((at, 1, Step::Ran { cpu: at.cpu }));
        }
        let came = seen.came.filter(mine);
        if let Some(at) = came {
            steps.push((at, 2, Step::Came { cpu: at.cpu }));
        } else if let Some((_, Some(cpu))) = alive.renamed {
            steps.push((nowhere(alive.born), 0, Step::Came { cpu }));
        }
        if let Some(left) = seen.left.filter(|left| mine(&left.at)) {
            if came.is_some_and(|came| came.time == left.at.time && came.cpu != left.at.cpu) {
                return None;
            }
            // Who is not waiting by its exit will hardly wait for that.
            let lives = |child: &&Alive| {
                let exit = child.task.exit.as_ref();
                exit.is_none_or(|(time, _)| time.0 >= left.at.time)
            };
            let vfork = self.vfork_child(alive, seen, left.at.time).filter(lives);
            let step = Step::Left {
                cpu: left.at.cpu,
                state: left.state,
                preempt: left.flags & flag::PREEMPT != 0,
                iowait: left.flags & flag::IOWAIT != 0,
                vfork: vfork.is_some(),
                next: self.who(left.next, left.at.time),
            };
            steps.push((left.at, 2, step));
        }
        steps.sort_by_key(|(at, rank, _)| (at.time, *rank));
        let one_ring = |(one, ..): &(Stamp, u8, Step), (other, ..): &(Stamp, u8, Step)| {
            (one.time, one.cpu) == (other.time, other.cpu)
        };
        for tied in steps.chunk_by_mut(one_ring) {
            tied.sort_by_key(|(at, ..)| at.number);
        }
        let last = |(_, _, step): &(Stamp, u8, Step)| matches!(step, Step::Came { .. });
        let first = steps.iter().rposition(last).unwrap_or(0);
        Some(steps.drain(first..).map(|(_, _, step)| step).collect())
    }
}
