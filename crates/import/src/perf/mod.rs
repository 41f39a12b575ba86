//! A file of `perf sched record` as a trace.
//!
//! The file is read twice: what happened to tasks has to be known before the metadata is
//! written, and the switches of a long recording do not fit into memory.
//!
//! ```text
//! sched_switch, sched_waking        → the CPU's stream, as they come
//! FORK, COMM, EXIT, MMAP2, LOST     → lifecycle events, sorted
//! tasks that perf found in /proc    → snapshots
//! ```
//!
//! Written against tools/perf/util/session.c and include/uapi/linux/perf_event.h. The crate
//! linux-perf-data reserves what a section's length says and keeps all records of a round,
//! so that a file from a stranger could take all memory.

mod bytes;
mod collect;
mod file;
mod life;
mod records;
mod tracing;

use std::io::Write;

use tr_format::event::{
    Argv, Clock, Context, CpuId, Ktime, LifeKind, Reason, SchedEvent, SchedKind, Tgid, Tid,
};
use tr_format::meta::{
    EndReason, Facts, Known, Metadata, Method, Options, Origin, Scope, StateName, Summary,
};
use tr_format::writer::{Writer, Written};

use crate::Error;
use collect::Collected;
use file::{damaged, feature, refused, sample, File};
use life::{named, Lives, Root};
use records::{Record, What};
use tracing::{Common, Formats, Tracepoint};

/// `TASK_DEAD`: a task's last switch-out.
const DEAD: u16 = 0x80;
/// Bits of `common_flags` (include/linux/trace_events.h).
const HARDIRQ: u64 = 0x08;
const SOFTIRQ: u64 = 0x10;

/// A file of `perf sched record`, of which the first pass is done.
#[derive(Debug)]
pub struct Perf<'a> {
    /// The metadata of the trace. Its command may be changed before [`Perf::write`]: the
    /// program that perf has started gets it as its arguments.
    pub meta: Metadata,
    file: File<'a>,
    formats: Formats,
    lives: Lives,
    summary: Summary,
    waking: bool,
}

/// The bytes begin as a perf.data file does.
pub fn is_perf(bytes: &[u8]) -> bool {
    bytes.starts_with(b"PERFILE2") || bytes.starts_with(b"2ELIFREP")
}

impl<'a> Perf<'a> {
    /// Reads a file once.
    ///
    /// # Errors
    /// It is damaged or too large, or lacks the switches of whole CPUs, their times or the
    /// formats of the tracepoints.
    pub fn read(bytes: &'a [u8], tool_version: &str) -> Result<Perf<'a>, Error> {
        let file = File::read(bytes)?;
        check(&file)?;
        let formats = file.feature(feature::TRACING_DATA);
        let formats = formats.ok_or_else(|| {
            refused("without the tracepoints' formats: perf did not end properly, or recorded no tracepoints")
        })?;
        let formats = Formats::read(formats)?;
        let all = Collected::read(&file, &formats)?;
        let span = all.span.ok_or_else(|| damaged("no samples"))?;
        let lives = Lives::new(&all, span.0, &file.cmdline());
        let recorded = |is: fn(&Tracepoint) -> bool| {
            let ids = file.attrs.iter().filter_map(|attr| attr.tracepoint);
            ids.filter_map(|id| formats.by_id.get(&id)).any(is)
        };
        let waking = recorded(|it| matches!(it, Tracepoint::Wakeup { waking: true, .. }));
        let wakings = recorded(|it| matches!(it, Tracepoint::Wakeup { .. }));
        let mut meta = metadata(&file, &all, wakings);
        meta.tool_version = tool_version.to_owned();
        meta.page_size = formats.page_size;
        let mut span = (span.0, span.1);
        if let Some(root) = &lives.root {
            span = (root.start, root.end.unwrap_or(span.1).max(root.start));
            meta.root = Some(Tgid(root.tgid));
            meta.command = command(&file.cmdline(), root);
        }
        let clock = |at: u64| Clock {
            boot: at,
            real: file.wall().map_or(0, |wall| {
                let real = i128::from(wall.real) + i128::from(at) - i128::from(wall.at);
                u64::try_from(real).unwrap_or(0)
            }),
        };
        (meta.start, meta.start_clock) = (Ktime(span.0), clock(span.0));
        let summary = Summary {
            end: Ktime(span.1),
            end_clock: clock(span.1),
            reason: match lives.root {
                Some(Root { end: Some(_), .. }) => EndReason::CommandEnded,
                _ => EndReason::Signal,
            },
            ..Summary::default()
        };
        Ok(Perf {
            meta,
            file,
            formats,
            lives,
            summary,
            waking,
        })
    }

    /// Writes the trace: reads the file for the second time.
    ///
    /// # Errors
    /// Writing fails.
    pub fn write<W: Write>(self, out: W) -> Result<(W, Written), Error> {
        let mut writer = Writer::new(out, &self.meta)?;
        let root = self.lives.root;
        for (stream, mut event) in self.lives.events {
            if let LifeKind::Exec(exec) = &mut event.kind {
                let is_root = |root: &Root| (root.tgid, root.start) == (exec.tgid.0, event.time.0);
                if root.is_some_and(|root| is_root(&root)) && !self.meta.command.is_empty() {
                    exec.argv = Argv::from_args(&self.meta.command);
                } else {
                    exec.argv.full_len = None;
                }
            }
            writer.life(stream, event)?;
        }
        self.file.records(|record| {
            if let Some((cpu, event)) = sched(&record, &self.formats, self.waking) {
                writer.sched(cpu, event)?;
            }
            Ok::<_, Error>(())
        })?;
        Ok(writer.finish(&self.summary)?)
    }
}

/// Samples need a time and a CPU, in places that the first event tells of all.
fn check(file: &File<'_>) -> Result<(), Error> {
    let needed = sample::TIME | sample::CPU;
    let mut attrs = file.attrs.iter();
    if !attrs.all(|attr| attr.sample_type & needed == needed && attr.sample_id_all) {
        return Err(refused(
            "events without time and CPU: record with perf sched record",
        ));
    }
    let mut attrs = file.attrs.iter();
    if attrs.any(|attr| attr.sample_type & sample::READ != 0) {
        return Err(refused(
            "samples with values of counters, which are not read",
        ));
    }
    let identified = |bits: u64| bits & sample::IDENTIFIER != 0;
    let types: Vec<u64> = file.attrs.iter().map(|attr| attr.sample_type).collect();
    let differ = types.windows(2).any(|pair| pair.first() != pair.last());
    let trailer = sample::TID | sample::TIME | sample::ID | sample::STREAM_ID | sample::CPU;
    let trailers = types.windows(2).any(|pair| {
        let parts = |at: Option<&u64>| at.map(|bits| bits & trailer);
        parts(pair.first()) != parts(pair.last())
    });
    let several = types.len() > 1;
    if trailers || (several || differ) && !types.iter().all(|bits| identified(*bits)) {
        return Err(refused("events of different kinds without identifiers"));
    }
    Ok(())
}

fn metadata(file: &File<'_>, all: &Collected, wakings: bool) -> Metadata {
    let seen: Vec<CpuId> = all.cpus.keys().map(|cpu| CpuId(*cpu)).collect();
    let online = file.online().unwrap_or(0).min(u32::from(u16::MAX)) as u16;
    // perf opens each event once for each CPU that it records.
    let recorded = file.attrs.iter().map(|attr| attr.ids).max().unwrap_or(0);
    let all_cpus = recorded == 0 || recorded >= usize::from(online);
    let mut cpus: Vec<CpuId> = (0..online).map(CpuId).collect();
    cpus.extend(seen.iter().filter(|cpu| cpu.0 >= online));
    let unknown = |known: bool| if known { Known::Kernel } else { Known::Absent };
    let text = |bit| file.text(bit).unwrap_or_default();
    Metadata {
        host: text(feature::HOSTNAME),
        kernel: format!("Linux {}", text(feature::OSRELEASE)),
        machine: text(feature::ARCH),
        cpus,
        scope: Scope::All,
        states: StateName::of_linux(),
        options: Options {
            cpus: if all_cpus { Vec::new() } else { seen },
            irq_known: true,
            ..Options::default()
        },
        recorder: Some(format!("perf {}", text(feature::VERSION)).trim().to_owned()),
        origin: Some(Origin {
            method: Method::Bpf,
            facts: Facts {
                switches: Known::Kernel,
                wakings: unknown(wakings),
                run_queue: unknown(wakings),
                blocked: Known::Kernel,
                life_times: Known::Kernel,
                argv: Known::Absent,
                codes: Known::Absent,
                memory: Known::Absent,
            },
        }),
        ..Metadata::default()
    }
}

/// The end of perf's own arguments: from the first one on whose file's name is that of the
/// program that perf has started.
fn command(perf: &[Vec<u8>], root: &Root) -> Vec<Vec<u8>> {
    let is_program = |arg: &Vec<u8>| named(arg) == root.comm;
    // perf itself comes first.
    let at = perf.iter().skip(1).position(is_program);
    let rest = at.and_then(|at| perf.get(at + 1..));
    rest.map_or_else(|| vec![root.comm.bytes().to_vec()], <[_]>::to_vec)
}

/// A switch or a waking; `None` for another record. `waking`: `sched_waking` is recorded, and
/// `sched_wakeup` says the same again.
fn sched(record: &Record<'_>, formats: &Formats, waking: bool) -> Option<(CpuId, SchedEvent)> {
    let What::Sample { tracepoint, raw } = record.what else {
        return None;
    };
    let kind = match formats.by_id.get(&tracepoint)? {
        Tracepoint::Switch {
            prev,
            state,
            next,
            states,
        } => {
            let (prev_state, preempt) = states.of(state.of(raw)?);
            SchedKind::Switch {
                prev: Tid(prev.tid(raw)?),
                next: Tid(next.tid(raw)?),
                prev_state,
                preempt,
                iowait: false,
                reason: Reason::Unknown,
            }
        }
        Tracepoint::Wakeup {
            common,
            wakee,
            waking: is_waking,
        } if *is_waking == waking => woken(common, wakee.tid(raw)?, raw, false)?,
        Tracepoint::New { common, wakee } => woken(common, wakee.tid(raw)?, raw, true)?,
        Tracepoint::Wakeup { .. } | Tracepoint::Exec { .. } => return None,
    };
    let time = Ktime(record.time);
    Some((CpuId(record.cpu?), SchedEvent { time, kind }))
}

fn woken(common: &Common, wakee: u32, raw: &[u8], new: bool) -> Option<SchedKind> {
    let flags = common.flags.of(raw)?;
    let context = match (flags & HARDIRQ != 0, flags & SOFTIRQ != 0) {
        (true, _) => Context::HardIrq,
        (false, true) => Context::SoftIrq,
        (false, false) => Context::Task,
    };
    Some(SchedKind::Waking {
        waker: Tid(common.pid.tid(raw)?),
        wakee: Tid(wakee),
        context,
        new,
        vfork: false,
    })
}
