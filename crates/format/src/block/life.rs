//! Turns lifecycle events, such as forks and exits, into columns and back.
//!
//! The fields of the events are stored in columns, and similar fields of several kinds can share a column. A value
//! that another field of the event, or an earlier event of the frame, predicts is stored as the difference to the
//! prediction. The kinds describe their fields ([`crate::codec`]); the folder `life/` has the modules that write and
//! read the columns.

#[cfg(test)]
pub(crate) mod columns;
mod decode;
mod encode;
mod pass;
mod wide;

use crate::codec::{refuse_if, Codec, Col, Step};
use crate::event::{CpuId, Ktime, LifeEvent, LifeKind, Mark};
use crate::Fault;

pub use decode::{decode, Unknown};
pub(crate) use encode::{encode, weight};

/// Passes the fields that every lifecycle event has to the codec: the time, the CPU and the number of the event's kind.
fn head<C: Codec>(c: &mut C, time: &mut Ktime, cpu: &mut Option<CpuId>, number: &mut u8) -> Step {
    let last = c.known().time;
    c.increase(Col::Time, &mut time.0, last)?;
    c.known().time = time.0;
    let mut stored = cpu.map(|cpu| cpu.0);
    c.optional(Col::Cpu, &mut stored)?;
    *cpu = stored.map(CpuId);
    c.byte(Col::Kind, number)?;
    c.known().kind = *number;
    Ok(())
}

fn write<C: Codec>(c: &mut C, event: &mut LifeEvent) -> Step {
    let LifeEvent { time, cpu, kind } = event;
    let mut number = match &*kind {
        LifeKind::Mark(mark) if !mark.is_plain() => Mark::MORE,
        kind => kind.number(),
    };
    head(c, time, cpu, &mut number)?;
    kind.write(c, *time)
}

/// Reads a lifecycle event from the columns; `None` for an event of an unknown kind. A later version stores the
/// fields of a new kind in new columns, so the known columns stay aligned.
fn read<C: Codec>(c: &mut C) -> Result<Option<LifeEvent>, Fault> {
    let (mut time, mut cpu, mut number) = (Ktime(0), None, 0);
    head(c, &mut time, &mut cpu, &mut number)?;
    refuse_if(number == 0, "unknown kind of event")?;
    let number = match number {
        Mark::MORE => Mark::PLAIN,
        number => number,
    };
    let kind = LifeKind::read(number, c, time)?;
    Ok(kind.map(|kind| LifeEvent { time, cpu, kind }))
}
