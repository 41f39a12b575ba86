//! Makes the schedule of a suite whose tests ran one after the other, in one process or in a chain of processes.

use std::rc::Rc;

use tr_analyze::model::ProcessIx;

use super::bounds::Groups;
use crate::junit::active::Active;
use crate::junit::choice::{Schedule, Scheduled};
use crate::junit::placer::Placer;
use crate::junit::report::Suite;
use crate::junit::runner::RunnerFacts;
use crate::lookup::signed;

impl Placer<'_> {
    /// Makes the schedule of a suite whose tests ran one after the other in the given processes. The schedule has, for
    /// each test, the earliest and the latest beginning and the earliest and the latest end. `None` if no schedule
    /// agrees with everything that is known (see [`serial`](crate::junit::serial)).
    ///
    /// The report may have a time of day for each test. This time is used only if two things are known: its time zone,
    /// and whether it is the beginning or the end of the test. If it is not used, the test can have run at any time in
    /// the lives of the processes.
    pub(super) fn scheduled(
        &mut self,
        suite: &Suite,
        groups: &Groups,
        processes: &[ProcessIx],
    ) -> Option<Schedule> {
        let facts = processes.iter().map(|process| self.facts(*process));
        let facts: Vec<Rc<RunnerFacts>> = facts.collect::<Option<_>>()?;
        // A shell counts only if it is known as a test runner. Other shells are wrappers that only wait for the real
        // runner.
        let [named, tests, _] = &self.runners;
        let is_wrapper = |(process, facts): (&ProcessIx, &Rc<RunnerFacts>)| {
            facts.is_shell() && ![named, tests].iter().any(|known| known.contains(process))
        };
        if processes.iter().zip(&facts).any(is_wrapper) {
            return None;
        }
        let around = self.window(suite, processes)?;
        let starts = processes
            .iter()
            .map(|process| signed(self.lookup.analysis.process(*process).start));
        let starts: Vec<i64> = starts.collect();
        // The n-th thread does the same work in all processes of one program. So for each n, one schedule is tried in
        // which the n-th threads ran all tests. It is taken if it is possible for exactly one n.
        let number = facts.iter().map(|facts| facts.threads.len()).min();
        let threads = (0..number.unwrap_or(0)).filter_map(|thread| {
            let active = starts.iter().zip(&facts);
            let active = active.map(|(start, facts)| Some((*start, facts.threads.get(thread)?)));
            let active: Vec<(i64, &Active)> = active.collect::<Option<_>>()?;
            self.bounds(suite, groups, &around, &self.active(&active))
        });
        let mut alone = threads.fuse();
        let only = alone.next().filter(|_| alone.next().is_none());
        let runner = Scheduled {
            processes: processes.to_vec(),
            is_one_thread: only.is_some(),
            threads: number.unwrap_or(0),
        };
        let places = match only {
            Some(places) => places,
            None => {
                let active = starts.iter().zip(&facts);
                let count = suite.cases.len();
                let active = active.map(|(start, facts)| (*start, facts.active(count)));
                let active: Vec<(i64, &Active)> = active.collect();
                self.bounds(suite, groups, &around, &self.active(&active))?
            }
        };
        Some(self.spans(suite, runner, &facts, places))
    }
}
