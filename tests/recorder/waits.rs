//! Tests that naps, polls and waits for the network are distinguished by the event that ended the wait. The results are
//! in the advice on the first screen, and in the kinds of time on the critical path.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener};
use std::process::Command;
use std::time::Duration;

use libtest_mimic::Failed;
use serde_json::Value;

use crate::support::{ensure, int, list, record, report, scratch, text, Test};

pub const TESTS: &[Test] = &[
    ("naps_beside_an_open_connection_are_naps", naps),
    ("time_outs_before_an_answer_are_waits_for_it", asked),
    ("a_child_in_the_background_silences_no_nap", background),
    ("a_loop_that_a_child_ends_is_a_poll", poll),
    ("the_ticks_of_an_idle_server_are_no_naps", idle),
];

/// The time after which the server answers.
const DELAY: Duration = Duration::from_millis(900);

/// A server that serves one client after the other, and answers each byte after [`DELAY`].
fn server() -> Result<SocketAddr, Failed> {
    let listener = TcpListener::bind("127.0.0.1:0")?;
    let address = listener.local_addr()?;
    std::thread::spawn(move || {
        for client in listener.incoming() {
            let mut client = client?;
            let mut byte = [0];
            while client.read(&mut byte)? > 0 {
                std::thread::sleep(DELAY);
                client.write_all(&byte)?;
            }
        }
        std::io::Result::Ok(())
    });
    Ok(address)
}

/// Records the command up to four times, until less than 100 ms of its critical path are unknown. The kernel of some
/// virtual machines does not report a few wakings. A nap whose waking is missing counts as unknown time, which other
/// tests check.
fn recorded(name: &str, command: &[&str]) -> Result<(Vec<(String, u64)>, Value), Failed> {
    let mut last = recorded_once(name, command)?;
    for _ in 0..3 {
        if of_kind(&last.1, "unknown") < 100 {
            break;
        }
        last = recorded_once(name, command)?;
    }
    Ok(last)
}

/// The kinds of advice, with the largest gain of each in ms, and the critical path.
fn recorded_once(name: &str, command: &[&str]) -> Result<(Vec<(String, u64)>, Value), Failed> {
    let trace = scratch(name);
    let out = record(&trace, &["-q"], command)?;
    ensure(trace.exists(), || text(&out.stderr))?;
    let advice = report(&trace, "advice", &[])?;
    let advice = list(&advice, "advice").iter().map(|line| {
        let kind = line["kind"].as_str().unwrap_or_default().to_owned();
        (kind, int(line, "gain_at_most_ns") / 1_000_000)
    });
    let advice = advice.collect();
    let options = ["--report", "critical-path"];
    let path = crate::common::document(&trace, &options)?;
    Ok((advice, path["critical_path"]["path"].clone()))
}

/// The time of this kind on the critical path, in ms.
fn of_kind(path: &Value, kind: &str) -> u64 {
    let steps = list(path, "steps").iter();
    let times = steps.map(|step| int(step, &format!("{kind}_ns")));
    times.sum::<u64>() / 1_000_000
}

fn python(address: SocketAddr, code: &str) -> String {
    format!(
        "import select, socket, time\ns = socket.create_connection(('127.0.0.1', {}))\n{code}\n",
        address.port()
    )
}

/// A program naps three times for 300 ms by a system call with a time-out. In one program, the call waits for no
/// descriptor. In the other program, the call also waits for a connection.
fn naps() -> Result<(), Failed> {
    for (name, code) in [
        (
            "select.bin",
            "for i in range(3): select.select([], [], [], 0.3)",
        ),
        (
            "epoll.bin",
            "p = select.epoll()\np.register(s, 1)\nfor i in range(3): p.poll(0.3)",
        ),
    ] {
        let code = python(server()?, code);
        let (advice, path) = recorded(name, &["python3", "-c", &code])?;
        let sleep = of_kind(&path, "sleep");
        let is_nap = |(kind, gain): &(String, u64)| kind == "sleep" && (800..1_500).contains(gain);
        let right = advice.first().is_some_and(is_nap) && (880..1_500).contains(&sleep);
        ensure(right && of_kind(&path, "network") < 50, || {
            format!("{name}: {advice:?}, {sleep} ms: {path}")
        })?;
    }
    Ok(())
}

fn asked() -> Result<(), Failed> {
    let code = "s.send(b'?')\nwhile not select.select([s], [], [], 0.2)[0]: pass\ns.recv(1)\n\
                select.select([s], [], [], 0.25)";
    let code = python(server()?, code);
    let (advice, path) = recorded("asked.bin", &["python3", "-c", &code])?;
    let (network, sleep) = (of_kind(&path, "network"), of_kind(&path, "sleep"));
    let right = (600..1_500).contains(&network) && (240..400).contains(&sleep);
    ensure(right, || {
        format!("network {network} ms, sleep {sleep} ms, {advice:?}: {path}")
    })
}

fn background() -> Result<(), Failed> {
    for (name, child) in [("sleep.bin", "sleep 30"), ("tail.bin", "tail -f log")] {
        let code = format!(
            "cd {}; :>log; {child} >/dev/null & for i in 1 2 3 4; do echo $i >>log; sleep 0.3; done; kill $!",
            scratch("").display()
        );
        let (advice, path) = recorded(name, &["sh", "-c", &code])?;
        let is_nap = |(kind, gain): &(String, u64)| kind == "sleep" && *gain > 1_100;
        ensure(advice.first().is_some_and(is_nap), || {
            format!("{name}: {advice:?}: {path}")
        })?;
    }
    Ok(())
}

fn poll() -> Result<(), Failed> {
    let code = "(sleep 0.9; true) & while kill -0 $! 2>/dev/null; do sleep 0.2; done";
    let (advice, path) = recorded("poll.bin", &["bash", "-c", code])?;
    let is_poll = |(kind, gain): &(String, u64)| kind == "poll" && *gain < 300;
    ensure(advice.iter().all(is_poll) && !advice.is_empty(), || {
        format!("{advice:?}: {path}")
    })
}

/// A server waits for clients in a loop with a time-out until it is stopped. Its waits are no naps, so there is no
/// advice.
fn idle() -> Result<(), Failed> {
    let code = "import select, socket\ns = socket.create_server(('127.0.0.1', 0))\n\
                while True: select.select([s], [], [], 0.2)";
    let timeout = Command::new("timeout").arg("--version").output();
    ensure(timeout.is_ok_and(|out| out.status.success()), || {
        "no timeout(1)".into()
    })?;
    let (advice, path) = recorded("idle.bin", &["timeout", "1.1", "python3", "-c", code])?;
    let (sleep, unknown) = (of_kind(&path, "sleep"), of_kind(&path, "unknown"));
    let network = of_kind(&path, "network");
    ensure(advice.is_empty() && network < 50 && unknown > 300, || {
        format!("{advice:?}, sleep {sleep} ms, network {network} ms, unknown {unknown} ms: {path}")
    })
}
