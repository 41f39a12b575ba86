//! Imports the compilation units of a build by cargo, from the page of `cargo build --timings`.

use std::collections::HashMap;

use tr_analyze::model::{Imported, ImportedKind, ProcessIx};
use tr_format::event::Argv;
use tr_programs::tools::Family;
use tr_programs::versions::ToolVersion;

use super::align::{align, Span};
use super::lookup::{imported, is_of, signed, Lookup, Placed};

/// The compilation units of a build by cargo, from the page that `cargo build --timings` writes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Timings {
    pub units: Vec<Unit>,
    /// The version of the compiler that cargo used.
    pub rustc: Option<ToolVersion>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unit {
    pub name: String,
    pub version: String,
    /// The text after the package's name by which cargo distinguishes the targets of a package in its report: empty for
    /// a library, otherwise ` NAME "KIND"` or ` build-script`. A mode such as ` (test)` can follow.
    pub target: String,
    /// The time at which cargo began to compile the unit, in nanoseconds since the start of cargo.
    pub from: i64,
    /// The length of the unit's compilation in nanoseconds.
    pub length: i64,
    /// The parts of the compiler's work on the unit, such as code generation.
    pub parts: Vec<UnitPart>,
}

/// A part of the compiler's work on a unit, with its times in nanoseconds since cargo began to compile the unit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnitPart {
    pub name: String,
    pub from: i64,
    pub to: i64,
}

impl Timings {
    /// Places each compilation unit of cargo on the process of its compiler. The parts of the compiler's work, such as
    /// code generation, are placed inside the unit.
    pub(super) fn place(&self, lookup: &Lookup<'_>) -> Placed {
        let analysis = lookup.analysis;
        let spans: Vec<Span> = self.units.iter().map(Unit::span).collect();
        let mut best = Vec::new();
        let count = |found: &[Option<ProcessIx>]| found.iter().flatten().count();
        for cargo in lookup.of_family(Family::Cargo) {
            let children = &analysis.process(cargo).children;
            let mut works: HashMap<Work, Vec<ProcessIx>> = HashMap::new();
            for ix in children {
                if let Some(work) = Work::of(&analysis.process(*ix).argv) {
                    works.entry(work).or_default().push(*ix);
                }
            }
            let named = |unit: &Unit| {
                let same = works.get(&unit.work()).map(Vec::as_slice);
                unit.of_version(lookup, same.unwrap_or_default())
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
                unit.on(lookup, process, &mut placed);
            }
        }
        placed
    }
}

/// The kind of work that a process does for cargo. A variant has the names by which the process is matched with a
/// compilation unit in cargo's report.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
enum Work {
    Compile {
        crate_name: Vec<u8>,
        test: bool,
    },
    Document {
        crate_name: Vec<u8>,
    },
    /// The process runs the build script of a package for cargo.
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
            // The name of the directory is PACKAGE-HASH, so the package's name ends at the last dash.
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
        Span {
            from: self.from,
            to: self.from.saturating_add(self.length),
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

    /// The processes in `same` that compile the unit's version of the package. They are recognized by an argument with
    /// a directory `NAME-VERSION` in its path. If no process is recognized, the result is all of `same`.
    fn of_version(&self, lookup: &Lookup<'_>, same: &[ProcessIx]) -> Vec<ProcessIx> {
        let directory = format!("{}-{}", self.name, self.version);
        let is = |ix: &ProcessIx| {
            let mut args = lookup.analysis.process(*ix).argv.args();
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

    fn on(&self, lookup: &Lookup<'_>, process: ProcessIx, placed: &mut Placed) {
        let life = lookup.analysis.process(process);
        let name = format!("{} v{}{}", self.name, self.version, self.target);
        let of =
            |name: &str, times| imported(ImportedKind::Unit, name.as_bytes(), (process, times));
        placed.spans.push(Imported {
            whole: true,
            ..of(&name, (life.start, life.end))
        });
        let start = signed(life.start);
        for part in &self.parts {
            let from = start.saturating_add(part.from);
            let to = start.saturating_add(part.to);
            if let Some(times) = lookup.inside(process, from, to.max(from)) {
                placed.spans.push(of(&part.name, times));
                placed.parts += 1;
            }
        }
    }
}
