//! The block of lifecycle and recorder events: one after the other, integers
//! of variable length; zstd finds what repeats.

use crate::error::Corrupt;
use crate::event::{
    Argv, CgroupId, CgroupMove, CgroupPath, Clock, Comm, CpuId, Exec, Exit, Final, Fork, Ktime,
    LifeEvent, LifeKind, LossCause, Lost, Mark, Rename, Snapshot, Tgid, Tid,
};
use crate::frame::{stream_number, stream_of};
use crate::varint::{put, unzigzag, zigzag, Input};

/// Writes events; each time is the difference to the one before.
#[derive(Debug, Default)]
pub(crate) struct LifeEncoder {
    pub out: Vec<u8>,
    pub events: u32,
    pub span: Option<(Ktime, Ktime)>,
    time: u64,
}

fn some(value: Option<u64>) -> u64 {
    value.map_or(0, |value| value.saturating_add(1))
}

impl LifeEncoder {
    /// Appends an event.
    pub fn push(&mut self, event: &LifeEvent) {
        let time = event.time;
        self.events += 1;
        let (min, max) = self.span.unwrap_or((time, time));
        self.span = Some((min.min(time), max.max(time)));
        let mut fields = Fields(&mut self.out);
        fields.0.push(number(&event.kind));
        fields.int(zigzag(time.0.wrapping_sub(self.time).cast_signed()));
        self.time = time.0;
        fields.int(some(event.cpu.map(|cpu| u64::from(cpu.0))));
        fields.kind(event);
    }
}

fn number(kind: &LifeKind) -> u8 {
    match kind {
        LifeKind::Fork(_) => 1,
        LifeKind::Exec(_) => 2,
        LifeKind::Exit(_) => 3,
        LifeKind::Final(_) => 4,
        LifeKind::Rename(_) => 5,
        LifeKind::CgroupPath(_) => 6,
        LifeKind::CgroupMove(_) => 7,
        LifeKind::Snapshot(_) => 8,
        LifeKind::Lost(_) => 9,
        LifeKind::Clock(_) => 10,
        LifeKind::Progress => 11,
        LifeKind::Mark(_) => 12,
    }
}

struct Fields<'a>(&'a mut Vec<u8>);

impl Fields<'_> {
    fn int(&mut self, value: impl Into<u64>) {
        put(self.0, value.into());
    }

    fn bytes(&mut self, bytes: &[u8]) {
        self.int(bytes.len() as u64);
        self.0.extend_from_slice(bytes);
    }

    fn argv(&mut self, argv: &Argv) {
        self.int(some(argv.full_len.map(u64::from)));
        self.bytes(&argv.bytes);
    }

    fn kind(&mut self, event: &LifeEvent) {
        match &event.kind {
            LifeKind::Fork(e) => {
                self.int(e.parent_tid.0);
                self.int(e.parent_tgid.0);
                self.int(e.tid.0);
                self.int(e.tgid.0);
                // The kernel takes the start time shortly before the event.
                self.int(zigzag(
                    event.time.0.wrapping_sub(e.start_time.0).cast_signed(),
                ));
                self.int(zigzag(i64::from(e.tid.0) - i64::from(e.ns_tid.0)));
                self.int(e.cgroup.0);
                self.bytes(e.comm.bytes());
            }
            LifeKind::Exec(e) => {
                self.int(e.tid.0);
                self.int(e.tgid.0);
                self.int(e.old_tid.0);
                self.int(e.cgroup.0);
                self.bytes(e.comm.bytes());
                self.bytes(&e.filename);
                self.argv(&e.argv);
            }
            LifeKind::Exit(e) => {
                self.int(e.tid.0);
                self.int(e.tgid.0);
                self.int(e.status);
                self.int(u64::from(e.group_dead));
                self.int(e.group_status);
                for value in [
                    e.utime,
                    e.stime,
                    e.sum_exec_runtime,
                    e.nvcsw,
                    e.nivcsw,
                    e.min_flt,
                    e.maj_flt,
                    e.max_rss,
                    some(e.read_bytes),
                    some(e.write_bytes),
                ] {
                    self.int(value);
                }
            }
            LifeKind::Final(e) => {
                self.int(e.tid.0);
                self.int(e.sum_exec_runtime);
                self.int(e.nvcsw);
                self.int(e.nivcsw);
            }
            LifeKind::Rename(e) => {
                self.int(e.tid.0);
                self.int(e.tgid.0);
                self.bytes(e.comm.bytes());
            }
            LifeKind::CgroupPath(e) => {
                self.int(e.id.0);
                self.bytes(&e.path);
            }
            LifeKind::CgroupMove(e) => {
                self.int(e.tid.0);
                self.int(e.tgid.0);
                self.int(e.cgroup.0);
            }
            LifeKind::Snapshot(e) => {
                self.int(e.tid.0);
                self.int(e.tgid.0);
                self.int(e.parent_tgid.0);
                self.int(e.start_time.0);
                self.int(zigzag(i64::from(e.tid.0) - i64::from(e.ns_tid.0)));
                self.int(e.cgroup.0);
                self.bytes(e.comm.bytes());
                self.argv(&e.argv);
                self.int(e.state);
                let flags =
                    u64::from(e.on_cpu) | u64::from(e.kthread) << 1 | u64::from(e.followed) << 2;
                self.int(flags);
                self.int(e.sum_exec_runtime);
            }
            LifeKind::Lost(e) => {
                self.int(stream_number(e.stream));
                self.int(some(e.count));
                self.int(e.until.0.wrapping_sub(event.time.0));
                self.int(cause_number(e.cause));
            }
            LifeKind::Clock(e) => {
                self.int(e.boot);
                self.int(e.real);
            }
            LifeKind::Progress => {}
            LifeKind::Mark(e) => self.bytes(&e.name),
        }
    }
}

fn cause_number(cause: LossCause) -> u8 {
    match cause {
        LossCause::RingFull => 1,
        LossCause::Recursion => 2,
        LossCause::Output => 3,
        LossCause::FollowSet => 4,
        LossCause::Damage => 5,
    }
}

/// Reads `events` events.
pub(crate) fn decode(block: &[u8], events: u32, into: &mut Vec<LifeEvent>) -> Result<(), Corrupt> {
    let mut input = Input(block);
    let mut time = 0u64;
    for _ in 0..events {
        let number = input.u8()?;
        time = time.wrapping_add(unzigzag(input.u64()?).cast_unsigned());
        let cpu = match input.u64()? {
            0 => None,
            cpu => Some(CpuId(
                u16::try_from(cpu - 1).map_err(|_| Corrupt("a CPU's number is too large"))?,
            )),
        };
        let kind = kind(&mut input, number, time)?;
        into.push(LifeEvent {
            time: Ktime(time),
            cpu,
            kind,
        });
    }
    Ok(())
}

fn optional(input: &mut Input<'_>) -> Result<Option<u64>, Corrupt> {
    Ok(input.u64()?.checked_sub(1))
}

fn argv(input: &mut Input<'_>) -> Result<Argv, Corrupt> {
    let full_len = optional(input)?
        .map(|len| u32::try_from(len).map_err(|_| Corrupt("an argv's length is too large")))
        .transpose()?;
    Ok(Argv {
        bytes: input.counted()?.into(),
        full_len,
    })
}

fn near(input: &mut Input<'_>, tid: Tid) -> Result<Tid, Corrupt> {
    let near = i64::from(tid.0).wrapping_sub(unzigzag(input.u64()?));
    Ok(Tid(
        u32::try_from(near).map_err(|_| Corrupt("a task id is too large"))?
    ))
}

fn comm(input: &mut Input<'_>) -> Result<Comm, Corrupt> {
    Ok(Comm::new(input.counted()?))
}

fn kind(input: &mut Input<'_>, number: u8, time: u64) -> Result<LifeKind, Corrupt> {
    Ok(match number {
        1 => {
            let (parent_tid, parent_tgid) = (Tid(input.u32()?), Tgid(input.u32()?));
            let (tid, tgid) = (Tid(input.u32()?), Tgid(input.u32()?));
            let start_time = Ktime(time.wrapping_sub(unzigzag(input.u64()?).cast_unsigned()));
            let ns_tid = near(input, tid)?;
            let cgroup = CgroupId(input.u64()?);
            let comm = comm(input)?;
            LifeKind::Fork(Fork {
                parent_tid,
                parent_tgid,
                tid,
                tgid,
                start_time,
                ns_tid,
                cgroup,
                comm,
            })
        }
        2 => LifeKind::Exec(Exec {
            tid: Tid(input.u32()?),
            tgid: Tgid(input.u32()?),
            old_tid: Tid(input.u32()?),
            cgroup: CgroupId(input.u64()?),
            comm: comm(input)?,
            filename: input.counted()?.into(),
            argv: argv(input)?,
        }),
        3 => LifeKind::Exit(Exit {
            tid: Tid(input.u32()?),
            tgid: Tgid(input.u32()?),
            status: input.u32()?,
            group_dead: input.u64()? != 0,
            group_status: input.u32()?,
            utime: input.u64()?,
            stime: input.u64()?,
            sum_exec_runtime: input.u64()?,
            nvcsw: input.u64()?,
            nivcsw: input.u64()?,
            min_flt: input.u64()?,
            maj_flt: input.u64()?,
            max_rss: input.u64()?,
            read_bytes: optional(input)?,
            write_bytes: optional(input)?,
        }),
        4 => LifeKind::Final(Final {
            tid: Tid(input.u32()?),
            sum_exec_runtime: input.u64()?,
            nvcsw: input.u64()?,
            nivcsw: input.u64()?,
        }),
        5 => LifeKind::Rename(Rename {
            tid: Tid(input.u32()?),
            tgid: Tgid(input.u32()?),
            comm: comm(input)?,
        }),
        6 => LifeKind::CgroupPath(CgroupPath {
            id: CgroupId(input.u64()?),
            path: input.counted()?.into(),
        }),
        7 => LifeKind::CgroupMove(CgroupMove {
            tid: Tid(input.u32()?),
            tgid: Tgid(input.u32()?),
            cgroup: CgroupId(input.u64()?),
        }),
        8 => {
            let tid = Tid(input.u32()?);
            let (tgid, parent_tgid) = (Tgid(input.u32()?), Tgid(input.u32()?));
            let start_time = Ktime(input.u64()?);
            let ns_tid = near(input, tid)?;
            let cgroup = CgroupId(input.u64()?);
            let (comm, argv, state) = (comm(input)?, argv(input)?, input.u16()?);
            let flags = input.u64()?;
            let sum_exec_runtime = input.u64()?;
            let [on_cpu, kthread, followed] = [1, 2, 4].map(|bit| flags & bit != 0);
            LifeKind::Snapshot(Snapshot {
                tid,
                tgid,
                parent_tgid,
                start_time,
                ns_tid,
                cgroup,
                comm,
                argv,
                state,
                on_cpu,
                kthread,
                followed,
                sum_exec_runtime,
            })
        }
        9 => LifeKind::Lost(Lost {
            stream: stream_of(input.u16()?).ok_or(Corrupt("a stream's number is not given out"))?,
            count: optional(input)?,
            until: Ktime(time.wrapping_add(input.u64()?)),
            cause: match input.u8()? {
                1 => LossCause::RingFull,
                2 => LossCause::Recursion,
                3 => LossCause::Output,
                4 => LossCause::FollowSet,
                5 => LossCause::Damage,
                _ => return Err(Corrupt("a loss has an unknown cause")),
            },
        }),
        10 => LifeKind::Clock(Clock {
            boot: input.u64()?,
            real: input.u64()?,
        }),
        11 => LifeKind::Progress,
        12 => LifeKind::Mark(Mark {
            name: input.counted()?.into(),
        }),
        _ => return Err(Corrupt("an event is of an unknown kind")),
    })
}
