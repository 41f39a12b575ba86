//! What the builds of the two sides asked of disks, the network and memory.

use super::machine::judge;
use super::run::Run;
use super::spread::{signed, Judged};
use crate::facts::demands::Demand;

impl Demand {
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
    pub fn differs(self, judged: &Judged, ns: u64) -> bool {
        let size = judged.difference().unsigned_abs();
        size >= u128::from(self.least(ns)) && judged.is_noticeable()
    }
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

#[cfg(test)]
#[path = "tests/demands.rs"]
mod tests;
