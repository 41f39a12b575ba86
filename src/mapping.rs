//! Files as memory: a trace is read where the system's page cache has it, without
//! a call and a copy for each of its frames.

use std::fs::File;
use std::io;
use std::path::Path;
use std::sync::atomic::{AtomicPtr, AtomicUsize, Ordering};
use std::sync::{Mutex, Once, PoisonError};

use memmap2::{Advice, Mmap};

use crate::open::UNREADABLE;

/// A regular file, mapped for reading, as long as it was when it was opened.
///
/// What lies behind the pages may change, which a file read by `pread` stands and
/// most users of a mapping do not:
///
/// * When the file becomes shorter (`truncate`, a tool that writes it anew in place),
///   touching a page that is gone raises SIGBUS. A handler for that writes `tr: FILE:
///   has become shorter while it was being read` and ends the process with exit
///   status 2, as for any file that cannot be read. Nothing that was under way is
///   completed.
/// * Behind its new end, a file's last page reads as zeros. A file that has lost less
///   than a page may so end with frames that are damaged; their checksums say so.
/// * Bytes that are overwritten in place (`tr` itself never does: it puts whole files
///   in the place of others) are found by the checksum that precedes each decoding,
///   unless that happens between the two. All decoders hold each value to its limits
///   as they read it, so that the worst is a wrong number or an error.
///
/// Pages of a mapping count as resident memory of the process (`RSS`), but they are the
/// page cache's: the system takes them back when it needs them.
#[derive(Debug)]
pub struct Mapping {
    bytes: Mmap,
    note: &'static Note,
}

impl Mapping {
    /// Maps `file`, which is told of by the name `path`.
    ///
    /// # Errors
    /// When the file is empty, is no regular file, or is of a file system that maps
    /// none. It may still be possible to read it.
    pub fn new(file: &File, path: &Path) -> io::Result<Mapping> {
        // That the memory may change or vanish meanwhile is what this type's description
        // is about: vanished pages end the process before anything comes of them.
        // SAFETY: it is only read, and no byte's word is taken for the bounds of memory.
        let bytes = unsafe { Mmap::map(file)? };
        if bytes.is_empty() {
            return Err(io::ErrorKind::InvalidInput.into());
        }
        // The disk reads ahead further: of a trace that was not in memory, it brought
        // the pages in a fifth of the time. Advice that is not taken does no harm.
        let _ = bytes.advise(Advice::Sequential);
        listen();
        let name = tr_report::escape::text(path.as_os_str().as_encoded_bytes());
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
        // Something else may be there soon.
        self.note.len.store(0, Ordering::Release);
    }
}

/// What the handler knows of a mapping. A few of them are made and none is freed, so
/// that the handler may go from one to the next at any time.
#[derive(Debug)]
struct Note {
    start: usize,
    /// 0 when the mapping is no more.
    len: AtomicUsize,
    message: Box<[u8]>,
    next: Option<&'static Note>,
}

/// The latest note.
static NOTES: AtomicPtr<Note> = AtomicPtr::new(std::ptr::null_mut());

impl Note {
    fn leave(bytes: &[u8], name: &str) -> &'static Note {
        use std::io::IsTerminal;
        // There may be a progress bar.
        let clear = match io::stderr().is_terminal() {
            true => "\r\x1b[2K",
            false => "",
        };
        let what = "has become shorter while it was being read";
        let message = format!("{clear}tr: {name}: {what}\n").into_bytes();
        // One at a time, so that none is left out of the list.
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
        // SAFETY: null, or a leaked note; nobody writes to one but by its atomic length.
        unsafe { NOTES.load(Ordering::Acquire).as_ref() }
    }

    /// The message for whatever mapping an address is in. Calls nothing and locks
    /// nothing.
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

/// Puts the handler in its place, once.
fn listen() {
    static LISTENING: Once = Once::new();
    LISTENING.call_once(|| {
        // `gone` runs on the thread's signal stack, if that has one; null says that nobody
        // asks for the handler before.
        // SAFETY: zeros are a valid `action`, and `gone` does what SA_SIGINFO's may do.
        unsafe {
            let mut action: libc::sigaction = std::mem::zeroed();
            action.sa_sigaction = gone as *const () as usize;
            action.sa_flags = libc::SA_SIGINFO | libc::SA_ONSTACK;
            libc::sigemptyset(&mut action.sa_mask);
            // Should it fail, SIGBUS kills, as it would without us.
            libc::sigaction(libc::SIGBUS, &action, std::ptr::null_mut());
        }
    });
}

/// The handler of SIGBUS.
extern "C" fn gone(_: libc::c_int, info: *mut libc::siginfo_t, _: *mut libc::c_void) {
    // The system passes a valid `info`, which for SIGBUS has an address.
    // SAFETY: `info` is; these may be called here, and a note's message is never freed.
    unsafe {
        if let Some(message) = Note::at((*info).si_addr() as usize) {
            libc::write(libc::STDERR_FILENO, message.as_ptr().cast(), message.len());
            libc::_exit(libc::c_int::from(UNREADABLE));
        }
        // Not ours: back to what happens without a handler, which the same access
        // brings about once more.
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
        assert!(said.contains("one\\u{1b}[2J: has become shorter"), "{said}");
        assert!(at(&two, 2).unwrap().contains("two: has become shorter"));
        assert_eq!(Note::at(0), None);
        let start = one.as_ref().as_ptr() as usize;
        drop(one);
        assert_eq!(Note::at(start), None);
        assert!(at(&two, 0).is_some());
    }

    #[test]
    fn what_cannot_be_mapped_is_an_error() {
        let empty = tempfile::tempfile().unwrap();
        assert!(Mapping::new(&empty, Path::new("empty")).is_err());
        let null = File::open("/dev/null").unwrap();
        assert!(Mapping::new(&null, Path::new("null")).is_err());
    }
}
