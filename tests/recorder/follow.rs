//! Tests which tasks are followed if they do not come from an ordinary fork, and which cannot be followed.

use std::io::{BufRead, BufReader};
use std::path::PathBuf;
use std::process::{Command, Output, Stdio};

use libtest_mimic::Failed;
use serde_json::Value;

use crate::options::{under_way, watch, Cgroup};
use crate::support::{
    analyze, compiled, dump, ensure, eventually, info, int, kill, list, record, recording, report,
    scratch, text, tr, Test,
};

pub const BORN: &str = "a_process_that_is_born_in_the_cgroup_is_recorded";
pub const V1: &str = "a_move_in_a_hierarchy_of_v1_is_none_in_that_of_v2";
pub const WORKERS: &str = "the_workers_of_io_uring_are_threads_of_their_process";
pub const REUSED: &str = "a_task_with_the_id_of_one_that_has_not_left_its_cpu_stays_recorded";
pub const MANY: &str = "threads_of_a_joining_process_that_cannot_be_followed_are_counted";

pub const DEEP: &str = "a_process_that_joins_forty_levels_below_is_recorded";
pub const ZOMBIES: &str = "a_zombie_that_was_there_is_no_process";
/// This test needs root.
pub const NAMESPACE: &str = "a_pid_namespace_with_few_ids_is_recorded";
pub const SIBLINGS: &str = "the_parent_of_a_clone_with_clone_parent_is_its_creators";

pub const SKIPPED: &str = "samples_that_the_kernel_leaves_out_are_told";

pub const TESTS: &[Test] = &[
    (BORN, born),
    (V1, v1),
    (WORKERS, workers),
    (REUSED, reused),
    (MANY, many),
    (SKIPPED, skipped),
    (DEEP, deep),
    (ZOMBIES, zombies),
    (NAMESPACE, few_ids),
    (SIBLINGS, siblings),
];

/// Since Linux 6.14 each pid namespace has its own `kernel.pid_max`. This value says nothing about the ids on the host,
/// so a small value must not limit the recording.
fn few_ids() -> Result<(), Failed> {
    let trace = scratch("few-ids.bin");
    let tr = recording(
        &trace,
        &["--method", "bpf"],
        &["sh", "-c", "/bin/true; exit 6"],
    );
    let mut unshare = Command::new("unshare");
    // Before Linux 6.14 the value is that of the host, so the script restores it.
    let script = "read -r before </proc/sys/kernel/pid_max; echo 400 >/proc/sys/kernel/pid_max; \"$@\"; status=$?; \
                  echo $before >/proc/sys/kernel/pid_max; exit $status";
    let options = ["--pid", "--fork", "--mount-proc", "sh", "-c", script, "sh"];
    unshare.args(options).arg(tr.get_program());
    let out = unshare.args(tr.get_args()).output()?;
    ensure(out.status.code() == Some(6), || format!("{out:?}"))?;
    let analysis = analyze(&trace)?;
    let processes = list(&analysis, "processes");
    ensure(processes.len() == 2, || format!("{processes:?}"))
}

/// The path of the compiled test program `follow.c`.
fn program() -> Result<String, Failed> {
    compiled("follow.c", "follow", &[])
}

/// The reason why io_uring cannot be used here.
pub fn no_workers() -> Option<String> {
    let off = std::fs::read_to_string("/proc/sys/kernel/io_uring_disabled").ok()?;
    (off.trim() != "0").then(|| "kernel.io_uring_disabled".to_owned())
}

/// The directory of a hierarchy of cgroup v1, in which the test can make a cgroup.
fn v1_directory() -> Option<PathBuf> {
    let mounts = std::fs::read_to_string("/proc/self/mountinfo").ok()?;
    let mut lines = mounts.lines().filter(|line| line.contains(" - cgroup "));
    let line = lines.find(|line| line.contains("freezer"))?;
    line.split(' ').nth(4).map(PathBuf::from)
}

/// The reason why no cgroup of v1 can be made here, if any.
pub fn no_v1() -> Option<String> {
    let none = || Some("no cgroup v1 that can be written".to_owned());
    let Some(directory) = v1_directory() else {
        return none();
    };
    let probe = directory.join(format!("tr-test-probe-{}", std::process::id()));
    match std::fs::create_dir(&probe).and_then(|()| std::fs::remove_dir(&probe)) {
        Ok(()) => None,
        Err(_) => none(),
    }
}

fn process(analysis: &Value, pid: u64) -> Result<&Value, Failed> {
    let mut all = list(analysis, "processes").iter();
    let found = all.rfind(|value| int(value, "pid") == pid);
    found.ok_or_else(|| Failed::from(format!("no process {pid}: {:#}", analysis["processes"])))
}

fn number(out: &Output) -> Result<u64, Failed> {
    let said = format!("{out:?}");
    ensure(out.status.success(), || said.clone())?;
    Ok(text(&out.stdout).trim().parse().map_err(|_| said)?)
}

/// A process that is cloned into the recorded cgroup (CLONE_INTO_CGROUP) by a parent outside of it is followed from its
/// start.
fn born() -> Result<(), Failed> {
    let trace = scratch("born.bin");
    let _ = std::fs::remove_file(&trace);
    let cgroup = Cgroup::new("born").ok_or("no cgroup")?;
    let path = cgroup.0.to_string_lossy().into_owned();
    let recorder = watch(&trace, &["--cgroup", &path]).spawn()?;
    under_way(&trace)?;
    let out = Command::new(program()?)
        .args(["born", &path, "/bin/sh", "-c", "/bin/true; exit 0"])
        .output()?;
    let child = number(&out)?;
    kill().args(["-INT", &recorder.id().to_string()]).status()?;
    let out = recorder.wait_with_output()?;
    ensure(out.status.success(), || text(&out.stderr))?;
    let analysis = analyze(&trace)?;
    let processes = list(&analysis, "processes");
    let all = || format!("{processes:#?}");
    let child = process(&analysis, child)?;
    ensure(
        child["exit"]["code"] == 0 && child["argv"][0] == "/bin/sh",
        all,
    )?;
    ensure(int(child, "start_ns") > 0, all)?;
    ensure(processes.len() == 2 && processes[1]["comm"] == "true", all)?;
    let anomalies = &info(&trace)?["anomalies"];
    ensure(*anomalies == serde_json::json!({}), || {
        anomalies.to_string()
    })
}

/// The test program forks a child, which clones a sibling of itself (CLONE_PARENT). The program prints the pids, and
/// the sibling's parent by `/proc`. The recording must have the same parents.
fn siblings() -> Result<(), Failed> {
    for options in [&[][..], &["--light"]] {
        let trace = scratch("siblings.bin");
        let options = [&["--force"], options].concat();
        let out = record(&trace, &options, &[&program()?, "siblings"])?;
        let said = text(&out.stdout);
        let all = || format!("{said} {}", text(&out.stderr));
        ensure(out.status.success(), all)?;
        let lines: Vec<Vec<u64>> = said
            .lines()
            .map(|line| {
                line.split(' ')
                    .filter_map(|word| word.parse().ok())
                    .collect()
            })
            .collect();
        let creator = lines.iter().find(|line| line.len() == 1).ok_or_else(all)?;
        let sibling = lines.iter().find(|line| line.len() == 3).ok_or_else(all)?;
        let ([creator], [sibling, parent, _]) = (&creator[..], &sibling[..]) else {
            return Err(all().into());
        };
        ensure(creator != parent, all)?;
        let analysis = analyze(&trace)?;
        for (pid, ppid) in [(creator, parent), (sibling, parent)] {
            let found = process(&analysis, *pid)?;
            ensure(int(found, "ppid") == *ppid, || format!("{said} {found:#}"))?;
        }
        let found = process(&analysis, *sibling)?;
        let is_whole =
            found["argv"][0] == "true" && found["exit"]["code"] == 0 && int(found, "start_ns") > 0;
        ensure(is_whole, || format!("{found:#}"))?;
        ensure(list(&analysis, "processes").len() == 3, || {
            format!("{:#}", analysis["processes"])
        })?;
        let counted = text(&out.stderr);
        ensure(counted.contains("3 processes"), || counted.clone())?;
        let anomalies = &info(&trace)?["anomalies"];
        ensure(*anomalies == serde_json::json!({}), || {
            anomalies.to_string()
        })?;
    }
    Ok(())
}

fn v1() -> Result<(), Failed> {
    let trace = scratch("v1.bin");
    let directory = v1_directory().ok_or("no cgroup v1")?;
    let name = format!("tr-test-v1-{}", std::process::id());
    let cgroup = directory.join(&name);
    let path = cgroup.to_string_lossy();
    let script = format!(
        "mkdir {path}; sh -c 'echo $$ > {path}/cgroup.procs; exec sleep 0.05'; rmdir {path}"
    );
    let out = record(&trace, &[], &["sh", "-c", &script])?;
    ensure(out.status.success(), || text(&out.stderr))?;
    let events = dump(&trace)?;
    let named = events
        .iter()
        .find(|event| event.to_string().contains(&name) && event["argv"].is_null());
    ensure(named.is_none(), || format!("{named:?}"))?;
    let moves = events.iter().find(|event| event["kind"] == "cgroup_move");
    ensure(moves.is_none(), || format!("{moves:?}"))?;
    // A directory of cgroup v1 does not name a cgroup of v2, so `--cgroup` refuses it.
    let out = watch(&trace, &["--cgroup", &directory.to_string_lossy()]).output()?;
    ensure(
        out.status.code() == Some(125)
            && text(&out.stderr).contains("is not a cgroup v2 directory"),
        || format!("{out:?}"),
    )
}

/// The CPU time of io_uring's worker threads belongs to the process, as in its `getrusage`.
fn workers() -> Result<(), Failed> {
    let program = program()?;
    for options in [&[][..], &["-a"]] {
        let trace = scratch("workers.bin");
        let out = record(&trace, options, &[&program, "workers"])?;
        let used = number(&out)?;
        let analysis = analyze(&trace)?;
        let mut processes = list(&analysis, "processes").iter();
        let process = processes.rfind(|process| process["argv"][1] == "workers");
        let process = process.ok_or("the process is missing")?;
        let cpu = int(process, "on_cpu_ns");
        let all = || format!("{used} ns used, {cpu} recorded: {process:#}");
        ensure(cpu + 5_000_000 > used, all)?;
        ensure(cpu < used + used / 10 + 20_000_000, all)?;
        ensure(int(process, "threads") > 1, all)?;
        let forks = dump(&trace)?;
        let forks = forks.iter().filter(|fork| fork["kind"] == "fork");
        let forks = forks.filter(|fork| fork["tgid"] == process["pid"]);
        let tids: Vec<u64> = forks.map(|fork| int(fork, "tid")).collect();
        let once: std::collections::BTreeSet<&u64> = tids.iter().collect();
        ensure(
            once.len() == tids.len() && tids.len() as u64 + 1 == int(process, "threads"),
            || format!("forks of {tids:?}, {process:#}"),
        )?;
    }
    Ok(())
}

fn reused() -> Result<(), Failed> {
    let trace = scratch("reused.bin");
    let out = record(&trace, &[], &[&program()?, "passed-on"])?;
    ensure(out.status.success(), || format!("{out:?}"))?;
    let analysis = analyze(&trace)?;
    let processes = list(&analysis, "processes");
    for line in text(&out.stdout).lines() {
        let pid: u64 = line.parse().map_err(|_| line.to_owned())?;
        let last = process(&analysis, pid)?;
        let children = processes.iter().filter(|process| process["ppid"] == pid);
        let trues = children.filter(|child| child["comm"] == "true").count();
        ensure(
            trues == 1 && last["exit"]["code"] == 0 && int(last, "on_cpu_ns") > 19_000_000,
            || format!("{trues}: {last:#}"),
        )?;
    }
    let anomalies = info(&trace)?["anomalies"].to_string();
    ensure(!anomalies.contains("had its id"), || anomalies)
}

fn many() -> Result<(), Failed> {
    let trace = scratch("many.bin");
    let _ = std::fs::remove_file(&trace);
    let cgroup = Cgroup::new("many").ok_or("no cgroup")?;
    let path = cgroup.0.to_string_lossy().into_owned();
    let script = "import sys, threading\nthreading.stack_size(65536)\nend = threading.Event()\n\
        threads = [threading.Thread(target=end.wait) for _ in range(1099)]\n\
        [t.start() for t in threads]; sys.stdin.read(); end.set(); [t.join() for t in threads]";
    let mut python = Command::new("python3")
        .args(["-c", script])
        .stdin(Stdio::piped())
        .spawn()?;
    let threads = format!("/proc/{}/task", python.id());
    eventually("python's threads", || {
        std::fs::read_dir(&threads).is_ok_and(|threads| threads.count() == 1100)
    })?;
    let recorder = watch(&trace, &["--cgroup", &path]).spawn()?;
    under_way(&trace)?;
    cgroup.add(python.id())?;
    // The recorder follows only 1,024 of the 1,100 threads, and loses the others. If the process moves to a cgroup
    // below the recorded one, the recorder must not lose more threads.
    let below = cgroup.0.join("below");
    std::fs::create_dir(&below)?;
    std::fs::write(below.join("cgroup.procs"), python.id().to_string())?;
    drop(python.stdin.take());
    python.wait()?;
    let removed = std::fs::remove_dir(&below);
    kill().args(["-INT", &recorder.id().to_string()]).status()?;
    let out = recorder.wait_with_output()?;
    removed?;
    let said = text(&out.stderr);
    ensure(
        out.status.success() && said.contains("1,024 threads"),
        || said.clone(),
    )?;
    let lost = &info(&trace)?["lost_events"];
    ensure(*lost == serde_json::json!({"lifecycle": 76}), || {
        format!("{lost}: {said}")
    })
}

/// While bpf(2) reads a map, the kernel runs no BPF program of a perf event on the same CPU. The time without samples
/// must be reported.
fn skipped() -> Result<(), Failed> {
    let trace = scratch("skipped.bin");
    let out = record(&trace, &["--stacks=997"], &[&program()?, "skipped"])?;
    ensure(out.status.success(), || format!("{out:?}"))?;
    let flame = report(&trace, "flame", &[])?;
    let (sampled, missing) = (int(&flame, "ns"), int(&flame, "unsampled_ns"));
    ensure(
        missing > 50_000_000 && sampled + missing > 450_000_000,
        || format!("{sampled} ns sampled, {missing} not"),
    )?;
    let shown = text(&tr(&["analyze", "--report", "flame"], &trace)?);
    ensure(shown.contains(" of CPU time have no sample"), || shown)
}

/// Cgroups inside of each other, which are removed, the innermost first, when this value is dropped.
struct Nested(Vec<Cgroup>);

impl Drop for Nested {
    fn drop(&mut self) {
        while self.0.pop().is_some() {}
    }
}

fn deep() -> Result<(), Failed> {
    let trace = scratch("deep.bin");
    let _ = std::fs::remove_file(&trace);
    let top = Cgroup::new("deep").ok_or("no cgroup")?;
    let path = top.0.to_string_lossy().into_owned();
    let mut nested = Nested(vec![top]);
    let mut below = PathBuf::from(&path);
    for _ in 0..40 {
        below.push("d");
        std::fs::create_dir(&below)?;
        nested.0.push(Cgroup(below.clone()));
    }
    let recorder = watch(&trace, &["--cgroup", &path]).spawn()?;
    under_way(&trace)?;
    for level in [1, 15, 16, 31, 40] {
        let procs = nested
            .0
            .get(level)
            .ok_or("no level")?
            .0
            .join("cgroup.procs");
        let script = format!(
            "echo $$ > {}; exec /bin/true level-{level}",
            procs.display()
        );
        let out = Command::new("sh").args(["-c", &script]).output()?;
        ensure(out.status.success(), || format!("{out:?}"))?;
    }
    kill().args(["-INT", &recorder.id().to_string()]).status()?;
    let out = recorder.wait_with_output()?;
    ensure(out.status.success(), || text(&out.stderr))?;
    let analysis = analyze(&trace)?;
    let levels: Vec<&str> = list(&analysis, "processes")
        .iter()
        .filter_map(|process| list(process, "argv").last()?.as_str())
        .collect();
    ensure(
        levels == ["level-1", "level-15", "level-16", "level-31", "level-40"],
        || format!("{levels:?}"),
    )
}

/// A parent that does not wait for its children keeps them as zombies, which must not be recorded as processes.
fn zombies() -> Result<(), Failed> {
    // The shell reaps children that have ended when it forks the next child. So all children live until the shell has
    // forked the last one.
    let script =
        "exec 3<&0; for i in $(seq 30); do (read _ <&3; exit 3) & done; echo; exec sleep 600 3<&-";
    let mut parent = Command::new("sh")
        .args(["-c", script])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()?;
    let out = parent.stdout.take().ok_or("no output")?;
    BufReader::new(out).read_line(&mut String::new())?;
    let id = parent.id();
    // The shell has to become `sleep` before the children end, because the shell could still reap them. `sleep` reaps
    // no child.
    let program = || std::fs::read_to_string(format!("/proc/{id}/comm")).unwrap_or_default();
    eventually("the shell becomes sleep", || program() == "sleep\n")?;
    drop(parent.stdin.take());
    let state = |pid: &str| {
        let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
        let rest = stat.rsplit(") ").next().unwrap_or_default().to_owned();
        let mut fields = rest.split(' ');
        (fields.next() == Some("Z")).then(|| fields.next().map(str::to_owned))?
    };
    let count = || {
        let entries = std::fs::read_dir("/proc").into_iter().flatten().flatten();
        let names = entries.filter_map(|entry| entry.file_name().into_string().ok());
        let parents = names.filter_map(|name| state(&name));
        parents.filter(|parent| *parent == id.to_string()).count()
    };
    let recorded = eventually("30 zombies", || count() == 30).and_then(|()| {
        [&["-a"][..], &["--pid", &id.to_string()], &["-a", "--light"]]
            .into_iter()
            .map(|options| {
                let trace = scratch("zombies.bin");
                let _ = std::fs::remove_file(&trace);
                let options = [options, &["--duration", "300ms"]].concat();
                let out = watch(&trace, &options).output()?;
                ensure(out.status.success(), || text(&out.stderr))?;
                analyze(&trace)
            })
            .collect::<Result<Vec<Value>, Failed>>()
    });
    parent.kill()?;
    parent.wait()?;
    for analysis in recorded? {
        let processes = list(&analysis, "processes");
        let theirs = |process: &&Value| int(process, "ppid") == u64::from(id);
        let found: Vec<_> = processes.iter().filter(theirs).collect();
        ensure(found.is_empty(), || format!("{} zombies", found.len()))?;
        process(&analysis, u64::from(id))?;
    }
    Ok(())
}
