//! Imitates the parts of the HTTP interfaces of GitHub and GitLab that the kits call.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex, MutexGuard};

use serde_json::{json, Value};

/// The content of the imitated forge, and the requests that it has received.
#[derive(Default)]
pub struct State {
    /// The method and the target of each request.
    pub requests: Vec<String>,
    /// The targets of the requests that carried GitLab's token.
    pub trusted: Vec<String>,
    /// The address of another server that has GitLab's artifacts. `None` if the forge has them itself.
    pub storage: Option<String>,
    /// The comments on the only pull request.
    pub comments: Vec<Value>,
    /// The answer to a search for pull requests by their head.
    pub pulls: Vec<Value>,
    /// The artifacts of earlier runs, newest first.
    pub artifacts: Vec<Value>,
    /// The contents of artifacts by id, and of downloads by path.
    pub files: BTreeMap<String, Vec<u8>>,
    /// The uploaded artifacts by name: their bytes, and the requests that began and ended the upload.
    pub uploads: BTreeMap<String, (Vec<u8>, Value, Value)>,
}

pub struct Forge {
    pub url: String,
    state: Arc<Mutex<State>>,
}

impl Forge {
    pub fn start() -> Forge {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let state = Arc::new(Mutex::new(State::default()));
        let (shared, own) = (Arc::clone(&state), url.clone());
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let (shared, own) = (Arc::clone(&shared), own.clone());
                std::thread::spawn(move || serve(&stream, &own, &shared));
            }
        });
        Forge { url, state }
    }

    pub fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap()
    }

    /// Adds an artifact of a successful run of a branch. With `fork` the run belongs to a stranger's repository.
    pub fn keep(&self, id: u64, name: &str, branch: &str, fork: bool, bytes: Vec<u8>) {
        let repository = if fork { 666 } else { 1 };
        let mut state = self.state();
        state.artifacts.push(json!({
            "id": id, "name": name, "expired": false,
            "workflow_run": { "id": 1000 + id, "head_branch": branch,
                "repository_id": 1, "head_repository_id": repository },
        }));
        state.files.insert(id.to_string(), bytes);
    }
}

fn serve(stream: &TcpStream, own: &str, state: &Mutex<State>) {
    let mut reader = BufReader::new(stream);
    let mut first = String::new();
    if reader.read_line(&mut first).is_err() || first.is_empty() {
        return;
    }
    let (mut length, mut token, mut line) = (0, false, String::new());
    while reader.read_line(&mut line).is_ok_and(|read| read > 2) {
        let header = line.to_ascii_lowercase();
        if let Some(value) = header.strip_prefix("content-length:") {
            length = value.trim().parse().unwrap();
        }
        token |= header.starts_with("private-token:") || header.starts_with("authorization:");
        line.clear();
    }
    let mut body = vec![0; length];
    reader.read_exact(&mut body).unwrap();
    let mut words = first.split(' ');
    let (method, target) = (words.next().unwrap(), words.next().unwrap());
    let mut state = state.lock().unwrap();
    state.requests.push(format!("{method} {target}"));
    if token {
        state.trusted.push(target.to_owned());
    }
    let (status, bytes) = answer(&mut state, own, (method, target), &body);
    // For a redirection `answer` returns the target as the bytes.
    let place = match status {
        302 => format!("location: {}\r\n", String::from_utf8_lossy(&bytes)),
        _ => String::new(),
    };
    let head = format!(
        "HTTP/1.1 {status} X\r\n{place}content-length: {}\r\nconnection: close\r\n\r\n",
        bytes.len()
    );
    let mut stream = stream;
    let _ = stream.write_all(&[head.as_bytes(), &bytes].concat());
}

const TWIRP: &str = "/twirp/github.actions.results.api.v1.ArtifactService/";

fn answer(state: &mut State, own: &str, ask: (&str, &str), body: &[u8]) -> (u16, Vec<u8>) {
    let (method, target) = ask;
    let (path, query) = target.split_once('?').unwrap_or((target, ""));
    let sent: Value = serde_json::from_slice(body).unwrap_or_default();
    let found = |value: Value| (200, value.to_string().into_bytes());
    let file = |files: &BTreeMap<String, Vec<u8>>, name: &str| match files.get(name) {
        Some(bytes) => (200, bytes.clone()),
        None => (404, b"{}".to_vec()),
    };
    if let Some(call) = path.strip_prefix(TWIRP) {
        let name = sent["name"].as_str().unwrap().to_owned();
        assert_eq!(
            sent["workflow_run_backend_id"], "run-id",
            "from the runner's token"
        );
        if call == "CreateArtifact" {
            let url = format!("{own}/storage/{name}");
            state.uploads.insert(name, (Vec::new(), sent, Value::Null));
            return found(json!({ "ok": true, "signed_upload_url": url }));
        }
        let id = 9000 + state.uploads.len();
        state.uploads.get_mut(&name).unwrap().2 = sent;
        return found(json!({ "ok": true, "artifact_id": id.to_string() }));
    }
    if let Some(name) = path.strip_prefix("/storage/") {
        state.uploads.get_mut(name).unwrap().0 = body.to_vec();
        return (201, Vec::new());
    }
    if let Some(place) = path.strip_prefix("/api/v4/") {
        return gitlab(state, (method, place), body);
    }
    let Some(place) = path.strip_prefix("/api/repos/owner/project/") else {
        return file(&state.files, path);
    };
    let parts: Vec<&str> = place.split('/').collect();
    match (method, parts.as_slice()) {
        ("GET", ["actions", "runs"]) => {
            let all = state.artifacts.iter();
            let runs: Vec<Value> = all
                .map(|value| json!({ "id": value["workflow_run"]["id"] }))
                .collect();
            found(json!({ "workflow_runs": runs }))
        }
        ("GET", ["actions", "artifacts"] | ["actions", "runs", _, "artifacts"]) => {
            let wanted = |value: &&Value| {
                let name = value["name"].as_str().unwrap();
                let run = value["workflow_run"]["id"].to_string();
                query.contains(&format!("name={name}"))
                    && parts.get(2).is_none_or(|of| *of == run || parts.len() < 4)
            };
            let all: Vec<&Value> = state.artifacts.iter().filter(wanted).collect();
            found(json!({ "artifacts": all }))
        }
        ("GET", ["actions", "artifacts", id, "zip"]) => file(&state.files, id),
        ("GET", ["pulls"]) => found(json!(state.pulls)),
        ("GET", ["issues", "5", "comments"]) => found(json!(state.comments)),
        ("POST", ["issues", "5", "comments"]) => {
            let id = 100 + state.comments.len();
            let bot = json!({ "login": "github-actions[bot]", "type": "Bot" });
            let comment = json!({ "id": id, "body": sent["body"], "user": bot });
            state.comments.push(comment.clone());
            (201, comment.to_string().into_bytes())
        }
        ("PATCH", ["issues", "comments", id]) => {
            let mut all = state.comments.iter_mut();
            let comment = all
                .find(|value| value["id"].as_u64() == id.parse().ok())
                .unwrap();
            comment["body"] = sent["body"].clone();
            found(comment.clone())
        }
        _ => (404, b"{}".to_vec()),
    }
}

fn gitlab(state: &mut State, ask: (&str, &str), body: &[u8]) -> (u16, Vec<u8>) {
    const NOTES: &str = "projects/3/merge_requests/5/notes";
    let found = |value: &Value| (200, value.to_string().into_bytes());
    let text = || {
        let form = std::str::from_utf8(body)
            .unwrap()
            .strip_prefix("body=")
            .unwrap();
        json!(decoded(form))
    };
    match ask {
        ("GET", "user") => found(&json!({ "id": 7 })),
        ("GET", NOTES) => found(&json!(state.comments)),
        ("POST", NOTES) => {
            let id = 100 + state.comments.len();
            let note = json!({ "id": id, "body": text(), "author": { "id": 7 } });
            state.comments.push(note.clone());
            found(&note)
        }
        ("PUT", place) => {
            let id = place.strip_prefix(NOTES).unwrap().trim_start_matches('/');
            let mut all = state.comments.iter_mut();
            let note = all
                .find(|value| value["id"].as_u64() == id.parse().ok())
                .unwrap();
            note["body"] = text();
            found(note)
        }
        ("GET", place) if place.starts_with("projects/3/jobs/artifacts/") => {
            match (&state.storage, state.files.get("base")) {
                (Some(storage), _) => (302, format!("{storage}/signed").into_bytes()),
                (None, Some(bytes)) => (200, bytes.clone()),
                (None, None) => (404, Vec::new()),
            }
        }
        _ => (404, Vec::new()),
    }
}

/// A value of a form without its percent-encoding.
fn decoded(form: &str) -> String {
    let mut parts = form.split('%');
    let mut bytes = parts.next().unwrap().replace('+', " ").into_bytes();
    for part in parts {
        bytes.push(u8::from_str_radix(&part[..2], 16).unwrap());
        bytes.extend(part[2..].replace('+', " ").bytes());
    }
    String::from_utf8(bytes).unwrap()
}
