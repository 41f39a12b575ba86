//! The shapes of a block that have a symbol.

use super::model::{Shape, Traits, COMMON, IDLE, OTHER, SHAPES};
use crate::sched::{flag, SchedBlock};
use crate::varint::put;

/// The shapes of a frame that have a symbol.
#[derive(Debug)]
pub struct Shapes {
    table: [Shape; SHAPES],
    /// Places that differ from the common ones.
    own: Vec<u8>,
    /// Symbols by a hash of the shape.
    lookup: Box<[(Shape, u8); 256]>,
    /// The symbols of the block's events.
    pub symbols: Vec<u8>,
}

/// The shape of an event.
#[inline(always)]
pub fn shape(flags: u8, state: u16, from: u32, to: u32) -> Shape {
    let task = if flags & flag::WAKING != 0 { from } else { to };
    (flags | (u8::from(task == 0) * IDLE), state)
}

#[inline(always)]
fn hash(shape: Shape) -> usize {
    let key = u32::from(shape.1) << 8 | u32::from(shape.0);
    (key.wrapping_mul(0x9e37_79b9) >> 24) as usize
}

/// The shapes of a block's events.
fn shapes(block: &SchedBlock) -> impl Iterator<Item = Shape> + '_ {
    let ids = block.from.iter().zip(&block.to);
    let shapes = block.flags.iter().zip(&block.state).zip(ids);
    shapes.map(|((flags, state), (from, to))| shape(*flags, *state, *from, *to))
}

impl Shapes {
    /// Those of common kernels.
    pub fn common() -> Shapes {
        let mut shapes = Shapes {
            table: COMMON,
            own: Vec::new(),
            lookup: Box::new([((0, 0), 0); 256]),
            symbols: Vec::new(),
        };
        shapes.index();
        shapes
    }

    /// The traits of the shapes that have a symbol: while another task than the
    /// idle one runs, and from 32 on while that does.
    pub fn traits(&self) -> [Traits; 64] {
        let mut traits = [Traits::default(); 64];
        let (busy, idle) = traits.split_at_mut(32);
        for ((busy, idle), shape) in busy.iter_mut().zip(idle).zip(self.table) {
            [*busy, *idle] = Traits::of(shape);
        }
        traits
    }

    #[allow(clippy::indexing_slicing)] // A hash is below 256.
    fn index(&mut self) {
        *self.lookup = [((0, 0), OTHER); 256];
        for (symbol, shape) in (0..).zip(self.table) {
            self.lookup[hash(shape)] = (shape, symbol);
        }
    }

    /// Puts the block's frequent shapes in the places of those it does not use.
    #[allow(clippy::indexing_slicing)] // Symbols and places are below SHAPES.
    pub fn choose(&mut self, block: &SchedBlock) {
        if !self.own.is_empty() {
            self.own.clear();
            self.table = COMMON;
            self.index();
        }
        self.find_symbols(block);
        let mut used = [false; OTHER as usize + 1];
        for symbol in &self.symbols {
            used[usize::from(*symbol)] = true;
        }
        if !used[usize::from(OTHER)] {
            return;
        }
        let mut others: Vec<(Shape, u32)> = Vec::new();
        for (symbol, shape) in self.symbols.iter().zip(shapes(block)) {
            if *symbol != OTHER {
                continue;
            }
            if let Some(known) = others.iter_mut().find(|(known, _)| *known == shape) {
                known.1 += 1;
            } else if others.len() < 64 {
                others.push((shape, 1));
            }
        }
        others.sort_by_key(|(shape, count)| (std::cmp::Reverse(*count), *shape));
        // Rare ones cost less when given.
        let frequent = others.iter().filter(|(_, count)| *count > 2);
        let free = (0..OTHER).zip(used).filter(|(_, used)| !used);
        for ((shape, _), (at, _)) in frequent.zip(free) {
            self.table[usize::from(at)] = *shape;
            self.own.push(at);
        }
        self.index();
        self.find_symbols(block);
    }

    fn find_symbols(&mut self, block: &SchedBlock) {
        let mut symbols = std::mem::take(&mut self.symbols);
        symbols.clear();
        symbols.extend(shapes(block).map(|shape| self.symbol(shape)));
        self.symbols = symbols;
    }

    #[allow(clippy::indexing_slicing)] // Places are below SHAPES.
    /// Appends the places that differ.
    pub fn put(&self, out: &mut Vec<u8>) {
        out.push(self.own.len() as u8);
        for at in &self.own {
            let (flags, state) = self.table[usize::from(*at)];
            out.extend([*at, flags]);
            put(out, u64::from(state));
        }
    }

    #[inline(always)]
    #[allow(clippy::indexing_slicing)] // A hash is below 256.
    /// The symbol of a shape.
    pub fn symbol(&self, shape: Shape) -> u8 {
        let (known, symbol) = self.lookup[hash(shape)];
        if known == shape {
            return symbol;
        }
        // Another shape has the same hash.
        let at = self.table.iter().position(|known| *known == shape);
        at.map_or(OTHER, |at| at as u8)
    }
}
