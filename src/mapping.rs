//! Maps files into memory: a trace is read in the page cache, without a call and a copy for each of its frames.

use std::fs::File;
use std::io;
use std::path::Path;
use std::sync::atomic::{AtomicPtr, AtomicUsize, Ordering};
use std::sync::{Mutex, Once, PoisonError};

use memmap2::{Advice, Mmap};

use crate::errors;
use crate::errors::UNREADABLE_STATUS;
use tr_text::called::TR;

/// A regular file that is mapped for reading, with its length at that time.
///
/// The file may change while it is mapped:
///
/// * If the file is truncated, an access to a page beyond its new end raises SIGBUS. The handler
///   reports `tr: FILE: truncated while it was read` and ends the process with exit
///   status 2, as for any file that cannot be read.
/// * The last page of a truncated file reads as zeros after the file's end. The checksums of
///   the frames there show the damage.
/// * If bytes are overwritten in place, a checksum shows it, because checksums are verified
///   before each decoding. (`tr` itself only replaces whole files.) Bytes may still change
///   between the verification and the decoding. Every decoder checks each value against its
///   limit, so the worst result is a wrong number or an error.
///
/// Mapped pages count as the process's RSS, but they belong to the page cache, which the
/// kernel reclaims when it needs memory.
#[derive(Debug)]
pub struct Mapping {
    bytes: Mmap,
    note: &'static Note,
}

impl Mapping {
    /// Maps a file into memory for reading. `path` is the file's name in messages.
    ///
    /// # Errors
    /// The file is empty or no regular file, or its file system has no mappings. It may still be possible to read the
    /// file by calls.
    pub fn new(file: &File, path: &Path) -> io::Result<Mapping> {
        // The file may change while it is mapped; the description of the type lists the consequences. An access to a
        // truncated page ends the process before the access returns. SAFETY: the mapping is only read, and no byte of
        // it is used as a memory bound without a check.
        let bytes = unsafe { Mmap::map(file)? };
        if bytes.is_empty() {
            return Err(io::ErrorKind::InvalidInput.into());
        }
        // Longer read-ahead: a trace outside the page cache was read in a fifth of the
        // time. Without the advice reading works too.
        let _ = bytes.advise(Advice::Sequential);
        listen();
        let name = errors::shown(path);
        Ok(Mapping {
            note: Note::leave(&bytes, &name),
            bytes,
        })
    }
}

impl AsRef<[u8]> for Mapping {
    fn as_ref(&self) -> &[u8] {
        &self.bytes
    }
}

impl Drop for Mapping {
    fn drop(&mut self) {
        // The kernel may give this address range to another mapping. With length 0, the SIGBUS handler no longer takes
        // an address in the range for one of this file.
        self.note.len.store(0, Ordering::Release);
    }
}

/// An entry in the list of mappings that the signal handler for SIGBUS searches. Entries are few and never
/// freed, so the handler can walk the list at any time.
#[derive(Debug)]
struct Note {
    start: usize,
    /// The length of the mapped file in bytes; 0 when the mapping no longer exists.
    len: AtomicUsize,
    message: Box<[u8]>,
    next: Option<&'static Note>,
}

static NOTES: AtomicPtr<Note> = AtomicPtr::new(std::ptr::null_mut());

impl Note {
    fn leave(bytes: &[u8], name: &str) -> &'static Note {
        use std::io::IsTerminal;
        // The line on the terminal may show a progress bar, which is cleared first.
        let clear = if io::stderr().is_terminal() {
            "\r\x1b[2K"
        } else {
            ""
        };
        let what = "truncated while it was read";
        let message = format!("{clear}{TR}: {name}: {what}\n").into_bytes();
        // Without the lock, two threads could link to the same entry of the list, and one of their entries would be
        // lost.
        static LEAVING: Mutex<()> = Mutex::new(());
        let _alone = LEAVING.lock().unwrap_or_else(PoisonError::into_inner);
        let note: &'static Note = Box::leak(Box::new(Note {
            start: bytes.as_ptr() as usize,
            len: AtomicUsize::new(bytes.len()),
            message: message.into_boxed_slice(),
            next: Note::latest(),
        }));
        NOTES.store(std::ptr::from_ref(note).cast_mut(), Ordering::Release);
        note
    }

    fn latest() -> Option<&'static Note> {
        // SAFETY: the pointer is null, or that of a leaked entry, which never changes except for its atomic length.
        unsafe { NOTES.load(Ordering::Acquire).as_ref() }
    }

    /// The error message for the mapped file that contains an address, if there is one. The function calls and
    /// locks nothing that a signal handler must not use.
    fn at(address: usize) -> Option<&'static [u8]> {
        let mut next = Note::latest();
        while let Some(note) = next {
            let len = note.len.load(Ordering::Acquire);
            if address.checked_sub(note.start).is_some_and(|at| at < len) {
                return Some(&note.message);
            }
            next = note.next;
        }
        None
    }
}

/// Installs the handler of SIGBUS, at the first call only.
fn listen() {
    static LISTENING: Once = Once::new();
    LISTENING.call_once(|| {
        // `gone` runs on the thread's signal stack, if the thread has one. The previous action is not needed. SAFETY:
        // zeros are a valid `action`, and `gone` is async-signal-safe and has the arguments of SA_SIGINFO.
        unsafe {
            let mut action: libc::sigaction = std::mem::zeroed();
            action.sa_sigaction = gone as *const () as usize;
            action.sa_flags = libc::SA_SIGINFO | libc::SA_ONSTACK;
            libc::sigemptyset(&mut action.sa_mask);
            // If this fails, SIGBUS kills the process, as it does without a handler.
            libc::sigaction(libc::SIGBUS, &action, std::ptr::null_mut());
        }
    });
}

/// The handler of SIGBUS, which is raised when a mapped trace has been truncated: it prints the error and ends
/// the process.
extern "C" fn gone(_: libc::c_int, info: *mut libc::siginfo_t, _: *mut libc::c_void) {
    // The kernel passes a valid `info`, which for SIGBUS has an address. SAFETY: `info` is valid, a signal handler may
    // make these calls, and the message of an entry is never freed.
    unsafe {
        if let Some(message) = Note::at((*info).si_addr() as usize) {
            libc::write(libc::STDERR_FILENO, message.as_ptr().cast(), message.len());
            libc::_exit(libc::c_int::from(UNREADABLE_STATUS));
        }
        // The address is in none of our mappings. The default action is restored; the access is repeated and triggers
        // it.
        libc::signal(libc::SIGBUS, libc::SIG_DFL);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;

    #[test]
    fn an_address_belongs_to_the_mapping_it_is_in() {
        let map = |name: &str, bytes: &[u8]| {
            let mut file = tempfile::tempfile().unwrap();
            file.write_all(bytes).unwrap();
            Mapping::new(&file, Path::new(name)).unwrap()
        };
        let one = map("one\x1b[2J", &[1; 5000]);
        let two = map("two", &[2; 3]);
        assert_eq!((one.as_ref(), two.as_ref()), (&[1; 5000][..], &[2; 3][..]));
        let at = |mapping: &Mapping, byte: usize| {
            let said = Note::at(mapping.as_ref().as_ptr() as usize + byte);
            said.map(|said| String::from_utf8_lossy(said).into_owned())
        };
        let said = at(&one, 4999).unwrap();
        assert!(said.contains("one\\u{1b}[2J: truncated"), "{said}");
        assert!(at(&two, 2).unwrap().contains("two: truncated"));
        assert_eq!(Note::at(0), None);
        let start = one.as_ref().as_ptr() as usize;
        drop(one);
        assert_eq!(Note::at(start), None);
        assert!(at(&two, 0).is_some());
    }

    #[test]
    fn empty_files_and_devices_cannot_be_mapped() {
        let empty = tempfile::tempfile().unwrap();
        assert!(Mapping::new(&empty, Path::new("empty")).is_err());
        let null = File::open("/dev/null").unwrap();
        assert!(Mapping::new(&null, Path::new("null")).is_err());
    }
}
