//! Tests the attributes of recorded waits: the system call in which a task sleeps, the task that wakes it, and the
//! context of the waking.

#![allow(clippy::expect_used, clippy::indexing_slicing)]

mod common;

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::sync::atomic::AtomicU32;
use std::sync::mpsc::{channel, Sender};
use std::thread::JoinHandle;
use std::time::Duration;

use common::{ensure, pin, settings};
use libtest_mimic::Failed;
use tr_bpf::wire::{Reason, Sched, SchedKind, WakingContext};
use tr_bpf::{Record, Settings, Tracer};

fn main() {
    common::run(vec![
        ("the_waker_is_the_task_that_runs", wakers),
        ("the_system_call_of_each_sleep_is_known", reasons),
        ("the_time_out_of_each_sleep_is_known", timeouts),
        ("a_time_out_with_a_question_that_is_not_answered", asking),
        ("a_send_over_loopback_has_its_sender", loopback),
        ("kernel_threads_have_no_system_calls", kernel_threads),
    ]);
}

/// The scheduling events that are recorded while `work` runs.
fn record(
    hidden_tid: u32,
    work: impl FnOnce() -> Result<(), Failed>,
) -> Result<Vec<Sched>, Failed> {
    let settings = Settings {
        hidden_tid,
        ..settings(4 << 20)
    };
    let mut tracer = Tracer::start(&settings)?;
    tracer.snapshot()?;
    work()?;
    tracer.detach();
    let mut events = Vec::new();
    tracer.consume(|record| {
        if let Record::Sched(_, slot) = record {
            events.push(slot.event(0));
        }
    });
    Ok(events)
}

fn tid() -> u32 {
    // SAFETY: a plain system call.
    unsafe { libc::syscall(libc::SYS_gettid) as u32 }
}

/// Tests that the task that wakes another one is recorded correctly, even if its own switches are not reported, as on
/// some virtual machines. Of three threads on one CPU, the first wakes the second, whose switches are hidden, and the
/// second wakes the third.
fn wakers() -> Result<(), Failed> {
    const ROUNDS: usize = 200;
    let (mut from_first, mut to_second) = std::io::pipe()?;
    let (mut from_second, mut to_third) = std::io::pipe()?;
    let (send, tids) = channel();
    let second_tid = send.clone();
    let second = std::thread::spawn(move || {
        pin();
        second_tid.send((2, tid())).expect("a receiver");
        let mut byte = [0];
        while from_first.read_exact(&mut byte).is_ok() {
            to_third.write_all(&byte).expect("a pipe");
        }
    });
    let third = std::thread::spawn(move || {
        pin();
        send.send((3, tid())).expect("a receiver");
        let mut byte = [0];
        while from_second.read_exact(&mut byte).is_ok() {}
    });
    let tids: std::collections::HashMap<i32, u32> = tids.iter().take(2).collect();
    let (second_tid, third_tid) = (tids[&2], tids[&3]);
    let events = record(second_tid, || {
        let first = std::thread::spawn(move || {
            pin();
            for _ in 0..ROUNDS {
                to_second.write_all(b"x").expect("a pipe");
                std::thread::sleep(Duration::from_millis(1));
            }
        });
        first.join().map_err(|_| "the first thread")?;
        second.join().map_err(|_| "the second thread")?;
        third.join().map_err(|_| "the third thread")?;
        Ok(())
    })?;
    let switch = |e: &Sched| e.kind == SchedKind::SCHED_SWITCH;
    let hidden = |e: &Sched| switch(e) && (e.from == second_tid || e.to == second_tid);
    ensure(!events.iter().any(hidden), || "a hidden switch".into())?;
    let of_third = |e: &&Sched| e.kind == SchedKind::SCHED_WAKING && e.to == third_tid;
    let wakers: Vec<u32> = events.iter().filter(of_third).map(|e| e.from).collect();
    let right = wakers.iter().filter(|waker| **waker == second_tid).count();
    ensure(right == wakers.len() && right > ROUNDS / 2, || {
        format!("{right} of {} wakers are {second_tid}", wakers.len())
    })
}

/// A thread that sleeps in a given system call until it is released.
struct Sleeper {
    reason: Reason,
    tid: u32,
    thread: JoinHandle<()>,
    release: Box<dyn FnOnce()>,
}

impl Sleeper {
    fn new(
        reason: Reason,
        sleep: impl FnOnce() + Send + 'static,
        release: impl FnOnce() + 'static,
    ) -> Sleeper {
        let (send, tids) = channel();
        let thread = std::thread::spawn(move || {
            send.send(tid()).expect("a receiver");
            // The test starts its recording while this thread sleeps here.
            std::thread::sleep(Duration::from_millis(300));
            sleep();
        });
        Sleeper {
            reason,
            tid: tids.recv().expect("a sender"),
            thread,
            release: Box::new(release),
        }
    }
}

fn read(fd: i32) {
    let mut byte = 0u8;
    // SAFETY: the call writes at most one byte, to `byte`.
    unsafe { libc::read(fd, (&raw mut byte).cast(), 1) };
}

fn write(fd: i32, bytes: &[u8]) {
    // SAFETY: the call reads `bytes`, and gets their length.
    unsafe { libc::write(fd, bytes.as_ptr().cast(), bytes.len()) };
}

fn flock(file: &std::fs::File, operation: i32) {
    // SAFETY: a plain system call.
    unsafe { libc::flock(file.as_raw_fd(), operation) };
}

/// Takes over the new descriptor that a system call has returned.
fn owned(fd: i32) -> OwnedFd {
    assert!(fd >= 0);
    // SAFETY: the descriptor is new, and nothing else owns it.
    unsafe { OwnedFd::from_raw_fd(fd) }
}

fn futex(word: &'static AtomicU32, operation: i32, value: u32) {
    // SAFETY: the call uses only `word`, which lives for ever.
    unsafe {
        libc::syscall(
            libc::SYS_futex,
            word.as_ptr(),
            operation,
            value,
            std::ptr::null::<()>(),
        )
    };
}

fn sleepers() -> Result<Vec<Sleeper>, Failed> {
    static WORD: AtomicU32 = AtomicU32::new(0);
    let mut all = Vec::new();
    let (mut from, mut to) = std::io::pipe()?;
    all.push(Sleeper::new(
        Reason::REASON_PIPE_READ,
        move || drop(from.read(&mut [0])),
        move || drop(to.write(b"x")),
    ));
    let (mut from, mut to) = std::io::pipe()?;
    all.push(Sleeper::new(
        Reason::REASON_PIPE_WRITE,
        move || drop(to.write_all(&[0; 100_000])),
        move || drop(from.read_exact(&mut [0; 100_000])),
    ));
    let (mut one, mut other) = std::os::unix::net::UnixStream::pair()?;
    all.push(Sleeper::new(
        Reason::REASON_SOCKET_READ,
        move || drop(one.read(&mut [0])),
        move || drop(other.write(b"x")),
    ));
    all.push(Sleeper::new(
        Reason::REASON_LOCK,
        || futex(&WORD, libc::FUTEX_WAIT, 0),
        || futex(&WORD, libc::FUTEX_WAKE, 1),
    ));
    all.push(Sleeper::new(
        Reason::REASON_TIMER,
        || std::thread::sleep(Duration::from_millis(100)),
        || (),
    ));
    let (from, mut to) = std::io::pipe()?;
    all.push(Sleeper::new(
        Reason::REASON_POLL,
        move || {
            let (fd, events, revents) = (from.as_raw_fd(), libc::POLLIN, 0);
            let mut polled = libc::pollfd {
                fd,
                events,
                revents,
            };
            // SAFETY: the call uses the single entry `polled`.
            unsafe { libc::poll(&mut polled, 1, -1) };
        },
        move || drop(to.write(b"x")),
    ));
    all.push(event_sleeper()?);
    let mut child = std::process::Command::new("sleep").arg("0.5").spawn()?;
    all.push(Sleeper::new(
        Reason::REASON_CHILD,
        move || drop(child.wait()),
        || (),
    ));
    all.push(terminal_sleeper()?);
    let file = tempfile()?;
    let locked = file.try_clone()?;
    // The file is opened again, because a lock by flock(2) belongs to an open file and does not block the same one.
    let again = std::fs::File::open(format!("/proc/self/fd/{}", file.as_raw_fd()))?;
    flock(&locked, libc::LOCK_EX);
    all.push(Sleeper::new(
        Reason::REASON_FILE_LOCK,
        move || flock(&again, libc::LOCK_EX),
        move || flock(&locked, libc::LOCK_UN),
    ));
    Ok(all)
}

fn event_sleeper() -> Result<Sleeper, Failed> {
    // SAFETY: a plain system call.
    let event = owned(unsafe { libc::eventfd(0, 0) });
    let same = event.try_clone()?;
    Ok(Sleeper::new(
        Reason::REASON_OTHER_DESCRIPTOR,
        move || {
            let mut value = 0u64;
            // SAFETY: the call writes the eight bytes of `value`.
            unsafe { libc::read(event.as_raw_fd(), (&raw mut value).cast(), 8) };
        },
        move || write(same.as_raw_fd(), &1u64.to_ne_bytes()),
    ))
}

fn terminal_sleeper() -> Result<Sleeper, Failed> {
    let (mut master, mut slave) = (0, 0);
    let null = std::ptr::null_mut();
    // SAFETY: the call fills the two numbers.
    let opened = unsafe { libc::openpty(&mut master, &mut slave, null, null.cast(), null.cast()) };
    ensure(opened == 0, || "no pseudo terminal".into())?;
    let (master, slave) = (owned(master), owned(slave));
    Ok(Sleeper::new(
        Reason::REASON_TERMINAL,
        move || read(slave.as_raw_fd()),
        move || write(master.as_raw_fd(), b"x\n"),
    ))
}

fn tempfile() -> Result<std::fs::File, Failed> {
    let path = std::env::temp_dir().join(format!("tr-waits-{}", std::process::id()));
    let file = std::fs::File::options()
        .read(true)
        .write(true)
        .create(true)
        .truncate(true)
        .open(&path)?;
    std::fs::remove_file(path)?;
    Ok(file)
}

fn reasons() -> Result<(), Failed> {
    let sleepers = sleepers()?;
    let tids: Vec<_> = sleepers.iter().map(|s| (s.tid, s.reason)).collect();
    let events = record(0, move || {
        std::thread::sleep(Duration::from_millis(500));
        for sleeper in sleepers {
            (sleeper.release)();
            sleeper.thread.join().map_err(|_| "a sleeper")?;
        }
        Ok(())
    })?;
    for (tid, expected) in tids {
        let sleeps =
            |e: &&Sched| e.kind == SchedKind::SCHED_SWITCH && e.from == tid && e.state & 3 != 0;
        let found: Vec<Reason> = events.iter().filter(sleeps).map(|e| e.reason).collect();
        ensure(found.contains(&expected), || {
            format!("{found:?} has no {expected:?}")
        })?;
        let runs = |e: &&Sched| e.kind == SchedKind::SCHED_SWITCH && e.from == tid && e.state == 0;
        ensure(
            events
                .iter()
                .filter(runs)
                .all(|e| e.reason == Reason::REASON_UNKNOWN),
            || "a reason of a runnable task".into(),
        )?;
    }
    Ok(())
}

/// A recording stores the length of a time-out only as the number of a range of lengths. The constants are the
/// numbers for one second and for three milliseconds.
const SECOND: u8 = 83;
const MILLISECONDS_3: u8 = 49;
const NO_LIMIT: u8 = 1;
const SOME: u8 = 2;

/// A time-out of `ms` milliseconds as a relative time, counted from the call.
fn after(ms: i64) -> libc::timespec {
    libc::timespec {
        tv_sec: ms / 1000,
        tv_nsec: ms % 1000 * 1_000_000,
    }
}

/// The time by CLOCK_MONOTONIC that will be reached after some milliseconds.
fn deadline(ms: i64) -> libc::timespec {
    let mut now = after(0);
    // SAFETY: the call fills the struct.
    unsafe { libc::clock_gettime(libc::CLOCK_MONOTONIC, &mut now) };
    now.tv_nsec += ms % 1000 * 1_000_000;
    now.tv_sec += ms / 1000 + now.tv_nsec / 1_000_000_000;
    now.tv_nsec %= 1_000_000_000;
    now
}

/// Makes a system call with up to six arguments.
fn call(number: libc::c_long, arguments: [usize; 6]) {
    let [a, b, c, d, e, f] = arguments;
    // SAFETY: the arguments are numbers, or pointers to values that outlive the call.
    unsafe { libc::syscall(number, a, b, c, d, e, f) };
}

fn at<T>(value: &T) -> usize {
    std::ptr::from_ref(value) as usize
}

/// A closure that calls the system call in which a thread sleeps.
type Work = Box<dyn FnOnce() + Send>;

/// System calls that wait until their time-out is over. For each call: the expected reason, the expected class of the
/// time-out, and a closure that makes the call.
fn timed() -> Vec<(Reason, u8, Work)> {
    static WORD: AtomicU32 = AtomicU32::new(0);
    let poll = |ms: usize, count: usize| {
        move || {
            let (read, _write) = std::io::pipe().expect("a pipe");
            let polled = libc::pollfd {
                fd: read.as_raw_fd(),
                events: libc::POLLIN,
                revents: 0,
            };
            call(
                libc::SYS_ppoll,
                [at(&polled), count, at(&after(ms as i64)), 0, 0, 0],
            );
        }
    };
    let select = |ms: i64, descriptors: usize| {
        move || {
            let (read, _write) = std::io::pipe().expect("a pipe");
            let mut set = [0u64; 16];
            let fd = read.as_raw_fd() as usize;
            set[fd / 64] |= 1 << (fd % 64);
            let sets = if descriptors > 0 { at(&set) } else { 0 };
            call(
                libc::SYS_pselect6,
                [descriptors * (fd + 1), sets, 0, 0, at(&after(ms)), 0],
            );
        }
    };
    let epoll = |ms: usize| {
        move || {
            // SAFETY: a plain system call.
            let queue = owned(unsafe { libc::epoll_create1(0) });
            let mut event = [0u8; 16];
            let fd = queue.as_raw_fd() as usize;
            call(
                libc::SYS_epoll_pwait,
                [fd, event.as_mut_ptr() as usize, 1, ms, 0, 8],
            );
        }
    };
    let futex = |operation: i32, time: fn(i64) -> libc::timespec| {
        move || {
            let any = u32::MAX as usize;
            let word = WORD.as_ptr() as usize;
            call(
                libc::SYS_futex,
                [word, operation as usize, 0, at(&time(3)), 0, any],
            );
        }
    };
    let clock = |clock: i32, flags: usize, time: fn(i64) -> libc::timespec| {
        move || {
            let time = time(3);
            call(
                libc::SYS_clock_nanosleep,
                [clock as usize, flags, at(&time), 0, 0, 0],
            );
        }
    };
    let abstime = libc::TIMER_ABSTIME as usize;
    let socket = || {
        let (one, _other) = std::os::unix::net::UnixStream::pair().expect("sockets");
        one.set_read_timeout(Some(Duration::from_millis(30)))
            .expect("an option");
        drop((&one).read(&mut [0]));
    };
    vec![
        (Reason::REASON_POLL, MILLISECONDS_3, Box::new(poll(3, 1))),
        (Reason::REASON_TIMER, MILLISECONDS_3, Box::new(poll(3, 0))),
        (Reason::REASON_POLL, MILLISECONDS_3, Box::new(select(3, 1))),
        (Reason::REASON_TIMER, SECOND, Box::new(select(1000, 0))),
        (Reason::REASON_POLL, MILLISECONDS_3, Box::new(epoll(3))),
        (
            Reason::REASON_LOCK,
            MILLISECONDS_3,
            Box::new(futex(libc::FUTEX_WAIT, after)),
        ),
        (
            Reason::REASON_LOCK,
            MILLISECONDS_3,
            Box::new(futex(libc::FUTEX_WAIT_BITSET, deadline)),
        ),
        (
            Reason::REASON_TIMER,
            MILLISECONDS_3,
            Box::new(clock(libc::CLOCK_REALTIME, 0, after)),
        ),
        (
            Reason::REASON_TIMER,
            MILLISECONDS_3,
            Box::new(clock(libc::CLOCK_MONOTONIC, abstime, deadline)),
        ),
        (Reason::REASON_SOCKET_READ, SOME, Box::new(socket)),
    ]
}

fn timeouts() -> Result<(), Failed> {
    let mut expected = Vec::new();
    let mut threads = Vec::new();
    for (reason, timeout, sleep) in timed() {
        let (send, tids) = channel();
        threads.push(std::thread::spawn(move || {
            send.send(tid()).expect("a receiver");
            std::thread::sleep(Duration::from_millis(300));
            sleep();
        }));
        expected.push((tids.recv()?, reason, timeout));
    }
    for sleeper in [1, 2] {
        let (send, tids) = channel();
        let (read, write) = std::io::pipe()?;
        threads.push(std::thread::spawn(move || {
            send.send(tid()).expect("a receiver");
            std::thread::sleep(Duration::from_millis(300));
            let polled = libc::pollfd {
                fd: read.as_raw_fd(),
                events: libc::POLLIN,
                revents: 0,
            };
            if sleeper == 1 {
                call(libc::SYS_ppoll, [at(&polled), 1, 0, 0, 0, 0]);
            } else {
                let (one, _other) = std::os::unix::net::UnixStream::pair().expect("sockets");
                one.set_read_timeout(None).expect("an option");
                drop((&read).read(&mut [0]));
                let closing = one.try_clone().expect("a socket");
                std::thread::spawn(move || {
                    std::thread::sleep(Duration::from_millis(20));
                    closing.shutdown(std::net::Shutdown::Both)
                });
                drop((&one).read(&mut [0]));
            }
        }));
        threads.push(std::thread::spawn(move || {
            std::thread::sleep(Duration::from_millis(400));
            drop((&write).write(b"x"));
        }));
        let reason = if sleeper == 1 {
            Reason::REASON_POLL
        } else {
            Reason::REASON_SOCKET_READ
        };
        expected.push((tids.recv()?, reason, NO_LIMIT));
    }
    let events = record(0, move || {
        for thread in threads {
            thread.join().map_err(|_| "a sleeper")?;
        }
        Ok(())
    })?;
    for (tid, reason, timeout) in expected {
        let sleeps =
            |e: &&Sched| e.kind == SchedKind::SCHED_SWITCH && e.from == tid && e.state & 3 != 0;
        let sleeps = events.iter().filter(sleeps);
        let found: Vec<(Reason, u8)> = sleeps.map(|e| (e.reason, e.timeout)).collect();
        ensure(found.contains(&(reason, timeout)), || {
            format!("{found:?} has no {:?}", (reason, timeout))
        })?;
        let pipe =
            |(reason, timeout): &(Reason, u8)| *reason != Reason::REASON_PIPE_READ || *timeout == 0;
        ensure(found.iter().all(pipe), || format!("a pipe's: {found:?}"))?;
    }
    Ok(())
}

/// Tests the recorded waits of a client that polls with a time-out: before it sends a question, while it waits for
/// the answer, and after the answer.
fn asking() -> Result<(), Failed> {
    let listener = TcpListener::bind("127.0.0.1:0")?;
    let address = listener.local_addr()?;
    let (send, tids) = channel();
    let (mut answers, mut asked) = std::io::pipe()?;
    let server = std::thread::spawn(move || {
        let (mut stream, _) = listener.accept().expect("a connection");
        let mut bytes = [0; 2];
        for _ in 0..2 {
            stream.read_exact(&mut bytes).expect("a question");
            answers.read_exact(&mut bytes[..1]).expect("a permission");
            stream.write_all(b"an answer").expect("a client");
        }
        // The client closes the connection, so this read ends with an error.
        stream.read_exact(&mut bytes).expect_err("an end");
    });
    let events = record(0, move || {
        let client = std::thread::spawn(move || {
            send.send(tid()).expect("a receiver");
            let mut stream = TcpStream::connect(address).expect("a server");
            let wait = |stream: &TcpStream, ms: i64| {
                let polled = libc::pollfd {
                    fd: stream.as_raw_fd(),
                    events: libc::POLLIN,
                    revents: 0,
                };
                call(libc::SYS_ppoll, [at(&polled), 1, at(&after(ms)), 0, 0, 0]);
            };
            for _ in 0..2 {
                wait(&stream, 3);
                stream.write_all(b"??").expect("a server");
                wait(&stream, 30);
                asked.write_all(b"!").expect("a server");
                stream.read_exact(&mut [0; 9]).expect("an answer");
            }
            wait(&stream, 3);
        });
        client.join().map_err(|_| "a client")?;
        server.join().map_err(|_| "a server")?;
        Ok(())
    })?;
    let tid = tids.recv()?;
    let polls = |e: &&Sched| {
        e.kind == SchedKind::SCHED_SWITCH && e.from == tid && e.reason == Reason::REASON_POLL
    };
    let mut found: Vec<&Sched> = events.iter().filter(polls).collect();
    found.sort_by_key(|e| e.time);
    let found: Vec<u8> = found.iter().map(|e| e.timeout).collect();
    let (short, long) = (MILLISECONDS_3, 63 | 128);
    ensure(found == [short, long, short, long, short], || {
        format!("{found:?}")
    })
}

fn receiver(listener: TcpListener, tids: Sender<u32>) -> JoinHandle<()> {
    std::thread::spawn(move || {
        tids.send(tid()).expect("a receiver");
        let (mut stream, _) = listener.accept().expect("a connection");
        let mut byte = [0];
        while stream.read_exact(&mut byte).is_ok() {}
    })
}

fn loopback() -> Result<(), Failed> {
    let listener = TcpListener::bind("127.0.0.1:0")?;
    let address = listener.local_addr()?;
    let (send, tids) = channel();
    let receiver = receiver(listener, send);
    let receiver_tid = tids.recv()?;
    let sender_tid = tid();
    let events = record(0, move || {
        let mut stream = TcpStream::connect(address)?;
        for _ in 0..20 {
            std::thread::sleep(Duration::from_millis(5));
            stream.write_all(b"x")?;
        }
        drop(stream);
        receiver.join().map_err(|_| "the receiver")?;
        Ok(())
    })?;
    let wakings = |e: &&Sched| e.kind == SchedKind::SCHED_WAKING && e.to == receiver_tid;
    let wakings: Vec<_> = events.iter().filter(wakings).collect();
    let sent =
        |e: &&&Sched| u32::from(e.state) == WakingContext::CONTEXT_SEND.0 && e.from == sender_tid;
    let sent = wakings.iter().filter(sent).count();
    ensure(sent >= 20, || format!("{sent} sends of {wakings:?}"))
}

/// The flag of a kernel thread (`include/linux/sched.h`).
const PF_KTHREAD: u64 = 0x0020_0000;

/// Tests that the waits of kernel threads have no reason, because these threads have no user registers that show a
/// system call.
fn kernel_threads() -> Result<(), Failed> {
    let events = record(0, || {
        std::thread::sleep(Duration::from_millis(300));
        Ok(())
    })?;
    // The task's flags are read (proc(5)), because a missing command line can also be that of a process that has just
    // ended.
    let kernel_thread = |tid: u32| {
        let stat = std::fs::read_to_string(format!("/proc/{tid}/stat")).unwrap_or_default();
        let behind_name = stat.rsplit(')').next().unwrap_or_default();
        let flags = behind_name.split_whitespace().nth(6);
        flags
            .and_then(|flags| flags.parse().ok())
            .is_some_and(|flags: u64| flags & PF_KTHREAD != 0)
    };
    let sleeps = |e: &&Sched| e.kind == SchedKind::SCHED_SWITCH && e.state & 3 != 0;
    let of_kernel = |e: &&Sched| kernel_thread(e.from);
    let reasons = events.iter().filter(sleeps).filter(of_kernel);
    let reasons: Vec<Reason> = reasons.map(|e| e.reason).collect();
    ensure(
        reasons
            .iter()
            .all(|reason| *reason == Reason::REASON_UNKNOWN),
        || format!("{reasons:?}"),
    )?;
    ensure(!reasons.is_empty(), || "no kernel thread has run".into())
}
