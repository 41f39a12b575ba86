//! Determines the CPUs on which a build may run by its affinity and its cpuset.

use std::collections::BTreeSet;

use tr_format::event::CpuId;
use tr_format::meta::Metadata;

use crate::model::{CpuFigures, Switches};

/// The number of online CPUs on which the affinity and the cpuset let the build run; `None` if these are all or none of
/// the online CPUs, or if they are not recorded. The result is also `None` if a recorded task ran on any other CPU, for
/// example in a container or with a separate affinity: the limit then does not hold for the whole recording.
pub fn limited_to(meta: &Metadata, cpus: &[(CpuId, CpuFigures)]) -> Option<u64> {
    let allowed: BTreeSet<CpuId> = meta.options.allowed.as_ref()?.iter().copied().collect();
    let online: BTreeSet<CpuId> = meta.cpus.iter().copied().collect();
    let count = allowed.intersection(&online).count();
    let mut ran = cpus
        .iter()
        .filter(|(_, figures)| figures.switches != Switches::default());
    let kept = ran.all(|(cpu, _)| allowed.contains(cpu));
    (kept && count > 0 && count < online.len()).then_some(count as u64)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn limit(online: u16, allowed: Option<&[u16]>, ran: &[u16]) -> Option<u64> {
        let mut meta = Metadata {
            cpus: (0..online).map(CpuId).collect(),
            ..Metadata::default()
        };
        let all = |cpus: &[u16]| cpus.iter().copied().map(CpuId).collect();
        meta.options.allowed = allowed.map(all);
        let cpus: Vec<(CpuId, CpuFigures)> = (0..online)
            .map(|cpu| {
                let mut figures = CpuFigures::default();
                figures.switches.voluntary = u64::from(ran.contains(&cpu));
                (CpuId(cpu), figures)
            })
            .collect();
        limited_to(&meta, &cpus)
    }

    #[test]
    fn the_allowed_cpus_count_if_the_build_kept_to_them() {
        assert_eq!(limit(64, Some(&[0, 1, 5]), &[0, 5]), Some(3));
        // The empty list means that the recording does not show on which CPUs tasks ran. So nothing contradicts the
        // limit of one CPU.
        assert_eq!(limit(64, Some(&[0]), &[]), Some(1));
        assert_eq!(limit(64, Some(&[0, 1]), &[0, 2]), None);
        assert_eq!(limit(64, None, &[0]), None);
    }

    /// A trace file can claim that a build may run on CPUs that the machine does not have. Such CPUs are
    /// not counted.
    #[test]
    fn a_set_that_cannot_be_is_no_limit() {
        assert_eq!(limit(64, Some(&[]), &[]), None);
        assert_eq!(limit(64, Some(&[70, 71]), &[]), None);
        assert_eq!(limit(2, Some(&[0, 1]), &[0]), None);
        assert_eq!(limit(0, Some(&[0]), &[]), None);
        assert_eq!(limit(64, Some(&[1, 0, 1, 65_535]), &[0]), Some(2));
    }
}
