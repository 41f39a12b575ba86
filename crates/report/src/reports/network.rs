//! The report on TCP connections: by remote end, by process, and those that failed.

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::fmt::Write;

use serde_json::{json, Value};
use tr_analyze::model::{Analysis, Process, ProcessIx};
use tr_analyze::network::{self, Connection, Waited};
use tr_format::network::Ending;

use super::lookups::Lookups;
use crate::output::Report;
use tr_insight::path;
use tr_insight::processes::label;
use tr_insight::resources::network::{Host, NetworkSum, Remotes};
use tr_insight::views::view::View;
use tr_text::page::{Page, Span};
use tr_text::style::{Paint, Style};
use tr_text::table::{Cell, Sheet, Table};
use tr_text::units;

/// The largest number of lines about failed connections in the report as text, unless `--top` is given. Equal failures
/// share a line.
const FAILED_LINES: usize = 5;

pub struct Network<'a> {
    view: View<'a>,
    chosen: Vec<&'a Connection>,
    hosts: Vec<(Host, NetworkSum)>,
    processes: Vec<(Option<ProcessIx>, NetworkSum)>,
    /// The time in nanoseconds on the critical path in which the chosen processes waited for the network; `None` if
    /// there is no critical path.
    path_wait: Option<u64>,
    remotes: Remotes,
    lookups: Lookups<'a>,
}

/// A row of a table in the report on the network: a remote host or a process, and the sums over its connections.
type NetworkRow<'r, K> = &'r (K, NetworkSum);

/// Adds the columns with sums over connections to a table of the report on the network. The columns about failures,
/// connecting and the critical path are hidden from people if all their rows are 0. `path` is whether the recording
/// has a critical path.
fn sums<'a, K: 'a>(
    table: Table<'a, NetworkRow<'a, K>>,
    any: impl Fn(fn(&NetworkSum) -> u64) -> bool,
    path: bool,
) -> Table<'a, NetworkRow<'a, K>> {
    let bytes = |of: fn(&NetworkSum) -> u64| {
        move |(_, sum): &NetworkRow<'a, K>| Cell::bytes(of(sum), sum.unknown == 0)
    };
    table
        .fact("conns", "connections", |(_, sum)| {
            Cell::Count(sum.connections)
        })
        .fact("failed", "failed", |(_, sum)| Cell::Count(sum.failed))
        .few()
        .shown(any(|sum| sum.failed))
        .fact("connecting", "connecting_ns", |(_, sum)| {
            Cell::Time(sum.connecting)
        })
        .few()
        .shown(any(|sum| sum.connecting))
        .fact("open", "open_ns", |(_, sum)| Cell::Time(sum.open))
        .few()
        .fact(
            "received",
            "received_bytes",
            bytes(|sum| sum.received_bytes),
        )
        .few()
        .fact("sent", "sent_bytes", bytes(|sum| sum.sent_bytes))
        .few()
        .fact("on path", "path_wait_ns", move |(_, sum)| {
            if path {
                Cell::Time(sum.path_wait)
            } else {
                Cell::Unknown
            }
        })
        .few()
        .shown(any(|sum| sum.path_wait))
}

impl<'a> Network<'a> {
    pub fn new(view: &View<'a>) -> Network<'a> {
        let analysis = view.analysis;
        let (all, chosen) = (view.has_all(), view.is_chosen());
        let is_chosen = |ix: ProcessIx| chosen[ix];
        let connections = analysis.network.connections.iter();
        let chosen = connections
            .filter(|connection| process_of(analysis, connection).map_or(all, is_chosen))
            .collect::<Vec<_>>();
        let mut hosts: BTreeMap<Host, NetworkSum> = BTreeMap::new();
        let mut processes: BTreeMap<Option<ProcessIx>, NetworkSum> = BTreeMap::new();
        for connection in &chosen {
            let process = process_of(analysis, connection);
            hosts
                .entry(Host::of(connection))
                .or_default()
                .add(analysis, connection);
            processes
                .entry(process)
                .or_default()
                .add(analysis, connection);
        }
        let path = path::path_of(view).ok();
        let waited = path.map(|path| network::waited(analysis, &path));
        let remotes = Remotes::new(analysis, waited.as_deref().unwrap_or_default());
        let mine = waited.map(|all| {
            let mine = all.into_iter().filter(|wait| is_chosen(wait.process));
            mine.collect::<Vec<Waited>>()
        });
        for waited in mine.iter().flatten() {
            let sum = processes.get_mut(&Some(waited.process));
            let at = waited
                .connection
                .and_then(|at| analysis.network.connections.get(at));
            let host = at.and_then(|connection| hosts.get_mut(&Host::of(connection)));
            for sum in sum.into_iter().chain(host) {
                sum.path_wait = sum.path_wait.saturating_add(waited.ns);
            }
        }
        let sum = |all: Vec<Waited>| {
            all.iter()
                .fold(0, |sum: u64, wait| sum.saturating_add(wait.ns))
        };
        Network {
            view: *view,
            hosts: by_weight(hosts),
            processes: by_weight(processes),
            chosen,
            remotes,
            path_wait: mine.map(sum),
            lookups: Lookups::new(view, all, is_chosen),
        }
    }

    fn head(&self) -> String {
        let failed = self
            .chosen
            .iter()
            .filter(|connection| connection.failed())
            .count();
        let mut head = units::plural(
            self.chosen.len() as u64,
            "TCP connection",
            "TCP connections",
        );
        if failed > 0 {
            let _ = write!(head, ", {} failed", units::count(failed as u64));
        }
        let sum = NetworkSum::of(self.view.analysis, self.chosen.iter().copied());
        let least = if sum.unknown > 0 { "at least " } else { "" };
        let (received, sent) = (
            units::bytes(sum.received_bytes),
            units::bytes(sum.sent_bytes),
        );
        let _ = match sum.unknown {
            all if all > 0 && all == sum.connections => {
                write!(head, " · bytes not known before they are closed")
            }
            _ => write!(head, " · {least}{received} received, {sent} sent"),
        };
        head
    }

    fn table<'r, K>(
        &self,
        table: Table<'r, NetworkRow<'r, K>>,
        rows: &'r [(K, NetworkSum)],
    ) -> Table<'r, NetworkRow<'r, K>> {
        let any = |of: fn(&NetworkSum) -> u64| rows.iter().any(|(_, sum)| of(sum) > 0);
        sums(table, any, self.path_wait.is_some())
    }

    /// The table of remote hosts in the report on the network. `name` returns the text for a host.
    fn hosts<'r>(&'r self, name: impl Fn(Host) -> String + 'r) -> Table<'r, NetworkRow<'r, Host>> {
        let names = &self.remotes;
        let table = Table::new("remote host", move |(host, _): &NetworkRow<'_, Host>| {
            name(*host)
        })
        .data("direction", |(host, _)| host.direction())
        .data("address", |(host, _)| host.address().to_string())
        .data("port", |(host, _)| host.port())
        .data("name", move |(host, _)| names.name(*host))
        .data("server", move |(host, _)| names.server(*host));
        self.table(table, &self.hosts)
    }

    fn by_process(&self) -> Table<'_, NetworkRow<'_, Option<ProcessIx>>> {
        let analysis = self.view.analysis;
        let process =
            move |(ix, _): &NetworkRow<'_, Option<ProcessIx>>| ix.map(|ix| analysis.process(ix));
        let label = move |row: &NetworkRow<'_, Option<ProcessIx>>| process(row).map(label::phrase);
        let name = move |row: &NetworkRow<'_, _>| {
            process(row).map_or_else(|| "unknown".into(), label::label)
        };
        let table = Table::new("process", name)
            .phrase_data("process", label)
            .fact("pid", "pid", move |row| {
                Cell::known(process(row), |process| Cell::Id(process.pid.0))
            })
            .place(0);
        self.table(table, &self.processes)
    }

    fn rows_text<'r, K>(
        &self,
        out: &mut Page,
        table: &Table<'r, NetworkRow<'r, K>>,
        rows: &'r [(K, NetworkSum)],
    ) {
        let most = self.view.ask.rows();
        out.blank();
        out.table(table, rows.iter().take(most));
        out.more(rows.len(), most, "");
    }

    /// A sentence about the waits for the network on the critical path: the number of remote hosts that caused them,
    /// and the process that waited longest.
    fn path_words(&self, ns: u64) -> String {
        let mut text = format!("Network waits on the critical path: {}", units::time(ns));
        let hosts = self.hosts.iter().filter(|(_, sum)| sum.path_wait > 0);
        let hosts = hosts.count() as u64;
        if hosts > 0 {
            let hosts = units::plural(hosts, "remote host", "remote hosts");
            let _ = write!(text, ": {hosts}");
        }
        let waited = self.processes.iter().filter(|(_, sum)| sum.path_wait > 0);
        let longest = waited.max_by_key(|(_, sum)| sum.path_wait);
        if let Some((Some(ix), sum)) = longest {
            let most = if sum.path_wait < ns { "most " } else { "" };
            let name = label::label(self.view.analysis.process(*ix));
            let _ = write!(text, " · {most}in {name}");
        }
        text
    }

    fn failures(&self, out: &mut Page, style: &Style) {
        let mut failed: BTreeMap<(Ending, Option<ProcessIx>, Host), u64> = BTreeMap::new();
        for connection in self.chosen.iter().filter(|connection| connection.failed()) {
            let process = process_of(self.view.analysis, connection);
            let ending = connection.ending.unwrap_or_default();
            *failed
                .entry((ending, process, Host::of(connection)))
                .or_default() += 1;
        }
        let most = self.view.ask.top.unwrap_or(FAILED_LINES);
        for ((ending, process, host), times) in failed.iter().take(most) {
            let words = words(*ending);
            let times = if *times > 1 {
                format!("   {} ×", units::count(*times))
            } else {
                String::new()
            };
            let what = format!(" · {}{times}", host.text());
            let used = units::width(words) + 3 + units::width(&what);
            let who = name(self.view.analysis, *process);
            let who = units::shorten(&who, style.width.saturating_sub(used).max(12));
            let text = units::shorten(
                &format!("   {who}{what}"),
                style.width.saturating_sub(units::width(words)),
            );
            out.spans([Span::new(Paint::Bad, words), text.into()]);
        }
        out.more(failed.len(), most, " that failed");
    }

    fn connections(&self) -> Table<'_, &Connection> {
        let analysis = self.view.analysis;
        let process = move |connection: &&Connection| process_of(analysis, connection);
        let pid = move |ix: Option<ProcessIx>| ix.map(|ix| analysis.process(ix).pid.0);
        let since = |at| self.view.since(at);
        Table::unnamed()
            .data("pid", move |connection| pid(process(connection)))
            .data("tid", |connection| {
                connection.thread.map(|ix| analysis.thread(ix).tid.0)
            })
            .phrase_data("process", move |connection| {
                process(connection).map(|ix| label::phrase(analysis.process(ix)))
            })
            .data(
                "direction",
                |connection| if connection.accepted { "in" } else { "out" },
            )
            .data("local", |connection| {
                connection.local.map(|end| end.address.to_string())
            })
            .data("local_port", |connection| {
                connection.local.map(|end| end.port)
            })
            .data("remote", |connection| connection.remote.address.to_string())
            .data("remote_port", |connection| connection.remote.port)
            .data("peer_pid", move |connection| {
                let peer = connection
                    .peer
                    .and_then(|at| analysis.network.connections.get(at));
                pid(peer.and_then(|other| process_of(analysis, other)))
            })
            .data("begun_ns", move |connection| since(connection.begun))
            .data("established_ns", move |connection| {
                connection.established.map(since)
            })
            .data("closed_ns", move |connection| connection.closed.map(since))
            .data("connecting_ns", |connection| {
                connection.connecting(analysis.end)
            })
            .data("open_ns", |connection| connection.open(analysis.end))
            .data("ending", |connection| connection.ending.map(Ending::name))
            .data("sent_bytes", |connection| {
                connection.bytes.map(|(sent, _)| sent)
            })
            .data("received_bytes", |connection| {
                connection.bytes.map(|(_, received)| received)
            })
    }
}

/// Sorts remote hosts or processes by their network waits on the critical path, then by transferred bytes and by the
/// number of connections, the largest first.
fn by_weight<K: Ord>(sums: BTreeMap<K, NetworkSum>) -> Vec<(K, NetworkSum)> {
    let mut all: Vec<(K, NetworkSum)> = sums.into_iter().collect();
    all.sort_by_key(|(_, sum)| {
        let bytes = sum.sent_bytes.saturating_add(sum.received_bytes);
        Reverse((sum.path_wait, bytes, sum.connections))
    });
    all
}

fn process_of(analysis: &Analysis, connection: &Connection) -> Option<ProcessIx> {
    connection.thread.map(|ix| analysis.thread(ix).process)
}

fn name(analysis: &Analysis, process: Option<ProcessIx>) -> String {
    let named = |process: &Process| format!("{} (pid {})", label::label(process), process.pid.0);
    process.map_or("unknown".into(), |ix| named(analysis.process(ix)))
}

fn words(ending: Ending) -> &'static str {
    match ending {
        Ending::Closed => "Closed",
        Ending::Refused => "Refused",
        Ending::Reset => "Reset by the peer",
        Ending::TimedOut => "Timed out",
        Ending::Unreachable => "Unreachable",
        Ending::Aborted => "Reset by its process",
        Ending::Abandoned => "Given up",
        Ending::Failed => "Failed",
    }
}

impl Report for Network<'_> {
    fn page(&self, style: &Style) -> Page {
        let mut out = Page::new();
        out.painted(Paint::Bold, &self.head());
        if let Some(ns) = self.path_wait.filter(|ns| *ns > 0) {
            let text = self.path_words(ns);
            out.line(&text);
        }
        if self.chosen.is_empty() {
            self.lookups.add(&mut out);
            return out;
        }
        self.failures(&mut out, style);
        let analysis = self.view.analysis;
        let host = move |host: Host| match self.remotes.process(host) {
            Some(peer) => format!("{} {}", host.text(), label::label(analysis.process(peer))),
            None => self.remotes.text(host),
        };
        self.rows_text(&mut out, &self.hosts(host), &self.hosts);
        self.rows_text(&mut out, &self.by_process(), &self.processes);
        self.lookups.add(&mut out);
        out
    }

    fn json(&self) -> Option<Value> {
        let hosts = self.view.asked(&self.hosts);
        let processes = self.view.asked(&self.processes);
        Some(json!({
            "path_wait_ns": self.path_wait,
            "hosts": self.hosts(Host::text).rows(hosts),
            "processes": self.by_process().rows(processes),
            "connections": self.connections().rows(self.view.asked(&self.chosen).copied()),
            "lookups": self.lookups.json(),
        }))
    }

    fn sheet(&self) -> Sheet {
        let (connections, lookups) = (self.connections(), self.lookups.table());
        let mut sheet = Sheet::new([connections.keys(), lookups.keys()]);
        for connection in self.view.asked(&self.chosen) {
            sheet.add(&connections, connection);
        }
        for lookup in self.lookups.asked() {
            sheet.add(&lookups, &lookup);
        }
        sheet
    }
}
