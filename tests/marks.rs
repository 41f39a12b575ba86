//! Tests marks (steps that programs write to `$TR_MARKS`), with real test runners if they are installed.
#![allow(clippy::expect_used, clippy::indexing_slicing)] // a JSON value indexes to null

use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use libtest_mimic::{Arguments, Failed};
use serde_json::Value;

mod common;

use common::{int, lacks, lacks_module, list, no_mount_namespace, said, why_not, ABSENT, TR};

fn main() {
    let args = Arguments::from_args();
    let reason = why_not();
    let trial = |name: &str, needs: Option<String>, test: fn() -> Result<(), Failed>| {
        common::trial(name, reason.clone().or(needs), test)
    };
    let trials = vec![
        trial(
            "a_private_file_is_there_for_the_command",
            None,
            private_file,
        ),
        trial("the_file_is_where_a_directory_takes_it", None, odd_places),
        trial(
            "a_recording_without_the_file_says_so",
            (!is_root())
                .then(|| "it needs root".to_owned())
                .or_else(no_mount_namespace),
            no_place,
        ),
        trial(
            "the_directory_is_removed_by_descriptors",
            (!is_root()).then(|| "it needs root".to_owned()),
            exchanged,
        ),
        trial("those_of_killed_recorders_are_removed", None, of_killed),
        trial("a_flood_and_garbage_are_counted", lacks("python3"), flood),
        trial("shell_functions", None, shell),
        trial("a_moment_with_a_result_is_compared", None, moments),
        trial("an_event_keeps_its_kind", None, kinds),
        trial("pytest", lacks_module("pytest"), pytest),
        trial("ansible", lacks("ansible-playbook"), ansible),
        trial("node_test", lacks_recent_node(), node),
        trial("an_old_node_marks_nothing", lacks("node"), old_node),
    ];
    libtest_mimic::run(&args, trials).exit();
}

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

fn scratch(name: &str) -> std::io::Result<PathBuf> {
    let directory = Path::new(env!("CARGO_TARGET_TMPDIR"))
        .join("marks")
        .join(name);
    std::fs::create_dir_all(&directory)?;
    Ok(directory)
}

fn ensure(good: bool, what: impl FnOnce() -> String) -> Result<(), Failed> {
    Ok(common::ensure(good, what)?)
}

/// A command, not started yet, that records the given command line. It runs in `directory` and has its own TMPDIR
/// there.
fn recording(directory: &Path, command: &[&str]) -> Command {
    let mut tr = Command::new(TR);
    tr.args(["record", "-o", "trace.bin", "--"]).args(command);
    tr.current_dir(directory)
        .env("TMPDIR", directory.join("tmp"));
    tr
}

/// Records a command line in this directory. The temporary directory must be empty afterwards.
fn record(directory: &Path, command: &[&str]) -> Result<Output, Failed> {
    let temporary = directory.join("tmp");
    let _ = std::fs::remove_dir_all(&temporary);
    std::fs::create_dir_all(&temporary)?;
    let out = recording(directory, command).output()?;
    let left: Vec<_> = std::fs::read_dir(&temporary)?.flatten().collect();
    let left = left
        .iter()
        .filter(|entry| entry.file_name().to_string_lossy().starts_with("tr-"));
    let left: Vec<_> = left.collect();
    ensure(left.is_empty(), || format!("left: {left:?}"))?;
    Ok(out)
}

fn steps(directory: &Path) -> Result<Vec<Value>, Failed> {
    let out = Command::new(TR)
        .args([
            "analyze",
            "trace.bin",
            "--report",
            "steps",
            "--format",
            "json",
        ])
        .current_dir(directory)
        .output()?;
    ensure(out.status.success(), || said(&out))?;
    let document: Value = serde_json::from_slice(&out.stdout)?;
    Ok(list(&document["steps"], "steps").to_vec())
}

/// The depth, the name and the result of each step of these kinds, in order.
fn marks(steps: &[Value], kinds: &[&str]) -> Vec<String> {
    let of = |step: &&Value| kinds.contains(&step["kind"].as_str().unwrap_or_default());
    let steps = steps.iter().filter(of);
    let line = |step: &Value| {
        let text = |name: &str| step[name].as_str().unwrap_or("-").to_owned();
        format!(
            "{} {}: {}",
            int(step, "depth"),
            text("name"),
            text("result")
        )
    };
    steps.map(line).collect()
}

fn same(is: &[String], want: &[&str]) -> Result<(), Failed> {
    ensure(is == want, || format!("{is:#?}\nexpected {want:#?}"))
}

const MS: u64 = 1_000_000;

/// Checks that a step slept for `ms` milliseconds. Other times of the step count as well: the sleep's timer may run,
/// even to its end, while the task is still on a CPU, in a run queue or blocked by a disk. A kernel may hide a switch,
/// so that the time is unknown.
fn slept(steps: &[Value], name: &str, ms: u64) -> Result<(), Failed> {
    let step = steps.iter().find(|step| step["name"] == name);
    let step = step.ok_or_else(|| format!("no step {name}"))?;
    let names = ["run_queue_ns", "on_cpu_ns", "blocked_ns", "unknown_ns"];
    let others: u64 = names.iter().map(|name| int(&step["spent"], name)).sum();
    let slept = int(&step["spent"], "sleep_ns");
    let least = if slept > 0 { ms * 9 / 10 } else { ms };
    let spent = slept + others;
    let good = spent >= least * MS && slept <= int(step, "wall_ns");
    ensure(good, || format!("{step}"))
}

fn is_root() -> bool {
    nix::unistd::Uid::effective().is_root()
}

/// The owner of TMPDIR replaces the directory of the marks by a symbolic link to a directory that has a file of the
/// same name. The recorder must not remove that file.
fn exchanged() -> Result<(), Failed> {
    let directory = scratch("exchanged")?;
    let (temporary, victim) = (directory.join("tmp"), directory.join("victim"));
    let _ = std::fs::remove_dir_all(&victim);
    std::fs::create_dir_all(&victim)?;
    std::fs::write(victim.join("marks"), "precious")?;
    let exchange = r#"d=${TR_MARKS%/*}; mv "$d" "$PWD/tmp/old"; ln -s "$PWD/victim" "$d""#;
    let _ = record(&directory, &["sh", "-c", exchange]);
    let left = std::fs::read(victim.join("marks"));
    let _ = std::fs::remove_dir_all(&temporary);
    ensure(left.is_ok_and(|bytes| bytes == b"precious"), || {
        "it is gone".into()
    })?;
    Ok(())
}

/// The names of the directories for marks that are left in TMPDIR.
fn left(directory: &Path) -> Result<Vec<String>, Failed> {
    let entries = std::fs::read_dir(directory.join("tmp"))?.flatten();
    let names = entries.map(|entry| entry.file_name().to_string_lossy().into_owned());
    Ok(names.filter(|name| name.starts_with("tr-marks-")).collect())
}

/// If a recorder was killed, the next recorder removes the directory that the killed one has left, whatever the
/// directory's age. This also holds if another process has the killed recorder's pid by then. Directories that living
/// recorders have locked stay, and so do symbolic links.
fn of_killed() -> Result<(), Failed> {
    let directory = scratch("killed")?;
    let (temporary, victim) = (directory.join("tmp"), directory.join("victim"));
    let _ = std::fs::remove_dir_all(&temporary);
    std::fs::create_dir_all(&temporary)?;
    std::fs::create_dir_all(&victim)?;
    std::fs::write(victim.join("marks"), "precious")?;
    std::os::unix::fs::symlink(&victim, temporary.join("tr-marks-4194305-1"))?;
    // The directory's name contains the pid of a living process, which is this test.
    let reused = format!("tr-marks-{}-2", std::process::id());
    std::fs::create_dir_all(temporary.join(&reused))?;
    for _ in 0..3 {
        // COMMAND outlives its killed recorder until its standard input ends.
        let mut tr = recording(&directory, &["sh", "-c", "echo begun; exec cat"]);
        let tr = tr.stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut recorder = tr.spawn()?;
        let mut begun = [0; 5];
        let stdout = recorder.stdout.as_mut().ok_or("no output")?;
        let read = std::io::Read::read_exact(stdout, &mut begun);
        recorder.kill()?;
        recorder.wait()?;
        read?;
        let now = left(&directory)?;
        ensure(now.len() == 2 && !now.contains(&reused), || {
            format!("{now:?}")
        })?;
    }
    let look = format!("'{TR}' record -q -o inner.bin -- true; test -e \"$TR_MARKS\"");
    let out = recording(&directory, &["sh", "-c", &look]).output()?;
    ensure(out.status.code() == Some(0), || said(&out))?;
    let now = left(&directory)?;
    ensure(now == ["tr-marks-4194305-1"], || format!("{now:?}"))?;
    let kept = std::fs::read(victim.join("marks"))?;
    ensure(kept == b"precious", || "the link was followed".into())
}

fn private_file() -> Result<(), Failed> {
    let directory = scratch("private")?;
    let look = r#"stat -c '%a %s' "$TR_MARKS" "${TR_MARKS%/*}"; exit 9"#;
    let out = record(&directory, &["sh", "-c", look])?;
    let text = said(&out);
    let private = text.starts_with("600 0\n700 ") && out.status.code() == Some(9);
    ensure(private, || text)?;
    // A recording inside of another recording has its own file for marks.
    let nested = format!(
        "a=$TR_MARKS; '{TR}' record -q -o in.bin -- sh -c 'test \"$TR_MARKS\" != '$a && test -f $a"
    );
    let out = record(&directory, &["sh", "-c", &nested])?;
    ensure(out.status.success(), || said(&out))
}

/// Records a shell script by ptrace; `prefix` is a program that runs the recorder, or empty.
fn recorded_by_sh(
    directory: &Path,
    prefix: &[&str],
    variables: &[(&str, &str)],
    script: &str,
) -> Result<Output, Failed> {
    let line = [
        prefix,
        &[TR, "record", "--method", "ptrace", "-o", "trace.bin"],
        &["--", "sh", "-c", script],
    ]
    .concat();
    let [program, args @ ..] = &line[..] else {
        return Err("no program".into());
    };
    let mut command = Command::new(program);
    command.args(args).current_dir(directory);
    Ok(command.envs(variables.iter().copied()).output()?)
}

/// Records with three odd temporary directories: one that does not exist, one with a relative path, and one in which a
/// user who called sudo cannot own a file.
fn odd_places() -> Result<(), Failed> {
    let directory = scratch("odd")?;
    std::fs::create_dir_all(directory.join("tmp"))?;
    let write = r#"cd / && echo '{"t":1,"name":"a"}' >>"$TR_MARKS" && exit 9"#;
    let unmapped = [("SUDO_UID", "4242"), ("SUDO_GID", "4242")];
    let mut cases = vec![
        (&[][..], &[("TMPDIR", ABSENT)][..]),
        (&[], &[("TMPDIR", "tmp")]),
    ];
    let other = &["unshare", "--user", "--map-root-user"][..];
    let namespaces = Command::new("unshare").args(["-Ur", "true"]).output();
    if namespaces.is_ok_and(|out| out.status.success()) {
        cases.push((other, &unmapped));
    }
    for (prefix, variables) in cases {
        let out = recorded_by_sh(&directory, prefix, variables, write)?;
        ensure(out.status.code() == Some(9), || {
            format!("{variables:?}: {}", said(&out))
        })?;
        let counted = said(&out).contains("left out of $TR_MARKS: 1 × a time outside");
        ensure(counted, || said(&out))?;
    }
    Ok(())
}

/// If the file for marks cannot be made in any directory, COMMAND runs without it, and the recording says why it has no
/// marks.
fn no_place() -> Result<(), Failed> {
    let directory = scratch("no_place")?;
    let script = format!(
        "for it in /tmp /dev/shm; do mount --bind $it $it && mount -o remount,bind,ro $it || exit 3; done
        '{TR}' record -o - -- sh -c 'echo ${{TR_MARKS-none}} >&2; exit 9' >trace.bin"
    );
    let out = Command::new("unshare")
        .args(["--mount", "sh", "-c", &script])
        .current_dir(&directory)
        .env("TMPDIR", ABSENT)
        .output()?;
    let text = said(&out);
    let told = "no directory allows the file $TR_MARKS: No such file";
    let good = text.starts_with("none\n") && text.contains(told);
    ensure(good && out.status.code() == Some(9), || text)?;
    let out = Command::new(TR)
        .args(["analyze", "trace.bin"])
        .current_dir(&directory)
        .output()?;
    ensure(said(&out).contains(told), || said(&out))
}

/// A program writes a million lines and several kinds of garbage to its file for marks, and truncates the file.
fn flood() -> Result<(), Failed> {
    let directory = scratch("flood")?;
    let program = r#"
import os, time
path = os.environ["TR_MARKS"]
now = time.monotonic_ns()
with open(path, "ab") as file:
    file.write(b'{"t":%d,"name":"first"}\n' % now)
    file.write(b"\x00\xff" * 50_000 + b"\n[[[[\n" + b'{"t":5,"name":"old"}\n')
    file.write(b'{"t":99999999999999999999,"name":"a"}\n{"t":%d,"name":"future"}\n' % (now + 10**15))
    for _ in range(10):
        file.write(b'{"t":%d,"name":"x","ev":"begin"}\n' % now * 100_000)
"#;
    let out = record(&directory, &["python3", "-c", program])?;
    let text = said(&out);
    let counted = text.contains("left out of $TR_MARKS: 3 × no mark, 2 × a time outside");
    let cut = text.contains("× beyond the limit of 262,144 marks");
    ensure(out.status.success() && counted && cut, || text)?;
    let mut verify = Command::new(TR);
    let verify = verify.args(["verify", "trace.bin"]);
    let verified = verify.current_dir(&directory).output()?;
    ensure(verified.status.success(), || said(&verified))?;
    let mut analyze = Command::new(TR);
    let analyze = analyze.args([
        "analyze",
        "trace.bin",
        "--report",
        "steps",
        "--format",
        "csv",
    ]);
    let out = analyze.current_dir(&directory).output()?;
    let lines = out.stdout.iter().filter(|byte| **byte == b'\n').count();
    ensure(lines == 1 + 262_144, || format!("{lines} lines"))?;
    let out = record(
        &directory,
        &[
            "sh",
            "-c",
            r#"echo '{"t":1}' >>$TR_MARKS; : >$TR_MARKS; rm $TR_MARKS"#,
        ],
    )?;
    ensure(out.status.success(), || said(&out))
}

fn shell() -> Result<(), Failed> {
    let directory = scratch("shell")?;
    let script = format!(
        ". '{}/integrations/tr-marks.sh'
        tr_begin 'a \"name\"'
        tr_step inner sh -c 'sleep 0.1; exit 4' || echo $?
        all() {{ tr_step first true; tr_step second true; }}
        tr_step all all
        tr_end 'a \"name\"'",
        root().display()
    );
    let out = record(&directory, &["sh", "-c", &script])?;
    ensure(out.stdout == b"4\n", || said(&out))?;
    let found = steps(&directory)?;
    same(
        &marks(&found, &["mark"]),
        &[
            "0 a _name_: -",
            "1 inner: failed",
            "1 all: passed",
            "2 first: passed",
            "2 second: passed",
        ],
    )?;
    slept(&found, "inner", 100)?;
    // A mark is a part of its process's time, so the figures of the process must not be shown as those of the mark.
    let mut analyze = Command::new(TR);
    let analyze = analyze.args(["analyze", "--step", "a _name_"]);
    let out = analyze.arg(directory.join("trace.bin")).output()?;
    let words = "a _name_ is a part of sh (pid ";
    ensure(said(&out).contains(words), || said(&out))?;
    // Outside of a recording the integration runs the command and prints nothing.
    let out = Command::new("sh")
        .args(["-c", &script])
        .env_remove("TR_MARKS")
        .output()?;
    ensure(said(&out) == "4\n", || said(&out))
}

/// A mark with a result is compared: if the result is a failure only in the new run, the mark has a row. A mark without
/// a result has no row.
fn moments() -> Result<(), Failed> {
    let directory = scratch("moments")?;
    let mut sides = Vec::new();
    for result in ["passed", "failed"] {
        let script = format!(
            r#"t=$(awk '{{ printf "%.0f", $1 * 1e9 }}' /proc/uptime); sleep 0.05
            echo '{{"t":'$t',"name":"lint","result":"{result}"}}' >>"$TR_MARKS"
            echo '{{"t":'$t',"name":"plain"}}' >>"$TR_MARKS""#
        );
        let out = record(&directory, &["sh", "-c", &format!("sleep 0.05; {script}")])?;
        let side = directory.join(result);
        std::fs::rename(directory.join("trace.bin"), &side)?;
        ensure(out.status.success(), || said(&out))?;
        sides.push(side);
    }
    let mut diff = Command::new(TR);
    let out = diff
        .args(["diff", "--format", "json"])
        .args(sides)
        .output()?;
    let document: Value = serde_json::from_slice(&out.stdout)?;
    let rows = list(&document, "steps").iter();
    let rows: Vec<_> = rows.filter(|row| row["kind"] == "mark").collect();
    let good = matches!(rows[..], [row] if row["name"] == "lint"
        && (int(row, "base_failed"), int(row, "new_failed")) == (0, 1));
    ensure(good, || said(&out))
}

/// The kind that a program gives to its mark has a key of its own (`mark_kind`), besides the kind of the event.
fn kinds() -> Result<(), Failed> {
    let directory = scratch("kinds")?;
    // The script takes the mark's time from /proc/uptime, which is rounded down to 10 ms. The script waits first, so
    // that this time is not before the start of the recording, because an earlier mark would be left out.
    let script = r#"sleep 0.02; t=$(awk '{ printf "%.0f", $1 * 1e9 }' /proc/uptime)
        echo '{"t":'$t',"name":"one","kind":"test"}' >>"$TR_MARKS""#;
    let out = record(&directory, &["sh", "-c", script])?;
    ensure(out.status.success(), || said(&out))?;
    let mut dump = Command::new(TR);
    let dump = dump.args(["dump", "--format", "ndjson"]);
    let out = dump.arg(directory.join("trace.bin")).output()?;
    let lines = String::from_utf8_lossy(&out.stdout);
    let mut events = lines.lines().map(serde_json::from_str::<Value>);
    let mark = events.find(|event| event.as_ref().is_ok_and(|event| event["name"] == "one"));
    let mark = mark.ok_or("no mark")??;
    let good = (&mark["kind"], &mark["mark_kind"]) == (&"mark".into(), &"test".into());
    ensure(good, || mark.to_string())
}

fn pytest() -> Result<(), Failed> {
    let directory = scratch("pytest")?;
    let tests = "
import time, pytest
@pytest.fixture
def slow():
    time.sleep(0.05)
    yield
    time.sleep(0.03)
def test_sleeps(): time.sleep(0.1)
def test_fails(): assert False
@pytest.mark.parametrize('x', [1, 2])
def test_fixture(slow, x): pass
@pytest.mark.skip
def test_skipped(): pass
def test_error(no_such_fixture): pass
";
    std::fs::write(directory.join("test_it.py"), tests)?;
    let plugin = root().join("integrations");
    let pytest = [
        "python3",
        "-m",
        "pytest",
        "-q",
        "-p",
        "no:cacheprovider",
        "-p",
        "pytest_tr_marks",
    ];
    let path = format!("PYTHONPATH={}", plugin.display());
    let command = [&["env", &path][..], &pytest, &["test_it.py"]].concat();
    let out = record(&directory, &command)?;
    ensure(out.status.code() == Some(1), || said(&out))?;
    let found = steps(&directory)?;
    let want = [
        "0 pytest: -",
        "1 test_it.py::test_sleeps: passed",
        "1 test_it.py::test_fails: failed",
        "1 test_it.py::test_fixture[1]: passed",
        "2 setup: -",
        "2 teardown: -",
        "1 test_it.py::test_fixture[2]: passed",
        "2 setup: -",
        "2 teardown: -",
        "1 test_it.py::test_skipped: skipped",
        "1 test_it.py::test_error: error",
    ];
    same(&marks(&found, &["test", "mark"]), &want)?;
    slept(&found, "test_it.py::test_sleeps", 100)?;
    slept(&found, "setup", 50)?;
    // Outside of a recording the tests run as they always do.
    let out = Command::new("python3")
        .args(&pytest[1..])
        .arg("test_it.py")
        .current_dir(&directory)
        .env("PYTHONPATH", &plugin)
        .env_remove("TR_MARKS")
        .output()?;
    ensure(
        out.status.code() == Some(1) && said(&out).contains("3 passed"),
        || said(&out),
    )
}

fn ansible() -> Result<(), Failed> {
    let directory = scratch("ansible")?;
    let play = "
- name: first play
  hosts: all
  connection: local
  gather_facts: false
  tasks:
    - name: sleep a while
      ansible.builtin.command: sleep 0.2
    - name: leave out
      ansible.builtin.command: 'true'
      when: false
    - ansible.builtin.debug: msg=x
    - name: fail and go on
      ansible.builtin.command: 'false'
      ignore_errors: true
    - name: fail
      ansible.builtin.command: 'false'
";
    std::fs::write(directory.join("play.yml"), play)?;
    let plugins = format!(
        "ANSIBLE_CALLBACK_PLUGINS={}",
        root().join("integrations/ansible").display()
    );
    let command = [
        "env",
        &plugins,
        "ansible-playbook",
        "-i",
        "localhost,",
        "-e",
        "ansible_python_interpreter={{ansible_playbook_python}}",
        "play.yml",
    ];
    let out = record(&directory, &command)?;
    ensure(out.status.code() == Some(2), || said(&out))?;
    let found = steps(&directory)?;
    let is: Vec<String> = marks(&found, &["job"]);
    // The processes that run Ansible's modules are steps as well, named by their command lines; only the marks are
    // compared.
    let is: Vec<String> = is
        .into_iter()
        .filter(|line| !line.contains("ansible command"))
        .collect();
    let want = [
        "0 ansible-playbook play.yml: -",
        "1 play first play: -",
        "2 command: sleep a while: changed",
        "2 command: leave out: skipped",
        "2 debug: ok",
        "2 command: fail and go on: ignored",
        "2 command: fail: failed",
    ];
    same(&is, &want)?;
    slept(&found, "command: sleep a while", 200)
}

/// The reason why `node --test` cannot write marks here: Node is missing or too old.
fn lacks_recent_node() -> Option<String> {
    let Ok(out) = Command::new("node").arg("--version").output() else {
        return lacks("node");
    };
    let version = said(&out);
    let mut parts = version.trim_start_matches('v').split('.');
    let mut part = || parts.next().and_then(|part| part.parse::<u32>().ok());
    let recent = match (part(), part()) {
        (Some(20), Some(minor)) => minor >= 16,
        (Some(22), Some(minor)) => minor >= 3,
        (Some(major), _) => major > 22,
        _ => false,
    };
    let version = version.trim_end();
    (!recent).then(|| format!("node-marks.mjs needs Node 20.16, or 22.3 and later, not {version}"))
}

/// In a Node whose hooks do not know the results of tests, no test is marked, and a message says so once. Such a Node
/// is imitated by changing the version.
fn old_node() -> Result<(), Failed> {
    let directory = scratch("old-node")?;
    let tests = "import test from 'node:test';\ntest('good', () => {});\n";
    std::fs::write(directory.join("a.test.mjs"), tests)?;
    // The script that changes the version is imported before the integration, in each process.
    let old = "Object.defineProperty(process, 'versions', { value: { ...process.versions, node: '20.15.1' } });";
    std::fs::write(directory.join("old.mjs"), old)?;
    let hook = root().join("integrations/node-marks.mjs");
    let hook = hook.to_string_lossy();
    let command = ["node", "--import", "./old.mjs", "--import", &hook, "--test"];
    let out = record(&directory, &command)?;
    let text = said(&out);
    ensure(out.status.success(), || text.clone())?;
    let words = "node-marks: no test is marked: Node 20.15.1 lacks";
    ensure(text.matches(words).count() == 1, || text.clone())?;
    let is = marks(&steps(&directory)?, &["test"]);
    same(&is, &["0 node --test: -", "1 a.test.mjs: -"])
}

fn node() -> Result<(), Failed> {
    let directory = scratch("node")?;
    let tests = "
import test, { describe, it } from 'node:test';
import { setImmediate, setTimeout } from 'node:timers/promises';
// A timer begins with the event loop's turn.
test('sleeps', async () => { await setImmediate(); await setTimeout(100); });
describe('group', () => { it('fails', () => { throw new Error('x'); }); });
test('outer', async (t) => { await t.test('inner', () => setTimeout(50)); });
";
    for name in ["a", "b"] {
        std::fs::write(directory.join(format!("{name}.test.mjs")), tests)?;
    }
    let hook = root().join("integrations/node-marks.mjs");
    let hook = hook.to_string_lossy();
    let out = record(&directory, &["node", "--import", &hook, "--test"])?;
    ensure(out.status.code() == Some(1), || said(&out))?;
    let found = steps(&directory)?;
    let mut is = marks(&found, &["test"]);
    is.sort();
    let mut want = ["0 node --test: -"].to_vec();
    for file in ["1 a.test.mjs: -", "1 b.test.mjs: -"] {
        want.push(file);
        let tests = ["sleeps: passed", "group > fails: failed", "outer: passed"];
        want.extend(tests.map(|test| ["2 ", test].concat().leak() as &str));
        want.push("3 outer > inner: passed");
    }
    want.sort_unstable();
    same(&is, &want)?;
    slept(&found, "sleeps", 100)
}
