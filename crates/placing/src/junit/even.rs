//! Decides whether a test has the same figures (such as CPU time) wherever it is placed within its bounds. An example
//! is a test that only computes, in a runner that also only computes before and after the test. The figures of such a
//! test are right although its exact place is not known.

use tr_analyze::model::{Analysis, ProcessIx};
use tr_analyze::timeline::Bucket;

use super::proof::tolerated_figure;
use super::serial::{Place, Test};
use crate::lookup::{ktime, signed};

/// The largest number of stretches of a test runner's time that are examined for one test. A guess: the timeline of a
/// thread on a busy machine has some hundred stretches a second.
const STRETCHES: usize = 1_000;

/// The largest cost of one call of [`is_even`]. The unit is the cost of computing the place of one test. A guess: each
/// examined stretch of a timeline costs as much.
pub const COST: usize = STRETCHES;

/// The number of thread states (such as on CPU or in a run queue) whose times are compared. A decision: these are all
/// states that [`Bucket::state`] tells apart.
const STATES: usize = 5;

/// The bounds of the time in which a test can have run. All times are in nanoseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bounds {
    begin: (i64, i64),
    end: (i64, i64),
    length: i64,
    /// The largest error of the test's length as the report gives it, in nanoseconds.
    error: i64,
    /// The largest time in nanoseconds by which the test can have been longer than the report says ([`Test::between`]).
    between: i64,
}

impl Bounds {
    pub fn new(place: &Place, test: &Test) -> Bounds {
        Bounds {
            begin: (*place.begin.start(), *place.begin.end()),
            end: (*place.end.start(), *place.end.end()),
            length: test.length,
            error: test.error,
            between: test.between,
        }
    }

    /// The bounds of a test that can have run anywhere between the times `from` and `to`. `error` is the largest error
    /// of its length. All values are in nanoseconds.
    pub fn anywhere(from: i64, to: i64, length: i64, error: i64) -> Bounds {
        Bounds {
            begin: (from, to.saturating_sub(length).max(from)),
            end: (from.saturating_add(length).min(to), to),
            length,
            error,
            between: 0,
        }
    }

    /// Whether the beginning and the end of the test are known nearly exactly ([`Place::is_exact`]).
    pub fn is_exact(&self) -> bool {
        let range = |(from, to): (i64, i64)| from..=to;
        let (begin, end) = (range(self.begin), range(self.end));
        Place { begin, end }.is_exact(self.length, self.error)
    }

    /// The time in which the test certainly ran: from its latest possible beginning to its earliest possible end.
    /// `None` if the latest possible beginning is not before the earliest possible end.
    pub fn certain(&self) -> Option<(i64, i64)> {
        let certain = (self.begin.1, self.end.0);
        (certain.0 < certain.1).then_some(certain)
    }
}

/// A process in which a test can have run, with the bounds of the time in which the process can have run the test.
#[derive(Clone, Copy, Debug)]
pub struct Possible {
    pub process: ProcessIx,
    pub bounds: Bounds,
}

/// Whether the figures of a test are equal, up to the tolerated error, wherever the test ran within its bounds. The
/// figures are the times that the process's threads spent in each thread state during the test. The figures at the
/// shown place (`shown`, in the first process) are compared with the figures at every other possible place, in each
/// possible process. The result is false if the recording has no timeline or too many stretches, or if the error of the
/// test's length is not less than the length.
pub fn is_even(analysis: &Analysis, possible: &[Possible], shown: (i64, i64)) -> bool {
    let length = shown.1.saturating_sub(shown.0).unsigned_abs();
    let sums = possible.iter().map(|Possible { process, bounds }| {
        let sums = Sums::new(analysis, *process, bounds.begin.0, bounds.end.1);
        Some((sums.filter(|_| bounds.error < bounds.length)?, bounds))
    });
    let Some(sums) = sums.collect::<Option<Vec<(Sums, &Bounds)>>>() else {
        return false;
    };
    let Some(wanted) = sums.first().map(|(sums, _)| sums.within(shown.0, shown.1)) else {
        return false;
    };
    let mut all = sums.iter();
    let most = wanted.map(|wanted| {
        let figure = u64::try_from(wanted).unwrap_or(0);
        i128::from(tolerated_figure(figure, length))
    });
    all.all(|(sums, bounds)| sums.range_is_near(bounds, wanted, most))
}

/// For each moment at which a thread of a process changed its state, the time that all threads together have spent in
/// each state up to this moment, counted from a fixed beginning.
struct Sums {
    /// The times in nanoseconds at which a thread of the process changes its state, in order.
    times: Vec<i64>,
    /// For each of the times in `times`: how long all threads together have been in each thread state up to this time,
    /// in nanoseconds.
    sums: Vec<[i128; STATES]>,
}

impl Sums {
    /// Computes the sums of the threads' times by state for a process between two times; `None` without a timeline, or
    /// if there are too many stretches.
    fn new(analysis: &Analysis, process: ProcessIx, from: i64, to: i64) -> Option<Sums> {
        let timeline = analysis.timeline.as_ref()?;
        let mut changes: Vec<(i64, [i128; STATES])> = Vec::new();
        for thread in &analysis.process(process).threads {
            let inside = timeline.since(*thread, ktime(from));
            for stretch in inside.take_while(|stretch| signed(stretch.from) < to) {
                let begin = signed(stretch.from).max(from);
                let end = signed(stretch.to).min(to);
                if begin < end {
                    let slope = slope(stretch.doing);
                    changes.push((begin, slope));
                    changes.push((end, slope.map(|by| -by)));
                }
                if changes.len() > 2 * STRETCHES {
                    return None;
                }
            }
        }
        changes.sort_unstable();
        let (mut slope, mut sum) = ([0; STATES], [0; STATES]);
        let mut all = Sums {
            times: vec![from],
            sums: vec![sum],
        };
        let mut now = from;
        for (at, by) in changes {
            let since = i128::from(at.saturating_sub(now));
            for ((sum, slope), by) in sum.iter_mut().zip(&mut slope).zip(by) {
                *sum += *slope * since;
                *slope += by;
            }
            now = at;
            all.times.push(at);
            all.sums.push(sum);
        }
        Some(all)
    }

    /// The time in nanoseconds that the process's threads have spent in each state until `time`. Between two changes of
    /// state the sums grow evenly.
    fn at(&self, time: i64) -> [i128; STATES] {
        let after = self.times.partition_point(|change| *change <= time);
        let entry = |at: usize| Some((*self.times.get(at)?, *self.sums.get(at)?));
        let Some((from, mut sums)) = after.checked_sub(1).and_then(entry) else {
            return [0; STATES];
        };
        if let Some((to, next)) = entry(after).filter(|(to, _)| *to > from) {
            let (part, whole) = (i128::from(time - from), i128::from(to - from));
            for (sum, next) in sums.iter_mut().zip(next) {
                *sum += (next - *sum) * part / whole;
            }
        }
        sums
    }

    /// The time in nanoseconds that the process's threads spent in each state between `from` and `to`.
    fn within(&self, from: i64, to: i64) -> [i128; STATES] {
        let mut sums = self.at(to);
        for (sum, before) in sums.iter_mut().zip(self.at(from)) {
            *sum -= before;
        }
        sums
    }

    /// Whether the times that the process's threads spend in each state during a test differ from `wanted` by at most
    /// `most`, in nanoseconds, wherever the test lies within its bounds. Between changes of state, the times grow
    /// linearly. So it is enough to check the places at which the test begins or ends at such a change.
    fn range_is_near(&self, bounds: &Bounds, wanted: [i128; STATES], most: [i128; STATES]) -> bool {
        let shortest = bounds.length.saturating_sub(bounds.error);
        let longest = bounds.length.saturating_add(bounds.error);
        let longest = longest.saturating_add(bounds.between);
        let ends = [bounds.end.0, bounds.end.1];
        let changes = self.times.iter().copied().chain(ends);
        let begins = changes.flat_map(|at| {
            let of_end = |length: i64| at.saturating_sub(length);
            [at, of_end(shortest), of_end(longest)]
        });
        let begins = begins.chain([bounds.begin.0, bounds.begin.1]);
        let mut begins = begins.filter(|begin| (bounds.begin.0..=bounds.begin.1).contains(begin));
        begins.all(|begin| {
            let first = begin.saturating_add(shortest).max(bounds.end.0);
            let last = begin.saturating_add(longest).min(bounds.end.1);
            first > last
                || [first, last].into_iter().all(|end| {
                    let sums = self.within(begin, end).into_iter().zip(wanted);
                    let mut sums = sums.zip(most);
                    sums.all(|((sum, wanted), most)| (sum - wanted).abs() <= most)
                })
        })
    }
}

/// The increase of the sum for each thread state while a thread is in the given state for one nanosecond: 1 for that
/// state, and 0 for the others.
fn slope(doing: Bucket) -> [i128; STATES] {
    std::array::from_fn(|state| i128::from(state == doing.state()))
}
