//! Tests defaults in configuration files, and the pager.
#![allow(clippy::unwrap_used, clippy::indexing_slicing)] // in a test

#[path = "common/bound.rs"]
mod bound;
#[path = "common/rewrite.rs"]
mod rewrite;

use std::io::Read;
use std::os::unix::fs::{chown, symlink};
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

const TR: &str = env!("CARGO_BIN_EXE_tr");

/// A directory with a project that has a recording, and with a user's home.
struct Place(tempfile::TempDir);

impl Place {
    fn new() -> Place {
        let place = Place(tempfile::tempdir().unwrap());
        for dir in ["project/.git", "project/sub", "home/.config/tr"] {
            std::fs::create_dir_all(place.at(dir)).unwrap();
        }
        let demo = Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures/traces/demo.bin");
        symlink(demo, place.at("project/sub/demo.bin")).unwrap();
        place
    }

    fn at(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    fn user(&self, text: &str) {
        std::fs::write(self.at("home/.config/tr/config.toml"), text).unwrap();
    }

    fn project(&self, text: &str) {
        std::fs::write(self.at("project/tr.toml"), text).unwrap();
    }

    fn command(&self, line: &str) -> Command {
        let mut command = Command::new(TR);
        command
            .args(line.split(' '))
            .current_dir(self.at("project/sub"));
        command
            .env("HOME", self.at("home"))
            .env_remove("XDG_CONFIG_HOME");
        for name in [
            "TR_PAGER",
            "PAGER",
            "NO_COLOR",
            "CLICOLOR_FORCE",
            "FORCE_COLOR",
        ] {
            command.env_remove(name);
        }
        command
    }

    fn run(&self, line: &str) -> Output {
        self.command(line).output().unwrap()
    }

    fn prints(&self, line: &str) -> String {
        let out = self.run(line);
        assert!(out.status.success(), "{line}: {}", said(&out));
        String::from_utf8(out.stdout).unwrap()
    }
}

fn said(out: &Output) -> String {
    String::from_utf8_lossy(&out.stderr).into_owned()
}

#[test]
fn the_nearest_default_of_display_counts() {
    let place = Place::new();
    let one = |line: &str| place.prints(line);
    let [two, three, four] = ["2", "3", "4"].map(|n| one(&format!("analyze demo.bin --top {n}")));
    let [json, csv] =
        ["json", "csv"].map(|format| one(&format!("analyze demo.bin --format {format}")));
    place.user("[analyze]\ntop = 2\n[display]\nwidth = 80\n");
    assert_eq!(one("analyze demo.bin"), two);
    place.project("[analyze]\ntop = 3\n");
    assert_eq!(one("analyze demo.bin"), three);
    assert_eq!(one("analyze demo.bin --top 4"), four);
    place.project("[analyze]\nreport = [\"tree\", \"cpus\"]\n");
    assert_eq!(
        one("analyze demo.bin"),
        one("analyze demo.bin --report tree,cpus")
    );
    // Outputs that scripts read (JSON, CSV) ignore the defaults in files.
    assert_eq!(one("analyze demo.bin --format json"), json);
    assert_eq!(one("analyze demo.bin --format csv"), csv);
    // Files above the top directory of the repository are not read.
    std::fs::remove_file(place.at("project/tr.toml")).unwrap();
    std::fs::write(place.at("tr.toml"), "[analyze]\ntop = 4\n").unwrap();
    assert_eq!(one("analyze demo.bin"), two);
}

#[test]
fn rules_name_steps_of_own_tools() {
    let place = Place::new();
    let report = "analyze demo.bin --report steps --top all";
    let plain = place.prints(report);
    assert!(!plain.contains("our make"), "{plain}");
    place.user("[steps]\ntarget = [\"everything=^make\"]\n");
    // The project's rule is applied before the user's.
    place.project("[steps]\njob = [\"our $1=^(make)\\\\b\"]\n");
    let named = place.prints(report);
    assert!(
        named.contains("our make") && !named.contains("everything"),
        "{named}"
    );
    let json = place.prints("analyze demo.bin --report steps --format json");
    assert!(json.contains("\"our make\""), "{json}");
    for wrong in ["smoke", "smoke=(", "=x"] {
        place.project(&format!("[steps]\ntest = [\"{wrong}\"]\n"));
        let out = place.run("analyze demo.bin");
        assert!(
            !out.status.success() && said(&out).contains("line 2: steps.test"),
            "{}",
            said(&out)
        );
    }
    place.project("[steps]\nmark = [\"a=b\"]\n");
    assert!(said(&place.run("analyze demo.bin")).contains("unknown key steps.mark"));
}

#[test]
fn a_threshold_is_a_gate() {
    let place = Place::new();
    let faults = Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures/traces");
    let words = |options: &str| {
        let [base, new] =
            ["demo.bin", "build.bin"].map(|name| faults.join(name).display().to_string());
        format!("diff {base} {new} --format json{options}")
    };
    let gate = |options: &str| place.run(&words(options)).stdout;
    let [none, ten] = ["", " --fail-over 10%"].map(gate);
    assert_ne!(none, ten);
    place.project("[diff]\nfail-over = \"10%\"\n");
    assert_eq!(gate(""), ten);
    // `--strict` needs a limit. Here, the file sets this limit.
    let strict = gate(" --strict");
    place.project("");
    assert_eq!(strict, gate(" --fail-over 10% --strict"));
    assert_eq!(place.run(&words(" --strict")).status.code(), Some(2));
}

#[test]
fn masks_add_up_and_none_goes() {
    let place = Place::new();
    let masked = |options: &str| {
        let out = place.run(&format!("redact demo.bin -o out.bin --force{options}"));
        assert!(out.status.success(), "{}", said(&out));
        place.prints("analyze out.bin --report execs --format csv")
    };
    let has = |text: &str| ["kernels_1", "kernels_2", "kernels_3"].map(|name| text.contains(name));
    assert_eq!(has(&masked("")), [true; 3]);
    place.user("[mask]\nredact = [\"kernels_1\"]\naddresses = true\n");
    place.project("[mask]\nredact = \"kernels_2\"\naddresses = false\n");
    assert_eq!(has(&masked("")), [false, false, true]);
    assert_eq!(has(&masked(" --redact kernels_3")), [false; 3]);
    // If the user's file turns on the masking of addresses, the project's file cannot turn the masking off. Giving the
    // option on the command line as well is no error.
    let network = Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures/format/3.4.bin");
    for options in ["", " --mask-addresses"] {
        let line = format!("redact {} -o out.bin{options}", network.display());
        assert!(
            said(&place.run(&line)).contains(": 3 secrets masked"),
            "{options}"
        );
    }
    place.user("");
    let line = format!("redact {} -o out.bin", network.display());
    assert!(said(&place.run(&line)).contains(": 0 secrets masked"));
}

/// The file of a project may come from a stranger, so it may not set an output, a method or a program.
#[test]
fn a_project_names_no_output_method_or_program() {
    let place = Place::new();
    for text in [
        "[record]\noutput = \"x\"\n",
        "[record]\nmethod = \"poll\"\n",
        "[record]\nno-redact = true\n",
        "[mask]\nno-redact = true\n",
        "[display]\npager = \"sh\"\n",
        "[report]\noutput = \"x\"\n",
        "[analyze]\nwith = [\"x\"]\n",
        "[mask]\nredact = \"(\"\n",
        "mask = 1\n",
        "[mask\n",
    ] {
        place.project(text);
        let out = place.run("redact demo.bin -o out.bin");
        let said = said(&out);
        assert_eq!(out.status.code(), Some(2), "{text}: {said}");
        assert!(said.contains("project/tr.toml"), "{text}: {said}");
        assert!(!place.at("project/sub/out.bin").exists(), "{text}");
        #[cfg(feature = "record")]
        {
            let out = place.run("record -o out.bin -- touch ran");
            assert_eq!(out.status.code(), Some(125), "{text}: {said}");
            assert!(!place.at("project/sub/ran").exists(), "{text}");
            // A wrong regular expression stops even a best-effort recording, as it does on the command line.
            if text.contains("\"(\"") {
                continue;
            }
            // COMMAND must run in spite of a wrong file, but without recording: masks might be missing, so secrets
            // would be kept.
            let out = place.run("record --best-effort -o out.bin -- false");
            let is = (out.status.code(), place.at("project/sub/out.bin").exists());
            assert_eq!(is, (Some(1), false), "{text}");
        }
    }
}

/// A symbolic link as configuration could print parts of any file in an error message, and root must not use files of
/// other users.
#[test]
fn files_of_others_are_not_used() {
    let place = Place::new();
    let two = place.prints("analyze demo.bin --top 2");
    let secret = place.at("secret");
    std::fs::write(&secret, "hunter2\n").unwrap();
    symlink(&secret, place.at("project/tr.toml")).unwrap();
    let out = place.run("analyze demo.bin");
    assert!(
        out.status.success() && !said(&out).contains("hunter2"),
        "{}",
        said(&out)
    );
    std::fs::remove_file(place.at("project/tr.toml")).unwrap();
    place.project("[analyze]\ntop = 2\n");
    assert_eq!(place.prints("analyze demo.bin"), two);
    if nix::unistd::geteuid().is_root() {
        chown(place.at("project/tr.toml"), Some(65534), None).unwrap();
        assert_ne!(place.prints("analyze demo.bin"), two);
        // A message warns that the masks of the ignored file are not applied.
        let out = place.run("redact demo.bin -o out.bin");
        let path = place.at("project/tr.toml").display().to_string();
        assert!(
            said(&out).contains(&format!("{path} is not used: it belongs to the user 65534")),
            "{}",
            said(&out)
        );
        #[cfg(feature = "record")]
        {
            let told = String::from_utf8(place.run("doctor").stdout).unwrap();
            assert!(
                told.contains("not used: it belongs to the user 65534"),
                "{told}"
            );
        }
    }
}

/// If the file that sets the gate belongs to another user, `tr diff` fails rather than passing the gate. Other settings
/// that are ignored only cause a message.
#[test]
fn a_gate_in_a_file_of_others_is_no_pass() {
    let place = Place::new();
    let demo = std::fs::read(place.at("project/sub/demo.bin")).unwrap();
    std::fs::write(place.at("project/sub/later.bin"), rewrite::later(&demo)).unwrap();
    let diff = "diff demo.bin later.bin";
    let ran = |line: &str| {
        let out = place.run(line);
        assert!(
            out.stdout.starts_with(b"Equally fast") || line.starts_with("analyze"),
            "{out:?}"
        );
        (out.status.code(), String::from_utf8(out.stderr).unwrap())
    };
    let link = place.at("project/tr.toml");
    symlink(place.at("elsewhere"), &link).unwrap();
    let (code, said) = ran(diff);
    assert!(
        code == Some(0) && said.contains("is not used: it is a symbolic link"),
        "{said}"
    );
    std::fs::remove_file(link).unwrap();
    if !nix::unistd::geteuid().is_root() {
        return;
    }
    let of_another = |path: &str| chown(place.at(path), Some(65534), None).unwrap();
    place.project("[diff]\nfail-over = \"1%\"\nmin = \"1s\"\n");
    assert_eq!(ran(diff), (Some(0), String::new()));
    of_another("project/tr.toml");
    let (code, said) = ran(diff);
    assert_eq!(code, Some(2), "{said}");
    let why = "has a limit for --fail-over, and is not used: it belongs to the user 65534";
    assert!(
        said.contains(why) && said.contains("on the command line"),
        "{said}"
    );
    assert_eq!(ran("analyze demo.bin"), (Some(0), String::new()));
    let (code, said) = ran(&format!("{diff} --fail-over 10%"));
    assert!(
        code == Some(0) && said.ends_with("it sets --min\n"),
        "{said}"
    );
    let given = format!("{diff} --fail-over=10% --min=1s");
    assert_eq!(ran(&given), (Some(0), String::new()));
    // The next file that sets the gate's limit replaces the limit, so the ignored file no longer matters.
    place.user("[diff]\nfail-over = \"1%\"\n");
    of_another("home/.config/tr/config.toml");
    std::fs::remove_file(place.at("project/tr.toml")).unwrap();
    assert_eq!(ran(diff).0, Some(2));
    place.project("[diff]\nfail-over = \"5%\"\n");
    assert_eq!(ran(diff), (Some(0), String::new()));
}

#[cfg(feature = "record")]
#[test]
fn doctor_prints_them() {
    let place = Place::new();
    place.user("[mask]\nredact = [\"a\", \"b\"]\n");
    place.project("[diff]\nfail-over = \"5%\"\n[no]\n");
    let text = String::from_utf8(place.run("doctor").stdout).unwrap();
    assert!(text.contains("mask.redact      a, b"), "{text}");
    let json = place.run("doctor --format json").stdout;
    let json: serde_json::Value = serde_json::from_slice(&json).unwrap();
    assert_eq!(json["config"][0]["settings"][0]["value"], "a, b", "{json}");
    assert!(json["config"][0]["not_used"].is_null(), "{json}");
}

/// The text that a command prints on a terminal.
fn shown(mut command: Command) -> String {
    let pty = nix::pty::openpty(None, None).unwrap();
    command
        .env("TERM", "xterm")
        .stdin(Stdio::null())
        .stdout(pty.slave)
        .stderr(Stdio::null());
    let mut child = command.spawn().unwrap();
    let _bound = bound::bound(&child);
    drop(command);
    let mut text = Vec::new();
    let mut terminal = std::fs::File::from(pty.master);
    let mut part = [0; 4096];
    // Reading fails with EIO once the last descriptor of the terminal is closed.
    while let Ok(length @ 1..) = terminal.read(&mut part) {
        text.extend_from_slice(&part[..length]);
    }
    assert!(child.wait().unwrap().success());
    String::from_utf8_lossy(&text).into_owned()
}

#[test]
fn long_text_on_a_terminal_has_a_pager() {
    let place = Place::new();
    let paged = |line: &str, pager: &[(&str, &str)]| {
        let mut command = place.command(line);
        let marks = command
            .env("PAGER", "sed s/^/P:/")
            .envs(pager.iter().copied());
        marks.env("COLUMNS", "80");
        let text = shown(command);
        assert!(text.lines().count() > 5, "{line}: {text}");
        let marked = text.lines().filter(|line| line.starts_with("P:")).count();
        assert!(
            marked == 0 || marked == text.lines().count(),
            "{line}: {text}"
        );
        // The pager gets the colours, too.
        let coloured = ["analyze", "help"].iter().any(|word| line.contains(word));
        assert_eq!(text.contains("\x1b["), coloured, "{line}: {text}");
        marked > 0
    };
    for line in [
        "analyze demo.bin",
        "info demo.bin",
        "dump demo.bin",
        "schema summary",
        "help diff",
    ] {
        assert!(paged(line, &[]), "{line}");
    }
    let line = "analyze demo.bin";
    for none in [
        ("TR_PAGER", ""),
        ("TR_PAGER", "cat"),
        ("PAGER", ""),
        ("PAGER", "no-such"),
    ] {
        assert!(!paged(line, &[none]), "{none:?}");
    }
    assert!(!paged("analyze demo.bin --no-pager", &[]));
    assert!(!paged("--no-pager analyze demo.bin", &[]));
    place.user("[display]\npager = false\n");
    assert!(!paged(line, &[]));
    // Output into a pipe never goes through the pager.
    let mut command = place.command(line);
    let out = command.env("PAGER", "sed s/^/P:/").output().unwrap();
    assert!(!String::from_utf8_lossy(&out.stdout).contains("P:"));
}

/// A command that has reached its time limit waits for the pager to end. If the pager were left running, it would read
/// from the terminal at the same time as the user's shell.
#[test]
fn a_limit_waits_for_the_pager() {
    let place = Place::new();
    let left = place.at("left");
    let mut command = place.command("dump demo.bin --max-time 5s");
    let pager = format!(
        "sleep 6; head -n 1; cat >/dev/null; touch {}",
        left.display()
    );
    let pty = nix::pty::openpty(None, None).unwrap();
    command.env("TERM", "xterm").env("PAGER", pager);
    command.stdin(Stdio::null()).stdout(pty.slave);
    // Standard error is a file here. If standard error were a pipe, the test would wait until the pager closes the
    // pipe.
    let errors = place.at("errors");
    command.stderr(std::fs::File::create(&errors).unwrap());
    let status = command.status().unwrap();
    assert!(left.exists());
    let said = std::fs::read_to_string(errors).unwrap();
    assert_eq!(status.code(), Some(2), "{said}");
    assert!(said.contains("--max-time 5s was reached"), "{said}");
}
