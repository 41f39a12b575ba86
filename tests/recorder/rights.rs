//! Tests the owner of the trace, the user of COMMAND, and the reasons for which tracing cannot start.

use std::os::unix::fs::{symlink, FileTypeExt, MetadataExt, PermissionsExt};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use libtest_mimic::Failed;

use crate::support::{
    copy_program, ensure, eventually, info, record, recording, scratch, text, why_not,
    write_program, Test, TR,
};

pub const TESTS: &[Test] = &[
    ("under_sudo_the_trace_is_the_users", sudo),
    ("the_trace_is_for_its_owner_alone", mode),
    ("a_planted_link_or_fifo_is_refused", planted),
    ("a_fifo_without_a_reader_holds_nothing_up", no_reader),
    ("what_is_no_file_is_written_as_it_is", special),
    ("a_file_is_replaced_by_a_complete_header_only", replaced),
    ("the_command_runs_as_another_user", user),
    (GETENT, getent),
    (
        "capabilities_will_do_and_the_command_gets_none",
        capabilities,
    ),
    (REFUSALS, refusals),
    (JOBS, jobs),
];

/// The name of a test that needs no right to trace.
pub const GETENT: &str = "a_getent_without_options_knows_the_user";
/// The name of a test that needs root, because it makes programs that gain rights.
pub const JOBS: &str = "a_job_with_programs_that_gain_rights_runs_as_without_tr";

/// The name of a test that needs root, but not the right to trace.
pub const REFUSALS: &str = "every_refusal_names_its_reason_and_a_remedy";

/// Makes an empty directory for this test.
fn fresh(name: &str) -> Result<PathBuf, Failed> {
    let dir = scratch(name);
    let _ = std::fs::remove_dir_all(&dir);
    std::fs::create_dir_all(&dir)?;
    Ok(dir)
}

fn sudo() -> Result<(), Failed> {
    let trace = fresh("sudo")?.join("x.bin");
    let out = recording(&trace, &[], &["true"])
        .env("SUDO_UID", "65534")
        .env("SUDO_GID", "65533")
        .output()?;
    ensure(out.status.success(), || text(&out.stderr))?;
    let meta = std::fs::metadata(&trace)?;
    ensure((meta.uid(), meta.gid()) == (65534, 65533), || {
        format!("{}:{}", meta.uid(), meta.gid())
    })
}

fn mode() -> Result<(), Failed> {
    let dir = fresh("mode")?;
    let script = "umask 0; $TR record -q -o open.bin -- true; \
        umask 0277; $TR record -q -o less.bin -- true";
    Command::new("sh")
        .args(["-c", script])
        .env("TR", TR)
        .current_dir(&dir)
        .status()?;
    for (name, want) in [("open.bin", 0o600), ("less.bin", 0o400)] {
        let mode = std::fs::metadata(dir.join(name))?.permissions().mode() & 0o7777;
        ensure(mode == want, || format!("{name}: {mode:o}"))?;
    }
    Ok(())
}

fn planted() -> Result<(), Failed> {
    let dir = fresh("planted")?;
    std::fs::set_permissions(&dir, PermissionsExt::from_mode(0o1777))?;
    let victim = dir.join("victim");
    std::fs::write(&victim, "precious")?;
    let (link, hard, fifo) = (
        dir.join("link.bin"),
        dir.join("hard.bin"),
        dir.join("fifo.bin"),
    );
    symlink(&victim, &link)?;
    nix::unistd::mkfifo(&fifo, nix::sys::stat::Mode::S_IRWXU)?;
    for planted in [&link, &fifo] {
        std::os::unix::fs::lchown(planted, Some(65534), None)?;
        let out = record(planted, &[], &["true"])?;
        // The file belongs to another user, so the command runs without a recording.
        let told = text(&out.stderr);
        ensure(out.status.code() == Some(0), || told.clone())?;
        ensure(told.contains(&*planted.to_string_lossy()), || told.clone())?;
        ensure(told.contains("the command runs untraced"), || told.clone())?;
        ensure(std::fs::read(&victim)? == b"precious", || told.clone())?;
    }
    std::fs::hard_link(&victim, &hard)?;
    let out = record(&hard, &[], &["true"])?;
    ensure(out.status.code() == Some(125), || text(&out.stderr))?;
    let out = record(&hard, &["--force"], &["true"])?;
    ensure(out.status.success(), || text(&out.stderr))?;
    info(&hard)?;
    ensure(std::fs::read(&victim)? == b"precious", || {
        "the victim was written".into()
    })?;
    // A symbolic link that the user himself has made is followed: the trace is written to the link's target.
    let own = dir.join("own.bin");
    symlink("real.bin", &own)?;
    let out = record(&own, &[], &["true"])?;
    ensure(out.status.success(), || text(&out.stderr))?;
    info(&dir.join("real.bin"))?;
    ensure(std::fs::symlink_metadata(&own)?.is_symlink(), || {
        "the link was replaced".into()
    })
}

/// Nobody reads from the FIFO, so the command runs, and tr stops waiting 10 s after the command's end.
fn no_reader() -> Result<(), Failed> {
    let dir = fresh("no_reader")?;
    let fifo = dir.join("fifo");
    nix::unistd::mkfifo(&fifo, nix::sys::stat::Mode::S_IRWXU)?;
    let begun = std::time::Instant::now();
    let out = record(&fifo, &["-q"], &["sh", "-c", "exit 3"])?;
    let (took, told) = (begun.elapsed(), text(&out.stderr));
    ensure(out.status.code() == Some(3), || format!("{out:?}"))?;
    // tr gives up after ten seconds; the lower bound has a tolerance. The upper bound only shows that tr does not wait
    // for ever, so it is large enough for any load.
    ensure((9..100).contains(&took.as_secs()), || format!("{took:?}"))?;
    ensure(told.contains("given up"), || told.clone())?;
    // A reader that opens the FIFO while the command runs gets the whole trace.
    let copy = dir.join("copy");
    let script = format!("sleep 0.3; cat {} > {}", fifo.display(), copy.display());
    let mut cat = Command::new("sh").args(["-c", &script]).spawn()?;
    let out = record(&fifo, &[], &["sleep", "0.6"])?;
    cat.wait()?;
    ensure(out.status.success(), || text(&out.stderr))?;
    info(&copy).map(drop)
}

fn special() -> Result<(), Failed> {
    let fifo = fresh("special")?.join("fifo");
    nix::unistd::mkfifo(&fifo, nix::sys::stat::Mode::S_IRWXU)?;
    let copy = fifo.with_file_name("copy");
    let mut cat = Command::new("cat")
        .arg(&fifo)
        .stdout(std::fs::File::create(&copy)?)
        .spawn()?;
    let out = record(&fifo, &[], &["true"])?;
    ensure(out.status.success(), || text(&out.stderr))?;
    cat.wait()?;
    ensure(
        std::fs::symlink_metadata(&fifo)?.file_type().is_fifo(),
        || "replaced".into(),
    )?;
    info(&copy)?;
    for path in ["/dev/null", "/dev/stdout"] {
        let out = record(Path::new(path), &["-q"], &["true"])?;
        ensure(out.status.success() && out.stderr.is_empty(), || {
            text(&out.stderr)
        })?;
        ensure(path == "/dev/null" || out.stdout.len() > 500, || {
            "nothing written".into()
        })?;
    }
    Ok(())
}

fn replaced() -> Result<(), Failed> {
    let dir = fresh("replaced")?;
    let trace = dir.join("x.bin");
    let last = include_bytes!("../../fixtures/traces/demo.bin");
    std::fs::write(&trace, last)?;
    // If tracing cannot start, or if tr is killed before the recording begins, an older file remains.
    let out = record(&trace, &["--cpu", "900"], &["true"])?;
    ensure(out.status.code() == Some(125), || text(&out.stderr))?;
    for after in [0, 3, 6, 12, 25] {
        std::fs::write(&trace, last)?;
        let mut tr = recording(&trace, &["-q"], &["sleep", "0.2"]).spawn()?;
        std::thread::sleep(Duration::from_millis(after));
        tr.kill()?;
        tr.wait()?;
        let now = std::fs::read(&trace)?;
        if now != last {
            info(&trace)?;
        }
    }
    let names: Vec<_> = std::fs::read_dir(&dir)?
        .flatten()
        .map(|e| e.file_name())
        .collect();
    ensure(names.len() == 1, || format!("{names:?}"))
}

fn user() -> Result<(), Failed> {
    let trace = fresh("user")?.join("x.bin");
    let script = "id -u; id -G; cat /proc/self/status; env";
    let out = recording(&trace, &["-q", "--user", "nobody"], &["sh", "-c", script])
        .env("SUDO_UID", "0")
        .env("KEPT", "yes")
        .env("HOME", "/root")
        .output()?;
    let said = text(&out.stdout);
    let groups = text(&Command::new("id").args(["-G", "nobody"]).output()?.stdout);
    ensure(said.starts_with(&format!("65534\n{groups}")), || {
        said.clone()
    })?;
    let entry = Command::new("getent").args(["passwd", "nobody"]).output()?;
    let home = text(&entry.stdout);
    let home = home.split(':').nth(5).ok_or("nobody has no home")?;
    for want in [
        "KEPT=yes\n",
        "USER=nobody\n",
        "LOGNAME=nobody\n",
        &format!("HOME={home}\n"),
        "CapEff:\t0000000000000000\n",
        "CapPrm:\t0000000000000000\n",
    ] {
        ensure(said.contains(want), || format!("{want} is missing: {said}"))?;
    }
    ensure(!said.contains("SUDO_UID"), || said.clone())?;
    ensure(std::fs::metadata(&trace)?.uid() == 0, || {
        "the trace is COMMAND's".into()
    })?;
    let out = record(&trace, &["-q", "--user", "65534"], &["id", "-un"])?;
    ensure(text(&out.stdout) == "nobody\n", || format!("{out:?}"))?;
    let path = std::env::var("PATH")?;
    for (user, path, reason) in [
        ("no such user", path.as_str(), "there is no such user"),
        ("--help", &path, "there is no such user"),
        ("nobody", "/proc/none", "getent: No such file or directory"),
    ] {
        let option = format!("--user={user}");
        let out = recording(&trace, &[&option], &["/bin/true"])
            .env("PATH", path)
            .output()?;
        let said = text(&out.stderr);
        ensure(
            out.status.code() == Some(125) && said.contains(reason),
            || format!("{user}: {out:?}"),
        )?;
    }
    Ok(())
}

/// The getent of Alpine Linux knows no options. This getent takes each argument for a key, and ends at the first
/// unknown key.
fn getent() -> Result<(), Failed> {
    let dir = fresh("getent")?;
    let name = text(&Command::new("id").arg("-un").output()?.stdout);
    let script = "#!/bin/sh\nshift\nfor key; do\n[ \"$key\" = \"$(id -un)\" ] || exit 2\n\
                  echo \"$key:x:$(id -u):$(id -g)::/by/getent:/bin/sh\"\ndone\n";
    write_program(dir.join("getent"), script)?;
    let path = format!("{}:{}", dir.display(), std::env::var("PATH")?);
    let options = ["-q", "--method", "ptrace", "--user", name.trim()];
    let mut tr = recording(&dir.join("x.bin"), &options, &["sh", "-c", "echo $HOME"]);
    let out = tr.env("PATH", path).output()?;
    ensure(text(&out.stdout) == "/by/getent\n", || format!("{out:?}"))
}

/// A C program that prints the user, the group and the capabilities that it has gained.
const GAINED: &str = "#include <stdio.h>
#include <string.h>
#include <unistd.h>
int main(void) {
    char line[256];
    FILE *status = fopen(\"/proc/self/status\", \"r\");
    printf(\"%d %d\\n\", geteuid(), getegid());
    while (status && fgets(line, sizeof line, status))
        if (!strncmp(line, \"CapEff\", 6) || !strncmp(line, \"NoNewPrivs\", 10)) fputs(line, stdout);
    return geteuid() == 0 ? 3 : 4;
}
";

/// Commands that use rights, if the programs are installed. Each command prints something or fails, and must do the
/// same under `tr` as without.
const TOOLS: &[&str] = &[
    "sudo -n id -un",
    "su -c id </dev/null",
    "ping -c 1 -W 1 127.0.0.1 >/dev/null",
    "newuidmap 1 0 0 1",
    "fusermount -u /proc/none",
    "fusermount3 -u /proc/none",
    "mount /proc/none /mnt",
    "passwd -S",
];

/// In an ordinary user's job without a terminal, setuid and setgid programs and programs with capabilities gain their
/// rights.
fn jobs() -> Result<(), Failed> {
    let source = scratch("gained.c");
    std::fs::write(&source, GAINED)?;
    let program = crate::support::compiled(&source, "gained", &[])?;
    let directory = std::env::temp_dir().join(format!("tr-jobs-{}", std::process::id()));
    std::fs::create_dir_all(&directory)?;
    std::fs::set_permissions(&directory, PermissionsExt::from_mode(0o777))?;
    let tested = jobs_in(&directory, &program);
    std::fs::remove_dir_all(&directory)?;
    tested
}

fn jobs_in(directory: &Path, program: &str) -> Result<(), Failed> {
    copy_program(TR, directory.join("tr"))?;
    let mut lines: Vec<String> = TOOLS.iter().map(ToString::to_string).collect();
    for (name, mode) in [("setuid", 0o4755), ("setgid", 0o2755), ("capable", 0o755)] {
        let copy = directory.join(name);
        copy_program(program, &copy)?;
        std::fs::set_permissions(&copy, PermissionsExt::from_mode(mode))?;
        lines.push(format!("./{name}"));
    }
    // Without setcap(8), or on a file system without capabilities, this copy remains an ordinary program.
    let _ = Command::new("setcap")
        .args(["cap_net_raw+ep", "capable"])
        .current_dir(directory)
        .stderr(Stdio::null())
        .status();
    for line in &lines {
        let run = |before: &[&str]| {
            let command = ["sh", "-c", line];
            let words = [NOBODY, before, &command].concat();
            Command::new(words[0])
                .args(&words[1..])
                .current_dir(directory)
                .stdin(Stdio::null())
                .output()
        };
        let bare = run(&[])?;
        for options in [&["--force"][..], &["--force", "--best-effort"]] {
            let record = [&["./tr", "record", "-q"], options, &["--"]].concat();
            let out = run(&record)?;
            ensure(
                (&bare.stdout, &bare.stderr, bare.status) == (&out.stdout, &out.stderr, out.status),
                || format!("{line}: {out:?}, without tr {bare:?}"),
            )?;
            // Without -q, the command's output and status are also the same. Only the message about the recording is
            // added.
            let words = [&["./tr", "record"], options, &["--"]].concat();
            let said = run(&words)?;
            ensure(
                (&bare.stdout, bare.status) == (&said.stdout, said.status),
                || format!("{line}: {said:?}, without tr {bare:?}"),
            )?;
            let command = text(&said.stderr);
            ensure(command.contains("the command runs untraced"), || command)?;
        }
    }
    // A setuid program that is COMMAND itself gains its rights, too.
    let direct = Command::new(NOBODY[0])
        .args(&NOBODY[1..])
        .args(["./tr", "record", "--force", "--", "./setuid"])
        .current_dir(directory)
        .output()?;
    ensure(direct.status.code() == Some(3), || format!("{direct:?}"))
}

/// The reason why file capabilities cannot be tested here, if any.
pub fn no_capabilities() -> Option<String> {
    let copy = elsewhere("probe").ok()?;
    let done = Command::new("setcap")
        .args(["cap_bpf,cap_perfmon+p"])
        .arg(&copy)
        .output();
    let _ = std::fs::remove_file(&copy);
    match done {
        Err(_) => Some("setcap is not installed".into()),
        Ok(out) if !out.status.success() => Some("files here cannot have capabilities".into()),
        Ok(_) => None,
    }
}

/// Makes a copy of `tr` that every user can execute.
pub fn elsewhere(name: &str) -> Result<PathBuf, Failed> {
    let copy = std::env::temp_dir().join(format!("tr-{name}-{}", std::process::id()));
    copy_program(TR, &copy)?;
    Ok(copy)
}

fn capabilities() -> Result<(), Failed> {
    let copy = elsewhere("capabilities")?;
    let set = Command::new("setcap")
        .arg("cap_bpf,cap_perfmon+p")
        .arg(&copy)
        .status()?;
    ensure(set.success(), || "setcap".into())?;
    // The next tr on PATH is a stub that prints its environment.
    let bin = copy.with_extension("bin");
    std::fs::create_dir_all(&bin)?;
    std::fs::write(bin.join("tr"), "#!/bin/sh\nenv\n")?;
    std::fs::set_permissions(bin.join("tr"), std::fs::Permissions::from_mode(0o755))?;
    let path = format!("{}:{}", bin.display(), std::env::var("PATH")?);
    let as_nobody = |args: &[&str]| {
        Command::new("setpriv")
            .args([
                "--reuid=65534",
                "--regid=65534",
                "--clear-groups",
                "--inh-caps=-all",
            ])
            .arg(&copy)
            .args(args)
            // The dynamic loader removes these variables for a program with capabilities; tr must pass them on
            // nevertheless.
            .env("LD_LIBRARY_PATH", "/proc/none")
            .env("TMPDIR", "/kept")
            .env("PATH", &path)
            .stdin(Stdio::null())
            .output()
    };
    let script = "cat /proc/self/status; env; ls -ld /proc/self";
    let out = as_nobody(&[
        "record",
        "-o",
        "-",
        "--",
        "sh",
        "-c",
        &format!("({script}) >&2"),
    ]);
    let owner = as_nobody(&["record", "-o", "/dev/null", "--user", "root", "--", "true"]);
    let pid = std::process::id().to_string();
    let other = as_nobody(&[
        "record",
        "-o",
        "/dev/null",
        "--pid",
        &pid,
        "--duration",
        "50ms",
    ]);
    let passed_on = as_nobody(&["a-z", "A-Z"]);
    std::fs::remove_file(&copy)?;
    std::fs::remove_dir_all(&bin)?;
    let passed_on = text(&passed_on?.stdout);
    for kept in ["LD_LIBRARY_PATH=/proc/none", "TMPDIR=/kept"] {
        ensure(passed_on.lines().any(|line| line == kept), || {
            format!("{kept} is missing: {passed_on}")
        })?;
    }
    let out = out?;
    let said = text(&out.stderr);
    ensure(out.status.success() && said.contains("none lost"), || {
        said.clone()
    })?;
    for want in [
        "CapEff:\t0000000000000000\n",
        "CapPrm:\t0000000000000000\n",
        "CapAmb:\t0000000000000000\n",
        "LD_LIBRARY_PATH=/proc/none\n",
        "TMPDIR=/kept\n",
    ] {
        ensure(said.contains(want), || format!("{want} is missing: {said}"))?;
    }
    ensure(out.stdout.len() > 500, || "no trace".into())?;
    // `--user` must fail, but recording a process of another user works.
    ensure(owner?.status.code() == Some(125), || "became root".into())?;
    let other = other?;
    ensure(other.status.success(), || text(&other.stderr))?;
    eventually("the copy is gone", || !copy.exists())
}

/// The reason to skip a test that must change its user, unless this is root.
pub fn not_root() -> Option<String> {
    (!nix::unistd::Uid::effective().is_root()).then(|| "not root".into())
}

/// Makes one kind of system call fail with this errno, as the seccomp filter of a container does.
pub fn without(command: &mut Command, call: libc::c_long, errno: i32) {
    refuse(command, &[call], errno);
}

/// Makes system calls fail with this errno.
pub fn refuse(command: &mut Command, calls: &[libc::c_long], errno: i32) {
    let code = |code: u32| u16::try_from(code).expect("16 bits");
    let step = |of: u32, jt, jf, k| libc::sock_filter {
        code: code(of),
        jt,
        jf,
        k,
    };
    let number = |call: &libc::c_long| u32::try_from(*call).expect("a system call's number");
    let refused = libc::SECCOMP_RET_ERRNO | errno.unsigned_abs();
    // The filter loads the first member of `seccomp_data`, which is the number of the system call.
    let mut filter = vec![step(libc::BPF_LD | libc::BPF_W | libc::BPF_ABS, 0, 0, 0)];
    for call in calls {
        let equal = libc::BPF_JMP | libc::BPF_JEQ | libc::BPF_K;
        filter.push(step(equal, 0, 1, number(call)));
        filter.push(step(libc::BPF_RET | libc::BPF_K, 0, 0, refused));
    }
    filter.push(step(
        libc::BPF_RET | libc::BPF_K,
        0,
        0,
        libc::SECCOMP_RET_ALLOW,
    ));
    let len = u16::try_from(filter.len()).expect("a short filter");
    // SAFETY: the closure makes one system call, which reads the filter that the closure owns.
    unsafe {
        command.pre_exec(move || {
            let program = libc::sock_fprog {
                len,
                filter: filter.as_mut_ptr(),
            };
            let mode = libc::SECCOMP_MODE_FILTER;
            match libc::prctl(libc::PR_SET_SECCOMP, mode, &program) {
                0 => Ok(()),
                _ => Err(std::io::Error::last_os_error()),
            }
        });
    }
}

/// Environments in which tracing is refused. Each entry has the program that makes the environment, and the reason and
/// the remedy that `tr record` must print.
const REFUSED: &[(&[&str], &str, &str)] = &[
    (
        NOBODY,
        "lacks the capabilities CAP_BPF and CAP_PERFMON\n",
        "sudo setcap cap_bpf,cap_perfmon+p /",
    ),
    (
        NOBODY,
        "lacks the capabilities",
        "record --user nobody -o /dev/null -- true 'a b'\n",
    ),
    (
        ONLY_BPF,
        "lacks CAP_PERFMON (it has CAP_BPF)\n",
        "sudo setcap",
    ),
    (
        ONLY_PERFMON,
        "lacks CAP_BPF (it has CAP_PERFMON)\n",
        "sudo setcap",
    ),
    (
        UNBOUND,
        "bounding set",
        "docker run --cap-add BPF --cap-add PERFMON",
    ),
    (NO_NEW_PRIVS, "no_new_privs", "without no_new_privs"),
    (USER_NAMESPACE, "user namespace", "outside"),
    (NO_PROC, "/proc is not mounted", "mount -t proc proc /proc"),
    (NO_SYSFS, "/sys is not mounted", "mount -t sysfs sysfs /sys"),
    (
        NO_BTF,
        "no BTF (/sys/kernel/btf/vmlinux is missing)",
        "CONFIG_DEBUG_INFO_BTF=y",
    ),
];
pub const NOBODY: &[&str] = &[
    "setpriv",
    "--reuid=65534",
    "--regid=65534",
    "--clear-groups",
    "--inh-caps=-all",
];
const ONLY_BPF: &[&str] = &[
    "setpriv",
    "--reuid=65534",
    "--regid=65534",
    "--clear-groups",
    "--inh-caps=-all,+bpf",
    "--ambient-caps=-all,+bpf",
];
const ONLY_PERFMON: &[&str] = &[
    "setpriv",
    "--reuid=65534",
    "--regid=65534",
    "--clear-groups",
    "--inh-caps=-all,+perfmon",
    "--ambient-caps=-all,+perfmon",
];
/// Runs a command as root, but without the capabilities that a container usually withholds from root.
const UNBOUND: &[&str] = &["setpriv", "--bounding-set=-bpf,-perfmon,-sys_admin"];
const NO_NEW_PRIVS: &[&str] = &[
    "setpriv",
    "--reuid=65534",
    "--regid=65534",
    "--clear-groups",
    "--inh-caps=-all",
    "--no-new-privs",
];
pub const USER_NAMESPACE: &[&str] = &["unshare", "--user", "--map-root-user"];
const NO_PROC: &[&str] = &[
    "unshare",
    "--mount",
    "sh",
    "-c",
    "umount -l /proc && exec \"$@\"",
    "sh",
];
const NO_SYSFS: &[&str] = &[
    "unshare",
    "--mount",
    "sh",
    "-c",
    "umount -l /sys && exec \"$@\"",
    "sh",
];
const NO_BTF: &[&str] = &[
    "unshare",
    "--mount",
    "sh",
    "-c",
    "mount -t tmpfs none /sys/kernel/btf && exec \"$@\"",
    "sh",
];

fn refusals() -> Result<(), Failed> {
    let copy = elsewhere("refusals")?;
    let behind = |wrapper: &[&str], options: &[&str]| {
        let copy = copy.to_string_lossy();
        let record = [&*copy, "record", "--method", "bpf", "-o", "/dev/null"];
        let words = [wrapper, &record, options, &["--", "true", "a b"]].concat();
        let mut command = Command::new(words[0]);
        command.args(&words[1..]).stdin(Stdio::null());
        command
    };
    let mut outputs = Vec::new();
    for (wrapper, reason, remedy) in REFUSED {
        // On some machines root cannot create namespaces, so these environments are skipped.
        if wrapper[0] == "unshare"
            && !Command::new(wrapper[0])
                .args(&wrapper[1..])
                .arg("true")
                .status()?
                .success()
        {
            continue;
        }
        outputs.push((behind(wrapper, &[]).output()?, *reason, *remedy));
    }
    for (errno, name) in [(libc::EPERM, "(EPERM)"), (libc::ENOSYS, "(ENOSYS)")] {
        let mut command = behind(&[], &[]);
        without(&mut command, libc::SYS_bpf, errno);
        outputs.push((command.output()?, name, "--security-opt seccomp=unconfined"));
    }
    let verbose = behind(NOBODY, &["-v"]).output()?;
    let whole = Command::new(NOBODY[0])
        .args(&NOBODY[1..])
        .arg(&copy)
        .args(["record", "-a", "--duration", "1s", "-o", "/tmp/a b.bin"])
        .output()?;
    let both = [
        "setpriv",
        "--reuid=65534",
        "--regid=65534",
        "--clear-groups",
        "--inh-caps=-all,+bpf,+perfmon",
        "--ambient-caps=-all,+bpf,+perfmon",
    ];
    let allowed = behind(&both, &[]).output()?;
    std::fs::remove_file(&copy)?;
    // The proposed command line has the options of the recording.
    let again = " record -o '/tmp/a b.bin' --duration 1s --all\n";
    let said = text(&whole.stderr);
    ensure(said.contains(again), || said)?;
    for (out, reason, remedy) in &outputs {
        let said = text(&out.stderr);
        ensure(out.status.code() == Some(125), || {
            format!("{reason}: {out:?}")
        })?;
        ensure(
            said.starts_with("tr: cannot trace: ")
                && said.contains(reason)
                && said.contains(remedy),
            || format!("{reason:?} and {remedy:?} are expected: {said}"),
        )?;
        ensure(
            !said.contains("libbpf") && !said.contains("needs root"),
            || said.clone(),
        )?;
    }
    ensure(
        text(&verbose.stderr).contains("cannot create the maps of the BPF programs: "),
        || text(&verbose.stderr),
    )?;
    // With both capabilities tracing works, unless it is impossible on this machine.
    let traced = allowed.status.success() || why_not().is_some();
    ensure(traced, || text(&allowed.stderr))
}
