//! Memory limits. A process beyond one is killed, or ends at its next allocation: a recorder
//! that has not enough memory does not start.

use std::path::{Path, PathBuf};

use crate::error::Error;

/// Refuses to start with less than `needed` bytes.
///
/// # Errors
/// [`Error::Memory`].
pub fn check(needed: u64) -> Result<(), Error> {
    let short = |limit| Error::Memory { needed, limit };
    if !can_map(needed) {
        return Err(short("the process's (ulimit -v, ulimit -d)"));
    }
    match cgroup_limit() {
        Some(limit) if limit < needed => Err(short("the cgroup's")),
        _ => Ok(()),
    }
}

/// The kernel gives so much address space.
fn can_map(bytes: u64) -> bool {
    let Ok(length) = usize::try_from(bytes) else {
        return false;
    };
    let (access, kind) = (
        libc::PROT_READ | libc::PROT_WRITE,
        libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE,
    );
    // SAFETY: a new mapping at a place of the kernel's choice, which nothing uses.
    unsafe {
        let place = libc::mmap(std::ptr::null_mut(), length, access, kind, -1, 0);
        place != libc::MAP_FAILED && libc::munmap(place, length) == 0
    }
}

/// The least memory limit of this process's cgroup and of those above.
fn cgroup_limit() -> Option<u64> {
    let own = std::fs::read_to_string("/proc/self/cgroup").ok()?;
    let mounts = std::fs::read_to_string("/proc/self/mountinfo").ok()?;
    let limits = own.lines().filter_map(|line| {
        let mut fields = line.splitn(3, ':').skip(1);
        let (controllers, path) = (fields.next()?, fields.next()?);
        let (mount, file) = if controllers.is_empty() {
            (mount_of(&mounts, "cgroup2", "")?, "memory.max")
        } else if controllers.split(',').any(|name| name == "memory") {
            let mount = mount_of(&mounts, "cgroup", "memory")?;
            (mount, "memory.limit_in_bytes")
        } else {
            return None;
        };
        least(&mount, path, file)
    });
    limits.min()
}

/// The least number in the files of this name from the cgroup's directory up to the mount.
fn least(mount: &Path, path: &str, file: &str) -> Option<u64> {
    let below = mount.join(path.trim_start_matches('/'));
    let levels = below.ancestors().take_while(|dir| dir.starts_with(mount));
    let limit = |dir: &Path| {
        let text = std::fs::read_to_string(dir.join(file)).ok()?;
        // "max" is no limit.
        text.trim().parse().ok()
    };
    levels.filter_map(limit).min()
}

/// The mount point of a cgroup hierarchy (proc_pid_mountinfo(5)).
pub fn mount_of(mounts: &str, kind: &str, controller: &str) -> Option<PathBuf> {
    mounts.lines().find_map(|line| {
        let (left, right) = line.split_once(" - ")?;
        let mut fields = right.split(' ');
        let found = fields.next()? == kind
            && (controller.is_empty() || fields.nth(1)?.split(',').any(|name| name == controller));
        found.then(|| left.split(' ').nth(4).map(PathBuf::from))?
    })
}

#[cfg(test)]
mod tests {
    use super::{least, mount_of};

    const MOUNTS: &str = "\
25 1 0:22 / /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw
26 1 0:23 / /sys/fs/cgroup/cpu rw - cgroup cgroup rw,cpu,cpuacct
27 1 0:24 / /sys/fs/cgroup/memory rw,nosuid - cgroup cgroup rw,memory
";

    #[test]
    fn a_hierarchy_is_found_by_its_controller() {
        let found = |kind, controller| mount_of(MOUNTS, kind, controller);
        assert_eq!(found("cgroup2", ""), Some("/sys/fs/cgroup/unified".into()));
        assert_eq!(
            found("cgroup", "memory"),
            Some("/sys/fs/cgroup/memory".into())
        );
        assert_eq!(found("cgroup", "pids"), None);
    }

    #[test]
    fn the_least_limit_counts() {
        let dir = tempfile::tempdir().unwrap();
        let inner = dir.path().join("a/b");
        std::fs::create_dir_all(&inner).unwrap();
        std::fs::write(dir.path().join("limit"), "max\n").unwrap();
        assert_eq!(least(dir.path(), "/a/b", "limit"), None);
        std::fs::write(dir.path().join("a/limit"), "1000\n").unwrap();
        std::fs::write(inner.join("limit"), "2000\n").unwrap();
        assert_eq!(least(dir.path(), "/a/b", "limit"), Some(1000));
        assert_eq!(least(dir.path(), "/", "limit"), None);
    }
}
