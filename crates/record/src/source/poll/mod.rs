//! Samples of `/proc`, for places where ptrace(2) is refused, too. What lives and ends between
//! two samples is missing.

mod scan;

use std::os::fd::BorrowedFd;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use nix::time::{clock_gettime, ClockId};
use tr_format::event::{Ktime, LifeKind};
use tr_format::meta::{Facts, Known, Method, Origin, Scope};

use self::scan::State;
use super::proc::{self, Id};
use super::{Drained, Last, Source, Started};
use crate::config::{Config, Follow};
use crate::session::Alive;
use crate::{urgency, Error};

/// The shortest interval between two samples.
const EVERY: Duration = Duration::from_millis(20);
/// Of one CPU the samples take at most one part in so many: with many tasks they are rarer.
const SHARE: u32 = 100;

#[derive(Debug, Default)]
struct Shared {
    state: Mutex<State>,
    stop: Condvar,
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

struct Poll {
    shared: Arc<Shared>,
    thread: Option<JoinHandle<()>>,
    root: Id,
}

/// Samples `child`, COMMAND's process, and its descendants.
///
/// # Errors
/// There are no totals in /proc, or only BPF records these targets.
pub fn start(config: &Config, child: Option<u32>) -> Result<Started<'static>, Error> {
    let root = child.and_then(|pid| Id::try_from(pid).ok());
    let only_command = config.follow == Follow::Command && config.cpus.is_none();
    let Some(root) = root.filter(|_| only_command) else {
        return Err(Error::NeedsBpf);
    };
    if proc::totals(root).is_none() || proc::stat(root).is_none() {
        return Err(Error::NoTotals);
    }
    let shared = Arc::new(Shared::default());
    *shared.lock() = State::new(root, config.argv_limit);
    let source = Poll {
        shared,
        thread: None,
        root,
    };
    Ok(Started {
        source: Box::new(source),
        scope: Scope::Command,
        root: child,
        origin: Some(Origin {
            method: Method::Poll,
            facts: Facts {
                switches: Known::Sampled,
                wakings: Known::Absent,
                run_queue: Known::Sampled,
                blocked: Known::Absent,
                life_times: Known::Sampled,
                argv: Known::Sampled,
                codes: Known::Sampled,
                memory: Known::Absent,
            },
        }),
        missing: Vec::new(),
        irq_known: false,
        buffer: 0,
        living: Vec::new(),
    })
}

fn cpu_time() -> Duration {
    let time = clock_gettime(ClockId::CLOCK_THREAD_CPUTIME_ID);
    time.map_or(Duration::ZERO, Duration::from)
}

fn run(shared: &Shared) {
    urgency::high();
    let mut state = shared.lock();
    while !state.stop {
        let before = cpu_time();
        state.sample();
        let cost = cpu_time().saturating_sub(before);
        let wait = EVERY.max(cost * SHARE);
        let waited = shared.stop.wait_timeout(state, wait);
        state = waited.unwrap_or_else(PoisonError::into_inner).0;
    }
}

impl Source for Poll {
    fn ready(&self) -> Option<BorrowedFd<'_>> {
        None
    }

    /// A thread of its own takes the samples.
    fn drain(&mut self, _room: bool) {}

    fn begin(&mut self, start: Ktime) {
        let mut state = self.shared.lock();
        let task = super::command(self.root, start);
        state.waiting.push(start, LifeKind::Snapshot(task));
        state.account(start, self.root, self.root);
        drop(state);
        let shared = Arc::clone(&self.shared);
        let thread = std::thread::Builder::new().name("tr-poll".into());
        // Without the thread there is one sample, at COMMAND's end.
        self.thread = thread.spawn(move || run(&shared)).ok();
    }

    fn bytes(&self) -> usize {
        self.shared.lock().waiting.bytes()
    }

    fn take(&mut self) -> Box<dyn Drained> {
        Box::new(self.shared.lock().waiting.take())
    }

    /// COMMAND is a zombie now: its totals are final.
    fn drain_command(&mut self) {
        self.shared.lock().sample();
    }

    fn alive(&mut self, command: Option<u32>) -> Vec<Alive> {
        let processes = self.shared.lock().processes();
        let others = processes.into_iter().map(|id| (id, id.unsigned_abs()));
        let others = others.filter(|(_, pid)| Some(*pid) != command);
        let alive = others.map(|(id, pid)| Alive {
            pid,
            comm: proc::comm(id).unwrap_or_default(),
        });
        alive.collect()
    }

    /// Not known: a signal that arrives twice does less harm than a lost one.
    fn sent_to_both(&self, _signal: u32) -> bool {
        false
    }

    fn stop(&mut self, _span: (Ktime, Ktime)) -> Last {
        self.end();
        Last::default()
    }
}

impl Poll {
    fn end(&mut self) {
        self.shared.lock().stop = true;
        self.shared.stop.notify_all();
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

impl Drop for Poll {
    fn drop(&mut self) {
        self.end();
    }
}
