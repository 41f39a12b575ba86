//! Recognizes programs that measure for a set time, such as load generators and benchmarks. The program itself or its
//! arguments set this time. On free CPUs, such a program does more work, but takes as long as on busy ones.

use crate::command_line::program_of_args;

/// The names of programs that always measure for a set time, separated by spaces.
const ALWAYS_TIMED: &str =
    "fio hey iperf iperf3 k6 locust oha siege stress stress-ng sysbench vegeta wrk wrk2";

/// Programs that measure for a set time, or at a set rate, if one of the listed options is given.
const TIMED_OPTIONS: [(&str, &[&str]); 3] = [
    ("ab", &["-t"]),
    ("pgbench", &["-R", "--rate", "-T", "--time"]),
    ("redis-benchmark", &["--rps"]),
];

/// The options with which test binaries of Go, of Rust's criterion and libtest, of google-benchmark
/// and of pytest-benchmark measure.
const OF_TESTS: [&str; 6] = [
    "-test.bench",
    "-test.fuzz",
    "-test.fuzztime",
    "--bench",
    "--benchmark-only",
    "--benchmark_min_time",
];

/// Whether a program with these arguments measures for a set time or at a set rate.
pub fn measures_by_clock(args: &[&[u8]]) -> bool {
    let program = program_of_args(args);
    let name = program.name();
    let has = |options: &[&str]| {
        let mut args = args.iter().skip(1);
        args.any(|arg| options.iter().any(|option| gives(arg, option)))
    };
    let with = TIMED_OPTIONS.iter().filter(|(known, _)| *known == name);
    ALWAYS_TIMED.split(' ').any(|known| known == name)
        || with.into_iter().any(|(_, options)| has(options))
        || has(&OF_TESTS)
}

/// Whether an argument gives an option, alone or with its value: `-T`, `-T4`, `--time=4`.
fn gives(arg: &[u8], option: &str) -> bool {
    let Some(rest) = arg.strip_prefix(option.as_bytes()) else {
        return false;
    };
    let is_short = option.len() == 2;
    rest.is_empty() || rest.starts_with(b"=") || is_short
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn measurements_are_distinguished_from_tests() {
        for (line, is) in [
            ("wrk -d 10 http://h/", true),
            ("/usr/bin/pgbench -R 50 -T4 db", true),
            ("pgbench -t 100 db", false),
            ("ab -n 100 http://h/", false),
            ("ab -t 5 http://h/", true),
            (
                "/tmp/b001/roman.test -test.fuzz=FuzzX -test.fuzztime=4s",
                true,
            ),
            (
                "/tmp/b001/roman.test -test.timeout=10m0s -test.v=true",
                false,
            ),
            ("/w/target/release/deps/sort-0123456789abcdef --bench", true),
            (
                "/w/target/debug/deps/sort-0123456789abcdef --nocapture",
                false,
            ),
            ("python3 -m pytest --benchmark-only", true),
            ("make bench", false),
        ] {
            let args: Vec<&[u8]> = line.split(' ').map(str::as_bytes).collect();
            assert_eq!(measures_by_clock(&args), is, "{line}");
        }
    }
}
