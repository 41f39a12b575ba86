//! Gets the events of a recording by ptrace(2): forks, execs, ends, and the totals of each task (its run time, its time
//! in run queues and the number of its time slices). The times of the events are read by the recorder. System calls are
//! not stopped.

pub mod listener;
mod sys;
mod tracer;
mod waits;

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use nix::errno::Errno;
use nix::sys::eventfd::{EfdFlags, EventFd};
use tr_format::event::Ktime;
use tr_format::meta::{Known, Method, Origin, RecordingFacts};

use self::listener::About;
use self::tracer::{State, Thread};
use self::waits::Waits;
use super::sampler::Sampler;
use super::{command_alone, degraded, Drained, Last, Source, Started, NEEDS_PROGRAMS};
use crate::config::Config;
use crate::error::Error;
use crate::proc::{self, Alive, Id};
use crate::{host, urgency};

/// How a recording by ptrace(2) obtains each kind of fact, for example by events or by samples.
pub const FACTS: RecordingFacts = RecordingFacts {
    switches: Known::Totals,
    wakings: Known::Absent,
    run_queue: Known::Totals,
    blocked: Known::Absent,
    life_times: Known::Recorder,
    argv: Known::Recorder,
    codes: Known::Recorder,
    memory: Known::Absent,
};
/// The limits of a recording by ptrace(2), and the changes to COMMAND that the kernel's rules cause, as text
/// for the user.
pub const LIMITS: [&str; 3] = [
    NEEDS_PROGRAMS,
    "tasks that another tracer follows (gdb, strace, LSan): a task can have only one tracer",
    "programs that install a seccomp listener: they get EBUSY, as the kernel allows one a tree",
];
/// The longest time that the recorder waits until the tracer has seen COMMAND's end.
const LAST_END: Duration = Duration::from_secs(5);
/// The longest time for which a call of ptrace(2) by a recorded program waits. In this time, the recorder must detach
/// from the tasks that the call is about.
const LET_GO: Duration = Duration::from_secs(2);
/// The longest time between a signal to COMMAND and the same signal to `tr` at which both count as one signal that
/// somebody sent to both processes.
const TO_BOTH: Duration = Duration::from_millis(100);

/// The state that the thread of the ptrace tracer and the recorder's main thread share.
#[derive(Debug, Default)]
struct Shared {
    state: Mutex<State>,
    /// The condition variable that is signalled when the tracer has handled stops and ends of tracees.
    changed: Condvar,
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

struct Ptrace {
    shared: Arc<Shared>,
    /// A descriptor that becomes readable when COMMAND has ended or stopped; `None` if the kernel refuses it.
    news: Option<Arc<EventFd>>,
    thread: Option<JoinHandle<()>>,
    sampler: Option<Sampler>,
    root: Id,
}

/// Begins to trace COMMAND by ptrace(2). `child` is the process that was forked for COMMAND and waits for its
/// release. Without such a process the result is an error.
pub fn start(config: &Config, child: Option<u32>) -> Result<Started, Error> {
    let root = command_alone(config, child)?;
    let shared = Arc::new(Shared::default());
    let flags = EfdFlags::EFD_CLOEXEC | EfdFlags::EFD_NONBLOCK;
    let news = EventFd::from_value_and_flags(0, flags).ok().map(Arc::new);
    *shared.lock() = State::new(root, &config.facts, news.clone());
    let thread = spawn(&shared, root)?;
    let calls = Arc::clone(&shared);
    let source = Ptrace {
        shared,
        news,
        thread: Some(thread),
        sampler: None,
        root,
    };
    let (method, facts) = (Method::Ptrace, FACTS);
    let origin = Origin { method, facts };
    Ok(Started {
        listen: Some(Box::new(move |listener| listen(&calls, listener))),
        ..Started::without_bpf(source, root, origin, &LIMITS)
    })
}

/// Starts the thread that traces the process `root` and all its descendants by ptrace(2).
fn spawn(shared: &Arc<Shared>, root: Id) -> Result<JoinHandle<()>, Error> {
    sys::take_wake_ups().map_err(|errno| Error::System(errno.into()))?;
    let shared = Arc::clone(shared);
    let (sender, seized) = std::sync::mpsc::channel();
    let thread = std::thread::Builder::new().name("tr-ptrace".into());
    let thread = thread.spawn(move || {
        // The thread that seizes the task becomes its tracer, so the call is made in this thread.
        let seized = sys::seize(root);
        shared.lock().tracer = sys::own_thread();
        let _ = sender.send(seized);
        if seized.is_ok() {
            // The priority is not a real-time one, because this thread waits for ended tasks (see `urgency::normal`).
            urgency::high();
            run(&shared);
        }
    });
    let thread = thread.map_err(Error::System)?;
    let seized = seized.recv().unwrap_or(Err(Errno::ESRCH));
    seized.map_err(Error::Ptrace)?;
    Ok(thread)
}

/// Starts a thread that answers the calls of ptrace(2) which recorded programs announce.
fn listen(shared: &Arc<Shared>, listener: Option<OwnedFd>) {
    let Some(listener) = listener else {
        let what = "programs that trace others (gdb, strace, leak checkers) fail: there is no listener for ptrace";
        let mut state = shared.lock();
        return state.waiting.push(host::now(), degraded(what));
    };
    let answers = Arc::clone(shared);
    let thread = std::thread::Builder::new().name("tr-calls".into());
    // If the thread cannot be started, the listener is closed, and the announced calls fail.
    let thread = thread.spawn(move || announce(&answers, &listener));
    shared.lock().calls = thread.ok();
}

/// Answers the calls of ptrace(2) that recorded programs announce: first the tracer detaches from the tasks that a call
/// is about, and then the call goes on.
fn announce(shared: &Shared, listener: &OwnedFd) {
    while let Ok(call) = listener::next(listener, 100) {
        let mut state = shared.lock();
        if let Some(call) = call {
            if call.about == About::Untraced {
                state.lose_children_of(call.caller);
            }
            let until = Instant::now() + LET_GO;
            if state.has_targets(&call) {
                state.requests.push(call);
            }
            while state.has_targets(&call) && !state.stop && Instant::now() < until {
                sys::wake(state.tracer);
                state.awaited = true;
                let waited = shared.changed.wait_timeout(state, Duration::from_millis(1));
                state = waited.unwrap_or_else(PoisonError::into_inner).0;
            }
            listener::answer(listener, &call);
        }
        if state.stop {
            return;
        }
    }
}

/// Takes the totals of CPU time of all tracees. The tracer continues its work while the totals are read.
fn sample(shared: &Shared) {
    let threads = shared.lock().threads();
    for threads in threads.into_values() {
        let read = |thread: Thread| (thread, proc::totals(thread.0));
        let totals: Vec<_> = threads.into_iter().map(read).collect();
        shared.lock().sample(&totals);
    }
}

/// Handles the stops and ends of tracees, in the tracer's thread, until the recording is over.
fn run(shared: &Shared) {
    let (mut waits, mut tracees) = (Waits::new(), 1);
    loop {
        let next = waits.next(tracees);
        let mut state = shared.lock();
        state.take(next, &mut waits);
        state.serve();
        tracees = state.tracees();
        if waits.wants_ids() {
            waits.ask(state.ids());
        }
        // Another thread may wait until COMMAND has ended, or until the tracer has detached from some tasks. The tracer
        // sends a notification only if such a thread exists, because each notification is a system call.
        if std::mem::take(&mut state.awaited) {
            shared.changed.notify_all();
        }
        if state.stop || state.is_done() {
            return;
        }
    }
}

/// The source of the events of a recording by ptrace(2). The tracer's thread collects the events by itself.
impl Source for Ptrace {
    fn ready(&self) -> Option<BorrowedFd<'_>> {
        self.news.as_ref().map(AsFd::as_fd)
    }

    /// Always true: SIGCHLD goes to the tracer's thread, because the kernel reports stops and ends of tracees to their
    /// tracer.
    fn takes_children(&self) -> bool {
        true
    }

    fn begin(&mut self, start: Ktime) {
        self.shared.lock().waiting.begin(start, self.root);
        let shared = Arc::clone(&self.shared);
        // If the thread cannot be started, the totals of CPU time of a task are only recorded at its end.
        self.sampler = Some(Sampler::start(move || sample(&shared)));
    }

    fn waiting(&self) -> (usize, bool) {
        (self.shared.lock().waiting.bytes(), false)
    }

    fn take(&mut self) -> Box<dyn Drained> {
        Box::new(self.shared.lock().waiting.take())
    }

    fn drain_command(&mut self) {
        let state = self.shared.lock();
        let waits = |state: &mut State| {
            state.awaited = state.reaped.is_none() && state.has_root();
            state.awaited
        };
        let _ = self
            .shared
            .changed
            .wait_timeout_while(state, LAST_END, waits);
    }

    fn alive(&mut self, command: Option<u32>) -> Vec<Alive> {
        proc::alive(&self.shared.lock().processes(), command)
    }

    fn sent_to_both(&self, signal: u32) -> bool {
        let last = self.shared.lock().signal;
        last.is_some_and(|(to_command, when)| {
            to_command.cast_unsigned() == signal && when.elapsed() < TO_BOTH
        })
    }

    /// Whether COMMAND is stopped, as far as the tracer has seen. Other threads of the recorder may not see the stops
    /// of COMMAND: if the tracer is a thread of the process that is COMMAND's parent, the kernel reports these stops to
    /// the tracer alone (`do_notify_parent_cldstop` in kernel/signal.c).
    fn has_stopped_command(&self) -> bool {
        self.shared.lock().root_stopped
    }

    fn take_stop(&self) -> bool {
        std::mem::take(&mut self.shared.lock().new_stop)
    }

    /// Ends the tracer's thread, which detaches from all tracees.
    fn stop(&mut self, _span: (Ktime, Ktime)) -> Last {
        self.let_go();
        let mut state = self.shared.lock();
        Last {
            reaped: state.reaped.take(),
            took_rights: state.has_reported_rights,
            ..Last::default()
        }
    }
}

impl Ptrace {
    fn let_go(&mut self) {
        self.sampler = None;
        let Some(thread) = self.thread.take() else {
            return;
        };
        let tracer = {
            let mut state = self.shared.lock();
            state.stop = true;
            state.tracer
        };
        // A signal that comes right before the thread begins to wait is lost, so the signal is sent again until the
        // thread has ended.
        while !thread.is_finished() {
            sys::wake(tracer);
            host::pause(Duration::from_millis(1));
        }
        let _ = thread.join();
        let calls = self.shared.lock().calls.take();
        if let Some(calls) = calls {
            let _ = calls.join();
        }
    }
}

impl Drop for Ptrace {
    fn drop(&mut self) {
        self.let_go();
    }
}
