//! Runs a job with and without each kit (integration of a CI system) in every situation: its exit status and output
//! must be equal. The job belongs to an ordinary user without the right to use BPF.
//!
//! The test of each kit prints the exit statuses and compares them with the table of docs/ci.md, in which kits with
//! equal statuses share a line. The hook and the shell lines have no input for options. For them, the situation with a
//! wrong option runs without options. The role for Ansible does not run the job: the job runs between the role's two
//! plays.

use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::{chown, symlink, PermissionsExt};
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use libtest_mimic::Trial;
use serde_json::Value;
use tempfile::TempDir;

use crate::common::{copy_program, ensure, lacks, trial, why_not, write_program, Failure, TR};
use crate::documents::recipe;
use crate::gitlab::block;
use crate::runner::{lacks_node, no_other_user, program_in, root, said, Job};
use crate::{ansible, gitlab};

pub fn trials() -> Vec<Trial> {
    let reason = no_other_user;
    let table =
        |name: &str, kit: Kit, reason: Option<String>| trial(name, reason, move || Ok(cells(kit)?));
    let node = || lacks_node().or_else(reason);
    let ansible = || lacks("ansible-playbook").or_else(reason);
    vec![
        table("table_of_github", Kit::GitHub, node()),
        table("table_of_github_job", Kit::GitHubJob, node()),
        table("table_of_gitlab_bash", Kit::GitLab("bash"), reason()),
        table("table_of_gitlab_sh", Kit::GitLab("sh"), reason()),
        table("table_of_gitlab_job", Kit::GitLabJob, reason()),
        table("table_of_buildkite", Kit::Buildkite, reason()),
        table("table_of_the_hook", Kit::Hook, reason()),
        table("table_of_shell_lines", Kit::Lines, reason()),
        table("table_of_the_function", Kit::Function, reason()),
        table("table_of_ansible", Kit::Ansible, ansible()),
    ]
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Kit {
    GitHub,
    GitHubJob,
    GitLab(&'static str),
    GitLabJob,
    Buildkite,
    Hook,
    Lines,
    /// The functions of `ci/tr-run.sh`, called without a kit.
    Function,
    Ansible,
}

impl Kit {
    /// The name of the kit in the table of docs/ci.md.
    fn name(self) -> &'static str {
        match self {
            Kit::GitHub => "GitHub",
            Kit::GitHubJob => "GitHub's whole job",
            Kit::GitLab("bash") => "GitLab in bash",
            Kit::GitLab(_) => "GitLab in sh",
            Kit::GitLabJob => "GitLab's whole job",
            Kit::Buildkite => "Buildkite",
            Kit::Hook => "the hook",
            Kit::Lines => "the lines of shell",
            Kit::Function => "the function that all share",
            Kit::Ansible => "Zuul and Ansible",
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Situation {
    Usual,
    SudoInJob,
    SudoInput,
    NoProgram,
    WrongArchitecture,
    WrongLibc,
    NotExecutable,
    OtherProgram,
    Leftover,
    ReadOnly,
    FullDisk,
    BadOption,
    OptionThatRecordsNothing,
    Pipe,
    Gate,
}

use Situation::*;

/// The columns of the table in docs/ci.md, with the situations that each column covers. The situation with a gate is
/// tested, but has no column.
const COLUMNS: [&[Situation]; 8] = [
    &[Usual, SudoInput],
    &[SudoInJob],
    &[
        NoProgram,
        WrongArchitecture,
        WrongLibc,
        NotExecutable,
        OtherProgram,
    ],
    &[Leftover],
    &[ReadOnly, FullDisk],
    &[BadOption, OptionThatRecordsNothing],
    &[Pipe],
    &[Gate],
];

impl Situation {
    fn options(self) -> &'static str {
        match self {
            BadOption => "--redact=(",
            OptionThatRecordsNothing => "--help",
            _ => "",
        }
    }

    /// The script that the job runs. With sudo in the job, it uses each way in which a program can gain rights.
    fn job(self) -> &'static str {
        match self {
            SudoInJob => {
                "
sudo -n id -un
sudo -n su -c 'id -un'
if [ -e ./setgid ]; then ./setgid -gn; fi
if [ -e ./capable ]; then ./capable CapEff /proc/self/status; fi
status() { \"$@\" >/dev/null 2>&1 </dev/null && echo \"$1\" || echo \"$1 $?\"; }
status ping -c 1 -W 1 127.0.0.1
status su nobody -s /bin/sh -c :
status newuidmap $$ 0 65534 1
status fusermount -u /proc/none
status fusermount3 -u /proc/none
status mount -t tmpfs none /proc/none
exit 6"
            }
            Pipe => "yes | head -1",
            Gate => "echo built",
            _ => "printf '%s\\n' \"a 'b' *\"; cat; sh -c 'exit 7'",
        }
    }

    /// The job's lines for GitLab. `recorded` is the call of the kit's function before the job's command; empty for a
    /// job without the kit.
    fn lines(self, recorded: &str) -> String {
        let job = format!("{recorded}bash -e $JOB");
        match self {
            Pipe => format!("{recorded}yes | head -1"),
            // The gate cannot judge the recording, because the job's user has no right to use BPF. So the gate passes,
            // and a job with a gate must have the exit status of a job without one.
            Gate if recorded.is_empty() => format!("{job}\n{job}"),
            Gate => format!(
                "{job}\ncp tr-recording/trace.bin base.bin\n{job}\n{}",
                gitlab::gate_line()
            ),
            _ => job,
        }
    }
}

/// A directory, readable by everybody, with the programs that the situations give to a kit in place of tr.
struct Programs(TempDir);

impl Programs {
    fn new() -> Result<Programs, Failure> {
        let directory = tempfile::tempdir()?;
        fs::set_permissions(directory.path(), fs::Permissions::from_mode(0o755))?;
        let place = |name: &str| directory.path().join(name);
        if fs::hard_link(TR, place("tr-trace")).is_err() {
            copy_program(TR, place("tr-trace"))?;
        }
        let mut shell = fs::read(Path::new("/bin/sh").canonicalize()?)?;
        let interpreter = shell.windows(4).position(|window| window == b"/ld-");
        let write = |name: &str, bytes: &[u8], mode: u32| {
            fs::write(place(name), bytes)?;
            fs::set_permissions(place(name), fs::Permissions::from_mode(mode))
        };
        write("plain", &shell, 0o644)?;
        // Byte 18 is the machine type in the ELF header: a wrong one makes a program of another architecture.
        shell[18] ^= 0x5a;
        write_program(place("foreign"), &shell)?;
        shell[18] ^= 0x5a;
        if let Some(at) = interpreter {
            shell[at + 1] = b'x';
        }
        write_program(place("unlinked"), &shell)?;
        Ok(Programs(directory))
    }

    fn path(&self, situation: Situation) -> PathBuf {
        let name = match situation {
            NoProgram => "missing",
            WrongArchitecture => "foreign",
            WrongLibc => "unlinked",
            NotExecutable => "plain",
            OtherProgram => return "/bin/cat".into(),
            _ => "tr-trace",
        };
        self.0.path().join(name)
    }
}

/// The bash script that runs a job as its CI system does; `$JOB` is the file of the job's script. The kits are taken
/// from `checkout`.
pub fn harness(kit: Kit, with: bool, situation: Situation, checkout: &Path) -> String {
    let gitlab = |shell: &str, script: &str| {
        let run = format!(
            "{shell} -c 'if set -o | grep -q pipefail; then set -o pipefail; fi; set -e; : | (eval \"$SCRIPT\")'"
        );
        let before = if with {
            block("before_script")
        } else {
            String::new()
        };
        let after = if with {
            format!("SCRIPT=$AFTER {run} >&2 || exit 90; ")
        } else {
            String::new()
        };
        let script = quoted(&format!("{before}{script}\n"));
        format!("export SCRIPT={script}\n{run}; status=$?; {after}exit $status\n")
    };
    let main = quoted(&program_in(checkout, "main").display().to_string());
    let ci = checkout.join("ci").display().to_string();
    match (kit, with) {
        (Kit::GitHub, true) => format!("exec node {main}"),
        (Kit::GitHubJob, true) => format!("node {main} || exit 90; exec bash -e $JOB"),
        // Ansible's plays run before and after the job, so the job itself runs as without a kit.
        (Kit::Ansible, _) | (Kit::GitHub | Kit::GitHubJob | Kit::Hook | Kit::Function, false) => {
            "exec bash -e $JOB".into()
        }
        (Kit::GitLab(shell), true) => gitlab(shell, &situation.lines("tr_record ")),
        (Kit::GitLab(shell), false) => gitlab(shell, &situation.lines("")),
        (Kit::GitLabJob, _) => gitlab("bash", ". $JOB"),
        // Buildkite's agent sources a hook.
        (Kit::Buildkite, true) => format!(". '{ci}/buildkite/hooks/command'; exit $?"),
        (Kit::Buildkite, false) => "exec /bin/bash -e -c \"$BUILDKITE_COMMAND\"".into(),
        (Kit::Hook, true) => format!("BASH_ENV='{ci}/hook/tr-job.sh' exec bash -e $JOB"),
        (Kit::Lines, true) => format!("exec sh -e -c {}", quoted(&recipe())),
        (Kit::Lines, false) => "exec make test".into(),
        (Kit::Function, true) => format!(
            "exec sh -eu '{ci}/tr-run.sh' tr_run tr-recording/trace.bin \"$TR_PATH\" \"$TR_OPTIONS\" bash -e $JOB"
        ),
    }
}

fn quoted(text: &str) -> String {
    format!("'{}'", text.replace('\'', r"'\''"))
}

/// The environment variables that all kits read. The variables of GitHub are already set by the job.
pub fn variables(job: &Job, script: &str, program: &str, options: &str) -> Vec<(String, String)> {
    let place = |name: &str| job.place(name).display().to_string();
    let path = std::env::var("PATH").unwrap_or_default();
    let mut all: Vec<(String, String)> = gitlab::variables().into_iter().collect();
    for (name, value) in [
        ("PATH", &format!("{}:{path}", place("bin"))),
        ("JOB", &place("job.sh")),
        ("TMPDIR", &place("tmp")),
        ("AFTER", &block("after_script")),
        ("CI_PROJECT_DIR", &place("workspace")),
        ("CI_JOB_URL", &"https://gitlab.example/o/p/-/jobs/9".into()),
        ("TR_RELEASES", &format!("{}/releases", job.forge.url)),
        ("TR_PATH", &program.to_owned()),
        ("TR_OPTIONS", &options.to_owned()),
        ("TR_PROGRAM", &program.to_owned()),
        ("TR_RECORDINGS", &place("workspace/recordings")),
        ("BUILDKITE_COMMAND", &script.to_owned()),
        ("BUILDKITE_JOB_ID", &"t".into()),
        ("BUILDKITE_PLUGIN_TR_PATH", &program.to_owned()),
        ("BUILDKITE_PLUGIN_TR_OPTIONS_0", &options.to_owned()),
    ] {
        all.push((name.to_owned(), value.clone()));
    }
    all
}

/// Runs a job as the user `nobody`.
fn run(kit: Kit, with: bool, situation: Situation, programs: &Programs) -> Result<Output, Failure> {
    let program = programs.path(situation).display().to_string();
    let (script, options) = (situation.job(), situation.options());
    let sudo = (situation == SudoInput).to_string();
    let job = Job::new()
        .input("path", &program)
        .input("options", options)
        .input("sudo", &sudo);
    let job = if kit == Kit::GitHub {
        job.input("run", script)
    } else {
        job
    };
    for name in ["bin", "tmp"] {
        fs::create_dir(job.place(name))?;
    }
    // The kits are copied, because the checkout may lie in a directory that is closed to other users, such as root's
    // home.
    let checkout = job.place("");
    let kits = ["ci", "Cargo.toml"].map(|name| root().join(name));
    let copied = Command::new("cp")
        .arg("-R")
        .args(kits)
        .arg(&checkout)
        .status()?;
    ensure(copied.success(), || "cp of the kits".into())?;
    job.executable("job.sh", script);
    job.executable("bin/buildkite-agent", "#!/bin/sh\nexit 1\n");
    job.executable("bin/make", "#!/bin/sh\nexec bash -e $JOB\n");
    if kit == Kit::Lines {
        symlink(&program, job.place("bin/tr-trace"))?;
    }
    job.belongs_to_nobody()?;
    let workspace = job.place("workspace");
    privileged_programs(&workspace)?;
    match situation {
        Leftover => {
            fs::write(workspace.join("trace.bin"), "old")?;
            for name in ["tr-recording", "recordings"] {
                fs::create_dir(workspace.join(name))?;
                fs::write(workspace.join(name).join("trace.bin"), "old")?;
            }
        }
        ReadOnly => chown(&workspace, Some(0), None)?,
        _ => {}
    }
    let place = match kit {
        Kit::GitHub | Kit::GitHubJob => job.place("work/_temp"),
        _ => workspace.clone(),
    };
    let full = (situation == FullDisk).then(|| place.display().to_string());
    let mut command = job.by_nobody(
        full.as_deref(),
        &["bash", "-c", &harness(kit, with, situation, &checkout)],
    )?;
    command.stdin(Stdio::null());
    command.envs(variables(&job, script, &program, options));
    command.env("TR_WHOLE_JOB", (kit == Kit::GitLabJob).to_string());
    command
        .env("TR_SUDO", &sudo)
        .env("BUILDKITE_PLUGIN_TR_SUDO", &sudo);
    let out = command.output()?;
    if with && matches!(situation, Usual | SudoInJob | SudoInput | Pipe) {
        let trace = match kit {
            Kit::GitHub => job
                .values("GITHUB_OUTPUT")
                .remove("trace")
                .map(PathBuf::from),
            Kit::GitLab(_) | Kit::Buildkite | Kit::Function => {
                Some(workspace.join("tr-recording/trace.bin"))
            }
            Kit::Lines => Some(workspace.join("trace.bin")),
            Kit::GitLabJob if situation == SudoInput => {
                Some(workspace.join("tr-recording/trace.bin"))
            }
            // Kits that record from outside of the job need the right to use BPF.
            Kit::GitHubJob | Kit::GitLabJob | Kit::Hook | Kit::Ansible => None,
        };
        if let Some(trace) = trace {
            let info = Command::new(TR)
                .args(["info", "--format=json"])
                .arg(trace)
                .output()?;
            let info: Value = serde_json::from_slice(&info.stdout)
                .map_err(|error| format!("{kit:?}, {situation:?}: {error}: {}", said(&out)))?;
            let has_input = !matches!(kit, Kit::Lines | Kit::Function);
            let by_sudo = situation == SudoInput && has_input && why_not().is_none();
            ensure(!by_sudo || info["method"] == "sudo", || {
                format!("{kit:?}: {info}")
            })?;
        }
    }
    Ok(out)
}

/// Makes a set-group-ID program and one with capabilities in the workspace.
fn privileged_programs(workspace: &Path) -> Result<(), Failure> {
    let script = "PATH=$PATH:/sbin:/usr/sbin; cd \"$0\" && cp \"$(command -v id)\" setgid && chgrp 1 setgid &&
        chmod 2755 setgid && cp \"$(command -v grep)\" capable && { setcap cap_net_raw+ep capable || rm capable; }";
    let mut sh = Command::new("sh");
    let out = sh.args(["-c", script]).arg(workspace).output()?;
    ensure(out.status.success(), || said(&out))
}

/// The exit status and the output of a job, without the lines that a kit adds.
pub fn outcome(out: &Output) -> (Option<i32>, String) {
    let text = String::from_utf8_lossy(&out.stdout);
    let ours = |line: &&str| {
        !(line.starts_with("::warning title=tr::")
            || line.starts_with("tr: ")
            || line.starts_with("tr-trace "))
    };
    let lines: Vec<&str> = text.lines().filter(ours).collect();
    (out.status.code(), lines.join("\n"))
}

/// The situations that are not tested with Ansible. Each test would cost two plays, and these situations show nothing
/// new or do not concern the role.
const NO_PLAYS: [Situation; 7] = [
    SudoInput,
    WrongLibc,
    NotExecutable,
    OtherProgram,
    FullDisk,
    OptionThatRecordsNothing,
    Gate,
];

/// Runs a job as the user `nobody` between the role's two plays on the job's machine.
fn between_plays(situation: Situation, programs: &Programs) -> Result<Output, Failure> {
    let directory = tempfile::tempdir()?;
    let node = directory.path().join("node");
    match situation {
        Leftover => {
            fs::create_dir(&node)?;
            chown(&node, Some(65534), None)?;
        }
        ReadOnly => symlink("/proc/none", &node)?,
        _ => {}
    }
    let program = programs.path(situation).display().to_string();
    let options = format!("        tr_record_options: ['{}']", situation.options());
    let options = if situation == BadOption { &options } else { "" };
    let play = |action: &str| {
        let out = ansible::play(&directory, action, &program, options);
        let is_silent = !said(&out).contains("no recording of node1");
        let is_recorded = matches!(situation, Usual | SudoInJob | Pipe) && why_not().is_none();
        ensure(out.status.success() && is_silent == is_recorded, || {
            format!("{action}: {}", said(&out))
        })
    };
    play("start")?;
    let out = run(Kit::Ansible, true, situation, programs)?;
    play("stop")?;
    Ok(out)
}

/// Runs the job with and without the kit in every situation, and compares both.
fn cells(kit: Kit) -> Result<(), Failure> {
    let programs = Programs::new()?;
    let (mut row, mut wrong) = (String::from(" |"), Vec::new());
    for column in COLUMNS {
        let mut statuses = BTreeSet::new();
        for situation in column {
            let needs_sudo = matches!(situation, SudoInJob | SudoInput);
            if needs_sudo && lacks("sudo").is_some() {
                continue;
            }
            if kit == Kit::Ansible && NO_PLAYS.contains(situation) {
                continue;
            }
            let plain = outcome(&run(kit, false, *situation, &programs)?);
            let kept = if kit == Kit::Ansible {
                between_plays(*situation, &programs)
            } else {
                run(kit, true, *situation, &programs)
            };
            let kept = kept.map(|out| (outcome(&out), said(&out)));
            match kept {
                Ok((kept, _)) if kept == plain => {}
                Ok((kept, said)) => {
                    wrong.push(format!(
                        "{situation:?}: {kept:?} instead of {plain:?}: {said}"
                    ));
                }
                Err(error) => wrong.push(format!("{situation:?}: {error}")),
            }
            statuses.extend(plain.0);
        }
        let statuses: Vec<String> = statuses.iter().map(i32::to_string).collect();
        if column != [Gate] {
            row += &format!(" {} |", statuses.join(", "));
        }
    }
    println!("| {}{row}", kit.name());
    ensure(wrong.is_empty(), || wrong.join("\n"))?;
    let page = fs::read_to_string(root().join("docs/ci.md"))?;
    // Without sudo on this machine a column is empty, so the row cannot be compared.
    let is_there = lacks("sudo").is_some() || page.lines().any(|line| is_row(line, kit, &row));
    ensure(is_there, || {
        format!("docs/ci.md lacks a line of {} with{row}", kit.name())
    })
}

/// Whether a line of the table names this kit and ends with these exit statuses. Several kits with equal statuses may
/// share a line.
fn is_row(line: &str, kit: Kit, row: &str) -> bool {
    let kits = line
        .strip_prefix("| ")
        .and_then(|line| line.strip_suffix(row));
    kits.is_some_and(|kits| kits.split(", ").any(|name| name == kit.name()))
}
