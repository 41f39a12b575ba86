//! Unit tests of `scripts`.

use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{symlink, PermissionsExt};
use std::path::{Path, PathBuf};

use nix::sys::stat::Mode;
use nix::unistd::{chown, mkfifo, Gid, Uid};
use tempfile::TempDir;

use super::*;

/// A user that owns nothing.
const OTHER: u32 = 54_321;

/// A directory with scripts, and the recorder's collection of the scripts that are run there.
struct Machine {
    directory: TempDir,
    scripts: Scripts,
}

impl Machine {
    fn new() -> Machine {
        let directory = TempDir::new().unwrap();
        let all = std::fs::Permissions::from_mode(0o755);
        std::fs::set_permissions(directory.path(), all).unwrap();
        // In these tests, a script has one line. `. NAME` executes the file NAME, and `. NAME/*` executes all files of
        // the directory NAME. Any other line executes no file.
        let finder = ScriptFinder {
            file: |argv| argv.args().nth(1).filter(|word| *word != b"-c"),
            text: |argv| argv.args().nth(2),
            sourced: |text, _, directory, names| {
                let Some(name) = text.strip_prefix(b". ").map(<[u8]>::trim_ascii_end) else {
                    return Vec::new();
                };
                let path = path_of(directory, name.strip_suffix(b"/*").unwrap_or(name));
                let paths = path.into_iter();
                if !name.ends_with(b"/*") {
                    return paths.collect();
                }
                let paths = paths.flat_map(|directory| {
                    let names = names(&directory).into_iter();
                    let paths = names.filter_map(move |name| path_of(&directory, &name));
                    paths.collect::<Vec<_>>()
                });
                paths.collect()
            },
            without_values: |text| {
                let text = String::from_utf8(text.to_vec()).ok()?;
                Some(text.replace("abc", "***").into_bytes())
            },
        };
        Machine {
            directory,
            scripts: Scripts::new(Some(finder)),
        }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    fn write(&self, name: &str, text: impl AsRef<[u8]>) {
        std::fs::write(self.path(name), text).unwrap();
    }

    /// Handles the exec of `sh NAME` by a task with the rights of this user.
    fn run_as(&mut self, user: u32, name: &str) {
        self.scripts.begin_batch();
        self.run_at(host::now(), user, name);
    }

    fn run_at(&mut self, time: Ktime, user: u32, name: &str) {
        let exec = Exec {
            argv: Argv::from_args(["sh", name]),
            directory: self.directory.path().as_os_str().as_bytes().into(),
            ..Exec::default()
        };
        let own = std::process::id();
        let runner = Runner::of(i32::try_from(own).unwrap()).unwrap();
        let runner = Runner {
            fsuid: user,
            fsgid: user,
            ..runner
        };
        self.scripts.executed(time, &exec, Some(runner));
    }

    fn run(&mut self, name: &str) {
        self.run_as(Uid::effective().as_raw(), name);
    }

    /// The names and texts of the scripts, and the number of those that were left out.
    fn kept(mut self) -> (Vec<(String, Option<String>)>, u64) {
        let (scripts, left_out) = self.scripts.take();
        let name = |path: &[u8]| {
            let path = Path::new(std::ffi::OsStr::from_bytes(path));
            let name = path.strip_prefix(self.directory.path()).unwrap();
            name.to_str().unwrap().to_owned()
        };
        let scripts = scripts.into_iter().map(|script| {
            let text = script.text.map(|text| String::from_utf8(text).unwrap());
            (name(&script.path), text)
        });
        (scripts.collect(), left_out)
    }
}

fn text(name: &str, text: &str) -> (String, Option<String>) {
    (name.to_owned(), Some(text.to_owned()))
}

#[test]
fn a_script_is_kept_once() {
    assert!(is_possible());
    let mut machine = Machine::new();
    machine.write("b", "exit 3");
    machine.write("a", "");
    for name in ["b", "./b", "a"] {
        machine.run(name);
    }
    symlink("b", machine.path("link")).unwrap();
    machine.run("link");
    machine.run("none");
    let want = [text("a", ""), text("b", "exit 3"), text("link", "exit 3")];
    assert_eq!(machine.kept(), (want.into(), 0));
}

#[test]
fn files_that_a_script_executes_itself_are_kept_without_values() {
    let mut machine = Machine::new();
    machine.write("a", ". b");
    machine.write("b", ". c");
    machine.write("c", ". a");
    machine.run("a");
    // No file `e` exists when the script `d` runs, so `e` has no text.
    machine.write("d", ". e");
    machine.run("d");
    machine.run("other");
    let want = [
        text("a", ". b"),
        text("b", ". c"),
        text("c", ". a"),
        text("d", ". e"),
    ];
    assert_eq!(machine.kept(), (want.into(), 0));

    let mut machine = Machine::new();
    machine.write("settings", "TOKEN=abc\nstatus=1\n");
    machine.write("a", ". settings");
    machine.run("a");
    let want = [
        text("a", ". settings"),
        text("settings", "TOKEN=***\nstatus=1\n"),
    ];
    assert_eq!(machine.kept(), (want.into(), 0));
}

#[test]
fn the_files_of_a_directory_that_a_script_executes_are_kept() {
    let mut machine = Machine::new();
    std::fs::create_dir(machine.path("parts")).unwrap();
    machine.write("parts/1", "TOKEN=abc\n");
    machine.write("parts/2", "exit 3");
    machine.write("a", ". parts/*");
    machine.write("b", ". none/*");
    machine.run("a");
    machine.run("b");
    let want = [
        text("a", ". parts/*"),
        text("b", ". none/*"),
        text("parts/1", "TOKEN=***\n"),
        text("parts/2", "exit 3"),
    ];
    assert_eq!(machine.kept(), (want.into(), 0));
}

#[test]
fn a_changed_script_has_no_text() {
    let mut machine = Machine::new();
    machine.write("a", "exit 3");
    machine.write("b", "exit 3");
    let before = host::now();
    machine.run("a");
    machine.run("b");
    machine.write("a", "exit 4");
    machine.run("a");
    // The script's path now leads to another file with the same bytes, which does not count as a change.
    std::fs::remove_file(machine.path("b")).unwrap();
    machine.write("b", "exit 3");
    machine.run("b");
    // The file is written after the time of the exec. The sleep makes that certain, because the kernel's clock for
    // files may be 10 ms behind.
    std::thread::sleep(std::time::Duration::from_millis(30));
    machine.write("c", "exit 3");
    machine.run_at(before, Uid::effective().as_raw(), "c");
    machine.run_at(host::now(), Uid::effective().as_raw(), "c");
    let want = [
        ("a".to_owned(), None),
        text("b", "exit 3"),
        ("c".to_owned(), None),
    ];
    assert_eq!(machine.kept(), (want.into(), 0));
}

/// Tests that a script has no text if the kernel's clock for files does not show whether it was written before both
/// execs or between them.
#[test]
fn a_script_that_is_written_and_run_twice_at_once_has_no_text() {
    let mut machine = Machine::new();
    let own = Uid::effective().as_raw();
    machine.write("old", "exit 3");
    std::thread::sleep(std::time::Duration::from_nanos(2 * tick()));
    let time = host::now();
    machine.write("new", "exit 3");
    machine.scripts.begin_batch();
    for name in ["new", "new", "old", "old"] {
        machine.run_at(time, own, name);
    }
    let want = [("new".to_owned(), None), text("old", "exit 3")];
    assert_eq!(machine.kept(), (want.into(), 0));
}

#[test]
fn only_short_regular_files_with_text_are_read() {
    let mut machine = Machine::new();
    let most = "x".repeat(usize::try_from(limits::SCRIPT).unwrap());
    machine.write("most", &most);
    machine.write("more", format!("{most}x"));
    machine.write("binary", "exit\0");
    mkfifo(&machine.path("fifo"), Mode::S_IRWXU).unwrap();
    for name in ["most", "more", "binary", "fifo", ".", "/dev/null"] {
        machine.run(name);
    }
    assert_eq!(machine.kept(), (vec![text("most", &most)], 1));
}

/// Tests that a FIFO is not opened: even a short open for reading would let the writer go on.
#[test]
fn a_fifo_is_not_opened() {
    let mut machine = Machine::new();
    mkfifo(&machine.path("fifo"), Mode::S_IRWXU).unwrap();
    let path = machine.path("fifo");
    let writer = std::thread::spawn(move || std::fs::OpenOptions::new().write(true).open(path));
    std::thread::sleep(std::time::Duration::from_millis(50));
    for _ in 0..100 {
        machine.run("fifo");
    }
    std::thread::sleep(std::time::Duration::from_millis(50));
    assert!(!writer.is_finished());
    let reader = std::fs::File::open(machine.path("fifo"));
    writer.join().unwrap().unwrap();
    drop(reader);
    assert_eq!(machine.kept(), (Vec::new(), 0));
}

#[test]
fn there_is_room_for_so_many_scripts() {
    let mut machine = Machine::new();
    let half = "x".repeat(1 << 15);
    for number in 0..40 {
        machine.write(&number.to_string(), &half);
        machine.run(&number.to_string());
        machine.run(&number.to_string());
    }
    let (kept, left_out) = machine.kept();
    assert_eq!((kept.len(), left_out), (32, 8));

    let mut machine = Machine::new();
    for number in 0..300 {
        machine.write(&number.to_string(), "x");
        machine.run(&number.to_string());
    }
    let (kept, left_out) = machine.kept();
    assert_eq!((kept.len(), left_out), (256, 44));
}

#[test]
fn a_task_in_another_tree_of_mounts_is_left_alone() {
    let mut machine = Machine::new();
    machine.write("a", "exit 3");
    let exec = Exec {
        argv: Argv::from_args(["sh", machine.path("a").to_str().unwrap()]),
        ..Exec::default()
    };
    let own = Runner::of(i32::try_from(std::process::id()).unwrap()).unwrap();
    for root_mount in [None, own.root_mount.map(|id| id + 1)] {
        let runner = Runner { root_mount, ..own };
        machine.scripts.executed(host::now(), &exec, Some(runner));
    }
    machine.scripts.executed(host::now(), &exec, None);
    assert_eq!(machine.kept(), (Vec::new(), 0));
}

/// Tests that the recorder reads no secret file for an unprivileged user. The user starts a shell with the path of a
/// file that only root can read, or with a link to that file.
#[test]
fn root_reads_for_a_user_what_that_user_can_read() {
    if !Uid::effective().is_root() {
        eprintln!("skipped: only root can read for others");
        return;
    }
    let mut machine = Machine::new();
    let mode = |name: &str, mode: u32| {
        let mode = std::fs::Permissions::from_mode(mode);
        std::fs::set_permissions(machine.path(name), mode).unwrap();
    };
    for name in ["public", "secret", "own", "group"] {
        machine.write(name, name);
    }
    mode("secret", 0o600);
    mode("own", 0o600);
    mode("group", 0o640);
    let (user, group) = (Uid::from_raw(OTHER), Gid::from_raw(OTHER));
    chown(&machine.path("own"), Some(user), None).unwrap();
    chown(&machine.path("group"), None, Some(group)).unwrap();
    symlink("secret", machine.path("link")).unwrap();
    std::fs::create_dir(machine.path("closed")).unwrap();
    machine.write("closed/public", "secret");
    mode("closed", 0o700);
    machine.write("parts", ". closed/*");
    let names = [
        "public",
        "secret",
        "own",
        "group",
        "link",
        "closed/public",
        "parts",
    ];
    for name in names {
        machine.run_as(OTHER, name);
    }
    // The recorder has its own rights again afterwards.
    assert!(std::fs::read(machine.path("secret")).is_ok());
    let status = std::fs::read_to_string("/proc/thread-self/status").unwrap();
    assert!(status.contains("Uid:\t0\t0\t0\t0"), "{status}");
    let mut want = vec![text("group", "group"), text("own", "own")];
    want.extend([text("parts", ". closed/*"), text("public", "public")]);
    assert_eq!(machine.kept(), (want, 0));
}
