//! Reads how long CPU quotas have throttled the cgroup of each container. A runtime removes the cgroup together
//! with the container, so the file of the cgroup is kept open and is read until then.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::fs::File;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use tr_format::container::Container;
use tr_output::cgroups;

use crate::containers::RuntimeContainer;
use crate::machine;

/// The largest number of containers whose throttled time is watched at the same time.
const MOST_CONTAINERS: usize = 1024;

/// The containers of recorded runtimes that have a cgroup, and the times for which quotas have throttled them.
#[derive(Debug, Default)]
pub struct Quotas {
    by_id: BTreeMap<Arc<[u8]>, Quota>,
    /// The directories at which the cgroup hierarchies are mounted. They are looked up for the first container.
    mounts: Vec<PathBuf>,
}

#[derive(Debug)]
struct Quota {
    container: Container,
    /// The path of the container's cgroup in its hierarchy, or only the end of that path: a rootless runtime is given
    /// the path below the cgroup of its user's service.
    path: PathBuf,
    /// The open file `cpu.stat` of the container's cgroup; `None` until the runtime has created the cgroup.
    file: Option<File>,
    /// The container's throttled time in ns, as it was read last.
    throttled: Option<u64>,
    ended: bool,
}

impl Quotas {
    /// Adds a container whose runtime was executed, so that its throttled time is watched.
    pub fn add(&mut self, found: &RuntimeContainer) {
        let container = &found.container;
        let Some(path) = found.cgroup.as_deref().and_then(relative) else {
            return;
        };
        if self.mounts.is_empty() {
            let (_, mountinfo) = cgroups::own();
            self.mounts = cgroups::points(&mountinfo, &["cpu", ""]);
        }
        if self.by_id.len() < MOST_CONTAINERS && !self.by_id.contains_key(&container.id) {
            let quota = Quota {
                container: Container {
                    name: Arc::default(),
                    image: Arc::default(),
                    ..container.clone()
                },
                path,
                file: None,
                throttled: None,
                ended: false,
            };
            self.by_id.insert(Arc::clone(&container.id), quota);
        }
    }

    /// Notes that a cgroup with this path was created. The cgroup belongs to a container if its path ends in the path
    /// that the container's runtime was given.
    pub fn made(&mut self, path: &[u8]) {
        let path = Path::new(OsStr::from_bytes(path));
        let of_it = |quota: &&mut Quota| quota.file.is_none() && path.ends_with(&quota.path);
        for quota in self.by_id.values_mut().filter(of_it) {
            quota.read(&self.mounts);
            if quota.file.is_none() {
                quota.path = path.strip_prefix("/").unwrap_or(path).to_owned();
                quota.read(&self.mounts);
            }
        }
    }

    /// Reads the throttled times of all watched containers.
    pub fn read(&mut self) {
        for quota in self.by_id.values_mut().filter(|quota| !quota.ended) {
            quota.read(&self.mounts);
        }
    }

    /// Removes the containers whose cgroup no longer exists, and returns those whose throttled time is known, with
    /// this time. If `all` is set, at the end of the recording, all containers are removed.
    pub fn ended(&mut self, all: bool) -> Vec<Container> {
        let mut ended = Vec::new();
        self.by_id.retain(|_, quota| {
            let ends = quota.ended || all;
            if let Some(ns) = quota.throttled.filter(|_| ends) {
                let throttled = Some(ns);
                ended.push(Container {
                    throttled,
                    ..quota.container.clone()
                });
            }
            !ends
        });
        ended
    }
}

impl Quota {
    fn read(&mut self, mounts: &[PathBuf]) {
        let file = |mount: &PathBuf| File::open(mount.join(&self.path).join("cpu.stat"));
        if self.file.is_none() {
            self.file = mounts.iter().find_map(|mount| file(mount).ok());
        }
        let Some(file) = &self.file else { return };
        match machine::beginning(file) {
            Ok(text) => self.throttled = machine::throttled(&text).or(self.throttled),
            // The read fails with ENODEV when the cgroup has been removed.
            Err(_) => self.ended = true,
        }
    }
}

/// The path of a container's cgroup below the mount point. A runtime is given this path, or, for systemd, a
/// slice, a prefix and a name (docs/systemd.md of opencontainers/runc).
fn relative(path: &str) -> Option<PathBuf> {
    let parts: Vec<&str> = path.split(':').collect();
    let below = match parts[..] {
        [path] => PathBuf::from(path.trim_start_matches('/')),
        [slice, prefix, name] => slices(slice).join(format!("{prefix}-{name}.scope")),
        _ => return None,
    };
    let plain = below
        .components()
        .all(|component| matches!(component, std::path::Component::Normal(_)));
    (plain && below.file_name().is_some()).then_some(below)
}

/// The path of the cgroup of a systemd slice. The slice's name contains its ancestors: `a-b.slice` is inside
/// `a.slice`.
fn slices(slice: &str) -> PathBuf {
    let name = slice.strip_suffix(".slice").unwrap_or(slice);
    let ends = name.match_indices('-').map(|(at, _)| at);
    let names = ends.chain([name.len()]).filter_map(|end| name.get(..end));
    names.map(|name| format!("{name}.slice")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(path: &str) -> RuntimeContainer {
        RuntimeContainer {
            container: Container {
                id: Arc::from(&b"web"[..]),
                ..Container::default()
            },
            cgroup: Some(path.to_owned()),
        }
    }

    fn below(mounts: &[PathBuf]) -> Quotas {
        Quotas {
            mounts: mounts.to_vec(),
            ..Quotas::default()
        }
    }

    #[test]
    fn a_quota_is_read_until_its_cgroup_is_gone() {
        let dir = tempfile::tempdir().unwrap();
        let mut quotas = below(&[dir.path().join("cpu"), dir.path().to_owned()]);
        quotas.add(&found("/docker/web"));
        quotas.read();
        assert!(quotas.ended(false).is_empty());
        let group = dir.path().join("cpu/docker/web");
        std::fs::create_dir_all(&group).unwrap();
        std::fs::write(group.join("cpu.stat"), "nr_throttled 2\nthrottled_time 7\n").unwrap();
        quotas.read();
        assert!(quotas.ended(false).is_empty());
        let throttled: Vec<Option<u64>> = quotas
            .ended(true)
            .iter()
            .map(|container| container.throttled)
            .collect();
        assert_eq!(throttled, [Some(7)]);
        assert!(quotas.by_id.is_empty());
    }

    #[test]
    fn a_rootless_containers_cgroup_is_the_one_that_is_made() {
        let dir = tempfile::tempdir().unwrap();
        let read = |given: &str, all: &[&str]| {
            let mut quotas = below(&[dir.path().to_owned()]);
            quotas.add(&found(given));
            for path in all {
                let group = dir.path().join(&path[1..]);
                std::fs::create_dir_all(&group).unwrap();
                let text = format!("throttled_usec {}\n", path.len());
                std::fs::write(group.join("cpu.stat"), text).unwrap();
                quotas.made(path.as_bytes());
            }
            let ended = quotas.ended(true);
            ended.first().and_then(|container| container.throttled)
        };
        let service = "/user.slice/user-1000.slice/user@1000.service/user.slice";
        let [monitor, own, below, other] = [
            "libpod-conmon-7.scope",
            "libpod-7.scope",
            "libpod-7.scope/container",
            "libpod-17.scope",
        ]
        .map(|name| format!("{service}/{name}"));
        let given = "user.slice:libpod:7";
        let ns = Some(own.len() as u64 * 1000);
        assert_eq!(read(given, &[&monitor, &own, &below, &other]), ns);
        assert_eq!(read(given, &[&monitor, &below, &other]), None);
        // If the runtime was given a whole path, only the cgroup with this path is meant, and not another one whose
        // path ends the same.
        let whole = "/user.slice/libpod-7.scope";
        let ns = Some(whole.len() as u64 * 1000);
        assert_eq!(read(given, &[whole, &own]), ns);
    }

    #[test]
    fn cgroups_of_both_kinds_have_a_path() {
        for (given, path) in [
            ("/docker/27de", Some("docker/27de")),
            (
                "machine.slice:libpod:27de",
                Some("machine.slice/libpod-27de.scope"),
            ),
            (
                "user-a.slice:x:y",
                Some("user.slice/user-a.slice/x-y.scope"),
            ),
            ("/", None),
            ("../../etc", None),
            ("a:b", None),
        ] {
            assert_eq!(relative(given).as_deref(), path.map(Path::new), "{given}");
        }
    }
}
