//! Tests that FORMAT.md agrees with the code: its numbers, its lists, its worked example.

use crate::counters::Counter;
use crate::event::{
    Context, CpuId, Ktime, Reason, SchedEvent, SchedKind, Switch, Tid, Timeout, Waking, KINDS,
};
use crate::mask::Masked;
use crate::meta::Metadata;
use crate::reader::{End, Trace};
use crate::sched::SchedBlock;
use crate::source::Source;
use crate::writer::Writer;
use crate::{block, codec};
use crate::{frame, limits};

const SPEC: &str = include_str!("../FORMAT.md");

/// The lines of the block in FORMAT.md that is fenced as code with this name.
fn fenced(name: &str) -> Vec<&'static str> {
    let (_, rest) = SPEC.split_once(&format!("```{name}\n")).unwrap();
    let (block, _) = rest.split_once("```").unwrap();
    block.lines().collect()
}

/// The words of the block in FORMAT.md that is fenced as code with this name.
fn words(name: &str) -> Vec<&'static str> {
    let lines = fenced(name).into_iter();
    lines.flat_map(|line| line.split(' ')).collect()
}

fn events() -> [SchedEvent; 2] {
    let switch = SchedKind::Switch(Switch {
        prev: Tid(0),
        next: Tid(7),
        prev_state: 0,
        preempt: false,
        iowait: false,
        reason: Reason::Unknown,
        timeout: Timeout::UNKNOWN,
    });
    let waking = SchedKind::Waking(Waking {
        waker: Tid(7),
        wakee: Tid(8),
        context: Context::Task,
        new: false,
        vfork: false,
    });
    [(1000, switch), (1250, waking)].map(|(time, kind)| SchedEvent {
        time: Ktime(time),
        kind,
    })
}

#[test]
fn the_example_is_what_is_written_and_read() {
    let meta = Metadata {
        start: Ktime(1000),
        ..Metadata::default()
    };
    let mut out = Vec::new();
    let mut writer = Writer::new(&mut out, &Masked::trusted(meta.clone())).unwrap();
    for event in events() {
        writer.sched(CpuId(0), event).unwrap();
    }
    writer.flush().unwrap();
    let hex: Vec<String> = out
        .chunks(16)
        .map(|line| {
            let bytes: Vec<String> = line.iter().map(|byte| format!("{byte:02x}")).collect();
            bytes.join(" ")
        })
        .collect();
    assert_eq!(fenced("hex"), hex, "\n{}", hex.join("\n"));
    let bytes: Vec<u8> = words("hex")
        .iter()
        .map(|byte| u8::from_str_radix(byte, 16).unwrap())
        .collect();
    let trace = Trace::open(Source::bytes(bytes)).unwrap();
    assert_eq!(trace.meta(), &meta);
    assert!(matches!(trace.end(), End::Truncated { frame: 2, .. }));
    let mut block = SchedBlock::default();
    trace.read_sched(&trace.frames()[0], &mut block).unwrap();
    assert_eq!(block.iter().collect::<Vec<_>>(), events());
}

#[test]
fn numbers_are_those_of_the_code() {
    let version = format!("Version {}.{}.", frame::MAJOR, frame::MINOR);
    assert!(SPEC.contains(&version), "{version}");
    let limits = [
        ("SCHED_EVENTS", limits::SCHED_EVENTS),
        ("SCHED_BODY", limits::SCHED_BODY),
        ("SCHED_BODY_EVENT", limits::SCHED_BODY_EVENT),
        ("LIFE_EVENTS", limits::LIFE_EVENTS),
        ("LIFE_COLUMNS", limits::LIFE_COLUMNS),
        ("PAYLOAD", limits::PAYLOAD),
        ("BODY", limits::BODY),
        ("SECTION_BODY", limits::SECTION_BODY),
        ("SECTION_FIELDS", limits::SECTION_FIELDS),
        ("EXPANSION", limits::EXPANSION),
        ("EXPANSION_FREE", limits::EXPANSION_FREE),
        ("ARGV", limits::ARGV as u64),
        ("NAME", limits::NAME as u64),
        ("STRINGS", limits::STRINGS),
        ("SCRIPTS", limits::SCRIPTS),
        ("SCRIPT", limits::SCRIPT),
        ("SCRIPT_BYTES", limits::SCRIPT_BYTES),
        ("CALLS", limits::CALLS),
        ("STACKS", limits::STACKS),
        ("FRAMES", limits::FRAMES),
        ("INDEX_ENTRIES", limits::INDEX_ENTRIES),
        ("LEAST_FRAME", limits::LEAST_FRAME),
        ("DAMAGES", limits::DAMAGES),
        ("IN_VAIN", limits::IN_VAIN),
    ];
    for (name, value) in limits {
        assert!(
            SPEC.contains(&format!("| {name} | {value} |")),
            "{name} {value}"
        );
    }
    let hex = |bytes: &[u8]| -> String {
        let bytes: Vec<String> = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
        bytes.join(" ")
    };
    assert!(SPEC.contains(&format!("File header: `{}`", hex(&frame::MAGIC))));
    assert!(SPEC.contains(&format!("| mark | `{}` |", hex(&frame::SYNC))));
    assert!(SPEC.contains(&format!("`{}`.", hex(&frame::TRAILER_MAGIC))));
    use frame::kind::{CUT, INDEX, LIFE, METADATA, SCHED, SUMMARY};
    for (number, name) in [
        (METADATA, "metadata"),
        (SCHED, "scheduling"),
        (LIFE, "lifecycle"),
        (SUMMARY, "summary"),
        (INDEX, "index"),
        (CUT, "cut"),
    ] {
        assert!(SPEC.contains(&format!("| {number} {name} |")), "{name}");
    }
}

#[test]
fn classes_and_columns_are_those_of_the_code() {
    let classes: Vec<String> = block::COMMON_CLASSES
        .iter()
        .map(|(flags, state)| format!("{flags:02x}/{state:04x}"))
        .collect();
    assert_eq!(words("classes"), classes);
    assert_eq!(words("columns"), codec::COLUMN_NAMES);
    for reason in Reason::ALL {
        let row = format!("| {} | {} |", reason as u8, reason.name());
        assert!(SPEC.contains(&row), "{row}");
    }
    for counter in Counter::ALL {
        let row = format!("| {} | {} |", counter as u8, counter.name());
        assert!(SPEC.contains(&row), "{row}");
    }
    for (number, name) in KINDS {
        let name = match name {
            "progress" => "watermark".to_owned(),
            name => name.replace('_', " "),
        };
        assert!(SPEC.contains(&format!("| {number} | {name} |")), "{name}");
    }
}
