//! Collects the scheduling events of one CPU into a bundle, as Perfetto's trace format has it.

use std::collections::HashMap;
use std::io;

use tr_format::event::{Comm, CpuId, Ktime, Tid};

use super::packets::{id, text, Packets, NOT_RECORDED, PRIO};
use crate::messages::*;

/// The largest number of scheduling events of one CPU that are written to a Perfetto trace as one bundle.
pub const BUNDLE: usize = 4096;

#[derive(Default)]
pub struct Cpu {
    compact: CompactSched,
    events: Vec<FtraceEvent>,
    interned: HashMap<String, u32>,
    last_switch: u64,
    last_waking: u64,
}

impl Cpu {
    pub fn length(&self) -> usize {
        let compact = &self.compact;
        compact.switch_timestamp.len() + compact.waking_timestamp.len() + self.events.len()
    }

    pub fn event(&mut self, time: Ktime, running: Tid, common_flags: u32, event: Ftrace) {
        self.events.push(FtraceEvent {
            timestamp: time.0,
            pid: Some(running.0),
            common_flags,
            event: Some(event),
        });
    }

    /// Adds a context switch to the CPU's bundle: `next` begins to run, and the previous task leaves the CPU in
    /// `state`.
    pub fn switch(&mut self, time: Ktime, next: Tid, state: i64, comms: &HashMap<Tid, Comm>) {
        let comm = self.comm(next, comms);
        let compact = &mut self.compact;
        let step = step(
            time,
            &mut self.last_switch,
            compact.switch_timestamp.is_empty(),
        );
        compact.switch_timestamp.push(step);
        compact.switch_prev_state.push(state);
        compact.switch_next_pid.push(id(next.0));
        compact.switch_next_prio.push(PRIO);
        compact.switch_next_comm_index.push(comm);
    }

    pub fn waking(&mut self, time: Ktime, wakee: Tid, flags: u32, comms: &HashMap<Tid, Comm>) {
        let comm = self.comm(wakee, comms);
        let compact = &mut self.compact;
        let step = step(
            time,
            &mut self.last_waking,
            compact.waking_timestamp.is_empty(),
        );
        compact.waking_timestamp.push(step);
        compact.waking_pid.push(id(wakee.0));
        compact.waking_target_cpu.push(0);
        compact.waking_prio.push(PRIO);
        compact.waking_comm_index.push(comm);
        compact.waking_common_flags.push(flags);
    }

    /// The index of a task's name in the bundle's table of names. A name that the table does not have is added to the
    /// table.
    fn comm(&mut self, tid: Tid, comms: &HashMap<Tid, Comm>) -> u32 {
        let name = match comms.get(&tid) {
            _ if tid == Tid::IDLE => "swapper".to_owned(),
            _ if tid >= NOT_RECORDED => "not recorded".to_owned(),
            Some(comm) => text(comm.bytes()),
            None => String::new(),
        };
        if let Some(at) = self.interned.get(&name) {
            return *at;
        }
        let at = u32::try_from(self.compact.intern_table.len()).unwrap_or(u32::MAX);
        self.compact.intern_table.push(name.clone());
        self.interned.insert(name, at);
        at
    }

    pub fn flush(&mut self, number: CpuId, packets: &mut Packets<'_>) -> io::Result<()> {
        if self.length() == 0 {
            return Ok(());
        }
        self.interned.clear();
        let bundle = FtraceEventBundle {
            cpu: Some(u32::from(number.0)),
            event: std::mem::take(&mut self.events),
            compact_sched: Some(std::mem::take(&mut self.compact)),
        };
        packets.put(None, Data::FtraceEvents(Box::new(bundle)))
    }
}

/// The number that the bundle stores for a time in ns: the difference from the previous time, or
/// the time itself for the first one of the bundle.
fn step(time: Ktime, last: &mut u64, first: bool) -> u64 {
    let before = std::mem::replace(last, time.0);
    if first {
        time.0
    } else {
        time.0.saturating_sub(before)
    }
}
