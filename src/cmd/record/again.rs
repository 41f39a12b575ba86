//! Makes command lines that repeat a recording. Error messages print them as a remedy that can be copied into
//! a shell.

use std::os::unix::ffi::OsStrExt;

use tr_redact::Redactor;

use super::options::Args;
use crate::open;

/// The arguments that start such a recording again, quoted for a shell, with a space before each: the file, the tasks,
/// the duration, the masks, `--light` and COMMAND, without options such as `--stacks`. Secrets of COMMAND are masked,
/// because others may read the log in which the line is printed.
pub fn arguments(args: &Args, redactor: &Redactor) -> String {
    let mut words: Vec<Vec<u8>> = Vec::new();
    let mut option = |name: &str, value: &[u8]| words.extend([name.into(), value.to_vec()]);
    if args.output().as_os_str() != open::DEFAULT_FILE {
        option("-o", args.output().as_os_str().as_bytes());
    }
    if !args.pid.is_empty() {
        let pids: Vec<String> = args.pid.iter().map(u32::to_string).collect();
        option("--pid", pids.join(",").as_bytes());
    }
    if let Some(cgroup) = &args.cgroup {
        option("--cgroup", cgroup.as_os_str().as_bytes());
    }
    if let Some(duration) = args.duration {
        let seconds = format!("{}s", duration.as_secs_f64());
        option("--duration", seconds.as_bytes());
    }
    for pattern in &args.redact {
        option("--redact", pattern.as_str().as_bytes());
    }
    if args.mask_addresses {
        words.push(b"--mask-addresses".to_vec());
    }
    if args.light {
        words.push(b"--light".to_vec());
    }
    if args.all {
        words.push(b"--all".to_vec());
    }
    if !args.command.is_empty() {
        let command: Vec<_> = args.command.iter().map(|a| a.as_bytes().to_vec()).collect();
        words.push(b"--".to_vec());
        words.extend(redactor.clone().masked_command(&command));
    }
    let words = tr_text::escape::command(words.iter().map(Vec::as_slice));
    format!(" {words}")
}

/// The arguments of `tr` for starting the same recording again under sudo, with `--user` so that COMMAND still
/// runs as this user. `again` has the arguments without that option.
pub fn record_again(args: &Args, again: &str) -> String {
    let user = if args.command.is_empty() {
        String::new()
    } else {
        as_user(args)
    };
    format!("record{user}{again}")
}

/// The option ` --user NAME`, by which COMMAND does not run as root although `tr` runs under sudo; empty if
/// this user is root already.
fn as_user(args: &Args) -> String {
    let named = args.user.clone();
    let own = || {
        let uid = nix::unistd::Uid::effective();
        (!uid.is_root()).then(|| tr_record::user_name(uid.as_raw()))?
    };
    named
        .or_else(own)
        .map_or_else(String::new, |name| format!(" --user {name}"))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use clap::{Args as _, FromArgMatches};

    use super::*;

    #[test]
    fn masks_stay() {
        let words = ["--redact", "id-[0-9]+", "--mask-addresses", "--", "make"];
        let command = Args::augment_args(clap::Command::new("record"));
        let matches = command.get_matches_from(["record"].into_iter().chain(words));
        let args = Args::from_arg_matches(&matches).unwrap();
        let again = arguments(&args, &Redactor::new(true, Vec::new()));
        assert_eq!(again, " --redact 'id-[0-9]+' --mask-addresses -- make");
    }
}
