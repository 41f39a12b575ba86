//! Enforces the limits of COMMAND (`--timeout`, `--stall`): a COMMAND that hangs is reported, and then ended.

mod activity;
mod peers;
mod waits;

use std::collections::HashSet;
use std::time::{Duration, Instant};

use self::activity::Activity;
use tr_format::meta::{CommandLimit, EndedByLimit};

use crate::hang::{GuardSettings, Hang};
use crate::proc::{self, Id};

/// The interval at which the guard examines COMMAND's processes. It is shorter if a limit is short.
const LOOK_EVERY: Duration = Duration::from_secs(1);
/// The longest wait for the end of COMMAND's processes after SIGKILL. A process that waits for a disk does
/// not end.
const LAST_WAIT: Duration = Duration::from_secs(2);
/// The largest number of bytes of a hanging process's arguments that are kept for the report.
const ARGV: u32 = 4096;

/// The identity of a process: its id, and its start time, which distinguishes it from another process with
/// the same id.
type Identity = (Id, u64);

/// Watches COMMAND's processes, and ends them when a limit of time or inactivity is reached.
pub struct Guard {
    settings: GuardSettings,
    root: Id,
    start: Instant,
    next: Instant,
    every: Duration,
    /// COMMAND's process and its descendants that lived at the last examination, including those whose parents have
    /// ended.
    own: Vec<Identity>,
    activity: Activity,
    end: Option<End>,
}

/// The progress of ending COMMAND after it has reached a limit: which limit, when the ending began, and when
/// SIGKILL was sent.
struct End {
    by: EndedByLimit,
    since: Instant,
    killed: Option<Instant>,
}

impl Guard {
    /// Creates the guard of COMMAND, whose limits of time count from now on; `None` if the settings have no limit.
    pub fn new(settings: &GuardSettings, root: u32) -> Option<Guard> {
        let shortest = [settings.timeout, settings.stall];
        let shortest = shortest.into_iter().flatten().min()?;
        let now = Instant::now();
        let every = (shortest / 10).clamp(Duration::from_millis(50), LOOK_EVERY);
        Some(Guard {
            settings: settings.clone(),
            root: Id::try_from(root).ok()?,
            start: now,
            next: now + every,
            every,
            own: Vec::new(),
            activity: Activity::new(now, every),
            end: None,
        })
    }

    /// The time at which the guard examines COMMAND's processes next.
    pub fn next(&self) -> Instant {
        self.next
    }

    /// The limit because of which the guard ends or has ended COMMAND; `None` if no limit was reached.
    pub fn limit(&self) -> Option<EndedByLimit> {
        self.end.as_ref().map(|end| end.by)
    }

    /// Whether the guard is ending COMMAND's processes and some of them still live. False when `LAST_WAIT` has passed
    /// since SIGKILL.
    pub fn is_ending(&self) -> bool {
        self.end.as_ref().is_some_and(|end| {
            let given_up = end.killed.is_some_and(|at| at.elapsed() >= LAST_WAIT);
            !given_up && self.own.iter().any(|process| lives(*process))
        })
    }

    /// Examines COMMAND's processes if an examination is due, and ends COMMAND if it has reached a limit.
    /// `others` returns further processes that work for COMMAND: servers and containers.
    pub fn step(&mut self, others: impl FnOnce() -> Vec<u32>) {
        let now = Instant::now();
        if now < self.next {
            return;
        }
        self.next = now + self.every;
        self.find_own();
        if let Some(end) = &mut self.end {
            let is_due = end.since.elapsed() >= self.settings.kill_after;
            if is_due && end.killed.is_none() {
                end.killed = Some(now);
            }
            if end.killed.is_some() {
                send(&self.own, libc::SIGKILL);
            }
            return;
        }
        let mut working: Vec<Id> = self.own.iter().map(|(id, _)| *id).collect();
        let others = others()
            .into_iter()
            .filter_map(|pid| Id::try_from(pid).ok());
        working.extend(others);
        working.sort_unstable();
        working.dedup();
        self.activity.look(now, self.root, &working);
        let quiet = self.activity.quiet();
        let reached = |limit: Option<Duration>, time| limit.filter(|limit| time >= *limit);
        if let Some(timeout) = reached(self.settings.timeout, now - self.start) {
            self.begin_end(CommandLimit::Timeout, timeout);
        } else if reached(self.settings.stall, quiet).is_some() {
            self.begin_end(CommandLimit::Stall, quiet);
        }
    }

    fn begin_end(&mut self, limit: CommandLimit, length: Duration) {
        let ns = u64::try_from(length.as_nanos()).unwrap_or(u64::MAX);
        let ended = EndedByLimit { limit, ns };
        let processes = waits::processes(&self.own, &self.activity);
        let hang = Hang {
            ended,
            kill_after: self.settings.kill_after,
            root: self.root.unsigned_abs(),
            processes,
        };
        (self.settings.on_hang)(&hang);
        send(&self.own, libc::SIGTERM);
        // A stopped process handles SIGTERM only after SIGCONT.
        send(&self.own, libc::SIGCONT);
        let now = Instant::now();
        self.end = Some(End {
            by: ended,
            since: now,
            killed: None,
        });
        self.every = self.every.min(Duration::from_millis(100));
        self.next = now + self.every;
    }

    /// Finds COMMAND's process and its descendants, as far as they live.
    fn find_own(&mut self) {
        self.own.retain(|process| lives(*process));
        let mut known: HashSet<Id> = self.own.iter().map(|(id, _)| *id).collect();
        let mut next: Vec<Id> = known.iter().copied().chain([self.root]).collect();
        while let Some(id) = next.pop() {
            if !known.contains(&id) {
                let Some(stat) = proc::stat(id).filter(|stat| !stat.zombie) else {
                    continue;
                };
                known.insert(id);
                self.own.push((id, stat.start));
            }
            let children = proc::children(id).into_iter();
            next.extend(children.filter(|child| !known.contains(child)));
        }
    }
}

fn lives((id, start): Identity) -> bool {
    proc::stat(id).is_some_and(|stat| stat.start == start && !stat.zombie)
}

fn send(processes: &[Identity], signal: i32) {
    for process in processes {
        if lives(*process) {
            // SAFETY: a plain system call.
            unsafe { libc::kill(process.0, signal) };
        }
    }
}
