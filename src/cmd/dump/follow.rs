//! Implements `tr dump --follow`, which prints the events of a recording that is still under way.

use std::fs::File;
use std::io::Write;
use std::process::ExitCode;
use std::time::Duration;

use tr_analyze::order;
use tr_format::event::{Ktime, LifeKind, Stream};
use tr_format::reader::{End, FrameInfo, Trace};
use tr_format::source::Source;
use tr_format::Error;

use super::{Args, Printer};
use crate::open;

/// The time between two checks whether the recording's file has grown. The recorder flushes the file every
/// 0.7 to 3.5 s.
const LOOK_EVERY: Duration = Duration::from_millis(200);

/// Prints the events of a recording under way as its file grows, until the recording ends. Returns the exit status.
pub fn dump_growing(args: &Args) -> ExitCode {
    let mut followed = match Followed::open(args) {
        Ok(followed) => followed,
        Err(error) => return open::unreadable(&args.file, &error),
    };
    let mut printer = match Printer::new(args, followed.trace.meta().start) {
        Ok(printer) => printer,
        Err(error) => return open::printed(Err(error)),
    };
    loop {
        // Whether the recorder still writes must be asked before the file is read. If the recorder ends between the
        // question and the read, the file is read to its end, and the next round finds that the recorder has ended.
        let written = followed.is_written();
        if let Err(error) = followed.grow() {
            return open::unreadable(&args.file, &error);
        }
        let ended = !written || *followed.trace.file_end() == End::Complete;
        match followed.print(&mut printer, ended) {
            Ok(true) if !ended => std::thread::sleep(LOOK_EVERY),
            Ok(_) => break,
            Err(error) => return open::printed(Err(error)),
        }
    }
    if *followed.trace.file_end() != End::Complete {
        open::warn(&followed.trace, &args.file);
    }
    ExitCode::SUCCESS
}

/// A recording that is still being written, and how far `tr dump --follow` has printed its events.
struct Followed {
    file: File,
    trace: Trace,
    /// The trace's frames (blocks of events in the file) with events that are not printed yet.
    pending: Vec<FrameInfo>,
    /// The trace's frames (blocks of events in the file) that were read since the last output.
    new: Vec<FrameInfo>,
    /// The time of the recording up to which all events are printed.
    until: Ktime,
}

impl Followed {
    fn open(args: &Args) -> Result<Followed, Error> {
        let file = File::open(&args.file)?;
        // The file is read by calls and not mapped, because a mapping does not grow. A pipe is refused, because it ends
        // with its recording.
        let trace = Trace::open(Source::file(file.try_clone()?)?)?;
        Ok(Followed {
            new: trace.frames().to_vec(),
            pending: Vec::new(),
            until: Ktime(0),
            file,
            trace,
        })
    }

    fn is_written(&self) -> bool {
        let file = self.file.try_clone();
        file.is_ok_and(tr_output::is_written)
    }

    /// Reads the frames (blocks of events) that the recorder has added to the trace's file since the last call.
    fn grow(&mut self) -> Result<(), Error> {
        let source = Source::file(self.file.try_clone()?)?;
        if source.len() <= self.trace.bytes() {
            return Ok(());
        }
        self.trace.grow(source)?;
        self.new.extend_from_slice(self.trace.frames());
        for damage in self.trace.damage() {
            message!("{damage}");
        }
        Ok(())
    }

    /// Prints the events up to the time before which the recorder has written everything; if the recording
    /// has ended, prints all of them. Returns false if a limit of the command's memory or time is reached.
    fn print(&mut self, printer: &mut Printer, ended: bool) -> std::io::Result<bool> {
        let limit = if ended {
            Ktime(u64::MAX)
        } else {
            self.watermark().max(self.until)
        };
        // The recorder learns some facts late, such as the time of a loss, a mark or a container. So new frames (blocks
        // of events) may have events from before `until`, although all other events up to this time are already
        // printed.
        let late = (Ktime(0), self.until);
        if !self.print_span(printer, &self.new, late)? {
            return Ok(false);
        }
        self.pending.append(&mut self.new);
        if !self.print_span(printer, &self.pending, (self.until, limit))? {
            return Ok(false);
        }
        self.until = limit;
        self.pending.retain(|frame| frame.max >= limit);
        printer.out.flush()?;
        Ok(true)
    }

    /// Prints those events in the given frames (blocks of the trace's file) that have a time of at least `from` and
    /// less than `to`. Returns false if a limit of the command's memory or time is reached.
    fn print_span(
        &self,
        printer: &mut Printer,
        frames: &[FrameInfo],
        (from, to): (Ktime, Ktime),
    ) -> std::io::Result<bool> {
        let inside = |frame: &&FrameInfo| frame.min < to && frame.max >= from;
        let frames: Vec<FrameInfo> = frames.iter().filter(inside).copied().collect();
        let mut merge = order::merge_of(&self.trace, &frames);
        while let Some(event) = merge.next_event() {
            let time = event.time();
            if time >= from && time < to && !printer.print(&event)? {
                return Ok(false);
            }
        }
        for error in merge.batches().unreadable() {
            message!("{error}");
        }
        Ok(true)
    }

    /// The latest time for which the frames (blocks of events) read last prove that every earlier event is already in
    /// the file.
    fn watermark(&self) -> Ktime {
        let mut events = Vec::new();
        let mut last = Ktime(0);
        let recorder = |frame: &&FrameInfo| frame.stream == Stream::Recorder;
        for frame in self.new.iter().filter(recorder) {
            if self.trace.read_life(frame, &mut events).is_err() {
                continue;
            }
            let marks = events
                .iter()
                .filter(|event| event.kind == LifeKind::Watermark);
            last = marks.map(|event| event.time).fold(last, Ktime::max);
        }
        last
    }
}
