//! The options of a shell, such as `-e`, that decide what it does after the failure of a command.

use super::words::Word;

/// Whether a shell has an option such as `-e` set at a place of its script.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Setting {
    #[default]
    Off,
    On,
    /// The shell has the option set on some paths to this place of the script but not on all, or this is not known.
    Maybe,
}

impl Setting {
    /// Notes that the shell's option may be set from here on, if it was not set before.
    pub(super) fn doubt(&mut self) {
        if *self == Setting::Off {
            *self = Setting::Maybe;
        }
    }
}

/// The options of the shell at one place of its script that decide what happens after a failure.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Options {
    /// Whether the shell ends after a command that fails (`set -e`).
    pub errexit: Setting,
    /// Whether the shell ends at a variable that is not set (`set -u`).
    pub nounset: Setting,
    /// Whether a pipe fails if any of its commands fails (`set -o pipefail`).
    pub pipefail: Setting,
    /// Whether the commands at this place of the script are a condition (`if`, `&&`), where
    /// `set -e` has no effect.
    pub tested: bool,
    /// Whether the shell is bash, which switches `set -e` off inside `$(…)`.
    pub is_bash: bool,
}

impl Options {
    /// The options that a shell has after a start with these arguments, such as `bash -e`. Returns
    /// `None` if the program is no shell whose rules are known.
    pub fn of(args: &[&[u8]]) -> Option<Options> {
        let (first, rest) = args.split_first()?;
        let first = first.strip_prefix(b"-").unwrap_or(first);
        let name = first.rsplit(|byte| *byte == b'/').next()?;
        let mut options = Options {
            is_bash: name == b"bash",
            ..Options::default()
        };
        if !options.is_bash && !matches!(name, b"sh" | b"dash" | b"ash") {
            return None;
        }
        let mut rest = rest.iter();
        while let Some(arg) = rest.next() {
            if !options.take(arg, &mut rest.by_ref().copied()) {
                break;
            }
        }
        Some(options)
    }

    /// Changes the shell's options as the builtin `set` does with these arguments.
    pub(super) fn set(&mut self, arguments: &[Word]) {
        let mut words = arguments.iter().map(|word| word.text.as_slice());
        while let Some(word) = words.next() {
            if !self.take(word, &mut words) {
                break;
            }
        }
    }

    /// Changes the shell's options by one argument of `set`. For `-o`, the name of the option is
    /// taken from `rest`. Returns whether the argument was an option.
    fn take<'a>(&mut self, arg: &[u8], rest: &mut impl Iterator<Item = &'a [u8]>) -> bool {
        let (to, letters) = match arg {
            [b'-', b'-', ..] | [] => return false,
            [b'-', letters @ ..] => (Setting::On, letters),
            [b'+', letters @ ..] => (Setting::Off, letters),
            _ => return false,
        };
        for letter in letters {
            match letter {
                b'e' => self.errexit = to,
                b'u' => self.nounset = to,
                b'o' => match rest.next() {
                    Some(b"errexit") => self.errexit = to,
                    Some(b"nounset") => self.nounset = to,
                    Some(b"pipefail") => self.pipefail = to,
                    _ => {}
                },
                _ => {}
            }
        }
        true
    }

    /// Merges the shell's options of two paths through a script that meet. An option that only one
    /// path sets becomes [`Setting::Maybe`].
    pub(super) fn merge(&mut self, other: Options) {
        for (setting, other) in [
            (&mut self.errexit, other.errexit),
            (&mut self.nounset, other.nounset),
            (&mut self.pipefail, other.pipefail),
        ] {
            if *setting != other {
                *setting = Setting::Maybe;
            }
        }
    }
}
