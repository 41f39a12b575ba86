//! Opens the files of a recording that `--rotate` has divided as one trace.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use tr_format::reader::{Joint, Trace};
use tr_text::units;

use crate::errors::{refused, shown, COMPARED_BY};
use crate::{open, pattern};

/// The paths of all files of a recording that `--rotate` may have divided.
pub fn paths<'a>(first: &'a Path, more: &'a [PathBuf]) -> impl Iterator<Item = &'a Path> {
    std::iter::once(first).chain(more.iter().map(PathBuf::as_path))
}

/// The recording's name for messages: the path of its file, or for a rotated recording the paths of all its files,
/// replaced by a shell pattern if one matches exactly these files.
pub fn name(first: &Path, more: &[PathBuf]) -> String {
    let mut all: Vec<&Path> = paths(first, more).collect();
    if let [only] = all[..] {
        return only.to_string_lossy().into_owned();
    }
    all.sort_unstable();
    all.dedup();
    let pattern = match (all.first(), all.last()) {
        (Some(first), Some(last)) => pattern::of(first, last, all.len() as u64),
        _ => None,
    };
    pattern.unwrap_or_else(|| {
        let names = all.iter().map(|path| path.to_string_lossy());
        names.collect::<Vec<_>>().join(" ")
    })
}

/// Opens the parts of a rotated recording (`--rotate`) as one trace, in the order of time, like [`open::warned`]. A
/// single FILE is opened as it is.
pub fn opened(first: &Path, more: &[PathBuf]) -> Result<Trace, ExitCode> {
    if more.is_empty() {
        return open::warned(first);
    }
    let opened = paths(first, more).map(|path| Ok((path, open::warned(path)?)));
    let mut opened = opened.collect::<Result<Vec<(&Path, Trace)>, ExitCode>>()?;
    opened.sort_by_key(|(_, trace)| trace.meta().start);
    let mut opened = opened.into_iter();
    let Some((mut before, mut all)) = opened.next() else {
        return open::warned(first);
    };
    let (mut count, mut missing) = (1u64, 0u64);
    for (path, trace) in opened {
        let (one, other) = (shown(before), shown(path));
        match all.append(trace) {
            Ok(Joint::Whole) => {}
            Ok(Joint::Missing(ns)) => {
                missing += 1;
                let ns = units::time(ns);
                message!("{ns} are missing between {one} and {other}: their time is unknown");
            }
            Err(why) => {
                let why = format!("{other}: after {one}: {why}\n    {COMPARED_BY}");
                return Err(refused(why));
            }
        }
        before = path;
        count += 1;
    }
    let gaps = match missing {
        0 => "nothing is missing between them".to_owned(),
        _ => units::plural(missing, "gap", "gaps"),
    };
    message!("{count} parts of one recording; {gaps}");
    Ok(all)
}
