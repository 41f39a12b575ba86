//! The part of the report on the network that has DNS queries by name.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

use serde_json::{json, Value};
use tr_analyze::dns::Lookup;
use tr_analyze::model::ProcessIx;
use tr_format::meta::Extra;

use super::not_known;
use tr_insight::processes::{label, who};
use tr_insight::views::view::View;
use tr_text::page::Page;
use tr_text::style::Paint;
use tr_text::table::{Cell, Table};
use tr_text::units;

pub struct Lookups<'a> {
    view: View<'a>,
    /// The DNS queries (lookups) of the chosen processes; `None` if DNS queries were not recorded.
    chosen: Option<Vec<&'a Lookup>>,
}

/// All DNS queries of the chosen processes for one name, summed up.
#[derive(Clone, Debug, Default)]
struct Name {
    name: String,
    queries: u64,
    unanswered: u64,
    errors: u64,
    /// The sum of the times in nanoseconds from each DNS query to its answer. Queries without an answer are left out.
    sum: u64,
    longest: u64,
    processes: BTreeSet<ProcessIx>,
}

impl<'a> Lookups<'a> {
    /// The report on the DNS queries of those processes for which `is_chosen` returns true. With `all`, queries of
    /// unknown processes are included.
    pub fn new(view: &View<'a>, all: bool, is_chosen: impl Fn(ProcessIx) -> bool) -> Lookups<'a> {
        let analysis = view.analysis;
        let mine = |lookup: &&Lookup| process(view, lookup).map_or(all, &is_chosen);
        let known = analysis.meta.has(Extra::Dns);
        Lookups {
            view: *view,
            chosen: known.then(|| analysis.network.lookups.iter().filter(mine).collect()),
        }
    }

    /// The queried DNS names, each with the sums over its queries. The name with the longest sum of times comes first.
    fn by_name(&self) -> Vec<Name> {
        let end = self.view.analysis.end;
        let mut names: BTreeMap<&[u8], Name> = BTreeMap::new();
        for lookup in self.chosen.iter().flatten() {
            let row = names.entry(&lookup.query.name).or_insert_with(|| Name {
                name: who::asked_name(lookup),
                ..Name::default()
            });
            let length = lookup.answered.map_or(0, |_| lookup.length(end));
            row.queries += 1;
            row.unanswered += u64::from(lookup.answered.is_none());
            row.errors += u64::from(lookup.code.is_some_and(|code| code != 0));
            row.sum = row.sum.saturating_add(length);
            row.longest = row.longest.max(length);
            row.processes.extend(process(&self.view, lookup));
        }
        let mut rows: Vec<Name> = names.into_values().collect();
        rows.sort_by_key(|row| Reverse((row.sum, row.queries)));
        rows
    }

    pub fn add(&self, out: &mut Page) {
        let analysis = self.view.analysis;
        let Some(chosen) = &self.chosen else {
            let why = not_known::why(&analysis.meta, Extra::Dns);
            why.iter().for_each(|why| out.line(why));
            return;
        };
        if chosen.is_empty() {
            return;
        }
        let rows = self.by_name();
        let head = format!(
            "{} for {}",
            units::plural(chosen.len() as u64, "DNS query", "DNS queries"),
            units::plural(rows.len() as u64, "name", "names"),
        );
        out.blank();
        out.painted(Paint::Bold, &head);
        let any = |of: fn(&Name) -> u64| rows.iter().any(|row| of(row) > 0);
        let by = |row: &&Name| match row.processes.first() {
            Some(ix) if row.processes.len() == 1 => label::label(analysis.process(*ix)).into(),
            Some(_) => Cell::Text(format!("{} processes", row.processes.len())),
            None => Cell::Empty,
        };
        let table = Table::new("name", |row: &&Name| row.name.clone())
            .column("queries", |row| Cell::Count(row.queries))
            .column("errors", |row| Cell::Count(row.errors))
            .few()
            .shown(any(|row| row.errors))
            .column("unanswered", |row| Cell::Count(row.unanswered))
            .few()
            .shown(any(|row| row.unanswered))
            .column("until answer", |row| Cell::Time(row.sum))
            .few()
            .column("longest", |row| Cell::Time(row.longest))
            .few()
            .words("process", by);
        out.table(&table, rows.iter().take(self.view.ask.rows()));
        out.more(rows.len(), self.view.ask.rows(), " names");
    }

    /// The DNS queries as a JSON list; null if DNS queries were not recorded.
    pub fn json(&self) -> Value {
        let rows = self
            .chosen
            .as_ref()
            .map(|_| self.table().rows(self.asked()));
        json!(rows)
    }

    /// The DNS queries that CSV and JSON list, as many as `--top` says.
    pub fn asked(&self) -> impl Iterator<Item = &Lookup> {
        self.chosen
            .iter()
            .flatten()
            .copied()
            .take(self.view.ask.most())
    }

    /// The table of DNS queries with the columns of JSON and CSV. In CSV, these columns stand beside those of TCP
    /// connections.
    pub fn table(&self) -> Table<'_, &Lookup> {
        let analysis = self.view.analysis;
        let process = |lookup: &&Lookup| process(&self.view, lookup).map(|ix| analysis.process(ix));
        Table::new("", |lookup: &&Lookup| who::asked_name(lookup))
            .data("pid", move |lookup| {
                process(lookup).map(|process| process.pid.0)
            })
            .phrase_data("process", move |lookup| process(lookup).map(label::phrase))
            .csv_data("direction", |_| "dns")
            .data("server", |lookup| lookup.query.server.to_string())
            .csv_key("remote")
            .csv_data("remote_port", |_| 53)
            .data("asked_ns", |lookup| self.view.since(lookup.asked))
            .csv_key("begun_ns")
            .data("answered_ns", |lookup| {
                lookup.answered.map(|at| self.view.since(at))
            })
            .csv_key("closed_ns")
            .data("answer", |lookup| answer(lookup))
            .csv_key("ending")
            .named("name")
            .data("type", |lookup| kind(lookup.query.kind))
            .json_data("addresses", |lookup| {
                let addresses = lookup.addresses.iter().map(ToString::to_string);
                addresses.collect::<Vec<_>>()
            })
    }
}

fn process(view: &View<'_>, lookup: &Lookup) -> Option<ProcessIx> {
    lookup.thread.map(|ix| view.analysis.thread(ix).process)
}

/// The name of the type of a DNS query, such as `AAAA`, in IANA's registry.
fn kind(number: u16) -> String {
    let name = match number {
        1 => "A",
        2 => "NS",
        5 => "CNAME",
        6 => "SOA",
        12 => "PTR",
        15 => "MX",
        16 => "TXT",
        28 => "AAAA",
        33 => "SRV",
        64 => "SVCB",
        65 => "HTTPS",
        _ => return format!("TYPE{number}"),
    };
    name.to_owned()
}

/// The result of a DNS query as a word; `None` if there is no answer, or if the recorder could not read the answer.
fn answer(lookup: &Lookup) -> Option<String> {
    lookup.answered?;
    let name = match lookup.code? {
        0 => "NOERROR",
        1 => "FORMERR",
        2 => "SERVFAIL",
        3 => "NXDOMAIN",
        4 => "NOTIMP",
        5 => "REFUSED",
        code => return Some(format!("RCODE{code}")),
    };
    Some(name.to_owned())
}
