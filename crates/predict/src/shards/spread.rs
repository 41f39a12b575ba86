//! Divides tests among machines by their costs, and gives each machine an equal part of the tests that are alike.
//!
//! The cost of a test was measured in a run of all tests. Among fewer tests it can be lower or higher: a full garbage
//! collection takes longer, the larger the heap of all tests is, and the first test that needs a cache fills it. Tests
//! that are alike change alike, so machines stay equal if each has its part of them.

use std::cmp::Reverse;
use std::collections::{BTreeSet, HashMap};

use super::Test;

/// The properties of a test by which it is like others: its function, and its file or class.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TestKind<'a> {
    /// The name of the test's function. The name is the same for tests of this function with other parameters or in
    /// other classes.
    function: &'a str,
    /// The file or the class of the test.
    place: &'a str,
}

impl<'a> TestKind<'a> {
    /// The kind of a test, from the id by which its test runner calls it. pytest puts the parameters of a function into
    /// brackets after its name, and `::` before the name.
    pub fn of(test: &'a Test) -> TestKind<'a> {
        let plain = test
            .id
            .split_once('[')
            .map_or(&*test.id, |(plain, _)| plain);
        TestKind {
            function: plain.rsplit("::").next().unwrap_or(plain),
            place: test.file.as_deref().unwrap_or(&test.class),
        }
    }
}

/// The costs of the units (tests, or files of tests) that are assigned to one machine so far.
#[derive(Default)]
struct Part<'a> {
    cost: u64,
    /// For each function of tests, the cost in ns of those units (tests, or files of tests) on this machine that are
    /// tests of this function.
    functions: HashMap<&'a str, u64>,
    /// For each file or class of tests, the cost in ns of those units (tests, or files of tests) on this machine that
    /// belong to it.
    places: HashMap<&'a str, u64>,
}

/// Returns for each unit (a test or a file of tests) the number of the machine on which it runs. `kinds` has the kind
/// of each unit; the list `kinds` is empty if units cannot be alike.
/// Two plans are made: one by the costs alone, and one that also spreads the units of each kind evenly. The even plan
/// is used if its costliest machine costs at most 1 % more than the costliest machine of the other plan.
pub fn divide(costs: &[u64], kinds: &[TestKind<'_>], shards: u64) -> Vec<u64> {
    let plain = by_cost(costs, shards);
    if kinds.len() != costs.len() {
        return plain;
    }
    let alike = by_kind(costs, kinds, shards);
    let bound = most(costs, &plain, shards);
    if most(costs, &alike, shards) <= bound.saturating_add(bound / 100) {
        alike
    } else {
        plain
    }
}

/// The cost of the costliest machine in a plan.
fn most(costs: &[u64], parts: &[u64], shards: u64) -> u64 {
    let sum = |shard| {
        let units = costs.iter().zip(parts);
        let own = units.filter(|(_, part)| **part == shard);
        own.fold(0_u64, |sum, (cost, _)| sum.saturating_add(*cost))
    };
    (0..shards).map(sum).max().unwrap_or(0)
}

/// The indices of the units (tests, or files of tests) in the order of their costs, highest cost first.
fn costliest_first(costs: &[u64]) -> Vec<usize> {
    let mut order: Vec<usize> = (0..costs.len()).collect();
    order.sort_unstable_by_key(|at| (Reverse(costs.get(*at).copied()), *at));
    order
}

/// Assigns units (tests, or files of tests) to machines, the costliest unit first: each unit goes to the machine with
/// the lowest cost so far. Returns the number of the machine for each unit.
pub fn by_cost(costs: &[u64], shards: u64) -> Vec<u64> {
    let mut loads: BTreeSet<(u64, u64)> = (0..shards).map(|part| (0, part)).collect();
    let mut parts = vec![0; costs.len()];
    for at in costliest_first(costs) {
        let cost = costs.get(at).copied().unwrap_or(0);
        if let (Some((load, part)), Some(of)) = (loads.pop_first(), parts.get_mut(at)) {
            *of = part;
            // A test or a file of tests without cost counts as 1 ns, so that such tests are spread over the machines,
            // too.
            loads.insert((load.saturating_add(cost.max(1)), part));
        }
    }
    parts
}

/// Assigns units (tests, or files of tests) to machines, the costliest unit first. A machine cannot get a unit if the
/// machine's cost so far is higher than the cost of the cheapest machine plus the cost of the unit. Of the other
/// machines, the unit goes to the one on which tests of its function have cost the least so far; if several machines
/// are equal, the cost of tests of its file or class decides.
fn by_kind(costs: &[u64], kinds: &[TestKind<'_>], shards: u64) -> Vec<u64> {
    let mut loads: Vec<Part<'_>> = (0..shards).map(|_| Part::default()).collect();
    let mut parts = vec![0; costs.len()];
    for at in costliest_first(costs) {
        let (Some(cost), Some(kind)) = (costs.get(at), kinds.get(at)) else {
            continue;
        };
        let cost = (*cost).max(1);
        let least = loads.iter().map(|part| part.cost).min().unwrap_or(0);
        let of = |costs: &HashMap<&str, u64>, name| costs.get(name).copied().unwrap_or(0);
        let candidates = (0_u64..).zip(&mut loads);
        let candidates = candidates.filter(|(_, part)| part.cost - least <= cost);
        let best = candidates.min_by_key(|(number, part)| {
            let function = of(&part.functions, kind.function);
            (function, of(&part.places, kind.place), part.cost, *number)
        });
        if let (Some((number, part)), Some(to)) = (best, parts.get_mut(at)) {
            *to = number;
            part.cost = part.cost.saturating_add(cost);
            for sum in [
                part.functions.entry(kind.function),
                part.places.entry(kind.place),
            ] {
                let sum = sum.or_default();
                *sum = sum.saturating_add(cost);
            }
        }
    }
    parts
}

#[cfg(test)]
#[allow(clippy::unwrap_used, clippy::indexing_slicing)]
mod tests {
    use super::*;

    #[test]
    fn the_costliest_are_split_first() {
        assert_eq!(by_cost(&[3, 5, 3, 4, 0], 2), [1, 0, 0, 1, 1]);
        assert_eq!(by_cost(&[3, 5], 3), [1, 0]);
        assert_eq!(by_cost(&[], 2), [0; 0]);
        // Tests without any cost are not all assigned to one machine.
        assert_eq!(by_cost(&[0, 0, 0, 0], 2), [0, 1, 0, 1]);
    }

    fn kind(function: &'static str, place: &'static str) -> TestKind<'static> {
        TestKind { function, place }
    }

    #[test]
    fn each_shard_has_its_part_of_tests_that_are_alike() {
        // By costs alone, both tests named `leak` would run on one machine.
        let costs = [100, 99, 98, 97, 5, 5, 4, 1];
        let other = |place| kind("other", place);
        let leak = |place| kind("leak", place);
        let kinds = [
            leak("a"),
            other("a"),
            other("b"),
            leak("b"),
            other("a"),
            other("b"),
            other("a"),
            other("b"),
        ];
        let leaks = |parts: &[u64]| (parts[0], parts[3]);
        assert_eq!(leaks(&by_cost(&costs, 2)), (0, 0));
        let parts = divide(&costs, &kinds, 2);
        assert_eq!(leaks(&parts), (0, 1));
        let sums = [0, 1].map(|shard| {
            let own = costs.iter().zip(&parts).filter(|(_, part)| **part == shard);
            own.map(|(cost, _)| cost).sum::<u64>()
        });
        assert!(sums[0].abs_diff(sums[1]) <= 5, "{sums:?}");
    }

    #[test]
    fn tests_that_are_alike_never_make_the_longest_shard_longer() {
        // Whether or not the two tests of kind `a` run on different machines, one machine has a cost of 120 and the
        // other of 60.
        let costs = [60, 60, 60];
        let kinds = [kind("a", ""), kind("b", ""), kind("a", "")];
        assert_eq!(most(&costs, &divide(&costs, &kinds, 2), 2), 120);
        let costs = [7, 5, 4, 4];
        let kinds = [kind("a", ""), kind("b", ""), kind("a", ""), kind("b", "")];
        let bound = most(&costs, &by_cost(&costs, 2), 2);
        assert_eq!(most(&costs, &divide(&costs, &kinds, 2), 2), bound);
    }

    #[test]
    fn parameters_and_classes_do_not_make_a_function_another() {
        let of = |id: &str| {
            let test = Test {
                id: id.to_owned(),
                class: "c".into(),
                file: None,
                cost: super::super::Cost::reported(1, 1),
            };
            let kind = TestKind::of(&test);
            (kind.function.to_owned(), kind.place.to_owned())
        };
        let expected = ("test_leak".to_owned(), "c".to_owned());
        assert_eq!(of("a/test_b.py::TestC::test_leak[x::y]"), expected);
        assert_eq!(of("a/test_d.py::test_leak"), expected);
    }
}
