//! Packs raw dumps (see raw.rs), a frame each, for experiments.
use tr_format::{event::*, meta::Metadata, sched::SchedBlock, writer::Writer};
fn cpu() -> f64 {
    let t = nix::time::clock_gettime(nix::time::ClockId::CLOCK_THREAD_CPUTIME_ID).unwrap();
    t.tv_sec() as f64 * 1e9 + t.tv_nsec() as f64
}
fn main() -> Result<(), Box<dyn std::error::Error>> {
    for path in std::env::args().skip(1) {
        let raw = std::fs::read(&path)?;
        let mut blocks: Vec<SchedBlock> = Vec::new();
        let mut last = None;
        for r in raw.chunks_exact(24) {
            let u = |a: usize, n: usize| {
                r[a..a + n]
                    .iter()
                    .rev()
                    .fold(0u64, |v, b| v << 8 | u64::from(*b))
            };
            if last != Some(u(0, 4)) {
                blocks.push(SchedBlock::default());
                last = Some(u(0, 4));
            }
            let b = blocks.last_mut().unwrap();
            b.time.push(u(4, 8));
            b.from.push(u(12, 4) as u32);
            b.to.push(u(16, 4) as u32);
            b.state.push(u(20, 2) as u16);
            b.flags.push(u(22, 1) as u8);
        }
        let lists: Vec<Vec<SchedEvent>> = blocks.iter().map(|b| b.iter().collect()).collect();
        let (mut bytes, mut events) = (0, 0);
        let (mut encs, mut decs) = (vec![f64::MAX; lists.len()], vec![f64::MAX; lists.len()]);
        let begin = std::time::Instant::now();
        while begin.elapsed().as_secs_f64() < 3.0 {
            let mut writer = Writer::new(Vec::with_capacity(8 << 20), &Metadata::default())?;
            for (list, enc) in lists.iter().zip(&mut encs) {
                let t = cpu();
                for e in list {
                    writer.sched(CpuId(0), *e)?;
                }
                writer.flush()?;
                *enc = enc.min(cpu() - t);
            }
            bytes = writer.written().bytes;
            events = writer.written().events();
            let (file, _) = writer.finish(&Default::default())?;
            let trace = tr_format::reader::Trace::open(tr_format::source::Source::bytes(file))?;
            let mut into = SchedBlock::default();
            for (f, dec) in trace.frames().iter().zip(&mut decs) {
                let t = cpu();
                trace.read_sched(f, &mut into)?;
                *dec = dec.min(cpu() - t);
            }
        }
        let enc = encs.iter().sum::<f64>() / events as f64;
        let dec = decs.iter().sum::<f64>() / events as f64;
        println!("{path}: {:.3} a event, {events} events in {} frames; encode {enc:.1} ns, decode {dec:.1} ns", bytes as f64 / events as f64, blocks.len());
    }
    Ok(())
}
