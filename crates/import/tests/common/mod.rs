//! Makes small recordings for tests, from a line for each process.
#![allow(clippy::indexing_slicing)] // in a test

use tr_analyze::model::{Analysis, ExecSpan, Process, ProcessIx, Thread, ThreadIx, Times};
use tr_format::event::{Argv, Clock, Comm, Ktime, Tgid, Tid};
use tr_placing::{File, ToolFile};

/// A process of a recording: its pid, its parent's index, its beginning and end in ms, and its command line, in which
/// `~` stands for a space.
pub type Line<'a> = (u32, Option<u32>, u64, u64, &'a str);

pub const MS: u64 = 1_000_000;

/// The time of day, in ns since 1970, at which the recording begins: 2026-11-23T05:54:06Z, 1 s after the machine was
/// started.
pub const REAL: u64 = 1_795_413_246_000 * MS;

/// A file of another tool, without the time at which the file was written.
#[allow(dead_code)] // not in each test
pub fn tool_file(path: &[u8], file: File) -> ToolFile {
    ToolFile {
        path: path.to_vec(),
        written: None,
        file,
    }
}

/// A recording of these processes, with one thread each.
pub fn recording(lines: &[Line<'_>]) -> Analysis {
    let at = |ms: u64| Ktime((1000 + ms) * MS);
    let mut analysis = Analysis {
        start: at(0),
        end: at(100_000),
        ..Analysis::default()
    };
    analysis.meta.start = at(0);
    analysis.meta.start_clock = Clock {
        boot: 1000 * MS,
        real: REAL,
    };
    for (n, (pid, parent, start, end, line)) in lines.iter().enumerate() {
        let ix = ProcessIx(n as u32);
        let argv = Argv::from_args(line.split(' ').map(|arg| arg.replace('~', " ")));
        let exec = ExecSpan {
            start: at(*start),
            started_before: false,
            end: at(*end),
            ended: true,
            filename: b"/x".as_slice().into(),
            argv: argv.clone(),
            comm: Comm::new(b"x"),
            times: Times::default(),
            ..ExecSpan::default()
        };
        if let Some(parent) = parent {
            analysis.processes[*parent as usize].children.push(ix);
        }
        analysis.processes.push(Process {
            pid: Tgid(*pid + 50_000),
            ns_pid: Tid(*pid),
            ppid: None,
            parent: parent.map(ProcessIx),
            comm: Comm::new(b"x"),
            argv,
            start: at(*start),
            end: at(*end),
            status: Some(0),
            threads: vec![ThreadIx(n as u32)],
            execs: vec![exec],
            ..Process::default()
        });
        let life = (at(*start), at(*end));
        analysis.threads.push(Thread::new(Tid(*pid), ix, life));
    }
    analysis
}
