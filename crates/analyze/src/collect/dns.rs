//! Collects DNS queries: which thread sent a query for which name, and how long the answer took.

use std::collections::{HashMap, VecDeque};

use tr_format::dns::{DnsAnswer, DnsQuery};
use tr_format::event::{Ktime, LifeKind, Tid};
use tr_format::network::Address;

use crate::ids::{TaskIx, ThreadIx};

/// A DNS query and the answer to it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Lookup<T = Option<ThreadIx>> {
    /// The thread that sent the DNS query.
    pub thread: T,
    pub asked: Ktime,
    /// The time at which the answer to the DNS query arrived; `None` if no answer arrived.
    pub answered: Option<Ktime>,
    pub query: Box<DnsQuery>,
    /// The result code of the DNS answer (RCODE), if it could be read.
    pub code: Option<u8>,
    pub addresses: Box<[Address]>,
}

/// The time in ns for which a resolver waits for an answer that does not come: the default timeout
/// of resolv.conf(5).
const UNANSWERED_TIME: u64 = 5_000_000_000;

impl<T> Lookup<T> {
    /// The end of the time in which the resolver waits for the answer to this DNS query.
    pub fn waited_until(&self) -> Ktime {
        let given_up = Ktime(self.asked.0.saturating_add(UNANSWERED_TIME));
        self.answered.unwrap_or(given_up)
    }

    /// The time from the DNS query to its answer or, if there is no answer, to `end`, in ns.
    pub fn length(&self, end: Ktime) -> u64 {
        self.answered.unwrap_or(end).since(self.asked)
    }

    /// Whether there was no answer to the DNS query, or the answer was an error.
    pub fn failed(&self) -> bool {
        self.answered.is_none() || self.code.is_some_and(|code| code != 0)
    }
}

/// The time in ns within which an equal query is the same packet: a packet that passes several devices (bridges,
/// tunnels) is recorded at each. A resolver waits longer before it sends the query again. A guess between the
/// microseconds of a bridge and the seconds of resolv.conf(5): a longer time would join two queries.
const SAME_PACKET: u64 = 100_000_000;

#[derive(Debug, Default)]
pub(crate) struct Lookups {
    all: Vec<Lookup<Option<TaskIx>>>,
    /// For each DNS server, local port and query id, the index of the last query that had these three, until an answer
    /// with them comes.
    last: HashMap<(Address, u16, u16), usize>,
    /// For each DNS server, the indices of queries to it in their order. Some of them may already be answered.
    of_server: HashMap<Address, VecDeque<usize>>,
    /// The number of DNS queries that exceeded the limit of the analysis and were left out.
    pub left_out: u64,
}

impl Lookups {
    /// The largest number of DNS queries that an analysis keeps. Each takes about 300 bytes.
    const MOST: usize = 1 << 19;

    /// Stores a DNS query, or joins an answer with its query. `task` finds a task by its tid.
    pub fn take(&mut self, time: Ktime, kind: &LifeKind, task: impl Fn(Tid) -> Option<TaskIx>) {
        match kind {
            LifeKind::DnsQuery(query) => self.query(time, query, task(query.tid)),
            LifeKind::DnsAnswer(answer) => self.answer(time, answer),
            _ => {}
        }
    }

    fn query(&mut self, time: Ktime, query: &DnsQuery, thread: Option<TaskIx>) {
        let key = (query.server, query.port, query.id);
        let before = self.last.get(&key).and_then(|at| self.all.get(*at));
        if before.is_some_and(|before| {
            before.answered.is_none()
                && time.since(before.asked) < SAME_PACKET
                && before.query.name == query.name
                && before.query.kind == query.kind
        }) {
            return;
        }
        if self.all.len() >= Lookups::MOST {
            self.left_out += 1;
            return;
        }
        let at = self.all.len();
        self.last.insert(key, at);
        self.of_server
            .entry(query.server)
            .or_default()
            .push_back(at);
        self.all.push(Lookup {
            thread,
            asked: time,
            answered: None,
            query: Box::new(query.clone()),
            code: None,
            addresses: Box::default(),
        });
    }

    fn answer(&mut self, time: Ktime, answer: &DnsAnswer) {
        let at = match (answer.port, answer.id) {
            (Some(port), Some(id)) => self.last.remove(&(answer.server, port, id)),
            _ => self.first_open(answer.server),
        };
        if let Some(lookup) = at.and_then(|at| self.all.get_mut(at)) {
            lookup.answered = Some(time);
            lookup.code = answer.code;
            lookup.addresses = answer.addresses.clone();
        }
    }

    /// Takes the first DNS query to a server that has no answer yet out of the server's list.
    fn first_open(&mut self, server: Address) -> Option<usize> {
        let queue = self.of_server.get_mut(&server)?;
        while let Some(at) = queue.pop_front() {
            if self
                .all
                .get(at)
                .is_some_and(|lookup| lookup.answered.is_none())
            {
                return Some(at);
            }
        }
        None
    }

    /// The DNS queries that overlap the span `start..end`, in the order of time.
    pub fn finish(
        self,
        (start, end): (Ktime, Ktime),
        thread: impl Fn(TaskIx) -> Option<ThreadIx>,
    ) -> Vec<Lookup> {
        let in_span = |lookup: &Lookup<Option<TaskIx>>| {
            lookup.asked < end && lookup.answered.is_none_or(|at| at >= start)
        };
        let all = self.all.into_iter().filter(in_span).map(|lookup| Lookup {
            thread: lookup.thread.and_then(&thread),
            asked: lookup.asked,
            answered: lookup.answered,
            query: lookup.query,
            code: lookup.code,
            addresses: lookup.addresses,
        });
        all.collect()
    }
}

#[cfg(test)]
mod tests {
    use tr_format::event::Tgid;

    use super::*;

    const SERVER: Address = Address::V4(std::net::Ipv4Addr::new(10, 0, 0, 2));

    fn ask(lookups: &mut Lookups, ms: u64, id: u16, name: &str) {
        let query = DnsQuery {
            tid: Tid(7),
            tgid: Tgid(7),
            server: SERVER,
            port: 4000,
            id,
            kind: 1,
            name: name.as_bytes().into(),
        };
        let kind = LifeKind::DnsQuery(Box::new(query));
        lookups.take(Ktime(ms * 1_000_000), &kind, |_| None);
    }

    fn answer(lookups: &mut Lookups, ms: u64, id: Option<u16>, code: u8) {
        let answer = DnsAnswer {
            server: SERVER,
            port: id.map(|_| 4000),
            id,
            code: id.map(|_| code),
            addresses: Box::default(),
        };
        let kind = LifeKind::DnsAnswer(Box::new(answer));
        lookups.take(Ktime(ms * 1_000_000), &kind, |_| None);
    }

    /// For each DNS query: the name that was looked up, the time until its answer in ms, and whether it failed.
    fn found(lookups: Lookups) -> Vec<(String, Option<u64>, bool)> {
        let all = lookups.finish((Ktime(0), Ktime(u64::MAX)), |_| None);
        let row = |lookup: &Lookup| {
            let name = String::from_utf8_lossy(&lookup.query.name).into_owned();
            let length = lookup.answered.map(|at| at.since(lookup.asked) / 1_000_000);
            (name, length, lookup.failed())
        };
        all.iter().map(row).collect()
    }

    #[test]
    fn answers_belong_to_the_query_of_their_port_and_id() {
        let mut lookups = Lookups::default();
        ask(&mut lookups, 0, 1, "a");
        ask(&mut lookups, 1, 2, "b");
        // A second network device records the packet of request 2 again.
        ask(&mut lookups, 2, 2, "b");
        answer(&mut lookups, 30, Some(2), 3);
        answer(&mut lookups, 31, Some(2), 3);
        answer(&mut lookups, 50, Some(1), 0);
        answer(&mut lookups, 60, Some(9), 0);
        // The resolver sends the query again after 5 s, which counts as a second lookup.
        ask(&mut lookups, 100, 3, "c");
        ask(&mut lookups, 5100, 3, "c");
        answer(&mut lookups, 5110, Some(3), 0);
        let expected = [
            ("a".to_owned(), Some(50), false),
            ("b".to_owned(), Some(29), true),
            ("c".to_owned(), None, true),
            ("c".to_owned(), Some(10), false),
        ];
        assert_eq!(found(lookups), expected);
    }

    #[test]
    fn an_answer_that_cannot_be_read_belongs_to_the_first_open_query() {
        let mut lookups = Lookups::default();
        ask(&mut lookups, 0, 1, "a");
        ask(&mut lookups, 0, 2, "b");
        ask(&mut lookups, 0, 3, "c");
        answer(&mut lookups, 10, Some(1), 0);
        answer(&mut lookups, 20, None, 0);
        answer(&mut lookups, 30, None, 0);
        answer(&mut lookups, 40, None, 0);
        let lengths: Vec<Option<u64>> = found(lookups).into_iter().map(|row| row.1).collect();
        assert_eq!(lengths, [Some(10), Some(20), Some(30)]);
    }
}
