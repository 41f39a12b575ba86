//! Events that a thread of the recorder makes and that wait for the writer.

use tr_format::event::{Ktime, LifeEvent, LifeKind, LossCause, Lost, Stream, Tgid, Tid};
use tr_format::Error;

use super::{recorder, Drained, Take};

/// Bytes of events that may wait.
const MOST: usize = 16 << 20;

/// The events that no batch has taken yet.
#[derive(Debug, Default)]
pub struct Waiting {
    events: Vec<LifeEvent>,
    bytes: usize,
    /// Events that found no room: the first, the last, their number.
    lost: Option<(Ktime, Ktime, u64)>,
}

impl Waiting {
    /// Adds an event, if there is room.
    pub fn push(&mut self, time: Ktime, kind: LifeKind) {
        let strings = match &kind {
            LifeKind::Exec(exec) => exec.argv.bytes.len() + exec.filename.len(),
            LifeKind::Degraded(degraded) => degraded.what.len(),
            _ => 0,
        };
        let size = size_of::<LifeEvent>() + strings;
        if self.bytes + size > MOST {
            let (_, until, count) = self.lost.get_or_insert((time, time, 0));
            (*until, *count) = (time, *count + 1);
            return;
        }
        self.report_lost();
        self.bytes += size;
        self.events.push(recorder(time, kind));
    }

    /// Names another task as the parent of a forked one, if that fork still waits.
    pub fn correct_fork(&mut self, child: Tid, parent: Tid, process: Tgid) {
        let mut events = self.events.iter_mut().rev();
        let fork = events.find_map(|event| match &mut event.kind {
            LifeKind::Fork(fork) if fork.tid == child => Some(fork),
            _ => None,
        });
        if let Some(fork) = fork {
            (fork.parent_tid, fork.parent_tgid) = (parent, process);
        }
    }

    fn report_lost(&mut self) {
        if let Some((since, until, count)) = self.lost.take() {
            let lost = Lost {
                stream: Stream::Lifecycle,
                count: Some(count),
                until,
                cause: LossCause::Output,
            };
            self.events.push(recorder(since, LifeKind::Lost(lost)));
        }
    }

    /// The memory of the events, in bytes.
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    pub fn take(&mut self) -> Events {
        self.report_lost();
        let Waiting { events, bytes, .. } = std::mem::take(self);
        Events { events, bytes }
    }
}

/// Events on their way to the writer.
pub struct Events {
    events: Vec<LifeEvent>,
    bytes: usize,
}

impl Drained for Events {
    fn bytes(&self) -> usize {
        self.bytes
    }

    fn write(&self, _near: Ktime, to: &mut dyn Take) -> Result<(), Error> {
        for event in &self.events {
            let stream = match event.kind {
                LifeKind::Lost(_) | LifeKind::Snapshot(_) => Stream::Recorder,
                _ => Stream::Lifecycle,
            };
            to.life(stream, event.clone())?;
        }
        Ok(())
    }
}
