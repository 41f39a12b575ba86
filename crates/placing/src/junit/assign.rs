//! Assigns the suites of a report to processes. The tests of a suite alone often do not show which of several processes
//! ran the suite. But a process can run only one suite at a time, and this fact excludes many assignments.

use std::collections::BTreeSet;

use tr_analyze::model::ProcessIx;

/// The largest number of suites with more than one possible schedule (processes and times for the tests). If a report
/// has more such suites, no assignment of its suites to processes is searched. A bound of the work.
const OPEN_SUITES: usize = 16;

/// The largest number of schedules (processes and times for a suite's tests) that the search tries for the suites of a
/// report. A suite is tried again for each combination of the suites before it. A bound of the work.
const STEPS: usize = 20_000;

/// The largest number of claims ([`Claim`]) in all possible schedules of a report's suites together. With more claims,
/// the schedules are not compared. A bound of the work.
const TESTS: usize = 20_000;

/// The largest number of suites that are assigned to processes. A bound of the depth of the search.
const SUITES: usize = 512;

/// The possible assignments of a report's suites to schedules. A schedule says which processes ran the tests of a
/// suite, and when.
pub struct AssignedSuites {
    /// For each suite, the index of its schedule (processes and times for its tests) in the first possible assignment
    /// that was found.
    pub first: Vec<Option<usize>>,
    /// For each suite, the indexes of all schedules (processes and times for its tests) that the suite has in at least
    /// one possible assignment.
    pub of_suites: Vec<BTreeSet<usize>>,
}

/// Finds the combinations of schedules, one for each suite, in which no process runs two suites at once. `claims` has
/// an entry for each possible schedule of each suite: the stretches of time in which a process certainly ran a test of
/// the suite. `None` if no suite has several schedules, if no combination is possible, or if there are too many
/// combinations to try.
pub fn search(claims: &[Vec<Vec<Claim>>]) -> Option<AssignedSuites> {
    let open = claims.iter().filter(|schedules| schedules.len() > 1);
    let all = claims.iter().flatten().map(Vec::len);
    if !(1..=OPEN_SUITES).contains(&open.count()) || all.sum::<usize>() > TESTS {
        return None;
    }
    // The suites with the fewest possible schedules come first, so that impossible assignments are found early.
    let mut order: Vec<usize> = (0..claims.len()).collect();
    let count = |suite: usize| claims.get(suite).map_or(0, Vec::len);
    order.retain(|suite| count(*suite) > 0);
    order.sort_by_key(|suite| count(*suite));
    if order.len() > SUITES {
        return None;
    }
    let mut search = Search {
        claims,
        order: &order,
        taken: Vec::new(),
        first: None,
        found: vec![BTreeSet::new(); claims.len()],
        steps: STEPS,
    };
    search.assign(0)?;
    let mut first = vec![None; claims.len()];
    for (suite, number) in order.iter().zip(search.first?) {
        *first.get_mut(*suite)? = Some(number);
    }
    Some(AssignedSuites {
        first,
        of_suites: search.found,
    })
}

/// A process and a stretch of time in nanoseconds. In this stretch, the process certainly ran a test of the suite to
/// which the claim belongs.
pub type Claim = (ProcessIx, i64, i64);

/// Whether two schedules of suites need the same process at the same time. The lists `a` and `b` have the stretches
/// that each schedule needs, sorted by process and time.
fn conflict(a: &[Claim], b: &[Claim]) -> bool {
    let (mut a, mut b) = (a.iter().peekable(), b.iter().peekable());
    while let (Some(first), Some(second)) = (a.peek(), b.peek()) {
        let is_same = first.0 == second.0;
        if is_same && first.1 < second.2 && second.1 < first.2 {
            return true;
        }
        if (first.0, first.2) < (second.0, second.2) {
            a.next();
        } else {
            b.next();
        }
    }
    false
}

/// The state of the search through all assignments of suites to schedules (processes and times for a suite's tests).
struct Search<'a> {
    /// For each suite, and for each schedule that the suite can have, the stretches in which a process certainly ran a
    /// test of this suite.
    claims: &'a [Vec<Vec<Claim>>],
    /// The indexes of the suites, in the order in which the search gives each suite a schedule.
    order: &'a [usize],
    /// The indexes of the schedules that the search has given to the suites so far, in the order in which the search
    /// goes through the suites.
    taken: Vec<usize>,
    /// The indexes of the suites' schedules in the first possible assignment, in the order in which the search goes
    /// through the suites.
    first: Option<Vec<usize>>,
    /// For each suite, the indexes of the schedules that the suite has in the possible assignments found so far.
    found: Vec<BTreeSet<usize>>,
    /// The number of further schedules that the search may try before it gives up.
    steps: usize,
}

impl Search<'_> {
    /// Tries every schedule (processes and times for the tests) for the suite at position `at` of `order`, and then
    /// calls itself for the next suite. `None` if the search takes too many steps. The recursion is at most [`SUITES`]
    /// deep, because there is one level for each suite with a schedule.
    fn assign(&mut self, at: usize) -> Option<()> {
        let Some(suite) = self.order.get(at) else {
            for (suite, schedule) in self.order.iter().zip(&self.taken) {
                self.found.get_mut(*suite)?.insert(*schedule);
            }
            if self.first.is_none() {
                self.first = Some(self.taken.clone());
            }
            return Some(());
        };
        let all = self.claims.get(*suite)?;
        for (number, claims) in all.iter().enumerate() {
            self.steps = self.steps.checked_sub(1)?;
            let mut before = self.order.iter().zip(&self.taken);
            let is_free = before.all(|(suite, schedule)| {
                let other = self.claims.get(*suite).and_then(|all| all.get(*schedule));
                other.is_none_or(|other| !conflict(claims, other))
            });
            if is_free {
                self.taken.push(number);
                self.assign(at + 1)?;
                self.taken.pop();
            }
        }
        Some(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn claim(process: u32, from: i64, to: i64) -> Claim {
        (ProcessIx(process), from, to)
    }

    #[test]
    fn tests_of_one_process_at_one_time_conflict() {
        let a = [claim(1, 0, 10), claim(1, 20, 30), claim(2, 0, 50)];
        for (b, want) in [
            (vec![claim(1, 10, 20)], false),
            (vec![claim(1, 12, 21)], true),
            (vec![claim(0, 0, 99), claim(2, 49, 60)], true),
            (vec![claim(3, 0, 99)], false),
            (vec![], false),
        ] {
            assert_eq!(conflict(&a, &b), want, "{b:?}");
            assert_eq!(conflict(&b, &a), want, "{b:?}");
        }
    }

    /// Checks the search with two suites: the second suite can only have run in one process, so the first suite ran in
    /// the other process.
    #[test]
    fn a_suite_has_the_process_that_no_other_suite_needs() {
        let claims = vec![
            vec![vec![claim(1, 0, 10)], vec![claim(2, 0, 10)]],
            vec![vec![claim(2, 5, 15)]],
        ];
        let found = |claims: &[Vec<Vec<Claim>>], order: &[usize]| {
            let mut search = Search {
                claims,
                order,
                taken: Vec::new(),
                first: None,
                found: vec![BTreeSet::new(); claims.len()],
                steps: STEPS,
            };
            search.assign(0).map(|()| {
                let found = search.found.into_iter();
                found
                    .map(|found| found.into_iter().collect::<Vec<_>>())
                    .collect::<Vec<_>>()
            })
        };
        assert_eq!(found(&claims, &[1, 0]), Some(vec![vec![0], vec![0]]));
        // Both suites fit both processes, so no assignment is certain.
        let both = vec![claims.first().cloned().unwrap_or_default(); 2];
        assert_eq!(found(&both, &[0, 1]), Some(vec![vec![0, 1], vec![0, 1]]));
        let many: Vec<usize> = (0..20).collect();
        assert_eq!(found(&vec![vec![vec![], vec![]]; 20], &many), None);
    }
}
