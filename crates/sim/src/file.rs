//! Writes a simulated recording as a trace file.

use std::io::Write;

use tr_format::event::{CpuId, LifeEvent, LifeKind, SchedEvent, Stream};
use tr_format::mask::Masked;
use tr_format::writer::{Writer, Written};
use tr_format::Error;

use crate::blocks::{Cut, Events};
use crate::config::Config;
use crate::machine::Machine;
use crate::recording::Recording;
use crate::sink::Sink;
use crate::truth::Truth;

impl Recording {
    /// The bytes of a trace file with the blocks of this simulated recording. If the recording has
    /// no summary, the file has no end, like that of a killed recorder.
    ///
    /// # Errors
    /// The writer refuses an event.
    pub fn to_file(&self, cut: &Cut) -> Result<Vec<u8>, Error> {
        let mut out = Vec::new();
        let mut writer = Writer::new(&mut out, &Masked::trusted(self.meta.clone()))?;
        for block in self.blocks(cut) {
            match (block.stream, block.events) {
                (Stream::Cpu(cpu), Events::Sched(events)) => {
                    events
                        .into_iter()
                        .try_for_each(|event| writer.sched(cpu, event))?;
                }
                (stream, Events::Life(events)) => {
                    events
                        .into_iter()
                        .try_for_each(|event| writer.life(stream, Masked::trusted(event)))?;
                }
                (_, Events::Sched(_)) => {}
            }
            writer.flush()?;
        }
        if let Some(summary) = &self.summary {
            writer.finish(&Masked::trusted(summary.clone()))?;
        }
        Ok(out)
    }
}

/// A receiver of simulated events that writes them into a trace file one by one.
struct ToWriter<W: Write> {
    writer: Writer<W>,
    result: Result<(), Error>,
}

impl<W: Write> Sink for ToWriter<W> {
    fn sched(&mut self, cpu: CpuId, event: SchedEvent) {
        if self.result.is_ok() {
            self.result = self.writer.sched(cpu, event);
        }
    }

    fn life(&mut self, stream: Stream, event: LifeEvent) {
        let event = Masked::trusted(event);
        let write = || {
            if event.kind != LifeKind::Watermark {
                return self.writer.life(stream, event);
            }
            self.writer.flush()?;
            self.writer.life(stream, event)?;
            self.writer.flush()
        };
        if self.result.is_ok() {
            self.result = write();
        }
    }
}

/// Runs a simulation and writes its events into a trace file. The memory that this takes does not grow with the number
/// of events. Returns the output, the counts of the written events, and the truth about the run.
///
/// # Errors
/// The errors of the writer. The first one ends the run.
pub fn record_to<W: Write>(config: &Config, out: W) -> Result<(W, Written, Truth), Error> {
    let mut machine = Machine::new(config);
    let mut sink = ToWriter {
        writer: Writer::new(out, &Masked::trusted(machine.meta()))?,
        result: Ok(()),
    };
    while sink.result.is_ok() && machine.step(&mut sink) {}
    sink.result?;
    let (out, written) = sink.writer.finish(&Masked::trusted(machine.summary()))?;
    Ok((out, written, machine.into_truth()))
}
