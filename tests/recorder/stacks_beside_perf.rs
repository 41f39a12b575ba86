//! Compares stacks with those that perf samples in the same run, and waits with a program's own account.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

use libtest_mimic::Failed;
use serde_json::Value;

use crate::common;
use crate::stacks::bound;
use crate::support::{analyze, compiled, ensure, int, list, record, report, scratch, text, Test};

pub const TESTS: &[Test] = &[
    (USER, user),
    (KERNEL, kernel),
    (EXEC, exec),
    (SHORT, short),
    (RUST, rust),
    (PYTHON, python),
    (NODE, node),
    (WAITS, waits),
    (NO_BUILD_ID, no_build_id),
    (REPLACED, replaced),
];

const USER: &str = "samples_in_user_mode_have_perfs_shares";
const KERNEL: &str = "samples_in_the_kernel_have_perfs_shares";
const EXEC: &str = "samples_before_and_behind_an_exec_have_perfs_shares";
const SHORT: &str = "samples_of_short_processes_have_perfs_shares";
const RUST: &str = "samples_of_a_rust_program_have_perfs_shares";
const PYTHON: &str = "samples_of_a_python_program_have_perfs_shares";
const NODE: &str = "samples_of_a_node_program_have_perfs_shares";
const WAITS: &str = "waits_have_the_times_that_the_program_measured";
const NO_BUILD_ID: &str = "functions_of_a_file_without_a_build_id_have_names";
const REPLACED: &str = "a_file_without_a_build_id_that_was_replaced_has_no_names";

/// The reason to skip this test, if a program that it needs is missing.
pub fn lacks(test: &str) -> Option<String> {
    let needs: &[&str] = match test {
        USER | KERNEL | EXEC | SHORT => &["gcc", "perf"],
        RUST => &["rustc", "perf"],
        NODE => &["node", "perf"],
        PYTHON => &["perf"],
        WAITS | NO_BUILD_ID | REPLACED => &["gcc"],
        _ => &[],
    };
    // In `make test` a compiled program and short processes stand for all others.
    let only_long = [KERNEL, EXEC, RUST, NODE, PYTHON].contains(&test) && !common::long();
    if only_long {
        return Some("make test-long has it".into());
    }
    let program = needs.iter().find_map(|program| common::lacks(program));
    let no_python = || (test == PYTHON && interpreter().is_none()).then(|| NO_PYTHON.to_owned());
    let no_samples = || (needs.contains(&"perf") && !samples()).then(|| NO_SAMPLES.to_owned());
    program.or_else(no_python).or_else(no_samples)
}

const NO_PYTHON: &str = "no Python of 3.12 or later with -X perf";
const NO_SAMPLES: &str = "perf cannot sample here";

/// Whether perf can sample here.
fn samples() -> bool {
    static TRIED: OnceLock<bool> = OnceLock::new();
    *TRIED.get_or_init(|| {
        let words = perf_record(&scratch("perf-tried.data"));
        let tried = Command::new("perf").args(&words[1..]).arg("true").output();
        tried.is_ok_and(|out| out.status.success())
    })
}

/// The words of `perf record` for all CPUs, without the command to run. Events for single tasks would have their first
/// sample only a whole period after the fork, so that the beginnings of short processes would be missing. Without
/// `--no-bpf-event`, BPF programs that others load and remove meanwhile would stop `perf script` ("failed to process
/// type: 17").
fn perf_record(file: &Path) -> Vec<String> {
    let words = "perf record -q -a -F 997 -g -e cpu-clock --no-bpf-event -o".split(' ');
    let file = file.to_string_lossy().into_owned();
    words.map(str::to_owned).chain([file]).collect()
}

/// The numbers of samples of some processes, by the compared functions.
#[derive(Debug, Default)]
struct Shares {
    samples: f64,
    /// The number of samples in the kernel.
    kernel: f64,
    /// For each function, the number of samples in which it is the innermost function. `total` has the number of
    /// samples with the function anywhere in the stack.
    own: BTreeMap<&'static str, f64>,
    total: BTreeMap<&'static str, f64>,
}

/// The compared function that a symbol stands for: `three`, `hot::three` and `JS:*three hot.js:3` all stand for
/// `three`.
fn asked(symbol: &str, functions: &[&'static str]) -> Option<&'static str> {
    let mut words = symbol.split(|c: char| !c.is_alphanumeric() && c != '_');
    words.find_map(|word| {
        functions
            .iter()
            .find(|function| **function == word)
            .copied()
    })
}

/// A sample of perf: the name and the pid of its process, and the address and the symbol of each frame, innermost
/// first.
struct Sampled {
    comm: String,
    pid: u64,
    frames: Vec<(u64, String)>,
}

fn perfs(file: &Path) -> Result<Vec<Sampled>, Failed> {
    let out = Command::new("perf")
        .args(["script", "--no-inline", "-F", "comm,pid,ip,sym", "-i"])
        .arg(file)
        .output()?;
    ensure(out.status.success(), || text(&out.stderr))?;
    let shown = text(&out.stdout);
    let samples = shown.split("\n\n").filter_map(|sample| {
        let mut lines = sample.trim_matches('\n').lines();
        let (comm, pid) = lines.next()?.trim().rsplit_once(char::is_whitespace)?;
        let frames = lines.filter_map(|line| {
            let (address, symbol) = line.trim().split_once(' ')?;
            let address = u64::from_str_radix(address, 16).ok()?;
            Some((address, symbol.to_owned()))
        });
        Some(Sampled {
            comm: comm.trim().to_owned(),
            pid: pid.parse().ok()?,
            frames: frames.collect(),
        })
    });
    Ok(samples.collect())
}

fn of_perf(samples: &[Sampled], functions: &[&'static str]) -> Shares {
    let mut shares = Shares::default();
    for sample in samples {
        shares.samples += 1.0;
        let innermost = sample.frames.first();
        shares.kernel += f64::from(u8::from(
            innermost.is_some_and(|innermost| innermost.0 >> 63 == 1),
        ));
        if let Some(function) = innermost.and_then(|innermost| asked(&innermost.1, functions)) {
            *shares.own.entry(function).or_default() += 1.0;
        }
        let frames = sample.frames.iter();
        let all: BTreeSet<_> = frames
            .filter_map(|frame| asked(&frame.1, functions))
            .collect();
        for function in all {
            *shares.total.entry(function).or_default() += 1.0;
        }
    }
    shares
}

fn of_tr(flame: &Value, pids: &BTreeSet<u64>, functions: &[&'static str]) -> Shares {
    let mut shares = Shares::default();
    for row in list(flame, "rows") {
        if row["off_cpu"] == true || !pids.contains(&int(row, "pid")) {
            continue;
        }
        let own = int(row, "self_samples") as f64;
        shares.samples += own;
        if row["binary"] == "kernel" {
            shares.kernel += own;
        }
        let name = row["function"].as_str().unwrap_or_default();
        if let Some(function) = asked(name, functions) {
            *shares.own.entry(function).or_default() += own;
            let total = int(row, "total_samples") as f64;
            *shares.total.entry(function).or_default() += total;
        }
    }
    shares
}

/// A share that is compared: a function's own samples, its samples including callees, or samples in the kernel.
#[derive(Clone, Copy)]
enum FunctionShare {
    Own(&'static str),
    Total(&'static str),
    Kernel,
}
use FunctionShare::{Kernel, Own, Total};

impl FunctionShare {
    fn of(self, shares: &Shares) -> f64 {
        let samples = match self {
            Own(function) => shares.own.get(function),
            Total(function) => shares.total.get(function),
            Kernel => Some(&shares.kernel),
        };
        samples.copied().unwrap_or_default() / shares.samples.max(1.0)
    }
}

/// Samples a program by tr and by perf at the same time, and compares the shares of its functions. An expected share is
/// given if the program's code determines this share; otherwise it is `None`. `comm` is the name of the processes.
fn beside(
    what: &str,
    command: &[&str],
    comm: &str,
    parts: &[(FunctionShare, Option<f64>)],
) -> Result<(), Failed> {
    let data = scratch(&format!("perf-{what}.data"));
    let trace = scratch(&format!("beside-{what}.bin"));
    let words = perf_record(&data);
    let perf = words.iter().map(String::as_str);
    let perf: Vec<&str> = perf.chain(command.iter().copied()).collect();
    let out = record(&trace, &["--stacks=997"], &perf)?;
    ensure(out.status.success(), || text(&out.stderr))?;
    let mut samples = perfs(&data)?;
    // Other processes on this machine may have the same name, so only recorded ones count.
    let recorded = analyze(&trace)?;
    let recorded = list(&recorded, "processes").iter();
    let recorded: BTreeSet<u64> = recorded.map(|recorded| int(recorded, "pid")).collect();
    let named = samples.iter().filter(|sample| sample.comm == comm);
    let pids = named
        .map(|sample| sample.pid)
        .filter(|pid| recorded.contains(pid));
    let pids: BTreeSet<u64> = pids.collect();
    // A process is selected only by its name after the exec. All samples of the selected processes are used. Samples
    // from before the exec are used, too, although they have another name.
    samples.retain(|sample| pids.contains(&sample.pid));
    for pid in &pids {
        // A JIT compiler has written this list of its functions.
        let _ = std::fs::remove_file(format!("/tmp/perf-{pid}.map"));
    }
    let flame = report(&trace, "flame", &["--by", "process"])?;
    let functions: Vec<&'static str> = parts
        .iter()
        .filter_map(|(part, _)| match part {
            Own(function) | Total(function) => Some(*function),
            Kernel => None,
        })
        .collect();
    let theirs = of_perf(&samples, &functions);
    let ours = of_tr(&flame, &pids, &functions);
    let said = || format!("perf {theirs:?}\ntr {ours:?}\n{}", text(&out.stderr));
    // The programs run for a fixed time. Next to other load they get fewer samples, so that the bounds are wider.
    ensure(theirs.samples > 150.0 && ours.samples > 150.0, said)?;
    for (part, known) in parts {
        let (our, their) = (part.of(&ours), part.of(&theirs));
        // If neither tr nor perf found the function, the comparison would prove nothing, so perf must have some samples
        // of it.
        let is_known = known.map_or(their > 0.01, |known| {
            (our - known).abs() <= bound(known, ours.samples)
        });
        // The difference of two measured shares has the same variance as one share that is measured by `both` samples.
        // This number is smaller than either number of samples.
        let both = 1.0 / (1.0 / ours.samples + 1.0 / theirs.samples);
        let near = (our - their).abs() <= bound((our + their) / 2.0, both);
        ensure(near && is_known, || {
            let name = match part {
                Own(function) => format!("self of {function}"),
                Total(function) => format!("total of {function}"),
                Kernel => "kernel".to_owned(),
            };
            format!(
                "{name}: {our:.3}, perf {their:.3}, known {known:?}\n{}",
                said()
            )
        })?;
    }
    Ok(())
}

fn source(name: &str) -> PathBuf {
    let programs = Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures/programs");
    programs.join(name)
}

/// Compiles the test program as `stacks.rs` does; the flags are explained there.
fn hot(name: &str, flags: &[&str]) -> Result<String, Failed> {
    let flags = [&["-O0", "-pthread"], flags].concat();
    compiled("hot.c", name, &flags)
}

fn user() -> Result<(), Failed> {
    let program = hot("hot-puser", &["-Wl,--build-id"])?;
    let parts = [
        (Own("three"), Some(0.75)),
        (Own("one"), Some(0.25)),
        (Total("user"), Some(1.0)),
        (Total("main"), Some(1.0)),
        (Kernel, Some(0.0)),
    ];
    beside("user", &[&program, "user"], "hot-puser", &parts)
}

fn kernel() -> Result<(), Failed> {
    let program = hot("hot-pkernel", &["-Wl,--build-id"])?;
    let parts = [
        (Kernel, None),
        (Own("read_zero"), None),
        (Total("vfs_read"), None),
        (Total("main"), None),
    ];
    beside("kernel", &[&program, "kernel"], "hot-pkernel", &parts)
}

/// The program spends half a second in `one`, executes itself, and then spends 1.5 s, three quarters of them in
/// `three`. After the exec the process has the name of the symbolic link /proc/self/exe.
fn exec() -> Result<(), Failed> {
    let program = hot("exe", &["-Wl,--build-id"])?;
    let parts = [
        (Own("three"), Some(0.75 * 0.75)),
        (Own("one"), Some(1.0 - 0.75 * 0.75)),
        (Total("execs"), Some(0.25)),
        (Total("user"), Some(0.75)),
    ];
    beside("exec", &[&program, "exec"], "exe", &parts)
}

fn short() -> Result<(), Failed> {
    let program = hot("hot-pshort", &["-Wl,--build-id"])?;
    let parts = [
        (Own("three"), None),
        (Own("one"), None),
        (Total("brief"), None),
        (Kernel, None),
    ];
    // The child processes execute /proc/self/exe, so their name is `exe`.
    beside("short", &[&program, "short"], "exe", &parts)
}

fn rust() -> Result<(), Failed> {
    let program = scratch("hot-rust").to_string_lossy().into_owned();
    let out = Command::new("rustc")
        .args(["-C", "opt-level=2", "-C", "force-frame-pointers=yes", "-o"])
        .args([&program, &source("hot.rs").to_string_lossy().into_owned()])
        .output()?;
    ensure(out.status.success(), || text(&out.stderr))?;
    let parts = [
        (Own("three"), Some(0.75)),
        (Own("one"), Some(0.25)),
        (Total("user"), Some(1.0)),
    ];
    beside("rust", &[&program], "hot-rust", &parts)
}

/// The path of a Python of 3.12 or later that supports `-X perf`, and whether this Python keeps frame pointers. A
/// Python that keeps frame pointers is preferred.
fn interpreter() -> Option<(PathBuf, bool)> {
    static FOUND: OnceLock<Option<(PathBuf, bool)>> = OnceLock::new();
    FOUND.get_or_init(find_interpreter).clone()
}

fn find_interpreter() -> Option<(PathBuf, bool)> {
    const TRIED: &str = "import sys, sysconfig
sys.activate_stack_trampoline('perf')
flags = sysconfig.get_config_vars('CFLAGS', 'PY_CORE_CFLAGS')
print(sys.executable)
print('-fno-omit-frame-pointer' in ' '.join(map(str, flags)))";
    let names = ["python3", "python3.12", "python3.13", "python3.14"];
    let versions = std::env::var_os("HOME").map(|home| PathBuf::from(home).join(".pyenv/versions"));
    let others = versions.and_then(|version| std::fs::read_dir(version).ok());
    let others = others.into_iter().flatten().flatten();
    let others = others.map(|path| path.path().join("bin/python3"));
    let all = names.map(PathBuf::from).into_iter().chain(others);
    let mut found: Vec<(PathBuf, bool)> = all
        .filter_map(|python| {
            let out = Command::new(&python).args(["-c", TRIED]).output().ok()?;
            let shown = text(&out.stdout);
            let (path, keeps) = shown.trim().split_once('\n')?;
            out.status.success().then(|| (path.into(), keeps == "True"))
        })
        .collect();
    found.sort_by_key(|program| !program.1);
    found.into_iter().next()
}

/// In a Python without frame pointers, only the interpreter's own functions are known. These functions alternate faster
/// than samples are taken, so tr and perf hit different functions. With 8,000 samples the shares differ by 0.9 %
/// (standard deviation).
fn python() -> Result<(), Failed> {
    let (python, keeps) = interpreter().ok_or(NO_PYTHON)?;
    let comm = python.file_name().unwrap_or_default().to_string_lossy();
    let parts: &[(FunctionShare, Option<f64>)] = if keeps {
        &[(Total("three"), None), (Total("one"), None)]
    } else {
        // With debug information tr reports inlined functions as the innermost ones, so only totals are compared.
        &[
            (Total("_PyEval_EvalFrameDefault"), None),
            (Total("_PyObject_Free"), None),
        ]
    };
    let (program, script) = (python.to_string_lossy(), source("hot.py"));
    let command = [&*program, "-X", "perf", &script.to_string_lossy()];
    beside("python", &command, &comm, parts)
}

fn node() -> Result<(), Failed> {
    let script = source("hot.js").to_string_lossy().into_owned();
    // V8 writes a log into its working directory.
    let scratch = scratch("").to_string_lossy().into_owned();
    let env = ["env", "-C", &scratch, "node"];
    let command = [
        &env[..],
        &["--perf-basic-prof", "--no-turbo-inlining", &script],
    ]
    .concat();
    // The start of node and V8's compiler threads take CPU time as well, so the shares of the functions are not known.
    let parts = [(Own("three"), None), (Own("one"), None)];
    beside("node", &command, "node", &parts)
}

/// Compares the waits for a mutex, a pipe and a file lock, by the function that waits, with the program's own
/// measurements.
fn waits() -> Result<(), Failed> {
    let (program, trace) = (hot("hot-waits", &["-Wl,--build-id"])?, scratch("waits.bin"));
    let out = record(
        &trace,
        &["-q", "--off-cpu-stacks"],
        &[&program, "waits", &program],
    )?;
    ensure(out.status.success(), || text(&out.stderr))?;
    let flame = report(&trace, "flame", &[])?;
    let shown = text(&out.stdout);
    let known = shown.lines().filter_map(|line| line.split_once(' '));
    let known: Vec<(&str, f64)> = known
        .map(|(name, ns)| Ok((name, ns.parse()?)))
        .collect::<Result<_, std::num::ParseFloatError>>()?;
    ensure(known.len() == 3, || shown.clone())?;
    // The program measures its waits by reading a clock before and after each wait. Between these readings the program
    // also runs or waits for a CPU, and the shortest waits are not recorded. So the program's figure is larger than the
    // recorded one.
    let process = analyze(&trace)?["processes"][0].take();
    let rest = ["on_cpu_ns", "run_queue_ns", "unknown_ns"].map(|key| int(&process, key));
    let mut slack = rest.iter().sum::<u64>() as f64 + 30.0 * 1e6;
    for (name, ns) in &known {
        let rows = list(&flame, "rows").iter();
        let row = rows.filter(|row| row["function"] == *name && row["off_cpu"] == true);
        let waited: u64 = row.map(|row| int(row, "total_ns")).sum();
        slack -= ns - waited as f64;
        ensure(waited as f64 <= *ns && slack >= 0.0, || {
            format!("{name}: {waited}, itself {ns}: {process} {flame}")
        })?;
    }
    Ok(())
}

/// Without a build id, the kernel reports addresses. The process's mappings show to which file an address belongs.
fn no_build_id() -> Result<(), Failed> {
    let (program, trace) = (hot("hot-none", &[NONE])?, scratch("no-build-id.bin"));
    let out = record(&trace, &["--stacks=997"], &[&program, "user"])?;
    ensure(out.status.success(), || text(&out.stderr))?;
    let flame = report(&trace, "flame", &[])?;
    let own = |name: &str| self_ns(&flame, |row| row["function"] == name);
    let all = int(&flame, "ns") as f64;
    let (three, one) = (own("three") as f64 / all, own("one") as f64 / all);
    let bound = bound(0.25, int(&flame, "samples") as f64);
    ensure(
        (three - 0.75).abs() <= bound && (one - 0.25).abs() <= bound,
        || format!("{three} {one}: {flame}"),
    )
}

const NONE: &str = "-Wl,--build-id=none";

fn self_ns(flame: &Value, is: impl Fn(&Value) -> bool) -> u64 {
    let rows = list(flame, "rows").iter().filter(|row| is(row));
    rows.map(|row| int(row, "self_ns")).sum()
}

/// If another program has replaced the file, it has other functions at the same offsets, so no function may be named.
fn replaced() -> Result<(), Failed> {
    let (program, other) = (hot("hot-old", &[NONE])?, hot("hot-new", &[NONE, "-DNEW"])?);
    let script = format!("{program} user & sleep 1; mv {other} {program}; wait");
    let trace = scratch("replaced.bin");
    let out = record(&trace, &["--stacks=997"], &["sh", "-c", &script])?;
    ensure(out.status.success(), || text(&out.stderr))?;
    let flame = report(&trace, "flame", &[])?;
    let of_file = self_ns(&flame, |row| row["binary"] == "hot-old");
    let unnamed = self_ns(&flame, |row| row["function"] == "[hot-old]");
    ensure(of_file > 1_000_000_000 && unnamed == of_file, || {
        format!("{unnamed} of {of_file}: {flame}")
    })
}
