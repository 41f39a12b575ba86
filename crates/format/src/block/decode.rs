//! Columns to scheduling events.

use super::bits::BitReader;
use super::encode::{Recent, FROM_GIVEN, NEW_ID, OTHER_SHAPE};
use super::ticks;
use crate::limits;
use crate::sched::{flag, SchedBlock};
use crate::varint::{unfold, Cursor};
use crate::zip::Unpacker;
use crate::Fault;

/// Reads a payload of `events` events into `block`, which is emptied first.
pub(crate) fn decode(
    payload: &[u8],
    events: u64,
    min: u64,
    unpacker: &mut Unpacker,
    block: &mut SchedBlock,
) -> Result<(), Fault> {
    block.clear();
    let mut cursor = Cursor::new(payload);
    let body = unpacker.unpack(&mut cursor, limits::SCHED_BODY)?;
    let mut low = BitReader::new(cursor.rest());
    let mut body = Cursor::new(body);
    let mut table = Vec::new();
    for _ in 0..body.int()? {
        table.push((body.byte()?, body.int16()?));
    }
    let odd = body.int()?;
    let shapes = body.take(events)?;
    let ranks = body.take(events)?;
    let classes = body.take(events)?;
    let mut odd = Cursor::new(body.take(odd)?);
    if body.left() > 0 {
        return Err(Fault::Content("there is more than the columns"));
    }
    let mut recent = Recent::new();
    let (mut current, mut time, mut new) = (0u32, min, 0u32);
    for ((code, rank), class) in shapes.iter().zip(ranks).zip(classes) {
        let (flags, state) = match code & !FROM_GIVEN {
            OTHER_SHAPE => (odd.byte()?, odd.int16()?),
            code => *table
                .get(usize::from(code))
                .ok_or(Fault::Content("no such shape"))?,
        };
        let from = match code & FROM_GIVEN {
            0 => current,
            _ => odd.int32()?,
        };
        let to = match *rank {
            NEW_ID => {
                let id = i64::from(new).checked_add(unfold(odd.int()?));
                let id = id.and_then(|id| u32::try_from(id).ok());
                new = id.ok_or(Fault::Content("no such task id"))?;
                recent.add(new);
                new
            }
            rank => recent.id(rank).ok_or(Fault::Content("no such rank"))?,
        };
        time = time.wrapping_add(ticks::get(*class, &mut low)? as u64);
        current = match flags & flag::WAKING {
            0 => to,
            _ => from,
        };
        block.time.push(time);
        block.from.push(from);
        block.to.push(to);
        block.state.push(state);
        block.flags.push(flags);
    }
    low.finish()?;
    match odd.left() {
        0 => Ok(()),
        _ => Err(Fault::Content("there is more than the events")),
    }
}
