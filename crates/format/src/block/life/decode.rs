//! Columns to lifecycle events.

use std::sync::Arc;

use super::super::bits::BitReader;
use super::wide;
use super::{
    cause_of, tag, to_front, to_new_front, Col, Figures, Known, COLUMNS, EXIT_DELAYS, FINAL_DELAYS,
    TASKS, TICK, UNIT,
};
use crate::event::{
    Account, Argv, CgroupId, CgroupMove, CgroupPath, Clock, Comm, CpuId, Degraded, Delays,
    Detached, Exec, Exit, Final, Fork, Ktime, LifeEvent, LifeKind, Lost, Mark, OomKill, Point,
    Reclaim, Rename, Snapshot, Stream, TaskEnd, Tgid, Tid,
};
use crate::limits;
use crate::network::{Accepted, Address, Closed, Connected, Ending};
use crate::varint::{unfold, Cursor};
use crate::zip::Unpacker;
use crate::Fault;

pub(super) struct Dec<'a> {
    columns: [Cursor<'a>; COLUMNS],
    low: BitReader<'a>,
    pub(super) known: Known,
    /// The names so far, and their lengths.
    comms: Vec<(Comm, usize)>,
    /// The paths so far.
    paths: Vec<Arc<[u8]>>,
    /// The addresses so far.
    pub(super) addresses: Vec<Address>,
    /// The names of disks and of files of fsync so far.
    disks: Vec<Arc<[u8]>>,
    files: Vec<Arc<[u8]>>,
    /// Bytes of all strings of the events so far: short references can repeat a long string.
    strings: u64,
    /// Sums of system calls so far.
    pub(super) calls: u64,
    /// The texts of symbols so far.
    pub(super) texts: Vec<Box<[u8]>>,
    /// New stacks and functions so far.
    pub(super) stacks: u64,
}

impl<'a> Dec<'a> {
    pub(super) fn column(&mut self, col: Col) -> &mut Cursor<'a> {
        // The array has a place for every `Col`.
        #[allow(clippy::indexing_slicing)]
        &mut self.columns[col as usize]
    }

    pub(super) fn byte(&mut self, col: Col) -> Result<u8, Fault> {
        self.column(col).byte()
    }

    pub(super) fn int(&mut self, col: Col) -> Result<u64, Fault> {
        self.column(col).int()
    }

    pub(super) fn int32(&mut self, col: Col) -> Result<u32, Fault> {
        self.column(col).int32()
    }

    pub(super) fn diff(&mut self, col: Col, to: u32) -> Result<u32, Fault> {
        let value = i64::from(to).checked_add(unfold(self.int(col)?));
        value
            .and_then(|value| u32::try_from(value).ok())
            .ok_or(Fault::Content("an id does not fit in 32 bits"))
    }

    fn wide(&mut self, col: Col) -> Result<u64, Fault> {
        let class = self.byte(col)?;
        Ok(wide::get(class, &mut self.low)? as u64)
    }

    pub(super) fn spend(&mut self, len: usize) -> Result<(), Fault> {
        self.strings += len as u64;
        crate::error::within("the strings' length", self.strings, limits::STRINGS)
    }

    /// A new string of a column, or the distance to a known one among the new ones.
    fn string(&mut self, col: Col, text: Col) -> Result<Result<&'a [u8], u64>, Fault> {
        match self.int(col)? {
            0 => {
                let len = self.int(text)?;
                crate::error::within("a string's length", len, limits::NAME as u64)?;
                Ok(Ok(self.column(text).take(len)?))
            }
            back => Ok(Err(back)),
        }
    }

    /// A name; does not allocate.
    fn comm(&mut self) -> Result<Comm, Fault> {
        let (comm, len) = match self.string(Col::Comm, Col::NewComm)? {
            Ok(name) => {
                crate::error::within("a comm's length", name.len() as u64, 16)?;
                let mut comm = Comm::default();
                for (to, from) in comm.0.iter_mut().zip(name) {
                    *to = *from;
                }
                self.comms.push((comm, name.len()));
                (comm, name.len())
            }
            Err(back) => *ago(&self.comms, back)?,
        };
        self.spend(len)?;
        Ok(comm)
    }

    /// A path; events with the same path share it.
    fn path(&mut self) -> Result<Arc<[u8]>, Fault> {
        let path = match self.string(Col::Path, Col::NewPath)? {
            Ok(path) => {
                let path: Arc<[u8]> = path.into();
                self.paths.push(Arc::clone(&path));
                path
            }
            Err(back) => Arc::clone(ago(&self.paths, back)?),
        };
        self.spend(path.len())?;
        Ok(path)
    }

    fn task(&mut self) -> Result<(Tid, Tgid), Fault> {
        match self.int(Col::Task)? {
            0 => self.new_task(),
            rank => usize::try_from(rank - 1)
                .ok()
                .and_then(|at| to_front(&mut self.known.tasks, at))
                .ok_or(Fault::Content("task index out of range")),
        }
    }

    fn new_task(&mut self) -> Result<(Tid, Tgid), Fault> {
        let tid = self.diff(Col::NewTask, self.known.tid)?;
        let tgid = self.diff(Col::NewTask, tid)?;
        self.known.tid = tid;
        to_new_front(&mut self.known.tasks, (Tid(tid), Tgid(tgid)), TASKS);
        Ok((Tid(tid), Tgid(tgid)))
    }

    fn cgroup(&mut self) -> Result<CgroupId, Fault> {
        match self.int(Col::Cgroup)? {
            0 => {
                let id = self.int(Col::Cgroup)?;
                to_new_front(&mut self.known.cgroups, id, TASKS);
                Ok(CgroupId(id))
            }
            rank => usize::try_from(rank - 1)
                .ok()
                .and_then(|at| to_front(&mut self.known.cgroups, at))
                .map(CgroupId)
                .ok_or(Fault::Content("cgroup index out of range")),
        }
    }

    fn argv(&mut self) -> Result<Argv, Fault> {
        let len = self.int(Col::ArgvLen)?;
        crate::error::within("an argv's length", len, limits::ARGV as u64)?;
        let full_len = match self.int(Col::ArgvFull)? {
            0 => None,
            more => {
                let full = (len as i64).checked_add(unfold(more - 1));
                let full = full.and_then(|full| u32::try_from(full).ok());
                Some(full.ok_or(Fault::Content("an argv's length does not fit in 32 bits"))?)
            }
        };
        self.spend(len as usize)?;
        let bytes = self.column(Col::Argv).take(len)?.into();
        Ok(Argv { bytes, full_len })
    }

    /// The next event; `None` for an unknown kind.
    fn event(&mut self) -> Result<Option<LifeEvent>, Fault> {
        let distance = self.wide(Col::Time)?;
        let time = Ktime(self.known.time.wrapping_add(distance));
        self.known.time = time.0;
        let cpu = match self.int(Col::Cpu)? {
            0 => None,
            cpu => Some(CpuId(
                u16::try_from(cpu - 1).map_err(|_| Fault::Content("no such CPU"))?,
            )),
        };
        let kind = match self.byte(Col::Kind)? {
            tag::FORK => self.fork(time)?,
            tag::EXEC => self.exec()?,
            tag::EXIT => self.exit()?,
            tag::FINAL => self.last()?,
            tag::RENAME => {
                let (tid, tgid) = self.task()?;
                let comm = self.comm()?;
                LifeKind::Rename(Rename { tid, tgid, comm })
            }
            tag::CGROUP_PATH => {
                let (id, path) = (self.cgroup()?, self.path()?);
                let path = (*path).into();
                LifeKind::CgroupPath(CgroupPath { id, path })
            }
            tag::CGROUP_MOVE => {
                let (tid, tgid) = self.task()?;
                let cgroup = self.cgroup()?;
                LifeKind::CgroupMove(CgroupMove { tid, tgid, cgroup })
            }
            tag::SNAPSHOT => self.snapshot()?,
            tag::LOST => self.lost(time)?,
            tag::CLOCK => LifeKind::Clock(Clock {
                boot: self.int(Col::Boot)?,
                real: self.int(Col::Real)?,
            }),
            tag::WATERMARK => LifeKind::Watermark,
            tag::MARK => LifeKind::Mark(Mark {
                name: (*self.path()?).into(),
                ..Mark::default()
            }),
            tag::MARK_MORE => self.mark()?,
            tag::ACCOUNT => self.account()?,
            tag::DETACHED => {
                let (tid, tgid) = self.task()?;
                LifeKind::Detached(Detached { tid, tgid })
            }
            tag::DEGRADED => LifeKind::Degraded(Degraded {
                what: (*self.path()?).into(),
            }),
            tag::END => self.end()?,
            0 => return Err(Fault::Content("unknown kind of event")),
            kind => match self.later(kind, time)? {
                Some(kind) => kind,
                None => return Ok(None),
            },
        };
        Ok(Some(LifeEvent { time, cpu, kind }))
    }

    /// An event of the kinds since version 3.2.
    fn later(&mut self, kind: u8, time: Ktime) -> Result<Option<LifeKind>, Fault> {
        Ok(Some(match kind {
            tag::CONNECT => self.connect()?,
            tag::CONNECTED => LifeKind::Connected(Connected {
                id: self.connection()?,
                local: self.endpoint()?,
            }),
            tag::ACCEPTED => LifeKind::Accepted(Accepted {
                id: self.new_connection()?,
                listener: self.connection_task()?,
                local: self.endpoint()?,
                remote: self.endpoint()?,
            }),
            tag::CLOSED => LifeKind::Closed(Closed {
                id: self.connection()?,
                by: self.connection_task()?,
                ending: Ending::of(self.byte(Col::Ending)?),
                sent: self.int(Col::Sent)?,
                received: self.int(Col::Received)?,
            }),
            tag::COUNTERS => LifeKind::Counters(self.counters()?),
            tag::SYSTEM_CALLS => self.system_calls(time)?,
            tag::BLOCK => LifeKind::Block(Box::new(self.block()?)),
            tag::OOM_KILL => {
                let (tid, tgid) = self.memory_task(Col::OomResident)?;
                LifeKind::OomKill(OomKill {
                    tid,
                    tgid,
                    resident: self.int(Col::OomResident)?.checked_sub(1),
                })
            }
            tag::RECLAIM => {
                let (tid, tgid) = self.memory_task(Col::Reclaim)?;
                LifeKind::Reclaim(Reclaim {
                    tid,
                    tgid,
                    count: self.int(Col::Reclaim)?,
                    ns: self.int(Col::Reclaim)?,
                })
            }
            tag::DNS_QUERY => LifeKind::DnsQuery(Box::new(self.dns_query()?)),
            tag::DNS_ANSWER => LifeKind::DnsAnswer(Box::new(self.dns_answer()?)),
            tag::SYNC_FILE => LifeKind::SyncFile(Box::new(self.sync_file()?)),
            tag::PINNED => LifeKind::Pinned(self.pinned()?),
            tag::DISK_WAIT => LifeKind::DiskWait(Box::new(self.disk_wait()?)),
            tag::MODULE => LifeKind::Module(Box::new(self.module()?)),
            tag::SAMPLE => LifeKind::Sample(Box::new(self.sample()?)),
            tag::SYMBOL => LifeKind::Symbol(self.symbol()?),
            // A later version puts the fields of a new kind into new columns.
            _ => return Ok(None),
        }))
    }

    fn fork(&mut self, time: Ktime) -> Result<LifeKind, Fault> {
        let (parent_tid, parent_tgid) = self.task()?;
        let (tid, tgid) = self.new_task()?;
        Ok(LifeKind::Fork(Fork {
            parent_tid,
            parent_tgid,
            tid,
            tgid,
            start_time: Ktime(time.0.wrapping_sub(self.wide(Col::ForkStart)?)),
            ns_tid: Tid(self.diff(Col::NsTid, tid.0)?),
            cgroup: self.cgroup()?,
            comm: self.comm()?,
        }))
    }

    fn exec(&mut self) -> Result<LifeKind, Fault> {
        let (tid, tgid) = self.task()?;
        Ok(LifeKind::Exec(Exec {
            tid,
            tgid,
            old_tid: Tid(self.diff(Col::OldTid, tid.0)?),
            comm: self.comm()?,
            filename: self.path()?,
            argv: self.argv()?,
            cgroup: self.cgroup()?,
            max_rss: self.bytes(Col::ExecRss)?,
        }))
    }

    /// Delays, of which the increase since `before` is stored.
    fn delays(&mut self, columns: [Col; 3], before: &Delays) -> Result<Delays, Fault> {
        let bits = self.byte(Col::Delays)?;
        if bits > 7 {
            return Err(Fault::Content("unknown delays of a task"));
        }
        let mut value = |place: u8, col, before: Option<u64>| {
            if bits & 1 << place == 0 {
                return Ok(None);
            }
            let increase = self.wide(col)?;
            Ok(Some(before.unwrap_or(0).wrapping_add(increase)))
        };
        let [run, block, swap] = columns;
        Ok(Delays {
            run: value(0, run, before.run)?,
            block: value(1, block, before.block)?,
            swap: value(2, swap, before.swap)?,
        })
    }

    fn bytes(&mut self, col: Col) -> Result<Option<u64>, Fault> {
        match self.int(col)? {
            0 => Ok(None),
            units => Ok(Some(quantity(UNIT, units - 1, self.int(Col::IoRest)?)?)),
        }
    }

    fn exit(&mut self) -> Result<LifeKind, Fault> {
        let (tid, tgid) = self.task()?;
        let status = self.int32(Col::Status)?;
        let group = self.int(Col::GroupStatus)?;
        let other = u32::try_from(group >> 1)
            .map_err(|_| Fault::Content("a status does not fit in 32 bits"))?;
        let mut exit = Exit {
            tid,
            tgid,
            status,
            group_dead: group & 1 == 1,
            group_status: status ^ other,
            utime: quantity(TICK, self.int(Col::Utime)?, self.int(Col::TimeRest)?)?,
            stime: quantity(TICK, self.int(Col::Stime)?, self.int(Col::TimeRest)?)?,
            sum_exec_runtime: self.wide(Col::Runtime)?,
            nvcsw: self.int(Col::Nvcsw)?,
            nivcsw: self.int(Col::Nivcsw)?,
            min_flt: self.int(Col::MinFlt)?,
            maj_flt: self.int(Col::MajFlt)?,
            max_rss: quantity(UNIT, self.int(Col::Rss)?, self.int(Col::RssRest)?)?,
            read_bytes: self.bytes(Col::Read)?,
            write_bytes: self.bytes(Col::Write)?,
            ..Exit::default()
        };
        let program = self.int(Col::ProgramRss)?.checked_sub(1);
        exit.program_rss = program.map(|more| exit.max_rss.wrapping_add(unfold(more) as u64));
        exit.delays = self.delays(EXIT_DELAYS, &Delays::default())?;
        self.known.exits.insert(tid.0, Figures::of(&exit));
        Ok(LifeKind::Exit(exit))
    }

    fn account(&mut self) -> Result<LifeKind, Fault> {
        let (tid, tgid) = self.task()?;
        let before = self.known.accounts.get(&tid.0).copied().unwrap_or_default();
        let known = self.byte(Col::AccountKnown)?;
        if known > 3 {
            return Err(Fault::Content("unknown totals of a task"));
        }
        let mut total = |bit: u8, col, before: u64| {
            let increase = (known & bit == bit).then(|| self.wide(col)).transpose()?;
            Ok::<_, Fault>(increase.map(|increase| before.wrapping_add(increase)))
        };
        let account = Account {
            tid,
            tgid,
            sum_exec_runtime: total(0, Col::AccountRuntime, before.runtime)?.unwrap_or(0),
            run_delay: total(1, Col::AccountRunDelay, before.run_delay)?,
            slices: total(2, Col::AccountSlices, before.slices)?,
        };
        self.known.accounts.insert(tid.0, before.then(&account));
        Ok(LifeKind::Account(account))
    }

    fn mark(&mut self) -> Result<LifeKind, Fault> {
        let bits = self.byte(Col::MarkPoint)?;
        let point = match bits & 3 {
            0 => Point::Moment,
            1 => Point::Begin,
            2 => Point::End,
            _ => return Err(Fault::Content("unknown point of a mark")),
        };
        if bits > 15 {
            return Err(Fault::Content("unknown fields of a mark"));
        }
        let ago = self.wide(Col::MarkAgo)?;
        let mut task = |bit: u8| -> Result<Option<Tid>, Fault> {
            if bits & bit == 0 {
                return Ok(None);
            }
            let id = u32::try_from(self.int(Col::MarkTask)?);
            let id = id.map_err(|_| Fault::Content("a mark's task does not fit in 32 bits"))?;
            Ok(Some(Tid(id)))
        };
        let (pid, tid) = (task(4)?, task(8)?);
        let mut text = || -> Result<Box<[u8]>, Fault> { Ok((*self.path()?).into()) };
        Ok(LifeKind::Mark(Mark {
            name: text()?,
            kind: text()?,
            result: text()?,
            id: text()?,
            point,
            ago,
            pid,
            tid,
        }))
    }

    fn end(&mut self) -> Result<LifeKind, Fault> {
        let (tid, tgid) = self.task()?;
        let status = self.int(Col::EndStatus)?.checked_sub(1).map(u32::try_from);
        let status = status.transpose();
        let dead = self.byte(Col::EndDead)?;
        if dead > 1 {
            return Err(Fault::Content("unknown end of a task"));
        }
        Ok(LifeKind::End(TaskEnd {
            tid,
            tgid,
            status: status.map_err(|_| Fault::Content("a status does not fit in 32 bits"))?,
            group_dead: dead == 1,
            max_rss: self.bytes(Col::EndRss)?,
        }))
    }

    /// A name in the event's own column; events with the same name share it.
    pub(super) fn name(&mut self, col: Col) -> Result<Arc<[u8]>, Fault> {
        let back = self.int(col)?;
        let new = if back == 0 {
            let len = self.int(col)?;
            crate::error::within("a string's length", len, limits::NAME as u64)?;
            Some(self.column(col).take(len)?.into())
        } else {
            None
        };
        let known: &mut Vec<Arc<[u8]>> = match col {
            Col::SyncFile => &mut self.files,
            _ => &mut self.disks,
        };
        let name = match new {
            Some(name) => {
                known.push(Arc::clone(&name));
                name
            }
            None => Arc::clone(ago(known, back)?),
        };
        self.spend(name.len())?;
        Ok(name)
    }

    fn last(&mut self) -> Result<LifeKind, Fault> {
        let (tid, _) = self.task()?;
        let before = self.known.exits.remove(&tid.0).unwrap_or_default();
        let runtime = before.runtime.wrapping_add(self.wide(Col::FinalRuntime)?);
        let nvcsw = before
            .nvcsw
            .wrapping_add(unfold(self.int(Col::FinalNvcsw)?) as u64);
        let nivcsw = before
            .nivcsw
            .wrapping_add(unfold(self.int(Col::FinalNivcsw)?) as u64);
        Ok(LifeKind::Final(Final {
            tid,
            sum_exec_runtime: runtime,
            nvcsw,
            nivcsw,
            delays: self.delays(FINAL_DELAYS, &before.delays)?,
        }))
    }

    fn snapshot(&mut self) -> Result<LifeKind, Fault> {
        let (tid, tgid) = self.task()?;
        let parent_tgid = Tgid(self.diff(Col::Parent, tgid.0)?);
        let start = self.known.start.wrapping_add(self.wide(Col::Start)?);
        self.known.start = start;
        let ns_tid = Tid(self.diff(Col::NsTid, tid.0)?);
        let cgroup = self.cgroup()?;
        let comm = self.comm()?;
        let argv = self.argv()?;
        let state = self.column(Col::State).int16()?;
        let flags = self.byte(Col::SnapFlags)?;
        if flags > 7 {
            return Err(Fault::Content("unknown flags of a snapshot"));
        }
        Ok(LifeKind::Snapshot(Snapshot {
            tid,
            tgid,
            parent_tgid,
            start_time: Ktime(start),
            ns_tid,
            cgroup,
            comm,
            argv,
            state,
            on_cpu: flags & 1 != 0,
            kthread: flags & 2 != 0,
            followed: flags & 4 != 0,
            sum_exec_runtime: self.wide(Col::SnapRuntime)?,
        }))
    }

    fn lost(&mut self, time: Ktime) -> Result<LifeKind, Fault> {
        let stream = match self.int(Col::LostStream)? {
            0 => Stream::Lifecycle,
            1 => Stream::Recorder,
            cpu => Stream::Cpu(CpuId(
                u16::try_from(cpu - 2).map_err(|_| Fault::Content("no such CPU"))?,
            )),
        };
        let cause = cause_of(self.byte(Col::LostStream)?)?;
        let count = self.int(Col::LostCount)?.checked_sub(1);
        let span = unfold(self.int(Col::LostSpan)?) as u64;
        Ok(LifeKind::Lost(Lost {
            stream,
            count,
            until: Ktime(time.0.wrapping_add(span)),
            cause,
        }))
    }
}

/// The element at distance `back` from the end; the last one has distance 1.
pub(super) fn ago<T>(met: &[T], back: u64) -> Result<&T, Fault> {
    usize::try_from(back)
        .ok()
        .and_then(|back| met.len().checked_sub(back))
        .and_then(|at| met.get(at))
        .ok_or(Fault::Content("string index out of range"))
}

fn quantity(unit: u64, units: u64, rest: u64) -> Result<u64, Fault> {
    let whole = units.checked_mul(unit).filter(|_| rest < unit);
    whole
        .and_then(|whole| whole.checked_add(rest))
        .ok_or(Fault::Content("a quantity does not fit in 64 bits"))
}

/// Counts of a block's skipped parts, which only a later version knows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Skipped {
    /// Events of unknown kinds.
    pub events: u64,
    /// Unknown columns.
    pub columns: u64,
}

/// Reads a payload of `events` events into `into`. `span` is their smallest and largest time.
/// After an error `into` is empty.
pub fn decode(
    payload: &[u8],
    events: u64,
    span: (u64, u64),
    unpacker: &mut Unpacker,
    into: &mut Vec<LifeEvent>,
) -> Result<Skipped, Fault> {
    into.clear();
    let read = block(payload, events, span, unpacker, into);
    if read.is_err() {
        into.clear();
    }
    read
}

fn block(
    payload: &[u8],
    events: u64,
    (min, max): (u64, u64),
    unpacker: &mut Unpacker,
    into: &mut Vec<LifeEvent>,
) -> Result<Skipped, Fault> {
    let mut cursor = Cursor::new(payload);
    let body = unpacker.unpack(&mut cursor, limits::BODY)?;
    let low = BitReader::new(cursor.rest());
    let mut body = Cursor::new(body);
    let count = body.int()?;
    crate::error::within("the number of columns", count, limits::LIFE_COLUMNS)?;
    let mut lengths = Vec::with_capacity(count as usize);
    for _ in 0..count {
        lengths.push(body.int()?);
    }
    let mut skipped = Skipped::default();
    let mut columns: [Cursor; COLUMNS] = std::array::from_fn(|_| Cursor::new(&[]));
    for (at, len) in lengths.into_iter().enumerate() {
        let bytes = body.take(len)?;
        match columns.get_mut(at) {
            Some(column) => *column = Cursor::new(bytes),
            // An empty column counts as missing.
            None => skipped.columns += u64::from(!bytes.is_empty()),
        }
    }
    if body.left() > 0 {
        return Err(Fault::Content("trailing bytes after the columns"));
    }
    let mut dec = Dec {
        columns,
        low,
        known: Known {
            time: min,
            ..Known::default()
        },
        comms: Vec::new(),
        paths: Vec::new(),
        addresses: Vec::new(),
        disks: Vec::new(),
        files: Vec::new(),
        strings: 0,
        calls: 0,
        texts: Vec::new(),
        stacks: 0,
    };
    let (mut smallest, mut largest) = (u64::MAX, 0);
    for _ in 0..events {
        match dec.event()? {
            Some(event) => into.push(event),
            None => skipped.events += 1,
        }
        smallest = smallest.min(dec.known.time);
        largest = largest.max(dec.known.time);
    }
    dec.low.finish()?;
    if dec.columns.iter().any(|column| column.left() > 0) {
        return Err(Fault::Content("trailing bytes after the events"));
    }
    if (smallest, largest) != (min, max) {
        return Err(Fault::Content("event times differ from the frame header's"));
    }
    Ok(skipped)
}
