//! The builtin commands of sh, dash and bash, grouped by the exit statuses with which they can
//! fail.

use super::words::{number, Word};
use crate::words::has;

/// The exit statuses with which a builtin command of a shell can fail.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Builtin {
    Succeeds,
    /// The builtin of the shell fails with the status 1, or with 2 after an error.
    Fails,
    /// The builtin of the shell always fails with the status 1.
    False,
    /// The builtin of the shell looks for a program, and fails with the status 1, 2 or 127.
    Finds,
    /// The builtin of the shell can fail with any status, such as the status of another process.
    Any,
}

/// The shell builtins that fail only after a wrong call, which is not considered; separated by spaces.
const SUCCEEDING_BUILTINS: &str =
    ": alias break continue declare disown echo exec exit export local printf pwd readonly return \
                       set shift shopt times trap true typeset umask unalias unset";

/// The shell builtins that can fail with the status 1 or 2, separated by spaces.
const FAILING_BUILTINS: &str =
    "(( [ [[ bg cd fg getopts hash jobs kill let mapfile popd pushd read readarray test ulimit";

/// The shell builtins that can fail with other statuses than 1 and 2, or always fail, separated by
/// spaces.
const OTHER_BUILTINS: &str = ". builtin command eval false source type wait";

/// The shell builtins that run other commands, leave a part of the script (`break`, `return`) or
/// wait, separated by spaces.
const CONTROL_BUILTINS: &str =
    ". break builtin command continue eval exec exit return source trap wait";

/// The shell builtins that are assumed never to fail, whatever their arguments are; separated by spaces.
const NEVER_FAIL: &str = ": disown echo printf pwd times true umask";

/// The shell builtins that take assignments as arguments, such as `export x=1`, separated by
/// spaces.
const ASSIGNING_BUILTINS: &str = "declare export local readonly typeset";

/// The shell builtins that read input or options into the variables which their arguments name,
/// separated by spaces.
const READING_BUILTINS: &str = "getopts mapfile read readarray";

/// The shell builtins that test a condition, separated by spaces.
const TESTING_BUILTINS: &str = "(( [ [[ let test";

/// Whether a command with this name executes a file in the shell's own process.
pub(super) fn is_source(name: &[u8]) -> bool {
    matches!(name, b"." | b"source")
}

pub(super) fn is_builtin(name: &[u8]) -> bool {
    has(SUCCEEDING_BUILTINS, name) || has(FAILING_BUILTINS, name) || has(OTHER_BUILTINS, name)
}

/// Whether a shell builtin with this name can decide about the exit status of its shell, because it
/// can fail or runs other commands.
pub fn may_decide(name: &[u8]) -> bool {
    is_builtin(name) && !has(NEVER_FAIL, name)
}

/// Whether a shell builtin with this name starts no other command, so that the script continues
/// after its success.
pub fn starts_nothing(name: &[u8]) -> bool {
    is_builtin(name) && !has(CONTROL_BUILTINS, name)
}

pub(super) fn assigns(name: &[u8]) -> bool {
    has(ASSIGNING_BUILTINS, name)
}

pub(super) fn sets_variables(name: &[u8]) -> bool {
    assigns(name) || has(READING_BUILTINS, name)
}

pub(super) fn of(name: &[u8], _arguments: &[Word]) -> Builtin {
    match name {
        b"false" => Builtin::False,
        b"command" | b"type" | b"hash" => Builtin::Finds,
        _ if has(SUCCEEDING_BUILTINS, name) => Builtin::Succeeds,
        _ if has(FAILING_BUILTINS, name) => Builtin::Fails,
        _ => Builtin::Any,
    }
}

pub(super) fn is_test(name: &[u8]) -> bool {
    has(TESTING_BUILTINS, name)
}

impl Builtin {
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

/// The text that stands for an array without elements in the value of a variable ([`Word`]).
pub(super) const EMPTY_ARRAY: &[u8] = b"(";

/// Whether a test succeeds if a variable has this value; `None` if the result depends on something else.
pub(super) fn result(words: &[Word], name: &[u8], value: &[u8]) -> Option<bool> {
    let is_empty = value == EMPTY_ARRAY;
    let texts = words.iter().map(|word| {
        if let Some(variable) = word.variable() {
            let value = if is_empty { b"" } else { value };
            return (variable == name).then_some(value);
        }
        match word.counted() {
            Some(variable) => (variable == name && is_empty).then_some(b"0".as_slice()),
            None => word.literal(),
        }
    });
    let texts: Vec<&[u8]> = texts.collect::<Option<_>>()?;
    let inside = match texts.as_slice() {
        [b"[", inside @ .., b"]"]
        | [b"[[", inside @ .., b"]]"]
        | [b"test" | b"((", inside @ ..] => inside,
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
