//! Tests what `make install` and the packages put on a machine, and what their removal leaves there.

use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use libtest_mimic::Failed;

use crate::common::lacks;
use crate::rights::{no_capabilities, not_root, NOBODY};
use crate::support::{ensure, text, write_program, Test, TR};
use crate::usages::USAGES;

pub const TESTS: &[Test] = &[
    ("an_installed_tr_runs_under_any_bounding_set", bounded),
    ("installing_again_keeps_what_root_gave", again),
    ("the_package_goes_into_usr_and_leaves_nothing", package),
];

/// The reason why the test with this name cannot run here, because a program is missing.
pub fn lacking(name: &str) -> Option<String> {
    let programs: &[&str] = match name {
        "the_package_goes_into_usr_and_leaves_nothing" => &["dpkg", "dpkg-deb"],
        "an_installed_tr_runs_under_any_bounding_set" => {
            &["setpriv", "bash", "dash", "perl", "make", "xargs"]
        }
        _ => &["setpriv"],
    };
    let missing = programs.iter().find_map(|program| lacks(program));
    not_root().or(missing).or_else(no_capabilities)
}

fn source() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// A temporary directory that every user can enter; the target directory may be closed to others.
fn open_directory() -> Result<tempfile::TempDir, Failed> {
    let dir = tempfile::tempdir()?;
    std::fs::set_permissions(dir.path(), PermissionsExt::from_mode(0o755))?;
    Ok(dir)
}

/// Runs `install.sh` with this prefix, as sudo runs it for the user 65534.
fn install(prefix: &Path, argument: &str, variables: &[(&str, &str)]) -> Result<Output, Failed> {
    let mut command = Command::new(source().join("scripts/install.sh"));
    command.arg(argument).env("PREFIX", prefix);
    command.env("SUDO_UID", "65534").env("SUDO_GID", "65534");
    command.env("TMPDIR", prefix.join("tmp"));
    std::fs::create_dir_all(prefix.join("tmp"))?;
    Ok(command.envs(variables.iter().copied()).output()?)
}

fn successful(out: Output) -> Result<String, Failed> {
    ensure(out.status.success(), || format!("{out:?}"))?;
    Ok(text(&out.stdout) + &text(&out.stderr))
}

/// All files below a directory.
fn files(at: &Path) -> Result<Vec<PathBuf>, Failed> {
    let mut found = Vec::new();
    let mut directories = vec![at.to_owned()];
    while let Some(directory) = directories.pop() {
        for entry in std::fs::read_dir(&directory)? {
            let entry = entry?;
            if entry.file_type()?.is_dir() {
                directories.push(entry.path());
            } else {
                found.push(entry.path());
            }
        }
    }
    Ok(found)
}

fn capabilities(file: &Path) -> Result<String, Failed> {
    let out = Command::new("getcap").arg(file).output()?;
    Ok(text(&out.stdout))
}

/// A word in single quotes for a shell.
fn quoted(word: &str) -> String {
    format!("'{}'", word.replace('\'', r"'\''"))
}

/// A word in single quotes for perl.
fn perl_quoted(word: &str) -> String {
    format!("'{}'", word.replace('\\', r"\\").replace('\'', r"\'"))
}

/// For each kind of caller (shells, make, perl, xargs): the program, its option, and a script that runs all usages of
/// `tr` on the file `in`.
fn callers() -> Vec<(&'static str, &'static str, String)> {
    let mut all = vec![
        ("bash", "", String::new()),
        ("dash", "", String::new()),
        ("make", "-sf", "SHELL = /bin/bash\nall:\n".into()),
        ("perl", "", "$| = 1; sub r { open STDIN, '<', 'in'; system { 'tr' } 'tr', @_; print '=', $? >> 8, qq(\\n) }\n".into()),
        ("bash", "", "# xargs\n".into()),
    ];
    for usage in USAGES {
        let words: Vec<String> = usage.iter().map(|word| quoted(word)).collect();
        let words = words.join(" ");
        let perl: Vec<String> = usage.iter().map(|word| perl_quoted(word)).collect();
        let perl = perl.join(", ");
        let lines = [
            format!("tr {words} <in; echo \"=$?\"\n"),
            format!("tr {words} <in; echo \"=$?\"\n"),
            format!("\ttr {} <in; echo \"=$$?\"\n", words.replace('$', "$$")),
            format!("r({perl});\n"),
            format!("xargs -0 -a <(printf '%s\\0' {words}) tr <in; echo \"=$?\"\n"),
        ];
        for ((.., script), line) in all.iter_mut().zip(lines) {
            script.push_str(&line);
        }
    }
    all
}

/// If the bounding set lacks the file's capabilities, as in a container, the kernel could refuse to execute the file.
/// All usages of `tr` must work nevertheless.
fn bounded() -> Result<(), Failed> {
    let dir = open_directory()?;
    let to = dir.path().join("to");
    successful(install(&to, TR, &[("SETCAP", "1")])?)?;
    let program = to.join("bin/tr");
    ensure(!capabilities(&program)?.is_empty(), || {
        "no capabilities".into()
    })?;
    let input = "hello  World\t1 'x' \"y\" a-z \\ é\r\nlast line";
    std::fs::write(dir.path().join("in"), input)?;
    let path = |ours: bool| {
        if ours {
            format!("{}:/usr/bin:/bin", to.join("bin").display())
        } else {
            "/usr/bin:/bin".to_owned()
        }
    };
    let run = |ours: bool, user: &[&str], words: &[&str]| {
        let mut command = Command::new("setpriv");
        command
            .args(user)
            .args(["--bounding-set=-bpf,-perfmon,-sys_admin"]);
        command
            .args(words)
            .current_dir(dir.path())
            .stdin(Stdio::null());
        command.env("PATH", path(ours)).env("LC_ALL", "C").output()
    };
    let nobody = &NOBODY[1..];
    let mut expected = None;
    for (caller, option, script) in callers() {
        std::fs::write(dir.path().join("script"), &script)?;
        let words = [caller, option, "script"];
        let words: Vec<&str> = words.into_iter().filter(|word| !word.is_empty()).collect();
        // Other rules apply to root than to ordinary users. The first caller is tested as root and as the user
        // `nobody`; the others only as `nobody`.
        let (users, system) = match expected.take() {
            Some(system) => (&[nobody][..], system),
            None => (&[nobody, &[]][..], run(false, &[], &words)?.stdout),
        };
        let usages = text(&system).matches("=0\n").count();
        ensure(usages == USAGES.len(), || text(&system))?;
        for user in users {
            let out = run(true, user, &words)?;
            ensure(out.stdout == system && out.stderr.is_empty(), || {
                format!(
                    "{caller} {user:?}: {}{}",
                    text(&out.stdout),
                    text(&out.stderr)
                )
            })?;
        }
        expected = Some(system);
    }
    // An installed tr that cannot get its capabilities still runs COMMAND, whose exit status is 3.
    let out = run(
        true,
        nobody,
        &["tr", "record", "-o", "/dev/null", "sh", "-c", "exit 3"],
    )?;
    ensure(out.status.code() == Some(3), || format!("{out:?}"))
}

fn again() -> Result<(), Failed> {
    let dir = open_directory()?;
    let to = dir.path().join("to");
    let (program, second) = (to.join("bin/tr"), to.join("bin/tr-trace"));
    let state = || -> Result<_, Failed> {
        let meta = std::fs::metadata(&program)?;
        Ok((meta.mode() & 0o7777, meta.gid(), capabilities(&program)?))
    };
    successful(install(&to, TR, &[])?)?;
    ensure(state()? == (0o755, 0, String::new()), || {
        format!("{:?}", state())
    })?;
    // All installed files belong to root, even if another user called sudo, and everybody may read them.
    for file in files(&to)? {
        let meta = std::fs::metadata(&file)?;
        ensure(meta.uid() == 0 && meta.mode() & 0o44 == 0o44, || {
            format!("{file:?}: {meta:?}")
        })?;
    }
    let group = nix::unistd::Group::from_gid(65534.into())?.ok_or("no group 65534")?;
    successful(install(
        &to,
        TR,
        &[("SETCAP", "1"), ("GROUP", &group.name)],
    )?)?;
    let given = state()?;
    let is = (given.0, given.1) == (0o750, 65534) && given.2.ends_with("cap_perfmon,cap_bpf=p\n");
    ensure(is, || format!("{given:?}"))?;
    // An older installation has made the capabilities effective (+ep). A new one must make them only permitted (+p).
    let set = Command::new("setcap")
        .arg("cap_bpf,cap_perfmon+ep")
        .arg(&program)
        .status()?;
    ensure(set.success(), || "setcap".into())?;
    let said = successful(install(&to, TR, &[])?)?;
    ensure(state()? == given, || format!("{:?}", state()))?;
    ensure(
        said.contains("kept of the replaced file: owner root:"),
        || said,
    )?;
    let names = (
        std::fs::metadata(&program)?.ino(),
        std::fs::metadata(&second)?.ino(),
    );
    ensure(names.0 == names.1, || "two files".into())?;
    let plugin = to.join("share/tr-trace/integrations/pytest_tr_marks.py");
    ensure(plugin.is_file(), || format!("no {plugin:?}"))?;
    // A removal without rights removes nothing, and leaves nothing in TMPDIR.
    std::fs::set_permissions(to.join("tmp"), PermissionsExt::from_mode(0o777))?;
    let before = files(&to)?.len();
    // The script is passed as text, because the user `nobody` may not be allowed to read the checkout.
    let script = std::fs::read_to_string(source().join("scripts/install.sh"))?;
    let out = Command::new(NOBODY[0])
        .args(&NOBODY[1..])
        .args(["bash", "-c", &script, "install.sh", "--remove"])
        .env("PREFIX", &to)
        .env("TMPDIR", to.join("tmp"))
        .output()?;
    let said = text(&out.stderr);
    ensure(
        !out.status.success() && said.contains("sudo make uninstall"),
        || said,
    )?;
    ensure(files(&to)?.len() == before, || format!("{:?}", files(&to)))?;
    successful(install(&to, "--remove", &[])?)?;
    ensure(files(&to)?.is_empty(), || format!("{:?}", files(&to)))
}

/// Builds a release by `release.sh`. The release's `tr` is a script that runs the tested program, so that testing the
/// contents of the release needs no build. Returns the Debian package.
fn release(dir: &Path) -> Result<PathBuf, Failed> {
    let metadata = r#"{"packages": [{"id": "r", "name": "tr", "version": "0", "license": "MIT"}],
        "resolve": {"root": "r", "nodes": [{"id": "r", "deps": []}]}}"#;
    for (name, text) in [
        ("bin/strip", ":".to_owned()),
        ("bin/readelf", ":".to_owned()),
        ("bin/gcc", "echo /dev/null".to_owned()),
        (
            "bin/aarch64-linux-gnu-gcc",
            format!("echo {}", dir.join("absent").display()),
        ),
        (
            "bin/cargo",
            format!("[ $1 != metadata ] || echo '{metadata}'"),
        ),
        ("target/release/tr", format!("exec -a \"$0\" {TR} \"$@\"")),
        ("target/record-only/release/tr", ":".to_owned()),
    ] {
        let file = dir.join(name);
        std::fs::create_dir_all(file.parent().ok_or("a parent")?)?;
        write_program(file, format!("#!/bin/bash\n{text}\n"))?;
    }
    let dist = dir.join("dist");
    let mut command = Command::new(source().join("scripts/release.sh"));
    // rpmbuild may not be installed.
    command.env("ALLOW_PARTIAL", "1");
    command.arg(&dist).env("SOURCE_DATE_EPOCH", "1700000000");
    command.env("CARGO_TARGET_DIR", dir.join("target"));
    let path = std::env::var("PATH")?;
    command.env("PATH", format!("{}:{path}", dir.join("bin").display()));
    successful(command.output()?)?;
    let packages = files(&dist)?.into_iter();
    let mut packages =
        packages.filter(|file| file.extension().is_some_and(|extension| extension == "deb"));
    Ok(packages.next().ok_or("no package")?)
}

/// Installs the package into a root directory of its own, changes the program's rights as root would, installs it again
/// and removes it.
fn package() -> Result<(), Failed> {
    let dir = open_directory()?;
    let deb = release(dir.path())?;
    let root = dir.path().join("root");
    for directory in [
        "usr/bin",
        "usr/local/bin",
        "var/lib/dpkg/info",
        "var/lib/dpkg/updates",
    ] {
        std::fs::create_dir_all(root.join(directory))?;
    }
    for file in ["usr/bin/tr", "var/lib/dpkg/status"] {
        std::fs::write(root.join(file), "")?;
    }
    let dpkg = |action: &str, what: &Path| -> Result<String, Failed> {
        let mut command = Command::new("dpkg");
        command.arg(format!("--root={}", root.display()));
        command
            .args(["--force-script-chrootless", "--force-not-root", action])
            .arg(what);
        successful(command.output()?)
    };
    let (program, link) = (root.join("usr/bin/tr-trace"), root.join("usr/local/bin/tr"));
    let said = dpkg("-i", &deb)?;
    ensure(
        said.contains("ln -s /usr/bin/tr-trace /usr/local/bin/tr"),
        || said,
    )?;
    for file in [
        "man/man1/tr-trace.1.gz",
        "man/man1/tr-trace-record.1.gz",
        "doc/tr-where-time/README.md",
        "bash-completion/completions/tr-trace",
        "zsh/vendor-completions/_tr-trace",
        "fish/vendor_completions.d/tr-trace.fish",
    ] {
        ensure(root.join("usr/share").join(file).is_file(), || {
            format!("{file} is missing")
        })?;
    }
    ensure(files(&root.join("usr/local"))?.is_empty(), || {
        "files in /usr/local".into()
    })?;
    std::os::unix::fs::symlink("/usr/bin/tr-trace", &link)?;
    std::os::unix::fs::chown(&program, None, Some(65534))?;
    std::fs::set_permissions(&program, PermissionsExt::from_mode(0o750))?;
    // The package's program is a script here, but it can have file capabilities, too.
    let set = Command::new("setcap")
        .arg("cap_bpf,cap_perfmon+ep")
        .arg(&program)
        .status()?;
    ensure(set.success(), || "setcap".into())?;
    dpkg("-i", &deb)?;
    let meta = std::fs::metadata(&program)?;
    let now = (meta.mode() & 0o7777, meta.gid(), capabilities(&program)?);
    let kept = (now.0, now.1) == (0o750, 65534) && now.2.ends_with("cap_perfmon,cap_bpf=p\n");
    ensure(kept, || format!("{now:?}"))?;
    dpkg("-r", Path::new("tr-where-time"))?;
    let left = files(&root.join("usr"))?;
    ensure(left == [root.join("usr/bin/tr")], || format!("{left:?}"))?;
    ensure(root.join("usr/local/bin").is_dir(), || {
        "/usr/local/bin is gone".into()
    })?;
    ensure(!root.join("var/lib/tr-where-time").exists(), || {
        "notes are left".into()
    })
}
