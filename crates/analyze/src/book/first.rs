//! What goes on when a leg begins: how it ends is noted in the leg, when it began is known
//! to the book before.

use tr_format::event::Ktime;

use super::{Task, TaskIx};
use crate::model::OffCpu;
use crate::tasks::{Bucket, Wait};
use crate::timeline::By;

/// What goes on when a leg begins, and what has become of it.
#[derive(Clone, Debug, Default)]
pub struct First {
    /// Where the time of its state belongs, now that this is over.
    pub(super) bucket: Option<Bucket>,
    /// The stretch off CPU that it was in, now that this is over.
    pub(super) off_cpu: Option<Back>,
    /// Something depends on what was before.
    pub(super) unsure: bool,
}

/// How a stretch off CPU has ended.
#[derive(Clone, Copy, Debug)]
pub struct Back {
    until: Ktime,
    /// `None`: nobody has woken it.
    pub(super) by: Option<By>,
    /// As [`OffCpu::censored`], but for its beginning.
    cut: bool,
    /// An event of the task had been seen by then.
    seen: bool,
}

impl Task {
    /// It has had some time. Of the first in a leg that says where the time belongs that it
    /// spent before the leg in the state in which it was when that began. Whether it was
    /// the first.
    pub(super) fn note_first(&mut self) -> bool {
        if self
            .first
            .as_ref()
            .is_none_or(|first| first.bucket.is_some())
        {
            return false;
        }
        let sole = self.sole_bucket();
        if let Some(first) = &mut self.first {
            first.bucket = Some(sole);
        }
        true
    }

    /// The one bucket that it has had any time in.
    fn sole_bucket(&self) -> Bucket {
        let (times, causes) = (&self.times, &self.causes);
        match () {
            () if times.on_cpu > 0 => Bucket::OnCpu(None),
            () if times.run_queue > 0 => Bucket::RunQueue {
                preempted: causes.preempted > 0,
            },
            () if causes.stopped > 0 => Bucket::Wait(Wait::Stopped),
            () if times.sleep > 0 => Bucket::Wait(Wait::Sleep),
            () if causes.io > 0 => Bucket::Wait(Wait::Io),
            () if causes.vfork > 0 => Bucket::Wait(Wait::Vfork),
            () if times.blocked > 0 => Bucket::Wait(Wait::Blocked),
            () => Bucket::Unknown,
        }
    }

    /// A stretch off CPU is over that went on when the leg began.
    #[cold]
    pub(super) fn note_back(&mut self, until: Ktime, cut: bool) {
        let (by, seen) = (self.woken_by(), self.seen);
        if let Some(first) = &mut self.first {
            first.off_cpu = Some(Back {
                until,
                by,
                cut,
                seen,
            });
        }
    }

    /// Its longest stretch was ended by `by`.
    pub(super) fn note_waker(&mut self, by: Option<By>) {
        if let (Some(first), Some(By::BEFORE)) = (&mut self.first, by) {
            first.unsure = true;
        }
    }

    /// Ends the stretch off CPU in which the leg before has left it.
    pub(super) fn come_back(&mut self, start: Ktime, back: Back, by: impl Fn(By) -> By) {
        let Some(since) = self.off_since.take() else {
            return;
        };
        let by = back.by.map(|late| match late {
            By::BEFORE => self.by,
            late => by(late),
        });
        let from = since.max(start);
        let stretch = OffCpu {
            length: back.until.since(from),
            since: from,
            waker: None,
            censored: since < start || self.started_before && !back.seen || back.cut,
        };
        let waker = by.and_then(By::place).map(TaskIx);
        self.keep_longest(stretch, waker);
    }

    pub(super) fn keep_longest(&mut self, stretch: OffCpu, waker: Option<TaskIx>) {
        if self.is_longest(stretch.length) {
            self.max_off_cpu = Some((stretch, waker));
        }
    }
}
