//! Removes simulated tasks and processes after their ends.

use tr_format::event::{Final, LifeKind, Tid};

use crate::machine::{Machine, Turn};

/// The time in ns for which the simulated kernel does not reuse a freed tid. Events of the task that had the tid are
/// written within this time, so they are not taken for events of the next task.
pub(crate) const PID_REST: u64 = 20_000;

impl Machine {
    /// Removes a simulated zombie process, after its parent has waited for it.
    pub(crate) fn reap(&mut self, process: u32, now: u64) {
        let at = &mut self.processes[process];
        at.reaped = true;
        if at.threads.is_empty() {
            self.forget(process, now);
        }
    }

    /// Frees the place of a simulated process in the table of processes, and its pid.
    fn forget(&mut self, process: u32, now: u64) {
        let at = &mut self.processes[process];
        self.pids.free(at.tgid, now + PID_REST);
        at.used += 1;
        self.processes.free(process);
    }

    /// Removes a simulated task after its last switch-out.
    pub(crate) fn bury(&mut self, turn: Turn, slot: u32) {
        let stamp = turn.stamp;
        let task = &mut self.tasks[slot];
        let process = task.process;
        if self.attached && task.followed {
            let last = Final {
                tid: Tid(task.tid),
                sum_exec_runtime: task.run_time,
                nvcsw: task.nvcsw,
                nivcsw: task.nivcsw,
                delays: task.delays(),
            };
            self.emit_life(turn, LifeKind::Final(last));
        }
        self.record_task(slot, stamp);
        let task = &mut self.tasks[slot];
        task.used += 1;
        task.steps.clear();
        self.alive -= 1;
        self.alive_followed -= u32::from(task.followed);
        let at = &mut self.processes[process];
        at.sums.add(&task.sums);
        at.threads.retain(|thread| *thread != slot);
        if at.leader == Some(slot) {
            at.leader = None;
        }
        if task.tid != at.tgid {
            self.pids.free(task.tid, stamp + PID_REST);
        }
        let last = at.threads.is_empty();
        self.tasks.free(slot);
        if last {
            self.end_process(process, stamp);
        }
    }

    /// Ends a simulated process after the last switch-out of its last thread.
    fn end_process(&mut self, process: u32, stamp: u64) {
        self.record_process(process, stamp);
        let at = &self.processes[process];
        let reaped = at.reaped;
        if at.serial == self.root_serial {
            self.root_status = at.status.filter(|_| stamp < self.end);
            if let Some(linger) = self.cfg.linger {
                self.end_at(self.stamp(stamp + linger.max(self.cfg.grain)));
            }
        }
        if reaped {
            self.forget(process, stamp);
        }
    }
}
