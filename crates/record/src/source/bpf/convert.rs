//! Converts wire events (sent by the BPF programs) to stored events (kept in the trace), with one function for each
//! kind. Only sums (`calls`, `devices`, `others`) are converted in their own modules.

use std::sync::Arc;

use tr_bpf::wire;
use tr_format::container::{Container, Evidence, Server};
use tr_format::device::{DiskWait, SyncFile};
use tr_format::dns::{DnsAnswer, DnsQuery};
use tr_format::event::{
    Account, Argv, CgroupId, CgroupMove, CgroupPath, Comm, Context, CpuId, Delays, Exec, Exit,
    Final, Fork, Ktime, LifeEvent, LifeKind, LossCause, Lost, OomKill, Outsider, Pinned, Reason,
    Reclaim, Rename, SchedEvent, SchedKind, Snapshot, Stream, Switch, TaskEnd, Tgid, Tid, Timeout,
    Waking,
};
use tr_format::network::{
    Accepted, Address, Closed, Connect, Connected, ConnectionId, Ending, Endpoint,
};
use tr_format::stack::Doing;
use zerocopy::FromBytes;

use super::dns;
use crate::disks;
use crate::proc;
use crate::scripts::Runner;
use crate::source::{recorder, ProgramClock};
use crate::stacks::{At, Stacked};

/// Converts a scheduling event of the BPF programs to a stored event; `None` for an unknown kind.
pub fn sched(event: &wire::Sched) -> Option<SchedEvent> {
    let flag = |flag: wire::SchedFlag| u32::from(event.flags) & flag.0 != 0;
    let (from, to) = (Tid(event.from), Tid(event.to));
    let kind = match event.kind {
        wire::SchedKind::SCHED_SWITCH => SchedKind::Switch(Switch {
            prev: from,
            next: to,
            prev_state: event.state,
            preempt: flag(wire::SchedFlag::SCHED_PREEMPT),
            iowait: flag(wire::SchedFlag::SCHED_IOWAIT),
            reason: Reason::of(event.reason.0 as u8),
            timeout: Timeout::of(event.timeout),
        }),
        wire::SchedKind::SCHED_WAKING | wire::SchedKind::SCHED_WAKEUP_NEW => {
            SchedKind::Waking(Waking {
                waker: from,
                wakee: to,
                context: match wire::WakingContext(event.state.into()) {
                    wire::WakingContext::CONTEXT_HARDIRQ => Context::HardIrq,
                    wire::WakingContext::CONTEXT_SOFTIRQ => Context::SoftIrq,
                    wire::WakingContext::CONTEXT_SEND => Context::SendSoftIrq,
                    _ => Context::Task,
                },
                new: event.kind == wire::SchedKind::SCHED_WAKEUP_NEW,
                vfork: flag(wire::SchedFlag::SCHED_VFORK),
            })
        }
        _ => return None,
    };
    Some(SchedEvent {
        time: Ktime(event.time),
        kind,
    })
}

/// Converts a loss of scheduling events, which the BPF programs report in the buffer (slots) of a CPU.
pub fn lost(cpu: CpuId, lost: &wire::Lost) -> LifeEvent {
    buffer_full(Stream::Cpu(cpu), lost.since, lost.until, lost.count)
}

/// Makes the event for a loss of `count` events for which a buffer of the BPF programs had no room. The first event was
/// lost at `since` and the last one at `until` (ns).
pub fn buffer_full(stream: Stream, since: u64, until: u64, count: u64) -> LifeEvent {
    let lost = Lost {
        stream,
        count: Some(count),
        until: Ktime(until),
        cause: LossCause::BufferFull,
    };
    recorder(Ktime(since), LifeKind::Lost(lost))
}

/// Converts one record of the BPF programs to the lifecycle events that are stored: none for an unknown kind, two for a
/// move to a cgroup (its path, the move). `page` is the size of a page in bytes.
pub fn life(record: &[u8], page: u64) -> Vec<LifeEvent> {
    let Some(head) = parse::<wire::Head>(record) else {
        return Vec::new();
    };
    let kinds = match head.kind() {
        wire::Kind::LIFE_FORK => parse(record).map(fork),
        wire::Kind::LIFE_EXEC => exec(record, page),
        wire::Kind::LIFE_END => parse(record).map(|event| end(&event, page)),
        wire::Kind::LIFE_LAST => parse(record).map(|event: wire::TotalLast| total(&event.total)),
        wire::Kind::LIFE_EXIT => parse(record).map(|event| exit(event, page)),
        wire::Kind::LIFE_FINAL => parse(record).map(last),
        wire::Kind::LIFE_RENAME => parse(record).map(rename),
        wire::Kind::LIFE_CGROUP_MKDIR => {
            parse(record).map(|event: wire::Cgroup| cgroup_path(&event))
        }
        wire::Kind::LIFE_CGROUP_MOVE => {
            let Some(event) = parse::<wire::Cgroup>(record) else {
                return Vec::new();
            };
            let path = at(&head, cgroup_path(&event));
            let moved = CgroupMove {
                tid: Tid(event.tid),
                tgid: Tgid(event.tgid),
                cgroup: CgroupId(event.id),
            };
            return vec![path, at(&head, LifeKind::CgroupMove(moved))];
        }
        wire::Kind::LIFE_CONNECT
        | wire::Kind::LIFE_CONNECTED
        | wire::Kind::LIFE_ACCEPTED
        | wire::Kind::LIFE_CLOSED => {
            parse(record).and_then(|event| connection(head.kind(), &event))
        }
        wire::Kind::LIFE_RECLAIM => parse(record).map(reclaim),
        wire::Kind::LIFE_OOM_KILL => parse(record).map(|event| oom_kill(event, page)),
        wire::Kind::LIFE_DNS_QUERY => parse(record).and_then(|event| dns_query(&event)),
        wire::Kind::LIFE_DNS_ANSWER => parse(record).and_then(|event| dns_answer(&event)),
        wire::Kind::LIFE_DISK_WAIT => parse(record).map(disk_wait),
        wire::Kind::LIFE_PINNED => parse(record).map(pinned),
        wire::Kind::LIFE_OUTSIDER => parse(record).map(outsider),
        wire::Kind::LIFE_CONTAINER => parse(record).map(container),
        wire::Kind::LIFE_SERVER => parse(record).map(server),
        wire::Kind::LIFE_SYNC_FILE => parse(record).map(|event| sync_file(&event)),
        wire::Kind::LIFE_JOIN => return join(record).into_iter().collect(),
        wire::Kind::LIFE_LOST => {
            let Some(event) = parse::<wire::LifeLost>(record) else {
                return Vec::new();
            };
            return vec![buffer_full(
                Stream::Lifecycle,
                head.time,
                event.until,
                event.count,
            )];
        }
        _ => None,
    };
    kinds.map(|kind| at(&head, kind)).into_iter().collect()
}

/// The sampled stack in a record of this kind.
pub fn stack(record: &[u8]) -> Option<Stacked> {
    let (sample, user) = sample(record)?;
    let user: Vec<At> = (0u64..)
        .zip(user)
        .filter_map(|(depth, frame)| user_frame(&frame, depth.min(1)))
        .collect();
    let depth = usize::try_from(sample.kernel_len).unwrap_or(0) / size_of::<u64>();
    let addresses = sample.kernel.get(..depth).unwrap_or(&sample.kernel);
    let kernel: Vec<At> = (0u64..)
        .zip(addresses.iter().filter(|address| **address != 0))
        .map(|(depth, address)| At::Kernel(address.wrapping_sub(depth.min(1))))
        .collect();
    Some(Stacked {
        time: Ktime(sample.head.time),
        cpu: u16::try_from(sample.head.cpu).ok().map(CpuId),
        tid: Tid(sample.tid),
        tgid: Tgid(sample.tgid),
        doing: match sample.off_cpu {
            0 => Doing::OnCpu,
            _ => Doing::OffCpu,
        },
        ns: sample.ns,
        image: (sample.seen_tgid, sample.arguments),
        cut: user.len().max(kernel.len()) >= wire::SAMPLE_DEPTH,
        frames: user
            .into_iter()
            .rev()
            .chain(kernel.into_iter().rev())
            .collect(),
    })
}

/// The sample of a stack in a record of this kind, and its frames in user mode, innermost first.
pub fn sample(
    record: &[u8],
) -> Option<(wire::Sample, impl Iterator<Item = wire::StackFrame> + '_)> {
    let (sample, tail) = wire::Sample::read_from_prefix(record).ok()?;
    let used = usize::try_from(sample.user_len).unwrap_or(0);
    let frames = tail.get(..used).unwrap_or(tail);
    let frames = frames.chunks_exact(size_of::<wire::StackFrame>());
    let frames = frames.filter_map(|bytes| wire::StackFrame::read_from_bytes(bytes).ok());
    Some((sample, frames))
}

/// The place in code that a frame of a sampled stack in user mode points to. `back` is subtracted from the address: 1
/// for a caller, because its return address can be in the next function, else 0.
fn user_frame(frame: &wire::StackFrame, back: u64) -> Option<At> {
    let at = frame.at.saturating_sub(back);
    match frame.status {
        // For an address outside of all mappings, the kernel takes the next mapping (kernel/bpf/stackmap.c,
        // find_vma()), which is mostly the program's first one. The offset is then negative. Such a frame is dropped.
        wire::FRAME_IN_FILE if frame.at > i64::MAX as u64 => None,
        wire::FRAME_IN_FILE => Some(At::File(frame.build_id, at)),
        wire::FRAME_ADDRESS if frame.at != 0 => Some(At::Process(at)),
        _ => None,
    }
}

/// The user, the group and the root directory of the task that executes a program, from the BPF programs' record of an
/// exec.
pub fn runner(record: &[u8]) -> Option<Runner> {
    let exec = parse::<wire::Exec>(record)?;
    Some(Runner {
        fsuid: exec.fsuid,
        fsgid: exec.fsgid,
        root_mount: u64::try_from(exec.root_mount).ok(),
    })
}

/// The clock of a process in another time namespace.
pub fn clock(clock: &wire::Clock) -> ProgramClock {
    ProgramClock {
        pids: [clock.tgid, clock.ns_tgid],
        offset: i128::from(clock.seconds) * 1_000_000_000 + i128::from(clock.ns),
    }
}

/// The task and its working directory, from a record of this kind. The path is empty if it is not known.
pub fn directory(record: &[u8]) -> Option<(Tid, Arc<[u8]>)> {
    let (head, rest) = DirectoryHead::read_from_prefix(record).ok()?;
    let length = usize::try_from(head.length).ok();
    let names = length.and_then(|length| rest.get(..length));
    let Some(names) = names else {
        return Some((Tid(head.tid), Arc::default()));
    };
    let names = names
        .split(|byte| *byte == 0)
        .filter(|name| !name.is_empty());
    let names: Vec<&[u8]> = names.collect();
    let mut path = Vec::new();
    for name in names.into_iter().rev() {
        path.push(b'/');
        path.extend_from_slice(name);
    }
    if path.is_empty() {
        path.push(b'/');
    }
    Some((Tid(head.tid), path.into()))
}

/// The BPF programs' record of a working directory, without the unused part of its area for names.
pub fn used_part_of_directory(record: &[u8]) -> Option<&[u8]> {
    let (head, rest) = DirectoryHead::read_from_prefix(record).ok()?;
    let used = usize::try_from(head.length).unwrap_or(0).min(rest.len());
    record.get(..record.len() - rest.len() + used)
}

/// The beginning of a [`wire::Directory`] before its names. A drained record has only the used part of the names.
#[repr(C)]
#[derive(FromBytes)]
struct DirectoryHead {
    head: wire::Head,
    tid: u32,
    length: i32,
}

/// The kind of a record of the BPF programs; 0, which no kind has, if the record is too short.
pub fn kind(record: &[u8]) -> wire::Kind {
    parse(record).map_or(wire::Kind(0), |head: wire::Head| head.kind())
}

/// Reads a struct from the beginning of a record of the BPF programs; `None` if the record is too short.
pub fn parse<T: FromBytes>(record: &[u8]) -> Option<T> {
    T::read_from_prefix(record).ok().map(|(event, _)| event)
}

fn at(head: &wire::Head, kind: LifeKind) -> LifeEvent {
    LifeEvent {
        time: Ktime(head.time),
        cpu: u16::try_from(head.cpu).ok().map(CpuId),
        kind,
    }
}

fn fork(event: wire::Fork) -> LifeKind {
    LifeKind::Fork(Fork {
        parent_tid: Tid(event.parent_tid),
        parent_tgid: Tgid(event.parent_tgid),
        tid: Tid(event.tid),
        tgid: Tgid(event.tgid),
        start_time: Ktime(event.start_time),
        ns_tid: Tid(event.ns_tid),
        cgroup: CgroupId(event.cgroup),
        comm: Comm::new(&event.comm),
    })
}

fn exec(record: &[u8], page: u64) -> Option<LifeKind> {
    let (event, tail) = wire::Exec::read_from_prefix(record).ok()?;
    let filename = tail.get(..event.filename_len as usize)?;
    let start = event.filename_area as usize;
    let argv = tail.get(start..start.checked_add(event.argv_len as usize)?)?;
    Some(LifeKind::Exec(Exec {
        tid: Tid(event.tid),
        tgid: Tgid(event.tgid),
        old_tid: Tid(event.old_tid),
        comm: Comm::new(&event.comm),
        filename: filename.strip_suffix(b"\0").unwrap_or(filename).into(),
        argv: Argv {
            bytes: argv.into(),
            full_len: (event.argv_unknown == 0)
                .then_some(u32::try_from(event.argv_full_len).unwrap_or(u32::MAX)),
        },
        cgroup: CgroupId(event.cgroup),
        directory: Arc::default(),
        max_rss: Some(event.max_rss_pages.saturating_mul(page)),
    }))
}

fn exit(event: wire::Exit, page: u64) -> LifeKind {
    let io = |bytes| (event.io_known != 0).then_some(bytes);
    LifeKind::Exit(Exit {
        tid: Tid(event.tid),
        tgid: Tgid(event.tgid),
        status: event.status,
        group_dead: event.group_dead != 0,
        group_status: event.group_status,
        utime: event.utime,
        stime: event.stime,
        sum_exec_runtime: event.sum_exec_runtime,
        nvcsw: event.nvcsw,
        nivcsw: event.nivcsw,
        min_flt: event.min_flt,
        maj_flt: event.maj_flt,
        max_rss: event.max_rss_pages.saturating_mul(page),
        read_bytes: io(event.read_bytes),
        write_bytes: io(event.write_bytes),
        program_rss: (event.program_rss_pages > 0)
            .then(|| event.program_rss_pages.saturating_mul(page)),
        delays: delays(&event.delays),
    })
}

fn delays(delays: &wire::Delays) -> Delays {
    let known =
        |bit: wire::DelayBit, value: u64| (delays.known & u64::from(bit.0) != 0).then_some(value);
    Delays {
        run: known(wire::DelayBit::DELAY_RUN, delays.run),
        block: known(wire::DelayBit::DELAY_BLOCK, delays.block),
        swap: known(wire::DelayBit::DELAY_SWAP, delays.swap),
    }
}

fn last(event: wire::Final) -> LifeKind {
    LifeKind::Final(Final {
        tid: Tid(event.tid),
        sum_exec_runtime: event.sum_exec_runtime,
        nvcsw: event.nvcsw,
        nivcsw: event.nivcsw,
        delays: delays(&event.delays),
    })
}

fn end(event: &wire::End, page: u64) -> LifeKind {
    let group_dead = event.group_dead != 0;
    LifeKind::End(TaskEnd {
        tid: Tid(event.total.tid),
        tgid: Tgid(event.total.tgid),
        status: Some(event.status),
        group_dead,
        max_rss: group_dead.then(|| event.max_rss_pages.saturating_mul(page)),
    })
}

pub fn total(total: &wire::Total) -> LifeKind {
    LifeKind::Account(Account {
        tid: Tid(total.tid),
        tgid: Tgid(total.tgid),
        sum_exec_runtime: total.sum_exec_runtime,
        run_delay: (total.run_delay_known != 0).then_some(total.run_delay),
        slices: None,
    })
}

fn rename(event: wire::Rename) -> LifeKind {
    LifeKind::Rename(Rename {
        tid: Tid(event.tid),
        tgid: Tgid(event.tgid),
        comm: Comm::new(&event.comm),
    })
}

fn reclaim(event: wire::Reclaim) -> LifeKind {
    LifeKind::Reclaim(Reclaim {
        tid: Tid(event.tid),
        tgid: Tgid(event.tgid),
        count: event.count,
        ns: event.ns,
    })
}

/// Converts the BPF programs' event about the disk that a task waits for. The disk's name is added later.
fn disk_wait(event: wire::DiskWait) -> LifeKind {
    LifeKind::DiskWait(Box::new(DiskWait {
        tid: Tid(event.tid),
        tgid: Tgid(event.tgid),
        device: (event.device > 0).then(|| disks::device(event.device)),
        name: Arc::default(),
    }))
}

fn sync_file(event: &wire::SyncFile) -> LifeKind {
    // The length includes the terminating NUL, which is left out here.
    let length = (event.length as usize).saturating_sub(1);
    LifeKind::SyncFile(Box::new(SyncFile {
        tid: Tid(event.tid),
        tgid: Tgid(event.tgid),
        name: event.name.get(..length).unwrap_or_default().into(),
    }))
}

fn pinned(event: wire::Pinned) -> LifeKind {
    LifeKind::Pinned(Pinned {
        tid: Tid(event.tid),
        tgid: Tgid(event.tgid),
        pinned: event.pinned != 0,
    })
}

fn outsider(event: wire::Outsider) -> LifeKind {
    LifeKind::Outsider(Box::new(Outsider {
        tid: Tid(event.tid),
        tgid: Tgid(event.tgid),
        start_time: Ktime(event.start_time),
        cgroup: CgroupId(event.cgroup),
        kthread: event.kthread != 0,
        comm: Comm::new(&event.comm),
    }))
}

/// Converts the BPF programs' event about a container. A second event, which the recorder makes from the exec of the
/// runtime, has the container's id and names.
fn container(event: wire::Container) -> LifeKind {
    LifeKind::Container(Box::new(Container {
        tid: Tid(event.tid),
        tgid: Tgid(event.tgid),
        client: Tgid(event.client),
        evidence: Evidence::of(event.evidence).unwrap_or(Evidence::Ambiguous),
        ..Container::default()
    }))
}

fn server(event: wire::Server) -> LifeKind {
    LifeKind::Server(Server {
        tid: Tid(event.tid),
        tgid: Tgid(event.tgid),
        client: Tgid(event.client),
        other: Tgid(event.other),
    })
}

fn oom_kill(event: wire::OomKill, page: u64) -> LifeKind {
    LifeKind::OomKill(OomKill {
        tid: Tid(event.tid),
        tgid: Tgid(event.tgid),
        resident: (event.pages > 0).then(|| event.pages.saturating_mul(page)),
    })
}

/// Converts the BPF programs' event about a change of a TCP connection. The event identifies the connection by a number
/// that the BPF programs have chosen. `None` if a needed address is neither an IPv4 nor an IPv6 address.
fn connection(kind: wire::Kind, event: &wire::Connection) -> Option<LifeKind> {
    let id = ConnectionId(event.socket);
    let end = |address: &[u8; 16], port| {
        let address = address_of(event.family, address)?;
        Some(Endpoint { address, port })
    };
    let local = || end(&event.local, event.local_port);
    let remote = || end(&event.remote, event.remote_port);
    let task = (event.tgid != 0).then_some((Tid(event.tid), Tgid(event.tgid)));
    Some(match kind {
        wire::Kind::LIFE_CONNECT => LifeKind::Connect(Connect {
            id,
            tid: Tid(event.tid),
            tgid: Tgid(event.tgid),
            remote: remote()?,
        }),
        wire::Kind::LIFE_CONNECTED => LifeKind::Connected(Connected {
            id,
            local: local()?,
        }),
        wire::Kind::LIFE_ACCEPTED => LifeKind::Accepted(Accepted {
            id,
            listener: task,
            local: local()?,
            remote: remote()?,
        }),
        _ => LifeKind::Closed(Closed {
            id,
            by: task,
            ending: ending(event, task.is_some()),
            sent: event.sent,
            received: event.received,
        }),
    })
}

/// The bytes of a DNS message that the BPF programs have copied.
fn message(event: &wire::Dns) -> &[u8] {
    let message = event.message.get(..event.length as usize);
    message.unwrap_or(&event.message)
}

/// Converts the BPF programs' event about a DNS query; `None` if the message is no query.
fn dns_query(event: &wire::Dns) -> Option<LifeKind> {
    let message = dns::parse(message(event)).filter(|message| !message.is_answer)?;
    Some(LifeKind::DnsQuery(Box::new(DnsQuery {
        tid: Tid(event.tid),
        tgid: Tgid(event.tgid),
        server: address_of(event.family, &event.server)?,
        port: event.port,
        id: message.id,
        kind: message.kind,
        name: message.name.into(),
    })))
}

/// Converts the BPF programs' event about a DNS answer; `None` if the message is a query. An answer that cannot be
/// parsed is kept without its contents.
fn dns_answer(event: &wire::Dns) -> Option<LifeKind> {
    let message = dns::parse(message(event));
    if message.as_ref().is_some_and(|message| !message.is_answer) {
        return None;
    }
    let addresses = message
        .as_ref()
        .map(|message| message.addresses.as_slice().into());
    Some(LifeKind::DnsAnswer(Box::new(DnsAnswer {
        server: address_of(event.family, &event.server)?,
        port: message.as_ref().map(|_| event.port),
        id: message.as_ref().map(|message| message.id),
        code: message.as_ref().map(|message| message.code),
        addresses: addresses.unwrap_or_default(),
    })))
}

/// The internet address in a record of the BPF programs. An IPv4 address in an IPv6 socket becomes an IPv4 address.
fn address_of(family: u16, bytes: &[u8; 16]) -> Option<Address> {
    match i32::from(family) {
        nix::libc::AF_INET => {
            let [a, b, c, d, ..] = *bytes;
            Some(Address::V4([a, b, c, d].into()))
        }
        nix::libc::AF_INET6 => {
            let ip = std::net::Ipv6Addr::from(*bytes);
            let mapped = ip.to_ipv4_mapped().map(Address::V4);
            Some(mapped.unwrap_or(Address::V6(ip)))
        }
        _ => None,
    }
}

/// The reason why a TCP connection ended. The socket's error says how the peer or the network ended the connection;
/// without an error, the process ended it.
fn ending(event: &wire::Connection, by_process: bool) -> Ending {
    match i32::from(event.error) {
        0 => match event.state {
            wire::TCP_SYN_SENT => Ending::Abandoned,
            // The process closed the connection in a way that made the kernel send a reset and not a FIN.
            wire::TCP_ESTABLISHED | wire::TCP_CLOSE_WAIT if event.reset != 0 && by_process => {
                Ending::Aborted
            }
            _ => Ending::Closed,
        },
        nix::libc::ECONNREFUSED => Ending::Refused,
        nix::libc::ECONNRESET | nix::libc::EPIPE => Ending::Reset,
        nix::libc::ETIMEDOUT => Ending::TimedOut,
        nix::libc::EHOSTUNREACH | nix::libc::ENETUNREACH => Ending::Unreachable,
        _ => Ending::Failed,
    }
}

fn cgroup_path(event: &wire::Cgroup) -> LifeKind {
    let path = event
        .path
        .get(..event.path_len as usize)
        .unwrap_or(&event.path);
    let path = path.strip_suffix(b"\0").unwrap_or(path).into();
    LifeKind::CgroupPath(CgroupPath {
        id: CgroupId(event.id),
        path,
    })
}

/// Converts the BPF programs' event about a task that came into the followed cgroup. If the record lacks the arguments,
/// they are read from `/proc`, provided that the process still has the same name.
fn join(record: &[u8]) -> Option<LifeEvent> {
    let (event, tail) = wire::Join::read_from_prefix(record).ok()?;
    let task = &event.task;
    let argv = if task.tid != task.tgid {
        Argv::from_args([""; 0])
    } else if event.argv_unknown == 0 {
        Argv {
            bytes: tail.get(..event.argv_len as usize)?.into(),
            full_len: u32::try_from(event.argv_full_len).ok(),
        }
    } else {
        proc::cmdline_of(task.seen_tid, &Comm::new(&task.comm)).unwrap_or_default()
    };
    Some(snapshot(task, argv))
}

/// Makes the snapshot event of a living task from what the BPF programs know of it. `argv` is empty unless the task is
/// followed.
pub fn snapshot(task: &wire::Snapshot, argv: Argv) -> LifeEvent {
    let snapshot = Snapshot {
        tid: Tid(task.tid),
        tgid: Tgid(task.tgid),
        parent_tgid: Tgid(task.parent_tgid),
        start_time: Ktime(task.start_time),
        ns_tid: Tid(task.ns_tid),
        cgroup: CgroupId(task.cgroup),
        comm: Comm::new(&task.comm),
        argv,
        state: task.state,
        on_cpu: task.on_cpu != 0,
        kthread: task.kthread != 0,
        followed: task.followed != 0,
        sum_exec_runtime: task.sum_exec_runtime,
    };
    recorder(Ktime(task.time), LifeKind::Snapshot(snapshot))
}

#[cfg(test)]
#[path = "tests/convert.rs"]
mod tests;
