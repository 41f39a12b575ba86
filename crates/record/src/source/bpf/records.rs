//! Collects the records from the buffers (slots and rings) of the BPF programs on the recorder's main thread. This
//! thread decodes only what it needs at once, for example whether COMMAND's process has ended.

use std::borrow::Cow;
use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use tr_bpf::{wire, Record};
use tr_format::event::{CpuId, Ktime, LifeEvent, LifeKind, Stream, Tid};
use tr_format::Error;
use zerocopy::{FromBytes, IntoBytes};

use super::convert;
use super::maps::Maps;
use super::others::{Joined, NamedThreads};
use crate::mappings::Mapped;
use crate::source::{Drained, Take};

/// The records of the BPF programs that were drained from the programs' buffers (slots and rings) for one message to
/// the writing thread.
#[derive(Debug, Default)]
pub struct Records {
    /// The scheduling events of each CPU, indexed by the CPU's number. The events are in the order in which the CPU has
    /// written them.
    pub sched: Vec<Vec<wire::Slot>>,
    /// The losses of scheduling events that were reported in the buffers (slots) of the CPUs, with the CPU of each
    /// loss.
    pub lost: Vec<(CpuId, wire::Lost)>,
    /// The drained records of lifecycle events, each after its length in bytes (u32).
    pub life: Vec<u8>,
    own: Vec<LifeEvent>,
    mapped: Vec<Mapped>,
    /// The memory of all drained records, in bytes.
    bytes: usize,
    /// Whether a container's runtime was executed. The writing thread then has to read the container's name from the
    /// runtime's files soon.
    urgent: bool,
    /// The size of a page of memory in bytes.
    page: u32,
}

impl Records {
    fn of(page: u32) -> Records {
        Records {
            page,
            ..Records::default()
        }
    }

    fn push(&mut self, record: Record<'_>) {
        match record {
            Record::Sched(cpu, slot) => {
                let at = usize::from(cpu);
                if self.sched.len() <= at {
                    self.sched.resize_with(at + 1, Vec::new);
                }
                if let Some(slots) = self.sched.get_mut(at) {
                    slots.push(slot);
                    self.bytes += size_of::<wire::Slot>();
                }
            }
            Record::Lost(cpu, lost) => self.lost.push((CpuId(cpu), lost)),
            Record::Life(record) => {
                let record = used_part(record);
                let Ok(len) = u32::try_from(record.len()) else {
                    return;
                };
                self.urgent |= is_runtime(record);
                self.life.extend_from_slice(&len.to_ne_bytes());
                self.life.extend_from_slice(record);
                self.bytes += record.len() + 4;
            }
        }
    }

    /// The drained records of lifecycle events, one by one.
    pub fn life_records(&self) -> impl Iterator<Item = &[u8]> {
        let mut rest = self.life.as_slice();
        std::iter::from_fn(move || {
            let (len, tail) = rest.split_first_chunk::<4>()?;
            let (record, tail) = tail.split_at_checked(u32::from_ne_bytes(*len) as usize)?;
            rest = tail;
            Some(record)
        })
    }
}

impl Drained for Records {
    fn bytes(&self) -> usize {
        self.bytes
    }

    fn write(&self, near: Ktime, to: &mut dyn Take) -> Result<(), Error> {
        for (cpu, events) in self.sched.iter().enumerate() {
            let Ok(cpu) = u16::try_from(cpu) else { break };
            let events = events.iter().map(|slot| slot.event(near.0));
            for event in events.filter_map(|event| convert::sched(&event)) {
                to.sched(CpuId(cpu), event)?;
            }
        }
        for mapped in &self.mapped {
            to.mapped(mapped);
        }
        let mut lives = LifeWriter::new(near, self.page);
        for record in self.life_records() {
            lives.write(record, to)?;
        }
        lives.finish(to)?;
        for event in &self.own {
            to.life(Stream::Recorder, event.clone())?;
        }
        for (cpu, lost) in &self.lost {
            to.life(Stream::Recorder, convert::lost(*cpu, lost))?;
        }
        Ok(())
    }
}

/// Passes the events in the drained records of lifecycle events on to the writer. Some events are complete only with
/// later records.
struct LifeWriter {
    /// The size of a page of memory in bytes.
    page: u64,
    /// The time of the latest event so far.
    last: Ktime,
    dropped: Dropped,
    /// The working directories of tasks whose records of an exec are still to come.
    directories: HashMap<Tid, Arc<[u8]>>,
    joined: Joined,
    threads: NamedThreads,
}

impl LifeWriter {
    fn new(near: Ktime, page: u32) -> LifeWriter {
        LifeWriter {
            page: u64::from(page),
            last: near,
            dropped: Dropped::default(),
            directories: HashMap::new(),
            joined: Joined::default(),
            threads: NamedThreads::default(),
        }
    }

    fn write(&mut self, record: &[u8], to: &mut dyn Take) -> Result<(), Error> {
        match convert::kind(record) {
            wire::Kind::LIFE_SAMPLE => {
                if let Some(sample) = convert::stack(record) {
                    to.stack(&sample)?;
                }
            }
            wire::Kind::LIFE_OTHERS => {
                let others = convert::parse(record);
                if let Some(event) = others.and_then(|others| self.joined.take(&others)) {
                    to.life(Stream::Recorder, event)?;
                }
            }
            wire::Kind::LIFE_DIRECTORY => self.directories.extend(convert::directory(record)),
            wire::Kind::LIFE_CLOCK => {
                if let Some(clock) = convert::parse(record) {
                    to.clock_of(convert::clock(&clock));
                }
            }
            _ => {
                for event in convert::life(record, self.page) {
                    self.event(event, record, to)?;
                }
            }
        }
        Ok(())
    }

    /// Passes the event in a record on, or keeps it until later records complete it.
    fn event(
        &mut self,
        mut event: LifeEvent,
        record: &[u8],
        to: &mut dyn Take,
    ) -> Result<(), Error> {
        match &mut event.kind {
            LifeKind::Exec(exec) => {
                exec.directory = self.directories.remove(&exec.tid).unwrap_or_default();
                if let Some(runner) = convert::runner(record) {
                    to.runs(runner);
                }
            }
            LifeKind::Account(account) => {
                self.dropped.tids.insert(account.tid);
                self.dropped.events.push(event);
                return Ok(());
            }
            LifeKind::Fork(fork) if self.dropped.tids.contains(&fork.tid) => {
                self.dropped.write(self.last.min(event.time), to)?;
            }
            LifeKind::Outsider(task) if self.threads.take(event.time, task) => return Ok(()),
            _ => {}
        }
        self.last = self.last.max(event.time);
        to.life(stream(&event.kind), event)
    }

    /// Passes on the events that were kept because later records could have completed them.
    fn finish(mut self, to: &mut dyn Take) -> Result<(), Error> {
        self.dropped.write(self.last, to)?;
        for event in self.joined.finish().chain(self.threads.finish()) {
            to.life(Stream::Recorder, event)?;
        }
        Ok(())
    }
}

/// The stream in which a lifecycle event is stored. These are stored in the recorder's own stream: losses of events for
/// which a buffer of the BPF programs had no room, snapshots, and events about containers and servers.
fn stream(kind: &LifeKind) -> Stream {
    match kind {
        LifeKind::Lost(_)
        | LifeKind::Snapshot(_)
        | LifeKind::Container(_)
        | LifeKind::Server(_) => Stream::Recorder,
        _ => Stream::Lifecycle,
    }
}

/// The last totals (CPU time and the like) of ended tasks that the kernel has freed. All of them get one common time,
/// because the exact time of each does not matter and would take a third of the event's bytes. The common time is
/// chosen before any of the tasks' tids is used again.
#[derive(Default)]
struct Dropped {
    events: Vec<LifeEvent>,
    tids: HashSet<Tid>,
}

impl Dropped {
    fn write(&mut self, time: Ktime, to: &mut dyn Take) -> Result<(), Error> {
        self.tids.clear();
        for event in self.events.drain(..) {
            to.life(Stream::Lifecycle, LifeEvent { time, ..event })?;
        }
        Ok(())
    }
}

/// Whether a record of the BPF programs is about the exec of a container's runtime.
fn is_runtime(record: &[u8]) -> bool {
    let exec = convert::parse::<wire::Exec>(record);
    exec.is_some_and(|exec| exec.head.kind() == wire::Kind::LIFE_EXEC && exec.runtime != 0)
}

/// The used part of a record of the BPF programs: the record without the unused end of its area for arguments, names
/// or frames.
fn used_part(record: &[u8]) -> &[u8] {
    let (tail, used) = match convert::kind(record) {
        wire::Kind::LIFE_EXEC => match wire::Exec::read_from_prefix(record) {
            Ok((exec, tail)) => (
                tail,
                u64::from(exec.filename_area) + u64::from(exec.argv_len),
            ),
            Err(_) => return record,
        },
        wire::Kind::LIFE_JOIN => match wire::Join::read_from_prefix(record) {
            Ok((join, tail)) => (tail, u64::from(join.argv_len)),
            Err(_) => return record,
        },
        wire::Kind::LIFE_SAMPLE => match wire::Sample::read_from_prefix(record) {
            Ok((sample, tail)) => (tail, u64::try_from(sample.user_len).unwrap_or(0)),
            Err(_) => return record,
        },
        wire::Kind::LIFE_DIRECTORY => {
            return convert::used_part_of_directory(record).unwrap_or(record);
        }
        _ => return record,
    };
    let used = usize::try_from(used).map_or(tail.len(), |used| used.min(tail.len()));
    record
        .get(..record.len() - tail.len() + used)
        .unwrap_or(record)
}

/// Detects the end of COMMAND's process, which is the last switch-out of each of its threads. A light recording
/// (`--light`) has no switches, so there it detects the exit of the process, and the last totals of CPU time of all
/// other ended tasks.
#[derive(Debug, Default)]
pub struct RootWatch {
    tgid: u32,
    exiting: HashSet<u32>,
    group_dead: bool,
    /// The tasks that have ended and whose data the kernel has not freed yet, by tid. Used only in a recording with
    /// `--light`.
    ended: HashMap<u32, wire::End>,
}

impl RootWatch {
    /// Creates a watch of COMMAND's process, which has the id `tgid` in the first pid namespace.
    pub fn new(tgid: u32) -> RootWatch {
        RootWatch {
            tgid,
            ..RootWatch::default()
        }
    }

    fn done(&self) -> bool {
        // COMMAND's main thread is not waited for, because the kernel keeps that thread until the recorder has
        // COMMAND's status.
        let others = self.ended.keys().any(|tid| *tid != self.tgid);
        self.group_dead && self.exiting.is_empty() && !others
    }

    fn see(&mut self, record: &[u8]) {
        match convert::kind(record) {
            wire::Kind::LIFE_EXIT => {
                let exit = convert::parse::<wire::Exit>(record);
                if let Some(exit) = exit.filter(|exit| exit.tgid == self.tgid) {
                    self.exiting.insert(exit.tid);
                    self.group_dead |= exit.group_dead != 0;
                }
            }
            wire::Kind::LIFE_FINAL if !self.exiting.is_empty() => {
                if let Some(last) = convert::parse::<wire::Final>(record) {
                    self.exiting.remove(&last.tid);
                }
            }
            wire::Kind::LIFE_END => {
                if let Some(end) = convert::parse::<wire::End>(record) {
                    self.group_dead |= end.total.tgid == self.tgid && end.group_dead != 0;
                    self.ended.insert(end.total.tid, end);
                }
            }
            wire::Kind::LIFE_EXEC if !self.ended.is_empty() => {
                // If a thread other than the main thread executes a program, it gets the tid of the main thread. So
                // that tid belongs to a living task again.
                let exec = convert::parse::<wire::Exec>(record);
                if let Some(exec) = exec.filter(|exec| exec.old_tid != exec.tid) {
                    self.ended.remove(&exec.tid);
                }
            }
            wire::Kind::LIFE_LAST => {
                if let Some(last) = convert::parse::<wire::TotalLast>(record) {
                    self.ended.remove(&last.total.tid);
                }
            }
            _ => {}
        }
    }
}

#[derive(Debug, Default)]
pub struct Sink {
    records: Records,
    /// The last records of the previous part of the recording. They are taken before the records of the next part.
    old: Option<Records>,
    root: RootWatch,
    reported: Reported,
    maps: Maps,
    /// The last record of each CPU that contains a working directory, by the CPU's number. The next record of the same
    /// CPU is the exec of a program in this directory.
    directories: HashMap<u32, Box<[u8]>>,
}

/// The number of lost lifecycle events that each CPU has reported so far. The BPF programs may report the same number
/// twice.
#[derive(Debug, Default)]
struct Reported(HashMap<u32, u64>);

impl Reported {
    /// Returns by how much a CPU's number of lost events has grown if the number is now `total`.
    fn add(&mut self, cpu: u32, total: u64) -> u64 {
        let before = self.0.entry(cpu).or_default();
        let new = total.saturating_sub(*before);
        *before = total.max(*before);
        new
    }

    /// A record about lost lifecycle events has the total number of lost events so far. This function replaces that
    /// total by its increase since the last record. Returns `None` if the increase is 0. Any other record remains as it
    /// is.
    fn counted<'a>(&mut self, record: &'a [u8]) -> Option<Cow<'a, [u8]>> {
        match wire::LifeLost::read_from_bytes(record) {
            Ok(lost) if lost.head.kind() == wire::Kind::LIFE_LOST => {
                let count = self.add(lost.head.cpu, lost.count);
                let lost = wire::LifeLost { count, ..lost };
                (count > 0).then(|| lost.as_bytes().to_vec().into())
            }
            _ => Some(record.into()),
        }
    }
}

impl Sink {
    /// Creates a collection without records. `page` is the size of a page of memory in bytes.
    pub fn new(page: u32) -> Sink {
        Sink {
            records: Records::of(page),
            ..Sink::default()
        }
    }

    pub fn receive(&mut self, record: Record<'_>) {
        let records = &mut self.records;
        let Record::Life(record) = record else {
            return records.push(record);
        };
        self.root.see(record);
        // The record of a directory is followed by the record of the exec on the same CPU, and both have to be drained
        // together. Other CPUs can write records in between.
        if let Ok((head, _)) = wire::Head::read_from_prefix(record) {
            if head.kind() == wire::Kind::LIFE_DIRECTORY {
                self.directories.insert(head.cpu, used_part(record).into());
                return;
            }
            if let Some(directory) = self.directories.remove(&head.cpu) {
                records.push(Record::Life(&directory));
            }
        }
        if convert::kind(record) == wire::Kind::LIFE_SAMPLE {
            let before = records.mapped.len();
            self.maps.see(record, &mut records.mapped);
            let new = records.mapped.iter().skip(before);
            records.bytes += new.map(|mapped| mapped.maps.len()).sum::<usize>();
        }
        if let Some(record) = self.reported.counted(record) {
            records.push(Record::Life(&record));
        }
    }

    /// The number of lifecycle events that a CPU has lost and no record has reported, if the CPU has lost `total` in
    /// all.
    pub fn lost_life(&mut self, cpu: u32, total: u64) -> u64 {
        self.reported.add(cpu, total)
    }

    pub fn push_own(&mut self, events: Vec<LifeEvent>) {
        self.records.own.extend(events);
    }

    /// Makes the collection watch for the end of COMMAND's process.
    pub fn watch(&mut self, root: RootWatch) {
        self.root = root;
    }

    /// Takes the last totals (CPU time and the like) of the tasks that ended before `time` and that the kernel has not
    /// freed since. Some guests' kernels do not report every task that they free.
    pub fn ended(&mut self, time: Ktime) -> Vec<wire::Total> {
        let ended = self.root.ended.extract_if(|_, end| end.head.time < time.0);
        let mut due: Vec<_> = ended.map(|(_, end)| end.total).collect();
        due.sort_unstable_by_key(|total| total.tid);
        due
    }

    /// Divides the records between two parts of a recording with `--light`: the earlier part gets the records before
    /// `time`. The next [`Sink::take`] returns the records of the earlier part.
    pub fn split(&mut self, time: Ktime) {
        let mut old = self.take();
        let life = std::mem::take(&mut old.life);
        let drained = Records {
            life,
            ..Records::of(old.page)
        };
        old.bytes = old.bytes.saturating_sub(drained.life.len());
        for record in drained.life_records() {
            let head = convert::parse::<wire::Head>(record);
            let is_old = head.is_some_and(|head| head.time < time.0);
            let part = if is_old { &mut old } else { &mut self.records };
            part.push(Record::Life(record));
        }
        self.old = Some(old);
    }

    /// The ids and start times of the tasks in a recording with `--light` that ended before `time` and that the kernel
    /// has not freed since.
    pub fn ended_before(&self, time: Ktime) -> impl Iterator<Item = (u32, u64)> + '_ {
        let ended = self.root.ended.values();
        let ended = ended.filter(move |end| end.head.time < time.0);
        ended.map(|end| (end.task.tid, end.task.start_time))
    }

    /// The tasks in a recording with `--light` that lived at `time` and have ended since, each with its state when it
    /// ended. Only ends are considered whose records were not taken yet by [`Sink::take`].
    pub fn ended_since(&self, time: Ktime) -> impl Iterator<Item = wire::Snapshot> + '_ {
        let ends = self.records.life_records().filter_map(|record| {
            let ends = convert::kind(record) == wire::Kind::LIFE_END;
            ends.then(|| convert::parse::<wire::End>(record))?
        });
        let lived = ends.filter(move |end| end.head.time >= time.0 && end.task.start_time < time.0);
        lived.map(|end| end.task)
    }

    /// Whether all events of COMMAND's process have been drained from the BPF programs' buffers (slots and rings).
    pub fn root_done(&self) -> bool {
        self.root.done()
    }

    pub fn bytes(&self) -> usize {
        self.records.bytes
    }

    /// Whether one of the waiting records has to be passed to the writing thread soon.
    pub fn urgent(&self) -> bool {
        self.records.urgent
    }

    pub fn take(&mut self) -> Records {
        if let Some(old) = self.old.take() {
            return old;
        }
        let next = Records::of(self.records.page);
        std::mem::replace(&mut self.records, next)
    }
}

#[cfg(test)]
#[path = "tests/records.rs"]
mod tests;
