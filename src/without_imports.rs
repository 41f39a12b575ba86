//! Replaces the option `--with` in a program that was built without the feature `import`: the
//! option does not exist.

use std::path::Path;
use std::process::ExitCode;

use tr_format::reader::Trace;
use tr_insight::Recording;
use tr_report::reports::TimelineUse;

use crate::analysis;
use crate::budget::Budget;

/// Takes the place of the options about `--with` in a program that cannot read other tools' files. In such a program
/// there are no such options.
#[derive(clap::Args, Debug)]
pub struct With {}

impl With {
    pub fn paths(&self) -> impl Iterator<Item = &Path> {
        std::iter::empty()
    }

    /// Analyzes a whole recording with its timeline. With the feature `import`, this function would also add the spans
    /// of the files that `--with` names.
    pub fn recording(&self, trace: &Trace, budget: Budget) -> Result<Recording, ExitCode> {
        let allowance = analysis::Allowance::new(budget, TimelineUse::Simulation);
        Ok(analysis::analyze_whole(trace, allowance))
    }

    pub fn add(&self, _: &mut Recording) -> Result<(), ExitCode> {
        Ok(())
    }
}
