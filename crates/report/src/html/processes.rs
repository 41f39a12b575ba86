//! Makes the HTML report's tables of the processes, of their threads and of the programs that they executed.

use tr_analyze::model::{Analysis, ExecSpan, Process, ProcessIx, Thread};
use tr_format::event::{Argv, Ktime, Tgid};
use tr_programs::command_line;

use crate::html::columns::differences;
use crate::html::digits::Digits;
use crate::html::steps::Chosen;
use tr_insight::processes::{exit, label};
use tr_insight::recordings::known::{by_events, by_tr};
use tr_insight::steps::Step;
use tr_insight::views::query;
use tr_text::escape;
use tr_text::strings::Strings;

/// The HTML report's tables about processes. The rows of threads and of executed programs are in the order of the
/// processes.
pub struct Tables {
    pub processes: Processes,
    pub threads: Threads,
    pub execs: Execs,
}

impl Tables {
    pub fn new(analysis: &Analysis, steps: &Chosen, strings: &mut Strings) -> Tables {
        let mut processes = Processes::default();
        let mut threads = Threads::default();
        let mut execs = Execs::default();
        let containers = query::container_names(analysis);
        let digits = Digits::of(analysis);
        texts(analysis, strings);
        for ix in analysis.process_ids() {
            let process = analysis.process(ix);
            let step = steps.row_of(analysis, ix);
            let shown = step.and_then(|row| steps.of_row(row));
            let around = Around {
                step,
                says_step: shown.is_none_or(|step| says(process, step)),
                container: containers[ix].as_deref(),
                digits,
            };
            processes.push(analysis, process, around, strings);
            if !alone(analysis, process) {
                for thread in &process.threads {
                    let thread = analysis.thread(*thread);
                    threads.push(analysis.meta.start, thread, digits, strings);
                }
            }
            for exec in &process.execs {
                execs.push(process, exec, digits, strings);
            }
        }
        since_process(&mut execs, &processes);
        differences(&mut processes.pid);
        differences(&mut processes.start);
        differences(&mut processes.label);
        differences(processes.brief.iter_mut().flatten());
        differences(processes.argv.iter_mut().flatten());
        Tables {
            processes,
            threads,
            execs,
        }
    }
}

/// The facts that the HTML report's row about a process needs but [`Process`] does not have: its step, its container,
/// and the precision of times.
#[derive(Clone, Copy)]
struct Around<'a> {
    /// The row, in the page's table of steps, of the innermost step that the process was in when it ended.
    step: Option<u32>,
    /// Whether the label of the process says which step the process is in, or the page has no step for it.
    says_step: bool,
    container: Option<&'a str>,
    digits: Digits,
}

impl Around<'_> {
    /// Rounds a process's sum of times in ns, or of bytes, to the precision of the HTML report.
    fn amount(&self, amount: Option<u64>) -> Option<u64> {
        amount.map(|amount| self.digits.amount(amount))
    }
}

columns!(Processes(analysis: &Analysis, process: &Process, around: Around<'_>, strings: &mut Strings) {
    // The difference from the row before, because small numbers compress better. The label, the brief name, the
    // arguments and the start are such differences, too; rows without a brief name or arguments are skipped.
    pid: i64 = process.pid.0.into(),
    // The pid of the parent process. `None` if the row `parent` has this pid, or if the pid is not known.
    ppid: Option<u32> = process.ppid.filter(|ppid| parent_pid(analysis, process) != Some(*ppid)).map(|pid| pid.0),
    parent: Option<u32> = process.parent.map(|ProcessIx(ix)| ix),
    label: i64 = strings.add(label::label(process)).into(),
    // The brief name, for places where the label has no room.
    brief: Option<i64> = label::brief(process).map(|brief| strings.add(brief).into()),
    program: u32 = strings.add(label::program(process).to_string()),
    comm: u32 = strings.add(escape::raw(process.comm.bytes())),
    argv: Option<i64> = argv(&process.argv, strings),
    cgroup: Option<u32> = query::cgroup_path(analysis, process)
        .map(|path| strings.add(escape::raw(path))),
    start: i64 = around.digits.place(process.start.since(analysis.meta.start)).cast_signed(),
    wall: u64 = around.digits.length(process.wall()),
    alive: u8 = process.alive.into(),
    started_before: u8 = process.started_before.into(),
    kthread: u8 = process.role.kthread.into(),
    status: Option<u32> = process.status,
    exit: Option<u32> = process.status.map(|status| strings.add(exit::words(status))),
    on_cpu: Option<u64> = around.amount(process.times.on_cpu_known()),
    run_queue: Option<u64> = around.amount(process.times.run_queue_known()),
    sleep: Option<u64> = around.amount(process.times.sleep_known()),
    blocked: Option<u64> = around.amount(process.times.blocked_known()),
    unknown: u64 = around.digits.amount(process.times.unknown),
    preempted: Option<u64> = around.amount(by_events(analysis, process.causes.preempted)),
    block_io: Option<u64> = around.amount(by_tr(analysis, process.causes.io)),
    vfork: Option<u64> = around.amount(by_tr(analysis, process.causes.vfork)),
    voluntary: Option<u64> = by_events(analysis, process.resources.switches.voluntary),
    involuntary: Option<u64> = by_events(analysis, process.resources.switches.involuntary),
    max_off_cpu: Option<u64> = around.amount(process.resources.max_off_cpu),
    max_rss: Option<u64> = around.amount(process.resources.max_rss),
    tree_processes: u64 = process.tree.processes,
    // The CPU time of the descendants without the process itself. This time is stored, and not the sum with the
    // process's own CPU time, because it is 0 for most processes. The time is the rounded sum minus the
    // process's rounded CPU time, so that the page can compute the printed sum exactly.
    below_on_cpu: Option<u64> = around.amount(process.tree.times.on_cpu_known())
        .map(|all| all.saturating_sub(around.amount(process.times.on_cpu_known()).unwrap_or(0))),
    // Only the numbers of threads and execs are stored, because their rows follow in the order of the processes.
    threads: usize = process.threads.len(),
    execs: usize = process.execs.len(),
    step: Option<u32> = around.step,
    // Whether the label says which step the process is in, or there is no such step, so that a sentence need not name
    // the step.
    says_step: u8 = around.says_step.into(),
    container: Option<u32> = around.container.map(|name| strings.add(name.to_owned())),
    // Whether the process has only one thread, and this thread has the same figures as the process. Such a thread has
    // no row of its own.
    alone: u8 = alone(analysis, process).into(),
});

columns!(Threads(zero: Ktime, thread: &Thread, digits: Digits, strings: &mut Strings) {
    tid: u32 = thread.tid.0,
    comm: u32 = strings.add(escape::raw(thread.comm.bytes())),
    start: u64 = digits.place(thread.start.since(zero)),
    end: u64 = digits.place(thread.start.since(zero)).saturating_add(digits.length(thread.wall())),
    on_cpu: Option<u64> = thread.times.on_cpu_known().map(|ns| digits.amount(ns)),
    run_queue: Option<u64> = thread.times.run_queue_known().map(|ns| digits.amount(ns)),
    sleep: Option<u64> = thread.times.sleep_known().map(|ns| digits.amount(ns)),
    blocked: Option<u64> = thread.times.blocked_known().map(|ns| digits.amount(ns)),
    unknown: u64 = digits.amount(thread.times.unknown),
});

columns!(Execs(process: &Process, exec: &ExecSpan, digits: Digits, strings: &mut Strings) {
    // The time in ns from the start of the process to the start of this program in it.
    start: i64 = rounded(difference(exec.start.0, process.start.0), digits),
    // The time in ns from the end of this program to the end of the process. It is 0 for the last exec, whose program
    // ends with the process.
    end: i64 = rounded(difference(process.end.0, exec.end.0), digits),
    // The index of the program's label in the page's list of texts, minus the index of the process's own label, which
    // is the label of the process's last exec. `brief` and `argv` are such differences for the brief name and the
    // arguments.
    label: i64 = exec_label(exec, strings),
    brief: Option<i64> = exec_brief(exec, strings),
    argv: Option<i64> = argv(&exec.argv, strings),
    on_cpu: Option<u64> = exec.times.on_cpu_known().map(|ns| digits.amount(ns)),
});

fn difference(time: u64, before: u64) -> i64 {
    time.cast_signed().wrapping_sub(before.cast_signed())
}

/// Whether a process has only one thread and the thread has the same times and names, so that the HTML report
/// needs no row for the thread.
fn alone(analysis: &Analysis, process: &Process) -> bool {
    let [only] = process.threads.as_slice() else {
        return false;
    };
    let same = |thread: &Thread| {
        (thread.tid.0, thread.start, thread.end) == (process.pid.0, process.start, process.end)
            && thread.comm == process.comm
            && thread.times == process.times
    };
    same(analysis.thread(*only))
}

fn argv(argv: &Argv, strings: &mut Strings) -> Option<i64> {
    argv.full_len?;
    let mut text = escape::quoted(argv.args());
    if argv.truncated() {
        text.push('…');
    }
    Some(strings.add(text).into())
}

fn exec_brief(exec: &ExecSpan, strings: &mut Strings) -> Option<i64> {
    let brief = command_line::brief_of(&exec.argv)?;
    Some(strings.add(brief).into())
}

fn exec_label(exec: &ExecSpan, strings: &mut Strings) -> i64 {
    let label = command_line::label_of(&exec.argv, &exec.comm, false);
    strings.add(label).into()
}

/// Whether the label of a process says which step the process is in: it has the name of the step's file (`cc1 lvm.c` is
/// at work on `obj/lvm.o`), or all of its parts are in the step's name.
pub(super) fn says(process: &Process, step: &Step) -> bool {
    let name = step.name.whole();
    let file = step.brief.as_deref().unwrap_or(name);
    let stem = file.rsplit_once('.').map_or(file, |(stem, _)| stem);
    let parts = label::parts(process);
    let has_stem = |part: &String| part.contains(stem);
    parts.iter().any(has_stem) || parts.iter().all(|part| name.contains(part.as_str()))
}

/// Stores the texts of all processes in the page's list of texts: first all labels, then all brief names, then all
/// command lines, because similar texts beside each other compress better.
fn texts(analysis: &Analysis, strings: &mut Strings) {
    for process in &analysis.processes {
        strings.add(label::label(process));
        for exec in &process.execs {
            exec_label(exec, strings);
        }
    }
    for process in &analysis.processes {
        label::brief(process).map(|brief| strings.add(brief));
        for exec in &process.execs {
            exec_brief(exec, strings);
        }
    }
    for process in &analysis.processes {
        argv(&process.argv, strings);
        for exec in &process.execs {
            argv(&exec.argv, strings);
        }
    }
}

fn parent_pid(analysis: &Analysis, process: &Process) -> Option<Tgid> {
    process.parent.map(|ix| analysis.process(ix).pid)
}

/// Stores small numbers for the texts of executed programs. The index of each program's label in the page's list of
/// texts is replaced by its distance from the index of the process's own label, and the index of each command line by
/// its distance from the index of the process's own command line.
fn since_process(execs: &mut Execs, processes: &Processes) {
    let rows = execs.label.iter_mut().zip(&mut execs.brief);
    let mut rows = rows.zip(&mut execs.argv);
    let texts = processes.label.iter().zip(&processes.brief);
    let texts = texts.zip(&processes.argv);
    for (count, ((label, brief), argv)) in processes.execs.iter().zip(texts) {
        for ((exec_label, exec_brief), exec_argv) in rows.by_ref().take(*count) {
            *exec_label -= label;
            if let Some(exec_brief) = exec_brief {
                *exec_brief -= brief.unwrap_or(0);
            }
            if let Some(exec_argv) = exec_argv {
                *exec_argv -= argv.unwrap_or(0);
            }
        }
    }
}

/// A difference of times in ns with its sign, rounded to the precision of the HTML report.
fn rounded(length: i64, digits: Digits) -> i64 {
    let ns = digits.length(length.unsigned_abs()).cast_signed();
    if length < 0 {
        ns.wrapping_neg()
    } else {
        ns
    }
}
