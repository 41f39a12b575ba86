//! Unit tests of `quantum`.

use super::*;

/// The times in ns that a clock with a tick of `quantum` ns shows. `steps` are the distances between these times in
/// ticks.
fn times(quantum: f64, steps: impl Iterator<Item = u64>) -> Vec<u64> {
    let mut k = 12_345_678_901u64;
    steps
        .map(|step| {
            k += step;
            (k as f64 * quantum + 0.3) as u64
        })
        .collect()
}

fn odd_steps(n: u64, least: u64, range: u64) -> impl Iterator<Item = u64> {
    let mut state = 1u64;
    (0..n).map(move |i| {
        state = state.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(1);
        least + (state >> 33) % range + if i % 50 == 0 { 90_000 } else { 0 }
    })
}

fn quantum(clock: &mut Clock, times: &[u64]) -> (f64, usize) {
    let min = times.iter().copied().min().unwrap();
    let grid = clock.grid(times, min);
    (grid.quantum as f64 / UNIT, grid.begins.len())
}

#[test]
fn a_coarse_clock_is_found_whatever_the_steps() {
    for length in [10.014822483, 41.666667, 5.0, 26.25, 100.0, 4.2] {
        for (least, range) in [(30, 700), (2, 300), (30, 12), (300, 200)] {
            if length * (least + range) as f64 > LONGEST_STEP as f64 {
                continue;
            }
            let times = times(length, odd_steps(5000, least, range));
            let (found, begins) = quantum(&mut Clock::default(), &times);
            assert!(
                (found / length - 1.0).abs() < 1e-4,
                "{length} {least}: {found}"
            );
            assert!(begins < 250, "{length} {least}: {begins}");
        }
    }
}

#[test]
fn a_fine_clock_is_one_of_nanoseconds() {
    let times = times(0.4, odd_steps(5000, 30, 700));
    let found = quantum(&mut Clock::default(), &times);
    assert_eq!(found, (1.0, 0));
}

#[test]
fn a_wrong_estimate_is_given_up() {
    let mut clock = Clock {
        quantum: Some(9.94),
        ..Clock::default()
    };
    let times = times(10.014822483, odd_steps(5000, 30, 700));
    let (found, begins) = quantum(&mut clock, &times);
    assert!(
        (found - 10.014822483).abs() < 1e-6 && begins < 10,
        "{found}"
    );
}

#[test]
fn a_clock_that_is_adjusted_begins_a_grid_and_keeps_its_quantum() {
    let mut clock = Clock::default();
    let mut times = times(10.014822483, odd_steps(5000, 30, 700));
    times[3000..].iter_mut().for_each(|time| *time += 4);
    // The clock jumps by 4 ns, which makes the estimate of the quantum slightly wrong. The next block has no jump and
    // corrects it. After that, neither a block with a jump nor a short block changes the estimate.
    let (_, begins) = quantum(&mut clock, &times);
    assert!(begins < 100, "{begins}");
    let (found, begins) = quantum(&mut clock, &times[3000..]);
    assert!((found - 10.014822483).abs() < 1e-7 && begins < 5, "{found}");
    times[3000..].iter_mut().for_each(|time| *time += 4);
    let (same, begins) = quantum(&mut clock, &times);
    assert!(same == found && begins < 20, "{same} {begins}");
    assert_eq!(quantum(&mut clock, &times[4000..4020]), (found, 0));
}

#[test]
fn every_time_is_on_its_grid() {
    let mut clock = Clock::default();
    let mut times = times(10.014822483, odd_steps(2000, 30, 700));
    for at in (20..2000).step_by(40) {
        times[at] -= 1000 + at as u64;
    }
    times.extend([0, u64::MAX, 5, 1 << 63]);
    let min = 0;
    let grid = clock.grid(&times, min);
    let (mut begin, mut phase) = (min, grid.phase);
    let mut begins = grid.begins.iter().peekable();
    for (at, (time, k)) in times.iter().zip(&grid.k).enumerate() {
        if let Some((_, new)) = begins.next_if(|(begin, _)| *begin == at) {
            (begin, phase) = (*time, *new);
        }
        assert_eq!(begin.wrapping_add(offset(*k, grid.quantum, phase)), *time);
    }
    assert!(begins.next().is_none());
}
