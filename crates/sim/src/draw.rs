//! Draws pseudo-random numbers for the simulation, which are equal on every machine.

use rand_pcg::rand_core::{Rng, SeedableRng};
use rand_pcg::Pcg64Mcg;

use crate::program::Span;

/// A seeded source of pseudo-random numbers for the simulation, which are equal on every machine.
#[derive(Clone, Debug)]
pub(crate) struct Draw(Pcg64Mcg);

impl Draw {
    pub(crate) fn new(seed: u64) -> Draw {
        Draw(Pcg64Mcg::seed_from_u64(seed))
    }

    #[inline]
    pub(crate) fn bits(&mut self) -> u64 {
        self.0.next_u64()
    }

    /// Draws a random number from 0 to `n` - 1, or 0 if `n` is 0. The method is a multiplication without rejection. Its
    /// bias is below 2⁻³² × n and does not matter here.
    #[inline]
    pub(crate) fn below(&mut self, n: u32) -> u32 {
        ((u64::from(self.0.next_u32()) * u64::from(n)) >> 32) as u32
    }

    /// Draws a random truth value that is true in `per_mille` of 1000 cases. For 0, no random
    /// number is used up.
    #[inline]
    pub(crate) fn chance(&mut self, per_mille: u16) -> bool {
        per_mille > 0 && self.below(1000) < u32::from(per_mille)
    }

    /// Draws a random length of time in ns from the range `span`. The result is at least 1 ns.
    #[inline]
    pub(crate) fn length(&mut self, span: Span) -> u64 {
        let width = span.hi.saturating_sub(span.lo).saturating_add(1);
        let more = ((u128::from(self.bits()) * u128::from(width)) >> 64) as u64;
        span.lo.saturating_add(more).max(1)
    }
}
