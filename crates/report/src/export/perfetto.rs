//! A trace for Perfetto: scheduling events in compact form, the process tree, track events.
//!
//! Of its importer (trace_processor):
//! - the first switch of a CPU only tells the running task: each CPU begins with one to swapper;
//! - a switch's previous task is the one before in the bundle: between the stays of recorded
//!   tasks on a CPU, a task named "not recorded" runs, or the idle task where that is known;
//! - a waking belongs to the bundle of the waker's CPU; bits 0x08 and 0x10 of its flags tell
//!   interrupts and softirqs;
//! - task_newtask begins a new thread, also of a number that was used before.
//!
//! All times are those of the recording, as times since boot.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::io::{self, Write};

use tr_analyze::model::{Analysis, Basis};
use tr_analyze::order::{self, Event};
use tr_analyze::timeline::{Bucket, Wait};
use tr_format::counters::{Counter, Unit};
use tr_format::event::{
    Argv, Comm, Context, CpuId, Fork, Ktime, LifeEvent, LifeKind, SchedEvent, SchedKind, Tgid, Tid,
};
use tr_format::reader::Trace;

use super::messages::{self, *};
use crate::exit;
use crate::reports::critical_path;
use crate::steps::times::Use;
use crate::steps::{self, Steps};
use crate::view::View;
use crate::{escape, label};

/// The task that runs where the recording does not tell which: above the kernel's largest id
/// (PID_MAX_LIMIT, include/linux/threads.h).
const NOT_RECORDED: Tid = Tid((1 << 22) + 1);
/// The priority of an ordinary task. The recording does not have priorities.
const PRIO: i32 = 120;
/// CLONE_THREAD in include/uapi/linux/sched.h.
const CLONE_THREAD: u64 = 0x10000;
/// Events of a CPU in one bundle.
const BUNDLE: usize = 4096;
/// The sequence of our packets; they need no state of the sequence.
const SEQUENCE: u32 = 1;
/// The interval of the counter of running tasks, in ns.
const INTERVAL: u64 = 10_000_000;

pub fn write(view: &View<'_>, trace: &Trace, flows: bool, out: &mut dyn Write) -> io::Result<()> {
    let mut packets = Packets {
        out,
        buffer: Vec::new(),
        tracks: 0,
        threads: HashMap::new(),
        flows: 0,
        first: true,
    };
    head(view.analysis, &mut packets)?;
    tracks(view, &mut packets)?;
    if view.analysis.basis() == Basis::Events {
        let comms = view.analysis.threads.iter();
        let comms = comms.map(|thread| (thread.tid, thread.comm)).collect();
        switches(view, &comms, &mut packets)?;
        Lives::new(view, flows).write(trace, &mut packets)?;
    }
    Ok(())
}

/// Encodes packets.
struct Packets<'a> {
    out: &'a mut dyn Write,
    /// The packet, encoded.
    buffer: Vec<u8>,
    /// The last track's uuid.
    tracks: u64,
    /// The tracks of threads.
    threads: HashMap<(Tgid, Tid), u64>,
    /// The last flow's id.
    flows: u64,
    /// No packet has been written.
    first: bool,
}

impl Packets<'_> {
    fn put(&mut self, timestamp: Option<Ktime>, data: Data) -> io::Result<()> {
        let packet = TracePacket {
            timestamp: timestamp.map(|time| time.0),
            trusted_packet_sequence_id: SEQUENCE,
            // SEQ_INCREMENTAL_STATE_CLEARED
            sequence_flags: u32::from(std::mem::take(&mut self.first)),
            data: Some(data),
        };
        self.buffer.clear();
        messages::field(&packet, &mut self.buffer);
        self.out.write_all(&self.buffer)
    }

    /// A new track.
    fn track(&mut self, track: TrackDescriptor) -> io::Result<u64> {
        self.tracks += 1;
        let uuid = self.tracks;
        let track = TrackDescriptor { uuid, ..track };
        self.put(None, Data::TrackDescriptor(track))?;
        Ok(uuid)
    }

    /// The track of a thread.
    fn thread(&mut self, pid: Tgid, tid: Tid) -> io::Result<u64> {
        if let Some(track) = self.threads.get(&(pid, tid)) {
            return Ok(*track);
        }
        let thread = ThreadDescriptor {
            pid: id(pid.0),
            tid: id(tid.0),
        };
        let track = self.track(TrackDescriptor {
            thread: Some(thread),
            ..TrackDescriptor::default()
        })?;
        self.threads.insert((pid, tid), track);
        Ok(track)
    }

    /// An arrow from the track of a waker to that of its wakee.
    fn flow(&mut self, time: Ktime, waker: u64, wakee: u64) -> io::Result<()> {
        self.flows += 1;
        let instant = |track_uuid, name: &str| TrackEvent {
            r#type: 3,
            track_uuid,
            name: Some(name.to_owned()),
            ..TrackEvent::default()
        };
        let begin = TrackEvent {
            flow_ids: vec![self.flows],
            ..instant(waker, "wakes")
        };
        let end = TrackEvent {
            terminating_flow_ids: vec![self.flows],
            ..instant(wakee, "woken")
        };
        self.put(Some(time), Data::TrackEvent(begin))?;
        self.put(Some(time), Data::TrackEvent(end))
    }

    fn named(&mut self, name: &str) -> io::Result<u64> {
        self.track(TrackDescriptor {
            name: Some(name.to_owned()),
            ..TrackDescriptor::default()
        })
    }

    fn slice(
        &mut self,
        track: u64,
        (from, to): (Ktime, Ktime),
        name: String,
        facts: Vec<DebugAnnotation>,
    ) -> io::Result<()> {
        let begin = TrackEvent {
            r#type: 1,
            track_uuid: track,
            name: Some(name),
            debug_annotations: facts,
            ..TrackEvent::default()
        };
        self.put(Some(from), Data::TrackEvent(begin))?;
        let end = TrackEvent {
            r#type: 2,
            track_uuid: track,
            ..TrackEvent::default()
        };
        self.put(Some(to), Data::TrackEvent(end))
    }

    fn count(&mut self, track: u64, time: Ktime, value: f64) -> io::Result<()> {
        let event = TrackEvent {
            r#type: 4,
            track_uuid: track,
            double_counter_value: Some(value),
            ..TrackEvent::default()
        };
        self.put(Some(time), Data::TrackEvent(event))
    }

    fn counter(&mut self, name: &str, unit: &str) -> io::Result<u64> {
        self.track(TrackDescriptor {
            name: Some(name.to_owned()),
            counter: Some(CounterDescriptor {
                unit_name: Some(unit.to_owned()),
            }),
            ..TrackDescriptor::default()
        })
    }
}

fn number(name: &str, value: u64) -> DebugAnnotation {
    DebugAnnotation {
        name: name.to_owned(),
        int_value: i64::try_from(value).ok(),
        string_value: None,
    }
}

fn words(name: &str, value: String) -> DebugAnnotation {
    DebugAnnotation {
        name: name.to_owned(),
        int_value: None,
        string_value: Some(value),
    }
}

fn id(tid: u32) -> i32 {
    i32::try_from(tid).unwrap_or(i32::MAX)
}

fn text(bytes: &[u8]) -> String {
    escape::text(bytes)
}

/// The clocks, and the kernel's release, by which the importer reads the states of tasks.
fn head(analysis: &Analysis, packets: &mut Packets<'_>) -> io::Result<()> {
    // BUILTIN_CLOCK_REALTIME and BUILTIN_CLOCK_BOOTTIME.
    const REALTIME: u32 = 1;
    const BOOTTIME: u32 = 6;
    let meta = &analysis.meta;
    let clocks = [(BOOTTIME, meta.start.0), (REALTIME, meta.start_clock.real)];
    let clocks = clocks.map(|(clock_id, timestamp)| Clock {
        clock_id,
        timestamp,
    });
    let snapshot = ClockSnapshot {
        clocks: clocks.to_vec(),
    };
    packets.put(None, Data::ClockSnapshot(snapshot))?;
    let mut kernel = meta.kernel.split(' ').map(|word| text(word.as_bytes()));
    let utsname = Utsname {
        sysname: kernel.next().unwrap_or_default(),
        release: kernel.next().unwrap_or_default(),
        machine: text(meta.machine.as_bytes()),
    };
    let info = SystemInfo {
        utsname: Some(utsname),
    };
    packets.put(None, Data::SystemInfo(info))
}

/// The events of the analysis: programs, steps, the critical path, the machine's counters.
fn tracks(view: &View<'_>, packets: &mut Packets<'_>) -> io::Result<()> {
    let analysis = view.analysis;
    for process in view.processes() {
        if process.execs.is_empty() {
            continue;
        }
        let track = packets.thread(process.pid, Tid(process.pid.0))?;
        for (at, exec) in process.execs.iter().enumerate() {
            let mut facts = vec![words("argv", escape::command(exec.argv.args()))];
            let last = at + 1 == process.execs.len();
            if let Some(status) = process.status.filter(|_| last) {
                facts.push(words("exit", exit::words(status)));
            }
            let name = label::label_of(&exec.argv, &exec.comm, false);
            packets.slice(track, (exec.start, exec.end), name, facts)?;
        }
    }
    let steps = Steps::new(analysis);
    for step in steps.list() {
        let kind = if step.kind == steps::Kind::Test {
            "Tests"
        } else {
            "Steps"
        };
        let track = packets.named(kind)?;
        let mut facts = vec![words("kind", step.kind.name().to_owned())];
        facts.extend(step.status.map(|status| words("exit", exit::words(status))));
        facts.extend(step.result.clone().map(|result| words("result", result)));
        packets.slice(track, (step.from, step.to), step.name.clone(), facts)?;
    }
    if let Ok(path) = critical_path::path_of(view) {
        let track = packets.named("Critical path")?;
        for segment in &path.segments {
            let thread = analysis.thread(segment.thread);
            let process = analysis.process(thread.process);
            let mut facts = vec![
                words("kind", Use::of(segment.kind, true).title().to_owned()),
                number("pid", u64::from(process.pid.0)),
                number("tid", u64::from(thread.tid.0)),
            ];
            if segment.inferred {
                facts.push(words("inferred", "true".to_owned()));
            }
            let name = label::label(process);
            packets.slice(track, (segment.from, segment.to), name, facts)?;
        }
    }
    counters(analysis, packets)
}

/// The machine's counters: current values, and of totals the share of the time since the
/// sample before.
fn counters(analysis: &Analysis, packets: &mut Packets<'_>) -> io::Result<()> {
    for counter in Counter::ALL {
        let unit = match counter.unit() {
            Unit::Time => "%",
            Unit::Bytes => "bytes",
            Unit::Frequency => "kHz",
            Unit::Count => continue,
        };
        let mut track = None;
        let mut before: Option<(Ktime, u64)> = None;
        for (time, counters) in &analysis.counters {
            let Some(value) = counters.get(counter) else {
                continue;
            };
            let last = before.replace((*time, value));
            let shown = match (counter.unit(), last) {
                (Unit::Time, None) => continue,
                (Unit::Time, Some((since, total))) => {
                    let span = time.since(since).max(1);
                    value.saturating_sub(total) as f64 * 100.0 / span as f64
                }
                _ => value as f64,
            };
            let track = match track {
                Some(track) => track,
                None => *track.insert(packets.counter(counter.name(), unit)?),
            };
            packets.count(track, *time, shown)?;
        }
    }
    Ok(())
}

/// A stay of a chosen task on a CPU.
struct Stay {
    cpu: CpuId,
    from: Ktime,
    to: Ktime,
    tid: Tid,
    /// The state in which it left.
    state: i64,
}

/// The stays of the chosen threads, as the analysis has them, by CPU and time.
fn stays(view: &View<'_>, waits: &mut Vec<(Ktime, Tid)>) -> Vec<Stay> {
    let analysis = view.analysis;
    let mut stays = Vec::new();
    let threads = view.processes().flat_map(|process| &process.threads);
    for ix in threads {
        let tid = analysis.thread(*ix).tid;
        let mut last: Option<Stay> = None;
        for stretch in analysis.timeline.iter().flat_map(|all| all.of(*ix)) {
            if let Some(mut stay) = last.take() {
                stay.state = state(stretch.doing);
                stays.push(stay);
            }
            match (stretch.doing, stretch.cpu) {
                (Bucket::OnCpu(_), Some(cpu)) => {
                    last = Some(Stay {
                        cpu,
                        from: stretch.from,
                        to: stretch.to,
                        tid,
                        // TASK_DEAD as it is reported: nothing follows.
                        state: 0x10,
                    });
                }
                (Bucket::Wait(Wait::Io), _) => waits.push((stretch.to, tid)),
                _ => {}
            }
        }
        stays.extend(last);
    }
    stays.sort_by_key(|it| (it.cpu, it.from, it.to));
    stays
}

/// The state of a task that leaves a CPU, as the tracepoint sched_switch reports it
/// (include/trace/events/sched.h, `__trace_sched_switch_state`).
fn state(after: Bucket) -> i64 {
    match after {
        Bucket::RunQueue { preempted: true } => 0x100,
        Bucket::Wait(Wait::Sleep) => 1,
        Bucket::Wait(Wait::Io | Wait::Vfork | Wait::Blocked) => 2,
        Bucket::Wait(Wait::Stopped) => 4,
        _ => 0,
    }
}

/// The switches between stays, a bundle after the other; the counter of running tasks.
fn switches(
    view: &View<'_>,
    comms: &HashMap<Tid, Comm>,
    packets: &mut Packets<'_>,
) -> io::Result<()> {
    let analysis = view.analysis;
    let mut waits = Vec::new();
    let stays = stays(view, &mut waits);
    for stays in stays.chunk_by(|a, b| a.cpu == b.cpu) {
        let Some(first) = stays.first() else {
            continue;
        };
        let number = first.cpu;
        let figures = analysis.cpus.iter().find(|(cpu, _)| *cpu == number);
        let idle = figures.is_some_and(|(_, figures)| figures.idle_known);
        let between = if idle { Tid::IDLE } else { NOT_RECORDED };
        let mut cpu = Cpu::default();
        // The importer leaves out the first switch of a CPU.
        cpu.switch(analysis.start, Tid::IDLE, 0, comms);
        let (mut since, mut left) = (analysis.start, 0);
        for stay in stays {
            if stay.from > since {
                cpu.switch(since, between, left, comms);
                left = 1;
            }
            cpu.switch(stay.from, stay.tid, left, comms);
            (since, left) = (stay.to, stay.state);
            if cpu.length() >= BUNDLE {
                cpu.flush(number, packets)?;
            }
        }
        cpu.switch(since, between, left, comms);
        cpu.flush(number, packets)?;
    }
    let mut cpu = Cpu::default();
    for (time, tid) in waits {
        let reason = SchedBlockedReason {
            pid: id(tid.0),
            io_wait: 1,
        };
        cpu.event(time, Tid::IDLE, 0, Ftrace::SchedBlockedReason(reason));
    }
    cpu.flush(CpuId(0), packets)?;
    running(&stays, analysis, packets)
}

/// The mean number of chosen tasks on CPUs in each interval.
fn running(stays: &[Stay], analysis: &Analysis, packets: &mut Packets<'_>) -> io::Result<()> {
    let track = packets.counter("recorded tasks on a CPU", "tasks")?;
    let place = |time: Ktime| (time.since(analysis.start) / INTERVAL) as usize;
    let mut sums = vec![0u64; place(analysis.end) + 1];
    for stay in stays {
        let mut from = stay.from;
        while from < stay.to {
            let at = place(from);
            let next = Ktime(analysis.start.0 + (at as u64 + 1) * INTERVAL);
            let to = next.min(stay.to);
            if let Some(sum) = sums.get_mut(at) {
                *sum += to.since(from);
            }
            from = to;
        }
    }
    for (at, sum) in sums.into_iter().enumerate() {
        let time = Ktime(analysis.start.0 + at as u64 * INTERVAL);
        packets.count(track, time, sum as f64 / INTERVAL as f64)?;
    }
    Ok(())
}

/// Wake-ups and the lives of tasks, from the events.
struct Lives<'a> {
    analysis: &'a Analysis,
    /// The tasks whose events are written.
    chosen: HashSet<Tid>,
    cpus: BTreeMap<CpuId, Cpu>,
    comms: HashMap<Tid, Comm>,
    /// The parents of the living processes.
    parents: HashMap<Tgid, Tgid>,
    /// The processes of the living tasks, if wake-ups are drawn as flows.
    flows: Option<HashMap<Tid, Tgid>>,
}

/// A CPU's bundle.
#[derive(Default)]
struct Cpu {
    compact: CompactSched,
    events: Vec<FtraceEvent>,
    interned: HashMap<String, u32>,
    last_switch: u64,
    last_waking: u64,
}

impl<'a> Lives<'a> {
    fn new(view: &View<'a>, flows: bool) -> Lives<'a> {
        let analysis = view.analysis;
        let threads = view.processes().flat_map(|process| &process.threads);
        Lives {
            analysis,
            chosen: threads.map(|ix| analysis.thread(*ix).tid).collect(),
            cpus: BTreeMap::new(),
            comms: HashMap::new(),
            parents: HashMap::new(),
            flows: flows.then(HashMap::new),
        }
    }

    /// A task began in this process.
    fn task(&mut self, tid: Tid, tgid: Tgid) {
        if let Some(processes) = &mut self.flows {
            processes.insert(tid, tgid);
        }
    }

    fn write(mut self, trace: &Trace, packets: &mut Packets<'_>) -> io::Result<()> {
        let mut merge = order::merge(trace);
        while let Some(event) = merge.next_event() {
            if event.time() > self.analysis.end {
                break;
            }
            match event {
                Event::Sched(cpu, event) => self.waking(cpu, event, packets)?,
                Event::Life(event) => self.life(event, packets)?,
            }
        }
        for (number, mut cpu) in std::mem::take(&mut self.cpus) {
            cpu.flush(number, packets)?;
        }
        Ok(())
    }

    fn waking(
        &mut self,
        number: CpuId,
        event: SchedEvent,
        packets: &mut Packets<'_>,
    ) -> io::Result<()> {
        let SchedKind::Waking {
            waker,
            wakee,
            context,
            new,
            ..
        } = event.kind
        else {
            return Ok(());
        };
        if event.time < self.analysis.start || !self.chosen.contains(&wakee) {
            return Ok(());
        }
        let flags = match context {
            Context::HardIrq => 0x08,
            Context::SoftIrq => 0x10,
            Context::Task | Context::SendSoftIrq => 0,
        };
        let known = |tid: Tid| Some((*self.flows.as_ref()?.get(&tid)?, tid));
        let ends = known(waker).zip(known(wakee));
        if let Some((from, to)) = ends.filter(|_| flags == 0 && self.chosen.contains(&waker)) {
            let (from, to) = (packets.thread(from.0, from.1)?, packets.thread(to.0, to.1)?);
            packets.flow(event.time, from, to)?;
        }
        let cpu = self.cpus.entry(number).or_default();
        if new {
            let comm = self.comms.get(&wakee).copied().unwrap_or_default();
            let wakeup = SchedWakeupNew {
                comm: text(comm.bytes()),
                pid: id(wakee.0),
                prio: PRIO,
                success: 1,
                target_cpu: 0,
            };
            cpu.event(event.time, waker, flags, Ftrace::SchedWakeupNew(wakeup));
        } else {
            cpu.waking(event.time, wakee, flags, &self.comms);
        }
        if cpu.length() >= BUNDLE {
            cpu.flush(number, packets)?;
        }
        Ok(())
    }

    fn life(&mut self, event: &LifeEvent, packets: &mut Packets<'_>) -> io::Result<()> {
        let start = self.analysis.start;
        let time = event.time.max(start);
        match &event.kind {
            LifeKind::Snapshot(task) => {
                self.comms.insert(task.tid, task.comm);
                self.task(task.tid, task.tgid);
                if !self.chosen.contains(&task.tid) {
                    return Ok(());
                }
                let mut tree = ProcessTree::default();
                if task.tid.0 == task.tgid.0 {
                    self.parents.insert(task.tgid, task.parent_tgid);
                    tree.processes.push(process(
                        task.tgid,
                        task.parent_tgid,
                        &task.argv,
                        task.comm,
                    ));
                }
                tree.threads.push(Thread {
                    tid: id(task.tid.0),
                    name: text(task.comm.bytes()),
                    tgid: id(task.tgid.0),
                });
                packets.put(Some(start), Data::ProcessTree(tree))
            }
            LifeKind::Fork(fork) => {
                self.comms.insert(fork.tid, fork.comm);
                self.task(fork.tid, fork.tgid);
                if fork.tid.0 == fork.tgid.0 {
                    self.parents.insert(fork.tgid, fork.parent_tgid);
                }
                if self.chosen.contains(&fork.tid) {
                    let cpu = self.cpus.entry(event.cpu.unwrap_or_default()).or_default();
                    cpu.event(time, fork.parent_tid, 0, new_task(fork));
                }
                Ok(())
            }
            LifeKind::Exec(exec) => {
                self.comms.insert(exec.tid, exec.comm);
                if !self.chosen.contains(&exec.tid) {
                    return Ok(());
                }
                let parent = self.parents.get(&exec.tgid).copied().unwrap_or_default();
                let tree = ProcessTree {
                    processes: vec![process(exec.tgid, parent, &exec.argv, exec.comm)],
                    threads: Vec::new(),
                };
                packets.put(Some(time), Data::ProcessTree(tree))
            }
            LifeKind::Rename(rename) => {
                self.comms.insert(rename.tid, rename.comm);
                Ok(())
            }
            LifeKind::Final(last) => {
                self.comms.remove(&last.tid);
                self.parents.remove(&Tgid(last.tid.0));
                Ok(())
            }
            _ => Ok(()),
        }
    }
}

fn new_task(fork: &Fork) -> Ftrace {
    let thread = fork.tid.0 != fork.tgid.0;
    Ftrace::TaskNewtask(TaskNewtask {
        pid: id(fork.tid.0),
        comm: text(fork.comm.bytes()),
        clone_flags: if thread { CLONE_THREAD } else { 0 },
    })
}

fn process(pid: Tgid, parent: Tgid, argv: &Argv, comm: Comm) -> Process {
    let mut cmdline: Vec<String> = argv.args().map(text).collect();
    if cmdline.is_empty() {
        cmdline.push(text(comm.bytes()));
    }
    Process {
        pid: id(pid.0),
        ppid: id(parent.0),
        cmdline,
    }
}

impl Cpu {
    fn length(&self) -> usize {
        let compact = &self.compact;
        compact.switch_timestamp.len() + compact.waking_timestamp.len() + self.events.len()
    }

    fn event(&mut self, time: Ktime, running: Tid, common_flags: u32, event: Ftrace) {
        self.events.push(FtraceEvent {
            timestamp: time.0,
            pid: running.0,
            common_flags,
            event: Some(event),
        });
    }

    /// A switch to `next`, of a task in this state.
    fn switch(&mut self, time: Ktime, next: Tid, state: i64, comms: &HashMap<Tid, Comm>) {
        let comm = self.comm(next, comms);
        let compact = &mut self.compact;
        let step = step(
            time,
            &mut self.last_switch,
            compact.switch_timestamp.is_empty(),
        );
        compact.switch_timestamp.push(step);
        compact.switch_prev_state.push(state);
        compact.switch_next_pid.push(id(next.0));
        compact.switch_next_prio.push(PRIO);
        compact.switch_next_comm_index.push(comm);
    }

    fn waking(&mut self, time: Ktime, wakee: Tid, flags: u32, comms: &HashMap<Tid, Comm>) {
        let comm = self.comm(wakee, comms);
        let compact = &mut self.compact;
        let step = step(
            time,
            &mut self.last_waking,
            compact.waking_timestamp.is_empty(),
        );
        compact.waking_timestamp.push(step);
        compact.waking_pid.push(id(wakee.0));
        compact.waking_target_cpu.push(0);
        compact.waking_prio.push(PRIO);
        compact.waking_comm_index.push(comm);
        compact.waking_common_flags.push(flags);
    }

    /// The place of a task's name in the bundle's table.
    fn comm(&mut self, tid: Tid, comms: &HashMap<Tid, Comm>) -> u32 {
        let name = match comms.get(&tid) {
            _ if tid == Tid::IDLE => "swapper".to_owned(),
            _ if tid == NOT_RECORDED => "not recorded".to_owned(),
            Some(comm) => text(comm.bytes()),
            None => String::new(),
        };
        if let Some(at) = self.interned.get(&name) {
            return *at;
        }
        let at = u32::try_from(self.compact.intern_table.len()).unwrap_or(u32::MAX);
        self.compact.intern_table.push(name.clone());
        self.interned.insert(name, at);
        at
    }

    fn flush(&mut self, number: CpuId, packets: &mut Packets<'_>) -> io::Result<()> {
        if self.length() == 0 {
            return Ok(());
        }
        self.interned.clear();
        let bundle = FtraceEventBundle {
            cpu: Some(u32::from(number.0)),
            event: std::mem::take(&mut self.events),
            compact_sched: Some(std::mem::take(&mut self.compact)),
        };
        packets.put(None, Data::FtraceEvents(Box::new(bundle)))
    }
}

/// The difference to the time before; the first of a bundle is whole.
fn step(time: Ktime, last: &mut u64, first: bool) -> u64 {
    let before = std::mem::replace(last, time.0);
    if first {
        time.0
    } else {
        time.0.saturating_sub(before)
    }
}
