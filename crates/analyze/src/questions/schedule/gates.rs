//! Plans the jobs of build tools anew in a simulated run. Each job starts when the jobs that it needs have
//! ended and there is a slot for it.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet, BinaryHeap, HashMap};

use tr_format::event::Ktime;

use super::change::{Changes, Effect};
use super::cpus::Machine;
use crate::arena::Arena;
use crate::model::{Analysis, ProcessIx, ThreadIx};
use crate::questions::awaited::WaitReason;
use crate::questions::jobs::{Job, Limit};

/// The bit in a set of assumed changes which means that the jobs of build tools are planned anew.
pub(super) const PLANNED_JOBS: Changes = 1 << 31;

/// A job of a build tool that is planned anew, and the jobs that have to end before it starts.
#[derive(Clone, Debug)]
pub struct Planned {
    pub job: Job,
    /// The jobs that have to end before this job starts, as three lists: in the best case, in the likely case, and in
    /// the worst case.
    pub after: [Vec<ProcessIx>; 3],
    /// The length of the job in the recording, in ns.
    pub length: u64,
}

/// The jobs of the build tools in a run, with what is needed to plan their starts anew.
#[derive(Clone, Debug, Default)]
pub struct Plan {
    jobs: Vec<Planned>,
    of: HashMap<ProcessIx, usize>,
    /// For each build tool, the recorded starts of its first job and of its last job.
    windows: HashMap<ProcessIx, (Ktime, Ktime)>,
    limits: BTreeMap<ProcessIx, Limit>,
}

impl Plan {
    /// Makes a plan of these jobs of build tools, which are sorted by their starts. `limits` has the number of jobs
    /// that each tool runs at once.
    pub fn new(jobs: Vec<Planned>, limits: BTreeMap<ProcessIx, Limit>) -> Plan {
        let mut windows: HashMap<ProcessIx, (Ktime, Ktime)> = HashMap::new();
        for Planned { job, .. } in &jobs {
            let window = windows.entry(job.owner).or_insert((job.start, job.start));
            *window = (window.0.min(job.start), window.1.max(job.start));
        }
        let of = jobs
            .iter()
            .zip(0..)
            .map(|(planned, at)| (planned.job.process, at));
        Plan {
            of: of.collect(),
            windows,
            limits,
            jobs,
        }
    }

    /// For each pool of job slots, the number of its slots on the given machine.
    fn slots(&self, machine: Machine) -> BTreeMap<u32, u64> {
        let slots = self.jobs.iter().map(|planned| {
            let job = planned.job;
            let limit = self.limits.get(&job.owner);
            let recorded = limit.map_or(u64::MAX, |limit| {
                if limit.follows {
                    machine.cpus
                } else {
                    limit.jobs
                }
            });
            (job.pool, machine.jobs.unwrap_or(recorded).max(1))
        });
        slots.collect()
    }

    pub fn jobs(&self) -> &[Planned] {
        &self.jobs
    }

    /// The number of the planned job whose first thread is this thread; `None` if it is the first thread of no job.
    pub(super) fn job_of(&self, analysis: &Analysis, thread: ThreadIx) -> Option<u64> {
        let process = analysis.thread(thread).process;
        let job = self.of.get(&process)?;
        let first = analysis.process(process).threads.first();
        (first == Some(&thread)).then_some(*job as u64)
    }

    /// Whether a process is one of the jobs that the simulation plans anew.
    pub(super) fn starts(&self, process: ProcessIx) -> bool {
        self.of.contains_key(&process)
    }

    /// Whether a process is a build tool whose jobs the simulation plans anew.
    pub(super) fn owns(&self, process: ProcessIx) -> bool {
        self.windows.contains_key(&process)
    }

    /// Whether a plan of the jobs replaces a wait of a build tool, because the tool waits for its jobs or for a slot.
    /// With a plan, the jobs themselves wait for what they need before they start.
    pub(super) fn replaces(
        &self,
        analysis: &Analysis,
        (thread, by): (ThreadIx, ThreadIx),
        at: Ktime,
        awaited: Option<WaitReason>,
    ) -> bool {
        let owner = analysis.thread(thread).process;
        let Some((from, to)) = self.windows.get(&owner) else {
            return false;
        };
        let inside = at > *from && at <= *to;
        match awaited {
            Some(WaitReason::Slot) => return inside,
            // A vfork child is a job itself, so the wait for the child is a wait for this job. The wait for the tool's
            // last job may end after the start of that job, so `inside` may be false here.
            Some(WaitReason::Vfork) => {}
            _ if !inside => return false,
            _ => {}
        }
        let by = analysis.thread(by).process;
        if by == owner {
            // Another thread of the tool waited for a job and now passes the job's result on to this thread. So the
            // wait for that thread counts as a wait for the job.
            return inside && self.limits.get(&owner).is_some_and(|limit| limit.threads);
        }
        let mut chain = analysis.lineage(by);
        chain
            .find(|ix| analysis.process(*ix).parent == Some(owner))
            .is_some_and(|child| self.starts(child))
    }
}

#[derive(Clone, Copy, Debug, Default)]
struct State {
    thread: Option<ThreadIx>,
    /// The number of jobs whose ends the job still waits for. All jobs before its barrier count as one.
    missing: usize,
    runs: bool,
    has_slot: bool,
}

/// The jobs that wait for a slot of one pool of slots, each with its priority. The first one is the next to start.
type Waiting = BinaryHeap<(u64, Reverse<usize>)>;

/// The jobs of build tools in a simulated run that wait to be started.
pub(super) struct Gates<'a> {
    plan: &'a Plan,
    effect: Effect,
    longest_first: bool,
    states: Vec<State>,
    done: Arena<ProcessIx, bool>,
    /// For each process, the jobs that wait for its end before they start.
    dependents: HashMap<ProcessIx, Vec<usize>>,
    /// For each build tool, the largest n for which the first n jobs have all ended, and the numbers of the later jobs
    /// that have ended.
    ended: HashMap<ProcessIx, (u32, BTreeSet<u32>)>,
    /// The jobs that cannot start until the first n jobs of a build tool have all ended. The key is the tool and n.
    behind: BTreeMap<(ProcessIx, u32), Vec<usize>>,
    free: BTreeMap<u32, u64>,
    waiting: BTreeMap<u32, Waiting>,
}

impl<'a> Gates<'a> {
    pub fn new(plan: &'a Plan, machine: Machine, effect: Effect, processes: usize) -> Gates<'a> {
        Gates {
            plan,
            effect,
            longest_first: machine.longest_first,
            states: vec![State::default(); plan.jobs.len()],
            done: (0..processes).map(|_| false).collect(),
            dependents: HashMap::new(),
            ended: HashMap::new(),
            behind: BTreeMap::new(),
            free: plan.slots(machine),
            waiting: BTreeMap::new(),
        }
    }

    /// Notes that a job has reached its start, which is the moment at which its parent would start the job. Returns
    /// `true` if the job starts now, or `false` if the job waits for other jobs or a slot.
    pub fn arrives(&mut self, at: usize, thread: ThreadIx) -> bool {
        let (Some(planned), Some(state)) = (self.plan.jobs.get(at), self.states.get_mut(at)) else {
            return true;
        };
        let [best, likely, worst] = &planned.after;
        let after = match self.effect {
            Effect::Best => best,
            Effect::Likely => likely,
            Effect::Worst => worst,
        };
        state.thread = Some(thread);
        for other in after.iter().filter(|process| !self.done[**process]) {
            state.missing += 1;
            self.dependents.entry(*other).or_default().push(at);
        }
        let job = planned.job;
        let first = self.ended.get(&job.owner).map_or(0, |(first, _)| *first);
        if self.effect != Effect::Best && first < job.barrier {
            state.missing += 1;
            let behind = self.behind.entry((job.owner, job.barrier)).or_default();
            behind.push(at);
        }
        if state.missing > 0 {
            return false;
        }
        self.queue(at);
        let next = self.grant(planned.job.pool);
        // Only this job can have started here: if a slot had been free for another waiting job, that job would have
        // started earlier.
        debug_assert!(next.iter().all(|started| *started == thread));
        self.states.get(at).is_some_and(|state| state.runs)
    }

    fn queue(&mut self, at: usize) {
        let Some(planned) = self.plan.jobs.get(at) else {
            return;
        };
        let weight = if self.longest_first {
            planned.length
        } else {
            0
        };
        let waiting = self.waiting.entry(planned.job.pool).or_default();
        waiting.push((weight, Reverse(at)));
    }

    /// Starts the jobs that wait for a slot of a pool, as long as slots are free. Returns the threads of these jobs.
    fn grant(&mut self, pool: u32) -> Vec<ThreadIx> {
        let mut started = Vec::new();
        let (Some(free), Some(waiting)) = (self.free.get_mut(&pool), self.waiting.get_mut(&pool))
        else {
            return started;
        };
        while let Some((_, Reverse(at))) = waiting.peek() {
            let at = *at;
            let slot = self
                .plan
                .jobs
                .get(at)
                .is_some_and(|planned| planned.job.slot);
            if slot && *free == 0 {
                break;
            }
            waiting.pop();
            if let Some(state) = self.states.get_mut(at).filter(|state| !state.runs) {
                state.runs = true;
                state.has_slot = slot;
                *free -= u64::from(slot);
                started.extend(state.thread);
            }
        }
        started
    }

    /// Notes that a process of the simulated run has ended. Returns the threads of those jobs of build tools that start
    /// because of this end.
    pub fn ended(&mut self, process: ProcessIx) -> Vec<ThreadIx> {
        if self.plan.jobs.is_empty() || std::mem::replace(&mut self.done[process], true) {
            return Vec::new();
        }
        let mut pools = BTreeSet::new();
        let mut go_on = self.dependents.remove(&process).unwrap_or_default();
        if let Some(at) = self.plan.of.get(&process).copied() {
            pools.extend(self.give_back(at));
            go_on.extend(self.passed(at));
        }
        for at in go_on {
            let Some(state) = self.states.get_mut(at) else {
                continue;
            };
            state.missing = state.missing.saturating_sub(1);
            if state.missing == 0 && !state.runs {
                self.queue(at);
                pools.extend(self.plan.jobs.get(at).map(|planned| planned.job.pool));
            }
        }
        let started = pools.into_iter().flat_map(|pool| self.grant(pool));
        started.collect()
    }

    /// Frees the slot that an ended job of a build tool had. Returns the number of the pool that the slot belongs to.
    fn give_back(&mut self, at: usize) -> Option<u32> {
        let pool = self.plan.jobs.get(at)?.job.pool;
        let had = std::mem::replace(&mut self.states.get_mut(at)?.has_slot, false);
        let free = self.free.get_mut(&pool).filter(|_| had)?;
        *free = free.saturating_add(1);
        Some(pool)
    }

    /// Notes that a job has ended. Returns the jobs that waited until this job and all earlier jobs of the build tool
    /// had ended.
    fn passed(&mut self, at: usize) -> Vec<usize> {
        let Some(Planned { job, .. }) = self.plan.jobs.get(at) else {
            return Vec::new();
        };
        let (first, others) = self.ended.entry(job.owner).or_default();
        others.insert(job.number);
        while others.remove(first) {
            *first += 1;
        }
        let until = (job.owner, *first);
        let passed = self.behind.range((job.owner, 0)..=until);
        let passed: Vec<_> = passed.map(|(key, _)| *key).collect();
        let passed = passed
            .into_iter()
            .filter_map(|key| self.behind.remove(&key));
        passed.flatten().collect()
    }

    /// Notes that the thread of a waiting job goes on although the job has not got a slot.
    pub fn forget(&mut self, thread: ThreadIx) {
        let its = |state: &&mut State| state.thread == Some(thread);
        if let Some(state) = self.states.iter_mut().find(its) {
            state.runs = true;
        }
    }
}
