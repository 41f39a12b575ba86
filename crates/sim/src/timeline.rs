//! Draws a simulated recording as a time line, to show a small failing test case.
//!
//! ```text
//!      0 1 2 3 4 5
//! cpu0 ==A=>B====__   A runs, wakes B, goes
//! cpu1 ____..==B===   B runs
//! ```
//!
//! There is one column for each event, in the order of the time stamps; the picture is not to scale. In the column of
//! an event and the line of its CPU: `A=` switch-in of A, `__` idle, `>B` waking of B, `!B` waking by an interrupt,
//! `+B` first waking of a new task, `fB` fork of B, `eA` exec, `xA` exit, `.A` any other event. Below the picture, each
//! event is described in words.

use std::collections::HashMap;
use std::fmt::Write;

use tr_format::event::{LifeKind, SchedKind, Stream, Switch, Tid, Waking};

use crate::recording::Recording;
use crate::sink::Event;

/// The letters that stand for tasks in the picture of a simulated recording, in the order of the
/// tasks' first events.
#[derive(Default)]
struct Letters {
    of: HashMap<Tid, char>,
    list: Vec<Tid>,
}

impl Letters {
    fn of(&mut self, tid: Tid) -> char {
        if tid == Tid::IDLE {
            return '_';
        }
        let list = &mut self.list;
        *self.of.entry(tid).or_insert_with(|| {
            let n = list.len();
            list.push(tid);
            b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789"
                .get(n)
                .map_or('#', |b| char::from(*b))
        })
    }
}

/// All events of a simulated recording, ordered by their time stamps; events with equal stamps are
/// in their true order.
pub fn in_order(recording: &Recording) -> Vec<Event> {
    let mut events: Vec<(u64, Event)> = Vec::with_capacity(recording.len());
    for (cpu, ring) in recording.meta.cpus.iter().zip(&recording.cpus) {
        events.extend(ring.iter().map(|w| (w.seq, Event::Sched(*cpu, w.event))));
    }
    let streams = [
        (Stream::Lifecycle, &recording.life),
        (Stream::Recorder, &recording.recorder),
    ];
    for (stream, ring) in streams {
        events.extend(
            ring.iter()
                .map(|w| (w.seq, Event::Life(stream, w.event.clone()))),
        );
    }
    events.sort_by_key(|(seq, event)| (event.time(), *seq));
    events.into_iter().map(|(_, event)| event).collect()
}

/// A picture of some events of a simulated recording, from the event number `from` to before `to`,
/// in the order of [`in_order`].
pub fn draw(recording: &Recording, from: usize, to: usize) -> String {
    let mut letters = Letters::default();
    let mut rows = vec![String::new(); recording.cpus.len()];
    let mut current: Vec<Option<Tid>> = vec![None; rows.len()];
    let mut words = String::new();
    for (i, event) in in_order(recording).iter().enumerate() {
        if let Event::Sched(cpu, sched) = event {
            if let SchedKind::Switch(Switch { prev, next, .. }) = sched.kind {
                if i < from {
                    letters.of(prev);
                }
                current[usize::from(cpu.0)] = Some(next);
            }
        }
        let (cpu, mark) = mark(event, &mut letters);
        if i < from || i >= to {
            continue;
        }
        for (row, line) in rows.iter_mut().enumerate() {
            line.push_str(match current[row] {
                _ if cpu == Some(row) => &mark,
                None => "??",
                Some(Tid::IDLE) => "__",
                Some(_) => "==",
            });
        }
        let time = (event.time().0 as i64 - recording.meta.start.0 as i64) as f64 / 1000.0;
        let _ = writeln!(
            words,
            "{i:5} {:>14} {}",
            format!("{time:.3} µs"),
            describe(event)
        );
    }
    let mut out = String::new();
    for (cpu, row) in rows.iter().enumerate() {
        let _ = writeln!(out, "cpu{cpu:<3} {row}");
    }
    for names in letters.list.chunks(12) {
        let line: Vec<String> = names
            .iter()
            .map(|t| format!("{}={}", letters.of[t], t.0))
            .collect();
        let _ = writeln!(out, "       {}", line.join(" "));
    }
    out.push_str(&words);
    out
}

/// The CPU of a simulated event, and the two characters that stand for it in the picture of the
/// recording.
fn mark(event: &Event, letters: &mut Letters) -> (Option<usize>, String) {
    match event {
        Event::Sched(cpu, sched) => {
            let mark = match sched.kind {
                SchedKind::Switch(Switch {
                    next: Tid::IDLE, ..
                }) => "__".to_owned(),
                SchedKind::Switch(Switch { next, .. }) => format!("{}=", letters.of(next)),
                SchedKind::Waking(Waking {
                    wakee,
                    context,
                    new,
                    ..
                }) => {
                    let sign = if new {
                        '+'
                    } else if context.is_interrupt() {
                        '!'
                    } else {
                        '>'
                    };
                    format!("{sign}{}", letters.of(wakee))
                }
            };
            (Some(usize::from(cpu.0)), mark)
        }
        Event::Life(_, life) => {
            let (sign, tid) = match &life.kind {
                LifeKind::Fork(fork) => ('f', fork.tid),
                LifeKind::Exec(exec) => ('e', exec.tid),
                LifeKind::Exit(exit) => ('x', exit.tid),
                LifeKind::Final(last) => ('.', last.tid),
                LifeKind::Rename(rename) => ('.', rename.tid),
                LifeKind::CgroupMove(moved) => ('.', moved.tid),
                LifeKind::Snapshot(snapshot) => ('.', snapshot.tid),
                _ => ('.', Tid::IDLE),
            };
            let cpu = life.cpu.map(|cpu| usize::from(cpu.0));
            (cpu, format!("{sign}{}", letters.of(tid)))
        }
    }
}

/// The names of those flags of an event that are set, for the picture of a simulated recording.
fn flags(flags: &[(bool, &str)]) -> String {
    let set = flags.iter().filter(|(set, _)| *set);
    set.map(|(_, name)| *name).collect()
}

/// A simulated event as a line of text, for the picture of a recording.
#[rustfmt::skip]
fn describe(event: &Event) -> String {
    match event {
        Event::Sched(cpu, event) => match event.kind {
            SchedKind::Switch(Switch { prev, next, prev_state, preempt, iowait, reason, timeout }) => format!(
                "cpu{} switch {} → {} state {prev_state:#x} {} {}{}",
                cpu.0, prev.0, next.0, reason.name(), timeout.number(), flags(&[(preempt, " preempt"), (iowait, " iowait")])
            ),
            SchedKind::Waking(Waking { waker, wakee, context, new, vfork }) => format!(
                "cpu{} waking of {} by {} {}{}",
                cpu.0, wakee.0, waker.0, context.name(), flags(&[(new, " new"), (vfork, " vfork")])
            ),
        },
        Event::Life(_, event) => {
            let cpu = event.cpu.map_or("recorder".to_owned(), |cpu| format!("cpu{}", cpu.0));
            format!("{cpu} {}", describe_life(&event.kind))
        }
    }
}

#[rustfmt::skip]
fn describe_life(kind: &LifeKind) -> String {
    match kind {
        LifeKind::Fork(f) => format!(
            "fork {}/{} by {}/{}", f.tid.0, f.tgid.0, f.parent_tid.0, f.parent_tgid.0
        ),
        LifeKind::Exec(e) => {
            let args: Vec<_> = e.argv.args().map(String::from_utf8_lossy).collect();
            format!("exec {} was {}: {}", e.tid.0, e.old_tid.0, args.join(" "))
        }
        LifeKind::Exit(e) => {
            let group = format!(", the last, {:#x}", e.group_status);
            let group = flags(&[(e.group_dead, &group)]);
            format!("exit {}/{} status {:#x}{group}", e.tid.0, e.tgid.0, e.status)
        }
        LifeKind::Final(f) => format!("final {}: ran {} ns", f.tid.0, f.sum_exec_runtime),
        LifeKind::Snapshot(s) => format!(
            "alive {}/{} of {} state {:#x}{}", s.tid.0, s.tgid.0, s.parent_tgid.0, s.state,
            flags(&[(s.on_cpu, " on a cpu"), (s.followed, " followed")])
        ),
        LifeKind::Lost(l) => format!(
            "LOST {:?} {:?} until {} ({:?})", l.stream, l.count, l.until.0, l.cause
        ),
        LifeKind::Rename(r) => format!("rename {}", r.tid.0),
        LifeKind::CgroupMove(m) => format!("cgroup of {} is {}", m.tgid.0, m.cgroup.0),
        other => format!("{other:?}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Config;
    use crate::scenario;

    #[test]
    fn a_ping_pong_looks_like_one() {
        let mut config = Config::new(scenario::pipe(), 1, 1_000_000_000);
        config.max_events = 40;
        let (recording, _) = Recording::record(&config);
        let drawn = draw(&recording, 0, usize::MAX);
        assert!(drawn.starts_with("cpu0   ?"), "{drawn}");
        let row = drawn.lines().next().unwrap_or_default();
        // The picture must show that B is forked, woken for the first time, and switched in; at its end, A and B
        // alternate.
        assert!(
            row.contains("fB") && row.contains("+B") && row.contains("B=>A"),
            "{drawn}"
        );
        assert!(
            row.ends_with("A=>BB=>AA=>BB=") || row.ends_with("B=>AA=>BB=>AA="),
            "{drawn}"
        );
        assert!(drawn.contains("exec"), "{drawn}");
    }
}
