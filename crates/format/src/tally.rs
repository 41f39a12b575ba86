//! What a trace holds, in numbers: counted while it is written, and put into its
//! summary, so that nobody has to read the events for it.

use std::collections::BTreeMap;

use crate::event::{Clock, Ktime, LifeEvent, LifeKind, SchedEvent, SchedKind, Stream};
use crate::frame::FrameInfo;

/// Numbers of events by kind.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Events {
    /// `Switch`.
    pub switches: u64,
    /// `Waking` of a task that existed.
    pub wakings: u64,
    /// `Waking` of a new task.
    pub new_tasks: u64,
    /// `Fork`.
    pub forks: u64,
    /// `Exec`.
    pub execs: u64,
    /// `Exit`.
    pub exits: u64,
    /// `Final`.
    pub finals: u64,
    /// `Rename`.
    pub renames: u64,
    /// `CgroupPath`.
    pub cgroup_paths: u64,
    /// `CgroupMove`.
    pub cgroup_moves: u64,
    /// `Snapshot`.
    pub snapshots: u64,
    /// `Lost`: records, not lost events.
    pub losses: u64,
    /// `Clock`.
    pub clocks: u64,
    /// `Progress`.
    pub progress: u64,
    /// `Mark`.
    pub marks: u64,
}

impl Events {
    /// Each kind's name and number, in the order in which the summary has them.
    pub fn by_kind(&self) -> [(&'static str, u64); 15] {
        [
            ("switch", self.switches),
            ("waking", self.wakings),
            ("wakeup_new", self.new_tasks),
            ("fork", self.forks),
            ("exec", self.execs),
            ("exit", self.exits),
            ("final", self.finals),
            ("rename", self.renames),
            ("cgroup_path", self.cgroup_paths),
            ("cgroup_move", self.cgroup_moves),
            ("snapshot", self.snapshots),
            ("lost", self.losses),
            ("clock", self.clocks),
            ("progress", self.progress),
            ("mark", self.marks),
        ]
    }

    /// The reverse of [`Events::by_kind`]; what is not in the list is 0.
    pub(crate) fn of(list: &[u64]) -> Events {
        let at = |place: usize| list.get(place).copied().unwrap_or(0);
        Events {
            switches: at(0),
            wakings: at(1),
            new_tasks: at(2),
            forks: at(3),
            execs: at(4),
            exits: at(5),
            finals: at(6),
            renames: at(7),
            cgroup_paths: at(8),
            cgroup_moves: at(9),
            snapshots: at(10),
            losses: at(11),
            clocks: at(12),
            progress: at(13),
            marks: at(14),
        }
    }

    /// All together.
    pub fn total(&self) -> u64 {
        let counts = self.by_kind().into_iter().map(|(_, count)| count);
        counts.fold(0, u64::saturating_add)
    }

    /// Counts a scheduling event.
    pub fn sched(&mut self, event: &SchedEvent) {
        match event.kind {
            SchedKind::Switch { .. } => self.switches += 1,
            SchedKind::Waking { new: false, .. } => self.wakings += 1,
            SchedKind::Waking { new: true, .. } => self.new_tasks += 1,
        }
    }

    /// Adds others to them.
    pub fn add(&mut self, other: &Events) {
        self.switches += other.switches;
        self.wakings += other.wakings;
        self.new_tasks += other.new_tasks;
        self.forks += other.forks;
        self.execs += other.execs;
        self.exits += other.exits;
        self.finals += other.finals;
        self.renames += other.renames;
        self.cgroup_paths += other.cgroup_paths;
        self.cgroup_moves += other.cgroup_moves;
        self.snapshots += other.snapshots;
        self.losses += other.losses;
        self.clocks += other.clocks;
        self.progress += other.progress;
        self.marks += other.marks;
    }

    /// Counts another event.
    pub fn life(&mut self, event: &LifeEvent) {
        *match event.kind {
            LifeKind::Fork(_) => &mut self.forks,
            LifeKind::Exec(_) => &mut self.execs,
            LifeKind::Exit(_) => &mut self.exits,
            LifeKind::Final(_) => &mut self.finals,
            LifeKind::Rename(_) => &mut self.renames,
            LifeKind::CgroupPath(_) => &mut self.cgroup_paths,
            LifeKind::CgroupMove(_) => &mut self.cgroup_moves,
            LifeKind::Snapshot(_) => &mut self.snapshots,
            LifeKind::Lost(_) => &mut self.losses,
            LifeKind::Clock(_) => &mut self.clocks,
            LifeKind::Progress => &mut self.progress,
            LifeKind::Mark(_) => &mut self.marks,
        } += 1;
    }
}

/// What a finished trace holds.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Tally {
    /// Events by kind.
    pub events: Events,
    /// Frames that hold events.
    pub frames: u64,
    /// The largest step back in time inside one ring, in ns: how far an event's
    /// time is before the largest one before it in its stream. What the recorder
    /// itself says tells of the past by nature and is not counted.
    pub largest_inversion: u64,
    /// The longest delay of a write that the frames prove, in ns: see [`Lateness`].
    pub latest_write: u64,
    /// Events that were lost, as far as it is known how many, of each stream that
    /// has lost some.
    pub lost: BTreeMap<Stream, u64>,
    /// Suspends of the machine.
    pub suspends: Vec<Suspend>,
}

/// One suspend, or several, between two readings of the clocks. All events are
/// stamped by `CLOCK_MONOTONIC`, which stands still then; `CLOCK_BOOTTIME` does not,
/// and the recorder reads both every ten seconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Suspend {
    /// The reading before.
    pub since: Ktime,
    /// The reading after.
    pub until: Ktime,
    /// How long the machine was suspended in between, in ns.
    pub asleep: u64,
}

impl Suspend {
    /// The recorder reads one clock after the other, so that their distance is off
    /// by as long as it was kept from the CPU in between. A suspend takes longer.
    pub const LEAST: u64 = 100_000_000;

    /// What two readings of the clocks (monotonic, boot), one after the other, tell.
    pub fn between(before: (Ktime, u64), after: (Ktime, u64)) -> Option<Suspend> {
        let span = after.0.since(before.0);
        let asleep = after.1.saturating_sub(before.1).saturating_sub(span);
        (asleep >= Suspend::LEAST).then_some(Suspend {
            since: before.0,
            until: after.0,
            asleep,
        })
    }
}

/// How late events were written: what a trace proves of the time between an event's
/// stamp and its place in the ring. Goes through the frames in the order of the file.
///
/// A mark of progress at time T says that every ring was emptied after T, and the
/// frames before the mark hold what was found. An event in a later frame that is
/// stamped before T was therefore not to be read at T. The smallest time of a frame is
/// in its header, so this costs nothing.
#[derive(Clone, Copy, Debug, Default)]
pub struct Lateness {
    progress: Ktime,
    latest: u64,
}

impl Lateness {
    /// The next frame.
    pub fn frame(&mut self, frame: &FrameInfo) {
        if frame.events > 0 {
            self.block(frame.stream, frame.min);
        }
    }

    /// The next frame: of a stream, and its smallest time.
    pub(crate) fn block(&mut self, stream: Stream, min: Ktime) {
        // What the recorder says itself is of the past by nature.
        if stream != Stream::Recorder {
            self.latest = self.latest.max(self.progress.since(min));
        }
    }

    /// An event of the frame, when that is one of the recorder's.
    pub fn word(&mut self, event: &LifeEvent) {
        if event.kind == LifeKind::Progress {
            self.progress = self.progress.max(event.time);
        }
    }

    /// The longest delay that is proved so far, in ns.
    pub fn latest(&self) -> u64 {
        self.latest
    }
}

/// Makes a [`Tally`] of the blocks of a trace, in the order of the file. The events are
/// counted elsewhere.
#[derive(Debug)]
pub(crate) struct Counting {
    tally: Tally,
    late: Lateness,
    /// The largest time of each ring so far.
    latest: BTreeMap<Stream, u64>,
    /// The last reading of the clocks.
    clocks: (Ktime, u64),
}

impl Counting {
    /// Of a trace with these clocks at its start.
    pub fn new(start: Ktime, clock: Clock) -> Counting {
        Counting {
            tally: Tally::default(),
            late: Lateness::default(),
            latest: BTreeMap::new(),
            clocks: (start, clock.boot),
        }
    }

    /// A block of a CPU's stream.
    pub fn sched(&mut self, stream: Stream, times: &[u64]) {
        self.block(stream, times.iter().copied());
        let min = times.iter().copied().min().unwrap_or(0);
        self.late.block(stream, Ktime(min));
    }

    /// A block of another stream, and its smallest time.
    pub fn life(&mut self, stream: Stream, events: &[LifeEvent], min: u64) {
        let of_ring = events.iter().filter(|event| event.kind.is_from_a_ring());
        self.block(stream, of_ring.map(|event| event.time.0));
        self.late.block(stream, Ktime(min));
        for event in events {
            if stream == Stream::Recorder {
                self.late.word(event);
            }
            match &event.kind {
                LifeKind::Lost(lost) => {
                    let sum = self.tally.lost.entry(lost.stream).or_default();
                    *sum = sum.saturating_add(lost.count.unwrap_or(0));
                }
                LifeKind::Clock(clock) if stream == Stream::Recorder => {
                    self.reading((event.time, clock.boot));
                }
                _ => {}
            }
        }
    }

    fn block(&mut self, stream: Stream, times: impl Iterator<Item = u64>) {
        self.tally.frames += 1;
        let latest = self.latest.entry(stream).or_default();
        let (mut most, mut back) = (*latest, 0);
        for time in times {
            back = back.max(most.saturating_sub(time));
            most = most.max(time);
        }
        *latest = most;
        self.tally.largest_inversion = self.tally.largest_inversion.max(back);
    }

    fn reading(&mut self, now: (Ktime, u64)) {
        let before = std::mem::replace(&mut self.clocks, now);
        self.tally.suspends.extend(Suspend::between(before, now));
    }

    /// All of it, of a trace that ends with these clocks.
    pub fn finish(mut self, events: Events, end: Ktime, clock: Clock) -> Tally {
        self.reading((end, clock.boot));
        Tally {
            events,
            latest_write: self.late.latest(),
            ..self.tally
        }
    }
}
