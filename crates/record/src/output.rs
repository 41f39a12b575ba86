//! The writing side: a thread of its own, so that a slow disk does not keep
//! the rings from being drained.

use std::collections::{HashMap, HashSet};
use std::fs::File;
use std::io::{self, Write};
use std::os::fd::{AsFd, AsRawFd};
use std::path::{Path, PathBuf};
use std::sync::mpsc::{sync_channel, Receiver, SyncSender, TrySendError};
use std::thread::JoinHandle;

use tr_format::event::{CgroupId, CgroupPath, CpuId, Exec, LifeEvent, LifeKind, Snapshot, Stream};
use tr_format::meta::{Metadata, Summary};
use tr_format::writer::{Writer, Written};

use crate::queue::Queue;
use crate::redact::Redactor;
use crate::rings::Batch;
use crate::{convert, host, identity, urgency};

/// Where the trace goes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Target {
    /// A file.
    File(PathBuf),
    /// Standard output.
    Stdout,
}

/// What the thread is given.
enum Message {
    Batch(Box<Batch>),
    Life(Stream, Vec<LifeEvent>),
    Finish(Box<Summary>),
}

/// What was counted while writing, for the closing words.
#[derive(Clone, Debug, Default)]
pub struct Tally {
    /// Bytes and events.
    pub written: Written,
    /// Processes that were recorded.
    pub processes: u64,
    /// Losses: stream, count, first and last time.
    pub lost: Vec<LifeEvent>,
    /// Execs whose argv was cut or could not be read.
    pub argv_cut: u64,
    /// Secrets in command lines that were masked.
    pub masked: u64,
}

/// The writer thread's handle.
#[derive(Debug)]
pub struct Output {
    sender: SyncSender<Message>,
    thread: JoinHandle<(Tally, Result<(), tr_format::Error>)>,
}

/// A file that takes its name only when its header is complete, so that a
/// reader never meets half a header and two recordings never mix. Until then it
/// has no name at all, or where the file system cannot do that a hidden one.
#[derive(Debug)]
struct Unnamed {
    file: File,
    hidden: Option<PathBuf>,
    path: PathBuf,
}

/// A name in the directory of `path` that nobody can foresee.
fn hidden(path: &Path) -> io::Result<PathBuf> {
    use std::hash::{BuildHasher, Hasher, RandomState};
    let mut name = std::ffi::OsString::from(".");
    name.push(path.file_name().ok_or(io::ErrorKind::IsADirectory)?);
    name.push(format!(
        ".{:016x}.tmp",
        RandomState::new().build_hasher().finish()
    ));
    Ok(path.with_file_name(name))
}

impl Unnamed {
    fn publish(mut self) -> io::Result<()> {
        let hidden = match self.hidden.take() {
            Some(hidden) => hidden,
            None => {
                let hidden = hidden(&self.path)?;
                nix::unistd::linkat(
                    nix::fcntl::AT_FDCWD,
                    format!("/proc/self/fd/{}", self.file.as_raw_fd()).as_str(),
                    nix::fcntl::AT_FDCWD,
                    &hidden,
                    nix::fcntl::AtFlags::AT_SYMLINK_FOLLOW,
                )?;
                hidden
            }
        };
        std::fs::rename(&hidden, &self.path).inspect_err(|_| {
            let _ = std::fs::remove_file(&hidden);
        })
    }
}

impl Drop for Unnamed {
    fn drop(&mut self) {
        if let Some(hidden) = &self.hidden {
            let _ = std::fs::remove_file(hidden);
        }
    }
}

/// What is no regular file (a fifo, /dev/null) is opened as it is. A link that
/// somebody else has put there is not followed but replaced, as any file is.
fn create(path: &Path) -> io::Result<(File, Option<Unnamed>)> {
    use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
    let mut options = std::fs::OpenOptions::new();
    options.write(true).mode(0o600);
    let is_special = |meta: &std::fs::Metadata| !meta.is_file();
    match std::fs::symlink_metadata(path) {
        Ok(link) if link.is_symlink() => {
            // /dev/stdout, /dev/fd/3 and what the user has made.
            let trusted = [0, nix::unistd::Uid::effective().as_raw()].contains(&link.uid());
            if trusted && std::fs::metadata(path).is_ok_and(|meta| is_special(&meta)) {
                return Ok((options.open(path)?, None));
            }
        }
        Ok(meta) if is_special(&meta) => {
            let file = options.custom_flags(libc::O_NOFOLLOW).open(path)?;
            return Ok((file, None));
        }
        _ => {}
    }
    let hidden = hidden(path)?;
    let directory = match path.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent,
        _ => Path::new("."),
    };
    let (file, hidden) = match options.custom_flags(libc::O_TMPFILE).open(directory) {
        Ok(file) => (file, None),
        // create_new does not follow a link either.
        Err(_) => {
            let file = options.custom_flags(0).create_new(true).open(&hidden)?;
            (file, Some(hidden))
        }
    };
    if let Some((user, group)) = identity::invoking_user() {
        // A file system that refuses it has its own idea of owners.
        let _ = nix::unistd::fchown(&file, Some(user), Some(group));
    }
    let unnamed = Unnamed {
        file: file.try_clone()?,
        hidden,
        path: path.to_owned(),
    };
    Ok((file, Some(unnamed)))
}

/// A place for the trace that has been found to be writable.
#[derive(Debug)]
pub struct Prepared {
    sink: Box<dyn SinkWrite>,
    name: Option<Unnamed>,
}

/// What the thread writes to.
trait SinkWrite: Write + Send + std::fmt::Debug {}
impl<T: Write + Send + std::fmt::Debug> SinkWrite for T {}

/// Opens the output, before COMMAND runs.
///
/// # Errors
/// When it cannot be created or written.
pub fn prepare(target: &Target) -> io::Result<Prepared> {
    Ok(match target {
        Target::File(path) => {
            let (file, name) = create(path)?;
            Prepared {
                sink: Box::new(file),
                name,
            }
        }
        // A descriptor of its own: number 1 is COMMAND's.
        Target::Stdout => Prepared {
            sink: Box::new(File::from(io::stdout().as_fd().try_clone_to_owned()?)),
            name: None,
        },
    })
}

impl Output {
    /// Writes the header and starts the thread.
    ///
    /// # Errors
    /// When the header cannot be written.
    pub fn start(
        prepared: Prepared,
        meta: &Metadata,
        redactor: Redactor,
    ) -> Result<Output, tr_format::Error> {
        let Prepared { sink, name } = prepared;
        let queue = Queue::new(sink)?;
        let watch = queue.watch();
        let mut writer = Writer::new(queue, meta)?;
        writer.flush()?;
        watch.drained()?;
        if let Some(name) = name {
            name.publish().map_err(tr_format::Error::from)?;
        }
        // Few: each holds up to a drain's events; the session bounds the rest.
        let (sender, receiver) = sync_channel(4);
        let page = u64::from(meta.page_size);
        let thread = std::thread::Builder::new()
            .name("tr-writer".into())
            .spawn(move || {
                urgency::high();
                State {
                    writer,
                    redactor,
                    page,
                    tally: Tally::default(),
                    cgroups: Cgroups::default(),
                }
                .run(&receiver)
            })
            .map_err(tr_format::Error::from)?;
        Ok(Output { sender, thread })
    }

    /// Hands a batch over; gives it back when the thread has too much to do.
    /// `Ok(None)` when the thread has ended (see [`Output::finish`]).
    pub fn offer(&self, batch: Batch) -> Result<(), Option<Batch>> {
        match self.sender.try_send(Message::Batch(Box::new(batch))) {
            Ok(()) => Ok(()),
            Err(TrySendError::Full(Message::Batch(batch))) => Err(Some(*batch)),
            Err(_) => Err(None),
        }
    }

    /// Hands over events that do not come from a ring; before there is anything
    /// else, when the thread has room.
    pub fn life(&self, stream: Stream, events: Vec<LifeEvent>) {
        let _ = self.sender.send(Message::Life(stream, events));
    }

    /// The thread has ended before its time: writing failed.
    pub fn failed(&self) -> bool {
        self.thread.is_finished()
    }

    /// Completes the file. An output may stall for as long as it likes: `go_on`
    /// is asked again and again, does the waiting, and says when it is enough.
    /// `None`: it was; the file is cut short.
    ///
    /// # Errors
    /// The first error that writing met, with what had been written by then.
    pub fn finish(
        self,
        batch: Batch,
        summary: Summary,
        mut go_on: impl FnMut() -> bool,
    ) -> Option<(Tally, Result<(), tr_format::Error>)> {
        let messages = [
            Message::Batch(Box::new(batch)),
            Message::Finish(Box::new(summary)),
        ];
        'messages: for mut message in messages {
            loop {
                match self.sender.try_send(message) {
                    Ok(()) => break,
                    Err(TrySendError::Disconnected(_)) => break 'messages,
                    Err(TrySendError::Full(back)) => message = back,
                }
                if !go_on() {
                    return None;
                }
            }
        }
        drop(self.sender);
        while !self.thread.is_finished() {
            if !go_on() {
                return None;
            }
        }
        Some(self.thread.join().unwrap_or_else(|_| {
            (
                Tally::default(),
                Err(io::Error::other("the writing thread has failed").into()),
            )
        }))
    }
}

struct State {
    writer: Writer<Queue>,
    redactor: Redactor,
    page: u64,
    tally: Tally,
    cgroups: Cgroups,
}

impl State {
    fn run(mut self, messages: &Receiver<Message>) -> (Tally, Result<(), tr_format::Error>) {
        let summary = self.write_all(messages);
        self.tally.written = self.writer.written().clone();
        self.tally.masked = self.redactor.masked();
        let result = match summary {
            // The session has gone without an end to write down.
            Ok(None) => self.writer.flush(),
            Ok(Some(summary)) => self
                .writer
                .finish(&summary)
                .and_then(|(mut queue, written)| {
                    self.tally.written = written;
                    Ok(queue.drain()?)
                }),
            Err(error) => Err(error),
        };
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
                        self.life(stream, event)?;
                    }
                }
                Message::Finish(summary) => return Ok(Some(summary)),
            }
        }
        Ok(None)
    }

    fn batch(&mut self, batch: &Batch) -> Result<(), tr_format::Error> {
        for (cpu, events) in batch.sched.iter().enumerate() {
            let Ok(cpu) = u16::try_from(cpu) else { break };
            for event in events.iter().filter_map(convert::sched) {
                self.writer.sched(CpuId(cpu), event)?;
            }
        }
        for record in batch.life_records() {
            for event in convert::life(record, self.page) {
                // Losses are the recorder's to say, whichever ring they come from.
                let stream = match event.kind {
                    LifeKind::Lost(_) => Stream::Recorder,
                    _ => Stream::Lifecycle,
                };
                self.life(stream, event)?;
            }
        }
        for (cpu, lost) in &batch.lost {
            self.life(Stream::Recorder, convert::lost(*cpu, lost))?;
        }
        for event in &batch.own {
            self.life(Stream::Recorder, event.clone())?;
        }
        if batch.flush {
            let progress = LifeEvent {
                time: batch.drained_until,
                cpu: None,
                kind: LifeKind::Progress,
            };
            self.writer.life(Stream::Recorder, progress)?;
            self.writer.flush()?;
        }
        Ok(())
    }

    fn life(&mut self, stream: Stream, mut event: LifeEvent) -> Result<(), tr_format::Error> {
        if let LifeKind::Exec(Exec { argv, .. }) | LifeKind::Snapshot(Snapshot { argv, .. }) =
            &mut event.kind
        {
            *argv = self.redactor.argv(std::mem::take(argv));
        }
        match &event.kind {
            LifeKind::Fork(fork) if fork.tid.0 == fork.tgid.0 => self.tally.processes += 1,
            LifeKind::Snapshot(task) if task.followed && task.tid.0 == task.tgid.0 => {
                self.tally.processes += 1
            }
            LifeKind::Exec(exec) if exec.argv.truncated() => self.tally.argv_cut += 1,
            LifeKind::Lost(_) => self.tally.lost.push(event.clone()),
            _ => {}
        }
        if let Some(path) = self.cgroups.first_seen(&event) {
            let kind = LifeKind::CgroupPath(path);
            self.writer.life(
                Stream::Recorder,
                LifeEvent {
                    time: event.time,
                    cpu: None,
                    kind,
                },
            )?;
        }
        self.writer.life(stream, event)
    }
}

/// Gives every cgroup that an event names its path, once. Cgroups made during
/// the recording tell theirs themselves; the others are looked up.
#[derive(Debug, Default)]
struct Cgroups {
    told: HashSet<u64>,
    found: Option<HashMap<u64, Vec<u8>>>,
}

impl Cgroups {
    fn first_seen(&mut self, event: &LifeEvent) -> Option<CgroupPath> {
        let id = match &event.kind {
            LifeKind::Fork(fork) => fork.cgroup,
            LifeKind::Exec(exec) => exec.cgroup,
            LifeKind::Snapshot(task) if task.followed => task.cgroup,
            LifeKind::CgroupPath(path) => {
                self.told.insert(path.id.0);
                return None;
            }
            _ => return None,
        };
        if id == CgroupId(0) || !self.told.insert(id.0) {
            return None;
        }
        let path = self
            .found
            .get_or_insert_with(|| host::cgroup_paths().into_iter().collect())
            .get(&id.0)?;
        Some(CgroupPath {
            id,
            path: path.clone().into(),
        })
    }
}
