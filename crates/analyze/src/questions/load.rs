//! The numbers of tasks of the build that run at once, and of tasks that could run at once.

use tr_format::event::Ktime;

use crate::model::Analysis;
use crate::own::Own;
use crate::timeline::Bucket;

/// The number of running tasks, and the number of tasks that run or wait for a CPU, from a moment on.
#[derive(Clone, Copy, Debug)]
pub struct Load {
    pub from: Ktime,
    pub running: u32,
    pub demand: u32,
}

/// The numbers of tasks in the order of time; `None` without a timeline. While the CPUs are busy, most switches change
/// no number, so the list is much shorter than the timeline.
pub fn load(analysis: &Analysis, own: &Own) -> Option<Vec<Load>> {
    let timeline = analysis.timeline.as_ref()?;
    let threads = analysis.thread_ids();
    let threads = threads.filter(|ix| own.has_thread(analysis, *ix));
    let mut now = Load {
        from: Ktime(0),
        running: 0,
        demand: 0,
    };
    let mut load: Vec<Load> = Vec::new();
    for change in timeline.changes(threads) {
        if change.at > now.from {
            keep(&mut load, now);
            now.from = change.at;
        }
        if let Some(before) = change.before {
            now.running -= u32::from(is_running(before.doing));
            now.demand -= u32::from(is_ready(before.doing));
        }
        if let Some(after) = change.after {
            now.running += u32::from(is_running(after.doing));
            now.demand += u32::from(is_ready(after.doing));
        }
    }
    keep(&mut load, now);
    Some(load)
}

/// Appends the numbers after all changes of a moment, if they differ from those before.
fn keep(load: &mut Vec<Load>, now: Load) {
    let before = load
        .last()
        .map_or((0, 0), |last| (last.running, last.demand));
    if before != (now.running, now.demand) {
        load.push(now);
    }
}

fn is_running(doing: Bucket) -> bool {
    matches!(doing, Bucket::OnCpu(_))
}

/// Whether a task in this state runs or waits for a CPU.
fn is_ready(doing: Bucket) -> bool {
    matches!(doing, Bucket::OnCpu(_) | Bucket::RunQueue { .. })
}
