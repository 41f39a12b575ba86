//! The fuzz targets. Each function takes any bytes and panics if the reader violates a property.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic
)]

mod pieces;

use pieces::{add, begin, stored, trailer};
use tr_format::counters::{CallSum, Counter, Counters, SystemCalls};
use tr_format::device::{Block, Device, DiskWait, SyncFile, BUCKETS};
use tr_format::dns::{DnsAnswer, DnsQuery};
use tr_format::event::*;
use tr_format::frame::{kind, Header};
use tr_format::mask::Masked;
use tr_format::meta::{Metadata, Summary};
use tr_format::network::{
    Accepted, Address, Closed, Connect, Connected, ConnectionId, Ending, Endpoint,
};
use tr_format::outline::Outline;
use tr_format::reader::{End, Trace};
use tr_format::sched::SchedBlock;
use tr_format::source::Source;
use tr_format::stack::{Doing, FileId, Function, Module, Place, Sample, Symbol};
use tr_format::writer::Writer;

/// Takes numbers from the front of the input. After its end all numbers are 0.
pub struct Input<'a>(pub &'a [u8]);

impl<'a> Input<'a> {
    pub fn byte(&mut self) -> u8 {
        let (first, rest) = self.0.split_first().unwrap_or((&0, &[]));
        self.0 = rest;
        *first
    }

    /// Takes a number from the input: small numbers from one byte, others from up to nine bytes. So the fuzzer's inputs
    /// lead to small and to large numbers.
    pub fn number(&mut self) -> u64 {
        match self.byte() {
            small @ 0..=0xdf => u64::from(small),
            long => {
                let bytes = u32::from(long & 7) + 1;
                (0..bytes).fold(0, |value, _| value << 8 | u64::from(self.byte()))
            }
        }
    }

    pub fn bytes(&mut self) -> &'a [u8] {
        let len = (self.number() as usize).min(self.0.len());
        let (taken, rest) = self.0.split_at(len);
        self.0 = rest;
        taken
    }
}

/// Opens a trace and reads all its frames. The events must agree with the limits of the format and with the headers of
/// their frames.
fn read(bytes: Vec<u8>) {
    let len = bytes.len() as u64;
    let outline = Outline::read(&Source::bytes(bytes.clone()));
    let Ok(trace) = Trace::open(Source::bytes(bytes)) else {
        return;
    };
    if let Ok(Some(outline)) = outline {
        assert_eq!(&outline.meta, trace.meta());
    }
    let (mut block, mut events) = (SchedBlock::default(), Vec::new());
    for frame in trace.frames() {
        assert!(frame.offset + frame.bytes <= len && frame.min <= frame.max);
        let lost = trace.gap_of(frame);
        assert_eq!(lost.time, frame.min);
        match frame.stream {
            Stream::Cpu(_) => match trace.read_sched(frame, &mut block) {
                Ok(()) => {
                    assert_eq!(block.len() as u64, frame.events);
                    assert_eq!(block.span(), Some((frame.min, frame.max)));
                }
                Err(_) => assert!(block.is_empty()),
            },
            _ => match trace.read_life(frame, &mut events) {
                Ok(()) => {
                    assert!(events.len() as u64 <= frame.events);
                    let inside = |event: &LifeEvent| (frame.min..=frame.max).contains(&event.time);
                    assert!(events.iter().all(inside));
                }
                Err(_) => assert!(events.is_empty()),
            },
        }
    }
    if let End::Truncated { offset, .. } = trace.end() {
        assert!(trace.recovered() || *offset <= len);
    }
}

/// Decodes a frame's header. If the decoding succeeds, encoding the header and decoding it again must give the same
/// header.
pub fn header(data: &[u8]) {
    if let Ok((header, len)) = Header::decode(data, 7) {
        let mut out = Vec::new();
        header.encode(7, &mut out);
        // The input may also have fields of a later version, which are not encoded again.
        assert!(out.len() <= len);
        assert_eq!(Header::decode(&out, 7).unwrap(), (header, out.len()));
    }
}

/// Reads a scheduling block with right checksums, whose body is not compressed.
pub fn sched(data: &[u8]) {
    let mut input = Input(data);
    let (events, min, span) = (input.number(), input.number(), input.number());
    let low = input.bytes();
    let (mut out, id) = begin();
    let header = Header {
        kind: kind::SCHED,
        number: 1,
        events,
        min,
        max: min.saturating_add(span),
        ..Header::default()
    };
    let mut payload = stored(input.0);
    payload.extend_from_slice(low);
    add(&mut out, id, header, &payload);
    read(out);
}

/// Reads a lifecycle block with right checksums, whose body is not compressed.
pub fn life(data: &[u8]) {
    let mut input = Input(data);
    let (events, min, span) = (input.number(), input.number(), input.number());
    let low = input.bytes();
    let (mut out, id) = begin();
    let header = Header {
        kind: kind::LIFE,
        stream: (events & 1) as u16,
        number: 1,
        events,
        min,
        max: min.saturating_add(span),
        ..Header::default()
    };
    let mut payload = stored(input.0);
    payload.extend_from_slice(low);
    add(&mut out, id, header, &payload);
    read(out);
}

/// Reads metadata, a summary or a frame that marks a cut, with right checksums.
pub fn metadata(data: &[u8]) {
    let mut out = begin().0[..16].to_vec();
    let payload = stored(data);
    let header = |kind, number| Header {
        kind,
        number,
        ..Header::default()
    };
    add(&mut out, 0, header(kind::METADATA, 0), &payload);
    let id = crc32fast::hash(&payload);
    add(&mut out, id, header(kind::SUMMARY, 1), &payload);
    add(&mut out, id, header(kind::CUT, 2), &payload);
    read(out);
}

/// Reads a file of arbitrary bytes.
pub fn file(data: &[u8]) {
    read(data.to_vec());
}

/// Reads a file of frames with right headers that are out of order or overlap, with an arbitrary index.
pub fn frames(data: &[u8]) {
    let mut input = Input(data);
    let (mut out, id) = begin();
    let mut index = None;
    while !input.0.is_empty() {
        let kind = input.byte() % 8;
        let header = Header {
            kind,
            number: input.number(),
            stream: input.number() as u16,
            seq: input.number(),
            events: input.number(),
            min: input.number(),
            ..Header::default()
        };
        let max = header.min.saturating_add(input.number());
        let header = Header { max, ..header };
        let payload = match kind {
            kind::INDEX => stored(input.bytes()),
            _ => input.bytes().to_vec(),
        };
        if kind == kind::INDEX {
            index.get_or_insert(out.len() as u64);
        }
        let lies = input.byte();
        add(&mut out, id, header, &payload);
        // Some payloads get a wrong checksum, and of some the second half is missing.
        if let (1, Some(last)) = (lies & 3, out.last_mut()) {
            *last ^= 1;
        } else if lies & 3 == 2 {
            out.truncate(out.len() - payload.len() / 2);
        }
    }
    if let Some(index) = index {
        trailer(&mut out, id, index);
    }
    read(out);
}

pub fn sched_event(input: &mut Input, time: &mut u64, running: &mut u32) -> SchedEvent {
    let what = input.byte();
    let step = input.number();
    *time = match what & 0x40 {
        0 => time.wrapping_add(step),
        _ => time.wrapping_sub(step),
    };
    if what & 0x80 != 0 {
        *running = input.number() as u32;
    }
    let (from, to) = (Tid(*running), Tid(input.number() as u32));
    let kind = match what & 1 {
        0 => {
            *running = to.0;
            let (prev_state, preempt) = (input.number() as u16, what & 2 != 0);
            let sleeps = prev_state != 0 && !preempt;
            SchedKind::Switch(Switch {
                prev: from,
                next: to,
                prev_state,
                preempt,
                iowait: what & 4 != 0,
                reason: Reason::of(if sleeps { what >> 3 & 7 } else { 0 }),
                timeout: Timeout::of(if sleeps { what >> 3 } else { 0 }),
            })
        }
        _ => SchedKind::Waking(Waking {
            waker: from,
            wakee: to,
            context: match what & 0xc {
                0 => Context::Task,
                4 => Context::SendSoftIrq,
                8 => Context::HardIrq,
                _ => Context::SoftIrq,
            },
            new: what & 0x10 != 0,
            vfork: what & 0x20 != 0,
        }),
    };
    SchedEvent {
        time: Ktime(*time),
        kind,
    }
}

fn argv(input: &mut Input) -> Argv {
    Argv {
        full_len: Some(input.number() as u32).filter(|len| *len != 7),
        bytes: input.bytes().into(),
    }
}

fn delays(input: &mut Input) -> Delays {
    let known = input.byte();
    let mut delay = |bit: u8| (known & bit != 0).then(|| input.number());
    Delays {
        run: delay(1),
        block: delay(2),
        swap: delay(4),
    }
}

fn connection(input: &mut Input, what: u8, task: (Tid, Tgid)) -> LifeKind {
    let id = ConnectionId(input.number());
    let end = |input: &mut Input| Endpoint {
        port: input.number() as u16,
        address: match input.number() % 3 {
            0 => Address::V4((input.number() as u32).into()),
            1 => Address::V6((input.number() as u128).into()),
            _ => Address::Masked(input.number()),
        },
    };
    match what >> 5 {
        0 | 1 => LifeKind::Connect(Connect {
            id,
            tid: task.0,
            tgid: task.1,
            remote: end(input),
        }),
        2 | 3 => LifeKind::Connected(Connected {
            id,
            local: end(input),
        }),
        4 | 5 => LifeKind::Accepted(Accepted {
            id,
            listener: Some(task).filter(|_| what & 0x20 != 0),
            local: end(input),
            remote: end(input),
        }),
        _ => LifeKind::Closed(Closed {
            id,
            by: Some(task).filter(|_| what & 0x20 != 0),
            ending: Ending::of(input.byte() % 8),
            sent: input.number(),
            received: input.number(),
        }),
    }
}

fn counters(input: &mut Input, calls: bool, tgid: Tgid) -> LifeKind {
    if !calls {
        let mut counters = Counters::default();
        for counter in Counter::ALL.into_iter().take(usize::from(input.byte())) {
            counters.set(counter, input.number());
        }
        return LifeKind::Counters(counters);
    }
    let sums = 0..input.byte() % 8;
    LifeKind::SystemCalls(SystemCalls {
        tgid,
        since: Ktime(input.number()),
        calls: sums
            .map(|_| CallSum {
                number: input.number() as u32 >> 1,
                compat: input.byte() % 2 == 1,
                count: input.number(),
                errors: input.number(),
                ns: input.number(),
                longest: input.number(),
            })
            .collect(),
    })
}

/// A stack sample, or an event to which stack samples refer.
fn stack(input: &mut Input, tid: Tid, tgid: Tgid) -> LifeKind {
    let count = input.byte() % 6;
    let place = |input: &mut Input| match input.byte() % 3 {
        0 => Place::Kernel(input.number()),
        1 => Place::Process(tgid, input.number()),
        _ => Place::Module(input.number() as u32, input.number()),
    };
    let base = input.number() as u32 >> 1;
    let first_frame = 1 + (input.number() as u32 >> 1);
    let new = 0..count / 2;
    match input.byte() % 4 {
        0 => LifeKind::Module(Box::new(Module {
            number: input.number() as u32,
            build_id: input.number().to_le_bytes().into(),
            path: input.number().to_le_bytes().into(),
            file: None,
        })),
        1 => LifeKind::Module(Box::new(Module {
            number: input.number() as u32,
            path: input.number().to_le_bytes().into(),
            file: Some(FileId {
                device: input.number(),
                inode: input.number(),
                size: 1 + (input.number() >> 1),
                modified: input.number(),
            }),
            ..Module::default()
        })),
        2 => LifeKind::Sample(Box::new(Sample {
            tid,
            tgid,
            doing: if input.byte() & 1 == 0 {
                Doing::OnCpu
            } else {
                Doing::OffCpu
            },
            ns: input.number(),
            cut: input.byte() & 1 == 0,
            base,
            first: if count == 0 { 0 } else { base + 1 },
            frames: (0..count).map(|at| first_frame + u32::from(at)).collect(),
            first_frame: if new.is_empty() { 0 } else { first_frame },
            places: new.map(|_| place(input)).collect(),
        })),
        _ => LifeKind::Symbol(Symbol {
            frame: input.number() as u32,
            functions: (0..count)
                .map(|_| Function {
                    name: input.number().to_le_bytes().into(),
                    file: Box::default(),
                    line: input.number() as u32,
                })
                .collect(),
        }),
    }
}

fn device_or_memory(input: &mut Input, set: bool, tid: Tid, tgid: Tgid) -> LifeKind {
    match input.byte() % 12 {
        11 => LifeKind::Pinned(Pinned {
            tid,
            tgid,
            pinned: set,
        }),
        9 => LifeKind::SyncFile(Box::new(SyncFile {
            tid,
            tgid,
            name: input.bytes().into(),
        })),
        4 => LifeKind::DiskWait(Box::new(DiskWait {
            tid,
            tgid,
            device: set.then(|| Device {
                major: input.byte().into(),
                minor: input.number() as u32,
            }),
            name: if set { (*b"sda").into() } else { (*b"").into() },
        })),
        0 => LifeKind::OomKill(OomKill {
            tid,
            tgid,
            resident: set.then(|| input.number() >> 1),
        }),
        1 => LifeKind::Reclaim(Reclaim {
            tid,
            tgid,
            count: input.number(),
            ns: input.number(),
        }),
        2 => LifeKind::DnsQuery(Box::new(DnsQuery {
            tid,
            tgid,
            server: Address::V4((input.number() as u32).into()),
            port: input.number() as u16,
            id: input.number() as u16,
            kind: input.number() as u16,
            name: input.number().to_le_bytes().into(),
        })),
        3 => LifeKind::DnsAnswer(Box::new(DnsAnswer {
            server: Address::V6((input.number() as u128).into()),
            port: set.then(|| input.number() as u16),
            id: set.then(|| input.number() as u16),
            code: set.then(|| input.byte()),
            addresses: (0..input.byte() % 4)
                .map(|_| Address::Masked(input.number()))
                .collect(),
        })),
        5..=8 => stack(input, tid, tgid),
        _ => {
            let mut block = Block {
                device: Device {
                    major: input.number() as u32,
                    minor: input.number() as u32,
                },
                name: input.bytes().into(),
                interval: input.number(),
                busy: input.number(),
                ..Block::default()
            };
            for group in block.groups.iter_mut().filter(|_| set) {
                group.count = input.number();
                if group.count > 0 {
                    group.bytes = input.number();
                    group.latency = input.number();
                    group.longest = input.number();
                    group.buckets[usize::from(input.byte()) % BUCKETS] = input.number();
                }
            }
            LifeKind::Block(Box::new(block))
        }
    }
}

pub fn life_event(input: &mut Input, time: &mut u64) -> LifeEvent {
    *time = time.wrapping_add(input.number() as i8 as u64);
    let cpu = Some(input.number() as u16)
        .filter(|cpu| *cpu != 9)
        .map(CpuId);
    let what = input.byte();
    let (tid, tgid) = (Tid(input.number() as u32), Tgid(input.number() as u32));
    let set = what & 0x80 != 0;
    let kind = match what % 16 {
        0 => LifeKind::Fork(Fork {
            parent_tid: Tid(input.number() as u32),
            parent_tgid: tgid,
            tid,
            tgid: Tgid(input.number() as u32),
            start_time: Ktime(input.number()),
            ns_tid: Tid(input.number() as u32),
            cgroup: CgroupId(input.number()),
            comm: Comm::new(input.bytes()),
        }),
        1 => LifeKind::Exec(Exec {
            tid,
            tgid,
            old_tid: Tid(input.number() as u32),
            comm: Comm::new(input.bytes()),
            filename: input.bytes().into(),
            argv: argv(input),
            cgroup: CgroupId(input.number()),
            max_rss: set.then(|| input.number() >> 1),
            directory: input.bytes().into(),
        }),
        2 => LifeKind::Exit(Exit {
            tid,
            tgid,
            status: input.number() as u32,
            group_dead: set,
            group_status: input.number() as u32,
            utime: input.number(),
            stime: input.number(),
            sum_exec_runtime: input.number(),
            nvcsw: input.number(),
            nivcsw: input.number(),
            min_flt: input.number(),
            maj_flt: input.number(),
            // The highest bit of a number of bytes stays 0, so that two such numbers differ by less than 2^63.
            max_rss: input.number() >> 1,
            read_bytes: set.then(|| input.number() >> 1),
            write_bytes: Some(input.number() >> 1),
            program_rss: set.then(|| input.number() >> 1),
            delays: delays(input),
        }),
        3 => LifeKind::Final(Final {
            tid,
            sum_exec_runtime: input.number(),
            nvcsw: input.number(),
            nivcsw: input.number(),
            delays: delays(input),
        }),
        4 => LifeKind::Rename(Rename {
            tid,
            tgid,
            comm: Comm::new(input.bytes()),
        }),
        5 => LifeKind::CgroupPath(CgroupPath {
            id: CgroupId(input.number()),
            path: input.bytes().into(),
        }),
        6 => LifeKind::CgroupMove(CgroupMove {
            tid,
            tgid,
            cgroup: CgroupId(input.number()),
        }),
        7 => LifeKind::Snapshot(Snapshot {
            tid,
            tgid,
            parent_tgid: Tgid(input.number() as u32),
            start_time: Ktime(input.number()),
            ns_tid: Tid(input.number() as u32),
            cgroup: CgroupId(input.number()),
            comm: Comm::new(input.bytes()),
            argv: argv(input),
            state: input.number() as u16,
            on_cpu: set,
            kthread: what & 0x40 != 0,
            followed: what & 0x20 != 0,
            sum_exec_runtime: input.number(),
        }),
        8 => LifeKind::Lost(Lost {
            stream: match what >> 6 {
                0 => Stream::Lifecycle,
                1 => Stream::Recorder,
                _ => Stream::Cpu(CpuId(input.number() as u16)),
            },
            // A count of all ones stands for an unknown count.
            count: Some(input.number()).filter(|count| *count != u64::MAX),
            until: Ktime(input.number()),
            cause: LossCause::FollowSet,
        }),
        9 => LifeKind::Clock(Clock {
            boot: input.number(),
            real: input.number(),
        }),
        10 => LifeKind::Watermark,
        11 => LifeKind::Mark(Mark {
            name: input.bytes().into(),
            point: match what & 0x60 {
                0 => Point::Moment,
                0x20 => Point::Begin,
                _ => Point::End,
            },
            ago: input.number(),
            kind: input.bytes().into(),
            result: input.bytes().into(),
            id: input.bytes().into(),
            pid: set.then_some(tid),
            tid: set.then_some(tid),
        }),
        12 => LifeKind::Account(Account {
            tid,
            tgid,
            sum_exec_runtime: input.number(),
            run_delay: set.then(|| input.number()),
            slices: (what & 0x40 != 0).then(|| input.number()),
        }),
        13 => LifeKind::Detached(Detached { tid, tgid }),
        14 if what & 0x10 != 0 => counters(input, set, tgid),
        14 => LifeKind::Degraded(Degraded {
            what: input.bytes().into(),
        }),
        _ if what & 0x10 != 0 => connection(input, what, (tid, tgid)),
        _ if what & 0xe0 == 0xe0 => device_or_memory(input, set, tid, tgid),
        _ => LifeKind::End(TaskEnd {
            tid,
            tgid,
            status: (what & 0x20 != 0).then(|| input.number() as u32),
            group_dead: set,
            max_rss: (what & 0x40 != 0).then(|| input.number() >> 1),
        }),
    };
    LifeEvent {
        time: Ktime(*time),
        cpu,
        kind,
    }
}

/// Writes events with the writer; the reader must return the same events.
pub fn identity(data: &[u8]) {
    let mut input = Input(data);
    let mut writer = Writer::new(Vec::new(), &Masked::trusted(Metadata::default())).unwrap();
    let (mut sched, mut life) = (Vec::new(), Vec::new());
    let (mut time, mut running) = (input.number(), input.number() as u32);
    // Writing a block costs as much as hundreds of events, so the number of blocks is limited.
    let mut blocks = 0;
    while !input.0.is_empty() {
        match input.byte() {
            0..=0xbf => {
                let event = sched_event(&mut input, &mut time, &mut running);
                writer.sched(CpuId(3), event).unwrap();
                sched.push(event);
            }
            0xc0..=0xf7 => {
                let event = life_event(&mut input, &mut time);
                writer
                    .life(Stream::Lifecycle, Masked::trusted(event.clone()))
                    .unwrap();
                life.push(event);
            }
            _ if blocks < 64 => {
                blocks += 1;
                writer.flush().unwrap();
            }
            _ => {}
        }
    }
    let (bytes, _) = writer.finish(&Masked::trusted(Summary::default())).unwrap();
    let trace = Trace::open(Source::bytes(bytes)).unwrap();
    assert_eq!((trace.end(), trace.damage()), (&End::Complete, &[][..]));
    let (mut block, mut events) = (SchedBlock::default(), Vec::new());
    let (mut found_sched, mut found_life) = (Vec::new(), Vec::new());
    for frame in trace.frames() {
        match frame.stream {
            Stream::Cpu(_) => {
                trace.read_sched(frame, &mut block).unwrap();
                found_sched.extend(block.iter());
            }
            _ => {
                trace.read_life(frame, &mut events).unwrap();
                found_life.append(&mut events);
            }
        }
    }
    assert!(found_sched == sched, "scheduling events have changed");
    // The events are compared one by one, so that only the first one that differs is printed, of thousands.
    for (found, wrote) in found_life.iter().zip(&life) {
        assert_eq!(found, wrote);
    }
    assert_eq!(found_life.len(), life.len());
    assert_eq!(
        (trace.damage(), trace.file_end()),
        (&[][..], &End::Complete)
    );
}
