//! Unit tests of how outputs are written: which files are replaced, which links are
//! followed, and which outputs are refused.
#![allow(clippy::unwrap_used)] // in a test

use std::fs::Permissions;
use std::io::Read;
use std::os::unix::fs::{chown, lchown, symlink, FileTypeExt, PermissionsExt};

use super::*;

const SETTINGS: Settings = Settings {
    mode: 0o600,
    binary: true,
    replaces: None,
    keeps: false,
    closed_streams: [false; 3],
};

fn write(path: &Path) -> io::Result<()> {
    let target = Target::of(path);
    whole(&target, &SETTINGS, |out| out.write_all(b"new"))
}

fn mkfifo(path: &Path) {
    nix::unistd::mkfifo(path, nix::sys::stat::Mode::S_IRWXU).unwrap();
}

fn names(directory: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(directory).unwrap().flatten();
    let mut names: Vec<_> = entries
        .map(|e| e.file_name().into_string().unwrap())
        .collect();
    names.sort();
    names
}

/// Whether the test runs as root. Only root can make files of other users, which some tests need.
fn is_root() -> bool {
    Uid::effective().is_root()
}

#[test]
fn a_regular_file_is_replaced_and_a_link_is_followed() {
    let dir = tempfile::tempdir().unwrap();
    let at = |name: &str| dir.path().join(name);
    write(&at("new")).unwrap();
    std::fs::write(at("old"), "old").unwrap();
    std::fs::hard_link(at("old"), at("hard")).unwrap();
    write(&at("old")).unwrap();
    symlink("old", at("link")).unwrap();
    symlink("link", at("second")).unwrap();
    std::fs::write(at("old"), "old").unwrap();
    write(&at("second")).unwrap();
    symlink("absent", at("dangling")).unwrap();
    write(&at("dangling")).unwrap();
    for name in ["new", "old", "absent"] {
        assert_eq!(std::fs::read(at(name)).unwrap(), b"new", "{name}");
    }
    assert_eq!(std::fs::read(at("hard")).unwrap(), b"old");
    assert!(std::fs::symlink_metadata(at("link")).unwrap().is_symlink());
    assert_eq!(
        names(dir.path()),
        ["absent", "dangling", "hard", "link", "new", "old", "second"]
    );
    symlink("loop", at("loop")).unwrap();
    assert!(write(&at("loop")).is_err());
    assert!(write(dir.path()).is_err());
}

const NEW: FileKind = FileKind {
    name: "a new file",
    is: |bytes| bytes.starts_with(b"new"),
};

#[test]
fn a_file_of_another_kind_stays() {
    let dir = tempfile::tempdir().unwrap();
    let at = |name: &str| dir.path().join(name);
    let settings = Settings {
        replaces: Some(NEW),
        ..SETTINGS
    };
    let write = |path: &Path| whole(&Target::of(path), &settings, |out| out.write_all(b"new"));
    std::fs::write(at("main.c"), "int main").unwrap();
    symlink("main.c", at("link")).unwrap();
    for name in ["main.c", "link"] {
        let error: io::Error = write(&at(name)).unwrap_err();
        assert!(error.to_string().contains("is not a new file"), "{error}");
    }
    assert_eq!(std::fs::read(at("main.c")).unwrap(), b"int main");
    std::fs::write(at("empty"), "").unwrap();
    std::fs::write(at("own"), "new and longer").unwrap();
    for name in ["empty", "own", "absent"] {
        write(&at(name)).unwrap();
        assert_eq!(std::fs::read(at(name)).unwrap(), b"new", "{name}");
    }
    write(Path::new("/dev/null")).unwrap();
}

#[test]
fn the_file_before_is_kept() {
    let dir = tempfile::tempdir().unwrap();
    let at = |name: &str| dir.path().join(name);
    let settings = Settings {
        replaces: Some(NEW),
        keeps: true,
        ..SETTINGS
    };
    let write = |bytes: &[u8]| {
        whole(&Target::of(&at("x")), &settings, |out| out.write_all(bytes))
            .map_err(|e: io::Error| e)
    };
    for bytes in [b"new1", b"new2", b"new3"] {
        write(bytes).unwrap();
    }
    assert_eq!(std::fs::read(at("x")).unwrap(), b"new3");
    assert_eq!(std::fs::read(at("x.old")).unwrap(), b"new2");
    // If NAME.old is a file of another kind, it is not replaced.
    std::fs::write(at("x.old"), "precious").unwrap();
    write(b"new4").unwrap();
    assert_eq!(std::fs::read(at("x")).unwrap(), b"new4");
    assert_eq!(std::fs::read(at("x.old")).unwrap(), b"precious");
    assert_eq!(names(dir.path()), ["x", "x.old"]);
}

#[test]
fn a_failed_output_leaves_nothing() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("x");
    std::fs::write(&path, "old").unwrap();
    let failed: io::Result<()> = whole(&Target::of(&path), &SETTINGS, |out| {
        out.write_all(b"new")?;
        Err(io::Error::other("failed"))
    });
    assert!(failed.is_err());
    assert_eq!(std::fs::read(&path).unwrap(), b"old");
    assert_eq!(names(dir.path()), ["x"]);
}

#[test]
fn a_fifo_and_a_device_are_written() {
    let dir = tempfile::tempdir().unwrap();
    let fifo = dir.path().join("fifo");
    mkfifo(&fifo);
    let reader = std::thread::spawn({
        let fifo = fifo.clone();
        move || {
            let mut got = String::new();
            File::open(fifo).unwrap().read_to_string(&mut got).unwrap();
            got
        }
    });
    write(&fifo).unwrap();
    assert_eq!(reader.join().unwrap(), "new");
    assert!(std::fs::metadata(&fifo).unwrap().file_type().is_fifo());
    write(Path::new("/dev/null")).unwrap();
    let link = dir.path().join("null");
    symlink("/dev/null", &link).unwrap();
    write(&link).unwrap();
    assert!(write(Path::new("/dev/full")).is_err());
}

#[test]
fn a_descriptor_is_written_where_it_stands() {
    let mut file = tempfile::tempfile().unwrap();
    file.write_all(b"old ").unwrap();
    let path = PathBuf::from(format!("/dev/fd/{}", file.as_raw_fd()));
    write(&path).unwrap();
    use std::io::Seek;
    file.rewind().unwrap();
    let mut got = String::new();
    file.read_to_string(&mut got).unwrap();
    assert_eq!(got, "old new");
    let closed = Settings {
        closed_streams: [false, true, false],
        ..SETTINGS
    };
    for path in ["-", "/dev/stdout", "/proc/self/fd/1"] {
        let opened = Destination::open(&Target::of(Path::new(path)), &closed);
        assert_eq!(
            opened.unwrap_err().raw_os_error(),
            Some(libc::EBADF),
            "{path}"
        );
    }
}

#[test]
fn others_can_plant_neither_a_link_nor_a_fifo() {
    if !is_root() {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let at = |name: &str| dir.path().join(name);
    std::fs::write(at("victim"), "precious").unwrap();
    mkfifo(&at("fifo"));
    chown(at("fifo"), Some(65534), None).unwrap();
    for (name, target) in [
        ("link", "victim"),
        ("null", "/dev/null"),
        ("out", "/dev/stdout"),
    ] {
        symlink(target, at(name)).unwrap();
        lchown(at(name), Some(65534), None).unwrap();
    }
    let all = ["link", "null", "out", "fifo"];
    // Other users can put files into each of these directories: one that is sticky and open to all, one that is open to
    // a group, and one of another user.
    for (mode, owner) in [(0o1777, 0), (0o770, 0), (0o700, 65534)] {
        std::fs::set_permissions(dir.path(), Permissions::from_mode(mode)).unwrap();
        chown(dir.path(), Some(owner), None).unwrap();
        for name in all {
            let error = write(&at(name)).unwrap_err().to_string();
            assert!(
                error.contains(" of user 65534 ") && error.contains(name),
                "{error}"
            );
        }
    }
    assert_eq!(std::fs::read(at("victim")).unwrap(), b"precious");
    // In this directory only root can have made the links, so that they are followed.
    std::fs::set_permissions(dir.path(), Permissions::from_mode(0o755)).unwrap();
    chown(dir.path(), Some(0), None).unwrap();
    write(&at("link")).unwrap();
    assert_eq!(std::fs::read(at("victim")).unwrap(), b"new");
}

#[test]
fn an_exchanged_file_is_noticed() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("x");
    mkfifo(&path);
    let Place::Special(at, place) = place::of(&path).unwrap() else {
        panic!("no fifo");
    };
    std::fs::remove_file(&path).unwrap();
    std::fs::write(&path, "other").unwrap();
    assert!(existing(&at, place).is_err());
}

#[test]
fn modes_follow_the_input() {
    let dir = tempfile::tempdir().unwrap();
    let input = dir.path().join("in");
    std::fs::write(&input, "x").unwrap();
    for (mode, want) in [(0o600, 0o600), (0o755, 0o644), (0o440, 0o640)] {
        std::fs::set_permissions(&input, Permissions::from_mode(mode)).unwrap();
        assert_eq!(mode_like(&input), want);
    }
    assert_eq!(mode_like(Path::new("-")), 0o600);
}
