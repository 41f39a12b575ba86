//! Tests `tr redact` and `tr info --secrets`, which find and mask secrets in an existing trace.
#![allow(clippy::expect_used, clippy::unwrap_used, clippy::indexing_slicing)] // of our own files

mod common;
#[path = "common/rewrite.rs"]
mod rewrite;

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use common::{list, ABSENT, TR};
use serde_json::Value;
use tr_format::container::Container;
use tr_format::device::SyncFile;
use tr_format::dns::DnsQuery;
use tr_format::event::{
    Argv, CgroupId, CgroupPath, Comm, Degraded, LifeEvent, LifeKind, Mark, Stream, Tgid, Tid,
};
use tr_format::mask::Masked;
use tr_format::meta::{Metadata, Missing, Scope};
use tr_format::network::Address;
use tr_format::reader::Trace;
use tr_format::source::Source;
use tr_format::stack::{Function, Module, Symbol};
use tr_format::writer::Writer;

const SECRET: &str = "hunter2hunter2";

fn tr(args: &[&str]) -> Output {
    Command::new(TR).args(args).output().unwrap()
}

fn stdout(args: &[&str]) -> String {
    let out = tr(args);
    let said = String::from_utf8_lossy(&out.stderr);
    assert!(out.status.success(), "{args:?}: {said}");
    String::from_utf8(out.stdout).unwrap()
}

fn text(path: &Path) -> &str {
    path.to_str().unwrap()
}

/// A copy of the demo's trace with a password after the arguments of each exec and of COMMAND, and in names of files.
/// An older tr, which masked less, could have left such a trace.
fn old_trace(dir: &Path) -> PathBuf {
    let demo = Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures/traces/demo.bin");
    let trace = Trace::open(Source::bytes(std::fs::read(demo).unwrap())).unwrap();
    let mut command = trace.meta().command.clone();
    command.push(format!("--password={SECRET}").into_bytes());
    let meta = Metadata {
        command,
        ..trace.meta().clone()
    };
    let mut writer = Writer::new(Vec::new(), &Masked::trusted(meta.clone())).unwrap();
    rewrite::copy(&trace, &mut writer, |_, mut event| {
        if let LifeKind::Exec(exec) = &mut event.kind {
            let args = exec.argv.args().map(<[u8]>::to_vec);
            let more = [b"--password".to_vec(), SECRET.into()];
            exec.argv = Argv::from_args(args.chain(more).collect::<Vec<_>>());
            let name: Box<[u8]> = format!("--password={SECRET}").into_bytes().into();
            let sync = SyncFile {
                tid: exec.tid,
                tgid: exec.tgid,
                name: name.as_ref().into(),
            };
            let module = Module {
                number: 1,
                build_id: Box::default(),
                path: name.clone(),
                file: None,
            };
            let function = Function {
                name: name.clone(),
                file: name,
                line: 1,
            };
            let symbol = Symbol {
                frame: 1,
                functions: [function].into(),
            };
            let kinds = [
                LifeKind::SyncFile(Box::new(sync)),
                LifeKind::Module(Box::new(module)),
                LifeKind::Symbol(symbol),
            ];
            let more = kinds.map(|kind| LifeEvent {
                kind,
                ..event.clone()
            });
            return std::iter::once(event).chain(more).collect();
        }
        vec![event]
    });
    let (bytes, _) = writer
        .finish(&Masked::trusted(trace.summary().unwrap().clone()))
        .unwrap();
    let path = dir.join("old.bin");
    std::fs::write(&path, bytes).unwrap();
    path
}

/// A text in which every occurrence of the secret is masked.
fn masked(text: &str) -> String {
    text.replace(SECRET, "***")
}

#[test]
fn a_redacted_trace_differs_in_its_secrets_alone() {
    let dir = tempfile::tempdir().unwrap();
    let (old, new) = (old_trace(dir.path()), dir.path().join("new.bin"));
    let out = tr(&["redact", text(&old), "-o", text(&new)]);
    let said = String::from_utf8(out.stderr).unwrap();
    assert!(out.status.success(), "{said}");
    assert!(said.contains(" secrets masked, "), "{said}");
    assert!(tr(&["verify", text(&new)]).status.success());
    for args in [
        &["dump", "--format", "ndjson"][..],
        &["analyze", "--format", "json", "--report", "all"],
        &["info", "--format", "json"],
    ] {
        let of = |file| stdout(&[&[args[0], text(file)], &args[1..]].concat());
        let (before, after) = (of(&old), of(&new));
        assert!(args[0] == "info" || before.contains(SECRET));
        assert!(!after.contains(SECRET), "{args:?}");
        if args[0] == "info" {
            let without = |text: &str| {
                let mut info: Value = serde_json::from_str(text).unwrap();
                for size in ["bytes", "bytes_per_event"] {
                    info[size] = Value::Null;
                }
                info
            };
            assert_eq!(without(&masked(&before)), without(&after));
        } else {
            assert_eq!(masked(&before), after, "{args:?}");
        }
    }
    // A trace can be redacted in place. A second run finds nothing to mask.
    assert!(tr(&["redact", text(&old), "-o", text(&old)])
        .status
        .success());
    assert_eq!(std::fs::read(&old).unwrap(), std::fs::read(&new).unwrap());
    let out = tr(&["redact", text(&new), "-o", text(&new)]);
    let said = String::from_utf8(out.stderr).unwrap();
    assert!(said.contains(": 0 secrets masked, "), "{said}");
}

/// The demo's compilers are named `cc1` in the names of tasks, in command lines and in paths. A pattern must reach all
/// of them.
#[test]
fn a_pattern_reaches_names_and_paths() {
    let dir = tempfile::tempdir().unwrap();
    let demo = Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures/traces/demo.bin");
    let new = dir.path().join("new.bin");
    let pattern = "cc1|/demo|demo/";
    let out = tr(&["redact", text(&demo), "-o", text(&new), "--redact", pattern]);
    assert!(
        out.status.success(),
        "{}",
        String::from_utf8_lossy(&out.stderr)
    );
    for args in [
        &["dump", "--format", "ndjson"][..],
        &["info", "--format", "json"],
    ] {
        let of = |file| stdout(&[&[args[0], text(file)], &args[1..]].concat());
        let is_in = |text: &str| {
            ["cc1", "/demo", "demo/"]
                .iter()
                .any(|word| text.contains(word))
        };
        assert!(is_in(&of(&demo)), "{args:?}");
        assert!(!is_in(&of(&new)), "{args:?}");
    }
}

/// A copy of the demo's trace with a secret in every text besides the command lines, because an older tr did not mask
/// these texts.
fn trace_with_secrets_in_all_texts(dir: &Path) -> PathBuf {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures/traces/demo.bin");
    let trace = Trace::open(Source::bytes(std::fs::read(file).unwrap())).unwrap();
    let url = || format!("https://ci:{SECRET}@host.example/j");
    let bytes = || -> Box<[u8]> { url().into_bytes().into() };
    let pair = |name: &str| (name.to_owned(), url());
    let meta = Metadata {
        tool_version: url(),
        host: url(),
        kernel: url(),
        machine: url(),
        cwd: url().into_bytes(),
        scope: Scope::Cgroup(url().into_bytes()),
        missing: vec![Missing::new(None, &url())],
        ci: [
            "BUILD_URL",
            "GITHUB_SERVER_URL",
            "GITHUB_REF",
            "RUNNER_NAME",
            "TRACEPARENT",
        ]
        .map(pair)
        .into(),
        hardware: Some(vec![pair("cpu model")]),
        recorder: Some(url()),
        ..trace.meta().clone()
    };
    let mut writer = Writer::new(Vec::new(), &Masked::trusted(meta)).unwrap();
    let mut added = false;
    rewrite::copy(&trace, &mut writer, |stream, mut event| {
        if let LifeKind::Exec(exec) = &mut event.kind {
            exec.filename = url().into_bytes().into();
            exec.comm = Comm::new(b"token=hunter2hunter2");
        }
        if added || stream != Stream::Recorder {
            return vec![event];
        }
        added = true;
        let (tid, tgid) = (Tid(1), Tgid(1));
        let kinds = [
            LifeKind::Mark(Mark {
                name: bytes(),
                kind: bytes(),
                result: bytes(),
                id: bytes(),
                ..Mark::default()
            }),
            LifeKind::CgroupPath(CgroupPath {
                id: CgroupId(7),
                path: bytes(),
            }),
            LifeKind::Degraded(Degraded { what: bytes() }),
            LifeKind::DnsQuery(Box::new(DnsQuery {
                name: bytes(),
                ..DnsQuery::default()
            })),
            LifeKind::Container(Box::new(Container {
                id: bytes().into(),
                name: bytes().into(),
                image: bytes().into(),
                tid,
                tgid,
                ..Container::default()
            })),
        ];
        let more = kinds.map(|kind| LifeEvent {
            kind,
            ..event.clone()
        });
        std::iter::once(event.clone()).chain(more).collect()
    });
    let why = Masked::trusted(url());
    let (bytes, _) = writer.finish_cut(7, 77, why).unwrap();
    let path = dir.join("texts.bin");
    std::fs::write(&path, bytes).unwrap();
    path
}

#[test]
fn every_text_of_an_old_recording_is_listed_and_masked() {
    let dir = tempfile::tempdir().unwrap();
    let old = trace_with_secrets_in_all_texts(dir.path());
    let new = dir.path().join("new.bin");
    let of = |file: &Path, args: &[&str]| {
        let out = tr(&[args, &[text(file)]].concat());
        assert!(out.status.success(), "{args:?}");
        // Messages about the end of the trace are printed on standard error, so both streams are searched.
        String::from_utf8_lossy(&[out.stdout, out.stderr].concat()).into_owned()
    };
    let listed: Value = serde_json::from_str(&stdout(&[
        "info",
        "--secrets",
        "--format",
        "json",
        text(&old),
    ]))
    .unwrap();
    let found: BTreeSet<(String, String)> = list(&listed, "texts")
        .iter()
        .map(|found| {
            let field = found["field"].as_str().map(str::to_owned);
            let number = || found["number"].to_string();
            let of = found["of"].as_str().unwrap().to_owned();
            (of, field.unwrap_or_else(number))
        })
        .collect();
    let fields = [
        "BUILD_URL",
        "GITHUB_REF",
        "GITHUB_SERVER_URL",
        "RUNNER_NAME",
        "TRACEPARENT",
        "cpu model",
        "cwd",
        "host",
        "kernel",
        "machine",
        "missing",
        "recorder",
        "scope",
        "tool_version",
    ];
    let events = [
        ("cgroup_path", 1),
        ("container", 1),
        ("container", 2),
        ("container", 3),
        ("degraded", 1),
        ("dns_query", 1),
        ("end", 1),
        ("exec", 1),
        ("exec", 2),
        ("mark", 1),
        ("mark", 2),
        ("mark", 3),
        ("mark", 4),
    ];
    let fields = fields.map(|field| ("metadata".to_owned(), field.to_owned()));
    let events = events.map(|(of, number)| (of.to_owned(), number.to_string()));
    let expected: BTreeSet<_> = fields.into_iter().chain(events).collect();
    assert_eq!(found, expected);
    let listing = of(&old, &["info", "--secrets"]);
    let listing = listing
        .lines()
        .filter(|line| !line.contains("ends at frame"));
    assert!(!listing.collect::<String>().contains(SECRET));
    let out = tr(&["redact", text(&old), "-o", text(&new)]);
    assert!(out.status.success());
    for args in [
        &["dump", "--format", "ndjson"][..],
        &["info", "--format", "json"],
        &["export", "--format", "otlp", "-o", "-"],
    ] {
        assert!(of(&old, args).contains("hunter2"), "{args:?}");
        assert!(!of(&new, args).contains("hunter2"), "{args:?}");
    }
    let none = stdout(&["info", "--secrets", text(&new)]);
    assert_eq!(none, "no secrets found\n");
}

#[test]
fn secrets_are_listed_by_place() {
    let dir = tempfile::tempdir().unwrap();
    let old = old_trace(dir.path());
    let json: Value = serde_json::from_str(&stdout(&[
        "info",
        "--secrets",
        "--format",
        "json",
        text(&old),
    ]))
    .unwrap();
    let lines = list(&json, "command_lines");
    let execs = stdout(&["dump", "--format", "ndjson", text(&old)]);
    let execs: Vec<Value> = execs
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .filter(|event: &Value| event["kind"] == "exec")
        .collect();
    assert_eq!(lines.len(), execs.len() + 1);
    assert_eq!(lines[0]["pid"], Value::Null);
    for exec in &execs {
        let last = list(exec, "argv").len() - 1;
        let found = lines.iter().any(|line| {
            let places = list(line, "places");
            line["pid"] == exec["tgid"]
                && places
                    .iter()
                    .any(|place| place["argument"] == last && place["to"] == SECRET.len())
        });
        assert!(found, "{exec}");
    }
    let text_form = stdout(&["info", "--secrets", text(&old)]);
    assert!(!text_form.contains(SECRET), "{text_form}");
    assert!(text_form.contains("tr redact "), "{text_form}");
    let demo = Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures/traces/demo.bin");
    let none = stdout(&["info", "--secrets", text(&demo)]);
    assert_eq!(none, "no secrets found\n");
}

#[test]
fn a_truncated_trace_is_redacted_up_to_its_end() {
    let dir = tempfile::tempdir().unwrap();
    let (old, new) = (old_trace(dir.path()), dir.path().join("new.bin"));
    let bytes = std::fs::read(&old).unwrap();
    std::fs::write(&old, &bytes[..bytes.len() * 3 / 4]).unwrap();
    let out = tr(&["redact", text(&old), "-o", text(&new)]);
    let said = String::from_utf8(out.stderr).unwrap();
    assert!(
        out.status.success() && said.contains("ends at frame"),
        "{said}"
    );
    let dump = |file| masked(&stdout(&["dump", text(file)]));
    assert_eq!(dump(&old), dump(&new));
    assert!(!stdout(&["dump", text(&new)]).contains(SECRET));
    let missing = tr(&["redact", "absent.bin", "-o", text(&new)]);
    assert_eq!(missing.status.code(), Some(2));
    let nowhere = tr(&["redact", text(&old), "-o", &format!("{ABSENT}/x")]);
    assert_eq!(nowhere.status.code(), Some(1));
}

/// Masks the addresses and host names of a trace that was recorded without `--mask-addresses`.
#[test]
fn addresses_are_masked_on_demand() {
    let dir = tempfile::tempdir().unwrap();
    let facts = Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures/format/3.4.bin");
    let trace = Trace::open(Source::bytes(std::fs::read(facts).unwrap())).unwrap();
    let mut writer = Writer::new(Vec::new(), &Masked::trusted(trace.meta().clone())).unwrap();
    let (mut ends, mut queries) = (0, 0);
    rewrite::copy(&trace, &mut writer, |_, mut event| {
        let outside = Address::V4([10, 7, 7, 7].into());
        match &mut event.kind {
            LifeKind::Connect(connect) => {
                connect.remote.address = outside;
                ends += 1;
            }
            LifeKind::DnsQuery(query) => {
                query.server = outside;
                query.name = b"secret.example".as_slice().into();
                queries += 1;
            }
            LifeKind::DnsAnswer(answer) => answer.server = outside,
            _ => {}
        }
        vec![event]
    });
    assert!(ends > 0 && queries > 0, "{ends} {queries}");
    let (bytes, _) = writer
        .finish(&Masked::trusted(trace.summary().unwrap().clone()))
        .unwrap();
    let (old, new) = (dir.path().join("old.bin"), dir.path().join("new.bin"));
    std::fs::write(&old, bytes).unwrap();
    let before = stdout(&["dump", text(&old)]);
    assert!(before.contains("10.7.7.7") && before.contains("secret.example"));
    let plain = tr(&["redact", text(&old), "-o", text(&new)]);
    assert!(plain.status.success());
    assert_eq!(stdout(&["dump", text(&new)]), before);
    let out = tr(&["redact", text(&old), "--mask-addresses", "-o", text(&new)]);
    assert!(out.status.success());
    let after = stdout(&["dump", text(&new)]);
    assert!(!after.contains("10.7.7.7") && !after.contains("secret.example"));
    let expected = before
        .replace("10.7.7.7", "host-1")
        .replace("secret.example", "name-1");
    assert_eq!(after, expected);
}
