//! Holds later kinds to their own columns.

use super::*;
use crate::counters::{CallSum, Counter, Counters, SystemCalls};
use crate::device::{Block, Device, DiskWait, SyncFile};
use crate::dns::{DnsAnswer, DnsQuery};
use crate::event::{Comm, Ktime, LifeEvent, LifeKind, Mark, OomKill, Pinned, Reclaim, Rename};
use crate::limits;
use crate::network::{
    Accepted, Address, Closed, Connect, Connected, ConnectionId, Ending, Endpoint,
};
use crate::stack::{FileId, Function, Module, Place, Sample, Symbol};
use crate::varint::Cursor;
use crate::zip::{Packer, Unpacker};

/// The last column of version 3.1, before the first kind that a reader skips.
const LAST: usize = Col::EndDead as usize;
const TASK: (Tid, Tgid) = (Tid(901), Tgid(900));

/// An event of each kind since version 3.2.
fn later() -> Vec<LifeKind> {
    let (tid, tgid) = TASK;
    let id = ConnectionId(7);
    let address = Address::V4([127, 0, 0, 1].into());
    let local = Endpoint { address, port: 80 };
    let mut counters = Counters::default();
    counters.set(Counter::Busy, 5);
    let sum = CallSum {
        number: 3,
        compat: false,
        count: 1,
        errors: 1,
        ns: 1,
        longest: 1,
    };
    vec![
        LifeKind::Connect(Connect {
            id,
            tid,
            tgid,
            remote: local,
        }),
        LifeKind::Connected(Connected { id, local }),
        LifeKind::Accepted(Accepted {
            id,
            listener: Some(TASK),
            local,
            remote: local,
        }),
        LifeKind::Closed(Closed {
            id,
            by: Some(TASK),
            ending: Ending::of(0),
            sent: 1,
            received: 1,
        }),
        LifeKind::Counters(counters),
        LifeKind::SystemCalls(SystemCalls {
            tgid,
            since: Ktime(1),
            calls: vec![sum],
        }),
        LifeKind::Block(Box::new(Block {
            name: (*b"vda").into(),
            ..Block::default()
        })),
        LifeKind::OomKill(OomKill {
            tid,
            tgid,
            resident: Some(1),
        }),
        LifeKind::Reclaim(Reclaim {
            tid,
            tgid,
            count: 1,
            ns: 1,
        }),
        LifeKind::DnsQuery(Box::new(DnsQuery {
            tid,
            tgid,
            server: address,
            port: 1,
            id: 1,
            kind: 1,
            name: (*b"a.example").into(),
        })),
        LifeKind::DnsAnswer(Box::new(DnsAnswer {
            server: address,
            port: Some(1),
            id: Some(1),
            code: Some(0),
            addresses: [address].into(),
        })),
        LifeKind::DiskWait(Box::new(DiskWait {
            tid,
            tgid,
            device: Some(Device { major: 8, minor: 0 }),
            name: (*b"vda").into(),
        })),
        LifeKind::Pinned(Pinned {
            tid,
            tgid,
            pinned: true,
        }),
        LifeKind::SyncFile(Box::new(SyncFile {
            tid,
            tgid,
            name: (*b"vda").into(),
        })),
        LifeKind::Module(Box::new(Module {
            number: 1,
            build_id: [7; 20].into(),
            path: (*b"vda").into(),
            file: None,
        })),
        LifeKind::Module(Box::new(Module {
            number: 2,
            path: (*b"vda").into(),
            file: Some(FileId::default()),
            ..Module::default()
        })),
        LifeKind::Sample(Box::new(sample(1, 1))),
        LifeKind::Symbol(Symbol {
            frame: 1,
            functions: [Function::default()].into(),
        }),
    ]
}

/// A sample with a new stack and a new frame of these numbers.
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

/// The columns of a block, and its low bits.
fn packed(kinds: &[LifeKind]) -> (Vec<Vec<u8>>, Vec<u8>) {
    let event = |kind: &LifeKind| LifeEvent {
        time: Ktime(1),
        cpu: None,
        kind: kind.clone(),
    };
    let events: Vec<_> = kinds.iter().map(event).collect();
    let mut out = Vec::new();
    encode(&events, 1, &mut Packer::new().unwrap(), &mut out).unwrap();
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

/// A reader that skips a later kind has read its kind, time and CPU. The other columns that it
/// knows, and the low bits, must be as if the event were not there.
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
        let known = Col::Task as usize..=LAST;
        for at in known {
            let column = |of: &[Vec<u8>]| of.get(at).cloned().unwrap_or_default();
            assert_eq!(column(&columns), column(&alone.0), "{kind:?} {at}");
        }
        assert_eq!(low, alone.1, "{kind:?}");
        assert!(columns.len() > LAST, "{kind:?}");
    }
}

/// No number of a stack or of a frame is behind the largest one.
#[test]
fn numbers_that_do_not_fit_are_refused() {
    let most = u32::MAX - 1;
    for (sample, is_read) in [
        (sample(most, most), true),
        (sample(u32::MAX, 1), false),
        (sample(1, u32::MAX), false),
    ] {
        let event = LifeEvent {
            time: Ktime(1),
            cpu: None,
            kind: LifeKind::Sample(Box::new(sample)),
        };
        let (mut out, mut events) = (Vec::new(), Vec::new());
        encode(
            std::slice::from_ref(&event),
            1,
            &mut Packer::new().unwrap(),
            &mut out,
        )
        .unwrap();
        let read = decode(&out, 1, (1, 1), &mut Unpacker::new().unwrap(), &mut events);
        assert_eq!(read.is_ok(), is_read, "{event:?}");
    }
}
