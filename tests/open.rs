//! Tests `tr open`: a browser gets a file that only the user can read; without a display the page is served to
//! everybody who knows its secret path.
#![allow(clippy::expect_used, clippy::indexing_slicing, clippy::unwrap_used)] // in a test

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

mod common;

const RECORDING: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/fixtures/traces/demo.bin");

/// The command `tr open`, as on a machine without a display.
fn tr_open() -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_tr"));
    command.args(["open", RECORDING]);
    for variable in ["BROWSER", "DISPLAY", "WAYLAND_DISPLAY", "WSL_DISTRO_NAME"] {
        command.env_remove(variable);
    }
    command
}

/// A server that is killed when the test ends.
struct Server(Child);

impl Drop for Server {
    fn drop(&mut self) {
        drop(self.0.kill());
        drop(self.0.wait());
    }
}

/// The server's answer to a request.
fn ask(port: &str, request: &str) -> String {
    let mut stream = TcpStream::connect(format!("127.0.0.1:{port}")).unwrap();
    stream
        .set_read_timeout(Some(Duration::from_secs(60)))
        .unwrap();
    stream.write_all(request.as_bytes()).unwrap();
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer).unwrap();
    String::from_utf8_lossy(&answer).into_owned()
}

#[test]
fn without_a_display_the_page_is_served_below_a_secret_path() {
    let mut command = tr_open();
    command
        .env("SSH_CONNECTION", "10.0.0.1 40000 10.0.0.2 2222")
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    let mut server = Server(command.spawn().unwrap());
    let mut address = String::new();
    let out = server.0.stdout.take().unwrap();
    BufReader::new(out).read_line(&mut address).unwrap();
    let rest = address.trim().strip_prefix("http://127.0.0.1:").unwrap();
    let (port, path) = rest.split_once('/').unwrap();
    assert_eq!(path.trim_end_matches('/').len(), 32, "{path}");
    let get = |path: &str, host: &str| {
        let request = format!("GET {path} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n");
        ask(port, &request)
    };
    let own = format!("127.0.0.1:{port}");
    let page = get(&format!("/{path}"), &own);
    assert!(page.starts_with("HTTP/1.1 200 "), "{}", &page[..200]);
    assert!(page.contains("text/html") && page.contains("<html"));
    let head = ask(
        port,
        &format!("HEAD /{path} HTTP/1.1\r\nHost: {own}\r\nConnection: close\r\n\r\n"),
    );
    assert!(head.starts_with("HTTP/1.1 200 ") && !head.contains("<html"));
    let localhost = get(&format!("/{path}"), &format!("localhost:{port}"));
    assert!(localhost.starts_with("HTTP/1.1 200 "));
    let long = "x".repeat(100_000);
    for (path, host) in [
        ("/", own.as_str()),
        ("/favicon.ico", own.as_str()),
        (&format!("/{path}"), "rebound.example:80"),
        (&format!("/{path}../"), own.as_str()),
    ] {
        let answer = get(path, host);
        assert!(answer.starts_with("HTTP/1.1 404 "), "{path}: {answer}");
        assert!(!answer.contains("<html"), "{path}");
    }
    // Nonsense must not stop the server.
    for nonsense in [
        "",
        "\r\n\r\n",
        "GET\r\n\r\n",
        "POST / HTTP/1.1\r\n\r\n",
        &long,
    ] {
        let mut stream = TcpStream::connect(&own).unwrap();
        drop(stream.write_all(nonsense.as_bytes()));
    }
    assert!(get(&format!("/{path}"), &own).starts_with("HTTP/1.1 200 "));
    nix::sys::signal::kill(
        nix::unistd::Pid::from_raw(server.0.id() as i32),
        nix::sys::signal::Signal::SIGINT,
    )
    .unwrap();
    server.0.wait().unwrap();
    let mut said = String::new();
    server
        .0
        .stderr
        .take()
        .unwrap()
        .read_to_string(&mut said)
        .unwrap();
    assert!(
        said.contains(&format!("ssh -p 2222 -L {port}:127.0.0.1:{port} ")),
        "{said}"
    );
}

#[test]
fn a_browser_gets_a_private_file() {
    let directory = tempfile::tempdir().unwrap();
    let (browser, opened) = (
        directory.path().join("browser"),
        directory.path().join("opened"),
    );
    let text = format!("#!/bin/sh\nprintf %s \"$2\" > {}\n", opened.display());
    common::write_program(&browser, text).unwrap();
    // The first browser of the list does not exist, so the second one is started.
    let list = format!("/nowhere/browser:{} -new %s", browser.display());
    let out = tr_open()
        .env("BROWSER", list)
        .env("TMPDIR", directory.path())
        .output()
        .unwrap();
    assert!(
        out.status.success(),
        "{}",
        String::from_utf8_lossy(&out.stderr)
    );
    let address = std::fs::read_to_string(&opened).unwrap();
    let file = Path::new(address.strip_prefix("file://").unwrap());
    assert!(std::fs::read_to_string(file).unwrap().contains("<html"));
    let mode = std::fs::metadata(file.parent().unwrap())
        .unwrap()
        .permissions()
        .mode();
    assert_eq!(mode & 0o777, 0o700);
    let failed = tr_open()
        .env("BROWSER", "/nowhere/browser")
        .env("TMPDIR", directory.path())
        .output()
        .unwrap();
    assert_eq!(failed.status.code(), Some(1));
    let said = String::from_utf8_lossy(&failed.stderr);
    assert!(
        said.contains("no browser opened it: open file://"),
        "{said}"
    );
}
