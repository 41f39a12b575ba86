//! A tracer (ptrace(2)) that makes system calls of its tracee fail.

use std::collections::{BTreeSet, HashMap, HashSet};
use std::fs::{read_link, File};
use std::os::unix::fs::FileExt;
use std::os::unix::process::CommandExt;
use std::process::{Child, Command};
use std::sync::mpsc::{channel, RecvTimeoutError};
use std::time::Duration;

use libtest_mimic::Failed;

/// The calls that fail.
#[derive(Clone, Copy, Debug)]
pub enum Which {
    /// None: the calls are listed.
    None,
    /// One of the main thread, not of Rust's runtime before `main`.
    Nth(usize),
    /// All of this number of the main thread.
    Number(u64),
    /// All of this number of the threads with this name, once the main thread has waited: COMMAND runs.
    Late(&'static str, u64),
    /// The n-th write(2) of the other threads.
    Write(usize),
    /// The n-th write(2) of the other threads is short, and the next one fails.
    AfterShort(usize),
}

/// The fault of a call.
#[derive(Clone, Copy, Debug)]
pub enum Fault {
    /// The call fails with this errno.
    Error(i32),
    /// The call writes half of the bytes.
    Short,
}

/// brk(2) reports no errno, exit_group(2) does not return, close(2) closes even when it
/// fails, and without futex(2) no program with threads runs.
const SPARED: [libc::c_long; 4] = [
    libc::SYS_brk,
    libc::SYS_exit_group,
    libc::SYS_close,
    libc::SYS_futex,
];

/// The tracee's calls.
#[derive(Default)]
pub struct Calls {
    /// Rust's runtime gives the main thread its signal stack last.
    signal_stacks: u32,
    /// The number of the main thread's calls.
    pub count: usize,
    /// Numbers of the main thread's calls.
    pub seen: BTreeSet<u64>,
    /// The first call of each kind by its count, if none fails.
    pub kinds: Vec<usize>,
    known: HashSet<Kind>,
    /// The main thread has waited for events.
    waited: bool,
    /// write(2) of the other threads.
    pub writes: usize,
    /// The number of the call that failed.
    pub failed: Option<u64>,
    /// Threads inside a call, and the fault of that call.
    inside: HashMap<i32, Option<Fault>>,
}

/// Starts a tracee, stopped at its exec.
pub fn spawn(program: &mut Command) -> std::io::Result<Child> {
    // SAFETY: a system call only.
    unsafe {
        program.pre_exec(|| {
            libc::ptrace(libc::PTRACE_TRACEME, 0, 0, 0);
            Ok(())
        });
    }
    program.spawn()
}

fn request(request: libc::c_uint, pid: i32, data: usize) -> libc::c_long {
    // SAFETY: the kernel reads and writes no memory of ours for these requests.
    unsafe { libc::ptrace(request, pid, 0usize, data) }
}

fn registers(pid: i32) -> libc::user_regs_struct {
    // SAFETY: the kernel fills the registers, which all zeros are, too.
    unsafe {
        let mut registers = std::mem::zeroed();
        libc::ptrace(libc::PTRACE_GETREGS, pid, 0usize, &mut registers);
        registers
    }
}

fn set_registers(pid: i32, registers: &libc::user_regs_struct) {
    // SAFETY: the kernel reads the registers.
    unsafe { libc::ptrace(libc::PTRACE_SETREGS, pid, 0usize, registers) };
}

fn is_called(thread: i32, name: &str) -> bool {
    let comm = std::fs::read_to_string(format!("/proc/{thread}/comm"));
    comm.is_ok_and(|comm| comm.trim_end() == name)
}

/// Hides the vDSO from a program at its exec: it asks the kernel for the time then.
fn without_vdso(pid: i32) -> std::io::Result<()> {
    let memory = File::options()
        .read(true)
        .write(true)
        .open(format!("/proc/{pid}/mem"))?;
    let mut at = registers(pid).rsp;
    let mut next = || {
        let mut word = [0; 8];
        at += 8;
        memory.read_exact_at(&mut word, at - 8)?;
        Ok::<_, std::io::Error>((at - 8, u64::from_ne_bytes(word)))
    };
    // The number of arguments; arguments and variables, each list with a null at its end.
    next()?;
    for _ in 0..2 {
        while next()?.1 != 0 {}
    }
    loop {
        let ((at, kind), _) = (next()?, next()?);
        match kind {
            libc::AT_NULL => return Ok(()),
            libc::AT_SYSINFO_EHDR => memory.write_all_at(&libc::AT_IGNORE.to_ne_bytes(), at)?,
            _ => {}
        }
    }
}

/// The identity of a call: the number, the first two arguments, a path.
type Kind = (u64, [u64; 2], String);

/// Calls whose first argument is a descriptor: it counts what that is, not its number.
const OF_DESCRIPTORS: [libc::c_long; 12] = [
    libc::SYS_dup3,
    libc::SYS_epoll_ctl,
    libc::SYS_epoll_wait,
    libc::SYS_fchmod,
    libc::SYS_fcntl,
    libc::SYS_fstat,
    libc::SYS_getdents64,
    libc::SYS_ioctl,
    libc::SYS_lseek,
    libc::SYS_pread64,
    libc::SYS_read,
    libc::SYS_write,
];

/// The kind of a call that begins. Sizes and addresses, which need not be the same in the next
/// run, are all one.
fn kind(pid: i32, now: &libc::user_regs_struct) -> Kind {
    let is = |call: &libc::c_long| *call as u64 == now.orig_rax;
    let mut path = String::new();
    let mut arguments = [now.rdi, now.rsi];
    if OF_DESCRIPTORS.iter().any(is) {
        let file = read_link(format!("/proc/{pid}/fd/{}", now.rdi)).unwrap_or_default();
        // Without the number of a process, and the name of memory or a socket.
        let file = file.to_string_lossy();
        let words = file.split(':').take(1).flat_map(str::chars);
        path.extend(words.filter(|word| !word.is_ascii_digit()));
        arguments[0] = 0;
    }
    for argument in arguments.iter_mut().filter(|argument| **argument >= 4096) {
        let mut bytes = [0; 256];
        let memory = File::open(format!("/proc/{pid}/mem"));
        let length = memory.and_then(|memory| memory.read_at(&mut bytes, *argument));
        let text = bytes[..length.unwrap_or(0)].split(|byte| *byte == 0).next();
        let text = text.filter(|text| text.starts_with(b"/"));
        path.extend(text.map(String::from_utf8_lossy));
        // The types of maps and programs.
        *argument = if is(&libc::SYS_bpf) && [BPF_MAP_CREATE, BPF_PROG_LOAD].contains(&now.rdi) {
            bytes[0].into()
        } else {
            u64::MAX
        };
    }
    (now.orig_rax, arguments, path)
}

const BPF_MAP_CREATE: u64 = 0;
const BPF_PROG_LOAD: u64 = 5;

impl Calls {
    /// A stop before or after a call of a thread.
    fn stop(&mut self, pid: i32, main: bool, which: Which, fault: Fault) {
        let mut now = registers(pid);
        if let Some(fault) = self.inside.remove(&pid) {
            if main && self.signal_stacks < 2 && now.orig_rax == libc::SYS_sigaltstack as u64 {
                self.signal_stacks += 1;
            }
            if let Some(Fault::Error(errno)) = fault {
                now.rax = i64::from(-errno).cast_unsigned();
                set_registers(pid, &now);
            }
            return;
        }
        let before = self.count;
        let fault = match which {
            Which::Late(thread, _) if !is_called(pid, thread) => None,
            _ => self.fault(now.orig_rax, main, which, fault),
        };
        let wait = [libc::SYS_epoll_wait, libc::SYS_epoll_pwait];
        self.waited |= main && wait.iter().any(|call| *call as u64 == now.orig_rax);
        let listed = matches!(which, Which::None) && self.count > before;
        if listed && self.known.insert(kind(pid, &now)) {
            self.kinds.push(self.count);
        }
        self.inside.insert(pid, fault);
        match fault {
            Some(Fault::Error(_)) => {
                self.failed = Some(now.orig_rax);
                now.orig_rax = u64::MAX;
            }
            Some(Fault::Short) => now.rdx = now.rdx.div_ceil(2),
            None => return,
        }
        set_registers(pid, &now);
    }

    fn fault(&mut self, number: u64, main: bool, which: Which, fault: Fault) -> Option<Fault> {
        if self.signal_stacks < 2 || SPARED.iter().any(|call| *call as u64 == number) {
            return None;
        }
        let write = !main && number == libc::SYS_write as u64;
        self.writes += usize::from(write);
        if main {
            self.count += 1;
            self.seen.insert(number);
        }
        match which {
            Which::None => None,
            Which::Nth(nth) => (main && nth == self.count).then_some(fault),
            Which::Number(wanted) => (main && wanted == number).then_some(fault),
            Which::Late(_, wanted) => (self.waited && wanted == number).then_some(fault),
            Which::Write(nth) => (write && nth == self.writes).then_some(fault),
            Which::AfterShort(nth) if write && nth == self.writes => Some(Fault::Short),
            Which::AfterShort(nth) => (write && nth + 1 == self.writes).then_some(fault),
        }
    }
}

/// Runs the tracee to its end. Returns its raw status.
pub fn run(
    tracee: &Child,
    which: Which,
    fault: Fault,
    limit: Duration,
) -> Result<(i32, Calls), Failed> {
    let options = libc::PTRACE_O_TRACESYSGOOD
        | libc::PTRACE_O_TRACECLONE
        | libc::PTRACE_O_TRACEEXEC
        | libc::PTRACE_O_EXITKILL;
    let main = tracee.id().cast_signed();
    let (mut calls, mut status, mut begun) = (Calls::default(), 0, false);
    // Whoever waits for the end sees that of a tracee that hangs, too.
    let (ended, end) = channel::<()>();
    let watch = std::thread::spawn(move || {
        let late = end.recv_timeout(limit) == Err(RecvTimeoutError::Timeout);
        if late {
            // SAFETY: a system call only; the child has not been waited for.
            unsafe { libc::kill(main, libc::SIGKILL) };
        }
        late
    });
    loop {
        // The children of other threads are other tests'.
        let own = libc::__WALL | libc::__WNOTHREAD;
        // SAFETY: the place for the status is ours.
        let pid = unsafe { libc::waitpid(-1, &mut status, own) };
        if pid < 0 {
            return Err(std::io::Error::last_os_error().into());
        }
        if !libc::WIFSTOPPED(status) {
            if pid == main {
                drop(ended);
                let call = calls.failed;
                return match watch.join() {
                    Ok(false) => Ok((status, calls)),
                    _ => Err(format!("{which:?}, call {call:?}: tr hangs").into()),
                };
            }
            continue;
        }
        if status >> 8 == libc::SIGTRAP | libc::PTRACE_EVENT_EXEC << 8 {
            // tr has become COMMAND.
            request(libc::PTRACE_DETACH, pid, 0);
            continue;
        }
        let mut signal = 0;
        match libc::WSTOPSIG(status) {
            libc::SIGTRAP if !begun => {
                begun = true;
                if matches!(which, Which::Late(..)) {
                    without_vdso(pid)?;
                }
                request(libc::PTRACE_SETOPTIONS, pid, options as usize);
            }
            stop if stop == libc::SIGTRAP | 0x80 => calls.stop(pid, pid == main, which, fault),
            // Events, and the stop of a new thread.
            libc::SIGTRAP | libc::SIGSTOP => {}
            other => signal = other,
        }
        request(libc::PTRACE_SYSCALL, pid, signal as usize);
    }
}
