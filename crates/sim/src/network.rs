//! Adds TCP connections and DNS queries to a simulated recording, and returns the truth about them.

use std::collections::HashMap;

use tr_format::dns::{DnsAnswer, DnsQuery};
use tr_format::event::{CpuId, Ktime, LifeEvent, LifeKind, Stream, Tgid, Tid};
use tr_format::network::{
    Accepted, Address, Closed, Connect, Connected, ConnectionId, Ending, Endpoint,
};

use crate::draw::Draw;
use crate::program::Span;
use crate::recording::{Recording, Written};
use crate::sink::Sink;

/// The truth about a simulated TCP connection, with which the analysis is compared.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Truth {
    /// The simulated process that had the TCP connection.
    pub tgid: Tgid,
    /// Whether the remote peer opened the simulated TCP connection, so that the process accepted
    /// it.
    pub accepted: bool,
    /// The time at which the process called connect(2) or, for an accepted TCP connection, the time
    /// at which it was established.
    pub begun: Ktime,
    /// The time at which the simulated TCP connection was established; `None` if it never was.
    pub established: Option<Ktime>,
    /// The time at which the simulated TCP connection was closed; `None` if it stayed open.
    pub closed: Option<Ktime>,
    /// The numbers of bytes that the process sent and received on the simulated TCP connection; `None` if the
    /// connection stayed open.
    pub bytes: Option<(u64, u64)>,
    /// The remote end of the simulated TCP connection.
    pub remote: Endpoint,
}

/// Adds up to `most` TCP connections to a simulated recording, for processes whose fork and exit the recording shows.
/// If a test also injects events that are written late, it must do so after this call. Returns the truth about the
/// connections, ordered by time.
pub fn connect(recording: &mut Recording, most: usize, seed: u64) -> Vec<Truth> {
    let mut draw = Draw::new(seed ^ 0x6e65_7477_6f72_6b00);
    let lives = lives(recording);
    let mut all = Vec::new();
    for number in 0..most as u64 {
        let Some(life) = lives.get(draw.below(lives.len() as u32) as usize) else {
            break;
        };
        all.push(one(recording, *life, number, &mut draw));
    }
    recording
        .life
        .sort_by_key(|written| (written.at, written.seq));
    all.sort_by_key(|truth| truth.begun);
    all
}

/// The truth about a DNS query that was added to a simulated recording.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Question {
    /// The simulated process that sent the DNS query.
    pub tgid: Tgid,
    /// The time at which the simulated DNS query was sent.
    pub asked: Ktime,
    /// The time at which the answer to the simulated DNS query arrived; `None` if there was none.
    pub answered: Option<Ktime>,
    /// The host name in the simulated DNS query.
    pub name: Vec<u8>,
    /// The response code of the answer to the simulated DNS query; `None` if there was no answer or it cannot be
    /// decoded.
    pub code: Option<u8>,
}

/// Adds up to `most` DNS queries, but at most 200, to a simulated recording, for processes whose fork and exit the
/// recording shows. Some of the answers cannot be decoded. If a test also injects events that are written late, it
/// must do so after this call. Returns the truth about the queries.
pub fn ask(recording: &mut Recording, most: usize, seed: u64) -> Vec<Question> {
    let mut draw = Draw::new(seed ^ 0x0064_6e73);
    let lives = lives(recording);
    let mut all = Vec::new();
    for number in 0..most.min(200) as u8 {
        let Some(life) = lives.get(draw.below(lives.len() as u32) as usize) else {
            break;
        };
        all.push(question(recording, *life, number, &mut draw));
    }
    recording
        .life
        .sort_by_key(|written| (written.at, written.seq));
    all
}

/// Adds the events of one DNS query of a task to a simulated recording. Returns the truth about the
/// query.
fn question(
    recording: &mut Recording,
    (tid, tgid, since, until): Life,
    number: u8,
    draw: &mut Draw,
) -> Question {
    let length = until.since(since) / 3;
    let asked = since.0 + draw.length(Span { lo: 1, hi: length });
    let arrived = asked + draw.length(Span { lo: 1, hi: length });
    let (asked, arrived) = (Ktime(asked), Ktime(arrived));
    let (answered, readable) = (!draw.chance(100), !draw.chance(200));
    // All queries go to one server, except those with an unreadable answer. Such an answer is matched to its query only
    // by the server's address, so each of these queries gets a server of its own.
    let host = if readable { 0 } else { number + 1 };
    let server = Address::V4([10, 1, 0, host].into());
    let (port, id) = (40_000 + u16::from(number), u16::from(number));
    let name = format!("{}.example", number % 9).into_bytes();
    let code = (draw.bits() % 4) as u8;
    let mut put = |time: Ktime, kind| {
        let cpu = Some(CpuId(draw.below(recording.cpus.len() as u32) as u16));
        recording.life(Stream::Lifecycle, LifeEvent { time, cpu, kind });
    };
    let query = DnsQuery {
        tid,
        tgid,
        server,
        port,
        id,
        kind: 1,
        name: name.as_slice().into(),
    };
    put(asked, LifeKind::DnsQuery(Box::new(query)));
    if answered {
        let answer = DnsAnswer {
            server,
            port: readable.then_some(port),
            id: readable.then_some(id),
            code: readable.then_some(code),
            addresses: Box::default(),
        };
        put(arrived, LifeKind::DnsAnswer(Box::new(answer)));
    }
    Question {
        tgid,
        asked,
        answered: answered.then_some(arrived),
        name,
        code: (answered && readable).then_some(code),
    }
}

/// The life of a process's leader in a simulated recording: its tid, its process, and the times of
/// its fork and its exit.
type Life = (Tid, Tgid, Ktime, Ktime);

/// The leaders of those processes that a simulated recording shows from their fork to their exit.
fn lives(recording: &Recording) -> Vec<Life> {
    let mut forks = HashMap::new();
    let mut lives = Vec::new();
    for written in &recording.life {
        match &written.event.kind {
            // A process begins with the fork, and ends with the exit, of the task whose tid is the process's id. If
            // another thread took over this tid in an exec, that thread exits in place of the forked one.
            LifeKind::Fork(fork) if fork.tid.0 == fork.tgid.0 => {
                forks.insert(fork.tid, written.event.time);
            }
            LifeKind::Exit(exit) if exit.tid.0 == exit.tgid.0 => {
                let since = forks.remove(&exit.tid);
                lives.extend(since.map(|since| (exit.tid, exit.tgid, since, written.event.time)));
            }
            _ => {}
        }
    }
    let inside = |(.., since, _): &Life| *since >= recording.meta.start;
    lives.retain(|life| inside(life) && life.3.since(life.2) > 16);
    lives
}

/// Adds the events of one TCP connection of a task to a simulated recording. Returns the truth
/// about the connection.
fn one(
    recording: &mut Recording,
    (tid, tgid, since, until): Life,
    number: u64,
    draw: &mut Draw,
) -> Truth {
    // The connection is begun, established and closed at three different times between the fork and the exit of the
    // process.
    let length = until.since(since) / 4;
    let mut at = since.0;
    let mut later = || {
        at += draw.length(Span { lo: 1, hi: length });
        Ktime(at)
    };
    let (begun, established, closed) = (later(), later(), later());
    let (accepted, answered) = (draw.chance(400), !draw.chance(200));
    let open = !draw.chance(900);
    let id = ConnectionId(number + 1);
    let end = |port: u64| Endpoint {
        address: Address::V4([10, 0, 0, draw_byte(number)].into()),
        port: port as u16,
    };
    let (local, remote) = (end(40_000 + number), end(443));
    let bytes = (draw.bits() >> 40, draw.bits() >> 40);
    let established = if accepted { begun } else { established };
    let answered = accepted || answered;
    let mut put = |time: Ktime, kind| {
        let cpu = Some(CpuId(draw.below(recording.cpus.len() as u32) as u16));
        recording.life(Stream::Lifecycle, LifeEvent { time, cpu, kind });
    };
    let task = (tid, tgid);
    if accepted {
        let listener = None;
        #[rustfmt::skip]
        put(begun, LifeKind::Accepted(Accepted { id, listener, local, remote }));
    } else {
        #[rustfmt::skip]
        put(begun, LifeKind::Connect(Connect { id, tid, tgid, remote }));
        if answered {
            put(established, LifeKind::Connected(Connected { id, local }));
        }
    }
    // An accepted connection is always closed by its process here, because only the event of closing shows which
    // process had the connection.
    let closes = accepted || !open;
    if closes {
        let closing = Closed {
            id,
            by: Some(task),
            ending: if answered {
                Ending::Closed
            } else {
                Ending::Refused
            },
            sent: bytes.0,
            received: bytes.1,
        };
        put(closed, LifeKind::Closed(closing));
    }
    Truth {
        tgid,
        accepted,
        begun,
        established: answered.then_some(established),
        closed: closes.then_some(closed),
        bytes: closes.then_some(bytes),
        remote,
    }
}

fn draw_byte(number: u64) -> u8 {
    (number % 7) as u8
}

/// Whether the events of TCP connections, or the DNS messages, stand in the ring in another order than that of their
/// time stamps. Tests in which some events are written late use this function.
pub fn is_late(ring: &[Written<LifeEvent>]) -> bool {
    let connections = ring.iter().filter(|written| {
        matches!(
            written.event.kind,
            LifeKind::Connect(_)
                | LifeKind::Accepted(_)
                | LifeKind::Closed(_)
                | LifeKind::DnsQuery(_)
                | LifeKind::DnsAnswer(_)
        )
    });
    let mut last = Ktime(0);
    connections.into_iter().any(|written| {
        let back = written.event.time < last;
        last = written.event.time;
        back
    })
}
