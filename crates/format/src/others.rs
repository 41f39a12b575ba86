//! The events about tasks that are not recorded: for how long such tasks had a CPU while recorded tasks waited for it,
//! and the names of their threads.

use serde::Serialize;

use crate::codec::{to_new_front, Codec, Col, Step, Stored, Text};
use crate::ids::{Comm, Ktime, Tgid, Tid};

/// The largest number of entries of [`Others::shares`] in one event.
const MOST_SHARES: usize = 64;

/// How long unrecorded tasks had the event's CPU while recorded tasks waited for it, up to the event's time. All times
/// are in µs. The event can sum up several waits, as long as the unrecorded tasks had nearly the same shares of each
/// wait.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Others {
    /// The time that lies between the waits that the event sums up, in µs.
    pub between_us: u64,
    /// The number of switches among the unrecorded tasks during the waits that the event sums up.
    pub switches: u64,
    /// The CPU time of the unrecorded tasks that have no share of their own in `shares`, in µs.
    pub rest_us: u64,
    /// The unrecorded tasks that had the CPU for the longest times. The first share is that of the task which had the
    /// CPU when the recorded tasks began to wait, unless that share was small.
    pub shares: Vec<Share>,
}

/// How long the unrecorded tasks of one process and one name had the CPU while recorded tasks waited for it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Share {
    /// The process of all tasks whose CPU times this share sums up; 0 if the tasks belong to several processes.
    pub tgid: Tgid,
    /// The common name of all tasks whose CPU times this share sums up.
    pub comm: Comm,
    /// The time for which the tasks with this process and name had the CPU, in µs.
    pub us: u64,
}

impl Others {
    /// The time that all unrecorded tasks of the event had the CPU together, in µs.
    pub fn sum_us(&self) -> u64 {
        let all = self.shares.iter().map(|share| share.us);
        all.fold(self.rest_us, u64::saturating_add)
    }

    /// The length of the time that the event covers, in ns: from the beginning of the first of its waits to the event's
    /// time.
    pub fn span(&self) -> u64 {
        let us = self.sum_us().saturating_add(self.between_us);
        us.saturating_mul(1000)
    }
}

impl Stored for Others {
    fn fields<C: Codec>(&mut self, c: &mut C, _: Ktime) -> Step {
        c.int(Col::OthersSwitches, &mut self.switches)?;
        c.int(Col::OthersBetween, &mut self.between_us)?;
        let len = self.shares.len();
        let count = c.count(Col::OthersShares, len, MOST_SHARES, "a CPU's shares")?;
        c.elements(count, &mut self.shares, |c, share| {
            let mut task = (share.tgid, share.comm);
            if c.recent(Col::OthersShares, |known| &mut known.others, &mut task)? {
                c.narrow(Col::OthersNames, &mut task.0 .0)?;
                c.text(Text::Others, &mut task.1)?;
                to_new_front(&mut c.known().others, task);
            }
            (share.tgid, share.comm) = task;
            c.int(Col::OthersTime, &mut share.us)
        })?;
        c.int(Col::OthersTime, &mut self.rest_us)
    }

    fn weight(&self) -> usize {
        size_of_val(self) + self.shares.len() * size_of::<Share>()
    }
}

/// The ids of some threads of a process that is not recorded, all of which have the same name. Each of these threads
/// counts as if it had an event of kind [`Outsider`](crate::event::Outsider) at the same time.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Threads {
    /// The process of the unrecorded threads.
    pub tgid: Tgid,
    /// The common name of the unrecorded threads.
    pub comm: Comm,
    /// The ids of the unrecorded threads.
    pub tids: Vec<Tid>,
}

impl Threads {
    /// The largest number of threads that one event names.
    pub const MOST: usize = 4096;
}

impl Stored for Threads {
    fn fields<C: Codec>(&mut self, c: &mut C, _: Ktime) -> Step {
        c.narrow(Col::Threads, &mut self.tgid.0)?;
        c.text(Text::Threads, &mut self.comm)?;
        let len = self.tids.len();
        let count = c.count(Col::Threads, len, Threads::MOST, "a process's threads")?;
        let mut last = self.tgid.0;
        c.elements(count, &mut self.tids, |c, tid| {
            c.diff(Col::Threads, &mut tid.0, last)?;
            last = tid.0;
            Ok(())
        })
    }

    fn weight(&self) -> usize {
        size_of_val(self) + size_of_val(self.tids.as_slice())
    }
}
