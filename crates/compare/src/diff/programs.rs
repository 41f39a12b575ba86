//! Finds the programs whose times differ between the two sides of a comparison, summed up over all processes of each
//! program.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use super::align::Slot;
use super::ask::Ask;
use super::run::Figure;
use super::spread::{Difference, PerSide, SpreadVerdict};
use tr_insight::verdicts::step_sums::add;
use tr_programs::program_name::ProgramName;

/// The difference in one program between the base and the new runs: the sums over all processes that run it.
#[derive(Clone, Debug)]
pub(super) struct ProgramChange {
    pub name: ProgramName,
    /// For each side of the comparison, the median of the number of processes that run this program.
    pub count: PerSide<u64>,
    pub on_cpu: Difference,
    pub path: Option<Difference>,
}

/// The sums (CPU time, time on the critical path) over all processes of one program in one run.
#[derive(Clone, Copy)]
struct ProgramSum {
    processes: u64,
    /// The CPU time in ns of all processes of the program; `None` if the CPU time of any of these processes is not
    /// known.
    on_cpu: Option<u64>,
    /// The time in ns that the program's processes have on the critical path; `None` if the run has no critical path.
    path: Option<u64>,
}

/// The programs that differ between the sides, with the largest difference of CPU time or of time on the critical path
/// first. In each slot (a process matched across all runs), the first `base` runs are those of the base.
pub(super) fn changes(slots: &[Slot], base: usize, ask: &Ask) -> Vec<ProgramChange> {
    let runs = slots.first().map_or(0, |slot| slot.runs.len());
    let none = (0..runs).map(|run| {
        let path = |slot: &Slot| slot.runs.get(run)?.as_ref()?.get(Figure::CriticalPath);
        ProgramSum {
            processes: 0,
            on_cpu: Some(0),
            // The run has a critical path if the time on it is known for any of its processes.
            path: slots.iter().find_map(path).map(|_| 0),
        }
    });
    let none: Vec<ProgramSum> = none.collect();
    let mut sums = BTreeMap::<&ProgramName, Vec<ProgramSum>>::new();
    for slot in slots {
        let of = sums.entry(&slot.program).or_insert_with(|| none.clone());
        for (sum, figures) in of.iter_mut().zip(&slot.runs) {
            let Some(figures) = figures else { continue };
            sum.processes += 1;
            add(&mut sum.on_cpu, figures.get(Figure::OnCpu));
            let path = figures.get(Figure::CriticalPath);
            add(&mut sum.path, Some(path.unwrap_or(0)));
        }
    }
    let change = |(name, sums): (&ProgramName, Vec<ProgramSum>)| {
        let judge = |of: fn(&ProgramSum) -> Option<u64>| {
            let (base, new) = sums.split_at(base.min(sums.len()));
            let known = |side: &[ProgramSum]| side.iter().filter_map(of).collect::<Vec<_>>();
            Difference::new(&known(base), &known(new))
        };
        let count = judge(|sum| Some(sum.processes))?;
        Some(ProgramChange {
            name: name.clone(),
            count: count.medians(),
            on_cpu: judge(|sum| sum.on_cpu)?,
            path: judge(|sum| sum.path),
        })
    };
    let mut programs: Vec<ProgramChange> = sums.into_iter().filter_map(change).collect();
    let size = |judged: &Difference| match judged.verdict {
        SpreadVerdict::Inside => 0,
        _ => judged.difference().unsigned_abs(),
    };
    let of =
        |program: &ProgramChange| size(&program.on_cpu).max(program.path.as_ref().map_or(0, size));
    programs.retain(|program| of(program) >= u128::from(ask.least.max(1)));
    programs.sort_by(|a, b| (Reverse(of(a)), &a.name).cmp(&(Reverse(of(b)), &b.name)));
    programs
}
