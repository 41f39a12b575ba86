//! Tests that the kinds of events that were added to the format later use only columns of their own.

use super::*;
use crate::codec::Col;
use crate::event::{Comm, Ktime, LifeEvent, LifeKind, Mark, Rename, Tgid, Tid, KINDS};
use crate::frame::Span;
use crate::limits;
use crate::stack::{Function, Place, Sample, Symbol};
use crate::varint::Cursor;
use crate::zip::{Packer, Unpacker};

/// The last column that version 3.1 of the trace format had. The kinds of events that were added later use other
/// columns, so that an older reader can skip these events.
const LAST_COLUMN: usize = Col::EndDead as usize;
/// The last kind of lifecycle event that version 3.1 of the trace format had.
const LAST_KIND: u8 = Mark::MORE;
const TASK: (Tid, Tgid) = (Tid(901), Tgid(900));

/// Functions that make events of every kind, shared with the integration tests.
#[path = "../../../tests/common/mod.rs"]
pub(crate) mod common;

/// One or more events of every kind that version 3.2 or a later version of the format added.
fn later() -> Vec<LifeKind> {
    let mut dice = common::Dice(7);
    let mut all = common::lifecycle(5_000_000, 901, &mut dice);
    all.extend(common::recorder(5_000_000, &mut dice));
    let kinds = all.into_iter().map(|event| match event {
        common::Event::Life(event) => event.kind,
        common::Event::Sched(_) => unreachable!(),
    });
    kinds.filter(|kind| kind.number() > LAST_KIND).collect()
}

#[test]
fn every_later_kind_is_looked_at() {
    let later = later();
    for (number, name) in KINDS.into_iter().filter(|kind| kind.0 > LAST_KIND) {
        let found = later.iter().any(|kind| kind.number() == number);
        assert!(found, "tests/common has no event of {name}");
    }
}

/// A sample of a task's stack that defines one new stack, with the number `first`, and one new frame,
/// with the number `frame`.
fn sample(first: u32, frame: u32) -> Sample {
    let (tid, tgid) = TASK;
    Sample {
        tid,
        tgid,
        first,
        frames: [frame].into(),
        first_frame: frame,
        places: [Place::Module(1, 9)].into(),
        ..Sample::default()
    }
}

/// Encodes some lifecycle events. Returns the columns of the events, and the low bits of those numbers that are stored
/// in two parts (see `Codec::wide`).
fn packed(kinds: &[LifeKind]) -> (Vec<Vec<u8>>, Vec<u8>) {
    let event = |kind: &LifeKind| LifeEvent {
        time: Ktime(1),
        cpu: None,
        kind: kind.clone(),
    };
    let mut events: Vec<_> = kinds.iter().map(event).collect();
    let mut out = Vec::new();
    encode(&mut events, 1, &mut Packer::new().unwrap(), &mut out).unwrap();
    let mut unpacker = Unpacker::new().unwrap();
    let mut cursor = Cursor::new(&out);
    let mut body = Cursor::new(unpacker.unpack(&mut cursor, limits::BODY).unwrap());
    let lengths: Vec<u64> = (0..body.int().unwrap())
        .map(|_| body.int().unwrap())
        .collect();
    let columns = lengths
        .into_iter()
        .map(|length| body.take(length).unwrap().to_vec());
    (columns.collect(), cursor.rest().to_vec())
}

/// A reader that skips an event of a kind from a later version has only read the event's kind, time and CPU. All other
/// columns that this reader knows, and the low bits of numbers, must be as if the event were not there.
#[test]
fn later_kinds_leave_earlier_columns_alone() {
    let (tid, tgid) = TASK;
    let early = [
        LifeKind::Rename(Rename {
            tid,
            tgid,
            comm: Comm::new(b"cc1"),
        }),
        LifeKind::Mark(Mark {
            name: (*b"vda").into(),
            ..Mark::default()
        }),
    ];
    let alone = packed(&early);
    for kind in later() {
        let between = [early[0].clone(), kind.clone(), early[1].clone()];
        let (columns, low) = packed(&between);
        let known = Col::Task as usize..=LAST_COLUMN;
        for at in known {
            let column = |of: &[Vec<u8>]| of.get(at).cloned().unwrap_or_default();
            assert_eq!(column(&columns), column(&alone.0), "{kind:?} {at}");
        }
        assert_eq!(low, alone.1, "{kind:?}");
        assert!(columns.len() > LAST_COLUMN, "{kind:?}");
    }
}

/// An empty text is always stored in full. A reference to an earlier empty text would compress worse: it is a distance,
/// counted in new texts, so it would differ each time.
#[test]
fn an_empty_text_is_always_given() {
    let symbol = |name: &[u8]| {
        let function = Function {
            name: name.into(),
            ..Function::default()
        };
        LifeKind::Symbol(Symbol {
            frame: 1,
            functions: [function].into(),
        })
    };
    let (columns, _) = packed(&[symbol(b"f"), symbol(b"g"), symbol(b"f")]);
    let texts = [0, 1, 0, 0, 0, 1, 0, 0, 4, 0, 0];
    assert_eq!(columns[Col::SymbolText as usize], texts);
    assert_eq!(columns[Col::SymbolBytes as usize], b"fg");
}

/// The number of a stack or of a frame may not exceed the largest 32-bit number.
#[test]
fn numbers_that_do_not_fit_are_refused() {
    let most = u32::MAX - 1;
    for (sample, is_read) in [
        (sample(most, most), true),
        (sample(u32::MAX, 1), false),
        (sample(1, u32::MAX), false),
    ] {
        let mut event = LifeEvent {
            time: Ktime(1),
            cpu: None,
            kind: LifeKind::Sample(Box::new(sample)),
        };
        let (mut out, mut events) = (Vec::new(), Vec::new());
        encode(
            std::slice::from_mut(&mut event),
            1,
            &mut Packer::new().unwrap(),
            &mut out,
        )
        .unwrap();
        let times = Span { min: 1, max: 1 };
        let read = decode(&out, 1, times, &mut Unpacker::new().unwrap(), &mut events);
        assert_eq!(read.is_ok(), is_read, "{event:?}");
    }
}
