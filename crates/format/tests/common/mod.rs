//! Makes artificial recordings with every kind of event, for several tests.
#![allow(dead_code, clippy::unwrap_used)]

use tr_format::container::{Container, Evidence, Server};
use tr_format::counters::{CallSum, Counter, Counters, SystemCalls};
use tr_format::device::{Block, Device, DiskWait, SyncFile, BUCKETS};
use tr_format::dns::{DnsAnswer, DnsQuery};
use tr_format::event::*;
use tr_format::mask::Masked;
use tr_format::meta::{
    Known, Metadata, Method, Options, Origin, RecordingFacts, Scope, StateName, Summary,
};
use tr_format::network::{
    Accepted, Address, Closed, Connect, Connected, ConnectionId, Ending, Endpoint,
};
use tr_format::stack::{Doing, FileId, Function, Module, Place, Sample, Symbol};
use tr_format::writer::Writer;

/// The CPU time of the calling thread. Unlike the time on the clock, it does not depend on other load of the machine.
pub fn cpu_time() -> std::time::Duration {
    let clock = nix::time::ClockId::CLOCK_THREAD_CPUTIME_ID;
    nix::time::clock_gettime(clock).unwrap().into()
}

pub type Item = (Stream, Event);

#[derive(Clone, Debug, PartialEq)]
pub enum Event {
    Sched(SchedEvent),
    Life(LifeEvent),
}

pub fn meta() -> Metadata {
    Metadata {
        tool_version: "0.1.0".into(),
        host: "builder".into(),
        kernel: "Linux 6.18.0 #1 SMP".into(),
        machine: "x86_64".into(),
        cpus: vec![CpuId(0), CpuId(1)],
        page_size: 4096,
        start: Ktime(1_000_000_000),
        start_clock: Clock {
            boot: 1_000_000_500,
            real: 1_763_700_000_000_000_000,
        },
        scope: Scope::Command,
        command: vec![b"make".to_vec(), b"-j2".to_vec()],
        root: Some(Tgid(100)),
        cwd: b"/src/lua".to_vec(),
        states: vec![
            StateName {
                bit: 1,
                letter: 'S',
                name: "TASK_INTERRUPTIBLE".into(),
            },
            StateName {
                bit: 2,
                letter: 'D',
                name: "TASK_UNINTERRUPTIBLE".into(),
            },
        ],
        options: Options {
            argv_limit: 16384,
            cpus: vec![],
            buffer: 36 << 20,
            irq_known: true,
            allowed: Some(vec![CpuId(3), CpuId(0)]),
        },
        missing: vec![],
        ci: vec![("CI".into(), "true".into())],
        not_traced: Some("no BTF".into()),
        extras: Some(vec![0, 200]),
        recorder: Some("perf 6.1".into()),
        hardware: Some(vec![("cpu model".into(), "AMD EPYC".into())]),
        origin: Some(Origin {
            method: Method::Poll,
            facts: RecordingFacts {
                switches: Known::Absent,
                ..RecordingFacts::default()
            },
        }),
    }
}

/// A source of pseudo-random numbers, which are the same in each run of a test.
pub struct Dice(pub u64);

impl Dice {
    pub fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let x = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        x ^ (x >> 31)
    }

    pub fn below(&mut self, n: u64) -> u64 {
        self.next() % n
    }
}

fn life(time: u64, cpu: Option<u16>, kind: LifeKind) -> Event {
    Event::Life(LifeEvent {
        time: Ktime(time),
        cpu: cpu.map(CpuId),
        kind,
    })
}

/// Events of nearly every lifecycle kind, about a task with this tid. The function `recorder` makes the remaining
/// kinds.
pub fn lifecycle(time: u64, tid: u32, dice: &mut Dice) -> Vec<Event> {
    let argv = Argv::from_args([
        &b"/usr/lib/gcc/cc1"[..],
        b"-quiet",
        b"",
        format!("l{tid}.c").as_bytes(),
    ]);
    let cut = Argv {
        bytes: (*b"sh\0-c").into(),
        full_len: Some(40_000),
    };
    let unknown = Argv {
        bytes: (*b"").into(),
        full_len: None,
    };
    let argv = match dice.below(4) {
        0 => cut,
        1 => unknown,
        _ => argv,
    };
    let (id, tgid) = (Tid(tid), Tgid(tid));
    vec![
        life(
            time,
            Some(1),
            LifeKind::Fork(Fork {
                parent_tid: Tid(100),
                parent_tgid: Tgid(100),
                tid: id,
                tgid,
                start_time: Ktime(time - 4000),
                ns_tid: Tid(tid % 90),
                cgroup: CgroupId(77),
                comm: Comm::new(b"make"),
            }),
        ),
        life(
            time + 10,
            Some(0),
            LifeKind::Fork(Fork {
                parent_tid: id,
                parent_tgid: tgid,
                tid: Tid(tid + 1),
                tgid,
                start_time: Ktime(time + 3),
                ns_tid: Tid(tid + 1),
                cgroup: CgroupId(78),
                comm: Comm::new(b"fifteen letters"),
            }),
        ),
        life(
            time + 50_000,
            Some(1),
            LifeKind::Exec(Exec {
                tid: id,
                tgid,
                old_tid: Tid(tid + 1),
                comm: Comm::new(b"cc1"),
                filename: (*b"/usr/lib/gcc/cc1").into(),
                argv: argv.clone(),
                cgroup: CgroupId(77),
                max_rss: (dice.below(3) > 0).then_some(4096 * dice.below(1 << 20)),
                directory: [&b""[..], b"/home/u/project"][dice.below(2) as usize].into(),
            }),
        ),
        life(
            time + 40_000,
            Some(1),
            LifeKind::Rename(Rename {
                tid: id,
                tgid,
                comm: Comm::new(b"worker/1"),
            }),
        ),
        life(
            time + 41_000,
            None,
            LifeKind::CgroupPath(CgroupPath {
                id: CgroupId(u64::MAX),
                path: (*b"/ci").into(),
            }),
        ),
        life(
            time + 42_000,
            Some(300),
            LifeKind::CgroupMove(CgroupMove {
                tid: id,
                tgid,
                cgroup: CgroupId(u64::MAX),
            }),
        ),
        life(
            time + 900_000,
            Some(1),
            LifeKind::Exit(Exit {
                tid: id,
                tgid,
                status: 0x100,
                group_dead: dice.below(2) == 0,
                group_status: 0x8b,
                utime: 4_000_000 * dice.below(9),
                stime: dice.below(1 << 30),
                sum_exec_runtime: dice.below(1 << 33),
                nvcsw: dice.below(9),
                nivcsw: dice.below(900),
                min_flt: dice.below(9000),
                maj_flt: 3,
                max_rss: 4096 * dice.below(1 << 20),
                read_bytes: Some(dice.below(1 << 40)),
                write_bytes: (dice.below(2) == 0).then_some(4096),
                program_rss: (dice.below(2) == 0).then_some(4096 * dice.below(1 << 20)),
                delays: delays(dice),
            }),
        ),
        life(
            time + 910_000,
            Some(1),
            LifeKind::Final(Final {
                tid: id,
                sum_exec_runtime: dice.below(1 << 33),
                nvcsw: 1,
                nivcsw: dice.next(),
                delays: delays(dice),
            }),
        ),
        life(
            time + 911_000,
            Some(1),
            LifeKind::Exit(Exit {
                tid: Tid(tid + 1),
                tgid,
                ..Exit::default()
            }),
        ),
        life(time + 912_000, None, account(id, tgid, dice)),
        life(time + 913_000, None, account(id, tgid, dice)),
        life(
            time + 914_000,
            None,
            LifeKind::Detached(Detached { tid: id, tgid }),
        ),
        life(
            time + 915_000,
            None,
            LifeKind::End(TaskEnd {
                tid: id,
                tgid,
                status: (dice.below(2) == 0).then_some(0x8b),
                group_dead: dice.below(2) == 0,
                max_rss: (dice.below(2) == 0).then_some(dice.below(1 << 40)),
            }),
        ),
    ]
    .into_iter()
    .chain(connections(time + 916_000, (id, tgid), dice))
    .chain(counters(time + 917_000, tgid, dice))
    .chain(memory(time + 918_000, id, tgid, dice))
    .chain(dns(time + 919_000, id, tgid, dice))
    .chain(stacks(time + 920_000, id, tgid, dice))
    .collect()
}

/// The events of two samples of the machine's counters, and of the system calls of one or two processes.
fn counters(time: u64, tgid: Tgid, dice: &mut Dice) -> [Event; 4] {
    let mut first = Counters::default();
    // Every third counter is missing, as if the kernel did not have it. The second sample is a copy of the first one,
    // so the same counters are missing there.
    for counter in Counter::ALL {
        if !(counter as u64).is_multiple_of(3) {
            first.set(counter, dice.below(1 << 50));
        }
    }
    let mut second = first.clone();
    second.set(Counter::Busy, dice.next());
    let calls = |dice: &mut Dice, since| {
        let process = Tgid(tgid.0.wrapping_sub(dice.below(2) as u32));
        let sums = (0..dice.below(4)).map(|number| CallSum {
            number: number as u32 * 70,
            compat: dice.below(4) == 0,
            count: dice.below(1 << 20),
            errors: dice.below(9),
            ns: dice.next(),
            longest: dice.next(),
        });
        LifeKind::SystemCalls(SystemCalls {
            tgid: process,
            since: Ktime(since),
            calls: sums.collect(),
        })
    };
    [
        life(time, None, LifeKind::Counters(first)),
        life(time + 10, None, calls(dice, time - 1_000_000)),
        life(time + 10, None, calls(dice, time - 1_000)),
        life(time + 20, None, LifeKind::Counters(second)),
    ]
}

/// The events of two TCP connections: one that a task begins, and one that a peer begins and that is closed.
fn connections(time: u64, task: (Tid, Tgid), dice: &mut Dice) -> [Event; 4] {
    let id = ConnectionId(dice.next());
    let end = |dice: &mut Dice| Endpoint {
        port: dice.next() as u16,
        address: match dice.below(3) {
            0 => Address::V4((dice.below(4) as u32).into()),
            1 => Address::V6(u128::from(dice.next()).into()),
            _ => Address::Masked(dice.below(3)),
        },
    };
    let connect = Connect {
        id,
        tid: task.0,
        tgid: task.1,
        remote: end(dice),
    };
    let local = end(dice);
    let accepted = Accepted {
        id: ConnectionId(dice.next()),
        listener: (dice.below(2) == 0).then_some(task),
        local: end(dice),
        remote: end(dice),
    };
    let closed = Closed {
        id: accepted.id,
        by: (dice.below(2) == 0).then_some(task),
        ending: Ending::of(dice.below(8) as u8),
        sent: dice.next(),
        received: dice.next(),
    };
    [
        life(time, Some(2), LifeKind::Connect(connect)),
        life(
            time + 50,
            Some(3),
            LifeKind::Connected(Connected { id, local }),
        ),
        life(time + 70, Some(0), LifeKind::Accepted(accepted)),
        life(time + 90, Some(0), LifeKind::Closed(closed)),
    ]
}

/// Events about memory and waits, such as reclaimed memory, a kill because memory ran out and a wait for a disk, and
/// events about tasks that are not recorded.
fn memory(time: u64, tid: Tid, tgid: Tgid, dice: &mut Dice) -> [Event; 10] {
    let device = (dice.below(3) > 0).then(|| Device {
        major: 259,
        minor: dice.below(2) as u32,
    });
    let file = SyncFile {
        tid,
        tgid,
        name: [&b"journal"[..], b"", b"db"][dice.below(3) as usize].into(),
    };
    let wait = DiskWait {
        tid,
        tgid,
        device,
        name: device.map_or(&b""[..], |_| b"nvme0n1").into(),
    };
    let reclaim = Reclaim {
        tid,
        tgid,
        count: dice.next(),
        ns: dice.next(),
    };
    let kill = OomKill {
        tid,
        tgid,
        resident: (dice.below(2) == 0).then(|| dice.below(1 << 40)),
    };
    let pinned = Pinned {
        tid,
        tgid,
        pinned: dice.below(2) == 0,
    };
    let outsider = Outsider {
        tid,
        tgid,
        start_time: Ktime(dice.next() >> dice.below(60)),
        cgroup: CgroupId(dice.next() >> dice.below(60)),
        kthread: dice.below(2) == 0,
        comm: Comm::new([&b"rustc"[..], b"", b"kworker/0:1"][dice.below(3) as usize]),
    };
    let container = Container {
        tid,
        tgid,
        client: Tgid(dice.below(3) as u32 * 1000),
        evidence: Evidence::ALL[dice.below(7) as usize],
        id: [&b""[..], b"27dee3c4bc5e"][dice.below(2) as usize].into(),
        name: [&b""[..], b"web"][dice.below(2) as usize].into(),
        image: [&b""[..], b"alpine:3"][dice.below(2) as usize].into(),
        throttled: (dice.below(2) == 0).then(|| dice.next() >> 1 >> dice.below(60)),
    };
    let is_first = dice.below(2) == 0;
    let server = Server {
        tid,
        tgid,
        client: Tgid(u32::from(is_first) * 1000),
        other: Tgid(u32::from(!is_first) * 2000),
    };
    let share = |dice: &mut Dice| Share {
        tgid: Tgid(dice.below(3) as u32 * 1000),
        comm: Comm::new([&b"rustc"[..], b"", b"kworker/0:1"][dice.below(3) as usize]),
        us: dice.next() >> dice.below(60),
    };
    let threads = Threads {
        tgid,
        comm: Comm::new([&b"java"[..], b""][dice.below(2) as usize]),
        tids: (0..dice.below(5))
            .map(|_| Tid(dice.below(1 << 22) as u32))
            .collect(),
    };
    let others = Others {
        between_us: dice.next() >> dice.below(60),
        switches: dice.next() >> dice.below(60),
        rest_us: dice.next() >> dice.below(60),
        shares: (0..dice.below(9)).map(|_| share(dice)).collect(),
    };
    [
        life(time, Some(2), LifeKind::Reclaim(reclaim)),
        life(time + 20, Some(1), LifeKind::OomKill(kill)),
        life(time + 25, Some(1), LifeKind::DiskWait(Box::new(wait))),
        life(time + 26, Some(1), LifeKind::SyncFile(Box::new(file))),
        life(time + 27, Some(1), LifeKind::Pinned(pinned)),
        life(time + 28, Some(1), LifeKind::Outsider(Box::new(outsider))),
        life(time + 29, None, LifeKind::Container(Box::new(container))),
        life(time + 30, None, LifeKind::Server(server)),
        life(time + 31, Some(2), LifeKind::Others(Box::new(others))),
        life(time + 32, None, LifeKind::Threads(Box::new(threads))),
    ]
}

/// The events of a DNS query and of an answer, with random fields.
fn dns(time: u64, tid: Tid, tgid: Tgid, dice: &mut Dice) -> [Event; 2] {
    let address = |dice: &mut Dice| match dice.below(3) {
        0 => Address::V4((dice.below(4) as u32).into()),
        1 => Address::V6(u128::from(dice.next()).into()),
        _ => Address::Masked(dice.below(3)),
    };
    let query = DnsQuery {
        tid,
        tgid,
        server: address(dice),
        port: dice.next() as u16,
        id: dice.next() as u16,
        kind: dice.next() as u16,
        name: b"registry.example.org"
            .get(dice.below(9) as usize..)
            .unwrap()
            .into(),
    };
    let known = dice.below(2) == 0;
    let answer = DnsAnswer {
        server: address(dice),
        port: known.then(|| dice.next() as u16),
        id: known.then(|| dice.next() as u16),
        code: known.then(|| dice.next() as u8),
        addresses: (0..dice.below(4)).map(|_| address(dice)).collect(),
    };
    [
        life(time, Some(2), LifeKind::DnsQuery(Box::new(query))),
        life(time + 20, Some(1), LifeKind::DnsAnswer(Box::new(answer))),
    ]
}

/// The events of an executed file, of two sampled stacks, and of the names of a frame's functions.
fn stacks(time: u64, tid: Tid, tgid: Tgid, dice: &mut Dice) -> [Event; 4] {
    let place = |dice: &mut Dice| match dice.below(3) {
        0 => Place::Kernel(u64::MAX - dice.below(9999)),
        1 => Place::Process(tgid, dice.next()),
        _ => Place::Module(dice.below(5) as u32, dice.below(99_999)),
    };
    let module = Module {
        number: dice.below(9) as u32,
        path: b"/usr/lib/libc.so.6"
            .get(..dice.below(19) as usize)
            .unwrap()
            .into(),
        ..match dice.below(3) {
            0 => Module::default(),
            1 => Module {
                file: Some(FileId {
                    device: dice.next(),
                    inode: dice.next(),
                    size: dice.below(1 << 30),
                    modified: dice.next(),
                }),
                ..Module::default()
            },
            _ => Module {
                build_id: dice.next().to_le_bytes().into(),
                ..Module::default()
            },
        }
    };
    // The sample's stack has frames that are already known, then new frames, and then the new frames again.
    let new = |dice: &mut Dice| {
        let first_frame = 5 + dice.below(99) as u32;
        let places: Box<[Place]> = (0..dice.below(5)).map(|_| place(dice)).collect();
        let before: Vec<u32> = (0..=dice.below(6))
            .map(|_| 1 + dice.below(4) as u32)
            .collect();
        let new = (first_frame..).take(places.len());
        Sample {
            tid,
            tgid,
            doing: Doing::OnCpu,
            ns: 10_101_010,
            cut: dice.below(2) == 0,
            base: dice.below(7) as u32,
            first: 7 + dice.below(9) as u32,
            frames: before
                .iter()
                .copied()
                .chain(new.clone())
                .chain(new)
                .collect(),
            first_frame: if places.is_empty() { 0 } else { first_frame },
            places,
        }
    };
    let known = Sample {
        doing: Doing::OffCpu,
        ns: dice.next(),
        first: 0,
        frames: Box::default(),
        first_frame: 0,
        places: Box::default(),
        ..new(dice)
    };
    let function = |dice: &mut Dice| Function {
        name: format!("main::{}", dice.below(3)).as_bytes().into(),
        file: b"src/main.rs"
            .get(..dice.below(2) as usize * 11)
            .unwrap()
            .into(),
        line: dice.next() as u32,
    };
    let symbol = Symbol {
        frame: dice.next() as u32,
        functions: (0..dice.below(3)).map(|_| function(dice)).collect(),
    };
    let kinds = [
        LifeKind::Module(Box::new(module)),
        LifeKind::Sample(Box::new(new(dice))),
        LifeKind::Sample(Box::new(known)),
        LifeKind::Symbol(symbol),
    ];
    kinds.map(|kind| life(time, Some(1), kind))
}

/// An event with random sums of the requests to one of two disks. Some groups, such as reads or writes, have no
/// requests.
fn block(dice: &mut Dice) -> LifeKind {
    let mut block = Block {
        device: Device {
            major: 254,
            minor: dice.below(2) as u32 * 16,
        },
        name: [&b"vda"[..], b""][dice.below(2) as usize].into(),
        interval: dice.next(),
        busy: dice.below(1 << 30),
        ..Block::default()
    };
    for group in &mut block.groups {
        if dice.below(2) == 0 {
            continue;
        }
        group.count = dice.next().max(1);
        group.bytes = dice.next();
        group.latency = dice.next();
        group.longest = dice.next();
        for _ in 0..dice.below(4) {
            group.buckets[dice.below(BUCKETS as u64) as usize] = dice.next();
        }
    }
    LifeKind::Block(Box::new(block))
}

fn account(tid: Tid, tgid: Tgid, dice: &mut Dice) -> LifeKind {
    LifeKind::Account(Account {
        tid,
        tgid,
        sum_exec_runtime: dice.below(1 << 40),
        run_delay: (dice.below(3) > 0).then_some(dice.below(1 << 40)),
        slices: (dice.below(3) > 0).then_some(dice.below(1 << 20)),
    })
}

fn delays(dice: &mut Dice) -> Delays {
    let mut delay = || (dice.below(3) > 0).then_some(dice.below(1 << 40));
    Delays {
        run: delay(),
        block: delay(),
        swap: delay(),
    }
}

/// Events of kinds that the recorder itself writes, such as losses, readings of clocks and marks.
pub fn recorder(time: u64, dice: &mut Dice) -> Vec<Event> {
    let lost = |stream, count, cause| {
        LifeKind::Lost(Lost {
            stream,
            count,
            until: Ktime(time + 77),
            cause,
        })
    };
    vec![
        life(time, None, block(dice)),
        life(
            time,
            None,
            LifeKind::Clock(Clock {
                boot: time + 5,
                real: time + 1_763_700_000_000_000_000,
            }),
        ),
        life(
            time - 30,
            None,
            LifeKind::Snapshot(Snapshot {
                tid: Tid(100),
                tgid: Tgid(100),
                parent_tgid: Tgid(1),
                start_time: Ktime(5),
                ns_tid: Tid(2),
                cgroup: CgroupId(77),
                comm: Comm::new(b"make"),
                argv: Argv::from_args([b"make"]),
                state: 1,
                on_cpu: false,
                kthread: false,
                followed: true,
                sum_exec_runtime: dice.below(1 << 40),
            }),
        ),
        life(
            time,
            None,
            LifeKind::Snapshot(Snapshot {
                tid: Tid(2),
                tgid: Tgid(2),
                parent_tgid: Tgid(0),
                start_time: Ktime(0),
                ns_tid: Tid(2),
                cgroup: CgroupId(1),
                comm: Comm::new(b"kthreadd"),
                argv: Argv::default(),
                state: 0x402,
                on_cpu: true,
                kthread: true,
                followed: false,
                sum_exec_runtime: 0,
            }),
        ),
        life(
            time + 7,
            None,
            lost(Stream::Cpu(CpuId(1)), Some(12), LossCause::BufferFull),
        ),
        life(
            time + 7,
            None,
            lost(Stream::Lifecycle, None, LossCause::FollowSet),
        ),
        life(
            time + 7,
            None,
            lost(Stream::Recorder, Some(0), LossCause::Output),
        ),
        life(
            time + 8,
            None,
            lost(Stream::Cpu(CpuId(65535)), Some(1), LossCause::Recursion),
        ),
        life(
            time + 9,
            None,
            lost(Stream::Cpu(CpuId(0)), Some(1), LossCause::Damage),
        ),
        life(
            time + 9,
            None,
            LifeKind::Mark(Mark {
                name: (*b"test starts").into(),
                ..Mark::default()
            }),
        ),
        life(
            time + 9,
            None,
            LifeKind::Mark(Mark {
                name: (*b"test_it").into(),
                point: Point::Begin,
                ago: 7,
                kind: (*b"test").into(),
                id: (*b"7").into(),
                pid: Some(Tid(70)),
                ..Mark::default()
            }),
        ),
        life(
            time + 9,
            None,
            LifeKind::Mark(Mark {
                name: (*b"test_it").into(),
                point: Point::End,
                ago: u64::MAX,
                kind: (*b"test").into(),
                result: (*b"passed").into(),
                id: (*b"7").into(),
                pid: Some(Tid(u32::MAX)),
                tid: Some(Tid(0)),
            }),
        ),
        life(time + 10, None, LifeKind::Watermark),
        life(
            time + 11,
            None,
            LifeKind::Degraded(Degraded {
                what: (*b"arguments").into(),
            }),
        ),
    ]
}

/// Scheduling events of one CPU: mostly a plausible sequence, with some impossible events (such as a wrong running
/// task) in between.
pub fn sched(start: u64, events: usize, tasks: u64, dice: &mut Dice) -> Vec<SchedEvent> {
    let mut current = Tid(0);
    let mut time = start;
    let mut all = Vec::new();
    for _ in 0..events {
        time = match dice.below(50) {
            0 => time - dice.below(500),
            1 => time + dice.below(1 << 25),
            _ => time + dice.below(20_000),
        };
        let other = Tid(100 + (dice.below(tasks) * dice.below(tasks) / tasks) as u32);
        let odd = dice.below(40) == 0;
        let from = if odd {
            Tid(dice.next() as u32)
        } else {
            current
        };
        let kind = match dice.below(2) {
            0 => SchedKind::Waking(Waking {
                waker: from,
                wakee: other,
                context: match dice.below(12) {
                    0 | 1 => Context::HardIrq,
                    2 => Context::SoftIrq,
                    3 => Context::SendSoftIrq,
                    _ => Context::Task,
                },
                new: dice.below(9) == 0,
                vfork: dice.below(30) == 0,
            }),
            _ => {
                let next = if dice.below(3) == 0 { Tid(0) } else { other };
                let prev_state = if odd {
                    dice.next() as u16
                } else {
                    dice.below(3) as u16
                };
                let preempt = dice.below(5) == 0;
                let reason = match dice.below(8) {
                    _ if prev_state == 0 || preempt => 0,
                    0 => dice.below(25) as u8,
                    _ => (from.0 % 25) as u8,
                };
                let timeout = match dice.below(4) {
                    _ if prev_state == 0 || preempt => 0,
                    0 => dice.below(255) as u8,
                    1 => 1,
                    _ => 0,
                };
                SchedKind::Switch(Switch {
                    prev: from,
                    next,
                    prev_state,
                    preempt,
                    iowait: dice.below(9) == 0,
                    reason: Reason::of(reason),
                    timeout: Timeout::of(timeout),
                })
            }
        };
        current = match kind {
            SchedKind::Waking(Waking { waker, .. }) => waker,
            SchedKind::Switch(Switch { next, .. }) => next,
        };
        all.push(SchedEvent {
            time: Ktime(time),
            kind,
        });
    }
    all
}

/// The events of a whole recording. In each of `rounds` rounds, every stream (of a CPU, for example) gets some events,
/// and a `None` then stands for a flush of the writer.
pub fn recording(rounds: u64, events: usize) -> Vec<Option<Item>> {
    let mut dice = Dice(rounds);
    let mut all = Vec::new();
    for round in 0..rounds {
        let time = 1_000_000_000 + round * 700_000_000;
        for cpu in 0..2 {
            let events = sched(time, events, 60, &mut dice);
            all.extend(
                events
                    .into_iter()
                    .map(|e| Some((Stream::Cpu(CpuId(cpu)), Event::Sched(e)))),
            );
        }
        for task in 0..3 {
            let events = lifecycle(time, 200 + 3 * task + 10 * round as u32, &mut dice);
            all.extend(events.into_iter().map(|e| Some((Stream::Lifecycle, e))));
        }
        all.extend(
            recorder(time, &mut dice)
                .into_iter()
                .map(|e| Some((Stream::Recorder, e))),
        );
        all.push(None);
    }
    all
}

pub fn summary() -> Summary {
    Summary {
        end: Ktime(9_000_000_000),
        status: Some(0),
        ..Summary::default()
    }
}

pub fn write(items: &[Option<Item>]) -> Vec<u8> {
    let mut writer = Writer::new(Vec::new(), &Masked::trusted(meta())).unwrap();
    for item in items {
        match item {
            None => writer.flush().unwrap(),
            Some((Stream::Cpu(cpu), Event::Sched(event))) => writer.sched(*cpu, *event).unwrap(),
            Some((stream, Event::Life(event))) => writer
                .life(*stream, Masked::trusted(event.clone()))
                .unwrap(),
            Some(_) => unreachable!(),
        }
    }
    let (bytes, written) = writer.finish(&Masked::trusted(summary())).unwrap();
    assert_eq!(written.bytes, bytes.len() as u64);
    assert_eq!(written.events(), items.iter().flatten().count() as u64);
    bytes
}

/// The events of a recording that belong to one stream (of a CPU, for example), in their order.
pub fn of(items: &[Option<Item>], stream: Stream) -> Vec<Event> {
    items
        .iter()
        .flatten()
        .filter(|(s, _)| *s == stream)
        .map(|(_, e)| e.clone())
        .collect()
}
