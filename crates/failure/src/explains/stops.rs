//! Decides what the end of a process explains if a signal or a time-out ended the process.

use tr_analyze::model::{Process, ProcessIx};
use tr_analyze::status::{INTERRUPT, KILL};
use tr_analyze::stopped::{may_have_sent, TimeOut};
use tr_analyze::timeline::Stretch;
use tr_format::event::{Ktime, Reason};

use crate::ends::Stop;
use crate::finder::{Explains, Finder};
use crate::passes::code;
use crate::reactions::runs_tests;
use crate::texts::Decided;
use tr_insight::processes::exit;

/// The signals with which a program may end itself, for any reason: SIGILL, SIGTRAP, SIGABRT and SIGINT. SIGINT is
/// among them because a shell sends SIGINT to itself after this signal has ended a child.
const ABORT_SIGNALS: [u32; 4] = [4, 5, 6, INTERRUPT];

/// The shortest wait for a timer in nanoseconds that counts as planned by the program. A guess: shorter waits are
/// periodic timers of language runtimes.
const SHORTEST_SLEEP: u64 = 20_000_000;

impl Finder<'_> {
    /// How the end of a child that an ancestor stopped explains the failure of the child's parent. Being stopped is no
    /// failure of the child, unless the child had exceeded its time limit.
    pub(super) fn stopped(&self, stop: Stop, ix: ProcessIx, above: ProcessIx) -> Option<Explains> {
        let child = self.analysis.process(ix);
        if self.is_hung_test(ix) {
            return Some(Explains::One);
        }
        let gave_up = self.gave_up(child, above);
        match stop.time_out {
            TimeOut::Proven if stop.is_proven && gave_up => Some(Explains::Last),
            TimeOut::Proven => Some(Explains::Maybe),
            TimeOut::Perhaps => {
                let is_reaction = self.was_killed_for_another(ix, above);
                let is_end = gave_up && !self.waited_after(child, above);
                // After killing a test, a test runner goes on with the next test. So if the parent is a test runner,
                // the parent need not end soon after the killed child.
                let is_killed = exit::killed_by(child.status) == Some(KILL);
                let in_a_test = is_killed && runs_tests(self.analysis.process(above));
                ((is_end || in_a_test) && !is_reaction).then_some(Explains::Maybe)
            }
            TimeOut::No => None,
        }
    }

    /// Whether SIGKILL killed a child of a script, and the script, as its text shows, ended with the child's status. A
    /// script that enforces a time limit does this. A script that only ends a service stops the service in an orderly
    /// way.
    pub(super) fn passes_on_a_kill(&self, ix: ProcessIx, shell: ProcessIx) -> bool {
        let (child, above) = (self.analysis.process(ix), self.analysis.process(shell));
        let is_killed = exit::killed_by(child.status) == Some(KILL);
        let is_passed_on = is_killed && code(child) == code(above) && child.parent == Some(shell);
        let course = || self.course(shell);
        is_passed_on && course().is_some_and(|course| course.decides(ix) == Some(Decided::Yes))
    }

    /// Whether the parent of the failed process `ix` was killed by a signal that has nothing to do with the failure of
    /// the process `ix`.
    pub(super) fn was_killed_otherwise(&self, ix: ProcessIx, parent: &Process) -> bool {
        let signal = exit::killed_by(parent.status);
        let is_own = code(self.analysis.process(ix)) == code(parent);
        let from_outside = signal.is_some_and(|number| !ABORT_SIGNALS.contains(&number));
        from_outside && !is_own && !self.sure.out_of_memory.contains_key(&ix)
    }

    /// Whether a process was killed by a signal that the process `above` cannot have sent.
    pub(super) fn was_killed_by_others(&self, ix: ProcessIx, above: ProcessIx) -> bool {
        let child = self.analysis.process(ix);
        let by_parent =
            || self.sure.on_purpose(ix, child) && may_have_sent(self.analysis, ix, above);
        exit::killed_by(child.status).is_some() && !by_parent()
    }

    /// Whether a parent began to wait for a timer after a child had ended. Such a wait shows that the parent went on in
    /// spite of the child's failure.
    pub(crate) fn waited_after(&self, child: &Process, above: ProcessIx) -> bool {
        let mut kept = self.caches.last_naps.borrow_mut();
        let last = *kept.entry(above).or_insert_with(|| self.last_nap(above));
        last.is_some_and(|from| from >= child.end)
    }

    /// The start of the last wait for a timer in a process. Only waits count that are long enough to be planned by the
    /// program.
    fn last_nap(&self, ix: ProcessIx) -> Option<Ktime> {
        let timeline = self.analysis.timeline.as_ref()?;
        let threads = self.analysis.process(ix).threads.iter();
        let stretches = threads.flat_map(|thread| timeline.of(*thread));
        let naps = stretches.filter(is_nap);
        naps.map(|stretch| stretch.from).max()
    }
}

/// Whether an entry in a thread's timeline is a wait for a timer that is long enough to be planned by the program.
pub(crate) fn is_nap(stretch: &Stretch) -> bool {
    let is_timed = matches!(stretch.reason, Reason::Timer | Reason::Poll);
    is_timed && stretch.waker().is_timer() && stretch.length() >= SHORTEST_SLEEP
}
