//! Gives advice on caches that keep results of earlier runs, but had none of them, or were not used.

use std::collections::{BTreeMap, BTreeSet};

use tr_analyze::critical_path::TimeKind;
use tr_analyze::model::ProcessIx;
use tr_analyze::programs::Group;
use tr_analyze::what_if::Without;
use tr_programs::program_name::ProgramName;
use tr_programs::tools::Role;
use tr_programs::words::is_of_go_library;

use crate::candidate::{largest, AdviceKind, Candidate, Certainty};
use crate::facts::{BuildFacts, Execution};
use tr_text::escape;
use tr_text::phrase::Phrase;
use tr_text::units;

/// The least number of compiled files for which a compiler's cache gets advice: the files that calls of the cache
/// compiled. A guess: with only two files, it may be chance that neither is in the cache.
const FILES: usize = 3;
/// The least CPU time in ns of a compiler below a compiler's cache that counts as a compilation. If the cache has the
/// result, nothing is compiled. A guess between the CPU time of a compiler driver's start and the CPU time of the
/// smallest compilation.
const LEAST_COMPILATION: u64 = 10_000_000;

/// The least number of packages of Go's standard library that a build compiles or checks if its cache lacks them. A
/// guess: even a program that only prints a line needs some thirty of these packages.
const LIBRARY: usize = 10;

pub(super) fn candidates(facts: &BuildFacts<'_>) -> Vec<Candidate> {
    let mut all: Vec<Candidate> = compiler_cache(facts).into_iter().collect();
    all.extend(go_cache(facts));
    all.extend(unused_caches(facts));
    all
}

/// Advice on programs that an option tells to do without the results of earlier runs, such as `jest --no-cache`.
fn unused_caches(facts: &BuildFacts<'_>) -> Vec<Candidate> {
    let mut by_program: BTreeMap<(&ProgramName, &[u8]), Vec<Group>> = BTreeMap::new();
    for (group, execution) in facts.all() {
        if let Some(option) = execution.program.no_cache(&facts.args(group)) {
            let of = by_program.entry((&execution.program, option)).or_default();
            of.push(group);
        }
    }
    let all = largest(by_program, |(_, groups)| facts.on_cpu(groups)).into_iter();
    let candidate = |((_, option), groups): ((&ProgramName, &[u8]), Vec<Group>)| {
        let below = facts.below(&groups);
        let time = facts.on_path(&below, |kind, _| kind == TimeKind::OnCpu);
        let option = escape::raw(option);
        let (name, s) = facts.names(*groups.first()?, groups.iter().copied());
        Some(Candidate {
            finding: Phrase::with([&name], |[name]| {
                let time = units::time(time);
                format!("{name} use{s} no results of earlier runs ({option}), {time}")
            }),
            action: "leave the option out, unless a run from nothing is meant".into(),
            without: Without::work(below),
            cap: time,
            certainty: Certainty::UnlessMeant,
            evidence: groups,
            ..Candidate::of(AdviceKind::ColdCache)
        })
    };
    all.filter_map(candidate).collect()
}

/// Advice on Go's cache, which `go` cannot do without: if it compiles or checks packages of its standard library, the
/// cache lacked them for these options, because that library does not change. A build that does so twice begins from
/// nothing on purpose.
fn go_cache(facts: &BuildFacts<'_>) -> Option<Candidate> {
    const TOOLS: [&str; 4] = ["compile", "asm", "cgo", "vet"];
    let of_go = |execution: &Execution| {
        let is_tool = |tool: &&str| execution.program.has_verb("go", tool);
        TOOLS.iter().any(is_tool)
    };
    let tools: Vec<(Group, &Execution)> = facts
        .all()
        .filter(|(_, execution)| of_go(execution))
        .collect();
    let of_library = tools.iter().filter_map(|(group, execution)| {
        let exec = facts.exec(*group)?;
        let is_library = is_of_go_library(&facts.args(*group), &exec.directory);
        is_library.then_some((&execution.program, &exec.directory))
    });
    let of_library: Vec<_> = of_library.collect();
    let packages: BTreeSet<_> = of_library.iter().collect();
    let count = packages.len();
    if count < LIBRARY || of_library.len() * 2 > count * 3 {
        return None;
    }
    let time = tools.iter().map(|(_, execution)| execution.on_cpu);
    let time = time.fold(0, u64::saturating_add);
    let groups: Vec<Group> = tools.into_iter().map(|(group, _)| group).collect();
    Some(Candidate {
        finding: format!(
            "go's cache lacks {} of its standard library, which take {} of CPU time with the build's own",
            units::plural(count as u64, "package", "packages"),
            units::time(time)
        )
        .into(),
        action: "keep the cache from build to build (GOCACHE), unless a build from nothing is meant"
            .into(),
        without: Without::work(facts.set(groups.iter().copied())),
        cap: time,
        certainty: Certainty::UnlessMeant,
        evidence: groups,
        ..Candidate::of(AdviceKind::ColdCache)
    })
}

/// Whether an execution runs a compiler's cache such as ccache. A call through a link in a directory `ccache` counts,
/// too.
fn is_cache(facts: &BuildFacts<'_>, group: Group, execution: &Execution) -> bool {
    let file = facts.exec(group).map_or(&b""[..], |exec| &exec.filename);
    let mut parts = file.rsplit(|byte| *byte == b'/').skip(1);
    ["ccache", "sccache"]
        .iter()
        .any(|name| execution.program.is(name))
        || parts.next() == Some(b"ccache")
}

/// Advice on a compiler's cache in which no call found its result, for example because it was empty. The advice is
/// given if there are at least as many compilations as calls.
fn compiler_cache(facts: &BuildFacts<'_>) -> Option<Candidate> {
    let caches = facts
        .all()
        .filter(|(group, execution)| is_cache(facts, *group, execution));
    let caches: Vec<Group> = caches.map(|(group, _)| group).collect();
    if caches.len() < FILES {
        return None;
    }
    // A cache that lacks a result starts the compiler as a child, or replaces itself by the compiler.
    let below = facts.below(&caches);
    let own: BTreeSet<ProcessIx> = caches
        .iter()
        .filter_map(|group| Some(facts.execution(*group)?.process))
        .collect();
    let compilers = facts.all().filter(|(group, execution)| {
        let is_below =
            below.get(*group as usize) == Some(&true) || own.contains(&execution.process);
        let compiles = execution.program.role() == Some(Role::Compiler);
        is_below && compiles && execution.on_cpu >= LEAST_COMPILATION
    });
    let compilers: Vec<Group> = compilers.map(|(group, _)| group).collect();
    if compilers.len() < caches.len() {
        return None;
    }
    let set = facts.set(compilers.iter().copied());
    let time = facts.on_path(&set, |kind, _| kind == TimeKind::OnCpu);
    let files = units::count(caches.len() as u64);
    Some(Candidate {
        finding: format!(
            "the compiler's cache had no hit for {files} files, {}",
            units::time(time)
        )
        .into(),
        action: "keep its directory from build to build (CCACHE_DIR, SCCACHE_DIR)".into(),
        without: Without::work(set),
        cap: time,
        certainty: Certainty::Unsure,
        evidence: caches,
        ..Candidate::of(AdviceKind::ColdCache)
    })
}
