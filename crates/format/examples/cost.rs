//! Where the bytes of traces go: `cargo run --release -p tr-format --example cost FILE…`
use std::collections::BTreeMap;
use tr_format::{event::Stream, reader::Trace, sched::SchedBlock, source::Source};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    for path in std::env::args().skip(1) {
        let file = std::fs::File::open(&path)?;
        let size = file.metadata()?.len();
        let trace = Trace::open(Source::file(file)?)?;
        let mut sums: BTreeMap<&str, (u64, u64, u64)> = BTreeMap::new();
        let mut kinds: BTreeMap<String, u64> = BTreeMap::new();
        let mut used = 0;
        for frame in trace.frames() {
            let name = match frame.stream {
                Stream::Cpu(_) => "sched",
                Stream::Lifecycle => "lifecycle",
                Stream::Recorder => "recorder",
            };
            let sum = sums.entry(name).or_default();
            sum.0 += 1;
            sum.1 += frame.bytes;
            sum.2 += frame.events;
            used += frame.bytes;
            if let Stream::Cpu(_) = frame.stream {
                trace.read_sched(frame, &mut SchedBlock::default())?;
            } else {
                let mut events = Vec::new();
                trace.read_life(frame, &mut events)?;
                for event in events {
                    let name = format!("{:?}", event.kind);
                    let name = name.split(['(', ' ']).next().unwrap_or_default().to_owned();
                    *kinds.entry(name).or_default() += 1;
                }
            }
        }
        let events: u64 = sums.values().map(|sum| sum.2).sum();
        println!(
            "{path}: {size} bytes, {events} events, {:.3} a event",
            size as f64 / events as f64
        );
        for (name, (frames, bytes, events)) in &sums {
            println!(
                "  {name:10} {frames:5} frames {bytes:8} bytes {events:8} events {:.3}",
                *bytes as f64 / *events as f64
            );
        }
        println!("  other {} bytes; {kinds:?}", size - used);
    }
    Ok(())
}
