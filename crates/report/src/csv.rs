//! A table as CSV: one row each, times in ns, unknown values empty.

use crate::query::Row;

/// The table's bytes.
///
/// # Errors
/// None in practice: it writes to memory.
pub fn render(rows: &[Row]) -> Result<Vec<u8>, csv::Error> {
    let mut out = csv::Writer::from_writer(Vec::new());
    out.write_record([
        "name",
        "count",
        "pid",
        "start_ns",
        "wall_ns",
        "on_cpu_ns",
        "run_queue_ns",
        "sleep_ns",
        "blocked_ns",
        "unknown_ns",
        "tree_on_cpu_ns",
        "max_rss_bytes",
        "exit_code",
        "signal",
    ])?;
    for row in rows {
        let number = |n: Option<u64>| n.map(|n| n.to_string()).unwrap_or_default();
        let code = row
            .status
            .filter(|s| s & 0x7f == 0)
            .map(|s| u64::from(s >> 8 & 0xff));
        let signal = row.status.map(|s| u64::from(s & 0x7f)).filter(|s| *s != 0);
        let times = &row.times;
        out.write_record([
            row.name.clone(),
            row.count.to_string(),
            number(row.pid.map(u64::from)),
            row.start.to_string(),
            row.wall.to_string(),
            times.on_cpu.to_string(),
            times.run_queue.to_string(),
            times.sleep.to_string(),
            times.blocked.to_string(),
            times.unknown.to_string(),
            row.tree_cpu.to_string(),
            number(row.max_rss),
            number(code),
            number(signal),
        ])?;
    }
    out.into_inner().map_err(|e| e.into_error().into())
}
