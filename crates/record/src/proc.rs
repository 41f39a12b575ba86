//! Reads facts about tasks from `/proc`.

use std::fs::File;
use std::os::unix::ffi::OsStringExt;
use std::os::unix::fs::FileExt;
use std::path::Path;

use crate::host::read_at_most;
use tr_format::event::{Argv, CgroupId, Comm, Ktime, Snapshot, Tgid, Tid};

/// The id of a task in the recorder's own pid namespace.
pub type Id = libc::pid_t;

/// Converts the id of a task to the type that events have for it.
pub fn tid(id: Id) -> Tid {
    Tid(id.unsigned_abs())
}

/// Converts the id of a process to the type that events have for it.
pub fn tgid(id: Id) -> Tgid {
    Tgid(id.unsigned_abs())
}

/// The totals of a task: its run time in ns, its time in run queues in ns, and the number of its time slices.
pub type Totals = (u64, u64, u64);

/// Reads the run time in ns, the time in run queues in ns and the number of time slices of a task
/// (`/proc/PID/schedstat`).
pub fn totals(id: Id) -> Option<Totals> {
    totals_in(&schedstat(id)?)
}

/// The totals (run time, time in run queues, number of time slices) of a task that is a zombie. They can still grow
/// when waitpid(2) for the zombie would already succeed, until the zombie leaves its CPU for the last time. So they are
/// read until two reads agree, at most four times.
pub fn final_totals(id: Id) -> Option<Totals> {
    let file = schedstat(id)?;
    let mut totals = totals_in(&file);
    for _ in 0..3 {
        let later = totals_in(&file);
        if later == totals {
            break;
        }
        totals = later;
    }
    totals
}

fn schedstat(id: Id) -> Option<File> {
    File::open(format!("/proc/{id}/schedstat")).ok()
}

/// Reads a task's totals (run time, time in run queues, number of time slices) from its open file `schedstat`. Each
/// read from the beginning of the file gets a new text from the kernel.
fn totals_in(file: &File) -> Option<Totals> {
    let mut text = [0; 80];
    let len = file.read_at(&mut text, 0).ok()?;
    let text = std::str::from_utf8(text.get(..len)?).ok()?;
    let mut numbers = text.split_whitespace().map(str::parse);
    let mut next = || numbers.next()?.ok();
    Some((next()?, next()?, next()?))
}

/// The facts about a process in `/proc/PID/stat` (proc_pid_stat(5)).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stat {
    pub comm: Comm,
    /// Whether the process is a zombie: it has ended and no process has waited for it.
    pub zombie: bool,
    /// The letter by which the kernel shows the process's state, for example `R`.
    pub state: u8,
    /// Whether the process is a kernel thread.
    pub kthread: bool,
    pub parent: Id,
    /// The number of the process's threads.
    pub threads: u64,
    /// The time at which the process was started, in clock ticks since the boot.
    pub start: u64,
    /// The address of the process's arguments in its memory. An exec usually changes it.
    pub arguments: u64,
    pub arguments_end: u64,
    /// The raw `wait` status of the process if it is a zombie and `tr` may read the status; otherwise `None`.
    pub status: Option<u32>,
}

impl Stat {
    /// The true length of the process's arguments in bytes.
    fn arguments_len(&self) -> u32 {
        let len = self.arguments_end.saturating_sub(self.arguments);
        u32::try_from(len).unwrap_or(u32::MAX)
    }
}

/// The facts about a process in `/proc/PID/stat`; `None` if the process is gone.
pub fn stat(id: Id) -> Option<Stat> {
    let mut stat = parse(&std::fs::read(format!("/proc/{id}/stat")).ok()?)?;
    // The kernel shows 0 as the status of another user's process, so a 0 is believed only for this user's own
    // processes.
    stat.status = stat.status.filter(|status| *status != 0 || is_own(id));
    Some(stat)
}

/// The flag that kernel threads have in `/proc/PID/stat` (include/linux/sched.h).
const PF_KTHREAD: u64 = 0x0020_0000;

fn parse(text: &[u8]) -> Option<Stat> {
    let open = text.iter().position(|byte| *byte == b'(')?;
    // The name in parentheses may itself contain blanks and parentheses, so the last parenthesis is its end.
    let close = text.iter().rposition(|byte| *byte == b')')?;
    let rest = std::str::from_utf8(text.get(close + 1..)?).ok()?;
    let fields: Vec<&str> = rest.split_whitespace().collect();
    // The first field after the name has the number 3 in proc_pid_stat(5).
    let number = |field: usize| fields.get(field - 3)?.parse::<u64>().ok();
    Some(Stat {
        comm: Comm::new(text.get(open + 1..close)?),
        zombie: matches!(fields.first(), Some(&"Z" | &"X")),
        state: fields.first()?.bytes().next()?,
        kthread: number(9)? & PF_KTHREAD != 0,
        parent: Id::try_from(number(4)?).ok()?,
        threads: number(20)?,
        start: number(22)?,
        arguments: number(48).unwrap_or(0),
        arguments_end: number(49).unwrap_or(0),
        status: number(52).and_then(|n| u32::try_from(n).ok()),
    })
}

/// The process that a task belongs to, and the parent of that process.
pub fn lineage(id: Id) -> Option<(Id, Id)> {
    let status = std::fs::read(format!("/proc/{id}/status")).ok()?;
    // The first line has the process's name, which may contain any byte but a newline. So the text is split as bytes.
    let mut lines = status.split(|byte| *byte == b'\n');
    let mut number = |name: &str| {
        let value = lines.find_map(|line| line.strip_prefix(name.as_bytes()))?;
        std::str::from_utf8(value).ok()?.trim().parse().ok()
    };
    Some((number("Tgid:")?, number("PPid:")?))
}

/// The ids of the user and the group with whose rights a task opens files.
pub fn file_ids(id: Id) -> Option<(u32, u32)> {
    let status = std::fs::read(format!("/proc/{id}/status")).ok()?;
    let mut lines = status.split(|byte| *byte == b'\n');
    // Each line has four ids: the real, the effective, the saved, and the one for opening files, which is taken here.
    let mut number = |name: &str| {
        let values = lines.find_map(|line| line.strip_prefix(name.as_bytes()))?;
        let values = std::str::from_utf8(values).ok()?;
        values.split_whitespace().nth(3)?.parse().ok()
    };
    Some((number("Uid:")?, number("Gid:")?))
}

fn is_own(id: Id) -> bool {
    use std::os::unix::fs::MetadataExt;
    let own = nix::unistd::geteuid();
    own.is_root()
        || std::fs::metadata(format!("/proc/{id}"))
            .is_ok_and(|process| process.uid() == own.as_raw())
}

/// The working directory of a process; `None` if it cannot be read.
pub fn directory(process: Id) -> Option<Vec<u8>> {
    let path = std::fs::read_link(format!("/proc/{process}/cwd")).ok()?;
    Some(path.into_os_string().into_vec())
}

/// The ids of all threads of a process.
pub fn threads(process: Id) -> Vec<Id> {
    ids(Path::new(&format!("/proc/{process}/task"))).collect()
}

/// The ids of the child processes that any thread of a process has.
pub fn children(process: Id) -> Vec<Id> {
    let lists = threads(process).into_iter().filter_map(|thread| {
        std::fs::read_to_string(format!("/proc/{process}/task/{thread}/children")).ok()
    });
    let lists: Vec<String> = lists.collect();
    let words = lists.iter().flat_map(|list| list.split_whitespace());
    words.filter_map(|word| word.parse().ok()).collect()
}

/// The number of bytes that a process has read and written by system calls (`/proc/PID/io`); `None` if the
/// kernel hides them.
pub fn moved_bytes(process: Id) -> Option<u64> {
    let text = std::fs::read_to_string(format!("/proc/{process}/io")).ok()?;
    let mut lines = text.lines();
    let mut number = |name: &str| {
        let value = lines.find_map(|line| line.strip_prefix(name))?;
        value.trim().parse::<u64>().ok()
    };
    Some(number("rchar:")?.saturating_add(number("wchar:")?))
}

/// The ids of the tasks that a directory of `/proc` has entries for.
pub fn ids(directory: &Path) -> impl Iterator<Item = Id> {
    let entries = std::fs::read_dir(directory);
    let names = entries.into_iter().flatten().flatten();
    names.filter_map(|entry| entry.file_name().to_str()?.parse().ok())
}

pub fn comm(id: Id) -> Option<Comm> {
    let name = std::fs::read(format!("/proc/{id}/comm")).ok()?;
    Some(Comm::new(name.strip_suffix(b"\n").unwrap_or(&name)))
}

/// The argument vector of a living process, of which at most `limit` bytes are returned; empty if the process has
/// ended.
pub fn cmdline(pid: u32, limit: u32) -> Argv {
    let length =
        |pid| Some(parse(&std::fs::read(format!("/proc/{pid}/stat")).ok()?)?.arguments_len());
    let file = File::open(format!("/proc/{pid}/cmdline"));
    let (bytes, cut) = file.map_or_else(|_| Default::default(), |file| read_at_most(file, limit));
    let full_len = if cut {
        length(pid).unwrap_or(0).max(limit.saturating_add(1))
    } else {
        bytes.len() as u32
    };
    Argv {
        bytes: bytes.into(),
        full_len: Some(full_len),
    }
}

/// The first 4096 bytes of a living process's arguments; `None` if the process has ended or if its name is not `comm`.
pub fn cmdline_of(pid: u32, comm: &Comm) -> Option<Argv> {
    let id = Id::try_from(pid).ok()?;
    let is_named = || self::comm(id).as_ref() == Some(comm);
    let argv = is_named().then(|| cmdline(pid, 4096));
    // A zombie has a name, but no arguments, because it has no memory any more.
    argv.filter(|argv| is_named() && !argv.bytes.is_empty())
}

/// Whether there is a process with this id. A zombie counts as one.
pub fn exists(pid: u32) -> bool {
    Path::new(&format!("/proc/{pid}")).exists()
}

/// The name by which `/proc` shows a task's pid namespace.
fn namespace(id: impl std::fmt::Display) -> Option<std::path::PathBuf> {
    std::fs::read_link(format!("/proc/{id}/ns/pid")).ok()
}

/// Whether the task is in the recorder's pid namespace, so that the ids that the task sees are those that the recorder
/// sees.
pub fn is_in_own_namespace(id: Id) -> bool {
    let own = namespace("self");
    own.is_some() && own == namespace(id)
}

/// Whether two tasks are in the same pid namespace.
pub fn are_in_one_namespace(one: Id, other: Id) -> bool {
    let of = namespace(one);
    of.is_some() && of == namespace(other)
}

/// The tag of the entry in a process's auxiliary vector that has the path of the executed file (getauxval(3)).
const AT_EXECFN: usize = 31;

/// The path that a stopped process passed to its last `execve`.
pub fn filename(id: Id) -> Option<Vec<u8>> {
    let pairs = std::fs::read(format!("/proc/{id}/auxv")).ok()?;
    let word = |bytes: &[u8]| Some(usize::from_ne_bytes(bytes.try_into().ok()?));
    let size = size_of::<usize>();
    let address = pairs.chunks_exact(2 * size).find_map(|pair| {
        let (tag, value) = pair.split_at_checked(size)?;
        (word(tag)? == AT_EXECFN).then(|| word(value))?
    })?;
    string(id, address)
}

/// Reads the memory of a stopped process at the address `from`. Returns the number of bytes that were read. This number
/// is less than requested if a page in between does not exist.
pub fn read_memory(id: Id, from: usize, room: &mut [u8]) -> Option<usize> {
    let local = libc::iovec {
        iov_base: room.as_mut_ptr().cast(),
        iov_len: room.len(),
    };
    let remote = libc::iovec {
        iov_base: std::ptr::with_exposed_provenance_mut(from),
        iov_len: room.len(),
    };
    // SAFETY: the kernel writes into `room` only, at most its length.
    let read = unsafe { libc::process_vm_readv(id, &raw const local, 1, &raw const remote, 1, 0) };
    usize::try_from(read).ok().filter(|read| *read > 0)
}

/// Reads a string from the memory of a process that waits or is stopped. The terminating NUL is left out.
pub fn string(id: Id, address: usize) -> Option<Vec<u8>> {
    let mut path = vec![0u8; libc::PATH_MAX.unsigned_abs() as usize];
    // The string may be at the end of the stack, right before an address without memory, where a longer read would
    // fail. So no read crosses the end of a page.
    let mut len = 0;
    while let Some(room) = path.get_mut(len..).filter(|room| !room.is_empty()) {
        let from = address.checked_add(len)?;
        let part = room.len().min(4096 - from % 4096);
        let room = room.get_mut(..part)?;
        let read = read_memory(id, from, room)?;
        if let Some(end) = room.iter().take(read).position(|byte| *byte == 0) {
            path.truncate(len + end);
            return Some(path);
        }
        len += read;
    }
    None
}

/// The largest number of bytes that are read from a new program's stack, to find its arguments.
const STACK: usize = 32 << 10;

/// Reads the path that was passed to the `execve` of a 64-bit process, and the arguments, from the stack with which the
/// new program begins. This stack has a count, the addresses of the arguments and of the environment (each list ends
/// with a zero), pairs of tags and values, and the strings. `None` if the path or the arguments are not in the `STACK`
/// bytes that are read, or if the stack has another form.
pub fn arguments(id: Id, stack: usize, limit: usize) -> Option<(Vec<u8>, Argv)> {
    let mut bytes = vec![0u8; STACK];
    let len = read_memory(id, stack, &mut bytes)?;
    bytes.truncate(len);
    let word = |at: usize| {
        let bytes = bytes.get(at..)?.first_chunk()?;
        Some(usize::from_ne_bytes(*bytes))
    };
    let size = size_of::<usize>();
    let count = word(0)?;
    let first = word(size)?;
    // `at` is the place of the zero that ends the addresses of the arguments. The addresses of the environment follow.
    // The first string of the environment comes right after the strings of the arguments.
    let mut at = size.checked_mul(count.checked_add(1)?)?;
    if count == 0 || word(at)? != 0 {
        return None;
    }
    at += size;
    let next = word(at)?;
    while word(at)? != 0 {
        at += size;
    }
    at += size;
    let mut filename = None;
    while word(at)? != 0 {
        if word(at)? == AT_EXECFN {
            filename = word(at + size);
        }
        at += 2 * size;
    }
    let filename = filename?;
    let end = if next == 0 { filename } else { next };
    let text = |from: usize| bytes.get(from.checked_sub(stack)?..);
    let path = text(filename)?;
    let path = path
        .get(..path.iter().position(|byte| *byte == 0)?)?
        .to_vec();
    let all = text(first)?.get(..end.checked_sub(first)?)?;
    let argv = Argv {
        bytes: all.get(..limit).unwrap_or(all).into(),
        full_len: u32::try_from(all.len()).ok(),
    };
    Some((path, argv))
}

/// The name (comm) that a task gets by an exec of this file (`kbasename` in the kernel).
pub fn comm_of(filename: &[u8]) -> Comm {
    Comm::new(filename.rsplit(|byte| *byte == b'/').next().unwrap_or(b""))
}

/// Whether an exec of this file gives a process of the present user other rights (setuid, setgid, capabilities),
/// provided that the process is not traced.
pub fn gains_rights(path: &Path) -> bool {
    use std::os::unix::fs::MetadataExt;
    let Ok(file) = std::fs::metadata(path) else {
        return false;
    };
    let sets = |bit: u32| file.mode() & bit != 0;
    let is = |uid: u32| nix::unistd::geteuid().as_raw() == uid;
    sets(libc::S_ISUID) && !is(file.uid())
        || sets(libc::S_ISGID) && nix::unistd::getegid().as_raw() != file.gid()
        || !is(0) && has_capabilities(path)
}

/// Whether a file has file capabilities (capabilities(7)).
fn has_capabilities(file: &Path) -> bool {
    // The attribute has at most 24 bytes in the kernel's present form, and 64 leave room for later ones.
    let mut value = [0u8; 64];
    rustix::fs::getxattr(file, c"security.capability", &mut value[..]).is_ok_and(|len| len > 0)
}

/// The snapshot event of COMMAND's process before its release. This process is the first task of the recording.
pub fn command(id: Id, time: Ktime) -> Snapshot {
    let pid = id.unsigned_abs();
    Snapshot {
        tid: Tid(pid),
        tgid: Tgid(pid),
        parent_tgid: Tgid(std::process::id()),
        start_time: time,
        ns_tid: Tid(pid),
        cgroup: CgroupId(0),
        comm: comm(id).unwrap_or_default(),
        argv: Argv::from_args([""; 0]),
        state: 1,
        on_cpu: false,
        kthread: false,
        followed: true,
        sum_exec_runtime: totals(id).map_or(0, |(run, ..)| run),
    }
}

/// A followed process that is still alive at the end of the recording.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Alive {
    /// The id of the process in `tr`'s own pid namespace.
    pub pid: u32,
    pub comm: Comm,
}

/// The ids and names of these living processes, without COMMAND's own process.
pub fn alive(processes: &[Id], command: Option<u32>) -> Vec<Alive> {
    let others = processes.iter().map(|id| (*id, id.unsigned_abs()));
    let others = others.filter(|(_, pid)| Some(*pid) != command);
    let alive = others.map(|(id, pid)| Alive {
        pid,
        comm: comm(id).unwrap_or_default(),
    });
    alive.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cut_argv_has_its_true_length() {
        let mut long = std::process::Command::new("sh");
        long.args(["-c", "read end", &"y".repeat(50_000)]);
        let mut child = long.stdin(std::process::Stdio::piped()).spawn().unwrap();
        let full = "sh\0-c\0read end\0".len() as u32 + 50_001;
        // The parent of a vfork continues shortly before the kernel sets the child's new arguments, so the test waits
        // for them.
        let latest = std::time::Instant::now() + std::time::Duration::from_secs(10);
        while cmdline(child.id(), 1 << 20).full_len != Some(full) {
            assert!(std::time::Instant::now() < latest, "no exec");
            std::thread::yield_now();
        }
        let (cut, whole) = (cmdline(child.id(), 4096), cmdline(child.id(), 1 << 20));
        drop(child.stdin.take());
        child.wait().unwrap();
        assert_eq!((cut.bytes.len(), cut.full_len), (4096, Some(full)));
        assert_eq!(
            (whole.bytes.len() as u32, whole.full_len),
            (full, Some(full))
        );
    }

    #[test]
    fn a_name_may_look_like_fields() {
        let rest = (5..=51)
            .map(|n| n.to_string())
            .collect::<Vec<_>>()
            .join(" ");
        let line = format!("7 (a) Z (b) Z 3 {rest} 256\n");
        let stat = parse(line.as_bytes()).unwrap();
        assert_eq!(stat.comm.bytes(), b"a) Z (b");
        assert!(stat.zombie);
        let numbers = (
            stat.parent,
            stat.threads,
            stat.start,
            stat.arguments,
            stat.status,
        );
        assert_eq!(numbers, (3, 20, 22, 48, Some(256)));
        assert_eq!(parse(b"7 (a"), None);
    }

    #[test]
    fn a_path_that_goes_on_is_not_taken_for_whole() {
        let path_of = |end: &[u8; 4]| {
            let mut stack = vec![0u8; STACK];
            let base = stack.as_ptr() as usize;
            let (argument, path) = (base + 512, base + STACK - end.len());
            let words = [1, argument, 0, 0, AT_EXECFN, path, 0];
            let words = words.iter().flat_map(|word| word.to_ne_bytes());
            stack.splice(..words.clone().count(), words);
            stack[STACK - end.len()..].copy_from_slice(end);
            assert_eq!(stack.as_ptr() as usize, base);
            let id = Id::try_from(std::process::id()).unwrap();
            arguments(id, base, 64).map(|(path, _)| path)
        };
        assert_eq!(path_of(b"/sh\0").as_deref(), Some(b"/sh".as_slice()));
        assert_eq!(path_of(b"/bin"), None);
    }
}
