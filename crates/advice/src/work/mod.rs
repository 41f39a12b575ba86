//! Gives advice on work on the critical path. Each module has one family of rules, or what some rules share, and its
//! documentation begins with the question that it answers.

mod alone;
mod inputs;
mod last;
mod phases;
mod repeated;
mod requests;
mod same_input;
mod starts;

use crate::candidate::Candidate;
use crate::facts::BuildFacts;

pub(super) fn candidates(facts: &BuildFacts<'_>) -> Vec<Candidate> {
    let families = [
        phases::candidates,
        alone::candidates,
        repeated::candidates,
        requests::candidates,
        same_input::candidates,
        starts::candidates,
    ];
    families.iter().flat_map(|family| family(facts)).collect()
}
