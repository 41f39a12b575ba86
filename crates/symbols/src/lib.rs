//! The functions of addresses: in ELF files by blazesym, in the kernel by `/proc/kallsyms`, in the
//! code of JIT compilers by their `perf-PID.map`.
//!
//! [`serve`] runs in a process of its own: files of strangers, huge ones and those that shrink
//! while they are mapped end that process, not the recorder. Answers come line by line, so that
//! those before its end count.
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

/// The first argument of the process.
pub const SERVER: &str = "symbol-server";
/// The largest request in bytes.
const REQUEST: u64 = 256 << 20;
/// The longest name of a function that is kept, in bytes.
const NAME: usize = 1024;

/// Frames without names, each with its number. Its paths, and those of answers, are `OsString`s: serde
/// writes their bytes, and refuses a `PathBuf` that is not UTF-8.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Request {
    /// Paths where the files may be, in the order in which they are tried.
    pub paths: Vec<OsString>,
    pub modules: Vec<Module>,
    /// Addresses in the kernel.
    pub kernel: Vec<(u32, u64)>,
    /// Addresses in processes, by their pids.
    pub processes: Vec<(u32, Vec<(u32, u64)>)>,
    /// The time of the processes, ns since 1970. A JIT compiler's list that was last written before
    /// or after it is of another process with the same pid.
    pub lifetime: (u64, u64),
    /// Only the paths of the files are asked for.
    pub paths_only: bool,
}

/// A file and the frames in it.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Module {
    pub number: u32,
    /// Its build id; zeros at its end do not count. Empty: it has none.
    pub build_id: Vec<u8>,
    /// Without a build id, the file itself.
    pub file: Option<File>,
    /// Frames: number, offset in the file.
    pub frames: Vec<(u32, u64)>,
}

/// A file at a path, as stat(2) told it. Another one, or one that has changed, has other functions.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct File {
    pub path: OsString,
    /// `st_dev`.
    pub device: u64,
    /// `st_ino`.
    pub inode: u64,
    /// `st_size` in bytes.
    pub size: u64,
    /// `st_mtim` in ns since 1970; 0: before.
    pub modified: u64,
}

impl File {
    /// The file at a path. `None`: there is none, or no plain one.
    pub fn at(path: &Path) -> Option<File> {
        let file = std::fs::metadata(path).ok().filter(|it| it.is_file())?;
        let modified = i128::from(file.mtime()) * 1_000_000_000 + i128::from(file.mtime_nsec());
        Some(File {
            path: path.into(),
            device: file.dev(),
            inode: file.ino(),
            size: file.size(),
            modified: u64::try_from(modified).unwrap_or(0),
        })
    }

    /// It is still at its path, as it was.
    pub fn is_there(&self) -> bool {
        File::at(self.path.as_ref()).is_some_and(|now| now == *self)
    }
}

impl Request {
    /// The number of its frames.
    pub fn frames(&self) -> usize {
        let modules = self.modules.iter().map(|it| it.frames.len());
        let processes = self.processes.iter().map(|it| it.1.len());
        self.kernel.len() + modules.chain(processes).sum::<usize>()
    }
}

/// What was found.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Answer {
    /// The path of a module.
    Path(u32, OsString),
    /// The functions of a frame: the outermost one, then those inlined. A later answer of the
    /// same frame replaces the earlier one.
    Frame(u32, Vec<Function>),
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Function {
    /// Its name, demangled.
    pub name: String,
    /// The source file; empty: unknown.
    pub file: String,
    /// The line; 0: unknown.
    pub line: u32,
}

impl Function {
    /// A function of which only the name is known.
    fn named(name: &str) -> Function {
        let chars = name.char_indices();
        let fits = chars.take_while(|(at, char)| at + char.len_utf8() <= NAME);
        Function {
            name: fits.map(|(_, char)| char).collect(),
            ..Function::default()
        }
    }
}

/// Answers the request on `input`.
///
/// # Errors
/// It cannot be read, or `output` not written.
pub fn serve(input: impl Read, output: impl Write) -> io::Result<()> {
    let request: Request = serde_json::from_reader(BufReader::new(input.take(REQUEST)))?;
    let mut out = io::LineWriter::new(output);
    let mut tell = |answer: Answer| {
        serde_json::to_writer(&mut out, &answer)?;
        out.write_all(b"\n")
    };
    if !request.paths_only {
        tell_all(&request.kernel, Table::of_kernel, &mut tell)?;
        for (pid, frames) in &request.processes {
            let table = || Table::of_process(*pid, request.lifetime);
            tell_all(frames, table, &mut tell)?;
        }
    }
    #[cfg(feature = "elf")]
    elf::answer(&request, &mut tell)?;
    out.flush()
}

/// Answers the frames whose addresses are in the table.
fn tell_all(
    frames: &[(u32, u64)],
    table: impl FnOnce() -> Option<Table>,
    tell: &mut impl FnMut(Answer) -> io::Result<()>,
) -> io::Result<()> {
    if frames.is_empty() {
        return Ok(());
    }
    let Some(table) = table() else {
        return Ok(());
    };
    for (frame, address) in frames {
        if let Some(name) = table.name(*address) {
            tell(Answer::Frame(*frame, vec![Function::named(name)]))?;
        }
    }
    Ok(())
}

/// A JIT compiler lists the functions of this process.
pub fn has_list(pid: u32) -> bool {
    table::path(pid).exists()
}
