//! Parts of a trace, found by its index.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing)]

#[path = "../../../fuzz/src/pieces.rs"]
mod pieces;

use pieces::id;
use tr_format::checkpoint::{Checkpoint, Step};
use tr_format::event::*;
use tr_format::frame::Header;
use tr_format::meta::{Metadata, Summary};
use tr_format::reader::{FrameInfo, Trace};
use tr_format::source::Source;
use tr_format::window::{Place, Window};
use tr_format::writer::{Often, Writer};

const START: u64 = 1_000_000;
const SECOND: u64 = 1_000_000_000;

fn switch(time: u64, prev: u32, next: u32) -> SchedEvent {
    SchedEvent {
        time: Ktime(time),
        kind: SchedKind::Switch {
            prev: Tid(prev),
            next: Tid(next),
            prev_state: 1,
            preempt: false,
            iowait: false,
        },
    }
}

fn said(time: u64, kind: LifeKind) -> LifeEvent {
    LifeEvent {
        time: Ktime(time),
        cpu: None,
        kind,
    }
}

fn fork(tid: u32) -> LifeKind {
    LifeKind::Fork(Fork {
        parent_tid: Tid(1),
        parent_tgid: Tgid(1),
        tid: Tid(tid),
        tgid: Tgid(tid),
        start_time: Ktime(0),
        ns_tid: Tid(tid),
        cgroup: CgroupId(0),
        comm: Comm::new(b"made"),
    })
}

/// Ten seconds, in each of which a task is forked and runs on a CPU, and a mark of
/// progress at the end of each; `change` puts something else into one of them.
fn trace(often: Often, mut change: impl FnMut(u64, &mut Writer<Vec<u8>>)) -> Vec<u8> {
    let meta = Metadata {
        start: Ktime(START),
        ..Metadata::default()
    };
    let mut writer = Writer::new(Vec::new(), &meta).unwrap();
    writer.set_checkpoints(often);
    for second in 0..10 {
        let at = START + second * SECOND;
        let tid = 100 + second as u32;
        writer
            .life(Stream::Lifecycle, said(at + 1, fork(tid)))
            .unwrap();
        writer.sched(CpuId(0), switch(at + 2, 0, tid)).unwrap();
        writer.sched(CpuId(0), switch(at + 3, tid, 0)).unwrap();
        change(second, &mut writer);
        let mark = said(at + SECOND - 1, LifeKind::Progress);
        writer.life(Stream::Recorder, mark).unwrap();
        writer.flush().unwrap();
    }
    let summary = Summary {
        end: Ktime(START + 10 * SECOND),
        ..Summary::default()
    };
    writer.finish(&summary).unwrap().0
}

const ALWAYS: Often = Often {
    events: 1,
    bytes: 0,
};

fn part(bytes: Vec<u8>, from: u64, to: u64) -> Option<Window> {
    let source = Source::bytes(bytes);
    let place = Place::find(&source, Some(from), Some(to)).unwrap();
    place.map(|place| place.open(source))
}

#[test]
fn a_part_is_read_from_the_checkpoint_before_it() {
    let bytes = trace(ALWAYS, |_, _| {});
    let window = part(bytes.clone(), 8 * SECOND, 9 * SECOND).unwrap();
    let checkpoint = window.checkpoint.unwrap();
    assert!(
        checkpoint.at > Ktime(START + 5 * SECOND),
        "{:?}",
        checkpoint.at
    );
    assert!(checkpoint.at <= Ktime(START + 8 * SECOND));
    let born = (checkpoint.at.0 - START).div_ceil(SECOND) as u32;
    let tids: Vec<u32> = checkpoint.tasks.iter().map(|task| task.tid.0).collect();
    assert_eq!(
        tids,
        (100..100 + born).collect::<Vec<_>>(),
        "who was forked before"
    );
    // Nothing that is over, and nothing that comes later.
    let frames = window.trace.frames();
    let inside =
        |frame: &FrameInfo| frame.max >= checkpoint.at && frame.min.0 <= START + 11 * SECOND;
    assert!(!frames.is_empty() && frames.iter().all(inside));
    assert!(frames.len() < 16, "{}", frames.len());
    // From the beginning nothing was before.
    let first = part(bytes, 0, SECOND).unwrap();
    assert_eq!(first.checkpoint, None);
}

#[test]
fn checkpoints_are_few() {
    let rare = Often {
        events: 100,
        bytes: 0,
    };
    let none = Often {
        events: 1,
        bytes: 1 << 40,
    };
    let count = |often| {
        let window = part(trace(often, |_, _| {}), 9 * SECOND, 10 * SECOND);
        window
            .unwrap()
            .checkpoint
            .map(|checkpoint| checkpoint.tasks.len())
    };
    assert_eq!((count(rare), count(none)), (None, None));
    assert!(count(ALWAYS).is_some());
}

/// A vCPU was stopped between taking the time and writing the event.
#[test]
fn what_comes_too_late_makes_a_checkpoint_useless() {
    let good = part(trace(ALWAYS, |_, _| {}), 6 * SECOND, 7 * SECOND).unwrap();
    let good = good.checkpoint.unwrap().at;
    let late = |second: u64, writer: &mut Writer<Vec<u8>>| {
        if second == 9 {
            writer.sched(CpuId(1), switch(good.0 - 1, 0, 100)).unwrap();
        }
    };
    let window = part(trace(ALWAYS, late), 6 * SECOND, 7 * SECOND).unwrap();
    let before = window.checkpoint.unwrap();
    assert!(before.at < good);
    // It belongs to what is read.
    let frames = window.trace.frames();
    assert!(frames
        .iter()
        .any(|frame| frame.stream == Stream::Cpu(CpuId(1))));
}

/// A fork that comes when its time is long over: who lives is not known any more.
#[test]
fn after_a_late_fork_there_are_no_checkpoints() {
    let late = |second: u64, writer: &mut Writer<Vec<u8>>| {
        if second == 4 {
            let event = said(START + SECOND / 2, fork(50));
            writer.life(Stream::Lifecycle, event).unwrap();
        }
    };
    let window = part(trace(ALWAYS, late), 9 * SECOND, 10 * SECOND).unwrap();
    let last = window.checkpoint.unwrap().at;
    assert!(last < Ktime(START + SECOND / 2), "{last:?}");
}

#[test]
fn only_a_whole_trace_has_parts() {
    let bytes = trace(ALWAYS, |_, _| {});
    let cut = bytes[..bytes.len() - 1].to_vec();
    assert!(part(cut, 0, SECOND).is_none(), "no end");
    let lost = |second: u64, writer: &mut Writer<Vec<u8>>| {
        if second == 9 {
            let at = START + 9 * SECOND;
            let lost = LifeKind::Lost(Lost {
                stream: Stream::Cpu(CpuId(0)),
                count: Some(1),
                until: Ktime(at),
                cause: LossCause::RingFull,
            });
            writer.life(Stream::Recorder, said(at, lost)).unwrap();
        }
    };
    assert!(part(trace(ALWAYS, lost), 0, SECOND).is_none(), "a loss");
    // What is damaged elsewhere is nobody's business.
    let mut damaged = bytes;
    let middle = damaged.len() / 2;
    damaged[middle] ^= 1;
    assert!(part(damaged, 0, SECOND).is_some());
}

/// The last checkpoint of ten seconds with these events in the second one.
fn after(change: impl Fn(&mut Writer<Vec<u8>>)) -> Option<Checkpoint> {
    let change = |second: u64, writer: &mut Writer<Vec<u8>>| {
        if second == 1 {
            change(writer);
        }
    };
    let window = part(trace(ALWAYS, change), 9 * SECOND, 10 * SECOND);
    window.unwrap().checkpoint
}

fn steps(checkpoint: &Checkpoint, tid: u32) -> Vec<Step> {
    let mut tasks = checkpoint.tasks.iter();
    let task = tasks.find(|task| task.tid.0 == tid).expect("it lives");
    task.steps.clone()
}

fn listed(tid: u32, tgid: u32) -> LifeKind {
    LifeKind::Snapshot(Snapshot {
        tid: Tid(tid),
        tgid: Tgid(tgid),
        parent_tgid: Tgid(1),
        start_time: Ktime(0),
        ns_tid: Tid(tid),
        cgroup: CgroupId(0),
        comm: Comm::new(b"listed"),
        argv: Argv::default(),
        state: 1,
        on_cpu: false,
        kthread: false,
        followed: true,
        sum_exec_runtime: 0,
    })
}

/// Who was listed is there, whatever has been told before the listings are looked at.
#[test]
fn a_cgroup_made_early_does_not_hide_who_was_listed() {
    let early = |second: u64, writer: &mut Writer<Vec<u8>>| {
        if second == 0 {
            let path = LifeKind::CgroupPath(CgroupPath {
                id: CgroupId(7),
                path: b"/a".to_vec().into(),
            });
            writer
                .life(Stream::Recorder, said(START - 1, listed(9, 9)))
                .unwrap();
            writer
                .life(Stream::Lifecycle, said(START + 5, path))
                .unwrap();
        }
    };
    let window = part(trace(ALWAYS, early), 9 * SECOND, 10 * SECOND).unwrap();
    let checkpoint = window.checkpoint.unwrap();
    let sleeps = Step::Listed {
        state: 1,
        on_cpu: false,
    };
    assert_eq!(steps(&checkpoint, 9), [sleeps]);
    assert_eq!(checkpoint.cgroups.len(), 1);
}

/// cpu0 ==100==__.. woken by the stamp of its switch-out: which came first, the ring tells.
#[test]
fn of_one_stamp_the_ring_tells_the_order() {
    let at = START + SECOND + SECOND / 2;
    let waking = SchedEvent {
        time: Ktime(at + 1),
        kind: SchedKind::Waking {
            waker: Tid(0),
            wakee: Tid(100),
            irq: true,
            new: false,
            vfork: false,
        },
    };
    let events = |order: [SchedEvent; 2]| {
        after(move |writer| {
            writer.sched(CpuId(0), switch(at, 0, 100)).unwrap();
            for event in order {
                writer.sched(CpuId(0), event).unwrap();
            }
        })
    };
    let leaves = switch(at + 1, 100, 0);
    let last = |order| steps(&events(order).unwrap(), 100).pop().unwrap();
    assert!(matches!(last([leaves, waking]), Step::Woken { .. }));
    assert!(matches!(last([waking, leaves]), Step::Left { .. }));
}

/// `de_thread`: 51 goes by its dead leader's tid, 50, and its exec is told only later.
#[test]
fn while_a_thread_takes_over_its_process_there_is_no_checkpoint() {
    let at = START + SECOND + SECOND / 2;
    let exit = |tid: u32| {
        LifeKind::Exit(Exit {
            tid: Tid(tid),
            tgid: Tgid(50),
            ..Exit::default()
        })
    };
    let gone = LifeKind::Final(Final {
        tid: Tid(50),
        ..Final::default()
    });
    let common = |writer: &mut Writer<Vec<u8>>| {
        let mut thread = fork(51);
        if let LifeKind::Fork(fork) = &mut thread {
            fork.tgid = Tgid(50);
        }
        let lives = [fork(50), thread, exit(50), gone.clone()];
        for (time, kind) in (at..).zip(lives) {
            writer.life(Stream::Lifecycle, said(time, kind)).unwrap();
        }
        writer.sched(CpuId(0), switch(at + 5, 0, 51)).unwrap();
    };
    let figures = after(common).unwrap();
    let process = figures
        .processes
        .iter()
        .find(|process| process.pid == Tgid(50));
    assert!(
        process.unwrap().gone.is_some(),
        "the leader's figures are kept"
    );
    let renamed = after(|writer| {
        common(writer);
        writer.sched(CpuId(0), switch(at + 6, 50, 0)).unwrap();
    });
    let before = renamed.is_none_or(|checkpoint| checkpoint.at < Ktime(at));
    assert!(before, "nobody knows whose steps these are");
}

/// As [`trace`], of so many frames that its index has several.
fn long(mut change: impl FnMut(u64, &mut Writer<Vec<u8>>)) -> Vec<u8> {
    trace(ALWAYS, |second, writer| {
        for n in 0..1_500 {
            let at = START + second * SECOND + 10 + n;
            writer.sched(CpuId(1), switch(at, 0, 0)).unwrap();
            writer.flush().unwrap();
        }
        change(second, writer);
    })
}

/// Where the index's frames begin.
fn index(bytes: &[u8]) -> Vec<usize> {
    const MARK: [u8; 5] = [0xf7, 0x74, 0x72, 0xb1, 0];
    let at = |at: usize| bytes[at..at + 4] == MARK[..4] && bytes[at + 5] == 5;
    (0..bytes.len() - 5).filter(|place| at(*place)).collect()
}

#[test]
fn a_long_index_is_looked_at_where_the_part_is() {
    let mut bytes = long(|_, _| {});
    let whole = Trace::open(Source::bytes(bytes.clone())).unwrap();
    for second in 1..10 {
        let (from, to) = (second * SECOND, second * SECOND + SECOND / 10);
        let window = part(bytes.clone(), from, to).unwrap();
        let since = window.checkpoint.map_or(0, |checkpoint| checkpoint.at.0);
        assert!(second < 4 || since + 4 * SECOND > START + from, "{since}");
        let needed = |frame: &&FrameInfo| {
            let later = match frame.stream {
                Stream::Cpu(_) => 0,
                _ => 2 * SECOND,
            };
            frame.max.0 >= since && frame.min.0 <= START + to + later
        };
        let needed: Vec<&FrameInfo> = whole.frames().iter().filter(needed).collect();
        let frames: Vec<&FrameInfo> = window.trace.frames().iter().collect();
        assert_eq!(frames, needed);
    }
    // What tells of other times is not looked at.
    let index = index(&bytes);
    assert!(index.len() > 3, "{}", index.len());
    bytes[index[0] + 100] ^= 1;
    assert!(part(bytes.clone(), 8 * SECOND, 9 * SECOND).is_some());
    assert!(part(bytes, SECOND, 2 * SECOND).is_none());
}

#[test]
fn what_comes_too_late_is_seen_wherever_the_index_tells_it() {
    let at = |bytes: Vec<u8>| {
        let window = part(bytes, 6 * SECOND, 6 * SECOND + 1).unwrap();
        window.checkpoint.unwrap().at
    };
    let good = at(long(|_, _| {}));
    let late = |second: u64, writer: &mut Writer<Vec<u8>>| {
        if second == 9 {
            writer.sched(CpuId(2), switch(good.0 - 1, 0, 100)).unwrap();
        }
    };
    assert!(at(long(late)) < good);
}

/// What a damaged frame held is missed, whichever part of the index tells of it.
#[test]
fn a_damaged_index_hides_no_loss() {
    let bytes = long(|_, _| {});
    let open = |bytes: &[u8]| Trace::open(Source::bytes(bytes.to_vec())).unwrap();
    let whole = open(&bytes);
    let frames = whole.frames();
    let last = frames
        .iter()
        .rfind(|frame| frame.stream == Stream::Cpu(CpuId(1)));
    let last = last.unwrap();
    let mut damaged = bytes.clone();
    damaged[(last.offset + last.bytes) as usize - 1] ^= 1;
    assert_eq!(open(&damaged).gaps().len(), 1);
    for at in index(&bytes) {
        let (header, len) = Header::decode(&bytes[at..], id(&bytes)).unwrap();
        let mut damaged = damaged.clone();
        damaged[at + len + header.payload as usize / 2] ^= 1;
        let trace = open(&damaged);
        assert_eq!((trace.damage().len(), trace.gaps().len()), (2, 1));
    }
}

/// Rows that tell of other bytes, with checksums that are right.
#[test]
fn an_index_with_holes_is_not_used() {
    let bytes = long(|_, _| {});
    let id = id(&bytes);
    let places = index(&bytes);
    let (header, len) = Header::decode(&bytes[places[2]..], id).unwrap();
    let forged = {
        let mut rows = Vec::new();
        pieces::varint(&mut rows, header.events);
        pieces::varint(&mut rows, 16);
        for _ in 0..header.events {
            rows.extend_from_slice(&[99, 0, 21, 21, 0, 0]);
        }
        let mut out = bytes[..places[2]].to_vec();
        pieces::add(&mut out, id, header, &pieces::stored(&rows));
        out.extend_from_slice(&bytes[places[2] + len + header.payload as usize..]);
        out
    };
    for second in 1..10 {
        let part = |bytes: Vec<u8>| part(bytes, second * SECOND, second * SECOND + 1);
        let is_there =
            header.min <= START + (second + 2) * SECOND && header.max >= START + second * SECOND;
        assert!(!is_there || part(forged.clone()).is_none(), "{second}");
    }
}
