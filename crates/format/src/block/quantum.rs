//! Finds the clock quantum of a recording (the time between two ticks of its clock), and stores the times of events as
//! numbers of quanta. The counter of many machines ticks slower than 1 ns (the time stamp counter of AMD's Zen: 10 ns;
//! ARM's: up to 50 ns), and the kernel converts its value into ns. All times are then multiples of one quantum, rounded
//! down. Counting quanta instead of ns saves the bits that carry no information: 3.3 bits of each time for a quantum of
//! 10 ns.
//!
//! The coder is lossless: where times leave the grid of multiples (because the kernel adjusts its clock, or a
//! stream has an inversion), a time in ns begins a new grid.

/// A clock quantum (time between two ticks of a clock) of 1 ns, in the unit 2^-32 ns. Every time is a multiple of this
/// quantum.
pub const NANOSECOND: u64 = 1 << 32;
/// The longest clock quantum (time between two ticks of a clock) that is considered: 1 µs, in the unit 2^-32 ns.
pub const LONGEST_QUANTUM: u64 = 1000 << 32;

/// A time that is this many ns or more after the beginning of a grid (a sequence of equally spaced times) cannot belong
/// to this grid, so the time begins a new grid.
const REACH: u64 = 1 << 31;

/// The distance in ns from the beginning of a grid (a sequence of equally spaced times) to one of its times: `k` clock
/// quanta plus `phase`, rounded down to whole ns. `phase` is the fraction of a nanosecond at which the grid begins, in
/// 2^-16 ns.
#[inline(always)]
pub fn offset(k: u64, quantum: u64, phase: u16) -> u64 {
    ((u128::from(k) * u128::from(quantum) + (u128::from(phase) << 16)) >> 32) as u64
}

/// The times of a block of scheduling events as multiples of a clock quantum, the time between two ticks of the clock.
#[derive(Debug, Default)]
pub struct Grid {
    /// The clock quantum, which is the spacing of the block's grids (sequences of equally spaced times), in the unit
    /// 2^-32 ns.
    pub quantum: u64,
    /// For each event, the distance of its time from the beginning of its grid (a sequence of equally spaced times), in
    /// clock quanta.
    pub k: Vec<u64>,
    /// The events that begin a new grid of times: the index of each, and its phase, the fraction of a nanosecond by
    /// which the grid begins after the event's time. The first grid is not in the list: it begins at the block's
    /// smallest time.
    pub begins: Vec<(usize, u16)>,
    /// The phase of the first grid of times: the fraction of a nanosecond, in 2^-16 ns, by which this grid begins after
    /// the block's smallest time.
    pub phase: u16,
}

impl Grid {
    /// Divides the times of a block into as few grids as possible. On a grid, each time is the beginning plus a
    /// multiple of the quantum, rounded down to whole ns. A time that does not fit begins a new grid.
    fn cut(&mut self, times: &[u64], min: u64, quantum: u64) {
        self.quantum = quantum;
        self.k.clear();
        self.begins.clear();
        let inverse = UNIT / quantum as f64;
        let (mut begin, mut last) = (min, 0);
        let (mut low, mut high) = (0i64, 0xffff_i64);
        for (at, time) in times.iter().enumerate() {
            let offset = time.wrapping_sub(begin);
            let middle = 0.5 - (low + high) as f64 / 131_072.0;
            let k = ((offset as i64 as f64 + middle) * inverse + 0.5) as i64 as u64;
            // The shift loses no bits, because an offset that is accepted below (less than 2^31 ns) fits into 64 bits
            // in the unit 2^-32 ns.
            let rest = ((offset << 32) as i64).wrapping_sub(k.wrapping_mul(quantum) as i64);
            let (least, most) = ((rest + 0xffff) >> 16, (rest + 0xffff_ffff) >> 16);
            if offset < REACH && k >= last && least <= high && most >= low {
                (low, high) = (low.max(least), high.min(most));
                last = k;
                self.k.push(k);
                continue;
            }
            self.end(low);
            self.begins.push((at, 0));
            (begin, last) = (*time, 0);
            (low, high) = (0, 0xffff);
            self.k.push(0);
        }
        self.end(low);
    }

    /// Sets the phase of the last grid (a sequence of equally spaced times) to `low`, the smallest phase that fits all
    /// times of this grid. The phase is the fraction of a nanosecond at which the grid begins, in 2^-16 ns.
    fn end(&mut self, low: i64) {
        let phase = self
            .begins
            .last_mut()
            .map_or(&mut self.phase, |(_, phase)| phase);
        *phase = low as u16;
    }
}

/// One nanosecond in the unit of clock quanta, 2^-32 ns.
const UNIT: f64 = NANOSECOND as f64;
/// The largest and the smallest number of steps (distances between consecutive times) from which the clock quantum (the
/// time between two ticks) is estimated.
const SAMPLE: (usize, usize) = (192, 32);
/// The longest step (distance between consecutive times) in ns that is used to estimate the clock quantum, which is the
/// time between two ticks. The duration of the search is proportional to this length.
const LONGEST_STEP: u64 = if cfg!(fuzzing) { 1 << 8 } else { 1 << 12 };
/// The range in ns in which the clock quantum of a recording (the time between two ticks) is searched. A shorter
/// quantum saves little space.
const QUANTA: (f64, f64) = (3.0, 128.0);
/// The largest number of searches for a recording's clock quantum (the time between two ticks of its clock). After
/// them, the times of a block that does not fit the last quantum are stored with a quantum of 1 ns.
const MOST_SEARCHES: u32 = 8;

/// Estimates the clock quantum of a recording (the time between two ticks of its clock), and expresses times as
/// multiples of the quantum.
#[derive(Debug, Default)]
pub struct Clock {
    quantum: Option<f64>,
    searches: u32,
    /// The times of the last encoded block, as multiples of the clock quantum.
    pub grid: Grid,
}

impl Clock {
    /// Returns the times of a block as multiples of the clock quantum. If the times do not fit the estimated quantum,
    /// this method fits the quantum to the block; if that fails too, this method searches for a quantum again, and at
    /// last uses 1 ns.
    pub fn grid(&mut self, times: &[u64], min: u64) -> &Grid {
        // A quantum is accepted if the times need at most one new grid (sequence of equally spaced times) for 16
        // events: a new grid costs about as many bits as counting quanta saves for 16 times.
        let bad = times.len() / 16;
        if let Some(quantum) = self.quantum {
            if self.fitted(times, min, quantum) <= bad {
                return &self.grid;
            }
        }
        if self.searches < MOST_SEARCHES {
            if let Some(found) = self.search(times) {
                if self.fitted(times, min, found) <= bad {
                    return &self.grid;
                }
            }
        }
        self.grid.cut(times, min, NANOSECOND);
        &self.grid
    }

    /// Divides the times of a block into grids (sequences of equally spaced times). The spacing is the clock quantum,
    /// or a quantum that is fitted to the times if that needs fewer grids. Returns the number of grids besides the
    /// first.
    fn fitted(&mut self, times: &[u64], min: u64, quantum: f64) -> usize {
        let mut begins = self.try_quantum(times, min, quantum);
        let mut best = quantum;
        if begins > times.len() / 256 {
            let fitted = fit(times, quantum);
            let others = self.try_quantum(times, min, fitted);
            if others < begins {
                (best, begins) = (fitted, others);
            } else {
                self.try_quantum(times, min, quantum);
            }
        }
        // A short block gives a worse estimate of the clock quantum than the blocks before it, so the estimate of a
        // short block does not replace the earlier one.
        if self.quantum.is_none() || times.len() >= SAMPLE.1 {
            self.quantum = Some(best);
        }
        begins
    }

    /// Divides the times of a block into grids (sequences of equally spaced times) with this clock quantum, in ns, as
    /// the spacing. Returns the number of grids besides the first.
    fn try_quantum(&mut self, times: &[u64], min: u64, quantum: f64) -> usize {
        let quantum = ((quantum * UNIT) as u64).clamp(NANOSECOND, LONGEST_QUANTUM);
        self.grid.cut(times, min, quantum);
        self.grid.begins.len()
    }

    /// Searches for a clock quantum (time between two ticks) such that every step between the given times is a multiple
    /// of the quantum, apart from the rounding of the times to whole ns.
    fn search(&mut self, times: &[u64]) -> Option<f64> {
        let mut steps: Vec<u64> = steps(times).filter(|step| *step < LONGEST_STEP).collect();
        if steps.len() < SAMPLE.1 {
            return None;
        }
        self.searches += 1;
        steps.sort_unstable();
        let every = steps.len().div_ceil(SAMPLE.0);
        let sample: Vec<f64> = steps.iter().step_by(every).map(|s| *s as f64).collect();
        let longest = sample.last().copied().unwrap_or(1.0);
        // A quantum is accepted only if the function `misses` returns less than 0.5 for it. For random steps, the
        // function hardly returns less than 0.7, even for the best quantum. For the right quantum, it returns 4/3 ns
        // divided by the quantum.
        let (mut best, mut found) = (0.5, None);
        let mut quantum = QUANTA.0;
        while quantum < QUANTA.1 {
            let misses = misses(&sample, quantum, best);
            if misses < best {
                (best, found) = (misses, Some(quantum));
            }
            quantum *= 1.0 + 0.3 / longest;
        }
        found
    }
}

/// The positive distances in ns between consecutive times.
fn steps(times: &[u64]) -> impl Iterator<Item = u64> + '_ {
    let pairs = times.iter().zip(times.iter().skip(1));
    pairs
        .filter_map(|(a, b)| b.checked_sub(*a))
        .filter(|step| *step > 0)
}

/// How badly the sampled steps fit a clock quantum: the average distance of the steps from multiples of the quantum,
/// divided by the average distance of random steps. The function stops early if the result will not be below `best`.
fn misses(sample: &[f64], quantum: f64, best: f64) -> f64 {
    let inverse = 1.0 / quantum;
    let off = |step: &f64| {
        let quanta = step * inverse;
        (quanta - (quanta + 0.5) as i64 as f64).abs()
    };
    let (first, rest) = sample.split_at(sample.len().min(16));
    let start: f64 = first.iter().map(off).sum();
    if start * 4.0 / first.len() as f64 > best + 0.35 {
        return 1.0;
    }
    (start + rest.iter().map(off).sum::<f64>()) * 4.0 / sample.len() as f64
}

/// Fits a clock quantum (time between two ticks) to the times of a block. The fit starts from an estimate that is good
/// enough to count the quanta of short distances; each longer distance then improves the estimate enough for the next
/// one.
fn fit(times: &[u64], mut quantum: f64) -> f64 {
    let every = times.len().div_ceil(256).max(1);
    let spans = (0..u64::BITS).map(|bits| 1usize << bits);
    let mut distances: Vec<u64> = spans
        .take_while(|span| *span < times.len())
        .flat_map(|span| times.iter().zip(times.iter().skip(span)).step_by(every))
        .filter_map(|(a, b)| b.checked_sub(*a))
        .collect();
    distances.sort_unstable();
    let (mut squares, mut product) = (0.0, 0.0);
    for distance in distances {
        let k = (distance as f64 / quantum).round();
        squares += k * k;
        product += k * distance as f64;
        if squares > 1e4 {
            quantum = product / squares;
        }
    }
    // Finally, the clock quantum becomes the slope of the straight line that fits all times best. The line shows the
    // time over the number of quanta.
    let first = times.first().copied().unwrap_or(0);
    let (mut k, mut last) = (0.0, first);
    let (mut n, mut sum_k, mut sum_t, mut sum_kk, mut sum_kt) = (0.0, 0.0, 0.0, 0.0, 0.0);
    for time in times.iter().filter(|time| **time >= first) {
        if *time < last {
            continue;
        }
        k += ((time - last) as f64 / quantum).round();
        last = *time;
        // Only the small difference between the time and its estimate (`k` quanta) is summed up, so that f64 is exact
        // enough.
        let t = (time - first) as f64 - k * quantum;
        (n, sum_k, sum_t) = (n + 1.0, sum_k + k, sum_t + t);
        (sum_kk, sum_kt) = (sum_kk + k * k, sum_kt + k * t);
    }
    let spread = n * sum_kk - sum_k * sum_k;
    let slope = (n * sum_kt - sum_k * sum_t) / spread;
    if slope.is_finite() {
        quantum + slope
    } else {
        quantum
    }
}

#[cfg(test)]
#[path = "tests/quantum.rs"]
mod tests;
