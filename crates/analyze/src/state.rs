//! The states that a task can be in: on a CPU, runnable, or waiting.
//!
//! Time is accounted when a state ends, because only the end shows which state it was. For example, a task is switched
//! out as sleeping and is later switched in without a waking. Then it did not sleep: a signal, or a waking before the
//! switch-out was complete, kept it runnable.

use tr_format::event::CpuId;
use tr_format::meta::StateName;

use crate::times::{Basis, Times};

/// The state of a task at a moment, as scheduling events show it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum State {
    /// The task is on this CPU. The CPU of a task that was running when the recording began is not known until
    /// the task leaves it.
    On(Option<CpuId>),
    /// The task is waiting for a CPU.
    Runnable {
        /// Whether the task waits because it was preempted or yielded. A task that waits for another reason was woken
        /// or is new.
        preempted: bool,
    },
    /// The task is off CPU until it is woken.
    Waiting(Wait),
    /// The state is unknown, because events are missing or no event of the task has come yet.
    Unknown,
    Dead,
}

/// The kinds of waits that the state bits of a waiting task distinguish.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wait {
    /// The task is in an interruptible sleep (it waits for a timer, a pipe, a child or input), or it is a
    /// kernel thread that waits for work.
    Sleep,
    /// The task is stopped until a signal or a tracer continues it.
    Stopped,
    Io,
    /// The task waits for the exec or the exit of a vfork child.
    Vfork,
    /// The task is in an uninterruptible wait that is none of the other kinds of waits.
    Blocked,
    /// The task's state has a bit that the trace's table of state names does not contain, or no bit of any other kind.
    Unknown,
}

/// The meaning of the bits of `prev_state` on the recorded kernel.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct States {
    interruptible: u16,
    uninterruptible: u16,
    noload: u16,
    stopped: u16,
    parked: u16,
    dead: u16,
    known: u16,
}

impl States {
    /// Finds the meaning of the state bits by their names in the table of the trace, because kernel versions have
    /// renumbered the bits.
    pub fn new(table: &[StateName]) -> States {
        let of = |names: &[&str]| {
            table
                .iter()
                .filter(|s| names.contains(&s.name.as_str()))
                .fold(0, |bits, s| bits | s.bit)
        };
        States {
            interruptible: of(&["TASK_INTERRUPTIBLE"]),
            uninterruptible: of(&["TASK_UNINTERRUPTIBLE", "TASK_RTLOCK_WAIT"]),
            noload: of(&["TASK_NOLOAD"]),
            stopped: of(&["__TASK_STOPPED", "__TASK_TRACED"]),
            parked: of(&["TASK_PARKED", "TASK_FROZEN"]),
            dead: of(&["TASK_DEAD", "EXIT_DEAD", "EXIT_ZOMBIE"]),
            known: table.iter().fold(0, |bits, s| bits | s.bit),
        }
    }

    /// Whether a task that is switched out with these state bits has ended.
    pub fn is_dead(&self, state: u16) -> bool {
        state & self.dead != 0
    }

    /// The state of a task by its snapshot, which has the task's state bits and whether the task was on a CPU.
    pub fn listed(&self, state: u16, on_cpu: bool) -> State {
        match state {
            _ if on_cpu => State::On(None),
            // The task was preempted or woken. A snapshot does not show which, so the task counts as woken.
            0 => State::Runnable { preempted: false },
            state => State::Waiting(self.wait(state, false, false)),
        }
    }

    /// Returns the kind of wait that a task with the state bits `state` is in. `state` must not be 0. `vfork` is
    /// whether the task has a vfork child that runs in its memory.
    pub fn wait(&self, state: u16, iowait: bool, vfork: bool) -> Wait {
        if state & !self.known != 0 {
            Wait::Unknown
        } else if state & self.stopped != 0 {
            Wait::Stopped
        } else if state & self.uninterruptible != 0 {
            // An idle kernel thread is in an uninterruptible wait, too. The bit TASK_NOLOAD, which keeps the thread out
            // of the load average, shows that it only sleeps.
            match () {
                () if state & self.noload != 0 => Wait::Sleep,
                () if iowait => Wait::Io,
                () if vfork => Wait::Vfork,
                () => Wait::Blocked,
            }
        } else if state & (self.interruptible | self.parked) != 0 {
            Wait::Sleep
        } else {
            Wait::Unknown
        }
    }
}

/// The kinds of time by which a task's time is summed: on a CPU, in a run queue, waiting or unknown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Bucket {
    /// The task was on a CPU. The value is the CPU, if it is known.
    OnCpu(Option<CpuId>),
    /// The task waited for a CPU.
    RunQueue {
        /// Whether the task waited for a CPU because it was preempted or yielded.
        preempted: bool,
    },
    /// The task waited for something other than a CPU.
    Wait(Wait),
    /// The time in which it is not known what the task did.
    Unknown,
}

impl Bucket {
    /// The state of a task in time of this kind, as an index into [`tr_text::words::STATES`].
    pub const fn state(self) -> usize {
        match self {
            Bucket::OnCpu(_) => 0,
            Bucket::RunQueue { .. } => 1,
            Bucket::Wait(Wait::Io | Wait::Vfork | Wait::Blocked) => 2,
            Bucket::Wait(Wait::Sleep | Wait::Stopped) => 3,
            Bucket::Wait(Wait::Unknown) | Bucket::Unknown => 4,
        }
    }

    /// The sum among a task's or a process's times to which time of this kind is added.
    pub fn sum_in(self, times: &mut Times) -> &mut u64 {
        match self.state() {
            0 => &mut times.on_cpu,
            1 => &mut times.run_queue,
            2 => &mut times.blocked,
            3 => &mut times.sleep,
            _ => &mut times.unknown,
        }
    }
}

/// The sums of a task's time in each state, in ns. In a recording without scheduling events, `sleep` has all time
/// off CPU outside of run queues, asleep or blocked.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct StateTimes {
    pub on_cpu: u64,
    pub run_queue: u64,
    pub sleep: u64,
    pub blocked: u64,
    pub unknown: u64,
}

impl StateTimes {
    /// Splits `ns` of a task's time by the totals `run_time` and `run_delay` (the time in run queues). `is_whole` is
    /// whether the rest can only be sleeps and blocked waits, which count as `sleep`; otherwise the rest is left out.
    pub fn by_totals(ns: u64, run_time: u64, run_delay: u64, is_whole: bool) -> StateTimes {
        let on_cpu = run_time.min(ns);
        let run_queue = run_delay.min(ns - on_cpu);
        let rest = ns - on_cpu - run_queue;
        StateTimes {
            on_cpu,
            run_queue,
            sleep: if is_whole { rest } else { 0 },
            ..StateTimes::default()
        }
    }

    /// The growth of a task's sums of time since the earlier sums `before`.
    pub fn since(&self, before: &StateTimes) -> StateTimes {
        StateTimes {
            on_cpu: self.on_cpu.saturating_sub(before.on_cpu),
            run_queue: self.run_queue.saturating_sub(before.run_queue),
            sleep: self.sleep.saturating_sub(before.sleep),
            blocked: self.blocked.saturating_sub(before.blocked),
            unknown: self.unknown.saturating_sub(before.unknown),
        }
    }

    /// Moves time that was counted as unknown to the states that it belongs to. `part` has the time of each of these
    /// states.
    pub fn take_from_unknown(&mut self, part: &StateTimes) {
        self.on_cpu = self.on_cpu.saturating_add(part.on_cpu);
        self.run_queue = self.run_queue.saturating_add(part.run_queue);
        self.sleep = self.sleep.saturating_add(part.sleep);
        self.unknown = self.unknown.saturating_sub(part.listed());
    }

    /// Undoes [`StateTimes::take_from_unknown`]: the times in `part` count as unknown again.
    pub fn give_to_unknown(&mut self, part: &StateTimes) {
        self.on_cpu = self.on_cpu.saturating_sub(part.on_cpu);
        self.run_queue = self.run_queue.saturating_sub(part.run_queue);
        self.sleep = self.sleep.saturating_sub(part.sleep);
        self.unknown = self.unknown.saturating_add(part.listed());
    }

    /// The time in nanoseconds in the states that a task's totals show: on CPU, run queue and sleep.
    fn listed(&self) -> u64 {
        let listed = [self.on_cpu, self.run_queue, self.sleep];
        listed.into_iter().fold(0, u64::saturating_add)
    }

    /// The task's sums of time in the form that the model has. `basis` is the source of the times.
    pub fn times(&self, basis: Basis) -> Times {
        let events = basis == Basis::Events;
        Times {
            on_cpu: self.on_cpu,
            run_queue: self.run_queue,
            sleep: if events { self.sleep } else { 0 },
            blocked: self.blocked,
            asleep_or_blocked: if events { 0 } else { self.sleep },
            unknown: self.unknown,
            basis,
        }
    }
}

/// The event that ended a task's state.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ended {
    /// A waking ended the task's state.
    Woken,
    /// A switch-in ended the task's state.
    SwitchedIn,
    /// Another event ended the task's state, or the end of the trace did.
    Otherwise,
}

impl State {
    /// The kind of the time that a task has spent in this state, now that the state has ended. The event that ended
    /// it can show what the state really was.
    pub fn bucket(self, ended: Ended) -> Bucket {
        match self {
            State::On(cpu) => Bucket::OnCpu(cpu),
            State::Runnable { preempted } => Bucket::RunQueue { preempted },
            // A task that is switched in without a waking was runnable all the time. The task had already set its state
            // to waiting, but a signal or a waking came before the task was switched out.
            State::Waiting(_) if ended == Ended::SwitchedIn => {
                Bucket::RunQueue { preempted: false }
            }
            State::Waiting(wait) => Bucket::Wait(wait),
            State::Unknown | State::Dead => Bucket::Unknown,
        }
    }
}

#[cfg(test)]
#[path = "tests/state.rs"]
mod tests;
