//! Draws the line of `tr record --status` at the bottom of the terminal while COMMAND runs.
//!
//! The rows above this line become the terminal's scrolling region (DECSTBM), so that COMMAND's output scrolls there as
//! before. A program that draws the screen itself turns off the terminal's line mode: while the line mode is off,
//! nothing is drawn, and that program has the whole screen.

use std::collections::HashMap;
use std::fs::{File, OpenOptions};
use std::io::{IsTerminal, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tr_programs::command_line;

use nix::sys::termios::{tcgetattr, LocalFlags};
use tr_format::event::{
    Argv, Comm, Ktime, LifeEvent, LifeKind, Reason, SchedEvent, SchedKind, Switch, Tgid, Tid,
};
use tr_insight::processes::now::{clock, Jobs, Living, Waits};
use tr_record::{Watcher, Watching};
use tr_text::called::TR;
use tr_text::units::shorten;

use crate::layout;

/// The least number of rows of the terminal that must be left to COMMAND for the status line to be drawn.
const ROWS: u16 = 4;

/// The escape codes that make the whole terminal the scrolling region again and keep the place of the cursor.
const WHOLE_SCREEN: &[u8] = b"\x1b7\x1b[r\x1b8";

/// The terminal with the status line of `tr record`. The thread that writes the trace draws the line, and the
/// main thread ends it.
static SCREEN: Mutex<Option<Screen>> = Mutex::new(None);

fn screen() -> MutexGuard<'static, Option<Screen>> {
    SCREEN.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Opens the terminal for the status line of `tr record`, and returns the observer of events that draws it;
/// `None` if the line is not `wanted` or the terminal does not support it.
pub fn watching(wanted: bool) -> Option<Watching> {
    let plain = layout::is_dumb() || layout::variable("CI").is_some();
    if !wanted || plain || !std::io::stderr().is_terminal() {
        return None;
    }
    *screen() = Screen::open();
    screen().is_some().then_some(Watching {
        start: |start| Box::new(Line::new(start)),
        pause,
    })
}

/// Removes the status line while `tr` is stopped by job control.
fn pause() {
    if let Some(screen) = screen().as_mut() {
        screen.clear();
    }
}

/// Removes the status line from the terminal at the end of the recording.
pub fn leave() {
    pause();
    *screen() = None;
}

/// Removes the status line from the terminal after a panic, which may have happened while the line was drawn.
pub fn leave_at_once() {
    match SCREEN.try_lock() {
        Ok(mut screen) => {
            if let Some(mut screen) = screen.take() {
                screen.clear();
            }
        }
        Err(_) => {
            let _ = std::io::stderr().write(WHOLE_SCREEN);
        }
    }
}

/// The terminal on which the status line of `tr record` is drawn.
struct Screen {
    terminal: File,
    /// The number of rows of the terminal when the scrolling region for COMMAND was made; `None` if there is
    /// no such region.
    rows: Option<u16>,
}

impl Screen {
    /// Opens the terminal of standard error once more in non-blocking mode, so that drawing the status line never
    /// waits, and the file descriptors that COMMAND inherits keep their modes. `None` if the terminal cannot be opened.
    fn open() -> Option<Screen> {
        let mut options = OpenOptions::new();
        options.read(true).write(true);
        options.custom_flags(nix::libc::O_NONBLOCK | nix::libc::O_NOCTTY | nix::libc::O_CLOEXEC);
        let terminal = options.open("/proc/self/fd/2").ok()?;
        Some(Screen {
            terminal,
            rows: None,
        })
    }

    /// Whether `tr` belongs to the foreground process group of the terminal, so that it may draw the status
    /// line.
    fn is_ours(&self) -> bool {
        nix::unistd::tcgetpgrp(&self.terminal) == Ok(nix::unistd::getpgrp())
    }

    /// Whether the terminal is in line mode and echoes input, as a shell leaves it. A program that draws the
    /// whole screen turns this off.
    fn is_plain(&self) -> bool {
        let plain = LocalFlags::ICANON | LocalFlags::ECHO;
        tcgetattr(&self.terminal).is_ok_and(|settings| settings.local_flags.contains(plain))
    }

    fn draw(&mut self, text: &str) {
        if !self.is_ours() {
            return;
        }
        let size = terminal_size::terminal_size_of(&self.terminal);
        let size = size.map(|(columns, rows)| (columns.0, rows.0));
        let Some((columns, rows)) = size.filter(|(_, rows)| *rows > ROWS && self.is_plain()) else {
            self.release();
            return;
        };
        let mut out = String::new();
        if self.rows != Some(rows) {
            // The status line needs the last row. If the cursor is there, the escape code IND scrolls the screen by one
            // row. CUU then moves the cursor up. In any other row, the two codes cancel each other.
            out.push_str("\x1bD\x1b[A");
        }
        self.rows = Some(rows);
        let text = shorten(text, usize::from(columns.saturating_sub(1)));
        // The line is written by one call, so that no output of COMMAND comes between its parts. The escape codes DECSC
        // and DECRC keep the cursor with its colours.
        let above = rows - 1;
        out.push_str(&format!(
            "\x1b7\x1b[1;{above}r\x1b[{rows};1H\x1b[0;2m\x1b[2K{text}\x1b8"
        ));
        let _ = self.terminal.write(out.as_bytes());
    }

    /// Removes the scrolling region above the status line, because a program draws the whole screen itself.
    fn release(&mut self) {
        if self.rows.take().is_some() {
            let _ = self.terminal.write(WHOLE_SCREEN);
        }
    }

    /// Removes the scrolling region and the status line from the terminal.
    fn clear(&mut self) {
        let Some(rows) = self.rows.take() else { return };
        let out = format!("\x1b7\x1b[r\x1b[{rows};1H\x1b[2K\x1b8");
        let _ = self.terminal.write(out.as_bytes());
    }
}

/// The name of a process in the status line: the arguments of its last exec, and its comm. A process that has not
/// called exec yet has its parent's name.
type Name = Arc<(Argv, Comm)>;

/// The state of the status line: the living processes of COMMAND, as the events show them, and the time at which the
/// recording began.
struct Line {
    start: Ktime,
    living: HashMap<u32, Living<(Name, bool)>>,
    /// The threads, by tid, that wait at the moment for a child or to read from a pipe.
    waits: HashMap<u32, Waits>,
}

impl Line {
    fn new(start: Ktime) -> Line {
        Line {
            start,
            living: HashMap::new(),
            waits: HashMap::new(),
        }
    }

    fn ended(&mut self, tid: Tid, tgid: Tgid, group_dead: bool) {
        self.waits.remove(&tid.0);
        if group_dead {
            self.living.remove(&tgid.0);
        }
    }

    fn text(&mut self, time: Ktime) -> String {
        for (pid, living) in &mut self.living {
            living.waits = self.waits.get(pid).copied();
        }
        let jobs = Jobs::of(&self.living);
        let longest = jobs.longest.and_then(|pid| self.living.get(&pid));
        let longest = longest.map(|task| {
            let (name, forked) = &task.name;
            let label = command_line::label_of(&name.0, &name.1, *forked);
            let label = tr_text::escape::text(label.as_bytes());
            (label, time.0.saturating_sub(task.since))
        });
        let text = jobs.text(longest);
        format!("{TR}: {} · {text}", clock(time.since(self.start)))
    }
}

impl Watcher for Line {
    fn sched(&mut self, event: &SchedEvent) {
        let SchedKind::Switch(Switch {
            prev, next, reason, ..
        }) = event.kind
        else {
            return;
        };
        match reason {
            Reason::Child => drop(self.waits.insert(prev.0, Waits::Child)),
            Reason::PipeRead => drop(self.waits.insert(prev.0, Waits::Pipe)),
            _ => {}
        }
        if !self.waits.is_empty() {
            self.waits.remove(&next.0);
        }
    }

    fn life(&mut self, event: &LifeEvent) {
        match &event.kind {
            LifeKind::Fork(fork) if fork.tid.0 == fork.tgid.0 => {
                let parent = self.living.get(&fork.parent_tgid.0);
                let Some(name) = parent.map(|parent| Arc::clone(&parent.name.0)) else {
                    return;
                };
                let child = Living {
                    parent: Some(fork.parent_tgid.0),
                    since: event.time.0,
                    waits: None,
                    name: (name, true),
                };
                self.living.insert(fork.tgid.0, child);
            }
            LifeKind::Exec(exec) => {
                let name = Arc::new((exec.argv.clone(), exec.comm));
                if let Some(process) = self.living.get_mut(&exec.tgid.0) {
                    process.name = (name, false);
                } else if self.living.is_empty() {
                    // The first exec in the recording is COMMAND's. Any later exec of an unknown process belongs to a
                    // server that is recorded as well. A server is no job of COMMAND, so the line does not show it.
                    let command = Living {
                        parent: None,
                        since: event.time.0,
                        waits: None,
                        name: (name, false),
                    };
                    self.living.insert(exec.tgid.0, command);
                }
            }
            LifeKind::Exit(it) => self.ended(it.tid, it.tgid, it.group_dead),
            // Recordings by ptrace and by samples have this event in place of an exit.
            LifeKind::End(it) => self.ended(it.tid, it.tgid, it.group_dead),
            _ => {}
        }
    }

    fn until(&mut self, time: Ktime) {
        let text = self.text(time);
        if let Some(screen) = screen().as_mut() {
            screen.draw(&text);
        }
    }
}

#[cfg(test)]
mod tests {
    use tr_format::event::{Exec, Exit, Fork, TaskEnd};

    use super::*;

    #[test]
    fn a_process_is_gone_after_its_end_however_that_is_reported() {
        let mut line = Line::new(Ktime(0));
        let mut number_after = |kind| {
            line.life(&LifeEvent {
                time: Ktime(1),
                cpu: None,
                kind,
            });
            Jobs::of(&line.living).number
        };
        let fork = |pid| {
            LifeKind::Fork(Fork {
                parent_tgid: Tgid(1),
                tid: Tid(pid),
                tgid: Tgid(pid),
                ..Fork::default()
            })
        };
        let end = |tid, group_dead| {
            LifeKind::End(TaskEnd {
                tid: Tid(tid),
                tgid: Tgid(3),
                status: None,
                group_dead,
                max_rss: None,
            })
        };
        let exit = LifeKind::Exit(Exit {
            tid: Tid(2),
            tgid: Tgid(2),
            group_dead: true,
            ..Exit::default()
        });
        let command = LifeKind::Exec(Exec {
            tgid: Tgid(1),
            ..Exec::default()
        });
        assert_eq!(number_after(command), 1);
        assert_eq!(number_after(fork(2)), 1, "COMMAND has a child");
        assert_eq!(number_after(fork(3)), 2);
        assert_eq!(number_after(exit), 1);
        assert_eq!(number_after(fork(4)), 2);
        assert_eq!(number_after(end(5, false)), 2, "a thread's end");
        assert_eq!(number_after(end(3, true)), 1);
    }
}
