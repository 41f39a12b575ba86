//! Decides whether a difference between two sides is significant. The method depends on the numbers of runs:
//!
//! - With enough runs, it is the exact two-sided rank test of Mann and Whitney at 5 % ("On a test of whether one of two
//!   random variables is stochastically larger than the other", Annals of Mathematical Statistics 18(1), 1947). The
//!   test assumes no distribution, because build times are skewed. Four runs against four are enough: 2 of 70
//!   arrangements are 2.9 %. So are three against five, and two against eight.
//! - With fewer runs, the difference of the medians must be larger than a multiple of the larger of both sides' ranges
//!   (maximum minus minimum). The multiple depends on the numbers of runs: [`factor`].
//! - With one run against one or two, the spread is unknown.

use serde::Serialize;

/// The verdict on a difference between the base and the new runs: whether it can be explained by how much runs of one
/// and the same build differ (the spread).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SpreadVerdict {
    /// There is no verdict, because there are too few runs to know how much runs of one build differ.
    Unknown,
    /// The difference is no larger than differences between runs of one and the same build.
    Inside,
    Outside,
}

impl SpreadVerdict {
    /// The word for the verdict on a difference in tables and JSON, `inside` or `outside` the spread; `None` if there
    /// is no verdict.
    pub(super) fn word(self) -> Option<&'static str> {
        match self {
            SpreadVerdict::Unknown => None,
            SpreadVerdict::Inside => Some("inside"),
            SpreadVerdict::Outside => Some("outside"),
        }
    }
}

/// The method that decides whether a difference between the base and the new runs is within the spread: no larger than
/// differences between runs of one build.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Statistic {
    /// There is no method, because one run is compared with one or two, or a side has no run.
    None,
    /// The difference of the medians is compared with a multiple of the larger of the two sides' ranges (maximum minus
    /// minimum).
    Range,
    MannWhitney,
}

impl Statistic {
    /// The method for judging a difference between two sides of a comparison that have the given numbers of runs.
    pub fn of(base: usize, new: usize) -> Statistic {
        match (base.min(new), base.max(new)) {
            (0, _) | (1, ..=2) => Statistic::None,
            (few, many) if least_p(few, many) <= ALPHA => Statistic::MannWhitney,
            _ => Statistic::Range,
        }
    }
}

/// The least p value that the rank test can have for sides with these numbers of runs. The p value is this small if the
/// values of the two sides do not overlap.
fn least_p(few: usize, many: usize) -> f64 {
    let ways = (1..=few).map(|k| (many + k) as f64 / k as f64);
    2.0 / ways.product::<f64>()
}

/// The least difference between the medians of the two sides that counts, as a multiple of the larger of the sides'
/// ranges. `base` and `new` are the numbers of runs on the two sides.
///
/// The factors come from a simulation of equal builds, which a test repeats, and are rounded up to a twentieth. With
/// times of a normal distribution, or of a log-normal one with a σ of 0.5, at most 5 of 100 comparisons differ by more
/// than the factor allows. With times as skewed as waits (exponential), at most 8 of 100 do.
///
/// No factor is less than 1, even if the simulation would allow it. The reason are builds whose times lie in two
/// groups, for example with a cold and a warm cache: the medians of two equal sides then often differ by nearly the
/// range.
pub fn factor(base: usize, new: usize) -> f64 {
    match (base.min(new), base.max(new)) {
        (1, ..=3) => 3.2,
        (1, 4) => 2.0,
        (1, 5) => 1.55,
        (1, 6) => 1.3,
        (1, 7) => 1.15,
        (2, 2) => 2.45,
        (2, 3) => 1.45,
        (2, 4) => 1.05,
        (3, 3) => 1.1,
        _ => 1.0,
    }
}

/// A pair of values, one for the base and one for the new runs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PerSide<T> {
    pub base: T,
    pub new: T,
}

/// The comparison of a figure on two sides: the medians of their runs, and whether the spread of the runs explains
/// their difference.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Difference {
    /// The median of the compared figure over the runs of the base.
    pub base: u64,
    /// The median of the compared figure over the new runs.
    pub new: u64,
    /// The range of the compared figure (maximum minus minimum over the runs) on the side where it is larger, base or
    /// new; `None` if there are too few runs for a verdict.
    pub spread: Option<u64>,
    /// The largest difference of the medians that is within the spread of the runs; `None` if the rank test decides
    /// instead, or if there are too few runs.
    pub limit: Option<u64>,
    /// The p value of the difference by the rank test of Mann and Whitney; `None` if there are too few runs for it.
    pub p: Option<f64>,
    pub verdict: SpreadVerdict,
}

/// The largest number of runs, base and new together, for which the p value of the rank test is computed exactly. With
/// more runs a normal approximation is used, unless one side has a single run.
const EXACT_RUNS: usize = 40;
/// The significance level of the rank test: a difference with a larger p value is within the spread of the runs. A
/// guess, which is the usual convention: one in twenty pairs of equal builds counts as different.
pub const ALPHA: f64 = 0.05;

impl Difference {
    /// Compares the values of a figure in the runs of the base and in the new runs; `None` if a side has no value.
    pub fn new(base: &[u64], new: &[u64]) -> Option<Difference> {
        let statistic = Statistic::of(base.len(), new.len());
        let spread = (statistic != Statistic::None).then(|| range(base).max(range(new)));
        let mut judged = Difference {
            base: median(base)?,
            new: median(new)?,
            spread,
            limit: None,
            p: None,
            verdict: SpreadVerdict::Unknown,
        };
        let outside = if statistic == Statistic::MannWhitney {
            let p = mann_whitney(base, new);
            judged.p = Some(p);
            Some(p <= ALPHA)
        } else {
            let factor = factor(base.len(), new.len());
            judged.limit = spread.map(|spread| (spread as f64 * factor) as u64);
            let limit = judged.limit;
            limit.map(|limit| judged.base.abs_diff(judged.new) > limit)
        };
        judged.verdict = match outside {
            None => SpreadVerdict::Unknown,
            Some(true) => SpreadVerdict::Outside,
            Some(false) => SpreadVerdict::Inside,
        };
        Some(judged)
    }

    /// The median values of the compared figure in the base and in the new runs.
    pub fn medians(&self) -> PerSide<u64> {
        PerSide {
            base: self.base,
            new: self.new,
        }
    }

    /// The larger one of the two medians of the compared figure in the base and in the new runs.
    pub fn most(&self) -> u64 {
        self.base.max(self.new)
    }

    /// Whether the difference of the medians is at least a twentieth of `whole`, and not known to be within the spread
    /// of the runs.
    pub fn is_noticeable_in(&self, whole: u64) -> bool {
        let size = self.difference().unsigned_abs();
        self.verdict != SpreadVerdict::Inside && size > 0 && size * 20 >= u128::from(whole)
    }

    /// Whether the difference of the medians is at least a twentieth of the larger median, and not known to be within
    /// the spread of the runs.
    pub fn is_noticeable(&self) -> bool {
        self.is_noticeable_in(self.most())
    }

    /// The difference between the sides: the median of the new runs minus the median of the base.
    pub fn difference(&self) -> i128 {
        i128::from(self.new) - i128::from(self.base)
    }
}

/// The median of a list: the middle value, or the mean of the two middle ones, rounded down; `None` for an empty list.
pub fn median(values: &[u64]) -> Option<u64> {
    let mut sorted = values.to_vec();
    sorted.sort_unstable();
    let upper = sorted.get(sorted.len() / 2).copied()?;
    let lower = sorted.get(sorted.len().saturating_sub(1) / 2).copied()?;
    Some(lower + (upper - lower) / 2)
}

fn range(values: &[u64]) -> u64 {
    let (least, most) = (values.iter().min(), values.iter().max());
    most.zip(least).map_or(0, |(most, least)| most - least)
}

/// The ranks of values in a list, for the rank test, counted from 1 and doubled. Equal values have the mean of their
/// ranks, which is an integer when doubled.
fn doubled_ranks(values: &[u64]) -> Vec<usize> {
    let mut sorted = values.to_vec();
    sorted.sort_unstable();
    let rank = |value: &u64| {
        let below = sorted.partition_point(|other| other < value);
        let upto = sorted.partition_point(|other| other <= value);
        below + 1 + upto
    };
    values.iter().map(rank).collect()
}

/// The two-sided p value of the rank test for two lists of values. The sum of a list's ranks has some distance from the
/// mean of such sums. Of all ways to assign the ranks to the two lists, the p value is the share with at least this
/// distance. Equal values get the mean of their ranks.
fn mann_whitney(base: &[u64], new: &[u64]) -> f64 {
    let all: Vec<u64> = base.iter().chain(new).copied().collect();
    let ranks = doubled_ranks(&all);
    let sum: usize = ranks.iter().take(base.len()).sum();
    let count = all.len();
    // The mean of a sum of doubled ranks is the number of ranks in the sum × (the number of all ranks + 1).
    let far = (sum as f64 - (base.len() * (count + 1)) as f64).abs();
    let few = base.len().min(new.len());
    if few == 1 {
        let as_far = |rank: &&usize| rank.abs_diff(count + 1) as f64 >= far;
        return ranks.iter().filter(as_far).count() as f64 / count as f64;
    }
    if count > EXACT_RUNS {
        normal_p(&all, few, far)
    } else {
        exact_p(&ranks, few, far)
    }
}

/// The p value of the rank test by a normal approximation. The sum of `few` doubled ranks is `far` from its mean. Equal
/// values make the variance smaller.
fn normal_p(all: &[u64], few: usize, far: f64) -> f64 {
    let mut equal = std::collections::BTreeMap::<u64, f64>::new();
    for value in all {
        *equal.entry(*value).or_default() += 1.0;
    }
    let ties: f64 = equal.values().map(|t| t * t * t - t).sum();
    let (a, b, c) = (few as f64, (all.len() - few) as f64, all.len() as f64);
    let variance = a * b / 12.0 * (c + 1.0 - ties / (c * (c - 1.0)));
    if variance <= 0.0 {
        return 1.0;
    }
    // Half a rank is subtracted as a continuity correction. `far` is the distance of a sum of doubled ranks, so it is
    // halved.
    let z = ((far / 2.0 - 0.5).max(0.0)) / variance.sqrt();
    (2.0 * upper_tail(z)).min(1.0)
}

/// The exact p value of the rank test, found by counting all choices of ranks. The sum of `few` of the doubled ranks is
/// `far` from its mean.
fn exact_p(ranks: &[usize], few: usize, far: f64) -> f64 {
    let total: usize = ranks.iter().sum();
    // `ways[k][s]` is the number of choices of k ranks whose doubled sum is s.
    let mut ways = vec![vec![0.0f64; total + 1]; few + 1];
    if let Some(none) = ways.first_mut().and_then(|row| row.first_mut()) {
        *none = 1.0;
    }
    for rank in ranks {
        for k in (1..=few).rev() {
            let Ok([fewer, row]) = ways.get_disjoint_mut([k - 1, k]) else {
                continue;
            };
            let shifted = row.iter_mut().skip(*rank);
            for (more, less) in shifted.zip(fewer.iter()) {
                *more += less;
            }
        }
    }
    let Some(row) = ways.get(few) else { return 1.0 };
    let mean = (few * (ranks.len() + 1)) as f64;
    let extreme: f64 = row
        .iter()
        .enumerate()
        .filter(|(s, _)| (*s as f64 - mean).abs() >= far)
        .map(|(_, ways)| ways)
        .sum();
    extreme / row.iter().sum::<f64>()
}

/// The probability that a standard normal variable is larger than `z`, which must not be negative: Abramowitz and
/// Stegun 26.2.17, error below 7.5e-8.
fn upper_tail(z: f64) -> f64 {
    let t = 1.0 / (1.0 + 0.231_641_9 * z);
    let series = [
        0.319_381_530,
        -0.356_563_782,
        1.781_477_937,
        -1.821_255_978,
        1.330_274_429,
    ];
    let sum = series.iter().rev().fold(0.0, |sum, c| (sum + c) * t);
    (-z * z / 2.0).exp() / (2.0 * std::f64::consts::PI).sqrt() * sum
}

/// A difference as text with its sign, such as `+3 ms`, where `show` returns the text of an absolute value; `–` if the
/// difference is 0.
pub(super) fn signed(difference: i128, show: impl Fn(u64) -> String) -> String {
    let size = u64::try_from(difference.unsigned_abs()).unwrap_or(u64::MAX);
    match difference.signum() {
        0 => "–".into(),
        1 => format!("+{}", show(size)),
        _ => format!("−{}", show(size)),
    }
}

/// The difference between the medians of two sides in percent of the base, as text such as `+2.5 %`; empty if the
/// difference or the base is 0.
pub(super) fn percent(judged: &Difference) -> String {
    if judged.base == 0 || judged.difference() == 0 {
        return String::new();
    }
    let percent = judged.difference() as f64 * 100.0 / judged.base as f64;
    let sign = if percent < 0.0 { '−' } else { '+' };
    match percent.abs() {
        size if size < 1.0 => format!("{sign}{size:.1} %"),
        size => format!("{sign}{size:.0} %"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn p(base: &[u64], new: &[u64]) -> f64 {
        Difference::new(base, new)
            .and_then(|j| j.p)
            .unwrap_or(f64::NAN)
    }

    #[test]
    fn the_rank_test_gives_the_published_values() {
        // For four values against four without overlap, 2 of the 70 arrangements are as extreme.
        assert!((p(&[1, 2, 3, 4], &[5, 6, 7, 8]) - 2.0 / 70.0).abs() < 1e-12);
        assert!((p(&[1, 2, 3, 5], &[4, 6, 7, 8]) - 4.0 / 70.0).abs() < 1e-12);
        // The critical value in Mann and Whitney's table for five values against five at 5 % is U = 2.
        assert!(p(&[1, 2, 3, 4, 7], &[5, 6, 8, 9, 10]) <= ALPHA, "U = 2");
        assert!(p(&[1, 2, 3, 4, 8], &[5, 6, 7, 9, 10]) > ALPHA, "U = 3");
        assert!((p(&[5; 4], &[5; 4]) - 1.0).abs() < 1e-12, "all equal");
        let (low, high): (Vec<u64>, Vec<u64>) = ((0..30).collect(), (30..60).collect());
        assert!(p(&low, &high) < 1e-9);
        assert!((upper_tail(1.96) - 0.025).abs() < 1e-5);
    }

    #[test]
    fn the_rank_test_judges_where_it_can() {
        let of = |base, new| (Statistic::of(base, new), Statistic::of(new, base));
        let both = |value| (value, value);
        for (base, new) in [(4, 4), (3, 5), (2, 8), (1, 39), (3, 20)] {
            assert_eq!(of(base, new), both(Statistic::MannWhitney), "{base} {new}");
        }
        for (base, new) in [(3, 4), (3, 3), (2, 7), (2, 2), (1, 38), (1, 3)] {
            assert_eq!(of(base, new), both(Statistic::Range), "{base} {new}");
        }
        for (base, new) in [(0, 4), (1, 1), (1, 2)] {
            assert_eq!(of(base, new), both(Statistic::None), "{base} {new}");
        }
        let many: Vec<u64> = (1..=60).collect();
        assert!((p(&many, &[61]) - 2.0 / 61.0).abs() < 1e-12);
        assert!((p(&[0], &many) - 2.0 / 61.0).abs() < 1e-12);
        assert!(p(&many, &[59]) > ALPHA && p(&many[..20], &[0, 30]) > ALPHA);
        assert!((p(&many[..8], &[30, 31]) - 2.0 / 45.0).abs() < 1e-12);
    }

    #[test]
    fn few_runs_are_judged_by_their_ranges() {
        let verdict = |base: &[u64], new: &[u64]| Difference::new(base, new).map(|j| j.verdict);
        assert_eq!(verdict(&[10], &[20]), Some(SpreadVerdict::Unknown));
        assert_eq!(verdict(&[10, 10], &[20]), Some(SpreadVerdict::Unknown));
        // For three runs against one, the medians must differ by 3.2 times the range.
        assert_eq!(verdict(&[10, 12, 11], &[18]), Some(SpreadVerdict::Outside));
        assert_eq!(verdict(&[10, 12, 11], &[17]), Some(SpreadVerdict::Inside));
        assert_eq!(verdict(&[10, 20, 11], &[20]), Some(SpreadVerdict::Inside));
        assert_eq!(verdict(&[10, 11], &[10, 30]), Some(SpreadVerdict::Inside));
        assert_eq!(verdict(&[10, 10, 10], &[11]), Some(SpreadVerdict::Outside));
        assert_eq!(verdict(&[], &[10]), None);
        assert_eq!(
            median(&[1, 4, 2, 3]),
            Some(2),
            "the middle two's mean, down"
        );
    }

    /// A generator of pseudo-random numbers for the tests of the statistics. It returns the same numbers in each test
    /// run.
    struct Draws(u64);

    impl Draws {
        /// The next pseudo-random number, evenly distributed from 0 to 1.
        fn even(&mut self) -> f64 {
            self.0 ^= self.0 << 13;
            self.0 ^= self.0 >> 7;
            self.0 ^= self.0 << 17;
            (self.0 >> 11) as f64 / (1u64 << 53) as f64
        }

        fn normal(&mut self) -> f64 {
            let (radius, angle) = (self.even(), self.even());
            let radius = (-2.0 * radius.max(1e-300).ln()).sqrt();
            radius * (2.0 * std::f64::consts::PI * angle).cos()
        }

        /// The false-positive rate of the statistics in percent: how often two equal builds are judged different.
        fn outside(&mut self, runs: (usize, usize), of: fn(&mut Draws) -> f64) -> f64 {
            const PAIRS: usize = 4000;
            let mut side = |count: usize| -> Vec<u64> {
                let times = (0..count).map(|_| (of(self) * 1e6 + 1e9) as u64);
                times.collect()
            };
            let mut pairs = (0..PAIRS).map(|_| Difference::new(&side(runs.0), &side(runs.1)));
            let outside = pairs
                .by_ref()
                .flatten()
                .filter(|judged| judged.verdict == SpreadVerdict::Outside);
            outside.count() as f64 * 100.0 / PAIRS as f64
        }
    }

    /// Tests by simulation that the table in [`factor`] lets at most the stated share of equal builds differ.
    #[test]
    fn five_of_a_hundred_equal_builds_differ() {
        let mut draws = Draws(0x9e37_79b9_7f4a_7c15);
        let pairs = [
            (3, 1),
            (4, 1),
            (5, 1),
            (6, 1),
            (7, 1),
            (8, 1),
            (20, 1),
            (2, 2),
            (3, 2),
            (4, 2),
            (5, 2),
            (3, 3),
            (4, 3),
            (2, 8),
            (4, 4),
        ];
        for runs in pairs {
            let normal = draws.outside(runs, Draws::normal);
            let log_normal = draws.outside(runs, |random| (random.normal() / 2.0).exp());
            let skewed = draws.outside(runs, |random| -random.even().max(1e-300).ln());
            let rates = format!("{runs:?}: {normal:.1} {log_normal:.1} {skewed:.1}");
            // For 4,000 pairs, a rate of 5 % is measured as 4.3 to 5.7 %.
            assert!(normal < 5.8 && log_normal < 5.8 && skewed < 8.0, "{rates}");
            // A factor is the multiple of the runs' range by which medians must differ. If a factor is above 1.0, more
            // than 4 % of equal builds still count as different, so the factor is not larger than necessary. A factor
            // of 1.0 may be larger than necessary, because no factor is below 1.0.
            let table = factor(runs.0, runs.1) > 1.0;
            assert!(!table || normal.max(log_normal) > 4.0, "{rates}");
        }
    }
}
