//! Compares the bytes and waits of `--report disk` with what dd wrote and read. The requests in this report are
//! compared with the kernel's statistics of a loop device and with a known delay.

use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Instant;

use libtest_mimic::Failed;
use serde_json::Value;

use crate::common::{int, list};
use crate::machine::BURST;
use crate::support::{ensure, record, report, scratch, text, Test};

pub const TESTS: &[Test] = &[
    ("bytes_on_disk_are_those_that_dd_moved", moved),
    (
        "requests_to_a_disk_are_those_that_the_kernel_counts",
        counted,
    ),
    ("latencies_of_requests_have_the_delay_of_the_disk", delayed),
    ("a_wait_is_for_the_disk_that_the_program_asked", waited),
    ("a_wait_in_fsync_names_its_file", synced),
];

const BYTES: u64 = 64 * 65_536;

fn moved() -> Result<(), Failed> {
    let (trace, file) = (scratch("disk.bin"), scratch("disk.data"));
    let (path, size) = (file.to_string_lossy(), "bs=64k count=64 status=none");
    // Without the page cache (direct I/O) all bytes are written to the disk and read from it.
    let script = format!(
        "dd if=/dev/zero of='{path}' oflag=direct conv=fsync {size} && \
         dd if='{path}' of=/dev/null iflag=direct {size}"
    );
    let out = record(&trace, &[], &["sh", "-c", &script])?;
    let said = text(&out.stderr);
    if said.contains("Invalid argument") {
        eprintln!("no direct I/O in {path}");
        return Ok(());
    }
    ensure(out.status.success(), || said.clone())?;
    let disk = &report(&trace, "disk", &[])?;
    let what = || disk.to_string();
    let rows = list(disk, "rows");
    let dds: Vec<&Value> = rows
        .iter()
        .filter(|row| {
            row["name"]
                .as_str()
                .is_some_and(|name| name.starts_with("dd "))
        })
        .collect();
    ensure(dds.len() == 2, what)?;
    // The files of the programs themselves may be read from the disk, too, so other rows are possible.
    let least = |name: &str| dds.iter().filter(|row| int(row, name) >= BYTES).count();
    ensure(
        least("written_bytes") == 1 && least("read_bytes") == 1,
        what,
    )?;
    ensure(int(disk, "written_bytes") < BYTES + (1 << 20), what)?;
    for row in &dds {
        let waited = int(row, "waited_ns");
        ensure(waited > 0 && int(row, "sync_ns") <= waited, what)?;
        ensure(int(row, "path_ns") > 0, what)?;
    }
    let waits = dds.iter().map(|row| int(row, "waited_ns"));
    ensure(waits.sum::<u64>() <= int(disk, "waited_ns"), what)
}

/// A loop device, whose sectors are in a file.
struct Loop {
    path: String,
    file: PathBuf,
}

impl Loop {
    /// Makes a loop device; `None` if this machine has none.
    fn new(name: &str, direct: &str) -> Result<Option<Loop>, Failed> {
        let file = scratch(name);
        std::fs::File::create(&file)?.set_len(64 << 20)?;
        let made = Command::new("losetup")
            .args(["--find", "--show", direct])
            .arg(&file)
            .output();
        let made = made.ok().filter(|out| out.status.success());
        let Some(made) = made else {
            eprintln!("no loop devices");
            return Ok(None);
        };
        let path = text(&made.stdout).trim().to_owned();
        Ok(Some(Loop { path, file }))
    }

    fn name(&self) -> &str {
        self.path.trim_start_matches("/dev/")
    }

    /// The fields of the kernel's statistics of the device (Documentation/block/stat.rst).
    fn statistics(&self) -> Result<Vec<u64>, Failed> {
        let line = std::fs::read_to_string(format!("/sys/block/{}/stat", self.name()))?;
        let fields = line.split_whitespace().map(str::parse);
        Ok(fields.collect::<Result<_, _>>()?)
    }

    /// The part of the report that is about this device.
    fn of(&self, trace: &Path) -> Result<Value, Failed> {
        let disk = report(trace, "disk", &[])?;
        let devices = list(&disk, "devices");
        let mine = devices.iter().find(|device| device["name"] == self.name());
        Ok(mine.ok_or_else(|| disk.to_string())?.clone())
    }
}

impl Drop for Loop {
    fn drop(&mut self) {
        let _ = Command::new("losetup").args(["-d", &self.path]).status();
        let _ = std::fs::remove_file(&self.file);
    }
}

fn counted() -> Result<(), Failed> {
    let Some(device) = Loop::new("disk.loop", "--direct-io=off")? else {
        return Ok(());
    };
    let trace = scratch("disk-loop.bin");
    let path = &device.path;
    // The requests take more than a second, so that the recorder samples the device between them.
    let script = format!(
        "{BURST}; dd if=/dev/zero of={path} oflag=direct bs=64k count=300 status=none; sleep 1.2
         dd if={path} of=/dev/null iflag=direct bs=4k count=1000 status=none
         dd if=/dev/zero of={path} oflag=direct bs=8k count=200 status=none"
    );
    let before = device.statistics()?;
    let out = record(&trace, &[], &["sh", "-c", &script])?;
    let after = device.statistics()?;
    ensure(out.status.success(), || text(&out.stderr))?;
    let counted = |field: usize| after[field] - before[field];
    let found = device.of(&trace)?;
    let what = || format!("{found}\nbefore {before:?}, after {after:?}");
    let groups = &found["groups"];
    for (group, first) in [("read", 0), ("write", 4)] {
        let group = &groups[group];
        ensure(int(group, "requests") == counted(first), what)?;
        ensure(int(group, "bytes") == counted(first + 2) * 512, what)?;
        // The kernel counts the time from the allocation of a request, and in whole ms, so its figure is larger.
        let (ours, theirs) = (int(group, "latency_ns"), counted(first + 3) * 1_000_000);
        ensure(ours < theirs + 2_000_000 && ours * 3 > theirs, what)?;
        let buckets = list(group, "buckets").iter().filter_map(Value::as_u64);
        ensure(buckets.sum::<u64>() == int(group, "requests"), what)?;
        let (p50, p99) = (int(group, "p50_ns"), int(group, "p99_ns"));
        ensure(p50 <= p99 && p99 <= int(group, "longest_ns"), what)?;
    }
    ensure(int(&found, "requests") == 1500, what)?;
    // The kernel counts the busy time in ticks of its timer, of 1 to 10 ms.
    let (ours, theirs) = (int(&found, "busy_ns"), counted(9) * 1_000_000);
    ensure(ours < theirs * 2 + 20_000_000, what)?;
    ensure(ours * 2 + 20_000_000 > theirs, what)?;
    let samples = list(&found, "samples");
    ensure(samples.len() >= 2, what)?;
    let sum: u64 = samples.iter().map(|sample| int(sample, "requests")).sum();
    ensure(sum == 1500, what)
}

/// A cgroup whose processes may write only [`Throttle::RATE`] requests a second to the disk of a file.
struct Throttle(PathBuf);

impl Throttle {
    const RATE: u64 = 20;

    /// Makes the cgroup; `None` if this machine has no controller that throttles a disk.
    fn new(file: &Path) -> Result<Option<Throttle>, Failed> {
        let group = PathBuf::from(format!("/sys/fs/cgroup/blkio/tr-{}", std::process::id()));
        if std::fs::create_dir(&group).is_err() {
            return Ok(None);
        }
        let throttle = Throttle(group);
        let device = std::fs::metadata(file)?.dev();
        let (major, minor) = (nix::libc::major(device), nix::libc::minor(device));
        let limit = format!("{major}:{minor} {}", Throttle::RATE);
        let set = std::fs::write(throttle.0.join("blkio.throttle.write_iops_device"), limit);
        Ok(set.is_ok().then_some(throttle))
    }
}

impl Drop for Throttle {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir(&self.0);
    }
}

/// The loop device passes each write to a file on a throttled disk, so every request has a known delay.
fn delayed() -> Result<(), Failed> {
    const REQUESTS: u64 = 20;
    let Some(device) = Loop::new("disk.throttled", "--direct-io=on")? else {
        return Ok(());
    };
    let Some(throttle) = Throttle::new(&device.file)? else {
        eprintln!("no cgroup that throttles a disk");
        return Ok(());
    };
    let trace = scratch("disk-throttled.bin");
    let script = format!(
        "echo $$ > {}/cgroup.procs && \
         exec dd if=/dev/zero of={} oflag=direct bs=4k count={REQUESTS} status=none",
        throttle.0.display(),
        device.path
    );
    let begin = Instant::now();
    let out = record(&trace, &[], &["sh", "-c", &script])?;
    let wall = begin.elapsed().as_nanos() as u64;
    ensure(out.status.success(), || text(&out.stderr))?;
    let found = device.of(&trace)?;
    let what = || format!("{found}\nin {wall} ns");
    ensure(int(&found, "requests") == REQUESTS, what)?;
    // The kernel does not delay the first requests, so only half of the expected time is required.
    let latency = int(&found, "latency_ns");
    let least = REQUESTS * 1_000_000_000 / Throttle::RATE / 2;
    ensure((least..wall).contains(&latency), what)?;
    // The requests follow each other, so the busy time equals the sum of their latencies.
    let busy = int(&found, "busy_ns");
    ensure(busy.abs_diff(latency) <= latency / 100, what)?;
    ensure(
        int(&found, "longest_ns") >= 1_000_000_000 / Throttle::RATE / 2,
        what,
    )
}

/// The number and the time of a row's waits for this disk.
fn waits(of: &Value, disk: Option<&str>) -> (u64, u64) {
    let all = list(of, "disks");
    let mine = all.iter().find(|value| value["name"].as_str() == disk);
    mine.map_or((0, 0), |value| {
        (int(value, "waits"), int(value, "waited_ns"))
    })
}

/// One program reads from a fast disk and writes to a slow one; another program reads only from the fast one.
fn waited() -> Result<(), Failed> {
    const REQUESTS: u64 = 20;
    let fast = Loop::new("disk.fast", "--direct-io=off")?;
    let slow = Loop::new("disk.slow", "--direct-io=on")?;
    let (Some(fast), Some(slow)) = (fast, slow) else {
        return Ok(());
    };
    let throttle = Throttle::new(&slow.file)?;
    let procs = throttle
        .as_ref()
        .map(|throttle| throttle.0.join("cgroup.procs"));
    let procs = procs.unwrap_or_else(|| "/dev/null".into());
    let size = format!("bs=4k count={REQUESTS} status=none");
    let script = format!(
        "dd if={} of=/dev/null iflag=direct {size}
         echo $$ > {}
         dd if={} of={} iflag=direct oflag=direct {size}",
        fast.path,
        procs.display(),
        fast.path,
        slow.path
    );
    let trace = scratch("disk-waited.bin");
    let begin = Instant::now();
    let out = record(&trace, &[], &["sh", "-c", &script])?;
    let wall = begin.elapsed().as_nanos() as u64;
    ensure(out.status.success(), || text(&out.stderr))?;
    let found = report(&trace, "disk", &[])?;
    let what = || format!("{}, {}: {found}", fast.name(), slow.name());
    let rows = list(&found, "rows");
    let dd = |writes: bool| {
        let is = |row: &&Value| {
            let writer = int(row, "written_bytes") >= REQUESTS * 4096;
            row["name"]
                .as_str()
                .is_some_and(|name| name.starts_with("dd "))
                && writer == writes
        };
        rows.iter().find(is).ok_or_else(what)
    };
    let (reader, copier) = (dd(false)?, dd(true)?);
    // If a request is complete before the program would wait for it, the request causes no wait. So there may be fewer
    // waits than requests.
    let asked = 1..=REQUESTS;
    ensure(asked.contains(&waits(reader, Some(fast.name())).0), what)?;
    ensure(waits(reader, Some(slow.name())) == (0, 0), what)?;
    ensure(asked.contains(&waits(copier, Some(fast.name())).0), what)?;
    let (count, ns) = waits(copier, Some(slow.name()));
    ensure(asked.contains(&count), what)?;
    if throttle.is_some() {
        // The kernel does not delay the first requests, so only half of the expected time is required.
        let least = REQUESTS * 1_000_000_000 / Throttle::RATE / 2;
        ensure((least..wall).contains(&ns), what)?;
        ensure(waits(copier, Some(fast.name())).1 * 4 < ns, what)?;
    }
    // Other waits of these programs, for example for pages of their own files at the exec, must take less than a
    // quarter of the time.
    for row in [reader, copier] {
        ensure(waits(row, None).1 * 4 < wall, what)?;
    }
    let parts = list(&found, "disks").iter();
    let sum: u64 = parts.map(|part| int(part, "waited_ns")).sum();
    ensure(sum <= int(&found, "waited_ns"), what)
}

/// The report names two files that one program wrote to the disk by fsync and by fdatasync. sync(1) also writes to the
/// disk, but names no file.
fn synced() -> Result<(), Failed> {
    let files = ["sync-one.data", "sync-two.data"].map(scratch);
    let [one, two] = [&files[0], &files[1]].map(|file| file.to_string_lossy());
    let write = "if=/dev/zero bs=64k count=20 status=none";
    let script =
        format!("dd of={one} {write} conv=fsync; dd of={two} {write} conv=fdatasync; sync");
    let trace = scratch("disk-synced.bin");
    let out = record(&trace, &[], &["sh", "-c", &script])?;
    for file in &files {
        let _ = std::fs::remove_file(file);
    }
    ensure(out.status.success(), || text(&out.stderr))?;
    let found = report(&trace, "disk", &[])?;
    let what = || found.to_string();
    let rows = list(&found, "rows");
    let names = |program: &str| -> Vec<&str> {
        let mine = rows.iter().filter(|row| {
            row["name"]
                .as_str()
                .is_some_and(|row| row.starts_with(program))
        });
        let files = mine.flat_map(|row| list(row, "synced"));
        files.filter_map(|file| file["file"].as_str()).collect()
    };
    let name = |file: &Path| {
        file.file_name()
            .map(|name| name.to_string_lossy().into_owned())
    };
    let wanted: Vec<String> = files.iter().filter_map(|file| name(file)).collect();
    let mut dds = names("dd ");
    dds.sort_unstable();
    ensure(dds == wanted, what)?;
    ensure(names("sync").is_empty(), what)?;
    let parts = rows.iter().flat_map(|row| list(row, "synced"));
    let all: u64 = parts.map(|part| int(part, "waited_ns")).sum();
    ensure(all == int(&found, "sync_ns"), what)
}
