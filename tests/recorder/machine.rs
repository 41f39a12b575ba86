//! Compares the recorded counters of the machine with what COMMAND and this test read from `/proc`.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use libtest_mimic::Failed;
use serde_json::Value;

use crate::support::{
    analyze, dump, ensure, int, list, record, recording, report, scratch, text, Test,
};

pub const TESTS: &[Test] = &[
    ("a_hog_outside_of_the_recording_is_others_time", others),
    ("a_hog_outside_of_the_recording_has_a_name", named),
    (
        "a_file_that_lives_shortly_is_free_space_that_was_used",
        filled,
    ),
];

/// Tests that give the same result if other load runs at the same time.
pub const BESIDE: &[Test] = &[
    ("counters_are_between_two_readings_of_proc", between),
    (THROTTLED, throttled),
    (
        "a_quota_costs_the_path_what_it_costs_one_of_its_tasks",
        throttled_twice,
    ),
];

pub const THROTTLED: &str = "a_quota_of_a_cgroup_shows_as_throttled_time";

/// The size in bytes of the file that [`filled`] writes.
const FILE: u64 = 64 << 20;

/// COMMAND's file exists for two seconds, so that at least one sample of the disk sees it. Other tasks may use the file
/// system at the same time.
fn filled() -> Result<(), Failed> {
    let directory = tempfile::tempdir_in("/dev/shm")?;
    let file = scratch("filled.bin");
    let script = format!("head -c {FILE} /dev/zero > a; sleep 2.2; rm a; sleep 0.2");
    let mut tr = recording(&file, &[], &["sh", "-c", &script]);
    let out = tr.current_dir(&directory).output()?;
    ensure(out.status.success(), || text(&out.stderr))?;
    let advice = report(&file, "advice", &[])?;
    let disk = &advice["size"]["disk"];
    let used = disk["used_peak_bytes"].as_u64().unwrap_or(0);
    ensure(used >= FILE / 2, || format!("{disk}"))
}

/// The tolerance in ns: each of the five columns of `/proc/stat` that make up `busy` is rounded down to a tick of 10
/// ms.
const TICKS: u64 = 50_000_000;

/// A shell loop that causes many events. Samples of the machine's counters may take up to 2.5 % of the recording's
/// size, so without these events there would be less than one sample a second.
pub const BURST: &str = "i=0; while [ $i -lt 1500 ]; do /bin/true; i=$((i+1)); done";

/// The counters in ns, by name, in the texts of `/proc/pressure/*` and `/proc/stat`.
fn counters(all: &str) -> BTreeMap<&'static str, u64> {
    let names = [
        "cpu_some",
        "memory_some",
        "memory_full",
        "io_some",
        "io_full",
    ];
    let total = |line: &str| line.rsplit_once("total=")?.1.trim().parse::<u64>().ok();
    let lines = all.lines().filter(|line| line.contains("total="));
    // The line `full` of the CPUs (the second one) is left out, because it is always 0.
    let lines = lines
        .enumerate()
        .filter(|(at, _)| *at != 1)
        .map(|(_, line)| line);
    let mut values: BTreeMap<&str, u64> = names
        .into_iter()
        .zip(lines.map(|line| total(line).expect("a total") * 1000))
        .collect();
    let stat = all.lines().find(|line| line.starts_with("cpu "));
    let ticks: Vec<u64> = stat
        .expect("all CPUs")
        .split_whitespace()
        .skip(1)
        .map(|word| word.parse::<u64>().expect("ticks") * 10_000_000)
        .collect();
    values.insert("busy", ticks[0] + ticks[1] + ticks[2] + ticks[5] + ticks[6]);
    values.insert("iowait", ticks[4]);
    values.insert("stolen", ticks[7]);
    values
}

/// COMMAND reads the kernel's counters inside of the recording. This test reads the same counters before and after the
/// recording. The growth that the recording shows must lie between the growths by these two pairs of readings.
fn between() -> Result<(), Failed> {
    const FILES: &str = "/proc/pressure/cpu /proc/pressure/memory /proc/pressure/io /proc/stat";
    let read = || {
        let files = FILES.split(' ').map(fs::read_to_string);
        files
            .collect::<Result<Vec<String>, _>>()
            .map(|all| counters(&all.concat()))
    };
    let (first, last) = (scratch("machine.first"), scratch("machine.last"));
    let script = format!(
        "{BURST}; cat {FILES} > '{}'; for i in 1 2 3; do (i=0; while [ $i -lt 200000 ]; do \
         i=$((i+1)); done) & done; wait; sleep 1.2; cat {FILES} > '{}'",
        first.display(),
        last.display()
    );
    for method in ["bpf", "ptrace"] {
        let trace = scratch("machine.bin");
        let before = read()?;
        let out = record(&trace, &["--method", method], &["sh", "-c", &script])?;
        let after = read()?;
        ensure(out.status.success(), || text(&out.stderr))?;
        let inner = [&first, &last].map(|file| counters(&fs::read_to_string(file).expect("it")));
        let events = dump(&trace)?;
        let samples: Vec<&Value> = events
            .iter()
            .filter(|event| event["kind"] == "counters")
            .collect();
        let what = || format!("{method}: {samples:#?}");
        // There is a sample at the start and at the end, and at least one between them.
        ensure(samples.len() >= 3, what)?;
        let all_known = ["available_memory", "recorder"].into_iter();
        for name in all_known.chain(before.keys().copied()) {
            ensure(samples.iter().all(|sample| sample[name].is_u64()), what)?;
        }
        for (name, before) in &before {
            let value = |at: usize| samples[at][name].as_u64().unwrap_or(u64::MAX);
            let (start, end) = (value(0), value(samples.len() - 1));
            let slack = if ["busy", "iowait", "stolen"].contains(name) {
                TICKS
            } else {
                0
            };
            let least = inner[1][name] - inner[0][name];
            let most = after[name] - before;
            let what = || format!("{method} {name}: {least} <= {start}..{end} <= {most}");
            ensure(start <= end && least <= end - start + slack, what)?;
            ensure(end <= most + slack, what)?;
        }
        // The three loops run on two CPUs, so one of them always waits.
        ensure(inner[1]["busy"] - inner[0]["busy"] > 50_000_000, what)?;
        ensure(inner[1]["cpu_some"] > inner[0]["cpu_some"], what)?;
    }
    Ok(())
}

/// The CPU time in ns in a copy of `/proc/PID/schedstat`.
fn run_time(copy: &Path) -> u64 {
    let text = fs::read_to_string(copy).unwrap_or_default();
    let first = text.split_whitespace().next();
    first.and_then(|ns| ns.parse().ok()).unwrap_or(0)
}

const LOOP: &str = "while :; do :; done";

/// The report names an unrecorded task that took the CPU while recorded tasks waited for it.
fn named() -> Result<(), Failed> {
    let trace = scratch("named.bin");
    let hog = scratch("strange-hog");
    fs::write(&hog, "while :; do :; done")?;
    let mut hogs = Vec::new();
    for _ in 0..2 {
        let cpu = Command::new("taskset")
            .args(["-c", "0", "bash"])
            .arg(&hog)
            .spawn()?;
        hogs.push(cpu);
    }
    let script = "taskset -c 0 sh -c 'i=0; while [ $i -lt 60000 ]; do i=$((i+1)); done'";
    let out = record(&trace, &["--method", "bpf"], &["sh", "-c", script]);
    for hog in &mut hogs {
        hog.kill()?;
        hog.wait()?;
    }
    ensure(out?.status.success(), || "recording".into())?;
    let report = report(&trace, "cpus", &[])?;
    let wait = &report["run_queue_wait"];
    let named = list(wait, "others")
        .iter()
        .find(|other| other["comm"] == "bash");
    let hogs = named.map_or(0, |value| int(value, "ns"));
    let what = || format!("{report}");
    // Two other loops and the recorded loop share the CPU. So each of the other loops gets as much of the CPU as the
    // recorded loop, whatever else runs there.
    let loop_ns = int(&analyze(&trace)?["totals"], "on_cpu_ns");
    ensure(hogs >= loop_ns && int(wait, "others_ns") >= hogs, what)
}

/// The CPU time of an unrecorded loop counts as time of others, in the whole recording and in a part of it.
fn others() -> Result<(), Failed> {
    let trace = scratch("others.bin");
    let copies = [scratch("others.first"), scratch("others.last")];
    let mut hog = Command::new("sh").args(["-c", LOOP]).spawn()?;
    // COMMAND reads the loop's CPU time, because the recorder's start and end are not in the recording.
    let read = |copy: &Path| format!("cat /proc/{}/schedstat > '{}'", hog.id(), copy.display());
    let [first, last] = [&copies[0], &copies[1]].map(|copy| read(copy));
    let script = format!("{BURST}; {first}; timeout 2 sh -c '{LOOP}'; sleep 1; {last}");
    let out = record(&trace, &[], &["sh", "-c", &script]);
    hog.kill()?;
    hog.wait()?;
    let out = out?;
    ensure(out.status.success(), || text(&out.stderr))?;
    let [first, last] = [&copies[0], &copies[1]].map(|copy| run_time(copy));
    ensure(first > 0 && last > first, || format!("{first} {last}"))?;
    let hogged = last - first;
    let whole = report(&trace, "machine", &[])?;
    let what = || format!("{hogged} {whole}");
    let all = int(&whole, "length_ns") * int(&whole, "cpus");
    let sum = |of: &Value| {
        let parts = ["build_ns", "others_ns", "recorder_ns", "idle_ns"];
        parts.iter().map(|part| int(of, part)).sum::<u64>()
    };
    // The tolerance is for ticks of 10 ms and for the times of the samples.
    let slack = all / 20 + TICKS;
    ensure(sum(&whole).abs_diff(all) <= slack, what)?;
    ensure(int(&whole, "others_ns") + slack >= hogged, what)?;
    // Other tasks of the machine may run at the same time, so only the sum is limited.
    ensure(
        int(&whole, "others_ns") + int(&whole, "build_ns") <= all + slack,
        what,
    )?;
    let build = analyze(&trace)?;
    let on_cpu = int(&build["totals"], "on_cpu_ns");
    ensure(int(&whole, "build_ns").abs_diff(on_cpu) < 20_000_000, what)?;
    // The values of the intervals add up to the whole.
    for name in ["build_ns", "busy_ns", "cpu_some_ns", "length_ns"] {
        let parts = list(&whole, "samples").iter().map(|value| int(value, name));
        ensure(parts.sum::<u64>().abs_diff(int(&whole, name)) < 1000, what)?;
    }
    // In the last second the build only sleeps, apart from some ms of `cat`, while the unrecorded loop runs. So the
    // build uses less than a quarter of this time, and others use more, however busy the machine is.
    let last = list(&whole, "samples").last().ok_or("no sample")?;
    let end = int(last, "from_ns") + int(last, "length_ns");
    let from = format!("{}ns", end - 600_000_000);
    let last = report(&trace, "machine", &["--from", &from])?;
    let what = || format!("{from}: {last}");
    let length = int(&last, "length_ns");
    ensure(length.abs_diff(600_000_000) < 50_000_000, what)?;
    ensure(int(&last, "build_ns") < length / 4, what)?;
    ensure(int(&last, "others_ns") > length / 4, what)
}

/// The directory of the CPU controller, the name of its quota file, and the text that sets a quota of `percent` of a
/// CPU.
fn quota(percent: u32) -> Option<(PathBuf, &'static str, String)> {
    let quota = percent * 1000;
    let v1 = PathBuf::from("/sys/fs/cgroup/cpu");
    if v1.join("cpu.cfs_quota_us").exists() || v1.join("cpu.cfs_period_us").exists() {
        return Some((v1, "cpu.cfs_quota_us", quota.to_string()));
    }
    let v2 = PathBuf::from("/sys/fs/cgroup");
    let controllers = fs::read_to_string(v2.join("cgroup.subtree_control")).ok()?;
    let has = controllers.split_whitespace().any(|word| word == "cpu");
    has.then(|| (v2, "cpu.max", format!("{quota} 100000")))
}

pub fn no_quota() -> Option<String> {
    let name = format!("tr-test-quota-{}", std::process::id());
    let made =
        quota(10).map(|(root, ..)| fs::create_dir(root.join(&name)).map(|()| root.join(&name)));
    match made {
        Some(Ok(path)) => {
            let _ = fs::remove_dir(path);
            None
        }
        _ => Some("no CPU controller of cgroups that can be written".into()),
    }
}

/// Records a command in a cgroup with a quota. Returns the recording, and from `cpu.stat` at the end the throttled time
/// in ns and the number of throttled periods.
fn in_group(name: &str, percent: u32, command: &[&str]) -> Result<(PathBuf, u64, u64), Failed> {
    let (root, file, limit) = quota(percent).ok_or("no CPU controller")?;
    let group = root.join(format!("tr-test-{name}-{}", std::process::id()));
    fs::create_dir(&group)?;
    fs::write(group.join(file), limit)?;
    let trace = scratch(&format!("{name}.bin"));
    let procs = group.join("cgroup.procs");
    let script = format!("echo $$ > '{}'; exec \"$@\"", procs.display());
    let tr = env!("CARGO_BIN_EXE_tr");
    let trace_name = trace.to_string_lossy();
    // tr and COMMAND start in the cgroup, because the shell enters it first.
    let out = Command::new("sh")
        .args(["-c", &script, "sh", tr, "record", "-o", &trace_name, "--"])
        .args(command)
        .output();
    let stat = fs::read_to_string(group.join("cpu.stat"));
    let removed = fs::remove_dir(&group);
    let (out, stat) = (out?, stat?);
    removed?;
    ensure(matches!(out.status.code(), Some(0 | 124)), || {
        text(&out.stderr)
    })?;
    let value = |name: &str| {
        let line = stat.lines().find_map(|line| line.strip_prefix(name));
        line.and_then(|value| value.trim().parse::<u64>().ok())
    };
    let ns = value("throttled_usec ").map(|us| us * 1000);
    let ns = ns.or_else(|| value("throttled_time ")).ok_or("no figure")?;
    let periods = value("nr_throttled ").ok_or("no figure")?;
    Ok((trace, ns, periods))
}

/// Two loops run in a cgroup with a quota, and 12 other loops outside of the cgroup. The kernel adds up the throttled
/// time of all CPUs. But the critical path follows only one of the two loops, and contains only the throttled time of
/// this loop.
fn throttled_twice() -> Result<(), Failed> {
    let mut others = Vec::new();
    for _ in 0..12 {
        others.push(Command::new("sh").args(["-c", LOOP]).spawn()?);
    }
    let work = "i=0; while [ $i -lt 150000 ]; do i=$((i+1)); done";
    let both = format!("({work}) & {work}; wait");
    let recorded = in_group("twice", 10, &["sh", "-c", &both]);
    for mut other in others {
        other.kill()?;
        other.wait()?;
    }
    let (trace, ns, _) = recorded?;
    let advice = report(&trace, "advice", &[])?;
    let told = int(&advice["verdict"], "quota_ns");
    // If the machine has more load, the quota may not count at all.
    ensure(
        ns < 300_000_000 || (ns / 4..ns / 3 * 2).contains(&told),
        || format!("{ns}: {advice}"),
    )
}

/// Records a loop of 1.5 s of wall time in a cgroup that may use a tenth of a CPU.
fn throttled() -> Result<(), Failed> {
    let command = ["timeout", "1.5", "sh", "-c", LOOP];
    let (trace, ns, periods) = in_group("throttled", 10, &command)?;
    let machine = report(&trace, "machine", &[])?;
    let what = || format!("{ns} in {periods}: {machine}");
    // `cpu.stat` counts from the start to the end of tr. The recording counts only from the start to the end of
    // COMMAND.
    let throttled = int(&machine, "throttled_ns");
    ensure(throttled > 50_000_000 && throttled <= ns, what)?;
    let counted = int(&machine, "throttled_periods");
    ensure(counted >= 1 && counted <= periods, what)?;
    ensure(int(&machine, "build_ns") < 600_000_000, what)
}
