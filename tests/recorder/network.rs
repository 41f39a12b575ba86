//! Compares recorded TCP connections and DNS lookups with what the client and the server know about them.

use std::io::{Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream, UdpSocket};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use libtest_mimic::Failed;

use crate::support::{
    analyze, dump, ensure, int, list, recording, report, scratch, text, tr, Test,
};

pub const TESTS: &[Test] = &[
    (
        "connections_have_the_bytes_ports_and_times_that_the_peer_saw",
        peers,
    ),
    ("both_ends_of_a_local_connection_find_each_other", local),
    ("refusals_and_resets_are_told_apart", failures),
    ("no_connection_is_recorded_of_others", others),
    (LOOKUPS, lookups),
];

/// The variable that makes this test program play the role of a recorded one.
pub const ROLE: &str = "TR_TEST_ROLE";

/// The name of a test that needs root, because its server uses the port of DNS.
pub const LOOKUPS: &str = "queries_have_the_names_and_times_that_the_server_saw";

/// The time that a server waits before it answers.
const DELAY: Duration = Duration::from_millis(150);
const ANSWER: usize = 300_000;

/// Does the work of a recorded program. Its role is a word, followed by addresses.
pub fn play(role: &str) {
    let mut words = role.split_whitespace();
    let word = words.next();
    let addresses = words.map(|word| word.parse().expect("an address"));
    let addresses: Vec<SocketAddr> = addresses.collect();
    match word {
        Some("client") => addresses.iter().for_each(|to| {
            ask(*to);
        }),
        Some("server") => serve_own(),
        Some("pair") => pair(),
        Some("failures") => fail(&addresses),
        Some("lookups") => addresses.iter().for_each(|to| look_up(*to)),
        other => panic!("no role {other:?}"),
    }
}

/// Sends as many bytes as the number of the port, and reads until the end of the answer.
fn ask(to: SocketAddr) -> SocketAddr {
    let mut stream = TcpStream::connect(to).expect("a connection");
    stream
        .write_all(&vec![b'q'; usize::from(to.port())])
        .expect("a question");
    stream.shutdown(Shutdown::Write).expect("a shutdown");
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer).expect("an answer");
    assert_eq!(answer.len(), ANSWER);
    stream.local_addr().expect("an address")
}

/// Answers one connection after [`DELAY`]. Returns the peer's address and the length of its question.
fn answer(listener: &TcpListener) -> (SocketAddr, usize) {
    let (mut stream, peer) = listener.accept().expect("a peer");
    let mut question = Vec::new();
    stream.read_to_end(&mut question).expect("a question");
    std::thread::sleep(DELAY);
    stream.write_all(&vec![b'a'; ANSWER]).expect("an answer");
    (peer, question.len())
}

/// Prints the port of its own listener on standard output, and answers one connection.
fn serve_own() {
    let listener = TcpListener::bind("[::1]:0").expect("a port");
    println!("{}", listener.local_addr().expect("an address").port());
    answer(&listener);
}

/// Starts a server, and asks it.
fn pair() {
    let mut server = Command::new(std::env::current_exe().expect("this program"))
        .env(ROLE, "server")
        .stdout(Stdio::piped())
        .spawn()
        .expect("a server");
    let mut out = std::io::BufReader::new(server.stdout.take().expect("its output"));
    let mut port = String::new();
    std::io::BufRead::read_line(&mut out, &mut port).expect("a port");
    ask(format!("[::1]:{}", port.trim())
        .parse()
        .expect("an address"));
    server.wait().expect("its end");
}

/// Connects to a port on which nobody listens, and then to a server that resets the connection.
fn fail(to: &[SocketAddr]) {
    let [nobody, resets] = to else {
        panic!("{to:?}")
    };
    assert!(TcpStream::connect(nobody).is_err());
    let mut stream = TcpStream::connect(resets).expect("a connection");
    stream.write_all(b"unread").expect("a question");
    assert!(stream.read_to_end(&mut Vec::new()).is_err());
}

/// Records this test program in a role. Returns how long that took.
fn recorded(trace: &Path, options: &[&str], role: &str) -> Result<Duration, Failed> {
    let this = std::env::current_exe()?;
    let this = this.to_string_lossy();
    let mut tr = recording(trace, options, &[&this]);
    let begun = Instant::now();
    let out = tr.env(ROLE, role).output()?;
    let took = begun.elapsed();
    ensure(out.status.success(), || text(&out.stderr))?;
    Ok(took)
}

fn peers() -> Result<(), Failed> {
    let trace = scratch("network.bin");
    let listeners = ["127.0.0.1:0", "[::1]:0", "127.0.0.1:0"]
        .into_iter()
        .map(TcpListener::bind)
        .collect::<Result<Vec<_>, _>>()?;
    let addresses = listeners.iter().map(TcpListener::local_addr);
    let addresses = addresses.collect::<Result<Vec<_>, _>>()?;
    let words: Vec<String> = addresses.iter().map(ToString::to_string).collect();
    let servers = std::thread::spawn(move || listeners.iter().map(answer).collect::<Vec<_>>());
    let took = recorded(&trace, &[], &format!("client {}", words.join(" ")))?;
    let seen = servers.join().map_err(|_| "a server has failed")?;
    let network = report(&trace, "network", &[])?;
    let found = list(&network, "connections");
    ensure(found.len() == 3, || network.to_string())?;
    for ((it, (peer, question)), address) in found.iter().zip(&seen).zip(&addresses) {
        let what = || format!("{it}\npeer {peer}, {question} bytes");
        ensure(it["direction"] == "out" && it["ending"] == "closed", what)?;
        ensure(it["remote"] == address.ip().to_string().as_str(), what)?;
        ensure(int(it, "remote_port") == u64::from(address.port()), what)?;
        ensure(it["local"] == peer.ip().to_string().as_str(), what)?;
        ensure(int(it, "local_port") == u64::from(peer.port()), what)?;
        ensure(int(it, "sent_bytes") == *question as u64, what)?;
        ensure(int(it, "received_bytes") == ANSWER as u64, what)?;
        let open = Duration::from_nanos(int(it, "open_ns"));
        let connecting = Duration::from_nanos(int(it, "connecting_ns"));
        // The connections follow each other, and each is open for at least the delay of its server.
        ensure(open >= DELAY && connecting + open + 2 * DELAY <= took, what)?;
        ensure(it["peer_pid"].is_null(), what)?;
    }
    // The client only waits for its answers. The client's wait begins a little later than the server's delay, and on a
    // busy machine only after the client has waited in a run queue.
    let queued = Duration::from_nanos(int(
        &list(&analyze(&trace)?, "processes")[0],
        "run_queue_ns",
    ));
    let least = DELAY * 9 / 10 - queued.min(DELAY / 2);
    let waited = Duration::from_nanos(int(&network, "path_wait_ns"));
    ensure(waited >= 3 * least && waited <= took, || {
        format!("{waited:?} of the path")
    })?;
    let hosts = list(&network, "hosts");
    // The server is a thread of this process, and has the name of the test. On a busy CPU a kernel thread may deliver
    // the server's answer. The host then has no server name.
    let thread = std::thread::current();
    let server = thread.name().and_then(|name| name.get(..15));
    let named = |host: &&serde_json::Value| host["server"].as_str() == server;
    let unnamed = hosts.iter().filter(|host| host["server"].is_null());
    let named = hosts.iter().filter(named).count();
    ensure(named > 0 && named + unnamed.count() == 3, || {
        network.to_string()
    })?;
    // The critical path names the same hosts, with the same times.
    let path = crate::common::document(&trace, &["--report", "critical-path"])?;
    let path = &path["critical_path"]["path"];
    for (address, word) in addresses.iter().zip(&words) {
        let mut shares = list(path, "shares").iter();
        let share = shares.find(|share| share["remote"] == word.as_str());
        let mut of_host = hosts.iter();
        let host = of_host.find(|connection| connection["port"] == address.port());
        let same = share.zip(host).is_some_and(|(share, host)| {
            share["what"] == "network"
                && share["by"] == host["server"]
                && share["time_ns"] == host["path_wait_ns"]
        });
        ensure(same, || format!("{address} {hosts:?}: {}", path["shares"]))?;
    }
    let each = hosts.iter().map(|host| int(host, "path_wait_ns"));
    let each: Vec<u64> = each.collect();
    ensure(
        each.len() == 3 && each.iter().all(|ns| u128::from(*ns) >= least.as_nanos()),
        || format!("{each:?}"),
    )
}

fn local() -> Result<(), Failed> {
    let trace = scratch("pair.bin");
    recorded(&trace, &[], "pair")?;
    let network = report(&trace, "network", &[])?;
    let found = list(&network, "connections");
    let [out, into] = found else {
        return Err(network.to_string().into());
    };
    let all = || network.to_string();
    ensure(out["direction"] == "out" && into["direction"] == "in", all)?;
    ensure(out["pid"] != into["pid"], all)?;
    ensure(out["peer_pid"] == into["pid"] && !out["pid"].is_null(), all)?;
    ensure(into["peer_pid"] == out["pid"], all)?;
    for (one, other) in [(out, into), (into, out)] {
        ensure(one["local_port"] == other["remote_port"], all)?;
        ensure(one["sent_bytes"] == other["received_bytes"], all)?;
    }
    ensure(int(into, "sent_bytes") == ANSWER as u64, all)?;
    // The process of the server is a child of the client.
    let events = dump(&trace)?;
    let mut forks = events.iter().filter(|event| event["kind"] == "fork");
    ensure(
        forks.any(|fork| fork["tgid"] == into["pid"] && fork["parent_tgid"] == out["pid"]),
        all,
    )
}

fn failures() -> Result<(), Failed> {
    let trace = scratch("failures.bin");
    let resets = TcpListener::bind("127.0.0.1:0")?;
    // The port was free a moment ago, so nobody listens on it.
    let nobody = TcpListener::bind("127.0.0.1:0")?.local_addr()?;
    let to = format!("failures {nobody} {}", resets.local_addr()?);
    let server = std::thread::spawn(move || {
        let (mut stream, _) = resets.accept().expect("a peer");
        // After one byte was read, the other bytes have arrived as well. Closing with unread bytes resets the
        // connection.
        stream.read_exact(&mut [0]).expect("a byte");
    });
    recorded(&trace, &[], &to)?;
    server.join().map_err(|_| "the server has failed")?;
    let network = report(&trace, "network", &[])?;
    let found = list(&network, "connections");
    let endings: Vec<_> = found.iter().map(|value| &value["ending"]).collect();
    ensure(endings == ["refused", "reset"], || network.to_string())?;
    ensure(found[0]["established_ns"].is_null(), || network.to_string())?;
    ensure(int(&found[1], "sent_bytes") == 6, || network.to_string())?;
    let said = tr(&["analyze", "--report", "network"], &trace)?;
    let said = text(&said);
    ensure(
        said.contains("2 failed") && said.contains(&format!("127.0.0.1:{}", nobody.port())),
        || said.clone(),
    )
}

/// Connections of this test process, while `sleep` is recorded, must not be in the recording.
fn others() -> Result<(), Failed> {
    let trace = scratch("others.bin");
    let listener = TcpListener::bind("127.0.0.1:0")?;
    let to = listener.local_addr()?;
    let mut tr = recording(&trace, &[], &["sleep", "0.5"]).spawn()?;
    while tr.try_wait()?.is_none() {
        let one = TcpStream::connect(to)?;
        drop((listener.accept()?, one));
        std::thread::sleep(Duration::from_millis(5));
    }
    let events = dump(&trace)?;
    let any = events.iter().find(|event| !event["connection"].is_null());
    ensure(any.is_none(), || format!("{any:?}"))
}

/// A DNS query of type A for `LABEL.example`.
fn question(id: u8, label: &str) -> Vec<u8> {
    let mut message = vec![7, id, 1, 0, 0, 1, 0, 0, 0, 0, 0, 0, label.len() as u8];
    message.extend_from_slice(label.as_bytes());
    message.extend_from_slice(b"\x07example\0\0\x01\0\x01");
    message
}

/// Sends queries for three names at once, and then a query for a name that is not answered. Then it connects to the
/// address of the first name.
fn look_up(server: SocketAddr) {
    let any = if server.is_ipv4() {
        "0.0.0.0:0"
    } else {
        "[::]:0"
    };
    let socket = UdpSocket::bind(any).expect("a port");
    for (id, label) in ["slow", "nowhere", "fast"].iter().enumerate() {
        let sent = socket.send_to(&question(id as u8, label), server);
        sent.expect("a query");
    }
    for _ in 0..3 {
        socket.recv(&mut [0; 512]).expect("an answer");
    }
    let sent = socket.send_to(&question(9, "silent"), server);
    sent.expect("a query");
    socket.set_read_timeout(Some(DELAY)).expect("a limit");
    assert!(socket.recv(&mut [0; 512]).is_err());
    let _ = TcpStream::connect("127.9.8.7:9");
}

/// Answers three queries. The query for "slow" is answered last and after [`DELAY`]. The answer for "nowhere" is "no
/// such name"; the other two names have the address 127.9.8.7. Returns for each name the time from its query's arrival
/// to its answer.
fn resolve(socket: &UdpSocket) -> std::io::Result<Vec<(String, Duration)>> {
    let mut queries = Vec::new();
    for _ in 0..3 {
        let mut message = vec![0; 512];
        let (length, from) = socket.recv_from(&mut message)?;
        message.truncate(length);
        queries.push((message, from, Instant::now()));
    }
    let mut times = Vec::new();
    queries.sort_by_key(|(message, ..)| message[13] == b's');
    for (mut message, from, arrived) in queries {
        let label =
            String::from_utf8_lossy(&message[13..13 + usize::from(message[12])]).into_owned();
        std::thread::sleep(if label == "slow" { DELAY } else { DELAY / 5 });
        message[2] |= 0x80;
        if label == "nowhere" {
            message[3] = 3;
        } else {
            message[7] = 1;
            message.extend_from_slice(&[0xc0, 12, 0, 1, 0, 1, 0, 0, 0, 60, 0, 4, 127, 9, 8, 7]);
        }
        // The time is taken before the answer is sent, because this thread may be descheduled afterwards.
        times.push((label, arrived.elapsed()));
        socket.send_to(&message, from)?;
    }
    Ok(times)
}

fn lookups() -> Result<(), Failed> {
    for server in ["127.9.8.53:53", "[::1]:53"] {
        let trace = scratch("lookups.bin");
        let socket = UdpSocket::bind(server)?;
        let resolver = std::thread::spawn(move || resolve(&socket));
        let whole = recorded(&trace, &[], &format!("lookups {server}"))?;
        let seen = resolver.join().map_err(|_| "the server has failed")??;
        let network = report(&trace, "network", &[])?;
        let found = list(&network, "lookups");
        let what = || format!("{network}\nseen: {seen:?}");
        ensure(found.len() == 4, what)?;
        let mut last = 0;
        for (label, time) in &seen {
            let name = format!("{label}.example");
            let it = found.iter().find(|value| value["name"] == name.as_str());
            let it = it.ok_or_else(what)?;
            let answered = int(it, "answered_ns");
            let took = answered.saturating_sub(int(it, "asked_ns"));
            let took = Duration::from_nanos(took);
            // The client sends a query before the server gets it, so the recorded duration is at least the server's.
            // `seen` has the queries in the order of their answers.
            ensure(took >= *time && took <= whole && answered > last, what)?;
            last = answered;
            let code = if label == "nowhere" {
                "NXDOMAIN"
            } else {
                "NOERROR"
            };
            ensure(it["answer"] == code && it["type"] == "A", what)?;
            ensure(!it["pid"].is_null(), what)?;
        }
        let silent = found.iter().find(|value| value["name"] == "silent.example");
        let silent = silent.ok_or_else(what)?;
        ensure(silent["answered_ns"].is_null(), what)?;
        // Two names have this address, so the report may name the host by either of them.
        let hosts = list(&network, "hosts");
        let host = hosts.iter().find(|host| host["address"] == "127.9.8.7");
        let names = ["slow.example", "fast.example"];
        let named = host.and_then(|host| host["name"].as_str());
        ensure(named.is_some_and(|name| names.contains(&name)), what)?;
        // With `--mask-addresses` the recording has neither names nor addresses.
        let socket = UdpSocket::bind(server)?;
        let resolver = std::thread::spawn(move || resolve(&socket));
        recorded(&trace, &["--mask-addresses"], &format!("lookups {server}"))?;
        resolver.join().map_err(|_| "the server has failed")??;
        let masked = report(&trace, "network", &[])?.to_string();
        ensure(
            !masked.contains("example") && masked.contains("name-4"),
            || masked.clone(),
        )?;
    }
    Ok(())
}
