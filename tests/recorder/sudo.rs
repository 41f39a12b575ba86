//! Tests `tr record --sudo`: an ordinary user records as root would, and everything but the loader of the BPF programs
//! runs as that user. Each test has its own sudoers file, in a mount namespace.

use std::ffi::CString;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{chown, MetadataExt, PermissionsExt};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::time::{Duration, Instant};

use libtest_mimic::Failed;
use serde_json::Value;

use crate::caller;
use crate::rights::elsewhere;
use crate::support::{
    analyze, dump, ensure, eventually, info, int, list, report, text, write_program, Test,
};

/// Tests that need root, sudo and the right to trace.
pub const TESTS: &[Test] = &[
    ("sudo_records_as_root_does", as_root),
    ("sudo_leaves_the_command_alone", surroundings),
    ("sudo_leaves_the_terminal_alone", terminal),
    ("sudo_is_refused_with_the_right_words", refusals),
    ("auto_uses_sudo_on_hosted_machines_alone", hosted),
    ("doctor_knows_the_loader", doctor),
    ("the_loader_serves_sudos_caller_alone", peers),
    ("a_hostile_caller_reads_no_kernel_memory", caller::hostile),
    ("a_user_has_one_loader_at_a_time", caller::one_at_a_time),
    ("the_loader_ends_with_a_killed_recorder", killed),
    #[cfg(target_arch = "x86_64")]
    (
        "the_loader_helps_where_the_kernel_refuses_iterators",
        helped,
    ),
];

/// A test that waits for a loader that does not answer.
pub const SILENT: &[Test] = &[("a_killed_or_silent_loader_is_an_error", killed_loader)];

pub const NOBODY: u32 = 65534;
pub const ALLOWED: &str = "nobody ALL=(root) NOPASSWD: ALL";

/// A directory of the user `nobody`, with a `tr` that root and the user can execute, and a sudoers file.
pub struct Place(PathBuf);

impl Place {
    pub fn new(name: &str, rule: &str) -> Result<Place, Failed> {
        let copy = elsewhere(name)?;
        let dir = copy.with_extension("dir");
        let _ = std::fs::remove_dir_all(&dir);
        std::fs::create_dir_all(&dir)?;
        std::fs::rename(copy, dir.join("tr"))?;
        std::fs::write(
            dir.join("sudoers"),
            format!("Defaults use_pty\nroot ALL=(ALL:ALL) ALL\n{rule}\n"),
        )?;
        std::fs::set_permissions(dir.join("sudoers"), PermissionsExt::from_mode(0o440))?;
        chown(&dir, Some(NOBODY), Some(NOBODY))?;
        Ok(Place(dir))
    }

    pub fn at(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }

    /// A command that the user runs with this sudoers file.
    fn command(&self, program: &Path) -> Result<Command, Failed> {
        let mut command = Command::new(program);
        command
            .current_dir(&self.0)
            .stdin(Stdio::null())
            .env_remove("SUDO_UID")
            .env_remove("SUDO_GID")
            .env_remove("GITHUB_ACTIONS");
        let rules = CString::new(self.at("sudoers").as_os_str().as_bytes())?;
        // SAFETY: the closure makes system calls only, and owns the path.
        unsafe {
            command.pre_exec(move || {
                let null = std::ptr::null();
                let private = libc::MS_REC | libc::MS_PRIVATE;
                let bind = libc::MS_BIND;
                let done = libc::unshare(libc::CLONE_NEWNS) == 0
                    && libc::mount(null, c"/".as_ptr(), null, private, null.cast()) == 0
                    && libc::mount(
                        rules.as_ptr(),
                        c"/etc/sudoers".as_ptr(),
                        null,
                        bind,
                        null.cast(),
                    ) == 0
                    && libc::setgroups(0, null.cast()) == 0
                    && libc::setresgid(NOBODY, NOBODY, NOBODY) == 0
                    && libc::setresuid(NOBODY, NOBODY, NOBODY) == 0;
                if done {
                    Ok(())
                } else {
                    Err(std::io::Error::last_os_error())
                }
            });
        }
        Ok(command)
    }

    /// The command `tr record OPTIONS -o x.bin -- COMMAND`, run by the user.
    pub fn record(&self, options: &[&str], command: &[&str]) -> Result<Command, Failed> {
        let mut tr = self.command(&self.at("tr"))?;
        tr.arg("record").args(options).args(["-o", "x.bin", "--"]);
        tr.args(command);
        Ok(tr)
    }

    /// Writes a script `sudo` that is found before the real one; the real one is `$SUDO`.
    pub fn stand_in(&self, script: &str) -> Result<(), Failed> {
        let file = self.at("bin/sudo");
        std::fs::create_dir_all(self.at("bin"))?;
        let text = format!("#!/bin/sh\nSUDO=/usr/bin/sudo\n{script}\n");
        Ok(write_program(file, text)?)
    }

    /// A PATH with the stand-in for sudo first.
    pub fn path(&self) -> String {
        let path = std::env::var("PATH").unwrap_or_default();
        format!("{}:{path}", self.at("bin").display())
    }

    /// The command lines of all processes of the loader, including sudo's.
    fn loaders(&self) -> Vec<String> {
        let tr = self.at("tr");
        let processes = std::fs::read_dir("/proc").into_iter().flatten().flatten();
        let lines = processes.filter_map(|entry| {
            let line = std::fs::read(entry.path().join("cmdline")).ok()?;
            Some(text(&line).replace('\0', " "))
        });
        let is =
            |line: &String| line.contains(&*tr.to_string_lossy()) && line.contains(" bpf-loader");
        lines.filter(is).collect()
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

fn succeeds(command: &mut Command) -> Result<Output, Failed> {
    let out = command.output()?;
    ensure(out.status.success(), || format!("{out:?}"))?;
    Ok(out)
}

/// A script that makes forks, execs, sleeps and CPU time.
const BUILD: &str = "i=0; while [ $i -lt 40 ]; do sh -c 'exit 3'; i=$((i + 1)); done; \
    sleep 0.1 & sleep 0.1; wait; exit 0";

fn as_root() -> Result<(), Failed> {
    let place = Place::new("sudo-as-root", ALLOWED)?;
    let out = succeeds(&mut place.record(&["--sudo"], &["sh", "-c", BUILD])?)?;
    ensure(!text(&out.stderr).contains("recorded by"), || {
        text(&out.stderr)
    })?;
    let trace = place.at("x.bin");
    let meta = std::fs::metadata(&trace)?;
    ensure(
        (meta.uid(), meta.gid(), meta.mode() & 0o777) == (NOBODY, NOBODY, 0o600),
        || format!("{meta:?}"),
    )?;
    let facts = |trace: &Path| -> Result<(Value, Value), Failed> {
        let mut info = info(trace)?;
        // In some virtual machines the kernel hides switches by chance, so this anomaly is not compared.
        if let Some(anomalies) = info["anomalies"].as_object_mut() {
            anomalies.remove("ran without having been switched in");
        }
        Ok((analyze(trace)?, info))
    };
    let by_sudo = facts(&trace)?;
    let events = dump(&trace)?;
    let other = place.at("root.bin");
    let mut root = Command::new(place.at("tr"));
    root.args(["record", "-q", "--user", "nobody", "-o"])
        .arg(&other);
    succeeds(root.args(["--", "sh", "-c", BUILD]))?;
    let by_root = facts(&other)?;
    ensure(by_sudo.1["method"] == "sudo", || format!("{:#}", by_sudo.1))?;
    for key in ["facts", "missing", "lost_events", "anomalies"] {
        let mut one = by_sudo.1[key].clone();
        if let ("missing", Some(missing)) = (key, one.as_array_mut()) {
            // The kernel counts how often it skipped a BPF program. Only the owner of the program's descriptor can read
            // this count, so a recording by sudo lists one more missing fact.
            let last = missing.pop().map(|reason| reason.to_string());
            let told =
                last.is_some_and(|last| last.contains("that the kernel skipped are not counted"));
            ensure(told, || by_sudo.1[key].to_string())?;
        }
        let (one, other) = (&one, &by_root.1[key]);
        ensure(one == other, || {
            format!("{key}: {one} by sudo, {other} by root")
        })?;
    }
    for key in ["processes", "threads", "execs", "forks", "exits"] {
        let of = |found: &(Value, Value)| found.0["totals"][key].as_u64();
        ensure(
            of(&by_sudo).is_some() && of(&by_sudo) == of(&by_root),
            || {
                format!(
                    "{key}: {:?} by sudo, {:?} by root",
                    of(&by_sudo),
                    of(&by_root)
                )
            },
        )?;
    }
    for kind in ["switch", "waking", "fork", "exec", "exit"] {
        let count = events.iter().filter(|event| event["kind"] == kind).count();
        ensure(count >= 40, || format!("{count} of {kind}"))?;
    }
    let asleep = list(&by_sudo.0, "processes")
        .iter()
        .find(|process| process["comm"] == "sleep");
    let asleep = asleep.map_or(0, |value| int(value, "sleep_ns"));
    ensure((80_000_000..1_000_000_000).contains(&asleep), || {
        asleep.to_string()
    })?;
    // The recorder reads the counts of system calls from maps that are mapped into its memory, because an ordinary user
    // may not call bpf(2).
    let dd = ["dd", "if=/dev/zero", "of=/dev/null", "bs=1", "count=3000"];
    succeeds(&mut place.record(&["--sudo", "--syscalls"], &dd)?)?;
    let calls = report(&trace, "syscalls", &[])?;
    let writes = list(&calls, "rows").iter();
    let writes = writes.filter(|row| row["syscall"] == "write");
    let writes: u64 = writes.map(|row| int(row, "calls")).sum();
    ensure((3000..3100).contains(&writes), || calls.to_string())?;
    // A recording of the whole machine works as well.
    let mut all = place.command(&place.at("tr"))?;
    succeeds(all.args([
        "record",
        "-q",
        "--sudo",
        "-a",
        "--duration",
        "200ms",
        "-o",
        "all.bin",
    ]))?;
    let all = analyze(&place.at("all.bin"))?;
    ensure(int(&all["totals"], "processes") > 10, || {
        all["totals"].to_string()
    })
}

/// COMMAND has the same environment as without `tr`, can use sudo itself, and no loader is left.
fn surroundings() -> Result<(), Failed> {
    let place = Place::new("sudo-surroundings", ALLOWED)?;
    let script =
        "id; env | sort | grep -v ^TR_; grep -E '^(Uid|Gid|Groups|Cap|NoNew|Secc|Sig[BI])' \
        /proc/self/status; ulimit -a; ls /proc/self/fd; umask; sudo -n id -u";
    let shell = ["-c", script];
    let bare = succeeds(place.command(Path::new("/bin/sh"))?.args(shell))?;
    let out = succeeds(&mut place.record(&["-q", "--sudo"], &["/bin/sh", "-c", script])?)?;
    ensure(text(&bare.stdout) == text(&out.stdout), || {
        format!(
            "bare: {}\nrecorded: {}",
            text(&bare.stdout),
            text(&out.stdout)
        )
    })?;
    ensure(
        out.stderr.is_empty() && text(&out.stdout).ends_with("\n0\n"),
        || text(&out.stderr),
    )?;
    // COMMAND is the only child of tr, no loader runs, and COMMAND has no descriptor of BPF.
    let script = "sleep 1; ps --no-headers -o args --ppid $PPID; ls -l /proc/self/fd | grep -c bpf";
    let tr = place
        .record(&["-q", "--sudo"], &["/bin/sh", "-c", script])?
        .output()?;
    let said = text(&tr.stdout);
    let lines: Vec<&str> = said.lines().collect();
    ensure(
        lines.len() == 2 && lines[0].starts_with("/bin/sh -c") && lines[1] == "0",
        || said.clone(),
    )?;
    ensure(place.loaders().is_empty(), || {
        format!("{:?}", place.loaders())
    })
}

/// On a terminal the terminal's modes stay the same before, during and after the recording.
fn terminal() -> Result<(), Failed> {
    let place = Place::new("sudo-terminal", ALLOWED)?;
    let script = "exec 2>&1; stty -g; (for i in 1 2 3 4 5 6 7 8 9 10; do sleep 0.05; stty -F /dev/tty -g; done) & \
        ./tr record -q --sudo -o x.bin -- sh -c 'tty; stty -g; ps -o pgid=,tpgid= -p $$'; wait; stty -g";
    let mut command = place.command(Path::new("/usr/bin/script"))?;
    command.args([
        "-qec",
        &format!("bash -c '{}'", script.replace('\'', "'\\''")),
        "/dev/null",
    ]);
    let said = text(&succeeds(&mut command)?.stdout).replace('\r', "");
    let modes: Vec<&str> = said.lines().filter(|line| line.contains(":bf:")).collect();
    ensure(
        modes.len() == 13 && modes.iter().all(|mode| mode == &modes[0]),
        || said.clone(),
    )?;
    ensure(said.contains("/dev/pts/"), || said.clone())?;
    // COMMAND's process group is in the foreground.
    let groups = said.lines().filter_map(|line| {
        let mut numbers = line.split_whitespace().map(str::parse::<u32>);
        Some((numbers.next()?.ok()?, numbers.next()?.ok()?))
    });
    let groups: Vec<_> = groups.collect();
    ensure(groups.len() == 1 && groups[0].0 == groups[0].1, || {
        said.clone()
    })
}

/// Checks that the recording fails before COMMAND runs, with these words in the message.
fn fails(command: &mut Command, words: &[&str]) -> Result<(), Failed> {
    let begun = Instant::now();
    let out = command.output()?;
    let said = text(&out.stderr);
    let all = || format!("{words:?} are expected: {:?}, {:?}", begun.elapsed(), out);
    ensure(out.status.code() == Some(125) && out.stdout.is_empty(), all)?;
    ensure(words.iter().all(|word| said.contains(word)), all)
}

fn refusals() -> Result<(), Failed> {
    let echo = ["/bin/echo", "it runs"];
    let remedy = "/tr record --best-effort -o x.bin -- /bin/echo 'it runs'";
    let place = Place::new("sudo-refusals", "nobody ALL=(root) ALL")?;
    let mut password = place.record(&["--sudo"], &echo)?;
    fails(
        &mut password,
        &[
            "sudo asks for a password",
            "sudo -v && /",
            " record --sudo -o x.bin -- /bin/echo",
            remedy,
        ],
    )?;
    let mut absent = place.record(&["--method", "sudo"], &echo)?;
    let absent = absent.env("PATH", "/proc/none");
    fails(
        absent,
        &["sudo is not installed", "setcap cap_bpf,cap_perfmon+p /"],
    )?;
    // In the next test the sudoers file allows only another program, so sudo refuses the loader.
    drop(place);
    let place = Place::new("sudo-refusals", "nobody ALL=(root) NOPASSWD: /bin/true")?;
    let mut other = place.record(&["--sudo"], &echo)?;
    fails(
        &mut other,
        &["cannot load the BPF programs by sudo: ", remedy],
    )?;
    drop(place);
    // The rule that docs/recording.md proposes is enough.
    let place = Place::new("sudo-refusals", "")?;
    let rule = format!(
        "root ALL=(ALL:ALL) ALL\nnobody ALL=(root) NOPASSWD: {} bpf-loader\n",
        place.at("tr").display()
    );
    std::fs::write(place.at("sudoers"), rule)?;
    succeeds(&mut place.record(&["-q", "--sudo"], &["/bin/true"])?)?;
    drop(place);
    // With no_new_privs, sudo itself reports the error. With `noexec` in the sudoers file, the loader works, because
    // the loader executes no other program.
    let place = Place::new("sudo-refusals", &format!("Defaults noexec\n{ALLOWED}"))?;
    let mut confined = place.command(Path::new("setpriv"))?;
    confined.args([
        "--no-new-privs",
        "./tr",
        "record",
        "--sudo",
        "-o",
        "x.bin",
        "--",
        "/bin/echo",
    ]);
    fails(&mut confined, &["by sudo: sudo: ", "sudo -l"])?;
    succeeds(&mut place.record(&["-q", "--sudo"], &["/bin/true"])?)?;
    let meta = info(&place.at("x.bin"))?;
    ensure(meta["method"] == "sudo", || format!("{meta:#}"))?;
    // sudo starts the loader, which then reports that there is no such process.
    let mut targets = place.record(&["--sudo", "-p", "4000000"], &echo)?;
    fails(&mut targets, &["no such process: 4000000"])
}

/// The automatic method calls sudo only on machines that are known to allow it (GitHub's hosted runners). If sudo fails
/// there, the command runs untraced.
fn hosted() -> Result<(), Failed> {
    let place = Place::new("sudo-hosted", ALLOWED)?;
    place.stand_in("echo called >>\"$CALLS\"; exec $SUDO \"$@\"")?;
    let calls = place.at("calls");
    let auto = |place: &Place, runner: Option<&str>, options: &[&str]| -> Result<String, Failed> {
        let _ = std::fs::remove_file(&calls);
        let mut tr = place.record(options, &["/bin/echo", "it runs"])?;
        tr.env("PATH", place.path()).env("CALLS", &calls);
        if let Some(runner) = runner {
            tr.env("GITHUB_ACTIONS", "true")
                .env("RUNNER_ENVIRONMENT", runner);
        }
        let out = succeeds(&mut tr)?;
        ensure(text(&out.stdout) == "it runs\n", || format!("{out:?}"))?;
        Ok(text(&out.stderr))
    };
    let method = || info(&place.at("x.bin")).map(|info| info["method"].as_str().map(str::to_owned));
    let untraced = || info(&place.at("x.bin")).map(|info| info["not_traced"].is_string());
    for runner in [None, Some("self-hosted")] {
        let said = auto(&place, runner, &[])?;
        ensure(!calls.exists() && untraced()?, || said.clone())?;
        ensure(said.contains("the command runs untraced"), || said.clone())?;
    }
    let said = auto(&place, Some("github-hosted"), &[])?;
    ensure(
        calls.exists()
            && method()?.as_deref() == Some("sudo")
            && said.contains("tr: recorded by sudo: "),
        || said.clone(),
    )?;
    // sudo may refuse even on such a machine.
    place.stand_in("echo called >>\"$CALLS\"; echo sudo: not today >&2; exit 1")?;
    let said = auto(&place, Some("github-hosted"), &[])?;
    ensure(
        untraced()? && said.contains("by sudo: sudo: not today"),
        || said.clone(),
    )
}

/// `tr doctor` reports what sudo allows, if `tr doctor` may call sudo.
fn doctor() -> Result<(), Failed> {
    let run =
        |place: &Place, options: &[&str], hosted: bool| -> Result<(Option<i32>, Value), Failed> {
            let mut tr = place.command(&place.at("tr"))?;
            tr.arg("doctor").args(options).args(["--format", "json"]);
            if hosted {
                tr.env("GITHUB_ACTIONS", "true")
                    .env("RUNNER_ENVIRONMENT", "github-hosted");
            }
            let out = tr.output()?;
            Ok((out.status.code(), serde_json::from_slice(&out.stdout)?))
        };
    let place = Place::new("sudo-doctor", ALLOWED)?;
    let (code, found) = run(&place, &[], false)?;
    let sudo = &found["sudo"];
    ensure(
        code == Some(2)
            && found["method"].is_null()
            && sudo["installed"] == true
            && sudo["allowed"].is_null(),
        || format!("{found:#}"),
    )?;
    let (code, found) = run(&place, &["--sudo"], false)?;
    let improve = found["improve"]["command"].as_str().unwrap_or_default();
    ensure(
        code == Some(2)
            && found["method"].is_null()
            && found["sudo"]["allowed"] == true
            && found["sudo"]["passwordless"] == true
            && improve.ends_with("record --sudo -- COMMAND"),
        || format!("{found:#}"),
    )?;
    let (code, found) = run(&place, &[], true)?;
    // A recording by the loader lacks only the facts that root's own recording lacks, too.
    let own: Value = serde_json::from_slice(
        &Command::new(place.at("tr"))
            .args(["doctor", "--format", "json"])
            .output()?
            .stdout,
    )?;
    let complete = found["missing"].as_array().is_some_and(Vec::is_empty);
    let notes = found["notes"].as_array().map_or(0, Vec::len);
    ensure(
        code == Some(i32::from(!complete))
            && found["missing"] == own["missing"]
            && notes > 0
            && found["method"] == "sudo"
            && found["improve"].is_null(),
        || format!("{found:#}"),
    )?;
    drop(place);
    let place = Place::new("sudo-doctor", "nobody ALL=(root) ALL")?;
    let (_, found) = run(&place, &["--sudo"], true)?;
    ensure(
        found["method"].is_null()
            && found["sudo"]["passwordless"] == false
            && found["sudo"]["allowed"] == false,
        || format!("{found:#}"),
    )
}

/// Runs the loader as root with this standard input and, if given, the variables that sudo sets for this user.
fn loader(place: &Place, stdin: Stdio, user: Option<u32>) -> Result<Output, Failed> {
    let mut loader = Command::new(place.at("tr"));
    loader.arg("bpf-loader").stdin(stdin).env_remove("SUDO_UID");
    if let Some(user) = user {
        loader
            .env("SUDO_UID", user.to_string())
            .env("SUDO_GID", user.to_string());
    }
    Ok(loader.output()?)
}

fn peers() -> Result<(), Failed> {
    let place = Place::new("sudo-peers", ALLOWED)?;
    let refused = |out: Output, words: &str| {
        let said = text(&out.stderr);
        ensure(
            out.status.code() == Some(125) && said.contains(words),
            || format!("{words}: {out:?}"),
        )
    };
    refused(
        loader(&place, Stdio::null(), Some(NOBODY))?,
        "no Unix socket",
    )?;
    refused(
        loader(&place, Stdio::piped(), Some(NOBODY))?,
        "no Unix socket",
    )?;
    let socket = || -> Result<(Stdio, std::os::unix::net::UnixStream), Failed> {
        let (ours, theirs) = std::os::unix::net::UnixStream::pair()?;
        Ok((std::os::fd::OwnedFd::from(theirs).into(), ours))
    };
    let internet = std::net::UdpSocket::bind("127.0.0.1:0")?;
    let internet = std::os::fd::OwnedFd::from(internet);
    refused(
        loader(&place, internet.into(), Some(NOBODY))?,
        "no Unix socket",
    )?;
    // This test runs as root and has made the socket, so the socket does not belong to the user.
    refused(
        loader(&place, socket()?.0, Some(NOBODY))?,
        "the socket is of user 0, and user 65534",
    )?;
    refused(loader(&place, socket()?.0, None)?, "only sudo runs this")?;
    let mut user = place.command(&place.at("tr"))?;
    let user = user
        .arg("bpf-loader")
        .stdin(socket()?.0)
        .env("SUDO_UID", "65534");
    refused(
        user.env("SUDO_GID", "65534").output()?,
        "only sudo runs this",
    )?;
    // The bytes are no valid request, so the loader answers with an error and attaches nothing.
    let (theirs, mut ours) = socket()?;
    std::io::Write::write_all(&mut ours, &vec![0x5a; 1 << 15])?;
    let out = loader(&place, theirs, Some(0))?;
    ensure(out.status.success(), || format!("{out:?}"))?;
    let mut answer = vec![0; 1 << 12];
    let len = std::io::Read::read(&mut ours, &mut answer)?;
    let answer = text(&answer[..len]);
    ensure(answer.contains("replaced by another version"), || {
        answer.clone()
    })?;
    // `tr bpf-loader` starts the loader only without further arguments. With one more, the command line is for the
    // system's `tr`.
    let mut more = Command::new(place.at("tr"));
    let out = more
        .args(["bpf-loader", "x"])
        .stdin(Stdio::null())
        .output()?;
    ensure(out.status.success() && out.stderr.is_empty(), || {
        format!("{out:?}")
    })
}

fn killed() -> Result<(), Failed> {
    let place = Place::new("sudo-killed", ALLOWED)?;
    // If tr is killed while the loader works, COMMAND never runs, and the loader ends.
    for after in [5, 20, 40, 60, 80, 120, 160] {
        let mut tr = place
            .record(&["-q", "--sudo"], &["sleep", "0.3"])?
            .spawn()?;
        std::thread::sleep(Duration::from_millis(after));
        tr.kill()?;
        tr.wait()?;
        eventually("the loader ends", || place.loaders().is_empty())?;
        let _ = std::fs::remove_file(place.at("x.bin"));
    }
    // If tr is killed while COMMAND runs, COMMAND goes on, and the file can be read.
    let script = "touch begun; sleep 1.5; touch done";
    let mut tr = place
        .record(&["-q", "--sudo"], &["sh", "-c", script])?
        .spawn()?;
    eventually("COMMAND runs", || place.at("begun").exists())?;
    std::thread::sleep(Duration::from_millis(1200));
    tr.kill()?;
    tr.wait()?;
    eventually("COMMAND ends", || place.at("done").exists())?;
    let meta = info(&place.at("x.bin"))?;
    ensure(
        meta["truncated"] == true && meta["method"] == "sudo",
        || format!("{meta:#}"),
    )
}

fn killed_loader() -> Result<(), Failed> {
    let place = Place::new("sudo-killed-loader", ALLOWED)?;
    let echo = ["/bin/echo", "it runs"];
    // sudo is killed alone first, and then together with the loader at different moments.
    place.stand_in("kill -9 $$")?;
    let mut tr = place.record(&["--sudo"], &echo)?;
    fails(tr.env("PATH", place.path()), &["the loader was killed"])?;
    for delay in ["0.01", "0.03", "0.06"] {
        place.stand_in(&format!(
            "$SUDO \"$@\" <&0 & sleep {delay}; for pid in $(pgrep -f '{} bpf-loader'); do \
             kill -9 $pid; done 2>/dev/null; wait",
            place.at("tr").display()
        ))?;
        let mut tr = place.record(&["--sudo"], &echo)?;
        let out = tr.env("PATH", place.path()).output()?;
        let (said, told) = (text(&out.stdout), text(&out.stderr));
        // On a slow machine, the signal may come before the loader has started. On a fast machine, the signal may come
        // after the loader has ended. Both results are right.
        let good = match out.status.code() {
            Some(0) => said == "it runs\n",
            code => {
                code == Some(125)
                    && said.is_empty()
                    && told.contains("cannot load the BPF programs by sudo")
            }
        };
        ensure(good, || format!("{delay}: {out:?}"))?;
        eventually("the loader ends", || place.loaders().is_empty())?;
    }
    // If sudo does not answer, the automatic method runs the command without it.
    place.stand_in("exec sleep 100")?;
    let mut tr = place.record(&[], &echo)?;
    tr.env("PATH", place.path())
        .env("GITHUB_ACTIONS", "true")
        .env("RUNNER_ENVIRONMENT", "github-hosted");
    let begun = Instant::now();
    let out = succeeds(&mut tr)?;
    let told = text(&out.stderr);
    ensure(
        text(&out.stdout) == "it runs\n" && told.contains("sudo has not answered in 10 s"),
        || told.clone(),
    )?;
    // The wait ends after ten seconds, or later on a busy machine, but does not last until sudo's end.
    ensure((9..100).contains(&begun.elapsed().as_secs()), || {
        format!("{:?}", begun.elapsed())
    })
}

/// In this test, every call of bpf(2) by `tr` fails, as for ordinary users before Linux 5.19. So only the loader can
/// use bpf(2).
#[cfg(target_arch = "x86_64")]
fn helped() -> Result<(), Failed> {
    use crate::inject::{self, Fault, Which};
    let place = Place::new("sudo-helped", ALLOWED)?;
    let script = format!(
        "(sleep 0.4; touch late) & cat /proc/$(pgrep -fx '{} bpf-loader')/status >rights; exit 5",
        place.at("tr").display()
    );
    let mut tr = place.record(&["--sudo", "--wait-all"], &["sh", "-c", &script])?;
    tr.stderr(std::fs::File::create(place.at("said"))?);
    let tracee = inject::spawn(&mut tr)?;
    let number = Which::Number(libc::SYS_bpf.cast_unsigned());
    let limit = Duration::from_secs(30);
    let (status, calls) = inject::run(&tracee, number, Fault::Error(libc::EPERM), limit)?;
    let said = std::fs::read_to_string(place.at("said"))?;
    ensure(status == 5 << 8 && calls.failed.is_some(), || {
        format!("{status:x}: {said}")
    })?;
    // COMMAND's background job makes the file `late` after COMMAND has ended. If the file exists, the recorder has
    // waited for this job. The recorder learns of the job only from the list of living tasks.
    ensure(place.at("late").exists(), || said.clone())?;
    let meta = info(&place.at("x.bin"))?;
    let missing = meta["missing"].to_string();
    ensure(
        meta["method"] == "sudo" && missing.contains("the loader"),
        || format!("{meta:#}"),
    )?;
    let analysis = analyze(&place.at("x.bin"))?;
    ensure(int(&analysis["totals"], "processes") == 5, || {
        analysis["totals"].to_string()
    })?;
    // The loader ran as the user, with only the capabilities for BPF: CAP_SYS_RESOURCE, CAP_PERFMON and CAP_BPF.
    let rights = std::fs::read_to_string(place.at("rights"))?;
    for line in [
        "Uid:\t65534\t65534\t65534\t65534\n",
        "Groups:\t \n",
        "CapEff:\t000000c00",
        "NoNewPrivs:\t1\n",
    ] {
        ensure(rights.contains(line), || {
            format!("{line:?} is missing: {rights}")
        })?;
    }
    eventually("the loader ends", || place.loaders().is_empty())
}
