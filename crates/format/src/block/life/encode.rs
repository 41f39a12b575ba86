//! Lifecycle events to columns.

use std::collections::HashMap;

use super::super::bits::BitWriter;
use super::wide;
use super::{
    cause, tag, to_front, to_new_front, Col, Figures, Known, COLUMNS, EXIT_DELAYS, FINAL_DELAYS,
    TASKS, TICK, UNIT,
};
use crate::counters::CallSum;
use crate::device::{Block, DiskWait, SyncFile};
use crate::dns::{DnsAnswer, DnsQuery};
use crate::event::{
    Account, Argv, CgroupId, Comm, Delays, Exec, Exit, Final, Fork, Ktime, LifeEvent, LifeKind,
    Lost, Mark, Point, Snapshot, Stream, TaskEnd, Tgid, Tid,
};
use crate::limits;
use crate::network::Address;
use crate::varint::{fold, put};
use crate::zip::{Packer, LEVEL};

/// The strings so far, numbered in order.
pub(super) type Interned = HashMap<Box<[u8]>, usize>;

pub(super) struct Enc {
    columns: [Vec<u8>; COLUMNS],
    low: BitWriter,
    pub(super) known: Known,
    comms: Interned,
    paths: Interned,
    pub(super) addresses: HashMap<Address, usize>,
    disks: Interned,
    pub(super) texts: Interned,
    files: Interned,
}

impl Enc {
    pub(super) fn column(&mut self, col: Col) -> &mut Vec<u8> {
        // The array has a place for every `Col`.
        #[allow(clippy::indexing_slicing)]
        &mut self.columns[col as usize]
    }

    pub(super) fn byte(&mut self, col: Col, value: u8) {
        self.column(col).push(value);
    }

    pub(super) fn int(&mut self, col: Col, value: u64) {
        put(self.column(col), value);
    }

    pub(super) fn diff(&mut self, col: Col, value: u32, to: u32) {
        self.int(col, fold(i64::from(value) - i64::from(to)));
    }

    /// A wide number: see [`wide`].
    fn wide(&mut self, col: Col, value: u64) {
        let (class, bits, width) = wide::split(value as i64);
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
            LifeKind::Watermark => self.byte(Col::Kind, tag::WATERMARK),
            LifeKind::Mark(mark) => self.mark(mark),
            LifeKind::Account(account) => self.account(account),
            LifeKind::Detached(detached) => {
                self.byte(Col::Kind, tag::DETACHED);
                self.task(detached.tid, detached.tgid);
            }
            LifeKind::Degraded(degraded) => {
                self.byte(Col::Kind, tag::DEGRADED);
                self.path(&degraded.what);
            }
            LifeKind::End(end) => self.end(end),
            LifeKind::Connect(connect) => self.connect(connect),
            LifeKind::Connected(connected) => {
                self.byte(Col::Kind, tag::CONNECTED);
                self.connection(connected.id);
                self.endpoint(&connected.local);
            }
            LifeKind::Accepted(accepted) => self.accepted(accepted),
            LifeKind::Closed(closed) => self.closed(closed),
            LifeKind::Counters(counters) => self.counters(counters),
            LifeKind::SystemCalls(calls) => self.system_calls(calls, event.time),
            LifeKind::Block(block) => self.block(block),
            LifeKind::OomKill(kill) => {
                self.byte(Col::Kind, tag::OOM_KILL);
                self.memory_task(Col::OomResident, kill.tid, kill.tgid);
                let resident = kill.resident.map_or(0, |bytes| bytes.saturating_add(1));
                self.int(Col::OomResident, resident);
            }
            LifeKind::Reclaim(reclaim) => {
                self.byte(Col::Kind, tag::RECLAIM);
                self.memory_task(Col::Reclaim, reclaim.tid, reclaim.tgid);
                self.int(Col::Reclaim, reclaim.count);
                self.int(Col::Reclaim, reclaim.ns);
            }
            LifeKind::DnsQuery(query) => self.dns_query(query),
            LifeKind::DnsAnswer(answer) => self.dns_answer(answer),
            LifeKind::DiskWait(wait) => self.disk_wait(wait),
            LifeKind::Module(module) => self.module(module),
            LifeKind::Sample(sample) => self.sample(sample),
            LifeKind::Symbol(symbol) => self.symbol(symbol),
            LifeKind::SyncFile(file) => self.sync_file(file),
            LifeKind::Pinned(pinned) => self.pinned(pinned),
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
        self.bytes(Col::ExecRss, exec.max_rss);
    }

    fn bytes(&mut self, col: Col, bytes: Option<u64>) {
        match bytes {
            None => self.int(col, 0),
            Some(bytes) => {
                self.int(col, bytes / UNIT + 1);
                self.int(Col::IoRest, bytes % UNIT);
            }
        }
    }

    /// Delays, as their increase since the task's exit.
    fn delays(&mut self, columns: [Col; 3], delays: &Delays, before: &Delays) {
        let values = [delays.run, delays.block, delays.swap];
        let known = values.iter().rev();
        let bits = known.fold(0, |bits, value| bits << 1 | u8::from(value.is_some()));
        self.byte(Col::Delays, bits);
        let before = [before.run, before.block, before.swap];
        for ((col, value), before) in columns.into_iter().zip(values).zip(before) {
            if let Some(value) = value {
                self.wide(col, value.wrapping_sub(before.unwrap_or(0)));
            }
        }
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
        self.bytes(Col::Read, exit.read_bytes);
        self.bytes(Col::Write, exit.write_bytes);
        // Nearly always the same as max_rss.
        let program = exit.program_rss.map_or(0, |rss| {
            fold(rss.wrapping_sub(exit.max_rss) as i64).wrapping_add(1)
        });
        self.int(Col::ProgramRss, program);
        self.delays(EXIT_DELAYS, &exit.delays, &Delays::default());
        self.known.exits.insert(exit.tid.0, Figures::of(exit));
    }

    fn last(&mut self, last: &Final) {
        self.byte(Col::Kind, tag::FINAL);
        let tasks = &self.known.tasks;
        let tgid = tasks.iter().find(|task| task.0 == last.tid).map(|t| t.1);
        self.task(last.tid, tgid.unwrap_or(Tgid(last.tid.0)));
        let before = self.known.exits.remove(&last.tid.0).unwrap_or_default();
        let increase = |now: u64, before: u64| now.wrapping_sub(before);
        let runtime = increase(last.sum_exec_runtime, before.runtime);
        self.wide(Col::FinalRuntime, runtime);
        let nvcsw = increase(last.nvcsw, before.nvcsw);
        self.int(Col::FinalNvcsw, fold(nvcsw as i64));
        let nivcsw = increase(last.nivcsw, before.nivcsw);
        self.int(Col::FinalNivcsw, fold(nivcsw as i64));
        self.delays(FINAL_DELAYS, &last.delays, &before.delays);
    }

    fn account(&mut self, account: &Account) {
        self.byte(Col::Kind, tag::ACCOUNT);
        self.task(account.tid, account.tgid);
        let before = self.known.accounts.entry(account.tid.0).or_default();
        let last = std::mem::replace(before, before.then(account));
        let known = u8::from(account.run_delay.is_some()) | u8::from(account.slices.is_some()) << 1;
        self.byte(Col::AccountKnown, known);
        let increases = [
            (
                Col::AccountRuntime,
                Some(account.sum_exec_runtime),
                last.runtime,
            ),
            (Col::AccountRunDelay, account.run_delay, last.run_delay),
            (Col::AccountSlices, account.slices, last.slices),
        ];
        for (col, now, before) in increases {
            if let Some(now) = now {
                self.wide(col, now.wrapping_sub(before));
            }
        }
    }

    fn mark(&mut self, mark: &Mark) {
        if mark.is_plain() {
            self.byte(Col::Kind, tag::MARK);
            return self.path(&mark.name);
        }
        self.byte(Col::Kind, tag::MARK_MORE);
        let point = match mark.point {
            Point::Moment => 0,
            Point::Begin => 1,
            Point::End => 2,
        };
        let given = u8::from(mark.pid.is_some()) << 2 | u8::from(mark.tid.is_some()) << 3;
        self.byte(Col::MarkPoint, point | given);
        self.wide(Col::MarkAgo, mark.ago);
        for task in [mark.pid, mark.tid].into_iter().flatten() {
            self.int(Col::MarkTask, task.0.into());
        }
        for text in [&mark.name, &mark.kind, &mark.result, &mark.id] {
            self.path(text);
        }
    }

    fn end(&mut self, end: &TaskEnd) {
        self.byte(Col::Kind, tag::END);
        self.task(end.tid, end.tgid);
        self.int(
            Col::EndStatus,
            end.status.map_or(0, |status| u64::from(status) + 1),
        );
        self.byte(Col::EndDead, end.group_dead.into());
        self.bytes(Col::EndRss, end.max_rss);
    }

    // Later kinds use columns of their own, and no low bits: a reader that skips them reads the
    // others on.

    /// In the event's own column, not as a path, whose columns an older reader knows.
    pub(super) fn name(&mut self, col: Col, name: &[u8]) {
        let name = name.get(..limits::NAME).unwrap_or(name);
        let known = match col {
            Col::SyncFile => &mut self.files,
            _ => &mut self.disks,
        };
        let count = known.len();
        if let Some(at) = known.get(name) {
            let back = count - at;
            return self.int(col, back as u64);
        }
        known.insert(name.into(), count);
        self.int(col, 0);
        self.int(col, name.len() as u64);
        self.column(col).extend_from_slice(name);
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
        // A count of 2^64 - 1 is read as unknown.
        let count = lost.count.map_or(0, |count| count.wrapping_add(1));
        self.int(Col::LostCount, count);
        let span = lost.until.0.wrapping_sub(time.0);
        self.int(Col::LostSpan, fold(span as i64));
    }
}

/// The approximate memory of an event in bytes.
pub(crate) fn weight(event: &LifeEvent) -> usize {
    let strings = match &event.kind {
        LifeKind::Exec(exec) => exec.filename.len() + exec.argv.bytes.len(),
        LifeKind::Snapshot(task) => task.argv.bytes.len(),
        LifeKind::CgroupPath(path) => path.path.len(),
        LifeKind::Mark(mark) => {
            let texts = [&mark.name, &mark.kind, &mark.result, &mark.id];
            texts.iter().map(|text| text.len()).sum()
        }
        LifeKind::Degraded(degraded) => degraded.what.len(),
        LifeKind::SystemCalls(calls) => std::mem::size_of::<CallSum>() * calls.calls.len(),
        LifeKind::DnsQuery(query) => std::mem::size_of::<DnsQuery>() + query.name.len(),
        LifeKind::DnsAnswer(answer) => {
            std::mem::size_of::<DnsAnswer>() + std::mem::size_of_val(&*answer.addresses)
        }
        LifeKind::Block(block) => std::mem::size_of::<Block>() + block.name.len(),
        LifeKind::DiskWait(wait) => std::mem::size_of::<DiskWait>() + wait.name.len(),
        LifeKind::SyncFile(file) => std::mem::size_of::<SyncFile>() + file.name.len(),
        kind => super::stacks::weight(kind),
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
        addresses: HashMap::new(),
        disks: Interned::default(),
        texts: Interned::default(),
        files: Interned::default(),
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
    packer.pack(&[&body], LEVEL, out)?;
    enc.low.finish(out);
    Ok(())
}
