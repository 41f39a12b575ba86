//! Lifecycle events to columns and back.
//!
//! Every field of every kind has its own column, so that like stands beside
//! like. What another field of the same event, or an earlier event of the same
//! frame, foretells is stored as the difference to it.

use std::collections::HashMap;

use super::bits::{BitReader, BitWriter};
use super::ticks;
use crate::event::{
    Argv, CgroupId, CgroupMove, CgroupPath, Clock, Comm, CpuId, Exec, Exit, Final, Fork, Ktime,
    LifeEvent, LifeKind, LossCause, Lost, Mark, Rename, Snapshot, Stream, Tgid, Tid,
};
use crate::limits;
use crate::varint::{fold, put, unfold, Cursor};
use crate::zip::{Packer, Unpacker};
use crate::Fault;

/// The columns, in the order in which they stand in the body.
#[derive(Clone, Copy, Debug)]
#[repr(usize)]
enum Col {
    Kind,
    Time,
    Cpu,
    Task,
    NewTask,
    ForkStart,
    NsTid,
    Cgroup,
    Comm,
    NewComm,
    Path,
    NewPath,
    ArgvLen,
    ArgvFull,
    Argv,
    OldTid,
    Status,
    GroupStatus,
    Utime,
    Stime,
    TimeRest,
    Runtime,
    Nvcsw,
    Nivcsw,
    MinFlt,
    MajFlt,
    Rss,
    RssRest,
    Read,
    Write,
    IoRest,
    FinalRuntime,
    FinalNvcsw,
    FinalNivcsw,
    Start,
    State,
    SnapFlags,
    SnapRuntime,
    Parent,
    LostStream,
    LostCount,
    LostSpan,
    Boot,
    Real,
}

/// How many columns.
const COLUMNS: usize = Col::Real as usize + 1;

/// Kinds, as stored. Never renumbered.
mod tag {
    pub const FORK: u8 = 1;
    pub const EXEC: u8 = 2;
    pub const EXIT: u8 = 3;
    pub const FINAL: u8 = 4;
    pub const RENAME: u8 = 5;
    pub const CGROUP_PATH: u8 = 6;
    pub const CGROUP_MOVE: u8 = 7;
    pub const SNAPSHOT: u8 = 8;
    pub const LOST: u8 = 9;
    pub const CLOCK: u8 = 10;
    pub const PROGRESS: u8 = 11;
    pub const MARK: u8 = 12;
}

/// What quantities of memory and of I/O are multiples of, nearly always.
const UNIT: u64 = 512;
/// What the kernel's CPU times are multiples of, where it counts them in ticks.
const TICK: u64 = 1_000_000;

/// What earlier events of the frame have told; the same on both sides.
#[derive(Debug, Default)]
struct Known {
    time: u64,
    tasks: Vec<(Tid, Tgid)>,
    tid: u32,
    cgroups: Vec<u64>,
    start: u64,
    exits: HashMap<u32, (u64, u64, u64)>,
}

/// Recent tasks that are kept.
const TASKS: usize = 254;

/// For each string that has been met how many there were before it.
type Interned = HashMap<Box<[u8]>, usize>;

/// A list whose used element comes to the front.
fn to_front<T: Copy>(list: &mut [T], at: usize) -> Option<T> {
    let part = list.get_mut(..=at)?;
    part.rotate_right(1);
    part.first().copied()
}

fn to_new_front<T>(list: &mut Vec<T>, value: T, most: usize) {
    list.truncate(most - 1);
    list.insert(0, value);
}

struct Enc {
    columns: [Vec<u8>; COLUMNS],
    low: BitWriter,
    known: Known,
    comms: Interned,
    paths: Interned,
}

impl Enc {
    fn column(&mut self, col: Col) -> &mut Vec<u8> {
        // The array has a place for every `Col`.
        #[allow(clippy::indexing_slicing)]
        &mut self.columns[col as usize]
    }

    fn byte(&mut self, col: Col, value: u8) {
        self.column(col).push(value);
    }

    fn int(&mut self, col: Col, value: u64) {
        put(self.column(col), value);
    }

    fn diff(&mut self, col: Col, value: u32, to: u32) {
        self.int(col, fold(i64::from(value) - i64::from(to)));
    }

    /// A number whose low bits are noise.
    fn wide(&mut self, col: Col, value: u64) {
        let (class, bits, width) = ticks::split(value as i64);
        self.byte(col, class);
        self.low.put(bits, width);
    }

    fn string(&mut self, col: Col, text: Col, string: &[u8]) {
        let interned = match text {
            Col::NewComm => &mut self.comms,
            _ => &mut self.paths,
        };
        let count = interned.len();
        match interned.get(string) {
            Some(at) => {
                let back = count - at;
                self.int(col, back as u64);
            }
            None => {
                interned.insert(string.into(), count);
                self.int(col, 0);
                self.int(text, string.len() as u64);
                self.column(text).extend_from_slice(string);
            }
        }
    }

    fn comm(&mut self, comm: &Comm) {
        self.string(Col::Comm, Col::NewComm, comm.bytes());
    }

    fn path(&mut self, path: &[u8]) {
        let path = path.get(..limits::NAME).unwrap_or(path);
        self.string(Col::Path, Col::NewPath, path);
    }

    fn task(&mut self, tid: Tid, tgid: Tgid) {
        let tasks = &mut self.known.tasks;
        match tasks.iter().position(|task| *task == (tid, tgid)) {
            Some(at) => {
                to_front(tasks, at);
                self.int(Col::Task, at as u64 + 1);
            }
            None => {
                self.int(Col::Task, 0);
                self.new_task(tid, tgid);
            }
        }
    }

    fn new_task(&mut self, tid: Tid, tgid: Tgid) {
        to_new_front(&mut self.known.tasks, (tid, tgid), TASKS);
        self.diff(Col::NewTask, tid.0, self.known.tid);
        self.diff(Col::NewTask, tgid.0, tid.0);
        self.known.tid = tid.0;
    }

    fn cgroup(&mut self, id: CgroupId) {
        match self.known.cgroups.iter().position(|known| *known == id.0) {
            Some(at) => {
                to_front(&mut self.known.cgroups, at);
                self.int(Col::Cgroup, at as u64 + 1);
            }
            None => {
                to_new_front(&mut self.known.cgroups, id.0, TASKS);
                self.int(Col::Cgroup, 0);
                self.int(Col::Cgroup, id.0);
            }
        }
    }

    fn argv(&mut self, argv: &Argv) {
        let bytes = argv.bytes.get(..limits::ARGV).unwrap_or(&argv.bytes);
        self.int(Col::ArgvLen, bytes.len() as u64);
        let full = match argv.full_len {
            None => 0,
            Some(full) => fold(i64::from(full) - bytes.len() as i64).saturating_add(1),
        };
        self.int(Col::ArgvFull, full);
        self.column(Col::Argv).extend_from_slice(bytes);
    }

    fn event(&mut self, event: &LifeEvent) {
        let distance = event.time.0.wrapping_sub(self.known.time);
        self.wide(Col::Time, distance);
        self.known.time = event.time.0;
        self.int(Col::Cpu, event.cpu.map_or(0, |cpu| u64::from(cpu.0) + 1));
        match &event.kind {
            LifeKind::Fork(fork) => self.fork(fork, event.time),
            LifeKind::Exec(exec) => self.exec(exec),
            LifeKind::Exit(exit) => self.exit(exit),
            LifeKind::Final(last) => self.last(last),
            LifeKind::Rename(rename) => {
                self.byte(Col::Kind, tag::RENAME);
                self.task(rename.tid, rename.tgid);
                self.comm(&rename.comm);
            }
            LifeKind::CgroupPath(path) => {
                self.byte(Col::Kind, tag::CGROUP_PATH);
                self.cgroup(path.id);
                self.path(&path.path);
            }
            LifeKind::CgroupMove(moved) => {
                self.byte(Col::Kind, tag::CGROUP_MOVE);
                self.task(moved.tid, moved.tgid);
                self.cgroup(moved.cgroup);
            }
            LifeKind::Snapshot(task) => self.snapshot(task),
            LifeKind::Lost(lost) => self.lost(lost, event.time),
            LifeKind::Clock(clock) => {
                self.byte(Col::Kind, tag::CLOCK);
                self.int(Col::Boot, clock.boot);
                self.int(Col::Real, clock.real);
            }
            LifeKind::Progress => self.byte(Col::Kind, tag::PROGRESS),
            LifeKind::Mark(mark) => {
                self.byte(Col::Kind, tag::MARK);
                self.path(&mark.name);
            }
        }
    }

    fn fork(&mut self, fork: &Fork, time: Ktime) {
        self.byte(Col::Kind, tag::FORK);
        self.task(fork.parent_tid, fork.parent_tgid);
        self.new_task(fork.tid, fork.tgid);
        self.wide(Col::ForkStart, time.0.wrapping_sub(fork.start_time.0));
        self.diff(Col::NsTid, fork.ns_tid.0, fork.tid.0);
        self.cgroup(fork.cgroup);
        self.comm(&fork.comm);
    }

    fn exec(&mut self, exec: &Exec) {
        self.byte(Col::Kind, tag::EXEC);
        self.task(exec.tid, exec.tgid);
        self.diff(Col::OldTid, exec.old_tid.0, exec.tid.0);
        self.comm(&exec.comm);
        self.path(&exec.filename);
        self.argv(&exec.argv);
        self.cgroup(exec.cgroup);
    }

    fn exit(&mut self, exit: &Exit) {
        self.byte(Col::Kind, tag::EXIT);
        self.task(exit.tid, exit.tgid);
        self.int(Col::Status, u64::from(exit.status));
        let group = u64::from(exit.group_status ^ exit.status);
        self.int(Col::GroupStatus, group << 1 | u64::from(exit.group_dead));
        for (col, time) in [(Col::Utime, exit.utime), (Col::Stime, exit.stime)] {
            self.int(col, time / TICK);
            self.int(Col::TimeRest, time % TICK);
        }
        self.wide(Col::Runtime, exit.sum_exec_runtime);
        self.int(Col::Nvcsw, exit.nvcsw);
        self.int(Col::Nivcsw, exit.nivcsw);
        self.int(Col::MinFlt, exit.min_flt);
        self.int(Col::MajFlt, exit.maj_flt);
        self.int(Col::Rss, exit.max_rss / UNIT);
        self.int(Col::RssRest, exit.max_rss % UNIT);
        for (col, bytes) in [(Col::Read, exit.read_bytes), (Col::Write, exit.write_bytes)] {
            match bytes {
                None => self.int(col, 0),
                Some(bytes) => {
                    self.int(col, bytes / UNIT + 1);
                    self.int(Col::IoRest, bytes % UNIT);
                }
            }
        }
        let figures = (exit.sum_exec_runtime, exit.nvcsw, exit.nivcsw);
        self.known.exits.insert(exit.tid.0, figures);
    }

    fn last(&mut self, last: &Final) {
        self.byte(Col::Kind, tag::FINAL);
        let tasks = &self.known.tasks;
        let tgid = tasks.iter().find(|task| task.0 == last.tid).map(|t| t.1);
        self.task(last.tid, tgid.unwrap_or(Tgid(last.tid.0)));
        let (runtime, nvcsw, nivcsw) = self.known.exits.remove(&last.tid.0).unwrap_or_default();
        self.wide(
            Col::FinalRuntime,
            last.sum_exec_runtime.wrapping_sub(runtime),
        );
        self.int(Col::FinalNvcsw, fold(last.nvcsw.wrapping_sub(nvcsw) as i64));
        self.int(
            Col::FinalNivcsw,
            fold(last.nivcsw.wrapping_sub(nivcsw) as i64),
        );
    }

    fn snapshot(&mut self, task: &Snapshot) {
        self.byte(Col::Kind, tag::SNAPSHOT);
        self.task(task.tid, task.tgid);
        self.diff(Col::Parent, task.parent_tgid.0, task.tgid.0);
        let start = task.start_time.0.wrapping_sub(self.known.start);
        self.wide(Col::Start, start);
        self.known.start = task.start_time.0;
        self.diff(Col::NsTid, task.ns_tid.0, task.tid.0);
        self.cgroup(task.cgroup);
        self.comm(&task.comm);
        self.argv(&task.argv);
        self.int(Col::State, u64::from(task.state));
        let flags = [task.on_cpu, task.kthread, task.followed];
        let bits = flags
            .iter()
            .rev()
            .fold(0, |bits, set| bits << 1 | u8::from(*set));
        self.byte(Col::SnapFlags, bits);
        self.wide(Col::SnapRuntime, task.sum_exec_runtime);
    }

    fn lost(&mut self, lost: &Lost, time: Ktime) {
        self.byte(Col::Kind, tag::LOST);
        let stream = match lost.stream {
            Stream::Lifecycle => 0,
            Stream::Recorder => 1,
            Stream::Cpu(cpu) => u64::from(cpu.0) + 2,
        };
        self.int(Col::LostStream, stream);
        self.byte(Col::LostStream, cause(lost.cause));
        // A count of 2^64 - 1 reads back as unknown, which it is.
        let count = lost.count.map_or(0, |count| count.wrapping_add(1));
        self.int(Col::LostCount, count);
        let span = lost.until.0.wrapping_sub(time.0);
        self.int(Col::LostSpan, fold(span as i64));
    }
}

fn cause(cause: LossCause) -> u8 {
    match cause {
        LossCause::RingFull => 0,
        LossCause::Recursion => 1,
        LossCause::Output => 2,
        LossCause::FollowSet => 3,
        LossCause::Damage => 4,
    }
}

fn cause_of(code: u8) -> Result<LossCause, Fault> {
    Ok(match code {
        0 => LossCause::RingFull,
        1 => LossCause::Recursion,
        2 => LossCause::Output,
        3 => LossCause::FollowSet,
        4 => LossCause::Damage,
        _ => return Err(Fault::Content("no such cause of a loss")),
    })
}

/// About how many bytes an event takes in memory.
pub(crate) fn weight(event: &LifeEvent) -> usize {
    let strings = match &event.kind {
        LifeKind::Exec(exec) => exec.filename.len() + exec.argv.bytes.len(),
        LifeKind::Snapshot(task) => task.argv.bytes.len(),
        LifeKind::CgroupPath(path) => path.path.len(),
        LifeKind::Mark(mark) => mark.name.len(),
        _ => 0,
    };
    std::mem::size_of::<LifeEvent>() + strings
}

/// Appends the payload of a block. The first time is counted from `min`.
pub(crate) fn encode(
    events: &[LifeEvent],
    min: u64,
    packer: &mut Packer,
    out: &mut Vec<u8>,
) -> std::io::Result<()> {
    let mut enc = Enc {
        columns: std::array::from_fn(|_| Vec::new()),
        low: BitWriter::default(),
        known: Known {
            time: min,
            ..Known::default()
        },
        comms: Interned::default(),
        paths: Interned::default(),
    };
    for event in events {
        enc.event(event);
    }
    let used = enc.columns.iter().rposition(|column| !column.is_empty());
    let used = used.map_or(0, |last| last + 1);
    let mut body = Vec::new();
    put(&mut body, used as u64);
    for column in enc.columns.iter().take(used) {
        put(&mut body, column.len() as u64);
    }
    for column in &enc.columns {
        body.extend_from_slice(column);
    }
    packer.pack(&body, out)?;
    out.extend_from_slice(&enc.low.finish());
    Ok(())
}

struct Dec<'a> {
    columns: [Cursor<'a>; COLUMNS],
    low: BitReader<'a>,
    known: Known,
    /// Names that have been met, and their lengths.
    comms: Vec<(Comm, usize)>,
    /// Paths that have been met.
    paths: Vec<&'a [u8]>,
    /// Bytes of strings that the events so far hold: a short reference can
    /// stand for a long string, many times.
    strings: u64,
}

impl<'a> Dec<'a> {
    fn column(&mut self, col: Col) -> &mut Cursor<'a> {
        // The array has a place for every `Col`.
        #[allow(clippy::indexing_slicing)]
        &mut self.columns[col as usize]
    }

    fn byte(&mut self, col: Col) -> Result<u8, Fault> {
        self.column(col).byte()
    }

    fn int(&mut self, col: Col) -> Result<u64, Fault> {
        self.column(col).int()
    }

    fn int32(&mut self, col: Col) -> Result<u32, Fault> {
        self.column(col).int32()
    }

    fn diff(&mut self, col: Col, to: u32) -> Result<u32, Fault> {
        let value = i64::from(to).checked_add(unfold(self.int(col)?));
        value
            .and_then(|value| u32::try_from(value).ok())
            .ok_or(Fault::Content("an id does not fit in 32 bits"))
    }

    fn wide(&mut self, col: Col) -> Result<u64, Fault> {
        let class = self.byte(col)?;
        Ok(ticks::get(class, &mut self.low)? as u64)
    }

    fn spend(&mut self, len: usize) -> Result<(), Fault> {
        self.strings += len as u64;
        crate::error::within("the strings' length", self.strings, limits::STRINGS)
    }

    /// A new string of a column, or how many new ones ago a known one was.
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

    /// A name, without an allocation for each.
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

    fn path(&mut self) -> Result<Box<[u8]>, Fault> {
        let path = match self.string(Col::Path, Col::NewPath)? {
            Ok(path) => {
                self.paths.push(path);
                path
            }
            Err(back) => ago(&self.paths, back)?,
        };
        self.spend(path.len())?;
        Ok(path.into())
    }

    fn task(&mut self) -> Result<(Tid, Tgid), Fault> {
        match self.int(Col::Task)? {
            0 => self.new_task(),
            rank => usize::try_from(rank - 1)
                .ok()
                .and_then(|at| to_front(&mut self.known.tasks, at))
                .ok_or(Fault::Content("no such task")),
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
                .ok_or(Fault::Content("no such cgroup")),
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

    /// The next event; `None` for one of a kind that is not known.
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
            tag::PROGRESS => LifeKind::Progress,
            tag::MARK => LifeKind::Mark(Mark { name: self.path()? }),
            0 => return Err(Fault::Content("no such kind of event")),
            // Of a later version, which puts such an event's fields into
            // columns of their own.
            _ => return Ok(None),
        };
        Ok(Some(LifeEvent { time, cpu, kind }))
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
        }))
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
        let exit = Exit {
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
        };
        let figures = (exit.sum_exec_runtime, exit.nvcsw, exit.nivcsw);
        self.known.exits.insert(tid.0, figures);
        Ok(LifeKind::Exit(exit))
    }

    fn last(&mut self) -> Result<LifeKind, Fault> {
        let (tid, _) = self.task()?;
        let (runtime, nvcsw, nivcsw) = self.known.exits.remove(&tid.0).unwrap_or_default();
        let runtime = runtime.wrapping_add(self.wide(Col::FinalRuntime)?);
        let nvcsw = nvcsw.wrapping_add(unfold(self.int(Col::FinalNvcsw)?) as u64);
        let nivcsw = nivcsw.wrapping_add(unfold(self.int(Col::FinalNivcsw)?) as u64);
        Ok(LifeKind::Final(Final {
            tid,
            sum_exec_runtime: runtime,
            nvcsw,
            nivcsw,
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
            return Err(Fault::Content("no such flags of a snapshot"));
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

/// The one that came `back` new ones ago, the last one being 1.
fn ago<T>(met: &[T], back: u64) -> Result<&T, Fault> {
    usize::try_from(back)
        .ok()
        .and_then(|back| met.len().checked_sub(back))
        .and_then(|at| met.get(at))
        .ok_or(Fault::Content("no such string"))
}

fn quantity(unit: u64, units: u64, rest: u64) -> Result<u64, Fault> {
    let whole = units.checked_mul(unit).filter(|_| rest < unit);
    whole
        .and_then(|whole| whole.checked_add(rest))
        .ok_or(Fault::Content("a quantity does not fit in 64 bits"))
}

/// What a later version has put into a block, and this one passes over.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Skipped {
    /// Events of unknown kinds.
    pub events: u64,
    /// Unknown columns.
    pub columns: u64,
}

/// Reads a payload of `events` events into `into`, their smallest time `min`
/// and their largest `max`. After an error `into` is empty.
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
            // An empty one is as one that is missing.
            None => skipped.columns += u64::from(!bytes.is_empty()),
        }
    }
    if body.left() > 0 {
        return Err(Fault::Content("there is more than the columns"));
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
        strings: 0,
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
        return Err(Fault::Content("there is more than the events"));
    }
    match (smallest, largest) == (min, max) {
        true => Ok(skipped),
        false => Err(Fault::Content("its times are not those its header tells")),
    }
}

/// The columns' names, for the specification's test.
#[cfg(test)]
pub fn columns() -> Vec<String> {
    let all: [Col; COLUMNS] = [
        Col::Kind,
        Col::Time,
        Col::Cpu,
        Col::Task,
        Col::NewTask,
        Col::ForkStart,
        Col::NsTid,
        Col::Cgroup,
        Col::Comm,
        Col::NewComm,
        Col::Path,
        Col::NewPath,
        Col::ArgvLen,
        Col::ArgvFull,
        Col::Argv,
        Col::OldTid,
        Col::Status,
        Col::GroupStatus,
        Col::Utime,
        Col::Stime,
        Col::TimeRest,
        Col::Runtime,
        Col::Nvcsw,
        Col::Nivcsw,
        Col::MinFlt,
        Col::MajFlt,
        Col::Rss,
        Col::RssRest,
        Col::Read,
        Col::Write,
        Col::IoRest,
        Col::FinalRuntime,
        Col::FinalNvcsw,
        Col::FinalNivcsw,
        Col::Start,
        Col::State,
        Col::SnapFlags,
        Col::SnapRuntime,
        Col::Parent,
        Col::LostStream,
        Col::LostCount,
        Col::LostSpan,
        Col::Boot,
        Col::Real,
    ];
    assert!(all.iter().enumerate().all(|(at, col)| *col as usize == at));
    all.map(|col| format!("{col:?}")).to_vec()
}

/// The kinds' numbers and names, for the specification's test.
#[cfg(test)]
pub fn kinds() -> [(u8, &'static str); 12] {
    [
        (tag::FORK, "fork"),
        (tag::EXEC, "exec"),
        (tag::EXIT, "exit"),
        (tag::FINAL, "final"),
        (tag::RENAME, "rename"),
        (tag::CGROUP_PATH, "cgroup path"),
        (tag::CGROUP_MOVE, "cgroup move"),
        (tag::SNAPSHOT, "snapshot"),
        (tag::LOST, "lost"),
        (tag::CLOCK, "clock"),
        (tag::PROGRESS, "progress"),
        (tag::MARK, "mark"),
    ]
}
