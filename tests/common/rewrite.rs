//! Copies a trace's events into another trace.
#![allow(dead_code)] // each test uses its part

use tr_format::event::{LifeEvent, Stream};
use tr_format::mask::Masked;
use tr_format::reader::Trace;
use tr_format::sched::SchedBlock;
use tr_format::source::Source;
use tr_format::writer::Writer;

/// A copy of a complete trace with the same events, whose recording began a second later by the time of day.
pub fn later(file: &[u8]) -> Vec<u8> {
    let trace = Trace::open(Source::bytes(file.to_vec())).unwrap();
    let mut meta = trace.meta().clone();
    meta.start_clock.real += 1_000_000_000;
    let mut writer = Writer::new(Vec::new(), &Masked::trusted(meta.clone())).unwrap();
    copy(&trace, &mut writer, |_, event| vec![event]);
    writer
        .finish(&Masked::trusted(trace.summary().unwrap().clone()))
        .unwrap()
        .0
}

/// Writes the events of every frame. `change` replaces each lifecycle event and each event of the recorder by the
/// events that it returns.
pub fn copy(
    trace: &Trace,
    writer: &mut Writer<Vec<u8>>,
    mut change: impl FnMut(Stream, LifeEvent) -> Vec<LifeEvent>,
) {
    let (mut block, mut events) = (SchedBlock::default(), Vec::new());
    for frame in trace.frames() {
        if let Stream::Cpu(cpu) = frame.stream {
            trace.read_sched(frame, &mut block).unwrap();
            for event in block.iter() {
                writer.sched(cpu, event).unwrap();
            }
        } else {
            trace.read_life(frame, &mut events).unwrap();
            for event in events.drain(..) {
                for event in change(frame.stream, event) {
                    writer.life(frame.stream, Masked::trusted(event)).unwrap();
                }
            }
        }
        writer.flush().unwrap();
    }
}
