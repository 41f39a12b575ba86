//! Sends long text on a terminal through a pager, as git does: `TR_PAGER`, `PAGER`, or less. There is no pager if its
//! name is empty or `cat`, or if the output is a pipe or a file.
//!
//! A shell waits for the first line and starts the pager then, so that the terminal shows the progress until there is
//! text. The shell is started before a trace is read, because afterwards this process may not start programs
//! (`confine.rs`).

use std::io::{IsTerminal, Write};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicI32, Ordering};
use std::sync::OnceLock;

use crate::{inherited, layout, limits, open};

/// The shell script that runs the pager $1 on the output of `tr`, or passes the output on unchanged if there is no
/// such program. The pager itself handles Ctrl-C.
const SHELL: &str = r#"
trap '' INT QUIT
command -v "${1%% *}" >/dev/null 2>&1 || { trap - INT QUIT; set -- cat; }
IFS= read -r first || [ -n "$first" ] || exit 0
{ printf '%s\n' "$first"; exec cat; } | eval "$1"
"#;

/// The width in columns of the terminal on which the pager shows text; set when a pager is started.
static COLUMNS: OnceLock<Option<usize>> = OnceLock::new();

/// The pid of the shell that runs the pager, while standard output goes to it; otherwise 0.
static RUNNING: AtomicI32 = AtomicI32::new(0);

/// A running pager to which the process's standard output goes.
pub struct Pager(Child);

/// Whether standard output is a terminal, or goes to a pager that was started in a terminal's place.
pub fn terminal() -> bool {
    COLUMNS.get().is_some() || std::io::stdout().is_terminal()
}

/// The width in columns of the terminal on which standard output appears, directly or through a pager.
pub fn columns() -> Option<usize> {
    let asked = || {
        let size = terminal_size::terminal_size_of(std::io::stdout());
        size.map(|(width, _)| usize::from(width.0))
    };
    COLUMNS.get().copied().unwrap_or_else(asked)
}

/// The pager that TR_PAGER or PAGER names, or else less; `None` if the name is empty or `cat`, so that text goes to the
/// terminal directly.
fn named() -> Option<String> {
    let named = ["TR_PAGER", "PAGER"].into_iter().find_map(std::env::var_os);
    let named = named.map_or("less".into(), |name| name.to_string_lossy().into_owned());
    Some(named).filter(|command| !command.trim().is_empty() && command != "cat")
}

/// The environment variables, with values, that `tr` sets for the pager, for example LESS. `is_set` is a function that
/// returns whether the user has set a variable.
fn settings(is_set: impl Fn(&str) -> bool) -> Vec<(&'static str, &'static str)> {
    // git sets the same values: colours are shown, and text that fits on the screen is not paged.
    let mut settings = vec![("LESS", "FRX"), ("LV", "-c")];
    // The text is UTF-8 in every locale. In the POSIX locale, less would otherwise print the bytes in hexadecimal.
    if !is_set("LESSCHARDEF") {
        settings.push(("LESSCHARSET", "utf-8"));
    }
    settings.retain(|(name, _)| !is_set(name));
    settings
}

/// Starts a pager and redirects standard output to it, if standard output is a terminal that the process controls.
pub fn start() -> Option<Pager> {
    if layout::is_dumb() || !std::io::stdout().is_terminal() {
        return None;
    }
    let pager = named()?;
    let columns = columns();
    let mut shell = Command::new("sh");
    shell
        .args(["-c", SHELL, "sh", &pager])
        .stdin(Stdio::piped());
    shell.envs(settings(|name| std::env::var_os(name).is_some()));
    let mut child = shell.spawn().ok()?;
    let input = child.stdin.take()?;
    nix::unistd::dup2_stdout(input).ok()?;
    let _ = COLUMNS.set(columns);
    if let Ok(pid) = i32::try_from(child.id()) {
        RUNNING.store(pid, Ordering::Release);
        limits::before_end(cut);
    }
    // From the first output on, the pager alone handles Ctrl-C.
    open::on_begin(inherited::ignore_interrupts);
    Some(Pager(child))
}

/// Ends the output to the pager early, because this process has to end, and waits until the user has closed the pager.
/// The function allocates no memory. Threads that still print are stopped.
fn cut() {
    let pid = RUNNING.swap(0, Ordering::AcqRel);
    if pid == 0 {
        return;
    }
    inherited::ignore_interrupts();
    // Standard output becomes a pipe that nobody reads. It is soon full, which stops the threads that still print.
    let full = nix::unistd::pipe();
    if let Ok((_, input)) = &full {
        let _ = nix::unistd::dup2_stdout(input);
    }
    let _ = nix::sys::wait::waitpid(nix::unistd::Pid::from_raw(pid), None);
    // The pipe stays open until the process ends: without a reader, SIGPIPE would end the process too early.
    std::mem::forget(full);
}

impl Drop for Pager {
    /// Ends the output to the pager, and waits until the user has closed it.
    fn drop(&mut self) {
        inherited::ignore_interrupts();
        let _ = std::io::stdout().flush();
        // Replacing the pipe by standard error closes the pipe, so the pager sees the end of its input. Nothing is
        // printed on standard output after that.
        let _ = nix::unistd::dup2_stdout(std::io::stderr());
        let _ = self.0.wait();
        let known = i32::try_from(self.0.id()).is_ok();
        // If a limit has cut the text, the thread that watches the limit ends the process with an error. This thread
        // only waits for that.
        while known && RUNNING.load(Ordering::Acquire) == 0 {
            std::thread::park();
        }
        RUNNING.store(0, Ordering::Release);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn less_takes_the_text_for_utf_8_unless_the_user_says_otherwise() {
        let names = |set: &[&str]| -> Vec<&str> {
            let settings = settings(|name| set.contains(&name));
            settings.iter().map(|(name, _)| *name).collect()
        };
        assert_eq!(names(&[]), ["LESS", "LV", "LESSCHARSET"]);
        assert_eq!(names(&["LESSCHARSET", "LESS"]), ["LV"]);
        assert_eq!(names(&["LESSCHARDEF"]), ["LESS", "LV"]);
    }
}
