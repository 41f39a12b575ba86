//! The two sides of a comparison: the runs of the base, and the new runs.

use super::run::Run;
use super::spread::Difference;

/// The runs of both sides.
#[derive(Clone, Copy, Debug)]
pub struct Sides<'a> {
    pub base: &'a [Run],
    pub new: &'a [Run],
}

impl<'a> Sides<'a> {
    /// The runs of both sides, those of the base first.
    pub fn runs(self) -> impl Iterator<Item = &'a Run> + Clone {
        self.base.iter().chain(self.new)
    }

    /// Compares the values that `of` returns for the runs. A run may have no value; `None` if no run of a side has one.
    pub fn judge(self, of: impl Fn(&'a Run) -> Option<u64>) -> Option<Difference> {
        let side = |runs: &'a [Run]| runs.iter().filter_map(&of).collect::<Vec<_>>();
        Difference::new(&side(self.base), &side(self.new))
    }
}
