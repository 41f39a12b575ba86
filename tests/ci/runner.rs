//! Imitates GitHub's runner: the environment that an action gets, and the files that the runner reads afterwards.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use serde_json::Value;
use tempfile::TempDir;

pub use crate::common::said;
use crate::common::{analyze, ensure, lacks, list, no_mount_namespace, write_program, Failure, TR};
use crate::forge::Forge;

/// The payload (second part) of the token is `{"scp":"Actions.Results:run-id:job-id"}` in base64.
const RUNTIME_TOKEN: &str = "head.eyJzY3AiOiJBY3Rpb25zLlJlc3VsdHM6cnVuLWlkOmpvYi1pZCJ9.signature";
/// The variables with the paths of the files through which an action returns values to the runner.
const FILES: [&str; 5] = [
    "GITHUB_OUTPUT",
    "GITHUB_STATE",
    "GITHUB_STEP_SUMMARY",
    "GITHUB_ENV",
    "GITHUB_PATH",
];

pub fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

pub struct Job {
    pub forge: Forge,
    directory: TempDir,
    environment: BTreeMap<String, String>,
}

/// The inputs in action.yml with their defaults; expressions are replaced by what the runner makes of them.
pub fn defaults() -> BTreeMap<String, String> {
    let text = fs::read_to_string(root().join("action.yml")).unwrap();
    let inputs = text.split("\ninputs:\n").nth(1).unwrap();
    let inputs = inputs.split("\noutputs:\n").next().unwrap();
    let (mut all, mut name) = (BTreeMap::new(), String::new());
    for line in inputs.lines() {
        if let Some(value) = line.strip_prefix("    default: ") {
            let value = value.trim_matches('\'');
            let value = value.replace("${{ github.job }}", "test");
            let value = value.replace("${{ strategy.job-index }}", "0");
            let value = value.replace("${{ github.token }}", "the-token");
            assert!(!value.contains("${{"), "{value}: not evaluated");
            all.insert(name.clone(), value);
        } else if !line.starts_with("   ") {
            name = line.trim().trim_end_matches(':').to_owned();
            all.insert(name.clone(), String::new());
        }
    }
    assert!(all.len() > 15, "{all:?}");
    all
}

/// The path of the action's JavaScript file for the step (`main`) or for the end of the job (`post`).
pub fn program(of: &str) -> PathBuf {
    program_in(root(), of)
}

/// The path of the action's JavaScript file in a copy of the checkout.
pub fn program_in(checkout: &Path, of: &str) -> PathBuf {
    let text = fs::read_to_string(root().join("action.yml")).unwrap();
    let start = format!("  {of}: ");
    let file = text.lines().find_map(|line| line.strip_prefix(&start));
    checkout.join(file.unwrap())
}

impl Job {
    pub fn new() -> Job {
        let directory = tempfile::tempdir().unwrap();
        let forge = Forge::start();
        let place = |name: &str| directory.path().join(name).display().to_string();
        for name in ["work/_temp", "workspace"] {
            fs::create_dir_all(directory.path().join(name)).unwrap();
        }
        let mut environment = BTreeMap::new();
        let mut set = |name: &str, value: String| environment.insert(name.to_owned(), value);
        for file in FILES {
            fs::write(directory.path().join(file), "").unwrap();
            set(file, place(file));
        }
        set("PATH", std::env::var("PATH").unwrap());
        set("HOME", place(""));
        set("RUNNER_TEMP", place("work/_temp"));
        set("GITHUB_EVENT_PATH", place("event.json"));
        set("GITHUB_API_URL", format!("{}/api", forge.url));
        set("GITHUB_SERVER_URL", forge.url.clone());
        set("GITHUB_REPOSITORY", "owner/project".into());
        set("GITHUB_ACTION_REPOSITORY", "maker/tr".into());
        set("GITHUB_RUN_ID", "77".into());
        set("GITHUB_ACTIONS", "true".into());
        set("ACTIONS_RESULTS_URL", format!("{}/", forge.url));
        set("ACTIONS_RUNTIME_TOKEN", RUNTIME_TOKEN.into());
        for (name, value) in defaults() {
            set(&format!("INPUT_{}", name.to_uppercase()), value);
        }
        let mut job = Job {
            forge,
            directory,
            environment,
        };
        job.event(&serde_json::json!({}));
        job.input("path", TR)
    }

    pub fn input(mut self, name: &str, value: &str) -> Job {
        let name = format!("INPUT_{}", name.to_uppercase());
        let old = self.environment.insert(name.clone(), value.into());
        assert!(old.is_some(), "action.yml has no {name}");
        self
    }

    pub fn variable(mut self, name: &str, value: &str) -> Job {
        self.environment.insert(name.into(), value.into());
        self
    }

    pub fn event(&mut self, event: &Value) {
        fs::write(self.place("event.json"), event.to_string()).unwrap();
    }

    pub fn place(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    pub fn read(&self, name: &str) -> String {
        fs::read_to_string(self.place(name)).unwrap()
    }

    /// A command that runs with the environment variables that GitHub's runner sets for a step with an action.
    pub fn command(&self, program: &str) -> Command {
        let mut command = Command::new(program);
        let environment = self.environment.iter();
        command.env_clear().envs(environment);
        command.current_dir(self.place("workspace"));
        command
    }

    /// Makes the user `nobody` the owner of the job's files.
    pub fn belongs_to_nobody(&self) -> Result<(), Failure> {
        let mut chown = Command::new("chown");
        let done = chown.args(["-R", "nobody"]).arg(self.place("")).status()?;
        ensure(done.success(), || "chown failed".into())
    }

    /// A command of the user `nobody`, who may use sudo without a password. With `full`, the directory of this name is
    /// on a full disk.
    pub fn by_nobody(&self, full: Option<&str>, command: &[&str]) -> Result<Command, Failure> {
        let rules = self.place("sudoers");
        fs::write(&rules, "nobody ALL=(root) NOPASSWD: ALL\n")?;
        fs::set_permissions(&rules, fs::Permissions::from_mode(0o440))?;
        let mut unshare = self.command("unshare");
        unshare.args(["-m", "bash", "-ec"]).arg(
            "[ ! -e /etc/sudoers ] || mount --bind \"$0\" /etc/sudoers
            if [ -n \"$1\" ]; then
                mount -t tmpfs -o size=16k,mode=777 none \"$1\"
                head -c 1M /dev/zero 2>&- >\"$1/fill\" || cd \"$PWD\"
            fi
            shift
            exec setpriv --reuid=65534 --regid=65534 --clear-groups --inh-caps=-all \"$@\"",
        );
        unshare
            .arg(rules)
            .arg(full.unwrap_or_default())
            .args(command);
        Ok(unshare)
    }

    /// Runs the step of the action.
    pub fn step(&self) -> Output {
        for file in FILES {
            fs::write(self.place(file), "").unwrap();
        }
        let mut node = self.command("node");
        node.arg(program("main")).output().unwrap()
    }

    /// The values that the action wrote to a file, by name.
    pub fn values(&self, file: &str) -> BTreeMap<String, String> {
        let text = self.read(file);
        let (mut lines, mut all) = (text.lines(), BTreeMap::new());
        while let Some((name, end)) = lines.next().and_then(|line| line.split_once("<<")) {
            let value: Vec<&str> = lines.by_ref().take_while(|line| *line != end).collect();
            all.insert(name.to_owned(), value.join("\n"));
        }
        all
    }

    /// Writes an executable file into the job's directory.
    pub fn executable(&self, name: &str, text: &str) -> PathBuf {
        let file = self.place(name);
        write_program(&file, text).unwrap();
        file
    }
}

/// Checks that the recording is complete and has exactly one `sleep` with this argument.
pub fn slept_once(trace: &Path, seconds: &str) -> Result<(), Failure> {
    let verified = Command::new(TR).arg("verify").arg(trace).output()?;
    ensure(verified.status.success(), || said(&verified))?;
    let analysis = analyze(trace)?;
    let slept = list(&analysis, "processes").iter();
    let slept = slept.filter(|process| process["argv"] == serde_json::json!(["sleep", seconds]));
    let count = slept.count();
    ensure(count == 1, || format!("{count} times sleep {seconds}"))
}

/// The reason to skip a test whose job runs as the user `nobody`, if it cannot run here.
pub fn no_other_user() -> Option<String> {
    if !nix::unistd::Uid::effective().is_root() {
        return Some("only root can become nobody".into());
    }
    lacks("setpriv").or_else(no_mount_namespace)
}

/// The reason to skip a test of the action, if Node.js is missing or too old.
pub fn lacks_node() -> Option<String> {
    let out = Command::new("node").arg("--version").output();
    let out = out.map(|out| String::from_utf8_lossy(&out.stdout).into_owned());
    let major = |version: &str| {
        version
            .trim()
            .strip_prefix('v')?
            .split('.')
            .next()?
            .parse()
            .ok()
    };
    match out.ok().and_then(|version| major(&version)) {
        Some(20u32..) => None,
        _ => Some("Node 20 or later is not installed".into()),
    }
}
