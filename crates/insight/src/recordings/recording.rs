//! Defines a recording as reports and exports see it.

use tr_analyze::Analysis;

use crate::recordings::imports::Imports;

/// An analyzed recording with the imported spans, from which reports and exports are made.
#[derive(Clone, Debug, Default)]
pub struct Recording {
    /// The analysis of the recorded events, from which all reports are made.
    pub analysis: Analysis,
    /// The spans from files of other tools that have a place in the recording.
    pub imports: Imports,
    /// The effect that the user's budget of memory and time had on the analysis.
    pub budget: BudgetEffect,
}

/// The effect that the budget of memory and time had on an analysis.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct BudgetEffect {
    /// The reason why the budget allowed no timeline, if the reports need a timeline that the budget did not allow;
    /// otherwise `None`.
    pub left_out: Option<String>,
}

impl From<Analysis> for Recording {
    fn from(analysis: Analysis) -> Recording {
        Recording {
            analysis,
            ..Recording::default()
        }
    }
}
