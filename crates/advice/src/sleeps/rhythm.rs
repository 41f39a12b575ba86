//! Tells sleeps that keep a rate or follow a timetable from those of a loop that checks for something.

use crate::sleeps::nap::{is_long, Nap};

/// A second in nanoseconds, which is a unit.
const SECOND: u64 = 1_000_000_000;
/// The least number of naps whose ends are compared with a rhythm. A guess: the ends of fewer naps may be regular by
/// chance.
const BEATS: usize = 10;
/// How many times more regular the ends of naps in a rhythm are than the lengths of these naps. A guess: for a program
/// that sleeps for a fixed time again and again, the lengths are more regular than the ends.
const REGULAR_FACTOR: u64 = 4;

/// The shortest time in nanoseconds by which the end of a nap drifts from a rhythm with each further nap, if all naps
/// have one length. The reasons for the drift are the work between the naps and the delay of the timer. A guess: a task
/// of real-time priority that only reads a clock needs 15 µs.
const DRIFT: u64 = 15_000;
/// The time in nanoseconds between two moments at which a program that follows a timetable acts. A guess: the moments
/// of a timetable are whole milliseconds. Some runtimes divide a nap into two waits: the first one takes whole
/// milliseconds, and the second one has a time-out of one millisecond and takes at most two milliseconds.
const TIMETABLE: u64 = 1_000_000;
/// The longest time in nanoseconds by which the timer of a program that keeps a rate is late. Runtimes such as Python's
/// asyncio wait for whole milliseconds, rounded up, and the kernel's timer comes somewhat later.
const LATEST_TIMER: u64 = 1_200_000;

/// Whether the naps of a process end at moments that the program computed in advance. Either the times between their
/// ends are more alike than their lengths, because the program subtracts the time of its work from each nap, or the
/// ends lie on the moments of a timetable. A program does this to keep a rate; a loop that checks for something does
/// not.
pub(crate) fn is_paced(slept: &[Nap]) -> bool {
    let slept = joined(slept);
    let slept = slept.as_slice();
    if slept.len() < BEATS {
        return false;
    }
    let mut between = of_pairs(slept, |one, next| next.to.since(one.to));
    let lengths: Vec<u64> = slept.iter().skip(1).map(Nap::length).collect();
    let same = |pair: &[Nap]| matches!(pair, [one, next] if one.thread == next.thread);
    let is_one_thread = slept.windows(2).all(same);
    if is_one_thread && spread(between.clone()).saturating_mul(REGULAR_FACTOR) < spread(lengths) {
        return true;
    }
    // The number of naps in a second is rounded to a whole number, because a program that keeps a rate acts a whole
    // number of times in each second. A few naps of another kind change the mean but not the median; if the timers are
    // late by unlike times, the mean is nearer to the rate.
    let sum = between.iter().copied().fold(0, u64::saturating_add);
    let mean = sum / between.len().max(1) as u64;
    let periods = [mean, median(&mut between)].map(|usual| {
        let rate = (SECOND + usual / 2).checked_div(usual).unwrap_or(0);
        SECOND.checked_div(rate).unwrap_or(0)
    });
    // If the naps are shorter than the time between two moments of a timetable, each nap ends near a moment by chance.
    // So a timetable counts only if its moments are at most as far apart as the ends of the naps.
    let grids = [TIMETABLE].into_iter().chain(periods);
    let mut grids = grids.filter(|grid| (TIMETABLE..=mean + mean / 100).contains(grid));
    grids.any(|grid| end_on_grid(slept, grid))
}

/// The long naps of a process. Some runtimes divide a nap into two: whole milliseconds, and the rest (Go's netpoll,
/// runtime/netpoll_epoll.go). Such a rest is joined to the nap before it, and other short naps are left out.
fn joined(slept: &[Nap]) -> Vec<Nap> {
    let longest = slept.iter().map(Nap::length).max().unwrap_or(0);
    let mut all: Vec<Nap> = Vec::new();
    for nap in slept {
        let is_rest = |before: &&mut Nap| {
            nap.from.since(before.to) <= TIMETABLE
                && nap.length() <= 2 * TIMETABLE
                && nap.length().saturating_mul(2) <= before.length()
        };
        if let Some(before) = all.last_mut().filter(is_rest) {
            (before.to, before.ran) = (nap.to, nap.ran);
        } else if is_long(nap, longest) {
            all.push(*nap);
        }
    }
    all
}

/// Whether four fifths of the naps end about a multiple of `grid` nanoseconds apart.
fn end_on_grid(slept: &[Nap], grid: u64) -> bool {
    // The more naps of one length there are, the farther their ends drift from any rhythm (`drift` is in nanoseconds).
    // If the ends were spread evenly over this drift, a window two thirds as wide would contain fewer than four fifths
    // of the ends. The timers of some runtimes are late by as much as a millisecond.
    let drift = DRIFT.saturating_mul(slept.len() as u64);
    let width = (drift / 3).min(grid / 10).saturating_mul(2);
    // If naps of one length had begun after the work between them, their ends would be spread over all of this work and
    // the delays of the timers. So if the sum of these is long, the window may be as wide as the time by which timers
    // are late.
    let mut work = of_pairs(slept, |one, next| next.from.since(one.to));
    let shift = median(&mut work).saturating_add(DRIFT);
    let is_exact =
        shift.saturating_mul(slept.len() as u64) >= 2 * LATEST_TIMER && grid >= 10 * LATEST_TIMER;
    let width = if is_exact {
        width.max(LATEST_TIMER)
    } else {
        width
    };
    let Some(first) = slept.first() else {
        return false;
    };
    let past = slept.iter().map(|nap| nap.to.since(first.to) % grid.max(1));
    let mut past: Vec<u64> = past.collect();
    past.sort_unstable();
    // An end just before a multiple of `grid` is near an end just after this multiple, so each remainder is also listed
    // with `grid` added to it.
    let again: Vec<u64> = past.iter().map(|past| past.saturating_add(grid)).collect();
    past.extend(again);
    let mut begin = 0;
    let mut most = 0;
    for (end, at) in past.iter().enumerate() {
        while past.get(begin).is_some_and(|first| at - first > width) {
            begin += 1;
        }
        most = most.max(end + 1 - begin);
    }
    most * 5 >= slept.len() * 4
}

/// A time in nanoseconds for each nap and the nap after it.
fn of_pairs(slept: &[Nap], time: impl Fn(&Nap, &Nap) -> u64) -> Vec<u64> {
    let pairs = slept.iter().zip(slept.iter().skip(1));
    pairs.map(|(one, next)| time(one, next)).collect()
}

fn median(times: &mut [u64]) -> u64 {
    times.sort_unstable();
    times.get(times.len() / 2).copied().unwrap_or(0)
}

/// The median of the distances between the given times and their median, in nanoseconds.
fn spread(mut times: Vec<u64>) -> u64 {
    let middle = median(&mut times);
    let mut distances: Vec<u64> = times.iter().map(|time| time.abs_diff(middle)).collect();
    median(&mut distances)
}

#[cfg(test)]
mod tests {
    use tr_analyze::model::ThreadIx;
    use tr_format::event::Ktime;

    use super::*;

    #[test]
    fn naps_that_keep_a_rate_end_in_a_rhythm() {
        let naps = |of: fn(u64) -> (u64, u64)| -> Vec<Nap> {
            let nap = |n| {
                let (from, to) = of(n);
                Nap {
                    thread: ThreadIx(0),
                    group: 0,
                    by: 0,
                    from: Ktime(from),
                    to: Ktime(to),
                    ran: Ktime(to),
                }
            };
            (0..20).map(nap).collect()
        };
        // A program that keeps a rate: a nap ends every 100 ns, and the work before each nap takes 10 to 16 ns.
        let rate = naps(|n| (n * 100 + 10 + n * 5 % 7, (n + 1) * 100));
        let pause = naps(|n| {
            let from = n * 113 + n * 5 % 7;
            (from, from + 100)
        });
        assert!(is_paced(&rate));
        assert!(!is_paced(&pause));
        assert!(!is_paced(&rate[..5]));
        // Twelve times a second, with work of 20 µs and timers that are up to 30 µs late.
        let twelve = naps(|n| {
            let end = |n: u64| n * SECOND / 12 + n * 7 % 31 * 1000;
            (end(n) + 20_000, end(n + 1))
        });
        assert!(is_paced(&twelve));
        // A replay of events whose times are multiples of 10 ms.
        let replay = naps(|n| {
            let at = |n: u64| (n * n % 13 + n * 20) * 10_000_000 + n * 11 % 37 * 1000;
            (at(n) + 200_000, at(n + 1))
        });
        assert!(is_paced(&replay));
        // Go sleeps until a tick of 10 ms in two parts: first for whole milliseconds, and then for about one more
        // millisecond. Each pair of sleeps begins when an answer comes, 1.0 to 1.9 ms after the previous tick.
        let split = (0..400u64).flat_map(|n| {
            let answered = n * 10_000_000 + 1_000_000 + n * 7 % 10 * 100_000;
            let nap = |from: u64, length: u64| Nap {
                thread: ThreadIx(0),
                group: 0,
                by: 0,
                from: Ktime(from),
                to: Ktime(from + length),
                ran: Ktime(from + length),
            };
            [
                nap(answered, 8_000_000),
                nap(answered + 8_020_000, 1_060_000),
            ]
        });
        assert!(is_paced(&split.collect::<Vec<Nap>>()));
        // Ten times a second, with work of 900 µs; the timers are late by less than a millisecond. A loop that naps for
        // 100 ms after the same work keeps no rate.
        let late = naps(|n| {
            let end = |n: u64| n * 100_000_000 + n * 7 % 10 * 100_000;
            (end(n) + 900_000, end(n + 1))
        });
        assert!(is_paced(&late));
        let fixed = naps(|n| {
            let from = n * 100_937_000 + n * 7 % 10 * 10_000;
            (from, from + 100_037_000)
        });
        assert!(!is_paced(&fixed));
        // The timers of a task of real-time priority are not late, and its work between two naps takes 15 µs.
        let exact = naps(|n| (n * 100_015_000, n * 100_015_000 + 100_000_000));
        assert!(!is_paced(&exact));
        assert!(!is_paced(&exact[..BEATS]));
    }
}
