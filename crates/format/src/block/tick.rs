//! The clock's tick. Many machines read a counter that advances in larger steps
//! than a nanosecond (the time stamp counter of AMD's Zen: some 10 ns; ARM's:
//! up to 50 ns), and the kernel turns its value into ns. Then the times are the
//! whole parts of the multiples of one period, and counting them in ticks
//! leaves out the bits that say nothing: 3.3 of each time at 10 ns.
//!
//! Nothing is rounded. A time that is not on the grid is stored in ns.

/// The times of a frame that are on the grid: tick `k` is at
/// `min + ⌊(k × period + phase) / 2^32⌋` ns, where `min` is the frame's
/// smallest time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Grid {
    /// The length of a tick in 2^-32 ns; [`Grid::NANOSECOND`] at least.
    pub period: u64,
    /// Where tick 0 is within its ns, in 2^-32 ns.
    pub phase: u32,
}

impl Grid {
    /// A tick of one ns: every time is on the grid.
    pub const NANOSECOND: u64 = 1 << 32;
    /// Longest tick: 1 ms.
    pub const LONGEST: u64 = 1_000_000 << 32;

    /// The grid of ns.
    pub const PLAIN: Grid = Grid {
        period: Grid::NANOSECOND,
        phase: 0,
    };

    /// How many ns after the frame's smallest time tick `k` is.
    #[inline(always)]
    pub fn offset(&self, k: u64) -> u64 {
        ((u128::from(k) * u128::from(self.period) + u128::from(self.phase)) >> 32) as u64
    }

    /// A block is short when its largest offset is below this: then no tick is
    /// larger, for none is shorter than a nanosecond.
    pub const SHORT: u64 = 1 << 44;

    /// [`Grid::offset`] for the ticks of a short block. It needs no shift of the
    /// product, which takes several steps. Of a larger tick it gives anything.
    #[inline(always)]
    pub fn offsets_of_a_short_block(&self) -> impl Fn(u64) -> u64 {
        // A period is below 2^52.
        let (period, phase) = (self.period << 12, u128::from(self.phase) << 32);
        move |k| ((u128::from(k << 20) * u128::from(period) + phase) >> 64) as u64
    }

    /// [`Grid::offset`], unless it does not fit in 64 bits.
    pub fn offset_of(&self, k: u64) -> Option<u64> {
        let offset = u128::from(k) * u128::from(self.period) + u128::from(self.phase);
        u64::try_from(offset >> 32).ok()
    }

    /// The tick at `offset` ns; `None` when there is none.
    #[inline]
    fn tick(&self, offset: u64, per_tick: f64, phase: f64) -> Option<u64> {
        if self.period == Grid::NANOSECOND {
            return Some(offset);
        }
        // As signed numbers, which processors convert at once. A k that is wrong
        // because the offset is large does not lead back to the offset.
        let k = ((offset as i64 as f64 + 0.5 - phase) * per_tick + 0.5) as i64 as u64;
        (self.offset(k) == offset).then_some(k)
    }

    /// The tick of each offset.
    pub fn ticks<'a>(
        &'a self,
        offsets: impl Iterator<Item = u64> + 'a,
    ) -> impl Iterator<Item = Option<u64>> + 'a {
        let (per_tick, phase) = (UNIT / self.period as f64, f64::from(self.phase) / UNIT);
        offsets.map(move |offset| self.tick(offset, per_tick, phase))
    }
}

/// Finds the grid of a recording's clock, and fits it to each frame.
#[derive(Clone, Debug, Default)]
pub struct Clock {
    /// The best estimate of the period in ns, once one was found.
    period: Option<f64>,
    /// How often it was looked for in vain.
    tries: u32,
}

/// Steps that the search for a period looks at.
const SAMPLE: usize = 96;
/// Fewer do not tell enough.
const ENOUGH: usize = 32;
/// Longest step that the search looks at, in ns. It takes as many looks at all
/// steps: where every input is a new recording with a clock of its own, as in a
/// fuzz target, it was three quarters of everything.
const LONGEST_STEP: u64 = if cfg!(fuzzing) { 1 << 8 } else { 1 << 13 };
/// Times that a grid is fitted to; the others are only tried.
const FITTED: usize = 512;
/// How often a period is looked for before the clock is taken for one of ns.
const TRIES: u32 = 8;
/// Periods that are looked for, in ns. Below, little is won.
const PERIODS: (f64, f64) = (3.0, 128.0);

/// What periods are counted in: 2^-32 ns.
const UNIT: f64 = (1u64 << 32) as f64;

/// Of times on a grid, whole parts, 1 ns is left; and a little for a period that
/// is not quite exact.
const WINDOW: f64 = 1.05;

/// A period as it is stored; `None` when it is too short or too long.
fn fixed(period: f64) -> Option<u64> {
    let fixed = (period * UNIT).round() as u64;
    let range = 2 * Grid::NANOSECOND..=Grid::LONGEST;
    range.contains(&fixed).then_some(fixed)
}

/// The grid of a period where `low` to `high` is left of the times.
fn grid(period: u64, low: f64, high: f64) -> Grid {
    let phase = ((low + high + 1.0) / 2.0).clamp(0.0, 1.0 - 1.0 / 65536.0);
    Grid {
        period,
        phase: ((phase * 65536.0) as u32) << 16,
    }
}

/// The nearest whole number to one that is not large; processors have no quick
/// instruction for it that all of them know.
fn nearest(x: f64) -> f64 {
    (x + 0.5) as i64 as f64
}

impl Clock {
    /// The grid for a frame's times.
    pub fn grid(&mut self, times: &[u64], min: u64) -> Grid {
        if self.period.is_none() && self.tries < TRIES {
            self.find(times);
        }
        let Some(period) = self.period else {
            return Grid::PLAIN;
        };
        self.still(times, min, period)
            .or_else(|| self.fit(times, min, period))
            .unwrap_or(Grid::PLAIN)
    }

    /// Looks for a period in the short steps between times.
    fn find(&mut self, times: &[u64]) {
        let pairs = times.iter().zip(times.iter().skip(1));
        let mut steps: Vec<u64> = pairs
            .filter_map(|(a, b)| b.checked_sub(*a))
            .filter(|step| (1..LONGEST_STEP).contains(step))
            .collect();
        if steps.len() < ENOUGH {
            return;
        }
        self.tries += 1;
        steps.sort_unstable();
        // Spread over all that there are, short ones first.
        let short = steps.len().min(4 * SAMPLE);
        steps.truncate(short);
        let every = (short / SAMPLE).max(1);
        let sample: Vec<f64> = steps.iter().step_by(every).map(|s| *s as f64).collect();
        let longest = sample.last().copied().unwrap_or(1.0);
        // By chance the best of all tried is hardly below 0.7; a true one has
        // 4/3 ns in a period. What cannot be true is given up early.
        let (mut best, mut found) = (0.5, None);
        let mut period = PERIODS.0;
        while period < PERIODS.1 {
            let misses = misses(&sample, period, best);
            if misses < best {
                (best, found) = (misses, Some(period));
            }
            period *= 1.0 + 0.4 / longest;
        }
        self.period = found;
    }

    /// The grid of the period as it is, when a frame's times lie on it. A clock
    /// changes its rate by parts of a million at most, and most of the time by
    /// none: this costs a sixth of [`Clock::fit`], and is more exact when some
    /// times are off the grid.
    fn still(&self, times: &[u64], min: u64, period: f64) -> Option<Grid> {
        let fixed = fixed(period)?;
        let period = fixed as f64 / UNIT;
        let inverse = 1.0 / period;
        let every = times.len().div_ceil(FITTED).max(1);
        let offsets = times.iter().step_by(every).map(|time| time - min);
        let rests = offsets.clone().map(|at| {
            let at = at as i64 as f64;
            at - nearest(at * inverse) * period
        });
        let (low, high) = rests
            .clone()
            .fold((0.0f64, 0.0f64), |(low, high), r| (low.min(r), high.max(r)));
        if high - low < WINDOW {
            return Some(grid(fixed, low, high));
        }
        // The window without the times that are off.
        let mut rests: Vec<f64> = rests.collect();
        let (count, off) = (rests.len(), rests.len() / 16);
        let part = off as f64 / count as f64;
        let (_, low, above) = rests.select_nth_unstable_by(off, f64::total_cmp);
        let low = *low - part;
        let last = above.len().checked_sub(1 + off)?;
        let (_, high, _) = above.select_nth_unstable_by(last, f64::total_cmp);
        let high = *high + part;
        let grid = grid(fixed, low, high);
        let hits = grid.ticks(offsets).flatten().count();
        (high - low < WINDOW && hits * 32 >= count * 31).then_some(grid)
    }

    /// Fits period and phase to a frame.
    fn fit(&mut self, times: &[u64], min: u64, mut period: f64) -> Option<Grid> {
        let mut sorted: Vec<u64> = times
            .iter()
            .step_by(times.len().div_ceil(FITTED).max(1))
            .map(|time| time - min)
            .collect();
        sorted.push(0);
        sorted.sort_unstable();
        sorted.dedup();
        let steps: Vec<f64> = sorted
            .iter()
            .zip(sorted.iter().skip(1))
            .map(|(a, b)| (b - a) as f64)
            .collect();
        // Short steps tell the period well enough to count the ticks of longer
        // ones, and so on.
        let mut by_length = steps.clone();
        by_length.sort_unstable_by(f64::total_cmp);
        let (mut squares, mut product) = (4e6, 4e6 * period);
        for step in &by_length {
            let k = (step / period).round();
            squares += k * k;
            product += k * step;
            period = product / squares;
        }
        let mut k = 0.0;
        let points: Vec<(f64, f64)> = std::iter::once((0.0, 0.0))
            .chain(steps.iter().zip(sorted.iter().skip(1)).map(|(step, at)| {
                k += (step / period).round();
                (k, *at as f64)
            }))
            .collect();
        if points.len() >= 3 {
            period = slope(&points)?;
            period += tilt(&points, period);
        }
        let fixed = fixed(period)?;
        let (low, high) = remainders(&points, fixed as f64 / UNIT);
        let grid = grid(fixed, low, high);
        let hits = grid.ticks(sorted.iter().copied()).flatten().count();
        if points.len() >= 128 && hits * 64 > points.len() * 63 {
            self.period = Some(period);
        }
        (hits * 8 >= sorted.len() * 7).then_some(grid)
    }
}

/// How far steps are from multiples of a period on average, 1 being what
/// chance gives; stops early when it will not be below `best`.
fn misses(sample: &[f64], period: f64, best: f64) -> f64 {
    // Rounds what is below 2^51, without the call that `round_ties_even` is on
    // the processors of before 2008 that we are compiled for.
    const ROUND: f64 = 1.5 * (1u64 << 52) as f64;
    let inverse = 1.0 / period;
    let off = |step: &f64| {
        let ticks = step * inverse;
        (ticks - ((ticks + ROUND) - ROUND)).abs()
    };
    let (first, rest) = sample.split_at(sample.len().min(16));
    let start: f64 = first.iter().map(off).sum();
    if start * 4.0 / first.len() as f64 > best + 0.35 {
        return 1.0;
    }
    let sum = start + rest.iter().map(off).sum::<f64>();
    sum * 4.0 / sample.len() as f64
}

/// The slope of the line of least squares.
fn slope(points: &[(f64, f64)]) -> Option<f64> {
    let n = points.len() as f64;
    let (mean_k, mean_t) = points
        .iter()
        .fold((0.0, 0.0), |(a, b), (k, t)| (a + k / n, b + t / n));
    let (square, product) = points.iter().fold((0.0, 0.0), |(a, b), (k, t)| {
        (
            a + (k - mean_k) * (k - mean_k),
            b + (k - mean_k) * (t - mean_t),
        )
    });
    (square > 0.0).then_some(product / square)
}

/// Smallest and largest of what is left of the times after a line.
fn remainders(points: &[(f64, f64)], period: f64) -> (f64, f64) {
    points
        .iter()
        .map(|(k, t)| t - k * period)
        .fold((f64::MAX, f64::MIN), |(low, high), r| {
            (low.min(r), high.max(r))
        })
}

/// What is missing in a slope: remainders are spread evenly over 1 ns, so the
/// middles of their ranges in both halves lie on the line, much more exactly
/// than the means do.
fn tilt(points: &[(f64, f64)], period: f64) -> f64 {
    let (first, second) = points.split_at(points.len() / 2);
    let middle = |points: &[(f64, f64)]| {
        let (low, high) = remainders(points, period);
        let ends = (points.first(), points.last());
        let (Some((from, _)), Some((to, _))) = ends else {
            return (0.0, 0.0);
        };
        ((from + to) / 2.0, (low + high) / 2.0)
    };
    if first.len() < 16 {
        return 0.0;
    }
    let ((k1, r1), (k2, r2)) = (middle(first), middle(second));
    match k2 > k1 {
        true => (r2 - r1) / (k2 - k1),
        false => 0.0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn times(period: f64, steps: impl Iterator<Item = u64>) -> Vec<u64> {
        let mut k = 12_345_678_901_234u64;
        steps
            .map(|step| {
                k += step;
                (k as f64 * period + 0.3) as u64
            })
            .collect()
    }

    fn odd_steps(n: u64) -> impl Iterator<Item = u64> {
        let mut state = 1u64;
        (0..n).map(move |i| {
            state = state.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(1);
            30 + (state >> 33) % 700 + if i % 50 == 0 { 90_000 } else { 0 }
        })
    }

    #[test]
    fn offsets_of_short_blocks_are_the_same() {
        for (period, phase) in [
            (Grid::NANOSECOND, 0),
            (Grid::NANOSECOND + 12345, u32::MAX << 16),
            (43_013_569_123, 0xabcd_0000),
            (Grid::LONGEST, 1 << 16),
        ] {
            let grid = Grid { period, phase };
            let short = grid.offsets_of_a_short_block();
            let ticks = (0..44).flat_map(|b| [1u64 << b, (1 << b) + 1, (2 << b) - 1]);
            for k in ticks.chain([0]) {
                if grid.offset_of(k).is_some_and(|at| at < Grid::SHORT) {
                    assert_eq!(short(k), grid.offset(k), "{period} {phase} {k}");
                }
            }
        }
    }

    fn hits(times: &[u64], grid: &Grid) -> usize {
        let min = times[0];
        grid.ticks(times.iter().map(|t| t - min)).flatten().count()
    }

    #[test]
    fn a_coarse_clock_is_found_and_fits() {
        for period in [10.014898419, 41.666667, 5.0, 26.25] {
            let times = times(period, odd_steps(5000));
            let mut clock = Clock::default();
            let grid = clock.grid(&times, times[0]);
            let found = grid.period as f64 / (1u64 << 32) as f64;
            assert!((found - period).abs() < 1e-6, "{period}: {found}");
            assert!(
                hits(&times, &grid) > 4950,
                "{period}: {}",
                hits(&times, &grid)
            );
        }
    }

    #[test]
    fn a_fine_clock_stays_one_of_nanoseconds() {
        let times = times(0.4, odd_steps(5000));
        assert_eq!(Clock::default().grid(&times, times[0]), Grid::PLAIN);
    }

    #[test]
    fn a_few_times_off_the_grid_do_not_bend_it() {
        let times = times(10.014898419, odd_steps(5000));
        let mut clock = Clock::default();
        clock.grid(&times, times[0]);
        let mut few = times[4000..4400].to_vec();
        let off = few.iter_mut().skip(20).step_by(40);
        off.for_each(|time| *time += 4);
        let grid = clock.grid(&few, few[0]);
        assert!(hits(&few, &grid) >= 388, "{grid:?}");
    }

    #[test]
    fn a_small_frame_uses_what_a_large_one_has_told() {
        let times = times(10.014898419, odd_steps(5000));
        let mut clock = Clock::default();
        clock.grid(&times, times[0]);
        let few = &times[4000..4020];
        let grid = clock.grid(few, few[0]);
        assert!(hits(few, &grid) >= 19, "{grid:?}");
    }
}
