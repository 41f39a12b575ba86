//! Gives numbers to the files, frames and stacks of samples. The trace stores each of them once.

use std::collections::{BTreeSet, HashMap};
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::PathBuf;
use std::time::{Duration, SystemTime};

use tr_format::event::{CpuId, Ktime, LifeKind, Tgid, Tid};
use tr_format::stack::{Doing, FileId, Module, Place, Sample};
use tr_symbols::Request;

use crate::mappings::{Image, Mapped, Mapping, Mappings};
use crate::symbols;

/// A build id of a file as the kernel returns it, with `BUILD_ID_SIZE_MAX` bytes. A shorter id is followed by zeros.
pub type BuildId = [u8; 20];

/// The place in code that a frame of a sampled stack points to, as the kernel returns it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum At {
    /// The frame's instruction is at this address in the kernel.
    Kernel(u64),
    /// The frame's instruction is at this offset in the file with this build id.
    File(BuildId, u64),
    /// The frame's instruction is at this address in the process, in no file with a build id.
    Process(u64),
}

/// The sampled stack of a task, as the kernel returned it.
#[derive(Clone, Debug)]
pub struct Stacked {
    pub time: Ktime,
    pub cpu: Option<CpuId>,
    pub tid: Tid,
    pub tgid: Tgid,
    /// Whether the task was on a CPU or off CPU when its stack was sampled.
    pub doing: Doing,
    /// The time that the sample stands for, in ns: the sampling period, or the time off CPU.
    pub ns: u64,
    /// Whether the outermost frames of the stack are missing, because the stack was deeper than the number of frames
    /// that the BPF programs copy.
    pub cut: bool,
    /// The program that the sampled task ran, and the process in which it ran.
    pub image: Image,
    /// The places of the stack's frames, outermost first. The place of a caller is the last byte of its call
    /// instruction.
    pub frames: Vec<At>,
}

/// The largest number of frames, and also of stacks, whose numbers are remembered, with some 30 bytes each. When this
/// limit is reached, all numbers are forgotten. Frames get new numbers from then on, and frames with earlier numbers
/// get no symbols.
const MOST_NUMBERED: usize = 1 << 20;

/// The largest number of paths of executed or mapped files that are remembered.
const PATHS: usize = 1 << 14;

/// The largest number of files without a build id for which a number is remembered.
const FILES: usize = 1 << 14;

#[derive(Debug, Default)]
pub struct Stacks {
    modules: HashMap<BuildId, u32>,
    mappings: Mappings,
    /// The numbers of the files without a build id. The key is the inode number and the path from a process's memory
    /// mappings.
    files: HashMap<(u64, PathBuf), (u32, tr_symbols::File)>,
    last_module: u32,
    frames: HashMap<Place, u32>,
    last_frame: u32,
    /// The numbers of the stacks. The key is the number of the stack without its innermost frame, and the number of
    /// that frame.
    stacks: HashMap<(u32, u32), u32>,
    last_stack: u32,
    /// The processes whose stacks have addresses outside of files, with their ids in `tr`'s own pid namespace.
    seen: HashMap<Tgid, u32>,
    /// The paths of the files that processes have executed or mapped; `None` if no stacks are recorded.
    paths: Option<BTreeSet<PathBuf>>,
}

impl Stacks {
    /// Creates the numbering of stacks for a recording, with no numbers so far. `recorded` says whether the recording
    /// has stacks.
    pub fn new(recorded: bool) -> Stacks {
        Stacks {
            paths: recorded.then(BTreeSet::new),
            ..Stacks::default()
        }
    }

    /// Notes the path of a program, because a process may end before its mappings are read. A relative path is assumed
    /// to start in COMMAND's directory. If this assumption leads to a wrong file, the build id of that file differs
    /// from the one in the stacks, and no names come from that file.
    pub fn executed(&mut self, path: &[u8]) {
        let Some(paths) = &mut self.paths else {
            return;
        };
        let Ok(path) = std::path::absolute(OsStr::from_bytes(path)) else {
            return;
        };
        if paths.len() < PATHS && !paths.contains(&path) {
            paths.insert(path);
        }
    }

    /// Stores the memory mappings of a process. Later addresses of the process are assigned to files by these mappings.
    pub fn mapped(&mut self, from: &Mapped) {
        let paths = self.paths.get_or_insert_default();
        for path in self.mappings.take(from) {
            if paths.len() < PATHS && !paths.contains(path) {
                paths.insert(path.clone());
            }
        }
    }

    /// Makes the request to search for the functions of all frames that have been numbered so far.
    pub fn request(&self) -> Request {
        use tr_symbols::Module;
        let mut frames: Vec<(u32, Place)> = self.frames.iter().map(|(at, it)| (*it, *at)).collect();
        frames.sort_unstable();
        let by_id = self.modules.iter().map(|(build_id, number)| Module {
            number: *number,
            build_id: build_id.to_vec(),
            ..Module::default()
        });
        let files = self.files.values().map(|(number, file)| Module {
            number: *number,
            file: Some(file.clone()),
            ..Module::default()
        });
        let seen = |tgid: Tgid| self.seen.get(&tgid).copied().unwrap_or(tgid.0);
        Request {
            paths: self.paths.iter().flatten().map(Into::into).collect(),
            ..symbols::request(frames, by_id.chain(files), seen)
        }
    }

    /// The events for a sampled stack: first the files that no event has named before, and then the sample.
    pub fn events(&mut self, from: &Stacked) -> Vec<LifeKind> {
        if self.frames.len().max(self.stacks.len()) >= MOST_NUMBERED {
            self.frames.clear();
            self.stacks.clear();
        }
        let (frames, stripped) = self.stripped(from);
        let mut events = Vec::new();
        let mut places = Vec::new();
        let next_frame = self.last_frame.saturating_add(1);
        let (mut base, mut new) = (0, Vec::new());
        for address in frames {
            let place = self.place(*address, from, &mut events);
            let frame = *self.frames.entry(place).or_insert_with(|| {
                places.push(place);
                self.last_frame = self.last_frame.saturating_add(1);
                self.last_frame
            });
            let caller = if new.is_empty() {
                base
            } else {
                self.last_stack
            };
            match self.stacks.get(&(caller, frame)) {
                Some(known) if new.is_empty() => base = *known,
                _ => {
                    self.last_stack = self.last_stack.saturating_add(1);
                    self.stacks.insert((caller, frame), self.last_stack);
                    new.push(frame);
                }
            }
        }
        let count = u32::try_from(new.len()).unwrap_or(u32::MAX);
        events.push(LifeKind::Sample(Box::new(Sample {
            tid: from.tid,
            tgid: from.tgid,
            doing: from.doing,
            ns: from.ns,
            cut: from.cut || stripped,
            base,
            first: match count {
                0 => 0,
                count => self.last_stack.saturating_sub(count - 1),
            },
            frames: new.into(),
            first_frame: if places.is_empty() { 0 } else { next_frame },
            places: places.into(),
        })));
        events
    }

    /// Removes the outermost frames of a stack that are in no file, and returns whether there were such frames. Most of
    /// these frames are wrong: in a function that keeps no frame pointer, the kernel takes other values for return
    /// addresses. But if a JIT compiler has listed the functions of the process, the addresses are real and all frames
    /// stay. The innermost frame always stays, because the task really was there.
    fn stripped<'a>(&self, from: &'a Stacked) -> (&'a [At], bool) {
        let all = &from.frames;
        let in_user_mode = all
            .iter()
            .filter(|frame| !matches!(frame, At::Kernel(_)))
            .count();
        let in_file = |address| self.mappings.find(from.image, address).is_some();
        let foreign = all
            .iter()
            .take(in_user_mode.saturating_sub(1))
            .take_while(|frame| matches!(frame, At::Process(at) if !in_file(*at)))
            .count();
        if foreign == 0 || tr_symbols::has_list(from.image.0) {
            return (all, false);
        }
        (all.get(foreign..).unwrap_or_default(), true)
    }

    /// The place in a file, a process or the kernel that an address of a sampled stack stands for. If the place is in a
    /// file that no event has named before, an event that names the file is added to `events`.
    fn place(&mut self, address: At, stack: &Stacked, events: &mut Vec<LifeKind>) -> Place {
        match address {
            At::Kernel(address) => Place::Kernel(address),
            At::Process(address) => {
                let in_file = self.in_file(stack.image, address, events);
                in_file.unwrap_or_else(|| {
                    self.seen.insert(stack.tgid, stack.image.0);
                    Place::Process(stack.tgid, address)
                })
            }
            At::File(build_id, offset) => {
                let known = self.modules.get(&build_id).copied();
                let number = known.unwrap_or_else(|| {
                    let module = Module {
                        build_id: build_id.into(),
                        ..Module::default()
                    };
                    let number = self.number(module, events);
                    self.modules.insert(build_id, number);
                    number
                });
                Place::Module(number, offset)
            }
        }
    }

    /// Gives a file the next number. The event that names the file is added to `events`.
    fn number(&mut self, module: Module, events: &mut Vec<LifeKind>) -> u32 {
        self.last_module = self.last_module.saturating_add(1);
        let number = self.last_module;
        events.push(LifeKind::Module(Box::new(Module { number, ..module })));
        number
    }

    /// The place in a file to which an address of a process belongs. The function is called only for an address whose
    /// file has no build id that the kernel could read. `None` if no mapping has the address, if another file is at the
    /// path of the mapping now, or if too many files have a number already.
    fn in_file(&mut self, image: Image, address: u64, events: &mut Vec<LifeKind>) -> Option<Place> {
        let (mapping, offset) = self.mappings.find(image, address)?;
        let key = (mapping.inode, mapping.path.clone());
        if let Some((number, _)) = self.files.get(&key) {
            return Some(Place::Module(*number, offset));
        }
        let file = file(mapping).filter(|_| self.files.len() < FILES)?;
        let module = Module {
            path: key.1.as_os_str().as_encoded_bytes().into(),
            file: Some(FileId {
                device: file.device,
                inode: file.inode,
                size: file.size,
                modified: file.modified,
            }),
            ..Module::default()
        };
        let number = self.number(module, events);
        self.files.insert(key, (number, file));
        Some(Place::Module(number, offset))
    }
}

/// The longest time by which the recorded times of a file can lag behind the clock (a tick of CONFIG_HZ_100).
const TICK: Duration = Duration::from_millis(10);

/// The file that a mapping refers to; `None` if another file is at the path of the mapping now, even if the other file
/// has the same inode number.
fn file(mapping: &Mapping) -> Option<tr_symbols::File> {
    let file = tr_symbols::File::at(&mapping.path)?;
    let times = std::fs::metadata(&mapping.path).ok()?;
    let seconds = Duration::from_secs(u64::try_from(times.ctime()).ok()?);
    let changed = seconds + Duration::from_nanos(u64::try_from(times.ctime_nsec()).ok()?);
    let before = SystemTime::UNIX_EPOCH.checked_add(changed + TICK)? <= mapping.time;
    (file.inode == mapping.inode && before).then_some(file)
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIBC: BuildId = [7; 20];

    fn sampled(stacks: &mut Stacks, frames: &[At]) -> Vec<LifeKind> {
        stacks.events(&Stacked {
            time: Ktime(1),
            cpu: None,
            tid: Tid(2),
            tgid: Tgid(2),
            doing: Doing::OnCpu,
            ns: 10,
            cut: false,
            image: (2, 0),
            frames: frames.to_vec(),
        })
    }

    fn sample(events: &[LifeKind]) -> (u32, u32, &[u32]) {
        let sample = last(events);
        (sample.base, sample.first, &sample.frames)
    }

    fn last(events: &[LifeKind]) -> &Sample {
        match events.last() {
            Some(LifeKind::Sample(sample)) => sample,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn outermost_values_that_are_no_addresses_are_left_out() {
        let (file, kernel) = (At::File(LIBC, 16), At::Kernel(9));
        let mut stacks = Stacks::default();
        let mut known = |frames: &[At]| {
            let events = sampled(&mut stacks, frames);
            let sample = last(&events);
            (sample.base as usize + sample.frames.len(), sample.cut)
        };
        assert_eq!(known(&[At::Process(1), At::Process(2), file]), (1, true));
        assert_eq!(known(&[file, At::Process(3), kernel]), (3, false));
        let depth = |frames: &[At]| sample(&sampled(&mut Stacks::default(), frames)).2.len();
        assert_eq!(depth(&[At::Process(1), kernel]), 2);
        assert_eq!(depth(&[kernel]), 1);
    }

    #[test]
    fn each_stack_is_stored_once() {
        let (main, lib) = (At::File(LIBC, 16), At::File(LIBC, 32));
        let (jit, kernel) = (At::Process(5), At::Kernel(9));
        let mut stacks = Stacks::default();
        let events = sampled(&mut stacks, &[main, lib]);
        assert_eq!(events.len(), 2);
        assert_eq!(sample(&events), (0, 1, &[1, 2][..]));
        assert_eq!(last(&events).places.len(), 2);
        let events = sampled(&mut stacks, &[main, lib]);
        assert_eq!(events.len(), 1);
        assert_eq!(sample(&events), (2, 0, &[][..]));
        // The frames `main` and `lib` were stored with earlier stacks. Only the frames `jit` and `kernel` are new.
        let events = sampled(&mut stacks, &[main, jit, lib, kernel]);
        assert_eq!(events.len(), 1);
        assert_eq!(sample(&events), (1, 3, &[3, 2, 4][..]));
        let new = [(3, Place::Process(Tgid(2), 5)), (4, Place::Kernel(9))];
        assert!(last(&events).new_frames().eq(new));
        let events = sampled(&mut stacks, &[main, jit, lib]);
        assert_eq!(sample(&events), (4, 0, &[][..]));
        assert_eq!(sample(&sampled(&mut stacks, &[])), (0, 0, &[][..]));
    }

    #[test]
    fn a_file_without_a_build_id_is_known_by_its_figures() {
        let path = std::env::temp_dir().join(format!("tr-stacks-{}", std::process::id()));
        std::fs::write(&path, "program").unwrap();
        let inode = std::fs::metadata(&path).unwrap().ino();
        let mapped = |inode: u64, time| Mapped {
            image: (2, 0),
            time,
            maps: format!("1000-2000 r-xp 00003000 00:00 {inode} {}\n", path.display()).into(),
        };
        let later = SystemTime::now() + Duration::from_secs(1);
        let places = |stacks: &mut Stacks| {
            let events = sampled(stacks, &[At::Process(0x1004), At::Kernel(9)]);
            (events.len(), last(&events).places.first().copied())
        };
        let mut stacks = Stacks::default();
        let address = Some(Place::Process(Tgid(2), 0x1004));
        assert_eq!(places(&mut stacks), (1, address));
        for (inode, time) in [(inode + 1, later), (inode, SystemTime::UNIX_EPOCH)] {
            let mut stacks = Stacks::default();
            stacks.mapped(&mapped(inode, time));
            assert_eq!(places(&mut stacks), (1, address), "{inode}");
        }
        stacks.mapped(&mapped(inode, later));
        assert_eq!(places(&mut stacks), (2, Some(Place::Module(1, 0x3004))));
        // The previous sample has stored the file and the frame, so the present sample stores neither.
        assert_eq!(places(&mut stacks), (1, None));
        let request = stacks.request();
        let file = request
            .modules
            .iter()
            .find_map(|module| module.file.clone())
            .unwrap();
        assert!(file.is_there());
        std::fs::write(&path, "another").unwrap();
        std::fs::File::options()
            .write(true)
            .open(&path)
            .unwrap()
            .set_modified(later)
            .unwrap();
        assert!(!file.is_there());
        std::fs::remove_file(&path).unwrap();
        assert!(!file.is_there());
    }
}
