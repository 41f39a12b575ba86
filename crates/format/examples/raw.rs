//! Dumps scheduling events as raw little-endian records for experiments.
use std::io::Write;
use tr_format::{event::Stream, reader::Trace, sched::SchedBlock, source::Source};
fn main() -> Result<(), Box<dyn std::error::Error>> {
    let path = std::env::args().nth(1).unwrap_or_default();
    let trace = Trace::open(Source::file(std::fs::File::open(&path)?)?)?;
    let mut out = std::io::BufWriter::new(std::io::stdout());
    for frame in trace.frames() {
        if let Stream::Cpu(_) = frame.stream {
            let mut b = SchedBlock::default();
            trace.read_sched(frame, &mut b)?;
            for i in 0..b.len() {
                out.write_all(&(frame.number as u32).to_le_bytes())?;
                out.write_all(&b.time[i].to_le_bytes())?;
                out.write_all(&b.from[i].to_le_bytes())?;
                out.write_all(&b.to[i].to_le_bytes())?;
                out.write_all(&b.state[i].to_le_bytes())?;
                out.write_all(&[b.flags[i], 0])?;
            }
        }
    }
    Ok(())
}
