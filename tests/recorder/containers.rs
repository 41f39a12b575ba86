//! Records by ptrace inside of containers: in bubblewrap, and in runc with Docker's default capabilities and a filter
//! that refuses the same system calls as Docker's.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use libtest_mimic::Failed;
use serde_json::{json, Value};

use crate::support::{analyze, copy_program, ensure, scratch, text, Test, TR};

pub const TESTS: &[Test] = &[
    ("ptrace_records_in_bubblewrap", bubblewrap),
    ("ptrace_records_in_a_container_of_runc", container),
];

/// The command line of a recorder in the container, where its directory is `/box`.
const RECORD: [&str; 10] = [
    "/box/tr",
    "record",
    "--method",
    "ptrace",
    "-o",
    "/box/trace.bin",
    "--",
    "sh",
    "-c",
    "echo $$; (exit 2); exit 3",
];

/// Makes the directory that the container sees as `/box`, with a copy of tr.
fn shared(name: &str) -> Result<PathBuf, Failed> {
    let dir = scratch(name);
    let _ = std::fs::remove_dir_all(&dir);
    std::fs::create_dir_all(&dir)?;
    copy_program(TR, dir.join("tr"))?;
    Ok(dir)
}

/// Checks COMMAND's exit status, and that both processes are recorded with their exit statuses.
fn is_recorded(out: &Output, dir: &Path) -> Result<(), Failed> {
    ensure(out.status.code() == Some(3), || format!("{out:?}"))?;
    let analysis = analyze(&dir.join("trace.bin"))?;
    let codes: Vec<&Value> = crate::support::list(&analysis, "processes")
        .iter()
        .map(|process| &process["exit"]["code"])
        .collect();
    ensure(codes == [&json!(3), &json!(2)], || analysis.to_string())?;
    let pid = text(&out.stdout).trim().to_owned();
    let recorded = analysis["processes"][0]["pid"].as_u64();
    ensure(pid.parse().ok() == recorded, || {
        format!("{pid}: {analysis}")
    })
}

/// Runs a command in a sandbox of bubblewrap, in which this directory is `/tmp`.
fn in_bubblewrap(dir: &Path, command: &[&str]) -> std::io::Result<Output> {
    let options = "--unshare-all --cap-drop ALL --ro-bind / / --dev /dev --proc /proc --tmpfs /tmp";
    let mut bwrap = Command::new("bwrap");
    bwrap.args(options.split(' ')).arg("--bind").arg(dir);
    bwrap.arg("/tmp").args(command).output()
}

/// The reason why bubblewrap cannot make a sandbox here, if any.
pub fn no_bubblewrap() -> Option<String> {
    let lacks = crate::common::lacks("bwrap");
    lacks.or_else(|| {
        let out = in_bubblewrap(Path::new("/tmp"), &["true"]).ok()?;
        let why = text(&out.stderr);
        let why = why.lines().next().unwrap_or("bwrap fails").to_owned();
        (!out.status.success()).then_some(why)
    })
}

fn bubblewrap() -> Result<(), Failed> {
    let dir = shared("bubblewrap")?;
    let command = RECORD.map(|part| part.replace("/box/", "/tmp/"));
    let command: Vec<&str> = command.iter().map(String::as_str).collect();
    is_recorded(&in_bubblewrap(&dir, &command)?, &dir)
}

/// The capabilities that Docker gives to a container by default.
const CAPABILITIES: &str = "CHOWN DAC_OVERRIDE FSETID FOWNER MKNOD NET_RAW SETGID SETUID SETFCAP \
    SETPCAP NET_BIND_SERVICE SYS_CHROOT KILL AUDIT_WRITE";
/// The system calls that Docker's default filter refuses to a container with these capabilities.
const REFUSED: &str = "bpf perf_event_open mount umount2 unshare setns keyctl add_key request_key \
    userfaultfd kexec_load init_module finit_module delete_module open_by_handle_at quotactl \
    reboot swapon swapoff syslog acct clock_settime fanotify_init";

fn container() -> Result<(), Failed> {
    let (dir, bundle) = (shared("runc")?, scratch("runc-bundle"));
    let _ = std::fs::remove_dir_all(&bundle);
    let root = bundle.join("rootfs");
    std::fs::create_dir_all(&root)?;
    for (link, target) in [
        ("bin", "usr/bin"),
        ("lib", "usr/lib"),
        ("lib64", "usr/lib64"),
    ] {
        std::os::unix::fs::symlink(target, root.join(link))?;
    }
    let spec = Command::new("runc")
        .arg("spec")
        .current_dir(&bundle)
        .status()?;
    ensure(spec.success(), || "runc spec".into())?;
    let path = bundle.join("config.json");
    let mut config: Value = serde_json::from_slice(&std::fs::read(&path)?)?;
    let capabilities: Vec<String> = CAPABILITIES
        .split_whitespace()
        .map(|name| format!("CAP_{name}"))
        .collect();
    let refused: Vec<&str> = REFUSED.split_whitespace().collect();
    config["process"]["terminal"] = false.into();
    config["process"]["noNewPrivileges"] = false.into();
    config["process"]["capabilities"] = json!({
        "bounding": capabilities, "effective": capabilities, "permitted": capabilities,
    });
    config["root"] = json!({ "path": "rootfs", "readonly": false });
    config["linux"]["resources"] = json!({});
    config["linux"]["seccomp"] = json!({
        "defaultAction": "SCMP_ACT_ALLOW",
        "syscalls": [{ "names": refused, "action": "SCMP_ACT_ERRNO", "errnoRet": 1 }],
    });
    let mounts = config["mounts"].as_array_mut().ok_or("no mounts")?;
    mounts.retain(|mount| mount["type"] != "cgroup");
    let bind = |from: &str, to: &str, mode: &str| json!({ "destination": to, "source": from, "type": "bind", "options": ["rbind", mode] });
    let shared = dir.to_string_lossy().into_owned();
    mounts.extend([
        bind("/usr", "/usr", "ro"),
        bind("/etc", "/etc", "ro"),
        bind(&shared, "/box", "rw"),
    ]);
    let mut run = |command: &[&str]| -> Result<Output, Failed> {
        config["process"]["args"] = json!(command);
        std::fs::write(&path, config.to_string())?;
        let name = format!("tr-container-{}", std::process::id());
        let mut runc = Command::new("runc");
        Ok(runc.args(["run", &name]).current_dir(&bundle).output()?)
    };
    if !run(&["true"])?.status.success() {
        return Ok(()); // runc needs cgroups and mounts of its own
    }
    is_recorded(&run(&RECORD)?, &dir)?;
    let auto = run(&[
        "/box/tr",
        "record",
        "-o",
        "/box/x.bin",
        "sh",
        "-c",
        "exit 3",
    ])?;
    let said = text(&auto.stderr);
    ensure(
        auto.status.code() == Some(3) && said.contains("docker run --cap-add BPF"),
        || said.clone(),
    )
}
