//! Determines from a graph of CI jobs which job waited for which. Also corrects the order of the jobs: because
//! machines' clocks differ, a job can seem to begin before the end of a job that it needs. Such a job is moved to that
//! end.

use std::collections::{BTreeMap, BTreeSet};

use super::{Graph, Job};
use tr_text::units;

/// The largest number of names of CI jobs that one warning lists.
const MOST_NAMED: usize = 5;

/// The name that a job has in the graph of jobs: its own name, with or without the added number, if the graph has it.
/// Otherwise the values of a matrix are cut off, which the CI system adds to a job's name (`test (slow)`): a job that
/// needs `test` needs the jobs with all values.
fn plain<'a>(job: &'a Job, graph: &Graph) -> &'a str {
    let one = job.shared_name();
    let known = [job.name.as_str(), one]
        .into_iter()
        .find(|known| graph.contains_key(*known));
    let job = known.or_else(|| one.split(" (").next());
    job.unwrap_or_default()
}

/// For each name of a job, its own and the one by `plain`, the indices of the jobs that have this name. Several
/// attempts of a job share a name, and so do the jobs of a matrix (one job with several sets of values).
fn by_name<'a>(jobs: &'a [Job], graph: &Graph) -> BTreeMap<&'a str, Vec<usize>> {
    let mut all: BTreeMap<&str, Vec<usize>> = BTreeMap::new();
    for (at, job) in jobs.iter().enumerate() {
        let names: BTreeSet<&str> = [job.name.as_str(), plain(job, graph)].into();
        for name in names {
            all.entry(name).or_default().push(at);
        }
    }
    all
}

/// Warnings about names in the graph of jobs that no job of the pipeline has, and about jobs of the pipeline that the
/// graph does not name.
pub(super) fn strangers(jobs: &[Job], graph: &Graph) -> Vec<String> {
    let there = by_name(jobs, graph);
    let named = graph
        .iter()
        .flat_map(|(job, needs)| needs.iter().chain([job]));
    let named: BTreeSet<&str> = named.map(String::as_str).collect();
    let absent: Vec<&str> = named
        .iter()
        .copied()
        .filter(|need| !there.contains_key(need))
        .collect();
    let others = jobs
        .iter()
        .filter(|job| !named.contains(job.name.as_str()) && !named.contains(plain(job, graph)));
    let others: Vec<&str> = others.map(|job| job.name.as_str()).collect();
    let list = |all: &[&str]| {
        let more = all.len().saturating_sub(MOST_NAMED);
        let more = if more > 0 {
            format!(" and {} more", units::count(more as u64))
        } else {
            String::new()
        };
        let names: Vec<&str> = all.iter().take(MOST_NAMED).copied().collect();
        names.join(", ") + &more
    };
    let mut said = Vec::new();
    if !absent.is_empty() {
        said.push(format!("the graph names no recording: {}", list(&absent)));
    }
    if !others.is_empty() {
        let (jobs, are) = (
            units::plural(others.len() as u64, "job", "jobs"),
            if others.len() == 1 { "is" } else { "are" },
        );
        said.push(format!("{jobs} {are} not in the graph: {}", list(&others)));
    }
    said
}

/// For each job, the indices of the jobs that it needs by the user's graph of jobs. By the clocks of the machines, a
/// needed job may have begun later than the job itself.
///
/// # Errors
/// A text that names a cycle in the graph.
pub(super) fn given(jobs: &[Job], graph: &Graph) -> Result<Vec<Vec<usize>>, String> {
    let names: BTreeMap<&str, usize> = graph.keys().map(String::as_str).zip(0..).collect();
    let place = |name: &String| names.get(name.as_str()).copied();
    let needs = graph.values().map(|needs| needs.iter().filter_map(place));
    let needs: Vec<BTreeSet<usize>> = needs.map(Iterator::collect).collect();
    let needs: Vec<Vec<usize>> = needs.into_iter().map(Vec::from_iter).collect();
    let needs: Vec<&[usize]> = needs.iter().map(Vec::as_slice).collect();
    if let Err(cycle) = sorted(&needs) {
        let cycle = cycle.iter().filter_map(|at| graph.keys().nth(*at));
        let cycle: Vec<&str> = cycle.map(String::as_str).collect();
        return Err(format!(
            "the job graph has a cycle: {}",
            cycle.join(" needs ")
        ));
    }
    let there = by_name(jobs, graph);
    Ok((0..jobs.len())
        .map(|at| needed(jobs, at, graph, &there))
        .collect())
}

/// For each job, the indices of the jobs that it needs by the graph of jobs. The list of jobs is ordered by time. A
/// needed job that comes later in this list than the job itself is left out.
pub(super) fn earlier(jobs: &[Job], graph: &Graph) -> Vec<Vec<usize>> {
    let there = by_name(jobs, graph);
    let needs = (0..jobs.len()).map(|at| {
        let mut needs = needed(jobs, at, graph, &there);
        needs.retain(|need| *need < at);
        needs
    });
    needs.collect()
}

/// The indices of the jobs that the job with the index `at` needs by the graph of CI jobs. A needed job that is not in
/// the list is replaced by the jobs that it needs itself.
fn needed(
    jobs: &[Job],
    at: usize,
    graph: &Graph,
    there: &BTreeMap<&str, Vec<usize>>,
) -> Vec<usize> {
    let Some(job) = jobs.get(at) else {
        return Vec::new();
    };
    let of = |name: &str| graph.get(name).into_iter().flatten().map(String::as_str);
    let mut open: Vec<&str> = of(plain(job, graph)).collect();
    let (mut seen, mut found) = (BTreeSet::new(), BTreeSet::new());
    while let Some(name) = open.pop() {
        if !seen.insert(name) {
            continue;
        }
        match there.get(name) {
            Some(all) => found.extend(begun(jobs, at, all)),
            None => open.extend(of(name)),
        }
    }
    found.into_iter().collect()
}

/// The indices in `all` of the jobs for which the job with the index `at` may have waited. A job that is earlier in the
/// list than `at` always counts. A later job counts only if some times do not come from the CI system's clock and no
/// other attempt of that later job comes before `at`.
fn begun(jobs: &[Job], at: usize, all: &[usize]) -> Vec<usize> {
    let by_ci = jobs.iter().all(|job| job.apart > 0);
    let name = |at: usize| jobs.get(at).map(Job::shared_name);
    let has_earlier = |candidate: usize| {
        all.iter()
            .any(|other| *other < at && name(*other) == name(candidate))
    };
    let all = all.iter().copied().filter(|other| *other != at);
    all.filter(|other| *other < at || !by_ci && !has_earlier(*other))
        .collect()
}

/// Sorts jobs so that each one comes after all jobs that it needs, and returns their indices. Of the jobs that can
/// come next, the one with the smallest index does.
///
/// # Errors
/// The indices of the jobs in a cycle; the first index is repeated at the end.
fn sorted(needs: &[&[usize]]) -> Result<Vec<usize>, Vec<usize>> {
    let mut users = vec![Vec::new(); needs.len()];
    for (at, needs) in needs.iter().enumerate() {
        for need in *needs {
            if let Some(users) = users.get_mut(*need) {
                users.push(at);
            }
        }
    }
    let mut left: Vec<usize> = needs.iter().map(|needs| needs.len()).collect();
    let free = left.iter().enumerate().filter(|(_, left)| **left == 0);
    let mut free: BTreeSet<usize> = free.map(|(at, _)| at).collect();
    let mut order = Vec::with_capacity(needs.len());
    while let Some(at) = free.pop_first() {
        order.push(at);
        for user in users.get(at).into_iter().flatten() {
            let Some(left) = left.get_mut(*user) else {
                continue;
            };
            *left -= 1;
            if *left == 0 {
                free.insert(*user);
            }
        }
    }
    let is_left = |at: &usize| left.get(*at).is_some_and(|left| *left > 0);
    let Some(first) = (0..needs.len()).find(is_left) else {
        return Ok(order);
    };
    let (mut cycle, mut next) = (Vec::new(), Some(first));
    while let Some(at) = next {
        if let Some(begin) = cycle.iter().position(|member| *member == at) {
            cycle.drain(..begin);
            cycle.push(at);
            break;
        }
        cycle.push(at);
        next = needs
            .get(at)
            .and_then(|needs| needs.iter().copied().find(is_left));
    }
    Err(cycle)
}

/// Sorts jobs so that each one comes after the jobs that it needs. By the clocks of their machines, a job may begin
/// before the end of a needed job. Then the job is moved to that end. The clocks must differ by at least the time from
/// the job's start to that end. Returns the largest such time in ns, and a sentence about it; `None` if no job was
/// moved.
pub(super) fn follow(jobs: &mut Vec<Job>) -> Option<(u64, String)> {
    let needs: Vec<&[usize]> = jobs.iter().map(|job| job.needs.as_slice()).collect();
    let order = sorted(&needs).unwrap_or_else(|_| {
        // The jobs need each other in a cycle, which can happen with the jobs of a matrix. So each job keeps only
        // those needed jobs that come earlier than itself in the list.
        for (at, job) in jobs.iter_mut().enumerate() {
            job.needs.retain(|need| *need < at);
        }
        (0..jobs.len()).collect()
    });
    let place: BTreeMap<usize, usize> = order.iter().copied().zip(0..).collect();
    let mut old: Vec<Option<Job>> = jobs.drain(..).map(Some).collect();
    let mut apart: Option<(u64, String)> = None;
    // The end of each job by the clock of the machine that ran the job, in ns since 1970.
    let mut ends: Vec<u64> = Vec::with_capacity(old.len());
    for at in &order {
        let Some(mut job) = old.get_mut(*at).and_then(Option::take) else {
            continue;
        };
        let needs = job.needs.iter();
        job.needs = needs.filter_map(|need| place.get(need).copied()).collect();
        let needs = job.needs.iter();
        let last = needs.filter_map(|need| Some((*ends.get(*need)?, *need)));
        let last = last.max();
        let by = last.map_or(0, |(end, _): (u64, usize)| end.saturating_sub(job.start));
        let before = last.and_then(|(_, need)| jobs.get(need));
        if let Some(before) = before.filter(|_| by > apart.as_ref().map_or(0, |widest| widest.0)) {
            let words = format!(
                "{} began {} before the end of {}, which it needs, by their clocks: it stands at that end",
                job.name,
                units::time(by),
                before.name
            );
            apart = Some((by, words));
        }
        ends.push(job.end);
        let needs = job.needs.iter();
        let least = needs.filter_map(|need| Some(jobs.get(*need)?.end)).max();
        let later = least.unwrap_or(0).saturating_sub(job.start);
        job.start = job.start.saturating_add(later);
        job.end = job.end.saturating_add(later);
        jobs.push(job);
    }
    apart
}
