//! The numbers of tasks of the build that run at once, and of tasks that could run at once.

use tr_format::event::Ktime;

use crate::model::Analysis;
use crate::own::Own;
use crate::timeline::Bucket;

/// The number of running tasks, and the number of tasks that run or wait for a CPU, from a moment on.
#[derive(Clone, Copy, Debug)]
pub struct Load {
    pub from: Ktime,
    pub running: usize,
    pub demand: usize,
}

/// The numbers of tasks in the order of time; `None` without a timeline.
pub fn load(analysis: &Analysis, own: &Own) -> Option<Vec<Load>> {
    let timeline = analysis.timeline.as_ref()?;
    let mut steps: Vec<(Ktime, isize, isize)> = Vec::new();
    let threads = analysis.thread_ids();
    for thread in threads.filter(|ix| own.has_thread(analysis, *ix)) {
        for stretch in timeline.of(thread) {
            let (running, demand) = match stretch.doing {
                Bucket::OnCpu(_) => (1, 1),
                Bucket::RunQueue { .. } => (0, 1),
                Bucket::Wait(_) | Bucket::Unknown => continue,
            };
            steps.push((stretch.from, running, demand));
            steps.push((stretch.to, -running, -demand));
        }
    }
    // The numbers are those after all steps of a moment.
    steps.sort_unstable_by_key(|(from, ..)| *from);
    let (mut running, mut demand) = (0isize, 0isize);
    let mut load: Vec<Load> = Vec::new();
    for (from, more_running, more_demand) in steps {
        running += more_running;
        demand += more_demand;
        let now = Load {
            from,
            running: running.unsigned_abs(),
            demand: demand.unsigned_abs(),
        };
        match load.last_mut().filter(|last| last.from == from) {
            Some(last) => *last = now,
            None => load.push(now),
        }
    }
    Some(load)
}
