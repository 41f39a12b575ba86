//! The page of `cargo build --timings`: its script has each unit with its beginning and length
//! in seconds since cargo's start, rounded to 10 ms.

use std::collections::HashMap;

use serde::Deserialize;
use tr_analyze::model::{Imported, ImportedKind, ProcessIx};
use tr_format::event::Argv;
use tr_programs::tools::Family;

use crate::align::{align, Span};
use crate::recording::{imported, is_of, signed, Recording};
use crate::{Error, Placed};

const FORMAT: &str = "cargo --timings";

const UNITS: &[u8] = b"const UNIT_DATA = ";
/// Before the compiler's version.
const RUSTC: &[u8] = b"<td>rustc:</td><td>rustc ";

/// The most units: the largest workspaces have some thousands.
const MOST: usize = 20_000;

/// The longest version.
const MOST_VERSION: usize = 32;

/// The units of a build.
#[derive(Clone, Debug, PartialEq)]
pub struct Timings {
    units: Vec<Unit>,
    /// The compiler with its version.
    rustc: Option<String>,
}

#[derive(Clone, Debug, PartialEq, Deserialize)]
struct Unit {
    name: String,
    version: String,
    /// Empty for a library, or ` NAME "KIND"`, ` build-script`, each with ` (MODE)`.
    target: String,
    start: f64,
    duration: f64,
    /// Up to cargo 1.86: when the metadata was there, after which code is generated.
    rmeta_time: Option<f64>,
    sections: Option<Vec<(String, Section)>>,
}

#[derive(Clone, Copy, Debug, PartialEq, Deserialize)]
struct Section {
    start: f64,
    end: f64,
}

impl Timings {
    /// `None` for another page.
    pub(crate) fn read(bytes: &[u8]) -> Result<Option<Timings>, Error> {
        let mut places = bytes.windows(UNITS.len());
        let Some(at) = places.position(|part| part == UNITS) else {
            return Ok(None);
        };
        let data = bytes.get(at + UNITS.len()..).unwrap_or_default();
        let before = bytes.get(..at).unwrap_or_default();
        let lines = before.iter().filter(|byte| **byte == b'\n').count();
        let damaged = |what: String| Error::Damaged {
            format: FORMAT,
            what: format!("UNIT_DATA in line {}: {what}", lines + 1),
        };
        let mut values = serde_json::Deserializer::from_slice(data).into_iter::<Vec<Unit>>();
        let mut units = match values.next() {
            Some(Ok(units)) => units,
            Some(Err(error)) => return Err(damaged(error.to_string())),
            None => return Err(damaged("nothing follows".to_owned())),
        };
        Error::at_most(MOST, units.len(), FORMAT, "units")?;
        // cargo does not measure doctests.
        units.retain(|unit| unit.duration > 0.0 || !unit.target.ends_with("(doc test)"));
        let rustc = rustc(before);
        Ok(Some(Timings { units, rustc }))
    }

    /// Places each unit on its compiler's process, and inside it the parts of its work.
    pub(crate) fn place(&self, recording: &Recording<'_>) -> Placed {
        let analysis = recording.analysis;
        let spans: Vec<Span> = self.units.iter().map(Unit::span).collect();
        let mut best = Vec::new();
        let count = |found: &[Option<ProcessIx>]| found.iter().flatten().count();
        for cargo in recording.of_family(Family::Cargo) {
            let children = &analysis.process(cargo).children;
            let mut works: HashMap<Work, Vec<ProcessIx>> = HashMap::new();
            for ix in children {
                if let Some(work) = Work::of(&analysis.process(*ix).argv) {
                    works.entry(work).or_default().push(*ix);
                }
            }
            let named = |unit: &Unit| {
                let same = works.get(&unit.work()).map(Vec::as_slice);
                unit.of_version(recording, same.unwrap_or_default())
            };
            let named: Vec<Vec<ProcessIx>> = self.units.iter().map(named).collect();
            let compilers: Vec<ProcessIx> = works.into_values().flatten().collect();
            let aligned = align(analysis, cargo, &spans, &named, &compilers);
            if count(&aligned) > count(&best) {
                best = aligned;
            }
        }
        let mut placed = Placed {
            all: self.units.len() as u64,
            tool: self.rustc.clone(),
            ..Placed::default()
        };
        for (unit, process) in self.units.iter().zip(best) {
            if let Some(process) = process {
                unit.on(recording, process, &mut placed);
            }
        }
        placed
    }
}

/// `rustc 1.95.0` of the page's table.
fn rustc(page: &[u8]) -> Option<String> {
    let at = page.windows(RUSTC.len()).position(|part| part == RUSTC)?;
    let version = page.get(at + RUSTC.len()..)?;
    let is_version = |byte: &&u8| byte.is_ascii_alphanumeric() || b".-+".contains(byte);
    let version: Vec<u8> = version.iter().take_while(is_version).copied().collect();
    let version = String::from_utf8(version).ok()?;
    let some = (1..=MOST_VERSION).contains(&version.len());
    some.then(|| format!("rustc {version}"))
}

/// The work of a process, by which a unit finds it.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
enum Work {
    Compile {
        crate_name: Vec<u8>,
        test: bool,
    },
    Document {
        crate_name: Vec<u8>,
    },
    /// The run of a package's build script.
    Run {
        package: Vec<u8>,
    },
}

impl Work {
    fn of(argv: &Argv) -> Option<Work> {
        let args: Vec<&[u8]> = argv.args().collect();
        let program = args.first()?;
        if is_of(program, Family::BuildScript) {
            let directory = program.rsplit(|byte| *byte == b'/').nth(1)?;
            // The directory is PACKAGE-HASH.
            let dash = directory.iter().rposition(|byte| *byte == b'-')?;
            let package = directory.get(..dash)?.to_vec();
            return Some(Work::Run { package });
        }
        let at = args.iter().position(|arg| *arg == b"--crate-name")?;
        let crate_name = args.get(at + 1)?.to_vec();
        let documents = args.iter().take(at).any(|arg| is_of(arg, Family::Rustdoc));
        Some(if documents {
            Work::Document { crate_name }
        } else {
            let test = args.contains(&&b"--test"[..]);
            Work::Compile { crate_name, test }
        })
    }
}

impl Unit {
    fn span(&self) -> Span {
        let from = ns(self.start);
        Span {
            from,
            to: from.saturating_add(ns(self.duration)),
            needs_name: false,
        }
    }

    fn work(&self) -> Work {
        let target = self.target.trim_start();
        let of_package = target.is_empty() || target.starts_with('(');
        let name = target.split(' ').next().filter(|_| !of_package);
        let name = name.unwrap_or(&self.name);
        if name == "build-script" {
            return if target.ends_with("(run)") {
                Work::Run {
                    package: self.name.as_bytes().to_vec(),
                }
            } else {
                Work::Compile {
                    crate_name: b"build_script_build".to_vec(),
                    test: false,
                }
            };
        }
        let crate_name = name.replace('-', "_").into_bytes();
        if target.ends_with("(doc)") {
            return Work::Document { crate_name };
        }
        let test = target.ends_with("test)");
        Work::Compile { crate_name, test }
    }

    /// The processes that compile this version of a package, if the directory of its sources has the
    /// version in its name; else all of `same`.
    fn of_version(&self, recording: &Recording<'_>, same: &[ProcessIx]) -> Vec<ProcessIx> {
        let directory = format!("{}-{}", self.name, self.version);
        let is = |ix: &ProcessIx| {
            let mut args = recording.analysis.process(*ix).argv.args();
            args.any(|arg| {
                let mut parts = arg.split(|byte| *byte == b'/');
                parts.any(|part| part == directory.as_bytes())
            })
        };
        let of_version: Vec<ProcessIx> = same.iter().copied().filter(is).collect();
        if of_version.is_empty() {
            same.to_vec()
        } else {
            of_version
        }
    }

    /// The parts of the compiler's work, since its beginning.
    fn parts<'a>(&'a self) -> Vec<(&'a str, i64, i64)> {
        match (&self.sections, self.rmeta_time) {
            (Some(sections), _) => {
                let part =
                    |(name, it): &'a (String, Section)| (name.as_str(), ns(it.start), ns(it.end));
                sections.iter().map(part).collect()
            }
            (None, Some(rmeta)) if rmeta > 0.0 => vec![
                ("frontend", 0, ns(rmeta)),
                ("codegen", ns(rmeta), ns(self.duration)),
            ],
            (None, _) => Vec::new(),
        }
    }

    fn on(&self, recording: &Recording<'_>, process: ProcessIx, placed: &mut Placed) {
        let life = recording.analysis.process(process);
        let name = format!("{} v{}{}", self.name, self.version, self.target);
        let of =
            |name: &str, times| imported(ImportedKind::Unit, name.as_bytes(), (process, times));
        placed.spans.push(Imported {
            whole: true,
            ..of(&name, (life.start, life.end))
        });
        let start = signed(life.start);
        for (name, from, to) in self.parts() {
            let (from, to) = (start.saturating_add(from), start.saturating_add(to));
            if let Some(times) = recording.inside(process, from, to.max(from)) {
                placed.spans.push(of(name, times));
                placed.parts += 1;
            }
        }
    }
}

/// Nanoseconds of seconds; 0 for what no time is.
fn ns(seconds: f64) -> i64 {
    // `as` saturates, and makes 0 of what is no number.
    (seconds.clamp(0.0, 1e9) * 1e9) as i64
}
