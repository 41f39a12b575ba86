//! Makes the verdict on recordings without scheduling events. Without such events, no change is simulated, because
//! nothing shows which event a task waited for. The recording still shows how long the tasks on the chain of forks and
//! exits waited for a CPU. Other tasks cannot have delayed the build by more than these waits.

use tr_analyze::critical_path::{by_kind, CriticalPath, TimeKind};
use tr_analyze::machine::withheld;
use tr_analyze::model::{Analysis, Basis};
use tr_format::meta::{Known, Origin, Scope};

use crate::candidate::AdviceKind;
use crate::verdict::forecast::errors;
use crate::verdict::{Blame, BuildVerdict, Condition};
use crate::SHORTEST_PATH;
use tr_insight::processes::exit;
use tr_insight::recordings::warnings;
use tr_insight::resources::loads::{Load, Loads};

/// The verdict on a build; `None` if it is not known whether, or by how much, the machine held the build back.
pub(crate) fn verdict(analysis: &Analysis, path: &CriticalPath) -> Option<BuildVerdict> {
    let wall = path.length();
    let sampled = |origin: Origin| origin.facts.switches == Known::Sampled;
    // If the recorded times are only lower bounds, they do not show how much of the build's time the machine can have
    // taken.
    let least = analysis.meta.origin.is_some_and(sampled) || warnings::is_lower_bound(analysis);
    let is_part = analysis.meta.scope != Scope::All;
    // If the build was limited to some CPUs, foreign tasks on the other CPUs took nothing from it, so no verdict is
    // possible.
    let known = is_part && analysis.machine.limited_to.is_none();
    if analysis.basis() != Basis::Totals || wall < SHORTEST_PATH || least || !known {
        return None;
    }
    let spent = by_kind(&path.segments);
    let waited = spent.of(TimeKind::RunQueue);
    // While a task waits for a CPU, other tasks run on that CPU: either tasks of the build that are not on the chain of
    // forks and exits, or foreign tasks. Only foreign tasks hold the build back, so the CPU time of the build's tasks
    // that are not on the chain is subtracted.
    let beside = analysis.totals.times.on_cpu_known()?;
    let beside = beside.saturating_sub(spent.of(TimeKind::OnCpu));
    let lost = waited.saturating_sub(beside);
    let machine = withheld(analysis);
    let throttled = machine.throttled_ns.unwrap_or(0);
    let foreign = Loads::of(analysis).load(Load::Others)?;
    let most = waited.min(foreign.saturating_add(throttled));
    let lost = lost.min(most);
    if lost == 0 || lost.saturating_mul(AdviceKind::Others.least()) < wall {
        return None;
    }
    let (alone, quota) = (wall - lost, lost.min(throttled));
    let stolen = machine.stolen_ns.unwrap_or(0) / (analysis.meta.cpus.len() as u64).max(1);
    let at_least = wall.saturating_sub(most);
    Some(BuildVerdict {
        blame: Blame::Machine,
        wall,
        alone,
        alone_at_least: at_least.saturating_sub(errors(most, at_least, 0).below),
        alone_at_most: alone,
        others: lost - quota,
        nobody: 0,
        names: Vec::new(),
        quota,
        quota_of: None,
        stolen: Some(stolen)
            .filter(|ns| ns.saturating_mul(AdviceKind::Stolen.least()) >= wall)
            .unwrap_or(0),
        changes: 0,
        condition: Condition::NoChange,
        bound: None,
        mostly: None,
        waits: 0,
        open: Vec::new(),
        failed: exit::command_failed(analysis),
        cpus: analysis.meta.cpus.len() as u64,
    })
}
