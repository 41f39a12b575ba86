//! Turns the changes that a user requests for a forecast into changes of the simulated run.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

use regex::bytes::Regex;
use tr_analyze::kinds::TimeKind;
use tr_analyze::model::ProcessIx;
use tr_analyze::programs::Group;
use tr_analyze::schedule::{Change, Changes};
use tr_analyze::what_if::Without;

use super::forecast::{NoForecast, Wanted};
use super::shards::{by_cost, Costs};
use tr_advice::facts::BuildFacts;
use tr_insight::steps::{StepIx, Steps};
use tr_programs::steps::StepKind;

fn factor(by: f64) -> u64 {
    // A change is given as the time that remains, in thousandths of the original time.
    (1000.0 / by.max(0.001)).round().clamp(0.0, 1_000_000.0) as u64
}

/// The changes with which a forecast simulates the recorded run: work or waits that are left out or become shorter.
#[derive(Default)]
pub(super) struct ChangeSet {
    pub list: Vec<Change>,
    /// For each machine of a forecast, three sets of changes: for the best case, the likely case and the worst case.
    pub variants: Vec<[Changes; 3]>,
    /// The number of tests that a forecast divides among the machines.
    pub tests: usize,
}

/// The indices of the three cases of a forecast's changes: at best, probably, at worst.
const ALL_CASES: &[usize] = &[0, 1, 2];

impl ChangeSet {
    /// Adds a change of the simulated run to the list: of the work or waits that `time` describes, only `remains`
    /// thousandths of their length are left. Returns the bit that stands for the change.
    fn push(&mut self, time: Without, remains: u64) -> Changes {
        let bit: Changes = 1u32.checked_shl(self.list.len() as u32).unwrap_or(0);
        self.list.push(Change {
            time,
            remains: (remains, remains),
            jobs: Vec::new(),
        });
        bit
    }

    fn add(&mut self, time: Without, remains: u64, of: &[usize]) {
        let bit = self.push(time, remains);
        for set in self.variants.iter_mut() {
            for at in of {
                if let Some(set) = set.get_mut(*at) {
                    *set |= bit;
                }
            }
        }
    }

    /// Divides the recorded tests among the machines of a forecast: each machine leaves out the tests of the others.
    fn split(&mut self, facts: &BuildFacts<'_>, shards: u64) -> Result<(), NoForecast> {
        let tests = tests(facts);
        if tests.len() < 2 {
            return Err(NoForecast::NoTests);
        }
        self.tests = tests.len();
        let costs: Vec<u64> = tests.iter().map(|(cost, _)| *cost).collect();
        let parts = by_cost(&costs, shards);
        let all = self.variants.first().copied().unwrap_or_default();
        self.variants.clear();
        for part in 0..shards {
            let others = tests.iter().zip(&parts).filter(|(_, of)| **of != part);
            let others: Vec<Group> = others.flat_map(|(test, _)| test.1.clone()).collect();
            let bit = self.push(whole(facts.below(&others)), 0);
            self.variants.push(all.map(|set| set | bit));
        }
        Ok(())
    }
}

/// The recorded tests that have a process of their own and contain no other test, each with its cost in ns and the
/// executions of its process.
fn tests(facts: &BuildFacts<'_>) -> Vec<(u64, Vec<Group>)> {
    let steps = Steps::new(facts.analysis, &facts.recording.imports.spans);
    let costs = Costs::new(facts.recording, facts.path, &steps);
    let mut processes: BTreeMap<ProcessIx, StepIx> = BTreeMap::new();
    for (at, step) in steps.list().iter().enumerate() {
        if let Some(process) = step.process.filter(|_| step.kind == StepKind::Test) {
            // The outermost step of a process comes first in the list, so this step is kept, and not a later one.
            processes.entry(process).or_insert(at);
        }
    }
    let above = |ix: &_| facts.analysis.ancestors(*ix);
    let hold: BTreeSet<_> = processes.keys().flat_map(above).collect();
    processes.retain(|ix, _| facts.own.has(*ix) && !hold.contains(ix));
    let mut groups: BTreeMap<_, Vec<Group>> = BTreeMap::new();
    for (group, it) in facts.all() {
        if processes.contains_key(&it.process) {
            groups.entry(it.process).or_default().push(group);
        }
    }
    let cost = |ix| {
        let process = facts.analysis.process(ix);
        let at = processes.get(&ix).copied();
        // The cost of a process is the recorded cost of its test's step, if the step covers the whole process. A step
        // that began later than the process does not cover the process, which then ran several tests. In that case,
        // the cost is estimated from the life of the process and its descendants.
        let whole = at.filter(|at| {
            steps
                .list()
                .get(*at)
                .is_some_and(|step| step.from <= process.start)
        });
        let length = || costs.reported(process.tree.end.since(process.start), at, 1000);
        whole
            .and_then(|at| costs.recorded(at))
            .unwrap_or_else(length)
            .ns
    };
    groups
        .into_iter()
        .map(|(ix, groups)| (cost(ix), groups))
        .collect()
}

/// The changes that the user requests, in the form that the simulation of the recorded run needs.
pub(super) fn changes(facts: &BuildFacts<'_>, wanted: &Wanted) -> Result<ChangeSet, NoForecast> {
    let mut made = ChangeSet {
        variants: vec![[0; 3]],
        ..ChangeSet::default()
    };
    for (name, by) in &wanted.faster {
        let of = facts
            .all()
            .filter(|(_, it)| it.program.to_string() == *name)
            .map(|(group, _)| group);
        let of: Vec<Group> = of.collect();
        if of.is_empty() {
            return Err(NoForecast::NoMatch(format!("--faster {name}")));
        }
        made.add(Without::work(facts.set(of)), factor(*by), ALL_CASES);
    }
    for regex in &wanted.without {
        let of = matching(facts, regex, "--without")?;
        made.add(whole(facts.below(&of)), 0, ALL_CASES);
    }
    for (regex, share) in &wanted.cached {
        let mut of = matching(facts, regex, "--cached")?;
        let count = (of.len() as f64 * share).round() as usize;
        let every = spread(&of, count);
        // At best, the cache answers the longest executions; at worst, the shortest.
        of.sort_by_key(|group| Reverse(facts.process(*group).map_or(0, |process| process.wall())));
        let longest = of.get(..count).unwrap_or(&of);
        let shortest = of.get(of.len().saturating_sub(count)..).unwrap_or(&of);
        made.add(whole(facts.below(longest)), 0, &[0]);
        made.add(whole(facts.below(&every)), 0, &[1]);
        made.add(whole(facts.below(shortest)), 0, &[2]);
    }
    for (by, kind) in [
        (wanted.disk, TimeKind::Disk),
        (wanted.network, TimeKind::Network),
    ] {
        let Some(by) = by else { continue };
        let own = match kind {
            TimeKind::Disk => |kind, _| kind == TimeKind::Disk,
            _ => |kind, _| kind == TimeKind::Network,
        };
        let waits = |_, _| false;
        made.add(
            Without {
                own,
                waits,
                of: None,
            },
            factor(by),
            ALL_CASES,
        );
    }
    if let Some(shards) = wanted.shards {
        made.split(facts, shards)?;
    }
    Ok(made)
}

fn whole(of: Box<[bool]>) -> Without {
    Without {
        own: |_, _| true,
        waits: |_, _| true,
        of: Some(of),
    }
}

/// The recorded executions whose command lines match a regular expression of the user. A matching execution inside
/// another matching one is left out, because the outer one includes it. Returns an error if nothing matches. If the
/// recorded command itself matches, the result is also an error, because nothing would be left to forecast.
fn matching(facts: &BuildFacts<'_>, regex: &Regex, option: &str) -> Result<Vec<Group>, NoForecast> {
    let matches = |group: Group| {
        let line = facts.args(group).join(&b' ');
        regex.is_match(&line)
    };
    let all = facts.all().filter(|(group, _)| matches(*group));
    let all: Vec<(Group, _)> = all.map(|(group, it)| (group, it.process)).collect();
    let processes: BTreeSet<_> = all.iter().map(|(_, process)| *process).collect();
    let mut seen = BTreeSet::new();
    let outer = |process| {
        let mut above = facts.analysis.ancestors(process);
        !above.any(|ix| processes.contains(&ix))
    };
    let of: Vec<Group> = all
        .into_iter()
        .filter(|(_, process)| outer(*process) && seen.insert(*process))
        .map(|(group, _)| group)
        .collect();
    if of.is_empty() {
        return Err(NoForecast::NoMatch(format!("{option} {regex}")));
    }
    let mut all = facts.all();
    match all.find(|(_, it)| it.process == facts.path.process) {
        Some((first, _)) if of.contains(&first) => {
            Err(NoForecast::Nothing(format!("{option} {regex}")))
        }
        _ => Ok(of),
    }
}

/// Picks `count` of these executions, spread evenly over the list. A forecast assumes that a cache answers the picked
/// ones.
fn spread(of: &[Group], count: usize) -> Vec<Group> {
    let all = of.iter().enumerate();
    let chosen = all.filter(|(at, _)| (at + 1) * count / of.len() > at * count / of.len());
    chosen.map(|(_, group)| *group).collect()
}
