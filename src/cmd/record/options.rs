//! Declares the options of `tr record`, which clap parses, and derives what follows from several of them
//! together.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::time::Duration;

use tr_record::{Choice, Containers, Error, Follow};

use super::rotation;
use crate::args::{self, Cpus};
use crate::open;

/// Record a command, or the whole machine
#[derive(clap::Args, Clone, Debug)]
#[command(after_help = "\
Exit status: COMMAND's own, 128+N when signal N killed it; 124 when --timeout or
--stall ended it, 125 when tr failed,
126 when COMMAND cannot be executed, 127 when it is not found.

Examples:
  tr record -- make -j8                  record a build into trace.bin
  tr record -o test.bin -- cargo test    into another file
  tr record -a --duration 10s            the whole machine for ten seconds")]
pub struct Args {
    /// The trace; - is standard output [default: trace.bin, and the recording before stays as
    /// trace.bin.old]. A file that is not a recording is not replaced
    #[arg(short, long, value_name = "FILE")]
    pub output: Option<PathBuf>,
    /// Replace FILE whatever it is
    #[arg(long)]
    pub force: bool,
    /// Record the whole machine, not only COMMAND and its descendants
    #[arg(short, long, conflicts_with_all = ["pid", "cgroup"])]
    pub all: bool,
    /// Follow these processes and their descendants
    #[arg(
        short,
        long,
        value_name = "PID,…",
        value_delimiter = ',',
        conflicts_with = "cgroup"
    )]
    pub pid: Vec<u32>,
    /// Follow the processes of this cgroup (v2) and their descendants
    #[arg(long, value_name = "PATH")]
    pub cgroup: Option<PathBuf>,
    /// Record only events on these CPUs
    #[arg(long, value_name = "LIST", value_parser = args::cpus)]
    pub cpu: Option<Cpus>,
    /// Stop recording after this long
    #[arg(long, value_name = "DUR", value_parser = args::length)]
    pub duration: Option<Duration>,
    /// End COMMAND after this long: standard error has what it waits for, then its processes get TERM
    /// and KILL; exit status 124
    #[arg(long, value_name = "DUR", requires = "command", value_parser = args::length)]
    pub timeout: Option<Duration>,
    /// End COMMAND when nothing of it has run for so long: under 1 % of a CPU, no exec, no exit, no
    /// byte read or written
    #[arg(long, value_name = "DUR", requires = "command", value_parser = args::length)]
    pub stall: Option<Duration>,
    /// The time from TERM to KILL after --timeout and --stall
    #[arg(long, value_name = "DUR", default_value = "10s", value_parser = args::length)]
    pub kill_after: Duration,
    /// Stop recording before the file is larger than this (100M, 1G). COMMAND runs on, and its exit status,
    /// wall time and CPU time still reach the file
    #[arg(long, value_name = "SIZE", value_parser = rotation::file_size,
          conflicts_with_all = ["rotate", "timeout", "stall"])]
    pub max_size: Option<u64>,
    /// Record until the last descendant of COMMAND has ended
    #[arg(long, requires = "command", conflicts_with_all = ["all", "pid", "cgroup"])]
    pub wait_all: bool,
    /// Run COMMAND as this user, while tr itself runs as root
    #[arg(long, value_name = "NAME", requires = "command")]
    pub user: Option<String>,
    /// Memory of all rings together [default: 4 MiB per CPU, less from 9 CPUs on (32 MiB
    /// together, at least 256 KiB each), and 4 MiB for forks, execs and exits]
    #[arg(long, value_name = "SIZE", value_parser = args::size)]
    pub buffer: Option<u64>,
    /// Keep at most this much of each argv
    #[arg(long, value_name = "SIZE", value_parser = args::size, default_value = "16K")]
    pub argv_limit: u64,
    /// Do not keep the texts of shell scripts that run from files, which show why a build failed
    #[arg(long)]
    pub no_scripts: bool,
    /// Keep passwords and tokens in command lines and scripts; without it they are masked
    #[arg(long)]
    pub no_redact: bool,
    /// Mask matches in command lines, scripts, names and paths: the first group, or the whole match
    #[arg(long, value_name = "REGEX", value_parser = tr_redact::pattern)]
    pub redact: Vec<regex::bytes::Regex>,
    /// Containers that are recorded beside descendants of COMMAND: mine, that a recorded process
    /// has asked a daemon for; all, that start on this machine
    #[arg(long, value_name = "WHICH", default_value = "mine", value_parser = args::words(CONTAINERS))]
    pub containers: Containers,
    /// Do not record servers that COMMAND asks on this machine (sccache, a database)
    #[arg(long)]
    pub no_servers: bool,
    /// Record forks, execs, exits and each task's CPU time once a second, nothing else: for days on a
    /// busy machine, some 0.1 % of a CPU (with -a, or a COMMAND)
    #[arg(long, conflicts_with_all = ["cpu", "syscalls", "stacks", "off_cpu_stacks", "containers"])]
    pub light: bool,
    /// With --light: start a new file after this time or at this size (1h, 100M, or 1h,100M). Each
    /// file is named by its start time in UTC and can be read alone
    #[arg(long, value_name = "LIMIT", value_delimiter = ',', requires = "light",
          value_parser = rotation::limit)]
    pub rotate: Vec<rotation::Limit>,
    /// Sum up the system calls of each process (report syscalls). Each call costs
    /// some 0.3 µs more
    #[arg(long)]
    pub syscalls: bool,
    /// Sample the stacks of tasks on a CPU, HZ times a second on each [default: 99] (report
    /// flame). A sample costs some 26 µs of CPU time and 20 bytes
    #[arg(long, value_name = "HZ", num_args = 0..=1, require_equals = true,
          default_missing_value = "99",
          value_parser = clap::value_parser!(u32).range(1..=10_000))]
    pub stacks: Option<u32>,
    /// Record the stacks of waits of at least MIN [default: 1ms] (report flame). Each sleep costs
    /// 5 to 12 µs more, however short
    #[arg(long, value_name = "MIN", num_args = 0..=1, require_equals = true,
          default_missing_value = "1ms", value_parser = args::length)]
    pub off_cpu_stacks: Option<Duration>,
    /// Leave the functions of stacks unnamed: tr symbolize names them later
    #[arg(long)]
    pub no_symbols: bool,
    /// Mask the addresses of connections and the names of DNS queries: host-1, name-1, …
    #[arg(long)]
    pub mask_addresses: bool,
    /// Whatever fails before COMMAND runs, also by a named METHOD: warn and run it untraced; FILE
    /// then has the reason, the wall time, the exit status and the CPU time. Never ptrace by itself
    #[arg(long, requires = "command", alias = "no-ptrace")]
    pub best_effort: bool,
    /// How to record: bpf (every fact; root or capabilities), sudo (the same, by a short
    /// `sudo -n`; COMMAND runs as you), ptrace (forks, execs, exits and totals of CPU time; any
    /// user; setuid programs such as sudo lose their rights). auto takes bpf, or sudo on GitHub's
    /// hosted machines alone; ptrace where standard error is a terminal; otherwise COMMAND runs
    /// untraced
    #[arg(long, value_name = "METHOD", default_value = "auto", value_parser = args::words(METHODS))]
    pub method: Choice,
    /// Record by --method sudo
    #[arg(long, conflicts_with = "method")]
    pub sudo: bool,
    /// Keep a line at the bottom of the terminal: the time, the jobs that run, the longest of
    /// them. Not with --light, nor where standard error is no terminal, nor where CI is set
    #[arg(long, requires = "command", conflicts_with_all = ["all", "pid", "cgroup", "light"])]
    pub status: bool,
    /// Print nothing but errors
    #[arg(short, long)]
    pub quiet: bool,
    /// When tracing cannot start, also print the messages of libbpf
    #[arg(short, long, conflicts_with = "quiet")]
    pub verbose: bool,
    /// The command to record, with its arguments
    #[arg(trailing_var_arg = true, value_name = "COMMAND")]
    pub command: Vec<OsString>,
}

impl Args {
    pub fn output(&self) -> &Path {
        self.output
            .as_deref()
            .unwrap_or(Path::new(open::DEFAULT_FILE))
    }

    /// The tasks that `tr record` follows by its options: all, some processes, a cgroup, or COMMAND. `None`
    /// if there is neither such an option nor COMMAND.
    pub fn follow(&self) -> Option<Follow> {
        if self.all {
            Some(Follow::All)
        } else if !self.pid.is_empty() {
            Some(Follow::Pids(self.pid.clone()))
        } else if let Some(path) = &self.cgroup {
            Some(Follow::Cgroup(path.clone()))
        } else {
            (!self.command.is_empty()).then_some(Follow::Command)
        }
    }

    /// Returns an error for combinations of `--light` and `--rotate` with other options that clap's own
    /// rules cannot express.
    pub fn check_light(&self) -> Result<(), &'static str> {
        if self.light && self.method == Choice::Ptrace {
            return Err("--light needs --method bpf or sudo");
        }
        if !self.rotate.is_empty() && self.output() == Path::new("-") {
            return Err("--rotate needs files: standard output has no parts");
        }
        Ok(())
    }

    /// The method of recording that the user requests, by `--method` or its short form `--sudo`.
    pub fn choice(&self) -> Choice {
        if self.sudo {
            Choice::Sudo
        } else {
            self.method
        }
    }

    /// Whether COMMAND must not run at all after this error: without `--best-effort`, if the user has named a method of
    /// recording or the command line has a mistake. Otherwise COMMAND runs untraced. Also true if there is no COMMAND.
    pub fn holds_command(&self, error: &Error) -> bool {
        if self.command.is_empty() {
            return true;
        }
        !self.best_effort && (self.choice() != Choice::Auto || error.is_mistake())
    }
}

/// The values of the option `--method` with their words on the command line.
const METHODS: [(Choice, &str); 4] = [
    (Choice::Auto, "auto"),
    (Choice::Bpf, "bpf"),
    (Choice::Sudo, "sudo"),
    (Choice::Ptrace, "ptrace"),
];

/// The values of the option `--containers` with their words on the command line.
const CONTAINERS: [(Containers, &str); 3] = [
    (Containers::Mine, "mine"),
    (Containers::All, "all"),
    (Containers::None, "none"),
];
