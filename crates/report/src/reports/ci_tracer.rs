//! Writes the stream that the D3 viewers of ci-tracer read: a JSON array with one object in each line.
//!
//! | object | meaning |
//! | --- | --- |
//! | `{"interval": MS}` | length of an interval in milliseconds |
//! | `{"start": S}` | start of the recording, in seconds since 1970 |
//! | `{"cgr": ID, "v": PATH}` | a cgroup |
//! | `{"pid": N, "ppid": N, "t": S, "cg": ID, "v": [ARG…]}` | a process, started at S seconds of the recording |
//! | `{"ts": S}` | from here on, values of the interval that begins at S seconds |
//! | `{"cpu": PID, "v": MS}` | milliseconds on a CPU in that interval, over all threads |
//! | `{"end": S}` | length of the recording in seconds |
//!
//! A cgroup comes before its first process, a parent before its child, a process before its first value. The viewer
//! draws the values after a `ts` only if another `ts` follows. So a `ts` without values ends the last interval.
//! Milliseconds have up to six decimals: every value is exact, and a process's values add up to its time on a CPU. If a
//! pid is reused, the viewer gives all its values to the last process with this pid.

use std::collections::BTreeSet;
use std::io::{self, Write};

use serde::Serialize;
use serde_json::ser::CompactFormatter;
use tr_analyze::arena::Arena;
use tr_analyze::model::{Process, ProcessIx};
use tr_format::event::CgroupId;

use tr_insight::cpus::cpu_series::CpuSeries;
use tr_insight::views::query;
use tr_insight::views::view::View;
use tr_text::json;

/// A time in nanoseconds as an exact decimal number, in a unit of `10^digits` ns.
fn decimal(ns: u64, digits: u32) -> String {
    let unit = 10u64.pow(digits);
    let (whole, mut part, mut width) = (ns / unit, ns % unit, digits as usize);
    if part == 0 {
        return whole.to_string();
    }
    // Zeros at the end of the fraction are left out.
    while part % 10 == 0 {
        part /= 10;
        width -= 1;
    }
    format!("{whole}.{part:0width$}")
}

fn string(value: &impl Serialize) -> io::Result<String> {
    json::safe(value, CompactFormatter)
}

/// Writes the chosen processes and their CPU times as the stream of JSON objects that the viewers of ci-tracer
/// read.
pub fn render(view: &View<'_>) -> io::Result<Vec<u8>> {
    let series = CpuSeries::new(view);
    let analysis = view.analysis;
    let length = analysis.end.since(analysis.meta.start);
    let mut out = Vec::new();
    writeln!(out, "[{{\"interval\": {}}},", decimal(series.interval, 6))?;
    if let Some(start) = analysis.meta.start_unix() {
        let start = decimal(start, 9);
        writeln!(out, "{{\"start\": {start}}},")?;
    }

    let mut values: Vec<(u64, usize, u64)> = Vec::new();
    for (at, line) in series.lines.iter().enumerate() {
        values.extend(line.values.iter().map(|(number, ns)| (*number, at, *ns)));
    }
    values.sort_unstable();
    let mut values = values.into_iter().peekable();
    let mut stream = Stream::new(view);
    // The end of the last interval whose values were written, in ns since the start of the recording.
    let mut open = None;
    let ts = |out: &mut Vec<u8>, ns| writeln!(out, "{{\"ts\": {}}},", decimal(ns, 9));
    if values.peek().map(|(number, ..)| *number) != Some(series.first()) {
        ts(&mut out, series.first().saturating_mul(series.interval))?;
    }
    while let Some(number) = values.peek().map(|(number, ..)| *number) {
        let begin = number.saturating_mul(series.interval);
        let end = begin.saturating_add(series.interval);
        if let Some(open) = open.filter(|open| *open != begin) {
            ts(&mut out, open)?; // an interval without values
        }
        stream.until(&mut out, end)?;
        ts(&mut out, begin)?;
        while let Some((_, at, ns)) = values.next_if(|(of, ..)| *of == number) {
            let pid = series.lines.get(at).map_or(0, |line| line.process.pid.0);
            writeln!(out, "{{\"cpu\": {pid}, \"v\": {}}},", decimal(ns, 6))?;
        }
        open = Some(end);
    }
    stream.until(&mut out, u64::MAX)?;
    if let Some(open) = open.filter(|open| *open < length) {
        ts(&mut out, open)?;
    }
    ts(&mut out, length)?;
    writeln!(out, "{{\"end\": {}}}]", decimal(length, 9))?;
    Ok(out)
}

/// The state of the output for the viewers of ci-tracer: the processes and cgroups that it has already
/// introduced.
struct Stream<'v, 'a> {
    view: &'v View<'a>,
    /// The number of the chosen processes, in the order of their start, that the output has introduced or skipped so
    /// far.
    next: usize,
    /// For each process, whether it is chosen and the output has not introduced it yet.
    unnamed: Arena<ProcessIx, bool>,
    cgroups: BTreeSet<CgroupId>,
}

impl<'v, 'a> Stream<'v, 'a> {
    fn new(view: &'v View<'a>) -> Stream<'v, 'a> {
        Stream {
            view,
            next: 0,
            unnamed: view.is_chosen(),
            cgroups: BTreeSet::new(),
        }
    }

    /// Writes the objects that introduce the processes which started before `end`, in ns since the start of the
    /// recording.
    fn until(&mut self, out: &mut Vec<u8>, end: u64) -> io::Result<()> {
        let analysis = self.view.analysis;
        while let Some(ix) = self.view.chosen.get(self.next) {
            if self.view.since(analysis.process(*ix).start) >= end {
                break;
            }
            // The process's ancestors are written before the process, unless the output already has them.
            let mut unnamed = Vec::new();
            let mut at = Some(*ix);
            while let Some(ix) = at.filter(|ix| self.unnamed[*ix]) {
                self.unnamed[ix] = false;
                let process = analysis.process(ix);
                unnamed.push(process);
                at = process.parent;
            }
            for process in unnamed.into_iter().rev() {
                self.name(out, process)?;
            }
            self.next += 1;
        }
        Ok(())
    }

    fn name(&mut self, out: &mut Vec<u8>, process: &Process) -> io::Result<()> {
        let analysis = self.view.analysis;
        let cgroup = process.cgroup;
        if self.cgroups.insert(cgroup) {
            let path = query::cgroup_path(analysis, process).map(json::text);
            let path = path.unwrap_or_else(|| "unknown".into());
            // ci-tracer writes the paths of cgroups without the first slash.
            let plain = path.strip_prefix('/').filter(|path| !path.is_empty());
            let path = string(&plain.unwrap_or(&path))?;
            writeln!(out, "{{\"cgr\": {}, \"v\": {path}}},", cgroup.0)?;
        }
        let mut args: Vec<String> = process.argv.args().map(json::text).collect();
        if args.is_empty() || process.role.kthread {
            args = vec![json::text(process.comm.bytes())];
        }
        let start = process.start.since(analysis.meta.start);
        writeln!(
            out,
            "{{\"pid\": {}, \"ppid\": {}, \"t\": {}, \"cg\": {}, \"v\": {}}},",
            process.pid.0,
            process.ppid.map_or(0, |ppid| ppid.0),
            decimal(start, 9),
            cgroup.0,
            string(&args)?
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn decimals_are_exact() {
        assert_eq!(decimal(41_357_000, 6), "41.357");
        assert_eq!(decimal(1, 6), "0.000001");
        assert_eq!(decimal(1_000_000_000, 6), "1000");
        assert_eq!(decimal(0, 9), "0");
        assert_eq!(decimal(u64::MAX, 9), "18446744073.709551615");
    }

    #[test]
    fn strings_are_safe_on_a_terminal() {
        let text = string(&"a\x1b[1m\u{9b}\u{202e}\"é").expect("memory");
        assert_eq!(text, "\"a\\u001b[1m\\u009b\\u202e\\\"é\"");
        let back: String = serde_json::from_str(&text).expect("JSON");
        assert_eq!(back, "a\x1b[1m\u{9b}\u{202e}\"é");
    }
}
