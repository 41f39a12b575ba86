//! Samples of stacks to columns and back. They have columns of their own, and no low bits.

use super::decode::{ago, Dec};
use super::encode::Enc;
use super::{tag, Col, Stacks};
use crate::event::{LifeKind, Tgid, Tid};
use crate::limits;
use crate::stack::{
    Doing, FileId, Function, Module, Place, Sample, Symbol, BUILD_ID, DEPTH, INLINED,
};
use crate::varint::{fold, unfold};
use crate::Fault;

/// Flags of a sample.
const OFF_CPU: u8 = 1;
const CUT: u8 = 2;

/// In place of a frame's number: it is new. Numbers are from 1.
const NEW: u64 = 0;

/// Numbers of a place's file or memory: the kernel, or a number times 2, plus 1 for a process.
const KERNEL: u64 = 0;

fn space(place: Place) -> (u64, u64) {
    match place {
        Place::Kernel(address) => (KERNEL, address),
        Place::Process(tgid, address) => ((u64::from(tgid.0) + 1) << 1 | 1, address),
        Place::Module(number, offset) => ((u64::from(number) + 1) << 1, offset),
    }
}

fn place(space: u64, at: u64) -> Option<Place> {
    if space == KERNEL {
        return Some(Place::Kernel(at));
    }
    let number = u32::try_from((space >> 1).checked_sub(1)?).ok()?;
    Some(match space & 1 {
        1 => Place::Process(Tgid(number), at),
        _ => Place::Module(number, at),
    })
}

impl Stacks {
    /// The offset in a space, `more` beyond the last one there.
    fn offset(&mut self, space: u64, more: u64) -> u64 {
        let last = self.offsets.entry(space).or_default();
        *last = last.wrapping_add(more);
        *last
    }

    fn sampled(&mut self, sample: &Sample) {
        self.tid = sample.tid.0;
        if !sample.frames.is_empty() {
            self.next = sample.stack().saturating_add(1);
        }
    }
}

impl Enc {
    fn bytes_of(&mut self, length: Col, bytes: Col, value: &[u8], most: usize) {
        let value = value.get(..most).unwrap_or(value);
        self.int(length, value.len() as u64);
        self.column(bytes).extend_from_slice(value);
    }

    pub(super) fn module(&mut self, module: &Module) {
        self.byte(Col::Kind, tag::MODULE);
        let last = std::mem::replace(&mut self.known.stacks.module, module.number);
        self.diff(Col::Module, module.number, last);
        self.bytes_of(Col::Module, Col::ModuleBytes, &module.build_id, BUILD_ID);
        self.bytes_of(Col::Module, Col::ModuleBytes, &module.path, limits::NAME);
        if module.build_id.is_empty() {
            let file = module.file.unwrap_or_default();
            for value in [file.device, file.inode, file.size, file.modified] {
                self.int(Col::Module, value);
            }
        }
    }

    pub(super) fn sample(&mut self, sample: &Sample) {
        self.byte(Col::Kind, tag::SAMPLE);
        let tid = self.known.stacks.tid;
        self.diff(Col::SampleTask, sample.tid.0, tid);
        self.diff(Col::SampleTask, sample.tgid.0, sample.tid.0);
        let off = sample.doing == Doing::OffCpu;
        let flags = if off { OFF_CPU } else { 0 } | if sample.cut { CUT } else { 0 };
        self.byte(Col::SampleFlags, flags);
        let [on, waits] = &mut self.known.stacks.ns;
        let last = std::mem::replace(if off { waits } else { on }, sample.ns);
        self.int(Col::SampleTime, fold(sample.ns.wrapping_sub(last) as i64));
        self.int(Col::SampleBase, sample.base.into());
        let frames = sample.frames.get(..DEPTH).unwrap_or(&sample.frames);
        self.int(Col::SampleStacks, frames.len() as u64);
        if !frames.is_empty() {
            let next = self.known.stacks.next;
            self.diff(Col::SampleStacks, sample.first, next);
        }
        let mut new = sample.new_frames().peekable();
        for frame in frames {
            match new.next_if(|(number, _)| number == frame) {
                Some(it) => self.new_frame(it, sample.first_frame),
                None => self.int(Col::SampleFrames, (*frame).into()),
            }
        }
        self.known.stacks.sampled(sample);
    }

    /// A frame at its first use; `first` is the sample's first one.
    fn new_frame(&mut self, (number, at): (u32, Place), first: u32) {
        self.int(Col::SampleFrames, NEW);
        if number == first {
            self.diff(Col::Frames, number, self.known.stacks.frame);
        }
        let (space, at) = space(at);
        self.int(Col::Frames, space);
        let more = at.wrapping_sub(self.known.stacks.offset(space, 0));
        self.int(Col::FrameOffset, fold(more as i64));
        self.known.stacks.offset(space, more);
        self.known.stacks.frame = number.saturating_add(1);
    }

    fn text(&mut self, text: &[u8]) {
        let text = text.get(..limits::NAME).unwrap_or(text);
        let count = self.texts.len();
        if let Some(at) = self.texts.get(text) {
            let back = count - at;
            return self.int(Col::SymbolText, back as u64);
        }
        self.texts.insert(text.into(), count);
        self.int(Col::SymbolText, 0);
        self.bytes_of(Col::SymbolText, Col::SymbolBytes, text, limits::NAME);
    }

    pub(super) fn symbol(&mut self, symbol: &Symbol) {
        self.byte(Col::Kind, tag::SYMBOL);
        let last = std::mem::replace(&mut self.known.stacks.symbol, symbol.frame);
        self.diff(Col::Symbol, symbol.frame, last);
        let functions = symbol.functions.get(..INLINED);
        let functions = functions.unwrap_or(&symbol.functions);
        self.int(Col::Symbol, functions.len() as u64);
        for function in functions {
            self.text(&function.name);
            self.text(&function.file);
            self.int(Col::Symbol, function.line.into());
        }
    }
}

impl<'a> Dec<'a> {
    fn bytes_of(&mut self, length: Col, bytes: Col, most: usize) -> Result<&'a [u8], Fault> {
        let len = self.int(length)?;
        crate::error::within("a string's length", len, most as u64)?;
        self.spend(len as usize)?;
        self.column(bytes).take(len)
    }

    /// A number of new stacks or functions.
    fn count(&mut self, col: Col, most: usize) -> Result<u64, Fault> {
        let count = self.int(col)?;
        crate::error::within("the depth of a stack", count, most as u64)?;
        self.stacks = self.stacks.saturating_add(count);
        crate::error::within("the number of stacks", self.stacks, limits::STACKS)?;
        Ok(count)
    }

    pub(super) fn module(&mut self) -> Result<Module, Fault> {
        let number = self.diff(Col::Module, self.known.stacks.module)?;
        self.known.stacks.module = number;
        let build_id = self.bytes_of(Col::Module, Col::ModuleBytes, BUILD_ID)?;
        let path = self.bytes_of(Col::Module, Col::ModuleBytes, limits::NAME)?;
        let mut file = None;
        if build_id.is_empty() {
            let known = FileId {
                device: self.int(Col::Module)?,
                inode: self.int(Col::Module)?,
                size: self.int(Col::Module)?,
                modified: self.int(Col::Module)?,
            };
            file = (known != FileId::default()).then_some(known);
        }
        Ok(Module {
            number,
            build_id: build_id.into(),
            path: path.into(),
            file,
        })
    }

    pub(super) fn sample(&mut self) -> Result<Sample, Fault> {
        let tid = self.diff(Col::SampleTask, self.known.stacks.tid)?;
        let tgid = self.diff(Col::SampleTask, tid)?;
        let flags = self.byte(Col::SampleFlags)?;
        if flags & !(OFF_CPU | CUT) != 0 {
            return Err(Fault::Content("unknown flags of a sample"));
        }
        let more = unfold(self.int(Col::SampleTime)?) as u64;
        let [on, waits] = &mut self.known.stacks.ns;
        let last = if flags & OFF_CPU != 0 { waits } else { on };
        *last = last.wrapping_add(more);
        let ns = *last;
        let base = self.int32(Col::SampleBase)?;
        let count = self.count(Col::SampleStacks, DEPTH)?;
        let first = match count {
            0 => 0,
            _ => self.diff(Col::SampleStacks, self.known.stacks.next)?,
        };
        behind(first, count).ok_or(Fault::Content("a stack's number is too large"))?;
        // A stack is on top of an earlier one: there is no cycle.
        if count > 0 && base >= first {
            return Err(Fault::Content("a stack on top of a later one"));
        }
        let mut new = New::default();
        let mut frames = Vec::new();
        for _ in 0..count {
            frames.push(match self.int(Col::SampleFrames)? {
                NEW => self.new_frame(&mut new)?,
                number => u32::try_from(number)
                    .map_err(|_| Fault::Content("a frame's number does not fit in 32 bits"))?,
            });
        }
        let sample = Sample {
            tid: Tid(tid),
            tgid: Tgid(tgid),
            doing: match flags & OFF_CPU {
                0 => Doing::OnCpu,
                _ => Doing::OffCpu,
            },
            ns,
            cut: flags & CUT != 0,
            base,
            first,
            frames: frames.into(),
            first_frame: new.first,
            places: new.places.into(),
        };
        self.known.stacks.sampled(&sample);
        Ok(sample)
    }

    /// The number of a frame at its first use.
    fn new_frame(&mut self, new: &mut New) -> Result<u32, Fault> {
        let number = match new.places.is_empty() {
            true => self.diff(Col::Frames, self.known.stacks.frame)?,
            false => self.known.stacks.frame,
        };
        let next = number.checked_add(1);
        self.known.stacks.frame = next.ok_or(Fault::Content("a frame's number is too large"))?;
        if new.places.is_empty() {
            new.first = number;
        }
        let space = self.int(Col::Frames)?;
        let more = unfold(self.int(Col::FrameOffset)?) as u64;
        let at = self.known.stacks.offset(space, more);
        let at = place(space, at).ok_or(Fault::Content("no such file of a frame"))?;
        new.places.push(at);
        Ok(number)
    }

    fn text(&mut self) -> Result<Box<[u8]>, Fault> {
        match self.int(Col::SymbolText)? {
            0 => {
                let text = self.bytes_of(Col::SymbolText, Col::SymbolBytes, limits::NAME)?;
                self.texts.push(text.into());
                Ok(text.into())
            }
            back => {
                let text = ago(&self.texts, back)?.clone();
                self.spend(text.len())?;
                Ok(text)
            }
        }
    }

    pub(super) fn symbol(&mut self) -> Result<Symbol, Fault> {
        let frame = self.diff(Col::Symbol, self.known.stacks.symbol)?;
        self.known.stacks.symbol = frame;
        let count = self.count(Col::Symbol, INLINED)?;
        let mut functions = Vec::new();
        for _ in 0..count {
            functions.push(Function {
                name: self.text()?,
                file: self.text()?,
                line: self.int32(Col::Symbol)?,
            });
        }
        Ok(Symbol {
            frame,
            functions: functions.into(),
        })
    }
}

/// The new frames of a sample.
#[derive(Default)]
struct New {
    first: u32,
    places: Vec<Place>,
}

/// The number behind `count` numbers from `first` on.
fn behind(first: u32, count: u64) -> Option<u32> {
    first.checked_add(u32::try_from(count).ok()?)
}

/// The approximate memory of an event's parts in bytes.
pub(super) fn weight(kind: &LifeKind) -> usize {
    match kind {
        LifeKind::Module(module) => size_of::<Module>() + module.build_id.len() + module.path.len(),
        LifeKind::Sample(sample) => {
            let parts = size_of_val(&*sample.frames) + size_of_val(&*sample.places);
            size_of::<Sample>() + parts
        }
        LifeKind::Symbol(symbol) => {
            let texts = symbol.functions.iter();
            let texts = texts.map(|it| it.name.len() + it.file.len());
            size_of_val(&*symbol.functions) + texts.sum::<usize>()
        }
        _ => 0,
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
            let (space, at) = space(it);
            assert_eq!(place(space, at), Some(it));
        }
        assert_eq!(place(1, 0), None);
        assert_eq!(place(u64::MAX, 0), None);
    }
}
