//! Work on the critical path.

use std::collections::BTreeMap;

use tr_analyze::critical_path::Kind as Time;
use tr_analyze::programs::Group;
use tr_analyze::what_if::Without;
use tr_format::event::Reason;

use super::facts::Facts;
use super::programs::{self, Part};
use super::{Candidate, Kind};
use crate::diff::normal::{argument, Paths};
use crate::units;

/// One task alone matters from this share of the wall time on: a tenth. Every build has
/// shorter ones.
const ALONE: u64 = 10;
/// The least number of executions of a short program, and the longest mean of their
/// wall times, in ns.
const SHORT: (usize, u64) = (100, 20_000_000);
/// The least CPU time of a repeated execution, in ns.
const REPEATED: u64 = 20_000_000;

pub(super) fn candidates(facts: &Facts<'_>) -> Vec<Candidate> {
    let mut all: Vec<Candidate> = linkers(facts).into_iter().collect();
    all.extend(phase(facts, Part::Configure, Kind::Configure));
    all.extend(phase(facts, Part::Install, Kind::Install));
    all.extend(alone(facts));
    all.extend(repeated(facts));
    all.extend(short(facts));
    all
}

fn on_cpu(kind: Time, _: Reason) -> bool {
    kind == Time::OnCpu
}

/// All time of a set of executions.
fn everything(of: Box<[bool]>) -> Without {
    Without {
        own: |_, _| true,
        waits: |_, _| false,
        of: Some(of),
    }
}

/// The linkers on the path.
fn linkers(facts: &Facts<'_>) -> Option<Candidate> {
    let linkers = facts
        .all()
        .filter(|(_, it)| programs::part(&it.program) == Some(Part::Linker));
    let mut linkers: Vec<(u64, Group)> = linkers
        .map(|(group, _)| (facts.on_path(&facts.set([group]), on_cpu), group))
        .filter(|(time, _)| *time > 0)
        .collect();
    linkers.sort_by_key(|(time, group)| (std::cmp::Reverse(*time), *group));
    let sum: u64 = linkers.iter().map(|(time, _)| time).sum();
    let (_, longest) = linkers.first()?;
    let known = programs::known(&facts.execution(*longest)?.program)?;
    let name = facts.label(*longest);
    let evidence: Vec<Group> = linkers.iter().map(|(_, group)| *group).collect();
    let finding = match evidence.len() {
        1 => format!("{name} links for {}", units::time(sum)),
        n => format!("{} and {} more link for {}", name, n - 1, units::time(sum)),
    };
    Some(Candidate {
        kind: Kind::Link,
        finding,
        action: known.action.into(),
        without: Without::work(facts.set(evidence.iter().copied())),
        cap: sum,
        evidence,
    })
}

/// A program that does a phase of the build with all its descendants, by program.
fn phase(facts: &Facts<'_>, part: Part, kind: Kind) -> Vec<Candidate> {
    let is_phase = |group: Group| {
        let program = facts.execution(group).map(|it| it.program.as_str());
        program.and_then(programs::part) == Some(part)
    };
    let mut by_program: BTreeMap<&str, Vec<Group>> = BTreeMap::new();
    for (group, it) in facts.all().filter(|(group, _)| is_phase(*group)) {
        // A phase inside another one, such as config.status inside configure, is its part.
        if !ancestors(facts, group).any(is_phase) {
            by_program.entry(&it.program).or_default().push(group);
        }
    }
    let candidate = |(program, roots): (&str, Vec<Group>)| {
        let below = facts.below(&roots);
        let time = facts.on_path(&below, |_, _| true);
        let known = programs::known(program)?;
        let name = match roots.as_slice() {
            [one] => facts.label(*one),
            many => format!("{} × {program}", many.len()),
        };
        let name = units::shorten(&name, 40);
        Some(Candidate {
            kind,
            finding: format!("{name} takes {}", units::time(time)),
            action: known.action.into(),
            without: everything(below),
            cap: time,
            evidence: roots,
        })
    };
    by_program.into_iter().filter_map(candidate).collect()
}

/// The executions that a process came from.
fn ancestors<'f>(facts: &'f Facts<'_>, group: Group) -> impl Iterator<Item = Group> + 'f {
    let owner = move |group: &Group| facts.execution(*group)?.owner;
    // A cycle, which only a damaged trace has, ends here.
    std::iter::successors(owner(&group), owner).take(1000)
}

/// Single executions that run alone on the path.
fn alone(facts: &Facts<'_>) -> Vec<Candidate> {
    let candidate = |(group, it): (Group, &super::facts::Execution)| {
        let alone = facts.alone(group);
        if alone.saturating_mul(ALONE) < facts.wall {
            return None;
        }
        let set = facts.set([group]);
        let cap = facts.on_path(&set, on_cpu).min(alone);
        let name = units::shorten(&facts.label(group), 40);
        let part = programs::part(&it.program);
        let (kind, finding, action, cap) = match starts_last(facts, group) {
            Some((at, gain)) if part == Some(Part::Compiler) => (
                Kind::Last,
                format!("{name}, the longest, starts {} late", units::time(at)),
                "start it first, or split it",
                gain.min(cap),
            ),
            _ => (
                Kind::Alone,
                format!("{name} runs alone for {}", units::time(alone)),
                match part {
                    Some(Part::Compiler) => "split it, or start it earlier",
                    Some(Part::Shell) => "do less in the shell",
                    _ => "split it, or keep its result",
                },
                cap,
            ),
        };
        Some(Candidate {
            kind,
            finding,
            action: action.into(),
            without: Without::work(set),
            cap,
            evidence: vec![group],
        })
    };
    facts.all().filter_map(candidate).collect()
}

/// Of a job that is the longest of its program and ends last: the time from the first one's
/// start to its own, and the most that another order saves. The jobs take the longest one's
/// time at least, and their CPU time divided among the CPUs.
fn starts_last(facts: &Facts<'_>, group: Group) -> Option<(u64, u64)> {
    let own = facts.execution(group)?;
    let others = facts
        .all()
        .filter(|(other, it)| *other != group && it.program == own.program);
    let others: Vec<(Group, &super::facts::Execution)> = others.collect();
    let length = |it: &super::facts::Execution| it.end.since(it.start);
    let first = others.iter().map(|(_, it)| it.start).min()?;
    let longest = others.iter().map(|(_, it)| length(it)).max()?;
    let last = others.iter().map(|(_, it)| it.end).max()?;
    if others.len() < 2 || length(own) < longest || own.end < last || own.start <= first {
        return None;
    }
    let cpu = |group: Group| facts.exec(group).map_or(0, |exec| exec.times.on_cpu);
    let groups = others.iter().map(|(group, _)| *group).chain([group]);
    let work: u64 = groups.map(cpu).fold(0, u64::saturating_add);
    let least = (work / facts.cpus).max(length(own));
    Some((
        own.start.since(first),
        own.end.since(first).saturating_sub(least),
    ))
}

/// Equal executions with about the same CPU time. Each one but the first repeats work.
fn repeated(facts: &Facts<'_>) -> Vec<Candidate> {
    let cwd = String::from_utf8_lossy(&facts.analysis.meta.cwd);
    let mut equal: BTreeMap<(String, Vec<String>), Vec<(Group, u64)>> = BTreeMap::new();
    for (group, it) in facts.all() {
        let Some(exec) = facts.exec(group) else {
            continue;
        };
        let part = programs::part(&it.program);
        let starts_others = matches!(part, Some(Part::Shell | Part::Jobs | Part::Tests));
        let whole =
            exec.argv.full_len == Some(exec.argv.args().map(|arg| arg.len() as u32 + 1).sum());
        if exec.times.on_cpu < REPEATED || starts_others || !exec.ended || !whole {
            continue;
        }
        let args = facts.args(group).into_iter();
        let args: Vec<String> = args
            .map(|arg| argument(arg, &cwd, &[], Paths::Whole))
            .collect();
        // A configure script overwrites the same file for each test.
        if args.iter().any(|arg| arg.contains("conftest")) || args.len() < 2 {
            continue;
        }
        let key = (it.program.clone(), args);
        equal
            .entry(key)
            .or_default()
            .push((group, exec.times.on_cpu));
    }
    let mut by_program: BTreeMap<String, (Vec<Group>, u64)> = BTreeMap::new();
    for ((program, _), all) in equal {
        let Some(((_, first), again)) = all.split_first() else {
            continue;
        };
        // Another CPU time is other work: the files may differ.
        let alike = again.iter().filter(|(_, cpu)| {
            cpu.saturating_mul(4) <= first.saturating_mul(5)
                && first.saturating_mul(4) <= cpu.saturating_mul(5)
        });
        let (groups, sum) = by_program.entry(program).or_default();
        for (group, cpu) in alike {
            groups.push(*group);
            *sum = sum.saturating_add(*cpu);
        }
    }
    let candidate = |(program, (groups, sum)): (String, (Vec<Group>, u64))| {
        let first = groups.first()?;
        let compiler = programs::part(&program) == Some(Part::Compiler);
        let name = units::shorten(&facts.label(*first), 30);
        let more = match groups.len() - 1 {
            0 => String::new(),
            n => format!(" and {n} more"),
        };
        Some(Candidate {
            kind: Kind::Repeated,
            finding: format!("{name}{more} repeat {} of CPU", units::time(sum)),
            action: match compiler {
                true => "use a compiler cache (ccache, sccache)".into(),
                false => "do it once and keep the result".into(),
            },
            without: Without::work(facts.set(groups.iter().copied())),
            cap: sum,
            evidence: groups,
        })
    };
    by_program.into_iter().filter_map(candidate).collect()
}

/// Many executions of a short program by one process.
fn short(facts: &Facts<'_>) -> Vec<Candidate> {
    let mut by_owner: BTreeMap<(Group, &str), Vec<Group>> = BTreeMap::new();
    for (group, it) in facts.all() {
        if let Some(owner) = it.owner {
            by_owner
                .entry((owner, &it.program))
                .or_default()
                .push(group);
        }
    }
    let candidate = |((owner, program), groups): ((Group, &str), Vec<Group>)| {
        let (least, longest) = SHORT;
        let lengths = groups.iter().filter_map(|group| facts.process(*group));
        let sum: u64 = lengths
            .map(|process| process.end.since(process.start))
            .sum();
        let count = groups.len() as u64;
        let sleeps = program == "sleep";
        if groups.len() < least || sum / count > longest || sleeps {
            return None;
        }
        let set = facts.set(groups.iter().copied());
        let time = facts.on_path(&set, |_, _| true);
        let name = units::shorten(&facts.label(owner), 24);
        Some(Candidate {
            kind: Kind::Short,
            finding: format!(
                "{name} starts {program} {} times, {} each",
                units::count(count),
                units::time(sum / count)
            ),
            action: "do it in one program".into(),
            without: everything(set),
            cap: time,
            evidence: groups,
        })
    };
    by_owner.into_iter().filter_map(candidate).collect()
}
