//! The events about sampled stacks of tasks: the mapped files, the frames in these files, the stacks, the names of
//! functions.
//!
//! Files, frames and stacks have numbers, from 1 in the order of their first use in the trace. Each stack is stored
//! once, as the number of the caller's stack and one more frame. A number whose definition is in a damaged part of
//! the trace is unknown.

use serde::ser::{SerializeMap, Serializer};
use serde::Serialize;

use crate::codec::{fitting, refuse_if, Codec, Col, Step, Stored, Text, TextColumns};
use crate::error::within;
use crate::ids::{Ktime, Tgid, Tid};
use crate::{limits, show, Fault};

/// The largest number of frames that one sampled stack may have besides those of the earlier stack that it continues.
pub const DEPTH: usize = 512;
/// The largest number of functions for one frame of a sampled stack: the outermost function, and the functions
/// inlined at the address.
pub const MOST_INLINED: usize = 64;
/// The longest build id of an executable file that is stored, in bytes.
pub const BUILD_ID: usize = 64;

/// A file whose code recorded tasks have executed: it was mapped executable. It is identified by its build id or, if
/// it has none, by its path and its identity from stat(2).
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Module {
    /// The number of the executed file. A later event with the same number replaces this one.
    pub number: u32,
    /// The build id of the executed file (`NT_GNU_BUILD_ID`), at most [`BUILD_ID`] bytes; empty if the kernel found
    /// none.
    #[serde(serialize_with = "show::hex")]
    pub build_id: Box<[u8]>,
    /// A path at which the executed file was found; empty if none is known.
    #[serde(serialize_with = "show::text")]
    pub path: Box<[u8]>,
    /// The identity of the file that was at the path, if the file has no build id. The identity shows whether another
    /// file, with other functions, has replaced the recorded file.
    pub file: Option<FileId>,
}

/// The identity of a file from stat(2), so that a changed file is not mistaken for the recorded one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize)]
pub struct FileId {
    /// The number of the device that contains the file (`st_dev`).
    pub device: u64,
    /// The number of the inode of the executed file (`st_ino`).
    pub inode: u64,
    /// The size of the executed file in bytes (`st_size`).
    pub size: u64,
    /// The time of the last change of the executed file (`st_mtim`), in ns since 1970.
    pub modified: u64,
}

/// The place of the instruction that a frame of a sampled stack points to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Place {
    /// The frame's instruction is at this address in the kernel.
    Kernel(u64),
    /// The frame's instruction is at this address in the memory of this process, and in no known file.
    Process(Tgid, u64),
    /// The frame's instruction is in the executable file of the [`Module`] with this number, at this offset.
    Module(u32, u64),
}

/// Whether a task was on a CPU or off CPU when its stack was sampled.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Doing {
    /// The task was on a CPU when its stack was sampled.
    #[default]
    OnCpu,
    /// The stack was sampled when the task was switched out. The task was off CPU from then to the event's time.
    OffCpu,
}

/// The sampled stack of a task, taken at the event's time or, if the task was off CPU, at its switch-out.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Sample {
    /// The task whose stack was sampled.
    pub tid: Tid,
    /// The process of the task whose stack was sampled.
    pub tgid: Tgid,
    /// Whether the task was on a CPU or off CPU when its stack was sampled.
    #[serde(rename = "off_cpu", serialize_with = "off_cpu")]
    pub doing: Doing,
    /// The time that the sample of the stack stands for, in ns: the sampling period, or the time off CPU.
    pub ns: u64,
    /// Whether the outermost frames of the sampled stack are missing because the stack was deeper than the BPF programs
    /// copy.
    pub cut: bool,
    /// The number of the earlier stack that forms the outer part of this stack; 0 if there is none.
    pub base: u32,
    /// The number of the first new stack that this sample defines. The other new stacks, each with one more frame,
    /// have the numbers after it.
    pub first: u32,
    /// The numbers of the frames that the new stacks add to the earlier stack `base`, the outermost frame first.
    pub frames: Box<[u32]>,
    /// The number of the first new frame that this sample defines. The other new frames have the numbers after it.
    pub first_frame: u32,
    /// The places of the new frames in code, in the order in which `frames` first uses them.
    pub places: Box<[Place]>,
}

impl Sample {
    /// The number of the whole sampled stack, which includes the frames of the earlier stack `base`; 0 if the sampled
    /// stack has no frames.
    pub fn stack(&self) -> u32 {
        match u32::try_from(self.frames.len()) {
            Ok(0) | Err(_) => self.base,
            Ok(count) => self.first.saturating_add(count - 1),
        }
    }

    /// The numbers of the new frames that the sample defines, each with its place in code.
    pub fn new_frames(&self) -> impl Iterator<Item = (u32, Place)> + '_ {
        let places = (0u32..).zip(&self.places);
        places.map(|(at, place)| (self.first_frame.saturating_add(at), *place))
    }
}

/// The names of the functions that a frame of a sampled stack is in.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Symbol {
    /// The number of the frame whose functions the event names. A later event for the same frame replaces this one.
    pub frame: u32,
    /// The outermost function at the frame's address, then the functions that are inlined there, at most
    /// [`MOST_INLINED`].
    pub functions: Box<[Function]>,
}

/// A function of a program, as its debug information names it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Function {
    /// The demangled name of the function of the program.
    #[serde(serialize_with = "show::text")]
    pub name: Box<[u8]>,
    /// The source file in which the function is defined; empty if it is unknown.
    #[serde(serialize_with = "show::text")]
    pub file: Box<[u8]>,
    /// The line in the source file to which the frame's address belongs; 0 if it is unknown.
    pub line: u32,
}

/// The stored value for a new frame of a sampled stack, in place of the number of a known frame.
const NEW_FRAME: u64 = 0;
/// The stored value for a place in the kernel. A place in a mapped file has the value 2 * (number of the file + 1). A
/// place in the memory of a process has the value 2 * (process id + 1) + 1.
const KERNEL: u64 = 0;

impl Place {
    fn split(self) -> (u64, u64) {
        match self {
            Place::Kernel(address) => (KERNEL, address),
            Place::Process(tgid, address) => ((u64::from(tgid.0) + 1) << 1 | 1, address),
            Place::Module(number, offset) => ((u64::from(number) + 1) << 1, offset),
        }
    }

    fn of(space: u64, at: u64) -> Option<Place> {
        if space == KERNEL {
            return Some(Place::Kernel(at));
        }
        let number = u32::try_from((space >> 1).checked_sub(1)?).ok()?;
        Some(match space & 1 {
            1 => Place::Process(Tgid(number), at),
            _ => Place::Module(number, at),
        })
    }

    fn fields<C: Codec>(&mut self, c: &mut C) -> Step {
        let (mut space, mut at) = self.split();
        c.int(Col::Frames, &mut space)?;
        let last = c.known().offsets.get(&space).copied();
        c.change(Col::FrameOffset, &mut at, last.unwrap_or(0))?;
        c.known().offsets.insert(space, at);
        *self = Place::of(space, at).ok_or(Fault::Content("no such file of a frame"))?;
        Ok(())
    }
}

/// Writes or reads the number of new stacks or of functions in an event. Their sum over a frame of the trace has a
/// limit, `limits::STACKS`.
fn depth<C: Codec>(c: &mut C, col: Col, len: usize, most: usize) -> Result<usize, Fault> {
    let count = c.count(col, len, most, "the depth of a stack")?;
    if !C::WRITES {
        c.known().stacks += count as u64;
        within("the number of stacks", c.known().stacks, limits::STACKS)?;
    }
    Ok(count)
}

impl Stored for Module {
    fn fields<C: Codec>(&mut self, c: &mut C, _: Ktime) -> Step {
        c.step(Col::Module, Col::Module, &mut self.number)?;
        let cols = TextColumns::new(Col::Module, Col::ModuleBytes);
        c.opaque(cols, BUILD_ID, &mut self.build_id)?;
        c.bytes(cols, limits::NAME, &mut self.path)?;
        if self.build_id.is_empty() {
            let mut known = self.file.unwrap_or_default();
            c.int(Col::Module, &mut known.device)?;
            c.int(Col::Module, &mut known.inode)?;
            c.int(Col::Module, &mut known.size)?;
            c.int(Col::Module, &mut known.modified)?;
            self.file = (known != FileId::default()).then_some(known);
        }
        Ok(())
    }

    fn weight(&self) -> usize {
        size_of_val(self) + self.build_id.len() + self.path.len()
    }
}

impl Stored for Sample {
    fn fields<C: Codec>(&mut self, c: &mut C, _: Ktime) -> Step {
        c.own_task(
            Col::SampleTask,
            Col::SampleTask,
            &mut self.tid,
            &mut self.tgid,
        )?;
        let mut off = self.doing == Doing::OffCpu;
        c.flags(
            Col::SampleFlags,
            [&mut off, &mut self.cut],
            "unknown flags of a sample",
        )?;
        self.doing = if off { Doing::OffCpu } else { Doing::OnCpu };
        let [on, waits] = c.known().ns;
        c.change(Col::SampleTime, &mut self.ns, if off { waits } else { on })?;
        let [on, waits] = &mut c.known().ns;
        *(if off { waits } else { on }) = self.ns;
        c.narrow(Col::SampleBase, &mut self.base)?;
        let count = depth(c, Col::SampleStacks, self.frames.len(), DEPTH)?;
        if count > 0 {
            let next = c.known().stack;
            c.diff(Col::SampleStacks, &mut self.first, next)?;
            let behind = self.first.checked_add(count as u32);
            c.known().stack = behind.unwrap_or(u32::MAX);
            if !C::WRITES {
                refuse_if(behind.is_none(), "a stack's number is too large")?;
                // A stack may continue only a stack with a lower number, so that readers never follow a cycle.
                refuse_if(self.base >= self.first, "a stack on top of a later one")?;
            }
        }
        let mut new = New {
            first: &mut self.first_frame,
            places: std::mem::take(&mut self.places).into_vec(),
            count: 0,
        };
        let mut list = std::mem::take(&mut self.frames).into_vec();
        c.elements(count, &mut list, |c, frame| new.frame(c, frame))?;
        (self.frames, self.places) = (list.into(), new.places.into());
        Ok(())
    }

    fn weight(&self) -> usize {
        size_of_val(self) + size_of_val(&*self.frames) + size_of_val(&*self.places)
    }
}

/// The new frames that the sample of a stack defines. `count` is the number of those that were written or read so far.
struct New<'a> {
    first: &'a mut u32,
    places: Vec<Place>,
    count: usize,
}

impl New<'_> {
    /// Writes or reads the number of a stack's frame. At the first use of a frame, the place in code that defines it
    /// is written or read instead.
    fn frame<C: Codec>(&mut self, c: &mut C, frame: &mut u32) -> Step {
        let next = self.first.saturating_add(self.count as u32);
        let is_new = C::WRITES && self.count < self.places.len() && *frame == next;
        let mut stored = if is_new { NEW_FRAME } else { (*frame).into() };
        c.int(Col::SampleFrames, &mut stored)?;
        if C::WRITES && !is_new {
            return Ok(());
        }
        if stored != NEW_FRAME {
            *frame = fitting(stored)?;
            return Ok(());
        }
        if self.count == 0 {
            let expected = c.known().frame;
            c.diff(Col::Frames, self.first, expected)?;
            c.known().frame = *self.first;
        }
        *frame = c.known().frame;
        let behind = frame.checked_add(1);
        c.known().frame = behind.unwrap_or(u32::MAX);
        refuse_if(
            !C::WRITES && behind.is_none(),
            "a frame's number is too large",
        )?;
        if !C::WRITES {
            self.places.push(Place::Kernel(0));
        }
        self.count += 1;
        let place = self.places.get_mut(self.count - 1);
        place.map_or(Ok(()), |place| place.fields(c))
    }
}

impl Stored for Symbol {
    fn fields<C: Codec>(&mut self, c: &mut C, _: Ktime) -> Step {
        c.step(Col::Symbol, Col::Symbol, &mut self.frame)?;
        let count = depth(c, Col::Symbol, self.functions.len(), MOST_INLINED)?;
        let mut list = std::mem::take(&mut self.functions).into_vec();
        c.elements(count, &mut list, |c, function| {
            c.text(Text::Symbol, &mut function.name)?;
            c.text(Text::Symbol, &mut function.file)?;
            c.narrow(Col::Symbol, &mut function.line)
        })?;
        self.functions = list.into();
        Ok(())
    }

    fn weight(&self) -> usize {
        let texts: usize = self
            .functions
            .iter()
            .map(|function| function.name.len() + function.file.len())
            .sum();
        size_of_val(&*self.functions) + texts
    }
}

/// Serializes whether a task was off CPU, as a boolean.
fn off_cpu<S: Serializer>(doing: &Doing, to: S) -> show::Shown<S> {
    to.serialize_bool(*doing == Doing::OffCpu)
}

impl Serialize for Place {
    fn serialize<S: Serializer>(&self, to: S) -> show::Shown<S> {
        let (of, at, value) = match self {
            Place::Kernel(address) => (None, "kernel", address),
            Place::Process(tgid, address) => (Some(("tgid", tgid.0)), "address", address),
            Place::Module(number, offset) => (Some(("module", *number)), "offset", offset),
        };
        let mut map = to.serialize_map(None)?;
        if let Some((name, number)) = of {
            map.serialize_entry(name, &number)?;
        }
        map.serialize_entry(at, value)?;
        map.end()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_place_is_read_as_it_was_written() {
        for it in [
            Place::Kernel(u64::MAX),
            Place::Process(Tgid(0), 1),
            Place::Process(Tgid(u32::MAX), 0),
            Place::Module(0, 7),
            Place::Module(u32::MAX, u64::MAX),
        ] {
            let (space, at) = it.split();
            assert_eq!(Place::of(space, at), Some(it));
        }
        assert_eq!(Place::of(1, 0), None);
        assert_eq!(Place::of(u64::MAX, 0), None);
    }
}
