//! Compares how much the builds of the two sides used disks, the network and memory.

use super::sides::Sides;
use super::spread::{signed, Difference};
use tr_insight::resources::demands::Demand;

/// The difference between two builds in a demand, such as the bytes read from disks, as text with sign
/// and unit.
pub fn change(demand: Demand, judged: &Difference) -> String {
    signed(judged.difference(), |size| demand.show(size))
}

/// The least difference of a demand (such as bytes read, or connections) that a comparison shows, in
/// the demand's unit. For demands that are times it is `least_ns`.
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

/// Whether a demand of the builds (such as bytes read) differs by a twentieth or more, by the least amount that is
/// shown, and beyond the spread. For demands that are times, this amount is `least_ns`.
pub fn differs(demand: Demand, judged: &Difference, least_ns: u64) -> bool {
    let size = judged.difference().unsigned_abs();
    size >= u128::from(least(demand, least_ns)) && judged.is_noticeable()
}

/// The demands of the builds on disks, the network and memory that differ between the sides. Demands that are times
/// have to differ by `least` ns or more.
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
