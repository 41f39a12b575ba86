//! Records servers of this machine to which recorded processes send requests: `fixtures/programs/server.py`. Results
//! are compared with the server's account of its compilers and of its own CPU time.

use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use libtest_mimic::Failed;
use serde_json::Value;

use crate::common::{document, lacks, long, python};
use crate::support::{
    analyze, compiled, dump, ensure, eventually, int, list, recording, text, tr, Test,
};

pub const TESTS: &[Test] = &[
    ("a_server_is_recorded_from_its_first_answer_on", followed),
    ("a_server_that_others_ask_as_well_is_called_so", shared),
    (
        "strangers_that_ask_a_recorded_server_are_not_recorded",
        asked,
    ),
    (
        "a_servers_thread_that_sleeps_in_the_run_queue_sleeps",
        resting,
    ),
    ("no_servers_are_recorded_if_not_asked_for", refused),
    ("a_server_that_sleeps_is_the_first_advice", advised),
    ("postgres_is_recorded_for_its_client", postgres),
];

const SCRIPT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/fixtures/programs/server.py");

/// A running server, which is killed when this value is dropped.
struct Server {
    process: Child,
    pid: u64,
    address: String,
    dir: PathBuf,
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
        let _ = std::fs::remove_dir_all(&self.dir);
    }
}

/// A compiler that the server ran, by its own account: the pid, and the CPU time in ns.
struct Compiler {
    pid: u64,
    cpu: u64,
}

/// Makes a directory with a short path, because the path of a Unix socket has at most 108 bytes.
fn place(name: &str) -> Result<PathBuf, Failed> {
    let dir = std::env::temp_dir().join(format!("tr-{name}-{}", std::process::id()));
    let _ = std::fs::remove_dir_all(&dir);
    std::fs::create_dir_all(&dir)?;
    Ok(dir)
}

/// The path of the Python interpreter itself. If the path led to a wrapper script, the wrapper would be the server's
/// parent.
fn interpreter() -> Result<String, Failed> {
    let asked = Command::new(python()?)
        .args([
            "-c",
            "import os, sys; print(os.path.realpath(sys.executable))",
        ])
        .output()?;
    Ok(text(&asked.stdout).trim().to_owned())
}

/// The pid and the address that a server prints when it is ready.
fn listens(process: &mut Child) -> Result<(u64, String), Failed> {
    let out = process.stdout.as_mut().ok_or("no output")?;
    let mut line = String::new();
    BufReader::new(out).read_line(&mut line)?;
    let (pid, address) = line.trim().split_once(' ').ok_or("no address")?;
    Ok((pid.parse()?, address.to_owned()))
}

impl Server {
    /// Starts a server on 127.0.0.1 if `tcp` is true, otherwise on a Unix socket.
    fn start(name: &str, tcp: bool) -> Result<Server, Failed> {
        let dir = place(name)?;
        let socket = dir.join("socket").display().to_string();
        let address = if tcp { "tcp" } else { &socket };
        let mut process = Command::new(interpreter()?)
            .args([SCRIPT, "serve", address])
            .stdout(Stdio::piped())
            .spawn()?;
        let (pid, address) = listens(&mut process)?;
        Ok(Server {
            process,
            pid,
            address,
            dir,
        })
    }

    fn trace(&self) -> PathBuf {
        self.dir.join("trace.bin")
    }

    /// The command line of a client that sends these requests.
    fn ask(&self, requests: &[&str]) -> Result<Vec<String>, Failed> {
        ask(&self.address, requests)
    }

    /// Records a client, and returns its output.
    fn record(&self, options: &[&str], requests: &[&str]) -> Result<String, Failed> {
        let client = self.ask(requests)?;
        let client: Vec<&str> = client.iter().map(String::as_str).collect();
        let out = recording(&self.trace(), options, &client).output()?;
        ensure(out.status.success(), || format!("{out:?}"))?;
        let said = text(&out.stderr);
        ensure(!said.contains("still running"), || said.clone())?;
        Ok(text(&out.stdout))
    }
}

fn ask(address: &str, requests: &[&str]) -> Result<Vec<String>, Failed> {
    let mut command = [&interpreter()?, SCRIPT, "ask", address]
        .map(str::to_owned)
        .to_vec();
    command.extend(requests.iter().map(|request| (*request).to_owned()));
    Ok(command)
}

fn compilers(said: &str) -> Result<Vec<Compiler>, Failed> {
    let lines = said.lines().map(|line| line.split(' ').collect::<Vec<_>>());
    let works = lines.filter(|words| words.len() == 3);
    let compilers = works.map(|words| {
        let [pid, cpu, _] = words[..] else {
            return Err(Failed::from("no account"));
        };
        Ok(Compiler {
            pid: pid.parse()?,
            cpu: cpu.parse()?,
        })
    });
    compilers.collect()
}

fn process(analysis: &Value, pid: u64) -> Result<&Value, Failed> {
    let mut all = list(analysis, "processes").iter();
    let found = all.find(|value| int(value, "pid") == pid);
    found.ok_or_else(|| format!("{pid} is not in {analysis}").into())
}

fn servers(trace: &Path) -> Result<Vec<Value>, Failed> {
    let events = dump(trace)?.into_iter();
    Ok(events.filter(|event| event["kind"] == "server").collect())
}

/// With both kinds of sockets, the recording contains the server and its compilers with their CPU times, and the
/// critical path goes through them.
fn followed() -> Result<(), Failed> {
    for tcp in [false, true] {
        let mut differs = None;
        for _ in 0..3 {
            differs = difference(tcp)?;
            if differs.is_none() {
                break;
            }
        }
        ensure(differs.is_none(), || differs.clone().unwrap_or_default())?;
    }
    Ok(())
}

/// Makes and checks one recording. Returns a difference, if any, that a virtual machine can cause by chance. The kernel
/// of a virtual machine does not count the time that the hypervisor steals as CPU time. For some wakings and the
/// switches after them, such a kernel runs no tracepoint, so that perf lacks them, too.
fn difference(tcp: bool) -> Result<Option<String>, Failed> {
    let server = Server::start("server-followed", tcp)?;
    // A recording that waits for all descendants does not wait for the end of the server.
    let said = server.record(&["--wait-all"], &["cpu", "work 0.2", "work 0", "cpu"])?;
    let compilers = compilers(&said)?;
    let own = said.lines().filter_map(|line| line.strip_prefix("cpu "));
    let own: Vec<u64> = own.flat_map(str::parse).collect();
    let [before, after] = own[..] else {
        return Err(said.into());
    };
    let cpu = after - before;
    ensure(compilers.len() == 2, || "no work".to_owned())?;
    let trace = server.trace();
    let analysis = analyze(&trace)?;
    let own = process(&analysis, server.pid)?;
    let client = list(&analysis, "processes").first().ok_or("no client")?;
    ensure(
        own["server"]["client_pid"] == client["pid"]
            && own["server"]["also_answered_pid"].is_null()
            && own["end_ns"].is_null(),
        || own.to_string(),
    )?;
    // The server's work before the first of these answers and after the last one is recorded as well, so the recorded
    // time may be longer.
    let ours = int(own, "on_cpu_ns");
    ensure(ours >= cpu / 100 * 99 && ours <= cpu + 5_000_000, || {
        format!("{ours} {cpu}")
    })?;
    for compiler in &compilers {
        let found = process(&analysis, compiler.pid)?;
        let shell = int(&found["tree"], "on_cpu_ns");
        if shell.abs_diff(compiler.cpu) > compiler.cpu / 100 + 3_000_000 {
            return Ok(Some(format!(
                "{shell} ns of CPU time, {} by the kernel",
                compiler.cpu
            )));
        }
    }
    let path = document(&trace, &["--report", "critical-path"])?;
    let steps = list(&path["critical_path"]["path"], "steps");
    // The recorder did not see the server's work before the server's first answer, so the path is compared only from
    // that answer on.
    let answers = steps
        .iter()
        .skip_while(|step| int(step, "pid") != server.pid);
    let sum = |key: &str| answers.clone().map(|answer| int(answer, key)).sum::<u64>();
    let length = sum("to_ns") - sum("from_ns");
    if sum("unknown_ns") > length / 20 {
        return Ok(Some(path.to_string()));
    }
    for compiler in &compilers {
        let on_path = steps.iter().any(|step| int(step, "pid") == compiler.pid);
        ensure(on_path, || path.to_string())?;
    }
    let screen = text(&tr(&["analyze"], &trace)?);
    let named = "Servers   server server.py (shared): ";
    ensure(screen.contains(named), || screen.clone())?;
    let tree = text(&tr(&["analyze", "--report", "tree"], &trace)?);
    ensure(tree.contains("└─ server server.py (shared)"), || {
        tree.clone()
    })?;
    Ok(None)
}

/// If the server also answers a client that is not recorded, the report names that client. The compiler that worked for
/// that client belongs to the server.
fn shared() -> Result<(), Failed> {
    for tcp in [false, true] {
        let server = Server::start("server-shared", tcp)?;
        let mut tr = recording(
            &server.trace(),
            &[],
            &["sh", "-c", "read a; \"$@\"; read b", "sh"],
        );
        let tr = tr.args(server.ask(&["work 0"])?);
        let mut tr = tr.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn()?;
        let mut to = tr.stdin.take().ok_or("no input")?;
        let out = tr.stdout.take().ok_or("no output")?;
        std::io::Write::write_all(&mut to, b"\n")?;
        let mut lines = BufReader::new(out).lines();
        lines.by_ref().take(2).for_each(drop);
        let other = server.ask(&["work 0"])?;
        let (program, args) = other.split_first().ok_or("no client")?;
        let mut other = Command::new(program)
            .args(args)
            .stdout(Stdio::null())
            .spawn()?;
        let stranger = u64::from(other.id());
        other.wait()?;
        std::io::Write::write_all(&mut to, b"\n")?;
        tr.wait()?;
        let analysis = analyze(&server.trace())?;
        let own = process(&analysis, server.pid)?;
        ensure(own["server"]["also_answered_pid"] == stranger, || {
            own.to_string()
        })?;
        ensure(process(&analysis, stranger).is_err(), || {
            "the stranger is recorded".to_owned()
        })?;
        let screen = text(&crate::support::tr(&["analyze"], &server.trace())?);
        ensure(screen.contains("this build and for"), || screen.clone())?;
    }
    Ok(())
}

/// A recorded server answers a client that is not recorded. That alone does not make it a shared server.
fn asked() -> Result<(), Failed> {
    let dir = place("server-asked")?;
    let trace = dir.join("trace.bin");
    let socket = dir.join("socket").display().to_string();
    for address in [socket.as_str(), "tcp"] {
        let command = [&interpreter()?, SCRIPT, "listen", address];
        let mut tr = recording(&trace, &["--force"], &command)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()?;
        let (_, address) = listens(&mut tr)?;
        let other = ask(&address, &["sleep 0.01", "work 0", "sleep 0.01"])?;
        let (program, args) = other.split_first().ok_or("no client")?;
        let out = Command::new(program).args(args).output()?;
        ensure(out.status.success(), || format!("{out:?}"))?;
        drop(tr.stdin.take());
        tr.wait()?;
        let found = servers(&trace)?;
        ensure(found.is_empty(), || format!("{found:?}"))?;
        // The compiler of the recorded server is recorded as its descendant.
        let compilers = compilers(&text(&out.stdout))?;
        let compiler = compilers.first().ok_or("no compiler")?;
        process(&analyze(&trace)?, compiler.pid)?;
    }
    Ok(std::fs::remove_dir_all(&dir)?)
}

/// Checks the first event of server threads after the recorder has begun to follow them. Each thread sleeps or waits
/// for a CPU, so its next event must be a waking of the thread or a switch to the thread. From Linux 6.12 on, a thread
/// that has just gone to sleep may still be in the run queue. The thread of the last server waits for a CPU, because
/// another thread of this server is busy there.
fn resting() -> Result<(), Failed> {
    let program = compiled("rest.c", "rest", &["-pthread"])?;
    let dir = place("rest")?;
    let trace = dir.join("trace.bin");
    let at = |n: usize| dir.join(n.to_string()).display().to_string();
    let mut command = vec![program.clone(), "ask".to_owned()];
    let (mut servers, mut threads) = (Vec::new(), Vec::new());
    const RESTING: usize = 8;
    for n in 0..=RESTING {
        let mut server = Command::new(&program);
        server.args(["serve", &at(n)]).stdout(Stdio::piped());
        server.args((n == RESTING).then_some("busy"));
        let mut server = server.spawn()?;
        listens(&mut server)?;
        servers.push(server);
        command.push(at(n));
    }
    let command: Vec<&str> = command.iter().map(String::as_str).collect();
    let out = recording(&trace, &[], &command).output()?;
    ensure(out.status.success(), || format!("{out:?}"))?;
    for mut server in servers {
        let mut line = String::new();
        let out = server.stdout.take().ok_or("no output")?;
        BufReader::new(out).read_line(&mut line)?;
        server.wait()?;
        threads.push(line.trim().parse::<u64>()?);
    }
    let events = dump(&trace)?;
    for (n, thread) in threads.into_iter().enumerate() {
        let found = |value: &&Value| int(value, "tid") == thread && value["followed"] == true;
        let mut after = events.iter().skip_while(|event| !found(event));
        let snapshot = after.next().ok_or("not followed")?;
        let next = after.find(|event| [&event["wakee"], &event["next"]].contains(&&thread.into()));
        let kind = next.map(|value| value["kind"].as_str().unwrap_or_default());
        let queued = snapshot["state"] == 0 && snapshot["on_cpu"] == false;
        let right = if queued {
            kind == Some("switch") || kind.is_none() && n < RESTING
        } else {
            n < RESTING && kind != Some("switch")
        };
        ensure(right, || format!("{n}: {snapshot} {next:?}"))?;
    }
    Ok(std::fs::remove_dir_all(&dir)?)
}

fn refused() -> Result<(), Failed> {
    let server = Server::start("server-refused", false)?;
    server.record(&["--no-servers"], &["sleep 0.2"])?;
    let found = servers(&server.trace())?;
    ensure(found.is_empty(), || format!("{found:?}"))?;
    let path = text(&tr(
        &["analyze", "--report", "critical-path"],
        &server.trace(),
    )?);
    ensure(path.contains("not recorded"), || path.clone())
}

fn advised() -> Result<(), Failed> {
    let server = Server::start("server-advised", false)?;
    server.record(&[], &["sleep 0.4"])?;
    let advice = document(&server.trace(), &["--report", "advice"])?;
    // The first line of advice may be about time that other load took.
    let mut advices = list(&advice["advice"], "advice").iter();
    let first = advices.find(|advice| advice["kind"] != "others");
    let good = first.is_some_and(|value| {
        let finding = value["finding"].as_str().unwrap_or_default();
        value["kind"] == "sleep"
            && finding.contains("server.py")
            && int(value, "gain_at_most_ns") >= 390_000_000
    });
    ensure(good, || advice.to_string())
}

/// A database server that the test runs as the user postgres.
struct Postgres {
    process: Child,
    dir: PathBuf,
}

impl Drop for Postgres {
    fn drop(&mut self) {
        let pid = self.process.id().to_string();
        let _ = crate::support::kill().args(["-INT", &pid]).status();
        let _ = self.process.wait();
        let _ = std::fs::remove_dir_all(&self.dir);
    }
}

/// Each connection has a server process of its own, which the recording of the client contains.
fn postgres() -> Result<(), Failed> {
    let programs = ["psql", "initdb", "postgres", "setpriv"];
    if !long() || programs.into_iter().find_map(lacks).is_some() {
        return Ok(());
    }
    let dir = std::env::temp_dir().join(format!("tr-postgres-{}", std::process::id()));
    std::fs::create_dir_all(&dir)?;
    let user = ["--reuid=postgres", "--regid=postgres", "--clear-groups"];
    let data = dir.join("data").display().to_string();
    let at = dir.display().to_string();
    let chown = Command::new("chown").args(["postgres", &at]).status()?;
    ensure(chown.success(), || at.clone())?;
    let made = Command::new("setpriv")
        .args(user)
        .args(["initdb", "-A", "trust", "-D", &data])
        .output()?;
    ensure(made.status.success(), || format!("{made:?}"))?;
    let process = Command::new("setpriv")
        .args(user)
        .args([
            "postgres",
            "-D",
            &data,
            "-k",
            &at,
            "-c",
            "listen_addresses=",
        ])
        .stderr(Stdio::null())
        .spawn()?;
    let server = Postgres { process, dir };
    let psql = |query| ["psql", "-h", &at, "-U", "postgres", "-c", query];
    eventually("postgres answers", || {
        let [program, args @ ..] = psql("select 1");
        let out = Command::new(program).args(args).output();
        out.is_ok_and(|out| out.status.success())
    })?;
    let trace = server.dir.join("trace.bin");
    let query =
        "select pg_sleep(0.3), count(*) from generate_series(1, 300000) a, pg_backend_pid()";
    let out = recording(&trace, &[], &psql(query)).output()?;
    ensure(out.status.success(), || format!("{out:?}"))?;
    let tree = text(&tr(&["analyze", "--report", "tree"], &trace)?);
    ensure(tree.contains("server postgres"), || tree.clone())?;
    let path = document(&trace, &["--report", "critical-path"])?;
    let steps = list(&path["critical_path"]["path"], "steps");
    let sum = |key: &str| steps.iter().map(|step| int(step, key)).sum::<u64>();
    let length = sum("to_ns") - sum("from_ns");
    ensure(sum("unknown_ns") <= length / 20, || path.to_string())
}
