//! Finds the time in which each suite of a JUnit report ran, and the work of the recorded build in that time.
//!
//! A suite's length contains the waits for a CPU that other tasks caused, and the build is not equally busy at all
//! times. The work of the build while the suite ran is therefore taken as the cost of the suite. The times in many
//! reports are whole seconds (jest-junit). If the suites ran one after the other, their lengths narrow these times
//! further.

use tr_analyze::share;
use tr_format::event::Ktime;
use tr_placing::junit::Suite;

/// The time of a suite of tests in the recording, as far as its JUnit report shows it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Place {
    /// The earliest time at which the suite of tests can have begun.
    pub from: Ktime,
    /// The uncertainty of `from` in ns: the suite of tests began at most this long after `from`. The uncertainty is one
    /// unit of the last digit of the reported time.
    pub digit: u64,
    /// The reported length of the suite of tests in ns.
    pub length: u64,
    /// The sum of the reported lengths of the suite's tests in ns, limited to `length`.
    pub tests: u64,
}

/// The work of the recorded build for one suite of tests: its CPU time and waits in ns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Work {
    /// The part of the suite's work (CPU time and waits) in ns that falls to its tests, by their share of the suite's
    /// length.
    pub tests: u64,
    /// The part of the suite's work (CPU time and waits) in ns outside of its tests: the loading of files, without the
    /// start of the runner's process.
    pub rest: u64,
}

/// The work of the recorded build for all suites of a JUnit report, and the work of the runner before and between them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Works {
    /// The work of each suite, in the order of the report; `None` for suites whose time is not known.
    pub list: Vec<Option<Work>>,
    /// The runner's work (CPU time and waits) in ns between suites, divided by the number of suites with a known time.
    pub between: u64,
    /// The work (CPU time and waits) in ns that all first suites of the runner's processes together have in addition
    /// to the median work of later suites. This additional work is the start of the processes.
    pub start: u64,
    /// The time of the first suite's beginning and of the last suite's end; `None` if the times of the suites are not
    /// known.
    pub span: Option<(u64, u64)>,
}

impl Place {
    /// The time of a suite of tests whose beginning is at `from` in the recording; `None` if the report does not give
    /// its time and length.
    pub fn new(suite: &Suite, from: Ktime) -> Option<Place> {
        let length = u64::try_from(suite.attributes.length?).ok()?;
        Some(Place {
            from,
            digit: u64::try_from(suite.attributes.at?.digit).ok()?,
            length,
            tests: suite.sum().unsigned_abs().min(length),
        })
    }
}

/// The beginning and the end of each suite of tests. A report rounds a suite's beginning down, for example to whole
/// seconds.
///
/// If the suites can have run one after the other, this limits when each of them began. Each is then placed in the
/// middle of its possible beginnings. Otherwise, each is placed in the middle of its rounding interval. Returns `None`
/// if the suites cannot have run one after the other and all have the same time. Such a time is the time of the whole
/// report, as in Playwright's reports.
fn windows(places: &[Place]) -> Option<Vec<(u64, u64)>> {
    let mut earliest: Vec<u64> = Vec::with_capacity(places.len());
    let mut end = 0;
    for place in places {
        let from = place.from.0.max(end);
        end = from.saturating_add(place.length);
        earliest.push(from);
    }
    let mut latest: Vec<u64> = Vec::with_capacity(places.len());
    let mut next = u64::MAX;
    for place in places.iter().rev() {
        let own = place.from.0.saturating_add(place.digit);
        next = own.min(next.saturating_sub(place.length));
        latest.push(next);
    }
    latest.reverse();
    let follow = earliest.iter().zip(&latest).all(|(from, to)| from <= to);
    let has_one_time =
        places.first().map(|place| place.from) == places.last().map(|place| place.from);
    if !follow && has_one_time && places.len() > 1 {
        return None;
    }
    let bounds = earliest.iter().zip(&latest);
    let begins = places.iter().zip(bounds).map(|(place, (from, to))| {
        if follow {
            from.midpoint(*to)
        } else {
            place.from.0.saturating_add(place.digit / 2)
        }
    });
    let windows = begins.zip(places);
    let windows = windows.map(|(begin, place)| (begin, begin.saturating_add(place.length)));
    Some(windows.collect())
}

/// The work of the build in each of these windows of time, in ns. If several windows are open at once, the work at that
/// time is divided evenly between them. `until` returns the work of the build up to a time.
fn divided(windows: &[(u64, u64)], until: impl Fn(u64) -> u64) -> Vec<u64> {
    let begins = windows.iter().map(|(from, _)| (*from, 1_i64));
    let ends = windows.iter().map(|(_, to)| (*to, -1_i64));
    let mut changes: Vec<(u64, i64)> = begins.chain(ends).collect();
    changes.sort_unstable();
    // A window is a span of time. For each time at which a window begins or ends, `sums` has the work that a single
    // window would have got if it had been open from the start up to this time. The work of a window is the difference
    // between the sums at its end and at its beginning.
    let mut sums: Vec<(u64, u64)> = Vec::with_capacity(changes.len());
    let (mut open, mut sum, mut before) = (0_i64, 0_u64, None);
    for (time, change) in changes {
        let now = until(time);
        if let (Some(before), Ok(open @ 1..)) = (before, u64::try_from(open)) {
            sum = sum.saturating_add(now.saturating_sub(before) / open);
        }
        sums.push((time, sum));
        before = Some(now);
        open += change;
    }
    let sum_at = |time: u64| {
        let after = sums.partition_point(|(at, _)| *at <= time);
        let last = after.checked_sub(1).and_then(|at| sums.get(at));
        last.map_or(0, |(_, sum)| *sum)
    };
    let windows = windows.iter();
    windows
        .map(|(from, to)| sum_at(*to).saturating_sub(sum_at(*from)))
        .collect()
}

/// The work (CPU time and waits in ns) of the recorded build for each suite of a report, in the order of the report.
/// `places` has the time at which each suite ran. `until` returns the work of the build up to a time in ns.
///
/// The first suite of each runner process contains the start of this process, which loads the runner's modules and
/// compilers. Each machine that runs tests has such a start, so it is not part of the suite's own cost. Suites that
/// began before any suite ended are taken for first suites. If one of them has more work outside of its tests than
/// every later suite, that work is replaced by the median of the later suites.
pub fn works(places: &[Option<Place>], until: impl Fn(u64) -> u64) -> Works {
    let mut known: Vec<(Place, usize)> = (0..)
        .zip(places)
        .filter_map(|(at, place)| Some(((*place)?, at)))
        .collect();
    known.sort_unstable_by_key(|(place, at)| (place.from, *at));
    let sorted: Vec<Place> = known.iter().map(|(place, _)| *place).collect();
    let mut list = vec![None; places.len()];
    let Some(windows) = windows(&sorted) else {
        return Works {
            list,
            ..Works::default()
        };
    };
    let inside = divided(&windows, &until);
    let works = sorted.iter().zip(&inside).map(|(place, work)| {
        let tests = share(*work, place.tests, place.length.max(1));
        Work {
            tests,
            rest: work.saturating_sub(tests),
        }
    });
    let mut works: Vec<Work> = works.collect();
    let first_end = windows.iter().map(|(_, to)| *to).min().unwrap_or(0);
    let is_first = |(from, _): &(u64, u64)| *from < first_end;
    let later = works.iter().zip(&windows);
    let later = later.filter(|(_, window)| !is_first(window));
    let mut later: Vec<u64> = later.map(|(work, _)| work.rest).collect();
    later.sort_unstable();
    let mut start = 0_u64;
    if let (Some(most), Some(median)) = (later.last(), later.get(later.len() / 2)) {
        let firsts = works.iter_mut().zip(&windows);
        for (work, _) in firsts.filter(|(_, window)| is_first(window)) {
            if work.rest > *most {
                start = start.saturating_add(work.rest - *median);
                work.rest = *median;
            }
        }
    }
    let from = windows.iter().map(|(from, _)| *from).min();
    let to = windows.iter().map(|(_, to)| *to).max();
    let span = from.zip(to);
    let all = span.map_or(0, |(from, to)| until(to).saturating_sub(until(from)));
    let sum = inside
        .iter()
        .fold(0_u64, |sum, work| sum.saturating_add(*work));
    for ((_, at), work) in known.iter().zip(works) {
        if let Some(of) = list.get_mut(*at) {
            *of = Some(work);
        }
    }
    Works {
        list,
        between: all.saturating_sub(sum) / (known.len() as u64).max(1),
        start,
        span,
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::indexing_slicing)]
    use super::*;

    const S: u64 = 1_000_000_000;
    const MS: u64 = 1_000_000;

    fn place(from: u64, length: u64, tests: u64) -> Place {
        Place {
            from: Ktime(from),
            digit: S,
            length,
            tests,
        }
    }

    /// The suites run as `0 AAAA 1.2 BBBB 1.7 C 1.8 … 2 DDDD 3.1` in seconds, but the clock of the report has whole
    /// seconds.
    #[test]
    fn lengths_bound_the_times_of_suites_that_follow_each_other() {
        let places = [
            place(0, 1200 * MS, 0),
            place(S, 500 * MS, 0),
            place(S, 100 * MS, 0),
            place(2 * S, 1100 * MS, 0),
        ];
        let found = windows(&places).unwrap();
        // The suite C began before 2 s. The suites A and B took 1.7 s together and ended before C began. So A began
        // between 0 and 0.3 s.
        assert!(
            found.windows(2).all(|two| two[0].1 <= two[1].0),
            "{found:?}"
        );
        assert!(
            found[1].0 >= 1200 * MS && found[2].1 <= 2100 * MS,
            "{found:?}"
        );
        // However the reported times of these two suites were rounded, the suites overlap. So the suites cannot have
        // run one after the other.
        let both = [place(0, 5 * S, 0), place(S, 5 * S, 0)];
        let found = windows(&both).unwrap();
        assert_eq!(
            found,
            [(S / 2, S / 2 + 5 * S), (3 * S / 2, 3 * S / 2 + 5 * S)]
        );
    }

    #[test]
    fn the_time_of_the_report_is_no_suites() {
        let one = place(0, 5 * S, 0);
        assert_eq!(windows(&[one, one]), None);
        let found = works(&[Some(one), Some(one)], |time| time);
        assert_eq!(found.list, [None, None]);
        // Two suites of 100 ms each fit into one second, one after the other.
        let short = place(0, S / 10, 0);
        assert!(windows(&[short, short]).is_some());
    }

    #[test]
    fn suites_at_the_same_time_share_the_work() {
        // The first window is open for 1 s alone, then both windows are open for 1 s, then the second window is open
        // for 1 s alone. One CPU is in use all the time.
        let found = divided(&[(0, 2 * S), (S, 3 * S)], |time| time);
        assert_eq!(found, [3 * S / 2, 3 * S / 2]);
        assert_eq!(divided(&[], |time| time), [0; 0]);
    }

    #[test]
    fn the_start_of_the_runner_is_no_suites() {
        // Each suite takes 100 ms, of which its tests take 40 ms. The first suite takes 3 s, because the runner starts
        // in that suite.
        let exact = |from: u64, length: u64| {
            Some(Place {
                digit: 0,
                ..place(from, length, 40 * MS)
            })
        };
        let places = [
            exact(0, 3 * S),
            exact(3 * S + 10 * MS, 100 * MS),
            None,
            exact(3 * S + 120 * MS, 100 * MS),
        ];
        let found = works(&places, |time| time);
        let usual = Some(Work {
            tests: 40 * MS,
            rest: 60 * MS,
        });
        assert_eq!(found.list, [usual, usual, None, usual]);
        assert_eq!(found.between, 20 * MS / 3);
        assert_eq!(found.start, 2900 * MS);
        // If every suite is the first one of its runner process, no suite shows how much work a suite has without the
        // start of the runner.
        let found = works(&places[..1], |time| time);
        assert_eq!(found.list[0].map(|work| work.rest), Some(2960 * MS));
    }
}
