//! Searches for the functions of the frames in recorded stacks, by a separate process: at the end of a recording, or
//! later for `tr symbolize`.

use std::collections::BTreeMap;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::process::{Child, Command, Stdio};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use tr_format::event::{LifeKind, Tgid};
use tr_format::stack::{Function, Module, Place, Symbol, MOST_INLINED};
use tr_symbols::Answer;
pub use tr_symbols::Request;

use crate::proc;

/// The limits of the time that a search for functions of stacks may take. When a limit is reached, the functions that
/// were found so far are kept.
#[derive(Clone, Copy, Debug)]
pub struct Limit {
    /// The longest CPU time of the search for functions.
    pub cpu: Duration,
    /// The longest wall time of the search for functions.
    pub wall: Duration,
}

/// The limit of the search for functions at the end of a recording, for which COMMAND's caller has to wait. On
/// a busy machine 5 s of wall time can be less than 1 s of CPU time, in which nothing is found.
pub(crate) const LIMIT: Limit = Limit {
    cpu: Duration::from_secs(5),
    wall: Duration::from_secs(20),
};
/// The largest number of bytes that are read of the answers of the process that searches for functions.
const ANSWERS: u64 = 256 << 20;

/// The result of a search for the functions of frames in stacks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Search {
    /// The number of frames whose functions were not known before the search.
    pub frames: usize,
    /// The number of frames whose functions the search has found.
    pub found: usize,
    pub time: Duration,
    /// Whether the limit of time, or a signal, has ended the search early.
    pub ended_early: bool,
}

/// The process of a search for functions that is in progress.
struct Server {
    child: Child,
    answers: JoinHandle<Vec<Answer>>,
}

impl Server {
    fn start(request: &Request) -> io::Result<Server> {
        let mut child = Command::new("/proc/self/exe")
            .arg(tr_symbols::SERVER)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()?;
        let (stdin, stdout) = (child.stdin.take(), child.stdout.take());
        let answers = std::thread::Builder::new()
            .name("tr-symbols".into())
            .spawn(move || {
                let lines = stdout.map(|out| BufReader::new(out.take(ANSWERS)).lines());
                (lines.into_iter().flatten())
                    .map_while(Result::ok)
                    .map_while(|line| serde_json::from_str(&line).ok())
                    .collect()
            })?;
        // The process that searches for functions reads the whole request before it answers, so this write does not
        // block for ever.
        if let Some(mut stdin) = stdin {
            stdin.write_all(&serde_json::to_vec(request)?)?;
        }
        Ok(Server { child, answers })
    }
}

/// Makes the request to search for the functions of these frames, which are given with their numbers. `pid`
/// returns a process's id in `tr`'s own pid namespace.
pub fn request(
    frames: impl IntoIterator<Item = (u32, Place)>,
    modules: impl IntoIterator<Item = tr_symbols::Module>,
    pid: impl Fn(Tgid) -> u32,
) -> Request {
    let mut modules: BTreeMap<u32, tr_symbols::Module> = modules
        .into_iter()
        .map(|module| (module.number, module))
        .collect();
    let mut request = Request::default();
    let mut processes: BTreeMap<u32, Vec<(u32, u64)>> = BTreeMap::new();
    for (number, place) in frames {
        match place {
            Place::Kernel(at) => request.kernel.push((number, at)),
            Place::Process(tgid, at) => processes.entry(pid(tgid)).or_default().push((number, at)),
            Place::Module(module, at) => {
                if let Some(module) = modules.get_mut(&module) {
                    module.frames.push((number, at));
                }
            }
        }
    }
    request.processes.extend(processes);
    request.modules.extend(modules.into_values());
    request.modules.retain(|module| !module.frames.is_empty());
    request
}

/// Searches for the functions of the frames in a request. The search ends at `limit`, or when `go_on`, which
/// waits, returns false. Returns events (first modules with their paths, then symbols) and the result of the
/// search.
pub fn search(
    request: &Request,
    limit: Limit,
    go_on: impl FnMut() -> bool,
) -> (Vec<LifeKind>, Search) {
    let begun = Instant::now();
    let mut search = Search {
        frames: request.frames(),
        ..Search::default()
    };
    if search.frames == 0 {
        return (Vec::new(), search);
    }
    let Ok(mut server) = Server::start(request) else {
        return (Vec::new(), search);
    };
    search.ended_early = !wait(&mut server.child, begun, limit, go_on);
    if search.ended_early {
        let _ = server.child.kill();
    }
    let _ = server.child.wait();
    let answers = server.answers.join().unwrap_or_default();
    let events = events(answers, request);
    search.found = events
        .iter()
        .filter(|event| matches!(event, LifeKind::Symbol(_)))
        .count();
    search.time = begun.elapsed();
    (events, search)
}

/// Waits for the end of the process of a search that began at `begun`. Returns false if the limit or `go_on`
/// ends the wait.
fn wait(child: &mut Child, begun: Instant, limit: Limit, mut go_on: impl FnMut() -> bool) -> bool {
    while matches!(child.try_wait(), Ok(None)) {
        let over = begun.elapsed() >= limit.wall || on_cpu(child) >= limit.cpu;
        if over || !go_on() {
            return false;
        }
    }
    true
}

/// The CPU time that the process of a search for functions has used. The process has one thread.
fn on_cpu(child: &Child) -> Duration {
    let totals = proc::totals(child.id().cast_signed());
    Duration::from_nanos(totals.map_or(0, |(run, ..)| run))
}

/// The events with the functions that a search has found. If a frame has several answers, the last one counts.
fn events(answers: Vec<Answer>, request: &Request) -> Vec<LifeKind> {
    let mut modules = Vec::new();
    let mut symbols = BTreeMap::new();
    for answer in answers {
        match answer {
            Answer::Path(number, path) => {
                let module = request
                    .modules
                    .iter()
                    .find(|module| module.number == number);
                modules.extend(module.map(|module| {
                    LifeKind::Module(Box::new(Module {
                        number,
                        build_id: module.build_id.as_slice().into(),
                        path: path.into_encoded_bytes().into(),
                        file: None,
                    }))
                }));
            }
            Answer::Frame(frame, functions) => {
                let functions = functions.into_iter().take(MOST_INLINED);
                let stored = functions.map(|function| Function {
                    name: function.name.into_bytes().into(),
                    file: function.file.into_bytes().into(),
                    line: function.line,
                });
                symbols.insert(frame, stored.collect());
            }
        }
    }
    let symbols = symbols
        .into_iter()
        .map(|(frame, functions)| LifeKind::Symbol(Symbol { frame, functions }));
    modules.into_iter().chain(symbols).collect()
}
