//! The builtins of sh, dash and bash, by how they can fail.

use super::words::{number, Word};
use crate::words::has;

/// How a builtin can fail.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Builtin {
    Succeeds,
    /// The builtin fails with 1, or with 2 after an error.
    Fails,
    /// The builtin always fails with 1.
    False,
    /// The builtin looks for a program, and fails with 1 or 127.
    Finds,
    /// The builtin fails with any status, such as the status of another process.
    Any,
}

/// The builtins that do not fail unless they are called wrongly, separated by spaces.
const SUCCEED: &str =
    ": alias break continue declare disown echo exec exit export local printf pwd readonly return \
                       set shift shopt times trap true typeset umask unalias unset";

/// The builtins that can fail, separated by spaces.
const FAIL: &str =
    "(( [ [[ bg cd fg getopts hash jobs kill let mapfile popd pushd read readarray test ulimit";

/// The other builtins, separated by spaces.
const OTHERS: &str = ". builtin command eval false source type wait";

/// The builtins that run other commands, leave a part of the script or wait, separated by spaces.
const CONTROL: &str = ". break builtin command continue eval exec exit return source trap wait";

/// The builtins of `SUCCEED` that no argument makes fail, separated by spaces.
const NEVER_FAIL: &str = ": disown echo printf pwd times true umask";

/// The builtins whose arguments set the variables that they name, with a value or without one, separated by spaces.
const ASSIGN: &str = "declare export local readonly typeset";

/// The other builtins that set the variables which they name, separated by spaces.
const READ: &str = "getopts mapfile read readarray";

/// The builtins that test a condition, separated by spaces.
const TESTS: &str = "(( [ [[ let test";

pub(super) fn is_builtin(name: &[u8]) -> bool {
    has(SUCCEED, name) || has(FAIL, name) || has(OTHERS, name)
}

/// Whether a builtin can decide about the exit status of its shell: it can fail, or it runs other commands.
pub fn may_decide(name: &[u8]) -> bool {
    is_builtin(name) && !has(NEVER_FAIL, name)
}

/// Whether a builtin does its work in the shell itself, and the script goes on after its success.
pub fn starts_nothing(name: &[u8]) -> bool {
    is_builtin(name) && !has(CONTROL, name)
}

/// Whether the arguments of a builtin give values to variables: `export x=1`
pub(super) fn assigns(name: &[u8]) -> bool {
    has(ASSIGN, name)
}

/// Whether a builtin sets the variables that it names.
pub(super) fn sets_variables(name: &[u8]) -> bool {
    assigns(name) || has(READ, name)
}

/// How a builtin with these arguments can fail.
pub(super) fn of(name: &[u8], _arguments: &[Word]) -> Builtin {
    match name {
        b"false" => Builtin::False,
        b"command" | b"type" | b"hash" => Builtin::Finds,
        _ if has(SUCCEED, name) => Builtin::Succeeds,
        _ if has(FAIL, name) => Builtin::Fails,
        _ => Builtin::Any,
    }
}

/// Whether a builtin only tests a condition.
pub(super) fn is_test(name: &[u8]) -> bool {
    has(TESTS, name)
}

impl Builtin {
    /// Whether the builtin can fail with a status.
    pub(super) fn fails_with(self, status: u32) -> bool {
        match self {
            Builtin::Succeeds => false,
            Builtin::False => status == 1,
            Builtin::Fails => matches!(status, 1 | 2),
            Builtin::Finds => matches!(status, 1 | 2 | 127),
            Builtin::Any => status != 0,
        }
    }
}

/// Whether a test succeeds if a variable has this value; `None` if the result depends on something else.
pub(super) fn result(words: &[Word], name: &[u8], value: &[u8]) -> Option<bool> {
    let texts = words.iter().map(|word| match word.variable() {
        Some(variable) => (variable == name).then_some(value),
        None => word.literal(),
    });
    let texts: Vec<&[u8]> = texts.collect::<Option<_>>()?;
    let inside = match texts.as_slice() {
        [b"[", inside @ .., b"]"] | [b"[[", inside @ .., b"]]"] | [b"test", inside @ ..] => inside,
        _ => return None,
    };
    let (negated, inside) = match inside {
        [b"!", inside @ ..] => (true, inside),
        inside => (false, inside),
    };
    let succeeds = match inside {
        [text] | [b"-n", text] => !text.is_empty(),
        [b"-z", text] => text.is_empty(),
        [first, b"=" | b"==", second] => first == second,
        [first, b"!=", second] => first != second,
        [first, operator, second] => {
            let (first, second) = (number(first)?, number(second)?);
            match *operator {
                b"-eq" => first == second,
                b"-ne" => first != second,
                b"-lt" => first < second,
                b"-le" => first <= second,
                b"-gt" => first > second,
                b"-ge" => first >= second,
                _ => return None,
            }
        }
        _ => return None,
    };
    Some(succeeds != negated)
}
