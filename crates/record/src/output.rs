//! Writes the trace in a thread of its own, because packing the events must not delay draining the source.

use std::collections::{HashMap, HashSet};
use std::io;
use std::sync::mpsc::{sync_channel, Receiver, SyncSender, TryRecvError, TrySendError};
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Duration;

use tr_format::container::Container;
use tr_format::event::{
    Argv, CgroupId, CgroupPath, CpuId, Ktime, LifeEvent, LifeKind, SchedEvent, Stream, Tid,
};
use tr_format::mask::Masked;
use tr_format::meta::{Metadata, Summary};
use tr_format::writer::{Writer, Written};
use tr_output::{cgroups, Destination};

use crate::disks::{Names, SyncFiles};
use crate::mappings::Mapped;
use crate::marks::{self, Count as MarkCount};
use crate::network::Connections;
use crate::queue::Queue;
use crate::quotas::Quotas;
use crate::scripts::{Runner, ScriptFinder, Scripts};
use crate::size::Size;
use crate::source::{degraded, recorder, Drained, ProgramClock, Take};
use crate::stacks::{Stacked, Stacks};
use crate::watcher::{Watcher, Watching};
use crate::{containers, urgency};
use tr_redact::Redactor;
use tr_symbols::Request;

/// The longest time that COMMAND's start is delayed until a reader takes the header of the trace from a pipe.
const NO_READER: Duration = Duration::from_millis(250);

/// The largest number of losses of events that are kept for the report at the end. A limit is needed because a ring
/// that is full for days reports three losses a second.
const LOSSES: usize = 16;

/// The events that are sent to the writing thread in one message, with the lines of marks.
pub struct Batch {
    pub events: Box<dyn Drained>,
    /// The events that the recorder itself has made, and not the source.
    pub own: Vec<LifeEvent>,
    /// The time before which all events of the source have been drained.
    pub drained_until: Ktime,
    /// Whether the batch is one of those that are sent at regular intervals. Other batches are sent in between when
    /// many events were drained.
    pub due: bool,
    /// Whether the writing thread closes the open blocks of the trace file after this batch.
    pub flush: bool,
    pub marks: Lines,
}

/// Lines that were read together from the file of marks (`$TR_MARKS`), to which programs append one line for each mark.
pub struct Lines {
    pub lines: Vec<u8>,
    /// The time at which these lines were read; for the last lines, the end of the recording.
    pub time: Ktime,
    /// The number of bytes of the file that are not read, because they are beyond the limit.
    pub unread: u64,
}

enum Message {
    Batch(Box<Batch>),
    Life(Stream, Vec<LifeEvent>),
    /// A request for the frames of stacks whose functions are not known yet.
    Unnamed(SyncSender<Request>),
    Finish(Box<Summary>),
}

/// The result of sending the last batches to the writing thread ([`Output::send`]).
enum Sent {
    Done,
    /// The thread that writes the trace has ended early.
    Ended,
    /// The function `go_on` has ended the wait for room in the queue to the writing thread.
    GivenUp,
}

/// How many execs are recorded without all of their arguments, for each reason.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CutArguments {
    /// The number of execs whose arguments are longer than `--argv-limit`.
    pub limit: u64,
    /// The number of execs whose arguments are cut to their first bytes, because the ring of the BPF programs had no
    /// room for all of them.
    pub no_room: u64,
    /// The number of execs whose arguments could not be read from the process's memory.
    pub unreadable: u64,
}

impl CutArguments {
    /// Counts an exec whose arguments are not complete. At most `limit` bytes of arguments are recorded.
    fn count(&mut self, argv: &Argv, limit: u32) {
        if !argv.truncated() {
            return;
        }
        let reason = if argv.full_len.is_none() {
            &mut self.unreadable
        } else if argv.bytes.len() >= limit as usize {
            &mut self.limit
        } else {
            &mut self.no_room
        };
        *reason += 1;
    }

    fn add(&mut self, other: &CutArguments) {
        self.limit += other.limit;
        self.no_room += other.no_room;
        self.unreadable += other.unreadable;
    }
}

/// How many events were written to the trace, and how many were lost or masked.
#[derive(Clone, Debug, Default)]
pub struct Tally {
    pub written: Written,
    pub processes: u64,
    /// The first events that report losses, at most `LOSSES`.
    pub lost: Vec<LifeEvent>,
    /// The number of all events that report losses, including those that are not kept.
    pub losses: u64,
    pub cut_arguments: CutArguments,
    /// The number of values in command lines that were masked as secrets.
    pub masked: u64,
    pub marks: MarkCount,
}

impl Tally {
    /// Adds the counts of another part of a rotated recording. Processes that run in both parts count twice.
    pub fn add(&mut self, other: &Tally) {
        self.written.bytes += other.written.bytes;
        self.written.frames += other.written.frames;
        self.written.by_kind.add(&other.written.by_kind);
        self.processes += other.processes;
        for event in &other.lost {
            self.lose(event);
        }
        self.losses += other.losses - other.lost.len() as u64;
        self.cut_arguments.add(&other.cut_arguments);
        self.masked += other.masked;
        self.marks.add(other.marks);
    }

    fn lose(&mut self, event: &LifeEvent) {
        self.losses += 1;
        if self.lost.len() < LOSSES {
            self.lost.push(event.clone());
        }
    }
}

/// The result of the writing thread: the counts of what it wrote, and its first error.
pub type Outcome = (Tally, Result<(), tr_format::Error>);

/// The handle by which the recorder sends events to the thread that writes the trace.
#[derive(Debug)]
pub struct Output {
    sender: SyncSender<Message>,
    thread: JoinHandle<Outcome>,
    size: Arc<Size>,
}

impl Output {
    /// Writes the header of the trace and starts the thread that writes events.
    pub fn start(
        destination: Destination,
        meta: &Masked<Metadata>,
        redactor: Redactor,
        connections: Connections,
        watching: Option<Watching>,
        scripts: Option<ScriptFinder>,
    ) -> Result<Output, tr_format::Error> {
        destination.lock();
        let (out, name) = destination.split();
        let queue = Queue::new(out)?;
        let watch = queue.watch();
        let start = meta.start;
        let has_stacks = meta.has_stacks();
        let argv_limit = meta.options.argv_limit;
        let mut writer = Writer::new(queue, meta)?;
        writer.flush()?;
        if name.is_file() {
            watch.write();
        }
        watch.drained((!name.is_file()).then_some(NO_READER))?;
        name.publish()?;
        // Only a few messages wait in the channel, because each can have all events of a drain. The collector limits
        // the memory of further events.
        let (sender, receiver) = sync_channel(4);
        let size = Arc::new(Size::default());
        let own_size = Arc::clone(&size);
        let thread = std::thread::Builder::new()
            .name("tr-writer".into())
            .spawn(move || {
                urgency::high();
                State {
                    writer,
                    redactor,
                    tally: Tally::default(),
                    forked: HashSet::new(),
                    argv_limit,
                    cgroups: Cgroups::default(),
                    quotas: Quotas::default(),
                    marks: marks::Reader::new(start),
                    connections,
                    disks: Names::default(),
                    files: SyncFiles::default(),
                    size: own_size,
                    unflushed: 0,
                    stacks: Stacks::new(has_stacks),
                    scripts: Scripts::new(scripts),
                    runner: None,
                    watcher: watching.map(|watching| (watching.start)(start)),
                    killed: false,
                }
                .run(&receiver)
            })?;
        Ok(Output {
            sender,
            thread,
            size,
        })
    }

    /// The number of bytes that the trace file had after its last flush.
    pub fn written(&self) -> u64 {
        self.size.written()
    }

    /// The size of the trace file so far, by which the limit of its size is enforced.
    pub fn size(&self) -> &Size {
        &self.size
    }

    /// Sends a batch to the writing thread. The error is `Some(batch)` while the thread is busy, and `None` if the
    /// thread has ended (see [`Output::finish`]).
    pub fn offer(&self, batch: Batch) -> Result<(), Option<Batch>> {
        let memory = batch.events.bytes();
        // The memory of the batch is added before the batch is sent, because the writing thread subtracts this memory
        // as soon as it has written the batch.
        self.size.sent(memory);
        let sent = self.sender.try_send(Message::Batch(Box::new(batch)));
        if sent.is_err() {
            self.size.unsent(memory);
        }
        match sent {
            Ok(()) => Ok(()),
            Err(TrySendError::Full(Message::Batch(batch))) => Err(Some(*batch)),
            Err(_) => Err(None),
        }
    }

    /// Sends to the writing thread events that were not drained from the source. The thread has room for these events,
    /// because they are sent only before the first batch or after the last one.
    pub fn life(&self, stream: Stream, events: Vec<LifeEvent>) {
        let _ = self.sender.send(Message::Life(stream, events));
    }

    /// Whether the writer's thread has ended early, because a write failed.
    pub fn failed(&self) -> bool {
        self.thread.is_finished()
    }

    /// Sends the last batches and then the message `last` to the writing thread. While the thread's queue is full, this
    /// function calls `go_on`, which sleeps for a moment, and returns false to give up.
    fn send(&self, batches: Vec<Batch>, last: Message, go_on: &mut impl FnMut() -> bool) -> Sent {
        let batches = batches.into_iter().map(|batch| {
            self.size.sent(batch.events.bytes());
            Message::Batch(Box::new(batch))
        });
        for mut message in batches.chain([last]) {
            loop {
                match self.sender.try_send(message) {
                    Ok(()) => break,
                    Err(TrySendError::Disconnected(_)) => return Sent::Ended,
                    Err(TrySendError::Full(back)) => message = back,
                }
                if !go_on() {
                    return Sent::GivenUp;
                }
            }
        }
        Sent::Done
    }

    /// Sends the last batches of a recording. Returns the frames of all recorded stacks whose functions are still to be
    /// found. `None` if the writing thread has ended, or if `go_on` has ended the wait for that thread.
    pub fn unnamed(&self, batches: Vec<Batch>, mut go_on: impl FnMut() -> bool) -> Option<Request> {
        let (reply, answer) = sync_channel(1);
        let sent = self.send(batches, Message::Unnamed(reply), &mut go_on);
        if !matches!(sent, Sent::Done) {
            return None;
        }
        loop {
            match answer.try_recv() {
                Ok(request) => return Some(request),
                Err(TryRecvError::Empty) if go_on() => {}
                Err(_) => return None,
            }
        }
    }

    /// Sends the last batches of a file to the writing thread and makes it write them. The file's summary is written
    /// later. While the thread has no room for them, `go_on` is called: it sleeps, and returns false to give up.
    pub fn settle(&self, mut batches: Vec<Batch>, mut go_on: impl FnMut() -> bool) {
        if let Some(last) = batches.last_mut() {
            last.flush = true;
        }
        self.send(
            batches,
            Message::Life(Stream::Recorder, Vec::new()),
            &mut go_on,
        );
    }

    /// Completes the trace file. While the output accepts no data, `go_on` is called again and again. Each call sleeps
    /// for a moment, and a call that returns false gives up: the file is cut short, and the result is `None`. If a
    /// write fails, the result has the error, and the counts of what was written before the error.
    pub fn finish(
        self,
        batches: Vec<Batch>,
        summary: Summary,
        mut go_on: impl FnMut() -> bool,
    ) -> Option<Outcome> {
        let last = Message::Finish(Box::new(summary));
        if matches!(self.send(batches, last, &mut go_on), Sent::GivenUp) {
            return None;
        }
        drop(self.sender);
        while !self.thread.is_finished() {
            if !go_on() {
                return None;
            }
        }
        let panicked = || io::Error::other("the writing thread has failed");
        let outcome = self.thread.join();
        Some(outcome.unwrap_or_else(|_| (Tally::default(), Err(panicked().into()))))
    }
}

struct State {
    writer: Writer<Queue>,
    redactor: Redactor,
    tally: Tally,
    /// The living processes whose fork is recorded. If a process has a snapshot event in addition to its fork, it is
    /// counted only once.
    forked: HashSet<Tid>,
    /// The largest number of bytes of a program's arguments that are recorded.
    argv_limit: u32,
    cgroups: Cgroups,
    marks: marks::Reader,
    connections: Connections,
    disks: Names,
    files: SyncFiles,
    /// The size of the trace file so far, which other threads read.
    size: Arc<Size>,
    /// The memory in bytes of the events that were written since the last flush.
    unflushed: usize,
    stacks: Stacks,
    scripts: Scripts,
    /// The user, the group and the root directory of the task of the next exec, which decide which script files that
    /// task can open; `None` if they are not needed.
    runner: Option<Runner>,
    quotas: Quotas,
    watcher: Option<Box<dyn Watcher>>,
    /// Whether the kernel has killed a process since the last flush because memory ran out. The recorder may be next.
    killed: bool,
}

impl State {
    fn run(mut self, messages: &Receiver<Message>) -> Outcome {
        let summary = self.write_all(messages);
        self.tally.written = self.writer.written().clone();
        self.tally.marks = self.marks.count;
        let result = match summary {
            // The recording was dropped without a summary: its events are still written, but the file lacks its end.
            Ok(None) => self.writer.flush(),
            Ok(Some(mut summary)) => {
                (summary.scripts, summary.scripts_left_out) = self.scripts.take();
                Masked::new(*summary, &mut self.redactor)
                    .and_then(|summary| self.writer.finish(&summary))
                    .and_then(|(mut queue, written)| {
                        self.tally.written = written;
                        Ok(queue.drain()?)
                    })
            }
            Err(error) => Err(error),
        };
        self.tally.masked = self.redactor.masked();
        (self.tally, result)
    }

    fn write_all(
        &mut self,
        messages: &Receiver<Message>,
    ) -> Result<Option<Box<Summary>>, tr_format::Error> {
        for message in messages {
            match message {
                Message::Batch(batch) => self.batch(&batch)?,
                Message::Life(stream, events) => {
                    for event in events {
                        self.store(stream, event)?;
                    }
                }
                Message::Unnamed(reply) => {
                    let _ = reply.send(self.stacks.request());
                }
                Message::Finish(summary) => {
                    self.quotas(summary.end, true)?;
                    if let Some(missing) = self.marks.count.missing() {
                        self.write(Stream::Recorder, recorder(summary.end, degraded(missing)))?;
                    }
                    return Ok(Some(summary));
                }
            }
        }
        Ok(None)
    }

    fn batch(&mut self, batch: &Batch) -> Result<(), tr_format::Error> {
        self.scripts.begin_batch();
        batch.events.write(batch.drained_until, self)?;
        self.unflushed += batch.events.bytes();
        for event in &batch.own {
            self.store(Stream::Recorder, event.clone())?;
        }
        self.marks(&batch.marks)?;
        // The marks in a regular batch were read after the processes in that batch ended. So the time offsets by
        // which the marks of these processes are converted are not needed any more.
        if batch.due {
            self.marks.clocks.forget_ended();
        }
        self.quotas.read();
        self.quotas(batch.drained_until, false)?;
        if let Some(watcher) = self.watcher.as_mut().filter(|_| batch.due) {
            watcher.until(batch.drained_until);
        }
        let killed = std::mem::take(&mut self.killed);
        if batch.flush || killed {
            let progress = recorder(batch.drained_until, LifeKind::Watermark);
            self.write(Stream::Recorder, progress)?;
            self.writer.flush()?;
            let memory = std::mem::take(&mut self.unflushed);
            self.size.flushed(self.writer.written().bytes, memory);
        }
        Ok(())
    }

    fn marks(&mut self, batch: &Lines) -> Result<(), tr_format::Error> {
        for event in self.marks.events(batch.time, &batch.lines) {
            let event = Masked::new(event, &mut self.redactor)?;
            self.writer.life(Stream::Recorder, event)?;
        }
        self.marks.count.unread += batch.unread;
        Ok(())
    }

    fn store(&mut self, stream: Stream, mut event: LifeEvent) -> Result<(), tr_format::Error> {
        // Scripts are looked for before secrets are masked, because their true paths are needed.
        let mut found = None;
        if let LifeKind::Exec(exec) = &event.kind {
            found = containers::of(exec);
            self.stacks.executed(&exec.filename);
            self.tally.cut_arguments.count(&exec.argv, self.argv_limit);
            self.scripts.executed(event.time, exec, self.runner.take());
        }
        if let LifeKind::CgroupPath(made) = &event.kind {
            self.quotas.made(&made.path);
        }
        self.disks.take(&mut event.kind);
        if !self.files.take(&event.kind) {
            return Ok(());
        }
        if !self.connections.take(&mut event.kind) {
            return Ok(());
        }
        let event = Masked::new(event, &mut self.redactor)?;
        match &event.kind {
            LifeKind::Fork(fork) if fork.tid.0 == fork.tgid.0 => {
                self.forked.insert(fork.tid);
                self.tally.processes += 1;
            }
            LifeKind::Snapshot(task) if task.followed && task.tid.0 == task.tgid.0 => {
                self.tally.processes += u64::from(!self.forked.contains(&task.tid));
            }
            LifeKind::Exit(exit) => {
                self.forked.remove(&exit.tid);
                if exit.group_dead {
                    self.marks.clocks.end(exit.tgid);
                }
            }
            LifeKind::End(end) => drop(self.forked.remove(&end.tid)),
            LifeKind::Lost(_) => self.tally.lose(&event),
            LifeKind::OomKill(_) => self.killed = true,
            _ => {}
        }
        if let Some(path) = self.cgroups.first_seen(&event) {
            self.write(
                Stream::Recorder,
                recorder(event.time, LifeKind::CgroupPath(path)),
            )?;
        }
        let time = event.time;
        if let Some(watcher) = &mut self.watcher {
            watcher.life(&event);
        }
        self.writer.life(stream, event)?;
        if let Some(found) = found {
            // The runtime is executed one last time before the container's cgroup is removed, but it is not known
            // which exec is the last. So at each exec of a runtime the quotas of all cgroups are read.
            self.quotas.read();
            self.quotas.add(&found);
            self.container(time, found.container)?;
        }
        Ok(())
    }

    fn container(&mut self, time: Ktime, container: Container) -> Result<(), tr_format::Error> {
        let event = recorder(time, LifeKind::Container(Box::new(container)));
        self.write(Stream::Recorder, event)
    }

    /// Masks the secrets in an event and writes the event to the trace.
    fn write(&mut self, stream: Stream, event: LifeEvent) -> Result<(), tr_format::Error> {
        let event = Masked::new(event, &mut self.redactor)?;
        self.writer.life(stream, event)
    }

    /// Writes events that say for how long CPU quotas have throttled the containers that have ended. At the end of the
    /// recording `all` is set, and the containers that still run are included.
    fn quotas(&mut self, time: Ktime, all: bool) -> Result<(), tr_format::Error> {
        for container in self.quotas.ended(all) {
            self.container(time, container)?;
        }
        Ok(())
    }
}

impl Take for State {
    fn sched(&mut self, cpu: CpuId, event: SchedEvent) -> Result<(), tr_format::Error> {
        if let Some(watcher) = &mut self.watcher {
            watcher.sched(&event);
        }
        self.writer.sched(cpu, event)
    }

    fn life(&mut self, stream: Stream, event: LifeEvent) -> Result<(), tr_format::Error> {
        self.store(stream, event)
    }

    fn stack(&mut self, sample: &Stacked) -> Result<(), tr_format::Error> {
        for kind in self.stacks.events(sample) {
            let (time, cpu) = (sample.time, sample.cpu);
            self.write(Stream::Lifecycle, LifeEvent { time, cpu, kind })?;
        }
        Ok(())
    }

    fn mapped(&mut self, from: &Mapped) {
        self.stacks.mapped(from);
    }

    fn runs(&mut self, runner: Runner) {
        self.runner = Some(runner);
    }

    fn clock_of(&mut self, clock: ProgramClock) {
        self.marks.clocks.take(clock);
    }
}

/// The paths of the cgroups that recorded events name. A cgroup that was created during the recording has its own
/// event with the path. The paths of other cgroups are looked up.
#[derive(Debug, Default)]
struct Cgroups {
    written: HashSet<u64>,
    /// The paths of the cgroups that exist, by their ids. They are looked up once, when the first is needed.
    paths: Option<HashMap<u64, Vec<u8>>>,
}

impl Cgroups {
    /// The event with the path of the cgroup that an event names, if the trace does not have that path yet.
    fn first_seen(&mut self, event: &LifeEvent) -> Option<CgroupPath> {
        let id = match &event.kind {
            LifeKind::Fork(fork) => fork.cgroup,
            LifeKind::Exec(exec) => exec.cgroup,
            LifeKind::Snapshot(task) if task.followed => task.cgroup,
            LifeKind::CgroupPath(path) => {
                self.written.insert(path.id.0);
                return None;
            }
            _ => return None,
        };
        if id == CgroupId(0) || !self.written.insert(id.0) {
            return None;
        }
        let path = self
            .paths
            .get_or_insert_with(|| cgroups::paths().into_iter().collect())
            .get(&id.0)?;
        Some(CgroupPath {
            id,
            path: path.clone().into(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn marks_that_no_part_has_are_counted_over_all_parts() {
        let (mut tally, mut part) = (Tally::default(), Tally::default());
        (tally.marks.no_marks, part.marks.no_marks) = (1, 2);
        part.marks.unread = 7;
        tally.add(&part);
        assert_eq!((tally.marks.no_marks, tally.marks.unread), (3, 7));
    }

    #[test]
    fn only_the_first_losses_are_kept() {
        let lost = recorder(Ktime(1), LifeKind::Lost(tr_format::event::Lost::default()));
        let (mut tally, mut part) = (Tally::default(), Tally::default());
        for _ in 0..LOSSES - 1 {
            tally.lose(&lost);
        }
        for _ in 0..100_000 {
            part.lose(&lost);
        }
        tally.add(&part);
        assert_eq!(tally.lost.len(), LOSSES);
        assert_eq!(tally.losses, 100_000 + LOSSES as u64 - 1);
    }
}
