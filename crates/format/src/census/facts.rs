//! The last scheduling events of every task and CPU.

use rustc_hash::FxHashMap;

use crate::event::CpuId;
use crate::sched::{flag, Open, Rest};

/// When and where an event was: those of one CPU are numbered as they stand in its ring.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stamp {
    pub time: u64,
    pub cpu: CpuId,
    pub number: u64,
}

/// A task was switched out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Left {
    pub at: Stamp,
    pub state: u16,
    pub flags: u8,
    pub next: u32,
}

/// A task was woken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Woken {
    pub at: Stamp,
    /// `None`: by an interrupt.
    pub waker: Option<u32>,
}

/// The last of each that was seen of a tid.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Facts {
    /// It was switched in.
    pub came: Option<Stamp>,
    pub left: Option<Left>,
    /// The last two, the later one first: one may have come while it was running, and
    /// one after that. Nobody is woken again before it has run.
    pub woken: [Option<Woken>; 2],
    /// Where and when it was seen running first since it left a CPU, without having been
    /// seen to come there.
    pub ran: Option<Stamp>,
    /// Its last child that was to run in its memory, and when that was first woken.
    pub vfork: Option<(u64, u32)>,
    /// It was first woken then, by who had forked it; whether it ran in the memory of that
    /// one.
    pub born: Option<(u64, u32, bool)>,
}

/// The later one. Of equal times the other, which stands behind it in the file.
fn later<T: Copy>(one: Option<T>, other: Option<T>, time: impl Fn(&T) -> u64) -> Option<T> {
    match (one, other) {
        (Some(one), Some(other)) if time(&one) > time(&other) => Some(one),
        (one, None) => one,
        (_, other) => other,
    }
}

impl Facts {
    fn woken(&mut self, woken: Woken) {
        let [last, before] = self.woken;
        let is_before =
            |known: Option<Woken>| known.is_none_or(|known| known.at.time <= woken.at.time);
        if is_before(last) {
            self.woken = [Some(woken), last];
        } else if is_before(before) {
            self.woken = [last, Some(woken)];
        }
    }

    fn ran(&mut self, ran: Stamp) {
        let left = self.left.map_or(0, |left| left.at.time);
        let known = self.ran.filter(|known| known.time >= left);
        if ran.time >= left && known.is_none_or(|known| ran.time < known.time) {
            self.ran = Some(ran);
        }
    }

    fn add(&mut self, other: &Facts) {
        self.came = later(self.came, other.came, |came| came.time);
        self.left = later(self.left, other.left, |left| left.at.time);
        self.vfork = later(self.vfork, other.vfork, |(time, _)| *time);
        self.born = later(self.born, other.born, |(time, ..)| *time);
        if let Some(ran) = other.ran {
            self.ran(ran);
        }
        let [last, before] = other.woken;
        for woken in [before, last].into_iter().flatten() {
            self.woken(woken);
        }
    }

    /// The time of the last one.
    fn latest(&self) -> u64 {
        let [woken, _] = self.woken;
        let times = [
            self.came.map(|came| came.time),
            self.left.map(|left| left.at.time),
            woken.map(|woken| woken.at.time),
            self.ran.map(|ran| ran.time),
            self.vfork.map(|(time, _)| time),
        ];
        times.into_iter().flatten().max().unwrap_or(0)
    }
}

/// What was last seen of every tid, and who came to every CPU last.
#[derive(Debug, Default)]
pub struct Seen {
    tasks: FxHashMap<u32, Facts>,
    cpus: FxHashMap<u16, (u64, u32)>,
}

impl Seen {
    /// Of a tid.
    pub fn of(&self, tid: u32) -> Facts {
        self.tasks.get(&tid).copied().unwrap_or_default()
    }

    /// When each CPU last switched, and to whom.
    pub fn cpus(&self) -> impl Iterator<Item = (CpuId, u64, u32)> + '_ {
        let cpus = self.cpus.iter();
        cpus.map(|(cpu, (time, next))| (CpuId(*cpu), *time, *next))
    }

    /// How many tids are known.
    pub fn len(&self) -> usize {
        self.tasks.len()
    }

    /// Takes all of another one.
    pub fn add(&mut self, other: Seen) {
        for (tid, facts) in other.tasks {
            self.tasks.entry(tid).or_default().add(&facts);
        }
        for (cpu, (time, next)) in other.cpus {
            self.switched(CpuId(cpu), time, next);
        }
    }

    /// Forgets those tids of which nothing has been seen since `time`, but for these.
    pub fn forget(&mut self, time: u64, lives: impl Fn(u32) -> bool) {
        self.tasks
            .retain(|tid, facts| facts.latest() >= time || lives(*tid));
        self.tasks.shrink_to(2 * self.tasks.len());
    }

    /// Takes an event of a CPU's stream.
    #[inline]
    fn event(&mut self, at: Stamp, event: &Rest) {
        let Stamp { time, cpu, .. } = at;
        let Rest {
            from,
            to,
            state,
            flags,
        } = *event;
        if flags & flag::WAKING != 0 {
            let waker = (flags & flag::IRQ == 0 && from != 0).then_some(from);
            let vfork = flags & flag::VFORK != 0;
            let task = self.tasks.entry(to).or_default();
            task.woken(Woken { at, waker });
            if flags & (flag::NEW | flag::IRQ) == flag::NEW && from != 0 {
                task.born = later(task.born, Some((time, from, vfork)), |(time, ..)| *time);
            }
            let last = self.cpus.get(&cpu.0);
            if from != 0 && last.is_none_or(|(_, next)| *next != from) {
                self.tasks.entry(from).or_default().ran(at);
            }
            if vfork {
                let parent = self.tasks.entry(from).or_default();
                parent.vfork = later(parent.vfork, Some((time, to)), |(time, _)| *time);
            }
            return;
        }
        self.switched(cpu, time, to);
        if from != 0 {
            let left = Left {
                at,
                state,
                flags,
                next: to,
            };
            let task = self.tasks.entry(from).or_default();
            task.left = later(task.left, Some(left), |left| left.at.time);
        }
        if to != 0 {
            let task = self.tasks.entry(to).or_default();
            task.came = later(task.came, Some(at), |came| came.time);
        }
    }

    fn switched(&mut self, cpu: CpuId, time: u64, next: u32) {
        let last = self.cpus.entry(cpu.0).or_insert((time, next));
        if last.0 <= time {
            *last = (time, next);
        }
    }
}

/// Takes a block of a CPU's stream: what is before the moment to `before`, the rest to
/// `since`. The first event has the number `first`. The largest time in it.
pub fn take(
    cpu: CpuId,
    block: &Open,
    first: u64,
    moment: Option<u64>,
    before: &mut Seen,
    since: &mut Seen,
) -> u64 {
    let moment = moment.unwrap_or(u64::MAX);
    let mut latest = 0;
    for ((time, event), number) in block.time.iter().zip(&block.rest).zip(first..) {
        latest = latest.max(*time);
        let seen = match *time < moment {
            true => &mut *before,
            false => &mut *since,
        };
        let at = Stamp {
            time: *time,
            cpu,
            number,
        };
        seen.event(at, event);
    }
    latest
}
