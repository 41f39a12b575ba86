//! Tests that a signal reaches COMMAND exactly as often as without recording.

use std::os::unix::process::CommandExt;
use std::process::{Command, Output, Stdio};
use std::time::{Duration, Instant};

use libtest_mimic::Failed;

use crate::support::{
    analyze, ensure, eventually, info, int, kill, recording, scratch, text, Test, TR,
};

pub const TESTS: &[Test] = &[
    ("a_signal_to_tr_alone_is_passed_on", alone),
    ("a_signal_to_the_group_comes_once", group),
    ("a_signal_to_the_group_and_then_to_tr_comes_twice", both),
    ("a_signal_that_would_end_tr_is_passed_on", every),
    ("the_end_is_noticed_without_a_descriptor", no_descriptors),
    ("timeout_ends_the_command_as_without_tr", timeout),
    ("an_output_that_stalls_at_the_end_can_be_given_up", given_up),
    ("a_signal_does_not_cut_a_slow_output", signalled_while_slow),
];

/// A Python program that counts how often it gets SIGINT. It prints the count one second after the first SIGINT.
const COUNTS: &str = "import signal, time
count = 0
def seen(*_):
    global count
    count += 1
signal.signal(signal.SIGINT, seen)
print('ready', flush=True)
while not count:
    time.sleep(0.01)
end = time.monotonic() + 1
while time.monotonic() < end:
    time.sleep(0.01)
print('times', count)";

/// Records [`COUNTS`] in a process group of its own, applies `kill` to the recorder's pid, and returns the output.
fn run(kill: impl FnOnce(&str) -> Result<(), Failed>) -> Result<Output, Failed> {
    let trace = scratch("signals.bin");
    let ready = scratch("signals.out");
    let mut tr = recording(&trace, &["-q"], &["python3", "-c", COUNTS])
        .process_group(0)
        .stdout(std::fs::File::create(&ready)?)
        .stderr(Stdio::piped())
        .spawn()?;
    eventually("the command runs", || {
        std::fs::read(&ready).is_ok_and(|said| said.starts_with(b"ready"))
    })?;
    let killed = kill(&tr.id().to_string());
    let status = tr.wait()?;
    killed?;
    ensure(status.success(), || format!("{status:?}"))?;
    analyze(&trace)?;
    Ok(Output {
        status,
        stdout: std::fs::read(&ready)?,
        stderr: Vec::new(),
    })
}

fn send(target: &str) -> Result<(), Failed> {
    let status = kill().args(["-INT", target]).status()?;
    ensure(status.success(), || format!("kill {target}"))
}

fn came(out: &Output, times: u32) -> Result<(), Failed> {
    let want = format!("times {times}\n");
    ensure(text(&out.stdout).ends_with(&want), || text(&out.stdout))
}

fn alone() -> Result<(), Failed> {
    came(&run(send)?, 1)
}

fn group() -> Result<(), Failed> {
    for _ in 0..5 {
        came(&run(|pid| send(&format!("-{pid}")))?, 1)?;
    }
    Ok(())
}

fn both() -> Result<(), Failed> {
    let out = run(|pid| {
        send(&format!("-{pid}"))?;
        std::thread::sleep(Duration::from_millis(300));
        send(pid)
    })?;
    came(&out, 2)
}

/// A Python program that collects the numbers of the signals that it gets until SIGTERM, and then prints the numbers.
const NAMES: &str = "import signal, time
names = set()
numbers = [s for s in signal.valid_signals() if s not in (signal.SIGKILL, signal.SIGSTOP)]
for number in numbers:
    signal.signal(number, lambda number, _: names.add(int(number)))
print('ready', flush=True)
while signal.SIGTERM not in names:
    time.sleep(0.01)
print('numbers', *sorted(names))";

/// Sends every signal except SIGKILL, the stop signals, the signals of the processor (such as SIGSEGV), SIGPIPE and
/// SIGXFSZ. Each of the sent signals must reach COMMAND.
fn every() -> Result<(), Failed> {
    let trace = scratch("every-signal.bin");
    let ready = scratch("every-signal.out");
    let mut tr = recording(&trace, &["-q"], &["python3", "-c", NAMES])
        .process_group(0)
        .stdout(std::fs::File::create(&ready)?)
        .spawn()?;
    eventually("the command runs", || {
        std::fs::read(&ready).is_ok_and(|said| said.starts_with(b"ready"))
    })?;
    let mut numbers = vec![
        libc::SIGHUP,
        libc::SIGINT,
        libc::SIGQUIT,
        libc::SIGABRT,
        libc::SIGUSR1,
        libc::SIGUSR2,
        libc::SIGALRM,
        libc::SIGSTKFLT,
        libc::SIGXCPU,
        libc::SIGVTALRM,
        libc::SIGPROF,
        libc::SIGIO,
        libc::SIGPWR,
    ];
    numbers.extend(libc::SIGRTMIN()..=libc::SIGRTMAX());
    numbers.push(libc::SIGTERM);
    for number in &numbers {
        // SAFETY: a plain system call, with the pid of our own child.
        unsafe { libc::kill(tr.id().cast_signed(), *number) };
        std::thread::sleep(Duration::from_millis(20));
    }
    let status = tr.wait()?;
    let said = text(&std::fs::read(&ready)?);
    ensure(status.success(), || format!("{status:?}: {said}"))?;
    numbers.sort_unstable();
    let numbers: Vec<String> = numbers.iter().map(i32::to_string).collect();
    let want = format!("numbers {}\n", numbers.join(" "));
    ensure(said.ends_with(&want), || format!("{said}, not {want}"))
}

/// If the limit of descriptors is lower than the number of the recorder's descriptors, poll(2) fails at once. The
/// recorder must not use a CPU all the time because of that.
fn no_descriptors() -> Result<(), Failed> {
    let trace = scratch("no-descriptors.bin");
    let _ = std::fs::remove_file(&trace);
    let mut tr = recording(&trace, &["-q"], &["sh", "-c", "sleep 1.5; exit 9"]).spawn()?;
    eventually("the header", || trace.exists())?;
    let limit = libc::rlimit {
        rlim_cur: 0,
        rlim_max: 0,
    };
    let (pid, none) = (tr.id().cast_signed(), std::ptr::null_mut());
    // SAFETY: the call only reads the limit; the null pointer asks for no old limit.
    let set = unsafe { libc::prlimit(pid, libc::RLIMIT_NOFILE, &limit, none) };
    ensure(set == 0, || "no limit".into())?;
    let started = Instant::now();
    let status = tr.wait()?;
    ensure(status.code() == Some(9), || format!("{status:?}"))?;
    ensure(started.elapsed() < Duration::from_secs(20), || {
        format!("only after {:?}", started.elapsed())
    })?;
    let info = info(&trace)?;
    let own = int(&info["cost"], "recorder_ns");
    ensure(own < 200_000_000, || format!("{own} ns of CPU time"))
}

/// `timeout` sends its signal to its child and then to the whole process group, including itself.
fn timeout() -> Result<(), Failed> {
    let trace = scratch("timeout.bin");
    let command = ["sleep", "30"];
    let status = Command::new("timeout")
        .arg("0.7")
        .arg(crate::support::TR)
        .args(["record", "-q", "-o"])
        .arg(&trace)
        .arg("--")
        .args(command)
        .status()?;
    ensure(status.code() == Some(124), || format!("{status:?}"))?;
    let analysis = analyze(&trace)?;
    let exit = &analysis["processes"][0]["exit"];
    ensure(exit["signal"] == 15, || exit.to_string())?;
    ensure(analysis["trace"]["truncated"] == false, || "cut".into())
}

/// If the output blocks before the end of the trace, `tr` prints a warning, and Ctrl-C ends `tr` with COMMAND's exit
/// status. While COMMAND runs, Ctrl-C is meant for COMMAND.
fn given_up() -> Result<(), Failed> {
    let fifo = scratch("given-up.fifo");
    let _ = std::fs::remove_file(&fifo);
    nix::unistd::mkfifo(&fifo, nix::sys::stat::Mode::S_IRWXU)?;
    // The reader reads only the header of the trace, and keeps the pipe open.
    let mut reader = Command::new("sh")
        .args([
            "-c",
            "exec <\"$FIFO\"; head -c 1000 >/dev/null; exec sleep 60",
        ])
        .env("FIFO", &fifo)
        .spawn()?;
    let script = "i=0; while [ $i -lt 3000 ]; do /bin/true; i=$((i+1)); done; exit 7";
    let mut tr = recording(&fifo, &[], &["sh", "-c", script])
        .stderr(Stdio::piped())
        .spawn()?;
    let mut stderr = std::io::BufReader::new(tr.stderr.take().ok_or("no stderr")?);
    let mut line = String::new();
    std::io::BufRead::read_line(&mut stderr, &mut line)?;
    let told = line.contains("the output blocks before the end of the trace");
    send(&tr.id().to_string())?;
    let asked = Instant::now();
    let status = tr.wait()?;
    reader.kill()?;
    reader.wait()?;
    let mut rest = String::new();
    std::io::Read::read_to_string(&mut stderr, &mut rest)?;
    ensure(told, || line)?;
    ensure(status.code() == Some(7), || format!("{status:?}"))?;
    ensure(asked.elapsed() < Duration::from_secs(20), || {
        format!("only after {:?}", asked.elapsed())
    })?;
    ensure(rest.contains("given up"), || rest)
}

/// A signal that arrives while a slow reader still reads the end of the trace must not cut the trace.
fn signalled_while_slow() -> Result<(), Failed> {
    let (fifo, copy) = (scratch("slow.fifo"), scratch("slow.bin"));
    let _ = std::fs::remove_file(&fifo);
    nix::unistd::mkfifo(&fifo, nix::sys::stat::Mode::S_IRWXU)?;
    let mut reader = Command::new("sh")
        .args([
            "-c",
            "exec <\"$FIFO\" >\"$COPY\"; head -c 1000; sleep 1; exec cat",
        ])
        .env("FIFO", &fifo)
        .env("COPY", &copy)
        .spawn()?;
    let script = "i=0; while [ $i -lt 3000 ]; do /bin/true; i=$((i+1)); done; \
                  (sleep 0.1; kill -INT $PPID) & exit 7";
    let out = recording(&fifo, &[], &["sh", "-c", script]).output()?;
    reader.wait()?;
    let told = text(&out.stderr);
    ensure(out.status.code() == Some(7), || format!("{out:?}"))?;
    ensure(!told.contains("given up"), || told.clone())?;
    let verified = Command::new(TR).arg("verify").arg(&copy).output()?;
    ensure(verified.status.success(), || text(&verified.stdout))
}
