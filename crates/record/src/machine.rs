//! Samples the machine's counters of CPU time and memory, including the CPU time and memory that a build did not get.

use std::fs::{self, File};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use tr_format::counters::{Counter, Counters};
use tr_format::meta::Machine;
use tr_output::cgroups::{self, directories, limit, own};

use crate::config::Follow;
use crate::free_space::FreeSpace;
use crate::host;

/// The number of bytes that are read of each file with counters. All needed values are within them.
const LONGEST_FILE: usize = 4096;
/// The largest number of CPUs whose frequency is read for a sample.
const FREQUENCIES: usize = 8;

/// The files with the machine's counters, which are open from the start of the recording, and the last sample.
/// Reading all of the files takes some 30 µs.
#[derive(Debug)]
pub struct Sampler {
    files: Vec<Open>,
    /// The CPU time that the recorder had used at the start of the recording, in ns.
    recorder: u64,
    /// The file system whose free space is part of the samples of the machine's counters; `None` if the file system is
    /// on another machine.
    disk: Option<FreeSpace>,
    /// The last sample of the machine's counters.
    last: Counters,
}

/// An open file with counters of the machine, and their values at the start of the recording.
#[derive(Debug)]
struct Open {
    file: File,
    text: Text,
    first: Counters,
}

/// A file with counters of the machine, and the syntax of the file.
#[derive(Debug)]
struct Source {
    path: PathBuf,
    text: Text,
}

impl Source {
    fn new(path: impl Into<PathBuf>, text: Text) -> Source {
        let path = path.into();
        Source { path, text }
    }
}

/// The syntax of a file with counters, which also determines the counters that are read from it.
#[derive(Clone, Copy, Debug)]
enum Text {
    /// The text of a pressure file (Documentation/accounting/psi.rst). Its counters are the totals of the lines
    /// `some` and `full`.
    Pressure(Counter, Option<Counter>),
    /// The text of `/proc/stat` (proc(5)), which has CPU times.
    Stat,
    /// The text of `/proc/meminfo`, which has the available memory.
    MemInfo,
    /// The text of the file `cpu.stat` of a cgroup, which has the times of throttling by quotas.
    Quota,
    /// The lines `cpu MHz` in `/proc/cpuinfo` of x86 machines, from which the mean frequency is computed.
    CpuInfo,
    /// A text that consists of one number, which is the value of this counter.
    Number(Counter),
}

impl Sampler {
    /// Opens the files with the machine's counters and reads them. A file that cannot be opened gives no counters.
    pub fn new(follow: &Follow) -> Sampler {
        let (own, mountinfo) = own();
        let files = files(&followed(follow, own), &mountinfo);
        let mut sampler = Sampler {
            files: files.into_iter().filter_map(Open::new).collect(),
            recorder: host::own_cpu(),
            disk: match follow {
                Follow::Command => FreeSpace::of_working_directory(),
                Follow::All | Follow::Pids(_) | Follow::Cgroup(_) => None,
            },
            last: Counters::default(),
        };
        sampler.sample();
        sampler
    }

    pub fn sample(&mut self) -> Counters {
        let mut now = Counters::default();
        let mut frequencies = (0, 0);
        for open in &self.files {
            for (counter, value) in open.read().iter() {
                if counter == Counter::Frequency {
                    frequencies = (frequencies.0 + value, frequencies.1 + 1);
                } else {
                    // If several cgroups have quotas, each counter is the largest of their values.
                    now.set(counter, value.max(now.get(counter).unwrap_or(0)));
                }
            }
        }
        if let Some(mean) = frequencies.0.checked_div(frequencies.1) {
            now.set(Counter::Frequency, mean);
        }
        if let Some(free) = self.disk.as_mut().and_then(FreeSpace::take) {
            now.set(Counter::DiskFree, free);
        }
        let own = host::own_cpu().saturating_sub(self.recorder);
        now.set(Counter::Recorder, own);
        self.last = now.clone();
        now
    }

    /// Reads the values that can fall and rise again between two samples, such as the free space of the disk.
    pub fn look(&mut self) {
        if let Some(disk) = &mut self.disk {
            disk.look();
        }
    }

    /// The totals of the time for which the machine withheld CPUs and memory, according to the last sample.
    pub fn totals(&self) -> Machine {
        Machine {
            throttled_ns: self.last.get(Counter::Throttled),
            stolen_ns: self.last.get(Counter::Stolen),
            memory_stalled_ns: self.last.get(Counter::MemorySome),
        }
    }
}

impl Open {
    fn new(source: Source) -> Option<Open> {
        let mut open = Open {
            file: File::open(source.path).ok()?,
            text: source.text,
            first: Counters::default(),
        };
        open.first = open.read();
        Some(open)
    }

    /// Reads the counters from the file. For counters that are totals, the values at the start of the recording are
    /// subtracted.
    fn read(&self) -> Counters {
        let text = beginning(&self.file).unwrap_or_default();
        let mut counters = self.text.parse(&text);
        for (counter, first) in self.first.iter() {
            if let Some(now) = counters.get(counter).filter(|_| counter.unit().is_total()) {
                counters.set(counter, now.saturating_sub(first));
            }
        }
        counters
    }
}

/// Reads the present text of a file from its beginning, up to [`LONGEST_FILE`] bytes.
pub fn beginning(file: &File) -> std::io::Result<String> {
    let mut bytes = [0; LONGEST_FILE];
    let length = file.read_at(&mut bytes, 0)?;
    Ok(String::from_utf8_lossy(bytes.get(..length).unwrap_or_default()).into_owned())
}

impl Text {
    fn parse(self, text: &str) -> Counters {
        let mut counters = Counters::default();
        let mut set = |counter, value: Option<u64>| {
            if let Some(value) = value {
                counters.set(counter, value);
            }
        };
        match self {
            Text::Pressure(some, full) => {
                set(some, stalled(text, "some "));
                if let Some(full) = full {
                    set(full, stalled(text, "full "));
                }
            }
            Text::Stat => {
                let ticks = ticks(text);
                let sum = |columns: &[usize]| {
                    let mut values = columns.iter().map(|column| ticks.get(*column));
                    values.try_fold(0u64, |sum, ns| Some(sum.saturating_add(*ns?)))
                };
                // The columns user, nice, system, interrupts and softirqs are summed. The time of guests is already
                // part of user.
                set(Counter::Busy, sum(&[0, 1, 2, 5, 6]));
                set(Counter::Iowait, sum(&[4]));
                set(Counter::Stolen, sum(&[7]));
            }
            Text::MemInfo => {
                let kib = value(text, "MemAvailable:");
                let bytes = kib.map(|kib| kib.saturating_mul(1024));
                set(Counter::AvailableMemory, bytes);
            }
            Text::Quota => {
                // cgroup v2 has `throttled_usec` in µs, cgroup v1 has `throttled_time` in ns.
                let ns = value(text, "throttled_usec ")
                    .map(|us| us.saturating_mul(1000))
                    .or_else(|| value(text, "throttled_time "));
                set(Counter::Throttled, ns);
                set(Counter::ThrottledPeriods, value(text, "nr_throttled "));
            }
            Text::CpuInfo => {
                let frequencies: Vec<f64> = text
                    .lines()
                    .filter_map(|line| line.strip_prefix("cpu MHz")?.split_once(": "))
                    .filter_map(|(_, mhz)| mhz.trim().parse().ok())
                    .collect();
                let sum: f64 = frequencies.iter().sum();
                let mean = (!frequencies.is_empty())
                    .then(|| (sum / frequencies.len() as f64 * 1000.0) as u64);
                set(Counter::Frequency, mean);
            }
            Text::Number(counter) => set(counter, text.trim().parse().ok()),
        }
        counters
    }
}

/// The time in ns for which a CPU quota has throttled a cgroup, from the text of its file `cpu.stat`.
pub fn throttled(stat: &str) -> Option<u64> {
    Text::Quota.parse(stat).get(Counter::Throttled)
}

/// The number after a name that stands at the start of a line of the text.
fn value(text: &str, name: &str) -> Option<u64> {
    let line = text.lines().find_map(|line| line.strip_prefix(name))?;
    line.split_whitespace().next()?.parse().ok()
}

/// The columns of the line about all CPUs in the text of `/proc/stat`, converted to ns.
fn ticks(stat: &str) -> Vec<u64> {
    let all = stat
        .strip_prefix("cpu ")
        .and_then(|rest| rest.lines().next());
    let columns = all.unwrap_or_default().split_whitespace();
    let ticks = columns.map_while(|column| host::of_ticks(column.parse().ok()?));
    ticks.collect()
}

/// The total time in ns in the line of a pressure file that begins with `name` (`some` or `full`).
fn stalled(pressure: &str, name: &str) -> Option<u64> {
    let line = pressure.lines().find(|line| line.starts_with(name))?;
    let mut fields = line.split_whitespace();
    let total = fields.find_map(|field| field.strip_prefix("total="))?;
    total.parse::<u64>().ok()?.checked_mul(1000)
}

/// The cgroups whose counters are sampled, in the form of the file `/proc/PID/cgroup`: those of `tr` (`own`), of the
/// first process of `--pid`, or the one of `--cgroup`.
fn followed(follow: &Follow, own: String) -> String {
    let of = |pid: u32| fs::read_to_string(format!("/proc/{pid}/cgroup")).unwrap_or_default();
    match follow {
        Follow::Command | Follow::All => own,
        Follow::Pids(pids) => pids.first().map_or_else(String::new, |pid| of(*pid)),
        Follow::Cgroup(path) => {
            let mount = cgroups::mount().unwrap_or_default();
            let absolute = path.canonicalize().unwrap_or_else(|_| path.clone());
            let below = absolute.strip_prefix(&mount).unwrap_or(&absolute);
            format!("0::/{}\n", below.display())
        }
    }
}

/// The files with counters that may exist on this machine. `cgroups` is the text of a `/proc/PID/cgroup`.
fn files(cgroups: &str, mountinfo: &str) -> Vec<Source> {
    use Counter::*;
    let proc = Path::new("/proc");
    let mut files = vec![
        Source::new(proc.join("stat"), Text::Stat),
        Source::new(proc.join("meminfo"), Text::MemInfo),
    ];
    let machine = [
        (CpuSome, None),
        (MemorySome, Some(MemoryFull)),
        (IoSome, Some(IoFull)),
    ];
    let of_cgroup = [
        (CgroupCpuSome, None),
        (CgroupMemorySome, Some(CgroupMemoryFull)),
        (CgroupIoSome, Some(CgroupIoFull)),
    ];
    for ((some, full), name) in machine.into_iter().zip(["cpu", "memory", "io"]) {
        let path = proc.join("pressure").join(name);
        files.push(Source::new(path, Text::Pressure(some, full)));
    }
    if let Some(own) = directories(cgroups, mountinfo, "").first() {
        for ((some, full), name) in of_cgroup.into_iter().zip(["cpu", "memory", "io"]) {
            let path = own.join(format!("{name}.pressure"));
            files.push(Source::new(path, Text::Pressure(some, full)));
        }
    }
    for (controller, names) in [
        ("", ["memory.current", "memory.max", "memory.peak"]),
        (
            "memory",
            [
                "memory.usage_in_bytes",
                "memory.limit_in_bytes",
                "memory.max_usage_in_bytes",
            ],
        ),
    ] {
        // The memory of the cgroup with the lowest limit is sampled, or of the task's own cgroup if none has a limit.
        let all = directories(cgroups, mountinfo, controller);
        let limit = |directory: &&PathBuf| limit(directory, names[1]).unwrap_or(u64::MAX);
        let Some(directory) = all.iter().min_by_key(limit) else {
            continue;
        };
        let counters = [CgroupMemory, CgroupMemoryLimit, CgroupMemoryPeak];
        for (name, counter) in names.into_iter().zip(counters) {
            files.push(Source::new(directory.join(name), Text::Number(counter)));
        }
    }
    files.extend(quotas(cgroups, mountinfo));
    let cpus = host::online_cpus();
    let each = cpus.len().div_ceil(FREQUENCIES).max(1);
    let frequencies = files.len();
    for cpu in cpus.iter().step_by(each) {
        let path = format!(
            "/sys/devices/system/cpu/cpu{}/cpufreq/scaling_cur_freq",
            cpu.0
        );
        files.push(Source::new(path, Text::Number(Frequency)));
    }
    // Virtual machines have no cpufreq files, so the frequencies are read from /proc/cpuinfo there. Only the beginning
    // of this file is read, which has the first CPUs.
    let has_none = |files: &[Source]| files.iter().all(|file| !file.path.exists());
    if files.get(frequencies..).is_none_or(has_none) {
        files.truncate(frequencies);
        files.push(Source::new(proc.join("cpuinfo"), Text::CpuInfo));
    }
    files
}

/// The files `cpu.stat` of a task's cgroup and of the cgroups above it, which have quotas of their own
/// (Documentation/admin-guide/cgroup-v2.rst, scheduler/sched-bwc.rst).
fn quotas(cgroups: &str, mountinfo: &str) -> Vec<Source> {
    ["", "cpu"]
        .iter()
        .flat_map(|controller| directories(cgroups, mountinfo, controller))
        .map(|directory| Source::new(directory.join("cpu.stat"), Text::Quota))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(text: Text, of: &str) -> Vec<(Counter, u64)> {
        text.parse(of).iter().collect()
    }

    #[test]
    fn counters_are_read() {
        let stat = "cpu  1 2 3 400 50 6 7 80 9 10\ncpu0 1 2 3 4 5 6 7 80 9 10\n";
        assert_eq!(
            parsed(Text::Stat, stat),
            [
                (Counter::Busy, 190_000_000),
                (Counter::Iowait, 500_000_000),
                (Counter::Stolen, 800_000_000)
            ]
        );
        let pressure = Text::Pressure(Counter::IoSome, Some(Counter::IoFull));
        let text = "some avg10=0.00 avg60=0.00 avg300=0.00 total=2706696\nfull total=1\n";
        assert_eq!(
            parsed(pressure, text),
            [(Counter::IoSome, 2_706_696_000), (Counter::IoFull, 1000)]
        );
        let quota = |text: &str| parsed(Text::Quota, text);
        assert_eq!(
            quota("nr_throttled 1\nthrottled_usec 7\n"),
            [(Counter::Throttled, 7000), (Counter::ThrottledPeriods, 1)]
        );
        assert_eq!(
            quota("nr_throttled 1\nthrottled_time 7\n"),
            [(Counter::Throttled, 7), (Counter::ThrottledPeriods, 1)]
        );
        assert_eq!(quota("usage_usec 1\n"), []);
        let memory = "MemTotal: 100 kB\nMemFree: 1 kB\nMemAvailable:    8 kB\n";
        assert_eq!(
            parsed(Text::MemInfo, memory),
            [(Counter::AvailableMemory, 8192)]
        );
    }

    /// Tests that the counter of throttled time includes a quota of a cgroup above the task's own, and that totals
    /// count from the start of the recording.
    #[test]
    fn a_cgroup_above_counts() {
        let dir = tempfile::tempdir().unwrap();
        let own = dir.path().join("job/step");
        fs::create_dir_all(&own).unwrap();
        for made in [own.as_path(), &dir.path().join("job")] {
            fs::write(made.join("cgroup.type"), "domain\n").unwrap();
        }
        let at = dir.path().display();
        let mountinfo = format!(
            "31 1 0:28 / {at} rw - cgroup2 cgroup2 rw\n32 1 0:29 / {at}/v1 rw - cgroup cgroup rw,cpu,cpuacct\n"
        );
        fs::write(own.join("cpu.stat"), "throttled_usec 100\n").unwrap();
        fs::write(own.join("memory.current"), "4096\n").unwrap();
        fs::write(dir.path().join("job/cpu.stat"), "throttled_usec 5\n").unwrap();
        let open = |cgroups: &str| {
            let files = files(cgroups, &mountinfo).into_iter();
            Sampler {
                files: files.filter_map(Open::new).collect(),
                recorder: 0,
                disk: None,
                last: Counters::default(),
            }
        };
        let mut sampler = open("0::/job/step\n");
        assert_eq!(sampler.sample().get(Counter::Throttled), Some(0));
        fs::write(own.join("cpu.stat"), "throttled_usec 101\n").unwrap();
        fs::write(dir.path().join("job/cpu.stat"), "throttled_usec 9\n").unwrap();
        fs::write(own.join("memory.current"), "8192\n").unwrap();
        let now = sampler.sample();
        assert_eq!(now.get(Counter::Throttled), Some(4000));
        assert_eq!(now.get(Counter::CgroupMemory), Some(8192));
        assert_eq!(sampler.totals().throttled_ns, Some(4000));
        // The memory counters come from the cgroup with the lowest limit.
        fs::write(own.join("memory.max"), "max\n").unwrap();
        fs::write(dir.path().join("job/memory.max"), "65536\n").unwrap();
        fs::write(dir.path().join("job/memory.current"), "12288\n").unwrap();
        let now = open("0::/job/step\n").sample();
        assert_eq!(now.get(Counter::CgroupMemory), Some(12288));
        assert_eq!(now.get(Counter::CgroupMemoryLimit), Some(65536));
        assert_eq!(open("0::/other\n").sample().get(Counter::Throttled), None);
        let v1 = dir.path().join("v1/job");
        fs::create_dir_all(&v1).unwrap();
        fs::write(v1.join("cpu.stat"), "throttled_time 9\n").unwrap();
        let mut sampler = open("4:cpu,cpuacct:/job\n");
        fs::write(v1.join("cpu.stat"), "throttled_time 19\n").unwrap();
        assert_eq!(sampler.sample().get(Counter::Throttled), Some(10));
    }
}
