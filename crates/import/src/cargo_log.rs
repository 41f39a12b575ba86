//! Reads the log that cargo writes with `-Zbuild-analysis`: one JSON object in each line, with the beginnings
//! and ends of units in seconds since cargo's start.

use std::collections::BTreeMap;

use serde::Deserialize;
use tr_placing::cargo::{Timings, Unit, UnitPart};
use tr_placing::ToolVersion;

use crate::cargo::{ns, MOST_UNITS};
use crate::error::Error;

const FORMAT: &str = "cargo -Zbuild-analysis";

/// The bytes with which a log of `cargo -Zbuild-analysis` begins.
pub(crate) const MAGIC: &[u8] = b"{\"run_id\":";

/// An event in the log of `cargo -Zbuild-analysis`. Events of other kinds are ignored.
#[derive(Deserialize)]
#[serde(tag = "reason", rename_all = "kebab-case")]
enum Event {
    BuildStarted {
        rustc_version: String,
    },
    UnitRegistered(Registered),
    UnitStarted(Moment),
    UnitRmetaFinished(Moment),
    UnitFinished(Moment),
    #[serde(other)]
    Other,
}

#[derive(Deserialize)]
struct Registered {
    index: u64,
    package_id: String,
    target: Target,
    mode: String,
}

#[derive(Deserialize)]
struct Target {
    name: String,
    kind: String,
}

/// A moment in the compilation of one unit, in seconds since cargo's start.
#[derive(Deserialize)]
struct Moment {
    index: u64,
    elapsed: f64,
}

impl Registered {
    /// The compiled unit, with its name spelled as on the page of `cargo build --timings`.
    fn unit(&self) -> Unit {
        // The id is written as `registry+https://…#serde@1.0.2` or `path+file:///p/serde#1.0.2`.
        let (source, id) = self.package_id.rsplit_once('#').unwrap_or_default();
        let directory = source.rsplit('/').next().unwrap_or_default();
        let (name, version) = id.rsplit_once('@').unwrap_or((directory, id));
        let target = match (self.target.kind.as_str(), self.mode.as_str()) {
            ("lib", "build") => String::new(),
            ("lib", _) => " lib".to_owned(),
            ("build-script", _) => " build-script".to_owned(),
            (kind, _) => format!(" {} \"{kind}\"", self.target.name),
        };
        let mode = match self.mode.as_str() {
            "build" => String::new(),
            "run-custom-build" => " (run)".to_owned(),
            mode => format!(" ({mode})"),
        };
        Unit {
            name: name.to_owned(),
            version: version.to_owned(),
            target: target + &mode,
            from: 0,
            length: 0,
            parts: Vec::new(),
        }
    }
}

/// Reads a log of `cargo -Zbuild-analysis`. A last line without a line feed is left out, because cargo may still be
/// writing it.
pub(crate) fn read(bytes: &[u8]) -> Result<Timings, Error> {
    let mut started: BTreeMap<u64, Unit> = BTreeMap::new();
    let (mut units, mut rustc) = (Vec::new(), None);
    let lines = bytes.split_inclusive(|byte| *byte == b'\n').enumerate();
    for (at, line) in lines.filter(|(_, line)| line.ends_with(b"\n")) {
        let event = serde_json::from_slice(line).map_err(|error| Error::Damaged {
            format: FORMAT,
            what: format!("line {}: {error}", at + 1),
        })?;
        match event {
            Event::BuildStarted { rustc_version } => {
                rustc = ToolVersion::read("rustc", &rustc_version);
            }
            Event::UnitRegistered(unit) => drop(started.insert(unit.index, unit.unit())),
            Event::UnitStarted(moment) => {
                if let Some(unit) = started.get_mut(&moment.index) {
                    unit.from = ns(moment.elapsed);
                }
            }
            Event::UnitRmetaFinished(moment) => {
                if let Some(unit) = started.get_mut(&moment.index) {
                    let since = ns(moment.elapsed).saturating_sub(unit.from);
                    unit.parts = vec![part("frontend", 0, since), part("codegen", since, i64::MAX)];
                }
            }
            Event::UnitFinished(moment) => {
                if let Some(mut unit) = started.remove(&moment.index) {
                    unit.length = ns(moment.elapsed).saturating_sub(unit.from);
                    for part in &mut unit.parts {
                        part.to = part.to.min(unit.length);
                    }
                    units.push(unit);
                }
            }
            Event::Other => {}
        }
        Error::at_most(MOST_UNITS, started.len().max(units.len()), FORMAT, "units")?;
    }
    Ok(Timings { units, rustc })
}

fn part(name: &str, from: i64, to: i64) -> UnitPart {
    UnitPart {
        name: name.to_owned(),
        from,
        to,
    }
}
