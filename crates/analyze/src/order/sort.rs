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
/// Bits of a digit, at most.
const DIGIT: u32 = 11;

impl Sorter {
    /// Sorts `records`, none of which is earlier than `least`.
    pub(super) fn sort(&mut self, records: &mut Vec<Record>, least: u64) {
        let (mut before, mut most, mut sorted) = (least, least, true);
        for record in records.iter() {
            sorted &= before <= record.time;
            before = record.time;
            most = most.max(record.time);
        }
        if sorted {
            return;
        }
        let bits = u64::BITS - (most - least).leading_zeros();
        if records.len() > 1 << PLACE || bits + PLACE > u64::BITS {
            records.sort_by_key(|record| record.time);
            return;
        }
        let key = |(place, record): (usize, &Record)| (record.time - least) << PLACE | place as u64;
        self.keys.clear();
        self.keys.extend(records.iter().enumerate().map(key));
        self.other.clear();
        self.other.resize(records.len(), 0);
        let rounds = bits.div_ceil(DIGIT).max(1);
        let width = bits.div_ceil(rounds);
        for round in 0..rounds {
            by_digit(&self.keys, &mut self.other, PLACE + round * width, width);
            std::mem::swap(&mut self.keys, &mut self.other);
        }
        std::mem::swap(records, &mut self.from);
        records.clear();
        let places = self.keys.iter().map(|key| *key as usize % (1 << PLACE));
        records.extend(places.filter_map(|place| self.from.get(place)));
    }
}

/// Puts `from` into `to` in the order of `width` bits at `shift`.
#[allow(clippy::indexing_slicing)] // A digit is below the number of counters, and they count to the length.
fn by_digit(from: &[u64], to: &mut [u64], shift: u32, width: u32) {
    let mut starts = [0u32; 1 << DIGIT];
    let mask = (1u64 << width) - 1;
    let digit = |key: u64| (key >> shift & mask) as usize % (1 << DIGIT);
    for key in from {
        starts[digit(*key)] += 1;
    }
    let mut sum = 0;
    for start in &mut starts {
        sum += std::mem::replace(start, sum);
    }
    for key in from {
        let place = &mut starts[digit(*key)];
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
            Sorter::default().sort(&mut records, least);
            let ids = |records: &[Record]| records.iter().map(|r| (r.time, r.from)).collect::<Vec<_>>();
            prop_assert_eq!(ids(&records), ids(&expected));
        }
    }
}
