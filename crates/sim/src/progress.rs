//! Plans what a simulated task does next, and the state in which it waits.

use crate::machine::{Machine, Turn};
use crate::program::{ns, Op};
use crate::task::{raw, Ref, Step, Wait};

/// The largest number of runs and jumps in a row that the program of a simulated task may do at once.
const JUMPS: u32 = 1_000;

impl Machine {
    /// Plans the next action of the task that runs on the simulated CPU.
    #[inline]
    pub(crate) fn proceed(&mut self, turn: Turn) {
        let slot = self.cpus[turn.cpu].cur;
        let task = &mut self.tasks[slot];
        if let Some(step) = task.steps.last() {
            let held = step.held();
            self.cpus[turn.cpu].hold = held;
            let length = if held { ns(150, 500) } else { ns(300, 3_000) };
            self.cpus[turn.cpu].op_at = turn.now + self.draw.length(length);
            return;
        }
        self.cpus[turn.cpu].hold = false;
        let mut delay = 0;
        if task.killed.is_none() && !task.stopping {
            let program = &self.cfg.world.programs[usize::from(task.program)];
            for _ in 0..JUMPS {
                match program.get(usize::from(task.pc)) {
                    Some(Op::Run(span)) => {
                        delay += self.draw.length(*span);
                        task.pc += 1;
                    }
                    Some(Op::Goto(to)) => task.pc = *to,
                    Some(&Op::Repeat { slot, times, to }) => {
                        let counter = &mut task.loops[usize::from(slot) & 3];
                        *counter += 1;
                        if *counter < times {
                            task.pc = to;
                        } else {
                            *counter = 0;
                            task.pc += 1;
                        }
                    }
                    _ => break,
                }
            }
        }
        if delay == 0 {
            delay = 150 + (self.draw.bits() & 0xff);
        }
        self.cpus[turn.cpu].op_at = turn.now + delay;
    }

    /// Adds one step to the current simulated task for each thread of a process, except for the task itself and for
    /// exiting threads. For example, the step sends a signal to that thread.
    pub(crate) fn signal_threads(&mut self, cur: u32, process: u32, step: impl Fn(Ref) -> Step) {
        for i in 0..self.processes[process].threads.len() {
            let slot = self.processes[process].threads[i];
            if slot != cur && !self.tasks[slot].exiting {
                let name = self.name(slot);
                self.tasks[cur].steps.push(step(name));
            }
        }
    }
}

/// The kernel's task state (`__state`) of a simulated task that waits for the event `wait`.
pub(crate) fn sleep_state(wait: Wait) -> u16 {
    match wait {
        Wait::Io => raw::UNINTERRUPTIBLE,
        Wait::Lock => raw::UNINTERRUPTIBLE,
        Wait::Vfork(_) => raw::UNINTERRUPTIBLE | raw::WAKEKILL | raw::FREEZABLE,
        Wait::DeThread => raw::UNINTERRUPTIBLE | raw::WAKEKILL,
        Wait::Timer => raw::INTERRUPTIBLE | raw::FREEZABLE,
        Wait::Nothing | Wait::Chan(_) | Wait::ChanFor(_) | Wait::Child => raw::INTERRUPTIBLE,
    }
}
