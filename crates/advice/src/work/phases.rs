//! Which programs do a whole phase of the build on the critical path? Advises what to do about linkers, configurations,
//! installations of packages, and compressions.

use std::collections::{BTreeMap, BTreeSet};

use tr_analyze::critical_path::TimeKind;
use tr_analyze::model::ProcessIx;
use tr_analyze::programs::Group;
use tr_analyze::what_if::Without;
use tr_format::event::Reason;
use tr_programs::changes;
use tr_programs::program_name::ProgramName;
use tr_programs::tools::Role;
use tr_text::phrase::Phrase;
use tr_text::units;

use crate::candidate::{largest, AdviceKind, Candidate, Certainty};
use crate::facts::{add, on_cpu, BuildFacts, Execution};

/// The least number of bytes that count as a download of packages. A guess: an index or an answer with an error is
/// smaller.
const LEAST_DOWNLOAD: u64 = 1 << 20;

pub(super) fn candidates(facts: &BuildFacts<'_>) -> Vec<Candidate> {
    let mut all: Vec<Candidate> = linkers(facts).into_iter().collect();
    all.extend(phase(facts, Role::Configure, AdviceKind::Configure));
    all.extend(phase(facts, Role::Packages, AdviceKind::Install));
    all.extend(compressors(facts));
    all
}

/// Advice on each program that compresses data by a slow level on the critical path.
fn compressors(facts: &BuildFacts<'_>) -> Vec<Candidate> {
    let mut by_program: BTreeMap<&ProgramName, Vec<Group>> = BTreeMap::new();
    for (group, execution) in facts.all() {
        // A forked process has no command line of its own.
        let called = match (execution.exec, execution.owner) {
            (None, Some(owner)) => owner,
            _ => group,
        };
        if execution.program.compresses_slowly(&facts.args(called)) {
            let of = by_program.entry(&execution.program).or_default();
            of.push(group);
        }
    }
    let candidate = |groups: Vec<Group>| {
        let all = facts.set(groups.iter().copied());
        let time = facts.on_path(&all, on_cpu);
        let (name, s) = facts.names(*groups.first()?, groups.iter().copied());
        Some(Candidate {
            finding: Phrase::with([&name], |[name]| {
                format!("{name} pack{s} data for {}", units::time(time))
            }),
            action:
                "use a lower level, several threads (-T0, pigz) or zstd, unless the size matters"
                    .into(),
            without: Without::work(all),
            cap: time,
            certainty: Certainty::UnlessMeant,
            evidence: groups,
            ..Candidate::of(AdviceKind::Compress)
        })
    };
    let all = largest(by_program.into_values(), |groups| facts.on_cpu(groups));
    all.into_iter().filter_map(candidate).collect()
}

fn linkers(facts: &BuildFacts<'_>) -> Option<Candidate> {
    let all = facts
        .all()
        .filter(|(_, execution)| execution.program.role() == Some(Role::Linker));
    let all = facts.set(all.map(|(group, _)| group));
    let is_linker = |group: Group| all.get(group as usize).copied().unwrap_or(false);
    let mut on_path: BTreeMap<Group, u64> = BTreeMap::new();
    for (segment, group, reason) in facts.segments() {
        if let Some(group) = group.filter(|group| is_linker(*group)) {
            if on_cpu(segment.kind, reason) && segment.length() > 0 {
                add(&mut on_path, group, segment.length());
            }
        }
    }
    let (sum, longest) = facts.longest(&on_path)?;
    let known = changes::known(&facts.execution(longest)?.program)?;
    let (name, s) = facts.names(longest, on_path.keys().copied());
    Some(Candidate {
        finding: Phrase::with([&name], |[name]| {
            format!("{name} link{s} for {}", units::time(sum))
        }),
        action: known.action.into(),
        // The change also applies to linkers that are not on the critical path.
        without: Without::work(all),
        cap: sum,
        evidence: on_path.into_keys().collect(),
        ..Candidate::of(AdviceKind::Link)
    })
}

/// Advice on programs that do one phase of a build, such as the configuration or the installation, together with all
/// their descendants. `role` selects the programs, and each program has its own line.
fn phase(facts: &BuildFacts<'_>, role: Role, kind: AdviceKind) -> Vec<Candidate> {
    let all = facts
        .all()
        .filter(|(group, _)| facts.role(*group) == Some(role));
    let all: Vec<(Group, &Execution)> = all.collect();
    let groups: Vec<Group> = all.iter().map(|(group, _)| *group).collect();
    let within = facts.below(&groups);
    let mut by_program: BTreeMap<&ProgramName, Vec<Group>> = BTreeMap::new();
    for (group, execution) in all {
        // A phase inside another one, such as config.status inside configure, is a part of the outer phase.
        let inside = execution.owner.and_then(|owner| within.get(owner as usize));
        if inside != Some(&true) {
            by_program
                .entry(&execution.program)
                .or_default()
                .push(group);
        }
    }
    let candidate = |(program, roots): (&ProgramName, Vec<Group>)| {
        let below = facts.below(&roots);
        let whole = facts.on_path(&below, |_, _| true);
        let slept = facts.on_path(&below, |kind, _| kind == TimeKind::Sleep);
        // A cache of packages does not change waits for servers that send no packages.
        let without = if kind == AdviceKind::Install && !has_downloads(facts, &below) {
            Without::own(is_no_wait_for_servers, Some(below))
        } else if slept.saturating_mul(2) > whole {
            // If a phase mostly sleeps, keeping its results saves little, and other advice is about its sleeps. So the
            // sleeps are not counted here.
            Without::own(|kind, _| kind != TimeKind::Sleep, Some(below))
        } else {
            Without::own(|_, _| true, Some(below))
        };
        let time = facts.length(&facts.covers(&without));
        if time.saturating_mul(2) < whole {
            return None;
        }
        let name = match facts.runs(roots.iter().copied()) {
            0 | 1 => facts.name(*roots.first()?),
            many => format!("{many} × {program}").into(),
        };
        Some(Candidate {
            finding: Phrase::with([&name], |[name]| {
                format!("{name} takes {}", units::time(whole))
            }),
            action: changes::of_role(role).into(),
            without,
            cap: time,
            evidence: roots,
            ..Candidate::of(kind)
        })
    };
    let all = largest(by_program, |(_, groups)| facts.on_cpu(groups));
    all.into_iter().filter_map(candidate).collect()
}

/// Whether the executions in a set received at least [`LEAST_DOWNLOAD`] bytes over TCP connections that are closed.
fn has_downloads(facts: &BuildFacts<'_>, of: &[bool]) -> bool {
    let groups = (0..).zip(of).filter(|(_, is_in)| **is_in);
    let executions = groups.filter_map(|(group, _)| facts.execution(group));
    let processes: BTreeSet<ProcessIx> = executions.map(|execution| execution.process).collect();
    let connections = facts.analysis.network.connections.iter();
    let received = connections.filter_map(|connection| {
        let process = facts.analysis.thread(connection.thread?).process;
        let (_, received) = connection.bytes?;
        processes.contains(&process).then_some(received)
    });
    received.fold(0, u64::saturating_add) >= LEAST_DOWNLOAD
}

/// Whether a time is neither a wait for a peer nor a sleep, such as the pause before a try is repeated.
fn is_no_wait_for_servers(kind: TimeKind, _: Reason) -> bool {
    !matches!(
        kind,
        TimeKind::Network | TimeKind::Outside | TimeKind::Sleep | TimeKind::Unknown
    )
}
