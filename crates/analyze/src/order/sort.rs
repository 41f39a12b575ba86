//! Sorts records by time with a stable radix sort, which costs the same for two streams and for two
//! hundred.

use super::Record;

/// Sorts records by time with the stable sort of the standard library. All callers share this function, so
/// the sort is compiled once.
pub(super) fn by_time(records: &mut [Record]) {
    records.sort_by_key(|record| record.time);
}

/// The working memory of the radix sort, which is kept from one sorted list of events to the next.
#[derive(Debug, Default)]
pub(super) struct Sorter {
    keys: Vec<u64>,
    other: Vec<u64>,
    from: Vec<Record>,
}

/// The number of low bits of a sort key that hold the place of the record in the unsorted list. The time
/// is in the bits above.
const PLACE: u32 = 16;
/// The number of bits of a digit of the radix sort.
const DIGIT: u32 = 11;

/// The largest number of digits, and so of rounds, for which the radix sort is used. Runs whose times need more
/// digits, and runs of more than 2^16 records, are sorted by the standard library.
const DIGITS: usize = 4;

impl Sorter {
    /// Sorts `records` by time. All of their times are within `least..=most`.
    pub(super) fn sort(&mut self, records: &mut Vec<Record>, (least, most): (u64, u64)) {
        let bits = u64::BITS - most.saturating_sub(least).leading_zeros();
        let rounds = bits.div_ceil(DIGIT) as usize;
        if records.len() > 1 << PLACE || rounds > DIGITS {
            return by_time(records);
        }
        let mut starts = [[0; 1 << DIGIT]; DIGITS];
        let starts = starts.get_mut(..rounds).unwrap_or_default();
        self.count(records, least, starts);
        for (round, starts) in (0..).zip(starts) {
            distribute(&self.keys, &mut self.other, round, starts);
            std::mem::swap(&mut self.keys, &mut self.other);
        }
        std::mem::swap(records, &mut self.from);
        records.clear();
        let places = self.keys.iter().map(|key| *key as usize % (1 << PLACE));
        records.extend(places.filter_map(|place| self.from.get(place)));
    }

    /// Computes the sort keys of the records and, for every round of the radix sort, the place at which
    /// the keys with each digit begin.
    #[allow(clippy::indexing_slicing)] // A digit is below the number of counters.
    fn count(&mut self, records: &[Record], least: u64, starts: &mut [[u32; 1 << DIGIT]]) {
        self.keys.clear();
        self.keys.extend((0..).zip(records).map(|(place, record)| {
            let key = (record.time - least) << PLACE | place;
            for (round, starts) in (0..).zip(&mut *starts) {
                starts[digit(key, round)] += 1;
            }
            key
        }));
        self.other.resize(records.len(), 0);
        for starts in starts {
            let mut sum = 0;
            for start in starts {
                sum += std::mem::replace(start, sum);
            }
        }
    }
}

/// The digit of a sort key by which the given round of the radix sort sorts.
fn digit(key: u64, round: u32) -> usize {
    (key >> (PLACE + round * DIGIT)) as usize % (1 << DIGIT)
}

/// Copies the sort keys `from` into `to`, ordered by their digit of this round. `starts` has the place at
/// which the keys with each digit begin.
#[allow(clippy::indexing_slicing)] // A digit is below the number of counters, and they count to the length.
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
        /// The result of the radix sort equals that of the standard library's sort, for narrow and wide
        /// spans of time.
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
            let times = || expected.iter().map(|record| record.time);
            let span = (least.min(times().min().unwrap_or(0)), times().max().unwrap_or(0));
            Sorter::default().sort(&mut records, span);
            let ids = |records: &[Record]| records.iter().map(|r| (r.time, r.from)).collect::<Vec<_>>();
            prop_assert_eq!(ids(&records), ids(&expected));
        }
    }
}
