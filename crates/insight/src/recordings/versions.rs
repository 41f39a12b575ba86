//! Finds the versions of build tools, as far as the path of a program, an argument or another tool's file shows them.

use std::collections::{BTreeMap, BTreeSet};

use crate::recordings::imports::Imports;
use tr_analyze::model::Analysis;
use tr_programs::versions::{self, ToolVersion};

/// The largest number of tools whose versions are shown. The tools that ran most often are kept.
const MOST_TOOLS: usize = 6;

/// The tools with their versions, such as `gcc 12`, in the order of their names.
pub fn shown(analysis: &Analysis, imports: &Imports) -> Vec<String> {
    let mut runs: BTreeMap<ToolVersion, usize> = BTreeMap::new();
    for exec in analysis.processes.iter().flat_map(|process| &process.execs) {
        let args: Vec<&[u8]> = exec.argv.args().collect();
        let paths = [args.first().copied(), Some(&*exec.filename)];
        let mut found = paths
            .into_iter()
            .flatten()
            .filter_map(|path| versions::of(path, &args));
        if let Some(found) = found.next() {
            *runs.entry(found).or_default() += 1;
        }
    }
    for import in imports.files.iter().filter(|import| import.placed > 0) {
        if let Some(found) = &import.tool {
            *runs.entry(found.clone()).or_default() += 1;
        }
    }
    // If both 12 and 12.2.0 were found for a tool, only the longer version is kept.
    let names: BTreeSet<_> = runs.keys().cloned().collect();
    runs.retain(|found, _| {
        let longer = ToolVersion {
            tool: found.tool,
            version: format!("{}.", found.version),
        };
        let next = names.range(&longer..).next();
        !next.is_some_and(|next| {
            next.tool == longer.tool && next.version.starts_with(&longer.version)
        })
    });
    let mut all: Vec<_> = runs.into_iter().collect();
    all.sort_by_key(|(_, runs)| std::cmp::Reverse(*runs));
    all.truncate(MOST_TOOLS);
    all.sort_unstable();
    let all = all.into_iter();
    all.map(|(found, _)| found.to_string()).collect()
}
