//! Records containers that a daemon starts for recorded clients. The daemon, the container runtime and the client are
//! `fixtures/programs/daemon.py` under the names of real programs. Results are compared with the runtime's own account
//! of its container.

use std::io::{BufRead, BufReader};
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, Command, Stdio};

use libtest_mimic::Failed;
use serde_json::Value;

use crate::common::{document, lacks, long, python};
use crate::support::{
    analyze, copy_program, dump, ensure, int, list, recording, scratch, text, tr, Test,
};

pub const TESTS: &[Test] = &[
    ("a_container_is_its_clients", one),
    ("two_clients_have_their_own_containers", two),
    ("a_container_is_known_by_12_digits_of_its_id", brief),
    ("a_sleep_in_a_container_is_advised", asleep),
    ("a_sleep_in_a_polled_container_is_advised", polled),
    (
        "what_a_container_program_does_itself_is_not_advised",
        silent,
    ),
    ("a_strangers_container_is_not_recorded", stranger),
    ("the_only_clients_container_is_inferred", inferred),
    ("containers_says_which_are_recorded", chosen),
    ("dockers_containers_are_recorded", docker),
];

/// A running daemon, which is killed when this value is dropped.
struct Daemon {
    process: Child,
    /// The daemon's output, which has a line for each connection.
    lines: BufReader<ChildStdout>,
    dir: PathBuf,
    /// The directory of the daemon's socket. Below the target directory its path could exceed the limit of 107 bytes.
    sockets: tempfile::TempDir,
    script: String,
}

impl Drop for Daemon {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
        let _ = std::fs::remove_dir_all(&self.dir);
    }
}

/// The runtime's account of its container: the pid of its first process, and the CPU time and wall time in ns.
struct Told {
    pid: u64,
    cpu: u64,
    wall: u64,
}

impl Daemon {
    fn start(name: &str, how: &[&str]) -> Result<Daemon, Failed> {
        let dir = scratch(name);
        let _ = std::fs::remove_dir_all(&dir);
        std::fs::create_dir_all(&dir)?;
        // The real interpreter is linked, because a wrapper of Python would start another program under another name.
        let asked = Command::new(python()?)
            .args([
                "-c",
                "import os, sys; print(os.path.realpath(sys.executable))",
            ])
            .output()?;
        let python = text(&asked.stdout).trim().to_owned();
        for program in ["podman", "conmon", "docker", "client"] {
            symlink(&python, dir.join(program))?;
        }
        let root = Path::new(env!("CARGO_MANIFEST_DIR"));
        let script = root.join("fixtures/programs/daemon.py");
        let script = script.display().to_string();
        let sockets = tempfile::tempdir()?;
        let mut process = Command::new(dir.join("podman"))
            .args([&script, "serve"])
            .args([sockets.path().join("socket"), dir.join("conmon")])
            .args(how)
            .stdout(Stdio::piped())
            .spawn()?;
        let out = process.stdout.take().ok_or("no output")?;
        let mut daemon = Daemon {
            process,
            lines: BufReader::new(out),
            dir,
            sockets,
            script,
        };
        let mut first_line = String::new();
        daemon.lines.read_line(&mut first_line)?;
        ensure(first_line == "ready\n", || {
            format!("the daemon prints {first_line:?}")
        })?;
        Ok(daemon)
    }

    /// The command line of the client `program`, which requests a container with this name from the daemon.
    fn client(&self, program: &str, name: &str, seconds: &str) -> Vec<String> {
        let path = |file: &str| self.dir.join(file).display().to_string();
        let socket = self.sockets.path().join("socket").display().to_string();
        let args = [&path(program), &self.script, "ask", &socket, name, seconds];
        args.map(str::to_owned).to_vec()
    }

    fn trace(&self, name: &str) -> PathBuf {
        self.dir.join(name)
    }

    /// Starts a recording of a client.
    fn record(&self, name: &str, options: &[&str]) -> Result<Child, Failed> {
        let command = self.client("client", name, "0.2");
        let command: Vec<&str> = command.iter().map(String::as_str).collect();
        let mut tr = recording(&self.trace(name), options, &command);
        tr.stdout(Stdio::piped()).stderr(Stdio::piped());
        Ok(tr.spawn()?)
    }
}

fn told(client: Child) -> Result<Told, Failed> {
    let out = client.wait_with_output()?;
    let said = text(&out.stdout);
    let numbers: Vec<u64> = said.split_whitespace().flat_map(str::parse).collect();
    let [pid, cpu, wall] = numbers[..] else {
        return Err(format!("{out:?}").into());
    };
    Ok(Told { pid, cpu, wall })
}

/// The names of containers in a trace's events, each with the evidence by which the container was assigned to the
/// client.
fn events(trace: &Path) -> Result<Vec<(String, String)>, Failed> {
    let events = dump(trace)?;
    let containers = events.iter().filter(|event| event["kind"] == "container");
    let field = |event: &Value, name: &str| event[name].as_str().unwrap_or_default().to_owned();
    Ok(containers
        .map(|container| (field(container, "name"), field(container, "evidence")))
        .collect())
}

/// The recorded containers, as `--report tree` names them.
fn containers(trace: &Path) -> Result<Vec<String>, Failed> {
    let tree = text(&tr(&["analyze", "--report", "tree"], trace)?);
    let names = tree
        .lines()
        .filter_map(|line| line.find("container ").and_then(|at| line.get(at..)));
    // The line `container runtimes` is a warning about processes that are not recorded.
    let names = names.filter(|name| !name.starts_with("container runtimes"));
    Ok(names.map(|name| name.trim().to_owned()).collect())
}

/// A query for the containers in the table of processes of a dataset.
const ASK: &str = "import duckdb, sys
rows = duckdb.sql(f\"select distinct container from '{sys.argv[1]}/processes/**/*.parquet' where container is not null\")
print(*[row[0] for row in rows.fetchall()], sep=',')";

fn one() -> Result<(), Failed> {
    let daemon = Daemon::start("daemon-one", &[])?;
    let told = told(daemon.record("web", &[])?)?;
    let trace = daemon.trace("web");
    let evidence: Vec<String> = events(&trace)?.into_iter().map(|(_, it)| it).collect();
    ensure(evidence == ["told", "descendant"], || {
        format!("{evidence:?}")
    })?;
    let analysis = analyze(&trace)?;
    let processes = list(&analysis, "processes");
    let of = |pid: u64| processes.iter().find(|process| int(process, "pid") == pid);
    let shell = of(told.pid).ok_or_else(|| format!("{analysis}"))?;
    // The CPU time of the container's shell and of the sleep that it started.
    let below: u64 = processes
        .iter()
        .filter(|process| int(process, "pid") == told.pid || int(process, "ppid") == told.pid)
        .map(|process| int(process, "on_cpu_ns"))
        .sum();
    ensure(
        below.abs_diff(told.cpu) <= told.cpu / 100 + 5_000_000,
        || format!("{below} {} {shell}", told.cpu),
    )?;
    let found = containers(&trace)?;
    ensure(found == ["container web"], || format!("{found:?}"))?;
    let groups = document(&trace, &["--by", "container"])?;
    let rows = list(&groups, "rows").iter();
    let mut names: Vec<&str> = rows.filter_map(|row| row["name"].as_str()).collect();
    names.sort_unstable();
    ensure(names == ["container web", "no container"], || {
        format!("{groups}")
    })?;
    for (pattern, there) in [("^web$", true), ("alpine", false)] {
        let chosen = document(&trace, &["--container", pattern])?;
        let rows = list(&chosen, "processes");
        let has = rows.iter().any(|row| int(row, "pid") == told.pid);
        ensure(has == there, || format!("{chosen}"))?;
    }
    let spans = text(&tr(
        &["export", "--format", "otlp-json", "-o", "-"],
        &trace,
    )?);
    ensure(spans.contains("container.name"), || spans.clone())?;
    let dataset = daemon.dir.join("dataset");
    let to = dataset.display().to_string();
    tr(&["export", "--format", "parquet", "-o", &to], &trace)?;
    let asked = Command::new(python()?).args(["-c", ASK, &to]).output()?;
    ensure(text(&asked.stdout).trim() == "container web", || {
        format!("{asked:?}")
    })?;
    // The daemon waited for the container's first process, so the critical path must go through that process.
    let path = document(&trace, &["--report", "critical-path"])?;
    let inside = |value: &&Value| int(value, "pid") == told.pid || int(value, "ppid") == told.pid;
    let pids: Vec<u64> = processes
        .iter()
        .filter(inside)
        .map(|process| int(process, "pid"))
        .collect();
    let legs = list(&path["critical_path"]["path"], "steps").iter();
    let legs = legs.filter(|leg| pids.contains(&int(leg, "pid")));
    let on_path: u64 = legs
        .map(|leg| int(leg, "to_ns") - int(leg, "from_ns"))
        .sum();
    // The runtime's own waits for a CPU are on the path, but not in the container.
    let queued = of(int(shell, "ppid")).map_or(0, |value| int(value, "run_queue_ns"));
    ensure(
        on_path + queued >= told.wall / 100 * 95 && on_path <= told.wall,
        || format!("{on_path} {queued} {} {path}", told.wall),
    )
}

fn two() -> Result<(), Failed> {
    let daemon = Daemon::start("daemon-two", &[])?;
    let clients = [daemon.record("one", &[])?, daemon.record("two", &[])?];
    for (client, name) in clients.into_iter().zip(["one", "two"]) {
        told(client)?;
        let found = containers(&daemon.trace(name))?;
        ensure(found == [format!("container {name}")], || {
            format!("{name}: {found:?}")
        })?;
    }
    Ok(())
}

/// The daemon wakes its client again and again, but the client waits for the container nevertheless.
fn asleep() -> Result<(), Failed> {
    let daemon = Daemon::start("daemon-asleep", &["ticks"])?;
    let command = daemon.client("docker", "naps", "1");
    is_advised(&daemon.trace("asleep"), &command)
}

/// podman and buildah have no daemon, but ask the runtime again and again. The container's sleep must be advised
/// nevertheless.
fn polled() -> Result<(), Failed> {
    let daemon = Daemon::start("daemon-polled", &[])?;
    let path = |file: &str| daemon.dir.join(file).display().to_string();
    let (podman, conmon) = (path("podman"), path("conmon"));
    let command = [&podman, &daemon.script, "watch", &conmon, "naps", "1"];
    let command = command.map(str::to_owned);
    // Next to other load one of 16 recordings had no such advice, so there is a second try.
    let trace = daemon.trace("polled");
    is_advised(&trace, &command).or_else(|_| is_advised(&trace, &command))
}

/// Records a client and checks that the first advice is to save most of the second for which the container sleeps.
fn is_advised(trace: &Path, command: &[String]) -> Result<(), Failed> {
    let command: Vec<&str> = command.iter().map(String::as_str).collect();
    let out = recording(trace, &[], &command).output()?;
    ensure(out.status.success(), || format!("{out:?}"))?;
    let report = document(trace, &["--report", "advice"])?;
    let first = &report["advice"]["advice"][0];
    let saves = int(first, "gain_at_most_ns");
    ensure(first["kind"] == "sleep" && saves >= 850_000_000, || {
        report.to_string()
    })
}

/// There is no advice about the processes and sleeps of docker itself, because users cannot change them. If a program
/// of another name does the same work, there is advice.
fn silent() -> Result<(), Failed> {
    const WORK: &str = "import subprocess, sys, time
for _ in range(4): subprocess.run([sys.argv[1], '-c', 'sum(range(3000000))'])
time.sleep(0.5)";
    let daemon = Daemon::start("daemon-silent", &[])?;
    let path = |file: &str| daemon.dir.join(file).display().to_string();
    for (program, expected) in [("docker", false), ("client", true)] {
        let trace = daemon.trace(&format!("{program}.bin"));
        let command = [&path(program), "-c", WORK, &path("client")];
        let out = recording(&trace, &[], &command).output()?;
        ensure(out.status.success(), || format!("{out:?}"))?;
        let report = document(&trace, &["--report", "advice"])?;
        let lines = list(&report["advice"], "advice").iter();
        let kinds: Vec<&str> = lines.filter_map(|value| value["kind"].as_str()).collect();
        // The program of another name has advice about its sleep, or about more jobs; the latter is missing if other
        // load leaves no CPU idle.
        let own = kinds
            .iter()
            .any(|kind| ["sleep", "few-jobs"].contains(kind));
        ensure(own == expected, || format!("{program}: {report}"))?;
    }
    Ok(())
}

/// A client that is not recorded and has a name that the BPF programs know (docker). It is killed when this value is
/// dropped.
struct Stranger(Child);

impl Drop for Stranger {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

impl Stranger {
    /// Starts the client and waits until the daemon has accepted it, as the daemon's first client.
    fn start(daemon: &mut Daemon, seconds: &str) -> Result<Stranger, Failed> {
        let command = daemon.client("docker", "theirs", seconds);
        let (program, args) = command.split_first().ok_or("no client")?;
        let mut stranger = Command::new(program);
        stranger.args(args).stdout(Stdio::null());
        let stranger = Stranger(stranger.spawn()?);
        daemon.lines.read_line(&mut String::new())?;
        Ok(stranger)
    }
}

/// Docker's classic builder prints only 12 digits of a container's id, at any place in a message.
fn brief() -> Result<(), Failed> {
    let mut daemon = Daemon::start("daemon-brief", &["brief"])?;
    let _stranger = Stranger::start(&mut daemon, "20")?;
    let names: Vec<String> = (1..=8).map(|length| "n".repeat(length)).collect();
    let commands: Vec<String> = names
        .iter()
        .map(|name| daemon.client("client", name, "0").join(" "))
        .collect();
    let trace = daemon.trace("brief");
    let out = recording(&trace, &[], &["sh", "-c", &commands.join(" && ")]).output()?;
    ensure(out.status.success(), || format!("{out:?}"))?;
    let events = events(&trace)?;
    let told = events.iter().filter(|event| event.1 == "told").count();
    ensure(told == names.len(), || format!("{events:?}"))
}

fn stranger() -> Result<(), Failed> {
    // The daemon tells its clients no ids of containers, so the other client may have requested any of the containers.
    for how in [&["untold"][..], &["untold", "short"], &["quiet"]] {
        let mut daemon = Daemon::start("daemon-stranger", how)?;
        let _stranger = Stranger::start(&mut daemon, "20")?;
        told(daemon.record("mine", &[])?)?;
        let trace = daemon.trace("mine");
        let events = events(&trace)?;
        // No container may be assigned to the recorded client. On a busy machine there may be several: the other
        // client's container may also begin while the recorded client is connected.
        let all = events.iter().all(|event| event.1 == "not-recorded");
        ensure(all && !events.is_empty(), || format!("{how:?}: {events:?}"))?;
        ensure(containers(&trace)?.is_empty(), || format!("{how:?}"))?;
        let said = text(&tr(&["analyze"], &trace)?);
        ensure(
            said.contains(" of container runtimes, which a daemon"),
            || said.clone(),
        )?;
    }
    Ok(())
}

/// A client of another daemon cannot have requested the container from this daemon, so the container is assigned to the
/// recorded client.
fn inferred() -> Result<(), Failed> {
    let mut other = Daemon::start("daemon-other", &[])?;
    let _stranger = Stranger::start(&mut other, "60")?;
    for (how, name) in [
        (&["untold"][..], "container mine (inferred)"),
        (&["quiet"], "container mine (inferred)"),
        (&["quiet", "ticks"], "container mine (inferred)"),
    ] {
        let daemon = Daemon::start("daemon-alone", how)?;
        for _ in 0..3 {
            told(daemon.record("mine", &["--force"])?)?;
            let trace = daemon.trace("mine");
            let events = events(&trace)?;
            let first = events.first().map(|event| event.1.as_str());
            ensure(first == Some("inferred"), || format!("{how:?}: {events:?}"))?;
            let found = containers(&trace)?;
            ensure(found == [name], || format!("{how:?}: {found:?}"))?;
        }
    }
    Ok(())
}

fn chosen() -> Result<(), Failed> {
    let daemon = Daemon::start("daemon-chosen", &[])?;
    for (which, count) in [("none", 0), ("mine", 0), ("all", 1)] {
        let options = ["--containers", which];
        let mut tr = recording(&daemon.trace(which), &options, &["sh", "-c", "echo; cat"])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()?;
        let out = tr.stdout.as_mut().ok_or("no output")?;
        BufReader::new(out).read_line(&mut String::new())?;
        let other = daemon.client("client", which, "0");
        let (program, args) = other.split_first().ok_or("no client")?;
        Command::new(program).args(args).output()?;
        drop(tr.stdin.take());
        tr.wait()?;
        let found = containers(&daemon.trace(which))?;
        // Other programs on this machine may start containers, too, so only the own name is counted.
        let name = format!("container {which}");
        let own = found.iter().filter(|evidence| **evidence == name).count();
        ensure(own == count, || format!("{which}: {found:?}"))?;
    }
    told(daemon.record("none", &["--containers=none"])?)?;
    let found = containers(&daemon.trace("none"))?;
    ensure(found.is_empty(), || format!("{found:?}"))
}

/// A dockerd that belongs to the test, without a network. It is ended when this value is dropped.
struct Dockerd {
    process: Child,
    dir: PathBuf,
}

impl Drop for Dockerd {
    fn drop(&mut self) {
        let pid = self.process.id().to_string();
        let _ = crate::support::kill().args(["-TERM", &pid]).status();
        let _ = self.process.wait();
        let _ = std::fs::remove_dir_all(&self.dir);
    }
}

/// A shell loop that takes CPU time for several periods of a quota.
const BUSY: &str = "i=0; while [ $i -lt 300000 ]; do i=$((i+1)); done";

/// Records `docker build -q`, to which the daemon sends no id before the build ends. The build's steps are assigned to
/// the only client. If another client is connected, the steps are assigned to nobody.
fn quiet_builds(socket: &str, context: &str, trace: &Path) -> Result<(), Failed> {
    let build = ["docker", "-H", socket, "build", "-q", "--no-cache"];
    let build = [&build[..], &["--network", "none", context]].concat();
    for other_client in [false, true] {
        let stranger = if other_client {
            let mut listener = Command::new("docker");
            listener.args(["-H", socket, "events"]);
            let process = listener.stdout(Stdio::null()).spawn()?;
            let pid = process.id();
            let stranger = Stranger(process);
            crate::support::eventually("the other client is connected", || {
                has_socket(pid).unwrap_or(false)
            })?;
            Some(stranger)
        } else {
            None
        };
        for buildkit in ["0", "1"] {
            let mut recorder = recording(trace, &["--force"], &build);
            let out = recorder.env("DOCKER_BUILDKIT", buildkit).output()?;
            if buildkit == "1" && text(&out.stderr).contains("buildx component") {
                continue; // this client cannot use BuildKit
            }
            ensure(out.status.success(), || format!("{out:?}"))?;
            let mut evidence: Vec<String> = events(trace)?.into_iter().map(|(_, it)| it).collect();
            evidence.retain(|word| word != "descendant");
            let expected = if other_client {
                "not-recorded"
            } else {
                "inferred"
            };
            let all = evidence.iter().all(|word| word == expected);
            ensure(all && !evidence.is_empty(), || {
                format!("BuildKit {buildkit}, another client {other_client}: {evidence:?}")
            })?;
            let steps = text(&tr(&["analyze", "--report", "steps"], trace)?);
            for step in ["RUN sleep 0.3", "RUN /bin/"] {
                ensure(steps.contains(step) != other_client, || {
                    format!("BuildKit {buildkit}, another client {other_client}: {steps}")
                })?;
            }
        }
        drop(stranger);
    }
    Ok(())
}

/// Whether a process has an open socket.
fn has_socket(pid: u32) -> std::io::Result<bool> {
    let descriptors = std::fs::read_dir(format!("/proc/{pid}/fd"))?;
    let mut links = descriptors
        .flatten()
        .flat_map(|entry| entry.path().read_link());
    Ok(links.any(|link| link.as_os_str().as_encoded_bytes().starts_with(b"socket:")))
}

/// Records `docker run`, and the steps of `docker build` with both builders.
fn docker() -> Result<(), Failed> {
    let missing = ["dockerd", "docker", "busybox"].into_iter().find_map(lacks);
    if !long() || missing.is_some() {
        return Ok(());
    }
    let dir = std::env::temp_dir().join(format!("tr-docker-{}", std::process::id()));
    std::fs::create_dir_all(dir.join("image/bin"))?;
    std::fs::create_dir_all(dir.join("context"))?;
    let path = |name: &str| dir.join(name).display().to_string();
    let socket = format!("unix://{}", path("socket"));
    let process = Command::new("dockerd")
        .args([
            "--iptables=false",
            "--ip6tables=false",
            "--bridge=none",
            "-H",
            &socket,
        ])
        .args(["--data-root", &path("data"), "--exec-root", &path("exec")])
        .args(["--pidfile", &path("pid")])
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()?;
    let dockerd = Dockerd {
        process,
        dir: dir.clone(),
    };
    let docker = |args: &[&str]| {
        let mut docker = Command::new("docker");
        docker.args(["-H", &socket]).args(args);
        docker
    };
    crate::support::eventually("dockerd answers", || {
        docker(&["version"])
            .output()
            .is_ok_and(|out| out.status.success())
    })?;
    copy_program("/usr/bin/busybox", dir.join("image/bin/busybox"))?;
    for name in ["sh", "sleep", "true"] {
        symlink("busybox", dir.join("image/bin").join(name))?;
    }
    let tar = format!(
        "tar -C {} -c . | docker -H {socket} import - bb:1",
        path("image")
    );
    let imported = Command::new("sh").args(["-c", &tar]).output()?;
    ensure(imported.status.success(), || format!("{imported:?}"))?;
    std::fs::write(
        dir.join("context/Dockerfile"),
        "FROM bb:1\nRUN sleep 0.3\nRUN /bin/true && /bin/true\n",
    )?;
    let trace = dir.join("trace.bin");
    let build = [
        "docker",
        "-H",
        &socket,
        "build",
        "--no-cache",
        "--network",
        "none",
        &path("context"),
    ];
    let mut tr = recording(&trace, &["--force"], &build);
    let out = tr.env("DOCKER_BUILDKIT", "0").output()?;
    ensure(out.status.success(), || format!("{out:?}"))?;
    let steps = text(&crate::support::tr(
        &["analyze", "--report", "steps"],
        &trace,
    )?);
    for step in ["RUN sleep 0.3", "RUN /bin/"] {
        ensure(steps.contains(step), || steps.clone())?;
    }
    quiet_builds(&socket, &path("context"), &trace)?;
    let run = [
        "docker",
        "-H",
        &socket,
        "run",
        "--rm",
        "--network",
        "none",
        "--name",
        "web",
        "bb:1",
    ];
    let run = [
        &run[..],
        &[
            "sh",
            "-c",
            "i=0; while [ $i -lt 20 ]; do /bin/true; i=$((i+1)); done",
        ],
    ]
    .concat();
    let out = recording(&trace, &["--force"], &run).output()?;
    ensure(out.status.success(), || format!("{out:?}"))?;
    let found = containers(&trace)?;
    ensure(found.contains(&"container web (bb:1)".into()), || {
        format!("{found:?}")
    })?;
    let analysis = analyze(&trace)?;
    let ran = |value: &&Value| value["argv"] == serde_json::json!(["/bin/true"]);
    let count = list(&analysis, "processes").iter().filter(ran).count();
    ensure(count == 20, || format!("{count}"))?;
    // The quota is reported for the container; COMMAND's own cgroup has none.
    let limited = [&run[..9], &["--cpus", "0.1", "bb:1", "sh", "-c", BUSY]].concat();
    let out = recording(&trace, &["--force"], &limited).output()?;
    ensure(out.status.success(), || format!("{out:?}"))?;
    let machine = text(&crate::support::tr(
        &["analyze", "--report", "machine"],
        &trace,
    )?);
    ensure(machine.contains("throttled in container web"), || {
        machine.clone()
    })?;
    drop(dockerd);
    Ok(())
}
