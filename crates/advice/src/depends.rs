//! Finds which jobs of a build need each other, by their command lines: a job needs another job if its command line
//! names a file that the other job makes.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use tr_programs::changes;

use tr_analyze::jobs::{Job, Tools};
use tr_analyze::model::{Analysis, ProcessIx};
use tr_analyze::schedule::{Plan, Planned};
use tr_programs::job_tools::Starts;
use tr_programs::program_name::ProgramName;
use tr_programs::script_words::{command_words, is_script_option};
use tr_programs::table;
use tr_programs::table::utilities::{self, UtilityUse};
use tr_programs::tools::{Family, Role};

use crate::facts::{BuildFacts, Execution};

/// The options and redirections after which a command line names a file that the command makes.
const OUTPUT: &[&str] = &["-o", "-MF", "--output", ">", ">>", "--out-dir"];
/// A job counts as probably connected with the earlier jobs that name the same file, if fewer than this many earlier
/// jobs name it. A file that at least this many tests make is scratch. A guess: with a larger number, headers that only
/// a few jobs share would connect these jobs.
const MANY_JOBS: usize = 3;

/// A thing that a job makes or needs.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
enum Product {
    /// A file, by its path as the command line has it.
    File(String),
    /// A Rust crate that cargo has built: its name with its hash.
    Crate(String),
    /// A compiled build script of cargo, by the name of its directory.
    BuildScript(String),
    /// The output of the build script of a Rust crate, by the name of the crate.
    ScriptOutput(String),
}

impl Product {
    /// Whether only cargo's jobs have the product. The job that makes such a product is always known.
    fn is_of_cargo(&self) -> bool {
        match self {
            Product::File(_) => false,
            Product::Crate(_) | Product::BuildScript(_) | Product::ScriptOutput(_) => true,
        }
    }
}

#[derive(Default)]
struct Files {
    made: BTreeSet<Product>,
    named: BTreeSet<Product>,
    /// The largest CPU time in nanoseconds of a program's execution in the job, and the name of that program.
    program: (u64, ProgramName),
}

/// The build tools of a recording, with the limits on the number of jobs that their arguments set.
pub fn tools(facts: &BuildFacts<'_>) -> Tools {
    let mut limits: BTreeMap<ProcessIx, Option<Option<u64>>> = BTreeMap::new();
    for (group, execution) in facts.all() {
        if let Some(known) = changes::known(&execution.program) {
            let jobs = known.jobs(&facts.args(group));
            // If a process executed several programs, the last one that sets a limit counts.
            let limit = limits.entry(execution.process).or_default();
            *limit = jobs.or(*limit);
        }
    }
    Tools::new(facts.analysis, |process| {
        limits.get(&process).copied().flatten()
    })
}

/// The names of the build tools in a recording that choose the number of their workers by the number of CPUs.
pub fn follow(facts: &BuildFacts<'_>) -> BTreeSet<String> {
    let name = |(group, execution): (_, &Execution)| {
        let jobs = execution.program.tool()?.jobs?;
        let follows = jobs.follows(&facts.args(group));
        follows.then(|| execution.program.name().to_owned())
    };
    facts.all().filter_map(name).collect()
}

/// The largest number of processes of a lineage (a process and its ancestors) that are searched for jobs, to bound the
/// work. In a chain of makes, several of these processes can be jobs, and the process belongs to all of them.
const LONGEST_LINEAGE: usize = 64;

/// Three sets of the jobs that one job of a build needs: the jobs that are certainly needed, the jobs that are probably
/// needed, and the jobs that are needed in the worst case.
type After = [BTreeSet<ProcessIx>; 3];

/// For each job that certainly needs other jobs, these jobs: the last job that made a file which the job names, and the
/// job that had to end before it by the recording.
pub fn needs(facts: &BuildFacts<'_>) -> Vec<(ProcessIx, Vec<ProcessIx>)> {
    let tools = tools(facts);
    let jobs = tools.jobs.iter().zip(after(facts, &tools));
    let jobs = jobs.map(|(job, [certain, ..])| (job.process, certain.into_iter().collect()));
    jobs.filter(|(_, others): &(_, Vec<_>)| !others.is_empty())
        .collect()
}

pub fn plan(facts: &BuildFacts<'_>, tools: &Tools) -> Plan {
    let jobs = tools.jobs.iter().zip(after(facts, tools));
    let planned = jobs.map(|(job, after)| Planned {
        job: *job,
        length: job.end.since(job.start),
        after: after.map(|set| set.into_iter().collect()),
    });
    Plan::new(planned.collect(), tools.limits.clone())
}

fn after(facts: &BuildFacts<'_>, tools: &Tools) -> Vec<After> {
    let mut files = files(facts, &tools.jobs);
    let mut by_owner: BTreeMap<ProcessIx, Vec<usize>> = BTreeMap::new();
    for (at, job) in tools.jobs.iter().enumerate() {
        by_owner.entry(job.owner).or_default().push(at);
    }
    let mut after: Vec<After> = Vec::new();
    after.resize_with(tools.jobs.len(), Default::default);
    for (owner, jobs) in &by_owner {
        match needs_of(facts.analysis, *owner) {
            Needs::None => {}
            Needs::Files => of_owner(tools, &files, jobs, &mut after),
            Needs::Declared => {
                without_scratch(&mut files, jobs);
                of_owner(tools, &files, jobs, &mut after);
                for at in jobs {
                    if let Some([certain, likely, _]) = after.get_mut(*at) {
                        certain.clear();
                        likely.clear();
                    }
                }
            }
        }
    }
    after
}

/// The reason why the jobs of a build tool may need each other.
enum Needs {
    /// A job needs the jobs that make the files which its command line names.
    Files,
    /// The jobs are tests. A property of the test (ctest) or a rule (prove) declares which other jobs the test needs
    /// for certain, and the recording has neither. Files that the test shares with other jobs show only which of these
    /// jobs the test may need.
    Declared,
    /// No job needs another job, because the build tool has no way to declare that one job needs another.
    None,
}

fn needs_of(analysis: &Analysis, owner: ProcessIx) -> Needs {
    let tool = analysis.process(owner).tool();
    let starts = tool.and_then(|tool| tool.jobs?.starts);
    match starts {
        Some(Starts::Listed) if tool.and_then(|tool| tool.role(None)) == Some(Role::Tests) => {
            Needs::Declared
        }
        Some(Starts::Listed) => Needs::None,
        _ => Needs::Files,
    }
}

/// Shortens the lists of files of the jobs that are tests: a file that at least [`MANY_JOBS`] tests make or remove is
/// left out, because each test makes such a file only for itself.
fn without_scratch(files: &mut [Files], jobs: &[usize]) {
    let mut makers: BTreeMap<Product, usize> = BTreeMap::new();
    for files in jobs.iter().filter_map(|at| files.get(*at)) {
        for name in &files.made {
            *makers.entry(name.clone()).or_default() += 1;
        }
    }
    let scratch = |name: &Product| makers.get(name).is_some_and(|made| *made >= MANY_JOBS);
    for at in jobs {
        if let Some(files) = files.get_mut(*at) {
            files.made.retain(|name| !scratch(name));
            files.named.retain(|name| !scratch(name));
        }
    }
}

fn of_owner(tools: &Tools, files: &[Files], jobs: &[usize], after: &mut [After]) {
    let numbers = jobs
        .iter()
        .filter_map(|at| Some((tools.jobs.get(*at)?.process, *at)));
    let numbers: HashMap<ProcessIx, usize> = numbers.collect();
    let mut makers: HashMap<&Product, Vec<&Job>> = HashMap::new();
    let mut naming: HashMap<&Product, Vec<&Job>> = HashMap::new();
    for at in jobs {
        let (Some(job), Some(its), Some(after)) =
            (tools.jobs.get(*at), files.get(*at), after.get_mut(*at))
        else {
            continue;
        };
        let ended = |other: &&&Job| other.end <= job.start;
        // Two compilations do not need each other, even if they have the same source.
        let compiles = its.program.1.role() == Some(Role::Compiler);
        let of = |process: &ProcessIx| numbers.get(process).and_then(|at| files.get(*at));
        let other = |process: &ProcessIx| {
            of(process).is_none_or(|of| !compiles || of.program.1 != its.program.1)
        };
        let [best, likely, worst] = after;
        best.extend(job.needs);
        for name in its.named.iter().chain(&its.made) {
            let made = makers.get(name).into_iter().flatten();
            // Only the last job that made the file is needed: if that job depends on jobs that made the file earlier,
            // that job itself waited for them.
            best.extend(made.filter(ended).map(|job| job.process).next_back());
            let named = naming.entry(name).or_default();
            // Two jobs are not connected merely because both name the same crate, build script or output of a script,
            // because the job that makes it is known.
            if named.len() < MANY_JOBS && !name.is_of_cargo() {
                likely.extend(
                    named
                        .iter()
                        .filter(ended)
                        .map(|job| job.process)
                        .filter(other),
                );
            }
            named.push(job);
        }
        for name in &its.made {
            makers.entry(name).or_default().push(job);
        }
        likely.extend(best.iter());
        worst.extend(likely.iter());
        worst.extend(job.released.filter(other));
    }
}

/// The files that each job of a build names, from the command lines of the job's process and its descendants.
fn files(facts: &BuildFacts<'_>, jobs: &[Job]) -> Vec<Files> {
    let of: HashMap<ProcessIx, usize> = jobs
        .iter()
        .zip(0..)
        .map(|(job, at)| (job.process, at))
        .collect();
    let mut files: Vec<Files> = Vec::new();
    files.resize_with(jobs.len(), Files::default);
    for (group, execution) in facts.all() {
        let args = facts.args(group);
        let words: Vec<String> = words(&args);
        for at in jobs_of(facts.analysis, &of, execution.process) {
            if let Some(files) = files.get_mut(at) {
                files.add(&words);
                if execution.on_cpu >= files.program.0 {
                    files.program = (execution.on_cpu, execution.program.clone());
                }
            }
        }
    }
    files
}

/// The jobs to which a process of a build belongs. A process belongs to several jobs if one make runs inside another.
fn jobs_of<'a>(
    analysis: &'a Analysis,
    of: &'a HashMap<ProcessIx, usize>,
    process: ProcessIx,
) -> impl Iterator<Item = usize> + 'a {
    let chain = analysis.lineage(process).take(LONGEST_LINEAGE);
    chain.filter_map(|ix| of.get(&ix).copied())
}

/// The words of a command line, including the words of a shell's command.
fn words(args: &[&[u8]]) -> Vec<String> {
    let text = |word: &[u8]| String::from_utf8_lossy(word).into_owned();
    let mut words = Vec::new();
    let mut command = false;
    for arg in args {
        if command && arg.iter().any(u8::is_ascii_whitespace) {
            words.extend(command_words(arg).map(text));
        } else {
            words.push(text(arg));
        }
        command = is_script_option(arg);
    }
    words
}

impl Files {
    fn add(&mut self, words: &[String]) {
        let path = words.first().map_or("", String::as_str);
        let program = path.rsplit('/').next().unwrap_or(path);
        let family = table::by_name(program).map(|tool| tool.family);
        let by_cargo = words.iter().any(|word| word == "--out-dir");
        if family == Some(Family::Rustc) && by_cargo {
            return self.add_crate(words);
        }
        if family == Some(Family::BuildScript) {
            return self.add_build_script(path);
        }
        // When go calls these tools, go names files relative to the directory of the package. So equal relative names
        // in two calls do not mean the same file.
        let relative = !matches!(program, "compile" | "asm" | "link" | "cgo" | "pack");
        let makes_all = utilities::uses(program).contains(&UtilityUse::Maker);
        let archiver = family == Some(Family::Archiver) || program.ends_with("tar");
        let archives = archiver && words.len() > 2;
        let mut made = false;
        for (at, word) in words.iter().enumerate() {
            let glued = ["-o", ">>", ">"]
                .iter()
                .find_map(|prefix| word.strip_prefix(prefix));
            let output = OUTPUT.contains(&word.as_str());
            let name = glued.filter(|_| !output).unwrap_or(word);
            let name = name.trim_start_matches("./").trim_end_matches('/');
            let archive = archives && at == 2;
            let of_job = if relative {
                !name.starts_with("/tmp/")
            } else {
                name.starts_with('/')
            };
            if !output && of_job && name.len() > 2 && !name.starts_with('-') {
                let file = Product::File(name.to_owned());
                // The path of the program itself is also a name of a needed file, because another job may have built
                // the program.
                if made || glued.is_some() || archive || (makes_all && at > 0) {
                    self.made.insert(file);
                } else if at > 0 || word.contains('/') {
                    self.named.insert(file);
                }
            }
            made = output;
        }
    }

    /// Adds the crate that a call of rustc by cargo makes, and the crates and the output of a build script that the
    /// call needs, to the files of a job. Each crate is added by its name with its hash, because a call may name any
    /// file of a crate.
    fn add_crate(&mut self, words: &[String]) {
        let mut name = "";
        let mut hash = "";
        let mut directory = "";
        for (word, next) in words.iter().zip(words.iter().skip(1)) {
            match word.as_str() {
                "--crate-name" => name = next,
                "--out-dir" => directory = next,
                "-C" => hash = next.strip_prefix("extra-filename=").unwrap_or(hash),
                "--extern" => {
                    let file = next.rsplit('/').next().unwrap_or(next);
                    let file = file.strip_prefix("lib").unwrap_or(file);
                    let file = file.split('.').next().unwrap_or(file);
                    self.named.insert(Product::Crate(file.to_owned()));
                }
                _ => {}
            }
        }
        self.made.insert(Product::Crate(format!("{name}{hash}")));
        if name == "build_script_build" {
            let of = directory.rsplit('/').next().unwrap_or(directory);
            self.made.insert(Product::BuildScript(of.to_owned()));
        } else {
            self.named.insert(Product::ScriptOutput(name.to_owned()));
        }
    }

    /// Adds the run of a build script of cargo to the files of a job. The run needs the compiled script, which is known
    /// by the script's directory, and makes the output of the script, which is known by the name of the crate.
    fn add_build_script(&mut self, path: &str) {
        let of = path.rsplit('/').nth(1).unwrap_or(path);
        self.named.insert(Product::BuildScript(of.to_owned()));
        let name = of.rsplit_once('-').map_or(of, |(name, _)| name);
        let crate_name = name.replace('-', "_");
        self.made.insert(Product::ScriptOutput(crate_name));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn files(line: &str) -> Files {
        let words: Vec<String> = line.split(' ').map(str::to_owned).collect();
        let mut files = Files::default();
        files.add(&words);
        files
    }

    fn needs(job: &str, other: &str) -> bool {
        let made = files(other).made;
        files(job).named.iter().any(|name| made.contains(name))
    }

    #[test]
    fn crates_are_named_by_cargo() {
        let of = |name: &str| {
            format!("rustc --crate-name {name} --out-dir /t/deps -C extra-filename=-{name}1")
        };
        let user = of("x") + " --extern a=/t/deps/liba-a1.rmeta --extern proc_macro";
        assert!(needs(&user, &of("a")));
        assert!(!needs(&user, &of("b")));
        let script =
            "rustc --crate-name build_script_build --out-dir /t/build/a-b-3f -C extra-filename=-3f";
        assert!(needs("/t/build/a-b-3f/build-script-build", script));
        assert!(!needs("/t/build/a-b-4f/build-script-build", script));
        assert!(needs(&of("a_b"), "/t/build/a-b-9a/build-script-build"));
        // Relative names in calls of go's tools do not connect jobs, because they are relative to the directory of a
        // package.
        assert!(needs(
            "link -o a /tmp/w/b001/_pkg_.a",
            "compile -o /tmp/w/b001/_pkg_.a ./a.go"
        ));
        assert!(!needs("compile ./doc.go", "cp x doc.go"));
        // A rustc that is not called by cargo is treated like other compilers.
        assert!(needs(
            "rustc -o main main.rs liba.rlib",
            "rustc --crate-name a -o liba.rlib a.rs"
        ));
    }

    #[test]
    fn a_file_is_no_crate() {
        let of_crate = "rustc --crate-name a --out-dir /t/deps -C extra-filename=-1";
        let mut reader = Files::default();
        reader.add(&["cat", "crate a-1"].map(str::to_owned));
        let made = files(of_crate).made;
        assert!(!reader.named.iter().any(|name| made.contains(name)));
        assert!(!reader.named.iter().any(Product::is_of_cargo));
    }

    #[test]
    fn an_archive_is_made_by_any_archiver() {
        for archiver in ["ar", "x86_64-linux-gnu-ar", "llvm-ar-15", "tar"] {
            let archive = format!("{archiver} rcs liblua.a lapi.o");
            assert!(needs("cc -o lua lua.o liblua.a", &archive), "{archiver}");
        }
        assert!(!needs("cc -o lua lua.o liblua.a", "nm -A liblua.a"));
    }
}
