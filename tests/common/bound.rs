//! Limits the time of a test, and ends every wait in it.
#![allow(dead_code)] // each test uses its part

use std::process::Child;
use std::sync::mpsc::{channel, RecvTimeoutError, Sender};
use std::time::Duration;

use nix::sys::signal::{kill, Signal};
use nix::unistd::Pid;

/// The time limit of a test, which is more than any test needs on a busy machine. If TR_LONG is set, the limit is
/// longer, because then a test runs all its rounds.
pub fn limit() -> Duration {
    let long = std::env::var_os("TR_LONG").is_some();
    Duration::from_secs(if long { 1200 } else { 300 })
}

/// Kills a process if this guard still exists after the time limit of a test.
#[must_use]
pub struct Bound(#[allow(dead_code)] Sender<()>);

/// Guards a process, so that no wait for its end, its input or its output lasts for longer than the limit.
pub fn bound(child: &Child) -> Bound {
    let pid = Pid::from_raw(child.id().cast_signed());
    let (sender, dropped) = channel();
    std::thread::spawn(move || {
        if dropped.recv_timeout(limit()) == Err(RecvTimeoutError::Timeout) {
            eprintln!("no end in {:?}:{}", limit(), standing());
            let _ = kill(pid, Signal::SIGKILL);
        }
    });
    Bound(sender)
}

/// For each descendant of this process: its state, the kernel function in which it waits, and its command line.
pub fn standing() -> String {
    let read = |pid: u32, name: &str| {
        let text = std::fs::read(format!("/proc/{pid}/{name}")).unwrap_or_default();
        String::from_utf8_lossy(&text).replace('\0', " ")
    };
    let entries = std::fs::read_dir("/proc").into_iter().flatten().flatten();
    let pids = entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    let pids: Vec<u32> = pids.collect();
    let (mut found, mut lines, mut next) = (vec![std::process::id()], String::new(), 0);
    while let Some(parent) = found.get(next).map(u32::to_string) {
        next += 1;
        for pid in &pids {
            let stat = read(*pid, "stat");
            let fields = stat.rsplit(") ").next().unwrap_or_default();
            let mut fields = fields.split(' ');
            let (state, ppid) = (fields.next().unwrap_or_default(), fields.next());
            if ppid == Some(&parent) {
                found.push(*pid);
                let (wait, words) = (read(*pid, "wchan"), read(*pid, "cmdline"));
                lines += &format!("\n  process {pid}, {state} in {wait}: {words}");
            }
        }
    }
    lines
}
