//! Implements the options `--from` and `--to`, which choose a span of a recording's time.

use std::process::ExitCode;
use std::time::Duration;

use tr_analyze::Analysis;

use crate::{args, errors};

/// The options `--from` and `--to` of a subcommand, which choose a span of the recording's time.
#[derive(clap::Args, Clone, Copy, Debug)]
pub struct Span {
    /// Take the recording from this time on, e.g. 1.5s
    #[arg(long, value_name = "T", value_parser = args::duration)]
    pub from: Option<Duration>,
    /// Take the recording up to this time
    #[arg(long, value_name = "T", value_parser = args::duration)]
    pub to: Option<Duration>,
}

impl Span {
    /// The times of `--from` and `--to` in ns since the start of the recording; `None` where the
    /// option is not given.
    pub fn ns(self) -> (Option<u64>, Option<u64>) {
        let ns = |duration: Option<Duration>| duration.map(args::nanoseconds);
        (ns(self.from), ns(self.to))
    }

    /// Prints and returns an error if `--from` is not before `--to`.
    pub fn check(self) -> Result<(), ExitCode> {
        match self.from.zip(self.to).filter(|(from, to)| from >= to) {
            None => Ok(()),
            Some((from, to)) => Err(errors::refused(format!(
                "--from {from:?} is not before --to {to:?}"
            ))),
        }
    }

    /// Prints and returns an error if `--from` is not before the recording's end, unless it is 0.
    pub fn check_in(self, analysis: &Analysis) -> Result<(), ExitCode> {
        let end = Duration::from_nanos(analysis.whole);
        match self.from.filter(|from| *from >= end && !from.is_zero()) {
            None => Ok(()),
            Some(from) => Err(errors::refused(format!(
                "--from {from:?} is after the end of the recording, which is {end:.3?} long"
            ))),
        }
    }
}
