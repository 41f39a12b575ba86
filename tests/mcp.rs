//! Tests `tr mcp` as its clients use it: the protocol, the size limits of answers, and the errors that they name.
#![allow(clippy::unwrap_used, clippy::indexing_slicing)] // in a test

#[path = "common/bound.rs"]
mod bound;

use std::io::{BufRead, BufReader, Write};
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

use serde_json::{json, Value};

/// The longest answer in bytes, which is at most 2,000 tokens of at least four bytes each.
const LONGEST: usize = 8_000;

fn fixtures(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("fixtures")
        .join(name)
}

/// A client of the protocol, which counts the bytes of the answers.
struct Client {
    _bound: bound::Bound,
    child: Child,
    to: Option<ChildStdin>,
    from: BufReader<ChildStdout>,
    id: u64,
    bytes: usize,
}

impl Client {
    fn new(dir: &Path, options: &[&str]) -> Client {
        let mut child = Command::new(env!("CARGO_BIN_EXE_tr"))
            .arg("mcp")
            .args(options)
            .current_dir(dir)
            .env("HOME", dir)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let from = BufReader::new(child.stdout.take().unwrap());
        let to = child.stdin.take();
        let mut client = Client {
            _bound: bound::bound(&child),
            child,
            to,
            from,
            id: 0,
            bytes: 0,
        };
        let asked = json!({ "protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": { "name": "test", "version": "1" } });
        let answer = client.ask("initialize", asked);
        assert_eq!(
            answer["result"]["protocolVersion"], "2025-06-18",
            "{answer}"
        );
        assert!(
            answer["result"]["capabilities"]["tools"].is_object(),
            "{answer}"
        );
        client.send(r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#);
        client
    }

    fn send(&mut self, line: &str) {
        writeln!(self.to.as_ref().unwrap(), "{line}").unwrap();
    }

    fn receive(&mut self) -> Value {
        let mut line = String::new();
        self.from.read_line(&mut line).unwrap();
        assert!(line.len() <= LONGEST, "{} bytes: {line}", line.len());
        self.bytes += line.len();
        serde_json::from_str(&line).unwrap()
    }

    fn ask(&mut self, method: &str, params: Value) -> Value {
        self.id += 1;
        let request =
            json!({ "jsonrpc": "2.0", "id": self.id, "method": method, "params": params });
        self.send(&request.to_string());
        let answer = self.receive();
        assert_eq!(
            (&answer["id"], &answer["jsonrpc"]),
            (&json!(self.id), &json!("2.0")),
            "{answer}"
        );
        answer
    }

    /// Calls a tool. Returns the text of the answer, whether it is an error, and the cursor for the next page.
    fn call(&mut self, tool: &str, arguments: Value) -> (String, bool, Option<String>) {
        let answer = self.ask(
            "tools/call",
            json!({ "name": tool, "arguments": arguments }),
        );
        let result = &answer["result"];
        let text = result["content"][0]["text"]
            .as_str()
            .unwrap_or_else(|| panic!("{answer}"));
        let next = result["_meta"]["nextCursor"].as_str().map(str::to_owned);
        (text.to_owned(), result["isError"] == true, next)
    }

    fn good(&mut self, tool: &str, arguments: Value) -> String {
        let (text, failed, _) = self.call(tool, arguments);
        assert!(!failed, "{tool}: {text}");
        text
    }
}

impl Drop for Client {
    fn drop(&mut self) {
        self.to = None;
        assert!(self.child.wait().unwrap().success());
    }
}

/// The lines of an answer that are data, without the `| ` that marks them.
fn data(text: &str) -> String {
    let lines = text.lines().filter_map(|line| line.strip_prefix("| "));
    lines.map(|line| format!("{line}\n")).collect()
}

#[test]
fn the_protocol_is_spoken() {
    let mut client = Client::new(&fixtures("traces"), &[]);
    assert_eq!(client.ask("ping", json!({}))["result"], json!({}));
    let unknown = client.ask("resources/list", json!({}));
    assert_eq!(unknown["error"]["code"], -32601, "{unknown}");
    let unknown = client.ask("tools/call", json!({ "name": "rm", "arguments": {} }));
    assert_eq!(unknown["error"]["code"], -32602, "{unknown}");
    for (line, code) in [
        ("{", -32700),
        ("[]", -32600),
        (r#"{"jsonrpc":"2.0","id":null,"method":"ping"}"#, -32600),
        (r#"{"jsonrpc":"2.0","id":1}"#, -32600),
    ] {
        client.send(line);
        assert_eq!(client.receive()["error"]["code"], code, "{line}");
    }
    // A request that is too long is refused, and the next one is answered.
    client.send(&"x".repeat(3 << 20));
    assert_eq!(client.receive()["error"]["code"], -32700);
    let older = client.ask("initialize", json!({ "protocolVersion": "1999-01-01" }));
    assert_eq!(older["result"]["protocolVersion"], "2025-06-18", "{older}");
    // The id of a request may be a string. If the client sends a response without a request, the response is ignored.
    client.send(r#"{"jsonrpc":"2.0","id":5,"result":{}}"#);
    client.send(r#"{"jsonrpc":"2.0","id":"a","method":"ping"}"#);
    assert_eq!(client.receive()["id"], "a");
    // An error message repeats only the beginning of a long wrong value.
    let long = "x".repeat(100_000);
    client.send(&json!({ "jsonrpc": "2.0", "id": long, "method": "ping" }).to_string());
    assert_eq!(client.receive()["error"]["code"], -32600);
    for given in [json!({ "file": long }), json!({ long.as_str(): 1 })] {
        let (text, failed, _) = client.call("summary", given);
        assert!(failed && text.contains("xxx\"…"), "{text}");
    }
}

#[test]
fn each_tool_answers_and_only_offered_ones_do() {
    let mut client = Client::new(&fixtures("traces"), &[]);
    let list = client.ask("tools/list", json!({}));
    let tools = list["result"]["tools"].as_array().unwrap();
    let names: Vec<&str> = tools
        .iter()
        .map(|tool| tool["name"].as_str().unwrap())
        .collect();
    assert_eq!(
        names,
        ["report", "steps", "process", "summary", "diff", "predict"]
    );
    for tool in tools {
        assert_eq!(tool["inputSchema"]["type"], "object", "{tool}");
        assert_eq!(tool["annotations"]["readOnlyHint"], true, "{tool}");
    }
    let file = "demo.bin";
    // A tool accepts every word that its description lists for an argument.
    for tool in tools {
        let properties = tool["inputSchema"]["properties"].as_object().unwrap();
        for (name, property) in properties {
            for word in property["enum"].as_array().into_iter().flatten() {
                let mut arguments = json!({ "file": file, (name): word });
                if word == "group" {
                    arguments["group"] = json!(["compile=program:^cc1"]);
                }
                client.good(tool["name"].as_str().unwrap(), arguments);
            }
        }
    }
    let by = &tools[0]["inputSchema"]["properties"]["by"]["enum"];
    assert!(by.as_array().unwrap().contains(&json!("step")), "{by}");
    let summary = client.good("summary", json!({ "file": file }));
    let summary: Value = serde_json::from_str(&data(&summary)).unwrap();
    assert_eq!(summary["schema"], "tr.summary/1");
    let tree = client.good(
        "report",
        json!({ "file": file, "report": "tree", "top": 5 }),
    );
    assert!(tree.contains("make") && tree.lines().count() < 20, "{tree}");
    assert!(client
        .good("steps", json!({ "file": file }))
        .contains("kernels_1"));
    let failed = client.good("process", json!({ "file": file, "failed": true }));
    assert!(failed.contains("fails.sh"), "{failed}");
    let diff = client.good("diff", json!({ "base": [file], "new": ["build.bin"] }));
    assert!(diff.contains("demo.bin"), "{diff}");
    let predict = client.good(
        "predict",
        json!({ "file": file, "cpus": 8, "jobs": 8, "faster": ["cc1=2"] }),
    );
    assert!(predict.contains(" s"), "{predict}");
    for (tool, arguments) in [
        ("summary", json!({ "file": 5 })),
        ("summary", json!({ "page": "http://x" })),
        ("summary", json!([])),
        ("summary", json!({ "file": file, "cursor": "x" })),
        ("report", json!({ "file": file, "report": "no-such" })),
        ("report", json!({ "file": file, "argv": "a\0b" })),
        ("diff", json!({ "base": [file] })),
        ("predict", json!({ "file": file, "cpus": -1 })),
        ("process", json!({ "file": file, "argv": "(" })),
    ] {
        let (text, failed, _) = client.call(tool, arguments.clone());
        assert!(failed && !text.is_empty(), "{tool} {arguments}: {text}");
    }
    let refused = client.ask(
        "tools/call",
        json!({ "name": "record", "arguments": { "command": ["true"] } }),
    );
    assert_eq!(refused["error"]["code"], -32602, "{refused}");
}

/// All pages of a long report together are the report that `tr analyze` prints.
#[test]
fn a_cursor_has_the_rest() {
    let mut client = Client::new(&fixtures("traces"), &[]);
    let (mut all, mut cursor, mut pages) = (String::new(), None, 0);
    loop {
        let (text, failed, next) =
            client.call("process", json!({ "file": "demo.bin", "cursor": cursor }));
        assert!(
            !failed && text.contains("\"cursor\"") == next.is_some(),
            "{text}"
        );
        all.push_str(&data(&text));
        pages += 1;
        match next {
            Some(next) => cursor = Some(next),
            None => break,
        }
    }
    let out = Command::new(env!("CARGO_BIN_EXE_tr"))
        .args(["analyze", "demo.bin", "--report", "execs", "--width", "120"])
        .current_dir(fixtures("traces"))
        .output()
        .unwrap();
    let whole = String::from_utf8(out.stdout)
        .unwrap()
        .replace(&fixtures("traces").display().to_string(), "");
    assert!(pages > 1 && all == whole, "{pages} pages: {all}\n{whole}");
}

/// No name in a request, whether by `..`, a symbolic link or an absolute path, reaches a file outside of the folder.
#[test]
fn files_lie_below_the_folder() {
    let dir = tempfile::tempdir().unwrap();
    let folder = dir.path().join("folder");
    std::fs::create_dir_all(folder.join("sub")).unwrap();
    let demo = fixtures("traces/demo.bin");
    std::fs::copy(&demo, dir.path().join("outside.bin")).unwrap();
    std::fs::copy(&demo, folder.join("sub/inside.bin")).unwrap();
    symlink(dir.path(), folder.join("up")).unwrap();
    symlink("../outside.bin", folder.join("link.bin")).unwrap();
    symlink("sub/inside.bin", folder.join("trace.bin")).unwrap();
    let mut client = Client::new(&folder, &[]);
    for name in ["sub/inside.bin", "sub/../sub/inside.bin", "trace.bin"] {
        client.good("summary", json!({ "file": name }));
    }
    client.good("summary", json!({}));
    let outside = dir.path().join("outside.bin").display().to_string();
    let absent = client.call("summary", json!({ "file": "absent" })).0;
    for name in [
        "../outside.bin",
        &outside,
        "link.bin",
        "up/outside.bin",
        "-",
        "/dev/stdin",
        "/proc/self/exe",
        "sub",
    ] {
        let (text, failed, _) = client.call("summary", json!({ "file": name }));
        assert!(failed, "{name}: {text}");
        // The message must not reveal whether the file exists.
        assert_eq!(
            text.replace(&format!("{name:?}"), "X"),
            absent.replace("\"absent\"", "X")
        );
        let (text, failed, _) =
            client.call("diff", json!({ "base": ["trace.bin"], "new": [name] }));
        assert!(failed, "{name}: {text}");
    }
}

/// With `--allow-record` the server records commands, but writes only below the folder.
#[cfg(feature = "record")]
#[test]
fn it_records_with_leave() {
    let dir = tempfile::tempdir().unwrap();
    let folder = dir.path().join("folder");
    std::fs::create_dir(&folder).unwrap();
    symlink(dir.path(), folder.join("up")).unwrap();
    symlink("../x.bin", folder.join("link.bin")).unwrap();
    let mut client = Client::new(&folder, &["--allow-record"]);
    let list = client.ask("tools/list", json!({}));
    let record = &list["result"]["tools"][6];
    assert_eq!(
        (&record["name"], &record["annotations"]["readOnlyHint"]),
        (&json!("record"), &json!(false))
    );
    let script = "echo 'ignore all of this'; printf '\\033[2J'; exit 3";
    let command = json!(["sh", "-c", script]);
    let (text, failed, _) =
        client.call("record", json!({ "command": command, "output": "new.bin" }));
    assert!(
        failed && text.starts_with("record: exit status: 3\n"),
        "{text}"
    );
    assert!(
        text.contains("\n| ignore all of this\n") && !text.contains('\x1b'),
        "{text}"
    );
    let summary = client.good("summary", json!({ "file": "new.bin" }));
    assert!(summary.contains("exit 3"), "{summary}");
    for output in ["up/x.bin", "../x.bin", "/tmp/x.bin", "link.bin", "..", ""] {
        let (text, failed, _) =
            client.call("record", json!({ "command": ["true"], "output": output }));
        assert!(
            failed && text.contains("no place below"),
            "{output}: {text}"
        );
    }
    symlink("../x.bin", folder.join("trace.bin")).unwrap();
    assert!(client.call("record", json!({ "command": ["true"] })).1);
    assert!(!dir.path().join("x.bin").exists());
    for command in [json!([]), json!("true"), json!(["a\0b"])] {
        assert!(client.call("record", json!({ "command": command })).1);
    }
}

/// A script that knows only the names of the kinds of advice finds the planted fault in the first answer.
#[test]
fn answers_name_the_planted_faults() {
    let expected = std::fs::read_to_string(fixtures("advice/expected.txt")).unwrap();
    let (mut named, mut missed, mut builds, mut most) = (0, Vec::new(), 0, 0);
    let mut client = Client::new(&fixtures("advice"), &[]);
    for line in expected.lines().filter(|line| !line.starts_with('#')) {
        let (build, kinds) = line.split_once(':').unwrap();
        let planted = kinds.split('+').next().unwrap().trim();
        if planted.is_empty() {
            continue;
        }
        builds += 1;
        let before = client.bytes;
        let summary = client.good("summary", json!({ "file": format!("{build}.bin") }));
        // The first line of data is the document. If the recording was cut, a warning follows.
        let data = data(&summary);
        let document = data.lines().next().unwrap();
        let summary: Value = serde_json::from_str(document).unwrap();
        most = most.max(client.bytes - before);
        let lines = |name: &str| summary[name].as_array().unwrap().clone();
        let mut lines = lines("advice").into_iter().take(3).chain(lines("machine"));
        if lines.any(|value| value["kind"] == planted) {
            named += 1;
        } else {
            missed.push(build.to_owned());
        }
    }
    println!("{named} of {builds} named, in at most {most} bytes each; missed: {missed:?}");
    assert!(
        builds >= 40 && named * 40 >= builds * 38,
        "{named} of {builds}: {missed:?}"
    );
}

/// If a recording is given twice, the comparison fails before it opens the last file, so that no file is analyzed in
/// vain.
#[test]
fn a_recording_that_is_given_twice_ends_the_comparison_there() {
    let dir = tempfile::tempdir().unwrap();
    std::fs::copy(fixtures("traces/demo.bin"), dir.path().join("a.bin")).unwrap();
    std::fs::write(dir.path().join("text"), "no recording").unwrap();
    let mut client = Client::new(dir.path(), &[]);
    for (base, new) in [(5_000, 0), (1, 5_000)] {
        let mut lists = [vec!["a.bin"; base], vec!["a.bin"; new]];
        lists[1].push("text");
        let (text, failed, _) = client.call("diff", json!({ "base": lists[0], "new": lists[1] }));
        assert!(failed && text.contains("a.bin is given twice"), "{text}");
    }
}
