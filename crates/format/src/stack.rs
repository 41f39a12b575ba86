//! Samples of stacks: the mapped files, the frames in them, the stacks, the names of functions.
//!
//! Files, frames and stacks have numbers, from 1 in the order of their first use in the trace.
//! Each stack is stored once: as its caller's stack, and one frame more. A number whose
//! definition is in a damaged part of the trace is unknown.

use crate::event::{Tgid, Tid};

/// The most frames that a sample adds to the stacks before.
pub const DEPTH: usize = 512;
/// The most functions of a frame: the outermost one, and those inlined at the address.
pub const INLINED: usize = 64;
/// Longest build id in bytes.
pub const BUILD_ID: usize = 64;

/// A file that was mapped executable, by its build id or, without one, by its path and identity.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Module {
    /// Its number. A later event of the same number has more of it.
    pub number: u32,
    /// Its build id (`NT_GNU_BUILD_ID`), at most [`BUILD_ID`] bytes; empty: the kernel found none.
    pub build_id: Box<[u8]>,
    /// A path at which the file was found; empty: none is known.
    pub path: Box<[u8]>,
    /// The file that was at that path, if there is no build id. Another one has other functions.
    pub file: Option<FileId>,
}

/// What stat(2) tells of a file, so that a file that has changed is not taken for it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct FileId {
    /// `st_dev`.
    pub device: u64,
    /// `st_ino`.
    pub inode: u64,
    /// `st_size` in bytes.
    pub size: u64,
    /// `st_mtim` in ns since 1970.
    pub modified: u64,
}

/// The place of an instruction.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Place {
    /// An address in the kernel.
    Kernel(u64),
    /// An address in the memory of a process, in no file that is known.
    Process(Tgid, u64),
    /// An offset in the file of a [`Module`].
    Module(u32, u64),
}

/// What a task did when its stack was sampled.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Doing {
    /// It was on a CPU.
    #[default]
    OnCpu,
    /// It was off CPU until the event's time.
    OffCpu,
}

/// The stack of a task at the event's time, or at the switch-out before it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Sample {
    /// The task.
    pub tid: Tid,
    /// Its process.
    pub tgid: Tgid,
    /// On a CPU, or off CPU.
    pub doing: Doing,
    /// The time that it stands for, in ns: the sampling period, or the time off CPU.
    pub ns: u64,
    /// The stack was deeper than the programs copy: its outermost frames are missing.
    pub cut: bool,
    /// The number of the stack that it continues; 0: none.
    pub base: u32,
    /// The number of the first new stack. The others follow in sequence.
    pub first: u32,
    /// The frames of the new stacks on top of `base`, outermost first.
    pub frames: Box<[u32]>,
    /// The number of the first new frame. The others follow in sequence.
    pub first_frame: u32,
    /// The places of the new frames, in the order of their first use in `frames`.
    pub places: Box<[Place]>,
}

impl Sample {
    /// The number of its stack; 0: it has none.
    pub fn stack(&self) -> u32 {
        match u32::try_from(self.frames.len()) {
            Ok(0) | Err(_) => self.base,
            Ok(count) => self.first.saturating_add(count - 1),
        }
    }

    /// The numbers and the places of the new frames.
    pub fn new_frames(&self) -> impl Iterator<Item = (u32, Place)> + '_ {
        let places = (0u32..).zip(&self.places);
        places.map(|(at, place)| (self.first_frame.saturating_add(at), *place))
    }
}

/// The functions at a frame's place.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Symbol {
    /// The frame's number.
    pub frame: u32,
    /// The outermost function, then the functions inlined at that place, at most [`INLINED`].
    pub functions: Box<[Function]>,
}

/// A function in the source.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Function {
    /// Its name, demangled.
    pub name: Box<[u8]>,
    /// The source file; empty: unknown.
    pub file: Box<[u8]>,
    /// The line; 0: unknown.
    pub line: u32,
}
