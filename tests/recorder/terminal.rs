//! Records on a pseudo-terminal, under a shell with job control.

use std::fs::File;
use std::io::{Read, Write};
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex};

use libtest_mimic::Failed;

use crate::support::{analyze, ensure, eventually, scratch, text, Test, TR};

pub const TESTS: &[Test] = &[
    ("ctrl_c_reaches_the_command_once", || ctrl_c("auto")),
    ("ctrl_backslash_reaches_the_command", || {
        ctrl_backslash("auto")
    }),
    ("ctrl_z_stops_and_fg_goes_on", || ctrl_z("auto")),
    (
        "ctrl_c_before_the_command_runs_means_it_never_does",
        ctrl_c_early,
    ),
    ("a_new_window_size_reaches_the_command", || window("auto")),
    ("raw_mode_is_the_commands", || raw("auto")),
    ("an_interactive_shell_can_be_recorded", || {
        interactive("auto")
    }),
    ("a_shell_that_suspends_itself_is_seen_and_continued", || {
        suspended("auto")
    }),
    ("a_status_line_leaves_the_output_as_it_is", status_line),
    ("a_status_line_is_gone_while_tr_is_stopped", status_stopped),
    ("a_status_line_keeps_away_from_raw_mode_and_ci", status_away),
    (TIOCSTI, other_user),
];

/// The test of a terminal that uses the method ptrace, so it needs no right to trace.
pub const OTHER_METHODS: &[Test] = &[("a_terminal_under_ptrace_is_as_without", || {
    terminal("ptrace")
})];

fn terminal(method: &str) -> Result<(), Failed> {
    ctrl_c(method)?;
    ctrl_backslash(method)?;
    ctrl_z(method)?;
    window(method)?;
    raw(method)?;
    interactive(method)?;
    suspended(method)
}

/// The name of a test that needs root.
pub const TIOCSTI: &str = "another_user_cannot_type_into_the_terminal";

/// A shell with job control on a pseudo-terminal of its own.
struct Terminal {
    keys: File,
    screen: Arc<Mutex<Vec<u8>>>,
    shell: Child,
}

impl Terminal {
    fn new(method: &str) -> Result<Terminal, Failed> {
        let pty = nix::pty::openpty(None, None)?;
        let slave = pty.slave.as_raw_fd();
        let stream = || -> Result<Stdio, Failed> { Ok(pty.slave.try_clone()?.into()) };
        let mut shell = Command::new("bash");
        shell
            .args(["--norc", "--noprofile", "-i"])
            .env("PS1", "$ ")
            .env("TR", TR)
            .env("METHOD", method);
        shell.env("TRACE", scratch("terminal.bin"));
        shell.stdin(stream()?).stdout(stream()?).stderr(stream()?);
        // SAFETY: the closure makes two system calls, both of which are allowed between fork and exec.
        unsafe {
            shell.pre_exec(move || {
                nix::unistd::setsid()?;
                match libc::ioctl(slave, libc::TIOCSCTTY, 0) {
                    0 => Ok(()),
                    _ => Err(std::io::Error::last_os_error()),
                }
            });
        }
        let shell = shell.spawn()?;
        drop(pty.slave);
        let screen = Arc::new(Mutex::new(Vec::new()));
        let (reader, seen) = (pty.master.try_clone()?, screen.clone());
        std::thread::spawn(move || watch(reader, &seen));
        let _ = std::fs::remove_file(scratch("terminal.bin"));
        Ok(Terminal {
            keys: pty.master.into(),
            screen,
            shell,
        })
    }

    fn types(&mut self, keys: &str) -> Result<(), Failed> {
        Ok(self.keys.write_all(keys.as_bytes())?)
    }

    fn shows(&self, what: &str) -> Result<(), Failed> {
        let screen = || text(&self.screen.lock().expect("no panic"));
        eventually(what, || screen().contains(what))
            .map_err(|_| format!("{what:?} is not on the screen: {:?}", screen()).into())
    }

    /// Records `command`, and waits until it has printed "ready".
    fn records(&mut self, command: &str) -> Result<(), Failed> {
        self.types(&format!(
            "\"$TR\" record -q --method $METHOD -o \"$TRACE\" -- {command}\r"
        ))?;
        self.shows("ready")
    }

    /// Checks the exit status of the last command line.
    fn status(&mut self, want: i32) -> Result<(), Failed> {
        self.types("echo sta''tus=$?.\r")?;
        self.shows(&format!("status={want}."))
    }

    fn complete(&self) -> Result<(), Failed> {
        let analysis = analyze(&scratch("terminal.bin"))?;
        ensure(analysis["trace"]["truncated"] == false, || {
            "the trace is cut".into()
        })
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        let _ = self.shell.kill();
        let _ = self.shell.wait();
    }
}

fn watch(reader: OwnedFd, screen: &Mutex<Vec<u8>>) {
    let (mut reader, mut bytes) = (File::from(reader), [0; 4096]);
    while let Ok(count @ 1..) = reader.read(&mut bytes) {
        screen
            .lock()
            .expect("no panic")
            .extend_from_slice(&bytes[..count]);
    }
}

/// A command that counts its interrupts (SIGINT) and ends after a while.
const COUNTS: &str = "bash -c 'n=0; trap \"n=\\$((n+1))\" INT; echo rea\"\"dy; \
    for i in 1 2 3 4 5 6 7 8; do sleep 0.1; done; echo times=$n.; exit 9'";

fn ctrl_c(method: &str) -> Result<(), Failed> {
    let mut terminal = Terminal::new(method)?;
    terminal.records(COUNTS)?;
    terminal.types("\x03")?;
    terminal.shows("times=1.")?;
    terminal.status(9)?;
    terminal.records("sh -c 'echo aga\"\"in rea\"\"dy; exec sleep 30'")?;
    terminal.shows("again ready")?;
    terminal.types("\x03")?;
    terminal.status(130)?;
    terminal.complete()
}

fn ctrl_backslash(method: &str) -> Result<(), Failed> {
    let mut terminal = Terminal::new(method)?;
    terminal.records("sh -c 'ulimit -c 0; echo rea\"\"dy; exec sleep 30'")?;
    terminal.types("\x1c")?;
    terminal.status(131)?;
    terminal.complete()
}

fn ctrl_z(method: &str) -> Result<(), Failed> {
    let mut terminal = Terminal::new(method)?;
    terminal.records("sh -c 'echo rea\"\"dy; sleep 1; exit 7'")?;
    terminal.types("\x1a")?;
    terminal.shows("Stopped")?;
    terminal.types("jobs; echo sta''tus=$?.\r")?;
    terminal.shows("status=0.")?;
    terminal.types("fg\r")?;
    terminal.status(7)?;
    terminal.complete()
}

fn ctrl_c_early() -> Result<(), Failed> {
    let mut terminal = Terminal::new("auto")?;
    let mark = scratch("terminal.ran");
    let _ = std::fs::remove_file(&mark);
    // The signal arrives while the recorder starts.
    terminal.types(&format!(
        "\"$TR\" record -q --method $METHOD -o \"$TRACE\" -- touch {} & sleep 0.02; kill -INT %1; wait %1\r",
        mark.display()
    ))?;
    terminal.types("echo sta''tus=$?.\r")?;
    terminal.shows("status=")?;
    let ran = mark.exists();
    let shown = text(&terminal.screen.lock().expect("no panic"));
    // On a fast machine, the recording may have ended before the signal arrived.
    ensure(shown.contains("status=130.") != ran, || {
        format!("ran: {ran}, {shown:?}")
    })
}

fn window(method: &str) -> Result<(), Failed> {
    let mut terminal = Terminal::new(method)?;
    terminal.records(
        "bash -c 'trap \"stty size; exit 5\" WINCH; echo rea\"\"dy; while :; do sleep 0.05; done'",
    )?;
    let size = nix::pty::Winsize {
        ws_row: 33,
        ws_col: 77,
        ws_xpixel: 0,
        ws_ypixel: 0,
    };
    // SAFETY: the call reads the struct, which outlives it.
    let set = unsafe { libc::ioctl(terminal.keys.as_raw_fd(), libc::TIOCSWINSZ, &size) };
    ensure(set == 0, || "no window size".into())?;
    terminal.shows("33 77")?;
    terminal.status(5)
}

fn raw(method: &str) -> Result<(), Failed> {
    let mut terminal = Terminal::new(method)?;
    terminal.records(
        "sh -c 'stty raw -echo; echo rea\"\"dy; head -c 2 | od -An -tx1; stty sane; exit 4'",
    )?;
    terminal.types("\x03\x1a")?;
    terminal.shows("03 1a")?;
    terminal.status(4)
}

fn interactive(method: &str) -> Result<(), Failed> {
    let mut terminal = Terminal::new(method)?;
    terminal
        .types("\"$TR\" record --method $METHOD -o \"$TRACE\" -- bash --norc --noprofile -i\r")?;
    terminal.types("PS1='in''ner> '\r")?;
    terminal.shows("inner> ")?;
    terminal.types("read -p 'wo''rds? ' x\r")?;
    terminal.shows("words? ")?;
    terminal.types("some words\r")?;
    terminal.types("echo got: $x.\r")?;
    terminal.shows("got: some words.")?;
    // The inner shell starts a job, whose own process group is in the foreground.
    terminal.types("sh -c 'echo rea\"\"dy; exec sleep 30'\r")?;
    terminal.shows("ready")?;
    terminal.types("\x03")?;
    terminal.types("echo in''side=$?.\r")?;
    terminal.shows("inside=130.")?;
    terminal.types("exit 6\r")?;
    terminal.shows("none lost")?;
    terminal.status(6)?;
    terminal.complete()
}

/// The inner shell stops only its own process group. `tr` must stop as well, so that the outer shell continues.
fn suspended(method: &str) -> Result<(), Failed> {
    let mut terminal = Terminal::new(method)?;
    terminal.types(
        "\"$TR\" record -q --method $METHOD -o \"$TRACE\" -- bash --norc --noprofile -i\r",
    )?;
    terminal.types("PS1='in''ner> '\r")?;
    terminal.shows("inner> ")?;
    for round in 1..3 {
        terminal.types("suspend -f\r")?;
        terminal.types(&format!("echo out''side={round}.\r"))?;
        terminal.shows(&format!("outside={round}."))?;
        terminal.shows("Stopped")?;
        terminal.types("fg\r")?;
        terminal.types(&format!("echo in''side={round}.\r"))?;
        terminal.shows(&format!("inside={round}."))?;
    }
    terminal.types("exit 6\r")?;
    terminal.status(6)?;
    terminal.complete()
}

impl Terminal {
    fn size(&self, rows: u16) -> Result<(), Failed> {
        let size = nix::pty::Winsize {
            ws_row: rows,
            ws_col: 80,
            ws_xpixel: 0,
            ws_ypixel: 0,
        };
        // SAFETY: the call reads the struct, which outlives it.
        let set = unsafe { libc::ioctl(self.keys.as_raw_fd(), libc::TIOCSWINSZ, &size) };
        ensure(set == 0, || "no window size".into())
    }

    fn shown(&self) -> String {
        text(&self.screen.lock().expect("no panic"))
    }

    fn records_with_status(&mut self, command: &str) -> Result<(), Failed> {
        self.types(&format!(
            "TERM=xterm \"$TR\" record -q --status -o \"$TRACE\" -- {command}\r"
        ))?;
        self.shows("ready")
    }
}

/// The escape sequences that remove the status line and its scroll region, so that the terminal is as before.
const GONE: &str = "\x1b7\x1b[r\x1b[24;1H\x1b[2K\x1b8";

/// The output to a terminal without everything between saving and restoring the cursor, which is the status line.
fn without_status(shown: &str) -> String {
    let mut left = String::new();
    let mut rest = shown;
    while let Some((before, line)) = rest.split_once("\x1b7") {
        left.push_str(before);
        rest = line.split_once("\x1b8").map_or("", |(_, after)| after);
    }
    left + rest
}

fn status_line() -> Result<(), Failed> {
    let mut terminal = Terminal::new("auto")?;
    terminal.types("unset CI\r")?;
    terminal.size(24)?;
    // The command prints half a line before each sleep, so that the status line is drawn in the middle of a line.
    terminal.records_with_status(
        "sh -c 'echo rea\"\"dy; for i in 1 2 3; do printf one-$i; sleep 1; echo -two-$i; done; exit 3'",
    )?;
    terminal.shows("\x1b[1;23r\x1b[24;1H")?;
    terminal.shows("· 1 job runs, sleep 1 ")?;
    terminal.shows("· 1 waits for it\x1b8")?;
    // A new size of the terminal changes the scroll region.
    terminal.size(30)?;
    terminal.shows("\x1b[1;29r\x1b[30;1H")?;
    terminal.size(24)?;
    terminal.shows("-two-3\r\n")?;
    terminal.status(3)?;
    let shown = terminal.shown();
    let output = without_status(&shown).replace("\x1bD\x1b[A", "");
    for line in 1..4 {
        ensure(
            output.contains(&format!("one-{line}-two-{line}\r\n")),
            || format!("{output:?}"),
        )?;
    }
    let last = shown.rfind("\x1b7").and_then(|at| shown.get(at..));
    ensure(last.is_some_and(|last| last.starts_with(GONE)), || {
        format!("{last:?}")
    })?;
    // After Ctrl-C the status line is removed as well.
    terminal.records_with_status("sh -c 'echo rea\"\"dy; exec sleep 30'")?;
    terminal.shows("1 job runs, sleep 30 ")?;
    terminal.types("\x03")?;
    terminal.status(130)?;
    let shown = terminal.shown();
    let last = shown.rfind("\x1b7").and_then(|at| shown.get(at..));
    ensure(last.is_some_and(|last| last.starts_with(GONE)), || {
        format!("{last:?}")
    })?;
    terminal.complete()
}

fn status_stopped() -> Result<(), Failed> {
    let mut terminal = Terminal::new("auto")?;
    terminal.types("unset CI\r")?;
    terminal.size(24)?;
    terminal.records_with_status("sh -c 'echo rea\"\"dy; sleep 2; sleep 1.5; exit 7'")?;
    terminal.shows("job runs")?;
    terminal.types("\x1a")?;
    terminal.shows("Stopped")?;
    let shown = terminal.shown();
    let (before, _) = shown.rsplit_once("Stopped").unwrap_or_default();
    let last = before.rfind("\x1b7").and_then(|at| before.get(at..));
    ensure(last.is_some_and(|last| last.starts_with(GONE)), || {
        format!("{last:?}")
    })?;
    terminal.types("fg\r")?;
    terminal.shows("sleep 1.5 ")?;
    terminal.status(7)?;
    terminal.complete()
}

fn status_away() -> Result<(), Failed> {
    let mut terminal = Terminal::new("auto")?;
    terminal.types("unset CI\r")?;
    terminal.size(24)?;
    terminal.records_with_status(
        "sh -c 'stty raw -echo; echo rea\"\"dy; sleep 1.6; stty sane; exit 4'",
    )?;
    terminal.status(4)?;
    terminal.types("export CI=true\r")?;
    terminal.records_with_status("sh -c 'echo rea\"\"dy in CI; sleep 1.6; exit 5'")?;
    terminal.status(5)?;
    let shown = terminal.shown();
    ensure(!shown.contains("\x1b7"), || format!("{shown:?}"))
}

/// TIOCSTI types into the controlling terminal of the caller. A command of another user must not be able to do so.
fn other_user() -> Result<(), Failed> {
    let mut terminal = Terminal::new("auto")?;
    let keys: Vec<String> = b"echo typ''ed\r".iter().map(u8::to_string).collect();
    terminal.types(&format!(
        "\"$TR\" record -q --method $METHOD -o \"$TRACE\" --user nobody -- python3 -c $'import fcntl, termios\\n\
         try:\\n for key in [{}]: fcntl.ioctl(0, termios.TIOCSTI, bytes([key]))\\n\
         except OSError: pass\\nprint(\"rea\" \"dy\")'\r",
        keys.join(", ")
    ))?;
    terminal.shows("ready")?;
    terminal.status(0)?;
    let shown = text(&terminal.screen.lock().expect("no panic"));
    ensure(!shown.contains("typed"), || shown.clone())?;
    // The command has a session of its own, so Ctrl-C on the terminal does not reach it directly: tr passes Ctrl-C on
    // to the command.
    terminal.types("\"$TR\" record -q --method $METHOD -o \"$TRACE\" --user nobody -- sh -c 'echo wai\"\"ting; exec sleep 30'\r")?;
    terminal.shows("waiting")?;
    terminal.types("\x03")?;
    terminal.status(130)?;
    terminal.complete()
}
