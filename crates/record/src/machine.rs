//! CPU time and memory that the machine withholds from a build: the kernel's counters at its
//! start and at its end.

use std::fs;
use std::path::Path;

use tr_format::meta::Machine;

/// The counters at one moment, in ns. `None`: the kernel does not have it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    throttled: Option<u64>,
    stolen: Option<u64>,
    memory_stalled: Option<u64>,
}

impl Counters {
    /// Those of now.
    pub fn now() -> Counters {
        let text = |path: &str| fs::read_to_string(path).unwrap_or_default();
        Counters {
            throttled: throttled(&text("/proc/self/cgroup"), Path::new("/sys/fs/cgroup")),
            stolen: stolen(&text("/proc/stat")),
            memory_stalled: stalled(&text("/proc/pressure/memory")),
        }
    }

    /// The differences to now.
    pub fn until_now(&self) -> Machine {
        let now = Counters::now();
        let since = |now: Option<u64>, then: Option<u64>| Some(now?.saturating_sub(then?));
        Machine {
            throttled_ns: since(now.throttled, self.throttled),
            stolen_ns: since(now.stolen, self.stolen),
            memory_stalled_ns: since(now.memory_stalled, self.memory_stalled),
        }
    }
}

/// The throttled time of a task's cgroup and of those above it, which have quotas of their own:
/// the largest one. `cgroups`: its `/proc/PID/cgroup`; `mounts`: the directory of cgroups
/// (Documentation/admin-guide/cgroup-v2.rst, scheduler/sched-bwc.rst).
fn throttled(cgroups: &str, mounts: &Path) -> Option<u64> {
    let mut most = None;
    for line in cgroups.lines() {
        let mut parts = line.splitn(3, ':').skip(1);
        let (controllers, path) = (parts.next()?, parts.next()?);
        let roots = match controllers {
            "" => vec![mounts.to_owned(), mounts.join("unified")],
            list if list.split(',').any(|it| it == "cpu") => {
                vec![mounts.join("cpu"), mounts.join(list)]
            }
            _ => continue,
        };
        for root in roots {
            for at in Path::new(path).ancestors() {
                let at = at.strip_prefix("/").unwrap_or(at);
                let stat = fs::read_to_string(root.join(at).join("cpu.stat"));
                most = most.max(stat.ok().and_then(|stat| throttled_of(&stat)));
            }
        }
    }
    most
}

/// `throttled_usec` of cgroup v2, `throttled_time` (ns) of v1.
fn throttled_of(stat: &str) -> Option<u64> {
    let value = |name: &str| {
        let line = stat.lines().find_map(|line| line.strip_prefix(name))?;
        line.trim().parse::<u64>().ok()
    };
    let ns = value("throttled_usec ").map(|us| us.saturating_mul(1000));
    ns.or_else(|| value("throttled_time "))
}

/// The eighth column of all CPUs, in ticks (proc(5)).
fn stolen(stat: &str) -> Option<u64> {
    let all = stat.lines().next()?.strip_prefix("cpu ")?;
    let ticks: u64 = all.split_whitespace().nth(7)?.parse().ok()?;
    let each = nix::unistd::sysconf(nix::unistd::SysconfVar::CLK_TCK);
    let each = u64::try_from(each.ok()??).ok()?;
    ticks.checked_mul(1_000_000_000 / each.max(1))
}

/// The time in which some task waited for memory, of the whole machine
/// (Documentation/accounting/psi.rst).
fn stalled(pressure: &str) -> Option<u64> {
    let some = pressure.lines().find(|line| line.starts_with("some "))?;
    let total = some
        .split_whitespace()
        .find_map(|it| it.strip_prefix("total="))?;
    total.parse::<u64>().ok()?.checked_mul(1000)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counters_are_read() {
        let stat = "cpu  1 2 3 4 5 6 7 80 9 10\ncpu0 1 2 3 4 5 6 7 80 9 10\n";
        assert_eq!(stolen(stat), Some(800_000_000));
        let some = "some avg10=0.00 avg60=0.00 avg300=0.00 total=2706696\nfull total=1\n";
        assert_eq!(stalled(some), Some(2_706_696_000));
        assert_eq!(
            throttled_of("nr_throttled 1\nthrottled_usec 7\n"),
            Some(7000)
        );
        assert_eq!(throttled_of("nr_throttled 1\nthrottled_time 7\n"), Some(7));
        assert_eq!(throttled_of("usage_usec 1\n"), None);
    }

    /// A quota above the task's own cgroup throttles it as well.
    #[test]
    fn a_cgroup_above_counts() {
        let dir = tempfile::tempdir().unwrap();
        let own = dir.path().join("job/step");
        fs::create_dir_all(&own).unwrap();
        fs::write(own.join("cpu.stat"), "throttled_usec 1\n").unwrap();
        fs::write(dir.path().join("job/cpu.stat"), "throttled_usec 5\n").unwrap();
        assert_eq!(throttled("0::/job/step\n", dir.path()), Some(5000));
        assert_eq!(throttled("0::/other\n", dir.path()), None);
        let v1 = dir.path().join("cpu,cpuacct/job");
        fs::create_dir_all(&v1).unwrap();
        fs::write(v1.join("cpu.stat"), "throttled_time 9\n").unwrap();
        assert_eq!(throttled("4:cpu,cpuacct:/job\n", dir.path()), Some(9));
    }
}
