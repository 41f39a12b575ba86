//! A part of a trace, read from its last checkpoint on, against the same part when the
//! whole trace is read.
#![allow(clippy::unwrap_used, clippy::expect_used)] // of our own traces, in a test

use std::sync::atomic::{AtomicU32, Ordering};

use proptest::prelude::*;
use tr_analyze::{analyze, analyze_window, Options};
use tr_format::checkpoint::{Checkpoint, Step, Who};
use tr_format::event::{CpuId, Exit, Ktime, Tid};
use tr_format::reader::Trace;
use tr_format::source::Source;
use tr_format::window::Place;
use tr_format::writer::{Often, Writer};
use tr_sim::recording::Recording;
use tr_sim::strategy;

/// Checkpoints at every second mark of progress, and an index in many frames.
fn set(writer: &mut Writer<&mut Vec<u8>>) {
    writer.set_checkpoints(Often {
        events: 1,
        bytes: 0,
    });
    writer.set_index_rows(5);
}

#[test]
fn a_part_is_what_it_is_in_the_whole() {
    let [parts, restored, refused] = [const { AtomicU32::new(0) }; 3];
    let span = (0..=1000u64, 0..=1000u64, prop::option::of(0..4u16));
    let cases = (strategy::lossless(3_000_000), span);
    let mut runner = proptest::test_runner::TestRunner::new(strategy::cases(1500));
    let done = runner.run(&cases, |(case, (from, length, cpu))| {
        let (mut recording, _) = Recording::record(&case.config);
        case.plan.apply(&mut recording);
        let bytes = recording.to_file_with(&case.cut, set).expect("a file");
        let whole = Trace::open(Source::bytes(bytes.clone())).expect("a trace");
        let all = case.config.duration;
        let options = Options {
            from: Some(all * from / 1000),
            to: Some(all * (from + length) / 1000 + 1),
            cpu: cpu.map(CpuId),
            timeline: true,
            ..Options::default()
        };
        let source = Source::bytes(bytes);
        let place = Place::find(&source, options.from, options.to).expect("no error");
        let Some(place) = place else { return Ok(()) };
        let window = place.open(source);
        parts.fetch_add(1, Ordering::Relaxed);
        let Some(part) = analyze_window(&window, &options, &mut |_, _| {}) else {
            refused.fetch_add(1, Ordering::Relaxed);
            return Ok(());
        };
        restored.fetch_add(u32::from(window.checkpoint.is_some()), Ordering::Relaxed);
        let mut expected = analyze(&whole, &options);
        expected.quality.only_part = true;
        let expected = format!("{expected:#?}");
        let part = format!("{part:#?}");
        let differ = |(a, b): &(&str, &str)| a != b;
        let mut lines = expected.lines().zip(part.lines());
        let first = lines.position(|pair| differ(&pair));
        let near = |text: &str| {
            let from = first.unwrap_or(0).saturating_sub(40);
            text.lines()
                .skip(from)
                .take(44)
                .collect::<Vec<_>>()
                .join("\n")
        };
        if expected != part {
            let at = window.checkpoint.as_ref().map(|checkpoint| checkpoint.at);
            return Err(TestCaseError::fail(format!(
                "{options:?}, from {at:?}: whole\n{}\npart\n{}\n{}",
                near(&expected),
                near(&part),
                case.draw(400)
            )));
        }
        Ok(())
    });
    done.unwrap_or_else(|error| panic!("{error}"));
    let [parts, restored, refused] = [parts, restored, refused].map(AtomicU32::into_inner);
    println!("{parts} parts, {restored} from a checkpoint, {refused} refused");
    assert!(
        restored * 5 > parts,
        "{restored} of {parts} from a checkpoint"
    );
    assert!(refused * 20 < parts, "{refused} of {parts} refused");
}

/// A checkpoint from a stranger may say anything; only its places are certain to be there.
#[test]
fn a_checkpoint_that_lies_does_no_harm() {
    let cases = (strategy::lossless(3_000_000), any::<u64>());
    let mut runner = proptest::test_runner::TestRunner::new(strategy::cases(300));
    let lied = AtomicU32::new(0);
    let done = runner.run(&cases, |(case, seed)| {
        let (recording, _) = Recording::record(&case.config);
        let bytes = recording.to_file_with(&case.cut, set).expect("a file");
        let options = Options {
            from: Some(case.config.duration * 7 / 10),
            timeline: true,
            ..Options::default()
        };
        let source = Source::bytes(bytes);
        let place = Place::find(&source, options.from, None).expect("no error");
        let Some(place) = place else { return Ok(()) };
        let mut window = place.open(source);
        let Some(checkpoint) = &mut window.checkpoint else {
            return Ok(());
        };
        lie(checkpoint, seed);
        lied.fetch_add(1, Ordering::Relaxed);
        // Whatever it says then.
        let _ = analyze_window(&window, &options, &mut |_, _| {});
        Ok(())
    });
    done.unwrap_or_else(|error| panic!("{error}"));
    assert!(lied.into_inner() > 20);
}

/// Changes many things; places stay within the lists.
fn lie(checkpoint: &mut Checkpoint, seed: u64) {
    let mut state = seed | 1;
    let mut draw = |below: usize| {
        state = state.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(1);
        (state >> 33) as usize % below.max(1)
    };
    let (tasks, processes) = (checkpoint.tasks.len(), checkpoint.processes.len());
    for process in &mut checkpoint.processes {
        if draw(3) == 0 {
            process.parent = Some(draw(processes) as u32);
            process.forked ^= draw(2) == 0;
            process.status = Some(draw(99999) as u32);
            process.program = None;
        }
    }
    let steps: Vec<Step> = checkpoint
        .tasks
        .iter()
        .flat_map(|task| task.steps.clone())
        .collect();
    for task in &mut checkpoint.tasks {
        if draw(2) == 0 {
            task.process = draw(processes) as u32;
            task.parent = Some(draw(tasks) as u32);
            task.vfork_child = Some(draw(tasks) as u32);
            task.forked ^= draw(2) == 0;
            let count = draw(5);
            task.steps = (0..count)
                .filter_map(|_| steps.get(draw(steps.len())).copied())
                .collect();
            task.exit = (draw(2) == 0).then(|| (Ktime(draw(usize::MAX) as u64), Exit::default()));
        }
    }
    for cpu in &mut checkpoint.cpus {
        cpu.current = match draw(3) {
            0 => Who::Task(draw(tasks) as u32),
            1 => Who::Other(Tid(draw(100) as u32)),
            _ => Who::Interrupt,
        };
    }
}
