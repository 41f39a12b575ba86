//! Tests the Ansible role: its plays run before and after the job's own play, as Zuul would run them, on the local
//! machine.

use std::fs;
use std::path::Path;
use std::process::{Command, Output};

use libtest_mimic::{Failed, Trial};
use nix::sys::signal::{kill, Signal};
use nix::unistd::Pid;
use serde_json::{json, Value};
use tempfile::TempDir;

use crate::common::{lacks, trial, why_not, TR};
use crate::runner::{root, said, slept_once};

pub fn trials() -> Vec<Trial> {
    let reason = || lacks("ansible-playbook").or_else(why_not);
    vec![
        trial("ansible_records_between_two_plays", reason(), plays),
        trial("ansible_reports_a_recording_once", reason(), once),
        trial("ansible_signals_its_recorder_alone", reason(), stale),
        trial("ansible_goes_on_without_tr", reason(), without),
    ]
}

/// Runs a play with this action (start or stop) of the role; `program` is the path of tr on the recorded node.
pub fn play(directory: &TempDir, action: &str, program: &str, more: &str) -> Output {
    let place = directory.path().display();
    let text = format!(
        "
- hosts: all
  connection: local
  gather_facts: false
  roles:
    - role: tr_record
      vars:
        tr_record_action: {action}
        tr_record_become: false
        tr_record_program: '{program}'
        tr_record_directory: '{place}/node'
{more}
"
    );
    // Zuul sets variables, and has a module that returns values to its executor. Here the variables are set, and the
    // module is imitated.
    fs::create_dir_all(directory.path().join("library")).unwrap();
    let module = format!(
        "import json
from ansible.module_utils.basic import AnsibleModule
module = AnsibleModule(argument_spec=dict(data=dict(type='dict')))
json.dump(module.params['data'], open('{place}/returned', 'w'))
module.exit_json()
"
    );
    fs::write(directory.path().join("library/zuul_return.py"), module).unwrap();
    let zuul = json!({ "zuul": { "executor": { "log_root": format!("{place}/logs") } } });
    let file = directory.path().join(format!("{action}.yml"));
    fs::write(&file, text).unwrap();
    let mut command = Command::new("ansible-playbook");
    command.args([
        "-i",
        "node1,",
        "-e",
        "ansible_python_interpreter={{ansible_playbook_python}}",
    ]);
    command.args(["-e", &zuul.to_string()]);
    command.arg(file).current_dir(directory.path());
    command.env("ANSIBLE_ROLES_PATH", root().join("ci/ansible/roles"));
    command
        .env("HOME", directory.path())
        .env("LC_ALL", "C.UTF-8");
    command.output().unwrap()
}

fn plays() -> Result<(), Failed> {
    let directory = tempfile::tempdir()?;
    let options = "        tr_record_options: [--all, --argv-limit, '8K']";
    let out = play(&directory, "start", TR, options);
    assert!(
        out.status.success() && said(&out).contains("failed=0"),
        "{}",
        said(&out)
    );
    assert!(!said(&out).contains("rescued=1"), "{}", said(&out));
    // The job's own play fails; Zuul runs the playbooks of `post-run` even then.
    let job = Command::new("sh")
        .args(["-c", "sleep 0.37; exit 3"])
        .status()?;
    assert_eq!(job.code(), Some(3));
    let out = play(&directory, "stop", TR, "");
    assert!(
        out.status.success() && !said(&out).contains("rescued=1"),
        "{}",
        said(&out)
    );
    let logs = directory.path().join("logs/node1");
    let trace = logs.join("trace.bin");
    slept_once(&trace, "0.37")?;
    assert!(fs::read_to_string(logs.join("report.html"))?.contains("<html"));
    assert!(!fs::read_to_string(logs.join("summary.md"))?.is_empty());
    let returned = fs::read_to_string(directory.path().join("returned"))?;
    let returned: Value = serde_json::from_str(&returned)?;
    assert_eq!(returned["zuul"]["artifacts"][0]["url"], "node1/report.html");
    Ok(())
}

/// A stop without a successful start reports that there is no recording, even if an earlier job or an earlier start
/// left one.
fn once() -> Result<(), Failed> {
    let directory = tempfile::tempdir()?;
    let logs = directory.path().join("logs");
    let start = |program: &str| play(&directory, "start", program, "");
    let stop = |required: bool| {
        let _ = fs::remove_dir_all(&logs);
        let required = format!("        tr_record_required: {required}");
        play(&directory, "stop", TR, &required)
    };
    assert!(!said(&start(TR)).contains("rescued=1"));
    let out = stop(true);
    assert!(out.status.success(), "{}", said(&out));
    assert!(logs.join("node1/trace.bin").exists());
    // In the second case a start fails while the recorder of the first start runs.
    for starts in [[].as_slice(), &[TR, "/bin/cat"]] {
        for program in starts {
            start(program);
        }
        for (required, code) in [(false, 0), (true, 2)] {
            let out = stop(required);
            let text = said(&out);
            assert_eq!(out.status.code(), Some(code), "{text}");
            assert!(
                text.contains("no recording of node1: no recorder was started"),
                "{text}"
            );
            assert!(!logs.exists());
        }
    }
    Ok(())
}

/// The recorder was killed, and its pid now belongs to another process. A stop must not kill that process.
fn stale() -> Result<(), Failed> {
    let directory = tempfile::tempdir()?;
    let pid = directory.path().join("node/pid");
    for is_old in [false, true] {
        assert!(!said(&play(&directory, "start", TR, "")).contains("rescued=1"));
        let text = fs::read_to_string(&pid)?;
        let (recorder, start) = text.trim().split_once(' ').ok_or(text.clone())?;
        let recorder = Pid::from_raw(recorder.parse()?);
        let exe = fs::read_link(format!("/proc/{recorder}/exe"))?;
        assert_eq!(exe, Path::new(TR).canonicalize()?);
        kill(recorder, Signal::SIGKILL)?;
        let mut other = Command::new("sleep").arg("100").spawn()?;
        // An older role wrote the pid file without the recorder's start time.
        let start = if is_old { "" } else { start };
        fs::write(&pid, format!("{} {start}\n", other.id()))?;
        let out = play(&directory, "stop", TR, "");
        let ended = other.try_wait()?;
        other.kill()?;
        other.wait()?;
        assert_eq!(ended, None, "{}", said(&out));
        // The stop keeps what the recorder had written before it was killed.
        assert!(!said(&out).contains("rescued=1"), "{}", said(&out));
        assert!(directory.path().join("logs/node1/trace.bin").exists());
    }
    Ok(())
}

fn without() -> Result<(), Failed> {
    let directory = tempfile::tempdir()?;
    let out = play(&directory, "start", "/bin/cat", "");
    assert!(out.status.success(), "{}", said(&out));
    assert!(
        said(&out).contains("no recording of node1"),
        "{}",
        said(&out)
    );
    // The role refuses to start if its directory on the node is a link. If the link led to a directory of another
    // user, that user could replace the program that root executes.
    let node = directory.path().join("node");
    fs::rename(&node, directory.path().join("other"))?;
    std::os::unix::fs::symlink("other", &node)?;
    let out = play(&directory, "start", TR, "");
    assert!(said(&out).contains("or is a link"), "{}", said(&out));
    fs::remove_file(&node)?;
    // The role refuses a download without a checksum, and one whose checksum differs.
    let out = play(&directory, "start", "", "");
    assert!(
        said(&out).contains("tr_record_checksum is empty"),
        "{}",
        said(&out)
    );
    fs::write(directory.path().join("release.tar.gz"), "hostile")?;
    let place = directory.path().display();
    let archive = format!(
        "        tr_record_archive: file://{place}/release.tar.gz\n        tr_record_checksum: sha256:{}",
        "0".repeat(64)
    );
    let out = play(&directory, "start", "", &archive);
    assert!(out.status.success(), "{}", said(&out));
    assert!(said(&out).contains("did not match"), "{}", said(&out));
    let required = "        tr_record_required: true";
    let out = play(&directory, "start", "/bin/cat", required);
    assert!(!out.status.success(), "{}", said(&out));
    Ok(())
}
