//! A thread that calls a function at an interval, to take samples of tasks' totals of CPU time.

use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use nix::time::{clock_gettime, ClockId};

use crate::urgency;

/// The shortest interval between two samples of the tasks' totals of CPU time.
const SHORTEST_INTERVAL: Duration = Duration::from_millis(20);
/// Limits the CPU time for sampling the tasks' totals to one CPU's time divided by this number. So with many tasks the
/// samples become rarer.
const CPU_SHARE: u32 = 100;

/// The thread that takes samples of tasks' totals of CPU time, until [`Sampler::end`] is called.
#[derive(Debug)]
pub struct Sampler {
    over: Arc<(Mutex<bool>, Condvar)>,
    thread: Option<JoinHandle<()>>,
}

impl Sampler {
    /// Starts a thread that calls the function `sample` again and again. If no thread can be started, there are
    /// no samples.
    pub fn start(mut sample: impl FnMut() + Send + 'static) -> Sampler {
        let over = Arc::new((Mutex::new(false), Condvar::new()));
        let thread = std::thread::Builder::new().name("tr-samples".into());
        let stop = Arc::clone(&over);
        let thread = thread.spawn(move || {
            urgency::high();
            loop {
                let before = cpu_time();
                sample();
                let cost = cpu_time().saturating_sub(before);
                let over = stop.0.lock().unwrap_or_else(PoisonError::into_inner);
                let wait = SHORTEST_INTERVAL.max(cost * CPU_SHARE);
                let waited = stop.1.wait_timeout_while(over, wait, |over| !*over);
                if *waited.unwrap_or_else(PoisonError::into_inner).0 {
                    return;
                }
            }
        });
        let thread = thread.ok();
        Sampler { over, thread }
    }

    pub fn end(&mut self) {
        *self.over.0.lock().unwrap_or_else(PoisonError::into_inner) = true;
        self.over.1.notify_all();
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

impl Drop for Sampler {
    fn drop(&mut self) {
        self.end();
    }
}

/// The CPU time that the calling thread has used.
pub fn cpu_time() -> Duration {
    let time = clock_gettime(ClockId::CLOCK_THREAD_CPUTIME_ID);
    time.map_or(Duration::ZERO, Duration::from)
}
