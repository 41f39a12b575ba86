//! Copies a trace for `tr recover`, `tr redact` and `tr symbolize`, one frame (block of events) after the other.

use std::io::{BufWriter, Write};
use std::path::Path;

use tr_format::event::{LifeEvent, Stream};
use tr_format::mask::{Masked, Texts};
use tr_format::reader::{End, Trace};
use tr_format::sched::SchedBlock;
use tr_format::writer::Writer;
use tr_format::Error;
use tr_redact::addresses::Addresses;
use tr_redact::Redactor;

use crate::output::{self, Force};

/// The way in which a copy of a trace changes the texts in it, such as arguments and paths.
pub enum Copying<'a> {
    /// The copy has the texts of the trace unchanged, because the recorder has already masked their secrets.
    AsTheyAre,
    /// The copy has masks in place of the secrets in texts, and in place of network addresses and DNS names if the
    /// user requests that.
    Masked(&'a mut Redactor, Option<&'a mut Addresses>),
}

impl Copying<'_> {
    fn masked<T: Texts>(&mut self, value: T) -> Result<Masked<T>, Error> {
        match self {
            Copying::AsTheyAre => Ok(Masked::trusted(value)),
            Copying::Masked(redactor, _) => Masked::new(value, *redactor),
        }
    }

    fn event(&mut self, mut event: LifeEvent) -> Result<Masked<LifeEvent>, Error> {
        if let Copying::Masked(_, Some(addresses)) = self {
            addresses.mask(&mut event.kind);
        }
        self.masked(event)
    }
}

/// Writes a copy of FILE's trace to OUT, which can be the same file; see [`copy`].
pub fn whole(
    trace: &Trace,
    (out, file, force): (&Path, &Path, Force),
    copying: Copying<'_>,
    more: impl IntoIterator<Item = Masked<LifeEvent>>,
) -> Result<Copied, Error> {
    output::whole(out, file, (output::RECORDING, true), force, |file| {
        let (mut out, copied) = copy(trace, BufWriter::new(file), copying, more)?;
        out.flush()?;
        Ok(copied)
    })
}

pub struct Copied {
    pub events: u64,
    /// The number of unreadable gaps in the original trace. The copy has a loss event for each.
    pub gaps: usize,
}

/// Copies the readable frames of a trace to `out`, and writes a loss event for each unreadable gap. The events in
/// `more` are added after the last event of the trace.
fn copy<W: Write>(
    trace: &Trace,
    out: W,
    mut copying: Copying<'_>,
    more: impl IntoIterator<Item = Masked<LifeEvent>>,
) -> Result<(W, Copied), Error> {
    let mut writer = Writer::new(out, &copying.masked(trace.meta().clone())?)?;
    let (mut block, mut events) = (SchedBlock::default(), Vec::new());
    let mut gaps = trace.gaps().to_vec();
    for frame in trace.frames() {
        match frame.stream {
            Stream::Cpu(cpu) => match trace.read_sched(frame, &mut block) {
                Ok(()) => {
                    for event in block.iter() {
                        writer.sched(cpu, event)?;
                    }
                }
                Err(_) => gaps.push(trace.gap_of(frame)),
            },
            stream => match trace.read_life(frame, &mut events) {
                Ok(()) => {
                    for event in events.drain(..) {
                        writer.life(stream, copying.event(event)?)?;
                    }
                }
                Err(_) => gaps.push(trace.gap_of(frame)),
            },
        }
        // Each frame (block of events) of the trace becomes one frame of the copy, so that a reader can still stream
        // the copy in time order.
        writer.flush()?;
    }
    for event in more {
        writer.life(Stream::Lifecycle, event)?;
    }
    let count = gaps.len();
    for gap in gaps {
        writer.life(Stream::Recorder, copying.event(gap)?)?;
    }
    let (out, written) = match (trace.summary(), trace.end()) {
        (Some(summary), _) => writer.finish(&copying.masked(summary.clone())?)?,
        (None, End::Truncated { frame, offset, why }) => {
            writer.finish_cut(*frame, *offset, copying.masked(why.clone())?)?
        }
        (None, End::Complete) => {
            let why = copying.masked("the recording has no summary".to_owned())?;
            writer.finish_cut(0, trace.bytes(), why)?
        }
    };
    let copied = Copied {
        events: written.events(),
        gaps: count,
    };
    Ok((out, copied))
}
