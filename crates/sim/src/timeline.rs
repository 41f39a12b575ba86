//! A recording drawn as a time line, to look at a small failing case.
//!
//! ```text
//!      0 1 2 3 4 5
//! cpu0 ==A=>B====__   A runs, wakes B, goes
//! cpu1 ____..==B===   B runs
//! ```
//!
//! One column for each event, in the order of the stamps; not to scale. In the
//! event's own column and CPU: `A=` A is switched in, `__` the CPU becomes idle,
//! `>B` B is woken, `!B` by an interrupt, `+B` B is woken for the first time,
//! `fB` B is forked, `eA` A calls exec, `xA` A exits, `.A` anything else. The
//! events follow in words.

use std::collections::HashMap;
use std::fmt::Write;

use tr_format::event::{LifeKind, SchedKind, Stream, Tid};

use crate::recording::Recording;
use crate::sink::Event;

/// Letters for tasks, given out in the order of their first events.
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

/// All events of a recording by their stamps; those with equal stamps as they
/// happened.
pub fn in_order(recording: &Recording) -> Vec<Event> {
    let mut events: Vec<(u64, Event)> = Vec::with_capacity(recording.len());
    for (cpu, ring) in recording.meta.cpus.iter().zip(&recording.cpus) {
        events.extend(
            ring.iter()
                .map(|written| (written.seq, Event::Sched(*cpu, written.event))),
        );
    }
    events.extend(recording.life.iter().map(|written| {
        (
            written.seq,
            Event::Life(Stream::Lifecycle, written.event.clone()),
        )
    }));
    events.extend(recording.recorder.iter().map(|written| {
        (
            written.seq,
            Event::Life(Stream::Recorder, written.event.clone()),
        )
    }));
    events.sort_by_key(|(seq, event)| (event.time(), *seq));
    events.into_iter().map(|(_, event)| event).collect()
}

/// Draws the events from `from` to before `to`, counted in [`in_order`].
pub fn draw(recording: &Recording, from: usize, to: usize) -> String {
    let events = in_order(recording);
    let start = recording.meta.start.0;
    let mut letters = Letters::default();
    let cpus = recording.cpus.len();
    let mut rows = vec![String::new(); cpus];
    let mut current: Vec<Option<Tid>> = vec![None; cpus];
    let mut words = String::new();
    for (i, event) in events.iter().enumerate() {
        let shown = i >= from && i < to;
        let mut mark = None;
        let cpu = match event {
            Event::Sched(cpu, sched) => {
                let at = usize::from(cpu.0);
                match sched.kind {
                    SchedKind::Switch { prev, next, .. } => {
                        if i < from {
                            letters.of(prev);
                        }
                        mark = Some(match next {
                            Tid::IDLE => "__".to_owned(),
                            next => format!("{}=", letters.of(next)),
                        });
                        current[at] = Some(next);
                    }
                    SchedKind::Waking {
                        wakee, irq, new, ..
                    } => {
                        let sign = if new {
                            '+'
                        } else if irq {
                            '!'
                        } else {
                            '>'
                        };
                        mark = Some(format!("{sign}{}", letters.of(wakee)));
                    }
                }
                Some(at)
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
                mark = mark.or(Some(format!("{sign}{}", letters.of(tid))));
                life.cpu.map(|cpu| usize::from(cpu.0))
            }
        };
        if !shown {
            continue;
        }
        for (row, line) in rows.iter_mut().enumerate() {
            match &mark {
                Some(mark) if cpu == Some(row) => line.push_str(mark),
                _ => line.push_str(match current[row] {
                    None => "??",
                    Some(Tid::IDLE) => "__",
                    Some(_) => "==",
                }),
            }
        }
        let time = event.time().0 as i64 - start as i64;
        let _ = writeln!(
            words,
            "{i:5} {:>14} {}",
            format!("{:.3} µs", time as f64 / 1000.0),
            say(event)
        );
    }
    let mut out = String::new();
    for (cpu, row) in rows.iter().enumerate() {
        let _ = writeln!(out, "cpu{cpu:<3} {row}");
    }
    let mut names = letters.list.iter();
    while names.len() > 0 {
        let line: Vec<String> = names
            .by_ref()
            .take(12)
            .map(|tid| format!("{}={}", letters.of[tid], tid.0))
            .collect();
        let _ = writeln!(out, "       {}", line.join(" "));
    }
    out.push_str(&words);
    out
}

fn say(event: &Event) -> String {
    match event {
        Event::Sched(cpu, event) => match event.kind {
            SchedKind::Switch {
                prev,
                next,
                prev_state,
                preempt,
                iowait,
            } => {
                let flags = [(preempt, " preempt"), (iowait, " iowait")];
                let flags: String = flags
                    .iter()
                    .filter(|(on, _)| *on)
                    .map(|(_, name)| *name)
                    .collect();
                format!(
                    "cpu{} switch {} → {} state {prev_state:#x}{flags}",
                    cpu.0, prev.0, next.0
                )
            }
            SchedKind::Waking {
                waker,
                wakee,
                irq,
                new,
                vfork,
            } => {
                let flags = [(irq, " irq"), (new, " new"), (vfork, " vfork")];
                let flags: String = flags
                    .iter()
                    .filter(|(on, _)| *on)
                    .map(|(_, name)| *name)
                    .collect();
                format!("cpu{} waking of {} by {}{flags}", cpu.0, wakee.0, waker.0)
            }
        },
        Event::Life(_, event) => {
            let cpu = event
                .cpu
                .map_or_else(|| "recorder".to_owned(), |cpu| format!("cpu{}", cpu.0));
            let what = match &event.kind {
                LifeKind::Fork(f) => format!(
                    "fork {}/{} by {}/{}",
                    f.tid.0, f.tgid.0, f.parent_tid.0, f.parent_tgid.0
                ),
                LifeKind::Exec(e) => format!(
                    "exec {} was {}: {}",
                    e.tid.0,
                    e.old_tid.0,
                    e.argv
                        .args()
                        .map(String::from_utf8_lossy)
                        .collect::<Vec<_>>()
                        .join(" ")
                ),
                LifeKind::Exit(e) => format!(
                    "exit {}/{} status {:#x}{}",
                    e.tid.0,
                    e.tgid.0,
                    e.status,
                    if e.group_dead {
                        format!(", the last, {:#x}", e.group_status)
                    } else {
                        String::new()
                    }
                ),
                LifeKind::Final(f) => format!("final {}: ran {} ns", f.tid.0, f.sum_exec_runtime),
                LifeKind::Snapshot(s) => format!(
                    "alive {}/{} of {} state {:#x}{}{}",
                    s.tid.0,
                    s.tgid.0,
                    s.parent_tgid.0,
                    s.state,
                    if s.on_cpu { " on a cpu" } else { "" },
                    if s.followed { " followed" } else { "" }
                ),
                LifeKind::Lost(l) => format!(
                    "LOST {:?} {:?} until {} ({:?})",
                    l.stream, l.count, l.until.0, l.cause
                ),
                LifeKind::Rename(r) => format!("rename {}", r.tid.0),
                LifeKind::CgroupMove(m) => format!("cgroup of {} is {}", m.tgid.0, m.cgroup.0),
                other => format!("{other:?}"),
            };
            format!("{cpu} {what}")
        }
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
        // B is forked, woken, and in the end the two take turns.
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
