//! Names recordings and tasks, including the tasks that woke or preempted other tasks.

use std::collections::BTreeSet;

use tr_analyze::contention::Occupant;
use tr_analyze::dns::Lookup;
use tr_analyze::model::{Analysis, Process, Thread, ThreadIx};
use tr_analyze::timeline::Actor;
use tr_format::event::Comm;
use tr_format::meta::{Hardware, KernelName, Metadata, Scope};

use crate::processes::label;
use crate::recordings::ci::Ci;
use tr_programs::tools::Children;
use tr_programs::{command_line, table, words};
use tr_text::{escape, units};

/// The name of tasks that had a CPU and are not recorded; `None` if their name is not known.
pub fn occupant(occupant: Occupant) -> Option<String> {
    match occupant {
        Occupant::Named(name) => (!name.bytes().is_empty()).then(|| comm(&name)),
        Occupant::Rest => Some(FURTHER_TASKS.into()),
    }
}

/// The words for tasks that had a CPU and whose names are not in the recording. A recording has only the names of the
/// tasks that had the CPUs for the longest time.
pub const FURTHER_TASKS: &str = "further tasks";

/// The name of a recording: the recorded command line, or, if there is no command, a description such as `the whole
/// machine`.
pub fn recorded(meta: &Metadata) -> String {
    // A command whose words are all empty cannot have run, so it counts as no command.
    let has_no_name = meta.command.iter().all(Vec::is_empty);
    match (has_no_name, &meta.scope) {
        (false, _) => escape::quoted(meta.command.iter().map(Vec::as_slice)),
        (true, Scope::All) => "the whole machine".into(),
        (true, Scope::Pids(pids)) => {
            let numbers: Vec<String> = pids.iter().map(|pid| pid.0.to_string()).collect();
            let word = if numbers.len() == 1 {
                "process"
            } else {
                "processes"
            };
            format!("{word} {}", numbers.join(", "))
        }
        (true, Scope::Cgroup(path)) => format!("cgroup {}", escape::raw(path)),
        (true, Scope::Command) => NO_COMMAND.into(),
    }
}

/// The name that is shown for a recording if it is not known what was recorded.
const NO_COMMAND: &str = "the command";

/// The name of a recording for people. The name is that of the CI job, if there is one, and COMMAND is missing or is a
/// script that a CI runner wrote. In all other cases, and always for a recording of the whole machine, the name is that
/// of [`recorded_where`].
pub fn headline(meta: &Metadata) -> String {
    let ci = Ci::new(meta);
    let is_typed = match meta.scope {
        Scope::All => true,
        _ => !meta.command.is_empty() && !is_of_runner(&meta.command),
    };
    match ci.get("job").filter(|_| !is_typed) {
        Some(job) => format!("job {job}"),
        None => recorded_where(meta),
    }
}

/// Whether a command is a shell that runs a script from its argument, or from a path that exists only on this machine:
/// `bash -eo pipefail /home/runner/work/_temp/1.sh`
fn is_of_runner(command: &[Vec<u8>]) -> bool {
    let args: Vec<&[u8]> = command.iter().map(Vec::as_slice).collect();
    let tool = args.first().and_then(|first| table::by_path(first));
    let script = command_line::without_interpreter(&args);
    let is_text = script.len() == args.len();
    tool.is_some_and(|tool| tool.children == Children::Script)
        && (is_text
            || script
                .first()
                .is_some_and(|path| words::is_of_machine(path)))
}

/// The name of a recording for people, like [`recorded`], with the machine's name if the machine was recorded as a
/// whole.
pub fn recorded_where(meta: &Metadata) -> String {
    let what = recorded(meta);
    if meta.command.is_empty() && meta.scope == Scope::All {
        return format!("{what} {}", escape::raw(meta.host.as_bytes()));
    }
    what
}

/// The kernel of the recorded machine for people, such as `Linux 6.12.9`.
pub fn kernel(meta: &Metadata) -> String {
    let KernelName {
        system, release, ..
    } = meta.kernel_name();
    let name = if release.is_empty() {
        system.to_owned()
    } else {
        format!("{system} {release}")
    };
    escape::raw(name.as_bytes())
}

/// The CPUs that the build was allowed to use, such as `0-3,8 (5 of 64)`; `None` if the recording has no such limit.
pub fn allowed(meta: &Metadata) -> Option<String> {
    let allowed: BTreeSet<u16> = meta
        .options
        .allowed
        .iter()
        .flatten()
        .map(|cpu| cpu.0)
        .collect();
    let mut ranges: Vec<(u16, u16)> = Vec::new();
    for cpu in &allowed {
        match ranges.last_mut() {
            Some((_, last)) if *last + 1 == *cpu => *last = *cpu,
            _ => ranges.push((*cpu, *cpu)),
        }
    }
    let ranges = ranges.iter().map(|(first, last)| {
        if first == last {
            first.to_string()
        } else {
            format!("{first}-{last}")
        }
    });
    let ranges = ranges.collect::<Vec<_>>().join(",");
    let [some, all] = [allowed.len(), meta.cpus.len()].map(|number| units::count(number as u64));
    (!ranges.is_empty()).then(|| format!("{ranges} ({some} of {all})"))
}

/// The model name of the machine's CPU; `None` if the recording does not have it.
pub fn cpu(meta: &Metadata) -> Option<String> {
    let model = meta.hardware(Hardware::CpuModel)?;
    Some(escape::raw(model.as_bytes()))
}

pub fn thread(analysis: &Analysis, ix: ThreadIx) -> (&Thread, &Process) {
    let thread = analysis.thread(ix);
    (thread, analysis.process(thread.process))
}

/// The name of a task in text: the label of its process, after the comm of a thread that is not the leader.
pub fn name(analysis: &Analysis, who: Actor) -> String {
    match who {
        Actor::Unknown => "?".into(),
        Actor::Timeout { .. } => "a time-out".into(),
        Actor::Interrupt | Actor::SoftIrq | Actor::Device => "an interrupt".into(),
        Actor::Outside(tid) => match analysis.others.outside.only(tid) {
            Some(task) => format!("{} (tid {}), not recorded", comm(&task.comm), tid.0),
            None => format!("tid {}, not recorded", tid.0),
        },
        Actor::Thread(ix) => match thread(analysis, ix) {
            (thread, process) if thread.tid.0 != process.pid.0 => label::thread(thread, process),
            (_, process) => label::label(process),
        },
    }
}

pub fn comm(comm: &Comm) -> String {
    escape::raw(comm.bytes())
}

pub fn asked_name(lookup: &Lookup) -> String {
    match &*lookup.query.name {
        [] => ".".into(),
        name => escape::raw(name),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tr_format::event::Tgid;

    #[test]
    fn a_headline_is_the_job_or_what_the_user_typed() {
        let job = [("GITHUB_ACTIONS", "true"), ("GITHUB_JOB", "test")];
        let job = job.map(|(name, value)| (name.to_owned(), value.to_owned()));
        let of = |line: &str, scope: Scope, ci: &[(String, String)]| {
            let words = line.split(' ').filter(|word| !word.is_empty());
            let mut meta = Metadata {
                command: words.map(|word| word.as_bytes().to_vec()).collect(),
                scope,
                ..Metadata::default()
            };
            meta.ci = ci.to_vec();
            headline(&meta)
        };
        let script = "bash -eo pipefail /home/runner/work/_temp/tr-test-0.sh";
        assert_eq!(of(script, Scope::Command, &job), "job test");
        assert_eq!(of(script, Scope::Command, &[]), script);
        assert_eq!(of("sh -c x", Scope::Command, &job), "job test");
        for typed in ["make -j8", "bash ci/build.sh all", "/opt/bin/build"] {
            assert_eq!(of(typed, Scope::Command, &job), typed);
        }
        let pids = |all: &[u32]| Scope::Pids(all.iter().map(|pid| Tgid(*pid)).collect());
        assert_eq!(of("", pids(&[7]), &job), "job test");
        assert_eq!(of("", pids(&[7]), &[]), "process 7");
        assert_eq!(of("", pids(&[7, 8]), &[]), "processes 7, 8");
        let cgroup = Scope::Cgroup(b"/a.slice".to_vec());
        assert_eq!(of("", cgroup, &[]), "cgroup /a.slice");
        assert_eq!(of("", Scope::Command, &[]), "the command");
    }
}
