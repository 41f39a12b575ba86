//! Copies a trace, frame by frame: `tr recover`, `tr redact`, `tr symbolize`.

use std::io::{BufWriter, Write};
use std::path::Path;

use tr_format::event::{LifeEvent, Stream};
use tr_format::meta::Metadata;
use tr_format::reader::{End, Trace};
use tr_format::sched::SchedBlock;
use tr_format::writer::Writer;
use tr_format::Error;

use crate::output::{self, Force};

/// Writes an edited copy of FILE's trace to OUT, which can be FILE; see [`copy`].
pub fn whole(
    (trace, meta): (&Trace, &Metadata),
    (out, file, force): (&Path, &Path, Force),
    edit: impl FnMut(&mut LifeEvent),
    more: impl IntoIterator<Item = LifeEvent>,
) -> Result<Copied, Error> {
    output::whole(out, file, (output::RECORDING, true), force, |file| {
        let (mut out, copied) = copy(trace, meta, BufWriter::new(file), edit, more)?;
        out.flush()?;
        Ok(copied)
    })
}

pub struct Copied {
    pub events: u64,
    /// Gaps of the trace, written as losses.
    pub gaps: usize,
}

/// Copies the readable frames, and writes each gap as a loss. `edit` may change a lifecycle
/// event, but not its time. `more` comes after the last one.
fn copy<W: Write>(
    trace: &Trace,
    meta: &Metadata,
    out: W,
    mut edit: impl FnMut(&mut LifeEvent),
    more: impl IntoIterator<Item = LifeEvent>,
) -> Result<(W, Copied), Error> {
    let mut writer = Writer::new(out, meta)?;
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
                    for mut event in events.drain(..) {
                        edit(&mut event);
                        writer.life(stream, event)?;
                    }
                }
                Err(_) => gaps.push(trace.gap_of(frame)),
            },
        }
        // The same frames as before, so that a reader can still stream them in time order.
        writer.flush()?;
    }
    for event in more {
        writer.life(Stream::Lifecycle, event)?;
    }
    let count = gaps.len();
    for gap in gaps {
        writer.life(Stream::Recorder, gap)?;
    }
    let (out, written) = match (trace.summary(), trace.end()) {
        (Some(summary), _) => writer.finish(summary)?,
        (None, End::Truncated { frame, offset, why }) => writer.finish_cut(*frame, *offset, why)?,
        (None, End::Complete) => {
            writer.finish_cut(0, trace.bytes(), "the recording has no summary")?
        }
    };
    let copied = Copied {
        events: written.events(),
        gaps: count,
    };
    Ok((out, copied))
}
