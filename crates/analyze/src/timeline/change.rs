//! A change of a thread's state in its unpacked form of sixteen bytes.

use tr_format::event::{CpuId, Ktime, Reason, Tid, Timeout};

use super::stretch::{Actor, Stretch};
use crate::ids::ThreadIx;
use crate::state::{Bucket, Wait};

/// The task or interrupt that woke or preempted a thread ([`Actor`]), as a number of four bytes. The number is one of
/// three things: the index of a task or thread, a tid above [`ActorRef::OUTSIDE`], or one of the constants. Until the
/// timeline is finished, the indices are those of the tracker's tasks, and then those of the model's threads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ActorRef(pub(super) u32);

impl ActorRef {
    pub(crate) const UNKNOWN: ActorRef = ActorRef(u32::MAX);
    pub(crate) const INTERRUPT: ActorRef = ActorRef(u32::MAX - 1);
    pub(crate) const SOFTIRQ: ActorRef = ActorRef(u32::MAX - 2);
    pub(crate) const DEVICE: ActorRef = ActorRef(u32::MAX - 3);
    pub(crate) const TIMEOUT: ActorRef = ActorRef(u32::MAX - 4);
    pub(crate) const ASKED_TIMEOUT: ActorRef = ActorRef(u32::MAX - 5);
    /// The first value of an actor (the task that woke or preempted a thread) that stands for a tid. Smaller values are
    /// indices of tasks. Linux has at most 2^22 tids (`PID_MAX_LIMIT`).
    pub(super) const OUTSIDE: u32 = 1 << 31;

    /// The actor (the task that woke or preempted a thread) for the task or thread with this index.
    pub(crate) fn task(ix: usize) -> ActorRef {
        let ix = u32::try_from(ix).ok().filter(|ix| *ix < ActorRef::OUTSIDE);
        ix.map_or(ActorRef::UNKNOWN, ActorRef)
    }

    /// The actor (the task that woke or preempted a thread) for a task that the tracker does not have, by the task's
    /// tid.
    pub(crate) fn outside(tid: Tid) -> ActorRef {
        let tid = tid.0.checked_add(ActorRef::OUTSIDE);
        tid.filter(|tid| *tid < ActorRef::ASKED_TIMEOUT.0)
            .map_or(ActorRef::UNKNOWN, ActorRef)
    }

    pub(super) fn of(actor: Actor) -> ActorRef {
        match actor {
            Actor::Unknown => ActorRef::UNKNOWN,
            Actor::Interrupt => ActorRef::INTERRUPT,
            Actor::SoftIrq => ActorRef::SOFTIRQ,
            Actor::Device => ActorRef::DEVICE,
            Actor::Timeout { asked: false } => ActorRef::TIMEOUT,
            Actor::Timeout { asked: true } => ActorRef::ASKED_TIMEOUT,
            Actor::Thread(thread) => ActorRef::task(thread.0 as usize),
            Actor::Outside(tid) => ActorRef::outside(tid),
        }
    }

    /// The index of the task or thread that the actor stands for; `None` if the actor is an interrupt, a task known
    /// only by its tid, or unknown.
    pub(crate) fn place(self) -> Option<usize> {
        (self.0 < ActorRef::OUTSIDE).then_some(self.0 as usize)
    }

    /// The tid of the actor (the task or interrupt that woke or preempted a thread), if it is a task that is known only
    /// by its tid.
    pub(super) fn outside_tid(self) -> Option<Tid> {
        let is_tid = (ActorRef::OUTSIDE..ActorRef::ASKED_TIMEOUT.0).contains(&self.0);
        is_tid.then(|| Tid(self.0 - ActorRef::OUTSIDE))
    }

    pub(super) fn actor(self) -> Actor {
        match self {
            ActorRef::UNKNOWN => Actor::Unknown,
            ActorRef::INTERRUPT => Actor::Interrupt,
            ActorRef::SOFTIRQ => Actor::SoftIrq,
            ActorRef::DEVICE => Actor::Device,
            ActorRef::TIMEOUT => Actor::Timeout { asked: false },
            ActorRef::ASKED_TIMEOUT => Actor::Timeout { asked: true },
            ActorRef(ix) if ix < ActorRef::OUTSIDE => Actor::Thread(ThreadIx(ix)),
            ActorRef(tid) => Actor::Outside(Tid(tid - ActorRef::OUTSIDE)),
        }
    }
}

/// The beginning of a stretch of a thread's timeline, which lasts until the next change.
#[derive(Clone, Copy, Debug)]
pub(super) struct Change {
    pub(super) from: Ktime,
    pub(super) actor: ActorRef,
    /// The number of the CPU that the thread was on ([`Stretch::cpu`]); `u16::MAX` if it was on none or it is unknown.
    pub(super) cpu: u16,
    /// Two numbers in one byte. The low four bits are the thread's state, as an index of [`DOING_STATES`]. The high
    /// four bits are the low bits of a wait's [`Timeout`] code.
    pub(super) doing: u8,
    /// Two numbers in one byte. The low five bits are the code of the [`Reason`] for a wait. The high three bits
    /// are the high bits of the wait's [`Timeout`] code.
    pub(super) reason: u8,
}

/// The states of a thread by their numbers in changes of state. A change stores the CPU separately.
pub(super) const DOING_STATES: [Bucket; 10] = [
    Bucket::Unknown,
    Bucket::OnCpu(None),
    Bucket::RunQueue { preempted: false },
    Bucket::RunQueue { preempted: true },
    Bucket::Wait(Wait::Sleep),
    Bucket::Wait(Wait::Stopped),
    Bucket::Wait(Wait::Io),
    Bucket::Wait(Wait::Vfork),
    Bucket::Wait(Wait::Blocked),
    Bucket::Wait(Wait::Unknown),
];

/// Two indices of [`DOING_STATES`]: the index of [`Bucket::OnCpu`], and the index of the last state that has no
/// [`Reason`].
pub(super) const STATE_ON_CPU: u8 = 1;
pub(super) const LAST_WITHOUT_REASON: u8 = 3;

/// How many low bits of [`Change::doing`] are the state, and how many of [`Change::reason`] are the reason. The
/// bits above belong to the code of a [`Timeout`].
pub(super) const DOING_BITS: u32 = 4;
pub(super) const REASON_BITS: u32 = 5;
pub(super) const REASON: u8 = (1 << REASON_BITS) - 1;

/// The reasons for a thread's state in a stretch. One reason is the task or interrupt that ended the wait, woke the
/// thread or preempted it. For a wait, the other two are the class of the system call and the time-out.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Why {
    pub actor: ActorRef,
    /// For a wait, the code of its [`Reason`].
    pub reason: u8,
    /// For a wait, the code of the [`Timeout`] of the system call, without the bit [`Timeout::is_asked`]. The code
    /// then only stands for the length of the time-out.
    pub timeout: u8,
}

impl Change {
    pub(super) fn new(
        from: Ktime,
        doing: Bucket,
        cpu: Option<CpuId>,
        Why {
            actor,
            reason,
            timeout,
        }: Why,
    ) -> Change {
        let (doing, actor) = match doing {
            Bucket::OnCpu(_) => (Bucket::OnCpu(None), ActorRef::UNKNOWN),
            // With `Options::cpu`, the time in which the thread was on another CPU counts as unknown. The thread did
            // not wait in this time, so no task or interrupt woke it at the end.
            Bucket::Unknown if cpu.is_some() => (doing, ActorRef::UNKNOWN),
            Bucket::Unknown | Bucket::RunQueue { .. } | Bucket::Wait(_) => (doing, actor),
        };
        let waits = matches!(doing, Bucket::Wait(_));
        let doing = DOING_STATES.iter().position(|known| *known == doing);
        Change {
            from,
            actor,
            cpu: cpu.map_or(u16::MAX, |cpu| cpu.0),
            reason: if waits {
                Reason::of(reason) as u8 | timeout >> 4 << REASON_BITS
            } else {
                0
            },
            doing: doing.and_then(|at| u8::try_from(at).ok()).unwrap_or(0)
                | if waits { timeout << DOING_BITS } else { 0 },
        }
    }

    /// The state of the thread from this change on, without the CPU.
    pub(super) fn state(&self) -> Option<&'static Bucket> {
        DOING_STATES.get(usize::from(self.doing & ((1 << DOING_BITS) - 1)))
    }

    pub(super) fn doing(&self) -> Bucket {
        match self.state() {
            Some(Bucket::OnCpu(_)) => Bucket::OnCpu(self.cpu()),
            Some(other) => *other,
            None => Bucket::Unknown,
        }
    }

    pub(super) fn timeout(&self) -> Timeout {
        Timeout::of(self.doing >> DOING_BITS | self.reason >> REASON_BITS << 4)
    }

    pub(super) fn cpu(&self) -> Option<CpuId> {
        (self.cpu != u16::MAX).then_some(CpuId(self.cpu))
    }

    /// The stretch of a thread that begins with this change and lasts until a time.
    #[inline]
    pub(super) fn stretch(&self, to: Ktime) -> Stretch {
        Stretch {
            from: self.from,
            to,
            doing: self.doing(),
            reason: Reason::of(self.reason & REASON),
            timeout: self.timeout(),
            actor: self.actor.actor(),
            cpu: self.cpu(),
        }
    }

    /// Whether the next change of a thread's state only continues the state that this change begins, so that both
    /// are one stretch.
    pub(super) fn is_continued_by(&self, next: &Change) -> bool {
        let of = |change: &Change| (change.doing, change.cpu, change.actor, change.reason);
        of(self) == of(next)
    }
}
