//! The numbers of a trace's events. The writer counts them and puts them into the summary,
//! so that `tr info` need not read the events.

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
    /// `Watermark`.
    pub watermarks: u64,
    /// `Mark`.
    pub marks: u64,
    /// `Account`.
    pub accounts: u64,
    /// `Detached`.
    pub detached: u64,
    /// `Degraded`.
    pub degraded: u64,
    /// `End`.
    pub ends: u64,
    /// `Connect`.
    pub connects: u64,
    /// `Connected`.
    pub connected: u64,
    /// `Accepted`.
    pub accepted: u64,
    /// `Closed`.
    pub closed: u64,
    /// `Counters`.
    pub counters: u64,
    /// `SystemCalls`.
    pub system_calls: u64,
    /// `Block`.
    pub blocks: u64,
    /// `OomKill`.
    pub oom_kills: u64,
    /// `Reclaim`.
    pub reclaims: u64,
    /// `DnsQuery`.
    pub dns_queries: u64,
    /// `DnsAnswer`.
    pub dns_answers: u64,
    /// `DiskWait`.
    pub disk_waits: u64,
    /// `Module`.
    pub modules: u64,
    /// `Sample`.
    pub samples: u64,
    /// `Symbol`.
    pub symbols: u64,
    /// `SyncFile`.
    pub sync_files: u64,
    /// `Pinned`.
    pub pinned: u64,
}

impl Events {
    /// Each kind's name in `tr dump`, and its number, in the order of the summary.
    pub fn by_kind(&self) -> [(&'static str, u64); 36] {
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
            ("progress", self.watermarks),
            ("mark", self.marks),
            ("account", self.accounts),
            ("detached", self.detached),
            ("degraded", self.degraded),
            ("end", self.ends),
            ("connect", self.connects),
            ("connected", self.connected),
            ("accepted", self.accepted),
            ("closed", self.closed),
            ("counters", self.counters),
            ("system_calls", self.system_calls),
            ("block", self.blocks),
            ("oom_kill", self.oom_kills),
            ("reclaim", self.reclaims),
            ("dns_query", self.dns_queries),
            ("dns_answer", self.dns_answers),
            ("disk_wait", self.disk_waits),
            ("module", self.modules),
            ("sample", self.samples),
            ("symbol", self.symbols),
            ("sync_file", self.sync_files),
            ("pinned", self.pinned),
        ]
    }

    /// From the numbers of [`Events::by_kind`]; missing ones are 0.
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
            watermarks: at(13),
            marks: at(14),
            accounts: at(15),
            detached: at(16),
            degraded: at(17),
            ends: at(18),
            connects: at(19),
            connected: at(20),
            accepted: at(21),
            closed: at(22),
            counters: at(23),
            system_calls: at(24),
            blocks: at(25),
            oom_kills: at(26),
            reclaims: at(27),
            dns_queries: at(28),
            dns_answers: at(29),
            disk_waits: at(30),
            modules: at(31),
            samples: at(32),
            symbols: at(33),
            sync_files: at(34),
            pinned: at(35),
        }
    }

    /// The sum of all kinds.
    pub fn total(&self) -> u64 {
        let counts = self.by_kind().into_iter().map(|(_, count)| count);
        counts.fold(0, u64::saturating_add)
    }

    /// Counts one scheduling event.
    pub fn sched(&mut self, event: &SchedEvent) {
        match event.kind {
            SchedKind::Switch { .. } => self.switches += 1,
            SchedKind::Waking { new: false, .. } => self.wakings += 1,
            SchedKind::Waking { new: true, .. } => self.new_tasks += 1,
        }
    }

    /// Adds the numbers of `other`.
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
        self.watermarks += other.watermarks;
        self.marks += other.marks;
        self.accounts += other.accounts;
        self.detached += other.detached;
        self.degraded += other.degraded;
        self.ends += other.ends;
        self.connects += other.connects;
        self.connected += other.connected;
        self.accepted += other.accepted;
        self.closed += other.closed;
        self.counters += other.counters;
        self.system_calls += other.system_calls;
        self.blocks += other.blocks;
        self.oom_kills += other.oom_kills;
        self.reclaims += other.reclaims;
        self.dns_queries += other.dns_queries;
        self.dns_answers += other.dns_answers;
        self.disk_waits += other.disk_waits;
        self.modules += other.modules;
        self.samples += other.samples;
        self.symbols += other.symbols;
        self.sync_files += other.sync_files;
        self.pinned += other.pinned;
    }

    /// Counts one lifecycle event.
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
            LifeKind::Watermark => &mut self.watermarks,
            LifeKind::Mark(_) => &mut self.marks,
            LifeKind::Account(_) => &mut self.accounts,
            LifeKind::Detached(_) => &mut self.detached,
            LifeKind::Degraded(_) => &mut self.degraded,
            LifeKind::End(_) => &mut self.ends,
            LifeKind::Connect(_) => &mut self.connects,
            LifeKind::Connected(_) => &mut self.connected,
            LifeKind::Accepted(_) => &mut self.accepted,
            LifeKind::Closed(_) => &mut self.closed,
            LifeKind::Counters(_) => &mut self.counters,
            LifeKind::SystemCalls(_) => &mut self.system_calls,
            LifeKind::Block(_) => &mut self.blocks,
            LifeKind::OomKill(_) => &mut self.oom_kills,
            LifeKind::Reclaim(_) => &mut self.reclaims,
            LifeKind::DnsQuery(_) => &mut self.dns_queries,
            LifeKind::DnsAnswer(_) => &mut self.dns_answers,
            LifeKind::DiskWait(_) => &mut self.disk_waits,
            LifeKind::Module(_) => &mut self.modules,
            LifeKind::Sample(_) => &mut self.samples,
            LifeKind::Symbol(_) => &mut self.symbols,
            LifeKind::SyncFile(_) => &mut self.sync_files,
            LifeKind::Pinned(_) => &mut self.pinned,
        } += 1;
    }
}

/// The numbers in the summary of a complete trace.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Tally {
    /// Events by kind.
    pub events: Events,
    /// Frames that hold events.
    pub frames: u64,
    /// The largest step back in time inside one ring, in ns: the distance of an event's
    /// time from a larger one before it in its stream. The recorder's own events do not
    /// count: some describe the past.
    pub largest_inversion: u64,
    /// The longest [`CommitDelay`] in ns.
    pub commit_delay: u64,
    /// Lost events by stream, as far as their number is known.
    pub lost: BTreeMap<Stream, u64>,
    /// The suspends between the clocks' readings.
    pub suspends: Vec<Suspend>,
}

/// One or more suspends between two readings of the clocks. `CLOCK_MONOTONIC`, which
/// stamps all events, stops in a suspend; `CLOCK_BOOTTIME` does not. The recorder reads
/// both every ten seconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Suspend {
    /// The reading before.
    pub since: Ktime,
    /// The reading after.
    pub until: Ktime,
    /// The length of the suspends in ns.
    pub asleep: u64,
}

impl Suspend {
    /// The shortest suspend in ns. The recorder reads one clock after the other: if it is
    /// preempted in between, their distance is wrong by the length of the preemption.
    pub const LEAST: u64 = 100_000_000;

    /// The suspend between two readings (monotonic, boot) in sequence.
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

/// The longest commit delay that a trace proves: the time from an event's stamp to its
/// commit in the ring. Takes the frames in file order.
///
/// After a watermark at time T, every event committed before T is in an earlier frame. An
/// event in a later frame with a stamp before T was therefore committed after T. The frame
/// header has the smallest stamp, so no event is decoded for this.
#[derive(Clone, Copy, Debug, Default)]
pub struct CommitDelay {
    watermark: Ktime,
    longest: u64,
}

impl CommitDelay {
    /// Takes the next frame.
    pub fn frame(&mut self, frame: &FrameInfo) {
        if frame.events > 0 {
            self.block(frame.stream, frame.min);
        }
    }

    /// Takes the next frame's stream and smallest time.
    pub(crate) fn block(&mut self, stream: Stream, min: Ktime) {
        // The recorder stamps some of its events with times in the past.
        if stream != Stream::Recorder {
            self.longest = self.longest.max(self.watermark.since(min));
        }
    }

    /// Takes an event of the recorder's stream.
    pub fn event(&mut self, event: &LifeEvent) {
        if event.kind == LifeKind::Watermark {
            self.watermark = self.watermark.max(event.time);
        }
    }

    /// The longest delay so far, in ns.
    pub fn longest(&self) -> u64 {
        self.longest
    }
}

/// Makes the [`Tally`] of a trace from its blocks in file order, except for the events by
/// kind.
#[derive(Debug)]
pub struct Counting {
    tally: Tally,
    delay: CommitDelay,
    /// The largest time of each ring so far.
    largest: BTreeMap<Stream, u64>,
    /// The last reading of the clocks.
    clocks: (Ktime, u64),
}

impl Counting {
    /// For a trace that starts with these clocks.
    pub fn new(start: Ktime, clock: Clock) -> Counting {
        Counting {
            tally: Tally::default(),
            delay: CommitDelay::default(),
            largest: BTreeMap::new(),
            clocks: (start, clock.boot),
        }
    }

    /// Takes a block of a CPU's stream.
    pub fn sched(&mut self, stream: Stream, times: &[u64]) {
        self.block(stream, times.iter().copied());
        let min = times.iter().copied().min().unwrap_or(0);
        self.delay.block(stream, Ktime(min));
    }

    /// Takes a block of another stream, and its smallest time.
    pub fn life(&mut self, stream: Stream, events: &[LifeEvent], min: u64) {
        let of_ring = events.iter().filter(|event| event.kind.is_from_a_ring());
        self.block(stream, of_ring.map(|event| event.time.0));
        self.delay.block(stream, Ktime(min));
        for event in events {
            if stream == Stream::Recorder {
                self.delay.event(event);
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
        let largest = self.largest.entry(stream).or_default();
        let (mut most, mut back) = (*largest, 0);
        for time in times {
            back = back.max(most.saturating_sub(time));
            most = most.max(time);
        }
        *largest = most;
        self.tally.largest_inversion = self.tally.largest_inversion.max(back);
    }

    fn reading(&mut self, now: (Ktime, u64)) {
        let before = std::mem::replace(&mut self.clocks, now);
        self.tally.suspends.extend(Suspend::between(before, now));
    }

    /// The tally of a trace that ends with these clocks.
    pub fn finish(mut self, events: Events, end: Ktime, clock: Clock) -> Tally {
        self.reading((end, clock.boot));
        Tally {
            events,
            commit_delay: self.delay.longest(),
            ..self.tally
        }
    }
}
