//! Divides the critical path by steps. A step is a unit that people know, such as a compiled file, a target or a test.

use std::collections::{BTreeMap, BTreeSet};

use tr_analyze::critical_path::{CriticalPath, Leg, Segment, Then};
use tr_analyze::kinds::{ByKind, TimeKind};
use tr_analyze::model::Analysis;
use tr_analyze::programs::{Group, Groups};
use tr_programs::steps::StepKind;

use crate::path::kinds;
use crate::path::{self, PathUse};
use crate::steps::{StepIx, StepTitle, Steps};
use tr_text::phrase::Phrase;
use tr_text::units;

/// A share of the critical path's time: the time in the steps of one title, or the time outside of any step that one
/// program or one kind of wait took (see [`path::shares`]). Here, a step that contains other steps is no step, unless
/// it is a unit of cargo.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StepShare {
    /// The title of the steps; for time outside of any step, the program or the kind of wait in words, such as
    /// `sleep in make`.
    pub name: Phrase,
    /// The brief name of the step ([`Step::brief`](crate::steps::Step::brief)).
    pub brief: Option<String>,
    /// Whether this share of the critical path is the time of a step, and not time in no step.
    pub is_step: bool,
    /// The time of this share of the critical path, divided by kind of time (such as time on a CPU or waits for a
    /// disk).
    pub spent: ByKind,
    /// For steps, the number of different steps with this name on the critical path. For time outside of any step, the
    /// number of uninterrupted pieces of the critical path in which this time lies.
    pub count: u64,
}

impl StepShare {
    pub fn time(&self) -> u64 {
        self.spent.sum()
    }

    /// The kind of wait that has the longest time in this share of the critical path, with that time, in words. `None`
    /// if that time is less than a tenth of the share's time, or if the share is time outside of any step.
    pub fn waited(&self) -> Option<String> {
        longest_wait(&self.spent).filter(|_| self.is_step)
    }
}

/// The longest wait among the kinds of time in `spent`, in words; `None` if this wait is less than a tenth of the sum
/// of all kinds.
fn longest_wait(spent: &ByKind) -> Option<String> {
    let kinds = TimeKind::ALL
        .into_iter()
        .filter(|kind| *kind != TimeKind::OnCpu);
    let longest = kinds.rev().max_by_key(|kind| spent.of(*kind))?;
    let ns = spent.of(longest);
    let is_much = ns > 0 && ns.saturating_mul(10) >= spent.sum();
    is_much.then(|| format!("{} {}", kinds::title(longest), units::time(ns)))
}

/// The owner of a part of the critical path. A step and a program are different owners, even if both have the same
/// name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Owner<'a> {
    Step(StepTitle<'a>),
    /// A program that was on a CPU or waited for one, outside of any step.
    Program(Group),
    /// Any other use of the critical path's time outside of any step, such as a wait for a disk.
    Use(PathUse),
}

/// The critical path of a build, with its segments divided where a thread goes from one step to the next one.
#[derive(Clone, Debug, Default)]
pub struct PathBySteps {
    pub segments: Vec<Segment>,
    /// For each divided segment, the index of the segment of the critical path from which the divided segment was cut.
    pub part_of: Vec<usize>,
    /// For each divided segment of the critical path, the index in `shares` of the share to which the segment's time
    /// belongs.
    pub share_of: Vec<usize>,
    /// The shares of the critical path's time, the longest first: a share for the steps of each title, and, for time
    /// outside of any step, a share for each program and for each kind of wait.
    pub shares: Vec<StepShare>,
}

impl PathBySteps {
    pub fn new(
        analysis: &Analysis,
        groups: &Groups,
        steps: &Steps,
        path: &CriticalPath,
    ) -> PathBySteps {
        let (uses, parts) = path::with_parts(analysis, groups, path);
        let titles = steps.titles();
        let holds = steps.holders();
        let count = path.segments.len();
        let mut out = PathBySteps {
            segments: Vec::with_capacity(count),
            part_of: Vec::with_capacity(count),
            ..PathBySteps::default()
        };
        let mut owners: Vec<(Owner, Option<StepIx>)> = Vec::with_capacity(count);
        for (at, (segment, part)) in path.segments.iter().zip(&parts).enumerate() {
            let mut take = |from, to, step: Option<StepIx>| {
                // A step with inner steps, such as a target, only waits for them. So outside of its inner steps, the
                // time counts for no step. A unit of cargo (the compilation of a crate) is an exception: the compiler
                // itself works, although the linker that the compiler starts is a step inside the unit.
                let is_unit = |step: &StepIx| {
                    let step = steps.list().get(*step);
                    step.is_some_and(|step| step.kind == StepKind::Unit)
                };
                let works = |step: &StepIx| holds.get(*step) == Some(&false) || is_unit(step);
                let leaf = step.filter(works);
                let title = leaf.and_then(|step| titles.get(step)).copied();
                let program = || groups.at(analysis.thread(segment.thread).process, from);
                let outside = || match (segment.kind, program()) {
                    (TimeKind::OnCpu | TimeKind::RunQueue, Some(group)) => Owner::Program(group),
                    _ => Owner::Use(*part),
                };
                let owner = title.map_or_else(outside, Owner::Step);
                let last = to == segment.to;
                out.segments.push(Segment {
                    from,
                    to,
                    then: if last { segment.then } else { Then::Same },
                    then_inferred: last && segment.then_inferred,
                    ..*segment
                });
                out.part_of.push(at);
                owners.push((owner, leaf));
            };
            let mut now = segment.from;
            for (to, step) in steps.between(analysis, segment.thread, segment.from, segment.to) {
                take(now, to, step);
                now = to;
            }
        }
        let names: BTreeMap<_, _> = uses.iter().map(|share| (share.part, &share.name)).collect();
        let name = |owner: Owner<'_>| match owner {
            Owner::Step(title) => title.phrase(),
            Owner::Program(group) => groups.name(group).into(),
            Owner::Use(part) => names.get(&part).map_or("", |name| name.as_str()).into(),
        };
        let brief = |step: StepIx| steps.list().get(step)?.brief.clone();
        out.add_up(&owners, name, brief);
        out
    }

    /// Sums up the segments of the critical path by owner. `owners` has the owner of each segment and, if the owner is
    /// a step, the index of this step. `name` returns the name of an owner, and `brief` the brief name of a step.
    fn add_up<'a>(
        &mut self,
        owners: &[(Owner<'a>, Option<StepIx>)],
        name: impl Fn(Owner<'a>) -> Phrase,
        brief: impl Fn(StepIx) -> Option<String>,
    ) {
        #[derive(Default)]
        struct Sum {
            spent: ByKind,
            steps: BTreeSet<StepIx>,
            stays: u64,
        }
        let mut sums: BTreeMap<Owner, Sum> = BTreeMap::new();
        let mut last = None;
        for (segment, (owner, step)) in self.segments.iter().zip(owners) {
            let sum = sums.entry(*owner).or_default();
            sum.spent.add(segment.kind, segment.length());
            sum.steps.extend(*step);
            sum.stays += u64::from(last.replace(owner) != Some(owner));
        }
        let share = |(owner, sum): (Owner<'a>, Sum)| {
            let is_step = matches!(owner, Owner::Step(_));
            let share = StepShare {
                name: name(owner),
                brief: sum.steps.first().copied().and_then(&brief),
                is_step,
                spent: sum.spent,
                count: if is_step {
                    sum.steps.len() as u64
                } else {
                    sum.stays
                },
            };
            (owner, share)
        };
        let mut order: Vec<(Owner, StepShare)> = sums.into_iter().map(share).collect();
        order.sort_by(|(_, a), (_, b)| {
            let names = || a.name.whole().cmp(b.name.whole());
            let kinds = || a.is_step.cmp(&b.is_step);
            b.time().cmp(&a.time()).then_with(names).then_with(kinds)
        });
        let places: BTreeMap<_, _> = order.iter().map(|(owner, _)| *owner).zip(0..).collect();
        let place = |owner: &Owner| places.get(owner).copied().unwrap_or(0);
        self.share_of = owners.iter().map(|(owner, _)| place(owner)).collect();
        self.shares = order.into_iter().map(|(_, share)| share).collect();
    }

    /// The longest kind of wait on the whole critical path, in words; `None` if this wait is less than a tenth of the
    /// path's time.
    pub fn waited(&self) -> Option<String> {
        let mut spent = ByKind::default();
        let shares = self.shares.iter();
        shares.for_each(|share| spent.add_all(&share.spent));
        longest_wait(&spent)
    }

    /// Whether a division of the critical path by steps is more useful than a division by programs. This is so if at
    /// least two shares of steps together have at least half of the path's time, and none of them has more than four
    /// fifths of it.
    pub fn says_more(&self) -> bool {
        let whole = self.shares.iter().map(StepShare::time);
        let whole = whole.fold(0u64, u64::saturating_add);
        let steps = self.shares.iter().filter(|share| share.is_step);
        let (count, sum, longest) = steps.fold((0, 0u64, 0), |(count, sum, longest), share| {
            let ns = share.time();
            (count + 1, sum.saturating_add(ns), ns.max(longest))
        });
        count > 1 && sum >= whole / 2 && longest <= whole - whole / 5
    }

    /// Joins successive segments of the critical path that belong to the same share. Each series of joined segments is
    /// returned as one piece with the thread and the program of its longest segment, together with the index of the
    /// share in `shares`.
    pub fn legs(&self) -> impl Iterator<Item = (Leg, usize)> + '_ {
        let mut rest = self.segments.as_slice();
        let runs = self.share_of.chunk_by(|a, b| a == b);
        runs.filter_map(move |run| {
            let (segments, more) = rest.split_at_checked(run.len())?;
            rest = more;
            let longest = segments
                .iter()
                .rev()
                .max_by_key(|segment| segment.length())?;
            let leg = Leg {
                thread: longest.thread,
                program: longest.program,
                ..Leg::of(segments)?
            };
            Some((leg, *run.first()?))
        })
    }
}

#[cfg(test)]
mod tests {
    use tr_analyze::model::ThreadIx;
    use tr_format::event::Ktime;

    use super::*;

    fn path(shares: &[(bool, u64)]) -> PathBySteps {
        let share = |(is_step, ns): &(bool, u64)| {
            let mut spent = ByKind::default();
            spent.add(TimeKind::OnCpu, ns / 2);
            spent.add(TimeKind::Disk, ns - ns / 2);
            StepShare {
                name: "x".into(),
                brief: None,
                is_step: *is_step,
                spent,
                count: 1,
            }
        };
        PathBySteps {
            shares: shares.iter().map(share).collect(),
            ..PathBySteps::default()
        }
    }

    #[test]
    fn steps_say_more_where_several_divide_the_path() {
        assert!(path(&[(true, 60), (true, 30), (false, 10)]).says_more());
        assert!(
            !path(&[(true, 90), (true, 10)]).says_more(),
            "one has nearly all"
        );
        assert!(
            !path(&[(true, 60), (false, 40)]).says_more(),
            "there is only one"
        );
        assert!(
            !path(&[(false, 60), (true, 30), (true, 10)]).says_more(),
            "too little"
        );
        assert!(!path(&[]).says_more());
    }

    #[test]
    fn the_longest_wait_is_in_words() {
        let found = path(&[(true, 60_000_000), (false, 20_000_000)]);
        assert_eq!(found.waited().as_deref(), Some("disk 40 ms"));
        let [step, program] = found.shares.as_slice() else {
            panic!("two shares");
        };
        assert_eq!(step.waited().as_deref(), Some("disk 30 ms"));
        assert_eq!(program.waited(), None);
    }

    /// Checks that two steps are different steps even if their titles in words are equal. The first step has the name
    /// `b` and is inside the step `a`, so its title is `a › b`. The second step has the name `a › b`.
    #[test]
    fn steps_with_equal_words_are_distinguished() {
        let [around, name, whole] = ["a", "b", "a › b"].map(Phrase::from);
        let inner = StepTitle {
            around: Some(&around),
            name: &name,
        };
        let other = StepTitle {
            around: None,
            name: &whole,
        };
        assert_eq!(inner.phrase(), other.phrase());
        let owners = [(Owner::Step(inner), Some(1)), (Owner::Step(other), Some(2))];
        let mut path = PathBySteps {
            segments: (0..2)
                .map(|at| Segment {
                    from: Ktime(at),
                    to: Ktime(at + 1),
                    thread: ThreadIx(0),
                    program: None,
                    kind: TimeKind::OnCpu,
                    then: Then::Same,
                    then_inferred: false,
                    inferred: false,
                })
                .collect(),
            ..PathBySteps::default()
        };
        path.add_up(&owners, |_| whole.clone(), |_| None);
        assert_eq!(path.shares.len(), 2);
        assert_ne!(path.share_of.first(), path.share_of.last());
    }
}
