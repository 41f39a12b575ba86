//! Compares how much the builds of the two sides used disks, the network and memory.

use super::sides::Sides;
use super::spread::{signed, Difference};
use tr_insight::demands::Demand;

/// The difference of a demand with its unit, as text.
pub fn change(demand: Demand, judged: &Difference) -> String {
    signed(judged.difference(), |size| demand.show(size))
}

/// The least difference of a demand that is shown, in its unit; for times it is `least_ns`.
fn least(demand: Demand, least_ns: u64) -> u64 {
    match demand {
        Demand::Read | Demand::Written | Demand::Received | Demand::Sent => 1 << 20,
        Demand::Resident => 10 << 20,
        Demand::Connections => 10,
        Demand::MajorFaults => 100,
        Demand::Failed | Demand::OomKills => 1,
        _ => least_ns,
    }
}

/// Whether a demand differs between the sides by a twentieth or more, and a time by `least_ns` or more.
pub fn differs(demand: Demand, judged: &Difference, least_ns: u64) -> bool {
    let size = judged.difference().unsigned_abs();
    size >= u128::from(least(demand, least_ns)) && judged.is_noticeable()
}

/// The demands that differ between the sides. Times have to differ by `least` ns or more.
pub fn changes(sides: Sides<'_>, least: u64) -> Vec<(Demand, Difference)> {
    let all = Demand::ALL.into_iter().filter_map(|demand| {
        let judged = sides.judge(|run| run.demands.get(&demand).copied())?;
        Some((demand, judged))
    });
    all.filter(|(demand, judged)| differs(*demand, judged, least))
        .collect()
}

#[cfg(test)]
#[path = "tests/demands.rs"]
mod tests;
