//! Writes the scheduling events of a trace to standard output as plain records of 24 bytes, in the order of their
//! times. A tool that does not pack its events would store such records. `benches/compare.sh` compares the sizes of
//! trace files with the size of this output.
//!
//! `cargo run --release -p tr-analyze --example raw -- FILE > OUT`
//!
//! A record is little-endian: u64 time in ns, u32 tid of the task that was running, u32 tid of the task that was
//! switched to or woken, u16 state, u16 CPU, u32 kind.

use std::io::Write;

use tr_analyze::order::{self, Event};
use tr_format::event::SchedKind;
use tr_format::reader::Trace;
use tr_format::source::Source;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let path = std::env::args_os().nth(1).ok_or("usage: raw FILE")?;
    let trace = Trace::open(Source::file(std::fs::File::open(path)?)?)?;
    let mut out = std::io::BufWriter::with_capacity(1 << 20, std::io::stdout().lock());
    let mut merge = order::merge(&trace);
    while let Some(event) = merge.next_event() {
        let Event::Sched(cpu, event) = event else {
            continue;
        };
        let (from, to, state, kind) = match event.kind {
            SchedKind::Switch(it) => (it.prev, it.next, it.prev_state, u32::from(it.preempt)),
            SchedKind::Waking(it) => (it.waker, it.wakee, 0, 2 | u32::from(it.new)),
        };
        out.write_all(&event.time.0.to_le_bytes())?;
        out.write_all(&from.0.to_le_bytes())?;
        out.write_all(&to.0.to_le_bytes())?;
        out.write_all(&state.to_le_bytes())?;
        out.write_all(&cpu.0.to_le_bytes())?;
        out.write_all(&kind.to_le_bytes())?;
    }
    out.flush()?;
    Ok(())
}
