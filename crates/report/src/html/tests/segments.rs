//! Unit tests of `segments`.

use super::*;
use tr_text::words::{BLOCKED, RUN_QUEUE, SLEEP, STATES};

#[test]
fn shares_add_up() {
    for times in [
        [1, 1, 1, 0, 0],
        [1, 1, 1, 1, 1],
        [0, 0, 0, 7, 0],
        [0, 0, 0, 0, 9],
        [u64::MAX / 8, 3, 0, 1, 0],
    ] {
        let shares = shares(&times);
        let sum: u32 = shares.iter().map(|share| u32::from(*share)).sum();
        assert!(sum <= 255, "{times:?} {shares:?}");
        let unknown = times[4] as f64 / times.iter().sum::<u64>() as f64;
        assert!((f64::from(255 - sum) / 255.0 - unknown).abs() < 0.003);
    }
    assert_eq!(shares(&[1, 0, 0, 3, 0]), [64, 0, 0, 191]);
    assert_eq!(shares(&[0; 5]), [0; 4]);
}

fn analysis() -> Analysis {
    let trace = concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/../../fixtures/traces/build.bin"
    );
    let file = std::fs::read(trace).unwrap();
    let trace = tr_format::reader::Trace::open(tr_format::source::Source::bytes(file));
    let options = tr_analyze::Options {
        timeline: true,
        ..Default::default()
    };
    tr_analyze::analyze(&trace.unwrap(), &options)
}

/// For each thread, the time in ns that its pieces have in each state, and the largest error in ns that rounded shares
/// may cause.
fn sums(segments: &Segments) -> Vec<([f64; 5], f64)> {
    let (mut at, mut mixed) = (0, 0);
    let of = |count: &u64| {
        let (mut sums, mut off) = ([0.0; 5], 0.0);
        for _ in 0..*count {
            let length = (segments.lengths[at] * segments.unit) as f64;
            match segments.kinds[at] {
                MIXED_KIND => {
                    let shares = segments.shares[mixed];
                    mixed += 1;
                    for (sum, share) in sums.iter_mut().zip(shares) {
                        *sum += length * f64::from(share) / 255.0;
                    }
                    let known: f64 = shares.iter().map(|share| f64::from(*share)).sum();
                    sums[4] += length * (1.0 - known / 255.0);
                    off += length / 255.0;
                }
                kind => sums[kinds()[usize::from(kind)].1] += length,
            }
            off += segments.unit as f64;
            at += 1;
        }
        (sums, off)
    };
    segments.counts.iter().map(of).collect()
}

/// The names that a wait for this reason can have on the page.
fn names(awaited: WaitReason) -> Vec<&'static str> {
    match awaited {
        WaitReason::File | WaitReason::Disk => vec!["fsync", "page fault", awaited.noun()],
        WaitReason::Woken => vec!["run queue, woken"],
        WaitReason::Sleep => vec!["other sleep"],
        _ => vec![awaited.noun()],
    }
}

/// The page's script compares some kinds and states with fixed numbers and words. The numbers and words of this crate
/// must be the same.
#[test]
fn the_page_finds_its_kinds_and_states() {
    let data = include_str!("../../../web/src/data.ts");
    let states = "[ON, WAIT, BLOCKED, ASLEEP, UNKNOWN] = [0, 1, 2, 3, 4];";
    assert!(data.contains(states) && data.contains("NOTHING = 0;"));
    assert_eq!(STATES, [ON_CPU, RUN_QUEUE, BLOCKED, SLEEP, UNKNOWN]);
    assert_eq!((kinds()[0].0, kinds()[0].1), (UNKNOWN, 4));
    // The names "run queue, woken" and "other sleep" must each belong to exactly one kind of pieces.
    let of = |name: &str| {
        kinds()
            .into_iter()
            .filter(|kind| kind.0 == name)
            .collect::<Vec<_>>()
    };
    assert_eq!(of("run queue, woken"), [("run queue, woken", 1, None)]);
    assert_eq!(of("other sleep"), [("other sleep", 3, None)]);
    // The page calls sums over several kinds by these words, so no single kind may have such a name.
    assert!(of(STATES[1]).is_empty() && of(STATES[3]).is_empty());
    let chart = include_str!("../../../web/src/units-chart.ts");
    assert!(chart.contains("=== \"job slot\""));
    assert_eq!(of("job slot").len(), 1);
    // Only one kind of pieces is on a CPU. The page's script has the number of this kind.
    let runs = kinds().iter().filter(|kind| kind.1 == 0).count();
    assert_eq!((runs, kinds()[usize::from(RUNNING_KIND)].1), (1, 0));
}

#[test]
fn the_kind_of_a_stretch_has_its_state() {
    let analysis = analysis();
    let timeline = analysis.timeline.as_ref().unwrap();
    let mut seen = std::collections::BTreeSet::new();
    for thread in analysis.thread_ids() {
        for stretch in timeline.of(thread) {
            let kind = kind(&analysis, thread, &stretch);
            let (name, state, _) = kinds()[usize::from(kind)];
            // A wait whose kind is not known may be blocked or asleep, so its state is not compared.
            let known = stretch.doing != Bucket::Unknown && kind != UNKNOWN_WAIT;
            assert!(
                !known || state == stretch.doing.state(),
                "{name}: {stretch:?}"
            );
            if let Some(awaited) = analysis.awaited(thread, &stretch) {
                assert!(names(awaited).contains(&name), "{name}: {awaited:?}");
            }
            seen.insert(name);
        }
    }
    let some = [ON_CPU, "run queue, woken", "child", "pipe", "disk"];
    assert!(some.iter().all(|name| seen.contains(name)), "{seen:?}");
}

#[test]
fn pieces_add_up_to_the_times() {
    let analysis = analysis();
    let all = segments(&analysis, ROOM);
    assert_eq!((all.grain, all.unit, all.shares.len()), (0, 1, 0));
    for room in [ROOM, 2_000, 0] {
        let some = segments(&analysis, room);
        let most = room.max(2 * analysis.threads.len() as u64);
        assert!(
            some.kinds.len() as u64 <= most,
            "{room}: {}",
            some.kinds.len()
        );
        assert_eq!(some.kinds.len(), some.lengths.len());
        assert_eq!(some.kinds.len(), some.by.len() + some.shares.len());
        assert_eq!(some.shares.is_empty(), room == ROOM, "{room}");
        for (thread, (sums, off)) in analysis.threads.iter().zip(sums(&some)) {
            let times = thread.times_by_events();
            let truth = [
                times.on_cpu,
                times.run_queue,
                times.blocked,
                times.sleep,
                times.unknown,
            ];
            let off = if some.grain == 0 { 0.0 } else { off };
            for (is, should) in sums.iter().zip(truth) {
                let error = (is - should as f64).abs();
                assert!(
                    error <= off + 1e-3,
                    "{room}, {}: {sums:?} {truth:?}",
                    thread.tid.0
                );
            }
        }
    }
}
