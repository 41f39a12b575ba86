//! The role, as a job's playbooks before and after the job's own, on the local machine.

use std::fs;
use std::process::{Command, Output};

use libtest_mimic::{Failed, Trial};
use serde_json::{json, Value};
use tempfile::TempDir;

use crate::common::{lacks, trial, why_not, TR};
use crate::runner::{root, said, slept_once};

pub fn trials() -> Vec<Trial> {
    let reason = || lacks("ansible-playbook").or_else(why_not);
    vec![
        trial("ansible_records_between_two_plays", reason(), plays),
        trial("ansible_goes_on_without_tr", reason(), without),
    ]
}

/// A play with this action of the role; `program` is the node's tr.
fn play(directory: &TempDir, action: &str, program: &str, more: &str) -> Output {
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
    // Zuul's variables, and its module, which hands values to the executor.
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
    // The job's own play fails; Zuul runs the playbooks of post-run all the same.
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

fn without() -> Result<(), Failed> {
    let directory = tempfile::tempdir()?;
    let out = play(&directory, "start", "/bin/cat", "");
    assert!(out.status.success(), "{}", said(&out));
    assert!(
        said(&out).contains("no recording of node1"),
        "{}",
        said(&out)
    );
    // A download without a checksum, and one with another.
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
