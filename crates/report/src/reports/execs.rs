//! Every execution, a line each, as `execsnoop` and `exitsnoop` print them: how
//! long it took, how it ended, who it was, what it waited for.
//!
//! All of them are shown unless `--top` says how many: who looks for one run of
//! a program must not have to wonder whether it was left out.

use serde::Serialize;
use serde_json::Value;
use tr_analyze::model::{ExecSpan, Process};

use crate::json;
use crate::query::Sort;
use crate::reports::{Report, View};
use crate::style::{Paint, Style};
use crate::table::{Cell, Table};
use crate::{escape, units};

/// How an execution ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Ended {
    /// Its process ended, with this raw status.
    Exit(u32),
    /// Another execution took its place.
    Exec,
    /// Not before the end of the span.
    Alive,
    /// Its process ended; how, nobody saw.
    Unknown,
}

impl Ended {
    fn word(self) -> &'static str {
        match self {
            Ended::Exit(_) => "exit",
            Ended::Exec => "exec",
            Ended::Alive => "alive",
            Ended::Unknown => "unknown",
        }
    }
}

/// One execution.
#[derive(Clone, Copy)]
struct Execution<'a> {
    process: &'a Process,
    exec: &'a ExecSpan,
    ended: Ended,
}

impl Execution<'_> {
    /// Its length in ns.
    fn time(&self) -> u64 {
        self.exec.end.since(self.exec.start)
    }

    /// What was waited for in it, in ns.
    fn waited(&self) -> u64 {
        let times = &self.exec.times;
        times.run_queue + times.blocked + times.sleep
    }

    fn failed(&self) -> bool {
        matches!(self.ended, Ended::Exit(raw) if raw != 0)
    }

    /// How it ended, in a column.
    fn code(&self) -> Cell {
        match self.ended {
            Ended::Exit(raw) if raw & 0x7f != 0 => Cell::Text(format!("sig {}", raw & 0x7f)),
            Ended::Exit(raw) => Cell::Id(raw >> 8 & 0xff),
            Ended::Exec => Cell::from("exec"),
            Ended::Alive => Cell::from("alive"),
            Ended::Unknown => Cell::Unknown,
        }
    }

    /// The command line, or what else is known.
    fn command(&self) -> String {
        let argv = &self.exec.argv;
        let mut out = if argv.bytes.is_empty() {
            let file: &[u8] = match self.exec.filename.is_empty() {
                true => self.exec.comm.bytes(),
                false => &self.exec.filename,
            };
            escape::text(file)
        } else {
            escape::command(argv.args())
        };
        if argv.truncated() && argv.full_len.is_some() {
            let full = argv.full_len.map_or(0, u64::from);
            out.push_str(&format!(" … of {}", units::bytes(full)));
        }
        out
    }
}

/// The report.
pub struct Execs<'a> {
    view: View<'a>,
    rows: Vec<Execution<'a>>,
}

impl<'a> Execs<'a> {
    /// Of the processes that were chosen.
    pub fn new(view: &View<'a>) -> Execs<'a> {
        let ask = view.ask;
        let chosen = view.chosen.iter();
        let processes = chosen.filter_map(|at| view.analysis.processes.get(*at));
        let mut rows: Vec<Execution<'a>> = processes
            .flat_map(executions)
            .filter(|row| row.time() >= ask.min && (!ask.failed || row.failed()))
            .collect();
        sort(&mut rows, ask.sort.unwrap_or(Sort::Start));
        Execs { view: *view, rows }
    }

    fn since(&self, exec: &ExecSpan) -> u64 {
        exec.start.since(self.view.analysis.meta.start)
    }
}

/// A process's executions, in order.
fn executions<'a>(process: &'a Process) -> impl Iterator<Item = Execution<'a>> {
    let last = process.execs.len().saturating_sub(1);
    let row = move |(at, exec): (usize, &'a ExecSpan)| Execution {
        process,
        exec,
        ended: match (at == last, process.status) {
            (false, _) => Ended::Exec,
            (true, Some(raw)) => Ended::Exit(raw),
            (true, None) if process.alive => Ended::Alive,
            (true, None) => Ended::Unknown,
        },
    };
    process.execs.iter().enumerate().map(row)
}

/// The largest first, but for start and pid; equal ones by start.
fn sort(rows: &mut [Execution], by: Sort) {
    let key = |row: &Execution| {
        let times = &row.exec.times;
        match by {
            Sort::OnCpu => times.on_cpu,
            Sort::OffCpu => row.waited(),
            Sort::Wall => row.time(),
            Sort::RunQueue => times.run_queue,
            Sort::Sleep => times.sleep,
            Sort::Blocked => times.blocked,
            Sort::Unknown => times.unknown,
            Sort::Rss => row.process.max_rss.unwrap_or(0),
            Sort::TreeCpu => row.process.tree.times.on_cpu,
            Sort::Start => 0,
            Sort::Pid => u64::MAX - u64::from(row.process.pid.0),
        }
    };
    rows.sort_by_key(|row| {
        let key = u64::MAX - key(row);
        (key, row.exec.start, row.process.pid, row.process.start)
    });
}

/// Where a table has room for what every wait was.
const WIDE: usize = 120;

impl Report for Execs<'_> {
    fn text(&self, style: &Style) -> String {
        let wide = style.width >= WIDE;
        let unknown = self.rows.iter().any(|row| row.exec.times.unknown > 0);
        let mut table = Table::new();
        if wide {
            table = table.column("START(s)", "");
        }
        table = table.column("TIME(s)", "").column("CPU", "");
        let waits: &[&str] = match wide {
            true => &["wait cpu", "blocked", "sleep"],
            false => &["waited"],
        };
        for title in waits {
            table = table.column(*title, "");
        }
        if wide && unknown {
            table = table.column("unknown", "");
        }
        let mut table = table
            .column("CODE", "")
            .column("PID", "")
            .column("PPID", "")
            .name("ARGV", "");
        let most = self.view.ask.most();
        for row in self.rows.iter().take(most) {
            let (process, times) = (row.process, &row.exec.times);
            let mut cells = Vec::new();
            if wide {
                cells.push(match row.exec.started_before {
                    true => Cell::from("before"),
                    false => Cell::Seconds(self.since(row.exec)),
                });
            }
            cells.extend([Cell::Seconds(row.time()), Cell::Time(times.on_cpu)]);
            if wide {
                cells.extend([times.run_queue, times.blocked, times.sleep].map(Cell::Time));
            } else {
                cells.push(Cell::Time(row.waited()));
            }
            if wide && unknown {
                cells.push(Cell::Time(times.unknown));
            }
            cells.extend([
                row.code(),
                Cell::Id(process.pid.0),
                Cell::known(process.ppid, |ppid| Cell::Id(ppid.0)),
            ]);
            let bad = if row.failed() {
                Paint::Bad
            } else {
                Paint::Plain
            };
            table.row(cells, row.command(), bad);
        }
        let mut out = table.text(style, 0);
        if self.rows.len() > most {
            let more = units::count((self.rows.len() - most) as u64);
            style.line(&mut out, &format!("and {more} more executions"));
        }
        out
    }

    fn json(&self) -> serde_json::Result<Option<Value>> {
        #[derive(Serialize)]
        struct Row {
            pid: u32,
            ppid: Option<u32>,
            start_ns: u64,
            started_before: bool,
            end_ns: Option<u64>,
            time_ns: u64,
            ended: &'static str,
            exit: Option<json::Exit>,
            comm: String,
            filename: Option<String>,
            argv: Option<Vec<String>>,
            argv_truncated: bool,
            #[serde(flatten)]
            times: json::Times,
        }
        let rows = self.rows.iter().take(self.view.ask.most());
        let rows = rows.map(|row| Row {
            pid: row.process.pid.0,
            ppid: row.process.ppid.map(|ppid| ppid.0),
            start_ns: self.since(row.exec),
            started_before: row.exec.started_before,
            end_ns: (row.ended != Ended::Alive).then(|| self.since(row.exec) + row.time()),
            time_ns: row.time(),
            ended: row.ended.word(),
            exit: match row.ended {
                Ended::Exit(raw) => Some(json::exit(raw)),
                _ => None,
            },
            comm: json::text(row.exec.comm.bytes()),
            filename: (!row.exec.filename.is_empty()).then(|| json::text(&row.exec.filename)),
            argv: json::argv(&row.exec.argv),
            argv_truncated: row.exec.argv.truncated(),
            times: json::times(&row.exec.times),
        });
        serde_json::to_value(rows.collect::<Vec<_>>()).map(Some)
    }

    fn csv(&self) -> Result<Vec<u8>, csv::Error> {
        let mut table = Table::keyed([
            "start_ns",
            "time_ns",
            "ended",
            "exit_code",
            "signal",
            "pid",
            "ppid",
            "on_cpu_ns",
            "run_queue_ns",
            "blocked_ns",
            "sleep_ns",
            "unknown_ns",
            "filename",
            "argv",
        ]);
        for row in self.rows.iter().take(self.view.ask.most()) {
            let times = &row.exec.times;
            let raw = match row.ended {
                Ended::Exit(raw) => Some(raw),
                _ => None,
            };
            let code = raw.filter(|raw| raw & 0x7f == 0).map(|raw| raw >> 8 & 0xff);
            let signal = raw.map(|raw| raw & 0x7f).filter(|signal| *signal != 0);
            let cells = vec![
                match row.exec.started_before {
                    true => Cell::Unknown,
                    false => Cell::At(self.since(row.exec)),
                },
                Cell::Time(row.time()),
                Cell::from(row.ended.word()),
                Cell::known(code, Cell::Id),
                Cell::known(signal, Cell::Id),
                Cell::Id(row.process.pid.0),
                Cell::known(row.process.ppid, |ppid| Cell::Id(ppid.0)),
                Cell::Time(times.on_cpu),
                Cell::Time(times.run_queue),
                Cell::Time(times.blocked),
                Cell::Time(times.sleep),
                Cell::Time(times.unknown),
                Cell::Text(escape::text(&row.exec.filename)),
                row.command().into(),
            ];
            table.record(cells);
        }
        table.csv()
    }
}
