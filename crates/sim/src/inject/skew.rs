//! Makes the clocks of different CPUs disagree in a simulated recording.

use tr_format::event::{CpuId, Ktime, LifeKind};

use super::injected::Injected;
use crate::recording::Recording;

/// The error of a simulated CPU's clock.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ClockError {
    /// The error of the CPU's clock at the start of the recorded span in ns.
    pub offset: i64,
    /// The growth of the CPU's clock error in each second, in ns.
    pub drift: i64,
}

impl ClockError {
    /// The time in ns that the wrong clock shows at the true time `time`. `start` is the start of
    /// the recorded span.
    pub fn shown(&self, time: u64, start: u64) -> u64 {
        let error = i128::from(self.offset)
            + i128::from(self.drift) * (i128::from(time) - i128::from(start)) / 1_000_000_000;
        u64::try_from(i128::from(time) + error).unwrap_or(0)
    }
}

/// Makes the clocks of some simulated CPUs wrong. All other clocks stay right.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Skew {
    /// The simulated CPUs with wrong clocks, and the errors of these clocks.
    pub clocks: Vec<(CpuId, ClockError)>,
}

impl Skew {
    pub(crate) fn apply(&self, recording: &mut Recording) -> Vec<Injected> {
        let start = recording.meta.start.0;
        let end = recording.end().0;
        let mut done = Vec::new();
        for (cpu, clock) in &self.clocks {
            let Some(ring) = recording.cpus.get_mut(usize::from(cpu.0)) else {
                continue;
            };
            for written in ring {
                written.event.time = Ktime(clock.shown(written.event.time.0, start));
            }
            for written in &mut recording.life {
                let event = &mut written.event;
                if event.cpu != Some(*cpu) {
                    continue;
                }
                event.time = Ktime(clock.shown(event.time.0, start));
                if let LifeKind::Fork(fork) = &mut event.kind {
                    fork.start_time = Ktime(clock.shown(fork.start_time.0, start));
                }
            }
            let error = |time: u64| clock.shown(time, start) as i64 - time as i64;
            done.push(Injected::Skewed {
                cpu: *cpu,
                offset: (error(start), error(end)),
            });
        }
        done
    }
}
