//! Gives advice on programs that sleep on the critical path of a build, in three steps: the sleeps are collected by
//! process ([`collect()`]), classified by what the process did with them ([`classify()`]), and grouped into lines of
//! advice ([`lines()`]).

pub(super) mod awaited;
pub(super) mod beside;
mod classify;
pub(super) mod collect;
pub(super) mod known;
mod lines;
pub(super) mod nap;
pub(super) mod pauses;
pub(super) mod polls;
pub(super) mod rhythm;
mod started_servers;
pub(super) mod timers;

use self::beside::off_path;
use self::classify::{classify, SleepsByKind};
use self::collect::{collect, PathSleeps};
use self::lines::lines;
use crate::candidate::Candidate;
use crate::facts::BuildFacts;
use crate::limits::{ended_by_limit, given_up_at_once, killed_after_grace};

/// Advice on sleeps on the critical path, as one proposed change for each program that decided to sleep.
pub(super) fn candidates(facts: &BuildFacts<'_>) -> Vec<Candidate> {
    let PathSleeps {
        by_process,
        has_needed,
    } = collect(facts);
    let graces = killed_after_grace(facts);
    let SleepsByKind {
        by_sleeper,
        stopping,
        abandoned,
        gives_up,
        is_meant,
    } = classify(facts, by_process, &graces.waiting);
    let mut candidates = lines(facts, by_sleeper);
    candidates.extend(stopping);
    if candidates.is_empty() && !gives_up && !is_meant && !has_needed {
        candidates.extend(off_path(facts));
    }
    candidates.extend(abandoned);
    candidates.extend(given_up_at_once(facts));
    candidates.extend(ended_by_limit(facts));
    candidates.extend(graces.candidates);
    candidates
}
