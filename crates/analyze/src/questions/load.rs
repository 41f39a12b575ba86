//! The numbers of tasks of the build that run at once, and of tasks that could run at once.

use tr_format::event::Ktime;

/// The number of running tasks, and the number of tasks that run or wait for a CPU, from a moment on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Load {
    pub from: Ktime,
    pub running: usize,
    pub demand: usize,
}

/// The numbers of tasks in the order of time. While the CPUs are busy, most switches change no number, so the list is much
/// shorter than the timeline.
#[derive(Clone, Debug, Default)]
pub(crate) struct Loads {
    list: Vec<Load>,
    /// The last moment with changes.
    from: Ktime,
}

impl Loads {
    /// Begins a moment with changes, before which tasks had these numbers.
    pub fn begin(&mut self, at: Ktime, running: usize, demand: usize) {
        if at > self.from {
            self.keep(running, demand);
            self.from = at;
        }
    }

    /// Appends the numbers after all changes of a moment, if they differ from those before.
    fn keep(&mut self, running: usize, demand: usize) {
        let before = self.list.last();
        if before.map_or((0, 0), |last| (last.running, last.demand)) != (running, demand) {
            let from = self.from;
            self.list.push(Load {
                from,
                running,
                demand,
            });
        }
    }

    /// The list, at whose end tasks have these numbers.
    pub fn end(mut self, running: usize, demand: usize) -> Vec<Load> {
        self.keep(running, demand);
        self.list
    }
}
