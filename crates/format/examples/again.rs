//! Writes traces again with the present codecs and tells the sizes, for experiments.
use tr_format::{event::Stream, reader::Trace, sched::SchedBlock, source::Source, writer::Writer};
fn main() -> Result<(), Box<dyn std::error::Error>> {
    for path in std::env::args().skip(1) {
        let trace = Trace::open(Source::file(std::fs::File::open(&path)?)?)?;
        let mut writer = Writer::new(Vec::new(), trace.meta())?;
        let (mut sched, mut events, mut lifeb, mut lifee) = (0u64, 0u64, 0u64, 0u64);
        let mut rec = (0, 0);
        for frame in trace.frames() {
            let before = writer.written().bytes;
            match frame.stream {
                Stream::Cpu(cpu) => {
                    let mut b = SchedBlock::default();
                    trace.read_sched(frame, &mut b)?;
                    for e in b.iter() {
                        writer.sched(cpu, e)?;
                    }
                    writer.flush()?;
                    sched += writer.written().bytes - before;
                    events += frame.events;
                }
                s => {
                    let mut v = Vec::new();
                    trace.read_life(frame, &mut v)?;
                    for e in v {
                        writer.life(s, e)?;
                    }
                    writer.flush()?;
                    let b = writer.written().bytes - before;
                    if s == Stream::Lifecycle {
                        lifeb += b;
                        lifee += frame.events
                    } else {
                        rec.0 += b;
                        rec.1 += frame.events
                    }
                }
            }
        }
        let (bytes, w) = writer.finish(&trace.summary().cloned().unwrap_or_default())?;
        println!(
            "{path}: {:.3}; sched {:.3} x {events}; life {lifeb} = {:.2} x {lifee}; rec {} / {}",
            bytes.len() as f64 / w.events() as f64,
            sched as f64 / events as f64,
            lifeb as f64 / lifee as f64,
            rec.0,
            rec.1
        );
    }
    Ok(())
}
