//! Reads facts about the machine and its processes, from system calls, /proc and /sys.

use std::collections::BTreeSet;
use std::fs;
use std::io::Read;
use std::path::Path;
use std::str::FromStr;
use std::sync::OnceLock;

use nix::time::{clock_gettime, clock_nanosleep, ClockId, ClockNanosleepFlags};
use nix::unistd::SysconfVar;
use tr_format::ci::{SPAN_ID, TRACEPARENT};
use tr_format::event::{Clock, CpuId, Ktime};
use tr_format::meta::{Hardware, KernelName, Metadata};
use tr_format::trace_context::TraceContext;

use crate::error::Error;

/// The present time by the kernel's `CLOCK_MONOTONIC`, the clock of all events.
pub fn now() -> Ktime {
    Ktime(nanoseconds(ClockId::CLOCK_MONOTONIC, offsets().monotonic))
}

/// The nanoseconds that the time namespace of this process adds to the kernel's clock `CLOCK_MONOTONIC`.
pub fn monotonic_offset() -> i128 {
    offsets().monotonic
}

/// The present readings of the clocks `CLOCK_BOOTTIME` and `CLOCK_REALTIME`, in ns.
pub fn clock() -> Clock {
    Clock {
        boot: nanoseconds(ClockId::CLOCK_BOOTTIME, offsets().boot),
        real: nanoseconds(ClockId::CLOCK_REALTIME, 0),
    }
}

/// Whether the recording with this metadata was made on this machine since its last boot. Only then do addresses in
/// the kernel and process ids of the recording still mean the same: at each boot, CONFIG_RANDOMIZE_BASE moves the
/// kernel.
pub fn is_same_boot(meta: &Metadata) -> bool {
    /// The largest difference in ns between two computed boot times that still count as the same boot. Two boots of a
    /// machine are further apart, and clocks are usually set by less.
    const APART: u64 = 2_000_000_000;
    let boot = |clock: Clock| clock.real.saturating_sub(clock.boot);
    let (then, now) = (boot(meta.start_clock), boot(clock()));
    let known = meta.start_clock.real > 0 && meta.start_clock.boot > 0;
    let (kernel, _, host) = uname();
    // Machines of a fleet may have booted at the same time, so the kernel and the host name are compared as well.
    known && then.abs_diff(now) < APART && meta.kernel == kernel && meta.host == host
}

fn nanoseconds(id: ClockId, offset: i128) -> u64 {
    // clock_gettime(2) cannot fail here: Linux has all three clocks since 2.6.39.
    clock_gettime(id).map_or(0, |t| {
        let time = i128::from(t.tv_sec()) * 1_000_000_000 + i128::from(t.tv_nsec());
        u64::try_from(time - offset).unwrap_or(0)
    })
}

/// The nanoseconds that the time namespace of this process adds to the kernel's clocks (time_namespaces(7)).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Offsets {
    monotonic: i128,
    boot: i128,
}

impl Offsets {
    /// Parses the text of `/proc/self/timens_offsets`. Each line has a clock, seconds and nanoseconds.
    fn parse(text: &str) -> Offsets {
        let of = |clock: &str| {
            let line = text.lines().find_map(|line| line.strip_prefix(clock))?;
            let mut numbers = line.split_whitespace().map(str::parse::<i128>);
            let (seconds, ns) = (numbers.next()?.ok()?, numbers.next()?.ok()?);
            Some(seconds * 1_000_000_000 + ns)
        };
        Offsets {
            monotonic: of("monotonic").unwrap_or(0),
            boot: of("boottime").unwrap_or(0),
        }
    }
}

/// The nanoseconds that this process's time namespace adds to the kernel's clocks. They are read once: a process stays
/// in its time namespace, and the offsets of a namespace that has a process do not change.
fn offsets() -> Offsets {
    static OFFSETS: OnceLock<Offsets> = OnceLock::new();
    *OFFSETS.get_or_init(|| {
        let text = fs::read_to_string("/proc/self/timens_offsets");
        text.map_or_else(|_| Offsets::default(), |text| Offsets::parse(&text))
    })
}

/// Verifies that the time namespace of `tr` is also that of its children, because the kernel shows only the
/// offsets of the children's namespace.
pub fn check_time_namespace() -> Result<(), Error> {
    let [own, children] = ["time", "time_for_children"]
        .map(|name| fs::read_link(format!("/proc/self/ns/{name}")).ok());
    if own == children {
        Ok(())
    } else {
        Err(Error::TimeNamespace)
    }
}

/// Sleeps for this time. If the kernel refuses that, the function returns at once, where `std::thread::sleep` would
/// panic.
pub fn pause(length: std::time::Duration) {
    let (clock, relative) = (ClockId::CLOCK_MONOTONIC, ClockNanosleepFlags::empty());
    let _ = clock_nanosleep(clock, relative, &length.into());
}

/// The CPU time of this process in user mode and in the kernel together, in ns.
pub fn own_cpu() -> u64 {
    use nix::sys::resource::{getrusage, UsageWho};
    use nix::sys::time::TimeValLike;
    getrusage(UsageWho::RUSAGE_SELF).map_or(0, |usage| {
        let us = usage.user_time().num_microseconds() + usage.system_time().num_microseconds();
        u64::try_from(us).unwrap_or(0) * 1000
    })
}

/// The CPU numbers in a list such as `0-3,8`, as the kernel writes it.
fn cpu_list(text: &str) -> Vec<u16> {
    let mut cpus = Vec::new();
    for part in text.trim().split(',') {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        if let (Ok(first), Ok(last)) = (first.parse::<u16>(), last.parse::<u16>()) {
            cpus.extend(first..=last);
        }
    }
    cpus
}

fn read_trimmed(path: &str) -> Option<String> {
    let text = fs::read_to_string(path).ok()?;
    Some(text.trim().to_owned())
}

/// Reads a file that contains only a number, such as the file of a kernel setting; `None` if the file cannot be read or
/// contains no such number.
pub fn number<N: FromStr>(path: &str) -> Option<N> {
    read_trimmed(path)?.parse().ok()
}

pub fn online_cpus() -> Vec<CpuId> {
    let cpus = read_trimmed("/sys/devices/system/cpu/online")
        .map(|list| cpu_list(&list))
        .unwrap_or_default();
    if cpus.is_empty() {
        let count = std::thread::available_parallelism().map_or(1, |n| n.get());
        return (0..count)
            .filter_map(|cpu| u16::try_from(cpu).ok())
            .map(CpuId)
            .collect();
    }
    cpus.into_iter().map(CpuId).collect()
}

/// The online CPUs on which at least one of the processes with these ids may run; `None` if these are all online
/// CPUs, or if the CPUs of one of the processes are unknown.
pub fn allowed_cpus(pids: impl IntoIterator<Item = u32>, online: &[CpuId]) -> Option<Vec<CpuId>> {
    let mut allowed = BTreeSet::new();
    for pid in pids {
        // The text of `status` has the allowed CPUs in full. sched_getaffinity(2) would need a buffer of at least the
        // size of the kernel's own set.
        let status = fs::read(format!("/proc/{pid}/status")).ok()?;
        allowed.extend(allowed_in(&status)?);
    }
    let online = || online.iter().copied();
    let allowed: Vec<CpuId> = online().filter(|cpu| allowed.contains(&cpu.0)).collect();
    (!allowed.is_empty() && allowed.len() < online().len()).then_some(allowed)
}

/// The CPUs of a task's affinity, from the text of `/proc/PID/status`. The affinity respects the task's cpuset.
fn allowed_in(status: &[u8]) -> Option<Vec<u16>> {
    let mut lines = status.split(|byte| *byte == b'\n');
    let list = lines.find_map(|line| line.strip_prefix(b"Cpus_allowed_list:"))?;
    Some(cpu_list(std::str::from_utf8(list).ok()?))
}

/// The number of CPUs that the kernel is prepared for, whether they are online or not.
pub fn possible_cpus() -> usize {
    let last = read_trimmed("/sys/devices/system/cpu/possible")
        .and_then(|list| cpu_list(&list).into_iter().max());
    last.or_else(|| online_cpus().iter().map(|cpu| cpu.0).max())
        .map_or(1, |cpu| usize::from(cpu) + 1)
}

/// The largest task id that Linux allows, plus one (the kernel's PID_MAX_LIMIT).
const MOST_IDS: u32 = 1 << 22;

/// The largest task id plus one in the kernel's first pid namespace, as it is set on this machine.
pub fn pid_max() -> u32 {
    let namespace = fs::read_link("/proc/self/ns/pid").ok();
    let set = number("/proc/sys/kernel/pid_max");
    largest_ids(namespace.as_deref(), set)
}

/// A limit for task ids in the first pid namespace: every id is smaller. `namespace` is the name of this process's pid
/// namespace, and `set` is the setting `kernel.pid_max` in it. In another namespace the setting is not used, because
/// since Linux 6.14 it does not limit the ids in the first namespace.
fn largest_ids(namespace: Option<&Path>, set: Option<u32>) -> u32 {
    /// The inode number by which the kernel names its first pid namespace (`PROC_PID_INIT_INO`).
    const FIRST: &str = "pid:[4026531836]";
    match set {
        Some(set) if namespace == Some(Path::new(FIRST)) => set.clamp(1, MOST_IDS),
        _ => MOST_IDS,
    }
}

/// The size of a page of memory in bytes.
pub fn page_size() -> u32 {
    let size = sysconf(SysconfVar::PAGE_SIZE).and_then(|size| u32::try_from(size).ok());
    size.unwrap_or(4096)
}

/// The nanoseconds that this number of clock ticks takes.
pub fn of_ticks(ticks: u64) -> Option<u64> {
    let second = sysconf(SysconfVar::CLK_TCK).filter(|hz| *hz > 0)?;
    Some(ticks.saturating_mul(1_000_000_000 / second))
}

/// The value of a system setting by sysconf(3); `None` if there is none.
pub fn sysconf(name: SysconfVar) -> Option<u64> {
    u64::try_from(nix::unistd::sysconf(name).ok()??).ok()
}

/// The kernel (`uname -s -r -v`), the architecture and the host name of this machine.
pub fn uname() -> (String, String, String) {
    let Ok(name) = nix::sys::utsname::uname() else {
        return Default::default();
    };
    let text = |s: &std::ffi::OsStr| s.to_string_lossy().into_owned();
    let [system, release, build] = [name.sysname(), name.release(), name.version()].map(text);
    let kernel = KernelName {
        system: &system,
        release: &release,
        build: &build,
    };
    (
        kernel.to_string(),
        text(name.machine()),
        text(name.nodename()),
    )
}

/// The largest number of bytes in the value of an environment variable that identifies the CI run. A longer value is
/// not stored. A fact about the hardware is cut after this many characters.
const CI_LONGEST: usize = 512;

/// The names and values of the environment variables that identify the CI run. No other variable of the environment is
/// stored.
pub fn ci() -> Vec<(String, String)> {
    let value = |name: &str| {
        let value = std::env::var(name).ok()?;
        let value = if name == TRACEPARENT {
            TraceContext::parse(&value)?.to_string()
        } else {
            value
        };
        Some((name.to_owned(), value))
    };
    let variables = tr_format::ci::variables().into_iter().filter_map(value);
    let known = variables.filter(|(_, value)| (1..=CI_LONGEST).contains(&value.len()));
    let own = own_context().map(|context| {
        let span = u64::from_be_bytes(context.span);
        (SPAN_ID.to_owned(), format!("{span:016x}"))
    });
    known.chain(own).collect()
}

/// The trace context that COMMAND gets, if `tr` itself has one. The recording is a span inside the span of `tr`'s
/// context, and the spans of COMMAND are inside the recording's span.
pub fn own_context() -> Option<TraceContext> {
    static OWN: OnceLock<Option<TraceContext>> = OnceLock::new();
    *OWN.get_or_init(|| {
        let around = TraceContext::parse(&std::env::var(TRACEPARENT).ok()?)?;
        Some(around.with_span(random()))
    })
}

/// Makes a random id for a new span of a distributed trace. The randomness comes from the keys of the standard
/// library's hash tables.
fn random() -> [u8; 8] {
    use std::hash::{BuildHasher, Hasher};
    let state = std::collections::hash_map::RandomState::new();
    state.build_hasher().finish().max(1).to_be_bytes()
}

/// The number of bytes that are read of each file about the hardware. The text of /proc/cpuinfo begins with the first
/// CPU, and the kernel produces no more of it than is read.
const CPUINFO: u32 = 8192;

/// The names and values of the facts about the machine's hardware that are known.
pub fn hardware() -> Vec<(String, String)> {
    let text = |path: &str| {
        let file = fs::File::open(path).ok()?;
        let (bytes, _) = read_at_most(file, CPUINFO);
        Some(String::from_utf8_lossy(&bytes).into_owned())
    };
    let dmi = |name: &str| text(&format!("/sys/class/dmi/id/{name}"));
    let product = [dmi("sys_vendor"), dmi("product_name")].map(Option::unwrap_or_default);
    let known = hardware_of(
        &text("/proc/cpuinfo").unwrap_or_default(),
        &text("/proc/meminfo").unwrap_or_default(),
        product.map(|text| text.trim().to_owned()).join(" ").trim(),
    );
    (known.into_iter())
        .map(|(fact, value)| (fact.name().to_owned(), value))
        .collect()
}

/// Derives the facts about the hardware from the texts of /proc/cpuinfo (x86, arm64) and /proc/meminfo, and from the
/// name of the product in the firmware.
fn hardware_of(cpuinfo: &str, meminfo: &str, product: &str) -> Vec<(Hardware, String)> {
    let first = |text: &str, name: &str| {
        let value = field(text, name).filter(|value| !value.is_empty())?;
        Some(value.chars().take(CI_LONGEST).collect::<String>())
    };
    let cpu = |name: &str| first(cpuinfo, name);
    // On arm64, /proc/cpuinfo does not name the CPU, but has numbers for its maker and its model.
    let part = || {
        Some(format!(
            "implementer {} part {}",
            cpu("CPU implementer")?,
            cpu("CPU part")?
        ))
    };
    let stepping = || {
        Some(format!(
            "{} {} {}",
            cpu("cpu family")?,
            cpu("model")?,
            cpu("stepping")?
        ))
    };
    let revision = || Some(format!("{} {}", cpu("CPU variant")?, cpu("CPU revision")?));
    let memory = first(meminfo, "MemTotal").and_then(|text| {
        let kib = text.split(' ').next()?.parse::<u64>().ok()?;
        Some(kib.saturating_mul(1024).to_string())
    });
    let flags = field(cpuinfo, "flags");
    let hypervisor = flags.map(|flags| flags.split(' ').any(|flag| flag == "hypervisor"));
    // Only x86 has a CPU flag for hypervisors. If an x86 CPU lacks the flag, the product name in the firmware is not
    // used, because a machine without a hypervisor has a product name as well.
    let virtualization = match hypervisor {
        Some(true) if product.is_empty() => Some("a hypervisor".to_owned()),
        Some(false) => Some("none".to_owned()),
        _ => Some(product.to_owned()).filter(|product| !product.is_empty()),
    };
    let all = [
        (Hardware::CpuModel, cpu("model name").or_else(part)),
        (Hardware::CpuStepping, stepping().or_else(revision)),
        (Hardware::Microcode, cpu("microcode")),
        (Hardware::Memory, memory),
        (Hardware::Virtualization, virtualization),
    ];
    (all.into_iter())
        .filter_map(|(fact, value)| Some((fact, value?)))
        .collect()
}

/// The value of the field `name` in a text with lines of the form `name : value`. If several lines have this name, the
/// first one counts.
fn field<'a>(text: &'a str, name: &str) -> Option<&'a str> {
    text.lines()
        .filter_map(|line| line.split_once(':'))
        .find(|(key, _)| key.trim() == name)
        .map(|(_, value)| value.trim())
}

/// Reads the first `limit` bytes of a file or pipe. Also returns whether there are more. A process can claim gigabytes
/// of arguments (PR_SET_MM_MAP, prctl(2)): the read is bounded, not only the result.
pub fn read_at_most(from: impl Read, limit: u32) -> (Vec<u8>, bool) {
    let mut bytes = Vec::new();
    // An error means that the process has ended during the read: the bytes that were read until then are kept.
    let _ = from.take(u64::from(limit) + 1).read_to_end(&mut bytes);
    let cut = bytes.len() > limit as usize;
    bytes.truncate(limit as usize);
    (bytes, cut)
}

#[cfg(test)]
#[path = "tests/host.rs"]
mod tests;
