//! Finds the steps that a user names on the command line: by the whole name, or by a name that was shortened to fit
//! into a table.

use std::collections::{BTreeSet, HashSet};

use super::{Step, Steps};
use tr_analyze::model::Analysis;
use tr_text::phrase::Phrase;

/// The character that replaces the middle of a shortened name.
const CUT_MARK: char = '…';

/// The least similarity in percent for which the name of a step is suggested in place of an unknown name that the user
/// gave. A guess: at most five names are printed.
const LEAST_SIMILARITY: usize = 30;

impl Steps {
    /// The text by which the steps that a user means are found: `name` itself if it is a step's name or title, whole or
    /// as it is printed. Otherwise, if `name` was shortened by `…`, the only printed name of a step that it fits.
    /// `None` if no name fits, or several do.
    pub fn whole_name<'a>(&'a self, name: &'a str) -> Option<&'a str> {
        if self.are_named(name).contains(&true) {
            return Some(name);
        }
        let (head, tail) = name.split_once(CUT_MARK)?;
        let is_long = |whole: &str| whole.len() >= head.len() + tail.len();
        let fits = |name: &&&Phrase| {
            let whole = name.whole();
            is_long(whole) && whole.starts_with(head) && whole.ends_with(tail)
        };
        let names: BTreeSet<&Phrase> = self.list.iter().map(|step| &step.name).collect();
        let mut fitting = names.iter().filter(fits);
        let first = fitting.next();
        first
            .filter(|_| fitting.next().is_none())
            .map(|name| name.short())
    }

    /// The names of at most `most` steps that are similar to the given name, the most similar first.
    pub fn similar_names(&self, name: &str, most: usize) -> Vec<&str> {
        let wanted = pairs(name);
        let names: BTreeSet<&str> = self.list.iter().map(|step| step.name.short()).collect();
        let mut similar: Vec<(usize, &str)> = names
            .into_iter()
            .map(|known| (similarity(&wanted, known), known))
            .filter(|(similarity, _)| *similarity >= LEAST_SIMILARITY)
            .collect();
        similar.sort_unstable_by(|(a, name), (b, other)| b.cmp(a).then_with(|| name.cmp(other)));
        similar.truncate(most);
        similar.into_iter().map(|(_, name)| name).collect()
    }

    /// For each step of the recording, whether the given name is the step's name or title. Both the whole text of
    /// machine formats and the shortened text for people match.
    pub fn are_named(&self, name: &str) -> Vec<bool> {
        let all = self.list.iter().zip(self.titles());
        all.map(|(step, title)| {
            let title = title.phrase();
            let mut names = [&step.name, &title].into_iter();
            names.any(|own| [own.whole(), own.short()].contains(&name))
        })
        .collect()
    }

    /// The first step with this name, if every step with this name begins after the start of its process and ends
    /// before the process does; otherwise `None`.
    pub fn part_of_process(&self, analysis: &Analysis, name: &str) -> Option<&Step> {
        let is_part = |step: &Step| {
            let process = step.process.map(|ix| analysis.process(ix));
            process.is_some_and(|process| process.start < step.from && step.to < process.end)
        };
        let named = self.list.iter().zip(self.are_named(name));
        let mut steps = named.filter(|(_, is)| *is).map(|(step, _)| step);
        let first = steps.next().filter(|step| is_part(step))?;
        steps.all(is_part).then_some(first)
    }
}

/// The pairs of neighbouring characters of a name in lower case.
fn pairs(name: &str) -> HashSet<(char, char)> {
    let letters = || name.chars().flat_map(char::to_lowercase);
    letters().zip(letters().skip(1)).collect()
}

/// The similarity of two names in percent, by the pairs of neighbouring characters that both have (Dice's coefficient).
/// If one name contains all pairs of the other, the names always count as similar.
fn similarity(wanted: &HashSet<(char, char)>, known: &str) -> usize {
    let known = pairs(known);
    let common = wanted.intersection(&known).count();
    let shorter = wanted.len().min(known.len());
    let both = wanted.len() + known.len();
    let dice = (200 * common).checked_div(both).unwrap_or(0);
    let part = (100 * common).checked_div(shorter).unwrap_or(0);
    if part == 100 {
        dice.max(LEAST_SIMILARITY)
    } else {
        dice
    }
}
