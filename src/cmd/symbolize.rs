//! Implements `tr symbolize`, which finds the names of the functions in a recording's stacks after the
//! recording.

use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

use tr_format::event::{Ktime, LifeEvent, LifeKind, Stream};
use tr_format::mask::Masked;
use tr_format::reader::{Trace, Unknown};
use tr_format::stack::{Module, Place};
use tr_format::Error;
use tr_record::symbols::{self, Limit, Request};
use tr_redact::Redactor;
use tr_text::{escape, units};

use crate::copy::{self, Copying};
use crate::errors::{self, Done};
use crate::subcommand::{Program, Subcommand};
use crate::{args, open, output};
use tr_text::called::TR;

/// The largest number of unnamed frames that `tr symbolize` searches names for.
const FRAMES: usize = 1 << 22;
/// The largest number of paths in which `tr symbolize` searches names of frames.
const PATHS: usize = 1 << 16;
/// The largest number of levels of directories that are entered in the search for programs below a directory that the
/// user names.
const DEPTH: usize = 16;
/// The largest number of directory entries that are examined in the search for programs.
const ENTRIES: usize = 1_000_000;
/// The largest number of missing programs and libraries whose names `tr symbolize` prints.
const MOST_NAMED: usize = 5;
/// The time between two checks whether the search for functions, which is another process, has ended.
const LOOK_INTERVAL: Duration = Duration::from_millis(5);

/// Name the functions of a recording's stacks that have no names yet
///
/// It takes the names from the programs and libraries of this machine that have the recorded build
/// ids, and from their debug files (/usr/lib/debug). The kernel's functions, and those of JIT
/// compilers, have names only on the machine that recorded, until it boots again.
#[derive(clap::Args, Debug)]
#[command(after_help = "\
Exit status: 0; 1 when OUT cannot be written; 2 when FILE cannot be read at all.

Example:
  tr record --stacks --no-symbols -- make
  tr symbolize
  tr symbolize ci.bin --dir target/debug -o named.bin")]
pub struct Args {
    /// The trace; - is standard input
    #[arg(value_name = "FILE", default_value = open::DEFAULT_FILE)]
    file: PathBuf,
    /// The recording with names; - is standard output. An existing file is replaced once it is
    /// complete [default: FILE]
    #[arg(short, long, value_name = "OUT")]
    output: Option<PathBuf>,
    #[command(flatten)]
    force: output::Force,
    /// Search programs and libraries in this directory and below it, too. Can be given
    /// several times
    #[arg(long, value_name = "DIR")]
    dir: Vec<PathBuf>,
    /// Search at most for this time, and keep what was found
    #[arg(long, value_name = "TIME", value_parser = args::length, default_value = "60s")]
    limit: Duration,
    /// Keep passwords and tokens in paths and in the names of functions; without it they are masked
    #[arg(long)]
    no_redact: bool,
}

impl Subcommand for Args {
    const IS_STREAM: bool = true;

    fn run(self, _: &Program) -> Done {
        name_functions(&self)
    }
}

fn name_functions(args: &Args) -> Done {
    let redactor = Redactor::new(!args.no_redact, Vec::new());
    let trace = open::to_copy(&args.file)?;
    if trace.unknown() != Unknown::default() && args.output.is_none() {
        eprintln!("    nothing is written; to keep both: {TR} symbolize FILE -o OUT");
        return Err(ExitCode::FAILURE);
    }
    let mut unnamed = Unnamed::of(&trace);
    for directory in &args.dir {
        if let Err(error) = unnamed.search(directory) {
            message!("--dir {}: {error}", errors::shown(directory));
            return Err(ExitCode::FAILURE);
        }
    }
    let request = unnamed.request(&trace);
    let limit = Limit {
        cpu: Duration::MAX,
        wall: args.limit,
    };
    let (mut events, search) = symbols::search(&request, limit, || {
        std::thread::sleep(LOOK_INTERVAL);
        true
    });
    let found = events.iter().filter_map(|event| match event {
        LifeKind::Module(module) => Some(module.number),
        _ => None,
    });
    let found: HashSet<u32> = found.collect();
    events.retain(|event| match event {
        LifeKind::Module(event) => unnamed.modules.get(&event.number) != Some(event),
        _ => true,
    });
    let output = args.output.as_ref().unwrap_or(&args.file);
    let name = errors::shown(output);
    if args.output.is_some() || !events.is_empty() {
        let events = (events, unnamed.end);
        let written = write(&trace, events, redactor, (output, &args.file, args.force));
        written.map_err(|error| errors::unwritten(&name, error))?;
    }
    if !trace.meta().has_stacks() {
        message!("{name}: it has no stacks: {TR} record --stacks");
        return Ok(ExitCode::SUCCESS);
    }
    message!(
        "{name}: named {} of {} frames of stacks in {:.2} s{}",
        units::count(search.found as u64),
        units::count(unnamed.frames.len() as u64),
        search.time.as_secs_f64(),
        if search.ended_early {
            ", when the search was ended (--limit)"
        } else {
            ""
        }
    );
    unnamed.tell(&request, &found);
    Ok(ExitCode::SUCCESS)
}

fn write(
    trace: &Trace,
    (events, end): (Vec<LifeKind>, Ktime),
    mut redactor: Redactor,
    files: (&Path, &Path, output::Force),
) -> Result<(), Error> {
    let events = events.into_iter().map(|kind| {
        let event = LifeEvent {
            cpu: None,
            time: end,
            kind,
        };
        Masked::new(event, &mut redactor)
    });
    let events = events.collect::<Result<Vec<_>, Error>>()?;
    copy::whole(trace, files, Copying::AsTheyAre, events).map(drop)
}

/// The frames of a trace's stacks whose functions have no names yet, and the facts by which `tr symbolize`
/// searches for the names.
#[derive(Debug, Default)]
struct Unnamed {
    modules: BTreeMap<u32, Module>,
    frames: BTreeMap<u32, Place>,
    /// The paths of files in which to search for the names of functions: files that recorded processes executed,
    /// and files in the directories that the user names.
    paths: BTreeSet<PathBuf>,
    /// The working directory of COMMAND, from which relative paths in the trace start.
    cwd: PathBuf,
    /// The number of frames that are not searched, because the trace has more unnamed frames than the limit.
    left_out: u64,
    /// The time of the recording's end. The events with the names of functions, which are added to the trace, get this
    /// time.
    end: Ktime,
}

impl Unnamed {
    fn of(trace: &Trace) -> Unnamed {
        let (mut all, mut named) = (Unnamed::default(), HashSet::new());
        all.cwd = OsStr::from_bytes(&trace.meta().cwd).into();
        let mut events = Vec::new();
        for frame in trace.frames() {
            if matches!(frame.stream, Stream::Cpu(_)) {
                continue;
            }
            // A frame (a block of events in the trace's file) that cannot be read is skipped. The output file has a
            // loss event in its place.
            if trace.read_life(frame, &mut events).is_ok() {
                for event in events.drain(..) {
                    all.end = all.end.max(event.time);
                    all.take(event.kind, &mut named);
                }
            }
        }
        all.frames.retain(|number, _| !named.contains(number));
        all.end = trace.summary().map_or(all.end, |summary| summary.end);
        all
    }

    fn take(&mut self, kind: LifeKind, named: &mut HashSet<u32>) {
        match kind {
            LifeKind::Module(module) if self.modules.len() < PATHS => {
                self.modules.insert(module.number, *module);
            }
            LifeKind::Sample(sample) => {
                for (number, place) in sample.new_frames() {
                    if self.frames.len() < FRAMES {
                        self.frames.insert(number, place);
                    } else {
                        self.left_out += 1;
                    }
                }
            }
            LifeKind::Symbol(symbol) if named.len() < FRAMES => {
                named.insert(symbol.frame);
            }
            LifeKind::Exec(exec) => {
                // A relative path is only tried from COMMAND's working directory, although the process may have been
                // in another one. A wrong file does no harm, because its build id differs from the recorded one.
                let path = self.cwd.join(OsStr::from_bytes(&exec.filename));
                if path.is_absolute() && self.paths.len() < PATHS {
                    self.paths.insert(path);
                }
            }
            _ => {}
        }
    }

    /// Adds the ELF files in a directory, and in the directories below it, to the paths in which functions
    /// are searched. Symbolic links are not followed.
    fn search(&mut self, directory: &Path) -> std::io::Result<()> {
        std::fs::read_dir(directory)?;
        let tell = |what: &str| {
            message!("--dir {}: {what}", errors::shown(directory));
        };
        let (mut level, mut room) = (vec![directory.to_owned()], ENTRIES);
        for _ in 0..=DEPTH {
            let mut below = Vec::new();
            let entries = level
                .iter()
                .filter_map(|directory| std::fs::read_dir(directory).ok());
            for entry in entries.flatten().flatten() {
                let Some(left) = room.checked_sub(1) else {
                    tell(&format!("searched only the first {ENTRIES} entries"));
                    return Ok(());
                };
                room = left;
                match entry.file_type() {
                    Ok(kind) if kind.is_dir() => below.push(entry.path()),
                    Ok(kind) if kind.is_file() && is_elf(&entry.path()) => {
                        self.paths.extend(std::path::absolute(entry.path()));
                    }
                    _ => {}
                }
            }
            level = below;
        }
        if !level.is_empty() {
            tell(&format!(
                "searched no directories more than {DEPTH} below it"
            ));
        }
        Ok(())
    }

    /// Makes the request for the functions of all frames without a name. Frames of the kernel, and of code that belongs
    /// to no file, are only included if the machine has not been rebooted since the recording.
    fn request(&self, trace: &Trace) -> Request {
        let meta = trace.meta();
        let same = tr_record::is_same_boot(meta);
        let frames = self.frames.iter().map(|(number, place)| (*number, *place));
        let frames = frames.filter(|(_, place)| same || matches!(place, Place::Module(..)));
        let path = |module: &Module| PathBuf::from(OsString::from_vec(module.path.to_vec()));
        let known = self.modules.values().map(path);
        let known = known.filter(|path| path.is_absolute());
        let modules = self.modules.values().map(|module| tr_symbols::Module {
            number: module.number,
            build_id: module.build_id.to_vec(),
            file: module.file.map(|file| tr_symbols::File {
                path: path(module).into(),
                device: file.device,
                inode: file.inode,
                size: file.size,
                modified: file.modified,
            }),
            frames: Vec::new(),
        });
        let begin = meta.start_clock.real;
        let paths = known.chain(self.paths.iter().cloned());
        Request {
            paths: paths.map(PathBuf::into_os_string).collect(),
            lifetime: tr_symbols::Lifetime {
                begin,
                end: begin.saturating_add(self.end.since(meta.start)),
            },
            ..symbols::request(frames, modules, |tgid| tgid.0)
        }
    }

    /// Prints on standard error why frames still have no names of functions. `found` has the numbers of the
    /// modules (programs and libraries) whose files were found.
    fn tell(&self, request: &Request, found: &HashSet<u32>) {
        let absent = request.modules.iter();
        let absent = absent.filter(|module| match &module.file {
            Some(file) => !file.is_there(),
            None => !found.contains(&module.number),
        });
        for module in absent.clone().take(MOST_NAMED) {
            let path = self.modules.get(&module.number).map(|module| &*module.path);
            let path = path
                .filter(|path| !path.is_empty())
                .unwrap_or(b"no path is known");
            let path = escape::text(path);
            let frames = units::count(module.frames.len() as u64);
            match &module.file {
                Some(_) => message!(
                    "not found: {path}, of {frames} frames: it has no build id, and is another \
                     file now"
                ),
                None => message!(
                    "not found: build id {} ({path}), of {frames} frames; --dir names its \
                     directory",
                    hex(&module.build_id)
                ),
            }
        }
        let more = absent.count().saturating_sub(MOST_NAMED);
        if more > 0 {
            message!("not found: {more} more files");
        }
        let elsewhere = self.frames.len().saturating_sub(request.frames());
        if elsewhere > 0 {
            message!(
                "not searched: {} frames of the kernel and of no file, which have names only \
                 where they were recorded, until that machine boots again",
                units::count(elsewhere as u64)
            );
        }
        if self.left_out > 0 {
            let left_out = units::count(self.left_out);
            message!("not searched: {left_out} frames, beyond {FRAMES}");
        }
    }
}

/// A build id in hexadecimal digits, without the zeros that fill it up in the trace.
fn hex(build_id: &[u8]) -> String {
    let end = build_id.iter().rposition(|byte| *byte != 0);
    tr_text::units::hex(build_id.iter().take(end.map_or(0, |end| end + 1)))
}

fn is_elf(path: &Path) -> bool {
    use std::io::Read;
    let mut magic = [0; 4];
    let file = std::fs::File::open(path);
    file.is_ok_and(|mut file| file.read_exact(&mut magic).is_ok()) && &magic == b"\x7fELF"
}
