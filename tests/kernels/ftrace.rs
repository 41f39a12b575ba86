//! Compares switches with those that ftrace recorded at the same tracepoint at the same time.

use std::collections::{BTreeMap, BTreeSet};

use tr_analyze::model::Analysis;
use tr_format::event::CpuId;

use crate::{us, Switch};

/// The switches of each CPU in order, from lines with the CPU, the time in s, and the previous and the next tid.
#[derive(Debug, Default)]
pub struct Switches(BTreeMap<CpuId, Vec<Switch>>);

/// The tids of all recorded threads.
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

    /// The number of switches from or to a recorded task that ftrace lacks. Such a missing switch shows as a gap in
    /// ftrace's list for a CPU: the task that switches out is not the one that switched in before.
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

    /// Compares the recorded tasks' switches with ftrace's, one by one. In some virtual machines ftrace lacks switches
    /// from the idle task, which shows as a gap in ftrace's sequence of tasks. Switches between two tasks that are not
    /// recorded are not compared: the recording has such switches only while a recorded task waits for that CPU.
    pub fn agree(
        &self,
        name: &str,
        analysis: &Analysis,
        recorded: &BTreeMap<CpuId, Vec<Switch>>,
    ) -> String {
        let tids = tids(analysis);
        let of_ours = |s: &&Switch| tids.contains(&s.prev) || tids.contains(&s.next);
        let (mut apart, mut lacking) = (Vec::new(), 0);
        for (cpu, ours) in recorded {
            let ours: Vec<Switch> = ours.iter().filter(of_ours).copied().collect();
            let all = self.0.get(cpu).map_or(&[][..], Vec::as_slice);
            // For each switch, whether its previous task is not the one that was switched in before it.
            let broken =
                std::iter::once(false).chain(all.windows(2).map(|p| p[0].next != p[1].prev));
            let theirs: Vec<(Switch, bool)> = all
                .iter()
                .copied()
                .zip(broken)
                .filter(|(s, _)| of_ours(&s))
                .collect();
            // ftrace started before the recording and stopped after it, so the recorded switches begin somewhere in
            // ftrace's list.
            let (stamps, lacks) = (0..theirs.len())
                .find_map(|from| side_by_side(&ours, &theirs[from..]))
                .unwrap_or_else(|| panic!("{name}: CPU {} as ftrace saw it is otherwise", cpu.0));
            apart.extend(stamps);
            lacking += lacks;
        }
        apart.sort_unstable();
        let last = apart.len() - 1;
        format!(
            "{} switches as ftrace saw them, stamps {} apart (9 of 10), {lacking} not in ftrace's own \
             account, {} switches reported to neither",
            apart.len(),
            us(apart[last * 9 / 10]),
            self.unreported(analysis)
        )
    }
}

/// Compares two lists of switches. Returns the differences of the timestamps, and the number of switches that ftrace
/// lacks. A switch may be missing only where ftrace's own sequence of tasks has a gap. Returns `None` if the lists
/// differ in any other way.
fn side_by_side(ours: &[Switch], theirs: &[(Switch, bool)]) -> Option<(Vec<u64>, u64)> {
    let (mut apart, mut lacking, mut at) = (Vec::new(), 0, 0);
    for switch in ours {
        let (other, broken) = theirs.get(at)?;
        if (other.prev, other.next) == (switch.prev, switch.next) {
            apart.push(other.time.abs_diff(switch.time));
            at += 1;
        } else if *broken && switch.prev == 0 && other.prev == switch.next {
            lacking += 1;
        } else {
            return None;
        }
    }
    (apart.len() as u64 > lacking).then_some((apart, lacking))
}
