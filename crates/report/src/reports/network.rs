//! TCP connections: by remote end, by process, and those that failed.

use std::cmp::Reverse;
use std::collections::{BTreeMap, HashMap, HashSet};
use std::fmt::Write;

use serde_json::{json, Value};
use tr_analyze::model::{Analysis, Process, ProcessIx};
use tr_analyze::network::{self, Connection, Waited};
use tr_format::network::{Address, Ending, Endpoint};

use super::lookups::Lookups;
use crate::facts::network::NetworkSum;
use crate::facts::path;
use crate::sort::Rows;
use crate::style::{Paint, Style};
use crate::table::{csv, Cell, Table};
use crate::view::{Report, View};
use crate::{label, units};

/// The number of failed connections in text without `--top`.
const FAILED: usize = 5;

pub struct Network<'a> {
    view: View<'a>,
    /// The connections of the chosen processes.
    chosen: Vec<&'a Connection>,
    hosts: Vec<(Host, NetworkSum)>,
    processes: Vec<(Option<ProcessIx>, NetworkSum)>,
    /// The time of the critical path in which a chosen process waited for the network; `None`
    /// without a path.
    path_wait: Option<u64>,
    lookups: Lookups<'a>,
}

/// A function of a row's key.
type Of<'a, R, T> = Box<dyn Fn(R) -> T + 'a>;

/// The other end of connections.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
enum Host {
    /// Processes connected to this address and port.
    To(Address, u16),
    /// This address connected to this port of the recorded machine.
    From(Address, u16),
}

impl Host {
    fn of(connection: &Connection) -> Host {
        let remote = connection.remote;
        match connection.local.filter(|_| connection.accepted) {
            Some(local) => Host::From(remote.address, local.port),
            None => Host::To(remote.address, remote.port),
        }
    }

    fn address(self) -> Address {
        match self {
            Host::To(address, _) | Host::From(address, _) => address,
        }
    }

    fn port(self) -> u16 {
        match self {
            Host::To(_, port) | Host::From(_, port) => port,
        }
    }

    fn direction(self) -> &'static str {
        match self {
            Host::To(..) => "out",
            Host::From(..) => "in",
        }
    }

    fn text(self) -> String {
        match self {
            Host::To(address, port) => Endpoint { address, port }.to_string(),
            Host::From(address, port) => format!("from {address} to port {port}"),
        }
    }
}

/// The figures in JSON.
impl NetworkSum {
    fn json(&self, path: bool) -> Value {
        json!({
            "connections": self.connections,
            "failed": self.failed,
            "connecting_ns": self.connecting,
            "open_ns": self.open,
            "sent_bytes": self.sent(),
            "received_bytes": self.received(),
            "path_wait_ns": path.then_some(self.path_wait),
        })
    }
}

impl<'a> Network<'a> {
    /// The connections of the chosen processes.
    pub fn new(view: &View<'a>) -> Network<'a> {
        let analysis = view.analysis;
        let chosen_processes: HashSet<usize> = view.chosen.iter().copied().collect();
        let all = chosen_processes.len() == analysis.processes.len();
        let is_chosen = |ix: ProcessIx| chosen_processes.contains(&(ix.0 as usize));
        let connections = analysis.connections.iter();
        let chosen = connections
            .filter(|it| process_of(analysis, it).map_or(all, is_chosen))
            .collect::<Vec<_>>();
        let mut hosts: BTreeMap<Host, NetworkSum> = BTreeMap::new();
        let mut processes: BTreeMap<Option<ProcessIx>, NetworkSum> = BTreeMap::new();
        for it in &chosen {
            let process = process_of(analysis, it);
            hosts.entry(Host::of(it)).or_default().add(analysis, it);
            processes.entry(process).or_default().add(analysis, it);
        }
        let path = path::path_of(view).ok();
        let waited = path.map(|path| network::waited(analysis, &path));
        let mine = waited.map(|all| {
            let mine = all.into_iter().filter(|it| is_chosen(it.process));
            mine.collect::<Vec<Waited>>()
        });
        for waited in mine.iter().flatten() {
            let sum = processes.get_mut(&Some(waited.process));
            let at = waited
                .connection
                .and_then(|at| analysis.connections.get(at));
            let host = at.and_then(|it| hosts.get_mut(&Host::of(it)));
            for sum in sum.into_iter().chain(host) {
                sum.path_wait = sum.path_wait.saturating_add(waited.ns);
            }
        }
        let sum = |all: Vec<Waited>| all.iter().fold(0, |sum: u64, it| sum.saturating_add(it.ns));
        Network {
            view: *view,
            hosts: by_weight(hosts),
            processes: by_weight(processes),
            chosen,
            path_wait: mine.map(sum),
            lookups: Lookups::new(view, all, is_chosen),
        }
    }

    fn head(&self) -> String {
        let failed = self.chosen.iter().filter(|it| it.failed()).count();
        let mut head = units::plural(
            self.chosen.len() as u64,
            "TCP connection",
            "TCP connections",
        );
        if failed > 0 {
            let _ = write!(head, ", {} failed", units::count(failed as u64));
        }
        let sum = NetworkSum::of(self.view.analysis, self.chosen.iter().copied());
        let least = if sum.untold > 0 { "at least " } else { "" };
        let (received, sent) = (
            units::bytes(sum.received_bytes),
            units::bytes(sum.sent_bytes),
        );
        let _ = match sum.untold {
            all if all > 0 && all == sum.connections => {
                write!(head, " · bytes not known before they are closed")
            }
            _ => write!(head, " · {least}{received} received, {sent} sent"),
        };
        head
    }

    fn table<R: Copy + 'a>(
        &self,
        title: &str,
        rows: &[(R, NetworkSum)],
        name: impl Fn(R) -> String + 'a,
        pid: Option<Of<'a, R, Cell>>,
        style: &Style,
    ) -> String {
        let any = |of: fn(&NetworkSum) -> u64| rows.iter().any(|(_, sum)| of(sum) > 0);
        let with_pid = pid.is_some();
        let table: Table<'_, (R, NetworkSum)> =
            Table::new(title, move |row: &(R, NetworkSum)| name(row.0))
                .column("conns", |row| Cell::Count(row.1.connections))
                .column_if(any(|it| it.failed), "failed", |row| {
                    Cell::few(row.1.failed, Cell::Count)
                })
                .column_if(any(|it| it.connecting), "connecting", |row| {
                    Cell::few(row.1.connecting, Cell::Time)
                })
                .column("open", |row| Cell::few(row.1.open, Cell::Time))
                .column("received", |row| {
                    Cell::bytes(row.1.received_bytes, row.1.untold == 0)
                })
                .column("sent", |row| {
                    Cell::bytes(row.1.sent_bytes, row.1.untold == 0)
                })
                .column_if(any(|it| it.path_wait), "on path", |row| {
                    Cell::few(row.1.path_wait, Cell::Time)
                })
                .column_if(with_pid, "pid", move |row| {
                    pid.as_ref().map_or(Cell::Empty, |pid| pid(row.0))
                });
        let shown = rows.iter().take(self.view.ask.top).copied();
        let mut out = table.text(shown, style, 0);
        style.more(&mut out, rows.len(), self.view.ask.top, "");
        out
    }

    /// The wait of the critical path, with its hosts and the process that waited longest.
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

    fn failures(&self, out: &mut String, style: &Style) {
        let mut failed: BTreeMap<(Ending, Option<ProcessIx>, Host), u64> = BTreeMap::new();
        for it in self.chosen.iter().filter(|it| it.failed()) {
            let process = process_of(self.view.analysis, it);
            let ending = it.ending.unwrap_or_default();
            *failed.entry((ending, process, Host::of(it))).or_default() += 1;
        }
        let most = self.view.ask.limit.unwrap_or(FAILED);
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
            let lead = style.paint(Paint::Bad, words);
            let _ = writeln!(out, "{lead}{text}");
        }
        style.more(out, failed.len(), most, " that failed");
    }

    fn connection(&self, it: &Connection) -> Value {
        let analysis = self.view.analysis;
        let thread = it.thread.map(|ix| analysis.thread(ix));
        let process = process_of(analysis, it).map(|ix| analysis.process(ix));
        let peer = it.peer.and_then(|at| analysis.connections.get(at));
        let peer = peer.and_then(|it| process_of(analysis, it));
        json!({
            "pid": process.map(|process| process.pid.0),
            "tid": thread.map(|thread| thread.tid.0),
            "process": process.map(label::label),
            "direction": if it.accepted { "in" } else { "out" },
            "local": it.local.map(|end| end.address.to_string()),
            "local_port": it.local.map(|end| end.port),
            "remote": it.remote.address.to_string(),
            "remote_port": it.remote.port,
            "peer_pid": peer.map(|ix| analysis.process(ix).pid.0),
            "begun_ns": self.view.since(it.begun),
            "established_ns": it.established.map(|at| self.view.since(at)),
            "closed_ns": it.closed.map(|at| self.view.since(at)),
            "connecting_ns": it.connecting(analysis.end),
            "open_ns": it.open(analysis.end),
            "ending": it.ending.map(Ending::name),
            "sent_bytes": it.bytes.map(|(sent, _)| sent),
            "received_bytes": it.bytes.map(|(_, received)| received),
        })
    }

    fn connections(&self) -> impl Iterator<Item = Value> + '_ {
        let most = self.view.ask.most();
        let shown = self.chosen.iter().take(most);
        shown.map(|it| self.connection(it))
    }
}

/// In the order of the waits on the path, then of the bytes.
fn by_weight<K: Ord>(sums: BTreeMap<K, NetworkSum>) -> Vec<(K, NetworkSum)> {
    let mut all: Vec<(K, NetworkSum)> = sums.into_iter().collect();
    all.order_by_key(|(_, sum)| {
        let bytes = sum.sent_bytes.saturating_add(sum.received_bytes);
        Reverse((sum.path_wait, bytes, sum.connections))
    });
    all
}

fn process_of(analysis: &Analysis, it: &Connection) -> Option<ProcessIx> {
    it.thread.map(|ix| analysis.thread(ix).process)
}

fn name(analysis: &Analysis, process: Option<ProcessIx>) -> String {
    let named = |it: &Process| format!("{} (pid {})", label::label(it), it.pid.0);
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
    fn text(&self, style: &Style) -> String {
        let mut out = String::new();
        style.painted(&mut out, Paint::Bold, &self.head());
        if let Some(ns) = self.path_wait.filter(|ns| *ns > 0) {
            let text = self.path_words(ns);
            style.line(&mut out, &text);
        }
        if self.chosen.is_empty() {
            self.lookups.text(&mut out, style);
            return out;
        }
        self.failures(&mut out, style);
        // The processes of the machine itself at the other ends.
        let analysis = self.view.analysis;
        let mut peers: HashMap<Host, Option<ProcessIx>> = HashMap::new();
        for it in &self.chosen {
            let peer = it.peer.and_then(|at| analysis.connections.get(at));
            if let Some(peer) = peer.and_then(|it| process_of(analysis, it)) {
                let known = peers.entry(Host::of(it)).or_insert(Some(peer));
                *known = known.filter(|known| *known == peer);
            }
        }
        let names = self.lookups.names();
        let host = move |host: Host| match (peers.get(&host), names.get(&host.address())) {
            (Some(Some(peer)), _) => {
                format!("{} {}", host.text(), label::label(analysis.process(*peer)))
            }
            (_, Some(name)) => format!("{} {name}", host.text()),
            _ => host.text(),
        };
        out.push('\n');
        out.push_str(&self.table("remote host", &self.hosts, host, None, style));
        out.push('\n');
        let label = move |ix: Option<ProcessIx>| {
            ix.map_or("unknown".into(), |ix| label::label(analysis.process(ix)))
        };
        let pid =
            move |ix: Option<ProcessIx>| Cell::known(ix, |ix| Cell::Id(analysis.process(ix).pid.0));
        let table = self.table(
            "process",
            &self.processes,
            label,
            Some(Box::new(pid)),
            style,
        );
        out.push_str(&table);
        self.lookups.text(&mut out, style);
        out
    }

    fn json(&self) -> Option<Value> {
        let path = self.path_wait.is_some();
        let most = self.view.ask.most();
        let names = self.lookups.names();
        let hosts = self.hosts.iter().take(most).map(|(host, sum)| {
            let object = json!({
                "direction": host.direction(),
                "address": host.address().to_string(),
                "port": host.port(),
                "name": names.get(&host.address()),
            });
            crate::encode::with(object, sum.json(path))
        });
        let processes = self.processes.iter().take(most).map(|(ix, sum)| {
            let process = ix.map(|ix| self.view.analysis.process(ix));
            let object = json!({
                "pid": process.map(|process| process.pid.0),
                "process": process.map(label::label),
            });
            crate::encode::with(object, sum.json(path))
        });
        Some(json!({
            "path_wait_ns": self.path_wait,
            "hosts": hosts.collect::<Vec<_>>(),
            "processes": processes.collect::<Vec<_>>(),
            "connections": self.connections().collect::<Vec<_>>(),
            "lookups": self.lookups.json(),
        }))
    }

    fn csv(&self) -> Result<Vec<u8>, csv::Error> {
        csv(
            self.connections().chain(self.lookups.rows()),
            "pid tid process direction local local_port remote remote_port peer_pid begun_ns \
             established_ns closed_ns connecting_ns open_ns ending sent_bytes received_bytes \
             name type",
        )
    }
}
