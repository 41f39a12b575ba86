//! Tests that recording changes nothing for COMMAND, and leaves nothing behind on the machine.

use std::collections::BTreeSet;
use std::io::Read;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use libtest_mimic::Failed;

use crate::inject::{self, Fault, Which};
use crate::support::{
    analyze, awaits, dump, ensure, eventually, int, kill, list, record, recording, scratch, text,
    Test, TR,
};

pub const TESTS: &[Test] = &[
    ("the_command_finds_everything_as_without_tr", surroundings),
    ("the_jobserver_of_make_goes_through", jobserver),
    ("a_stream_that_the_command_closes_is_closed", closed_stream),
    ("an_ignored_sigchld_hides_no_status", sigchld),
    ("whatever_ends_tr_the_command_goes_on", tr_dies),
    ("a_panic_of_the_recorder_leaves_the_command_alone", panics),
    ("daemons_are_named_or_waited_for", outlive),
    ("recordings_nest_and_run_side_by_side", nested),
    (REAPED, reaped),
];

/// The name of a test that needs strace and the right to real-time scheduling.
pub const REAPED: &str = "the_thread_that_reaps_the_command_is_not_real_time";

/// Tests that count BPF objects of the kernel, so that no other recording may run at the same time.
pub const COUNTED: &[Test] = &[
    ("many_recordings_leave_nothing_behind", leaks),
    ("kill_9_leaves_nothing_in_the_kernel", kill_9),
];

/// Gives the next program an unusual environment: signals, limits, descriptors and priority.
fn unusual(command: &mut Command) {
    command
        .env("TR_TEST", "a b")
        .current_dir("/usr")
        .stdin(Stdio::null());
    // SAFETY: only system calls are made between fork and exec.
    unsafe {
        command.pre_exec(|| {
            for signal in [
                libc::SIGINT,
                libc::SIGQUIT,
                libc::SIGHUP,
                libc::SIGPIPE,
                libc::SIGCHLD,
                libc::SIGTTOU,
            ] {
                libc::signal(signal, libc::SIG_IGN);
            }
            let mut mask: libc::sigset_t = std::mem::zeroed();
            libc::sigaddset(&mut mask, libc::SIGUSR1);
            libc::sigaddset(&mut mask, libc::SIGTERM);
            libc::sigprocmask(libc::SIG_SETMASK, &mask, std::ptr::null_mut());
            libc::umask(0o027);
            libc::setpriority(libc::PRIO_PROCESS, 0, 3);
            let limit = libc::rlimit {
                rlim_cur: 333,
                rlim_max: 444,
            };
            libc::setrlimit(libc::RLIMIT_NOFILE, &limit);
            let limit = libc::rlimit {
                rlim_cur: 65_536,
                rlim_max: 65_536,
            };
            libc::setrlimit(libc::RLIMIT_MEMLOCK, &limit);
            // The program inherits descriptors, one with a high number, and its standard input is closed.
            libc::dup2(1, 7);
            libc::dup2(1, 300);
            libc::close(0);
            Ok(())
        });
    }
}

fn surroundings() -> Result<(), Failed> {
    let trace = scratch("surroundings.bin");
    let pick = |out: &[u8]| -> Vec<String> {
        let wanted = [
            "Sig", "Shd", "Umask", "Cap", "NoNew", "Seccomp:", "Cpus_", "Groups", "Uid", "Gid",
        ];
        // SigQ counts the queued signals of all processes of the user, so it may differ.
        let status =
            |line: &&str| wanted.iter().any(|w| line.starts_with(w)) && !line.starts_with("SigQ");
        let out = text(out);
        if out.starts_with("Name:") {
            out.lines().filter(status).map(str::to_owned).collect()
        } else {
            // Only the target of each descriptor is compared. The target of /proc/self contains a pid, so it is left
            // out.
            out.lines()
                .map(|line| {
                    line.split_once(':')
                        .filter(|_| line.contains("->"))
                        .map_or(line, |l| l.1)
                })
                .map(|line| {
                    line[line.find(" -> ").map_or(0, |at| at.saturating_sub(4))..].to_owned()
                })
                .filter(|line| !line.contains("/proc/") && !line.starts_with("TR_MARKS="))
                .collect()
        }
    };
    for command in [
        &["cat", "/proc/self/status"][..],
        &["cat", "/proc/self/limits"],
        &["cat", "/proc/self/cgroup"],
        &["cat", "/proc/self/oom_score_adj"],
        &["ls", "-l", "/proc/self/fd"],
        &["env"],
        &["nice"],
        &["pwd"],
        &["sh", "-c", "ps -o pgid=,sid=,tpgid=,tty=,cls=,pri= -p $$"],
    ] {
        // Both programs get the same pipe for their output, so that the targets of their descriptors are equal.
        let (mut reader, writer) = std::io::pipe()?;
        let flags = nix::fcntl::FcntlArg::F_SETFL(nix::fcntl::OFlag::O_NONBLOCK);
        nix::fcntl::fcntl(&reader, flags)?;
        let mut direct = Command::new(command[0]);
        direct.args(&command[1..]);
        let mut traced = recording(&trace, &["-q"], command);
        let mut run = |what: &mut Command| -> Result<Vec<String>, Failed> {
            what.stdout(writer.try_clone()?)
                .stderr(Stdio::null())
                .process_group(0);
            unusual(what);
            let mut child = what.spawn()?;
            let pid = child.id();
            child.wait()?;
            what.stdout(Stdio::null());
            let mut out = vec![0; 1 << 16];
            // When the program has ended, reading an empty pipe must fail, not block.
            let count = reader.read(&mut out)?;
            // The id of the process group is replaced by "ours" in both outputs. Only whole words are replaced, because
            // another id may begin with the same digits.
            let (pid, mut lines) = (pid.to_string(), pick(&out[..count]));
            for line in &mut lines {
                let words = line.split(' ');
                let words = words.map(|word| if word == pid { "ours" } else { word });
                *line = words.collect::<Vec<_>>().join(" ");
            }
            Ok(lines)
        };
        let (without, with) = (run(&mut direct)?, run(&mut traced)?);
        ensure(!without.is_empty() && without == with, || {
            format!("{command:?}\nwithout: {without:#?}\nwith: {with:#?}")
        })?;
    }
    Ok(())
}

fn jobserver() -> Result<(), Failed> {
    let dir = scratch("jobserver");
    std::fs::create_dir_all(&dir)?;
    let version = text(&Command::new("make").arg("--version").output()?.stdout);
    let fifo = !["3.", "4.0", "4.1", "4.2", "4.3"]
        .iter()
        .any(|old| version.starts_with(&format!("GNU Make {old}")));
    std::fs::write(
        dir.join("Makefile"),
        format!(
            "all:\n\t+@{TR} record -q -o inner.bin -- $(MAKE) -s sub\n\
             sub: a b c\na b c:\n\t@echo start; sleep 0.3; echo end\n"
        ),
    )?;
    let styles = [
        &[][..],
        &["--jobserver-style=pipe"],
        &["--jobserver-style=fifo"],
    ];
    for style in styles.into_iter().take(if fifo { 3 } else { 1 }) {
        let out = Command::new("make")
            .args(["-s", "-j3", "-C"])
            .arg(&dir)
            .args(style)
            .output()?;
        ensure(out.status.success() && out.stderr.is_empty(), || {
            text(&out.stderr)
        })?;
        // Three jobs start at once, so the inner make uses the job tokens of the outer one.
        ensure(
            text(&out.stdout).starts_with("start\nstart\nstart\n"),
            || text(&out.stdout),
        )?;
    }
    Ok(())
}

fn closed_stream() -> Result<(), Failed> {
    let script = "echo first; exec >&-; sleep 3";
    let mut tr = recording(&scratch("closed.bin"), &["-q"], &["sh", "-c", script])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()?;
    let mut said = String::new();
    tr.stdout
        .take()
        .ok_or("no stdout")?
        .read_to_string(&mut said)?;
    let runs = tr.try_wait()?.is_none();
    ensure(said == "first\n" && runs, || {
        format!("{said:?}, runs: {runs}")
    })?;
    ensure(tr.wait()?.success(), || "status".into())
}

fn sigchld() -> Result<(), Failed> {
    let trace = scratch("sigchld.bin");
    let mut tr = recording(&trace, &["-q"], &["sh", "-c", "exit 5"]);
    // SAFETY: the closure makes one system call only.
    unsafe {
        tr.pre_exec(|| {
            libc::signal(libc::SIGCHLD, libc::SIG_IGN);
            Ok(())
        });
    }
    let status = tr.status()?;
    ensure(status.code() == Some(5), || format!("{status:?}"))
}

fn tr_dies() -> Result<(), Failed> {
    for signal in ["KILL", "ILL", "TRAP", "SYS"] {
        let [trace, go, done] = ["dies.bin", "dies.go", "dies.done"].map(scratch);
        for left in [&trace, &go, &done] {
            let _ = std::fs::remove_file(left);
        }
        let script = format!("ulimit -c 0; {}; touch {}", awaits(&go), done.display());
        let mut tr = recording(&trace, &["-q"], &["sh", "-c", &script]).spawn()?;
        eventually("the header", || trace.exists())?;
        std::thread::sleep(Duration::from_millis(100));
        kill()
            .args([&format!("-{signal}"), &tr.id().to_string()])
            .status()?;
        ensure(tr.wait()?.code().is_none(), || {
            format!("{signal} did not end tr")
        })?;
        std::fs::write(&go, "")?;
        eventually("the command's end", || done.exists())?;
        analyze(&trace)?;
    }
    Ok(())
}

/// A panic of the recorder, caused by a failing clock_gettime, does not end COMMAND. Later signals to `tr` still reach
/// COMMAND, its exit status is that of `tr`, and the recording up to the panic can be read.
fn panics() -> Result<(), Failed> {
    // The recorder reads the clock when a signal reaches COMMAND. The script sends several signals, so that one signal
    // comes after the recorder's main thread has begun to wait for events.
    let script = "trap 'exit 37' TERM; for n in 1 2 3 4 5; do kill -URG $$; sleep 0.2; done; \
                  echo $PPID; kill -TERM $PPID; while :; do sleep 0.1; done";
    let main = TR.rsplit('/').next().unwrap_or(TR);
    for (method, thread) in [("bpf", main), ("ptrace", "tr-ptrace")] {
        let (trace, said) = (scratch("panics.bin"), scratch("panics.stderr"));
        let mut tr = recording(&trace, &["--method", method], &["sh", "-c", script]);
        tr.stdout(Stdio::piped())
            .stderr(std::fs::File::create(&said)?);
        let mut tracee = inject::spawn(&mut tr)?;
        let which = Which::Late(thread, libc::SYS_clock_gettime as u64);
        let limit = Duration::from_secs(30);
        let (status, calls) = inject::run(&tracee, which, Fault::Error(libc::EIO), limit)?;
        let said = text(&std::fs::read(&said)?);
        let what = || format!("{method}: status {status:#x}\n{said}");
        ensure(calls.failed.is_some(), || {
            format!("{thread} asks for no time")
        })?;
        ensure(said.contains("failed by a defect of its own"), what)?;
        ensure(status == 37 << 8, what)?;
        let mut parent = String::new();
        let mut out = tracee.stdout.take().ok_or("no output")?;
        out.read_to_string(&mut parent)?;
        ensure(parent.trim() == tracee.id().to_string(), what)?;
        ensure(analyze(&trace)?["trace"]["truncated"] == true, || {
            format!("{method}: not cut short")
        })?;
    }
    Ok(())
}

fn outlive() -> Result<(), Failed> {
    let trace = scratch("outlive.bin");
    let command = [
        "sh",
        "-c",
        "(sleep 1; exec sleep 0.3) >/dev/null 2>&1 & exit 3",
    ];
    let out = record(&trace, &[], &command)?;
    ensure(out.status.code() == Some(3), || format!("{out:?}"))?;
    ensure(text(&out.stderr).contains("still running: sh"), || {
        text(&out.stderr)
    })?;
    let analysis = analyze(&trace)?;
    let open = list(&analysis, "processes")
        .iter()
        .filter(|p| p["exit"].is_null())
        .count();
    // The shell in the background still runs. Its `sleep` also runs if the shell has started it.
    ensure((1..=2).contains(&open), || {
        format!("{open} processes without an exit")
    })?;

    let out = record(&trace, &["--wait-all"], &command)?;
    ensure(out.status.code() == Some(3), || format!("{out:?}"))?;
    ensure(!text(&out.stderr).contains("still running"), || {
        text(&out.stderr)
    })?;
    let analysis = analyze(&trace)?;
    ensure(
        int(&analysis["trace"], "duration_ns") > 1_300_000_000,
        || "too short".into(),
    )?;
    ensure(
        list(&analysis, "processes")
            .iter()
            .all(|p| p["exit"]["code"].is_u64()),
        || format!("{:#}", analysis["processes"]),
    )?;
    // A signal ends the wait for all descendants, and the file is complete. The signal must not come before the shell's
    // end, because it would be passed on to the shell.
    let ended = scratch("outlive.pid");
    let _ = std::fs::remove_file(&ended);
    let script = format!("sleep 20 & echo $$ >{}; exit 3", ended.display());
    let mut tr = recording(&trace, &["-q", "--wait-all"], &["sh", "-c", &script])
        .stdout(Stdio::null())
        .spawn()?;
    eventually("the shell's end", || {
        let pid = std::fs::read_to_string(&ended).unwrap_or_default();
        // /proc/PID/exe of a process that has ended cannot be read, whether or not the process was reaped.
        pid.ends_with('\n') && std::fs::read_link(format!("/proc/{}/exe", pid.trim())).is_err()
    })?;
    kill().args(["-TERM", &tr.id().to_string()]).status()?;
    let status = tr.wait()?;
    ensure(status.code() == Some(3), || format!("{status:?}"))?;
    ensure(analyze(&trace)?["trace"]["truncated"] == false, || {
        "cut".into()
    })
}

/// The kernel may spin for long while a process is reaped. So the thread that waits for COMMAND must give up its
/// real-time priority before it reaps COMMAND.
fn reaped() -> Result<(), Failed> {
    let (trace, calls) = (scratch("reaped.bin"), scratch("reaped.calls"));
    let tr = recording(&trace, &["-q", "--method", "bpf"], &["sh", "-c", "exit 7"]);
    let mut strace = Command::new("strace");
    strace.args(["-f", "-qq", "-e", "trace=sched_setscheduler,wait4", "-o"]);
    let out = strace
        .arg(&calls)
        .arg(tr.get_program())
        .args(tr.get_args())
        .output()?;
    ensure(out.status.code() == Some(7), || format!("{out:?}"))?;
    let calls = std::fs::read_to_string(&calls)?;
    let reaper = calls
        .lines()
        .find(|line| line.contains("WEXITSTATUS(s) == 7"));
    let reaper = reaper.and_then(|line| line.split_whitespace().next());
    let own = |line: &&str| line.split_whitespace().next() == reaper;
    let own: Vec<&str> = calls.lines().filter(own).collect();
    let waits = own.iter().position(|line| line.contains("wait4("));
    let before = own.get(..waits.unwrap_or(0)).unwrap_or_default();
    // Old versions of strace print the policies as numbers.
    let is_real_time = |line: &&str| line.contains("sched_setscheduler(") && !line.contains("[0])");
    ensure(before.iter().any(&is_real_time), || calls.clone())?;
    ensure(
        before.last().is_some_and(|line| !is_real_time(line)),
        || calls.clone(),
    )
}

/// The number of execs of /bin/true.
fn trues(trace: &Path) -> Result<usize, Failed> {
    let events = dump(trace)?;
    Ok(events
        .iter()
        .filter(|e| e["kind"] == "exec" && e["comm"] == "true")
        .count())
}

fn nested() -> Result<(), Failed> {
    let (outer, inner) = (scratch("outer.bin"), scratch("inner.bin"));
    let loop_of = |n: usize| format!("i=0; while [ $i -lt {n} ]; do /bin/true; i=$((i+1)); done");
    let script = format!(
        "/bin/true; {TR} record -q -o {} -- sh -c '{}'; exit $?",
        inner.display(),
        loop_of(50)
    );
    let out = record(&outer, &[], &["sh", "-c", &script])?;
    ensure(out.status.success(), || text(&out.stderr))?;
    ensure(trues(&inner)? == 50 && trues(&outer)? == 51, || {
        format!("{:?} inside, {:?} outside", trues(&inner), trues(&outer))
    })?;

    let traces = [scratch("first.bin"), scratch("second.bin")];
    let mut both = Vec::new();
    for trace in &traces {
        both.push(recording(trace, &["-q"], &["sh", "-c", &loop_of(300)]).spawn()?);
    }
    for mut tr in both {
        ensure(tr.wait()?.success(), || "one failed".into())?;
    }
    for trace in &traces {
        ensure(trues(trace)? == 300, || format!("{:?}", trues(trace)))?;
    }
    Ok(())
}

/// The kind and the id of each BPF program, map and link in the kernel.
fn in_the_kernel() -> BTreeSet<(u32, u32)> {
    const PROG: u32 = 11;
    const MAP: u32 = 12;
    const LINK: u32 = 31;
    let mut ids = BTreeSet::new();
    for kind in [PROG, MAP, LINK] {
        // The members of bpf_attr for BPF_*_GET_NEXT_ID are start_id, next_id and open_flags.
        let mut attr = [0u32; 3];
        // SAFETY: the kernel reads and writes within the 12 bytes given.
        while unsafe { libc::syscall(libc::SYS_bpf, kind, attr.as_mut_ptr(), 12) } == 0 {
            ids.insert((kind, attr[1]));
            attr[0] = attr[1];
        }
    }
    ids
}

/// Checks that no new BPF object remains. The kernel frees objects only after a grace period, so this waits.
fn nothing_new(before: &BTreeSet<(u32, u32)>) -> Result<(), Failed> {
    eventually("the kernel's BPF objects are as before", || {
        in_the_kernel().is_subset(before)
    })
}

fn leaks() -> Result<(), Failed> {
    let before = in_the_kernel();
    let dir = scratch("leaks");
    let _ = std::fs::remove_dir_all(&dir);
    std::fs::create_dir(&dir)?;
    let trace = dir.join("x.bin");
    let rounds = if crate::common::long() { 200 } else { 20 };
    for _ in 0..rounds {
        let out = record(&trace, &["-q"], &["true"])?;
        ensure(out.status.success() && out.stderr.is_empty(), || {
            text(&out.stderr)
        })?;
    }
    nothing_new(&before)?;
    let left = std::fs::read_dir(&dir)?
        .flatten()
        .map(|entry| entry.file_name());
    let left: Vec<_> = left.collect();
    ensure(left.len() == 1, || format!("{left:?}"))
}

fn kill_9() -> Result<(), Failed> {
    let before = in_the_kernel();
    let trace = scratch("kill9.bin");
    // The recorder is killed at different moments of its start and of the recording.
    for after in [0, 5, 10, 20, 40, 80] {
        let mut tr = recording(&trace, &["-q"], &["sleep", "0.3"]).spawn()?;
        std::thread::sleep(Duration::from_millis(after));
        tr.kill()?;
        tr.wait()?;
    }
    let _ = std::fs::remove_file(&trace);
    let mut tr = recording(&trace, &["-q"], &["sleep", "3"]).spawn()?;
    eventually("the header", || trace.exists())?;
    let recording = in_the_kernel();
    tr.kill()?;
    tr.wait()?;
    ensure(!recording.is_subset(&before), || {
        "it was not recording".into()
    })?;
    nothing_new(&before)
}
