//! Cgroups: their directories (cgroups(7), proc_pid_mountinfo(5)) and ids.

use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::{Component, Path, PathBuf};

use nix::sys::statfs::{statfs, CGROUP2_SUPER_MAGIC};

/// A mounted hierarchy.
struct Mount {
    /// The cgroup at the mount point. In a container that may be the container's, and those above
    /// it cannot be seen.
    cgroup: PathBuf,
    point: PathBuf,
}

/// The mounts of a controller's hierarchy; "" is cgroup v2.
fn mounts<'a>(mountinfo: &'a str, controller: &'a str) -> impl Iterator<Item = Mount> + 'a {
    // Of two at one point the later one is seen.
    mountinfo.lines().rev().filter_map(move |line| {
        let (mount, kind) = line.split_once(" - ")?;
        let (mut mount, mut kind) = (mount.split(' ').skip(3), kind.split(' '));
        let (cgroup, point) = (mount.next()?, mount.next()?);
        let found = match (kind.next()?, controller) {
            ("cgroup2", "") => true,
            ("cgroup", "") => false,
            ("cgroup", _) => has(kind.nth(1)?, controller),
            _ => false,
        };
        let of = |text| PathBuf::from(plain(text));
        found.then(|| Mount {
            cgroup: of(cgroup),
            point: of(point),
        })
    })
}

/// A path of mountinfo, in which these characters are octal.
fn plain(text: &str) -> String {
    let octal = [("\\040", " "), ("\\011", "\t"), ("\\012", "\n")];
    let text = octal
        .iter()
        .fold(text.to_owned(), |text, (code, character)| {
            text.replace(code, character)
        });
    text.replace("\\134", "\\")
}

/// Whether a list of controllers has that one.
fn has(controllers: &str, controller: &str) -> bool {
    controllers.split(',').any(|it| it == controller)
}

/// This process's `/proc/self/cgroup` and `/proc/self/mountinfo`.
pub fn own() -> (String, String) {
    // A mount point may have any bytes.
    let read = |path: &str| {
        let bytes = fs::read(path).unwrap_or_default();
        String::from_utf8_lossy(&bytes).into_owned()
    };
    (read("/proc/self/cgroup"), read("/proc/self/mountinfo"))
}

/// The directories of a task's cgroup and of those above it, as far as they are mounted, the task's own
/// first. `cgroups`: its `/proc/PID/cgroup`; `controller`: of cgroup v1, "" is v2. Without the
/// root of the hierarchy: its figures are the machine's.
pub fn directories(cgroups: &str, mountinfo: &str, controller: &str) -> Vec<PathBuf> {
    let path = cgroups.lines().find_map(|line| {
        let mut fields = line.splitn(3, ':').skip(1);
        let (controllers, path) = (fields.next()?, fields.next()?);
        let found = match controller {
            "" => controllers.is_empty(),
            _ => has(controllers, controller),
        };
        found.then_some(Path::new(path))
    });
    let levels = |mount: Mount| {
        // Both are of the cgroup namespace, if there is one.
        let below = path?.strip_prefix(&mount.cgroup).ok()?;
        let plain = |it: Component<'_>| matches!(it, Component::Normal(_));
        let own = mount.point.join(below);
        let levels = own
            .ancestors()
            .take_while(|it| it.starts_with(&mount.point));
        let levels = levels.filter(|it| it.is_dir() && !is_root(it, controller));
        let levels: Vec<PathBuf> = levels.map(Path::to_owned).collect();
        (below.components().all(plain) && !levels.is_empty()).then_some(levels)
    };
    mounts(mountinfo, controller)
        .find_map(levels)
        .unwrap_or_default()
}

/// A limit in a file of a cgroup; "max" is none.
pub fn limit(directory: &Path, file: &str) -> Option<u64> {
    let text = fs::read_to_string(directory.join(file)).ok()?;
    text.trim().parse().ok()
}

/// Whether a directory is the root of its hierarchy: this file is there alone, that one in all others.
fn is_root(directory: &Path, controller: &str) -> bool {
    match controller {
        "" => !directory.join("cgroup.type").exists(),
        _ => directory.join("release_agent").exists(),
    }
}

/// The mount points of the controllers' hierarchies, in the controllers' order; "" is cgroup v2.
pub fn points(mountinfo: &str, controllers: &[&str]) -> Vec<PathBuf> {
    let all = controllers.iter().flat_map(|it| mounts(mountinfo, it));
    all.map(|it| it.point).collect()
}

/// The mount point of the cgroup v2 hierarchy.
pub fn mount() -> Option<PathBuf> {
    let (_, mountinfo) = own();
    points(&mountinfo, &[""]).into_iter().next()
}

/// The least memory limit of this process's cgroup and of those above.
pub fn memory_limit() -> Option<u64> {
    let (own, mountinfo) = own();
    let files = [("", "memory.max"), ("memory", "memory.limit_in_bytes")];
    let limits = files.into_iter().flat_map(|(controller, file)| {
        let all = directories(&own, &mountinfo, controller);
        all.into_iter().filter_map(move |it| limit(&it, file))
    });
    limits.min()
}

/// The id of a cgroup v2 directory: its inode number.
///
/// # Errors
/// The path is no directory, or one of another file system: cgroup v1 has ids of its own.
pub fn id(path: &Path) -> std::io::Result<u64> {
    let meta = fs::metadata(path)?;
    if !meta.is_dir() {
        return Err(std::io::ErrorKind::NotADirectory.into());
    }
    if statfs(path)?.filesystem_type() != CGROUP2_SUPER_MAGIC {
        return Err(std::io::Error::other("another file system has it"));
    }
    Ok(meta.ino())
}

/// The paths of all cgroups by id, from the root of the mounted hierarchy.
pub fn paths() -> Vec<(u64, Vec<u8>)> {
    let Some(mount) = mount() else {
        return Vec::new();
    };
    let mut paths = Vec::new();
    let mut open = vec![mount.clone()];
    while let Some(directory) = open.pop() {
        if let Ok(id) = id(&directory) {
            let below = directory.strip_prefix(&mount).unwrap_or(&directory);
            paths.push((id, [b"/", below.as_os_str().as_bytes()].concat()));
        }
        let Ok(entries) = fs::read_dir(&directory) else {
            continue;
        };
        open.extend(
            entries
                .flatten()
                .filter(|e| e.file_type().is_ok_and(|t| t.is_dir()))
                .map(|e| e.path()),
        );
    }
    paths
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_hierarchy_is_mounted_anywhere() {
        let mountinfo = "30 24 0:26 / /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw\n\
                         31 24 0:27 / /mnt/cpu,cpuacct rw - cgroup cgroup rw,cpu,cpuacct\n";
        let found = points(mountinfo, &["cpu", ""]);
        let expected = ["/mnt/cpu,cpuacct", "/sys/fs/cgroup/unified"];
        assert_eq!(found, expected.map(PathBuf::from));
    }

    /// On the host, in a container without and with a cgroup namespace.
    #[test]
    fn a_tasks_directories_are_found() {
        let dir = tempfile::tempdir().unwrap();
        let make = |path: &str, file: &str| {
            let made = dir.path().join(path);
            fs::create_dir_all(&made).unwrap();
            fs::write(made.join(file), "").unwrap();
        };
        make("unified", "cgroup.procs");
        make("unified/ci", "cgroup.type");
        make("unified/ci/job", "cgroup.type");
        make("memory", "release_agent");
        make("memory/ci/job", "tasks");
        let at = dir.path().display();
        let found = |cgroups: &str, root: &str, point: &str, controller: &str| {
            let kind = match controller {
                "" => "cgroup2 cgroup2 rw",
                _ => "cgroup cgroup rw,memory,hugetlb",
            };
            let mountinfo = format!(
                "24 1 0:22 / / rw - ext4 /dev/vda rw\n25 1 0:23 {root} {at}/{point} rw,nosuid - {kind}\n"
            );
            let all = directories(cgroups, &mountinfo, controller);
            let below = all.iter().map(|it| it.strip_prefix(dir.path()).unwrap());
            below.map(|it| it.display().to_string()).collect::<Vec<_>>()
        };
        let v2 = ["unified/ci/job", "unified/ci"];
        assert_eq!(found("0::/ci/job\n", "/", "unified", ""), v2);
        // The mount shows the container's cgroup, and the path is the host's.
        let v1 = "9:hugetlb,memory:/ci/job\n0::/\n";
        assert_eq!(
            found(v1, "/", "memory", "memory"),
            ["memory/ci/job", "memory/ci"]
        );
        assert_eq!(
            found(v1, "/ci/job", "memory/ci/job", "memory"),
            ["memory/ci/job"]
        );
        // Both are of the namespace.
        assert_eq!(
            found("0::/\n", "/", "unified/ci/job", ""),
            ["unified/ci/job"]
        );
        // The root's figures are the machine's.
        let none = Vec::<String>::new();
        assert_eq!(found("0::/\n", "/", "unified", ""), none);
        assert_eq!(found("9:memory:/\n", "/", "memory", "memory"), none);
        // A cgroup out of sight, and the mount of another container.
        assert_eq!(found("0::/../ci\n", "/", "unified/ci/job", ""), none);
        assert_eq!(found("0::/\n", "/..", "unified/ci/job", ""), none);
        assert_eq!(found("0::/\n", "/ci/job", "unified/ci/job", ""), none);
        assert_eq!(found("0::/ci/job\n", "/", "unified", "cpu"), none);
        make("unified/a b\\x2dc", "cgroup.type");
        assert_eq!(
            found(
                "0::/a b\\x2dc\n",
                r"/a\040b\134x2dc",
                r"unified/a\040b\134x2dc",
                ""
            ),
            ["unified/a b\\x2dc"]
        );
    }
}
