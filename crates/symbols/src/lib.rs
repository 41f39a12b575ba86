//! Finds the functions of addresses: in ELF files with blazesym, in the kernel with `/proc/kallsyms`, in
//! the code of JIT compilers with their `perf-PID.map`.
//!
//! [`serve`] runs in a process of its own. A malicious file, a huge file, or one that shrinks while it is mapped can
//! end that process, but not the recorder. Each answer is one line, so the answers that were sent before are still
//! used.
#![forbid(unsafe_code)]

#[cfg(feature = "elf")]
mod elf;
mod table;

use std::ffi::OsString;
use std::io::{self, BufReader, Read, Write};
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use serde::{Deserialize, Serialize};

use table::Table;

/// The first argument with which `tr` executes itself as the process that finds functions.
pub const SERVER: &str = "symbol-server";
/// The largest size in bytes of a request to find functions.
const REQUEST: u64 = 256 << 20;
/// The largest length in bytes of a function's name. The rest of a longer name is left out.
const NAME: usize = 1024;

/// A request for the functions of numbered stack frames. The paths in requests and in answers are
/// `OsString`s: serde writes their bytes, whereas it refuses a `PathBuf` that is not UTF-8.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Request {
    /// The paths at which the requested files may be, in the order in which they are tried.
    pub paths: Vec<OsString>,
    pub modules: Vec<Module>,
    /// The frames in the kernel: the number and the address of each.
    pub kernel: Vec<(u32, u64)>,
    /// The frames in the generated code of processes: the pid, then the number and the address of each frame.
    pub processes: Vec<(u32, Vec<(u32, u64)>)>,
    /// The time in which the processes of the request ran. A JIT compiler's list of functions that was last
    /// written before or after that time belongs to another process with the same pid.
    pub lifetime: Lifetime,
    /// Whether only the paths of the modules' files are requested, and not the functions.
    pub paths_only: bool,
}

/// The time in which some processes ran, from the first one's start to the last one's end.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
pub struct Lifetime {
    /// The time at which the first of the processes started, in ns since 1970.
    pub begin: u64,
    /// The time at which the last of the processes ended, in ns since 1970.
    pub end: u64,
}

/// A program file or library, and the frames whose addresses are in it.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Module {
    pub number: u32,
    /// The build id of the module's file; zeros at its end do not matter. The build id is empty if the file has none.
    pub build_id: Vec<u8>,
    /// The identity of the module's file, if the file has no build id.
    pub file: Option<File>,
    /// The frames of stacks that are in the module's file: the number of each, and its offset in the file.
    pub frames: Vec<(u32, u64)>,
}

/// The identity of a module's file from stat(2). If the file was changed or replaced, its identity differs, and no
/// functions are taken from it, because they would be the wrong ones.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct File {
    pub path: OsString,
    /// The device of the file (`st_dev`).
    pub device: u64,
    /// The number of the file's inode (`st_ino`).
    pub inode: u64,
    /// The size of the file in bytes (`st_size`).
    pub size: u64,
    /// The time of the file's last change (`st_mtim`) in ns since 1970; 0 for a time before 1970.
    pub modified: u64,
}

impl File {
    /// The file at a path; `None` if there is none or if it is not a regular file.
    pub fn at(path: &Path) -> Option<File> {
        let file = std::fs::metadata(path).ok().filter(|meta| meta.is_file())?;
        let modified = i128::from(file.mtime()) * 1_000_000_000 + i128::from(file.mtime_nsec());
        Some(File {
            path: path.into(),
            device: file.dev(),
            inode: file.ino(),
            size: file.size(),
            modified: u64::try_from(modified).unwrap_or(0),
        })
    }

    /// Whether the file is still at the given path and has not changed.
    pub fn is_there(&self) -> bool {
        File::at(self.path.as_ref()).is_some_and(|now| now == *self)
    }
}

impl Request {
    /// The number of frames whose functions are requested.
    pub fn frames(&self) -> usize {
        let modules = self.modules.iter().map(|module| module.frames.len());
        let processes = self.processes.iter().map(|(_, frames)| frames.len());
        self.kernel.len() + modules.chain(processes).sum::<usize>()
    }
}

/// An answer of the process that finds functions: the path of a module, or the functions of a frame.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Answer {
    /// The path at which the file of a module was found, with the number of the module.
    Path(u32, OsString),
    /// The functions of a stack frame, with the frame's number: the outermost function, then the functions inlined in
    /// it. A later answer for the same frame replaces the earlier one.
    Frame(u32, Vec<Function>),
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Function {
    /// The demangled name of the function.
    pub name: String,
    /// The source file of the function; empty if it is unknown.
    pub file: String,
    /// The line in the source file to which the frame's address belongs; 0 if it is unknown.
    pub line: u32,
}

impl Function {
    /// Makes a function without a source line. Its name is cut to at most [`NAME`] bytes.
    fn named(name: &str) -> Function {
        Function {
            name: name
                .char_indices()
                .take_while(|(at, char)| at + char.len_utf8() <= NAME)
                .map(|(_, char)| char)
                .collect(),
            ..Function::default()
        }
    }
}

/// Reads one request from `input` and writes its answers to `output`.
///
/// # Errors
/// The request cannot be read, or the answers cannot be written.
pub fn serve(input: impl Read, output: impl Write) -> io::Result<()> {
    let request: Request = serde_json::from_reader(BufReader::new(input.take(REQUEST)))?;
    let mut out = io::LineWriter::new(output);
    let mut send = |answer: Answer| {
        serde_json::to_writer(&mut out, &answer)?;
        out.write_all(b"\n")
    };
    if !request.paths_only {
        answer_all(&request.kernel, Table::of_kernel, &mut send)?;
        for (pid, frames) in &request.processes {
            let table = || Table::of_process(*pid, request.lifetime);
            answer_all(frames, table, &mut send)?;
        }
    }
    #[cfg(feature = "elf")]
    elf::answer(&request, &mut send)?;
    out.flush()
}

/// Sends answers for those frames whose addresses are in a table of functions.
fn answer_all(
    frames: &[(u32, u64)],
    table: impl FnOnce() -> Option<Table>,
    send: &mut impl FnMut(Answer) -> io::Result<()>,
) -> io::Result<()> {
    if frames.is_empty() {
        return Ok(());
    }
    let Some(table) = table() else {
        return Ok(());
    };
    for (frame, address) in frames {
        if let Some(name) = table.name(*address) {
            send(Answer::Frame(*frame, vec![Function::named(name)]))?;
        }
    }
    Ok(())
}

/// Whether a JIT compiler has written a list of the functions of the process with this pid.
pub fn has_list(pid: u32) -> bool {
    table::path(pid).exists()
}
