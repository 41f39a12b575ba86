//! Compares the figures of `--report memory` with a program of a known size, and with a cgroup that has a limit.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use libtest_mimic::Failed;

use crate::machine::BURST;
use crate::network::ROLE;
use crate::support::{ensure, int, list, recording, report, scratch, text, Test};

pub const TESTS: &[Test] = &[
    ("the_resident_memory_is_what_a_program_holds", held),
    ("a_limit_of_memory_shows_as_reclaim_and_as_a_kill", limited),
];

const MIB: u64 = 1 << 20;
/// The memory in bytes that the recorded program holds.
const HELD: u64 = 200 * MIB;
/// The memory limit of the cgroup in bytes.
const LIMIT: u64 = 64 * MIB;

/// Does the work of a recorded program, which is this test program in a role.
pub fn play(role: &str) {
    if role == "hold" {
        // This loop makes many events. Samples of the counters may only take a small part of the recording's size, so
        // without the loop there would be fewer than one sample a second.
        let burst = Command::new("sh").args(["-c", BURST]).status();
        assert!(burst.expect("sh").success());
        let memory = vec![1u8; HELD as usize];
        std::thread::sleep(Duration::from_millis(3500));
        std::hint::black_box(&memory);
        return;
    }
    let mut memory = Vec::new();
    loop {
        memory.push(vec![1u8; MIB as usize]);
        std::hint::black_box(&memory);
    }
}

fn held() -> Result<(), Failed> {
    let trace = scratch("memory.bin");
    let this = std::env::current_exe()?;
    let mut tr = recording(&trace, &[], &[&this.to_string_lossy()]);
    let out = tr.env(ROLE, "memory hold").output()?;
    ensure(out.status.success(), || text(&out.stderr))?;
    let found = report(&trace, "memory", &[])?;
    let what = || found.to_string();
    // The program itself takes memory, too, and the kernel's counters are inexact.
    let bounds = HELD - 2 * MIB..HELD + 24 * MIB;
    ensure(bounds.contains(&int(&found, "peak_bytes")), what)?;
    ensure(bounds.contains(&int(&found, "resident_bytes")), what)?;
    let samples = list(&found, "samples").iter();
    let full = samples.filter(|sample| {
        let resident = sample["resident_bytes"].as_u64();
        resident.is_some_and(|bytes| bounds.contains(&bytes))
    });
    ensure(full.count() >= 2, what)?;
    ensure(list(&found, "kills").is_empty(), what)
}

/// A cgroup with a memory limit.
struct Limited(PathBuf);

impl Limited {
    /// Makes the cgroup; `None` if this machine has no controller of memory.
    fn new() -> Option<Limited> {
        let name = format!("tr-memory-{}", std::process::id());
        let files = [
            ("/sys/fs/cgroup/memory", "memory.limit_in_bytes"),
            ("/sys/fs/cgroup", "memory.max"),
        ];
        files.into_iter().find_map(|(mount, file)| {
            let group = Limited(Path::new(mount).join(&name));
            fs::create_dir(&group.0).ok()?;
            fs::write(group.0.join(file), LIMIT.to_string()).ok()?;
            Some(group)
        })
    }

    /// How many processes the kernel has killed for lack of memory in this cgroup.
    fn kills(&self) -> Option<u64> {
        let files = ["memory.oom_control", "memory.events"];
        let text = files
            .iter()
            .find_map(|file| fs::read_to_string(self.0.join(file)).ok())?;
        let line = text
            .lines()
            .find_map(|line| line.strip_prefix("oom_kill "))?;
        line.trim().parse().ok()
    }
}

impl Drop for Limited {
    fn drop(&mut self) {
        let _ = fs::remove_dir(&self.0);
    }
}

fn limited() -> Result<(), Failed> {
    let Some(group) = Limited::new() else {
        eprintln!("no cgroup that limits memory");
        return Ok(());
    };
    let (trace, file) = (scratch("memory-limit.bin"), scratch("memory.data"));
    let script = format!(
        "echo $$ > {}/cgroup.procs && \
         dd if=/dev/zero of={} bs=1M count=200 status=none && exec {}",
        group.0.display(),
        file.display(),
        std::env::current_exe()?.display(),
    );
    let begin = Instant::now();
    let mut tr = recording(&trace, &[], &["sh", "-c", &script]);
    let out = tr.env(ROLE, "memory grow").output()?;
    let wall = begin.elapsed().as_nanos() as u64;
    let _ = fs::remove_file(&file);
    ensure(out.status.code() == Some(137), || text(&out.stderr))?;
    let found = report(&trace, "memory", &[])?;
    let what = || format!("{found}, kernel: {:?}", group.kills());
    let kills = list(&found, "kills");
    ensure(kills.len() as u64 == group.kills().unwrap_or(1), what)?;
    ensure(kills.len() == 1, what)?;
    ensure(
        kills[0]["process"]
            .as_str()
            .is_some_and(|kill| kill.contains("recorder")),
        what,
    )?;
    // Before Linux 6.9 the kernel does not report the memory of the killed program.
    let resident = kills[0]["resident_bytes"].as_u64();
    let least = LIMIT / 2;
    ensure(
        resident.is_none_or(|bytes| (least..LIMIT + 16 * MIB).contains(&bytes)),
        what,
    )?;
    // The pages of dd's file had to be reclaimed, page by page.
    let rows = list(&found, "rows");
    let dd = rows.iter().find(|row| {
        row["name"]
            .as_str()
            .is_some_and(|row| row.starts_with("dd "))
    });
    let dd = dd.ok_or_else(what)?;
    ensure(int(dd, "reclaims") > 0, what)?;
    ensure((1..wall).contains(&int(dd, "reclaim_ns")), what)?;
    ensure(int(&found, "oom_kills") == 1, what)
}
