//! The kinds of events about the recording itself (losses, clocks, marks, missing facts), with their fields as
//! stored.

use serde::{Deserialize, Serialize};

use crate::codec::{Codec, Col, Step, Stored};
use crate::ids::{Ktime, Stream, Tid};
use crate::{show, Fault};

/// Some events of one stream, between the event's time and `until`, could not be recorded.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Lost {
    /// The stream of events (of a CPU, for example) that has lost events.
    #[serde(serialize_with = "show::stream")]
    pub stream: Stream,
    /// The number of lost events, if it is known.
    pub count: Option<u64>,
    /// The end of the time in which events of the stream were lost.
    pub until: Ktime,
    /// The reason why the events of this stream were lost.
    pub cause: LossCause,
}

impl Stored for Lost {
    fn fields<C: Codec>(&mut self, c: &mut C, time: Ktime) -> Step {
        let mut number = self.stream.stored().into();
        c.int(Col::LostStream, &mut number)?;
        self.stream = Stream::of_stored(number)
            .ok_or(Fault::Content("a number does not fit in its field"))?;
        let mut cause = self.cause as u8;
        c.byte(Col::LostStream, &mut cause)?;
        self.cause = *LossCause::ALL
            .get(usize::from(cause))
            .ok_or(Fault::Content("unknown cause of a loss"))?;
        c.optional(Col::LostCount, &mut self.count)?;
        c.change(Col::LostSpan, &mut self.until.0, time.0)
    }
}

/// The reason why events of a recording were lost.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize)]
#[non_exhaustive]
pub enum LossCause {
    /// Events were lost because a buffer between the kernel and the recorder was full: the slots of a CPU, or the ring
    /// of lifecycle events.
    #[default]
    BufferFull,
    /// Events were lost because the kernel skipped a BPF program that was already running on the same CPU.
    Recursion,
    /// Events were lost because the recorder could not write its output (disk full, closed pipe).
    Output,
    /// Events were lost because a task id was too large for the set of followed tasks, or because a process
    /// that joined the followed cgroup had too many threads.
    FollowSet,
    /// Events were lost because a frame of the trace is damaged. Readers add this cause; it is never stored.
    Damage,
}

impl LossCause {
    /// All causes of lost events. The position of a cause in this list is its number.
    const ALL: [LossCause; 5] = [
        LossCause::BufferFull,
        LossCause::Recursion,
        LossCause::Output,
        LossCause::FollowSet,
        LossCause::Damage,
    ];
}

/// The machine's clocks, read at one moment. The time of the event itself is by `CLOCK_MONOTONIC`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Clock {
    /// The reading of `CLOCK_BOOTTIME` in ns. This clock continues while the machine is suspended; `CLOCK_MONOTONIC`
    /// does not.
    pub boot: u64,
    /// The reading of `CLOCK_REALTIME` in ns since 1970; 0 if it was not recorded.
    pub real: u64,
}

impl Stored for Clock {
    fn fields<C: Codec>(&mut self, c: &mut C, _: Ktime) -> Step {
        c.int(Col::Boot, &mut self.boot)?;
        c.int(Col::Real, &mut self.real)
    }
}

/// A mark that a program has sent to the recorder: a named moment, or the beginning or end of a named span. The
/// event's time is the time at which the recorder read the mark.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Mark {
    /// The name of the moment or span that is marked.
    #[serde(serialize_with = "show::text")]
    pub name: Box<[u8]>,
    /// Whether the mark names a moment, or the beginning or the end of a span.
    pub point: Point,
    /// The age of the mark in ns when the recorder read it: the program had set the mark this long before the
    /// event's time.
    pub ago: u64,
    /// The kind of the marked span, for example `test`; empty if it is not given.
    #[serde(rename = "mark_kind", serialize_with = "show::given")]
    pub kind: Box<[u8]>,
    /// The result of the marked span, for example `failed`, if the mark is its end; empty if it is not given.
    #[serde(serialize_with = "show::given")]
    pub result: Box<[u8]>,
    /// An id that distinguishes marked spans with equal names; empty if it is not given.
    #[serde(serialize_with = "show::given")]
    pub id: Box<[u8]>,
    /// The id of the process that set the mark (a named moment or span), in the process's own pid namespace.
    pub pid: Option<Tid>,
    /// The id of the thread that set the mark (a named moment or span), in the thread's own pid namespace.
    pub tid: Option<Tid>,
}

impl Mark {
    /// The number of the event kind for marks that have only a name (of a moment). Other marks have the number `MORE`.
    pub(crate) const PLAIN: u8 = 12;
    pub(crate) const MORE: u8 = 17;

    /// Whether the mark has only a name: the mark names a moment and no span, and all other fields are empty.
    pub(crate) fn is_plain(&self) -> bool {
        let plain = Mark {
            name: self.name.clone(),
            ..Mark::default()
        };
        *self == plain
    }
}

impl Stored for Mark {
    fn fields<C: Codec>(&mut self, c: &mut C, _: Ktime) -> Step {
        if c.known().kind != Mark::MORE {
            return c.path(&mut self.name);
        }
        let (mut end, mut begin) = (self.point == Point::End, self.point == Point::Begin);
        let (mut has_pid, mut has_tid) = (self.pid.is_some(), self.tid.is_some());
        let flags = [&mut begin, &mut end, &mut has_pid, &mut has_tid];
        c.flags(Col::MarkPoint, flags, "unknown fields of a mark")?;
        self.point = match (begin, end) {
            (false, false) => Point::Moment,
            (true, false) => Point::Begin,
            (false, true) => Point::End,
            (true, true) => return Err(Fault::Content("unknown point of a mark")),
        };
        c.wide(Col::MarkAgo, &mut self.ago)?;
        for (has, task) in [(has_pid, &mut self.pid), (has_tid, &mut self.tid)] {
            if has {
                c.narrow(Col::MarkTask, &mut task.get_or_insert_default().0)?;
            }
        }
        for text in [
            &mut self.name,
            &mut self.kind,
            &mut self.result,
            &mut self.id,
        ] {
            c.path(text)?;
        }
        Ok(())
    }

    fn weight(&self) -> usize {
        let texts = [&self.name, &self.kind, &self.result, &self.id];
        texts.iter().map(|text| text.len()).sum()
    }
}

/// The thing that a [`Mark`] stands for: a moment, or the beginning or end of a span.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Point {
    /// The mark stands for a moment, not for a span.
    #[default]
    Moment,
    /// The mark stands for the beginning of a span.
    Begin,
    /// The mark stands for the end of the span with the same name, id and thread.
    End,
}

/// From the event's time on, the recording lacks facts that its metadata declares as recorded.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Degraded {
    /// The facts that are missing from now on, as text for the user.
    #[serde(serialize_with = "show::text")]
    pub what: Box<[u8]>,
}

impl Stored for Degraded {
    fn fields<C: Codec>(&mut self, c: &mut C, _: Ktime) -> Step {
        c.path(&mut self.what)
    }

    fn weight(&self) -> usize {
        self.what.len()
    }
}
