//! The switches that ftrace saw while we were recording: another tracer, at the
//! same tracepoint.

use std::collections::{BTreeMap, BTreeSet};

use tr_analyze::model::Analysis;
use tr_format::event::CpuId;

use crate::{us, Switch};

/// Lines of CPU, time in s, previous and next tid; each CPU's in order.
#[derive(Debug, Default)]
pub struct Switches(BTreeMap<CpuId, Vec<Switch>>);

/// The tids of the recorded threads.
fn tids(analysis: &Analysis) -> BTreeSet<u32> {
    analysis.threads.iter().map(|thread| thread.tid.0).collect()
}

impl Switches {
    pub fn parse(text: &str) -> Switches {
        let mut switches = Switches::default();
        for line in text.lines() {
            let words: Vec<&str> = line.split(' ').collect();
            let [cpu, time, prev, next] = words[..] else {
                panic!("{line}");
            };
            let (seconds, micros) = time.split_once('.').expect(line);
            assert_eq!(micros.len(), 6, "{line}");
            let number = |word: &str| word.parse::<u64>().expect(line);
            let tid = |word: &str| word.parse::<u32>().expect(line);
            let cpu = CpuId(cpu.parse().expect(line));
            switches.0.entry(cpu).or_default().push(Switch {
                time: number(seconds) * 1_000_000_000 + number(micros) * 1000,
                prev: tid(prev),
                next: tid(next),
            });
        }
        switches
    }

    /// How many switches from or to a recorded task the kernel did not report: at
    /// those places another task leaves a CPU than had come to it.
    pub fn unreported(&self, analysis: &Analysis) -> u64 {
        let ours = tids(analysis);
        let mut count = 0;
        for switches in self.0.values() {
            for pair in switches.windows(2) {
                let broken = pair[0].next != pair[1].prev;
                if broken && (ours.contains(&pair[0].next) || ours.contains(&pair[1].prev)) {
                    count += 1;
                }
            }
        }
        count
    }

    /// The recorded switches are those that ftrace saw of the recorded tasks, one
    /// by one.
    pub fn agree(
        &self,
        name: &str,
        analysis: &Analysis,
        recorded: &BTreeMap<CpuId, Vec<Switch>>,
    ) -> String {
        let tids = tids(analysis);
        let of_ours = |s: &&Switch| tids.contains(&s.prev) || tids.contains(&s.next);
        let same = |(a, b): (&Switch, &Switch)| a.prev == b.prev && a.next == b.next;
        let mut apart = Vec::new();
        for (cpu, ours) in recorded {
            let theirs: Vec<Switch> = self.0.get(cpu).map_or(&[][..], Vec::as_slice).to_vec();
            let theirs: Vec<Switch> = theirs.iter().filter(of_ours).copied().collect();
            // It began before us and ended after.
            let at = theirs
                .windows(ours.len())
                .position(|window| window.iter().zip(ours).all(same))
                .unwrap_or_else(|| panic!("{name}: CPU {} as ftrace saw it is otherwise", cpu.0));
            apart.extend(
                theirs[at..]
                    .iter()
                    .zip(ours)
                    .map(|(theirs, ours)| theirs.time.abs_diff(ours.time)),
            );
        }
        apart.sort_unstable();
        let last = apart.len() - 1;
        format!(
            "{} switches as ftrace saw them, stamps {} apart (9 of 10), {} switches reported to neither",
            apart.len(),
            us(apart[last * 9 / 10]),
            self.unreported(analysis)
        )
    }
}
