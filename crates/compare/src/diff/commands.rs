//! Compares the command lines (COMMAND) of the runs of both sides of the comparison, and prints them.

use super::run::Run;
use super::Diff;
use tr_text::units;

/// The largest width in columns of a command line in a warning. Longer command lines are shortened.
const COMMAND_WIDTH: usize = 60;

/// The command lines of the runs on one side of a comparison as text; several if the runs are of different
/// commands.
pub(super) fn command(runs: &[Run]) -> String {
    let mut all: Vec<&str> = Vec::new();
    for run in runs {
        if !all.contains(&run.command.as_str()) {
            all.push(&run.command);
        }
    }
    match all.as_slice() {
        [""] => "the recording".into(),
        [one] => (*one).to_owned(),
        _ => all.join("; "),
    }
}

impl Run {
    /// Whether another run has the same COMMAND, apart from the parts that differ between runs, by the keys
    /// with which processes are matched.
    fn has_command_of(&self, other: &Run) -> bool {
        let keys = |run: &Run| Some(run.processes.get(run.root?)?.keys);
        // If a run has no command, or the command's process is not in the recording, the commands count as equal.
        let (Some(own), Some(its)) = (keys(self), keys(other)) else {
            return true;
        };
        self.command == other.command || own.iter().zip(its).any(|(a, b)| *a == b)
    }
}

/// The heading of a comparison: one command line if both sides have the same, otherwise the command lines of both
/// sides. The heading is shortened to `columns`; each of two long command lines gets half of this width.
pub(super) fn title(diff: &Diff, columns: usize) -> String {
    const ARROW: &str = " → ";
    let (base, new) = (command(&diff.base), command(&diff.new));
    if base == new {
        return units::shorten(&base, columns);
    }
    let room = columns.saturating_sub(units::width(ARROW));
    let part = |text: &str, beside: &str| {
        let part = room.saturating_sub(units::width(beside)).max(room / 2);
        units::shorten(text, part)
    };
    format!("{}{ARROW}{}", part(&base, &new), part(&new, &base))
}

/// A warning that the compared runs are of different commands; `None` if all runs have the same command.
pub(super) fn other_commands(diff: &Diff) -> Option<String> {
    let mut kinds: Vec<&Run> = Vec::new();
    for run in diff.runs() {
        if !kinds.iter().any(|kind| run.has_command_of(kind)) {
            kinds.push(run);
        }
    }
    let all = kinds
        .iter()
        .map(|run| units::shorten(&run.command, COMMAND_WIDTH));
    (kinds.len() > 1).then(|| {
        format!(
            "not the same command: {}",
            all.collect::<Vec<_>>().join("; ")
        )
    })
}

/// A warning that the commands of the runs differ and no process other than COMMAND exists on both sides of the
/// comparison. `None` if the commands are equal or another process exists on both sides, as for a command that only
/// wraps the earlier one.
pub(super) fn strangers(diff: &Diff) -> Option<String> {
    other_commands(diff).filter(|_| diff.shared == 0)?;
    Some("not the same command, and no other process is on both sides".into())
}

#[cfg(test)]
#[path = "tests/commands.rs"]
mod tests;
