//! What the builds of the two sides asked of disks, the network and memory.

use std::collections::BTreeMap;

use tr_analyze::critical_path::CriticalPath;
use tr_analyze::model::{Analysis, ThreadIx};
use tr_format::meta::Extra;

use super::machine::{is_noticeable, judge};
use super::{signed, Diff, Figure, Judged, Run, Verdict};
use crate::facts::memory::Resident;
use crate::facts::{disk, memory, network};
use crate::names::named;
use crate::units;

named! {
    /// A sum over all processes of a recording.
    pub enum Demand {
        /// Waits of all threads, in ns.
        DiskWait = "disk-wait", "waits for disks and files";
        /// Part of `DiskWait`.
        Sync = "fsync", "waits in fsync";
        /// Part of the critical path.
        DiskPath = "disk-path", "waits for disks on the critical path";
        /// In bytes.
        Read = "disk-read", "read from disks";
        /// In bytes.
        Written = "disk-written", "written to disks";
        /// Connections begun or accepted.
        Connections = "connections", "TCP connections";
        Failed = "failed-connections", "failed TCP connections";
        /// Time to connect, in ns.
        Connecting = "connecting", "connecting";
        /// Part of the critical path.
        NetworkPath = "network-path", "waits for the network on the critical path";
        /// In bytes.
        Received = "received", "received by TCP";
        /// In bytes.
        Sent = "sent", "sent by TCP";
        /// Of all processes together, in bytes.
        Resident = "resident", "resident memory of all processes";
        /// Page faults that read from a disk.
        MajorFaults = "major-faults", "major faults";
        /// In ns.
        Reclaim = "reclaim", "direct reclaim";
        /// In ns.
        Swap = "swap", "waits for pages from swap";
        OomKills = "oom-kills", "killed for lack of memory";
    }
}

/// The sums of a run, where they are known.
pub type Demands = BTreeMap<Demand, u64>;

impl Demand {
    /// A value in its unit.
    pub fn show(self, value: u64) -> String {
        match self {
            Demand::Read | Demand::Written | Demand::Received | Demand::Sent => units::bytes(value),
            Demand::Resident => units::bytes(value),
            Demand::Connections | Demand::Failed | Demand::MajorFaults | Demand::OomKills => {
                units::count(value)
            }
            _ => units::time(value),
        }
    }

    /// A difference in its unit.
    pub fn change(self, judged: &Judged) -> String {
        signed(judged.difference(), |size| self.show(size))
    }

    /// The least difference that is shown; `ns` of a time.
    fn least(self, ns: u64) -> u64 {
        match self {
            Demand::Read | Demand::Written | Demand::Received | Demand::Sent => 1 << 20,
            Demand::Resident => 10 << 20,
            Demand::Connections => 10,
            Demand::MajorFaults => 100,
            Demand::Failed | Demand::OomKills => 1,
            _ => ns,
        }
    }

    /// The sides differ by a twentieth or more, of a time by `ns` or more.
    fn differs(self, judged: &Judged, ns: u64) -> bool {
        let size = judged.difference().unsigned_abs();
        size >= u128::from(self.least(ns)) && is_noticeable(judged, judged.base.max(judged.new))
    }
}

/// The sums of a whole recording.
pub fn of(analysis: &Analysis, path: Option<&CriticalPath>) -> Demands {
    let threads = 0..u32::try_from(analysis.threads.len()).unwrap_or(u32::MAX);
    let threads: Vec<ThreadIx> = threads.map(ThreadIx).collect();
    let disk = disk::totals(analysis, &threads, path);
    let memory = memory::totals(analysis, &threads);
    let network = analysis.meta.has(Extra::Network);
    let network = network.then(|| network::totals(analysis, path));
    let resident = Resident::of(analysis).whole();
    let value = |demand| match demand {
        Demand::DiskWait => analysis.timeline.as_ref().map(|_| disk.waited),
        Demand::Sync => analysis.timeline.as_ref().map(|_| disk.sync),
        Demand::DiskPath => disk.path,
        Demand::Read => disk.io().map(|(read, _)| read),
        Demand::Written => disk.io().map(|(_, written)| written),
        Demand::Connections => network.map(|it| it.connections),
        Demand::Failed => network.map(|it| it.failed),
        Demand::Connecting => network.map(|it| it.connecting),
        Demand::NetworkPath => network.and_then(|it| path.map(|_| it.path_wait)),
        Demand::Received => network.and_then(|it| it.received()),
        Demand::Sent => network.and_then(|it| it.sent()),
        Demand::Resident => resident,
        Demand::MajorFaults => memory.major_faults,
        Demand::Reclaim => memory.reclaimed,
        Demand::Swap => memory.swapped,
        Demand::OomKills => memory.killed,
    };
    let all = Demand::ALL.into_iter();
    all.filter_map(|demand| Some((demand, value(demand)?)))
        .collect()
}

/// The demands that differ; times by `least` ns or more.
pub fn changes(base: &[Run], new: &[Run], least: u64) -> Vec<(Demand, Judged)> {
    let all = Demand::ALL.into_iter().filter_map(|demand| {
        let judged = judge((base, new), |run| run.demands.get(&demand).copied())?;
        Some((demand, judged))
    });
    all.filter(|(demand, judged)| demand.differs(judged, least))
        .collect()
}

impl Diff {
    /// The wall time differs although the build's CPU work hardly does, because the critical path
    /// waited more or less for disks or for the network: in words.
    pub(super) fn waited(&self) -> Option<String> {
        let wall = self.whole(Figure::Wall)?;
        if wall.verdict == Verdict::Inside || !is_noticeable(wall, wall.base.max(wall.new)) {
            return None;
        }
        let work = judge((&self.base, &self.new), |run| {
            run.machine.work.or(run.figures.get(Figure::OnCpu))
        })?;
        let small = work.difference().abs() * 10 <= wall.difference().abs();
        if !small && is_noticeable(&work, work.base.max(work.new)) {
            return None;
        }
        let of = |demand| {
            let of = |run: &Run| run.demands.get(&demand).copied();
            judge((&self.base, &self.new), of)
        };
        let explains = |judged: &Judged| {
            let (part, whole) = (judged.difference(), wall.difference());
            judged.verdict != Verdict::Inside
                && part.signum() == whole.signum()
                && part.abs() * 2 >= whole.abs()
        };
        let causes = CAUSES.iter();
        let causes = causes.filter_map(|cause| Some((cause, of(cause.wait).filter(explains)?)));
        let (cause, wait) = causes.max_by_key(|(_, wait)| wait.difference().abs())?;
        let bytes = cause.bytes.into_iter();
        let bytes = bytes.filter_map(|demand| Some((demand, of(demand)?)));
        let more = bytes.filter(|(demand, it)| demand.differs(it, 0));
        let more = more.map(|(demand, it)| format!("{} {}", demand.change(&it), demand.title()));
        let more: Vec<String> = more.collect();
        let wait = format!("{}: {}", cause.wait.title(), cause.wait.change(&wait));
        let (before, now) = (units::time(work.base), units::time(work.new));
        let (name, equal) = (cause.name, cause.equal);
        Some(if more.is_empty() {
            format!(
                "{name}, not your change: as much CPU work ({before} and {now}), as many bytes \
                 {equal}; {wait}"
            )
        } else {
            let more = more.join(", ");
            format!("{name}, not the CPU work ({before} and {now}); {wait}; {more}")
        })
    }
}

/// A resource that can explain a difference of the wall time.
struct Cause {
    name: &'static str,
    wait: Demand,
    bytes: [Demand; 2],
    equal: &'static str,
}

const CAUSES: [Cause; 2] = [
    Cause {
        name: "The runner's disk",
        wait: Demand::DiskPath,
        bytes: [Demand::Read, Demand::Written],
        equal: "read and written",
    },
    Cause {
        name: "The network",
        wait: Demand::NetworkPath,
        bytes: [Demand::Received, Demand::Sent],
        equal: "received and sent",
    },
];

#[cfg(test)]
#[path = "tests/demands.rs"]
mod tests;
