//! The shell scripts, with stubs in place of cargo, gcc and sudo.
#![allow(clippy::unwrap_used)] // in a test

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Command, Output, Stdio};
use std::time::{Duration, Instant};

use nix::sys::signal::{killpg, Signal};
use nix::unistd::Pid;

/// An executable shell script.
fn stub(dir: &Path, name: &str, text: &str) {
    let file = dir.join(name);
    fs::write(&file, format!("#!/bin/bash\n{text}\n")).unwrap();
    fs::set_permissions(&file, fs::Permissions::from_mode(0o755)).unwrap();
}

/// A script of ours; the stubs are in `dir` and write their arguments to `$LOG`.
fn script(dir: &Path, name: &str) -> Command {
    let mut command = Command::new(
        Path::new(env!("CARGO_MANIFEST_DIR"))
            .join("scripts")
            .join(name),
    );
    command
        .env("PATH", format!("{}:/usr/bin:/bin", dir.display()))
        .env("LOG", dir.join("log"))
        .env("CARGO_TARGET_DIR", dir.join("target"));
    command
}

fn log(dir: &Path) -> String {
    fs::read_to_string(dir.join("log")).unwrap_or_default()
}

/// `build.sh` where gcc finds the libraries that `has` matches, and `cargo` does this.
fn build(has: &str, cargo: &str, args: &[&str]) -> (Output, String) {
    let dir = tempfile::tempdir().unwrap();
    let known = format!("case $1 in {has}) echo /dev/null ;; *) echo \"${{1#*=}}\" ;; esac");
    stub(dir.path(), "gcc", &known);
    stub(
        dir.path(),
        "cargo",
        &format!("echo \"$@\" >>\"$LOG\"\n{cargo}"),
    );
    let out = script(dir.path(), "build.sh").args(args).output().unwrap();
    (out, log(dir.path()))
}

const STATIC: &str = "-- -C target-feature=+crt-static -C relocation-model=static\n";

#[test]
fn tr_is_static_where_the_libraries_are() {
    let (out, log) = build("*", "", &[]);
    assert!(out.status.success() && out.stdout.is_empty(), "{out:?}");
    assert_eq!(log, format!("rustc --locked --release --bin tr {STATIC}"));
    // Without tr record, of these only the C library is linked.
    let (_, log) = build("*libc.a", "", &["--without-record"]);
    let features = "--locked --release --no-default-features --bin tr";
    assert_eq!(log, format!("rustc {features} {STATIC}"));
    // The recorder alone has another name.
    let made = "tr=$CARGO_TARGET_DIR/release/tr; mkdir -p ${tr%/tr}; touch $tr; chmod +x $tr";
    let (out, log) = build("*", made, &["--record-only"]);
    assert!(out.status.success(), "{out:?}");
    let features = "--locked --release --no-default-features --features record-only --bin tr";
    assert_eq!(log, format!("rustc {features} {STATIC}"));
}

#[test]
fn tr_is_dynamic_where_they_are_not() {
    let (out, log) = build("*libc.a | *libz.a", "", &[]);
    let said = String::from_utf8(out.stdout).unwrap();
    assert_eq!(
        said,
        "build: tr is linked dynamically, as this machine lacks libelf.a\n"
    );
    assert_eq!(log, "build --locked --release --bin tr\n");
    // A library that cannot be linked.
    let (out, log) = build("*", "[ \"$1\" = build ]", &[]);
    assert!(out.status.success(), "{out:?}");
    let said = String::from_utf8(out.stdout).unwrap();
    assert!(said.contains("the static build failed"), "{said}");
    assert!(
        log.ends_with("\nbuild --locked --release --bin tr\n"),
        "{log}"
    );
    // An error in the source.
    let (out, _) = build("*", "exit 101", &[]);
    assert_eq!(out.status.code(), Some(101));
}

/// `install.sh` with these variables; returns what it called and the mode of the program.
fn install(variables: &[(&str, &str)]) -> (Output, String, u32) {
    let dir = tempfile::tempdir().unwrap();
    for name in ["chown", "setcap", "groupadd"] {
        stub(dir.path(), name, &format!("echo {name} \"$@\" >>\"$LOG\""));
    }
    stub(dir.path(), "getent", "[ \"$2\" = known ]");
    let prefix = dir.path().join("to");
    let mut command = script(dir.path(), "install.sh");
    command.arg(env!("CARGO_BIN_EXE_tr")).env("PREFIX", &prefix);
    let out = command.envs(variables.iter().copied()).output().unwrap();
    let program = prefix.join("bin/tr");
    let mode = fs::metadata(&program).unwrap().permissions().mode() & 0o7777;
    let log = log(dir.path()).replace(&format!("{}.new", program.display()), "TR");
    (out, log, mode)
}

#[test]
fn a_group_alone_gets_the_capabilities() {
    let capable = "setcap cap_bpf,cap_perfmon+p TR\n";
    let (out, log, mode) = install(&[("SETCAP", "1"), ("GROUP", "tr-trace")]);
    assert!(out.status.success(), "{out:?}");
    // A new owner takes the capabilities away.
    let made = "groupadd --system tr-trace\n";
    assert_eq!(log, format!("{made}chown root:tr-trace TR\n{capable}"));
    assert_eq!(mode, 0o750);
    let (_, log, mode) = install(&[("SETCAP", "1"), ("GROUP", "known")]);
    assert_eq!(log, format!("chown root:known TR\n{capable}"));
    assert_eq!(mode, 0o750);
    let (_, log, mode) = install(&[("SETCAP", "1")]);
    assert_eq!((log.as_str(), mode), (capable, 0o755));
    let (out, log, mode) = install(&[]);
    assert_eq!((log.as_str(), mode), ("", 0o755));
    let said = String::from_utf8(out.stdout).unwrap();
    assert!(
        said.contains("sudo make install SETCAP=1 GROUP=tr-trace"),
        "{said}"
    );
}

/// `demo.sh` of an ordinary user, where `tr doctor` finds this method and sudo does this; the recordings.
fn demo(method: &str, sudo: &str) -> Vec<String> {
    let dir = tempfile::tempdir().unwrap();
    let dir = dir.path();
    let release = dir.join("target/release");
    fs::create_dir_all(&release).unwrap();
    let doctor = format!("[ $1 != doctor ] || echo '{{ \"method\": \"{method}\" }}'");
    let refused = "case $* in *--sudo*refused*) exit 125 ;; esac";
    stub(
        &release,
        "tr",
        &format!("echo \"$@\" >>\"$LOG\"; {doctor}; {refused}"),
    );
    stub(dir, "id", "echo 1234");
    stub(dir, "sudo", sudo);
    let out = script(dir, "demo.sh")
        .arg(dir.join("refused"))
        .output()
        .unwrap();
    assert!(out.status.success(), "{out:?}");
    let log = log(dir);
    let recorded = log.lines().filter(|line| line.starts_with("record"));
    recorded
        .map(|line| line.split(" -o").next().unwrap().to_owned())
        .collect()
}

#[test]
fn the_demo_records_by_sudo_where_that_asks_nothing() {
    // The stub of tr refuses --sudo, so a recording without it follows.
    assert_eq!(
        demo("ptrace", "[ \"$1 $2\" = '-n true' ]"),
        ["record --sudo", "record"]
    );
    assert_eq!(demo("ptrace", "exit 1"), ["record"]);
    assert_eq!(demo("bpf", ":"), ["record"]);
}

/// `setup.sh` on a machine without programs, as root; its messages, and the calls of apt-get.
fn setup(part: &str, apt: &str) -> (Output, String) {
    let dir = tempfile::tempdir().unwrap();
    let dir = dir.path();
    for tool in [
        "bash", "env", "dirname", "cat", "grep", "sed", "realpath", "sleep",
    ] {
        std::os::unix::fs::symlink(Path::new("/usr/bin").join(tool), dir.join(tool)).unwrap();
    }
    stub(dir, "id", "echo 0");
    stub(dir, "apt-get", &format!("echo \"$@\" >>\"$LOG\"\n{apt}"));
    // The packages of Python are there.
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let lists = [
        "fleet/requirements.txt",
        "tests/requirements.txt",
        "tests/requirements-long.txt",
    ];
    let lists = lists.map(|it| fs::read_to_string(root.join(it)).unwrap());
    fs::create_dir_all(dir.join("target/python/bin")).unwrap();
    fs::write(dir.join("target/python/wanted"), lists.concat()).unwrap();
    let mut command = Command::new(dir.join("bash"));
    command.arg(root.join("scripts/setup.sh")).arg(part);
    command.env("PATH", dir).env("LOG", dir.join("log"));
    command.env("CARGO_TARGET_DIR", dir.join("target"));
    (command.output().unwrap(), log(dir))
}

#[test]
fn setup_installs_what_the_tests_need_and_says_how_much() {
    let sizes = "case $* in *--assume-no*) echo '0 upgraded, 207 newly installed, 0 to remove.'; \
        echo 'Need to get 220 MB of archives.'; exit 1 ;; esac";
    let (out, calls) = setup("test", sizes);
    let said = String::from_utf8(out.stderr).unwrap();
    assert!(
        said.contains("setup: 207 newly installed, 220 MB to fetch\n"),
        "{said}"
    );
    let last = calls.lines().last().unwrap();
    assert!(
        last.contains("strace") && last.contains("-o DPkg::Lock::Timeout=600"),
        "{calls}"
    );
    let has = |what: &str| calls.split([' ', '\n']).any(|it| it == what);
    assert!(!has("npm") && !has("default-jre-headless"), "{calls}");
    let (_, calls) = setup("long", sizes);
    assert!(calls.contains(" default-jre-headless"), "{calls}");
}

/// Whoever copies README's blocks has what `make build` and `make install` need.
#[test]
fn readme_names_the_packages_of_setup() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let read = |name: &str| fs::read_to_string(root.join(name)).unwrap();
    let (readme, setup, makefile) = (
        read("README.md"),
        read("scripts/setup.sh"),
        read("Makefile"),
    );
    let build = setup
        .split("install \"building tr record\"")
        .next()
        .unwrap();
    let wanted = build.lines().filter_map(|line| line.split("want ").nth(1));
    let wanted = wanted.filter_map(|line| line.split(' ').next());
    let mut wanted: Vec<&str> = wanted
        .filter(|name| {
            name.chars()
                .all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-')
        })
        .collect();
    let line = "    sudo apt-get install ";
    let mut named: Vec<&str> = readme
        .lines()
        .find_map(|it| it.strip_prefix(line))
        .unwrap()
        .split(' ')
        .collect();
    wanted.sort_unstable();
    named.sort_unstable();
    assert_eq!(named, wanted);
    let code = readme.lines().filter_map(|line| line.strip_prefix("    "));
    let first: Vec<&str> = code
        .take(2)
        .map(|line| line.split(" #").next().unwrap().trim())
        .collect();
    assert_eq!(first, ["make demo", "make test"]);
    assert!(makefile.contains("\ndemo:") && makefile.contains("\ntest:"));
}

/// Ctrl-C while a test runs through sudo: no file of root's stays in the user's checkout.
#[test]
fn an_interrupted_test_gives_roots_files_back() {
    let dir = tempfile::tempdir().unwrap();
    let dir = dir.path();
    stub(dir, "recorder-0", "echo started >>\"$LOG\"; exec sleep 60");
    let artifact = format!(
        r#"{{"manifest_path":"{0}/Cargo.toml","profile":{{"test":true}},"features":[],"executable":"{0}/recorder-0"}}"#,
        dir.display()
    );
    stub(dir, "cargo", &format!("echo '{artifact}'"));
    stub(dir, "id", "echo 1234");
    let sudo = "echo sudo \"$@\" >>\"$LOG\"; case $* in *chown*) ;; *) shift; exec \"$@\" ;; esac";
    stub(dir, "sudo", sudo);
    let mut command = script(dir, "test.sh");
    let command = command.process_group(0).stdin(Stdio::null());
    let mut child = command.stdout(Stdio::null()).spawn().unwrap();
    let limit = Instant::now() + Duration::from_secs(20);
    // Its tests alone, and those for beside others.
    while log(dir).matches("started\n").count() < 2 && Instant::now() < limit {
        std::thread::sleep(Duration::from_millis(10));
    }
    killpg(Pid::from_raw(child.id().cast_signed()), Signal::SIGINT).unwrap();
    assert!(!child.wait().unwrap().success());
    let target = fs::canonicalize(dir.join("target/tmp")).unwrap();
    let chown = format!(" chown -R 1234:1234 {}\n", target.display());
    let log = log(dir);
    assert!(log.contains("started\n") && log.ends_with(&chown), "{log}");
}

/// A release that lacks a part is none, and is known to be none before anything is built.
#[test]
fn a_release_in_part_needs_leave() {
    let dir = tempfile::tempdir().unwrap();
    for tool in ["dpkg-deb", "rpmbuild", "apt-ftparchive", "createrepo_c"] {
        stub(dir.path(), tool, "");
    }
    stub(dir.path(), "uname", "echo x86_64");
    stub(dir.path(), "rustc", "echo /nonexistent");
    stub(dir.path(), "cargo", "echo \"$@\" >>\"$LOG\"; exit 9");
    let run = |leave: &str| {
        let mut release = script(dir.path(), "release.sh");
        release
            .env("SOURCE_DATE_EPOCH", "1")
            .env("ALLOW_PARTIAL", leave);
        let out = release.arg(dir.path().join("dist")).output().unwrap();
        (out.status.code(), String::from_utf8(out.stderr).unwrap())
    };
    let (status, said) = run("");
    assert_eq!(status, Some(1), "{said}");
    assert!(
        said.contains("no release for another architecture"),
        "{said}"
    );
    assert!(said.contains("unless ALLOW_PARTIAL=1 is set"), "{said}");
    assert_eq!(log(dir.path()), "");
    // With leave it goes on, to a build that fails here.
    let (status, said) = run("1");
    assert!(
        status != Some(1) && said.contains("no release for another"),
        "{status:?} {said}"
    );
    assert!(
        log(dir.path()).starts_with("rustc --locked --release"),
        "{}",
        log(dir.path())
    );
}

/// Each package of the list has the checksum of the lock file, and a licence that is concluded.
#[test]
fn the_list_of_parts_has_checksums_and_licences() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let package = |name: &str, version: &str, source: &str| serde_json::json!({ "id": name, "name": name, "version": version, "license": "MIT/Apache-2.0", "source": source });
    let lock = fs::read_to_string(root.join("Cargo.lock")).unwrap();
    let block = lock
        .split("[[package]]")
        .find(|it| it.contains("name = \"memchr\""))
        .unwrap();
    let value = |key: &str| {
        let line = block
            .lines()
            .find_map(|line| line.strip_prefix(&format!("{key} = \"")));
        line.unwrap().trim_end_matches('"').to_owned()
    };
    let memchr = package("memchr", &value("version"), "registry");
    let mut tr = package("tr", "0.1.0", "");
    tr["source"] = serde_json::Value::Null;
    let metadata = serde_json::json!({
        "packages": [memchr, tr],
        "resolve": { "root": "tr", "nodes": [
            { "id": "tr", "deps": [{ "pkg": "memchr", "dep_kinds": [{ "kind": null }] }] },
            { "id": "memchr", "deps": [] },
        ] },
    });
    let mut list = Command::new("python3");
    list.arg(root.join("scripts/sbom.py"))
        .args(["0.1.0", "1", "zlib=1.3=Zlib"]);
    let mut list = list
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    serde_json::to_writer(list.stdin.take().unwrap(), &metadata).unwrap();
    let out = list.wait_with_output().unwrap();
    let list: serde_json::Value = serde_json::from_slice(&out.stdout).unwrap();
    let parts = list["packages"].as_array().unwrap();
    let part = |name: &str| parts.iter().find(|it| it["name"] == name).unwrap();
    assert_eq!(
        part("memchr")["checksums"][0]["checksumValue"],
        value("checksum"),
        "{list}"
    );
    assert_eq!(
        part("memchr")["licenseConcluded"],
        "MIT OR Apache-2.0",
        "{list}"
    );
    assert_eq!(part("zlib")["licenseConcluded"], "Zlib", "{list}");
    assert!(part("tr")["checksums"].is_null(), "{list}");
}
