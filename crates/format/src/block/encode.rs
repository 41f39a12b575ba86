//! Scheduling events to columns.

use super::bits::BitWriter;
use super::ticks;
use crate::sched::{flag, SchedBlock};
use crate::varint::{fold, put};
use crate::zip::Packer;

/// A shape that is not in the frame's table.
pub(super) const OTHER_SHAPE: u8 = 0x7f;
/// Set in an event's shape: `from` is not the current task and stands in its
/// own column.
pub(super) const FROM_GIVEN: u8 = 0x80;
/// A task id that is not among the recent ones.
pub(super) const NEW_ID: u8 = 0xff;
/// How many recent task ids are kept.
pub(super) const RECENT: usize = 255;

/// The recent task ids, the last one first.
#[derive(Debug)]
pub(super) struct Recent(Vec<u32>);

impl Recent {
    pub(super) fn new() -> Recent {
        Recent(Vec::with_capacity(RECENT))
    }

    /// The rank of `id`, which then becomes the first.
    fn rank(&mut self, id: u32) -> Option<u8> {
        let found = self.0.iter().position(|known| *known == id);
        match found {
            Some(at) => {
                if let Some(part) = self.0.get_mut(..=at) {
                    part.rotate_right(1);
                }
                u8::try_from(at).ok()
            }
            None => {
                self.add(id);
                None
            }
        }
    }

    /// The id of a rank, which then becomes the first.
    pub(super) fn id(&mut self, rank: u8) -> Option<u32> {
        let part = self.0.get_mut(..=usize::from(rank))?;
        part.rotate_right(1);
        self.0.first().copied()
    }

    /// Puts a new id in front.
    pub(super) fn add(&mut self, id: u32) {
        if self.0.len() == RECENT {
            self.0.pop();
        }
        self.0.insert(0, id);
    }
}

/// Appends a block's payload. The first time is counted from `min`, which
/// stands in the frame's header.
pub(crate) fn encode(
    block: &SchedBlock,
    min: u64,
    packer: &mut Packer,
    out: &mut Vec<u8>,
) -> std::io::Result<()> {
    let mut table: Vec<(u8, u16)> = Vec::new();
    let mut shapes = Vec::with_capacity(block.len());
    let mut ranks = Vec::with_capacity(block.len());
    let mut classes = Vec::with_capacity(block.len());
    let mut odd = Vec::new();
    let mut low = BitWriter::default();
    let mut recent = Recent::new();
    let (mut current, mut time, mut new) = (0u32, min, 0u32);
    let ids = block.from.iter().zip(&block.to);
    let kinds = block.flags.iter().zip(&block.state);
    for ((now, (from, to)), (flags, state)) in block.time.iter().zip(ids).zip(kinds) {
        let shape = (*flags, *state);
        let known = table.iter().position(|known| *known == shape);
        let known = known.or_else(|| {
            table.push(shape);
            Some(table.len() - 1)
        });
        let code = known
            .and_then(|at| u8::try_from(at).ok())
            .filter(|at| *at < OTHER_SHAPE)
            .unwrap_or(OTHER_SHAPE);
        if code == OTHER_SHAPE {
            table.truncate(usize::from(OTHER_SHAPE));
            odd.push(*flags);
            put(&mut odd, u64::from(*state));
        }
        let given = if *from == current { 0 } else { FROM_GIVEN };
        if given != 0 {
            put(&mut odd, u64::from(*from));
        }
        shapes.push(code | given);
        match recent.rank(*to) {
            Some(rank) => ranks.push(rank),
            None => {
                ranks.push(NEW_ID);
                put(&mut odd, fold(i64::from(*to) - i64::from(new)));
                new = *to;
            }
        }
        ticks::put(&mut classes, &mut low, now.wrapping_sub(time) as i64);
        time = *now;
        current = match flags & flag::WAKING {
            0 => *to,
            _ => *from,
        };
    }
    let mut body = Vec::with_capacity(3 * block.len() + odd.len() + 64);
    put(&mut body, table.len() as u64);
    for (flags, state) in &table {
        body.push(*flags);
        put(&mut body, u64::from(*state));
    }
    put(&mut body, odd.len() as u64);
    for column in [&shapes, &ranks, &classes, &odd] {
        body.extend_from_slice(column);
    }
    packer.pack(&body, out)?;
    out.extend_from_slice(&low.finish());
    Ok(())
}
