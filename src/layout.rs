//! Determines from the environment and the terminal how text may be laid out: with colours, with a
//! moving cursor.

use crate::pager;

/// The value of an environment variable, unless it is empty.
pub fn variable(name: &str) -> Option<std::ffi::OsString> {
    std::env::var_os(name).filter(|value| !value.is_empty())
}

/// Whether the terminal may be too simple to move its cursor, by the variable TERM.
pub fn is_dumb() -> bool {
    variable("TERM").is_none_or(|term| term == "dumb")
}

/// Whether text has colours, as <https://bixense.com/clicolors> has it: never with NO_COLOR, else always with
/// CLICOLOR_FORCE or FORCE_COLOR, else on a terminal, unless TERM is `dumb` or CLICOLOR or FORCE_COLOR is 0.
pub fn color() -> bool {
    let off = |name: &str| variable(name).is_some_and(|value| value == "0" || value == "false");
    let on = |name: &&str| variable(name).is_some() && !off(name);
    if variable("NO_COLOR").is_some() {
        return false;
    }
    if ["CLICOLOR_FORCE", "FORCE_COLOR"].iter().any(on) {
        return true;
    }
    let dumb = variable("TERM").is_some_and(|term| term == "dumb");
    pager::terminal() && !dumb && !off("CLICOLOR") && !off("FORCE_COLOR")
}
