//! Ends the analyzed span: the last state of every task, and the unknown time that the kernel's totals explain.

use super::Tracker;
use crate::state::{Ended, State};

impl Tracker {
    /// Ends the last state of every task at the end of the analyzed span.
    pub fn finish(&mut self) {
        self.pass_gaps(self.end);
        self.finish_cpus();
        for ix in self.tasks.ids() {
            let state = self.tasks[ix].state;
            if state != State::Dead {
                self.tasks[ix].close_off_cpu(self.start, self.end);
                self.enter(ix, self.end, state, Ended::Otherwise);
            }
        }
        for process in self.processes.ids() {
            self.flush(process);
        }
        for ix in self.tasks.ids() {
            self.narrow(ix);
        }
    }
}
