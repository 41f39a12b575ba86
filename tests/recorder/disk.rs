//! The bytes and waits of `--report disk`, held against what dd wrote and read.

use libtest_mimic::Failed;
use serde_json::Value;

use crate::common::{int, list};
use crate::support::{ensure, record, scratch, text, tr, Test};

pub const TESTS: &[Test] = &[("bytes_on_disk_are_those_that_dd_moved", moved)];

const BYTES: u64 = 64 * 65_536;

fn moved() -> Result<(), Failed> {
    let (trace, file) = (scratch("disk.bin"), scratch("disk.data"));
    let (path, size) = (file.to_string_lossy(), "bs=64k count=64 status=none");
    // Without the page cache: all of it goes to the disk, and comes from there.
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
    let out = tr(&["analyze", "--report", "disk", "--format", "json"], &trace)?;
    let all: Value = serde_json::from_slice(&out)?;
    let rules: Value = serde_json::from_str(include_str!(
        "../../crates/report/schema/analysis.schema.json"
    ))?;
    crate::common::schema::validate(&rules, &all)?;
    let disk = &all["disk"];
    let what = || disk.to_string();
    let rows = list(disk, "rows");
    let dds: Vec<&Value> = rows
        .iter()
        .filter(|row| row["name"].as_str().is_some_and(|it| it.starts_with("dd ")))
        .collect();
    ensure(dds.len() == 2, what)?;
    // The programs themselves may come from the disk, too.
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
