//! A tracee's facts, from `/proc`.

use std::io::Read;

use tr_format::event::Comm;

use super::sys::Id;

/// A task's totals (`/proc/PID/schedstat`): run time, time in run queues, slices.
pub fn totals(id: Id) -> Option<(u64, u64, u64)> {
    let mut text = [0; 80];
    let mut file = std::fs::File::open(format!("/proc/{id}/schedstat")).ok()?;
    let len = file.read(&mut text).ok()?;
    let text = std::str::from_utf8(text.get(..len)?).ok()?;
    let mut numbers = text.split_whitespace().map(str::parse);
    let mut next = || numbers.next()?.ok();
    Some((next()?, next()?, next()?))
}

/// A task's name.
pub fn comm(id: Id) -> Option<Comm> {
    let name = std::fs::read(format!("/proc/{id}/comm")).ok()?;
    Some(Comm::new(name.strip_suffix(b"\n").unwrap_or(&name)))
}

/// The pid namespace of a task.
fn namespace(id: impl std::fmt::Display) -> Option<std::path::PathBuf> {
    std::fs::read_link(format!("/proc/{id}/ns/pid")).ok()
}

/// Whether a task's ids are those that the recorder sees.
pub fn is_in_own_namespace(id: Id) -> bool {
    let own = namespace("self");
    own.is_some() && own == namespace(id)
}

/// Whether two tasks have the same pid namespace.
pub fn are_in_one_namespace(one: Id, other: Id) -> bool {
    let of = namespace(one);
    of.is_some() && of == namespace(other)
}

/// The auxiliary vector's tag of the executed file's name (getauxval(3)).
const AT_EXECFN: usize = 31;

/// The path that the last `execve` of a stopped process was given.
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

/// A string in the memory of a stopped process, without its NUL.
fn string(id: Id, address: usize) -> Option<Vec<u8>> {
    let mut path = vec![0u8; libc::PATH_MAX.unsigned_abs() as usize];
    // The string may lie at the end of the stack: no read goes beyond its page at once.
    let mut len = 0;
    while let Some(room) = path.get_mut(len..).filter(|room| !room.is_empty()) {
        let from = address.checked_add(len)?;
        let part = room.len().min(4096 - from % 4096);
        let room = room.get_mut(..part)?;
        let local = libc::iovec {
            iov_base: room.as_mut_ptr().cast(),
            iov_len: room.len(),
        };
        let remote = libc::iovec {
            iov_base: std::ptr::with_exposed_provenance_mut(from),
            iov_len: room.len(),
        };
        // SAFETY: the kernel writes into `room` only, at most its length.
        let read =
            unsafe { libc::process_vm_readv(id, &raw const local, 1, &raw const remote, 1, 0) };
        let read = usize::try_from(read).ok().filter(|read| *read > 0)?;
        if let Some(end) = room.iter().take(read).position(|byte| *byte == 0) {
            path.truncate(len + end);
            return Some(path);
        }
        len += read;
    }
    None
}

/// The name that an exec of this file gives (`kbasename`).
pub fn comm_of(filename: &[u8]) -> Comm {
    Comm::new(filename.rsplit(|byte| *byte == b'/').next().unwrap_or(b""))
}

/// The executed file, which would give its process other rights if it were not traced.
pub fn gains_rights(id: Id) -> bool {
    use std::os::unix::fs::MetadataExt;
    let Ok(file) = std::fs::metadata(format!("/proc/{id}/exe")) else {
        return false;
    };
    let sets = |bit: u32| file.mode() & bit != 0;
    let is = |uid: u32| nix::unistd::geteuid().as_raw() == uid;
    sets(libc::S_ISUID) && !is(file.uid())
        || sets(libc::S_ISGID) && nix::unistd::getegid().as_raw() != file.gid()
}
