//! The packets of a Perfetto trace: its tracks, slices, counters and arrows, and how they are written.

use std::collections::HashMap;
use std::io::{self, Write};
use std::ops::Range;

use tr_format::event::{Ktime, Tgid, Tid};
use tr_text::escape;

use crate::messages::{self, *};

/// The tid of the made-up task of CPU 0. There is one made-up task for each CPU, which stands for all tasks that are
/// not recorded. This tid is above the largest tid of the kernel (PID_MAX_LIMIT, include/linux/threads.h).
pub(super) const NOT_RECORDED: Tid = Tid((1 << 22) + 1);
/// The priority that every task gets in a Perfetto trace: the kernel's default. Recordings do not have priorities.
pub(super) const PRIO: i32 = 120;
/// The number of the packet sequence to which the packets of a Perfetto export belong. A packet of this sequence does
/// not depend on earlier ones.
const SEQUENCE: u32 = 1;
/// The number of the packet sequence for descriptions of threads. No events are in this sequence: Perfetto's importer
/// would assign each event to the thread that was described last, and begin that thread at the event's time.
const THREADS: u32 = 2;

/// The options for the tracks of a Perfetto export: arrows for wake-ups, and the level of detail.
#[derive(Clone, Copy, Debug, Default)]
pub struct TrackOptions {
    pub flows: bool,
    /// The level of detail in ns: shorter stays on a CPU and pieces of the critical path are merged with others, and
    /// shorter processes and steps have no slices; 0 shows everything.
    pub detail: u64,
}

pub(super) struct Packets<'a> {
    out: &'a mut dyn Write,
    buffer: Vec<u8>,
    tracks: u64,
    threads: HashMap<(Tgid, Tid), u64>,
    flows: u64,
    /// Whether the next packet will be the first one of the Perfetto trace.
    first: bool,
}

impl<'a> Packets<'a> {
    pub(super) fn new(out: &'a mut dyn Write) -> Packets<'a> {
        Packets {
            out,
            buffer: Vec::new(),
            tracks: 0,
            threads: HashMap::new(),
            flows: 0,
            first: true,
        }
    }

    pub(super) fn put(&mut self, timestamp: Option<Ktime>, data: Data) -> io::Result<()> {
        let describes_thread =
            matches!(&data, Data::TrackDescriptor(track) if track.thread.is_some());
        let packet = TracePacket {
            timestamp: timestamp.map(|time| time.0),
            trusted_packet_sequence_id: if describes_thread { THREADS } else { SEQUENCE },
            // The value is SEQ_INCREMENTAL_STATE_CLEARED for the first packet.
            sequence_flags: u32::from(std::mem::take(&mut self.first)),
            data: Some(data),
        };
        self.buffer.clear();
        messages::field(&packet, &mut self.buffer);
        self.out.write_all(&self.buffer)
    }

    pub(super) fn track(&mut self, track: TrackDescriptor) -> io::Result<u64> {
        self.tracks += 1;
        let uuid = self.tracks;
        let track = TrackDescriptor { uuid, ..track };
        self.put(None, Data::TrackDescriptor(track))?;
        Ok(uuid)
    }

    pub(super) fn thread(&mut self, pid: Tgid, tid: Tid) -> io::Result<u64> {
        if let Some(track) = self.threads.get(&(pid, tid)) {
            return Ok(*track);
        }
        let thread = ThreadDescriptor {
            pid: id(pid.0),
            tid: id(tid.0),
        };
        let track = self.track(TrackDescriptor {
            thread: Some(thread),
            ..TrackDescriptor::default()
        })?;
        self.threads.insert((pid, tid), track);
        Ok(track)
    }

    /// Writes an arrow (a flow) from the track of a waker to the track of the thread that it woke.
    pub(super) fn flow(&mut self, time: Ktime, waker: u64, wakee: u64) -> io::Result<()> {
        self.flows += 1;
        let instant = |track_uuid, name: &str| TrackEvent {
            r#type: 3,
            track_uuid,
            name: Some(name.to_owned()),
            ..TrackEvent::default()
        };
        let begin = TrackEvent {
            flow_ids: vec![self.flows],
            ..instant(waker, "wakes")
        };
        let end = TrackEvent {
            terminating_flow_ids: vec![self.flows],
            ..instant(wakee, "wake-up")
        };
        self.put(Some(time), Data::TrackEvent(begin))?;
        self.put(Some(time), Data::TrackEvent(end))
    }

    pub(super) fn named(&mut self, name: &str) -> io::Result<u64> {
        self.track(TrackDescriptor {
            name: Some(name.to_owned()),
            ..TrackDescriptor::default()
        })
    }

    pub(super) fn slice(
        &mut self,
        track: u64,
        span: Range<Ktime>,
        name: String,
        facts: Vec<DebugAnnotation>,
    ) -> io::Result<()> {
        let begin = TrackEvent {
            r#type: 1,
            track_uuid: track,
            name: Some(name),
            debug_annotations: facts,
            ..TrackEvent::default()
        };
        self.put(Some(span.start), Data::TrackEvent(begin))?;
        let end = TrackEvent {
            r#type: 2,
            track_uuid: track,
            ..TrackEvent::default()
        };
        self.put(Some(span.end), Data::TrackEvent(end))
    }

    pub(super) fn count(&mut self, track: u64, time: Ktime, value: f64) -> io::Result<()> {
        let event = TrackEvent {
            r#type: 4,
            track_uuid: track,
            double_counter_value: Some(value),
            ..TrackEvent::default()
        };
        self.put(Some(time), Data::TrackEvent(event))
    }

    pub(super) fn counter(&mut self, name: &str, unit: &str) -> io::Result<u64> {
        self.track(TrackDescriptor {
            name: Some(name.to_owned()),
            counter: Some(CounterDescriptor {
                unit_name: Some(unit.to_owned()),
            }),
            ..TrackDescriptor::default()
        })
    }
}

pub(super) fn number(name: &str, value: u64) -> DebugAnnotation {
    DebugAnnotation {
        name: name.to_owned(),
        int_value: i64::try_from(value).ok(),
        string_value: None,
    }
}

pub(super) fn words(name: &str, value: String) -> DebugAnnotation {
    DebugAnnotation {
        name: name.to_owned(),
        int_value: None,
        string_value: Some(value),
    }
}

pub(super) fn id(tid: u32) -> i32 {
    i32::try_from(tid).unwrap_or(i32::MAX)
}

pub(super) fn text(bytes: &[u8]) -> String {
    escape::raw(bytes)
}
