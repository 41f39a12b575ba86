//! Finds the threads that each row of a report covers, for the reports that read timelines.

use std::cmp::Reverse;
use std::collections::{BTreeMap, HashMap};

use tr_analyze::model::ThreadIx;

use crate::processes::label;
use crate::views::query::{names, By};
use crate::views::view::View;
use tr_text::phrase::Phrase;

/// The threads that one row of a report's table covers.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Members {
    pub name: Phrase,
    /// The pid of the row's process if the row is one process, or the tid if the row is one thread.
    pub pid: Option<u32>,
    pub threads: Vec<ThreadIx>,
}

/// The rows of a table with the threads of the chosen processes, in the order of the first process of each row.
pub fn members(view: &View<'_>, by: By) -> Vec<Members> {
    let analysis = view.analysis;
    let mut rows: Vec<Members> = Vec::new();
    let mut places = BTreeMap::<Phrase, usize>::new();
    let name = names(view.recording, by, &view.ask.groups);
    for ix in view.chosen {
        let process = analysis.process(*ix);
        match by {
            By::Process => rows.push(Members {
                name: label::phrase(process),
                pid: Some(process.pid.0),
                threads: process.threads.clone(),
            }),
            By::Thread => rows.extend(process.threads.iter().map(|ix| Members {
                name: label::thread_phrase(analysis.thread(*ix), process),
                pid: Some(analysis.thread(*ix).tid.0),
                threads: vec![*ix],
            })),
            _ => {
                let name = name(*ix);
                let place = *places.entry(name.clone()).or_insert(rows.len());
                match rows.get_mut(place) {
                    Some(row) => row.threads.extend_from_slice(&process.threads),
                    None => rows.push(Members {
                        name,
                        pid: None,
                        threads: process.threads.clone(),
                    }),
                }
            }
        }
    }
    rows
}

/// The sum of one row of a table, or of the whole table, to which the values of threads are added one by one.
pub trait Collect<P>: Default {
    fn add(&mut self, value: &P);

    /// Completes the sum after the last value has been added, for example by sorting the values.
    fn finish(&mut self) {}
}

/// The sums of the values of threads in a table: a sum over all chosen processes, and a sum for each row.
#[derive(Clone, Debug, Default)]
pub struct Grouped<S> {
    pub all: S,
    /// The rows of the table that have a value, each with the sum of its threads' values. The row with the largest
    /// figure ([`Grouped::new`]) comes first.
    pub groups: Vec<(Members, S)>,
}

impl<S> Grouped<S> {
    /// Makes the rows of a table, each with the sum of the values of the row's threads. `figure` returns the number by
    /// which the rows are sorted, with the largest number first. A row for which `figure` returns `None` is left out.
    /// After a value has been added to the sums, the value is passed to `each`.
    pub fn new<P, I: Iterator<Item = P>>(
        view: &View<'_>,
        by: By,
        values: impl Fn(ThreadIx) -> I,
        figure: impl Fn(&S) -> Option<u64>,
        mut each: impl FnMut(P),
    ) -> Grouped<S>
    where
        S: Collect<P>,
    {
        let mut all = S::default();
        let mut groups = Vec::new();
        for group in members(view, by) {
            let mut sum = S::default();
            for value in group.threads.iter().flat_map(|thread| values(*thread)) {
                sum.add(&value);
                all.add(&value);
                each(value);
            }
            sum.finish();
            groups.extend(figure(&sum).map(|figure| (Reverse(figure), group, sum)));
        }
        all.finish();
        groups.sort_by_key(|(figure, ..)| *figure);
        let groups = groups.into_iter().map(|(_, group, sum)| (group, sum));
        Grouped {
            all,
            groups: groups.collect(),
        }
    }
}

/// The index of the row to which each thread of a table belongs.
pub fn places(rows: &[Members]) -> HashMap<ThreadIx, usize> {
    let rows = rows.iter().enumerate();
    let threads = rows.flat_map(|(at, row)| row.threads.iter().map(move |ix| (*ix, at)));
    threads.collect()
}
