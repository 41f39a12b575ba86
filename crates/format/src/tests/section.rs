//! Unit tests of `section`.

use super::*;
use crate::event::{Clock, CpuId, Ktime, Tgid};
use crate::meta::{
    CommandEnd, CommandLimit, Cost, EndReason, EndedByLimit, Extra, Full, Known, Machine, Method,
    Missing, Options, Origin, RecordingFacts, Scope, StateName, Usage,
};
use crate::scripts::RecordedScript;
use crate::tally::{Suspend, Tally};

fn full() -> Metadata {
    Metadata {
        tool_version: "0.1.0".into(),
        host: "h".into(),
        kernel: "Linux 6.18".into(),
        machine: "x86_64".into(),
        cpus: vec![CpuId(0), CpuId(300)],
        page_size: 4096,
        start: Ktime(u64::MAX),
        start_clock: Clock { boot: 1, real: 2 },
        scope: Scope::Cgroup(b"/a\xff".to_vec()),
        command: vec![b"make".to_vec(), b"-j\xff".to_vec()],
        root: Some(Tgid(77)),
        cwd: b"/src".to_vec(),
        states: vec![StateName {
            bit: 2,
            letter: 'D',
            name: "TASK_UNINTERRUPTIBLE".into(),
        }],
        options: Options {
            argv_limit: 5,
            cpus: vec![CpuId(1)],
            buffer: 1 << 40,
            irq_known: true,
            allowed: Some(vec![CpuId(300)]),
        },
        missing: vec![Missing::new(None, "x"), Missing::new(Extra::Dns, "y: z")],
        ci: vec![("CI".into(), "true".into())],
        not_traced: Some("no BTF".into()),
        extras: Some(vec![0]),
        recorder: Some("perf 6.1".into()),
        hardware: Some(vec![("cpu model".into(), "x".into())]),
        origin: Some(Origin {
            method: Method::Ptrace,
            facts: RecordingFacts {
                switches: Known::Totals,
                wakings: Known::Absent,
                run_queue: Known::Sampled,
                codes: Known::Recorder,
                ..RecordingFacts::default()
            },
        }),
    }
}

#[test]
fn everything_comes_back() {
    let body = put_section(Masked::trusted(full())).unwrap();
    assert_eq!(take_section::<Metadata>(&body).unwrap(), (full(), 0));
    let value = Summary {
        end: Ktime(9),
        end_clock: Clock { boot: 3, real: 4 },
        status: Some(0x8b),
        reason: EndReason::Signal,
        cost: Cost {
            recorder_ns: 1,
            bpf_ns: None,
            setup_ns: 2,
        },
        tally: Some(Tally {
            events: Events::of(&(1..=19).collect::<Vec<_>>()),
            frames: 20,
            largest_inversion: 21,
            commit_delay: 22,
            lost: [
                (Stream::Cpu(CpuId(u16::MAX)), 23),
                (Stream::Lifecycle, 24),
                (Stream::Recorder, 25),
            ]
            .into(),
            suspends: vec![Suspend {
                since: Ktime(26),
                until: Ktime(27),
                asleep: 28,
            }],
        }),
        usage: Some(Usage {
            user_ns: 29,
            system_ns: 30,
            max_rss: 31,
            minor_faults: 32,
            major_faults: 33,
            voluntary_switches: 34,
            involuntary_switches: 35,
        }),
        machine: Some(Machine {
            throttled_ns: Some(36),
            stolen_ns: None,
            memory_stalled_ns: Some(37),
        }),
        full: Some(Full {
            limit: 38,
            command: Some(CommandEnd {
                time: Ktime(39),
                usage: Usage {
                    user_ns: 40,
                    ..Usage::default()
                },
            }),
        }),
        scripts: vec![RecordedScript {
            path: b"/w/x\xff".to_vec(),
            text: Some(b"exit 41\xff".to_vec()),
        }],
        scripts_left_out: 42,
        ended: Some(EndedByLimit {
            limit: CommandLimit::Stall,
            ns: 43,
        }),
    };
    let body = put_section(Masked::trusted(value.clone())).unwrap();
    assert_eq!(take_section::<Summary>(&body).unwrap(), (value, 0));
    let uncounted = Summary::default();
    let body = put_section(Masked::trusted(uncounted.clone())).unwrap();
    assert_eq!(take_section::<Summary>(&body).unwrap(), (uncounted, 0));
}

#[test]
fn unknown_fields_are_counted_and_missing_ones_are_default() {
    let mut body = vec![99, 3, 1, 2, 3];
    assert_eq!(
        take_section::<Metadata>(&body).unwrap(),
        (Metadata::default(), 1)
    );
    body.extend_from_slice(&put_section(Masked::trusted(full())).unwrap());
    body.extend_from_slice(&[98, 1, 0]);
    assert_eq!(take_section::<Metadata>(&body).unwrap(), (full(), 2));
}

#[test]
fn nonsense_is_refused() {
    assert!(
        take_section::<Metadata>(&[6, 1, 5, 6, 1, 5]).is_err(),
        "twice"
    );
    assert!(take_section::<Metadata>(&[6, 2, 5, 0]).is_err(), "too long");
    assert!(take_section::<Metadata>(&[6, 5, 5]).is_err(), "cut");
    assert!(
        take_section::<Metadata>(&[9, 1, 200]).is_err(),
        "unknown scope"
    );
    // The stored length of the host name is 2^60 bytes, but the name is missing.
    let mut bomb = vec![2, 9, 253];
    bomb.extend_from_slice(&(1u64 << 60).to_le_bytes());
    assert!(take_section::<Metadata>(&bomb).is_err(), "bomb");
}
