//! Finds the tasks that the kernel does not list to BPF programs. Some guests' kernels hide the tasks of
//! their agent, although the switches of these tasks are recorded.

use std::collections::HashSet;

use tr_bpf::wire;
use tr_format::event::{Argv, CgroupId, Ktime, LifeEvent, LifeKind, Snapshot, Tid};

use crate::host;
use crate::proc::{self, tgid, Id};
use crate::source::recorder;

/// The age in ns that a task must have when the kernel lists the tasks, to get a snapshot here. The fork of a younger
/// task may be recorded already. The age is two clock ticks of 10 ms, because `/proc` gives start times in such ticks.
const YOUNG_TASK: u64 = 20_000_000;

/// The snapshot events of the living tasks that are in `/proc` but not in `listed`. Outside the first pid namespace
/// there are none, because the ids in `/proc` differ from those of the events there.
pub fn unlisted(listed: &[wire::Snapshot], argv_limit: u32) -> Vec<LifeEvent> {
    let own = std::process::id();
    if !listed
        .iter()
        .any(|task| task.tid == own && task.seen_tid == own)
    {
        return Vec::new();
    }
    let known: HashSet<u32> = listed.iter().map(|task| task.tgid).collect();
    let since = listed.iter().map(|task| task.time).min().unwrap_or(0);
    let hidden = proc::ids("/proc".as_ref()).filter(|id| !known.contains(&id.unsigned_abs()));
    let tasks = hidden.flat_map(|process| {
        let threads = proc::threads(process).into_iter();
        threads.map(move |thread| (process, thread))
    });
    tasks
        .filter_map(|(process, thread)| task(process, thread, since, argv_limit))
        .collect()
}

fn task(process: Id, thread: Id, since: u64, argv_limit: u32) -> Option<LifeEvent> {
    let stat = proc::stat(thread)?;
    let start = start(stat.start)?;
    if start.saturating_add(YOUNG_TASK) > since {
        return None;
    }
    let argv = if thread == process && !stat.kthread {
        proc::cmdline(thread.unsigned_abs(), argv_limit)
    } else {
        Argv::from_args([""; 0])
    };
    // Each letter from fs/proc/array.c stands for bits of the kernel's task state (include/linux/sched.h). A task with
    // the letter R is on a CPU or waits for one, so that its state remains unknown.
    let state = match stat.state {
        b'S' => Some(0x1),
        b'D' => Some(0x2),
        b'T' => Some(0x4),
        b't' => Some(0x8),
        b'I' => Some(0x402),
        b'R' => None,
        _ => return None,
    };
    let snapshot = Snapshot {
        tid: Tid(thread.unsigned_abs()),
        tgid: tgid(process),
        parent_tgid: tgid(stat.parent),
        start_time: Ktime(start),
        ns_tid: Tid(thread.unsigned_abs()),
        cgroup: CgroupId(0),
        comm: proc::comm(thread).unwrap_or(stat.comm),
        argv,
        state: state.unwrap_or(0),
        on_cpu: false,
        kthread: stat.kthread,
        followed: state.is_some(),
        sum_exec_runtime: proc::totals(thread).map_or(0, |(run, ..)| run),
    };
    Some(recorder(host::now(), LifeKind::Snapshot(snapshot)))
}

/// Converts the start of a task, in clock ticks since the boot, to the clock of the events, in ns.
fn start(ticks: u64) -> Option<u64> {
    let boot = host::of_ticks(ticks)?;
    let suspended = host::clock().boot.saturating_sub(host::now().0);
    Some(boot.saturating_sub(suspended))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::expect_used)]
    use super::*;

    /// Tests that the snapshot of a task that the kernel does not list has the name of the task. The process of the
    /// test stands for such a task.
    #[test]
    fn a_task_that_is_not_listed_has_its_name() {
        let id = Id::try_from(std::process::id()).expect("an id");
        let event = task(id, id, u64::MAX, 4096).expect("this process lives");
        let LifeKind::Snapshot(snapshot) = event.kind else {
            panic!("no snapshot");
        };
        assert_eq!(Some(snapshot.comm), proc::comm(id));
        assert_eq!(snapshot.tgid.0, std::process::id());
        assert!(!snapshot.kthread && snapshot.argv.full_len.is_some());
        assert!(snapshot.start_time <= event.time);
        assert_eq!(task(id, id, snapshot.start_time.0, 4096), None, "too young");
    }
}
