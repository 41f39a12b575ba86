//! Finds waits for the network on a build's critical path, and servers that did not answer.

use std::collections::{BTreeMap, BTreeSet};

use tr_analyze::contention::join;
use tr_analyze::critical_path::{Segment, TimeKind};
use tr_analyze::dns::Lookup;
use tr_analyze::ending::WaitEnd;
use tr_analyze::model::{Analysis, ProcessIx, ThreadIx};
use tr_analyze::network::{self, Connection, Waited};
use tr_analyze::programs::Group;
use tr_analyze::timeline::Actor;
use tr_analyze::what_if::Without;
use tr_format::event::{Ktime, Reason};
use tr_format::network::Address;
use tr_programs::program_name::ProgramName;

use crate::candidate::{largest, AdviceKind, Candidate, Certainty};
use crate::facts::{add, BuildFacts};
use tr_insight::processes::label;
use tr_insight::resources::network::{Host, Remotes};
use tr_text::phrase::Phrase;
use tr_text::units;

/// A bound of the work: at most this many DNS queries before a wait are searched for one without an answer. Likewise,
/// at most this many connections are searched.
const QUERIES: usize = 1000;

/// A wait for the network on the critical path of a build.
struct Fetch<'f> {
    group: Group,
    program: &'f ProgramName,
    ns: u64,
    /// The server that did not answer, if a time-out ended the wait for the network.
    silent: Option<Silent>,
}

/// A server that did not answer until a time-out ended the wait for this answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Silent {
    NameServer(Address),
    Host(Host),
    Unknown,
}

/// The waits for the network on the critical path, the latest first. A wait that a timer ended counts as unanswered if
/// a DNS query of its process had no answer, or if no later wait of the thread on the path got an answer, because a
/// program may call poll(2) repeatedly for one answer.
fn fetched<'f>(facts: &'f BuildFacts<'_>, waited: &[Waited]) -> Vec<Fetch<'f>> {
    let analysis = facts.analysis;
    let among_themselves = network::among_themselves(analysis);
    let timeline = analysis.timeline.as_ref();
    let mut unanswered: BTreeMap<ProcessIx, Vec<&Lookup>> = BTreeMap::new();
    for lookup in analysis
        .network
        .lookups
        .iter()
        .filter(|lookup| lookup.answered.is_none())
    {
        if let Some(thread) = lookup.thread {
            let process = analysis.thread(thread).process;
            unanswered.entry(process).or_default().push(lookup);
        }
    }
    let segments: Vec<_> = facts.segments().collect();
    let mut answered = answered_between_ticks(facts, &segments);
    let segments = segments.iter().rev();
    let segments = segments.filter(|(segment, ..)| segment.kind == TimeKind::Network);
    let fetch = |((segment, group, _), waited): (&(&Segment, Option<Group>, Reason), &Waited)| {
        let wait = timeline?.around(segment.thread, segment.from)?;
        let late = wait.waker().is_timer();
        let query = || {
            let queries = unanswered.get(&waited.process)?;
            let asked = queries.partition_point(|lookup| lookup.asked <= wait.to);
            let mut last = queries.get(..asked)?.iter().rev().take(QUERIES);
            last.find(|lookup| lookup.waited_until() >= wait.from)
        };
        let query = query().filter(|_| waited.connection.is_none());
        let silent = match query {
            _ if !late => None,
            Some(query) => Some(Silent::NameServer(query.query.server)),
            None if answered.contains(&segment.thread) => None,
            None => Some(Host::waited(analysis, waited).map_or(Silent::Unknown, Silent::Host)),
        };
        if !late {
            answered.insert(segment.thread);
        }
        let execution = facts.execution((*group)?)?;
        // Connections between programs of the build, or to a server on this machine, do not count: nothing is fetched
        // from the network.
        let own = among_themselves.contains(&execution.process);
        let near = silent.is_none() && waited.local;
        // If the program's own time-out ended the wait, an answer is certainly missing. Then the wait counts even if
        // the server belongs to the build or runs on this machine.
        let unanswered = silent.is_some() && wait.waker() == Actor::Timeout { asked: true };
        let counts = unanswered || !own && !near;
        if !counts || has_connection_to_itself(analysis, waited.process, segment.from) {
            return None;
        }
        Some(Fetch {
            group: (*group)?,
            program: &execution.program,
            ns: segment.length(),
            silent,
        })
    };
    segments
        .zip(waited.iter().rev())
        .filter_map(fetch)
        .collect()
}

/// If a timer ends at least this many waits of one thread, these ends count as ticks of a periodic timer and not as
/// time-outs of requests. A guess: a program whose requests get no answer gives up sooner.
const TICKS: usize = 10;

/// The threads whose waits for the network a timer ended again and again, and that received more than half as many
/// answers in between. Such a timer sets the rate of a load generator, for example, and is no time-out of a request.
fn answered_between_ticks(
    facts: &BuildFacts<'_>,
    segments: &[(&Segment, Option<Group>, Reason)],
) -> BTreeSet<ThreadIx> {
    let analysis = facts.analysis;
    let Some(timeline) = &analysis.timeline else {
        return BTreeSet::new();
    };
    let mut ticks: BTreeMap<ThreadIx, (usize, Ktime)> = BTreeMap::new();
    for (segment, ..) in segments {
        let is_tick = || {
            let wait = timeline.around(segment.thread, segment.from);
            wait.is_some_and(|wait| wait.waker().is_timer())
        };
        if segment.kind == TimeKind::Network && is_tick() {
            let (count, _) = ticks.entry(segment.thread).or_insert((0, segment.to));
            *count += 1;
        }
    }
    let ticking = ticks.into_iter().filter(|(_, (count, _))| *count >= TICKS);
    let is_answered = |(thread, (count, first)): &(ThreadIx, (usize, Ktime))| {
        let own = analysis.thread(*thread).process;
        let waits = timeline.since(*thread, *first).take(QUERIES * TICKS);
        let answers = waits.filter(|wait| match analysis.wait_end(*thread, wait) {
            WaitEnd::Packet => true,
            WaitEnd::Task(Actor::Thread(by)) => analysis.thread(by).process != own,
            _ => false,
        });
        answers.count() * 2 > *count
    };
    ticking
        .filter(is_answered)
        .map(|(thread, _)| thread)
        .collect()
}

/// The program whose timer set the rate of its requests ([`answered_between_ticks`]) for the longest time on the
/// critical path, and the sum in nanoseconds of the waits for the network on the path in all threads with such timers.
pub(super) fn ticking(facts: &BuildFacts<'_>) -> Option<(Group, u64)> {
    let segments: Vec<_> = facts.segments().collect();
    let ticking = answered_between_ticks(facts, &segments);
    let mut by_group: BTreeMap<Group, u64> = BTreeMap::new();
    for (segment, group, _) in segments {
        let is_tick = segment.kind == TimeKind::Network && ticking.contains(&segment.thread);
        if let Some(group) = group.filter(|_| is_tick) {
            add(&mut by_group, group, segment.length());
        }
    }
    let (sum, longest) = facts.longest(&by_group)?;
    Some((longest, sum))
}

/// Whether a process has a connection to itself at the time `at`. If so, the event loop of the process wakes itself
/// through this connection, perhaps after a timer, and does not wait for the network.
fn has_connection_to_itself(analysis: &Analysis, process: ProcessIx, at: Ktime) -> bool {
    let connections = &analysis.network.connections;
    let is_of_process = |thread: Option<ThreadIx>| {
        thread.is_some_and(|thread| analysis.thread(thread).process == process)
    };
    let begun = connections.partition_point(|connection| connection.begun <= at);
    let last = connections.get(..begun).unwrap_or_default().iter().rev();
    let mut open = last
        .take(QUERIES)
        .filter(|connection| connection.closed.is_none_or(|closed| closed >= at));
    open.any(|connection| {
        let peer = connection.peer.and_then(|peer| connections.get(peer));
        is_of_process(connection.thread) && peer.is_some_and(|peer| is_of_process(peer.thread))
    })
}

/// The shortest and the longest wait in ns on a connection inside this machine that count as waits for a delayed
/// acknowledgement. Linux delays an acknowledgement by 40 to 200 ms (TCP_DELACK_MIN and TCP_DELACK_MAX of
/// include/net/tcp.h), give or take a tick of 10 ms.
const DELAYED_ACK: (u64, u64) = (30_000_000, 210_000_000);
/// The least number of waits for delayed acknowledgements that get advice. A guess: fewer such waits may be chance.
const DELAYS: usize = 5;

/// Advice on data that TCP holds back in the sender until the receiver acknowledges the earlier data (Nagle's
/// algorithm, RFC 896), while the receiver delays the acknowledgement. The proof is a wait on a connection inside this
/// machine that a timer of the kernel ended: without the delay, the sender itself would have ended the wait.
fn held_back(facts: &BuildFacts<'_>, waited: &[Waited]) -> Option<Candidate> {
    let analysis = facts.analysis;
    let timeline = analysis.timeline.as_ref()?;
    let segments = facts.segments();
    let waits = segments.filter(|(segment, ..)| segment.kind == TimeKind::Network);
    let (mut groups, mut senders) = (BTreeSet::new(), BTreeSet::new());
    let (mut count, mut sum) = (0usize, 0u64);
    for ((segment, group, _), waited) in waits.zip(waited) {
        let wait = timeline.around(segment.thread, segment.from);
        let is_delay = wait.is_some_and(|wait| {
            wait.waker() == Actor::SoftIrq
                && (DELAYED_ACK.0..=DELAYED_ACK.1).contains(&wait.to.since(wait.from))
        });
        let (Some(group), true) = (group, is_delay && waited.local) else {
            continue;
        };
        let connections = &analysis.network.connections;
        let connection = waited.connection.and_then(|at| connections.get(at));
        let peer = connection.and_then(|connection| connections.get(connection.peer?));
        senders.extend(peer.and_then(|peer| peer.thread));
        groups.insert(group);
        count += 1;
        sum = sum.saturating_add(segment.length());
    }
    if count < DELAYS {
        return None;
    }
    let (name, s) = facts.names(*groups.first()?, groups.iter().copied());
    let sender = senders.first().map_or("the other end".into(), |thread| {
        label::phrase(analysis.process(analysis.thread(*thread).process))
    });
    Some(Candidate {
        finding: Phrase::with([&name, &sender], |[name, sender]| {
            format!(
                "{name} wait{s} {}, {} times, for data of {sender}, which TCP holds back until a delayed acknowledgement",
                units::time(sum),
                units::count(count as u64)
            )
        }),
        action: "send each message in one write, or set TCP_NODELAY".into(),
        without: Without::own(
            |kind, _| kind == TimeKind::Network,
            Some(facts.set(groups.iter().copied())),
        ),
        cap: sum,
        evidence: groups.into_iter().collect(),
        ..Candidate::of(AdviceKind::Network)
    })
}

/// The shortest time in ns from connect(2) to the establishment of a connection inside this machine that shows that the
/// first request got no answer: TCP sends the request again after 1 s (RFC 6298; TCP_TIMEOUT_INIT of
/// include/net/tcp.h), and the kernel answers the first one at once.
const ASKED_AGAIN: u64 = 900_000_000;

/// Advice on connections inside this machine whose first request was dropped, for example because the server's queue of
/// connections was full. The waits on the critical path while such a connection was not established count, be it the
/// client or the server that waits there.
fn asked_again(facts: &BuildFacts<'_>) -> Option<Candidate> {
    let analysis = facts.analysis;
    let connections = &analysis.network.connections;
    let late = connections.iter().filter(|connection| {
        let time = connection
            .established
            .and(connection.connecting(analysis.end));
        network::is_local(connection) && time.is_some_and(|ns| ns >= ASKED_AGAIN)
    });
    let late: Vec<&Connection> = late.collect();
    let spans = late
        .iter()
        .filter_map(|connection| Some((connection.begun, connection.established?)));
    let mut spans: Vec<(Ktime, Ktime)> = spans.collect();
    if spans.is_empty() {
        return None;
    }
    join(&mut spans);
    let (mut groups, mut sum) = (BTreeSet::new(), 0u64);
    let segments = facts.segments();
    for (segment, group, _) in segments.filter(|(segment, ..)| segment.kind == TimeKind::Network) {
        let first = spans.partition_point(|(_, to)| *to <= segment.from);
        let during = spans.iter().skip(first);
        let during = during.take_while(|(from, _)| *from < segment.to);
        let during = during.map(|(from, to)| segment.to.min(*to).since(segment.from.max(*from)));
        let during = during.fold(0, u64::saturating_add);
        if let Some(group) = group.filter(|_| during > 0) {
            groups.insert(group);
            sum = sum.saturating_add(during);
        }
    }
    let clients = late.iter().filter_map(|connection| {
        let client = analysis.thread(connection.thread?).process;
        facts.groups.at(client, connection.begun)
    });
    let clients: BTreeSet<Group> = clients.collect();
    let (name, s) = facts.names(*clients.first()?, clients.iter().copied());
    let servers = late.iter().filter_map(|connection| {
        let peer = connections.get(connection.peer?)?;
        Some((
            analysis.thread(peer.thread?).process,
            connection.established?,
        ))
    });
    let servers: BTreeSet<(ProcessIx, Ktime)> = servers.collect();
    let server = servers
        .first()
        .map_or("this machine".into(), |(server, _)| {
            label::phrase(analysis.process(*server))
        });
    // While the client waits, its server waits for it, too, so both waits have to go.
    let servers = servers
        .iter()
        .filter_map(|(server, at)| facts.groups.at(*server, *at));
    let ends = clients
        .iter()
        .copied()
        .chain(servers)
        .chain(groups.iter().copied());
    Some(Candidate {
        finding: Phrase::with([&name, &server], |[name, server]| {
            let count = units::plural(late.len() as u64, "connection", "connections");
            let them = if late.len() == 1 { "it" } else { "them" };
            let time = units::time(sum);
            format!("{name} wait{s} {time} for {count} to {server}, until TCP asks for {them} again after 1 s")
        }),
        action: "find out why the first request is dropped, such as a full queue (the backlog of listen)".into(),
        without: Without::own(
            |kind, _| kind == TimeKind::Network,
            Some(facts.set(ends)),
        ),
        cap: sum,
        certainty: Certainty::Unsure,
        evidence: groups.into_iter().collect(),
        ..Candidate::of(AdviceKind::Network)
    })
}

pub(super) fn candidates(facts: &BuildFacts<'_>) -> Vec<Candidate> {
    let waited = network::waited(facts.analysis, facts.path);
    let mut by_program: BTreeMap<&ProgramName, Vec<Fetch<'_>>> = BTreeMap::new();
    for fetch in fetched(facts, &waited) {
        by_program.entry(fetch.program).or_default().push(fetch);
    }
    let candidate = |(program, fetches): (&ProgramName, Vec<Fetch<'_>>)| {
        let sum = |silent: bool| -> u64 {
            let counts = fetches
                .iter()
                .filter(|fetch| fetch.silent.is_some() || !silent);
            counts.map(|fetch| fetch.ns).fold(0, u64::saturating_add)
        };
        let unsure = sum(true).saturating_mul(2) > sum(false);
        let cap = sum(unsure);
        let reported = fetches
            .iter()
            .filter(|fetch| fetch.silent.is_some() || !unsure);
        let groups: BTreeSet<Group> = reported.map(|fetch| fetch.group).collect();
        let (name, s) = facts.names(*groups.first()?, groups.iter().copied());
        let time = units::time(cap);
        let (finding, action, certainty) = if unsure {
            let who: BTreeSet<Silent> = fetches.iter().filter_map(|fetch| fetch.silent).collect();
            let silence = Silence::of(facts.analysis, &who, &waited);
            let certainty = if silence.may_be_meant {
                Certainty::UnlessMeant
            } else {
                Certainty::Unsure
            };
            (
                Phrase::with([&name, &silence.who], |[name, who]| {
                    format!("{name} wait{s} {time} without an answer from {who}")
                }),
                silence.action,
                certainty,
            )
        } else {
            (
                Phrase::with([&name], |[name]| {
                    format!("{name} wait{s} {time} for the network")
                }),
                "keep in a cache what it fetches",
                Certainty::Sure,
            )
        };
        // Executions of the same program that are not on the critical path wait as well, so the change applies to all
        // executions of the program.
        let all = facts
            .all()
            .filter(|(_, execution)| execution.program == *program);
        Some(Candidate {
            finding,
            action: action.into(),
            without: Without::own(
                |kind, _| kind == TimeKind::Network,
                Some(facts.set(all.map(|(group, _)| group))),
            ),
            cap,
            certainty,
            evidence: groups.into_iter().collect(),
            ..Candidate::of(AdviceKind::Network)
        })
    };
    let all = largest(by_program, |(_, fetches)| {
        let times = fetches.iter().map(|fetch| fetch.ns);
        times.fold(0, u64::saturating_add)
    });
    let fetches = all.into_iter().filter_map(candidate);
    let fetches = fetches.chain(held_back(facts, &waited));
    fetches.chain(asked_again(facts)).collect()
}

/// The words about servers that did not answer.
struct Silence {
    who: Phrase,
    action: &'static str,
    /// Whether the servers may be silent on purpose: a recorded process is the server, as in a test of a time-out.
    may_be_meant: bool,
}

impl Silence {
    fn of(analysis: &Analysis, servers: &BTreeSet<Silent>, waited: &[Waited]) -> Silence {
        const IT: &str = "find out why it does not answer";
        let silence = |who: Phrase, action| Silence {
            who,
            action,
            may_be_meant: false,
        };
        let are_name_servers = servers
            .iter()
            .all(|silent| matches!(silent, Silent::NameServer(_)));
        match servers.first() {
            Some(Silent::NameServer(server)) if servers.len() == 1 => {
                silence(format!("the name server {server}").into(), IT)
            }
            Some(Silent::Host(host)) if servers.len() == 1 => {
                let remotes = Remotes::new(analysis, waited);
                let Some(process) = remotes.process(*host) else {
                    return silence(remotes.text(*host).into(), IT);
                };
                let process = label::phrase(analysis.process(process));
                let who = Phrase::with([&process], |[process]| {
                    format!("{} ({process})", host.text())
                });
                Silence {
                    who,
                    action: "find out why it does not answer, unless its silence is meant",
                    may_be_meant: true,
                }
            }
            _ if are_name_servers => silence(
                "name servers".into(),
                "find out why those of resolv.conf do not answer",
            ),
            _ => silence(
                "the network".into(),
                "find out why the other ends do not answer",
            ),
        }
    }
}
