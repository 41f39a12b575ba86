//! The shapes of a block that have a symbol.

use super::model::{Shape, Traits, COMMON, IDLE, OTHER, SHAPES};
use crate::sched::{flag, Open, Rest};
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
pub fn shape(event: &Rest) -> Shape {
    let task = match event.flags & flag::WAKING {
        0 => event.to,
        _ => event.from,
    };
    (event.flags | (u8::from(task == 0) * IDLE), event.state)
}

#[inline(always)]
fn hash(shape: Shape) -> usize {
    let key = u32::from(shape.1) << 8 | u32::from(shape.0);
    (key.wrapping_mul(0x9e37_79b9) >> 24) as usize
}

/// The traits of the shapes of a frame.
pub fn traits(shapes: &[Shape; SHAPES]) -> [Traits; 32] {
    let mut traits = [Traits::default(); 32];
    for (traits, shape) in traits.iter_mut().zip(shapes) {
        *traits = Traits::of(*shape);
    }
    traits
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

    /// The traits of the shapes that have a symbol.
    pub fn traits(&self) -> [Traits; 32] {
        traits(&self.table)
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
    pub fn choose(&mut self, block: &Open) {
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
        for (symbol, shape) in self.symbols.iter().zip(block.rest.iter().map(shape)) {
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

    fn find_symbols(&mut self, block: &Open) {
        let mut symbols = std::mem::take(&mut self.symbols);
        symbols.clear();
        symbols.extend(block.rest.iter().map(shape).map(|shape| self.symbol(shape)));
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
