//! A queue of packed bytes between the writing thread and an output that may stall. Packed events take a tenth of the
//! memory that they take in the buffers of the BPF programs, so the queue has room for the events of some seconds.

use std::io::{self, Write};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use crate::urgency;

/// The largest number of packed bytes that wait in the queue for the output.
const ROOM: usize = 12 << 20;

/// A queue of bytes for an output, and the thread that writes them to the output in order. If a write fails,
/// the next call returns the error.
#[derive(Debug)]
pub struct Queue {
    shared: Arc<Shared>,
    thread: Option<JoinHandle<()>>,
    /// The bytes that are collected, up to 64 KiB, before the queue's thread gets them.
    buffer: Vec<u8>,
}

struct Shared {
    state: Mutex<State>,
    changed: Condvar,
    /// The output to which the queue's bytes are written. A thread that is about to write first sets [`State::writing`]
    /// and then locks the output.
    out: Mutex<Box<dyn Write + Send>>,
}

impl std::fmt::Debug for Shared {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Shared")
            .field("state", &self.state)
            .finish_non_exhaustive()
    }
}

#[derive(Debug, Default)]
struct State {
    waiting: Vec<u8>,
    /// Whether the queue's thread, or a [`Watch`], is writing to the output.
    writing: bool,
    ended: bool,
    error: Option<io::Error>,
    failed: bool,
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn wait<'a>(&self, state: MutexGuard<'a, State>) -> MutexGuard<'a, State> {
        self.changed
            .wait(state)
            .unwrap_or_else(PoisonError::into_inner)
    }

    /// Writes the bytes of the queue to the output as they come, until the queue ends or a write fails.
    fn run(&self) {
        let mut bytes = Vec::new();
        loop {
            let mut state = self.lock();
            while (state.waiting.is_empty() || state.writing) && !state.ended {
                state = self.wait(state);
            }
            if state.waiting.is_empty() || !self.write_waiting(state, &mut bytes) {
                return;
            }
        }
    }

    /// Writes the bytes that are waiting in the queue to the output. They are first swapped with `bytes`, so that the
    /// memory of both buffers is used again. Returns whether the write succeeded.
    fn write_waiting(&self, mut state: MutexGuard<'_, State>, bytes: &mut Vec<u8>) -> bool {
        bytes.clear();
        std::mem::swap(bytes, &mut state.waiting);
        state.writing = true;
        self.changed.notify_all();
        drop(state);
        let mut out = self.out.lock().unwrap_or_else(PoisonError::into_inner);
        let done = out.write_all(bytes).and_then(|()| out.flush());
        drop(out);
        let mut state = self.lock();
        state.writing = false;
        if let Err(error) = done {
            state.error = Some(error);
            state.failed = true;
        }
        self.changed.notify_all();
        !state.failed
    }
}

impl Queue {
    /// Creates a queue and starts its thread, which writes to `out`.
    pub fn new(out: impl Write + Send + 'static) -> io::Result<Queue> {
        let shared = Arc::new(Shared {
            state: Mutex::default(),
            changed: Condvar::new(),
            out: Mutex::new(Box::new(out)),
        });
        let other = shared.clone();
        let thread = std::thread::Builder::new()
            .name("tr-output".into())
            .spawn(move || {
                urgency::high();
                other.run();
            })?;
        Ok(Queue {
            shared,
            thread: Some(thread),
            buffer: Vec::new(),
        })
    }

    fn hand_over(&mut self) -> io::Result<()> {
        let mut state = self.shared.lock();
        while !state.failed
            && !state.waiting.is_empty()
            && state.waiting.len() + self.buffer.len() > ROOM
        {
            state = self.shared.wait(state);
        }
        if state.failed {
            let gone = || io::Error::other("the output has failed before");
            return Err(state.error.take().unwrap_or_else(gone));
        }
        state.waiting.append(&mut self.buffer);
        self.shared.changed.notify_all();
        Ok(())
    }

    /// Waits until all bytes of the queue are written to the output.
    pub fn drain(&mut self) -> io::Result<()> {
        self.hand_over()?;
        self.watch().drained(None)
    }

    /// A handle by which another part of the program can wait for this queue while bytes are still added to
    /// it.
    pub fn watch(&self) -> Watch {
        Watch(self.shared.clone())
    }
}

/// A handle to wait until the thread of a [`Queue`] has written its bytes.
#[derive(Debug)]
pub struct Watch(Arc<Shared>);

impl Watch {
    /// Writes the waiting bytes in the calling thread, if the queue's thread has not begun to write. On a busy machine
    /// the queue's thread may get a CPU only after many milliseconds, and this wait would delay COMMAND's start. An
    /// output that can stall, such as a fifo without a reader, is left to the queue's thread.
    pub fn write(&self) {
        let state = self.0.lock();
        if !state.failed && !state.writing && !state.waiting.is_empty() {
            self.0.write_waiting(state, &mut Vec::new());
        }
    }

    /// Waits until all bytes that the queue's thread was given are written, at most for the time `longest`.
    pub fn drained(&self, longest: Option<Duration>) -> io::Result<()> {
        let busy =
            |state: &mut State| !state.failed && (state.writing || !state.waiting.is_empty());
        let state = self.0.lock();
        let mut state = match longest {
            None => self.0.changed.wait_while(state, busy),
            Some(longest) => {
                let waited = self.0.changed.wait_timeout_while(state, longest, busy);
                waited
                    .map(|(state, _)| state)
                    .map_err(|error| PoisonError::new(error.into_inner().0))
            }
        }
        .unwrap_or_else(PoisonError::into_inner);
        state.error.take().map_or(Ok(()), Err)
    }
}

impl Write for Queue {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.buffer.extend_from_slice(bytes);
        if self.buffer.len() >= 1 << 16 {
            self.hand_over()?;
        }
        Ok(bytes.len())
    }

    /// Gives all collected bytes to the queue's thread, without waiting until they are written;
    /// [`Queue::drain`] waits.
    fn flush(&mut self) -> io::Result<()> {
        self.hand_over()
    }
}

impl Drop for Queue {
    fn drop(&mut self) {
        let _ = self.drain();
        self.shared.lock().ended = true;
        self.shared.changed.notify_all();
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

#[cfg(test)]
#[path = "tests/queue.rs"]
mod tests;
