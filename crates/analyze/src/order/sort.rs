//! Sorts records by time, stably: by counting digits, which costs the same for
//! two streams and for two hundred.

use super::Record;

/// Working memory, kept from one slice to the next.
#[derive(Debug, Default)]
pub(super) struct Sorter {
    keys: Vec<u64>,
    other: Vec<u64>,
    from: Vec<Record>,
}

/// Bits of a key that hold the record's place.
const PLACE: u32 = 16;
/// Bits of a digit.
const DIGIT: u32 = 11;

/// Digits of a time, at most.
const DIGITS: usize = 4;

impl Sorter {
    /// Sorts `records`.
    pub(super) fn sort(&mut self, records: &mut Vec<Record>) {
        let (mut least, mut most) = (u64::MAX, 0);
        for record in records.iter() {
            least = least.min(record.time);
            most = most.max(record.time);
        }
        if records.is_sorted_by_key(|record| record.time) {
            return;
        }
        let bits = u64::BITS - (most - least).leading_zeros();
        let rounds = bits.div_ceil(DIGIT) as usize;
        if records.len() > 1 << PLACE || rounds > DIGITS {
            records.sort_by_key(|record| record.time);
            return;
        }
        let key = |(place, record): (usize, &Record)| (record.time - least) << PLACE | place as u64;
        self.keys.clear();
        self.keys.extend(records.iter().enumerate().map(key));
        self.other.clear();
        self.other.resize(records.len(), 0);
        let mut starts = [[0; 1 << DIGIT]; DIGITS];
        let starts = starts.get_mut(..rounds).unwrap_or_default();
        count(&self.keys, starts);
        for (round, starts) in (0..).zip(starts) {
            distribute(&self.keys, &mut self.other, round, starts);
            std::mem::swap(&mut self.keys, &mut self.other);
        }
        std::mem::swap(records, &mut self.from);
        records.clear();
        let places = self.keys.iter().map(|key| *key as usize % (1 << PLACE));
        records.extend(places.filter_map(|place| self.from.get(place)));
    }
}

/// The part of a key that a round looks at.
fn digit(key: u64, round: u32) -> usize {
    (key >> (PLACE + round * DIGIT)) as usize % (1 << DIGIT)
}

/// Where the keys with each digit begin, for every round.
#[allow(clippy::indexing_slicing)] // A digit is below the number of counters.
fn count(keys: &[u64], starts: &mut [[u32; 1 << DIGIT]]) {
    for key in keys {
        for (round, starts) in (0..).zip(&mut *starts) {
            starts[digit(*key, round)] += 1;
        }
    }
    for starts in starts {
        let mut sum = 0;
        for start in starts {
            sum += std::mem::replace(start, sum);
        }
    }
}

/// Puts `from` into `to` in the order of the round's digit.
#[allow(clippy::indexing_slicing)] // As above, and they count to the length.
fn distribute(from: &[u64], to: &mut [u64], round: u32, starts: &mut [u32; 1 << DIGIT]) {
    for key in from {
        let place = &mut starts[digit(*key, round)];
        to[*place as usize] = *key;
        *place += 1;
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        /// As the standard library sorts, for narrow and wide spans of time.
        #[test]
        fn a_stable_sort(times in prop::collection::vec(0u64..1 << 60, 0..200), shift in 0u32..60, least in 0u64..100) {
            let record = |(at, time): (usize, &u64)| Record {
                time: (time >> shift) + least,
                from: at as u32,
                ..Record::default()
            };
            let mut records: Vec<Record> = times.iter().enumerate().map(record).collect();
            let mut expected = records.clone();
            expected.sort_by_key(|record| record.time);
            Sorter::default().sort(&mut records);
            let ids = |records: &[Record]| records.iter().map(|r| (r.time, r.from)).collect::<Vec<_>>();
            prop_assert_eq!(ids(&records), ids(&expected));
        }
    }
}
