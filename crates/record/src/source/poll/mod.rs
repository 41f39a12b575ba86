//! Samples of `/proc`, for places where ptrace(2) is refused, too. What lives and ends between
//! two samples is missing.

mod scan;

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tr_format::event::Ktime;
use tr_format::meta::{Facts, Known, Method, Origin};

use self::scan::State;
use super::sampler::Sampler;
use super::{command_alone, Drained, Last, Source, Started, NEEDS_PROGRAMS};
use crate::config::Config;
use crate::error::Error;
use crate::proc::{self, Alive, Id};

/// What a recording by samples knows, and how.
pub const FACTS: Facts = Facts {
    switches: Known::Sampled,
    wakings: Known::Absent,
    run_queue: Known::Sampled,
    blocked: Known::Absent,
    life_times: Known::Sampled,
    argv: Known::Sampled,
    codes: Known::Sampled,
    memory: Known::Absent,
};
/// What it lacks beside, the last where the kernel lists no children of a thread.
const LIMITS: [&str; 2] = [
    NEEDS_PROGRAMS,
    "samples every 20 ms beside hundreds of processes: this kernel lists no children (CONFIG_PROC_CHILDREN), \
     and a sample looks at all processes",
];

/// What it lacks beside, here.
pub fn limits() -> &'static [&'static str] {
    let [programs, _] = &LIMITS;
    match proc::lists_children() {
        true => std::slice::from_ref(programs),
        false => &LIMITS,
    }
}

/// The sampler and the recorder's main thread share the state.
fn lock(state: &Mutex<State>) -> MutexGuard<'_, State> {
    state.lock().unwrap_or_else(PoisonError::into_inner)
}

struct Poll {
    state: Arc<Mutex<State>>,
    sampler: Option<Sampler>,
    root: Id,
}

/// Samples `child`, COMMAND's process, and its descendants.
pub fn start(config: &Config, child: Option<u32>) -> Result<Started, Error> {
    let root = command_alone(config, child)?;
    let source = Poll {
        state: Arc::new(Mutex::new(State::new(root, config.argv_limit))),
        sampler: None,
        root,
    };
    let (method, facts) = (Method::Poll, FACTS);
    let origin = Origin { method, facts };
    Ok(Started::without_bpf(source, root, origin, limits()))
}

/// A thread of its own takes the samples.
impl Source for Poll {
    fn begin(&mut self, start: Ktime) {
        lock(&self.state).waiting.begin(start, self.root);
        let shared = Arc::clone(&self.state);
        // Without the thread there is one sample, at COMMAND's end.
        self.sampler = Some(Sampler::start(move || lock(&shared).sample()));
    }

    fn waiting(&self) -> (usize, bool) {
        (lock(&self.state).waiting.bytes(), false)
    }

    fn take(&mut self) -> Box<dyn Drained> {
        Box::new(lock(&self.state).waiting.take())
    }

    /// COMMAND is a zombie now: its totals are final.
    fn drain_command(&mut self) {
        lock(&self.state).sample();
    }

    fn alive(&mut self, command: Option<u32>) -> Vec<Alive> {
        proc::alive(&lock(&self.state).processes(), command)
    }

    fn stop(&mut self, _span: (Ktime, Ktime)) -> Last {
        self.sampler = None;
        Last::default()
    }
}
