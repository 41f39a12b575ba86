//! Finds cgroups: their directories (cgroups(7), proc_pid_mountinfo(5)) and ids.

use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::{Component, Path, PathBuf};

use nix::sys::statfs::{statfs, CGROUP2_SUPER_MAGIC};

/// A mounted hierarchy of cgroups, from a line of mountinfo.
struct Mount {
    /// The path of the cgroup that is mounted at `point`. In a container, this can be the container's own cgroup, whose
    /// ancestors are then not visible.
    cgroup: PathBuf,
    point: PathBuf,
}

/// The mounts of the cgroup hierarchy that has the given controller; "" stands for cgroup v2.
fn mounts<'a>(mountinfo: &'a str, controller: &'a str) -> impl Iterator<Item = Mount> + 'a {
    // If two mounts have the same mount point, only the later mount is visible. So the lines are read from the end.
    mountinfo.lines().rev().filter_map(move |line| {
        let (mount, kind) = line.split_once(" - ")?;
        let mut fields = mount.split(' ').skip(3);
        let (cgroup, point) = (fields.next()?, fields.next()?);
        let mut kind = kind.split(' ');
        let is_wanted = match (kind.next()?, controller) {
            ("cgroup2", "") => true,
            ("cgroup", "") => false,
            ("cgroup", _) => has(kind.nth(1)?, controller),
            _ => false,
        };
        is_wanted.then(|| Mount {
            cgroup: unescaped(cgroup).into(),
            point: unescaped(point).into(),
        })
    })
}

/// A path of mountinfo, with its octal escapes replaced by the characters that they stand for.
fn unescaped(text: &str) -> String {
    let octal = [("\\040", " "), ("\\011", "\t"), ("\\012", "\n")];
    let without_blanks = octal
        .iter()
        .fold(text.to_owned(), |text, (code, character)| {
            text.replace(code, character)
        });
    without_blanks.replace("\\134", "\\")
}

fn has(controllers: &str, controller: &str) -> bool {
    controllers.split(',').any(|listed| listed == controller)
}

/// The contents of this process's `/proc/self/cgroup` and `/proc/self/mountinfo`.
pub fn own() -> (String, String) {
    // The text may contain bytes that are not UTF-8, because the path of a mount point may have any bytes.
    let read = |path: &str| {
        let bytes = fs::read(path).unwrap_or_default();
        String::from_utf8_lossy(&bytes).into_owned()
    };
    (read("/proc/self/cgroup"), read("/proc/self/mountinfo"))
}

/// The directories of a task's cgroup and of its ancestors, as far as they are mounted, with the task's own cgroup
/// first. `cgroups` is the content of the task's `/proc/PID/cgroup`. `controller` is a controller of cgroup v1, or ""
/// for cgroup v2. The root of the hierarchy is left out, because its figures are those of the whole machine.
pub fn directories(cgroups: &str, mountinfo: &str, controller: &str) -> Vec<PathBuf> {
    let path = cgroups.lines().find_map(|line| {
        let mut fields = line.splitn(3, ':').skip(1);
        let (controllers, path) = (fields.next()?, fields.next()?);
        let is_wanted = match controller {
            "" => controllers.is_empty(),
            _ => has(controllers, controller),
        };
        is_wanted.then_some(Path::new(path))
    });
    let levels = |mount: Mount| {
        // Even in a cgroup namespace, the mount's path and the task's path begin at the same directory: the root of the
        // namespace. So the mount's path can be removed from the beginning of the task's path.
        let below = path?.strip_prefix(&mount.cgroup).ok()?;
        let is_name = |part: Component<'_>| matches!(part, Component::Normal(_));
        let own = mount.point.join(below);
        let levels: Vec<PathBuf> = own
            .ancestors()
            .take_while(|level| level.starts_with(&mount.point))
            .filter(|level| level.is_dir() && !is_root(level, controller))
            .map(Path::to_owned)
            .collect();
        (below.components().all(is_name) && !levels.is_empty()).then_some(levels)
    };
    mounts(mountinfo, controller)
        .find_map(levels)
        .unwrap_or_default()
}

/// The limit that a file in a cgroup's directory contains; `None` if the file contains "max" (no limit) or cannot be
/// read.
pub fn limit(directory: &Path, file: &str) -> Option<u64> {
    let text = fs::read_to_string(directory.join(file)).ok()?;
    text.trim().parse().ok()
}

/// Whether a directory is the root of its hierarchy. In cgroup v1 only the root has a `release_agent`;
/// in cgroup v2 only the root lacks `cgroup.type`.
fn is_root(directory: &Path, controller: &str) -> bool {
    match controller {
        "" => !directory.join("cgroup.type").exists(),
        _ => directory.join("release_agent").exists(),
    }
}

/// The mount points of the cgroup hierarchies that have the given controllers, in the order of the
/// controllers; "" stands for cgroup v2.
pub fn points(mountinfo: &str, controllers: &[&str]) -> Vec<PathBuf> {
    controllers
        .iter()
        .flat_map(|controller| mounts(mountinfo, controller))
        .map(|mount| mount.point)
        .collect()
}

/// The mount point of the cgroup v2 hierarchy.
pub fn mount() -> Option<PathBuf> {
    let (_, mountinfo) = own();
    points(&mountinfo, &[""]).into_iter().next()
}

/// The smallest memory limit in bytes of this process's cgroup and its ancestors; `None` if none has a limit.
pub fn memory_limit() -> Option<u64> {
    let (own, mountinfo) = own();
    let files = [("", "memory.max"), ("memory", "memory.limit_in_bytes")];
    let limits = files.into_iter().flat_map(|(controller, file)| {
        directories(&own, &mountinfo, controller)
            .into_iter()
            .filter_map(move |directory| limit(&directory, file))
    });
    limits.min()
}

/// The id of a cgroup v2 directory: its inode number.
///
/// # Errors
/// The path is not a directory, or it is in another file system. (A directory of cgroup v1 is refused
/// too, because cgroup v1 has ids of its own.)
pub fn id(path: &Path) -> std::io::Result<u64> {
    let meta = fs::metadata(path)?;
    if !meta.is_dir() {
        return Err(std::io::ErrorKind::NotADirectory.into());
    }
    if statfs(path)?.filesystem_type() != CGROUP2_SUPER_MAGIC {
        return Err(std::io::Error::other(
            "it is not in a cgroup v2 file system",
        ));
    }
    Ok(meta.ino())
}

/// The ids and the paths of all cgroups v2. The paths begin at the root of the mounted hierarchy.
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

    /// Tests that the directories of a task's cgroups are found on the host, and in a container without and with a
    /// cgroup namespace.
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
            all.iter()
                .map(|found| found.strip_prefix(dir.path()).unwrap())
                .map(|below| below.display().to_string())
                .collect::<Vec<_>>()
        };
        let v2 = ["unified/ci/job", "unified/ci"];
        assert_eq!(found("0::/ci/job\n", "/", "unified", ""), v2);
        // Without a cgroup namespace the task's path is that of the host, also where the mount shows only the
        // container's cgroup.
        let v1 = "9:hugetlb,memory:/ci/job\n0::/\n";
        assert_eq!(
            found(v1, "/", "memory", "memory"),
            ["memory/ci/job", "memory/ci"]
        );
        assert_eq!(
            found(v1, "/ci/job", "memory/ci/job", "memory"),
            ["memory/ci/job"]
        );
        // In a cgroup namespace, both the mount's root and the task's path are relative to the namespace.
        assert_eq!(
            found("0::/\n", "/", "unified/ci/job", ""),
            ["unified/ci/job"]
        );
        // The root cgroup is left out, because its figures are those of the whole machine.
        let none = Vec::<String>::new();
        assert_eq!(found("0::/\n", "/", "unified", ""), none);
        assert_eq!(found("9:memory:/\n", "/", "memory", "memory"), none);
        // The task's cgroup is not visible below the mount, or the mount belongs to another container.
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
