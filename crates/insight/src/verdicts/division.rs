//! Divides a step's own critical path into the parts of its wall time.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use tr_analyze::awaited::WaitReason;
use tr_analyze::contention::{Contention, Wait};
use tr_analyze::critical_path::{Segment, TimeKind};
use tr_analyze::memory::{self, killed};
use tr_analyze::model::{Analysis, Process, ProcessIx, ThreadIx};
use tr_analyze::network::Ends;
use tr_analyze::share;
use tr_analyze::status::ended_in_time;
use tr_analyze::timeline::{Actor, Bucket, Stretch};
use tr_format::counters::Counter;
use tr_format::event::{Ktime, Reason};

use crate::processes::exit;
use crate::processes::label;
use crate::processes::who;
use crate::resources::memory::evicts;
use crate::resources::network::Host;
use crate::steps::times::OwnSegment;
use crate::steps::{StepIx, Steps};
use crate::verdicts::parts::{PartTimes, WallPart};
use tr_text::phrase::Phrase;

/// The largest number of entries in the timelines of a parent's threads that are examined for one child, to find out
/// what the parent did during the child's life. A bound on the work for one child.
const STRETCHES: usize = 10_000;

/// While one thread of a step waits for a timer, another thread may do the step's real work. Two limits bound the work
/// of searching for that thread: at most `TIMERS` such waits, and at most `THREADS` threads of a step, are examined.
const TIMERS: usize = 100;
const THREADS: usize = 1_000;
/// The length in nanoseconds of the shortest wait for a timer that is compared with the work of the step's other
/// threads at that time. A guess: shorter waits hide too little time to matter.
const SHORTEST_TIMER: u64 = 1_000_000;

/// The wall time of one step divided into parts, with the tasks that it waited for. All times are in nanoseconds.
#[derive(Clone, Debug, Default)]
pub(super) struct StepParts {
    pub times: PartTimes,
    pub(super) by: BTreeMap<(WallPart, Phrase), u64>,
    /// The time in nanoseconds of the step's uninterruptible waits of no other kind. They are first added to the part
    /// `Other`.
    pub(super) blocked: u64,
    /// The time in nanoseconds that the step waited in run queues while its own tasks had the CPUs. The part `Work`
    /// includes this time.
    pub(super) queued: u64,
    /// The time in nanoseconds that the step waited in page faults for a disk. It is first added to the part `Disk`.
    pub(super) faults: u64,
    /// The sum in nanoseconds of two kinds of waits. The first are waits that the step's own timer ended, while another
    /// thread of the step had no CPU, or waited for a disk or in the kernel. The second are waits for a CPU of a
    /// process that a time-out ended while it worked.
    pub timers: u64,
}

impl StepParts {
    /// The names of the tasks that the step waited for in one part of its wall time, with the times in nanoseconds.
    pub fn by(&self, part: WallPart) -> Vec<(Phrase, u64)> {
        let by = self.by.iter().filter(|((of, _), _)| *of == part);
        by.map(|((_, name), ns)| (name.clone(), *ns)).collect()
    }

    fn add_by(&mut self, part: WallPart, name: Option<Phrase>, ns: u64) {
        self.times.add(part, ns);
        if let Some(name) = name {
            let sum = self.by.entry((part, name)).or_default();
            *sum = sum.saturating_add(ns);
        }
    }
}

/// Divides each step's own critical path (the path that explains the step's wall time) into parts such as work and
/// waits for a disk.
pub(super) struct Divider<'a> {
    analysis: &'a Analysis,
    steps: &'a Steps,
    /// The tasks that had the CPUs while other tasks waited; `None` if the recording does not show them.
    pub(super) contention: Option<Contention>,
    ends: Ends,
    /// For each step, at most `THREADS` threads that were in it or in a step inside it.
    threads: HashMap<StepIx, Vec<ThreadIx>>,
    /// The sums of the waits for memory of the threads in each step.
    memory: HashMap<StepIx, Waits>,
    /// The processes of the recording that the kernel killed for lack of memory.
    no_memory: BTreeSet<ProcessIx>,
}

impl<'a> Divider<'a> {
    /// Collects the facts about a recording that are needed to divide the own critical paths of its steps into parts.
    pub fn new(
        analysis: &'a Analysis,
        steps: &'a Steps,
        contention: Option<Contention>,
    ) -> Divider<'a> {
        let mut threads: HashMap<StepIx, Vec<ThreadIx>> = HashMap::new();
        for thread in analysis.thread_ids() {
            for (.., step) in steps.parts(analysis, thread) {
                for step in steps.around(step) {
                    let all = threads.entry(step).or_default();
                    // The loop goes from the innermost step outwards. A step's list also has the threads of the steps
                    // inside it. So if the list of a step already has the thread or is full, the lists of all steps
                    // around it need no change.
                    if all.last() == Some(&thread) || all.len() >= THREADS {
                        break;
                    }
                    all.push(thread);
                }
            }
        }
        Divider {
            analysis,
            steps,
            contention,
            ends: Ends::new(analysis),
            threads,
            memory: memory_of(analysis, steps),
            no_memory: killed(analysis).map(|kill| kill.process).collect(),
        }
    }

    fn is_inside(&self, of: StepIx, thread: ThreadIx, time: Ktime) -> bool {
        self.steps.was_within(thread, time, of)
    }

    pub fn divide(&self, at: StepIx, path: &[OwnSegment]) -> StepParts {
        let mut divided = StepParts::default();
        let mut timers = 0;
        let mut rest = path;
        while let Some((segment, inside)) = rest.first() {
            let count = if *inside {
                1
            } else {
                rest.iter().take_while(|(_, inside)| !inside).count()
            };
            let (run, after) = rest.split_at(count.min(rest.len()));
            rest = after;
            if !*inside {
                self.outside(run, after.first(), &mut divided);
            } else if segment.kind == TimeKind::Sleep
                && segment.length() >= SHORTEST_TIMER
                && timers < TIMERS
            {
                timers += 1;
                self.timer(at, segment, &mut divided);
            } else {
                self.own(segment, &mut divided);
            }
        }
        self.withhold(at, &mut divided);
        self.share(at, path, &mut divided);
        divided.timers = divided.timers.saturating_add(self.cut(at));
        divided
    }

    /// The longest time in nanoseconds that a process in the step waited in run queues, if a time-out (`timeout` or a
    /// signal) ended the process in the middle of its work. A process that slept or was blocked for more than a tenth
    /// of its life does not count: it waited for its next job, and it was ended because nobody needed it any more.
    fn cut(&self, at: StepIx) -> u64 {
        let threads = self.threads.get(&at).into_iter().flatten();
        let processes = threads.map(|thread| self.analysis.thread(*thread).process);
        let processes = processes.filter(|ix| !self.no_memory.contains(ix));
        let processes = processes.map(|ix| self.analysis.process(ix));
        let ended = processes.filter(|process| process.status.is_some_and(ended_in_time));
        let worked = ended.filter(|process| {
            let times = process.times;
            let waited = times.sleep.saturating_add(times.blocked);
            waited.saturating_mul(10) <= process.wall()
        });
        // A process counts only if its parent did hardly anything but wait for the process. A helper that spins beside
        // the work of its parent is ended when the work is done.
        let worked = worked.filter(|process| {
            let parent = process.parent;
            parent.is_some_and(|parent| self.only_waits(parent, process))
        });
        worked
            .map(|process| process.times.run_queue)
            .max()
            .unwrap_or(0)
    }

    /// Whether the threads of a process, taken together, ran or waited for a CPU for at most a tenth of the life of
    /// another process.
    fn only_waits(&self, ix: ProcessIx, during: &Process) -> bool {
        let span = (during.start, during.end);
        let threads = self.analysis.process(ix).threads.iter();
        let stretches = threads.flat_map(|thread| self.stretches(*thread, span.0, span.1));
        let mut busy = 0u64;
        for (number, stretch) in stretches.enumerate() {
            if number >= STRETCHES {
                return false;
            }
            if matches!(stretch.doing, Bucket::OnCpu(_) | Bucket::RunQueue { .. }) {
                busy = busy.saturating_add(stretch.length());
            }
        }
        busy.saturating_mul(10) <= during.wall()
    }

    /// Whether the kernel killed a process in the step for lack of memory.
    pub fn lacked_memory(&self, at: StepIx) -> bool {
        let threads = self.threads.get(&at).into_iter().flatten();
        let inside = threads.map(|thread| self.analysis.thread(*thread).process);
        let own = self.steps.list().get(at).and_then(|step| step.process);
        let mut processes = inside.chain(own);
        processes.any(|ix| self.no_memory.contains(&ix))
    }

    /// Divides the step's waits during which tasks of the build had the CPUs. Some of these tasks belong to the step
    /// itself, because a step with too many threads waits for its own threads. If the step's own threads used, for
    /// example, half of the time of the build's CPUs, then half of the waits count as the step's work.
    fn share(&self, at: StepIx, path: &[OwnSegment], divided: &mut StepParts) {
        let (Some((first, _)), Some((last, _))) = (path.first(), path.last()) else {
            return;
        };
        let span = (first.from, last.to);
        let wall = last.to.since(first.from);
        let waited = divided.times.get(WallPart::Own);
        let all = wall.saturating_mul(self.analysis.cpus_of_build());
        // Waits of less than a tenth of the wall time are not worth dividing.
        if waited < wall / 10 || all == 0 {
            return;
        }
        let threads = self.threads.get(&at).into_iter().flatten();
        let stretches = threads.flat_map(|thread| {
            let stretches = self.stretches(*thread, span.0, span.1);
            stretches.filter(|stretch| self.is_inside(at, *thread, stretch.to))
        });
        let on_cpu = stretches.filter(|stretch| matches!(stretch.doing, Bucket::OnCpu(_)));
        let on_cpu = on_cpu.map(|stretch| stretch.length());
        let had = on_cpu.fold(0, u64::saturating_add).min(all);
        divided.queued = share(waited, had, all);
        divided
            .times
            .take(WallPart::Own, divided.queued, WallPart::Work);
    }

    /// The waits for a CPU on a step's own critical path, and those of other threads of the step that explain its
    /// sleeps.
    pub fn waits(&self, at: StepIx, path: &[OwnSegment]) -> Vec<Wait> {
        let own = path.iter().filter(|(_, inside)| *inside);
        let mut waits = Vec::new();
        for (segment, _) in own {
            match segment.kind {
                TimeKind::RunQueue => waits.extend(self.wait(segment)),
                TimeKind::Sleep if segment.length() >= SHORTEST_TIMER => {
                    let busiest = self.busiest(at, segment).into_iter().flatten();
                    let queued = busiest
                        .filter(|(_, stretch)| matches!(stretch.doing, Bucket::RunQueue { .. }));
                    waits.extend(queued.filter_map(|(thread, stretch)| {
                        Contention::within(self.analysis, thread, stretch.from, stretch.to)
                    }));
                }
                _ => {}
            }
        }
        waits
    }

    fn wait(&self, segment: &Segment) -> Option<Wait> {
        Contention::within(self.analysis, segment.thread, segment.from, segment.to)
    }

    /// Adds the time of several segments in a row in which the step waited while tasks outside of the step worked.
    /// `then` is the next segment, in which the step goes on.
    fn outside(&self, run: &[OwnSegment], then: Option<&OwnSegment>, divided: &mut StepParts) {
        let ns = run.iter().fold(0u64, |sum, (segment, _)| {
            sum.saturating_add(segment.length())
        });
        let last = run
            .last()
            .map(|(segment, _)| self.analysis.thread(segment.thread).process);
        let name = last.map(|process| label::phrase(self.analysis.process(process)));
        let awaited = then.and_then(|(segment, _)| self.awaited(segment.thread, segment.from));
        let unknown = run
            .iter()
            .filter(|(segment, _)| matches!(segment.kind, TimeKind::Unknown | TimeKind::Lived));
        let unknown = unknown.fold(0u64, |sum, (segment, _)| {
            sum.saturating_add(segment.length())
        });
        divided.times.add(WallPart::Unknown, unknown);
        let part = match awaited {
            Some(reason) if reason.is_futex() => WallPart::Lock,
            Some(WaitReason::Socket) => WallPart::Server,
            _ => WallPart::Steps,
        };
        divided.add_by(part, name, ns.saturating_sub(unknown));
    }

    /// The reason for the wait in which a thread was right before the given time; `None` if the thread did not wait, or
    /// if the reason is not known.
    fn awaited(&self, thread: ThreadIx, time: Ktime) -> Option<WaitReason> {
        let timeline = self.analysis.timeline.as_ref()?;
        let stretch = timeline.before(thread, time)?;
        self.analysis.awaited(thread, &stretch)
    }

    /// Adds a segment of the step's own critical path to the part that the segment's kind belongs to. The segment is in
    /// a thread of the step.
    fn own(&self, segment: &Segment, divided: &mut StepParts) {
        let ns = segment.length();
        match WallPart::of(segment.kind) {
            WallPart::Nobody => self.run_queue(self.wait(segment), ns, divided),
            WallPart::Network => {
                let waited = self.ends.waited(self.analysis, segment);
                let host = Host::waited(self.analysis, &waited).map(Host::text);
                let server = waited.server.map(|comm| who::comm(&comm));
                let part = if waited.local {
                    WallPart::Server
                } else {
                    WallPart::Network
                };
                divided.add_by(part, server.or(host).map(Phrase::from), ns);
            }
            WallPart::Outside => {
                let by = segment
                    .ended_by(self.analysis)
                    .map(|waker| who::comm(&waker.comm));
                let part = match self.awaited(segment.thread, segment.to) {
                    Some(reason) if reason.is_futex() => WallPart::Lock,
                    Some(WaitReason::Socket) => WallPart::Server,
                    _ => WallPart::Outside,
                };
                divided.add_by(part, by.map(Phrase::from), ns);
            }
            part => {
                let sum = match segment.kind {
                    TimeKind::Blocked => Some(&mut divided.blocked),
                    TimeKind::Disk if self.is_fault(segment) => Some(&mut divided.faults),
                    _ => None,
                };
                sum.into_iter()
                    .for_each(|sum| *sum = sum.saturating_add(ns));
                divided.times.add(part, ns);
            }
        }
    }

    /// Whether a segment of a step's path is a wait in a page fault, for a page of a file or from swap.
    fn is_fault(&self, segment: &Segment) -> bool {
        let timeline = self.analysis.timeline.as_ref();
        let stretch = timeline.and_then(|stretches| stretches.around(segment.thread, segment.from));
        stretch.is_some_and(|stretch| stretch.reason == Reason::PageFault)
    }

    /// Adds a wait for a CPU to the parts of the step's wall time. The `ns` nanoseconds are divided among the tasks
    /// that had the CPU.
    fn run_queue(&self, wait: Option<Wait>, ns: u64, divided: &mut StepParts) {
        let had = wait
            .zip(self.contention.as_ref())
            .map(|(wait, contention)| contention.divide(wait));
        divided.times.add_run_queue(ns, had.unwrap_or_default());
    }

    /// Adds a wait for a timer to the parts of the step's wall time. The thread may really have waited for another
    /// thread of the step, with the timer as a time-out only. So if another thread worked or waited during the wait for
    /// the timer, that time is added to the part for the other thread's work or wait. The rest is added as sleep.
    fn timer(&self, at: StepIx, segment: &Segment, divided: &mut StepParts) {
        let mut slept = segment.length();
        for (thread, stretch) in self.busiest(at, segment).into_iter().flatten() {
            let ns = stretch.length().min(slept);
            slept -= ns;
            let part = self.explains(at, thread, &stretch, segment);
            if matches!(
                part,
                Some(WallPart::Nobody | WallPart::Disk | WallPart::Other)
            ) {
                divided.timers = divided.timers.saturating_add(ns);
            }
            match part {
                None => slept += ns,
                Some(WallPart::Nobody) => {
                    let wait = Contention::within(self.analysis, thread, stretch.from, stretch.to);
                    self.run_queue(wait, ns, divided);
                }
                Some(part) => {
                    if part == WallPart::Other {
                        divided.blocked = divided.blocked.saturating_add(ns);
                    }
                    divided.times.add(part, ns);
                }
            }
        }
        divided.times.add(WallPart::Sleep, slept);
    }

    /// Finds the other thread of the step whose work and waits explain most of a segment of the step's path. Returns
    /// this thread's timeline within the segment. `None` if there is no such thread.
    fn busiest(&self, at: StepIx, segment: &Segment) -> Option<Vec<(ThreadIx, Stretch)>> {
        let others = self.threads.get(&at)?.iter().copied();
        let others = others.filter(|thread| {
            *thread != segment.thread
                && self.is_inside(
                    at,
                    *thread,
                    segment.to.min(self.analysis.thread(*thread).end),
                )
        });
        let lives = |ix: &ThreadIx| {
            let thread = self.analysis.thread(*ix);
            thread.start < segment.to && segment.from < thread.end
        };
        let stretches = |thread| self.stretches(thread, segment.from, segment.to);
        let all = others.filter(lives).map(|thread| {
            let all = stretches(thread);
            let counts =
                all.filter(|stretch| self.explains(at, thread, stretch, segment).is_some());
            let ns = counts.fold(0u64, |sum, stretch| sum.saturating_add(stretch.length()));
            (ns, thread)
        });
        let (_, thread) = all.max_by_key(|(ns, thread)| (*ns, std::cmp::Reverse(*thread)))?;
        Some(stretches(thread).map(|stretch| (thread, stretch)).collect())
    }

    fn stretches(
        &self,
        thread: ThreadIx,
        from: Ktime,
        to: Ktime,
    ) -> impl Iterator<Item = Stretch> + use<'a> {
        let timeline = self.analysis.timeline.as_ref();
        let all = timeline.into_iter();
        let all = all.flat_map(move |timeline| timeline.since(thread, from));
        let all = all.take_while(move |stretch| stretch.from < to);
        let cut = all.map(move |stretch| Stretch {
            from: stretch.from.max(from),
            to: stretch.to.min(to),
            ..stretch
        });
        cut.filter(|stretch| stretch.from < stretch.to)
    }

    /// The part of the step's wall time to which a sleep belongs, if the state `stretch` of another thread of the step
    /// at that time explains the sleep; otherwise `None`. A wait for a CPU still has to be divided among the tasks that
    /// had the CPU.
    fn explains(
        &self,
        at: StepIx,
        thread: ThreadIx,
        stretch: &Stretch,
        timer: &Segment,
    ) -> Option<WallPart> {
        // A file's lock is mostly held by another process. So if a thread waited for such a lock until the timer
        // expired, the step gave up on the lock. The exception is a lock that another process of the step released.
        let process = |thread| self.analysis.thread(thread).process;
        let released = matches!(stretch.waker(), Actor::Thread(waker)
            if process(waker) != process(thread) && self.is_inside(at, waker, timer.to));
        let given_up = stretch.to >= timer.to && stretch.reason == Reason::FileLock && !released;
        // A thread that waits at a socket until it is killed may wait for requests, as a server in the program does.
        // Only a process with a connection waits for an answer.
        let killed = exit::killed_by(self.analysis.thread(thread).status).is_some();
        let is_idle = |wait: &Stretch| killed && !self.analysis.is_online(thread, wait);
        let part = match stretch.doing {
            Bucket::OnCpu(_) => return Some(WallPart::Work),
            Bucket::RunQueue { .. } => return Some(WallPart::Nobody),
            Bucket::Unknown => return None,
            Bucket::Wait(_) => match self.analysis.awaited(thread, stretch)? {
                WaitReason::Disk | WaitReason::File => return Some(WallPart::Disk),
                WaitReason::Kernel => return Some(WallPart::Other),
                reason if reason.is_futex() => WallPart::Lock,
                WaitReason::Socket if !is_idle(stretch) => WallPart::Server,
                _ => return None,
            },
        };
        // If a thread of the step itself ended the wait, nothing outside of the step delayed the step, so the wait
        // explains nothing. The exception is a wait that ended because the waiting thread was killed.
        let own = match stretch.waker() {
            Actor::Thread(waker) => self.is_inside(at, waker, stretch.to),
            Actor::Outside(_) => false,
            // No task ended the wait here. If the thread waited for a lock (futex), the thread is an idle thread of a
            // pool. Such a thread waits for work from the step itself.
            _ => stretch.reason == Reason::Lock,
        };
        // A killed thread that waited for a futex is no such exception, because idle threads of a pool wait for a futex
        // until they are killed.
        let killed = killed && stretch.reason != Reason::Lock;
        (given_up || !own || killed).then_some(part)
    }

    /// Moves time of the step to the parts for the hypervisor, for a CPU quota and for missing memory. Only counters
    /// and sums show these times; the critical path does not.
    fn withhold(&self, at: StepIx, divided: &mut StepParts) {
        let Some(step) = self.steps.list().get(at) else {
            return;
        };
        let span = (step.from, step.to);
        // The counter shows how long the quota throttled tasks between two samples, but not at which moments. Throttled
        // tasks wait although their CPU is idle, so such waits show the moments.
        let throttled = self.throttled(step.from, step.to);
        divided.times.withhold(self.analysis, span, throttled);
        let memory = self.memory.get(&at).copied().unwrap_or_default();
        if memory.ns > 0 {
            // If a cgroup uses more memory than `memory.high`, the kernel makes its tasks wait in uninterruptible
            // sleep. So these waits count as missing memory, too.
            let (blocked, known) = (divided.blocked, divided.times.get(WallPart::Memory));
            divided
                .times
                .take(WallPart::Other, blocked, WallPart::Memory);
            // The waits that the critical path already counts as waits for memory are subtracted.
            let rest = memory.ns.saturating_sub(known).saturating_sub(blocked);
            if evicts(memory.reclaims) {
                // A task that evicts pages of files has to read them again. So the time of its page faults counts as
                // missing memory and not as waits for a disk.
                let faults = divided.faults;
                divided.times.take(WallPart::Disk, faults, WallPart::Memory);
            }
            let rest = divided.times.take(WallPart::Work, rest, WallPart::Memory);
            divided.times.take(WallPart::Disk, rest, WallPart::Memory);
        }
    }

    /// The time in nanoseconds for which a CPU quota throttled the recorded tasks, counted in two ways: from the last
    /// counter sample before the span to the first counter sample after the span, and within the span itself.
    fn throttled(&self, from: Ktime, to: Ktime) -> (u64, u64) {
        let samples = tr_analyze::machine::Samples::of(self.analysis);
        let all = samples.0;
        let first = all.partition_point(|(at, _)| *at <= from).saturating_sub(1);
        let last = all.partition_point(|(at, _)| *at < to);
        let ends = (all.get(first), all.get(last).or(all.last()));
        let around = match ends {
            (Some((first, _)), Some((last, _))) => (*first, *last),
            _ => (from, to),
        };
        let total = |span| samples.increase(Counter::Throttled, span).unwrap_or(0);
        (total(around), total((from, to)))
    }
}

/// The sums of the waits for memory of the threads of one step.
#[derive(Clone, Copy, Debug, Default)]
struct Waits {
    ns: u64,
    reclaims: u64,
}

/// Computes for each step the sums of the memory waits of the threads that were in the step or in a step inside it.
fn memory_of(analysis: &Analysis, steps: &Steps) -> HashMap<StepIx, Waits> {
    let mut sums: HashMap<StepIx, Waits> = HashMap::new();
    for wait in memory::waits(analysis) {
        let whole = wait.until.since(wait.since);
        let parts = steps.parts_from(analysis, wait.thread, wait.since);
        for (from, to, step) in parts.take_while(|(from, ..)| *from < wait.until) {
            let to = to.min(wait.until);
            let part = to.since(from.max(wait.since).min(to));
            for step in steps.around(step).filter(|_| part > 0) {
                let sum = sums.entry(step).or_default();
                sum.ns = sum.ns.saturating_add(share(wait.ns, part, whole));
                let reclaims = share(wait.reclaims.unwrap_or(0), part, whole);
                sum.reclaims = sum.reclaims.saturating_add(reclaims);
            }
        }
    }
    sums
}
