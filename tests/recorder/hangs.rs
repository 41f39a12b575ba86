//! Tests `--timeout` and `--stall`: the message names what hangs, and the recording ends.

use std::io::Write;
use std::net::TcpListener;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use libtest_mimic::Failed;

use crate::support::{ensure, recording, scratch, text, tr, Test};

pub const TESTS: &[Test] = &[
    ("a_hang_on_a_lock_leads_to_its_holder", lock),
    ("a_hang_on_a_pipe_leads_to_its_writer", pipe),
    ("a_look_for_the_reader_of_the_output_is_no_wait", follow),
    ("a_hang_on_a_server_leads_to_its_address", server),
    ("a_hang_on_an_own_server_leads_into_it", own_server),
    ("a_hang_on_a_local_socket_leads_to_its_server", local_server),
    ("a_hang_on_a_fifo_names_it", fifo),
    ("a_hang_on_a_shared_lock_is_named", shared_lock),
    ("a_hang_on_a_terminal_is_named", terminal),
    ("who_passes_input_on_waits_for_its_child", relay),
    ("a_loop_that_a_thread_has_to_wake_waits_for_it", own_loop),
    ("a_child_that_ignores_term_is_killed", ignored_term),
    ("a_ticker_does_not_hide_a_hang", ticker),
    ("bytes_from_a_slow_server_are_no_stall", slow_server),
    ("a_limit_that_is_not_met_changes_nothing", unchanged),
    ("a_hang_has_the_stack_that_was_recorded", stacks),
    ("a_cut_recording_ends_at_the_writer_of_a_pipe", cut),
    ("an_idle_server_in_a_program_delays_nothing", idle_server),
];

/// The longest time that COMMAND may take in these tests on a busy machine.
const LONG: Duration = Duration::from_secs(60);

/// Runs a recording that must end at a limit, and returns its messages.
fn ended(mut tr: Command) -> Result<String, Failed> {
    let start = Instant::now();
    let out = tr.output()?;
    let said = text(&out.stderr);
    ensure(out.status.code() == Some(124), || {
        format!("{:?}: {said}", out.status)
    })?;
    ensure(start.elapsed() < LONG, || format!("late: {said}"))?;
    let lines = said.lines().count();
    ensure(lines <= 30, || format!("{lines} lines: {said}"))?;
    Ok(said)
}

fn hang(name: &str, options: &[&str], script: &str) -> Result<String, Failed> {
    ended(recording(
        &scratch(&format!("{name}.bin")),
        options,
        &["sh", "-c", script],
    ))
}

/// Checks how the message about a hang describes the process at the end of the chain of waits, for which all other
/// processes wait.
fn ends_with(said: &str, end: &str) -> Result<(), Failed> {
    let line = said.lines().find(|line| line.contains("end of the waits"));
    ensure(line.is_some_and(|line| line.contains(end)), || {
        format!("{end:?} is not at the end of {said}")
    })
}

fn stacks() -> Result<(), Failed> {
    let options = ["--stall", "2s", "--off-cpu-stacks"];
    let said = hang("stacks", &options, "sleep 1000; echo not reached")?;
    let line = said.lines().find(|line| line.contains(" waited "));
    let good = |line: &str| line.contains("sleep 1000") && line.contains("nanosleep");
    ensure(line.is_some_and(good), || said.clone())
}

/// If a recording of a pipeline ends before COMMAND, its critical path ends in the program that writes into the pipe,
/// not in `tee`.
fn cut() -> Result<(), Failed> {
    let file = scratch("cut.bin");
    let script = "(sleep 4; echo a) 2>&1 | tee /dev/null";
    let out = recording(&file, &["--duration", "1s"], &["sh", "-c", script]).output()?;
    ensure(out.status.success(), || text(&out.stderr))?;
    let path = text(&tr(&["analyze", "--report", "critical-path"], &file)?);
    let tasks = path.lines().skip_while(|line| !line.contains("task"));
    let last = tasks.take_while(|line| !line.contains("wall time")).last();
    ensure(last.is_some_and(|line| line.contains("sleep 4")), || path)
}

fn lock() -> Result<(), Failed> {
    let lock = scratch("lock");
    let lock = lock.display();
    let script =
        format!("flock {lock} sleep 1000 & sleep 0.5; flock {lock} true; echo not reached");
    let said = hang("lock", &["--stall", "2s"], &script)?;
    ensure(said.contains("waits for the lock of"), || said.clone())?;
    ends_with(&said, "sleeps")
}

fn pipe() -> Result<(), Failed> {
    let script = "python3 -c 'import time; time.sleep(1000)' 2>&1 | cat | tee /dev/null";
    let said = hang("pipe", &["--stall", "2s"], script)?;
    ensure(
        said.contains("cat") && said.contains("reads from a pipe of"),
        || said.clone(),
    )?;
    ends_with(&said, "python3")?;
    ends_with(&said, "sleeps")
}

/// `tail -f` writes into a pipe and polls whether anybody still reads from the pipe. This poll must not be reported as
/// reading from the pipe.
fn follow() -> Result<(), Failed> {
    let file = scratch("follow");
    std::fs::write(&file, "a\n")?;
    let script = format!("tail -f {}; true", file.display());
    let said = hang("follow", &["--stall", "2s"], &script)?;
    ensure(!said.contains("reads from a pipe"), || said.clone())?;
    ends_with(&said, "waits for any of several descriptors")
}

fn server() -> Result<(), Failed> {
    let listener = TcpListener::bind("127.0.0.1:0")?;
    let port = listener.local_addr()?.port();
    let script = format!(
        "python3 -c 'import socket; socket.create_connection((\"127.0.0.1\", {port})).recv(1)'"
    );
    let said = hang("server", &["--stall", "2s"], &script)?;
    ends_with(&said, &format!("waits for an answer of 127.0.0.1:{port}"))
}

/// COMMAND contains a client and its server. The server's child accepts the connection and then takes a lock twice, so
/// it hangs.
fn own_server() -> Result<(), Failed> {
    let program = "import os, socket, threading\n\
                   server = socket.create_server((\"127.0.0.1\", 0))\n\
                   if os.fork() == 0:\n    \
                       client, _ = server.accept()\n    \
                       lock = threading.Lock()\n    lock.acquire()\n    lock.acquire()\n\
                   client = socket.create_connection(server.getsockname())\n\
                   server.close()\nclient.recv(1)\n";
    let file = scratch("own-server.py");
    std::fs::write(&file, program)?;
    let script = format!("python3 {}; true", file.display());
    let said = hang("own-server", &["--stall", "2s"], &script)?;
    ensure(said.contains(") on 127.0.0.1:"), || said.clone())?;
    ends_with(&said, "has no other thread that could end this")
}

fn local_server() -> Result<(), Failed> {
    let program = "import os, socket, sys, time\n\
                   server = socket.socket(socket.AF_UNIX)\n\
                   server.bind(sys.argv[1])\nserver.listen()\n\
                   if os.fork() > 0:\n    \
                       client, _ = server.accept()\n    \
                       time.sleep(1000)\n\
                   client = socket.socket(socket.AF_UNIX)\n\
                   client.connect(sys.argv[1])\nclient.recv(1)\n";
    let file = scratch("local-server.py");
    std::fs::write(&file, program)?;
    let socket = scratch("local-server.sock");
    let (file, socket) = (file.display(), socket.display());
    let script = format!("rm -f {socket}; python3 {file} {socket} & wait");
    let said = hang("local-server", &["--stall", "2s"], &script)?;
    ensure(said.contains(") on a local socket"), || said.clone())?;
    ends_with(&said, "sleeps")
}

fn fifo() -> Result<(), Failed> {
    let fifo = scratch("hang.fifo");
    let fifo = fifo.display();
    let script = format!("rm -f {fifo}; mkfifo {fifo}; cat {fifo} | sort; echo not reached");
    let said = hang("fifo", &["--stall", "2s"], &script)?;
    let end = format!("opens the FIFO {fifo}, which no process has open for writing");
    ends_with(&said, &end)?;
    // The recording says itself why the command ended.
    let trace = scratch("fifo.bin");
    let summary = text(&tr(&["summary"], &trace)?);
    let summary = summary.split_whitespace().collect::<Vec<_>>().join(" ");
    let limit = "ended by tr at its limit of ";
    ensure(summary.contains(limit), || summary.clone())?;
    let info = text(&tr(&["info"], &trace)?);
    let without = " without activity (--stall)";
    ensure(info.contains(limit) && info.contains(without), || {
        info.clone()
    })
}

/// Two processes each hold one semaphore and wait for the semaphore of the other process.
fn shared_lock() -> Result<(), Failed> {
    let program = "import multiprocessing as m, time\n\
                   def run(first, second):\n    \
                       first.acquire()\n    time.sleep(0.5)\n    second.acquire()\n\
                   a, b = m.Lock(), m.Lock()\n\
                   both = [m.Process(target=run, args=(a, b)), m.Process(target=run, args=(b, a))]\n\
                   for one in both: one.start()\n\
                   for one in both: one.join()\n";
    let file = scratch("shared-lock.py");
    std::fs::write(&file, program)?;
    let script = format!("python3 {}; true", file.display());
    let said = hang("shared-lock", &["--stall", "2s"], &script)?;
    ends_with(
        &said,
        "waits for another process (a lock or a condition in shared memory)",
    )
}

fn terminal() -> Result<(), Failed> {
    let pty = nix::pty::openpty(None, None)?;
    let mut tr = recording(
        &scratch("terminal.bin"),
        &["--timeout", "2s"],
        &["sh", "-c", "read line; echo not reached"],
    );
    tr.stdin(Stdio::from(pty.slave.try_clone()?));
    let said = ended(tr)?;
    ensure(said.contains("reached its limit of 2.00 s:"), || {
        said.clone()
    })?;
    ends_with(&said, "reads from the terminal")?;
    // Nobody reads what the program writes, so the terminal is soon full.
    let mut tr = recording(
        &scratch("full-terminal.bin"),
        &["--timeout", "2s"],
        &["sh", "-c", "exec yes 1>&0"],
    );
    tr.stdin(Stdio::from(pty.slave.try_clone()?));
    ends_with(&ended(tr)?, "writes to the terminal, which takes nothing")
}

/// Tests programs that wait for input to pass on to a child, or for a child's output. Such a program is reported as
/// waiting for the child. Without a child, it is reported as waiting for the input.
fn relay() -> Result<(), Failed> {
    let relayed = |name: &str, python: &str| {
        let mut tr = recording(
            &scratch(&format!("{name}.bin")),
            &["--stall", "2s"],
            &["python3", "-c", python],
        );
        // The test keeps the writing end of the pipe open, so that the program gets no end of input.
        let (read, write) = nix::unistd::pipe2(nix::fcntl::OFlag::O_CLOEXEC)?;
        tr.stdin(Stdio::from(read));
        let said = ended(tr)?;
        drop(write);
        Ok::<String, Failed>(said)
    };
    let said = relayed(
        "relay",
        "import select, socket, subprocess
a, b = socket.socketpair()
child = subprocess.Popen(['sleep', '1000'], stdin=subprocess.DEVNULL)
select.select([0, a], [], [])",
    )?;
    ends_with(&said, "sleep 1000")?;
    let said = relayed(
        "relay-output",
        "import select, subprocess
child = subprocess.Popen(['sleep', '1000'], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE)
select.select([0, child.stdout], [], [])",
    )?;
    ends_with(&said, "sleep 1000")?;
    let said = relayed(
        "relay-loop",
        "import asyncio
async def main():
    child = await asyncio.create_subprocess_exec('sleep', '1000')
    await child.wait()
asyncio.run(main())",
    )?;
    ends_with(&said, "sleep 1000")?;
    let said = relayed(
        "no-relay",
        "import os, select
r, w = os.pipe()
select.select([0, r], [], [])",
    )?;
    ends_with(&said, "whose other end no other process of COMMAND has")
}

/// A runtime's event loop that waits only for events of its own threads is reported as a wait for another thread.
fn own_loop() -> Result<(), Failed> {
    let python = "import os, select, threading
lock = threading.Lock()
lock.acquire()
threading.Thread(target=lock.acquire).start()
event, (read, write) = os.eventfd(0), os.pipe()
while True:
    select.select([event, read], [], [], 1)";
    let file = scratch("own-loop.bin");
    let said = ended(recording(
        &file,
        &["--stall", "3s"],
        &["python3", "-c", python],
    ))?;
    ends_with(&said, "waits for another of its threads")
}

fn ignored_term() -> Result<(), Failed> {
    let mark = scratch("ignored-term").display().to_string();
    let script = format!("trap '' TERM; python3 -c 'import time; time.sleep(1000)' {mark}; true");
    let options = ["--stall", "1500ms", "--kill-after", "1s"];
    let said = hang("ignored", &options, &script)?;
    ends_with(&said, "python3")?;
    let left = Command::new("pgrep").args(["-f", &mark]).output()?;
    ensure(left.stdout.is_empty(), || {
        format!("left: {}", text(&left.stdout))
    })
}

fn ticker() -> Result<(), Failed> {
    let program = "import threading, time\n\
                   def tick():\n    \
                       while True:\n        time.sleep(1)\n\
                   threading.Thread(target=tick, daemon=True).start()\n\
                   lock = threading.Lock()\nlock.acquire()\nlock.acquire()\n";
    let file = scratch("ticker.py");
    std::fs::write(&file, program)?;
    let script = format!("python3 {}; true", file.display());
    let said = hang("ticker", &["--stall", "4s"], &script)?;
    ends_with(&said, "waits for another of its threads")
}

fn idle_server() -> Result<(), Failed> {
    let program = "import socket, threading, time, unittest\n\
                   server = socket.create_server((\"127.0.0.1\", 0))\n\
                   threading.Thread(target=server.accept, daemon=True).start()\n\
                   class Tests(unittest.TestCase):\n    \
                       def test_pause(self):\n        \
                           while True: time.sleep(0.5)\n";
    let tests = scratch("idle_server.py");
    std::fs::write(&tests, program)?;
    let directory = tests.parent().unwrap_or(&tests).display().to_string();
    let python = ["/usr/bin/python3", "-m", "unittest", "discover", "-p"];
    let command = [&python[..], &["idle_server.py", "-s", &directory]].concat();
    let file = scratch("idle-server.bin");
    ended(recording(&file, &["--timeout", "3s"], &command))?;
    let screen = text(&tr(&["analyze"], &file)?);
    ensure(!screen.contains("waits for a server"), || screen.clone())
}

fn slow_server() -> Result<(), Failed> {
    let listener = TcpListener::bind("127.0.0.1:0")?;
    let port = listener.local_addr()?.port();
    let server = std::thread::spawn(move || -> std::io::Result<()> {
        let (mut client, _) = listener.accept()?;
        for _ in 0..24 {
            client.write_all(b"x")?;
            std::thread::sleep(Duration::from_millis(250));
        }
        Ok(())
    });
    let script = format!(
        "import socket\ns = socket.create_connection((\"127.0.0.1\", {port}))\nwhile s.recv(1): pass\n"
    );
    let mut tr = recording(
        &scratch("slow.bin"),
        &["--stall", "3s"],
        &["python3", "-c", &script],
    );
    let start = Instant::now();
    let out = tr.output()?;
    server.join().map_err(|_| "the server failed")??;
    ensure(out.status.success(), || text(&out.stderr))?;
    ensure(start.elapsed() > Duration::from_secs(5), || {
        "shorter than the stall".to_owned()
    })
}

fn unchanged() -> Result<(), Failed> {
    let options = ["--timeout", "60s", "--stall", "30s"];
    let script = "sleep 0.3; exit 7";
    let out = recording(&scratch("unchanged.bin"), &options, &["sh", "-c", script]).output()?;
    let said = text(&out.stderr);
    ensure(
        out.status.code() == Some(7) && !said.contains("KILL"),
        || said,
    )
}
