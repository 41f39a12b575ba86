//! Finds out whether a process of the program `timeout` ended the program that it ran.

use std::time::Duration;
use tr_programs::words;

use tr_analyze::model::Process;
use tr_analyze::status::{self, KILL};
use tr_format::event::Argv;

use crate::processes::{exit, label};

/// Whether a process runs the program `timeout`, and `timeout` ended its child process because the time limit had
/// passed. In this case, `timeout` exits with status 124 or 137. With `-s KILL`, SIGKILL also ends `timeout` itself,
/// because it sends the signal to its own process group. In that case, `timeout` must also have run for at least its
/// limit.
pub fn timed_out(process: &Process) -> bool {
    if !label::program(process).is("timeout") {
        return false;
    }
    let late =
        || limit(&process.argv).is_some_and(|limit| u128::from(ran(process)) >= limit.as_nanos());
    process.status.is_some_and(status::is_timeout)
        || exit::killed_by(process.status) == Some(KILL) && late()
}

/// The time in nanoseconds for which the last program of a process ran. If the process executed only one program, the
/// time counts from the start of the process.
pub fn ran(process: &Process) -> u64 {
    match &*process.execs {
        [] | [_] => process.wall(),
        [.., last] => process.end.since(last.start),
    }
}

/// The time limit that the arguments of the program `timeout` set; `None` if they set no limit or are not understood.
fn limit(argv: &Argv) -> Option<Duration> {
    let mut args = argv.args();
    let name = String::from_utf8_lossy(args.next()?);
    if words::base(&name) != "timeout" {
        return None;
    }
    let limit = loop {
        let arg = args.next()?;
        match arg {
            b"--" => break args.next()?,
            [b'-', b'-', b'k' | b's', ..] if !arg.contains(&b'=') => _ = args.next(),
            [b'-', b'-', ..] => {}
            // In a group of short options, `k` and `s` take a value, which may follow as the next argument: `-vk 5` and
            // `-vk5`.
            [b'-', letters @ ..] => {
                let valued = letters.iter().position(|letter| b"ks".contains(letter));
                if valued.is_some_and(|at| at + 1 == letters.len()) {
                    args.next();
                }
            }
            _ => break arg,
        }
    };
    let text = std::str::from_utf8(limit).ok()?;
    let (number, unit) = match text.strip_suffix(['s', 'm', 'h', 'd']) {
        Some(number) => (number, text.as_bytes().last()),
        None => (text, None),
    };
    let seconds = match unit {
        Some(b'm') => 60.0,
        Some(b'h') => 3600.0,
        Some(b'd') => 86400.0,
        _ => 1.0,
    };
    let seconds = number.parse::<f64>().ok()? * seconds;
    // A limit of 0 means that timeout sets no limit.
    let limit = Duration::try_from_secs_f64(seconds).ok()?;
    (!limit.is_zero()).then_some(limit)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn its_time_is_the_first_argument_that_is_no_option() {
        let limit = |line: &str| limit(&Argv::from_args(line.split(' ')));
        let half = Some(Duration::from_millis(500));
        for line in [
            "timeout -s KILL 0.5 x",
            "/usr/bin/timeout -sKILL .5s x 9",
            "timeout --signal KILL --kill-after=1 0.5 x",
            "timeout -vk 0.2 0.5 x",
            "timeout -vk1 --foreground -- 0.5 x",
        ] {
            assert_eq!(limit(line), half, "{line}");
        }
        assert_eq!(limit("timeout 1.5m x"), Some(Duration::from_secs(90)));
        for line in [
            "timeout 0 x",
            "timeout -s KILL",
            "timeout inf x",
            "timeout -1 x",
            "time 0.5 x",
        ] {
            assert_eq!(limit(line), None, "{line}");
        }
    }
}
