//! A tracer (ptrace(2)) that makes system calls of a traced program fail.

use std::collections::{BTreeSet, HashMap, HashSet};
use std::fs::{read_link, File};
use std::os::unix::fs::FileExt;
use std::os::unix::process::CommandExt;
use std::process::{Child, Command};
use std::sync::mpsc::{channel, RecvTimeoutError};
use std::time::Duration;

use libtest_mimic::Failed;

/// The system calls that fail.
#[derive(Clone, Copy, Debug)]
pub enum Which {
    /// No call fails; the calls are only listed.
    None,
    /// The call with this number in the order of the main thread's calls. Calls of Rust's runtime before `main` do not
    /// count.
    Nth(usize),
    /// All calls of the main thread with this system call number.
    Number(u64),
    /// All calls of the system call with this number by threads with this name. Only calls count that come after the
    /// main thread has begun to wait for events, because COMMAND already runs then.
    Late(&'static str, u64),
    /// The n-th write(2) of all threads but the main thread.
    Write(usize),
    /// The n-th write(2) of all threads but the main thread writes only half, and the next one fails.
    AfterShort(usize),
}

/// How a chosen call fails.
#[derive(Clone, Copy, Debug)]
pub enum Fault {
    /// The call fails with this errno.
    Error(i32),
    /// The call writes only half of the bytes.
    Short,
}

/// System calls that never fail here: brk(2) reports no errno, exit_group(2) does not return, close(2) closes even when
/// it fails, and without futex(2) no program with threads runs.
const SPARED: [libc::c_long; 4] = [
    libc::SYS_brk,
    libc::SYS_exit_group,
    libc::SYS_close,
    libc::SYS_futex,
];

/// The system calls that the traced program has made so far.
#[derive(Default)]
pub struct Calls {
    /// How often the main thread has called sigaltstack(2). The second call of sigaltstack(2) is the last system call
    /// of Rust's runtime before `main`.
    signal_stacks: u32,
    /// The number of calls of the main thread.
    pub count: usize,
    /// The system call numbers that the main thread has used.
    pub seen: BTreeSet<u64>,
    /// For each kind of call, the number of its first call, counted as in `count`. The list is empty if calls are made
    /// to fail.
    pub kinds: Vec<usize>,
    known: HashSet<Kind>,
    /// Whether the main thread has waited for events.
    waited: bool,
    /// The number of write(2) calls of all threads but the main thread.
    pub writes: usize,
    /// The system call number of the call that failed.
    pub failed: Option<u64>,
    /// The threads that are inside a system call, with the fault of that call.
    inside: HashMap<i32, Option<Fault>>,
}

/// Starts a program that this thread traces; it is stopped at its exec.
pub fn spawn(program: &mut Command) -> std::io::Result<Child> {
    // SAFETY: the closure makes one system call only.
    unsafe {
        program.pre_exec(|| {
            libc::ptrace(libc::PTRACE_TRACEME, 0, 0, 0);
            Ok(())
        });
    }
    program.spawn()
}

fn request(request: libc::c_uint, pid: i32, data: usize) -> libc::c_long {
    // SAFETY: for these requests the kernel reads and writes no memory of ours.
    unsafe { libc::ptrace(request, pid, 0usize, data) }
}

fn registers(pid: i32) -> libc::user_regs_struct {
    // SAFETY: the kernel fills the registers; all zeros are valid values for them.
    unsafe {
        let mut registers = std::mem::zeroed();
        libc::ptrace(libc::PTRACE_GETREGS, pid, 0usize, &mut registers);
        registers
    }
}

fn set_registers(pid: i32, registers: &libc::user_regs_struct) {
    // SAFETY: the kernel only reads the registers.
    unsafe { libc::ptrace(libc::PTRACE_SETREGS, pid, 0usize, registers) };
}

fn is_called(thread: i32, name: &str) -> bool {
    let comm = std::fs::read_to_string(format!("/proc/{thread}/comm"));
    comm.is_ok_and(|comm| comm.trim_end() == name)
}

/// Hides the vDSO from a program at its exec, so that the program reads the clock by a system call.
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
    // The stack has the number of arguments, then the arguments and the environment variables, each list with a null at
    // its end. The auxiliary vector follows.
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

/// The identity of a call: the number of the system call, its first two arguments, and a path.
type Kind = (u64, [u64; 2], String);

/// Calls whose first argument is a descriptor. Such calls are compared by what the descriptor is, not by its number.
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

/// The kind of a call that begins. All sizes and addresses count as equal, because they may differ in the next run.
fn kind(pid: i32, now: &libc::user_regs_struct) -> Kind {
    let is = |call: &libc::c_long| *call as u64 == now.orig_rax;
    let mut path = String::new();
    let mut arguments = [now.rdi, now.rsi];
    if OF_DESCRIPTORS.iter().any(is) {
        let file = read_link(format!("/proc/{pid}/fd/{}", now.rdi)).unwrap_or_default();
        // Digits are removed from the file's name, because they may be a pid. The text after a colon is removed as
        // well, because it names memory or a socket.
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
        // For bpf(2) the type of the map or program is kept.
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
    /// Handles the stop of a thread before or after a system call.
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

/// Runs the traced program to its end. Returns its raw wait status and its calls.
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
    // A tracee that hangs is killed at the limit, so that the wait for its end returns.
    let (ended, end) = channel::<()>();
    let watch = std::thread::spawn(move || {
        let late = end.recv_timeout(limit) == Err(RecvTimeoutError::Timeout);
        if late {
            // SAFETY: a plain system call; the pid is still that of the child, because nobody has waited for it.
            unsafe { libc::kill(main, libc::SIGKILL) };
        }
        late
    });
    loop {
        // Children of other threads belong to other tests.
        let own = libc::__WALL | libc::__WNOTHREAD;
        // SAFETY: `status` is a valid place for the result.
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
            // A child of tr has executed COMMAND, which is not to be traced.
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
            // Events of ptrace, and the first stop of a new thread: no signal is passed on.
            libc::SIGTRAP | libc::SIGSTOP => {}
            other => signal = other,
        }
        request(libc::PTRACE_SYSCALL, pid, signal as usize);
    }
}
