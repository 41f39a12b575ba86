//! The build tools that run several jobs at once: their options for the number of jobs, and the
//! order in which they start the jobs.

use crate::words::has;

/// The long options, and npm's `-ws`, with which build tools continue after a failure; separated by spaces.
pub const KEEPS_GOING: &str = "--keep-going --no-fail-fast --continue --workspaces -ws";

/// The long options with which make runs no recipe: it only prints, answers by its exit status (`--question`) or marks
/// files as up to date (`--touch`). Separated by spaces.
pub const ASKING_OPTIONS: &str =
    "--dry-run --just-print --print-data-base --question --recon --touch";

/// How a build tool such as make or ninja runs several jobs at once: its options for the number of
/// jobs, and the order in which it starts them.
#[derive(Clone, Copy, Debug)]
pub struct JobTool {
    /// The build tool's options that set the number of jobs, such as `-j --jobs`, separated by
    /// spaces.
    pub(crate) options: &'static str,
    /// The letters of the build tool's short options without a value. They may stand before an
    /// option with a value, as `k` in `-kj4`.
    pub(crate) flags: &'static str,
    /// The build tool's options that have their value in the next argument, separated by spaces. The options for the
    /// number of jobs and for the load limit are not among them, because such an option may stand without a number.
    pub(crate) valued: &'static str,
    /// The build tool's options that set the number of jobs to one, separated by spaces.
    pub(crate) one: &'static str,
    /// The values, such as `auto`, with which the build tool's option sets the number of jobs to
    /// the number of CPUs; separated by spaces.
    pub(crate) auto: &'static str,
    /// The letter of the short option with which the build tool continues after a job has failed
    /// (`k` for make).
    pub keep_going: &'static str,
    /// The letters of the short options with which the build tool runs no job, such as make's `n`, which only prints
    /// the commands.
    pub asks: &'static str,
    /// The order in which the build tool starts its jobs, if that order is known.
    pub starts: Option<Starts>,
    /// The number of jobs that the build tool runs at once if no argument sets it.
    pub by_default: DefaultJobs,
}

/// The default values from which the descriptions of build tools in the table are made. A description sets at least
/// the options for the number of jobs.
pub(crate) const JOBS: JobTool = JobTool {
    options: "",
    flags: "",
    valued: "",
    one: "",
    auto: "",
    keep_going: "",
    asks: "",
    starts: None,
    by_default: DefaultJobs::One,
};

/// The order in which a build tool starts its jobs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Starts {
    /// The build tool starts each job as soon as the jobs that it depends on have ended and a job slot is free. The
    /// recorded wait of the tool shows which of these two conditions was met last.
    Needs,
    /// The build tool starts its jobs in the order of [`Starts::Needs`], but a thread of its own waits for each job. So
    /// the recorded waits of the tool do not show which job the tool waited for.
    Threads,
    /// The build tool starts its jobs in the order of a list, each as soon as a job slot is free.
    Listed,
}

/// The number of jobs that a build tool runs at once if no argument sets it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DefaultJobs {
    /// The build tool runs one job at a time by default.
    One,
    /// The build tool runs as many jobs as there are CPUs by default.
    Cpus,
    /// The build tool runs two more jobs than there are CPUs by default; with one or two CPUs, one
    /// more (`GuessParallelism` in ninja's src/ninja.cc).
    CpusAndMore,
    /// The build tool runs as many jobs as there are CPUs that it may use. A recording does not
    /// show this number, so the largest number of jobs that ran at once is taken instead.
    Seen,
}

/// The long options with which make starts jobs only while the machine's load is below a limit. The
/// short option is [`LOAD`].
const LOAD_LIMITS: [&[u8]; 2] = [b"--load-average", b"--max-load"];
const LOAD: &[u8] = b"-l";

impl JobTool {
    /// The number of jobs that the build tool's arguments set, such as 4 for `-j4`. `Some(None)` is returned for an
    /// option whose value is no number or 0, and `None` without such an option.
    pub fn jobs(&self, args: &[&[u8]]) -> Option<Option<u64>> {
        let value = self.given(args)?;
        // The value 0 means that the number of jobs has no limit, so it is not returned as a number.
        Some(value.parse().ok().filter(|jobs| *jobs > 0))
    }

    /// The argument, such as `-l2`, that lets the build tool start jobs only while the machine's load is below a
    /// limit; `None` for tools with another order than [`Starts::Needs`], which have no such option.
    pub fn load_limit<'a>(&self, args: &[&'a [u8]]) -> Option<&'a [u8]> {
        let is_long = |arg: &[u8]| LOAD_LIMITS.iter().any(|option| arg.starts_with(option));
        let is_limit = |arg: &&&[u8]| {
            let number = arg.strip_prefix(LOAD);
            let number = number.filter(|rest| rest.first().is_none_or(u8::is_ascii_digit));
            number.is_some() || is_long(arg)
        };
        let found = args.iter().find(is_limit).copied();
        found.filter(|_| self.starts == Some(Starts::Needs))
    }

    /// Whether the number of CPUs decides how many workers a build tool with these arguments starts: by a value such
    /// as `auto` or, for a tool whose order of jobs is not known, by its default.
    pub fn follows(&self, args: &[&[u8]]) -> bool {
        let value = self.given(args).unwrap_or_default();
        // For such a tool, each value that is no number, such as `50%` or `num-cpus`, also makes the number of workers
        // depend on the CPUs.
        let is_unset = self.starts.is_none() && self.by_default == DefaultJobs::Seen;
        self.is_auto(&value) || (is_unset && value.parse::<u64>().is_err())
    }

    /// The targets and variable settings among the build tool's arguments: those before `--` that
    /// are neither options nor values of options.
    pub fn operands<'a>(&self, args: &'a [&'a [u8]]) -> impl Iterator<Item = &'a [u8]> + use<'a> {
        let tool = *self;
        let mut before: &[u8] = b"";
        let own = args.iter().copied().take_while(|arg| *arg != b"--");
        own.filter(move |arg| {
            let is_value = tool.takes(before, arg);
            before = arg;
            !is_value && !arg.starts_with(b"-")
        })
    }

    /// Whether the argument `value` is the value of the argument `option`, which stands right before it on the build
    /// tool's command line.
    pub fn takes(&self, option: &[u8], value: &[u8]) -> bool {
        let is_digit = |byte: &u8| byte.is_ascii_digit() || *byte == b'.';
        let is_number = !value.is_empty() && value.iter().all(is_digit);
        let takes_number =
            option == LOAD || LOAD_LIMITS.contains(&option) || has(self.options, option);
        has(self.valued, option) || is_number && takes_number
    }

    fn is_auto(&self, value: &str) -> bool {
        !value.is_empty() && self.auto.split(' ').any(|word| word == value)
    }

    /// The value of the build tool's option for the number of jobs: the rest of the option's own argument or else the
    /// next argument, even if that is no number. Empty if the option is the last argument, and `None` if the arguments
    /// do not have the option.
    fn given(&self, args: &[&[u8]]) -> Option<String> {
        let is_one = |arg: &&[u8]| self.one.split(' ').any(|option| option.as_bytes() == *arg);
        if !self.one.is_empty() && args.iter().any(is_one) {
            return Some("1".to_owned());
        }
        let mut args = args.iter();
        while let Some(arg) = args.next() {
            let arg = String::from_utf8_lossy(arg);
            for option in self.options.split(' ') {
                let Some(value) = self.value(&arg, option) else {
                    continue;
                };
                if value.is_empty() {
                    let next = args.clone().next();
                    let next = next.and_then(|next| std::str::from_utf8(next).ok());
                    return Some(next.unwrap_or_default().to_owned());
                }
                if value.bytes().all(|byte| byte.is_ascii_digit()) || self.is_auto(value) {
                    return Some(value.to_owned());
                }
            }
        }
        None
    }

    /// The letters of all short options in the build tool's arguments: `k` and `j` for `-kj4`. A
    /// value that follows a letter in the same argument is left out.
    pub fn letters<'a>(
        &'a self,
        args: impl Iterator<Item = &'a [u8]> + 'a,
    ) -> impl Iterator<Item = u8> + 'a {
        let options = args.take_while(|arg| *arg != b"--");
        let short = options.filter_map(|arg| match arg {
            [b'-', b'-', ..] => None,
            [b'-', letters @ ..] => Some(letters),
            _ => None,
        });
        short.flat_map(|letters| {
            let is_flag = |letter: &u8| self.flags.as_bytes().contains(letter);
            let flags = letters.iter().take_while(|letter| is_flag(letter)).count();
            letters.iter().take(flags + 1).copied()
        })
    }

    /// The value of a build tool's option, if it follows the option's name in the same argument, as in `-j4` or
    /// `--jobs=4`; empty for the option alone, and `None` for another argument.
    fn value<'a>(&self, arg: &'a str, option: &str) -> Option<&'a str> {
        let value = match arg.strip_prefix(option) {
            Some(value) => value,
            None => {
                let letter = option
                    .strip_prefix('-')
                    .filter(|letter| letter.len() == 1)?;
                let (before, value) = arg.strip_prefix('-')?.split_once(letter)?;
                let flags = before.chars().all(|flag| self.flags.contains(flag));
                flags.then_some(value)?
            }
        };
        Some(value.strip_prefix('=').unwrap_or(value))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::table;
    use tr_text::escape;

    fn of(name: &str) -> Option<JobTool> {
        table::by_name(name)?.jobs
    }

    #[test]
    fn the_number_of_jobs_is_read() {
        let jobs = |name, args: &str| {
            let args: Vec<&[u8]> = args.split(' ').map(str::as_bytes).collect();
            of(name).unwrap().jobs(&args)
        };
        for (args, expected) in [
            ("make all", None),
            ("make -j4 all", Some(Some(4))),
            ("make -j 4 all", Some(Some(4))),
            ("make --jobs=16", Some(Some(16))),
            ("make -j", Some(None)),
            ("make -skj4", Some(Some(4))),
            ("make -kj 4", Some(Some(4))),
            ("make -C project -f jam.mk", None),
            ("make --jam -fj4", None),
        ] {
            assert_eq!(jobs("make", args), expected, "{args}");
        }
        assert_eq!(jobs("xargs", "xargs -0P8 -n1"), Some(Some(8)));
        assert_eq!(jobs("xargs", "xargs -P0 -n1"), Some(None));
        assert_eq!(jobs("ninja", "ninja -j0"), Some(None));
        assert_eq!(jobs("pytest", "pytest -n auto"), Some(None));
    }

    #[test]
    fn operands_are_targets_and_variables() {
        let operands = |line: &str| {
            let args: Vec<&[u8]> = line.split(' ').skip(1).map(str::as_bytes).collect();
            let tool = of(line.split(' ').next().unwrap()).unwrap();
            tool.operands(&args)
                .map(escape::raw)
                .collect::<Vec<_>>()
                .join(" ")
        };
        for (line, want) in [
            ("make -C src -j 4 -f jam.mk all CC=gcc", "all CC=gcc"),
            ("make -j all -l 2.5", "all"),
            ("make --jobs 4 -l 2 -I inc -s", ""),
            ("make 1 2 -- 3", "1 2"),
            ("ninja -C out -j 4 -k 0 all", "all"),
        ] {
            assert_eq!(operands(line), want, "{line}");
        }
    }

    #[test]
    fn a_limit_of_the_load_is_read() {
        for (name, args, want) in [
            ("make", "make -j8 -l2", Some("-l2")),
            ("make", "make -j8 -l 2.5", Some("-l")),
            ("make", "make --load-average=4", Some("--load-average=4")),
            ("ninja", "ninja -l4", Some("-l4")),
            ("make", "make -j8 -lib", None),
            ("xargs", "xargs -l2", None),
        ] {
            let args: Vec<&[u8]> = args.split(' ').map(str::as_bytes).collect();
            let found = of(name).unwrap().load_limit(&args);
            assert_eq!(found, want.map(str::as_bytes), "{args:?}");
        }
    }

    #[test]
    fn workers_follow_the_cpus_unless_a_number_is_given() {
        let follows = |name, args: &str| {
            let args: Vec<&[u8]> = args.split(' ').map(str::as_bytes).collect();
            of(name).unwrap().follows(&args)
        };
        for args in [
            "pytest -n auto",
            "pytest -q -nauto",
            "pytest --numprocesses=logical",
        ] {
            assert!(follows("pytest", args), "{args}");
        }
        for args in [
            "pytest",
            "pytest -n 4",
            "pytest -n0",
            "pytest -n",
            "pytest -k auto",
        ] {
            assert!(!follows("pytest", args), "{args}");
        }
        for args in [
            "jest",
            "jest --maxWorkers=50%",
            "jest --maxWorkers 50%",
            "jest -w 50%",
        ] {
            assert!(follows("jest", args), "{args}");
        }
        for args in [
            "vitest -w",
            "node /w/node_modules/vitest/vitest.mjs -w 2",
            "vitest --maxWorkers 50%",
        ] {
            assert!(follows("vitest", args), "{args}");
        }
        assert!(!follows("vitest", "vitest --maxWorkers=2"));
        for args in [
            "jest --maxWorkers=2 a",
            "jest --maxWorkers 2",
            "jest -w2",
            "jest -i",
            "node /w/node_modules/.bin/jest --maxWorkers=50% --runInBand",
        ] {
            assert!(!follows("jest", args), "{args}");
        }
        assert!(follows(
            "cargo-nextest",
            "cargo-nextest nextest run -j num-cpus"
        ));
        assert!(!follows("cargo-nextest", "cargo-nextest nextest run -j 2"));
        // For cargo the order of jobs is known, and a forecast simulates the jobs in this order. `follows` is about
        // jobs in an unknown order, so it is false.
        assert!(!follows("cargo", "cargo build"));
    }
}
