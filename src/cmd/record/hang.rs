//! Prints the report on a COMMAND that `--timeout` or `--stall` is about to end.

use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{mpsc, Arc, Mutex, PoisonError};
use std::time::Duration;

use tr_analyze::{Analysis, Options};
use tr_format::meta::CommandLimit;
use tr_format::stack::Doing;
use tr_insight::functions::frames;
use tr_insight::processes::label;
use tr_insight::resources::calls;
use tr_programs::command_line;
use tr_record::hang::{Hang, HangWait, HungProcess};
use tr_redact::Redactor;
use tr_text::called::TR;
use tr_text::{escape, units};

use super::line;
use crate::open;

/// The largest number of lines about processes in the report on a hanging COMMAND. The whole report has at most 30
/// lines.
const LINES: usize = 24;
/// The largest number of processes that the report on a hanging COMMAND names as the ends of its chains of waits. If A
/// waits for B and B waits for C, then C is the end.
const MOST_ENDS: usize = 3;
/// The longest time that writing the report to standard error may take. Standard error can be a pipe that nobody
/// reads; that may even be the reason why COMMAND hangs.
const PATIENCE: Duration = Duration::from_secs(2);

/// The largest number of functions of a process's stack that the report on a hanging COMMAND prints.
const FUNCTIONS: usize = 12;

/// The pids of the processes on which, directly or through others, the rest of the hanging COMMAND waits. Their stacks
/// are printed after COMMAND has ended.
static AT_THE_END: Mutex<Vec<u32>> = Mutex::new(Vec::new());

/// Whether standard error did not accept the report within [`PATIENCE`], so that printing another line might block
/// forever.
static IS_STUCK: AtomicBool = AtomicBool::new(false);

pub fn is_stuck() -> bool {
    IS_STUCK.load(Ordering::Relaxed)
}

/// The function that the recorder calls when COMMAND hangs. It prints the report on standard error with secrets masked.
pub fn notice(redactor: &Redactor) -> Arc<dyn Fn(&Hang) + Send + Sync> {
    let redactor = redactor.clone();
    Arc::new(move |hang| {
        line::leave();
        let lines = report(hang, &redactor);
        let ends = hang.ends();
        let ends = ends.iter().take(MOST_ENDS).map(|process| process.pid);
        *AT_THE_END.lock().unwrap_or_else(PoisonError::into_inner) = ends.collect();
        let (done, printed) = mpsc::channel();
        let print = std::thread::Builder::new().spawn(move || {
            eprintln!("{}", lines.join("\n"));
            let _ = done.send(());
        });
        if print.is_ok() && printed.recv_timeout(PATIENCE).is_err() {
            IS_STUCK.store(true, Ordering::Relaxed);
        }
    })
}

/// Prints the stacks of the processes on which the rest of a hanging COMMAND waited, if the recording has stacks of
/// waits. The kernel reports the stack of a wait only when the wait ends, so this is called after COMMAND has ended.
pub fn say_stacks(file: &Path) {
    let ends = AT_THE_END.lock().unwrap_or_else(PoisonError::into_inner);
    if ends.is_empty() || !file.is_file() {
        return;
    }
    let Ok(trace) = open::trace(file) else {
        return;
    };
    let analysis = tr_analyze::analyze(&trace, &Options::default());
    for line in ends.iter().filter_map(|pid| stack(&analysis, *pid)) {
        message!("{line}");
    }
}

/// The line with the stack of the longest sampled wait of a process, the innermost function first and without functions
/// of the kernel; `None` if the recording has no stack of a wait of this process.
fn stack(analysis: &Analysis, pid: u32) -> Option<String> {
    let is_it =
        |process: &&tr_analyze::model::Process| process.pid.0 == pid || process.ns_pid.0 == pid;
    let process = analysis.processes.iter().find(is_it)?;
    let waits = analysis.stacks.samples.iter();
    let waits = waits
        .filter(|sample| sample.doing == Doing::OffCpu && process.threads.contains(&sample.thread));
    let longest = waits.max_by_key(|sample| sample.ns)?;
    let mut names = frames::Names::new(&analysis.stacks);
    let functions = names.of_stack(longest.stack);
    let functions: Vec<&str> = functions
        .iter()
        .filter_map(|number| names.name(*number))
        .filter(|name| name.binary != "kernel")
        .map(|name| name.function.as_str())
        .take(FUNCTIONS)
        .collect();
    if functions.is_empty() {
        return None;
    }
    let name = units::shorten(&label::label(process), 60);
    let length = units::time(longest.ns);
    let stack = functions.join(" ← ");
    Some(format!("{name} (pid {pid}) waited {length} in {stack}"))
}

fn time(length: Duration) -> String {
    units::time(u64::try_from(length.as_nanos()).unwrap_or(u64::MAX))
}

/// The text that names a hanging process: its label (a short form of the command line) and its pid.
fn name(process: &HungProcess, redactor: &Redactor) -> String {
    let argv = redactor.clone().masked_argv(process.argv.clone());
    let label = command_line::label_of(&argv, &process.comm, false);
    let label = units::shorten(&escape::text(label.as_bytes()), 60);
    format!("{label} (pid {})", process.pid)
}

/// The lines of the report that `tr record` prints about a COMMAND that hangs.
fn report(hang: &Hang, redactor: &Redactor) -> Vec<String> {
    let root = hang.process(hang.root);
    let command = root.map_or("COMMAND".into(), |root| name(root, redactor));
    let length = units::time(hang.ended.ns);
    let first = match hang.ended.limit {
        CommandLimit::Timeout => format!("{TR}: {command} has reached its limit of {length}:"),
        CommandLimit::Stall => format!("{TR}: nothing of {command} has run for {length}:"),
    };
    let processes = hang.in_order();
    let mut lines = vec![first];
    for process in processes.iter().take(LINES) {
        lines.push(format!(
            "    {} {}, for {}",
            name(process, redactor),
            words(hang, process, redactor),
            time(process.since)
        ));
    }
    if processes.len() > LINES {
        let more = (processes.len() - LINES) as u64;
        lines.push(format!("    and {} more", units::count(more)));
    }
    let ends = hang.ends();
    let ends = ends.iter().take(MOST_ENDS).map(|process| {
        let what = words(hang, process, redactor);
        format!("{} {what}", name(process, redactor))
    });
    let ends: Vec<String> = ends.collect();
    lines.push(if ends.is_empty() {
        format!("{TR}: at the end of the waits: they wait for each other")
    } else {
        format!("{TR}: at the end of the waits: {}", ends.join("; "))
    });
    lines.push(format!(
        "{TR}: ending it: TERM, in {} KILL; exit status 124",
        time(hang.kill_after)
    ));
    lines
}

/// The words for the state of a hanging process, which follow its name in a sentence: `waits for a child`, `reads from
/// the terminal`.
fn words(hang: &Hang, process: &HungProcess, redactor: &Redactor) -> String {
    let wait = match &process.wait {
        HangWait::AnyOf(wait) => wait,
        wait => wait,
    };
    let of = |pids: &[u32]| {
        let names = pids.iter().take(MOST_ENDS);
        let names: Vec<String> = names
            .map(|pid| match hang.process(*pid) {
                Some(process) => name(process, redactor),
                None => format!("pid {pid}"),
            })
            .collect();
        let more = if pids.len() > MOST_ENDS {
            " and others"
        } else {
            ""
        };
        format!("{}{more}", names.join(", "))
    };
    match wait {
        HangWait::Runs => "runs".into(),
        HangWait::Stopped => "is stopped by a signal".into(),
        HangWait::Child => match hang.awaited(process).as_slice() {
            [] => "waits for a child".into(),
            children => format!("waits for {}", of(children)),
        },
        HangWait::Pipe { writes, others } => {
            let what = if *writes {
                "writes to a full pipe"
            } else {
                "reads from a pipe"
            };
            match others.as_slice() {
                [] => format!("{what} whose other end no other process of COMMAND has"),
                others => format!("{what} of {}", of(others)),
            }
        }
        HangWait::OwnPipe => "waits for a pipe whose other end it has alone".into(),
        HangWait::Terminal { writes: false } => "reads from the terminal".into(),
        HangWait::Terminal { writes: true } => "writes to the terminal, which takes nothing".into(),
        HangWait::Connection {
            peer,
            others,
            writes,
        } => {
            let what = if *writes {
                "waits for the reader"
            } else {
                "waits for an answer"
            };
            let at = peer.map_or_else(|| "a local socket".to_owned(), |peer| peer.to_string());
            match (peer, others.as_slice()) {
                (Some(_), []) => format!("{what} of {at}"),
                (None, []) => format!("{what} on {at}"),
                (_, others) => format!("{what} of {} on {at}", of(others)),
            }
        }
        HangWait::Fifo { path, writes } => {
            let path = escape::text(path.as_bytes());
            let end = if *writes { "reading" } else { "writing" };
            format!("opens the FIFO {path}, which no process has open for {end}")
        }
        HangWait::Accept(Some(own)) => format!("waits in accept() for a connection to {own}"),
        HangWait::Accept(None) => "waits in accept() for a connection".into(),
        HangWait::FileLock { path, holders } => {
            let path = escape::text(path.as_bytes());
            match holders.as_slice() {
                [] => format!("waits for the lock of {path}"),
                holders => format!("waits for the lock of {path}, which {} has", of(holders)),
            }
        }
        HangWait::Thread => "waits for another of its threads (a lock or a condition)".into(),
        HangWait::SharedLock => {
            "waits for another process (a lock or a condition in shared memory)".into()
        }
        HangWait::OwnLock => {
            "waits for a lock or a condition, and has no other thread that could end this".into()
        }
        HangWait::Sleep => "sleeps".into(),
        HangWait::File(path) => format!("waits for {}", escape::text(path.as_bytes())),
        HangWait::Poll | HangWait::AnyOf(_) => "waits for any of several descriptors".into(),
        HangWait::Call(number) => {
            let number = u32::try_from(*number).unwrap_or(u32::MAX);
            let name = calls::name_of(std::env::consts::ARCH, number, false);
            match &*name {
                "rt_sigsuspend" | "rt_sigtimedwait" | "pause" => "waits for a signal".into(),
                name => format!("waits in {name}()"),
            }
        }
        HangWait::Unknown => "waits; this user may not see for what".into(),
    }
}
