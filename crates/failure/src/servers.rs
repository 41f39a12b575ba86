//! Finds servers that failed in the background, and the clients that failed because their server was gone.
//!
//! No event shows which port a program needed. Many command lines name ports, and a server and its client name the same
//! port.

use std::collections::BTreeSet;

use tr_analyze::model::{Process, ProcessIx};
use tr_format::event::Argv;

use super::finder::Finder;
use super::passes::program_start;
use super::passes::LONGEST_CHAIN;

/// The largest number of failed processes that are examined as possible servers of a failed client.
const SERVERS: usize = 1_000;

/// The largest number of ports and sockets in one command line that are used. A bound of the work.
const MOST_PORTS: usize = 20;

/// The numbers that count as ports of a server. Linux reserves ports below 1024 for root. A number that is a whole
/// argument, and no value of an option such as `--port`, counts only from `ALONE_PORT` on, because a smaller one may be
/// a year or a count; this limit is a guess.
const PORTS: std::ops::RangeInclusive<u32> = 1024..=65_535;
const ALONE_PORT: u32 = 3_000;

impl Finder<'_> {
    /// Finds a server that failed in the background, and a process in `chain` (a chain of failures) that needed the
    /// server. Returns the position of the process in the chain, and the server, which is in `failed`. If several
    /// processes of the chain needed a server, the uppermost one counts.
    pub(super) fn server(
        &self,
        chain: &[ProcessIx],
        failed: &BTreeSet<ProcessIx>,
    ) -> Option<(usize, ProcessIx)> {
        let counts = |ix: &&ProcessIx| {
            let stopped_from_above = self.sure.stop(**ix).is_some();
            !chain.contains(ix)
                && !stopped_from_above
                && self.sure.own.has(**ix)
                && !self.tests.is_asked.contains(ix)
                && self.is_in_background(**ix)
        };
        let servers = failed.iter().rev().take(SERVERS).filter(counts);
        let servers = servers.map(|ix| {
            let server = self.analysis.process(*ix);
            (*ix, server, addresses(&server.argv))
        });
        let servers: Vec<_> = servers.filter(|(.., ports)| !ports.is_empty()).collect();
        if servers.is_empty() {
            return None;
        }
        let mut places = chain.iter().enumerate().rev().take(LONGEST_CHAIN);
        places.find_map(|(at, ix)| {
            let client = self.analysis.process(*ix);
            let asked = addresses(&client.argv);
            let is_of = |server: &Process, ports: &[Vec<u8>]| {
                let is_later =
                    program_start(client) > program_start(server) && client.end >= server.end;
                is_later && ports.iter().any(|port| asked.contains(port))
            };
            let mut servers = servers.iter();
            let (server, ..) = servers.find(|(_, server, ports)| is_of(server, ports))?;
            Some((at, *server))
        })
    }

    /// Whether a process ran in the background of its parent: the parent started another process before the process in
    /// question had ended.
    pub(super) fn is_in_background(&self, ix: ProcessIx) -> bool {
        let process = self.analysis.process(ix);
        let siblings = process
            .parent
            .map_or(&[][..], |parent| &self.analysis.process(parent).children);
        let after =
            siblings.partition_point(|ix| self.analysis.process(*ix).start <= process.start);
        let next = siblings.get(after).map(|ix| self.analysis.process(*ix));
        next.is_some_and(|next| next.start < process.end)
    }
}

/// The ports and sockets that a command line names: `8080`, `--port=8080`, `http://h:8080/x`, `/run/x.sock`.
pub(super) fn addresses(argv: &Argv) -> Vec<Vec<u8>> {
    let mut found = Vec::new();
    let mut before: &[u8] = b"";
    for arg in argv.args().skip(1) {
        let is_named = before.starts_with(b"-") && before.ends_with(b"port") || before == b"-p";
        before = arg;
        if arg.len() > 1 && arg.ends_with(b".sock") {
            let path = arg.rsplit(|byte| b"=:".contains(byte)).next();
            found.extend(path.map(<[u8]>::to_vec));
            continue;
        }
        if let Some(port) = number(arg) {
            if is_named || port >= ALONE_PORT {
                found.push(port.to_string().into_bytes());
            }
            continue;
        }
        let parts = arg.split(|byte| b":=".contains(byte)).skip(1);
        let ports = parts.filter_map(|part| {
            let end = part.iter().position(|byte| b"/?,".contains(byte));
            number(part.get(..end.unwrap_or(part.len()))?)
        });
        found.extend(ports.map(|port| port.to_string().into_bytes()));
        if found.len() >= MOST_PORTS {
            break;
        }
    }
    found
}

/// The port number of which a text consists; `None` if the text is no port number.
fn number(text: &[u8]) -> Option<u32> {
    let text = std::str::from_utf8(text).ok()?;
    let digits = text.bytes().all(|byte| byte.is_ascii_digit());
    let port = text.parse().ok().filter(|_| digits)?;
    PORTS.contains(&port).then_some(port)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn named(line: &str) -> Vec<String> {
        let found = addresses(&Argv::from_args(line.split(' ')));
        let text = |address: Vec<u8>| String::from_utf8(address).unwrap_or_default();
        found.into_iter().map(text).collect()
    }

    #[test]
    fn a_command_line_names_ports_and_sockets() {
        for (line, address) in [
            ("python3 -m http.server 8080", "8080"),
            ("node app.js --port=3000", "3000"),
            ("redis-server --port 2100", "2100"),
            ("curl -sf http://localhost:8080/health", "8080"),
            ("wait-for-it db:5432 --timeout", "5432"),
            ("psql host=h port=5433", "5433"),
            ("dockerd -H unix:/run/d.sock", "/run/d.sock"),
            ("curl --unix-socket /run/d.sock http://h/x", "/run/d.sock"),
        ] {
            assert_eq!(named(line), [address], "{line}");
        }
    }

    #[test]
    fn other_numbers_are_no_ports() {
        for line in [
            "report.py 2025",
            "sleep 60",
            "seq 1 400000",
            "8080",
            "curl http://h/8080/x",
            "gcc -O2 -o a8080 a.c",
            "",
        ] {
            assert!(named(line).is_empty(), "{line}");
        }
    }
}
