//! Corrects the times of neighbouring tests and suites that overlap only a little: by no more than the errors of their
//! times.
//!
//! One process ran such tests one after the other. The tests only seem to overlap because the numbers of a report are
//! rounded. For example, a suite seems to end inside its last test, or a test inside the next test. Without this
//! correction, such tests and suites would get no figures (such as CPU time).

use std::collections::BTreeMap;
use std::ops::Range;

use tr_analyze::model::ProcessIx;
use tr_format::event::Ktime;

use super::proof::Guess;

/// Extends the suites of a report so that they contain their tests, and shortens tests and suites of one process so
/// that they do not overlap. A time changes by no more than the sum of the errors of the two times. Tests and suites
/// whose place is in doubt do not change.
pub fn separate(guesses: &mut [Guess]) {
    let mut tests: BTreeMap<ProcessIx, Vec<usize>> = BTreeMap::new();
    let mut suites: BTreeMap<ProcessIx, Vec<usize>> = BTreeMap::new();
    for (at, guess) in guesses.iter().enumerate() {
        if guess.span.doubt.is_none() {
            let of = if guess.is_suite {
                &mut suites
            } else {
                &mut tests
            };
            of.entry(guess.span.process).or_default().push(at);
        }
    }
    for mut order in tests.into_values() {
        in_turn(guesses, &mut order, |_| None);
    }
    let held = held(guesses);
    for (suite, tests) in &held {
        hold(guesses, *suite, tests.clone());
    }
    for mut order in suites.into_values() {
        let last = |suite: usize| held.get(&suite).cloned();
        in_turn(guesses, &mut order, last);
    }
}

/// For each suite, the range of its tests' indexes in `guesses`. The list `guesses` has the tests and suites that were
/// placed by their times. In this list, each suite is followed by its tests.
fn held(guesses: &[Guess]) -> BTreeMap<usize, Range<usize>> {
    let suites = guesses.iter().enumerate();
    let suites = suites.filter(|(_, guess)| guess.is_suite).map(|(at, _)| at);
    let suites: Vec<usize> = suites.collect();
    let ends = suites.iter().skip(1).copied().chain([guesses.len()]);
    let all = suites.iter().copied().zip(ends);
    all.map(|(suite, end)| (suite, suite + 1..end)).collect()
}

/// Extends a suite to the beginning of its first test and to the end of its last one, if the suite ends too early (or
/// begins too late) by no more than the sum of the two errors.
fn hold(guesses: &mut [Guess], suite: usize, tests: Range<usize>) {
    let Some(Guess { span, error, .. }) = guesses.get(suite) else {
        return;
    };
    if span.doubt.is_some() {
        return;
    }
    let (mut from, mut to, mut most) = (span.from, span.to, *error);
    for test in guesses.get(tests).unwrap_or_default() {
        if test.span.doubt.is_some() || test.span.process != span.process {
            continue;
        }
        let near = error.saturating_add(test.error).unsigned_abs();
        if test.span.from < from && span.from.since(test.span.from) <= near {
            from = test.span.from;
            most = most.max(test.error);
        }
        if test.span.to > to && test.span.to.since(span.to) <= near {
            to = test.span.to;
            most = most.max(test.error);
        }
    }
    if let Some(suite) = guesses.get_mut(suite) {
        set(suite, from, to, most);
    }
}

/// If two successive tests (or suites) overlap by no more than the sum of their errors, ends the earlier one where the
/// later one begins. `holds` returns the tests of a suite, because the suite must not end before its last test.
fn in_turn(
    guesses: &mut [Guess],
    order: &mut [usize],
    holds: impl Fn(usize) -> Option<Range<usize>>,
) {
    order.sort_by_key(|at| {
        guesses
            .get(*at)
            .map(|guess| (guess.span.from, guess.span.to))
    });
    for (before, after) in order.iter().zip(order.iter().skip(1)) {
        let (Some(first), Some(second)) = (guesses.get(*before), guesses.get(*after)) else {
            continue;
        };
        let crosses = second.span.from < first.span.to && first.span.to < second.span.to;
        let error = first.error.max(second.error);
        let by = first.span.to.since(second.span.from);
        let near = first.error.saturating_add(second.error).unsigned_abs();
        if !crosses || by > near {
            continue;
        }
        let tests = holds(*before).and_then(|tests| guesses.get(tests));
        let tests = tests.unwrap_or_default().iter();
        let own = tests
            .filter(|test| test.span.doubt.is_none() && test.span.process == first.span.process);
        let last = own.map(|test| test.span.to).max();
        let cut = last.map_or(second.span.from, |last| {
            last.clamp(second.span.from, first.span.to)
        });
        let (from, to) = (first.span.from, second.span.to);
        if let Some(first) = guesses.get_mut(*before) {
            set(first, from, cut, error);
        }
        if let Some(second) = guesses.get_mut(*after) {
            set(second, cut, to, error);
        }
    }
}

/// Moves a guess (a test or suite that was placed by its times) to another place, whose largest error in nanoseconds is
/// `error`.
fn set(guess: &mut Guess, from: Ktime, to: Ktime, error: i64) {
    if (guess.span.from, guess.span.to) != (from, to) {
        guess.span.from = from;
        guess.span.to = to;
        guess.error = error;
        guess.span.error = error.unsigned_abs();
    }
}

#[cfg(test)]
mod tests {
    use tr_analyze::model::{Doubt, ImportedKind};

    use super::*;
    use crate::lookup::imported;

    fn guess(is_suite: bool, from: u64, to: u64, error: i64) -> Guess {
        let at = (ProcessIx(0), (Ktime(from), Ktime(to)));
        let mut span = imported(ImportedKind::Test, b"x", at);
        span.error = error.unsigned_abs();
        Guess {
            span,
            error,
            own_stamp: true,
            is_suite,
            doubt: None,
            sure_runner: true,
            one_thread: true,
            is_test: true,
            is_even: false,
            is_far: false,
            anywhere: None,
            is_loose: false,
        }
    }

    fn places(guesses: &[Guess]) -> Vec<(u64, u64, u64)> {
        let place = |guess: &Guess| (guess.span.from.0, guess.span.to.0, guess.span.error);
        guesses.iter().map(place).collect()
    }

    /// Checks two suites with rounded times: the last test of the first suite seems to end after the first suite, and
    /// inside the second suite.
    #[test]
    fn neighbours_are_cut_within_their_errors() {
        let mut guesses = [
            guess(true, 100, 190, 20),
            guess(false, 100, 152, 5),
            guess(false, 150, 200, 8),
            guess(true, 188, 300, 20),
            guess(false, 198, 300, 6),
        ];
        separate(&mut guesses);
        let want = [
            (100, 198, 20),
            (100, 150, 8),
            (150, 198, 8),
            (198, 300, 20),
            (198, 300, 6),
        ];
        assert_eq!(places(&guesses), want);
    }

    /// Checks that an overlap stays if it is larger than the errors, or if the place of one test is in doubt.
    #[test]
    fn larger_overlaps_stay() {
        let mut guesses = [
            guess(false, 100, 200, 5),
            guess(false, 150, 300, 5),
            guess(false, 296, 400, 5),
        ];
        if let Some(last) = guesses.last_mut() {
            last.span.doubt = Some(Doubt::Runner);
        }
        let before = places(&guesses);
        separate(&mut guesses);
        assert_eq!(places(&guesses), before);
    }
}
