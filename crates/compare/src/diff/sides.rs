//! The two sides of a comparison of builds: the runs of the base (before a change), and the new runs (after it).

use super::run::Run;
use super::spread::Difference;

/// The recorded runs of a comparison of builds: those of the base, and the new ones.
#[derive(Clone, Copy, Debug)]
pub struct Sides<'a> {
    pub base: &'a [Run],
    pub new: &'a [Run],
}

impl<'a> Sides<'a> {
    /// All recorded runs of a comparison: those of the base first, then the new ones.
    pub fn runs(self) -> impl Iterator<Item = &'a Run> + Clone {
        self.base.iter().chain(self.new)
    }

    /// Compares the base and the new runs by a value that `of` returns for each run. Runs for which it returns `None`
    /// are ignored; the result is `None` if a side has no value at all.
    pub fn judge(self, of: impl Fn(&'a Run) -> Option<u64>) -> Option<Difference> {
        let side = |runs: &'a [Run]| runs.iter().filter_map(&of).collect::<Vec<_>>();
        Difference::new(&side(self.base), &side(self.new))
    }
}
