//! How late events were written: what the file proves of the time between an
//! event's stamp and its place in the ring.
//!
//! A mark of progress at time T says that every ring was emptied after T, and
//! the frames before the mark hold what was found. An event in a later frame
//! that is stamped before T was therefore not to be read at T. The smallest time
//! of a frame is in its header, so this costs nothing.

use tr_format::event::{Ktime, LifeEvent, LifeKind, Stream};
use tr_format::reader::FrameInfo;

/// Goes through a trace's frames in the order of the file.
#[derive(Clone, Copy, Debug, Default)]
pub struct Lateness {
    progress: Ktime,
    latest: u64,
}

impl Lateness {
    /// The next frame.
    pub fn frame(&mut self, frame: &FrameInfo) {
        // What the recorder says itself is of the past by nature.
        if frame.stream != Stream::Recorder && frame.events > 0 {
            self.latest = self.latest.max(self.progress.since(frame.min));
        }
    }

    /// An event of the frame, when that is one of the recorder's.
    pub fn word(&mut self, event: &LifeEvent) {
        if event.kind == LifeKind::Progress {
            self.progress = self.progress.max(event.time);
        }
    }

    /// The longest delay that is proved so far, in ns.
    pub fn latest(&self) -> u64 {
        self.latest
    }
}
