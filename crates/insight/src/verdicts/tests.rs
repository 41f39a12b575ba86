//! Unit tests of the verdicts: the suite's median, and a simulated build beside tasks that spin.

use std::collections::BTreeSet;

use tr_analyze::model::ProcessIx;
use tr_format::event::{LifeEvent, LifeKind, Mark, Point, Stream};
use tr_sim::config::Config;
use tr_sim::recording::Recording;
use tr_sim::sink::Sink;

use super::*;

/// The analysis of a simulated recording, with its timeline.
fn analyzed(recording: &tr_sim::recording::Recording) -> Analysis {
    let options = tr_analyze::Options {
        timeline: true,
        ..tr_analyze::Options::default()
    };
    tr_analyze::analyze(&tr_sim::examples::trace(recording), &options)
}

fn beside(spinners: u16) -> Analysis {
    analyzed(&tr_sim::examples::build_beside(spinners))
}

#[test]
fn a_step_beside_tasks_that_spin_has_little_of_what_it_wants() {
    let (idle, busy) = (beside(0), beside(8));
    let whole = |analysis: &Analysis| {
        let steps = Steps::new(analysis, &[]);
        let verdicts = Verdicts::new(analysis, &steps);
        let it = verdicts.figures(0).cloned().unwrap();
        assert!(it.parts.wanted() <= it.wall && it.ns <= it.wall, "{it:?}");
        it
    };
    let (idle, busy) = (whole(&idle), whole(&busy));
    // This recording does not show which tasks had the CPUs.
    assert_eq!(busy.part, WallPart::Nobody, "{busy:?}");
    assert!(
        busy.parts.share() < Some(50) && idle.parts.share() > busy.parts.share(),
        "{busy:?}"
    );
    // No step failed, so the verdict is not reported as a reason.
    assert!(!busy.is_reported && busy.by.is_empty(), "{busy:?}");
}

/// Checks that a step's time on a CPU does not include waits in run queues while the step's own tasks have the CPUs.
#[test]
fn the_time_on_a_cpu_is_that_of_the_path() {
    let world = tr_sim::scenario::make(8, 40);
    let config = tr_sim::config::Config::new(world, 2, 2_000_000_000).all();
    let (recording, _) = tr_sim::recording::Recording::record(&config);
    let analysis = analyzed(&recording);
    let sums = crate::verdicts::step_sums::sums(&analysis.into(), &[]);
    let mut queued = 0;
    for sum in sums.values() {
        let on_cpu = sum.spent.unwrap().of(tr_analyze::kinds::TimeKind::OnCpu);
        assert!(sum.part(WallPart::Work) <= Some(on_cpu), "{sum:?}");
        queued += sum.queued;
    }
    assert!(queued > 0, "a step's tasks wait for each other");
}

/// Checks that many nested steps have figures: each of 3,300 tests is inside 62 other spans, so there are 204,600 pairs
/// of a test and a step around it.
#[test]
fn tests_inside_many_steps_have_figures() {
    let mut config = Config::new(tr_sim::scenario::pipe(), 2, u64::MAX >> 12).all();
    config.max_events = 20_000;
    let (mut recording, truth) = Recording::record(&config);
    let pid = truth.tasks.first().map(|task| task.tid);
    for number in 0..62 {
        let begin = Mark {
            name: number.to_string().into_bytes().into(),
            point: Point::Begin,
            pid,
            ..Mark::default()
        };
        let event = LifeEvent {
            time: recording.meta.start,
            cpu: None,
            kind: LifeKind::Mark(begin),
        };
        recording.life(Stream::Recorder, event);
    }
    recording.add_tests(pid, 3_300);
    let analysis = analyzed(&recording);
    let steps = Steps::new(&analysis, &[]);
    let around = steps.list().iter().map(|step| step.depth);
    assert_eq!(around.max(), Some(62));
    let verdicts = Verdicts::new(&analysis, &steps);
    assert!((0..steps.list().len()).all(|at| verdicts.figures(at).is_some()));
}

fn step(kind: StepKind, status: u32) -> Step {
    Step {
        name: "x".into(),
        brief: None,
        stable_name: None,
        file: None,
        kind,
        parent: None,
        depth: 0,
        from: tr_format::event::Ktime(0),
        to: tr_format::event::Ktime(1_000_000_000),
        started_before: false,
        ended: true,
        process: None,
        thread: None,
        has_work: true,
        place_error: Some(0),
        doubt: None,
        status: Some(status),
        result: None,
        is_worker: false,
        integration: None,
    }
}

fn divided(parts: &[(WallPart, u64)]) -> StepParts {
    StepParts {
        times: parts.iter().copied().collect(),
        ..StepParts::default()
    }
}

#[test]
fn only_what_failed_or_was_slow_is_reported_and_only_if_it_was_held_back() {
    // The steps are 10 s long: 1000 units of 10 ms.
    const MS: u64 = 10_000_000;
    let long = |status| Step {
        to: tr_format::event::Ktime(1000 * MS),
        ..step(StepKind::Test, status)
    };
    let (passed, failed) = (long(0), long(256));
    let starved = divided(&[(WallPart::Work, 100 * MS), (WallPart::Others, 900 * MS)]);
    let is_reported = |step: &Step, parts: &StepParts, median| {
        let it = judge(step, step.failed(), parts, median).unwrap();
        (it.part, it.is_reported)
    };
    assert_eq!(
        is_reported(&failed, &starved, None),
        (WallPart::Others, true)
    );
    assert_eq!(
        is_reported(&passed, &starved, None),
        (WallPart::Others, false)
    );
    assert_eq!(
        is_reported(&passed, &starved, Some(91)),
        (WallPart::Others, true)
    );
    // The other tests of the suite got hardly more of the CPU time that they wanted (15 %) than this test (10 %). So
    // the lack of CPU time does not explain why this test failed or was slow, and nothing is reported.
    assert_eq!(
        is_reported(&passed, &starved, Some(15)),
        (WallPart::Others, false)
    );
    let own = divided(&[(WallPart::Work, 700 * MS), (WallPart::Others, 300 * MS)]);
    assert_eq!(
        is_reported(&failed, &own, Some(99)),
        (WallPart::Work, false)
    );
    let slept = divided(&[(WallPart::Sleep, 900 * MS), (WallPart::Disk, 100 * MS)]);
    assert_eq!(is_reported(&failed, &slept, None), (WallPart::Sleep, false));
    let disk = divided(&[(WallPart::Sleep, 300 * MS), (WallPart::Disk, 700 * MS)]);
    assert_eq!(is_reported(&failed, &disk, None), (WallPart::Disk, true));
    // If several causes kept the step from a CPU, the sum of the times of all these causes decides whether the verdict
    // is reported. The verdict names the cause with the longest time.
    let both = divided(&[
        (WallPart::Work, 400 * MS),
        (WallPart::Own, 250 * MS),
        (WallPart::Quota, 350 * MS),
    ]);
    assert_eq!(is_reported(&failed, &both, None), (WallPart::Quota, true));
    // No part is large enough to be named, or too much time is unknown.
    let even = [
        WallPart::Work,
        WallPart::Disk,
        WallPart::Network,
        WallPart::Sleep,
    ]
    .map(|part| (part, 250 * MS));
    assert_eq!(
        is_reported(&failed, &divided(&even), None),
        (WallPart::Unknown, false)
    );
    let unknown = divided(&[(WallPart::Unknown, 200 * MS), (WallPart::Others, 800 * MS)]);
    assert_eq!(judge(&failed, true, &unknown, None), None);
}

/// Checks that a lack of CPU time is reported as the reason for a failure only if the step had a time limit: on a busy
/// machine every step lacks CPU time.
#[test]
fn a_starved_step_that_failed_has_to_have_had_a_limit_of_time() {
    const MS: u64 = 1_000_000;
    let starved = divided(&[(WallPart::Work, 100 * MS), (WallPart::Others, 900 * MS)]);
    let is_reported = |kind, status, parts: &StepParts, median| {
        judge(&step(kind, status), true, parts, median)
            .unwrap()
            .is_reported
    };
    let (test, unit) = (StepKind::Test, StepKind::Unit);
    // A failed assertion of a test and an error of a compiler do not depend on time.
    assert!(!is_reported(test, 256, &starved, None));
    assert!(!is_reported(unit, 256, &starved, None));
    // The other tests of the suite got nearly the CPU time that they wanted (90 %), so the lack of CPU time is reported
    // for this test. Further below, it is also reported if `timeout` or a signal ended the step, or if a shell reports
    // such a signal.
    assert!(is_reported(test, 256, &starved, Some(90)));
    let less = divided(&[(WallPart::Work, 300 * MS), (WallPart::Others, 450 * MS)]);
    assert!(!is_reported(test, 256, &less, Some(60)));
    // The lack of CPU time is also reported if the test waited long enough to exceed a short time limit, although the
    // other tests of its suite lacked CPU time as well.
    assert!(is_reported(test, 256, &starved, Some(12)));
    for status in [124 << 8, 9, 15, 137 << 8] {
        assert!(is_reported(unit, status, &starved, None), "{status}");
    }
    assert!(!is_reported(unit, 11, &starved, None), "SIGSEGV");
    // The step also waited for a timer while other threads had no CPU, so it may have had a time limit.
    let timed = StepParts {
        timers: 500 * MS,
        ..divided(&[(WallPart::Work, 100 * MS), (WallPart::Others, 900 * MS)])
    };
    assert!(is_reported(unit, 256, &timed, None));
    // Only a time limit can make a lack of CPU time the reason for a failure.
    let late = |status, parts: &StepParts| {
        let verdict = judge(&step(test, status), true, parts, Some(90));
        verdict.unwrap().is_late
    };
    assert!(late(256, &timed) && late(124 << 8, &starved) && !late(256, &starved));
    // A slow disk is not the reason for a compiler's error either.
    let disk = divided(&[(WallPart::Work, 100 * MS), (WallPart::Disk, 900 * MS)]);
    assert!(is_reported(test, 256, &disk, None) && !is_reported(unit, 256, &disk, None));
}

/// Checks that a process which was killed while it worked counts as the end of a time limit. A process that was killed
/// while it waited for its next job does not count.
#[test]
fn a_time_out_of_a_child_that_has_no_cpu_is_reported() {
    let is_reported = |status: u32, idle: bool| {
        let mut analysis = beside(8);
        let steps = Steps::new(&analysis, &[]);
        let list = steps.list();
        let owned: BTreeSet<ProcessIx> = list.iter().filter_map(|step| step.process).collect();
        let root = list[0].process.unwrap();
        let starved = analysis.process_ids().filter(|ix| !owned.contains(ix));
        let starved = starved.filter(|ix| analysis.process(*ix).times.sleep == 0);
        let starved = starved.max_by_key(|ix| analysis.process(*ix).times.run_queue);
        let child = &mut analysis.processes[starved.unwrap().0 as usize];
        assert!(child.times.run_queue >= SHORTEST_PART, "{:?}", child.times);
        child.status = Some(status);
        if idle {
            child.times.sleep = child.end.since(child.start);
        }
        analysis.processes[root.0 as usize].status = Some(2 << 8);
        let steps = Steps::new(&analysis, &[]);
        let verdicts = Verdicts::new(&analysis, &steps);
        verdicts.of(0).is_some_and(|verdict| verdict.is_reported)
    };
    assert!(is_reported(9, false));
    assert!(!is_reported(9, true));
    assert!(!is_reported(1 << 8, false));
}

#[test]
fn the_sentence_has_its_evidence() {
    let starved = divided(&[
        (WallPart::Work, 120_000_000),
        (WallPart::Others, 880_000_000),
    ]);
    let mut it = judge(&step(StepKind::Test, 256), true, &starved, Some(91)).unwrap();
    it.by = vec![("cc1".into(), 800_000_000)];
    assert_eq!(
        it.text(),
        "88 % of its 1.00 s went to run-queue wait: other tasks (cc1 800 ms); wanted 1.00 s of CPU, had 120 ms \
         (12 %; its suite's median 91 %)"
    );
}

#[test]
fn the_median_is_that_of_the_other_tests() {
    let mut steps = [10, 20, 30, 90]
        .map(|had| (step(StepKind::Test, 0), had))
        .to_vec();
    let shares = |steps: &[(Step, u64)]| {
        let all: Vec<Option<StepParts>> = steps
            .iter()
            .map(|(_, had)| {
                Some(divided(&[
                    (WallPart::Work, *had),
                    (WallPart::Others, 100 - had),
                ]))
            })
            .collect();
        let medians = Medians::of_all(steps.iter().map(|(step, _)| step), &all);
        let of = steps.iter().zip(&all).enumerate();
        of.map(|(at, ((step, _), divided))| medians.of(step, at, divided.as_ref()?))
            .collect::<Vec<_>>()
    };
    assert_eq!(shares(&steps), [Some(30), Some(30), Some(20), Some(20)]);
    steps.pop();
    assert_eq!(shares(&steps), [None; 3], "too few");
}

/// Checks that short steps also have figures, because a JUnit report contains the figures of short tests.
#[test]
fn a_short_step_has_figures() {
    let analysis = beside(0);
    let steps = Steps::new(&analysis, &[]);
    let verdicts = Verdicts::new(&analysis, &steps);
    let list = steps.list().iter().enumerate();
    let mut short = list.filter(|(_, step)| (1..SHORTEST_PART).contains(&step.wall()));
    assert!(short.any(|(at, _)| verdicts
        .figures(at)
        .is_some_and(|verdict| verdict.parts.get(WallPart::Work) > 0)));
}
