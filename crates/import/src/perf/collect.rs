//! The first pass over a perf.data file: what happened to tasks, and the spans of the CPUs.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::Arc;

use tr_format::event::Comm;

use super::file::{damaged, refused, File};
use super::records::{Record, What};
use super::tracing::{Formats, Tracepoint};
use crate::Error;

/// The most events of tasks: forks, execs, exits, names.
const SIDES: usize = 20_000_000;
/// perf without `-a` records the switches from the followed tasks alone: none from the idle
/// task, and more than so many of a hundred from another task than the one before went to.
/// Guests' kernels leave some out, too.
const UNSEEN_PERCENT: u64 = 10;
/// The least switches to tell by.
const ENOUGH: u64 = 100;

/// Something that happened to a task, besides switches and wakings.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Side {
    pub time: u64,
    pub cpu: Option<u16>,
    pub what: SideKind,
}

/// The kinds of [`Side`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SideKind {
    Fork {
        tgid: u32,
        tid: u32,
        parent_tgid: u32,
        parent_tid: u32,
    },
    Exit {
        tgid: u32,
        tid: u32,
    },
    Comm {
        tgid: u32,
        tid: u32,
        comm: Comm,
        exec: bool,
    },
    /// The first file that a new program has mapped to execute.
    Mapped {
        tgid: u32,
        file: Arc<[u8]>,
    },
    /// The file of an exec, and the tid before it.
    Exec {
        tid: u32,
        old: u32,
        file: Arc<[u8]>,
    },
}

/// Events of a CPU that perf had no room for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Loss {
    pub cpu: u16,
    pub since: u64,
    pub until: u64,
    pub count: u64,
}

/// A CPU's records so far.
#[derive(Clone, Debug, Default)]
pub struct Cpu {
    /// Time and previous task of its first switch.
    pub first: Option<(u64, u32)>,
    /// The task that its last switch went to.
    current: Option<u32>,
    last_time: u64,
    switches: u64,
    unseen: u64,
    /// Tasks that have begun to exit since its last switch.
    exiting: Vec<u32>,
}

/// The first pass's result.
#[derive(Debug, Default)]
pub struct Collected {
    pub sides: Vec<Side>,
    /// The times at which a tid's task was switched out for the last time.
    pub deaths: HashMap<u32, Vec<u64>>,
    /// The time of a CPU's first switch after a task there began to exit, by tid.
    pub gone: HashMap<u32, Vec<u64>>,
    /// The times at which a task with that tid was forked.
    pub forks: HashMap<u32, Vec<u64>>,
    /// The tids that ran, were woken or woke.
    pub active: HashSet<u32>,
    pub losses: Vec<Loss>,
    pub cpus: BTreeMap<u16, Cpu>,
    /// The first and the last sample.
    pub span: Option<(u64, u64)>,
    files: HashSet<Arc<[u8]>>,
    /// Processes of a new program that has mapped no file yet.
    new: HashSet<u32>,
}

impl Collected {
    /// Reads all records.
    ///
    /// # Errors
    /// A record is damaged; there are no switches of whole CPUs.
    pub fn read(file: &File<'_>, formats: &Formats) -> Result<Collected, Error> {
        let mut all = Collected::default();
        file.records(|record| all.take(record, formats))?;
        let switches: u64 = all.cpus.values().map(|cpu| cpu.switches).sum();
        let unseen: u64 = all.cpus.values().map(|cpu| cpu.unseen).sum();
        if switches == 0 {
            return Err(refused("no switches: record with perf sched record"));
        }
        let whole = all.active.contains(&0);
        if !whole && switches >= ENOUGH && unseen * 100 > switches * UNSEEN_PERCENT {
            return Err(refused(
                "the switches of some tasks alone: record with perf sched record, or with -a",
            ));
        }
        all.cpus.retain(|_, cpu| cpu.last_time > 0);
        // Those of one time stay in the order of the file.
        all.sides.sort_by_key(|side| side.time);
        for side in &all.sides {
            if let SideKind::Fork { tid, .. } = side.what {
                all.forks.entry(tid).or_default().push(side.time);
            }
        }
        for times in all.deaths.values_mut().chain(all.gone.values_mut()) {
            times.sort_unstable();
        }
        Ok(all)
    }

    fn take(&mut self, record: Record<'_>, formats: &Formats) -> Result<(), Error> {
        let Record { time, cpu, what } = record;
        match what {
            What::Sample { tracepoint, raw } => {
                let tracepoint = formats.by_id.get(&tracepoint);
                let (Some(tracepoint), Some(cpu)) = (tracepoint, cpu) else {
                    return Ok(());
                };
                self.sample(time, cpu, tracepoint, raw)?;
            }
            What::Lost { count } => {
                let cpu = cpu.unwrap_or(0);
                let since = self.cpus.get(&cpu).map_or(0, |cpu| cpu.last_time);
                self.losses.push(Loss {
                    cpu,
                    since,
                    until: time.max(since),
                    count,
                });
            }
            What::Fork {
                pid,
                tid,
                ppid,
                ptid,
            } => self.side(record, || SideKind::Fork {
                tgid: pid,
                tid,
                parent_tgid: ppid,
                parent_tid: ptid,
            })?,
            What::Exit { pid, tid } => {
                if let Some(cpu) = cpu {
                    self.cpus.entry(cpu).or_default().exiting.push(tid);
                }
                self.side(record, || SideKind::Exit { tgid: pid, tid })?;
            }
            What::Comm {
                pid,
                tid,
                comm,
                exec,
            } => {
                if exec && time > 0 {
                    self.new.insert(pid);
                }
                self.side(record, || SideKind::Comm {
                    tgid: pid,
                    tid,
                    comm: Comm::new(comm),
                    exec,
                })?;
            }
            What::Map { pid, file } => {
                // perf names what is no file [vdso] or //anon.
                let is_file = file.starts_with(b"/") && !file.starts_with(b"//");
                if time > 0 && is_file && self.new.remove(&pid) {
                    let file = self.name(file);
                    self.side(record, || SideKind::Mapped { tgid: pid, file })?;
                }
            }
        }
        if let Some(cpu) = cpu.and_then(|cpu| self.cpus.get_mut(&cpu)) {
            cpu.last_time = cpu.last_time.max(time);
        }
        Ok(())
    }

    fn sample(
        &mut self,
        time: u64,
        number: u16,
        tracepoint: &Tracepoint,
        raw: &[u8],
    ) -> Result<(), Error> {
        let (first, last) = self.span.unwrap_or((time, time));
        self.span = Some((first.min(time), last.max(time)));
        let short = || damaged("a tracepoint's record is shorter than its format");
        let cpu = self.cpus.entry(number).or_default();
        match tracepoint {
            Tracepoint::Switch {
                prev,
                state,
                next,
                states,
            } => {
                let prev = prev.tid(raw).ok_or_else(short)?;
                let next = next.tid(raw).ok_or_else(short)?;
                let (state, _) = states.of(state.of(raw).ok_or_else(short)?);
                self.active.insert(prev);
                if next != 0 {
                    self.active.insert(next);
                }
                if cpu.first.is_none_or(|(first, _)| time < first) {
                    cpu.first = Some((time, prev));
                }
                cpu.switches += 1;
                cpu.unseen += u64::from(cpu.current.is_some_and(|current| current != prev));
                cpu.current = Some(next);
                for tid in cpu.exiting.drain(..) {
                    self.gone.entry(tid).or_default().push(time);
                }
                if state & super::DEAD != 0 {
                    self.deaths.entry(prev).or_default().push(time);
                }
            }
            Tracepoint::Exec { tid, old, filename } => {
                let tid = tid.tid(raw).ok_or_else(short)?;
                let old = old.tid(raw).ok_or_else(short)?;
                let file = self.name(filename.text(raw).ok_or_else(short)?);
                let what = SideKind::Exec { tid, old, file };
                self.push(Side {
                    time,
                    cpu: Some(number),
                    what,
                })?;
            }
            Tracepoint::Wakeup { wakee, .. } | Tracepoint::New { wakee, .. } => {
                self.active.insert(wakee.tid(raw).ok_or_else(short)?);
            }
        }
        Ok(())
    }

    fn side(&mut self, record: Record<'_>, what: impl FnOnce() -> SideKind) -> Result<(), Error> {
        self.push(Side {
            time: record.time,
            cpu: record.cpu,
            what: what(),
        })
    }

    fn push(&mut self, side: Side) -> Result<(), Error> {
        if self.sides.len() >= SIDES {
            return Err(Error::Count {
                format: "perf.data",
                what: "forks, execs, exits and names",
                limit: SIDES,
            });
        }
        self.sides.push(side);
        Ok(())
    }

    /// A file's name, once for all programs of it.
    fn name(&mut self, file: &[u8]) -> Arc<[u8]> {
        if let Some(known) = self.files.get(file) {
            return known.clone();
        }
        let new: Arc<[u8]> = file.into();
        self.files.insert(new.clone());
        new
    }
}
